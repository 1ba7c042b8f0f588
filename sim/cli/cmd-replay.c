#include "sim/cli/bench-program.h"
#include "sim/cli/output-name.h"
#include "sim/cli/scenario-option.h"
#include "sim/cli/workload-option.h"
#include "sim/run/replay/replay.h"

#include <stdio.h>
#include <string.h>

static const char *const backends[] = {"cpu", "cuda", NULL};

static const cs_option options[] = {
    {"output", 'o', "FILE.h5", "Results file (default: the scenario's name with -measured.h5)"},
    {"backend", 0, "NAME", "What computes (default: cpu)", false, backends},
    {"runs", 'r', "N", "Repetitions; the one with the median duration is kept (default: 11)"},
    CS_OPTION_SET,
    {0},
};

/* --set /pointer=value, taken apart. */
static cs_status read_overrides(const cs_arguments *arguments, cs_list *overrides, cs_arena *arena,
                                cs_error *error)
{
    const char *const *texts;
    size_t n = cs_arguments_values(arguments, "set", &texts);
    cs_request_override *pairs = cs_arena_alloc(arena, n, sizeof(*pairs));
    cs_request_override **items = cs_arena_alloc(arena, n, sizeof(*items));
    if (!pairs || !items)
        return cs_error_no_memory(error);
    for (size_t i = 0; i < n; i++) {
        const char *equals = strchr(texts[i], '='); /* there: the scenario was loaded with it */
        pairs[i].pointer = cs_arena_copy_length(arena, texts[i], (size_t)(equals - texts[i]));
        pairs[i].value = equals + 1;
        items[i] = &pairs[i];
        if (!pairs[i].pointer)
            return cs_error_no_memory(error);
    }
    *overrides = (cs_list){.n = (uint32_t)n, .items = items};
    return CS_OK;
}

/* The scenario's name with an ending of its own; NULL when memory runs out. */
static const char *default_output(const cs_scenario *scenario, cs_arena *arena)
{
    size_t size = strlen(scenario->name) + sizeof("-measured.h5");
    char *name = cs_arena_alloc(arena, size, 1);
    if (!name)
        return NULL;
    snprintf(name, size, "%s-measured.h5", scenario->name);
    for (char *at = name; *at; at++)
        *at = *at == '/' ? '_' : *at; /* a name, not a path */
    return name;
}

static cs_status read_request(const cs_arguments *arguments, const cs_scenario *scenario,
                              cs_request *request, cs_arena *arena, cs_error *error)
{
    uint32_t runs;
    const char *output = cs_arguments_value(arguments, "output");
    CS_TRY(cs_arguments_between(arguments, "runs", 11, 1, CS_REQUEST_RUNS_MAX, &runs, error));
    CS_TRY(cs_output_check(arguments, "output", cs_endings_of_results, error));
    if (!output)
        output = default_output(scenario, arena);
    if (!output)
        return cs_error_no_memory(error);
    CS_TRY(cs_request_init(output, request, arena, error));
    request->runs = runs;
    request->scenario = arguments->words[0];
    return read_overrides(arguments, &request->overrides, arena, error);
}

/* One message here, where every process would have one. */
static cs_status check(const cs_scenario *scenario, const char *path, cs_error *error)
{
    cs_replay replay = {0};
    const cs_status status = cs_replay_make(scenario, path, &replay, error);
    cs_replay_finish(&replay);
    return status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_request request = {0};
    uint32_t backend = 0;
    cs_arena arena;
    cs_arena_init(&arena);
    cs_status status = cs_arguments_choice(arguments, "backend", backends, &backend, error);
    if (status == CS_OK)
        status = cs_scenario_from(context, arguments, &scenario, error);
    if (status == CS_OK)
        status = read_request(arguments, &scenario, &request, &arena, error);
    if (status == CS_OK)
        status = check(&scenario, arguments->words[0], error);
    if (status == CS_OK)
        status = cs_bench_program_run(backends[backend], "replay", scenario.platform.n_devices,
                                      arguments, &request, error);
    cs_scenario_finish(&scenario);
    cs_arena_finish(&arena);
    return status;
}

const cs_command cs_command_replay = {
    .name = "replay",
    .words = "SCENARIO.json",
    .min_words = 1,
    .max_words = 1,
    .summary = "run a scenario on real devices, and record times and memory",
    .doc = "Starts one process per device. Together they train the scenario's model in the order "
           "of its schedule: kernels of the model's own shapes, messages by MPI, memory "
           "allocated and freed. Data and weights are random. On a mesh they are those of the "
           "whole network, so the printed losses do not depend on how it is split.\n\n"
           "The results file has the same format as a simulation's, and `sim compare` compares "
           "the two.",
    .options = options,
    .run = run,
};

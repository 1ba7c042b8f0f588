#include "sim/cli/bench-program.h"
#include "sim/cli/output-name.h"
#include "sim/cli/scenario-option.h"
#include "sim/cli/workload-option.h"
#include "sim/replay/replay.h"

#include <stdlib.h>
#include <string.h>

static const char *const backends[] = {"cpu", "cuda", NULL};

static const cs_option options[] = {
    {"output", 'o', "FILE.h5", "Results file (default: the scenario's name with -measured.h5)",
     false, NULL},
    {"backend", 0, "NAME", "What computes (default: cpu)", false, backends},
    {"runs", 'r', "N", "Repetitions; the one with the median duration is kept (default: 11)", false,
     NULL},
    CS_OPTION_SET,
    {0},
};

/* --set /pointer=value, taken apart. */
static cs_status add_overrides(const cs_arguments *arguments, cJSON *request, cs_error *error)
{
    const char *const *texts;
    size_t n = cs_arguments_values(arguments, "set", &texts);
    cJSON *list = cJSON_AddArrayToObject(request, "overrides");
    for (size_t i = 0; list && i < n; i++) {
        const char *equals = strchr(texts[i], '='); /* there: the scenario was loaded with it */
        char *pointer = strndup(texts[i], (size_t)(equals - texts[i]));
        const char *pair[] = {pointer, equals + 1};
        cJSON *both = pointer ? cJSON_CreateStringArray(pair, 2) : NULL;
        free(pointer);
        if (!both || !cJSON_AddItemToArray(list, both))
            return cs_error_no_memory(error);
    }
    return list ? CS_OK : cs_error_no_memory(error);
}

static cs_status add_output(const cs_arguments *arguments, const cs_scenario *scenario,
                            cJSON *request, cs_error *error)
{
    const char *given = cs_arguments_value(arguments, "output");
    CS_TRY(cs_output_check(arguments, "output", cs_endings_of_results, error));
    size_t size = strlen(scenario->name) + sizeof("-measured.h5");
    char *name = malloc(size);
    if (!name)
        return cs_error_no_memory(error);
    snprintf(name, size, "%s-measured.h5", scenario->name);
    for (char *at = name; *at; at++)
        *at = *at == '/' ? '_' : *at; /* a name, not a path */
    bool added = cJSON_AddStringToObject(request, "output", given ? given : name) != NULL;
    free(name);
    return added ? CS_OK : cs_error_no_memory(error);
}

static cs_status fill(const cs_arguments *arguments, const cs_scenario *scenario, cJSON *request,
                      cs_error *error)
{
    uint32_t runs;
    cs_status status = cs_arguments_count(arguments, "runs", 11, &runs, error);
    if (status == CS_OK && (runs < 1 || runs > 1000))
        return cs_error_add(error, CS_USAGE, "replay: --runs must be from 1 to 1000 (got %u)",
                            runs);
    if (status == CS_OK && (!cJSON_AddNumberToObject(request, "runs", runs) ||
                            !cJSON_AddStringToObject(request, "scenario", arguments->words[0])))
        status = cs_error_no_memory(error);
    if (status == CS_OK)
        status = add_output(arguments, scenario, request, error);
    return status == CS_OK ? add_overrides(arguments, request, error) : status;
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
    uint32_t backend = 0;
    cJSON *request = cJSON_CreateObject();
    cs_status status = request ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_arguments_choice(arguments, "backend", backends, &backend, error);
    if (status == CS_OK)
        status = cs_scenario_from(context, arguments, &scenario, error);
    if (status == CS_OK)
        status = fill(arguments, &scenario, request, error);
    if (status == CS_OK)
        status = check(&scenario, arguments->words[0], error);
    if (status == CS_OK)
        status = cs_bench_program_run(backends[backend], "replay", scenario.platform.n_devices,
                                      arguments, request, error);
    cs_scenario_finish(&scenario);
    cJSON_Delete(request);
    return status;
}

const cs_command cs_command_replay = {
    .name = "replay",
    .words = "SCENARIO.json",
    .min_words = 1,
    .max_words = 1,
    .summary = "do a scenario's tasks for real, and record when and with how much memory",
    .doc = "Starts a process per device, which train the scenario's model in the order of its "
           "schedule: kernels of the model's own shapes, messages by MPI, memory taken and given "
           "back. Nothing is learned: data and weights are random numbers.\n\n"
           "The results file has the form of a simulation's, and `sim compare` holds the two "
           "against each other.",
    .options = options,
    .run = run,
};

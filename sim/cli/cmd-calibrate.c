#include "calib/costs.h"
#include "sim/base/inputs.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/cli/bench-program.h"
#include "sim/cli/output-name.h"
#include "sim/cli/workload-option.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const subjects[] = {"compute", "network", NULL};
static const char *const backends[] = {"cpu", "cuda", "mpi", "nccl", NULL};

static const cs_option options[] = {
    {"output", 'o', "COSTS.json", "Cost file; results are added to an existing one"},
    {"backend", 0, "NAME", "Backend: for compute cpu or cuda, for network mpi or nccl", false,
     backends},
    {"model", 'm', "NAME", "Network whose kernels to measure (sim list models)", false, NULL,
     "models"},
    CS_OPTION_IMAGE,
    CS_OPTION_PARAM,
    {"precision", 0, "NAME", "Precision (default: fp32, the only one on cpu)", false,
     cs_precision_names},
    {"batch", 'b', "SAMPLES", "Samples per batch; several separated by commas", true},
    {"optimizer", 0, "NAME", "Optimizer (default: sgd)", false, cs_optimizer_names},
    {"processes", 'n', "N",
     "Compute: measure in N processes at the same time (default: 1); network: ranks (default: 2)"},
    {"share", 0, "SHARE",
     "Stop when the interval of each median is within this share of the median (default: 0.02)"},
    {"time-limit", 't', "TIME",
     "End after this time and the current step, with wider intervals: time per batch size, at most "
     "half of it to warm up, or per message size (default: 20 s, 0.5 s)"},
    {"launcher", 0, "WORDS",
     "Network: command that starts the processes (default: mpirun), e.g. \"mpirun --hostfile "
     "hosts\", \"srun\""},
    {"collective", 'c', "NAME", "Measure only this collective (default: all)", true},
    {"min-bytes", 0, "SIZE", "Shortest message (default: 8 B)"},
    {"max-bytes", 0, "SIZE", "Longest message (default: 1 GiB, or what fits half the free memory)"},
    {"notes", 0, "TEXT", "For the provenance"},
    {0},
};

/* ---- options that would be ignored, or would fail half-way, are wrong usage ---- */

static const char *const of_compute[] = {"output",     "backend", "model",     "image",     "param",
                                         "precision",  "batch",   "optimizer", "processes", "share",
                                         "time-limit", "notes",   NULL};
static const char *const of_network[] = {"output",     "launcher",   "backend",   "processes",
                                         "time-limit", "collective", "min-bytes", "max-bytes",
                                         "notes",      NULL};

static cs_status check_options(const cs_arguments *arguments, const char *const *known,
                               cs_error *error)
{
    for (const cs_option *option = options; option->name; option++) {
        bool found = false;
        for (size_t i = 0; known[i]; i++)
            found |= strcmp(known[i], option->name) == 0;
        if (!found && cs_arguments_flag(arguments, option->name))
            return cs_error_add(error, CS_USAGE, "calibrate: %s has no option --%s",
                                arguments->words[0], option->name);
    }
    return CS_OK;
}

static const struct limits {
    const char *option;
    cs_quantity quantity;
    double least, most; /* SI units */
    const char *range;
} limits[] = {
    {"share", CS_QUANTITY_NUMBER, 1e-9, 1, "above 0, at most 1"},
    {"time-limit", CS_QUANTITY_TIME, 1e-9, 1e6, "a time from 1 ns to 1e6 s, like \"20 s\""},
    {"min-bytes", CS_QUANTITY_BYTES, 1, 0x1p40, "from 1 B to 1 TiB"},
    {"max-bytes", CS_QUANTITY_BYTES, 1, 0x1p40, "from 1 B to 1 TiB"},
};

/* Returns the value of a checked option, in SI units. */
static double quantity(const cs_arguments *arguments, const char *option, double fallback)
{
    const char *text = cs_arguments_value(arguments, option);
    double value = fallback;
    for (size_t i = 0; text && i < sizeof(limits) / sizeof(limits[0]); i++)
        if (strcmp(limits[i].option, option) == 0 &&
            cs_units_parse(text, limits[i].quantity, &value, NULL) != CS_OK)
            return NAN;
    return value;
}

static cs_status check_quantities(const cs_arguments *arguments, cs_error *error)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const struct limits *at = &limits[i];
        double value = quantity(arguments, at->option, at->least);
        if (!(value >= at->least && value <= at->most))
            return cs_error_add(error, CS_USAGE, "calibrate: --%s must be %s (got \"%s\")",
                                at->option, at->range, cs_arguments_value(arguments, at->option));
    }
    double shortest = quantity(arguments, "min-bytes", 8);
    double longest = quantity(arguments, "max-bytes", 64 << 20);
    if (shortest > longest)
        return cs_error_add(error, CS_USAGE,
                            "calibrate: --min-bytes (%.0f) is above --max-bytes (%.0f)", shortest,
                            longest);
    return CS_OK;
}

/* An existing file is extended after the measurement, so it must be a cost file. */
static cs_status check_output(const char *path, cs_error *error)
{
    struct stat info;
    cs_costs costs;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return CS_OK;
    cs_status status = cs_costs_load(path, &costs, error);
    if (status == CS_OK) {
        cs_inputs_allow(path);
        cs_costs_finish(&costs);
    }
    return status;
}

static cs_status check(const cs_arguments *arguments, bool network, cs_error *error)
{
    const char *output = cs_arguments_value(arguments, "output");
    cs_status status = check_options(arguments, network ? of_network : of_compute, error);
    if (status == CS_OK && !output)
        status = cs_error_add(error, CS_USAGE, "calibrate: --output is missing");
    if (status == CS_OK)
        status = cs_output_check(arguments, "output", cs_endings_of_costs, error);
    if (status == CS_OK)
        status = check_quantities(arguments, error);
    return status == CS_OK ? check_output(output, error) : status;
}

/* ---- the request ---- */

/* Reads everything except what to measure. */
static cs_status read_common(const cs_arguments *arguments, bool network, cs_request *request,
                             cs_arena *arena, cs_error *error)
{
    const char *notes = cs_arguments_value(arguments, "notes");
    CS_TRY(cs_request_init(cs_arguments_value(arguments, "output"), request, arena, error));
    const double limit = quantity(arguments, "time-limit", network ? 0.5 : 20);
    if (!cs_time_from_seconds(limit, &request->time_limit))
        return cs_error_add(error, CS_USAGE, "calibrate: --time-limit is too long");
    request->share = quantity(arguments, "share", request->share);
    request->min_bytes = llround(quantity(arguments, "min-bytes", (double)request->min_bytes));
    request->max_bytes = llround(quantity(arguments, "max-bytes", (double)request->max_bytes));
    request->notes = notes ? notes : "";
    return CS_OK;
}

/* Adds the numbers in "4,8,16" to the list, which has room for them. */
static cs_status add_batches(const char *text, uint32_t *batches, uint32_t *n, cs_error *error)
{
    const char *at = text;
    do {
        char *end;
        unsigned long value = strtoul(at, &end, 10);
        if (*at < '0' || *at > '9' || (*end != ',' && *end != '\0') || value < 1 ||
            value > CS_BATCH_MAX)
            return cs_error_add(error, CS_USAGE,
                                "calibrate: --batch must be whole numbers from 1 to %d, like "
                                "4,8,16 (got \"%s\")",
                                CS_BATCH_MAX, text);
        batches[(*n)++] = (uint32_t)value;
        at = end + 1;
    } while (at[-1] == ',');
    return CS_OK;
}

static cs_status read_batches(const cs_arguments *arguments, cs_list *list, cs_arena *arena,
                              cs_error *error)
{
    const char *const *texts;
    const size_t n = cs_arguments_values(arguments, "batch", &texts);
    size_t room = 1;
    for (size_t i = 0; i < n; i++)
        room += strlen(texts[i]);
    uint32_t *batches = cs_arena_alloc(arena, room, sizeof(*batches));
    if (!batches)
        return cs_error_no_memory(error);
    *list = (cs_list){.items = batches};
    for (size_t i = 0; i < n; i++)
        CS_TRY(add_batches(texts[i], batches, &list->n, error));
    if (n == 0)
        batches[list->n++] = 1;
    return CS_OK;
}

/* Reads the network and builds it, so that errors in it are reported at once. `parameters` is an
 * object that outlives the request. */
static cs_status read_model(const cs_arguments *arguments, cJSON *parameters, cs_request *request,
                            cs_arena *arena, cs_error *error)
{
    static const cs_json_place place = {.file = "sim calibrate"};
    cs_net net = {0};
    cs_workload *workload = cs_arena_alloc(arena, 1, sizeof(*workload));
    if (!workload || !parameters)
        return cs_error_no_memory(error);
    workload->name = cs_arguments_value(arguments, "model");
    if (!workload->name)
        return cs_error_add(error, CS_USAGE, "calibrate compute: --model is missing");
    CS_TRY(cs_arguments_choice(arguments, "precision", cs_precision_names, &workload->precision,
                               error));
    CS_TRY(cs_arguments_parameters(arguments, parameters, error));
    workload->parameters = parameters;
    request->workload = workload;
    cs_status status = cs_workload_network(workload, &place, &net, error);
    if (status == CS_OK)
        status = cs_net_check_runnable(&net, error);
    cs_net_finish(&net);
    return status;
}

static cs_status find_collective(const char *name, uint32_t *found, cs_error *error)
{
    cs_guess guess;
    if (cs_guess_find(&guess, cs_cost_collective_names, name, found))
        return CS_OK;
    return cs_error_add(error, CS_USAGE, "calibrate: unknown collective %s", cs_guess_text(&guess));
}

static cs_status read_collectives(const cs_arguments *arguments, cs_list *list, cs_arena *arena,
                                  cs_error *error)
{
    const char *const *names;
    const size_t n = cs_arguments_values(arguments, "collective", &names);
    uint32_t *found = cs_arena_alloc(arena, n, sizeof(*found));
    if (!found)
        return cs_error_no_memory(error);
    for (size_t i = 0; i < n; i++)
        CS_TRY(find_collective(names[i], &found[i], error));
    if (n > 0)
        *list = (cs_list){.n = (uint32_t)n, .items = found};
    return CS_OK;
}

/* ---- measurements ---- */

static cs_status read_compute(const cs_arguments *arguments, cJSON *parameters, cs_request *request,
                              cs_arena *arena, cs_error *error)
{
    CS_TRY(
        cs_arguments_choice(arguments, "optimizer", cs_optimizer_names, &request->states, error));
    CS_TRY(cs_arguments_count(arguments, "processes", 1, &request->processes, error));
    if (request->processes < 1 || request->processes > CS_REQUEST_PROCESSES_MAX)
        return cs_error_add(error, CS_USAGE,
                            "calibrate compute: --processes must be from 1 to %d (got %u)",
                            CS_REQUEST_PROCESSES_MAX, request->processes);
    CS_TRY(read_model(arguments, parameters, request, arena, error));
    return read_batches(arguments, &request->batches, arena, error);
}

static cs_status calibrate_compute(const cs_arguments *arguments, const char *backend,
                                   cs_request *request, cs_arena *arena, cs_error *error)
{
    cJSON *parameters = cJSON_CreateObject();
    cs_status status = read_compute(arguments, parameters, request, arena, error);
    if (status == CS_OK)
        status = cs_bench_program_run(backend, "compute", 0, arguments, request, error);
    cJSON_Delete(parameters);
    return status;
}

static cs_status calibrate_network(const cs_arguments *arguments, const char *backend,
                                   cs_request *request, cs_arena *arena, cs_error *error)
{
    uint32_t ranks;
    CS_TRY(cs_arguments_count(arguments, "processes", 2, &ranks, error));
    if (ranks < 2)
        return cs_error_add(error, CS_USAGE, "calibrate network: --processes must be >= 2 (got %u)",
                            ranks);
    CS_TRY(read_collectives(arguments, &request->collectives, arena, error));
    return cs_bench_program_run(backend, "network", ranks, arguments, request, error);
}

/* Chooses the program: MPI connects processes on CPUs, NCCL on GPUs. */
static cs_status choose_backend(const cs_arguments *arguments, bool network, const char **name,
                                cs_error *error)
{
    uint32_t backend;
    CS_TRY(cs_arguments_choice(arguments, "backend", backends, &backend, error));
    if (cs_arguments_value(arguments, "backend") && network != (backend >= 2))
        return cs_error_add(error, CS_USAGE, "calibrate %s: --backend must be %s (got \"%s\")",
                            arguments->words[0], network ? "mpi or nccl" : "cpu or cuda",
                            backends[backend]);
    *name = backend == 1 || backend == 3 ? "cuda" : "cpu";
    return CS_OK;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    bool network = strcmp(arguments->words[0], "network") == 0;
    const char *backend = NULL;
    cs_request request;
    cs_arena arena;
    (void)context;
    if (!network && strcmp(arguments->words[0], "compute") != 0)
        return cs_error_add(error, CS_USAGE,
                            "calibrate: measure \"compute\" or \"network\" (got \"%s\")",
                            arguments->words[0]);
    CS_TRY(check(arguments, network, error));
    CS_TRY(choose_backend(arguments, network, &backend, error));
    cs_arena_init(&arena);
    cs_status status = read_common(arguments, network, &request, &arena, error);
    if (status == CS_OK)
        status = network ? calibrate_network(arguments, backend, &request, &arena, error)
                         : calibrate_compute(arguments, backend, &request, &arena, error);
    cs_arena_finish(&arena);
    return status;
}

const cs_command cs_command_calibrate = {
    .name = "calibrate",
    .words = "compute|network",
    .min_words = 1,
    .max_words = 1,
    .choices = subjects,
    .summary = "measure kernels and messages on this machine",
    .doc = "compute trains a network repeatedly and times each of its kernels: forward, "
           "gradients of inputs and of weights, update. network times messages and collectives "
           "between two processes, all of a node, and all, and fits alpha and beta to each.\n\n"
           "Both add to a cost file (docs/how-to/measured-costs.md), which a scenario takes as "
           "\"costs\".",
    .options = options,
    .run = run,
};

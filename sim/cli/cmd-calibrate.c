#include "calib/costs.h"
#include "sim/base/units.h"
#include "sim/cli/bench-program.h"
#include "sim/cli/output-name.h"
#include "sim/cli/workload-option.h"
#include "sim/workload/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const subjects[] = {"compute", "network", NULL};
static const char *const backends[] = {"cpu", "cuda", "mpi", "nccl", NULL};

static const cs_option options[] = {
    {"output", 'o', "COSTS.json", "Cost file; one that is there is added to", false, NULL},
    {"backend", 0, "NAME", "What measures: compute cpu or cuda, network mpi or nccl", false,
     backends},
    {"model", 'm', "NAME", "Network whose kernels are measured (sim list models)", false, NULL,
     "models"},
    CS_OPTION_IMAGE,
    CS_OPTION_PARAM,
    {"precision", 0, "NAME", "Numbers that are computed with (default: fp32, all that cpu has)",
     false, cs_precision_names},
    {"batch", 'b', "SAMPLES", "Samples that a device computes at once; several by commas", true,
     NULL},
    {"optimizer", 0, "NAME", "What updates the weights (default: sgd)", false, cs_optimizer_names},
    {"processes", 'n', "N",
     "Compute: measure while N processes do the same (default: 1); network: ranks (default: 2)",
     false, NULL},
    {"share", 0, "SHARE",
     "End when medians are known to this share of them, to each side (default: 0.02)", false, NULL},
    {"time-limit", 't', "TIME",
     "End with wider intervals after this time, with the step under way: per batch size, of which "
     "half "
     "at most is to warm up, or per message size (default: 20 s, 0.5 s)",
     false, NULL},
    {"launcher", 0, "WORDS",
     "Network: what starts the processes (default: mpirun), e.g. \"mpirun --hostfile hosts\", "
     "\"srun\"",
     false, NULL},
    {"collective", 'c', "NAME", "Measure this one only (default: all)", true, NULL},
    {"min-bytes", 0, "SIZE", "Shortest message (default: 8 B)", false, NULL},
    {"max-bytes", 0, "SIZE", "Longest message (default: 1 GiB, or what fits half the free memory)",
     false, NULL},
    {"notes", 0, "TEXT", "For the provenance", false, NULL},
    {0},
};

/* ---- what would be ignored, or be found wrong in the middle, is a mistake of use ---- */

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

/* In SI units, of an option that was checked. */
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

/* A file that is there is added to, behind the measurement. */
static cs_status check_output(const char *path, cs_error *error)
{
    struct stat info;
    cs_costs costs;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return CS_OK;
    cs_status status = cs_costs_load(path, &costs, error);
    if (status == CS_OK)
        cs_costs_finish(&costs);
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

static cs_status add_count(const cs_arguments *arguments, const char *option, const char *key,
                           uint32_t fallback, uint32_t *value, cJSON *request, cs_error *error)
{
    CS_TRY(cs_arguments_count(arguments, option, fallback, value, error));
    return cJSON_AddNumberToObject(request, key, *value) ? CS_OK : cs_error_no_memory(error);
}

/* Quantities go as they were typed; the request is read with units. */
static cs_status add_texts(const cs_arguments *arguments, bool network, cJSON *request,
                           cs_error *error)
{
    static const char *const keys[][2] = {
        {"min-bytes", "min_bytes"}, {"max-bytes", "max_bytes"}, {"notes", "notes"}};
    const char *limit = cs_arguments_value(arguments, "time-limit");
    bool added =
        cJSON_AddStringToObject(request, "output", cs_arguments_value(arguments, "output"));
    added &= cJSON_AddStringToObject(request, "time_limit",
                                     limit     ? limit
                                     : network ? "0.5 s"
                                               : "20 s") != NULL;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *value = cs_arguments_value(arguments, keys[i][0]);
        if (value)
            added &= cJSON_AddStringToObject(request, keys[i][1], value) != NULL;
    }
    const char *share = cs_arguments_value(arguments, "share");
    if (share)
        added &= cJSON_AddNumberToObject(request, "share", quantity(arguments, "share", 0)) != NULL;
    return added ? CS_OK : cs_error_no_memory(error);
}

/* "4,8,16" */
static cs_status add_batches(const cs_arguments *arguments, cJSON *request, cs_error *error)
{
    const char *const *texts;
    size_t n = cs_arguments_values(arguments, "batch", &texts);
    cJSON *list = cJSON_AddArrayToObject(request, "batches");
    for (size_t i = 0; list && i < n; i++) {
        const char *at = texts[i];
        do {
            char *end;
            unsigned long value = strtoul(at, &end, 10);
            if (*at < '0' || *at > '9' || (*end != ',' && *end != '\0') || value < 1 ||
                value > CS_BATCH_MAX)
                return cs_error_add(error, CS_USAGE,
                                    "calibrate: --batch must be whole numbers from 1 to %d, like "
                                    "4,8,16 (got \"%s\")",
                                    CS_BATCH_MAX, texts[i]);
            if (!cJSON_AddItemToArray(list, cJSON_CreateNumber((double)value)))
                return cs_error_no_memory(error);
            at = end + 1;
        } while (at[-1] == ',');
    }
    if (list && n == 0 && !cJSON_AddItemToArray(list, cJSON_CreateNumber(1)))
        list = NULL;
    return list ? CS_OK : cs_error_no_memory(error);
}

/* The network is built here as well, so that what is wrong with it is known at once. */
static cs_status add_model(const cs_arguments *arguments, cJSON *request, cs_error *error)
{
    static const cs_json_place place = {.file = "sim calibrate"};
    cs_workload workload = {.name = cs_arguments_value(arguments, "model")};
    cJSON *object = cJSON_AddObjectToObject(request, "workload");
    cJSON *parameters = object ? cJSON_AddObjectToObject(object, "parameters") : NULL;
    const char *precision = cs_arguments_value(arguments, "precision");
    cs_net net = {0};
    if (!workload.name)
        return cs_error_add(error, CS_USAGE, "calibrate compute: --model is missing");
    if (!parameters || !cJSON_AddStringToObject(object, "name", workload.name) ||
        !cJSON_AddStringToObject(object, "precision", precision ? precision : "fp32"))
        return cs_error_no_memory(error);
    cs_status status = cs_arguments_parameters(arguments, parameters, error);
    workload.parameters = parameters;
    if (status == CS_OK)
        status = cs_workload_network(&workload, &place, &net, error);
    cs_net_finish(&net);
    return status;
}

static cs_status add_collectives(const cs_arguments *arguments, cJSON *request, cs_error *error)
{
    const char *const *names;
    size_t n = cs_arguments_values(arguments, "collective", &names);
    cJSON *list = n > 0 ? cJSON_CreateStringArray(names, (int)n) : NULL;
    if (n == 0)
        return CS_OK;
    return list && cJSON_AddItemToObject(request, "collectives", list) ? CS_OK
                                                                       : cs_error_no_memory(error);
}

/* ---- what is measured ---- */

static cs_status calibrate_compute(const cs_arguments *arguments, const char *backend,
                                   cJSON *request, cs_error *error)
{
    uint32_t processes, states;
    cs_status status =
        cs_arguments_choice(arguments, "optimizer", cs_optimizer_names, &states, error);
    if (status == CS_OK && !cJSON_AddNumberToObject(request, "states", states))
        status = cs_error_no_memory(error);
    if (status == CS_OK)
        status = add_count(arguments, "processes", "processes", 1, &processes, request, error);
    if (status == CS_OK && (processes < 1 || processes > 1024))
        status = cs_error_add(error, CS_USAGE,
                              "calibrate compute: --processes must be from 1 to 1024 (got %u)",
                              processes);
    if (status == CS_OK)
        status = add_model(arguments, request, error);
    if (status == CS_OK)
        status = add_batches(arguments, request, error);
    return status == CS_OK ? cs_bench_program_run(backend, "compute", 0, arguments, request, error)
                           : status;
}

static cs_status calibrate_network(const cs_arguments *arguments, const char *backend,
                                   cJSON *request, cs_error *error)
{
    uint32_t processes;
    cs_status status = cs_arguments_count(arguments, "processes", 2, &processes, error);
    if (status == CS_OK && processes < 2)
        return cs_error_add(error, CS_USAGE, "calibrate network: --processes must be >= 2 (got %u)",
                            processes);
    if (status == CS_OK)
        status = add_collectives(arguments, request, error);
    return status == CS_OK
               ? cs_bench_program_run(backend, "network", processes, arguments, request, error)
               : status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    bool network = strcmp(arguments->words[0], "network") == 0;
    uint32_t backend = 0;
    (void)context;
    if (!network && strcmp(arguments->words[0], "compute") != 0)
        return cs_error_add(error, CS_USAGE,
                            "calibrate: measure \"compute\" or \"network\" (got \"%s\")",
                            arguments->words[0]);
    CS_TRY(check(arguments, network, error));
    cJSON *request = cJSON_CreateObject();
    cs_status status = request ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_arguments_choice(arguments, "backend", backends, &backend, error);
    if (status == CS_OK && cs_arguments_value(arguments, "backend") && network != (backend >= 2))
        status = cs_error_add(error, CS_USAGE, "calibrate %s: --backend must be %s (got \"%s\")",
                              arguments->words[0], network ? "mpi or nccl" : "cpu or cuda",
                              backends[backend]);
    if (status == CS_OK)
        status = add_texts(arguments, network, request, error);
    bool gpu = backend == 1 || backend == 3;
    if (status == CS_OK)
        status = network ? calibrate_network(arguments, gpu ? "cuda" : "cpu", request, error)
                         : calibrate_compute(arguments, gpu ? "cuda" : "cpu", request, error);
    cJSON_Delete(request);
    return status;
}

const cs_command cs_command_calibrate = {
    .name = "calibrate",
    .words = "compute|network",
    .min_words = 1,
    .max_words = 1,
    .choices = subjects,
    .summary = "measure kernels and messages of this machine for a cost file",
    .doc = "compute trains a network again and again and times every kernel of it: forward, "
           "gradients of inputs and of weights, update. network times messages and collectives "
           "between two processes, all of a node, and all, and fits alpha and beta to each.\n\n"
           "Both add to a cost file (docs/how-to/measured-costs.md), which a scenario takes as "
           "\"costs\".",
    .options = options,
    .run = run,
};

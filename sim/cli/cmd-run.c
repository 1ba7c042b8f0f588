#include "sim/analysis/store.h"
#include "sim/cli/report.h"
#include "sim/cli/scenario-option.h"
#include "sim/trace/results.h"
#include "version.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const cs_option options[] = {
    {"output", 'o', "FILE.h5", "Results file (default: the scenario's name with .h5)", false, NULL},
    {"no-output", 0, NULL, "Write no results file", false, NULL},
    CS_OPTION_SET,
    {"json", 0, NULL, "Print one JSON object instead of the summary", false, NULL},
    {"stop-on-oom", 0, NULL, "End the simulation at the first allocation beyond a capacity", false,
     NULL},
    {"fail-on-oom", 0, NULL, "Exit with status 4 when a device went over its capacity", false,
     NULL},
    {0},
};

/* "NAME.h5" in the current folder, or what --output says; NULL with --no-output. Allocated. */
static cs_status output_name(const cs_arguments *arguments, const cs_scenario *scenario,
                             char **name, cs_error *error)
{
    const char *given = cs_arguments_value(arguments, "output");
    *name = NULL;
    if (cs_arguments_flag(arguments, "no-output"))
        return given ? cs_error_add(error, CS_USAGE,
                                    "run: --output and --no-output exclude each other")
                     : CS_OK;
    if (given && strcmp(given, "-") == 0)
        return cs_error_add(error, CS_USAGE,
                            "run: results cannot go to standard output; --no-output writes none");
    size_t bytes = strlen(scenario->name) + sizeof(".h5");
    *name = given ? strdup(given) : malloc(bytes);
    if (!*name)
        return cs_error_no_memory(error);
    if (!given)
        snprintf(*name, bytes, "%s.h5", scenario->name);
    for (char *at = *name; !given && *at; at++)
        *at = *at == '/' ? '_' : *at; /* a name, not a path */
    return CS_OK;
}

static cs_status fill(cs_h5_file *file, const cs_scenario *scenario,
                      const cs_simulation *simulation, cs_error *error)
{
    cs_results_info info = {.name = scenario->name,
                            .topology = scenario->platform.topology,
                            .schedule = scenario->schedule->name,
                            .scenario = scenario->resolved,
                            .program_version = SIM_VERSION,
                            .seed = scenario->seed};
    cs_status status = cs_results_write(file, &info, &simulation->graph, &simulation->trace, error);
    if (status == CS_OK)
        status = cs_analysis_store(file, &simulation->analysis, error);
    return status == CS_OK ? cs_h5_commit(file, error) : status;
}

static cs_status print(const cs_context *context, const cs_arguments *arguments,
                       const cs_scenario *scenario, const cs_simulation *simulation,
                       const char *output, cs_error *error)
{
    if (cs_arguments_flag(arguments, "json"))
        return cs_print_json(cs_report_json(scenario, simulation), context->out, error);
    cs_report_print(scenario, simulation, context->out);
    if (output)
        fprintf(context->out, "\nresults: %s (%u tasks, hash %016" PRIx64 ")\n", output,
                simulation->graph.n_tasks, simulation->hash);
    return CS_OK;
}

/* The file is begun before the simulation, so that a folder that cannot be written to is known at
 * once. */
static cs_status simulate(const cs_context *context, const cs_arguments *arguments,
                          const cs_scenario *scenario, const char *output,
                          cs_simulation *simulation, cs_error *error)
{
    cs_h5_file *file = NULL;
    if (!cs_progress_step(context->progress, "preparing", 0, 1)) /* from here on Ctrl-C cleans up */
        return cs_error_add(error, CS_INTERRUPTED, "interrupted");
    cs_status status = output ? cs_h5_create(output, context->progress, &file, error) : CS_OK;
    cs_simulation_options options_of = {.stop_on_oom = cs_arguments_flag(arguments, "stop-on-oom"),
                                        .progress = context->progress};
    if (status == CS_OK)
        status = cs_simulate(scenario, &options_of, simulation, error);
    if (status == CS_OK && file)
        status = fill(file, scenario, simulation, error);
    cs_h5_destroy(file);
    if (status == CS_OK)
        status = print(context, arguments, scenario, simulation, output, error);
    if (status == CS_OK && cs_arguments_flag(arguments, "fail-on-oom") &&
        cs_simulation_out_of_memory(simulation))
        return cs_error_add(error, CS_LIMIT, "%s: out of memory, see above", scenario->name);
    return status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_simulation simulation = {0};
    char *output = NULL;
    cs_status status = cs_scenario_from(arguments, &scenario, error);
    if (status == CS_OK)
        status = output_name(arguments, &scenario, &output, error);
    if (status == CS_OK)
        status = simulate(context, arguments, &scenario, output, &simulation, error);
    free(output);
    cs_simulation_finish(&simulation);
    cs_scenario_finish(&scenario);
    return status;
}

const cs_command cs_command_run = {
    .name = "run",
    .words = "SCENARIO.json",
    .min_words = 1,
    .max_words = 1,
    .summary = "simulate a scenario",
    .doc =
        "Simulates the scenario event by event and prints throughput, bubble, peak memory and "
        "where "
        "the time of each device went, side by side with the closed forms of the schedule's "
        "paper.\n\n"
        "The results file is HDF5 (sim/trace/results-format.md); `sim plot` draws it. It appears "
        "complete or not at all.",
    .options = options,
    .run = run,
};

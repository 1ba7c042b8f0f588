#include "sim/cli/scenario-option.h"

static const cs_option options[] = {
    CS_OPTION_SET,
    {"resolved", 0, NULL, "Print the scenario with every default written out", false, NULL},
    {"graph", 0, NULL, "Print the task graph, one task a line", false, NULL},
    {0},
};

static cs_status print(const cs_context *context, const cs_arguments *arguments,
                       const cs_scenario *scenario, const cs_graph *graph, cs_error *error)
{
    bool quiet = false;
    if (cs_arguments_flag(arguments, "resolved")) {
        fputs(scenario->resolved, context->out);
        quiet = true;
    }
    if (cs_arguments_flag(arguments, "graph")) {
        if (!cs_graph_print(graph, context->out))
            return cs_error_add(error, CS_IO, "standard output: cannot write");
        quiet = true;
    }
    if (!quiet)
        fprintf(context->out, "%s: valid, %u tasks on %u device%s\n", arguments->words[0],
                graph->n_tasks, graph->n_devices, graph->n_devices == 1 ? "" : "s");
    return CS_OK;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_graph graph = {0};
    cs_status status = cs_scenario_from(context, arguments, &scenario, error);
    if (status == CS_OK)
        cs_log_each(&context->log, CS_LOG_WARNING, &scenario.warnings);
    if (status == CS_OK)
        status =
            cs_schedule_graph(scenario.schedule, &scenario.job, scenario.params, &graph, error);
    if (status == CS_OK)
        status = print(context, arguments, &scenario, &graph, error);
    cs_graph_finish(&graph);
    cs_scenario_finish(&scenario);
    return status;
}

const cs_command cs_command_check = {
    .name = "check",
    .words = "SCENARIO.json",
    .min_words = 1,
    .max_words = 1,
    .summary = "check a scenario without running it",
    .doc = "Reads the scenario, builds everything that the simulation would start from, and checks "
           "the "
           "task graph for deadlocks. Errors name file and JSON pointer.",
    .options = options,
    .run = run,
};

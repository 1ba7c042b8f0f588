#include "sim/base/text.h"
#include "sim/cli/scenario-option.h"
#include "sim/run/print/mesh-report.h"
#include "sim/run/print/origins-report.h"

static const cs_option options[] = {
    CS_OPTION_SET,
    {"resolved", 0, NULL, "Print the scenario with every default written out"},
    {"graph", 0, NULL, "Print the task graph, one task per line"},
    {"json", 0, NULL, "Print the verdict, errors and warnings as one JSON object"},
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
    if (quiet)
        return CS_OK;
    cs_text_puts(context->out, arguments->words[0]);
    fprintf(context->out, ": valid, %u tasks on %u device%s\n", graph->n_tasks, graph->n_devices,
            graph->n_devices == 1 ? "" : "s");
    cs_mesh_report_print(scenario, context->out);
    cs_origins_report_table(&scenario->origins, context->out);
    return CS_OK;
}

/* ---- for programs ---- */

static cJSON *text_of(const char *text, int bytes)
{
    char copy[CS_ERROR_TEXT_BYTES];
    snprintf(copy, sizeof(copy), "%.*s", bytes, text);
    return cJSON_CreateString(copy);
}

static bool add_message(cJSON *list, const cs_error_message *message)
{
    cJSON *object = cJSON_CreateObject();
    return cJSON_AddItemToArray(list, object) &&
           cJSON_AddItemToObject(object, "file",
                                 message->file_bytes > 0
                                     ? text_of(message->file, message->file_bytes)
                                     : cJSON_CreateNull()) &&
           cJSON_AddItemToObject(object, "pointer",
                                 message->pointer_bytes > 0
                                     ? text_of(message->pointer, message->pointer_bytes)
                                     : cJSON_CreateNull()) &&
           cJSON_AddItemToObject(object, "message", text_of(message->text, message->text_bytes));
}

static bool add_messages(cJSON *root, const char *key, const cs_error *messages)
{
    cs_error_message message;
    cJSON *list = cJSON_AddArrayToObject(root, key);
    for (uint32_t i = 0; list && cs_error_message_at(messages, i, &message); i++)
        list = add_message(list, &message) ? list : NULL;
    return list != NULL;
}

static bool add_size(cJSON *root, const char *key, bool known, uint32_t n)
{
    return cJSON_AddItemToObject(root, key, known ? cJSON_CreateNumber(n) : cJSON_CreateNull());
}

static cJSON *verdict(const char *file, const cs_error *errors, const cs_scenario *scenario,
                      const cs_graph *graph)
{
    const cs_error *warnings = &scenario->warnings;
    const bool valid = errors->count == 0;
    cJSON *root = cJSON_CreateObject();
    if (cJSON_AddStringToObject(root, "file", file) &&
        cJSON_AddBoolToObject(root, "valid", valid) &&
        add_size(root, "tasks", valid, graph->n_tasks) &&
        add_size(root, "devices", valid, graph->n_devices) &&
        add_messages(root, "errors", errors) &&
        add_size(root, "errors_left_out", true, errors->count - errors->stored) &&
        add_messages(root, "warnings", warnings) &&
        (!valid ||
         (cs_mesh_report_json(scenario, root) && cs_origins_report_json(&scenario->origins, root))))
        return root;
    cJSON_Delete(root);
    return NULL;
}

/* What is wrong with the input is an answer; that this machine failed is none. */
static bool is_verdict(cs_status status)
{
    return status == CS_OK || status == CS_INVALID || status == CS_OVERFLOW || status == CS_LIMIT;
}

static cs_status print_verdict(const cs_context *context, const char *file, cs_status status,
                               const cs_error *errors, const cs_scenario *scenario,
                               const cs_graph *graph, cs_error *error)
{
    if (!is_verdict(status))
        return status;
    const cs_status printed =
        cs_print_json(verdict(file, errors, scenario, graph), context->out, error);
    return status == CS_OK ? printed : status;
}

static cs_status check_options(const cs_arguments *arguments, cs_error *error)
{
    if (cs_arguments_flag(arguments, "json") &&
        (cs_arguments_flag(arguments, "resolved") || cs_arguments_flag(arguments, "graph")))
        return cs_error_add(error, CS_USAGE, "check: --json excludes --resolved and --graph");
    return CS_OK;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_graph graph = {0};
    CS_TRY(check_options(arguments, error));
    const bool json = cs_arguments_flag(arguments, "json");
    cs_status status = cs_scenario_from(context, arguments, &scenario, error);
    if (status == CS_OK)
        cs_log_each(&context->log, CS_LOG_WARNING, &scenario.warnings);
    if (status == CS_OK)
        status =
            cs_schedule_graph(scenario.schedule, &scenario.job, scenario.params, &graph, error);
    if (status == CS_OK)
        status = cs_lower_check(&graph, &scenario.platform, &scenario.collectives, error);
    if (json)
        status =
            print_verdict(context, arguments->words[0], status, error, &scenario, &graph, error);
    else if (status == CS_OK)
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
    .doc = "Reads the scenario, builds everything that a simulation starts from, and checks the "
           "task graph for deadlocks. Errors name the file and the JSON pointer; with --json "
           "they are a list of objects on standard output.",
    .options = options,
    .run = run,
};

#include "sim/base/file.h"
#include "sim/base/units.h"
#include "sim/cli/output-name.h"
#include "sim/cli/pattern-picture.h"
#include "sim/cli/plan-graph.h"
#include "sim/cli/planner-options.h"
#include "sim/cli/planners-report.h"
#include "sim/cli/scenario-option.h"

#include <stdlib.h>
#include <string.h>

static const cs_option options[] = {
    {"planner", 'P', "NAME[,NAME...]", "Planners to compare: names in `sim list planners`, or all",
     true, NULL, "planners"},
    {"param", 'p', "NAME=VALUE",
     "A parameter of planners, or of how layers are counted: kept, "
     "weight_copies, count_update, count_workspace",
     true},
    {"output", 'o', "PLAN.json",
     "Save the plan; a scenario refers to it as \"partition\": {\"file\": ...}"},
    {"draw", 0, "PERIOD.svg", "With --planner: draw one period of the pattern of that plan"},
    {"devices", 0, "N[,N...]",
     "Instead of a scenario, cut the network of a PipeDream profile (graph.txt), with branches, "
     "for N devices, as PipeDream's optimizer does; several numbers: devices per machine, then "
     "machines"},
    {"bandwidth", 0, "B[,B...]", "With --devices: bandwidth of each level, like 1 GB/s"},
    {"memory", 0, "BYTES",
     "With --devices: memory per device for the optimizer's memory test (default: no test)"},
    CS_OPTION_SET,
    {"json", 0, NULL, "Print JSON instead of a table"},
    {0},
};

static void print_table(const cs_scenario *scenario, FILE *out)
{
    fprintf(out, "%s: %u stage%s of %s; times and activations per micro-batch%s\n\n",
            scenario->name, scenario->plan->n_stages, scenario->plan->n_stages == 1 ? "" : "s",
            scenario->model->name,
            (scenario->job.replicas == CS_REPLICAS_ALL_REDUCE &&
             scenario->plan->n_devices > scenario->plan->n_stages)
                ? ", of a replica's share"
                : "");
    fprintf(out, "%5s  %-10s %-9s %-10s %-10s %-10s %-11s %s\n", "stage", "device", "layers",
            "forward", "backward", "weights", "activations", "from ... to");
    for (uint32_t s = 0; s < scenario->plan->n_stages; s++) {
        const cs_stage *stage = &scenario->plan->stages[s];
        const cs_layer_sum *sum = &scenario->job.stages[s];
        const double backward = cs_time_seconds(sum->backward_input + sum->backward_weight);
        char devices[32], layers[32];
        uint32_t first = scenario->plan->devices[stage->first_device];
        if (stage->n_devices > 1)
            snprintf(devices, sizeof(devices), "%u (%u %s)", first, stage->n_devices,
                     scenario->parallel ? "devices" : "replicas");
        else
            snprintf(devices, sizeof(devices), "%u", first);
        snprintf(layers, sizeof(layers), "%u-%u", stage->first_layer, stage->end_layer - 1);
        const cs_layer *from = &scenario->model->layers[stage->first_layer];
        const cs_layer *to = &scenario->model->layers[stage->end_layer - 1];
        fprintf(out, "%5u  %-10s %-9s %-10s %-10s %-10s %-11s %s%s%s\n", s, devices, layers,
                cs_units_text(cs_time_seconds(sum->forward), CS_QUANTITY_TIME, 4).s,
                cs_units_text(backward, CS_QUANTITY_TIME, 4).s,
                cs_units_text((double)sum->weight_bytes, CS_QUANTITY_BYTES, 4).s,
                cs_units_text((double)sum->kept_bytes, CS_QUANTITY_BYTES, 4).s, from->name,
                from == to ? "" : " ... ", from == to ? "" : to->name);
    }
}

/* Saves and frees the document; NULL as in cs_print_json. */
static cs_status save(cJSON *root, const char *path, cs_error *error)
{
    char *json = root ? cs_json_print(root) : NULL;
    cJSON_Delete(root);
    if (!json)
        return cs_error_or_no_memory(error);
    cs_status status = cs_file_write(path, json, strlen(json), error);
    free(json);
    return status;
}

/* Whether the plan itself goes to standard output. */
static bool is_printed(const char *output)
{
    return output && strcmp(output, "-") == 0;
}

/* Returns the plan and, if the scenario has one, the pattern. */
static cJSON *plan_json(const cs_scenario *scenario, cs_error *error)
{
    cJSON *root = cs_plan_json(scenario->plan, scenario->model);
    if (root && scenario->pattern &&
        cs_pattern_add_json(root, scenario->plan, scenario->pattern, error) != CS_OK) {
        cJSON_Delete(root);
        return NULL;
    }
    return root;
}

/* Adds how the planner found the plan. */
static bool add_search(const cs_scenario *scenario, cJSON *object)
{
    const cs_time promised = scenario->search.promised;
    const cs_time period = scenario->pattern ? scenario->pattern->period : 0;
    if (!(scenario->search.planner
              ? cJSON_AddStringToObject(object, "planner", scenario->search.planner)
              : cJSON_AddNullToObject(object, "planner")))
        return false;
    return (promised == 0 ||
            cJSON_AddNumberToObject(object, "promised_period_s", cs_time_seconds(promised))) &&
           (!scenario->search.planner ||
            cJSON_AddBoolToObject(object, "proven_optimal", scenario->search.optimal)) &&
           (period == 0 || cJSON_AddNumberToObject(object, "period_s", cs_time_seconds(period)));
}

/* Returns the report in the form of cs_comparison_json, so that programs can read both. */
static cJSON *report_json(const cs_scenario *scenario, cs_error *error)
{
    const cs_time bound = scenario->search.bound;
    cJSON *root = cJSON_CreateObject(), *object = cJSON_CreateObject(), *list = NULL;
    if (cJSON_AddStringToObject(root, "name", scenario->name) &&
        (bound == 0 || bound == CS_TIME_MAX ||
         cJSON_AddNumberToObject(root, "lower_bound_s", cs_time_seconds(bound))))
        list = cJSON_AddArrayToObject(root, "planners");
    if (!list || !cJSON_AddItemToArray(list, object))
        cJSON_Delete(object);
    else if (add_search(scenario, object) &&
             cJSON_AddItemToObject(object, "plan", plan_json(scenario, error)))
        return root;
    cJSON_Delete(root);
    return NULL;
}

static cs_status draw(const cs_comparison *comparison, const char *path, cs_error *error)
{
    const cs_planner_outcome *best = &comparison->outcomes[comparison->best];
    const cs_planned *planned = &best->planned;
    if (planned->pattern.period == 0)
        return cs_error_add(error, CS_INVALID, "the plan of %s has no pattern to draw",
                            best->planner->name);
    return cs_pattern_picture(comparison->scenario.name, &comparison->chain, &planned->plan,
                              &planned->pattern, best->uses, path, error);
}

static cs_status save_and_draw(const cs_comparison *comparison, const cs_arguments *arguments,
                               cs_error *error)
{
    const char *output = cs_arguments_value(arguments, "output");
    cs_status status = CS_OK;
    if (output)
        status = save(cs_comparison_plan_json(comparison, comparison->best, error), output, error);
    if (status == CS_OK && cs_arguments_value(arguments, "draw"))
        status = draw(comparison, cs_arguments_value(arguments, "draw"), error);
    return status;
}

static cs_status make(const cs_context *context, const cs_arguments *arguments,
                      cs_comparison *comparison, cs_error *error)
{
    cJSON *document = NULL;
    cs_planner_options chosen;
    CS_TRY(cs_planner_options_read(arguments, &chosen, error));
    cs_status status = cs_document_from(arguments, &document, error);
    const cs_comparison_request request = {.document = document,
                                           .file = arguments->words[0],
                                           .params_file = "--param",
                                           .choices = chosen.choices,
                                           .n = chosen.n,
                                           .progress = context->progress};
    if (status == CS_OK)
        status = cs_comparison_make(&request, comparison, error);
    cJSON_Delete(document);
    cs_planner_options_finish(&chosen);
    return status;
}

/* Compares planners. If none finds a plan, JSON states why; messages tell it to users. */
static cs_status compare(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    cs_comparison comparison = {0};
    CS_TRY(make(context, arguments, &comparison, error));
    if (!comparison.scenario.job.equal_messages)
        cs_log_write(&context->log, CS_LOG_WARNING,
                     "messages between neighbouring devices differ or share links; the planner "
                     "assumes that all are like a single message from device 0 to 1");
    for (uint32_t i = 0; i < comparison.n; i++)
        cs_log_write(&context->log, CS_LOG_INFO, "%s: searched for %.3g s",
                     comparison.outcomes[i].planner->name, comparison.outcomes[i].search_time);
    cs_status status = CS_OK;
    bool json = cs_arguments_flag(arguments, "json");
    bool printed = is_printed(cs_arguments_value(arguments, "output"));
    bool found = comparison.best < comparison.n;
    if (found)
        status = save_and_draw(&comparison, arguments, error);
    if (status == CS_OK && json && (!printed || !found))
        status = cs_print_json(cs_comparison_json(&comparison, error), context->out, error);
    else if (status == CS_OK && found && !printed)
        status = cs_comparison_print(&comparison, context->out, error);
    if (status == CS_OK)
        status = cs_comparison_verdict(&comparison, error);
    cs_comparison_finish(&comparison);
    return status;
}

/* Refuses options that would have no effect. */
static cs_status refuse_options(const cs_arguments *arguments, const char *const *names,
                                const char *with, cs_error *error)
{
    for (; *names; names++) {
        if (cs_arguments_value(arguments, *names))
            return cs_error_add(error, CS_USAGE, "plan: --%s requires %s", *names, with);
    }
    return CS_OK;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    static const char *const of_planners[] = {"param", "draw", NULL};
    static const char *const of_graphs[] = {"bandwidth", "memory", NULL};
    static const char *const of_scenarios[] = {"planner", "param", "draw", "output", "set", NULL};
    if (cs_arguments_value(arguments, "devices")) {
        CS_TRY(refuse_options(arguments, of_scenarios, "a scenario", error));
        return cs_plan_graph(context, arguments, error);
    }
    CS_TRY(refuse_options(arguments, of_graphs, "--devices", error));
    if (cs_output_ends_in(arguments->words[0], ".txt"))
        return cs_error_add(error, CS_USAGE,
                            "plan: a PipeDream profile, \"%s\", needs --devices and --bandwidth",
                            arguments->words[0]);
    CS_TRY(cs_output_check(arguments, "output", cs_endings_of_json, error));
    CS_TRY(cs_output_check(arguments, "draw", cs_endings_of_pictures, error));
    if (cs_arguments_value(arguments, "planner"))
        return compare(context, arguments, error);
    CS_TRY(refuse_options(arguments, of_planners, "--planner", error));
    cs_scenario scenario = {0};
    cs_status status = cs_scenario_from(context, arguments, &scenario, error);
    const char *output = cs_arguments_value(arguments, "output");
    if (status == CS_OK && output)
        status = save(plan_json(&scenario, error), output, error);
    if (status == CS_OK && !is_printed(output) && cs_arguments_flag(arguments, "json"))
        status = cs_print_json(report_json(&scenario, error), context->out, error);
    else if (status == CS_OK && !is_printed(output))
        print_table(&scenario, context->out);
    cs_scenario_finish(&scenario);
    return status;
}

const cs_command cs_command_plan = {
    .name = "plan",
    .words = "SCENARIO.json|GRAPH.txt",
    .min_words = 1,
    .max_words = 1,
    .summary = "show or save the plan: which devices hold which layers",
    .doc =
        "Prints the plan that `sim run` would use, according to the scenario's \"partition\".\n\n"
        "With --planner, planners make plans for the scenario's model, platform and "
        "micro-batches, and are compared by the period that the search expects, the period of "
        "a valid periodic pattern, its gap to a lower bound, and the memory of the fullest "
        "device. They plan for the schedule \"periodic\", whatever schedule the scenario has. "
        "For a single planner, stages and pattern are shown too. -o saves the plan with the "
        "shortest period.",
    .options = options,
    .run = run,
};

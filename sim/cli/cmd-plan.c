#include "sim/base/file.h"
#include "sim/base/units.h"
#include "sim/cli/scenario-option.h"

#include <stdlib.h>
#include <string.h>

static const cs_option options[] = {
    {"output", 'o', "PLAN.json",
     "Save the plan; a scenario takes it as \"partition\": {\"file\": ...}", false, NULL},
    CS_OPTION_SET,
    {"json", 0, NULL, "Print the plan as JSON instead of a table", false, NULL},
    {0},
};

static void print_stage(const cs_scenario *scenario, uint32_t s, FILE *out)
{
    const cs_stage *stage = &scenario->plan.stages[s];
    const cs_layer_sum *sum = &scenario->job.stages[s];
    char forward[CS_UNITS_TEXT_BYTES], backward[CS_UNITS_TEXT_BYTES], weights[CS_UNITS_TEXT_BYTES],
        kept[CS_UNITS_TEXT_BYTES], devices[32], layers[32];
    double backward_time = cs_time_seconds(sum->backward_input + sum->backward_weight);
    cs_units_format(cs_time_seconds(sum->forward), CS_QUANTITY_TIME, 4, forward, sizeof(forward));
    cs_units_format(backward_time, CS_QUANTITY_TIME, 4, backward, sizeof(backward));
    cs_units_format((double)sum->weight_bytes, CS_QUANTITY_BYTES, 4, weights, sizeof(weights));
    cs_units_format((double)sum->kept_bytes, CS_QUANTITY_BYTES, 4, kept, sizeof(kept));
    uint32_t first = scenario->plan.devices[stage->first_device];
    if (stage->n_devices > 1)
        snprintf(devices, sizeof(devices), "%u (%u replicas)", first, stage->n_devices);
    else
        snprintf(devices, sizeof(devices), "%u", first);
    snprintf(layers, sizeof(layers), "%u-%u", stage->first_layer, stage->end_layer - 1);
    const cs_layer *from = &scenario->model.layers[stage->first_layer];
    const cs_layer *to = &scenario->model.layers[stage->end_layer - 1];
    fprintf(out, "%5u  %-10s %-9s %-10s %-10s %-10s %-11s %s%s%s\n", s, devices, layers, forward,
            backward, weights, kept, from->name, from == to ? "" : " ... ",
            from == to ? "" : to->name);
}

static void print_table(const cs_scenario *scenario, FILE *out)
{
    fprintf(out, "%s: %u stage%s of %s; times and activations per micro-batch\n\n", scenario->name,
            scenario->plan.n_stages, scenario->plan.n_stages == 1 ? "" : "s", scenario->model.name);
    fprintf(out, "%5s  %-10s %-9s %-10s %-10s %-10s %-11s %s\n", "stage", "device", "layers",
            "forward", "backward", "weights", "activations", "from ... to");
    for (uint32_t s = 0; s < scenario->plan.n_stages; s++)
        print_stage(scenario, s, out);
}

static cs_status save(const cs_scenario *scenario, const char *path, cs_error *error)
{
    cJSON *root = cs_plan_json(&scenario->plan, &scenario->model);
    char *json = root ? cs_json_print(root) : NULL;
    cJSON_Delete(root);
    if (!json)
        return cs_error_no_memory(error);
    cs_status status = cs_file_write(path, json, strlen(json), error);
    free(json);
    return status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_status status = cs_scenario_from(arguments, &scenario, error);
    const char *output = cs_arguments_value(arguments, "output");
    if (status == CS_OK && output)
        status = save(&scenario, output, error);
    bool printed = output && strcmp(output, "-") == 0; /* standard output has the plan already */
    if (status == CS_OK && !printed && cs_arguments_flag(arguments, "json"))
        status = cs_print_json(cs_plan_json(&scenario.plan, &scenario.model), context->out, error);
    else if (status == CS_OK && !printed)
        print_table(&scenario, context->out);
    cs_scenario_finish(&scenario);
    return status;
}

const cs_command cs_command_plan = {
    .name = "plan",
    .words = "SCENARIO.json",
    .min_words = 1,
    .max_words = 1,
    .summary = "show or save which devices hold which layers",
    .doc = "Makes the plan that `sim run` would use, as the scenario's \"partition\" asks, and "
           "prints it.",
    .options = options,
    .run = run,
};

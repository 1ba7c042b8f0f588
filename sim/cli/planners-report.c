#include "sim/cli/planners-report.h"

#include "schedules/plan/pattern-rows.h"
#include "sim/base/units.h"
#include "sim/run/print/wrap.h"

#include <math.h>
#include <string.h>

typedef cs_units_value text;

static text time_text(cs_time time)
{
    return time > 0 ? cs_units_text(cs_time_seconds(time), CS_QUANTITY_TIME, 5) : (text){"-"};
}

static text bytes_text(int64_t bytes)
{
    return bytes < INT64_MAX ? cs_units_text((double)bytes, CS_QUANTITY_BYTES, 4)
                             : (text){"unlimited"};
}

/* A bound beyond all times says that nothing fits. */
static bool is_bounded(const cs_comparison *c)
{
    return c->bound < CS_TIME_MAX;
}

static text bound_text(const cs_comparison *c)
{
    return is_bounded(c) ? time_text(c->bound) : (text){"nothing fits"};
}

static bool has_pattern(const cs_planner_outcome *outcome)
{
    return outcome->status == CS_OK && outcome->planned.pattern.period > 0;
}

static double gap(const cs_comparison *c, const cs_planner_outcome *outcome)
{
    return (double)outcome->planned.pattern.period / (double)c->bound - 1;
}

static double throughput(const cs_comparison *c, const cs_planner_outcome *outcome)
{
    return c->scenario.job.micro_samples / cs_time_seconds(outcome->planned.pattern.period);
}

static int64_t fullest(const cs_comparison *c, const cs_planner_outcome *outcome)
{
    int64_t most = 0;
    for (uint32_t d = 0; d < c->chain.n_devices; d++)
        most = outcome->uses[d].peak > most ? outcome->uses[d].peak : most;
    return most;
}

/* The schedule whose patterns planners make, whatever the scenario's is. */
static const char planned_schedule[] = "periodic";

/* ---- for people ---- */

static void print_head(const cs_comparison *c, FILE *out)
{
    const cs_scenario *scenario = &c->scenario;
    const text bandwidth = isfinite(c->chain.bandwidth)
                               ? cs_units_text(c->chain.bandwidth, CS_QUANTITY_BANDWIDTH, 4)
                               : (text){"unlimited"};
    char workspace[64] = "";
    int64_t set_aside = scenario->job.memory - c->chain.memory;
    if (set_aside > 0)
        snprintf(workspace, sizeof(workspace), " (%s of it workspace)", bytes_text(set_aside).s);
    fprintf(out, "%s: %u layers of %s on %u device%s; memory %s%s, bandwidth %s\n", scenario->name,
            c->chain.n_layers, scenario->model->name, c->chain.n_devices,
            c->chain.n_devices == 1 ? "" : "s", bytes_text(scenario->job.memory).s, workspace,
            bandwidth.s);
    fprintf(out, "micro-batches of %u, kept %s, weights %g times, %s update%s\n",
            scenario->job.micro_samples, cs_kept_names[c->rules.kept], c->rules.weight_copies,
            c->rules.count_update ? "with" : "without",
            c->rules.count_workspace ? "" : ", without workspace");
    if (strcmp(scenario->schedule->name, planned_schedule) == 0)
        fprintf(out, "schedule: %s, the scenario's own\n\n", planned_schedule);
    else
        fprintf(out, "schedule: %s; these figures are not those of the scenario's schedule, %s\n\n",
                planned_schedule, scenario->schedule->name);
    fprintf(out, "%-20s %6s  %-10s  %-10s  %8s  %-11s  %s\n", "planner", "stages", "promised",
            "period", "gap", "peak memory", "samples/s");
}

static void print_outcome(const cs_comparison *c, const cs_planner_outcome *outcome, FILE *out)
{
    char gap_text[32] = "-", rate[32] = "-";
    text peak = {"-"};
    if (outcome->status != CS_OK) {
        fprintf(out, "%-20s ", outcome->planner->name);
        cs_wrap(out, 21, 21, CS_WRAP_REPORT, outcome->error->text);
        return;
    }
    if (has_pattern(outcome)) {
        peak = bytes_text(fullest(c, outcome));
        snprintf(rate, sizeof(rate), "%.5g", throughput(c, outcome));
        snprintf(gap_text, sizeof(gap_text), "%.2f %%", 100 * gap(c, outcome));
    }
    fprintf(out, "%-20s %6u  %-10s  %-10s  %8s  %-11s  %s\n", outcome->planner->name,
            outcome->planned.plan.n_stages, time_text(outcome->planned.promised).s,
            time_text(outcome->planned.pattern.period).s, gap_text, peak.s, rate);
}

static void print_devices(const cs_plan *plan, const cs_stage *stage, char *line, size_t size)
{
    size_t used = 0;
    for (uint32_t d = 0; d < stage->n_devices && used + 16 < size; d++)
        used += (size_t)snprintf(line + used, size - used, "%s%u", d > 0 ? "," : "",
                                 plan->devices[stage->first_device + d]);
    if (used + 16 >= size)
        snprintf(line + used, size - used, "...");
}

static void print_stages(const cs_comparison *c, const cs_plan *plan, FILE *out)
{
    fprintf(out, "\n%5s  %-11s %-9s %-10s %-10s  %s\n", "stage", "device", "layers", "forward",
            "backward", "from ... to");
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const cs_stage *at = &plan->stages[s];
        uint32_t first = at->first_layer, last = at->end_layer - 1;
        char devices[64], layers[32];
        print_devices(plan, at, devices, sizeof(devices));
        snprintf(layers, sizeof(layers), "%u-%u", first, last);
        fprintf(out, "%5u  %-11s %-9s %-10s %-10s  %s%s%s\n", s, devices, layers,
                time_text(cs_chain_forward(&c->chain, first, last + 1)).s,
                time_text(cs_chain_backward(&c->chain, first, last + 1)).s,
                c->scenario.model->layers[first].name, first == last ? "" : " ... ",
                first == last ? "" : c->scenario.model->layers[last].name);
    }
}

cs_status cs_comparison_print(const cs_comparison *c, FILE *out, cs_error *error)
{
    print_head(c, out);
    for (uint32_t i = 0; i < c->n; i++)
        print_outcome(c, &c->outcomes[i], out);
    fprintf(out, "%-20s %6s  %-10s  %s\n", "lower bound", "", "", bound_text(c).s);
    if (c->n > 1)
        return CS_OK;
    print_stages(c, &c->outcomes[0].planned.plan, out);
    const cs_planner_outcome *only = &c->outcomes[0];
    if (!has_pattern(only))
        return CS_OK;
    const cs_planned *planned = &only->planned;
    fputc('\n', out);
    cs_pattern_print_table(&c->chain, &planned->plan, &planned->pattern, only->uses, out);
    fputc('\n', out);
    return cs_pattern_print_gantt(&c->chain, &planned->plan, &planned->pattern, out, error);
}

/* ---- for programs ---- */

static bool add_devices(const cs_comparison *c, const cs_planner_outcome *outcome, cJSON *object)
{
    cJSON *list = cJSON_AddArrayToObject(object, "devices");
    for (uint32_t d = 0; list && d < c->chain.n_devices; d++) {
        const cs_pattern_use *use = &outcome->uses[d];
        double busy = (double)use->busy / (double)outcome->planned.pattern.period;
        cJSON *one = cs_json_add_item(list);
        if (!cJSON_AddNumberToObject(one, "device", d) ||
            !cJSON_AddNumberToObject(one, "peak_memory_bytes", (double)use->peak) ||
            !cJSON_AddNumberToObject(one, "fixed_memory_bytes", (double)use->fixed) ||
            !cJSON_AddNumberToObject(one, "busy_fraction", busy))
            return false;
    }
    return list != NULL;
}

static bool add_pattern(const cs_comparison *c, const cs_planner_outcome *outcome, cJSON *object)
{
    cs_time period = outcome->planned.pattern.period;
    return cJSON_AddNumberToObject(object, "period_s", cs_time_seconds(period)) &&
           cJSON_AddNumberToObject(object, "throughput_samples_per_s", throughput(c, outcome)) &&
           cJSON_AddNumberToObject(object, "gap_fraction", gap(c, outcome)) &&
           add_devices(c, outcome, object);
}

static bool add_outcome(const cs_comparison *c, uint32_t i, cJSON *list, cs_error *error)
{
    const cs_planner_outcome *outcome = &c->outcomes[i];
    const cs_planned *planned = &outcome->planned;
    cJSON *object = cs_json_add_item(list);
    if (!cJSON_AddStringToObject(object, "planner", outcome->planner->name) ||
        !cJSON_AddNumberToObject(object, "search_time_s", outcome->search_time))
        return false;
    if (outcome->status != CS_OK)
        return cJSON_AddStringToObject(object, "error", outcome->error->text);
    return (planned->promised == 0 ||
            cJSON_AddNumberToObject(object, "promised_period_s",
                                    cs_time_seconds(planned->promised))) &&
           cJSON_AddBoolToObject(object, "proven_optimal", planned->optimal) &&
           (!has_pattern(outcome) || add_pattern(c, outcome, object)) &&
           cJSON_AddItemToObject(object, "plan", cs_comparison_plan_json(c, i, error));
}

cJSON *cs_comparison_json(const cs_comparison *c, cs_error *error)
{
    cJSON *root = cJSON_CreateObject(), *list = NULL;
    if (cJSON_AddStringToObject(root, "name", c->scenario.name) &&
        cJSON_AddStringToObject(root, "schedule", planned_schedule) &&
        cJSON_AddStringToObject(root, "scenario_schedule", c->scenario.schedule->name) &&
        (!is_bounded(c) ||
         cJSON_AddNumberToObject(root, "lower_bound_s", cs_time_seconds(c->bound))))
        list = cJSON_AddArrayToObject(root, "planners");
    for (uint32_t i = 0; list && i < c->n; i++)
        list = add_outcome(c, i, list, error) ? list : NULL;
    if (list)
        return root;
    cJSON_Delete(root);
    return NULL;
}

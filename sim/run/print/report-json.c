#include "sim/run/print/report.h"

#include "sim/base/json.h"
#include "sim/model/op-shape.h"
#include "sim/run/figures.h"
#include "sim/run/print/capacity.h"
#include "sim/run/print/mesh-report.h"
#include "sim/run/print/origins-report.h"
#include "sim/run/print/report-digest.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static double seconds(cs_time time)
{
    return cs_time_seconds(time);
}

/* Adds null if the time is not known. */
static bool add_wait(cJSON *object, const char *key, cs_time time, bool known)
{
    return cs_json_add_number(object, key, known ? seconds(time) : (double)NAN);
}

static bool add_time_use(cJSON *object, const cs_time_use *use, bool known)
{
    cJSON *compute = cJSON_AddObjectToObject(object, "compute_s");
    for (uint32_t kind = 0; compute && kind < CS_N_KINDS; kind++) {
        if (cs_kind_group_of(kind) == CS_GROUP_COMPUTE &&
            !cs_json_add_number(compute, cs_kind_name(kind), seconds(use->compute[kind])))
            return false;
    }
    return compute && add_wait(object, "communication_s", use->communication, known) &&
           add_wait(object, "dependency_s", use->dependency, known) &&
           add_wait(object, "flush_s", use->flush, known);
}

static double share(double part, double of)
{
    return of > 0 ? part / of : (double)NAN;
}

static bool add_overlap(cJSON *object, const cs_time_use *use, bool known)
{
    return add_wait(object, "exposed_messages_s", use->communication - use->collectives, known) &&
           add_wait(object, "exposed_collectives_s", use->collectives, known) &&
           add_wait(object, "communication_active_s", use->active, known) &&
           cs_json_add_number(object, "communication_hidden_fraction",
                              share(seconds(use->hidden), seconds(use->active)));
}

static bool add_categories(cJSON *object, const char *key, const int64_t *bytes)
{
    cJSON *categories = cJSON_AddObjectToObject(object, key);
    for (uint32_t c = 0; categories && c < CS_N_CATEGORIES; c++) {
        if (!cs_json_add_number(categories, cs_category_name(c), (double)bytes[c]))
            return false;
    }
    return categories != NULL;
}

static bool add_oom(cJSON *object, const cs_graph *graph, const cs_device_record *record)
{
    char task[96] = "resident memory";
    if (!record->out_of_memory)
        return cJSON_AddNullToObject(object, "out_of_memory") != NULL;
    if (record->oom_task != CS_NONE && !graph->tasks)
        snprintf(task, sizeof(task), "task %" PRIu32, record->oom_task);
    else if (record->oom_task != CS_NONE)
        cs_graph_describe(graph, record->oom_task, task, sizeof(task));
    cJSON *oom = cJSON_AddObjectToObject(object, "out_of_memory");
    return oom && cs_json_add_number(oom, "time_s", seconds(record->oom_time)) &&
           cJSON_AddStringToObject(oom, "task", task) &&
           add_categories(oom, "memory_bytes", record->at_oom);
}

static bool add_of_device(cJSON *object, const char *key, const cs_outcome *outcome)
{
    return cs_json_add_number(object, key, cs_run_figure_find(key)->get(outcome));
}

/* Adds the results of the allocator, if any. */
static bool add_allocations(cJSON *object, const cs_outcome *outcome)
{
    const cs_allocations *all = &outcome->simulation->allocations;
    if (all->n_devices == 0)
        return true;
    const cs_caching_stats *stats = &all->devices[outcome->device].stats;
    const cs_failed_allocation *failure = &all->devices[outcome->device].failure;
    cJSON *made = cJSON_AddObjectToObject(object, "allocator");
    if (!made || !add_of_device(made, "peak_allocated_bytes", outcome) ||
        !add_of_device(made, "peak_reserved_bytes", outcome) ||
        !add_of_device(made, "fragmentation_fraction", outcome) ||
        !cs_json_add_number(made, "retries", (double)stats->n_retries) ||
        !cs_json_add_number(made, "failures", (double)stats->n_failures))
        return false;
    if (!failure->failed)
        return cJSON_AddNullToObject(made, "failed") != NULL;
    cJSON *failed = cJSON_AddObjectToObject(made, "failed");
    return failed && cs_json_add_number(failed, "time_s", seconds(failure->time)) &&
           cs_json_add_number(failed, "bytes", (double)failure->bytes) &&
           cs_json_add_number(failed, "allocated_bytes", (double)failure->allocated) &&
           cs_json_add_number(failed, "reserved_bytes", (double)failure->reserved) &&
           cs_json_add_number(failed, "free_bytes", (double)failure->free) &&
           cs_json_add_number(failed, "largest_free_bytes", (double)failure->largest);
}

static bool add_device(cJSON *list, const cs_scenario *scenario, const cs_simulation *simulation,
                       uint32_t device)
{
    const cs_device_record *record = &simulation->trace.devices[device];
    const cs_time_use *use = &simulation->analysis.devices[device];
    const cs_outcome outcome = {scenario, simulation, device};
    cJSON *object = cs_json_add_item(list);
    double capacity = record->capacity == INT64_MAX ? INFINITY : (double)record->capacity;
    return cs_json_add_number(object, "device", device) &&
           cs_json_add_number(object, "capacity_bytes", capacity) &&
           cs_json_add_number(object, "reserved_bytes",
                              (double)scenario->platform.devices[device].reserve) &&
           add_of_device(object, "peak_memory_bytes", &outcome) &&
           cs_json_add_number(object, "peak_time_s", seconds(record->peak_time)) &&
           add_allocations(object, &outcome) &&
           add_categories(object, "at_peak_bytes", record->at_peak) &&
           add_categories(object, "category_peak_bytes", record->category_peak) &&
           add_of_device(object, "peak_activation_bytes", &outcome) &&
           add_time_use(object, use, !simulation->without_tasks) &&
           add_overlap(object, use, !simulation->without_tasks) &&
           cs_json_add_number(object, "slowed_by_communication_s", seconds(record->slowed)) &&
           add_oom(object, &simulation->graph, record);
}

static bool add_devices(cJSON *root, const cs_scenario *scenario, const cs_simulation *simulation)
{
    cJSON *list = cJSON_AddArrayToObject(root, "devices");
    bool done = list;
    for (uint32_t d = 0; done && d < simulation->trace.n_devices; d++)
        if (cs_graph_has(&simulation->graph, d))
            done = add_device(list, scenario, simulation, d);
    return done;
}

/* Adds, per device, the device that was simulated on its behalf; null if all were simulated. */
static bool add_fold(cJSON *root, const cs_graph *graph)
{
    if (!graph->stands_for)
        return cJSON_AddNullToObject(root, "simulated_as") != NULL;
    cJSON *list = cJSON_AddArrayToObject(root, "simulated_as");
    for (uint32_t d = 0; list && d < graph->n_devices; d++)
        if (!cJSON_AddItemToArray(list, cJSON_CreateNumber(graph->stands_for[d])))
            return false;
    return list != NULL;
}

static bool add_links(cJSON *root, const cs_trace *trace)
{
    cJSON *list = cJSON_AddArrayToObject(root, "links");
    for (uint32_t l = 0; list && l < trace->n_links; l++) {
        const cs_link_record *record = &trace->links[l];
        double capacity = record->bandwidth * seconds(trace->makespan);
        cJSON *object = cs_json_add_item(list);
        if (!cJSON_AddStringToObject(object, "name", record->name) ||
            !cs_json_add_number(object, "bandwidth_bytes_per_s", record->bandwidth) ||
            !cs_json_add_number(object, "carried_bytes", (double)record->bytes) ||
            !cs_json_add_number(object, "utilisation_fraction",
                                capacity > 0 ? (double)record->bytes / capacity : 0))
            return false;
    }
    return list != NULL;
}

/* Adds how links are shared; null without links. */
static bool add_sharing(cJSON *root, const cs_platform *platform)
{
    char text[CS_SHARING_TEXT_BYTES];
    return cs_json_add_text(root, "sharing", cs_sharing_text(platform, text));
}

/* Adds {"ring LL": 20, ...}, if NCCL's model was used. */
static bool add_choices(cJSON *object, const cs_lower_report *lowering)
{
    cJSON *choices = NULL;
    char name[32];
    for (int a = 0; a < CS_NCCL_ALGORITHMS; a++)
        for (int p = 0; p < CS_NCCL_PROTOCOLS; p++) {
            if (lowering->nccl[a][p] == 0)
                continue;
            snprintf(name, sizeof(name), "%s %s", cs_nccl_algorithm_names[a],
                     cs_nccl_protocol_names[p]);
            choices = choices ? choices : cJSON_AddObjectToObject(object, "nccl");
            if (!choices || !cs_json_add_number(choices, name, (double)lowering->nccl[a][p]))
                return false;
        }
    return true;
}

static bool add_collectives(cJSON *root, const cs_lower_report *lowering)
{
    if (lowering->n_collectives == 0)
        return cJSON_AddNullToObject(root, "collectives") != NULL;
    cJSON *object = cJSON_AddObjectToObject(root, "collectives");
    return object && cs_json_add_number(object, "number", (double)lowering->n_collectives) &&
           cJSON_AddStringToObject(object, "algorithms", lowering->algorithms) &&
           cJSON_AddStringToObject(object, "fidelity", cs_fidelity_name(lowering->fidelity)) &&
           cs_json_add_number(object, "messages", (double)lowering->n_flows) &&
           add_choices(object, lowering);
}

static bool add_form(cJSON *list, const cs_simulation *simulation, const cs_form *form)
{
    double unit = cs_form_unit(form);
    double closed = cs_form_value(form), simulated = cs_simulation_figure(simulation, form);
    cJSON *object = cs_json_add_item(list);
    if (form->device != CS_NONE && !cs_json_add_number(object, "device", form->device))
        return false;
    return cJSON_AddStringToObject(object, "figure", cs_figure_key(form->figure)) &&
           cs_json_add_number(object, "closed_form", closed / unit) &&
           cs_json_add_number(object, "simulated", simulated / unit) &&
           cs_json_add_number(object, "difference", (simulated - closed) / unit) &&
           cJSON_AddBoolToObject(object, "applies", form->applies) &&
           cJSON_AddBoolToObject(object, "promised", cs_form_is_promised(form)) &&
           cJSON_AddStringToObject(object, "formula", form->formula) &&
           cJSON_AddStringToObject(object, "assumes", form->assumes) &&
           cJSON_AddStringToObject(object, "source", form->source);
}

static bool add_forms(cJSON *root, const cs_simulation *simulation)
{
    cJSON *list = cJSON_AddArrayToObject(root, "closed_forms");
    for (uint32_t f = 0; list && f < simulation->forms.n; f++) {
        if (!add_form(list, simulation, &simulation->forms.forms[f]))
            return false;
    }
    return list != NULL;
}

static bool add_critical_path(cJSON *root, const cs_simulation *simulation)
{
    const cs_analysis *analysis = &simulation->analysis;
    cJSON *path = cJSON_AddObjectToObject(root, "critical_path");
    return path && cs_json_add_number(path, "steps", analysis->n_steps) &&
           add_time_use(path, &analysis->path, true);
}

/* ---- staleness ---- */

/* Adds null for a missing value. */
static bool add_optional(cJSON *object, const char *key, int64_t value)
{
    return cs_json_add_number(object, key,
                              value == CS_STALENESS_NONE ? (double)NAN : (double)value);
}

static bool add_steady(cJSON *object, const char *key, const cs_steady *steady)
{
    return add_optional(object, key, steady->steady ? steady->value : CS_STALENESS_NONE);
}

static bool add_weights(cJSON *root, const cs_simulation *simulation)
{
    const cs_staleness *staleness = &simulation->analysis.staleness;
    cJSON *list = cJSON_AddArrayToObject(root, "weights");
    for (uint32_t s = 0; list && s < staleness->n_slots; s++) {
        const cs_slot_staleness *slot = &staleness->slots[s];
        cJSON *object = cs_json_add_item(list);
        if (!cs_json_add_number(object, "stage", slot->stage) ||
            !cs_json_add_number(object, "device", slot->device) ||
            !cs_json_add_number(object, "versions_made", slot->versions_made) ||
            !cs_json_add_number(object, "peak_versions", slot->peak_versions) ||
            !add_steady(object, "gradient_delay_steady", &slot->gradient_delay) ||
            !add_optional(object, "gradient_delay_max", slot->max_gradient_delay) ||
            !cs_json_add_number(object, "gradient_delay_mean", cs_staleness_mean_of_slot(slot)) ||
            !add_steady(object, "forward_delay_steady", &slot->forward_delay))
            return false;
    }
    return list != NULL;
}

/* Adds a list per sequence, with its mini-batches, counted from 1 as in the paper. */
static bool add_sequences(cJSON *root, const char *key, const cs_staleness *staleness, bool both)
{
    uint32_t n = both ? staleness->n_by_both : staleness->n_by_backward;
    cJSON *list = cJSON_AddArrayToObject(root, key);
    cJSON **members = calloc((size_t)n + 1, sizeof(cJSON *));
    bool complete = list && members;
    for (uint32_t i = 0; complete && i < n; i++) {
        members[i] = cJSON_CreateArray();
        complete = members[i] && cJSON_AddItemToArray(list, members[i]);
    }
    for (uint32_t b = 0; complete && b < staleness->n_batches; b++) {
        const cs_batch_staleness *batch = &staleness->batches[b];
        complete = cJSON_AddItemToArray(members[both ? batch->by_both : batch->by_backward],
                                        cJSON_CreateNumber(b + 1.0));
    }
    free(members);
    return complete;
}

static bool add_differences(cJSON *root, const cs_staleness *staleness)
{
    cJSON *list = cJSON_AddArrayToObject(root, "version_difference");
    for (uint32_t b = 0; list && b < staleness->n_batches; b++) {
        int64_t value = staleness->batches[b].version_difference;
        if (!cJSON_AddItemToArray(list, value == CS_STALENESS_NONE
                                            ? cJSON_CreateNull()
                                            : cJSON_CreateNumber((double)value)))
            return false;
    }
    return list != NULL;
}

/* Adds the version difference if the schedule states it. The first form is the paper's. */
static bool add_difference(cJSON *root, const cs_simulation *simulation)
{
    const cs_staleness *staleness = &simulation->analysis.staleness;
    const cs_steady *steady = &staleness->version_difference;
    const cs_forms *forms = &simulation->forms;
    uint32_t f = 0;
    while (f < forms->n && forms->forms[f].figure != CS_FIGURE_VERSION_DIFFERENCE)
        f++;
    if (f == forms->n)
        return true;
    const cs_form *form = &forms->forms[f];
    return add_differences(root, staleness) &&
           add_steady(root, "version_difference_steady", steady) &&
           cJSON_AddBoolToObject(root, "version_difference_is_steady", steady->steady) &&
           cs_json_add_number(root, "version_difference_formula", (double)form->exact) &&
           cJSON_AddBoolToObject(root, "version_difference_agrees",
                                 steady->steady && steady->value == form->exact) &&
           add_sequences(root, "sequences_by_backward", staleness, false) &&
           add_sequences(root, "sequences_by_forward_and_backward", staleness, true);
}

/* ---- costs ---- */

static bool add_missing(cJSON *list, const cs_missing_cost *missing)
{
    cJSON *object = cs_json_add_item(list);
    cJSON *passes = object && cJSON_AddStringToObject(object, "op", missing->op) &&
                            cs_json_add_number(object, "times", missing->count)
                        ? cJSON_AddArrayToObject(object, "passes")
                        : NULL;
    bool done = passes != NULL;
    for (uint32_t pass = 0; done && pass < CS_N_PASSES; pass++)
        if (missing->passes & 1u << pass)
            done = cJSON_AddItemToArray(passes, cJSON_CreateString(cs_pass_names[pass]));
    return done;
}

static bool add_unmeasured(cJSON *list, const cs_unmeasured *at)
{
    cJSON *object = cs_json_add_item(list);
    return object && cJSON_AddStringToObject(object, "collective", cs_kind_name(at->kind)) &&
           cJSON_AddStringToObject(object, "level", at->network ? "network" : "node") &&
           cs_json_add_number(object, "ranks", at->ranks) &&
           cs_json_add_number(object, "times", (double)at->count);
}

/* Adds nothing if the scenario names no costs. */
static bool add_costs(cJSON *root, const cs_scenario *scenario, const cs_lower_report *lowering)
{
    const cs_costs_use *use = &scenario->costs;
    if (!use->given)
        return true;
    cJSON *costs = cJSON_AddObjectToObject(root, "costs");
    bool done =
        costs && cJSON_AddStringToObject(costs, "files", use->files) &&
        cJSON_AddStringToObject(costs, "devices", use->devices) &&
        cs_json_add_number(costs, "measured_times", use->n_measured) &&
        cs_json_add_number(costs, "estimated_times", use->n_estimated) &&
        cs_json_add_number(costs, "measured_collectives", (double)lowering->n_measured) &&
        cs_json_add_number(costs, "extrapolated_collectives", (double)lowering->n_extrapolated);
    cJSON *warnings = done ? cJSON_AddArrayToObject(costs, "warnings") : NULL;
    done = warnings != NULL;
    for (uint32_t i = 0; done && i < use->n_warnings; i++)
        done = cJSON_AddItemToArray(warnings, cJSON_CreateString(use->warnings[i]));
    cJSON *missing = done ? cJSON_AddArrayToObject(costs, "missing") : NULL;
    cJSON *unmeasured = missing ? cJSON_AddArrayToObject(costs, "missing_collectives") : NULL;
    done = unmeasured != NULL;
    for (uint32_t i = 0; done && i < use->n_missing; i++)
        done = add_missing(missing, &use->missing[i]);
    for (uint32_t i = 0; done && i < lowering->n_unmeasured; i++)
        done = add_unmeasured(unmeasured, &lowering->unmeasured[i]);
    return done;
}

/* Adds the interpretation of the schedule, if there are several. */
static bool add_reading(cJSON *root, const cs_scenario *scenario)
{
    const cs_schedule *schedule = scenario->schedule;
    return !schedule->reading ||
           cJSON_AddStringToObject(root, "schedule_reading", schedule->reading(scenario->params));
}

/* Adds the metrics of one scope that the run has. */
static bool add_figures(cJSON *root, const cs_outcome *outcome, cs_scope scope)
{
    bool done = true;
    for (const cs_run_figure *figure = cs_run_figures; figure->key && done; figure++) {
        if (figure->scope != scope || !cs_run_figure_given(figure, outcome))
            continue;
        const double value = figure->get(outcome);
        done = figure->unit == CS_UNIT_BOOLEAN
                   ? cJSON_AddBoolToObject(root, figure->key, value != 0) != NULL
                   : cs_json_add_number(root, figure->key, value);
    }
    return done;
}

static bool add_hash(cJSON *root, const cs_simulation *simulation)
{
    char hash[17];
    snprintf(hash, sizeof(hash), "%016" PRIx64, simulation->hash);
    return cJSON_AddStringToObject(root, "hash", hash) != NULL;
}

/* Adds everything that does not depend on the number of devices. */
static bool add_of_run(cJSON *root, const cs_scenario *scenario, const cs_simulation *simulation)
{
    const cs_outcome outcome = {.scenario = scenario, .simulation = simulation};
    return cJSON_AddStringToObject(root, "name", scenario->name) &&
           cJSON_AddStringToObject(root, "schedule", scenario->schedule->name) &&
           add_reading(root, scenario) &&
           cJSON_AddStringToObject(root, "topology", scenario->platform.topology) &&
           cs_mesh_report_json(scenario, root) &&
           cs_origins_report_json(&scenario->origins, root) &&
           add_figures(root, &outcome, CS_SCOPE_SCENARIO) &&
           add_sharing(root, &scenario->platform) && add_collectives(root, &simulation->lowering) &&
           add_figures(root, &outcome, CS_SCOPE_RUN) && add_hash(root, simulation) &&
           add_figures(root, &outcome, CS_SCOPE_PLAN);
}

/* Adds null if individual tasks are not known. */
static bool add_of_tasks(cJSON *root, const cs_simulation *simulation, const char *key,
                         bool (*add)(cJSON *root, const cs_simulation *simulation))
{
    return simulation->without_tasks ? cJSON_AddNullToObject(root, key) != NULL
                                     : add(root, simulation);
}

static bool add_fit(cJSON *root, const cs_memory_fit *fit)
{
    cJSON *made = cJSON_AddObjectToObject(root, "fits");
    const bool limited = fit->capacity < INT64_MAX;
    return made && cs_json_add_number(made, "probability", fit->probability) &&
           cs_json_add_number(made, "device", limited ? fit->device : (double)NAN) &&
           cs_json_add_number(made, "needed_bytes", limited ? (double)fit->needed : (double)NAN) &&
           cs_json_add_number(made, "capacity_bytes",
                              limited ? (double)fit->capacity : (double)NAN) &&
           cs_json_add_number(made, "spread_bytes", limited ? (double)fit->spread : (double)NAN);
}

/* Adds whether the run fits, and the free share of the capacity; null if memory is unlimited. */
static bool add_verdict(cJSON *root, const cs_simulation *simulation)
{
    uint32_t device;
    int64_t capacity;
    const int64_t left = cs_capacity_left(simulation, &device, &capacity);
    return cJSON_AddStringToObject(root, "memory", cs_memory_fit_verdict(&simulation->fit)) &&
           cs_json_add_number(root, "memory_free_fraction",
                              capacity < INT64_MAX ? (double)left / (double)capacity
                                                   : (double)NAN) &&
           add_fit(root, &simulation->fit);
}

static cJSON *make_report(const cs_scenario *scenario, const cs_simulation *simulation, bool whole)
{
    cJSON *root = cJSON_CreateObject();
    bool done = root && add_of_run(root, scenario, simulation) && add_verdict(root, simulation);
    if (done && whole)
        done = add_forms(root, simulation) &&
               add_of_tasks(root, simulation, "critical_path", add_critical_path) &&
               add_devices(root, scenario, simulation) && add_fold(root, &simulation->graph) &&
               add_links(root, &simulation->trace) &&
               add_of_tasks(root, simulation, "weights", add_weights) &&
               add_difference(root, simulation) && add_costs(root, scenario, &simulation->lowering);
    else if (done)
        done = cs_report_digest(root, scenario, simulation) && add_difference(root, simulation);
    if (done)
        return root;
    cJSON_Delete(root);
    return NULL;
}

cJSON *cs_report_json(const cs_scenario *scenario, const cs_simulation *simulation)
{
    return make_report(scenario, simulation, true);
}

cJSON *cs_report_json_figures(const cs_scenario *scenario, const cs_simulation *simulation)
{
    return make_report(scenario, simulation, false);
}

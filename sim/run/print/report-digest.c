#include "sim/run/print/report-digest.h"

#include "sim/base/json.h"
#include "sim/base/vector.h"
#include "sim/run/figures.h"

#include <math.h>
#include <stdlib.h>

static double most_over_devices(const cs_scenario *scenario, const cs_simulation *simulation,
                                const char *key)
{
    const cs_run_figure *figure = cs_run_figure_find(key);
    double most = -INFINITY;
    for (uint32_t d = 0; d < simulation->trace.n_devices; d++) {
        const cs_outcome outcome = {scenario, simulation, d};
        if (cs_graph_has(&simulation->graph, d))
            most = fmax(most, figure->get(&outcome));
    }
    return most;
}

static double least_capacity(const cs_simulation *simulation)
{
    double least = INFINITY;
    for (uint32_t d = 0; d < simulation->trace.n_devices; d++) {
        const int64_t capacity = simulation->trace.devices[d].capacity;
        if (cs_graph_has(&simulation->graph, d) && capacity != INT64_MAX)
            least = fmin(least, (double)capacity);
    }
    return least;
}

static bool add_most(cJSON *object, const char *const *keys, const cs_scenario *scenario,
                     const cs_simulation *simulation)
{
    bool done = object != NULL;
    for (; *keys && done; keys++)
        done = cs_json_add_number(object, *keys, most_over_devices(scenario, simulation, *keys));
    return done;
}

static bool add_devices(cJSON *root, const cs_scenario *scenario, const cs_simulation *simulation)
{
    static const char *const keys[] = {"peak_memory_bytes", "peak_activation_bytes", NULL};
    static const char *const of_allocator[] = {"peak_allocated_bytes", "peak_reserved_bytes",
                                               "fragmentation_fraction", NULL};
    cJSON *object = cs_json_add_item(cJSON_AddArrayToObject(root, "devices"));
    return object && cs_json_add_number(object, "capacity_bytes", least_capacity(simulation)) &&
           add_most(object, keys, scenario, simulation) &&
           (simulation->allocations.n_devices == 0 ||
            add_most(cJSON_AddObjectToObject(object, "allocator"), of_allocator, scenario,
                     simulation));
}

/* ---- closed forms ---- */

/* Merged forms about a metric: the `rank`-th form of each device, or of the run. */
typedef struct joined {
    cs_figure figure;
    uint32_t rank;
    double closed, difference;
    bool applies, promised;
} joined;

typedef struct digest {
    joined *all; /* in order of first occurrence */
    uint32_t n, capacity;
    uint32_t *stated; /* number of forms so far, per metric and device, and for the run */
} digest;

static joined *join_with(digest *of, cs_figure figure, uint32_t rank)
{
    for (uint32_t i = 0; i < of->n; i++)
        if (of->all[i].figure == figure && of->all[i].rank == rank)
            return &of->all[i];
    if (!cs_vector_reserve((void **)&of->all, &of->capacity, of->n + UINT64_C(1), sizeof(*of->all)))
        return NULL;
    of->all[of->n] = (joined){figure, rank, NAN, NAN, true, true};
    return &of->all[of->n++];
}

static bool join(digest *of, const cs_simulation *simulation, const cs_form *form)
{
    const uint32_t n_devices = simulation->trace.n_devices;
    const uint32_t place = form->device == CS_NONE ? n_devices : form->device;
    const uint32_t rank = of->stated[form->figure * (n_devices + (size_t)1) + place]++;
    const double unit = cs_form_unit(form), closed = cs_form_value(form);
    const double difference = (cs_simulation_figure(simulation, form) - closed) / unit;
    joined *with = join_with(of, form->figure, rank);
    if (!with)
        return false;
    with->closed = fmax(with->closed, closed / unit);
    if (isnan(with->difference) || fabs(difference) > fabs(with->difference))
        with->difference = difference;
    with->applies &= form->applies;
    with->promised &= cs_form_is_promised(form);
    return true;
}

static bool add_joined(cJSON *list, const joined *form)
{
    cJSON *object = cs_json_add_item(list);
    return object && cJSON_AddStringToObject(object, "figure", cs_figure_key(form->figure)) &&
           cs_json_add_number(object, "closed_form", form->closed) &&
           cs_json_add_number(object, "difference", form->difference) &&
           cJSON_AddBoolToObject(object, "applies", form->applies) &&
           cJSON_AddBoolToObject(object, "promised", form->promised);
}

static bool add_forms(cJSON *root, const cs_simulation *simulation)
{
    const size_t places = simulation->trace.n_devices + (size_t)1;
    cJSON *list = cJSON_AddArrayToObject(root, "closed_forms");
    digest of = {.stated = calloc(CS_N_FIGURES * places, sizeof(*of.stated))};
    bool done = list && of.stated;
    for (uint32_t f = 0; f < simulation->forms.n && done; f++)
        done = join(&of, simulation, &simulation->forms.forms[f]);
    for (uint32_t i = 0; i < of.n && done; i++)
        done = add_joined(list, &of.all[i]);
    free(of.all);
    free(of.stated);
    return done;
}

bool cs_report_digest(cJSON *root, const cs_scenario *scenario, const cs_simulation *simulation)
{
    if (!simulation->graph.stands_for && !cJSON_AddNullToObject(root, "simulated_as"))
        return false;
    return add_devices(root, scenario, simulation) && add_forms(root, simulation);
}

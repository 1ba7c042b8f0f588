#include "sim/core/lower/lower.h"

#include "sim/core/lower/alike.h"
#include "sim/core/lower/lower-report.h"
#include "sim/core/lower/replace-collectives.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

typedef struct lowering {
    const cs_graph *from;
    const cs_platform *platform;
    const cs_lower_options *options;
    cs_prices prices;
    cs_way **ways; /* per class: decision for a collective, at its first member; NULL for others */
    bool delayed;  /* whether collectives become delays */
} lowering;

static bool has_collectives(const cs_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        if (cs_kind_group_of(graph->classes[i].kind) == CS_GROUP_COLLECTIVE)
            return true;
    }
    return false;
}

/* Whether the options contain something that only delays can have. */
static bool asks_for_delays(const cs_lower_options *options)
{
    return cs_reached_is_less(&options->reached) || options->start > 0 ||
           options->tensor_overlap > 0 || options->expert_overlap > 0 ||
           options->nccl != CS_NCCL_NONE;
}

static cs_fidelity fidelity_of(const lowering *l, const cs_lower_report *report)
{
    if (l->options->fidelity != CS_FIDELITY_AUTO)
        return (cs_fidelity)l->options->fidelity;
    return l->from->stands_for || asks_for_delays(l->options) ||
                   report->n_flows > l->options->most_flows
               ? CS_FIDELITY_ANALYTIC
               : CS_FIDELITY_FLOW;
}

static cs_status too_large(double tasks, cs_error *error)
{
    return cs_error_add(error, CS_FAILED,
                        "too large to simulate: the collectives take %.2g messages, more than %.2g",
                        tasks, (double)CS_LIST);
}

/* Decides on a class of collectives unless that has been done. */
static cs_status decide_class(lowering *l, uint32_t cls, cs_lower_report *report, cs_error *error)
{
    if (l->ways[cls])
        return CS_OK;
    cs_way *way = l->ways[cls] = calloc(1, sizeof(*way));
    if (!way)
        return cs_error_no_memory(error);
    CS_TRY(cs_way_decide(&l->prices, &l->from->classes[cls], way, error));
    report->one_nic |= way->one_nic;
    return CS_OK;
}

/* ---- what computing hides ---- */

/* Products hide tensor-parallel collectives. Layers of another micro-batch hide messages to
 * experts. */
enum { BY_PRODUCTS, BY_LAYERS, N_HIDERS };

/* Seconds of computing on a device, and seconds of collectives that this computing would hide. */
typedef struct beside {
    double computes, hides[N_HIDERS];
} beside;

static void count_beside(const lowering *l, uint32_t id, beside *sums)
{
    const cs_class *cls = &l->from->classes[id];
    const cs_way *way = l->ways[id];
    const cs_kind_group group = cs_kind_group_of(cls->kind);
    if (group == CS_GROUP_COMPUTE)
        sums[cls->device].computes += cs_time_seconds(cls->duration);
    else if (group == CS_GROUP_COLLECTIVE && way)
        sums[cls->device].hides[way->tensor ? BY_PRODUCTS : BY_LAYERS] +=
            cs_time_seconds(way->hidden);
}

/* Limits overlap: computing cannot hide more communication than it lasts. Ranks wait for the rest,
 * with an equal share for each collective. The device that computes least decides. */
static cs_status bound_overlap(lowering *l, cs_error *error)
{
    const cs_graph *graph = l->from;
    double share[N_HIDERS] = {1, 1};
    beside *sums = calloc((size_t)graph->n_devices + 1, sizeof(*sums));
    if (!sums)
        return cs_error_no_memory(error);
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        const cs_series *series = cls->series > 0 ? &graph->series[cls->series - 1] : NULL;
        if (!series)
            count_beside(l, graph->tasks[task].cls, sums);
        for (uint32_t i = 0; series && i < series->n; i++)
            count_beside(l, graph->parts[series->first + i].cls, sums);
    }
    for (uint32_t d = 0; d < graph->n_devices; d++)
        for (int by = 0; by < N_HIDERS; by++)
            if (sums[d].hides[by] > 0)
                share[by] = fmin(share[by], sums[d].computes / sums[d].hides[by]);
    for (uint32_t i = 0; i < graph->n_classes; i++)
        if (l->ways[i]) {
            const double kept = share[l->ways[i]->tensor ? BY_PRODUCTS : BY_LAYERS];
            const cs_time hidden = (cs_time)((double)l->ways[i]->hidden * kept);
            l->ways[i]->cost += l->ways[i]->hidden - hidden;
            l->ways[i]->hidden = hidden;
        }
    free(sums);
    return CS_OK;
}

static cs_status decide_parts(lowering *l, cs_lower_report *report, cs_error *error)
{
    for (uint32_t i = 0; i < l->from->n_parts; i++) {
        const uint32_t cls = l->from->parts[i].cls;
        if (cs_kind_group_of(l->from->classes[cls].kind) == CS_GROUP_COLLECTIVE)
            CS_TRY(decide_class(l, cls, report, error));
    }
    return CS_OK;
}

/* Decides on every collective that runs, and whether collectives become flows. Counts the flows
 * before making the first one: with a million ranks it would otherwise take hours until ids run
 * out. */
static cs_status decide(lowering *l, cs_lower_report *report, cs_error *error)
{
    cs_status status = decide_parts(l, report, error);
    double n_tasks = l->from->n_tasks;
    for (uint32_t task = 0; task < l->from->n_tasks && status == CS_OK;) {
        const uint32_t cls = l->from->tasks[task].cls;
        if (cs_kind_group_of(l->from->classes[cls].kind) != CS_GROUP_COLLECTIVE) {
            task++;
            continue;
        }
        CS_TRY(decide_class(l, cls, report, error));
        const cs_way *way = l->ways[cls];
        if (way->n_sends >= CS_LIST && !cs_algorithm_is_short(way->algorithm, &way->collective))
            return too_large((double)way->n_sends, error);
        report->n_collectives++;
        n_tasks += (double)way->n_sends + 1;
        report->n_flows += way->n_sends;
        cs_lower_note_algorithm(report, way->algorithm->name);
        task += way->n_members;
    }
    report->fidelity = fidelity_of(l, report);
    l->delayed = report->fidelity != CS_FIDELITY_FLOW;
    assert(l->delayed || l->from->n_series == 0);
    if (!l->delayed && n_tasks >= CS_LIST)
        return too_large(n_tasks, error);
    if (report->fidelity == CS_FIDELITY_ANALYTIC && l->options->measured)
        cs_lower_count_measured(l->from, l->ways, report);
    for (uint32_t i = 0; i < l->from->n_classes && l->delayed && status == CS_OK; i++)
        if (l->ways[i]) {
            status = cs_way_price(&l->prices, l->ways[i], error);
            report->beside |= cs_prices_has_relatives(&l->prices, l->ways[i]->group);
        }
    const bool hides = l->options->tensor_overlap > 0 || l->options->expert_overlap > 0;
    if (l->delayed && hides && status == CS_OK)
        status = bound_overlap(l, error);
    if (l->delayed && l->options->nccl != CS_NCCL_NONE && status == CS_OK)
        cs_lower_count_choices(l->from, l->ways, report);
    return status;
}

cs_status cs_lower_check(const cs_graph *graph, const cs_platform *platform,
                         const cs_lower_options *options, cs_error *error)
{
    cs_status status = CS_OK;
    cs_lower_options named = *options;
    named.chunks = 1; /* chunks do not affect whether it fits, so nothing is priced */
    if (options->algorithm < CS_FIRST_ALGORITHM && options->gradients <= CS_FIRST_ALGORITHM)
        return CS_OK;
    bool *seen = calloc((size_t)graph->n_classes + 1, sizeof(*seen));
    cs_prices prices;
    if (!seen)
        return cs_error_no_memory(error);
    status = cs_prices_init(&prices, graph, platform, &named, error);
    for (uint32_t task = 0; task < graph->n_tasks && status == CS_OK;) {
        const uint32_t id = graph->tasks[task].cls;
        const cs_class *cls = &graph->classes[id];
        const bool collective = cs_kind_group_of(cls->kind) == CS_GROUP_COLLECTIVE;
        cs_way way = {0};
        if (collective && !seen[id])
            status = cs_way_decide(&prices, cls, &way, error);
        cs_way_finish(&way);
        seen[id] = true;
        task += collective ? cs_graph_count_members(graph, cls->peer) : 1;
    }
    free(seen);
    cs_prices_finish(&prices);
    return status;
}

/* Checks that devices that one device stands for are like it, and that no flows are requested:
 * flows need all devices. */
static cs_status check_fold(const cs_graph *graph, const cs_platform *platform,
                            const cs_lower_options *options, cs_error *error)
{
    if (!graph->stands_for)
        return CS_OK;
    if (options->fidelity == CS_FIDELITY_FLOW)
        return cs_error_add(error, CS_INVALID,
                            "the fidelity flow needs all devices of the platform in the graph, "
                            "not one in place of several: use analytic or alpha_beta");
    for (uint32_t d = 0; platform && d < graph->n_devices; d++) {
        const cs_device *device = &platform->devices[d];
        const cs_device *by = &platform->devices[graph->stands_for[d]];
        if (device->speed != by->speed || device->capacity != by->capacity)
            return cs_error_add(error, CS_INVALID,
                                "device %u cannot stand for device %u, which has another speed or "
                                "memory",
                                graph->stands_for[d], d);
    }
    return CS_OK;
}

static cs_status lower_graph(lowering *l, cs_graph *lowered, bool wanted, cs_lower_report *report,
                             cs_error *error)
{
    l->ways = calloc((size_t)l->from->n_classes + 1, sizeof(*l->ways));
    if (!l->ways)
        return cs_error_no_memory(error);
    CS_TRY(cs_prices_init(&l->prices, l->from, l->platform, l->options, error));
    CS_TRY(decide(l, report, error));
    if (wanted)
        CS_TRY(cs_lower_count_moved(l->from, l->ways, report, error));
    if (wanted && l->from->stands_for)
        CS_TRY(cs_alike_find(&l->prices, l->ways, report->unlike, error));
    return cs_collectives_replace(l->from, l->ways, l->delayed, lowered, error);
}

static void release(lowering *l)
{
    cs_prices_finish(&l->prices);
    for (uint32_t i = 0; l->ways && i < l->from->n_classes; i++) {
        if (l->ways[i])
            cs_way_finish(l->ways[i]);
        free(l->ways[i]);
    }
    free(l->ways);
}

cs_status cs_lower_with(cs_graph *graph, const cs_platform *platform,
                        const cs_lower_options *options, cs_graph *lowered, cs_lower_report *report,
                        cs_error *error)
{
    cs_lower_report unwanted;
    const bool wanted = report != NULL;
    report = wanted ? report : &unwanted;
    *report = (cs_lower_report){0};
    CS_TRY(check_fold(graph, platform, options, error));
    if (!has_collectives(graph)) {
        if (wanted)
            CS_TRY(cs_lower_count_moved(graph, NULL, report, error));
        *lowered = *graph;
        *graph = (cs_graph){0};
        return CS_OK;
    }
    lowering l = {.from = graph, .platform = platform, .options = options};
    const cs_status status = lower_graph(&l, lowered, wanted, report, error);
    release(&l);
    if (status == CS_OK)
        cs_graph_finish(graph);
    return status;
}

cs_status cs_lower(cs_graph *graph, cs_graph *lowered, cs_error *error)
{
    static const cs_lower_options usual = {
        .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_FLOW};
    cs_lower_report ignored;
    return cs_lower_with(graph, NULL, &usual, lowered, &ignored, error);
}

#include "sim/run/allocations.h"

#include "sim/base/vector.h"
#include "sim/run/player.h"

#include <stdlib.h>

void cs_allocations_finish(cs_allocations *allocations)
{
    free(allocations->devices);
    *allocations = (cs_allocations){0};
}

/* The start or end of a task on a device. */
typedef struct moment {
    cs_time time;
    uint32_t task;
    bool ends;
} moment;

/* Ends come before starts of the same instant. */
static int by_time(const void *a, const void *b)
{
    const moment *x = a, *y = b;
    CS_COMPARE(x->time, y->time);
    if (x->ends != y->ends)
        return x->ends ? -1 : 1;
    CS_COMPARE(x->task, y->task);
    return 0;
}

static bool is_on(const cs_graph *graph, const cs_class *cls, uint32_t device)
{
    if (cls->device == device && cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE)
        return true;
    for (uint32_t e = 0; e < cls->n_effects; e++)
        if (graph->effects[cls->first_effect + e].device == device)
            return true;
    return false;
}

typedef struct moments {
    uint32_t n, capacity;
    moment *items;
} moments;

/* Tasks that a stopped run did not reach have no span. */
static cs_status find_moments(const cs_graph *graph, const cs_trace *trace, uint32_t device,
                              moments *made, cs_error *error)
{
    for (uint32_t t = 0; t < graph->n_tasks; t++) {
        const cs_span *span = &trace->spans[t];
        if (!is_on(graph, cs_graph_class(graph, t), device) || span->end < span->start ||
            (trace->stopped && span->end > trace->makespan))
            continue;
        if (!cs_vector_reserve((void **)&made->items, &made->capacity, made->n + UINT64_C(2),
                               sizeof(*made->items)))
            return cs_error_no_memory(error);
        made->items[made->n++] = (moment){span->start, t, false};
        made->items[made->n++] = (moment){span->end, t, true};
    }
    if (made->n > 0)
        qsort(made->items, made->n, sizeof(*made->items), by_time);
    return CS_OK;
}

static cs_status play(cs_player *player, const moments *of, cs_time makespan, cs_error *error)
{
    enum { ROUNDS = 2 };
    CS_TRY(cs_player_begin(player, error));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < of->n; i++) {
            const moment *at = &of->items[i];
            const cs_time time = at->time + (cs_time)round * makespan;
            CS_TRY(cs_player_step(player, at->task, at->ends, time, error));
        }
        CS_TRY(cs_player_end_round(player, error));
    }
    return CS_OK;
}

cs_status cs_player_play(const cs_scenario *scenario, const cs_graph *graph, const cs_trace *trace,
                         uint32_t device, int64_t capacity, const cs_player_watch *watch,
                         cs_device_allocations *made, cs_error *error)
{
    cs_player *player = NULL;
    moments of = {0};
    cs_status status = find_moments(graph, trace, device, &of, error);
    if (status == CS_OK)
        status = cs_player_create(scenario, graph, device, capacity, watch, &player, error);
    if (status == CS_OK)
        status = play(player, &of, trace->makespan, error);
    if (status == CS_OK)
        cs_player_sum_up(player, made);
    cs_player_destroy(player);
    free(of.items);
    return status;
}

/* Devices at the same pipeline rank of a mesh have the same tensors in the same order if their
 * parts of the optimizer's states are equal. Returns the lowest of these devices. */
static uint32_t played_as(const cs_scenario *scenario, uint32_t device)
{
    const cs_parallel *parallel = scenario->parallel;
    uint32_t lowest = device;
    if (!parallel)
        return device;
    const cs_grid *grid = &parallel->split.grid;
    const uint32_t places = cs_grid_places(grid), zero = scenario->job.states.zero;
    const bool parts = zero == 1 || zero == 2;
    const cs_axes axes = cs_grid_axes(grid, CS_AXES_SHARD);
    const cs_axes experts = cs_grid_axes(grid, CS_AXES_EXPERT_SHARD);
    uint32_t at = 0;
    while (at < parallel->n_ranks * places && parallel->devices[at] != device)
        at++;
    for (uint32_t p = 0; at < parallel->n_ranks * places && p < places; p++) {
        const uint32_t other = parallel->devices[at / places * places + p];
        const bool alike =
            !parts || (cs_axes_coordinate(axes, p) == cs_axes_coordinate(axes, at % places) &&
                       (experts.size <= 1 || cs_axes_coordinate(experts, p) ==
                                                 cs_axes_coordinate(experts, at % places)));
        if (alike && other < lowest)
            lowest = other;
    }
    return lowest;
}

cs_status cs_allocations_make(const cs_scenario *scenario, const cs_graph *graph,
                              const cs_trace *trace, cs_allocations *allocations, cs_error *error)
{
    cs_allocations made = {.n_devices = graph->n_devices};
    cs_status status = CS_OK;
    if (!scenario->has_allocator)
        return CS_OK;
    made.devices = calloc(graph->n_devices, sizeof(*made.devices));
    if (!made.devices)
        return cs_error_no_memory(error);
    for (uint32_t d = 0; d < graph->n_devices && status == CS_OK; d++) {
        const uint32_t as = played_as(scenario, cs_graph_stand_in(graph, d));
        if (as < d) {
            made.devices[d] = made.devices[as];
            continue;
        }
        const uint32_t stand_in = cs_graph_stand_in(graph, d);
        status = cs_player_play(scenario, graph, trace, stand_in,
                                scenario->platform.devices[stand_in].capacity, NULL,
                                &made.devices[d], error);
        made.devices[d].played_as = stand_in;
    }
    if (status != CS_OK) {
        cs_allocations_finish(&made);
        return status;
    }
    *allocations = made;
    return CS_OK;
}

/* ---- snapshot ---- */

typedef struct snapshot {
    const char *path;
} snapshot;

static cs_status write_snapshot(void *context, cs_player *player, cs_player_moment when,
                                cs_error *error)
{
    const snapshot *of = context;
    return when == CS_PLAYER_PEAK ? cs_player_snapshot(player, of->path, error) : CS_OK;
}

cs_status cs_allocations_snapshot(const cs_scenario *scenario, const cs_graph *graph,
                                  const cs_trace *trace, const cs_allocations *allocations,
                                  uint32_t device, const char *path, cs_error *error)
{
    cs_history history = {0};
    const cs_device_allocations *of = &allocations->devices[device];
    snapshot context = {path};
    const cs_player_watch watch = {
        .history = &history, .peak_at = of->peak_at, .look = write_snapshot, .context = &context};
    cs_device_allocations made;
    if (of->peak_at == 0)
        return cs_error_add(error, CS_INVALID, "%s: no device allocates memory", path);
    const cs_status status =
        cs_player_play(scenario, graph, trace, of->played_as,
                       scenario->platform.devices[of->played_as].capacity, &watch, &made, error);
    cs_history_finish(&history);
    return status;
}

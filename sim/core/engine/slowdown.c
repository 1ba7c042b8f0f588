#include "sim/core/engine/slowdown.h"

#include <math.h>
#include <stdlib.h>

/* The computation of a device, if any, and the number of transfers that it takes part in, by
 * origin. */
typedef struct slowed_device {
    bool computes;
    bool noted; /* something started or ended since the last settling */
    uint8_t kind;
    uint32_t slot;        /* event of its end */
    cs_time alone, began; /* its duration without slowdown, and its start */
    cs_time started;      /* its host has started all of it: it does not end before */
    double left;          /* ps of `alone` that are left at `since` */
    double factor;        /* since `since` */
    cs_time since;
    uint32_t active[CS_N_KINDS];
} slowed_device;

struct cs_slowdown {
    const cs_graph *graph;
    const double *factors;
    cs_event_queue *events;
    slowed_device *devices;
    uint32_t *noted, n_noted;
};

cs_status cs_slowdown_create(const cs_graph *graph, const double *factors, cs_event_queue *events,
                             cs_slowdown **slowdown, cs_error *error)
{
    const size_t n = (size_t)graph->n_devices + 1;
    cs_slowdown *made = malloc(sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    *made = (cs_slowdown){.graph = graph,
                          .factors = factors,
                          .events = events,
                          .devices = calloc(n, sizeof(*made->devices)),
                          .noted = malloc(n * sizeof(*made->noted))};
    if (!made->devices || !made->noted) {
        cs_slowdown_destroy(made);
        return cs_error_no_memory(error);
    }
    *slowdown = made;
    return CS_OK;
}

void cs_slowdown_destroy(cs_slowdown *slowdown)
{
    if (!slowdown)
        return;
    free(slowdown->devices);
    free(slowdown->noted);
    free(slowdown);
}

static void note(cs_slowdown *slowdown, uint32_t device)
{
    if (!slowdown->devices[device].noted)
        slowdown->noted[slowdown->n_noted++] = device;
    slowdown->devices[device].noted = true;
}

void cs_slowdown_begin(cs_slowdown *slowdown, const cs_class *cls, uint32_t slot, cs_time duration,
                       cs_time least, cs_time now)
{
    slowed_device *device = &slowdown->devices[cls->device];
    device->computes = true;
    device->kind = cls->kind;
    device->slot = slot;
    device->alone = duration;
    device->began = device->since = now;
    device->started = now + least;
    device->left = (double)duration;
    device->factor = 1;
    note(slowdown, cls->device);
}

cs_time cs_slowdown_end(cs_slowdown *slowdown, const cs_class *cls, cs_time now)
{
    slowed_device *device = &slowdown->devices[cls->device];
    device->computes = false;
    const cs_time unslowed = device->began + device->alone;
    return now - (device->started > unslowed ? device->started : unslowed);
}

static void count(cs_slowdown *slowdown, uint32_t device, uint8_t origin, bool starts)
{
    uint32_t *active = &slowdown->devices[device].active[origin];
    *active += starts ? 1 : UINT32_MAX;
    if (*active == (starts ? 1 : 0))
        note(slowdown, device);
}

void cs_slowdown_transfer(cs_slowdown *slowdown, const cs_class *cls, bool starts)
{
    const cs_graph *graph = slowdown->graph;
    if (cls->ranks > 0) {
        const cs_group *group = &graph->groups[cls->ranks - 1];
        for (uint32_t rank = 0; rank < group->n; rank++) {
            const uint32_t device = graph->group_devices[group->first + rank];
            if (cs_graph_has(graph, device))
                count(slowdown, device, cls->origin, starts);
        }
    } else if (cls->bytes > 0 && cls->peer != cls->device) {
        count(slowdown, cls->device, cls->origin, starts);
        count(slowdown, cls->peer, cls->origin, starts);
    }
}

/* That of the transfer that slows most. */
static double find_factor(const cs_slowdown *slowdown, const slowed_device *device)
{
    double factor = 1;
    for (uint32_t origin = 0; origin < CS_N_KINDS; origin++)
        if (device->active[origin] > 0)
            factor = fmax(factor, slowdown->factors[device->kind * CS_N_KINDS + origin]);
    return factor;
}

static cs_status set_end(cs_slowdown *slowdown, slowed_device *device, cs_time now)
{
    const double factor = find_factor(slowdown, device);
    cs_time rest, end;
    if (factor == device->factor)
        return CS_OK;
    device->left = fmax(device->left - (double)(now - device->since) / device->factor, 0);
    device->since = now;
    device->factor = factor;
    if (!cs_time_round(device->left * factor, &rest) || !cs_time_add(now, rest, &end))
        return CS_OVERFLOW;
    cs_event_queue_move(slowdown->events, device->slot,
                        end > device->started ? end : device->started);
    return CS_OK;
}

cs_status cs_slowdown_settle(cs_slowdown *slowdown, cs_time now)
{
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < slowdown->n_noted; i++) {
        slowed_device *device = &slowdown->devices[slowdown->noted[i]];
        device->noted = false;
        if (device->computes && status == CS_OK)
            status = set_end(slowdown, device, now);
    }
    slowdown->n_noted = 0;
    return status;
}

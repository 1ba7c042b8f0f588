/* Folding: checks whether all places of a mesh, or all copies of a whole model, do the same at the
 * same times, so that place 0 of each pipeline rank can be simulated on behalf of all.
 *
 * A simulated message between stages represents the messages of all places. These must take
 * equivalent routes, link by link, and a link may be shared only by messages of one place, or by
 * the same message of several. Collectives are delays that depend on where the devices of a group
 * are, so all groups of an axis must be alike. "fold": "slowest" drops these conditions: a message
 * then takes the slowest route of those that it represents (sim/core/engine/fold-paths.h), and a
 * collective the time of the slowest group (sim/core/lower/alike.h). */
#include "sim/base/text.h"
#include "sim/run/scenario/build.h"
#include "topologies/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FOLD_ABOVE = 64,
    REASON_BYTES = 320
}; /* FOLD_ABOVE: smallest number of devices that "auto" folds */

typedef struct folding {
    const cs_platform *platform;
    const cs_plan *plan;
    const cs_grid *grid; /* grid of each pipeline rank */
    uint32_t n_ranks, places;
    const uint32_t *devices;   /* place i of rank r is devices[r * places + i] */
    char reason[REASON_BYTES]; /* difference between places; "": none so far */
} folding;

static uint32_t device_of(const folding *f, uint32_t rank, uint32_t place)
{
    return f->devices[(size_t)rank * f->places + place];
}

/* ---- devices ---- */

static int64_t entry(const cs_list *bytes, uint32_t device)
{
    return bytes->n > 1 ? ((const int64_t *)bytes->items)[device] : 0;
}

/* Compares speed, memory and the entries of /memory/resident, which may be one for all. A list of
 * wrong length is refused later. */
static void compare_devices(folding *f, const cs_list *resident)
{
    const bool each = resident->n == f->platform->n_devices;
    for (uint32_t r = 0; r < f->n_ranks; r++) {
        const uint32_t first = device_of(f, r, 0);
        const cs_device *a = &f->platform->devices[first];
        for (uint32_t i = 1; i < f->places && !f->reason[0]; i++) {
            const uint32_t other = device_of(f, r, i);
            const cs_device *b = &f->platform->devices[other];
            if (a->speed < b->speed || a->speed > b->speed || a->capacity != b->capacity)
                snprintf(f->reason, sizeof(f->reason),
                         "devices %u and %u differ in speed or memory", first, other);
            else if (each && entry(resident, first) != entry(resident, other))
                snprintf(f->reason, sizeof(f->reason),
                         "devices %u and %u differ in their /memory/resident", first, other);
        }
    }
}

/* Devices that one device represents are matched with the devices that another one represents, in
 * the order of device numbers, so this must be the order of places on every rank. */
static int compare_keys(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static cs_status compare_numbers(folding *f, cs_error *error)
{
    uint64_t *keys = malloc(f->places * sizeof(*keys)); /* device of rank 0, place */
    if (!keys)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < f->places; i++)
        keys[i] = (uint64_t)device_of(f, 0, i) << 32 | i;
    qsort(keys, f->places, sizeof(*keys), compare_keys);
    for (uint32_t r = 1; r < f->n_ranks; r++)
        for (uint32_t i = 1; i < f->places && !f->reason[0]; i++)
            if (device_of(f, r, (uint32_t)keys[i]) < device_of(f, r, (uint32_t)keys[i - 1]))
                snprintf(
                    f->reason, sizeof(f->reason),
                    "\"ranks\" lists the places of pipeline ranks 0 and %u in different orders", r);
    free(keys);
    return CS_OK;
}

/* ---- messages ---- */

enum { SEVERAL = UINT32_MAX };

/* Users of a link: 1 + place, and 1 + message; or SEVERAL. */
typedef struct link_use {
    uint32_t place, message, count;
    uint32_t number; /* index among the links of the current place */
} link_use;

/* Properties of a place's messages, as a list of numbers that can be compared. */
typedef struct ways {
    uint32_t n, capacity;
    uint64_t *items;
} ways;

typedef struct walk {
    folding *folding;
    uint32_t *route;
    uint32_t *next; /* per device: 1 + target of its last message */
    uint32_t *seen; /* per link: 1 + the last place that was compared on it */
    link_use *links;
    bool comparing; /* second pass; the first counts users of links */
    uint32_t place, message, n_links;
    ways first; /* messages of place 0 */
    uint32_t at;
} walk;

static bool add_item(ways *to, uint64_t item)
{
    if (to->n == to->capacity) {
        const uint32_t capacity = 2 * to->capacity + 64;
        uint64_t *grown = realloc(to->items, capacity * sizeof(*grown));
        if (!grown)
            return false;
        to->items = grown;
        to->capacity = capacity;
    }
    to->items[to->n++] = item;
    return true;
}

/* Stores the properties of place 0, and compares other places with them. */
static cs_status note(walk *w, uint64_t item, cs_error *error)
{
    if (w->place == 0)
        return add_item(&w->first, item) ? CS_OK : cs_error_no_memory(error);
    const bool same = w->at < w->first.n && w->first.items[w->at++] == item;
    if (!same && !w->folding->reason[0])
        snprintf(w->folding->reason, sizeof(w->folding->reason),
                 "messages between stages take different routes at places %u and 0", w->place);
    return CS_OK;
}

static cs_status note_number(walk *w, double number, cs_error *error)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    return note(w, bits, error);
}

/* A link used by several places counts a message for all of them. If they send different messages
 * over it, their timing is unknown. */
static cs_status compare_link(walk *w, uint32_t link, cs_error *error)
{
    const cs_platform *platform = w->folding->platform;
    link_use *use = &w->links[link];
    const bool shared = use->place == SEVERAL;
    if (shared && (use->message == SEVERAL || platform->sharing == CS_SHARING_FIFO)) {
        cs_text_format(w->folding->reason, sizeof(w->folding->reason),
                       "messages between stages of several places meet on the link \"%.120s\"",
                       platform->links[link].name);
        return CS_OK;
    }
    if (w->seen[link] != w->place + 1) {
        w->seen[link] = w->place + 1;
        use->number = w->n_links++;
    }
    CS_TRY(note(w, use->number, error));
    CS_TRY(note(w, shared ? use->count : 1, error));
    return note_number(w, platform->links[link].bandwidth, error);
}

static cs_status walk_message(walk *w, uint32_t source, uint32_t target, cs_error *error)
{
    const cs_platform *platform = w->folding->platform;
    cs_route route;
    CS_TRY(cs_route_find(platform, source, target, w->route, &route, error));
    const uint32_t n = cs_links_are_contended(platform) ? route.n : 0;
    if (w->comparing) {
        CS_TRY(note(w, (uint64_t)route.latency, error));
        CS_TRY(note_number(w, route.bandwidth, error));
        CS_TRY(note(w, n, error));
    }
    for (uint32_t i = 0; i < n && !w->folding->reason[0]; i++) {
        if (w->comparing)
            CS_TRY(compare_link(w, route.links[i], error));
        else {
            link_use *use = &w->links[route.links[i]];
            const uint32_t place = w->place + 1, message = w->message + 1;
            use->place = use->place == 0 || use->place == place ? place : SEVERAL;
            use->message = use->message == 0 || use->message == message ? message : SEVERAL;
            use->count++;
        }
    }
    w->message++;
    return CS_OK;
}

static cs_status walk_places(walk *w, cs_error *error)
{
    for (uint32_t pass = 0; pass < 2; pass++) {
        w->comparing = pass == 1;
        for (w->place = 0; w->place < w->folding->places && !w->folding->reason[0]; w->place++) {
            /* Visit the messages over all stage boundaries, each pair of devices once: devices of a
             * rank hold all of its stages, so most boundaries have the same pair. */
            const folding *f = w->folding;
            const cs_plan *plan = f->plan;
            w->n_links = w->at = w->message = 0;
            for (uint32_t r = 0; r < f->n_ranks; r++)
                w->next[device_of(f, r, w->place)] = 0;
            for (uint32_t s = 0; s + 1 < plan->n_stages && !f->reason[0]; s++) {
                const uint32_t a = plan->devices[plan->stages[s].first_device + w->place];
                const uint32_t b = plan->devices[plan->stages[s + 1].first_device + w->place];
                if (a == b || w->next[a] == b + 1)
                    continue;
                w->next[a] = b + 1;
                CS_TRY(walk_message(w, a, b, error));
                CS_TRY(walk_message(w, b, a, error));
            }
        }
    }
    return CS_OK;
}

static cs_status compare_messages(folding *f, cs_error *error)
{
    const cs_platform *platform = f->platform;
    const size_t n_links = (size_t)platform->n_links + 1;
    walk w = {.folding = f,
              .route = calloc((size_t)platform->longest_route + 1, sizeof(*w.route)),
              .next = calloc(platform->n_devices, sizeof(*w.next)),
              .seen = calloc(n_links, sizeof(*w.seen)),
              .links = calloc(n_links, sizeof(*w.links))};
    const bool done = w.route && w.next && w.seen && w.links;
    const cs_status status = done ? walk_places(&w, error) : cs_error_no_memory(error);
    free(w.route);
    free(w.next);
    free(w.seen);
    free(w.links);
    free(w.first.items);
    return status;
}

/* ---- groups of collectives ---- */

/* Nodes and racks of devices, as numbers. */
static uint32_t node_of(const folding *f, uint32_t device)
{
    return f->platform->node_devices > 0 ? device / f->platform->node_devices : 0;
}

static uint32_t rack_of(const folding *f, uint32_t device)
{
    return f->platform->rack_devices > 0 ? device / f->platform->rack_devices : 0;
}

/* Compares the group of a place along the axes with the group of place 0. */
static cs_status compare_group(folding *f, cs_axes_name name, cs_axes axes, uint32_t rank,
                               uint32_t first, cs_error *error)
{
    for (uint32_t k = 0; k + 1 < axes.size; k++) {
        const uint32_t step = k * axes.stride, next = step + axes.stride;
        const uint32_t a[] = {device_of(f, rank, step), device_of(f, rank, next)};
        const uint32_t b[] = {device_of(f, rank, first + step), device_of(f, rank, first + next)};
        bool alike;
        cs_route pair[2];
        CS_TRY(cs_route_find(f->platform, a[0], a[1], NULL, &pair[0], error));
        CS_TRY(cs_route_find(f->platform, b[0], b[1], NULL, &pair[1], error));
        alike = pair[0].latency == pair[1].latency && pair[0].n == pair[1].n &&
                !(pair[0].bandwidth < pair[1].bandwidth) &&
                !(pair[0].bandwidth > pair[1].bandwidth) &&
                (node_of(f, a[0]) == node_of(f, a[1])) == (node_of(f, b[0]) == node_of(f, b[1])) &&
                (rack_of(f, a[0]) == rack_of(f, a[1])) == (rack_of(f, b[0]) == rack_of(f, b[1]));
        if (alike)
            continue;
        snprintf(f->reason, sizeof(f->reason),
                 "the %s groups of devices %u and %u are placed differently in the network",
                 cs_axes_text(name), device_of(f, rank, first), device_of(f, rank, 0));
        return CS_OK;
    }
    return CS_OK;
}

static cs_status compare_axes(folding *f, cs_axes_name name, cs_axes axes, cs_error *error)
{
    for (uint32_t r = 0; r < f->n_ranks; r++) {
        for (uint32_t i = 1; i < f->places && !f->reason[0]; i++) {
            if (cs_axes_coordinate(axes, i) == 0)
                CS_TRY(compare_group(f, name, axes, r, i, error));
        }
    }
    return CS_OK;
}

/* ---- the decision ---- */

/* Whether to fold. "auto" folds only many devices: on few, collectives may be simulated message by
 * message, with contention, whereas folding turns them into delays. */
static bool is_wanted(const cs_sections *sections, const cs_parallel *parallel, uint32_t n_devices)
{
    const uint32_t fidelity = sections->collectives.fidelity;
    switch ((cs_fold)sections->parallel.fold) {
    case CS_FOLD_NO:
        return false;
    case CS_FOLD_YES:
    case CS_FOLD_TRY:
    case CS_FOLD_SLOWEST:
        return true;
    case CS_FOLD_AUTO:
        break;
    }
    return n_devices > FOLD_ABOVE &&
           (parallel || fidelity == CS_FIDELITY_ANALYTIC || fidelity == CS_FIDELITY_ALPHA_BETA);
}

cs_status cs_scenario_fold(const cs_sections *sections, const cs_parallel *parallel,
                           const cs_platform *platform, const cs_plan *plan, const char *difference,
                           cs_arena *arena, cs_folded *folded, cs_error *error)
{
    const cs_json_place up = {.up = &sections->root, .key = "parallel"};
    const cs_json_place place = {.up = &up, .key = "fold"};
    cs_grid copies;
    /* Describe the places of a grid; or the copies of a whole model, as one rank of a grid with
     * only data parallelism. */
    const bool replicated = !parallel && cs_mesh_is_replicated(sections->schedule.kind);
    const cs_grid *grid = parallel ? &parallel->split.grid : &copies;
    copies = cs_grid_single();
    if (replicated)
        copies.data = plan->n_devices;
    folding f = {.platform = platform,
                 .plan = plan,
                 .grid = grid,
                 .n_ranks = parallel ? parallel->n_ranks : 1,
                 .places = cs_grid_places(grid),
                 .devices = parallel ? parallel->devices : plan->devices};
    *folded = (cs_folded){0};
    const bool wanted = is_wanted(sections, parallel, platform->n_devices);
    if (f.places == 1 || (!wanted && (!parallel || sections->parallel.fold == CS_FOLD_NO)))
        return CS_OK;
    /* Find what rules out folding in any case. */
    const char *given =
        cs_noise_is_on(&sections->platform.noise)
            ? "noise (\"jitter\", \"stragglers\" or \"background\") makes them differ"
        : sections->collectives.fidelity == CS_FIDELITY_FLOW
            ? "collectives are simulated message by message (\"fidelity\": \"flow\")"
            : "";
    snprintf(f.reason, sizeof(f.reason), "%s", given);
    if (!f.reason[0])
        compare_devices(&f, &sections->memory.resident);
    if (!f.reason[0] && sections->parallel.ranks.items)
        CS_TRY(compare_numbers(&f, error));
    const bool possible = !f.reason[0];
    if (possible && difference)
        snprintf(f.reason, sizeof(f.reason), "%s", difference);
    else if (possible) {
        CS_TRY(compare_messages(&f, error));
        for (uint32_t name = 0; name < CS_N_AXES && !f.reason[0]; name++) {
            const cs_axes axes = cs_grid_axes(f.grid, (cs_axes_name)name);
            bool seen = axes.size < 2; /* or the same groups as another axis */
            for (uint32_t before = 0; before < name; before++) {
                const cs_axes other = cs_grid_axes(f.grid, (cs_axes_name)before);
                seen |= other.size == axes.size && other.stride == axes.stride;
            }
            if (!seen)
                CS_TRY(compare_axes(&f, (cs_axes_name)name, axes, error));
        }
    }
    folded->foregone = !wanted && !f.reason[0];
    if (!wanted)
        return CS_OK;
    if (possible && !(folded->difference = cs_arena_copy(arena, f.reason)))
        return cs_error_no_memory(error);
    /* Differences may be ignored, but not with fifo: messages queue one by one, and the slowest
     * says too little. */
    const bool is_estimated =
        sections->parallel.fold == CS_FOLD_SLOWEST && platform->sharing != CS_SHARING_FIFO;
    if (!f.reason[0] || (possible && is_estimated)) {
        uint32_t *stands_for = cs_arena_alloc(arena, f.platform->n_devices, sizeof(*stands_for));
        if (!stands_for)
            return cs_error_no_memory(error);
        for (uint32_t r = 0; r < f.n_ranks; r++)
            for (uint32_t i = 0; i < f.places; i++)
                stands_for[device_of(&f, r, i)] = device_of(&f, r, 0);
        folded->stands_for = stands_for;
    }
    if (!f.reason[0])
        return CS_OK;
    if (sections->parallel.fold == CS_FOLD_YES)
        return cs_json_invalid(&place, error,
                               "must be \"auto\" or \"no\": the devices of a stage differ: %s",
                               f.reason);
    folded->reason = cs_arena_copy(arena, f.reason);
    return folded->reason ? CS_OK : cs_error_no_memory(error);
}

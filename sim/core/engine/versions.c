#include "sim/core/engine/versions.h"

#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

/* A version that tasks hold. */
typedef struct hold {
    uint32_t version, count;
} hold;

typedef struct slot_state {
    uint32_t live;   /* versions alive, the current one included */
    uint32_t before; /* current when the instant `updated` began */
    cs_time updated; /* when the current version was made; -1 for the initial one */
    hold *holds;     /* entries first_hold .. first_hold + n_holds - 1, by version, rising */
    uint32_t first_hold, n_holds, cap_holds;
    uint32_t first_behind; /* the first other slot that retains what this one has as current, */
    uint32_t next_behind;  /* and the next slot that retains what the same one has; or CS_NONE */
} slot_state;

struct cs_versions {
    const cs_graph *graph;
    cs_memory *memory;
    uint32_t *current; /* per slot: its current version */
    slot_state *slots;
    uint32_t *registers; /* n_registers rows, a cell per item: version, or CS_NONE */
    cs_slot_record *records;
    uint64_t n_items;
};

static bool reserve(cs_versions *versions, const cs_graph *graph)
{
    versions->graph = graph;
    versions->n_items = cs_graph_items(graph);
    size_t cells = (size_t)graph->n_registers * versions->n_items;
    versions->current = calloc((size_t)graph->n_slots + 1, sizeof(*versions->current));
    versions->slots = calloc((size_t)graph->n_slots + 1, sizeof(*versions->slots));
    versions->records = calloc((size_t)graph->n_slots + 1, sizeof(*versions->records));
    versions->registers = malloc((cells + 1) * sizeof(*versions->registers));
    if (!versions->current || !versions->slots || !versions->records || !versions->registers)
        return false;
    memset(versions->registers, 0xff, cells * sizeof(*versions->registers));
    for (uint32_t i = 0; i < graph->n_slots; i++) {
        versions->slots[i] =
            (slot_state){.live = 1, .updated = -1, .first_behind = CS_NONE, .next_behind = CS_NONE};
        versions->records[i].peak_live = 1;
    }
    for (uint32_t i = graph->n_slots; i-- > 0;) {
        slot_state *of = &versions->slots[graph->slots[i].behind];
        if (graph->slots[i].behind == i)
            continue;
        versions->slots[i].next_behind = of->first_behind;
        of->first_behind = i;
    }
    return true;
}

cs_status cs_versions_create(const cs_graph *graph, cs_memory *memory, cs_versions **versions,
                             cs_error *error)
{
    cs_versions *created = calloc(1, sizeof(*created));
    if (!created || !reserve(created, graph)) {
        cs_versions_destroy(created);
        return cs_error_no_memory(error);
    }
    created->memory = memory;
    *versions = created;
    return CS_OK;
}

const uint32_t *cs_versions_current(const cs_versions *versions)
{
    return versions->current;
}

void cs_versions_destroy(cs_versions *versions)
{
    if (!versions)
        return;
    for (uint32_t i = 0; versions->slots && i < versions->graph->n_slots; i++)
        free(versions->slots[i].holds);
    free(versions->slots);
    free(versions->current);
    free(versions->registers);
    free(versions->records);
    free(versions);
}

/* The oldest version that the slot retains without holds. */
static uint32_t oldest_retained(const cs_versions *versions, uint32_t slot)
{
    const cs_slot *of = &versions->graph->slots[slot];
    uint32_t from = versions->current[slot], behind = versions->current[of->behind];
    if (behind < from)
        from = behind;
    return from + 1 > of->newest ? from + 1 - of->newest : 0;
}

/* Returns the number of the slot's holds with versions below this one. */
static uint32_t find_hold(const slot_state *state, uint32_t version)
{
    uint32_t low = 0, high = state->n_holds;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (state->holds[state->first_hold + middle].version < version)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_held(const slot_state *state, uint32_t at, uint32_t version)
{
    return at < state->n_holds && state->holds[state->first_hold + at].version == version;
}

/* Counts what lives, and gives memory the difference. */
static cs_status recount(cs_versions *versions, uint32_t slot, uint32_t task, cs_time now)
{
    slot_state *state = &versions->slots[slot];
    uint32_t oldest = oldest_retained(versions, slot), before = state->live;
    state->live = versions->current[slot] - oldest + 1 + find_hold(state, oldest);
    if (state->live > versions->records[slot].peak_live)
        versions->records[slot].peak_live = state->live;
    if (state->live == before)
        return CS_OK;
    const cs_slot *of = &versions->graph->slots[slot];
    cs_effect effect = {.device = of->device, .category = CS_MEMORY_WEIGHT_VERSIONS};
    if (__builtin_mul_overflow(of->bytes, (int64_t)state->live - (int64_t)before, &effect.bytes)) {
        versions->memory->overflowed = of->device;
        return CS_OVERFLOW;
    }
    return cs_memory_apply(versions->memory, &effect, 1, task, now);
}

static bool is_alive(const cs_versions *versions, uint32_t slot, uint32_t version)
{
    const slot_state *state = &versions->slots[slot];
    return version <= versions->current[slot] &&
           (version >= oldest_retained(versions, slot) ||
            is_held(state, find_hold(state, version), version));
}

/* Most new holds have the newest version, and the oldest holds are dropped first. Neither moves
 * other holds. */
static bool insert_hold(slot_state *state, uint32_t at, uint32_t version)
{
    if (state->first_hold > state->n_holds) {
        memcpy(state->holds, state->holds + state->first_hold,
               state->n_holds * sizeof(*state->holds));
        state->first_hold = 0;
    }
    if (!cs_vector_reserve((void **)&state->holds, &state->cap_holds,
                           (uint64_t)state->first_hold + state->n_holds + 1, sizeof(*state->holds)))
        return false;
    hold *place = state->holds + state->first_hold + at;
    memmove(place + 1, place, (state->n_holds - at) * sizeof(*place));
    *place = (hold){version, 0};
    state->n_holds++;
    return true;
}

static void remove_hold(slot_state *state, uint32_t at)
{
    hold *place = state->holds + state->first_hold + at;
    state->n_holds--;
    if (at == 0)
        state->first_hold++;
    else
        memmove(place, place + 1, (state->n_holds - at) * sizeof(*place));
}

static cs_status take_hold(cs_versions *versions, uint32_t slot, uint32_t version, uint32_t task,
                           cs_time now)
{
    slot_state *state = &versions->slots[slot];
    const uint32_t at = find_hold(state, version);
    if (!is_held(state, at, version) && !insert_hold(state, at, version))
        return CS_NO_MEMORY;
    state->holds[state->first_hold + at].count++;
    return recount(versions, slot, task, now);
}

static uint32_t *register_cell(const cs_versions *versions, const cs_policy *policy, uint32_t which,
                               uint32_t task)
{
    const cs_graph *graph = versions->graph;
    uint32_t item = graph->tasks[task].item;
    if (policy->by_batch)
        item -= item % graph->micro_batches;
    return &versions->registers[which * versions->n_items + item];
}

static uint32_t choose(const cs_versions *versions, const cs_policy *policy, uint32_t task,
                       cs_time now)
{
    const slot_state *state = &versions->slots[policy->slot];
    uint32_t batch = cs_graph_mini_batch(versions->graph, task);
    switch (policy->read) {
    case CS_READ_CURRENT:
        return policy->strict && state->updated == now ? state->before
                                                       : versions->current[policy->slot];
    case CS_READ_LAG:
        return batch + 1 > policy->lag ? batch + 1 - policy->lag : 0;
    default:
        return *register_cell(versions, policy, policy->reads, task);
    }
}

static cs_status refuse(const cs_versions *versions, uint32_t task, uint32_t slot, uint32_t version,
                        cs_error *error)
{
    char text[96];
    return cs_error_add(error, CS_FAILED,
                        "%s asks for version %d of its weights, which is not there: version %u is "
                        "current",
                        cs_graph_describe(versions->graph, task, text, sizeof(text)), (int)version,
                        versions->current[slot]);
}

cs_status cs_versions_read(cs_versions *versions, uint32_t task, cs_time now, uint32_t *version,
                           cs_error *error)
{
    const cs_class *cls = cs_graph_class(versions->graph, task);
    const cs_policy *policy = &versions->graph->policies[cls->policy - 1];
    *version = choose(versions, policy, task, now);
    if (!policy->notional && !is_alive(versions, cls->weights, *version))
        return refuse(versions, task, cls->weights, *version, error);
    if (policy->writes != CS_NONE)
        *register_cell(versions, policy, policy->writes, task) = *version;
    cs_status status = CS_OK;
    for (uint32_t s = policy->first_held; s < policy->first_held + policy->n_held; s++) {
        if (status == CS_OK)
            status = take_hold(versions, s, *version, task, now);
    }
    return status;
}

cs_status cs_versions_drop(cs_versions *versions, uint32_t task, uint32_t version, cs_time now)
{
    const cs_class *cls = cs_graph_class(versions->graph, task);
    if (cls->policy == 0 || !versions->graph->policies[cls->policy - 1].drops)
        return CS_OK;
    slot_state *state = &versions->slots[cls->weights];
    const uint32_t at = find_hold(state, version);
    if (!is_held(state, at, version))
        return CS_OK; /* nothing held it */
    if (--state->holds[state->first_hold + at].count > 0)
        return CS_OK;
    remove_hold(state, at);
    return recount(versions, cls->weights, task, now);
}

cs_status cs_versions_update(cs_versions *versions, uint32_t slot, uint32_t task, cs_time now,
                             uint32_t *version)
{
    slot_state *state = &versions->slots[slot];
    if (state->updated != now)
        state->before = versions->current[slot];
    *version = ++versions->current[slot];
    state->updated = now;
    versions->records[slot].made = versions->current[slot];
    cs_status status = recount(versions, slot, task, now);
    for (uint32_t s = state->first_behind; s != CS_NONE && status == CS_OK;
         s = versions->slots[s].next_behind)
        status = recount(versions, s, task, now);
    return status;
}

cs_slot_record *cs_versions_take_records(cs_versions *versions)
{
    cs_slot_record *records = versions->records;
    versions->records = NULL;
    return records;
}

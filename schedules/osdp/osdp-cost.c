#include "schedules/osdp/osdp-cost.h"

#include <string.h>

const char *const cs_osdp_surge_names[] = {"maximum", "sum", NULL};

__extension__ typedef __int128 wide;

/* Limit of the sum over all operators, so that a few such sums stay below 2^63. */
static const int64_t most_of_all = INT64_MAX / 8;

static int64_t divide_up(int64_t bytes, int64_t n)
{
    return bytes / n + (bytes % n != 0);
}

/* ---- what an option costs ---- */

typedef struct setting {
    const cs_osdp_model *model;
    const cs_osdp_rules *rules;
    uint32_t batch;
} setting;

/* Scales a value from model->samples to the batch. Returns false if it overflows. */
static bool scale(const setting *s, int64_t given, int64_t *out)
{
    const wide samples = s->model->samples;
    const wide scaled = ((wide)given * s->batch + samples - 1) / samples;
    if (scaled > most_of_all)
        return false;
    *out = (int64_t)scaled;
    return true;
}

/* c(m), the time of a ring. */
static bool ring_time(const cs_osdp_model *model, int64_t bytes, cs_time *time)
{
    const int64_t n = model->devices;
    cs_time step;
    *time = 0;
    return n == 1 || bytes == 0 ||
           (cs_time_transfer((double)divide_up(bytes, n), model->bandwidth, &step) &&
            cs_time_add(step, model->latency, &step) && cs_time_mul(step, n - 1, time));
}

static bool time_of(const setting *s, const cs_osdp_operator *op, cs_osdp_choice choice,
                    cs_time *time)
{
    const int64_t gathers = (int64_t)s->model->gathers * choice.sharded;
    const int64_t reductions = 2 * (int64_t)choice.slices - choice.sharded;
    cs_time gather, reduce, compute;
    return ring_time(s->model, divide_up(op->weights, choice.slices), &gather) &&
           ring_time(s->model, divide_up(op->gradients, choice.slices), &reduce) &&
           cs_time_mul(gather, gathers, &gather) && cs_time_mul(reduce, reductions, &reduce) &&
           scale(s, op->compute, &compute) && cs_time_add(gather, reduce, time) &&
           cs_time_add(*time, compute, time);
}

/* States of the sharded slices, before division among the devices. */
static int64_t sharded_states(const cs_osdp_operator *op, cs_osdp_choice choice)
{
    const wide slices = (wide)divide_up(op->states, choice.slices) * choice.sharded;
    return slices < op->states ? (int64_t)slices : op->states;
}

static bool make_option(const setting *s, const cs_osdp_operator *op, cs_osdp_choice choice,
                        cs_osdp_option *option)
{
    const int64_t sharded = sharded_states(op, choice);
    int64_t kept, workspace;
    *option = (cs_osdp_option){.choice = choice};
    if (!scale(s, op->kept, &kept) || !scale(s, op->workspace, &workspace) ||
        !time_of(s, op, choice, &option->time))
        return false;
    option->memory = op->states - sharded + divide_up(sharded, s->model->devices) + kept;
    option->extra = workspace;
    if (choice.sharded > 0)
        option->extra +=
            divide_up(op->weights, choice.slices) + divide_up(op->gradients, choice.slices);
    if (s->rules->surge == CS_OSDP_SURGE_SUM) {
        option->memory += option->extra;
        option->extra = 0;
    }
    return true;
}

/* ---- menus ---- */

static bool may_choose(const setting *s, const cs_osdp_operator *op, cs_osdp_choice choice)
{
    const bool data = choice.sharded<choice.slices, sharded = choice.sharded> 0;
    if (op->weights == 0) /* nothing to shard */
        return choice.slices == 1 && !sharded;
    return (!data || (s->rules->modes & CS_OSDP_DATA)) &&
           (!sharded || (s->rules->modes & CS_OSDP_SHARDED)) &&
           /* splitting an operator that is fully replicated has no benefit */
           (choice.slices == 1 || sharded);
}

static uint32_t most_slices(const setting *s, const cs_osdp_operator *op)
{
    return s->rules->slices && op->slices > 1 ? op->slices : 1;
}

static cs_status make_kind(const setting *s, const cs_osdp_operator *op, cs_arena *arena,
                           cs_osdp_kind *kind, cs_error *error)
{
    const uint32_t most = most_slices(s, op);
    const size_t n = (size_t)most * (most + 3) / 2;
    cs_osdp_option *options = cs_arena_alloc(arena, n, sizeof(*options));
    if (!options)
        return cs_error_no_memory(error);
    *kind = (cs_osdp_kind){.options = options};
    for (uint32_t k = 1; k <= most; k++) {
        for (uint32_t z = 0; z <= k; z++) {
            const cs_osdp_choice choice = {k, z};
            if (!may_choose(s, op, choice))
                continue;
            if (!make_option(s, op, choice, &options[kind->n_options++]))
                return cs_error_add(error, CS_OVERFLOW,
                                    "%u samples on a device take more time or memory than 63 bits "
                                    "can count",
                                    s->batch);
        }
    }
    return CS_OK;
}

static bool are_alike(const cs_osdp_operator *a, const cs_osdp_operator *b)
{
    return a->weights == b->weights && a->gradients == b->gradients && a->states == b->states &&
           a->kept == b->kept && a->workspace == b->workspace && a->compute == b->compute &&
           a->slices == b->slices;
}

/* First operator equal to this one. */
static uint32_t first_alike(const cs_osdp_model *model, const uint32_t *first, uint32_t n_kinds,
                            uint32_t op)
{
    for (uint32_t kind = 0; kind < n_kinds; kind++) {
        if (are_alike(&model->operators[first[kind]], &model->operators[op]))
            return kind;
    }
    return n_kinds;
}

/* Checks that the largest options of all operators together do not overflow. */
static cs_status check_sums(const cs_osdp_menu *menu, uint32_t batch, cs_error *error)
{
    wide memory = menu->fixed_bytes, time = 0;
    for (uint32_t i = 0; i < menu->n; i++) {
        const cs_osdp_kind *kind = &menu->kinds[menu->kind_of[i]];
        int64_t bytes = 0;
        cs_time longest = 0;
        for (uint32_t o = 0; o < kind->n_options; o++) {
            const int64_t both = kind->options[o].memory + kind->options[o].extra;
            bytes = both > bytes ? both : bytes;
            longest = kind->options[o].time > longest ? kind->options[o].time : longest;
        }
        memory += bytes;
        time += longest;
    }
    return memory <= most_of_all && time <= most_of_all
               ? CS_OK
               : cs_error_add(error, CS_OVERFLOW,
                              "%u samples on a device take more time or memory than 63 bits can "
                              "count",
                              batch);
}

cs_status cs_osdp_menu_make(const cs_osdp_model *model, const cs_osdp_rules *rules, uint32_t batch,
                            cs_arena *arena, cs_osdp_menu *menu, cs_error *error)
{
    const setting s = {model, rules, batch};
    uint32_t *kind_of = cs_arena_alloc(arena, model->n, sizeof(*kind_of));
    uint32_t *first = cs_arena_alloc(arena, model->n, sizeof(*first));
    cs_osdp_kind *kinds = cs_arena_alloc(arena, model->n, sizeof(*kinds));
    if (!kind_of || !first || !kinds)
        return cs_error_no_memory(error);
    *menu = (cs_osdp_menu){.n = model->n,
                           .kind_of = kind_of,
                           .kinds = kinds,
                           .fixed_bytes = model->fixed_bytes,
                           .limit = rules->limit == INT64_MAX ? most_of_all
                                                              : rules->limit - model->fixed_bytes};
    for (uint32_t i = 0; i < model->n; i++) {
        kind_of[i] = first_alike(model, first, menu->n_kinds, i);
        if (kind_of[i] < menu->n_kinds)
            continue;
        first[menu->n_kinds] = i;
        CS_TRY(make_kind(&s, &model->operators[i], arena, &kinds[menu->n_kinds++], error));
    }
    return check_sums(menu, batch, error);
}

/* ---- plans ---- */

static const cs_osdp_option *option_of(const cs_osdp_kind *kind, cs_osdp_choice choice)
{
    for (uint32_t o = 0; o < kind->n_options; o++) {
        const cs_osdp_choice *one = &kind->options[o].choice;
        if (one->slices == choice.slices && one->sharded == choice.sharded)
            return &kind->options[o];
    }
    return NULL;
}

cs_osdp_cost cs_osdp_cost_of(const cs_osdp_menu *menu, const cs_osdp_choice *choices)
{
    cs_osdp_cost cost = {.memory = menu->fixed_bytes};
    int64_t surge = 0;
    for (uint32_t i = 0; i < menu->n; i++) {
        const cs_osdp_option *option = option_of(&menu->kinds[menu->kind_of[i]], choices[i]);
        cost.time += option->time;
        cost.memory += option->memory;
        surge = option->extra > surge ? option->extra : surge;
    }
    cost.memory += surge;
    return cost;
}

/* Least memory of a kind's options whose extra bytes are at most `extra`; -1: none. */
static int64_t least_of(const cs_osdp_kind *kind, int64_t extra)
{
    int64_t least = -1;
    for (uint32_t o = 0; o < kind->n_options; o++) {
        const cs_osdp_option *option = &kind->options[o];
        if (option->extra <= extra && (least < 0 || option->memory < least))
            least = option->memory;
    }
    return least;
}

static int64_t least_within(const cs_osdp_menu *menu, int64_t extra)
{
    int64_t sum = menu->fixed_bytes + extra;
    for (uint32_t i = 0; i < menu->n; i++) {
        const int64_t least = least_of(&menu->kinds[menu->kind_of[i]], extra);
        if (least < 0)
            return INT64_MAX;
        sum += least;
    }
    return sum;
}

int64_t cs_osdp_least_memory(const cs_osdp_menu *menu)
{
    int64_t least = menu->n == 0 ? menu->fixed_bytes : INT64_MAX;
    for (uint32_t kind = 0; kind < menu->n_kinds; kind++) {
        for (uint32_t o = 0; o < menu->kinds[kind].n_options; o++) {
            const int64_t bytes = least_within(menu, menu->kinds[kind].options[o].extra);
            least = bytes < least ? bytes : least;
        }
    }
    return least;
}

double cs_osdp_data_fraction(const cs_osdp_model *model, const cs_osdp_choice *choices)
{
    double data = 0, all = 0;
    for (uint32_t i = 0; i < model->n; i++) {
        const double bytes = (double)model->operators[i].gradients;
        all += bytes;
        data += bytes * (choices[i].slices - choices[i].sharded) / choices[i].slices;
    }
    return all > 0 ? data / all : 1;
}

double cs_osdp_bound(const cs_osdp_model *model, double fraction)
{
    double weights = 0, gradients = 0;
    for (uint32_t i = 0; i < model->n; i++) {
        weights += (double)model->operators[i].weights;
        gradients += (double)model->operators[i].gradients;
    }
    const double sharded = model->gathers * weights + gradients, data = 2 * gradients;
    const double mixed = fraction * data + (1 - fraction) * sharded;
    return model->devices > 1 && mixed > 0 ? sharded / mixed : 1;
}

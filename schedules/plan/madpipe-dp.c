#include "schedules/plan/madpipe-dp.h"

#include "sim/base/hash.h"
#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX, FIRST_SLOTS = 64, MOST_BUCKETS = 64, CELLS = 128 };

/* Comparisons that only discard labels use doubles; this factor exceeds their rounding error. */
static const double slack = 1 + 1e-9;

/* V = (group - 1) T + fill, with fill in (0, T]; no delay is a full group 0. */
typedef struct delay {
    int64_t group;
    cs_time fill;
} delay;

/* Key of a state. All members but `group` are multiples of the grid step. */
typedef struct state {
    int64_t group;
    uint32_t fill, left, load, bytes;
} state;

typedef struct label {
    state at;
    cs_time worst;      /* the largest load so far, or the target period */
    uint32_t n_special; /* number of stages on the special device; fewer are preferred */
    uint32_t end;       /* end of the stage chosen last; NONE at the start */
    uint32_t parent;    /* number of the label that this label extends */
    bool special;       /* whether the special device holds that stage */
    bool dominated;
} label;

typedef struct slot {
    uint32_t label; /* number of the label; NONE: the slot is empty */
    uint32_t hash;  /* hash of the label's state; tells most states apart without reading them */
} slot;

/* All labels with remaining layers [0, l), and a hash table of them. */
typedef struct layer {
    label *labels;
    uint32_t n, capacity;
    slot *slots;
    uint32_t n_slots; /* number of slots: a power of two, or 0 */
} layer;

typedef struct search {
    const cs_chain *chain;
    const cs_madpipe_options *options;
    cs_madpipe_work *work;
    cs_time target;
    cs_time load_step, fill_step;
    int64_t bytes_step;
    uint32_t normal;  /* devices that hold one stage each, at most */
    uint32_t fills;   /* number of values of `fill`: 1 to fills */
    cs_time below;    /* only allocations with a shorter period are searched */
    uint32_t buckets; /* number of buckets of `fill` in `extra` */
    /* [l * buckets + b]: minimum bytes that layers [0, l) keep in addition to `group` times the
     * bytes they keep per micro-batch */
    double *extra;
    layer *layers;   /* labels by number of remaining layers, [n_layers + 1] */
    uint32_t *least; /* scratch of `dominate` for the current layer */
    bool no_memory;  /* whether the computer's memory ran out */
} search;

/* ---- grids ---- */

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static uint32_t to_grid(const search *s, int64_t value, int64_t step)
{
    if (s->options->rounding == CS_MADPIPE_UP)
        return (uint32_t)divide_up(value, step);
    if (s->options->rounding == CS_MADPIPE_NEAREST)
        return (uint32_t)((value + step / 2) / step);
    return (uint32_t)(value / step);
}

/* Rounds a delay to the grid. A full group stays full; an empty one becomes the previous group,
 * full. */
static void round_delay(const search *s, delay v, state *at)
{
    uint32_t fill = v.fill == s->target ? s->fills : to_grid(s, v.fill, s->fill_step);
    at->group = fill > 0 ? v.group : v.group - 1;
    at->fill = fill > 0 ? fill : s->fills;
}

static delay delay_of(const search *s, const state *at)
{
    cs_time fill = at->fill == s->fills ? s->target : at->fill * s->fill_step;
    return (delay){at->group, fill};
}

static cs_time loads_of(const cs_chain *chain)
{
    return cs_chain_load(chain, 0, chain->n_layers);
}

/* Returns bytes that no allocation exceeds on one device, or the memory if that is smaller. A delay
 * is less than twice the sum of its loads, and each rounding adds less than one group. */
static int64_t most_bytes(const search *s, cs_time total)
{
    const cs_chain *chain = s->chain;
    double groups = (double)divide_up(2 * total, s->target) + chain->n_layers + 1;
    double most = (double)chain->sum_fixed[chain->n_layers] +
                  groups * (double)chain->sum_kept[chain->n_layers];
    for (uint32_t b = 0; b <= chain->n_layers; b++)
        most += 4 * (double)chain->boundary[b];
    return most < (double)chain->memory ? (int64_t)most : chain->memory;
}

static void make_grids(search *s, cs_time total)
{
    const cs_madpipe_options *options = s->options;
    cs_time loads = loads_of(s->chain);
    s->load_step = loads > 0 ? divide_up(loads, options->loads - 1) : 1;
    s->bytes_step = divide_up(most_bytes(s, total), options->memories - 1);
    if (s->bytes_step < 1)
        s->bytes_step = 1;
    cs_time fills = s->target / divide_up(total, options->delays - 1);
    s->fill_step = divide_up(s->target, fills > 1 ? fills : 1);
    s->fills = (uint32_t)divide_up(s->target, s->fill_step);
}

/* ---- delays and memory ---- */

static delay extend(const search *s, delay v, cs_time by)
{
    if (by <= s->target - v.fill)
        return (delay){v.group, v.fill + by};
    cs_time full = (by - 1) / s->target;
    return (delay){v.group + 1 + full, by - full * s->target};
}

static int64_t active(const search *s, delay v, cs_time load)
{
    cs_time room = s->target - v.fill;
    int64_t groups = load <= room ? v.group : v.group + 1 + (load - room - 1) / s->target;
    return groups > 1 ? groups : 1;
}

/* Returns M(k, l, g) without the buffers before the stage; it increases as k falls. INT64_MAX if it
 * overflows 64 bits. */
static int64_t bytes_behind(const cs_chain *chain, uint32_t first, uint32_t end, int64_t micro)
{
    int64_t bytes;
    if (__builtin_mul_overflow(micro, chain->sum_kept[end] - chain->sum_kept[first], &bytes) ||
        __builtin_add_overflow(bytes, chain->sum_fixed[end] - chain->sum_fixed[first], &bytes) ||
        __builtin_add_overflow(bytes, 2 * chain->boundary[end], &bytes))
        return INT64_MAX;
    return bytes;
}

/* ---- what cannot lead to a better allocation (exact for rounding up only) ---- */

static double extra_of(const search *s, uint32_t end, cs_time fill)
{
    double bytes = 0;
    for (uint32_t i = 0; i < end; i++) {
        cs_time over = cs_chain_load(s->chain, i, end) - (s->target - fill);
        if (over > 0)
            bytes += (double)divide_up(over, s->target) *
                     (double)(s->chain->sum_kept[i + 1] - s->chain->sum_kept[i]);
    }
    return bytes;
}

/* Fills `extra`: a layer i before l will be in a stage with at least ceil((V + U(i,l)) / T) active
 * micro-batches. */
static bool make_extra(search *s)
{
    uint32_t rows = s->chain->n_layers + 1;
    s->buckets = s->fills < MOST_BUCKETS ? s->fills : MOST_BUCKETS;
    s->extra = calloc((size_t)rows * (s->buckets + 1), sizeof(*s->extra));
    if (!s->extra)
        return false;
    for (uint32_t l = 0; l < rows; l++)
        for (uint32_t b = 0; b <= s->buckets; b++)
            s->extra[l * (s->buckets + 1) + b] = extra_of(s, l, s->target / s->buckets * b);
    return true;
}

/* Whether the remaining loads exceed the remaining devices. The special device's load is rounded up
 * and may exceed the limit; in that case it receives nothing more, but the label is still valid. */
static bool loads_exceed(const search *s, uint32_t end, const state *at)
{
    double devices = (double)at->left + (s->options->special != CS_MADPIPE_NONE);
    double most = (double)(s->below - 1), special = (double)at->load * (double)s->load_step;
    double load = (double)cs_chain_load(s->chain, 0, end) + (special < most ? special : most);
    return load > devices * most * slack;
}

/* Returns an upper bound of the memory saved by charging layers with g - 1: the bytes they keep of
 * one micro-batch, which are in the special device's memory for `group` - 1 or more
 * micro-batches. */
static double saving(const search *s, double kept, int64_t group, double room)
{
    if (s->options->special != CS_MADPIPE_OPTIMISTIC)
        return 0;
    double most = group > 1 ? room / (double)(group - 1) : kept;
    return most < kept ? most : kept;
}

static bool bytes_exceed(const search *s, uint32_t end, const state *at)
{
    const cs_chain *chain = s->chain;
    uint32_t bucket = (uint32_t)((uint64_t)at->fill * s->buckets / s->fills);
    double kept = (double)chain->sum_kept[end], memory = (double)chain->memory;
    double need = (double)chain->sum_fixed[end] + (double)at->group * kept +
                  s->extra[end * (s->buckets + 1) + bucket];
    double room = 0;
    if (s->options->special != CS_MADPIPE_NONE)
        room = memory - (double)at->bytes * (double)s->bytes_step;
    room = room > 0 ? room : 0;
    return need - saving(s, kept, at->group, room) > ((double)at->left * memory + room) * slack;
}

static bool hopeless(const search *s, uint32_t end, const state *at)
{
    return s->options->rounding == CS_MADPIPE_UP &&
           (loads_exceed(s, end, at) || bytes_exceed(s, end, at));
}

/* ---- labels ---- */

static bool same(const state *a, const state *b)
{
    return a->group == b->group && a->fill == b->fill && a->left == b->left && a->load == b->load &&
           a->bytes == b->bytes;
}

static uint32_t hash_of(const state *at)
{
    return (uint32_t)cs_hash_bytes(at, sizeof(*at), 0);
}

/* Returns the slot that holds the state, or the free slot for it. */
static slot *slot_of(const layer *of, const state *at, uint32_t hash)
{
    uint32_t i = hash & (of->n_slots - 1);
    for (;; i = (i + 1) & (of->n_slots - 1)) {
        slot *one = &of->slots[i];
        if (one->label == NONE || (one->hash == hash && same(&of->labels[one->label].at, at)))
            return one;
    }
}

/* Doubles the number of slots. */
static bool grow(layer *of)
{
    uint32_t n_old = of->n_slots, n = n_old > 0 ? 2 * n_old : FIRST_SLOTS;
    slot *old = of->slots, *slots = n > n_old ? malloc(n * sizeof(*slots)) : NULL;
    if (!slots)
        return false;
    memset(slots, 0xff, n * sizeof(*slots));
    for (uint32_t i = 0; i < n_old; i++) {
        uint32_t to = old[i].hash & (n - 1);
        while (old[i].label != NONE && slots[to].label != NONE)
            to = (to + 1) & (n - 1);
        if (old[i].label != NONE)
            slots[to] = old[i];
    }
    free(old);
    of->slots = slots;
    of->n_slots = n;
    return true;
}

/* Makes room for one more label; at most half of the slots are used. */
static bool reserve(layer *of)
{
    return cs_vector_reserve((void **)&of->labels, &of->capacity, of->n + UINT64_C(1),
                             sizeof(*of->labels)) &&
           (of->n < of->n_slots / 2 || grow(of));
}

static bool better(const label *a, const label *b)
{
    return a->worst < b->worst || (a->worst == b->worst && a->n_special < b->n_special);
}

static void put(search *s, uint32_t end, const label *one)
{
    layer *of = &s->layers[end];
    if (one->worst >= s->below || hopeless(s, end, &one->at))
        return;
    if (!reserve(of)) {
        s->no_memory = true;
        return;
    }
    uint32_t hash = hash_of(&one->at);
    slot *at = slot_of(of, &one->at, hash);
    if (at->label == NONE) {
        *at = (slot){of->n, hash};
        of->labels[of->n++] = *one;
    } else if (better(one, &of->labels[at->label])) {
        of->labels[at->label] = *one;
    }
}

/* Adds a complete allocation: only the best is kept. */
static void put_last(search *s, const label *one)
{
    layer *of = &s->layers[0];
    if (one->worst >= s->below || (of->n > 0 && !better(one, &of->labels[0])))
        return;
    if (!reserve(of)) {
        s->no_memory = true;
        return;
    }
    of->labels[0] = *one;
    of->n = 1;
}

/* ---- stages ---- */

static cs_time larger(cs_time a, cs_time b)
{
    return a > b ? a : b;
}

/* One extension of a label: the stage [first, end), its load, and its bytes on a normal and on the
 * special device. */
typedef struct stage {
    uint32_t first, end, parent;
    cs_time load;
    int64_t normal_bytes, special_bytes; /* bytes on each kind of device; -1: impossible */
    delay before;
} stage;

static void place(search *s, const label *from, const stage *of, bool special)
{
    label next = *from;
    next.end = of->end;
    next.parent = of->parent;
    next.special = special;
    cs_time load = of->load;
    if (special) {
        load += from->at.load * s->load_step;
        next.at.load = to_grid(s, load, s->load_step);
        next.at.bytes = to_grid(s, of->special_bytes, s->bytes_step);
        next.n_special++;
    } else {
        next.at.left--;
    }
    next.worst = larger(from->worst, larger(load, cs_chain_link(s->chain, of->first)));
    if (of->first == 0) {
        put_last(s, &next);
        return;
    }
    round_delay(s, of->before, &next.at);
    put(s, of->first, &next);
}

/* Returns the bytes on the special device with all its stages; -1 if they do not fit. */
static int64_t special_bytes(const search *s, const label *from, const stage *of, int64_t micro)
{
    if (s->options->special == CS_MADPIPE_NONE ||
        of->load >= s->below - from->at.load * s->load_step)
        return -1;
    if (s->options->special == CS_MADPIPE_OPTIMISTIC)
        micro--;
    int64_t bytes = bytes_behind(s->chain, of->first, of->end, micro);
    int64_t held = from->at.bytes * s->bytes_step;
    return bytes < INT64_MAX && bytes <= s->chain->memory - held ? held + bytes : -1;
}

/* Tries one stage. Returns false if no device can hold a longer stage with the same end. */
static bool try_stage(search *s, const label *from, stage *of, delay v)
{
    const cs_chain *chain = s->chain;
    of->load = cs_chain_load(chain, of->first, of->end);
    if (of->load >= s->below)
        return false;
    int64_t micro = active(s, v, of->load);
    int64_t front = 2 * chain->boundary[of->first];
    of->normal_bytes =
        from->at.left > 0 ? bytes_behind(chain, of->first, of->end, micro) : INT64_MAX;
    of->special_bytes = special_bytes(s, from, of, micro);
    bool normal = of->normal_bytes <= chain->memory && of->normal_bytes < INT64_MAX;
    if (!normal && of->special_bytes < 0)
        return false;
    s->work->stages++;
    of->before = extend(s, extend(s, v, of->load), cs_chain_link(chain, of->first));
    if (normal && of->normal_bytes <= chain->memory - front)
        place(s, from, of, false);
    if (of->special_bytes >= 0 && of->special_bytes <= chain->memory - front) {
        of->special_bytes += front;
        place(s, from, of, true);
    }
    return true;
}

static void leave(search *s, uint32_t end, uint32_t number)
{
    const label from = s->layers[end].labels[number];
    delay v = delay_of(s, &from.at);
    stage of = {.end = end, .parent = number};
    for (of.first = end; of.first-- > 0;)
        if (!try_stage(s, &from, &of, v))
            return;
}

/* ---- dominated labels ---- */

static bool no_worse(const label *a, const label *b)
{
    bool later =
        a->at.group > b->at.group || (a->at.group == b->at.group && a->at.fill > b->at.fill);
    return !later && a->worst <= b->worst;
}

/* Returns the label with the smaller delay, at equal delays the smaller load. */
static uint32_t lesser(const layer *of, uint32_t a, uint32_t b)
{
    if (a == NONE || b == NONE)
        return a == NONE ? b : a;
    const label *one = &of->labels[a], *other = &of->labels[b];
    if (one->at.group != other->at.group)
        return one->at.group < other->at.group ? a : b;
    if (one->at.fill != other->at.fill)
        return one->at.fill < other->at.fill ? a : b;
    return one->worst <= other->worst ? a : b;
}

static uint32_t *least_at(const search *s, uint32_t left, uint32_t load, uint32_t bytes)
{
    uint32_t row = left * CELLS + (load < CELLS ? load : CELLS - 1);
    return &s->least[row * CELLS + (bytes < CELLS ? bytes : CELLS - 1)];
}

/* Sets cell (left, load, bytes) of `least` to the label with the smallest delay among labels with
 * at least as many devices left and at most this load and these bytes. */
static void spread(const search *s, const layer *of, const state *most)
{
    for (uint32_t left = most->left + 1; left-- > 0;) {
        for (uint32_t load = 0; load <= most->load && load < CELLS; load++) {
            for (uint32_t bytes = 0; bytes <= most->bytes && bytes < CELLS; bytes++) {
                uint32_t *cell = least_at(s, left, load, bytes);
                if (left < most->left)
                    *cell = lesser(of, *cell, *least_at(s, left + 1, load, bytes));
                if (load > 0)
                    *cell = lesser(of, *cell, *least_at(s, left, load - 1, bytes));
                if (bytes > 0)
                    *cell = lesser(of, *cell, *least_at(s, left, load, bytes - 1));
            }
        }
    }
}

static void clear(const search *s, const state *most)
{
    size_t width = most->bytes < CELLS ? most->bytes + 1 : CELLS;
    for (uint32_t left = 0; left <= most->left; left++)
        for (uint32_t load = 0; load <= most->load && load < CELLS; load++)
            memset(least_at(s, left, load, 0), 0xff, width * sizeof(*s->least));
}

/* Removes labels dominated by another label, i.e. not better in any respect: every sum, join and
 * rounding is monotonic. Only one candidate is compared per label. The last cell of a row
 * represents everything beyond it and is not a candidate itself. */
static void dominate(search *s, const layer *of)
{
    state most = {0};
    for (uint32_t i = 0; i < of->n; i++) {
        const state *at = &of->labels[i].at;
        most.left = at->left > most.left ? at->left : most.left;
        most.load = at->load > most.load ? at->load : most.load;
        most.bytes = at->bytes > most.bytes ? at->bytes : most.bytes;
    }
    clear(s, &most);
    for (uint32_t i = 0; i < of->n; i++) {
        const state *at = &of->labels[i].at;
        uint32_t *cell = least_at(s, at->left, at->load, at->bytes);
        if (at->load < CELLS && at->bytes < CELLS)
            *cell = lesser(of, *cell, i);
    }
    spread(s, of, &most);
    for (uint32_t i = 0; i < of->n; i++) {
        label *one = &of->labels[i];
        uint32_t other = *least_at(s, one->at.left, one->at.load, one->at.bytes);
        if (other != NONE && other != i && no_worse(&of->labels[other], one))
            one->dominated = true;
    }
}

/* Finds the best allocation with a period below s->below. */
static void run(search *s)
{
    const cs_chain *chain = s->chain;
    label start = {.worst = s->target, .end = NONE, .parent = NONE};
    start.at.left = s->normal;
    start.at.fill = s->fills;
    for (uint32_t l = 0; l <= chain->n_layers; l++) {
        s->layers[l].n = 0;
        if (s->layers[l].n_slots > 0)
            memset(s->layers[l].slots, 0xff, s->layers[l].n_slots * sizeof(slot));
    }
    put(s, chain->n_layers, &start);
    for (uint32_t l = chain->n_layers; l > 0 && !s->no_memory; l--) {
        s->work->labels += s->layers[l].n;
        dominate(s, &s->layers[l]);
        for (uint32_t i = 0; i < s->layers[l].n && !s->no_memory; i++)
            if (!s->layers[l].labels[i].dominated && s->layers[l].labels[i].worst < s->below)
                leave(s, l, i);
        if (s->layers[0].n > 0)
            s->below = s->layers[0].labels[0].worst + 1;
    }
}

/* Searches with growing limits, starting from the memory that every allocation needs. The first
 * limit with a result gives the best one, and a search with a tight limit is much faster. */
static void deepen(search *s)
{
    const cs_chain *chain = s->chain;
    cs_time least = divide_up(loads_of(chain), chain->n_devices);
    for (uint32_t l = 0; l < chain->n_layers; l++)
        least = larger(least, cs_chain_load(chain, l, l + 1));
    least = larger(least, s->target);
    cs_time more = least / 64 + 1;
    for (int tries = 0; tries < 4 && s->layers[0].n == 0 && !s->no_memory; tries++) {
        s->below = least + more;
        run(s);
        more *= 4;
    }
    if (s->layers[0].n == 0 && !s->no_memory) {
        s->below = CS_TIME_MAX;
        run(s);
    }
}

/* ---- the allocation ---- */

static uint32_t count_stages(const search *s)
{
    uint32_t n = 0;
    const label *at = &s->layers[0].labels[0];
    for (; at->end != NONE; at = &s->layers[at->end].labels[at->parent])
        n++;
    return n;
}

static cs_status make_plan(const search *s, cs_plan *plan, cs_error *error)
{
    uint32_t n = count_stages(s), special = NONE, next = 0;
    uint32_t *cuts = calloc((size_t)n + 1, sizeof(*cuts));
    uint32_t *devices = calloc((size_t)n + 1, sizeof(*devices));
    cs_status status = cuts && devices ? CS_OK : cs_error_no_memory(error);
    const label *at = &s->layers[0].labels[0];
    for (uint32_t i = 0; i < n && status == CS_OK; i++) {
        cuts[i + 1] = at->end;
        if (at->special && special == NONE)
            special = next++;
        devices[i] = at->special ? special : next++;
        at = &s->layers[at->end].labels[at->parent];
    }
    if (status == CS_OK)
        status = cs_plan_pipeline(cuts, n, plan, error);
    if (status == CS_OK)
        memcpy(plan->devices, devices, n * sizeof(*devices));
    free(cuts);
    free(devices);
    return status;
}

static void finish(search *s)
{
    for (uint32_t l = 0; s->layers && l <= s->chain->n_layers; l++) {
        free(s->layers[l].labels);
        free(s->layers[l].slots);
    }
    free(s->layers);
    free(s->extra);
    free(s->least);
}

void cs_madpipe_allocation_finish(cs_madpipe_allocation *allocation)
{
    cs_plan_finish(&allocation->plan);
    *allocation = (cs_madpipe_allocation){0};
}

cs_status cs_madpipe_total(const cs_chain *chain, cs_time *total, cs_error *error)
{
    cs_time sum = loads_of(chain);
    bool fits = true;
    for (uint32_t b = 1; b < chain->n_layers && fits; b++)
        fits = cs_time_add(sum, cs_chain_link(chain, b), &sum);
    if (!fits || (double)sum * (chain->n_layers + 2.0) >= 0x1p62)
        return cs_error_add(error, CS_OVERFLOW,
                            "a micro-batch takes too long on the chain for its delays to be added "
                            "up: %u layers and their messages must stay below 2^62 ps (53 days) "
                            "over the number of layers",
                            chain->n_layers);
    *total = sum > 0 ? sum : 1;
    return CS_OK;
}

cs_status cs_madpipe_dp(const cs_chain *chain, const cs_madpipe_options *options, cs_time target,
                        cs_madpipe_allocation *allocation, cs_madpipe_work *work, cs_error *error)
{
    search s = {.chain = chain, .options = options, .target = target, .work = work};
    cs_madpipe_allocation made = {.target = target};
    cs_time total;
    cs_status status = cs_madpipe_total(chain, &total, error);
    if (status != CS_OK)
        return status;
    make_grids(&s, total);
    s.normal = chain->n_devices - (options->special != CS_MADPIPE_NONE);
    s.normal = s.normal < chain->n_layers ? s.normal : chain->n_layers;
    s.layers = calloc((size_t)chain->n_layers + 1, sizeof(*s.layers));
    s.least = calloc((size_t)(s.normal + 1) * CELLS * CELLS, sizeof(*s.least));
    if (s.layers && make_extra(&s))
        deepen(&s);
    if (!s.layers || !s.extra || s.no_memory)
        status = cs_error_no_memory(error);
    else if (s.layers[0].n > 0)
        status = make_plan(&s, &made.plan, error);
    if (status == CS_OK) {
        made.promised = s.layers[0].n > 0 ? s.layers[0].labels[0].worst : 0;
        *allocation = made;
    }
    finish(&s);
    return status;
}

#include "tests/tiny-chain.h"

#include <string.h>

static uint32_t up_to(gsl_rng *rng, uint32_t most)
{
    return (uint32_t)gsl_rng_uniform_int(rng, (unsigned long)most + 1);
}

void tiny_chain_make(gsl_rng *rng, const tiny_limits *limits, tiny_chain *tiny)
{
    memset(tiny, 0, sizeof(*tiny));
    cs_chain *c = &tiny->chain;
    *c = (cs_chain){.n_layers = 1 + up_to(rng, limits->layers - 1),
                    .n_devices = 1 + up_to(rng, limits->devices - 1),
                    .sum_forward = tiny->forward,
                    .sum_backward = tiny->backward,
                    .sum_fixed = tiny->fixed,
                    .sum_kept = tiny->kept,
                    .boundary = tiny->boundary,
                    .message = tiny->message};
    for (uint32_t l = 0; l < c->n_layers; l++) {
        tiny->forward[l + 1] = tiny->forward[l] + up_to(rng, limits->time);
        tiny->backward[l + 1] = tiny->backward[l] + up_to(rng, limits->time);
        tiny->fixed[l + 1] = tiny->fixed[l] + up_to(rng, limits->bytes);
        tiny->kept[l + 1] = tiny->kept[l] + up_to(rng, limits->bytes);
        tiny->boundary[l] = l > 0 ? up_to(rng, limits->bytes / 2) : 0;
        tiny->message[l] = l > 0 ? up_to(rng, limits->message) : 0;
    }
    tiny->backward[c->n_layers] += limits->ends_with_time;
    int64_t all = tiny->fixed[c->n_layers] + tiny->kept[c->n_layers];
    c->memory = all / (2 * c->n_devices) + up_to(rng, (uint32_t)all);
}

void tiny_plan_make(gsl_rng *rng, const cs_chain *chain, bool contiguous, tiny_plan *tiny)
{
    memset(tiny, 0, sizeof(*tiny));
    uint32_t n = 0, most = contiguous ? chain->n_devices : chain->n_layers;
    for (uint32_t l = 0; l < chain->n_layers; l++) {
        if (n == 0 || (n < most && up_to(rng, 2) > 0)) {
            tiny->devices[n] = contiguous ? n : up_to(rng, chain->n_devices - 1);
            tiny->stages[n] = (cs_stage){l, l, n, 1};
            n++;
        }
        tiny->stages[n - 1].end_layer = l + 1;
    }
    tiny->plan = (cs_plan){n, n, tiny->stages, tiny->devices};
}

/* ---- everything ---- */

typedef struct step {
    uint32_t stage;
    cs_pattern_kind kind;
    cs_time takes, x;
    uint64_t *busy; /* occupancy of its device or link: a bit per picosecond of the period */
} step;

typedef struct trial {
    const cs_chain *chain;
    const cs_plan *plan;
    step steps[TINY_LAYERS * CS_PATTERN_KINDS];
    uint32_t n;
    uint64_t busy[TINY_LAYERS][TINY_LAYERS]; /* [d][d]: device d; [d][e], d < e: their link */
    cs_time period;
    int64_t left;
} trial;

static uint32_t device_of(const trial *t, uint32_t stage)
{
    return t->plan->devices[t->plan->stages[stage].first_device];
}

static void add_step(trial *t, uint32_t stage, cs_pattern_kind kind)
{
    if (!cs_pattern_has(t->plan, stage, kind))
        return;
    bool message = kind == CS_PATTERN_SEND || kind == CS_PATTERN_RETURN;
    uint32_t a = device_of(t, stage), b = message ? device_of(t, stage + 1) : a;
    t->steps[t->n++] = (step){stage, kind, cs_pattern_duration(t->chain, t->plan, stage, kind), 0,
                              a < b ? &t->busy[a][b] : &t->busy[b][a]};
}

static const step *find(const trial *t, uint32_t placed, uint32_t stage, cs_pattern_kind kind)
{
    for (uint32_t i = 0; i < placed; i++) {
        if (t->steps[i].stage == stage && t->steps[i].kind == kind)
            return &t->steps[i];
    }
    return NULL;
}

static int64_t fixed_bytes(const trial *t, uint32_t stage)
{
    const cs_stage *at = &t->plan->stages[stage];
    int64_t bytes = t->chain->sum_fixed[at->end_layer] - t->chain->sum_fixed[at->first_layer];
    if (stage > 0 && device_of(t, stage - 1) != device_of(t, stage))
        bytes += 2 * t->chain->boundary[at->first_layer];
    if (stage + 1 < t->plan->n_stages && device_of(t, stage + 1) != device_of(t, stage))
        bytes += 2 * t->chain->boundary[at->end_layer];
    return bytes;
}

/* Micro-batches of a stage that are active at `now`, counted one by one, from the youngest on. */
static int64_t active_at(const trial *t, const step *forward, const step *backward, cs_time now)
{
    cs_time length = backward->x + backward->takes - forward->x;
    cs_time age = ((now - forward->x) % t->period + t->period) % t->period;
    int64_t n = 0;
    for (; age < length || age == 0; age += t->period)
        n++;
    return n;
}

static int64_t held(const trial *t, uint32_t placed, uint32_t device, cs_time now)
{
    int64_t bytes = 0;
    for (uint32_t s = 0; s < t->plan->n_stages; s++) {
        const cs_stage *at = &t->plan->stages[s];
        if (device_of(t, s) != device)
            continue;
        bytes += fixed_bytes(t, s);
        const step *forward = find(t, placed, s, CS_PATTERN_FORWARD);
        const step *backward = find(t, placed, s, CS_PATTERN_BACKWARD);
        if (backward)
            bytes += active_at(t, forward, backward, now) *
                     (t->chain->sum_kept[at->end_layer] - t->chain->sum_kept[at->first_layer]);
    }
    return bytes;
}

/* Checks the stages whose backward has been placed. */
static bool fits(const trial *t, uint32_t placed)
{
    for (uint32_t d = 0; d < t->chain->n_devices; d++) {
        for (cs_time now = 0; now < t->period; now++) {
            if (held(t, placed, d, now) > t->chain->memory)
                return false;
        }
    }
    return true;
}

static uint64_t bits(const trial *t, cs_time x, cs_time takes)
{
    uint64_t mask = 0;
    for (cs_time i = 0; i < takes; i++)
        mask |= UINT64_C(1) << ((x + i) % t->period);
    return mask;
}

/* Whether an operation without time stands within another, one of them being step i. */
static bool within(const trial *t, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++) {
        const step *a = &t->steps[i], *b = &t->steps[j];
        if (a->busy != b->busy || (a->takes > 0 && b->takes > 0))
            continue;
        const step *instant = a->takes == 0 ? a : b, *other = a->takes == 0 ? b : a;
        cs_time after = (instant->x - other->x) % t->period;
        after += after < 0 ? t->period : 0;
        if (after > 0 && after < other->takes)
            return true;
    }
    return false;
}

/* Places step i and all later ones. A step waits less than a period for the previous one: otherwise
 * everything before could be done a period later, with less in memory. */
static bool place(trial *t, uint32_t i)
{
    if (i == t->n)
        return true;
    step *s = &t->steps[i];
    cs_time first = i > 0 ? s[-1].x + s[-1].takes : 0, options = i > 0 ? t->period : 1;
    if (s->takes > t->period)
        return false;
    for (s->x = first; s->x < first + options; s->x++) {
        uint64_t mask = bits(t, s->x, s->takes);
        if (--t->left < 0)
            return false;
        if ((*s->busy & mask) || within(t, i))
            continue;
        *s->busy |= mask;
        bool done = (s->kind != CS_PATTERN_BACKWARD || fits(t, i + 1)) && place(t, i + 1);
        *s->busy &= ~mask;
        if (done)
            return true;
    }
    return false;
}

cs_time tiny_best_period(const cs_chain *chain, const cs_plan *plan, cs_time below,
                         int64_t most_steps)
{
    trial t = {.chain = chain, .plan = plan, .left = most_steps};
    cs_time longest = 1;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        add_step(&t, s, CS_PATTERN_FORWARD);
        add_step(&t, s, CS_PATTERN_SEND);
    }
    for (uint32_t s = plan->n_stages; s-- > 0;) {
        add_step(&t, s, CS_PATTERN_RETURN);
        add_step(&t, s, CS_PATTERN_BACKWARD);
    }
    for (uint32_t i = 0; i < t.n; i++)
        longest += t.steps[i].takes;
    for (t.period = 1; t.period <= longest && t.period < below; t.period++) {
        if (place(&t, 0))
            return t.period;
        if (t.left < 0)
            return -1;
    }
    return 0;
}

#include "schedules/pipeline-classes.h"

#include "schedules/program.h"
#include "schedules/residents.h"

typedef struct maker {
    const cs_job *job;
    const cs_pipeline_options *options;
    uint32_t n_micros;
    cs_builder *builder;
    cs_arena *arena;
    cs_pipeline_classes made;
    int64_t *received; /* per holder: bytes of a micro-batch that come from the stage before */
} maker;

/* What the classes of one holder need to know. */
typedef struct place {
    uint32_t stage, holder, device;
} place;

static uint32_t n_replicas(const maker *m, uint32_t stage)
{
    return m->job->plan->stages[stage].n_devices;
}

/* No message is needed behind the stage. */
static bool adjacent_on_one_device(const maker *m, uint32_t stage)
{
    return n_replicas(m, stage) == 1 && n_replicas(m, stage + 1) == 1 &&
           cs_plan_device(m->job->plan, stage) == cs_plan_device(m->job->plan, stage + 1);
}

/* ---- who sends to whom ---- */

static uint32_t greatest_divisor(uint32_t a, uint32_t b)
{
    while (b > 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Replicas that take turns meet again after so many micro-batches. */
static void pair_in_turn(const maker *m, uint32_t stage, cs_boundary *boundary)
{
    uint32_t R = n_replicas(m, stage), Q = n_replicas(m, stage + 1);
    for (uint32_t i = 0; i < boundary->n; i++)
        boundary->pairs[i] =
            (cs_replica_pair){i % R, i % Q, m->job->stages[stage].output_bytes, CS_NONE, CS_NONE};
}

/* Of the bytes of one share those before part x of Q. */
static int64_t before(int64_t bytes, uint64_t x, uint32_t Q)
{
    return bytes / Q * (int64_t)x + bytes % Q * (int64_t)x / Q;
}

/* A micro-batch is R Q parts; replica i of R has those from i Q to (i + 1) Q, replica j of Q those
 * from j R to (j + 1) R. */
static void pair_shares(const maker *m, uint32_t stage, cs_boundary *boundary)
{
    uint64_t R = n_replicas(m, stage), Q = n_replicas(m, stage + 1), from = 0;
    int64_t share = m->job->stages[stage].output_bytes;
    for (uint32_t n = 0; n < boundary->n; n++) {
        uint64_t i = from / Q, j = from / R;
        uint64_t until = (i + 1) * Q < (j + 1) * R ? (i + 1) * Q : (j + 1) * R;
        int64_t bytes =
            before(share, until - i * Q, (uint32_t)Q) - before(share, from - i * Q, (uint32_t)Q);
        boundary->pairs[n] = (cs_replica_pair){(uint32_t)i, (uint32_t)j, bytes, CS_NONE, CS_NONE};
        from = until;
    }
}

static bool make_boundary(maker *m, uint32_t stage)
{
    cs_boundary *boundary = &m->made.boundaries[stage];
    uint32_t R = n_replicas(m, stage), Q = n_replicas(m, stage + 1);
    uint32_t divisor = greatest_divisor(R, Q);
    bool shares = m->job->replicas == CS_REPLICAS_ALL_REDUCE;
    uint64_t n = shares ? (uint64_t)R + Q - divisor : (uint64_t)R / divisor * Q;
    boundary->n = !shares && n > m->n_micros ? m->n_micros : (uint32_t)n;
    boundary->pairs = cs_arena_alloc(m->arena, boundary->n, sizeof(*boundary->pairs));
    if (!boundary->pairs)
        return false;
    (shares ? pair_shares : pair_in_turn)(m, stage, boundary);
    int64_t *received = &m->received[m->job->plan->stages[stage + 1].first_device];
    for (uint32_t i = 0; i < boundary->n; i++) {
        const cs_replica_pair *pair = &boundary->pairs[i];
        received[pair->upper] = (shares ? received[pair->upper] : 0) + pair->bytes;
    }
    return true;
}

static uint32_t make_send(maker *m, uint32_t stage, uint32_t sender, uint32_t receiver,
                          int64_t bytes)
{
    cs_class message = cs_program_message(m->job, stage, sender, receiver, bytes);
    return cs_program_send(m->builder, &message, false);
}

static void make_sends(maker *m, uint32_t stage)
{
    const cs_plan *plan = m->job->plan;
    const uint32_t *lower = plan->devices + plan->stages[stage].first_device;
    const uint32_t *upper = plan->devices + plan->stages[stage + 1].first_device;
    cs_boundary *boundary = &m->made.boundaries[stage];
    for (uint32_t i = 0; i < boundary->n && !adjacent_on_one_device(m, stage); i++) {
        cs_replica_pair *pair = &boundary->pairs[i];
        uint32_t from = lower[pair->lower], to = upper[pair->upper];
        pair->down = make_send(m, stage, from, to, pair->bytes);
        pair->up = make_send(m, stage + 1, to, from, pair->bytes);
    }
}

/* ---- what is computed ---- */

/* A pass over a stage by one of its holders. */
static cs_pass pass_of(const maker *m, const place *at, cs_kind kind)
{
    const bool first = at->stage == 0, last = at->stage + 1 == m->job->plan->n_stages;
    cs_pass pass = {.kind = kind, .recompute = m->options->recompute};
    if (kind == CS_FORWARD) {
        pass.reads = m->received[at->holder];
        if (!last && adjacent_on_one_device(m, at->stage))
            pass.leaves = m->job->stages[at->stage].output_bytes;
    } else if (kind >= CS_BACKWARD && kind <= CS_BACKWARD_WEIGHT) {
        pass.reads = pass.entered = last ? 0 : m->job->stages[at->stage].output_bytes;
        if (!first && adjacent_on_one_device(m, at->stage - 1))
            pass.leaves = m->received[at->holder];
    }
    return pass;
}

static uint32_t make_pass(maker *m, const place *at, cs_kind kind)
{
    const cs_pass pass = pass_of(m, at, kind);
    const cs_program_step step = cs_program_whole(&m->job->stages[at->stage], &pass);
    return cs_program_class(m->builder, &step,
                            &(cs_class){.stage = at->stage,
                                        .device = at->device,
                                        .peer = CS_NONE,
                                        .weights = m->made.slots[at->holder]});
}

static void set_policies(maker *m, uint32_t holder)
{
    const cs_holder_classes *classes = &m->made.holders[holder];
    cs_stage_policies policies = {CS_NONE, CS_NONE};
    m->options->policies(m->job, m->options->params, m->builder, m->made.slots, holder, &policies);
    if (policies.forward != CS_NONE)
        cs_builder_set_policy(m->builder, classes->of[CS_FORWARD], policies.forward);
    if (policies.backward != CS_NONE)
        cs_builder_set_policy(m->builder, classes->of[CS_BACKWARD], policies.backward);
}

static void make_holder(maker *m, const place *at)
{
    uint32_t *of = m->made.holders[at->holder].of;
    for (cs_kind kind = CS_FORWARD; kind <= CS_UPDATE; kind++)
        of[kind] = kind != CS_RECOMPUTE || m->options->recompute ? make_pass(m, at, kind) : CS_NONE;
    if (m->options->policies)
        set_policies(m, at->holder);
}

static uint32_t make_reduction(maker *m, uint32_t stage)
{
    const cs_plan *plan = m->job->plan;
    int64_t bytes = m->job->stages[stage].gradient_bytes;
    if (n_replicas(m, stage) == 1 || bytes == 0)
        return CS_NONE;
    uint32_t group = cs_builder_group(m->builder, plan->devices + plan->stages[stage].first_device,
                                      n_replicas(m, stage));
    return cs_builder_collective(m->builder, CS_ALL_REDUCE, stage, group, bytes);
}

/* ---- weights that two stages share ---- */

static uint32_t count_ties(const maker *m)
{
    uint32_t n = 0, layer = 0;
    cs_tie tie;
    while (!m->options->continuous && cs_tie_next(m->job->model, m->job->plan, &layer, &tie))
        n++;
    return n;
}

/* An all-reduce of n holders of each of the two stages from number `first` on. */
static uint32_t make_tied_class(maker *m, const cs_tie *tie, uint32_t *devices, uint32_t first,
                                uint32_t n_lenders, uint32_t n_borrowers)
{
    const cs_plan *plan = m->job->plan;
    for (uint32_t i = 0; i < n_lenders; i++)
        devices[i] = plan->devices[plan->stages[tie->lender].first_device + first + i];
    for (uint32_t i = 0; i < n_borrowers; i++)
        devices[n_lenders + i] =
            plan->devices[plan->stages[tie->borrower].first_device + first + i];
    uint32_t group = cs_builder_group(m->builder, devices, n_lenders + n_borrowers);
    return cs_builder_collective(m->builder, CS_ALL_REDUCE, tie->borrower, group,
                                 tie->gradient_bytes);
}

static bool make_tied(maker *m, const cs_tie *tie, cs_tied *made)
{
    uint32_t R = n_replicas(m, tie->lender), Q = n_replicas(m, tie->borrower);
    uint32_t *devices = cs_arena_alloc(m->arena, (size_t)R + Q, sizeof(*devices));
    *made = (cs_tied){.tie = *tie, .n_classes = R == Q ? R : 1};
    made->classes = cs_arena_alloc(m->arena, made->n_classes, sizeof(*made->classes));
    if (!devices || !made->classes)
        return false;
    for (uint32_t i = 0; i < made->n_classes; i++)
        made->classes[i] = make_tied_class(m, tie, devices, i, R == Q ? 1 : R, R == Q ? 1 : Q);
    return true;
}

static bool make_ties(maker *m)
{
    uint32_t layer = 0;
    cs_tie tie;
    m->made.n_ties = count_ties(m);
    m->made.ties = cs_arena_alloc(m->arena, m->made.n_ties, sizeof(*m->made.ties));
    for (uint32_t t = 0; m->made.ties && t < m->made.n_ties; t++) {
        if (!cs_tie_next(m->job->model, m->job->plan, &layer, &tie) ||
            !make_tied(m, &tie, &m->made.ties[t]))
            return false;
    }
    return m->made.ties != NULL;
}

/* Calls `make` for all holders. */
static void for_holders(maker *m, void (*make)(maker *m, const place *at))
{
    const cs_plan *plan = m->job->plan;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        for (uint32_t r = 0; r < plan->stages[s].n_devices; r++) {
            uint32_t holder = plan->stages[s].first_device + r;
            make(m, &(place){s, holder, plan->devices[holder]});
        }
    }
}

static void make_slot(maker *m, const place *at)
{
    m->made.slots[at->holder] = cs_residents_add(m->builder, m->job, at->stage, at->device);
}

static bool reserve(maker *m)
{
    size_t n_stages = m->job->plan->n_stages, n_holders = m->job->plan->n_devices;
    cs_pipeline_classes *made = &m->made;
    made->slots = cs_arena_alloc(m->arena, n_holders, sizeof(*made->slots));
    made->holders = cs_arena_alloc(m->arena, n_holders, sizeof(*made->holders));
    made->boundaries = cs_arena_alloc(m->arena, n_stages, sizeof(*made->boundaries));
    made->reductions = cs_arena_alloc(m->arena, n_stages, sizeof(*made->reductions));
    m->received = cs_arena_alloc(m->arena, n_holders, sizeof(*m->received));
    return made->slots && made->holders && made->boundaries && made->reductions && m->received;
}

cs_status cs_pipeline_make_classes(const cs_job *job, const cs_pipeline_options *options,
                                   uint32_t n_micros, cs_builder *builder, cs_arena *arena,
                                   cs_pipeline_classes *made, cs_error *error)
{
    maker m = {job, options, n_micros, builder, arena, {0}, NULL};
    uint32_t n_stages = job->plan->n_stages;
    bool enough = reserve(&m);
    for (uint32_t s = 0; enough && s + 1 < n_stages; s++)
        enough = make_boundary(&m, s);
    if (!enough)
        return cs_error_no_memory(error);
    for_holders(&m, make_slot);
    for_holders(&m, make_holder);
    for (uint32_t s = 0; s + 1 < n_stages; s++)
        make_sends(&m, s);
    for (uint32_t s = 0; s < n_stages; s++)
        m.made.reductions[s] = make_reduction(&m, s);
    if (!make_ties(&m))
        return cs_error_no_memory(error);
    *made = m.made;
    return CS_OK;
}

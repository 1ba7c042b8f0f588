#include "schedules/pipeline-classes.h"

#include "schedules/pass-series.h"
#include "schedules/stage-buffers.h"
#include "schedules/states.h"

#include <stdlib.h>
#include <string.h>

/* A device that holds a stage, and its position in the order of groups (rank_in_groups). */
typedef struct holder_rank {
    uint64_t rank;
    uint32_t holder;
} holder_rank;

typedef struct maker {
    const cs_job *job;
    const cs_pipeline_options *options;
    uint32_t n_micros;
    cs_builder *builder;
    cs_arena *arena;
    cs_pipeline_classes made;
    int64_t *received;   /* per holder: bytes that arrive from the previous stage per micro-batch */
    uint32_t *simulated; /* grid: places of the holders of each stage */
    holder_rank *ranks;  /* grid: scratch for sorting the holders of a stage */
    uint32_t *groups;    /* grid, per stage and axes: the first group, or CS_NONE */
    uint32_t n_families;
} maker;

/* A stage on one of its holders: numbers of the stage, the holder and the device. */
typedef struct spot {
    uint32_t stage, holder, device;
} spot;

static bool has_grid(const maker *m)
{
    return m->job->plan->grid != NULL;
}

static uint32_t n_replicas(const maker *m, uint32_t stage)
{
    return m->made.n_holders[stage];
}

/* Whether no message is needed after a stage. */
static bool adjacent_on_one_device(const maker *m, uint32_t stage)
{
    return ((n_replicas(m, stage) == 1 && n_replicas(m, stage + 1) == 1) || has_grid(m)) &&
           cs_plan_device(m->job->plan, stage) == cs_plan_device(m->job->plan, stage + 1);
}

/* ---- holders ---- */

static bool is_simulated(const maker *m, uint32_t stage, uint32_t place)
{
    const cs_plan *plan = m->job->plan;
    const uint32_t device = plan->devices[plan->stages[stage].first_device + place];
    return !m->job->stands_for || m->job->stands_for[device] == device;
}

static cs_status check_grid(const maker *m, cs_error *error)
{
    const uint32_t places = cs_grid_places(m->job->plan->grid);
    for (uint32_t s = 0; s < m->job->plan->n_stages; s++) {
        const uint32_t n = m->job->plan->stages[s].n_devices;
        if (n != places)
            return cs_error_add(error, CS_INVALID,
                                "stage %u must have a device for each of the %u places of the "
                                "grid (got %u)",
                                s, places, n);
        for (uint32_t i = 0; i < places; i++) {
            if (is_simulated(m, s, i) != is_simulated(m, 0, i))
                return cs_error_add(error, CS_INVALID,
                                    "the same places must be simulated of each stage: place %u of "
                                    "stages 0 and %u differ",
                                    i, s);
        }
    }
    return CS_OK;
}

/* Finds the holders of each stage: all of its devices, or on a grid its simulated devices. */
static void find_holders(maker *m)
{
    const cs_plan *plan = m->job->plan;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const cs_stage *of = &plan->stages[s];
        for (uint32_t i = 0; i < of->n_devices; i++) {
            if (has_grid(m) && !is_simulated(m, s, i))
                continue;
            const uint32_t n = m->made.n_holders[s]++;
            m->made.devices[of->first_device + n] = plan->devices[of->first_device + i];
            if (has_grid(m))
                m->simulated[n] = i;
        }
        if (m->made.most_holders < m->made.n_holders[s])
            m->made.most_holders = m->made.n_holders[s];
    }
}

/* ---- messages between stages ---- */

static uint32_t greatest_divisor(uint32_t a, uint32_t b)
{
    while (b > 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Makes the pairs of replicas that take micro-batches in turn: pair i has micro-batches i, i + n, i
 * + 2 n, ... */
static void pair_in_turn(const maker *m, uint32_t stage, cs_boundary *boundary)
{
    uint32_t R = n_replicas(m, stage), Q = n_replicas(m, stage + 1);
    for (uint32_t i = 0; i < boundary->n; i++)
        boundary->pairs[i] =
            (cs_replica_pair){i % R, i % Q, m->job->stages[stage].output_bytes, CS_NONE, CS_NONE};
}

/* Returns the bytes of a share that come before part x of its Q parts. */
static int64_t bytes_before(int64_t bytes, uint64_t x, uint32_t Q)
{
    return bytes / Q * (int64_t)x + bytes % Q * (int64_t)x / Q;
}

/* Makes the pairs of replicas that share micro-batches. A micro-batch has R Q parts; replica i of R
 * has parts i Q to (i + 1) Q, replica j of Q has parts j R to (j + 1) R. */
static void pair_shares(const maker *m, uint32_t stage, cs_boundary *boundary)
{
    uint64_t R = n_replicas(m, stage), Q = n_replicas(m, stage + 1), from = 0;
    int64_t share = m->job->stages[stage].output_bytes;
    for (uint32_t n = 0; n < boundary->n; n++) {
        uint64_t i = from / Q, j = from / R;
        uint64_t until = (i + 1) * Q < (j + 1) * R ? (i + 1) * Q : (j + 1) * R;
        int64_t bytes = bytes_before(share, until - i * Q, (uint32_t)Q) -
                        bytes_before(share, from - i * Q, (uint32_t)Q);
        boundary->pairs[n] = (cs_replica_pair){(uint32_t)i, (uint32_t)j, bytes, CS_NONE, CS_NONE};
        from = until;
    }
}

/* Returns the number of pairs of holders at a boundary. If they take turns, there are at most as
 * many pairs as micro-batches. */
static uint32_t count_pairs(const maker *m, uint32_t stage)
{
    const uint32_t R = n_replicas(m, stage), Q = n_replicas(m, stage + 1);
    const uint32_t divisor = greatest_divisor(R, Q);
    if (has_grid(m))
        return R;
    if (m->job->replicas == CS_REPLICAS_ALL_REDUCE)
        return (uint32_t)((uint64_t)R + Q - divisor);
    const uint64_t n = (uint64_t)R / divisor * Q;
    return n > m->n_micros ? m->n_micros : (uint32_t)n;
}

static bool make_boundary(maker *m, uint32_t stage)
{
    cs_boundary *boundary = &m->made.boundaries[stage];
    const bool shares = m->job->replicas == CS_REPLICAS_ALL_REDUCE;
    boundary->n = count_pairs(m, stage);
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

/* Makes the class of a message. `stays`: the sender keeps it as a result. */
static uint32_t make_send(maker *m, uint32_t stage, uint32_t sender, uint32_t receiver,
                          int64_t bytes, bool stays)
{
    const int64_t parts = m->job->message_parts > 0 ? m->job->message_parts : 1;
    const int64_t part = (bytes + parts - 1) / parts;
    const cs_class message = cs_program_message(m->job, stage, sender, receiver, part);
    return cs_program_send_between(m->builder, &message, stays ? 0 : part,
                                   m->job->receive_buffers ? 0 : bytes);
}

static void make_sends(maker *m, uint32_t stage)
{
    const cs_plan *plan = m->job->plan;
    const uint32_t *lower = m->made.devices + plan->stages[stage].first_device;
    const uint32_t *upper = m->made.devices + plan->stages[stage + 1].first_device;
    cs_boundary *boundary = &m->made.boundaries[stage];
    const bool none = adjacent_on_one_device(m, stage) || m->job->passes_only;
    for (uint32_t i = 0; i < boundary->n && !none; i++) {
        cs_replica_pair *pair = &boundary->pairs[i];
        uint32_t from = lower[pair->lower], to = upper[pair->upper];
        const uint32_t results = m->job->stage_results;
        pair->down = make_send(m, stage, from, to, pair->bytes, results >= CS_RESULTS_BACKWARD);
        pair->up = make_send(m, stage + 1, to, from, pair->bytes,
                             results == CS_RESULTS_RETURNED || results == CS_RESULTS_ALL);
    }
}

/* ---- groups of a grid ---- */

/* Adds the groups of a stage along these axes, which are a family, in order of their first places.
 * Their ids are consecutive; returns the first one. CS_NONE when memory runs out. */
static uint32_t groups_of(maker *m, uint32_t stage, cs_axes_name name)
{
    const cs_plan *plan = m->job->plan;
    const uint32_t *places = plan->devices + plan->stages[stage].first_device;
    uint32_t *known = &m->groups[(size_t)stage * CS_N_AXES + name];
    const cs_axes axes = cs_grid_axes(plan->grid, name);
    const uint32_t n_places = cs_grid_places(plan->grid);
    uint32_t *devices =
        *known == CS_NONE ? cs_arena_alloc(m->arena, axes.size, sizeof(*devices)) : NULL;
    for (uint32_t first = 0; devices && first < n_places; first = cs_axes_next_first(axes, first)) {
        for (uint32_t rank = 0; rank < axes.size; rank++)
            devices[rank] = places[first + rank * axes.stride];
        const uint32_t group = cs_builder_group(m->builder, devices, axes.size);
        cs_builder_family(m->builder, group, m->n_families);
        *known = *known == CS_NONE ? group : *known;
    }
    m->n_families += devices != NULL;
    return *known;
}

/* Returns the position of a place in the order of all groups along the axes: groups are sorted by
 * their first places, and the places of a group are consecutive. */
static uint64_t rank_in_groups(cs_axes axes, uint32_t place)
{
    const uint32_t block = place / axes.stride / axes.size;
    const uint64_t group = (uint64_t)block * axes.stride + place % axes.stride;
    return group * axes.size + cs_axes_coordinate(axes, place);
}

static int by_rank(const void *left, const void *right)
{
    const holder_rank *a = left, *b = right;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Adds the classes of a collective over all groups that have a holder. */
static bool make_runs(maker *m, uint32_t stage, const cs_program_step *step, bool alone,
                      cs_stage_step *made)
{
    const cs_axes axes = cs_grid_axes(m->job->plan->grid, step->axes);
    const uint32_t n = m->made.n_holders[stage], first = groups_of(m, stage, step->axes);
    made->classes = cs_arena_alloc(m->arena, n, sizeof(*made->classes));
    made->members = cs_arena_alloc(m->arena, n, sizeof(*made->members));
    if (!made->classes || !made->members || first == CS_NONE)
        return false;
    for (uint32_t h = 0; h < n; h++)
        m->ranks[h] = (holder_rank){rank_in_groups(axes, m->simulated[h]), h};
    qsort(m->ranks, n, sizeof(*m->ranks), by_rank);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t group = (uint32_t)(m->ranks[i].rank / axes.size);
        const cs_exchange_class cls = {step->kind,      step->purpose,    stage,
                                       first + group,   step->bytes,      step->effects,
                                       step->n_effects, step->bytes_back, alone};
        made->members[m->ranks[i].holder] = i;
        if (i == 0 || group != m->ranks[i - 1].rank / axes.size)
            made->classes[made->n_runs++] = cs_builder_exchange(m->builder, &cls);
    }
    return true;
}

/* ---- what is computed ---- */

/* Describes a pass over a stage by one of its holders. */
static cs_program_pass pass_of(const maker *m, const spot *at, cs_kind kind, uint32_t variant)
{
    const bool first = at->stage == 0, last = at->stage + 1 == m->job->plan->n_stages;
    const bool keeps = cs_states_keeps(m->job, at->stage);
    cs_program_pass pass = {.kind = kind,
                            .recompute = m->options->recompute,
                            .results = cs_stage_pass_results(m->job, at->stage, kind),
                            .copied = kind == CS_UPDATE ? cs_states_copied(m->job, at->stage) : 0};
    if (kind == CS_FORWARD) {
        pass.reads = cs_stage_receives(m->job, at->stage) ? 0 : m->received[at->holder];
        pass.gathered = variant & CS_PASS_GATHERED;
        if (!last && adjacent_on_one_device(m, at->stage))
            pass.leaves = m->job->stages[at->stage].output_bytes;
        return pass;
    }
    pass.gathered = keeps;
    if (kind == CS_RECOMPUTE || kind == CS_UPDATE)
        return pass;
    pass.releases = keeps && (variant & CS_PASS_RELEASES);
    pass.last = variant & CS_PASS_LAST;
    pass.entered = last ? 0 : m->job->stages[at->stage].output_bytes;
    pass.reads = !last && cs_stage_receives(m->job, at->stage + 1) ? 0 : pass.entered;
    if (!first && adjacent_on_one_device(m, at->stage - 1))
        pass.leaves = m->received[at->holder];
    return pass;
}

/* Makes the class of a computation. With a policy only the first computation of a forward and the
 * last one of a backward name the weights; the version is held in between. */
static void make_computation(maker *m, const spot *at, const cs_program *program, uint32_t step,
                             cs_stage_step *made)
{
    const cs_program_step *of = &program->steps[step];
    bool named = true;
    for (uint32_t i = 0; m->options->policies && of->kind != CS_UPDATE && i < program->n; i++)
        if ((of->kind == CS_FORWARD ? i < step : i > step) && cs_step_computes(&program->steps[i]))
            named = false;
    made->classes[at->holder - m->job->plan->stages[at->stage].first_device] =
        cs_program_class(m->builder, of,
                         &(cs_class){.stage = at->stage,
                                     .device = at->device,
                                     .peer = CS_NONE,
                                     .weights = named ? m->made.slots[at->holder] : CS_NONE});
}

/* Makes the class of a copy to or from the host: a transfer of the device to itself, which takes
 * no link of the platform. */
static void make_copy(maker *m, const spot *at, const cs_program_step *of, cs_stage_step *made)
{
    const cs_class like = {.purpose = (uint8_t)of->purpose,
                           .stage = at->stage,
                           .device = at->device,
                           .peer = at->device,
                           .weights = CS_NONE,
                           .bytes = of->bytes};
    made->classes[at->holder - m->job->plan->stages[at->stage].first_device] =
        cs_program_class(m->builder, of, &like);
}

/* Makes the steps of a pass, which are the same for all holders, with room for their classes. */
static bool reserve_steps(maker *m, uint32_t stage, const cs_program *program, cs_stage_pass *pass)
{
    pass->n = program->n;
    pass->steps = cs_arena_alloc(m->arena, program->n, sizeof(*pass->steps));
    for (uint32_t k = 0; pass->steps && k < program->n; k++) {
        const cs_program_step *of = &program->steps[k];
        cs_stage_step *made = &pass->steps[k];
        made->flags = of->flags;
        made->n_waits = of->n_waits;
        memcpy(made->waits, of->waits, sizeof(made->waits));
        made->copies = cs_step_copies(of);
        if (!cs_step_computes(of) && !cs_step_copies(of))
            continue;
        pass->computes = cs_step_computes(of) ? k : pass->computes;
        made->classes = cs_arena_alloc(m->arena, n_replicas(m, stage), sizeof(*made->classes));
        if (!made->classes)
            return false;
    }
    m->made.most_steps = m->made.most_steps < program->n ? program->n : m->made.most_steps;
    return pass->steps != NULL;
}

/* Joins steps into series where a stage has one holder: its collectives have one member then. */
static bool join_steps(const maker *m, const cs_program *program, uint32_t n_holders,
                       cs_stage_pass *pass)
{
    if (!m->job->in_series || !has_grid(m) || n_holders > 1 || m->options->policies ||
        m->job->offload.layers > 0)
        return true;
    bool *starts = cs_arena_alloc(m->arena, program->n, sizeof(*starts));
    for (uint32_t k = 0; starts && k < program->n; k++) {
        const cs_program_step *step = &program->steps[k];
        for (uint32_t e = 0; e < step->n_effects; e++)
            starts[k] |= step->effects[e].bytes != 0 && !step->effects[e].at_end;
    }
    return starts && cs_pass_join(pass, starts, m->builder, m->arena);
}

/* Adds the classes of a pass for n_holders of a stage, from `at` on. */
static cs_status make_pass(maker *m, const cs_program_stage *common, const spot *at,
                           uint32_t n_holders, cs_kind kind, uint32_t variant, cs_error *error)
{
    const cs_program_pass of = pass_of(m, at, kind, variant);
    cs_stage_pass *pass = cs_pipeline_pass(&m->made, at->stage, kind, variant);
    cs_program program;
    cs_status status = cs_program_make(common, &of, &program, error);
    for (uint32_t k = 0; status == CS_OK && m->job->passes_only && k < program.n; k++)
        program.steps[k].n_effects = 0;
    bool enough = status != CS_OK || pass->steps || reserve_steps(m, at->stage, &program, pass);
    for (uint32_t k = 0; status == CS_OK && enough && k < program.n; k++) {
        cs_stage_step *made = &pass->steps[k];
        const cs_program_step *step = &program.steps[k];
        if (!cs_step_computes(step) && !cs_step_copies(step))
            enough = make_runs(m, at->stage, step, variant & CS_PASS_ALONE, made);
        for (uint32_t i = 0; enough && made->n_runs == 0 && i < n_holders; i++) {
            const uint32_t h = at->holder + i;
            const spot on = {at->stage, h, m->made.devices[h]};
            if (made->copies)
                make_copy(m, &on, step, made);
            else
                make_computation(m, &on, &program, k, made);
        }
    }
    if (status == CS_OK && enough)
        enough = join_steps(m, &program, n_holders, pass);
    cs_program_finish(&program);
    return enough ? status : cs_error_no_memory(error);
}

/* Whether a variant of a pass differs from the variants with fewer bits. */
static bool has_variant(const maker *m, cs_kind kind, uint32_t variant)
{
    static const uint8_t bits[] = {[CS_FORWARD] = CS_PASS_GATHERED | CS_PASS_ALONE,
                                   [CS_BACKWARD] = CS_PASS_RELEASES | CS_PASS_LAST | CS_PASS_ALONE,
                                   [CS_BACKWARD_INPUT] = CS_PASS_RELEASES | CS_PASS_ALONE,
                                   [CS_BACKWARD_WEIGHT] = CS_PASS_LAST,
                                   [CS_RECOMPUTE] = 0,
                                   [CS_UPDATE] = 0};
    return (variant & ~(bits[kind] & m->made.variants)) == 0;
}

static cs_status make_passes(maker *m, const cs_program_stage *common, const spot *at,
                             uint32_t n_holders, cs_error *error)
{
    for (cs_kind kind = CS_FORWARD; kind <= CS_UPDATE; kind++) {
        if ((kind == CS_BACKWARD_INPUT || kind == CS_BACKWARD_WEIGHT) && !m->options->splits)
            continue;
        for (uint32_t v = 0; v < CS_N_PASS_VARIANTS; v++) {
            if (has_variant(m, kind, v) && (kind != CS_RECOMPUTE || m->options->recompute))
                CS_TRY(make_pass(m, common, at, n_holders, kind, v, error));
        }
    }
    return CS_OK;
}

/* Sets the policy of a pass on the step that names the weights. */
static void set_policy(maker *m, uint32_t stage, uint32_t replica, cs_kind kind, uint32_t policy)
{
    for (uint32_t v = 0; v < CS_N_PASS_VARIANTS && policy != CS_NONE; v++) {
        const cs_stage_pass *pass = cs_pipeline_pass(&m->made, stage, kind, v);
        uint32_t step = kind == CS_FORWARD ? 0 : pass->computes;
        if (!has_variant(m, kind, v))
            continue;
        while (!cs_stage_step_computes(&pass->steps[step]))
            step++;
        cs_builder_set_policy(m->builder, pass->steps[step].classes[replica], policy);
    }
}

/* Makes all passes of a stage, for each holder, or for all places of a grid together. */
static cs_status make_stage(maker *m, uint32_t stage, cs_error *error)
{
    const uint32_t first = m->job->plan->stages[stage].first_device, n = n_replicas(m, stage);
    const uint32_t together = has_grid(m) ? n : 1;
    cs_program_stage common;
    cs_status status = cs_program_stage_init(m->job, stage, &common, error);
    for (uint32_t h = first; h < first + n && status == CS_OK; h += together) {
        const spot at = {stage, h, m->made.devices[h]};
        status = make_passes(m, &common, &at, together, error);
        for (uint32_t i = h; status == CS_OK && m->options->policies && i < h + together; i++) {
            cs_stage_policies made = {CS_NONE, CS_NONE};
            m->options->policies(m->job, m->options->params, m->builder, m->made.slots, i, &made);
            set_policy(m, stage, i - first, CS_FORWARD, made.forward);
            set_policy(m, stage, i - first, CS_BACKWARD, made.backward);
        }
    }
    cs_program_stage_finish(&common);
    return status;
}

static uint32_t make_reduction(maker *m, uint32_t stage)
{
    const cs_plan *plan = m->job->plan;
    int64_t bytes = m->job->stages[stage].gradient_bytes;
    if (has_grid(m) || n_replicas(m, stage) == 1 || bytes == 0)
        return CS_NONE;
    uint32_t group = cs_builder_group(m->builder, plan->devices + plan->stages[stage].first_device,
                                      n_replicas(m, stage));
    return cs_builder_collective(m->builder, CS_ALL_REDUCE, stage, group, bytes);
}

/* ---- weights that stages share ---- */

static uint32_t count_ties(const maker *m)
{
    const cs_model *model = m->job->model;
    uint32_t n = 0, layer = 0;
    cs_tie tie;
    while (!m->options->continuous &&
           cs_tie_next(model, m->job->plan, model->n_layers, &layer, &tie))
        n++;
    return n;
}

/* Finds the tied weights that include the weights of a tie; or NULL. */
static cs_tied *find_tied(maker *m, const cs_tie *tie)
{
    const cs_model *model = m->job->model;
    for (uint32_t t = 0; t < m->made.n_ties; t++) {
        const cs_tie *first = &m->made.ties[t].tie;
        if (cs_model_lender(model, first->layer) == cs_model_lender(model, tie->layer) &&
            first->gradient_bytes == tie->gradient_bytes)
            return &m->made.ties[t];
    }
    return NULL;
}

/* Finds the stages of each tied weight. There are n ties. */
static bool gather_ties(maker *m, uint32_t n)
{
    const cs_model *model = m->job->model;
    uint32_t layer = 0;
    cs_tie tie;
    m->made.ties = cs_arena_alloc(m->arena, n, sizeof(*m->made.ties));
    for (uint32_t i = 0; m->made.ties && i < n; i++) {
        if (!cs_tie_next(model, m->job->plan, model->n_layers, &layer, &tie))
            return false;
        cs_tied *tied = find_tied(m, &tie);
        if (!tied) {
            tied = &m->made.ties[m->made.n_ties++];
            *tied = (cs_tied){.tie = tie};
            tied->stages = cs_arena_alloc(m->arena, (size_t)n + 1, sizeof(*tied->stages));
            if (!tied->stages)
                return false;
            tied->stages[tied->n_stages++] = tie.lender;
        }
        tied->stages[tied->n_stages++] = tie.borrower;
    }
    return m->made.ties != NULL;
}

/* Makes the all-reduces of tied weights. On a grid each place sums its shard with the same places
 * of the other stages. */
static bool make_tied(maker *m, cs_tied *tied)
{
    const cs_plan *plan = m->job->plan;
    const cs_tie *tie = &tied->tie;
    const uint32_t n_lenders = plan->stages[tie->lender].n_devices;
    const int64_t bytes =
        has_grid(m) ? cs_states_tied(m->job, tie->layer, tie->gradient_bytes) : tie->gradient_bytes;
    size_t n_holders = 0;
    tied->paired = true;
    for (uint32_t s = 0; s < tied->n_stages; s++) {
        n_holders += plan->stages[tied->stages[s]].n_devices;
        tied->paired &= plan->stages[tied->stages[s]].n_devices == n_lenders;
    }
    const uint32_t n_groups = tied->paired ? n_lenders : 1;
    uint32_t *devices = cs_arena_alloc(m->arena, n_holders, sizeof(*devices));
    tied->classes = cs_arena_alloc(m->arena, n_groups, sizeof(*tied->classes));
    if (!devices || !tied->classes)
        return false;
    for (uint32_t i = 0; i < n_groups; i++) {
        uint32_t n = 0;
        for (uint32_t s = 0; s < tied->n_stages; s++) {
            const cs_stage *of = &plan->stages[tied->stages[s]];
            const uint32_t first = tied->paired ? i : 0, end = tied->paired ? i + 1 : of->n_devices;
            for (uint32_t h = first; h < end; h++)
                devices[n++] = plan->devices[of->first_device + h];
        }
        const uint32_t group = cs_builder_group(m->builder, devices, n);
        if (has_grid(m))
            cs_builder_family(m->builder, group, m->n_families);
        if (!has_grid(m) || is_simulated(m, 0, i))
            tied->classes[tied->n_classes++] =
                cs_builder_collective(m->builder, CS_ALL_REDUCE, tie->borrower, group, bytes);
    }
    m->n_families++;
    return true;
}

/* Adds a buffer per device for the largest gradient that any of its stages returns. If the device
 * has one stage, whose input stays with its gradient (stage-buffers.h), it adds two. */
static bool make_returned(maker *m)
{
    const cs_plan *plan = m->job->plan;
    int64_t *most = cs_arena_alloc(m->arena, m->job->n_devices, sizeof(*most));
    uint32_t *stages_of = cs_arena_alloc(m->arena, m->job->n_devices, sizeof(*stages_of));
    if (!most || !stages_of)
        return false;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const uint32_t first = plan->stages[s].first_device;
        const bool back = s > 0 && cs_stage_sends(plan, s - 1);
        for (uint32_t h = first; h < first + n_replicas(m, s); h++) {
            const uint32_t device = m->made.devices[h];
            stages_of[device]++;
            if (back && m->received[h] > most[device])
                most[device] = m->received[h];
        }
    }
    for (uint32_t d = 0; d < m->job->n_devices; d++) {
        const bool keeps_input = stages_of[d] == 1 && !m->job->receive_buffers;
        for (int i = 0; i <= keeps_input; i++)
            cs_builder_resident(m->builder, d, CS_MEMORY_BUFFERS, most[d]);
    }
    return true;
}

/* Adds the resident memory of the holders: weights, states, and receive buffers for all
 * micro-batches of a mini-batch. */
static void make_slots(maker *m)
{
    const cs_job *job = m->job;
    const int64_t n_micros = job->micro_batches;
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        const uint32_t first = job->plan->stages[s].first_device;
        const cs_residents of = cs_residents_of(job, s);
        for (uint32_t h = first; h < first + n_replicas(m, s); h++) {
            const uint32_t device = m->made.devices[h];
            m->made.slots[h] = cs_residents_add(m->builder, &of, device);
            if (cs_stage_receives(job, s))
                cs_builder_resident(m->builder, device, CS_MEMORY_BUFFERS,
                                    n_micros * m->received[h]);
            if (s + 1 < job->plan->n_stages && cs_stage_receives(job, s + 1))
                cs_builder_resident(m->builder, device, CS_MEMORY_BUFFERS,
                                    n_micros * job->stages[s].output_bytes);
        }
    }
}

#define RESERVE(m, member, count)                                                                  \
    (((m)->member = cs_arena_alloc((m)->arena, (count), sizeof(*(m)->member))) != NULL)

static bool reserve(maker *m)
{
    const size_t n_stages = m->job->plan->n_stages, n_holders = m->job->plan->n_devices;
    const size_t n_passes = n_stages * (CS_UPDATE + 1) * CS_N_PASS_VARIANTS;
    const size_t places = has_grid(m) ? cs_grid_places(m->job->plan->grid) : 0;
    const size_t n_groups = has_grid(m) ? n_stages * CS_N_AXES : 0;
    if (!RESERVE(m, made.n_holders, n_stages) || !RESERVE(m, made.devices, n_holders) ||
        !RESERVE(m, made.slots, n_holders) || !RESERVE(m, made.passes, n_passes) ||
        !RESERVE(m, made.boundaries, n_stages) || !RESERVE(m, made.reductions, n_stages) ||
        !RESERVE(m, received, n_holders) || !RESERVE(m, simulated, places) ||
        !RESERVE(m, ranks, places) || !RESERVE(m, groups, n_groups))
        return false;
    memset(m->groups, 0xff, n_groups * sizeof(*m->groups));
    return true;
}

static uint32_t variants_of(const cs_job *job, const cs_pipeline_options *options)
{
    if (!job->plan->grid)
        return 0;
    bool keeps = false;
    for (uint32_t s = 0; s < job->plan->n_stages && cs_states_zero(job) >= 3; s++)
        keeps |= cs_states_keeps(job, s);
    const bool experts = cs_grid_axes(job->plan->grid, CS_AXES_EXPERT).size > 1;
    return CS_PASS_LAST | (keeps ? CS_PASS_GATHERED | CS_PASS_RELEASES : 0) |
           (options->pairs && experts ? CS_PASS_ALONE : 0);
}

cs_status cs_pipeline_make_classes(const cs_job *job, const cs_pipeline_options *options,
                                   uint32_t n_micros, cs_builder *builder, cs_arena *arena,
                                   cs_pipeline_classes *made, cs_error *error)
{
    maker m = {
        .job = job, .options = options, .n_micros = n_micros, .builder = builder, .arena = arena};
    const uint32_t n_stages = job->plan->n_stages;
    m.made.variants = variants_of(job, options);
    if (has_grid(&m))
        CS_TRY(check_grid(&m, error));
    bool enough = reserve(&m);
    if (enough)
        find_holders(&m);
    for (uint32_t s = 0; enough && s + 1 < n_stages; s++)
        enough = make_boundary(&m, s);
    if (!enough)
        return cs_error_no_memory(error);
    if (has_grid(&m) && job->stands_for)
        cs_builder_fold(builder, job->stands_for);
    make_slots(&m);
    if (job->stage_results == CS_RESULTS_RETURNED && !make_returned(&m))
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < n_stages; s++)
        CS_TRY(make_stage(&m, s, error));
    for (uint32_t s = 0; s + 1 < n_stages; s++)
        make_sends(&m, s);
    for (uint32_t s = 0; s < n_stages; s++)
        m.made.reductions[s] = make_reduction(&m, s);
    enough = gather_ties(&m, count_ties(&m));
    for (uint32_t i = 0; enough && i < m.made.n_ties; i++)
        enough = make_tied(&m, &m.made.ties[i]);
    if (!enough)
        return cs_error_no_memory(error);
    *made = m.made;
    return CS_OK;
}

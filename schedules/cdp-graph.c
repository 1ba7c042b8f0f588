#include "schedules/cdp.h"

#include "schedules/pipeline.h"
#include "schedules/program.h"
#include "schedules/states.h"

#include <stdlib.h>
#include <string.h>

/* Variants of a class of computations. */
enum {
    LAGS = 1,   /* the computation reads theta_{t-1} */
    MAKES = 2,  /* the computation is a backward that includes the update */
    BEGINS = 4, /* zero: the stage's states are allocated */
    ENDS = 8,   /* zero: the stage's states leave the device */
    N_VARIANTS = 16
};

/* Contents of a message. */
typedef enum cargo { ACTIVATIONS, OUTPUT_GRADIENTS, GRADIENTS, WEIGHTS, STATES, N_CARGOES } cargo;

/* A device that holds a stage. */
typedef struct holder {
    uint32_t slot, update;
    uint32_t version;   /* newest version that the holder has been given */
    uint32_t installed; /* task that installed the newest version, or CS_NONE */
    /* task that installed the version before it, or CS_NONE */
    uint32_t installed_before;
    /* last message that the holder sent with its weights */
    uint32_t sent;
    /* latest forward and backward of the holder, or CS_NONE */
    uint32_t forward, backward;
    uint32_t forward_policy[2], backward_policy[2]; /* indexed by LAGS; CS_NONE: current version */
} holder;

typedef struct generator {
    const cs_job *job;
    const cs_cdp_params *params;
    cs_cdp_rule rule;
    cs_builder *builder;
    uint32_t N, n_micros; /* n_micros: number of micro-batches of the whole run */
    bool local;           /* whether a micro-batch stays on its device */
    bool zero;            /* whether states travel between devices (zero) */
    bool sharded;         /* zero with a barrier: device j keeps the states of stage j */
    bool whole;           /* whether activations are freed at the end of a micro-batch */
    bool replaces;        /* whether new weights replace older ones (CS_CDP_REPLACE) */
    cs_time interval;     /* time between starts of micro-batches: result of cs_cdp_interval */
    uint32_t *classes;    /* by backward or not, stage, holder, variant; made when needed */
    uint32_t *messages;   /* by cargo, stage, holders; made when needed */
    holder *holders;      /* N holders per stage */
    uint32_t *owners;     /* per stage: holder that made the newest version */
    uint32_t *versions;   /* per stage: its newest version */
    uint32_t *sums;       /* per stage: task that brings the sum of gradients, or CS_NONE */
    uint32_t *tokens;     /* zero, per stage: task and device of its latest use */
    uint32_t *token_at;
    uint32_t *chain; /* per micro-batch: task that its next task waits for */
    /* per micro-batch: its second task; the next micro-batch starts after it */
    uint32_t *second;
} generator;

uint32_t cs_cdp_holders(const cs_cdp_params *params, cs_cdp_rule rule, uint32_t stage)
{
    switch ((cs_cdp_setting)params->setting) {
    case CS_CDP_MULTI_GPU:
    case CS_CDP_ZERO:
        return params->n;
    case CS_CDP_MODEL_PARALLEL:
        return rule == CS_CDP_DP ? params->n : params->n - stage;
    case CS_CDP_SINGLE_GPU:
    case CS_CDP_PIPELINE:
        break;
    }
    return 1;
}

cs_time cs_cdp_interval(const cs_job *job, const cs_cdp_params *params, cs_cdp_rule rule)
{
    cs_time T = 0, last;
    bool own_devices = params->setting != CS_CDP_SINGLE_GPU && params->setting != CS_CDP_PIPELINE;
    if (rule == CS_CDP_DP || params->delay != CS_CDP_UNIFORM || !own_devices || params->n == 1)
        return 0;
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        const cs_layer_sum *sum = &job->stages[s];
        cs_time backward = cs_pipeline_add(sum->backward_input, sum->backward_weight);
        T = cs_pipeline_add(T, cs_pipeline_time(job, s, sum->forward));
        T = cs_pipeline_add(T, cs_pipeline_time(job, s, backward));
    }
    /* if the last start overflows, so does the run, which reports it */
    return cs_time_mul(T, job->iterations, &last) ? T / params->n : 0;
}

/* Whether a micro-batch reads the older version (cdp.h). The backward of the last micro-batch of t
 * - 1 on stage j (from 0) makes theta_t, in step 2Nt + 2N - 3 - j. Micro-batch i starts its forward
 * there in step 2Nt + 2i + j. */
bool cs_cdp_lags(cs_cdp_rule rule, uint32_t n, uint32_t i, uint32_t j)
{
    return rule == CS_CDP_V1 || (rule != CS_CDP_DP && i + j + 1 < n);
}

/* ---- where things are ---- */

static uint32_t n_holders(const generator *c, uint32_t j)
{
    return c->job->plan->stages[j].n_devices;
}

static uint32_t device_of(const generator *c, uint32_t j, uint32_t at)
{
    return c->job->plan->devices[c->job->plan->stages[j].first_device + at];
}

static holder *holder_of(const generator *c, uint32_t j, uint32_t at)
{
    return &c->holders[(size_t)j * c->N + at];
}

/* Returns the version that micro-batch g reads on stage j. */
static uint32_t wanted(const generator *c, uint32_t g, uint32_t j)
{
    uint32_t t = g / c->N;
    return t > 0 && cs_cdp_lags(c->rule, c->N, g % c->N, j) ? t - 1 : t;
}

/* ---- classes ---- */

/* Whether two versions of the weights travel (zero): some micro-batch reads theta_{t-1} after
 * theta_t was made. */
static bool needs_two(const generator *c, uint32_t j)
{
    return c->rule == CS_CDP_V1 || j + 1 < c->N;
}

static void add_states(const generator *c, uint32_t j, uint32_t device, int64_t sign, bool at_end)
{
    int64_t weights = c->job->stages[j].weight_bytes;
    int64_t gradients = c->job->stages[j].gradient_bytes;
    int64_t states = cs_optimizer_bytes(c->job, weights, c->job->stages[j].matrix_bytes);
    bool two = needs_two(c, j);
    cs_builder_effect(c->builder, CS_MEMORY_WEIGHTS, device, sign * weights, at_end);
    cs_builder_effect(c->builder, CS_MEMORY_GRADIENTS, device, sign * gradients, at_end);
    cs_builder_effect(c->builder, CS_MEMORY_OPTIMIZER, device, sign * states, at_end);
    cs_builder_effect(c->builder, CS_MEMORY_WEIGHT_VERSIONS, device, two ? sign * weights : 0,
                      at_end);
}

static int64_t states_bytes(const generator *c, uint32_t j)
{
    int64_t weights = c->job->stages[j].weight_bytes;
    return (needs_two(c, j) ? 2 : 1) * weights + c->job->stages[j].gradient_bytes +
           cs_optimizer_bytes(c->job, weights, c->job->stages[j].matrix_bytes);
}

/* Returns the bytes of activations that the end of a backward frees. */
static int64_t freed_activations(const generator *c, uint32_t j)
{
    int64_t bytes = 0;
    if (!c->whole)
        return c->job->stages[j].kept_bytes;
    for (uint32_t s = 0; j == 0 && s < c->N; s++)
        bytes += c->job->stages[s].kept_bytes;
    return bytes;
}

/* Adds the weights and gradients of a stage that a device does not keep, while it computes the
 * stage (sharded). */
static void borrow(const generator *c, bool backward, uint32_t j, uint32_t device)
{
    int64_t bytes = c->job->stages[j].weight_bytes;
    int64_t gradients = backward ? c->job->stages[j].gradient_bytes : 0;
    cs_builder_effect(c->builder, CS_MEMORY_WEIGHTS, device, bytes, false);
    cs_builder_effect(c->builder, CS_MEMORY_WEIGHTS, device, -bytes, true);
    cs_builder_effect(c->builder, CS_MEMORY_GRADIENTS, device, gradients, false);
    cs_builder_effect(c->builder, CS_MEMORY_GRADIENTS, device, -gradients, true);
}

/* Makes the step of a forward or backward. The workspace of a backward includes the gradient that
 * enters it. */
static cs_program_step step_of(const generator *c, bool backward, uint32_t j)
{
    cs_layer_sum sum = c->job->stages[j];
    const int64_t input = j > 0 ? sum.input_bytes : 0;
    const int64_t output = j + 1 < c->N ? sum.output_bytes : 0;
    cs_program_pass pass = {.kind = CS_FORWARD, .reads = input, .leaves = c->local ? output : 0};
    if (backward) {
        sum.kept_bytes = freed_activations(c, j);
        pass =
            (cs_program_pass){.kind = CS_BACKWARD, .reads = output, .leaves = c->local ? input : 0};
    }
    return cs_program_whole(&sum, &pass);
}

static uint32_t make_class(const generator *c, bool backward, uint32_t j, uint32_t at,
                           uint32_t variant)
{
    const holder *held = holder_of(c, j, at);
    uint32_t device = device_of(c, j, at), lags = variant & LAGS ? 1 : 0;
    uint32_t policy = backward ? held->backward_policy[lags] : held->forward_policy[lags];
    cs_program_step step = step_of(c, backward, j);
    if (variant & MAKES)
        step.duration += c->job->stages[j].update;
    uint32_t made =
        cs_program_class(c->builder, &step,
                         &(cs_class){.updates = variant & MAKES,
                                     .stage = j,
                                     .device = device,
                                     .peer = CS_NONE,
                                     .weights = held->slot,
                                     /* CS_NONE + 1 is 0, which means no policy */
                                     .policy = policy + 1,
                                     .interval = !backward && j == 0 ? c->interval : 0});
    if (c->sharded && at != j)
        borrow(c, backward, j, device);
    if (variant & BEGINS)
        add_states(c, j, device, 1, false);
    if (variant & ENDS)
        add_states(c, j, device, -1, true);
    return made;
}

static uint32_t class_of(const generator *c, bool backward, uint32_t j, uint32_t at,
                         uint32_t variant)
{
    size_t row = ((size_t)(backward ? c->N : 0) + j) * c->N + at;
    uint32_t *cls = &c->classes[row * N_VARIANTS + variant];
    if (*cls == CS_NONE)
        *cls = make_class(c, backward, j, at, variant);
    return *cls;
}

/* Makes the class of a message. Activations and their gradients are buffers at the receiver until
 * they are read; other contents are buffers until they have arrived, but states count as states
 * from the start. Arriving weights are a version; weights that replace older ones need no
 * buffer. */
static uint32_t make_message(const generator *c, cargo what, uint32_t j, uint32_t from, uint32_t to)
{
    uint32_t next = what == ACTIVATIONS ? j + 1 : what == OUTPUT_GRADIENTS ? j - 1 : j;
    uint32_t sender = device_of(c, j, from), receiver = device_of(c, next, to);
    int64_t bytes = what == ACTIVATIONS        ? c->job->stages[j].output_bytes
                    : what == OUTPUT_GRADIENTS ? c->job->stages[j].input_bytes
                    : what == STATES           ? states_bytes(c, j)
                    : what == GRADIENTS        ? c->job->stages[j].gradient_bytes
                                               : c->job->stages[j].weight_bytes;
    cs_class cls = cs_program_message(c->job, j, sender, receiver, bytes);
    if (what == WEIGHTS) {
        cls.updates = true;
        cls.weights = holder_of(c, j, to)->slot;
    }
    if (what == WEIGHTS && c->replaces)
        return cs_builder_class(c->builder, &cls);
    if (what != STATES)
        return cs_program_send(c->builder, &cls, what == GRADIENTS || what == WEIGHTS);
    uint32_t made = cs_builder_class(c->builder, &cls);
    cs_builder_effect(c->builder, CS_MEMORY_BUFFERS, sender, bytes, false);
    cs_builder_effect(c->builder, CS_MEMORY_BUFFERS, sender, -bytes, true);
    add_states(c, j, receiver, 1, false);
    return made;
}

/* Adds a message from a holder of stage j to a holder of the same or a neighbouring stage. Returns
 * its task. */
static uint32_t add_message(const generator *c, cargo what, uint32_t j, uint32_t from, uint32_t to,
                            uint32_t item, uint32_t after)
{
    size_t row = ((size_t)what * c->N + j) * c->N + from;
    uint32_t *cls = &c->messages[row * c->N + to];
    if (*cls == CS_NONE)
        *cls = make_message(c, what, j, from, to);
    uint32_t message = cs_builder_task(c->builder, *cls, item);
    cs_builder_edge(c->builder, after, message);
    return message;
}

/* ---- versions ---- */

/* Makes policies for v1 and v2, which read a fixed version. It is held from the forward to the
 * backward, so that it stays although a newer one arrives. With v1, the first read may also come
 * after the next version was made. */
static void fix_versions(const generator *c, uint32_t j, uint32_t at)
{
    holder *held = holder_of(c, j, at);
    for (uint32_t lags = 0; lags < 2; lags++) {
        cs_policy policy = {.read = CS_READ_LAG,
                            .slot = held->slot,
                            .lag = 1 + lags,
                            .writes = CS_NONE,
                            .first_held = held->slot,
                            .n_held = 1};
        held->forward_policy[lags] = cs_builder_policy(c->builder, &policy);
        policy.n_held = 0;
        policy.drops = true;
        held->backward_policy[lags] = cs_builder_policy(c->builder, &policy);
    }
    if (c->rule == CS_CDP_V1 && (n_holders(c, j) < c->N || c->zero || at + 1 == c->N))
        cs_builder_retain(c->builder, held->slot, 2, held->slot);
}

static void take_freshest(const generator *c, uint32_t j, uint32_t at)
{
    holder *held = holder_of(c, j, at);
    uint32_t note = cs_builder_register(c->builder);
    cs_policy forward = {.read = CS_READ_CURRENT,
                         .slot = held->slot,
                         .writes = note,
                         .first_held = held->slot,
                         .n_held = 1};
    cs_policy backward = {
        .read = CS_READ_REGISTER, .reads = note, .writes = CS_NONE, .drops = true};
    uint32_t forwards = cs_builder_policy(c->builder, &forward);
    uint32_t backwards = cs_builder_policy(c->builder, &backward);
    for (uint32_t lags = 0; lags < 2; lags++) {
        held->forward_policy[lags] = forwards;
        held->backward_policy[lags] = backwards;
    }
}

static void make_holder(const generator *c, uint32_t j, uint32_t at)
{
    uint32_t device = device_of(c, j, at);
    const cs_residents residents = cs_residents_of(c->job, j);
    holder *held = holder_of(c, j, at);
    *held = (holder){.installed = CS_NONE,
                     .installed_before = CS_NONE,
                     .sent = CS_NONE,
                     .forward = CS_NONE,
                     .backward = CS_NONE,
                     .forward_policy = {CS_NONE, CS_NONE},
                     .backward_policy = {CS_NONE, CS_NONE}};
    if (c->sharded) /* one version for all, on the device that keeps the stage */
        held->slot = at == 0 ? cs_residents_add(c->builder, &residents, device_of(c, j, j))
                             : holder_of(c, j, 0)->slot;
    else if (!c->zero)
        held->slot = cs_residents_add(c->builder, &residents, device);
    else
        held->slot = at == 0 ? cs_builder_slot(c->builder, j, device, 0) : holder_of(c, j, 0)->slot;
    if (c->rule == CS_CDP_FRESHEST)
        take_freshest(c, j, at);
    else if (c->rule != CS_CDP_DP)
        fix_versions(c, j, at);
    held->update =
        cs_builder_compute(c->builder, CS_UPDATE, j, device, held->slot, c->job->stages[j].update);
}

/* Records that a task brings or makes the next version at a holder. */
static void install(holder *held, uint32_t task)
{
    held->version++;
    held->installed_before = held->installed;
    held->installed = task;
}

/* Gives the holder that computes micro-batch g a version of stage j from the holder `from`, after
 * task `after`, unless it has that version.
 *
 * The message waits until the receiver has its previous version and, if versions are fixed, until
 * its last forward has read that. If the new version replaces the previous one, it also waits for
 * the receiver's last backward and for the message that forwarded the previous version. */
static void give(const generator *c, uint32_t j, uint32_t g, uint32_t version, uint32_t from,
                 uint32_t after)
{
    uint32_t to = g % n_holders(c, j);
    holder *receiver = holder_of(c, j, to), *sender = holder_of(c, j, from);
    if (receiver->version >= version)
        return;
    /* otherwise the sender still has the previous version */
    bool newest = sender->version == version;
    uint32_t message = add_message(c, WEIGHTS, j, from, to, g, after);
    cs_builder_edge(c->builder, newest ? sender->installed : sender->installed_before, message);
    cs_builder_edge(c->builder, receiver->installed, message);
    if (c->rule != CS_CDP_FRESHEST)
        cs_builder_edge(c->builder, receiver->forward, message);
    if (c->replaces) {
        cs_builder_edge(c->builder, receiver->backward, message);
        cs_builder_edge(c->builder, receiver->sent, message);
        cs_builder_edge(c->builder, sender->sent, message);
        sender->sent = message;
    }
    install(receiver, message);
}

/* Brings the version of stage j that micro-batch g reads to its holder: from the holder of g - 1 if
 * that has read the same version, else from the holder that made it. The version is sent after the
 * forward of g - 1, except for the newest one in v2, which was made just now. Called just before
 * g's forward, so all earlier time steps are in the graph. */
static void hand_on(const generator *c, uint32_t j, uint32_t g)
{
    if (c->zero || g == 0)
        return;
    uint32_t version = wanted(c, g, j), before = (g - 1) % n_holders(c, j);
    uint32_t forward = holder_of(c, j, before)->forward;
    if (wanted(c, g - 1, j) == version)
        give(c, j, g, version, before, forward);
    else
        give(c, j, g, version, c->owners[j], c->rule == CS_CDP_V1 ? forward : CS_NONE);
}

/* Records that task `made`, the last backward of a mini-batch on a stage, makes its next
 * version. */
static void own(const generator *c, uint32_t j, uint32_t g, uint32_t made)
{
    uint32_t at = g % n_holders(c, j);
    c->owners[j] = at;
    c->versions[j]++;
    install(holder_of(c, j, at), made);
    c->sums[j] = CS_NONE;
}

/* ---- gradients ---- */

/* Adds a backward's gradient to the holder's sum. After its last gradient of the mini-batch, a
 * holder passes the sum to the holder of the next micro-batch. The last holder updates the newest
 * version once that has arrived. An update without duration, and with zero any update, is part of
 * the last backward, which then waits for the sum. */
static void add_gradient(const generator *c, uint32_t j, uint32_t g, uint32_t task)
{
    uint32_t n = n_holders(c, j), at = g % n, next = (g + 1) % n;
    if (g % c->N + 1 < c->N) {
        bool last_here = g % c->N + n >= c->N;
        if (c->zero || n == 1 || !last_here)
            return;
        uint32_t message = add_message(c, GRADIENTS, j, at, next, g, task);
        cs_builder_edge(c->builder, c->sums[j], message);
        c->sums[j] = message;
        return;
    }
    uint32_t made = task;
    if (c->job->stages[j].update > 0 && !c->zero) {
        made = cs_builder_task(c->builder, holder_of(c, j, at)->update, g);
        cs_builder_edge(c->builder, c->sums[j], made);
    }
    if (!c->zero)
        cs_builder_edge(c->builder, holder_of(c, j, at)->installed, made);
    if (c->replaces)
        cs_builder_edge(c->builder, holder_of(c, j, at)->sent, made);
    own(c, j, g, made);
}

/* Ends a mini-batch of DP: all-reduces stages [first, end), which the same devices hold, after the
 * last backward; then every device updates. */
static void reduce(const generator *c, uint32_t first, uint32_t end, uint32_t collective,
                   uint32_t t)
{
    uint32_t n = n_holders(c, first), members = CS_NONE, item = t * c->N;
    if (collective != CS_NONE)
        members = cs_builder_members(c->builder, collective, item);
    for (uint32_t at = 0; at < n; at++) {
        if (members != CS_NONE)
            cs_builder_edge(c->builder, holder_of(c, first, at)->backward, members + at);
        for (uint32_t j = first; j < end; j++) {
            uint32_t update = cs_builder_task(c->builder, holder_of(c, j, at)->update, item);
            cs_builder_edge(c->builder, members == CS_NONE ? CS_NONE : members + at, update);
        }
    }
}

/* ---- tasks ---- */

/* Returns the holder that uses stage j in the time step after `step`, or CS_NONE. A forward is
 * followed by a backward and vice versa, except at the ends of the run. */
static uint32_t next_user(const generator *c, uint32_t j, uint32_t g, bool backward)
{
    for (uint32_t ahead = 1; ahead <= 2 * c->N; ahead++) {
        /* task k of micro-batch h runs in time step 2h + k */
        uint64_t step = 2 * (uint64_t)g + (backward ? 2 * c->N - 1 - j : j) + ahead;
        uint32_t forward_k = j, backward_k = 2 * c->N - 1 - j;
        if (step >= forward_k && (step - forward_k) % 2 == 0 &&
            (step - forward_k) / 2 < c->n_micros)
            return (uint32_t)((step - forward_k) / 2) % c->N;
        if (step >= backward_k && (step - backward_k) % 2 == 0 &&
            (step - backward_k) / 2 < c->n_micros)
            return (uint32_t)((step - backward_k) / 2) % c->N;
    }
    return CS_NONE;
}

static uint32_t variant_of(const generator *c, uint32_t j, uint32_t g, bool backward)
{
    uint32_t variant = cs_cdp_lags(c->rule, c->N, g % c->N, j) ? LAGS : 0;
    if (c->rule != CS_CDP_DP && backward && g % c->N + 1 == c->N &&
        (c->job->stages[j].update == 0 || c->zero))
        variant |= MAKES;
    if (!c->zero)
        return variant;
    if (c->tokens[j] == CS_NONE)
        variant |= BEGINS;
    return next_user(c, j, g, backward) != g % c->N ? variant | ENDS : variant;
}

/* Adds the message from task k of g to its next task, if that runs elsewhere. Returns the task that
 * the next task has to wait for. */
static uint32_t send_result(const generator *c, uint32_t g, uint32_t k, uint32_t task)
{
    bool backward = k >= c->N;
    uint32_t j = backward ? 2 * c->N - 1 - k : k;
    if (c->local || k + 1 == c->N || k + 1 == 2 * c->N)
        return task;
    uint32_t next = backward ? j - 1 : j + 1;
    return add_message(c, backward ? OUTPUT_GRADIENTS : ACTIVATIONS, j, g % n_holders(c, j),
                       g % n_holders(c, next), g, task);
}

/* Adds the message that brings the states from their last user (zero). */
static uint32_t bring_states(const generator *c, uint32_t j, uint32_t at, uint32_t g)
{
    if (c->tokens[j] == CS_NONE || c->token_at[j] == at)
        return c->tokens[j];
    return add_message(c, STATES, j, c->token_at[j], at, g, c->tokens[j]);
}

/* Adds task k of g, after its inputs from g itself and from g - 1, and after the states. */
static uint32_t add_compute(const generator *c, uint32_t g, uint32_t k)
{
    bool backward = k >= c->N;
    uint32_t j = backward ? 2 * c->N - 1 - k : k, at = g % n_holders(c, j);
    uint32_t variant = variant_of(c, j, g, backward);
    uint32_t states = c->zero ? bring_states(c, j, at, g) : CS_NONE;
    uint32_t task = cs_builder_task(c->builder, class_of(c, backward, j, at, variant), g);
    cs_builder_edge(c->builder, c->chain[g], task);
    cs_builder_edge(c->builder, states, task);
    if (k == 0 && g > 0 && c->rule != CS_CDP_DP && c->interval == 0)
        cs_builder_edge(c->builder, c->second[g - 1], task);
    if (k == 1)
        c->second[g] = task;
    if (variant & MAKES)
        cs_builder_edge(c->builder, c->sums[j], task);
    if (c->zero) {
        c->tokens[j] = task;
        c->token_at[j] = at;
    }
    return task;
}

static void add_task(const generator *c, uint32_t g, uint32_t k)
{
    bool backward = k >= c->N;
    uint32_t j = backward ? 2 * c->N - 1 - k : k, at = g % n_holders(c, j);
    if (!backward && c->rule != CS_CDP_DP)
        hand_on(c, j, g);
    uint32_t task = add_compute(c, g, k);
    holder *held = holder_of(c, j, at);
    c->chain[g] = send_result(c, g, k, task);
    *(backward ? &held->backward : &held->forward) = task;
    if (c->rule == CS_CDP_DP)
        return;
    if (backward) {
        add_gradient(c, j, g, task);
        return;
    }
    if (c->rule != CS_CDP_FRESHEST && !c->zero)
        cs_builder_edge(c->builder, held->installed, task);
    if (g % c->N + 1 == c->N && !c->zero) /* it will make the version after the newest one */
        give(c, j, g, c->versions[j], c->owners[j], CS_NONE);
}

/* Adds all tasks of one time step, for micro-batches first to last - 1; micro-batch g starts in
 * step distance (g - first). Forwards come first: in the paper's step all tasks run at the same
 * time. */
static void add_step(const generator *c, uint64_t step, uint32_t first, uint32_t last,
                     uint32_t distance)
{
    uint64_t ended = distance && step >= 2 * c->N ? (step - 2 * c->N) / distance : 0;
    for (uint32_t backward = 0; backward < 2; backward++) {
        for (uint64_t g = first + ended; g < last && distance * (g - first) <= step; g++) {
            uint64_t k = step - distance * (g - first);
            if (k < 2 * c->N && (k >= c->N) == (backward == 1))
                add_task(c, (uint32_t)g, (uint32_t)k);
        }
    }
}

static void add_cyclic(const generator *c)
{
    uint64_t steps = 2 * ((uint64_t)c->n_micros - 1) + 2 * c->N;
    for (uint64_t step = 0; step < steps; step++)
        add_step(c, step, 0, c->n_micros, 2);
}

/* Makes a collective over the devices for stage j, rooted at the device that keeps it; CS_NONE for
 * one device. */
static uint32_t make_rooted(const generator *c, cs_kind kind, uint32_t j)
{
    uint32_t devices[CS_CDP_LARGEST];
    for (uint32_t rank = 0; rank < c->N; rank++)
        devices[rank] = device_of(c, j, (j + rank) % c->N);
    if (c->N == 1)
        return CS_NONE;
    const cs_layer_sum *stage = &c->job->stages[j];
    return cs_builder_collective(c->builder, kind, j, cs_builder_group(c->builder, devices, c->N),
                                 kind == CS_REDUCE ? stage->gradient_bytes : stage->weight_bytes);
}

/* Adds one run of the collective. Its member `rank` follows task chain[g] of the micro-batch g on
 * that rank. Returns the first member. */
static uint32_t add_rooted(const generator *c, uint32_t collective, uint32_t j, uint32_t item)
{
    uint32_t first =
        collective == CS_NONE ? CS_NONE : cs_builder_members(c->builder, collective, item);
    for (uint32_t rank = 0; first != CS_NONE && rank < c->N; rank++)
        cs_builder_edge(c->builder, c->chain[item + (j + rank) % c->N], first + rank);
    return first;
}

/* Adds task k of all micro-batches of mini-batch t on stage j (sharded). The stage's weights are
 * broadcast before it; after a backward, gradients are summed at the device that keeps the stage.
 * Returns that device's part of the sum. */
static uint32_t add_sharded(const generator *c, const uint32_t *broadcasts, const uint32_t *sums,
                            uint32_t t, uint32_t k)
{
    uint32_t j = k < c->N ? k : 2 * c->N - 1 - k, first_g = t * c->N;
    uint32_t first = add_rooted(c, broadcasts[j], j, first_g);
    if (first != CS_NONE) /* after it, the device has the newest weights */
        cs_builder_edge(c->builder, holder_of(c, j, j)->installed, first);
    for (uint32_t at = 0; at < c->N; at++) {
        add_task(c, first_g + at, k);
        if (first != CS_NONE)
            cs_builder_edge(c->builder, first + (at + c->N - j) % c->N, c->chain[first_g + at]);
    }
    return k < c->N ? CS_NONE : add_rooted(c, sums[j], j, first_g);
}

/* Adds all tasks of ZeRO-DP: every device updates the stages it keeps after the last backward.
 * Nothing is prefetched: a broadcast begins when the previous step has ended, just as `zero` passes
 * states on. */
static void add_all_sharded(const generator *c)
{
    uint32_t broadcasts[CS_CDP_LARGEST], sums[CS_CDP_LARGEST], summed[CS_CDP_LARGEST];
    for (uint32_t j = 0; j < c->N; j++) {
        broadcasts[j] = make_rooted(c, CS_BROADCAST, j);
        sums[j] = make_rooted(c, CS_REDUCE, j);
    }
    for (uint32_t t = 0; t < c->job->iterations; t++) {
        for (uint32_t at = 0; t > 0 && at < c->N; at++)
            c->chain[t * c->N + at] = c->chain[(t - 1) * c->N + at];
        for (uint32_t k = 0; k < 2 * c->N; k++)
            summed[k < c->N ? k : 2 * c->N - 1 - k] = add_sharded(c, broadcasts, sums, t, k);
        for (uint32_t j = 0; j < c->N; j++) {
            holder *keeper = holder_of(c, j, j);
            keeper->installed = cs_builder_task(c->builder, keeper->update, t * c->N);
            cs_builder_edge(c->builder, summed[j], keeper->installed);
        }
    }
}

/* Adds all micro-batches of a mini-batch at once, or one after the other in a pipeline; then the
 * barrier. */
static void add_together(const generator *c)
{
    cs_cdp_setting setting = (cs_cdp_setting)c->params->setting;
    uint32_t distance = setting == CS_CDP_PIPELINE ? 2 : 0,
             steps = distance * (c->N - 1) + 2 * c->N;
    bool apart = setting != CS_CDP_MULTI_GPU; /* whether each stage has its own device or devices */
    uint32_t per = apart ? 1 : c->N;
    uint32_t *collectives = c->tokens; /* reused: the setting does not need the tokens */
    for (uint32_t j = 0; j < c->N && n_holders(c, j) > 1; j += per) {
        int64_t bytes = 0;
        for (uint32_t s = j; s < j + per; s++)
            bytes += c->job->stages[s].gradient_bytes;
        const cs_plan *plan = c->job->plan;
        uint32_t group = cs_builder_group(c->builder, plan->devices + plan->stages[j].first_device,
                                          n_holders(c, j));
        collectives[j] = cs_builder_collective(c->builder, CS_ALL_REDUCE, j, group, bytes);
    }
    for (uint32_t t = 0; t < c->job->iterations; t++) {
        for (uint32_t step = 0; step < steps; step++)
            add_step(c, step, t * c->N, (t + 1) * c->N, distance);
        for (uint32_t j = 0; j < c->N; j += per)
            reduce(c, j, j + per, collectives[j], t);
    }
}

static uint32_t *table(size_t n)
{
    uint32_t *made = malloc((n + 1) * sizeof(*made));
    if (made)
        memset(made, 0xff, n * sizeof(*made));
    return made;
}

static cs_status generate(generator *c, cs_error *error)
{
    size_t N = c->N;
    c->classes = table(2 * N * N * N_VARIANTS);
    c->messages = table(N_CARGOES * N * N * N);
    c->holders = calloc(N * N, sizeof(*c->holders));
    c->owners = table(N);
    c->versions = calloc(N, sizeof(*c->versions));
    c->sums = table(N);
    c->tokens = table(N);
    c->token_at = table(N);
    c->chain = table(c->n_micros);
    c->second = table(c->n_micros);
    if (!c->classes || !c->messages || !c->holders || !c->owners || !c->versions || !c->sums ||
        !c->tokens || !c->token_at || !c->chain || !c->second)
        return cs_error_no_memory(error);
    for (uint32_t j = 0; j < c->N; j++) {
        for (uint32_t at = 0; at < n_holders(c, j); at++)
            make_holder(c, j, at);
    }
    if (c->sharded)
        add_all_sharded(c);
    else if (c->rule == CS_CDP_DP)
        add_together(c);
    else
        add_cyclic(c);
    return CS_OK;
}

/* Reports frozen weights: they are not part of the states that travel between devices. */
static cs_status check_frozen(const cs_job *job, const cs_cdp_params *params, cs_error *error)
{
    for (uint32_t s = 0; s < params->n; s++)
        if (params->setting == CS_CDP_ZERO && job->stages[s].frozen_bytes > 0)
            return cs_error_add(error, CS_INVALID,
                                "the setting \"zero\" moves weights that are trained, and stage %u "
                                "has frozen ones; use another setting, or no \"lora\"",
                                s);
    return CS_OK;
}

cs_status cs_cdp_generate(const cs_job *job, const cs_cdp_params *params, cs_cdp_rule rule,
                          cs_builder *builder, cs_error *error)
{
    cs_cdp_setting setting = (cs_cdp_setting)params->setting;
    CS_TRY(check_frozen(job, params, error));
    generator c = {.job = job,
                   .params = params,
                   .rule = rule,
                   .builder = builder,
                   .N = params->n,
                   .n_micros = params->n * job->iterations,
                   .local = setting != CS_CDP_PIPELINE && setting != CS_CDP_MODEL_PARALLEL,
                   .zero = setting == CS_CDP_ZERO && rule != CS_CDP_DP,
                   .sharded = setting == CS_CDP_ZERO && rule == CS_CDP_DP,
                   .whole = params->retention == CS_CDP_BY_MICRO_BATCH,
                   .replaces = rule == CS_CDP_V2 && params->new_weights == CS_CDP_REPLACE,
                   .interval = cs_cdp_interval(job, params, rule)};
    cs_status status = generate(&c, error);
    void *all[] = {c.classes, c.messages, c.holders,  c.owners, c.versions,
                   c.sums,    c.tokens,   c.token_at, c.chain,  c.second};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]);
    return status;
}

/* The periodic pattern of a plan, as made by MadPipe. Every stage computes a forward and a backward
 * of some micro-batch in each period, a device may hold several stages, and the pattern gives all
 * start times. A plan with one stage per device may omit the pattern; it then gets the 1F1B*
 * pattern.
 *
 * A device keeps the order of the pattern. So does the link between two devices, in both directions
 * together: messages between one pair of devices wait for each other. With `timing: pattern`
 * nothing starts before its time in the pattern. With `asap` everything starts as soon as the order
 * allows, so the run is faster if the pattern has slack.
 *
 * Weights are as in PipeDream-2BW: mini-batch b reads version max(b - 1, 0), the current or the
 * previous one. A stage with A active micro-batches starts the first forward of mini-batch b when
 * all but the last A - 1 micro-batches before it have come back. The version that it needs was made
 * by the last micro-batch of mini-batch b - 2, M + 1 micro-batches earlier: M >= A - 1.
 */
#include "schedules/periodic-order.h"
#include "schedules/plan/chain-fields.h"
#include "schedules/program.h"
#include "schedules/schedule.h"
#include "schedules/states.h"

#include <math.h>
#include <stdlib.h>

static const char source[] = "Beaumont, Eyraud-Dubois, Shilova, MadPipe, ScaDL 2022 (HAL "
                             "hal-03025305), section 3";

typedef enum periodic_timing { TIMING_PATTERN, TIMING_ASAP } periodic_timing;

static const char *const timings[] = {"pattern", "asap", NULL};

typedef struct periodic_params {
    cs_chain_rules rules; /* first, because its fields are part of the table */
    uint32_t micro_batches;
    uint32_t timing; /* a periodic_timing */
} periodic_params;

static const cs_field fields[] = {
    {"micro_batches", CS_FIELD_COUNT, offsetof(periodic_params, micro_batches), .min = 1,
     .max = 1 << 20,
     .doc = "micro-batches per mini-batch, whose gradients are accumulated, M; at least A - 1, A "
            "being the most that are active on a stage"},
    {"timing", CS_FIELD_CHOICE, offsetof(periodic_params, timing), .fallback = "pattern",
     .choices = timings,
     .doc = "pattern: nothing starts before its time in the pattern; asap: as soon as the "
            "pattern's order lets it"},
    CS_CHAIN_FIELDS,
    {0},
};

static const cs_chain_rules *chain_rules(const void *params)
{
    return &((const periodic_params *)params)->rules;
}

/* ---- the chain and its pattern ---- */

/* Everything that follows from a job and is needed to execute it and to state closed forms. */
typedef struct periodic {
    const cs_job *job;
    const periodic_params *params;
    cs_chain chain;
    cs_pattern own; /* pattern made here, if the plan has none */
    const cs_pattern *pattern;
    cs_periodic_order order;
    cs_arena arena;
} periodic;

static double slowest(const cs_job *job)
{
    double speed = job->speeds[cs_plan_device(job->plan, 0)];
    for (uint32_t s = 1; s < job->plan->n_stages; s++)
        speed = fmin(speed, job->speeds[cs_plan_device(job->plan, s)]);
    return speed;
}

static cs_status make_chain(periodic *p, cs_error *error)
{
    const cs_job *job = p->job;
    cs_chain_options options = {.model = job->model,
                                .n_devices = job->n_devices,
                                .micro_samples = job->micro_samples,
                                .speed = slowest(job),
                                .memory = job->pattern ? INT64_MAX : job->memory,
                                .bandwidth = job->bandwidth,
                                .latency = job->latency,
                                .optimizer_ratio = job->optimizer_ratio,
                                .other_ratio = job->other_ratio};
    cs_chain_apply_rules(&p->params->rules, &options);
    return cs_chain_make(&options, &p->chain, error);
}

/* Finds the pattern. A plan without one must have one stage per device. */
static cs_status find_pattern(periodic *p, cs_error *error)
{
    const cs_plan *plan = p->job->plan;
    if (p->job->pattern) {
        p->pattern = p->job->pattern;
        return CS_OK;
    }
    uint32_t *holds = cs_arena_alloc(&p->arena, p->job->n_devices, sizeof(*holds));
    if (!holds)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        uint32_t device = cs_plan_device(p->job->plan, s);
        if (holds[device]++ > 0)
            return cs_error_add(error, CS_INVALID,
                                "the plan has several stages on device %u and no "
                                "\"pattern\", without which only plans with a stage per device "
                                "can be run",
                                device);
    }
    p->pattern = &p->own;
    return cs_pattern_1f1b_fit(&p->chain, plan, &p->own, error);
}

static cs_status check_micro_batches(const periodic *p, cs_error *error)
{
    for (uint32_t s = 0; s < p->job->plan->n_stages; s++) {
        int64_t active = cs_periodic_order_active(&p->order, s);
        if (p->job->micro_batches + INT64_C(1) < active)
            return cs_error_add(error, CS_INVALID,
                                "micro_batches must be at least %lld, for %lld are "
                                "active on stage %u at once, so that two versions of the weights "
                                "are enough (got %u)",
                                (long long)active - 1, (long long)active, s, p->job->micro_batches);
    }
    return CS_OK;
}

static cs_status open_periodic(periodic *p, cs_error *error)
{
    cs_arena_init(&p->arena);
    CS_TRY(make_chain(p, error));
    CS_TRY(find_pattern(p, error));
    CS_TRY(
        cs_periodic_order_make(&p->chain, p->job->plan, p->pattern, &p->arena, &p->order, error));
    return check_micro_batches(p, error);
}

static void close_periodic(periodic *p)
{
    cs_chain_finish(&p->chain);
    cs_pattern_finish(&p->own);
    cs_arena_finish(&p->arena);
}

/* ---- what is there all the time ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Division of the chain's fixed bytes: the first copy of the weights is the current version, the
 * second the previous version (once there is one), the others gradients. */
typedef struct holding {
    int64_t weights, version, gradients, states;
} holding;

static holding hold(const periodic *p, uint32_t stage)
{
    const cs_stage *at = &p->job->plan->stages[stage];
    const cs_chain *chain = &p->chain;
    int64_t one = p->job->stages[stage].weight_bytes;
    int64_t matrices = p->job->stages[stage].matrix_bytes;
    int64_t fixed = chain->sum_fixed[at->end_layer] - chain->sum_fixed[at->first_layer];
    holding held;
    held.weights = least(one + p->job->stages[stage].frozen_bytes, fixed);
    held.states = least(cs_optimizer_bytes(p->job, one, matrices), fixed - held.weights);
    held.version = least(one, fixed - held.weights - held.states);
    held.gradients = fixed - held.weights - held.states - held.version;
    return held;
}

/* Returns the bytes of a stage's message buffers: two buffers per neighbouring stage on another
 * device. */
static int64_t buffers(const periodic *p, uint32_t stage)
{
    const cs_plan *plan = p->job->plan;
    int64_t bytes = 0;
    if (stage > 0 && cs_pattern_has(plan, stage - 1, CS_PATTERN_SEND))
        bytes += 2 * p->chain.boundary[plan->stages[stage].first_layer];
    if (cs_pattern_has(plan, stage, CS_PATTERN_SEND))
        bytes += 2 * p->chain.boundary[plan->stages[stage].end_layer];
    return bytes;
}

/* Returns the largest workspace of any stage on the device. It is reserved once for all of them, as
 * planners do. */
static int64_t workspace(const periodic *p, uint32_t device)
{
    const cs_job *job = p->job;
    int64_t most = 0;
    for (uint32_t s = 0; s < job->plan->n_stages && p->params->rules.count_workspace; s++) {
        if (cs_plan_device(job->plan, s) == device && job->stages[s].workspace_bytes > most)
            most = job->stages[s].workspace_bytes;
    }
    return most;
}

static uint32_t add_residents(const periodic *p, cs_builder *builder, uint32_t stage)
{
    uint32_t device = cs_plan_device(p->job->plan, stage);
    holding held = hold(p, stage);
    cs_builder_resident(builder, device, CS_MEMORY_WEIGHTS, held.weights);
    cs_builder_resident(builder, device, CS_MEMORY_GRADIENTS, held.gradients);
    cs_builder_resident(builder, device, CS_MEMORY_OPTIMIZER, held.states);
    cs_builder_resident(builder, device, CS_MEMORY_BUFFERS, buffers(p, stage));
    uint32_t slot = cs_builder_slot(builder, stage, device, held.version);
    cs_builder_retain(builder, slot, 2, slot);
    return slot;
}

/* ---- the graph ---- */

/* Classes and tasks of one operation. */
typedef struct maker_op {
    uint32_t cls;
    uint32_t pair;   /* pair of devices of a message; else CS_NONE */
    uint32_t *tasks; /* tasks of the last `window` micro-batches, by micro-batch modulo `window` */
    bool message;
} maker_op;

typedef struct maker {
    const periodic *of;
    cs_builder *builder;
    uint32_t *slots, *updates; /* per stage: its weights, the class of its update */
    maker_op *ops;
    uint32_t *last; /* per pair of devices: its last message, or CS_NONE */
    uint64_t window, n_items;
} maker;

/* Computes an operation's time at speed 1. Returns false if it overflows. A chain rounds the time
 * of each layer, so a device with the chain's speed takes the chain's time, and other devices take
 * the time of their layers. */
static bool at_speed_one(const periodic *p, const cs_periodic_op *op, cs_time *time)
{
    const cs_layer_sum *sum = &p->job->stages[op->stage];
    double speed = p->job->speeds[op->device];
    if (speed == slowest(p->job))
        return cs_time_scale(op->takes, speed, time);
    *time = op->kind == CS_PATTERN_FORWARD ? sum->forward : sum->backward_input;
    if (op->kind == CS_PATTERN_FORWARD)
        return true;
    cs_time update = p->params->rules.count_update ? sum->update : 0;
    return cs_time_add(*time, sum->backward_weight, time) && cs_time_add(*time, update, time);
}

/* Makes the step of an operation. Message buffers and workspace are reserved throughout, as
 * planners do, so a pass only allocates and frees saved activations. */
static cs_program_step step_of(const periodic *p, const cs_periodic_op *op)
{
    const cs_stage *at = &p->job->plan->stages[op->stage];
    const int64_t *kept = p->chain.sum_kept;
    const cs_layer_sum sum = {.kept_bytes = kept[at->end_layer] - kept[at->first_layer]};
    const cs_program_pass pass = {.kind =
                                      op->kind == CS_PATTERN_FORWARD ? CS_FORWARD : CS_BACKWARD};
    cs_program_step step = cs_program_whole(&sum, &pass);
    if (!at_speed_one(p, op, &step.duration))
        step.duration = CS_TIME_MAX; /* the engine rejects this duration */
    return step;
}

static uint32_t make_class(const maker *m, const cs_periodic_op *op)
{
    const periodic *p = m->of;
    const bool message = op->kind == CS_PATTERN_SEND || op->kind == CS_PATTERN_RETURN;
    const int64_t bytes = p->chain.boundary[p->job->plan->stages[op->stage].end_layer];
    const uint32_t sender = op->kind == CS_PATTERN_RETURN ? op->stage + 1 : op->stage;
    cs_class cls = {
        .stage = op->stage, .device = op->device, .peer = CS_NONE, .weights = m->slots[op->stage]};
    if (message)
        cls = cs_program_message(p->job, sender, op->device, op->peer, bytes);
    if (p->params->timing == TIMING_PATTERN) {
        cls.release = op->first;
        cls.interval = p->order.period;
    }
    if (message)
        return cs_builder_class(m->builder, &cls);
    const cs_program_step step = step_of(p, op);
    return cs_program_class(m->builder, &step, &cls);
}

/* Returns the number of a message's pair of devices; pairs are numbered by first use along the
 * chain. */
static uint32_t pair_of(const maker *m, const cs_periodic_op *op)
{
    const cs_plan *plan = m->of->job->plan;
    if (op->device == op->peer)
        return CS_NONE;
    for (uint32_t s = 0; s < op->stage; s++) {
        uint32_t from = cs_plan_device(plan, s), to = cs_plan_device(plan, s + 1);
        if (cs_pattern_has(plan, s, CS_PATTERN_SEND) &&
            ((from == op->device && to == op->peer) || (to == op->device && from == op->peer)))
            return s;
    }
    return op->stage;
}

static void make_stages(maker *m)
{
    const cs_job *job = m->of->job;
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        m->last[s] = CS_NONE;
        m->slots[s] = add_residents(m->of, m->builder, s);
        m->updates[s] = cs_builder_compute(m->builder, CS_UPDATE, s, cs_plan_device(job->plan, s),
                                           m->slots[s], 0);
    }
    for (uint32_t d = 0; d < job->n_devices; d++)
        cs_builder_resident(m->builder, d, CS_MEMORY_WORKSPACE, workspace(m->of, d));
}

static bool make_classes(maker *m)
{
    const cs_periodic_order *order = &m->of->order;
    const cs_policy policy = {.read = CS_READ_LAG, .lag = 2, .writes = CS_NONE};
    for (uint32_t i = 0; i < order->n; i++) {
        const cs_periodic_op *op = &order->ops[i];
        maker_op *made = &m->ops[op->place];
        made->message = op->device != op->peer;
        made->cls = make_class(m, op);
        made->pair = pair_of(m, op);
        made->tasks = malloc(m->window * sizeof(*made->tasks));
        if (!made->tasks)
            return false;
        if (!made->message)
            cs_builder_set_policy(m->builder, made->cls, cs_builder_policy(m->builder, &policy));
    }
    return true;
}

/* Adds a task. Edges between operations of one device follow from its program. */
static void add_task(maker *m, const cs_periodic_op *op, uint32_t item)
{
    maker_op *made = &m->ops[op->place];
    uint64_t cell = item % m->window;
    uint32_t task = cs_builder_task(m->builder, made->cls, item), M = m->of->job->micro_batches;
    made->tasks[cell] = task;
    if (op->place > 0 && (made->message || m->ops[op->place - 1].message))
        cs_builder_edge(m->builder, m->ops[op->place - 1].tasks[cell], task);
    if (made->pair != CS_NONE) {
        cs_builder_edge(m->builder, m->last[made->pair], task);
        m->last[made->pair] = task;
    }
    if (op->kind == CS_PATTERN_BACKWARD && (item + 1) % M == 0)
        cs_builder_task(m->builder, m->updates[op->stage], item + 1 - M);
}

static void add_tasks(maker *m)
{
    const cs_periodic_order *order = &m->of->order;
    int64_t n = (int64_t)m->n_items;
    for (int64_t period = order->least_shift; period < n + order->most_shift; period++) {
        for (uint32_t i = 0; i < order->n; i++) {
            int64_t item = period - order->ops[i].shift;
            if (item >= 0 && item < n)
                add_task(m, &order->ops[i], (uint32_t)item);
        }
    }
}

static bool reserve(maker *m)
{
    uint32_t n_stages = m->of->job->plan->n_stages;
    m->slots = calloc(n_stages, sizeof(*m->slots));
    m->updates = calloc(n_stages, sizeof(*m->updates));
    m->last = calloc(n_stages, sizeof(*m->last));
    m->ops = calloc(m->of->order.n, sizeof(*m->ops));
    return m->slots && m->updates && m->last && m->ops;
}

static void release(maker *m)
{
    for (uint32_t i = 0; m->ops && i < m->of->order.n; i++)
        free(m->ops[i].tasks);
    free(m->slots);
    free(m->updates);
    free(m->last);
    free(m->ops);
}

static cs_status make_graph(const periodic *p, cs_builder *builder, cs_error *error)
{
    const cs_job *job = p->job;
    maker m = {.of = p, .builder = builder};
    cs_time all;
    m.n_items = (uint64_t)job->micro_batches * job->iterations;
    m.window = (uint64_t)(p->order.most_shift - p->order.least_shift) + 1;
    if (m.window > m.n_items)
        m.window = m.n_items;
    if (!cs_time_mul(p->order.period, (int64_t)m.n_items, &all) ||
        !cs_time_add(all, p->order.latency, &all))
        return cs_error_add(error, CS_OVERFLOW,
                            "simulated time exceeds 2^63 ps (106 days): %llu micro-batches, one in "
                            "each period of %.4g s",
                            (unsigned long long)m.n_items, cs_time_seconds(p->order.period));
    bool complete = reserve(&m);
    if (complete) {
        make_stages(&m);
        complete = make_classes(&m);
    }
    if (complete)
        add_tasks(&m);
    release(&m);
    return complete ? CS_OK : cs_error_no_memory(error);
}

/* Reports the errors of open_periodic, with their place in the file. */
static cs_status check(const cs_job *job, const void *params, const cs_json_place *place,
                       cs_error *error)
{
    periodic p = {.job = job, .params = params};
    cs_error found;
    cs_error_init(&found);
    cs_status status = open_periodic(&p, &found);
    close_periodic(&p);
    if (status == CS_OK)
        return CS_OK;
    return status == CS_INVALID ? cs_json_invalid(place, error, "%s", found.text)
                                : cs_error_add(error, status, "%s", found.text);
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    periodic p = {.job = job, .params = params};
    cs_status status = open_periodic(&p, error);
    if (status == CS_OK)
        status = make_graph(&p, builder, error);
    close_periodic(&p);
    return status;
}

/* ---- closed forms ---- */

/* Whether every device takes exactly the chain's time for every operation. */
static bool takes_as_said(const periodic *p)
{
    cs_time time;
    for (uint32_t i = 0; i < p->order.n; i++) {
        const cs_periodic_op *op = &p->order.ops[i];
        double speed = p->job->speeds[op->device];
        if (op->device == op->peer && (!at_speed_one(p, op, &time) ||
                                       !cs_time_at_speed(time, speed, &time) || time != op->takes))
            return false;
    }
    return true;
}

/* Whether the run equals the pattern, to the picosecond. */
static bool is_exact(const periodic *p, bool valid)
{
    return valid && p->params->timing == TIMING_PATTERN && p->job->own_links && !p->job->blocking &&
           takes_as_said(p);
}

enum { PERIOD, MAKESPAN, BUBBLE, PEAK_ACTIVATIONS, PEAK_MEMORY, PEAK_VERSIONS };

static const cs_formula formulas[] = {
    [PERIOD] = {CS_FIGURE_ITERATION_TIME, "M T, T the period of the pattern"},
    [MAKESPAN] =
        {CS_FIGURE_MAKESPAN,
         "(N - 1) T and the time of one micro-batch from end to end, N = M per mini-batch"},
    [BUBBLE] = {CS_FIGURE_BUBBLE,
                "1 - N U / (P makespan), U what a micro-batch takes of all devices"},
    [PEAK_ACTIVATIONS] = {CS_FIGURE_PEAK_ACTIVATIONS, "the most in a period of the pattern"},
    [PEAK_MEMORY] = {CS_FIGURE_PEAK_MEMORY,
                     "copies of the weights, 2a per boundary, workspace, and activations"},
    [PEAK_VERSIONS] = {CS_FIGURE_PEAK_VERSIONS, "2 versions"},
    {0}};

static const char assumes[] =
    "start times of the pattern, one speed, a link of its own for each pair of devices";

static cs_status add_times(const periodic *p, bool exact, cs_forms *forms, cs_error *error)
{
    const cs_job *job = p->job;
    int64_t n = (int64_t)job->micro_batches * job->iterations;
    cs_form form = {.figure = CS_FIGURE_ITERATION_TIME,
                    .device = CS_NONE,
                    .exact = p->order.period * job->micro_batches,
                    .formula = formulas[PERIOD].text,
                    .source = source,
                    .applies = exact && job->iterations > 1,
                    .assumes = assumes};
    cs_status status = cs_forms_add(forms, &form, error);
    form.figure = CS_FIGURE_MAKESPAN;
    form.exact = (n - 1) * p->order.period + p->order.latency;
    form.formula = formulas[MAKESPAN].text;
    form.applies = exact;
    if (status == CS_OK)
        status = cs_forms_add(forms, &form, error);
    double load = (double)cs_chain_load(&p->chain, 0, p->chain.n_layers);
    double all = (double)form.exact * job->n_devices;
    form.figure = CS_FIGURE_BUBBLE;
    form.exact = 0;
    form.fraction = all > 0 ? 1 - (double)n * load / all : 0;
    form.formula = formulas[BUBBLE].text;
    return status == CS_OK ? cs_forms_add(forms, &form, error) : status;
}

/* Whether the run contains a whole period during which every stage has its full number of
 * micro-batches, all begun after its first update. (A micro-batch counts as present at the instant
 * when a stage frees it; the engine may free it earlier within that instant.) */
static bool becomes_steady(const periodic *p)
{
    const cs_plan *plan = p->job->plan;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        if (cs_chain_load(&p->chain, plan->stages[s].first_layer, plan->stages[s].end_layer) == 0)
            return false;
    }
    int64_t n = (int64_t)p->job->micro_batches * p->job->iterations;
    return n >= p->job->micro_batches + p->order.most_shift - p->order.least_shift + 2;
}

static cs_status add_peaks(const periodic *p, const cs_pattern_use *use, uint32_t device,
                           cs_forms *forms, cs_error *error)
{
    cs_form form = {.figure = CS_FIGURE_PEAK_ACTIVATIONS,
                    .device = device,
                    .exact = use->peak - use->fixed,
                    .formula = formulas[PEAK_ACTIVATIONS].text,
                    .source = source,
                    .applies = becomes_steady(p),
                    .assumes =
                        "a run that reaches the pattern's steady state, stages that take time"};
    cs_status status = cs_forms_add(forms, &form, error);
    form.figure = CS_FIGURE_PEAK_MEMORY;
    form.exact = use->peak + workspace(p, device);
    form.formula = formulas[PEAK_MEMORY].text;
    if (status == CS_OK)
        status = cs_forms_add(forms, &form, error);
    form.figure = CS_FIGURE_PEAK_VERSIONS;
    form.exact = 2;
    form.formula = formulas[PEAK_VERSIONS].text;
    form.applies = true;
    form.assumes = "micro_batches of at least A - 1";
    return status == CS_OK ? cs_forms_add(forms, &form, error) : status;
}

static bool holds_stage(const cs_job *job, uint32_t device)
{
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        if (cs_plan_device(job->plan, s) == device)
            return true;
    }
    return false;
}

/* Adds the closed forms. A pattern made for other times, for example of another platform, runs too,
 * but its promises do not hold. */
static cs_status add_forms(periodic *p, cs_forms *forms, cs_error *error)
{
    uint32_t n = p->job->n_devices;
    cs_pattern_use *uses = cs_arena_alloc(&p->arena, n, sizeof(*uses));
    if (!uses)
        return cs_error_no_memory(error);
    cs_status checked = cs_pattern_check(&p->chain, p->job->plan, p->pattern, uses, NULL);
    bool valid = checked == CS_OK;
    if (!valid && checked != CS_LIMIT)
        return cs_error_no_memory(error);
    cs_status status = add_times(p, is_exact(p, valid), forms, error);
    for (uint32_t d = 0; d < n && valid && status == CS_OK; d++) {
        if (holds_stage(p->job, d))
            status = add_peaks(p, &uses[d], d, forms, error);
    }
    return status;
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    periodic p = {.job = job, .params = params};
    cs_status status = open_periodic(&p, error);
    if (status == CS_OK)
        status = add_forms(&p, forms, error);
    close_periodic(&p);
    return status;
}

const cs_schedule cs_schedule_periodic = {
    .name = "periodic",
    .summary = "the periodic pattern of a plan: any stages on any device, two weight versions",
    .source = source,
    .formulas = formulas,
    .fields = fields,
    .params_size = sizeof(periodic_params),
    .mesh = {.pipeline = CS_LENGTH_DEVICES,
             .no_grid = "runs plans whose stages have one device each"},
    .asynchronous = true,
    .micro_batches = offsetof(periodic_params, micro_batches),
    .check = check,
    .chain_rules = chain_rules,
    .generate = generate,
    .closed_forms = closed_forms,
};

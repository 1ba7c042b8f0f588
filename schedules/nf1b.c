/* nF1B, the schedule of TiMePReSt. The forward of a mini-batch passes through the W workers in N
 * micro-batches, its backward in one piece. A free worker first takes a ready backward, the lowest
 * mini-batch if there are several, and otherwise the next forward in order; worker 1 injects
 * whenever it is free. No weights are stashed for the backward. On all workers it uses the newest
 * version that is complete when it starts on worker W; the forward of a micro-batch uses the newest
 * one complete when it is injected.
 *
 * When a version is complete is a parameter. By the paper's text, a mini-batch's update is complete
 * when its backward ends on worker 1. Alternatives to study: when it ends on worker W (the other
 * workers do not have this version yet, so nothing can hold it and it is only recorded); or every
 * stage uses its own newest version at each start. nf1b.md derives the consequences.
 *
 * The paper runs the backward once for all samples of a mini-batch, with the time and workspace of
 * that many samples. The other reading, N backwards of one micro-batch each without a gap, is a
 * parameter; it differs if N times the samples do not take N times as long.
 *
 * Memory of a worker: activations of a micro-batch from the start of its forward to the end of its
 * mini-batch's backward. Messages have buffers as in other pipelines (pipeline.h).
 */
#include "schedules/pipeline.h"
#include "schedules/program.h"
#include "schedules/states.h"
#include "sim/base/units.h"

#include <math.h>
#include <stdlib.h>

static const char source[] = "Dutta et al., TiMePReSt, 2024 (arXiv 2410.14312)";

enum { PRIORITY_FORWARD, PRIORITY_BACKWARD };

typedef enum backward_pass { OF_MINI_BATCH, OF_MICRO_BATCHES } backward_pass;

static const char *const pass_names[] = {"mini_batch", "micro_batches", NULL};

typedef enum version_at { AT_FIRST_WORKER, AT_LAST_WORKER, AT_STAGE } version_at;

static const char *const version_names[] = {"first_worker", "last_worker", "per_stage", NULL};

typedef struct nf1b_params {
    uint32_t workers, micro_batches, backward_pass, in_flight, version_at;
    double backward;
    bool strict;
} nf1b_params;

static const cs_field fields[] = {
    {"workers", CS_FIELD_COUNT, offsetof(nf1b_params, workers), .fallback = "0", .max = 1 << 20,
     .doc = "number of workers, W, one per device; 0: as many as the platform has devices"},
    {"micro_batches", CS_FIELD_COUNT, offsetof(nf1b_params, micro_batches), .min = 1,
     .max = 1 << 20, .doc = "micro-batches per mini-batch, N"},
    {"backward", CS_FIELD_NUMBER, offsetof(nf1b_params, backward), .fallback = "0", .max = 1e9,
     .doc = "time of a mini-batch's backward, divided by that of a micro-batch's forward, on each "
            "worker; 0: as in the model"},
    {"backward_pass", CS_FIELD_CHOICE, offsetof(nf1b_params, backward_pass),
     .fallback = "mini_batch", .choices = pass_names,
     .doc = "what one backward computes, which determines its time and workspace; mini_batch: all "
            "samples of the mini-batch, as in the paper; micro_batches: one micro-batch, N times"},
    {"in_flight", CS_FIELD_COUNT, offsetof(nf1b_params, in_flight), .fallback = "0",
     .doc = "most mini-batches that have entered and are not yet updated on the first worker; 0: "
            "no limit; "
            "memory then grows with the run if a later worker is slower"},
    {"version_at", CS_FIELD_CHOICE, offsetof(nf1b_params, version_at), .fallback = "first_worker",
     .choices = version_names,
     .doc = "the worker whose update makes a mini-batch's version complete for all; per_stage: "
            "each stage for itself"},
    {"strict", CS_FIELD_BOOL, offsetof(nf1b_params, strict), .fallback = "false",
     .doc = "a task does not see an update that ends at the very instant the task starts"},
    {0},
};

typedef struct worker_classes {
    uint32_t forward, backward;
    uint32_t send_forward;  /* message to the next worker; CS_NONE on the last worker */
    uint32_t send_backward; /* message to the previous worker; CS_NONE on the first worker */
} worker_classes;

typedef struct generator {
    const cs_job *job;
    const nf1b_params *params;
    cs_builder *builder;
    uint32_t n_workers;
    uint32_t *slots;
    worker_classes *classes;
    uint32_t *last_forwards;   /* per micro-batch of a mini-batch: its forward on the last worker */
    uint32_t *first_backwards; /* per mini-batch: its backward on the first worker */
} generator;

static uint32_t ranks(const void *params, uint32_t n_layers)
{
    (void)n_layers;
    return ((const nf1b_params *)params)->workers;
}

static bool takes_whole(const void *params)
{
    return ((const nf1b_params *)params)->backward_pass == OF_MINI_BATCH;
}

static const char *reading(const void *params)
{
    return takes_whole(params) ? "one backward of all samples of a mini-batch"
                               : "a mini-batch's backward as one of each micro-batch in turn";
}

/* Returns the sum over the layers that a worker's backward computes at once. */
static const cs_layer_sum *computed_at_once(const cs_job *job, const nf1b_params *params,
                                            uint32_t worker)
{
    return takes_whole(params) ? &job->whole[worker] : &job->stages[worker];
}

/* Computes the time of a mini-batch's backward with its update, at speed 1. Returns false if it
 * overflows. */
static bool backward_time(const cs_job *job, const nf1b_params *params, uint32_t worker,
                          cs_time *time)
{
    const cs_layer_sum *sum = &job->stages[worker];
    double scaled = params->backward * (double)sum->forward;
    if (params->backward == 0) {
        const cs_layer_sum *pass = computed_at_once(job, params, worker);
        int64_t passes = takes_whole(params) ? 1 : job->micro_batches;
        if (!cs_time_mul(pass->backward_input + pass->backward_weight, passes, time))
            return false;
    } else if (scaled < (double)CS_TIME_MAX / 2) {
        *time = llround(scaled);
    } else {
        return false;
    }
    return cs_time_add(*time, sum->update, time);
}

/* ---- versions ---- */

/* Makes the version policy of one worker's forwards or backwards: they read the version that the
 * choosing worker picked. */
static cs_policy follow(uint32_t note, bool by_batch, bool notional)
{
    return (cs_policy){.read = CS_READ_REGISTER,
                       .reads = note,
                       .writes = CS_NONE,
                       .by_batch = by_batch,
                       .notional = notional,
                       .drops = !notional};
}

static cs_policy lead(const generator *g, uint32_t note, bool by_batch, bool notional)
{
    uint32_t slot = g->slots[notional ? g->n_workers - 1 : 0];
    return (cs_policy){.read = CS_READ_CURRENT,
                       .slot = slot,
                       .strict = g->params->strict,
                       .writes = note,
                       .by_batch = by_batch,
                       .notional = notional,
                       .drops = !notional,
                       .first_held = g->slots[0],
                       .n_held = notional ? 0 : g->n_workers};
}

static void set_policy(const generator *g, uint32_t cls, const cs_policy *policy)
{
    cs_builder_set_policy(g->builder, cls, cs_builder_policy(g->builder, policy));
}

/* Makes policies for a common choice: worker 1 picks the version for all forwards of a micro-batch,
 * worker W for the backward of a mini-batch. A slot keeps every version that may still be picked; a
 * strict reader may pick the version before it. */
static void choose_together(const generator *g, bool notional)
{
    uint32_t forward = cs_builder_register(g->builder), backward = cs_builder_register(g->builder);
    uint32_t last = g->n_workers - 1;
    for (uint32_t w = 0; w < g->n_workers; w++) {
        cs_policy forwards =
            w == 0 ? lead(g, forward, false, notional) : follow(forward, false, notional);
        cs_policy backwards =
            w == last ? lead(g, backward, true, notional) : follow(backward, true, notional);
        set_policy(g, g->classes[w].forward, &forwards);
        set_policy(g, g->classes[w].backward, &backwards);
        if (!notional)
            cs_builder_retain(g->builder, g->slots[w], g->params->strict ? 2 : 1, g->slots[0]);
    }
}

static void choose_alone(const generator *g)
{
    for (uint32_t w = 0; g->params->strict && w < g->n_workers; w++) {
        cs_policy own = {
            .read = CS_READ_CURRENT, .slot = g->slots[w], .strict = true, .writes = CS_NONE};
        set_policy(g, g->classes[w].forward, &own);
        set_policy(g, g->classes[w].backward, &own);
        cs_builder_retain(g->builder, g->slots[w], 2, g->slots[w]);
    }
}

/* ---- classes ---- */

static uint32_t make_forward(const generator *g, uint32_t worker)
{
    const cs_layer_sum *sum = &g->job->stages[worker];
    const cs_program_pass pass = {.kind = CS_FORWARD, .reads = worker > 0 ? sum->input_bytes : 0};
    const cs_program_step step = cs_program_whole(sum, &pass);
    return cs_program_class(g->builder, &step,
                            &(cs_class){.priority = PRIORITY_FORWARD,
                                        .stage = worker,
                                        .device = cs_plan_device(g->job->plan, worker),
                                        .peer = CS_NONE,
                                        .weights = g->slots[worker]});
}

/* Makes the class of a backward, which frees everything that the mini-batch's micro-batches have
 * saved and sent. */
static uint32_t make_backward(const generator *g, uint32_t worker, cs_time duration)
{
    const cs_layer_sum *sum = &g->job->stages[worker];
    const int64_t n = g->job->micro_batches;
    const bool last = worker + 1 == g->n_workers;
    cs_layer_sum computed = *computed_at_once(g->job, g->params, worker);
    const cs_program_pass pass = {.kind = CS_BACKWARD,
                                  .reads = last ? 0 : n * sum->output_bytes,
                                  .entered = last ? 0 : computed.output_bytes};
    computed.kept_bytes = n * sum->kept_bytes;
    cs_program_step step = cs_program_whole(&computed, &pass);
    step.duration = duration;
    return cs_program_class(g->builder, &step,
                            &(cs_class){.updates = true,
                                        .priority = PRIORITY_BACKWARD,
                                        .stage = worker,
                                        .device = cs_plan_device(g->job->plan, worker),
                                        .peer = CS_NONE,
                                        .weights = g->slots[worker]});
}

static uint32_t make_send(const generator *g, uint32_t from, uint32_t to, int64_t bytes)
{
    const cs_plan *plan = g->job->plan;
    const cs_class message = cs_program_message(g->job, from, cs_plan_device(plan, from),
                                                cs_plan_device(plan, to), bytes);
    return cs_program_send(g->builder, &message, false);
}

static cs_status make_worker(const generator *g, uint32_t worker, cs_error *error)
{
    worker_classes *classes = &g->classes[worker];
    int64_t n = g->job->micro_batches;
    cs_time duration;
    if (!backward_time(g->job, g->params, worker, &duration))
        return cs_error_add(error, CS_OVERFLOW,
                            "nf1b: the backward of device %u takes 2^63 ps or more",
                            cs_plan_device(g->job->plan, worker));
    cs_builder_queue(g->builder, cs_plan_device(g->job->plan, worker), CS_QUEUE_PRIORITY);
    classes->forward = make_forward(g, worker);
    classes->backward = make_backward(g, worker, duration);
    classes->send_forward = CS_NONE;
    classes->send_backward = CS_NONE;
    if (worker + 1 < g->n_workers)
        classes->send_forward =
            make_send(g, worker, worker + 1, g->job->stages[worker].output_bytes);
    if (worker > 0)
        classes->send_backward =
            make_send(g, worker, worker - 1, n * g->job->stages[worker - 1].output_bytes);
    return CS_OK;
}

static cs_status make_classes(const generator *g, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t w = 0; w < g->n_workers; w++) {
        const cs_residents of = cs_residents_of(g->job, w);
        g->slots[w] = cs_residents_add(g->builder, &of, cs_plan_device(g->job->plan, w));
    }
    for (uint32_t w = 0; w < g->n_workers && status == CS_OK; w++)
        status = make_worker(g, w, error);
    if (status != CS_OK)
        return status;
    if (g->params->version_at == AT_STAGE)
        choose_alone(g);
    else
        choose_together(g, g->params->version_at == AT_LAST_WORKER);
    return CS_OK;
}

/* ---- tasks ---- */

/* Adds a task that waits for `before`, and the message with its result. Returns the task that the
 * next worker waits for. */
static uint32_t add_hop(const generator *g, uint32_t cls, uint32_t send, uint32_t item,
                        uint32_t before, uint32_t *task)
{
    *task = cs_builder_task(g->builder, cls, item);
    cs_builder_edge(g->builder, before, *task);
    if (send == CS_NONE)
        return *task;
    uint32_t message = cs_builder_task(g->builder, send, item);
    cs_builder_edge(g->builder, *task, message);
    return message;
}

static void add_forwards(const generator *g, uint32_t batch, uint32_t micro)
{
    uint32_t item = batch * g->job->micro_batches + micro, limit = g->params->in_flight, task = 0;
    uint32_t before = limit > 0 && batch >= limit ? g->first_backwards[batch - limit] : CS_NONE;
    for (uint32_t w = 0; w < g->n_workers; w++)
        before = add_hop(g, g->classes[w].forward, g->classes[w].send_forward, item, before, &task);
    g->last_forwards[micro] = task;
}

static void add_backwards(const generator *g, uint32_t batch)
{
    uint32_t item = batch * g->job->micro_batches, before = CS_NONE, task = 0;
    for (uint32_t w = g->n_workers; w-- > 0;) {
        before =
            add_hop(g, g->classes[w].backward, g->classes[w].send_backward, item, before, &task);
        for (uint32_t micro = 0; w + 1 == g->n_workers && micro < g->job->micro_batches; micro++)
            cs_builder_edge(g->builder, g->last_forwards[micro], task);
    }
    g->first_backwards[batch] = task;
}

static cs_status add_all(generator *g, cs_error *error)
{
    g->slots = calloc(g->n_workers, sizeof(*g->slots));
    g->classes = calloc(g->n_workers, sizeof(*g->classes));
    g->last_forwards = calloc(g->job->micro_batches, sizeof(*g->last_forwards));
    g->first_backwards = calloc(g->job->iterations, sizeof(*g->first_backwards));
    if (!g->slots || !g->classes || !g->last_forwards || !g->first_backwards)
        return cs_error_no_memory(error);
    cs_status status = make_classes(g, error);
    for (uint32_t batch = 0; batch < g->job->iterations && status == CS_OK; batch++) {
        for (uint32_t micro = 0; micro < g->job->micro_batches; micro++)
            add_forwards(g, batch, micro);
        add_backwards(g, batch);
    }
    return status;
}

/* Checks strict readers. Such a reader may want the version before the current instant. A slot
 * keeps that version over one update only, so no second update may happen at that instant. The
 * version is picked by worker 1 for all workers, or by each worker separately. */
static cs_status check_strict(const cs_job *job, const nf1b_params *params,
                              const cs_json_place *place, cs_error *error)
{
    uint32_t choosers = params->version_at == AT_STAGE          ? job->plan->n_stages
                        : params->version_at == AT_FIRST_WORKER ? 1
                                                                : 0; /* no version is kept */
    cs_json_place at = {.up = place, .key = "strict"};
    for (uint32_t w = 0; params->strict && w < choosers; w++) {
        cs_time backward;
        if (backward_time(job, params, w, &backward) && cs_pipeline_time(job, w, backward) == 0)
            return cs_json_invalid(&at, error,
                                   "must be false where the backward of a mini-batch takes no "
                                   "time, as on device %u: which update was there before an "
                                   "instant with several is not defined",
                                   cs_plan_device(job->plan, w));
    }
    return CS_OK;
}

/* Checks the job. `workers` matches the devices here unless it leaves the number to the
 * platform. */
static cs_status check(const cs_job *job, const void *params, const cs_json_place *place,
                       cs_error *error)
{
    cs_json_place at = {.up = place, .key = "workers"};
    if (job->plan->n_stages < 2)
        return cs_json_invalid(&at, error, "must be at least 2, a device each (got %u)",
                               job->plan->n_stages);
    return check_strict(job, params, place, error);
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    generator g = {
        .job = job, .params = params, .builder = builder, .n_workers = job->plan->n_stages};
    cs_status status = add_all(&g, error);
    free(g.slots);
    free(g.classes);
    free(g.last_forwards);
    free(g.first_backwards);
    return status;
}

/* ---- without a limit in flight ---- */

/* Computes the time of a mini-batch on a worker, N f + b. Returns false if it overflows. */
static bool worker_time(const cs_job *job, const nf1b_params *params, uint32_t worker,
                        cs_time *forwards, cs_time *all)
{
    cs_time backward;
    return backward_time(job, params, worker, &backward) &&
           cs_time_mul(cs_pipeline_time(job, worker, job->stages[worker].forward),
                       job->micro_batches, forwards) &&
           cs_time_add(*forwards, cs_pipeline_time(job, worker, backward), all);
}

/* Warns of unlimited growth. Without a limit worker 1 is never idle: it injects whenever no
 * backward is ready. No more backwards arrive than the slowest worker completes, so if that worker
 * takes longer per mini-batch, more goes in than comes back (nf1b.md). Blocking messages also
 * occupy worker 1; they are not counted here. */
static void warn(const cs_job *job, const void *params, const cs_json_place *place,
                 cs_error *warnings)
{
    const cs_json_place at = {.up = place, .key = "in_flight"};
    cs_time forwards, first, slowest, own;
    uint32_t worker = 0;
    if (((const nf1b_params *)params)->in_flight > 0 || job->blocking ||
        !worker_time(job, params, 0, &forwards, &first))
        return;
    slowest = first;
    for (uint32_t w = 1; w < job->plan->n_stages; w++) {
        cs_time unused;
        if (worker_time(job, params, w, &unused, &own) && own > slowest) {
            slowest = own;
            worker = w;
        }
    }
    if (worker == 0)
        return;
    char text[2][CS_UNITS_TEXT_BYTES];
    (void)cs_json_invalid(
        &at, warnings,
        "0 sets no limit, and memory grows without bound: a mini-batch takes %s on device %u, and "
        "%s on device %u, which injects the next one whenever it is free; a limit bounds what is "
        "kept to that many mini-batches",
        cs_units_format((double)slowest / (double)CS_PS_PER_SEC, CS_QUANTITY_TIME, 4, text[0],
                        sizeof(text[0])),
        cs_plan_device(job->plan, worker),
        cs_units_format((double)first / (double)CS_PS_PER_SEC, CS_QUANTITY_TIME, 4, text[1],
                        sizeof(text[1])),
        cs_plan_device(job->plan, 0));
}

/* ---- closed forms ---- */

/* Times of a micro-batch's forward and a mini-batch's backward on the slowest worker. */
typedef struct nf1b_times {
    cs_time forward, backward;
    bool equal; /* whether all workers are equal, and messages take no time and occupy no worker */
} nf1b_times;

static nf1b_times times_of(const cs_job *job, const nf1b_params *params)
{
    nf1b_times times = {.equal = job->latency == 0 && isinf(job->bandwidth) && !job->blocking};
    for (uint32_t w = 0; w < job->plan->n_stages; w++) {
        cs_time backward;
        cs_time forward = cs_pipeline_time(job, w, job->stages[w].forward);
        backward = backward_time(job, params, w, &backward) ? cs_pipeline_time(job, w, backward)
                                                            : CS_TIME_MAX;
        times.equal &= w == 0 || (forward == times.forward && backward == times.backward);
        times.forward = forward > times.forward ? forward : times.forward;
        times.backward = backward > times.backward ? backward : times.backward;
    }
    return times;
}

/* Returns the smallest k with k * period >= path, or > path if an update that ends at that very
 * instant is not visible (nf1b.md). */
static int64_t derived_difference(const cs_job *job, const nf1b_params *params,
                                  const nf1b_times *times)
{
    __int128 path = (__int128)times->backward * job->plan->n_stages;
    __int128 period = (__int128)times->forward * job->micro_batches + times->backward;
    if (period == 0)
        return 1;
    return (int64_t)(params->strict ? path / period + 1 : (path + period - 1) / period);
}

/* Whether times are multiples, so that on every worker a backward arrives exactly when a forward
 * ends. */
static bool are_multiples(const nf1b_times *times)
{
    return times->forward > 0 && times->backward > 0 && times->backward % times->forward == 0;
}

static cs_status add_period(const cs_job *job, const nf1b_params *params, const nf1b_times *times,
                            cs_forms *forms, cs_error *error)
{
    cs_time period;
    if (!cs_time_mul(times->forward, job->micro_batches, &period) ||
        !cs_time_add(period, times->backward, &period))
        return CS_OK; /* if the closed form overflows, the run does too */
    cs_form form = {.figure = CS_FIGURE_ITERATION_TIME,
                    .device = CS_NONE,
                    .exact = period,
                    .formula = "N f + b per mini-batch",
                    .source = source,
                    .applies = times->equal && params->in_flight == 0 && are_multiples(times) &&
                               job->iterations >= 4 * job->plan->n_stages,
                    .assumes = "b a multiple of f, equal workers, free messages, no limit in "
                               "flight, a steady state"};
    return cs_forms_add(forms, &form, error);
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    const nf1b_params *given = params;
    nf1b_times times = times_of(job, given);
    int64_t W = job->plan->n_stages, N = job->micro_batches;
    int64_t derived = derived_difference(job, given, &times);
    bool usual = times.equal && given->in_flight == 0 && given->version_at == AT_FIRST_WORKER &&
                 times.forward > 0 && (int64_t)job->iterations >= 2 * derived + 2 &&
                 /* until then, versions are the initial weights */
                 (int64_t)job->iterations / 4 + 1 >= derived;
    cs_form paper = {.figure = CS_FIGURE_VERSION_DIFFERENCE,
                     .device = CS_NONE,
                     .exact = (W + N - 2) / N,
                     .formula = "floor((W + N - 2) / N)",
                     .source = source,
                     .applies = usual && !given->strict && times.backward == times.forward,
                     .comparison = true,
                     .assumes = "a backward as long as a forward, equal workers, free messages"};
    cs_form own = {.figure = CS_FIGURE_VERSION_DIFFERENCE,
                   .device = CS_NONE,
                   .exact = derived,
                   .formula =
                       given->strict ? "floor(W b / (N f + b)) + 1" : "ceil(W b / (N f + b))",
                   .source = "schedules/nf1b.md",
                   .applies = usual && are_multiples(&times),
                   .assumes = "b a multiple of f, equal workers, free messages"};
    CS_TRY(cs_forms_add(forms, &paper, error));
    CS_TRY(cs_forms_add(forms, &own, error));
    return add_period(job, given, &times, forms, error);
}

const cs_schedule cs_schedule_nf1b = {
    .name = "nf1b",
    .summary = "TiMePReSt: N forwards per mini-batch, one backward, the newest complete weights",
    .source = source,
    .formulas = (const cs_formula[]){{CS_FIGURE_VERSION_DIFFERENCE, "floor((W + N - 2) / N)",
                                      .comparison = true},
                                     {CS_FIGURE_VERSION_DIFFERENCE, "ceil(W b / (N f + b))"},
                                     {CS_FIGURE_VERSION_DIFFERENCE, "floor(W b / (N f + b)) + 1"},
                                     {CS_FIGURE_ITERATION_TIME, "N f + b per mini-batch"},
                                     {0}},
    .fields = fields,
    .params_size = sizeof(nf1b_params),
    .mesh = {.pipeline = CS_LENGTH_LAYERS,
             .ranks = ranks,
             .exactly = true,
             .no_grid = "has one device per worker, whose backward takes a mini-batch at once"},
    .asynchronous = true,
    .micro_batches = offsetof(nf1b_params, micro_batches),
    .takes_whole = takes_whole,
    .reading = reading,
    .check = check,
    .warn = warn,
    .generate = generate,
    .closed_forms = closed_forms,
};

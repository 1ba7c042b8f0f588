#include "sim/study/advise/pass-order.h"

#include "schedules/schedule.h"

#include <stdlib.h>
#include <string.h>

static const cs_stage_price alike = {
    .forward = 1.0 / 3, .backward = 2.0 / 3, .weight_half = 1.0 / 3, .kept = 1};

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* State while following the passes one by one, in the schedule's order. */
typedef struct walk {
    const cs_stage_price *stages; /* NULL: all stages are `alike`, and messages take no time */
    const cs_pass_order *order;
    uint32_t n_ranks;
    double *ends;        /* per task: end time */
    double *free;        /* per rank: end of its latest pass */
    double *kept, *most; /* per rank: activations now, and the maximum so far */
    /* per stage: micro-batches in flight now, and at the time of its rank's maximum */
    uint32_t *live, *at_most;
    double last;
} walk;

/* Returns the length of a task. A message over the boundary after stage s has s + 1 bytes
 * (make_job). */
static double length_of(const walk *w, const cs_class *cls)
{
    if (cls->kind == CS_UPDATE)
        return 0;
    if (cls->kind == CS_TRANSFER) {
        const cs_stage_price *of = w->stages ? &w->stages[cls->bytes - 1] : &alike;
        return cls->bytes - 1 == cls->stage ? of->down : of->up;
    }
    const cs_stage_price *of = w->stages ? &w->stages[cls->stage] : &alike;
    return cls->kind == CS_FORWARD           ? of->forward
           : cls->kind == CS_BACKWARD        ? of->backward
           : cls->kind == CS_BACKWARD_WEIGHT ? of->weight_half
                                             : of->backward - of->weight_half;
}

/* Counts activations. They exist from the start of a forward to the end of its backward, or of the
 * half of the backward that computes gradients of weights. */
static void count(walk *w, const cs_class *cls)
{
    const uint32_t stage = cls->stage, rank = cls->device;
    const double bytes = w->stages ? w->stages[stage].kept : alike.kept;
    if (cls->kind == CS_FORWARD) {
        w->live[stage]++;
        w->kept[rank] += bytes;
    } else if (cls->kind == CS_BACKWARD || cls->kind == CS_BACKWARD_WEIGHT) {
        w->live[stage]--;
        w->kept[rank] -= bytes;
    }
    if (w->kept[rank] <= w->most[rank])
        return;
    w->most[rank] = w->kept[rank];
    for (uint32_t s = 0; !w->stages && s < w->order->n_stages; s++)
        if (w->order->rank[s] == rank)
            w->at_most[s] = w->live[s];
}

static cs_status take(void *context, const cs_graph *head, const cs_handed *tasks, cs_error *error)
{
    walk *w = context;
    (void)error;
    for (uint32_t i = 0; i < tasks->n; i++) {
        const cs_handed_task *task = &tasks->tasks[i];
        const cs_class *cls = &head->classes[task->cls];
        const bool computes = cls->kind != CS_TRANSFER;
        double start = computes ? w->free[cls->device] : 0;
        for (uint32_t e = task->before; e != CS_NONE; e = tasks->edges[e].next)
            start = later(start, w->ends[tasks->edges[e].task]);
        const double end = start + length_of(w, cls);
        w->ends[tasks->first + i] = end;
        w->last = later(w->last, end);
        if (!computes)
            continue;
        w->free[cls->device] = end;
        count(w, cls);
    }
    return CS_OK;
}

/* ---- a job without layers ---- */

/* Reads the parameters of a schedule, in the arena's memory. */
static cs_status read_params(const cs_candidate *c, const cs_schedule *schedule, cs_arena *arena,
                             void **params, cs_error *error)
{
    const cs_json_place place = {.file = schedule->name};
    cJSON *object = cJSON_CreateObject();
    *params = cs_arena_alloc(arena, 1, schedule->params_size + 1);
    bool room = object && *params;
    if (schedule->micro_batches != CS_ONE_MICRO_BATCH)
        room = room && cJSON_AddNumberToObject(object, "micro_batches", c->micro_batches);
    if (schedule->stages.name)
        room = room && cJSON_AddNumberToObject(object, schedule->stages.name,
                                               c->chunks / schedule->stages.each);
    const cs_status status =
        room ? cs_field_read(object, &place, (const cs_field *const[]){schedule->fields, NULL},
                             (void *const[]){*params}, arena, error)
             : cs_error_no_memory(error);
    cJSON_Delete(object);
    return status;
}

/* Generates the tasks of a job whose devices are the ranks and whose layers, all empty, are the
 * stages. */
static cs_status walk_through(const cs_candidate *c, walk *w, cs_arena *arena, cs_error *error)
{
    const uint32_t n = w->order->n_stages;
    const cs_schedule *schedule = cs_candidate_schedule(c);
    cs_model model = {.n_layers = n, .layers = cs_arena_alloc(arena, n, sizeof(*model.layers))};
    cs_layer_sum *sums = cs_arena_alloc(arena, n, sizeof(*sums));
    double *speeds = cs_arena_alloc(arena, w->n_ranks, sizeof(*speeds));
    cs_plan plan = {.n_stages = n,
                    .n_devices = n,
                    .stages = cs_arena_alloc(arena, n, sizeof(*plan.stages)),
                    .devices = w->order->rank};
    /* per micro-batch: at most 3 passes and 2 messages */
    const size_t most = (size_t)n * (5 * (size_t)c->micro_batches + 1);
    w->ends = malloc(most * sizeof(*w->ends));
    if (!model.layers || !sums || !speeds || !plan.stages || !w->ends)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < n; s++) {
        plan.stages[s] = (cs_stage){s, s + 1, s, 1};
        sums[s].output_bytes = (int64_t)s + 1;
    }
    for (uint32_t r = 0; r < w->n_ranks; r++)
        speeds[r] = 1;
    const cs_job job = {.model = &model,
                        .plan = &plan,
                        .stages = sums,
                        .n_devices = w->n_ranks,
                        .speeds = speeds,
                        .micro_batches = c->micro_batches,
                        .iterations = 1,
                        .memory = INT64_MAX};
    const cs_task_taker taker = {w, take};
    cs_graph graph = {0};
    void *params;
    CS_TRY(read_params(c, schedule, arena, &params, error));
    CS_TRY(cs_schedule_hand_on(schedule, &job, params, &taker, &graph, error));
    cs_graph_finish(&graph);
    return CS_OK;
}

static cs_status follow(const cs_candidate *c, walk *w, cs_error *error)
{
    cs_arena arena;
    cs_arena_init(&arena);
    w->n_ranks = c->pipeline;
    w->free = cs_arena_alloc(&arena, c->pipeline, sizeof(*w->free));
    w->kept = cs_arena_alloc(&arena, c->pipeline, sizeof(*w->kept));
    w->live = cs_arena_alloc(&arena, w->order->n_stages, sizeof(*w->live));
    const cs_status status = w->free && w->kept && w->live ? walk_through(c, w, &arena, error)
                                                           : cs_error_no_memory(error);
    free(w->ends);
    cs_arena_finish(&arena);
    return status;
}

cs_status cs_pass_order_find(const cs_candidate *c, cs_pass_order *order, cs_error *error)
{
    const uint32_t n = c->pipeline * c->chunks;
    *order = (cs_pass_order){.n_stages = n, .rank = calloc(3 * (size_t)n, sizeof(*order->rank))};
    double *most = calloc(c->pipeline, sizeof(*most));
    uint32_t *held = calloc(c->pipeline, sizeof(*held)); /* number of stages of each rank so far */
    cs_status status = order->rank && most && held ? CS_OK : cs_error_no_memory(error);
    for (uint32_t s = 0; status == CS_OK && s < n; s++) {
        order->rank[s] = cs_candidate_rank(c, s);
        const uint32_t r = order->rank[s];
        order->rank[n + r * c->chunks + held[r]++] = s;
    }
    if (status == CS_OK) {
        order->by_rank = order->rank + n;
        order->in_flight = order->rank + 2 * n;
        walk w = {.order = order, .most = most, .at_most = order->in_flight};
        status = follow(c, &w, error);
        order->splits = cs_candidate_schedule(c)->splits;
        order->length = w.last;
    }
    free(held);
    free(most);
    return status;
}

cs_status cs_passes_follow(const cs_candidate *c, const cs_pass_order *order,
                           const cs_stage_price *stages, double *time, double *kept,
                           cs_error *error)
{
    walk w = {.stages = stages, .order = order, .most = kept};
    memset(kept, 0, c->pipeline * sizeof(*kept));
    const cs_status status = follow(c, &w, error);
    *time = w.last;
    return status;
}

#include "sim/core/engine/task-window.h"

#include "sim/base/vector.h"
#include "sim/core/engine/in-order.h"

#include <stdlib.h>

struct cs_task_window {
    cs_graph head; /* graph without tasks; the builder owns its arrays */
    cs_error unused;
    cs_engine e;
    cs_in_order *run; /* simulation in order; NULL before the first task */
    cs_span *spans;
    /* per task: step of its end within the instant; NULL: no task can take zero time */
    uint32_t *steps;
    uint32_t cap_spans, cap_steps;
    cs_time *batch_end;
    /* mini-batch of the latest computation, and its range of items */
    uint32_t batch, first_item, end_item;
};

void cs_task_window_use_finish(cs_task_window_use *use)
{
    free(use->compute);
    free(use->batch_end);
    *use = (cs_task_window_use){0};
}

cs_task_window *cs_task_window_create(const cs_platform *platform, const cs_progress *progress)
{
    cs_task_window *window = calloc(1, sizeof(*window));
    if (!window)
        return NULL;
    cs_error_init(&window->unused);
    window->e = (cs_engine){.graph = &window->head,
                            .platform = platform,
                            .options = {.progress = progress},
                            .error = &window->unused};
    return window;
}

void cs_task_window_destroy(cs_task_window *window)
{
    if (!window)
        return;
    cs_in_order_destroy(window->run);
    cs_engine_release(&window->e);
    free(window->spans);
    free(window->steps);
    free(window->batch_end);
    free(window);
}

/* Starts the simulation when the first tasks arrive. */
static cs_status begin(cs_task_window *window, const cs_graph *head, cs_error *error)
{
    window->head = *head;
    window->head.n_tasks = window->head.n_edges = 0;
    CS_TRY(cs_graph_check(&window->head, error));
    CS_TRY(cs_engine_prepare(&window->e, error));
    const char *why = cs_in_order_refuses(&window->e);
    if (why)
        return cs_error_add(error, CS_USAGE, "%s", why);
    window->run = cs_in_order_create(&window->e);
    window->batch_end = calloc((size_t)head->n_batches + 1, sizeof(*window->batch_end));
    return window->run && window->batch_end ? CS_OK : cs_error_no_memory(error);
}

static bool reserve(cs_task_window *window, uint64_t n)
{
    return cs_vector_reserve((void **)&window->spans, &window->cap_spans, n,
                             sizeof(*window->spans)) &&
           (!cs_in_order_has_steps(window->run) ||
            cs_vector_reserve((void **)&window->steps, &window->cap_steps, n,
                              sizeof(*window->steps)));
}

static void note_batch(cs_task_window *window, uint32_t item, cs_time end)
{
    const uint32_t per_batch = window->head.micro_batches;
    if (item < window->first_item || item >= window->end_item) {
        window->batch = item / per_batch;
        window->first_item = window->batch * per_batch;
        window->end_item = window->first_item + per_batch;
    }
    cs_time *latest = &window->batch_end[window->batch];
    *latest = end > *latest ? end : *latest;
}

/* Returns the moment when the last of a task's predecessors ended. */
static inline cs_moment ready_at(const cs_task_window *window, const cs_handed *tasks,
                                 const cs_handed_task *task)
{
    cs_moment ready = {0, 0};
    for (uint32_t i = task->before; i != CS_NONE; i = tasks->edges[i].next) {
        const uint32_t before = tasks->edges[i].task;
        const cs_moment end = {window->spans[before].end,
                               window->steps ? window->steps[before] : 0};
        if (end.time > ready.time || (end.time == ready.time && end.step > ready.step))
            ready = end;
    }
    return ready;
}

static cs_status place(cs_task_window *window, const cs_handed *tasks)
{
    cs_engine *e = &window->e;
    for (uint32_t i = 0; i < tasks->n; i++) {
        const cs_handed_task *task = &tasks->tasks[i];
        const uint32_t id = tasks->first + i;
        cs_moment at = ready_at(window, tasks, task);
        CS_TRY(cs_in_order_place(window->run, id, (cs_task){.cls = task->cls, .item = task->item},
                                 &at, &window->spans[id]));
        if (window->steps)
            window->steps[id] = at.step;
        if (!e->classes[task->cls].transfer)
            note_batch(window, task->item, at.time);
        e->last_end = at.time > e->last_end ? at.time : e->last_end;
    }
    e->n_ended += tasks->n;
    return CS_OK;
}

static cs_status report(const cs_task_window *window, cs_status status, cs_error *error)
{
    const cs_engine *e = &window->e;
    if (status == CS_OVERFLOW && e->memory.overflowed != CS_NONE)
        return cs_error_add(error, status, "device %u: more than 2^63 bytes", e->memory.overflowed);
    if (status == CS_OVERFLOW)
        return cs_error_add(error, status,
                            "simulated time exceeds 2^63 ps (106 days), %u tasks done", e->n_ended);
    if (status == CS_FAILED)
        return cs_error_add(error, CS_USAGE,
                            "tasks that change the memory of one device are generated too far from "
                            "the order in which they run");
    return status == CS_NO_MEMORY ? cs_error_no_memory(error) : status;
}

/* Whether the graph still has the classes, weights and memory that it had with its first tasks. */
static bool is_same(const cs_task_window *window, const cs_graph *head)
{
    return head->n_classes == window->head.n_classes && head->n_effects == window->head.n_effects &&
           head->n_slots == window->head.n_slots && head->n_residents == window->head.n_residents;
}

static cs_status report_late(cs_error *error)
{
    return cs_error_add(error, CS_USAGE, "some kinds of its tasks are not known from the start");
}

static cs_status take(void *context, const cs_graph *head, const cs_handed *tasks, cs_error *error)
{
    cs_task_window *window = context;
    if (tasks->n == 0)
        return CS_OK;
    if (!window->run)
        CS_TRY(begin(window, head, error));
    if (!is_same(window, head))
        return report_late(error);
    if (!reserve(window, (uint64_t)tasks->first + tasks->n))
        return cs_error_no_memory(error);
    if (!cs_progress_step(window->e.options.progress, "simulating", window->e.n_ended,
                          head->n_tasks + UINT64_C(1)))
        return cs_error_add(error, CS_INTERRUPTED, "interrupted, %u tasks done", window->e.n_ended);
    return report(window, place(window, tasks), error);
}

cs_task_taker cs_task_window_taker(cs_task_window *window)
{
    return (cs_task_taker){window, take};
}

/* Sums the computing time per device and kind. All tasks of a class take the same time, apart from
 * delays by their host. */
static bool sum_up(const cs_task_window *window, cs_task_window_use *use)
{
    const cs_engine *e = &window->e;
    const cs_graph *graph = e->graph;
    use->compute = calloc((size_t)graph->n_devices + 1, sizeof(*use->compute));
    for (uint32_t i = 0; use->compute && i < graph->n_classes; i++)
        if (!e->classes[i].transfer)
            use->compute[graph->classes[i].device][graph->classes[i].kind] +=
                e->classes[i].duration * (cs_time)e->times[i] + (e->late ? e->late[i] : 0);
    return use->compute;
}

cs_status cs_task_window_end(cs_task_window *window, const cs_graph *graph, cs_trace *trace,
                             cs_task_window_use *use, cs_error *error)
{
    cs_engine *e = &window->e;
    if (!window->run)
        CS_TRY(begin(window, graph, error));
    if (!is_same(window, graph))
        return report_late(error);
    window->head.n_tasks = graph->n_tasks;
    CS_TRY(report(window, cs_in_order_close(window->run), error));
    if (!sum_up(window, use))
        return cs_error_no_memory(error);
    e->spans = window->spans;
    window->spans = NULL;
    const cs_status status = cs_engine_hand_over(e, trace, error);
    if (status != CS_OK) {
        cs_task_window_use_finish(use);
        return status;
    }
    use->batch_end = window->batch_end;
    window->batch_end = NULL;
    return CS_OK;
}

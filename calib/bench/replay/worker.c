#include "calib/bench/replay/worker.h"

#include <stdlib.h>

/* ---- life cycle ---- */

static cs_status open_stages(cs_worker *worker, cs_error *error)
{
    const cs_plan *plan = worker->replay->scenario->plan;
    const cs_graph *graph = &worker->replay->graph;
    cs_status status = CS_OK;
    for (uint32_t s = 0; s < plan->n_stages && status == CS_OK; s++) {
        cs_stage_state *stage = &worker->stages[s];
        if (!cs_replay_holds(plan, s, worker->device))
            continue;
        stage->n_versions = graph->n_batches + 2;
        stage->versions = calloc(stage->n_versions, sizeof(*stage->versions));
        if (!stage->versions)
            return cs_error_no_memory(error);
        status = (worker->grid ? cs_part_open_bare
                               : cs_part_open)(&worker->trainer, plan->stages[s].first_layer,
                                               plan->stages[s].end_layer, &stage->part, error);
        stage->open = status == CS_OK;
        if (status == CS_OK && worker->grid)
            status = cs_grid_open_stage(worker->grid, s, error);
    }
    return status;
}

/* Whether a group is all processes in their own order, and so needs no communicator. */
static bool is_all(const cs_worker *worker, const uint32_t *ranks, uint32_t n)
{
    bool in_order = n == worker->wire->size;
    for (uint32_t i = 0; in_order && i < n; i++)
        in_order = ranks[i] == i;
    return in_order;
}

static cs_status open_groups(cs_worker *worker, cs_error *error)
{
    const cs_graph *graph = &worker->replay->graph;
    worker->groups = calloc(graph->n_groups + UINT64_C(1), sizeof(cs_wire_group *));
    if (!worker->groups)
        return cs_error_no_memory(error);
    for (uint32_t g = 0; g < graph->n_groups; g++) {
        const uint32_t *ranks = graph->group_devices + graph->groups[g].first;
        const uint32_t n = graph->groups[g].n;
        bool member = false;
        for (uint32_t i = 0; i < n; i++)
            member |= ranks[i] == worker->device;
        if (member && !is_all(worker, ranks, n))
            CS_TRY(cs_wire_group_open(ranks, n, &worker->groups[g], error));
    }
    return CS_OK;
}

static cs_status open_grid(cs_worker *worker, cs_error *error)
{
    worker->grid = calloc(1, sizeof(*worker->grid));
    return worker->grid ? cs_grid_open(worker->grid, worker, error) : cs_error_no_memory(error);
}

static cs_status open_worker(cs_worker *worker, cs_error *error)
{
    const cs_graph *graph = &worker->replay->graph;
    size_t n_stages = worker->replay->scenario->plan->n_stages;
    worker->n_items = (uint32_t)cs_graph_items(graph);
    worker->stages = calloc(n_stages, sizeof(*worker->stages));
    worker->activations = calloc(n_stages * worker->n_items, sizeof(*worker->activations));
    worker->last_reader =
        calloc(n_stages * (graph->n_batches + UINT64_C(2)), sizeof(*worker->last_reader));
    worker->enter = calloc(graph->n_tasks + UINT64_C(1), sizeof(*worker->enter));
    worker->leave = calloc(graph->n_tasks + UINT64_C(1), sizeof(*worker->leave));
    if (!worker->stages || !worker->activations || !worker->last_reader || !worker->enter ||
        !worker->leave)
        return cs_error_no_memory(error);
    worker->trainer = (cs_trainer){.backend = worker->backend,
                                   .bench = worker->bench,
                                   .pool = &worker->pool,
                                   .net = worker->replay->scenario->net,
                                   .chain = &worker->chain,
                                   .batch = worker->replay->scenario->job.micro_samples,
                                   .n_states = worker->replay->n_states};
    if (worker->replay->has_grid)
        CS_TRY(open_grid(worker, error));
    else
        CS_TRY(cs_replay_chain(worker->replay->scenario, NULL, 0, &worker->chain, error));
    CS_TRY(cs_trainer_init(&worker->trainer, error));
    CS_TRY(open_stages(worker, error));
    CS_TRY(open_groups(worker, error));
    /* Find the last computation that reads each version of each stage on this device. */
    const cs_replay *replay = worker->replay;
    uint32_t width = replay->graph.n_batches + 2;
    for (uint32_t i = 0; i < replay->graph.n_tasks; i++) {
        uint32_t task = replay->order[i];
        const cs_class *cls = cs_graph_class(&replay->graph, task);
        bool reads = cls->kind == CS_FORWARD || cls->kind == CS_BACKWARD;
        if (reads && cls->device == worker->device && replay->versions[task] < width)
            worker->last_reader[cls->stage * width + replay->versions[task]] = i;
    }
    /* Count the memory that the parts have taken, not the planned memory. */
    for (uint32_t s = 0; s < worker->replay->scenario->plan->n_stages; s++) {
        if (worker->grid)
            cs_store_count(&worker->grid->stores[s], worker->resident);
        const cs_part *part = &worker->stages[s].part;
        worker->resident[CS_MEMORY_WEIGHTS] += part->parameters.bytes;
        worker->resident[CS_MEMORY_GRADIENTS] += part->gradients.bytes;
        worker->resident[CS_MEMORY_OPTIMIZER] += part->states.bytes;
    }
    return CS_OK;
}

cs_status cs_worker_open(const cs_replay *replay, const cs_backend *backend, cs_bench *bench,
                         cs_wire *wire, cs_worker *worker, cs_error *error)
{
    *worker = (cs_worker){
        .replay = replay, .backend = backend, .bench = bench, .wire = wire, .device = wire->rank};
    cs_block_pool_init(&worker->pool, backend, bench);
    cs_status status = open_worker(worker, error);
    if (status != CS_OK)
        cs_worker_close(worker);
    return status;
}

static cs_activations *activations_of(cs_worker *worker, uint32_t stage, uint32_t item)
{
    return &worker->activations[(size_t)stage * worker->n_items + item];
}

/* Clears what a failed run has left. */
static void clear(cs_worker *worker)
{
    uint32_t n_stages = worker->replay->scenario->plan->n_stages;
    for (size_t i = 0; worker->activations && i < (size_t)n_stages * worker->n_items; i++)
        cs_activations_close(&worker->trainer, &worker->activations[i]);
    for (uint32_t s = 0; worker->stages && s < n_stages; s++) {
        cs_stage_state *stage = &worker->stages[s];
        for (uint32_t v = 0; v < stage->n_versions; v++)
            cs_block_pool_give(&worker->pool, &stage->versions[v]);
        stage->current = 0;
    }
}

void cs_worker_close(cs_worker *worker)
{
    uint32_t n_stages = worker->replay->scenario->plan->n_stages;
    clear(worker);
    if (worker->grid)
        cs_grid_close(worker->grid);
    for (uint32_t s = 0; worker->stages && s < n_stages; s++) {
        cs_part_close(&worker->trainer, &worker->stages[s].part);
        free(worker->stages[s].versions);
    }
    cs_trainer_finish(&worker->trainer);
    cs_block_pool_finish(&worker->pool);
    cs_net_chain_finish(&worker->chain);
    for (uint32_t g = 0; worker->groups && g < worker->replay->graph.n_groups; g++)
        cs_wire_group_close(worker->groups[g]);
    free(worker->grid);
    free(worker->enter);
    free(worker->leave);
    free(worker->groups);
    free(worker->stages);
    free(worker->activations);
    free(worker->last_reader);
    *worker = (cs_worker){0};
}

/* ---- weights ---- */

/* Returns version v of a stage's weights: in the part itself, unless an update had to preserve
 * it. */
static void *weights_at(const cs_stage_state *stage, uint32_t version)
{
    bool own = version != CS_NONE && version < stage->n_versions && stage->versions[version].data;
    return own ? stage->versions[version].data : stage->part.parameters.data;
}

/* Updates the weights, into new memory if later tasks still read the current version. */
static cs_status update(cs_worker *worker, uint32_t s, uint32_t position, cs_error *error)
{
    cs_stage_state *stage = &worker->stages[s];
    uint32_t width = worker->replay->graph.n_batches + 2;
    uint32_t old = stage->current++;
    bool needed =
        old < width && worker->last_reader[s * (size_t)width + old] > position && old + 1 < width;
    if (!needed)
        return cs_part_update(&worker->trainer, &stage->part, stage->part.parameters.data, error);
    cs_block fresh;
    cs_status status =
        cs_block_pool_take(&worker->pool, stage->part.parameters.bytes, &fresh, error);
    if (status == CS_OK)
        status = cs_part_update(&worker->trainer, &stage->part, fresh.data, error);
    if (status != CS_OK) {
        cs_block_pool_give(&worker->pool, &fresh);
        return status;
    }
    stage->versions[old] = stage->part.parameters;
    stage->part.parameters = fresh;
    return CS_OK;
}

/* Drops an old version after its last reader. */
static void drop_version(cs_worker *worker, uint32_t s, uint32_t version, uint32_t position)
{
    uint32_t width = worker->replay->graph.n_batches + 2;
    if (version < width && worker->last_reader[s * (size_t)width + version] == position)
        cs_block_pool_give(&worker->pool, &worker->stages[s].versions[version]);
}

/* ---- tasks ---- */

static cs_status have_activations(cs_worker *worker, cs_activations *at, cs_error *error)
{
    return at->data ? CS_OK : cs_activations_open(&worker->trainer, at, error);
}

/* Returns the activations of a stage on the same device, if it has any; else NULL. */
static cs_activations *neighbour(cs_worker *worker, uint32_t stage, uint32_t item)
{
    uint32_t n_stages = worker->replay->scenario->plan->n_stages;
    if (stage >= n_stages || !worker->stages[stage].open)
        return NULL;
    cs_activations *at = activations_of(worker, stage, item);
    return at->data ? at : NULL;
}

static cs_status forward(cs_worker *worker, uint32_t task, uint32_t position, cs_error *error)
{
    const cs_replay *replay = worker->replay;
    const cs_class *cls = cs_graph_class(&replay->graph, task);
    cs_stage_state *stage = &worker->stages[cls->stage];
    cs_activations *at = activations_of(worker, cls->stage, replay->graph.tasks[task].item);
    CS_TRY(have_activations(worker, at, error));
    uint32_t front = cls->stage - 1; /* too large if there is none */
    cs_activations *before = neighbour(worker, front, replay->graph.tasks[task].item);
    if (before)
        cs_part_hand_output(&worker->trainer, &worker->stages[front].part, before, at);
    cs_status status = worker->grid
                           ? cs_grid_pass(worker->grid, worker->pass, at, error)
                           : cs_part_forward(&worker->trainer, &stage->part,
                                             weights_at(stage, replay->versions[task]), at, error);
    drop_version(worker, cls->stage, replay->versions[task], position);
    return status;
}

/* Runs a backward. If the gradient is not sent, the activations are freed. */
static cs_status backward(cs_worker *worker, uint32_t task, uint32_t position, cs_error *error)
{
    const cs_replay *replay = worker->replay;
    const cs_class *cls = cs_graph_class(&replay->graph, task);
    cs_stage_state *stage = &worker->stages[cls->stage];
    void *weights = weights_at(stage, replay->versions[task]);
    cs_status status = CS_OK;
    for (uint32_t k = 0; k < replay->covers[task] && status == CS_OK; k++) {
        cs_activations *at = activations_of(worker, cls->stage, replay->graph.tasks[task].item + k);
        cs_activations *behind =
            neighbour(worker, cls->stage + 1, replay->graph.tasks[task].item + k);
        if (behind) {
            cs_part_hand_gradient(&worker->trainer, &stage->part, at, behind);
            cs_activations_close(&worker->trainer, behind);
        }
        status = worker->grid
                     ? cs_grid_pass(worker->grid, worker->pass, at, error)
                     : cs_part_backward(&worker->trainer, &stage->part, weights, at, error);
        if (cls->stage == 0)
            cs_activations_close(&worker->trainer, at);
    }
    drop_version(worker, cls->stage, replay->versions[task], position);
    return status == CS_OK && cls->updates ? update(worker, cls->stage, position, error) : status;
}

static cs_status check_size(const cs_worker *worker, uint32_t task, int64_t bytes, cs_error *error)
{
    const cs_class *cls = cs_graph_class(&worker->replay->graph, task);
    if (bytes * worker->replay->covers[task] == cls->bytes)
        return CS_OK;
    return cs_error_add(
        error, CS_FAILED,
        "a message over the boundary after stage %u has %lld bytes in the scenario, "
        "and %lld when replayed",
        cls->stage, (long long)cls->bytes, (long long)(bytes * worker->replay->covers[task]));
}

static cs_status send(cs_worker *worker, uint32_t task, cs_error *error)
{
    const cs_replay *replay = worker->replay;
    const cs_class *cls = cs_graph_class(&replay->graph, task);
    const cs_part *part = &worker->stages[cls->stage].part;
    uint32_t reader = replay->readers[task], item = replay->graph.tasks[reader].item;
    bool gradient = cs_graph_class(&replay->graph, reader)->kind == CS_BACKWARD;
    cs_tensor tensor =
        gradient ? cs_part_input(&worker->trainer, part) : cs_part_output(&worker->trainer, part);
    int64_t bytes = cs_trainer_bytes(&worker->trainer, tensor);
    CS_TRY(check_size(worker, task, bytes, error));
    for (uint32_t k = 0; k < replay->covers[task]; k++) {
        cs_activations *at = activations_of(worker, cls->stage, item + k);
        CS_TRY(cs_wire_send(worker->wire, cls->peer,
                            cs_part_result(&worker->trainer, part, gradient, at), bytes, error));
        cs_part_given(&worker->trainer, part, gradient, at);
        if (gradient)
            cs_activations_close(&worker->trainer, at);
    }
    return CS_OK;
}

static cs_status receive(cs_worker *worker, uint32_t task, cs_error *error)
{
    const cs_replay *replay = worker->replay;
    const cs_class *cls = cs_graph_class(&replay->graph, task);
    uint32_t reader = replay->readers[task], item = replay->graph.tasks[reader].item;
    uint32_t stage = cs_graph_class(&replay->graph, reader)->stage;
    bool gradient = cs_graph_class(&replay->graph, reader)->kind == CS_BACKWARD;
    const cs_part *part = &worker->stages[stage].part;
    for (uint32_t k = 0; k < replay->covers[task]; k++) {
        cs_activations *at = activations_of(worker, stage, item + k);
        void *data;
        CS_TRY(have_activations(worker, at, error));
        CS_TRY(cs_part_receive(&worker->trainer, part, gradient, at, &data, error));
        CS_TRY(cs_wire_receive(worker->wire, cls->device, data, cls->bytes / replay->covers[task],
                               error));
    }
    return CS_OK;
}

static cs_status all_reduce(cs_worker *worker, uint32_t task, cs_error *error)
{
    const cs_class *cls = cs_graph_class(&worker->replay->graph, task);
    const uint32_t end = cs_replay_summed(worker->replay, task);
    int64_t bytes = 0;
    for (uint32_t s = cls->stage; s < end; s++) {
        const cs_part *part = &worker->stages[s].part;
        bytes += part->n_parameters * (int64_t)sizeof(float);
        if (part->gradients.bytes > 0)
            CS_TRY(cs_wire_sum(worker->wire, worker->groups[cls->peer], part->gradients.data,
                               part->gradients.bytes, error));
    }
    if (bytes == cls->bytes)
        return CS_OK;
    return cs_error_add(error, CS_FAILED,
                        "an all-reduce of stage %u has %lld bytes in the scenario, and %lld when "
                        "replayed",
                        cls->stage, (long long)cls->bytes, (long long)bytes);
}

static cs_status do_task(cs_worker *worker, uint32_t position, cs_error *error)
{
    uint32_t task = worker->replay->order[position];
    const cs_class *cls = cs_graph_class(&worker->replay->graph, task);
    switch (cls->kind) {
    case CS_FORWARD:
        return forward(worker, task, position, error);
    case CS_BACKWARD:
        return backward(worker, task, position, error);
    case CS_UPDATE:
        return update(worker, cls->stage, position, error);
    case CS_ALL_REDUCE:
        return all_reduce(worker, task, error);
    default:
        return cls->device == worker->device ? send(worker, task, error)
                                             : receive(worker, task, error);
    }
}

/* ---- a run ---- */

static bool is_mine(const cs_worker *worker, const cs_class *cls)
{
    return cls->device == worker->device ||
           (cls->kind == CS_TRANSFER && cls->peer == worker->device);
}

/* Reads all marks at the end, so that a GPU is not waited for in between. */
static cs_status note_times(cs_worker *worker, cs_error *error)
{
    const cs_replay *replay = worker->replay;
    double *times = calloc(worker->n_marks, sizeof(*times));
    if (!times)
        return cs_error_no_memory(error);
    cs_status status = worker->backend->times(worker->bench, worker->n_marks, times, error);
    for (uint32_t t = 0; t < replay->graph.n_tasks && status == CS_OK; t++) {
        if (!is_mine(worker, cs_graph_class(&replay->graph, t)))
            continue;
        worker->notes->enter[t] = times[worker->enter[t]];
        worker->notes->leave[t] = times[worker->leave[t]];
    }
    free(times);
    return status;
}

/* Notes memory. A message has two devices but one row, so its memory appears in the next
 * computation. */
static void note_memory(cs_worker *worker, uint32_t task)
{
    cs_kind kind = (cs_kind)cs_graph_class(&worker->replay->graph, task)->kind;
    if (kind == CS_TRANSFER)
        return;
    const double peak = (double)worker->pool.peak, before = worker->notes->most[task];
    worker->notes->live[task] = (double)worker->pool.live;
    worker->notes->most[task] = peak > before ? peak : before;
    worker->pool.peak = worker->pool.live;
}

cs_status cs_worker_enter(cs_worker *worker, uint32_t task, cs_error *error)
{
    worker->enter[task] = worker->n_marks;
    return worker->backend->mark(worker->bench, worker->n_marks++, error);
}

cs_status cs_worker_leave(cs_worker *worker, uint32_t task, cs_error *error)
{
    worker->leave[task] = worker->n_marks;
    note_memory(worker, task);
    return worker->backend->mark(worker->bench, worker->n_marks++, error);
}

/* Runs a task, which begins when the previous one ends. */
static cs_status do_noted(cs_worker *worker, uint32_t position, cs_error *error)
{
    const uint32_t task = worker->replay->order[position];
    worker->enter[task] = worker->n_marks - 1;
    CS_TRY(do_task(worker, position, error));
    return cs_worker_leave(worker, task, error);
}

/* Runs the whole pass of a task, unless another task has already run it. */
static cs_status do_pass(cs_worker *worker, uint32_t position, cs_error *error)
{
    const cs_replay_passes *passes = &worker->replay->passes;
    const uint32_t task = worker->replay->order[position], pass = passes->pass_of[task];
    if (pass == worker->pass)
        return CS_OK;
    worker->pass = pass;
    switch (passes->all[pass].of.kind) {
    case CS_FORWARD:
        return forward(worker, task, position, error);
    case CS_BACKWARD:
        return backward(worker, task, position, error);
    default:
        return cs_grid_pass(worker->grid, pass, NULL, error);
    }
}

static cs_status do_all(cs_worker *worker, cs_error *error)
{
    const cs_replay *replay = worker->replay;
    for (uint32_t i = 0; i < replay->graph.n_tasks; i++) {
        const uint32_t task = replay->order[i];
        if (!is_mine(worker, cs_graph_class(&replay->graph, task)))
            continue;
        if (replay->has_grid && replay->passes.pass_of[task] != CS_NONE)
            CS_TRY(do_pass(worker, i, error));
        else
            CS_TRY(do_noted(worker, i, error));
    }
    return CS_OK;
}

cs_status cs_worker_run(cs_worker *worker, cs_notes *notes, cs_error *error)
{
    double *const columns[] = {notes->enter, notes->leave, notes->live, notes->most};
    for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++)
        for (uint32_t t = 0; t < worker->replay->graph.n_tasks; t++)
            columns[c][t] = -1;
    if (worker->grid)
        CS_TRY(cs_grid_reset(worker->grid, error));
    worker->notes = notes;
    worker->n_marks = 0;
    worker->pass = CS_NONE;
    worker->pool.peak = worker->pool.live;
    cs_status status = cs_wire_barrier(worker->wire, error);
    if (status == CS_OK)
        status = worker->backend->mark(worker->bench, worker->n_marks++, error);
    if (status == CS_OK)
        status = do_all(worker, error);
    if (status == CS_OK)
        status = note_times(worker, error);
    clear(worker);
    return status;
}

#include "calib/bench/replay/mesh-worker.h"

#include "calib/bench/replay/divided-loss.h"
#include "calib/bench/replay/numbers.h"
#include "calib/bench/replay/relayout.h"
#include "calib/bench/replay/worker.h"
#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

enum { FLOAT = sizeof(float) };

static const cs_replay *replay_of(const cs_grid_worker *grid)
{
    return grid->worker->replay;
}

/* ---- steps ---- */

static uint32_t task_of(const cs_grid_worker *grid, uint32_t step)
{
    const cs_replay *replay = replay_of(grid);
    return cs_replay_step_task(&replay->passes, &replay->graph, grid->pass, step,
                               grid->worker->device);
}

static uint32_t next_computation(const cs_grid_worker *grid, uint32_t step)
{
    while (step < grid->program->n && !cs_step_computes(&grid->program->steps[step]))
        step++;
    return step;
}

/* Frees the kept tensors of all layers whose backward ended in this step. */
static void release(cs_grid_worker *grid)
{
    if (grid->at && grid->passed < grid->part->end_op)
        cs_part_backward_release(&grid->worker->trainer, grid->part, grid->passed, grid->at);
}

static cs_status leave_computation(cs_grid_worker *grid, cs_error *error)
{
    const bool computes = grid->computes;
    release(grid);
    grid->computes = false;
    return computes ? cs_worker_leave(grid->worker, task_of(grid, grid->computing), error) : CS_OK;
}

static cs_status enter_computation(cs_grid_worker *grid, cs_error *error)
{
    grid->computes = true;
    grid->worked = false;
    return cs_worker_enter(grid->worker, task_of(grid, grid->computing), error);
}

/* Advances to a later computation, or past the last one. Computations in between had no kernels,
 * and take no time. */
static cs_status compute_next(cs_grid_worker *grid, uint32_t step, cs_error *error)
{
    CS_TRY(leave_computation(grid, error));
    while (grid->computing < step) {
        grid->computing = next_computation(grid, grid->computing + 1);
        if (grid->computing < grid->program->n)
            CS_TRY(enter_computation(grid, error));
        if (grid->computing < step)
            CS_TRY(leave_computation(grid, error));
    }
    return CS_OK;
}

static cs_status begin_pass(cs_grid_worker *grid, uint32_t pass, cs_error *error)
{
    grid->pass = pass;
    grid->program = cs_replay_program(&replay_of(grid)->passes, pass);
    if (!cs_vector_reserve((void **)&grid->done, &grid->cap_done, grid->program->n,
                           sizeof(*grid->done)))
        return cs_error_no_memory(error);
    memset(grid->done, 0, grid->program->n * sizeof(*grid->done));
    grid->computing = next_computation(grid, 0);
    return enter_computation(grid, error);
}

/* A required exchange. */
typedef struct sought {
    cs_kind kind;
    cs_axes_name axes;
    int64_t bytes;
    /* may have fewer bytes than planned, or slightly more by rounding: shares, and places with
     * smaller parts than the first */
    bool less;
} sought;

/* Finds the first unused step that matches; the number of steps if there is none. */
static uint32_t find_step(const cs_grid_worker *grid, const sought *what)
{
    const cs_program *program = grid->program;
    uint32_t k = 0;
    for (; k < program->n; k++) {
        const cs_program_step *step = &program->steps[k];
        const int64_t over = what->bytes - step->bytes;
        if (!grid->done[k] && step->kind == what->kind && step->axes == what->axes &&
            (over == 0 || (what->less && over <= CS_STORE_REGIONS * FLOAT)))
            break;
    }
    return k;
}

/* Begins an exchange with the members of a group. */
static cs_status begin_step(cs_grid_worker *grid, sought what, const cs_wire_group **group,
                            cs_error *error)
{
    const bool less = what.less || grid->place > 0;
    what.less = false;
    uint32_t k = find_step(grid, &what);
    what.less = less;
    if (k == grid->program->n)
        k = find_step(grid, &what);
    if (k == grid->program->n)
        return cs_error_add(error, CS_FAILED, "the plan has no %s over %s of %lld bytes",
                            cs_kind_name(what.kind), cs_axes_text(what.axes),
                            (long long)what.bytes);
    grid->done[k] = true;
    grid->exchanging = k;
    const uint32_t task = task_of(grid, k);
    *group = grid->worker->groups[cs_graph_class(&replay_of(grid)->graph, task)->peer];
    CS_TRY(leave_computation(grid, error));
    return cs_worker_enter(grid->worker, task, error);
}

/* Ends an exchange. The next computation is the first one after it; if the plan has the exchange
 * before a computation that has already run, the computation after it. */
static cs_status end_step(cs_grid_worker *grid, cs_error *error)
{
    const uint32_t next = next_computation(grid, grid->exchanging);
    CS_TRY(cs_worker_leave(grid->worker, task_of(grid, grid->exchanging), error));
    if (grid->computing < grid->program->n && grid->computing > grid->exchanging)
        return grid->worked ? compute_next(grid, next_computation(grid, grid->computing + 1), error)
                            : enter_computation(grid, error);
    return next < grid->program->n ? compute_next(grid, next, error) : CS_OK;
}

/* ---- exchanges of operators ---- */

static cs_status begin_link(void *context, cs_exchange_kind kind, cs_axes_name axes, int64_t bytes,
                            const cs_wire_group **group, cs_error *error)
{
    return begin_step(context,
                      (sought){(kind == CS_EXCHANGE_ALL_REDUCE       ? CS_ALL_REDUCE
                                : kind == CS_EXCHANGE_ALL_GATHER     ? CS_ALL_GATHER
                                : kind == CS_EXCHANGE_REDUCE_SCATTER ? CS_REDUCE_SCATTER
                                                                     : CS_ALL_TO_ALL),
                               axes, bytes, false},
                      group, error);
}

static cs_status end_link(void *context, cs_error *error)
{
    return end_step(context, error);
}

static cs_status exchange(void *context, uint32_t op, cs_exchange_pass pass, const cs_view *from,
                          const cs_view *to, cs_error *error)
{
    cs_grid_worker *grid = context;
    const cs_local_op *local = &grid->local.ops[op];
    const bool backward = pass == CS_EXCHANGE_BACKWARD;
    const cs_relayout_link link = {begin_link, end_link, grid};
    const cs_relayout r = {.split = grid->split,
                           .place = grid->place,
                           .batch = grid->worker->trainer.batch,
                           .shape = local->whole,
                           .from = backward ? cs_layout_gradient(&local->made, local->partial)
                                            : local->read,
                           .to = backward ? cs_layout_gradient(&local->read, 0) : local->made,
                           .backward = backward};
    return cs_relayout_run(&r, grid->worker->wire, &link, from, to, error);
}

/* Called after every kernel. */
static cs_status note_work(void *context, uint32_t op, cs_piece piece, cs_pass pass,
                           cs_error *error)
{
    cs_grid_worker *grid = context;
    (void)op, (void)piece, (void)pass, (void)error;
    grid->worked = true;
    return CS_OK;
}

static cs_status go_around(cs_grid_worker *grid, const cs_divided_loss *loss, cs_error *error)
{
    for (int step = 0; step < CS_DIVIDED_LOSS_STEPS; step++) {
        const cs_wire_group *group;
        int64_t bytes;
        float *rows = cs_divided_loss_step(loss, step, &bytes);
        cs_wire *wire = grid->worker->wire;
        CS_TRY(
            begin_step(grid, (sought){CS_ALL_REDUCE, CS_AXES_TENSOR, bytes, false}, &group, error));
        if (step == 0)
            CS_TRY(cs_wire_most(wire, group, rows, bytes, error));
        else
            CS_TRY(cs_wire_sum(wire, group, rows, bytes, error));
        CS_TRY(end_step(grid, error));
    }
    cs_divided_loss_finish(loss);
    return CS_OK;
}

static cs_status entropy(void *context, uint32_t op, const cs_operands *operands, cs_error *error)
{
    cs_grid_worker *grid = context;
    const cs_trainer *trainer = &grid->worker->trainer;
    const cs_kernel kernel = {trainer->net, &trainer->net->ops[op], trainer->batch,
                              trainer->precision, 0};
    const cs_local_op *local = &grid->local.ops[op];
    const cs_net *whole = grid->worker->replay->scenario->net;
    const cs_shape *in = &cs_net_tensor(whole, whole->ops[local->origin].inputs[0])->shape;
    cs_divided_loss loss = {
        .kernel = &kernel,
        .operands = operands,
        .first = cs_layout_first(&local->read, in, grid->split, grid->place, in->rank - 1),
        .columns = in->dims[in->rank - 1]};
    cs_block rows;
    CS_TRY(cs_block_pool_take(trainer->pool, FLOAT * cs_divided_loss_rows(&kernel), &rows, error));
    loss.rows = rows.data;
    const cs_status status = go_around(grid, &loss, error);
    cs_block_pool_give(trainer->pool, &rows);
    return status;
}

static cs_status input(void *context, cs_tensor tensor, void *data, cs_error *error)
{
    const cs_grid_worker *grid = context;
    const cs_trainer *trainer = &grid->worker->trainer;
    const uint32_t reader = cs_net_tensor(trainer->net, tensor)->last_reader;
    const cs_op *of = &trainer->part_of.whole->ops[grid->local.ops[reader].origin];
    const cs_shape *out = &cs_net_tensor(trainer->part_of.whole, of->output)->shape;
    (void)error;
    cs_numbers_input(trainer, tensor, grid->sample, of->weights / out->dims[out->rank - 1], data);
    return CS_OK;
}

/* ---- weights and gradients ---- */

static bool needs_weights(const cs_grid_worker *grid, const cs_store *store)
{
    const cs_program_pass *pass = &replay_of(grid)->passes.all[grid->pass].of;
    return store->zero >= 3 && pass->kind != CS_UPDATE;
}

static cs_status gather(cs_grid_worker *grid, cs_store *store, uint32_t u, cs_error *error)
{
    cs_state_exchange all[CS_STATES_MOST];
    const uint32_t n = cs_states_gather(grid->job, &store->units[u].planned, all);
    const cs_wire_group *group;
    if (n == 0)
        return CS_OK;
    CS_TRY(begin_step(
        grid, (sought){CS_ALL_GATHER, CS_AXES_SHARD, cs_store_bytes(store, u, false, false), false},
        &group, error));
    CS_TRY(cs_store_gather(store, u, group, error));
    return end_step(grid, error);
}

static cs_status sum_one(cs_grid_worker *grid, cs_store *store, uint32_t u,
                         const cs_state_exchange *what, cs_error *error)
{
    const bool scatters = what->kind == CS_REDUCE_SCATTER, tensor = what->axes == CS_AXES_TENSOR;
    const bool share = !scatters && store->shards > 1;
    const cs_wire_group *group;
    CS_TRY(begin_step(
        grid, (sought){what->kind, what->axes, cs_store_bytes(store, u, share, tensor), share},
        &group, error));
    if (scatters)
        CS_TRY(cs_store_scatter(store, u, group, error));
    else
        CS_TRY(cs_store_sum(store, u, tensor, group, error));
    return end_step(grid, error);
}

/* Runs the sums of a unit's gradients that belong to the pass. */
static cs_status sum(cs_grid_worker *grid, cs_store *store, uint32_t u, cs_error *error)
{
    const cs_program_pass *pass = &replay_of(grid)->passes.all[grid->pass].of;
    cs_state_exchange all[CS_STATES_MOST];
    const uint32_t n = cs_states_reduce(grid->job, &store->units[u].planned, pass->last, all);
    for (uint32_t i = 0; i < n; i++)
        CS_TRY(sum_one(grid, store, u, &all[i], error));
    return CS_OK;
}

/* ---- passes ---- */

/* A pass over the units of a stage, in its order. */
typedef struct walk {
    cs_grid_worker *grid;
    cs_store *store;
    const cs_part *part;
    const cs_program_pass *pass;
    cs_activations *at;
    uint32_t gathered; /* number of gathered units */
} walk;

static uint32_t unit_at(const walk *w, uint32_t i)
{
    return w->pass->kind == CS_FORWARD ? i : w->store->n_units - 1 - i;
}

static cs_status begin_unit(walk *w, uint32_t i, cs_error *error)
{
    const uint32_t until = i + w->grid->job->states.prefetch + 1;
    while (needs_weights(w->grid, w->store) && !w->pass->gathered && w->gathered < until &&
           w->gathered < w->store->n_units)
        CS_TRY(gather(w->grid, w->store, unit_at(w, w->gathered++), error));
    return w->pass->kind == CS_BACKWARD ? cs_store_begin(w->store, unit_at(w, i), error) : CS_OK;
}

static cs_status end_unit(walk *w, uint32_t i, cs_error *error)
{
    const uint32_t u = unit_at(w, i);
    if (needs_weights(w->grid, w->store) &&
        (!w->grid->job->states.keep_gathered || w->pass->releases))
        cs_store_release(w->store, u);
    if (w->pass->kind != CS_BACKWARD)
        return CS_OK;
    if (!w->store->scatters)
        return sum(w->grid, w->store, u, error);
    if (i > 0)
        CS_TRY(sum(w->grid, w->store, unit_at(w, i - 1), error));
    return i + 1 == w->store->n_units ? sum(w->grid, w->store, u, error) : CS_OK;
}

/* Runs the backward layer by layer. */
static cs_status backward_unit(walk *w, const cs_store_unit *unit, cs_error *error)
{
    cs_trainer *trainer = &w->grid->worker->trainer;
    for (uint32_t l = unit->end_layer; l-- > unit->first_layer;) {
        const cs_net_layer *layer = &trainer->chain->layers[l];
        CS_TRY(
            cs_part_backward_some(trainer, w->part, layer->first, layer->end, NULL, w->at, error));
        w->grid->passed = layer->first;
    }
    release(w->grid);
    return CS_OK;
}

static cs_status walk_units(walk *w, cs_error *error)
{
    cs_trainer *trainer = &w->grid->worker->trainer;
    for (uint32_t i = 0; i < w->store->n_units; i++) {
        const cs_store_unit *unit = &w->store->units[unit_at(w, i)];
        CS_TRY(begin_unit(w, i, error));
        if (w->pass->kind == CS_FORWARD)
            CS_TRY(cs_part_forward_some(trainer, w->part, unit->first_op, unit->end_op, NULL, w->at,
                                        error));
        else
            CS_TRY(backward_unit(w, unit, error));
        CS_TRY(end_unit(w, i, error));
    }
    return CS_OK;
}

static cs_status update(cs_grid_worker *grid, cs_store *store, cs_error *error)
{
    CS_TRY(cs_store_update(store, error));
    if (store->zero == 0 || store->zero >= 3)
        return CS_OK;
    int64_t bytes = 0;
    for (uint32_t u = 0; u < store->n_units; u++)
        bytes += cs_store_bytes(store, u, false, false);
    const cs_wire_group *group;
    if (bytes == 0)
        return CS_OK;
    CS_TRY(begin_step(grid, (sought){CS_ALL_GATHER, CS_AXES_SHARD, bytes, false}, &group, error));
    CS_TRY(cs_store_gather_all(store, group, error));
    return end_step(grid, error);
}

static void note_loss(cs_grid_worker *grid, const walk *w, uint32_t item)
{
    const bool forward = w->pass->kind == CS_FORWARD;
    const float *loss = forward ? cs_part_loss(&grid->worker->trainer, w->part, w->at) : NULL;
    const uint32_t batch = item / replay_of(grid)->graph.micro_batches;
    if (!loss)
        return;
    grid->losses[batch] += *loss;
    grid->n_losses[batch]++;
}

cs_status cs_grid_pass(cs_grid_worker *grid, uint32_t pass, cs_activations *at, cs_error *error)
{
    const cs_replay_pass *of = &replay_of(grid)->passes.all[pass];
    const cs_axes data = cs_grid_axes(grid->job->plan->grid, CS_AXES_DATA);
    cs_store *store = &grid->stores[of->stage];
    walk w = {grid, store, store->part, &of->of, at, 0};
    grid->sample = ((uint64_t)of->item * data.size + cs_axes_coordinate(data, grid->place)) *
                   grid->worker->trainer.batch;
    grid->at = of->of.kind == CS_BACKWARD ? at : NULL;
    grid->part = store->part;
    grid->passed = store->part->end_op;
    CS_TRY(begin_pass(grid, pass, error));
    if (of->of.kind == CS_UPDATE)
        CS_TRY(update(grid, store, error));
    else
        CS_TRY(walk_units(&w, error));
    note_loss(grid, &w, of->item);
    if (of->of.kind == CS_BACKWARD)
        cs_part_backward_end(&grid->worker->trainer, w.part, at);
    const cs_program *program = grid->program;
    for (uint32_t k = 0; k < program->n; k++)
        if (!cs_step_computes(&program->steps[k]) && !grid->done[k])
            return cs_error_add(
                error, CS_FAILED, "the plan has an %s over %s of %lld bytes that was not needed",
                cs_kind_name(program->steps[k].kind), cs_axes_text(program->steps[k].axes),
                (long long)program->steps[k].bytes);
    return compute_next(grid, program->n, error);
}

/* ---- life cycle ---- */

/* Returns the index of a device in its stage. */
static uint32_t find_place(const cs_plan *plan, uint32_t device)
{
    for (uint32_t s = 0; s < plan->n_stages; s++)
        for (uint32_t i = 0; i < plan->stages[s].n_devices; i++)
            if (plan->devices[plan->stages[s].first_device + i] == device)
                return i;
    return 0;
}

cs_status cs_grid_open(cs_grid_worker *grid, cs_worker *worker, cs_error *error)
{
    const cs_scenario *scenario = worker->replay->scenario;
    const uint32_t n_batches = worker->replay->graph.n_batches;
    *grid = (cs_grid_worker){.worker = worker,
                             .job = &worker->replay->job,
                             .split = &scenario->parallel->split,
                             .place = find_place(scenario->plan, worker->device),
                             .n_stages = scenario->plan->n_stages};
    if (worker->backend->own_memory)
        return cs_error_add(error, CS_INVALID,
                            "%s: /parallel: can be replayed only on CPUs, not by --backend %s",
                            scenario->file, worker->backend->name);
    grid->stores = calloc(grid->n_stages, sizeof(*grid->stores));
    grid->losses = calloc(n_batches + UINT64_C(1), sizeof(*grid->losses));
    grid->n_losses = calloc(n_batches + UINT64_C(1), sizeof(*grid->n_losses));
    if (!grid->stores || !grid->losses || !grid->n_losses)
        return cs_error_no_memory(error);
    CS_TRY(cs_net_local_make(scenario->net, grid->split, grid->place, NULL, &grid->local, error));
    worker->trainer.net = &grid->local.net;
    worker->trainer.part_of =
        (cs_trained_part){scenario->net, &grid->local, grid->split, grid->place};
    worker->trainer.observer = (cs_observer){note_work, grid};
    worker->trainer.exchanger = (cs_exchanger){exchange, entropy, input, grid};
    return cs_replay_chain(scenario, grid->split, grid->place, &worker->chain, error);
}

cs_status cs_grid_open_stage(cs_grid_worker *grid, uint32_t stage, cs_error *error)
{
    cs_store *store = &grid->stores[stage];
    store->trainer = &grid->worker->trainer;
    store->wire = grid->worker->wire;
    store->part = &grid->worker->stages[stage].part;
    return cs_store_open(store, grid->job, stage, grid->place, error);
}

void cs_grid_close(cs_grid_worker *grid)
{
    for (uint32_t s = 0; grid->stores && s < grid->n_stages; s++)
        cs_store_close(&grid->stores[s]);
    cs_net_local_finish(&grid->local);
    free(grid->stores);
    free(grid->done);
    free(grid->losses);
    free(grid->n_losses);
    *grid = (cs_grid_worker){0};
}

cs_status cs_grid_reset(cs_grid_worker *grid, cs_error *error)
{
    const uint32_t n_batches = replay_of(grid)->graph.n_batches;
    memset(grid->losses, 0, n_batches * sizeof(*grid->losses));
    memset(grid->n_losses, 0, n_batches * sizeof(*grid->n_losses));
    for (uint32_t s = 0; s < grid->n_stages; s++)
        if (grid->stores[s].part)
            CS_TRY(cs_store_reset(&grid->stores[s], error));
    return CS_OK;
}

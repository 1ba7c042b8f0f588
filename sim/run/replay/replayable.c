#include "sim/run/replay/replayable.h"

#include "sim/model/op-shape.h"
#include "sim/run/replay/replayable-grid.h"

#include <stdlib.h>

static cs_status refuse(const char *path, const char *pointer, const char *what, cs_error *error)
{
    return cs_error_add(error, CS_INVALID, "%s: %s: %s", path, pointer, what);
}

/* ---- the scenario ---- */

static uint32_t stage_of(const cs_plan *plan, const cs_net_chain *chain, uint32_t op)
{
    uint32_t s = 0;
    while (s + 1 < plan->n_stages && chain->layers[plan->stages[s].end_layer - 1].end <= op)
        s++;
    return s;
}

/* Tied weights are one piece of memory. */
static cs_status check_ties(const cs_scenario *scenario, const char *path, cs_error *error)
{
    const cs_net *net = scenario->net;
    const cs_plan *plan = scenario->plan;
    cs_net_chain chain = {0};
    cs_status status = cs_replay_chain(scenario, NULL, 0, &chain, error);
    for (uint32_t p = 0; p < net->n_ops && status == CS_OK; p++) {
        const uint32_t lender = cs_net_lender(net, p);
        const uint32_t stage = stage_of(plan, &chain, p);
        const uint32_t other = lender < net->n_ops ? stage_of(plan, &chain, lender) : stage;
        if (stage != other)
            status =
                cs_error_add(error, CS_INVALID,
                             "%s: /model/name: operator %s of stage %u shares the weights of %s "
                             "of stage %u: both must be on one stage to be replayed",
                             path, net->ops[p].name, stage, net->ops[lender].name, other);
    }
    cs_net_chain_finish(&chain);
    return status;
}

static cs_status check_operators(const cs_scenario *scenario, const char *path, cs_error *error)
{
    cs_error why;
    cs_error_init(&why);
    const cs_status status = cs_net_check_runnable(scenario->net, &why);
    return status == CS_OK ? CS_OK
                           : cs_error_add(error, status, "%s: /model/name: %s", path, why.text);
}

static cs_status check_recompute(const cs_scenario *scenario, const char *path, cs_error *error)
{
    for (uint32_t l = 0; l < scenario->model->n_layers; l++)
        if (scenario->model->layers[l].recompute)
            return refuse(path, "/model/recompute", "must be false to be replayed", error);
    return scenario->n_recomputed == 0
               ? CS_OK
               : refuse(path, "/model/recompute_operators", "must be empty to be replayed", error);
}

static bool shares_micro_batches(const cs_scenario *scenario)
{
    bool several = false;
    for (uint32_t s = 0; s < scenario->plan->n_stages; s++)
        several |= scenario->plan->stages[s].n_devices > 1;
    return several && scenario->job.replicas == CS_REPLICAS_ALL_REDUCE;
}

cs_status cs_replayable_scenario(const cs_scenario *scenario, const char *path, cs_error *error)
{
    if (!scenario->net)
        return refuse(
            path, "/model",
            "must have a \"name\" to be replayed: only an architecture says which kernels "
            "to run",
            error);
    CS_TRY(check_operators(scenario, path, error));
    if (scenario->model->precision != CS_PRECISION_FP32)
        return refuse(path, "/model/precision", "must be fp32 to be replayed", error);
    if (scenario->storage.state_bytes != sizeof(float))
        return refuse(path, "/model/states", "must be fp32 to be replayed", error);
    if (scenario->job.other_ratio > 0)
        return refuse(path, "/model/optimizer",
                      "must be another than muon to be replayed: no backend orthogonalises", error);
    CS_TRY(check_recompute(scenario, path, error));
    if (scenario->job.offload.layers > 0)
        return refuse(path, "/offload", "must be left out to be replayed", error);
    for (uint32_t d = 0; d < scenario->platform.n_devices; d++)
        if (scenario->job.speeds[d] != 1)
            return refuse(path, "/platform/speed", "must be 1 to be replayed", error);
    if (shares_micro_batches(scenario))
        return refuse(path, "/schedule/replicas",
                      "must be round_robin to be replayed: a device computes whole micro-batches, "
                      "not shares of them",
                      error);
    if (scenario->job.whole && scenario->job.micro_batches > 1)
        return refuse(path, "/schedule/backward_pass",
                      "must be micro_batches to be replayed: a device computes the backward of one "
                      "micro-batch at once",
                      error);
    CS_TRY(check_ties(scenario, path, error));
    return scenario->parallel ? cs_replayable_grid(scenario, path, error) : CS_OK;
}

/* ---- kinds of tasks ---- */

static cs_status check_class(const cs_class *cls, const char *path, cs_error *error)
{
    switch (cls->kind) {
    case CS_FORWARD:
    case CS_BACKWARD:
    case CS_UPDATE:
    case CS_ALL_REDUCE:
        return CS_OK;
    case CS_TRANSFER:
        return cls->blocking
                   ? CS_OK
                   : refuse(path, "/platform/blocking",
                            "must be true to be replayed: processes that compute send and "
                            "receive by themselves",
                            error);
    default:
        return cs_error_add(error, CS_INVALID,
                            "%s: /schedule/kind: tasks of the kind \"%s\" cannot be replayed", path,
                            cs_kind_name((cs_kind)cls->kind));
    }
}

/* Those that passes of a grid have besides. */
static bool is_of_grid(const cs_replay *replay, uint8_t kind)
{
    return replay->has_grid && (kind == CS_ALL_GATHER || kind == CS_REDUCE_SCATTER);
}

/* Only of classes that tasks have. */
cs_status cs_replayable_kinds(const cs_replay *replay, const char *path, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t t = 0; t < replay->graph.n_tasks && status == CS_OK; t++) {
        const cs_class *cls = cs_graph_class(&replay->graph, t);
        if (!is_of_grid(replay, cls->kind))
            status = check_class(cls, path, error);
    }
    return status;
}

/* ---- tasks ---- */

/* What a device does for a micro-batch on a stage, and what messages bring it for that. */
typedef struct work {
    uint8_t forwards, backwards; /* 2: or more */
    uint8_t inputs, gradients;
} work;

typedef struct ledger {
    const cs_replay *replay;
    const char *path;
    uint32_t n_items;
    work *works; /* per device, stage and item */
} ledger;

static work *work_of(const ledger *l, uint32_t device, uint32_t stage, uint32_t item)
{
    const uint32_t n_stages = l->replay->graph.n_stages;
    return &l->works[((size_t)device * n_stages + stage) * l->n_items + item];
}

static void count(uint8_t *n)
{
    *n = *n < 2 ? *n + 1 : 2;
}

static void note_computation(ledger *l, uint32_t task)
{
    const cs_class *cls = cs_graph_class(&l->replay->graph, task);
    const uint32_t item = l->replay->graph.tasks[task].item;
    if (cls->kind == CS_FORWARD)
        count(&work_of(l, cls->device, cls->stage, item)->forwards);
    if (cls->kind != CS_BACKWARD)
        return;
    if (l->replay->covers[task] == 0) /* more backwards than forwards */
        work_of(l, cls->device, cls->stage, item)->backwards = 2;
    for (uint32_t k = 0; k < l->replay->covers[task] && item + k < l->n_items; k++)
        count(&work_of(l, cls->device, cls->stage, item + k)->backwards);
}

static cs_status refuse_task(const ledger *l, uint32_t task, const char *what, cs_error *error)
{
    char text[128];
    return cs_error_add(error, CS_INVALID, "%s: /schedule: cannot be replayed: %s %s", l->path,
                        cs_graph_describe(&l->replay->graph, task, text, sizeof(text)), what);
}

/* An output for the next stage's forward, or the gradient of an input for the backward of the
 * stage in front. */
static bool is_expected(const ledger *l, uint32_t task)
{
    const cs_replay *replay = l->replay;
    const cs_class *cls = cs_graph_class(&replay->graph, task);
    const uint32_t reader = replay->readers[task];
    if (reader == CS_NONE)
        return false;
    const cs_class *to = cs_graph_class(&replay->graph, reader);
    const bool gradient = to->kind == CS_BACKWARD;
    const cs_layer_sum *stage = &replay->scenario->job.stages[cls->stage];
    const uint32_t item = replay->graph.tasks[reader].item;
    bool expected = gradient ? to->stage + 1 == cls->stage : to->stage == cls->stage + 1;
    for (uint32_t k = 0; k < replay->covers[task] && expected; k++) {
        const work *made = work_of(l, cls->device, cls->stage, item + k);
        expected = gradient ? made->backwards : made->forwards;
    }
    return expected && cls->bytes == replay->covers[task] *
                                         (gradient ? stage->input_bytes : stage->output_bytes);
}

static cs_status note_message(ledger *l, uint32_t task, cs_error *error)
{
    const cs_replay *replay = l->replay;
    if (!is_expected(l, task))
        return refuse_task(l, task,
                           "carries no activations from one stage to the next and no gradients of "
                           "them back: weights and sums of gradients are not sent",
                           error);
    const cs_class *to = cs_graph_class(&replay->graph, replay->readers[task]);
    for (uint32_t k = 0; k < replay->covers[task]; k++) {
        work *at =
            work_of(l, to->device, to->stage, replay->graph.tasks[replay->readers[task]].item + k);
        count(to->kind == CS_BACKWARD ? &at->gradients : &at->inputs);
    }
    return CS_OK;
}

static cs_status check_sum(const ledger *l, uint32_t task, cs_error *error)
{
    return cs_replay_summed(l->replay, task) != CS_NONE
               ? CS_OK
               : refuse_task(l, task,
                             "sums some of a stage's gradients: all at once can be replayed",
                             error);
}

/* That each work is done once, with all it needs. */
static cs_status check_work(const ledger *l, uint32_t task, cs_error *error)
{
    const cs_class *cls = cs_graph_class(&l->replay->graph, task);
    const uint32_t item = l->replay->graph.tasks[task].item;
    const work *at = work_of(l, cls->device, cls->stage, item);
    const bool first = cls->stage == 0, last = cls->stage + 1 == l->replay->graph.n_stages;
    if (at->forwards != 1 || at->backwards != 1)
        return refuse_task(l, task,
                           at->backwards > 1
                               ? "has several backwards there, one for each bucket of gradients: "
                                 "one for all of the stage can be replayed"
                               : "must be one forward with one backward",
                           error);
    const bool fed = first || work_of(l, cls->device, cls->stage - 1, item)->forwards;
    const bool told = last || work_of(l, cls->device, cls->stage + 1, item)->backwards;
    if (at->inputs > 1 || at->gradients > 1)
        return refuse_task(l, task, "gets what it needs in several messages", error);
    return (fed || at->inputs) && (told || at->gradients)
               ? CS_OK
               : refuse_task(l, task, "gets no message from the stage beside it", error);
}

/* Asked last: a schedule that starts by the clock may have more that cannot be replayed. */
static cs_status check_timing(const ledger *l, uint32_t task, cs_error *error)
{
    const cs_class *cls = cs_graph_class(&l->replay->graph, task);
    if (cls->release == 0 && cls->interval == 0)
        return CS_OK;
    return refuse(l->path, "/schedule/timing",
                  "must be asap to be replayed: processes do not wait for a time", error);
}

/* A collective's members stand for the same; the first one is asked. */
static cs_status check_tasks(ledger *l, cs_error *error)
{
    const cs_graph *graph = &l->replay->graph;
    const uint32_t n = l->replay->has_grid ? 0 : graph->n_tasks; /* passes.h has seen to them */
    cs_status status = CS_OK;
    for (uint32_t t = 0; t < n; t++)
        note_computation(l, t);
    for (uint32_t t = 0; t < n && status == CS_OK; t++)
        if (cs_graph_class(graph, t)->kind == CS_TRANSFER)
            status = note_message(l, t, error);
    for (uint32_t t = 0; t < n && status == CS_OK; t++) {
        const cs_kind kind = (cs_kind)cs_graph_class(graph, t)->kind;
        if (kind == CS_FORWARD || kind == CS_BACKWARD)
            status = check_work(l, t, error);
        else if (kind == CS_ALL_REDUCE)
            status = check_sum(l, t, error);
    }
    for (uint32_t t = 0; t < graph->n_tasks && status == CS_OK; t++)
        status = check_timing(l, t, error);
    return status;
}

cs_status cs_replayable_tasks(const cs_replay *replay, const char *path, cs_error *error)
{
    const cs_graph *graph = &replay->graph;
    ledger l = {.replay = replay, .path = path, .n_items = (uint32_t)cs_graph_items(graph)};
    l.works = calloc((size_t)graph->n_devices * graph->n_stages, l.n_items * sizeof(*l.works));
    cs_status status = l.works ? check_tasks(&l, error) : cs_error_no_memory(error);
    free(l.works);
    return status;
}

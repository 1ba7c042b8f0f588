#include "sim/run/player.h"

#include "schedules/stage-buffers.h"
#include "sim/base/vector.h"
#include "sim/run/resident-tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPUTE_STREAM, GATHER_STREAM, REDUCE_STREAM };

/* A tensor of an effect. */
typedef struct tensor {
    int64_t bytes; /* -1: freed */
    uint32_t block;
    uint32_t next; /* next tensor of the same size, or CS_NONE */
} tensor;

/* Tensors of the same size, oldest first; CS_NONE: none. */
typedef struct size_list {
    int64_t bytes;
    uint32_t first, last;
} size_list;

/* The tensors of a category. */
typedef struct tensors {
    uint32_t n, capacity;
    tensor *items;  /* oldest first */
    uint32_t first; /* all earlier items are freed */
    uint32_t n_live;
    size_list *sizes; /* by bytes, rising */
    uint32_t n_sizes, cap_sizes;
} tensors;

/* The tensors of a micro-batch in a stage, by their numbers in the tapes. */
typedef struct passage {
    uint32_t next_spare; /* next unused passage, if this one is unused; or CS_NONE */
    uint32_t *blocks;    /* or CS_NO_BLOCK */
    uint16_t *keeps;     /* number of operators that save the tensor */
} passage;

typedef struct passages {
    uint32_t n, capacity;
    passage *items;
    uint32_t spare; /* first unused passage, or CS_NONE */
} passages;

/* The tensors of a stage's layers, by their numbers in the tapes: ascending, each once. */
typedef struct numbers {
    uint32_t n, capacity;
    uint32_t *items;
} numbers;

/* A pass of a micro-batch over the layers of a stage, in one or several tasks. */
typedef struct pass {
    uint32_t tasks;       /* that have not ended */
    uint32_t layers;      /* that have been played */
    uint32_t passage;     /* forward passes: 1 + passage of the micro-batch; 0: none */
    cs_time all, started; /* durations of all its tasks, and of those that have begun */
} pass;

/* A freed block that a collective's stream still uses. */
typedef struct waiting_block {
    uint32_t block;
    uint64_t layers; /* n_layers when it was freed */
} waiting_block;

typedef struct waiting {
    uint32_t n, capacity, first;
    waiting_block *blocks; /* oldest first */
} waiting;

struct cs_player {
    const cs_scenario *scenario;
    const cs_graph *graph;
    uint32_t device;
    const cs_player_watch *watch; /* or NULL */
    cs_caching_allocator *allocator;
    cs_block_owner *owners; /* per block; only with a watch */
    uint32_t cap_owners;
    tensors effects[CS_N_CATEGORIES];

    const cs_layer *layers; /* with tapes, or NULL */
    uint32_t n_memories;    /* tensors that the tapes number; 0: there are no tapes */
    numbers *of_stages;     /* per stage; none until its first pass ends */
    pass *passes;           /* per stage, item and direction */
    passages passages;
    uint32_t n_rounds; /* that have ended */
    uint64_t n_layers; /* layers played in this round, forward and backward */
    uint32_t unwaited; /* passes since the host last waited for the device */
    waiting waiting;
    bool receives;   /* the current layer's input is in a receive buffer (stage-buffers.h) */
    uint32_t result; /* tensor of the current layer that stays until its forward ends; or CS_NONE */

    cs_time time;
    uint32_t task; /* CS_NONE: before the run */
    const char *label;
    cs_arena labels;
    cs_status status; /* result of the watch's `see` and history */

    cs_failed_allocation failure; /* the first one */
    int64_t peak_reserved;
    uint64_t peak_at;
    cs_time peak_time;
};

static void see(void *context, const cs_caching_event *event)
{
    cs_player *p = context;
    const cs_player_watch *watch = p->watch;
    const cs_history_entry entry = {*event, p->time / 1000000, p->label};
    if (p->status == CS_OK && watch->history)
        p->status = cs_history_add(watch->history, &entry, NULL);
    if (p->status == CS_OK && watch->see)
        p->status = watch->see(watch->context, p, event);
}

/* ---- tapes ---- */

/* Whether the layers have tapes for all passes: split backwards and recomputed stages have none. */
static bool plays_tapes(const cs_graph *graph, const cs_layer *layers, uint32_t n_layers)
{
    bool has = layers != NULL;
    for (uint32_t l = 0; has && l < n_layers; l++)
        has = layers[l].forward_tape != NULL && layers[l].backward_tape != NULL;
    for (uint32_t t = 0; has && t < graph->n_tasks; t++) {
        const uint8_t kind = cs_graph_class(graph, t)->kind;
        has = kind != CS_BACKWARD_INPUT && kind != CS_BACKWARD_WEIGHT && kind != CS_RECOMPUTE;
    }
    return has;
}

static uint32_t most_number(const cs_tape_event *events, uint32_t n, uint32_t most)
{
    for (uint32_t i = 0; i < n; i++)
        most = events[i].memory >= most ? events[i].memory + 1 : most;
    return most;
}

static size_t pass_at(const cs_player *p, uint32_t stage, uint32_t kind, uint32_t item)
{
    const size_t row = (size_t)stage * cs_graph_items(p->graph) + item;
    return 2 * row + (kind == CS_BACKWARD);
}

static bool is_pass(const cs_player *p, const cs_class *cls)
{
    return p->n_memories > 0 && cls->device == p->device &&
           (cls->kind == CS_FORWARD || cls->kind == CS_BACKWARD);
}

/* Before a round. */
static void count_passes(cs_player *p)
{
    const size_t n = 2 * (size_t)p->graph->n_stages * cs_graph_items(p->graph);
    memset(p->passes, 0, n * sizeof(*p->passes));
    for (uint32_t t = 0; t < p->graph->n_tasks; t++) {
        const cs_class *cls = cs_graph_class(p->graph, t);
        if (!is_pass(p, cls))
            continue;
        pass *of = &p->passes[pass_at(p, cls->stage, cls->kind, p->graph->tasks[t].item)];
        of->tasks++;
        of->all += cls->duration;
    }
}

static bool find_tapes(cs_player *p)
{
    const cs_job *job = &p->scenario->job;
    const size_t n = 2 * (size_t)p->graph->n_stages * cs_graph_items(p->graph);
    const cs_layer *layers = cs_model_layers(job->model, job->micro_samples);
    if (job->replicas == CS_REPLICAS_ALL_REDUCE ||
        !plays_tapes(p->graph, layers, job->model->n_layers))
        return true;
    p->layers = layers;
    for (uint32_t l = 0; l < job->model->n_layers; l++) {
        p->n_memories =
            most_number(layers[l].forward_tape, layers[l].n_forward_tape, p->n_memories);
        p->n_memories =
            most_number(layers[l].backward_tape, layers[l].n_backward_tape, p->n_memories);
    }
    p->passes = calloc(n + 1, sizeof(*p->passes));
    p->of_stages = calloc(job->plan->n_stages, sizeof(*p->of_stages));
    if (!p->passes || !p->of_stages)
        return false;
    count_passes(p);
    return true;
}

/* ---- life cycle ---- */

cs_status cs_player_create(const cs_scenario *scenario, const cs_graph *graph, uint32_t device,
                           int64_t capacity, const cs_player_watch *watch, cs_player **player,
                           cs_error *error)
{
    cs_player *p = calloc(1, sizeof(*p));
    cs_caching_options options = scenario->caching;
    options.capacity = capacity;
    if (!p)
        return cs_error_no_memory(error);
    cs_arena_init(&p->labels);
    *p = (cs_player){.scenario = scenario,
                     .graph = graph,
                     .device = device,
                     .watch = watch,
                     .task = CS_NONE,
                     .result = CS_NONE,
                     .passages.spare = CS_NONE,
                     .labels = p->labels};
    p->allocator = cs_caching_create(&options, watch ? &(cs_caching_observer){see, p} : NULL);
    if (!p->allocator || !find_tapes(p)) {
        cs_player_destroy(p);
        return cs_error_no_memory(error);
    }
    *player = p;
    return CS_OK;
}

void cs_player_destroy(cs_player *p)
{
    if (!p)
        return;
    for (uint32_t c = 0; c < CS_N_CATEGORIES; c++) {
        free(p->effects[c].items);
        free(p->effects[c].sizes);
    }
    for (uint32_t i = 0; i < p->passages.n; i++) {
        free(p->passages.items[i].blocks);
        free(p->passages.items[i].keeps);
    }
    free(p->passages.items);
    free(p->waiting.blocks);
    for (uint32_t s = 0; p->of_stages && s < p->scenario->job.plan->n_stages; s++)
        free(p->of_stages[s].items);
    free(p->of_stages);
    free(p->passes);
    free(p->owners);
    cs_caching_destroy(p->allocator);
    cs_arena_finish(&p->labels);
    free(p);
}

const cs_caching_stats *cs_player_stats(const cs_player *p)
{
    return cs_caching_stats_of(p->allocator);
}

void cs_player_sum_up(const cs_player *p, cs_device_allocations *made)
{
    *made = (cs_device_allocations){.stats = *cs_player_stats(p),
                                    .failure = p->failure,
                                    .peak_time = p->peak_time,
                                    .peak_at = p->peak_at};
}

cs_time cs_player_time(const cs_player *p)
{
    return p->time;
}

cs_status cs_player_snapshot(const cs_player *p, const char *path, cs_error *error)
{
    return cs_memory_snapshot_write(path, p->allocator, &p->scenario->caching, p->watch->history,
                                    error);
}

/* Sets the categories of tapes' tensors: saved activations, and workspace of a pass. */
static void own_passages(cs_player *p)
{
    for (uint32_t i = 0; i < p->passages.n; i++) {
        const passage *at = &p->passages.items[i];
        for (uint32_t m = 0; m < p->n_memories; m++)
            if (at->blocks[m] != CS_NO_BLOCK)
                p->owners[at->blocks[m]].category =
                    at->keeps[m] > 0 ? CS_MEMORY_ACTIVATIONS : CS_MEMORY_WORKSPACE;
    }
}

typedef struct visitor {
    const cs_player *player;
    bool (*visit)(void *context, const cs_segment_view *view, const cs_block_owner *owners);
    void *context;
} visitor;

static bool visit_segment(void *context, const cs_segment_view *view)
{
    const visitor *v = context;
    return v->visit(v->context, view, v->player->owners);
}

cs_status cs_player_visit(cs_player *p,
                          bool (*visit)(void *context, const cs_segment_view *view,
                                        const cs_block_owner *owners),
                          void *context, cs_error *error)
{
    own_passages(p);
    return cs_caching_visit(p->allocator, visit_segment, &(visitor){p, visit, context}, error);
}

/* ---- blocks ---- */

static cs_status look(cs_player *p, cs_player_moment moment, cs_error *error)
{
    return p->watch && p->watch->look ? p->watch->look(p->watch->context, p, moment, error) : CS_OK;
}

/* Completes the frees that are at least `ahead` passes over layers old. */
static cs_status catch_up(cs_player *p, uint64_t ahead, cs_error *error)
{
    waiting *of = &p->waiting;
    for (; of->first < of->n && of->blocks[of->first].layers + ahead <= p->n_layers; of->first++)
        CS_TRY(cs_caching_done(p->allocator, of->blocks[of->first].block, error));
    if (of->first == of->n)
        of->first = of->n = 0;
    return CS_OK;
}

/* After a wait the host leads the device again one pass later. In a pipeline it needs another pass,
 * because it waits until the first message is sent. */
static bool is_ahead(const cs_player *p)
{
    return p->scenario->passes_ahead > 0 &&
           p->unwaited > (p->scenario->job.plan->n_stages > 1 ? 1 : 0);
}

/* Frees a block that a collective's stream may still use. The allocator reuses it when the device
 * has caught up with the host (recordStream in c10/cuda/CUDACachingAllocator.cpp). */
static cs_status give_sent(cs_player *p, uint32_t block, cs_error *error)
{
    waiting *of = &p->waiting;
    if (!cs_vector_reserve((void **)&of->blocks, &of->capacity, of->n + UINT64_C(1),
                           sizeof(*of->blocks)))
        return cs_error_no_memory(error);
    of->blocks[of->n++] = (waiting_block){block, p->n_layers};
    cs_caching_record(p->allocator, block);
    return cs_caching_free(p->allocator, block, error);
}

static cs_status note_failure(cs_player *p, int64_t bytes, uint32_t stream, cs_error *error)
{
    const cs_caching_stats *stats = cs_player_stats(p);
    cs_failed_allocation *f = &p->failure;
    if (f->failed)
        return CS_OK;
    *f = (cs_failed_allocation){.failed = true,
                                .bytes = bytes,
                                .allocated = stats->allocated,
                                .reserved = stats->reserved,
                                .time = p->time,
                                .task = p->task};
    cs_caching_free_room(p->allocator, bytes, stream, &f->largest, &f->free);
    return look(p, CS_PLAYER_FAILURE, error);
}

/* *block is CS_NO_BLOCK if the device has no room: the run goes on without it. */
static cs_status take(cs_player *p, int64_t bytes, uint32_t category, uint32_t *block,
                      cs_error *error)
{
    /* gradients that an update allocates have been reduced (cs_states_reduced) */
    const bool updates = p->task != CS_NONE && cs_graph_class(p->graph, p->task)->kind == CS_UPDATE;
    const uint32_t stream = category == CS_MEMORY_GATHERED               ? GATHER_STREAM
                            : category == CS_MEMORY_GRADIENTS && updates ? REDUCE_STREAM
                                                                         : COMPUTE_STREAM;
    CS_TRY(cs_caching_allocate(p->allocator, bytes, stream, block, error));
    if (*block == CS_NO_BLOCK && p->waiting.n > 0) { /* waits for all (release_cached_blocks) */
        CS_TRY(catch_up(p, 0, error));
        CS_TRY(cs_caching_allocate(p->allocator, bytes, stream, block, error));
    }
    if (p->status != CS_OK)
        return cs_error_no_memory(error);
    if (*block == CS_NO_BLOCK)
        return note_failure(p, bytes, stream, error);
    if (p->watch) {
        if (!cs_vector_reserve((void **)&p->owners, &p->cap_owners, *block + UINT64_C(1),
                               sizeof(*p->owners)))
            return cs_error_no_memory(error);
        p->owners[*block] = (cs_block_owner){p->task, category};
    }
    const cs_caching_stats *stats = cs_player_stats(p);
    if (stats->peak_reserved > p->peak_reserved) {
        p->peak_reserved = stats->peak_reserved;
        p->peak_at = stats->n_allocations;
        p->peak_time = p->time;
    }
    return p->watch && stats->n_allocations == p->watch->peak_at ? look(p, CS_PLAYER_PEAK, error)
                                                                 : CS_OK;
}

static cs_status give(cs_player *p, uint32_t block, cs_error *error)
{
    return block == CS_NO_BLOCK ? CS_OK : cs_caching_free(p->allocator, block, error);
}

/* ---- effects ---- */

/* Finds or makes the list of tensors of this size; NULL when memory runs out. */
static size_list *list_of(tensors *of, int64_t bytes)
{
    uint32_t low = 0, high = of->n_sizes;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (of->sizes[middle].bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < of->n_sizes && of->sizes[low].bytes == bytes)
        return &of->sizes[low];
    if (!cs_vector_reserve((void **)&of->sizes, &of->cap_sizes, of->n_sizes + UINT64_C(1),
                           sizeof(*of->sizes)))
        return NULL;
    memmove(of->sizes + low + 1, of->sizes + low, (of->n_sizes - low) * sizeof(*of->sizes));
    of->sizes[low] = (size_list){bytes, CS_NONE, CS_NONE};
    of->n_sizes++;
    return &of->sizes[low];
}

static bool append(tensors *of, int64_t bytes, uint32_t block)
{
    size_list *list = list_of(of, bytes);
    if (!list || !cs_vector_reserve((void **)&of->items, &of->capacity, of->n + UINT64_C(1),
                                    sizeof(*of->items)))
        return false;
    of->items[of->n] = (tensor){bytes, block, CS_NONE};
    *(list->first == CS_NONE ? &list->first : &of->items[list->last].next) = of->n;
    list->last = of->n++;
    of->n_live++;
    return true;
}

/* Removes freed items from the array once they are more than half of it. */
static bool close_up(tensors *of)
{
    enum { FEW = 64 };
    const uint32_t n = of->n;
    bool enough = true;
    if (n < FEW || of->n_live > n / 2)
        return true;
    of->n = of->first = of->n_live = of->n_sizes = 0;
    for (uint32_t i = 0; i < n && enough; i++)
        if (of->items[i].bytes >= 0)
            enough = append(of, of->items[i].bytes, of->items[i].block);
    return enough;
}

static cs_status add_tensor(cs_player *p, uint32_t category, int64_t bytes, cs_error *error)
{
    tensors *of = &p->effects[category];
    uint32_t block;
    CS_TRY(take(p, bytes, category, &block, error));
    return close_up(of) && append(of, bytes, block) ? CS_OK : cs_error_no_memory(error);
}

/* Frees the oldest tensor of a list. */
static cs_status drop_first(cs_player *p, tensors *of, size_list *list, cs_error *error)
{
    tensor *oldest = &of->items[list->first];
    list->first = oldest->next;
    oldest->bytes = -1;
    of->n_live--;
    return give(p, oldest->block, error);
}

/* Frees the oldest tensor of all lists and adds its size to *bytes. */
static cs_status drop_oldest(cs_player *p, tensors *of, int64_t *bytes, cs_error *error)
{
    while (of->items[of->first].bytes < 0)
        of->first++;
    *bytes += of->items[of->first].bytes;
    return drop_first(p, of, list_of(of, of->items[of->first].bytes), error);
}

/* Frees the oldest tensor of that size. If there is none, frees the oldest tensors until the bytes
 * are reached, and allocates what was freed beyond them. */
static cs_status free_tensors(cs_player *p, uint32_t category, int64_t bytes, cs_error *error)
{
    tensors *of = &p->effects[category];
    size_list *list = list_of(of, bytes);
    int64_t freed = 0;
    if (!list)
        return cs_error_no_memory(error);
    if (list->first != CS_NONE)
        return drop_first(p, of, list, error);
    while (freed < bytes && of->n_live > 0)
        CS_TRY(drop_oldest(p, of, &freed, error));
    return freed > bytes ? add_tensor(p, category, freed - bytes, error) : CS_OK;
}

static cs_status drop_all(cs_player *p, uint32_t category, cs_error *error)
{
    int64_t bytes = 0;
    while (p->effects[category].n_live > 0)
        CS_TRY(drop_oldest(p, &p->effects[category], &bytes, error));
    return CS_OK;
}

/* Applies the effects of a task's start or end that allocate, or that free. */
static cs_status apply(cs_player *p, const cs_class *cls, bool at_end, bool frees, cs_error *error)
{
    for (uint32_t e = 0; e < cls->n_effects; e++) {
        const cs_effect *effect = &p->graph->effects[cls->first_effect + e];
        /* tapes describe saved activations and workspaces in more detail; some of a layer's steps
         * with workspace are collectives */
        const bool played = effect->category == CS_MEMORY_WORKSPACE
                                ? p->n_memories > 0
                                : effect->category == CS_MEMORY_ACTIVATIONS && is_pass(p, cls);
        if (effect->device != p->device || effect->at_end != at_end || played ||
            (effect->bytes < 0) != frees || effect->bytes == 0)
            continue;
        CS_TRY(frees ? free_tensors(p, effect->category, -effect->bytes, error)
                     : add_tensor(p, effect->category, effect->bytes, error));
    }
    return CS_OK;
}

/* ---- passes ---- */

/* Returns the passage of a micro-batch through the stage of the class; its first pass makes it. */
static cs_status find_passage(cs_player *p, const cs_class *cls, uint32_t item, passage **out,
                              cs_error *error)
{
    passages *of = &p->passages;
    uint32_t *at = &p->passes[pass_at(p, cls->stage, CS_FORWARD, item)].passage;
    if (*at == 0 && of->spare != CS_NONE) {
        *at = 1 + of->spare;
        of->spare = of->items[of->spare].next_spare;
    } else if (*at == 0) {
        if (!cs_vector_reserve((void **)&of->items, &of->capacity, of->n + UINT64_C(1),
                               sizeof(*of->items)))
            return cs_error_no_memory(error);
        passage *made = &of->items[of->n];
        *made = (passage){.blocks = malloc(p->n_memories * sizeof(*made->blocks)),
                          .keeps = calloc(p->n_memories, sizeof(*made->keeps))};
        *at = ++of->n;
        if (!made->blocks || !made->keeps)
            return cs_error_no_memory(error);
        memset(made->blocks, 0xff, p->n_memories * sizeof(*made->blocks));
    }
    *out = &of->items[*at - 1];
    return CS_OK;
}

static void leave_passage(passages *of, uint32_t which)
{
    of->items[which].next_spare = of->spare;
    of->spare = which;
}

static cs_status free_memory(cs_player *p, passage *at, uint32_t memory, cs_error *error)
{
    const uint32_t block = at->blocks[memory];
    at->blocks[memory] = CS_NO_BLOCK;
    at->keeps[memory] = 0;
    return give(p, block, error);
}

static cs_status play_event(cs_player *p, passage *at, const cs_tape_event *event, bool backward,
                            cs_error *error)
{
    const uint32_t memory = event->memory;
    const bool has = at->blocks[memory] != CS_NO_BLOCK;
    switch ((cs_tape_what)event->what) {
    case CS_TAPE_READ:
        if (p->receives)
            return CS_OK;
        /* fall through */
    case CS_TAPE_TAKE:
        return has ? CS_OK : take(p, event->bytes, CS_MEMORY_WORKSPACE, &at->blocks[memory], error);
    case CS_TAPE_KEEP:
        at->keeps[memory]++;
        return CS_OK;
    case CS_TAPE_GIVE:
        if (!has || memory == p->result || (!backward && at->keeps[memory] > 0))
            return CS_OK;
        if (at->keeps[memory] > 0)
            at->keeps[memory]--;
        if (at->keeps[memory] > 0)
            return CS_OK;
        if (event->sent && is_ahead(p)) {
            const uint32_t block = at->blocks[memory];
            at->blocks[memory] = CS_NO_BLOCK;
            return give_sent(p, block, error);
        }
        return free_memory(p, at, memory, error);
    }
    return CS_OK;
}

static cs_status play_forward(cs_player *p, passage *at, const cs_layer *layer, cs_error *error)
{
    for (uint32_t i = 0; i < layer->n_forward_tape; i++)
        CS_TRY(play_event(p, at, &layer->forward_tape[i], false, error));
    /* a recomputed layer saves its input only */
    for (uint32_t i = 0; layer->recompute && i < layer->n_forward_tape; i++) {
        const cs_tape_event *event = &layer->forward_tape[i];
        if (event->what == CS_TAPE_READ)
            at->keeps[event->memory] = 1;
        else if (event->what == CS_TAPE_TAKE && (event->leaves || event->memory == p->result))
            at->keeps[event->memory] = 0;
        else if (event->what == CS_TAPE_TAKE)
            CS_TRY(free_memory(p, at, event->memory, error));
    }
    return CS_OK;
}

static cs_status play_backward(cs_player *p, passage *at, const cs_layer *layer, cs_error *error)
{
    for (uint32_t i = 0; layer->recompute && i < layer->n_forward_tape; i++)
        if (!layer->forward_tape[i].skipped)
            CS_TRY(play_event(p, at, &layer->forward_tape[i], false, error));
    for (uint32_t i = 0; i < layer->n_backward_tape; i++)
        CS_TRY(play_event(p, at, &layer->backward_tape[i], true, error));
    /* free the recomputed tensors that the backward did not free, and the layer's input */
    for (uint32_t i = 0; layer->recompute && i < layer->n_forward_tape; i++) {
        const cs_tape_event *event = &layer->forward_tape[i];
        if (event->what == CS_TAPE_TAKE || event->what == CS_TAPE_READ)
            CS_TRY(free_memory(p, at, event->memory, error));
    }
    return CS_OK;
}

/* Time that a pass takes for a layer. */
static double time_of(const cs_layer *layer, bool backward)
{
    const cs_time forward = !backward          ? layer->forward
                            : layer->recompute ? layer->forward - layer->skipped
                                               : 0;
    return (double)forward +
           (backward ? (double)layer->backward_input + (double)layer->backward_weight : 0);
}

/* Number i of the layers in the order of the pass. */
static const cs_layer *layer_at(const cs_player *p, const cs_stage *stage, uint32_t i,
                                bool backward)
{
    return &p->layers[backward ? stage->end_layer - 1 - i : stage->first_layer + i];
}

/* How many layers have begun by the end of a task: its tasks so far take a share of the pass's
 * time, and so do their layers. If a layer begins where the task ends, it belongs to the next task.
 */
static uint32_t begun_layers(const cs_player *p, const cs_stage *stage, const pass *of,
                             bool backward)
{
    const uint32_t n = stage->end_layer - stage->first_layer;
    double all = 0, before = 0;
    uint32_t begun = 0;
    if (of->started >= of->all)
        return n;
    for (uint32_t i = 0; i < n; i++)
        all += time_of(layer_at(p, stage, i, backward), backward);
    const double rounding = 1e-6 * all, end = all * (double)of->started / (double)of->all;
    for (; begun < n && before < end - rounding; begun++)
        before += time_of(layer_at(p, stage, begun, backward), backward);
    return begun;
}

/* Plays the layers that begin in a task of a pass. */
static cs_status play_pass(cs_player *p, const cs_class *cls, uint32_t item, cs_error *error)
{
    const cs_job *job = &p->scenario->job;
    const cs_stage *stage = &job->plan->stages[cls->stage];
    const bool backward = cls->kind == CS_BACKWARD;
    const bool reads = backward ? cls->stage + 1 < job->plan->n_stages : cls->stage > 0;
    pass *of = &p->passes[pass_at(p, cls->stage, cls->kind, item)];
    passage *at;
    if (of->layers == 0 && reads) { /* the host waits: it reads the message's shape */
        p->unwaited = 0;
        CS_TRY(catch_up(p, 0, error));
    }
    of->started += cls->duration;
    CS_TRY(find_passage(p, cls, item, &at, error));
    for (const uint32_t end = begun_layers(p, stage, of, backward); of->layers < end;
         of->layers++) {
        const cs_layer *layer = layer_at(p, stage, of->layers, backward);
        const bool last = layer == &p->layers[stage->end_layer - 1];
        p->receives = layer == &p->layers[stage->first_layer] && cs_stage_receives(job, cls->stage);
        p->result = last && !backward ? cs_stage_result_of(job, cls->stage).memory : CS_NONE;
        p->n_layers++;
        CS_TRY(catch_up(p, p->scenario->passes_ahead, error));
        CS_TRY(backward ? play_backward(p, at, layer, error) : play_forward(p, at, layer, error));
    }
    return CS_OK;
}

static bool add_numbers(numbers *of, const cs_tape_event *events, uint32_t n)
{
    if (!cs_vector_reserve((void **)&of->items, &of->capacity, of->n + UINT64_C(1) + n,
                           sizeof(*of->items)))
        return false;
    for (uint32_t i = 0; i < n; i++)
        of->items[of->n++] = events[i].memory;
    return true;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Finds the tensors of a stage. To look at the tensors of all layers at the end of each pass would
 * take most of the time of a deep pipeline. */
static cs_status find_numbers(cs_player *p, uint32_t stage, const numbers **out, cs_error *error)
{
    const cs_stage *plan = &p->scenario->job.plan->stages[stage];
    numbers *of = &p->of_stages[stage];
    *out = of;
    if (of->items)
        return CS_OK;
    for (uint32_t l = plan->first_layer; l < plan->end_layer; l++) {
        const cs_layer *layer = &p->layers[l];
        if (!add_numbers(of, layer->forward_tape, layer->n_forward_tape) ||
            !add_numbers(of, layer->backward_tape, layer->n_backward_tape))
            return cs_error_no_memory(error);
    }
    qsort(of->items, of->n, sizeof(*of->items), compare_numbers);
    uint32_t n = 0;
    for (uint32_t i = 0; i < of->n; i++)
        if (n == 0 || of->items[i] != of->items[n - 1])
            of->items[n++] = of->items[i];
    of->n = n;
    return CS_OK;
}

/* After a forward only saved tensors stay; after a backward none do. */
static cs_status end_pass(cs_player *p, const cs_class *cls, uint32_t item, cs_error *error)
{
    const numbers *of;
    passage *at;
    if (--p->passes[pass_at(p, cls->stage, cls->kind, item)].tasks > 0)
        return CS_OK;
    p->unwaited++;
    CS_TRY(find_passage(p, cls, item, &at, error));
    CS_TRY(find_numbers(p, cls->stage, &of, error));
    for (uint32_t i = 0; i < of->n; i++) {
        const uint32_t m = of->items[i];
        if (at->blocks[m] != CS_NO_BLOCK && (cls->kind == CS_BACKWARD || at->keeps[m] == 0))
            CS_TRY(free_memory(p, at, m, error));
    }
    if (cls->kind == CS_BACKWARD) {
        p->passes[pass_at(p, cls->stage, CS_FORWARD, item)].passage = 0;
        leave_passage(&p->passages, (uint32_t)(at - p->passages.items));
    }
    return CS_OK;
}

/* ---- the run ---- */

/* Labels the allocations that follow: "F0.1 of stage 2 on device 2: weights". */
static cs_status set_label(cs_player *p, const char *what, cs_error *error)
{
    char text[192], task[128] = "";
    if (!p->watch || !p->watch->history)
        return CS_OK;
    if (p->task != CS_NONE)
        cs_graph_describe(p->graph, p->task, task, sizeof(task));
    snprintf(text, sizeof(text), "%s%s%s", task, *task ? ": " : "", what);
    p->label = cs_arena_copy(&p->labels, text);
    return p->label ? CS_OK : cs_error_no_memory(error);
}

static bool holds(const cs_plan *plan, uint32_t stage, uint32_t device)
{
    const cs_stage *of = &plan->stages[stage];
    for (uint32_t i = 0; i < of->n_devices; i++)
        if (plan->devices[of->first_device + i] == device)
            return true;
    return false;
}

/* Stage of the device's optimizer states number i, which are in the order of the stages. */
static uint32_t stage_of_states(const cs_player *p, uint32_t i)
{
    const cs_plan *plan = p->scenario->job.plan;
    for (uint32_t s = 0; s < plan->n_stages; s++)
        if (holds(plan, s, p->device) && i-- == 0)
            return s;
    return CS_NONE;
}

static cs_status count_state(void *context, int64_t bytes, cs_error *error)
{
    (void)context;
    (void)bytes;
    (void)error;
    return CS_OK;
}

static cs_status take_state(void *context, int64_t bytes, cs_error *error)
{
    uint32_t block;
    return take(context, bytes, CS_MEMORY_OPTIMIZER, &block, error);
}

/* Allocates the `bytes` of optimizer states of a stage: the late ones, or all others. */
static cs_status take_states(cs_player *p, uint32_t stage, int64_t bytes, bool late,
                             cs_error *error)
{
    int64_t late_bytes, copies;
    uint32_t block;
    CS_TRY(cs_optimizer_tensors(p->scenario, stage, p->device, true, bytes, &late_bytes,
                                late ? take_state : count_state, p, error));
    if (late)
        return CS_OK;
    CS_TRY(cs_optimizer_tensors(p->scenario, stage, p->device, false, bytes, &copies, take_state, p,
                                error));
    const int64_t rest = bytes - late_bytes - copies;
    return rest > 0 ? take(p, rest, CS_MEMORY_OPTIMIZER, &block, error) : CS_OK;
}

/* Residents without optimizer states; optimizer states, except those that the first update makes;
 * or those. */
typedef enum part_of_residents { NO_STATES, EARLY_STATES, LATE_STATES } part_of_residents;

static cs_status take_residents(cs_player *p, part_of_residents which, cs_error *error)
{
    uint32_t n_states = 0, block;
    for (uint32_t i = 0; i < p->graph->n_residents; i++) {
        const cs_resident *resident = &p->graph->residents[i];
        const bool states = resident->category == CS_MEMORY_OPTIMIZER;
        if (resident->device != p->device || resident->bytes == 0)
            continue;
        CS_TRY(set_label(p, cs_category_name(resident->category), error));
        const uint32_t stage = states ? stage_of_states(p, n_states++) : CS_NONE;
        if (states != (which != NO_STATES))
            continue;
        if (stage != CS_NONE) {
            CS_TRY(take_states(p, stage, resident->bytes, which == LATE_STATES, error));
        } else if (which != LATE_STATES) {
            const bool buffers = resident->category == CS_MEMORY_BUFFERS;
            const uint32_t n = buffers ? p->scenario->job.micro_batches : 1; /* a tensor each */
            for (uint32_t k = 0; k < n; k++)
                CS_TRY(take(p, resident->bytes / n, resident->category, &block, error));
        }
    }
    return CS_OK;
}

static cs_status take_weight(void *context, int64_t bytes, cs_error *error)
{
    return add_tensor(context, CS_MEMORY_WEIGHTS, bytes, error);
}

/* Weights are allocated one by one, or as whole layers, before they move into a buffer for all of
 * them, or into shards. */
cs_status cs_player_begin(cs_player *p, cs_error *error)
{
    const cs_job *job = &p->scenario->job;
    for (uint32_t s = 0; p->scenario->weight_buffer && s < job->plan->n_stages; s++)
        if (holds(job->plan, s, p->device))
            CS_TRY(cs_weight_tensors(p->scenario, s, take_weight, p, error));
    for (uint32_t s = 0; p->scenario->whole_weights && s < job->plan->n_stages; s++) {
        const cs_stage *of = &job->plan->stages[s];
        for (uint32_t l = of->first_layer; holds(job->plan, s, p->device) && l < of->end_layer;
             l++) {
            const cs_layer *layer = &job->model->layers[l];
            const int64_t bytes = layer->weight_bytes + cs_layer_besides(layer);
            if (bytes > 0)
                CS_TRY(add_tensor(p, CS_MEMORY_WEIGHTS, bytes, error));
        }
    }
    CS_TRY(take_residents(p, NO_STATES, error));
    CS_TRY(drop_all(p, CS_MEMORY_WEIGHTS, error)); /* they are in the residents now */
    return take_residents(p, EARLY_STATES, error);
}

cs_status cs_player_step(cs_player *p, uint32_t task, bool ends, cs_time time, cs_error *error)
{
    const cs_class *cls = cs_graph_class(p->graph, task);
    const uint32_t item = p->graph->tasks[task].item;
    p->time = time;
    p->task = task;
    CS_TRY(set_label(p, cs_kind_name(cls->kind), error));
    CS_TRY(apply(p, cls, ends, true, error));
    if (is_pass(p, cls))
        CS_TRY(ends ? end_pass(p, cls, item, error) : play_pass(p, cls, item, error));
    return apply(p, cls, ends, false, error);
}

cs_status cs_player_end_round(cs_player *p, cs_error *error)
{
    for (uint32_t c = 0; c < CS_N_CATEGORIES; c++)
        CS_TRY(drop_all(p, c, error));
    p->unwaited = 0;
    CS_TRY(catch_up(p, 0, error));
    p->passages.spare = CS_NONE;
    for (uint32_t i = 0; i < p->passages.n; i++) {
        passage *at = &p->passages.items[i];
        for (uint32_t m = 0; m < p->n_memories; m++)
            if (at->blocks[m] != CS_NO_BLOCK)
                CS_TRY(free_memory(p, at, m, error));
        leave_passage(&p->passages, i);
    }
    if (p->n_memories > 0)
        count_passes(p);
    p->n_rounds++;
    return p->n_rounds == 1 ? take_residents(p, LATE_STATES, error) : CS_OK;
}

#include "sim/run/segments.h"

#include "sim/base/vector.h"
#include "sim/run/player.h"
#include "sim/run/segment-list.h"

#include <stdlib.h>

/* Memory after the changes of an instant, and the maximum within the instant. */
typedef struct sample {
    cs_time time;
    int64_t allocated, reserved, most_allocated, most_reserved;
    uint32_t device;
} sample;

typedef struct held_block {
    int64_t segment, address, bytes, requested;
    uint32_t device, stream, task;
    uint8_t moment, small, state, category;
} held_block;

typedef struct recording {
    uint32_t device;
    sample *samples;
    cs_segment_list segments;
    held_block *blocks;
    uint32_t n_samples, cap_samples, n_blocks, cap_blocks;
    uint32_t first_sample, first_segment; /* where the current device begins */
    cs_player_moment moment;
    bool starved; /* memory ran out during a visit */
} recording;

/* ---- over time ---- */

static bool note_sample(recording *r, const cs_player *player)
{
    const cs_caching_stats *stats = cs_player_stats(player);
    const cs_time time = cs_player_time(player);
    if (r->n_samples == r->first_sample || r->samples[r->n_samples - 1].time != time) {
        if (!cs_vector_reserve((void **)&r->samples, &r->cap_samples, r->n_samples + UINT64_C(1),
                               sizeof(*r->samples)))
            return false;
        r->samples[r->n_samples++] = (sample){.time = time, .device = r->device};
    }
    sample *at = &r->samples[r->n_samples - 1];
    at->allocated = stats->allocated;
    at->reserved = stats->reserved;
    if (at->allocated > at->most_allocated)
        at->most_allocated = at->allocated;
    if (at->reserved > at->most_reserved)
        at->most_reserved = at->reserved;
    return true;
}

static cs_status see(void *context, const cs_player *player, const cs_caching_event *event)
{
    recording *r = context;
    const cs_time time = cs_player_time(player);
    const bool maps = event->action == CS_CACHING_SEGMENT_MAP;
    bool room = event->action == CS_CACHING_OOM || note_sample(r, player);
    if (room && (maps || event->action == CS_CACHING_SEGMENT_ALLOC))
        room = cs_segment_list_add(&r->segments, &(cs_segment){.address = event->address,
                                                               .bytes = event->size,
                                                               .start = time,
                                                               .end = -1,
                                                               .device = r->device,
                                                               .stream = event->stream,
                                                               .small = event->small,
                                                               .expandable = maps});
    if (room &&
        (event->action == CS_CACHING_SEGMENT_UNMAP || event->action == CS_CACHING_SEGMENT_FREE))
        room =
            cs_segment_list_end(&r->segments, r->first_segment, event->address, event->size, time);
    return room ? CS_OK : CS_NO_MEMORY;
}

/* ---- at one moment ---- */

static bool hold(void *context, const cs_segment_view *view, const cs_block_owner *owners)
{
    recording *r = context;
    r->starved = !cs_vector_reserve((void **)&r->blocks, &r->cap_blocks,
                                    r->n_blocks + UINT64_C(0) + view->n_blocks, sizeof(*r->blocks));
    for (uint32_t i = 0; i < view->n_blocks && !r->starved; i++) {
        const cs_block_view *b = &view->blocks[i];
        const bool held = b->state != CS_BLOCK_FREE;
        r->blocks[r->n_blocks++] =
            (held_block){.segment = view->address,
                         .address = b->address,
                         .bytes = b->size,
                         .requested = b->requested,
                         .device = r->device,
                         .stream = view->stream,
                         .task = held ? owners[b->id].task : CS_NONE,
                         .moment = (uint8_t)r->moment,
                         .small = view->small,
                         .state = (uint8_t)b->state,
                         .category = (uint8_t)(held ? owners[b->id].category : CS_N_CATEGORIES)};
    }
    return !r->starved;
}

static cs_status look(void *context, cs_player *player, cs_player_moment moment, cs_error *error)
{
    recording *r = context;
    r->moment = moment;
    CS_TRY(cs_player_visit(player, hold, r, error));
    return r->starved ? cs_error_no_memory(error) : CS_OK;
}

/* ---- choosing devices ---- */

typedef struct candidate {
    int64_t reserved;
    uint32_t device;
} candidate;

static int by_reserved(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    CS_COMPARE(y->reserved, x->reserved);
    CS_COMPARE(x->device, y->device);
    return 0;
}

static int by_device(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    CS_COMPARE(x->device, y->device);
    return 0;
}

static cs_status choose(const cs_allocations *allocations, candidate **chosen, uint32_t *n,
                        cs_error *error)
{
    candidate *all = malloc((allocations->n_devices + 1ULL) * sizeof(*all));
    uint32_t count = 0;
    if (!all)
        return cs_error_no_memory(error);
    for (uint32_t d = 0; d < allocations->n_devices; d++)
        if (allocations->devices[d].played_as == d)
            all[count++] = (candidate){allocations->devices[d].stats.peak_reserved, d};
    qsort(all, count, sizeof(*all), by_reserved);
    *n = count < CS_SEGMENTS_DEVICES ? count : CS_SEGMENTS_DEVICES;
    qsort(all, *n, sizeof(*all), by_device);
    *chosen = all;
    return CS_OK;
}

/* ---- tables ---- */

static const char *const moments[] = {"peak", "failure", NULL};
static const char *const pools[] = {"large", "small", NULL};
static const char *const states[] = {"free", "allocated", "pending", NULL};
static const char *const no_yes[] = {"no", "yes", NULL};

static const char *const categories[] = {
#define CATEGORY_NAME(name, text) text,
    CS_CATEGORY_MAP(CATEGORY_NAME)
#undef CATEGORY_NAME
        "none",
    NULL,
};

typedef enum device_figure {
    PEAK_ALLOCATED,
    PEAK_RESERVED,
    PEAK_TIME,
    N_SEGMENTS,
    N_RETRIES,
    N_FAILURES,
    FAILED_BYTES,
    FAILED_TIME,
    FAILED_ALLOCATED,
    FAILED_RESERVED,
    FAILED_FREE,
    FAILED_LARGEST,
} device_figure;

static int64_t figure_of(const cs_device_allocations *of, device_figure which)
{
    const cs_failed_allocation *failure = &of->failure;
    switch (which) {
    case PEAK_ALLOCATED:
        return of->stats.peak_allocated;
    case PEAK_RESERVED:
        return of->stats.peak_reserved;
    case PEAK_TIME:
        return of->peak_time;
    case N_SEGMENTS:
        return (int64_t)of->stats.n_segments;
    case N_RETRIES:
        return (int64_t)of->stats.n_retries;
    case N_FAILURES:
        return (int64_t)of->stats.n_failures;
    case FAILED_BYTES:
        return failure->bytes;
    case FAILED_TIME:
        return failure->failed ? failure->time : -1;
    case FAILED_ALLOCATED:
        return failure->allocated;
    case FAILED_RESERVED:
        return failure->reserved;
    case FAILED_FREE:
        return failure->free;
    case FAILED_LARGEST:
        return failure->largest;
    }
    return 0;
}

static cs_h5_value device_figure_at(const void *source, uint64_t row, uint32_t which)
{
    const cs_allocations *all = source;
    return (cs_h5_value){.int64 = figure_of(&all->devices[row], (device_figure)which)};
}

static cs_h5_value failed_task(const void *source, uint64_t row, uint32_t which)
{
    const cs_allocations *all = source;
    const cs_failed_allocation *failure = &all->devices[row].failure;
    (void)which;
    return (cs_h5_value){.uint32 = failure->failed ? failure->task : CS_NONE};
}

static cs_h5_value played_as(const void *source, uint64_t row, uint32_t which)
{
    const cs_allocations *all = source;
    (void)which;
    return (cs_h5_value){.uint32 = all->devices[row].played_as};
}

static const cs_h5_column device_columns[] = {
    {"device", CS_H5_UINT32, "1", "number of the device", .fill = cs_h5_row_numbers},
    {"played_as", CS_H5_UINT32, "1", "device that was replayed on its behalf, or itself",
     .get = played_as},
    {"peak_allocated", CS_H5_INT64, "bytes", "torch.cuda.max_memory_allocated",
     .get = device_figure_at, .which = PEAK_ALLOCATED},
    {"peak_reserved", CS_H5_INT64, "bytes", "torch.cuda.max_memory_reserved",
     .get = device_figure_at, .which = PEAK_RESERVED},
    {"peak_time", CS_H5_INT64, "ps", "when reserved memory first reached its peak",
     .get = device_figure_at, .which = PEAK_TIME},
    {"segments", CS_H5_INT64, "1", "segments allocated", .get = device_figure_at,
     .which = N_SEGMENTS},
    {"retries", CS_H5_INT64, "1", "segments requested again after free segments were returned",
     .get = device_figure_at, .which = N_RETRIES},
    {"failures", CS_H5_INT64, "1", "failed allocations", .get = device_figure_at,
     .which = N_FAILURES},
    {"failed_bytes", CS_H5_INT64, "bytes", "bytes requested by the first failed allocation",
     .get = device_figure_at, .which = FAILED_BYTES},
    {"failed_time", CS_H5_INT64, "ps", "time of the first failure, or -1", .get = device_figure_at,
     .which = FAILED_TIME},
    {"failed_task", CS_H5_UINT32, "1", "task of the first failure", .optional = true,
     .get = failed_task},
    {"failed_allocated", CS_H5_INT64, "bytes", "allocated at that time", .get = device_figure_at,
     .which = FAILED_ALLOCATED},
    {"failed_reserved", CS_H5_INT64, "bytes", "reserved at that time", .get = device_figure_at,
     .which = FAILED_RESERVED},
    {"failed_free", CS_H5_INT64, "bytes", "in free blocks that could have been split for it",
     .get = device_figure_at, .which = FAILED_FREE},
    {"failed_largest", CS_H5_INT64, "bytes", "the largest of these blocks", .get = device_figure_at,
     .which = FAILED_LARGEST},
    {0},
};

static const cs_h5_column sample_columns[] = {
    {"sample", CS_H5_UINT32, "1", "number of the sample", .fill = cs_h5_row_numbers},
    {"time", CS_H5_INT64, "ps", "time of the change", .which = offsetof(sample, time)},
    {"device", CS_H5_UINT32, "1", "device", .which = offsetof(sample, device)},
    {"allocated", CS_H5_INT64, "bytes", "allocated from then on",
     .which = offsetof(sample, allocated)},
    {"reserved", CS_H5_INT64, "bytes", "in segments from then on",
     .which = offsetof(sample, reserved)},
    {"most_allocated", CS_H5_INT64, "bytes", "peak of allocated memory within that instant",
     .which = offsetof(sample, most_allocated)},
    {"most_reserved", CS_H5_INT64, "bytes", "peak of reserved memory within that instant",
     .which = offsetof(sample, most_reserved)},
    {0},
};

static cs_h5_value segment_pool(const void *source, uint64_t row, uint32_t which)
{
    (void)which;
    return (cs_h5_value){.uint8 = ((const cs_segment *)source)[row].small};
}

static cs_h5_value segment_expandable(const void *source, uint64_t row, uint32_t which)
{
    (void)which;
    return (cs_h5_value){.uint8 = ((const cs_segment *)source)[row].expandable};
}

static const cs_h5_column segment_columns[] = {
    {"segment", CS_H5_UINT32, "1", "number of the row", .fill = cs_h5_row_numbers},
    {"device", CS_H5_UINT32, "1", "device", .which = offsetof(cs_segment, device)},
    {"pool", CS_H5_UINT8, "1", "size class of its blocks", pools, .get = segment_pool},
    {"stream", CS_H5_UINT32, "1", "0: computing; 1: gathered weights; 2: reduced gradients",
     .which = offsetof(cs_segment, stream)},
    {"expandable", CS_H5_UINT8, "1", "part of an expandable segment", no_yes,
     .get = segment_expandable},
    {"address", CS_H5_INT64, "1", "simulated start address",
     .which = offsetof(cs_segment, address)},
    {"bytes", CS_H5_INT64, "bytes", "size", .which = offsetof(cs_segment, bytes)},
    {"start", CS_H5_INT64, "ps", "time of its allocation", .which = offsetof(cs_segment, start)},
    {"end", CS_H5_INT64, "ps", "time of its release, or -1", .which = offsetof(cs_segment, end)},
    {0},
};

static cs_h5_value block_coded(const void *source, uint64_t row, uint32_t offset)
{
    const held_block *of = (const held_block *)source + row;
    return (cs_h5_value){.uint8 = ((const uint8_t *)of)[offset]};
}

static const cs_h5_column block_columns[] = {
    {"block", CS_H5_UINT32, "1", "number of the row", .fill = cs_h5_row_numbers},
    {"device", CS_H5_UINT32, "1", "device", .which = offsetof(held_block, device)},
    {"moment", CS_H5_UINT8, "1", "time of the snapshot", moments, .get = block_coded,
     .which = offsetof(held_block, moment)},
    {"pool", CS_H5_UINT8, "1", "pool of its segment", pools, .get = block_coded,
     .which = offsetof(held_block, small)},
    {"stream", CS_H5_UINT32, "1", "stream of its segment", .which = offsetof(held_block, stream)},
    {"segment_address", CS_H5_INT64, "1", "start address of its segment",
     .which = offsetof(held_block, segment)},
    {"address", CS_H5_INT64, "1", "start address", .which = offsetof(held_block, address)},
    {"bytes", CS_H5_INT64, "bytes", "size", .which = offsetof(held_block, bytes)},
    {"requested", CS_H5_INT64, "bytes", "size before rounding up; 0: free",
     .which = offsetof(held_block, requested)},
    {"state", CS_H5_UINT8, "1", "whether it is in use", states, .get = block_coded,
     .which = offsetof(held_block, state)},
    {"category", CS_H5_UINT8, "1", "category of its tensor", categories, .get = block_coded,
     .which = offsetof(held_block, category)},
    {"task", CS_H5_UINT32, "1", "task that allocated it", .optional = true,
     .which = offsetof(held_block, task)},
    {0},
};

static cs_status store(const recording *r, const cs_allocations *allocations, cs_h5_file *file,
                       cs_error *error)
{
    const cs_h5_table tables[] = {
        {"allocator", "device", device_columns, allocations->n_devices, allocations},
        {"reserved", "sample", sample_columns, r->n_samples, r->samples,
         .row_size = sizeof(*r->samples)},
        {"segments", "segment", segment_columns, r->segments.n, r->segments.items,
         .row_size = sizeof(*r->segments.items)},
        {"blocks", "block", block_columns, r->n_blocks, r->blocks, .row_size = sizeof(*r->blocks)},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        CS_TRY(cs_h5_write_table(file, &tables[i], error));
    return CS_OK;
}

cs_status cs_segments_store(cs_h5_file *file, const cs_scenario *scenario, const cs_graph *graph,
                            const cs_trace *trace, const cs_allocations *allocations,
                            cs_error *error)
{
    recording r = {0};
    candidate *chosen = NULL;
    uint32_t n = 0;
    if (allocations->n_devices == 0)
        return CS_OK;
    cs_status status = choose(allocations, &chosen, &n, error);
    for (uint32_t i = 0; i < n && status == CS_OK; i++) {
        cs_device_allocations made;
        const cs_player_watch watch = {.peak_at = allocations->devices[chosen[i].device].peak_at,
                                       .see = see,
                                       .look = look,
                                       .context = &r};
        r.device = chosen[i].device;
        r.first_sample = r.n_samples;
        r.first_segment = r.segments.n;
        status =
            cs_player_play(scenario, graph, trace, r.device,
                           scenario->platform.devices[r.device].capacity, &watch, &made, error);
    }
    if (status == CS_OK)
        status = store(&r, allocations, file, error);
    free(chosen);
    free(r.samples);
    cs_segment_list_finish(&r.segments);
    free(r.blocks);
    return status;
}

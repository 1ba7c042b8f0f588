#include "sim/model/allocator/caching-allocator.h"

#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

enum {
    MIB = 1 << 20,
    MIN_BLOCK = 512,
    SMALL_SIZE = MIB,        /* largest block of the small pool */
    SMALL_BUFFER = 2 * MIB,  /* segment of the small pool */
    LARGE_BUFFER = 20 * MIB, /* segment of the large pool for a block below MIN_LARGE_ALLOC */
    MIN_LARGE_ALLOC =
        10 * MIB, /* blocks from this size on: own segment, rounded up to ROUND_LARGE */
    ROUND_LARGE = 2 * MIB,
    NON_SPLIT_ROUNDING = LARGE_BUFFER,
};

static const int64_t first_address = INT64_C(0x7f0000000000);

const char *const cs_caching_action_names[] = {
#define ACTION_NAME(name, text) text,
    CS_CACHING_ACTION_MAP(ACTION_NAME)
#undef ACTION_NAME
        NULL};

/* A piece of a segment. The blocks of a segment are linked in the order of their addresses. */
typedef struct block {
    int64_t address, size, requested;
    uint32_t prev, next;  /* neighbours in the segment; CS_NO_BLOCK: first or last block */
    uint32_t left, right; /* children in the tree of its set; CS_NO_BLOCK: none */
    uint32_t stream;
    uint32_t uses;      /* number of uses by other streams that are not done */
    uint64_t free_from; /* value of its pool's `searches` when it became free */
    bool small, expandable;
    bool allocated, mapped;
    bool live; /* whether the entry is a block; false: the entry is free for a new block */
} block;

/* A treap: a binary tree of blocks sorted by stream, size and address, where no child has a higher
 * rank than its parent. */
typedef struct block_set {
    uint32_t n;
    uint32_t root; /* root of the tree; CS_NO_BLOCK: empty */
} block_set;

typedef struct pool {
    block_set blocks;   /* free blocks that are mapped */
    block_set unmapped; /* unmapped blocks of expandable segments */
    uint64_t searches;
} pool;

struct cs_caching_allocator {
    cs_caching_options options;
    cs_caching_observer observer;
    cs_caching_stats stats;
    block *blocks;
    uint32_t n_blocks, cap_blocks;
    uint32_t *spare; /* entries of `blocks` that can be used again */
    uint32_t n_spare, cap_spare;
    pool pools[2]; /* [0]: large pool, [1]: small pool */
    int64_t next_address;
};

cs_caching_allocator *cs_caching_create(const cs_caching_options *options,
                                        const cs_caching_observer *observer)
{
    cs_caching_allocator *a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->options = *options;
    if (observer)
        a->observer = *observer;
    a->next_address = first_address;
    for (int i = 0; i < 2; i++)
        a->pools[i].blocks.root = a->pools[i].unmapped.root = CS_NO_BLOCK;
    return a;
}

void cs_caching_destroy(cs_caching_allocator *a)
{
    if (!a)
        return;
    free(a->blocks);
    free(a->spare);
    free(a);
}

const cs_caching_stats *cs_caching_stats_of(const cs_caching_allocator *a)
{
    return &a->stats;
}

static void tell(cs_caching_allocator *a, cs_caching_action action, int64_t address, int64_t size,
                 uint32_t stream, bool small)
{
    if (a->observer.see)
        a->observer.see(a->observer.context,
                        &(cs_caching_event){action, address, size, stream, small});
}

static int64_t round_up(int64_t bytes, int64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static int64_t block_size(int64_t bytes)
{
    return bytes < MIN_BLOCK ? MIN_BLOCK : round_up(bytes, MIN_BLOCK);
}

static int64_t segment_size(int64_t size)
{
    if (size <= SMALL_SIZE)
        return SMALL_BUFFER;
    return size < MIN_LARGE_ALLOC ? LARGE_BUFFER : round_up(size, ROUND_LARGE);
}

static pool *pool_of(cs_caching_allocator *a, bool small)
{
    return &a->pools[small];
}

/* ---- sets of blocks ---- */

static const block least; /* comes before all blocks */

static bool is_before(const block *x, const block *y)
{
    if (x->stream != y->stream)
        return x->stream < y->stream;
    return x->size != y->size ? x->size < y->size : x->address < y->address;
}

/* Mixes the id (MurmurHash3), so that the depth of the tree is about the logarithm of its size,
 * however the added blocks are ordered. */
static uint32_t rank_of(uint32_t id)
{
    id = (id ^ id >> 16) * UINT32_C(0x85ebca6b);
    id = (id ^ id >> 13) * UINT32_C(0xc2b2ae35);
    return id ^ id >> 16;
}

/* Returns the first block at or after `key`, or CS_NO_BLOCK. */
static uint32_t lower_bound(const cs_caching_allocator *a, const block_set *set, const block *key)
{
    uint32_t found = CS_NO_BLOCK, id = set->root;
    while (id != CS_NO_BLOCK) {
        const bool before = is_before(&a->blocks[id], key);
        found = before ? found : id;
        id = before ? a->blocks[id].right : a->blocks[id].left;
    }
    return found;
}

/* Returns the last block before `key`, or CS_NO_BLOCK. */
static uint32_t last_before(const cs_caching_allocator *a, const block_set *set, const block *key)
{
    uint32_t found = CS_NO_BLOCK, id = set->root;
    while (id != CS_NO_BLOCK) {
        const bool before = is_before(&a->blocks[id], key);
        found = before ? id : found;
        id = before ? a->blocks[id].right : a->blocks[id].left;
    }
    return found;
}

/* Returns the next block of the set after `b`, which is or was in the set. */
static uint32_t after(const cs_caching_allocator *a, const block_set *set, const block *b)
{
    const block key = {.stream = b->stream, .size = b->size, .address = b->address + 1};
    return lower_bound(a, set, &key);
}

static void insert(cs_caching_allocator *a, block_set *set, uint32_t id)
{
    block *b = &a->blocks[id];
    uint32_t *link = &set->root, *left = &b->left, *right = &b->right;
    while (*link != CS_NO_BLOCK && rank_of(*link) >= rank_of(id))
        link = is_before(&a->blocks[*link], b) ? &a->blocks[*link].right : &a->blocks[*link].left;
    /* this subtree is split into the blocks before b and the blocks after b */
    uint32_t other = *link;
    while (other != CS_NO_BLOCK) {
        const bool before = is_before(&a->blocks[other], b);
        *(before ? left : right) = other;
        if (before)
            left = &a->blocks[other].right;
        else
            right = &a->blocks[other].left;
        other = before ? *left : *right;
    }
    *left = *right = CS_NO_BLOCK;
    *link = id;
    set->n++;
}

static void take_out(cs_caching_allocator *a, block_set *set, uint32_t id)
{
    const block *b = &a->blocks[id];
    uint32_t *link = &set->root, left = b->left, right = b->right;
    while (*link != id)
        link = is_before(&a->blocks[*link], b) ? &a->blocks[*link].right : &a->blocks[*link].left;
    while (left != CS_NO_BLOCK && right != CS_NO_BLOCK) {
        const bool is_left = rank_of(left) >= rank_of(right);
        *link = is_left ? left : right;
        link = is_left ? &a->blocks[left].right : &a->blocks[right].left;
        *(is_left ? &left : &right) = *link;
    }
    *link = left != CS_NO_BLOCK ? left : right;
    set->n--;
}

static block_set *set_of(cs_caching_allocator *a, const block *b)
{
    pool *p = pool_of(a, b->small);
    return b->mapped ? &p->blocks : &p->unmapped;
}

/* ---- blocks ---- */

static cs_status new_block(cs_caching_allocator *a, const block *like, uint32_t *id,
                           cs_error *error)
{
    if (a->n_spare > 0) {
        *id = a->spare[--a->n_spare];
    } else {
        if (!cs_vector_reserve((void **)&a->blocks, &a->cap_blocks, a->n_blocks + UINT64_C(1),
                               sizeof(*a->blocks)))
            return cs_error_no_memory(error);
        *id = a->n_blocks++;
    }
    a->blocks[*id] = *like;
    a->blocks[*id].live = true;
    return CS_OK;
}

static cs_status drop_block(cs_caching_allocator *a, uint32_t id, cs_error *error)
{
    a->blocks[id].live = false;
    if (!cs_vector_reserve((void **)&a->spare, &a->cap_spare, a->n_spare + UINT64_C(1),
                           sizeof(*a->spare)))
        return cs_error_no_memory(error);
    a->spare[a->n_spare++] = id;
    return CS_OK;
}

static bool is_free(const block *b)
{
    return !b->allocated && b->uses == 0;
}

/* Cuts a block after its first `size` bytes; the rest becomes a new block, which is in no set
 * yet. */
static cs_status cut(cs_caching_allocator *a, uint32_t id, int64_t size, uint32_t *rest,
                     cs_error *error)
{
    block behind = a->blocks[id];
    behind.address += size;
    behind.size -= size;
    behind.prev = id;
    CS_TRY(new_block(a, &behind, rest, error));
    if (behind.next != CS_NO_BLOCK)
        a->blocks[behind.next].prev = *rest;
    a->blocks[id].next = *rest;
    a->blocks[id].size = size;
    return CS_OK;
}

/* Merges a neighbour into a block that is in no set, if the neighbour is free and mapped alike;
 * takes the neighbour out of its set. */
static cs_status join(cs_caching_allocator *a, uint32_t id, uint32_t neighbour, cs_error *error)
{
    if (neighbour == CS_NO_BLOCK)
        return CS_OK;
    block *b = &a->blocks[id], *n = &a->blocks[neighbour];
    if (!is_free(n) || n->mapped != b->mapped)
        return CS_OK;
    take_out(a, set_of(a, n), neighbour);
    if (b->prev == neighbour) {
        b->address = n->address;
        b->prev = n->prev;
        if (b->prev != CS_NO_BLOCK)
            a->blocks[b->prev].next = id;
    } else {
        b->next = n->next;
        if (b->next != CS_NO_BLOCK)
            a->blocks[b->next].prev = id;
    }
    b->size += n->size;
    return drop_block(a, neighbour, error);
}

/* Merges an unused block with its free neighbours and puts it into its set. */
static cs_status settle(cs_caching_allocator *a, uint32_t id, cs_error *error)
{
    CS_TRY(join(a, id, a->blocks[id].prev, error));
    CS_TRY(join(a, id, a->blocks[id].next, error));
    a->blocks[id].free_from = pool_of(a, a->blocks[id].small)->searches;
    insert(a, set_of(a, &a->blocks[id]), id);
    return CS_OK;
}

static void reserve(cs_caching_allocator *a, int64_t bytes)
{
    cs_caching_stats *s = &a->stats;
    s->reserved += bytes;
    s->peak_reserved = s->reserved > s->peak_reserved ? s->reserved : s->peak_reserved;
}

static bool has_room(const cs_caching_allocator *a, int64_t bytes)
{
    return bytes <= a->options.capacity - a->stats.reserved;
}

/* ---- giving segments back ---- */

static bool is_whole(const block *b)
{
    return b->prev == CS_NO_BLOCK && b->next == CS_NO_BLOCK;
}

static cs_status release_segment(cs_caching_allocator *a, uint32_t id, cs_error *error)
{
    const block *b = &a->blocks[id];
    take_out(a, set_of(a, b), id);
    a->stats.reserved -= b->size;
    tell(a, CS_CACHING_SEGMENT_FREE, b->address, b->size, b->stream, b->small);
    return drop_block(a, id, error);
}

static int64_t unit_of(const block *b)
{
    return b->small ? SMALL_BUFFER : LARGE_BUFFER;
}

/* Unmaps whole units that lie within a free block of an expandable segment. Segments begin at
 * multiples of both unit sizes. */
static cs_status unmap(cs_caching_allocator *a, uint32_t id, cs_error *error)
{
    const block *b = &a->blocks[id];
    const int64_t unit = unit_of(b), origin = first_address;
    const int64_t first = origin + round_up(b->address - origin, unit);
    const int64_t end = origin + (b->address + b->size - origin) / unit * unit;
    uint32_t middle = id, rest = CS_NO_BLOCK;
    if (first >= end)
        return CS_OK;
    take_out(a, set_of(a, b), id);
    if (first > b->address)
        CS_TRY(cut(a, id, first - b->address, &middle, error));
    if (end < a->blocks[middle].address + a->blocks[middle].size)
        CS_TRY(cut(a, middle, end - first, &rest, error));
    a->blocks[middle].mapped = false;
    a->stats.reserved -= end - first;
    tell(a, CS_CACHING_SEGMENT_UNMAP, first, end - first, a->blocks[middle].stream,
         a->blocks[middle].small);
    if (middle != id)
        insert(a, set_of(a, &a->blocks[id]), id);
    if (rest != CS_NO_BLOCK)
        insert(a, set_of(a, &a->blocks[rest]), rest);
    return settle(a, middle, error);
}

/* Gives back all free segments and units of a pool. Unmapped units merge only with other unmapped
 * blocks, so the ids of the listed blocks stay valid. */
static cs_status release_pool(cs_caching_allocator *a, const pool *p, cs_error *error)
{
    const uint32_t n = p->blocks.n;
    uint32_t *ids = malloc((n + 1ULL) * sizeof(*ids));
    cs_status status = ids ? CS_OK : cs_error_no_memory(error);
    uint32_t id = lower_bound(a, &p->blocks, &least);
    for (uint32_t i = 0; ids && i < n; i++) {
        ids[i] = id;
        id = after(a, &p->blocks, &a->blocks[id]);
    }
    for (uint32_t i = 0; i < n && status == CS_OK; i++) {
        if (a->blocks[ids[i]].expandable)
            status = unmap(a, ids[i], error);
        else if (is_whole(&a->blocks[ids[i]]))
            status = release_segment(a, ids[i], error);
    }
    free(ids);
    return status;
}

cs_status cs_caching_empty(cs_caching_allocator *a, cs_error *error)
{
    CS_TRY(release_pool(a, pool_of(a, false), error));
    return release_pool(a, pool_of(a, true), error);
}

/* Gives back blocks of at least max_split_size bytes until enough bytes for `size` are gained;
 * *done becomes false if there are too few. */
static cs_status release_large(cs_caching_allocator *a, int64_t size, uint32_t stream, bool small,
                               bool *done, cs_error *error)
{
    const int64_t limit = a->options.max_split_size;
    block_set *set = &pool_of(a, small)->blocks;
    const int64_t wanted = size > limit ? size : limit;
    block key = {.stream = stream, .size = wanted};
    int64_t gained = 0;
    *done = false;
    if (limit == INT64_MAX)
        return CS_OK;
    uint32_t id = lower_bound(a, set, &key);
    if (id != CS_NO_BLOCK && a->blocks[id].stream == stream) {
        *done = true;
        return release_segment(a, id, error);
    }
    while (gained < wanted && (id = last_before(a, set, &key)) != CS_NO_BLOCK) {
        key = a->blocks[id];
        if (key.stream != stream || key.size < limit)
            break;
        if (!is_whole(&key) || key.expandable)
            continue;
        gained += key.size;
        CS_TRY(release_segment(a, id, error));
    }
    *done = gained >= wanted;
    return CS_OK;
}

/* ---- garbage collection ---- */

static bool is_garbage(const block *b)
{
    return is_whole(b) && !b->expandable;
}

static uint64_t age_of(const pool *p, const block *b)
{
    return p->searches - b->free_from;
}

static cs_status collect(cs_caching_allocator *a, cs_error *error)
{
    pool *p = pool_of(a, false);
    const double allowed = a->options.gc_threshold * (double)a->options.capacity;
    const int64_t target = a->stats.reserved - (int64_t)allowed;
    uint64_t ages = 0, n = 0;
    int64_t gained = 0;
    bool freed = true;
    const uint32_t first = lower_bound(a, &p->blocks, &least);
    for (uint32_t id = first; id != CS_NO_BLOCK; id = after(a, &p->blocks, &a->blocks[id])) {
        const block *b = &a->blocks[id];
        ages += is_garbage(b) ? age_of(p, b) : 0;
        n += is_garbage(b);
    }
    while (target > 0 && gained < target && freed && n > 0) {
        const double mean = (double)ages / (double)n;
        freed = false;
        block b = least;
        for (uint32_t id; (id = after(a, &p->blocks, &b)) != CS_NO_BLOCK;) {
            b = a->blocks[id];
            if (!is_garbage(&b) || (double)age_of(p, &b) < mean)
                continue;
            freed = true;
            gained += b.size;
            ages -= age_of(p, &b);
            n--;
            CS_TRY(release_segment(a, id, error));
        }
    }
    return CS_OK;
}

/* ---- finding a block ---- */

/* Returns the size that a block can have after growing; the search for the best fit uses this
 * size. */
static int64_t size_grown(const cs_caching_allocator *a, const block *b)
{
    const block *next = b->next != CS_NO_BLOCK ? &a->blocks[b->next] : NULL;
    return b->size + (next && !next->mapped ? next->size : 0);
}

/* Returns the free block that fits best; CS_NO_BLOCK: no block is suitable. */
static uint32_t find_block(cs_caching_allocator *a, int64_t size, uint32_t stream, bool small)
{
    pool *p = pool_of(a, small);
    const block_set *set = &p->blocks;
    const int64_t limit = a->options.max_split_size;
    uint32_t id = lower_bound(a, set, &(block){.stream = stream, .size = size});
    p->searches++;
    if (id == CS_NO_BLOCK || a->blocks[id].stream != stream)
        return CS_NO_BLOCK;
    const block *b = &a->blocks[id];
    for (uint32_t next; b->expandable && (next = after(a, set, b)) != CS_NO_BLOCK;) {
        const block *other = &a->blocks[next];
        if (other->stream != stream || size_grown(a, other) >= size_grown(a, b))
            break;
        id = next;
        b = other;
    }
    if (size < limit ? b->size >= limit : b->size - size >= NON_SPLIT_ROUNDING)
        return CS_NO_BLOCK;
    return id;
}

static cs_status new_segment(cs_caching_allocator *a, int64_t size, uint32_t stream, bool small,
                             uint32_t *id, cs_error *error)
{
    const int64_t bytes = segment_size(size);
    *id = CS_NO_BLOCK;
    if (!has_room(a, bytes))
        return CS_OK;
    const block made = {.address = a->next_address,
                        .size = bytes,
                        .prev = CS_NO_BLOCK,
                        .next = CS_NO_BLOCK,
                        .stream = stream,
                        .small = small,
                        .mapped = true};
    CS_TRY(new_block(a, &made, id, error));
    a->next_address += round_up(bytes, ROUND_LARGE);
    a->stats.n_segments++;
    reserve(a, bytes);
    tell(a, CS_CACHING_SEGMENT_ALLOC, made.address, bytes, stream, small);
    return CS_OK;
}

/* ---- expandable segments ---- */

/* Reserves address space for an expandable segment: an eighth more than the device's memory. */
static cs_status new_space(cs_caching_allocator *a, uint32_t stream, bool small, uint32_t *id,
                           cs_error *error)
{
    enum { LIMIT = 1 << 18 }; /* MiB, if the device's memory is unlimited */
    const int64_t capacity =
        a->options.capacity < (int64_t)LIMIT * MIB ? a->options.capacity : (int64_t)LIMIT * MIB;
    const block made = {.address =
                            first_address + round_up(a->next_address - first_address, LARGE_BUFFER),
                        .size = round_up(capacity + capacity / 8, LARGE_BUFFER),
                        .prev = CS_NO_BLOCK,
                        .next = CS_NO_BLOCK,
                        .stream = stream,
                        .small = small,
                        .expandable = true};
    CS_TRY(new_block(a, &made, id, error));
    a->next_address = made.address + made.size;
    a->stats.n_segments++;
    insert(a, set_of(a, &a->blocks[*id]), *id);
    return CS_OK;
}

/* Finds space for `size` bytes in an expandable segment, mapped or not. Returns an unmapped block,
 * or the free block before it; CS_NO_BLOCK: no space. */
static uint32_t find_space(cs_caching_allocator *a, int64_t size, uint32_t stream, bool small)
{
    const block_set *set = &pool_of(a, small)->unmapped;
    uint32_t next = lower_bound(a, set, &(block){.stream = stream});
    for (; next != CS_NO_BLOCK; next = after(a, set, &a->blocks[next])) {
        uint32_t first = next;
        int64_t bytes = 0;
        if (a->blocks[first].stream != stream)
            break;
        const uint32_t before = a->blocks[first].prev;
        if (before != CS_NO_BLOCK && is_free(&a->blocks[before]))
            first = before;
        for (uint32_t b = first; b != CS_NO_BLOCK && is_free(&a->blocks[b]) && bytes < size;
             b = a->blocks[b].next)
            bytes += a->blocks[b].size;
        if (bytes >= size)
            return first;
    }
    return CS_NO_BLOCK;
}

/* Maps the first bytes of an unmapped block, and merges them with the free block before. *id
 * becomes the merged block, which is in its set; CS_NO_BLOCK: the device has no memory left. */
static cs_status map(cs_caching_allocator *a, uint32_t *id, int64_t size, cs_error *error)
{
    uint32_t rest = CS_NO_BLOCK;
    const int64_t all = a->blocks[*id].size;
    int64_t bytes = round_up(size, unit_of(&a->blocks[*id]));
    bytes = bytes < all ? bytes : all;
    if (!has_room(a, bytes)) {
        *id = CS_NO_BLOCK;
        return CS_OK;
    }
    take_out(a, set_of(a, &a->blocks[*id]), *id);
    if (bytes < all) {
        CS_TRY(cut(a, *id, bytes, &rest, error));
        insert(a, set_of(a, &a->blocks[rest]), rest);
    }
    a->blocks[*id].mapped = true;
    reserve(a, bytes);
    tell(a, CS_CACHING_SEGMENT_MAP, a->blocks[*id].address, bytes, a->blocks[*id].stream,
         a->blocks[*id].small);
    return settle(a, *id, error);
}

static cs_status grow_segment(cs_caching_allocator *a, int64_t size, uint32_t stream, bool small,
                              uint32_t *id, cs_error *error)
{
    uint32_t found = find_space(a, size, stream, small);
    if (found == CS_NO_BLOCK)
        CS_TRY(new_space(a, stream, small, &found, error));
    *id = CS_NO_BLOCK;
    if (!a->blocks[found].mapped)
        CS_TRY(map(a, &found, size, error));
    while (found != CS_NO_BLOCK && a->blocks[found].size < size) {
        const int64_t missing = size - a->blocks[found].size;
        found = a->blocks[found].next;
        CS_TRY(map(a, &found, missing, error));
    }
    if (found != CS_NO_BLOCK)
        take_out(a, set_of(a, &a->blocks[found]), found);
    *id = found;
    return CS_OK;
}

/* ---- allocating ---- */

static cs_status extend(cs_caching_allocator *a, int64_t size, uint32_t stream, bool small,
                        uint32_t *id, cs_error *error)
{
    return a->options.expandable_segments ? grow_segment(a, size, stream, small, id, error)
                                          : new_segment(a, size, stream, small, id, error);
}

/* Takes a block of at least `size` bytes out of its set, or gets a new one; CS_NO_BLOCK: no
 * room. */
static cs_status get_block(cs_caching_allocator *a, int64_t size, uint32_t stream, uint32_t *id,
                           cs_error *error)
{
    const bool small = size <= SMALL_SIZE;
    bool again;
    *id = find_block(a, size, stream, small);
    if (*id != CS_NO_BLOCK) {
        take_out(a, &pool_of(a, small)->blocks, *id);
        return CS_OK;
    }
    if (a->options.gc_threshold > 0)
        CS_TRY(collect(a, error));
    CS_TRY(extend(a, size, stream, small, id, error));
    if (*id != CS_NO_BLOCK)
        return CS_OK;
    CS_TRY(release_large(a, size, stream, small, &again, error));
    if (again) {
        a->stats.n_retries++;
        CS_TRY(extend(a, size, stream, small, id, error));
    }
    if (*id != CS_NO_BLOCK)
        return CS_OK;
    CS_TRY(cs_caching_empty(a, error));
    a->stats.n_retries++;
    return extend(a, size, stream, small, id, error);
}

static bool is_split(const cs_caching_allocator *a, const block *b, int64_t size)
{
    const int64_t rest = b->size - size;
    if (b->small || a->options.expandable_segments)
        return rest >= MIN_BLOCK;
    return size < a->options.max_split_size && rest > SMALL_SIZE;
}

cs_status cs_caching_allocate(cs_caching_allocator *a, int64_t bytes, uint32_t stream,
                              uint32_t *out, cs_error *error)
{
    const int64_t size = block_size(bytes);
    cs_caching_stats *s = &a->stats;
    uint32_t id, rest;
    CS_TRY(get_block(a, size, stream, &id, error));
    *out = id;
    if (id == CS_NO_BLOCK) {
        s->n_failures++;
        tell(a, CS_CACHING_OOM, a->options.capacity - s->reserved, bytes, stream,
             size <= SMALL_SIZE);
        return CS_OK;
    }
    if (is_split(a, &a->blocks[id], size)) {
        CS_TRY(cut(a, id, size, &rest, error));
        insert(a, set_of(a, &a->blocks[rest]), rest);
    }
    block *b = &a->blocks[id];
    b->allocated = true;
    b->requested = bytes;
    s->n_allocations++;
    s->requested += bytes;
    s->allocated += b->size;
    s->peak_allocated = s->allocated > s->peak_allocated ? s->allocated : s->peak_allocated;
    tell(a, CS_CACHING_ALLOC, b->address, bytes, stream, b->small);
    return CS_OK;
}

static cs_status complete(cs_caching_allocator *a, uint32_t id, cs_error *error)
{
    block *b = &a->blocks[id];
    tell(a, CS_CACHING_FREE_COMPLETED, b->address, b->requested, b->stream, b->small);
    b->requested = 0;
    return settle(a, id, error);
}

cs_status cs_caching_free(cs_caching_allocator *a, uint32_t id, cs_error *error)
{
    block *b = &a->blocks[id];
    b->allocated = false;
    a->stats.allocated -= b->size;
    a->stats.requested -= b->requested;
    tell(a, CS_CACHING_FREE_REQUESTED, b->address, b->requested, b->stream, b->small);
    return b->uses == 0 ? complete(a, id, error) : CS_OK;
}

void cs_caching_record(cs_caching_allocator *a, uint32_t id)
{
    a->blocks[id].uses++;
}

cs_status cs_caching_done(cs_caching_allocator *a, uint32_t id, cs_error *error)
{
    block *b = &a->blocks[id];
    b->uses--;
    return b->uses == 0 && !b->allocated ? complete(a, id, error) : CS_OK;
}

/* ---- what there is ---- */

void cs_caching_free_room(const cs_caching_allocator *a, int64_t bytes, uint32_t stream,
                          int64_t *largest, int64_t *all)
{
    const block_set *set = &a->pools[block_size(bytes) <= SMALL_SIZE].blocks;
    *largest = *all = 0;
    uint32_t id = lower_bound(a, set, &least);
    for (; id != CS_NO_BLOCK; id = after(a, set, &a->blocks[id])) {
        const block *b = &a->blocks[id];
        if (b->stream != stream)
            continue;
        *all += b->size;
        *largest = b->size > *largest ? b->size : *largest;
    }
}

typedef struct head {
    int64_t address;
    uint32_t id;
} head;

static int by_address(const void *x, const void *y)
{
    const head *a = x, *b = y;
    return (a->address > b->address) - (a->address < b->address);
}

static cs_block_state state_of(const block *b)
{
    if (b->allocated)
        return CS_BLOCK_ALLOCATED;
    return b->uses > 0 ? CS_BLOCK_PENDING : CS_BLOCK_FREE;
}

/* Fills `views` with the mapped blocks from `id` on, up to a gap or the segment's end. Returns the
 * block that follows; CS_NO_BLOCK: end of the segment. */
static uint32_t view_run(const cs_caching_allocator *a, uint32_t id, cs_block_view *views,
                         cs_segment_view *segment)
{
    const block *first = &a->blocks[id];
    *segment = (cs_segment_view){.address = first->address,
                                 .stream = first->stream,
                                 .small = first->small,
                                 .expandable = first->expandable,
                                 .blocks = views};
    for (; id != CS_NO_BLOCK && a->blocks[id].mapped; id = a->blocks[id].next) {
        const block *b = &a->blocks[id];
        views[segment->n_blocks++] =
            (cs_block_view){b->address, b->size, b->requested, state_of(b), id};
        segment->size += b->size;
    }
    return id;
}

cs_status cs_caching_visit(const cs_caching_allocator *a,
                           bool (*visit)(void *context, const cs_segment_view *view), void *context,
                           cs_error *error)
{
    head *heads = malloc((a->n_blocks + 1ULL) * sizeof(*heads));
    cs_block_view *views = malloc((a->n_blocks + 1ULL) * sizeof(*views));
    uint32_t n = 0;
    bool more = heads && views;
    const cs_status status = more ? CS_OK : cs_error_no_memory(error);
    for (uint32_t i = 0; more && i < a->n_blocks; i++)
        if (a->blocks[i].live && a->blocks[i].prev == CS_NO_BLOCK)
            heads[n++] = (head){a->blocks[i].address, i};
    if (more && n > 0)
        qsort(heads, n, sizeof(*heads), by_address);
    for (uint32_t i = 0; more && i < n; i++) {
        uint32_t id = heads[i].id;
        while (more && id != CS_NO_BLOCK) {
            cs_segment_view segment;
            if (!a->blocks[id].mapped) {
                id = a->blocks[id].next;
                continue;
            }
            id = view_run(a, id, views, &segment);
            more = visit(context, &segment);
        }
    }
    free(heads);
    free(views);
    return status;
}

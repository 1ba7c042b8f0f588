#include "sim/model/foreign/pipedream-prefixes.h"

#include "sim/base/file.h"
#include "sim/base/sum.h"
#include "sim/model/foreign/pipedream-chain.h"

#include <stdlib.h>
#include <string.h>

/* A search for prefixes, which finds all prefixes of one size before the larger ones. */
typedef struct search {
    const cs_pipedream_chain *chain;
    uint32_t n_words, n;
    uint32_t level; /* index of the first prefix of the size that is being made */
    uint64_t *sets; /* CS_PIPEDREAM_PREFIXES sets, and one more as a candidate */
} search;

static uint64_t *set_at(const search *s, uint32_t i)
{
    return &s->sets[(size_t)i * s->n_words];
}

static bool holds(const uint64_t *set, uint32_t position)
{
    return set[position / 64] >> position % 64 & 1;
}

/* Returns the index among the core nodes of the node where the edge starts; CS_PIPEDREAM_NONE: not
 * a core node. */
static uint32_t writer(const cs_pipedream_chain *chain, uint32_t edge)
{
    return chain->position[chain->graph->edges[chain->in_edges[edge]].from];
}

/* Whether the set contains all core nodes that the node at `position` reads. */
static bool is_ready(const cs_pipedream_chain *chain, const uint64_t *set, uint32_t position)
{
    uint32_t node = chain->core[position];
    for (uint32_t e = chain->first_in[node]; e < chain->first_in[node + 1]; e++) {
        uint32_t from = writer(chain, e);
        if (from != CS_PIPEDREAM_NONE && !holds(set, from))
            return false;
    }
    return true;
}

/* Keeps the candidate, which is stored after the last prefix, if it is new. */
static void keep(search *s)
{
    const uint64_t *made = set_at(s, s->n);
    for (uint32_t i = s->level; i < s->n; i++) {
        if (memcmp(set_at(s, i), made, s->n_words * sizeof(*made)) == 0)
            return;
    }
    s->n++;
}

static cs_status refuse(const cs_pipedream_chain *chain, cs_error *error)
{
    return cs_error_add(error, CS_LIMIT,
                        "%s: the network can be cut in more than %d ways: too many branches, or "
                        "nodes",
                        chain->graph->file, CS_PIPEDREAM_PREFIXES);
}

static cs_status grow(search *s, const uint64_t *set, cs_error *error)
{
    for (uint32_t p = 0; p < s->chain->n_core; p++) {
        if (holds(set, p) || !is_ready(s->chain, set, p))
            continue;
        uint64_t *made = set_at(s, s->n);
        memcpy(made, set, s->n_words * sizeof(*made));
        made[p / 64] |= UINT64_C(1) << p % 64;
        keep(s);
        if (s->n > CS_PIPEDREAM_PREFIXES)
            return refuse(s->chain, error);
    }
    return CS_OK;
}

static uint32_t count_bits(const search *s, uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < s->n_words; w++)
        n += (uint32_t)__builtin_popcountll(set_at(s, i)[w]);
    return n;
}

/* Finds all prefixes by size. A prefix is a prefix with one node less plus a node that was ready
 * there; only the smallest have no such predecessor. */
static cs_status find_sets(search *s, cs_error *error)
{
    uint64_t *empty = calloc(s->n_words + 1, sizeof(*empty));
    if (!empty)
        return cs_error_no_memory(error);
    cs_status status = grow(s, empty, error);
    free(empty);
    for (uint32_t size = 1, i = 0; status == CS_OK && i < s->n; i++) {
        if (count_bits(s, i) == size) {
            s->level = s->n;
            size++;
        }
        status = grow(s, set_at(s, i), error);
    }
    return status;
}

/* ---- sums ---- */

static bool crosses(const cs_pipedream_chain *chain, const uint64_t *set, uint32_t node)
{
    bool read = false;
    for (uint32_t e = chain->first_out[node]; e < chain->first_out[node + 1]; e++) {
        uint32_t position = chain->position[chain->graph->edges[e].to];
        if (position == CS_PIPEDREAM_NONE)
            continue;
        read = true;
        if (!holds(set, position))
            return true;
    }
    return !read;
}

static bool sum_up(const cs_pipedream_chain *chain, const uint64_t *set, cs_prefix *sum)
{
    bool fits = true;
    for (uint32_t p = 0; fits && p < chain->n_core; p++) {
        const cs_pipedream_node *node = &chain->graph->nodes[chain->core[p]];
        if (!holds(set, p))
            continue;
        fits = cs_sum_add(&sum->time, node->forward) && cs_sum_add(&sum->time, node->backward) &&
               cs_sum_add(&sum->weight_bytes, node->weight_bytes) &&
               cs_sum_add(&sum->activation_bytes, node->output_bytes);
        if (fits && crosses(chain, set, chain->core[p]))
            /* cannot overflow: at most activation_bytes */
            sum->crossing_bytes += node->output_bytes;
    }
    return fits;
}

static bool name_nodes(const cs_pipedream_chain *chain, cs_prefixes *out)
{
    out->n_nodes = chain->n_core;
    out->names = cs_arena_alloc(&out->arena, chain->n_core, sizeof(*out->names));
    for (uint32_t p = 0; out->names && p < chain->n_core; p++) {
        const cs_pipedream_span *id = &chain->graph->nodes[chain->core[p]].id;
        out->names[p] = cs_arena_copy_length(&out->arena, id->start, id->length);
        if (!out->names[p])
            return false;
    }
    return out->names != NULL;
}

static cs_status fill(const search *s, cs_prefixes *out, cs_error *error)
{
    out->n = s->n;
    out->n_words = s->n_words;
    out->all = cs_arena_alloc(&out->arena, s->n, sizeof(*out->all));
    out->sets = cs_arena_alloc(&out->arena, (size_t)s->n * s->n_words, sizeof(*out->sets));
    if (!out->all || !out->sets || !name_nodes(s->chain, out))
        return cs_error_no_memory(error);
    memcpy(out->sets, s->sets, (size_t)s->n * s->n_words * sizeof(*out->sets));
    for (uint32_t i = 0; i < s->n; i++) {
        if (!sum_up(s->chain, set_at(s, i), &out->all[i]))
            return cs_error_add(error, CS_OVERFLOW,
                                "%s: the times or sizes of the network do not fit 64 bits",
                                s->chain->graph->file);
    }
    return CS_OK;
}

static cs_status find(const cs_pipedream_chain *chain, cs_prefixes *prefixes, cs_error *error)
{
    search s = {.chain = chain, .n_words = (chain->n_core + 63) / 64};
    cs_prefixes made = {0};
    if (chain->n_core > CS_PIPEDREAM_PREFIXES)
        return refuse(chain, error);
    s.sets = calloc(((size_t)CS_PIPEDREAM_PREFIXES + 2) * s.n_words, sizeof(*s.sets));
    if (!s.sets)
        return cs_error_no_memory(error);
    cs_arena_init(&made.arena);
    cs_status status = find_sets(&s, error);
    if (status == CS_OK)
        status = fill(&s, &made, error);
    free(s.sets);
    if (status == CS_OK)
        *prefixes = made;
    else
        cs_prefixes_finish(&made);
    return status;
}

cs_status cs_pipedream_prefixes_parse(const char *name, const char *text, size_t length,
                                      cs_prefixes *prefixes, cs_error *error)
{
    cs_pipedream_graph graph = {0};
    cs_pipedream_chain chain = {0};
    cs_status status = cs_pipedream_graph_read(name, text, length, &graph, error);
    if (status == CS_OK)
        status = cs_pipedream_chain_find(&graph, &chain, error);
    if (status == CS_OK)
        status = find(&chain, prefixes, error);
    cs_pipedream_chain_finish(&chain);
    cs_pipedream_graph_finish(&graph);
    return status;
}

cs_status cs_pipedream_prefixes_load(const char *path, cs_prefixes *prefixes, cs_error *error)
{
    enum { LARGEST_FILE = 64 << 20 };
    char *text;
    size_t length;
    CS_TRY(cs_file_read(path, LARGEST_FILE, &text, &length, error));
    cs_status status = cs_pipedream_prefixes_parse(path, text, length, prefixes, error);
    free(text);
    return status;
}

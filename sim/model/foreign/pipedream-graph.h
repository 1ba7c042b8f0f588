/* The graph in a PipeDream profile: nodes with times and sizes, and the edges between them, as the
 * file states them. It connects the reader of the text and the code that makes a chain (see
 * pipedream.h); other code does not use it. */
#ifndef CS_FOREIGN_PIPEDREAM_GRAPH_H
#define CS_FOREIGN_PIPEDREAM_GRAPH_H

#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stddef.h>
#include <stdint.h>

/* A piece of the file's text, not NUL-terminated. */
typedef struct cs_pipedream_span {
    const char *start;
    size_t length;
} cs_pipedream_span;

typedef struct cs_pipedream_node {
    cs_pipedream_span id, description;
    uint32_t line;
    cs_time forward, backward;
    int64_t output_bytes; /* bytes of all outputs together */
    int64_t weight_bytes;
} cs_pipedream_node;

typedef struct cs_pipedream_edge {
    cs_pipedream_span ids[2];
    uint32_t from, to; /* indices of the nodes with these ids */
    uint32_t line;
} cs_pipedream_edge;

/* cs_pipedream_graph_finish is allowed on a zeroed struct. Spans point into the text, which must
 * outlive the graph. */
typedef struct cs_pipedream_graph {
    const char *file;         /* name of the file, for messages */
    cs_pipedream_node *nodes; /* nodes in the order of the file */
    uint32_t n_nodes, cap_nodes;
    cs_pipedream_edge *edges; /* edges sorted by (from, to) */
    uint32_t n_edges, cap_edges;
} cs_pipedream_graph;

/* Reads the text and reports all its errors at once, by line. Does not check for cycles. */
CS_MUST_CHECK cs_status cs_pipedream_graph_read(const char *file, const char *text, size_t length,
                                                cs_pipedream_graph *graph, cs_error *error);
void cs_pipedream_graph_finish(cs_pipedream_graph *graph);

/* Adds "file:line: message" and returns CS_INVALID. */
cs_status cs_pipedream_invalid(const char *file, uint32_t line, cs_error *error, const char *format,
                               ...) CS_PRINTF(4, 5);

#endif

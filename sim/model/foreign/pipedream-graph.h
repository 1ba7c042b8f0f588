/* The graph of a PipeDream profile as its file tells it: nodes with times and sizes, edges between
 * them. Between the reader of the text and the one that makes a chain of it (see pipedream.h); not
 * for others.
 */
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
    int64_t output_bytes; /* of all its outputs together */
    int64_t weight_bytes;
} cs_pipedream_node;

typedef struct cs_pipedream_edge {
    cs_pipedream_span ids[2];
    uint32_t from, to; /* the nodes with these ids */
    uint32_t line;
} cs_pipedream_edge;

/* Zeroed graphs can be finished. Spans point into the text, which must live as long. */
typedef struct cs_pipedream_graph {
    const char *file;         /* for messages */
    cs_pipedream_node *nodes; /* in the order of the file */
    uint32_t n_nodes, cap_nodes;
    cs_pipedream_edge *edges; /* by (from, to) */
    uint32_t n_edges, cap_edges;
} cs_pipedream_graph;

/* Reads the text: what is wrong is reported in one go, by line. Cycles are not looked for. */
CS_MUST_CHECK cs_status cs_pipedream_graph_read(const char *file, const char *text, size_t length,
                                                cs_pipedream_graph *graph, cs_error *error);
void cs_pipedream_graph_finish(cs_pipedream_graph *graph);

/* Adds "file:line: message" and returns CS_INVALID. */
cs_status cs_pipedream_invalid(const char *file, uint32_t line, cs_error *error, const char *format,
                               ...) CS_PRINTF(4, 5);

#endif

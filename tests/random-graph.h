/* Small random runs to compare engines on: a graph, a platform and options, all from one seed.
 *
 * They are made so that much happens at the same picosecond (equal and zero durations, no latency,
 * round bandwidths) in some and nothing does in others; with program and priority queues, blocking
 * transfers, memory beyond the capacity, updates, versions of the weights chosen, held and retained
 * in all ways, all topologies and all sharings, computations that communication slows down, and
 * messages that come again and again in rounds. Every fourth one is such that the order of its
 * tasks is fixed: program queues and unshared links, ids in order, each slot on the device that
 * uses it.
 */
#ifndef CS_TESTS_RANDOM_GRAPH_H
#define CS_TESTS_RANDOM_GRAPH_H

#include "sim/core/engine/engine.h"

typedef struct random_case {
    cs_graph graph; /* passes cs_graph_check */
    cs_platform platform;
    cs_engine_options options;
    double slowdown[CS_N_KINDS * CS_N_KINDS]; /* slowdown option */
    bool satisfiable; /* no task asks for a version of its weights that may not be there */
} random_case;

CS_MUST_CHECK cs_status random_case_init(random_case *made, uint64_t seed, cs_error *error);
void random_case_finish(random_case *made);

/* All of it as text, so that a failing case can be followed by hand. */
void random_case_print(const random_case *made, FILE *out);

#endif

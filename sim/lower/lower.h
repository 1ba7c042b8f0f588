/* From collectives to transfers.
 *
 * all_reduce by ring (Patarasuk and Yuan 2009): the vector is cut into as many chunks as there are
 * ranks (the first ones a byte longer where it does not divide); in each of 2(n-1) steps every rank
 * sends one chunk to the next rank: n-1 steps reduce, n-1 gather. A send of step k waits for what
 * arrived in step k-1 and for the rank's own send of step k-1. The additions are not counted as
 * compute.
 */
#ifndef CS_LOWER_LOWER_H
#define CS_LOWER_LOWER_H

#include "sim/graph/graph.h"

/* A graph of compute and transfers only. When `graph` has no collectives it is moved as it is;
 * otherwise it is consumed as well: `graph` is empty afterwards in both cases. */
CS_MUST_CHECK cs_status cs_lower(cs_graph *graph, cs_graph *lowered, cs_error *error);

#endif

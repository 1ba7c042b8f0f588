/* Articulation points of a graph in topological order: the nodes through which every path from the
 * inputs to the outputs leads. Between two of them everything is one layer of a chain, and the
 * chain is the finest that there is.
 */
#ifndef CS_WORKLOAD_ARTICULATION_H
#define CS_WORKLOAD_ARTICULATION_H

#include <stdint.h>

/* `last_reader[p]` is the position of the last node that reads the node at position p, n where what
 * reads it stands behind all nodes (an output). `last_fed` is the last position that reads an
 * input. Writes into `ends`, which has room for n, one past the last position of each layer, and
 * returns how many there are. n >= 1. Linear in n. */
uint32_t cs_articulation_find(const uint32_t *last_reader, uint32_t n, uint32_t last_fed,
                              uint32_t *ends);

#endif

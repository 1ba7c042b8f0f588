#include "sim/model/articulation.h"

/* Every path leads through the node at position p just when no edge starts before p and ends after
 * it, whichever topological order it is: such an edge can be made into a path past p, and a path
 * past p has such an edge. A virtual input feeds the nodes that read an input, a virtual output
 * reads those that no one reads. One pass in order, with the furthest end of all edges that start
 * before p. */
uint32_t cs_articulation_find(const uint32_t *last_reader, uint32_t n, uint32_t last_fed,
                              uint32_t *ends)
{
    uint32_t reach = last_fed, found = 0;
    for (uint32_t p = 0; p < n; p++) {
        if (reach <= p || p + 1 == n)
            ends[found++] = p + 1;
        if (last_reader[p] > reach)
            reach = last_reader[p];
    }
    return found;
}

#include "topologies/topology.h"

/* In the order of `sim list`; X(name) refers to the table cs_topology_name. */
#define TOPOLOGY_MAP(X)                                                                            \
    X(ideal)                                                                                       \
    X(ring)                                                                                        \
    X(nvlink_switch)                                                                               \
    X(pcie)                                                                                        \
    X(pcie_tree)                                                                                   \
    X(nvlink_mesh)                                                                                 \
    X(dgx1)                                                                                        \
    X(nvswitch)                                                                                    \
    X(torus)                                                                                       \
    X(dragonfly)                                                                                   \
    X(leaf_spine)                                                                                  \
    X(fat_tree)                                                                                    \
    X(cluster)                                                                                     \
    X(file)

#define DECLARE(name) extern const cs_topology cs_topology_##name;
TOPOLOGY_MAP(DECLARE)
#undef DECLARE

#define ADDRESS(name) &cs_topology_##name,
const cs_topology *const cs_topologies[] = {TOPOLOGY_MAP(ADDRESS) NULL};
#undef ADDRESS

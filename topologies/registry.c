#include "topologies/topology.h"

/* In the order in which `sim list` shows them; X(name) stands for the table cs_topology_name. */
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
    X(file)                                                                                        \
    X(abci)                                                                                        \
    X(dgx1_v100)                                                                                   \
    X(dgx_a100)                                                                                    \
    X(hgx_a800)                                                                                    \
    X(dgx_h100)                                                                                    \
    X(hgx_h800)                                                                                    \
    X(dgx_b200)                                                                                    \
    X(gb200_nvl72)                                                                                 \
    X(gh200_4)                                                                                     \
    X(pcie_8gpu)                                                                                   \
    X(pcie4_8gpu)                                                                                  \
    X(pcie5_8gpu)

#define DECLARE(name) extern const cs_topology cs_topology_##name;
TOPOLOGY_MAP(DECLARE)
#undef DECLARE

#define ADDRESS(name) &cs_topology_##name,
const cs_topology *const cs_topologies[] = {TOPOLOGY_MAP(ADDRESS) NULL};
#undef ADDRESS

#include "topologies/nvlink.h"

#include <inttypes.h>

cs_status cs_nvlink_draw(const cs_nvlink *of, const char *topology, uint32_t n_gpus, cs_fabric *net,
                         uint32_t gpus[CS_NVLINK_GPUS], cs_error *error)
{
    for (uint32_t i = 0; i < n_gpus; i++)
        gpus[i] = cs_fabric_vertex(net, CS_VERTEX_GPU, "gpu%" PRIu32, i);
    return cs_pcie_tree_draw(of->pcie, topology, gpus, n_gpus, net, error);
}

#include "topologies/nvlink.h"

#include <inttypes.h>

void cs_nvlink_warn(const cs_nvlink *of, bool relayed, const cs_json_place *place)
{
    const cs_json_place tree = {.up = place, .key = "pcie"};
    cs_pcie_tree_warn(of->pcie, relayed || of->pcie->nics > 0, "\"nics\" above 0", &tree);
}

cs_status cs_nvlink_read(void *params, const cs_json_place *place, cs_arena *arena, cs_error *error)
{
    (void)arena;
    (void)error;
    cs_nvlink_warn(params, false, place);
    return CS_OK;
}

cs_status cs_nvlink_draw(const cs_nvlink *of, const char *topology, uint32_t n_gpus, cs_fabric *net,
                         uint32_t gpus[CS_NVLINK_GPUS], cs_error *error)
{
    for (uint32_t i = 0; i < n_gpus; i++)
        gpus[i] = cs_fabric_vertex(net, CS_VERTEX_GPU, "gpu%" PRIu32, i);
    return cs_pcie_tree_draw(of->pcie, topology, gpus, n_gpus, net, error);
}

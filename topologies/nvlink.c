#include "topologies/nvlink.h"

#include <inttypes.h>

cs_status cs_nvlink_read(void *params, const cs_json_place *place, cs_arena *arena, cs_error *error)
{
    cs_nvlink *of = params;
    const cs_json_place key = {.up = place, .key = "pcie"};
    return cs_pcie_tree_read(of->pcie, &key, arena, &of->tree, error);
}

cs_status cs_nvlink_draw(const cs_nvlink *of, const char *topology, uint32_t n_gpus, cs_fabric *net,
                         uint32_t gpus[CS_NVLINK_GPUS], cs_error *error)
{
    for (uint32_t i = 0; i < n_gpus; i++)
        gpus[i] = cs_fabric_vertex(net, CS_VERTEX_GPU, "gpu%" PRIu32, i);
    return cs_pcie_tree_draw(&of->tree, topology, gpus, n_gpus, net, error);
}

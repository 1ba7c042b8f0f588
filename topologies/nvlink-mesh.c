/* Up to 16 GPUs with separate NVLinks between each pair, above a PCIe tree: nodes with 4 V100 (two
 * links per pair) or 4 A100 (four links per pair). */
#include "topologies/nvlink.h"

#include <inttypes.h>

typedef struct mesh_params {
    cs_nvlink nvlink;
    uint32_t links;
} mesh_params;

static const cs_field fields[] = {{"links", CS_FIELD_COUNT, offsetof(mesh_params, links),
                                   .fallback = "2", .min = 1, .max = 18,
                                   .doc = "NVLinks between each pair of GPUs"},
                                  CS_NVLINK_FIELDS,
                                  {0}};

enum { MESH_GPUS = 16, LINK_RATE = 25 }; /* most GPUs per node; GB/s one way of NVLink 2, 3 and 4 */

static cs_status check(uint32_t n_devices, cs_error *error)
{
    const cs_status status = cs_platform_check_devices("nvlink_mesh", n_devices, error);
    if (status != CS_OK || n_devices <= MESH_GPUS)
        return status;
    return cs_error_add(error, CS_INVALID,
                        "topology nvlink_mesh: a node has at most %d GPUs (got %" PRIu32 ")",
                        MESH_GPUS, n_devices);
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    const mesh_params *of = params;
    const double rate = of->nvlink.link_bandwidth > 0 ? of->nvlink.link_bandwidth : LINK_RATE * 1e9;
    uint32_t gpus[CS_NVLINK_GPUS];
    CS_TRY(check(n_devices, error));
    cs_fabric *net = cs_fabric_create("nvlink_mesh");
    cs_status status = cs_nvlink_draw(&of->nvlink, "nvlink_mesh", n_devices, net, gpus, error);
    for (uint32_t b = 1; b < n_devices; b++)
        for (uint32_t a = 0; a < b; a++)
            cs_fabric_links(net, gpus[a], gpus[b], of->links * rate, of->nvlink.latency, true);
    if (status == CS_OK)
        status = cs_fabric_finish(net, n_devices, 0, platform, error);
    cs_fabric_destroy(net);
    return status;
}

const cs_topology cs_topology_nvlink_mesh = {
    .name = "nvlink_mesh",
    .summary = "every pair of GPUs has its own NVLinks, above a PCIe tree",
    .source = "NVIDIA Tesla V100 GPU architecture, WP-08608-001, 2017, NVLink configurations",
    .fields = fields,
    .params_size = sizeof(mesh_params),
    .read = cs_nvlink_read,
    .build = build,
};

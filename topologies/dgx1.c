/* The hybrid cube-mesh of eight GPUs (DGX-1, AWS p3.16xlarge): two squares with their diagonals,
 * and an edge from each corner of one to a corner of the other. A P100 has four NVLinks, one per
 * neighbour. A V100 has six: the additional two double links to existing neighbours, so each GPU
 * has two neighbours over one link and two over two.
 *
 * Twelve of the 28 pairs are not neighbours. Their messages are forwarded by a GPU in between, if
 * allowed (NCCL does so since 2.8: PATH_NVB in its src/graph/topo.h, NCCL_NVB_DISABLE), or go over
 * PCIe and between the sockets (cudaMemcpyPeer: peer access requires a direct NVLink).
 *
 * Number of NVLinks per pair: `nvidia-smi topo -m` of a DGX-1 (NV1, NV2, SYS), as printed by Li et
 * al. (TPDS 2020) and in the DGX-1 system architecture white paper, figure 4. Each row adds up to
 * the GPU's links, 4 or 6.
 */
#include "topologies/nvlink.h"

enum { GPUS = 8 };

typedef struct mesh {
    uint32_t links;        /* NVLinks per GPU */
    double link_bandwidth; /* bytes/s, one way */
    uint8_t between[GPUS][GPUS];
} mesh;

static const mesh meshes[] = {
    {6,
     25e9,
     {{0, 1, 1, 2, 2, 0, 0, 0},
      {1, 0, 2, 1, 0, 2, 0, 0},
      {1, 2, 0, 2, 0, 0, 1, 0},
      {2, 1, 2, 0, 0, 0, 0, 1},
      {2, 0, 0, 0, 0, 1, 1, 2},
      {0, 2, 0, 0, 1, 0, 2, 1},
      {0, 0, 1, 0, 1, 2, 0, 2},
      {0, 0, 0, 1, 2, 1, 2, 0}}},
    {4,
     20e9,
     {{0, 1, 1, 1, 1, 0, 0, 0},
      {1, 0, 1, 1, 0, 1, 0, 0},
      {1, 1, 0, 1, 0, 0, 1, 0},
      {1, 1, 1, 0, 0, 0, 0, 1},
      {1, 0, 0, 0, 0, 1, 1, 1},
      {0, 1, 0, 0, 1, 0, 1, 1},
      {0, 0, 1, 0, 1, 1, 0, 1},
      {0, 0, 0, 1, 1, 1, 1, 0}}},
};

static const char *const relay_names[] = {"gpu", "pcie", NULL};

typedef struct dgx1_params {
    cs_nvlink nvlink;
    uint32_t links, relay;
} dgx1_params;

static const cs_field fields[] = {
    {"links", CS_FIELD_COUNT, offsetof(dgx1_params, links), .fallback = "6", .min = 4, .max = 6,
     .doc = "NVLinks per GPU: 6, of 25 GB/s (V100), or 4, of 20 GB/s (P100)"},
    {"relay", CS_FIELD_CHOICE, offsetof(dgx1_params, relay), .fallback = "gpu",
     .choices = relay_names,
     .doc = "how pairs without an NVLink communicate: through another GPU, or over PCIe"},
    CS_NVLINK_FIELDS,
    {0}};

static cs_status read(void *params, const cs_json_place *place, cs_arena *arena, cs_error *error)
{
    const dgx1_params *of = params;
    const cs_json_place links = {.up = place, .key = "links"};
    (void)arena;
    if (of->links == 5)
        return cs_json_invalid(&links, error, "must be 4 or 6 (got 5)");
    cs_nvlink_warn(&of->nvlink, of->relay != 0, place);
    return CS_OK;
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    const dgx1_params *of = params;
    const mesh *made = &meshes[of->links == meshes[0].links ? 0 : 1];
    const double rate =
        of->nvlink.link_bandwidth > 0 ? of->nvlink.link_bandwidth : made->link_bandwidth;
    uint32_t gpus[CS_NVLINK_GPUS];
    cs_fabric *net = cs_fabric_create("dgx1");
    cs_status status = cs_nvlink_draw(&of->nvlink, "dgx1", GPUS, net, gpus, error);
    for (uint32_t a = 0; a < GPUS; a++)
        for (uint32_t b = a + 1; b < GPUS; b++)
            if (made->between[a][b] > 0)
                cs_fabric_links(net, gpus[a], gpus[b], made->between[a][b] * rate,
                                of->nvlink.latency, true);
    if (status == CS_OK)
        status = cs_fabric_finish(net, n_devices, of->relay == 0 ? 1 : 0, platform, error);
    cs_fabric_destroy(net);
    return status;
}

const cs_topology cs_topology_dgx1 = {
    .name = "dgx1",
    .summary = "hybrid cube-mesh of eight GPUs with NVLinks, above a PCIe tree",
    .source = "NVIDIA, DGX-1 with Tesla V100 system architecture, WP-08437-002, 2017; Li et al., "
              "IEEE TPDS 31(1), 2020",
    .fields = fields,
    .params_size = sizeof(dgx1_params),
    .read = read,
    .build = build,
};

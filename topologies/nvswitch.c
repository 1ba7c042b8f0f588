/* Nodes whose GPUs are joined by NVSwitches, above a PCIe tree. Each GPU has one link (DGX-2), two
 * (DGX A100) or several to every switch, and spreads what it sends over all of them, so that the
 * switches of a board work as one crossbar with all of a GPU's links together.
 *
 *   model     GPUs  NVLinks per GPU, rate  per GPU, one way  boards
 *   dgx2      16    6 of 25 GB/s           150 GB/s          2, joined by 48 NVLinks
 *   dgx-a100  8     12 of 25 GB/s          300 GB/s          1
 *   hgx-a800  8     8 of 25 GB/s           200 GB/s          1
 *   dgx-h100  8     18 of 25 GB/s          450 GB/s          1
 *   hgx-h800  8     8 of 25 GB/s           200 GB/s          1
 *   dgx-b200  8     18 of 50 GB/s          900 GB/s          1
 *   nvl72     72    18 of 50 GB/s          900 GB/s          1, of 18 NVSwitches, one per link
 *
 * The boards of a DGX-2 are joined by 8 links of each of 6 switches: 48 * 25 GB/s are the
 * 8 * 150 GB/s of the GPUs of one board, so nothing is lost between them.
 */
#include "topologies/nvlink.h"

#include <inttypes.h>

static const char *const model_names[] = {"dgx2",     "dgx-a100", "hgx-a800", "dgx-h100",
                                          "hgx-h800", "dgx-b200", "nvl72",    NULL};
static const struct {
    uint32_t gpus, links, boards, trunk_links;
    double rate; /* bytes/s of a link, one way: NVLink 2, 3 and 4; NVLink 5 */
} models[] = {{16, 6, 2, 48, 25e9}, {8, 12, 1, 0, 25e9}, {8, 8, 1, 0, 25e9},  {8, 18, 1, 0, 25e9},
              {8, 8, 1, 0, 25e9},   {8, 18, 1, 0, 50e9}, {72, 18, 1, 0, 50e9}};

typedef struct nvswitch_params {
    cs_nvlink nvlink;
    uint32_t model;
} nvswitch_params;

static const cs_field fields[] = {
    {"model", CS_FIELD_CHOICE, offsetof(nvswitch_params, model), .fallback = "dgx-a100",
     .choices = model_names, .doc = "the machine, which determines the number of GPUs and NVLinks"},
    CS_NVLINK_FIELDS,
    {0}};

/* The latency of the whole way stands on the links up, of which every route has one. */
static void draw_switches(const nvswitch_params *of, const uint32_t *gpus, cs_fabric *net)
{
    const double rate =
        of->nvlink.link_bandwidth > 0 ? of->nvlink.link_bandwidth : models[of->model].rate;
    const uint32_t n = models[of->model].gpus, boards = models[of->model].boards;
    uint32_t switches[2] = {CS_FABRIC_NONE, CS_FABRIC_NONE};
    for (uint32_t b = 0; b < boards; b++)
        switches[b] = cs_fabric_vertex(net, CS_VERTEX_SWITCH, "nvswitch%" PRIu32, b);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t board = switches[i / (n / boards)];
        cs_fabric_link(net, gpus[i], board, models[of->model].links * rate, of->nvlink.latency,
                       true);
        cs_fabric_link(net, board, gpus[i], models[of->model].links * rate, 0, true);
    }
    cs_fabric_links(net, switches[0], switches[1], models[of->model].trunk_links * rate, 0, true);
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    const nvswitch_params *of = params;
    uint32_t gpus[CS_NVLINK_GPUS];
    cs_fabric *net = cs_fabric_create("nvswitch");
    cs_status status =
        cs_nvlink_draw(&of->nvlink, "nvswitch", models[of->model].gpus, net, gpus, error);
    if (status == CS_OK) {
        draw_switches(of, gpus, net);
        status = cs_fabric_finish(net, n_devices, 0, platform, error);
    }
    cs_fabric_destroy(net);
    return status;
}

const cs_topology cs_topology_nvswitch = {
    .name = "nvswitch",
    .summary =
        "GPUs around NVSwitches (DGX-2, DGX A100, H100 and B200, HGX A800 and H800, GB200 NVL72), "
        "above a PCIe tree",
    .source = "NVIDIA: NVSwitch technical overview, 2018 (DGX-2); A100 and H100 Tensor Core GPU "
              "architecture white papers, 2020 and 2022; A800 and H800 data sheets, 2022 and "
              "2023 (NVLink 400 GB/s "
              "both ways); Blackwell architecture technical brief, 2024",
    .fields = fields,
    .params_size = sizeof(nvswitch_params),
    .read = cs_nvlink_read,
    .build = build,
};

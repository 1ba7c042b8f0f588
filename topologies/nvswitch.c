/* Nodes whose GPUs are joined by NVSwitches, above a PCIe tree. Each GPU has one link (DGX-2), two
 * (DGX A100) or more to every switch and spreads its messages over all of them, so the switches of
 * a board act as one crossbar with the total bandwidth of a GPU's links. A DGX-2 has two boards,
 * whose switches are joined by NVLinks.
 */
#include "topologies/nvlink.h"

#include <inttypes.h>

extern const cs_topology cs_topology_nvswitch;

typedef struct nvswitch_params {
    cs_nvlink nvlink;
    const char *model;
    uint32_t gpus, links, boards, trunk_links;
} nvswitch_params;

#define OF_MODEL(value) "; 0: the model's, or " value

static const cs_field fields[] = {
    {"model", CS_FIELD_TEXT, offsetof(nvswitch_params, model), .fallback = "",
     .doc = "a machine with NVSwitches, whose nodes have the GPUs and NVLinks that the keys below "
            "do not state"},
    {"gpus", CS_FIELD_COUNT, offsetof(nvswitch_params, gpus), .fallback = "0",
     .max = CS_NVLINK_GPUS, .doc = "GPUs" OF_MODEL("8")},
    {"links", CS_FIELD_COUNT, offsetof(nvswitch_params, links), .fallback = "0", .max = 1024,
     .doc = "NVLinks per GPU, to all switches together" OF_MODEL("12")},
    {"boards", CS_FIELD_COUNT, offsetof(nvswitch_params, boards), .fallback = "0", .max = 2,
     .doc = "boards, each with the switches of its GPUs" OF_MODEL("1")},
    {"trunk_links", CS_FIELD_COUNT, offsetof(nvswitch_params, trunk_links), .fallback = "0",
     .max = 65536, .doc = "NVLinks between two boards" OF_MODEL("48")},
    CS_NVLINK_FIELDS,
    {0}};

static const cs_field topology_field[] = {{"topology", CS_FIELD_TEXT, 0, .doc = "of the node"},
                                          {0}};

/* Fills in values for keys that are 0. */
static void take_over(nvswitch_params *of, const nvswitch_params *from)
{
    of->gpus = of->gpus > 0 ? of->gpus : from->gpus;
    of->links = of->links > 0 ? of->links : from->links;
    of->boards = of->boards > 0 ? of->boards : from->boards;
    of->trunk_links = of->trunk_links > 0 ? of->trunk_links : from->trunk_links;
    if (!(of->nvlink.link_bandwidth > 0))
        of->nvlink.link_bandwidth = from->nvlink.link_bandwidth;
}

static cs_status read_model(nvswitch_params *of, const cs_json_place *place, cs_arena *arena,
                            cs_error *error)
{
    const cs_json_place key = {.up = place, .key = "model"};
    const cs_json_place *document = place;
    const cs_json_place machine = {.file = of->model}, node = {.up = &machine, .key = "node"};
    nvswitch_params model = {0};
    const char *topology = "";
    cJSON *root;
    cs_error why;
    while (document->up)
        document = document->up;
    cs_error_init(&why);
    cs_status status = cs_facts_load(&cs_machine_kind, of->model, document->file, &root, &why);
    if (status != CS_OK)
        return cs_json_pass_on(&key, &why, error);
    const cJSON *value = cs_json_member(cs_json_member(root, "platform"), "node");
    const cJSON *name = cs_json_member(value, "topology");
    if (!cJSON_IsString(name) || cs_topology_find(name->valuestring) != &cs_topology_nvswitch)
        status = cs_json_invalid(&key, error, "must be a machine with NVSwitches (got \"%s\")",
                                 of->model);
    else
        status =
            cs_field_read(value, &node, (const cs_field *const[]){topology_field, fields, NULL},
                          (void *const[]){&topology, &model}, arena, error);
    cJSON_Delete(root);
    if (status == CS_OK)
        take_over(of, &model);
    return status;
}

static cs_status read(void *params, const cs_json_place *place, cs_arena *arena, cs_error *error)
{
    static const nvswitch_params usual = {
        .gpus = 8, .links = 12, .boards = 1, .trunk_links = 48, .nvlink = {.link_bandwidth = 25e9}};
    nvswitch_params *of = params;
    const cs_json_place gpus = {.up = place, .key = "gpus"};
    if (of->model)
        CS_TRY(read_model(of, place, arena, error));
    take_over(of, &usual);
    if (of->gpus % of->boards != 0)
        return cs_json_invalid(&gpus, error,
                               "must be divisible by the boards, %" PRIu32 " (got %" PRIu32 ")",
                               of->boards, of->gpus);
    return cs_nvlink_read(params, place, arena, error);
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    const nvswitch_params *of = params;
    uint32_t gpus[CS_NVLINK_GPUS];
    cs_fabric *net = cs_fabric_create("nvswitch");
    cs_status status = cs_nvlink_draw(&of->nvlink, "nvswitch", of->gpus, net, gpus, error);
    if (status == CS_OK) {
        /* The latency of a route is assigned to the link up; every route has exactly one. */
        const double rate = of->nvlink.link_bandwidth;
        uint32_t switches[2] = {CS_FABRIC_NONE, CS_FABRIC_NONE};
        for (uint32_t b = 0; b < of->boards; b++)
            switches[b] = cs_fabric_vertex(net, CS_VERTEX_SWITCH, "nvswitch%" PRIu32, b);
        for (uint32_t i = 0; i < of->gpus; i++) {
            const uint32_t board = switches[i / (of->gpus / of->boards)];
            cs_fabric_link(net, gpus[i], board, of->links * rate, of->nvlink.latency, true);
            cs_fabric_link(net, board, gpus[i], of->links * rate, 0, true);
        }
        if (of->boards > 1)
            cs_fabric_links(net, switches[0], switches[1], of->trunk_links * rate, 0, true);
        status = cs_fabric_finish(net, n_devices, 0, platform, error);
    }
    cs_fabric_destroy(net);
    return status;
}

const cs_topology cs_topology_nvswitch = {
    .name = "nvswitch",
    .summary = "GPUs around NVSwitches (DGX-2, DGX A100, H100 and B200, GB200 NVL72), above a PCIe "
               "tree",
    .source = "NVIDIA: NVSwitch technical overview, 2018; A100 and H100 Tensor Core GPU "
              "architecture white papers, 2020 and 2022; Blackwell architecture technical brief, "
              "2024",
    .fields = fields,
    .params_size = sizeof(nvswitch_params),
    .read = read,
    .build = build,
};

/* GPUs around one non-blocking switch, as in a DGX-2 or HGX: device d has an up link to the switch
 * (link 2d) and a down link from it (link 2d + 1). Every pair has the full bandwidth in both
 * directions; messages compete only if they leave the same device or arrive at the same one.
 *
 * Measurements give the latency of the whole route from device to device. It is assigned to the up
 * link; the split does not matter, because every route has exactly one up and one down link.
 */
#include "topologies/topology.h"

typedef struct switch_params {
    double bandwidth;
    cs_time latency;
} switch_params;

static const cs_field fields[] = {
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(switch_params, bandwidth), .above_min = true,
     .doc = "bandwidth between a device and the switch, one way (all its NVLinks together)"},
    {"latency", CS_FIELD_TIME, offsetof(switch_params, latency), .fallback = "0 s",
     .usual_max = 0.1, .doc = "latency from device to device, through the switch"},
    {0}};

static uint32_t route(const cs_platform *platform, uint32_t source, uint32_t target,
                      uint32_t *links)
{
    (void)platform;
    if (source == target)
        return 0;
    links[0] = cs_star_up(source);
    links[1] = cs_star_down(target);
    return 2;
}

static cs_status add_links(const switch_params *params, cs_platform *platform, cs_error *error)
{
    const uint32_t hub = platform->n_devices;
    CS_TRY(cs_platform_vertex(platform, hub, CS_VERTEX_SWITCH, error, "switch"));
    return cs_platform_star(platform, params->bandwidth, params->latency, error);
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    cs_platform made;
    CS_TRY(cs_platform_init(&made, "nvlink_switch", n_devices, 1, 2 * (uint64_t)n_devices, error));
    made.longest_route = 2;
    made.route = route;
    return cs_platform_hand_over(add_links(params, &made, error), &made, platform);
}

const cs_topology cs_topology_nvlink_switch = {
    .name = "nvlink_switch",
    .summary = "a full crossbar: each device has an uplink and a downlink to one switch",
    .source = "Li et al., Evaluating Modern GPU Interconnect: PCIe, NVLink, NV-SLI, NVSwitch and "
              "GPUDirect, IEEE TPDS 31(1), 2020",
    .fields = fields,
    .params_size = sizeof(switch_params),
    .build = build,
};

/* GPUs below one PCIe host bridge: device d has an up link (link 2d) and a down link (link 2d + 1).
 * A message between devices crosses the bridge (link 2n), which all messages share, in both
 * directions.
 *
 * The bridge makes PCIe differ from a switch: two pairs of devices that communicate at the same
 * time get half of it each. By default it has the bandwidth of one device's link. That is
 * conservative: if GPUs sit in pairs below PCIe switches, one x16 link to the bridge carries the
 * messages of both. If measurements with several pairs show more, set `host_bandwidth`.
 *
 * The latency is for the whole route from device to device. It is assigned to the up link: every
 * route has exactly one.
 */
#include "topologies/topology.h"

typedef struct pcie_params {
    double bandwidth;
    double host_bandwidth; /* 0: same as bandwidth */
    cs_time latency;
} pcie_params;

static const cs_field fields[] = {
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(pcie_params, bandwidth), .above_min = true,
     .doc = "bandwidth of a device's link, one way"},
    {"host_bandwidth", CS_FIELD_BANDWIDTH, offsetof(pcie_params, host_bandwidth), .fallback = "0",
     .doc = "bandwidth of the host bridge, shared by all messages between devices; 0: same as "
            "bandwidth"},
    {"latency", CS_FIELD_TIME, offsetof(pcie_params, latency), .fallback = "0 s", .usual_max = 0.1,
     .doc = "latency from device to device, through the host bridge"},
    {0}};

static uint32_t bridge_link(const cs_platform *platform)
{
    return 2 * platform->n_devices;
}

static uint32_t route(const cs_platform *platform, uint32_t source, uint32_t target,
                      uint32_t *links)
{
    if (source == target)
        return 0;
    links[0] = cs_star_up(source);
    links[1] = bridge_link(platform);
    links[2] = cs_star_down(target);
    return 3;
}

static cs_status add_links(const pcie_params *pcie, cs_platform *platform, cs_error *error)
{
    const uint32_t host = platform->n_devices;
    cs_status status = cs_platform_vertex(platform, host, CS_VERTEX_CPU, error, "host");
    if (status == CS_OK)
        status = cs_platform_star(platform, pcie->bandwidth, pcie->latency, error);
    if (status != CS_OK)
        return status;
    const double host_bandwidth =
        pcie->host_bandwidth == 0 ? pcie->bandwidth : pcie->host_bandwidth;
    status =
        cs_platform_link(platform, bridge_link(platform), host, host, host_bandwidth, 0, error);
    if (status == CS_OK)
        platform->links[bridge_link(platform)].name = "host bridge";
    return status;
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    cs_platform made;
    CS_TRY(cs_platform_init(&made, "pcie", n_devices, 1, 2 * (uint64_t)n_devices + 1, error));
    made.longest_route = 3;
    made.route = route;
    return cs_platform_hand_over(add_links(params, &made, error), &made, platform);
}

const cs_topology cs_topology_pcie = {
    .name = "pcie",
    .summary = "devices below one PCIe host bridge, which all their messages share",
    .source = "Li et al., Evaluating Modern GPU Interconnect: PCIe, NVLink, NV-SLI, NVSwitch and "
              "GPUDirect, IEEE TPDS 31(1), 2020",
    .fields = fields,
    .params_size = sizeof(pcie_params),
    .build = build,
};

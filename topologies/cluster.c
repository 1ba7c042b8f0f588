/* Nodes of one topology, joined by a network of another: a message between nodes leaves by a NIC,
 * crosses the network and arrives by a NIC. Any topology can be the node and any can be the
 * network, whose devices then represent the NICs: NIC i of node k is device k * nics + i.
 *
 * A node with its own NICs (pcie_tree, or the PCIe tree below NVLinks, with "nics") is used as it
 * is. To other nodes, `nics_per_node` NICs are attached: GPU g has its own link to NIC g * nics /
 * gpus. Such a link is PCIe, which in real machines is as fast as the NIC: by default it does not
 * limit the total bandwidth of the NIC's links in the network.
 *
 * A GPU uses the nearest NIC (fewest links); if several are equally near, the GPUs of a node take
 * turns. Device d is GPU d % gpus_per_node of node d / gpus_per_node; GPUs of the last node may be
 * unused.
 *
 * Vertices: all GPUs, node by node; then per node its NICs and other vertices; then the network's.
 * Links: node 0, node 1, ..., then the network.
 */
#include "sim/base/dependent-key.h"
#include "topologies/topology.h"

#include <inttypes.h>

typedef struct cluster_params {
    cs_topology_choice node, network;
    uint32_t gpus_per_node, nics_per_node, fabric;
    double nic_bandwidth;
    cs_time nic_latency;
} cluster_params;

const char *const cs_fabric_names[] = {"infiniband", "roce",      "ethernet", "efa",
                                       "omni-path",  "slingshot", NULL};

static const cs_field fields[] = {
    {"node", CS_FIELD_VARIANT, offsetof(cluster_params, node), CS_TOPOLOGY_CHOICE,
     .doc = "the topology inside a node, with its parameters",
     .shape = "{\"topology\": name, ...}"},
    {"network", CS_FIELD_VARIANT, offsetof(cluster_params, network), CS_TOPOLOGY_CHOICE,
     .doc = "the topology between nodes, with its parameters; its devices are the NICs",
     .shape = "{\"topology\": name, ...}"},
    {"gpus_per_node", CS_FIELD_COUNT, offsetof(cluster_params, gpus_per_node), .min = 1,
     .max = 1024, .doc = "GPUs per node"},
    {"nics_per_node", CS_FIELD_COUNT, offsetof(cluster_params, nics_per_node), .fallback = "0",
     .max = 1024,
     .doc = "NICs to attach to a node whose topology has none; 0: the topology's NICs, or 1 if it "
            "has none"},
    {"nic_bandwidth", CS_FIELD_BANDWIDTH, offsetof(cluster_params, nic_bandwidth), .fallback = "0",
     .doc = "bandwidth between a GPU and a NIC attached in this way, one way; 0: 12 GB/s (PCIe 3 "
            "x16), or the total of the NIC's links in the network, if that is higher"},
    {"nic_latency", CS_FIELD_TIME, offsetof(cluster_params, nic_latency), .fallback = "0 s",
     .usual_max = 0.1, .doc = "latency between a GPU and a NIC attached in this way"},
    {"fabric", CS_FIELD_CHOICE, offsetof(cluster_params, fabric), .fallback = "infiniband",
     .choices = cs_fabric_names,
     .doc = "kind of network: a runtime assumes latency and bandwidth of collectives by it "
            "(docs/reference/runtimes.md); efa: Elastic Fabric Adapter of AWS"},
    {0}};

static const double pcie_3_rate = 12e9;

typedef struct layout {
    cs_platform node, network;
    uint32_t n_nodes, gpus, nics;
    /* the cluster attaches the NICs; their links, two per GPU, follow a node's own links */
    bool attached;
    uint32_t *nic_of;    /* per GPU of a node: its NIC */
    double *nic_rates;   /* per NIC of the network: bytes/s of all links that leave it */
    uint32_t node_links; /* links per node, including attached ones */
} layout;

/* ---- routes ---- */

static uint32_t attached_link(const layout *l, uint32_t gpu)
{
    return l->node.n_links + 2 * gpu;
}

/* Writes the way from a GPU to its NIC, or back; links are numbered within the node. */
static uint32_t way_to_nic(const layout *l, uint32_t gpu, bool back, uint32_t *links)
{
    if (l->attached) {
        links[0] = attached_link(l, gpu) + back;
        return 1;
    }
    const uint32_t nic = l->gpus + l->nic_of[gpu];
    return l->node.route(&l->node, back ? nic : gpu, back ? gpu : nic, links);
}

static void shift(uint32_t *links, uint32_t n, uint32_t by)
{
    for (uint32_t i = 0; i < n; i++)
        links[i] += by;
}

static uint32_t route(const cs_platform *platform, uint32_t source, uint32_t target,
                      uint32_t *links)
{
    const layout *l = platform->layout;
    const uint32_t from = source / l->gpus, to = target / l->gpus;
    if (from == to) {
        const uint32_t n = l->node.route(&l->node, source % l->gpus, target % l->gpus, links);
        shift(links, n, from * l->node_links);
        return n;
    }
    const uint32_t out = way_to_nic(l, source % l->gpus, false, links);
    shift(links, out, from * l->node_links);
    const uint32_t across =
        l->network.route(&l->network, from * l->nics + l->nic_of[source % l->gpus],
                         to * l->nics + l->nic_of[target % l->gpus], links + out);
    shift(links + out, across, l->n_nodes * l->node_links);
    const uint32_t in = way_to_nic(l, target % l->gpus, true, links + out + across);
    shift(links + out + across, in, to * l->node_links);
    return out + across + in;
}

/* Chooses the nearest NIC of each GPU; GPUs with several equally near NICs take turns. */
static cs_status choose_nics(layout *l, cs_arena *arena, cs_error *error)
{
    l->nic_of = cs_arena_alloc(arena, l->gpus, sizeof(*l->nic_of));
    uint32_t *taken = cs_arena_alloc(arena, l->nics, sizeof(*taken));
    uint32_t *way = cs_arena_alloc(arena, (size_t)l->node.longest_route + 1, sizeof(*way));
    if (!l->nic_of || !taken || !way)
        return cs_error_no_memory(error);
    for (uint32_t gpu = 0; gpu < l->gpus; gpu++) {
        uint32_t best = l->attached ? (uint32_t)((uint64_t)gpu * l->nics / l->gpus) : 0;
        uint32_t shortest = UINT32_MAX;
        for (uint32_t nic = 0; nic < l->nics && !l->attached; nic++) {
            const uint32_t length = l->node.route(&l->node, gpu, l->gpus + nic, way);
            if (length > shortest || (length == shortest && taken[nic] >= taken[best]))
                continue;
            shortest = length;
            best = nic;
        }
        l->nic_of[gpu] = best;
        taken[best]++;
    }
    return CS_OK;
}

/* ---- building ---- */

/* Index in the cluster of vertex v of node k; the GPUs of all nodes come first. */
static uint32_t node_vertex(const layout *l, uint32_t k, uint32_t v)
{
    const uint32_t inner = l->node.n_vertices - l->gpus + (l->attached ? l->nics : 0);
    return v < l->gpus ? k * l->gpus + v : l->n_nodes * l->gpus + k * inner + v - l->gpus;
}

/* Index of NIC i of node k: among the node's ports or, if attached, after its vertices. */
static uint32_t nic_vertex(const layout *l, uint32_t k, uint32_t i)
{
    return node_vertex(l, k, (l->attached ? l->node.n_vertices : l->gpus) + i);
}

static uint32_t network_vertex(const layout *l, uint32_t v)
{
    const uint32_t nics = l->n_nodes * l->nics;
    if (v < nics)
        return nic_vertex(l, v / l->nics, v % l->nics);
    return node_vertex(l, l->n_nodes, l->gpus) + v - nics;
}

/* A NIC that is joined with the network is not a port any more: it forwards messages, like a
 * switch. */
static cs_vertex_kind joined_kind(const layout *l, uint32_t v)
{
    const cs_vertex_kind kind = l->node.vertices[v].kind;
    return kind == CS_VERTEX_NIC ? CS_VERTEX_SWITCH : kind;
}

static cs_status name_vertices(const layout *l, cs_platform *made, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t k = 0; k < l->n_nodes; k++) {
        for (uint32_t v = 0; v < l->node.n_vertices && status == CS_OK; v++)
            status = cs_platform_vertex(made, node_vertex(l, k, v), joined_kind(l, v), error,
                                        "node%" PRIu32 "/%s", k, l->node.vertices[v].name);
        for (uint32_t i = 0; l->attached && i < l->nics && status == CS_OK; i++)
            status = cs_platform_vertex(made, nic_vertex(l, k, i), CS_VERTEX_SWITCH, error,
                                        "node%" PRIu32 "/nic%" PRIu32, k, i);
    }
    for (uint32_t v = l->n_nodes * l->nics; v < l->network.n_vertices && status == CS_OK; v++)
        status = cs_platform_vertex(made, network_vertex(l, v), l->network.vertices[v].kind, error,
                                    "%s", l->network.vertices[v].name);
    return status;
}

static cs_status copy_link(const cs_link *from, cs_platform *made, uint32_t link, uint32_t a,
                           uint32_t b, cs_error *error)
{
    const cs_status status =
        cs_platform_link(made, link, a, b, from->bandwidth, from->latency, error);
    made->links[link].peer = from->peer;
    return status;
}

/* Bandwidth of the link between a GPU of node k and its attached NIC. */
static double attached_rate(const layout *l, const cluster_params *of, uint32_t k, uint32_t gpu)
{
    const double network = l->nic_rates[k * l->nics + l->nic_of[gpu]];
    if (of->nic_bandwidth > 0)
        return of->nic_bandwidth;
    return network > pcie_3_rate ? network : pcie_3_rate;
}

static cs_status fill(const layout *parts, const cluster_params *of, uint32_t n_devices,
                      cs_platform *made, cs_error *error)
{
    const uint64_t vertices = node_vertex(parts, parts->n_nodes, parts->gpus) +
                              (uint64_t)parts->network.n_vertices - parts->n_nodes * parts->nics;
    CS_TRY(cs_platform_init(made, "cluster", n_devices, vertices - n_devices,
                            (uint64_t)parts->n_nodes * parts->node_links + parts->network.n_links,
                            error));
    layout *l = cs_arena_alloc(&made->arena, 1, sizeof(*l));
    if (!l)
        return cs_error_no_memory(error);
    *l = *parts;
    made->layout = l;
    made->route = route;
    made->node_devices = l->gpus;
    made->nic_of = l->nic_of;
    made->linked_gpus = l->node.linked_gpus;
    made->warning = l->node.warning;
    if (parts->network.rack_devices % l->nics == 0)
        made->rack_devices = parts->network.rack_devices / l->nics * l->gpus;
    const uint32_t out = l->attached ? 1 : l->node.longest_route;
    made->longest_route = 2 * out + l->network.longest_route;
    if (made->longest_route < l->node.longest_route)
        made->longest_route = l->node.longest_route;
    CS_TRY(name_vertices(l, made, error));
    cs_status status = CS_OK;
    for (uint32_t k = 0; k < l->n_nodes; k++) {
        const uint32_t first = k * l->node_links;
        for (uint32_t i = 0; i < l->node.n_links && status == CS_OK; i++) {
            const cs_link *link = &l->node.links[i];
            status = copy_link(link, made, first + i, node_vertex(l, k, link->from),
                               node_vertex(l, k, link->to), error);
        }
        for (uint32_t gpu = 0; l->attached && gpu < l->gpus && status == CS_OK; gpu++)
            status = cs_platform_links(made, first + attached_link(l, gpu), node_vertex(l, k, gpu),
                                       nic_vertex(l, k, l->nic_of[gpu]),
                                       attached_rate(l, of, k, gpu), of->nic_latency, error);
    }
    for (uint32_t i = 0; i < l->network.n_links && status == CS_OK; i++) {
        const cs_link *link = &l->network.links[i];
        status = copy_link(link, made, l->n_nodes * l->node_links + i,
                           network_vertex(l, link->from), network_vertex(l, link->to), error);
    }
    return status;
}

static cs_status build_parts(const cluster_params *of, uint32_t n_devices, layout *l,
                             cs_arena *arena, cs_error *error)
{
    l->gpus = of->gpus_per_node;
    l->n_nodes = (n_devices + l->gpus - 1) / l->gpus;
    CS_TRY(of->node.kind->build(of->node.params, l->gpus, &l->node, error));
    l->attached = l->node.n_ports == 0;
    l->nics = l->attached ? (of->nics_per_node > 0 ? of->nics_per_node : 1) : l->node.n_ports;
    l->node_links = l->node.n_links + (l->attached ? 2 * l->gpus : 0);
    if (!l->attached && of->nics_per_node > 0 && of->nics_per_node != l->nics)
        return cs_error_add(error, CS_INVALID,
                            "topology cluster: the node has %" PRIu32
                            " NICs of its own; nics_per_node must be the same or 0 (got %" PRIu32
                            ")",
                            l->nics, of->nics_per_node);
    if ((uint64_t)l->n_nodes * (l->node_links + l->node.n_vertices + l->nics) > UINT32_MAX / 8)
        return cs_error_add(error, CS_INVALID, "topology cluster: too many vertices or links");
    CS_TRY(choose_nics(l, arena, error));
    CS_TRY(of->network.kind->build(of->network.params, l->n_nodes * l->nics, &l->network, error));
    const uint32_t n = l->n_nodes * l->nics;
    l->nic_rates = cs_arena_alloc(arena, n, sizeof(*l->nic_rates));
    if (!l->nic_rates)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < l->network.n_links; i++) {
        const cs_link *link = &l->network.links[i];
        if (link->from < n && link->from != link->to)
            l->nic_rates[link->from] += link->bandwidth;
    }
    return CS_OK;
}

/* Whether the node's topology has NICs. Errors are reported when the node is built. */
static bool has_nics(const cluster_params *of)
{
    cs_platform node = {0};
    const bool built =
        of->node.kind->build(of->node.params, of->gpus_per_node, &node, NULL) == CS_OK;
    const bool found = built && node.n_ports > 0;
    cs_platform_finish(&node);
    return found;
}

static cs_status warn_of_ignored(void *params, const cs_json_place *place, cs_arena *arena,
                                 cs_error *error)
{
    (void)arena;
    (void)error;
    static const char with[] = "nodes without their own NICs";
    const cluster_params *of = params;
    const bool rate = of->nic_bandwidth > 0, latency = of->nic_latency > 0;
    const bool attached = !(rate || latency) || !has_nics(of);
    const cs_dependent_key keys[] = {{"nic_bandwidth", rate, attached, with},
                                     {"nic_latency", latency, attached, with}};
    cs_dependent_keys_warn(keys, sizeof(keys) / sizeof(keys[0]), place);
    return CS_OK;
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    const cluster_params *of = params;
    layout parts = {0};
    cs_arena arena;
    cs_platform made = {0};
    CS_TRY(cs_platform_check_devices("cluster", n_devices, error));
    cs_arena_init(&arena);
    cs_status status = build_parts(of, n_devices, &parts, &arena, error);
    if (status == CS_OK)
        status = fill(&parts, of, n_devices, &made, error);
    if (status != CS_OK) {
        cs_platform_finish(&parts.node);
        cs_platform_finish(&parts.network);
        cs_platform_finish(&made);
        cs_arena_finish(&arena);
        return status;
    }
    cs_arena_adopt(&made.arena, &arena);
    cs_arena_adopt(&made.arena, &parts.node.arena);
    cs_arena_adopt(&made.arena, &parts.network.arena);
    *platform = made;
    return CS_OK;
}

const cs_topology cs_topology_cluster = {
    .name = "cluster",
    .summary = "nodes of one topology joined by a network of another, through their NICs",
    .source = NULL,
    .fields = fields,
    .params_size = sizeof(cluster_params),
    .read = warn_of_ignored,
    .build = build,
};

/* Leaf switches below spine switches, as in data centres: every leaf has a link to every spine.
 * With rails, host h is on rail h % rails: NIC r of every node is attached to a leaf of rail r,
 * together with NIC r of neighbouring nodes, so that GPUs at the same position in their nodes are
 * two links apart (as in NVIDIA's DGX SuperPOD). Routing is the same as in a fat tree of two
 * levels. */
#include "topologies/fat-tree.h"
#include "topologies/topology.h"

typedef struct leaf_spine_params {
    uint32_t hosts_per_leaf, spines, rails, parallel, routing, seed;
    double bandwidth, uplink_bandwidth;
    cs_time latency;
} leaf_spine_params;

static const char *const routings[] = {"dmodk", "ecmp", NULL};

static const cs_field fields[] = {
    {"hosts_per_leaf", CS_FIELD_COUNT, offsetof(leaf_spine_params, hosts_per_leaf), .min = 1,
     .max = 1024, .doc = "hosts per leaf switch"},
    {"spines", CS_FIELD_COUNT, offsetof(leaf_spine_params, spines), .min = 1, .max = 1024,
     .doc = "number of spine switches"},
    {"rails", CS_FIELD_COUNT, offsetof(leaf_spine_params, rails), .fallback = "1", .min = 1,
     .max = 64,
     .doc = "number of rails: host h is on rail h % rails; each rail has its own leaf switches"},
    {"parallel", CS_FIELD_COUNT, offsetof(leaf_spine_params, parallel), .fallback = "1", .min = 1,
     .max = 64, .doc = "links from a leaf to each spine"},
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(leaf_spine_params, bandwidth), .above_min = true,
     .doc = "bandwidth of a host's link, one way"},
    {"uplink_bandwidth", CS_FIELD_BANDWIDTH, offsetof(leaf_spine_params, uplink_bandwidth),
     .fallback = "0",
     .doc = "bandwidth of a link between leaf and spine, one way; 0: same as bandwidth"},
    {"latency", CS_FIELD_TIME, offsetof(leaf_spine_params, latency), .fallback = "0 s",
     .usual_max = 0.1, .doc = "latency of each link; a message pays it on every link of its route"},
    {"routing", CS_FIELD_CHOICE, offsetof(leaf_spine_params, routing), .fallback = "ecmp",
     .choices = routings,
     .doc = "which spine a message takes; dmodk: by the number of its target; ecmp: by a hash of "
            "source and target"},
    {"seed", CS_FIELD_COUNT, offsetof(leaf_spine_params, seed), .fallback = "1",
     .doc = "seed of the hash of ecmp"},
    {0}};

static cs_status warn_of_ignored(void *params, const cs_json_place *place, cs_arena *arena,
                                 cs_error *error)
{
    (void)arena;
    (void)error;
    const leaf_spine_params *of = params;
    cs_fat_tree_warn_of_seed((cs_fat_tree_routing)of->routing, of->seed, place);
    return CS_OK;
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    const leaf_spine_params *of = params;
    const double uplink = of->uplink_bandwidth > 0 ? of->uplink_bandwidth : of->bandwidth;
    const uint64_t group = (uint64_t)of->hosts_per_leaf * of->rails;
    const uint32_t leaves = (uint32_t)((n_devices + group - 1) / group) * of->rails;
    const cs_fat_tree_shape shape = {
        .topology = "leaf_spine",
        .levels = 2,
        .m = {0, of->hosts_per_leaf, leaves > 0 ? leaves : 1},
        .w = {0, 1, of->spines},
        .p = {0, 1, of->parallel},
        .bandwidth = {0, of->bandwidth, uplink},
        .latency = {0, of->latency, of->latency},
        .rails = of->rails,
        .routing = of->routing == 0 ? CS_FAT_TREE_DMODK : CS_FAT_TREE_ECMP,
        .seed = of->seed,
    };
    return cs_fat_tree_build(&shape, n_devices, platform, error);
}

const cs_topology cs_topology_leaf_spine = {
    .name = "leaf_spine",
    .summary = "leaf switches, each linked to all spines; optionally with rails",
    .source = "Greenberg et al., VL2: a scalable and flexible data center network, SIGCOMM 2009; "
              "rails: NVIDIA DGX SuperPOD reference architecture (H100), compute fabric",
    .fields = fields,
    .params_size = sizeof(leaf_spine_params),
    .read = warn_of_ignored,
    .build = build,
};

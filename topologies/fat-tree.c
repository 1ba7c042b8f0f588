#include "topologies/fat-tree.h"

#include "sim/base/dependent-key.h"
#include "sim/base/hash.h"
#include "topologies/topology.h"

#include <inttypes.h>
#include <math.h>

enum { LEVELS = CS_FAT_TREE_LEVELS, USUAL_RADIX = 36 };

/* Data for computing routes. M, W: see fat-tree.h. */
typedef struct layout {
    cs_fat_tree_shape shape;
    uint32_t hosts_per_leaf, rails;
    uint32_t span[LEVELS + 1];         /* M(l): hosts per subtree */
    uint32_t width[LEVELS + 1];        /* W(l) */
    uint32_t subtrees[LEVELS + 1];     /* per level */
    uint32_t first_vertex[LEVELS + 1]; /* first switch of a level */
    /* first link below a level; they are numbered up, down, up, down, ... */
    uint32_t first_link[LEVELS + 1];
} layout;

/* Position of a host, counted leaf by leaf. With rails, a leaf has the hosts of one rail of
 * neighbouring nodes, while hosts are numbered node by node. Positions of missing nodes stay
 * empty. */
static uint32_t place_of(const layout *l, uint32_t host)
{
    if (l->rails == 1)
        return host;
    const uint32_t node = host / l->rails, rail = host % l->rails;
    const uint32_t group = node / l->hosts_per_leaf;
    return (group * l->rails + rail) * l->hosts_per_leaf + node % l->hosts_per_leaf;
}

/* Index within its level of the switch in `column` above a position. */
static uint32_t switch_above(const layout *l, uint32_t level, uint32_t place, uint32_t column)
{
    return place / l->span[level] * l->width[level] + column;
}

/* The link up from switch (level 1: host) `child` of level - 1 by a port; the link down is the
 * next. */
static uint32_t link_below(const layout *l, uint32_t level, uint32_t child, uint32_t port)
{
    const uint32_t ports = l->shape.w[level] * l->shape.p[level];
    return l->first_link[level] + 2 * (child * ports + port);
}

/* Chooses the port for the way up to `level`; port % w is the parent. */
static uint32_t choose_port(const layout *l, uint32_t level, uint32_t source, uint32_t target)
{
    const uint32_t ports = l->shape.w[level] * l->shape.p[level];
    if (ports == 1)
        return 0;
    if (l->shape.routing == CS_FAT_TREE_DMODK)
        return target / l->width[level - 1] % ports;
    const uint32_t key[] = {source, target, level, l->shape.seed};
    return (uint32_t)(cs_hash_bytes(key, sizeof(key), 0) % ports);
}

static uint32_t route(const cs_platform *platform, uint32_t source, uint32_t target,
                      uint32_t *links)
{
    const layout *l = platform->layout;
    if (source == target)
        return 0;
    const uint32_t from = place_of(l, source), to = place_of(l, target);
    uint32_t top = 1;
    while (from / l->span[top] != to / l->span[top])
        top++;
    uint32_t column[LEVELS + 1] = {0}, ports[LEVELS + 1] = {0};
    for (uint32_t level = 1; level <= top; level++) {
        const uint32_t child =
            level == 1 ? source : switch_above(l, level - 1, from, column[level - 1]);
        ports[level] = choose_port(l, level, from, to);
        column[level] =
            column[level - 1] + l->width[level - 1] * (ports[level] % l->shape.w[level]);
        links[level - 1] = link_below(l, level, child, ports[level]);
    }
    for (uint32_t level = top; level >= 1; level--) {
        const uint32_t child =
            level == 1 ? target : switch_above(l, level - 1, to, column[level - 1]);
        links[2 * top - level] = link_below(l, level, child, ports[level]) + 1;
    }
    return 2 * top;
}

/* ---- building ---- */

static cs_status name_switches(const layout *l, cs_platform *platform, cs_error *error)
{
    static const char *const names[] = {"", "leaf", "spine", "core"};
    cs_status status = CS_OK;
    for (uint32_t level = 1; level <= l->shape.levels; level++)
        for (uint32_t i = 0; i < l->subtrees[level] * l->width[level] && status == CS_OK; i++)
            status = cs_platform_vertex(platform, l->first_vertex[level] + i, CS_VERTEX_SWITCH,
                                        error, "%s%" PRIu32, names[level], i);
    return status;
}

/* Adds the links from a switch (level 1: host) up to its parents; `place` is any position below
 * it. */
static cs_status link_child(const layout *l, uint32_t level, uint32_t child, uint32_t place,
                            cs_platform *platform, cs_error *error)
{
    const uint32_t w = l->shape.w[level], column = child % l->width[level - 1];
    const uint32_t vertex = level == 1 ? child : l->first_vertex[level - 1] + child;
    for (uint32_t port = 0; port < w * l->shape.p[level]; port++) {
        const uint32_t above = (level == 1 ? 0 : column) + l->width[level - 1] * (port % w);
        const uint32_t parent = l->first_vertex[level] + switch_above(l, level, place, above);
        CS_TRY(cs_platform_links(platform, link_below(l, level, child, port), vertex, parent,
                                 l->shape.bandwidth[level], l->shape.latency[level], error));
    }
    return CS_OK;
}

static cs_status add_links(const layout *l, cs_platform *platform, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t host = 0; host < platform->n_devices && status == CS_OK; host++)
        status = link_child(l, 1, host, place_of(l, host), platform, error);
    for (uint32_t level = 2; level <= l->shape.levels; level++)
        for (uint32_t i = 0; i < l->subtrees[level - 1] * l->width[level - 1] && status == CS_OK;
             i++)
            status = link_child(l, level, i, i / l->width[level - 1] * l->span[level - 1], platform,
                                error);
    return status;
}

static uint32_t round_up(uint64_t value, uint32_t divisor)
{
    return (uint32_t)((value + divisor - 1) / divisor);
}

static cs_status measure(const cs_fat_tree_shape *shape, uint32_t n_hosts, layout *l,
                         uint64_t *n_switches, uint64_t *n_links, cs_error *error)
{
    *l = (layout){.shape = *shape,
                  .hosts_per_leaf = shape->m[1],
                  .rails = shape->rails,
                  .span = {1},
                  .width = {1}};
    const uint64_t group = (uint64_t)shape->rails * shape->m[1];
    const uint64_t places = shape->rails == 1 ? n_hosts : (n_hosts + group - 1) / group * group;
    uint64_t most = 1, switches = 0, links = 0, width = 1;
    for (uint32_t level = 1; level <= shape->levels && most <= UINT32_MAX; level++) {
        const uint64_t below = level == 1 ? n_hosts : l->subtrees[level - 1] * width;
        const uint64_t ports = (uint64_t)shape->w[level] * shape->p[level];
        most *= shape->m[level];
        width *= shape->w[level];
        l->span[level] = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
        l->width[level] = (uint32_t)width;
        l->subtrees[level] = round_up(places, l->span[level]);
        l->first_vertex[level] = n_hosts + (uint32_t)switches;
        l->first_link[level] = (uint32_t)links;
        if (width > UINT16_MAX * 4 || ports > UINT16_MAX || below * ports > UINT32_MAX / 4)
            return cs_error_add(error, CS_INVALID, "topology %s: too many switches or links",
                                shape->topology);
        switches += l->subtrees[level] * width;
        links += 2 * below * ports;
    }
    *n_switches = switches;
    *n_links = links;
    if (places <= most)
        return CS_OK;
    return cs_error_add(error, CS_INVALID,
                        "topology %s: %" PRIu32 " levels of these switches connect at most %" PRIu64
                        " hosts (got %" PRIu32 ")",
                        shape->topology, shape->levels, most, n_hosts);
}

cs_status cs_fat_tree_build(const cs_fat_tree_shape *shape, uint32_t n_hosts, cs_platform *platform,
                            cs_error *error)
{
    layout measured;
    uint64_t n_switches = 0, n_links = 0;
    cs_platform made = {0};
    CS_TRY(cs_platform_check_devices(shape->topology, n_hosts, error));
    CS_TRY(measure(shape, n_hosts, &measured, &n_switches, &n_links, error));
    CS_TRY(cs_platform_init(&made, shape->topology, n_hosts, n_switches, n_links, error));
    layout *l = cs_arena_alloc(&made.arena, 1, sizeof(*l));
    cs_status status = l ? CS_OK : cs_error_no_memory(error);
    if (l) {
        *l = measured;
        status = name_switches(l, &made, error);
    }
    if (status == CS_OK)
        status = add_links(l, &made, error);
    made.layout = l;
    made.longest_route = 2 * shape->levels;
    /* Hosts that reach each other without the top level; at most UINT32_MAX. */
    uint64_t hosts = shape->rails;
    for (uint32_t level = 1; level < shape->levels; level++)
        hosts = hosts * shape->m[level] > UINT32_MAX ? UINT32_MAX : hosts * shape->m[level];
    made.rack_devices = (uint32_t)hosts;
    made.route = route;
    return cs_platform_hand_over(status, &made, platform);
}

void cs_fat_tree_warn_of_seed(cs_fat_tree_routing routing, uint32_t seed,
                              const cs_json_place *place)
{
    const cs_dependent_key key = {"seed", seed != 1, routing == CS_FAT_TREE_ECMP,
                                  "\"routing\": \"ecmp\""};
    cs_dependent_keys_warn(&key, 1, place);
}

cs_status cs_fat_tree_split(const char *topology, uint32_t radix, double ratio, uint32_t *down,
                            uint32_t *up, cs_error *error)
{
    for (uint32_t ports = (uint32_t)(radix / (1 + ratio)); ports >= 1; ports--) {
        const double below = ports * ratio;
        if (fabs(below - round(below)) > 1e-9 * below)
            continue;
        *up = ports;
        *down = (uint32_t)lround(below);
        return CS_OK;
    }
    return cs_error_add(error, CS_INVALID,
                        "topology %s: a switch of %" PRIu32
                        " ports cannot have %g times as many ports down as up",
                        topology, radix, ratio);
}

/* ---- the topology "fat_tree" ---- */

typedef struct fat_tree_params {
    uint32_t levels, radix, routing, seed;
    double bandwidth;
    cs_time latency;
    cs_list oversubscription;   /* double, levels 1 to levels - 1 */
    cs_list down, up, parallel; /* elements: uint32_t */
    cs_list bandwidths;         /* double */
} fat_tree_params;

static const char *const routings[] = {"dmodk", "ecmp", NULL};

static const cs_field ratio_field = {"ratio", CS_FIELD_NUMBER, .min = 1};
static const cs_field count_field = {"count", CS_FIELD_COUNT, .min = 1};
static const cs_field bandwidth_field = {"bandwidth", CS_FIELD_BANDWIDTH, .above_min = true};

static const cs_field fields[] = {
    {"levels", CS_FIELD_COUNT, offsetof(fat_tree_params, levels), .fallback = "2", .min = 2,
     .max = LEVELS, .doc = "levels of switches"},
    {"radix", CS_FIELD_COUNT, offsetof(fat_tree_params, radix), .fallback = "36", .min = 2,
     .max = 1024, .doc = "ports of a switch; ignored if down and up are given"},
    {"oversubscription", CS_FIELD_LIST, offsetof(fat_tree_params, oversubscription),
     .fallback = "1", .of = &ratio_field, .each = true,
     .doc = "ratio of down ports to up ports of the switches below the top: for all levels, or a "
            "list from the leaves up"},
    {"down", CS_FIELD_LIST, offsetof(fat_tree_params, down), .fallback = "", .of = &count_field,
     .doc = "children of a switch for each level from the leaves up, instead of radix",
     .shape = "[whole number, ...]"},
    {"up", CS_FIELD_LIST, offsetof(fat_tree_params, up), .fallback = "", .of = &count_field,
     .doc = "with down: parents of a switch for each level from the leaves up, without the top",
     .shape = "[whole number, ...]"},
    {"parallel", CS_FIELD_LIST, offsetof(fat_tree_params, parallel), .fallback = "",
     .of = &count_field,
     .doc = "with down: links from a switch to each of its parents, for each level; default: 1",
     .shape = "[whole number, ...]"},
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(fat_tree_params, bandwidth), .above_min = true,
     .doc = "bandwidth of a link, one way"},
    {"bandwidths", CS_FIELD_LIST, offsetof(fat_tree_params, bandwidths), .fallback = "",
     .of = &bandwidth_field,
     .doc = "bandwidth of a link for each level from the hosts' links up, if they differ",
     .shape = "[bandwidth, ...]"},
    {"latency", CS_FIELD_TIME, offsetof(fat_tree_params, latency), .fallback = "0 s",
     .usual_max = 0.1, .doc = "latency of each link; a message pays it on every link of its route"},
    {"routing", CS_FIELD_CHOICE, offsetof(fat_tree_params, routing), .fallback = "dmodk",
     .choices = routings,
     .doc = "which spine a message takes; dmodk: by the number of its target; ecmp: by a hash of "
            "source and target"},
    {"seed", CS_FIELD_COUNT, offsetof(fat_tree_params, seed), .fallback = "1",
     .doc = "seed of the hash of ecmp"},
    {0}};

/* Checks that a list has an entry per level, or per level below the top. */
static cs_status check_length(const cs_list *list, const char *key, uint32_t n,
                              const cs_json_place *up, cs_error *error)
{
    const cs_json_place place = {.up = up, .key = key};
    if (!list->items || list->one || list->n == n)
        return CS_OK;
    return cs_json_invalid(&place, error, "must have %" PRIu32 " entries (got %" PRIu32 ")", n,
                           list->n);
}

static cs_status check_lists(void *params, const cs_json_place *place, cs_arena *arena,
                             cs_error *error)
{
    (void)arena;
    const fat_tree_params *of = params;
    const uint32_t levels = of->levels;
    const cs_status lengths[] = {
        check_length(&of->oversubscription, "oversubscription", levels - 1, place, error),
        check_length(&of->down, "down", levels, place, error),
        check_length(&of->up, "up", levels - 1, place, error),
        check_length(&of->parallel, "parallel", levels - 1, place, error),
        check_length(&of->bandwidths, "bandwidths", levels, place, error)};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        if (lengths[i] != CS_OK)
            return lengths[i];
    }
    if (!of->down.items != !of->up.items)
        return cs_json_invalid(place, error, "must have both \"down\" and \"up\", or neither");
    if (of->parallel.items && !of->down.items)
        return cs_json_invalid(place, error, "\"parallel\" requires \"down\" and \"up\"");
    static const char without[] = "switches that \"down\" and \"up\" do not describe";
    const double *ratios = of->oversubscription.items;
    bool oversubscribed = false;
    for (uint32_t i = 0; i < of->oversubscription.n; i++)
        oversubscribed |= ratios[i] > 1;
    const cs_dependent_key keys[] = {
        {"radix", of->radix != USUAL_RADIX, !of->down.items, without},
        {"oversubscription", oversubscribed, !of->down.items, without},
    };
    cs_dependent_keys_warn(keys, sizeof(keys) / sizeof(keys[0]), place);
    cs_fat_tree_warn_of_seed((cs_fat_tree_routing)of->routing, of->seed, place);
    return CS_OK;
}

static double number_at(const cs_list *list, uint32_t i)
{
    return ((const double *)list->items)[list->one ? 0 : i];
}

static uint32_t count_at(const cs_list *list, uint32_t i)
{
    return ((const uint32_t *)list->items)[i];
}

/* Splits the ports of each level's switches by the oversubscription; the top switches have only
 * ports down. */
static cs_status shape_by_radix(const fat_tree_params *of, cs_fat_tree_shape *shape,
                                cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t level = 1; level < of->levels && status == CS_OK; level++)
        status =
            cs_fat_tree_split("fat_tree", of->radix, number_at(&of->oversubscription, level - 1),
                              &shape->m[level], &shape->w[level + 1], error);
    shape->m[of->levels] = of->radix;
    return status;
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    const fat_tree_params *of = params;
    cs_fat_tree_shape shape = {.topology = "fat_tree",
                               .levels = of->levels,
                               .w = {0, 1, 1, 1},
                               .p = {0, 1, 1, 1},
                               .rails = 1,
                               .routing = of->routing == 0 ? CS_FAT_TREE_DMODK : CS_FAT_TREE_ECMP,
                               .seed = of->seed};
    for (uint32_t level = 1; level <= of->levels; level++) {
        shape.bandwidth[level] =
            of->bandwidths.items ? number_at(&of->bandwidths, level - 1) : of->bandwidth;
        shape.latency[level] = of->latency;
    }
    cs_status status = CS_OK;
    if (of->down.items) {
        for (uint32_t level = 1; level <= of->levels; level++) {
            shape.m[level] = count_at(&of->down, level - 1);
            if (level == 1)
                continue;
            shape.w[level] = count_at(&of->up, level - 2);
            shape.p[level] = of->parallel.items ? count_at(&of->parallel, level - 2) : 1;
        }
    } else
        status = shape_by_radix(of, &shape, error);
    return status == CS_OK ? cs_fat_tree_build(&shape, n_devices, platform, error) : status;
}

const cs_topology cs_topology_fat_tree = {
    .name = "fat_tree",
    .summary = "two or three levels of switches, full bandwidth or oversubscribed",
    .source = "Zahavi, Fat-tree routing and node ordering providing contention free traffic for "
              "MPI global collectives, JPDC 72(11), 2012",
    .fields = fields,
    .params_size = sizeof(fat_tree_params),
    .read = check_lists,
    .build = build,
};

/* Groups of routers: within a group every router is linked to every other, and every group is
 * linked to every other group. With a routers per group, p hosts and h links to other groups per
 * router, there can be a * h + 1 groups; only as many are built as the hosts need.
 *
 * Of g groups, global port j of a group (on router j / h) leads j % (g - 1) + 1 groups further.
 * With fewer groups than possible, several ports lead to the same group, and messages are
 * distributed over them by the target's number. Routes are minimal: to the router with the global
 * link, over that link, to the target's router.
 */
#include "sim/base/dependent-key.h"
#include "topologies/topology.h"

#include <inttypes.h>

typedef struct dragonfly_params {
    uint32_t routers, hosts, global;
    double bandwidth, local_bandwidth, global_bandwidth;
    cs_time latency, global_latency;
} dragonfly_params;

static const cs_field fields[] = {
    {"routers", CS_FIELD_COUNT, offsetof(dragonfly_params, routers), .min = 1, .max = 1024,
     .doc = "routers per group"},
    {"hosts", CS_FIELD_COUNT, offsetof(dragonfly_params, hosts), .min = 1, .max = 1024,
     .doc = "hosts per router"},
    {"global_links", CS_FIELD_COUNT, offsetof(dragonfly_params, global), .min = 1, .max = 1024,
     .doc = "links to other groups, per router"},
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(dragonfly_params, bandwidth), .above_min = true,
     .doc = "bandwidth of a host's link, one way"},
    {"local_bandwidth", CS_FIELD_BANDWIDTH, offsetof(dragonfly_params, local_bandwidth),
     .fallback = "0", .doc = "bandwidth of a link within a group, one way; 0: same as bandwidth"},
    {"global_bandwidth", CS_FIELD_BANDWIDTH, offsetof(dragonfly_params, global_bandwidth),
     .fallback = "0", .doc = "bandwidth of a link between groups, one way; 0: same as bandwidth"},
    {"latency", CS_FIELD_TIME, offsetof(dragonfly_params, latency), .fallback = "0 s",
     .usual_max = 0.1, .doc = "latency of a host's link and of a link within a group"},
    {"global_latency", CS_FIELD_TIME, offsetof(dragonfly_params, global_latency), .fallback = "0 s",
     .usual_max = 0.1, .doc = "latency of a link between groups"},
    {0}};

typedef struct layout {
    uint32_t a, p, h, groups;
    uint32_t first_local, first_global; /* first links of group 0 */
} layout;

static uint32_t other_port(const layout *l, uint32_t port)
{
    const uint32_t others = l->groups - 1;
    return port / others * others + (others - 1 - port % others);
}

/* Number of ports in use: whole rounds over the other groups. */
static uint32_t ports_used(const layout *l)
{
    return l->groups > 1 ? (l->a * l->h) / (l->groups - 1) * (l->groups - 1) : 0;
}

static uint32_t local_link(const layout *l, uint32_t group, uint32_t from, uint32_t to)
{
    return l->first_local + (group * l->a + from) * (l->a - 1) + (to < from ? to : to - 1);
}

static uint32_t global_link(const layout *l, uint32_t group, uint32_t port)
{
    return l->first_global + group * ports_used(l) + port;
}

static uint32_t route(const cs_platform *platform, uint32_t source, uint32_t target,
                      uint32_t *links)
{
    const layout *l = platform->layout;
    if (source == target)
        return 0;
    uint32_t n = 0, router = source / l->p;
    const uint32_t last = target / l->p, group = router / l->a, aim = last / l->a;
    links[n++] = 2 * source;
    if (group != aim) {
        /* the port of `group` towards the target, chosen by the target's number */
        const uint32_t others = l->groups - 1;
        const uint32_t gap = (aim + l->groups - group - 1) % l->groups;
        const uint32_t port = target % (ports_used(l) / others) * others + gap;
        const uint32_t gate = port / l->h;
        if (router % l->a != gate)
            links[n++] = local_link(l, group, router % l->a, gate);
        links[n++] = global_link(l, group, port);
        router = aim * l->a + other_port(l, port) / l->h;
    }
    if (router != last)
        links[n++] = local_link(l, aim, router % l->a, last % l->a);
    links[n++] = 2 * target + 1;
    return n;
}

static cs_status add_local(const dragonfly_params *of, const layout *l, cs_platform *platform,
                           cs_error *error)
{
    const double rate = of->local_bandwidth > 0 ? of->local_bandwidth : of->bandwidth;
    for (uint32_t i = 0; i < l->groups * l->a * l->a; i++) {
        const uint32_t group = i / (l->a * l->a), from = i / l->a % l->a, to = i % l->a;
        const uint32_t first = platform->n_devices + group * l->a;
        if (from != to)
            CS_TRY(cs_platform_link(platform, local_link(l, group, from, to), first + from,
                                    first + to, rate, of->latency, error));
    }
    return CS_OK;
}

static cs_status add_global(const dragonfly_params *of, const layout *l, cs_platform *platform,
                            cs_error *error)
{
    const double rate = of->global_bandwidth > 0 ? of->global_bandwidth : of->bandwidth;
    const uint32_t used = ports_used(l), first = platform->n_devices;
    for (uint32_t i = 0; i < l->groups * used; i++) {
        const uint32_t group = i / used, port = i % used;
        const uint32_t from = group * l->a + port / l->h;
        /* Global ports between two groups are numbered from both ends in the same order. */
        const uint32_t to =
            ((group + port % (l->groups - 1) + 1) % l->groups) * l->a + other_port(l, port) / l->h;
        CS_TRY(cs_platform_link(platform, global_link(l, group, port), first + from, first + to,
                                rate, of->global_latency, error));
    }
    return CS_OK;
}

static cs_status fill(const dragonfly_params *of, const layout *measured, cs_platform *made,
                      cs_error *error)
{
    layout *l = cs_arena_alloc(&made->arena, 1, sizeof(*l));
    if (!l)
        return cs_error_no_memory(error);
    *l = *measured;
    made->layout = l;
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < l->groups * l->a && status == CS_OK; i++)
        status = cs_platform_vertex(made, made->n_devices + i, CS_VERTEX_SWITCH, error,
                                    "group%" PRIu32 "/router%" PRIu32, i / l->a, i % l->a);
    for (uint32_t host = 0; host < made->n_devices && status == CS_OK; host++)
        status = cs_platform_links(made, 2 * host, host, made->n_devices + host / l->p,
                                   of->bandwidth, of->latency, error);
    if (status == CS_OK)
        status = add_local(of, l, made, error);
    return status == CS_OK ? add_global(of, l, made, error) : status;
}

static cs_status measure(const dragonfly_params *of, uint32_t n_devices, layout *l,
                         uint64_t *n_links, cs_error *error)
{
    const uint64_t per_group = (uint64_t)of->routers * of->hosts;
    const uint64_t groups = (n_devices + per_group - 1) / per_group;
    const uint64_t most = (uint64_t)of->routers * of->global + 1;
    if (groups > most)
        return cs_error_add(error, CS_INVALID,
                            "topology dragonfly: %" PRIu32 " routers per group with %" PRIu32
                            " global links each connect at most %" PRIu64 " groups, %" PRIu64
                            " hosts (got %" PRIu32 ")",
                            of->routers, of->global, most, most * per_group, n_devices);
    *l = (layout){.a = of->routers, .p = of->hosts, .h = of->global, .groups = (uint32_t)groups};
    const uint64_t local = groups * of->routers * (of->routers - 1);
    *n_links = 2 * (uint64_t)n_devices + local + groups * ports_used(l);
    if (*n_links > UINT32_MAX / 4)
        return cs_error_add(error, CS_INVALID, "topology dragonfly: too many links");
    l->first_local = 2 * n_devices;
    l->first_global = (uint32_t)(l->first_local + local);
    return CS_OK;
}

static cs_status warn_of_ignored(void *params, const cs_json_place *place, cs_arena *arena,
                                 cs_error *error)
{
    (void)arena;
    (void)error;
    const dragonfly_params *of = params;
    const cs_dependent_key key = {"local_bandwidth", of->local_bandwidth > 0, of->routers > 1,
                                  "\"routers\" above 1"};
    cs_dependent_keys_warn(&key, 1, place);
    return CS_OK;
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    const dragonfly_params *of = params;
    layout measured = {0};
    uint64_t n_links = 0;
    cs_platform made = {0};
    CS_TRY(cs_platform_check_devices("dragonfly", n_devices, error));
    CS_TRY(measure(of, n_devices, &measured, &n_links, error));
    CS_TRY(cs_platform_init(&made, "dragonfly", n_devices, (uint64_t)measured.groups * measured.a,
                            n_links, error));
    made.longest_route = 5;
    made.rack_devices = of->routers * of->hosts;
    made.route = route;
    return cs_platform_hand_over(fill(of, &measured, &made, error), &made, platform);
}

const cs_topology cs_topology_dragonfly = {
    .name = "dragonfly",
    .summary =
        "groups of fully connected routers, with links between all pairs of groups; minimal routes",
    .source = "Kim et al., Technology-driven, highly-scalable dragonfly topology, ISCA 2008",
    .fields = fields,
    .params_size = sizeof(dragonfly_params),
    .read = warn_of_ignored,
    .build = build,
};

/* A grid of 1 to 3 dimensions with links around its ends. Device d has the coordinates (d % x, d /
 * x % y, d / (x * y)). It has links to both neighbours in each dimension (to one, if the dimension
 * has two places). Messages travel along one dimension after the other, from the first, each in the
 * shorter direction, up if both are equally long. */
#include "topologies/topology.h"

#include <inttypes.h>

enum { DIMENSIONS = 3 };

typedef struct torus_params {
    cs_list shape; /* uint32_t */
    double bandwidth;
    cs_time latency;
} torus_params;

static const cs_field size_field = {"size", CS_FIELD_COUNT, .min = 1};

static const cs_field fields[] = {
    {"shape", CS_FIELD_LIST, offsetof(torus_params, shape), .of = &size_field, .least = 1,
     .most = DIMENSIONS,
     .doc = "size of each dimension; their product must be at least the number of devices",
     .shape = "[x, y] or [x, y, z]"},
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(torus_params, bandwidth), .above_min = true,
     .doc = "bandwidth of each link, one way"},
    {"latency", CS_FIELD_TIME, offsetof(torus_params, latency), .fallback = "0 s", .usual_max = 0.1,
     .doc = "latency of each link; a message pays it on every link of its route"},
    {0}};

typedef struct layout {
    uint32_t size[DIMENSIONS], stride[DIMENSIONS];
    uint32_t n_dimensions;
    uint32_t first_link[DIMENSIONS]; /* per dimension: n up links, then n down links */
    uint32_t n_places;
} layout;

static uint32_t step(const layout *l, uint32_t place, uint32_t d, uint32_t by)
{
    const uint32_t at = place / l->stride[d] % l->size[d];
    return place - at * l->stride[d] + (at + by) % l->size[d] * l->stride[d];
}

static uint32_t route(const cs_platform *platform, uint32_t source, uint32_t target,
                      uint32_t *links)
{
    const layout *l = platform->layout;
    uint32_t n = 0, at = source;
    for (uint32_t d = 0; d < l->n_dimensions; d++) {
        const uint32_t size = l->size[d];
        const uint32_t up = (target / l->stride[d] % size + size - at / l->stride[d] % size) % size;
        const bool forward = up <= size - up;
        for (uint32_t left = forward ? up : size - up; left > 0; left--) {
            links[n++] = l->first_link[d] + (forward ? 0 : l->n_places) + at;
            at = step(l, at, d, forward ? 1 : size - 1);
        }
    }
    return n;
}

/* Places without a device only forward messages. */
static cs_status name_empty_places(const layout *l, cs_platform *platform, cs_error *error)
{
    for (uint32_t i = platform->n_devices; i < l->n_places; i++)
        CS_TRY(cs_platform_vertex(platform, i, CS_VERTEX_SWITCH, error, "place%" PRIu32, i));
    return CS_OK;
}

static cs_status measure(const torus_params *torus, uint32_t n_devices, layout *l,
                         uint64_t *n_links, uint32_t *longest, cs_error *error)
{
    uint64_t places = 1;
    const uint32_t *sizes = torus->shape.items;
    l->n_dimensions = torus->shape.n;
    *longest = 0;
    for (uint32_t d = 0; d < l->n_dimensions; d++) {
        l->size[d] = sizes[d];
        l->stride[d] = (uint32_t)places;
        places *= l->size[d];
        *longest += l->size[d] / 2;
        if (places > 1 << 24)
            break;
    }
    if (places > 1 << 24 || places < n_devices)
        return cs_error_add(error, CS_INVALID,
                            "topology torus: the product of \"shape\" must be from %" PRIu32
                            ", the number of devices, to %d (got %" PRIu64 ")",
                            n_devices, 1 << 24, places);
    l->n_places = (uint32_t)places;
    *n_links = 0;
    for (uint32_t d = 0; d < l->n_dimensions; d++) {
        l->first_link[d] = (uint32_t)*n_links;
        *n_links += places * (l->size[d] == 1 ? 0 : l->size[d] == 2 ? 1 : 2);
    }
    return CS_OK;
}

static cs_status fill(const torus_params *torus, const layout *measured, cs_platform *made,
                      cs_error *error)
{
    layout *l = cs_arena_alloc(&made->arena, 1, sizeof(*l));
    if (!l)
        return cs_error_no_memory(error);
    *l = *measured;
    made->layout = l;
    made->route = route;
    CS_TRY(name_empty_places(l, made, error));
    cs_status status = CS_OK;
    for (uint32_t d = 0; d < l->n_dimensions; d++) {
        const uint32_t ways = l->size[d] == 1 ? 0 : l->size[d] == 2 ? 1 : 2;
        for (uint32_t i = 0; i < ways * l->n_places && status == CS_OK; i++) {
            const uint32_t place = i % l->n_places, link = l->first_link[d] + i;
            const uint32_t to = step(l, place, d, i < l->n_places ? 1 : l->size[d] - 1);
            status =
                cs_platform_link(made, link, place, to, torus->bandwidth, torus->latency, error);
            made->links[link].peer = true;
        }
    }
    return status;
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    const torus_params *torus = params;
    layout measured = {0};
    uint64_t n_links = 0;
    uint32_t longest = 0;
    cs_platform made = {0};
    CS_TRY(cs_platform_check_devices("torus", n_devices, error));
    CS_TRY(measure(torus, n_devices, &measured, &n_links, &longest, error));
    CS_TRY(
        cs_platform_init(&made, "torus", n_devices, measured.n_places - n_devices, n_links, error));
    made.longest_route = longest;
    return cs_platform_hand_over(fill(torus, &measured, &made, error), &made, platform);
}

const cs_topology cs_topology_torus = {
    .name = "torus",
    .summary = "a grid of 2 or 3 dimensions that wraps around",
    .source = "Dally and Towles, Principles and practices of interconnection networks, 2004, "
              "chapters 5 and 8",
    .fields = fields,
    .params_size = sizeof(torus_params),
    .build = build,
};

#include "topologies/platform.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Topologies may count a few links per device in 32 bits without their own check. */
enum { MOST_DEVICES = 1 << 24 };
#define MOST_LINKS (UINT32_C(1) << 30)

void cs_platform_finish(cs_platform *platform)
{
    if (!platform)
        return;
    cs_arena_finish(&platform->arena);
    *platform = (cs_platform){0};
}

const char *cs_sharing_text(const cs_platform *platform, char text[CS_SHARING_TEXT_BYTES])
{
    static const char *const names[] = {
#define NAME(name, text) text,
        CS_SHARING_MAP(NAME)
#undef NAME
    };
    if (platform->n_links == 0)
        return NULL;
    if (platform->sharing == CS_SHARING_PHI)
        snprintf(text, CS_SHARING_TEXT_BYTES, "phi %g", platform->phi);
    else
        snprintf(text, CS_SHARING_TEXT_BYTES, "%s%s",
                 platform->sharing == CS_SHARING_COUNT ? "phi " : "", names[platform->sharing]);
    return text;
}

/* Writes "gpu7" without printf, because there may be many. */
static const char *name_gpu(cs_arena *arena, uint32_t number)
{
    enum { DIGITS = 10 };
    char text[DIGITS], *at = text + DIGITS;
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    const size_t n = (size_t)(text + DIGITS - at);
    char *name = cs_arena_alloc(arena, n + 4, 1);
    if (name) {
        memcpy(name, "gpu", 3);
        memcpy(name + 3, at, n);
    }
    return name;
}

static cs_status allocate(cs_platform *platform, cs_error *error)
{
    cs_arena *arena = &platform->arena;
    platform->devices = cs_arena_alloc(arena, platform->n_devices, sizeof(cs_device));
    platform->vertices = cs_arena_alloc(arena, platform->n_vertices, sizeof(cs_vertex));
    platform->links = cs_arena_alloc(arena, platform->n_links, sizeof(cs_link));
    if (!platform->devices || !platform->vertices || !platform->links)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < platform->n_devices; i++) {
        platform->devices[i] = (cs_device){.speed = 1, .capacity = INT64_MAX};
        platform->vertices[i] = (cs_vertex){name_gpu(arena, i), CS_VERTEX_GPU};
        if (!platform->vertices[i].name)
            return cs_error_no_memory(error);
    }
    return CS_OK;
}

cs_status cs_platform_check_devices(const char *topology, uint32_t n_devices, cs_error *error)
{
    if (n_devices > 0 && n_devices <= MOST_DEVICES)
        return CS_OK;
    return cs_error_add(error, CS_INVALID,
                        "topology %s: the number of devices must be from 1 to %d "
                        "(got %" PRIu32 ")",
                        topology, MOST_DEVICES, n_devices);
}

cs_status cs_platform_init(cs_platform *platform, const char *topology, uint32_t n_devices,
                           uint64_t n_inner, uint64_t n_links, cs_error *error)
{
    CS_TRY(cs_platform_check_devices(topology, n_devices, error));
    if (n_links >= MOST_LINKS || n_inner >= MOST_LINKS)
        return cs_error_add(error, CS_INVALID,
                            "topology %s: must have fewer than %u switches and links (got %" PRIu64
                            " and %" PRIu64 ")",
                            topology, MOST_LINKS, n_inner, n_links);
    cs_platform made = {.topology = topology,
                        .n_devices = n_devices,
                        .n_vertices = n_devices + (uint32_t)n_inner,
                        .n_links = (uint32_t)n_links,
                        .sharing = CS_SHARING_NONE,
                        .phi = 1};
    cs_arena_init(&made.arena);
    return cs_platform_hand_over(allocate(&made, error), &made, platform);
}

cs_status cs_platform_hand_over(cs_status status, cs_platform *made, cs_platform *platform)
{
    if (status == CS_OK)
        *platform = *made;
    else
        cs_platform_finish(made);
    return status;
}

cs_status cs_platform_vertex(cs_platform *platform, uint32_t vertex, cs_vertex_kind kind,
                             cs_error *error, const char *format, ...)
{
    assert(vertex < platform->n_vertices);
    char name[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(name, sizeof(name), format, arguments);
    va_end(arguments);
    char *copy = cs_arena_copy(&platform->arena, name);
    if (!copy)
        return cs_error_no_memory(error);
    platform->vertices[vertex] = (cs_vertex){.name = copy, .kind = kind};
    return CS_OK;
}

/* "A to B", or "through A" for a vertex's link to itself; parallel links get " #1" and so on. */
static char *link_name(cs_platform *platform, uint32_t from, uint32_t to, uint32_t number)
{
    char end[16] = "";
    if (number > 0)
        snprintf(end, sizeof(end), " #%" PRIu32, number);
    const char *before = from == to ? "through " : platform->vertices[from].name;
    const char *between = from == to ? "" : " to ";
    const char *after = platform->vertices[to].name;
    const size_t lengths[] = {strlen(before), strlen(between), strlen(after)};
    char *name =
        cs_arena_alloc(&platform->arena, lengths[0] + lengths[1] + lengths[2] + strlen(end) + 1, 1);
    if (!name)
        return NULL;
    memcpy(name, before, lengths[0]);
    memcpy(name + lengths[0], between, lengths[1]);
    memcpy(name + lengths[0] + lengths[1], after, lengths[2]);
    memcpy(name + lengths[0] + lengths[1] + lengths[2], end, strlen(end));
    return name;
}

cs_status cs_platform_link(cs_platform *platform, uint32_t link, uint32_t from, uint32_t to,
                           double bandwidth, cs_time latency, cs_error *error)
{
    assert(link < platform->n_links && from < platform->n_vertices && to < platform->n_vertices);
    const char *name = link_name(platform, from, to, 0);
    if (!name)
        return cs_error_no_memory(error);
    if (!(bandwidth > 0)) /* also refuses NaN */
        return cs_error_add(error, CS_INVALID,
                            "topology %s: link \"%s\": bandwidth must be > 0 bytes/s (got %g)",
                            platform->topology, name, bandwidth);
    if (latency < 0)
        return cs_error_add(error, CS_INVALID,
                            "topology %s: link \"%s\": latency must be >= 0 (got %" PRId64 " ps)",
                            platform->topology, name, latency);
    platform->links[link] =
        (cs_link){.name = name, .bandwidth = bandwidth, .latency = latency, .from = from, .to = to};
    return CS_OK;
}

/* `count` and `number` are zero for every vertex, before and after. */
static bool number_links_of(cs_platform *platform, const uint32_t *links, uint32_t n,
                            uint32_t *count, uint32_t *number)
{
    bool done = true;
    for (uint32_t i = 0; i < n; i++)
        count[platform->links[links[i]].to]++;
    for (uint32_t i = 0; i < n && done; i++) {
        cs_link *link = &platform->links[links[i]];
        if (count[link->to] < 2)
            continue;
        link->name = link_name(platform, link->from, link->to, ++number[link->to]);
        done = link->name != NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        count[platform->links[links[i]].to] = number[platform->links[links[i]].to] = 0;
    return done;
}

cs_status cs_platform_number_links(cs_platform *platform, cs_error *error)
{
    const size_t n = platform->n_vertices;
    uint32_t *first = calloc(n + 1, sizeof(*first));
    uint32_t *order = calloc((size_t)platform->n_links + 1, sizeof(*order));
    uint32_t *count = calloc(n + 1, sizeof(*count)), *number = calloc(n + 1, sizeof(*number));
    bool done = first && order && count && number;
    if (done) {
        /* The links from vertex v are order[first[v]] to order[first[v + 1] - 1]. */
        for (uint32_t i = 0; i < platform->n_links; i++)
            first[platform->links[i].from + 1]++;
        for (uint32_t v = 0; v < platform->n_vertices; v++) {
            first[v + 1] += first[v];
            number[v] = first[v];
        }
        for (uint32_t i = 0; i < platform->n_links; i++)
            order[number[platform->links[i].from]++] = i;
        memset(number, 0, n * sizeof(*number));
    }
    for (uint32_t v = 0; v < n && done; v++)
        done = number_links_of(platform, order + first[v], first[v + 1] - first[v], count, number);
    free(first);
    free(order);
    free(count);
    free(number);
    return done ? CS_OK : cs_error_no_memory(error);
}

cs_status cs_platform_links(cs_platform *platform, uint32_t link, uint32_t from, uint32_t to,
                            double bandwidth, cs_time latency, cs_error *error)
{
    const cs_status status = cs_platform_link(platform, link, from, to, bandwidth, latency, error);
    return status == CS_OK
               ? cs_platform_link(platform, link + 1, to, from, bandwidth, latency, error)
               : status;
}

cs_status cs_platform_star(cs_platform *platform, double bandwidth, cs_time latency,
                           cs_error *error)
{
    const uint32_t hub = platform->n_devices;
    for (uint32_t device = 0; device < hub; device++) {
        CS_TRY(
            cs_platform_link(platform, cs_star_up(device), device, hub, bandwidth, latency, error));
        CS_TRY(cs_platform_link(platform, cs_star_down(device), hub, device, bandwidth, 0, error));
    }
    return CS_OK;
}

#include "topologies/link-rings.h"

#include "sim/base/vector.h"
#include "topologies/route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANKS = CS_LINK_RANKS_MAX,
    ROOM_MAX = 2 * CS_LINK_CYCLES_MAX, /* capacity of a link, in rings; more is never needed */
    STEPS_EACH = 1 << 18,              /* search steps until a number of rings is given up */
    STEPS_ALL = 1 << 21
};

/* Search for rings of one bandwidth. */
typedef struct search {
    uint32_t n, wanted; /* ranks, rings */
    uint32_t room[RANKS][RANKS];
    uint8_t near[RANKS][RANKS]; /* per rank: the other ranks, those with the most room first */
    uint32_t steps;
    uint32_t n_found;
    uint8_t found[CS_LINK_CYCLES_MAX][RANKS]; /* the last one is being built */
    bool passed[CS_LINK_CYCLES_MAX][RANKS];
} search;

/* ---- the search ---- */

static void sort_near(search *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < s->n; k++) {
            if (k == i)
                continue;
            uint32_t at = n++;
            for (; at > 0 && s->room[i][s->near[i][at - 1]] < s->room[i][k]; at--)
                s->near[i][at] = s->near[i][at - 1];
            s->near[i][at] = (uint8_t)k;
        }
    }
}

/* Position of a rank among those near another one. */
static uint32_t place_of(const search *s, uint32_t rank, uint32_t other)
{
    uint32_t place = 0;
    while (s->near[rank][place] != other)
        place++;
    return place;
}

static void take(search *s, uint32_t a, uint32_t b)
{
    s->room[a][b]--;
    s->room[b][a]--;
}

static void give(search *s, uint32_t a, uint32_t b)
{
    s->room[a][b]++;
    s->room[b][a]++;
}

static bool extend(search *s, uint32_t length, bool as_before);

static bool begin_ring(search *s)
{
    const uint32_t ring = s->n_found - 1;
    memset(s->passed[ring], 0, sizeof(s->passed[ring]));
    s->found[ring][0] = 0;
    s->passed[ring][0] = true;
    return extend(s, 1, ring > 0);
}

/* Closes a ring that has all ranks and goes on to the next. Of its two directions, only the one
 * that begins with the nearer rank is tried. */
static bool close_ring(search *s)
{
    const uint8_t *ring = s->found[s->n_found - 1];
    const uint32_t last = ring[s->n - 1];
    if (s->room[last][0] == 0 || place_of(s, 0, ring[1]) > place_of(s, 0, last))
        return false;
    if (s->n_found == s->wanted)
        return true;
    take(s, last, 0);
    s->n_found++;
    if (begin_ring(s))
        return true;
    s->n_found--;
    give(s, last, 0);
    return false;
}

/* Adds a rank to the current ring. Rings are in lexicographic order of their ranks' positions, so
 * that no set is tried twice; `as_before`: this ring equals the previous one so far. */
static bool extend(search *s, uint32_t length, bool as_before)
{
    const uint32_t number = s->n_found - 1;
    uint8_t *ring = s->found[number];
    const uint32_t at = ring[length - 1];
    if (length == s->n)
        return close_ring(s);
    const uint32_t first = as_before ? place_of(s, at, s->found[number - 1][length]) : 0;
    for (uint32_t place = first; place + 1 < s->n && s->steps > 0; place++) {
        const uint32_t to = s->near[at][place];
        if (s->room[at][to] == 0 || s->passed[number][to])
            continue;
        s->steps--;
        ring[length] = (uint8_t)to;
        s->passed[number][to] = true;
        take(s, at, to);
        if (extend(s, length + 1, as_before && place == first))
            return true;
        give(s, at, to);
        s->passed[number][to] = false;
    }
    return false;
}

/* ---- of one bandwidth ---- */

/* An upper bound: a ring crosses every cut at least twice. */
static uint32_t most_rings(const search *s)
{
    uint32_t least = 2 * CS_LINK_CYCLES_MAX;
    for (uint32_t side = 1; side < UINT32_C(1) << (s->n - 1); side++) {
        uint32_t across = 0;
        for (uint32_t i = 0; i + 1 < s->n && across < least; i++)
            for (uint32_t k = 0; k < s->n && side >> i & 1; k++)
                across += side >> k & 1 ? 0 : s->room[i][k];
        least = across < least ? across : least;
    }
    return least / 2;
}

static void set_up(search *s, uint32_t n, const double *widths, double bandwidth)
{
    *s = (search){.n = n};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++) {
            const double width = fmin(widths[i * n + k], widths[k * n + i]);
            s->room[i][k] = i == k ? 0 : (uint32_t)fmin(width / bandwidth, ROOM_MAX);
        }
    sort_near(s);
}

/* Finds the largest set of rings of this bandwidth, if it is better than `best`. */
static void find_with(uint32_t n, const double *widths, double bandwidth, uint32_t *steps,
                      cs_link_rings *best)
{
    search s;
    set_up(&s, n, widths, bandwidth);
    for (uint32_t wanted = most_rings(&s); wanted > 0; wanted--) {
        if (2 * wanted * bandwidth <= best->n_rings * best->bandwidth * (1 + 1e-9))
            return;
        set_up(&s, n, widths, bandwidth);
        s.wanted = wanted;
        s.n_found = 1;
        s.steps = *steps < STEPS_EACH ? *steps : STEPS_EACH;
        *steps -= s.steps;
        const bool found = begin_ring(&s);
        *steps += s.steps;
        if (found) {
            cs_link_rings *rings = best;
            *rings = (cs_link_rings){.n_ranks = s.n,
                                     .n_cycles = s.n_found,
                                     .n_rings = 2 * s.n_found,
                                     .bandwidth = bandwidth};
            memcpy(rings->cycles, s.found, sizeof(rings->cycles));
            return;
        }
    }
}

static int compare_down(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? 1 : a > b ? -1 : 0;
}

bool cs_link_rings_find(uint32_t n, const double *widths, cs_link_rings *rings)
{
    double bandwidths[RANKS * (RANKS - 1)];
    uint32_t steps = STEPS_ALL;
    *rings = (cs_link_rings){0};
    if (n < CS_LINK_RANKS_MIN || n > CS_LINK_RANKS_MAX)
        return false;
    /* List the bandwidths of links and their halves, the largest first. */
    uint32_t listed = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++) {
            const double width = fmin(widths[i * n + k], widths[k * n + i]);
            if (!(width > 0) || !isfinite(width))
                continue;
            bandwidths[listed++] = width;
            bandwidths[listed++] = width / 2;
        }
    cs_vector_sort(bandwidths, listed, sizeof(*bandwidths), compare_down);
    for (uint32_t i = 0; i < listed; i++)
        if (i == 0 || bandwidths[i] < bandwidths[i - 1])
            find_with(n, widths, bandwidths[i], &steps, rings);
    return rings->n_rings > 0;
}

/* ---- of a platform ---- */

typedef struct remembered {
    uint32_t n;
    double *widths;
    cs_link_rings *rings; /* NULL: no rings */
} remembered;

struct cs_link_memory {
    remembered *of;
    uint32_t n, capacity;
};

cs_link_memory *cs_link_memory_create(void)
{
    return calloc(1, sizeof(cs_link_memory));
}

void cs_link_memory_destroy(cs_link_memory *memory)
{
    for (uint32_t i = 0; memory && i < memory->n; i++) {
        free(memory->of[i].widths);
        free(memory->of[i].rings);
    }
    if (memory)
        free(memory->of);
    free(memory);
}

/* Bandwidth of the single peer link on the route between two GPUs, bytes/s; 0: the route is
 * longer. */
static cs_status find_width(const cs_platform *platform, uint32_t from, uint32_t to,
                            uint32_t *links, double *width, cs_error *error)
{
    cs_route route;
    CS_TRY(cs_route_find(platform, from, to, links, &route, error));
    const bool direct = route.n == 1 && platform->links[links[0]].peer;
    const cs_link *quiet = platform->quiet_links ? platform->quiet_links : platform->links;
    *width = direct ? quiet[links[0]].bandwidth : 0;
    return CS_OK;
}

static cs_status find_widths(const cs_platform *platform, const uint32_t *devices, uint32_t n,
                             double *widths, cs_error *error)
{
    uint32_t *links = malloc(((size_t)platform->longest_route + 1) * sizeof(*links));
    cs_status status = links ? CS_OK : cs_error_no_memory(error);
    for (uint32_t i = 0; i < n * n && status == CS_OK; i++) {
        widths[i] = 0;
        if (i / n != i % n)
            status = find_width(platform, devices[i / n], devices[i % n], links, &widths[i], error);
    }
    free(links);
    return status;
}

cs_status cs_link_memory_find(cs_link_memory *memory, const cs_platform *platform,
                              const uint32_t *devices, uint32_t n, const cs_link_rings **rings,
                              cs_error *error)
{
    double widths[RANKS * RANKS];
    *rings = NULL;
    if (n < CS_LINK_RANKS_MIN || n > CS_LINK_RANKS_MAX)
        return CS_OK;
    CS_TRY(find_widths(platform, devices, n, widths, error));
    for (uint32_t i = memory->n; i-- > 0;) {
        const remembered *at = &memory->of[i];
        if (at->n == n && memcmp(at->widths, widths, (size_t)n * n * sizeof(*widths)) == 0) {
            *rings = at->rings;
            return CS_OK;
        }
    }
    cs_link_rings found;
    remembered made = {.n = n, .widths = malloc((size_t)n * n * sizeof(*widths))};
    const bool any = cs_link_rings_find(n, widths, &found);
    made.rings = any ? malloc(sizeof(*made.rings)) : NULL;
    if (!made.widths || (any && !made.rings) ||
        !cs_vector_reserve((void **)&memory->of, &memory->capacity, memory->n + UINT64_C(1),
                           sizeof(*memory->of))) {
        free(made.widths);
        free(made.rings);
        return cs_error_no_memory(error);
    }
    memcpy(made.widths, widths, (size_t)n * n * sizeof(*widths));
    if (any)
        *made.rings = found;
    memory->of[memory->n++] = made;
    *rings = made.rings;
    return CS_OK;
}

/* ---- a step of the rings ---- */

/* Number of rings that go from one rank to another. */
static uint32_t rings_between(const cs_link_rings *rings, uint32_t from, uint32_t to)
{
    uint32_t count = 0;
    for (uint32_t c = 0; c < rings->n_cycles; c++)
        for (uint32_t i = 0; i < rings->n_ranks; i++) {
            const uint32_t a = rings->cycles[c][i];
            const uint32_t b = rings->cycles[c][(i + 1) % rings->n_ranks];
            count += (a == from && b == to) || (a == to && b == from);
        }
    return count;
}

cs_status cs_link_step_find(cs_link_memory *memory, const cs_platform *platform,
                            const uint32_t *devices, uint32_t n, cs_link_step *step,
                            cs_error *error)
{
    const cs_link_rings *rings = NULL;
    *step = (cs_link_step){0};
    if (platform->linked_gpus)
        CS_TRY(cs_link_memory_find(memory, platform, devices, n, &rings, error));
    if (!rings)
        return CS_OK;
    const bool contended = cs_links_are_contended(platform);
    double slowest = INFINITY;
    *step = (cs_link_step){.rings = rings->n_rings, .equal = platform->sharing != CS_SHARING_FIFO};
    for (uint32_t i = 0; i < rings->n_ranks * rings->n_ranks; i++) {
        const uint32_t from = i / rings->n_ranks, to = i % rings->n_ranks;
        const uint32_t count = rings_between(rings, from, to);
        cs_route route;
        if (count == 0)
            continue;
        CS_TRY(cs_route_find(platform, devices[from], devices[to], NULL, &route, error));
        step->equal &= isinf(slowest) || step->latency == route.latency;
        step->latency = route.latency > step->latency ? route.latency : step->latency;
        slowest = fmin(slowest, route.bandwidth / (contended ? count : platform->phi));
    }
    step->bandwidth = step->rings * slowest;
    return CS_OK;
}

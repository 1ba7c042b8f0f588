#include "topologies/link-rings.h"

#include "sim/base/vector.h"
#include "topologies/route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANKS = CS_LINK_RANKS_MAX,
    ROOM_MAX = 2 * CS_LINK_CYCLES_MAX, /* of a link: more is never needed */
    STEPS_EACH = 1 << 18,              /* until a number of rings is given up */
    STEPS_ALL = 1 << 21
};

/* For rings of one bandwidth. */
typedef struct search {
    uint32_t n, wanted; /* ranks, rings */
    uint32_t room[RANKS][RANKS];
    uint8_t near[RANKS][RANKS]; /* of each rank: the others, those with the most room first */
    uint32_t steps;
    uint32_t n_found;
    uint8_t found[CS_LINK_CYCLES_MAX][RANKS]; /* the last of them is under way */
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

/* Where a rank stands among those near another one. */
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

/* The last rank is there: back to the first, and on to the next ring. Of the two ways around, that
 * with the nearer rank first. */
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

/* Rings come in the order of the places of their ranks, so that no set is tried twice; `as_before`:
 * this one has been like the one before so far. */
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

/* Rings cross every cut at least twice. */
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

static void note_rings(const search *s, double bandwidth, cs_link_rings *rings)
{
    *rings = (cs_link_rings){
        .n_ranks = s->n, .n_cycles = s->n_found, .n_rings = 2 * s->n_found, .bandwidth = bandwidth};
    memcpy(rings->cycles, s->found, sizeof(rings->cycles));
}

/* The most that give more than there is already. */
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
            note_rings(&s, bandwidth, best);
            return;
        }
    }
}

static int compare_down(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? 1 : a > b ? -1 : 0;
}

/* The bandwidths that links have, and the halves of these, the largest first. */
static uint32_t list_bandwidths(uint32_t n, const double *widths, double *out)
{
    uint32_t listed = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++) {
            const double width = fmin(widths[i * n + k], widths[k * n + i]);
            if (!(width > 0) || !isfinite(width))
                continue;
            out[listed++] = width;
            out[listed++] = width / 2;
        }
    cs_vector_sort(out, listed, sizeof(*out), compare_down);
    return listed;
}

bool cs_link_rings_find(uint32_t n, const double *widths, cs_link_rings *rings)
{
    double bandwidths[RANKS * (RANKS - 1)];
    uint32_t steps = STEPS_ALL;
    *rings = (cs_link_rings){0};
    if (n < CS_LINK_RANKS_MIN || n > CS_LINK_RANKS_MAX)
        return false;
    const uint32_t listed = list_bandwidths(n, widths, bandwidths);
    for (uint32_t i = 0; i < listed; i++)
        if (i == 0 || bandwidths[i] < bandwidths[i - 1])
            find_with(n, widths, bandwidths[i], &steps, rings);
    return rings->n_rings > 0;
}

/* ---- of a platform ---- */

typedef struct remembered {
    uint32_t n;
    double *widths;
    cs_link_rings *rings; /* NULL: there are none */
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

/* Bytes/s of the one link that a route takes from GPU to GPU; 0: it takes others. */
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

static cs_status remember(cs_link_memory *memory, uint32_t n, const double *widths,
                          const cs_link_rings **rings, cs_error *error)
{
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
    return remember(memory, n, widths, rings, error);
}

/* ---- a step of them ---- */

/* How many rings go from one rank to another. */
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

static cs_status measure_step(const cs_platform *platform, const uint32_t *devices,
                              const cs_link_rings *rings, cs_link_step *step, cs_error *error)
{
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

cs_status cs_link_step_find(cs_link_memory *memory, const cs_platform *platform,
                            const uint32_t *devices, uint32_t n, cs_link_step *step,
                            cs_error *error)
{
    const cs_link_rings *rings = NULL;
    *step = (cs_link_step){0};
    if (platform->linked_gpus)
        CS_TRY(cs_link_memory_find(memory, platform, devices, n, &rings, error));
    return rings ? measure_step(platform, devices, rings, step, error) : CS_OK;
}

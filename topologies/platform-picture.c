#include "topologies/platform-picture.h"

#include "sim/base/units.h"
#include "sim/base/vector.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN_NODES = 2, /* nodes of a cluster */
    MERGED = 17,     /* devices from this number on share a box with similar ones */
    ROUTED = 1024,   /* devices whose routes are followed */
    COLOURS = 8,     /* colours for bandwidths; further bandwidths reuse them */
    LEGEND_MAX = 16, /* kinds of lines in the legend */
    THICKEST = 5,    /* points */
    THIN = 2,        /* points, if lines cross */
};

#define NONE UINT32_MAX

/* A link as seen from one of its ends. */
typedef struct end {
    uint32_t other; /* vertex; NONE: the link limits what its own vertex can forward */
    bool out, peer;
    double bandwidth;
} end;

/* Equal links from one box to another; `both`: and as many in the opposite direction */
typedef struct edge {
    uint32_t from, to, n;
    double bandwidth;
    bool peer, both, drawn_back;
} edge;

typedef struct picture {
    const cs_platform *platform;
    cs_arena arena;
    uint32_t *node;  /* per vertex; NONE: no node */
    bool *shown;     /* per vertex */
    bool *used;      /* per vertex: on a route between shown devices */
    uint32_t *first; /* ends of vertex v: ends[first[v]] .. ends[first[v + 1] - 1] */
    end *ends;
    uint32_t *order; /* vertices; similar ones are adjacent */
    uint32_t *box;   /* per vertex: first vertex of its box */
    uint32_t *last;  /* per box: its last vertex */
    uint32_t *size;  /* per box: number of vertices */
    int *layer;      /* per box; devices: 0 */
    edge *edges;
    uint32_t n_edges;
    uint32_t n_devices; /* number of shown devices */
    uint32_t n_nodes;
    double most; /* bytes/s of the widest line */
    bool layered;
} picture;

/* ---- visible parts ---- */

static const char *short_name(const picture *p, uint32_t v)
{
    const char *name = p->platform->vertices[v].name;
    return p->node[v] == NONE ? name : strchr(name, '/') + 1;
}

static bool is_device(const picture *p, uint32_t v)
{
    return p->platform->vertices[v].kind == CS_VERTEX_GPU;
}

static cs_status mark_routes(picture *p, cs_error *error)
{
    const cs_platform *of = p->platform;
    const uint32_t n = of->n_devices < ROUTED ? of->n_devices : ROUTED;
    uint32_t *way = cs_arena_alloc(&p->arena, (size_t)of->longest_route + 1, sizeof(*way));
    if (!way)
        return cs_error_no_memory(error);
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < n && p->shown[a]; b++) {
            const uint32_t length = p->shown[b] ? of->route(of, a, b, way) : 0;
            for (uint32_t i = 0; i < length; i++)
                p->used[of->links[way[i]].from] = p->used[of->links[way[i]].to] = true;
        }
    }
    return CS_OK;
}

/* ---- similar vertices ---- */

static int compare_ends(const void *left, const void *right)
{
    const end *a = left, *b = right;
    CS_COMPARE(a->other, b->other);
    if (a->out != b->out)
        return a->out ? -1 : 1;
    if (a->peer != b->peer)
        return a->peer ? -1 : 1;
    CS_COMPARE(a->bandwidth, b->bandwidth);
    return 0;
}

static void add_end(picture *p, uint32_t *next, uint32_t v, uint32_t other, bool out,
                    const cs_link *link)
{
    if (p->shown[v] && p->shown[other])
        p->ends[next[v]++] = (end){v == other ? NONE : other, out, link->peer, link->bandwidth};
}

/* Lists the sorted ends of all vertices; hidden vertices have none. `next` has room for a number
 * per vertex.
 */
static void list_ends(picture *p, uint32_t *next)
{
    const cs_platform *of = p->platform;
    memset(next, 0, of->n_vertices * sizeof(*next));
    for (uint32_t i = 0; i < of->n_links; i++) {
        const cs_link *link = &of->links[i];
        if (p->shown[link->from] && p->shown[link->to]) {
            next[link->from]++;
            next[link->to]++;
        }
    }
    uint32_t sum = 0;
    for (uint32_t v = 0; v < of->n_vertices; v++) {
        const uint32_t n = next[v];
        next[v] = p->first[v] = sum;
        sum += n;
    }
    p->first[of->n_vertices] = sum;
    for (uint32_t i = 0; i < of->n_links; i++) {
        add_end(p, next, of->links[i].from, of->links[i].to, true, &of->links[i]);
        add_end(p, next, of->links[i].to, of->links[i].from, false, &of->links[i]);
    }
    for (uint32_t v = 0; v < of->n_vertices; v++)
        qsort(p->ends + p->first[v], p->first[v + 1] - p->first[v], sizeof(*p->ends), compare_ends);
}

static bool may_merge(const picture *p, uint32_t v)
{
    const cs_vertex_kind kind = p->platform->vertices[v].kind;
    return kind == CS_VERTEX_SWITCH || (kind == CS_VERTEX_GPU && p->n_devices >= MERGED);
}

/* Orders vertices; 0: similar. */
static int compare_vertices(const picture *p, uint32_t a, uint32_t b)
{
    const uint32_t n = p->first[a + 1] - p->first[a], m = p->first[b + 1] - p->first[b];
    if (p->platform->vertices[a].kind != p->platform->vertices[b].kind)
        return p->platform->vertices[a].kind < p->platform->vertices[b].kind ? -1 : 1;
    if (p->node[a] != p->node[b])
        return p->node[a] < p->node[b] ? -1 : 1;
    if (n != m)
        return n < m ? -1 : 1;
    for (uint32_t i = 0; i < n; i++) {
        const int different = compare_ends(&p->ends[p->first[a] + i], &p->ends[p->first[b] + i]);
        if (different != 0)
            return different;
    }
    return 0;
}

/* Merge sort, because the comparison needs `p`, which qsort cannot pass. Equal vertices keep their
 * order.
 */
static void sort_vertices(const picture *p, uint32_t *order, uint32_t n, uint32_t *room)
{
    if (n < 2)
        return;
    const uint32_t half = n / 2;
    sort_vertices(p, order, half, room);
    sort_vertices(p, order + half, n - half, room);
    memcpy(room, order, n * sizeof(*room));
    for (uint32_t i = 0, a = 0, b = half; i < n; i++) {
        const bool left = b == n || (a < half && compare_vertices(p, room[a], room[b]) <= 0);
        order[i] = left ? room[a++] : room[b++];
    }
}

static void merge_vertices(picture *p, uint32_t *room)
{
    const uint32_t n = p->platform->n_vertices;
    list_ends(p, room);
    for (uint32_t v = 0; v < n; v++)
        p->order[v] = v;
    sort_vertices(p, p->order, n, room);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t v = p->order[i], before = i > 0 ? p->order[i - 1] : v;
        const bool alike = i > 0 && may_merge(p, v) && p->shown[v] && p->shown[before] &&
                           compare_vertices(p, before, v) == 0;
        p->box[v] = alike ? p->box[before] : v;
        p->size[v] = 0;
        p->size[p->box[v]]++;
        p->last[p->box[v]] = v;
    }
}

/* Whether the platform is a single node whose messages use only NVLinks: its PCIe switches are not
 * a network. */
static bool is_node(const picture *p)
{
    bool peers = false;
    for (uint32_t i = 0; i < p->platform->n_links; i++)
        peers = peers || p->platform->links[i].peer;
    return p->n_nodes == 0 && peers;
}

/* Hides parts of a network that no shown device uses. The rest is merged again, because it may have
 * become similar. */
static void leave_out_unused(picture *p, uint32_t *room)
{
    const uint32_t n = p->platform->n_vertices;
    merge_vertices(p, room);
    if (is_node(p))
        return;
    for (uint32_t v = 0; v < n; v++)
        p->used[p->box[v]] |= p->used[v];
    for (uint32_t v = 0; v < n; v++)
        if (p->node[v] == NONE && p->platform->vertices[v].kind == CS_VERTEX_SWITCH)
            p->shown[v] = p->shown[v] && p->used[p->box[v]];
    merge_vertices(p, room);
}

/* ---- lines ---- */

static int compare_edges(const void *left, const void *right)
{
    const edge *a = left, *b = right;
    CS_COMPARE(a->from, b->from);
    CS_COMPARE(a->to, b->to);
    if (a->peer != b->peer)
        return a->peer ? -1 : 1;
    CS_COMPARE(a->bandwidth, b->bandwidth);
    return 0;
}

/* Merges links between the same boxes into lines; n counts the links per vertex of the lower
 * box. */
static void count_edges(picture *p)
{
    const cs_platform *of = p->platform;
    uint32_t n = 0;
    for (uint32_t i = 0; i < of->n_links; i++) {
        const cs_link *link = &of->links[i];
        const uint32_t from = p->box[link->from], to = p->box[link->to];
        if (p->shown[link->from] && p->shown[link->to] && from != to)
            p->edges[n++] = (edge){from, to, 1, link->bandwidth, link->peer, false, false};
    }
    qsort(p->edges, n, sizeof(*p->edges), compare_edges);
    for (uint32_t i = 0; i < n; i++) {
        if (p->n_edges > 0 && compare_edges(&p->edges[p->n_edges - 1], &p->edges[i]) == 0)
            p->edges[p->n_edges - 1].n++;
        else
            p->edges[p->n_edges++] = p->edges[i];
    }
}

static void join_ways_back(picture *p)
{
    for (uint32_t i = 0; i < p->n_edges; i++) {
        edge *at = &p->edges[i], back = *at;
        back.from = at->to;
        back.to = at->from;
        edge *found = bsearch(&back, p->edges, p->n_edges, sizeof(back), compare_edges);
        if (found && found->n == at->n && !at->drawn_back)
            at->both = found->drawn_back = true;
        if (isfinite(at->bandwidth))
            p->most = fmax(p->most, at->n * at->bandwidth);
    }
}

/* ---- layers ---- */

/* Computes distances from the devices; switches with only peer links (NVSwitch) are below the
 * devices. */
static void find_layers(picture *p)
{
    const uint32_t n = p->platform->n_vertices;
    for (uint32_t v = 0; v < n; v++)
        p->layer[v] = is_device(p, v) ? 0 : INT32_MAX;
    for (uint32_t v = 0; v < n; v++) {
        bool peers = !is_device(p, v) && p->first[v + 1] > p->first[v];
        for (uint32_t i = p->first[v]; i < p->first[v + 1]; i++)
            peers = peers && p->ends[i].peer;
        if (peers && p->n_edges > 0)
            p->layer[v] = -1;
    }
    bool changed = true;
    for (int at = 0; changed; at++) {
        changed = false;
        for (uint32_t i = 0; i < p->n_edges; i++) {
            const edge *e = &p->edges[i];
            if (p->layer[e->from] == at && p->layer[e->to] == INT32_MAX) {
                p->layer[e->to] = at + 1;
                changed = true;
            }
        }
    }
    uint32_t level = 0, above = 0;
    for (uint32_t i = 0; i < p->n_edges; i++) {
        const edge *e = &p->edges[i];
        level += p->layer[e->from] == p->layer[e->to] && !e->peer;
        above += p->layer[e->from] != p->layer[e->to];
    }
    p->layered = above > 0 && level <= above;
}

/* ---- writing ---- */

/* Writes text for a label in HTML, or within Graphviz' quotes. */
static void put_text(const char *text, bool html, FILE *out)
{
    for (; *text; text++) {
        if (html && strchr("&<>\"", *text))
            fprintf(out, "&#%d;", *text);
        else if (!html && (*text == '"' || *text == '\\'))
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void put_box(const picture *p, uint32_t v, const char *indent, FILE *out)
{
    static const char *const looks[] = {
        "style=filled fillcolor=palegreen", "style=filled fillcolor=lightyellow",
        "style=\"rounded,filled\" fillcolor=white", "style=filled fillcolor=gray90"};
    fprintf(out, "%sv%" PRIu32 " [label=\"", indent, v);
    put_text(short_name(p, v), false, out);
    if (p->size[v] > 1) {
        fputs(p->size[v] > 2 ? " ...\\n" : ",\\n", out);
        put_text(short_name(p, p->last[v]), false, out);
        if (p->size[v] > 2)
            fprintf(out, " (%" PRIu32 ")", p->size[v]);
    }
    for (uint32_t i = p->first[v]; i < p->first[v + 1]; i++) {
        if (p->ends[i].other == NONE && p->ends[i].out)
            fprintf(out, "\\npasses %s",
                    cs_units_text(p->ends[i].bandwidth, CS_QUANTITY_BANDWIDTH, 4).s);
    }
    fprintf(out, "\" %s];\n", looks[p->platform->vertices[v].kind]);
}

static bool is_box(const picture *p, uint32_t v)
{
    return p->shown[v] && p->box[v] == v;
}

/* Puts each layer in a row; devices are in the order of their numbers. */
static void put_layers(const picture *p, FILE *out)
{
    const uint32_t n = p->platform->n_vertices;
    for (int layer = -1;; layer++) {
        uint32_t found = 0;
        for (uint32_t v = 0; v < n; v++) {
            if (!is_box(p, v) || p->layer[v] != layer)
                continue;
            fprintf(out, "%sv%" PRIu32,
                    found == 0   ? "  {rank=same; "
                    : layer == 0 ? " -> "
                                 : "; ",
                    v);
            found++;
        }
        if (found > 0)
            fprintf(out, "%s}\n", layer == 0 && found > 1 ? " [style=invis]" : "");
        else if (layer > 0)
            return;
    }
}

static double width_of(const picture *p, const edge *e)
{
    const double all = e->n * e->bandwidth, thickest = p->layered ? THICKEST : THIN;
    return isfinite(all) && p->most > 0 ? fmax(0.8, thickest * sqrt(all / p->most)) : thickest;
}

/* Length in inches, if Graphviz places boxes by distance: hosts close to their routers, groups
 * ("group2/router0") apart. */
static double length_of(const picture *p, const edge *e)
{
    const char *a = p->platform->vertices[e->from].name, *b = p->platform->vertices[e->to].name;
    if (p->layer[e->from] != p->layer[e->to])
        return 0.9;
    const char *slash = strchr(a, '/');
    return !slash || strncmp(a, b, (size_t)(slash - a) + 1) == 0 ? 1.1 : 2.5;
}

/* Kinds of lines; colours distinguish bandwidths. */
typedef struct sorts {
    edge kinds[LEGEND_MAX];
    uint32_t n;
    double bandwidths[COLOURS];
    uint32_t n_bandwidths;
} sorts;

static uint32_t colour_of(sorts *s, double bandwidth)
{
    static const uint32_t colours[COLOURS] = {0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7,
                                              0xE69F00, 0x56B4E9, 0x404040, 0x8B6914};
    uint32_t i = 0;
    while (i < s->n_bandwidths && s->bandwidths[i] != bandwidth)
        i++;
    if (i == s->n_bandwidths && i < COLOURS)
        s->bandwidths[s->n_bandwidths++] = bandwidth;
    return colours[i % COLOURS];
}

static void note_sort(sorts *s, const edge *e)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const edge *k = &s->kinds[i];
        if (k->n == e->n && k->bandwidth == e->bandwidth && k->peer == e->peer &&
            k->both == e->both)
            return;
    }
    if (s->n < LEGEND_MAX)
        s->kinds[s->n++] = *e;
}

static void put_legend(const picture *p, sorts *s, FILE *out)
{
    fputs("  label=<<b>", out);
    put_text(p->platform->topology, true, out);
    fprintf(out, "</b>, %" PRIu32 " devices<br align=\"left\"/>", p->platform->n_devices);
    for (uint32_t i = 0; i < s->n; i++) {
        const edge *e = &s->kinds[i];
        fprintf(out, "<font color=\"#%06" PRIX32 "\">&#9473;&#9473;&#9473;</font>&#160;",
                colour_of(s, e->bandwidth));
        if (e->n > 1)
            fprintf(out, "%" PRIu32 " links of ", e->n);
        fprintf(out, "%s%s%s<br align=\"left\"/>",
                cs_units_text(e->bandwidth, CS_QUANTITY_BANDWIDTH, 4).s, e->both ? " each way" : "",
                e->peer ? ", peer" : "");
    }
    uint32_t n = 0;
    for (uint32_t v = 0; v < p->platform->n_vertices; v++)
        n += !p->shown[v] && p->node[v] == NONE;
    if (p->n_nodes > SHOWN_NODES)
        fprintf(out, "%" PRIu32 " more nodes like these<br align=\"left\"/>",
                p->n_nodes - SHOWN_NODES);
    if (n > 0)
        fprintf(out,
                "not drawn: %" PRIu32 " switches that no route between these devices uses"
                "<br align=\"left\"/>",
                n);
    fputs(">;\n", out);
}

static void put_picture(const picture *p, FILE *out)
{
    sorts s = {0};
    fputs("digraph platform {\n  graph [fontname=Helvetica fontsize=10 labeljust=l", out);
    if (p->layered)
        fputs(" newrank=true nodesep=0.12 ranksep=0.55];\n", out);
    else
        fputs(" layout=neato overlap=prism splines=line sep=\"+4\" outputorder=edgesfirst];\n",
              out);
    fputs("  node [fontname=Helvetica fontsize=10 shape=box width=0.3 height=0.25 "
          "margin=\"0.05,0.03\"];\n  edge [arrowsize=0.5];\n",
          out);
    /* First the nodes of a cluster, in frames, then the rest. */
    const uint32_t n = p->platform->n_vertices;
    for (uint32_t node = 0; node < p->n_nodes && node < SHOWN_NODES; node++) {
        fprintf(out,
                "  subgraph cluster%" PRIu32 " {\n    label=\"node%" PRIu32
                "\"; labeljust=l; color=gray60; style=rounded;\n",
                node, node);
        for (uint32_t v = 0; v < n; v++)
            if (is_box(p, v) && p->node[v] == node)
                put_box(p, v, "    ", out);
        fputs("  }\n", out);
    }
    for (uint32_t v = 0; v < n; v++)
        if (is_box(p, v) && p->node[v] == NONE)
            put_box(p, v, "  ", out);
    if (p->layered)
        put_layers(p, out);
    /* Lines point downwards, so that Graphviz puts the upper layer above. */
    for (uint32_t i = 0; i < p->n_edges; i++) {
        const edge *e = &p->edges[i];
        if (e->drawn_back)
            continue;
        const bool turned = p->layer[e->from] < p->layer[e->to];
        fprintf(out, "  v%" PRIu32 " -> v%" PRIu32 " [color=\"#%06" PRIX32 "\" penwidth=%.1f%s",
                turned ? e->to : e->from, turned ? e->from : e->to, colour_of(&s, e->bandwidth),
                width_of(p, e),
                e->both  ? " dir=none"
                : turned ? " dir=back"
                         : "");
        if (!p->layered)
            fprintf(out, " len=%.1f", length_of(p, e));
        fputs("];\n", out);
        note_sort(&s, e);
    }
    put_legend(p, &s, out);
    fputs("}\n", out);
}

static bool make_room(picture *p, uint32_t **room)
{
    const size_t n = p->platform->n_vertices, m = p->platform->n_links;
    p->node = cs_arena_alloc(&p->arena, n, sizeof(*p->node));
    p->shown = cs_arena_alloc(&p->arena, n, sizeof(*p->shown));
    p->used = cs_arena_alloc(&p->arena, n, sizeof(*p->used));
    p->first = cs_arena_alloc(&p->arena, n + 1, sizeof(*p->first));
    p->ends = cs_arena_alloc(&p->arena, 2 * m + 1, sizeof(*p->ends));
    p->order = cs_arena_alloc(&p->arena, n, sizeof(*p->order));
    p->box = cs_arena_alloc(&p->arena, n, sizeof(*p->box));
    p->last = cs_arena_alloc(&p->arena, n, sizeof(*p->last));
    p->size = cs_arena_alloc(&p->arena, n, sizeof(*p->size));
    p->layer = cs_arena_alloc(&p->arena, n, sizeof(*p->layer));
    p->edges = cs_arena_alloc(&p->arena, m + 1, sizeof(*p->edges));
    *room = cs_arena_alloc(&p->arena, n, sizeof(**room));
    return p->node && p->shown && p->used && p->first && p->ends && p->order && p->box && p->last &&
           p->size && p->layer && p->edges && *room;
}

cs_status cs_platform_dot(const cs_platform *platform, FILE *out, cs_error *error)
{
    picture p = {.platform = platform};
    uint32_t *room;
    cs_arena_init(&p.arena);
    cs_status status = make_room(&p, &room) ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        for (uint32_t v = 0; v < p.platform->n_vertices; v++) {
            unsigned node;
            int length = 0;
            p.node[v] =
                sscanf(p.platform->vertices[v].name, "node%u/%n", &node, &length) == 1 && length > 0
                    ? node
                    : NONE;
            if (p.node[v] != NONE && p.node[v] >= p.n_nodes)
                p.n_nodes = p.node[v] + 1;
            p.shown[v] = p.node[v] == NONE || p.node[v] < SHOWN_NODES;
            p.n_devices += p.shown[v] && is_device(&p, v);
        }
        status = mark_routes(&p, error);
    }
    if (status == CS_OK) {
        leave_out_unused(&p, room);
        count_edges(&p);
        join_ways_back(&p);
        find_layers(&p);
        put_picture(&p, out);
        if (ferror(out))
            status = cs_error_add(error, CS_IO, "cannot write the picture");
    }
    cs_arena_finish(&p.arena);
    return status;
}

#include "sim/run/link-use.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>

typedef struct row {
    int64_t start, end; /* ps */
    double bytes, utilisation;
    uint32_t link;
} row;

typedef struct link_use {
    const cs_platform *platform;
    const cs_graph *graph;
    const cs_trace *trace;
    uint32_t chosen[CS_LINK_USE_LINKS], n_chosen; /* links, in order of traffic */
    uint32_t *place;                              /* per link: its index in `chosen`, or CS_NONE */
    uint32_t *first;                              /* per class: its first entry in `taken`; one more
                                                   * at the end */
    uint32_t *taken, n_taken, cap_taken;          /* indices in `chosen` of the links on a class's
                                                   * route */
    uint32_t *route;                              /* buffer for one route */
    double *bytes;                                /* per chosen link and interval */
} link_use;

/* ---- choosing links ---- */

typedef struct carried {
    int64_t bytes;
    uint32_t link;
} carried;

static int by_bytes(const void *a, const void *b)
{
    const carried *x = a, *y = b;
    CS_COMPARE(y->bytes, x->bytes);
    CS_COMPARE(x->link, y->link);
    return 0;
}

static bool choose_links(link_use *use)
{
    const cs_trace *trace = use->trace;
    carried *all = malloc(((size_t)trace->n_links + 1) * sizeof(*all));
    use->place = malloc(((size_t)trace->n_links + 1) * sizeof(*use->place));
    if (!all || !use->place) {
        free(all);
        return false;
    }
    for (uint32_t l = 0; l < trace->n_links; l++) {
        all[l] = (carried){isfinite(trace->links[l].bandwidth) ? trace->links[l].bytes : 0, l};
        use->place[l] = CS_NONE;
    }
    qsort(all, trace->n_links, sizeof(*all), by_bytes);
    for (uint32_t i = 0; i < trace->n_links && i < CS_LINK_USE_LINKS && all[i].bytes > 0; i++) {
        use->place[all[i].link] = use->n_chosen;
        use->chosen[use->n_chosen++] = all[i].link;
    }
    free(all);
    return true;
}

/* ---- traffic ---- */

/* Spreads bytes over [start, end), which are in intervals. */
static void spread(double start, double end, double bytes, double *parts)
{
    for (uint32_t part = (uint32_t)start; part < CS_LINK_USE_PARTS && start < end; part++) {
        const double until = fmin(end, part + 1);
        parts[part] += bytes * (until - start);
        start = until;
    }
}

/* Excludes collectives that became delays, which use no links. */
static bool is_message(const cs_class *cls)
{
    return cls->kind == CS_TRANSFER && cls->ranks == 0 && cls->bytes > 0;
}

/* Lists the chosen links on the route of a class of messages. */
static cs_status find_places(link_use *use, const cs_class *cls, cs_error *error)
{
    cs_route route;
    CS_TRY(cs_route_find(use->platform, cls->device, cls->peer, use->route, &route, error));
    if (!cs_vector_reserve((void **)&use->taken, &use->cap_taken, use->n_taken + (uint64_t)route.n,
                           sizeof(*use->taken)))
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < route.n; i++)
        if (use->place[route.links[i]] != CS_NONE)
            use->taken[use->n_taken++] = use->place[route.links[i]];
    return CS_OK;
}

static cs_status find_all_places(link_use *use, cs_error *error)
{
    const cs_graph *graph = use->graph;
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < graph->n_classes && status == CS_OK; i++) {
        use->first[i] = use->n_taken;
        if (is_message(&graph->classes[i]))
            status = find_places(use, &graph->classes[i], error);
    }
    use->first[graph->n_classes] = use->n_taken;
    return status;
}

/* ---- the table ---- */

static int64_t border(const link_use *use, uint32_t part)
{
    return (int64_t)((__int128)use->trace->makespan * part / CS_LINK_USE_PARTS);
}

static uint64_t list_rows(const link_use *use, row *rows)
{
    uint64_t n = 0;
    const double seconds = cs_time_seconds(use->trace->makespan) / CS_LINK_USE_PARTS;
    for (uint32_t place = 0; place < use->n_chosen; place++) {
        const double bandwidth = use->trace->links[use->chosen[place]].bandwidth;
        for (uint32_t part = 0; part < CS_LINK_USE_PARTS; part++) {
            const double bytes = use->bytes[(size_t)place * CS_LINK_USE_PARTS + part];
            if (bytes > 0)
                rows[n++] = (row){border(use, part), border(use, part + 1), bytes,
                                  bytes / (bandwidth * seconds), use->chosen[place]};
        }
    }
    return n;
}

static const cs_h5_column columns[] = {
    {"row", CS_H5_UINT32, "1", "number of the row", .fill = cs_h5_row_numbers},
    {"link", CS_H5_UINT32, "1", "number of the link, see /links", .which = offsetof(row, link)},
    {"start", CS_H5_INT64, "ps", "start of the interval", .which = offsetof(row, start)},
    {"end", CS_H5_INT64, "ps", "end of the interval", .which = offsetof(row, end)},
    {"bytes", CS_H5_DOUBLE, "bytes", "carried in the interval", .which = offsetof(row, bytes)},
    {"utilisation", CS_H5_DOUBLE, "1", "bytes / (bandwidth * length of the interval)",
     .which = offsetof(row, utilisation)},
    {0},
};

static cs_status store(const link_use *use, cs_h5_file *file, cs_error *error)
{
    row *rows = malloc(((size_t)use->n_chosen * CS_LINK_USE_PARTS + 1) * sizeof(*rows));
    if (!rows)
        return cs_error_no_memory(error);
    const cs_h5_table table = {"link_use",           "row", columns,
                               list_rows(use, rows), rows,  .row_size = sizeof(*rows)};
    const cs_status status = cs_h5_write_table(file, &table, error);
    free(rows);
    return status;
}

cs_status cs_link_use_store(cs_h5_file *file, const cs_platform *platform, const cs_graph *graph,
                            const cs_trace *trace, cs_error *error)
{
    link_use use = {.platform = platform, .graph = graph, .trace = trace};
    const bool known = !graph->stands_for && trace->makespan > 0;
    bool room = !known || choose_links(&use);
    use.bytes = calloc((size_t)use.n_chosen * CS_LINK_USE_PARTS + 1, sizeof(*use.bytes));
    use.first = malloc(((size_t)graph->n_classes + 1) * sizeof(*use.first));
    use.route = malloc(((size_t)platform->longest_route + 1) * sizeof(*use.route));
    room = room && use.bytes && use.first && use.route;
    cs_status status = room ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK && use.n_chosen > 0) {
        status = find_all_places(&use, error);
        if (status == CS_OK) {
            const double scale = CS_LINK_USE_PARTS / (double)use.trace->makespan;
            for (uint32_t task = 0; task < use.graph->n_tasks; task++) {
                const uint32_t cls = use.graph->tasks[task].cls;
                const cs_span span = use.trace->spans[task];
                if (use.first[cls] == use.first[cls + 1] || span.start < 0 ||
                    span.end <= span.start)
                    continue;
                const double start = (double)span.start * scale, end = (double)span.end * scale;
                const double rate = (double)use.graph->classes[cls].bytes / (end - start);
                for (uint32_t i = use.first[cls]; i < use.first[cls + 1]; i++)
                    spread(start, end, rate, use.bytes + (size_t)use.taken[i] * CS_LINK_USE_PARTS);
            }
        }
    }
    if (status == CS_OK)
        status = store(&use, file, error);
    free(use.place);
    free(use.first);
    free(use.taken);
    free(use.bytes);
    free(use.route);
    return status;
}

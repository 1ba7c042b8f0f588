#include "sim/engine/queues.h"

#include <stdlib.h>

/* Links that messages connect, and what is known of the classes on them. */
typedef struct component {
    uint32_t first;   /* 1 + a class; 0: there is none */
    uint32_t last;    /* task, or CS_NONE */
    bool one_stream;  /* all classes are of one */
    bool one_latency; /* all have the same */
    bool all_take_time;
    bool all_wait; /* latencies are above 0 */
    bool all_collective;
    bool chained; /* each task leads to the next one by an edge */
} component;

typedef struct search {
    const cs_graph *graph;
    const cs_queue_class *classes;
    uint32_t *parent;      /* per link: towards the one that stands for the component */
    component *components; /* per link, of those that stand for one */
} search;

static uint32_t root_of(uint32_t *parent, uint32_t link)
{
    while (parent[link] != link)
        link = parent[link] = parent[parent[link]];
    return link;
}

static void connect(search *s, uint32_t n_links)
{
    for (uint32_t link = 0; link < n_links; link++)
        s->parent[link] = link;
    for (uint32_t i = 0; i < s->graph->n_classes; i++) {
        const cs_queue_class *of = &s->classes[i];
        for (uint32_t l = 1; l < of->n; l++)
            s->parent[root_of(s->parent, of->links[l])] = root_of(s->parent, of->links[0]);
    }
}

/* Of a class that competes. */
static component *component_of(const search *s, uint32_t cls)
{
    return &s->components[root_of(s->parent, s->classes[cls].links[0])];
}

static void gather(search *s)
{
    for (uint32_t i = 0; i < s->graph->n_classes; i++) {
        const cs_queue_class *of = &s->classes[i];
        if (of->n == 0)
            continue;
        component *in = component_of(s, i);
        if (in->first == 0)
            *in = (component){i + 1, CS_NONE, of->stream != CS_NONE, true, true, true, true, true};
        const cs_queue_class *first = &s->classes[in->first - 1];
        in->one_stream &= of->stream == first->stream;
        in->one_latency &= of->latency == first->latency;
        in->all_take_time &= of->bytes > 0;
        in->all_wait &= of->latency > 0;
        in->all_collective &= of->collective;
    }
}

static bool leads_to(const cs_graph *graph, uint32_t task, uint32_t other)
{
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(graph, task, &n);
    for (uint32_t i = 0; i < n; i++)
        if (successors[i] == other)
            return true;
    return false;
}

/* Finds the components in which a message does not wait for the one before it. */
static void follow(search *s)
{
    for (uint32_t task = 0; task < s->graph->n_tasks; task++) {
        const uint32_t cls = s->graph->tasks[task].cls;
        component *in = s->classes[cls].n > 0 ? component_of(s, cls) : NULL;
        if (!in || !in->chained)
            continue;
        in->chained = in->last == CS_NONE || leads_to(s->graph, in->last, task);
        in->last = task;
    }
}

static cs_known known_of(const search *s, uint32_t cls, bool every_link)
{
    const cs_queue_class *of = &s->classes[cls];
    if (of->n == 0)
        return CS_KNOWN_LATER;
    const component *in = component_of(s, cls);
    if (!in->all_take_time)
        return CS_KNOWN_LATER;
    if (!every_link && !in->one_stream && !in->chained)
        return in->all_wait && !in->all_collective ? CS_KNOWN_IF_ALONE : CS_KNOWN_LATER;
    const bool in_order = in->one_latency || (in->chained && !every_link);
    return in_order && of->latency > 0 ? CS_KNOWN_AT_START : CS_KNOWN_AT_LINKS;
}

bool cs_queues_find(const cs_graph *graph, const cs_queue_class *classes, uint32_t n_links,
                    bool every_link, uint8_t *known)
{
    const size_t links = (size_t)n_links + 1;
    search s = {.graph = graph,
                .classes = classes,
                .parent = malloc(links * sizeof(*s.parent)),
                .components = calloc(links, sizeof(*s.components))};
    const bool enough = s.parent && s.components;
    if (enough) {
        connect(&s, n_links);
        gather(&s);
        if (!every_link)
            follow(&s);
        for (uint32_t i = 0; i < graph->n_classes; i++)
            known[i] = (uint8_t)known_of(&s, i, every_link);
    }
    free(s.parent);
    free(s.components);
    return enough;
}

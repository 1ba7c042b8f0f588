#include "sim/core/engine/queues.h"

#include <stdlib.h>

/* Messages one after the other, as far as each waits for the one before. */
typedef struct chain {
    uint32_t last; /* 1 + a task; 0: there is none yet */
    bool broken;
} chain;

/* Links that messages connect, and what is known of the classes on them. */
typedef struct component {
    uint32_t first; /* 1 + a class; 0: there is none */
    uint32_t n_classes;
    bool one_stream;  /* all classes are of one */
    bool one_latency; /* all have the same */
    bool all_take_time;
    bool all_wait; /* latencies are above 0 */
    bool all_collective;
    chain all; /* of several classes: all messages */
} component;

typedef struct search {
    const cs_graph *graph;
    const cs_queue_class *classes;
    uint32_t *parent;      /* per link: towards the one that stands for the component */
    component *components; /* per link, of those that stand for one */
    component **in;        /* per class; NULL: it takes no link */
    chain *chains;         /* per class */
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

static void gather(search *s)
{
    for (uint32_t i = 0; i < s->graph->n_classes; i++) {
        const cs_queue_class *of = &s->classes[i];
        if (of->n == 0)
            continue;
        component *in = s->in[i] = &s->components[root_of(s->parent, of->links[0])];
        if (in->first == 0)
            *in = (component){i + 1, 0, of->stream != CS_NONE, true, true, true, true, {0}};
        const cs_queue_class *first = &s->classes[in->first - 1];
        in->n_classes++;
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

static void extend(const cs_graph *graph, chain *of, uint32_t task)
{
    if (of->broken)
        return;
    of->broken = of->last > 0 && !leads_to(graph, of->last - 1, task);
    of->last = task + 1;
}

/* Finds the classes in which a message does not wait for the one before it. */
static void follow_classes(search *s)
{
    for (uint32_t task = 0; task < s->graph->n_tasks; task++) {
        const uint32_t cls = s->graph->tasks[task].cls;
        if (s->in[cls])
            extend(s->graph, &s->chains[cls], task);
    }
}

/* The same for components of several classes; most of them break early. */
static void follow_components(search *s)
{
    uint32_t n_left = 0;
    for (uint32_t i = 0; i < s->graph->n_classes; i++)
        n_left += s->in[i] && s->in[i]->n_classes > 1 && s->in[i]->first == i + 1;
    for (uint32_t task = 0; task < s->graph->n_tasks && n_left > 0; task++) {
        component *in = s->in[s->graph->tasks[task].cls];
        if (!in || in->n_classes == 1 || in->all.broken)
            continue;
        extend(s->graph, &in->all, task);
        n_left -= in->all.broken;
    }
}

static bool is_chained(const search *s, const component *in)
{
    return in->n_classes == 1 ? !s->chains[in->first - 1].broken : !in->all.broken;
}

/* A link is serial as long as one class is found on it, and that one is chained. */
static bool find_serial(const search *s, uint32_t n_links, bool *serial)
{
    bool *taken = calloc((size_t)n_links + 1, sizeof(*taken));
    for (uint32_t i = 0; taken && i < s->graph->n_classes; i++)
        for (uint32_t l = 0; l < s->classes[i].n; l++) {
            const uint32_t link = s->classes[i].links[l];
            serial[link] = !taken[link] && !s->chains[i].broken;
            taken[link] = true;
        }
    free(taken);
    return taken != NULL;
}

static cs_known known_of(const search *s, uint32_t cls, bool every_link)
{
    const cs_queue_class *of = &s->classes[cls];
    if (of->n == 0)
        return CS_KNOWN_LATER;
    const component *in = s->in[cls];
    if (!in->all_take_time)
        return CS_KNOWN_LATER;
    const bool chained = !every_link && is_chained(s, in);
    if (!every_link && !in->one_stream && !chained)
        return in->all_wait && !in->all_collective ? CS_KNOWN_IF_ALONE : CS_KNOWN_LATER;
    if (chained && of->latency > 0)
        return CS_KNOWN_ALWAYS;
    return in->one_latency && of->latency > 0 ? CS_KNOWN_AT_START : CS_KNOWN_AT_LINKS;
}

bool cs_queues_find(const cs_graph *graph, const cs_queue_class *classes, uint32_t n_links,
                    bool every_link, uint8_t *known, bool *serial)
{
    const size_t links = (size_t)n_links + 1;
    search s = {.graph = graph,
                .classes = classes,
                .parent = malloc(links * sizeof(*s.parent)),
                .components = calloc(links, sizeof(*s.components)),
                .in = calloc((size_t)graph->n_classes + 1, sizeof(*s.in)),
                .chains = calloc((size_t)graph->n_classes + 1, sizeof(*s.chains))};
    bool enough = s.parent && s.components && s.in && s.chains;
    if (enough) {
        connect(&s, n_links);
        gather(&s);
        if (!every_link) {
            follow_classes(&s);
            follow_components(&s);
        }
        for (uint32_t i = 0; i < graph->n_classes; i++)
            known[i] = (uint8_t)known_of(&s, i, every_link);
        enough = every_link || find_serial(&s, n_links, serial);
    }
    free(s.parent);
    free(s.components);
    free(s.in);
    free(s.chains);
    return enough;
}

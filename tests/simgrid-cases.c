/* Writes cases for simgrid-check.cpp, with the results of our engine: simgrid-cases SEED
 *
 *     link BANDWIDTH                         numbered from 0
 *     flow FROM TO BYTES START END LINK ...  START and END in s, END by our engine
 *
 * Even seeds: flows of one size that begin together. Odd seeds: different sizes and starts.
 */
#include "sim/base/random.h"
#include "sim/core/engine/engine.h"
#include "sim/core/graph/builder.h"
#include "topologies/topology.h"

#include <gsl/gsl_rng.h>
#include <inttypes.h>
#include <stdlib.h>

enum { MOST_FLOWS = 400, MOST_ROUTE = 64 };

static const struct {
    const char *text;
    uint32_t n_devices;
} platforms[] = {
    {"{\"topology\":\"fat_tree\",\"levels\":3,\"radix\":8,\"oversubscription\":[3,1],"
     "\"bandwidth\":1e9,\"routing\":\"ecmp\"}",
     64},
    {"{\"topology\":\"torus\",\"shape\":[4,4],\"bandwidth\":3e9}", 16},
    {"{\"topology\":\"dragonfly\",\"routers\":4,\"hosts\":2,\"global_links\":2,"
     "\"bandwidth\":1e9,\"global_bandwidth\":7e8}",
     64},
    {"{\"topology\":\"pcie_tree\",\"socket_bandwidth\":\"5 GB/s\"}", 8},
    {"{\"topology\":\"dgx1\"}", 8},
};

typedef struct job {
    cs_platform platform;
    cs_graph graph;
    cs_trace trace;
    uint32_t n;
    uint32_t tasks[MOST_FLOWS];
} job;

/* A flow that begins later waits for a delay from a device to itself. */
static void add_flow(job *j, cs_builder *builder, gsl_rng *random, bool even)
{
    const uint32_t n = j->platform.n_devices;
    const uint32_t from = (uint32_t)gsl_rng_uniform_int(random, n);
    const uint32_t to = (from + 1 + (uint32_t)gsl_rng_uniform_int(random, n - 1)) % n;
    const int64_t bytes = even ? 1000000000 : 1 + (int64_t)gsl_rng_uniform_int(random, 2000000000);
    const cs_time start =
        even ? 0 : (cs_time)gsl_rng_uniform_int(random, 1000) * CS_PS_PER_SEC / 1000;
    const cs_class delay = {.kind = CS_TRANSFER,
                            .origin = CS_TRANSFER,
                            .device = from,
                            .peer = from,
                            .weights = UINT32_MAX,
                            .duration = start};
    const uint32_t before = cs_builder_task(builder, cs_builder_class(builder, &delay), 0);
    j->tasks[j->n] =
        cs_builder_task(builder, cs_builder_transfer(builder, 0, from, to, bytes, false), 0);
    cs_builder_edge(builder, before, j->tasks[j->n++]);
}

static cs_status simulate(job *j, uint64_t seed, cs_error *error)
{
    const size_t p = seed / 2 % (sizeof(platforms) / sizeof(platforms[0]));
    cs_status status = cs_topology_build_text("case", platforms[p].text, platforms[p].n_devices,
                                              &j->platform, error);
    if (status != CS_OK)
        return status;
    j->platform.sharing = CS_SHARING_MAX_MIN;
    j->platform.independent_messages = true; /* as SimGrid's are */
    gsl_rng *random = cs_random_stream(seed, "simgrid");
    cs_builder *builder = cs_builder_create(j->platform.n_devices, 1, 1, 1);
    if (!random || !builder)
        return cs_error_no_memory(error);
    const uint32_t n = 2 + (uint32_t)gsl_rng_uniform_int(random, MOST_FLOWS - 2);
    while (j->n < n)
        add_flow(j, builder, random, seed % 2 == 0);
    status = cs_builder_finish(builder, &j->graph, error);
    cs_builder_destroy(builder);
    gsl_rng_free(random);
    if (status == CS_OK)
        status = cs_engine_run(&j->graph, &j->platform, &(cs_engine_options){0}, &j->trace, error);
    return status;
}

static void print(const job *j)
{
    uint32_t links[MOST_ROUTE];
    for (uint32_t l = 0; l < j->platform.n_links; l++)
        printf("link %.17g\n", j->platform.links[l].bandwidth);
    for (uint32_t i = 0; i < j->n; i++) {
        const cs_class *cls = cs_graph_class(&j->graph, j->tasks[i]);
        const cs_span span = j->trace.spans[j->tasks[i]];
        printf("flow %" PRIu32 " %" PRIu32 " %" PRId64 " %.17g %.17g", cls->device, cls->peer,
               cls->bytes, cs_time_seconds(span.start), cs_time_seconds(span.end));
        const uint32_t n = j->platform.route(&j->platform, cls->device, cls->peer, links);
        for (uint32_t k = 0; k < n; k++)
            printf(" %" PRIu32, links[k]);
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    static job j;
    cs_error error;
    cs_error_init(&error);
    const cs_status status = simulate(&j, argc > 1 ? strtoull(argv[1], NULL, 10) : 1, &error);
    if (status == CS_OK)
        print(&j);
    else
        fprintf(stderr, "%s\n", error.text);
    cs_trace_finish(&j.trace);
    cs_graph_finish(&j.graph);
    cs_platform_finish(&j.platform);
    return status == CS_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The solver of shares under load: bench-network FLOWS [HOSTS], or bench-network ring HOSTS
 *
 * As many transfers between random hosts of a three-level fat-tree (1:2 oversubscribed at the
 * leaves), all starting at once, with sizes that differ, so that every end changes the rates of
 * others. Or a ring all-reduce over hosts of a two-level fat-tree in random order, its chunks of
 * unequal sizes, so that ranks drift apart and nearly every event is alone. Prints how long it took
 * and a hash of the results, by which a change of answers is seen.
 */
#include "sim/base/random.h"
#include "sim/engine/engine.h"
#include "sim/graph/builder.h"
#include "topologies/topology.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char fat_tree[] = "{\"topology\": \"fat_tree\", \"levels\": 3, \"radix\": 24, "
                               "\"oversubscription\": [2, 1], \"bandwidth\": 12500000000}";
static const char two_levels[] =
    "{\"topology\": \"fat_tree\", \"levels\": 2, \"radix\": 32, \"oversubscription\": 7, "
    "\"bandwidth\": 12500000000, \"latency\": 1e-6}";

static cs_status make_graph(uint32_t n_flows, uint32_t n_hosts, cs_graph *graph, cs_error *error)
{
    gsl_rng *random = cs_random_stream(1, "flows");
    cs_builder *builder = cs_builder_create(n_hosts, 1, 1, 1);
    if (!random || !builder)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n_flows; i++) {
        const uint32_t from = (uint32_t)gsl_rng_uniform_int(random, n_hosts);
        const uint32_t to = (uint32_t)gsl_rng_uniform_int(random, n_hosts);
        const int64_t bytes = 1000000 + (int64_t)gsl_rng_uniform_int(random, 1000000);
        cs_builder_task(builder, cs_builder_transfer(builder, 0, from, to, bytes, false), 0);
    }
    const cs_status status = cs_builder_finish(builder, graph, error);
    cs_builder_destroy(builder);
    gsl_rng_free(random);
    return status;
}

/* The message of chunk c, of 100 MB on average over the hosts, from a host to the next one. */
static uint32_t add_step(cs_builder *builder, const uint32_t *hosts, const int64_t *chunks,
                         uint32_t n, uint32_t rank, uint32_t step)
{
    const cs_class cls = {.kind = CS_TRANSFER,
                          .origin = CS_ALL_REDUCE,
                          .device = hosts[rank],
                          .peer = hosts[(rank + 1) % n],
                          .weights = CS_NONE,
                          .bytes = chunks[(rank + 2 * n - step) % n]};
    return cs_builder_task(builder, cs_builder_class(builder, &cls), 0);
}

/* In each of 2 (n - 1) steps a rank sends on what it has received, once it has sent what came
 * before. */
static cs_status make_ring(uint32_t n, cs_graph *graph, cs_error *error)
{
    gsl_rng *random = cs_random_stream(1, "ring");
    cs_builder *builder = cs_builder_create(n, 1, 1, 1);
    uint32_t *hosts = malloc(n * sizeof(*hosts)), *before = malloc(2 * n * sizeof(*before));
    int64_t *chunks = malloc(n * sizeof(*chunks));
    if (!random || !builder || !hosts || !before || !chunks)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++) {
        hosts[i] = i;
        chunks[i] = 1 + (int64_t)gsl_rng_uniform_int(random, 200000000 / n);
    }
    gsl_ran_shuffle(random, hosts, n, sizeof(*hosts));
    for (uint32_t step = 0; step < 2 * (n - 1); step++)
        for (uint32_t rank = 0; rank < n; rank++) {
            uint32_t *last = before + (step % 2 == 0 ? n : 0);
            const uint32_t made = add_step(builder, hosts, chunks, n, rank, step);
            if (step > 0) {
                cs_builder_edge(builder, last[rank], made);
                cs_builder_edge(builder, last[(rank + n - 1) % n], made);
            }
            before[(step % 2 == 0 ? 0 : n) + rank] = made;
        }
    const cs_status status = cs_builder_finish(builder, graph, error);
    cs_builder_destroy(builder);
    gsl_rng_free(random);
    free(hosts);
    free(before);
    free(chunks);
    return status;
}

/* Of a ring, n_flows is 0. */
static cs_status run(uint32_t n_flows, uint32_t n_hosts, cs_error *error)
{
    cs_platform platform = {0};
    cs_graph graph = {0};
    cs_trace trace = {0};
    const bool ring = n_flows == 0;
    cs_status status =
        cs_topology_preset("bench", ring ? two_levels : fat_tree, n_hosts, &platform, error);
    if (status == CS_OK)
        status =
            ring ? make_ring(n_hosts, &graph, error) : make_graph(n_flows, n_hosts, &graph, error);
    platform.sharing = CS_SHARING_MAX_MIN;
    platform.independent_messages = true;
    n_flows = graph.n_tasks;
    const clock_t start = clock();
    if (status == CS_OK)
        status = cs_engine_run(&graph, &platform, &(cs_engine_options){0}, &trace, error);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (status == CS_OK)
        printf("%s%" PRIu32 " flows, %" PRIu32 " hosts: %.3f s, %.1f us per flow, makespan %" PRId64
               " ps, hash %016" PRIx64 "\n",
               ring ? "ring, " : "", n_flows, n_hosts, seconds, 1e6 * seconds / n_flows,
               trace.makespan, cs_trace_hash(&trace));
    cs_trace_finish(&trace);
    cs_graph_finish(&graph);
    cs_platform_finish(&platform);
    return status;
}

int main(int argc, char **argv)
{
    cs_error error;
    cs_error_init(&error);
    const bool ring = argc > 1 && strcmp(argv[1], "ring") == 0;
    const uint32_t flows = ring ? 0 : argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1024;
    const uint32_t hosts = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1024;
    if (run(flows, hosts, &error) == CS_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "%s\n", error.text);
    return EXIT_FAILURE;
}

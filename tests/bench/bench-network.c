/* The solver of shares under load: bench-network FLOWS [HOSTS]
 *
 * As many transfers between random hosts of a three-level fat-tree (1:2 oversubscribed at the
 * leaves), all starting at once, with sizes that differ, so that every end changes the rates of
 * others. Prints how long it took and a hash of the results, by which a change of answers is seen.
 */
#include "sim/base/random.h"
#include "sim/engine/engine.h"
#include "sim/graph/builder.h"
#include "topologies/topology.h"

#include <gsl/gsl_rng.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

static const char fat_tree[] = "{\"topology\": \"fat_tree\", \"levels\": 3, \"radix\": 24, "
                               "\"oversubscription\": [2, 1], \"bandwidth\": 12500000000}";

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

static cs_status run(uint32_t n_flows, uint32_t n_hosts, cs_error *error)
{
    cs_platform platform = {0};
    cs_graph graph = {0};
    cs_trace trace = {0};
    cs_status status = cs_topology_preset("bench", fat_tree, n_hosts, &platform, error);
    if (status == CS_OK)
        status = make_graph(n_flows, n_hosts, &graph, error);
    platform.sharing = CS_SHARING_MAX_MIN;
    const clock_t start = clock();
    if (status == CS_OK)
        status = cs_engine_run(&graph, &platform, &(cs_engine_options){0}, &trace, error);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (status == CS_OK)
        printf("%" PRIu32 " flows, %" PRIu32 " hosts: %.3f s, %.1f us per flow, makespan %" PRId64
               " ps, hash %016" PRIx64 "\n",
               n_flows, n_hosts, seconds, 1e6 * seconds / n_flows, trace.makespan,
               cs_trace_hash(&trace));
    cs_trace_finish(&trace);
    cs_graph_finish(&graph);
    cs_platform_finish(&platform);
    return status;
}

int main(int argc, char **argv)
{
    cs_error error;
    cs_error_init(&error);
    const uint32_t flows = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1024;
    const uint32_t hosts = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1024;
    if (run(flows, hosts, &error) == CS_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "%s\n", error.text);
    return EXIT_FAILURE;
}

/* The solver of shares under load: bench-network FLOWS [HOSTS], or
 * bench-network ring|delay HOSTS [drift|full|strided|random [STEPS]]
 *
 * FLOWS transfers between random hosts of a three-level fat-tree (1:2 oversubscribed at the
 * leaves), all starting at once, with sizes that differ, so that every end changes the rates of
 * others.
 *
 * Or a ring all-reduce of 100 MB over hosts of a two-level fat-tree; of its 2 (HOSTS - 1) steps the
 * first STEPS. Its ranks
 *   drift    apart: hosts in random order, chunks of unequal sizes, 1:7 oversubscribed, so that
 *            nearly every event is alone
 *   or stay in step, with equal chunks:
 *   full     hosts in order, full bisection: no two messages share a link
 *   strided  neighbours are on different leaves, 1:3 oversubscribed
 *   random   hosts in random order, full bisection
 * With "delay" instead of "ring" the whole all-reduce is one delay (the fidelity analytic) on these
 * hosts: lowered and run, the shortest of 20 times.
 *
 * Prints the time and a hash of the results, to detect changed answers.
 */
#include "sim/base/random.h"
#include "sim/core/engine/engine.h"
#include "sim/core/graph/builder.h"
#include "sim/core/lower/lower.h"
#include "topologies/topology.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char fat_tree[] = "{\"topology\": \"fat_tree\", \"levels\": 3, \"radix\": 24, "
                               "\"oversubscription\": [2, 1], \"bandwidth\": 12500000000}";
static const char two_levels[] =
    "{\"topology\": \"fat_tree\", \"levels\": 2, \"radix\": %u, \"oversubscription\": %u, "
    "\"bandwidth\": 12500000000, \"latency\": 1e-6}";

/* How the ranks of a ring lie on the hosts. */
typedef struct ring_case {
    const char *name;
    uint32_t oversubscription;
    bool shuffled, stepped; /* stepped: with equal chunks */
    uint32_t stride;        /* from a rank's host to the next rank's host */
} ring_case;

static const ring_case ring_cases[] = {
    {"drift", 7, true, false, 1},
    {"full", 1, false, true, 1},
    {"strided", 3, false, true, 48}, /* the hosts of a leaf of 64 ports */
    {"random", 1, true, true, 1},
};

enum { REPEATS = 20 };
enum { SMALL_RADIX = 32, SMALL_HOSTS = 896, RADIX = 64, RING_BYTES = 100000000 };

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

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

/* The message of chunk c from a host to the next one. Those of a rank that are as large as its
 * first one are of one class, as in lowered graphs: its number is the rank's. */
static uint32_t add_step(cs_builder *builder, const uint32_t *hosts, const int64_t *chunks,
                         uint32_t n, uint32_t rank, uint32_t step)
{
    const cs_class cls = {.kind = CS_TRANSFER,
                          .origin = CS_ALL_REDUCE,
                          .device = hosts[rank],
                          .peer = hosts[(rank + 1) % n],
                          .weights = CS_NONE,
                          .bytes = chunks[(rank + 2 * n - step % n) % n]};
    const bool known = step > 0 && cls.bytes == chunks[rank];
    return cs_builder_task(builder, known ? rank : cs_builder_class(builder, &cls), 0);
}

/* Hosts 0, stride, 2 stride, ..., then 1, stride + 1, ...: of each rank. */
static void place_ranks(const ring_case *how, gsl_rng *random, uint32_t n, uint32_t *hosts)
{
    uint32_t rank = 0;
    for (uint32_t first = 0; first < how->stride; first++)
        for (uint32_t host = first; host < n; host += how->stride)
            hosts[rank++] = host;
    if (how->shuffled)
        gsl_ran_shuffle(random, hosts, n, sizeof(*hosts));
}

/* In each step a rank forwards the chunk that it has received, after its previous send. */
static void add_steps(cs_builder *builder, const uint32_t *hosts, const int64_t *chunks, uint32_t n,
                      uint32_t steps, uint32_t *before)
{
    for (uint32_t step = 0; step < steps; step++)
        for (uint32_t rank = 0; rank < n; rank++) {
            const uint32_t *last = before + (step % 2 == 0 ? n : 0);
            const uint32_t made = add_step(builder, hosts, chunks, n, rank, step);
            if (step > 0) {
                cs_builder_edge(builder, last[rank], made);
                cs_builder_edge(builder, last[(rank + n - 1) % n], made);
            }
            before[(step % 2 == 0 ? 0 : n) + rank] = made;
        }
}

static cs_status make_ring(const ring_case *how, uint32_t n, uint32_t steps, cs_graph *graph,
                           cs_error *error)
{
    gsl_rng *random = cs_random_stream(1, "ring");
    cs_builder *builder = cs_builder_create(n, 1, 1, 1);
    uint32_t *hosts = malloc(n * sizeof(*hosts)), *before = malloc(2 * n * sizeof(*before));
    int64_t *chunks = malloc(n * sizeof(*chunks));
    cs_status status = CS_NO_MEMORY;
    if (random && builder && hosts && before && chunks) {
        for (uint32_t i = 0; i < n; i++)
            chunks[i] = how->stepped ? RING_BYTES / n
                                     : 1 + (int64_t)gsl_rng_uniform_int(random, 2 * RING_BYTES / n);
        place_ranks(how, random, n, hosts);
        add_steps(builder, hosts, chunks, n, steps, before);
        status = cs_builder_finish(builder, graph, error);
    }
    cs_builder_destroy(builder);
    gsl_rng_free(random);
    free(hosts);
    free(before);
    free(chunks);
    return status;
}

static cs_status make_platform(const ring_case *ring, uint32_t n_hosts, cs_platform *platform,
                               cs_error *error)
{
    char text[256];
    const unsigned radix = n_hosts <= SMALL_HOSTS && !ring->stepped ? SMALL_RADIX : RADIX;
    snprintf(text, sizeof(text), two_levels, radix, (unsigned)ring->oversubscription);
    return cs_topology_build_text("bench", text, n_hosts, platform, error);
}

/* Workload: a ring, as messages or as one delay, or simultaneous flows. */
typedef struct bench_case {
    const ring_case *ring; /* NULL: flows */
    bool delay;
    uint32_t n_flows, n_hosts, steps;
} bench_case;

static cs_status run(const bench_case *of, cs_error *error)
{
    cs_platform platform = {0};
    cs_graph graph = {0};
    cs_trace trace = {0};
    cs_status status =
        of->ring ? make_platform(of->ring, of->n_hosts, &platform, error)
                 : cs_topology_build_text("bench", fat_tree, of->n_hosts, &platform, error);
    if (status == CS_OK)
        status = of->ring ? make_ring(of->ring, of->n_hosts, of->steps, &graph, error)
                          : make_graph(of->n_flows, of->n_hosts, &graph, error);
    platform.sharing = CS_SHARING_MAX_MIN;
    platform.independent_messages = true;
    const double start = cpu_seconds();
    if (status == CS_OK)
        status = cs_engine_run(&graph, &platform, &(cs_engine_options){0}, &trace, error);
    const double seconds = cpu_seconds() - start;
    if (status == CS_OK)
        printf("%s%s%" PRIu32 " flows, %" PRIu32
               " hosts: %.3f s, %.3f us per flow, makespan %" PRId64 " ps, hash %016" PRIx64 "\n",
               of->ring ? of->ring->name : "", of->ring ? " ring, " : "", graph.n_tasks,
               of->n_hosts, seconds, 1e6 * seconds / graph.n_tasks, trace.makespan,
               cs_trace_hash(&trace));
    cs_trace_finish(&trace);
    cs_graph_finish(&graph);
    cs_platform_finish(&platform);
    return status;
}

/* The graph of one all-reduce over the ranks. */
static cs_status make_collective(const ring_case *how, uint32_t n, cs_graph *graph, cs_error *error)
{
    gsl_rng *random = cs_random_stream(1, "ring");
    cs_builder *builder = cs_builder_create(n, 1, 1, 1);
    uint32_t *hosts = malloc(n * sizeof(*hosts));
    cs_status status = CS_NO_MEMORY;
    if (random && builder && hosts) {
        place_ranks(how, random, n, hosts);
        const uint32_t group = cs_builder_group(builder, hosts, n);
        cs_builder_members(builder,
                           cs_builder_collective(builder, CS_ALL_REDUCE, 0, group, RING_BYTES), 0);
        status = cs_builder_finish(builder, graph, error);
    }
    cs_builder_destroy(builder);
    gsl_rng_free(random);
    free(hosts);
    return status;
}

/* Lowers the collective to a delay and runs that; keeps the shortest time. */
static cs_status run_delay(const bench_case *of, const cs_platform *platform, cs_trace *trace,
                           double *shortest, cs_error *error)
{
    const cs_lower_options options = {
        .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_ANALYTIC, .order = CS_ORDER_GIVEN};
    cs_graph graph = {0}, lowered = {0};
    CS_TRY(make_collective(of->ring, of->n_hosts, &graph, error));
    const double start = cpu_seconds();
    cs_status status = cs_lower_with(&graph, platform, &options, &lowered, NULL, error);
    if (status == CS_OK)
        status = cs_engine_run(&lowered, platform, &(cs_engine_options){0}, trace, error);
    const double seconds = cpu_seconds() - start;
    *shortest = seconds < *shortest ? seconds : *shortest;
    cs_graph_finish(&graph);
    cs_graph_finish(&lowered);
    return status;
}

static cs_status run_delays(const bench_case *of, cs_error *error)
{
    cs_platform platform = {0};
    double shortest = INFINITY;
    cs_status status = make_platform(of->ring, of->n_hosts, &platform, error);
    platform.sharing = CS_SHARING_MAX_MIN;
    for (int i = 0; i < REPEATS && status == CS_OK; i++) {
        cs_trace trace = {0};
        status = run_delay(of, &platform, &trace, &shortest, error);
        if (status == CS_OK && i + 1 == REPEATS)
            printf("%s delay, %" PRIu32 " hosts: %.3f ms, makespan %" PRId64 " ps, hash %016" PRIx64
                   "\n",
                   of->ring->name, of->n_hosts, 1e3 * shortest, trace.makespan,
                   cs_trace_hash(&trace));
        cs_trace_finish(&trace);
    }
    cs_platform_finish(&platform);
    return status;
}

static const ring_case *find_ring(const char *name)
{
    for (size_t i = 0; i < sizeof(ring_cases) / sizeof(ring_cases[0]); i++)
        if (strcmp(ring_cases[i].name, name) == 0)
            return &ring_cases[i];
    return NULL;
}

/* The number at a place of the command line, or what is usual; 0: it is none. */
static uint32_t number_at(int argc, char **argv, int at, uint32_t usual)
{
    return at < argc ? (uint32_t)strtoul(argv[at], NULL, 10) : usual;
}

int main(int argc, char **argv)
{
    cs_error error;
    cs_error_init(&error);
    const bool delay = argc > 1 && strcmp(argv[1], "delay") == 0;
    const bool ring = delay || (argc > 1 && strcmp(argv[1], "ring") == 0);
    bench_case of = {.delay = delay,
                     .n_flows = number_at(argc, argv, 1, 1024),
                     .n_hosts = number_at(argc, argv, 2, 1024)};
    if (ring)
        of.ring = find_ring(argc > 3 ? argv[3] : "drift");
    if ((ring && !of.ring) || of.n_hosts < 2 || (!ring && of.n_flows == 0)) {
        fprintf(stderr,
                "usage: bench-network FLOWS [HOSTS]\n"
                "       bench-network ring|delay HOSTS [drift|full|strided|random [STEPS]]\n");
        return 2;
    }
    of.steps = number_at(argc, argv, 4, 2 * (of.n_hosts - 1));
    if ((delay ? run_delays(&of, &error) : run(&of, &error)) == CS_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "bench-network: %s\n", error.text);
    return EXIT_FAILURE;
}

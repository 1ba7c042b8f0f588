/* Lowering collectives of large meshes to delays: bench-exchange CASE
 *
 *   families    20 unlike collectives over a family of 2,048 groups of 8 ranks, on 16,384 GPUs, one
 *               simulated for all: within nodes, and with one rank per node
 *   folded      a pipeline of 16 stages on 16,384 GPUs, 16 of them simulated: 69 thousand tasks
 *   unfolded    the same on 512 GPUs, tensor 8, data 4, all simulated: about two million tasks
 *
 * Prints how long each step took, and a hash of the results, to detect changed answers. */
#include "sim/core/analysis/analysis.h"
#include "sim/core/engine/engine.h"
#include "sim/core/graph/builder.h"
#include "sim/core/lower/lower.h"
#include "topologies/topology.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const cs_lower_options analytic = {
    .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_ANALYTIC, .order = CS_ORDER_AUTO};

static double seconds_since(clock_t start)
{
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

static cs_status make_platform(uint32_t n_devices, cs_platform *platform, cs_error *error)
{
    CS_TRY(cs_topology_build_text("bench", "{\"topology\": \"dgx-h100\"}", n_devices, platform,
                                  error));
    platform->sharing = CS_SHARING_MAX_MIN;
    return CS_OK;
}

/* Lowers, runs and analyses what was built, and prints the times. */
static cs_status run(const char *name, cs_builder *builder, const cs_platform *platform,
                     cs_error *error)
{
    cs_graph graph = {0}, lowered = {0};
    cs_trace trace = {0};
    cs_analysis analysis = {0};
    cs_lower_report report;
    double times[5];
    clock_t start = clock();
    cs_status status = cs_builder_finish(builder, &graph, error);
    times[0] = seconds_since(start);
    start = clock();
    if (status == CS_OK)
        status = cs_graph_check(&graph, error);
    const uint32_t n_tasks = graph.n_tasks;
    times[1] = seconds_since(start);
    start = clock();
    if (status == CS_OK)
        status = cs_lower_with(&graph, platform, &analytic, &lowered, &report, error);
    times[2] = seconds_since(start);
    start = clock();
    if (status == CS_OK)
        status = cs_engine_run(&lowered, platform, &(cs_engine_options){.record_memory = true},
                               &trace, error);
    times[3] = seconds_since(start);
    start = clock();
    if (status == CS_OK)
        status = cs_analyse(&lowered, &trace, 1, &analysis, error);
    times[4] = seconds_since(start);
    if (status == CS_OK && *report.unlike)
        printf("%s: not alike: %s\n", name, report.unlike);
    if (status == CS_OK)
        printf("%s: %" PRIu32 " tasks, lowered %" PRIu32 "; finished in %.3f s, checked %.3f s, "
               "lowered %.3f s, run %.3f s, analysed %.3f s; makespan %" PRId64
               " ps, hash %016" PRIx64 "\n",
               name, n_tasks, lowered.n_tasks, times[0], times[1], times[2], times[3], times[4],
               trace.makespan, cs_trace_hash(&trace));
    cs_analysis_finish(&analysis);
    cs_trace_finish(&trace);
    cs_graph_finish(&lowered);
    cs_graph_finish(&graph);
    return status;
}

/* ---- families ---- */

enum { GPUS = 16384, RANKS = 8, COLLECTIVES = 20 };

static cs_builder *family_builder(uint32_t stride)
{
    static const cs_kind kinds[] = {CS_ALL_REDUCE, CS_ALL_GATHER, CS_REDUCE_SCATTER, CS_SHIFT,
                                    CS_ALL_TO_ALL};
    static uint32_t stands_for[GPUS];
    uint32_t devices[RANKS], own = 0;
    cs_builder *builder = cs_builder_create(GPUS, 1, 1, 1);
    if (!builder)
        return NULL;
    cs_builder_fold(builder, stands_for);
    for (uint32_t first = 0; first < GPUS; first++) {
        if (first / stride % RANKS != 0)
            continue;
        for (uint32_t k = 0; k < RANKS; k++)
            devices[k] = first + k * stride;
        const uint32_t group = cs_builder_group(builder, devices, RANKS);
        cs_builder_family(builder, group, 0);
        own = first == 0 ? group : own;
    }
    for (uint32_t i = 0; i < COLLECTIVES; i++) {
        const cs_exchange_class exchange = {.kind = kinds[i % 5],
                                            .purpose = CS_PURPOSE_TENSOR,
                                            .group = own,
                                            .bytes = (int64_t)(i + 1) << 20};
        cs_builder_members(builder, cs_builder_exchange(builder, &exchange), 0);
    }
    return builder;
}

static cs_status run_families(cs_error *error)
{
    cs_platform platform = {0};
    CS_TRY(make_platform(GPUS, &platform, error));
    cs_status status = CS_OK;
    for (uint32_t stride = 1; stride <= 8 && status == CS_OK; stride += 7) {
        cs_builder *builder = family_builder(stride);
        status = builder ? run(stride == 1 ? "in nodes" : "across nodes", builder, &platform, error)
                         : cs_error_no_memory(error);
        cs_builder_destroy(builder);
    }
    cs_platform_finish(&platform);
    return status;
}

/* ---- meshes ---- */

/* `tensor` x `data` places on each of STAGES pipeline ranks. */
enum { STAGES = 16, LAYERS = 8, PASSES = 2, MICRO_BATCHES = 128 };

typedef struct mesh {
    uint32_t tensor, data;
    bool folded;
    cs_builder *builder;
    uint32_t *compute[PASSES], *hand_on[PASSES], *last;          /* per device */
    uint32_t tensor_class[STAGES][128], data_class[STAGES][128]; /* per group of a stage */
} mesh;

static uint32_t width(const mesh *m)
{
    return m->tensor * m->data;
}

static uint32_t exchange_class(mesh *m, uint32_t stage, uint32_t first, uint32_t size,
                               uint32_t stride, cs_purpose purpose)
{
    static const cs_effect effects[] = {{1 << 20, 0, CS_MEMORY_BUFFERS, false},
                                        {-(1 << 20), 0, CS_MEMORY_BUFFERS, true}};
    uint32_t devices[128];
    for (uint32_t k = 0; k < size; k++)
        devices[k] = stage * width(m) + first + k * stride;
    const uint32_t group = cs_builder_group(m->builder, devices, size);
    cs_builder_family(m->builder, group, 2 * stage + (stride > 1));
    return cs_builder_exchange(m->builder, &(cs_exchange_class){.kind = CS_ALL_REDUCE,
                                                                .purpose = purpose,
                                                                .stage = stage,
                                                                .group = group,
                                                                .bytes = 32 << 20,
                                                                .effects = effects,
                                                                .n_effects = 2});
}

static void add_classes(mesh *m, uint32_t stage)
{
    for (uint32_t d = 0; d < m->data; d++)
        m->tensor_class[stage][d] =
            exchange_class(m, stage, d * m->tensor, m->tensor, 1, CS_PURPOSE_TENSOR);
    for (uint32_t t = 0; t < m->tensor; t++)
        m->data_class[stage][t] =
            exchange_class(m, stage, t, m->data, m->tensor, CS_PURPOSE_GRADIENTS);
    for (uint32_t i = 0; i < (m->folded ? 1 : width(m)); i++) {
        const uint32_t at = stage * width(m) + i;
        for (uint32_t pass = 0; pass < PASSES; pass++) {
            const bool on = pass == 0 ? stage + 1 < STAGES : stage > 0;
            const uint32_t to = pass == 0 ? at + width(m) : at - width(m);
            m->compute[pass][at] =
                cs_builder_compute(m->builder, pass == 0 ? CS_FORWARD : CS_BACKWARD, stage, at,
                                   CS_NONE, (1 + pass) * INT64_C(1000000000));
            if (on)
                m->hand_on[pass][at] =
                    cs_builder_transfer(m->builder, stage, at, to, 16 << 20, false);
        }
    }
}

/* One pass of a stage: LAYERS times a computation and a sum over the tensor axis. */
static void add_pass(mesh *m, uint32_t stage, uint32_t pass, uint32_t item)
{
    const uint32_t places = m->folded ? 1 : width(m), first = stage * width(m);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        for (uint32_t i = 0; i < places; i++) {
            const uint32_t task = cs_builder_task(m->builder, m->compute[pass][first + i], item);
            cs_builder_edge(m->builder, m->last[first + i], task);
            m->last[first + i] = task;
        }
        for (uint32_t i = 0; i < places; i += m->tensor) {
            const uint32_t member =
                cs_builder_members(m->builder, m->tensor_class[stage][i / m->tensor], item);
            for (uint32_t k = 0; k < m->tensor && i + k < places; k++) {
                cs_builder_edge(m->builder, m->last[first + i + k], member + k);
                m->last[first + i + k] = member + k;
            }
        }
    }
    for (uint32_t i = 0; i < places && (pass == 0 ? stage + 1 < STAGES : stage > 0); i++) {
        const uint32_t to = pass == 0 ? first + i + width(m) : first + i - width(m);
        const uint32_t task = cs_builder_task(m->builder, m->hand_on[pass][first + i], item);
        cs_builder_edge(m->builder, m->last[first + i], task);
        m->last[to] = task;
    }
}

static void add_gradients(mesh *m, uint32_t stage)
{
    const uint32_t first = stage * width(m);
    for (uint32_t t = 0; t < (m->folded ? 1 : m->tensor); t++) {
        const uint32_t member = cs_builder_members(m->builder, m->data_class[stage][t], 0);
        for (uint32_t k = 0; k < (m->folded ? 1 : m->data); k++)
            cs_builder_edge(m->builder, m->last[first + t + k * m->tensor], member + k);
    }
}

static bool fold(mesh *m, uint32_t n)
{
    uint32_t *stands_for = malloc(n * sizeof(*stands_for));
    for (uint32_t d = 0; stands_for && d < n; d++)
        stands_for[d] = d / width(m) * width(m);
    if (stands_for)
        cs_builder_fold(m->builder, stands_for);
    free(stands_for);
    return stands_for != NULL;
}

static bool build_mesh(mesh *m, uint32_t n)
{
    m->builder = cs_builder_create(n, STAGES, MICRO_BATCHES, 1);
    m->last = malloc(n * sizeof(*m->last));
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        m->compute[pass] = malloc(n * sizeof(*m->compute[pass]));
        m->hand_on[pass] = malloc(n * sizeof(*m->hand_on[pass]));
        if (!m->compute[pass] || !m->hand_on[pass])
            return false;
    }
    if (!m->builder || !m->last || (m->folded && !fold(m, n)))
        return false;
    memset(m->last, 0xff, n * sizeof(*m->last));
    for (uint32_t stage = 0; stage < STAGES; stage++)
        add_classes(m, stage);
    for (uint32_t pass = 0; pass < PASSES; pass++)
        for (uint32_t item = 0; item < MICRO_BATCHES; item++)
            for (uint32_t k = 0; k < STAGES; k++)
                add_pass(m, pass == 0 ? k : STAGES - 1 - k, pass, item);
    for (uint32_t stage = 0; stage < STAGES; stage++)
        add_gradients(m, stage);
    return true;
}

static cs_status run_mesh(const char *name, uint32_t data, bool folded, cs_error *error)
{
    static mesh m;
    cs_platform platform = {0};
    m = (mesh){.tensor = 8, .data = data, .folded = folded};
    const uint32_t n = STAGES * width(&m);
    CS_TRY(make_platform(n, &platform, error));
    cs_status status =
        build_mesh(&m, n) ? run(name, m.builder, &platform, error) : cs_error_no_memory(error);
    cs_builder_destroy(m.builder);
    free(m.last);
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        free(m.compute[pass]);
        free(m.hand_on[pass]);
    }
    cs_platform_finish(&platform);
    return status;
}

int main(int argc, char **argv)
{
    cs_error error;
    cs_error_init(&error);
    cs_status status = CS_INVALID;
    if (argc == 2 && strcmp(argv[1], "families") == 0)
        status = run_families(&error);
    else if (argc == 2 && strcmp(argv[1], "folded") == 0)
        status = run_mesh("folded", 128, true, &error);
    else if (argc == 2 && strcmp(argv[1], "unfolded") == 0)
        status = run_mesh("unfolded", 4, false, &error);
    else
        (void)cs_error_add(&error, status, "usage: bench-exchange families | folded | unfolded");
    if (status != CS_OK)
        fprintf(stderr, "bench-exchange: %s\n", error.text);
    return status == CS_OK ? 0 : 1;
}

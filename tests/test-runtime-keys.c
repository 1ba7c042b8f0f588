/* Effects of single keys of runtimes on a run, by hand: collectives that reach part of the links'
 * bandwidth and take a while to begin, products that overlap tensor-parallel collectives, fused
 * kernels, and a host that is slower than the device. */
#include "sim/model/net-model.h"
#include "sim/run/figures.h"
#include "sim/run/step-parts.h"
#include "tests/attention-net.h"
#include "tests/expect.h"
#include "tests/op-named.h"
#include "tests/run-scenario.h"

#include <math.h>

static double figure_of(const scenario_run *run, const char *key)
{
    const cs_outcome outcome = {&run->scenario, &run->simulation, 0};
    return cs_run_figure_value(cs_run_figure_find(key), &outcome);
}

static void expect_seconds(const char *row, double expected, double got)
{
    if (!(fabs(got - expected) <= 1e-9 * expected))
        fail_msg("%s: expected %.12g s, got %.12g s", row, expected, got);
}

/* ---- collectives ---- */

/* Two replicas of a layer that takes 1 s forward and 2 s backward, on links of 1 GB/s without
 * latency. A ring sums 1 GB of gradients in 2 (n - 1) / n = 1 s; with half of the bandwidth in 2 s,
 * and as much later as it takes to begin. Messages between stages are no collectives. */
static void collectives_take_longer(void **state)
{
    (void)state;
    static const struct {
        const char *name, *collectives;
        double seconds; /* seconds of the run */
    } rows[] = {
        {"links", "'fidelity': 'analytic'", 4},
        {"half of them", "'fidelity': 'analytic', 'reached': 0.5", 5},
        {"a start", "'fidelity': 'analytic', 'start': '250 ms'", 4.25},
        {"both", "'fidelity': 'analytic', 'reached': 0.5, 'start': '250 ms'", 5.25},
        {"half of a node's", "'fidelity': 'analytic', 'reached': {'node': 0.5}", 5},
        {"the same", "'fidelity': 'analytic', 'reached': {'gpu_pair': 0.5}", 5},
        {"of others", "'fidelity': 'analytic', 'reached': {'rack': 0.5}", 4},
        {"of the network", "'fidelity': 'analytic', 'reached': 0.5, 'network_reached': 1", 5},
        /* 6.6 + 2 x 1.0 us of LL, 8.4 + 2 x 4 us of trees or 8.4 + 2 x 5.7 us of Simple, the last
         * the fastest for 1 GB, over links that are no NVLinks */
        {"NCCL", "'fidelity': 'analytic', 'nccl': 'ampere'", 4 + 19.8e-6},
        {"NCCL's trees", "'fidelity': 'analytic', 'nccl': 'ampere', 'nccl_algorithm': 'tree'",
         3 + 2 / 0.92 + 16.4e-6},
        {"flows have neither", "'fidelity': 'flow', 'reached': 0.5, 'start': '250 ms'", 4},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        if (scenario_run_init(
                &run, &error,
                "{'schema_version': 1, 'name': 't', 'model': {'uniform': {'layers': 1, 'forward': "
                "'1 s', 'backward': '2 s', 'weights': '1 GB', 'activation': '1 B'}}, 'platform': "
                "{'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': '1 GB/s', 'latency': "
                "'0 s'}, 'collectives': {'algorithm': 'ring', %s}, 'schedule': "
                "{'kind': 'dp', 'micro_batches': 1}}",
                rows[i].collectives) != CS_OK)
            fail_msg("%s: %s", rows[i].name, error.text);
        expect_seconds(rows[i].name, rows[i].seconds, figure_of(&run, "makespan_s"));
        scenario_run_finish(&run);
    }
}

/* The same over four replicas in two nodes: in each of 2 (n - 1) = 6 rounds of 250 MB some messages
 * stay in a node and others leave it, and the slowest counts: 3 s + 1.5 s / the least of both. No
 * message goes over NVLinks alone or over a top level of the network. With latencies, a part of
 * everything is the same as that part of each level. */
static void levels_reach_their_own(void **state)
{
    (void)state;
    static const struct {
        const char *reached;
        double latency, seconds; /* s: of the network; of the run */
    } rows[] = {
        {"1", 0, 4.5},
        {"{}", 0, 4.5},
        {"{'node': 0.5}", 0, 6},
        {"{'node': 0.5, 'rack': 1}", 0, 6},
        {"{'gpu_pair': 0.5}", 0, 6},
        {"{'rack': 0.5}", 0, 6},
        {"{'node': 0.75, 'rack': 0.5}", 0, 6},
        {"{'node': 0.25, 'rack': 0.5}", 0, 9},
        {"{'gpu_pair': 0.25, 'node': 1, 'system': 0.5}", 0, 4.5},
        {"1", 0.25, 3 + 6 * (0.25 + 0.25)},
        {"0.5", 0.25, 3 + 6 * (0.25 + 0.25) / 0.5},
        {"{'node': 0.5, 'rack': 0.5}", 0.25, 3 + 6 * (0.25 + 0.25) / 0.5},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        if (scenario_run_init(
                &run, &error,
                "{'schema_version': 1, 'name': 't', 'model': {'uniform': {'layers': 1, 'forward': "
                "'1 s', 'backward': '2 s', 'weights': '1 GB', 'activation': '1 B'}}, 'platform': "
                "{'topology': 'cluster', 'devices': 4, 'gpus_per_node': 2, 'node': {'topology': "
                "'nvlink_switch', 'bandwidth': '1 GB/s', 'latency': 0}, 'nic_bandwidth': '1 GB/s', "
                "'network': {'topology': 'nvlink_switch', 'bandwidth': '1 GB/s', 'latency': %g}}, "
                "'collectives': {'algorithm': 'ring', 'fidelity': 'analytic', 'reached': %s}, "
                "'schedule': {'kind': 'dp', 'micro_batches': 1}}",
                rows[i].latency, rows[i].reached) != CS_OK)
            fail_msg("%s: %s", rows[i].reached, error.text);
        expect_seconds(rows[i].reached, rows[i].seconds, figure_of(&run, "makespan_s"));
        scenario_run_finish(&run);
    }
}

/* Two replicas that shard the optimizer's states. Weights of 1 GB are gathered after the update in
 * 1/2 s at 1 GB/s, while the next step computes its first forward of 1 s; the step includes the
 * time beyond that, or all of it if nothing overlaps. */
static void forwards_hide_gathers(void **state)
{
    (void)state;
    static const struct {
        double rate, left, behind; /* GB/s; s */
    } rows[] = {{1, 0, 0.5}, {0.5, 0, 1}, {0.25, 1, 2}, {0.2, 1.5, 2.5}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        char row[64];
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        snprintf(row, sizeof(row), "%g GB/s", rows[i].rate);
        if (scenario_run_init(
                &run, &error,
                "{'schema_version': 1, 'name': 't', 'model': {'uniform': {'layers': 1, 'forward': "
                "'1 s', 'backward': '2 s', 'weights': '1 GB', 'activation': '1 B'}}, 'platform': "
                "{'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': '%s'}, 'collectives': "
                "{'algorithm': 'ring', 'fidelity': 'analytic'}, 'parallel': {'data': 2, 'zero': "
                "1}, "
                "'schedule': {'kind': 'sequential', 'micro_batches': 2}}",
                row) != CS_OK)
            fail_msg("%s: %s", row, error.text);
        const double computed = figure_of(&run, "makespan_s") - rows[i].behind;
        const cs_step_parts hidden = cs_step_parts_find(&run.scenario, &run.simulation, false);
        const cs_step_parts behind = cs_step_parts_find(&run.scenario, &run.simulation, true);
        expect_seconds(row, rows[i].left, hidden.step - computed);
        expect_seconds(row, rows[i].left, hidden.seconds[CS_PART_FOR_WEIGHTS]);
        expect_seconds(row, rows[i].behind, behind.step - computed);
        scenario_run_finish(&run);
    }
}

/* Returns the time of the delays of a network on `ranks` devices; *active: time of the collectives,
 * *computing: of a device. */
static double delays(const char *network, uint32_t ranks, const char *axis, const char *bandwidth,
                     double overlap, double *active, double *computing)
{
    const bool tensor = strstr(axis, "tensor") != NULL;
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'runtime': 'ideal', 'name': 't', 'model': {%s, 'device': "
            "'a100', 'batch_size': %u}, 'platform': {'topology': 'nvlink_switch', 'devices': %u, "
            "'bandwidth': '%s', 'latency': '1 us'}, 'parallel': {%s: %u}, 'collectives': "
            "{'fidelity': 'analytic', '%s_overlap': %g}, 'schedule': {'kind': 'sequential', "
            "'micro_batches': 1}}",
            network, tensor ? 1 : ranks, ranks, bandwidth, axis, ranks,
            tensor ? "tensor" : "expert", overlap) != CS_OK)
        fail_msg("%s", error.text);
    const cs_graph *graph = &run.simulation.graph;
    double seconds = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_span span = run.simulation.trace.spans[task];
        if (cs_graph_class(graph, task)->ranks > 0)
            seconds += cs_time_seconds(span.end - span.start);
    }
    *active = figure_of(&run, "communication_active_s");
    *computing = figure_of(&run, "makespan_s") * (1 - figure_of(&run, "bubble_fraction"));
    scenario_run_finish(&run);
    return seconds;
}

static double tensor_seconds(uint32_t ranks, const char *bandwidth, double overlap, double *active,
                             double *computing)
{
    static const char network[] = "'name': 'gpt', 'parameters': {'layers': 2, 'hidden': 256, "
                                  "'heads': 4, 'sequence': 128, 'vocabulary': 1024, "
                                  "'intermediate': 1024}";
    return delays(network, ranks, "'tensor'", bandwidth, overlap, active, computing);
}

/* Products overlap all chunks but one of a collective that is cut into n chunks for n ranks, or a
 * share of these: 1 - s (n - 1) / n remains. Each is rounded down to a picosecond, of some
 * microseconds. */
static void products_hide_chunks(void **state)
{
    (void)state;
    static const struct {
        uint32_t ranks;
        double overlap, left;
    } rows[] = {{2, 1, 0.5}, {2, 0.84, 0.58}, {4, 1, 0.25}, {4, 0.5, 0.625}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        double active[2], computing;
        const double all = tensor_seconds(rows[i].ranks, "10 GB/s", 0, &active[0], &computing);
        const double got =
            tensor_seconds(rows[i].ranks, "10 GB/s", rows[i].overlap, &active[1], &computing) / all;
        assert_true(all > 1e-5);
        if (fabs(active[1] / active[0] - 1) > 1e-6)
            fail_msg("%u ranks, %g: communication takes %g s, without overlap %g s", rows[i].ranks,
                     rows[i].overlap, active[1], active[0]);
        if (fabs(got - rows[i].left) > 1e-6)
            fail_msg("%u ranks, %g: expected %g, got %g", rows[i].ranks, rows[i].overlap,
                     rows[i].left, got);
    }
}

/* Products cannot hide more than they last: ranks wait for the rest. */
static void products_hide_what_they_last(void **state)
{
    (void)state;
    double active, computing;
    const double all = tensor_seconds(4, "0.1 GB/s", 0, &active, &computing);
    const double left = tensor_seconds(4, "0.1 GB/s", 1, &active, &computing);
    if (!(computing > 0 && computing < 0.75 * all))
        fail_msg("%g s are computed, and the collectives take %g s", computing, all);
    if (fabs(left / (all - computing) - 1) > 1e-6)
        fail_msg("the collectives take %g s, %g s of it exposed, computing takes %g s", all, left,
                 computing);
}

/* Nor can layers overlap more messages to experts than their own time. Weights that all ranks have
 * are summed after the backward, which nothing overlaps: the same time at any overlap. */
static void layers_hide_what_they_last(void **state)
{
    (void)state;
    static const char network[] =
        "'name': 'mixtral', 'parameters': {'layers': 2, 'hidden': 256, 'heads': 4, 'kv_heads': 4, "
        "'expert_intermediate': 256, 'experts': 4, 'sequence': 128, 'vocabulary': 1024}";
    const struct {
        const char *bandwidth;
        bool bound;
    } rows[] = {{"0.1 GB/s", true}, {"1000 GB/s", false}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        double active, computing;
        const char *axis = "'data': 4, 'expert'", *bandwidth = rows[i].bandwidth;
        const double all = delays(network, 4, axis, bandwidth, 0, &active, &computing);
        const double half = delays(network, 4, axis, bandwidth, 1e-3, &active, &computing);
        const double left = delays(network, 4, axis, bandwidth, 1, &active, &computing);
        const double messages = (all - half) * 1e3;
        const double hidden = all - left;
        if (rows[i].bound != (computing < messages))
            fail_msg("%s: %g s of messages, %g s computed", bandwidth, messages, computing);
        if (fabs(hidden / fmin(messages, computing) - 1) > 2e-3)
            fail_msg("%s: %g s are hidden, %g s computed, of %g s", bandwidth, hidden, computing,
                     messages);
    }
}

static double folded_seconds(const char *fold)
{
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'runtime': 'ideal', 'name': 't', 'model': {'name': 'gpt', "
            "'parameters': "
            "{'layers': 2, 'hidden': 256, 'heads': 4, 'sequence': 128, 'vocabulary': 1024, "
            "'intermediate': 1024}, 'device': 'a100', 'batch_size': 4}, 'platform': {'topology': "
            "'nvlink_switch', 'devices': 8, 'bandwidth': '1 GB/s', 'latency': '1 us'}, "
            "'parallel': {'tensor': 2, 'data': 4, 'fold': '%s'}, 'collectives': {'fidelity': "
            "'analytic', 'tensor_overlap': 0.84, 'reached': 0.8, 'start': '25 us'}, "
            "'schedule': {'kind': 'sequential', 'micro_batches': 1}}",
            fold) != CS_OK)
        fail_msg("%s", error.text);
    const double seconds = figure_of(&run, "makespan_s");
    scenario_run_finish(&run);
    return seconds;
}

/* Replicas on a switch are identical: one that represents all takes the same time as each alone. */
static void folded_replicas_hide_as_much(void **state)
{
    (void)state;
    expect_seconds("folded", folded_seconds("no"), folded_seconds("yes"));
}

static double seconds_of_experts(const char *sharing)
{
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'runtime': 'ideal', 'name': 't', 'model': {'name': 'mixtral', "
            "'parameters': "
            "{'layers': 1, 'hidden': 256, 'heads': 4, 'kv_heads': 4, 'sequence': 128, "
            "'vocabulary': 1024, 'experts': 4, 'top_k': 2, 'expert_intermediate': 512}, 'device': "
            "'a100', 'precision': 'bf16', 'batch_size': 4}, 'platform': {'topology': "
            "'nvlink_switch', 'devices': 4, 'bandwidth': '1 GB/s', 'latency': '0 s', 'sharing': "
            "'none'}, 'parallel': {'data': 4, 'expert': 4}, 'collectives': {'fidelity': "
            "'analytic', 'sharing': '%s'}, 'schedule': {'kind': 'sequential', 'micro_batches': 1}}",
            sharing) != CS_OK)
        fail_msg("%s", error.text);
    const double seconds = figure_of(&run, "makespan_s");
    scenario_run_finish(&run);
    return seconds;
}

/* A rank sends a quarter of two copies of 128 tokens, 256 features in two bytes, 32,768 bytes, to
 * each of three others: all at once in 32.768 us where messages share no links, in three times that
 * over the rank's own link of 1 GB/s. There are four such exchanges, two forward and two backward;
 * a ring's messages share none. */
static void experts_share_links(void **state)
{
    (void)state;
    const double longer = seconds_of_experts("max_min") - seconds_of_experts("platform");
    if (!(fabs(longer - 4 * 2 * 32.768e-6) < 1e-11))
        fail_msg("expected 262.144 us more, got %.9g us", 1e6 * longer);
}

static double seconds_of_dispatches(const char *nodes, const char *collectives)
{
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'runtime': 'ideal', 'name': 't', 'model': {'name': 'mixtral', "
            "'parameters': "
            "{'layers': 1, 'hidden': 256, 'heads': 4, 'kv_heads': 4, 'sequence': 128, "
            "'vocabulary': 1024, 'experts': 4, 'top_k': 2, 'expert_intermediate': 512}, 'device': "
            "'a100', 'precision': 'bf16', 'batch_size': 4}, 'platform': {'topology': 'cluster', "
            "'devices': 4, %s, 'node': {'topology': 'nvlink_switch', 'bandwidth': '100 GB/s'}, "
            "'nic_bandwidth': '100 GB/s', 'network': {'topology': 'nvlink_switch', 'bandwidth': "
            "'1 GB/s'}}, 'parallel': {'data': 4, 'expert': 4, 'dispatcher': 'once_per_node'}, "
            "'collectives': {'fidelity': 'analytic', %s}, 'schedule': {'kind': 'sequential', "
            "'micro_batches': 1}}",
            nodes, collectives) != CS_OK)
        fail_msg("%s", error.text);
    const double seconds = figure_of(&run, "makespan_s");
    scenario_run_finish(&run);
    return seconds;
}

/* A rank sends tokens to the other node, over a NIC of 1 GB/s, if at least one of their two experts
 * is there: all of 65,536 bytes except 1/6, where both of four are in its own node, 54,614 bytes in
 * 54.614 us; within nodes all is faster. With half of the bandwidth and a start each of the four
 * exchanges takes as long again, and the start. The bandwidth that other collectives reach does not
 * count in addition; and none of it counts if experts are in one node. Here gradients of replicated
 * weights are summed as well, hence the differences. */
static void dispatches_have_their_own(void **state)
{
    (void)state;
    static const char two[] = "'gpus_per_node': 2, 'nics_per_node': 2",
                      one[] = "'gpus_per_node': 4";
    static const char dispatch[] = "'dispatch': {'reached': 0.5, 'start': '1 ms'}";
    static const struct {
        const char *row, *nodes, *without, *more;
        double more_each; /* s, of an exchange */
    } rows[] = {
        {"half", two, "'start': 0", "'start': 0, 'dispatch': {'reached': 0.5}", 54.614e-6},
        {"a start", two, "'start': 0", "'dispatch': {'start': '1 ms'}", 1e-3},
        {"both", two, "'start': 0", dispatch, 54.614e-6 + 1e-3},
        {"one node", one, "'start': 0", dispatch, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const double less = seconds_of_dispatches(rows[i].nodes, rows[i].without);
        const double more = seconds_of_dispatches(rows[i].nodes, rows[i].more);
        if (fabs(more - less - 4 * rows[i].more_each) > 1e-11)
            fail_msg("%s: expected %.12g s, got %.12g s", rows[i].row, 4 * rows[i].more_each,
                     more - less);
    }
    static const char *const parts[] = {"'reached': 0.25, 'dispatch': {'reached': 0.5}",
                                        "'reached': {'rack': 0.25}, 'dispatch': {'reached': 0.5}",
                                        "'reached': 0.25, 'dispatch': {'reached': 1}",
                                        "'reached': {'rack': 0.25}, 'dispatch': {'reached': 1}"};
    for (size_t i = 0; i < 2; i++) {
        const double less = seconds_of_dispatches(two, parts[2 + i]);
        const double more = seconds_of_dispatches(two, parts[i]);
        if (fabs(more - less - 4 * 54.614e-6) > 1e-11)
            fail_msg("%s: expected %.12g s, got %.12g s", parts[i], 4 * 54.614e-6, more - less);
    }
}

/* Attention over 8 tokens of 8 features in two heads, of two samples: 128 elements, and one head of
 * keys and of values, 64 each, in a ring of `steps` steps, with kernels of zero time. */
static cs_op_cost cost_of_ring(uint32_t steps, bool eager, bool summed)
{
    cs_net net = {0};
    const cs_attention attention = {
        .heads = 2, .kv_heads = 1, .kernel = CS_ATTENTION_FLASH, .causal = true};
    cs_op *op = attention_net(&net, &attention);
    const cs_runtime_kernels kernels = {.given = true, .eager_ring = eager, .summed_ring = summed};
    cs_op_cost cost = {.forward.launches = 1, .backward_input.launches = 1};
    op->attention.steps = steps;
    cs_runtime_kernels_ring(&kernels, &net, op, 2, CS_PRECISION_BF16, &cost);
    cs_net_finish(&net);
    return cost;
}

/* Three steps of an eager ring: four casts of 2 + 4 bytes; two merges, each reading and writing
 * five and three floats in three kernels; keys and values, twice joined, 2 x 2 elements of 2 bytes.
 * Backward, three times: three sums, which read 2 + 4 bytes and write 4, and two joined, 2 x 2
 * floats.
 *
 * A summed ring, 2 bytes each: zeros written, and three times two read and one written; keys and
 * values, as many elements as the result, read and written to join them, and halves of them in two
 * steps: 1 + 9 + 2 + 2. Backward gradients of queries, one read and written, and twice two read and
 * one written; keys and values read and written, and halves of them in two steps; of their
 * gradients half is read and written, half twice read and written, all twice read and written: 2 +
 * 6 + 2 + 2 + 1 + 1.5 + 3. With two steps 1 + 6 + 2 + 1, and 2 + 3 + 2 + 1 + 1 + 3. */
static void merges_in_a_ring(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        uint32_t steps;
        bool eager, summed;
        double forward, backward; /* bytes for an element */
        uint32_t launches[2];
    } rows[] = {
        {"three steps",
         3,
         true,
         false,
         4 * 6 + 2 * 8 * 4 + 2 * 8,
         3 * (3 * 10 + 16),
         {1 + 12, 1 + 12}},
        {"three that are summed", 3, false, true, 2 * 14, 2 * 17.5, {1 + 9, 1 + 9}},
        {"two that are summed", 2, false, true, 2 * 10, 2 * 12, {1 + 6, 1 + 6}},
        {"within kernels", 3, false, false, 0, 0, {1, 1}},
        {"no ring", 1, true, false, 0, 0, {1, 1}},
        {"no sums", 1, false, true, 0, 0, {1, 1}},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_op_cost got = cost_of_ring(rows[i].steps, rows[i].eager, rows[i].summed);
        expect_double(rows[i].row, 128 * rows[i].forward, got.forward.cast_bytes);
        expect_double(rows[i].row, 128 * rows[i].backward, got.backward_input.cast_bytes);
        expect_int(rows[i].row, rows[i].launches[0], got.forward.launches);
        expect_int(rows[i].row, rows[i].launches[1], got.backward_input.launches);
    }
}

/* Bytes that device 0 gathers over tensor-parallel ranks per step. */
static int64_t gathered_bytes(const char *precision, const char *parallel)
{
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'runtime': 'ideal', 'name': 't', 'model': {'name': 'gpt', "
            "'parameters': "
            "{'layers': 2, 'hidden': 256, 'heads': 4, 'sequence': 128, 'vocabulary': 1024, "
            "'intermediate': 1024}, 'device': 'h100', 'precision': '%s', 'batch_size': 3}, "
            "'platform': {'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': '1 GB/s', "
            "'latency': '1 us'}, 'parallel': {'tensor': 2, 'sequence_parallel': true%s}, "
            "'schedule': {'kind': 'sequential', 'micro_batches': 1}}",
            precision, parallel) != CS_OK)
        fail_msg("%s", error.text);
    const cs_scenario *scenario = &run.scenario;
    cs_graph graph;
    int64_t bytes = 0;
    if (cs_schedule_graph(scenario->schedule, &scenario->job, scenario->params, &graph, &error) !=
        CS_OK)
        fail_msg("%s", error.text);
    for (uint32_t t = 0; t < graph.n_tasks; t++) {
        const cs_class *cls = cs_graph_class(&graph, t);
        if (cls->device == 0 && cls->kind == CS_ALL_GATHER && cls->purpose == CS_PURPOSE_TENSOR)
            bytes += cls->bytes;
    }
    cs_graph_finish(&graph);
    scenario_run_finish(&run);
    return bytes;
}

/* For 3 samples of 128 tokens of 256 features, a block gathers the inputs of its first and third
 * linear layers, again for the gradients of their weights, and the gradients of the results of its
 * second and fourth layers: six times 98,304 elements, cast to a byte each with fp8, instead of two
 * with bf16. The last matrix is not narrow. If they are cast after their gathers, they are gathered
 * in bf16. */
static void operands_are_gathered_cast(void **state)
{
    (void)state;
    const int64_t elements = INT64_C(3) * 128 * 256;
    const int64_t wide = gathered_bytes("bf16", "");
    expect_int("of two blocks", 2 * 6 * elements, wide - gathered_bytes("fp8", ""));
    expect_int("cast behind", wide, gathered_bytes("fp8", ", 'narrow_gathers': false"));
}

/* ---- kernels ---- */

static cs_error error;

/* 2 tokens of 4 features, in a norm, a gated MLP of 6 features, dropout and a residual sum. */
static void build(cs_net *net)
{
    const cs_linear inner = {.out = 6};
    cs_error_init(&error);
    cs_net_begin(net, "n", &error);
    cs_net_block(net, "all");
    const cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 2), 8, 4);
    const cs_tensor y = cs_net_rms_norm(net, "norm", x);
    const cs_tensor gate = cs_net_silu(net, "silu", cs_net_linear(net, "gate", y, &inner));
    cs_tensor z = cs_net_mul(net, "mul", gate, cs_net_linear(net, "up", y, &inner));
    z = cs_net_linear(net, "down", z, &(cs_linear){.out = 4});
    z = cs_net_add(net, "add", x, cs_net_dropout(net, "dropout", z, 0.1));
    cs_net_cross_entropy(net, "loss", z);
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
}

static cs_op_cost fused_cost(const cs_net *net, const char *name, bool fused)
{
    const cs_op *op = op_named(net, name);
    const cs_runtime_kernels kernels = {.given = true, .fused = fused};
    cs_op_cost cost;
    cs_op_cost_of(net, op, 1, CS_PRECISION_BF16, &cost);
    cs_runtime_kernels_fuse(&kernels, net, op, &cost);
    return cost;
}

/* A tensor of 2 tokens of 4 features has 16 bytes. A norm reads and writes it, backward it reads it
 * and the gradient, and writes one. The gate's activation is computed with the product, dropout
 * with the sum. Gate and up read the same: one of them, the first, adds its gradient to the
 * other's, 3 passes over 16 bytes, unless both are one product, whose kernels are the other's. */
static void fuses(void **state)
{
    (void)state;
    cs_net net = {0};
    build(&net);
    const cs_op_cost norm = fused_cost(&net, "norm", true);
    assert_true(norm.forward.bytes == 2 * 16);
    assert_int_equal(norm.forward.launches, 1);
    /* the norm's input has two readers, so that its gradient is added to another one */
    assert_true(norm.backward_input.bytes - norm.accumulate.bytes == 3 * 16);
    assert_true(norm.backward_weight.launches == 0);
    for (int fused = 0; fused < 2; fused++) {
        const cs_op_cost silu = fused_cost(&net, "silu", fused > 0);
        const cs_op_cost dropout = fused_cost(&net, "dropout", fused > 0);
        const cs_op_cost gate = fused_cost(&net, "gate", fused > 0);
        const cs_op_cost up = fused_cost(&net, "up", fused > 0);
        assert_int_equal(silu.forward.launches, !fused);
        assert_int_equal(silu.backward_input.launches, !fused);
        assert_int_equal(dropout.forward.launches, !fused);
        assert_int_equal(dropout.backward_input.launches, 1);
        assert_int_equal(gate.forward.launches, !fused);
        assert_int_equal(gate.backward_input.launches, fused ? 0 : 2);
        assert_int_equal(up.backward_input.launches, 1);
        assert_true(gate.backward_input.bytes - up.backward_input.bytes == (fused ? 0 : 3 * 16));
    }
    cs_net_finish(&net);
}

static cs_op_cost separate_cost(const cs_net *net, const char *name, cs_precision precision,
                                bool separate)
{
    const cs_op *op = op_named(net, name);
    const cs_runtime_kernels kernels = {
        .given = separate, .fused = true, .separate_products = true};
    cs_op_cost cost;
    cs_op_cost_of(net, op, 1, precision, &cost);
    cs_runtime_kernels_fuse(&kernels, net, op, &cost);
    return cost;
}

/* Gate and up read 2 tokens of 4 features, 16 bytes. As separate products, the sum of their
 * gradients is part of the other product's kernel, which reads one more tensor, instead of a
 * separate kernel, which reads two and writes one. Narrow products add nothing: if their input was
 * gathered, and the sum is sent next, an additional kernel reads and writes it. A layer with its
 * own input has no sum. */
static void leaves_products_apart(void **state)
{
    (void)state;
    static const struct {
        const char *row, *name;
        cs_precision precision;
        bool gathered;
        double bytes;
        int64_t kernels;
    } rows[] = {
        {"first", "gate", CS_PRECISION_BF16, true, 16 - 3 * 16, -1},
        {"last", "up", CS_PRECISION_BF16, true, 0, 0},
        {"first, narrow", "gate", CS_PRECISION_FP8, true, 16 - 3 * 16, -1},
        {"last, narrow", "up", CS_PRECISION_FP8, true, 2 * 16, 1},
        {"last, not gathered", "up", CS_PRECISION_FP8, false, 0, 0},
        {"alone", "down", CS_PRECISION_FP8, true, 0, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net net = {0};
        build(&net);
        const size_t writers[] = {(size_t)(op_named(&net, "norm") - net.ops),
                                  (size_t)(op_named(&net, "mul") - net.ops)};
        for (size_t w = 0; w < 2 && rows[i].gathered; w++)
            net.ops[writers[w]].kind = CS_OP_EXCHANGE;
        const cs_op_cost plain = separate_cost(&net, rows[i].name, rows[i].precision, false);
        const cs_op_cost cost = separate_cost(&net, rows[i].name, rows[i].precision, true);
        expect_int(rows[i].row, plain.forward.launches, cost.forward.launches);
        expect_double(rows[i].row, rows[i].bytes,
                      cost.backward_input.bytes - plain.backward_input.bytes);
        expect_int(rows[i].row, rows[i].kernels,
                   (int64_t)cost.backward_input.launches - plain.backward_input.launches);
        cs_net_finish(&net);
    }
}

/* Two layers of a block read a tensor that a layer of another block reads as well; a sum is the
 * last to read it. Each block has a product of its own: that of the first block is two layers' in
 * one, and its second layer adds the gradient of both, 3 passes over 16 bytes, as the third one
 * does. */
static void products_are_of_a_block(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t forward, backward;
        double added;
    } rows[] = {{"a", 0, 0, 0}, {"b", 1, 2, 3 * 16}, {"c", 1, 2, 3 * 16}};
    const cs_linear linear = {.out = 4};
    cs_net net = {0};
    cs_error_init(&error);
    cs_net_begin(&net, "n", &error);
    cs_net_block(&net, "first");
    const cs_tensor x = cs_net_embedding(&net, "embedding", cs_net_token_ids(&net, 2), 8, 4);
    cs_net_carry(&net, x);
    const cs_tensor a = cs_net_linear(&net, "a", x, &linear);
    const cs_tensor y = cs_net_add(&net, "sum", a, cs_net_linear(&net, "b", x, &linear));
    cs_net_block(&net, "second");
    const cs_tensor z = cs_net_mul(&net, "mul", y, cs_net_linear(&net, "c", x, &linear));
    cs_net_cross_entropy(&net, "loss", cs_net_add(&net, "add", z, x));
    if (cs_net_end(&net) != CS_OK)
        fail_msg("%s", error.text);
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_op_cost cost = fused_cost(&net, rows[i].name, true);
        expect_int(rows[i].name, rows[i].forward, cost.forward.launches);
        expect_int(rows[i].name, rows[i].backward, cost.backward_input.launches);
        expect_double(rows[i].name, rows[i].added, cost.accumulate.bytes);
    }
    cs_net_finish(&net);
}

/* ---- forwards that run again ---- */

static cs_status read_again(scenario_run *run, const char *model, const char *early,
                            const char *parallel)
{
    return scenario_run_read(
        run, &error,
        "{'schema_version': 1, 'name': 't', 'model': {%s, 'device': 'a100', 'precision': 'bf16', "
        "'batch_size': 4, 'granularity': 'block', 'recompute': true}, 'runtime': {'name': "
        "'pytorch-fsdp', 'host': 0, 'host_kernel': 0, 'host_product_backward': 0, 'early_stop': "
        "%s}, 'platform': {'topology': 'dgx-a100', 'devices': 2}, 'parallel': {%s}, 'schedule': "
        "{'kind': 'sequential', 'micro_batches': 1}}",
        model, early, parallel);
}

#define AGAIN_BLOCKS "'layers': 2, 'hidden': 512, 'heads': 4, 'sequence': 128, 'vocabulary': 1024"

/* Seconds of operators of the first block, by the figures of the device. */
static double seconds_of(const cs_scenario *scenario, const char *const *names, uint32_t samples)
{
    const cs_runtime_kernels kernels = {.given = true};
    cs_accelerator device = {0};
    double sum = 0;
    assert_int_equal(cs_accelerator_load("a100", NULL, &device, NULL), CS_OK);
    for (uint32_t i = 0; names[i]; i++) {
        uint32_t p = 0;
        while (strcmp(scenario->net->ops[p].name, names[i]) != 0)
            p++;
        const cs_op *op = &scenario->net->ops[p];
        cs_op_cost cost;
        cs_op_cost_of(scenario->net, op, samples, CS_PRECISION_BF16, &cost);
        cs_runtime_kernels_fuse(&kernels, scenario->net, op, &cost);
        sum += cs_runtime_kernels_seconds(&kernels, &device, op, &cost.forward, CS_PASS_FORWARD,
                                          CS_PRECISION_BF16);
    }
    cs_accelerator_finish(&device);
    return sum;
}

static const cs_layer *first_block(const scenario_run *run)
{
    return &run->scenario.model->layers[1];
}

#define LLAMA_AGAIN        "'name': 'llama', 'parameters': {'kv_heads': 4, " AGAIN_BLOCKS "}"
#define GPT_AGAIN(dropout) "'name': 'gpt', 'parameters': {" AGAIN_BLOCKS ", 'dropout': " dropout "}"

/* A block repeats the operators before the last operator that saves something, and that operator
 * too if it saves its result: a linear layer saves its input, dropout a mask, a sum nothing. Four
 * samples over two replicas. */
static void stops_early(void **state)
{
    (void)state;
    static const struct {
        const char *row, *model;
        const char *left_out[3];
    } rows[] = {
        {"llama", LLAMA_AGAIN, {"layers.0.mlp.down_proj", "layers.0.add_2"}},
        {"gpt", GPT_AGAIN("0"), {"h.0.mlp.c_proj", "h.0.add_2"}},
        {"gpt with dropout", GPT_AGAIN("0.1"), {"h.0.add_2"}},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run early, whole;
        cs_layer_sum least, most;
        if (read_again(&early, rows[i].model, "true", "'data': 2") != CS_OK ||
            read_again(&whole, rows[i].model, "false", "'data': 2") != CS_OK)
            fail_msg("%s", error.text);
        assert_int_equal(cs_model_sum(early.scenario.model, 1, 2, 2, &least, NULL), CS_OK);
        assert_int_equal(cs_model_sum(whole.scenario.model, 1, 2, 2, &most, NULL), CS_OK);
        expect_int(rows[i].row, most.forward, least.forward);
        expect_int(rows[i].row, most.kept_bytes, least.kept_bytes);
        cs_time left_out;
        assert_true(
            cs_time_from_seconds(seconds_of(&early.scenario, rows[i].left_out, 2), &left_out));
        expect_int(rows[i].row, left_out, most.backward_input - least.backward_input);
        scenario_run_finish(&early);
        scenario_run_finish(&whole);
    }
}

/* Two tensor-parallel devices sum the results of attention and of the MLP; the latter after the
 * last product, which is not repeated. */
static void leaves_out_exchanges(void **state)
{
    (void)state;
    scenario_run run;
    uint32_t n = 0, skipped = 0;
    if (read_again(&run, LLAMA_AGAIN, "true", "'tensor': 2") != CS_OK)
        fail_msg("%s", error.text);
    const cs_layer *block = first_block(&run);
    for (uint32_t i = 0; i < block->n_exchanges; i++) {
        const cs_exchange *one = &block->exchanges[i];
        n += !one->backward;
        skipped += one->skipped;
        if (one->skipped != (!one->backward && n == 2))
            fail_msg("exchange %u", i);
    }
    expect_int("exchanges forward", 2, n);
    expect_int("left out", 1, skipped);
    scenario_run_finish(&run);
}

/* One head of 4 features, of 2 tokens. */
static void build_attention(cs_net *net, cs_attention_kernel kernel, bool causal, double dropout)
{
    const cs_attention attention = {
        .heads = 1, .kv_heads = 1, .kernel = kernel, .causal = causal, .dropout = dropout};
    cs_error_init(&error);
    cs_net_begin(net, "n", &error);
    cs_net_block(net, "all");
    const cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 2), 8, 4);
    const cs_tensor qkv[] = {x, x, x};
    cs_net_cross_entropy(net, "loss", cs_net_attention(net, "attention", qkv, &attention));
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
}

/* The weights of 2 x 2 tokens have 8 bytes in bf16. A product writes them, the softmax reads and
 * writes, a product reads. Backward the product with values has two gradients, which read them and
 * write theirs, the softmax reads both and writes, and two products read that. Dropout reads and
 * writes once more each way, with a mask of 4 bytes. */
static void moves_weights(void **state)
{
    (void)state;
    static const struct {
        double dropout, forward, backward;
    } rows[] = {{0, 4 * 8, 7 * 8}, {0.1, 6 * 8 + 4, 9 * 8 + 4}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net math = {0}, flash = {0};
        cs_op_cost more, less;
        build_attention(&math, CS_ATTENTION_MATH, true, rows[i].dropout);
        build_attention(&flash, CS_ATTENTION_FLASH, true, rows[i].dropout);
        cs_op_cost_of(&math, op_named(&math, "attention"), 1, CS_PRECISION_BF16, &more);
        cs_op_cost_of(&flash, op_named(&flash, "attention"), 1, CS_PRECISION_BF16, &less);
        expect_double("forward", rows[i].forward, more.forward.bytes - less.forward.bytes);
        expect_double("backward", rows[i].backward,
                      more.backward_input.bytes - less.backward_input.bytes);
        cs_net_finish(&math);
        cs_net_finish(&flash);
    }
}

/* The weights of 2 x 2 tokens have 8 bytes in bf16. Scaling and masking them, apart, read and write
 * them once each; backward so does scaling, and a causal mask, which selects; a fused kernel has no
 * weights in memory. A softmax with the causal mask in it reads half of them, backward half of them
 * and half of their gradient. */
static void scales_weights_apart(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_attention_kernel kernel;
        bool causal;
        int forward, backward;
        double unread, unread_backward;
    } rows[] = {
        {"fused", CS_ATTENTION_FLASH, true, 0, 0, 0, 0},
        {"causal", CS_ATTENTION_MATH, true, 2, 2, 4, 8},
        {"in both directions", CS_ATTENTION_MATH, false, 2, 1, 0, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net net = {0};
        build_attention(&net, rows[i].kernel, rows[i].causal, 0);
        const cs_op_cost fused = fused_cost(&net, "attention", true);
        const cs_op_cost apart = fused_cost(&net, "attention", false);
        expect_double(rows[i].name, rows[i].forward * 2 * 8 + rows[i].unread,
                      apart.forward.bytes - fused.forward.bytes);
        expect_double(rows[i].name, rows[i].backward * 2 * 8 + rows[i].unread_backward,
                      apart.backward_input.bytes - fused.backward_input.bytes);
        expect_int(rows[i].name, rows[i].forward, apart.forward.launches - fused.forward.launches);
        expect_int(rows[i].name, rows[i].backward,
                   apart.backward_input.launches - fused.backward_input.launches);
        cs_net_finish(&net);
    }
}

/* Two tokens of 4 features have 16 bytes in bf16. Attention without a fused kernel has a kernel
 * that reads and writes its result, and one backward for the gradients of its three inputs; with
 * dropout one more each. The causal softmax leaves out 4 bytes of weights, backward 8. */
static void copies_around_attention(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_attention_kernel kernel;
        double dropout;
        int64_t kernels;
        double forward, backward;
    } rows[] = {
        {"fused", CS_ATTENTION_FLASH, 0.1, 0, 0, 0},
        {"math", CS_ATTENTION_MATH, 0, 1, 2 * 16 - 4, 2 * 3 * 16 - 8},
        {"with dropout", CS_ATTENTION_MATH, 0.1, 2, 2 * 16 - 4, 2 * 3 * 16 - 8},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net net = {0};
        cs_op_cost plain;
        build_attention(&net, rows[i].kernel, true, rows[i].dropout);
        cs_op_cost_of(&net, op_named(&net, "attention"), 1, CS_PRECISION_BF16, &plain);
        const cs_op_cost cost = fused_cost(&net, "attention", true);
        const cs_pass_cost *back = &cost.backward_input;
        expect_int(rows[i].name, rows[i].kernels, cost.forward.launches - plain.forward.launches);
        expect_int(rows[i].name, rows[i].kernels, back->launches - plain.backward_input.launches);
        expect_double(rows[i].name, rows[i].forward, cost.forward.bytes - plain.forward.bytes);
        expect_double(rows[i].name, rows[i].backward, back->bytes - plain.backward_input.bytes);
        cs_net_finish(&net);
    }
}

/* 2 tokens of 6 features in bf16 have 24 bytes. Written out forward: x^3 (a tensor read, one
 * written), a x^3 (2), the sum with x (3), c times it (2), tanh (2), 1 + (2), x / 2 (2), the
 * product
 * (3): 18 in 8 kernels. Backward: the gradients of the two factors (6), of the tanh (3), and of
 * three products with numbers (2 each), 3 x^2 in two kernels (4) and its product (3), and x, which
 * three read, takes two sums (6): 28 in 11. A kernel for all of it moves 2 and 3. */
static void writes_out_gelu(void **state)
{
    (void)state;
    for (int out = 0; out < 2; out++) {
        const cs_runtime_kernels kernels = {.given = true, .written_out = out > 0};
        cs_op_cost gelu;
        cs_net net = {0};
        cs_error_init(&error);
        cs_net_begin(&net, "n", &error);
        cs_net_block(&net, "all");
        const cs_tensor x = cs_net_embedding(&net, "embedding", cs_net_token_ids(&net, 2), 8, 6);
        cs_net_cross_entropy(&net, "loss", cs_net_gelu(&net, "gelu", x));
        assert_int_equal(cs_net_end(&net), CS_OK);
        cs_op_cost_of(&net, op_named(&net, "gelu"), 1, CS_PRECISION_BF16, &gelu);
        cs_runtime_kernels_fuse(&kernels, &net, op_named(&net, "gelu"), &gelu);
        expect_double("forward", (out ? 18 : 2) * 24, gelu.forward.bytes);
        expect_double("backward", (out ? 28 : 3) * 24, gelu.backward_input.bytes);
        expect_int("kernels", out ? 8 : 1, gelu.forward.launches);
        expect_int("kernels backward", out ? 11 : 1, gelu.backward_input.launches);
        cs_net_finish(&net);
    }
}

/* Of 2 tokens of 6 features in bf16, 24 bytes. Forward the half that is negated is read and written
 * (a tensor), both halves are concatenated (2), two products with a sine and a cosine (2 each), and
 * their sum (3): 10 in 5 kernels. Backward two products (4), a negation of a half (1), a stack (2),
 * and the sum of both gradients (3): 10 in 5. A kernel for all of it moves 2 each way. */
static void rotates_eagerly(void **state)
{
    (void)state;
    for (int eager = 0; eager < 2; eager++) {
        const cs_runtime_kernels kernels = {
            .given = true, .fused = true, .eager_rotary = eager > 0};
        cs_op_cost cost;
        cs_net net = {0};
        cs_error_init(&error);
        cs_net_begin(&net, "n", &error);
        cs_net_block(&net, "all");
        const cs_tensor x = cs_net_embedding(&net, "embedding", cs_net_token_ids(&net, 2), 8, 6);
        cs_net_cross_entropy(&net, "loss", cs_net_rotary(&net, "rotary", x));
        assert_int_equal(cs_net_end(&net), CS_OK);
        cs_op_cost_of(&net, op_named(&net, "rotary"), 1, CS_PRECISION_BF16, &cost);
        cs_runtime_kernels_fuse(&kernels, &net, op_named(&net, "rotary"), &cost);
        expect_double("forward", (eager ? 10 : 2) * 24, cost.forward.bytes);
        expect_double("backward", (eager ? 10 : 2) * 24, cost.backward_input.bytes);
        expect_int("kernels", eager ? 5 : 1, cost.forward.launches);
        expect_int("kernels backward", eager ? 5 : 1, cost.backward_input.launches);
        cs_net_finish(&net);
    }
}

/* A gate's activation has a kernel of its own, which reads and writes 24 bytes, or is part of the
 * product with the other half. */
static void divides_a_gate(void **state)
{
    (void)state;
    for (int eager = 0; eager < 2; eager++) {
        const cs_runtime_kernels kernels = {.given = true, .fused = true, .eager_gate = eager > 0};
        cs_op_cost cost;
        cs_net net = {0};
        cs_error_init(&error);
        cs_net_begin(&net, "n", &error);
        cs_net_block(&net, "all");
        const cs_tensor x = cs_net_embedding(&net, "embedding", cs_net_token_ids(&net, 2), 8, 6);
        const cs_tensor gate = cs_net_silu(&net, "silu", x);
        cs_net_cross_entropy(&net, "loss", cs_net_mul(&net, "mul", gate, x));
        assert_int_equal(cs_net_end(&net), CS_OK);
        cs_op_cost_of(&net, op_named(&net, "silu"), 1, CS_PRECISION_BF16, &cost);
        cs_runtime_kernels_fuse(&kernels, &net, op_named(&net, "silu"), &cost);
        expect_double("forward", eager ? 2 * 24 : 0, cost.forward.bytes);
        expect_int("kernels", eager, cost.forward.launches);
        expect_int("backward", eager, cost.backward_input.launches > 0);
        cs_net_finish(&net);
    }
}

/* Four multiprocessors of 10^12 flop/s in all; sums of K products. Microseconds of tiles of 128 by
 * 128, or of 128 by 64 at 0.8, in waves of four:
 * 256 x 256, K = 64: four tiles, 2 x 256 x 256 x 64 flop: 8.388608
 * 128 x 640, K = 64: five tiles take two waves, as long as 8: 16.777216; ten of 64, three waves, as
 *   long as 12: 12 x 128 x 64 x 128 / 0.8: 15.72864
 * 128 x 128, K = 1024: two tiles of 64, in two parts of the sums, fill a wave: 128 x 128 x 2048 /
 * 0.8
 *   = 41.94304; two parts of 65,536 bytes are written and read at 10^12 bytes/s: 0.262144 more
 * 128 x 128, K = 2048: a tile in four parts: 128 x 128 x 4096 = 67.108864, and 0.524288
 * 100 x 128, K = 1024: as a whole tile
 * all of it at once where tiles are not known.
 * In bf16 tiles are 256 by 128 or the other way round, narrower ones reach 0.93 or 0.865:
 * 256 x 512, K = 64: four tiles in a wave: 2 x 256 x 512 x 64 = 16.777216 (not 8 of 128 by 128 in
 *   two waves, / 0.93)
 * 256 x 128, K = 64: a tile of 256 by 128, as long as four: 16.777216; two of 128 by 128, as long
 *   as four of those: 8.388608 / 0.93 = 9.020009; four of 128 by 64: 4 x 2 x 128 x 64 x 64 / 0.865
 *   = 4.848906
 * with 0.5 us before each wave, and half of a result of 2 bytes at 10^12 bytes/s:
 *   256 x 512: 0.5 + 0.131072 more
 *   1,024 x 512, K = 64: 16 tiles in four waves: 4 x (16.777216 + 0.5) + 0.524288
 * part of another's product, 256 x 128: a quarter of a wave of 256 by 128: 4.194304, with its
 *   quarter of 0.5 and 0.032768
 * 64 x 64, K = 16 of 4096 bytes that two operands and the result have: moving takes longer; other
 *   kernels of the pass move 1,000,000 bytes besides: 1 us */
typedef struct tiled_row {
    const char *name;
    cs_precision precision;
    double rows, columns, products;
    bool known, filled, shared;
    double moved, beside, microseconds;
} tiled_row;

static double seconds_of_row(const tiled_row *row)
{
    cs_tiling tiling = {
        .multiprocessors = 4, .fill = row->filled ? 500000 : 0, .written = row->filled ? 0.5 : 0};
    cs_efficiency all = {.compute = 1, .memory = 1};
    const cs_accelerator device = {
        .bandwidth = 1e12,
        .peaks[CS_PRECISION_FP32] = 1e12,
        .peaks[CS_PRECISION_BF16] = 1e12,
        .training = {
            .single = &all, .matrix = &all, .memory = &all, .tiling = row->known ? &tiling : NULL}};
    const cs_op op = {.kind = CS_OP_LINEAR};
    const cs_pass_cost cost = {.flop = 2 * row->rows * row->columns * row->products,
                               .bytes = row->moved + row->beside,
                               .launches = !row->shared,
                               .product_bytes = row->moved,
                               .result_bytes = 2 * row->rows * row->columns,
                               .rows = row->rows,
                               .columns = row->columns};
    const cs_runtime_kernels kernels = {.given = true};
    return cs_runtime_kernels_seconds(&kernels, &device, &op, &cost, CS_PASS_FORWARD,
                                      row->precision);
}

static void computes_tiles_in_waves(void **state)
{
    (void)state;
    static const tiled_row rows[] = {
        {"a wave", CS_PRECISION_FP32, 256, 256, 64, true, false, false, 0, 0, 8.388608},
        {"more than one", CS_PRECISION_FP32, 128, 640, 64, true, false, false, 0, 0, 15.72864},
        {"a sum in two parts", CS_PRECISION_FP32, 128, 128, 1024, true, false, false, 0, 0,
         42.205184},
        {"in four", CS_PRECISION_FP32, 128, 128, 2048, true, false, false, 0, 0, 67.633152},
        {"part of a tile", CS_PRECISION_FP32, 100, 128, 1024, true, false, false, 0, 0,
         42.205184 - 0.262144 * 28 / 128},
        {"tiles unknown", CS_PRECISION_FP32, 128, 640, 64, false, false, false, 0, 0, 10.48576},
        {"large tiles", CS_PRECISION_BF16, 256, 512, 64, true, false, false, 0, 0, 16.777216},
        {"small ones", CS_PRECISION_BF16, 256, 128, 64, true, false, false, 0, 0,
         4 * 2 * 128.0 * 64 * 64 * 4 / 4 / 1e6 / 0.865},
        {"filled and written", CS_PRECISION_BF16, 256, 512, 64, true, true, false, 0, 0, 17.408288},
        {"four waves", CS_PRECISION_BF16, 1024, 512, 64, true, true, false, 0, 0,
         4 * 17.277216 + 0.524288},
        {"part of a product", CS_PRECISION_BF16, 256, 128, 64, true, true, true, 0, 0,
         4.194304 + 0.125 + 0.032768},
        {"moved", CS_PRECISION_BF16, 64, 64, 16, true, false, false, 4e6, 0, 4},
        {"beside", CS_PRECISION_BF16, 64, 64, 16, true, false, false, 4e6, 1e6, 5},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const double seconds = seconds_of_row(&rows[i]);
        if (!(fabs(seconds * 1e6 - rows[i].microseconds) < 1e-9))
            fail_msg("%s: expected %.9g us, got %.9g us", rows[i].name, rows[i].microseconds,
                     seconds * 1e6);
    }
}

/* 8 experts' products start one after another on four streams, so in two rounds; products of
 * modules on one stream. A kernel starts in a microsecond. */
static void modules_start_on_one_stream(void **state)
{
    (void)state;
    static const struct {
        bool loop, modules;
        double microseconds;
    } rows[] = {{false, false, 1}, {true, false, 2}, {true, true, 8}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_efficiency all = {.compute = 1, .memory = 1};
        const cs_accelerator device = {.bandwidth = 1e12,
                                       .launch = 1000000,
                                       .peaks[CS_PRECISION_FP32] = 1e12,
                                       .training = {.single = &all, .memory = &all}};
        const cs_op op = {.kind = CS_OP_GROUPED_LINEAR, .experts = 8};
        const cs_pass_cost cost = {.launches = 1};
        const cs_runtime_kernels kernels = {
            .given = true, .expert_loop = rows[i].loop, .expert_modules = rows[i].modules};
        expect_double("us", rows[i].microseconds,
                      1e6 * cs_runtime_kernels_seconds(&kernels, &device, &op, &cost,
                                                       CS_PASS_FORWARD, CS_PRECISION_FP32));
    }
}

/* ---- the host ---- */

/* 2 tokens of 4 features, one linear layer, the loss. */
static void build_chain(cs_net *net)
{
    cs_net_begin(net, "n", &error);
    cs_net_block(net, "all");
    const cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 2), 8, 4);
    cs_net_cross_entropy(net, "loss", cs_net_linear(net, "down", x, &(cs_linear){.out = 8}));
    assert_int_equal(cs_net_end(net), CS_OK);
}

/* Seconds of a layer whose host begins when its device does. */
static double seconds_of_layer(const cs_layer *layer, bool backward)
{
    const cs_host_times *host = &layer->host;
    const cs_time device = layer->backward_input + layer->backward_weight;
    const cs_time started = host->backward_input + host->backward_weight;
    return backward
               ? cs_time_seconds(device > started ? device : started)
               : cs_time_seconds(layer->forward > host->forward ? layer->forward : host->forward);
}

static double seconds_with(cs_runtime_kernels kernels, cs_weight_gradients gradients, bool backward)
{
    cs_net net = {0};
    cs_model model = {0};
    cs_accelerator device;
    cs_error_init(&error);
    assert_int_equal(cs_accelerator_load("h100", NULL, &device, &error), CS_OK);
    const cs_net_options how = {.batch_size = 1,
                                .granularity = CS_GRANULARITY_LAYER,
                                .precision = CS_PRECISION_BF16,
                                .kernels = kernels,
                                .kept = {.weight_gradients = gradients},
                                .device = &device,
                                .source = "test"};
    double seconds = -1;
    build_chain(&net);
    assert_int_equal(cs_net_model(&net, &how, &model, &error), CS_OK);
    for (uint32_t l = 0; l < model.n_layers; l++) {
        const cs_layer *layer = &model.layers[l];
        if (strstr(layer->name, "down"))
            seconds = seconds_of_layer(layer, backward);
    }
    cs_model_finish(&model);
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
    return seconds;
}

static double seconds_of_down(cs_runtime_kernels kernels, bool backward)
{
    return seconds_with(kernels, CS_WEIGHT_GRADIENTS_IN_PLACE, backward);
}

/* A product is one operator each way, one kernel forward and two backward, of microseconds at most
 * on an H100: a host that takes a millisecond for each operator, or for each kernel, is slower,
 * unless CUDA graphs start them; one of a picosecond is not. */
static void waits_for_the_host(void **state)
{
    (void)state;
    const cs_time millisecond = INT64_C(1000000000);
    const cs_runtime_kernels slow = {.given = true, .host = millisecond};
    const cs_runtime_kernels starts = {.given = true, .host_kernel = millisecond};
    const cs_runtime_kernels fast = {.given = true, .host = 1}, none = {.given = true};
    expect_seconds("forward", 1e-3, seconds_of_down(slow, false));
    expect_seconds("backward", 1e-3, seconds_of_down(slow, true));
    expect_seconds("kernels forward", 1e-3, seconds_of_down(starts, false));
    expect_seconds("kernels backward", 2e-3, seconds_of_down(starts, true));
    assert_true(seconds_of_down(none, false) < 1e-4);
    expect_seconds("a fast host", seconds_of_down(none, false), seconds_of_down(fast, false));
    cs_runtime_kernels blocking = starts;
    blocking.launch_blocking = true;
    expect_seconds("turns forward", seconds_of_down(none, false) + 1e-3,
                   seconds_of_down(blocking, false));
    expect_seconds("turns backward", seconds_of_down(none, true) + 2e-3,
                   seconds_of_down(blocking, true));
    cs_runtime_kernels graphs = slow;
    graphs.graphs = true;
    expect_seconds("graphs", seconds_of_down(none, true), seconds_of_down(graphs, true));
}

/* For that product, deterministic algorithms fill the result, and backward the gradient of the
 * input; a gradient of weights that is a separate tensor is filled as well, and added to the
 * sum. */
static void starts_more_kernels(void **state)
{
    (void)state;
    const cs_time millisecond = INT64_C(1000000000);
    const cs_runtime_kernels usual = {.given = true, .host_kernel = millisecond};
    cs_runtime_kernels fills = usual;
    fills.deterministic = true;
    expect_seconds("filled", 2e-3, seconds_with(fills, CS_WEIGHT_GRADIENTS_APART, false));
    expect_seconds("in place", 3e-3, seconds_with(fills, CS_WEIGHT_GRADIENTS_IN_PLACE, true));
    expect_seconds("apart", 5e-3, seconds_with(fills, CS_WEIGHT_GRADIENTS_APART, true));
    expect_seconds("added", 3e-3, seconds_with(usual, CS_WEIGHT_GRADIENTS_APART, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_take_longer),
        cmocka_unit_test(levels_reach_their_own),
        cmocka_unit_test(forwards_hide_gathers),
        cmocka_unit_test(products_hide_chunks),
        cmocka_unit_test(products_hide_what_they_last),
        cmocka_unit_test(layers_hide_what_they_last),
        cmocka_unit_test(folded_replicas_hide_as_much),
        cmocka_unit_test(experts_share_links),
        cmocka_unit_test(dispatches_have_their_own),
        cmocka_unit_test(operands_are_gathered_cast),
        cmocka_unit_test(modules_start_on_one_stream),
        cmocka_unit_test(merges_in_a_ring),
        cmocka_unit_test(fuses),
        cmocka_unit_test(products_are_of_a_block),
        cmocka_unit_test(leaves_products_apart),
        cmocka_unit_test(stops_early),
        cmocka_unit_test(leaves_out_exchanges),
        cmocka_unit_test(copies_around_attention),
        cmocka_unit_test(moves_weights),
        cmocka_unit_test(scales_weights_apart),
        cmocka_unit_test(writes_out_gelu),
        cmocka_unit_test(rotates_eagerly),
        cmocka_unit_test(divides_a_gate),
        cmocka_unit_test(computes_tiles_in_waves),
        cmocka_unit_test(waits_for_the_host),
        cmocka_unit_test(starts_more_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

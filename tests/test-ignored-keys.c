/* Keys that change nothing without another one: that the scenario's warning says so, and is right;
 * that it is not there where the key has its company, or where a runtime gives the key. */
#include "tests/expect.h"
#include "tests/run-scenario.h"

/* A chain of layers, and a small GPT, each on two devices that divide the samples; the GPT's
 * messages are delays. */
#define CHAIN                                                                                      \
    "'model': {'uniform': {'layers': 2, 'forward': '1 s', 'backward': '2 s', 'weights': '1 GB', "  \
    "'activation': '1 B'}}, " PLATFORM
#define NETWORK(precision)                                                                         \
    "'model': {'name': 'gpt', 'parameters': {'layers': 1, 'hidden': 64, 'heads': 4, 'sequence': "  \
    "64, 'vocabulary': 64}, 'device': 'h100', 'precision': '" precision "', 'optimizer': 'adam', " \
    "'batch_size': 4}, " PLATFORM
#define PLATFORM                                                                                   \
    "'platform': {'topology': 'nvlink_switch', 'bandwidth': '1 GB/s', 'latency': '1 us'}, "        \
    "'schedule': {'kind': 'sequential', 'micro_batches': 2}"
#define DATA ", 'parallel': {'data': 2"

/* A pipeline of eight stages, whose messages cross what the topology has. */
#define PIPELINE                                                                                   \
    "'model': {'uniform': {'layers': 8, 'forward': '1 ms', 'backward': '2 ms', 'weights': '1 "     \
    "MB', "                                                                                        \
    "'activation': '10 MB'}}, 'schedule': {'kind': 'gpipe', 'micro_batches': 4}, "                 \
    "'platform': {'devices': 8, "
#define UP_AND_DOWN "'topology': 'fat_tree', 'down': [4, 2], 'up': [1], 'bandwidth': '1 GB/s'"
#define NODES       ", 'gpus_per_node': 2, 'network': {'topology': 'ring', 'bandwidth': '1 GB/s'}"

static const char
    named[] = "a named model",
    ideal[] = "a \"name\" other than \"ideal\"", narrow[] = "the precisions fp8, mxfp8 and nvfp4",
    delays[] = "a \"fidelity\" other than \"flow\"", played[] = "\"allocator\": \"pytorch\"",
    experts[] = "\"expert\" above 1", zero_3[] = "\"zero\": 3",
    kept[] = "\"zero\": 3 and without \"gather_once\"", ecmp[] = "\"routing\": \"ecmp\"",
    undescribed[] = "switches that \"down\" and \"up\" do not describe",
    nics[] = "\"nics\" above 0", sockets[] = "\"sockets\" above 1",
    own_nics[] = "nodes without their own NICs",
    meeting[] = "a \"sharing\" with contention between messages: max_min, or phi with \"count\"",
    linked[] = "a topology that has links",
    meshes[] = "a section \"parallel\" and mini-batches that do not overlap";

typedef struct ignored {
    const char *key;      /* JSON pointer */
    const char *scenario; /* all but the braces around it, and the end of the key's section */
    const char *section;  /* ", 'memory': {" if the scenario does not have it */
    const char *value;    /* the key with its value */
    const char *with;     /* condition for an effect */
} ignored;

static const ignored rows[] = {
    {"/parallel/sequence_parallel", NETWORK("bf16") DATA, "", "'sequence_parallel': true",
     "\"tensor\" above 1"},
    {"/parallel/scatter_gather", NETWORK("bf16") DATA, "", "'scatter_gather': true",
     "\"tensor\" above 1 and without \"sequence_parallel\""},
    {"/parallel/regather", NETWORK("bf16") DATA, "", "'regather': false", "\"sequence_parallel\""},
    {"/parallel/context_method", NETWORK("bf16") DATA, "", "'context_method': 'all_gather'",
     "\"context\" above 1"},
    {"/parallel/space_until", NETWORK("bf16") DATA, "", "'space_until': 'head'", "\"space\""},
    {"/parallel/shard", NETWORK("bf16") DATA, "", "'shard': 2", "\"zero\" above 0"},
    {"/parallel/prefetch", NETWORK("bf16") DATA ", 'zero': 2", "", "'prefetch': 0", zero_3},
    {"/parallel/keep_gathered", NETWORK("bf16") DATA ", 'zero': 2", "", "'keep_gathered': true",
     kept},
    {"/parallel/keep_gathered", NETWORK("bf16") DATA ", 'zero': 3, 'gather_once': true", "",
     "'keep_gathered': true", kept},
    {"/parallel/narrow_gathers", NETWORK("bf16") DATA, "", "'narrow_gathers': false",
     "\"tensor\" above 1 and the precisions fp8, mxfp8 and nvfp4 of a named model"},
    {"/parallel/gather_once", NETWORK("bf16") DATA ", 'zero': 2", "", "'gather_once': true",
     zero_3},
    {"/parallel/accumulate", NETWORK("bf16") DATA ", 'zero': 1", "", "'accumulate': true",
     "\"zero\" 2 or 3"},
    {"/parallel/bucket", NETWORK("bf16") DATA ", 'zero': 3", "", "'bucket': '25 MB'",
     "\"zero\" below 3"},
    {"/parallel/dispatcher", NETWORK("bf16") DATA, "", "'dispatcher': 'once_per_node'", experts},
    {"/parallel/expert_imbalance", NETWORK("bf16") DATA, "", "'expert_imbalance': 2", experts},
    {"/parallel/expert_routing", NETWORK("bf16") DATA, "", "'expert_routing': {'drawn': 'uniform'}",
     experts},
    {"/collectives/sharing", CHAIN DATA "}", ", 'collectives': {'fidelity': 'flow'",
     "'sharing': 'max_min'", delays},
    {"/collectives/reached", CHAIN DATA "}", ", 'collectives': {'fidelity': 'flow'",
     "'reached': 0.5", delays},
    {"/collectives/start", CHAIN DATA "}", ", 'collectives': {'fidelity': 'flow'",
     "'start': '1 ms'", delays},
    {"/collectives/tensor_overlap", CHAIN DATA "}", ", 'collectives': {'fidelity': 'flow'",
     "'tensor_overlap': 0.5", delays},
    {"/collectives/expert_overlap", CHAIN DATA "}", ", 'collectives': {'fidelity': 'flow'",
     "'expert_overlap': 0.5", delays},
    {"/collectives/nccl", CHAIN DATA "}", ", 'collectives': {'fidelity': 'flow'",
     "'nccl': 'hopper'", delays},
    {"/collectives/nccl_algorithm", CHAIN DATA "}", ", 'collectives': {'fidelity': 'analytic'",
     "'nccl_algorithm': 'tree'", "\"nccl\""},
    {"/runtime/fused", CHAIN, ", 'runtime': {'name': 'torchtitan'", "'fused': true", named},
    {"/runtime/host", CHAIN, ", 'runtime': {'name': 'ideal'", "'host': '1 s'", named},
    {"/runtime/host_call", CHAIN, ", 'runtime': {'name': 'ideal'", "'host_call': '1 s'", named},
    {"/runtime/host_kernel", CHAIN, ", 'runtime': {'name': 'ideal'", "'host_kernel': '1 s'", named},
    {"/runtime/host_product_backward", CHAIN, ", 'runtime': {'name': 'ideal'",
     "'host_product_backward': '1 s'", named},
    {"/runtime/compile", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'", "'compile': true",
     ideal},
    {"/runtime/foreach_optimizer", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'",
     "'foreach_optimizer': true", ideal},
    {"/runtime/fused", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'", "'fused': true", ideal},
    {"/runtime/separate_products", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'",
     "'separate_products': true", ideal},
    {"/runtime/separate_products", NETWORK("bf16"),
     ", 'runtime': {'name': 'deepspeed', 'fused': false", "'separate_products': true", "\"fused\""},
    {"/runtime/written_out", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'",
     "'written_out': true", ideal},
    {"/runtime/written_out", NETWORK("bf16"), ", 'runtime': {'name': 'megatron-core'",
     "'written_out': true", "\"fused\": false"},
    {"/runtime/flash", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'", "'flash': 'cudnn'", ideal},
    {"/runtime/loss", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'", "'loss': 'eager'", ideal},
    {"/runtime/launch_blocking", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'",
     "'launch_blocking': true", ideal},
    {"/runtime/cuda_graphs", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'",
     "'cuda_graphs': true", ideal},
    {"/runtime/expert_loop", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'",
     "'expert_loop': true", ideal},
    {"/runtime/expert_modules", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'",
     "'expert_modules': true", ideal},
    {"/runtime/expert_modules", NETWORK("bf16"), ", 'runtime': {'name': 'deepspeed'",
     "'expert_modules': true", "\"expert_loop\""},
    {"/runtime/fused_experts", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'",
     "'fused_experts': true", ideal},
    {"/runtime/current_scaling", NETWORK("fp8"), ", 'runtime': {'name': 'ideal'",
     "'current_scaling': true", ideal},
    {"/runtime/current_scaling", NETWORK("bf16"), ", 'runtime': {'name': 'megatron-core'",
     "'current_scaling': true", "the precision fp8"},
    {"/runtime/deterministic", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'",
     "'deterministic': true", ideal},
    {"/runtime/kernels", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'", "'kernels': 3", ideal},
    {"/runtime/eager_ring", NETWORK("bf16"), ", 'runtime': {'name': 'deepspeed'",
     "'eager_ring': true", "\"context\" above 1, in rings"},
    {"/runtime/summed_ring", NETWORK("bf16"), ", 'runtime': {'name': 'deepspeed'",
     "'summed_ring': true", "\"context\" above 1, in rings, and \"eager_ring\": false"},
    {"/runtime/gradient_passes", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'",
     "'gradient_passes': 3", ideal},
    {"/runtime/early_stop", CHAIN, ", 'runtime': {'name': 'ideal'", "'early_stop': true", named},
    {"/runtime/early_stop", NETWORK("bf16"), ", 'runtime': {'name': 'deepspeed'",
     "'early_stop': true", "\"recompute\": true"},
    {"/runtime/counts_zeros", NETWORK("bf16"), ", 'runtime': {'name': 'ideal'",
     "'counts_zeros': true", ideal},
    {"/memory/fused", CHAIN, ", 'memory': {'libraries': []", "'fused': ['norm']", named},
    {"/memory/weight_gradients", CHAIN, ", 'memory': {'libraries': []",
     "'weight_gradients': 'apart'", named},
    {"/memory/attention_buffer", CHAIN, ", 'memory': {'libraries': []", "'attention_buffer': true",
     named},
    {"/memory/attention_copy", CHAIN, ", 'memory': {'libraries': []", "'attention_copy': true",
     named},
    {"/memory/padding_masks", CHAIN, ", 'memory': {'libraries': []", "'padding_masks': true",
     named},
    {"/memory/gather_buffer", CHAIN, ", 'memory': {'libraries': []",
     "'gather_buffer': 'last_matrix'", named},
    {"/memory/inputs", CHAIN, ", 'memory': {'libraries': []", "'inputs': '1 GB'", named},
    {"/memory/deterministic_multiprocessors", CHAIN, ", 'memory': {'libraries': []",
     "'deterministic_multiprocessors': 132", named},
    {"/memory/routed_weights", CHAIN, ", 'memory': {'libraries': []",
     "'routed_weights': 'features'", named},
    {"/memory/loss", CHAIN, ", 'memory': {'libraries': []", "'loss': 'eager'", named},
    {"/memory/narrow_weights", CHAIN, ", 'memory': {'libraries': []", "'narrow_weights': 'alone'",
     named},
    {"/memory/narrow_weights", NETWORK("bf16"), ", 'runtime': 'ideal', 'memory': {'libraries': []",
     "'narrow_weights': 'alone'", narrow},
    {"/memory/narrow_copies", NETWORK("bf16"), ", 'runtime': 'ideal', 'memory': {'libraries': []",
     "'narrow_copies': 1", narrow},
    {"/memory/narrow_inputs", NETWORK("bf16"), ", 'runtime': 'ideal', 'memory': {'libraries': []",
     "'narrow_inputs': false", narrow},
    {"/memory/cublas_workspace", NETWORK("bf16"),
     ", 'memory': {'libraries': ['transformer_engine']", "'cublas_workspace': '1 GB'",
     "\"cublas\" in \"libraries\""},
    {"/memory/weight_buffer", NETWORK("bf16"), ", 'runtime': 'ideal', 'memory': {'libraries': []",
     "'weight_buffer': true", played},
    {"/memory/receive_buffers", CHAIN, ", 'memory': {'libraries': []", "'receive_buffers': true",
     meshes},
    {"/memory/stage_results", CHAIN, ", 'memory': {'libraries': []", "'stage_results': 'last'",
     meshes},
    {"/memory/expandable_segments", NETWORK("bf16"),
     ", 'runtime': 'ideal', 'memory': {'libraries': []", "'expandable_segments': true", played},
    {"/memory/max_split_size", NETWORK("bf16"), ", 'runtime': 'ideal', 'memory': {'libraries': []",
     "'max_split_size': '30 MB'", played},
    {"/memory/garbage_collection_threshold", NETWORK("bf16"),
     ", 'runtime': 'ideal', 'memory': {'libraries': []", "'garbage_collection_threshold': 0.5",
     played},
    {"/platform/seed",
     PIPELINE "'topology': 'leaf_spine', 'hosts_per_leaf': 1, 'spines': 3, 'bandwidth': '1 GB/s', "
              "'routing': 'dmodk'",
     "", "'seed': 7", ecmp},
    {"/platform/seed", PIPELINE "'topology': 'fat_tree', 'radix': 4, 'bandwidth': '1 GB/s'", "",
     "'seed': 7", ecmp},
    {"/platform/radix", PIPELINE UP_AND_DOWN, "", "'radix': 4", undescribed},
    {"/platform/oversubscription", PIPELINE UP_AND_DOWN, "", "'oversubscription': 3", undescribed},
    {"/platform/nic_bandwidth", PIPELINE "'topology': 'pcie_tree'", "", "'nic_bandwidth': '1 MB/s'",
     nics},
    {"/platform/uplink_bandwidth", PIPELINE "'topology': 'pcie_tree', 'switches_per_socket': 0", "",
     "'uplink_bandwidth': '1 MB/s'", "\"switches_per_socket\" above 0"},
    {"/platform/socket_bandwidth", PIPELINE "'topology': 'pcie_tree', 'sockets': 1", "",
     "'socket_bandwidth': '1 MB/s'", sockets},
    {"/platform/socket_latency", PIPELINE "'topology': 'pcie_tree', 'sockets': 1", "",
     "'socket_latency': '1 ms'", sockets},
    {"/platform/pcie/bandwidth", PIPELINE "'topology': 'nvlink_mesh'", "",
     "'pcie': {'bandwidth': '1 MB/s'}", nics},
    {"/platform/pcie/latency", PIPELINE "'topology': 'nvswitch'", "", "'pcie': {'latency': '1 ms'}",
     nics},
    {"/platform/pcie/host_bandwidth", PIPELINE "'topology': 'dgx1'", "",
     "'pcie': {'host_bandwidth': '1 MB/s'}", nics},
    {"/platform/pcie/sockets", PIPELINE "'topology': 'dgx1'", "", "'pcie': {'sockets': 1}", nics},
    {"/platform/pcie/switches_per_socket", PIPELINE "'topology': 'nvswitch'", "",
     "'pcie': {'switches_per_socket': 1}", nics},
    {"/platform/pcie/gpus_per_switch", PIPELINE "'topology': 'nvlink_mesh'", "",
     "'pcie': {'gpus_per_switch': 3}", nics},
    {"/platform/nic_bandwidth",
     PIPELINE "'topology': 'cluster', 'node': {'topology': 'pcie_tree', 'nics': 1}" NODES, "",
     "'nic_bandwidth': '1 MB/s'", own_nics},
    {"/platform/nic_latency",
     PIPELINE "'topology': 'cluster', 'node': {'topology': 'pcie_tree', 'nics': 1}" NODES, "",
     "'nic_latency': '1 ms'", own_nics},
    {"/platform/local_bandwidth",
     PIPELINE "'topology': 'dragonfly', 'routers': 1, 'hosts': 4, 'global_links': 1, 'bandwidth': "
              "'1 GB/s'",
     "", "'local_bandwidth': '1 MB/s'", "\"routers\" above 1"},
    {"/platform/messages", PIPELINE "'topology': 'pcie', 'bandwidth': '1 GB/s', 'sharing': 'none'",
     "", "'messages': 'independent'", meeting},
    {"/platform/messages",
     PIPELINE "'topology': 'pcie', 'bandwidth': '1 GB/s', 'sharing': 'phi', 'phi': 2", "",
     "'messages': 'independent'", meeting},
    {"/platform/jitter", PIPELINE "'topology': 'ideal'", "", "'jitter': {'mean': 0.5}", linked},
    {"/platform/background", PIPELINE "'topology': 'ideal'", "",
     "'background': {'flows': 1, 'bytes': '1 GB'}", linked},
};

/* The result of a scenario with this behind its section, and its warnings. */
static void run_with(const ignored *row, const char *end, scenario_run *run)
{
    cs_error error;
    cs_error_init(&error);
    const cs_status status =
        scenario_run_init(run, &error, "{'schema_version': 1, 'name': 't', %s%s%s}}", row->scenario,
                          row->section, end);
    if (status != CS_OK)
        fail_msg("%s: %s", row->key, error.text);
}

/* A platform may have other links where no message goes, and so other numbers of links: of these
 * the hash does not speak, but the times of all tasks do. */
static void expect_same(const char *key, const cs_trace *without, const cs_trace *with)
{
    if (strncmp(key, "/platform/", strlen("/platform/")) != 0)
        expect_bits(key, cs_trace_hash(without), cs_trace_hash(with));
    expect_int(key, without->n_tasks, with->n_tasks);
    for (uint32_t i = 0; i < without->n_tasks; i++) {
        expect_int(key, without->spans[i].start, with->spans[i].start);
        expect_int(key, without->spans[i].end, with->spans[i].end);
    }
}

static void warned_and_ignored(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run without, with;
        char end[200], expected[400];
        snprintf(end, sizeof(end), ", %s", rows[i].value);
        snprintf(expected, sizeof(expected), "test: %s: has an effect only with %s", rows[i].key,
                 rows[i].with);
        run_with(&rows[i], "", &without);
        run_with(&rows[i], end, &with);
        expect_text(rows[i].key, "", without.scenario.warnings.text);
        expect_text(rows[i].key, expected, with.scenario.warnings.text);
        expect_same(rows[i].key, &without.simulation.trace, &with.simulation.trace);
        scenario_run_finish(&without);
        scenario_run_finish(&with);
    }
}

/* Where they have an effect, and where a runtime gives them: none is warned of. */
static void not_warned(void **state)
{
    (void)state;
    static const ignored quiet[] = {
        {"an expert loop that waits for the host", NETWORK("bf16"),
         ", 'runtime': {'name': 'ideal', 'host_kernel': '1 us'", ", 'expert_loop': true", ""},
        {"kernels", NETWORK("bf16"), ", 'runtime': {'name': 'deepspeed'", ", 'kernels': 2", ""},
        {"scaling", NETWORK("fp8"), ", 'runtime': {'name': 'torchtitan'",
         ", 'current_scaling': true", ""},
        {"copies", NETWORK("fp8"), ", 'runtime': 'ideal', 'memory': {'narrow_inputs': false",
         ", 'narrow_copies': 1", ""},
        {"allocator", NETWORK("bf16"), ", 'runtime': 'ideal', 'memory': {'allocator': 'pytorch'",
         ", 'expandable_segments': true, 'weight_buffer': true", ""},
        {"delays", CHAIN DATA "}", ", 'collectives': {'reached': 0.5",
         ", 'nccl': 'hopper', 'nccl_algorithm': 'ring'", ""},
        {"FSDP", NETWORK("bf16") DATA ", 'zero': 3", "",
         ", 'prefetch': 2, 'keep_gathered': true, 'accumulate': true", ""},
        {"FSDP with a pipeline's rule", NETWORK("bf16") DATA ", 'zero': 3", "",
         ", 'gather_once': true", ""},
        {"a seed of hashes",
         PIPELINE "'topology': 'leaf_spine', 'hosts_per_leaf': 2, 'spines': 2, 'bandwidth': "
                  "'1 GB/s'",
         "", ", 'seed': 7", ""},
        {"attached NICs", PIPELINE "'topology': 'cluster', 'node': 'ideal'" NODES, "",
         ", 'nic_bandwidth': '1 GB/s', 'nic_latency': '1 us'", ""},
        {"PCIe between GPUs", PIPELINE "'topology': 'dgx1', 'relay': 'pcie'", "",
         ", 'pcie': {'bandwidth': '1 GB/s', 'socket_latency': '1 us'}", ""},
        {"PCIe to NICs", PIPELINE "'topology': 'nvswitch'", "",
         ", 'pcie': {'nics': 2, 'nic_bandwidth': '1 GB/s', 'latency': '1 us'}", ""},
        {"messages that meet", PIPELINE "'topology': 'pcie', 'bandwidth': '1 GB/s'", "",
         ", 'messages': 'independent', 'jitter': {'mean': 0.5}", ""},
        {"background of a pipeline", PIPELINE "'topology': 'pcie', 'bandwidth': '1 GB/s'",
         ", 'background': {'flows': 1, 'bytes': '1 MB'}}, 'collectives': {'fidelity': 'analytic'",
         "", ""},
        {"a runtime's kernels of a chain", CHAIN, ", 'runtime': {'name': 'megatron-core'", "", ""},
        {"a runtime's sums in a pipeline",
         NETWORK("bf16") ", 'parallel': {'pipeline': 1, 'data': 2}",
         ", 'runtime': {'name': 'torchtitan'", "", ""},
    };
    for (size_t i = 0; i < ROWS(quiet); i++) {
        scenario_run run;
        run_with(&quiet[i], quiet[i].value, &run);
        expect_text(quiet[i].key, "", run.scenario.warnings.text);
        scenario_run_finish(&run);
    }
}

/* A latency of the links changes no all-reduce with NCCL's model; without it does. */
static void latency_beside_nccl(void **state)
{
    (void)state;
    static const char text[] =
        "{'schema_version': 1, 'name': 't', 'model': {'uniform': {'layers': 2, 'forward': '1 ms', "
        "'backward': '2 ms', 'weights': '1 GB', 'activation': '1 B'}}, 'platform': {'topology': "
        "'nvlink_switch', 'devices': 2, 'bandwidth': '1 GB/s'%s}, 'schedule': {'kind': "
        "'sequential'}, 'parallel': {'data': 2}, 'collectives': {'fidelity': '%s', 'nccl': '%s'}}";
    static const char latency[] = ", 'latency': '9 us'";
    static const struct {
        const char *fidelity, *nccl, *warning;
        bool slower;
    } kinds[] = {
        {"analytic", "hopper",
         "test: /platform/latency: does not count for all-reduces, all-gathers and "
         "reduce-scatters, which take NCCL's latencies; with \"nccl\": \"none\" in /collectives "
         "they take this one",
         false},
        {"analytic", "none", "", true},
    };
    for (size_t i = 0; i < ROWS(kinds); i++) {
        scenario_run without, with;
        cs_error error;
        cs_error_init(&error);
        assert_int_equal(
            CS_OK, scenario_run_init(&without, &error, text, "", kinds[i].fidelity, kinds[i].nccl));
        assert_int_equal(CS_OK, scenario_run_init(&with, &error, text, latency, kinds[i].fidelity,
                                                  kinds[i].nccl));
        expect_text(kinds[i].nccl, kinds[i].warning, with.scenario.warnings.text);
        const cs_time alone = without.simulation.trace.makespan;
        expect_int(kinds[i].nccl, kinds[i].slower, with.simulation.trace.makespan > alone);
        scenario_run_finish(&without);
        scenario_run_finish(&with);
    }
}

/* Two devices that sum gradients during traffic from one to the other. Delays take as long as
 * without it, which the warning says; messages share the link. */
static void background_beside_delays(void **state)
{
    (void)state;
    static const char text[] =
        "{'schema_version': 1, 'name': 't', 'model': {'uniform': {'layers': 2, 'forward': '1 ms', "
        "'backward': '2 ms', 'weights': '1 GB', 'activation': '1 B'}}, 'platform': {'topology': "
        "'nvlink_switch', 'devices': 2, 'bandwidth': '1 GB/s'%s}, 'schedule': {'kind': "
        "'sequential'}, 'parallel': {'data': 2}, 'collectives': {'fidelity': '%s'}}";
    static const char traffic[] = ", 'background': {'pairs': [[0, 1]], 'bytes': '100 MB'}";
    static const struct {
        const char *fidelity, *warning;
        bool slower;
    } kinds[] = {
        {"analytic",
         "test: /platform/background: does not slow down collectives, because they are delays "
         "(/collectives/fidelity is \"analytic\"); with \"flow\" they share links",
         false},
        {"alpha_beta",
         "test: /platform/background: does not slow down collectives, because they are delays "
         "(/collectives/fidelity is \"alpha_beta\"); with \"flow\" they share links",
         false},
        {"flow", "", true},
        {"auto", "", true}, /* few messages are simulated */
    };
    for (size_t i = 0; i < ROWS(kinds); i++) {
        scenario_run without, with;
        cs_error error;
        cs_error_init(&error);
        assert_int_equal(CS_OK, scenario_run_init(&without, &error, text, "", kinds[i].fidelity));
        assert_int_equal(CS_OK, scenario_run_init(&with, &error, text, traffic, kinds[i].fidelity));
        expect_text(kinds[i].fidelity, kinds[i].warning, with.scenario.warnings.text);
        const cs_time alone = without.simulation.trace.makespan;
        expect_int(kinds[i].fidelity, kinds[i].slower, with.simulation.trace.makespan > alone);
        scenario_run_finish(&without);
        scenario_run_finish(&with);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warned_and_ignored),
        cmocka_unit_test(not_warned),
        cmocka_unit_test(latency_beside_nccl),
        cmocka_unit_test(background_beside_delays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Effect of each member of a runtime on a run, and the reported origin of its value. A member
 * without a row fails the test. */
#include "sim/run/scenario/runtime-section.h"
#include "sim/run/simulate.h"
#include "tests/expect.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    cs_scenario scenario;
    cs_simulation simulation;
} run;

/* Two layers of 1 s forward, 2 s backward and 1 GB of weights each, on two replicas that 1 GB/s
 * joins: a ring of two sums n GB in n s. 2 + 4 s are computed, then 2 GB are summed: 8 s. */
static const char uniform[] =
    "{\"schema_version\": 1, \"name\": \"t\", \"runtime\": {\"name\": \"ideal\"}, \"model\": "
    "{\"uniform\": {\"layers\": 2, \"forward\": \"1 s\", \"backward\": \"2 s\", \"weights\": \"1 "
    "GB\", \"activation\": \"1 B\"}}, \"platform\": {\"topology\": \"nvlink_switch\", \"devices\": "
    "2, \"bandwidth\": \"1 GB/s\", \"latency\": \"0 s\"}, \"parallel\": {\"data\": 2}, "
    "\"collectives\": {\"algorithm\": \"ring\", \"fidelity\": \"analytic\"}, \"schedule\": "
    "{\"kind\": \"sequential\", \"micro_batches\": 1}}";

/* The last stage of two sends what it made while the first one computes. */
static const char pipeline[] =
    "{\"schema_version\": 1, \"name\": \"t\", \"runtime\": {\"name\": \"ideal\"}, \"model\": "
    "{\"uniform\": {\"layers\": 2, \"forward\": \"1 s\", \"backward\": \"2 s\", \"activation\": "
    "\"1 "
    "GB\"}}, \"platform\": {\"topology\": \"nvlink_switch\", \"devices\": 2, \"bandwidth\": \"1 "
    "GB/s\", \"latency\": \"0 s\"}, \"schedule\": {\"kind\": \"gpipe\", \"micro_batches\": 2}}";

/* Two devices with two stages each. */
static const char interleaved[] =
    "{\"schema_version\": 1, \"name\": \"t\", \"runtime\": {\"name\": \"ideal\"}, \"model\": "
    "{\"uniform\": {\"layers\": 4, \"forward\": \"1 s\", \"backward\": \"2 s\", \"activation\": "
    "\"1 B\"}}, \"platform\": {\"topology\": \"nvlink_switch\", \"devices\": 2, \"bandwidth\": "
    "\"1 GB/s\", \"latency\": \"0 s\"}, \"schedule\": {\"kind\": \"interleaved_1f1b\", "
    "\"stages_per_device\": 2, \"micro_batches\": 2}}";

/* A forward takes the device 1 ms and the host 10, a backward 40 and 20; of each of two stages, or
 * of the only one with two micro-batches. */
#define HOSTS(layers, batch, devices, schedule)                                                    \
    "{\"schema_version\": 1, \"name\": \"t\", \"runtime\": {\"name\": \"ideal\"}, \"model\": "     \
    "{\"inline\": {\"schema_version\": 1, \"name\": \"h\", \"batch_size\": 1, \"input\": 0, "      \
    "\"provenance\": {\"source\": \"synthetic\", \"hardware\": \"none\", \"date\": "               \
    "\"1970-01-01\"}, "                                                                            \
    "\"layers\": [" layers "]}, \"batch_size\": " batch                                            \
    "}, \"platform\": {\"topology\": \"ideal\", "                                                  \
    "\"devices\": " devices "}, \"schedule\": {" schedule "}}"
#define HOST_LAYER(name)                                                                           \
    "{\"name\": \"" name "\", \"forward\": \"1 ms\", \"backward\": \"40 ms\", \"weights\": 0, "    \
    "\"output\": 0, \"kept\": 0, \"host_forward\": \"10 ms\", \"host_backward_input\": \"20 ms\"}"
static const char host_pipeline[] = HOSTS(HOST_LAYER("a") ", " HOST_LAYER("b"), "1", "2",
                                          "\"kind\": \"1f1b\", \"micro_batches\": 1");
static const char host_batches[] =
    HOSTS(HOST_LAYER("a"), "2", "1", "\"kind\": \"sequential\", \"micro_batches\": 2");

/* A GPT of two blocks in bf16, on two replicas. The runtime has no conventions of its own: all are
 * given where they would matter. */
#define NETWORK_ON(gpu)                                                                            \
    "{\"schema_version\": 1, \"name\": \"t\", \"runtime\": {\"name\": \"pytorch-ddp\", "           \
    "\"host_kernel\": "                                                                            \
    "0}, \"model\": {\"name\": \"gpt\", \"parameters\": {\"layers\": 2, \"hidden\": 256, "         \
    "\"heads\": "                                                                                  \
    "4, \"sequence\": 128, \"vocabulary\": 1024, \"intermediate\": 1024, \"dropout\": 0, "         \
    "\"attention\": \"math\"}, \"device\": \"" gpu "\", \"precision\": \"bf16\", \"optimizer\": "  \
    "\"adam\", \"batch_size\": 2}, \"platform\": {\"topology\": \"nvlink_switch\", \"devices\": "  \
    "2, "                                                                                          \
    "\"bandwidth\": \"1 GB/s\", \"latency\": \"0 s\", \"slowdown\": []}, \"parallel\": "           \
    "{\"data\": "                                                                                  \
    "2, "                                                                                          \
    "\"bucket\": 0}, \"collectives\": {\"algorithm\": \"ring\", \"fidelity\": \"analytic\", "      \
    "\"reached\": 1, \"start\": 0}, \"memory\": {\"allocator\": \"none\", \"weight_gradients\": "  \
    "\"in_place\", \"libraries\": []}, \"schedule\": {\"kind\": \"sequential\", "                  \
    "\"micro_batches\": 1}}"
static const char network[] = NETWORK_ON("a100");

/* On two devices that divide tokens, heads and experts; `memory` ends the text. */
#define SHARED(model, parallel)                                                                    \
    "{\"schema_version\": 1, \"runtime\": \"ideal\", \"name\": \"t\", \"model\": {" model          \
    ", \"device\": \"a100\", "                                                                     \
    "\"precision\": \"bf16\", \"optimizer\": \"adam\", \"batch_size\": 2}, \"platform\": "         \
    "{\"topology\": \"nvlink_switch\", \"devices\": 2, \"bandwidth\": \"1 GB/s\", \"latency\": "   \
    "0}, \"parallel\": {" parallel                                                                 \
    "}, \"schedule\": {\"kind\": \"sequential\", \"micro_batches\": 1}, \"memory\": {}}"
#define DENSE(attention)                                                                           \
    "\"name\": \"gpt\", \"parameters\": {\"layers\": 2, \"hidden\": 256, \"heads\": 4, "           \
    "\"sequence\": 128, \"vocabulary\": 1024, \"intermediate\": 1024, \"dropout\": 0, "            \
    "\"attention\": \"" attention "\"}"
#define MIXED                                                                                      \
    "\"name\": \"mixtral\", \"parameters\": {\"layers\": 2, \"hidden\": 256, \"heads\": 4, "       \
    "\"kv_heads\": 4, \"sequence\": 128, \"vocabulary\": 1024, \"expert_intermediate\": 512, "     \
    "\"experts\": 4, \"top_k\": 1}"
#define SEQUENCES "\"tensor\": 2, \"sequence_parallel\": true"

static const char cublas[] =
    "{\"schema_version\": 1, \"name\": \"t\", \"model\": {\"uniform\": {\"layers\": 1, "
    "\"forward\": \"1 s\", \"backward\": \"2 s\"}}, \"platform\": {\"topology\": \"ideal\", "
    "\"devices\": 1}, \"schedule\": {\"kind\": \"sequential\"}, \"memory\": {\"libraries\": "
    "[\"cublas\"]}}";

/* The network: two embeddings, the first also being the last matrix; per block four
 * matrices with biases and two norms; the last norm. */
enum {
    H = 256,
    INNER = 1024,
    TOKENS = 128,
    WORDS = 1024,
    BLOCK = 3 * H * H + 3 * H + H * H + H + H * INNER + INNER + INNER * H + H + 4 * H,
    PARAMETERS = WORDS * H + TOKENS * H + 2 * BLOCK + 2 * H,
};

static void run_with(const char *text, const char *key, const char *value, run *made)
{
    cs_error error;
    cs_error_init(&error);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    *made = (run){0};
    if (cs_json_set(root, key, value, "test", &error) != CS_OK ||
        cs_scenario_read(root, "test", &made->scenario, &error) != CS_OK ||
        cs_simulate(&made->scenario, &(cs_simulation_options){0}, &made->simulation, &error) !=
            CS_OK)
        fail_msg("%s=%s: %s", key, value, error.text);
    cJSON_Delete(root);
}

static void finish(run *made)
{
    cs_simulation_finish(&made->simulation);
    cs_scenario_finish(&made->scenario);
}

/* ---- what is looked at ---- */

typedef double figure_of(const run *of);

static double seconds(const run *of)
{
    return cs_time_seconds(of->simulation.trace.makespan);
}

static double sent(const run *of)
{
    return of->simulation.lowering.moved[CS_PURPOSE_GRADIENTS];
}

static double updated(const run *of)
{
    return (double)of->simulation.trace.devices[0].category_peak[CS_MEMORY_OPTIMIZER];
}

static double resident(const run *of)
{
    return of->scenario.job.libraries ? (double)of->scenario.job.libraries[0] : 0;
}

/* Memory of a category that is in use during the whole run. */
static double resting(const run *of, cs_category category)
{
    double sum = 0;
    for (uint32_t i = 0; i < of->simulation.graph.n_residents; i++) {
        const cs_resident *resident_of = &of->simulation.graph.residents[i];
        if (resident_of->device == 0 && resident_of->category == category)
            sum += (double)resident_of->bytes;
    }
    return sum;
}

static double gradients(const run *of)
{
    return resting(of, CS_MEMORY_GRADIENTS);
}

static double states(const run *of)
{
    return resting(of, CS_MEMORY_OPTIMIZER);
}

static double weights(const run *of)
{
    return resting(of, CS_MEMORY_WEIGHTS);
}

static double capacity(const run *of)
{
    return (double)of->scenario.platform.devices[0].capacity;
}

/* Forward of the first block, without the embedding before it and the head after it. */
static double forward(const run *of)
{
    for (uint32_t l = 0; l < of->scenario.model->n_layers; l++)
        if (strstr(of->scenario.model->layers[l].name, "h.0."))
            return cs_time_seconds(of->scenario.model->layers[l].forward);
    return NAN;
}

static double host_forward(const run *of)
{
    for (uint32_t l = 0; l < of->scenario.model->n_layers; l++)
        if (strstr(of->scenario.model->layers[l].name, "h.0."))
            return cs_time_seconds(of->scenario.model->layers[l].host.forward);
    return NAN;
}

static double is_played(const run *of)
{
    return of->scenario.has_allocator;
}

/* A pass over all gradients, of 2 bytes, at the memory bandwidth that an A100's description
 * reaches. */
static double pass(void)
{
    cs_accelerator device = {0};
    assert_int_equal(cs_accelerator_load("a100", NULL, &device, NULL), CS_OK);
    const double rate = device.bandwidth * device.training.memory->memory;
    cs_accelerator_finish(&device);
    return 2.0 * PARAMETERS / rate;
}

/* ---- the rows ---- */

/* `to` - `from` of a figure, or their ratio, by the comment at the row. */
typedef struct effect {
    const char *key, *scenario, *from, *to;
    figure_of *figure;
    bool ratio;
    double expected;
    const char *elsewhere; /* the test that derives it; NULL: this row does */
} effect;

static const effect effects[] = {
    {.key = "/runtime/fused", .elsewhere = "runtime-keys: fuses"},
    {.key = "/runtime/release", .elsewhere = "runtime: test_bundles"},
    {.key = "/runtime/flash", .elsewhere = "runtime: test_seconds"},
    {.key = "/runtime/softmax_multiple", .elsewhere = "runtime: test_softmax"},
    {.key = "/runtime/loss", .elsewhere = "loss-kernels: moves_logits"},
    /* a layer whose kernels take microseconds takes what the host does for them */
    {"/runtime/host", network, "\"10 ms\"", "\"20 ms\"", host_forward, true, 2, NULL},
    {.key = "/runtime/host_call", .elsewhere = "runtime: test_host"},
    {.key = "/runtime/host_kernel", .elsewhere = "runtime-keys: waits_for_the_host"},
    {.key = "/runtime/host_product_backward", .elsewhere = "runtime: test_host"},
    {.key = "/runtime/batch_operators", .elsewhere = "runtime: test_host_of_halves"},
    /* F until 10 ms, when the host has started it, B until 50; the host, which has been free since
     * 30, starts F until 40 and it takes 1 ms, until 51; B until 91. Waiting until 50 it starts F
     * until 60; B until 100 */
    {"/runtime/batch_waits", host_batches, "false", "true", seconds, false, 9e-3, NULL},
    /* F until 10 ms; the second host has started its own by then, F until 11; B until 51, B until
     * 91. Waiting for messages, F until 10 and 20, B until 60, the first host starts B until 80 and
     * it takes until 100 */
    {"/runtime/message_waits", host_pipeline, "false", "true", seconds, false, 9e-3, NULL},
    {.key = "/runtime/deterministic", .elsewhere = "runtime-keys: starts_more_kernels"},
    {"/runtime/step", uniform, "0", "\"1 s\"", seconds, false, 1, NULL},
    {.key = "/runtime/launch_blocking", .elsewhere = "runtime-keys: waits_for_the_host"},
    {.key = "/runtime/cuda_graphs", .elsewhere = "runtime-keys: waits_for_the_host"},
    {.key = "/runtime/expert_loop", .elsewhere = "runtime: test_host"},
    {.key = "/runtime/current_scaling", .elsewhere = "expert-kernels: scales_are_looked_for"},
    {.key = "/runtime/expert_modules", .elsewhere = "expert-kernels: experts_are_modules"},
    {.key = "/runtime/early_stop", .elsewhere = "runtime-keys: stops_early"},
    {.key = "/runtime/separate_products", .elsewhere = "runtime-keys: leaves_products_apart"},
    {.key = "/runtime/fused_experts", .elsewhere = "expert-kernels: experts_are_fused"},
    /* kernels take the factor longer, each of them */
    {"/runtime/kernels", network, "1", "1.5", forward, true, 1.5, NULL},
    /* two bytes of each gradient instead of four, from each of two ranks, twice a half of them */
    {"/model/gradients", network, "\"weights\"", "\"fp32\"", sent, false, 4.0 * PARAMETERS, NULL},
    /* 4 bytes less of each weight */
    {"/model/main_weights", network, "\"fp32\"", "\"none\"", states, false, -4.0 * PARAMETERS,
     NULL},
    /* Adam's two states of 2 bytes, or one, in place of 4 */
    {"/model/states", network, "\"fp32\"", "\"bf16\"", states, false, -4.0 * PARAMETERS, NULL},
    {"/model/states", network, "\"fp32\"", "\"fp8\"", states, false, -6.0 * PARAMETERS, NULL},
    /* the second layer's gradients are summed in 1 s, during the 2 s that compute the first
     * layer's */
    {"/parallel/bucket", uniform, "0", "\"1 GB\"", seconds, false, -1, NULL},
    /* Forwards of 1 s, messages of 1 s, backwards of 2 s. The second stage has F1 at 2 to 3 s, the
     * second message at 2 to 3, F2 to 4, B2 to 6, whose message arrives at 7, B1 to 8; the first
     * one B2 at 7 to 9, B1 to 11. Blocking, the second message waits for F1 and the second forward
     * of the first stage, both until 3 s, and lasts until 4; F2 to 5, B2 to 7, message to 8. Then
     * both compute B2 of the first stage and B1 of the second until 10, message to 11, B1 to 13. */
    /* two devices that shard weights */
    {"/parallel/accumulate", SHARED(DENSE("flash"), "\"data\": 2, \"zero\": 3"), "true", "false",
     gradients, true, 0.5, NULL},
    {.key = "/runtime/eager_ring", .elsewhere = "runtime-keys: merges_in_a_ring"},
    {.key = "/runtime/summed_ring", .elsewhere = "runtime-keys: merges_in_a_ring"},
    {.key = "/memory/receive_buffers", .elsewhere = "stage-buffers: buffers_and_results"},
    {.key = "/memory/stage_results", .elsewhere = "stage-buffers: buffers_and_results"},
    {.key = "/parallel/gather_once", .elsewhere = "programs: test_gathered_once"},
    {"/platform/blocking", pipeline, "false", "true", seconds, false, 2, NULL},
    /* one of two devices' halves of weights in 2 bytes goes; gradients have 4 bytes, not 2; of
     * replicas nothing does */
    {"/parallel/shard_copies", SHARED(DENSE("flash"), "\"data\": 2, \"zero\": 3"), "true", "false",
     weights, false, -1.0 * PARAMETERS, NULL},
    {"/parallel/shard_copies", SHARED(DENSE("flash"), "\"data\": 2, \"zero\": 3"), "true", "false",
     gradients, false, 1.0 * PARAMETERS, NULL},
    {"/parallel/shard_copies", SHARED(DENSE("flash"), "\"data\": 2, \"zero\": 2"), "true", "false",
     weights, false, 0, NULL},
    /* an all-reduce on two devices sends what a reduce-scatter sends, and as much to gather it */
    {"/parallel/reduce", SHARED(DENSE("flash"), "\"data\": 2, \"zero\": 1"), "scattered", "whole",
     sent, true, 2, NULL},
    {.key = "/parallel/prefetch", .elsewhere = "programs: test_prefetch"},
    {.key = "/parallel/context_method", .elsewhere = "mesh-bytes"},
    {.key = "/parallel/regather", .elsewhere = "mesh-bytes"},
    {.key = "/parallel/scatter_gather", .elsewhere = "parallel: test_message_parts"},
    /* everything is summed after all computing, so no computation is slowed */
    {"/platform/slowdown", uniform, "[]", "[{\"factor\": 2}]", seconds, false, 0, NULL},
    {"/collectives/reached", uniform, "1", "0.5", seconds, false, 2, NULL},
    {.key = "/collectives/network_reached", .elsewhere = "runtime-keys: collectives_take_longer"},
    {.key = "/collectives/network_latency", .elsewhere = "nccl"},
    {.key = "/collectives/nccl", .elsewhere = "runtime-keys: collectives_take_longer"},
    {"/collectives/start", uniform, "0", "\"250 ms\"", seconds, false, 0.25, NULL},
    {.key = "/collectives/dispatch", .elsewhere = "runtime-keys: dispatches_have_their_own"},
    {.key = "/collectives/tensor_overlap", .elsewhere = "runtime-keys: products_hide_chunks"},
    {"/memory/allocator", network, "\"none\"", "\"pytorch\"", is_played, false, 1, NULL},
    {.key = "/memory/expandable_segments", .elsewhere = "caching-allocator"},
    {.key = "/memory/fused", .elsewhere = "tape: keeps_less"},
    {.key = "/memory/weight_gradients", .elsewhere = "liveness: add_weight_gradients"},
    /* on an A100 two threads with 2 x 4 MiB and 8 x 16 KiB each; TransformerEngine's 4 MiB */
    {"/memory/libraries", network, "[]", "[\"cublas\"]", resident, false, 2 * (8192 + 128) * 1024.0,
     NULL},
    /* on Hopper 32 MiB each, on GeForce cards after it as before */
    {"/memory/libraries", NETWORK_ON("h800"), "[]", "[\"cublas\"]", resident, false,
     2 * 32 * 1048576.0, NULL},
    {"/memory/libraries", NETWORK_ON("h20"), "[]", "[\"cublas\"]", resident, false,
     2 * 32 * 1048576.0, NULL},
    {"/memory/libraries", NETWORK_ON("rtx-5090"), "[]", "[\"cublas\"]", resident, false,
     2 * (8192 + 128) * 1024.0, NULL},
    {"/memory/libraries", network, "[]", "[\"transformer_engine\"]", resident, false, 4096 * 1024.0,
     NULL},
    /* in addition to collectives, 4 MiB for each of three streams */
    {"/memory/libraries", network, "[]", "[\"user_buffers\"]", resident, false, 3 * 4096 * 1024.0,
     NULL},
    {.key = "/memory/routed_weights", .elsewhere = "tape: weighted features"},
    {.key = "/memory/weight_buffer", .elsewhere = "resident-tensors"},
    /* a matrix of weights of attention: one sample a device, four heads, 2 bytes */
    {"/memory/attention_buffer", network, "false", "true", resident, false,
     4.0 * TOKENS *TOKENS * 2, NULL},
    {.key = "/memory/attention_copy", .elsewhere = "tape: keeps_two_orders"},
    {.key = "/memory/keys_copied", .elsewhere = "tape: keeps_copies_of_keys"},
    {.key = "/memory/loss", .elsewhere = "tape: holds_beside_loss"},
    {.key = "/memory/pass_gradients", .elsewhere = "tape: keeps_gradients_of_a_pass"},
    {"/memory/gradient_buckets", network, "false", "true", resident, false, 2.0 * PARAMETERS, NULL},
    {"/memory/update_copy", network, "false", "true", updated, false, 4.0 * PARAMETERS, NULL},
    {.key = "/memory/passes_ahead", .elsewhere = "player: waits_for_collectives"},
    {.key = "/memory/whole_weights", .elsewhere = "player: loads_whole_weights"},
    {.key = "/memory/padding_masks", .elsewhere = "tape: keeps_masks_of_padding"},
    {.key = "/memory/deterministic_multiprocessors", .elsewhere = "tape: sums_queries"},
    {.key = "/memory/gather_buffer", .elsewhere = "share_one_buffer"},
    /* two threads' */
    {"/memory/cublas_workspace", cublas, "\"1 MiB\"", "\"32 MiB\"", resident, false,
     2 * 31 * 1048576.0, NULL},
    {"/memory/reduce_buffer", network, "0", "\"1 GB\"", resident, false, 1e9, NULL},
    {.key = "/memory/narrow_weights", .elsewhere = "liveness: narrow weights"},
    {.key = "/memory/narrow_copies", .elsewhere = "liveness: narrow weights"},
    {.key = "/memory/narrow_inputs", .elsewhere = "liveness: narrow weights"},
    {"/platform/reserve", network, "0", "\"1 GiB\"", capacity, false, -1073741824.0, NULL},
};

static double figure_with(const effect *row, const char *value)
{
    run made;
    run_with(row->scenario, row->key, value, &made);
    const double figure = row->figure(&made);
    finish(&made);
    return figure;
}

static void have_effects(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(effects); i++) {
        const effect *row = &effects[i];
        if (row->elsewhere)
            continue;
        const double from = figure_with(row, row->from), to = figure_with(row, row->to);
        const double got = row->ratio ? to / from : to - from;
        if (!(fabs(got - row->expected) <= 1e-6 * fabs(row->expected)))
            fail_msg("%s from %s to %s: expected %.9g, got %.9g", row->key, row->from, row->to,
                     row->expected, got);
    }
}

static bool has_row(const char *key)
{
    bool found = strcmp(key, "/runtime/gradient_passes") == 0 ||   /* passes_over_gradients */
                 strcmp(key, "/runtime/counts_zeros") == 0 ||      /* counts_zeros */
                 strcmp(key, "/runtime/foreach_optimizer") == 0 || /* updates_in_steps */
                 strcmp(key, "/runtime/eager_gate") == 0 ||   /* runtime-keys: divides_a_gate */
                 strcmp(key, "/runtime/eager_rotary") == 0 || /* runtime-keys: rotates_eagerly */
                 strcmp(key, "/runtime/written_out") == 0;    /* writes_out_activations */
    for (size_t i = 0; i < ROWS(effects) && !found; i++)
        found = strcmp(effects[i].key, key) == 0;
    return found;
}

/* Each member has a row and is a key of its section. */
static void are_complete(void **state)
{
    (void)state;
    for (const cs_runtime_member *m = cs_runtime_members; m->key; m++) {
        if (!has_row(m->key) || strcmp(cs_runtime_member_default(m->key), "?") == 0)
            fail_msg("%s has no row", m->key);
    }
}

/* Slower by that many passes; each layer's update is rounded to a picosecond. */
static void passes_over_gradients(void **state)
{
    (void)state;
    run none, five;
    run_with(network, "/runtime/gradient_passes", "0", &none);
    run_with(network, "/runtime/gradient_passes", "5", &five);
    const double got = seconds(&five) - seconds(&none);
    if (fabs(got - 5 * pass()) > 100e-12)
        fail_msg("expected %.12g s, got %.12g s", 5 * pass(), got);
    finish(&none);
    finish(&five);
}

/* With gradients of 2 bytes, Adam with a kernel per step moves 76 bytes per weight, a single kernel
 * 26 (test-accelerator): 25 more passes over gradients. */
static void updates_in_steps(void **state)
{
    (void)state;
    run one, steps;
    run_with(network, "/runtime/foreach_optimizer", "false", &one);
    run_with(network, "/runtime/foreach_optimizer", "true", &steps);
    const double got = seconds(&steps) - seconds(&one);
    if (fabs(got - 25 * pass()) > 100e-12)
        fail_msg("expected %.12g s, got %.12g s", 25 * pass(), got);
    finish(&one);
    finish(&steps);
}

/* Counting zeros reads the 2 bytes of a gradient, writes one and reads it: two passes. A host that
 * takes a millisecond for a kernel starts four for each tensor: two embeddings, in each of two
 * blocks four matrices, their biases, and two norms of two tensors each, and a final norm. An
 * A100's host takes its factor longer. */
static void counts_zeros(void **state)
{
    (void)state;
    enum { TENSORS = 2 + 2 * (4 + 4 + 2 * 2) + 2 };
    cs_accelerator device = {0};
    assert_int_equal(cs_accelerator_load("a100", NULL, &device, NULL), CS_OK);
    const double slow = 1e-3 * device.training.host->factor;
    cs_accelerator_finish(&device);
    for (int waits = 0; waits < 2; waits++) {
        run none, counted;
        cs_error error;
        cs_error_init(&error);
        cJSON *root = cJSON_Parse(network);
        assert_int_equal(
            cs_json_set(root, "/runtime/host_kernel", waits ? "\"1 ms\"" : "0", "test", &error),
            CS_OK);
        char *text = cJSON_PrintUnformatted(root);
        run_with(text, "/runtime/counts_zeros", "false", &none);
        run_with(text, "/runtime/counts_zeros", "true", &counted);
        const double got = seconds(&counted) - seconds(&none);
        const double expected = waits ? 4 * TENSORS * slow : 2 * pass();
        if (fabs(got - expected) > 100e-12)
            fail_msg("expected %.12g s, got %.12g s", expected, got);
        finish(&none);
        finish(&counted);
        free(text);
        cJSON_Delete(root);
    }
}

/* Seconds of a backward over the layers of a device, of a micro-batch of one sequence. */
static double backward_of(uint32_t micro_batches, uint32_t zero, bool accumulate)
{
    cs_error error;
    cs_scenario scenario = {0};
    char batch[16], micro[16], level[16];
    cs_error_init(&error);
    cJSON *root = cJSON_Parse(network);
    snprintf(batch, sizeof(batch), "%u", 2 * micro_batches);
    snprintf(micro, sizeof(micro), "%u", micro_batches);
    snprintf(level, sizeof(level), "%u", zero);
    const char *const set[][2] = {{"/memory/weight_gradients", "\"apart\""},
                                  {"/model/batch_size", batch},
                                  {"/schedule/micro_batches", micro},
                                  {"/parallel/zero", level},
                                  {"/parallel/accumulate", accumulate ? "true" : "false"}};
    for (size_t i = 0; i < ROWS(set); i++)
        if (cs_json_set(root, set[i][0], set[i][1], "test", &error) != CS_OK)
            fail_msg("%s", error.text);
    if (cs_scenario_read(root, "test", &scenario, &error) != CS_OK)
        fail_msg("%s", error.text);
    double seconds = 0;
    for (uint32_t s = 0; s < scenario.job.plan->n_stages; s++)
        seconds += cs_time_seconds(scenario.job.stages[s].backward_input +
                                   scenario.job.stages[s].backward_weight);
    cs_scenario_finish(&scenario);
    cJSON_Delete(root);
    return seconds;
}

/* Several micro-batches add gradients to sums, which reads both and writes one: three passes.
 * With "zero" 2 or 3 each micro-batch reduces its own, unless they accumulate. Kernels
 * of an A100 take its factor longer in a step. */
static void sums_are_of_several(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        uint32_t micro_batches, zero;
        bool accumulate;
        double passes;
    } rows[] = {
        {"one", 1, 0, false, 0},
        {"two", 2, 0, false, 3},
        {"states divided", 2, 1, false, 3},
        {"gradients divided", 2, 2, false, 0},
        {"one, divided", 1, 2, true, 0},
        {"gradients accumulated", 2, 2, true, 3},
    };
    cs_accelerator device = {0};
    assert_int_equal(cs_accelerator_load("a100", NULL, &device, NULL), CS_OK);
    const double each = device.training.in_step->factor * pass();
    cs_accelerator_finish(&device);
    const double alone = backward_of(1, 0, false);
    for (size_t i = 0; i < ROWS(rows); i++) {
        const double got =
            backward_of(rows[i].micro_batches, rows[i].zero, rows[i].accumulate) - alone;
        if (fabs(got - rows[i].passes * each) > 100e-12)
            fail_msg("%s: expected %.12g s, got %.12g s", rows[i].row, rows[i].passes * each, got);
    }
}

/* The makespan of a scenario with a key and a host that takes so much a step. */
static double seconds_with_step(const char *text, const char *key, const char *value,
                                const char *step)
{
    cs_error error;
    cs_error_init(&error);
    run made;
    cJSON *root = cJSON_Parse(text);
    assert_int_equal(cs_json_set(root, key, value, "test", &error), CS_OK);
    char *changed = cJSON_PrintUnformatted(root);
    run_with(changed, "/runtime/step", step, &made);
    const double got = seconds(&made);
    finish(&made);
    free(changed);
    cJSON_Delete(root);
    return got;
}

/* Where a device holds several stages the host takes it once all the same, and not less where what
 * is updated is divided. */
static void is_once_a_step(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *key, *value;
    } rows[] = {
        {"one stage per device", pipeline, "/name", "\"t\""},
        {"two stages each", interleaved, "/name", "\"t\""},
        {"divided states", uniform, "/parallel/zero", "1"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const double none = seconds_with_step(rows[i].text, rows[i].key, rows[i].value, "0");
        const double one = seconds_with_step(rows[i].text, rows[i].key, rows[i].value, "\"1 s\"");
        if (fabs(one - none - 1) > 1e-9)
            fail_msg("%s: expected 1 s more, got %.12g s", rows[i].row, one - none);
    }
}

/* Forward of a block, layer by layer. */
static double block_host(const run *of)
{
    double sum = 0;
    for (uint32_t l = 0; l < of->scenario.model->n_layers; l++)
        if (strstr(of->scenario.model->layers[l].name, "h.0"))
            sum += cs_time_seconds(of->scenario.model->layers[l].host.forward);
    return sum;
}

/* A block that two tensor-parallel devices share sums its results over them twice in each pass. The
 * host takes a millisecond for each operator, and for each of these messages. */
static void starts_messages(void **state)
{
    (void)state;
    cs_error error;
    run whole, divided;
    cJSON *root = cJSON_Parse(network);
    cs_error_init(&error);
    assert_int_equal(cs_json_set(root, "/runtime/host", "\"1 ms\"", "test", &error), CS_OK);
    assert_int_equal(cs_json_set(root, "/model/device", "h100", "test", &error), CS_OK);
    char *text = cJSON_PrintUnformatted(root);
    run_with(text, "/parallel", "{\"data\": 2, \"bucket\": 0}", &whole);
    run_with(text, "/parallel", "{\"tensor\": 2, \"bucket\": 0}", &divided);
    const double more = block_host(&divided) - block_host(&whole);
    if (fabs(more - 2e-3) > 1e-9)
        fail_msg("expected 2 ms more, got %.12g s", more);
    finish(&whole);
    finish(&divided);
    free(text);
    cJSON_Delete(root);
}

/* Two blocks, forward: seven more kernels, and 16 times the 2 bytes of the activations of a
 * replica's sample; backward ten, and 25 times. */
static void writes_out_activations(void **state)
{
    (void)state;
    run one, out;
    cs_accelerator device = {0};
    assert_int_equal(cs_accelerator_load("a100", NULL, &device, NULL), CS_OK);
    const double rate = device.bandwidth * device.training.memory->memory;
    const double starts = (7 + 10) * cs_time_seconds(device.launch);
    const double moves = (16 + 25) * 2.0 * TOKENS * INNER / rate;
    const double expected = 2 * (starts + moves) * device.training.in_step->factor;
    cs_accelerator_finish(&device);
    run_with(network, "/runtime/written_out", "false", &one);
    run_with(network, "/runtime/written_out", "true", &out);
    if (fabs(seconds(&out) - seconds(&one) - expected) > 100e-12)
        fail_msg("expected %.12g s, got %.12g s", expected, seconds(&out) - seconds(&one));
    finish(&one);
    finish(&out);
}

/* The rules of slowdown: 1 of the 2 s of a backward overlaps the sum of a bucket; at half speed
 * half a second is done meanwhile. */
static void is_slower_beside_buckets(void **state)
{
    (void)state;
    run made;
    cJSON *root = cJSON_Parse(uniform);
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_json_set(root, "/parallel/bucket", "\"1 GB\"", "test", &error), CS_OK);
    char *text = cJSON_PrintUnformatted(root);
    run_with(text, "/platform/slowdown", "[{\"factor\": 2, \"communication\": \"collectives\"}]",
             &made);
    if (fabs(seconds(&made) - 7.5) > 1e-9)
        fail_msg("expected 7.5 s, got %.12g s", seconds(&made));
    finish(&made);
    free(text);
    cJSON_Delete(root);
}

/* ---- the buffer that operators share ---- */

/* Two sequences of 128 tokens of 256 features of 2 bytes are gathered in front of the last
 * matrix; with the experts divided over two replicas, one such sequence of each. Attention by
 * math of half of 4 heads has two matrices of 128 x 128 for each of two sequences, which are
 * smaller. */
static void share_one_buffer(void **state)
{
    (void)state;
    enum { TOKEN = 256 * 2, GATHERED = 2 * 128 * TOKEN, MATRICES = 2 * 2 * 128 * 128 * 2 };
    static const struct {
        const char *name, *scenario, *memory;
        double bytes;
    } rows[] = {
        {"nothing", SHARED(DENSE("flash"), SEQUENCES), "{}", 0},
        {"last", SHARED(DENSE("flash"), SEQUENCES), "{\"gather_buffer\": \"last_matrix\"}",
         GATHERED},
        {"whole sequences", SHARED(DENSE("flash"), "\"tensor\": 2"),
         "{\"gather_buffer\": \"last_matrix\"}", 0},
        {"attention", SHARED(DENSE("math"), SEQUENCES), "{\"attention_buffer\": true}", MATRICES},
        {"one for both", SHARED(DENSE("math"), SEQUENCES),
         "{\"attention_buffer\": true, \"gather_buffer\": \"last_matrix\"}", GATHERED},
        {"experts", SHARED(MIXED, "\"data\": 2, \"expert\": 2"), "{\"gather_buffer\": \"experts\"}",
         GATHERED},
        {"sent to experts", SHARED(MIXED, "\"data\": 2, \"expert\": 2"),
         "{\"gather_buffer\": \"last_matrix\"}", 0},
        {"all experts", SHARED(MIXED, "\"data\": 2"), "{\"gather_buffer\": \"experts\"}", 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        run made;
        run_with(rows[i].scenario, "/memory", rows[i].memory, &made);
        if (resident(&made) != rows[i].bytes)
            fail_msg("%s: expected %.0f bytes, got %.0f", rows[i].name, rows[i].bytes,
                     resident(&made));
        finish(&made);
    }
}

/* TransformerEngine's four workspaces of 4 MiB for products of groups are made by the first such
 * product, of a network with experts. */
static void has_groups_with_experts(void **state)
{
    (void)state;
    static const char memory[] = "{\"libraries\": [\"grouped_products\"]}";
    run dense, mixed;
    run_with(SHARED(DENSE("flash"), "\"data\": 2"), "/memory", memory, &dense);
    expect_int("dense", 0, (int64_t)resident(&dense));
    run_with(SHARED(MIXED, "\"data\": 2"), "/memory", memory, &mixed);
    expect_int("mixed", 4 * 4096 * 1024, (int64_t)resident(&mixed));
    finish(&dense);
    finish(&mixed);
}

static double peak_with(const char *memory)
{
    run made;
    run_with(SHARED(DENSE("flash"), SEQUENCES), "/memory", memory, &made);
    const double peak = (double)made.simulation.allocations.devices[0].stats.peak_allocated;
    finish(&made);
    return peak;
}

/* Data gathered into the buffer are not an additional tensor. A fused loss has its peak while the
 * gradient of the logits coexists with the tokens that were gathered again: they exist once, with
 * or without the buffer. A loss in float32 has its peak while the loss runs, when only the buffer
 * still holds them. */
static void gather_in_the_buffer(void **state)
{
    (void)state;
    enum { GATHERED = 2 * 128 * 256 * 2 };
    static const struct {
        const char *name, *without, *with;
        double more;
    } rows[] = {
        {"fused", "{\"allocator\": \"pytorch\", \"fused\": [\"cross_entropy\"]}",
         "{\"allocator\": \"pytorch\", \"fused\": [\"cross_entropy\"], \"gather_buffer\": "
         "\"last_matrix\"}",
         0},
        {"float32", "{\"allocator\": \"pytorch\"}",
         "{\"allocator\": \"pytorch\", \"gather_buffer\": \"last_matrix\"}", GATHERED},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const double more = peak_with(rows[i].with) - peak_with(rows[i].without);
        if (more != rows[i].more)
            fail_msg("%s: expected %.0f bytes more, got %.0f", rows[i].name, rows[i].more, more);
    }
}

/* ---- where values are from ---- */

static const struct {
    const char *key, *value; /* given to the network; NULL: nothing is */
    const char *asked;
    cs_origin origin;
    const char *is;
} origins[] = {
    {NULL, NULL, "/runtime/flash", CS_ORIGIN_ASSUMED, "\"flash2\""},
    {"/runtime/flash", "\"flash3\"", "/runtime/flash", CS_ORIGIN_GIVEN, "\"flash3\""},
    {NULL, NULL, "/runtime/kernels", CS_ORIGIN_DEFAULT, "1"},
    {NULL, NULL, "/parallel/bucket", CS_ORIGIN_GIVEN, "0"},
    {NULL, NULL, "/model/device", CS_ORIGIN_ASSUMED, "a100"},
    {"/runtime/name", "megatron-core", "/model/gradients", CS_ORIGIN_ASSUMED, "\"fp32\""},
    {"/costs",
     "{\"inline\": {\"schema_version\": 1, \"sources\": [{\"source\": "
     "\"s\", \"device\": \"A\", "
     "\"date\": \"2026-11-23\"}], \"network\": [{\"collective\": \"all_reduce\", \"level\": "
     "\"node\", "
     "\"ranks\": 2, \"source\": 0, \"regimes\": [{\"from_bytes\": 0, \"error\": 0, \"points\": 2, "
     "\"outliers\": 0, \"alpha_s\": {\"value\": 1e-6, \"low\": 1e-6, \"high\": 1e-6}, "
     "\"beta_s_per_byte\": {\"value\": 1e-9, \"low\": 1e-9, \"high\": 1e-9}}], \"points\": "
     "[[1, 1e-6], [1000, 2e-6]]}]}}",
     "/costs", CS_ORIGIN_MEASURED, NULL},
};

static void are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(origins); i++) {
        run made;
        const char *key = origins[i].key ? origins[i].key : "/name";
        run_with(network, key, origins[i].key ? origins[i].value : "t", &made);
        const cs_origins *all = &made.scenario.origins;
        uint32_t f = 0;
        while (f < all->n && strcmp(all->figures[f].key, origins[i].asked) != 0)
            f++;
        if (f == all->n)
            fail_msg("%s is not named", origins[i].asked);
        if (all->figures[f].origin != origins[i].origin)
            fail_msg("%s with %s: expected %s, got %s", origins[i].asked, key,
                     cs_origin_names[origins[i].origin], cs_origin_names[all->figures[f].origin]);
        if (origins[i].is && strcmp(all->figures[f].value, origins[i].is) != 0)
            fail_msg("%s: expected %s, got %s", origins[i].asked, origins[i].is,
                     all->figures[f].value);
        if (all->figures[f].origin == CS_ORIGIN_ASSUMED)
            assert_true(strlen(all->figures[f].source) > 10);
        finish(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(have_effects),
        cmocka_unit_test(are_complete),
        cmocka_unit_test(passes_over_gradients),
        cmocka_unit_test(updates_in_steps),
        cmocka_unit_test(counts_zeros),
        cmocka_unit_test(sums_are_of_several),
        cmocka_unit_test(writes_out_activations),
        cmocka_unit_test(share_one_buffer),
        cmocka_unit_test(has_groups_with_experts),
        cmocka_unit_test(gather_in_the_buffer),
        cmocka_unit_test(is_slower_beside_buckets),
        cmocka_unit_test(is_once_a_step),
        cmocka_unit_test(starts_messages),
        cmocka_unit_test(are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

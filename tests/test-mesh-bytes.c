/* Bytes that the devices of a mesh exchange per mini-batch, by axis, purpose and kind of
 * collective, as planned by scenarios: for random networks, meshes and shardings, compared with
 * counts per operator from the papers' definitions.
 *
 * An axis is identified by the size of its groups and the distance of their devices: device number
 * tensor + T (space + X (context + C data)). Experts are expert tensor + ET (expert + E data). */
#include "sim/model/layout.h"
#include "tests/expect.h"
#include "tests/random-net.h"
#include "tests/run-scenario.h"

enum { TRANSFORMERS = 350, IMAGES = 150, MOST_FLOWS = 64, HALF = 2, FLOAT = 4 };

/* Devices `stride` apart hand each other so much, each of them in all. */
typedef struct flow {
    uint32_t purpose, kind, size, stride;
    int64_t bytes;
} flow;

typedef struct flows {
    uint32_t n;
    flow all[MOST_FLOWS];
} flows;

static void add_flow(flows *to, cs_purpose purpose, cs_kind kind, cs_axes axes, int64_t bytes)
{
    uint32_t i = 0;
    if (axes.size == 1 || bytes == 0)
        return;
    while (i < to->n && (to->all[i].purpose != purpose || to->all[i].kind != kind ||
                         to->all[i].size != axes.size || to->all[i].stride != axes.stride))
        i++;
    assert_true(i < MOST_FLOWS);
    if (i == to->n)
        to->all[to->n++] = (flow){purpose, kind, axes.size, axes.stride, 0};
    to->all[i].bytes += bytes;
}

/* Collectives that device 0 takes part in. */
static flows planned(const cs_scenario *scenario)
{
    flows found = {0};
    cs_graph graph;
    cs_error error;
    cs_error_init(&error);
    if (cs_schedule_graph(scenario->schedule, &scenario->job, scenario->params, &graph, &error) !=
        CS_OK)
        fail_msg("%s", error.text);
    for (uint32_t t = 0; t < graph.n_tasks; t++) {
        const cs_class *cls = cs_graph_class(&graph, t);
        if (cls->device != 0 || cs_kind_group_of((cs_kind)cls->kind) != CS_GROUP_COLLECTIVE)
            continue;
        const cs_group *group = &graph.groups[cls->peer];
        const uint32_t *ranks = &graph.group_devices[group->first];
        add_flow(&found, (cs_purpose)cls->purpose, (cs_kind)cls->kind,
                 (cs_axes){group->n, ranks[1] - ranks[0]}, cls->bytes + cls->bytes_back);
    }
    cs_graph_finish(&graph);
    return found;
}

static const flow *find(const flows *in, const flow *sought)
{
    for (uint32_t i = 0; i < in->n; i++)
        if (in->all[i].purpose == sought->purpose && in->all[i].kind == sought->kind &&
            in->all[i].size == sought->size && in->all[i].stride == sought->stride)
            return &in->all[i];
    return NULL;
}

static void expect_flows(const char *row, const flows *expected, const flows *got)
{
    for (int side = 0; side < 2; side++) {
        const flows *of = side ? got : expected, *other = side ? expected : got;
        for (uint32_t i = 0; i < of->n; i++) {
            const flow *one = &of->all[i], *same = find(other, one);
            if (!same || same->bytes != one->bytes)
                fail_msg("%s: %s, %s over %" PRIu32 " devices %" PRIu32 " apart: %s %" PRId64
                         ", %s %" PRId64,
                         row, cs_purpose_name((cs_purpose)one->purpose),
                         cs_kind_name((cs_kind)one->kind), one->size, one->stride,
                         side ? "got" : "expected", one->bytes, side ? "expected" : "got",
                         same ? same->bytes : 0);
        }
    }
}

/* ---- states ---- */

typedef struct states {
    uint32_t zero, micro_batches;
    bool accumulate;
} states;

/* Weights of that many bytes, which `all` places hold alike, `shard` of them in shares: Rajbhandari
 * et al., section 7; with shares in groups, Zhao et al., PyTorch FSDP, VLDB 2023, section 3.2.2. */
static void add_states(flows *to, const states *s, cs_axes all, cs_axes shard, int64_t bytes)
{
    const cs_axes replica = {all.size / shard.size, all.stride * shard.size};
    const bool each = s->zero >= 2 && !s->accumulate;
    const int64_t gathers = s->zero == 0 ? 0 : s->zero == 3 ? 2 * s->micro_batches : 1;
    if (s->zero == 0) {
        add_flow(to, CS_PURPOSE_GRADIENTS, CS_ALL_REDUCE, all, bytes);
        return;
    }
    add_flow(to, CS_PURPOSE_GRADIENTS, CS_REDUCE_SCATTER, shard,
             (each ? s->micro_batches : 1) * bytes);
    add_flow(to, CS_PURPOSE_GRADIENTS, CS_ALL_REDUCE, replica, bytes / shard.size);
    add_flow(to, CS_PURPOSE_WEIGHTS, CS_ALL_GATHER, shard, gathers * bytes);
}

/* A sum over other places of a place's part of the sum above. */
static void add_parts(flows *to, const states *s, cs_axes over, cs_axes shard, int64_t bytes)
{
    add_flow(to, CS_PURPOSE_GRADIENTS, CS_ALL_REDUCE, over,
             s->zero == 0 ? bytes : bytes / shard.size);
}

/* ---- transformers ---- */

typedef struct transformer {
    uint32_t layers, hidden, heads, kv_heads, head, inner, tokens, vocabulary, experts, top_k;
    uint32_t tensor, context, data, shard, expert, expert_tensor, samples;
    uint32_t method; /* cs_context_method */
    bool sequences, regathers;
    bool head_norms; /* norms of queries and keys, as in Qwen3 */
    states states;
} transformer;

static uint32_t draw_divisor(gsl_rng *random, uint32_t of)
{
    uint32_t divisor = random_from_to(random, 1, of);
    while (of % divisor != 0)
        divisor--;
    return divisor;
}

static states draw_states(gsl_rng *random)
{
    return (states){.zero = random_from_to(random, 0, 3),
                    .micro_batches = random_from_to(random, 1, 3),
                    .accumulate = random_from_to(random, 0, 1)};
}

/* Features are multiples of 36, so that shares of 2, 3, 4, 6 and 9 places are whole. */
static transformer draw_transformer(gsl_rng *random, bool experts)
{
    transformer t = {.layers = random_from_to(random, 1, 3),
                     .hidden = 36 * random_from_to(random, 1, 3),
                     .head = 2 * random_from_to(random, 1, 3),
                     .tensor = random_from_to(random, 1, 4),
                     .context = random_from_to(random, 1, 3),
                     .data = random_from_to(random, 1, 3),
                     .samples = random_from_to(random, 1, 2),
                     .method = random_from_to(random, 0, 2),
                     .states = draw_states(random)};
    const uint32_t places = t.tensor * t.context * t.data;
    t.kv_heads = t.tensor * t.context * random_from_to(random, 1, 2);
    if (t.method != CS_CONTEXT_ALL_TO_ALL && random_from_to(random, 0, 1))
        t.kv_heads = draw_divisor(random, t.tensor);
    t.heads = t.tensor * t.context * t.kv_heads;
    t.inner = 36 * t.tensor * random_from_to(random, 1, 2);
    t.tokens = 2 * t.context * t.tensor * random_from_to(random, 1, 4);
    t.vocabulary = random_from_to(random, 50, 90);
    t.sequences = experts || random_from_to(random, 0, 1);
    t.regathers = !t.sequences || t.tensor == 1 || random_from_to(random, 0, 1);
    t.head_norms = !experts && random_from_to(random, 0, 1);
    t.head *= t.head_norms ? 18 : 1; /* multiples of 36, too */
    t.shard = experts ? t.context * t.data : draw_divisor(random, t.context * t.data);
    t.expert = t.expert_tensor = 1;
    if (experts) {
        t.expert_tensor = draw_divisor(random, places);
        t.expert = draw_divisor(random, places / t.expert_tensor);
        t.experts = t.expert * random_from_to(random, 1, 2);
        t.top_k = random_from_to(random, 1, t.experts < 2 ? 1 : 2);
        t.inner = 36 * t.tensor * t.expert_tensor;
    }
    return t;
}

/* Shoeybi et al., figure 4; Korthikanti et al., figure 5: per attention and per MLP a sum, or a
 * gather and a scatter, each way, and backward a gather again; at both ends of the network; and
 * three numbers per row in the loss. */
static void add_pairs(flows *to, const transformer *t)
{
    const cs_axes tensor = {t->tensor, 1};
    const int64_t M = t->states.micro_batches;
    const int64_t rows = (int64_t)t->samples * t->tokens / t->context;
    const int64_t x = M * HALF * rows * t->hidden, pairs = t->layers * (t->experts > 0 ? 1 : 2);
    add_flow(to, CS_PURPOSE_TENSOR, CS_ALL_REDUCE, tensor, M * 3 * FLOAT * rows);
    if (!t->sequences || t->tensor == 1) {
        add_flow(to, CS_PURPOSE_TENSOR, CS_ALL_REDUCE, tensor, (2 * pairs + 2) * x);
        return;
    }
    /* embedding: scattered, gathered backward; blocks; head: gathered, again, scattered backward */
    add_flow(to, CS_PURPOSE_TENSOR, CS_REDUCE_SCATTER, tensor, (1 + 2 * pairs + 1) * x);
    add_flow(to, CS_PURPOSE_TENSOR, CS_ALL_GATHER, tensor,
             (1 + 2 * pairs + 1 + (t->regathers ? pairs + 1 : 0)) * x);
}

/* Heads of keys and values that a place has. */
static int64_t own_keys(const transformer *t)
{
    return t->kv_heads >= t->tensor ? t->kv_heads / t->tensor : 1;
}

/* Ring (Liu et al., Ring Attention, ICLR 2024): keys and values go C - 1 steps around, backward as
 * well, with their gradients. Gathers: forward, backward, and the gradients are scattered.
 * All-to-all (Jacobs et al., DeepSpeed Ulysses, 2023): queries, keys, values and results. */
static void add_context(flows *to, const transformer *t)
{
    const cs_axes context = {t->context, t->tensor};
    const int64_t C = t->context, M = t->states.micro_batches * t->layers;
    const int64_t rows = (int64_t)t->samples * t->tokens / C;
    const int64_t keys = M * 2 * HALF * rows * own_keys(t) * t->head;
    const int64_t queries = M * HALF * rows * t->heads / t->tensor * t->head;
    switch (t->method) {
    case CS_CONTEXT_RING:
        add_flow(to, CS_PURPOSE_CONTEXT, CS_SHIFT, context, 3 * (C - 1) * keys);
        break;
    case CS_CONTEXT_ALL_GATHER:
        add_flow(to, CS_PURPOSE_CONTEXT, CS_ALL_GATHER, context, 2 * C * keys);
        add_flow(to, CS_PURPOSE_CONTEXT, CS_REDUCE_SCATTER, context, C * keys);
        break;
    default:
        add_flow(to, CS_PURPOSE_CONTEXT, CS_ALL_TO_ALL, context, 2 * (2 * queries + keys));
        break;
    }
}

/* Rows go to their experts and back in both passes; neighbours that share experts gather them and
 * sum up. */
static void add_experts(flows *to, const transformer *t)
{
    const cs_axes expert = {t->expert, t->expert_tensor}, within = {t->expert_tensor, 1};
    const int64_t M = t->states.micro_batches * t->layers;
    const int64_t rows = (int64_t)t->samples * t->tokens / t->context / t->tensor * t->top_k;
    const int64_t bytes = M * HALF * rows * t->hidden;
    if (t->experts == 0)
        return;
    add_flow(to, CS_PURPOSE_EXPERT, CS_ALL_TO_ALL, expert, 2 * 2 * bytes);
    add_flow(to, CS_PURPOSE_EXPERT, CS_ALL_GATHER, within, 2 * t->expert_tensor * bytes);
    add_flow(to, CS_PURPOSE_EXPERT, CS_REDUCE_SCATTER, within, 2 * t->expert_tensor * bytes);
}

/* Parameters of a place: table and last matrix, of the first part of the vocabulary; queries and
 * results; keys and values; MLPs; and what all places have: norms and routers. A place has
 * gradients of its own tokens, or of its own heads: of norms of heads even where all places have
 * all tokens
 * (Megatron Core, megatron/core/distributed/finalize_model_grads.py, which sums q_layernorm and
 * k_layernorm over the tensor axis without sequence parallelism too). */
static void add_weights(flows *to, const transformer *t)
{
    const cs_axes all = {t->context * t->data, t->tensor}, shard = {t->shard, t->tensor};
    const uint32_t apart = t->expert * t->expert_tensor;
    const uint32_t places = t->tensor * t->context * t->data;
    const cs_axes experts = {places / apart, apart};
    const int64_t H = t->hidden, L = t->layers;
    const int64_t rows = (t->vocabulary + t->tensor - 1) / t->tensor;
    const int64_t keys = L * 2 * H * own_keys(t) * t->head;
    const int64_t norms = t->head_norms ? L * 2 * t->head : 0;
    const int64_t alike = (2 * L + 1) * H + L * H * t->experts + norms;
    int64_t dense = 2 * rows * H + L * 2 * H * (t->heads / t->tensor * t->head) + keys + alike;
    if (t->experts == 0)
        dense += L * 3 * H * (t->inner / t->tensor);
    else
        add_states(to, &t->states, experts, experts,
                   HALF * L * (t->experts / t->expert) * 3 * H * (t->inner / t->expert_tensor));
    add_states(to, &t->states, all, shard, HALF * dense);
    if (t->tensor > t->kv_heads)
        add_parts(to, &t->states, (cs_axes){t->tensor / t->kv_heads, 1}, shard, HALF * keys);
    add_parts(to, &t->states, (cs_axes){t->tensor, 1}, shard,
              HALF * (t->sequences ? alike : norms));
}

static void run_transformer(const transformer *t, scenario_run *run)
{
    static const char *const methods[] = {"ring", "all_gather", "all_to_all"};
    char experts[96] = "", division[96] = "";
    cs_error error;
    cs_error_init(&error);
    if (t->head_norms)
        snprintf(experts, sizeof(experts), ", 'experts': 0");
    if (t->experts > 0) {
        snprintf(experts, sizeof(experts), ", 'experts': %u, 'top_k': %u", t->experts, t->top_k);
        snprintf(division, sizeof(division), ", 'expert': %u, 'expert_tensor': %u", t->expert,
                 t->expert_tensor);
    } else {
        snprintf(division, sizeof(division), ", 'shard': %u", t->shard);
    }
    if (scenario_run_read(
            run, &error,
            "{'schema_version': 1, 'runtime': 'ideal', 'model': {'name': '%s', 'parameters': "
            "{'layers': %u, 'hidden': "
            "%u, 'heads': %u, 'kv_heads': %u, 'head': %u, '%s': %u, 'sequence': %u, "
            "'vocabulary': %u%s}, 'device': 'h100', 'precision': 'fp16', 'granularity': 'block', "
            "'batch_size': %u}, 'platform': {'topology': 'nvlink_switch', 'bandwidth': '1 GB/s', "
            "'devices': %u}, "
            "'schedule': {'kind': 'sequential', 'micro_batches': %u}, 'iterations': 1, "
            "'parallel': {'tensor': %u, 'sequence_parallel': %s, 'regather': %s, 'context': %u, "
            "'context_method': '%s', 'data': %u, 'zero': %u, 'accumulate': %s, 'fold': 'no'%s}}",
            t->experts > 0  ? "mixtral"
            : t->head_norms ? "qwen3"
                            : "llama",
            t->layers, t->hidden, t->heads, t->kv_heads, t->head,
            t->experts > 0 ? "expert_intermediate" : "intermediate", t->inner, t->tokens,
            t->vocabulary, experts, t->data * t->states.micro_batches * t->samples,
            t->tensor * t->context * t->data, t->states.micro_batches, t->tensor,
            t->sequences ? "true" : "false", t->regathers ? "true" : "false", t->context,
            methods[t->method], t->data, t->states.zero, t->states.accumulate ? "true" : "false",
            division) != CS_OK)
        fail_msg("%s", error.text);
}

static void test_transformers(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(1, "transformers");
    assert_non_null(random);
    for (uint32_t i = 0; i < TRANSFORMERS; i++) {
        const transformer t = draw_transformer(random, i % 3 == 0);
        flows expected = {0};
        scenario_run run;
        char row[240];
        snprintf(row, sizeof(row),
                 "%" PRIu32 ": tensor %u, context %u by method %u, data %u, shard %u, experts %u "
                 "x %u, zero %u, %u micro-batches, heads %u and %u%s",
                 i, t.tensor, t.context, t.method, t.data, t.shard, t.expert, t.expert_tensor,
                 t.states.zero, t.states.micro_batches, t.heads, t.kv_heads,
                 t.head_norms ? ", norms of heads" : "");
        if (t.tensor * t.context * t.data == 1)
            continue;
        run_transformer(&t, &run);
        add_pairs(&expected, &t);
        add_context(&expected, &t);
        add_experts(&expected, &t);
        add_weights(&expected, &t);
        const flows got = planned(&run.scenario);
        expect_flows(row, &expected, &got);
        scenario_run_finish(&run);
    }
    gsl_rng_free(random);
}

/* ---- narrow types ---- */

static int64_t resting_weights(const cs_scenario *scenario)
{
    int64_t bytes = 0;
    cs_graph graph;
    cs_error error;
    cs_error_init(&error);
    if (cs_schedule_graph(scenario->schedule, &scenario->job, scenario->params, &graph, &error) !=
        CS_OK)
        fail_msg("%s", error.text);
    for (uint32_t i = 0; i < graph.n_residents; i++)
        if (graph.residents[i].device == 0 && graph.residents[i].category == CS_MEMORY_WEIGHTS)
            bytes += graph.residents[i].bytes;
    cs_graph_finish(&graph);
    return bytes;
}

/* Two blocks of 4 x 72 x 72 + 3 x 72 x 144 elements in linear layers, a table and a last matrix of
 * 72 x 72 and five norms of 72, which are wide; on four places. Each place makes narrow copies:
 * weights are sent and sharded in bf16, with stage 3 before both passes; with weights in the narrow
 * type only, one copy, a byte an element of fp8 (Megatron Core's fp8_param_gather), 33 for 32 of
 * mxfp8, which is sent in bf16 after an update. */
enum { NARROW = 2 * (4 * 72 * 72 + 3 * 72 * 144), WIDE = 2 * 72 * 72 + 5 * 72 };
static const struct {
    const char *precision, *weights;
    uint32_t copies, zero;
    int64_t sent, resting;
} narrow_rows[] = {
    {"fp8", "copies", 2, 1, 2 * (NARROW + WIDE), 2 * (NARROW + WIDE) + 2 * NARROW},
    {"fp8", "copies", 1, 2, 2 * (NARROW + WIDE), 2 * (NARROW + WIDE) + NARROW},
    {"fp8", "copies", 2, 3, 2 * 2 * (NARROW + WIDE), 2 * (NARROW + WIDE) / 4},
    {"fp8", "cast", 2, 3, 2 * 2 * (NARROW + WIDE), 2 * (NARROW + WIDE) / 4},
    {"fp8", "alone", 2, 1, NARROW + 2 * WIDE, 2 * NARROW + 2 * WIDE},
    {"fp8", "alone", 1, 1, NARROW + 2 * WIDE, NARROW + 2 * WIDE},
    {"fp8", "alone", 2, 3, 2 * (NARROW + 2 * WIDE), (NARROW + 2 * WIDE) / 4},
    {"fp8", "alone", 1, 3, 2 * (NARROW + 2 * WIDE), (NARROW + 2 * WIDE) / 4},
    {"mxfp8", "alone", 1, 1, 2 * (NARROW + WIDE), NARROW * 33 / 32 + 2 * WIDE},
    {"mxfp8", "alone", 2, 3, 2 * (NARROW * 33 / 32 + 2 * WIDE), (NARROW * 33 / 32 + 2 * WIDE) / 4},
};

static void test_narrow(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(narrow_rows); i++) {
        scenario_run run;
        cs_error error;
        char row[96];
        cs_error_init(&error);
        snprintf(row, sizeof(row), "%s %s, %" PRIu32 " copies, zero %" PRIu32,
                 narrow_rows[i].precision, narrow_rows[i].weights, narrow_rows[i].copies,
                 narrow_rows[i].zero);
        if (scenario_run_read(
                &run, &error,
                "{'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'llama', "
                "'parameters': {'layers': 2, "
                "'hidden': 72, 'heads': 2, 'kv_heads': 2, 'intermediate': 144, 'sequence': 8, "
                "'vocabulary': 72}, 'device': 'b200', 'precision': '%s', 'granularity': 'block', "
                "'batch_size': 4}, 'platform': {'topology': 'nvlink_switch', 'bandwidth': '1 "
                "GB/s', "
                "'devices': 4}, 'schedule': {'kind': 'sequential'}, 'memory': {'narrow_weights': "
                "'%s', 'narrow_copies': %u}, 'parallel': {'zero': %u, 'fold': 'no'}}",
                narrow_rows[i].precision, narrow_rows[i].weights, narrow_rows[i].copies,
                narrow_rows[i].zero) != CS_OK)
            fail_msg("%s: %s", row, error.text);
        const flows got = planned(&run.scenario);
        const flow gathers = {CS_PURPOSE_WEIGHTS, CS_ALL_GATHER, 4, 1, 0};
        const flow *found = find(&got, &gathers);
        expect_int(row, narrow_rows[i].sent, found ? found->bytes : 0);
        expect_int(row, narrow_rows[i].resting, resting_weights(&run.scenario));
        scenario_run_finish(&run);
    }
}

/* ---- parameters of heads ---- */

/* GPT-OSS with one layer: table and last matrix of 72 x 72, three norms, four products of attention
 * and their biases, a sink for each of 4 heads, router, two experts of 36 features. However two
 * places of the context axis divide attention, each holds all parameters and sums all gradients. */
static void test_sinks(void **state)
{
    (void)state;
    static const char *const methods[] = {"ring", "all_gather", "all_to_all"};
    const int64_t parameters = 2 * 72 * 72 + 3 * 72 + 4 * (72 * 72 + 72) + 4 + (72 * 2 + 2) +
                               2 * (3 * 72 * 36 + 2 * 36 + 72);
    for (size_t i = 0; i < ROWS(methods); i++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        if (scenario_run_read(
                &run, &error,
                "{'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'gpt_oss', "
                "'parameters': {'layers': 1, "
                "'hidden': 72, 'heads': 4, 'kv_heads': 4, 'head': 18, 'window': 4, 'experts': 2, "
                "'top_k': 1, 'expert_intermediate': 36, 'sequence': 8, 'vocabulary': 72}, "
                "'device': 'h100', 'precision': 'bf16', 'granularity': 'block', 'batch_size': 1}, "
                "'platform': {'topology': 'nvlink_switch', 'bandwidth': '1 GB/s', 'devices': 2}, "
                "'schedule': {'kind': 'sequential'}, 'parallel': {'context': 2, 'context_method': "
                "'%s', 'fold': 'no'}}",
                methods[i]) != CS_OK)
            fail_msg("%s: %s", methods[i], error.text);
        const flows got = planned(&run.scenario);
        const flow sums = {CS_PURPOSE_GRADIENTS, CS_ALL_REDUCE, 2, 1, 0};
        const flow *found = find(&got, &sums);
        expect_int(methods[i], HALF * parameters, resting_weights(&run.scenario));
        expect_int(methods[i], HALF * parameters, found ? found->bytes : 0);
        scenario_run_finish(&run);
    }
}

/* ---- images ---- */

/* VGG-16 (Simonyan and Zisserman, configuration D) of 64 x 64 pixels, with small dense layers. */
enum { PIXELS = 64, DENSE = 128, CLASSES = 64, POOLED = 7 };
static const uint32_t convs[] = {
    64, 64,  0,   128, 128, 0,   256, 256, 256,
    0,  512, 512, 512, 0,   512, 512, 512, 0}; /* filters; 0: a pooling by two */
static const uint32_t dense[] = {DENSE, DENSE, CLASSES};

typedef struct images {
    uint32_t space[2], tensor, data, shard, samples;
    bool filter; /* else channel */
    states states;
} images;

static cs_axes tensor_axis(const images *v)
{
    return (cs_axes){v->tensor, 1};
}

/* A row to each neighbour, of `channels`; the rows along y are as long as those along x have made
 * them. */
static void add_halo(flows *to, const images *v, int64_t channels, uint32_t pixels)
{
    const uint32_t x = v->space[0], y = v->space[1];
    const int64_t each = FLOAT * (int64_t)v->states.micro_batches * v->samples * channels;
    add_flow(to, CS_PURPOSE_SPACE, CS_HALO, (cs_axes){x, v->tensor}, 2 * each * (pixels / y));
    add_flow(to, CS_PURPOSE_SPACE, CS_HALO, (cs_axes){y, v->tensor * x},
             2 * each * (pixels / x + (x > 1)));
}

/* A convolution or dense layer of c inputs and f outputs, of `in` and `out` elements a place, and
 * its parameters. Filters gather results, and sum gradients of inputs; channels vice versa, from
 * the second layer on. */
static int64_t add_layer(flows *to, const images *v, bool first, int64_t c, int64_t f, int64_t in,
                         int64_t out, int64_t kernel)
{
    const int64_t each = FLOAT * (int64_t)v->states.micro_batches * v->samples;
    const bool divided = v->filter || !first;
    const int64_t t = divided ? v->tensor : 1;
    if (divided) {
        add_flow(to, CS_PURPOSE_TENSOR, v->filter ? CS_ALL_GATHER : CS_ALL_REDUCE, tensor_axis(v),
                 each * out);
        if (!first)
            add_flow(to, CS_PURPOSE_TENSOR, v->filter ? CS_ALL_REDUCE : CS_ALL_GATHER,
                     tensor_axis(v), each * in);
    }
    return c * f * kernel / t + (v->filter ? f / t : f);
}

static flows count_images(const images *v)
{
    const cs_axes all = {v->space[0] * v->space[1] * v->data, v->tensor};
    const uint32_t places = v->space[0] * v->space[1];
    flows to = {0};
    uint32_t c = 3, pixels = PIXELS, before;
    int64_t weights = 0, each = FLOAT * (int64_t)v->states.micro_batches * v->samples;
    for (size_t i = 0; i < ROWS(convs); i++) {
        const int64_t own = (int64_t)pixels * pixels / places;
        if (convs[i] == 0) {
            pixels /= 2;
            continue;
        }
        add_halo(&to, v, v->filter || i == 0 ? c : c / v->tensor, pixels);
        if (i > 0)
            add_halo(&to, v, v->filter ? convs[i] / v->tensor : convs[i], pixels);
        weights += add_layer(&to, v, i == 0, c, convs[i], own * c, own * convs[i], 9);
        c = convs[i];
    }
    /* the parts are gathered in front of the mean over 7 x 7 */
    add_flow(&to, CS_PURPOSE_SPACE, CS_ALL_GATHER, (cs_axes){v->space[0], v->tensor},
             each * c * pixels * (pixels / v->space[1]));
    add_flow(&to, CS_PURPOSE_SPACE, CS_ALL_GATHER, (cs_axes){v->space[1], v->tensor * v->space[0]},
             each * c * pixels * pixels);
    before = c * POOLED * POOLED;
    for (size_t i = 0; i < ROWS(dense); i++) {
        weights += add_layer(&to, v, false, before, dense[i], before, dense[i], 1);
        before = dense[i];
    }
    add_states(&to, &v->states, all, (cs_axes){v->shard, v->tensor}, FLOAT * weights);
    return to;
}

static void test_images(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(1, "images");
    assert_non_null(random);
    for (uint32_t i = 0; i < IMAGES; i++) {
        images v = {.space = {random_from_to(random, 1, 2), random_from_to(random, 1, 2)},
                    .tensor = 1u << random_from_to(random, 0, 3),
                    .data = random_from_to(random, 1, 2),
                    .samples = random_from_to(random, 1, 2),
                    .filter = random_from_to(random, 0, 1),
                    .states = draw_states(random)};
        const uint32_t alike = v.space[0] * v.space[1] * v.data;
        scenario_run run;
        cs_error error;
        char row[160];
        cs_error_init(&error);
        v.shard = draw_divisor(random, alike);
        v.filter |= v.tensor == 1;
        snprintf(row, sizeof(row),
                 "%" PRIu32 ": %s %u, space %u x %u, data %u, shard %u, zero %u, %u micro-batches",
                 i, v.filter ? "filter" : "channel", v.tensor, v.space[0], v.space[1], v.data,
                 v.shard, v.states.zero, v.states.micro_batches);
        if (alike * v.tensor == 1)
            continue;
        if (scenario_run_read(
                &run, &error,
                "{'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'vgg16', "
                "'parameters': {'image': %u, "
                "'dense': %u, 'classes': %u}, 'device': 'v100', 'precision': 'fp32', "
                "'granularity': 'block', 'batch_size': %u}, 'platform': {'topology': "
                "'nvlink_switch', 'bandwidth': '1 GB/s', 'devices': %u}, 'schedule': {'kind': "
                "'sequential', "
                "'micro_batches': %u}, 'iterations': 1, 'parallel': {'%s': %u, 'space': [%u, %u], "
                "'data': %u, 'zero': %u, 'accumulate': %s, 'shard': %u, 'fold': 'no'}}",
                PIXELS, DENSE, CLASSES, v.data * v.states.micro_batches * v.samples,
                alike * v.tensor, v.states.micro_batches, v.filter ? "filter" : "channel", v.tensor,
                v.space[0], v.space[1], v.data, v.states.zero,
                v.states.accumulate ? "true" : "false", v.shard) != CS_OK)
            fail_msg("%s: %s", row, error.text);
        const flows expected = count_images(&v), got = planned(&run.scenario);
        expect_flows(row, &expected, &got);
        scenario_run_finish(&run);
    }
    gsl_rng_free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_transformers),
                                       cmocka_unit_test(test_narrow), cmocka_unit_test(test_sinks),
                                       cmocka_unit_test(test_images)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

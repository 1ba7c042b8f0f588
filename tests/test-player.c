/* Tensors of a pass are allocated with the task in which their layer begins. */
#include "sim/run/player.h"

#include "tests/expect.h"
#include "tests/run-scenario.h"

#include <math.h>

/* Two blocks between an embedding and a head, on devices whose messages take no time. With tensor
 * parallelism a pass has a task between any two exchanges, without it is one task. */
static const char network[] =
    "{'schema_version': 1, 'runtime': 'ideal', 'name': 't', 'model': {'name': 'gpt', 'parameters': "
    "{'layers': 2, "
    "'hidden': 256, 'heads': 4, 'sequence': 128, 'vocabulary': 1024, 'intermediate': 1024}, "
    "'device': 'a100', 'precision': 'bf16', 'optimizer': 'adam', 'batch_size': 1, 'granularity': "
    "'block'}, 'platform': "
    "{'topology': 'ideal', 'devices': %d}, 'parallel': {'tensor': %d}, 'memory': {'allocator': "
    "'pytorch'}, 'schedule': {'kind': 'sequential', 'micro_batches': 1}}";

enum { MOST = 64 };

typedef struct times {
    uint32_t n;
    cs_time at[MOST];
} times;

static void add(times *to, cs_time at)
{
    if (to->n > 0 && to->at[to->n - 1] == at)
        return;
    assert_true(to->n < MOST);
    to->at[to->n++] = at;
}

/* Times at which tensors are allocated, except resident ones. */
static cs_status see(void *context, const cs_player *player, const cs_caching_event *event)
{
    if (event->action == CS_CACHING_ALLOC && cs_player_time(player) > 0)
        add(context, cs_player_time(player));
    return CS_OK;
}

/* The start of the device's task that runs at a time, a task that begins then rather than one that
 * ends. */
static cs_time task_at(const cs_simulation *of, cs_time at)
{
    cs_time found = 0;
    for (uint32_t t = 0; t < of->graph.n_tasks; t++) {
        const cs_class *cls = cs_graph_class(&of->graph, t);
        const cs_time start = of->trace.spans[t].start;
        if (cls->device == 0 && (cls->kind == CS_FORWARD || cls->kind == CS_BACKWARD) &&
            start <= at && start > found)
            found = start;
    }
    return found;
}

/* By hand: in the forward, layer l begins after the times of earlier layers, in the backward after
 * the times of later layers, each with a task. The run is replayed twice. */
static times begin_at(const scenario_run *run)
{
    const cs_model *model = run->scenario.model;
    times made = {0};
    for (int round = 0; round < 2; round++) {
        const cs_time from = round * run->simulation.trace.makespan;
        cs_time at = 0;
        for (uint32_t i = 0; i < 2 * model->n_layers; i++) {
            const bool forward = i < model->n_layers;
            const cs_layer *layer = &model->layers[forward ? i : 2 * model->n_layers - 1 - i];
            const cs_time begin = from + task_at(&run->simulation, at);
            if (begin > 0)
                add(&made, begin);
            at += forward ? layer->forward : layer->backward_input + layer->backward_weight;
        }
    }
    return made;
}

static void check(int tensor)
{
    scenario_run run;
    cs_error error;
    times got = {0};
    cs_device_allocations made;
    const cs_player_watch watch = {.see = see, .context = &got};
    cs_error_init(&error);
    if (scenario_run_init(&run, &error, network, tensor, tensor) != CS_OK ||
        cs_player_play(&run.scenario, &run.simulation.graph, &run.simulation.trace, 0, INT64_MAX,
                       &watch, &made, &error) != CS_OK)
        fail_msg("%s", error.text);
    const times expected = begin_at(&run);
    expect_int("layers that share no task", tensor > 1, expected.n > 3);
    expect_int("moments", expected.n, got.n);
    for (uint32_t i = 0; i < got.n; i++)
        expect_int("moment", expected.at[i], got.at[i]);
    scenario_run_finish(&run);
}

static void begin_with_their_layer(void **state)
{
    (void)state;
    check(2);
}

static void begin_with_their_pass(void **state)
{
    (void)state;
    check(1);
}

/* ---- what there is at most ---- */

static int64_t most_allocated(const char *model, const char *parallel, const char *granularity,
                              uint32_t micro_batches)
{
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'runtime': 'ideal', 'name': 't', 'model': {%s, 'device': "
            "'a100', 'precision': "
            "'bf16', 'optimizer': 'adam', 'batch_size': %u, 'granularity': '%s'}, 'platform': "
            "{'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': '100 GB/s', 'latency': '1 "
            "us'}, 'parallel': {%s}, 'memory': {'allocator': 'pytorch'}, 'schedule': {'kind': "
            "'sequential', 'micro_batches': %u}}",
            model, 2 * micro_batches, granularity, parallel, micro_batches) != CS_OK)
        fail_msg("%s: %s", parallel, error.text);
    const int64_t bytes = run.simulation.allocations.devices[0].stats.peak_allocated;
    scenario_run_finish(&run);
    return bytes;
}

/* The operators make and free the same tensors in the same order, whether the chain's layers are
 * blocks or as fine as can be; and a micro-batch frees everything that it allocated, so four of
 * them, one after another, need no more than one: nothing remains of the workspaces that layers
 * have during exchanges within them. */
static void has_tensors_of_operators(void **state)
{
    (void)state;
#define GPT                                                                                        \
    "'name': 'gpt', 'parameters': {'layers': 2, 'hidden': 256, 'heads': 4, 'sequence': 128, "      \
    "'vocabulary': 1024, 'intermediate': 1024}"
#define MIXTRAL                                                                                    \
    "'name': 'mixtral', 'parameters': {'layers': 2, 'hidden': 256, 'heads': 4, 'kv_heads': 4, "    \
    "'sequence': 128, 'vocabulary': 1024, 'expert_intermediate': 512, 'experts': 4, 'top_k': 1}"
    static const struct {
        const char *row, *model, *parallel;
    } rows[] = {
        {"features", GPT, "'tensor': 2"},
        {"tokens and features", GPT, "'tensor': 2, 'sequence_parallel': true"},
        {"tokens in rings", GPT, "'context': 2"},
        {"heads for tokens", GPT, "'context': 2, 'context_method': 'all_to_all'"},
        {"experts", MIXTRAL, "'data': 2, 'expert': 2"},
        {"samples", GPT, "'data': 2"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const int64_t one = most_allocated(rows[i].model, rows[i].parallel, "block", 1);
        expect_int(rows[i].row, one, most_allocated(rows[i].model, rows[i].parallel, "layer", 1));
        expect_int(rows[i].row, one, most_allocated(rows[i].model, rows[i].parallel, "block", 4));
        expect_int(rows[i].row, one, most_allocated(rows[i].model, rows[i].parallel, "layer", 4));
    }
}

/* ---- what collectives have read ---- */

enum { WHOLE = 128 * 256 * 2 }; /* bytes of a micro-batch's hidden states */

typedef struct pending {
    uint32_t now, most;
} pending;

/* Counts tensors of all tokens that were freed and cannot be used again yet. */
static cs_status count_pending(void *context, const cs_player *player,
                               const cs_caching_event *event)
{
    pending *of = context;
    (void)player;
    if (event->size != WHOLE)
        return CS_OK;
    of->now += event->action == CS_CACHING_FREE_REQUESTED;
    of->now -= event->action == CS_CACHING_FREE_COMPLETED;
    of->most = of->now > of->most ? of->now : of->most;
    return CS_OK;
}

static uint32_t most_pending(uint32_t passes_ahead, int64_t *allocated)
{
    scenario_run run;
    cs_error error;
    pending got = {0};
    cs_device_allocations made;
    const cs_player_watch watch = {.see = count_pending, .context = &got};
    cs_error_init(&error);
    if (scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'runtime': 'ideal', 'name': 't', 'model': {'name': 'gpt', "
            "'parameters': {'layers': 2, 'hidden': 256, 'heads': 4, 'sequence': 128, 'vocabulary': "
            "1024, 'intermediate': 1024}, 'device': 'a100', 'precision': 'bf16', 'optimizer': "
            "'adam', 'batch_size': 2, 'granularity': 'block'}, 'platform': {'topology': 'ideal', "
            "'devices': 2}, 'parallel': {'tensor': 2, 'sequence_parallel': true}, 'memory': "
            "{'allocator': 'pytorch', 'passes_ahead': %u}, 'schedule': {'kind': 'sequential', "
            "'micro_batches': 2}}",
            passes_ahead) != CS_OK ||
        cs_player_play(&run.scenario, &run.simulation.graph, &run.simulation.trace, 0, INT64_MAX,
                       &watch, &made, &error) != CS_OK)
        fail_msg("%s", error.text);
    *allocated = made.stats.peak_allocated;
    scenario_run_finish(&run);
    return got.most;
}

/* By hand: a block has two sums that are scattered in its forward, and two gathers whose gradients
 * are in its backward; so do the embedding (forward) and the last matrix (backward) have one. The
 * first forward is not ahead: two blocks, backward, forward and backward, 4 + 1, 4 + 1, 4 + 1. A
 * tensor that waits for nothing counts while it is freed. */
static void waits_for_collectives(void **state)
{
    (void)state;
    static const struct {
        uint32_t ahead, most;
    } rows[] = {{0, 1}, {1000, 15 + 1}};
    int64_t allocated[2];
    for (size_t i = 0; i < 2; i++)
        expect_int("tensors that wait", rows[i].most, most_pending(rows[i].ahead, &allocated[i]));
    expect_int("allocated memory", allocated[0], allocated[1]);
}

/* ---- weights before they are divided ---- */

static cs_status sum_first(void *context, const cs_player *player, const cs_caching_event *event)
{
    if (event->action == CS_CACHING_ALLOC && cs_player_time(player) == 0)
        *(int64_t *)context += event->size;
    return CS_OK;
}

/* Memory allocated before the run begins, plus all weights, layer by layer. */
static void loads_whole_weights(void **state)
{
    (void)state;
    int64_t sums[2] = {0}, weights = 0;
    for (int whole = 0; whole < 2; whole++) {
        scenario_run run;
        cs_error error;
        cs_device_allocations made;
        const cs_player_watch watch = {.see = sum_first, .context = &sums[whole]};
        cs_error_init(&error);
        if (scenario_run_init(
                &run, &error,
                "{'schema_version': 1, 'runtime': 'ideal', 'name': 't', 'model': {'name': 'gpt', "
                "'parameters': {'layers': 2, 'hidden': 256, 'heads': 4, 'sequence': 128, "
                "'vocabulary': 1024, 'intermediate': 1024}, 'device': 'a100', 'precision': 'bf16', "
                "'optimizer': 'adam', 'batch_size': 2}, 'platform': {'topology': 'ideal', "
                "'devices': 2}, 'parallel': {'data': 2, 'zero': 3}, 'memory': {'allocator': "
                "'pytorch', 'whole_weights': %s}, 'schedule': {'kind': 'sequential', "
                "'micro_batches': 1}}",
                whole ? "true" : "false") != CS_OK ||
            cs_player_play(&run.scenario, &run.simulation.graph, &run.simulation.trace, 0,
                           INT64_MAX, &watch, &made, &error) != CS_OK)
            fail_msg("%s", error.text);
        weights = 0;
        for (uint32_t l = 0; l < run.scenario.model->n_layers; l++)
            weights += (run.scenario.model->layers[l].weight_bytes + 511) / 512 * 512;
        scenario_run_finish(&run);
    }
    expect_int("weights", weights, sums[1] - sums[0]);
}

/* ---- how likely it is that a run fits ---- */

/* The spread is rounded up to a byte. */
static void expect_near(const char *row, double expected, double got)
{
    if (!(fabs(expected - got) < 1e-6))
        fail_msg("%s: expected %.9g, got %.9g", row, expected, got);
}

/* The normal distribution at 0, 1 and -1 standard deviations. */
static void knows_a_normal_distribution(void **state)
{
    (void)state;
    cs_memory_fit fit;
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(
        cs_memory_fit_of(INT64_C(80) << 30, INT64_C(1) << 30, INT64_C(80) << 30, &fit, &error),
        CS_OK);
    expect_near("as much as there is", 0.5, fit.probability);
    const int64_t needed = INT64_C(80) << 30, spread = fit.spread;
    assert_int_equal(cs_memory_fit_of(needed + spread, INT64_C(1) << 30, needed, &fit, &error),
                     CS_OK);
    expect_near("a deviation more", 0.8413447460685429, fit.probability);
    assert_int_equal(cs_memory_fit_of(needed - spread, INT64_C(1) << 30, needed, &fit, &error),
                     CS_OK);
    expect_near("a deviation less", 0.15865525393145707, fit.probability);
    assert_int_equal(cs_memory_fit_of(INT64_MAX, 0, needed, &fit, &error), CS_OK);
    expect_double("without limit", 1, fit.probability);
}

static cs_memory_fit fit_with(int64_t capacity, bool *failed)
{
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'runtime': 'ideal', 'name': 't', 'model': {'name': 'gpt', "
            "'parameters': {'layers': 4, 'hidden': 256, 'heads': 4, 'sequence': 512, 'vocabulary': "
            "1024, 'intermediate': 1024}, 'device': 'a100', 'precision': 'bf16', 'optimizer': "
            "'adam', 'batch_size': 16}, 'platform': {'topology': 'ideal', 'devices': 1, "
            "'memory': %lld, 'reserve': 0}, 'memory': {'allocator': 'pytorch'}, 'schedule': "
            "{'kind': 'sequential', 'micro_batches': 2}}",
            (long long)capacity) != CS_OK)
        fail_msg("%s", error.text);
    const cs_memory_fit fit = run.simulation.fit;
    *failed = run.simulation.allocations.devices[0].failure.failed;
    scenario_run_finish(&run);
    return fit;
}

/* The needed memory suffices, a little less than the peak of allocated memory does not, and the
 * probability agrees with the verdict. */
static void needs_what_is_enough(void **state)
{
    (void)state;
    bool failed;
    const cs_memory_fit ample = fit_with(INT64_C(64) << 30, &failed);
    assert_false(failed);
    expect_near("ample", 1, ample.probability);
    const cs_memory_fit first = fit_with(ample.needed, &failed);
    assert_false(failed);
    assert_true(first.probability >= 0.5 && first.needed <= ample.needed);
    (void)fit_with(first.needed, &failed);
    assert_false(failed);
    const cs_memory_fit short_of = fit_with(first.needed * 9 / 10, &failed);
    assert_true(failed && short_of.probability < 0.5);
    assert_true(short_of.needed > short_of.capacity);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begin_with_their_layer),   cmocka_unit_test(begin_with_their_pass),
        cmocka_unit_test(has_tensors_of_operators), cmocka_unit_test(waits_for_collectives),
        cmocka_unit_test(loads_whole_weights),      cmocka_unit_test(knows_a_normal_distribution),
        cmocka_unit_test(needs_what_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

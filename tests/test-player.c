/* When the tensors of a pass come: with the task in which their layer begins. */
#include "sim/run/player.h"

#include "tests/expect.h"
#include "tests/run-scenario.h"

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

/* Times at which tensors are made, but for what is there from the start. */
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

/* By hand: forward, layer l begins when those before it have taken their time, backward, when those
 * behind it have; each with a task. The run is played twice. */
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
        cs_player_play(&run.scenario, &run.simulation.graph, &run.simulation.trace, 0, &watch,
                       &made, &error) != CS_OK)
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
 * blocks or as fine as can be; and a micro-batch frees all that it made, so that four of them, one
 * behind the other, have at most what one has: of the workspaces that layers have while devices
 * exchange something within them nothing is left. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begin_with_their_layer),
        cmocka_unit_test(begin_with_their_pass),
        cmocka_unit_test(has_tensors_of_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Weights that layers of several stages share: what each device holds of them, and the all-reduce
 * of their gradients before the update. */
#include "tests/expect.h"
#include "tests/run-scenario.h"

enum { LAYERS = 6, GB = 1000000000 };

/* n layers of 1 s forward and 1 + 1 s backward; the first has 4 GB of weights and an update of 8 s,
 * and the last one uses 3 GB of them besides 1 GB of its own, which it updates in 1 s. Activations
 * have no bytes. With `second`, the second one uses these 3 GB too, and has none of its own. */
static void write_layers(uint32_t n, bool second, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t l = 0; l < n; l++) {
        const char *weights = l == 0       ? "'weights': '4 GB', 'update': '8 s'"
                              : l + 1 == n ? "'weights': '1 GB', 'update': '1 s', 'tied_to': 'l0', "
                                             "'tied_weights': '3 GB'"
                              : l == 1 && second
                                  ? "'weights': 0, 'tied_to': 'l0', 'tied_weights': '3 GB'"
                                  : "'weights': 0";
        used += (size_t)snprintf(text + used, size - used,
                                 "%s{'name': 'l%u', 'forward': '1 s', 'backward_input': '1 s', "
                                 "'backward_weight': '1 s', 'output': 0, %s}",
                                 l > 0 ? ", " : "", l, weights);
    }
}

static void simulate_tied(uint32_t n_layers, bool second, uint32_t devices, const char *schedule,
                          scenario_run *run)
{
    char layers[2048];
    cs_error error;
    cs_error_init(&error);
    write_layers(n_layers, second, layers, sizeof(layers));
    const cs_status status = scenario_run_init(
        run, &error,
        "{'schema_version': 1, 'iterations': 1, 'model': {'optimizer': 'momentum', 'inline': "
        "{'schema_version': 1, 'name': 'tied', 'batch_size': 0, 'provenance': {'source': 's', "
        "'hardware': 'h', 'date': '2026-11-22'}, 'layers': [%s]}}, 'platform': {'topology': "
        "'nvlink_mesh', 'links': 1, 'link_bandwidth': '1 GB/s', 'devices': %u}, 'schedule': {%s}}",
        layers, devices, schedule);
    expect_error(schedule, CS_OK, "", status, &error);
}

static void simulate(uint32_t n_layers, uint32_t devices, const char *schedule, scenario_run *run)
{
    simulate_tied(n_layers, false, devices, schedule, run);
}

static uint32_t count_all_reduces(const cs_graph *graph)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < graph->n_tasks; t++)
        n += cs_graph_class(graph, t)->kind == CS_TRANSFER &&
             cs_graph_class(graph, t)->origin == CS_ALL_REDUCE;
    return n;
}

#define REPLICAS(a, b, c)                                                                          \
    "'kind': '1f1b', 'micro_batches': 4, 'replicas': 'round_robin', 'partition': {'inline': "      \
    "{'schema_version': 1, 'stages': [{'first_layer': 0, 'last_layer': 0, 'devices': " a           \
    "}, {'first_layer': 1, 'last_layer': 1, 'devices': " b                                         \
    "}, {'first_layer': 2, 'last_layer': 2, 'devices': " c "}]}}"

/* A ring of n sends 2(n - 1) chunks of an n-th, one after another, at 1 GB/s: 3 s for 3 GB with
 * two; 4 s for 4 GB with two. With three there are two rings, one in each direction, with half of
 * the bytes each: 2 s for 3 GB; a rank ends where its four last messages meet, one of no bytes to
 * itself. The first stage, whose backward ends the mini-batch, is the last to reach it, and its
 * update of 8 s the longest: the borrower's takes 1 s and 3/4 of 8 s. Replicas sum all gradients of
 * their stage first. Each pair of devices has links of its own. */
static const struct {
    const char *row, *schedule;
    uint32_t layers, devices;
    uint32_t before, reduced, update; /* s: until the last backward, all-reduces, the last update */
    uint32_t messages;                /* messages of all-reduces */
    uint32_t borrower;                /* a device that holds the last layer, and not the first */
} rows[] = {
    {"gpipe", "'kind': 'gpipe', 'micro_batches': 4", 3, 3, (4 + 2) * 3, 3, 8, 4, 2},
    {"1f1b", "'kind': '1f1b', 'micro_batches': 4", 3, 3, (4 + 2) * 3, 3, 8, 4, 2},
    {"zb_h1", "'kind': 'zb_h1', 'micro_batches': 4", 3, 3, 4 * 3 + 2, 3, 8, 4, 2},
    {"interleaved", "'kind': 'interleaved_1f1b', 'micro_batches': 3", 6, 3, (6 + 2) * 3, 3, 8, 4,
     2},
    {"two replicas each", REPLICAS("[0, 1]", "[2, 3]", "[4, 5]"), 3, 6, (2 + 2) * 3, 4 + 3, 8,
     4 + 4 + 2 * 4, 4},
    {"two replicas and one", REPLICAS("[0, 1]", "[2]", "[3]"), 3, 4, 0, 4 + 2, 8, 4 + 2 * 12 + 3,
     3},
};

static void test_exchange(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run run;
        simulate(rows[i].layers, rows[i].devices, rows[i].schedule, &run);
        const cs_trace *trace = &run.simulation.trace;
        const cs_graph *graph = &run.simulation.graph;
        cs_time last = 0, update = 0;
        for (uint32_t t = 0; t < graph->n_tasks; t++) {
            const cs_class *cls = cs_graph_class(graph, t);
            cs_time *of = cls->kind == CS_UPDATE && cls->stage == 0 ? &update : &last;
            if (cls->stage == 0 && cls->kind != CS_TRANSFER && trace->spans[t].end > *of)
                *of = trace->spans[t].end;
        }
        if (rows[i].before > 0)
            expect_int(rows[i].row, rows[i].before * CS_PS_PER_SEC, last);
        expect_int(rows[i].row, last + (rows[i].reduced + rows[i].update) * CS_PS_PER_SEC, update);
        expect_int(rows[i].row, rows[i].messages, count_all_reduces(graph));
        const cs_device_record *holder = &trace->devices[rows[i].borrower];
        expect_int(rows[i].row, 4 * (int64_t)GB, holder->category_peak[CS_MEMORY_WEIGHTS]);
        expect_int(rows[i].row, 4 * (int64_t)GB, holder->category_peak[CS_MEMORY_GRADIENTS]);
        expect_int(rows[i].row, 4 * (int64_t)GB, holder->category_peak[CS_MEMORY_OPTIMIZER]);
        for (uint32_t f = 0; f < run.simulation.forms.n; f++) {
            const cs_form *form = &run.simulation.forms.forms[f];
            if (form->figure == CS_FIGURE_MAKESPAN && form->applies)
                fail_msg("%s: the formula %s knows nothing of the all-reduce", rows[i].row,
                         form->formula);
        }
        scenario_run_finish(&run);
    }
}

/* Three layers that share 3 GB, as T5's encoder, decoder and last matrix do. On three devices their
 * gradients are summed once, over all three: two rings of 3, one each way round, send 2 (3 - 1)
 * chunks of half of 1 GB each, 2 s and 24 messages, and 3 of no bytes where ranks end; two sums of
 * pairs, side by side in 3 s, would leave the copies unequal. Of four stages on two devices the
 * second and the last are both on device 1, which has one copy for them: a ring of 2, 3 s and 4
 * messages. Device 0 updates 4 GB in 8 s; the last layer has 1 GB besides 3 GB. */
static void test_three(void **state)
{
    (void)state;
    static const struct {
        const char *schedule;
        uint32_t layers, devices, reduced, messages, borrower;
        int64_t weights; /* weights of the second layer's device, in GB */
    } cases[] = {
        {"'kind': '1f1b', 'micro_batches': 4", 4, 4, 2, 27, 1, 3},
        {"'kind': 'gpipe', 'micro_batches': 4", 4, 4, 2, 27, 1, 3},
        {"'kind': 'zb_h1', 'micro_batches': 4", 5, 5, 2, 27, 1, 3},
        {"'kind': 'interleaved_1f1b', 'micro_batches': 4", 4, 2, 3, 4, 1, 4},
    };
    for (size_t i = 0; i < ROWS(cases); i++) {
        scenario_run run;
        simulate_tied(cases[i].layers, true, cases[i].devices, cases[i].schedule, &run);
        const cs_trace *trace = &run.simulation.trace;
        const cs_graph *graph = &run.simulation.graph;
        cs_time last = 0, update = 0;
        for (uint32_t t = 0; t < graph->n_tasks; t++) {
            const cs_class *cls = cs_graph_class(graph, t);
            cs_time *of = cls->kind == CS_UPDATE ? &update : &last;
            if (cls->device == 0 && cls->kind != CS_TRANSFER && trace->spans[t].end > *of)
                *of = trace->spans[t].end;
        }
        expect_int(cases[i].schedule, last + (cases[i].reduced + 8) * CS_PS_PER_SEC, update);
        expect_int(cases[i].schedule, cases[i].messages, count_all_reduces(graph));
        expect_int(cases[i].schedule, cases[i].weights * GB,
                   trace->devices[cases[i].borrower].category_peak[CS_MEMORY_WEIGHTS]);
        scenario_run_finish(&run);
    }
}

/* A device that has both layers has one copy, and nothing to exchange with another stage. */
static void test_one_copy(void **state)
{
    (void)state;
    static const struct {
        const char *schedule;
        uint32_t layers, devices, messages; /* messages of all-reduces among replicas */
    } whole[] = {
        {"'kind': 'sequential'", 3, 1, 0},
        {"'kind': 'dp'", 3, 2, 4},
        {"'kind': 'dp', 'bucket': '1 B'", 3, 2, 2 * 4},
        {"'kind': 'interleaved_1f1b', 'micro_batches': 2", 2, 1, 0},
        {"'kind': 'custom', 'micro_batches': 1, 'stage_devices': [0, 1, 0], 'device_tasks': "
         "['F0@0 F0@2 B0@2 B0@0', 'F0@1 B0@1']",
         3, 2, 0},
    };
    for (size_t i = 0; i < ROWS(whole); i++) {
        scenario_run run;
        simulate(whole[i].layers, whole[i].devices, whole[i].schedule, &run);
        const cs_device_record *device = &run.simulation.trace.devices[0];
        expect_int(whole[i].schedule, 5 * (int64_t)GB, device->category_peak[CS_MEMORY_WEIGHTS]);
        expect_int(whole[i].schedule, 5 * (int64_t)GB, device->category_peak[CS_MEMORY_GRADIENTS]);
        expect_int(whole[i].schedule, whole[i].messages, count_all_reduces(&run.simulation.graph));
        scenario_run_finish(&run);
    }
}

static void expect_warning(const scenario_run *run, const char *kind)
{
    char message[256];
    snprintf(message, sizeof(message),
             "/schedule/kind: \"%s\" does not sum the gradients of the weights that \"l0\" and "
             "\"l2\" share: each of their stages updates its own copy",
             kind);
    if (!strstr(run->scenario.warnings.text, message))
        fail_msg("expected:\n%s\ngot:\n%s", message, run->scenario.warnings.text);
}

/* With ZeRO each stage's states are on one of the devices at a time, so that a device that computes
 * the last stage needs a copy of its own of the first one's weights. With a barrier device j keeps
 * stage j, and has each stage as well while it computes it: 4 + 4 GB on devices 0 and 2, 0 + 4 GB
 * on 1. With multi_gpu all stages are on all devices: 5 GB. */
static void test_apart(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *setting;
        int64_t peaks[3]; /* peaks of weights, in GB; 0: not checked */
        bool apart;
    } cases[] = {{"cdp_dp", "zero", {8, 4, 8}, true},
                 {"cdp_v1", "zero", {0}, true},
                 {"cdp_v2", "zero", {0}, true},
                 {"cdp_dp", "multi_gpu", {5, 5, 5}, false}};
    for (size_t i = 0; i < ROWS(cases); i++) {
        char schedule[128];
        scenario_run run;
        snprintf(schedule, sizeof(schedule), "'kind': '%s', 'setting': '%s', 'micro_batches': 3",
                 cases[i].kind, cases[i].setting);
        simulate(3, 3, schedule, &run);
        if (cases[i].apart)
            expect_warning(&run, cases[i].kind);
        else
            expect_int(schedule, 0, strlen(run.scenario.warnings.text));
        for (uint32_t d = 0; d < 3 && cases[i].peaks[d] > 0; d++)
            expect_int(schedule, cases[i].peaks[d] * GB,
                       run.simulation.trace.devices[d].category_peak[CS_MEMORY_WEIGHTS]);
        scenario_run_finish(&run);
    }
}

/* Schedules that do not sum them say so, and hold both copies all the same. */
static void test_not_exchanged(void **state)
{
    (void)state;
    static const char *const kinds[] = {"pipedream", "pipedream_2bw", "nf1b"};
    for (size_t i = 0; i < ROWS(kinds); i++) {
        char schedule[128];
        scenario_run run;
        snprintf(schedule, sizeof(schedule), "'kind': '%s'%s", kinds[i],
                 i > 0 ? ", 'micro_batches': 4" : "");
        simulate(3, 3, schedule, &run);
        expect_warning(&run, kinds[i]);
        expect_int(kinds[i], 4 * (int64_t)GB,
                   run.simulation.trace.devices[2].category_peak[CS_MEMORY_WEIGHTS]);
        expect_int(kinds[i], 0, count_all_reduces(&run.simulation.graph));
        scenario_run_finish(&run);
    }
}

/* Bytes that a device receives for weights in collectives, over the whole run. */
static double received(const scenario_run *run, cs_purpose purpose)
{
    return run->simulation.lowering.moved[purpose];
}

/* Gradients that are there whole from the first backward of the last unit on. */
static int64_t first_gradients(const cs_graph *graph)
{
    for (uint32_t t = 0; t < graph->n_tasks; t++) {
        const cs_class *cls = cs_graph_class(graph, t);
        if (cls->kind != CS_BACKWARD)
            continue;
        for (uint32_t e = 0; e < cls->n_effects; e++) {
            const cs_effect *effect = &graph->effects[cls->first_effect + e];
            if (effect->category == CS_MEMORY_GRADIENTS && effect->bytes > 0)
                return effect->bytes;
        }
    }
    return 0;
}

/* At ZeRO stage 3 two devices gather units: the 4 GB of the first layer, 3 GB of which the last
 * layer shares, with the middle one, which has none; and the last layer's own 1 GB. Shared weights
 * belong to FSDP's root unit: gathered once per micro-batch, they stay until its backward has
 * ended. Each device sends half of the gathered bytes: (4 + 1) / 2 GB forward and 1/2 GB backward,
 * 3 GB of each of two micro-batches, 12 GB of both devices. Without prefetching there are 4 + 1 GB
 * at once. The gradient of shared weights begins with the last layer's backward, so there are 4 + 1
 * GB of gradients from then on. With `keep_gathered` all is gathered once a micro-batch: 5 GB. */
static void test_root_unit(void **state)
{
    (void)state;
    static const struct {
        const char *row, *parallel;
        int64_t sent, gathered, gradients;
    } roots[] = {
        {"shared", "'prefetch': 0", 12 * (int64_t)GB, 5 * (int64_t)GB, 5 * (int64_t)GB},
        {"kept", "'prefetch': 0, 'keep_gathered': true", 10 * (int64_t)GB, 5 * (int64_t)GB,
         5 * (int64_t)GB},
        {"accumulated", "'prefetch': 0, 'accumulate': true", 12 * (int64_t)GB, 5 * (int64_t)GB, 0},
    };
    for (size_t i = 0; i < ROWS(roots); i++) {
        char schedule[256];
        scenario_run run;
        snprintf(schedule, sizeof(schedule),
                 "'kind': 'sequential', 'micro_batches': 2}, 'parallel': {'data': 2, 'zero': 3, %s",
                 roots[i].parallel);
        simulate(3, 2, schedule, &run);
        const cs_device_record *device = &run.simulation.trace.devices[0];
        expect_int(roots[i].row, roots[i].sent, (int64_t)received(&run, CS_PURPOSE_WEIGHTS));
        expect_int(roots[i].row, roots[i].gathered, device->category_peak[CS_MEMORY_GATHERED]);
        expect_int(roots[i].row, roots[i].gradients, first_gradients(&run.simulation.graph));
        scenario_run_finish(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange),      cmocka_unit_test(test_three),
        cmocka_unit_test(test_one_copy),      cmocka_unit_test(test_apart),
        cmocka_unit_test(test_not_exchanged), cmocka_unit_test(test_root_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

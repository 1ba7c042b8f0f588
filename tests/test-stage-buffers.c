/* Tensors that pipeline stages exchange and keep (stage-buffers.h), counted by hand. */
#include "tests/expect.h"
#include "tests/run-scenario.h"

enum { KB = 1000 };

/* 1F1B of two stages and three micro-batches, F F B F B B and F B F B F B, twice. Layers take 1 s
 * either way, messages of 100 kB 1 ms. The first layer keeps 10 kB, the second one its input of 100
 * kB and 7 kB; its loss reads 40 kB, which it may keep as well. */
static void simulate(const char *row, const char *memory, bool kept, scenario_run *run)
{
    cs_error error;
    cs_error_init(&error);
    const cs_status status = scenario_run_init(
        run, &error,
        "{'schema_version': 1, 'iterations': 2, 'model': {'inline': {'schema_version': 1, 'name': "
        "'m', 'batch_size': 0, 'provenance': {'source': 's', 'hardware': 'h', 'date': "
        "'2026-11-23'}, 'layers': [{'name': 'a', 'forward': '1 s', 'backward_input': '1 s', "
        "'backward_weight': 0, "
        "'weights': 0, 'output': '100 kB', 'kept': '10 kB'}, {'name': 'b', 'forward': '1 s', "
        "'backward_input': '1 s', 'backward_weight': 0, 'weights': 0, 'output': 0, 'kept': '%s', "
        "'result': '40 kB', "
        "'result_kept': %s}]}}, 'platform': {'topology': 'nvlink_switch', 'devices': 2, "
        "'bandwidth': '100 MB/s', 'latency': 0}, 'parallel': {'pipeline': 2}, 'schedule': {'kind': "
        "'1f1b', 'micro_batches': 3}, 'memory': {%s}}",
        kept ? "147 kB" : "107 kB", kept ? "true" : "false", memory);
    expect_error(row, CS_OK, "", status, &error);
}

/* Receive buffers are 300 kB on either device: of gradients on the first, of activations on the
 * second, whose layer then keeps its input there. A message is another 100 kB while it is sent. The
 * first device has results of two micro-batches at once, or of all three, and sends them from
 * there; the second has results of three, and the last gradient that it sends, or all three that it
 * has sent back. A device that keeps the last gradient it sent back has room for this and for its
 * input, unless that is in a receive buffer, in addition to an activation that arrives, and sends
 * from there; the first device of a pipeline sends nothing back. Tensors that the loss keeps until
 * its backward are not buffers before. If nothing stays, both have the messages in flight or
 * waiting: an activation and a gradient. */
static void buffers_and_results(void **state)
{
    (void)state;
#define BUFFERS "'receive_buffers': true, "
    static const struct {
        const char *row, *memory;
        bool kept;
        int64_t buffers[2], activations;
    } rows[] = {
        {"buffers", BUFFERS "'stage_results': 'sent'", false, {400, 400}, 7},
        {"until backward", BUFFERS "'stage_results': 'backward'", false, {500, 400}, 7},
        {"last", BUFFERS "'stage_results': 'last'", false, {500, 300 + 120 + 100}, 7},
        {"kept by the loss", BUFFERS "'stage_results': 'last'", true, {500, 300 + 120 + 100}, 47},
        {"all", BUFFERS "'stage_results': 'all'", false, {600, 300 + 120 + 300}, 7},
        {"returned", "'stage_results': 'returned'", false, {200, 300}, 107},
        {"returned, with buffers", BUFFERS "'stage_results': 'returned'", false, {400, 400}, 7},
        {"results alone", "'stage_results': 'backward'", false, {300, 200}, 107},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run run;
        simulate(rows[i].row, rows[i].memory, rows[i].kept, &run);
        const cs_device_record *devices = run.simulation.trace.devices;
        for (uint32_t d = 0; d < 2; d++)
            expect_int(rows[i].row, rows[i].buffers[d] * KB,
                       devices[d].category_peak[CS_MEMORY_BUFFERS]);
        expect_int(rows[i].row, rows[i].activations * KB,
                   devices[1].category_peak[CS_MEMORY_ACTIVATIONS]);
        scenario_run_finish(&run);
    }
}

/* ---- on the allocator ---- */

/* GPipe computes all forwards first. Weights and states are too small to matter. */
static int64_t most_allocated_on(const char *platform, const char *kind, const char *memory,
                                 uint32_t device)
{
    scenario_run run;
    cs_error error;
    cs_error_init(&error);
    const cs_status status = scenario_run_init(
        &run, &error,
        "{'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'gpt', 'parameters': "
        "{'layers': 2, 'hidden': 256, "
        "'heads': 4, 'sequence': 1024, 'vocabulary': 4096, 'intermediate': 1024, 'dropout': 0, "
        "'attention': 'flash'}, 'device': 'a100', 'precision': 'bf16', 'optimizer': 'adam', "
        "'batch_size': 4, 'granularity': 'block', 'recompute': true}, 'platform': {'topology': "
        "'nvlink_switch', 'devices': 2, 'bandwidth': '100 GB/s', 'latency': '1 us'%s}, 'parallel': "
        "{'pipeline': 2}, 'memory': {'allocator': 'pytorch', %s}, 'schedule': {'kind': '%s', "
        "'micro_batches': 4, 'partition': [2]}}",
        platform, memory, kind);
    expect_error(memory, CS_OK, "", status, &error);
    const int64_t bytes = run.simulation.allocations.devices[device].stats.peak_allocated;
    scenario_run_finish(&run);
    return bytes;
}

static int64_t most_allocated(const char *kind, const char *memory, uint32_t device)
{
    return most_allocated_on("", kind, memory, device);
}

/* A message is 1024 x 256 in 2 bytes, logits 1024 x 4096. GPipe's last stage has the inputs of all
 * four micro-batches when its last forward begins, in buffers or not. Its first stage has its peak
 * in the first backward, with the gradient that it reads, or with buffers for all four. The last
 * stage of 1F1B, whose head is not computed again, has logits in a forward, and as many bytes of
 * their gradients in a backward; the loss, one number in the smallest block, is freed by then. Its
 * peak is in a forward that begins while the gradient of the previous micro-batch is still being
 * sent; or in the last backward, when the logits of all four forwards still exist. */
static void tensors_of_stages(void **state)
{
    (void)state;
    const int64_t message = 1024 * 256 * 2, logits = 1024 * 4096 * 2, loss = 512;
    const char *none = "'receive_buffers': false", *buffers = "'receive_buffers': true";
    expect_int("inputs are there once", most_allocated("gpipe", none, 1),
               most_allocated("gpipe", buffers, 1));
    expect_int("gradients", most_allocated("gpipe", none, 0) + 3 * message,
               most_allocated("gpipe", buffers, 0));
    expect_int("logits", most_allocated("1f1b", buffers, 1) - message - loss + 4 * logits,
               most_allocated("1f1b", "'receive_buffers': true, 'stage_results': 'last'", 1));
}

/* Messages that occupy computing are sent when the next forward begins, which has most on the last
 * stage: then the gradient handed back last, and its input, are there only where they are kept. The
 * first stage hands none back. */
static void last_gradient(void **state)
{
    (void)state;
    const int64_t message = 1024 * 256 * 2;
    const char *blocking = ", 'blocking': true";
    const char *sent = "'stage_results': 'sent'", *returned = "'stage_results': 'returned'";
    for (uint32_t d = 0; d < 2; d++)
        expect_int("gradient handed back",
                   most_allocated_on(blocking, "1f1b", sent, d) + 2 * d * message,
                   most_allocated_on(blocking, "1f1b", returned, d));
}

static int64_t buffers_from_start(const scenario_run *run, uint32_t device)
{
    const cs_graph *graph = &run->simulation.graph;
    int64_t sum = 0;
    for (uint32_t i = 0; i < graph->n_residents; i++)
        if (graph->residents[i].device == device &&
            graph->residents[i].category == CS_MEMORY_BUFFERS)
            sum += graph->residents[i].bytes;
    return sum;
}

/* Four layers that each hand on 100 kB. In two stages the second device keeps a gradient and its
 * input; in four, two on each device, both have room for a gradient alone. */
static void stages_of_a_device(void **state)
{
    (void)state;
    static const struct {
        const char *row, *schedule;
        int64_t held[2];
    } rows[] = {
        {"one stage each", "'kind': '1f1b'", {0, 200}},
        {"two stages each", "'kind': 'interleaved_1f1b', 'stages_per_device': 2", {100, 100}},
    };
#define LAYER(name)                                                                                \
    "{'name': '" name "', 'forward': '1 s', 'backward_input': '1 s', 'backward_weight': 0, "       \
    "'weights': 0, 'output': '100 kB', 'kept': '10 kB'}"
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        const cs_status status = scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'model': {'inline': {'schema_version': 1, 'name': 'm', "
            "'batch_size': 0, 'provenance': {'source': 's', 'hardware': 'h', 'date': "
            "'2026-11-23'}, 'layers': [" LAYER("a") ", " LAYER("b") ", " LAYER("c") ", " LAYER(
                "d") "]}}, 'platform': {'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': "
                     "'100 MB/s', 'latency': 0}, 'parallel': {'pipeline': 2}, 'schedule': {%s, "
                     "'micro_batches': 2}, 'memory': {'stage_results': 'returned'}}",
            rows[i].schedule);
        expect_error(rows[i].row, CS_OK, "", status, &error);
        for (uint32_t d = 0; d < 2; d++)
            expect_int(rows[i].row, rows[i].held[d] * KB, buffers_from_start(&run, d));
        scenario_run_finish(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_and_results),
        cmocka_unit_test(tensors_of_stages),
        cmocka_unit_test(last_gradient),
        cmocka_unit_test(stages_of_a_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

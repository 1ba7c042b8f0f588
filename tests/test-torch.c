/* Traces of PyTorch's profiler: times by module, and what is said when something is lacking. */
#include "sim/model/foreign/gzip.h"
#include "sim/model/foreign/torch-trace.h"

#include "tests/expect.h"

#include <stdlib.h>
#include <zlib.h>

#define EVENT(cat, name, tid, ts, dur, args)                                                       \
    "{\"ph\": \"X\", \"cat\": \"" cat "\", \"name\": \"" name "\", \"pid\": 1, \"tid\": " #tid     \
    ", \"ts\": " #ts ", \"dur\": " #dur ", \"args\": {" args "}}"

#define OP(name, tid, ts, dur, args) EVENT("cpu_op", name, tid, ts, dur, args)
#define SEQ(n)                       "\"Sequence number\": " #n
#define LAUNCH(tid, ts, n)                                                                         \
    EVENT("cuda_runtime", "cudaLaunchKernel", tid, ts, 1, "\"correlation\": " #n)
#define KERNEL(ts, dur, n) EVENT("kernel", "gemm", 7, ts, dur, "\"correlation\": " #n)

/* linear of (16, 32) with (64, 32) and (64): reads 2048 bytes, weights
 * 4 * (64 * 32 + 64) = 8448. */
#define LINEAR_SHAPES                                                                              \
    ", \"Input Dims\": [[16, 32], [64, 32], [64]], \"Input type\": [\"float\", \"float\", "        \
    "\"float\"]"
#define RELU_SHAPES ", \"Input Dims\": [[16, 64]], \"Input type\": [\"float\"]"
#define BACKWARD(name, tid, ts, dur, n)                                                            \
    OP("autograd::engine::evaluate_function: " name, tid, ts, dur, SEQ(n))

#define MODULES                                                                                    \
    EVENT("python_function", "nn.Module: Net_0", 1, 100, 100, "")                                  \
    ", " EVENT("python_function", "nn.Module: Linear_0", 1, 110, 30,                               \
               "") ", " EVENT("python_function", "nn.Module: ReLU_0", 1, 150, 20, "")

/* Linear: operators 5 and, called by it, the operator that makes node 5; ReLU: node 6. Backward
 * runs on thread 2. Each launches kernels. */
#define FORWARD                                                                                    \
    OP("aten::linear", 1, 112, 20, SEQ(5) LINEAR_SHAPES)                                           \
    ", " OP("aten::addmm", 1, 114, 10, SEQ(5)) ", " LAUNCH(1, 115, 1) ", " OP(                     \
        "aten::relu_", 1, 152, 10, SEQ(6) RELU_SHAPES) ", " LAUNCH(1, 153, 2)

#define BACKWARDS                                                                                  \
    BACKWARD("ReluBackward0", 2, 300, 10, 6)                                                       \
    ", " LAUNCH(2, 301, 3) ", " BACKWARD("AddmmBackward0", 2, 320, 30,                             \
                                         5) ", " LAUNCH(2, 321, 4) ", " LAUNCH(2, 331, 5)

#define KERNELS                                                                                    \
    KERNEL(200, 40, 1)                                                                             \
    ", " KERNEL(240, 3, 2) ", " KERNEL(400, 5, 3) ", " KERNEL(405, 50, 4) ", " KERNEL(455, 51, 5)

#define TRACE(events)                                                                              \
    "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"GPU\"}], "              \
    "\"traceEvents\": [{\"ph\": \"M\", \"name\": \"process_name\"}, " events "]}"

static const cs_torch_options options = {.name = "net", .date = "2026-11-21"};

static cs_status parse(const char *text, cs_model *model, cs_torch_report *report, cs_error *error)
{
    cs_error_init(error);
    return cs_torch_parse("t.json", text, strlen(text), &options, model, report, error);
}

static void layer_text(const cs_layer *layer, char *text, size_t size)
{
    snprintf(text, size,
             "%s f=%" PRId64 " bi=%" PRId64 " bw=%" PRId64 " w=%" PRId64 " out=%" PRId64
             " kept=%" PRId64,
             layer->name, layer->forward / 1000000, layer->backward_input / 1000000,
             layer->backward_weight / 1000000, layer->weight_bytes, layer->output_bytes,
             layer->kept_bytes);
}

/* Times in us. A second step of twice the times makes a mean of 1.5 times. */
static const struct {
    const char *row, *text;
    const char *layers[2];
    uint32_t n_steps;
    bool modules;
} traces[] = {
    {"modules and kernels",
     TRACE(MODULES ", " FORWARD ", " BACKWARDS ", " KERNELS),
     {"Linear_0 f=40 bi=50 bw=50 w=8448 out=4096 kept=2048",
      "ReLU_0 f=3 bi=5 bw=0 w=0 out=0 kept=4096"},
     1,
     true},
    {"operators and kernels",
     TRACE(FORWARD ", " BACKWARDS ", " KERNELS),
     {"aten::linear 0 f=40 bi=50 bw=50 w=8448 out=4096 kept=2048",
      "aten::relu_ 1 f=3 bi=5 bw=0 w=0 out=0 kept=4096"},
     1,
     false},
    {"two steps of operators on the CPU",
     TRACE(EVENT("user_annotation", "ProfilerStep#1", 1, 0, 500, "") ", " OP(
         "aten::linear", 1, 10, 20,
         SEQ(1)
             LINEAR_SHAPES) ", " BACKWARD("AddmmBackward0", 1, 40, 50,
                                          1) ", " EVENT("user_annotation", "ProfilerStep#2", 1, 500,
                                                        500,
                                                        "") ", " OP("aten::linear", 1, 510, 40,
                                                                    SEQ(9)
                                                                        LINEAR_SHAPES) ","
                                                                                       " " BACKWARD(
                                                                                           "AddmmBa"
                                                                                           "ckward"
                                                                                           "0",
                                                                                           1, 600,
                                                                                           100, 9)),
     {"aten::linear 0 f=30 bi=37 bw=37 w=8448 out=0 kept=2048", NULL},
     2,
     false},
};

static void check_trace(const char *row, const char *const layers[2], const cs_model *model)
{
    char text[256];
    uint32_t n = 0;
    for (; n < 2 && layers[n]; n++) {
        if (n >= model->n_layers)
            fail_msg("%s: expected more layers than %u", row, model->n_layers);
        layer_text(&model->layers[n], text, sizeof(text));
        expect_text(row, layers[n], text);
    }
    expect_int(row, n, model->n_layers);
    expect_int(row, 16, model->batch_size);
}

static void test_traces(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(traces); i++) {
        cs_model model;
        cs_torch_report report;
        cs_error error;
        if (parse(traces[i].text, &model, &report, &error) != CS_OK)
            fail_msg("%s: %s", traces[i].row, error.text);
        check_trace(traces[i].row, traces[i].layers, &model);
        expect_int(traces[i].row, traces[i].n_steps, report.n_steps);
        expect_int(traces[i].row, traces[i].modules, report.modules);
        expect_text(traces[i].row, "GPU", model.provenance.hardware);
        cs_model_finish(&model);
    }
}

/* As above, but recorded without shapes: the times are the same, the backward of the linear layer
 * is in halves because it is one, and there are no sizes. */
#define FORWARD_TIMES                                                                              \
    OP("aten::linear", 1, 112, 20, SEQ(5))                                                         \
    ", " OP("aten::addmm", 1, 114, 10, SEQ(5)) ", " LAUNCH(1, 115, 1) ", " OP(                     \
        "aten::relu_", 1, 152, 10, SEQ(6)) ", " LAUNCH(1, 153, 2)

static void test_times_only(void **state)
{
    static const char *const layers[] = {"Linear_0 f=40 bi=50 bw=50 w=0 out=0 kept=0",
                                         "ReLU_0 f=3 bi=5 bw=0 w=0 out=0 kept=0"};
    static const char *const texts[] = {
        TRACE(MODULES ", " FORWARD_TIMES ", " BACKWARDS ", " KERNELS),
        TRACE(MODULES ", " FORWARD ", " BACKWARDS ", " KERNELS), /* its shapes are not looked at */
    };
    cs_torch_options times = options;
    cs_model model;
    cs_torch_report report;
    cs_error error;
    (void)state;
    times.times_only = true;
    cs_error_init(&error);
    cs_status status =
        cs_torch_parse("t.json", texts[0], strlen(texts[0]), &times, &model, &report, &error);
    expect_error("no batch", CS_INVALID,
                 "t.json: Linear_0 has no shape to take the batch from: give --batch", status,
                 &error);
    times.batch_size = 16;
    for (size_t i = 0; i < ROWS(texts); i++) {
        cs_error_init(&error);
        if (cs_torch_parse("t.json", texts[i], strlen(texts[i]), &times, &model, &report, &error) !=
            CS_OK)
            fail_msg("%s", error.text);
        check_trace("times only", layers, &model);
        assert_true(model.times_only);
        expect_int("input", 0, model.input_bytes);
        cs_model_finish(&model);
    }
}

/* Events that a run of several GPUs adds to the trace above: its layers stay as they are. Kernels
 * of communication take 1000 us. */
#define LONG(cat, name, n) EVENT(cat, name, 7, 600, 1000, "\"correlation\": " #n)
#define WITHIN_LINEAR(kernel)                                                                      \
    ", " LAUNCH(1, 116, 20) ", " LAUNCH(2, 325, 21) ", " kernel(20) ", " kernel(21)
#define NCCL(n)      LONG("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)", n)
#define OLD_NCCL(n)  LONG("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", n)
#define MANGLED(n)   LONG("kernel", "_Z38ncclDevKernel_SendRecv24ncclDevKernelArgsStorage", n)
#define RCCL(n)      LONG("kernel", "void rcclDevKernel_Generic<4096>(rcclDevComm*)", n)
#define ONECCL(n)    LONG("kernel", "oneccl_allreduce_large_fp16", n)
#define PEER(n)      LONG("gpu_memcpy", "Memcpy PtoP (Device -> Device)", n)
#define DEEP_EP(n)   LONG("kernel", "void deep_ep::intranode::dispatch<8, 768>(int4*)", n)
#define SYMMETRIC(n) LONG("kernel", "multimem_all_reduce_kernel", n)
#define TOLD(n)                                                                                    \
    EVENT("kernel", "generic", 7, 600, 1000,                                                       \
          "\"correlation\": " #n ", \"Collective name\": \"allreduce\"")
#define UNTOLD(n) LONG("kernel", "generic", n)
#define COPY(n)   LONG("gpu_memcpy", "Memcpy DtoD (Device -> Device)", n)

#define BENEATH(name, kernel)                                                                      \
    ", " OP(name, 1, 116, 4, "") ", " LAUNCH(1, 117, 20) ", " OP(name, 2, 322, 4, "") ", " LAUNCH( \
        2, 323, 21) ", " kernel(20) ", " kernel(21)

/* An autograd function between the layers, in both passes. */
#define FUNCTION(name, kernel)                                                                       \
    ", " OP("_ReduceFromModelParallelRegion", 1, 141, 8, SEQ(7) RELU_SHAPES) ", " OP(                \
        name, 1, 142, 6,                                                                             \
        "") ", " LAUNCH(1, 143,                                                                      \
                        20) ", " BACKWARD("_ReduceFromModelBackward", 2, 311, 8,                     \
                                          7) ", " OP(name, 2, 312, 6,                                \
                                                     "") ", " LAUNCH(2, 313,                         \
                                                                     21) ", " kernel(20) ","         \
                                                                                         " " kernel( \
                                                                                             21)

static const struct {
    const char *row, *events;
    uint32_t n_exchanges;
} exchanges[] = {
    {"NCCL", WITHIN_LINEAR(NCCL), 2},
    {"NCCL before 2.19", WITHIN_LINEAR(OLD_NCCL), 2},
    {"a mangled name", WITHIN_LINEAR(MANGLED), 2},
    {"RCCL", WITHIN_LINEAR(RCCL), 2},
    {"oneCCL", WITHIN_LINEAR(ONECCL), 2},
    {"a copy between GPUs", WITHIN_LINEAR(PEER), 2},
    {"DeepEP", WITHIN_LINEAR(DEEP_EP), 2},
    {"symmetric memory", WITHIN_LINEAR(SYMMETRIC), 2},
    {"told by the profiler", WITHIN_LINEAR(TOLD), 2},
    {"beneath c10d", BENEATH("c10d::allreduce_", UNTOLD), 2},
    {"copies beneath c10d", BENEATH("c10d::broadcast_", COPY), 2},
    {"beneath record_param_comms", BENEATH("record_param_comms", UNTOLD), 2},
    {"beneath a functional collective", BENEATH("_c10d_functional::all_reduce", UNTOLD), 2},
    {"beneath an annotation as an operator", BENEATH("nccl:all_reduce", UNTOLD), 2},
    {"beneath oneCCL's operator", BENEATH("oneccl_bindings_for_pytorch::allreduce", UNTOLD), 2},
    {"beneath an autograd function", FUNCTION("c10d::allreduce_", NCCL), 2},
    {"the same, by its operator", FUNCTION("c10d::alltoall_base_", UNTOLD), 2},
    {"an operator with a number",
     ", " OP("c10d::_allgather_base_", 1, 142, 6,
             SEQ(7) RELU_SHAPES) ", " LAUNCH(1, 143, 20) ", " UNTOLD(20),
     1},
    {"a step without kernels",
     ", " EVENT("user_annotation", "ProfilerStep#1", 1, 0, 1000, "") ", " EVENT(
         "user_annotation", "ProfilerStep#2", 1, 1000, 1000,
         "") ", " OP("aten::linear", 1, 1100, 20, SEQ(9) LINEAR_SHAPES) ", " LAUNCH(1, 1110, 29),
     0},
    {"an empty step before",
     ", " EVENT("user_annotation", "ProfilerStep#4", 1, 0, 50,
                "") ", " EVENT("user_annotation", "ProfilerStep#5", 1, 50, 1000, ""),
     0},
    {"a step that only communicates",
     ", " EVENT("user_annotation", "ProfilerStep#1", 1, 0, 1000, "") ", " EVENT(
         "user_annotation", "ProfilerStep#2", 1, 1000, 1000,
         "") ", " OP("c10d::barrier", 1, 1100, 20, "") ", " LAUNCH(1, 1110, 29) ", " NCCL(29),
     1},
    {"a step in two categories",
     ", " EVENT("user_annotation", "ProfilerStep#1", 1, 0, 1000,
                "") ", " EVENT("cpu_op", "ProfilerStep#1", 1, 1, 998, ""),
     0},
    {"work after the steps",
     ", " EVENT("user_annotation", "ProfilerStep#1", 1, 0, 1000,
                "") ", " OP("aten::linear", 1, 1100, 20,
                            SEQ(9) LINEAR_SHAPES) ", " LAUNCH(1, 1110, 29) ", " UNTOLD(29),
     0},
};

static void test_communication(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * ROWS(exchanges); i++) {
        const size_t row = i / 2;
        const bool modules = i % 2;
        char text[16384];
        cs_model model;
        cs_torch_report report;
        cs_error error;
        snprintf(text, sizeof(text), TRACE("%s%s%s"), modules ? MODULES ", " : "",
                 FORWARD ", " BACKWARDS ", " KERNELS, exchanges[row].events);
        if (parse(text, &model, &report, &error) != CS_OK)
            fail_msg("%s: %s", exchanges[row].row, error.text);
        for (uint32_t l = 0; l < model.n_layers; l++) /* " 2": an operator was left out before */
            if (strncmp(model.layers[l].name, "aten::relu_", 11) == 0)
                model.layers[l].name = "aten::relu_ 1";
        check_trace(exchanges[row].row, traces[!modules].layers, &model);
        expect_int(exchanges[row].row, 1, report.n_steps);
        expect_int(exchanges[row].row, exchanges[row].n_exchanges, report.n_exchanges);
        expect_double(exchanges[row].row, 1000.0 * exchanges[row].n_exchanges,
                      report.communication);
        cs_model_finish(&model);
    }
}

/* Kernels of one launched graph share its number: 40 + 7 us. Without kernels, the wait for gloo's
 * exchange, which lasts longer than the operator that starts it, is taken off the function: 40 us
 * less 5 to 35. What starts before an operator overlaps with it and takes nothing off. */
static void test_graphs_and_waits(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *layers[2];
        double communication;
    } rows[] = {
        {"a graph",
         TRACE(FORWARD ", " BACKWARDS ", " KERNELS ", " KERNEL(245, 7, 1)),
         {"aten::linear 0 f=47 bi=50 bw=50 w=8448 out=4096 kept=2048",
          "aten::relu_ 1 f=3 bi=5 bw=0 w=0 out=0 kept=4096"},
         0},
        {"waiting for gloo",
         TRACE(OP("Row", 1, 100, 40, SEQ(1) LINEAR_SHAPES) ", " OP(
             "c10d::allreduce_", 1, 105, 5,
             "") ", " EVENT("user_annotation", "gloo:all_reduce", 1, 106, 29,
                            "") ", " OP("aten::relu_", 1, 150, 10,
                                        SEQ(2) LINEAR_SHAPES) ", " BACKWARD("RowBackward", 1, 200,
                                                                            50, 1)),
         {"Row 0 f=10 bi=50 bw=0 w=0 out=2048 kept=2048",
          "aten::relu_ 1 f=10 bi=0 bw=0 w=0 out=0 kept=2048"},
         30},
        {"overlapped with gloo",
         TRACE(OP("Row", 1, 100, 40,
                  SEQ(1) LINEAR_SHAPES) ", " EVENT("user_annotation", "gloo:all_reduce", 1, 90, 60,
                                                   "") ", " BACKWARD("RowBackward", 1, 200, 50, 1)),
         {"Row 0 f=40 bi=50 bw=0 w=0 out=0 kept=2048", NULL},
         60},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_model model;
        cs_torch_report report;
        cs_error error;
        if (parse(rows[i].text, &model, &report, &error) != CS_OK)
            fail_msg("%s: %s", rows[i].row, error.text);
        check_trace(rows[i].row, rows[i].layers, &model);
        expect_double(rows[i].row, rows[i].communication, report.communication);
        cs_model_finish(&model);
    }
}

static const struct {
    const char *row, *text, *message;
} errors[] = {
    {"another object", "{}",
     "t.json: must have an array \"traceEvents\": a trace that export_chrome_trace of "
     "torch.profiler wrote"},
    {"nothing recorded", TRACE("{}"),
     "t.json: no operators: record with activities=[ProfilerActivity.CPU, "
     "ProfilerActivity.CUDA]"},
    {"no shapes", TRACE(OP("aten::linear", 1, 1, 2, SEQ(1))),
     "t.json: no shapes: record with record_shapes=True; or --times-only makes a model without "
     "sizes"},
    {"no kernels", TRACE(FORWARD ", " BACKWARDS),
     "t.json: kernels are launched, but none was recorded: add ProfilerActivity.CUDA to "
     "activities"},
    {"inference", TRACE(OP("aten::linear", 1, 1, 2, "\"Input Dims\": [[1, 2]]")),
     "t.json: no operator of a forward pass: record the training, not under torch.no_grad()"},
    {"only communication",
     TRACE(OP("aten::linear", 1, 1, 2, SEQ(1) LINEAR_SHAPES) ", " LAUNCH(1, 2, 3) ", " EVENT(
         "kernel", "ncclDevKernel", 7, 2, 3, "\"correlation\": 3") ", " BACKWARD("AddmmBackward0",
                                                                                 1, 4, 5, 1)),
     "t.json: no step computes anything: kernels communicate, or belong to no operator of a "
     "forward "
     "or backward pass"},
    {"no backward", TRACE(OP("aten::linear", 1, 1, 2, SEQ(1) LINEAR_SHAPES)),
     "t.json: no backward pass: record loss.backward() as well"},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(errors); i++) {
        cs_model model;
        cs_torch_report report;
        cs_error error;
        cs_status status = parse(errors[i].text, &model, &report, &error);
        expect_error(errors[i].row, CS_INVALID, errors[i].message, status, &error);
    }
}

/* ---- gzip ---- */

static size_t pack(const char *text, unsigned char *out, size_t size)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)text;
    stream.avail_in = (uInt)strlen(text);
    stream.next_out = out;
    stream.avail_out = (uInt)size;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t packed = size - stream.avail_out;
    deflateEnd(&stream);
    return packed;
}

static void test_gzip(void **state)
{
    (void)state;
    unsigned char packed[4096];
    cs_model model;
    cs_torch_report report;
    cs_error error;
    size_t size = pack(traces[0].text, packed, sizeof(packed));
    cs_error_init(&error);
    if (cs_torch_parse("t.json.gz", (const char *)packed, size, &options, &model, &report,
                       &error) != CS_OK)
        fail_msg("%s", error.text);
    check_trace("gzip", traces[0].layers, &model);
    cs_model_finish(&model);
    cs_error_init(&error);
    expect_error("cut off", CS_INVALID, "t.json.gz: cannot unpack: the file is cut off",
                 cs_torch_parse("t.json.gz", (const char *)packed, size / 2, &options, &model,
                                &report, &error),
                 &error);
}

static void test_gzip_limit(void **state)
{
    (void)state;
    unsigned char packed[256];
    char *text;
    size_t size = pack("0123456789", packed, sizeof(packed)), length;
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_gzip_unpack("x", (const char *)packed, size, 10, &text, &length, &error),
                     CS_OK);
    expect_text("at the limit", "0123456789", text);
    free(text);
    expect_error("beyond", CS_INVALID, "x: is longer than 9 bytes when unpacked",
                 cs_gzip_unpack("x", (const char *)packed, size, 9, &text, &length, &error),
                 &error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traces),           cmocka_unit_test(test_times_only),
        cmocka_unit_test(test_errors),           cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_gzip_limit),       cmocka_unit_test(test_communication),
        cmocka_unit_test(test_graphs_and_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

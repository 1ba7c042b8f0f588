#include "tests/fake-backend.h"

#include "calib/bench/cpu/cpu-backend.h"
#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

struct cs_bench {
    cs_bench *cpu; /* that backend's own */
    double *marks; /* marks on a test's clock */
    uint32_t cap_marks;
};

/* A backend's functions have no place for a test's wishes. */
static struct {
    uint32_t calls, k, made;
    bool failed;
    int64_t held;
    cs_fake_device *device;
} fake;

void cs_fake_use(cs_fake_device *device)
{
    fake.device = device;
}

static void spend_kernel(void)
{
    if (fake.device)
        fake.device->now += fake.device->kernel(fake.device->now);
}

void cs_fake_fail(uint32_t calls, uint32_t k)
{
    fake.calls = calls;
    fake.k = k;
    fake.made = 0;
    fake.failed = false;
}

uint32_t cs_fake_calls(void)
{
    return fake.made;
}

bool cs_fake_has_failed(void)
{
    return fake.failed;
}

int64_t cs_fake_held(void)
{
    return fake.held;
}

cs_status cs_fake_turn(cs_fake_call call, const char *what, cs_error *error)
{
    if (!(fake.calls & UINT32_C(1) << call))
        return CS_OK;
    fake.made++;
    if (fake.made != fake.k && !(call == CS_FAKE_ALLOCATE && fake.failed))
        return CS_OK;
    fake.failed = true;
    return cs_error_add(error, call == CS_FAKE_ALLOCATE ? CS_NO_MEMORY : CS_FAILED,
                        "the fake device fails in %s", what);
}

static cs_status fake_open(uint32_t index, cs_bench **bench, cs_error *error)
{
    cs_status status = cs_fake_turn(CS_FAKE_OPEN, "open", error);
    if (status != CS_OK)
        return status;
    cs_bench *made = calloc(1, sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    status = cs_backend_cpu.open(index, &made->cpu, error);
    if (status != CS_OK) {
        free(made);
        return status;
    }
    fake.held++;
    *bench = made;
    return CS_OK;
}

static void fake_close(cs_bench *bench)
{
    if (!bench)
        return;
    fake.held--;
    cs_backend_cpu.close(bench->cpu);
    free(bench->marks);
    free(bench);
}

static void fake_describe(cs_bench *bench, cs_cost_source *source)
{
    cs_backend_cpu.describe(bench->cpu, source);
    source->device = "fake device";
}

static cs_status fake_allocate(cs_bench *bench, int64_t bytes, void **data, cs_error *error)
{
    cs_status status = cs_fake_turn(CS_FAKE_ALLOCATE, "allocate", error);
    if (status == CS_OK)
        status = cs_backend_cpu.allocate(bench->cpu, bytes, data, error);
    fake.held += status == CS_OK;
    return status;
}

static void fake_release(cs_bench *bench, void *data)
{
    fake.held--;
    cs_backend_cpu.release(bench->cpu, data);
}

static cs_status fake_fill(cs_bench *bench, cs_fill fill, cs_precision precision, void *data,
                           int64_t elements, double limit, cs_error *error)
{
    cs_status status = cs_fake_turn(CS_FAKE_MEMORY, "fill", error);
    if (fake.device && fill != CS_FILL_ZERO)
        fake.device->now += fake.device->fill;
    return status == CS_OK
               ? cs_backend_cpu.fill(bench->cpu, fill, precision, data, elements, limit, error)
               : status;
}

static cs_status fake_copy(cs_bench *bench, cs_copy copy, void *to, const void *from, int64_t bytes,
                           cs_error *error)
{
    cs_status status = cs_fake_turn(CS_FAKE_MEMORY, "copy", error);
    if (fake.device) {
        double rate = fake.device->rates[copy];
        fake.device->now += rate > 0 ? (double)bytes / rate : 1;
        fake.device->copied = bytes;
        fake.device->same_numbers |= memcmp(from, (const float *)from + 1, sizeof(float)) == 0;
    }
    return status == CS_OK ? cs_backend_cpu.copy(bench->cpu, copy, to, from, bytes, error) : status;
}

static cs_status fake_workspace(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                int64_t *bytes, const char **algorithm, cs_error *error)
{
    cs_status status = cs_fake_turn(CS_FAKE_PLAN, "workspace", error);
    return status == CS_OK
               ? cs_backend_cpu.workspace(bench->cpu, kernel, pass, bytes, algorithm, error)
               : status;
}

static cs_status fake_run(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                          const cs_operands *operands, cs_error *error)
{
    cs_status status = cs_fake_turn(CS_FAKE_KERNEL, kernel->op->name, error);
    spend_kernel();
    return status == CS_OK ? cs_backend_cpu.run(bench->cpu, kernel, pass, operands, error) : status;
}

static cs_status fake_accumulate(cs_bench *bench, void *to, const void *from, int64_t elements,
                                 cs_precision precision, cs_error *error)
{
    cs_status status = cs_fake_turn(CS_FAKE_KERNEL, "accumulate", error);
    spend_kernel();
    return status == CS_OK
               ? cs_backend_cpu.accumulate(bench->cpu, to, from, elements, precision, error)
               : status;
}

static cs_status fake_update(cs_bench *bench, const cs_update *update, cs_error *error)
{
    cs_status status = cs_fake_turn(CS_FAKE_KERNEL, "update", error);
    spend_kernel();
    return status == CS_OK ? cs_backend_cpu.update(bench->cpu, update, error) : status;
}

static cs_status fake_mark(cs_bench *bench, uint32_t mark, cs_error *error)
{
    cs_status status = cs_fake_turn(CS_FAKE_MARK, "mark", error);
    if (status == CS_OK && fake.device) {
        if (!cs_vector_reserve((void **)&bench->marks, &bench->cap_marks, mark + UINT64_C(1),
                               sizeof(*bench->marks)))
            return cs_error_no_memory(error);
        bench->marks[mark] = fake.device->now;
        return CS_OK;
    }
    return status == CS_OK ? cs_backend_cpu.mark(bench->cpu, mark, error) : status;
}

static cs_status fake_times(cs_bench *bench, uint32_t n, double *seconds, cs_error *error)
{
    cs_status status = cs_fake_turn(CS_FAKE_MARK, "times", error);
    if (status == CS_OK && fake.device) {
        memcpy(seconds, bench->marks, n * sizeof(*seconds));
        return CS_OK;
    }
    return status == CS_OK ? cs_backend_cpu.times(bench->cpu, n, seconds, error) : status;
}

static cs_status fake_wait(cs_bench *bench, cs_error *error)
{
    cs_status status = cs_fake_turn(CS_FAKE_MARK, "wait", error);
    return status == CS_OK ? cs_backend_cpu.wait(bench->cpu, error) : status;
}

static cs_status fake_hold(cs_bench *bench, void *host, int64_t bytes, cs_error *error)
{
    (void)bench, (void)host, (void)bytes;
    cs_status status = cs_fake_turn(CS_FAKE_MEMORY, "hold", error);
    fake.held += status == CS_OK;
    return status;
}

static void fake_let_go(cs_bench *bench, void *host)
{
    (void)bench, (void)host;
    fake.held--;
}

static cs_status fake_room(cs_bench *bench, int64_t *left, int64_t *all, cs_error *error)
{
    (void)bench;
    cs_status status = cs_fake_turn(CS_FAKE_MEMORY, "room", error);
    *left = fake.device->left;
    *all = fake.device->all;
    return status;
}

static cs_status fake_allocate_on_peer(cs_bench *bench, int64_t bytes, void **data, bool *direct,
                                       cs_error *error)
{
    *data = NULL;
    *direct = fake.device->direct;
    return fake.device->peer ? fake_allocate(bench, bytes, data, error) : CS_OK;
}

static cs_status fake_delay(cs_bench *bench, double seconds, cs_error *error)
{
    (void)bench;
    cs_fake_device *device = fake.device;
    device->now += seconds;
    device->delays++;
    device->longest_delay = seconds > device->longest_delay ? seconds : device->longest_delay;
    return cs_fake_turn(CS_FAKE_KERNEL, "delay", error);
}

/* functions of both backends */
#define FUNCTIONS                                                                                  \
    .precisions = 1 << CS_PRECISION_FP32, .open = fake_open, .close = fake_close,                  \
    .describe = fake_describe, .allocate = fake_allocate, .release = fake_release,                 \
    .fill = fake_fill, .copy = fake_copy, .workspace = fake_workspace, .run = fake_run,            \
    .accumulate = fake_accumulate, .update = fake_update, .mark = fake_mark, .times = fake_times,  \
    .wait = fake_wait,

const cs_backend cs_backend_fake = {.name = "fake", FUNCTIONS};

const cs_backend cs_backend_fake_gpu = {.name = "fake GPU",
                                        .own_memory = true,
                                        .hold = fake_hold,
                                        .let_go = fake_let_go,
                                        .room = fake_room,
                                        .allocate_on_peer = fake_allocate_on_peer,
                                        .delay = fake_delay,
                                        FUNCTIONS};

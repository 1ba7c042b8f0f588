#include "tests/random-scenario.h"

#include "schedules/schedule.h"
#include "tests/expect.h"

#include <stdarg.h>
#include <stdbool.h>

/* Draws a number below n, or an entry of a table. One draw per statement: C does not define the
 * order of evaluation of arguments. */
static uint32_t below(gsl_rng *random, uint32_t n)
{
    return (uint32_t)gsl_rng_uniform_int(random, n);
}

#define ONE_OF(random, table) ((table)[below(random, ROWS(table))])

static bool chance(gsl_rng *random, uint32_t percent)
{
    return below(random, 100) < percent;
}

/* ---- text ---- */

typedef struct writer {
    char *text;
    size_t n;
} writer;

static CS_PRINTF(2, 3) void add(writer *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(out->text + out->n, RANDOM_SCENARIO_BYTES - out->n, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && out->n + (size_t)length < RANDOM_SCENARIO_BYTES);
    out->n += (size_t)length;
}

/* ---- the schedule ---- */

/* Parameters that determine the rest of a scenario. devices: 0 if the schedule determines them. */
typedef struct shape {
    uint32_t devices, layers, iterations;
    bool takes_time; /* every forward and backward */
    uint32_t uneven; /* percent of scenarios whose devices are unlike */
} shape;

typedef void add_params(gsl_rng *random, writer *out, shape *of);

static void any_micros(gsl_rng *random, writer *out, shape *of)
{
    (void)of;
    add(out, ", 'micro_batches': %u", 1 + below(random, 8));
}

static void dp(gsl_rng *random, writer *out, shape *of)
{
    of->layers = 1 + below(random, 4);
    any_micros(random, out, of);
    if (chance(random, 30))
        add(out, ", 'bucket': %u", 1 + below(random, 100));
}

static void pipeline(gsl_rng *random, writer *out, shape *of)
{
    any_micros(random, out, of);
    if (chance(random, 20))
        add(out, ", 'recompute': true");
}

static void one_f_one_b(gsl_rng *random, writer *out, shape *of)
{
    pipeline(random, out, of);
    if (chance(random, 30))
        add(out, ", 'warm_up': 'eager'");
}

static void gpipe(gsl_rng *random, writer *out, shape *of)
{
    pipeline(random, out, of);
    if (chance(random, 50))
        add(out, ", 'backward_order': 'fifo'");
}

static void pipedream(gsl_rng *random, writer *out, shape *of)
{
    (void)of;
    if (chance(random, 30))
        add(out, ", 'vertical_sync': true");
}

static void two_buffered(gsl_rng *random, writer *out, shape *of)
{
    add(out, ", 'micro_batches': %u", of->devices + below(random, 4));
}

static void periodic(gsl_rng *random, writer *out, shape *of)
{
    of->uneven = 0; /* for the planner; with two messages per boundary 2P - 1 are active */
    add(out, ", 'micro_batches': %u", 2 * of->devices + below(random, 4));
    add(out, ", 'timing': '%s'", chance(random, 50) ? "pattern" : "asap");
}

static void nf1b(gsl_rng *random, writer *out, shape *of)
{
    static const char *const places[] = {"first_worker", "last_worker", "per_stage"};
    static const char *const backwards[] = {"0", "0", "1", "2", "3", "0.5"};
    of->devices = of->layers = 2 + below(random, 4);
    of->iterations = of->iterations > 4 ? 2 * of->iterations : of->iterations;
    of->takes_time = chance(random, 50); /* else it cannot be strict */
    add(out, ", 'micro_batches': %u", 1 + below(random, 4));
    add(out, ", 'version_at': '%s'", ONE_OF(random, places));
    add(out, ", 'backward': %s", ONE_OF(random, backwards));
    if (chance(random, 20))
        add(out, ", 'in_flight': %u", 1 + below(random, 4));
    if (of->takes_time && chance(random, 50))
        add(out, ", 'strict': true");
    if (chance(random, 50))
        add(out, ", 'backward_pass': 'micro_batches'");
}

static void cdp(gsl_rng *random, writer *out, shape *of)
{
    static const char *const settings[] = {"single_gpu", "zero",           "multi_gpu",
                                           "multi_gpu",  "model_parallel", "pipeline"};
    uint32_t setting = below(random, ROWS(settings));
    of->layers = 1 + below(random, 5);
    of->devices = setting == 0 ? 1 : setting == 4 ? 0 : of->layers;
    of->uneven = 50;
    add(out, ", 'micro_batches': %u, 'setting': '%s'", of->layers, settings[setting]);
    if (setting < 4 && chance(random, 20))
        add(out, ", 'retention': 'micro_batch'");
}

static void cyclic(gsl_rng *random, writer *out, shape *of)
{
    cdp(random, out, of);
    if (chance(random, 30))
        add(out, ", 'start_delay': 'two_tasks'");
}

static void cdp_v2(gsl_rng *random, writer *out, shape *of)
{
    cyclic(random, out, of);
    if (chance(random, 30))
        add(out, ", 'new_weights': 'beside'");
}

static const struct {
    const char *kind;
    add_params *add;
} kinds[] = {{"dp", dp},
             {"gpipe", gpipe},
             {"1f1b", one_f_one_b},
             {"pipedream", pipedream},
             {"pipedream_2bw", two_buffered},
             {"nf1b", nf1b},
             {"periodic", periodic},
             {"cdp_dp", cdp},
             {"cdp_v1", cyclic},
             {"cdp_v2", cdp_v2},
             {"cdp_freshest", cyclic}};

/* Whatever the table of a schedule asks for; half of the numbers of micro-batches are multiples of
 * the devices. */
static void from_table(gsl_rng *random, writer *out, shape *of, const cs_schedule *schedule)
{
    enum { MOST_LAYERS = 12 };
    const cs_stages_parameter *stages = &schedule->stages;
    const uint32_t value = stages->name ? stages->tried[below(random, 2)] : 0;
    of->devices = schedule->mesh.pipeline == CS_LENGTH_ONE ? 1 : of->devices;
    const uint32_t each = cs_schedule_stages_per_rank(schedule, value);
    if (each > 1 || of->devices > 1) {
        of->devices = of->devices * each > MOST_LAYERS ? MOST_LAYERS / each : of->devices;
        of->layers = of->devices * each;
    }
    uint32_t micros = 1 + below(random, 8);
    if (chance(random, 50))
        micros = of->devices * (1 + below(random, 3));
    while (!cs_schedule_has_micro_batches(schedule, micros, of->devices))
        micros++;
    add(out, ", 'micro_batches': %u", micros);
    if (stages->name)
        add(out, ", '%s': %u", stages->name, value);
}

/* ---- the rest ---- */

typedef struct layer {
    uint32_t forward, input, weight, update, weights, output, kept;
} layer;

static layer random_layer(gsl_rng *random, bool updates, bool takes_time)
{
    static const uint32_t times[] = {0, 1, 500, 1000, 2000, 3000, 7001},
                          sizes[] = {0, 1, 2, 7, 100};
    const uint32_t least = takes_time ? 500 : 0;
    layer made;
    made.forward = ONE_OF(random, times);
    made.input = ONE_OF(random, times);
    made.weight = ONE_OF(random, times);
    made.update = ONE_OF(random, times);
    made.update = updates ? made.update : 0;
    made.weights = ONE_OF(random, sizes);
    made.output = ONE_OF(random, sizes);
    made.kept = ONE_OF(random, sizes);
    made.forward = made.forward > least ? made.forward : least;
    made.input = made.input > least ? made.input : least;
    return made;
}

static void add_layers(gsl_rng *random, writer *out, uint32_t n, bool takes_time)
{
    bool equal = chance(random, 50), updates = chance(random, 40);
    layer made = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || !equal)
            made = random_layer(random, updates, takes_time);
        add(out,
            "%s{'name': 'l%u', 'forward': '%u ps', 'backward_input': '%u ps', 'backward_weight': "
            "'%u ps', 'update': '%u ps', 'weights': %u, 'output': %u, 'kept': %u}",
            i > 0 ? ", " : "", i, made.forward, made.input, made.weight, made.update, made.weights,
            made.output, made.kept);
    }
}

/* Adds keys of links; an ideal network has none, but messages may still block. */
static void add_links(gsl_rng *random, writer *out)
{
    static const char *const topologies[] = {"ring", "nvlink_switch", "pcie"};
    static const char *const bandwidths[] = {"1e9", "1e10", "1e12", "2.5e14", "1e15"};
    static const char *const sharings[] = {"none", "fifo", "max_min"};
    static const uint32_t latencies[] = {0, 0, 1, 1000, 2500};
    if (chance(random, 40)) {
        add(out, "'topology': 'ideal'");
        return;
    }
    add(out, "'topology': '%s'", ONE_OF(random, topologies));
    add(out, ", 'bandwidth': %s", ONE_OF(random, bandwidths));
    add(out, ", 'latency': '%u ps'", ONE_OF(random, latencies));
    if (chance(random, 15))
        add(out, ", 'sharing': 'phi', 'phi': 2");
    else
        add(out, ", 'sharing': '%s'", ONE_OF(random, sharings));
}

static void add_platform(gsl_rng *random, writer *out, const shape *of)
{
    static const char *const speeds[] = {"1", "1", "2", "0.5", "0.25"};
    add(out, "'platform': {");
    add_links(random, out);
    if (chance(random, 30))
        add(out, ", 'blocking': true");
    if (of->devices > 0)
        add(out, ", 'devices': %u", of->devices);
    if (of->devices > 0 && chance(random, of->uneven)) {
        for (uint32_t d = 0; d < of->devices; d++)
            add(out, "%s%s", d == 0 ? ", 'speed': [" : ", ", ONE_OF(random, speeds));
        add(out, "]");
    }
    add(out, "}, ");
}

void random_scenario(gsl_rng *random, const char *kind, char text[RANDOM_SCENARIO_BYTES])
{
    static const uint32_t iterations[] = {1, 2, 3, 5, 8, 16, 24};
    size_t k = 0;
    while (k < ROWS(kinds) && strcmp(kinds[k].kind, kind) != 0)
        k++;
    const cs_schedule *schedule = cs_schedule_find(kind);
    assert_non_null(schedule);
    uint32_t n = 1 + below(random, 6);
    writer out = {.text = text};
    shape of = {.devices = n, .layers = n, .uneven = 15};
    of.iterations = ONE_OF(random, iterations);
    add(&out, "{'schema_version': 1, 'schedule': {'kind': '%s'", kind);
    if (k < ROWS(kinds))
        kinds[k].add(random, &out, &of);
    else
        from_table(random, &out, &of, schedule);
    add(&out, "}, 'iterations': %u, ", of.iterations);
    add_platform(random, &out, &of);
    add(&out,
        "'model': {'batch_size': 0, 'inline': {'schema_version': 1, 'name': 'm', 'batch_size': "
        "0, 'provenance': {'source': 's', 'hardware': 'h', 'date': '2024-01-01'}, 'layers': [");
    add_layers(random, &out, of.layers, of.takes_time);
    add(&out, "]}}}");
}

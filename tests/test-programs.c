/* Stages on a grid: exchanges, sums, gathers and memory, compared with times and bytes counted by
 * hand.
 *
 * All devices are around a switch of 1e12 B/s one way, without latency: a byte takes a picosecond,
 * and identical simultaneous groups do not share links. With n devices a ring all-reduce of B
 * bytes takes
 * 2 (n - 1) B / n, an all-gather, a reduce-scatter and an all-to-all (n - 1) B / n, a shift B. */
#include "sim/base/random.h"
#include "tests/expect.h"
#include "tests/small-job.h"

#include <gsl/gsl_rng.h>
#include <stdlib.h>

enum { MOST_LAYERS = 24, MOST_PIECES = 4, MOST_EXCHANGES = 12, ROW_BYTES = 1024 };

static const double byte_per_ps = 1e12;

/* A job of layers that are written here. */
typedef struct drawn {
    small_job job;
    cs_grid grid;
    cs_layer layers[MOST_LAYERS];
    cs_layer_piece pieces[MOST_LAYERS][MOST_PIECES];
    cs_exchange exchanges[MOST_LAYERS][MOST_EXCHANGES];
    cs_weight_part parts[MOST_LAYERS][2];
} drawn;

static uint32_t below(gsl_rng *random, uint32_t n)
{
    return (uint32_t)gsl_rng_uniform_int(random, n);
}

static bool chance(gsl_rng *random, uint32_t percent)
{
    return below(random, 100) < percent;
}

static void init(drawn *of, const char *schedule, uint32_t n_stages, uint32_t n_ranks,
                 uint32_t n_layers)
{
    *of = (drawn){.grid = cs_grid_single()};
    of->job = (small_job){.schedule = schedule,
                          .topology = "nvlink_switch",
                          .n_layers = n_layers,
                          .n_stages = n_stages,
                          .n_devices = n_ranks, /* times the places: see run */
                          .layers = of->layers,
                          .micro_batches = 1,
                          .iterations = 1,
                          .bandwidth = byte_per_ps,
                          .sharing = CS_SHARING_MAX_MIN,
                          .optimizer_ratio = 2};
}

static void run(const char *row, drawn *of, small_run *made)
{
    small_job job = of->job;
    cs_error error;
    cs_error_init(&error);
    job.layers = of->layers;
    job.grid = &of->grid;
    job.n_devices = of->job.n_devices * cs_grid_places(&of->grid);
    if (small_run_init(made, &job, &error) != CS_OK)
        fail_msg("%s: %s", row, error.text);
}

static void put(drawn *of, uint32_t layer, uint32_t n_pieces)
{
    of->layers[layer].n_pieces = n_pieces;
    of->layers[layer].pieces = of->pieces[layer];
    of->layers[layer].exchanges = of->exchanges[layer];
    of->layers[layer].weight_parts = of->parts[layer];
    for (uint32_t i = 0; i < n_pieces; i++) {
        of->layers[layer].forward += of->pieces[layer][i].forward;
        of->layers[layer].backward_input += of->pieces[layer][i].backward_input;
        of->layers[layer].backward_weight += of->pieces[layer][i].backward_weight;
    }
}

static void add_exchange(drawn *of, uint32_t layer, cs_exchange what)
{
    of->exchanges[layer][of->layers[layer].n_exchanges++] = what;
}

/* ---- times ---- */

static cs_time exchange_time(const cs_grid *grid, const cs_exchange *of)
{
    const int64_t n = cs_grid_axes(grid, of->axes).size, chunk = of->bytes / n;
    if (n == 1)
        return 0;
    switch ((cs_exchange_kind)of->kind) {
    case CS_EXCHANGE_ALL_REDUCE:
        return 2 * (n - 1) * chunk;
    case CS_EXCHANGE_SHIFT:
        return of->bytes;
    case CS_EXCHANGE_HALO: /* those in the middle send, and get, both; of two devices each one of them */
        if (n > 2)
            return of->bytes + of->bytes_back;
        return of->bytes > of->bytes_back ? of->bytes : of->bytes_back;
    default:
        return (n - 1) * chunk;
    }
}

/* Time of a pass over the layer if everything waits for everything. */
static cs_time pass_time(const drawn *of, uint32_t layer, bool backward)
{
    const cs_layer *l = &of->layers[layer];
    cs_time time = backward ? l->backward_input + l->backward_weight : l->forward;
    for (uint32_t i = 0; i < l->n_exchanges; i++) {
        if (l->exchanges[i].backward == backward)
            time += exchange_time(&of->grid, &l->exchanges[i]);
    }
    if (backward && l->recompute) {
        time += pass_time(of, layer, false) - l->skipped;
        for (uint32_t i = 0; i < l->n_exchanges; i++)
            if (l->exchanges[i].skipped)
                time -= exchange_time(&of->grid, &l->exchanges[i]);
    }
    return time;
}

static void draw_grid(gsl_rng *random, cs_grid *grid)
{
    *grid = cs_grid_single();
    grid->tensor = 1 + below(random, 3);
    grid->context = 1 + below(random, 2);
    grid->data = 1 + below(random, 3);
    grid->space[1] = 1 + below(random, 2);
    grid->expert = chance(random, 50) ? grid->tensor : 1;
}

/* Bytes are multiples of 2^4 3^3, which all axes of the grids here divide. */
static int64_t draw_bytes(gsl_rng *random)
{
    return 432 * (int64_t)below(random, 200);
}

/* There is no exchange after the last piece of a backward: it would overlap the sum of the
 * gradients. */
static void draw_layer(gsl_rng *random, drawn *of, uint32_t l)
{
    static const uint8_t kinds[] = {CS_EXCHANGE_ALL_REDUCE,     CS_EXCHANGE_ALL_GATHER,
                                    CS_EXCHANGE_REDUCE_SCATTER, CS_EXCHANGE_ALL_TO_ALL,
                                    CS_EXCHANGE_SHIFT,          CS_EXCHANGE_HALO};
    static const uint8_t axes[] = {CS_AXES_TENSOR, CS_AXES_CONTEXT, CS_AXES_SPACE, CS_AXES_EXPERT,
                                   CS_AXES_GRADIENT};
    const uint32_t n = 1 + below(random, MOST_PIECES);
    for (uint32_t i = 0; i < n; i++)
        of->pieces[l][i] =
            (cs_layer_piece){below(random, 90000), below(random, 90000), below(random, 90000)};
    put(of, l, n);
    for (uint32_t i = below(random, 6); i > 0; i--) {
        const bool backward = chance(random, 50);
        const uint8_t kind = kinds[below(random, ROWS(kinds))];
        add_exchange(
            of, l,
            (cs_exchange){.kind = kind,
                          .axes = axes[below(random, ROWS(axes))],
                          .backward = backward,
                          .gap = backward ? 1 + below(random, n) : below(random, n + 1),
                          .bytes = draw_bytes(random),
                          .bytes_back = kind == CS_EXCHANGE_HALO ? draw_bytes(random) : 0});
    }
    of->layers[l].kept_bytes = below(random, 1000);
    of->layers[l].workspace_bytes = below(random, 1000);
    of->layers[l].update = below(random, 90000);
    of->layers[l].weight_bytes = draw_bytes(random);
}

/* A recomputed layer may end within a piece: the rest is left out. */
static void draw_end(gsl_rng *random, drawn *of, uint32_t l)
{
    cs_layer *layer = &of->layers[l];
    const uint32_t end = below(random, layer->n_pieces);
    for (uint32_t i = end; i < layer->n_pieces; i++) {
        cs_layer_piece *piece = &layer->pieces[i];
        piece->skipped = i > end ? piece->forward : below(random, (uint32_t)piece->forward + 1);
        layer->skipped += piece->skipped;
    }
    for (uint32_t i = 0; i < layer->n_exchanges; i++) {
        cs_exchange *one = &layer->exchanges[i];
        one->skipped = !one->backward && one->gap > end;
    }
}

/* Equal stages, whose passes take f and b, all exchanges being waited for: (M + P - 1)(f + b) and
 * then the sum of the gradients and the update of one stage, per mini-batch. */
static void test_exchanges_take_their_time(void **state)
{
    static const char *const schedules[] = {"gpipe", "1f1b"};
    gsl_rng *random = *state;
    for (uint32_t i = 0; i < 150; i++) {
        char row[ROW_BYTES];
        drawn of;
        small_run made;
        const uint32_t P = 1 + below(random, 3), M = 1 + below(random, 4);
        init(&of, schedules[i % 2], P, P, P);
        draw_grid(random, &of.grid);
        of.job.micro_batches = M;
        of.job.iterations = 1 + below(random, 2);
        draw_layer(random, &of, 0);
        of.layers[0].recompute = chance(random, 30);
        if (of.layers[0].recompute && chance(random, 50))
            draw_end(random, &of, 0);
        for (uint32_t l = 1; l < P; l++)
            of.layers[l] = of.layers[0];
        run(small_job_describe(&of.job, row, sizeof(row)), &of, &made);
        const cs_exchange sum = {.kind = CS_EXCHANGE_ALL_REDUCE,
                                 .axes = CS_AXES_GRADIENT,
                                 .bytes = of.layers[0].weight_bytes};
        const cs_time batch = (M + P - 1) * (pass_time(&of, 0, false) + pass_time(&of, 0, true)) +
                              exchange_time(&of.grid, &sum) + of.layers[0].update;
        expect_int(row, of.job.iterations * batch, made.trace.makespan);
        small_run_finish(&made);
    }
}

/* The repeated forward of a whole stage has its exchanges again. */
static void test_recomputation_repeats_exchanges(void **state)
{
    gsl_rng *random = *state;
    for (uint32_t i = 0; i < 40; i++) {
        drawn of;
        small_run made;
        init(&of, "1f1b", 1, 1, 1);
        draw_grid(random, &of.grid);
        draw_layer(random, &of, 0);
        of.layers[0].weight_bytes = of.layers[0].update = 0;
        of.job.recompute = true;
        of.job.micro_batches = 3;
        run("recompute", &of, &made);
        expect_int("recompute", 3 * (2 * pass_time(&of, 0, false) + pass_time(&of, 0, true)),
                   made.trace.makespan);
        small_run_finish(&made);
    }
}

/* Three pieces of 100, 200 and 300 ps, with overlapping exchanges. */
static void test_beside(void **state)
{
    (void)state;
    const struct {
        const char *row;
        uint32_t gap;
        int64_t bytes;
        bool both; /* two of them, one after the other */
        cs_time time;
    } rows[] = {
        {"as long as the piece before", 1, 50, false, 600},
        {"longer than the piece before", 1, 150, false, 150 + 200 + 300},
        {"two are longer together", 1, 75, true, 150 + 200 + 300},
        {"during the last piece", 3, 350, false, 100 + 200 + 350},
        {"before everything it overlaps nothing", 0, 70, false, 670},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        drawn of;
        small_run made;
        init(&of, "sequential", 1, 1, 1);
        of.grid.context = 2;
        for (uint32_t p = 0; p < 3; p++)
            of.pieces[0][p].forward = 100 * (p + 1);
        put(&of, 0, 3);
        for (uint32_t n = 0; n < (rows[i].both ? 2u : 1u); n++)
            add_exchange(&of, 0,
                         (cs_exchange){.kind = CS_EXCHANGE_SHIFT,
                                       .axes = CS_AXES_CONTEXT,
                                       .beside = true,
                                       .gap = rows[i].gap,
                                       .bytes = rows[i].bytes});
        run(rows[i].row, &of, &made);
        expect_int(rows[i].row, rows[i].time, made.trace.makespan);
        small_run_finish(&made);
    }
}

/* With split backwards all exchanges are in the half that makes the gradient of the input: one
 * stage and one micro-batch take f + b + w. */
static void test_split_backward(void **state)
{
    gsl_rng *random = *state;
    for (uint32_t i = 0; i < 40; i++) {
        drawn of;
        small_run made;
        init(&of, "zb_h1", 1, 1, 1);
        draw_grid(random, &of.grid);
        draw_layer(random, &of, 0);
        of.layers[0].weight_bytes = of.layers[0].update = 0;
        run("split", &of, &made);
        expect_int("split", pass_time(&of, 0, false) + pass_time(&of, 0, true),
                   made.trace.makespan);
        small_run_finish(&made);
    }
}

/* ---- replicas of whole pipelines ---- */

/* Stages of their own, with messages. */
static void draw_stages(gsl_rng *random, drawn *of)
{
    for (uint32_t l = 0; l < of->job.n_layers; l++)
        of->layers[l] = (cs_layer){.forward = below(random, 5000),
                                   .backward_input = below(random, 5000),
                                   .backward_weight = below(random, 5000),
                                   .output_bytes = below(random, 3000),
                                   .kept_bytes = below(random, 3000),
                                   .workspace_bytes = below(random, 3000)};
}

/* When the last backward of each stage of the run ended. */
static cs_time end_of_stage(const small_run *made, uint32_t stage)
{
    cs_time end = 0;
    for (uint32_t t = 0; t < made->graph.n_tasks; t++) {
        const cs_class *cls = cs_graph_class(&made->graph, t);
        if (cls->stage == stage && cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE &&
            cls->kind != CS_UPDATE && made->trace.spans[t].end > end)
            end = made->trace.spans[t].end;
    }
    return end;
}

/* D replicas of a pipeline are the pipeline, and then each stage's ring all-reduce and update.
 * What an all-reduce shares a port with meanwhile would make it longer: messages have no bytes
 * when it runs. */
static void test_data_replicas(void **state)
{
    static const char *const schedules[] = {
        "gpipe", "1f1b", "zb_h1", "interleaved_1f1b", "sequential", "pipedream", "pipedream_2bw"};
    gsl_rng *random = *state;
    for (uint32_t i = 0; i < 210; i++) {
        char row[ROW_BYTES];
        drawn of;
        small_run alone, made;
        const char *schedule = schedules[i % ROWS(schedules)];
        const bool flushes = i % ROWS(schedules) < 3;
        const uint32_t P = strcmp(schedule, "sequential") == 0 ? 1 : 2 + below(random, 3);
        const uint32_t v = strcmp(schedule, "interleaved_1f1b") == 0 ? 2 : 1;
        init(&of, schedule, P * v, P, P * v);
        of.job.micro_batches = strcmp(schedule, "pipedream") == 0 ? 1 : P + below(random, 5);
        of.job.iterations = strncmp(schedule, "pipedream", 9) == 0 ? 5 : 1;
        draw_stages(random, &of);
        if (flushes) {
            for (uint32_t l = 0; l < P; l++)
                of.layers[l].output_bytes = 0;
        }
        small_job_describe(&of.job, row, sizeof(row));
        run(row, &of, &alone);
        of.grid.data = 2 + below(random, 3);
        cs_time expected = alone.trace.makespan;
        for (uint32_t s = 0; flushes && s < P; s++) {
            of.layers[s].weight_bytes = draw_bytes(random);
            of.layers[s].update = below(random, 5000);
            const int64_t chunk = of.layers[s].weight_bytes / of.grid.data;
            const cs_time end =
                end_of_stage(&alone, s) + 2 * (of.grid.data - 1) * chunk + of.layers[s].update;
            expected = end > expected ? end : expected;
        }
        run(row, &of, &made);
        expect_int(row, expected, made.trace.makespan);
        small_run_finish(&alone);
        small_run_finish(&made);
    }
}

/* ---- what divides nothing ---- */

/* A grid of one place gives the same run as no grid, for all settings. */
static void test_grid_of_one(void **state)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "zb_h1", "pipedream"};
    gsl_rng *random = *state;
    for (uint32_t i = 0; i < 80; i++) {
        char row[ROW_BYTES];
        drawn of;
        small_run alone, made;
        cs_error error;
        cs_error_init(&error);
        const uint32_t P = 1 + below(random, 4);
        init(&of, schedules[i % ROWS(schedules)], P, P, P);
        of.job.micro_batches = i % ROWS(schedules) == 3 ? 1 : 1 + below(random, 4);
        of.job.iterations = 2;
        of.job.recompute = chance(random, 30);
        for (uint32_t l = 0; l < P; l++) {
            draw_layer(random, &of, l);
            of.layers[l].output_bytes = below(random, 1000);
        }
        small_job_describe(&of.job, row, sizeof(row));
        if (small_run_init(&alone, &of.job, &error) != CS_OK)
            fail_msg("%s: %s", row, error.text);
        of.job.states = (cs_states){.zero = below(random, 4),
                                    .prefetch = below(random, 3),
                                    .keep_gathered = chance(random, 50),
                                    .gather_once = chance(random, 30),
                                    .accumulate = chance(random, 50)};
        run(row, &of, &made);
        expect_int(row, alone.graph.n_tasks, made.graph.n_tasks);
        expect_bits(row, cs_trace_hash(&alone.trace), cs_trace_hash(&made.trace));
        small_run_finish(&alone);
        small_run_finish(&made);
    }
}

/* ---- bytes of weights and gradients ---- */

/* Bytes that a device sends for a purpose. */
static int64_t sent(const small_run *made, uint32_t device, cs_purpose purpose)
{
    int64_t bytes = 0;
    for (uint32_t t = 0; t < made->graph.n_tasks; t++) {
        const cs_class *cls = cs_graph_class(&made->graph, t);
        if (cls->kind == CS_TRANSFER && cls->origin != CS_TRANSFER && cls->device == device &&
            cls->peer != device && cls->purpose == purpose)
            bytes += cls->bytes;
    }
    return bytes;
}

/* How often a stage gathers weights per mini-batch: for each forward, backward and repetition;
 * kept ones once, until no micro-batch is in flight (gpipe: all of them are at once), or until the
 * mini-batch ends. */
static int64_t count_gathers(const small_job *job, uint32_t zero)
{
    const int64_t M = job->micro_batches;
    const bool all_at_once = strcmp(job->schedule, "gpipe") == 0;
    switch (zero) {
    case 0:
        return 0;
    case 3:
        if (job->states.gather_once)
            return 1;
        if (job->states.keep_gathered)
            return all_at_once ? 1 : M;
        return (job->recompute ? 3 : 2) * M;
    default:
        return 1;
    }
}

/* Rajbhandari et al., section 7: 2 (n - 1)/n of the weights' bytes with zero 0 to 2, 3 (n - 1)/n
 * with zero
 * 3, where nothing is done twice. With s of n places that share the states, r = n / s: a
 * reduce-scatter (s - 1)/s, an all-reduce among replicas 2 (r - 1)/r of the s-th part. */
static void test_volumes(void **state)
{
    static const char *const schedules[] = {"sequential", "gpipe"};
    gsl_rng *random = *state;
    for (uint32_t i = 0; i < 200; i++) {
        char row[ROW_BYTES];
        drawn of;
        small_run made;
        const uint32_t n_layers = 1 + below(random, 6), s = 1 + below(random, 3);
        init(&of, schedules[i % 2], 1, 1, n_layers);
        of.grid.tensor = 1 + below(random, 2);
        const uint32_t r = 1 + below(random, 2), n = s * r;
        of.grid.data = n;
        of.grid.shard = s;
        of.job.micro_batches = 1 + below(random, 3);
        of.job.iterations = 2;
        of.job.recompute = i % 2 == 1 && chance(random, 50);
        of.job.states = (cs_states){.zero = below(random, 4),
                                    .prefetch = below(random, 3),
                                    .keep_gathered = chance(random, 30),
                                    .gather_once = chance(random, 20),
                                    .accumulate = chance(random, 50),
                                    .bucket = chance(random, 50) ? draw_bytes(random) : 0};
        int64_t all = 0;
        for (uint32_t l = 0; l < n_layers; l++) {
            draw_layer(random, &of, l);
            of.layers[l].n_exchanges = 0;
            all += of.layers[l].weight_bytes;
        }
        snprintf(row, sizeof(row), "%s zero %u, %u x %u, %u micro-batches%s%s%s", of.job.schedule,
                 of.job.states.zero, s, r, of.job.micro_batches,
                 of.job.states.gather_once     ? ", once"
                 : of.job.states.keep_gathered ? ", kept"
                                               : "",
                 of.job.states.accumulate ? ", accumulated" : "",
                 of.job.recompute ? ", recomputed" : "");
        run(row, &of, &made);
        const bool each = of.job.states.zero >= 2 && !of.job.states.accumulate;
        const int64_t scatters = each ? of.job.micro_batches : 1;
        int64_t gradients = scatters * (s - 1) * (all / s) + 2 * (r - 1) * (all / s / r);
        if (of.job.states.zero == 0)
            gradients = 2 * (n - 1) * (all / n);
        const int64_t weights = count_gathers(&of.job, of.job.states.zero) * (s - 1) * (all / s);
        for (uint32_t d = 0; d < made.job.n_devices; d++) {
            expect_int(row, 2 * gradients, sent(&made, d, CS_PURPOSE_GRADIENTS));
            expect_int(row, 2 * weights, sent(&made, d, CS_PURPOSE_WEIGHTS));
        }
        small_run_finish(&made);
    }
}

/* Adds the bytes that a device sends for gradients and for weights of the given size at a ZeRO
 * stage. */
static void add_volumes(const small_job *job, uint32_t zero, int64_t bytes, int64_t *gradients,
                        int64_t *weights)
{
    const int64_t s = job->grid->shard, n = job->grid->data, r = n / s;
    const bool each = zero >= 2 && !job->states.accumulate;
    if (zero == 0)
        *gradients += 2 * (n - 1) * (bytes / n);
    else
        *gradients +=
            (each ? job->micro_batches : 1) * (s - 1) * (bytes / s) + 2 * (r - 1) * (bytes / s / r);
    *weights += count_gathers(job, zero) * (s - 1) * (bytes / s);
}

/* Layers with different ZeRO stages send the sum of what each would send separately: none, all, or
 * quarters of a layer at its stage, and the rest at stage 0. All parts are multiples of 432/4 =
 * 108, which n divides. Memory follows the stage of each layer, too. */
static void test_layers_with_stages_of_their_own(void **state)
{
    static const char *const schedules[] = {"sequential", "gpipe"};
    gsl_rng *random = *state;
    for (uint32_t i = 0; i < 200; i++) {
        char row[ROW_BYTES];
        drawn of;
        small_run made;
        cs_layer_states layers[MOST_LAYERS];
        const uint32_t n_layers = 1 + below(random, 6), s = 1 + below(random, 3);
        init(&of, schedules[i % 2], 1, 1, n_layers);
        of.grid.tensor = 1 + below(random, 2);
        of.grid.data = s * (1 + below(random, 2));
        of.grid.shard = s;
        of.job.grid = &of.grid;
        of.job.micro_batches = 1 + below(random, 3);
        of.job.iterations = 2;
        of.job.states = (cs_states){.zero = below(random, 4),
                                    .layers = layers,
                                    .prefetch = below(random, 3),
                                    .keep_gathered = chance(random, 30),
                                    .gather_once = chance(random, 20),
                                    .accumulate = chance(random, 50),
                                    .bucket = chance(random, 50) ? draw_bytes(random) : 0};
        int64_t gradients = 0, weights = 0, held = 0, states = 0;
        for (uint32_t l = 0; l < n_layers; l++) {
            draw_layer(random, &of, l);
            of.layers[l].n_exchanges = 0;
            const uint32_t quarters = 1 + below(random, 4);
            layers[l] = (cs_layer_states){below(random, 4), quarters / 4.0};
            const int64_t all = of.layers[l].weight_bytes, part = quarters * all / 4;
            const uint32_t zero = layers[l].zero;
            add_volumes(&of.job, zero, part, &gradients, &weights);
            add_volumes(&of.job, 0, all - part, &gradients, &weights);
            held += all - part + (zero >= 3 ? part / s : part);
            states += 2 * (all - part + (zero >= 1 ? part / s : part));
        }
        snprintf(row, sizeof(row), "%u: %s, %u layers, %u x %u, %u micro-batches%s%s", i,
                 of.job.schedule, n_layers, s, of.grid.data / s, of.job.micro_batches,
                 of.job.states.gather_once     ? ", once"
                 : of.job.states.keep_gathered ? ", kept"
                                               : "",
                 of.job.states.accumulate ? ", accumulated" : "");
        run(row, &of, &made);
        for (uint32_t d = 0; d < made.job.n_devices; d++) {
            expect_int(row, 2 * gradients, sent(&made, d, CS_PURPOSE_GRADIENTS));
            expect_int(row, 2 * weights, sent(&made, d, CS_PURPOSE_WEIGHTS));
            expect_int(row, held, made.trace.devices[d].category_peak[CS_MEMORY_WEIGHTS]);
            expect_int(row, states, made.trace.devices[d].category_peak[CS_MEMORY_OPTIMIZER]);
        }
        small_run_finish(&made);
    }
}

/* Experts are summed, and gathered, over the places that hold the same ones; what tensor ranks hold
 * alike is summed over them as well. Of 8 places, tensor 2 and data 4, with 4 experts' ranks:
 * experts are alike on 2 places, i and i + 4. */
static void test_weight_parts(void **state)
{
    (void)state;
    const struct {
        const char *row;
        uint32_t zero;
        int64_t gradients, weights;
    } rows[] = {
        /* dense 1600 over 4: 2 3/4 1600; experts 800 over 2: 2 1/2 800; 160 over 2 */
        {"zero 0", 0, 2400 + 800 + 160, 0},
        /* 3/4 1600 + 1/2 800 + 160/4 over 2; gathered: 3/4 1600 + 1/2 800 */
        {"zero 1", 1, 1200 + 400 + 40, 1600},
        {"zero 2", 2, 1200 + 400 + 40, 1600},
        {"zero 3", 3, 1200 + 400 + 40, 3200},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        drawn of;
        small_run made;
        init(&of, "sequential", 1, 1, 1);
        of.grid = cs_grid_single();
        of.grid.tensor = 2;
        of.grid.data = of.grid.expert = of.grid.shard = 4;
        of.grid.expert_shard = 2;
        of.layers[0].weight_bytes = 2400;
        of.layers[0].n_weight_parts = 2;
        of.parts[0][0] = (cs_weight_part){CS_AXES_EXPERT_DATA, 800};
        of.parts[0][1] = (cs_weight_part){CS_AXES_TENSOR, 160};
        put(&of, 0, 1);
        of.job.states = (cs_states){.zero = rows[i].zero, .accumulate = true};
        run(rows[i].row, &of, &made);
        for (uint32_t d = 0; d < 8; d++) {
            expect_int(rows[i].row, rows[i].gradients, sent(&made, d, CS_PURPOSE_GRADIENTS));
            expect_int(rows[i].row, rows[i].weights, sent(&made, d, CS_PURPOSE_WEIGHTS));
        }
        small_run_finish(&made);
    }
}

/* Of 8 places, tensor 4 and data 2, pairs of neighbours have the same heads of keys and values, and
 * sum the gradients of their weights; gradients of weights that all four hold are summed over all.
 * Dense 1600 over 2; 160 over 2 neighbours; 80 over 4. */
static void test_copies(void **state)
{
    (void)state;
    const struct {
        const char *row;
        uint32_t zero;
        int64_t gradients, weights;
    } rows[] = {
        /* 2 1/2 1600, 2 1/2 160, 2 3/4 80 */
        {"zero 0", 0, 1600 + 160 + 120, 0},
        /* shares of a half: 1/2 1600, 2 1/2 80, 2 3/4 40; gathered: 1/2 1600 */
        {"zero 1", 1, 800 + 80 + 60, 800},
        {"zero 3", 3, 800 + 80 + 60, 1600},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        drawn of;
        small_run made;
        init(&of, "sequential", 1, 1, 1);
        of.grid = cs_grid_single();
        of.grid.tensor = 4;
        of.grid.data = of.grid.shard = of.grid.copies = 2;
        of.layers[0].weight_bytes = 1600;
        of.layers[0].n_weight_parts = 2;
        of.parts[0][0] = (cs_weight_part){CS_AXES_COPIES, 160};
        of.parts[0][1] = (cs_weight_part){CS_AXES_TENSOR, 80};
        put(&of, 0, 1);
        of.job.states = (cs_states){.zero = rows[i].zero, .accumulate = true};
        run(rows[i].row, &of, &made);
        for (uint32_t d = 0; d < 8; d++) {
            expect_int(rows[i].row, rows[i].gradients, sent(&made, d, CS_PURPOSE_GRADIENTS));
            expect_int(rows[i].row, rows[i].weights, sent(&made, d, CS_PURPOSE_WEIGHTS));
        }
        small_run_finish(&made);
    }
}

/* ---- memory ---- */

static int64_t peak(const small_run *made, uint32_t device, cs_category category)
{
    return made->trace.devices[device].category_peak[category];
}

/* 1001 bytes of weights on 4 places: shares of 251 bytes. Optimizer states are twice the
 * weights. */
static void test_residents(void **state)
{
    (void)state;
    const struct {
        const char *row;
        uint32_t zero;
        bool accumulate;
        int64_t weights, gradients, states, gathered;
        cs_time update; /* 1001 ps */
    } rows[] = {
        {"zero 0", 0, true, 1001, 1001, 2002, 0, 1001},
        {"zero 1", 1, true, 1001, 1001, 502, 0, 251},
        {"zero 2", 2, true, 1001, 1001, 502, 0, 251},
        {"zero 2, scattered each time", 2, false, 1001, 251 + 1001, 502, 0, 251},
        {"zero 3", 3, true, 251, 1001, 502, 1001, 251},
        {"zero 3, scattered each time", 3, false, 251, 251 + 1001, 502, 1001, 251},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        drawn of;
        small_run made;
        init(&of, "sequential", 1, 1, 1);
        of.grid.data = of.grid.shard = 4;
        of.layers[0].weight_bytes = of.layers[0].update = 1001;
        of.job.states = (cs_states){.zero = rows[i].zero, .accumulate = rows[i].accumulate};
        run(rows[i].row, &of, &made);
        expect_int(rows[i].row, rows[i].weights, peak(&made, 0, CS_MEMORY_WEIGHTS));
        expect_int(rows[i].row, rows[i].gradients, peak(&made, 0, CS_MEMORY_GRADIENTS));
        expect_int(rows[i].row, rows[i].states, peak(&made, 0, CS_MEMORY_OPTIMIZER));
        expect_int(rows[i].row, rows[i].gathered, peak(&made, 0, CS_MEMORY_GATHERED));
        for (uint32_t t = 0; t < made.graph.n_tasks; t++) {
            if (cs_graph_class(&made.graph, t)->kind == CS_UPDATE)
                expect_int(rows[i].row, rows[i].update,
                           made.trace.spans[t].end - made.trace.spans[t].start);
        }
        small_run_finish(&made);
    }
}

/* 1000 bytes of weights and 1000 of frozen ones on 4 places: the latter are divided at stage 3
 * only, and gathered with the others, by the forward and by the backward; no gradients are sent of
 * them. Of casts of others each place has all, at stage 3 while they are gathered. */
static void test_frozen(void **state)
{
    (void)state;
    const struct {
        const char *row;
        uint32_t zero;
        int64_t weights, gathered, sent, cast;
    } rows[] = {{"zero 0", 0, 2000, 0, 0, 0},
                {"zero 2", 2, 2000, 0, 3 * 1000 / 4, 0},
                {"zero 3", 3, 250 + 250, 2000, 2 * 3 * 2000 / 4, 0},
                {"casts, zero 2", 2, 2000, 0, 3 * 1000 / 4, 600},
                {"casts, zero 3", 3, 250 + 100, 2000, 2 * 3 * 1400 / 4, 600}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        drawn of;
        small_run made;
        init(&of, "sequential", 1, 1, 1);
        of.grid.data = of.grid.shard = 4;
        of.layers[0].weight_bytes = 1000;
        of.layers[0].frozen_bytes = 1000;
        of.layers[0].cast_bytes = rows[i].cast;
        of.job.states = (cs_states){.zero = rows[i].zero, .accumulate = true};
        run(rows[i].row, &of, &made);
        expect_int(rows[i].row, rows[i].weights, peak(&made, 0, CS_MEMORY_WEIGHTS));
        expect_int(rows[i].row, rows[i].gathered, peak(&made, 0, CS_MEMORY_GATHERED));
        expect_int(rows[i].row, rows[i].sent, sent(&made, 0, CS_PURPOSE_WEIGHTS));
        small_run_finish(&made);
    }
}

/* Four layers of 1000 bytes on 4 places, whose backwards of 10,000 ps are longer than a scatter of
 * 750: scattered layer by layer memory holds the shares, 4 x 250, and two whole layers, one being
 * computed and one being sent; less than the 4000 of stage 1. */
static void test_scattered_by_layer(void **state)
{
    (void)state;
    const int64_t expected[] = {4000, 4000, 3000};
    for (uint32_t zero = 0; zero < 3; zero++) {
        drawn of;
        small_run made;
        init(&of, "sequential", 1, 1, 4);
        of.grid.data = of.grid.shard = 4;
        of.job.micro_batches = 2;
        for (uint32_t l = 0; l < 4; l++) {
            of.layers[l].weight_bytes = 1000;
            of.layers[l].forward = of.layers[l].backward_weight = 10000;
        }
        of.job.states = (cs_states){.zero = zero};
        run("by layer", &of, &made);
        expect_int("gradients", expected[zero], peak(&made, 0, CS_MEMORY_GRADIENTS));
        small_run_finish(&made);
    }
}

/* Layers that take long compared with their gathers: while one computes, it and the next `prefetch`
 * layers in the order of the pass are in memory. */
static void test_prefetch(void **state)
{
    gsl_rng *random = *state;
    for (uint32_t i = 0; i < 100; i++) {
        char row[64];
        drawn of;
        small_run made;
        const uint32_t n = 1 + below(random, 8), ahead = below(random, 4);
        int64_t most = 0;
        init(&of, "sequential", 1, 1, n);
        of.grid.data = of.grid.shard = 3;
        of.job.micro_batches = 2;
        of.job.states = (cs_states){.zero = 3, .prefetch = ahead, .accumulate = true};
        for (uint32_t l = 0; l < n; l++) {
            of.layers[l] = (cs_layer){.forward = 1000000, .backward_input = 1000000};
            of.layers[l].weight_bytes = 1 + below(random, 999);
        }
        for (uint32_t l = 0; l < n; l++) {
            int64_t window = 0;
            for (uint32_t k = l; k < n && k <= l + ahead; k++)
                window += of.layers[k].weight_bytes;
            most = window > most ? window : most;
        }
        snprintf(row, sizeof(row), "%u layers, %u ahead", n, ahead);
        run(row, &of, &made);
        expect_int(row, most, peak(&made, 1, CS_MEMORY_GATHERED));
        small_run_finish(&made);
    }
}

/* Zero 3 with layers of 1000 + 2000 ps, whose 300 bytes over 3 places are gathered, and reduced, in
 * 200 ps. Without prefetch every gather is exposed; in the backward, except for the first, it
 * overlaps the reduce-scatter of the previous layer, and both take 400 ps. With one layer ahead
 * only the first gather of each pass is exposed. The reduce-scatter of the first layer comes
 * last. */
static void test_gathers_are_exposed(void **state)
{
    (void)state;
    const struct {
        const char *row;
        uint32_t prefetch;
        cs_time time;
    } rows[] = {
        {"none ahead", 0, 4 * 1200 + 2200 + 3 * 2400 + 200},
        {"one ahead", 1, 200 + 4000 + 200 + 8000 + 200},
        {"two ahead", 2, 200 + 4000 + 200 + 8000 + 200},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        drawn of;
        small_run made;
        init(&of, "sequential", 1, 1, 4);
        of.grid.data = of.grid.shard = 3;
        of.job.states = (cs_states){.zero = 3, .prefetch = rows[i].prefetch};
        for (uint32_t l = 0; l < 4; l++)
            of.layers[l] = (cs_layer){.forward = 1000, .backward_input = 2000, .weight_bytes = 300};
        run(rows[i].row, &of, &made);
        expect_int(rows[i].row, rows[i].time, made.trace.makespan);
        small_run_finish(&made);
    }
}

/* The same layers with two micro-batches, one layer ahead. Gathered once, only the first gather of
 * all is exposed, and the four layers are there until the end; their reduce-scatters follow the
 * last backward, one after another. Gradients are whole, 1200 bytes, and with the update there are
 * also shares of a third. */
static void test_gathered_once(void **state)
{
    (void)state;
    const struct {
        const char *row;
        bool once;
        cs_time time;
        int64_t gathered, gradients;
    } rows[] = {
        {"in each pass", false, 2 * (200 + 4000 + 200 + 8000) + 200, 600, 1200},
        {"once", true, 200 + 2 * (4000 + 8000) + 4 * 200, 1200, 1200 + 400},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        drawn of;
        small_run made;
        init(&of, "sequential", 1, 1, 4);
        of.grid.data = of.grid.shard = 3;
        of.job.micro_batches = 2;
        of.job.states =
            (cs_states){.zero = 3, .prefetch = 1, .accumulate = true, .gather_once = rows[i].once};
        for (uint32_t l = 0; l < 4; l++)
            of.layers[l] = (cs_layer){.forward = 1000, .backward_input = 2000, .weight_bytes = 300};
        run(rows[i].row, &of, &made);
        expect_int(rows[i].row, rows[i].time, made.trace.makespan);
        expect_int(rows[i].row, rows[i].gathered, peak(&made, 0, CS_MEMORY_GATHERED));
        expect_int(rows[i].row, rows[i].gradients, peak(&made, 0, CS_MEMORY_GRADIENTS));
        small_run_finish(&made);
    }
}

/* 1F1B with two stages and three micro-batches is F F B F B B on the first, where one is always in
 * flight until the end, and F B F B F B on the last, where none is in flight after each backward.
 * Each gather of 300 bytes over 3 places sends 200; there are two mini-batches. */
static void test_gathers_of_a_pipeline(void **state)
{
    (void)state;
    const struct {
        const char *row;
        bool kept, once;
        int64_t gathers[2];
    } rows[] = {
        {"in each pass", false, false, {6, 6}},
        {"kept", true, false, {1, 3}},
        {"once", false, true, {1, 1}},
        {"kept, and once", true, true, {1, 1}},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        drawn of;
        small_run made;
        init(&of, "1f1b", 2, 2, 2);
        of.grid.data = of.grid.shard = 3;
        of.job.micro_batches = 3;
        of.job.iterations = 2;
        of.job.states = (cs_states){.zero = 3,
                                    .accumulate = true,
                                    .keep_gathered = rows[i].kept,
                                    .gather_once = rows[i].once};
        for (uint32_t l = 0; l < 2; l++)
            of.layers[l] = (cs_layer){.forward = 1000, .backward_input = 2000, .weight_bytes = 300};
        run(rows[i].row, &of, &made);
        for (uint32_t d = 0; d < made.job.n_devices; d++)
            expect_int(rows[i].row, 2 * rows[i].gathers[d / 3] * 200,
                       sent(&made, d, CS_PURPOSE_WEIGHTS));
        small_run_finish(&made);
    }
}

/* Two layers that keep 10 and 20 bytes and work with 7 and 5. The first has an exchange between
 * its pieces, during which its workspace stays; the data that arrive during the second layer's
 * first piece are in a buffer until the end of its second piece. */
static void test_memory_of_exchanges(void **state)
{
    (void)state;
    drawn of;
    small_run made;
    init(&of, "sequential", 1, 1, 2);
    of.grid.tensor = 2;
    for (uint32_t l = 0; l < 2; l++) {
        for (uint32_t p = 0; p < 2; p++)
            of.pieces[l][p] = (cs_layer_piece){100, 100, 0};
        put(&of, l, 2);
    }
    add_exchange(
        &of, 0,
        (cs_exchange){
            .kind = CS_EXCHANGE_ALL_REDUCE, .axes = CS_AXES_TENSOR, .gap = 1, .bytes = 50});
    add_exchange(&of, 1,
                 (cs_exchange){.kind = CS_EXCHANGE_SHIFT,
                               .axes = CS_AXES_TENSOR,
                               .beside = true,
                               .gap = 1,
                               .bytes = 30});
    of.layers[0].kept_bytes = 10;
    of.layers[1].kept_bytes = 20;
    of.layers[0].workspace_bytes = 7;
    of.layers[1].workspace_bytes = 5;
    run("memory", &of, &made);
    /* 0: piece of layer 0; 100: all-reduce of 50 ps; 150: rest of layer 0; 250: layer 1 and the
     * shift; 350: its second piece; 450: backward, all in one */
    expect_int("memory", 850, made.trace.makespan);
    expect_int("kept", 30, peak(&made, 0, CS_MEMORY_ACTIVATIONS));
    expect_int("buffer", 30, peak(&made, 0, CS_MEMORY_BUFFERS));
    expect_int("workspace", 7, peak(&made, 0, CS_MEMORY_WORKSPACE));
    /* at 250: 30 kept, 30 on the way, 5 */
    expect_int("all", 65, made.trace.devices[0].peak);
    expect_int("when", 250, made.trace.devices[0].peak_time);
    small_run_finish(&made);
}

/* ---- devices in place of others ---- */

/* With delays one device of each rank gives the times of all. */
static void test_fold(void **state)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "zb_h1", "interleaved_1f1b"};
    const cs_lower_options delays = {.fidelity = CS_FIDELITY_ANALYTIC};
    gsl_rng *random = *state;
    for (uint32_t i = 0; i < fewer_sanitized(2000); i++) {
        char row[ROW_BYTES];
        drawn of;
        small_run whole, folded;
        uint32_t stands_for[4 * 36];
        const char *schedule = schedules[i % ROWS(schedules)];
        const uint32_t P = 2 + below(random, 2), v = i % ROWS(schedules) == 3 ? 2 : 1;
        init(&of, schedule, P * v, P, P * v * 2);
        draw_grid(random, &of.grid);
        const uint32_t W = cs_grid_places(&of.grid);
        of.grid.shard = of.grid.data;
        of.job.micro_batches = P;
        of.job.iterations = 2;
        of.job.lowering = &delays;
        of.job.states = (cs_states){.zero = below(random, 4),
                                    .prefetch = below(random, 2),
                                    .keep_gathered = chance(random, 30),
                                    .gather_once = chance(random, 20),
                                    .accumulate = chance(random, 50),
                                    .bucket = chance(random, 50) ? 10000 : 0};
        for (uint32_t l = 0; l < of.job.n_layers; l++) {
            draw_layer(random, &of, l);
            of.layers[l].output_bytes = below(random, 1000);
        }
        small_job_describe(&of.job, row, sizeof(row));
        run(row, &of, &whole);
        for (uint32_t d = 0; d < P * W; d++)
            stands_for[d] = d / W * W;
        of.job.stands_for = stands_for;
        run(row, &of, &folded);
        expect_int(row, whole.trace.makespan, folded.trace.makespan);
        for (uint32_t d = 0; d < P * W; d += W) {
            expect_int(row, whole.trace.devices[d].peak, folded.trace.devices[d].peak);
            expect_int(row, whole.trace.devices[d].peak_time, folded.trace.devices[d].peak_time);
        }
        if (W > 1)
            assert_true(folded.graph.n_tasks < whole.graph.n_tasks);
        small_run_finish(&whole);
        small_run_finish(&folded);
    }
}

/* ---- closed forms ---- */

/* Forms that apply hold, on networks with times and on one without. */
static void test_promises(void **state)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "zb_h1", "interleaved_1f1b",
                                            "sequential"};
    gsl_rng *random = *state;
    uint32_t n_promised = 0;
    for (uint32_t i = 0; i < 200; i++) {
        char row[ROW_BYTES];
        drawn of;
        small_run made;
        const uint32_t P = i % 5 == 4 ? 1 : 1 + below(random, 3), v = i % 5 == 3 ? 2 : 1;
        init(&of, schedules[i % 5], P * v, P, P * v);
        draw_grid(random, &of.grid);
        of.grid.shard = of.grid.data;
        of.job.topology = chance(random, 70) ? "ideal" : of.job.topology;
        of.job.micro_batches = P * (1 + below(random, 3));
        of.job.iterations = 1 + below(random, 2);
        of.job.states = (cs_states){.zero = below(random, 4), .prefetch = below(random, 2)};
        draw_layer(random, &of, 0);
        for (uint32_t l = 1; l < P * v; l++)
            of.layers[l] = of.layers[0];
        run(small_job_describe(&of.job, row, sizeof(row)), &of, &made);
        for (uint32_t f = 0; f < made.forms.n; f++) {
            const cs_form *form = &made.forms.forms[f];
            const bool time = form->figure == CS_FIGURE_MAKESPAN;
            if (!cs_form_is_promised(form) || (!time && form->figure != CS_FIGURE_PEAK_ACTIVATIONS))
                continue;
            n_promised += time;
            expect_int(row, form->exact,
                       time ? made.trace.makespan
                            : peak(&made, form->device, CS_MEMORY_ACTIVATIONS));
        }
        small_run_finish(&made);
    }
    assert_true(n_promised > 50);
}

/* ---- weights of two stages ---- */

/* Layer 1 uses 600 bytes of layer 0, on another rank: places of the same number sum their
 * gradients, each of its share, half of them as there are two. */
static void test_ties(void **state)
{
    (void)state;
    const struct {
        const char *row;
        uint32_t zero;
        int64_t share;
    } rows[] = {{"zero 0", 0, 600}, {"zero 1", 1, 300}, {"zero 3", 3, 300}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        drawn of;
        small_run made;
        init(&of, "1f1b", 2, 2, 2);
        of.grid.data = of.grid.shard = 2;
        of.layers[0].weight_bytes = 600;
        of.layers[1].tied_bytes = 600;
        of.layers[1].tied_to = "layer0";
        of.job.states = (cs_states){.zero = rows[i].zero, .accumulate = true};
        run(rows[i].row, &of, &made);
        /* each of two devices sends half of the vector twice; stages also sum 600 bytes, or scatter
         * them, half of the work */
        const int64_t stage = rows[i].zero == 0 ? 600 : 300;
        for (uint32_t d = 0; d < 4; d++)
            expect_int(rows[i].row, stage + rows[i].share, sent(&made, d, CS_PURPOSE_GRADIENTS));
        small_run_finish(&made);
    }
}

/* ---- what does not go ---- */

static void test_errors(void **state)
{
    (void)state;
    drawn of;
    small_run made;
    cs_error error;
    cs_error_init(&error);
    uint32_t stands_for[] = {0, 0, 2, 3};
    init(&of, "1f1b", 2, 2, 2);
    of.grid.data = 2;
    small_job job = of.job;
    job.layers = of.layers;
    job.grid = &of.grid;
    job.n_devices = 4;
    job.stands_for = stands_for;
    expect_error(
        "fold", CS_INVALID,
        "the same places must be simulated of each stage: place 1 of stages 0 and 1 differ",
        small_run_init(&made, &job, &error), &error);
    small_run_finish(&made);
}

static int setup(void **state)
{
    *state = gsl_rng_alloc(gsl_rng_mt19937);
    if (*state)
        gsl_rng_set(*state, 14);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    gsl_rng_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchanges_take_their_time),
        cmocka_unit_test(test_recomputation_repeats_exchanges),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_split_backward),
        cmocka_unit_test(test_data_replicas),
        cmocka_unit_test(test_grid_of_one),
        cmocka_unit_test(test_volumes),
        cmocka_unit_test(test_layers_with_stages_of_their_own),
        cmocka_unit_test(test_weight_parts),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_residents),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_scattered_by_layer),
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_gathers_are_exposed),
        cmocka_unit_test(test_gathered_once),
        cmocka_unit_test(test_gathers_of_a_pipeline),
        cmocka_unit_test(test_memory_of_exchanges),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

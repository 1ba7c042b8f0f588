/* How many plans `sim advise` simulates per second: every n-th candidate for a transformer on 64
 * GPUs, or for a scenario, from the changes of the scenario to its step and its memory. Usage:
 * bench-advise PLANS [SCENARIO]
 *
 * Where there are fewer candidates they are simulated again and again until PLANS are done: a few
 * milliseconds say nothing. Prints a row per part, in CPU time of one thread, and a hash of the
 * steps and peaks of all candidates that were simulated. */
#include "sim/base/hash.h"
#include "sim/study/advise/advise.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char scenario_text[] =
    "{\"schema_version\": 1, \"name\": \"gpt-64\", \"model\": {\"name\": \"gpt\", \"parameters\": "
    "{\"layers\": 24, \"hidden\": 2048, \"heads\": 16, \"sequence\": 2048, \"vocabulary\": 51200}, "
    "\"device\": \"a100\", \"precision\": \"bf16\", \"granularity\": \"block\", \"optimizer\": "
    "\"adam\", \"gradients\": \"fp32\", \"batch_size\": 512}, \"platform\": {\"topology\": "
    "\"dgx-a100\", \"devices\": 64}, \"parallel\": {}, \"schedule\": {\"kind\": \"sequential\"}}";

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

typedef struct bench {
    cs_advise_base base;
    cs_candidates candidates;
    cs_bounds bounds;
    uint64_t hash, tasks;
    uint32_t n_candidates;               /* in the hash */
    uint32_t n;                          /* runs */
    double pricing, reading, simulating; /* s */
} bench;

static cs_status run_plan(bench *b, uint32_t i, bool first, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_step step;
    const double start = seconds();
    cs_status status =
        cs_bounds_read(&b->base, &b->candidates, &b->bounds, i, NULL, &scenario, error);
    const double between = seconds();
    if (status == CS_OK)
        status = cs_simulate_step(&scenario, NULL, &step, error);
    if (status == CS_OK) {
        const int64_t numbers[] = {(int64_t)(step.time * 1e12), step.peak};
        if (first)
            b->hash = cs_hash_bytes(numbers, sizeof(numbers), b->hash);
        b->n_candidates += first;
        b->tasks += step.n_tasks;
        b->n++;
    }
    b->reading += between - start;
    b->simulating += seconds() - between;
    cs_scenario_finish(&scenario);
    return status;
}

static cs_status run_all(bench *b, uint32_t step, bool first, cs_error *error)
{
    for (uint32_t i = 0; i < b->candidates.n; i += step)
        if (b->bounds.priced[b->bounds.of[i]].possible)
            CS_TRY(run_plan(b, i, first, error));
    return CS_OK;
}

static cs_status run(bench *b, const cJSON *document, const char *path, uint32_t most,
                     cs_arena *arena, cs_error *error)
{
    CS_TRY(cs_advise_base_read(document, path, arena, &b->base, error));
    CS_TRY(cs_candidates_make(&b->base, &b->candidates, error));
    const double start = seconds();
    CS_TRY(cs_bounds_begin(&b->base, &b->candidates, &b->bounds, error));
    for (int pass = 0; pass < 2; pass++) { /* the first price of each model, and all others */
        uint32_t *prices, n;
        CS_TRY(cs_bounds_list_prices(&b->bounds, pass == 0, &prices, &n, error));
        const cs_status status =
            cs_bounds_price_some(&b->base, &b->candidates, prices, n, 1, NULL, &b->bounds, error);
        free(prices);
        CS_TRY(status);
    }
    b->pricing = seconds() - start;
    const uint32_t step = b->candidates.n / most > 0 ? b->candidates.n / most : 1;
    CS_TRY(run_all(b, step, true, error));
    while (b->n > 0 && b->n < most)
        CS_TRY(run_all(b, step, false, error));
    return CS_OK;
}

int main(int argc, char **argv)
{
    const uint32_t most = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 500;
    bench b = {0};
    cJSON *document = NULL;
    cs_arena arena;
    cs_error error;
    cs_arena_init(&arena);
    cs_error_init(&error);
    const char *path = argc > 2 ? argv[2] : "gpt-64.json";
    cs_status status =
        argc > 2 ? cs_json_load(path, &document, &error)
                 : cs_json_parse(path, scenario_text, strlen(scenario_text), &document, &error);
    if (status == CS_OK)
        status = run(&b, document, path, most > 0 ? most : 1, &arena, &error);
    if (status == CS_OK) {
        const double all = b.reading + b.simulating;
        printf("%u of %u plans, %.0f tasks each on average\n", b.n_candidates, b.candidates.n,
               (double)b.tasks / b.n);
        printf("bounds      %8.3f ms a plan, of all\n", 1e3 * b.pricing / b.candidates.n);
        printf("reading     %8.3f ms a plan\n", 1e3 * b.reading / b.n);
        printf("simulating  %8.3f ms a plan\n", 1e3 * b.simulating / b.n);
        printf("plans       %8.0f per s of a core\n", b.n / all);
        printf("hash        %016" PRIx64 "\n", b.hash);
    } else {
        fprintf(stderr, "%s", error.text);
    }
    cs_bounds_finish(&b.bounds);
    cs_candidates_finish(&b.candidates);
    cJSON_Delete(document);
    cs_arena_finish(&arena);
    return status == CS_OK ? 0 : 1;
}

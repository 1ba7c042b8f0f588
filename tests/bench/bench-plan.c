/* Measures planners: bench-plan PLANNER LAYERS DEVICES
 *
 * A random chain with forwards and backwards of up to 4 ms, messages of up to 1 ms each way, and up
 * to 100 MB of weights and of activations per layer; memory without a limit, and then just the
 * average of the weights and of some active micro-batches over the devices. Prints the time that a
 * plan takes, its period and a hash of the pattern, to detect changed answers.
 */
#include "schedules/plan/planner.h"
#include "sim/base/hash.h"
#include "sim/base/random.h"
#include "tests/random-chain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REPEATS = 5 };

/* The planner's parameters with their defaults; NULL when something is wrong. */
static void *defaults(const cs_planner *planner, cs_arena *arena, cs_error *error)
{
    static const cs_json_place nowhere = {0};
    void *params = cs_arena_alloc(arena, 1, planner->params_size);
    const cs_field *tables[] = {planner->fields, NULL};
    void *outs[] = {params};
    if (!params || cs_field_read(NULL, &nowhere, tables, outs, arena, error) != CS_OK)
        return NULL;
    return params;
}

static cs_status measure(const cs_planner *planner, const void *params, const cs_chain *chain,
                         cs_error *error)
{
    cs_planned planned = {0};
    cs_status status = CS_OK;
    const clock_t start = clock();
    for (int i = 0; i < REPEATS && status == CS_OK; i++) {
        cs_planned_finish(&planned);
        status = planner->plan(chain, params, &planned, error);
    }
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC / REPEATS;
    if (status == CS_OK)
        status = cs_pattern_check(chain, &planned.plan, &planned.pattern, NULL, error);
    const size_t n_ops = (size_t)planned.pattern.n_stages * CS_PATTERN_KINDS;
    if (status == CS_OK)
        printf("%19" PRId64 "  %9.4f  %15" PRId64 "  %6" PRIu32 "  %016" PRIx64 "\n", chain->memory,
               seconds, planned.pattern.period, planned.plan.n_stages,
               cs_hash_bytes(planned.pattern.ops, n_ops * sizeof(cs_pattern_op), 0));
    cs_planned_finish(&planned);
    return status;
}

int main(int argc, char **argv)
{
    static const double actives[] = {16, 8, 4, 3};
    const cs_planner *planner = argc == 4 ? cs_planner_find(argv[1]) : NULL;
    const random_chain_limits limits = {argc == 4 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0,
                                        argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0,
                                        4000000000u, 1000000000u, 100000000u};
    if (!planner || limits.layers == 0 || limits.devices == 0) {
        fprintf(stderr, "usage: bench-plan PLANNER LAYERS DEVICES\n");
        return EXIT_FAILURE;
    }
    cs_error error;
    cs_arena arena;
    cs_error_init(&error);
    cs_arena_init(&arena);
    gsl_rng *rng = cs_random_stream(1, "plans");
    const void *params = defaults(planner, &arena, &error);
    cs_chain chain = random_chain_full(rng, &limits);
    cs_status status = params ? CS_OK : CS_FAILED;
    printf("%s, %u layers, %u devices\n%19s  %9s  %15s  %6s  %s\n", planner->name, limits.layers,
           limits.devices, "memory (bytes)", "time (s)", "period (ps)", "stages", "hash");
    for (size_t i = 0; i <= sizeof(actives) / sizeof(actives[0]) && status == CS_OK; i++) {
        if (i > 0)
            chain.memory = (int64_t)(((double)chain.sum_fixed[chain.n_layers] +
                                      actives[i - 1] * (double)chain.sum_kept[chain.n_layers]) /
                                     limits.devices);
        status = measure(planner, params, &chain, &error);
    }
    if (status != CS_OK)
        fprintf(stderr, "%s\n", error.text);
    cs_chain_finish(&chain);
    cs_arena_finish(&arena);
    gsl_rng_free(rng);
    return status == CS_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Prints what random runs with noise give: a hash of all times, and one of all rates of messages,
 * bit by bit. Built twice, for the processor that every machine has and for one that multiplies
 * and adds in one step; both have to print the same (same-bits.py).
 *
 *     same-bits RUNS
 *
 * Ends with 77 where the processor cannot run it.
 */
#include "sim/base/hash.h"
#include "tests/random-graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Bandwidths of the random platforms are round numbers, which cause few roundings; these are not.
 * And slow: messages take seconds, so the last bits of a double are a share of a picosecond that
 * often shows. */
static const double slower = 1e-8;
static const cs_noise noise = {
    .jitter = {CS_SPREAD_BETA, 0.2, 0.1, 1},
    .slow_devices = {CS_SPREAD_UNIFORM, 0.5, 0, 0.5},
    .slow_tasks = {CS_SPREAD_LOGNORMAL, 0.1, 0.2, 1},
};

static uint64_t hash_rates(const cs_trace *trace)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < trace->n_rates; i++)
        hash = cs_hash_bytes(&trace->rates[i].rate, sizeof(double), hash);
    return hash;
}

/* False when the run has no result, which is one too. */
static bool run(const random_case *given, uint64_t seed, uint64_t hashes[2], cs_error *error)
{
    cs_platform disturbed = {0};
    cs_trace trace = {0};
    double *factors = NULL;
    cs_engine_options options = given->options;
    options.record_rates = true;
    bool ran = cs_noise_platform(&noise, &given->platform, seed, &disturbed, error) == CS_OK &&
               cs_noise_tasks(&noise, seed, given->graph.n_tasks, &factors, error) == CS_OK;
    if (ran) {
        disturbed.sharing = CS_SHARING_MAX_MIN;
        for (uint32_t i = 0; i < disturbed.n_links; i++)
            disturbed.links[i].bandwidth *= slower;
        options.task_factors = factors;
        ran = cs_engine_run(&given->graph, &disturbed, &options, &trace, error) == CS_OK;
    }
    if (ran) {
        hashes[0] = cs_hash_bytes(&(uint64_t){cs_trace_hash(&trace)}, 8, hashes[0]);
        hashes[1] = cs_hash_bytes(&(uint64_t){hash_rates(&trace)}, 8, hashes[1]);
        cs_trace_finish(&trace);
    }
    free(factors);
    cs_platform_finish(&disturbed);
    return ran;
}

int main(int argc, char **argv)
{
#ifdef __FMA__
    if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2"))
        return 77;
#endif
    const uint64_t runs = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
    uint64_t hashes[2] = {0}, ran = 0;
    for (uint64_t seed = 1; seed <= runs; seed++) {
        random_case given;
        cs_error error;
        cs_error_init(&error);
        if (random_case_init(&given, seed, &error) != CS_OK) {
            fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, error.text);
            return 1;
        }
        ran += run(&given, seed, hashes, &error);
        random_case_finish(&given);
    }
    printf("%" PRIu64 " of %" PRIu64 " runs: times %016" PRIx64 ", rates %016" PRIx64 "\n", ran,
           runs, hashes[0], hashes[1]);
    return ran > runs / 2 ? 0 : 1;
}

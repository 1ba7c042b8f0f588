/* Proposes numbers that satisfy the violated rule. cs_scenario_read tries each one first. */
#include "sim/run/scenario/build.h"

enum { MOST = 8 }; /* numbers in each direction */

void cs_propose_divisors(const char *pointer, uint64_t n, uint64_t of, cs_error *error)
{
    uint32_t proposed = 0;
    for (uint64_t at = n > 0 && n - 1 < of ? n - 1 : of; at > 0 && proposed < MOST; at--)
        if (of % at == 0)
            cs_error_propose(error, proposed++ == 0, pointer, "%llu", (unsigned long long)at);
    proposed = 0;
    for (uint64_t at = n + 1; at <= of && proposed < MOST; at++)
        if (of % at == 0)
            cs_error_propose(error, proposed++ == 0, pointer, "%llu", (unsigned long long)at);
}

void cs_propose_multiples(const char *pointer, uint64_t n, uint64_t of, cs_error *error)
{
    const uint64_t below = n / of;
    for (uint64_t i = 0; i < MOST && i < below; i++)
        cs_error_propose(error, i == 0, pointer, "%llu", (unsigned long long)((below - i) * of));
    for (uint64_t i = 1; i <= MOST; i++)
        cs_error_propose(error, i == 1, pointer, "%llu", (unsigned long long)((below + i) * of));
}

#define _GNU_SOURCE /* sched_setaffinity */

#include "calib/bench/device/cores.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(cpu_set_t) == sizeof(cs_bench_cores),
               "a set of cores has the format of the system");

/* Ignores failure: without pinning, times only vary more. */
void cs_bench_unpin(const cs_bench_cores *cores)
{
    cpu_set_t allowed;
    memcpy(&allowed, cores, sizeof(allowed));
    if (CPU_COUNT(&allowed) > 0)
        (void)sched_setaffinity(0, sizeof(allowed), &allowed);
}

uint32_t cs_bench_count_cores(void)
{
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? (uint32_t)CPU_COUNT(&allowed) : 0;
}

char *cs_bench_places(const cs_backend *backend, uint32_t processes, char *text, size_t size)
{
    uint32_t cores = cs_bench_count_cores();
    if (backend->own_memory)
        snprintf(text, size, "taking GPUs in turn");
    else if (processes <= cores)
        snprintf(text, size, "each on a core of its own");
    else
        snprintf(text, size, "taking turns on %u core%s", cores, cores == 1 ? "" : "s");
    return text;
}

cs_bench_cores cs_bench_pin(const cs_backend *backend, uint32_t number)
{
    cs_bench_cores before = {{0}}, after;
    cpu_set_t allowed, one;
    if (backend->own_memory || sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
        CPU_COUNT(&allowed) == 0)
        return before;
    memcpy(&before, &allowed, sizeof(before));
    uint32_t skip = number % (uint32_t)CPU_COUNT(&allowed);
    int core = 0;
    while (!CPU_ISSET(core, &allowed) || skip-- > 0)
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    memcpy(&after, &one, sizeof(after));
    cs_bench_unpin(&after);
    return before;
}

int cs_bench_core(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) != 1)
        return -1;
    int core = 0;
    while (!CPU_ISSET(core, &allowed))
        core++;
    return core;
}

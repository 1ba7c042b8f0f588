#include "calib/bench/wire/core-count.h"

#include "calib/bench/device/cores.h"

#include <stdlib.h>

static cs_core_count count(const cs_wire *wire, const double *cores)
{
    cs_core_count found = {0};
    for (uint32_t i = 0; i < wire->size; i++) {
        bool is_new = true, shares = false;
        for (uint32_t k = 0; k < wire->size; k++) {
            /* Simulated nodes have the same cores. */
            bool same = k != i && cores[i] == cores[k] &&
                        (wire->pretended || wire->nodes[i] == wire->nodes[k]);
            is_new &= !(same && k < i);
            shares |= same;
        }
        found.cores += is_new;
        found.sharing += shares;
    }
    return found;
}

cs_status cs_count_cores(const cs_wire *wire, cs_core_count *found, cs_error *error)
{
    const int core = cs_bench_core();
    double *cores = calloc(wire->size + UINT64_C(1), sizeof(*cores));
    if (!cores)
        return cs_error_no_memory(error);
    cores[wire->rank] = core;
    cores[wire->size] = core < 0; /* 1 if any process is not bound to one core */
    cs_status status = cs_wire_largest(wire, cores, wire->size + 1, error);
    *found = (cs_core_count){0};
    if (status == CS_OK && cores[wire->size] == 0)
        *found = count(wire, cores);
    free(cores);
    return status;
}

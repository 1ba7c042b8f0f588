#include "sim/core/lower/measured.h"

const cs_measured_collective *cs_measured_find(const cs_measured_collectives *measured,
                                               cs_kind kind, bool network, uint32_t ranks)
{
    for (uint32_t i = 0; measured && i < measured->n; i++) {
        const cs_measured_collective *at = &measured->entries[i];
        if (at->kind == kind && at->network == network && at->ranks == ranks)
            return at;
    }
    return NULL;
}

cs_status cs_measured_time(const cs_measured_collective *entry, int64_t bytes, cs_time *time,
                           cs_error *error)
{
    uint32_t i = entry->n_regimes - 1;
    while (i > 0 && entry->regimes[i].from > bytes)
        i--;
    const cs_measured_regime *regime = &entry->regimes[i];
    if (cs_time_from_seconds(regime->alpha + regime->beta * (double)bytes, time))
        return CS_OK;
    return cs_error_add(error, CS_OVERFLOW, "a collective takes 2^63 ps or more");
}

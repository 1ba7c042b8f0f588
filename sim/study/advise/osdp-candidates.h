/* OSDP's plans as candidates: some layers, or parts of them, are replicated and the others sharded.
 *
 * For each way to split and recompute layers without a pipeline, without several micro-batches, and
 * without experts on separate places, OSDP's cost model (sim/run/osdp.h) proposes plans for a
 * series of memory limits. These plans are simulated, and the fastest one that fits becomes a
 * candidate. Plans with all layers replicated, or all sharded, are not added, because they are the
 * candidates of zero 0 and 3. Layers may be cut into 4 parts; the simulation gathers all sharded
 * parts of a layer at once. */
#ifndef CS_ADVISE_OSDP_CANDIDATES_H
#define CS_ADVISE_OSDP_CANDIDATES_H

#include "sim/study/advise/bounds.h"

/* Adds the plans, unless the section excludes OSDP or one of the ZeRO stages 0 and 3, or the
 * scenario has rules of its own. Errors: CS_LIMIT, CS_NO_MEMORY, CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_osdp_candidates_add(const cs_advise_base *base, const cs_bounds *bounds,
                                               const cs_progress *progress,
                                               cs_candidates *candidates, cs_error *error);

#endif

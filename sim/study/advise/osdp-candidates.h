/* OSDP's plans as candidates: some layers, or parts of them, are replicated and the others sharded.
 *
 * For each way to divide layers and to recompute that has neither a pipeline nor several
 * micro-batches nor experts on places of their own, OSDP's cost model (sim/run/osdp.h) proposes
 * plans for limits of its own, which are simulated; the fastest one that fits is a candidate. Plans
 * that have all layers replicated, or all sharded, are the candidates of zero 0 and 3 and not added
 * again. Layers may be cut into 4 parts; the simulation gathers the sharded ones of a layer at
 * once. */
#ifndef CS_ADVISE_OSDP_CANDIDATES_H
#define CS_ADVISE_OSDP_CANDIDATES_H

#include "sim/study/advise/bounds.h"

/* Adds them, unless the section leaves out OSDP or one of the stages 0 and 3, or the scenario has
 * rules of its own. CS_LIMIT, CS_NO_MEMORY, CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_osdp_candidates_add(const cs_advise_base *base, const cs_bounds *bounds,
                                               const cs_progress *progress,
                                               cs_candidates *candidates, cs_error *error);

#endif

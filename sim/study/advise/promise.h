/* A rule of thumb for the time and memory of a candidate, which decides what is simulated early. It
 * proves nothing, and no answer depends on it.
 *
 * All stages take as long as the slowest of equal layers, and passes follow each other in the
 * schedule's order. Weights and gradients go once around the ring of places that share them. At
 * ZeRO stages 0 and 1 they overlap with one micro-batch, and the rest is added; at stages 2 and 3
 * they overlap with each micro-batch. */
#ifndef CS_ADVISE_PROMISE_H
#define CS_ADVISE_PROMISE_H

#include "sim/study/advise/bounds.h"

/* Estimates a candidate from a price of the same model; `platform` may be NULL. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_promise_make(const cs_advise_base *base, const cs_candidate *candidate,
                                        const cs_pass_order *order, const cs_priced *like,
                                        const cs_platform *platform, cs_promise *promise,
                                        cs_error *error);

#endif

/* Lower bounds of a candidate's time and memory, by which it may be left out unseen.
 *
 * A bound is of the simulation, not of the machine. Candidates that have the same mesh, stages and
 * micro-batches, but other schedules, numbers of micro-batches or ZeRO stages, compute the same
 * passes: one micro-batch is simulated for all of them, without ZeRO. From it come f_s and b_s,
 * what stage s takes for a forward and a backward, from when all of its devices have begun to the
 * end of the last computation of the first one: with the exchanges within layers in between, which
 * are delays that depend on nothing else, and without /platform/slowdown. (Where the scenario asks
 * for "fidelity": "flow" they are not, and where its rules divide some layers a pass has more
 * exchanges with the last micro-batch: then computations alone count.) A device does one pass at a
 * time (schedules/program.h), so that no pass takes less in any of the candidates: the halves of a
 * backward that is split compute as much as the whole, with the same exchanges. Rank r of P holds
 * the stages r, r + P, ..., or r and 2 P - 1 - r in the V of zb_v and dualpipe_v; x_r is the sum of
 * their f_s + b_s.
 *
 *   T  time >= max over r of (f_0 + ... + f_(r-1)) + M x_r + (b_0 + ... + b_(r-1)).
 *      The first pass of rank r is the forward of stage r, which follows those of all stages before.
 *      Behind its last backward come those of the same micro-batch on the stages before; this sum is left
 *      out for zb_h1, zb_h2, zb_v and dualpipe_v, whose weight gradients come last.
 *   M  peak >= max over r of S_r + the sum of n_s k_s over the stages s of rank r.
 *      S_r are the weights, gradients and optimizer states that rest on a device of rank r, k_s what
 *      stage s keeps of a micro-batch, and n_s how many forwards of it the schedule has rank r do before
 *      anything of them may be freed: 1 without a pipeline; M in gpipe; min(P - s, M) in 1f1b; min(P,
 *      M) in zb_h1, min(2 P - 1, M) in zb_h2; in interleaved_1f1b with v stages and g micro-batches in the
 *      first group, g of the first v - 1 stages and min(2 (P - 1 - r) + 1, g) of the last. In zb_v,
 *      min(2 P - 1 - r, M) of stage r and min(r + 1, M) of the other: in front of its first
 *      backward a rank does 2 (P - r) - 1 forwards of the first, r of either in turn, and one more
 *      of the second. In dualpipe_v, 2 P - r and r + 1: behind its warm-up, which has 2 (P - 1 - r)
 *      + r + 1 forwards of the first stage, as many of the second as backwards of it but for r + 1,
 *      and no backward of the first, the rank does another forward of the first before anything is
 *      freed. Where rules or another planner decide for single layers what is divided, S_r is what
 *      there is if all were.
 *
 * Both are rounded down by a millionth: sums of doubles are off by less, and S_r by rounding shares
 * of layers to bytes.
 */
#ifndef CS_ADVISE_BOUNDS_H
#define CS_ADVISE_BOUNDS_H

#include "sim/advise/candidates.h"
#include "sim/base/progress.h"
#include "sim/team/team.h"

/* What processes of a team share, in this order. */
typedef enum cs_advise_stage {
    CS_ADVISE_PRICING,
    CS_ADVISE_SEARCHING,
    CS_ADVISE_EXAMINING
} cs_advise_stage;

/* A stage on a device; sizes in bytes, times in s. */
typedef struct cs_stage_price {
    double forward, backward; /* f, b */
    double dense, expert;     /* weights; of one place, nothing divided over others */
    double gradients, frozen, cast, kept;
} cs_stage_price;

/* What candidates with the same mesh, stages and micro-batches have in common. */
typedef struct cs_priced {
    bool possible;   /* else the model, the mesh or the platform refuses it */
    const char *why; /* then the message */
    uint32_t n_stages;
    cs_stage_price *stages; /* the caller's, to free */
    double computing;       /* of all stages, for a micro-batch on one place: s */
    double gradient_ratio, optimizer_ratio;
    bool wide_shards; /* see cs_states */
    cs_scenario
        *scenario; /* the caller's, to finish and free, of that micro-batch; NULL: not kept */
} cs_priced;

/* A platform of so many devices; the scenario owns it. */
typedef struct cs_devices_platform {
    uint32_t devices;
    cs_scenario scenario;
} cs_devices_platform;

typedef struct cs_bounds {
    uint32_t n_priced;
    cs_priced *priced;
    uint32_t *model;       /* per price: the first one of the same model, whose scenario is kept */
    uint32_t *of;          /* per candidate: which of them */
    double *time, *memory; /* per candidate: s, bytes */
    cs_scenario whole;     /* the scenario itself, without a plan */
    int64_t capacity;      /* of the device with most memory; INT64_MAX: unlimited */
    uint32_t n_platforms;  /* one per number of devices, as far as a plan on them can be read */
    cs_devices_platform *platforms;
    cs_arena arena;
} cs_bounds;

void cs_bounds_finish(cs_bounds *bounds);

/* Of all candidates, in `jobs` threads, and with the processes of a team, if it is not NULL: those
 * that help get what cs_bounds_read takes, but no bounds. CS_NO_MEMORY, CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_bounds_find(const cs_advise_base *base, const cs_candidates *candidates,
                                       uint32_t jobs, cs_team *team, const cs_progress *progress,
                                       cs_bounds *bounds, cs_error *error);

/* Prices the stages of a candidate. CS_INVALID and others where it is refused. `parts` as for
 * cs_scenario_read_brief. */
CS_MUST_CHECK cs_status cs_bounds_price(const cs_advise_base *base, const cs_candidate *candidate,
                                        const cs_scenario_parts *parts, const cs_progress *progress,
                                        cs_priced *priced, cs_error *error);

/* Accepts a zeroed one. */
void cs_priced_finish(cs_priced *priced);

/* Reads the scenario of candidate i, with the platform and the model that others have as well; it
 * must not live longer than the bounds. */
CS_MUST_CHECK cs_status cs_bounds_read(const cs_advise_base *base, const cs_candidates *candidates,
                                       const cs_bounds *bounds, uint32_t i,
                                       const cs_progress *progress, cs_scenario *scenario,
                                       cs_error *error);

/* T and M of one candidate. */
double cs_bound_time(const cs_candidate *candidate, const cs_priced *priced);
double cs_bound_memory(const cs_advise_base *base, const cs_candidate *candidate,
                       const cs_priced *priced);

#endif

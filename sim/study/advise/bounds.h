/* Lower bounds of a candidate's time and memory, by which it may be left out unseen.
 *
 * A bound is of the simulation, not of the machine. Candidates that have the same stages and
 * micro-batches, but other schedules, numbers of micro-batches or ZeRO stages, compute the same
 * passes: one micro-batch is simulated for all of them, without ZeRO. They must also have the same
 * mesh, as the place of a stage may change how long exchanges within layers take; except where
 * layers are divided over blocks of devices that are all joined alike, each by links of its own, and
 * no layers share weights. From it come f_s and b_s,
 * what stage s takes for a forward and a backward, from when all of its devices have begun to the
 * end of the last computation of the first one: with the exchanges within layers in between, which
 * are delays that depend on nothing else, and without /platform/slowdown. (Where the scenario asks
 * for "fidelity": "flow" they are not, and where its rules divide some layers a pass has more
 * exchanges with the last micro-batch: then computations alone count.) A device does one pass at a
 * time (schedules/program.h), so that no pass takes less in any of the candidates: the halves of a
 * backward that is split compute as much as the whole, with the same exchanges. Rank r holds stage r
 * and perhaps later ones, as the schedule says; x_r is the sum of their f_s + b_s.
 *
 *   T  time >= max over r of (f_0 + ... + f_(r-1)) + M x_r + (b_0 + ... + b_(r-1)).
 *      The first pass of rank r is the forward of stage r, which follows those of all stages before.
 *      Behind its last backward come those of the same micro-batch on the stages before; this sum is left
 *      out where backwards are split, as gradients of weights may come last.
 *   M  peak >= max over r of S_r + the sum of n_s k_s over the stages s of rank r.
 *      S_r are the weights, gradients and optimizer states that rest on a device of rank r, k_s what
 *      stage s keeps of a micro-batch, and n_s how many forwards of it the rank has done, and no
 *      backward, when it has most of them (pass-order.h). Where rules or another planner decide for single
 *      layers what is divided, S_r is what there is if all were.
 *
 * Before a candidate is simulated, both are raised by its whole order of passes: the longest path
 * through all passes, each of f_s or b_s, and the messages between them, each alone on its way; and
 * the largest activations of a rank at any point of its order. A backward that is split takes at most the
 * gradients of weights of its stage in one half, and the rest of b_s in the other.
 *
 * With gradients or weights divided over replicas, at ZeRO stages 2 and 3 in pipelines, passes take
 * longer: they wait for weights that are gathered, and for gradients that are scattered. Before a
 * candidate of them is simulated, one micro-batch is simulated at its own ZeRO stage. Let d be the
 * first device of rank r. y_r is the longest path through the computations and exchanges of d for
 * that micro-batch, without messages between stages. q_s is the sum of the times of stage s's
 * scatters. All steps of a pass follow what d did in the pass before (schedules/program.h), so that y_r
 * is the sum of its passes' own longest paths, and a pass takes at least that long in whatever
 * order. Where a backward is divided, the path through the whole one is at most those through its
 * two halves: gathers are in the one, scatters in the other, and either half has the computations
 * that lead past what it lacks. Sums of gradients that only the last micro-batch has count as no
 * time. Scatters of one stage follow each other.
 *
 *   T  time >= max over r of M y_r + (b_0 + ... + b_(r-1)), M q_s for the stages s of r, and
 *      (f_0 + ... + f_(r-1)) + x_r + (M - 1) y_r + (b_0 + ... + b_(r-1)): the first pass may have
 *      gathered its weights while it waited for its message.
 *
 * It is left out where weights stay gathered between passes, or gradients are summed whole, and
 * where collectives are no delays or rules divide some layers.
 *
 * Both are rounded down by a millionth: sums of doubles are off by less, and S_r by rounding shares
 * of layers to bytes.
 *
 * Simulating a micro-batch takes milliseconds. Before it, candidates have rough bounds. These need
 * one micro-batch per model, with any pipeline. From it come C, what all stages compute for
 * a micro-batch, S and K, what all stages together hold and keep. A rank's x_r, S_r and k_s are not
 * known, only their sums: the rough bounds are the least that T and M can be for any cut of the
 * model into stages.
 *
 *   T  M C / P: one rank computes at least the mean. If each rank has one stage and backwards are
 *      whole, the bound T of rank r is x_0 + ... + x_(r-1) + M x_r, so that x_r <= (T - x_0 - ... -
 *      x_(r-1)) / M for all r: then all x_r add up to T (1 - (1 - 1 / M)^P) at most, and T >=
 *      C / (1 - (1 - 1 / M)^P).
 *   M  With n_r the least n_s of rank r: the mean over ranks is (S + min n_r K) / P; and from
 *      S_r + n_r K_r <= M follows S / max n_r + K <= M (1 / n_0 + ... + 1 / n_(P-1)).
 */
#ifndef CS_ADVISE_BOUNDS_H
#define CS_ADVISE_BOUNDS_H

#include "sim/base/pool.h"
#include "sim/base/progress.h"
#include "sim/study/advise/pass-order.h"

/* What processes of a team share, in this order. */
typedef enum cs_advise_stage { CS_ADVISE_SEARCHING, CS_ADVISE_EXAMINING } cs_advise_stage;

/* Times of a micro-batch at ZeRO stage 2 or 3, which candidates have in common that are at the same
 * stage and places, and have the same stages and micro-batches. */
typedef struct cs_sharded_price {
    uint64_t saves;            /* passes that need not be simulated if it is known, about */
    bool known;                /* it was priced, */
    uint32_t ranks;            /* number of pipeline ranks; 0: the price gives no bound */
    double *passes, *scatters; /* y and the largest q of each rank: s; the caller frees the first */
} cs_sharded_price;

/* Prices of candidates with the same stages and micro-batches. */
typedef struct cs_priced {
    bool known;      /* else it was not priced yet, and all else is zero */
    bool possible;   /* else the model, the mesh or the platform refuses it */
    const char *why; /* then the message */
    uint32_t n_stages;
    cs_stage_price *stages; /* the caller's, to free */
    double computing;       /* of all stages, for a micro-batch on one place: s */
    double gradient_ratio, optimizer_ratio;
    bool wide_shards; /* see cs_states */
    bool additive;    /* no cut of the model into stages has less than the sums of these stages */
    cs_scenario
        *scenario; /* the caller's, to finish and free, of that micro-batch; NULL: not kept */
} cs_priced;

/* A platform of so many devices; the scenario owns it. */
typedef struct cs_devices_platform {
    uint32_t devices;
    cs_price_memory *memory; /* remembers costs of collectives on it */
    cs_scenario scenario;
} cs_devices_platform;

/* Over how many neighbouring devices layers can be divided so that exchanges take the same wherever
 * these are: blocks of this size, which begin at its multiples, are joined alike and apart. */
enum { CS_BLOCKS_MAX = 16 };
typedef struct cs_even_blocks {
    uint32_t n, sizes[CS_BLOCKS_MAX];
} cs_even_blocks;

/* Numbers what candidates have in common. */
typedef struct cs_numbering {
    bool (*same)(const cs_candidate *a, const cs_candidate *b, const cs_even_blocks *even);
    uint32_t (*hash)(const cs_candidate *c, const cs_even_blocks *even);
    cs_even_blocks even;
    uint32_t *first, *hashed, *next; /* chains with one hash */
    uint32_t n;
} cs_numbering;

/* The likely time and memory of a candidate (promise.h): s, bytes; a time of 0: not known. */
typedef struct cs_promise {
    double time, memory;
} cs_promise;

typedef struct cs_bounds {
    uint32_t n; /* candidates that have bounds: the first ones */
    cs_even_blocks blocks;
    cs_numbering models, prices, meshes, order_numbers, sharded_numbers;
    cs_sharded_price *sharded;   /* per number */
    uint32_t *sharded_of;        /* per candidate; CS_NO_CANDIDATE: none is of use */
    cs_pass_order *orders;       /* per order of passes */
    uint32_t *order_of;          /* per candidate: which one */
    bool *followed;              /* per candidate: cs_bounds_follow was called */
    cs_priced *priced;           /* per price */
    uint32_t *model;             /* per price: the first one of the same model */
    uint32_t *first_candidate;   /* per price: one of its candidates, which are linked by */
    uint32_t *next_candidate;    /* per candidate; CS_NO_CANDIDATE after the last one */
    uint32_t *of;                /* per candidate: which price */
    double *time, *memory;       /* per candidate: s, bytes; rough ones until its price is known */
    cs_promise *promises;        /* per candidate, once its model has a price */
    struct cs_mesh_notes *notes; /* differences between places of meshes */
    cs_scenario whole;           /* the scenario itself, without a plan */
    int64_t capacity;            /* memory of the largest device; INT64_MAX: unlimited */
    bool equal_speeds;           /* all devices are equally fast */
    uint32_t n_platforms; /* one per number of devices, as far as a plan on them can be read */
    cs_devices_platform *platforms;
    cs_arena arena;
} cs_bounds;

enum { CS_NO_CANDIDATE = UINT32_MAX };

void cs_bounds_finish(cs_bounds *bounds);

/* Bounds of 0 for all candidates: nothing is priced yet. CS_NO_MEMORY, and others for the scenario
 * itself. */
CS_MUST_CHECK cs_status cs_bounds_begin(const cs_advise_base *base, const cs_candidates *candidates,
                                        cs_bounds *bounds, cs_error *error);

/* Adds candidates that were made since; known bounds stay. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_bounds_extend(const cs_candidates *candidates, cs_bounds *bounds,
                                         cs_error *error);

/* Prices a point, a price or one of cs_bounds_sharded_point, on behalf of a pool, in any of several
 * threads: fills the item. The first price of
 * a model is priced before the others of it, which take the model from it. */
void cs_bounds_work(const cs_advise_base *base, const cs_candidates *candidates,
                    const cs_bounds *bounds, uint32_t point, const cs_progress *progress,
                    cs_pool_item *item);

/* Takes the result of the work, in the thread that owns the bounds, and sets the bounds of all
 * candidates with that price. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_bounds_collect(const cs_advise_base *base,
                                          const cs_candidates *candidates, cs_bounds *bounds,
                                          uint32_t point, const cs_pool_item *item,
                                          cs_error *error);

/* The point of the price at candidate i's own ZeRO stage, for the same work; CS_NO_CANDIDATE: it is
 * known, or costs more than it saves. */
uint32_t cs_bounds_sharded_point(const cs_bounds *bounds, uint32_t i);

/* Lists prices that are not known yet: the first one of each model, or all others. The caller frees
 * the list. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_bounds_list_prices(const cs_bounds *bounds, bool firsts,
                                              uint32_t **prices, uint32_t *n, cs_error *error);

/* Prices them in `jobs` threads. CS_NO_MEMORY, CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_bounds_price_some(const cs_advise_base *base,
                                             const cs_candidates *candidates,
                                             const uint32_t *prices, uint32_t n, uint32_t jobs,
                                             const cs_progress *progress, cs_bounds *bounds,
                                             cs_error *error);

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

/* The scenario of a candidate with the parts that its platform and network lend it. */
cs_scenario_parts cs_bounds_parts(const cs_bounds *bounds, const cs_candidate *candidate);

/* Raises the bounds of a candidate with a price by the longest path through all of its passes. */
CS_MUST_CHECK cs_status cs_bounds_follow(const cs_advise_base *base,
                                         const cs_candidates *candidates, cs_bounds *bounds,
                                         uint32_t i, cs_error *error);

const cs_pass_order *cs_bounds_order(const cs_bounds *bounds, uint32_t i);

/* The bytes of a stage that rest on one place, with the shards that the mesh makes
 * (sim/run/scenario/build-mesh.c, settle_shards). */
double cs_resting(const cs_advise_base *base, const cs_candidate *candidate,
                  const cs_priced *priced, const cs_stage_price *stage);

/* T and M of one candidate, without the longest path. */
double cs_bound_time(const cs_candidate *candidate, const cs_pass_order *order,
                     const cs_priced *priced);
double cs_bound_memory(const cs_advise_base *base, const cs_candidate *candidate,
                       const cs_pass_order *order, const cs_priced *priced);

/* Lower bounds of the same, from another price of the same model. */
double cs_rough_time(const cs_candidate *candidate, const cs_pass_order *order,
                     const cs_priced *like);
double cs_rough_memory(const cs_advise_base *base, const cs_candidate *candidate,
                       const cs_pass_order *order, const cs_priced *like);

#endif

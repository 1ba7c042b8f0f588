/* Lower bounds of a candidate's time and memory, used to prune it without simulating it.
 *
 * The bounds limit the result of the simulation, not of a real machine. Candidates with the same
 * stages and micro-batches, but other schedules, numbers of micro-batches or ZeRO stages, compute
 * the same passes, so one micro-batch is simulated for all of them, without ZeRO. They must also
 * have the same mesh, because the devices of a stage may affect the time of exchanges within
 * layers. The mesh does not matter if layers are split over blocks of devices that are all
 * connected equally, each by its own links, and no layers share weights.
 *
 * This simulation gives f_s and b_s, the times of stage s for a forward and a backward: from the
 * time when all of its devices have begun to the end of its first device's last computation. They
 * include the exchanges within layers, which are delays that depend on nothing else, and exclude
 * /platform/slowdown. (Only computations count if the scenario asks for "fidelity": "flow", because
 * exchanges are no delays then, or if its rules shard some layers, because then a pass has more
 * exchanges with the last micro-batch.) A device does one pass at a time (schedules/program.h), so
 * no pass takes less in any of the candidates: the halves of a split backward compute as much as
 * the whole, with the same exchanges. Rank r holds stage r and perhaps later ones, as the schedule
 * says; x_r is the sum of f_s + b_s over its stages.
 *
 *   T  time >= max over r of (f_0 + ... + f_(r-1)) + M x_r + (b_0 + ... + b_(r-1)).
 *      The first pass of rank r is the forward of stage r, which follows the forwards of all
 *      earlier stages. After its last backward come the same micro-batch's backwards on the earlier
 *      stages; this sum is left out if backwards are split, because gradients of weights may come
 *      last.
 *   M  peak >= max over r of S_r + the sum of n_s k_s over the stages s of rank r.
 *      S_r is the bytes of weights, gradients and optimizer states stored on a device of rank r,
 *      k_s the saved activations of stage s per micro-batch, and n_s the number of its forwards
 *      without a backward at the time when the rank has the most activations (pass-order.h). If
 *      rules or another planner decide the sharding of single layers, S_r assumes that all are
 *      sharded.
 *
 * Before a candidate is simulated, both bounds are raised by its whole order of passes: the longest
 * path through all passes, each of f_s or b_s, and the messages between them, each alone on its
 * route; and the largest activations of a rank at any point of its order. One half of a split
 * backward takes at most the time of its stage's gradients of weights, the other half the rest of
 * b_s.
 *
 * If gradients or weights are sharded over replicas, at ZeRO stages 2 and 3 in pipelines, passes
 * take longer, because they wait for gathered weights and for scattered gradients. Before such a
 * candidate is simulated, one micro-batch is simulated at its own ZeRO stage. Let d be the first
 * device of rank r. y_r is the longest path through the computations and exchanges of d for that
 * micro-batch, without messages between stages. q_s is the total time of stage s's scatters. All
 * steps of a pass follow the previous pass of d (schedules/program.h), so y_r is the sum of the
 * longest paths of its passes, and a pass takes at least that long in any order. If a backward is
 * split, the path through the whole backward is at most the paths through its two halves: one has
 * the gathers, the other the scatters, and each has the computations that lead past the exchanges
 * that it lacks. Sums of gradients that only the last micro-batch has count as no time. The
 * scatters of one stage follow each other.
 *
 *   T  time >= max over r of M y_r + (b_0 + ... + b_(r-1)), M q_s for the stages s of r, and
 *      (f_0 + ... + f_(r-1)) + x_r + (M - 1) y_r + (b_0 + ... + b_(r-1)): the first pass may have
 *      gathered its weights while it waited for its message.
 *
 * This bound is not used if weights stay gathered between passes, if full gradients are
 * accumulated, if collectives are not delays, or if rules shard some layers.
 *
 * All bounds are rounded down by a millionth, which exceeds the errors of sums of doubles, and of
 * S_r from rounding shards of layers to bytes.
 *
 * Simulating a micro-batch takes milliseconds. Before that, candidates have rough bounds. These
 * need one micro-batch per model, with any pipeline. It gives C, the computing time of all stages
 * for a micro-batch, and S and K, the stored bytes and saved activations of all stages together.
 * Only the sums of x_r, S_r and k_s over the ranks are known, so the rough bounds are the smallest
 * possible T and M for any partition of the model into stages.
 *
 *   T  M C / P: one rank computes at least the mean. If each rank has one stage and backwards are
 *      whole, the bound T of rank r is x_0 + ... + x_(r-1) + M x_r, so x_r <= (T - x_0 - ... -
 *      x_(r-1)) / M for all r. Then the sum of all x_r is at most T (1 - (1 - 1 / M)^P), and T >=
 *      C / (1 - (1 - 1 / M)^P).
 *   M  With n_r the smallest n_s of rank r, the mean over ranks is (S + min n_r K) / P; and
 *      S_r + n_r K_r <= M implies S / max n_r + K <= M (1 / n_0 + ... + 1 / n_(P-1)).
 */
#ifndef CS_ADVISE_BOUNDS_H
#define CS_ADVISE_BOUNDS_H

#include "sim/base/pool.h"
#include "sim/base/progress.h"
#include "sim/study/advise/pass-order.h"

/* Kinds of work that the processes of a team share, in this order. */
typedef enum cs_advise_stage { CS_ADVISE_SEARCHING, CS_ADVISE_EXAMINING } cs_advise_stage;

/* Times of a micro-batch at ZeRO stage 2 or 3. Candidates with the same ZeRO stage, places, stages
 * and micro-batches share them. */
typedef struct cs_sharded_price {
    /* approximate number of passes that need not be simulated if the price is known */
    uint64_t saves;
    bool known;     /* whether it has been priced */
    uint32_t ranks; /* number of pipeline ranks; 0: the price gives no bound */
    /* y and the largest q of each rank, s; the caller frees `passes`, which owns both */
    double *passes, *scatters;
} cs_sharded_price;

/* Prices that candidates with the same stages and micro-batches share. */
typedef struct cs_priced {
    bool known;      /* whether it has been priced; if not, everything else is zero */
    bool possible;   /* whether the model, the mesh and the platform accept it */
    const char *why; /* error message, if the price is not possible */
    uint32_t n_stages;
    cs_stage_price *stages; /* prices of the stages; the caller frees them */
    double computing;       /* computing time of all stages for a micro-batch on one place, s */
    double gradient_ratio, optimizer_ratio;
    bool wide_shards; /* whether shards are wide, see cs_states */
    /* whether every partition of the model into stages has at least the sums of these stages */
    bool additive;
    /* scenario of that micro-batch, which the caller finishes and frees; NULL: not kept */
    cs_scenario *scenario;
} cs_priced;

/* A platform with this number of devices; the scenario owns it. */
typedef struct cs_devices_platform {
    uint32_t devices;
    cs_price_memory *memory; /* cache of the costs of collectives on this platform */
    cs_scenario scenario;
} cs_devices_platform;

/* Numbers of neighbouring devices over which layers can be split so that exchanges take the same
 * time on all of them: blocks of these sizes, which begin at multiples of the size, are connected
 * equally, each by its own links. */
enum { CS_BLOCKS_MAX = 16 };
typedef struct cs_even_blocks {
    uint32_t n, sizes[CS_BLOCKS_MAX];
} cs_even_blocks;

/* Numbers groups of candidates that have something in common. */
typedef struct cs_numbering {
    bool (*same)(const cs_candidate *a, const cs_candidate *b, const cs_even_blocks *even);
    uint32_t (*hash)(const cs_candidate *c, const cs_even_blocks *even);
    cs_even_blocks even;
    uint32_t *first, *hashed, *next; /* candidate of each number; hash chains of the numbers */
    uint32_t n;
} cs_numbering;

/* Estimated time (s) and memory (bytes) of a candidate (promise.h); time 0: unknown. */
typedef struct cs_promise {
    double time, memory;
} cs_promise;

typedef struct cs_bounds {
    uint32_t n; /* number of candidates that have bounds: the first ones */
    cs_even_blocks blocks;
    cs_numbering models, prices, meshes, order_numbers, sharded_numbers;
    cs_sharded_price *sharded; /* prices at ZeRO stages, by number of sharded_numbers */
    /* per candidate: its entry in `sharded`; CS_NO_CANDIDATE: none is useful */
    uint32_t *sharded_of;
    cs_pass_order *orders; /* orders of passes, by number of order_numbers */
    uint32_t *order_of;    /* per candidate: its entry in `orders` */
    bool *followed;        /* per candidate: whether cs_bounds_follow has been called */
    cs_priced *priced;     /* prices, by number of `prices` */
    uint32_t *model;       /* per price: first price with the same model */
    /* per price: head of the list of its candidates, which next_candidate links */
    uint32_t *first_candidate;
    uint32_t *next_candidate; /* per candidate: next one with its price; CS_NO_CANDIDATE: none */
    uint32_t *of;             /* per candidate: its entry in `priced` */
    /* per candidate: bounds in s and bytes; rough bounds until its price is known */
    double *time, *memory;
    cs_promise *promises;        /* per candidate: estimate, set when its model has a price */
    struct cs_mesh_notes *notes; /* differences between places of meshes */
    cs_scenario whole;           /* the scenario itself, without a plan */
    int64_t capacity;            /* memory of the largest device; INT64_MAX: unlimited */
    bool equal_speeds;           /* whether all devices are equally fast */
    uint32_t n_platforms;        /* one platform per number of devices that has a readable plan */
    cs_devices_platform *platforms;
    cs_arena arena;
} cs_bounds;

enum { CS_NO_CANDIDATE = UINT32_MAX };

void cs_bounds_finish(cs_bounds *bounds);

/* Sets all bounds to 0; nothing is priced yet. CS_NO_MEMORY, or an error of the scenario itself. */
CS_MUST_CHECK cs_status cs_bounds_begin(const cs_advise_base *base, const cs_candidates *candidates,
                                        cs_bounds *bounds, cs_error *error);

/* Adds candidates made since the last call; known bounds stay. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_bounds_extend(const cs_candidates *candidates, cs_bounds *bounds,
                                         cs_error *error);

/* Prices a point (a price, or a result of cs_bounds_sharded_point) for a pool, in any of several
 * threads, and fills the item. A model's first price must be known before its other prices, which
 * use its model. */
void cs_bounds_work(const cs_advise_base *base, const cs_candidates *candidates,
                    const cs_bounds *bounds, uint32_t point, const cs_progress *progress,
                    cs_pool_item *item);

/* Stores the result of cs_bounds_work, in the thread that owns the bounds, and sets the bounds of
 * all candidates with this price. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_bounds_collect(const cs_advise_base *base,
                                          const cs_candidates *candidates, cs_bounds *bounds,
                                          uint32_t point, const cs_pool_item *item,
                                          cs_error *error);

/* Returns the point for the price at candidate i's own ZeRO stage; CS_NO_CANDIDATE if it is known
 * already, or costs more than it saves. */
uint32_t cs_bounds_sharded_point(const cs_bounds *bounds, uint32_t i);

/* Lists prices that are not known yet: the first price of each model, or all others. The caller
 * frees the list. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_bounds_list_prices(const cs_bounds *bounds, bool firsts,
                                              uint32_t **prices, uint32_t *n, cs_error *error);

/* Computes these prices in `jobs` threads. CS_NO_MEMORY, CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_bounds_price_some(const cs_advise_base *base,
                                             const cs_candidates *candidates,
                                             const uint32_t *prices, uint32_t n, uint32_t jobs,
                                             const cs_progress *progress, cs_bounds *bounds,
                                             cs_error *error);

/* Prices the stages of a candidate. `parts` as for cs_scenario_read_brief. CS_INVALID or another
 * error if the candidate is rejected. */
CS_MUST_CHECK cs_status cs_bounds_price(const cs_advise_base *base, const cs_candidate *candidate,
                                        const cs_scenario_parts *parts, const cs_progress *progress,
                                        cs_priced *priced, cs_error *error);

/* Allowed on a zeroed struct. */
void cs_priced_finish(cs_priced *priced);

/* Reads the scenario of candidate i, which shares platform and model with others; the bounds must
 * outlive it. */
CS_MUST_CHECK cs_status cs_bounds_read(const cs_advise_base *base, const cs_candidates *candidates,
                                       const cs_bounds *bounds, uint32_t i,
                                       const cs_progress *progress, cs_scenario *scenario,
                                       cs_error *error);

/* Returns the parts that a candidate's scenario shares with others: platform and network. */
cs_scenario_parts cs_bounds_parts(const cs_bounds *bounds, const cs_candidate *candidate);

/* Raises the bounds of a priced candidate by the longest path through all of its passes. */
CS_MUST_CHECK cs_status cs_bounds_follow(const cs_advise_base *base,
                                         const cs_candidates *candidates, cs_bounds *bounds,
                                         uint32_t i, cs_error *error);

const cs_pass_order *cs_bounds_order(const cs_bounds *bounds, uint32_t i);

/* Returns the bytes of a stage that are stored on one place, with the shards of the mesh
 * (sim/run/scenario/build-mesh.c, settle_shards). */
double cs_resting(const cs_advise_base *base, const cs_candidate *candidate,
                  const cs_priced *priced, const cs_stage_price *stage);

/* Return bounds T and M of one candidate, without the longest path. */
double cs_bound_time(const cs_candidate *candidate, const cs_pass_order *order,
                     const cs_priced *priced);
double cs_bound_memory(const cs_advise_base *base, const cs_candidate *candidate,
                       const cs_pass_order *order, const cs_priced *priced);

/* Return rough bounds of one candidate, from another price of the same model. */
double cs_rough_time(const cs_candidate *candidate, const cs_pass_order *order,
                     const cs_priced *like);
double cs_rough_memory(const cs_advise_base *base, const cs_candidate *candidate,
                       const cs_pass_order *order, const cs_priced *like);

#endif

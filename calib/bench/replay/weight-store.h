/* The weights of a stage at one place of a grid, with their gradients and optimizer states: whole,
 * or a share (schedules/states.h).
 *
 * A unit is a run of layers that are gathered or summed together. Each unit has first the
 * parameters that are also summed over the tensor axis, then all others; each of these two regions
 * is divided into equal shares. Numbers are float32. Memory comes from the trainer's pool and is
 * allocated and freed as in the plan:
 *   weights    whole; with zero 3 the share
 *   gathered   with zero 3, from the gather of a unit to its release
 *   gradients  whole; the share if they are scattered after each micro-batch
 *   scattered  in this case, whole, from the start of a unit's backward until they are scattered
 *   states     of the share
 */
#ifndef CS_CALIB_WEIGHT_STORE_H
#define CS_CALIB_WEIGHT_STORE_H

#include "calib/bench/train/trainer.h"
#include "calib/bench/wire/wire.h"
#include "schedules/states.h"

enum { CS_STORE_REGIONS = 2 }; /* parameters also summed over the tensor axis, and others */

typedef struct cs_store_unit {
    uint32_t first_layer, end_layer, first_op, end_op;
    cs_weights planned;                                        /* bytes in the plan */
    int64_t sizes[CS_STORE_REGIONS], shares[CS_STORE_REGIONS]; /* numbers */
    cs_block weights, gathered, gradients, scattered, states;
} cs_store_unit;

typedef struct cs_store {
    cs_trainer *trainer;
    cs_wire *wire;
    cs_part *part;     /* a bare part; its places are set here */
    int64_t *offsets;  /* per operator of the part: offset in its unit */
    uint32_t *unit_of; /* per operator of the part: its unit */
    uint32_t n_units;
    cs_store_unit *units;  /* in the order of the layers */
    uint32_t shards, rank; /* number of shares; share of this place */
    uint32_t zero;         /* 0 if nothing is divided */
    bool scatters;         /* whether gradients are scattered after each micro-batch */
} cs_store;

/* Zeroed stores can be closed. The job has the weights of the place's layers, and
 * maybe more. */
CS_MUST_CHECK cs_status cs_store_open(cs_store *store, const cs_job *job, uint32_t stage,
                                      uint32_t place, cs_error *error);
void cs_store_close(cs_store *store);

/* Restores the initial weights, without gradients and states; nothing is gathered. */
CS_MUST_CHECK cs_status cs_store_reset(cs_store *store, cs_error *error);

/* Counts the store's bytes into `resident`, by cs_category. */
void cs_store_count(const cs_store *store, int64_t *resident);

/* ---- units ---- */

/* Zero 3: allocates a unit's weights and fills them from all shares; cs_store_release frees
 * them. */
CS_MUST_CHECK cs_status cs_store_gather(cs_store *store, uint32_t unit, const cs_wire_group *group,
                                        cs_error *error);
void cs_store_release(cs_store *store, uint32_t unit);

/* Allocates the whole gradients of a unit, if they are not allocated yet; they will be
 * scattered. */
CS_MUST_CHECK cs_status cs_store_begin(cs_store *store, uint32_t unit, cs_error *error);

/* Sum a unit's gradients. cs_store_scatter adds to each place's share and frees the whole
 * gradients. cs_store_sum sums the shares over a group; if `tensor`, only the region that the
 * tensor axis sums. */
CS_MUST_CHECK cs_status cs_store_scatter(cs_store *store, uint32_t unit, const cs_wire_group *group,
                                         cs_error *error);
CS_MUST_CHECK cs_status cs_store_sum(cs_store *store, uint32_t unit, bool tensor,
                                     const cs_wire_group *group, cs_error *error);

/* Returns the bytes of a unit's weights, or of the place's share; if `tensor`, only of the region
 * that the tensor axis sums. */
int64_t cs_store_bytes(const cs_store *store, uint32_t unit, bool share, bool tensor);

/* ---- all units ---- */

/* Updates the place's share and clears all gradients. */
CS_MUST_CHECK cs_status cs_store_update(cs_store *store, cs_error *error);

/* Zero 1 and 2: gathers whole weights from the shares, in place. */
CS_MUST_CHECK cs_status cs_store_gather_all(cs_store *store, const cs_wire_group *group,
                                            cs_error *error);

#endif

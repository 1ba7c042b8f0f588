/* The weights of a stage as a place of a grid has them, with their gradients and the optimizer's
 * states: whole, or a share of them (schedules/states.h).
 *
 * Layers that are gathered or summed together are a unit. Of each unit, first come the parameters
 * that the tensor axis sums as well, then all others; either is divided into equal shares, in
 * float32. Memory is taken from the trainer's pool, and given back, as the plan has it:
 *   weights    whole; with zero 3 the share
 *   gathered   with zero 3, from the gather of a unit to its release
 *   gradients  whole; where they are scattered after each micro-batch the share
 *   scattered  there, whole, from the beginning of a unit's backward until they are scattered
 *   states     of the share
 */
#ifndef CS_CALIB_WEIGHT_STORE_H
#define CS_CALIB_WEIGHT_STORE_H

#include "calib/bench/train/trainer.h"
#include "calib/bench/wire/wire.h"
#include "schedules/states.h"

enum { CS_STORE_REGIONS = 2 }; /* summed over the tensor axis as well, and others */

typedef struct cs_store_unit {
    uint32_t first_layer, end_layer, first_op, end_op;
    cs_weights planned;                                        /* bytes, as the plan has them */
    int64_t sizes[CS_STORE_REGIONS], shares[CS_STORE_REGIONS]; /* numbers */
    cs_block weights, gathered, gradients, scattered, states;
} cs_store_unit;

typedef struct cs_store {
    cs_trainer *trainer;
    cs_wire *wire;
    cs_part *part;     /* bare; its places are set here */
    int64_t *offsets;  /* per operator of the part, in its unit */
    uint32_t *unit_of; /* likewise */
    uint32_t n_units;
    cs_store_unit *units;  /* in the order of the layers */
    uint32_t shards, rank; /* shares, and which one is the place's */
    uint32_t zero;         /* 0 where nothing is divided */
    bool scatters;         /* gradients, after each micro-batch */
} cs_store;

/* Zeroed ones can be closed. The job's weights are those of the place's layers, or of a place that
 * has more. */
CS_MUST_CHECK cs_status cs_store_open(cs_store *store, const cs_job *job, uint32_t stage,
                                      uint32_t place, cs_error *error);
void cs_store_close(cs_store *store);

/* Weights from the start, no gradients, no states; nothing gathered. */
CS_MUST_CHECK cs_status cs_store_reset(cs_store *store, cs_error *error);

/* Bytes that it holds, into `resident` by cs_category. */
void cs_store_count(const cs_store *store, int64_t *resident);

/* ---- units ---- */

/* Zero 3: takes room for a unit's weights and fills it from all shares; and gives it back. */
CS_MUST_CHECK cs_status cs_store_gather(cs_store *store, uint32_t unit, const cs_wire_group *group,
                                        cs_error *error);
void cs_store_release(cs_store *store, uint32_t unit);

/* Room for the gradients of a unit that are scattered, if there is none. */
CS_MUST_CHECK cs_status cs_store_begin(cs_store *store, uint32_t unit, cs_error *error);

/* The sums of a unit's gradients: each place gets that of its share, added to what it has of the
 * micro-batches before, and the room goes back; the sum of the shares over a group; and that of
 * those which the tensor axis sums. */
CS_MUST_CHECK cs_status cs_store_scatter(cs_store *store, uint32_t unit, const cs_wire_group *group,
                                         cs_error *error);
CS_MUST_CHECK cs_status cs_store_sum(cs_store *store, uint32_t unit, bool tensor,
                                     const cs_wire_group *group, cs_error *error);

/* Bytes of all of a unit's weights, or of the place's share; `tensor`: of those that this axis
 * sums. */
int64_t cs_store_bytes(const cs_store *store, uint32_t unit, bool share, bool tensor);

/* ---- all units ---- */

/* Updates the place's share, and clears all gradients. */
CS_MUST_CHECK cs_status cs_store_update(cs_store *store, cs_error *error);

/* Zero 1 and 2: whole weights from the shares, in place. */
CS_MUST_CHECK cs_status cs_store_gather_all(cs_store *store, const cs_wire_group *group,
                                            cs_error *error);

#endif

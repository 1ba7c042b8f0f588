/* Cyclic data parallelism: N micro-batches and N stages, micro-batch i two time steps behind i - 1.
 * What its rules and settings share; notes and results in schedules/cdp.md. Internal to cdp*.c.
 *
 * Micro-batches are numbered through the run: g = 0, 1, ...; g is micro-batch i = g mod N (from 0)
 * of mini-batch t = g / N. It has 2N tasks, a forward on stage 0 .. N-1 and a backward on N-1 .. 0;
 * where all tasks take one time step, task k runs in step 2g + k. Stage j has D_j holders, and g
 * runs on holder g mod D_j.
 */
#ifndef CS_SCHEDULES_CDP_H
#define CS_SCHEDULES_CDP_H

#include "schedules/schedule.h"

typedef enum cs_cdp_rule {
    CS_CDP_DP,      /* no delays: all with the current version, and a barrier */
    CS_CDP_V1,      /* theta_{t-1} */
    CS_CDP_V2,      /* theta_t where it can be there, j >= N - 1 - i (from 0), else theta_{t-1} */
    CS_CDP_FRESHEST /* the newest version that has arrived when the forward starts */
} cs_cdp_rule;

typedef enum cs_cdp_setting {
    CS_CDP_SINGLE_GPU,     /* one device does everything */
    CS_CDP_MULTI_GPU,      /* device i has all stages, for micro-batch i */
    CS_CDP_MODEL_PARALLEL, /* stage j (from 0) on N - j devices; DP: on N */
    CS_CDP_PIPELINE,       /* stage j on device j */
    CS_CDP_ZERO /* device i does micro-batch i; each stage's states are on one device at a
                            * time, which hands them to the one that needs them next; DP: device j
                            * keeps those of stage j, and broadcasts the weights when they are
                            * needed */
} cs_cdp_setting;

typedef enum cs_cdp_retention { CS_CDP_BY_STAGE, CS_CDP_BY_MICRO_BATCH } cs_cdp_retention;

/* When micro-batch g starts, in settings that give it devices of its own. */
typedef enum cs_cdp_delay {
    CS_CDP_UNIFORM,  /* not before g T/N; T: what one takes to compute */
    CS_CDP_TWO_TASKS /* when g - 1 has ended two tasks */
} cs_cdp_delay;

/* v2: where a holder puts the weights that it is sent. */
typedef enum cs_cdp_new_weights {
    CS_CDP_REPLACE, /* in the place of those it has, once it has used and sent on those */
    CS_CDP_BESIDE   /* beside them, as soon as the sender's forward has ended */
} cs_cdp_new_weights;

typedef struct cs_cdp_params {
    uint32_t n; /* N */
    uint32_t setting;
    uint32_t retention;
    uint32_t delay;
    uint32_t new_weights;
} cs_cdp_params;

enum { CS_CDP_LARGEST = 128 }; /* N; some tables have N^3 entries */

/* D_j. */
uint32_t cs_cdp_holders(const cs_cdp_params *params, cs_cdp_rule rule, uint32_t stage);

/* Whether micro-batch i of mini-batch t reads theta_{t-1} on stage j, not theta_t. Freshest: how
 * versions are handed on, as with v2. */
bool cs_cdp_lags(cs_cdp_rule rule, uint32_t n, uint32_t i, uint32_t j);

/* T/N where micro-batches start by the clock, else 0. */
cs_time cs_cdp_interval(const cs_job *job, const cs_cdp_params *params, cs_cdp_rule rule);

CS_MUST_CHECK cs_status cs_cdp_generate(const cs_job *job, const cs_cdp_params *params,
                                        cs_cdp_rule rule, cs_builder *builder, cs_error *error);

#endif

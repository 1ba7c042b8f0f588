/* Cyclic data parallelism: N micro-batches and N stages, micro-batch i two time steps after i - 1.
 * Shared by the rules and settings; notes and results are in schedules/cdp.md. Internal to cdp*.c.
 *
 * Micro-batches are numbered through the run: g = 0, 1, ...; g is micro-batch i = g mod N (from 0)
 * of mini-batch t = g / N. It has 2N tasks, a forward on stages 0 to N-1 and a backward on stages
 * N-1 to 0. If all tasks take one time step, task k runs in step 2g + k. Stage j has D_j holders,
 * and g runs on holder g mod D_j.
 */
#ifndef CS_SCHEDULES_CDP_H
#define CS_SCHEDULES_CDP_H

#include "schedules/schedule.h"

typedef enum cs_cdp_rule {
    CS_CDP_DP, /* no delays: everything uses the current version, with a barrier */
    CS_CDP_V1, /* always theta_{t-1} */
    /* theta_t where it can have arrived, j >= N - 1 - i (from 0), else theta_{t-1} */
    CS_CDP_V2,
    CS_CDP_FRESHEST /* the newest version that has arrived when the forward starts */
} cs_cdp_rule;

typedef enum cs_cdp_setting {
    CS_CDP_SINGLE_GPU,     /* one device does everything */
    CS_CDP_MULTI_GPU,      /* device i has all stages and computes micro-batch i */
    CS_CDP_MODEL_PARALLEL, /* stage j (from 0) has N - j devices; DP: N devices */
    CS_CDP_PIPELINE,       /* stage j on device j */
    /* device i computes micro-batch i. The states of a stage are on one device at a time, which
     * passes them to the next user. DP: device j keeps the states of stage j and broadcasts the
     * weights when they are needed */
    CS_CDP_ZERO
} cs_cdp_setting;

typedef enum cs_cdp_retention { CS_CDP_BY_STAGE, CS_CDP_BY_MICRO_BATCH } cs_cdp_retention;

/* When micro-batch g starts, in settings where it has its own devices. */
typedef enum cs_cdp_delay {
    CS_CDP_UNIFORM,  /* not before g T/N, where T is the compute time of a micro-batch */
    CS_CDP_TWO_TASKS /* a micro-batch starts when g - 1 has finished two tasks */
} cs_cdp_delay;

/* v2: where a holder puts weights that arrive. */
typedef enum cs_cdp_new_weights {
    CS_CDP_REPLACE, /* over its old weights, once it has used and forwarded these */
    CS_CDP_BESIDE   /* next to its old weights, as soon as the sender's forward has ended */
} cs_cdp_new_weights;

typedef struct cs_cdp_params {
    uint32_t n; /* number N of micro-batches and stages */
    uint32_t setting;
    uint32_t retention;
    uint32_t delay;
    uint32_t new_weights;
} cs_cdp_params;

enum { CS_CDP_LARGEST = 128 }; /* maximum N; some tables have N^3 entries */

/* Returns D_j, the number of holders of a stage. */
uint32_t cs_cdp_holders(const cs_cdp_params *params, cs_cdp_rule rule, uint32_t stage);

/* Whether micro-batch i of mini-batch t reads theta_{t-1} on stage j, not theta_t. For "freshest":
 * how versions are passed on, as in v2. */
bool cs_cdp_lags(cs_cdp_rule rule, uint32_t n, uint32_t i, uint32_t j);

/* Returns T/N if micro-batches start by the clock, else 0. */
cs_time cs_cdp_interval(const cs_job *job, const cs_cdp_params *params, cs_cdp_rule rule);

CS_MUST_CHECK cs_status cs_cdp_generate(const cs_job *job, const cs_cdp_params *params,
                                        cs_cdp_rule rule, cs_builder *builder, cs_error *error);

#endif

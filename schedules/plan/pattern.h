/* Periodic patterns: what a plan's devices and links do over and over, once per micro-batch.
 *
 * Each stage has four operations: its forward, its backward, the message that takes its output over
 * the boundary behind it, and the message that brings the gradient of that output back. An
 * operation has a start in [0, period) and a shift; it does micro-batch i at
 * (i + shift) * period + start, and may end after the period does. A boundary between two stages
 * that one device holds has no messages; the last stage has none either.
 *
 * A pattern is valid when (MadPipe, HAL hal-03025305, section 3.2 and figure 1)
 *   - every operation starts after what it waits for has ended, for the same micro-batch: forward,
 *     message, next forward, ..., last forward, last backward, message back, ...;
 *   - a device does one operation at a time, and so does the link between two devices, whatever the
 *     direction: the link is one resource per pair, and several boundaries may share it;
 *   - what a device holds (chain.h) never exceeds its memory. What ends at an instant is gone
 *     before what starts at that instant comes; but a micro-batch is active at least at the instant
 *     at which its forward starts, also where forward and backward take no time.
 *
 * An operation longer than the period cannot be exclusive. One that takes no time may stand at the
 * ends of others of its device or link, and with others like it, but not within one: what is busy
 * cannot do it. (Were that allowed, 1F1B* would not be best: with period 3, loads u_F = 1, 0, 2 and
 * u_B = 1, 2, 1, and messages of 1, stage 0 could do with 4 active micro-batches instead of 5.)
 */
#ifndef CS_SCHEDULES_PATTERN_H
#define CS_SCHEDULES_PATTERN_H

#include "schedules/plan/chain.h"
#include "schedules/plan/plan.h"

typedef enum cs_pattern_kind {
    CS_PATTERN_FORWARD,
    CS_PATTERN_BACKWARD,
    CS_PATTERN_SEND,   /* the stage's output, to the next stage's device */
    CS_PATTERN_RETURN, /* the gradient of that output, back to this stage's device */
    CS_PATTERN_KINDS
} cs_pattern_kind;

typedef struct cs_pattern_op {
    cs_time start; /* in [0, period) */
    int64_t shift;
} cs_pattern_op;

typedef struct cs_pattern {
    cs_time period; /* > 0; 0: there is no pattern */
    uint32_t n_stages;
    cs_pattern_op *ops; /* [stage * CS_PATTERN_KINDS + kind]; those that do not exist are zero */
} cs_pattern;

/* What a device does in a period of a valid pattern. */
typedef struct cs_pattern_use {
    cs_time busy;
    int64_t peak;      /* bytes, all categories of chain.h together */
    int64_t fixed;     /* of them: weights and buffers, there all the time */
    cs_time peak_time; /* in [0, period) */
} cs_pattern_use;

/* Zeroed patterns and NULL can be finished. */
void cs_pattern_finish(cs_pattern *pattern);

/* All operations zero; period 0. */
CS_MUST_CHECK cs_status cs_pattern_create(uint32_t n_stages, cs_pattern *pattern, cs_error *error);

CS_MUST_CHECK cs_status cs_pattern_copy(const cs_pattern *pattern, cs_pattern *copy,
                                        cs_error *error);

/* Whether the operation exists: messages only where the next stage is on another device. Every
 * stage of `plan` has one device. */
bool cs_pattern_has(const cs_plan *plan, uint32_t stage, cs_pattern_kind kind);

/* What the operation takes of its device or link; 0 when it does not exist. */
cs_time cs_pattern_duration(const cs_chain *chain, const cs_plan *plan, uint32_t stage,
                            cs_pattern_kind kind);

/* "backward of stage 2", "message from stage 0 to stage 1": for people. */
enum { CS_PATTERN_NAME_BYTES = 64 };
char *cs_pattern_name(uint32_t stage, cs_pattern_kind kind, char text[CS_PATTERN_NAME_BYTES]);

/* The exact check, O(n_stages log n_stages). CS_LIMIT with a message that names the operations, or
 * the device and the bytes, when the pattern is not valid; everything that planners return passes
 * through here. `uses` has an entry per device of the chain, or is NULL. */
CS_MUST_CHECK cs_status cs_pattern_check(const cs_chain *chain, const cs_plan *plan,
                                         const cs_pattern *pattern, cs_pattern_use *uses,
                                         cs_error *error);

/* Micro-batches of a stage that are active at once, at most: ceil(t / period), at least 1, where t
 * is the time from the start of a forward to the end of its backward. Of a valid pattern. */
int64_t cs_pattern_active(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                          uint32_t stage);

/* ---- in files ---- */

enum { CS_PATTERN_SHIFTS = 1 << 16 }; /* shifts in a file are within +- this */

/* Adds "pattern": {"period_ps", "operations": [{"operation": "forward", "stage", "start_ps",
 * "shift"}]} to what cs_plan_json made; "send" and "return" are the messages. Times are whole
 * picoseconds, from 2^53 of them on as texts, because a JSON number would not be exact. */
CS_MUST_CHECK cs_status cs_pattern_add_json(cJSON *root, const cs_plan *plan,
                                            const cs_pattern *pattern, cs_error *error);

/* Reads the pattern of a plan's file, `root`, that cs_plan_read has read; period 0 when it has
 * none. Every operation must be there once, and none that does not exist; whether the pattern is
 * valid depends on a chain, and is not looked at. */
CS_MUST_CHECK cs_status cs_pattern_read(const cJSON *root, const cs_json_place *place,
                                        const cs_plan *plan, cs_pattern *pattern, cs_error *error);

/* ---- 1F1B*: the best pattern of a contiguous plan (section 4.1) ---- */

/* The pattern of 1F1B* with that period: stages and messages are put into groups, from the last one
 * on, each as long as its sum of U and C fits the period. The first forward starts at 0 with shift
 * 0. CS_LIMIT when one of them alone does not fit, CS_OVERFLOW when all of them together do not fit
 * 2^61 ps. `plan` has one stage per device. Memory is not looked at. */
CS_MUST_CHECK cs_status cs_pattern_1f1b(const cs_chain *chain, const cs_plan *plan, cs_time period,
                                        cs_pattern *pattern, cs_error *error);

/* The smallest period whose 1F1B* fits the memory, and its pattern. Exact, O(n_stages): with a
 * longer period no stage comes into a later group, so what fits goes on fitting, and the whole
 * picoseconds are searched by halving. CS_LIMIT, naming the device and its bytes, when none fits.
 */
CS_MUST_CHECK cs_status cs_pattern_1f1b_fit(const cs_chain *chain, const cs_plan *plan,
                                            cs_pattern *pattern, cs_error *error);

#endif

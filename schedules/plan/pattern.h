/* Periodic patterns: the work that a plan's devices and links repeat once per micro-batch.
 *
 * Each stage has four operations: its forward, its backward, the message that takes its output over
 * the boundary after it, and the message that brings the output's gradient back. An operation has a
 * start in [0, period) and a shift. It processes micro-batch i at (i + shift) * period + start, and
 * may end after the period does. A boundary between two stages on one device has no messages; nor
 * has the last stage.
 *
 * A pattern is valid if (MadPipe, HAL hal-03025305, section 3.2 and figure 1)
 *   - every operation starts after the previous operation of the same micro-batch has ended:
 *     forward, message, next forward, ..., last forward, last backward, message back, ...;
 *   - a device does one operation at a time, and so does the link between two devices: it is one
 *     resource for both directions, and several boundaries may share it;
 *   - the memory that a device uses (chain.h) never exceeds its capacity. Memory freed at an
 *     instant can be reused by operations that start at the same instant. But a micro-batch is
 *     active at least at the instant when its forward starts, even if forward and backward take no
 *     time.
 *
 * An operation longer than the period cannot be exclusive. An operation that takes no time may be
 * at the start or end of others on its device or link, and together with others that take no time,
 * but not within another operation, because the resource is busy. (If that were allowed, 1F1B*
 * would not be optimal: with period 3, loads u_F = 1, 0, 2 and u_B = 1, 2, 1, and messages of 1,
 * stage 0 would need only 4 active micro-batches instead of 5.)
 */
#ifndef CS_SCHEDULES_PATTERN_H
#define CS_SCHEDULES_PATTERN_H

#include "schedules/plan/chain.h"
#include "schedules/plan/plan.h"

typedef enum cs_pattern_kind {
    CS_PATTERN_FORWARD,
    CS_PATTERN_BACKWARD,
    CS_PATTERN_SEND,   /* message with the stage's output, to the next stage's device */
    CS_PATTERN_RETURN, /* message with the output's gradient, back to this stage's device */
    CS_PATTERN_KINDS
} cs_pattern_kind;

typedef struct cs_pattern_op {
    cs_time start; /* start time in [0, period) */
    int64_t shift;
} cs_pattern_op;

typedef struct cs_pattern {
    cs_time period; /* period, > 0; 0: there is no pattern */
    uint32_t n_stages;
    /* [stage * CS_PATTERN_KINDS + kind]; entries of operations that do not exist are zero */
    cs_pattern_op *ops;
} cs_pattern;

/* Time and memory that a device uses in each period of a valid pattern. */
typedef struct cs_pattern_use {
    cs_time busy;
    int64_t peak;      /* bytes, all categories of chain.h together */
    int64_t fixed;     /* part of `peak` that is always held: weights and buffers */
    cs_time peak_time; /* time of the peak, in [0, period) */
} cs_pattern_use;

/* Allowed on a zeroed struct and on NULL. */
void cs_pattern_finish(cs_pattern *pattern);

/* Creates a pattern with period 0, all of whose operations are zero. */
CS_MUST_CHECK cs_status cs_pattern_create(uint32_t n_stages, cs_pattern *pattern, cs_error *error);

CS_MUST_CHECK cs_status cs_pattern_copy(const cs_pattern *pattern, cs_pattern *copy,
                                        cs_error *error);

/* Whether the operation exists. A stage has messages only if the next stage is on another device.
 * Every stage of `plan` has one device. */
bool cs_pattern_has(const cs_plan *plan, uint32_t stage, cs_pattern_kind kind);

/* Returns the time that the operation occupies its device or link; 0 if it does not exist. */
cs_time cs_pattern_duration(const cs_chain *chain, const cs_plan *plan, uint32_t stage,
                            cs_pattern_kind kind);

/* Writes the name of an operation for users: "backward of stage 2", "message from stage 0 to stage
 * 1". */
enum { CS_PATTERN_NAME_BYTES = 64 };
char *cs_pattern_name(uint32_t stage, cs_pattern_kind kind, char text[CS_PATTERN_NAME_BYTES]);

/* Checks a pattern exactly, in O(n_stages log n_stages). CS_LIMIT if it is not valid, with a
 * message that names the operations, or the device and the bytes. Everything that planners return
 * is checked here. `uses` has one entry per device of the chain; may be NULL. */
CS_MUST_CHECK cs_status cs_pattern_check(const cs_chain *chain, const cs_plan *plan,
                                         const cs_pattern *pattern, cs_pattern_use *uses,
                                         cs_error *error);

/* Returns the largest number of a stage's micro-batches that are active at once in a valid pattern:
 * ceil(t / period), at least 1, where t is the time from the start of a forward to the end of its
 * backward. */
int64_t cs_pattern_active(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                          uint32_t stage);

/* ---- in files ---- */

enum { CS_PATTERN_SHIFTS = 1 << 16 }; /* shifts in a file are within +- this */

/* Adds "pattern": {"period_ps", "operations": [{"operation": "forward", "stage", "start_ps",
 * "shift"}]} to the object from cs_plan_json; "send" and "return" are the messages. Times are whole
 * picoseconds. Times from 2^53 ps on are written as strings, because a JSON number would not be
 * exact. */
CS_MUST_CHECK cs_status cs_pattern_add_json(cJSON *root, const cs_plan *plan,
                                            const cs_pattern *pattern, cs_error *error);

/* Reads the pattern of a plan file whose plan cs_plan_read has read; period 0 if the file has no
 * pattern. Each operation of the plan must be there exactly once, and no others. Does not check
 * whether the pattern is valid, because this depends on a chain. */
CS_MUST_CHECK cs_status cs_pattern_read(const cJSON *root, const cs_json_place *place,
                                        const cs_plan *plan, cs_pattern *pattern, cs_error *error);

/* ---- 1F1B*: the best pattern of a contiguous plan (section 4.1) ---- */

/* Makes the 1F1B* pattern with this period. It puts stages and messages into groups, from the last
 * one on; each group is as long as possible with a sum of U and C within the period. The first
 * forward has start 0 and shift 0. `plan` has one stage per device. The memory is not checked.
 * CS_LIMIT if a stage or message alone exceeds the period; CS_OVERFLOW if all together exceed 2^61
 * ps. */
CS_MUST_CHECK cs_status cs_pattern_1f1b(const cs_chain *chain, const cs_plan *plan, cs_time period,
                                        cs_pattern *pattern, cs_error *error);

/* Finds the smallest period for which the 1F1B* pattern fits the memory, and makes this pattern.
 * The result is exact: a longer period never moves a stage into a later group, so all longer
 * periods fit too, and bisection over whole picoseconds finds the smallest. O(n_stages) per step.
 * CS_LIMIT if no period fits; the message names the device and its bytes. */
CS_MUST_CHECK cs_status cs_pattern_1f1b_fit(const cs_chain *chain, const cs_plan *plan,
                                            cs_pattern *pattern, cs_error *error);

#endif

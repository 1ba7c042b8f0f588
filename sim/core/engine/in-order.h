/* Runs without a queue of events. If the order of tasks on each device is fixed and all delays are
 * known, the times of a task follow from the times of its predecessors, in one pass over tasks
 * whose ids rise along edges.
 *
 * An instant has steps (engine.h), and so have the points in time here: `step` numbers them, from
 * 0, the ends at the start of the instant. Only tasks that take no time have higher steps.
 *
 * Memory and versions depend on the order of events on each device, not between devices. A device's
 * events come to its lane nearly in order. They wait there until all devices that may send earlier
 * ones are further on. If an event comes too late after all, the pass fails, and the run is
 * simulated event by event.
 *
 * It applies to devices with program order whose messages do not compete for links, without
 * blocking transfers, policies of versions, slowdown, and messages of other jobs, if no history is
 * recorded. Internal to sim/core/engine. */
#ifndef CS_ENGINE_IN_ORDER_H
#define CS_ENGINE_IN_ORDER_H

#include "sim/core/engine/state.h"

typedef struct cs_in_order cs_in_order;

typedef struct cs_moment {
    cs_time time;
    uint32_t step;
} cs_moment;

/* NULL if it applies to a prepared run; else the reason why not. */
const char *cs_in_order_refuses(const cs_engine *e);

/* `e`, which must outlive it, is prepared. NULL when memory runs out. */
cs_in_order *cs_in_order_create(cs_engine *e);
void cs_in_order_destroy(cs_in_order *run);

/* Whether a task may take no time: else all steps are 0. */
bool cs_in_order_has_steps(const cs_in_order *run);

/* A task that was ready at *point, as far as its predecessors are concerned: sets its span, and
 * *point to its end. Tasks of a device come in the order of its program. CS_OVERFLOW, CS_NO_MEMORY,
 * or CS_FAILED where events come too late. */
CS_MUST_CHECK cs_status cs_in_order_place(cs_in_order *run, uint32_t task, cs_task what,
                                          cs_moment *point, cs_span *span);

/* All tasks were placed: applies what waits. Errors as above. */
CS_MUST_CHECK cs_status cs_in_order_close(cs_in_order *run);

/* Runs the whole graph and fills its spans. Not *done: events came too late, and the run must be
 * prepared again. CS_NO_MEMORY, CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_in_order_run(cs_engine *e, bool *done);

#endif

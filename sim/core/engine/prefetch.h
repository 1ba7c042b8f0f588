/* Loads what the end of a task will look at into the cache while the task is under way. Internal to
 * sim/core/engine.
 *
 * These functions are always inlined: gcc 12 takes a function that does nothing but prefetch for
 * one without an effect, and deletes its calls. */
#ifndef CS_ENGINE_PREFETCH_H
#define CS_ENGINE_PREFETCH_H

#include "sim/core/engine/state.h"

#define CS_INLINED static inline __attribute__((always_inline))

CS_INLINED void cs_prefetch_task(const cs_engine *e, uint32_t task)
{
    __builtin_prefetch(&e->graph->tasks[task]);
    __builtin_prefetch(&e->spans[task], 1);
}

/* Where a task has several successors: the list of them. Long before it starts. */
CS_INLINED void cs_prefetch_list(const cs_engine *e, uint32_t task)
{
    const uint32_t successor = e->graph->tasks[task].successor;
    if (successor >= CS_LIST && successor != CS_NONE)
        __builtin_prefetch(&e->graph->listed[successor - CS_LIST]);
}

/* At the start of a task: its successor, or the list of them, and the next task of its device. */
CS_INLINED void cs_prefetch_after(const cs_engine *e, uint32_t task)
{
    const cs_task *record = &e->graph->tasks[task];
    if (record->next < CS_LIST)
        cs_prefetch_task(e, record->next);
    if (record->successor < CS_LIST)
        cs_prefetch_task(e, record->successor);
    cs_prefetch_list(e, task);
}

/* Later, when the list is in the cache: the first two of those that it names. */
CS_INLINED void cs_prefetch_listed(const cs_engine *e, uint32_t task)
{
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(e->graph, task, &n);
    if (n > 1) {
        cs_prefetch_task(e, successors[0]);
        cs_prefetch_task(e, successors[1]);
    }
}

#undef CS_INLINED

#endif

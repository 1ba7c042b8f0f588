/* Prefetches the data that the end of a task will need, while the task is running. Internal to
 * sim/core/engine.
 *
 * These functions are always inlined: if a function only prefetches, gcc 12 assumes that it has no
 * effect and deletes its calls. */
#ifndef CS_ENGINE_PREFETCH_H
#define CS_ENGINE_PREFETCH_H

#include "sim/core/engine/state.h"

#define CS_INLINED static inline __attribute__((always_inline))

CS_INLINED void cs_prefetch_task(const cs_engine *e, uint32_t task)
{
    __builtin_prefetch(&e->graph->tasks[task]);
    __builtin_prefetch(&e->spans[task], 1);
}

/* Prefetches a task's list of successors, if it has several. Call long before the task starts. */
CS_INLINED void cs_prefetch_list(const cs_engine *e, uint32_t task)
{
    const uint32_t successor = e->graph->tasks[task].successor;
    if (successor >= CS_LIST && successor != CS_NONE)
        __builtin_prefetch(&e->graph->listed[successor - CS_LIST]);
}

/* Prefetches a task's successor or list of successors, and the next task of its device. Call at the
 * start of the task. */
CS_INLINED void cs_prefetch_after(const cs_engine *e, uint32_t task)
{
    const cs_task *record = &e->graph->tasks[task];
    if (record->next < CS_LIST)
        cs_prefetch_task(e, record->next);
    if (record->successor < CS_LIST)
        cs_prefetch_task(e, record->successor);
    cs_prefetch_list(e, task);
}

/* Prefetches the first two successors in a task's list. Call after the list is in the cache. */
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

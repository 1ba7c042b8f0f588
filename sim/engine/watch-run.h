/* How the engine fills a cs_watch. Internal to sim/engine. */
#ifndef CS_ENGINE_WATCH_RUN_H
#define CS_ENGINE_WATCH_RUN_H

#include "sim/engine/state.h"

/* Finds the first tasks of the mini-batches. False when memory runs out. */
CS_MUST_CHECK bool cs_watch_begin(cs_engine *e, cs_watch *watch);

/* An instant is over: looks at the state where mini-batch `next` or more have begun; returns the
 * next one to wait for. */
uint32_t cs_watch_look(cs_engine *e, cs_watch *watch, uint32_t next);

#endif

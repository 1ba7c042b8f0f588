/* Where others' messages come from (cs_traffic in engine.h): when each source sends next. Internal
 * to sim/core/engine. */
#ifndef CS_ENGINE_SOURCES_H
#define CS_ENGINE_SOURCES_H

#include "sim/core/engine/engine.h"

typedef struct cs_sources cs_sources;

/* CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_sources_create(const cs_traffic *traffic, cs_sources **sources,
                                          cs_error *error);
void cs_sources_destroy(cs_sources *sources);

/* How long a source is silent now: >= 1 ps. False when that is too long for a number. */
CS_MUST_CHECK bool cs_sources_next(cs_sources *sources, uint32_t source, cs_time *silence);

#endif

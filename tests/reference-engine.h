/* A slow and obvious engine, to compare the fast one with. It has no event queue and keeps no
 * order: at every instant it looks at every task and follows sim/core/engine/engine.h word by word.
 * For graphs of a few dozen tasks.
 *
 * Where the header pins the arithmetic (all sharings except max_min) both must agree bit by bit.
 * Max-min rates are computed from scratch for all transfers at once (progressive filling, Bertsekas
 * and Gallager, Data Networks, 2nd edition, section 6.5.2), in an order of operations that may
 * differ from the fast engine's.
 */
#ifndef CS_TESTS_REFERENCE_ENGINE_H
#define CS_TESTS_REFERENCE_ENGINE_H

#include "sim/core/engine/engine.h"

/* As cs_engine_run; options->progress is ignored. */
CS_MUST_CHECK cs_status reference_run(const cs_graph *graph, const cs_platform *platform,
                                      const cs_engine_options *options, cs_trace *trace,
                                      cs_error *error);

#endif

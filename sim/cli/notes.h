/* What a run's figures do not show by themselves and a user would want to know. */
#ifndef CS_CLI_NOTES_H
#define CS_CLI_NOTES_H

#include "sim/base/log.h"
#include "sim/run/simulate.h"

/* Writes them as messages for people: a ring that leaves NICs unused, too few mini-batches for a schedule
 * without a flush, or ever more of them in flight. */
void cs_notes_write(const cs_scenario *scenario, const cs_simulation *simulation,
                    const cs_log *log);

#endif

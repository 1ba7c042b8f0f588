/* Processes, on one or several machines, that share the points of pools.
 *
 * mpirun starts all of them alike, with one command line. Each reads the input; the first (rank 0)
 * leads: it hands out points, one by one and the largest first, to its own threads and to the other
 * processes, collects what comes back, and alone writes and prints. The others help: they work on
 * points in threads of their own. What comes of a point depends neither on who works on it nor on
 * when, so results are the same for any number of processes and threads.
 *
 * A helper has at hand what its threads do next: a point each, and, of points that take less than a
 * message, as many as it does within a few milliseconds. So the last points end together, as far as
 * their sizes allow.
 *
 * All functions are called by the main thread. Open MPI ends all processes of a job when one of
 * them dies: what was collected is the leader's journal (sim/study/sweep/journal.h).
 */
#ifndef CS_TEAM_TEAM_H
#define CS_TEAM_TEAM_H

#include "sim/base/pool.h"
#include "sim/study/team/launch.h"

typedef struct cs_team cs_team;

/* Joins the processes that were started together; *team is NULL when this one is alone. CS_FAILED
 * without MPI. Functions below accept NULL, which leads nobody. */
CS_MUST_CHECK cs_status cs_team_open(cs_team **team, cs_error *error);

/* Whether this process helps another one: then it neither writes nor prints. */
bool cs_team_helps(const cs_team *team);

/* Says what is worked on: a hash that must be the same in all processes, before the first pool. */
void cs_team_identify(cs_team *team, uint64_t identity);

/* cs_pool_run with the help of the others. `stage` numbers a command's pools, upwards; several runs
 * of the leader may be of one stage. Helpers pass the same pool, of which only `work` and `jobs`
 * count: the call lasts until the leader is at another stage or has ended, and collects nothing.
 *
 * CS_FAILED and others with the message of a helper that failed. */
CS_MUST_CHECK cs_status cs_team_run(cs_team *team, uint32_t stage, const cs_pool *pool,
                                    const cs_progress *progress, cs_error *error);

/* Of a helper that was interrupted: the leader died. Only one of the helpers says so. */
bool cs_team_is_orphan(const cs_team *team);

/* Ends it. A helper whose command failed tells the leader. `status` is the command's. */
void cs_team_close(cs_team *team, cs_status status, const cs_error *why);

#endif

/* Processes, on one or several machines, that share the points of pools.
 *
 * mpirun starts all of them with the same command line, and each reads the input. The first (rank
 * 0) leads: it hands out points one by one, the largest first, to its own threads and to the other
 * processes, collects the results, and alone writes and prints. The others help: they process
 * points in their own threads. The result of a point depends neither on the process nor on the
 * time, so results are the same for any number of processes and threads.
 *
 * A helper keeps queued what its threads do next: one point per thread, and if points take less
 * time than a message, as many as it can do within a few milliseconds. So all processes finish at
 * about the same time, as far as the points' sizes allow.
 *
 * All functions are called by the main thread. Open MPI ends all processes of a job when one dies;
 * the collected results survive in the leader's journal (sim/study/sweep/journal.h).
 */
#ifndef CS_TEAM_TEAM_H
#define CS_TEAM_TEAM_H

#include "sim/base/pool.h"
#include "sim/study/team/launch.h"

typedef struct cs_team cs_team;

/* Joins the processes that were started together; *team is NULL if there is only one. CS_FAILED: no
 * MPI. The functions below accept NULL. */
CS_MUST_CHECK cs_status cs_team_open(cs_team **team, cs_error *error);

/* Whether this process is a helper, which neither writes nor prints. */
bool cs_team_helps(const cs_team *team);

/* Sets the hash of the work, which must be the same in all processes, before the first pool. */
void cs_team_identify(cs_team *team, uint64_t identity);

/* Like cs_pool_run, with the helpers. `stage` numbers a command's pools, in ascending order; the
 * leader may run several pools in one stage. Helpers pass the same pool, whose only `work` and
 * `jobs` are used: their call lasts until the leader reaches another stage or ends, and collects
 * nothing.
 *
 * Fails with CS_FAILED or another status, and the message of a helper that failed. */
CS_MUST_CHECK cs_status cs_team_run(cs_team *team, uint32_t stage, const cs_pool *pool,
                                    const cs_progress *progress, cs_error *error);

/* Whether this helper must report that the leader died; true in only one of the interrupted
 * helpers. */
bool cs_team_is_orphan(const cs_team *team);

/* Leaves the team. A helper whose command failed reports it to the leader. `status` is the
 * command's. */
void cs_team_close(cs_team *team, cs_status status, const cs_error *why);

#endif

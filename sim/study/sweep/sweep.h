/* Parameter sweeps: one scenario at many points, in threads.
 *
 * Every point is a document of its own, made from the base document and the values of the point,
 * and run by a function of the caller's that shares nothing between calls. So the outcome of a
 * point depends neither on the others nor on the number of threads. A point that fails leaves its
 * message, and the rest goes on. All that is shared (journal, results, progress) belongs to the
 * calling thread; the others only compute.
 */
#ifndef CS_SWEEP_SWEEP_H
#define CS_SWEEP_SWEEP_H

#include "sim/base/progress.h"
#include "sim/study/sweep/journal.h"
#include "sim/study/sweep/space.h"
#include "sim/study/sweep/sweep-figures.h"
#include "sim/study/team/team.h"

/* Runs one document and hands out its report, an object. Called by several threads at a time. */
typedef cs_status cs_sweep_function(const void *context, const cJSON *document,
                                    const cs_progress *progress, cJSON **result, cs_error *error);

typedef struct cs_sweep {
    const cJSON *base;
    const char *origin; /* of messages on setting a value: "--vary" */
    cs_space space;
    uint32_t jobs;     /* threads, 1 at least */
    bool keep_results; /* whole reports, not only their figures */
    cs_sweep_function *run;
    const void *context;
    cs_team *team; /* of processes that share the points; NULL: this one is alone */
} cs_sweep;

/* What came of the points. */
typedef struct cs_sweep_results {
    uint32_t n_points, n_done, n_failed; /* the failed ones are done too */
    bool *done;
    char **errors; /* of each point; NULL where it did not fail */
    char *
        *unknown_keys; /* pointer of the first key that nothing has; NULL: no failure, or another */
    cs_journal_place *places; /* of the record in the journal, for cs_sweep_report */
    cs_figure_table figures;
} cs_sweep_results;

CS_MUST_CHECK cs_status cs_sweep_results_init(cs_sweep_results *results, uint32_t n_points,
                                              cs_error *error);
void cs_sweep_results_finish(cs_sweep_results *results);

/* Which sweep it is, for the journal: a hash of all that decides its outcome. `resolved` is the
 * base scenario with the files that it names. */
CS_MUST_CHECK cs_status cs_sweep_identity(const cs_sweep *sweep, const char *resolved,
                                          const char *program_version, uint64_t *identity,
                                          cs_error *error);

/* Opens the journal and takes over what it has, as cs_journal_open says. */
CS_MUST_CHECK cs_status cs_sweep_open(const cs_sweep *sweep, const char *journal_path,
                                      uint64_t identity, bool resume, cs_journal *journal,
                                      cs_sweep_results *results, cs_error *error);

/* Runs the points that are not done, or, in a process that helps, those that it is given: then
 * there are neither journal (zeroed, with file -1) nor results. CS_OK also where points failed;
 * CS_INTERRUPTED, CS_IO and CS_NO_MEMORY end it early, and the journal has what was done. */
CS_MUST_CHECK cs_status cs_sweep_run(const cs_sweep *sweep, const cs_progress *progress,
                                     cs_journal *journal, cs_sweep_results *results,
                                     cs_error *error);

/* The report of a point that did not fail, JSON on one line; the caller frees it. With
 * keep_results only. */
CS_MUST_CHECK cs_status cs_sweep_report(const cs_journal *journal, const cs_sweep_results *results,
                                        uint32_t point, char **text, cs_error *error);

#endif

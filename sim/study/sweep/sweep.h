/* Parameter sweeps: one scenario at many points, in threads.
 *
 * Every point is its own document, made from the base document and the point's values, and run by a
 * function of the caller's that shares nothing between calls. So the result of a point depends
 * neither on other points nor on the number of threads. If a point fails, its message is kept and
 * the others continue. All shared state (journal, results, progress) belongs to the calling thread;
 * the other threads only compute.
 */
#ifndef CS_SWEEP_SWEEP_H
#define CS_SWEEP_SWEEP_H

#include "sim/base/progress.h"
#include "sim/study/sweep/journal.h"
#include "sim/study/sweep/space.h"
#include "sim/study/sweep/sweep-figures.h"
#include "sim/study/team/team.h"

/* Runs one document and returns its report, an object. Called by several threads at a time. */
typedef cs_status cs_sweep_function(const void *context, const cJSON *document,
                                    const cs_progress *progress, cJSON **result, cs_error *error);

typedef struct cs_sweep {
    const cJSON *base;
    const char *origin; /* beginning of messages about setting a value: "--vary" */
    cs_space space;
    uint32_t jobs;     /* threads, at least 1 */
    bool keep_results; /* keep whole reports, not only their metrics */
    cs_sweep_function *run;
    const void *context;
    cs_team *team; /* processes that share the points; NULL: only this one */
} cs_sweep;

/* Results of the points. */
typedef struct cs_sweep_results {
    uint32_t n_points, n_done, n_failed; /* n_done includes the failed points */
    bool *done;
    char **errors; /* per point; NULL: did not fail */
    char *
        /* per point: pointer of the first unknown key; NULL: no failure, or another one */
        *unknown_keys;
    cs_journal_place *places; /* per point: record in the journal, for cs_sweep_report */
    cs_figure_table figures;
} cs_sweep_results;

CS_MUST_CHECK cs_status cs_sweep_results_init(cs_sweep_results *results, uint32_t n_points,
                                              cs_error *error);
void cs_sweep_results_finish(cs_sweep_results *results);

/* Hash of everything that determines the sweep's results, to identify its journal. `resolved` is
 * the scenario's resolved text. */
CS_MUST_CHECK cs_status cs_sweep_identity(const cs_sweep *sweep, const char *resolved,
                                          const char *program_version, uint64_t *identity,
                                          cs_error *error);

/* Opens the journal and reads its records (see cs_journal_open). */
CS_MUST_CHECK cs_status cs_sweep_open(const cs_sweep *sweep, const char *journal_path,
                                      uint64_t identity, bool resume, cs_journal *journal,
                                      cs_sweep_results *results, cs_error *error);

/* Runs the points without a record. A helper process runs the points that it is given, with a
 * zeroed journal (file -1) and without results. Returns CS_OK even if points failed. After
 * CS_INTERRUPTED, CS_IO or CS_NO_MEMORY, the journal has the finished points. */
CS_MUST_CHECK cs_status cs_sweep_run(const cs_sweep *sweep, const cs_progress *progress,
                                     cs_journal *journal, cs_sweep_results *results,
                                     cs_error *error);

/* Returns the report of a point that did not fail, JSON on one line; the caller frees it. Only
 * with keep_results. */
CS_MUST_CHECK cs_status cs_sweep_report(const cs_journal *journal, const cs_sweep_results *results,
                                        uint32_t point, char **text, cs_error *error);

#endif

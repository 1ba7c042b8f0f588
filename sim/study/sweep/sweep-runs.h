/* A sweep over a scenario: its points are simulated, and what they report is kept.
 *
 *     cs_swept swept;
 *     cs_swept_init(&swept, path);
 *     swept.base = document; and fill swept.sweep.space (space.h), .origin, .jobs, .keep_results
 *     cs_swept_prepare(&swept, error);
 *     cs_sweep_open(&swept.sweep, ...), cs_sweep_run(&swept.sweep, ...)
 *     cs_swept_failures(&swept, &results, &text, error);
 *     cs_swept_finish(&swept);
 */
#ifndef CS_SWEEP_SWEEP_RUNS_H
#define CS_SWEEP_SWEEP_RUNS_H

#include "sim/run/scenario/scenario.h"
#include "sim/study/sweep/sweep.h"

/* Must stay where it is once it was prepared: the points refer to it. */
typedef struct cs_swept {
    const char *path; /* of the scenario */
    cJSON *base;      /* the document, without its "sweep" once prepared */
    cs_sweep sweep;
    char *name, *resolved; /* of the base, or of a point if only together with values it is whole */
    cs_error warnings;     /* about a point */
    cs_kept_platforms *platforms; /* that points have in common */
} cs_swept;

void cs_swept_init(cs_swept *swept, const char *path);
void cs_swept_finish(cs_swept *swept);

/* Reads some of the points: CS_INVALID where none of them has a key that is varied; CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_swept_prepare(cs_swept *swept, cs_error *error);

/* What points failed of: "3 of 8 points failed; the first, ...", which the caller frees; NULL where
 * none did. CS_FAILED with it where all did; CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_swept_failures(const cs_swept *swept, const cs_sweep_results *results,
                                          char **text, cs_error *error);

/* An option of `sim sweep`: "vary", "/schedule/micro_batches=2..32"; the value NULL of a flag. */
typedef struct cs_sweep_word {
    const char *option, *value;
} cs_sweep_word;

/* What was asked for, as a command line for a shell; the caller frees it. NULL when memory runs
 * out.
 */
char *cs_sweep_command(const char *path, const cs_sweep_word *words, size_t n);

#endif

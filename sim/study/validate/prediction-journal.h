/* What came of points so far, on the disk (sim/study/sweep/journal.h): predictions that were stopped at
 * any moment go on from there, and end in the same tables and the same file. */
#ifndef CS_VALIDATE_PREDICTION_JOURNAL_H
#define CS_VALIDATE_PREDICTION_JOURNAL_H

#include "sim/study/validate/predict.h"

/* Opens the journal, and takes over what it has of these very predictions, as cs_journal_open says.
 * To them belong the files that scenarios name: those of the point that takes least are read. */
CS_MUST_CHECK cs_status cs_predictions_open(cs_predictions *predictions, const char *path,
                                            const char *program_version, bool resume,
                                            cs_journal *journal, cs_error *error);

/* ---- for predict.c ---- */

/* The record of a point, either its figures or why it failed, JSON on one line; the caller frees
 * it. NULL when memory runs out. */
char *cs_prediction_record(uint32_t point, const cJSON *figures, const cs_error *why);

/* Takes what came of a point: its figures, or of what it failed, of which the first line counts. */
CS_MUST_CHECK cs_status cs_prediction_take(cs_predictions *predictions, uint32_t point,
                                           const cJSON *figures, const char *why, cs_error *error);

/* Passes of all micro-batches of a point over all devices: how long it takes, roughly. */
double cs_prediction_cost(const cs_predictions *predictions, uint32_t point);

#endif

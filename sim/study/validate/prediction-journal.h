/* Predictions made so far, stored on disk (sim/study/sweep/journal.h). If predictions are
 * interrupted at any moment, the next run continues from there and produces the same tables and
 * file. */
#ifndef CS_VALIDATE_PREDICTION_JOURNAL_H
#define CS_VALIDATE_PREDICTION_JOURNAL_H

#include "sim/study/validate/predict.h"

/* Opens the journal and takes its results if it belongs to these predictions (see cs_journal_open).
 * Their identity includes the files that scenarios name; these are read from the scenario of the
 * cheapest point. */
CS_MUST_CHECK cs_status cs_predictions_open(cs_predictions *predictions, const char *path,
                                            const char *program_version, bool resume,
                                            cs_journal *journal, cs_error *error);

/* ---- for predict.c ---- */

/* Makes the record of a point, either its values or the reason why it failed, as JSON on one line.
 * The caller frees it. NULL if memory runs out. */
char *cs_prediction_record(uint32_t point, const cJSON *figures, const cs_error *why);

/* Takes the result of a point: its values, or the first line of its error message. */
CS_MUST_CHECK cs_status cs_prediction_take(cs_predictions *predictions, uint32_t point,
                                           const cJSON *figures, const char *why, cs_error *error);

/* Returns an estimate of how long a point takes: the passes of all its micro-batches over all
 * devices. */
double cs_prediction_cost(const cs_predictions *predictions, uint32_t point);

#endif

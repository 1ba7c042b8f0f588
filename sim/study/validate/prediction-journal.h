/* Predictions made so far, on disk (sim/study/sweep/journal.h). Predictions interrupted at any
 * moment continue from there and produce the same tables and file. */
#ifndef CS_VALIDATE_PREDICTION_JOURNAL_H
#define CS_VALIDATE_PREDICTION_JOURNAL_H

#include "sim/study/validate/predict.h"

/* Opens the journal and takes over its results if it belongs to these predictions (see
 * cs_journal_open). The files that scenarios name are part of their identity; those of the cheapest
 * point are read. */
CS_MUST_CHECK cs_status cs_predictions_open(cs_predictions *predictions, const char *path,
                                            const char *program_version, bool resume,
                                            cs_journal *journal, cs_error *error);

/* ---- for predict.c ---- */

/* The record of a point, either its figures or why it failed, JSON on one line; the caller frees
 * it. NULL when memory runs out. */
char *cs_prediction_record(uint32_t point, const cJSON *figures, const cs_error *why);

/* Takes the result of a point: its values, or the first line of its error message. */
CS_MUST_CHECK cs_status cs_prediction_take(cs_predictions *predictions, uint32_t point,
                                           const cJSON *figures, const char *why, cs_error *error);

/* Passes of all micro-batches of a point over all devices: how long it takes, roughly. */
double cs_prediction_cost(const cs_predictions *predictions, uint32_t point);

#endif

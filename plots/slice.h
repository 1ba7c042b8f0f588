/* Slices of a sweep: keys are fixed at one value each (`sim plot --at /key=VALUE`), so that at most
 * two keys remain to be drawn. */
#ifndef CS_PLOTS_SLICE_H
#define CS_PLOTS_SLICE_H

#include "plots/sheet.h"

/* Fixes the keys that options->at names. `names` are the axes of `array`, one per dimension; the
 * function removes the fixed keys from both. Writes the fixed keys, "/a=1, /b=2", to `text`.
 * CS_USAGE if the sweep lacks a key or value. */
CS_MUST_CHECK cs_status cs_slice_take(const cs_sheet *sheet, const char **names,
                                      cs_reader_array *array, char *text, size_t size,
                                      cs_error *error);

/* Fails with an error that lists the varied keys; only two can be drawn. */
cs_status cs_slice_too_many(const cs_sheet *sheet, const char *const *names, uint32_t n,
                            cs_error *error);

#endif

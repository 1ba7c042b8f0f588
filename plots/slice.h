/* A part of a sweep: keys that are fixed at one of their values each (`sim plot --at /key=VALUE`),
 * so that no more than two are left to draw. */
#ifndef CS_PLOTS_SLICE_H
#define CS_PLOTS_SLICE_H

#include "plots/sheet.h"

/* Takes from `array`, whose dimensions are the axes `names`, what options->at asks for: the array
 * and the names become those of the keys that are left. Writes "/a=1, /b=2" into `text`. CS_USAGE
 * where a key or a value is none of the sweep's. */
CS_MUST_CHECK cs_status cs_slice_take(const cs_sheet *sheet, const char **names,
                                      cs_reader_array *array, char *text, size_t size,
                                      cs_error *error);

/* Fails with the keys that vary, of which only two can be drawn. */
cs_status cs_slice_too_many(const cs_sheet *sheet, const char *const *names, uint32_t n,
                            cs_error *error);

#endif

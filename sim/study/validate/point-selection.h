/* Some of the points, by what they are: "dataset=zero-bubble,feature=pp". */
#ifndef CS_VALIDATE_POINT_SELECTION_H
#define CS_VALIDATE_POINT_SELECTION_H

#include "sim/study/validate/points.h"

/* Keys that points are selected by, ended by NULL. */
extern const char *const cs_selection_keys[];

/* The points for which all of `n_texts` texts hold, each a list of KEY=PATTERN separated by commas.
 * A pattern is a shell's (*, ?, [...]), and upper and lower case are the same to it. Of several
 * patterns of one key, one must fit; of several keys, each. The caller frees *selected. CS_USAGE:
 * no such key, or no point is left. */
CS_MUST_CHECK cs_status cs_points_select(const cs_points *points, const char *const *texts,
                                         size_t n_texts, const cs_point ***selected, uint32_t *n,
                                         cs_error *error);

#endif

/* Selection of points by their properties: "dataset=zero-bubble,feature=pp". */
#ifndef CS_VALIDATE_POINT_SELECTION_H
#define CS_VALIDATE_POINT_SELECTION_H

#include "sim/study/validate/points.h"

/* Keys for selecting points, NULL-terminated. */
extern const char *const cs_selection_keys[];

/* Selects the points that match all `n_texts` texts, each a list of KEY=PATTERN separated by
 * commas. */
CS_MUST_CHECK cs_status cs_points_select(const cs_points *points, const char *const *texts,
                                         size_t n_texts, const cs_point ***selected, uint32_t *n,
                                         cs_error *error);

#endif

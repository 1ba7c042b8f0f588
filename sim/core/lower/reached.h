/* What part of the links' bandwidths collectives reach: the same everywhere, or by level, as
 * NVLinks and networks do not reach the same. A message takes as many times longer as its level
 * does not reach; messages of a round at different levels take as long as the slowest. */
#ifndef CS_LOWER_REACHED_H
#define CS_LOWER_REACHED_H

#include "sim/base/field.h"
#include "sim/core/lower/round.h"

typedef struct cs_reached {
    double all;                /* > 0, at most 1; or 0: by level: */
    double level[CS_N_LEVELS]; /* > 0, at most 1; or 0: nothing is given */
} cs_reached;

/* A number for all levels, or an object with one for each, in which a level that is left out has
 * that of the next nearer one; 1 where there is none. */
extern const cs_field_kind cs_reached_kind;

/* "gpu_pair", "node", "rack", "system" */
extern const char *const cs_level_names[CS_N_LEVELS];

/* By level, of length CS_N_LEVELS; NULL where it is the same everywhere, or not given. */
const double *cs_reached_levels(const cs_reached *reached);

/* Sets what messages between nodes reach. */
void cs_reached_between_nodes(cs_reached *reached, double part);

/* Whether anything is less than the whole bandwidth. */
bool cs_reached_is_less(const cs_reached *reached);

#endif

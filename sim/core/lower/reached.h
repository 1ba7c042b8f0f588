/* Fraction of the links' bandwidth that collectives reach: one value, or one per level, because
 * NVLinks and networks differ. A message takes 1 / fraction times as long on its level; a round
 * takes as long as its slowest message. */
#ifndef CS_LOWER_REACHED_H
#define CS_LOWER_REACHED_H

#include "sim/base/field.h"
#include "sim/core/lower/round.h"

typedef struct cs_reached {
    double all;                /* in (0, 1]; 0: by level */
    double level[CS_N_LEVELS]; /* in (0, 1]; 0: not given */
} cs_reached;

/* A number for all levels, or an object with one per level. A level left out has the value of the
 * next nearer level, or 1 if there is none. */
extern const cs_field_kind cs_reached_kind;

/* "gpu_pair", "node", "rack", "system" */
extern const char *const cs_level_names[CS_N_LEVELS];

/* Fractions by level, of length CS_N_LEVELS; NULL if all are equal or none is given. */
const double *cs_reached_levels(const cs_reached *reached);

/* Sets the fraction for messages between nodes. */
void cs_reached_between_nodes(cs_reached *reached, double part);

/* Whether any fraction is below 1. */
bool cs_reached_is_less(const cs_reached *reached);

#endif

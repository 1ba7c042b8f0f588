/* Random chains for planners, with small whole numbers, so that ties and zeros are frequent. */
#ifndef CS_TESTS_RANDOM_CHAIN_H
#define CS_TESTS_RANDOM_CHAIN_H

#include "schedules/plan/pattern.h"

#include <gsl/gsl_rng.h>

typedef struct random_chain_limits {
    uint32_t layers, devices;      /* from 1 to these */
    uint32_t time, message, bytes; /* maxima for a layer or boundary */
} random_chain_limits;

/* 0 .. most */
uint32_t random_up_to(gsl_rng *rng, uint32_t most);

/* With unlimited memory. Finish it with cs_chain_finish. */
cs_chain random_chain(gsl_rng *rng, const random_chain_limits *limits);

/* The same with just as many layers and devices as the limits say. */
cs_chain random_chain_full(gsl_rng *rng, const random_chain_limits *limits);

/* Cuts the chain at random into at most `most_stages`. Each stage is on a device of its own, or,
 * where `anywhere`, on any of the chain's. */
cs_plan random_plan(gsl_rng *rng, const cs_chain *chain, uint32_t most_stages, bool anywhere);

/* The next cut of n_layers into n_stages (cuts[0] == 0, cuts[n_stages] == n_layers), or false. The
 * first one is 0, 1, 2, ..., n_layers. */
void first_cuts(uint32_t *cuts, uint32_t n_stages, uint32_t n_layers);
bool next_cuts(uint32_t *cuts, uint32_t n_stages);

#endif

/* Small random chains and plans, and the smallest period of a plan by trying everything. */
#ifndef CS_TESTS_TINY_CHAIN_H
#define CS_TESTS_TINY_CHAIN_H

#include "schedules/plan/pattern.h"

#include <gsl/gsl_rng.h>

enum { TINY_LAYERS = 8 };

typedef struct tiny_limits {
    uint32_t layers, devices;      /* 1 .. these */
    uint32_t time, message, bytes; /* 0 .. these */
    bool ends_with_time;           /* the last backward takes 1 more */
} tiny_limits;

/* A chain whose arrays are in the same struct; it cannot be copied. */
typedef struct tiny_chain {
    cs_chain chain;
    cs_time forward[TINY_LAYERS + 1], backward[TINY_LAYERS + 1], message[TINY_LAYERS + 1];
    int64_t fixed[TINY_LAYERS + 1], kept[TINY_LAYERS + 1], boundary[TINY_LAYERS + 1];
} tiny_chain;

/* Memory is drawn between what is too little for any plan and what is enough for most. */
void tiny_chain_make(gsl_rng *rng, const tiny_limits *limits, tiny_chain *tiny);

/* At most TINY_LAYERS stages, each on any device; if `contiguous`, each on a device of its own. */
typedef struct tiny_plan {
    cs_plan plan;
    cs_stage stages[TINY_LAYERS];
    uint32_t devices[TINY_LAYERS];
} tiny_plan;

void tiny_plan_make(gsl_rng *rng, const cs_chain *chain, bool contiguous, tiny_plan *tiny);

/* The smallest period of any pattern, below `below`: all starts of all operations in whole
 * picoseconds are tried, for one period after the other, up to one micro-batch after the other. 0:
 * there is none; -1: this took more than `most_steps`. Periods of 1 to 62 ps.
 *
 * Whole starts are enough: when order and shifts are fixed, the conditions are differences of two
 * times against whole numbers, if the period is one. */
cs_time tiny_best_period(const cs_chain *chain, const cs_plan *plan, cs_time below,
                         int64_t most_steps);

#endif

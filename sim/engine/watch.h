/* What a run is like when each mini-batch begins, so that a run that has become periodic is known
 * by it (sim/run/steady-run.h).
 *
 * The state is looked at when the first task of a mini-batch, by id, has ended and that instant is
 * over. It is all on which the rest of the run depends, as differences from that time, that
 * task, that item and, of versions, from the current one of the first of all slots between which
 * versions are passed on:
 *   - of the tasks that have not ended, or have others before them that have not: whether they have
 *     started and when, and for how many they still wait
 *   - the events to come; what each device computes, will compute next, and has ready
 *   - when tasks may start at the earliest
 *   - bytes that are live, by device and category
 *   - current and held versions of the weights, and what registers hold for items to come
 *   - of each message on its way: what is left of it, its rate and since when; the order in which
 *     messages stand on links
 * Times are integers, and no rate depends on the time but by differences: of two equal states the
 * same follows, to the bit, if the same tasks follow. */
#ifndef CS_ENGINE_WATCH_H
#define CS_ENGINE_WATCH_H

#include "sim/graph/graph.h"

typedef struct cs_watched {
    cs_time time;  /* -1: the run did not get there */
    uint32_t task; /* the first one of the mini-batch */
    uint32_t from,
        to; /* the lowest task that had not ended; 1 + the highest that anything was known of */
    uint64_t first; /* of its words in cs_watch */
    uint64_t n;
} cs_watched;

typedef struct cs_watch {
    cs_watched *batches; /* per mini-batch */
    uint32_t n;
    int64_t *words;
    uint64_t n_words, cap_words;
    uint32_t *roots; /* per slot: the first of those that it passes versions to or gets them from */
    uint32_t
        *register_roots; /* per register: that of the slots whose versions it holds, or CS_NONE */
    bool *counts;        /* per root: versions follow from the number of a mini-batch */
    bool failed;         /* memory ran out: states are missing */
} cs_watch;

void cs_watch_finish(cs_watch *watch);

/* Whether two states are equal. */
bool cs_watch_equal(const cs_watch *watch, uint32_t batch, uint32_t other);

/* For who adds to a state. */
void cs_watch_put(cs_watch *watch, int64_t word);
void cs_watch_put_double(cs_watch *watch, double value);

#endif

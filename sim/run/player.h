/* Plays the tasks of one device on an allocator (allocations.h). Internal to sim/run. */
#ifndef CS_RUN_PLAYER_H
#define CS_RUN_PLAYER_H

#include "sim/run/allocations.h"

typedef struct cs_player cs_player;

/* With a history, what the allocator does is added to it, with labels that the player owns. All
 * that is given must live as long. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_player_create(const cs_scenario *scenario, const cs_graph *graph,
                                         uint32_t device, cs_history *history, cs_player **player,
                                         cs_error *error);
void cs_player_destroy(cs_player *player);

/* Allocates what is there from the start, but for states that the first update makes. */
CS_MUST_CHECK cs_status cs_player_begin(cs_player *player, cs_error *error);

/* The next moment of a task on the device. */
CS_MUST_CHECK cs_status cs_player_step(cs_player *player, uint32_t task, bool ends, cs_time time,
                                       cs_error *error);

/* Frees what the run left behind; the first time, allocates the states that an update makes. */
CS_MUST_CHECK cs_status cs_player_end_round(cs_player *player, cs_error *error);

const cs_caching_stats *cs_player_stats(const cs_player *player);
const cs_failed_allocation *cs_player_failure(const cs_player *player);

/* How many allocations had been made when the most memory was reserved for the first time. */
uint64_t cs_player_peak_at(const cs_player *player);

CS_MUST_CHECK cs_status cs_player_snapshot(const cs_player *player, const char *path,
                                           cs_error *error);

#endif

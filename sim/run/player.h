/* Plays the tasks of one device on an allocator (allocations.h). Internal to sim/run. */
#ifndef CS_RUN_PLAYER_H
#define CS_RUN_PLAYER_H

#include "sim/run/allocations.h"

typedef struct cs_player cs_player;

/* When an observer looks at the segments: right after the allocation with which the most memory is
 * reserved for the first time; and when an allocation fails for the first time. */
typedef enum cs_player_moment {
    CS_PLAYER_PEAK,
    CS_PLAYER_FAILURE,
    CS_N_PLAYER_MOMENTS
} cs_player_moment;

/* Who watches a player; members may be NULL. What the functions return is returned by the
 * player. */
typedef struct cs_player_watch {
    cs_history *history; /* gets what the allocator does, with labels that the player owns */
    uint64_t peak_at;    /* cs_device_allocations.peak_at of an earlier play of the same run */
    cs_status (*see)(void *context, const cs_player *player, const cs_caching_event *event);
    cs_status (*look)(void *context, cs_player *player, cs_player_moment moment, cs_error *error);
    void *context;
} cs_player_watch;

/* `capacity`: bytes that segments may have together. `watch` may be NULL. All that is given must
 * live as long. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_player_create(const cs_scenario *scenario, const cs_graph *graph,
                                         uint32_t device, int64_t capacity,
                                         const cs_player_watch *watch, cs_player **player,
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

/* Result of a run that was played, except for `played_as`. */
void cs_player_sum_up(const cs_player *player, cs_device_allocations *made);

/* The time of the moment that is played; from the makespan on it is of the second round. */
cs_time cs_player_time(const cs_player *player);

/* What a block that is allocated is for. */
typedef struct cs_block_owner {
    uint32_t task; /* that allocated it; CS_NONE: it is there from the start */
    uint32_t category;
} cs_block_owner;

/* Calls `visit` for each segment, as cs_caching_visit does; for a player that is watched. The
 * owners are by the ids of blocks. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_player_visit(cs_player *player,
                                        bool (*visit)(void *context, const cs_segment_view *view,
                                                      const cs_block_owner *owners),
                                        void *context, cs_error *error);

/* With a history. CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_player_snapshot(const cs_player *player, const char *path,
                                           cs_error *error);

/* Plays a finished run on a device that was simulated, and says what came of it (but for
 * `played_as`). CS_NO_MEMORY, and what the watch returns. */
CS_MUST_CHECK cs_status cs_player_play(const cs_scenario *scenario, const cs_graph *graph,
                                       const cs_trace *trace, uint32_t device, int64_t capacity,
                                       const cs_player_watch *watch, cs_device_allocations *made,
                                       cs_error *error);

#endif

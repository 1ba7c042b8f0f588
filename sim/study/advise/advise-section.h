/* The section "advise" of a scenario: which plans are tried. Each list names the values of an axis;
 * one that is left out has the defaults that candidates.h tells. */
#ifndef CS_ADVISE_ADVISE_SECTION_H
#define CS_ADVISE_ADVISE_SECTION_H

#include "sim/base/field.h"

/* What is computed again in the backward. */
typedef enum cs_advise_recompute {
    CS_RECOMPUTE_NONE,
    CS_RECOMPUTE_SELECTIVE, /* operators that the scenario lists, else usual ones (selective.h) */
    CS_RECOMPUTE_FULL,      /* every layer */
    CS_N_RECOMPUTES
} cs_advise_recompute;

/* Which of two axes has the nearer devices. */
typedef enum cs_advise_order {
    CS_ORDER_DATA,
    CS_ORDER_PIPELINE,
    CS_N_ADVISE_ORDERS
} cs_advise_order;

/* As they stand in scenarios, in step with the enumerations; ended by NULL. */
extern const char *const cs_advise_recompute_names[], *const cs_advise_order_names[];

typedef struct cs_advise_section {
    cs_list devices, tensor, filter, channel, space, context, pipeline, expert; /* uint32_t */
    cs_list zero, micro_batch, stages_per_device;                               /* uint32_t */
    cs_list bucket;                                                             /* int64_t */
    cs_list recompute, inner; /* uint32_t, of the enumerations */
    cs_list schedules;        /* uint32_t: positions in cs_schedules */
    bool sequence_parallel, osdp;
    bool exact;          /* each device of plans whose replicas differ is simulated by itself */
    int64_t memory;      /* bytes of a device; 0: the platform's */
    double device_price; /* of an hour; NaN: not known */
    double front;        /* plans up to so many times slower than the best are on the front */
} cs_advise_section;

extern const cs_field cs_advise_fields[];

/* Reads it; with `value` NULL all defaults. Lists live in the arena. */
CS_MUST_CHECK cs_status cs_advise_section_read(const cJSON *value, const char *path,
                                               cs_arena *arena, cs_advise_section *section,
                                               cs_error *error);

#endif

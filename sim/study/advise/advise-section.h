/* The section "advise" of a scenario: the plans to try. Each list has the values of an axis; a list
 * that is left out has the defaults described in candidates.h. */
#ifndef CS_ADVISE_ADVISE_SECTION_H
#define CS_ADVISE_ADVISE_SECTION_H

#include "sim/base/field.h"

/* Operators recomputed in the backward. */
typedef enum cs_advise_recompute {
    CS_RECOMPUTE_NONE,
    CS_RECOMPUTE_SELECTIVE, /* operators that the scenario lists, or usual ones (selective.h) */
    CS_RECOMPUTE_FULL,      /* all operators of every layer */
    CS_N_RECOMPUTES
} cs_advise_recompute;

/* Which of the two axes has its devices closer together. */
typedef enum cs_advise_order {
    CS_ORDER_DATA,
    CS_ORDER_PIPELINE,
    CS_N_ADVISE_ORDERS
} cs_advise_order;

/* Names in scenarios, in the order of the enumerations, NULL-terminated. */
extern const char *const cs_advise_recompute_names[], *const cs_advise_order_names[];

typedef struct cs_advise_section {
    /* values to try, uint32_t each */
    cs_list devices, tensor, filter, channel, space, context, pipeline, expert;
    /* values to try, uint32_t each */
    cs_list zero, micro_batch, stages_per_device;
    /* bytes to try, int64_t each */
    cs_list bucket;
    cs_list recompute, inner; /* values of the enumerations to try, uint32_t each */
    cs_list schedules;        /* entries: uint32_t, positions in cs_schedules */
    bool sequence_parallel, osdp;
    bool exact;          /* whether plans with unequal replicas are simulated with every device */
    int64_t memory;      /* bytes per device; 0: the platform's */
    double device_price; /* price per device and hour; NaN: unknown */
    double front;        /* largest time of a plan on the front, as a multiple of the best time */
} cs_advise_section;

extern const cs_field cs_advise_fields[];

/* Reads the section; if `value` is NULL, sets all defaults. The arena owns the lists. */
CS_MUST_CHECK cs_status cs_advise_section_read(const cJSON *value, const char *path,
                                               cs_arena *arena, cs_advise_section *section,
                                               cs_error *error);

#endif

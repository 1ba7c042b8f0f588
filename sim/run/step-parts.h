/* The parts of a step's time, which add up to it, as a mean over all devices.
 *
 * The time of a device until the end of the step is partitioned as in analysis.h. Computing time is
 * further split by kind of kernel, according to the layers of its stages (model.h), and into the
 * slowdown by communication and the optimizer's update.
 *
 *   step = products + attention + memory-bound + launch gaps + other computing + slowed + optimizer
 *        + exposed communication, by purpose + bubble
 *
 * Launch gaps include the host's time per step (cs_states_host). The bubble is the time spent
 * waiting for other devices' computations, and for the end of the step. Messages after the last
 * computation, if they are part of the step, are exposed communication of weights. */
#ifndef CS_RUN_STEP_PARTS_H
#define CS_RUN_STEP_PARTS_H

#include "sim/run/simulate.h"

typedef enum cs_step_part {
#define CS_PART_OF_KERNEL(name, text) CS_PART_##name,
    CS_KERNEL_MAP(CS_PART_OF_KERNEL)
#undef CS_PART_OF_KERNEL
        CS_PART_COMPUTING, /* layers whose kernels are not known */
    CS_PART_SLOWED,
    CS_PART_OPTIMIZER,
#define CS_PART_OF_PURPOSE(name, text) CS_PART_FOR_##name,
    CS_PURPOSE_MAP(CS_PART_OF_PURPOSE)
#undef CS_PART_OF_PURPOSE
        CS_PART_BUBBLE,
    CS_N_STEP_PARTS
} cs_step_part;

/* Names: "products", ..., "bubble", ended by NULL; keys: "products", ..., "for_stages", ... */
extern const char *const cs_step_part_names[];
extern const char *const cs_step_part_keys[];

typedef struct cs_step_parts {
    double seconds[CS_N_STEP_PARTS];
    double step; /* s, sum of all parts */
} cs_step_parts;

/* Finds the parts of a step. With `behind` the step ends when all messages have ended; else with
 * the last computation: the next step's first forward then overlaps the messages that follow
 * (weights), as long as it takes. For a run of several steps, their mean. */
cs_step_parts cs_step_parts_find(const cs_scenario *scenario, const cs_simulation *simulation,
                                 bool behind);

#endif

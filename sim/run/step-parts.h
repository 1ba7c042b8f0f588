/* Where the time of a step goes: parts that add up to it.
 *
 * A mean over all devices. Of each, the time to the end of the step is divided without gap or
 * overlap, as analysis.h has it, and what it computes further: by kernels as the layers of its
 * stages are made of them (model.h), in so far as communication does not make them longer, which is
 * a part of its own, and the optimizer's update.
 *
 *   step = products + attention + memory-bound + launch gaps + other computing + slowed + optimizer
 *        + exposed communication, by purpose + bubble
 *
 * Launch gaps have, besides those of layers, what the host takes once a step (cs_states_host). The
 * bubble is waiting for others that compute, and for the others' end. What is sent behind the
 * last computation, where it is part of the step, is exposed communication of weights.
 */
#ifndef CS_RUN_STEP_PARTS_H
#define CS_RUN_STEP_PARTS_H

#include "sim/run/simulate.h"

typedef enum cs_step_part {
#define CS_PART_OF_KERNEL(name, text) CS_PART_##name,
    CS_KERNEL_MAP(CS_PART_OF_KERNEL)
#undef CS_PART_OF_KERNEL
        CS_PART_COMPUTING, /* of layers whose kernels are not known */
    CS_PART_SLOWED,
    CS_PART_OPTIMIZER,
#define CS_PART_OF_PURPOSE(name, text) CS_PART_FOR_##name,
    CS_PURPOSE_MAP(CS_PART_OF_PURPOSE)
#undef CS_PART_OF_PURPOSE
        CS_PART_BUBBLE,
    CS_N_STEP_PARTS
} cs_step_part;

/* "products", ..., "bubble", ended by NULL; and as keys: "products", ..., "for_stages", ... */
extern const char *const cs_step_part_names[];
extern const char *const cs_step_part_keys[];

typedef struct cs_step_parts {
    double seconds[CS_N_STEP_PARTS];
    double step; /* s, what they add up to */
} cs_step_parts;

/* Of the step from the run's start: with `behind` to the end of all that is sent; else to the end
 * of the last computation, and what is sent then, weights for the next step, is hidden by that
 * one's first forward, as long as that takes. Of a run of several steps, of one of them: their
 * mean. */
cs_step_parts cs_step_parts_find(const cs_scenario *scenario, const cs_simulation *simulation,
                                 bool behind);

#endif

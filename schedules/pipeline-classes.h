/* The classes of a pipeline's tasks: times, memory, messages, policies. Internal to pipeline.c. */
#ifndef CS_SCHEDULES_PIPELINE_CLASSES_H
#define CS_SCHEDULES_PIPELINE_CLASSES_H

#include "schedules/pipeline.h"

/* Of one stage. */
typedef struct cs_stage_classes {
    uint32_t forward, update;
    uint32_t recompute;                       /* or CS_NONE */
    uint32_t backward;                        /* whole */
    uint32_t backward_input, backward_weight; /* its halves */
    uint32_t send_forward;  /* to the next stage; CS_NONE at the end or on the same device */
    uint32_t send_backward; /* to the stage before */
} cs_stage_classes;

/* The device that holds a stage. */
uint32_t cs_pipeline_device(const cs_job *job, uint32_t stage);

/* Makes the slots of the weights and the classes of all stages; both arrays have one entry per
 * stage. */
void cs_pipeline_make_classes(const cs_job *job, const cs_pipeline_options *options,
                              cs_builder *builder, uint32_t *slots, cs_stage_classes *classes);

#endif

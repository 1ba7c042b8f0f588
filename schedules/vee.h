/* Pipelines with a V-shaped placement: each of P devices holds two stages, device d stages d and 2P
 * - 1 - d, so a micro-batch passes down all devices and back up. With more stages cs_vee_holders
 * continues the zigzag. Internal to zb-v.c, dualpipe-v.c and hanayo.c. */
#ifndef CS_SCHEDULES_VEE_H
#define CS_SCHEDULES_VEE_H

#include "schedules/pipeline.h"

enum { CS_VEE_STAGES = 2 }; /* number of stages per device */

/* Mesh of schedules with V-shaped placement. */
#define CS_VEE_MESH                                                                                \
    {                                                                                              \
        .pipeline = CS_LENGTH_RULE, .ranks = cs_vee_ranks, .n_stages = cs_vee_n_stages,            \
        .holders = cs_vee_holders                                                                  \
    }
uint32_t cs_vee_ranks(const void *params, uint32_t n_layers);
uint32_t cs_vee_n_stages(const void *params, uint32_t n_ranks);
uint32_t cs_vee_holders(const void *params, uint32_t n_ranks, uint32_t stage, uint32_t *held);

/* Passes of one device, in order. */
typedef struct cs_vee_list {
    uint32_t n_devices, device, n_micros;
    uint32_t n;
    cs_pipeline_step *steps;
} cs_vee_list;

/* Adds a pass of the device's first or second stage; does nothing if the micro-batch does not
 * exist. */
void cs_vee_add(cs_vee_list *list, bool second, cs_kind kind, uint32_t micro_batch);

/* Makes the task graph from lists that `fill` makes, one per device. Backwards may be split.
 * `pairs` as in cs_pipeline_options. */
typedef void cs_vee_fill(cs_vee_list *list);
CS_MUST_CHECK cs_status cs_vee_generate(const cs_job *job, cs_vee_fill *fill, bool pairs,
                                        cs_builder *builder, cs_error *error);

/* Adds the peak of saved activations for every device: the bytes of `at_once` micro-batches of one
 * stage, valid if `applies` and all stages keep the same number of bytes. `assumes` states this in
 * words. */
CS_MUST_CHECK cs_status cs_vee_add_peaks(const cs_job *job, const cs_form *like, int64_t at_once,
                                         cs_forms *forms, cs_error *error);

#endif

/* Pipelines whose stages lie on the devices like a V: each of P devices holds two stages, device d
 * those numbered d and 2P - 1 - d, so that a micro-batch goes down all devices and back up.
 * Internal to zb-v.c and dualpipe-v.c.
 */
#ifndef CS_SCHEDULES_VEE_H
#define CS_SCHEDULES_VEE_H

#include "schedules/pipeline.h"

enum { CS_VEE_STAGES = 2 }; /* of a device */

/* The mesh of such a schedule, and what it consists of. */
#define CS_VEE_MESH                                                                                \
    {                                                                                              \
        .pipeline = CS_LENGTH_RULE, .ranks = cs_vee_ranks, .n_stages = cs_vee_n_stages,            \
        .holders = cs_vee_holders                                                                  \
    }
uint32_t cs_vee_ranks(const void *params, uint32_t n_layers);
uint32_t cs_vee_n_stages(const void *params, uint32_t n_ranks);
uint32_t cs_vee_holders(const void *params, uint32_t n_ranks, uint32_t stage, uint32_t *held);

/* What one device does, in order. */
typedef struct cs_vee_list {
    uint32_t n_devices, device, n_micros;
    uint32_t n;
    cs_pipeline_step *steps;
} cs_vee_list;

/* A pass of the device's first stage, or of its second. Nothing where there is no such
 * micro-batch. */
void cs_vee_add(cs_vee_list *list, bool second, cs_kind kind, uint32_t micro_batch);

/* The task graph of the lists that `fill` makes, of each device one; backwards may be split.
 * `pairs` as in cs_pipeline_options. */
typedef void cs_vee_fill(cs_vee_list *list);
CS_MUST_CHECK cs_status cs_vee_generate(const cs_job *job, cs_vee_fill *fill, bool pairs,
                                        cs_builder *builder, cs_error *error);

/* Adds the peak of kept activations of every device, of so many micro-batches of one stage: where
 * it `applies` and all stages keep as much. `assumes` says the same to people. */
CS_MUST_CHECK cs_status cs_vee_add_peaks(const cs_job *job, const cs_form *like, int64_t at_once,
                                         cs_forms *forms, cs_error *error);

#endif

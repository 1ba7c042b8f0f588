/* Which devices hold which stages of a schedule: all that its layout decides. */
#ifndef CS_SCHEDULES_MESH_H
#define CS_SCHEDULES_MESH_H

#include "schedules/schedule.h"

/* What a layout lets a scenario say, and what it says by itself. */
typedef struct cs_layout_rules {
    bool partitioned;      /* the user says which layers make a stage */
    bool replicated;       /* each device has all layers, and takes a share of the mini-batch */
    bool layer_per_stage;  /* a model whose number of layers is open has one for each stage */
    bool device_per_layer; /* it runs on as many devices as there are layers, where nobody says */
    bool fills;            /* it takes all devices of a topology that has a number of its own */
    bool any_device;       /* a plan may put any number of stages on a device */
} cs_layout_rules;

const cs_layout_rules *cs_schedule_layout(const cs_schedule *schedule);

/* How many devices a schedule runs on for so many layers where nobody says; 0: that cannot be known.
 */
uint32_t cs_mesh_devices(const cs_schedule *schedule, const void *params, uint32_t n_layers);

/* The stages of a schedule on so many devices. */
typedef struct cs_mesh {
    const cs_schedule *schedule;
    const void *params;
    uint32_t n_devices, n_stages;
    uint32_t n_replicas; /* of all stages, among which the mini-batch is divided */
    bool apart;          /* stages on one device share no weights (cs_plan) */
} cs_mesh;

cs_mesh cs_mesh_make(const cs_schedule *schedule, const void *params, uint32_t n_devices);

/* The devices that hold a stage, at most n_devices, into `devices`; returns how many. Of a layout
 * with `any_device` a plan may say others. */
uint32_t cs_mesh_holders(const cs_mesh *mesh, uint32_t stage, uint32_t *devices);

#endif

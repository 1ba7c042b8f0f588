/* Which devices hold which stages of a schedule: what the shape of its mesh decides, and the grid
 * of a scenario.
 *
 * A schedule places its stages on pipeline ranks. Without a grid a rank is one device (where the
 * whole model is replicated, there is one stage, and each device has it). With a grid a rank is
 * all the places of the grid (sim/model/split.h), and all of them hold the rank's stages. Which
 * device of the platform is which place of which rank, the order of the axes says. */
#ifndef CS_SCHEDULES_MESH_H
#define CS_SCHEDULES_MESH_H

#include "schedules/schedule.h"

/* Whether the schedule has stages, so that somebody says which layers make each. */
bool cs_mesh_has_stages(const cs_schedule *schedule);

/* Whether each device has all layers, and computes a share of the mini-batch. */
bool cs_mesh_is_replicated(const cs_schedule *schedule);

/* Whether a model whose number of layers is open has one for each stage. */
bool cs_mesh_counts_layers(const cs_schedule *schedule);

/* Devices on which alone a schedule runs, without a grid; 0: on any number. */
uint32_t cs_mesh_only(const cs_schedule *schedule, const void *params, uint32_t n_layers);

/* How many devices a schedule runs on for so many layers where nobody says; 0: that cannot be
 * known. Layers of a network are `fine`: hardly anybody means one for each device. */
uint32_t cs_mesh_devices(const cs_schedule *schedule, const void *params, uint32_t n_layers,
                         bool fine);

/* Whether it takes all devices of a topology that has a number of its own. */
bool cs_mesh_fills(const cs_schedule *schedule, const void *params, bool fine);

/* The axes whose order says how devices are numbered: those of a grid, space being one, and that of
 * pipeline ranks. */
typedef enum cs_mesh_axis {
    CS_MESH_TENSOR,
    CS_MESH_SPACE,
    CS_MESH_CONTEXT,
    CS_MESH_DATA,
    CS_MESH_PIPELINE,
    CS_N_MESH_AXES
} cs_mesh_axis;

/* "tensor", "space", "context", "data", "pipeline", ended by NULL. */
extern const char *const cs_mesh_axis_names[];

/* The size of an axis on so many pipeline ranks. */
uint32_t cs_mesh_axis_size(const cs_grid *grid, uint32_t n_ranks, cs_mesh_axis axis);

/* Where the places of a grid on so many pipeline ranks are. Device numbers count through the axes
 * as `order` (a permutation of cs_mesh_axis) lists them, the first one fastest; with `map`, a
 * permutation of the numbers, device number d is map[d]. Fills devices[rank * places + place]. */
void cs_mesh_number(const cs_grid *grid, uint32_t n_ranks, const uint32_t order[CS_N_MESH_AXES],
                    const uint32_t *map, uint32_t *devices);

/* The stages of a schedule on so many devices. */
typedef struct cs_mesh {
    const cs_schedule *schedule;
    const void *params;
    uint32_t n_devices, n_stages;
    uint32_t n_ranks;    /* pipeline ranks: what the schedule places its stages on */
    uint32_t n_places;   /* devices of a rank; 1 without a grid */
    uint32_t n_replicas; /* of all stages, among which the mini-batch is divided */
    bool apart;          /* stages on one device share no weights (cs_plan) */
    bool placed;         /* it says which devices hold a stage; else a plan may */
    bool planned;        /* a plan puts any number of stages on a device */
    const cs_grid *grid; /* of each rank; NULL: a rank is a device */
    const uint32_t
        *devices; /* place i of rank r is devices[r * n_places + i]; NULL: rank r is device
                              * r */
} cs_mesh;

cs_mesh cs_mesh_make(const cs_schedule *schedule, const void *params, uint32_t n_devices);

/* The same on a grid, with what cs_mesh_number filled, which must live as long. */
cs_mesh cs_mesh_make_grid(const cs_schedule *schedule, const void *params, const cs_grid *grid,
                          uint32_t n_ranks, const uint32_t *devices);

/* The devices that hold a stage, in order of places, into `devices`; returns how many: n_places
 * with a grid, else at most n_devices. */
uint32_t cs_mesh_holders(const cs_mesh *mesh, uint32_t stage, uint32_t *devices);

#endif

/* Which devices hold which stages of a schedule, from the shape of its mesh and the scenario's
 * grid.
 *
 * A schedule places its stages on pipeline ranks. Without a grid a rank is one device (if the whole
 * model is replicated, there is one stage, and each device has it). With a grid a rank consists of
 * all places of the grid (sim/model/split.h), and all of them hold the rank's stages. The order of
 * the axes determines how the places of the ranks are assigned to the platform's devices. */
#ifndef CS_SCHEDULES_MESH_H
#define CS_SCHEDULES_MESH_H

#include "schedules/schedule.h"

/* Whether the schedule has stages, so that layers have to be assigned to them. */
bool cs_mesh_has_stages(const cs_schedule *schedule);

/* Whether each device has all layers and computes a share of the mini-batch. */
bool cs_mesh_is_replicated(const cs_schedule *schedule);

/* Whether the number of stages sets the number of layers of a model that leaves it open. */
bool cs_mesh_counts_layers(const cs_schedule *schedule);

/* Returns the only number of devices that a schedule runs on without a grid; 0: any number. */
uint32_t cs_mesh_only(const cs_schedule *schedule, const void *params, uint32_t n_layers);

/* Returns the default number of devices for n_layers layers; 0: none. `fine`: the layers
 * come from a network, so one device per layer is rarely intended. */
uint32_t cs_mesh_devices(const cs_schedule *schedule, const void *params, uint32_t n_layers,
                         bool fine);

/* Whether the schedule uses all devices of a topology with a fixed number of devices. */
bool cs_mesh_fills(const cs_schedule *schedule, const void *params, bool fine);

/* Axes that determine how devices are numbered: the axes of a grid (space counts as one) and the
 * pipeline ranks. */
typedef enum cs_mesh_axis {
    CS_MESH_TENSOR,
    CS_MESH_SPACE,
    CS_MESH_CONTEXT,
    CS_MESH_DATA,
    CS_MESH_PIPELINE,
    CS_N_MESH_AXES
} cs_mesh_axis;

/* "tensor", "space", "context", "data", "pipeline"; NULL-terminated */
extern const char *const cs_mesh_axis_names[];

/* Returns the size of an axis, for `n_ranks` pipeline ranks. */
uint32_t cs_mesh_axis_size(const cs_grid *grid, uint32_t n_ranks, cs_mesh_axis axis);

/* Assigns devices to the places of a grid on `n_ranks` pipeline ranks. Device numbers count through
 * the axes in `order` (a permutation of cs_mesh_axis), the first axis fastest. With `map`, a
 * permutation, device number d becomes map[d]. Fills devices[rank * places + place]. */
void cs_mesh_number(const cs_grid *grid, uint32_t n_ranks, const uint32_t order[CS_N_MESH_AXES],
                    const uint32_t *map, uint32_t *devices);

/* The stages of a schedule on a number of devices. */
typedef struct cs_mesh {
    const cs_schedule *schedule;
    const void *params;
    uint32_t n_devices, n_stages;
    uint32_t n_ranks;    /* pipeline ranks; the schedule places its stages on them */
    uint32_t n_places;   /* number of devices per rank; 1 without a grid */
    uint32_t n_replicas; /* replicas of all stages, which share the mini-batch */
    bool apart;          /* whether stages on one device share no weights (cs_plan) */
    /* whether the schedule decides which devices hold a stage; otherwise a plan may */
    bool placed;
    bool planned;        /* whether a plan may put any number of stages on a device */
    const cs_grid *grid; /* grid of each rank; NULL: a rank is one device */
    /* place i of rank r is devices[r * n_places + i]; NULL: rank r is device r */
    const uint32_t *devices;
} cs_mesh;

cs_mesh cs_mesh_make(const cs_schedule *schedule, const void *params, uint32_t n_devices);

/* Makes the mesh on a grid, with the result of cs_mesh_number, which must outlive the mesh. */
cs_mesh cs_mesh_make_grid(const cs_schedule *schedule, const void *params, const cs_grid *grid,
                          uint32_t n_ranks, const uint32_t *devices);

/* Writes the devices that hold a stage to `devices`, in order of places, and returns their number:
 * n_places with a grid, else at most n_devices. */
uint32_t cs_mesh_holders(const cs_mesh *mesh, uint32_t stage, uint32_t *devices);

#endif

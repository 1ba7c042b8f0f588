#include "schedules/mesh.h"

#include <assert.h>
#include <string.h>

bool cs_mesh_has_stages(const cs_schedule *schedule)
{
    return schedule->mesh.pipeline != CS_LENGTH_ONE;
}

bool cs_mesh_is_replicated(const cs_schedule *schedule)
{
    return schedule->mesh.data == CS_LENGTH_DEVICES;
}

bool cs_mesh_counts_layers(const cs_schedule *schedule)
{
    const cs_mesh_length length = schedule->mesh.pipeline;
    return length == CS_LENGTH_LAYERS || length == CS_LENGTH_RULE;
}

/* Returns the number of ranks that the parameters require; 0: any number. */
static uint32_t asked(const cs_schedule *schedule, const void *params, uint32_t n_layers)
{
    return schedule->mesh.ranks ? schedule->mesh.ranks(params, n_layers) : 0;
}

uint32_t cs_mesh_only(const cs_schedule *schedule, const void *params, uint32_t n_layers)
{
    return schedule->mesh.exactly ? asked(schedule, params, n_layers) : 0;
}

uint32_t cs_mesh_devices(const cs_schedule *schedule, const void *params, uint32_t n_layers,
                         bool fine)
{
    const cs_mesh_shape *shape = &schedule->mesh;
    const uint32_t ranks = asked(schedule, params, n_layers);
    if (ranks > 0)
        return ranks;
    if (shape->pipeline == CS_LENGTH_LAYERS)
        return fine ? 0 : n_layers;
    return cs_mesh_has_stages(schedule) || cs_mesh_is_replicated(schedule) ? 0 : 1;
}

bool cs_mesh_fills(const cs_schedule *schedule, const void *params, bool fine)
{
    const cs_mesh_shape *shape = &schedule->mesh;
    return cs_mesh_is_replicated(schedule) || shape->pipeline == CS_LENGTH_DEVICES ||
           (shape->pipeline == CS_LENGTH_LAYERS && fine && cs_mesh_only(schedule, params, 0) == 0);
}

const char *const cs_mesh_axis_names[] = {"tensor", "space", "context", "data", "pipeline", NULL};

uint32_t cs_mesh_axis_size(const cs_grid *grid, uint32_t n_ranks, cs_mesh_axis axis)
{
    switch (axis) {
    case CS_MESH_TENSOR:
        return cs_grid_axes(grid, CS_AXES_TENSOR).size;
    case CS_MESH_SPACE:
        return cs_grid_axes(grid, CS_AXES_SPACE).size;
    case CS_MESH_CONTEXT:
        return cs_grid_axes(grid, CS_AXES_CONTEXT).size;
    case CS_MESH_DATA:
        return cs_grid_axes(grid, CS_AXES_DATA).size;
    case CS_MESH_PIPELINE:
    case CS_N_MESH_AXES:
        break;
    }
    return n_ranks;
}

void cs_mesh_number(const cs_grid *grid, uint32_t n_ranks, const uint32_t order[CS_N_MESH_AXES],
                    const uint32_t *map, uint32_t *devices)
{
    const uint32_t n = n_ranks * cs_grid_places(grid);
    uint32_t strides[CS_N_MESH_AXES], stride = 1;
    for (uint32_t i = 0; i < CS_N_MESH_AXES; i++) {
        strides[order[i]] = stride;
        stride *= cs_mesh_axis_size(grid, n_ranks, (cs_mesh_axis)order[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rest = i, device = 0;
        for (uint32_t axis = 0; axis < CS_N_MESH_AXES; axis++) {
            const uint32_t size = cs_mesh_axis_size(grid, n_ranks, (cs_mesh_axis)axis);
            device += rest % size * strides[axis];
            rest /= size;
        }
        devices[i] = map ? map[device] : device;
    }
}

/* Makes the mesh on `n_ranks` ranks with one place each. */
static cs_mesh make_on_ranks(const cs_schedule *schedule, const void *params, uint32_t n_ranks)
{
    const cs_mesh_shape *shape = &schedule->mesh;
    const uint32_t usual = cs_mesh_has_stages(schedule) ? n_ranks : 1;
    return (cs_mesh){.schedule = schedule,
                     .params = params,
                     .n_devices = n_ranks,
                     .n_stages = shape->n_stages ? shape->n_stages(params, n_ranks) : usual,
                     .n_ranks = n_ranks,
                     .n_places = 1,
                     .n_replicas = 1,
                     .apart = shape->apart && shape->apart(params),
                     .placed = shape->holders != NULL,
                     .planned = shape->pipeline == CS_LENGTH_DEVICES};
}

cs_mesh cs_mesh_make(const cs_schedule *schedule, const void *params, uint32_t n_devices)
{
    cs_mesh mesh = make_on_ranks(schedule, params, n_devices);
    if (cs_mesh_is_replicated(schedule))
        mesh.n_replicas = n_devices;
    return mesh;
}

cs_mesh cs_mesh_make_grid(const cs_schedule *schedule, const void *params, const cs_grid *grid,
                          uint32_t n_ranks, const uint32_t *devices)
{
    cs_mesh mesh = make_on_ranks(schedule, params, n_ranks);
    mesh.grid = grid;
    mesh.n_places = cs_grid_places(grid);
    mesh.n_devices = n_ranks * mesh.n_places;
    mesh.n_replicas = grid->data;
    mesh.devices = devices;
    mesh.placed = true;
    return mesh;
}

/* Writes the ranks that hold a stage (without a grid, the devices), and returns their number. */
static uint32_t holding_ranks(const cs_mesh *mesh, uint32_t stage, uint32_t *ranks)
{
    const cs_mesh_shape *shape = &mesh->schedule->mesh;
    const uint32_t n = mesh->grid ? 1 : mesh->n_replicas;
    if (shape->holders)
        return shape->holders(mesh->params, mesh->n_ranks, stage, ranks);
    for (uint32_t r = 0; r < n; r++)
        ranks[r] = stage + r;
    return n;
}

uint32_t cs_mesh_holders(const cs_mesh *mesh, uint32_t stage, uint32_t *devices)
{
    const uint32_t n = holding_ranks(mesh, stage, devices);
    if (!mesh->grid)
        return n;
    assert(n == 1); /* schedules whose stages have several holders take no grid */
    const uint32_t rank = devices[0];
    memcpy(devices, mesh->devices + (size_t)rank * mesh->n_places,
           mesh->n_places * sizeof(*devices));
    return mesh->n_places;
}

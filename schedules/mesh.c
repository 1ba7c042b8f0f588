#include "schedules/mesh.h"

const cs_layout_rules *cs_schedule_layout(const cs_schedule *schedule)
{
    static const cs_layout_rules rules[] = {
        [CS_LAYOUT_SINGLE] = {0},
        [CS_LAYOUT_REPLICATED] = {.replicated = true, .fills = true},
        [CS_LAYOUT_PIPELINE] = {.partitioned = true,
                                .layer_per_stage = true,
                                .device_per_layer = true},
        [CS_LAYOUT_PLACED] = {.partitioned = true, .layer_per_stage = true},
        [CS_LAYOUT_PLANNED] = {.partitioned = true, .fills = true, .any_device = true},
    };
    return &rules[schedule->layout];
}

uint32_t cs_mesh_devices(const cs_schedule *schedule, const void *params, uint32_t n_layers)
{
    const cs_layout_rules *rules = cs_schedule_layout(schedule);
    if (schedule->placement)
        return schedule->placement->n_devices(params, n_layers);
    if (rules->device_per_layer)
        return n_layers;
    return rules->partitioned || rules->replicated ? 0 : 1;
}

cs_mesh cs_mesh_make(const cs_schedule *schedule, const void *params, uint32_t n_devices)
{
    const cs_layout_rules *rules = cs_schedule_layout(schedule);
    cs_mesh mesh = {.schedule = schedule,
                    .params = params,
                    .n_devices = n_devices,
                    .n_stages = rules->partitioned ? n_devices : 1,
                    .n_replicas = rules->replicated ? n_devices : 1};
    const cs_placement *placement = schedule->placement;
    if (placement) {
        mesh.n_stages = placement->n_stages(params, n_devices);
        mesh.apart = placement->apart && placement->apart(params);
    }
    return mesh;
}

uint32_t cs_mesh_holders(const cs_mesh *mesh, uint32_t stage, uint32_t *devices)
{
    const cs_placement *placement = mesh->schedule->placement;
    if (placement)
        return placement->holders(mesh->params, mesh->n_devices, stage, devices);
    for (uint32_t r = 0; r < mesh->n_replicas; r++)
        devices[r] = stage + r;
    return mesh->n_replicas;
}

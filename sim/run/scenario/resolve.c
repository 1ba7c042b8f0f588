#include "sim/run/scenario/build.h"

#include <stdlib.h>
#include <string.h>

/* The resolved scenario needs no other file: models and plans from files are written inline, so it
 * can be run from any folder, whatever becomes of the files. */

/* Adds a section with the fields of a table, and of a second table if given. */
static cJSON *add_section(cJSON *root, const char *key, const cs_field *table, const void *values,
                          const cs_field *more, const void *more_values)
{
    cJSON *section = cJSON_AddObjectToObject(root, key);
    if (!section || !cs_field_write(table, values, section))
        return NULL;
    return !more || cs_field_write(more, more_values, section) ? section : NULL;
}

static bool add_model(const cs_sections *sections, const cs_scenario *scenario, cJSON *root)
{
    cs_model_section section = sections->model;
    section.file = NULL;
    section.uniform = NULL;
    section.in_place = NULL;
    section.batch_size = scenario->batch_size;
    cJSON *model = add_section(root, "model", cs_scenario_model_fields, &section, NULL, NULL);
    if (!model || !sections->model.uniform)
        return model && cJSON_AddItemToObject(model, "inline", cs_model_json(scenario->model));
    cs_uniform_section uniform = *sections->model.uniform;
    uniform.layers = scenario->model->n_layers;
    return add_section(model, "uniform", cs_scenario_uniform_fields, &uniform, NULL, NULL);
}

static bool add_platform(const cs_sections *sections, const cs_scenario *scenario, cJSON *root)
{
    cs_platform_section section = sections->platform;
    section.topology = section.kind->name;
    section.devices = scenario->platform.n_devices;
    return add_section(root, "platform", cs_scenario_platform_fields, &section,
                       section.kind->fields, section.params);
}

/* Adds only "fold", for schedules that accept nothing else in the section. */
static bool add_fold(const cs_sections *sections, cJSON *root)
{
    const cs_field fold[] = {*cs_field_find(cs_scenario_parallel_fields, "fold"), {0}};
    return !sections->parallel.given ||
           add_section(root, "parallel", fold, &sections->parallel, NULL, NULL);
}

/* Adds the sizes as settled, and the order with all axes. */
static bool add_parallel(const cs_sections *sections, const cs_scenario *scenario, cJSON *root)
{
    const cs_parallel *parallel = scenario->parallel;
    cs_parallel_section section = sections->parallel;
    if (!parallel)
        return add_fold(sections, root);
    const cs_grid *grid = &parallel->split.grid;
    uint32_t order[CS_N_MESH_AXES], space[3];
    memcpy(order, parallel->order, sizeof(order));
    memcpy(space, grid->space, sizeof(space));
    section.pipeline = parallel->n_ranks;
    section.data = grid->data;
    section.expert_tensor = grid->expert_tensor;
    section.shard = cs_parallel_section_zero(&section, NULL) > 0 ? grid->shard : section.shard;
    section.order = (cs_list){.n = CS_N_MESH_AXES, .items = order};
    section.space = (cs_list){.n = 3, .items = space};
    return add_section(root, "parallel", cs_scenario_parallel_fields, &section, NULL, NULL);
}

/* Leaves out what the model already includes. Other memory is listed per device. */
static bool add_memory(const cs_sections *sections, const cs_scenario *scenario, cJSON *root)
{
    const int64_t *libraries = scenario->job.libraries;
    if (!libraries && !scenario->has_allocator && !sections->memory.receive_buffers &&
        sections->memory.stage_results == 0 && !sections->memory.update_copy)
        return true;
    cs_memory_section section = sections->memory;
    section.fused = section.libraries = section.resident = (cs_list){0};
    section.weight_gradients = 0;
    section.attention_buffer = section.attention_copy = section.padding_masks = false;
    section.keys_copied = section.pass_gradients = section.gradient_buckets = false;
    section.gather_buffer = 0;
    section.inputs = 0;
    section.deterministic_multiprocessors = section.routed_weights = 0;
    section.cublas_workspace = section.reduce_buffer = 0;
    if (libraries)
        section.resident =
            (cs_list){.n = scenario->job.n_devices, .items = (void *)(uintptr_t)libraries};
    return add_section(root, "memory", cs_scenario_memory_fields, &section, NULL, NULL);
}

/* Leaves out the choice of tensors, which the model already includes. */
static bool add_offload(const cs_sections *sections, const cs_scenario *scenario, cJSON *root)
{
    const cs_offload *offload = &scenario->job.offload;
    cs_offload_section section = {.layers = offload->layers,
                                  .smallest = sections->offload.smallest,
                                  .prefetch = offload->prefetch,
                                  .in_flight = offload->in_flight,
                                  .bandwidth = offload->bandwidth};
    return offload->layers == 0 ||
           add_section(root, "offload", cs_scenario_offload_fields, &section, NULL, NULL);
}

/* Writes plans of files and planners inline: a list of cuts cannot say which device runs a stage,
 * and planners may take long. */
static bool add_schedule(const cs_sections *sections, const cs_scenario *scenario, cJSON *root,
                         cs_error *error)
{
    cs_schedule_section section = sections->schedule;
    const bool partitioned = cs_mesh_has_stages(section.kind);
    const bool plan = partitioned && section.partition.kind != CS_PARTITION_BALANCED &&
                      section.partition.kind != CS_PARTITION_CUTS;
    if (plan || !partitioned)
        section.partition = (cs_partition){0};
    cJSON *schedule = add_section(root, "schedule", cs_scenario_schedule_fields, &section,
                                  section.kind->fields, section.params);
    if (!schedule || !plan)
        return schedule;
    cJSON *partition = cJSON_AddObjectToObject(schedule, "partition");
    cJSON *in_place = cs_plan_json(scenario->plan, scenario->model);
    if (!partition || !cJSON_AddItemToObject(partition, "inline", in_place)) {
        cJSON_Delete(in_place);
        return false;
    }
    return !scenario->pattern ||
           cs_pattern_add_json(in_place, scenario->plan, scenario->pattern, error) == CS_OK;
}

/* Adds the costs of collectives only; the model already includes the other times. */
static bool add_costs(const cs_costs *costs, cJSON *root)
{
    cs_costs rest = *costs;
    if (rest.n_network == 0)
        return true;
    rest.n_compute = rest.n_bandwidths = rest.n_overheads = 0;
    cJSON *object = cJSON_AddObjectToObject(root, "costs");
    return object && cJSON_AddItemToObject(object, "inline", cs_costs_json(&rest));
}

char *cs_scenario_resolved(const cs_sections *sections, const cs_scenario *scenario,
                           const cs_costs *costs, cs_error *error)
{
    cs_top_section top = sections->top;
    top.name = scenario->name;
    top.costs = (cs_costs_section){0};
    cJSON *root = cJSON_CreateObject();
    char *text = NULL;
    if (root && cs_field_write(cs_scenario_fields, &top, root) &&
        add_model(sections, scenario, root) && add_platform(sections, scenario, root) &&
        add_schedule(sections, scenario, root, error) && add_parallel(sections, scenario, root) &&
        (!sections->runtime.kernels_count ||
         add_section(root, "runtime", cs_scenario_runtime_fields, &sections->runtime, NULL,
                     NULL)) &&
        add_memory(sections, scenario, root) && add_offload(sections, scenario, root) &&
        add_section(root, "collectives", cs_lower_fields, &scenario->collectives, NULL, NULL) &&
        add_costs(costs, root))
        text = cs_json_print(root);
    cJSON_Delete(root);
    return text;
}

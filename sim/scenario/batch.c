#include "sim/scenario/build.h"

cs_status cs_scenario_batch(const cs_sections *sections, const cs_model *model, uint32_t n_devices,
                            cs_batch *batch, cs_error *error)
{
    const cs_schedule_section *schedule = &sections->schedule;
    const bool replicated = cs_schedule_layout(schedule->kind)->replicated;
    const uint32_t replicas = cs_schedule_section_mesh(schedule, n_devices).n_replicas;
    const uint32_t micro_batches = schedule->kind->micro_batches(schedule->params);
    const uint64_t parts = (uint64_t)micro_batches * replicas;
    const uint64_t own = model->batch_size > 0 ? model->batch_size : 1;
    const uint64_t samples =
        sections->model.batch_size > 0 ? sections->model.batch_size : parts * own;
    const cs_json_place up = {.up = &sections->root, .key = "model"};
    const cs_json_place place = {.up = &up, .key = "batch_size"};
    if (samples > UINT32_MAX)
        return cs_json_invalid(&place, error, "must be given: %llu samples are too many",
                               (unsigned long long)samples);
    if (samples % parts != 0 && replicated)
        return cs_json_invalid(&place, error,
                               "must be a multiple of %llu, %u micro-batch%s on each of %u devices "
                               "(got %llu)",
                               (unsigned long long)parts, micro_batches,
                               micro_batches == 1 ? "" : "es", replicas,
                               (unsigned long long)samples);
    if (samples % parts != 0)
        return cs_json_invalid(&place, error,
                               "must be a multiple of %llu, the micro-batches (got %llu)",
                               (unsigned long long)parts, (unsigned long long)samples);
    *batch = (cs_batch){(uint32_t)samples, micro_batches, (uint32_t)(samples / parts)};
    return CS_OK;
}

#include "sim/run/scenario/build.h"

#include <stdio.h>

/* Reports a batch size that does not give each replica equally many samples in each micro-batch. */
static cs_status refuse_samples(const cs_mesh *mesh, uint64_t samples, uint32_t micro_batches,
                                const cs_json_place *place, cs_error *error)
{
    const uint64_t parts = (uint64_t)micro_batches * mesh->n_replicas;
    char replicas[64] = "";
    if (mesh->grid || mesh->n_replicas > 1)
        snprintf(replicas, sizeof(replicas), " on each of %u %s", mesh->n_replicas,
                 mesh->grid ? "data-parallel ranks" : "devices");
    (void)cs_json_invalid(place, error, "must be a multiple of %llu, %u micro-batch%s%s (got %llu)",
                          (unsigned long long)parts, micro_batches, micro_batches == 1 ? "" : "es",
                          replicas, (unsigned long long)samples);
    cs_propose_multiples("/model/batch_size", samples, parts, error);
    if (samples % mesh->n_replicas == 0)
        cs_propose_divisors("/schedule/micro_batches", micro_batches, samples / mesh->n_replicas,
                            error);
    return CS_INVALID;
}

cs_status cs_scenario_batch(const cs_sections *sections, const cs_model *model, const cs_mesh *mesh,
                            cs_batch *batch, cs_error *error)
{
    const cs_schedule_section *schedule = &sections->schedule;
    const uint32_t micro_batches = cs_schedule_micro_batches(schedule->kind, schedule->params);
    const uint64_t parts = (uint64_t)micro_batches * mesh->n_replicas;
    const uint64_t own = model->batch_size > 0 ? model->batch_size : 1;
    const uint64_t samples =
        sections->model.batch_size > 0 ? sections->model.batch_size : parts * own;
    const cs_json_place up = {.up = &sections->root, .key = "model"};
    const cs_json_place place = {.up = &up, .key = "batch_size"};
    if (samples > UINT32_MAX)
        return cs_json_invalid(&place, error, "must be given: %llu samples are too many",
                               (unsigned long long)samples);
    if (samples % parts != 0)
        return refuse_samples(mesh, samples, micro_batches, &place, error);
    *batch = (cs_batch){(uint32_t)samples, micro_batches, (uint32_t)(samples / parts)};
    return CS_OK;
}

#include "tests/small-job.h"

#include "schedules/mesh.h"
#include "schedules/ties.h"
#include "sim/core/engine/engine.h"
#include "tests/listed-formula.h"
#include "topologies/route.h"
#include "topologies/topology.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMS_BYTES = 128 };

typedef struct params {
    _Alignas(max_align_t) char bytes[PARAMS_BYTES];
} params;

/* Sets the member that a table of fields names, if it names it. */
static void set(params *of, const cs_field *fields, const char *name, const void *value,
                size_t size)
{
    const cs_field *field = cs_field_find(fields, name);
    if (field)
        memcpy(of->bytes + field->offset, value, size);
}

#define SET(of, fields, name, value) set((of), (fields), (name), &(value), sizeof(value))

static cs_status make_platform(small_run *run, const small_job *given, cs_error *error)
{
    params of = {0};
    const cs_topology *topology = cs_topology_find(given->topology);
    assert(topology && topology->params_size <= sizeof(of));
    SET(&of, topology->fields, "bandwidth", given->bandwidth);
    SET(&of, topology->fields, "latency", given->latency);
    cs_status status = topology->build(&of, given->n_devices, &run->platform, error);
    if (status != CS_OK)
        return status;
    run->platform.sharing = given->sharing;
    run->platform.phi = given->phi > 0 ? given->phi : 1;
    for (uint32_t d = 0; given->speeds && d < given->n_devices; d++)
        run->platform.devices[d].speed = given->speeds[d];
    return CS_OK;
}

/* The stages of a grid's ranks, with as many layers each. */
static cs_status make_grid_plan(small_run *run, const small_job *given, cs_error *error)
{
    const uint32_t places = cs_grid_places(given->grid), n = given->n_stages;
    const uint32_t ranks = given->n_devices / places;
    uint32_t *cuts = calloc((size_t)n + 1, sizeof(*cuts));
    uint32_t *counts = calloc(n, sizeof(*counts));
    uint32_t *devices = calloc((size_t)n * places, sizeof(*devices));
    assert(cuts && counts && devices && given->n_layers % n == 0);
    for (uint32_t s = 0; s <= n; s++)
        cuts[s] = s * (given->n_layers / n);
    for (uint32_t i = 0; i < n * places; i++)
        devices[i] = i / places % ranks * places + i % places;
    for (uint32_t s = 0; s < n; s++)
        counts[s] = places;
    cs_status status = cs_plan_pipeline(cuts, n, &run->plan, error);
    if (status == CS_OK)
        status = cs_plan_place(&run->plan, counts, devices, error);
    run->plan.grid = given->grid;
    free(cuts);
    free(counts);
    free(devices);
    return status;
}

static cs_status make_plan(small_run *run, const small_job *given, const cs_schedule *schedule,
                           cs_error *error)
{
    if (given->grid)
        return make_grid_plan(run, given, error);
    if (!cs_mesh_has_stages(schedule))
        return cs_plan_replicated(given->n_layers,
                                  cs_mesh_is_replicated(schedule) ? given->n_devices : 1,
                                  &run->plan, error);
    assert(given->n_layers == given->n_devices || given->devices);
    uint32_t *cuts = malloc(((size_t)given->n_layers + 1) * sizeof(*cuts));
    if (!cuts)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i <= given->n_layers; i++)
        cuts[i] = i;
    cs_status status = cs_plan_pipeline(cuts, given->n_layers, &run->plan, error);
    free(cuts);
    for (uint32_t s = 0; status == CS_OK && given->devices && s < given->n_layers; s++)
        run->plan.devices[s] = given->devices[s];
    return status;
}

/* A lone message between neighbours in a ring over the devices, as cs_job wants it. */
static cs_status measure_messages(small_run *run, cs_error *error)
{
    cs_job *job = &run->job;
    cs_messages ring;
    CS_TRY(cs_messages_init_ring(&ring, &run->platform, job->n_devices, error));
    job->latency = ring.latency;
    job->bandwidth = ring.bandwidth / run->platform.phi;
    job->equal_messages = cs_messages_are_equal(&ring);
    cs_messages_finish(&ring);
    return CS_OK;
}

static cs_status make_job(small_run *run, const small_job *given, cs_error *error)
{
    run->sums = calloc(run->plan.n_stages, sizeof(*run->sums));
    run->speeds = calloc(given->n_devices, sizeof(*run->speeds));
    if (!run->sums || !run->speeds)
        return cs_error_no_memory(error);
    for (uint32_t d = 0; d < given->n_devices; d++)
        run->speeds[d] = run->platform.devices[d].speed;
    for (uint32_t s = 0; s < run->plan.n_stages; s++) {
        const cs_stage *stage = &run->plan.stages[s];
        cs_status status = cs_model_sum(&run->model, stage->first_layer, stage->end_layer, 1,
                                        &run->sums[s], error);
        if (status == CS_OK)
            status = cs_ties_borrow(&run->model, &run->plan, s, &run->sums[s], error);
        if (status != CS_OK)
            return status;
    }
    run->job = (cs_job){.model = &run->model,
                        .plan = &run->plan,
                        .stages = run->sums,
                        .n_devices = given->n_devices,
                        .speeds = run->speeds,
                        .micro_batches = given->micro_batches,
                        .micro_samples = 1,
                        .iterations = given->iterations,
                        .blocking = given->blocking,
                        .optimizer_ratio = given->optimizer_ratio,
                        .states = given->states,
                        .stands_for = given->stands_for};
    return measure_messages(run, error);
}

static cs_status make_model(small_run *run, const small_job *given, cs_error *error)
{
    static const cs_layer any = {0};
    cs_status status = cs_model_uniform(given->n_layers, &any, &run->model, error);
    for (uint32_t i = 0; status == CS_OK && i < given->n_layers; i++) {
        const char *name = run->model.layers[i].name;
        run->model.layers[i] = given->layers[i];
        run->model.layers[i].name = name;
    }
    return status;
}

static cs_status simulate(small_run *run, const small_job *given, const cs_schedule *schedule,
                          const params *of, cs_error *error)
{
    cs_graph logical = {0};
    cs_status status = cs_schedule_graph(schedule, &run->job, of, &logical, error);
    if (status == CS_OK)
        status = given->lowering ? cs_lower_with(&logical, &run->platform, given->lowering,
                                                 &run->graph, &run->lowered, error)
                                 : cs_lower(&logical, &run->graph, error);
    cs_graph_finish(&logical);
    if (status == CS_OK)
        status =
            cs_engine_run(&run->graph, &run->platform, &(cs_engine_options){0}, &run->trace, error);
    if (status == CS_OK)
        status = cs_analyse(&run->graph, &run->trace, 0, &run->analysis, error);
    if (status == CS_OK)
        status = schedule->closed_forms(&run->job, of, &run->forms, error);
    for (uint32_t i = 0; i < run->forms.n; i++)
        assert(lists_form(schedule, &run->forms.forms[i]));
    return status;
}

cs_status small_run_init(small_run *run, const small_job *given, cs_error *error)
{
    *run = (small_run){0};
    const cs_schedule *schedule = cs_schedule_find(given->schedule);
    params of = {0};
    assert(schedule && schedule->params_size <= sizeof(of));
    SET(&of, schedule->fields, "micro_batches", given->micro_batches);
    SET(&of, schedule->fields, "bucket", given->bucket);
    SET(&of, schedule->fields, "backward_order", given->backward_order);
    SET(&of, schedule->fields, "recompute", given->recompute);
    if (given->grid) {
        const uint32_t ranks = given->n_devices / cs_grid_places(given->grid);
        const uint32_t per_device = given->n_stages / ranks;
        SET(&of, schedule->fields, "stages_per_device", per_device);
    }
    cs_status status = make_model(run, given, error);
    if (status == CS_OK)
        status = make_platform(run, given, error);
    if (status == CS_OK)
        status = make_plan(run, given, schedule, error);
    if (status == CS_OK)
        status = make_job(run, given, error);
    return status == CS_OK ? simulate(run, given, schedule, &of, error) : status;
}

void small_run_finish(small_run *run)
{
    cs_forms_finish(&run->forms);
    cs_analysis_finish(&run->analysis);
    cs_trace_finish(&run->trace);
    cs_graph_finish(&run->graph);
    cs_plan_finish(&run->plan);
    cs_platform_finish(&run->platform);
    cs_model_finish(&run->model);
    free(run->sums);
    free(run->speeds);
    *run = (small_run){0};
}

static const char *const sharings[] = {
#define SHARING_TEXT(name, text) text,
    CS_SHARING_MAP(SHARING_TEXT)
#undef SHARING_TEXT
};

static void describe_layers(const small_job *given, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < given->n_layers && used < size; i++) {
        const cs_layer *layer = &given->layers[i];
        int n = snprintf(text + used, size - used,
                         "\n  f %" PRId64 " b %" PRId64 "+%" PRId64 " u %" PRId64 " w %" PRId64
                         " out %" PRId64 " kept %" PRId64 ", on device %" PRIu32 ", speed %g",
                         layer->forward, layer->backward_input, layer->backward_weight,
                         layer->update, layer->weight_bytes, layer->output_bytes, layer->kept_bytes,
                         given->devices ? given->devices[i] : i,
                         given->speeds && i < given->n_devices ? given->speeds[i] : 1);
        used += n > 0 ? (size_t)n : 0;
    }
}

char *small_job_describe(const small_job *given, char *text, size_t size)
{
    int n = snprintf(
        text, size,
        "%s on %" PRIu32 " x %s, M %" PRIu32 ", %" PRIu32
        " mini-batches, %s phi %g%s, bandwidth %g, latency %" PRId64 ", bucket %" PRId64,
        given->schedule, given->n_devices, given->topology, given->micro_batches, given->iterations,
        sharings[given->sharing], given->phi, given->blocking ? " blocking" : "", given->bandwidth,
        given->latency, given->bucket);
    if (n > 0 && (size_t)n < size)
        describe_layers(given, text + n, size - (size_t)n);
    return text;
}

/* One device computes everything: forward and backward of each micro-batch, then the update. */
#include "schedules/pipeline.h"

typedef struct sequential_params {
    uint32_t micro_batches;
} sequential_params;

static const cs_field fields[] = {
    {"micro_batches", CS_FIELD_COUNT, offsetof(sequential_params, micro_batches), .fallback = "1",
     .min = 1, .max = 1 << 20, .doc = "micro-batches whose gradients are accumulated, M"},
    {0},
};

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    (void)params;
    return cs_pipeline_generate(job, &(cs_pipeline_options){.order = cs_pipeline_in_turn}, builder,
                                error);
}

static uint32_t one_at_once(const cs_job *job, uint32_t stage, uint32_t replica)
{
    (void)job, (void)stage, (void)replica;
    return 1;
}

/* Adds the closed forms of a pipeline with one stage: M (f + b) and no bubble. */
static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    (void)params;
    cs_pipeline_times times;
    cs_pipeline_times_of(job, &times);
    cs_status status = cs_pipeline_add_forms(job, &times, "one device", forms, error);
    if (status == CS_OK)
        status =
            cs_pipeline_add_peaks(job, one_at_once, "1 activation", "one device", forms, error);
    return status;
}

const cs_schedule cs_schedule_sequential = {
    .name = "sequential",
    .summary = "one device, forward and backward in turn",
    .source = NULL,
    .formulas = (const cs_formula[]){{CS_FIGURE_MAKESPAN,
                                      "(M + P - 1)(f + b) per mini-batch, and its update"},
                                     {CS_FIGURE_PIPELINE_BUBBLE, "(P - 1)/(M + P - 1)"},
                                     {CS_FIGURE_PEAK_ACTIVATIONS, "1 activation"},
                                     {0}},
    .fields = fields,
    .params_size = sizeof(sequential_params),
    .search = CS_SEARCH_ALWAYS,
    .micro_batches = offsetof(sequential_params, micro_batches),
    .generate = generate,
    .closed_forms = closed_forms,
};

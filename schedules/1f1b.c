/* 1F1B with a flush (PipeDream-Flush, DAPPLE): min(P - s, M) forwards to warm up, then a backward
 * and a forward in turn, then the remaining backwards, then the update. */
#include "schedules/order-1f1b.h"

static const char source[] =
    "Narayanan et al., ICML 2021 (arXiv 2006.09503), section 3.2; Fan et al., DAPPLE, PPoPP 2021";

typedef struct params_1f1b {
    uint32_t micro_batches;
    bool recompute;
} params_1f1b;

static const cs_field fields[] = {
    {"micro_batches", CS_FIELD_COUNT, offsetof(params_1f1b, micro_batches), .min = 1,
     .max = 1 << 20, .doc = "micro-batches per mini-batch, M"},
    {"recompute", CS_FIELD_BOOL, offsetof(params_1f1b, recompute), .fallback = "false",
     .doc = "keep a stage's input only, and run its forward again before each backward"},
    {0},
};

static uint32_t micro_batches(const void *params)
{
    return ((const params_1f1b *)params)->micro_batches;
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    cs_pipeline_options options = {.order = cs_order_1f1b,
                                   .recompute = ((const params_1f1b *)params)->recompute};
    return cs_pipeline_generate(job, &options, builder, error);
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    if (((const params_1f1b *)params)->recompute)
        return CS_OK;
    cs_pipeline_times times;
    cs_pipeline_times_of(job, &times);
    cs_status status = cs_pipeline_add_forms(job, &times, source, forms, error);
    if (status == CS_OK)
        status = cs_pipeline_add_peaks(job, cs_order_1f1b_warm_up, "min(P - s, M) activations",
                                       source, forms, error);
    return status;
}

const cs_schedule cs_schedule_1f1b = {
    .name = "1f1b",
    .summary = "synchronous pipeline: warm up, then one forward and one backward in turn",
    .source = source,
    .fields = fields,
    .params_size = sizeof(params_1f1b),
    .layout = CS_LAYOUT_PIPELINE,
    .micro_batches = micro_batches,
    .generate = generate,
    .closed_forms = closed_forms,
};

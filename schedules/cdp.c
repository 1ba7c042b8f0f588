#include "schedules/cdp.h"

#include "schedules/pipeline.h"

static const char source[] = "Fournier and Oyallon, Cyclic Data Parallelism, 2024 "
                             "(arXiv 2403.08837), sections 3 and 4";

static const char *const settings[] = {"single_gpu", "multi_gpu", "model_parallel",
                                       "pipeline",   "zero",      NULL};
static const char *const retentions[] = {"stage", "micro_batch", NULL};

static const char *const delays[] = {"uniform", "two_tasks", NULL};
static const char *const places[] = {"replace", "beside", NULL};

#define MICRO_BATCHES                                                                              \
    {                                                                                              \
        "micro_batches", CS_FIELD_COUNT, offsetof(cs_cdp_params, n),                               \
            .min = 1, .max = CS_CDP_LARGEST,                                                       \
            .doc = "micro-batches per mini-batch and stages of the model, N"                       \
    }
#define SETTING                                                                                    \
    {                                                                                              \
        "setting", CS_FIELD_CHOICE, offsetof(cs_cdp_params, setting),                              \
            .fallback = "multi_gpu", .choices = settings,                                          \
            .doc = "devices; single_gpu: 1; multi_gpu: N, each with the whole model; "             \
                   "model_parallel: N(N + 1)/2 (dp: N^2), each with a stage; pipeline: N, each "   \
                   "with a stage; zero: N, with each stage's states on the device that needs "     \
                   "them (dp: on one device, which broadcasts its weights)"                        \
    }
#define RETENTION                                                                                  \
    {                                                                                              \
        "retention", CS_FIELD_CHOICE, offsetof(cs_cdp_params, retention),                          \
            .fallback = "stage", .choices = retentions,                                            \
            .doc = "when activations are freed; stage: after the backward of their stage; "        \
                   "micro_batch: all after the micro-batch's last backward"                        \
    }
#define START_DELAY                                                                                \
    {                                                                                              \
        "start_delay", CS_FIELD_CHOICE, offsetof(cs_cdp_params, delay),                            \
            .fallback = "uniform", .choices = delays,                                              \
            .doc = "with multi_gpu, model_parallel and zero: when micro-batch g of the run "       \
                   "starts; uniform: g T/N after the first, or later, where T is the time that "   \
                   "a micro-batch computes; two_tasks: when the one before has ended two tasks"    \
    }
#define NEW_WEIGHTS                                                                                \
    {                                                                                              \
        "new_weights", CS_FIELD_CHOICE, offsetof(cs_cdp_params, new_weights),                      \
            .fallback = "replace", .choices = places,                                              \
            .doc = "with multi_gpu and model_parallel; replace: weights that arrive replace "      \
                   "those of the device once the last backward that reads these has ended; "       \
                   "beside: they arrive earlier, and the device holds both meanwhile"              \
    }

static const cs_field dp_fields[] = {MICRO_BATCHES, SETTING, RETENTION, {0}};
static const cs_field cyclic_fields[] = {MICRO_BATCHES, SETTING, RETENTION, START_DELAY, {0}};
static const cs_field v2_fields[] = {MICRO_BATCHES, SETTING,     RETENTION,
                                     START_DELAY,   NEW_WEIGHTS, {0}};

static cs_status check(const cs_job *job, const void *given, const cs_json_place *place,
                       cs_error *error)
{
    (void)job;
    const cs_cdp_params *params = given;
    cs_json_place at = {.up = place, .key = "retention"};
    bool travels = params->setting == CS_CDP_PIPELINE || params->setting == CS_CDP_MODEL_PARALLEL;
    if (!travels || params->retention == CS_CDP_BY_STAGE)
        return CS_OK;
    return cs_json_invalid(&at, error,
                           "\"micro_batch\" goes with settings in which a micro-batch stays on one "
                           "device: single_gpu, multi_gpu, zero");
}

/* ---- where the stages are ---- */

static uint32_t n_stages(const void *params, uint32_t n_ranks)
{
    (void)n_ranks;
    return ((const cs_cdp_params *)params)->n;
}

static uint32_t place(const cs_cdp_params *params, cs_cdp_rule rule, uint32_t stage,
                      uint32_t *devices)
{
    uint32_t n = cs_cdp_holders(params, rule, stage), first = 0;
    if (params->setting == CS_CDP_PIPELINE)
        first = stage;
    for (uint32_t s = 0; params->setting == CS_CDP_MODEL_PARALLEL && s < stage; s++)
        first += cs_cdp_holders(params, rule, s);
    for (uint32_t i = 0; i < n; i++)
        devices[i] = first + i;
    return n;
}

static uint32_t n_devices(const cs_cdp_params *params, cs_cdp_rule rule)
{
    uint32_t total = 0;
    for (uint32_t s = 0; s < params->n; s++)
        total += cs_cdp_holders(params, rule, s);
    bool shared = params->setting == CS_CDP_SINGLE_GPU || params->setting == CS_CDP_MULTI_GPU ||
                  params->setting == CS_CDP_ZERO;
    return shared ? total / params->n : total;
}

static bool apart(const void *params)
{
    return ((const cs_cdp_params *)params)->setting == CS_CDP_ZERO;
}

/* ---- closed forms ---- */

static int64_t kept_on_all(const cs_job *job)
{
    int64_t sum = 0;
    for (uint32_t s = 0; s < job->plan->n_stages; s++)
        sum += job->stages[s].kept_bytes;
    return sum;
}

static bool equal_stages(const cs_job *job)
{
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        const cs_layer_sum *sum = &job->stages[s], *first = &job->stages[0];
        if (sum->forward != first->forward || sum->kept_bytes != first->kept_bytes ||
            sum->backward_input + sum->backward_weight !=
                first->backward_input + first->backward_weight)
            return false;
    }
    return true;
}

/* Returns the bytes of activations on the device of a stage; with single_gpu, on the only
 * device. */
static int64_t activations(const cs_job *job, const cs_cdp_params *params, cs_cdp_rule rule,
                           uint32_t stage, const char **formula)
{
    int64_t N = params->n, all = kept_on_all(job), own = job->stages[stage].kept_bytes;
    switch ((cs_cdp_setting)params->setting) {
    case CS_CDP_SINGLE_GPU:
        *formula = rule == CS_CDP_DP ? "N B Psi_A" : "(N + 1)/2 B Psi_A";
        return rule == CS_CDP_DP ? N * all : (N + 1) * all / 2;
    case CS_CDP_PIPELINE:
        *formula = "(N - j + 1) B Psi_A/N on stage j";
        return (N - stage) * own;
    case CS_CDP_MODEL_PARALLEL:
        *formula = "B Psi_A/N";
        return own;
    case CS_CDP_MULTI_GPU:
    case CS_CDP_ZERO:
        break;
    }
    *formula = "B Psi_A";
    return all;
}

static cs_status add_peaks(const cs_job *job, const cs_cdp_params *params, cs_cdp_rule rule,
                           cs_forms *forms, cs_error *error)
{
    const cs_plan *plan = job->plan;
    bool single = params->setting == CS_CDP_SINGLE_GPU;
    bool shared = single || params->setting == CS_CDP_MULTI_GPU || params->setting == CS_CDP_ZERO;
    cs_status status = CS_OK;
    for (uint32_t s = 0; s < (shared ? 1 : plan->n_stages) && status == CS_OK; s++) {
        cs_form form = {.figure = CS_FIGURE_PEAK_ACTIVATIONS,
                        .source = source,
                        .applies = !single || (params->retention == CS_CDP_BY_STAGE &&
                                               equal_stages(job) && job->iterations > 1),
                        .assumes =
                            single ? "equal stages, retention by stage, a steady state" : "none"};
        form.exact = activations(job, params, rule, s, &form.formula);
        for (uint32_t i = 0; i < plan->stages[s].n_devices && status == CS_OK; i++) {
            form.device = plan->devices[plan->stages[s].first_device + i];
            status = cs_forms_add(forms, &form, error);
        }
    }
    return status;
}

/* Adds the paper's claim for v2: one version of a device's stages. With zero, no device keeps a
 * stage. */
static cs_status add_versions(const cs_job *job, const cs_cdp_params *params, cs_forms *forms,
                              cs_error *error)
{
    bool one_by_one =
        params->setting == CS_CDP_MULTI_GPU || params->setting == CS_CDP_MODEL_PARALLEL;
    cs_form form = {.figure = CS_FIGURE_PEAK_VERSIONS,
                    .exact = 1,
                    .formula = "1, no second copy",
                    .source = source,
                    .applies = one_by_one && params->new_weights == CS_CDP_REPLACE,
                    .assumes = "a micro-batch at a time on a stage's device, new_weights replace"};
    cs_status status = CS_OK;
    for (uint32_t d = 0; d < job->n_devices && status == CS_OK; d++) {
        form.device = d;
        status = cs_forms_add(forms, &form, error);
    }
    return status;
}

/* Adds the time of a mini-batch: 2N time steps. A single device needs N times as long, because it
 * computes N tasks per step one after the other. */
static cs_status add_period(const cs_job *job, const cs_cdp_params *params, cs_cdp_rule rule,
                            cs_forms *forms, cs_error *error)
{
    cs_pipeline_times times;
    cs_pipeline_times_of(job, &times);
    int64_t N = params->n;
    bool single = params->setting == CS_CDP_SINGLE_GPU;
    /* a blocking message waits for tasks at both ends, which end together if f = b */
    bool by_clock = cs_cdp_interval(job, params, rule) > 0 && !job->blocking;
    cs_time period;
    if (!cs_time_mul(times.forward + times.backward, single ? N * N : N, &period))
        return CS_OK; /* the time overflows, so no closed form is added */
    cs_form form = {.figure = CS_FIGURE_ITERATION_TIME,
                    .device = CS_NONE,
                    .exact = period,
                    .formula = single ? "N^2 (f + b) per mini-batch" : "N(f + b) per mini-batch",
                    .source = source,
                    .applies = times.equal && cs_pipeline_no_network(job) && times.update == 0 &&
                               (times.forward == times.backward || single || by_clock) &&
                               job->iterations >= 8,
                    .assumes = by_clock || single
                                   ? "equal stages, no update, free messages, a steady state"
                                   : "equal time steps (f = b, the same on all stages), no update, "
                                     "free messages, a steady state"};
    return cs_forms_add(forms, &form, error);
}

static cs_status add_forms(const cs_job *job, const cs_cdp_params *params, cs_cdp_rule rule,
                           cs_forms *forms, cs_error *error)
{
    cs_status status = add_peaks(job, params, rule, forms, error);
    if (status == CS_OK && rule == CS_CDP_V2 && params->setting != CS_CDP_ZERO)
        status = add_versions(job, params, forms, error);
    return status == CS_OK && rule != CS_CDP_DP ? add_period(job, params, rule, forms, error)
                                                : status;
}

#define PEAKS                                                                                      \
    {CS_FIGURE_PEAK_ACTIVATIONS, "(N - j + 1) B Psi_A/N on stage j"},                              \
        {CS_FIGURE_PEAK_ACTIVATIONS, "B Psi_A/N"},                                                 \
    {                                                                                              \
        CS_FIGURE_PEAK_ACTIVATIONS, "B Psi_A"                                                      \
    }
#define CYCLIC                                                                                     \
    {CS_FIGURE_PEAK_ACTIVATIONS, "(N + 1)/2 B Psi_A"}, PEAKS,                                      \
        {CS_FIGURE_ITERATION_TIME, "N(f + b) per mini-batch"},                                     \
    {                                                                                              \
        CS_FIGURE_ITERATION_TIME, "N^2 (f + b) per mini-batch"                                     \
    }

static const cs_formula dp_formulas[] = {{CS_FIGURE_PEAK_ACTIVATIONS, "N B Psi_A"}, PEAKS, {0}};
static const cs_formula cyclic_formulas[] = {CYCLIC, {0}};
static const cs_formula v2_formulas[] = {
    CYCLIC, {CS_FIGURE_PEAK_VERSIONS, "1, no second copy"}, {0}};

/* ---- one schedule per rule ---- */

static const char no_grid[] = "puts micro-batches and stages on devices by a rule of its own, its "
                              "\"setting\"";

#define CDP_SCHEDULE(id, rule, of, text)                                                           \
    static uint32_t id##_ranks(const void *params, uint32_t n_layers)                              \
    {                                                                                              \
        (void)n_layers;                                                                            \
        return n_devices(params, rule);                                                            \
    }                                                                                              \
    static uint32_t id##_holders(const void *params, uint32_t n_ranks, uint32_t stage,             \
                                 uint32_t *ranks)                                                  \
    {                                                                                              \
        (void)n_ranks;                                                                             \
        return place(params, rule, stage, ranks);                                                  \
    }                                                                                              \
    static cs_status id##_generate(const cs_job *job, const void *params, cs_builder *builder,     \
                                   cs_error *error)                                                \
    {                                                                                              \
        return cs_cdp_generate(job, params, rule, builder, error);                                 \
    }                                                                                              \
    static cs_status id##_forms(const cs_job *job, const void *params, cs_forms *forms,            \
                                cs_error *error)                                                   \
    {                                                                                              \
        return add_forms(job, params, rule, forms, error);                                         \
    }                                                                                              \
    const cs_schedule cs_schedule_##id = {.name = #id,                                             \
                                          .summary = text,                                         \
                                          .source = source,                                        \
                                          .formulas = of##_formulas,                               \
                                          .fields = of##_fields,                                   \
                                          .params_size = sizeof(cs_cdp_params),                    \
                                          .mesh = {.pipeline = CS_LENGTH_RULE,                     \
                                                   .ranks = id##_ranks,                            \
                                                   .exactly = true,                                \
                                                   .n_stages = n_stages,                           \
                                                   .holders = id##_holders,                        \
                                                   .apart = apart,                                 \
                                                   .no_grid = no_grid},                            \
                                          .asynchronous = (rule) != CS_CDP_DP,                     \
                                          .micro_batches = offsetof(cs_cdp_params, n),             \
                                          .check = check,                                          \
                                          .generate = id##_generate,                               \
                                          .closed_forms = id##_forms};

CDP_SCHEDULE(cdp_dp, CS_CDP_DP, dp,
             "data parallelism with a barrier, in the settings of CDP: the baseline for the other "
             "cdp_* schedules")
CDP_SCHEDULE(cdp_v1, CS_CDP_V1, cyclic,
             "cyclic data parallelism: all micro-batches use the weights before the last update, "
             "theta_{t-1}")
CDP_SCHEDULE(cdp_v2, CS_CDP_V2, v2,
             "cyclic data parallelism: the newest weights, theta_t, wherever they can arrive in "
             "time, else theta_{t-1}")
CDP_SCHEDULE(cdp_freshest, CS_CDP_FRESHEST, cyclic,
             "cyclic data parallelism: the newest version of the weights that has arrived")

#include "sim/study/advise/advice-file.h"

#include "sim/core/trace/results-schema.h"

#include <math.h>
#include <stdlib.h>

/* Data source of the file: all plans, and their texts. */
typedef struct source {
    const cs_advice *advice;
    char (*texts)[CS_CANDIDATE_TEXT_BYTES], (*strategies)[CS_CANDIDATE_TEXT_BYTES];
    char **commands; /* commands of simulated plans; NULL for others */
} source;

static const cs_advice *advice_of(const void *from)
{
    return ((const source *)from)->advice;
}

enum { PLAN, STRATEGY, COMMAND };

static cs_h5_value text_of(const void *from, uint64_t row, uint32_t which)
{
    const source *s = from;
    if (which == COMMAND)
        return (cs_h5_value){.text = s->commands[row] ? s->commands[row] : ""};
    return (cs_h5_value){.text = which == PLAN ? s->texts[row] : s->strategies[row]};
}

enum {
    DEVICES,
    TENSOR,
    FILTER,
    CHANNEL,
    SPACE,
    CONTEXT,
    PIPELINE,
    DATA,
    EXPERT,
    ZERO,
    MICRO_SAMPLES,
    MICRO_BATCHES,
    CHUNKS
};

static cs_h5_value size_of(const void *from, uint64_t row, uint32_t which)
{
    const cs_candidate *c = &advice_of(from)->candidates.items[row];
    const uint32_t sizes[] = {
        [DEVICES] = c->devices,
        [TENSOR] = c->method == CS_BY_TENSOR ? c->layer : 1,
        [FILTER] = c->method == CS_BY_FILTER ? c->layer : 1,
        [CHANNEL] = c->method == CS_BY_CHANNEL ? c->layer : 1,
        [SPACE] = c->space,
        [CONTEXT] = c->context,
        [PIPELINE] = c->pipeline,
        [DATA] = c->data,
        [EXPERT] = c->expert,
        [ZERO] = c->zero,
        [MICRO_SAMPLES] = c->micro_samples,
        [MICRO_BATCHES] = c->micro_batches,
        [CHUNKS] = c->chunks,
    };
    return (cs_h5_value){.uint32 = sizes[which]};
}

enum { SCHEDULE, RECOMPUTE, INNER, OSDP, STATE, ANSWER, FRONT };

static cs_h5_value choice_of(const void *from, uint64_t row, uint32_t which)
{
    const cs_candidate *c = &advice_of(from)->candidates.items[row];
    const cs_candidate_outcome *outcome = &advice_of(from)->outcomes[row];
    const uint32_t choices[] = {
        [SCHEDULE] = c->schedule, [RECOMPUTE] = c->recompute, [INNER] = c->inner,
        [OSDP] = c->more != NULL, [STATE] = outcome->state,   [ANSWER] = outcome->answer,
        [FRONT] = outcome->front,
    };
    return (cs_h5_value){.uint8 = (uint8_t)choices[which]};
}

static bool was_simulated(const cs_advice *advice, uint64_t row)
{
    const cs_candidate_state state = advice->outcomes[row].state;
    return state == CS_CANDIDATE_SIMULATED || state == CS_CANDIDATE_OVER;
}

enum { BUCKET, TIME_BOUND, MEMORY_BOUND, TIME, PEAK, OVER, THROUGHPUT, COST };

/* Plans that were not simulated have bounds only. */
static cs_h5_value number_of(const void *from, uint64_t row, uint32_t which)
{
    const cs_advice *advice = advice_of(from);
    const cs_candidate_outcome *outcome = &advice->outcomes[row];
    const bool simulated = was_simulated(advice, row);
    const bool possible = outcome->state != CS_CANDIDATE_IMPOSSIBLE;
    const cs_step *step = &outcome->step;
    const int64_t bucket = advice->candidates.items[row].bucket;
    const double numbers[] = {
        [BUCKET] = bucket == CS_BUCKET_GIVEN ? (double)NAN : (double)bucket,
        [TIME_BOUND] = possible ? advice->bounds.time[row] : (double)NAN,
        [MEMORY_BOUND] = possible ? advice->bounds.memory[row] : (double)NAN,
        [TIME] = simulated ? step->time : (double)NAN,
        [PEAK] = simulated ? (double)step->peak : (double)NAN,
        [OVER] = simulated ? (double)step->over : (double)NAN,
        [THROUGHPUT] = simulated ? advice->base.batch_size / step->time : (double)NAN,
        [COST] = simulated ? cs_advice_cost(advice, (uint32_t)row) : (double)NAN,
    };
    return (cs_h5_value){.float64 = numbers[which]};
}

#define SIZE(name, which_one, text)                                                                \
    {                                                                                              \
        name, CS_H5_UINT32, "1", text, .get = size_of, .which = which_one                          \
    }
#define NUMBER(name, unit, which_one, text)                                                        \
    {                                                                                              \
        name, CS_H5_DOUBLE, unit, text, .get = number_of, .which = which_one                       \
    }
#define CHOICE(name, which_one, words, text)                                                       \
    {                                                                                              \
        name, CS_H5_UINT8, "1", text, .meanings = words, .get = choice_of, .which = which_one      \
    }

static const char *const no_yes[] = {"no", "yes", NULL};

static const cs_h5_column plans[] = {
    {"number", CS_H5_UINT32, "1", "number of the plan", .fill = cs_h5_row_numbers},
    {"plan", CS_H5_TEXT, "1", "in words", .get = text_of, .which = PLAN},
    {"strategy", CS_H5_TEXT, "1", "the axes that it uses", .get = text_of, .which = STRATEGY},
    {"command", CS_H5_TEXT, "1", "runs the plan by itself; of plans that were simulated",
     .get = text_of, .which = COMMAND},
    SIZE("devices", DEVICES, "that it runs on"),
    SIZE("tensor", TENSOR, "size of the axis"),
    SIZE("filter", FILTER, "size of the axis"),
    SIZE("channel", CHANNEL, "size of the axis"),
    SIZE("space", SPACE, "parts of an image"),
    SIZE("context", CONTEXT, "size of the axis"),
    SIZE("pipeline", PIPELINE, "pipeline-parallel size"),
    SIZE("data", DATA, "data-parallel ranks"),
    SIZE("expert", EXPERT, "size of the axis"),
    SIZE("zero", ZERO, "ZeRO stage"),
    SIZE("micro_samples", MICRO_SAMPLES, "samples of a micro-batch"),
    SIZE("micro_batches", MICRO_BATCHES, "micro-batches of a step"),
    SIZE("stages_per_device", CHUNKS, "stages per pipeline rank (virtual pipeline size)"),
    CHOICE("schedule", SCHEDULE, cs_schedule_names, "the training schedule"),
    CHOICE("recompute", RECOMPUTE, cs_advise_recompute_names, "what is computed again"),
    CHOICE("inner", INNER, cs_advise_order_names, "the axis with neighbouring devices"),
    CHOICE("osdp", OSDP, no_yes, "OSDP chose which layers are sharded"),
    CHOICE("state", STATE, cs_candidate_state_names, "what became of the plan"),
    CHOICE("answer", ANSWER, no_yes, "it is one of the answers"),
    CHOICE("front", FRONT, no_yes, "it is on the front of time against memory"),
    NUMBER("bucket", "bytes", BUCKET, "gradients that are reduced together"),
    NUMBER("step_time_bound", "s", TIME_BOUND, "the step takes as long at least"),
    NUMBER("peak_memory_bound", "bytes", MEMORY_BOUND, "the peak is as high at least"),
    NUMBER("step_time", "s", TIME, "simulated time of a step"),
    NUMBER("peak_memory", "bytes", PEAK, "of the device that needs most"),
    NUMBER("over_capacity", "bytes", OVER, "bytes that a device lacks"),
    NUMBER("throughput", "samples/s", THROUGHPUT, "batch size over the time of a step"),
    NUMBER("cost", "1", COST, "of a step, in the currency of the price"),
    {0},
};

static cs_status fill(cs_h5_file *file, const cs_advice_info *info, const source *from,
                      cs_error *error)
{
    const cs_h5_table table = {.group = "plans",
                               .index = "number",
                               .columns = plans,
                               .n_rows = from->advice->candidates.n,
                               .source = from};
    CS_TRY(cs_h5_set_text(file, "format", CS_ADVICE_FORMAT, error));
    CS_TRY(cs_h5_set_int64(file, "schema_version", CS_ADVICE_VERSION, error));
    CS_TRY(cs_h5_set_text(file, "name", info->name, error));
    CS_TRY(cs_h5_set_text(file, "topology", info->topology, error));
    CS_TRY(cs_h5_set_int64(file, "batch_size", from->advice->base.batch_size, error));
    CS_TRY(cs_h5_set_text(file, "cut", from->advice->cut ? from->advice->cut : "", error));
    CS_TRY(cs_h5_set_text(file, "program_version", info->program_version, error));
    return cs_h5_write_table(file, &table, error);
}

static cs_status write_texts(source *from, const char *path, cs_error *error)
{
    const cs_advice *advice = from->advice;
    for (uint32_t i = 0; i < advice->candidates.n; i++) {
        const cs_candidate *c = &advice->candidates.items[i];
        cs_candidate_text(c, from->texts[i], sizeof(from->texts[i]));
        cs_candidate_strategy(c, from->strategies[i], sizeof(from->strategies[i]));
        if (!was_simulated(advice, i))
            continue;
        from->commands[i] = cs_candidate_command(&advice->base, c, path);
        if (!from->commands[i])
            return cs_error_no_memory(error);
    }
    return CS_OK;
}

cs_status cs_advice_write(cs_h5_file *file, const cs_advice_info *info, const cs_advice *advice,
                          cs_error *error)
{
    const size_t n = advice->candidates.n + (size_t)1;
    source from = {advice, malloc(n * sizeof(*from.texts)), malloc(n * sizeof(*from.strategies)),
                   calloc(n, sizeof(*from.commands))};
    cs_status status =
        from.texts && from.strategies && from.commands ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status = write_texts(&from, info->path, error);
    if (status == CS_OK)
        status = fill(file, info, &from, error);
    for (uint32_t i = 0; from.commands && i < advice->candidates.n; i++)
        free(from.commands[i]);
    free(from.commands);
    free(from.texts);
    free(from.strategies);
    return status;
}

cs_status cs_advice_store(const char *path, const cs_advice_info *info, const cs_advice *advice,
                          const cs_progress *progress, cs_error *error)
{
    cs_h5_file *file = NULL;
    CS_TRY(cs_h5_create(path, progress, &file, error));
    cs_status status = cs_advice_write(file, info, advice, error);
    if (status == CS_OK)
        status = cs_h5_commit(file, error);
    cs_h5_destroy(file);
    return status;
}

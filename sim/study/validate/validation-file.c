#include "sim/study/validate/validation-file.h"

#include "sim/core/trace/h5.h"
#include "sim/core/trace/results-schema.h"
#include "sim/study/validate/judgement-tables.h"

#include <math.h>

static const cs_prediction *prediction_of(const void *source, uint64_t row)
{
    return &((const cs_predictions *)source)->items[row];
}

static cs_h5_value text_value(const char *text)
{
    return (cs_h5_value){.text = text ? text : ""};
}

/* ---- points ---- */

enum { ID, DATASET, GPU, MODEL, FRAMEWORK, SCHEDULE, PRECISION, QUALITY, MISSING, MESSAGE };

static cs_h5_value text_of(const void *source, uint64_t row, uint32_t which)
{
    const cs_prediction *prediction = prediction_of(source, row);
    const cs_point *point = prediction->point;
    const char *const texts[] = {
        [ID] = point->id,
        [DATASET] = point->dataset,
        [GPU] = point->run.hardware->gpu,
        [MODEL] = point->run.model->name,
        [FRAMEWORK] = point->run.framework,
        [SCHEDULE] = point->run.schedule,
        [PRECISION] = point->run.precision,
        [QUALITY] = point->quality,
        [MISSING] = prediction->state == CS_PREDICTION_MISSING ? prediction->made.missing[0] : "",
        [MESSAGE] = prediction->message,
    };
    return text_value(texts[which]);
}

static cs_h5_value state_of(const void *source, uint64_t row, uint32_t which)
{
    (void)which;
    return (cs_h5_value){.uint8 = (uint8_t)prediction_of(source, row)->state};
}

static cs_h5_value predicted_of(const void *source, uint64_t row, uint32_t which)
{
    return (cs_h5_value){.float64 = prediction_of(source, row)->values[which]};
}

static cs_h5_value part_of(const void *source, uint64_t row, uint32_t which)
{
    const cs_prediction *prediction = prediction_of(source, row);
    const bool made = prediction->state == CS_PREDICTION_MADE;
    return (cs_h5_value){.float64 = made ? prediction->parts.seconds[which] : (double)NAN};
}

static cs_h5_value measured_of(const void *source, uint64_t row, uint32_t which)
{
    return (cs_h5_value){.float64 = prediction_of(source, row)->measured[which]};
}

static cs_h5_value verdict_of(const void *source, uint64_t row, uint32_t which)
{
    const cs_prediction *prediction = prediction_of(source, row);
    const bool known = which != 1 ? prediction->state == CS_PREDICTION_MADE &&
                                        isfinite(prediction->values[CS_MEASURE_ALLOCATED])
                                  : prediction->knows_verdict;
    const bool values[] = {prediction->out_of_memory, prediction->was_out_of_memory,
                           prediction->depends};
    const bool value = values[which];
    return (cs_h5_value){.float64 = known ? value : (double)NAN};
}

#define PART(key, part, text)                                                                      \
    {                                                                                              \
        "part_" key, CS_H5_DOUBLE, "s", text, .get = part_of, .which = CS_PART_##part              \
    }

static const cs_h5_column points[] = {
    {"point", CS_H5_UINT32, "1", "number of the point", .fill = cs_h5_row_numbers},
    {"id", CS_H5_TEXT, "1", "the point's own name", .get = text_of, .which = ID},
    {"dataset", CS_H5_TEXT, "1", "that the point is from", .get = text_of, .which = DATASET},
    {"gpu", CS_H5_TEXT, "1", "as the point calls it", .get = text_of, .which = GPU},
    {"model", CS_H5_TEXT, "1", "that was trained", .get = text_of, .which = MODEL},
    {"framework", CS_H5_TEXT, "1", "that trained", .get = text_of, .which = FRAMEWORK},
    {"schedule", CS_H5_TEXT, "1", "as the point calls it", .get = text_of, .which = SCHEDULE},
    {"precision", CS_H5_TEXT, "1", "of matrix products", .get = text_of, .which = PRECISION},
    {"quality", CS_H5_TEXT, "1", "of the point", .get = text_of, .which = QUALITY},
    {"state", CS_H5_UINT8, "1", "what became of the point", .meanings = cs_prediction_states,
     .get = state_of},
    {"missing", CS_H5_TEXT, "1", "what the simulator lacks for it", .get = text_of,
     .which = MISSING},
    {"message", CS_H5_TEXT, "1", "of a failure", .get = text_of, .which = MESSAGE},
    {"predicted_step_time", CS_H5_DOUBLE, "s", "predicted time of a step", .get = predicted_of,
     .which = CS_MEASURE_TIME},
    {"measured_step_time", CS_H5_DOUBLE, "s", "measured time of a step", .get = measured_of,
     .which = CS_MEASURE_TIME},
    {"predicted_peak_memory", CS_H5_DOUBLE, "bytes", "predicted peak of a device",
     .get = predicted_of, .which = CS_MEASURE_ALLOCATED},
    {"measured_allocated", CS_H5_DOUBLE, "bytes", "torch.cuda.max_memory_allocated",
     .get = measured_of, .which = CS_MEASURE_ALLOCATED},
    {"predicted_least", CS_H5_DOUBLE, "bytes", "predicted peak of the emptiest device",
     .get = predicted_of, .which = CS_MEASURE_LEAST},
    {"measured_least", CS_H5_DOUBLE, "bytes",
     "torch.cuda.max_memory_allocated of the emptiest rank", .get = measured_of,
     .which = CS_MEASURE_LEAST},
    {"predicted_reserved", CS_H5_DOUBLE, "bytes", "predicted peak of reserved memory",
     .get = predicted_of, .which = CS_MEASURE_RESERVED},
    {"measured_reserved", CS_H5_DOUBLE, "bytes", "torch.cuda.max_memory_reserved",
     .get = measured_of, .which = CS_MEASURE_RESERVED},
    {"measured_device_memory", CS_H5_DOUBLE, "bytes",
     "of nvidia-smi, or what the source does not say", .get = measured_of,
     .which = CS_MEASURE_DEVICE},
    PART("products", PRODUCTS, "of the predicted step: matrix products"),
    PART("attention", ATTENTION, "attention"),
    PART("memory_bound", MEMORY_BOUND, "other operators"),
    PART("launch_gaps", WAITING, "what the host is slower than the device"),
    PART("other_computing", COMPUTING, "layers whose operators are not known"),
    PART("slowed", SLOWED, "by which communication makes computing longer"),
    PART("optimizer", OPTIMIZER, "updates"),
    PART("for_stages", FOR_STAGES, "exposed communication between stages"),
    PART("for_gradients", FOR_GRADIENTS, "of gradients"),
    PART("for_weights", FOR_WEIGHTS, "of weights"),
    PART("for_tensor", FOR_TENSOR, "over tensor-parallel ranks"),
    PART("for_context", FOR_CONTEXT, "over context-parallel ranks"),
    PART("for_expert", FOR_EXPERT, "between experts"),
    PART("for_space", FOR_SPACE, "between parts of images"),
    PART("for_host", FOR_HOST, "between devices and their hosts"),
    PART("bubble", BUBBLE, "waiting for others that compute"),
    {"predicted_out_of_memory", CS_H5_DOUBLE, "1", "1: predicted to be out of memory",
     .get = verdict_of, .which = 0},
    {"depends", CS_H5_DOUBLE, "1",
     "1: predicted to be out of memory, but not if everything is computed again, and the point "
     "does "
     "not say what is",
     .get = verdict_of, .which = 2},
    {"measured_out_of_memory", CS_H5_DOUBLE, "1", "1: it was out of memory", .get = verdict_of,
     .which = 1},
    {0},
};

/* ---- errors ---- */

static const cs_error_row *row_of(const void *source, uint64_t row)
{
    return &((const cs_error_table *)source)->rows[row];
}

static cs_h5_value grouping_of(const void *source, uint64_t row, uint32_t which)
{
    (void)which;
    return text_value(cs_grouping_names[row_of(source, row)->grouping]);
}

static cs_h5_value name_of(const void *source, uint64_t row, uint32_t which)
{
    (void)which;
    return text_value(row_of(source, row)->name);
}

enum {
    N_POINTS,
    N_PREDICTED,
    N_MISSING,
    N_FAILED,
    N_TIMES,
    N_VERDICTS,
    N_RIGHT,
    N_CAUGHT,
    N_MISSED,
    N_FALSE_ALARMS,
    N_FITTED,
    N_DEPENDS
};

static cs_h5_value count_of(const void *source, uint64_t row, uint32_t which)
{
    const cs_error_row *from = row_of(source, row);
    const uint32_t counts[] = {
        [N_POINTS] = from->n_points,
        [N_PREDICTED] = from->n_states[CS_PREDICTION_MADE],
        [N_MISSING] = from->n_states[CS_PREDICTION_MISSING],
        [N_FAILED] = from->n_states[CS_PREDICTION_FAILED],
        [N_TIMES] = from->measures[CS_MEASURE_TIME].n,
        [N_VERDICTS] = from->n_verdicts,
        [N_RIGHT] = from->n_right,
        [N_CAUGHT] = from->verdicts.n[1][1],
        [N_MISSED] = from->verdicts.n[1][0] + from->verdicts.depends[1],
        [N_FALSE_ALARMS] = from->verdicts.n[0][1],
        [N_FITTED] = from->verdicts.n[0][0] + from->verdicts.depends[0],
        [N_DEPENDS] = from->verdicts.depends[0] + from->verdicts.depends[1],
    };
    return (cs_h5_value){.uint32 = counts[which]};
}

enum { MEAN, MEDIAN, LARGEST, BIAS, N_STATISTICS };

static cs_h5_value statistic_of(const void *source, uint64_t row, uint32_t which)
{
    const cs_error_summary *from = &row_of(source, row)->measures[which / N_STATISTICS];
    const double values[N_STATISTICS] = {from->mean, from->median, from->largest, from->bias};
    return (cs_h5_value){.float64 = values[which % N_STATISTICS]};
}

#define STATISTICS(prefix, measure)                                                                \
    {prefix "_mean",                                                                               \
     CS_H5_DOUBLE,                                                                                 \
     "1",                                                                                          \
     "mean of the absolute errors",                                                                \
     .get = statistic_of,                                                                          \
     .which = (measure)*N_STATISTICS + MEAN},                                                      \
        {prefix "_median",                                                                         \
         CS_H5_DOUBLE,                                                                             \
         "1",                                                                                      \
         "median of the absolute errors",                                                          \
         .get = statistic_of,                                                                      \
         .which = (measure)*N_STATISTICS + MEDIAN},                                                \
        {prefix "_largest",   CS_H5_DOUBLE,        "1",                                            \
         "the largest error", .get = statistic_of, .which = (measure)*N_STATISTICS + LARGEST},     \
    {                                                                                              \
        prefix "_bias", CS_H5_DOUBLE, "1", "mean of the errors",                                   \
            .get = statistic_of, .which = (measure)*N_STATISTICS + BIAS                            \
    }

static const cs_h5_column errors[] = {
    {"row", CS_H5_UINT32, "1", "number of the row", .fill = cs_h5_row_numbers},
    {"grouping", CS_H5_TEXT, "1", "by what points are put together", .get = grouping_of},
    {"name", CS_H5_TEXT, "1", "of the group", .get = name_of},
    {"points", CS_H5_UINT32, "1", "points of the group", .get = count_of, .which = N_POINTS},
    {"predicted", CS_H5_UINT32, "1", "points that are predicted", .get = count_of,
     .which = N_PREDICTED},
    {"missing", CS_H5_UINT32, "1", "points that miss a feature", .get = count_of,
     .which = N_MISSING},
    {"failed", CS_H5_UINT32, "1", "points that fail", .get = count_of, .which = N_FAILED},
    {"times", CS_H5_UINT32, "1", "points with a measured time of those", .get = count_of,
     .which = N_TIMES},
    {"verdicts", CS_H5_UINT32, "1", "points of which it is known and predicted whether they fit",
     .get = count_of, .which = N_VERDICTS},
    {"right", CS_H5_UINT32, "1", "verdicts that are right", .get = count_of, .which = N_RIGHT},
    {"caught", CS_H5_UINT32, "1", "runs out of memory that were predicted to be", .get = count_of,
     .which = N_CAUGHT},
    {"missed", CS_H5_UINT32, "1", "runs out of memory that were predicted to fit", .get = count_of,
     .which = N_MISSED},
    {"false_alarms", CS_H5_UINT32, "1", "runs that fitted, predicted to be out of memory",
     .get = count_of, .which = N_FALSE_ALARMS},
    {"fitted", CS_H5_UINT32, "1", "runs that fitted, predicted to fit", .get = count_of,
     .which = N_FITTED},
    {"depends", CS_H5_UINT32, "1",
     "runs predicted to fit only with full recomputation, of missed and fitted", .get = count_of,
     .which = N_DEPENDS},
    STATISTICS("step_time", CS_MEASURE_TIME),
    STATISTICS("allocated", CS_MEASURE_ALLOCATED),
    STATISTICS("least", CS_MEASURE_LEAST),
    STATISTICS("reserved", CS_MEASURE_RESERVED),
    STATISTICS("device_memory", CS_MEASURE_DEVICE),
    {0},
};

/* ---- parts of steps: a row per dataset and part, and one for the rest ---- */

enum { ROWS_OF_DATASET = CS_N_STEP_PARTS + 1 };

static const cs_error_parts *parts_of(const void *source, uint64_t row)
{
    return &((const cs_error_parts_table *)source)->rows[row / ROWS_OF_DATASET];
}

enum { OF_DATASET, OF_PART };

static cs_h5_value decomposed_text(const void *source, uint64_t row, uint32_t which)
{
    const uint64_t part = row % ROWS_OF_DATASET;
    if (which == OF_DATASET)
        return text_value(parts_of(source, row)->dataset);
    return text_value(part < CS_N_STEP_PARTS ? cs_step_part_keys[part] : "rest");
}

static cs_h5_value decomposed_points(const void *source, uint64_t row, uint32_t which)
{
    (void)which;
    return (cs_h5_value){.uint32 = parts_of(source, row)->n};
}

enum { PREDICTED_SHARE, LACKING_SHARE };

static cs_h5_value decomposed_share(const void *source, uint64_t row, uint32_t which)
{
    const cs_error_parts *from = parts_of(source, row);
    const uint64_t part = row % ROWS_OF_DATASET;
    if (part == CS_N_STEP_PARTS)
        return (cs_h5_value){.float64 = which == LACKING_SHARE ? from->rest : 0};
    return (cs_h5_value){.float64 =
                             which == LACKING_SHARE ? from->lacking[part] : from->predicted[part]};
}

static const cs_h5_column decomposition[] = {
    {"row", CS_H5_UINT32, "1", "number of the row", .fill = cs_h5_row_numbers},
    {"dataset", CS_H5_TEXT, "1", "or empty, of all", .get = decomposed_text, .which = OF_DATASET},
    {"part", CS_H5_TEXT, "1", "of a step, or the rest", .get = decomposed_text, .which = OF_PART},
    {"points", CS_H5_UINT32, "1", "with a measured time", .get = decomposed_points},
    {"predicted", CS_H5_DOUBLE, "1", "mean share of the measured step that is predicted",
     .get = decomposed_share, .which = PREDICTED_SHARE},
    {"lacking", CS_H5_DOUBLE, "1", "mean share that it lacks, by least squares",
     .get = decomposed_share, .which = LACKING_SHARE},
    {0},
};

/* ---- the file ---- */

static cs_status fill(cs_h5_file *file, const cs_validation_info *info,
                      const cs_predictions *predictions, const cs_judgement *judgement,
                      cs_error *error)
{
    const cs_error_table *table = &judgement->table;
    const cs_error_parts_table *parts = &judgement->parts;
    const cs_h5_table of_points = {.group = "points",
                                   .index = "point",
                                   .columns = points,
                                   .n_rows = predictions->n,
                                   .source = predictions};
    const cs_h5_table of_errors = {
        .group = "errors", .index = "row", .columns = errors, .n_rows = table->n, .source = table};
    const cs_h5_table of_parts = {.group = "decomposition",
                                  .index = "row",
                                  .columns = decomposition,
                                  .n_rows = (uint64_t)parts->n * ROWS_OF_DATASET,
                                  .source = parts};
    CS_TRY(cs_h5_set_text(file, "format", CS_VALIDATION_FORMAT, error));
    CS_TRY(cs_h5_set_int64(file, "schema_version", CS_VALIDATION_VERSION, error));
    CS_TRY(cs_h5_set_text(file, "command", info->command, error));
    CS_TRY(cs_h5_set_text(file, "program_version", info->program_version, error));
    CS_TRY(cs_h5_write_table(file, &of_points, error));
    CS_TRY(cs_h5_write_table(file, &of_errors, error));
    CS_TRY(cs_h5_write_table(file, &of_parts, error));
    CS_TRY(cs_judgement_write_tables(file, judgement, error));
    return cs_h5_commit(file, error);
}

cs_status cs_validation_store(const char *path, const cs_validation_info *info,
                              const cs_predictions *predictions, const cs_judgement *judgement,
                              const cs_progress *progress, cs_error *error)
{
    cs_h5_file *file = NULL;
    CS_TRY(cs_h5_create(path, progress, &file, error));
    const cs_status status = fill(file, info, predictions, judgement, error);
    cs_h5_destroy(file);
    return status;
}

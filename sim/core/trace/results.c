#include "sim/core/trace/results.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Source of task columns. */
typedef struct source {
    const cs_graph *graph;
    const cs_trace *trace;
    const uint32_t *rows; /* task of each row; NULL: all tasks */
} source;

static const char *const kind_names[] = {
#define KIND_NAME(name, text, symbol, group) text,
    CS_KIND_MAP(KIND_NAME)
#undef KIND_NAME
        NULL,
};

static const char *const category_names[] = {
#define CATEGORY_NAME(name, text) text,
    CS_CATEGORY_MAP(CATEGORY_NAME)
#undef CATEGORY_NAME
        NULL,
};

static const char *const purpose_names[] = {
#define PURPOSE_NAME(name, text) text,
    CS_PURPOSE_MAP(PURPOSE_NAME)
#undef PURPOSE_NAME
        "none",
    NULL,
};

static const char *const no_yes[] = {"no", "yes", NULL};

/* ---- tasks and versions ---- */

static uint32_t task_of(const source *from, uint64_t row)
{
    return from->rows ? from->rows[row] : (uint32_t)row;
}

/* Defines a function that fills a column with values of the type, from an expression of `task` and
 * of the column's `offset`. */
#define TASK_COLUMN(name, type, expression)                                                        \
    static void name(const void *data, uint64_t first, uint64_t count, uint32_t offset,            \
                     void *values)                                                                 \
    {                                                                                              \
        const source *from = data;                                                                 \
        type *out = values;                                                                        \
        (void)offset;                                                                              \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            const uint32_t task = task_of(from, first + i);                                        \
            out[i] = (expression);                                                                 \
        }                                                                                          \
    }

static const cs_class *class_of(const source *from, uint32_t task)
{
    return cs_graph_class(from->graph, task);
}

/* Members are addressed by offset, so one function serves all columns of a type. */
static uint8_t uint8_at(const void *record, uint32_t offset)
{
    return ((const uint8_t *)record)[offset];
}

static uint32_t uint32_at(const void *record, uint32_t offset)
{
    uint32_t value;
    memcpy(&value, (const char *)record + offset, sizeof(value));
    return value;
}

static int64_t int64_at(const void *record, uint32_t offset)
{
    int64_t value;
    memcpy(&value, (const char *)record + offset, sizeof(value));
    return value;
}

/* Purpose of a message; none for computations. */
static uint8_t purpose_of(const cs_class *cls)
{
    const bool computed = cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE;
    return computed ? CS_N_PURPOSES : cls->purpose;
}

TASK_COLUMN(task_ids, uint32_t, task)
TASK_COLUMN(task_coded, uint8_t, uint8_at(class_of(from, task), offset))
TASK_COLUMN(task_purposes, uint8_t, purpose_of(class_of(from, task)))
TASK_COLUMN(task_uint32s, uint32_t, uint32_at(class_of(from, task), offset))
TASK_COLUMN(task_bytes, int64_t, class_of(from, task)->bytes)
TASK_COLUMN(task_times, int64_t, int64_at(&from->trace->spans[task], offset))
TASK_COLUMN(task_mini_batches, uint32_t, cs_graph_mini_batch(from->graph, task))
TASK_COLUMN(task_micro_batches, uint32_t, cs_graph_micro_batch(from->graph, task))
TASK_COLUMN(task_versions, uint32_t, from->trace->versions[task])

static const cs_h5_column task_columns[] = {
    {"task", CS_H5_UINT32, "1", "id of the task", .fill = task_ids},
    {"kind", CS_H5_UINT8, "1", "kind of task", kind_names, .fill = task_coded,
     .which = offsetof(cs_class, kind)},
    {"origin", CS_H5_UINT8, "1", "what a transfer is part of, or the kind", kind_names,
     .fill = task_coded, .which = offsetof(cs_class, origin)},
    {"purpose", CS_H5_UINT8, "1", "what a transfer is for", purpose_names, .fill = task_purposes},
    {"device", CS_H5_UINT32, "1", "device that computes or sends", .fill = task_uint32s,
     .which = offsetof(cs_class, device)},
    {"peer", CS_H5_UINT32, "1", "device that receives a transfer", .optional = true,
     .fill = task_uint32s, .which = offsetof(cs_class, peer)},
    {"stage", CS_H5_UINT32, "1", "stage of the model", .optional = true, .fill = task_uint32s,
     .which = offsetof(cs_class, stage)},
    {"mini_batch", CS_H5_UINT32, "1", "mini-batch", .fill = task_mini_batches},
    {"micro_batch", CS_H5_UINT32, "1", "micro-batch of its mini-batch", .fill = task_micro_batches},
    {"start", CS_H5_INT64, "ps", "start, -1 if it never ran", .fill = task_times,
     .which = offsetof(cs_span, start)},
    {"end", CS_H5_INT64, "ps", "end, -1 if it never ran", .fill = task_times,
     .which = offsetof(cs_span, end)},
    {"bytes", CS_H5_INT64, "bytes", "size of a transfer", .fill = task_bytes},
    {0},
};

static const cs_h5_column version_columns[] = {
    {"task", CS_H5_UINT32, "1", "id of the task", .fill = task_ids},
    {"stage", CS_H5_UINT32, "1", "stage of the model", .optional = true, .fill = task_uint32s,
     .which = offsetof(cs_class, stage)},
    {"device", CS_H5_UINT32, "1", "device that computes", .fill = task_uint32s,
     .which = offsetof(cs_class, device)},
    {"mini_batch", CS_H5_UINT32, "1", "mini-batch", .fill = task_mini_batches},
    {"version", CS_H5_UINT32, "1", "version of the weights read (an update: made)",
     .optional = true, .fill = task_versions},
    {0},
};

/* Rate over the whole transfer, including latencies and waiting for links. */
static double rate_of(const source *from, uint32_t task)
{
    const cs_span span = from->trace->spans[task];
    const double seconds = cs_time_seconds(span.end - span.start);
    return seconds > 0 ? (double)class_of(from, task)->bytes / seconds : INFINITY;
}

TASK_COLUMN(transfer_rates, double, rate_of(from, task))

static const cs_h5_column transfer_columns[] = {
    {"task", CS_H5_UINT32, "1", "id of the task", .fill = task_ids},
    {"rate", CS_H5_DOUBLE, "bytes/s", "bytes over time from start to end", .fill = transfer_rates},
    {0},
};

static const cs_h5_column rate_columns[] = {
    {"sample", CS_H5_UINT32, "1", "number of the sample", .fill = cs_h5_row_numbers},
    {"time", CS_H5_INT64, "ps", "time of the change", .which = offsetof(cs_rate_sample, time)},
    {"task", CS_H5_UINT32, "1", "transfer", .which = offsetof(cs_rate_sample, task)},
    {"rate", CS_H5_DOUBLE, "bytes/s", "rate of its bytes from then on",
     .which = offsetof(cs_rate_sample, rate)},
    {0},
};

/* ---- memory ---- */

/* Samples read last. Columns are written block by block, so each block is read once. */
typedef struct sample_block {
    cs_memory_samples *samples;
    uint64_t first, n; /* range of samples in the block */
    cs_memory_sample *at;
} sample_block;

enum { SAMPLES = 1 << 16 }; /* maximum number of samples in a block */

static void read_samples(sample_block *block, uint64_t first, uint64_t n)
{
    if (block->n == n && block->first == first)
        return;
    uint64_t next = block->first + block->n;
    if (next == 0 || next > first) {
        cs_samples_rewind(block->samples);
        next = 0;
    }
    for (; next < first; next++)
        (void)cs_samples_next(block->samples, &block->at[0]);
    (void)cs_samples_read(block->samples, n, block->at);
    block->first = first;
    block->n = n;
}

#define SAMPLE_COLUMN(name, type, member)                                                          \
    static void name(const void *data, uint64_t first, uint64_t count, uint32_t which,             \
                     void *values)                                                                 \
    {                                                                                              \
        (void)which;                                                                               \
        sample_block *const *block = data;                                                         \
        type *out = values;                                                                        \
        for (uint64_t done = 0, n; done < count; done += n) {                                      \
            n = count - done < SAMPLES ? count - done : SAMPLES;                                   \
            read_samples(*block, first + done, n);                                                 \
            for (uint64_t i = 0; i < n; i++)                                                       \
                *out++ = (type)(*block)->at[i].member;                                             \
        }                                                                                          \
    }

SAMPLE_COLUMN(sample_times, int64_t, time)
SAMPLE_COLUMN(sample_devices, uint32_t, device)
SAMPLE_COLUMN(sample_categories, uint8_t, category)
SAMPLE_COLUMN(sample_bytes, int64_t, bytes)

static const cs_h5_column memory_columns[] = {
    {"sample", CS_H5_UINT32, "1", "number of the sample", .fill = cs_h5_row_numbers},
    {"time", CS_H5_INT64, "ps", "time of the change", .fill = sample_times},
    {"device", CS_H5_UINT32, "1", "device", .fill = sample_devices},
    {"category", CS_H5_UINT8, "1", "what the memory holds", category_names,
     .fill = sample_categories},
    {"bytes", CS_H5_INT64, "bytes", "live bytes from then on", .fill = sample_bytes},
    {0},
};

static cs_status write_memory(cs_h5_file *file, cs_memory_samples *samples, cs_error *error)
{
    const uint64_t n = cs_samples_count(samples);
    sample_block block = {.samples = samples,
                          .at = malloc((n < SAMPLES ? n + 1 : SAMPLES) * sizeof(*block.at))};
    sample_block *const rows = &block;
    if (!block.at)
        return cs_error_no_memory(error);
    const cs_h5_table table = {"memory", "sample", memory_columns, n, &rows};
    const cs_status status = cs_h5_write_table(file, &table, error);
    free(block.at);
    return status;
}

/* ---- links ---- */

static const cs_h5_column link_columns[] = {
    {"link", CS_H5_UINT32, "1", "number of the link", .fill = cs_h5_row_numbers},
    {"name", CS_H5_TEXT, "1", "name of the link", .which = offsetof(cs_link_record, name)},
    {"bandwidth", CS_H5_DOUBLE, "bytes/s", "bandwidth",
     .which = offsetof(cs_link_record, bandwidth)},
    {"bytes", CS_H5_INT64, "bytes", "bytes carried", .which = offsetof(cs_link_record, bytes)},
    {0},
};

static cs_h5_value link_utilisation(const void *data, uint64_t row, uint32_t which)
{
    (void)which;
    const cs_trace *trace = data;
    const cs_link_record *link = &trace->links[row];
    double could = link->bandwidth * cs_time_seconds(trace->makespan);
    return (cs_h5_value){.float64 = could > 0 ? (double)link->bytes / could : 0};
}

/* Columns of the same table that also need the makespan. */
static const cs_h5_column link_use_columns[] = {
    {"utilisation", CS_H5_DOUBLE, "1", "share of what the link could have carried",
     .get = link_utilisation},
    {0},
};

/* ---- devices ---- */

/* The oom_* fields of a record are set only if the device ran out of memory. */
static cs_h5_value device_oom_time(const void *data, uint64_t row, uint32_t which)
{
    (void)which;
    const cs_device_record *device = (const cs_device_record *)data + row;
    return (cs_h5_value){.int64 = device->out_of_memory ? device->oom_time : -1};
}

static cs_h5_value device_oom_task(const void *data, uint64_t row, uint32_t which)
{
    (void)which;
    const cs_device_record *device = (const cs_device_record *)data + row;
    return (cs_h5_value){.uint32 = device->out_of_memory ? device->oom_task : CS_NONE};
}

static cs_h5_value device_at_oom(const void *data, uint64_t row, uint32_t category)
{
    const cs_device_record *device = (const cs_device_record *)data + row;
    return (cs_h5_value){.int64 = device->out_of_memory ? device->at_oom[category] : 0};
}

static cs_h5_value device_simulated_as(const void *data, uint64_t row, uint32_t which)
{
    (void)which;
    return (cs_h5_value){.uint32 = cs_graph_stand_in(data, (uint32_t)row)};
}

/* Columns of the same table that also need the graph. */
static const cs_h5_column device_fold_columns[] = {
    {"simulated_as", CS_H5_UINT32, "1", "device that was simulated in its place, or itself",
     .get = device_simulated_as},
    {0},
};

#define BYTES_OF(member) CS_H5_INT64, "bytes", .which = offsetof(cs_device_record, member)

static const cs_h5_column device_columns[] = {
    {"device", CS_H5_UINT32, "1", "number of the device", .fill = cs_h5_row_numbers},
    {"capacity", BYTES_OF(capacity), .long_name = "memory, the largest int64 when unlimited"},
    {"peak", BYTES_OF(peak), .long_name = "most live bytes"},
    {"peak_time", CS_H5_INT64, "ps", "when the peak is first reached",
     .which = offsetof(cs_device_record, peak_time)},
#define AT_PEAK(name, text)                                                                        \
    {"at_peak_" text, BYTES_OF(at_peak[CS_MEMORY_##name]), .long_name = text " at the peak"},
    CS_CATEGORY_MAP(AT_PEAK)
#undef AT_PEAK
#define PEAK(name, text)                                                                           \
    {"peak_" text, BYTES_OF(category_peak[CS_MEMORY_##name]), .long_name = "most " text},
        CS_CATEGORY_MAP(PEAK)
#undef PEAK
            {"out_of_memory", CS_H5_UINT8, "1", "whether the peak exceeds the capacity", no_yes,
             .which = offsetof(cs_device_record, out_of_memory)},
    {"oom_time", CS_H5_INT64, "ps", "first allocation beyond the capacity, -1 without one",
     .get = device_oom_time},
    {"oom_task", CS_H5_UINT32, "1", "task that made it", .optional = true, .get = device_oom_task},
#define AT_OOM(name, text)                                                                         \
    {"at_oom_" text, CS_H5_INT64,          "bytes",                                                \
     text " then",   .get = device_at_oom, .which = CS_MEMORY_##name},
    CS_CATEGORY_MAP(AT_OOM)
#undef AT_OOM
        {0},
};

/* ---- the file ---- */

static cs_status write_attributes(cs_h5_file *file, const cs_results_info *info,
                                  const cs_graph *graph, const cs_trace *trace, cs_error *error)
{
    char hash[17];
    snprintf(hash, sizeof(hash), "%016" PRIx64, info->hash ? info->hash : cs_trace_hash(trace));
    const char *const texts[][2] = {
        {"format", CS_RESULTS_FORMAT},
        {"name", info->name},
        {"topology", info->topology},
        {"schedule", info->schedule},
        {"program_version", info->program_version},
        {"scenario", info->scenario},
        {"hash", hash},
        {"origin", info->provenance ? CS_RESULTS_MEASURED : CS_RESULTS_SIMULATED},
    };
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"schema_version", CS_RESULTS_VERSION},
        {"makespan", trace->makespan},
        {"mini_batches", graph->n_batches},
        {"micro_batches", graph->micro_batches},
        {"stopped", trace->stopped},
    };
    cs_status status = cs_h5_set_uint64(file, "seed", info->seed, error);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && status == CS_OK; i++)
        status = cs_h5_set_text(file, texts[i][0], texts[i][1], error);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && status == CS_OK; i++)
        status = cs_h5_set_int64(file, numbers[i].name, numbers[i].value, error);
    const char *const optional[][2] = {{"provenance", info->provenance},
                                       {"sharing", info->sharing},
                                       {"algorithms", info->algorithms},
                                       {"fidelity", info->fidelity}};
    for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]) && status == CS_OK; i++)
        if (optional[i][1])
            status = cs_h5_set_text(file, optional[i][0], optional[i][1], error);
    return status;
}

typedef bool row_filter(const cs_graph *graph, const cs_trace *trace, uint32_t task);

static bool has_version(const cs_graph *graph, const cs_trace *trace, uint32_t task)
{
    (void)graph;
    return trace->versions && trace->versions[task] != CS_NONE;
}

/* Whether the task is a transfer with bytes that finished. A transfer that ends at a stop of the
 * run was cut off. */
static bool is_transfer(const cs_graph *graph, const cs_trace *trace, uint32_t task)
{
    const cs_class *cls = cs_graph_class(graph, task);
    const cs_time end = trace->spans[task].end;
    return cls->kind == CS_TRANSFER && cls->bytes > 0 && end >= 0 &&
           !(trace->stopped && end == trace->makespan);
}

/* Writes a table with one row per task that passes the filter, in order. */
static cs_status write_some(cs_h5_file *file, const char *group, const cs_h5_column *columns,
                            row_filter *filter, const cs_graph *graph, const cs_trace *trace,
                            cs_error *error)
{
    uint32_t n = 0;
    /* most pages stay untouched */
    uint32_t *rows = malloc(((size_t)trace->n_tasks + 1) * sizeof(*rows));
    if (!rows)
        return cs_error_no_memory(error);
    for (uint32_t task = 0; task < trace->n_tasks; task++)
        if (filter(graph, trace, task))
            rows[n++] = task;
    const source from = {graph, trace, rows};
    const cs_h5_table table = {group, "task", columns, n, &from};
    const cs_status status = cs_h5_write_table(file, &table, error);
    free(rows);
    return status;
}

cs_status cs_results_write(cs_h5_file *file, const cs_results_info *info, const cs_graph *graph,
                           const cs_trace *trace, cs_error *error)
{
    const source all = {graph, trace, NULL};
    const cs_h5_table tasks = {"tasks", "task", task_columns, trace->n_tasks, &all};
    const cs_h5_table tables[] = {
        {"rates", "sample", rate_columns, trace->n_rates, trace->rates,
         .row_size = sizeof(*trace->rates)},
        {"links", "link", link_columns, trace->n_links, trace->links,
         .row_size = sizeof(*trace->links)},
        {"links", "link", link_use_columns, trace->n_links, trace},
        {"devices", "device", device_columns, trace->n_devices, trace->devices,
         .row_size = sizeof(*trace->devices)},
    };
    const cs_h5_table fold = {"devices", "device", device_fold_columns, graph->n_devices, graph};
    cs_status status = write_attributes(file, info, graph, trace, error);
    if (status == CS_OK)
        status = cs_h5_write_table(file, &tasks, error);
    if (status == CS_OK)
        status = write_memory(file, trace->samples, error);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && status == CS_OK; i++)
        status = cs_h5_write_table(file, &tables[i], error);
    if (status == CS_OK && graph->stands_for)
        status = cs_h5_write_table(file, &fold, error);
    if (status == CS_OK)
        status = write_some(file, "versions", version_columns, has_version, graph, trace, error);
    return status == CS_OK
               ? write_some(file, "transfers", transfer_columns, is_transfer, graph, trace, error)
               : status;
}

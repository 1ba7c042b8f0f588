#include "sim/analysis/store.h"

#include <stddef.h>
#include <string.h>

static cs_h5_value time_at(const void *data, uint64_t row, uint32_t offset)
{
    cs_h5_value value;
    memcpy(&value.int64, (const char *)((const cs_time_use *)data + row) + offset,
           sizeof(value.int64));
    return value;
}

static cs_h5_value step_number(const void *data, uint64_t row, uint32_t which)
{
    (void)data, (void)which;
    return (cs_h5_value){.uint32 = (uint32_t)row};
}

static cs_h5_value step_task(const void *data, uint64_t row, uint32_t which)
{
    (void)which;
    return (cs_h5_value){.uint32 = ((const cs_path_step *)data)[row].task};
}

static cs_h5_value step_time(const void *data, uint64_t row, uint32_t offset)
{
    cs_h5_value value;
    memcpy(&value.int64, (const char *)((const cs_path_step *)data + row) + offset,
           sizeof(value.int64));
    return value;
}

#define TIME_OF(member) CS_H5_INT64, "ps", .get = time_at, .which = offsetof(cs_time_use, member)

/* Only computations take a device's time as such: transfers and collectives have no column. */
#define COMPUTE_COLUMN(name, text)                                                                 \
    {"compute_" text, TIME_OF(compute[CS_##name]), .long_name = "time in " text},
#define IF_COMPUTE(name, text)    COMPUTE_COLUMN(name, text)
#define IF_TRANSFER(name, text)   /* none */
#define IF_COLLECTIVE(name, text) /* none */

static const cs_h5_column device_columns[] = {
#define KIND_COLUMN(name, text, symbol, group) IF_##group(name, text)
    CS_KIND_MAP(KIND_COLUMN)
#undef KIND_COLUMN
        {"communication", TIME_OF(communication),
         .long_name = "blocked or idle for communication (exposed)"},
    {"dependency", TIME_OF(dependency), .long_name = "idle for what is computed elsewhere"},
    {"flush", TIME_OF(flush), .long_name = "idle between mini-batches and at the end"},
    {0},
};

static const cs_h5_column path_columns[] = {
    {"step", CS_H5_UINT32, "1", "number of the step", .get = step_number},
    {"task", CS_H5_UINT32, "1", "id of the task", .optional = true, .get = step_task},
    {"start", CS_H5_INT64, "ps", "start of the step", .get = step_time,
     .which = offsetof(cs_path_step, start)},
    {"end", CS_H5_INT64, "ps", "end of the step", .get = step_time,
     .which = offsetof(cs_path_step, end)},
    {0},
};

static cs_status store_figures(cs_h5_file *file, const cs_analysis *analysis, cs_error *error)
{
    const struct {
        const char *name;
        double value;
    } figures[] = {
        {"iteration_time_s", analysis->iteration_time},
        {"throughput_samples_per_s", analysis->throughput},
        {"bubble_fraction", analysis->bubble_fraction},
    };
    cs_status status = CS_OK;
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]) && status == CS_OK; i++)
        status = cs_h5_set_double(file, figures[i].name, figures[i].value, error);
    return status;
}

cs_status cs_analysis_store(cs_h5_file *file, const cs_analysis *analysis, cs_error *error)
{
    const cs_h5_table devices = {"devices", "device", device_columns, analysis->n_devices,
                                 analysis->devices};
    const cs_h5_table path = {"critical_path", "step", path_columns, analysis->n_steps,
                              analysis->steps};
    cs_status status = store_figures(file, analysis, error);
    if (status == CS_OK)
        status = cs_h5_write_table(file, &devices, error);
    if (status == CS_OK)
        status = cs_h5_write_table(file, &path, error);
    return status;
}

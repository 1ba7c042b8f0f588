#include "sim/core/analysis/store.h"

#include <stddef.h>
#include <stdlib.h>

#define TIME_OF(member) CS_H5_INT64, "ps", .which = offsetof(cs_time_use, member)

/* Only computations have a column: transfers and collectives do not occupy a device. */
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
    {"exposed_collectives", TIME_OF(collectives),
     .long_name = "part of communication: waiting for collectives"},
#define PURPOSE_COLUMN(name, text)                                                                 \
    {"exposed_for_" text, TIME_OF(exposed[CS_PURPOSE_##name]),                                     \
     .long_name = "part of communication: waiting for " text},
    CS_PURPOSE_MAP(PURPOSE_COLUMN)
#undef PURPOSE_COLUMN
        {"communication_active", TIME_OF(active), .long_name = "sending or receiving"},
#define ACTIVE_COLUMN(name, text)                                                                  \
    {"active_for_" text, TIME_OF(active_for[CS_PURPOSE_##name]),                                   \
     .long_name = "sending or receiving for " text},
    CS_PURPOSE_MAP(ACTIVE_COLUMN)
#undef ACTIVE_COLUMN
        {"communication_hidden", TIME_OF(hidden),
         .long_name = "sending or receiving while computing"},
    {"slowed_by_communication", TIME_OF(slowed),
     .long_name = "additional computing time due to simultaneous communication"},
    {"dependency", TIME_OF(dependency), .long_name = "idle while other devices compute"},
    {"flush", TIME_OF(flush), .long_name = "idle between mini-batches and at the end"},
    {0},
};

static const cs_h5_column path_columns[] = {
    {"step", CS_H5_UINT32, "1", "number of the step", .fill = cs_h5_row_numbers},
    {"task", CS_H5_UINT32, "1", "id of the task", .optional = true,
     .which = offsetof(cs_path_step, task)},
    {"start", CS_H5_INT64, "ps", "start of the step", .which = offsetof(cs_path_step, start)},
    {"end", CS_H5_INT64, "ps", "end of the step", .which = offsetof(cs_path_step, end)},
    {0},
};

static const char *const causes[] = {
#define CAUSE_TEXT(name, text) text,
    CS_WAIT_MAP(CAUSE_TEXT)
#undef CAUSE_TEXT
        NULL,
};

/* A block of waits. Columns are written block by block, so each block is read only once. */
typedef struct wait_block {
    cs_wait_reader reader;
    uint64_t first, n; /* range of the waits in the block */
    cs_wait *at;
} wait_block;

enum { WAITS = 1 << 16 }; /* most waits in a block */

static void read_waits(wait_block *block, uint64_t first, uint64_t n)
{
    if (block->n == n && block->first == first)
        return;
    if (block->reader.n_read > first)
        block->reader = (cs_wait_reader){.of = block->reader.of};
    while (block->reader.n_read < first)
        (void)cs_wait_next(&block->reader, &block->at[0]);
    for (uint64_t i = 0; i < n; i++)
        (void)cs_wait_next(&block->reader, &block->at[i]);
    block->first = first;
    block->n = n;
}

#define WAIT_COLUMN(name, type, member)                                                            \
    static void name(const void *data, uint64_t first, uint64_t count, uint32_t which,             \
                     void *values)                                                                 \
    {                                                                                              \
        (void)which;                                                                               \
        wait_block *const *block = data;                                                           \
        type *out = values;                                                                        \
        for (uint64_t done = 0, n; done < count; done += n) {                                      \
            n = count - done < WAITS ? count - done : WAITS;                                       \
            read_waits(*block, first + done, n);                                                   \
            for (uint64_t i = 0; i < n; i++)                                                       \
                *out++ = (type)(*block)->at[i].member;                                             \
        }                                                                                          \
    }

WAIT_COLUMN(wait_devices, uint32_t, device)
WAIT_COLUMN(wait_causes, uint8_t, cause)
WAIT_COLUMN(wait_starts, int64_t, start)
WAIT_COLUMN(wait_ends, int64_t, end)

static const cs_h5_column wait_columns[] = {
    {"wait", CS_H5_UINT32, "1", "number of the row", .fill = cs_h5_row_numbers},
    {"device", CS_H5_UINT32, "1", "device that does not compute", .fill = wait_devices},
    {"cause", CS_H5_UINT8, "1", "cause of the wait", .meanings = causes, .fill = wait_causes},
    {"start", CS_H5_INT64, "ps", "start of the wait", .fill = wait_starts},
    {"end", CS_H5_INT64, "ps", "end of the wait", .fill = wait_ends},
    {0},
};

#define ROW_OF(member) CS_H5_UINT32, "1", .which = offsetof(cs_staleness_row, member)

static const cs_h5_column staleness_columns[] = {
    {"row", CS_H5_UINT32, "1", "number of the row", .fill = cs_h5_row_numbers},
    {"mini_batch", ROW_OF(mini_batch), .long_name = "mini-batch"},
    {"slot", ROW_OF(slot), .long_name = "weights, see /weights"},
    {"stage", ROW_OF(stage), .long_name = "stage of the weights"},
    {"device", ROW_OF(device), .long_name = "device that has them"},
    {"made", ROW_OF(made), .long_name = "version that the mini-batch's update makes",
     .optional = true},
    {"forward_oldest", ROW_OF(forward.oldest), .long_name = "oldest version that a forward read",
     .optional = true},
    {"forward_newest", ROW_OF(forward.newest), .long_name = "newest version that a forward read",
     .optional = true},
    {"backward_oldest", ROW_OF(backward.oldest), .long_name = "oldest version that a backward read",
     .optional = true},
    {"backward_newest", ROW_OF(backward.newest), .long_name = "newest version that a backward read",
     .optional = true},
    {0},
};

#define SLOT_OF(member) CS_H5_UINT32, "1", .which = offsetof(cs_slot_staleness, member)

static const cs_h5_column slot_columns[] = {
    {"slot", CS_H5_UINT32, "1", "number of the slot", .fill = cs_h5_row_numbers},
    {"stage", SLOT_OF(stage), .long_name = "stage of the weights"},
    {"device", SLOT_OF(device), .long_name = "device that has them"},
    {"versions_made", SLOT_OF(versions_made),
     .long_name = "updates that ended, and messages that brought versions"},
    {"peak_versions", SLOT_OF(peak_versions), .long_name = "most versions alive at once"},
    {0},
};

static const cs_h5_column batch_columns[] = {
    {"mini_batch", CS_H5_UINT32, "1", "mini-batch", .fill = cs_h5_row_numbers},
    {"version_difference", CS_H5_INT64, "1",
     "number of the mini-batch, from 1, minus the number of the newest mini-batch whose update its "
     "backward on the last stage read",
     .which = offsetof(cs_batch_staleness, version_difference)},
    {"sequence_by_backward", CS_H5_UINT32, "1", "mini-batches linked by reads of backwards",
     .which = offsetof(cs_batch_staleness, by_backward)},
    {"sequence_by_both", CS_H5_UINT32, "1",
     "mini-batches linked by reads of forwards and backwards",
     .which = offsetof(cs_batch_staleness, by_both)},
    {0},
};

cs_status cs_analysis_store(cs_h5_file *file, const cs_analysis *analysis, cs_error *error)
{
    const cs_h5_table devices = {"devices",         "device",
                                 device_columns,    analysis->n_devices,
                                 analysis->devices, .row_size = sizeof(*analysis->devices)};
    const cs_h5_table path = {"critical_path", "step",
                              path_columns,    analysis->n_steps,
                              analysis->steps, .row_size = sizeof(*analysis->steps)};
    CS_TRY(cs_h5_write_table(file, &devices, error));
    CS_TRY(cs_h5_write_table(file, &path, error));
    const cs_h5_table tables[] = {
        {"staleness", "row", staleness_columns,
         (uint64_t)analysis->staleness.n_batches * analysis->staleness.n_slots,
         analysis->staleness.rows, .row_size = sizeof(*analysis->staleness.rows)},
        {"weights", "slot", slot_columns, analysis->staleness.n_slots, analysis->staleness.slots,
         .row_size = sizeof(*analysis->staleness.slots)},
        {"mini_batches", "mini_batch", batch_columns, analysis->staleness.n_batches,
         analysis->staleness.batches, .row_size = sizeof(*analysis->staleness.batches)},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        CS_TRY(cs_h5_write_table(file, &tables[i], error));
    return CS_OK;
}

cs_status cs_waits_store(cs_h5_file *file, const cs_waits *waits, cs_error *error)
{
    wait_block block = {.reader.of = waits,
                        .at =
                            malloc((waits->n < WAITS ? waits->n + 1 : WAITS) * sizeof(*block.at))};
    wait_block *const rows = &block;
    if (!block.at)
        return cs_error_no_memory(error);
    const cs_h5_table table = {"waits", "wait", wait_columns, waits->n, &rows};
    const cs_status status = cs_h5_write_table(file, &table, error);
    free(block.at);
    return status;
}

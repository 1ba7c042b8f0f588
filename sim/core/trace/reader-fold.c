#include "sim/core/trace/reader-parts.h"

#include "sim/base/hash.h"
#include "sim/base/vector.h"
#include "sim/core/trace/file-layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devices that others stand for ---- */

const char *cs_reader_kind_name(cs_reader *reader, const uint32_t *by, uint32_t n, uint32_t device)
{
    char text[32];
    uint32_t count = 0, last = device;
    for (uint32_t d = device; d < n; d++)
        if (by[d] == device) {
            last = d;
            count++;
        }
    if (count > 1 && last - device + 1 != count)
        snprintf(text, sizeof(text), "%" PRIu32 "(x%" PRIu32 ")", device, count);
    else
        snprintf(text, sizeof(text), count == 1 ? "%" PRIu32 : "%" PRIu32 "-%" PRIu32, device,
                 last);
    return cs_arena_copy(&reader->arena, text);
}

/* Folds devices; by[d] is the device that stands for d. */
static cs_status fold(cs_reader *reader, const uint32_t *by, uint32_t n, cs_error *error)
{
    uint32_t *row_of = cs_arena_alloc(&reader->arena, (size_t)n + 1, sizeof(*row_of));
    uint32_t *stand_in_of = cs_arena_alloc(&reader->arena, (size_t)n + 1, sizeof(*stand_in_of));
    const char **kinds = cs_arena_alloc(&reader->arena, (size_t)n + 1, sizeof(*kinds));
    if (!row_of || !stand_in_of || !kinds)
        return cs_error_no_memory(error);
    uint32_t n_kinds = 0;
    for (uint32_t d = 0; d < n; d++) {
        row_of[d] = UINT32_MAX;
        if (by[d] != d)
            continue;
        kinds[n_kinds] = cs_reader_kind_name(reader, by, n, d);
        if (!kinds[n_kinds])
            return cs_error_no_memory(error);
        row_of[d] = n_kinds++;
    }
    for (uint32_t d = 0; d < n; d++)
        stand_in_of[d] = row_of[by[d]];
    reader->row_of = row_of;
    reader->stand_in_of = stand_in_of;
    reader->kinds = kinds;
    reader->n_kinds = n_kinds;
    reader->n_file_devices = n;
    return CS_OK;
}

/* Reads for each device the device simulated in its place; NULL if every device was simulated. */
static cs_status read_stand_ins(cs_reader *reader, const uint32_t **by, uint64_t *n,
                                cs_error *error)
{
    const cs_reader_column column = {"devices/simulated_as", CS_READER_UINT32, by};
    *by = NULL;
    if (H5Lexists(reader->file, "devices", H5P_DEFAULT) <= 0 ||
        H5Lexists(reader->file, column.name, H5P_DEFAULT) <= 0)
        return CS_OK;
    CS_TRY(cs_reader_read(reader, &column, 1, n, error));
    for (uint64_t d = 0; d < *n; d++)
        if ((*by)[(*by)[d]] != (*by)[d])
            return cs_error_add(error, CS_INVALID,
                                "%s: %s: row %" PRIu64
                                " must be a device that was simulated itself "
                                "(got %" PRIu32 ")",
                                reader->path, column.name, d, (*by)[d]);
    return CS_OK;
}

cs_status cs_reader_fold(cs_reader *reader, cs_error *error)
{
    const uint32_t *by;
    uint64_t n = 0;
    if (reader->row_of)
        return CS_OK;
    CS_TRY(read_stand_ins(reader, &by, &n, error));
    return by ? fold(reader, by, (uint32_t)n, error) : CS_OK;
}

/* ---- devices that did the same ---- */

static void mix(uint64_t *hash, const void *data, size_t size)
{
    *hash = cs_hash_bytes(data, size, *hash);
}

/* Hashes the tasks of each device and their times. The receivers of its messages do not matter. */
static cs_status mix_tasks(cs_reader *reader, uint64_t *hashes, uint64_t n, cs_error *error)
{
    cs_reader_tasks t;
    const int64_t *bytes;
    const cs_reader_column column = {"tasks/bytes", CS_READER_INT64, &bytes};
    uint64_t n_tasks = 0;
    CS_TRY(cs_reader_read_tasks(reader, &t, error));
    CS_TRY(cs_reader_read(reader, &column, 1, &n_tasks, error));
    for (uint64_t i = 0; i < n_tasks; i++) {
        const int64_t did[] = {t.start[i],  t.end[i],        bytes[i],         t.kind[i],
                               t.origin[i], t.mini_batch[i], t.micro_batch[i], t.stage[i]};
        if (t.device[i] < n)
            mix(&hashes[t.device[i]], did, sizeof(did));
    }
    return CS_OK;
}

static cs_status mix_memory(cs_reader *reader, uint64_t *hashes, uint64_t n, cs_error *error)
{
    const int64_t *time, *bytes;
    const uint32_t *device, *category;
    const cs_reader_column columns[] = {{"memory/time", CS_READER_INT64, &time},
                                        {"memory/bytes", CS_READER_INT64, &bytes},
                                        {"memory/device", CS_READER_UINT32, &device},
                                        {"memory/category", CS_READER_UINT32, &category}};
    uint64_t n_samples = 0;
    CS_TRY(cs_reader_read(reader, columns, 4, &n_samples, error));
    for (uint64_t i = 0; i < n_samples; i++) {
        const int64_t held[] = {time[i], bytes[i], category[i]};
        if (device[i] < n)
            mix(&hashes[device[i]], held, sizeof(held));
    }
    return CS_OK;
}

/* Hashes capacity, peaks and the division of time: all columns except those with numbers of
 * devices. */
static cs_status mix_devices(cs_reader *reader, uint64_t *hashes, uint64_t n, cs_error *error)
{
    const char *const *names;
    uint32_t n_names = 0;
    uint64_t n_rows = 0;
    CS_TRY(cs_reader_names(reader, "devices", "", &names, &n_names, error));
    for (uint32_t i = 0; i < n_names; i++) {
        char name[160];
        const int64_t *values;
        const cs_reader_column column = {name, CS_READER_INT64, &values};
        snprintf(name, sizeof(name), "devices/%.140s", names[i]);
        const cs_file_layout_dataset *known = cs_file_layout_find(reader->layout, name);
        if (!known || known->type != CS_FILE_LAYOUT_WHOLE || strcmp(names[i], "device") == 0 ||
            strcmp(names[i], "simulated_as") == 0 || strcmp(names[i], "oom_task") == 0)
            continue;
        CS_TRY(cs_reader_read(reader, &column, 1, &n_rows, error));
        for (uint64_t d = 0; d < n && d < n_rows; d++)
            mix(&hashes[d], &values[d], sizeof(values[d]));
    }
    return CS_OK;
}

typedef struct hashed_device {
    uint64_t hash;
    uint32_t device;
} hashed_device;

static int by_hash(const void *left, const void *right)
{
    const hashed_device *a = left, *b = right;
    CS_COMPARE(a->hash, b->hash);
    CS_COMPARE(a->device, b->device);
    return 0;
}

/* Lets the first of the devices with equal hashes stand for all of them. */
static bool merge(const uint64_t *hashes, uint32_t *by, uint32_t n)
{
    hashed_device *sorted = malloc((n + 1ULL) * sizeof(*sorted));
    for (uint32_t d = 0; sorted && d < n; d++)
        sorted[d] = (hashed_device){hashes[by[d]], d};
    if (sorted)
        qsort(sorted, n, sizeof(*sorted), by_hash);
    for (uint32_t i = 0, first = 0; sorted && i < n; i++) {
        first = sorted[i].hash == sorted[first].hash ? first : i;
        by[sorted[i].device] = sorted[first].device;
    }
    free(sorted);
    return sorted;
}

static cs_status find_equal(cs_reader *reader, const uint32_t *stand_ins, uint32_t *by, uint64_t n,
                            cs_error *error)
{
    uint64_t *hashes = calloc(n + 1, sizeof(*hashes));
    if (!hashes)
        return cs_error_no_memory(error);
    for (uint32_t d = 0; d < n; d++)
        by[d] = stand_ins ? stand_ins[d] : d;
    cs_status status = mix_tasks(reader, hashes, n, error);
    if (status == CS_OK)
        status = mix_memory(reader, hashes, n, error);
    if (status == CS_OK)
        status = mix_devices(reader, hashes, n, error);
    if (status == CS_OK && !merge(hashes, by, (uint32_t)n))
        status = cs_error_no_memory(error);
    free(hashes);
    return status;
}

cs_status cs_reader_fold_equal(cs_reader *reader, cs_error *error)
{
    const uint32_t *numbers, *stand_ins;
    uint64_t n = 0;
    const cs_reader_column column = {"devices/device", CS_READER_UINT32, &numbers};
    if (reader->row_of)
        return CS_OK;
    CS_TRY(read_stand_ins(reader, &stand_ins, &n, error));
    CS_TRY(cs_reader_read(reader, &column, 1, &n, error));
    uint32_t *by = n < UINT32_MAX ? cs_arena_alloc(&reader->arena, n + 1, sizeof(*by)) : NULL;
    if (!by)
        return cs_error_no_memory(error);
    CS_TRY(find_equal(reader, stand_ins, by, n, error));
    bool any = stand_ins;
    for (uint32_t d = 0; d < n; d++)
        any = any || by[d] != d;
    return any ? fold(reader, by, (uint32_t)n, error) : CS_OK;
}

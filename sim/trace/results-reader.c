#include "sim/trace/results-reader.h"

#include "sim/base/hash.h"
#include "sim/base/vector.h"
#include "sim/trace/h5.h"
#include "sim/trace/results-schema.h"
#include "sim/trace/seal.h"

#include <errno.h>
#include <hdf5.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { REASON_BYTES = 512 };

typedef struct reason {
    char text[REASON_BYTES];
    bool lack; /* of memory, not of the file */
} reason;

static herr_t keep_innermost(unsigned int n, const H5E_error2_t *entry, void *data)
{
    reason *r = data;
    if (n == 0) {
        snprintf(r->text, sizeof(r->text), "%s", entry->desc ? entry->desc : "");
        r->lack = entry->maj_num == H5E_RESOURCE || entry->min_num == H5E_NOSPACE;
    }
    return 0;
}

/* One message about a column, an attribute or (with the name "") the file, with HDF5's own words.
 */
static cs_status fail(const cs_reader *reader, cs_error *error, const char *name, const char *what)
{
    reason r = {.lack = reader->starved};
    if (!r.lack)
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &r);
    if (r.lack)
        return cs_error_no_memory(error);
    return cs_error_add(error, CS_INVALID, "%s: %s%s%s%s%s", reader->path, name, *name ? ": " : "",
                        what, *r.text ? ": " : "", r.text);
}

/* ---- attributes ---- */

/* The value as text in the arena, NULL when there is none of that type. */
static const char *read_text(cs_reader *reader, hid_t object, const char *name)
{
    char *text = NULL;
    const char *copy = NULL;
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    hid_t type = attribute < 0 ? attribute : H5Aget_type(attribute);
    if (type >= 0 && H5Tis_variable_str(type) > 0 && H5Aread(attribute, type, &text) >= 0 && text) {
        copy = cs_arena_copy(&reader->arena, text);
        reader->starved |= !copy;
        H5free_memory(text);
    }
    if (type >= 0)
        H5Tclose(type);
    if (attribute >= 0)
        H5Aclose(attribute);
    return copy;
}

static bool is_number(hid_t attribute)
{
    hid_t type = H5Aget_type(attribute);
    hid_t space = H5Aget_space(attribute);
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    bool single = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    return single && (class == H5T_INTEGER || class == H5T_FLOAT);
}

static bool read_number(const cs_reader *reader, const char *name, hid_t type, void *out)
{
    hid_t file = reader->file;
    hid_t attribute = H5Aexists(file, name) > 0 ? H5Aopen(file, name, H5P_DEFAULT) : -1;
    if (attribute < 0)
        return false;
    bool done = is_number(attribute) && H5Aread(attribute, type, out) >= 0;
    H5Aclose(attribute);
    return done;
}

/* ---- opening ---- */

static cs_status open_file(cs_reader *reader, cs_error *error)
{
    struct stat info;
    if (stat(reader->path, &info) != 0)
        return cs_error_system(error, CS_INVALID, reader->path, "cannot read", errno);
    if (!S_ISREG(info.st_mode))
        return cs_error_add(error, CS_INVALID, "%s: not a file; must be a results file",
                            reader->path);
    if (!cs_h5_has_room())
        return cs_error_no_memory(error);
    htri_t known = H5Fis_hdf5(reader->path);
    if (known == 0)
        return cs_error_add(error, CS_INVALID,
                            "%s: not an HDF5 file; must be a results file, as `sim run -o` "
                            "writes them",
                            reader->path);
    CS_TRY(cs_seal_check(reader->path, error));
    if (known > 0)
        reader->file = H5Fopen(reader->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    return reader->file < 0 ? fail(reader, error, "", "cannot open") : CS_OK;
}

static cs_status check_schema(cs_reader *reader, const char *expected, int latest, cs_error *error)
{
    int64_t version = 0;
    const char *format = read_text(reader, reader->file, "format");
    if (reader->starved)
        return cs_error_no_memory(error);
    bool sweep = format && strcmp(format, CS_SWEEP_FORMAT) == 0;
    if (sweep && strcmp(expected, format) != 0)
        return cs_error_add(error, CS_INVALID,
                            "%s: is a file of `sim sweep`; must be one of `sim run` (`sim plot "
                            "--kind lines` or heatmap draws sweeps)",
                            reader->path);
    if (format && strcmp(format, CS_RESULTS_FORMAT) == 0 && strcmp(expected, format) != 0)
        return cs_error_add(
            error, CS_INVALID,
            "%s: is a file of `sim run`; must be one of `sim sweep`, which heatmap and lines draw",
            reader->path);
    if (!format || strcmp(format, expected) != 0)
        return cs_error_add(error, CS_INVALID,
                            "%s: not a results file; its attribute \"format\" must be \"%s\" (got "
                            "%.80s)",
                            reader->path, expected, format ? format : "none");
    if (!read_number(reader, "schema_version", H5T_NATIVE_INT64, &version))
        return cs_error_add(error, CS_INVALID, "%s: has no attribute \"schema_version\"",
                            reader->path);
    if (version > latest)
        return cs_error_add(error, CS_INVALID,
                            "%s: written by a newer version: its schema is version %" PRId64
                            ", this program reads up to %d",
                            reader->path, version, latest);
    if (version < 1)
        return cs_error_add(error, CS_INVALID, "%s: schema_version: must be >= 1 (got %" PRId64 ")",
                            reader->path, version);
    return CS_OK;
}

static cs_status read_attributes(cs_reader *reader, cs_error *error)
{
    const struct {
        const char *name;
        const char **out;
    } texts[] = {
        {"name", &reader->name}, {"topology", &reader->topology}, {"schedule", &reader->schedule}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        *texts[i].out = read_text(reader, reader->file, texts[i].name);
        if (!*texts[i].out)
            return fail(reader, error, texts[i].name, "missing, must be a text");
    }
    reader->scenario = read_text(reader, reader->file, "scenario");
    reader->origin = read_text(reader, reader->file, "origin");
    reader->sharing = read_text(reader, reader->file, "sharing");
    reader->algorithms = read_text(reader, reader->file, "algorithms");
    if (!read_number(reader, "makespan", H5T_NATIVE_INT64, &reader->makespan) ||
        reader->makespan < 0)
        return fail(reader, error, "makespan", "missing, must be a time >= 0");
    if (!read_number(reader, "micro_batches", H5T_NATIVE_UINT32, &reader->micro_batches))
        return fail(reader, error, "micro_batches", "missing, must be a number");
    return CS_OK;
}

double cs_reader_figure(const cs_reader *reader, const char *key)
{
    double value;
    if (read_number(reader, key, H5T_NATIVE_DOUBLE, &value))
        return value;
    /* files of earlier versions have it in picoseconds only */
    return strcmp(key, "makespan_s") == 0 ? cs_time_seconds(reader->makespan) : (double)NAN;
}

static cs_status read_sweep_attributes(cs_reader *reader, cs_error *error)
{
    reader->name = read_text(reader, reader->file, "name");
    reader->axes = read_text(reader, reader->file, "axes");
    if (!reader->name || !reader->axes)
        return fail(reader, error, reader->name ? "axes" : "name", "missing, must be a text");
    return CS_OK;
}

static cs_status init(cs_reader *reader, const char *path, const char *format, int latest,
                      cs_status (*read)(cs_reader *, cs_error *), cs_error *error)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    *reader = (cs_reader){.path = path, .file = H5I_INVALID_HID};
    cs_arena_init(&reader->arena);
    cs_status status = open_file(reader, error);
    if (status == CS_OK)
        status = check_schema(reader, format, latest, error);
    if (status == CS_OK)
        status = read(reader, error);
    if (status == CS_OK && reader->starved)
        status = cs_error_no_memory(error);
    if (status != CS_OK)
        cs_reader_finish(reader);
    return status;
}

cs_status cs_reader_init(cs_reader *reader, const char *path, cs_error *error)
{
    return init(reader, path, CS_RESULTS_FORMAT, CS_RESULTS_VERSION, read_attributes, error);
}

cs_status cs_reader_init_sweep(cs_reader *reader, const char *path, cs_error *error)
{
    return init(reader, path, CS_SWEEP_FORMAT, CS_SWEEP_VERSION, read_sweep_attributes, error);
}

static cs_status read_advice_attributes(cs_reader *reader, cs_error *error)
{
    reader->name = read_text(reader, reader->file, "name");
    reader->topology = read_text(reader, reader->file, "topology");
    if (!reader->name || !reader->topology)
        return fail(reader, error, reader->name ? "topology" : "name", "missing, must be a text");
    return CS_OK;
}

cs_status cs_reader_init_advice(cs_reader *reader, const char *path, cs_error *error)
{
    return init(reader, path, CS_ADVICE_FORMAT, CS_ADVICE_VERSION, read_advice_attributes, error);
}

static cs_status read_validation_attributes(cs_reader *reader, cs_error *error)
{
    reader->name = read_text(reader, reader->file, "command");
    return reader->name ? CS_OK : fail(reader, error, "command", "missing, must be a text");
}

cs_status cs_reader_init_validation(cs_reader *reader, const char *path, cs_error *error)
{
    return init(reader, path, CS_VALIDATION_FORMAT, CS_VALIDATION_VERSION,
                read_validation_attributes, error);
}

const char *cs_reader_text(cs_reader *reader, const char *name)
{
    return read_text(reader, reader->file, name);
}

bool cs_reader_has(const cs_reader *reader, const char *group)
{
    return H5Lexists(reader->file, group, H5P_DEFAULT) > 0;
}

cs_status cs_reader_format(const char *path, char *format, size_t size, cs_error *error)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    cs_reader reader = {.path = path, .file = H5I_INVALID_HID};
    *format = '\0';
    if (!cs_h5_has_room())
        return cs_error_no_memory(error);
    if (H5Fis_hdf5(path) == 0)
        return CS_OK;
    cs_arena_init(&reader.arena);
    cs_status status = open_file(&reader, error);
    const char *text = status == CS_OK ? read_text(&reader, reader.file, "format") : NULL;
    if (status == CS_OK && reader.starved)
        status = cs_error_no_memory(error);
    snprintf(format, size, "%s", text ? text : "");
    cs_reader_finish(&reader);
    return status;
}

bool cs_reader_is_from(const cs_reader *reader, const char *origin)
{
    return reader->origin && strcmp(reader->origin, origin) == 0;
}

void cs_reader_finish(cs_reader *reader)
{
    if (reader->file >= 0)
        H5Fclose(reader->file);
    reader->file = H5I_INVALID_HID;
    cs_arena_finish(&reader->arena);
}

/* ---- columns ---- */

static hid_t memory_type(cs_reader_type type)
{
    switch (type) {
    case CS_READER_UINT32:
        return H5Tcopy(H5T_NATIVE_UINT32);
    case CS_READER_DOUBLE:
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    case CS_READER_TEXT:
        break;
    default:
        return H5Tcopy(H5T_NATIVE_INT64);
    }
    hid_t text = H5Tcopy(H5T_C_S1);
    if (text < 0 || (H5Tset_size(text, H5T_VARIABLE) >= 0 && H5Tset_cset(text, H5T_CSET_UTF8) >= 0))
        return text;
    H5Tclose(text);
    return H5I_INVALID_HID;
}

static hssize_t length_of(hid_t dataset)
{
    hid_t space = H5Dget_space(dataset);
    if (space < 0)
        return -1;
    hssize_t length =
        H5Sget_simple_extent_ndims(space) == 1 ? H5Sget_simple_extent_npoints(space) : -1;
    H5Sclose(space);
    return length;
}

/* Copies texts from HDF5's memory into the arena. */
static bool adopt_texts(cs_reader *reader, char **texts, hssize_t n)
{
    bool done = true;
    for (hssize_t i = 0; i < n; i++) {
        char *from = texts[i];
        texts[i] = done ? cs_arena_copy(&reader->arena, from ? from : "") : NULL;
        done = texts[i];
        H5free_memory(from);
    }
    return done;
}

static cs_status read_rows(cs_reader *reader, hid_t dataset, const cs_reader_column *column,
                           hssize_t n, cs_error *error)
{
    const size_t size = column->type == CS_READER_UINT32 ? 4 : 8;
    void *rows = cs_arena_alloc(&reader->arena, (size_t)n, size);
    hid_t type = memory_type(column->type);
    if (!rows || type < 0) {
        if (type >= 0)
            H5Tclose(type);
        return cs_error_no_memory(error);
    }
    cs_status status = CS_OK;
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) < 0)
        status = fail(reader, error, column->name, "cannot read");
    else if (column->type == CS_READER_TEXT && !adopt_texts(reader, rows, n))
        status = cs_error_no_memory(error);
    H5Tclose(type);
    if (status == CS_OK)
        memcpy(column->out, &rows, sizeof(rows));
    return status;
}

static bool ends_in(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* Of a column of devices: the rows of those that were simulated move to the front. */
static hssize_t keep_kinds(const cs_reader *reader, const cs_reader_column *column, hssize_t n)
{
    const size_t size = column->type == CS_READER_UINT32 ? 4 : 8;
    char *rows;
    hssize_t kept = 0;
    memcpy(&rows, column->out, sizeof(rows));
    for (hssize_t i = 0; i < n && i < reader->n_file_devices; i++)
        if (reader->row_of[i] == (uint32_t)kept && kept < reader->n_kinds)
            memmove(rows + size * (size_t)kept++, rows + size * (size_t)i, size);
    return kept;
}

/* Of a column with numbers of devices: those of rows. */
static void number_rows(const cs_reader *reader, const uint32_t *row_of,
                        const cs_reader_column *column, hssize_t n)
{
    uint32_t *rows;
    memcpy(&rows, column->out, sizeof(rows));
    for (hssize_t i = 0; i < n; i++)
        if (rows[i] < reader->n_file_devices)
            rows[i] = row_of[rows[i]];
}

/* What is left of the n rows of a column when devices that others stand for are left out. */
static hssize_t fold_column(const cs_reader *reader, const cs_reader_column *column, hssize_t n)
{
    if (strncmp(column->name, "devices/", 8) == 0)
        return keep_kinds(reader, column, n);
    if (column->type == CS_READER_UINT32 && ends_in(column->name, "/device"))
        number_rows(reader, reader->row_of, column, n);
    if (column->type == CS_READER_UINT32 && ends_in(column->name, "/peer"))
        number_rows(reader, reader->stand_in_of, column, n);
    return n;
}

static cs_status read_column(cs_reader *reader, const cs_reader_column *column, hssize_t *length,
                             cs_error *error)
{
    hid_t dataset = H5Dopen2(reader->file, column->name, H5P_DEFAULT);
    if (dataset < 0)
        return fail(reader, error, column->name, "cannot read this column");
    hssize_t n = length_of(dataset);
    cs_status status;
    if (n < 0 || (*length >= 0 && n != *length))
        status = cs_error_add(error, CS_INVALID,
                              "%s: %s: must be a column as long as the others of its group",
                              reader->path, column->name);
    else
        status = read_rows(reader, dataset, column, n, error);
    H5Dclose(dataset);
    *length = n;
    return status;
}

cs_status cs_reader_read(cs_reader *reader, const cs_reader_column *columns, size_t n,
                         uint64_t *n_rows, cs_error *error)
{
    hssize_t length = -1;
    for (size_t i = 0; i < n; i++) {
        CS_TRY(read_column(reader, &columns[i], &length, error));
    }
    hssize_t left = length;
    for (size_t i = 0; i < n && reader->row_of; i++)
        left = fold_column(reader, &columns[i], length);
    *n_rows = (uint64_t)left;
    return CS_OK;
}

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

/* by[d] is the device that stands for d. */
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

/* Per device the one that was simulated in its place; NULL where each was. */
static cs_status read_stand_ins(cs_reader *reader, const uint32_t **by, uint64_t *n,
                                cs_error *error)
{
    const cs_reader_column column = {"devices/simulated_as", CS_READER_UINT32, by};
    *by = NULL;
    if (H5Lexists(reader->file, "devices", H5P_DEFAULT) <= 0 ||
        H5Lexists(reader->file, column.name, H5P_DEFAULT) <= 0)
        return CS_OK;
    CS_TRY(cs_reader_read(reader, &column, 1, n, error));
    return *n > UINT32_MAX ? cs_error_no_memory(error) : CS_OK;
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

cs_status cs_reader_task_rows(cs_reader *reader, const uint32_t **rows, cs_error *error)
{
    const cs_reader_column column = {"tasks/device", CS_READER_UINT32, rows};
    const uint32_t *row_of = reader->row_of;
    uint64_t n = 0;
    reader->row_of = NULL;
    const cs_status status = cs_reader_read(reader, &column, 1, &n, error);
    reader->row_of = row_of;
    if (status == CS_OK && row_of)
        number_rows(reader, reader->stand_in_of, &column, (hssize_t)n);
    return status;
}

/* ---- devices that did the same ---- */

static void mix(uint64_t *hash, const void *data, size_t size)
{
    *hash = cs_hash_bytes(data, size, *hash);
}

/* What each device computed and sent, and when; whom it sent to does not matter. */
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

/* Capacity, peaks, and where the time went: all columns but those that name a device. */
static cs_status mix_devices(cs_reader *reader, uint64_t *hashes, uint64_t n, cs_error *error)
{
    const char *const *names;
    uint32_t n_names = 0;
    CS_TRY(cs_reader_names(reader, "devices", "", &names, &n_names, error));
    for (uint32_t i = 0; i < n_names; i++) {
        char name[160];
        const int64_t *values;
        const cs_reader_column column = {name, CS_READER_INT64, &values};
        snprintf(name, sizeof(name), "devices/%.140s", names[i]);
        if (strcmp(names[i], "device") == 0 || strcmp(names[i], "simulated_as") == 0 ||
            strcmp(names[i], "oom_task") == 0)
            continue;
        CS_TRY(cs_reader_read(reader, &column, 1, &n, error));
        for (uint64_t d = 0; d < n; d++)
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

/* Of devices with equal hashes the first stands for all. */
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
    for (uint64_t d = 0; stand_ins && d < n; d++)
        if (stand_ins[d] >= n)
            return cs_error_add(error, CS_INVALID, "%s: devices/simulated_as: must be devices",
                                reader->path);
    CS_TRY(find_equal(reader, stand_ins, by, n, error));
    bool any = stand_ins;
    for (uint32_t d = 0; d < n; d++)
        any = any || by[d] != d;
    return any ? fold(reader, by, (uint32_t)n, error) : CS_OK;
}

/* ---- arrays ---- */

static bool read_sizes(hid_t dataset, cs_reader_array *array)
{
    hsize_t sizes[H5S_MAX_RANK];
    hid_t space = H5Dget_space(dataset);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, sizes, NULL);
    if (space >= 0)
        H5Sclose(space);
    for (int i = 0; i < rank; i++)
        array->sizes[i] = sizes[i];
    array->rank = rank > 0 ? (uint32_t)rank : 0;
    return rank > 0;
}

static H5T_class_t class_of(hid_t dataset)
{
    hid_t type = H5Dget_type(dataset);
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    if (type >= 0)
        H5Tclose(type);
    return class;
}

static cs_status read_array(cs_reader *reader, hid_t dataset, cs_reader_array *array,
                            cs_error *error)
{
    const char *units = read_text(reader, dataset, "units");
    const char *long_name = read_text(reader, dataset, "long_name");
    H5T_class_t class = class_of(dataset);
    array->units = units ? units : "";
    array->long_name = long_name ? long_name : "";
    if (!read_sizes(dataset, array))
        return fail(reader, error, array->name, "must be an array");
    bool text = class == H5T_STRING;
    if (!text && class != H5T_INTEGER && class != H5T_FLOAT)
        return fail(reader, error, array->name, "must be an array of numbers or texts");
    uint64_t n = 1;
    for (uint32_t i = 0; i < array->rank; i++)
        n *= array->sizes[i];
    const cs_reader_column column = {array->name, text ? CS_READER_TEXT : CS_READER_DOUBLE,
                                     text ? (void *)&array->texts : (void *)&array->values};
    return read_rows(reader, dataset, &column, (hssize_t)n, error);
}

cs_status cs_reader_read_array(cs_reader *reader, const char *name, cs_reader_array *array,
                               cs_error *error)
{
    *array = (cs_reader_array){.name = cs_arena_copy(&reader->arena, name)};
    if (!array->name)
        return cs_error_no_memory(error);
    hid_t dataset = H5Dopen2(reader->file, name, H5P_DEFAULT);
    if (dataset < 0)
        return fail(reader, error, name, "cannot read this array");
    cs_status status = read_array(reader, dataset, array, error);
    H5Dclose(dataset);
    return status;
}

/* ---- names ---- */

static uint32_t count_words(const char *text)
{
    uint32_t n = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        text += strcspn(text, " ");
        n++;
    }
    return n;
}

static bool split(cs_reader *reader, const char *text, const char ***words, uint32_t *n)
{
    *n = count_words(text);
    *words = cs_arena_alloc(&reader->arena, *n, sizeof(**words));
    for (uint32_t i = 0; *words && i < *n; i++) {
        text += strspn(text, " ");
        size_t length = strcspn(text, " ");
        (*words)[i] = cs_arena_copy_length(&reader->arena, text, length);
        if (!(*words)[i])
            return false;
        text += length;
    }
    return *words;
}

cs_status cs_reader_words(cs_reader *reader, const char *text, const char *const **words,
                          uint32_t *n, cs_error *error)
{
    const char **found;
    if (!split(reader, text, &found, n))
        return cs_error_no_memory(error);
    *words = found;
    return CS_OK;
}

cs_status cs_reader_meanings(cs_reader *reader, const char *column, const char *const **meanings,
                             uint32_t *n, cs_error *error)
{
    hid_t dataset = H5Dopen2(reader->file, column, H5P_DEFAULT);
    if (dataset < 0)
        return fail(reader, error, column, "cannot read this column");
    const char *text = read_text(reader, dataset, "flag_meanings");
    H5Dclose(dataset);
    if (!text)
        return fail(reader, error, column, "has no attribute \"flag_meanings\"");
    const char **words;
    if (!split(reader, text, &words, n))
        return cs_error_no_memory(error);
    *meanings = words;
    return CS_OK;
}

typedef struct name_list {
    cs_reader *reader;
    const char *prefix;
    const char **names;
    uint32_t n;
} name_list;

static herr_t take_name(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    (void)group, (void)info;
    name_list *list = data;
    if (strncmp(name, list->prefix, strlen(list->prefix)) != 0)
        return 0;
    list->names[list->n] = cs_arena_copy(&list->reader->arena, name);
    return list->names[list->n++] ? 0 : -1;
}

static cs_status list_names(name_list *list, hid_t group, cs_error *error)
{
    H5G_info_t info;
    if (H5Gget_info(group, &info) < 0)
        return fail(list->reader, error, "", "cannot list the columns of a group");
    list->names = cs_arena_alloc(&list->reader->arena, info.nlinks, sizeof(*list->names));
    if (!list->names)
        return cs_error_no_memory(error);
    /* files from elsewhere may not have kept the order of creation */
    if (H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, take_name, list) >= 0)
        return CS_OK;
    list->n = 0;
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, take_name, list) >= 0)
        return CS_OK;
    return fail(list->reader, error, "", "cannot list the columns of a group");
}

cs_status cs_reader_names(cs_reader *reader, const char *group, const char *prefix,
                          const char *const **names, uint32_t *n, cs_error *error)
{
    name_list list = {reader, prefix, NULL, 0};
    hid_t id = H5Gopen2(reader->file, group, H5P_DEFAULT);
    if (id < 0)
        return fail(reader, error, group, "cannot read this group");
    cs_status status = list_names(&list, id, error);
    H5Gclose(id);
    *names = list.names;
    *n = list.n;
    return status;
}

cs_status cs_reader_out_of_memory(cs_reader *reader, uint32_t *n, cs_error *error)
{
    const uint32_t *out_of_memory = NULL;
    uint64_t rows = 0;
    const cs_reader_column column = {"devices/out_of_memory", CS_READER_UINT32, &out_of_memory};
    cs_status status = cs_reader_read(reader, &column, 1, &rows, error);
    *n = 0;
    for (uint64_t i = 0; i < rows && status == CS_OK; i++)
        *n += out_of_memory[i] != 0;
    return status;
}

cs_status cs_reader_read_tasks(cs_reader *reader, cs_reader_tasks *tasks, cs_error *error)
{
    const cs_reader_column columns[] = {
        {"tasks/kind", CS_READER_UINT32, &tasks->kind},
        {"tasks/origin", CS_READER_UINT32, &tasks->origin},
        {"tasks/device", CS_READER_UINT32, &tasks->device},
        {"tasks/peer", CS_READER_UINT32, &tasks->peer},
        {"tasks/stage", CS_READER_UINT32, &tasks->stage},
        {"tasks/mini_batch", CS_READER_UINT32, &tasks->mini_batch},
        {"tasks/micro_batch", CS_READER_UINT32, &tasks->micro_batch},
        {"tasks/start", CS_READER_INT64, &tasks->start},
        {"tasks/end", CS_READER_INT64, &tasks->end},
    };
    CS_TRY(cs_reader_read(reader, columns, sizeof(columns) / sizeof(columns[0]), &tasks->n, error));
    CS_TRY(cs_reader_meanings(reader, "tasks/kind", &tasks->kinds, &tasks->n_kinds, error));
    for (uint64_t i = 0; i < tasks->n; i++)
        if (tasks->kind[i] >= tasks->n_kinds || tasks->origin[i] >= tasks->n_kinds)
            return cs_error_add(error, CS_INVALID,
                                "%s: tasks: row %" PRIu64
                                " has a kind or origin without a meaning: "
                                "must be below %" PRIu32,
                                reader->path, i, tasks->n_kinds);
    return CS_OK;
}

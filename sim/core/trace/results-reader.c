#include "sim/core/trace/reader-parts.h"

#include "sim/base/inputs.h"
#include "sim/core/trace/file-layout.h"
#include "sim/core/trace/h5.h"
#include "sim/core/trace/results-schema.h"
#include "sim/core/trace/seal.h"

#include <errno.h>
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

cs_status cs_reader_fail(const cs_reader *reader, cs_error *error, const char *name,
                         const char *what)
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

static bool is_single(hid_t attribute)
{
    const hid_t space = H5Aget_space(attribute);
    const bool single = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    if (space >= 0)
        H5Sclose(space);
    return single;
}

const char *cs_reader_attribute(cs_reader *reader, hid_t object, const char *name)
{
    char *text = NULL;
    const char *copy = NULL;
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    hid_t type = attribute < 0 ? attribute : H5Aget_type(attribute);
    if (type >= 0 && H5Tis_variable_str(type) > 0 && is_single(attribute) &&
        H5Aread(attribute, type, &text) >= 0 && text) {
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
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    if (type >= 0)
        H5Tclose(type);
    return is_single(attribute) && (class == H5T_INTEGER || class == H5T_FLOAT);
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
    CS_TRY(cs_inputs_add(reader->path, &info, false, error));
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
    if (reader->file < 0)
        return cs_reader_fail(reader, error, "", "cannot open");
    reader->layout = calloc(1, sizeof(*reader->layout));
    return reader->layout ? cs_file_layout_read(reader->layout, reader->path, reader->file,
                                                &reader->arena, error)
                          : cs_error_no_memory(error);
}

static cs_status check_schema(cs_reader *reader, const char *expected, int latest, cs_error *error)
{
    int64_t version = 0;
    const char *format = cs_reader_attribute(reader, reader->file, "format");
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
        *texts[i].out = cs_reader_attribute(reader, reader->file, texts[i].name);
        if (!*texts[i].out)
            return cs_reader_fail(reader, error, texts[i].name, "missing, must be a text");
    }
    reader->scenario = cs_reader_attribute(reader, reader->file, "scenario");
    reader->origin = cs_reader_attribute(reader, reader->file, "origin");
    reader->sharing = cs_reader_attribute(reader, reader->file, "sharing");
    reader->algorithms = cs_reader_attribute(reader, reader->file, "algorithms");
    reader->fidelity = cs_reader_attribute(reader, reader->file, "fidelity");
    if (!read_number(reader, "makespan", H5T_NATIVE_INT64, &reader->makespan) ||
        reader->makespan < 0)
        return cs_reader_fail(reader, error, "makespan", "missing, must be a time >= 0");
    if (!read_number(reader, "micro_batches", H5T_NATIVE_UINT32, &reader->micro_batches))
        return cs_reader_fail(reader, error, "micro_batches", "missing, must be a number");
    return CS_OK;
}

double cs_reader_figure(const cs_reader *reader, const char *key)
{
    double value;
    if (read_number(reader, key, H5T_NATIVE_DOUBLE, &value))
        return value;
    /* files of earlier versions have the makespan in picoseconds only */
    return strcmp(key, "makespan_s") == 0 ? cs_time_seconds(reader->makespan) : (double)NAN;
}

static cs_status read_sweep_attributes(cs_reader *reader, cs_error *error)
{
    reader->name = cs_reader_attribute(reader, reader->file, "name");
    reader->axes = cs_reader_attribute(reader, reader->file, "axes");
    if (!reader->name || !reader->axes)
        return cs_reader_fail(reader, error, reader->name ? "axes" : "name",
                              "missing, must be a text");
    return CS_OK;
}

/* Checks the tables or, for a sweep, its axes and arrays. */
static cs_status check_layout(cs_reader *reader, const char *format, cs_error *error)
{
    const char *const *axes = NULL, *form;
    uint32_t n = 0;
    reader->schema = cs_schema_of(format);
    if (reader->schema)
        return cs_file_layout_check(reader->layout, reader->schema, error);
    CS_TRY(cs_reader_words(reader, reader->axes, &axes, &n, error));
    form = cs_reader_attribute(reader, reader->file, "form");
    const bool list =
        form ? strcmp(form, "list") == 0 : cs_file_layout_find(reader->layout, "point") != NULL;
    return cs_file_layout_check_sweep(reader->layout, axes, n, list, error);
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
    if (status == CS_OK)
        status = check_layout(reader, format, error);
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
    reader->name = cs_reader_attribute(reader, reader->file, "name");
    reader->topology = cs_reader_attribute(reader, reader->file, "topology");
    if (!reader->name || !reader->topology)
        return cs_reader_fail(reader, error, reader->name ? "topology" : "name",
                              "missing, must be a text");
    return CS_OK;
}

cs_status cs_reader_init_advice(cs_reader *reader, const char *path, cs_error *error)
{
    return init(reader, path, CS_ADVICE_FORMAT, CS_ADVICE_VERSION, read_advice_attributes, error);
}

static cs_status read_validation_attributes(cs_reader *reader, cs_error *error)
{
    reader->name = cs_reader_attribute(reader, reader->file, "command");
    return reader->name ? CS_OK
                        : cs_reader_fail(reader, error, "command", "missing, must be a text");
}

cs_status cs_reader_init_validation(cs_reader *reader, const char *path, cs_error *error)
{
    return init(reader, path, CS_VALIDATION_FORMAT, CS_VALIDATION_VERSION,
                read_validation_attributes, error);
}

const char *cs_reader_text(cs_reader *reader, const char *name)
{
    return cs_reader_attribute(reader, reader->file, name);
}

bool cs_reader_has(const cs_reader *reader, const char *group)
{
    return H5Lexists(reader->file, group, H5P_DEFAULT) > 0;
}

cs_status cs_reader_format(const char *path, char *format, size_t size, cs_error *error)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    cs_reader reader = {.path = path, .file = H5I_INVALID_HID};
    struct stat info;
    *format = '\0';
    if (!cs_h5_has_room())
        return cs_error_no_memory(error);
    if (stat(path, &info) == 0 && (!S_ISREG(info.st_mode) || H5Fis_hdf5(path) == 0))
        return CS_OK;
    cs_arena_init(&reader.arena);
    cs_status status = open_file(&reader, error);
    const char *text = status == CS_OK ? cs_reader_attribute(&reader, reader.file, "format") : NULL;
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
    if (reader->layout)
        cs_file_layout_finish(reader->layout);
    free(reader->layout);
    reader->layout = NULL;
    cs_arena_finish(&reader->arena);
}

#include "sim/core/trace/reader-parts.h"

#include "sim/core/trace/file-layout.h"

#include <inttypes.h>
#include <string.h>

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

/* Copies texts from HDF5's memory to the arena. */
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
        status = cs_reader_fail(reader, error, column->name, "cannot read");
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

/* For a column with one row per device: moves the rows of simulated devices to the front. */
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

/* For a column with numbers of devices: replaces each number by the device's row. */
static void number_rows(const cs_reader *reader, const uint32_t *row_of,
                        const cs_reader_column *column, hssize_t n)
{
    uint32_t *rows;
    memcpy(&rows, column->out, sizeof(rows));
    for (hssize_t i = 0; i < n; i++)
        if (rows[i] < reader->n_file_devices)
            rows[i] = row_of[rows[i]];
}

/* Folds a column of n rows: removes devices that another device stands for. Returns the remaining
 * number of rows. */
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

static uint32_t count_words(const char *text)
{
    uint32_t n = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        text += strcspn(text, " ");
        n++;
    }
    return n;
}

/* Checks values against the schema. */
static cs_status check_rows(cs_reader *reader, hid_t dataset, const cs_reader_column *column,
                            hssize_t n, cs_error *error)
{
    const cs_schema_column *known = cs_schema_find(reader->schema, column->name);
    cs_file_layout_values values = {.type = column->type == CS_READER_UINT32   ? CS_VALUES_UINT32
                                            : column->type == CS_READER_DOUBLE ? CS_VALUES_DOUBLE
                                                                               : CS_VALUES_INT64,
                                    .n = (uint64_t)n,
                                    .makespan = reader->makespan};
    if (!known || column->type == CS_READER_TEXT)
        return CS_OK;
    if (known->values == CS_SCHEMA_CODE) {
        const char *words = cs_reader_attribute(reader, dataset, "flag_meanings");
        if (!words)
            return cs_reader_fail(reader, error, column->name, "cannot read its flag_meanings");
        values.n_words = count_words(words);
    }
    memcpy(&values.at, column->out, sizeof(values.at));
    return cs_file_layout_check_values(reader->layout, known, column->name, &values, error);
}

/* Whether the values can be converted to the type: not texts to numbers, not reals to integers. */
static bool has_type(const cs_file_layout_dataset *dataset, cs_reader_type type)
{
    return (dataset->type == CS_FILE_LAYOUT_TEXT) == (type == CS_READER_TEXT) &&
           (dataset->type != CS_FILE_LAYOUT_REAL || type == CS_READER_DOUBLE);
}

static cs_status missing(const cs_reader *reader, const char *name, cs_error *error)
{
    return cs_error_add(error, CS_INVALID, "%s: %s: missing, must be a column", reader->path, name);
}

static cs_status read_column(cs_reader *reader, const cs_reader_column *column, hssize_t *length,
                             cs_error *error)
{
    const cs_file_layout_dataset *known = cs_file_layout_find(reader->layout, column->name);
    if (!known)
        return missing(reader, column->name, error);
    if (!has_type(known, column->type))
        return cs_error_add(error, CS_INVALID, "%s: %s: must hold %s", reader->path, column->name,
                            column->type == CS_READER_TEXT     ? "texts"
                            : column->type == CS_READER_DOUBLE ? "numbers"
                                                               : "whole numbers");
    hid_t dataset = H5Dopen2(reader->file, column->name, H5P_DEFAULT);
    if (dataset < 0)
        return cs_reader_fail(reader, error, column->name, "cannot read this column");
    hssize_t n = known->rank == 1 ? (hssize_t)known->n : -1;
    cs_status status;
    if (n < 0 || (*length >= 0 && n != *length))
        status = cs_error_add(error, CS_INVALID,
                              "%s: %s: must be a column as long as the others of its group",
                              reader->path, column->name);
    else
        status = read_rows(reader, dataset, column, n, error);
    if (status == CS_OK)
        status = check_rows(reader, dataset, column, n, error);
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

/* ---- arrays ---- */

static cs_status read_array(cs_reader *reader, hid_t dataset, const cs_file_layout_dataset *known,
                            cs_reader_array *array, cs_error *error)
{
    const char *units = cs_reader_attribute(reader, dataset, "units");
    const char *long_name = cs_reader_attribute(reader, dataset, "long_name");
    const bool text = known->type == CS_FILE_LAYOUT_TEXT;
    array->units = units ? units : "";
    array->long_name = long_name ? long_name : "";
    array->rank = known->rank;
    memcpy(array->sizes, known->sizes, sizeof(array->sizes));
    const cs_reader_column column = {array->name, text ? CS_READER_TEXT : CS_READER_DOUBLE,
                                     text ? (void *)&array->texts : (void *)&array->values};
    return read_rows(reader, dataset, &column, (hssize_t)known->n, error);
}

cs_status cs_reader_read_array(cs_reader *reader, const char *name, cs_reader_array *array,
                               cs_error *error)
{
    const cs_file_layout_dataset *known = cs_file_layout_find(reader->layout, name);
    *array = (cs_reader_array){.name = cs_arena_copy(&reader->arena, name)};
    if (!array->name)
        return cs_error_no_memory(error);
    if (!known)
        return missing(reader, name, error);
    hid_t dataset = H5Dopen2(reader->file, name, H5P_DEFAULT);
    if (dataset < 0)
        return cs_reader_fail(reader, error, name, "cannot read this array");
    cs_status status = read_array(reader, dataset, known, array, error);
    H5Dclose(dataset);
    return status;
}

/* ---- names ---- */

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
    if (!cs_file_layout_find(reader->layout, column))
        return missing(reader, column, error);
    hid_t dataset = H5Dopen2(reader->file, column, H5P_DEFAULT);
    if (dataset < 0)
        return cs_reader_fail(reader, error, column, "cannot read this column");
    const char *text = cs_reader_attribute(reader, dataset, "flag_meanings");
    H5Dclose(dataset);
    if (!text)
        return cs_error_add(error, CS_INVALID, "%s: %s: has no attribute \"flag_meanings\"",
                            reader->path, column);
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
        return cs_reader_fail(list->reader, error, "", "cannot list the columns of a group");
    list->names = cs_arena_alloc(&list->reader->arena, info.nlinks, sizeof(*list->names));
    if (!list->names)
        return cs_error_no_memory(error);
    /* files of other programs may not record the order of creation */
    if (H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, take_name, list) >= 0)
        return CS_OK;
    list->n = 0;
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, take_name, list) >= 0)
        return CS_OK;
    return cs_reader_fail(list->reader, error, "", "cannot list the columns of a group");
}

cs_status cs_reader_names(cs_reader *reader, const char *group, const char *prefix,
                          const char *const **names, uint32_t *n, cs_error *error)
{
    name_list list = {reader, prefix, NULL, 0};
    hid_t id = H5Gopen2(reader->file, group, H5P_DEFAULT);
    if (id < 0)
        return cs_reader_fail(reader, error, group, "cannot read this group");
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

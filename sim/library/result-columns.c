/* Columns, attributes and files of results. */
#include "sim/library/handles.h"

#include <string.h>

static const clustersim_type types[] = {
    [CS_H5_INT64] = CLUSTERSIM_INT64, [CS_H5_UINT32] = CLUSTERSIM_UINT32,
    [CS_H5_UINT8] = CLUSTERSIM_UINT8, [CS_H5_DOUBLE] = CLUSTERSIM_DOUBLE,
    [CS_H5_TEXT] = CLUSTERSIM_TEXT,   [CS_H5_UINT64] = CLUSTERSIM_UINT64,
};

static void take_attribute(const cs_contents_attribute *from, clustersim_attribute *to)
{
    *to = (clustersim_attribute){.name = from->name, .type = types[from->type]};
    switch (to->type) {
    case CLUSTERSIM_TEXT:
        to->value.text = from->value.text;
        break;
    case CLUSTERSIM_DOUBLE:
        to->value.float64 = from->value.float64;
        break;
    case CLUSTERSIM_UINT64:
        to->value.uint64 = from->value.uint64;
        break;
    default:
        to->value.int64 = from->value.int64;
    }
}

static bool take_table(clustersim_result *result, const cs_contents_table *from)
{
    /* names of the dimensions, NULL-terminated */
    const uint32_t n = from->table.shape ? from->table.shape->n : 1;
    const char **names = cs_arena_alloc(&result->arena, (size_t)n + 1, sizeof(*names));
    for (uint32_t i = 0; names && i < n; i++)
        names[i] = from->table.shape ? from->table.shape->scales[i] : from->table.index;
    const char *const *dimensions = names;
    for (uint32_t c = 0; dimensions && c < from->n_columns; c++) {
        const cs_h5_column *column = &from->table.columns[c];
        result->columns[result->n_columns++] = (clustersim_column){.table = from->table.group,
                                                                   .name = column->name,
                                                                   .units = column->units,
                                                                   .label = column->long_name,
                                                                   .type = types[column->type],
                                                                   .n = from->table.n_rows,
                                                                   .values = from->values[c],
                                                                   .words = column->meanings,
                                                                   .optional = column->optional,
                                                                   .dimensions = dimensions};
    }
    return dimensions;
}

cs_status cs_library_take_columns(clustersim_result *result, cs_error *error)
{
    const cs_contents *contents = &result->contents;
    size_t n_columns = 0, n_attributes = 0;
    for (uint32_t i = 0; i < contents->n_items; i++) {
        n_attributes += contents->items[i].attribute != NULL;
        n_columns += contents->items[i].table ? contents->items[i].table->n_columns : 0;
    }
    result->columns = cs_arena_alloc(&result->arena, n_columns, sizeof(*result->columns));
    result->attributes = cs_arena_alloc(&result->arena, n_attributes, sizeof(*result->attributes));
    if (!result->columns || !result->attributes)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < contents->n_items; i++) {
        if (contents->items[i].attribute)
            take_attribute(contents->items[i].attribute,
                           &result->attributes[result->n_attributes++]);
        else if (!take_table(result, contents->items[i].table))
            return cs_error_no_memory(error);
    }
    return CS_OK;
}

const clustersim_column *cs_library_column(const clustersim_result *result, const char *table,
                                           const char *name)
{
    for (size_t i = 0; i < result->n_columns; i++)
        if (strcmp(result->columns[i].table, table) == 0 &&
            strcmp(result->columns[i].name, name) == 0)
            return &result->columns[i];
    return NULL;
}

size_t clustersim_result_columns(const clustersim_result *result, const clustersim_column **columns)
{
    if (columns)
        *columns = result ? result->columns : NULL;
    return result ? result->n_columns : 0;
}

size_t clustersim_result_attributes(const clustersim_result *result,
                                    const clustersim_attribute **attributes)
{
    if (attributes)
        *attributes = result ? result->attributes : NULL;
    return result ? result->n_attributes : 0;
}

const char *clustersim_result_text(const clustersim_result *result)
{
    return result ? result->text : NULL;
}

const char *clustersim_result_json(const clustersim_result *result)
{
    return result ? result->json : NULL;
}

static cs_status save(const clustersim_result *result, const char *path,
                      const cs_progress *progress, cs_error *error)
{
    cs_h5_file *file = NULL;
    if (result->n_columns == 0)
        return cs_error_add(error, CS_INVALID, "%s: cannot be written: the result has figures only",
                            path);
    CS_TRY(cs_h5_create(path, progress, &file, error));
    cs_status status = cs_contents_write(&result->contents, file, error);
    if (status == CS_OK)
        status = cs_h5_commit(file, error);
    cs_h5_destroy(file);
    return status;
}

clustersim_status clustersim_result_save(const clustersim_result *result, const char *path,
                                         const clustersim_options *options,
                                         clustersim_error **error)
{
    const cs_number_locale caller = cs_number_locale_enter();
    clustersim_options all = cs_library_options(options);
    const cs_progress progress = cs_library_progress(&all);
    cs_error said;
    cs_error_init(&said);
    cs_status status = cs_library_given(result, "result", &said);
    if (status == CS_OK)
        status = cs_library_given(path, "path", &said);
    if (status == CS_OK)
        status = save(result, path, &progress, &said);
    return cs_library_done(status, &said, caller, error);
}

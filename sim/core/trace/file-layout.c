#include "sim/core/trace/file-layout.h"

#include "sim/base/text.h"
#include "sim/base/vector.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    VALUE_BYTES = 8,      /* largest number */
    DEFLATED_MOST = 1100, /* maximum ratio of values to stored bytes: deflate reaches 1032 */
    STORED_LEAST = 64,
    PATH_BYTES = 300,
};

/* ---- lists the datasets ---- */

typedef struct walk {
    cs_file_layout *layout;
    cs_arena *arena;
    cs_error *error;
    const char *group; /* group with these links; "" for the root */
    cs_status status;
} walk;

static cs_status refuse(const cs_file_layout *layout, const char *path, const char *what,
                        cs_error *error)
{
    char shown[PATH_BYTES];
    return cs_error_add(error, CS_INVALID, "%s: %s: %s", layout->path,
                        cs_text_show(path, shown, sizeof(shown)), what);
}

/* Returns NULL if the values are stored in the file with allowed filters, else the reason. */
static const char *why_not_stored(hid_t dataset)
{
    const hid_t made = H5Dget_create_plist(dataset);
    const char *why = made < 0 ? "cannot read how it is stored" : NULL;
    unsigned deflated = 0;
    if (!why && H5Pget_layout(made) != H5D_CONTIGUOUS && H5Pget_layout(made) != H5D_CHUNKED &&
        H5Pget_layout(made) != H5D_COMPACT)
        why = "has its values in other datasets; must have its own";
    if (!why && H5Pget_external_count(made) != 0)
        why = "has its values in another file; must have its own";
    const int n = why ? 0 : H5Pget_nfilters(made);
    for (int i = 0; i < n && !why; i++) {
        unsigned flags = 0;
        size_t n_values = 0;
        const H5Z_filter_t filter =
            H5Pget_filter2(made, (unsigned)i, &flags, &n_values, NULL, 0, NULL, NULL);
        deflated += filter == H5Z_FILTER_DEFLATE;
        if ((filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
             filter != H5Z_FILTER_FLETCHER32) ||
            deflated > 1)
            why = "has a filter; must be stored plainly, or with shuffle and deflate";
    }
    if (made >= 0)
        H5Pclose(made);
    return why;
}

static const char *why_no_type(hid_t dataset, cs_file_layout_dataset *made, size_t *bytes)
{
    const hid_t type = H5Dget_type(dataset);
    const H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    const bool text = class == H5T_STRING && H5Tis_variable_str(type) > 0;
    *bytes = type < 0 ? 0 : H5Tget_size(type);
    if (type >= 0)
        H5Tclose(type);
    made->type = text                   ? CS_FILE_LAYOUT_TEXT
                 : class == H5T_INTEGER ? CS_FILE_LAYOUT_WHOLE
                                        : CS_FILE_LAYOUT_REAL;
    if (text || ((class == H5T_INTEGER || class == H5T_FLOAT) && *bytes <= VALUE_BYTES))
        return NULL;
    return "must hold numbers of at most 8 bytes, or texts of variable length";
}

static const char *why_no_size(hid_t dataset, cs_file_layout_dataset *made, size_t bytes)
{
    hsize_t sizes[H5S_MAX_RANK];
    const hid_t space = H5Dget_space(dataset);
    const int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, sizes, NULL);
    if (space >= 0)
        H5Sclose(space);
    if (rank < 1 || rank > CS_FILE_LAYOUT_RANK_MAX)
        return "must be an array";
    made->rank = (uint32_t)rank;
    made->n = 1;
    for (int i = 0; i < rank; i++) {
        made->sizes[i] = sizes[i];
        if (sizes[i] > 0 && made->n > UINT32_MAX / sizes[i])
            return "has more than 2^32 values";
        made->n *= sizes[i];
    }
    const uint64_t stored = H5Dget_storage_size(dataset);
    return made->n > 0 && (stored == 0 || made->n * bytes / DEFLATED_MOST > stored + STORED_LEAST)
               ? "has more values than are stored in the file"
               : NULL;
}

static cs_status add_dataset(walk *w, hid_t dataset, const char *path)
{
    cs_file_layout *layout = w->layout;
    cs_file_layout_dataset made = {.path = path};
    size_t bytes = 0;
    const char *why = why_not_stored(dataset);
    if (!why)
        why = why_no_type(dataset, &made, &bytes);
    if (!why)
        why = why_no_size(dataset, &made, bytes);
    if (why)
        return refuse(layout, path, why, w->error);
    if (!cs_vector_reserve((void **)&layout->datasets, &layout->capacity, layout->n + UINT64_C(1),
                           sizeof(*layout->datasets)))
        return cs_error_no_memory(w->error);
    layout->datasets[layout->n++] = made;
    return CS_OK;
}

static herr_t take_link(hid_t group, const char *name, const H5L_info_t *info, void *context);

static cs_status walk_group(walk *w, hid_t group, const char *path)
{
    walk inner = {w->layout, w->arena, w->error, path, CS_OK};
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, take_link, &inner) < 0 &&
        inner.status == CS_OK)
        return refuse(w->layout, *path ? path : "/", "cannot list what is in it", w->error);
    return inner.status;
}

/* Only the root may contain groups. */
static cs_status take_object(walk *w, hid_t object, const char *path)
{
    const H5I_type_t type = H5Iget_type(object);
    if (type == H5I_DATASET)
        return add_dataset(w, object, path);
    if (type == H5I_GROUP && !*w->group)
        return walk_group(w, object, path);
    return refuse(w->layout, path, "must be a table of columns, or a column", w->error);
}

static herr_t take_link(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    walk *w = context;
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%.140s%s%.140s", w->group, *w->group ? "/" : "", name);
    const char *kept = cs_arena_copy(w->arena, path);
    if (!kept)
        w->status = cs_error_no_memory(w->error);
    else if (strlen(name) > 140 || cs_text_has_control(name, strlen(name)))
        w->status = refuse(w->layout, path, "must have a shorter, printable name", w->error);
    else if (info->type != H5L_TYPE_HARD)
        w->status = refuse(w->layout, path, "is a link to another place; must be a column or table",
                           w->error);
    if (w->status != CS_OK)
        return -1;
    const hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    w->status = object < 0 ? refuse(w->layout, path, "cannot be opened", w->error)
                           : take_object(w, object, kept);
    if (object >= 0)
        H5Oclose(object);
    return w->status == CS_OK ? 0 : -1;
}

cs_status cs_file_layout_read(cs_file_layout *layout, const char *path, hid_t file, cs_arena *arena,
                              cs_error *error)
{
    *layout = (cs_file_layout){.path = path};
    walk w = {layout, arena, error, "", CS_OK};
    return walk_group(&w, file, "");
}

void cs_file_layout_finish(cs_file_layout *layout)
{
    free(layout->datasets);
    *layout = (cs_file_layout){0};
}

const cs_file_layout_dataset *cs_file_layout_find(const cs_file_layout *layout, const char *path)
{
    for (uint32_t i = 0; i < layout->n; i++)
        if (strcmp(layout->datasets[i].path, path) == 0)
            return &layout->datasets[i];
    return NULL;
}

/* "tasks" of "tasks/start" */
static bool is_of_table(const char *path, const char *table)
{
    const size_t length = strlen(table);
    return strncmp(path, table, length) == 0 && path[length] == '/';
}

static const cs_file_layout_dataset *first_of_table(const cs_file_layout *layout, const char *table)
{
    for (uint32_t i = 0; i < layout->n; i++)
        if (is_of_table(layout->datasets[i].path, table))
            return &layout->datasets[i];
    return NULL;
}

uint64_t cs_file_layout_rows(const cs_file_layout *layout, const char *table)
{
    const cs_file_layout_dataset *first = first_of_table(layout, table);
    return first ? first->n : 0;
}

/* ---- tables ---- */

static cs_file_layout_type type_of(cs_schema_values values)
{
    return values == CS_SCHEMA_REAL   ? CS_FILE_LAYOUT_REAL
           : values == CS_SCHEMA_TEXT ? CS_FILE_LAYOUT_TEXT
                                      : CS_FILE_LAYOUT_WHOLE;
}

static cs_status check_column(const cs_file_layout *layout, const cs_file_layout_dataset *dataset,
                              const cs_schema *schema, cs_error *error)
{
    static const char *const types[] = {"must hold whole numbers", "must hold numbers",
                                        "must hold texts"};
    const char *slash = strchr(dataset->path, '/');
    const cs_schema_column *column = cs_schema_find(schema, dataset->path);
    char table[PATH_BYTES];
    if (!slash)
        return refuse(layout, dataset->path, "must be a table of columns", error);
    snprintf(table, sizeof(table), "%.*s", (int)(slash - dataset->path), dataset->path);
    if (dataset->rank != 1 || dataset->n != cs_file_layout_rows(layout, table))
        return refuse(layout, dataset->path, "must be a column as long as the others of its group",
                      error);
    if (column && type_of(column->values) != dataset->type)
        return refuse(layout, dataset->path, types[type_of(column->values)], error);
    return CS_OK;
}

cs_status cs_file_layout_check(const cs_file_layout *layout, const cs_schema *schema,
                               cs_error *error)
{
    for (const char *const *table = schema->tables; *table; table++)
        if (!first_of_table(layout, *table))
            return refuse(layout, *table, "missing, must be a table", error);
    for (uint32_t i = 0; i < layout->n; i++)
        CS_TRY(check_column(layout, &layout->datasets[i], schema, error));
    for (const cs_schema_column *c = schema->columns; c->table; c++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof(path), "%s/%s", c->table, c->name);
        if (!c->optional && !strchr(c->name, '*') && first_of_table(layout, c->table) &&
            !cs_file_layout_find(layout, path))
            return refuse(layout, path, "missing, must be a column", error);
    }
    return CS_OK;
}

/* ---- sweeps ---- */

static bool is_axis(const char *const *axes, uint32_t n, const char *path)
{
    for (uint32_t a = 0; a < n; a++)
        if (strcmp(axes[a], path) == 0)
            return true;
    return false;
}

static cs_status check_axes(const cs_file_layout *layout, const char *const *axes, uint32_t n,
                            uint64_t *sizes, cs_error *error)
{
    if (n == 0 || n > CS_FILE_LAYOUT_RANK_MAX)
        return cs_error_add(error, CS_INVALID, "%s: axes: must name 1 to %d keys (got %" PRIu32 ")",
                            layout->path, CS_FILE_LAYOUT_RANK_MAX, n);
    for (uint32_t a = 0; a < n; a++) {
        const cs_file_layout_dataset *axis = cs_file_layout_find(layout, axes[a]);
        if (!axis || axis->rank != 1 || axis->n == 0 || axis->type == CS_FILE_LAYOUT_WHOLE ||
            strchr(axes[a], '/') || is_axis(axes, a, axes[a]))
            return refuse(layout, axes[a], "must be the column of one key: numbers, or texts",
                          error);
        sizes[a] = axis->n;
    }
    return CS_OK;
}

static bool has_sizes(const cs_file_layout_dataset *of, const uint64_t *sizes, uint32_t rank)
{
    bool same = of->rank == rank;
    for (uint32_t i = 0; i < rank && same; i++)
        same = of->sizes[i] == sizes[i];
    return same;
}

cs_status cs_file_layout_check_sweep(const cs_file_layout *layout, const char *const *axes,
                                     uint32_t n_axes, bool list, cs_error *error)
{
    uint64_t sizes[CS_FILE_LAYOUT_RANK_MAX];
    CS_TRY(check_axes(layout, axes, n_axes, sizes, error));
    for (uint32_t i = 0; i < layout->n; i++) {
        const cs_file_layout_dataset *dataset = &layout->datasets[i];
        if (!list && is_axis(axes, n_axes, dataset->path))
            continue;
        if (strchr(dataset->path, '/') || !has_sizes(dataset, sizes, list ? 1 : n_axes))
            return refuse(layout, dataset->path,
                          list ? "must have a value for each point"
                               : "must have a value for each point, an axis a dimension",
                          error);
    }
    if (list && !cs_file_layout_find(layout, "point"))
        return refuse(layout, "point", "missing, must be a column", error);
    return CS_OK;
}

/* ---- values ---- */

/* Value as an integer; doubles are rounded towards zero. */
static int64_t value_at(const cs_file_layout_values *values, uint64_t i)
{
    static const double beyond = 9223372036854775808.0;
    if (values->type == CS_VALUES_INT64)
        return ((const int64_t *)values->at)[i];
    if (values->type == CS_VALUES_UINT32)
        return ((const uint32_t *)values->at)[i];
    const double value = ((const double *)values->at)[i];
    return value >= beyond ? INT64_MAX : value >= -beyond ? (int64_t)value : INT64_MIN;
}

typedef struct range {
    int64_t least, most; /* inclusive range */
    bool none;           /* whether CS_H5_NONE is allowed too */
} range;

static range range_of(const cs_file_layout *layout, const cs_schema_column *column,
                      const cs_file_layout_values *values)
{
    const int64_t rows = column->of ? (int64_t)cs_file_layout_rows(layout, column->of) : 0;
    switch (column->values) {
    case CS_SCHEMA_ID:
        return (range){0, rows - 1, false};
    case CS_SCHEMA_ID_OR_NONE:
        return (range){0, rows - 1, true};
    case CS_SCHEMA_CODE:
        return (range){0, (int64_t)values->n_words - 1, false};
    case CS_SCHEMA_TIME:
        return (range){-1, values->makespan, false};
    case CS_SCHEMA_LATER:
        return (range){-1, INT64_MAX, false};
    case CS_SCHEMA_INTEGER:
        return (range){INT64_MIN, INT64_MAX, false};
    default:
        return (range){0, INT64_MAX, false};
    }
}

cs_status cs_file_layout_check_values(const cs_file_layout *layout, const cs_schema_column *column,
                                      const char *path, const cs_file_layout_values *values,
                                      cs_error *error)
{
    const range in = range_of(layout, column, values);
    if (column->values == CS_SCHEMA_REAL || column->values == CS_SCHEMA_TEXT)
        return CS_OK;
    for (uint64_t i = 0; i < values->n; i++) {
        const int64_t value = value_at(values, i);
        const bool none = in.none && value == UINT32_MAX;
        if (column->ascending && i > 0 && value < value_at(values, i - 1))
            return cs_error_add(error, CS_INVALID,
                                "%s: %s: row %" PRIu64 " must not be less than the row before it "
                                "(got %" PRId64 ")",
                                layout->path, path, i, value);
        if (column->values == CS_SCHEMA_ROW && value != (int64_t)i)
            return cs_error_add(error, CS_INVALID,
                                "%s: %s: row %" PRIu64 " must have its own number (got %" PRId64
                                ")",
                                layout->path, path, i, value);
        if (!none && (value < in.least || value > in.most))
            return cs_error_add(error, CS_INVALID,
                                "%s: %s: row %" PRIu64 " must be %" PRId64 " to %" PRId64
                                " (got %" PRId64 ")",
                                layout->path, path, i, in.least, in.most, value);
    }
    return CS_OK;
}

#include "plots/page/page-points.h"

#include "sim/core/trace/results-reader.h"
#include "sim/run/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINT_FITS, POINT_OUT_OF_MEMORY, POINT_EMPTY };

typedef struct points {
    cs_reader *reader;
    cs_page_part *part;
    const char *group; /* prefix of the paths of the datasets: "" or "plans/" */
    cJSON *fields;
    uint64_t n;
    const char *const *axes;
    uint32_t n_axes;
} points;

/* ---- fields ---- */

/* Adds a field with its names and unit; metrics of runs have the names of the metric table. */
static cJSON *add_field(points *p, const char *name, const cs_reader_array *array, bool key)
{
    const cs_run_figure *figure = key ? NULL : cs_run_figure_find(name);
    cJSON *field = cs_page_append_object(&p->part->json, p->fields);
    cs_page_add_text(&p->part->json, field, "name", name);
    cs_page_add_text(&p->part->json, field, "title",
                     figure ? figure->label
                     : key  ? array->long_name
                            : name);
    cs_page_add_text(&p->part->json, field, "meaning", figure ? figure->meaning : array->long_name);
    cs_page_add_text(&p->part->json, field, "unit", array->units);
    cs_page_add_flag(&p->part->json, field, "key", key);
    cs_page_add_flag(&p->part->json, field, "main", figure && (figure->shown & CS_SHOWN_SWEEP));
    return field;
}

static cs_status add_texts(points *p, cJSON *field, const char *const *texts, cs_error *error)
{
    cJSON *list = cJSON_AddArrayToObject(field, "texts");
    for (uint64_t i = 0; i < p->n; i++) {
        cJSON *text = cJSON_CreateString(texts[i]);
        if (!text || !cJSON_AddItemToArray(list, text)) {
            cJSON_Delete(text);
            return cs_error_no_memory(error);
        }
    }
    return CS_OK;
}

/* Adds the words of a coded column; nothing if the column is not coded. */
static void add_meanings(points *p, cJSON *field, const char *path)
{
    const char *const *meanings;
    uint32_t n = 0;
    cs_error none;
    cs_error_init(&none);
    if (cs_reader_meanings(p->reader, path, &meanings, &n, &none) != CS_OK)
        return; /* not coded: plain numbers */
    cJSON *list = cJSON_CreateStringArray(meanings, (int)n);
    if (!list || !cJSON_AddItemToObject(field, "words", list)) {
        cJSON_Delete(list);
        p->part->json.failed = true;
    }
}

/* Adds a dataset that has one value per point; ignores others. */
static cs_status add_values(points *p, const char *name, cs_error *error)
{
    char path[256];
    cs_reader_array array;
    snprintf(path, sizeof(path), "%s%.200s", p->group, name);
    CS_TRY(cs_reader_read_array(p->reader, path, &array, error));
    uint64_t n = 1;
    for (uint32_t d = 0; d < array.rank; d++)
        n *= array.sizes[d];
    if (n != p->n)
        return CS_OK; /* not one per point: the values of a key */
    if (!array.values && !array.texts)
        return CS_OK; /* texts with several dimensions are not read */
    cJSON *field = add_field(p, name, &array, false);
    if (array.texts)
        return add_texts(p, field, array.texts, error);
    add_meanings(p, field, path);
    return cs_packed_add(&p->part->packed, name, CS_CELL_F64, array.values, n, error);
}

/* ---- sweeps ---- */

/* Adds a key. In a grid, each value of the key holds for `run` consecutive points, where `run` is
 * the product of the numbers of values of the later keys. */
static cs_status add_key(points *p, const char *name, uint64_t run, cs_error *error)
{
    cs_reader_array array;
    CS_TRY(cs_reader_read_array(p->reader, name, &array, error));
    const uint64_t size = array.sizes[0];
    cJSON *field = add_field(p, name, &array, true);
    const char **texts = malloc((p->n + 1) * sizeof(*texts));
    double *values = malloc((p->n + 1) * sizeof(*values));
    cs_status status = texts && values ? CS_OK : cs_error_no_memory(error);
    for (uint64_t i = 0; i < p->n && status == CS_OK; i++) {
        const uint64_t at = i / run % size;
        texts[i] = array.texts ? array.texts[at] : "";
        values[i] = array.texts ? 0 : array.values[at];
    }
    if (status == CS_OK)
        status = array.texts
                     ? add_texts(p, field, texts, error)
                     : cs_packed_add(&p->part->packed, name, CS_CELL_F64, values, p->n, error);
    free(texts);
    free(values);
    return status;
}

static uint64_t size_of_axis(points *p, uint32_t axis, cs_error *error)
{
    cs_reader_array array;
    if (cs_reader_read_array(p->reader, p->axes[axis], &array, error) != CS_OK)
        return 0;
    return array.sizes[0];
}

static cs_status add_keys(points *p, cs_error *error)
{
    const char *form = cs_reader_text(p->reader, "form");
    const bool list = form && strcmp(form, "list") == 0;
    uint64_t run = p->n;
    for (uint32_t a = 0; a < p->n_axes; a++) {
        const uint64_t size = size_of_axis(p, a, error);
        if (size == 0)
            return CS_INVALID;
        run = run > size ? run / size : 1;
        CS_TRY(add_key(p, p->axes[a], list ? 1 : run, error));
    }
    return CS_OK;
}

static bool is_axis(const points *p, const char *name)
{
    bool found = strcmp(name, "error") == 0 || strcmp(name, "point") == 0;
    for (uint32_t a = 0; a < p->n_axes && !found; a++)
        found = strcmp(p->axes[a], name) == 0;
    return found;
}

/* Adds the state of each point: out of memory if `over` > 0, empty if `time` is not finite. */
static cs_status add_states(points *p, const char *over, const char *time, cs_error *error)
{
    cs_reader_array above, times;
    uint8_t *states = calloc((size_t)p->n + 1, 1);
    if (!states)
        return cs_error_no_memory(error);
    cs_status status = cs_reader_read_array(p->reader, over, &above, error);
    if (status == CS_OK)
        status = cs_reader_read_array(p->reader, time, &times, error);
    for (uint64_t i = 0; i < p->n && status == CS_OK; i++)
        states[i] = above.values[i] > 0         ? POINT_OUT_OF_MEMORY
                    : isfinite(times.values[i]) ? POINT_FITS
                                                : POINT_EMPTY;
    if (status == CS_OK)
        status = cs_packed_add(&p->part->packed, "state", CS_CELL_U8, states, p->n, error);
    free(states);
    return status;
}

static cs_status add_head(points *p, const char *what, cs_error *error)
{
    cs_page_json *json = &p->part->json;
    const char *slash = strrchr(p->reader->path, '/');
    json->root = cJSON_CreateObject();
    cs_page_add_text(json, json->root, "what", what);
    cs_page_add_text(json, json->root, "file", slash ? slash + 1 : p->reader->path);
    cs_page_add_text(json, json->root, "name", p->reader->name);
    cs_page_add_text(json, json->root, "topology", p->reader->topology);
    cs_page_add_text(json, json->root, "command", cs_reader_text(p->reader, "command"));
    cs_page_add_text(json, json->root, "scenario", cs_reader_text(p->reader, "scenario"));
    cs_page_add_text(json, json->root, "program", cs_reader_text(p->reader, "program_version"));
    p->fields = cs_page_add_list(json, json->root, "fields");
    return p->fields ? CS_OK : cs_error_no_memory(error);
}

static cs_status read_sweep(points *p, cs_error *error)
{
    const char *const *names;
    uint32_t n = 0;
    CS_TRY(add_head(p, "sweep", error));
    CS_TRY(cs_reader_words(p->reader, p->reader->axes, &p->axes, &p->n_axes, error));
    p->n = (uint64_t)fmax(0, cs_reader_figure(p->reader, "points"));
    CS_TRY(add_keys(p, error));
    CS_TRY(cs_reader_names(p->reader, "/", "", &names, &n, error));
    for (uint32_t i = 0; i < n; i++)
        if (!is_axis(p, names[i]))
            CS_TRY(add_values(p, names[i], error));
    return add_states(p, "out_of_memory", "makespan_s", error);
}

/* ---- plans ---- */

static cs_status read_plans(points *p, cs_error *error)
{
    const char *const *names;
    const double *time;
    uint32_t n = 0;
    const cs_reader_column column = {"plans/step_time", CS_READER_DOUBLE, &time};
    CS_TRY(add_head(p, "plans", error));
    CS_TRY(cs_reader_read(p->reader, &column, 1, &p->n, error));
    CS_TRY(cs_reader_names(p->reader, "plans", "", &names, &n, error));
    for (uint32_t i = 0; i < n; i++)
        CS_TRY(add_values(p, names[i], error));
    return add_states(p, "plans/over_capacity", "plans/step_time", error);
}

/* ---- sweeps and plans ---- */

typedef cs_status open_file(cs_reader *reader, const char *path, cs_error *error);
typedef cs_status read_file(points *p, cs_error *error);

static cs_status read_points(const char *path, open_file *open, read_file *read, const char *group,
                             cs_page_part *part, cs_error *error)
{
    cs_reader reader;
    *part = (cs_page_part){0};
    CS_TRY(open(&reader, path, error));
    points p = {.reader = &reader, .part = part, .group = group};
    cs_status status = read(&p, error);
    if (status == CS_OK)
        status = cs_page_part_end(part, error);
    cs_reader_finish(&reader);
    return status;
}

cs_status cs_page_sweep_read(const char *path, cs_page_part *part, cs_error *error)
{
    return read_points(path, cs_reader_init_sweep, read_sweep, "", part, error);
}

cs_status cs_page_plans_read(const char *path, cs_page_part *part, cs_error *error)
{
    return read_points(path, cs_reader_init_advice, read_plans, "plans/", part, error);
}

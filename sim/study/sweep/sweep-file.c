#include "sim/study/sweep/sweep-file.h"

#include "sim/base/text.h"
#include "sim/core/trace/results-schema.h"
#include "sim/study/sweep/axis-values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What goes into columns. */
typedef struct source {
    const cs_space *space;
    const cs_sweep_results *results;
    cs_axis_values axes[CS_SPACE_AXES_MAX];
    cs_arena arena;
} source;

/* ---- axes ---- */

static cs_h5_value axis_number(const void *data, uint64_t row, uint32_t axis)
{
    const source *s = data;
    return (cs_h5_value){.float64 = s->axes[axis].numbers[row]};
}

static cs_h5_value axis_text(const void *data, uint64_t row, uint32_t axis)
{
    const source *s = data;
    return (cs_h5_value){.text = s->axes[axis].texts[row]};
}

static cs_h5_column axis_column(const source *s, uint32_t a)
{
    const cs_axis *axis = &s->space->axes[a];
    bool numbers = s->axes[a].numbers;
    return (cs_h5_column){.name = axis->name,
                          .type = numbers ? CS_H5_DOUBLE : CS_H5_TEXT,
                          .units = numbers ? s->axes[a].unit : "1",
                          .long_name = axis->pointer,
                          .get = numbers ? axis_number : axis_text,
                          .which = a};
}

/* Each axis of a grid is a scale of its own; those of a list are columns along `point`. */
static cs_status write_axes(cs_h5_file *file, source *s, cs_error *error)
{
    static const cs_h5_column point[] = {
        {"point", CS_H5_UINT32, "1", "number of the point", .fill = cs_h5_row_numbers}, {0}};
    cs_h5_table table = {"/", "point", point, s->space->n_points, s, NULL};
    bool grid = s->space->form == CS_SPACE_GRID;
    CS_TRY(grid ? CS_OK : cs_h5_write_table(file, &table, error));
    for (uint32_t a = 0; a < s->space->n_axes; a++) {
        const cs_h5_column columns[] = {axis_column(s, a), {0}};
        table.columns = columns;
        table.n_rows = s->space->axes[a].values.n;
        table.index = grid ? s->space->axes[a].name : "point";
        CS_TRY(cs_h5_write_table(file, &table, error));
    }
    return CS_OK;
}

/* ---- figures ---- */

static cs_h5_value figure_of(const void *data, uint64_t row, uint32_t which)
{
    const source *s = data;
    return (cs_h5_value){.float64 = s->results->figures.columns[which].values[row]};
}

static cs_h5_value word_of(const void *data, uint64_t row, uint32_t which)
{
    const source *s = data;
    const char *word = cs_figure_word(&s->results->figures.columns[which], (uint32_t)row);
    return (cs_h5_value){.text = word ? word : ""};
}

static cs_h5_value error_of(const void *data, uint64_t row, uint32_t which)
{
    const source *s = data;
    (void)which;
    return (cs_h5_value){.text = s->results->errors[row] ? s->results->errors[row] : ""};
}

static bool is_axis(const cs_space *space, const char *name)
{
    for (uint32_t a = 0; a < space->n_axes; a++) {
        if (strcmp(space->axes[a].name, name) == 0)
            return true;
    }
    return strcmp(name, "point") == 0 || strcmp(name, "error") == 0 || strchr(name, '/');
}

/* "largest" and the like are told in the documentation; here the key in words does. */
static char *long_name(cs_arena *arena, const cs_figure_column *column)
{
    char text[300];
    cs_text_format(text, sizeof(text), "%.250s%s", column->name,
                   column->boolean ? " (1: true)" : "");
    for (char *at = text; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    return cs_arena_copy(arena, text);
}

static cs_status write_column(cs_h5_file *file, source *s, cs_h5_column column, cs_error *error)
{
    uint64_t sizes[CS_SPACE_AXES_MAX];
    const char *scales[CS_SPACE_AXES_MAX];
    for (uint32_t a = 0; a < s->space->n_axes; a++) {
        sizes[a] = s->space->axes[a].values.n;
        scales[a] = s->space->axes[a].name;
    }
    const cs_h5_column columns[] = {column, {0}};
    const cs_h5_shape shape = {s->space->n_axes, sizes, scales};
    const cs_h5_table table = {"/",     "point",
                               columns, s->space->n_points,
                               s,       s->space->form == CS_SPACE_GRID ? &shape : NULL};
    return cs_h5_write_table(file, &table, error);
}

static cs_status write_figures(cs_h5_file *file, source *s, cs_error *error)
{
    const cs_figure_table *figures = &s->results->figures;
    cs_status status = CS_OK;
    for (uint32_t c = 0; c < figures->n_columns && status == CS_OK; c++) {
        const cs_figure_column *column = &figures->columns[c];
        const char *words = long_name(&s->arena, column);
        if (is_axis(s->space, column->name))
            continue; /* the run reports what was set */
        if (!words)
            return cs_error_no_memory(error);
        status =
            write_column(file, s,
                         (cs_h5_column){.name = column->name,
                                        .type = column->n_words > 0 ? CS_H5_TEXT : CS_H5_DOUBLE,
                                        .units = cs_unit_word(cs_figure_unit(column->name)),
                                        .long_name = words,
                                        .get = column->n_words > 0 ? word_of : figure_of,
                                        .which = c},
                         error);
    }
    if (status != CS_OK)
        return status;
    return write_column(file, s,
                        (cs_h5_column){.name = "error",
                                       .type = CS_H5_TEXT,
                                       .units = "1",
                                       .long_name = "why the point failed; empty where it did not",
                                       .get = error_of},
                        error);
}

/* ---- the file ---- */

static cs_status write_attributes(cs_h5_file *file, const cs_sweep_info *info,
                                  const cs_space *space, const cs_sweep_results *results,
                                  cs_error *error)
{
    char axes[CS_SPACE_AXES_MAX * 256] = "";
    for (uint32_t a = 0, used = 0; a < space->n_axes; a++)
        used += (uint32_t)snprintf(axes + used, sizeof(axes) - used, "%s%.250s", a > 0 ? " " : "",
                                   space->axes[a].name);
    const struct {
        const char *name, *text;
    } texts[] = {
        {"format", CS_SWEEP_FORMAT},
        {"name", info->name},
        {"form", space->form == CS_SPACE_GRID ? "grid" : "list"},
        {"axes", axes},
        {"scenario", info->scenario},
        {"command", info->command},
        {"program_version", info->program_version},
    };
    cs_status status = cs_h5_set_int64(file, "schema_version", CS_SWEEP_VERSION, error);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && status == CS_OK; i++)
        status = cs_h5_set_text(file, texts[i].name, texts[i].text, error);
    if (status == CS_OK)
        status = cs_h5_set_int64(file, "points", results->n_points, error);
    return status == CS_OK ? cs_h5_set_int64(file, "failed", results->n_failed, error) : status;
}

static cs_status fill(cs_h5_file *file, const cs_sweep_info *info, source *s, cs_error *error)
{
    cs_status status = write_attributes(file, info, s->space, s->results, error);
    for (uint32_t a = 0; a < s->space->n_axes && status == CS_OK; a++)
        status = cs_axis_values_read(&s->space->axes[a], &s->arena, &s->axes[a], error);
    if (status == CS_OK)
        status = write_axes(file, s, error);
    return status == CS_OK ? write_figures(file, s, error) : status;
}

cs_status cs_sweep_write(cs_h5_file *file, const cs_sweep_info *info, const cs_space *space,
                         const cs_sweep_results *results, cs_error *error)
{
    source s = {.space = space, .results = results};
    cs_arena_init(&s.arena);
    const cs_status status = fill(file, info, &s, error);
    cs_arena_finish(&s.arena);
    return status;
}

cs_status cs_sweep_store(const char *path, const cs_sweep_info *info, const cs_space *space,
                         const cs_sweep_results *results, const cs_progress *progress,
                         cs_error *error)
{
    cs_h5_file *file = NULL;
    CS_TRY(cs_h5_create(path, progress, &file, error));
    cs_status status = cs_sweep_write(file, info, space, results, error);
    if (status == CS_OK)
        status = cs_h5_commit(file, error);
    cs_h5_destroy(file);
    return status;
}

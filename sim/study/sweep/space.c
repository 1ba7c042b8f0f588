#include "sim/study/sweep/space.h"

#include "sim/base/file.h"
#include "sim/base/terms.h"
#include "sim/base/text-stream.h"
#include "sim/base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cs_space_init(cs_space *space)
{
    *space = (cs_space){0};
    cs_arena_init(&space->arena);
}

void cs_space_finish(cs_space *space)
{
    for (uint32_t a = 0; a < space->n_axes; a++)
        cs_values_finish(&space->axes[a].values);
    cs_arena_finish(&space->arena);
    *space = (cs_space){0};
}

/* ---- adding keys ---- */

/* "/schedule/micro_batches" -> "schedule.micro_batches": HDF5 divides names at slashes, and lists
 * of names are divided at blanks. */
static const char *name_of(cs_arena *arena, const char *pointer)
{
    char *name = cs_arena_copy(arena, pointer + 1);
    for (char *at = name; at && *at; at++)
        *at = *at == '/' ? '.' : *at == ' ' ? '_' : *at;
    return name;
}

/* The pointer as a JSON text. */
static const char *key_of(cs_arena *arena, const char *pointer)
{
    cJSON *string = cJSON_CreateString(pointer);
    char *line = string ? cs_json_line(string) : NULL;
    const char *key = line ? cs_arena_copy(arena, line) : NULL;
    free(line);
    cJSON_Delete(string);
    return key;
}

enum { KEY_BYTES = 1000 };

static cs_status add_axis(cs_space *space, const char *origin, const char *pointer, cs_axis **axis,
                          cs_error *error)
{
    char quoted[CS_TEXT_QUOTED_BYTES], meant[64];
    if (pointer[0] != '/' || pointer[1] == '\0')
        return cs_error_add(
            error, CS_INVALID, "%s: must be a JSON pointer like %s (got %s)", origin,
            cs_term_pointer(pointer, "/schedule/micro_batches", meant, sizeof(meant)),
            cs_text_quote(pointer, quoted, sizeof(quoted)));
    if (strlen(pointer) > KEY_BYTES || cs_text_has_control(pointer, strlen(pointer)))
        return cs_error_add(error, CS_INVALID,
                            "%s: a key must have up to %d bytes and no control characters (got %s)",
                            origin, KEY_BYTES, cs_text_quote(pointer, quoted, sizeof(quoted)));
    if (space->n_axes == CS_SPACE_AXES_MAX)
        return cs_error_add(error, CS_INVALID, "%s: %s: at most %d keys can be varied", origin,
                            pointer, CS_SPACE_AXES_MAX);
    cs_axis made = {.pointer = cs_arena_copy(&space->arena, pointer),
                    .key = key_of(&space->arena, pointer),
                    .name = name_of(&space->arena, pointer),
                    .quantity = CS_QUANTITY_NUMBER};
    if (!made.pointer || !made.key || !made.name)
        return cs_error_no_memory(error);
    *axis = &space->axes[space->n_axes++];
    **axis = made;
    return CS_OK;
}

cs_status cs_space_vary(cs_space *space, const char *origin, const char *text, cs_error *error)
{
    cs_axis *axis;
    char quoted[CS_TEXT_QUOTED_BYTES];
    const char *equals = strchr(text, '=');
    if (!equals)
        return cs_error_add(error, CS_USAGE,
                            "%s must be /json/pointer=VALUES, like /schedule/micro_batches=2..32 "
                            "(got %s)",
                            origin, cs_text_quote(text, quoted, sizeof(quoted)));
    char *pointer = strndup(text, (size_t)(equals - text));
    if (!pointer)
        return cs_error_no_memory(error);
    cs_status status = add_axis(space, origin, pointer, &axis, error);
    if (status == CS_OK)
        status =
            cs_range_read(equals + 1, origin, axis->pointer, &space->arena, &axis->values, error);
    free(pointer);
    return status;
}

cs_status cs_space_vary_json(cs_space *space, const char *origin, const char *pointer,
                             const cJSON *values, cs_error *error)
{
    cs_axis *axis;
    cs_status status = add_axis(space, origin, pointer, &axis, error);
    if (status != CS_OK)
        return status;
    if (cJSON_IsString(values))
        return cs_range_read(values->valuestring, origin, pointer, &space->arena, &axis->values,
                             error);
    if (!cJSON_IsArray(values) || !values->child)
        return cs_error_add(error, CS_INVALID,
                            "%s: %s: must be a text like \"2..32\" or an array of values (got %s)",
                            origin, pointer,
                            values->child ? cs_json_kind(values) : "nothing to vary over");
    for (const cJSON *value = values->child; value && status == CS_OK; value = value->next)
        status = cs_values_add_json(&axis->values, value, &space->arena, error);
    return status;
}

/* ---- CSV ---- */

/* A file that is read field by field. */
typedef struct csv {
    const char *path, *at;
    uint32_t line; /* that `at` is in, from 1 */
    char *field;   /* the latest one; room for the whole file */
    bool quoted;   /* that one was */
} csv;

/* Moves behind the field, which ends before a comma, a line break or the end. */
static cs_status next_field(csv *c, cs_error *error)
{
    char *end = c->field;
    c->at += strspn(c->at, " \t");
    c->quoted = *c->at == '"';
    if (c->quoted) {
        for (c->at++; *c->at && (*c->at != '"' || c->at[1] == '"'); c->at++) {
            c->line += *c->at == '\n';
            c->at += *c->at == '"';
            *end++ = *c->at;
        }
        if (*c->at != '"')
            return cs_error_add(error, CS_INVALID, "%s:%u: a quote is not closed", c->path,
                                c->line);
        c->at++;
        c->at += strspn(c->at, " \t");
        if (*c->at && !strchr(",\r\n", *c->at))
            return cs_error_add(error, CS_INVALID,
                                "%s:%u: a comma must follow a field in quotes; a quote within "
                                "them is written twice",
                                c->path, c->line);
    } else {
        while (*c->at && !strchr(",\r\n", *c->at))
            *end++ = *c->at++;
        while (end > c->field && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
    }
    *end = '\0';
    return CS_OK;
}

static bool skip_line_end(csv *c)
{
    if (c->at[0] == '\r' && (c->at[1] == '\n' || c->at[1] == '\0'))
        c->at++;
    if (*c->at != '\n')
        return false;
    c->at++;
    c->line++;
    return true;
}

static bool skip_empty_lines(csv *c)
{
    for (;;) {
        const char *ahead = c->at + strspn(c->at, " \t");
        if (*ahead && !strchr("\r\n", *ahead))
            return true;
        c->at = ahead;
        if (!skip_line_end(c))
            return *c->at != '\0';
    }
}

static cs_status add_header(csv *c, cs_space *space, cs_error *error)
{
    char origin[512];
    cs_axis *axis;
    snprintf(origin, sizeof(origin), "%.400s:%u", c->path, c->line);
    return add_axis(space, origin, c->field, &axis, error);
}

static cs_status add_cell(csv *c, cs_axis *axis, cs_arena *arena, cs_error *error)
{
    char origin[512];
    if (*c->field == '\0' && !c->quoted)
        return cs_error_add(error, CS_INVALID,
                            "%s:%u: the value of %s is missing; an empty text is written \"\"",
                            c->path, c->line, axis->pointer);
    snprintf(origin, sizeof(origin), "%.400s:%u", c->path, c->line);
    return cs_values_add_text(&axis->values, c->field, origin, arena, error);
}

/* One line: with no header yet, it is the header. */
static cs_status read_line(csv *c, cs_space *space, bool header, cs_error *error)
{
    uint32_t n = 0, line = c->line;
    for (bool more = true; more; n++) {
        cs_status status = next_field(c, error);
        if (status == CS_OK && header)
            status = add_header(c, space, error);
        else if (status == CS_OK && n < space->n_axes)
            status = add_cell(c, &space->axes[n], &space->arena, error);
        if (status != CS_OK)
            return status;
        more = *c->at == ',';
        c->at += more;
    }
    if (!header && n != space->n_axes)
        return cs_error_add(error, CS_INVALID,
                            "%s:%u: must have %u values, as the first line (got %u)", c->path, line,
                            space->n_axes, n);
    if (!skip_line_end(c) && *c->at)
        return cs_error_add(error, CS_INVALID, "%s:%u: a lone carriage return", c->path, c->line);
    return CS_OK;
}

static cs_status read_lines(csv *c, cs_space *space, cs_error *error)
{
    uint32_t n = 0;
    while (skip_empty_lines(c)) {
        if (n > CS_SPACE_POINTS_MAX)
            return cs_error_add(error, CS_INVALID, "%s:%u: too many points; must be at most %d",
                                c->path, c->line, CS_SPACE_POINTS_MAX);
        CS_TRY(read_line(c, space, n == 0, error));
        n++;
    }
    return n > 1 ? CS_OK
                 : cs_error_add(error, CS_INVALID,
                                "%s: has no points; its first line must have JSON pointers, every "
                                "other one values",
                                c->path);
}

cs_status cs_space_read_csv(cs_space *space, const char *path, cs_error *error)
{
    char *text;
    size_t length;
    cs_status status = cs_file_read(path, CS_SPACE_CSV_BYTES, &text, &length, error);
    if (status != CS_OK)
        return status;
    csv c = {.path = path, .at = text, .line = 1, .field = malloc(length + 1)};
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        c.at += 3; /* a byte order mark */
    if (strlen(text) != length)
        status = cs_error_add(error, CS_INVALID, "%s: has a NUL byte; must be text", path);
    else
        status = c.field ? read_lines(&c, space, error) : cs_error_no_memory(error);
    free(c.field);
    free(text);
    return status;
}

/* ---- closing ---- */

static bool is_within(const char *inner, const char *outer)
{
    size_t length = strlen(outer);
    return strncmp(inner, outer, length) == 0 && (inner[length] == '\0' || inner[length] == '/');
}

static cs_status check_pointers(const cs_space *space, cs_error *error)
{
    for (uint32_t a = 0; a < space->n_axes; a++) {
        for (uint32_t b = 0; b < space->n_axes; b++) {
            const char *inner = space->axes[a].pointer, *outer = space->axes[b].pointer;
            if (a != b && !is_within(inner, outer) &&
                strcmp(space->axes[a].name, space->axes[b].name) == 0)
                return cs_error_add(error, CS_INVALID, "%s and %s: would both be called %s", inner,
                                    outer, space->axes[a].name);
            if (a == b || !is_within(inner, outer))
                continue;
            if (strcmp(inner, outer) == 0)
                return cs_error_add(error, CS_INVALID, "%s: is varied twice", inner);
            return cs_error_add(error, CS_INVALID,
                                "%s: lies within %s, which is varied too; vary one of them", inner,
                                outer);
        }
    }
    return CS_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two rows of a table with one name would be one too many to tell apart. */
static cs_status check_distinct(const cs_axis *axis, cs_error *error)
{
    uint32_t n = axis->values.n;
    const char **sorted = malloc((n + 1) * sizeof(*sorted));
    const char *twice = NULL;
    if (!sorted)
        return cs_error_no_memory(error);
    memcpy(sorted, axis->values.texts, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_texts);
    for (uint32_t i = 1; i < n && !twice; i++)
        twice = strcmp(sorted[i - 1], sorted[i]) == 0 ? sorted[i] : NULL;
    free(sorted);
    return twice ? cs_error_add(error, CS_INVALID, "%s: takes the value %.80s twice", axis->pointer,
                                twice)
                 : CS_OK;
}

/* A number, other than 0, without a unit; and a text with one. */
static bool is_bare(const char *json)
{
    return (*json == '-' || isdigit((unsigned char)*json)) && strtod(json, NULL) != 0;
}

static bool has_unit(const char *json)
{
    return *json == '"' && isdigit((unsigned char)json[1]) &&
           !isdigit((unsigned char)json[strlen(json) - 2]);
}

/* In "16,32 GB" the 16 are bytes. */
static cs_status check_units(const cs_axis *axis, cs_error *error)
{
    const char *bare = NULL, *unit = NULL;
    for (uint32_t i = 0; i < axis->values.n; i++) {
        const char *json = axis->values.texts[i];
        bare = !bare && is_bare(json) ? json : bare;
        unit = !unit && has_unit(json) ? json : unit;
    }
    if (!bare || !unit)
        return CS_OK;
    return cs_error_add(error, CS_INVALID,
                        "%s: must have a unit with each of its values or with none (got %.40s and "
                        "%.40s)",
                        axis->pointer, bare, unit);
}

static cs_status check_axes(const cs_space *space, cs_error *error)
{
    CS_TRY(check_pointers(space, error));
    for (uint32_t a = 0; a < space->n_axes; a++)
        CS_TRY(check_units(&space->axes[a], error));
    return CS_OK;
}

static cs_status count_grid(cs_space *space, cs_error *error)
{
    uint64_t n = 1;
    for (uint32_t a = space->n_axes; a-- > 0;) {
        CS_TRY(check_distinct(&space->axes[a], error));
        space->axes[a].stride = (uint32_t)n;
        n *= space->axes[a].values.n;
        if (n > CS_SPACE_POINTS_MAX)
            break;
    }
    double exact = 1;
    for (uint32_t a = 0; a < space->n_axes; a++)
        exact *= space->axes[a].values.n;
    if (exact > CS_SPACE_POINTS_MAX)
        return cs_error_add(error, CS_INVALID,
                            "the grid has %.6g points; must be at most %d: take longer steps, or a "
                            "list of points from a CSV file",
                            exact, CS_SPACE_POINTS_MAX);
    space->n_points = (uint32_t)n;
    return CS_OK;
}

static cs_status count_list(cs_space *space, cs_error *error)
{
    const cs_axis *first = &space->axes[0];
    for (uint32_t a = 1; a < space->n_axes; a++) {
        const cs_axis *axis = &space->axes[a];
        if (axis->values.n != first->values.n)
            return cs_error_add(error, CS_INVALID,
                                "zipped keys must have equally many values: %s has %u, %s has %u",
                                first->pointer, first->values.n, axis->pointer, axis->values.n);
    }
    space->n_points = first->values.n;
    return CS_OK;
}

cs_status cs_space_close(cs_space *space, cs_space_form form, cs_error *error)
{
    space->form = form;
    if (space->n_axes == 0)
        return cs_error_add(error, CS_USAGE,
                            "nothing is varied; give --vary /json/pointer=VALUES, --csv FILE, or a "
                            "\"sweep\" in the scenario");
    CS_TRY(check_axes(space, error));
    return form == CS_SPACE_GRID ? count_grid(space, error) : count_list(space, error);
}

/* ---- points ---- */

uint32_t cs_space_position(const cs_space *space, uint32_t point, uint32_t axis)
{
    const cs_axis *at = &space->axes[axis];
    return space->form == CS_SPACE_GRID ? point / at->stride % at->values.n : point;
}

const char *cs_space_value(const cs_space *space, uint32_t point, uint32_t axis)
{
    return space->axes[axis].values.texts[cs_space_position(space, point, axis)];
}

cs_status cs_space_apply(const cs_space *space, uint32_t point, const char *origin, cJSON *document,
                         cs_error *error)
{
    for (uint32_t a = 0; a < space->n_axes; a++)
        CS_TRY(cs_json_set(document, space->axes[a].pointer, cs_space_value(space, point, a),
                           origin, error));
    return CS_OK;
}

char *cs_space_describe(const cs_space *space, uint32_t point)
{
    char *text = NULL;
    size_t length;
    FILE *out = cs_text_stream(&text, &length);
    if (!out)
        return NULL;
    for (uint32_t a = 0; a < space->n_axes; a++)
        fprintf(out, "%s%s: %s", a > 0 ? ", " : "{", space->axes[a].key,
                cs_space_value(space, point, a));
    fputc('}', out);
    bool failed = ferror(out);
    if (fclose(out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

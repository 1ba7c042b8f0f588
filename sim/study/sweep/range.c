#include "sim/study/sweep/range.h"

#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/base/vector.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum range_kind { STEPS, FACTOR, LOGARITHMIC, LINEAR } range_kind;

/* A number as it was written. */
typedef struct number {
    double value;
    bool whole;   /* no point, no exponent */
    int decimals; /* digits behind the point that it takes to write it without an exponent */
} number;

typedef struct span {
    range_kind kind;
    number first, last, step; /* step: of STEPS, FACTOR; the count of the others */
    const char *unit;         /* "" or behind the numbers */
} span;

/* One text on its way to values. */
typedef struct range_reader {
    const char *origin, *pointer;
    cs_arena *arena;
    cs_values *values;
    cs_error *error;
} range_reader;

static cs_status fail(const range_reader *r, const char *item, const char *format, ...)
    CS_PRINTF(3, 4);

static cs_status fail(const range_reader *r, const char *item, const char *format, ...)
{
    char message[512], quoted[CS_TEXT_QUOTED_BYTES], shown[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return cs_error_add(r->error, CS_INVALID, "%s: %s: %s: %s", r->origin,
                        cs_text_show(r->pointer, shown, sizeof(shown)),
                        cs_text_quote(item, quoted, sizeof(quoted)), message);
}

/* ---- values ---- */

void cs_values_finish(cs_values *values)
{
    free(values->texts);
    *values = (cs_values){0};
}

static cs_status add_line(cs_values *values, const char *line, cs_arena *arena, cs_error *error)
{
    const char *copy = cs_arena_copy(arena, line);
    if (!copy || !cs_vector_reserve((void **)&values->texts, &values->capacity, values->n + 1ULL,
                                    sizeof(*values->texts)))
        return cs_error_no_memory(error);
    values->texts[values->n++] = copy;
    return CS_OK;
}

cs_status cs_values_add_json(cs_values *values, const cJSON *value, cs_arena *arena,
                             cs_error *error)
{
    char *line = cs_json_line(value);
    cs_status status = line ? add_line(values, line, arena, error) : cs_error_no_memory(error);
    free(line);
    return status;
}

static bool is_utf8(const char *text)
{
    size_t length = strlen(text);
    for (size_t used; length > 0; text += used, length -= used) {
        used = cs_text_character(text, length);
        if (used == 0)
            return false;
    }
    return true;
}

cs_status cs_values_add_text(cs_values *values, const char *text, const char *origin,
                             cs_arena *arena, cs_error *error)
{
    cJSON *value = NULL;
    cs_status status = cs_json_parse(origin, text, strlen(text), &value, NULL);
    if (status == CS_INVALID && !is_utf8(text))
        return cs_error_add(error, CS_INVALID, "%s: a value must be UTF-8", origin);
    if (status == CS_INVALID)
        value = cJSON_CreateString(text);
    if (!value)
        return cs_error_no_memory(error);
    status = cs_values_add_json(values, value, arena, error);
    cJSON_Delete(value);
    return status;
}

/* ---- ranges ---- */

/* "1.25" has 2 decimals, "5e-3" 3, "2.5e1" none. */
static int decimals_of(const char *text, size_t length)
{
    int decimals = 0;
    bool behind = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.')
            behind = true;
        else if (text[i] == 'e' || text[i] == 'E')
            return decimals - (int)fmax(fmin((double)strtol(text + i + 1, NULL, 10), 400), -400);
        else
            decimals += behind;
    }
    return decimals;
}

/* Takes a number off the front; a point that begins ".." does not belong to it. */
static bool take_number(const char **text, number *out)
{
    const char *end = strstr(*text, "..");
    size_t room = end ? (size_t)(end - *text) : strlen(*text);
    size_t length = cs_number_scan(*text, room);
    if (!cs_number_parse(*text, length, &out->value))
        return false;
    int decimals = decimals_of(*text, length);
    out->decimals = decimals > 0 ? decimals : 0;
    out->whole = strcspn(*text, ".eE") >= length;
    *text += length;
    return true;
}

static bool skip(const char **text, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0)
        return false;
    *text += length;
    return true;
}

static bool is_unit(const char *unit)
{
    char text[64];
    double value;
    snprintf(text, sizeof(text), "1 %s", unit);
    for (cs_quantity q = CS_QUANTITY_TIME; q < CS_QUANTITY_NUMBER; q++) {
        if (cs_units_parse(text, q, &value, NULL) == CS_OK)
            return true;
    }
    return false;
}

static const char forms[] =
    "a range is FIRST..LAST, or FIRST..LAST.. with a step (..2), a factor (..x2), or a number of "
    "values (..log5, ..lin5); a text like this stands in quotes";

/* What stands behind the second "..". */
static cs_status read_step(const range_reader *r, const char *item, const char **rest, span *out)
{
    static const struct {
        const char *word;
        range_kind kind;
    } words[] = {{"x", FACTOR}, {"log", LOGARITHMIC}, {"lin", LINEAR}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (skip(rest, words[i].word)) {
            out->kind = words[i].kind;
            break;
        }
    }
    if (!take_number(rest, &out->step))
        return fail(r, item, "%s", forms);
    double step = out->step.value;
    bool counted = out->kind == LOGARITHMIC || out->kind == LINEAR;
    if (counted && (!out->step.whole || step < 2 || step > CS_RANGE_MAX))
        return fail(r, item, "the number of values must be a whole number from 2 to %d",
                    CS_RANGE_MAX);
    if (out->kind == FACTOR && step <= 1)
        return fail(r, item, "the factor must be > 1");
    if (out->kind == STEPS && step == 0)
        return fail(r, item, "the step must not be 0");
    return CS_OK;
}

static cs_status check_ends(const range_reader *r, const char *item, const span *range)
{
    double first = range->first.value, last = range->last.value;
    bool down = range->kind == STEPS && range->step.value < 0;
    if (down ? first < last : first > last)
        return fail(r, item, "the range is empty: %s",
                    down ? "it begins below its end, and the step goes down"
                         : "it begins above its end; a step like ..-1 goes down");
    if ((range->kind == FACTOR || range->kind == LOGARITHMIC) && first <= 0)
        return fail(r, item, "must begin above 0, as ratios do");
    return CS_OK;
}

/* *found is false for what is no range, without an error. */
static cs_status read_range(const range_reader *r, const char *item, span *out, bool *found)
{
    const char *rest = item;
    *out = (span){.kind = STEPS, .step = {1, true, 0}};
    *found = take_number(&rest, &out->first) && skip(&rest, "..");
    if (!*found)
        return CS_OK;
    if (!take_number(&rest, &out->last))
        return fail(r, item, "%s", forms);
    if (skip(&rest, "..")) {
        CS_TRY(read_step(r, item, &rest, out));
    }
    out->unit = rest + strspn(rest, " ");
    if (*out->unit && !is_unit(out->unit))
        return fail(r, item, "%s", forms);
    return check_ends(r, item, out);
}

/* How many values, and how to get them. */
typedef struct progression {
    const span *range;
    double scale; /* of STEPS: 10^decimals, with which all is whole; 0: too large for that */
    double count;
    bool rounds;
} progression;

static progression progression_of(const span *range)
{
    progression p = {.range = range};
    double first = range->first.value, last = range->last.value, step = range->step.value;
    switch (range->kind) {
    case STEPS: {
        int decimals =
            (int)fmax(fmax(range->first.decimals, range->last.decimals), range->step.decimals);
        double scale = pow(10, decimals);
        bool exact = decimals <= 22 && fmax(fabs(first), fabs(last)) * scale < 0x1p52 &&
                     fabs(step) * scale < 0x1p52;
        p.scale = exact ? scale : 0;
        p.count = exact ? floor((nearbyint(last * scale) - nearbyint(first * scale)) /
                                nearbyint(step * scale)) +
                              1
                        : floor((last - first) / step * (1 + 1e-12)) + 1;
        break;
    }
    case FACTOR:
        p.count = floor(log(last / first) / log(step) + 1e-9) + 1;
        break;
    case LOGARITHMIC:
    case LINEAR:
        p.count = step;
        break;
    }
    p.rounds = range->kind != STEPS && range->first.whole && range->last.whole;
    return p;
}

static double value_at(const progression *p, double i)
{
    const span *range = p->range;
    double first = range->first.value, last = range->last.value, step = range->step.value;
    double value = first;
    switch (range->kind) {
    case STEPS:
        value = p->scale > 0
                    ? (nearbyint(first * p->scale) + i * nearbyint(step * p->scale)) / p->scale
                    : first + i * step;
        break;
    case FACTOR:
        value = first * pow(step, i);
        break;
    case LOGARITHMIC:
        value = i == p->count - 1 ? last : first * pow(last / first, i / (p->count - 1));
        break;
    case LINEAR:
        value = i == p->count - 1 ? last : first + (last - first) * i / (p->count - 1);
        break;
    }
    return p->rounds ? nearbyint(value) : value;
}

static cs_status add_number(const range_reader *r, double value, const char *unit)
{
    char digits[CS_NUMBER_TEXT_BYTES], text[128];
    cs_number_format(value, digits, sizeof(digits));
    if (!*unit)
        return add_line(r->values, digits, r->arena, r->error);
    snprintf(text, sizeof(text), "\"%s %s\"", digits, unit);
    return add_line(r->values, text, r->arena, r->error);
}

static cs_status add_range(const range_reader *r, const char *item, const span *range)
{
    progression p = progression_of(range);
    if (!(p.count + r->values->n <= CS_RANGE_MAX))
        return fail(r, item, "has too many values; must have at most %d", CS_RANGE_MAX);
    double before = NAN;
    for (double i = 0; i < p.count; i++) {
        double value = value_at(&p, i);
        if (p.rounds && value == before)
            continue;
        CS_TRY(add_number(r, value, range->unit));
        before = value;
    }
    return CS_OK;
}

/* ---- lists ---- */

static cs_status add_item(const range_reader *r, const char *item)
{
    span range;
    bool found = false;
    if (*item == '\0')
        return fail(r, item, "a value is missing; an empty text is written \"\"");
    cs_status status = read_range(r, item, &range, &found);
    if (status != CS_OK || found)
        return status == CS_OK ? add_range(r, item, &range) : status;
    if (r->values->n >= CS_RANGE_MAX)
        return fail(r, item, "is one value too many; must be at most %d", CS_RANGE_MAX);
    return cs_values_add_text(r->values, item, r->origin, r->arena, r->error);
}

/* Where the item at the front ends: at a comma outside of brackets and quotes, or at the end. */
static const char *item_end(const char *at)
{
    int depth = 0;
    bool quoted = false;
    for (; *at && (*at != ',' || depth > 0 || quoted); at++) {
        if (*at == '\\' && quoted && at[1])
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && (*at == '[' || *at == '{'))
            depth++;
        else if (!quoted && (*at == ']' || *at == '}'))
            depth -= depth > 0;
    }
    return at;
}

cs_status cs_range_read(const char *text, const char *origin, const char *pointer, cs_arena *arena,
                        cs_values *values, cs_error *error)
{
    range_reader r = {origin, pointer, arena, values, error};
    for (;;) {
        const char *end = item_end(text), *last = end;
        text += strspn(text, " \t");
        while (last > text && isspace((unsigned char)last[-1]))
            last--;
        char *item = strndup(text, last > text ? (size_t)(last - text) : 0);
        if (!item)
            return cs_error_no_memory(error);
        cs_status status = add_item(&r, item);
        free(item);
        if (status != CS_OK || *end == '\0')
            return status;
        text = end + 1;
    }
}

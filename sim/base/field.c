#include "sim/base/field.h"

#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/base/time.h"

#include <assert.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How each type is described to users, and the largest number it can hold. */
static const struct type {
    const char *noun;
    const char *hint; /* for quantities: how to write them */
    cs_quantity quantity;
    double largest;
} types[] = {
    [CS_FIELD_TIME] = {"time", ": a number of seconds or a text such as \"5 us\"", CS_QUANTITY_TIME,
                       9223372},
    [CS_FIELD_BYTES] = {"bytes", ": a number or a text such as \"16 GiB\"", CS_QUANTITY_BYTES,
                        9223372036854774784.0},
    [CS_FIELD_BANDWIDTH] = {"bandwidth", ": a number of bytes/s or a text such as \"12 GB/s\"",
                            CS_QUANTITY_BANDWIDTH, DBL_MAX},
    [CS_FIELD_FLOP_RATE] = {"flop rate", ": a number of flop/s or a text such as \"15 Tflop/s\"",
                            CS_QUANTITY_FLOP_RATE, DBL_MAX},
    [CS_FIELD_NUMBER] = {"a number", "", CS_QUANTITY_NUMBER, DBL_MAX},
    [CS_FIELD_COUNT] = {"a whole number", "", CS_QUANTITY_NUMBER, UINT32_MAX},
    [CS_FIELD_INTEGER] = {"a whole number", "", CS_QUANTITY_NUMBER, 9007199254740991.0},
    [CS_FIELD_BOOL] = {"true or false", "", CS_QUANTITY_NUMBER, 0},
    [CS_FIELD_CHOICE] = {"one of ", "", CS_QUANTITY_NUMBER, 0},
    [CS_FIELD_TEXT] = {"text", "", CS_QUANTITY_NUMBER, 0},
    [CS_FIELD_OBJECT] = {"an object", "", CS_QUANTITY_NUMBER, 0},
    [CS_FIELD_LIST] = {"a list", "", CS_QUANTITY_NUMBER, 0},
    [CS_FIELD_VARIANT] = {"an object", "", CS_QUANTITY_NUMBER, 0},
    [CS_FIELD_JSON] = {"any JSON value", "", CS_QUANTITY_NUMBER, 0},
};

enum { EXPECTED_BYTES = 512 };

const cs_field *cs_field_find(const cs_field *table, const char *name)
{
    for (; table->name; table++) {
        if (strcmp(table->name, name) == 0)
            return table;
    }
    return NULL;
}

cs_quantity cs_field_quantity(const cs_field *field)
{
    const bool one_for_all = field->type == CS_FIELD_LIST && field->each;
    return types[one_for_all ? field->of->type : field->type].quantity;
}

static bool is_numeric(const cs_field *field)
{
    return field->type <= CS_FIELD_INTEGER;
}

static bool is_whole(const cs_field *field)
{
    return field->type == CS_FIELD_COUNT || field->type == CS_FIELD_INTEGER;
}

static bool has_unit(const cs_field *field)
{
    return field->type <= CS_FIELD_FLOP_RATE;
}

/* A max of 0 means none, unless min is negative. */
static bool has_maximum(const cs_field *field)
{
    return field->max != 0 || field->min < 0;
}

static void format_bound(const cs_field *field, double bound, char text[CS_UNITS_TEXT_BYTES])
{
    if (has_unit(field) && bound != 0)
        cs_units_format(bound, types[field->type].quantity, 9, text, CS_UNITS_TEXT_BYTES);
    else
        cs_number_format(bound, text, CS_UNITS_TEXT_BYTES);
}

/* Writes ">= 0", "> 0 and <= 1", "from 1 to 8" or "1". */
static char *describe_range(const cs_field *field, char *text, size_t size)
{
    char low[CS_UNITS_TEXT_BYTES], high[CS_UNITS_TEXT_BYTES];
    format_bound(field, field->min, low);
    format_bound(field, field->max, high);
    if (has_maximum(field) && !(field->min < field->max))
        snprintf(text, size, "%s", low);
    else if (!has_maximum(field))
        snprintf(text, size, "%s %s", field->above_min ? ">" : ">=", low);
    else if (field->above_min)
        snprintf(text, size, "> %s and <= %s", low, high);
    else
        snprintf(text, size, "from %s to %s", low, high);
    return text;
}

char *cs_field_expected(const cs_field *field, char *text, size_t size)
{
    char range[2 * CS_UNITS_TEXT_BYTES + 16];
    const char *noun = types[field->type].noun;
    bool any = field->min == 0 && !has_maximum(field) && !field->above_min;
    if (field->type == CS_FIELD_CHOICE) {
        size_t end = (size_t)snprintf(text, size, "one of ");
        for (size_t i = 0; field->choices[i] && end < size; i++)
            end += (size_t)snprintf(text + end, size - end, "%s%s", i > 0 ? ", " : "",
                                    field->choices[i]);
    } else if (!is_numeric(field) && field->shape)
        snprintf(text, size, "%s", field->shape);
    else if (field->type == CS_FIELD_LIST) {
        char element[EXPECTED_BYTES];
        cs_field_expected(field->of, element, sizeof(element));
        if (field->each)
            snprintf(text, size, "%s, or a list of these", element);
        else
            snprintf(text, size, "a list, each entry %s", element);
    } else if (!is_numeric(field) || (has_unit(field) && any) ||
               (field->type == CS_FIELD_INTEGER && field->min < 0 && field->max <= field->min))
        snprintf(text, size, "%s", noun);
    else if (has_maximum(field) && !(field->min < field->max))
        describe_range(field, text, size);
    else
        snprintf(text, size, "%s %s", noun, describe_range(field, range, sizeof(range)));
    /* Append " or \"count\"" for each word. */
    size_t end = strlen(text);
    for (const cs_field_word *word = field->words; word && word->text && end < size; word++)
        end += (size_t)snprintf(text + end, size - end, " or \"%s\"", word->text);
    return text;
}

static cs_status wrong_type(const cs_field *field, const cJSON *value, const cs_json_place *place,
                            cs_error *error)
{
    char expected[EXPECTED_BYTES], got[CS_JSON_DESCRIBED_BYTES];
    const bool list = field->type == CS_FIELD_LIST && !field->each && field->shape;
    return cs_json_invalid(place, error, "must be %s%s%s (got %s)", list ? "a list, such as " : "",
                           cs_field_expected(field, expected, sizeof(expected)),
                           types[field->type].hint, cs_json_describe(value, got, sizeof(got)));
}

static cs_status check_range(const cs_field *field, double number, const cJSON *value,
                             const cs_json_place *place, cs_error *error)
{
    char range[2 * CS_UNITS_TEXT_BYTES + 16], got[CS_JSON_DESCRIBED_BYTES];
    double largest = types[field->type].largest;
    bool low = field->above_min ? number <= field->min : number < field->min;
    if (low || (has_maximum(field) && number > field->max))
        return cs_json_invalid(place, error, "must be %s (got %s)",
                               describe_range(field, range, sizeof(range)),
                               cs_json_describe(value, got, sizeof(got)));
    if (number > largest) {
        format_bound(field, largest, range);
        return cs_json_invalid(place, error, "must be <= %s%s (got %s)", range,
                               field->large && is_whole(field) ? ", or a text of digits" : "",
                               cs_json_describe(value, got, sizeof(got)));
    }
    return CS_OK;
}

static cs_status find_name(const char *text, const cs_field *field, const cs_json_place *place,
                           bool *known, double *number, cs_error *error)
{
    const cs_json_place *above = place;
    while (above && !above->names)
        above = above->up;
    if (!above)
        return CS_OK;
    const cs_field_names *names = above->names;
    return names->find(names->context, text, field->type, place, known, number, error);
}

/* Range of plausible quantities. `units` lists units that users forget or confuse, the likeliest
 * first. */
typedef struct usual_range {
    double least, most; /* SI base units */
    const char *units[6];
} usual_range;

static usual_range usual_range_of(const cs_field *field)
{
    switch (field->type) {
    case CS_FIELD_BYTES:
        return (usual_range){field->large ? 1e6 : 0, 1e15, {"GB", "MB", "GiB", "TB", "kB", NULL}};
    case CS_FIELD_BANDWIDTH:
        return (usual_range){1e6, 1e15, {"GB/s", "Gbit/s", "MB/s", "TB/s", "kB/s", NULL}};
    case CS_FIELD_FLOP_RATE:
        return (usual_range){1e8, 1e19, {"Tflop/s", "Gflop/s", "Pflop/s", NULL}};
    case CS_FIELD_TIME:
        return (usual_range){
            0, field->usual_max > 0 ? field->usual_max : 3600, {"us", "ms", "ns", "ps", NULL}};
    default:
        return (usual_range){0, INFINITY, {NULL}};
    }
}

/* Writes `digits` with the first unit that makes a plausible quantity. Returns false if none
 * does. */
static bool find_likely(const cs_field *field, const usual_range *usual, const char *digits,
                        char *likely, size_t size)
{
    for (size_t i = 0; usual->units[i]; i++) {
        cs_error ignored;
        double value = 0;
        cs_error_init(&ignored);
        snprintf(likely, size, "%s %s", digits, usual->units[i]);
        if (cs_units_parse(likely, types[field->type].quantity, &value, &ignored) == CS_OK &&
            value >= usual->least && value <= usual->most)
            return true;
    }
    return false;
}

/* If a unit is given, it was not forgotten: quantities smaller by this factor are still
 * plausible. */
enum { UNIT_GIVEN = 1000 };

/* Warns of an implausible quantity; of a list, only the first entry is checked. If a field's usual
 * times are below a second, a bare number of 1 s or more is implausible too. */
static void warn_unlikely(const cs_field *field, double number, const cJSON *value,
                          const cs_json_place *place)
{
    const usual_range usual = usual_range_of(field);
    cs_error *warnings = cs_json_warnings(place);
    char got[CS_JSON_DESCRIBED_BYTES], digits[32], likely[64], meant[96] = "";
    const char *text = cJSON_IsString(value) ? value->valuestring : NULL;
    const size_t n = text ? cs_number_scan(text, strlen(text)) : 0;
    const bool bare = !text || n == strlen(text);
    const double least = bare ? usual.least : usual.least / UNIT_GIVEN;
    const double most = bare && field->usual_max > 0 ? fmin(usual.most, 0.999) : usual.most;
    if (!warnings || (!place->key && place->index > 0) || number == 0 || !isfinite(number) ||
        (number >= least && number <= most))
        return;
    if (text)
        snprintf(digits, sizeof(digits), "%.*s", (int)(n < 31 ? n : 31), text);
    else
        snprintf(digits, sizeof(digits), "%.15g", number);
    if (find_likely(field, &usual, digits, likely, sizeof(likely)))
        snprintf(meant, sizeof(meant), "; did you mean \"%s\"?", likely);
    cs_json_describe(value, got, sizeof(got));
    const cs_units_value taken = cs_units_text(number, types[field->type].quantity, 6);
    if (bare)
        (void)cs_json_invalid(place, warnings, "%s has no unit and is taken as %s%s", got, taken.s,
                              meant);
    else
        (void)cs_json_invalid(place, warnings, "%s is unusually %s%s", got,
                              number > most ? "large" : "small", meant);
}

/* Unit that makes the field's exact values whole numbers; NULL: none. */
static const char *whole_unit(const cs_field *field)
{
    return field->type == CS_FIELD_TIME                      ? "ps"
           : field->type == CS_FIELD_BYTES                   ? "B"
           : field->type == CS_FIELD_INTEGER && field->large ? ""
                                                             : NULL;
}

/* Reads "36028797018963971 ps" exactly, where a double would be rounded. Returns false for other
 * texts.
 */
static bool read_whole(const cs_field *field, const cJSON *value, int64_t *whole)
{
    const char *unit = whole_unit(field);
    char *end;
    if (!unit || !cJSON_IsString(value) || *value->valuestring < '0' || *value->valuestring > '9')
        return false;
    errno = 0;
    const long long read = strtoll(value->valuestring, &end, 10);
    end += strspn(end, " \t");
    if (errno != 0 || strcmp(end, unit) != 0)
        return false;
    *whole = read;
    return true;
}

/* Reads a number of any numeric type, in SI base units, and checks its range. */
static cs_status read_number(const cs_field *field, const cJSON *value, const cs_json_place *place,
                             double *number, cs_error *error)
{
    if (cJSON_IsString(value)) {
        /* A text is a word of this field, a name from the document, or a number with a unit. */
        const char *text = value->valuestring;
        for (const cs_field_word *word = field->words; word && word->text; word++) {
            if (strcmp(word->text, text) == 0) {
                *number = word->value;
                return CS_OK;
            }
        }
        bool known = false;
        CS_TRY(find_name(text, field, place, &known, number, error));
        int64_t whole;
        if (!known && !has_unit(field) && read_whole(field, value, &whole)) {
            *number = (double)whole;
            return CS_OK;
        }
        if (!known && !has_unit(field))
            return wrong_type(field, value, place, error);
        cs_error unit_error;
        cs_error_init(&unit_error);
        if (!known &&
            cs_units_parse(text, types[field->type].quantity, number, &unit_error) != CS_OK)
            return cs_json_invalid(place, error, "%s", unit_error.text);
        CS_TRY(check_range(field, *number, value, place, error));
        if (!known)
            warn_unlikely(field, *number, value, place);
        return CS_OK;
    }
    if (!cJSON_IsNumber(value))
        return wrong_type(field, value, place, error);
    *number = value->valuedouble + 0.0; /* -0 becomes 0 */
    if (is_whole(field) && *number != floor(*number))
        return wrong_type(field, value, place, error);
    CS_TRY(check_range(field, *number, value, place, error));
    warn_unlikely(field, *number, value, place);
    return CS_OK;
}

static cs_status store_choice(const cs_field *field, const cJSON *value, const cs_json_place *place,
                              uint32_t *member, cs_error *error)
{
    if (!cJSON_IsString(value))
        return wrong_type(field, value, place, error);
    cs_guess guess;
    if (cs_guess_find(&guess, field->choices, value->valuestring, member))
        return CS_OK;
    return cs_json_invalid(place, error, "unknown value %s", cs_guess_text(&guess));
}

static cs_status store_text(const cs_field *field, const cJSON *value, const cs_json_place *place,
                            const char **member, cs_arena *arena, cs_error *error)
{
    if (!cJSON_IsString(value))
        return wrong_type(field, value, place, error);
    if (cs_text_has_control(value->valuestring, strlen(value->valuestring))) {
        char quoted[CS_TEXT_QUOTED_BYTES];
        return cs_json_invalid(place, error, "must not contain control characters (got %s)",
                               cs_text_quote(value->valuestring, quoted, sizeof(quoted)));
    }
    const char *copy = cs_arena_copy(arena, value->valuestring);
    if (!copy)
        return cs_error_no_memory(error);
    *member = copy;
    return CS_OK;
}

static cs_status store(const cs_field *field, const cJSON *value, const cs_json_place *place,
                       void *member, cs_arena *arena, cs_error *error);

static cs_status store_object(const cs_field *field, const cJSON *value, const cs_json_place *place,
                              void **member, cs_arena *arena, cs_error *error)
{
    void *made = cs_arena_alloc(arena, 1, field->size);
    if (!made)
        return cs_error_no_memory(error);
    cs_status status = cs_field_read(value, place, (const cs_field *const[]){field->of, NULL},
                                     (void *const[]){made}, arena, error);
    if (status == CS_OK)
        *member = made;
    return status;
}

static cs_status check_length(const cs_field *field, uint32_t n, const cs_json_place *place,
                              cs_error *error)
{
    if (field->most > 0 && field->least == field->most && n != field->most)
        return cs_json_invalid(place, error, "must have %u entries (got %u)", field->most, n);
    if (field->most > 0 && (n < field->least || n > field->most))
        return cs_json_invalid(place, error, "must have from %u to %u entries (got %u)",
                               field->least, field->most, n);
    if (n < field->least)
        return cs_json_invalid(place, error, "must have at least %u entr%s (got %u)", field->least,
                               field->least == 1 ? "y" : "ies", n);
    return CS_OK;
}

static cs_status store_elements(const cs_field *element, const cJSON *list,
                                const cs_json_place *place, char *items, cs_arena *arena,
                                cs_error *error)
{
    cs_json_place at = {.up = place};
    cs_status status = CS_OK;
    for (const cJSON *value = list->child; value; value = value->next, at.index++) {
        cs_status one = store(element, value, &at,
                              items + (size_t)at.index * cs_field_size(element), arena, error);
        status = status != CS_OK ? status : one;
    }
    return status;
}

static cs_status store_list(const cs_field *field, const cJSON *value, const cs_json_place *place,
                            cs_list *member, cs_arena *arena, cs_error *error)
{
    const bool one = field->each && !cJSON_IsArray(value);
    if (!one && !cJSON_IsArray(value))
        return wrong_type(field, value, place, error);
    cs_list list = {.n = one ? 1 : (uint32_t)cJSON_GetArraySize(value), .one = one};
    CS_TRY(one ? CS_OK : check_length(field, list.n, place, error));
    list.items = cs_arena_alloc(arena, list.n, cs_field_size(field->of));
    if (!list.items)
        return cs_error_no_memory(error);
    cs_status status = one ? store(field->of, value, place, list.items, arena, error)
                           : store_elements(field->of, value, place, list.items, arena, error);
    if (status == CS_OK)
        *member = list;
    return status;
}

static cs_status store(const cs_field *field, const cJSON *value, const cs_json_place *place,
                       void *member, cs_arena *arena, cs_error *error)
{
    switch (field->type) {
    case CS_FIELD_OBJECT:
        return store_object(field, value, place, member, arena, error);
    case CS_FIELD_LIST:
        return store_list(field, value, place, member, arena, error);
    case CS_FIELD_VARIANT:
        memset(member, 0, field->size);
        return field->kind->read(value, place, member, arena, error);
    case CS_FIELD_BOOL:
        if (!cJSON_IsBool(value))
            return wrong_type(field, value, place, error);
        *(bool *)member = cJSON_IsTrue(value);
        return CS_OK;
    case CS_FIELD_CHOICE:
        return store_choice(field, value, place, member, error);
    case CS_FIELD_TEXT:
        return store_text(field, value, place, member, arena, error);
    case CS_FIELD_JSON:
        *(const cJSON **)member = value;
        return CS_OK;
    default: {
        double number = 0;
        CS_TRY(read_number(field, value, place, &number, error));
        if (read_whole(field, value, member))
            return CS_OK;
        if (field->type == CS_FIELD_TIME) {
            if (!cs_time_from_seconds(number, member))
                return wrong_type(field, value, place, error);
        } else if (field->type == CS_FIELD_BYTES) {
            *(int64_t *)member = isinf(number) ? INT64_MAX : llround(number);
        } else if (field->type == CS_FIELD_INTEGER) {
            *(int64_t *)member = (int64_t)number;
        } else if (field->type == CS_FIELD_COUNT) {
            *(uint32_t *)member = (uint32_t)number;
        } else {
            *(double *)member = number;
        }
        return CS_OK;
    }
    }
}

/* Copies a tree into the arena, so that a default needs no other owner. Returns NULL if memory runs
 * out. */
static cJSON *copy_tree(const cJSON *from, cs_arena *arena)
{
    cJSON *copy = cs_arena_alloc(arena, 1, sizeof(*copy));
    if (!copy)
        return NULL;
    copy->type = from->type;
    copy->valueint = from->valueint;
    copy->valuedouble = from->valuedouble;
    copy->valuestring = from->valuestring ? cs_arena_copy(arena, from->valuestring) : NULL;
    copy->string = from->string ? cs_arena_copy(arena, from->string) : NULL;
    if (!copy->valuestring != !from->valuestring || !copy->string != !from->string)
        return NULL;
    for (const cJSON *child = from->child; child; child = child->next) {
        cJSON *added = copy_tree(child, arena);
        if (!added)
            return NULL;
        /* As in cJSON, the first child's `prev` is the last child. */
        if (!copy->child) {
            copy->child = added;
        } else {
            added->prev = copy->child->prev;
            added->prev->next = added;
        }
        copy->child->prev = added;
    }
    return copy;
}

/* Parses the default as if the user had written it. Returns NULL if memory runs out. */
static const cJSON *default_value(const cs_field *field, cs_arena *arena)
{
    if (!has_unit(field) && field->type != CS_FIELD_TEXT && field->type != CS_FIELD_CHOICE) {
        cJSON *parsed;
        cs_status status =
            cs_json_parse("default", field->fallback, strlen(field->fallback), &parsed, NULL);
        assert(status != CS_INVALID); /* an unreadable default is our bug */
        if (status != CS_OK)
            return NULL;
        cJSON *copy = copy_tree(parsed, arena);
        cJSON_Delete(parsed);
        return copy;
    }
    cJSON *value = cs_arena_alloc(arena, 1, sizeof(*value));
    if (value) {
        value->type = cJSON_String;
        value->valuestring = cs_arena_copy(arena, field->fallback);
    }
    return value && value->valuestring ? value : NULL;
}

size_t cs_field_size(const cs_field *field)
{
    switch (field->type) {
    case CS_FIELD_TIME:
        return sizeof(cs_time);
    case CS_FIELD_BYTES:
    case CS_FIELD_INTEGER:
        return sizeof(int64_t);
    case CS_FIELD_COUNT:
    case CS_FIELD_CHOICE:
        return sizeof(uint32_t);
    case CS_FIELD_BOOL:
        return sizeof(bool);
    case CS_FIELD_LIST:
        return sizeof(cs_list);
    case CS_FIELD_VARIANT:
        return field->size;
    case CS_FIELD_TEXT:
    case CS_FIELD_OBJECT:
    case CS_FIELD_JSON:
        return sizeof(void *);
    default:
        return sizeof(double);
    }
}

/* Whether NULL or all zeros means that the key was left out. */
static bool has_null(const cs_field *field)
{
    return field->type >= CS_FIELD_TEXT;
}

static bool is_double(const cs_field *field)
{
    return field->type == CS_FIELD_NUMBER || field->type == CS_FIELD_BANDWIDTH ||
           field->type == CS_FIELD_FLOP_RATE;
}

/* Marks the member as left out. Returns false if the field has no such mark. */
static bool leave_out(const cs_field *field, void *member)
{
    const bool count = field->type == CS_FIELD_COUNT;
    if (*field->fallback != '\0' || !(has_null(field) || is_double(field) || count))
        return false;
    if (is_double(field))
        *(double *)member = NAN;
    else if (count)
        *(uint32_t *)member = CS_COUNT_LEFT_OUT;
    else
        memset(member, 0, cs_field_size(field));
    return true;
}

static cs_status read_field(const cs_field *field, const cJSON *object,
                            const cs_json_place *object_place, void *out, cs_arena *arena,
                            cs_error *error)
{
    cs_json_place place = {.up = object_place, .key = field->name};
    void *member = (char *)out + field->offset;
    const cJSON *value = cs_json_member(object, field->name);
    if (!value) {
        if (!field->fallback) {
            char expected[EXPECTED_BYTES];
            return cs_json_invalid(
                object_place, error, "missing key \"%s\": must be %s%s", field->name,
                cs_field_expected(field, expected, sizeof(expected)), types[field->type].hint);
        }
        if (leave_out(field, member))
            return CS_OK;
        value = default_value(field, arena);
    }
    if (!value)
        return cs_error_no_memory(error);
    return store(field, value, &place, member, arena, error);
}

static cs_status check_known(const cJSON *key, const cs_field *const tables[],
                             const cs_json_place *object, cs_error *error)
{
    for (size_t t = 0; tables[t]; t++) {
        if (cs_field_find(tables[t], key->string))
            return CS_OK;
    }
    cs_guess guess;
    cs_guess_init(&guess, key->string);
    for (size_t t = 0; tables[t]; t++) {
        for (const cs_field *field = tables[t]; field->name; field++)
            cs_guess_add(&guess, field->name);
    }
    const cs_json_place place = {.up = object, .key = key->string};
    char pointer[CS_ERROR_SUBJECT_BYTES];
    (void)cs_json_invalid(object, error, "unknown key %s", cs_guess_text(&guess));
    cs_error_set_kind(error, CS_ERROR_UNKNOWN_KEY,
                      cs_json_pointer(&place, pointer, sizeof(pointer)));
    return CS_INVALID;
}

static cs_status first_of(cs_status first, cs_status later)
{
    return first != CS_OK ? first : later;
}

cs_status cs_field_read(const cJSON *object, const cs_json_place *place,
                        const cs_field *const tables[], void *const outs[], cs_arena *arena,
                        cs_error *error)
{
    char got[CS_JSON_DESCRIBED_BYTES];
    cs_status status = CS_OK;
    if (object && !cJSON_IsObject(object))
        return cs_json_invalid(place, error, "must be an object (got %s)",
                               cs_json_describe(object, got, sizeof(got)));
    for (const cJSON *key = object ? object->child : NULL; key; key = key->next)
        status = first_of(status, check_known(key, tables, place, error));
    for (size_t t = 0; tables[t]; t++) {
        for (const cs_field *field = tables[t]; field->name; field++)
            status = first_of(status, read_field(field, object, place, outs[t], arena, error));
    }
    return status;
}

static cJSON *write_value(const cs_field *field, const void *member);

static double number_of(const cs_field *field, const void *member)
{
    switch (field->type) {
    case CS_FIELD_TIME:
        return cs_time_seconds(*(const cs_time *)member);
    case CS_FIELD_BYTES:
        return *(const int64_t *)member == INT64_MAX && field->words
                   ? INFINITY
                   : (double)*(const int64_t *)member;
    case CS_FIELD_INTEGER:
        return (double)*(const int64_t *)member;
    case CS_FIELD_COUNT:
        return *(const uint32_t *)member;
    default:
        return *(const double *)member;
    }
}

/* Whether `number` read back gives the same member. Beyond 8192 s a double of seconds cannot hold
 * every picosecond, and beyond 2^53 not every byte; such values are written as texts. */
static bool round_trips(const cs_field *field, double number, int64_t member)
{
    cs_time time;
    if (field->type == CS_FIELD_TIME)
        return member < INT64_C(1) << 53 && cs_time_from_seconds(number, &time) && time == member;
    return number < 0x1p53 ||
           (field->type == CS_FIELD_BYTES && number < 0x1p63 && (int64_t)number == member);
}

static cJSON *write_value(const cs_field *field, const void *member)
{
    switch (field->type) {
    case CS_FIELD_BOOL:
        return cJSON_CreateBool(*(const bool *)member);
    case CS_FIELD_CHOICE:
        return cJSON_CreateString(field->choices[*(const uint32_t *)member]);
    case CS_FIELD_TEXT:
        return cJSON_CreateString(*(const char *const *)member);
    case CS_FIELD_OBJECT: {
        const void *in = *(const void *const *)member;
        cJSON *object = cJSON_CreateObject();
        if (object && cs_field_write(field->of, in, object))
            return object;
        cJSON_Delete(object);
        return NULL;
    }
    case CS_FIELD_LIST: {
        const cs_list *list = member;
        if (list->one)
            return write_value(field->of, list->items);
        cJSON *array = cJSON_CreateArray();
        for (uint32_t i = 0; array && i < list->n; i++) {
            cJSON *value =
                write_value(field->of, (const char *)list->items + i * cs_field_size(field->of));
            if (!value || !cJSON_AddItemToArray(array, value)) {
                cJSON_Delete(value);
                cJSON_Delete(array);
                return NULL;
            }
        }
        return array;
    }
    case CS_FIELD_VARIANT:
        return field->kind->write(member);
    case CS_FIELD_JSON:
        return cJSON_Duplicate(*(const cJSON *const *)member, true);
    default: {
        const double number = number_of(field, member);
        for (const cs_field_word *word = field->words; word && word->text; word++) {
            if (!(word->value < number) && !(word->value > number))
                return cJSON_CreateString(word->text);
        }
        if (whole_unit(field) && !round_trips(field, number, *(const int64_t *)member)) {
            char text[32];
            snprintf(text, sizeof(text), "%" PRId64 "%s%s", *(const int64_t *)member,
                     *whole_unit(field) ? " " : "", whole_unit(field));
            return cJSON_CreateString(text);
        }
        return cJSON_CreateNumber(number);
    }
    }
}

/* Whether the member is marked as left out, so that it is not written. */
static bool is_left_out(const cs_field *field, const void *member)
{
    if (field->type == CS_FIELD_VARIANT)
        return field->kind->is_empty(member);
    if (field->type == CS_FIELD_LIST)
        return !((const cs_list *)member)->items;
    if (is_double(field))
        return isnan(*(const double *)member);
    if (field->type == CS_FIELD_COUNT && field->fallback && !*field->fallback)
        return *(const uint32_t *)member == CS_COUNT_LEFT_OUT;
    return has_null(field) && !*(const void *const *)member;
}

bool cs_field_write(const cs_field *table, const void *in, cJSON *object)
{
    for (const cs_field *field = table; field->name; field++) {
        const void *member = (const char *)in + field->offset;
        if (is_left_out(field, member))
            continue;
        cJSON *value = write_value(field, member);
        if (!value || !cJSON_AddItemToObject(object, field->name, value)) {
            cJSON_Delete(value);
            return false;
        }
    }
    return true;
}

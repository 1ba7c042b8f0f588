#include "plots/slice.h"

#include "sim/base/text.h"
#include "sim/base/units.h"

#include <math.h>
#include <string.h>

/* Largest relative difference between a stored number and the same number written in decimals. */
static const double tolerance = 1e-12;

/* Returns the key of an axis: "/schedule/kind" for the dataset "schedule.kind". */
static const char *key_of(const cs_reader_array *axis)
{
    return *axis->long_name ? axis->long_name : axis->name;
}

static cs_status read_axis(const cs_sheet *sheet, const char *name, uint64_t size,
                           cs_reader_array *axis, cs_error *error)
{
    CS_TRY(cs_reader_read_array(sheet->reader, name, axis, error));
    return (axis->rank != 1 || axis->sizes[0] != size)
               ? cs_error_add(error, CS_INVALID, "%s: %s: must have as many values as the figure",
                              sheet->reader->path, name)
               : CS_OK;
}

static cs_quantity quantity_of(const char *units)
{
    static const struct {
        const char *units;
        cs_quantity quantity;
    } rows[] = {{"s", CS_QUANTITY_TIME},
                {"bytes", CS_QUANTITY_BYTES},
                {"bytes/s", CS_QUANTITY_BANDWIDTH},
                {"flop/s", CS_QUANTITY_FLOP_RATE}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].units, units) == 0)
            return rows[i].quantity;
    return CS_QUANTITY_NUMBER;
}

static const char *value_text(const cs_reader_array *axis, uint64_t i, char *text, size_t size)
{
    return axis->values ? cs_units_format(axis->values[i], quantity_of(axis->units), 6, text, size)
                        : axis->texts[i];
}

/* Finds the index of the axis value that the user wrote. */
static cs_status find_value(const cs_reader_array *axis, const char *word, uint64_t *index,
                            cs_error *error)
{
    cs_error ignored;
    double number = NAN;
    char text[CS_UNITS_TEXT_BYTES];
    cs_guess guess;
    cs_error_init(&ignored);
    cs_guess_init(&guess, word);
    if (axis->values && cs_units_parse(word, quantity_of(axis->units), &number, &ignored) != CS_OK)
        number = NAN;
    for (*index = 0; *index < axis->sizes[0]; ++*index) {
        const uint64_t i = *index;
        if (axis->values ? fabs(axis->values[i] - number) <= tolerance * fabs(number)
                         : strcmp(axis->texts[i], word) == 0)
            return CS_OK;
        cs_guess_add(&guess, value_text(axis, i, text, sizeof(text)));
    }
    return cs_error_add(error, CS_USAGE, "--at %s: unknown value %s", key_of(axis),
                        cs_guess_text(&guess));
}

static cs_status unknown_key(const cs_sheet *sheet, const char *const *names,
                             const cs_reader_array *array, const char *key, cs_error *error)
{
    cs_guess guess;
    cs_guess_init(&guess, key);
    for (uint32_t a = 0; a < array->rank; a++) {
        cs_reader_array axis;
        CS_TRY(read_axis(sheet, names[a], array->sizes[a], &axis, error));
        cs_guess_add(&guess, key_of(&axis));
    }
    return cs_error_add(error, CS_USAGE, "--at: unknown key %s", cs_guess_text(&guess));
}

/* Finds the dimension that "key=value" fixes, and the index of the value. */
static cs_status find_place(const cs_sheet *sheet, const char *const *names,
                            const cs_reader_array *array, const char *fixed, uint32_t *dimension,
                            uint64_t *index, cs_error *error)
{
    char key[256];
    const char *equals = strchr(fixed, '=');
    if (*fixed != '/' || !equals)
        return cs_error_add(error, CS_USAGE,
                            "--at must be /key=VALUE, like /schedule/kind=1f1b (got \"%s\")",
                            fixed);
    snprintf(key, sizeof(key), "%.*s", (int)(equals - fixed), fixed);
    for (*dimension = 0; *dimension < array->rank; ++*dimension) {
        cs_reader_array axis;
        const uint32_t a = *dimension;
        CS_TRY(read_axis(sheet, names[a], array->sizes[a], &axis, error));
        if (strcmp(key_of(&axis), key) == 0)
            return find_value(&axis, equals + 1, index, error);
    }
    return unknown_key(sheet, names, array, key, error);
}

/* Removes a dimension by fixing it at one index. Arrays are row-major: the last dimension varies
 * fastest. */
static cs_status take(const cs_sheet *sheet, const char **names, cs_reader_array *array,
                      uint32_t dimension, uint64_t index, cs_error *error)
{
    uint64_t outer = 1, inner = 1, size = array->sizes[dimension];
    for (uint32_t a = 0; a < array->rank; a++)
        *(a < dimension ? &outer : &inner) *= a == dimension ? 1 : array->sizes[a];
    double *values = cs_arena_alloc(&sheet->reader->arena, outer * inner, sizeof(*values));
    if (!values)
        return cs_error_no_memory(error);
    for (uint64_t i = 0; i < outer; i++)
        memcpy(values + i * inner, array->values + (i * size + index) * inner,
               inner * sizeof(*values));
    array->values = values;
    array->rank--;
    for (uint32_t a = dimension; a < array->rank; a++) {
        array->sizes[a] = array->sizes[a + 1];
        names[a] = names[a + 1];
    }
    return CS_OK;
}

cs_status cs_slice_take(const cs_sheet *sheet, const char **names, cs_reader_array *array,
                        char *text, size_t size, cs_error *error)
{
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < sheet->options->n_at; i++) {
        const char *fixed = sheet->options->at[i];
        uint32_t dimension = 0;
        uint64_t index = 0;
        CS_TRY(find_place(sheet, names, array, fixed, &dimension, &index, error));
        if (array->rank == 1)
            return cs_error_add(error, CS_USAGE, "--at %s: leaves no key to draw", fixed);
        CS_TRY(take(sheet, names, array, dimension, index, error));
        if (used < size)
            used +=
                (size_t)cs_text_format(text + used, size - used, "%s%s", i > 0 ? ", " : "", fixed);
    }
    return CS_OK;
}

cs_status cs_slice_too_many(const cs_sheet *sheet, const char *const *names, uint32_t n,
                            cs_error *error)
{
    char keys[512] = "";
    size_t used = 0;
    for (uint32_t a = 0; a < n; a++) {
        cs_reader_array axis;
        CS_TRY(cs_reader_read_array(sheet->reader, names[a], &axis, error));
        if (used < sizeof(keys))
            used += (size_t)cs_text_format(keys + used, sizeof(keys) - used, "%s%s",
                                           a > 0 ? ", " : "", key_of(&axis));
    }
    return cs_error_add(error, CS_USAGE,
                        "%s: %s varies %u keys (%s); fix all but two, --at /key=VALUE each",
                        sheet->options->kind, sheet->reader->path, n, keys);
}

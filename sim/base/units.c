#include "sim/base/units.h"

#include "sim/base/number.h"
#include "sim/base/text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* value in SI base units = number * times / over. Both are whole and one of them is 1, so that one
 * rounding at most happens: "5 us" is the double nearest to 5e-6, which 5 * 1e-6 is not. */
typedef struct unit {
    const char *name;
    double times, over;
    bool shown; /* used when values are formatted */
} unit;

#define DECIMAL(base, over, shown)                                                                 \
    {base, 1, over, shown}, {"k" base, 1e3, over, shown}, {"M" base, 1e6, over, shown},            \
        {"G" base, 1e9, over, shown}, {"T" base, 1e12, over, shown},                               \
    {                                                                                              \
        "P" base, 1e15, over, shown                                                                \
    }
#define BINARY(base, over)                                                                         \
    {"Ki" base, 0x1p10, over, false}, {"Mi" base, 0x1p20, over, false},                            \
        {"Gi" base, 0x1p30, over, false}, {"Ti" base, 0x1p40, over, false},                        \
    {                                                                                              \
        "Pi" base, 0x1p50, over, false                                                             \
    }

/* Each ended by a NULL name; the shown ones in rising order. */
static const unit time_units[] = {
    {"ps", 1, 1e12, true}, {"ns", 1, 1e9, true},  {"us", 1, 1e6, true},  {"ms", 1, 1e3, true},
    {"s", 1, 1, true},     {"min", 60, 1, true}, {"h", 3600, 1, true}, {0},
};
static const unit bytes_units[] = {DECIMAL("B", 1, true), BINARY("B", 1), {0}};
static const unit bandwidth_units[] = {
    DECIMAL("B/s", 1, true), BINARY("B/s", 1), DECIMAL("bit/s", 8, false), BINARY("bit/s", 8), {0},
};
static const unit flop_rate_units[] = {DECIMAL("flop/s", 1, true), {0}};
static const unit no_units[] = {{0}};

static const unit *units_of(cs_quantity quantity)
{
    static const unit *const tables[] = {
        [CS_QUANTITY_TIME] = time_units,           [CS_QUANTITY_BYTES] = bytes_units,
        [CS_QUANTITY_BANDWIDTH] = bandwidth_units, [CS_QUANTITY_FLOP_RATE] = flop_rate_units,
        [CS_QUANTITY_NUMBER] = no_units,
    };
    return tables[quantity];
}

static const unit *find_unit(const unit *units, const char *name)
{
    static const unit plain = {"", 1, 1, false};
    if (*name == '\0')
        return &plain;
    while (units->name && strcmp(units->name, name) != 0)
        units++;
    return units->name ? units : NULL;
}

static cs_status unknown_unit(const unit *units, const char *name, cs_error *error)
{
    char quoted[CS_TEXT_QUOTED_BYTES];
    if (!units->name)
        return cs_error_add(error, CS_INVALID, "must be a plain number (got %s after it)",
                            cs_text_quote(name, quoted, sizeof(quoted)));
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (; units->name; units++)
        cs_guess_add(&guess, units->name);
    return cs_error_add(error, CS_INVALID, "unknown unit %s", cs_guess_text(&guess));
}

static cs_status not_a_number(const char *text, const unit *units, cs_error *error)
{
    char quoted[CS_TEXT_QUOTED_BYTES];
    cs_text_quote(text, quoted, sizeof(quoted));
    if (!units->name)
        return cs_error_add(error, CS_INVALID, "must be a number (got %s)", quoted);
    return cs_error_add(error, CS_INVALID, "must be a number and a unit such as \"%s\" (got %s)",
                        units[3].name, quoted);
}

cs_status cs_units_parse(const char *text, cs_quantity quantity, double *out, cs_error *error)
{
    const unit *units = units_of(quantity);
    size_t digits = cs_number_scan(text, strlen(text));
    if (digits == 0)
        return not_a_number(text, units, error);
    const char *name = text + digits;
    while (*name == ' ' || *name == '\t')
        name++;
    const unit *found = find_unit(units, name);
    if (!found || (*name == '\0' && name > text + digits))
        return unknown_unit(units, name, error);
    double value;
    bool fits = cs_number_parse(text, digits, &value);
    if (fits)
        value = value * found->times / found->over;
    if (!fits || !isfinite(value)) {
        char quoted[CS_TEXT_QUOTED_BYTES];
        return cs_error_add(error, CS_INVALID, "number too large or too long: %s",
                            cs_text_quote(text, quoted, sizeof(quoted)));
    }
    *out = value + 0.0; /* -0 becomes 0 */
    return CS_OK;
}

#include "sim/base/units.h"

#include "sim/base/number.h"
#include "sim/base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* value in SI base units = number * times / over, both whole numbers: "5 us" is the double nearest
 * to 5e-6, which 5 * 1e-6 is not */
typedef struct unit {
    const char *name;
    double times, over;
    bool shown; /* used for output */
} unit;

/* clang-format off */
#define DECIMAL(base, over, shown)                                                                 \
    {base, 1, over, shown},        {"k" base, 1e3, over, shown},  {"M" base, 1e6, over, shown},    \
    {"G" base, 1e9, over, shown},  {"T" base, 1e12, over, shown}, {"P" base, 1e15, over, shown}
#define BINARY(base, over)                                                                         \
    {"Ki" base, 0x1p10, over, false}, {"Mi" base, 0x1p20, over, false},                            \
    {"Gi" base, 0x1p30, over, false}, {"Ti" base, 0x1p40, over, false},                            \
    {"Pi" base, 0x1p50, over, false}
/* clang-format on */

/* The last row has a NULL name; units used for output are in ascending order. */
static const unit time_units[] = {
    {"ps", 1, 1e12, true}, {"ns", 1, 1e9, true}, {"us", 1, 1e6, true}, {"ms", 1, 1e3, true},
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

/* Reads the prefix of a unit ("g" -> "G", "K" -> "k", "mi" -> "Mi") and returns its length. */
static size_t read_prefix(const char *name, char prefix[3])
{
    const size_t n = *name && strchr("kKmMgGtTpP", *name) ? 1 + (name[1] == 'i') : 0;
    memset(prefix, '\0', 3);
    memcpy(prefix, name, n);
    *prefix =
        (char)(n == 1 && tolower((unsigned char)*name) == 'k' ? 'k'
                                                              : toupper((unsigned char)*prefix));
    return n;
}

/* Guesses the meaning of "Gbps", "gb/s", "Gbit", "GBps". Bits and bytes differ by a factor of 8, so
 * the letters alone must not decide: b is a bit, B a byte, and both readings are shown. Returns
 * false for other texts. */
static bool guess_rate(const char *name, char *text, size_t size)
{
    static const char *const ends[] = {"", "s", "ps", "/s", "/sec", NULL};
    char prefix[3];
    const char *base = name + read_prefix(name, prefix);
    const bool spelt = strncasecmp(base, "bit", 3) == 0, bytes = !spelt && *base == 'B';
    if (!spelt && !bytes && *base != 'b')
        return false;
    size_t i = 0;
    while (ends[i] && strcasecmp(base + (spelt ? 3 : 1), ends[i]) != 0)
        i++;
    snprintf(text, size, "did you mean \"%s%s\"? %s are \"%s%s\"", prefix, bytes ? "B/s" : "bit/s",
             bytes ? "bits" : "bytes", prefix, bytes ? "bit/s" : "B/s");
    return ends[i] != NULL;
}

static cs_status not_a_number(const char *text, const unit *units, cs_error *error)
{
    char quoted[CS_TEXT_QUOTED_BYTES];
    cs_text_quote(text, quoted, sizeof(quoted));
    if (!units->name)
        return cs_error_add(error, CS_INVALID, "must be a number (got %s)", quoted);
    return cs_error_add(error, CS_INVALID, "must be a number and a unit such as \"5 %s\" (got %s)",
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
    if (*name == '\0' && name > text + digits)
        return not_a_number(text, units, error);
    const unit *found = find_unit(units, name);
    if (!found) {
        char quoted[CS_TEXT_QUOTED_BYTES], rate[64];
        if (units == bandwidth_units && guess_rate(name, rate, sizeof(rate)))
            return cs_error_add(error, CS_INVALID, "unknown unit %s; %s",
                                cs_text_quote(name, quoted, sizeof(quoted)), rate);
        if (!units->name)
            return cs_error_add(error, CS_INVALID, "must be a plain number (got %s after it)",
                                cs_text_quote(name, quoted, sizeof(quoted)));
        cs_guess guess;
        cs_guess_init(&guess, name);
        guess.term = NULL; /* "Tflops" here is a misspelt unit, not the metric */
        for (; units->name; units++)
            cs_guess_add(&guess, units->name);
        return cs_error_add(error, CS_INVALID, "unknown unit %s", cs_guess_text(&guess));
    }
    double value;
    if (!cs_number_parse(text, digits, &value) || !isfinite(value * found->times)) {
        char quoted[CS_TEXT_QUOTED_BYTES];
        return cs_error_add(
            error, CS_INVALID,
            "must be a number that fits a double, of at most %d characters (got %s)",
            CS_NUMBER_LONGEST, cs_text_quote(text, quoted, sizeof(quoted)));
    }
    *out = value * found->times / found->over + 0.0; /* -0 becomes 0 */
    return CS_OK;
}

static const unit *largest_shown(const unit *units, double size)
{
    static const unit plain = {"", 1, 1, true};
    const unit *best = &plain;
    for (; units->name; units++) {
        bool first = best == &plain;
        if (units->shown && (first || size >= units->times / units->over))
            best = units;
    }
    return best;
}

static double round_to(double value, int digits)
{
    char text[CS_NUMBER_TEXT_BYTES];
    snprintf(text, sizeof(text), "%.*e", digits - 1, value);
    return strtod(text, NULL);
}

/* Without an exponent if that is short. */
static void format_number(double value, int digits, char text[CS_NUMBER_TEXT_BYTES])
{
    double size = fabs(value);
    if (size < 1e-3 || size >= 1e6) {
        snprintf(text, CS_NUMBER_TEXT_BYTES, "%.*g", digits, value);
        return;
    }
    int decimals = digits - 1 - (int)floor(log10(size));
    snprintf(text, CS_NUMBER_TEXT_BYTES, "%.*f", decimals > 0 ? decimals : 0, value);
    if (!strchr(text, '.'))
        return;
    size_t length = strlen(text);
    while (text[length - 1] == '0')
        length--;
    text[text[length - 1] == '.' ? length - 1 : length] = '\0';
}

/* Rounds first: 999.9 us with three digits is 1 ms, not 1000 us. Zero and non-finite values are
 * shown in the base unit. */
char *cs_units_format(double value, cs_quantity quantity, int digits, char *text, size_t size)
{
    char number[CS_NUMBER_TEXT_BYTES];
    cs_number_locale locale = cs_number_locale_enter();
    digits = digits < 1 ? 1 : digits > 17 ? 17 : digits;
    double rounded = isfinite(value) ? round_to(value, digits) : 1;
    const unit *shown = largest_shown(units_of(quantity), rounded == 0 ? 1 : fabs(rounded));
    if (isfinite(value))
        format_number(value * shown->over / shown->times, digits, number);
    else
        cs_number_format(value, number, sizeof(number));
    cs_number_locale_leave(locale);
    snprintf(text, size, "%s%s%s", number, *shown->name ? " " : "", shown->name);
    return text;
}

cs_units_value cs_units_text(double value, cs_quantity quantity, int digits)
{
    cs_units_value text = {"-"};
    if (!isnan(value))
        cs_units_format(value, quantity, digits, text.s, sizeof(text.s));
    return text;
}

#include "sim/base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* every whole number up to here is a double */
static const double largest_whole = 9007199254740992.0;

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

static const char *skip_exponent(const char *at, const char *end)
{
    at++;
    if (at < end && (*at == '+' || *at == '-'))
        at++;
    const char *digits = at;
    at = skip_digits(digits, end);
    return at > digits ? at : NULL;
}

size_t cs_number_scan(const char *text, size_t length)
{
    const char *end = text + length;
    const char *digits = length > 0 && *text == '-' ? text + 1 : text;
    const char *at = skip_digits(digits, end);
    if (at == digits || (*digits == '0' && at - digits > 1))
        return 0;
    if (at < end && *at == '.') {
        digits = at + 1;
        at = skip_digits(digits, end);
        if (at == digits)
            return 0;
    }
    if (at < end && (*at == 'e' || *at == 'E'))
        at = skip_exponent(at, end);
    return at ? (size_t)(at - text) : 0;
}

bool cs_number_parse(const char *text, size_t length, double *out)
{
    char copy[CS_NUMBER_LONGEST + 1];
    if (length == 0 || length > CS_NUMBER_LONGEST || cs_number_scan(text, length) != length)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    cs_number_locale locale = cs_number_locale_enter();
    char *end;
    double value = strtod(copy, &end);
    cs_number_locale_leave(locale);
    if (*end != '\0' || !isfinite(value))
        return false;
    *out = value;
    return true;
}

static void format_shortest(double value, char *text, size_t size)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

char *cs_number_format(double value, char *text, size_t size)
{
    cs_number_locale locale = cs_number_locale_enter();
    if (!isfinite(value))
        snprintf(text, size, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    else if (fabs(value) <= largest_whole && value == floor(value))
        snprintf(text, size, "%.0f", value);
    else
        format_shortest(value, text, size);
    cs_number_locale_leave(locale);
    return text;
}

cs_number_locale cs_number_locale_enter(void)
{
    cs_number_locale locale = {.c = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    if (locale.c)
        locale.before = uselocale(locale.c);
    return locale;
}

void cs_number_locale_leave(cs_number_locale locale)
{
    if (!locale.c)
        return;
    uselocale(locale.before);
    freelocale(locale.c);
}

int cs_number_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#include "sim/model/foreign/decimal.h"

#include "sim/base/number.h"

#include <stdbool.h>

__extension__ typedef unsigned __int128 wide;

/* digits * 10^exponent, plus less than one unit of `digits` if there is a rest. */
typedef struct decimal {
    wide digits;
    int64_t exponent;
    bool rest;
} decimal;

/* 36 digits and one more still fit 128 bits. They are far more than an int64_t holds, so what comes
 * after them matters only as a rest that is not zero. */
static wide full(void)
{
    return (wide)1000000000000000000 * 1000000000000000000;
}

static void add_digit(decimal *number, int digit, bool fraction)
{
    if (number->digits < full()) {
        number->digits = number->digits * 10 + (unsigned)digit;
        number->exponent -= fraction;
    } else {
        number->rest |= digit != 0;
        number->exponent += !fraction;
    }
}

/* Larger exponents are all the same: too large, or nothing. */
static int64_t read_exponent(const char *at, const char *end)
{
    const int64_t largest = INT64_C(1) << 40;
    bool negative = *at == '-';
    int64_t value = 0;
    for (at += *at == '-' || *at == '+'; at < end; at++)
        value = value < largest ? value * 10 + (*at - '0') : value;
    return negative ? -value : value;
}

/* The text is well-formed and has no sign. */
static decimal read_decimal(const char *at, const char *end)
{
    decimal number = {0};
    bool fraction = false;
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.')
            fraction = true;
        else
            add_digit(&number, *at - '0', fraction);
    }
    if (at < end)
        number.exponent += read_exponent(at + 1, end);
    return number;
}

static bool multiply(wide *value, int64_t exponent)
{
    for (; exponent > 0 && *value > 0 && *value <= INT64_MAX; exponent--)
        *value *= 10;
    return *value <= INT64_MAX;
}

/* Divides by 10^-exponent. Digits far below the point leave no whole, but possibly a rest. */
static wide divide(const decimal *number, int64_t exponent, cs_decimal_rounding rounding)
{
    wide divisor = 1;
    for (; exponent < 0 && divisor <= full(); exponent++)
        divisor *= 10;
    wide whole = exponent < 0 ? 0 : number->digits / divisor;
    wide rest = exponent < 0 ? number->digits : number->digits % divisor;
    bool up = rounding == CS_DECIMAL_UP ? rest > 0 || number->rest
                                        : exponent == 0 && rest >= divisor - rest;
    return whole + up;
}

cs_decimal_result cs_decimal_parse(const char *text, size_t length, int shift,
                                   cs_decimal_rounding rounding, int64_t *out)
{
    if (length == 0 || cs_number_scan(text, length) != length)
        return CS_DECIMAL_NO_NUMBER;
    if (*text == '-')
        return CS_DECIMAL_NEGATIVE;
    decimal number = read_decimal(text, text + length);
    int64_t exponent = number.exponent + shift;
    wide value = exponent < 0 ? divide(&number, exponent, rounding) : number.digits;
    if (!multiply(&value, exponent))
        return CS_DECIMAL_TOO_LARGE;
    *out = (int64_t)value;
    return CS_DECIMAL_OK;
}

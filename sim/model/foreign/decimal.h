/* Decimal numbers as exact integers in a smaller unit: "4.446" ms are 4446000000 ps, to the last
 * digit. Going through a double would round twice, and would not hold large sizes exactly. */
#ifndef CS_FOREIGN_DECIMAL_H
#define CS_FOREIGN_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

typedef enum cs_decimal_result {
    CS_DECIMAL_OK,
    CS_DECIMAL_NO_NUMBER, /* not a number as JSON writes them: also nan, inf, +1, 0x1 */
    CS_DECIMAL_NEGATIVE,
    CS_DECIMAL_TOO_LARGE, /* does not fit int64_t */
} cs_decimal_result;

typedef enum cs_decimal_rounding {
    CS_DECIMAL_NEAREST /* halves up */,
    CS_DECIMAL_UP
} cs_decimal_rounding;

/* The `length` bytes of `text`, a number >= 0, times 10^shift (-100 <= shift <= 100), rounded once.
 * On failure *out is untouched. */
cs_decimal_result cs_decimal_parse(const char *text, size_t length, int shift,
                                   cs_decimal_rounding rounding, int64_t *out);

#endif

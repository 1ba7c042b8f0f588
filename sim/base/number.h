/* Numbers as text, the same in every locale.
 *
 * strtod and printf take the decimal point from the locale; a program that embeds the simulator
 * may have set one with a comma. Everything here reads and writes a point.
 */
#ifndef CS_BASE_NUMBER_H
#define CS_BASE_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

enum { CS_NUMBER_TEXT_BYTES = 32 }; /* enough for any formatted number */

/* The length of the number, as JSON writes them (-1.5e3; not +1, 01, .5, 1., 0x1, inf), that
 * `text` begins with; 0 when it does not begin with one. */
size_t cs_number_scan(const char *text, size_t length);

/* The double nearest to the number that the `length` bytes of `text` are; false, *out untouched,
 * when they are none, too large for a double, or longer than CS_NUMBER_LONGEST. */
bool cs_number_parse(const char *text, size_t length, double *out);

enum { CS_NUMBER_LONGEST = 63 }; /* bytes; cJSON has the same limit, silently */

/* Writes as many digits (15 to 17, without trailing zeros) as reading back the same double takes;
 * whole numbers up to 2^53 without an exponent; "nan", "inf" and "-inf". Returns `text`. */
char *cs_number_format(double value, char *text, size_t size);

/* Makes the calling thread use the C locale until the matching leave, around calls of libraries
 * that use the locale. Leaving also when entering failed for lack of memory is right. */
typedef struct cs_number_locale {
    locale_t c, before;
} cs_number_locale;

cs_number_locale cs_number_locale_enter(void);
void cs_number_locale_leave(cs_number_locale locale);

/* For qsort: doubles in ascending order. */
int cs_number_compare(const void *a, const void *b);

#endif

/* Numbers as text, the same in every locale.
 *
 * strtod and printf use the locale's decimal point, and a program that embeds the simulator may
 * have set a locale with a comma. Everything here reads and writes a point.
 */
#ifndef CS_BASE_NUMBER_H
#define CS_BASE_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

enum { CS_NUMBER_TEXT_BYTES = 32 }; /* enough for any formatted number */

/* Length of the JSON number (-1.5e3; not +1, 01, .5, 1., 0x1, inf) at the start of `text`; 0:
 * none. */
size_t cs_number_scan(const char *text, size_t length);

/* Parses the whole text as a number. Returns false, without writing *out, if it is not one,
 * overflows a double, or is longer than CS_NUMBER_LONGEST. */
bool cs_number_parse(const char *text, size_t length, double *out);

enum { CS_NUMBER_LONGEST = 63 }; /* bytes; cJSON silently has the same limit */

/* Writes the fewest digits (15 to 17, without trailing zeros) that read back as the same double;
 * whole numbers up to 2^53 without an exponent; "nan", "inf", "-inf". Returns `text`. */
char *cs_number_format(double value, char *text, size_t size);

/* Switches the calling thread to the C locale until the matching leave, around library calls that
 * use the locale. If entering failed for lack of memory, leaving has no effect. */
typedef struct cs_number_locale {
    locale_t c, before;
} cs_number_locale;

cs_number_locale cs_number_locale_enter(void);
void cs_number_locale_leave(cs_number_locale locale);

/* Compares doubles for qsort, in ascending order. */
int cs_number_compare(const void *a, const void *b);

#endif

/* Quantities with units, as users write and read them.
 *
 * Units are case-sensitive; decimal (k M G T P) and binary (Ki Mi Gi Ti Pi) prefixes both:
 *   time        "5 us", "2.5 ms", "1 s", "3 min", "2 h"; also ns, ps. A plain number is seconds.
 *   bytes       "16 GiB", "1 GB", "512 B", "3 kB". A plain number is bytes.
 *   bandwidth   "150 GB/s", "12.5 GiB/s"; bits as "100 Gbit/s". A plain number is bytes/s.
 *   flop rate   "15.7 Tflop/s". A plain number is flop/s.
 * One number as JSON writes them, blanks or none, one unit. The text must hold nothing else.
 */
#ifndef CS_BASE_UNITS_H
#define CS_BASE_UNITS_H

#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stddef.h>

typedef enum cs_quantity {
    CS_QUANTITY_TIME,      /* s */
    CS_QUANTITY_BYTES,     /* bytes */
    CS_QUANTITY_BANDWIDTH, /* bytes/s */
    CS_QUANTITY_FLOP_RATE, /* flop/s */
    CS_QUANTITY_NUMBER,    /* no unit */
} cs_quantity;

/* Reads a text into SI base units. On failure *out is unchanged and `error` gets one message
 * without a place, which says what is wrong and lists the known units: "unknown unit \"gb\"; known:
 * B, kB, ...". NaN, infinities ("inf"), hexadecimal numbers and numbers that overflow a double are
 * refused. */
CS_MUST_CHECK cs_status cs_units_parse(const char *text, cs_quantity quantity, double *out,
                                       cs_error *error);

/* Writes a quantity for users: 1.5e-3 s -> "1.5 ms", 16e9 bytes -> "16 GB", 12.5e9 bytes/s -> "12.5
 * GB/s", with `digits` significant digits (1 to 17; without trailing zeros). Returns `text`. */
char *cs_units_format(double value, cs_quantity quantity, int digits, char *text, size_t size);

enum { CS_UNITS_TEXT_BYTES = 40 }; /* enough for any formatted quantity */

/* Formatted quantity by value, for arguments of printf: cs_units_text(...).s; "-" for NaN. */
typedef struct cs_units_value {
    char s[CS_UNITS_TEXT_BYTES];
} cs_units_value;

cs_units_value cs_units_text(double value, cs_quantity quantity, int digits);

#endif

/* Simulated time: int64_t picoseconds from the start of the run.
 *
 * 2^63 ps are 106 days. Nothing wraps: sums and products that could are made with the checked
 * functions below, and an overflow is an error of the run (CS_OVERFLOW).
 */
#ifndef CS_BASE_TIME_H
#define CS_BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

typedef int64_t cs_time;

#define CS_TIME_MAX   INT64_MAX
#define CS_PS_PER_SEC INT64_C(1000000000000)

/* Each returns false, leaving *out as it was, when the result does not fit. */
static inline bool cs_time_add(cs_time a, cs_time b, cs_time *out)
{
    cs_time sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

static inline bool cs_time_mul(cs_time a, int64_t factor, cs_time *out)
{
    cs_time product;
    if (__builtin_mul_overflow(a, factor, &product))
        return false;
    *out = product;
    return true;
}

/* Seconds to the nearest picosecond; false when negative, not a number or too large. */
bool cs_time_from_seconds(double seconds, cs_time *out);

double cs_time_seconds(cs_time time);

/* Time to move `bytes` at `rate` bytes/s, rounded to the nearest picosecond; an infinite rate
 * takes no time. False when the result does not fit. */
bool cs_time_transfer(double bytes, double rate, cs_time *out);

/* To the nearest picosecond; false when negative, not a number or too large. */
bool cs_time_round(double picoseconds, cs_time *out);

/* time * factor, to the nearest picosecond; exact for factor 1. False when it does not fit. */
bool cs_time_scale(cs_time time, double factor, cs_time *out);

/* time / speed, to the nearest picosecond; exact for speed 1. speed > 0. False when it does not
 * fit. */
bool cs_time_at_speed(cs_time time, double speed, cs_time *out);

/* Seconds of a clock of this machine that never goes back, from some start; not simulated time. */
double cs_clock_seconds(void);

#endif

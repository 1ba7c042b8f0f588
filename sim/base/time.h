/* Simulated time: int64_t picoseconds from the start of the run.
 *
 * 2^63 ps are 106 days. Nothing wraps around: sums and products that could overflow use the checked
 * functions below, and an overflow is an error of the run (CS_OVERFLOW).
 */
#ifndef CS_BASE_TIME_H
#define CS_BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

typedef int64_t cs_time;

#define CS_TIME_MAX   INT64_MAX
#define CS_PS_PER_SEC INT64_C(1000000000000)

/* Return false, without writing *out, if the result does not fit. */
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

/* Converts seconds to the nearest picosecond; false if negative, NaN or too large. */
bool cs_time_from_seconds(double seconds, cs_time *out);

double cs_time_seconds(cs_time time);

/* Time to move `bytes` at `rate` bytes/s, to the nearest picosecond; an infinite rate takes no
 * time. Returns false if the result does not fit. */
bool cs_time_transfer(double bytes, double rate, cs_time *out);

/* Rounds to the nearest picosecond; false if negative, NaN or too large. */
bool cs_time_round(double picoseconds, cs_time *out);

/* time * factor, to the nearest picosecond; exact if factor is 1. Returns false if it does not
 * fit. */
bool cs_time_scale(cs_time time, double factor, cs_time *out);

/* time / speed (> 0), to the nearest picosecond; exact if speed is 1. Returns false if it does not
 * fit. */
bool cs_time_at_speed(cs_time time, double speed, cs_time *out);

/* Seconds of this machine's monotonic clock; not simulated time. */
double cs_clock_seconds(void);

#endif

#include "sim/base/time.h"

#include <math.h>
#include <time.h>

/* beyond this, neighbouring doubles are at least a picosecond apart */
static const double exact = 9007199254740992.0;

/* largest double below 2^63; converts to int64_t without overflow */
static const double largest = 9223372036854774784.0;

bool cs_time_round(double picoseconds, cs_time *out)
{
    if (!(picoseconds >= 0 && picoseconds <= largest))
        return false;
    const cs_time whole = (cs_time)picoseconds;
    *out = whole + (picoseconds - (double)whole >= 0.5); /* same as llround, without the call */
    return true;
}

/* The product is first rounded to a double, which beyond 2^51 ps can end up on the wrong side of a
 * half; the rounding error decides. So every result of cs_time_seconds converts back to the same
 * time. */
bool cs_time_from_seconds(double seconds, cs_time *out)
{
    cs_time time;
    if (!cs_time_round(seconds * (double)CS_PS_PER_SEC, &time))
        return false;
    if ((double)time < exact) {
        double lost = fma(seconds, (double)CS_PS_PER_SEC, -(double)time);
        time += (lost >= 0.5) - (lost < -0.5);
    }
    *out = time;
    return true;
}

double cs_time_seconds(cs_time time)
{
    return (double)time / (double)CS_PS_PER_SEC;
}

bool cs_time_transfer(double bytes, double rate, cs_time *out)
{
    if (bytes == 0) { /* also if rate is 0, where 0/0 would be NaN */
        *out = 0;
        return true;
    }
    return cs_time_round(bytes * (double)CS_PS_PER_SEC / rate, out);
}

bool cs_time_scale(cs_time time, double factor, cs_time *out)
{
    if (factor == 1) { /* exact beyond 2^53 too */
        *out = time;
        return true;
    }
    return cs_time_round((double)time * factor, out);
}

bool cs_time_at_speed(cs_time time, double speed, cs_time *out)
{
    if (speed == 1) {
        *out = time;
        return true;
    }
    return cs_time_round((double)time / speed, out);
}

double cs_clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

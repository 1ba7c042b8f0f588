#include "sim/model/halo.h"

#include "sim/model/layout.h"

cs_row_range cs_rows_of(uint32_t rows, uint32_t parts, uint32_t i)
{
    return (cs_row_range){cs_part_first(rows, parts, i), cs_part_first(rows, parts, i + 1)};
}

uint32_t cs_rows_most(uint32_t rows, uint32_t parts)
{
    return rows / parts + (rows % parts > 0);
}

/* Returns the halo of a part that needs the rows from `first` to `last` (none if first > last) and
 * has the rows `own`. */
static cs_halo missing(int64_t first, int64_t last, cs_row_range own)
{
    cs_halo halo = {0, 0};
    if (first > last)
        return halo;
    if (first < own.first)
        halo.before = (uint32_t)((last < own.first ? last + 1 : own.first) - first);
    if (last >= own.end)
        halo.behind = (uint32_t)(last + 1 - (first > own.end ? first : own.end));
    return halo;
}

/* Returns a / b, rounded towards minus infinity. */
static int64_t floor_divide(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Returns a / b, rounded towards plus infinity. */
static int64_t ceil_divide(int64_t a, int64_t b)
{
    return -floor_divide(-a, b);
}

static int64_t between(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* first_read and last_read return the first and the last row in [first, end) that an output row
 * reads. If it reads none of them, they return `end` and first - 1. */
static int64_t first_read(const cs_sliding *s, int64_t out, int64_t first, int64_t end)
{
    const int64_t base = out * s->stride - s->pad;
    const int64_t k = between(ceil_divide(first - base, s->dilation), 0, s->kernel - (int64_t)1);
    const int64_t row = base + k * s->dilation;
    return row >= first && row < end ? row : end;
}

static int64_t last_read(const cs_sliding *s, int64_t out, int64_t first, int64_t end)
{
    const int64_t base = out * s->stride - s->pad;
    const int64_t k = between(floor_divide(end - 1 - base, s->dilation), 0, s->kernel - (int64_t)1);
    const int64_t row = base + k * s->dilation;
    return row >= first && row < end ? row : first - 1;
}

/* The first loop stops at the first output whose window begins inside the image, because all later
 * windows begin further on. The second loop does the same from the other end. */
cs_halo cs_halo_of_input(const cs_sliding *sliding, uint32_t parts, uint32_t i)
{
    const cs_row_range in = cs_rows_of(sliding->in, parts, i),
                       out = cs_rows_of(sliding->out, parts, i);
    const int64_t end = sliding->in, reach = (int64_t)sliding->dilation * (sliding->kernel - 1);
    int64_t first = end, last = -1;
    for (int64_t o = out.first; o < out.end; o++) {
        const int64_t row = first_read(sliding, o, 0, end);
        first = row < first ? row : first;
        if (o * sliding->stride >= sliding->pad)
            break;
    }
    for (int64_t o = (int64_t)out.end - 1; o >= out.first; o--) {
        const int64_t row = last_read(sliding, o, 0, end);
        last = row > last ? row : last;
        if (o * sliding->stride - sliding->pad + reach < end)
            break;
    }
    return missing(first, last, in);
}

cs_halo cs_halo_of_gradient(const cs_sliding *sliding, uint32_t parts, uint32_t i)
{
    const cs_row_range in = cs_rows_of(sliding->in, parts, i),
                       out = cs_rows_of(sliding->out, parts, i);
    const int64_t reach = (int64_t)sliding->dilation * (sliding->kernel - 1);
    const int64_t most = (int64_t)sliding->out - 1;
    int64_t first = ceil_divide((int64_t)in.first + sliding->pad - reach, sliding->stride);
    int64_t last = floor_divide((int64_t)in.end - 1 + sliding->pad, sliding->stride);
    if (in.first == in.end)
        return (cs_halo){0, 0};
    first = first > 0 ? first : 0;
    last = last < most ? last : most;
    while (first <= last && first_read(sliding, first, in.first, in.end) == in.end)
        first++;
    while (first <= last && first_read(sliding, last, in.first, in.end) == in.end)
        last--;
    return missing(first, last, out);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

typedef cs_halo halo_function(const cs_sliding *sliding, uint32_t parts, uint32_t i);

static cs_halo most(halo_function *of, const cs_sliding *sliding, uint32_t parts)
{
    cs_halo most = {0, 0};
    for (uint32_t i = 0; i < parts; i++) {
        const cs_halo halo = of(sliding, parts, i);
        most = (cs_halo){larger(most.before, halo.before), larger(most.behind, halo.behind)};
    }
    return most;
}

cs_halo cs_halo_most_of_input(const cs_sliding *sliding, uint32_t parts)
{
    return most(cs_halo_of_input, sliding, parts);
}

cs_halo cs_halo_most_of_gradient(const cs_sliding *sliding, uint32_t parts)
{
    return most(cs_halo_of_gradient, sliding, parts);
}

/* Returns the number of rows of part i; 0 if there is no such part. */
static uint32_t rows_at(uint32_t rows, uint32_t parts, int64_t i)
{
    if (i < 0 || i >= parts)
        return 0;
    const cs_row_range own = cs_rows_of(rows, parts, (uint32_t)i);
    return own.end - own.first;
}

static bool is_near(cs_halo halo, uint32_t rows, uint32_t parts, uint32_t i)
{
    return halo.before <= rows_at(rows, parts, (int64_t)i - 1) &&
           halo.behind <= rows_at(rows, parts, (int64_t)i + 1);
}

bool cs_halo_is_near(const cs_sliding *sliding, uint32_t parts)
{
    bool near = true;
    for (uint32_t i = 0; near && i < parts; i++)
        near = is_near(cs_halo_of_input(sliding, parts, i), sliding->in, parts, i) &&
               is_near(cs_halo_of_gradient(sliding, parts, i), sliding->out, parts, i);
    return near;
}

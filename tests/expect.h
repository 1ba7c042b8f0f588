/* Comparisons for tables of rows: each names the row and shows both values when they differ.
 * Include it instead of <cmocka.h>. */
#ifndef CS_TESTS_EXPECT_H
#define CS_TESTS_EXPECT_H

#include "sim/base/error.h"
#include "tests/cases-drawn.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static inline void expect_text(const char *row, const char *expected, const char *got)
{
    if (strcmp(expected, got) != 0)
        fail_msg("%s:\nexpected: %s\n     got: %s", row, expected, got);
}

/* Compares exactly: our results are meant to be the nearest doubles. */
static inline void expect_double(const char *row, double expected, double got)
{
    if (!(expected <= got && expected >= got))
        fail_msg("%s: expected %.17g, got %.17g", row, expected, got);
}

static inline void expect_int(const char *row, int64_t expected, int64_t got)
{
    if (expected != got)
        fail_msg("%s: expected %" PRId64 ", got %" PRId64, row, expected, got);
}

static inline void expect_bits(const char *row, uint64_t expected, uint64_t got)
{
    if (expected != got)
        fail_msg("%s: expected 0x%016" PRIx64 ", got 0x%016" PRIx64, row, expected, got);
}

/* The status, and the messages ("" for none). */
static inline void expect_error(const char *row, cs_status expected, const char *message,
                                cs_status got, const cs_error *error)
{
    if (expected != got)
        fail_msg("%s: expected %s, got %s: %s", row, cs_status_name(expected), cs_status_name(got),
                 error->text);
    expect_text(row, message, error->text);
}

#endif

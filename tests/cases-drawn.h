/* How many random cases a test draws. */
#ifndef CS_TESTS_CASES_DRAWN_H
#define CS_TESTS_CASES_DRAWN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CS_TESTS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CS_TESTS_SANITIZED 1
#endif

/* All where the environment says SIM_TESTS=long, as `meson test --setup long` does; else a quarter,
 * which still meets every kind. */
static inline uint32_t cases_drawn(uint32_t all)
{
    const char *tests = getenv("SIM_TESTS");
    return tests && strcmp(tests, "long") == 0 ? all : all / 4;
}

/* A quarter with AddressSanitizer, which takes five times as long: the other build checks the
 * values of all, and what hundreds of cases do to memory is what thousands do. */
static inline uint32_t fewer_sanitized(uint32_t n)
{
#ifdef CS_TESTS_SANITIZED
    return n / 4;
#else
    return n;
#endif
}

#endif

/* Loaded before a program (LD_PRELOAD): its allocation number $FAIL_AT fails, and no other; with
 * $FAIL_COUNT=FILE it writes there how many there were. Those of HDF5 are not counted: version 1.10
 * crashes when one fails. */
#define _GNU_SOURCE /* dladdr */

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *data, size_t size);

static atomic_long count;
static long fail_at = -1; /* -1: not begun yet */
static pid_t owner;       /* programs that it starts are not attacked */

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_AT");
    void *frame;
    (void)backtrace(&frame, 1); /* the first one loads a library */
    owner = getpid();
    fail_at = at ? strtol(at, NULL, 10) : 0;
    unsetenv("LD_PRELOAD");
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAIL_COUNT");
    FILE *out = path && getpid() == owner ? fopen(path, "w") : NULL;
    if (!out)
        return;
    fprintf(out, "%ld\n", atomic_load(&count));
    fclose(out);
}

static bool is_in_library(void)
{
    void *frames[24];
    Dl_info info;
    const int n = backtrace(frames, 24);
    for (int i = 0; i < n; i++)
        if (dladdr(frames[i], &info) != 0 && info.dli_fname && strstr(info.dli_fname, "libhdf5"))
            return true;
    return false;
}

static bool fails(void)
{
    static _Thread_local bool within;
    if (fail_at < 0 || within)
        return false;
    within = true;
    const bool counts = !is_in_library();
    within = false;
    if (!counts || atomic_fetch_add(&count, 1) + 1 != fail_at)
        return false;
    errno = ENOMEM;
    return true;
}

#pragma GCC visibility push(default)

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *data, size_t size)
{
    return fails() ? NULL : __libc_realloc(data, size);
}

#pragma GCC visibility pop

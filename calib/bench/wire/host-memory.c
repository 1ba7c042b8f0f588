#define _DEFAULT_SOURCE /* caches: sysconf(_SC_LEVEL3_CACHE_SIZE) */

#include "calib/bench/wire/host-memory.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

int64_t cs_host_cache_bytes(void)
{
    long bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > 0 ? bytes : INT64_C(32) << 20;
}

/* Reads a number from a file by its format; -1 if there is none (such as "max"). */
static int64_t read_number(const char *path, const char *format)
{
    long long value = -1;
    char line[128];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, format, &value) == 1)
            break;
    if (file)
        fclose(file);
    return value;
}

int64_t cs_host_free_bytes(void)
{
    static const char *const groups[][2] = {
        {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
         "/sys/fs/cgroup/memory/memory.usage_in_bytes"}};
    const int64_t kibibytes = read_number("/proc/meminfo", "MemAvailable: %lld kB");
    int64_t left = kibibytes > 0 ? kibibytes * 1024 : INT64_MAX;
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        const int64_t most = read_number(groups[i][0], "%lld");
        const int64_t used = read_number(groups[i][1], "%lld");
        if (most > 0 && used >= 0 && most - used < left)
            left = most > used ? most - used : 0;
    }
    return left;
}

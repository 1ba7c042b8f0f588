/* A CUDA driver (libcuda.so.1) of a version, and with an answer to cuInit, that the environment
 * says: FAKE_DRIVER_VERSION, 1000 * major + 10 * minor, and FAKE_DRIVER_INIT, a CUresult. It has no
 * device.
 *
 * The runtime asks a driver for its functions by name; those that are not here it gets as ones that
 * fail with CUDA_ERROR_NO_DEVICE. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { NO_DEVICE = 100, NOT_FOUND = 500 };

EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuInit(unsigned flags);
EXPORT int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags);
EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                               int *status);
EXPORT int cuGetExportTable(const void **table, const void *id);

static int number(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

int cuDriverGetVersion(int *version)
{
    *version = number("FAKE_DRIVER_VERSION");
    return 0;
}

int cuInit(unsigned flags)
{
    (void)flags;
    return number("FAKE_DRIVER_INIT");
}

static int no_device(void)
{
    return NO_DEVICE;
}

/* POSIX has functions and data of one size. */
static void give(void **function, void (*is)(void))
{
    memcpy(function, &is, sizeof(is));
}

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    (void)version, (void)flags;
    static const struct {
        const char *name;
        void (*is)(void);
    } ours[] = {{"cuDriverGetVersion", (void (*)(void))cuDriverGetVersion},
                {"cuInit", (void (*)(void))cuInit},
                {"cuGetProcAddress", (void (*)(void))cuGetProcAddress_v2},
                {"cuGetExportTable", (void (*)(void))cuGetExportTable}};
    give(function, (void (*)(void))no_device);
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (strcmp(ours[i].name, name) == 0)
            give(function, ours[i].is);
    if (status)
        *status = 0;
    return 0;
}

int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

int cuGetExportTable(const void **table, const void *id)
{
    (void)id;
    *table = NULL;
    return NOT_FOUND;
}

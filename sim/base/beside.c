#include "sim/base/beside.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool own_folder(char *folder, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    if (length <= 0)
        return false;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

bool cs_beside_find(const char *name, const char *const *places, int mode, char *path, size_t size)
{
    char folder[PATH_MAX];
    if (!own_folder(folder, sizeof(folder)))
        return false;
    for (; *places; places++) {
        int length = snprintf(path, size, "%s/%s/%s", folder, *places, name);
        if (length > 0 && (size_t)length < size && access(path, mode) == 0)
            return true;
    }
    return false;
}

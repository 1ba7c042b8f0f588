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

const char *cs_beside_shared(const char *name, char *path)
{
    /* "../sim" is where wheels built by meson-python 0.12 put these folders. */
    static const char *const beside[] = {"../share/sim", "../sim", NULL};
    if (cs_beside_find(name, beside, R_OK, path, CS_BESIDE_BYTES))
        return path;
    snprintf(path, CS_BESIDE_BYTES, "%s/%s", CS_SHARE_DIR, name);
    if (access(path, R_OK) != 0)
        snprintf(path, CS_BESIDE_BYTES, "%s/%s", CS_SOURCE_DIR, name);
    return path;
}

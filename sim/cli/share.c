#define _XOPEN_SOURCE 700 /* realpath */

#include "sim/cli/share.h"

#include "sim/base/beside.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* From the folder of `sim` itself. */
static const char *const places[] = {"../share/sim", NULL};

const char *cs_share_path(const char *name, char path[PATH_MAX])
{
    char found[PATH_MAX];
    if (cs_beside_find(name, places, R_OK, found, sizeof(found)) && realpath(found, path))
        return path;
    const char *slash = name[0] ? "/" : "";
    snprintf(path, PATH_MAX, CS_SOURCE_DIR "%s%s", slash, name);
    if (access(path, R_OK) != 0)
        snprintf(path, PATH_MAX, CS_SHARE_DIR "%s%s", slash, name);
    return path;
}

#include "sim/cli/share.h"

#include <stdio.h>
#include <unistd.h>

const char *cs_share_path(const char *name, char path[CS_SHARE_BYTES])
{
    const char *slash = name[0] ? "/" : "";
    snprintf(path, CS_SHARE_BYTES, CS_SHARE_DIR "%s%s", slash, name);
    if (access(path, R_OK) != 0)
        snprintf(path, CS_SHARE_BYTES, CS_SOURCE_DIR "%s%s", slash, name);
    return path;
}

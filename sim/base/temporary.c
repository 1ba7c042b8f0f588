#define _XOPEN_SOURCE 700 /* mkdtemp */

#include "sim/base/temporary.h"

#include "sim/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char chosen[] = "XXXXXX";

/* "/tmp/NAME-", with room for the rest; allocated. */
static char *beginning(const char *name, size_t *length)
{
    const char *asked = getenv("TMPDIR"), *folder = asked && *asked ? asked : "/tmp";
    const size_t size = strlen(folder) + strlen(name) + sizeof("/-") + sizeof(chosen) - 1;
    char *path = malloc(size);
    if (path)
        *length = (size_t)snprintf(path, size, "%s/%s-", folder, name);
    return path;
}

/* `path`: its end is chosen. What is taken away before it is claimed is made again. */
static bool make(char *path, size_t length, bool folder, int *file, cs_claim *claim)
{
    for (;;) {
        memcpy(path + length, chosen, sizeof(chosen));
        if (!(folder ? mkdtemp(path) != NULL : (*file = mkstemp(path)) >= 0))
            return false;
        if (cs_claim_take(path, claim))
            return true;
        if (!folder)
            close(*file);
    }
}

static cs_status create(cs_temporary *temporary, const char *name, bool folder, int *file,
                        cs_error *error)
{
    sigset_t before;
    size_t length = 0;
    char *path = beginning(name, &length);
    if (!path)
        return cs_error_no_memory(error);
    cs_claim_clear(path);
    cs_interrupt_hold(&before);
    const bool made = make(path, length, folder, file, &temporary->claim);
    const int code = errno;
    temporary->path = path;
    if (made)
        temporary->leftover = folder ? cs_leftover_folder(path) : cs_leftover_file(path);
    cs_interrupt_release(&before);
    if (temporary->leftover)
        return CS_OK;
    cs_status status = made ? cs_error_no_memory(error)
                            : cs_error_system(error, CS_IO, path, "cannot create", code);
    if (made)
        cs_temporary_remove(temporary);
    free(temporary->path);
    *temporary = (cs_temporary){0};
    return status;
}

cs_status cs_temporary_file(cs_temporary *temporary, const char *name, const char *text,
                            size_t length, cs_error *error)
{
    int file = -1;
    *temporary = (cs_temporary){0};
    cs_status status = create(temporary, name, false, &file, error);
    if (status == CS_OK && !cs_file_write_all(file, text, length))
        status = cs_error_system(error, CS_IO, temporary->path, "cannot write", errno);
    if (file >= 0 && close(file) != 0 && status == CS_OK)
        status = cs_error_system(error, CS_IO, temporary->path, "cannot write", errno);
    if (status != CS_OK)
        cs_temporary_remove(temporary);
    return status;
}

cs_status cs_temporary_folder(cs_temporary *temporary, const char *name, cs_error *error)
{
    *temporary = (cs_temporary){0};
    return create(temporary, name, true, NULL, error);
}

void cs_temporary_remove(cs_temporary *temporary)
{
    if (temporary->path)
        cs_claim_remove(temporary->path);
    cs_claim_release(&temporary->claim);
    cs_leftover_forget(temporary->leftover);
    free(temporary->path);
    *temporary = (cs_temporary){0};
}

#include "sim/base/temporary.h"

#include "sim/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char chosen[] = "XXXXXX";
/* hidden from programs that look for complete results */
static const char file_name[] = ".content";

/* `beginning`: path of the folder without its random suffix. */
static cs_status make_folder(cs_temporary *temporary, const char *beginning, const char *shown,
                             cs_error *error)
{
    sigset_t before;
    cs_temporary made = {0};
    const size_t length = strlen(beginning);
    *temporary = made;
    made.folder = malloc(length + sizeof(chosen));
    if (!made.folder)
        return cs_error_no_memory(error);
    cs_marked_folder_clear(beginning);
    memcpy(made.folder, beginning, length);
    memcpy(made.folder + length, chosen, sizeof(chosen));
    cs_interrupt_hold(&before);
    const bool done = cs_marked_folder_make(made.folder, &made.made);
    const int code = errno;
    if (done)
        made.leftover = cs_leftover_folder(made.folder, &made.made);
    cs_interrupt_release(&before);
    if (made.leftover) {
        *temporary = made;
        return CS_OK;
    }
    const cs_status status =
        done ? cs_error_no_memory(error)
             : cs_error_system(error, CS_IO, shown ? shown : made.folder, "cannot create", code);
    if (done)
        cs_temporary_remove(&made);
    free(made.folder);
    return status;
}

/* Creates the requested file. */
static cs_status make_file(cs_temporary *temporary, mode_t mode, const char *text, size_t length,
                           const char *shown, cs_error *error)
{
    const size_t size = strlen(temporary->folder) + sizeof(file_name) + 1;
    temporary->path = malloc(size);
    if (!temporary->path)
        return cs_error_no_memory(error);
    CS_TRY(cs_temporary_entry(temporary, file_name, temporary->path, size, error));
    shown = shown ? shown : temporary->path;
    const int file = open(temporary->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file < 0)
        return cs_error_system(error, CS_IO, shown, "cannot create", errno);
    cs_status status = CS_OK;
    if (!cs_file_write_all(file, text, length))
        status = cs_error_system(error, CS_IO, shown, "cannot write", errno);
    if (close(file) != 0 && status == CS_OK)
        status = cs_error_system(error, CS_IO, shown, "cannot write", errno);
    return status;
}

cs_status cs_temporary_folder(cs_temporary *temporary, const char *name, cs_error *error)
{
    const char *asked = getenv("TMPDIR"), *where = asked && *asked ? asked : "/tmp";
    const size_t size = strlen(where) + strlen(name) + sizeof("/-");
    char *beginning = malloc(size);
    *temporary = (cs_temporary){0};
    if (!beginning)
        return cs_error_no_memory(error);
    snprintf(beginning, size, "%s/%s-", where, name);
    const cs_status status = make_folder(temporary, beginning, NULL, error);
    free(beginning);
    return status;
}

cs_status cs_temporary_file(cs_temporary *temporary, const char *name, const char *text,
                            size_t length, cs_error *error)
{
    CS_TRY(cs_temporary_folder(temporary, name, error));
    const cs_status status = make_file(temporary, 0600, text, length, NULL, error);
    if (status != CS_OK)
        cs_temporary_remove(temporary);
    return status;
}

cs_status cs_temporary_beside(cs_temporary *temporary, const char *beginning, const char *shown,
                              cs_error *error)
{
    CS_TRY(make_folder(temporary, beginning, shown, error));
    const cs_status status = make_file(temporary, 0666, "", 0, shown, error);
    if (status != CS_OK)
        cs_temporary_remove(temporary);
    return status;
}

cs_status cs_temporary_entry(const cs_temporary *temporary, const char *name, char *path,
                             size_t size, cs_error *error)
{
    const int length = snprintf(path, size, "%s/%s", temporary->folder, name);
    if (length < 0 || (size_t)length >= size)
        return cs_error_system(error, CS_IO, temporary->folder, "cannot be used", ENAMETOOLONG);
    if (!cs_marked_folder_list(&temporary->made, name))
        return cs_error_system(error, CS_IO, temporary->folder, "cannot write", errno);
    return CS_OK;
}

cs_status cs_temporary_subfolder(const cs_temporary *temporary, const char *name, char *path,
                                 size_t size, cs_error *error)
{
    CS_TRY(cs_temporary_entry(temporary, name, path, size, error));
    return mkdir(path, 0700) == 0 ? CS_OK
                                  : cs_error_system(error, CS_IO, path, "cannot create", errno);
}

void cs_temporary_remove(cs_temporary *temporary)
{
    if (temporary->folder)
        (void)cs_marked_folder_remove(temporary->folder, &temporary->made);
    cs_leftover_forget(temporary->leftover); /* before its descriptors are closed */
    cs_marked_folder_close(&temporary->made);
    free(temporary->folder);
    free(temporary->path);
    *temporary = (cs_temporary){0};
}

/* realpath belongs to the X/Open part of POSIX */
#define _XOPEN_SOURCE 700

#include "sim/base/file.h"

#include "sim/base/inputs.h"
#include "sim/base/marked-folder.h"
#include "sim/base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FIRST_READ = 16 << 10,
    NAME_SHOWN = 200,
    LINKS_MAX = 40,
    UNOPENED_SECONDS = 2,
    SILENT_SECONDS = 60
};

/* Opens an input. A path that cannot be opened is the user's mistake; later failures are the
 * machine's. Opening a pipe does not wait for its writer. */
static cs_status open_input(const char *path, int *fd, cs_error *error)
{
    struct stat info;
    int opened;
    do
        opened = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    while (opened < 0 && errno == EINTR);
    if (opened < 0)
        return cs_error_system(error, CS_INVALID, path, "cannot read", errno);
    const bool known = fstat(opened, &info) == 0;
    if (known && (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode))) {
        const cs_status status = cs_inputs_add(path, &info, false, error);
        if (status != CS_OK)
            close(opened);
        *fd = opened;
        return status;
    }
    close(opened);
    return cs_error_add(error, CS_INVALID, "%s: is a %s; must be a file", path,
                        known && S_ISDIR(info.st_mode) ? "folder" : "device");
}

/* Waits for data in a pipe: briefly if no program has opened it yet, else longer. */
static cs_status wait_for_writer(int fd, const char *path, bool opened, double since,
                                 cs_error *error)
{
    static const struct timespec moment = {.tv_nsec = 5 * 1000 * 1000};
    if (cs_clock_seconds() - since > (opened ? SILENT_SECONDS : UNOPENED_SECONDS))
        return cs_error_add(error, CS_INVALID, "%s: %s; write to a file, and read that", path,
                            opened ? "nothing was written into this pipe for a minute"
                                   : "is a pipe that no program writes into");
    if (opened)
        (void)poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 1000);
    else
        (void)nanosleep(&moment, NULL);
    return CS_OK;
}

static bool grow(char **text, size_t *capacity)
{
    size_t next = *capacity > 0 ? 2 * *capacity : FIRST_READ;
    char *grown = next > *capacity ? realloc(*text, next) : NULL;
    if (!grown)
        return false;
    *text = grown;
    *capacity = next;
    return true;
}

/* Reads to the end, whatever size was reported before: pipes have no size, and files grow. read()
 * from a pipe without a writer returns 0; before the first byte this is not the end. */
static cs_status read_all(int fd, const char *path, size_t limit, char **text, size_t *length,
                          cs_error *error)
{
    struct stat info;
    size_t capacity = 0;
    double since = cs_clock_seconds();
    const bool pipe = fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
    for (bool opened = !pipe;;) {
        if (capacity - *length < 2 && !grow(text, &capacity))
            return cs_error_no_memory(error);
        ssize_t got = read(fd, *text + *length, capacity - *length - 1);
        if (got < 0 && errno == EINTR)
            continue;
        const bool waits = got < 0 && errno == EAGAIN;
        if (got < 0 && !waits)
            return cs_error_system(error, CS_IO, path, "cannot read", errno);
        if (got == 0 && opened)
            break;
        if (got <= 0) {
            opened |= waits;
            CS_TRY(wait_for_writer(fd, path, opened, since, error));
            continue;
        }
        opened = true;
        since = cs_clock_seconds();
        *length += (size_t)got;
        if (*length > limit)
            return cs_error_add(error, CS_INVALID, "%s: too large; must be at most %zu bytes", path,
                                limit);
    }
    (*text)[*length] = '\0';
    return CS_OK;
}

cs_status cs_file_read(const char *path, size_t limit, char **text, size_t *length, cs_error *error)
{
    int fd = -1;
    char *bytes = NULL;
    size_t count = 0;
    CS_TRY(open_input(path, &fd, error));
    cs_status status = read_all(fd, path, limit, &bytes, &count, error);
    close(fd); /* nothing was written, so the result can be ignored */
    if (status != CS_OK) {
        free(bytes);
        return status;
    }
    *text = bytes;
    *length = count;
    return CS_OK;
}

/* The bytes of `path` up to and including its last slash; 0 for a name in the current folder. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

bool cs_file_draft_is_direct(const cs_file_draft *draft)
{
    return strcmp(draft->path, draft->temporary) == 0;
}

/* Returns the path of the file to replace or create; NULL: no memory. Follows a link, even if its
 * target does not exist yet; other paths stay as the user wrote them. */
static char *final_path(const char *path)
{
    struct stat info;
    char target[PATH_MAX];
    if (stat(path, &info) == 0) {
        const bool link = lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
        char *resolved = link ? realpath(path, NULL) : NULL;
        return resolved ? resolved : strdup(path);
    }
    char *at = strdup(path);
    for (int links = 0; at && links < LINKS_MAX; links++) {
        const ssize_t length = readlink(at, target, sizeof(target) - 1);
        if (length < 0)
            break;
        target[length] = '\0';
        char *next = cs_file_relative(at, target);
        free(at);
        at = next;
    }
    return at;
}

static cs_status check_path(const char *path, bool *device, cs_error *error)
{
    struct stat info;
    *device = false;
    if (stat(path, &info) != 0) {
        if (path[folder_length(path)] == '\0')
            return cs_error_add(error, CS_IO, "%s: must be the name of a file",
                                *path ? path : "\"\"");
        return errno == ENOENT ? CS_OK
                               : cs_error_system(error, CS_IO, path, "cannot create", errno);
    }
    if (S_ISDIR(info.st_mode))
        return cs_error_add(error, CS_IO, "%s: is a folder; must be the name of a file", path);
    if (access(path, W_OK) != 0)
        return cs_error_system(error, CS_IO, path, "cannot write", errno);
    *device = !S_ISREG(info.st_mode);
    return *device ? CS_OK : cs_inputs_check(path, &info, error);
}

cs_status cs_file_check_output(const char *path, cs_error *error)
{
    bool device;
    return strcmp(path, "-") == 0 ? CS_OK : check_path(path, &device, error);
}

/* Returns ".<name>.sim~" in the folder of the final path; NULL: no memory. A long name is shortened
 * to leave room for six characters; characters that some programs reject are replaced. */
static char *temporary_beginning(const char *path)
{
    size_t folder = folder_length(path), size = strlen(path) + sizeof("..sim~");
    char *name = malloc(size);
    if (name)
        snprintf(name, size, "%.*s.%.*s.sim~", (int)folder, path, NAME_SHOWN, path + folder);
    for (char *at = name ? name + folder : NULL; at && *at; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
            *at = '_';
    return name;
}

void cs_file_clear_drafts(const char *path)
{
    char *final = final_path(path), *beginning = final ? temporary_beginning(final) : NULL;
    if (beginning)
        cs_marked_folder_clear(beginning);
    free(beginning);
    free(final);
}

/* Keeps a pipe open until the draft is finished, so that opening it again does not wait for a
 * reader. */
static cs_status hold_pipe(cs_file_draft *draft, cs_error *error)
{
    struct stat info;
    static const struct timespec moment = {.tv_nsec = 5 * 1000 * 1000};
    const double since = cs_clock_seconds();
    if (stat(draft->path, &info) != 0 || !S_ISFIFO(info.st_mode))
        return CS_OK;
    do {
        draft->pipe = open(draft->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        draft->piped = draft->pipe >= 0;
    } while (!draft->piped && (errno == ENXIO || errno == EINTR) &&
             cs_clock_seconds() - since < UNOPENED_SECONDS && nanosleep(&moment, NULL) == 0);
    if (!draft->piped && errno == ENXIO)
        return cs_error_add(error, CS_IO, "%s: is a pipe that no program reads; start one first",
                            draft->path);
    return draft->piped ? CS_OK : cs_error_system(error, CS_IO, draft->path, "cannot write", errno);
}

static cs_status begin_beside(cs_file_draft *draft, const char *path, cs_error *error)
{
    draft->path = final_path(path);
    char *beginning = draft->path ? temporary_beginning(draft->path) : NULL;
    if (!beginning)
        return cs_error_no_memory(error);
    cs_status status = cs_temporary_beside(&draft->made, beginning, path, error);
    free(beginning);
    if (status == CS_OK && !(draft->temporary = strdup(draft->made.path)))
        status = cs_error_no_memory(error);
    return status;
}

cs_status cs_file_draft_begin(cs_file_draft *draft, const char *path, cs_error *error)
{
    cs_file_draft begun = {0};
    bool device;
    *draft = begun;
    cs_status status = check_path(path, &device, error);
    if (status != CS_OK)
        return status;
    if (!device) {
        status = begin_beside(&begun, path, error);
    } else {
        begun.path = strdup(path);
        begun.temporary = strdup(path);
        status =
            begun.path && begun.temporary ? hold_pipe(&begun, error) : cs_error_no_memory(error);
    }
    if (status == CS_OK)
        *draft = begun;
    else
        cs_file_draft_drop(&begun);
    return status;
}

static cs_status flush(const char *path, const char *shown, int flags, cs_error *error)
{
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        return cs_error_system(error, CS_IO, shown, "cannot open to flush", errno);
    cs_status status = CS_OK;
    /* some file systems cannot flush a folder and return EINVAL */
    if (fsync(fd) != 0 && !(errno == EINVAL && (flags & O_DIRECTORY)))
        status = cs_error_system(error, CS_IO, shown, "cannot flush to the disk", errno);
    if (close(fd) != 0 && status == CS_OK)
        status = cs_error_system(error, CS_IO, shown, "cannot close", errno);
    return status;
}

/* Renames the finished file. The new name is safely on disk only once its folder is flushed; a
 * folder that is writable but not readable cannot be flushed, but the file is complete all the
 * same. */
static cs_status rename_in(const char *folder, cs_file_draft *draft, cs_error *error)
{
    struct stat replaced, made;
    CS_TRY(flush(draft->temporary, draft->path, O_RDONLY, error));
    if (stat(draft->path, &replaced) == 0)
        CS_TRY(cs_inputs_check(draft->path, &replaced, error));
    if (stat(draft->temporary, &made) == 0)
        CS_TRY(cs_inputs_add(draft->path, &made, true, error));
    if (rename(draft->temporary, draft->path) != 0)
        return cs_error_system(error, CS_IO, draft->path,
                               "cannot rename the finished file to this name", errno);
    return access(folder, R_OK) == 0 ? flush(folder, draft->path, O_RDONLY | O_DIRECTORY, error)
                                     : CS_OK;
}

static cs_status publish(cs_file_draft *draft, cs_error *error)
{
    const size_t length = folder_length(draft->path);
    char *folder = length > 0 ? strndup(draft->path, length) : strdup(".");
    const cs_status status = folder ? rename_in(folder, draft, error) : cs_error_no_memory(error);
    free(folder);
    return status;
}

cs_status cs_file_draft_commit(cs_file_draft *draft, cs_error *error)
{
    cs_status status = cs_file_draft_is_direct(draft) ? CS_OK : publish(draft, error);
    cs_file_draft_drop(draft);
    return status;
}

void cs_file_draft_drop(cs_file_draft *draft)
{
    if (!draft)
        return;
    if (draft->piped)
        close(draft->pipe);
    draft->piped = false;
    cs_temporary_remove(&draft->made);
    free(draft->temporary);
    free(draft->path);
    draft->path = draft->temporary = NULL;
}

bool cs_file_write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        text += written;
        length -= (size_t)written;
    }
    return true;
}

static cs_status write_draft(const cs_file_draft *draft, const char *text, size_t length,
                             cs_error *error)
{
    int fd = open(draft->temporary, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return cs_error_system(error, CS_IO, draft->path, "cannot write", errno);
    cs_status status = CS_OK;
    if (!cs_file_write_all(fd, text, length))
        status = cs_error_system(error, CS_IO, draft->path, "cannot write", errno);
    if (close(fd) != 0 && status == CS_OK)
        status = cs_error_system(error, CS_IO, draft->path, "cannot write", errno);
    return status;
}

cs_status cs_file_write(const char *path, const char *text, size_t length, cs_error *error)
{
    cs_file_draft draft;
    if (strcmp(path, "-") == 0) {
        if (!cs_file_write_all(STDOUT_FILENO, text, length))
            return cs_error_system(error, CS_IO, "standard output", "cannot write", errno);
        return CS_OK;
    }
    CS_TRY(cs_file_draft_begin(&draft, path, error));
    cs_status status = write_draft(&draft, text, length, error);
    if (status != CS_OK) {
        cs_file_draft_drop(&draft);
        return status;
    }
    return cs_file_draft_commit(&draft, error);
}

char *cs_file_relative(const char *from, const char *name)
{
    size_t folder = *name == '/' ? 0 : folder_length(from);
    size_t size = folder + strlen(name) + 1;
    char *path = malloc(size);
    if (path) {
        memcpy(path, from, folder);
        memcpy(path + folder, name, size - folder);
    }
    return path;
}

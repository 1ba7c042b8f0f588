#define _GNU_SOURCE /* F_DUPFD_CLOEXEC, flock, mkdtemp, syscall */

#include "sim/base/marked-folder.h"

#include "sim/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FIRST_FREE = 3, CHOSEN = 6, MARK_BYTES = 4096, ENTRIES_BYTES = 1024, LEVELS_MAX = 16 };

static const char mark_name[] = ".sim-temporary";
static const char mark_text[] = "temporary folder of sim, 5bd0f1c4-8e6a-4f0e-9d1b-73c2a6e0d9b7\n";

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- opening ---- */

/* Avoids descriptors 0 to 2, which a program that uses the library may have closed. */
static int open_at(int parent, const char *name, int flags)
{
    const int opened = openat(parent, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (opened < 0 || opened >= FIRST_FREE)
        return opened;
    const int moved = fcntl(opened, F_DUPFD_CLOEXEC, FIRST_FREE);
    close(opened);
    return moved;
}

/* Opens folder and mark (with `flags`). Returns false if either fails. */
static bool open_both(const char *path, int flags, cs_marked_folder *made)
{
    const int folder = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    const int mark = folder < 0 ? -1 : open_at(folder, mark_name, flags);
    const int code = errno;
    if (mark < 0 && folder >= 0)
        close(folder);
    if (mark >= 0)
        *made = (cs_marked_folder){folder, mark};
    errno = code;
    return mark >= 0;
}

void cs_marked_folder_close(cs_marked_folder *made)
{
    if (made->mark > 0)
        close(made->mark);
    if (made->folder > 0)
        close(made->folder);
    *made = (cs_marked_folder){0};
}

/* ---- the mark ---- */

static bool skip_text(char **at, const char *text)
{
    const size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* snprintf is not async-signal-safe. */
static bool skip_number(char **at, uintmax_t number)
{
    char digits[24] = {0};
    size_t first = sizeof(digits) - 1;
    do
        digits[--first] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return skip_text(at, digits + first);
}

/* Reads the mark into `text`. Returns the names of the entries, one per line, or NULL if this user
 * did not make the mark for this folder under this name. */
static char *read_mark(const cs_marked_folder *made, const char *name, char text[MARK_BYTES])
{
    struct stat of_folder, of_mark;
    size_t length = 0;
    ssize_t got = 0;
    if (fstat(made->folder, &of_folder) != 0 || fstat(made->mark, &of_mark) != 0 ||
        !S_ISREG(of_mark.st_mode) || of_folder.st_uid != geteuid() || of_mark.st_uid != geteuid())
        return NULL;
    while (length < MARK_BYTES - 1 &&
           (got = pread(made->mark, text + length, MARK_BYTES - 1 - length, (off_t)length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    char *at = text;
    return skip_text(&at, mark_text) && skip_text(&at, name) && skip_text(&at, "\n") &&
                   skip_number(&at, of_folder.st_ino) && skip_text(&at, "\n")
               ? at
               : NULL;
}

static bool write_mark(const cs_marked_folder *made, const char *name)
{
    struct stat info;
    char text[MARK_BYTES];
    if (fstat(made->folder, &info) != 0)
        return false;
    const int length =
        snprintf(text, sizeof(text), "%s%s\n%ju\n", mark_text, name, (uintmax_t)info.st_ino);
    return cs_file_write_all(made->mark, text, (size_t)length);
}

/* Locks the folder before writing its mark: without a mark no other process removes it. */
bool cs_marked_folder_make(char *path, cs_marked_folder *made)
{
    memcpy(path + strlen(path) - CHOSEN, "XXXXXX", CHOSEN);
    *made = (cs_marked_folder){0};
    if (!mkdtemp(path))
        return false;
    if (open_both(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL, made)) {
        (void)flock(made->folder, LOCK_EX);
        if (write_mark(made, name_of(path)))
            return true;
    }
    const int code = errno;
    if (made->folder > 0)
        (void)unlinkat(made->folder, mark_name, 0);
    cs_marked_folder_close(made);
    (void)rmdir(path);
    errno = code;
    return false;
}

/* Refuses an entry that would make the mark exceed read_mark's buffer. */
bool cs_marked_folder_list(const cs_marked_folder *made, const char *name)
{
    struct stat info;
    char line[256];
    const int length = snprintf(line, sizeof(line), "%s\n", name);
    if (fstat(made->mark, &info) != 0)
        return false;
    if ((size_t)length >= sizeof(line) || info.st_size + length >= MARK_BYTES) {
        errno = ENAMETOOLONG;
        return false;
    }
    return cs_file_write_all(made->mark, line, (size_t)length);
}

/* ---- removal: async-signal-safe ---- */

struct entry { /* layout defined by the kernel */
    uint64_t inode, offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static void remove_entry(int parent, const char *name, int level);

static void remove_entry(int parent, const char *name, int level)
{
    struct stat outer, inner;
    if (unlinkat(parent, name, 0) == 0 || level > LEVELS_MAX)
        return;
    const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    if (fstat(parent, &outer) == 0 && fstat(folder, &inner) == 0 && outer.st_dev == inner.st_dev) {
        /* Entries on another file system, mounted there by somebody, stay. readdir is not
         * async-signal-safe, because it allocates. */
        _Alignas(struct entry) char entries[ENTRIES_BYTES];
        long length;
        while ((length = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0) {
            for (long at = 0; at < length;) {
                const struct entry *one = (const struct entry *)(const void *)(entries + at);
                if (strcmp(one->name, ".") != 0 && strcmp(one->name, "..") != 0)
                    remove_entry(folder, one->name, level + 1);
                at += one->length;
            }
        }
    }
    close(folder);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* Removes the entries that the mark lists. Returns whether none remains. */
static bool remove_listed(int folder, char *names)
{
    bool gone = true;
    for (char *name = names, *end; (end = strchr(name, '\n')); name = end + 1) {
        struct stat info;
        *end = '\0';
        if (*name == '\0' || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        remove_entry(folder, name, 1);
        gone &= fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
    }
    return gone;
}

bool cs_marked_folder_remove(const char *path, const cs_marked_folder *made)
{
    char text[MARK_BYTES];
    struct stat named, opened;
    char *names = (lstat(path, &named) == 0 && fstat(made->folder, &opened) == 0 &&
                   named.st_dev == opened.st_dev && named.st_ino == opened.st_ino)
                      ? read_mark(made, name_of(path), text)
                      : NULL;
    if (!names)
        return true;
    if (!remove_listed(made->folder, names) || unlinkat(made->folder, mark_name, 0) != 0)
        return false;
    (void)rmdir(path); /* fails if something else is in it */
    return true;
}

static void clear_one(const char *path)
{
    char text[MARK_BYTES];
    cs_marked_folder found;
    if (!open_both(path, O_RDONLY, &found))
        return;
    if (read_mark(&found, name_of(path), text) && flock(found.folder, LOCK_EX | LOCK_NB) == 0)
        (void)cs_marked_folder_remove(path, &found);
    cs_marked_folder_close(&found);
}

void cs_marked_folder_clear(const char *beginning)
{
    const size_t length = strlen(beginning), folder = (size_t)(name_of(beginning) - beginning);
    char *path = malloc(length + CHOSEN + 1);
    if (path)
        snprintf(path, length + CHOSEN + 1, "%.*s", (int)folder, beginning);
    DIR *list = !path ? NULL : opendir(folder > 0 ? path : ".");
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (strncmp(entry->d_name, beginning + folder, length - folder) != 0 ||
            strlen(entry->d_name) != length - folder + CHOSEN)
            continue;
        memcpy(path + folder, entry->d_name, length - folder + CHOSEN + 1);
        clear_one(path);
    }
    if (list)
        closedir(list);
    free(path);
}

#define _GNU_SOURCE /* F_DUPFD_CLOEXEC, flock */

#include "sim/base/claim.h"

#include "sim/base/remove-folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_FREE = 3, CHOSEN = 6 /* characters, as mkstemp chooses them */ };

/* ---- claims ---- */

/* Never 0 to 2, which a program may find closed. */
static int open_to_lock(const char *path)
{
    const int opened = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0 || opened >= FIRST_FREE)
        return opened;
    const int file = fcntl(opened, F_DUPFD_CLOEXEC, FIRST_FREE);
    close(opened);
    return file;
}

static bool is_still(const char *path, int file)
{
    struct stat named, opened;
    return lstat(path, &named) == 0 && fstat(file, &opened) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

bool cs_claim_take(const char *path, cs_claim *claim)
{
    *claim = 0;
    const int file = open_to_lock(path);
    if (file < 0)
        return errno != ENOENT;
    const bool locked = flock(file, LOCK_EX) == 0, still = is_still(path, file);
    if (locked && still)
        *claim = file;
    else
        close(file);
    return still;
}

void cs_claim_release(cs_claim *claim)
{
    if (*claim > 0)
        close(*claim);
    *claim = 0;
}

/* ---- what was left behind ---- */

void cs_claim_remove(const char *path)
{
    if (unlink(path) != 0)
        (void)cs_remove_folder(path);
}

static bool is_own(int file)
{
    struct stat info;
    return fstat(file, &info) == 0 && info.st_uid == geteuid() &&
           (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
}

static void clear_one(const char *path)
{
    const int file = open_to_lock(path);
    if (file < 0)
        return;
    if (is_own(file) && flock(file, LOCK_EX | LOCK_NB) == 0 && is_still(path, file))
        cs_claim_remove(path);
    close(file);
}

void cs_claim_clear(const char *beginning)
{
    const char *slash = strrchr(beginning, '/');
    const size_t folder = slash ? (size_t)(slash - beginning) + 1 : 0;
    const size_t length = strlen(beginning), named = length - folder;
    char *path = malloc(length + CHOSEN + 1);
    if (path)
        snprintf(path, length + CHOSEN + 1, "%.*s", (int)folder, folder > 0 ? beginning : "");
    DIR *list = !path ? NULL : opendir(folder > 0 ? path : ".");
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (strncmp(entry->d_name, beginning + folder, named) != 0 ||
            strlen(entry->d_name) != named + CHOSEN)
            continue;
        memcpy(path + folder, entry->d_name, named + CHOSEN + 1);
        clear_one(path);
    }
    if (list)
        closedir(list);
    free(path);
}

#define _GNU_SOURCE /* syscall */

#include "sim/base/remove-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES_BYTES = 1024, LEVELS_MAX = 16 };

struct entry { /* as the kernel writes it */
    uint64_t inode, offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static void remove_at(int parent, const char *name, int level);

/* readdir allocates, and so may not be called by a signal handler. */
static void empty(int folder, int level)
{
    _Alignas(struct entry) char entries[ENTRIES_BYTES];
    long length;
    while ((length = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0) {
        for (long at = 0; at < length;) {
            const struct entry *one = (const struct entry *)(const void *)(entries + at);
            if (strcmp(one->name, ".") != 0 && strcmp(one->name, "..") != 0 &&
                unlinkat(folder, one->name, 0) != 0 && level < LEVELS_MAX)
                remove_at(folder, one->name, level + 1);
            at += one->length;
        }
    }
}

static void remove_at(int parent, const char *name, int level)
{
    const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    empty(folder, level);
    close(folder);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

bool cs_remove_folder(const char *path)
{
    remove_at(AT_FDCWD, path, 1);
    return access(path, F_OK) != 0 && errno == ENOENT;
}

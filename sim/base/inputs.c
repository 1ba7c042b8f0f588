#include "sim/base/inputs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct input {
    struct input *next;
    dev_t device;
    ino_t inode;
    bool written;
    bool allowed; /* may be replaced */
    char path[];
} input;

static struct {
    atomic_bool protects;
    pthread_mutex_t mutex; /* protects the list */
    input *first;
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void cs_inputs_protect(void)
{
    atomic_store(&state.protects, true);
}

/* The caller must hold the mutex. */
static input *find(const struct stat *info)
{
    input *at = state.first;
    while (at && (at->device != info->st_dev || at->inode != info->st_ino))
        at = at->next;
    return at;
}

cs_status cs_inputs_add(const char *path, const struct stat *info, bool written, cs_error *error)
{
    if (!atomic_load(&state.protects) || !S_ISREG(info->st_mode))
        return CS_OK;
    const size_t bytes = strlen(path) + 1;
    cs_status status = CS_OK;
    pthread_mutex_lock(&state.mutex);
    if (!find(info)) {
        input *added = malloc(sizeof(*added) + bytes);
        if (added) {
            *added = (input){.next = state.first,
                             .device = info->st_dev,
                             .inode = info->st_ino,
                             .written = written};
            memcpy(added->path, path, bytes);
            state.first = added;
        } else {
            status = cs_error_no_memory(error);
        }
    }
    pthread_mutex_unlock(&state.mutex);
    return status;
}

void cs_inputs_allow(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return;
    pthread_mutex_lock(&state.mutex);
    input *at = find(&info);
    if (at)
        at->allowed = true;
    pthread_mutex_unlock(&state.mutex);
}

cs_status cs_inputs_check(const char *output, const struct stat *info, cs_error *error)
{
    pthread_mutex_lock(&state.mutex);
    const input *at = find(info);
    pthread_mutex_unlock(&state.mutex);
    if (!at || at->allowed)
        return CS_OK;
    if (at->written)
        return cs_error_add(error, CS_USAGE,
                            "%s: is also another output of this command; choose two names", output);
    if (strcmp(at->path, output) == 0)
        return cs_error_add(error, CS_USAGE,
                            "%s: is an input of this command; choose another name for the output",
                            output);
    return cs_error_add(error, CS_USAGE,
                        "%s: is the same file as the input %s; choose another name for the output",
                        output, at->path);
}

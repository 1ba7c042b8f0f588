/* Progress of long work, and the way to stop it.
 *
 * Long work calls cs_progress_step now and then. The callback shows progress (only on a terminal,
 * and only after a second) and returns false to ask the work to stop, which then ends with
 * CS_INTERRUPTED. A step with done == total clears the line.
 */
#ifndef CS_BASE_PROGRESS_H
#define CS_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cs_progress {
    bool (*step)(void *context, const char *what, uint64_t done, uint64_t total);
    void *context;
} cs_progress;

/* Returns whether to continue. `progress` may be NULL. */
static inline bool cs_progress_step(const cs_progress *progress, const char *what, uint64_t done,
                                    uint64_t total)
{
    return !progress || progress->step(progress->context, what, done, total);
}

#endif

/* Progress of long work, and the way to stop it.
 *
 * Work that may last calls cs_progress_step now and then. The callback shows something (only on a
 * terminal, and only once the work has lasted a second) and returns false to ask the work to stop,
 * which it then does with CS_INTERRUPTED. A step with all done wipes what is shown.
 */
#ifndef CS_BASE_PROGRESS_H
#define CS_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cs_progress {
    bool (*step)(void *context, const char *what, uint64_t done, uint64_t total);
    void *context;
} cs_progress;

/* True to go on. `progress` may be NULL. */
static inline bool cs_progress_step(const cs_progress *progress, const char *what, uint64_t done,
                                    uint64_t total)
{
    return !progress || progress->step(progress->context, what, done, total);
}

#endif

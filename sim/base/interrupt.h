/* Ctrl-C and similar: SIGINT, SIGTERM, SIGHUP and SIGUSR1 end the program within a second, and
 * nothing is left behind.
 *
 * A program that calls cs_interrupt_catch ends at the first such signal: registered temporary files
 * and folders are removed, processes that it started are killed, it prints "interrupted" and exits
 * with the code of CS_INTERRUPTED. Work that polls cs_interrupt_asked first gets a moment to end on
 * its own, as do gentle child processes; a second signal ends the moment.
 *
 * Leftovers are a list of the process, because a signal handler has no other place to look. Without
 * cs_interrupt_catch nothing here has an effect. Signals that were ignored when the program started
 * stay ignored (nohup).
 */
#ifndef CS_BASE_INTERRUPT_H
#define CS_BASE_INTERRUPT_H

#include "sim/base/marked-folder.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Time that polling work has to end on its own, in ms: in `sim`, and in a program that `sim` has
 * started and waits for. */
enum { CS_INTERRUPT_GRACE = 800, CS_INTERRUPT_GRACE_OF_CHILD = 300 };

void cs_interrupt_catch(int grace);

/* Suppresses the message: another of the processes that were started together prints it. */
void cs_interrupt_silence(void);

/* Restores the default effect of signals, in a forked child. */
void cs_interrupt_reset(void);

/* Whether a signal has arrived. A caller must poll again soon, and end once this is true. */
bool cs_interrupt_asked(void);

/* Blames later crashes (SIGSEGV, SIGBUS, SIGFPE, SIGABRT) on an input file: a library crashes on
 * it, so only another program can have written it. A crash then leaves nothing behind, prints
 * `text` as its error and exits with the code of CS_INVALID. The text is copied and truncated to 1
 * KiB. */
void cs_interrupt_blame(const char *text);

/* ---- leftovers: things to remove at the end ---- */

typedef struct cs_leftover cs_leftover;

/* Registers a marked folder. Copies the path; the descriptors stay the caller's. Returns NULL if
 * memory runs out. */
cs_leftover *cs_leftover_folder(const char *path, const cs_marked_folder *made);

/* Registers a process group. `gentle`: it gets SIGUSR1 first, which mpirun forwards to the
 * processes that it has started, also on other hosts; then SIGTERM, and SIGKILL at the end of the
 * grace period. */
cs_leftover *cs_leftover_process(pid_t group, bool gentle);

/* Unregisters a leftover that was removed or renamed to its final name. Accepts NULL. */
void cs_leftover_forget(cs_leftover *leftover);

/* Defers signals between creating something and registering it as a leftover. */
void cs_interrupt_hold(sigset_t *before);
void cs_interrupt_release(const sigset_t *before);

#endif

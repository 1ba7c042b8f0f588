/* Ctrl-C and its kin: SIGINT, SIGTERM, SIGHUP and SIGUSR1 end the program within a second, and
 * nothing is left behind.
 *
 * A program that calls cs_interrupt_catch ends at the first such signal: temporary files and
 * folders that are known here are removed, processes that it started are killed, it says
 * "interrupted" and exits with the code of CS_INTERRUPTED. Work that calls cs_interrupt_asked gets
 * a moment to end by itself first, as do processes that were started to end gently; a second signal
 * cuts it short.
 *
 * What is to be removed is a list of this process, because a signal handler has no other place to
 * look. Without cs_interrupt_catch nothing here has an effect. Signals that were ignored when the
 * program started stay ignored (nohup).
 */
#ifndef CS_BASE_INTERRUPT_H
#define CS_BASE_INTERRUPT_H

#include "sim/base/marked-folder.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* How long work that looks has to end by itself: milliseconds, of `sim` and of a program that `sim`
 * has started and waits for. */
enum { CS_INTERRUPT_GRACE = 800, CS_INTERRUPT_GRACE_OF_CHILD = 300 };

void cs_interrupt_catch(int grace);

/* Ends without a word then: another process says it for all that were started together. */
void cs_interrupt_silence(void);

/* For a child that was forked: signals have their usual effect again. */
void cs_interrupt_reset(void);

/* True once a signal has come. Who asks promises to ask again soon, and to end when it is true. */
bool cs_interrupt_asked(void);

/* A crash (SIGSEGV, SIGBUS, SIGFPE, SIGABRT) from now on is of a library that reads a file which
 * only another program can have written so: nothing is left behind, the program says this text as
 * its error and exits with the code of CS_INVALID. The text is copied, cut at 1 KiB. */
void cs_interrupt_blame(const char *text);

/* ---- what must not be left behind ---- */

typedef struct cs_leftover cs_leftover;

/* A marked folder. The path is copied; the descriptors stay the caller's. NULL when memory runs
 * out. */
cs_leftover *cs_leftover_folder(const char *path, const cs_marked_folder *made);

/* A process group. `gentle`: it gets SIGUSR1 first, which mpirun passes on to the processes that it
 * has started, on other hosts too; then SIGTERM, and SIGKILL when the moment is over. */
cs_leftover *cs_leftover_process(pid_t group, bool gentle);

/* It is gone, or has its final name. Accepts NULL. */
void cs_leftover_forget(cs_leftover *leftover);

/* Holds signals back, so that nothing comes between making a thing and its being known here. */
void cs_interrupt_hold(sigset_t *before);
void cs_interrupt_release(const sigset_t *before);

#endif

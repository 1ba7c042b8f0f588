#define _GNU_SOURCE /* pipe2 */

#include "sim/base/process.h"

#include "sim/base/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- starting ---- */

/* The two ends of a pipe; -1: closed. */
typedef struct ends {
    int from, to;
} ends;

static int open_ends(ends *pair)
{
    int both[2];
    if (pipe2(both, O_CLOEXEC) != 0)
        return errno;
    *pair = (ends){both[0], both[1]};
    return 0;
}

static void close_end(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

static bool redirect(const cs_process_how *how, int messages)
{
    const int empty = open("/dev/null", O_RDONLY);
    if (empty < 0 || dup2(empty, STDIN_FILENO) < 0)
        return false;
    if (empty != STDIN_FILENO)
        close(empty);
    if (messages >= 0 && dup2(messages, STDERR_FILENO) < 0)
        return false;
    if (!how->said)
        return true;
    const int said = open(how->said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return said >= 0 && dup2(said, STDOUT_FILENO) >= 0 && dup2(said, STDERR_FILENO) >= 0;
}

/* Turns the forked child into the program; reports a failure through the pipe `failure`. The kernel
 * ends the child when the thread that forked it ends. */
static _Noreturn void become(char *const *words, const cs_process_how *how, pid_t parent,
                             int messages, int failure, const sigset_t *mask)
{
    const int end = how->gentle ? SIGTERM : SIGKILL;
    (void)setpgid(0, 0);
    cs_interrupt_reset();
    if (prctl(PR_SET_PDEATHSIG, end) == 0 && getppid() == parent && redirect(how, messages) &&
        pthread_sigmask(SIG_SETMASK, mask, NULL) == 0)
        execvp(words[0], words);
    const int code = errno;
    (void)!write(failure, &code, sizeof(code));
    _exit(127);
}

/* Starts the child. Returns 0 and the process, or an errno. */
static int start(char *const *words, const cs_process_how *how, int messages, pid_t *process,
                 cs_leftover **leftover)
{
    sigset_t before;
    ends failure = {-1, -1};
    int code = open_ends(&failure);
    if (code != 0)
        return code;
    cs_interrupt_hold(&before);
    const pid_t parent = getpid(), made = fork();
    if (made == 0)
        become(words, how, parent, messages, failure.to, &before);
    code = made < 0 ? errno : 0;
    if (made > 0) {
        (void)setpgid(made, made); /* set by parent and child, as either may run first */
        *leftover = cs_leftover_process(made, how->gentle);
    }
    cs_interrupt_release(&before);
    close_end(&failure.to);
    int told;
    if (made > 0 && read(failure.from, &told, sizeof(told)) == (ssize_t)sizeof(told)) {
        code = told;
        (void)waitpid(made, NULL, 0);
        cs_leftover_forget(*leftover);
    }
    close_end(&failure.from);
    *process = made;
    return code;
}

/* ---- running ---- */

/* Waits for the process. Its id must not be reused while it is still registered to be killed, so it
 * is reaped only after that. */
static int wait_for(pid_t process, cs_leftover *leftover, cs_process_end *end)
{
    siginfo_t info;
    int code = 0;
    while (waitid(P_PID, (id_t)process, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
        ;
    cs_leftover_forget(leftover);
    while (waitpid(process, &end->code, 0) < 0 && code == 0)
        code = errno == EINTR ? 0 : errno;
    end->told = cs_interrupt_asked();
    return code;
}

int cs_process_run(const char *const *words, const cs_process_how *how, cs_process_end *end)
{
    ends messages = {-1, -1};
    FILE *from = NULL;
    pid_t process = 0;
    cs_leftover *leftover = NULL;
    int code = how->listen ? open_ends(&messages) : 0;
    *end = (cs_process_end){0};
    if (code == 0 && how->listen && !(from = fdopen(messages.from, "r")))
        code = errno;
    if (code == 0) /* exec does not modify its words, though they are not const */
        code = start((char *const *)(uintptr_t)words, how, messages.to, &process, &leftover);
    close_end(&messages.to);
    if (code == 0 && from) {
        /* Forward lines until the pipe is closed. */
        static const char error[] = "sim: error: ";
        char *text = NULL;
        size_t size = 0;
        bool said = false;
        for (ssize_t length; (length = getline(&text, &size, from)) >= 0;) {
            said |= strncmp(text, error, sizeof(error) - 1) == 0;
            (void)fwrite(text, 1, (size_t)length, stderr);
        }
        free(text);
        end->said_error = said;
    }
    if (code == 0)
        code = wait_for(process, leftover, end);
    if (from)
        fclose(from);
    else
        close_end(&messages.from);
    return code;
}

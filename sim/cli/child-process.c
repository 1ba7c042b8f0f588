#include "sim/cli/child-process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- signals ---- */

/* What a signal handler needs: it has no other place. */
static volatile sig_atomic_t child, told;

static void tell_child(int signal)
{
    (void)signal;
    int saved = errno;
    told = 1;
    if (child > 0)
        kill((pid_t)child, SIGTERM);
    errno = saved;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

enum { N_ENDS = sizeof(ends) / sizeof(ends[0]) };

/* The program is in a process group of its own, so that what is typed at a terminal comes to it once,
 * from here. A signal that is ignored stays so (nohup). They are held back until there is a child. */
static void forward_signals(struct sigaction *before, sigset_t *mask)
{
    struct sigaction action = {.sa_handler = tell_child, .sa_flags = SA_RESTART};
    sigset_t held;
    sigemptyset(&action.sa_mask);
    sigemptyset(&held);
    for (int i = 0; i < N_ENDS; i++) {
        sigaddset(&held, ends[i]);
        if (sigaction(ends[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, &held, mask);
}

static void restore_signals(const struct sigaction *before)
{
    for (int i = 0; i < N_ENDS; i++)
        sigaction(ends[i], &before[i], NULL);
}

/* ---- starting ---- */

/* Standard input is empty: one of another process group may not read a terminal's. */
static int redirect(posix_spawn_file_actions_t *files, int messages)
{
    int code = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (code == 0 && messages >= 0)
        code = posix_spawn_file_actions_adddup2(files, messages, STDERR_FILENO);
    if (code == 0 && messages >= 0 && messages != STDERR_FILENO)
        code = posix_spawn_file_actions_addclose(files, messages);
    return code;
}

static int spawn(char *const *words, const sigset_t *mask, int messages, pid_t *started)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    int code = posix_spawn_file_actions_init(&files);
    if (code != 0)
        return code;
    code = posix_spawnattr_init(&how);
    if (code != 0) {
        posix_spawn_file_actions_destroy(&files);
        return code;
    }
    code = redirect(&files, messages);
    if (code == 0)
        code = posix_spawnattr_setsigmask(&how, mask);
    if (code == 0)
        code = posix_spawnattr_setpgroup(&how, 0);
    if (code == 0)
        code = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    if (code == 0)
        code = posix_spawnp(started, words[0], &files, &how, words, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return code;
}

/* ---- listening ---- */

/* A stream to read from, and what to write to it by; an error number. */
static int open_pipe(FILE **from, int *to)
{
    int pair[2];
    if (pipe(pair) != 0)
        return errno;
    (void)fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    *from = fdopen(pair[0], "r");
    if (*from) {
        *to = pair[1];
        return 0;
    }
    int code = errno;
    close(pair[0]);
    close(pair[1]);
    return code;
}

/* Line by line, until nobody has the other end any more. */
static bool hand_on(FILE *from)
{
    static const char error[] = "sim: error: ";
    char *text = NULL;
    size_t size = 0;
    bool said = false;
    for (ssize_t length; (length = getline(&text, &size, from)) >= 0;) {
        said |= strncmp(text, error, sizeof(error) - 1) == 0;
        (void)fwrite(text, 1, (size_t)length, stderr);
    }
    free(text);
    return said;
}

/* ---- all of it ---- */

int cs_child_run(char *const *words, bool listen, cs_child_end *end)
{
    struct sigaction before[N_ENDS];
    sigset_t mask;
    pid_t started = 0;
    FILE *messages = NULL;
    int to = -1, code = listen ? open_pipe(&messages, &to) : 0;
    *end = (cs_child_end){0};
    if (code != 0)
        return code;
    told = 0;
    forward_signals(before, &mask);
    code = spawn(words, &mask, to, &started);
    child = code == 0 ? started : 0;
    if (told && child > 0) /* another thread took a signal meanwhile */
        kill(started, SIGTERM);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (to >= 0)
        close(to);
    if (code == 0 && messages)
        end->said_error = hand_on(messages);
    while (code == 0 && waitpid(started, &end->code, 0) < 0)
        code = errno == EINTR ? 0 : errno;
    child = 0;
    restore_signals(before);
    end->told = told;
    if (messages)
        fclose(messages);
    return code;
}

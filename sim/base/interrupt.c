#define _XOPEN_SOURCE 700

#include "sim/base/interrupt.h"

#include "sim/base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLAME_BYTES = 1024, STACK_BYTES = 64 * 1024, REMOVALS_MAX = 10 };

typedef enum what { A_FOLDER, A_PROCESS, A_GENTLE_PROCESS } what;

/* Nodes are reused, never freed: the handler may be reading them in another thread. */
struct cs_leftover {
    cs_leftover *next; /* set before the node is published, then constant */
    _Atomic(char *) path;
    atomic_int group, folder, mark; /* process group; descriptors of a folder */
    what kind;
    atomic_bool taken;
};

/* State for the signal handler. */
static struct {
    _Atomic(cs_leftover *) first;
    pthread_mutex_t mutex; /* serialises changes of the list */
    volatile sig_atomic_t asked, pressed, looks, gentle;
    atomic_int held;         /* nesting depth of cs_interrupt_hold over all threads */
    atomic_bool over, ended; /* over: the program must end; ended: a thread is ending it */
    atomic_bool silent;
    bool catches;
    char blame[BLAME_BYTES];              /* message of a crash */
    _Alignas(16) char stack[STACK_BYTES]; /* stack of the crash handler */
    timer_t timer;
    int grace; /* ms; 0: no timer */
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};

enum { N_ENDS = sizeof(ends) / sizeof(ends[0]), N_CRASHES = sizeof(crashes) / sizeof(crashes[0]) };

/* ---- ending, in a signal handler: only async-signal-safe calls ---- */

static void signal_processes(int number, bool gentle_only)
{
    for (cs_leftover *at = atomic_load(&state.first); at; at = at->next) {
        const int group = atomic_load(&at->group);
        if (group > 0 && (at->kind == A_GENTLE_PROCESS || !gentle_only))
            (void)kill(-group, number);
    }
}

static void remove_paths(void)
{
    for (cs_leftover *at = atomic_load(&state.first); at; at = at->next) {
        const char *path = atomic_exchange(&at->path, NULL);
        const cs_marked_folder made = {atomic_load(&at->folder), atomic_load(&at->mark)};
        if (path) {
            /* Killed processes may still be creating files in it. */
            static const struct timespec moment = {.tv_nsec = 5 * 1000 * 1000};
            for (int i = 0; i < REMOVALS_MAX && !cs_marked_folder_remove(path, &made); i++)
                (void)nanosleep(&moment, NULL);
        }
    }
}

/* Ends the process. A second thread waits for the first one's _exit. */
static void end_now(void)
{
    static const char wipe[] = "\r\033[K", message[] = "sim: error: interrupted\n";
    while (atomic_exchange(&state.ended, true))
        (void)pause();
    signal_processes(SIGKILL, false);
    remove_paths();
    if (isatty(STDERR_FILENO) == 1)
        (void)!write(STDERR_FILENO, wipe, sizeof(wipe) - 1);
    if (!atomic_load(&state.silent))
        (void)!write(STDERR_FILENO, message, sizeof(message) - 1);
    _exit(cs_status_exit_code(CS_INTERRUPTED));
}

/* Starts the timer for one of the two waits; each takes half of the grace period. */
static bool start_timer(void)
{
    const struct itimerspec once = {
        .it_value = {state.grace / 2000, state.grace / 2 % 1000 * 1000000L}};
    return state.grace > 0 && timer_settime(state.timer, 0, &once, NULL) == 0;
}

/* Asks work and gentle processes to end (SIGUSR1), then tells the processes (SIGTERM) in case the
 * request got lost, then ends the program. */
static void handle(int number)
{
    const int saved = errno;
    const bool first = !state.asked && (state.looks || state.gentle);
    const bool second = number == SIGALRM && !state.pressed;
    state.asked = 1;
    state.pressed = second;
    if (!(first || second) || !start_timer()) {
        /* End now or, while a leftover is being registered, right afterwards. Blocking signals in
         * one thread would not be enough: other threads (of OpenBLAS, for example) get them too. */
        atomic_store(&state.over, true);
        if (atomic_load(&state.held) == 0)
            end_now();
    } else
        signal_processes(second ? SIGTERM : SIGUSR1, true);
    errno = saved;
}

/* ---- signals ---- */

static void fill_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGALRM);
    for (int i = 0; i < N_ENDS; i++)
        sigaddset(set, ends[i]);
}

void cs_interrupt_catch(int grace)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART}, before;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    sigset_t mask;
    fill_set(&action.sa_mask);
    /* a signal that arrives now is handled once the setup is complete */
    (void)pthread_sigmask(SIG_BLOCK, &action.sa_mask, &mask);
    state.catches = true;
    state.grace = timer_create(CLOCK_MONOTONIC, &event, &state.timer) == 0 ? grace : 0;
    (void)sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < N_ENDS; i++)
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(ends[i], &action, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

void cs_interrupt_silence(void)
{
    atomic_store(&state.silent, true);
}

void cs_interrupt_reset(void)
{
    struct sigaction now;
    for (int i = 0; i < N_ENDS; i++)
        if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler == handle)
            (void)signal(ends[i], SIG_DFL);
    (void)signal(SIGALRM, SIG_DFL);
    for (int i = 0; i < N_CRASHES && state.blame[0]; i++)
        (void)signal(crashes[i], SIG_DFL);
    atomic_store(&state.over, false);
}

/* Handles one crash; a crash within it has its default effect. */
static void crash(int number)
{
    (void)number;
    const size_t length = strlen(state.blame);
    atomic_store(&state.ended, true);
    signal_processes(SIGKILL, false);
    remove_paths();
    (void)!write(STDERR_FILENO, state.blame, length);
    _exit(cs_status_exit_code(CS_INVALID));
}

/* Uses a separate stack, because the program's own may be exhausted. */
void cs_interrupt_blame(const char *text)
{
    struct sigaction action = {.sa_handler = crash, .sa_flags = (int)(SA_ONSTACK | SA_RESETHAND)};
    if (!state.catches)
        return;
    snprintf(state.blame, sizeof(state.blame), "sim: error: %.*s\n",
             (int)sizeof(state.blame) - (int)sizeof("sim: error: \n"), text);
    fill_set(&action.sa_mask);
    (void)sigaltstack(&(stack_t){.ss_sp = state.stack, .ss_size = sizeof(state.stack)}, NULL);
    for (int i = 0; i < N_CRASHES; i++)
        (void)sigaction(crashes[i], &action, NULL);
}

bool cs_interrupt_asked(void)
{
    state.looks = 1;
    return state.asked != 0;
}

void cs_interrupt_hold(sigset_t *before)
{
    sigset_t held;
    fill_set(&held);
    (void)pthread_sigmask(SIG_BLOCK, &held, before);
    /* only the outermost call may end the program: its leftovers must be registered first */
    if (atomic_fetch_add(&state.held, 1) == 0 && atomic_load(&state.over))
        end_now();
}

void cs_interrupt_release(const sigset_t *before)
{
    if (atomic_fetch_sub(&state.held, 1) == 1 && atomic_load(&state.over))
        end_now();
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* ---- the list ---- */

/* Takes a free node or adds one. Called with signals deferred, so the handler never sees a
 * half-made node. */
static cs_leftover *take_node(what kind)
{
    cs_leftover *node = atomic_load(&state.first);
    while (node && atomic_load(&node->taken))
        node = node->next;
    if (!node) {
        node = calloc(1, sizeof(*node));
        if (!node)
            return NULL;
        node->next = atomic_load(&state.first);
        atomic_store(&state.first, node);
    }
    node->kind = kind;
    atomic_store(&node->taken, true);
    return node;
}

static cs_leftover *add(what kind, const char *path, const cs_marked_folder *made, pid_t group)
{
    sigset_t before;
    char *copy = path ? strdup(path) : NULL;
    if (path && !copy)
        return NULL;
    cs_interrupt_hold(&before);
    pthread_mutex_lock(&state.mutex);
    cs_leftover *node = take_node(kind);
    if (node) {
        atomic_store(&node->group, group);
        atomic_store(&node->folder, made->folder);
        atomic_store(&node->mark, made->mark);
        atomic_store(&node->path, copy);
    }
    state.gentle += node && kind == A_GENTLE_PROCESS;
    pthread_mutex_unlock(&state.mutex);
    if (!node)
        free(copy);
    cs_interrupt_release(&before);
    return node;
}

cs_leftover *cs_leftover_folder(const char *path, const cs_marked_folder *made)
{
    return add(A_FOLDER, path, made, 0);
}

cs_leftover *cs_leftover_process(pid_t group, bool gentle)
{
    return add(gentle ? A_GENTLE_PROCESS : A_PROCESS, NULL, &(cs_marked_folder){0}, group);
}

void cs_leftover_forget(cs_leftover *leftover)
{
    sigset_t before;
    if (!leftover)
        return;
    cs_interrupt_hold(&before);
    pthread_mutex_lock(&state.mutex);
    free(atomic_exchange(&leftover->path, NULL)); /* NULL if the handler has already taken it */
    atomic_store(&leftover->group, 0);
    state.gentle -= leftover->kind == A_GENTLE_PROCESS;
    atomic_store(&leftover->taken, false);
    pthread_mutex_unlock(&state.mutex);
    cs_interrupt_release(&before);
}

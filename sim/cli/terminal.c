#include "sim/cli/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Set by the signal handler, which has no other place to leave its message. */
static volatile sig_atomic_t interrupted;

static void note_signal(int signal)
{
    (void)signal;
    interrupted = 1;
}

void cs_terminal_init(cs_terminal *terminal)
{
    *terminal = (cs_terminal){.shows = isatty(STDERR_FILENO) == 1};
}

static void catch_signals(cs_terminal *terminal)
{
    terminal->catches = true;
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static double since(const struct timespec *then, const struct timespec *now)
{
    return (double)(now->tv_sec - then->tv_sec) + 1e-9 * (double)(now->tv_nsec - then->tv_nsec);
}

static void show(cs_terminal *terminal, const char *what, uint64_t done, uint64_t total)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (terminal->what != what) {
        terminal->what = what;
        terminal->started = now;
        terminal->latest = now;
    }
    if (total > 0 && done >= total)
        cs_terminal_clear(terminal);
    if ((total > 0 && done >= total) || since(&terminal->started, &now) < 1 ||
        since(&terminal->latest, &now) < 0.1)
        return;
    terminal->latest = now;
    terminal->shown = true;
    double percent = total > 0 ? 100.0 * (double)done / (double)total : 0;
    double left =
        done > 0 ? since(&terminal->started, &now) * ((double)total / (double)done - 1) : 0;
    fprintf(stderr, "\r\033[K%s: %.0f %%, %.0f s left", what, percent, left);
    fflush(stderr);
}

static bool step(void *context, const char *what, uint64_t done, uint64_t total)
{
    cs_terminal *terminal = context;
    if (!terminal->catches)
        catch_signals(terminal);
    if (terminal->shows)
        show(terminal, what, done, total);
    return !interrupted;
}

cs_progress cs_terminal_progress(cs_terminal *terminal)
{
    return (cs_progress){step, terminal};
}

void cs_terminal_clear(cs_terminal *terminal)
{
    if (terminal->shown)
        fputs("\r\033[K", stderr);
    terminal->shown = false;
}

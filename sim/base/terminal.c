#include "sim/base/terminal.h"

#include "sim/base/interrupt.h"

#include <stdio.h>
#include <unistd.h>

void cs_terminal_init(cs_terminal *terminal)
{
    *terminal = (cs_terminal){.shows = isatty(STDERR_FILENO) == 1};
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
    const double so_far = since(&terminal->started, &now);
    if (total > 0)
        fprintf(stderr, "\r\033[K%s: %.0f %%, %.0f s left", what,
                100.0 * (double)done / (double)total,
                done > 0 ? so_far * ((double)total / (double)done - 1) : 0);
    else
        fprintf(stderr, "\r\033[K%s: %.0f s", what, so_far);
    fflush(stderr);
}

static bool step(void *context, const char *what, uint64_t done, uint64_t total)
{
    cs_terminal *terminal = context;
    if (terminal->shows)
        show(terminal, what, done, total);
    return !cs_interrupt_asked();
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

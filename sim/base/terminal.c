#include "sim/base/terminal.h"

#include "sim/base/interrupt.h"
#include "sim/base/time.h"

#include <stdio.h>
#include <unistd.h>

void cs_terminal_init(cs_terminal *terminal)
{
    *terminal = (cs_terminal){.shows = isatty(STDERR_FILENO) == 1};
}

static void show(cs_terminal *terminal, const char *what, uint64_t done, uint64_t total)
{
    const char *begin = terminal->shows ? "\r\033[K" : "sim: ";
    const char *end = terminal->shows ? "" : "\n";
    const double now = cs_clock_seconds();
    if (terminal->what != what) {
        terminal->what = what;
        terminal->started = now;
        terminal->latest = now;
    }
    if (total > 0 && done >= total)
        cs_terminal_clear(terminal);
    if ((total > 0 && done >= total) || now - terminal->started < 1 ||
        now - terminal->latest < (terminal->shows ? 0.1 : 10))
        return;
    terminal->latest = now;
    terminal->shown = terminal->shows;
    const double so_far = now - terminal->started;
    if (total > 0)
        fprintf(stderr, "%s%s: %.0f %%, %.0f s left%s", begin, what,
                100.0 * (double)done / (double)total,
                done > 0 ? so_far * ((double)total / (double)done - 1) : 0, end);
    else
        fprintf(stderr, "%s%s: %.0f s%s", begin, what, so_far, end);
    fflush(stderr);
}

static bool step(void *context, const char *what, uint64_t done, uint64_t total)
{
    cs_terminal *terminal = context;
    if (terminal->shows || terminal->lines)
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

/* Progress on a terminal, and Ctrl-C. */
#ifndef CS_BASE_TERMINAL_H
#define CS_BASE_TERMINAL_H

#include "sim/base/progress.h"

typedef struct cs_terminal {
    bool shows;     /* standard error is a terminal */
    bool lines;     /* not a terminal: print a line now and then */
    bool shown;     /* the terminal shows a line of progress */
    double started; /* cs_clock_seconds() when the current work began */
    double latest;  /* cs_clock_seconds() when the line was last written */
    const char *what;
} cs_terminal;

void cs_terminal_init(cs_terminal *terminal);

/* Returns a progress that writes to the terminal and asks the work to stop after Ctrl-C
 * (sim/base/interrupt.h). */
cs_progress cs_terminal_progress(cs_terminal *terminal);

/* Clears the line of progress. */
void cs_terminal_clear(cs_terminal *terminal);

#endif

/* Progress on a terminal, and Ctrl-C. */
#ifndef CS_BASE_TERMINAL_H
#define CS_BASE_TERMINAL_H

#include "sim/base/progress.h"

typedef struct cs_terminal {
    bool shows;     /* standard error is a terminal */
    bool lines;     /* else: now and then a line of its own */
    bool shown;     /* a line of progress is on it */
    double started; /* s, of cs_clock_seconds: when the present work began */
    double latest;  /* when the line was last written */
    const char *what;
} cs_terminal;

void cs_terminal_init(cs_terminal *terminal);

/* Progress that writes to it, and asks the work to stop after Ctrl-C (sim/base/interrupt.h). */
cs_progress cs_terminal_progress(cs_terminal *terminal);

/* Wipes the line of progress. */
void cs_terminal_clear(cs_terminal *terminal);

#endif

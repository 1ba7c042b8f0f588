/* Runs another program and waits for it. The other one ends when this one does, whether by a signal
 * that cs_interrupt_catch catches or by SIGKILL. */
#ifndef CS_BASE_PROCESS_H
#define CS_BASE_PROCESS_H

#include <stdbool.h>

typedef struct cs_process_how {
    const char *said; /* file that gets its output and messages; NULL: those of this process */
    bool listen; /* its messages are read and handed on line by line, and are then no terminal */
    bool gentle; /* an interrupt asks it to end before it kills it (interrupt.h) */
} cs_process_how;

typedef struct cs_process_end {
    int code;        /* as waitpid has it */
    bool told;       /* that it must end, because this process was */
    bool said_error; /* a line that begins with "sim: error: "; only when listened to */
} cs_process_end;

/* `words`: the program, looked for along $PATH, and its arguments, behind them NULL. Its standard
 * input is empty; it is in a process group of its own, so that an interrupt typed at the terminal
 * reaches it once, from here. Returns 0, or an error number of what could not be started. */
int cs_process_run(const char *const *words, const cs_process_how *how, cs_process_end *end);

#endif

/* Runs another program and waits for it. The program ends when this process does, whether by a
 * signal that cs_interrupt_catch catches or by SIGKILL. */
#ifndef CS_BASE_PROCESS_H
#define CS_BASE_PROCESS_H

#include <stdbool.h>

typedef struct cs_process_how {
    const char *said; /* file for its output and messages; NULL: inherited */
    bool listen; /* read its messages and forward them line by line; they are then not a terminal */
    bool gentle; /* an interrupt first asks it to end, then kills it (interrupt.h) */
} cs_process_how;

typedef struct cs_process_end {
    int code;        /* wait status, as from waitpid */
    bool told;       /* it was told to end because this process was */
    bool said_error; /* it printed a line that begins with "sim: error: "; only with `listen` */
} cs_process_end;

/* Runs `words`, NULL-terminated: the program, looked up in $PATH, and its arguments. Its standard
 * input is empty. It has its own process group, so that an interrupt typed at the terminal reaches
 * it once, through this process. Returns 0, or an errno if it could not be started. */
int cs_process_run(const char *const *words, const cs_process_how *how, cs_process_end *end);

#endif

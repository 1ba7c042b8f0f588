/* Another program that is run and waited for. It gets what would end this one. */
#ifndef CS_CLI_CHILD_PROCESS_H
#define CS_CLI_CHILD_PROCESS_H

#include <stdbool.h>

typedef struct cs_child_end {
    int code;        /* as waitpid has it */
    bool told;       /* to end, because this process was: SIGINT, SIGTERM, SIGHUP */
    bool said_error; /* a line that begins with "sim: error: "; only when listened to */
} cs_child_end;

/* `words`: the program, looked for along $PATH, and its arguments, behind them NULL. `listen`: its
 * standard error is read and handed on line by line, and is then no terminal to it. Its standard input
 * is empty. Returns 0, or an error number of what could not be started. One at a time. */
int cs_child_run(char *const *words, bool listen, cs_child_end *end);

#endif

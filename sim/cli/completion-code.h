/* Code that completes the command lines of `sim` in a shell. */
#ifndef CS_CLI_COMPLETION_CODE_H
#define CS_CLI_COMPLETION_CODE_H

/* Names of shells, ended by NULL, and "words", which stands for what their code asks. */
extern const char *const cs_completion_shells[];

/* The code for a shell; NULL for what is none. */
const char *cs_completion_code(const char *shell);

#endif

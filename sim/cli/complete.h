/* Completion of command lines: what may stand where the cursor is.
 *
 * The code that `sim completion SHELL` prints asks the program itself, so that all shells use the
 * same source: the tables of commands and options and of what `sim list` knows.
 */
#ifndef CS_CLI_COMPLETE_H
#define CS_CLI_COMPLETE_H

#include <stddef.h>
#include <stdio.h>

/* `words` are those of the command line up to the cursor without the program, the last one being
 * what is typed of the word there, "" when nothing is. Prints a line for each word that begins so:
 * the word, and where there is one, a tab and a description. A word that ends in '/' or '=' goes
 * on. The line ":files" says that the name of a file may stand there. */
void cs_complete(const char *const *words, size_t n, FILE *out);

/* Names of shells, ended by NULL, and "words", for the words that their code asks for. */
extern const char *const cs_completion_shells[];

/* The code for a shell; NULL for anything else. */
const char *cs_completion_code(const char *shell);

#endif

/* Completion of command lines: the words that are possible at the cursor.
 *
 * The code that `sim completion SHELL` prints calls the program itself, so that all shells use the
 * same source: the tables of commands and options, and the names that `sim list` knows.
 */
#ifndef CS_CLI_COMPLETE_H
#define CS_CLI_COMPLETE_H

#include <stddef.h>
#include <stdio.h>

/* Prints a line for each possible word: the word and, if it has one, a tab and a description.
 * `words` are the command line up to the cursor without the program; the last is the incomplete
 * word ("": nothing typed). A word that ends in '/' or '=' can be extended. The line ":files" means
 * that a file name is possible. */
void cs_complete(const char *const *words, size_t n, FILE *out);

/* Names of shells, NULL-terminated, and "words", which the shells' code calls. */
extern const char *const cs_completion_shells[];

/* Returns the code for a shell; NULL for other words. */
const char *cs_completion_code(const char *shell);

#endif

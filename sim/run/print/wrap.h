/* Wraps text for people. */
#ifndef CS_PRINT_WRAP_H
#define CS_PRINT_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Prints words up to column `width`, indents further lines by `indent` spaces, and ends the last
 * line. `column`: where the first line starts. An empty line in the text is kept. */
void cs_wrap(FILE *out, size_t column, size_t indent, size_t width, const char *text);

enum { CS_WRAP_HELP = 80, CS_WRAP_REPORT = 99 };

#endif

/* Text for people, broken into lines. */
#ifndef CS_PRINT_WRAP_H
#define CS_PRINT_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Prints words up to column `width`, further lines indented by `indent` blanks, and ends the last
 * line. `column` is where the first line has got to. A blank line within the text stays one. */
void cs_wrap(FILE *out, size_t column, size_t indent, size_t width, const char *text);

enum { CS_WRAP_HELP = 80, CS_WRAP_REPORT = 99 };

#endif

#include "sim/run/print/wrap.h"

#include <string.h>

void cs_wrap(FILE *out, size_t column, size_t indent, size_t width, const char *text)
{
    size_t at = column;
    for (const char *separator = ""; *text;) {
        size_t word = strcspn(text, " \n");
        if (at > indent && *separator && at + 1 + word > width) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
            separator = "";
        }
        fprintf(out, "%s%.*s", separator, (int)word, text);
        at += strlen(separator) + word;
        text += word;
        separator = " ";
        if (strncmp(text, "\n\n", 2) == 0) {
            fprintf(out, "\n\n%*s", (int)indent, "");
            at = indent;
            separator = "";
        }
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

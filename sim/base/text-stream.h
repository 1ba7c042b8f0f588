/* Streams that print into memory, and report if it ran out.
 *
 *     char *text;
 *     size_t length;
 *     FILE *out = cs_text_stream(&text, &length);
 *     fprintf(out, ...);
 *     if (fclose(out) != 0)
 *         return NULL;
 *     return text;
 *
 * glibc's open_memstream silently drops text that does not fit into memory: neither ferror nor
 * fclose reports it.
 */
#ifndef CS_BASE_TEXT_STREAM_H
#define CS_BASE_TEXT_STREAM_H

#include <stddef.h>
#include <stdio.h>

/* Returns NULL if memory runs out. If fclose returns 0, *text is the complete text, which the
 * caller frees; it ends with a NUL that *length does not count. Otherwise *text is NULL. Until then
 * *text is NULL and *length 0. */
FILE *cs_text_stream(char **text, size_t *length);

#endif

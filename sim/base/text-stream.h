/* Streams that print into memory, and tell when it ran out.
 *
 *     char *text;
 *     size_t length;
 *     FILE *out = cs_text_stream(&text, &length);
 *     fprintf(out, ...);
 *     if (fclose(out) != 0)
 *         return NULL;
 *     return text;
 *
 * POSIX has open_memstream for it; but with that of glibc, text that found no room is missing, and
 * neither ferror nor fclose says so. */
#ifndef CS_BASE_TEXT_STREAM_H
#define CS_BASE_TEXT_STREAM_H

#include <stddef.h>
#include <stdio.h>

/* NULL when memory runs out. fclose returns 0 when all is in *text, which ends with a NUL that
 * *length does not count, for the caller to free; otherwise *text is NULL. Until then *text is
 * NULL, and *length is 0. */
FILE *cs_text_stream(char **text, size_t *length);

#endif

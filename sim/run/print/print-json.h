/* JSON as every command prints it. */
#ifndef CS_PRINT_PRINT_JSON_H
#define CS_PRINT_PRINT_JSON_H

#include "sim/base/json.h"

#include <stdio.h>

/* Of what --json prints, of every command: grows when a key changes its meaning or goes away. */
enum { CS_PRINTED_SCHEMA_VERSION = 1 };

/* Prints an object, with the versions of this format and of the program before its keys, and frees
 * it. With NULL, `error` already says what is wrong, or memory ran out. */
CS_MUST_CHECK cs_status cs_print_json(cJSON *root, FILE *out, cs_error *error);

#endif

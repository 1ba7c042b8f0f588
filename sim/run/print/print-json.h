/* Prints JSON in the format common to all commands. */
#ifndef CS_PRINT_PRINT_JSON_H
#define CS_PRINT_PRINT_JSON_H

#include "sim/base/json.h"

#include <stdio.h>

/* Version of the output of --json, for all commands: incremented when a key changes its meaning or
 * is removed. */
enum { CS_PRINTED_SCHEMA_VERSION = 1 };

/* Prints an object, preceded by the versions of this format and of the program, and frees it. NULL:
 * fails with the message in `error`, or because memory ran out. */
CS_MUST_CHECK cs_status cs_print_json(cJSON *root, FILE *out, cs_error *error);

#endif

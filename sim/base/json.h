/* Strict JSON on top of cJSON.
 *
 * cJSON by itself takes "01", turns 1e999 into infinity, keeps duplicate keys, looks keys up
 * without case and saturates integers. A checker of our own runs over the text first and refuses
 * whatever RFC 8259 refuses, and also: duplicate keys in one object (compared after unescaping),
 * text that is not UTF-8, a NUL or half a surrogate pair in a string, numbers that are too large
 * for a double or longer than CS_NUMBER_LONGEST characters, nesting deeper than CS_JSON_DEPTH. A
 * byte order mark in front is skipped; the value may be of any type. Such errors name file, line
 * and column, both from 1, the column in characters (UTF-8 code points). What is wrong with the
 * meaning of a value is named by file and JSON pointer (RFC 6901). The work is O(n log n) at worst
 * (keys are sorted), whatever the text.
 */
#ifndef CS_BASE_JSON_H
#define CS_BASE_JSON_H

#include "sim/base/arena.h"
#include "sim/base/error.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    CS_JSON_DEPTH = 64,
    CS_JSON_BYTES = 64 << 20, /* largest file that is read */
};

/* Where a value stands, as a chain that lives on the stack of whoever walks the document:
 *     cs_json_place model = {.up = &root, .key = "model"};
 * The root of a document has no `up`; it has the file's name. */
typedef struct cs_json_place {
    const struct cs_json_place *up;
    const char *file;                   /* of the root only */
    const struct cs_field_names *names; /* for all that stands below, or NULL: see field.h */
    cs_error *warnings;                 /* the same; about what is valid and hardly meant */
    const char *key;                    /* of an object's member, or NULL */
    int index;                          /* of an array's element, when there is no key */
} cs_json_place;

/* Checks and parses. On success *root is the caller's, to free with cJSON_Delete. Messages call the
 * file `name`. */
CS_MUST_CHECK cs_status cs_json_parse(const char *name, const char *text, size_t length,
                                      cJSON **root, cs_error *error);
CS_MUST_CHECK cs_status cs_json_load(const char *path, cJSON **root, cs_error *error);

/* Adds "file: /json/pointer: message" and returns CS_INVALID. */
cs_status cs_json_invalid(const cs_json_place *place, cs_error *error, const char *format, ...)
    CS_PRINTF(3, 4);

/* Where warnings about a place go: those of the nearest place above that has some; or NULL. */
cs_error *cs_json_warnings(const cs_json_place *place);

/* The JSON pointer of a place, "" for the root, escaped as RFC 6901 says; cut off at `size`. */
char *cs_json_pointer(const cs_json_place *place, char *text, size_t size);

/* "an object", "a string", ...: what a value is, for messages. */
const char *cs_json_kind(const cJSON *value);

/* A scalar as it is written (a long text cut off), else the kind: for messages "must be ... (got
 * %s)". Returns `text`, which CS_JSON_DESCRIBED_BYTES are enough for. */
char *cs_json_describe(const cJSON *value, char *text, size_t size);

enum { CS_JSON_DESCRIBED_BYTES = 80 };

/* Adds each message of `from`, which are about a file that the document names, behind the place
 * where it does. The status is that of `from`. */
cs_status cs_json_pass_on(const cs_json_place *place, const cs_error *from, cs_error *error);

/* The member of an object with exactly this key, or NULL. */
const cJSON *cs_json_member(const cJSON *object, const char *key);

/* For writing; false or NULL when memory runs out. A number that is not finite and a text that is
 * NULL are null; an item is a new object at the end of the list. `object` and `list` may be NULL,
 * from an earlier failure. */
bool cs_json_add_number(cJSON *object, const char *key, double value);
bool cs_json_add_text(cJSON *object, const char *key, const char *text);
cJSON *cs_json_add_item(cJSON *list);

/* Puts `value` in the place of `child`, under its key, and frees `child`. Unlike cJSON's function
 * for a key it needs no memory: that one goes on without the key where it cannot copy it. */
void cs_json_replace(cJSON *parent, cJSON *child, cJSON *value);

/* Puts `text` (JSON, or else taken as a string) where the pointer says. Keys and objects
 * on the way that are missing are created, elements of an array are not. The root cannot be
 * replaced, nor the document become deeper than CS_JSON_DEPTH. Messages name `origin` ("--set"); on
 * failure the document is as it was. */
CS_MUST_CHECK cs_status cs_json_set(cJSON *root, const char *pointer, const char *text,
                                    const char *origin, cs_error *error);

/* The same with a copy of `value`. */
CS_MUST_CHECK cs_status cs_json_copy_to(cJSON *root, const char *pointer, const cJSON *value,
                                        const char *origin, cs_error *error);

/* The value in nested objects at a pointer without escapes, or NULL. */
const cJSON *cs_json_at(const cJSON *root, const char *pointer);

/* The document as indented text, ended by a newline; the caller frees it. NULL when memory runs
 * out. Numbers print so that reading them back gives the same double, whole ones up to 2^53 without
 * an exponent; NaN and infinite numbers print as null. */
char *cs_json_print(const cJSON *root);

/* The same on one line, without a newline. */
char *cs_json_line(const cJSON *value);

#endif

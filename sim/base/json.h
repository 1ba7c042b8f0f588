/* Strict JSON on top of cJSON.
 *
 * cJSON alone accepts "01", turns 1e999 into infinity, keeps duplicate keys, ignores case when it
 * looks up keys, and saturates integers. A checker runs over the text first and refuses everything
 * that RFC 8259 refuses, and also: duplicate keys in an object (compared unescaped), text that is
 * not UTF-8, a NUL or half a surrogate pair in a string, numbers that overflow a double or are
 * longer than CS_NUMBER_LONGEST characters, nesting deeper than CS_JSON_DEPTH. A leading byte order
 * mark is skipped; the value may have any type. Such errors name file, line and column, both from
 * 1, the column in characters (UTF-8 code points). Errors in the meaning of a value name file and
 * JSON pointer (RFC 6901). The cost is O(n log n) at worst (keys are sorted) for any text.
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

/* The place of a value in a document, as a chain on the stack of the code that walks the document:
 * cs_json_place model = {.up = &root, .key = "model"};
 * The root has no `up`; it has the file's name. */
typedef struct cs_json_place {
    const struct cs_json_place *up;
    const char *file;                   /* root only: file name */
    const struct cs_field_names *names; /* names valid below this place, or NULL (see field.h) */
    /* likewise: receives warnings about valid but implausible values */
    cs_error *warnings;
    const char *key; /* member of an object: its key; NULL: an element */
    int index;       /* element of an array: its index */
} cs_json_place;

/* Checks and parses. On success the caller frees *root with cJSON_Delete. Messages call the file
 * `name`. */
CS_MUST_CHECK cs_status cs_json_parse(const char *name, const char *text, size_t length,
                                      cJSON **root, cs_error *error);
CS_MUST_CHECK cs_status cs_json_load(const char *path, cJSON **root, cs_error *error);

/* Adds "file: /json/pointer: message" and returns CS_INVALID. */
cs_status cs_json_invalid(const cs_json_place *place, cs_error *error, const char *format, ...)
    CS_PRINTF(3, 4);

/* Returns the warnings of the nearest enclosing place that has some; or NULL. */
cs_error *cs_json_warnings(const cs_json_place *place);

/* Writes the JSON pointer of a place ("" for the root), escaped as in RFC 6901 and truncated to
 * `size`. */
char *cs_json_pointer(const cs_json_place *place, char *text, size_t size);

/* Kind of a value, for messages: "an object", "a string", ... */
const char *cs_json_kind(const cJSON *value);

/* Writes a scalar as in JSON (truncating long texts), or the kind of another value, for messages
 * "must be ... (got %s)". CS_JSON_DESCRIBED_BYTES are enough. Returns `text`. */
char *cs_json_describe(const cJSON *value, char *text, size_t size);

enum { CS_JSON_DESCRIBED_BYTES = 80 };

/* Adds each message of `from`, which concern a file that the document names, prefixed with the
 * place that names it. Returns the status of `from`. */
cs_status cs_json_pass_on(const cs_json_place *place, const cs_error *from, cs_error *error);

/* Returns the member of an object with exactly this key, or NULL. */
const cJSON *cs_json_member(const cJSON *object, const char *key);

/* For writing; return false or NULL if memory runs out. Numbers that are not finite and NULL texts
 * are written as null; add_item appends a new object. `object` and `list` may be NULL, after an
 * earlier failure. */
bool cs_json_add_number(cJSON *object, const char *key, double value);
bool cs_json_add_text(cJSON *object, const char *key, const char *text);
cJSON *cs_json_add_item(cJSON *list);

/* Replaces `child` by `value`, under the same key, and frees `child`. Cannot fail, unlike cJSON's
 * replacement by key, which loses the key if it cannot copy it. */
void cs_json_replace(cJSON *parent, cJSON *child, cJSON *value);

/* Stores `text` (parsed as JSON, or else as a string) at a pointer. Missing keys and objects on the
 * way are created, array elements are not. The root cannot be replaced, and the document cannot
 * become deeper than CS_JSON_DEPTH. Messages name `origin` ("--set"). On failure the document is
 * unchanged. */
CS_MUST_CHECK cs_status cs_json_set(cJSON *root, const char *pointer, const char *text,
                                    const char *origin, cs_error *error);

/* Stores a copy of `value`, likewise. */
CS_MUST_CHECK cs_status cs_json_copy_to(cJSON *root, const char *pointer, const cJSON *value,
                                        const char *origin, cs_error *error);

/* Returns the value at a pointer without escapes through nested objects, or NULL. */
const cJSON *cs_json_at(const cJSON *root, const char *pointer);

/* Prints the document as indented text with a final newline; the caller frees it. NULL if memory
 * runs out. Numbers read back as the same double; whole numbers up to 2^53 have no exponent. NaN
 * and infinities print as null. */
char *cs_json_print(const cJSON *root);

/* Prints on one line, without a newline. */
char *cs_json_line(const cJSON *value);

#endif

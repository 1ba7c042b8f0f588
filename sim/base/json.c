#include "sim/base/json.h"

#include "sim/base/file.h"
#include "sim/base/json-check.h"
#include "sim/base/number.h"
#include "sim/base/text.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every call of cJSON's parser writes to a global that is never read here, so threads must take
 * turns. The checker, which takes longer, needs no lock. */
static pthread_mutex_t parsing = PTHREAD_MUTEX_INITIALIZER;

/* After the check, cJSON can fail only for lack of memory. */
cs_status cs_json_parse(const char *name, const char *text, size_t length, cJSON **root,
                        cs_error *error)
{
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark that some editors write */
    if (length >= 3 && memcmp(text, mark, 3) == 0) {
        text += 3;
        length -= 3;
    }
    CS_TRY(cs_json_check(name, text, length, error));
    cs_number_locale locale = cs_number_locale_enter();
    pthread_mutex_lock(&parsing);
    cJSON *parsed = cJSON_ParseWithLength(text, length);
    pthread_mutex_unlock(&parsing);
    cs_number_locale_leave(locale);
    if (!parsed)
        return cs_error_no_memory(error);
    *root = parsed;
    return CS_OK;
}

cs_status cs_json_load(const char *path, cJSON **root, cs_error *error)
{
    char *text;
    size_t length;
    cs_status status = cs_file_read(path, CS_JSON_BYTES, &text, &length, error);
    if (status != CS_OK)
        return status;
    if (length >= 4 && memcmp(text, "\x89HDF", 4) == 0)
        status = cs_error_add(error, CS_INVALID,
                              "%s: must be JSON (it is HDF5, as results files are)", path);
    else
        status = cs_json_parse(path, text, length, root, error);
    free(text);
    return status;
}

/* Appends to `text` of `size` bytes and returns the new end, which stays within the buffer. */
static size_t append(char *text, size_t size, size_t end, const char *piece, size_t length)
{
    if (length > size - 1 - end)
        length = size - 1 - end;
    memcpy(text + end, piece, length);
    text[end + length] = '\0';
    return end + length;
}

static size_t append_key(char *text, size_t size, size_t end, const char *key)
{
    for (; *key; key++) {
        if (*key == '~')
            end = append(text, size, end, "~0", 2);
        else if (*key == '/')
            end = append(text, size, end, "~1", 2);
        else
            end = append(text, size, end, key, 1);
    }
    return end;
}

static size_t append_place(const cs_json_place *place, char *text, size_t size)
{
    char digits[16];
    if (!place->up) {
        text[0] = '\0';
        return 0;
    }
    size_t end = append(text, size, append_place(place->up, text, size), "/", 1);
    if (place->key)
        return append_key(text, size, end, place->key);
    int length = snprintf(digits, sizeof(digits), "%d", place->index);
    return append(text, size, end, digits, (size_t)length);
}

char *cs_json_pointer(const cs_json_place *place, char *text, size_t size)
{
    append_place(place, text, size);
    (void)cs_text_keep_characters(text);
    return text;
}

/* A key may contain anything, so it is escaped; a message stays one line. */
cs_status cs_json_invalid(const cs_json_place *place, cs_error *error, const char *format, ...)
{
    char pointer[256], shown[300], message[1024];
    const cs_json_place *root = place;
    va_list arguments;
    while (root->up)
        root = root->up;
    cs_text_show(cs_json_pointer(place, pointer, sizeof(pointer)), shown, sizeof(shown));
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    (void)cs_error_add(error, CS_INVALID, "%s: %s%s%s", root->file, shown, *shown ? ": " : "",
                       message);
    cs_error_place(error, strlen(root->file), strlen(shown));
    return CS_INVALID;
}

cs_error *cs_json_warnings(const cs_json_place *place)
{
    while (place && !place->warnings)
        place = place->up;
    return place ? place->warnings : NULL;
}

cs_status cs_json_pass_on(const cs_json_place *place, const cs_error *from, cs_error *error)
{
    if (from->status == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    for (const char *line = from->text; *line;) {
        const size_t length = strcspn(line, "\n");
        (void)cs_json_invalid(place, error, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
    if (error && from->count > from->stored)
        error->count += from->count - from->stored;
    return from->status;
}

const char *cs_json_kind(const cJSON *value)
{
    switch (value->type & 0xff) {
    case cJSON_False:
    case cJSON_True:
        return "a boolean";
    case cJSON_NULL:
        return "null";
    case cJSON_Number:
        return "a number";
    case cJSON_String:
        return "a string";
    case cJSON_Array:
        return "an array";
    case cJSON_Object:
        return "an object";
    default:
        return "not a JSON value";
    }
}

char *cs_json_describe(const cJSON *value, char *text, size_t size)
{
    if (cJSON_IsString(value))
        return cs_text_quote(value->valuestring, text, size);
    if (cJSON_IsNumber(value))
        return cs_number_format(value->valuedouble, text, size);
    const char *word = cJSON_IsTrue(value)    ? "true"
                       : cJSON_IsFalse(value) ? "false"
                                              : cs_json_kind(value);
    snprintf(text, size, "%s", word);
    return text;
}

const cJSON *cs_json_member(const cJSON *object, const char *key)
{
    return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
}

bool cs_json_add_number(cJSON *object, const char *key, double value)
{
    return isfinite(value) ? cJSON_AddNumberToObject(object, key, value) != NULL
                           : cJSON_AddNullToObject(object, key) != NULL;
}

bool cs_json_add_text(cJSON *object, const char *key, const char *text)
{
    return text ? cJSON_AddStringToObject(object, key, text) != NULL
                : cJSON_AddNullToObject(object, key) != NULL;
}

cJSON *cs_json_add_item(cJSON *list)
{
    cJSON *object = list ? cJSON_CreateObject() : NULL;
    if (object && cJSON_AddItemToArray(list, object))
        return object;
    cJSON_Delete(object);
    return NULL;
}

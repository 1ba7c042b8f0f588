#include "sim/base/json.h"
#include "sim/base/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One assignment "pointer = value" while it descends into the document. */
typedef struct setter {
    const char *origin, *pointer;
    cs_error *error;
    const char *rest; /* rest of the pointer: "" or from a "/" on */
    char *token;      /* current part of the pointer, unescaped; has room for the whole pointer */
    int depth;        /* depth of the current container; the root has 1 */
    size_t parent;    /* bytes of the pointer that lead to the current container */
    cJSON *grown, *grown_in; /* first object that was created, and its parent; or NULL */
} setter;

static cs_status fail(const setter *s, const char *format, ...) CS_PRINTF(2, 3);

static cs_status fail(const setter *s, const char *format, ...)
{
    char message[1024], shown[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    cs_text_show(s->pointer, shown, sizeof(shown));
    return cs_error_add(s->error, CS_INVALID, "%s: %s: %s", s->origin, shown, message);
}

static bool is_utf8(const char *text)
{
    size_t length = strlen(text);
    while (length > 0) {
        size_t used = cs_text_character(text, length);
        if (used == 0)
            return false;
        text += used;
        length -= used;
    }
    return true;
}

static cs_status check_pointer(const setter *s)
{
    if (*s->pointer == '\0')
        return cs_error_add(s->error, CS_INVALID,
                            "%s: the whole document cannot be replaced; name a key as in "
                            "/schedule/kind",
                            s->origin);
    if (*s->pointer != '/')
        return fail(s, "must begin with \"/\" as in /schedule/kind");
    return is_utf8(s->pointer) ? CS_OK : fail(s, "must be UTF-8");
}

/* Parses the value. A text that is not JSON is taken as a string, so that words need no quotes
 * within quotes. */
static cs_status read_value(const setter *s, const char *text, cJSON **value)
{
    cs_status status = cs_json_parse(s->origin, text, strlen(text), value, NULL);
    if (status != CS_INVALID)
        return status == CS_OK ? CS_OK : cs_error_no_memory(s->error);
    if (!is_utf8(text))
        return fail(s, "the value must be UTF-8");
    cJSON *string = cJSON_CreateString(text);
    if (!string)
        return cs_error_no_memory(s->error);
    *value = string;
    return CS_OK;
}

/* Copies the next part of the pointer into s->token. */
static cs_status next_token(setter *s)
{
    char *end = s->token;
    const char *at = s->rest + 1;
    s->parent = (size_t)(s->rest - s->pointer);
    for (; *at && *at != '/'; at++) {
        char c = *at;
        if (c == '~') {
            at++;
            if (*at != '0' && *at != '1')
                return fail(s, "\"~\" must be written ~0, and \"/\" within a key ~1");
            c = *at == '0' ? '~' : '/';
        }
        *end++ = c;
    }
    *end = '\0';
    s->rest = at;
    return CS_OK;
}

/* Finds the child named by s->token; *child is NULL if an object has no such key. */
static cs_status find_child(const setter *s, cJSON *parent, cJSON **child)
{
    if (cJSON_IsArray(parent)) {
        char quoted[CS_TEXT_QUOTED_BYTES];
        int size = cJSON_GetArraySize(parent);
        size_t digits = strspn(s->token, "0123456789");
        bool whole = digits > 0 && s->token[digits] == '\0' && (digits == 1 || *s->token != '0');
        errno = 0;
        long index = whole ? strtol(s->token, NULL, 10) : -1;
        if (index < 0 || index >= size || errno == ERANGE)
            return fail(s, "no element %s in an array of %d (the first is 0)",
                        cs_text_quote(s->token, quoted, sizeof(quoted)), size);
        *child = cJSON_GetArrayItem(parent, (int)index);
        return CS_OK;
    }
    if (!cJSON_IsObject(parent))
        return fail(s, "%.*s is %s, which has no keys", (int)(s->parent > 200 ? 200 : s->parent),
                    s->pointer, cs_json_kind(parent));
    *child = cJSON_GetObjectItemCaseSensitive(parent, s->token);
    return CS_OK;
}

/* Creates a missing parent as an object: only the reader of the document knows which keys exist. */
static cs_status grow(setter *s, cJSON *at, cJSON **child)
{
    if (s->depth >= CS_JSON_DEPTH)
        return fail(s, "nested deeper than %d levels", CS_JSON_DEPTH);
    *child = cJSON_AddObjectToObject(at, s->token);
    if (!*child)
        return cs_error_no_memory(s->error);
    if (!s->grown) {
        s->grown = *child;
        s->grown_in = at;
    }
    return CS_OK;
}

/* Descends to the container of the last part of the pointer; *child as in find_child. */
static cs_status walk(setter *s, cJSON *root, cJSON **parent, cJSON **child)
{
    cJSON *at = root;
    for (;;) {
        cs_status status = next_token(s);
        if (status == CS_OK)
            status = find_child(s, at, child);
        if (status != CS_OK)
            return status;
        if (*s->rest == '\0')
            break;
        if (!*child)
            status = grow(s, at, child);
        if (status != CS_OK)
            return status;
        at = *child;
        s->depth++;
    }
    *parent = at;
    return CS_OK;
}

static int depth_of(const cJSON *value)
{
    int deepest = 0;
    if (!cJSON_IsArray(value) && !cJSON_IsObject(value))
        return 0;
    for (const cJSON *child = value->child; child; child = child->next) {
        int depth = depth_of(child);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

void cs_json_replace(cJSON *parent, cJSON *child, cJSON *value)
{
    value->string = child->string;
    child->string = NULL;
    cJSON_ReplaceItemViaPointer(parent, child, value);
}

/* Stores the value, which belongs to the document only on success. */
static cs_status put(const setter *s, cJSON *parent, cJSON *child, cJSON *value)
{
    if (s->depth + depth_of(value) > CS_JSON_DEPTH)
        return fail(s, "nested deeper than %d levels", CS_JSON_DEPTH);
    if (!child) {
        bool added = cJSON_AddItemToObject(parent, s->token, value);
        return added ? CS_OK : cs_error_no_memory(s->error);
    }
    cs_json_replace(parent, child, value);
    return CS_OK;
}

static cs_status set(setter *s, cJSON *root, const char *text, const cJSON *copied)
{
    cJSON *value = NULL, *parent = NULL, *child = NULL;
    CS_TRY(check_pointer(s));
    s->token = malloc(strlen(s->pointer) + 1);
    if (!s->token)
        return cs_error_no_memory(s->error);
    cs_status status = CS_OK;
    if (text)
        status = read_value(s, text, &value);
    else if (!(value = cJSON_Duplicate(copied, true)))
        status = cs_error_no_memory(s->error);
    if (status == CS_OK)
        status = walk(s, root, &parent, &child);
    if (status == CS_OK)
        status = put(s, parent, child, value);
    if (status != CS_OK) {
        cJSON_Delete(value);
        cJSON_Delete(s->grown ? cJSON_DetachItemViaPointer(s->grown_in, s->grown) : NULL);
    }
    free(s->token);
    return status;
}

cs_status cs_json_set(cJSON *root, const char *pointer, const char *text, const char *origin,
                      cs_error *error)
{
    setter s = {.origin = origin, .pointer = pointer, .error = error, .rest = pointer, .depth = 1};
    return set(&s, root, text, NULL);
}

cs_status cs_json_copy_to(cJSON *root, const char *pointer, const cJSON *value, const char *origin,
                          cs_error *error)
{
    setter s = {.origin = origin, .pointer = pointer, .error = error, .rest = pointer, .depth = 1};
    return set(&s, root, NULL, value);
}

const cJSON *cs_json_at(const cJSON *root, const char *pointer)
{
    char key[128];
    while (root && *pointer == '/') {
        const size_t length = strcspn(pointer + 1, "/");
        snprintf(key, sizeof(key), "%.*s", (int)length, pointer + 1);
        root = length < sizeof(key) ? cs_json_member(root, key) : NULL;
        pointer += 1 + length;
    }
    return root;
}

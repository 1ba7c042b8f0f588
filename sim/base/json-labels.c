#include "sim/base/json-labels.h"

#include "sim/base/json.h"
#include "sim/base/text-stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_common(cJSON *const *parsed, uint32_t n, const cJSON *member)
{
    for (uint32_t i = 0; i < n; i++) {
        const cJSON *other = cs_json_member(parsed[i], member->string);
        if (!other || !cJSON_Compare(other, member, true))
            return false;
    }
    return true;
}

static bool print_member(FILE *out, const cJSON *member, const char *separator)
{
    char *text = cJSON_IsString(member) ? strdup(member->valuestring) : cs_json_line(member);
    if (text)
        fprintf(out, "%s%s=%s", separator, member->string, text);
    free(text);
    return text;
}

/* Label of an object; "{}" if it has no differing members. */
static const char *object_label(const cJSON *object, cs_arena *arena)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = cs_text_stream(&text, &length);
    if (!out)
        return NULL;
    bool done = true;
    for (const cJSON *at = object->child; at && done; at = at->next)
        done = print_member(out, at, at == object->child ? "" : " ");
    done = fclose(out) == 0 && done;
    const char *label = done ? cs_arena_copy(arena, length > 0 ? text : "{}") : NULL;
    free(text);
    return label;
}

bool cs_json_labels_apply(cJSON *const *parsed, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!cJSON_IsObject(parsed[i]))
            return false;
    }
    return n > 1;
}

cs_status cs_json_labels_make(cJSON **objects, uint32_t n, cs_arena *arena, const char **labels,
                              cs_error *error)
{
    /* Remove the members that all objects share. */
    const cJSON *next;
    for (const cJSON *at = objects[0]->child; at; at = next) {
        next = at->next;
        if (!is_common(objects, n, at))
            continue;
        for (uint32_t i = n; i-- > 0;) /* the first object last: it owns the name */
            cJSON_DeleteItemFromObjectCaseSensitive(objects[i], at->string);
    }
    for (uint32_t i = 0; i < n; i++) {
        labels[i] = object_label(objects[i], arena);
        if (!labels[i])
            return cs_error_no_memory(error);
    }
    return CS_OK;
}

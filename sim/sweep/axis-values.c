#include "sim/sweep/axis-values.h"

#include "sim/base/text-stream.h"
#include "sim/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const units[] = {
    [CS_QUANTITY_TIME] = "s",
    [CS_QUANTITY_BYTES] = "bytes",
    [CS_QUANTITY_BANDWIDTH] = "bytes/s",
    [CS_QUANTITY_FLOP_RATE] = "flop/s",
    [CS_QUANTITY_NUMBER] = "1",
};

/* A number, or a text with a unit of the key's quantity, in SI base units. */
static bool read_number(const cJSON *value, cs_quantity quantity, double *out)
{
    if (cJSON_IsNumber(value))
        *out = value->valuedouble;
    return cJSON_IsNumber(value) ||
           (cJSON_IsString(value) && quantity != CS_QUANTITY_NUMBER &&
            cs_units_parse(value->valuestring, quantity, out, NULL) == CS_OK);
}

/* ---- labels ---- */

static bool is_common(cJSON *const *parsed, uint32_t n, const cJSON *member)
{
    for (uint32_t i = 0; i < n; i++) {
        const cJSON *other = cs_json_member(parsed[i], member->string);
        if (!other || !cJSON_Compare(other, member, true))
            return false;
    }
    return true;
}

/* Takes the members off that all objects have alike. */
static void remove_common(cJSON **parsed, uint32_t n)
{
    const cJSON *next;
    for (const cJSON *at = parsed[0]->child; at; at = next) {
        next = at->next;
        if (!is_common(parsed, n, at))
            continue;
        for (uint32_t i = n; i-- > 0;) /* the first one last: it has the name */
            cJSON_DeleteItemFromObjectCaseSensitive(parsed[i], at->string);
    }
}

static bool print_member(FILE *out, const cJSON *member, const char *separator)
{
    char *text = cJSON_IsString(member) ? strdup(member->valuestring) : cs_json_line(member);
    if (text)
        fprintf(out, "%s%s=%s", separator, member->string, text);
    free(text);
    return text;
}

/* "{}" of one that has nothing of its own. */
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

static bool all_objects(cJSON *const *parsed, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!cJSON_IsObject(parsed[i]))
            return false;
    }
    return n > 1;
}

/* ---- values ---- */

static cs_status fill(const cs_axis *axis, cJSON **parsed, cs_arena *arena, cs_axis_values *values,
                      cs_error *error)
{
    const uint32_t n = axis->values.n;
    double *numbers = cs_arena_alloc(arena, n, sizeof(*numbers));
    const char **texts = cs_arena_alloc(arena, n, sizeof(*texts));
    const char **labels = cs_arena_alloc(arena, n, sizeof(*labels));
    bool all = true;
    if (!numbers || !texts || !labels)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++) {
        const char *text = axis->values.texts[i];
        CS_TRY(cs_json_parse(axis->pointer, text, strlen(text), &parsed[i], error));
        all = read_number(parsed[i], axis->quantity, &numbers[i]) && all;
        texts[i] = cJSON_IsString(parsed[i]) ? cs_arena_copy(arena, parsed[i]->valuestring) : text;
        if (!texts[i])
            return cs_error_no_memory(error);
    }
    const bool objects = all_objects(parsed, n);
    if (objects)
        remove_common(parsed, n);
    for (uint32_t i = 0; i < n; i++) {
        const char *label = objects ? object_label(parsed[i], arena) : texts[i];
        labels[i] = label ? cs_text_shown(label, arena) : NULL;
        if (!labels[i])
            return cs_error_no_memory(error);
    }
    *values = (cs_axis_values){n, all ? numbers : NULL, texts, labels, units[axis->quantity]};
    return CS_OK;
}

cs_status cs_axis_values_read(const cs_axis *axis, cs_arena *arena, cs_axis_values *values,
                              cs_error *error)
{
    cJSON **parsed = calloc((size_t)axis->values.n + 1, sizeof(cJSON *));
    if (!parsed)
        return cs_error_no_memory(error);
    const cs_status status = fill(axis, parsed, arena, values, error);
    for (uint32_t i = 0; i < axis->values.n; i++)
        cJSON_Delete(parsed[i]);
    free(parsed);
    return status;
}

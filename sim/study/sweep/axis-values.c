#include "sim/study/sweep/axis-values.h"

#include "sim/base/json-labels.h"
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
    memcpy(labels, texts, n * sizeof(*labels));
    if (cs_json_labels_apply(parsed, n))
        CS_TRY(cs_json_labels_make(parsed, n, arena, labels, error));
    for (uint32_t i = 0; i < n; i++) {
        labels[i] = cs_text_shown(labels[i], arena);
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

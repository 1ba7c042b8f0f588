#include "sim/cli/scenario-option.h"

#include <stdlib.h>
#include <string.h>

/* Splits "/pointer=value" at the first '='; the pointer is allocated. */
static cs_status split(const char *text, cs_override *out, cs_error *error)
{
    const char *equals = strchr(text, '=');
    if (*text != '/' || !equals)
        return cs_error_add(
            error, CS_USAGE,
            "--set must be /json/pointer=VALUE, like /schedule/micro_batches=8 (got "
            "\"%s\")",
            text);
    char *pointer = strndup(text, (size_t)(equals - text));
    if (!pointer)
        return cs_error_no_memory(error);
    *out = (cs_override){pointer, equals + 1};
    return CS_OK;
}

cs_status cs_scenario_from(const cs_arguments *arguments, cs_scenario *scenario, cs_error *error)
{
    const char *const *sets;
    size_t n = cs_arguments_values(arguments, "set", &sets), n_split = 0;
    cs_override *overrides = calloc(n + 1, sizeof(*overrides));
    if (!overrides)
        return cs_error_no_memory(error);
    cs_status status = CS_OK;
    while (n_split < n && status == CS_OK) {
        status = split(sets[n_split], &overrides[n_split], error);
        n_split += status == CS_OK;
    }
    if (status == CS_OK)
        status = cs_scenario_load(arguments->words[0], overrides, n, scenario, error);
    for (size_t i = 0; i < n_split; i++)
        free((char *)(uintptr_t)overrides[i].pointer);
    free(overrides);
    return status;
}

cs_status cs_print_json(cJSON *root, FILE *out, cs_error *error)
{
    char *text = root ? cs_json_print(root) : NULL;
    cJSON_Delete(root);
    if (!text)
        return cs_error_no_memory(error);
    fputs(text, out);
    free(text);
    return CS_OK;
}

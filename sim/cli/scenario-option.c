#include "sim/cli/scenario-option.h"

#include "sim/base/terms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Splits "/pointer=value" at the first '='; allocates the pointer. */
static cs_status split(const char *text, cs_override *out, cs_error *error)
{
    const char *equals = strchr(text, '=');
    if (*text != '/' || !equals) {
        char word[64], meant[64];
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(text, "="), text);
        return cs_error_add(
            error, CS_USAGE, "--set must be /json/pointer=VALUE, like %s=8 (got \"%s\")",
            cs_term_pointer(word, "/schedule/micro_batches", meant, sizeof(meant)), text);
    }
    char *pointer = strndup(text, (size_t)(equals - text));
    if (!pointer)
        return cs_error_no_memory(error);
    *out = (cs_override){pointer, equals + 1};
    return CS_OK;
}

cs_status cs_document_change(const cs_arguments *arguments, cJSON *document, cs_error *error)
{
    const char *const *sets;
    const size_t n = cs_arguments_values(arguments, "set", &sets);
    cs_status status = CS_OK;
    for (size_t i = 0; i < n && status == CS_OK; i++) {
        cs_override change = {0};
        status = split(sets[i], &change, error);
        if (status == CS_OK)
            status = cs_json_set(document, change.pointer, change.value, "--set", error);
        free((char *)(uintptr_t)change.pointer);
    }
    return status;
}

cs_status cs_document_from(const cs_arguments *arguments, cJSON **root, cs_error *error)
{
    cJSON *document = NULL;
    cs_status status = cs_json_load(arguments->words[0], &document, error);
    if (status == CS_OK)
        status = cs_document_change(arguments, document, error);
    if (status == CS_OK)
        *root = document;
    else
        cJSON_Delete(document);
    return status;
}

cs_status cs_scenario_from(const cs_context *context, const cs_arguments *arguments,
                           cs_scenario *scenario, cs_error *error)
{
    cJSON *root = NULL;
    cs_status status = cs_document_from(arguments, &root, error);
    if (status == CS_OK)
        status =
            cs_scenario_read_watched(root, arguments->words[0], context->progress, scenario, error);
    cJSON_Delete(root);
    return status;
}

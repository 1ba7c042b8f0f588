#include "sim/cli/workload-option.h"

#include "sim/base/text.h"

#include <stdlib.h>
#include <string.h>

const char *const cs_optimizer_names[] = {"sgd", "momentum", "adam", NULL};

cs_status cs_arguments_choice(const cs_arguments *arguments, const char *option,
                              const char *const *choices, uint32_t *out, cs_error *error)
{
    const char *value = cs_arguments_value(arguments, option);
    cs_guess guess;
    *out = 0;
    if (!value || cs_guess_find(&guess, choices, value, out))
        return CS_OK;
    return cs_error_add(error, CS_USAGE, "%s: unknown --%s %s", arguments->command->name, option,
                        cs_guess_text(&guess));
}

static cs_status add_parameter(cJSON *object, const char *text, cs_error *error)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return cs_error_add(error, CS_USAGE,
                            "--param must be NAME=VALUE, like image=224 (got \"%s\")", text);
    char *name = strndup(text, (size_t)(equals - text));
    if (!name)
        return cs_error_no_memory(error);
    cJSON *value = cJSON_ParseWithOpts(equals + 1, NULL, true);
    if (!value)
        value = cJSON_CreateString(equals + 1);
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    bool added = value && cJSON_AddItemToObject(object, name, value);
    if (!added)
        cJSON_Delete(value);
    free(name);
    return added ? CS_OK : cs_error_no_memory(error);
}

cs_status cs_arguments_parameters(const cs_arguments *arguments, cJSON *object, cs_error *error)
{
    const char *const *texts;
    size_t n = cs_arguments_values(arguments, "param", &texts);
    uint32_t image;
    cs_status status = cs_arguments_count(arguments, "image", 0, &image, error);
    if (status == CS_OK && cs_arguments_value(arguments, "image") &&
        !cJSON_AddNumberToObject(object, "image", image))
        status = cs_error_no_memory(error);
    for (size_t i = 0; i < n && status == CS_OK; i++)
        status = add_parameter(object, texts[i], error);
    return status;
}

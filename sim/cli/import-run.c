#include "sim/cli/import-run.h"

#include "sim/base/file.h"
#include "sim/run/recipe/effects.h"
#include "sim/study/validate/point-selection.h"

#include <stdlib.h>
#include <string.h>

cs_status cs_recipe_write(const cs_context *context, const cs_recipe *recipe, const char *name,
                          const char *path, cs_error *error)
{
    if (!recipe->document)
        return cs_error_add(error, CS_FAILED, "%s cannot be expressed; it needs: %s", name,
                            recipe->missing[0]);
    for (uint32_t i = 0; i < recipe->n_assumed; i++)
        cs_log_write(&context->log, CS_LOG_INFO, "assumed: %s", recipe->assumed[i]);
    char *text = cs_json_print(recipe->document);
    if (!text)
        return cs_error_no_memory(error);
    const cs_status status = cs_file_write(path, text, strlen(text), error);
    free(text);
    return status;
}

static void tell(const cs_context *context, const cs_key_effects *effects)
{
    static const char *const heads[] = {"understood", "without effect here", "not understood"};
    for (uint32_t kind = 0; kind <= CS_KEY_UNKNOWN; kind++)
        for (uint32_t i = 0; i < effects->n; i++) {
            const cs_key_effect *effect = &effects->items[i];
            const bool guessed = kind == CS_KEY_UNKNOWN && *effect->text;
            if (effect->kind == kind)
                cs_log_write(&context->log, kind == CS_KEY_UNKNOWN ? CS_LOG_WARNING : CS_LOG_INFO,
                             "%s: %s%s%s%s", heads[kind], effect->key,
                             guessed         ? "; did you mean "
                             : *effect->text ? ": "
                                             : "",
                             effect->text, guessed ? "?" : "");
        }
}

static cs_status import(const cs_context *context, const cs_arguments *arguments,
                        const cs_description *run, cs_error *error)
{
    const char *output = cs_arguments_value(arguments, "output");
    cs_recipe recipe = {0};
    cs_key_effects effects = {0};
    cs_status status = cs_recipe_make(run, &recipe, error);
    if (status == CS_OK)
        status = cs_recipe_write(context, &recipe, run->name, output ? output : "-", error);
    if (status == CS_OK)
        status = cs_effects_find(run, &recipe, &effects, error);
    if (status == CS_OK)
        tell(context, &effects);
    cs_effects_finish(&effects);
    cs_recipe_finish(&recipe);
    return status;
}

/* One of the points of a file. */
static cs_status import_point(const cs_context *context, const cs_arguments *arguments,
                              const char *path, const char *text, cs_error *error)
{
    const char *const *select;
    const size_t n_select = cs_arguments_values(arguments, "select", &select);
    const cs_point **selected = NULL;
    cs_points points = {0};
    uint32_t n = 0;
    cs_arena_init(&points.arena);
    cs_status status = cs_points_parse(path, text, strlen(text), &points, error);
    if (status == CS_OK)
        status = cs_points_select(&points, select, n_select, &selected, &n, error);
    if (status == CS_OK && n != 1)
        status = cs_error_add(error, CS_USAGE,
                              "import: %s has %u points%s; choose one, such as --select 'id=%s'",
                              path, n, n_select > 0 ? " that match" : "", selected[0]->id);
    if (status == CS_OK)
        status = import(context, arguments, &selected[0]->run, error);
    free(selected);
    cs_points_finish(&points);
    return status;
}

cs_status cs_import_run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    const char *path = arguments->words[1];
    const char *name = strcmp(path, "-") == 0 ? "/dev/stdin" : path;
    char *text = NULL;
    size_t length;
    cJSON *document = NULL;
    cs_description run = {0};
    cs_arena arena;
    cs_arena_init(&arena);
    cs_status status = cs_file_read(name, CS_JSON_BYTES, &text, &length, error);
    if (status == CS_OK)
        status = cs_json_parse(path, text, length, &document, error);
    const char *schema = cJSON_GetStringValue(cs_json_member(document, "schema"));
    const bool points = schema && strcmp(schema, "truth/1") == 0;
    cJSON_Delete(document);
    document = NULL;
    if (status == CS_OK && points) {
        status = import_point(context, arguments, path, text, error);
    } else if (status == CS_OK) {
        status = cs_description_parse(path, text, length, &arena, &document, &run, error);
        if (status == CS_OK)
            status = import(context, arguments, &run, error);
        cJSON_Delete(document);
    }
    free(text);
    cs_arena_finish(&arena);
    return status;
}

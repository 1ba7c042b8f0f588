#include "sim/run/recipe/effects.h"

#include "sim/base/conventions.h"
#include "sim/base/text.h"
#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 256, TEXT_BYTES = 400 };

void cs_effects_finish(cs_key_effects *effects)
{
    free(effects->items);
    cs_arena_finish(&effects->arena);
    *effects = (cs_key_effects){0};
}

static cs_status add(cs_key_effects *effects, cs_key_effect_kind kind, const char *key,
                     const char *text, cs_error *error)
{
    const cs_key_effect made = {kind, cs_arena_copy(&effects->arena, key),
                                cs_arena_copy(&effects->arena, text)};
    if (!made.key || !made.text ||
        !cs_vector_reserve((void **)&effects->items, &effects->capacity, effects->n + UINT64_C(1),
                           sizeof(made)))
        return cs_error_no_memory(error);
    effects->items[effects->n++] = made;
    return CS_OK;
}

/* Adds the keys whose values differ in two scenarios to a text, up to its size. */
static void name_changes(const cJSON *a, const cJSON *b, const char *key, char *text)
{
    char below[KEY_BYTES];
    const cJSON *member;
    if (cJSON_Compare(a, b, true))
        return;
    if (!cJSON_IsObject(a) || !cJSON_IsObject(b)) {
        const size_t length = strlen(text);
        if (length + strlen(key) + sizeof(", ") < TEXT_BYTES)
            snprintf(text + length, TEXT_BYTES - length, "%s%s", length > 0 ? ", " : "", key);
        return;
    }
    cJSON_ArrayForEach(member, a)
    {
        snprintf(below, sizeof(below), "%s/%s", key, member->string);
        name_changes(member, cs_json_member(b, member->string), below, text);
    }
    cJSON_ArrayForEach(member, b)
    {
        snprintf(below, sizeof(below), "%s/%s", key, member->string);
        if (!cs_json_member(a, member->string))
            name_changes(NULL, member, below, text);
    }
}

/* A description with one key left out, or with twice its number; and its scenario. */
typedef struct variant {
    cs_arena arena;
    cJSON *json;
    cs_recipe recipe;
    bool readable;
} variant;

static void finish_variant(variant *v)
{
    cs_recipe_finish(&v->recipe);
    cJSON_Delete(v->json);
    cs_arena_finish(&v->arena);
}

static cs_status make_variant(const cs_description *run, const char *section, const char *key,
                              bool twice, variant *v, cs_error *error)
{
    const cs_json_place place = {.file = "variant"};
    cs_description description;
    cs_error ignored;
    cs_error_init(&ignored);
    *v = (variant){.json = cJSON_CreateObject()};
    cs_arena_init(&v->arena);
    for (const cs_field *field = cs_description_fields; field->name && v->json; field++) {
        const cJSON *member = cs_json_member(run->json, field->name);
        cJSON *copy = member ? cJSON_Duplicate(member, true) : NULL;
        if (member && !cJSON_AddItemToObject(v->json, field->name, copy)) {
            cJSON_Delete(copy);
            return cs_error_no_memory(error);
        }
    }
    cJSON *parent = section ? cJSON_GetObjectItemCaseSensitive(v->json, section) : v->json;
    cJSON *value = cJSON_GetObjectItemCaseSensitive(parent, key);
    if (twice)
        cJSON_SetNumberValue(value, 2 * value->valuedouble);
    else
        cJSON_Delete(cJSON_DetachItemViaPointer(parent, value));
    const cs_status status =
        cs_description_read(v->json, &place, NULL, NULL, &v->arena, &description, &ignored);
    if (status == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    v->readable = status == CS_OK;
    description.name = run->name;
    return v->readable ? cs_recipe_make(&description, &v->recipe, error) : CS_OK;
}

static cs_status find_one(const cs_description *run, const cs_recipe *made, const char *section,
                          const cJSON *value, cs_key_effects *effects, cs_error *error)
{
    char key[KEY_BYTES], text[TEXT_BYTES] = "", assumed[CS_JSON_DESCRIBED_BYTES];
    variant v;
    snprintf(key, sizeof(key), "%s%s/%s", section ? "/" : "", section ? section : "",
             value->string);
    cs_status status = make_variant(run, section, value->string, false, &v, error);
    if (status == CS_OK && (!v.readable || !v.recipe.document) && cJSON_IsNumber(value)) {
        finish_variant(&v);
        status = make_variant(run, section, value->string, true, &v, error);
    }
    const cJSON *without = cs_json_at(v.recipe.completed, key);
    cs_key_effect_kind kind = CS_KEY_UNDERSTOOD;
    if (v.recipe.document)
        name_changes(made->document, v.recipe.document, "", text);
    else
        snprintf(text, sizeof(text), "required");
    if (!*text) {
        kind = CS_KEY_NONE;
        if (without && cJSON_Compare(without, value, true))
            snprintf(text, sizeof(text), "%s is assumed without it",
                     cs_json_describe(without, assumed, sizeof(assumed)));
        else
            snprintf(text, sizeof(text), "the scenario is the same without it");
    }
    if (status == CS_OK)
        status = add(effects, kind, key, text, error);
    finish_variant(&v);
    return status;
}

/* The known key that an unknown one may have been meant to be. */
static cs_status add_unknown(const char *key, cs_key_effects *effects, cs_error *error)
{
    const char *name = strrchr(key, '/') + 1;
    const cs_field *fields = cs_description_fields;
    for (const cs_field *field = cs_description_fields; field->name; field++)
        if (field->of && strncmp(key + 1, field->name, strlen(field->name)) == 0 &&
            key[1 + strlen(field->name)] == '/')
            fields = field->of;
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (; fields->name; fields++)
        cs_guess_add(&guess, fields->name);
    return add(effects, CS_KEY_UNKNOWN, key, guess.closest ? guess.closest : "", error);
}

cs_status cs_effects_find(const cs_description *run, const cs_recipe *made, cs_key_effects *effects,
                          cs_error *error)
{
    const cJSON *member, *inner;
    cJSON_ArrayForEach(member, run->json)
    {
        const cs_field *field = cs_field_find(cs_description_fields, member->string);
        if (!field)
            continue;
        if (field->type != CS_FIELD_OBJECT && field->type != CS_FIELD_JSON)
            CS_TRY(find_one(run, made, NULL, member, effects, error));
        else
            cJSON_ArrayForEach(inner, member)
                CS_TRY(find_one(run, made, member->string, inner, effects, error));
    }
    for (uint32_t i = 0; i < run->unread.n; i++)
        CS_TRY(add_unknown(((const char *const *)run->unread.items)[i], effects, error));
    return CS_OK;
}

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/model/zoo/described.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cs_facts_kind family_kind = {"families", "family", "docs/how-to/named-model.md", NULL,
                                          .exact = true};
const cs_facts_kind cs_model_kind = {"models", "model", "docs/how-to/named-model.md", NULL};

/* ---- models ---- */

typedef struct model_file {
    const char *name, *family;
    const cJSON *parameters, *network, *ignored;
} model_file;

static const cs_field model_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(model_file, name), .doc = "as scenarios call it"},
    {"family", CS_FIELD_TEXT, offsetof(model_file, family), .fallback = "",
     .doc = "the network's architecture; or the following keys describe it"},
    {"keys", CS_FIELD_JSON, offsetof(model_file, ignored), .fallback = "", .doc = "parameters"},
    {"constants", CS_FIELD_JSON, offsetof(model_file, ignored), .fallback = "", .doc = "numbers"},
    {"checks", CS_FIELD_JSON, offsetof(model_file, ignored), .fallback = "", .doc = "limits"},
    {"parts", CS_FIELD_JSON, offsetof(model_file, ignored), .fallback = "", .doc = "steps"},
    {"network", CS_FIELD_JSON, offsetof(model_file, network), .fallback = "", .doc = "steps"},
    {"parameters", CS_FIELD_JSON, offsetof(model_file, parameters), .fallback = "",
     .doc = "defaults of the family's keys"},
    {"title", CS_FIELD_JSON, offsetof(model_file, ignored), .fallback = "", .doc = "for people"},
    {"summary", CS_FIELD_JSON, offsetof(model_file, ignored), .fallback = "", .doc = "one line"},
    {"source", CS_FIELD_JSON, offsetof(model_file, ignored), .fallback = "", .doc = "where from"},
    {"published", CS_FIELD_JSON, offsetof(model_file, ignored), .fallback = "",
     .doc = "the number of parameters that its source states"},
    {"aliases", CS_FIELD_JSON, offsetof(model_file, ignored), .fallback = "", .doc = "names"},
    {"except", CS_FIELD_JSON, offsetof(model_file, ignored), .fallback = "", .doc = "words"},
    {"schema_version", CS_FIELD_JSON, offsetof(model_file, ignored), .fallback = "", .doc = "1"},
    {0}};

bool cs_zoo_is_model(const cJSON *root)
{
    return cs_json_member(root, "family") || cs_json_member(root, "like") ||
           cs_json_member(root, "network");
}

const char *cs_zoo_name(size_t i)
{
    return i == 0 ? cs_zoo_decoder.name : cs_facts_name(family_kind.folder, i - 1);
}

cs_status cs_zoo_find(const char *name, cs_arena *arena, const cs_zoo_entry **family,
                      cs_error *error)
{
    cs_guess guess;
    const char *known;
    cJSON *root;
    if (strcmp(name, cs_zoo_decoder.name) == 0) {
        *family = &cs_zoo_decoder;
        return CS_OK;
    }
    if (cs_facts_text(family_kind.folder, name)) {
        cs_zoo_entry *made = cs_arena_alloc(arena, 1, sizeof(*made));
        CS_TRY(cs_facts_load(&family_kind, name, NULL, &root, error));
        const cs_status status =
            made ? cs_family_read(root, name, arena, made, error) : cs_error_no_memory(error);
        cJSON_Delete(root);
        *family = status == CS_OK ? made : NULL;
        return status;
    }
    cs_guess_init(&guess, name);
    for (size_t i = 0; (known = cs_zoo_name(i)); i++)
        cs_guess_add(&guess, known);
    for (size_t i = 0; (known = cs_facts_name(cs_model_kind.folder, i)); i++)
        cs_guess_add(&guess, known);
    snprintf(guess.known, sizeof(guess.known), "`sim list models` has them");
    return cs_error_add(error, CS_INVALID, "unknown model %s", cs_guess_text(&guess));
}

cs_status cs_zoo_defaults(const cs_zoo_entry *family, const cJSON *parameters,
                          const cs_json_place *place, cs_arena *arena, const cs_field **fields,
                          cs_error *error)
{
    size_t n = 0;
    while (family->fields[n].name)
        n++;
    cs_field *made = cs_arena_alloc(arena, n + 1, sizeof(*made));
    void *checked = cs_arena_alloc(arena, 1, family->params_size);
    if (!made || !checked)
        return cs_error_no_memory(error);
    if (parameters && !cJSON_IsObject(parameters))
        return cs_json_invalid(place, error, "must be an object (got %s)",
                               cs_json_kind(parameters));
    CS_TRY(cs_field_read(parameters, place, (const cs_field *const[]){family->fields, NULL},
                         (void *const[]){checked}, arena, error));
    for (size_t i = 0; i < n; i++) {
        const cJSON *value = cs_json_member(parameters, family->fields[i].name);
        made[i] = family->fields[i];
        if (!value)
            continue;
        char *text = cJSON_IsString(value) ? strdup(value->valuestring) : cs_json_line(value);
        made[i].fallback = text ? cs_arena_copy(arena, text) : NULL;
        free(text);
        if (!made[i].fallback)
            return cs_error_no_memory(error);
    }
    *fields = made;
    return CS_OK;
}

/* Reads the family of a model file, and the family's keys with the model's defaults; *name points
 * to a copy. */
static cs_status read_model(const cJSON *root, const char *path, cs_arena *arena,
                            const cs_zoo_entry **family, const cs_field **fields, const char **name,
                            cs_error *error)
{
    const cs_json_place file = {.file = path};
    const cs_json_place key = {.up = &file, .key = "family"};
    const cs_json_place parameters = {.up = &file, .key = "parameters"};
    model_file of = {0};
    cs_error why;
    cs_error_init(&why);
    CS_TRY(cs_field_read(root, &file, (const cs_field *const[]){model_fields, NULL},
                         (void *const[]){&of}, arena, error));
    *name = of.name;
    if (of.network) {
        cs_zoo_entry *made = cs_arena_alloc(arena, 1, sizeof(*made));
        if (!made)
            return cs_error_no_memory(error);
        CS_TRY(cs_family_read(root, path, arena, made, error));
        *family = made;
    } else if (!of.family) {
        return cs_json_invalid(&file, error, "missing key \"family\"");
    } else if (cs_zoo_find(of.family, arena, family, &why) != CS_OK) {
        return cs_json_pass_on(&key, &why, error);
    }
    return cs_zoo_defaults(*family, of.parameters, &parameters, arena, fields, error);
}

/* Finds a family or a model by its name. */
static cs_status find(const char *name, const char *from, cs_arena *arena,
                      const cs_zoo_entry **family, const cs_field **fields, const char **known_as,
                      cs_error *error)
{
    cs_error ignored;
    cJSON *root;
    const bool is_file = cs_facts_is_file(name);
    const char *model = is_file ? NULL : cs_facts_find(&cs_model_kind, name);
    cs_error_init(&ignored);
    const cs_status known = cs_zoo_find(name, arena, family, model || is_file ? &ignored : error);
    if (known == CS_OK) {
        *known_as = (*family)->name;
        *fields = (*family)->fields;
        return CS_OK;
    }
    if (known == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    if (!model && !is_file)
        return known;
    CS_TRY(cs_facts_load(&cs_model_kind, name, from, &root, error));
    char *path = is_file && from ? cs_file_relative(from, name) : strdup(model ? model : name);
    const cs_status status = path ? read_model(root, path, arena, family, fields, known_as, error)
                                  : cs_error_no_memory(error);
    free(path);
    cJSON_Delete(root);
    return status;
}

cs_status cs_zoo_build(const char *name, const char *from, const cJSON *params,
                       const cs_json_place *place, cs_net *net, cs_error *error)
{
    const cs_zoo_entry *family;
    const cs_field *fields;
    const char *known_as;
    cs_arena arena;
    cs_net made;
    cs_arena_init(&arena);
    cs_status status = find(name, from, &arena, &family, &fields, &known_as, error);
    if (status != CS_OK) {
        cs_arena_finish(&arena);
        return status;
    }
    cs_net_begin(&made, known_as, error);
    cs_arena_adopt(&made.arena, &arena);
    void *values = cs_arena_alloc(&made.arena, 1, family->params_size);
    status = values ? cs_field_read(params, place, (const cs_field *const[]){fields, NULL},
                                    (void *const[]){values}, &made.arena, error)
                    : cs_error_no_memory(error);
    made.place = place;
    made.has_keys = true;
    if (status == CS_OK) {
        family->build(&made, family->variant, values);
        status = cs_net_end(&made);
    }
    if (status != CS_OK) {
        cs_net_finish(&made);
        return status;
    }
    *net = made;
    return CS_OK;
}

#include "sim/model/foreign/huggingface.h"

#include "sim/base/text.h"
#include "sim/model/zoo/zoo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_SEQUENCE = 4096, MOST_LAYERS = 4096, SIZE_MAX_ = 1 << 20 };

const cs_facts_kind cs_model_type_kind = {"model-types", "model_type", "docs/how-to/named-model.md",
                                          NULL};

/* A config.json that is being read. */
typedef struct reading {
    const cJSON *config;
    const cs_json_place *place; /* location of the config, for messages */
    cJSON *type;                /* description of the config's model_type */
    const char *name;           /* name of the type, which becomes the name of the network */
    const cs_zoo_entry *family;
    const cs_field *fields; /* keys of the family, with the type's values as defaults */
    void *params;           /* struct of the family */
    /* object with the value of each key of the config that the type reads */
    cJSON *values;
    cs_arena arena;
    cs_error *error;
} reading;

static const char *text_of(const cJSON *value)
{
    return cJSON_IsString(value) ? value->valuestring : "";
}

/* ---- the type ---- */

/* Counts the keys of a type that the config has. Each required key that the config lacks counts
 * -1. */
static int count_known(const cJSON *type, const cJSON *config)
{
    int n = 0;
    const cJSON *spec;
    cJSON_ArrayForEach(spec, cs_json_member(type, "keys"))
    {
        const bool required = cJSON_IsString(spec) || !cs_json_member(spec, "default");
        n += cs_json_member(config, spec->string) ? 1 : required ? -1 : 0;
    }
    return n;
}

/* Lists the keys of the config that other types read, but not the nearest type. */
static void list_missed(const cJSON *nearest, const cJSON *config, char *text, size_t size)
{
    const char *name;
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; (name = cs_facts_name(cs_model_type_kind.folder, i)); i++) {
        cJSON *type = NULL;
        const cJSON *spec;
        if (cs_facts_load(&cs_model_type_kind, name, NULL, &type, NULL) != CS_OK)
            continue;
        cJSON_ArrayForEach(spec, cs_json_member(type, "keys"))
        {
            char quoted[64];
            snprintf(quoted, sizeof(quoted), "%s%.40s", used > 0 ? ", " : "", spec->string);
            if (cs_json_member(config, spec->string) && used + sizeof(quoted) < size &&
                !cs_json_member(cs_json_member(nearest, "keys"), spec->string) &&
                !strstr(text, spec->string))
                used += (size_t)snprintf(text + used, size - used, "%s", quoted);
        }
        cJSON_Delete(type);
    }
}

/* Reports an unknown type. The message names the nearest known type, which shares the most keys
 * with the config, and the keys of the config that the nearest type does not read. */
static cs_status unknown_type(const reading *r, const char *given)
{
    const cs_json_place key = {.up = r->place, .key = "model_type"};
    const char *name;
    char best[64] = "", missed[400] = "";
    /* most keys that a type shares with the config; number of keys of the nearest type */
    int most = 0, least = 0;
    cJSON *nearest = NULL;
    cs_guess guess;
    cs_guess_init(&guess, given);
    for (size_t i = 0; (name = cs_facts_name(cs_model_type_kind.folder, i)); i++) {
        cJSON *type = NULL;
        cs_guess_add(&guess, name);
        if (cs_facts_load(&cs_model_type_kind, name, NULL, &type, NULL) != CS_OK)
            continue;
        const int n = count_known(type, r->config);
        const int size = cJSON_GetArraySize(cs_json_member(type, "keys"));
        if (n > most || (n == most && n > 0 && size < least)) {
            most = n;
            least = size;
            cJSON_Delete(nearest);
            nearest = type;
            type = NULL;
            snprintf(best, sizeof(best), "%s", name);
        }
        cJSON_Delete(type);
    }
    snprintf(guess.known, sizeof(guess.known), "`sim list model-types` has them");
    if (nearest)
        list_missed(nearest, r->config, missed, sizeof(missed));
    cJSON_Delete(nearest);
    if (!*best)
        return cs_json_invalid(&key, r->error, "unknown architecture %s", cs_guess_text(&guess));
    return cs_json_invalid(&key, r->error,
                           "unknown architecture %s; \"%s\" has its keys%s%s: describe "
                           "it in a file that is like it (%s)",
                           cs_guess_text(&guess), best, *missed ? " except " : "", missed,
                           cs_model_type_kind.page);
}

static cs_status load_type(reading *r, const char *file)
{
    const cJSON *given = cs_json_member(r->config, "model_type");
    const cs_json_place key = {.up = r->place, .key = "model_type"};
    const char *name = cJSON_IsString(given) ? given->valuestring : "";
    const bool is_file = cs_facts_is_file(name);
    cs_error why;
    cs_error_init(&why);
    if (!cJSON_IsObject(r->config))
        return cs_json_invalid(r->place, r->error,
                               "must be an object, the config.json of transformers (got %s)",
                               cs_json_kind(r->config));
    if (!is_file && !cs_facts_text(cs_model_type_kind.folder, name))
        return unknown_type(r, name);
    cJSON *root;
    if (cs_facts_load(&cs_model_type_kind, name, file, &root, &why) != CS_OK)
        return cs_json_pass_on(&key, &why, r->error);
    r->type = root;
    const cs_json_place type = {.file = name};
    const cs_json_place family = {.up = &type, .key = "family"};
    const cs_json_place parameters = {.up = &type, .key = "parameters"};
    const char *of = cJSON_GetStringValue(cs_json_member(r->type, "family"));
    r->name = is_file ? text_of(cs_json_member(r->type, "name")) : name;
    if (cs_zoo_find(of ? of : "", &r->arena, &r->family, &why) != CS_OK)
        return cs_json_pass_on(&family, &why, r->error);
    r->params = cs_arena_alloc(&r->arena, 1, r->family->params_size);
    if (!r->params)
        return cs_error_no_memory(r->error);
    CS_TRY(cs_zoo_defaults(r->family, cs_json_member(r->type, "parameters"), &parameters, &r->arena,
                           &r->fields, r->error));
    return cs_field_read(NULL, r->place, (const cs_field *const[]){r->fields, NULL},
                         (void *const[]){r->params}, &r->arena, r->error);
}

/* ---- keys of the config ---- */

/* Copies a key's value, replaced as its description says. Returns NULL if the config lacks the key
 * and the type has no default for it. */
static cJSON *copy_value(const reading *r, const cJSON *spec, cs_status *status)
{
    const cJSON *given = cs_json_member(r->config, spec->string);
    const cJSON *counted = cs_json_member(r->config, text_of(cs_json_member(spec, "count")));
    const cJSON *null = cs_json_member(spec, "null"), *values = cs_json_member(spec, "values");
    if (!given && cJSON_GetArraySize(counted) > 0)
        return cJSON_CreateNumber(cJSON_GetArraySize(counted));
    if (cJSON_IsNull(given) && null)
        return cJSON_Duplicate(null, true);
    const cJSON *value = given && !cJSON_IsNull(given) ? given : cs_json_member(spec, "default");
    if (values && cJSON_IsString(value)) {
        const cJSON *replaced = cs_json_member(values, value->valuestring), *each;
        const cs_json_place key = {.up = r->place, .key = spec->string};
        cs_guess guess;
        cs_guess_init(&guess, value->valuestring);
        cJSON_ArrayForEach(each, values) cs_guess_add(&guess, each->string);
        if (!replaced)
            *status = cs_json_invalid(&key, r->error, "unknown value %s", cs_guess_text(&guess));
        value = replaced;
    }
    return value ? cJSON_Duplicate(value, true) : NULL;
}

/* Reads the keys of the config: each gives a key of the family, or a size that the rules below
 * use. */
static cs_status read_keys(reading *r)
{
    static const cs_field size = {.type = CS_FIELD_COUNT, .max = SIZE_MAX_};
    const cJSON *keys = cs_json_member(r->type, "keys"), *spec;
    const size_t n = (size_t)cJSON_GetArraySize(keys);
    cs_field *table = cs_arena_alloc(&r->arena, n + 1, sizeof(*table));
    cs_field *others = cs_arena_alloc(&r->arena, n + 1, sizeof(*others));
    size_t n_table = 0, n_others = 0;
    uint32_t unused;
    cs_status status = CS_OK;
    r->values = cJSON_CreateObject();
    if (!table || !others || !r->values)
        return cs_error_no_memory(r->error);
    cJSON_ArrayForEach(spec, keys)
    {
        const char *target = cJSON_IsString(spec)
                                 ? spec->valuestring
                                 : cJSON_GetStringValue(cs_json_member(spec, "key"));
        const cs_field *field = target ? cs_field_find(r->fields, target) : &size;
        const bool limit = cJSON_IsTrue(cs_json_member(spec, "limit"));
        if (!field)
            return cs_error_add(r->error, CS_INVALID,
                                "%s: /keys/%s: \"%s\" is not a key of the family \"%s\"", r->name,
                                spec->string, target, r->family->name);
        cs_field *made = target && !limit ? &table[n_table++] : &others[n_others++];
        *made = target && !limit ? *field : size;
        made->name = made->doc = spec->string;
        made->fallback = NULL;
        cJSON *value = copy_value(r, spec, &status);
        if (value && !cJSON_AddItemToObject(r->values, spec->string, value)) {
            cJSON_Delete(value);
            return cs_error_no_memory(r->error);
        }
    }
    if (status != CS_OK)
        return status;
    return cs_field_read(r->values, r->place, (const cs_field *const[]){table, others, NULL},
                         (void *const[]){r->params, &unused}, &r->arena, r->error);
}

/* Reports each key whose value would need an unsupported network. */
static cs_status check_fixed(const reading *r)
{
    cs_status status = CS_OK;
    const cJSON *fixed;
    cJSON_ArrayForEach(fixed, cs_json_member(r->type, "fixed"))
    {
        const cs_json_place key = {.up = r->place, .key = fixed->string};
        const cJSON *member = cs_json_member(r->config, fixed->string);
        char *text = member && !cJSON_IsNull(member) ? cJSON_PrintUnformatted(member) : NULL;
        char *must = cJSON_PrintUnformatted(fixed);
        if (text && must && strcmp(text, must) != 0)
            status = cs_json_invalid(&key, r->error,
                                     "must be %s, all that is supported (got %.64s)", must, text);
        free(text);
        free(must);
    }
    return status;
}

static double number_of(const reading *r, const char *key)
{
    const cJSON *value = cs_json_member(r->values, key);
    return cJSON_IsNumber(value) ? value->valuedouble : 0;
}

/* Checks that two products of sizes are equal, for formats that state a size twice. */
static cs_status check_products(const reading *r)
{
    const cJSON *sides = cs_json_member(r->type, "products");
    char texts[2][160];
    double products[2] = {1, 1};
    for (int side = 0; side < 2 && sides; side++) {
        const cJSON *each;
        texts[side][0] = '\0';
        cJSON_ArrayForEach(each, cJSON_GetArrayItem(sides, side))
        {
            const size_t used = strlen(texts[side]);
            products[side] *= number_of(r, text_of(each));
            snprintf(texts[side] + used, sizeof(texts[side]) - used, "%s%.40s, %.0f",
                     used > 0 ? ", times " : "", text_of(each), number_of(r, text_of(each)));
        }
    }
    if (products[0] == products[1])
        return CS_OK;
    return cs_json_invalid(r->place, r->error, "%s, must be %s", texts[0], texts[1]);
}

/* ---- layers of several kinds ---- */

/* Sets the letters of layers from a list in the config that names the kind of each layer. */
static cs_status take_types(const reading *r, const cJSON *rule, char *letters, uint32_t layers)
{
    const char *name = cJSON_GetStringValue(cs_json_member(rule, "types"));
    const cJSON *types = name ? cs_json_member(r->config, name) : NULL, *each;
    const cs_json_place key = {.up = r->place, .key = name};
    int i = 0;
    if (!types || cJSON_IsNull(types))
        return CS_OK;
    if (!cJSON_IsArray(types))
        return cs_json_invalid(&key, r->error, "must be a list (got %s)", cs_json_kind(types));
    cJSON_ArrayForEach(each, types)
    {
        const cs_json_place at = {.up = &key, .index = i};
        const char *word = text_of(each);
        const cJSON *known, *kinds = cs_json_member(rule, "letters");
        const char *letter = cJSON_GetStringValue(cs_json_member(kinds, word));
        cs_guess guess;
        cs_guess_init(&guess, word);
        cJSON_ArrayForEach(known, kinds) cs_guess_add(&guess, known->string);
        if (!letter)
            return cs_json_invalid(&at, r->error, "unknown value %s", cs_guess_text(&guess));
        if ((uint32_t)i < layers)
            letters[i] = *letter;
        i++;
    }
    if ((uint32_t)i != layers)
        return cs_json_invalid(&key, r->error,
                               "must have an element for each of the %" PRIu32 " layers (got %d)",
                               layers, i);
    return CS_OK;
}

/* Sets the letter of the layers whose numbers the config lists. */
static cs_status take_numbers(const reading *r, const cJSON *rule, char *letters, uint32_t layers)
{
    const char *name = cJSON_GetStringValue(cs_json_member(rule, "numbers"));
    const char *letter = cJSON_GetStringValue(cs_json_member(rule, "letter"));
    const cJSON *numbers = name ? cs_json_member(r->config, name) : NULL, *each;
    const cs_json_place key = {.up = r->place, .key = name};
    if (!numbers || cJSON_IsNull(numbers))
        return CS_OK;
    if (!cJSON_IsArray(numbers))
        return cs_json_invalid(&key, r->error, "must be a list (got %s)", cs_json_kind(numbers));
    cJSON_ArrayForEach(each, numbers)
    {
        if (!cJSON_IsNumber(each) || each->valuedouble < 0 || each->valuedouble >= layers)
            return cs_json_invalid(&key, r->error, "must be numbers of layers, below %" PRIu32,
                                   layers);
        letters[(size_t)each->valuedouble] = letter ? *letter : 'f';
    }
    return CS_OK;
}

/* Makes the family's "pattern" by the rule of the type:
 *
 *     {"else": "wf"}                  letters, repeated; default "f"
 *     {"after": KEY, "if": FLAG}      'w' from layer KEY on, if FLAG is true and there is a window
 *     {"types": KEY, "letters": {}}   KEY is a list in the config with the kind of each layer
 *     {"numbers": KEY, "letter": "f"} KEY is a list in the config of the layers with this letter */
static cs_status read_pattern(reading *r)
{
    const cJSON *rule = cs_json_member(r->type, "pattern");
    const cs_field *layers_field = cs_field_find(r->fields, "layers");
    const cs_field *pattern_field = cs_field_find(r->fields, "pattern");
    const cs_field *window_field = cs_field_find(r->fields, "window");
    if (!rule || !layers_field || !pattern_field || !window_field)
        return CS_OK;
    const uint32_t layers = *(uint32_t *)((char *)r->params + layers_field->offset);
    const uint32_t window = *(uint32_t *)((char *)r->params + window_field->offset);
    const char *stated = text_of(cs_json_member(rule, "else")), *others = *stated ? stated : "f";
    const char *flag = cJSON_GetStringValue(cs_json_member(rule, "if"));
    const double first = number_of(r, text_of(cs_json_member(rule, "after")));
    const bool windows = flag && cJSON_IsTrue(cs_json_member(r->config, flag)) && window > 0;
    char *letters = cs_arena_alloc(&r->arena, MOST_LAYERS + 1, 1);
    if (!letters)
        return cs_error_no_memory(r->error);
    for (uint32_t i = 0; i < layers; i++)
        letters[i] = windows && i >= first ? 'w' : others[i % strlen(others)];
    CS_TRY(take_types(r, rule, letters, layers));
    CS_TRY(take_numbers(r, rule, letters, layers));
    *(const char **)((char *)r->params + pattern_field->offset) = letters;
    return CS_OK;
}

/* ---- what the user adds ---- */

static uint32_t *count_at(const reading *r, const char *key)
{
    const cs_field *field = cs_field_find(r->fields, key);
    return field ? (uint32_t *)((char *)r->params + field->offset) : NULL;
}

/* Returns the key of the config that limits a key of the family; NULL: no limit. */
static const cJSON *limit_of(const reading *r, const char *key)
{
    const cJSON *spec;
    cJSON_ArrayForEach(spec, cs_json_member(r->type, "keys"))
    {
        if (cJSON_IsTrue(cs_json_member(spec, "limit")) &&
            strcmp(text_of(cs_json_member(spec, "key")), key) == 0)
            return spec;
    }
    return NULL;
}

static cs_status read_additions(reading *r, const cJSON *parameters, const cs_json_place *place)
{
    static const char *const keys[] = {"sequence", "attention", "decoder_sequence", "capacity",
                                       "next_tokens"};
    cs_field table[sizeof(keys) / sizeof(keys[0]) + 1] = {{0}};
    size_t n = 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const cs_field *field = cs_field_find(r->fields, keys[i]);
        if (!field || (strcmp(keys[i], "next_tokens") == 0 && !limit_of(r, keys[i])))
            continue;
        table[n] = *field;
        if (strstr(keys[i], "sequence")) {
            table[n].fallback = "0";
            table[n].min = 0;
        }
        n++;
    }
    CS_TRY(cs_field_read(parameters, place, (const cs_field *const[]){table, NULL},
                         (void *const[]){r->params}, &r->arena, r->error));
    uint32_t *sequence = count_at(r, "sequence"), *decoder = count_at(r, "decoder_sequence");
    const double positions = number_of(r, text_of(cs_json_member(r->type, "sequence")));
    if (sequence && *sequence == 0)
        *sequence =
            positions > 0 && positions < LONGEST_SEQUENCE ? (uint32_t)positions : LONGEST_SEQUENCE;
    if (decoder && *decoder == 0)
        *decoder = *sequence;
    const cJSON *limit = limit_of(r, "next_tokens");
    const double most = limit ? number_of(r, limit->string) : 0;
    const cs_json_place key = {.up = place, .key = "next_tokens"};
    if (limit && *count_at(r, "next_tokens") > most)
        return cs_json_invalid(&key, r->error, "must be at most %s, %.0f (got %" PRIu32 ")",
                               limit->string, most, *count_at(r, "next_tokens"));
    return CS_OK;
}

/* Takes the precision of the stored weights as the default precision of training. */
static void take_precision(const cJSON *root, cs_net *net)
{
    static const struct {
        const char *name;
        cs_precision precision;
    } rows[] = {{"float32", CS_PRECISION_FP32},
                {"float16", CS_PRECISION_FP16},
                {"bfloat16", CS_PRECISION_BF16}};
    const cJSON *type = cs_json_member(root, "torch_dtype");
    type = type ? type : cs_json_member(root, "dtype"); /* name in newer versions */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && cJSON_IsString(type); i++) {
        if (strcmp(type->valuestring, rows[i].name) != 0)
            continue;
        net->precision = rows[i].precision;
        net->has_precision = true;
    }
}

static cs_status build(reading *r, const cJSON *parameters, const cs_json_place *place, cs_net *net)
{
    CS_TRY(read_keys(r));
    CS_TRY(check_fixed(r));
    CS_TRY(check_products(r));
    CS_TRY(read_pattern(r));
    CS_TRY(read_additions(r, parameters, place));
    cs_net made;
    cs_net_begin(&made, r->name, r->error);
    made.place = r->place;
    r->family->build(&made, r->family->variant, r->params);
    cs_status status = cs_net_end(&made);
    if (status != CS_OK) {
        cs_net_finish(&made);
        return status;
    }
    take_precision(r->config, &made);
    *net = made;
    return CS_OK;
}

cs_status cs_huggingface_read(const cJSON *root, const char *file, const cJSON *parameters,
                              const cs_json_place *place, cs_net *net, cs_error *error)
{
    const cs_json_place top = {.file = file};
    reading r = {.config = root, .place = &top, .error = error};
    cs_arena_init(&r.arena);
    cs_status status = load_type(&r, file);
    if (status == CS_OK)
        status = build(&r, parameters, place, net);
    cJSON_Delete(r.values);
    cJSON_Delete(r.type);
    cs_arena_finish(&r.arena);
    return status;
}

cs_status cs_huggingface_load(const char *path, const cJSON *parameters, const cs_json_place *place,
                              cs_net *net, cs_error *error)
{
    cJSON *root;
    CS_TRY(cs_json_load(path, &root, error));
    cs_status status = cs_huggingface_read(root, path, parameters, place, net, error);
    cJSON_Delete(root);
    return status;
}

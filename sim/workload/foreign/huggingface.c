#include "sim/workload/foreign/huggingface.h"

#include "sim/base/text.h"
#include "sim/workload/foreign/huggingface-families.h"
#include "sim/workload/zoo/families.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST_SEQUENCE = 4096 };

static const cs_field addition_fields[] = {
    {"sequence", CS_FIELD_COUNT, offsetof(cs_config_additions, sequence), .fallback = "0",
     .max = CS_CONFIG_SIZE_MAX,
     .doc = "tokens of a sample; 0: as many as there are positions, 4096 at most"},
    {"attention", CS_FIELD_CHOICE, offsetof(cs_config_additions, kernel), .fallback = "flash",
     .choices = cs_attention_kernels, .doc = "a fused kernel, or one that keeps the weights"},
    {"decoder_sequence", CS_FIELD_COUNT, offsetof(cs_config_additions, decoder_sequence),
     .fallback = "0", .max = CS_CONFIG_SIZE_MAX,
     .doc = "tokens that a decoder beside an encoder reads; 0: as many as the encoder"},
    {"capacity", CS_FIELD_NUMBER, offsetof(cs_config_additions, capacity), .fallback = "0",
     .max = CS_CONFIG_SIZE_MAX,
     .doc = "capacity factor: rows that each expert computes, padding included, relative to an "
            "equal share; 0: as many as it gets"},
    {"next_tokens", CS_FIELD_COUNT, offsetof(cs_config_additions, next_tokens), .fallback = "0",
     .max = CS_CONFIG_SIZE_MAX,
     .doc = "modules of multi-token prediction, at most num_nextn_predict_layers"},
    {0},
};

static cs_status find_family(const cJSON *root, const cs_json_place *place,
                             const cs_config_family **family, cs_error *error)
{
    const cJSON *type = cs_json_member(root, "model_type");
    cs_json_place key = {.up = place, .key = "model_type"};
    cs_guess guess;
    cs_guess_init(&guess, cJSON_IsString(type) ? type->valuestring : "");
    for (const cs_config_family *f = cs_config_families; f->type; f++) {
        if (cJSON_IsString(type) && strcmp(type->valuestring, f->type) == 0) {
            *family = f;
            return CS_OK;
        }
        cs_guess_add(&guess, f->type);
    }
    if (!cJSON_IsObject(root))
        return cs_json_invalid(place, error,
                               "must be an object, the config.json of transformers "
                               "(got %s)",
                               cs_json_kind(root));
    return cs_json_invalid(&key, error, "unknown architecture %s", cs_guess_text(&guess));
}

/* ---- reading ---- */

/* The members that the table knows, null ones left out: a file has many others. NULL when memory
 * runs out. */
static cJSON *pick(const cJSON *root, const cs_field *fields)
{
    cJSON *picked = cJSON_CreateObject();
    for (; picked && fields->name; fields++) {
        const cJSON *member = cs_json_member(root, fields->name);
        if (!member || cJSON_IsNull(member))
            continue;
        cJSON *copy = cJSON_Duplicate(member, true);
        if (!copy || !cJSON_AddItemToObject(picked, fields->name, copy)) {
            cJSON_Delete(copy);
            cJSON_Delete(picked);
            return NULL;
        }
    }
    return picked;
}

/* A classifier's file names its classes instead of counting them. */
static void count_labels(const cJSON *root, cs_config *c)
{
    const cJSON *labels = cs_json_member(root, "id2label");
    int n = cJSON_IsObject(labels) ? cJSON_GetArraySize(labels) : 0;
    if (n > 0 && !cs_json_member(root, "num_labels"))
        c->labels = (uint32_t)n;
}

/* One message for each value that would make another network. */
static cs_status check_fixed(const cJSON *root, const cs_json_place *place,
                             const cs_config_fixed *fixed, cs_error *error)
{
    cs_status status = CS_OK;
    for (; fixed && fixed->key; fixed++) {
        const cs_json_place key = {.up = place, .key = fixed->key};
        const cJSON *member = cs_json_member(root, fixed->key);
        char *text = member && !cJSON_IsNull(member) ? cJSON_PrintUnformatted(member) : NULL;
        if (text && strcmp(text, fixed->value) != 0)
            status = cs_json_invalid(&key, error, "must be %s, all that is supported (got %.64s)",
                                     fixed->value, text);
        free(text);
    }
    return status;
}

static void take_nulls(const cJSON *root, cs_config *c)
{
    for (const cs_config_nullable *n = cs_config_nullables; n->key; n++)
        if (cJSON_IsNull(cs_json_member(root, n->key)))
            *(uint32_t *)((char *)c + n->offset) = 0;
}

static cs_status read_config(const cJSON *root, const cs_json_place *place,
                             const cs_config_family *family, cs_arena *arena, cs_config *c,
                             cs_error *error)
{
    cJSON *picked = pick(root, family->fields);
    cs_status status =
        picked ? cs_field_read(picked, place, (const cs_field *const[]){family->fields, NULL},
                               (void *const[]){c}, arena, error)
               : cs_error_no_memory(error);
    cJSON_Delete(picked);
    count_labels(root, c);
    take_nulls(root, c);
    const cs_status fixed = check_fixed(root, place, family->fixed, error);
    return status == CS_OK ? fixed : status;
}

/* What goes with some architectures only. */
static cs_status check_additions(const cs_json_place *place, const cs_config *c,
                                 const cs_config_additions *more, cs_error *error)
{
    const cs_json_place capacity = {.up = place, .key = "capacity"};
    const cs_json_place decoder = {.up = place, .key = "decoder_sequence"};
    const cs_json_place next_tokens = {.up = place, .key = "next_tokens"};
    if (more->capacity > 0 && c->experts == 0)
        return cs_json_invalid(&capacity, error, "goes with experts only");
    if (more->decoder_sequence > 0 && c->buckets == 0)
        return cs_json_invalid(&decoder, error, "goes with an encoder and a decoder only");
    if (more->next_tokens > c->next_tokens)
        return cs_json_invalid(&next_tokens, error,
                               "must be at most num_nextn_predict_layers, %u (got %u)",
                               c->next_tokens, more->next_tokens);
    return CS_OK;
}

static cs_status read_additions(const cJSON *parameters, const cs_json_place *place,
                                const cs_config *c, cs_arena *arena, cs_config_additions *more,
                                cs_error *error)
{
    CS_TRY(cs_field_read(parameters, place, (const cs_field *const[]){addition_fields, NULL},
                         (void *const[]){more}, arena, error));
    if (more->sequence == 0 && c->positions > 0 && c->positions < LONGEST_SEQUENCE)
        more->sequence = c->positions;
    if (more->sequence == 0)
        more->sequence = LONGEST_SEQUENCE;
    return check_additions(place, c, more, error);
}

/* What the weights are stored in, which is what is trained in where nobody says otherwise. */
static void take_precision(const cJSON *root, cs_net *net)
{
    static const struct {
        const char *name;
        cs_precision precision;
    } rows[] = {{"float32", CS_PRECISION_FP32},
                {"float16", CS_PRECISION_FP16},
                {"bfloat16", CS_PRECISION_BF16}};
    const cJSON *type = cs_json_member(root, "torch_dtype");
    type = type ? type : cs_json_member(root, "dtype"); /* as newer versions write it */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && cJSON_IsString(type); i++) {
        if (strcmp(type->valuestring, rows[i].name) != 0)
            continue;
        net->precision = rows[i].precision;
        net->has_precision = true;
    }
}

static cs_status build(const cs_config_family *family, const cs_json_place *top, const cs_config *c,
                       const cs_config_additions *more, cs_net *net, cs_error *error)
{
    cs_net made;
    cs_net_begin(&made, family->type, error);
    made.place = top;
    family->build(&made, c, more);
    cs_status status = cs_net_end(&made);
    if (status != CS_OK) {
        cs_net_finish(&made);
        return status;
    }
    *net = made;
    return CS_OK;
}

cs_status cs_huggingface_read(const cJSON *root, const char *file, const cJSON *parameters,
                              const cs_json_place *place, cs_net *net, cs_error *error)
{
    const cs_json_place top = {.file = file};
    const cs_config_family *family = NULL;
    cs_config c = {0};
    cs_config_additions more = {0};
    cs_arena arena;
    CS_TRY(find_family(root, &top, &family, error));
    cs_arena_init(&arena);
    cs_status status = read_config(root, &top, family, &arena, &c, error);
    if (status == CS_OK)
        status = read_additions(parameters, place, &c, &arena, &more, error);
    if (status == CS_OK)
        status = build(family, &top, &c, &more, net, error);
    if (status == CS_OK)
        take_precision(root, net);
    cs_arena_finish(&arena);
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

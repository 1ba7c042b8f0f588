#include "sim/workload/foreign/huggingface.h"

#include "sim/base/field.h"
#include "sim/base/text.h"
#include "sim/workload/zoo/families.h"

#include <string.h>

enum { LARGEST = 1 << 20, MOST_LAYERS = 4096, LONGEST_SEQUENCE = 4096 };

/* What the files of all families tell, each under names of its own. */
typedef struct config {
    uint32_t layers, hidden, heads, kv_heads, head, intermediate, vocabulary, positions, types;
    uint32_t image, patch, channels, labels;
    double dropout;
    bool tied, bias;
} config;

/* What the user adds. */
typedef struct additions {
    uint32_t sequence; /* 0: as many as there are positions, LONGEST_SEQUENCE at most */
    uint32_t kernel;
} additions;

static const cs_field addition_fields[] = {
    {"sequence", CS_FIELD_COUNT, offsetof(additions, sequence), .fallback = "0", .max = LARGEST,
     .doc = "tokens of a sample; 0: as many as there are positions, 4096 at most"},
    {"attention", CS_FIELD_CHOICE, offsetof(additions, kernel), .fallback = "flash",
     .choices = cs_attention_kernels, .doc = "a fused kernel, or one that keeps the weights"},
    {0},
};

#define SIZE(key, member, fallback_)                                                               \
    {                                                                                              \
        key, CS_FIELD_COUNT, offsetof(config, member), .fallback = fallback_, .min = 1,            \
                                                       .max = LARGEST, .doc = key                  \
    }

#define OPTIONAL(key, member)                                                                      \
    {                                                                                              \
        key, CS_FIELD_COUNT, offsetof(config, member), .fallback = "0", .max = LARGEST, .doc = key \
    }

#define LAYERS(key)                                                                                \
    {                                                                                              \
        key, CS_FIELD_COUNT, offsetof(config, layers), .min = 1, .max = MOST_LAYERS, .doc = key    \
    }

#define DROPOUT(key, fallback_)                                                                    \
    {                                                                                              \
        key, CS_FIELD_NUMBER, offsetof(config, dropout), .fallback = fallback_, .max = 1,          \
                                                         .doc = key                                \
    }

#define FLAG(key, member, fallback_)                                                               \
    {                                                                                              \
        key, CS_FIELD_BOOL, offsetof(config, member), .fallback = fallback_, .doc = key            \
    }

static const cs_field gpt2_fields[] = {
    LAYERS("n_layer"),
    SIZE("n_embd", hidden, NULL),
    SIZE("n_head", heads, NULL),
    SIZE("vocab_size", vocabulary, NULL),
    OPTIONAL("n_inner", intermediate),
    SIZE("n_positions", positions, "1024"),
    DROPOUT("resid_pdrop", "0.1"),
    {0},
};

#define LLAMA_FIELDS(tied_)                                                                        \
    LAYERS("num_hidden_layers"), SIZE("hidden_size", hidden, NULL),                                \
        SIZE("num_attention_heads", heads, NULL), OPTIONAL("num_key_value_heads", kv_heads),       \
        OPTIONAL("head_dim", head), SIZE("intermediate_size", intermediate, NULL),                 \
        SIZE("vocab_size", vocabulary, NULL), SIZE("max_position_embeddings", positions, "2048"),  \
        FLAG("tie_word_embeddings", tied, tied_)

static const cs_field llama_fields[] = {
    LLAMA_FIELDS("false"), FLAG("attention_bias", bias, "false"), {0}};

/* Their files do not tell the bias: Mistral has none, Qwen2 one for queries, keys and values. */
static const cs_field mistral_fields[] = {LLAMA_FIELDS("false"), {0}};

static const cs_field bert_fields[] = {
    LAYERS("num_hidden_layers"),
    SIZE("hidden_size", hidden, NULL),
    SIZE("num_attention_heads", heads, NULL),
    SIZE("intermediate_size", intermediate, NULL),
    SIZE("vocab_size", vocabulary, NULL),
    SIZE("max_position_embeddings", positions, "512"),
    SIZE("type_vocab_size", types, "2"),
    DROPOUT("hidden_dropout_prob", "0.1"),
    {0},
};

static const cs_field vit_fields[] = {
    LAYERS("num_hidden_layers"),
    SIZE("hidden_size", hidden, NULL),
    SIZE("num_attention_heads", heads, NULL),
    SIZE("intermediate_size", intermediate, NULL),
    SIZE("image_size", image, "224"),
    SIZE("patch_size", patch, "16"),
    SIZE("num_channels", channels, "3"),
    SIZE("num_labels", labels, "2"),
    DROPOUT("hidden_dropout_prob", "0"),
    {0},
};

/* ---- families ---- */

static void build_gpt2(cs_net *net, const config *c, const additions *more)
{
    cs_gpt_build(net, &(cs_gpt){.layers = c->layers,
                                .hidden = c->hidden,
                                .heads = c->heads,
                                .sequence = more->sequence,
                                .vocabulary = c->vocabulary,
                                .positions = c->positions,
                                .intermediate = c->intermediate,
                                .dropout = c->dropout,
                                .kernel = more->kernel});
}

static void build_decoder(cs_net *net, const config *c, const additions *more, bool bias)
{
    cs_decoder_build(net, &(cs_decoder){.layers = c->layers,
                                        .hidden = c->hidden,
                                        .heads = c->heads,
                                        .kv_heads = c->kv_heads ? c->kv_heads : c->heads,
                                        .sequence = more->sequence,
                                        .vocabulary = c->vocabulary,
                                        .intermediate = c->intermediate,
                                        .head = c->head,
                                        .tied = c->tied,
                                        .style = {.bias = bias},
                                        .kernel = more->kernel});
}

static void build_llama(cs_net *net, const config *c, const additions *more)
{
    if (c->bias)
        cs_net_fail(net, "attention_bias must be false: a bias of the last projection of an "
                         "attention is not supported");
    build_decoder(net, c, more, false);
}

static void build_mistral(cs_net *net, const config *c, const additions *more)
{
    build_decoder(net, c, more, false);
}

static void build_qwen2(cs_net *net, const config *c, const additions *more)
{
    build_decoder(net, c, more, true);
}

static void build_bert(cs_net *net, const config *c, const additions *more)
{
    cs_bert_build(net, &(cs_bert){.layers = c->layers,
                                  .hidden = c->hidden,
                                  .heads = c->heads,
                                  .sequence = more->sequence,
                                  .vocabulary = c->vocabulary,
                                  .positions = c->positions,
                                  .types = c->types,
                                  .intermediate = c->intermediate,
                                  .dropout = c->dropout,
                                  .kernel = more->kernel});
}

static void build_vit(cs_net *net, const config *c, const additions *more)
{
    cs_vit_build(net, &(cs_vit){.image = c->image,
                                .patch = c->patch,
                                .channels = c->channels,
                                .layers = c->layers,
                                .hidden = c->hidden,
                                .heads = c->heads,
                                .intermediate = c->intermediate,
                                .classes = c->labels,
                                .dropout = c->dropout,
                                .kernel = more->kernel});
}

static const struct family {
    const char *type;
    const cs_field *fields;
    void (*build)(cs_net *net, const config *c, const additions *more);
} families[] = {
    {"gpt2", gpt2_fields, build_gpt2},          {"llama", llama_fields, build_llama},
    {"mistral", mistral_fields, build_mistral}, {"qwen2", mistral_fields, build_qwen2},
    {"bert", bert_fields, build_bert},          {"vit", vit_fields, build_vit},
};

enum { N_FAMILIES = sizeof(families) / sizeof(families[0]) };

/* "mixtral", "qwen2_moe": near in letters to what is known, and far from it. */
static bool has_experts(const char *type)
{
    return strcmp(type, "mixtral") == 0 || strstr(type, "moe");
}

static cs_status find_family(const cJSON *root, const cs_json_place *place,
                             const struct family **family, cs_error *error)
{
    const cJSON *type = cs_json_member(root, "model_type");
    cs_json_place key = {.up = place, .key = "model_type"};
    cs_guess guess;
    cs_guess_init(&guess, cJSON_IsString(type) ? type->valuestring : "");
    for (size_t i = 0; i < N_FAMILIES; i++) {
        if (cJSON_IsString(type) && strcmp(type->valuestring, families[i].type) == 0) {
            *family = &families[i];
            return CS_OK;
        }
        cs_guess_add(&guess, families[i].type);
    }
    if (!cJSON_IsObject(root))
        return cs_json_invalid(place, error,
                               "must be an object, the config.json of transformers "
                               "(got %s)",
                               cs_json_kind(root));
    if (cJSON_IsString(type) && has_experts(type->valuestring))
        return cs_json_invalid(&key, error,
                               "mixtures of experts are not supported (got \"%.64s\"); known: %s",
                               type->valuestring, guess.known);
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
static void count_labels(const cJSON *root, config *c)
{
    const cJSON *labels = cs_json_member(root, "id2label");
    int n = cJSON_IsObject(labels) ? cJSON_GetArraySize(labels) : 0;
    if (n > 0 && !cs_json_member(root, "num_labels"))
        c->labels = (uint32_t)n;
}

static cs_status read_config(const cJSON *root, const cs_json_place *place,
                             const struct family *family, config *c, cs_error *error)
{
    cs_arena arena;
    cs_arena_init(&arena);
    cJSON *picked = pick(root, family->fields);
    cs_status status =
        picked ? cs_field_read(picked, place, (const cs_field *const[]){family->fields, NULL},
                               (void *const[]){c}, &arena, error)
               : cs_error_no_memory(error);
    cJSON_Delete(picked);
    cs_arena_finish(&arena);
    count_labels(root, c);
    return status;
}

static cs_status read_additions(const cJSON *parameters, const cs_json_place *place,
                                const config *c, additions *more, cs_error *error)
{
    cs_arena arena;
    cs_arena_init(&arena);
    cs_status status =
        cs_field_read(parameters, place, (const cs_field *const[]){addition_fields, NULL},
                      (void *const[]){more}, &arena, error);
    cs_arena_finish(&arena);
    if (more->sequence == 0)
        more->sequence = c->positions < LONGEST_SEQUENCE ? c->positions : LONGEST_SEQUENCE;
    return status;
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

cs_status cs_huggingface_read(const cJSON *root, const char *file, const cJSON *parameters,
                              const cs_json_place *place, cs_net *net, cs_error *error)
{
    cs_json_place top = {.file = file};
    const struct family *family = NULL;
    config c = {0};
    additions more = {0};
    cs_net made;
    CS_TRY(find_family(root, &top, &family, error));
    CS_TRY(read_config(root, &top, family, &c, error));
    CS_TRY(read_additions(parameters, place, &c, &more, error));
    cs_net_begin(&made, family->type, error);
    made.place = &top;
    family->build(&made, &c, &more);
    cs_status status = cs_net_end(&made);
    if (status != CS_OK) {
        cs_net_finish(&made);
        return status;
    }
    take_precision(root, &made);
    *net = made;
    return CS_OK;
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

#define _GNU_SOURCE /* strcasestr */
#include "sim/recipe/points.h"

#include "sim/base/facts.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSION = 1 << 24, DEVICES = 1 << 20 };

#define AT(member) offsetof(cs_point_model, member)
#define NUMBER(key, what)                                                                          \
    {                                                                                              \
#key, CS_FIELD_COUNT, AT(key), .fallback = "0", .max = DIMENSION, .doc = what              \
    }
#define TEXT(key, what)                                                                            \
    {                                                                                              \
#key, CS_FIELD_TEXT, AT(key), .fallback = "", .doc = what                                  \
    }
#define FLAG(key, what)                                                                            \
    {                                                                                              \
#key, CS_FIELD_BOOL, AT(key), .fallback = "false", .doc = what                             \
    }

const cs_field cs_point_model_fields[] = {
    {"name", CS_FIELD_TEXT, AT(name), .doc = "name of the network"},
    {"kind", CS_FIELD_TEXT, AT(kind),
     .doc = "decoder, decoder-moe, encoder, encoder-decoder, encoder-decoder-moe or cnn"},
    NUMBER(layers, "number of blocks"),
    NUMBER(hidden, "hidden size: features of a token"),
    NUMBER(heads, "query heads"),
    NUMBER(kv_heads, "heads of keys and values; 0: as many as heads"),
    NUMBER(head_dim, "features of an attention head; 0: hidden / heads"),
    NUMBER(ffn, "intermediate size of an MLP"),
    NUMBER(vocab, "vocabulary size, before padding"),
    NUMBER(seq, "sequence length, tokens"),
    TEXT(act, "activation of the MLPs: gelu, swiglu, geglu or squared_relu"),
    TEXT(norm, "normalisation: layernorm or rmsnorm"),
    TEXT(pos, "position encoding: learned, rope, yarn, alibi or none"),
    FLAG(tied, "the last matrix is tied to the embedding"),
    FLAG(bias, "linear layers have biases"),
    FLAG(qk_norm, "queries and keys are normalised"),
    FLAG(mamba, "some layers are Mamba layers"),
    NUMBER(experts, "routed experts per layer"),
    NUMBER(topk, "number of experts that a token is routed to"),
    NUMBER(moe_ffn, "intermediate size of an expert"),
    NUMBER(shared_ffn, "intermediate size of the shared experts of a layer, all together"),
    NUMBER(dense_layers, "number of first layers that have an MLP instead of experts"),
    NUMBER(mtp_layers, "multi-token prediction: modules, each of which predicts one more token"),
    NUMBER(sliding_window, "sliding window, tokens"),
    NUMBER(sliding_every, "one of every so many layers has no window"),
    {"mla", CS_FIELD_JSON, AT(mla), .fallback = "",
     .doc = "latent attention: q_lora_rank, kv_lora_rank, qk_head_dim, qk_pos_emb_head_dim, "
            "v_head_dim",
     .shape = "{ranks}"},
    TEXT(unknown_architecture, "why the other keys are missing"),
    {0},
};

#undef AT
#define AT(member) offsetof(cs_point_hardware, member)

const cs_field cs_point_hardware_fields[] = {
    {"gpu", CS_FIELD_TEXT, AT(gpu),
     .doc = "name of the GPU as sim validate knows it (docs/reference/points.md)"},
    {"gpus", CS_FIELD_COUNT, AT(gpus), .min = 1, .max = DEVICES,
     .doc = "number of GPUs in the run"},
    NUMBER(gpus_per_node, "GPUs per node; 0: not stated"),
    {"memory_gb", CS_FIELD_NUMBER, AT(memory_gb), .fallback = "", .above_min = true,
     .doc = "memory of a GPU, GiB"},
    TEXT(intra, "links within a node, as text"),
    TEXT(inter, "links between nodes, as text"),
    {0},
};

#undef AT
#define AT(member) offsetof(cs_point_parallel, member)
#define SIZE(key, what)                                                                            \
    {                                                                                              \
#key, CS_FIELD_COUNT, AT(key), .fallback = "1", .min = 1, .max = DEVICES, .doc = what      \
    }

const cs_field cs_point_parallel_fields[] = {
    SIZE(tp, "tensor-parallel size"),
    SIZE(pp, "pipeline-parallel size"),
    SIZE(vpp, "stages per pipeline rank (virtual pipeline size)"),
    SIZE(dp, "data-parallel size of the dense layers, cp not included"),
    SIZE(cp, "context-parallel size"),
    SIZE(ep, "expert-parallel size"),
    NUMBER(etp, "expert-tensor-parallel size; 0: as tp"),
    {"zero", CS_FIELD_COUNT, AT(zero), .fallback = "0", .max = 3,
     .doc = "ZeRO stage; 0: nothing is sharded; 1: optimizer states; 2: gradients too; 3: weights "
            "too (FSDP)"},
    NUMBER(fsdp_group, "with zero: number of replicas to shard over; 0: all"),
    FLAG(sp, "sequence parallelism"),
    TEXT(cp_comm, "communication of context parallelism: p2p, a2a or all_gather"),
    {0},
};

#undef AT
#define AT(member) offsetof(cs_point_batch, member)

const cs_field cs_point_batch_fields[] = {
    NUMBER(global, "global batch: sequences per step"),
    NUMBER(micro, "sequences per micro-batch"),
    NUMBER(micro_batches, "micro-batches per replica and step"),
    {0},
};

#undef AT
#define AT(member) offsetof(cs_point_profile, member)

const cs_field cs_point_profile_fields[] = {
    {"F", CS_FIELD_NUMBER, AT(forward), .doc = "forward of a pipeline rank, ms"},
    {"B", CS_FIELD_NUMBER, AT(backward_input), .doc = "gradient of its input, ms"},
    {"W", CS_FIELD_NUMBER, AT(backward_weight), .doc = "gradients of its weights, ms"},
    {"comm", CS_FIELD_NUMBER, AT(message), .doc = "message between neighbouring ranks, ms"},
    {0},
};

#undef AT
#define AT(member) offsetof(cs_point_options, member)

static const cs_field blocks_field = {"blocks", CS_FIELD_COUNT, .max = DIMENSION};

const cs_field cs_point_options_fields[] = {
    {"flash_attention", CS_FIELD_JSON, AT(flash_attention), .fallback = "",
     .doc = "whether attention is a fused kernel", .shape = "true or false"},
    FLAG(lora, "only adapters are trained"),
    FLAG(offload, "something is offloaded to host memory"),
    FLAG(no_optimizer_step, "the measured step has no optimizer update"),
    FLAG(first_last_stage_one_layer_less, "the first and the last stage have one block less"),
    FLAG(dp_overlap, "gradients are reduced while the backward still runs"),
    FLAG(tp_overlap, "tensor-parallel collectives overlap with products"),
    FLAG(async_tp, "as tp_overlap, in torchtitan"),
    FLAG(float8_allgather, "weights are gathered in fp8, in torchtitan"),
    FLAG(compile, "a compiler (torch.compile, XLA) fuses memory-bound operators"),
    {"cuda_graphs", CS_FIELD_JSON, AT(cuda_graphs), .fallback = "",
     .doc = "whether kernels are launched by CUDA graphs, or whose graphs",
     .shape = "true, false or text"},
    FLAG(fused_cross_entropy,
         "the loss is a fused kernel that overwrites the logits with their gradients"),
    FLAG(moe_pad_to_capacity, "the input of each expert is padded to its capacity"),
    {"moe_capacity_factor", CS_FIELD_NUMBER, AT(moe_capacity_factor), .fallback = "0", .max = 1e6,
     .doc = "capacity factor: rows that an expert takes, relative to an equal share; 0: all that "
            "it gets"},
    {"moe_drop_tokens", CS_FIELD_JSON, AT(moe_drop_tokens), .fallback = "",
     .doc = "whether tokens beyond the capacity are dropped", .shape = "true or false"},
    {"moe_dispatcher", CS_FIELD_TEXT, AT(moe_dispatcher), .fallback = "",
     .doc = "how tokens reach experts: alltoall (each copy is sent by itself) or flex (once to "
            "each node, by DeepEP or HybridEP)"},
    NUMBER(packed_tokens, "tokens per sample, if several samples are packed into a sequence and do "
                          "not attend to each other; 0: not stated"),
    TEXT(grad_dtype, "type in which gradients are summed: fp32 or bf16"),
    TEXT(grad_reduce_dtype, "type in which FSDP reduces gradients, and keeps what it has reduced: "
                            "fp32 or bf16"),
    {"stage_layers", CS_FIELD_LIST, AT(stage_layers), .fallback = "[]", .of = &blocks_field,
     .doc = "number of blocks of each pipeline stage, from the first stage to the last"},
    {"stages_with_parts", CS_FIELD_LIST, AT(stages_with_parts), .fallback = "[]",
     .of = &blocks_field,
     .doc = "as stage_layers, where the embedding and the head count as a block each"},
    {"last_stage_layers", CS_FIELD_NUMBER, AT(last_stage_layers), .fallback = "", .max = DIMENSION,
     .doc = "number of blocks of the last stage; the other stages share the rest equally"},
    {"head_on_stage", CS_FIELD_NUMBER, AT(head_on_stage), .fallback = "", .max = DIMENSION,
     .doc = "stage, counted from 0, that has the head, if it is not the last one"},
    TEXT(quantization, "number format of frozen, quantised weights, such as nf4"),
    {"profiled_ms", CS_FIELD_OBJECT, AT(profiled_ms), .fallback = "", .of = cs_point_profile_fields,
     .size = sizeof(cs_point_profile),
     .doc = "measured times of forward and backward, instead of estimates", .shape = "{times}"},
    {0},
};

#undef AT
#define AT(member) offsetof(cs_point_measured, member)
#define MEASURED(key, member, what)                                                                \
    {                                                                                              \
        key, CS_FIELD_NUMBER, AT(member), .fallback = "", .above_min = true, .doc = what           \
    }

const cs_field cs_point_measured_fields[] = {
    MEASURED("step_time_s", step_time_s, "time per step, s"),
    MEASURED("samples_per_s", samples_per_s, "samples/s of all GPUs together"),
    MEASURED("tokens_per_s_per_gpu", tokens_per_s_per_gpu, "tokens/s per GPU"),
    MEASURED("peak_allocated_bytes", allocated,
             "torch.cuda.max_memory_allocated of the fullest GPU"),
    MEASURED("peak_reserved_bytes", reserved, "torch.cuda.max_memory_reserved of the fullest GPU"),
    MEASURED("peak_device_bytes", device,
             "peak as nvidia-smi shows it, or a peak that the source does not define"),
    {"per_rank", CS_FIELD_JSON, AT(per_rank), .fallback = "", .doc = "peaks of individual ranks",
     .shape = "{\"0\": {\"allocated\": bytes}, ...}"},
    {"oom", CS_FIELD_JSON, AT(oom), .fallback = "", .doc = "whether the run ran out of memory",
     .shape = "true or false"},
    {0},
};

#undef AT
#define AT(member) offsetof(cs_point, member)
#define PART(key, type, what)                                                                      \
    {                                                                                              \
#key, CS_FIELD_OBJECT, AT(key), .of = cs_point_##key##_fields, .size = sizeof(type),       \
                                        .doc = what, .shape = "{" #key "}"                         \
    }

static const cs_field text_field = {"text", CS_FIELD_TEXT};

const cs_field cs_point_fields[] = {
    {"id", CS_FIELD_TEXT, AT(id), .doc = "unique name of the point, like dataset/what"},
    PART(model, cs_point_model, "the network"),
    PART(hardware, cs_point_hardware, "the GPUs and their links"),
    {"parallel", CS_FIELD_OBJECT, AT(parallel), .fallback = "{}", .of = cs_point_parallel_fields,
     .size = sizeof(cs_point_parallel), .doc = "parallel sizes", .shape = "{parallel}"},
    PART(batch, cs_point_batch, "batch sizes"),
    {"precision", CS_FIELD_TEXT, AT(precision),
     .doc = "precision of matrix products: fp32, tf32, fp16, bf16, fp8, mxfp8 or nvfp4"},
    {"recompute", CS_FIELD_TEXT, AT(recompute), .fallback = "unknown",
     .doc = "activation recomputation: none, full, block:N, selective:WHAT or unknown"},
    {"schedule", CS_FIELD_TEXT, AT(schedule), .fallback = "grad-accumulation",
     .doc = "grad-accumulation, 1f1b, interleaved_1f1b, gpipe, zb-1p, zb-2p, zb-v, dualpipe, "
            "pipedream or nf1b"},
    {"optimizer", CS_FIELD_TEXT, AT(optimizer), .fallback = "adam",
     .doc = "sgd, momentum, adam or muon"},
    TEXT(framework, "the training framework, whose conventions are used"),
    {"options", CS_FIELD_OBJECT, AT(options), .fallback = "{}", .of = cs_point_options_fields,
     .size = sizeof(cs_point_options), .doc = "other options of the run", .shape = "{options}"},
    PART(measured, cs_point_measured, "measured time and memory"),
    {"unknown", CS_FIELD_LIST, AT(unknown), .fallback = "[]", .of = &text_field,
     .doc = "what the source does not say, as text"},
    TEXT(quality, "A: exact and complete; B: rounded, or with an option taken from elsewhere; C: "
                  "something essential is missing or derived; A-memory: A, for memory only"),
    {"features", CS_FIELD_LIST, AT(features), .fallback = "[]", .of = &text_field,
     .doc = "tags by which errors are summarised"},
    {"peers", CS_FIELD_JSON, AT(peers), .fallback = "",
     .doc = "what other tools predict for the point",
     .shape = "{\"tool\": {\"step_time_s\": s}, ...}"},
    {"env", CS_FIELD_JSON, AT(env), .fallback = "",
     .doc = "environment variables of the run, as far as they are known",
     .shape = "{variable: value}"},
    {"args", CS_FIELD_JSON, AT(args), .fallback = "",
     .doc = "arguments of Megatron-LM, if the point is from one of its logs",
     .shape = "{argument: value}"},
    {0},
};

void cs_points_finish(cs_points *points)
{
    for (uint32_t i = 0; i < points->n_documents; i++)
        cJSON_Delete(points->documents[i]);
    free(points->documents);
    free(points->points);
    cs_arena_finish(&points->arena);
    *points = (cs_points){0};
}

/* Notes the options that no table knows: a prediction ignores them, and says so. */
static cs_status note_unread(const cJSON *value, cs_point *made, cs_arena *arena, cs_error *error)
{
    const cJSON *options = cs_json_member(value, "options");
    const char **names =
        cs_arena_alloc(arena, 1 + (size_t)cJSON_GetArraySize(options), sizeof(*names));
    if (!names)
        return cs_error_no_memory(error);
    made->unread.items = names;
    for (const cJSON *option = cJSON_IsObject(options) ? options->child : NULL; option;
         option = option->next)
        if (!cJSON_IsNull(option) && !cJSON_IsFalse(option) &&
            !cs_field_find(cs_point_options_fields, option->string)) {
            names[made->unread.n] = cs_arena_copy(arena, option->string);
            if (!names[made->unread.n++])
                return cs_error_no_memory(error);
        }
    return CS_OK;
}

/* Deletes members that the table does not have, and those that are null. */
static void keep_known(cJSON *object, const cs_field *table)
{
    for (cJSON *member = cJSON_IsObject(object) ? object->child : NULL, *next; member;
         member = next) {
        next = member->next;
        const cs_field *field = cs_field_find(table, member->string);
        if (!field || cJSON_IsNull(member))
            cJSON_Delete(cJSON_DetachItemViaPointer(object, member));
        else if (field->type == CS_FIELD_OBJECT)
            keep_known(member, field->of);
    }
}

static cs_status refuse_twice(const cs_points *points, const cs_point *made,
                              const cs_json_place *point, cs_error *error)
{
    const cs_json_place place = {.up = point, .key = "id"};
    char id[CS_TEXT_QUOTED_BYTES];
    for (uint32_t i = 0; i < points->n; i++)
        if (strcmp(points->points[i].id, made->id) == 0)
            return cs_json_invalid(&place, error, "must be unique: %s has a point %s as well",
                                   points->points[i].file, cs_text_quote(made->id, id, sizeof(id)));
    return CS_OK;
}

static cs_status check_kind(const cJSON *value, const cs_json_place *up, const char *key,
                            cJSON_bool (*is)(const cJSON *), const char *expected, cs_error *error)
{
    const cs_json_place place = {.up = up, .key = key};
    return !value || is(value) ? CS_OK : cs_json_invalid(&place, error, "must be %s", expected);
}

static cs_status check_dispatcher(const char *given, const cs_json_place *up, cs_error *error)
{
    const cs_json_place place = {.up = up, .key = "moe_dispatcher"};
    return !given || strcmp(given, "alltoall") == 0 || strcmp(given, "flex") == 0
               ? CS_OK
               : cs_json_invalid(&place, error, "must be alltoall or flex (got %s)", given);
}

/* The members whose form the tables leave open. */
static cs_status check_open(const cs_point *point, const cs_json_place *place, cs_error *error)
{
    const cs_json_place model = {.up = place, .key = "model"};
    const cs_json_place options = {.up = place, .key = "options"};
    const cs_json_place measured = {.up = place, .key = "measured"};
    const char *object = "an object", *truth = "true or false";
    CS_TRY(check_kind(point->model->mla, &model, "mla", cJSON_IsObject, object, error));
    CS_TRY(check_kind(point->options->flash_attention, &options, "flash_attention", cJSON_IsBool,
                      truth, error));
    CS_TRY(check_kind(point->options->moe_drop_tokens, &options, "moe_drop_tokens", cJSON_IsBool,
                      truth, error));
    CS_TRY(check_dispatcher(point->options->moe_dispatcher, &options, error));
    CS_TRY(check_kind(point->measured->oom, &measured, "oom", cJSON_IsBool, truth, error));
    CS_TRY(check_kind(point->measured->per_rank, &measured, "per_rank", cJSON_IsObject, object,
                      error));
    CS_TRY(check_kind(point->peers, place, "peers", cJSON_IsObject, object, error));
    CS_TRY(check_kind(point->env, place, "env", cJSON_IsObject, object, error));
    return check_kind(point->args, place, "args", cJSON_IsObject, object, error);
}

static bool add_copy(cJSON *object, const cJSON *member)
{
    cJSON *copy = cJSON_Duplicate(member, true);
    const bool added = copy && cJSON_AddItemToObject(object, member->string, copy);
    if (!added)
        cJSON_Delete(copy);
    return added;
}

/* Adds what the points of a file share to one of them, which may say otherwise, also null. False
 * when memory runs out. */
static bool add_common(cJSON *point, const cJSON *common)
{
    bool added = true;
    for (const cJSON *member = common ? common->child : NULL; member && added;
         member = member->next) {
        cJSON *own = cJSON_GetObjectItemCaseSensitive(point, member->string);
        if (!own)
            added = add_copy(point, member);
        else if (cJSON_IsObject(own) && cJSON_IsObject(member))
            added = add_common(own, member);
    }
    return added;
}

static cs_status add_point(cJSON *value, const cs_json_place *place, const char *dataset,
                           const cJSON *common, cs_points *points, cs_error *error)
{
    cs_point made = {.dataset = dataset};
    const cs_json_place *root = place->up->up;
    if (cJSON_IsObject(value) && !add_common(value, common))
        return cs_error_no_memory(error);
    CS_TRY(note_unread(value, &made, &points->arena, error));
    keep_known(value, cs_point_fields);
    CS_TRY(cs_field_read(value, place, (const cs_field *const[]){cs_point_fields, NULL},
                         (void *const[]){&made}, &points->arena, error));
    CS_TRY(check_open(&made, place, error));
    /* NeMo AutoModel trains with PyTorch's FSDP 2, not with Megatron Core (NVIDIA-NeMo/Automodel,
     * nemo_automodel/components/distributed/fsdp2.py) */
    if (made.framework && strcasestr(made.framework, "automodel"))
        made.framework = "PyTorch FSDP2 (NeMo AutoModel)";
    CS_TRY(refuse_twice(points, &made, place, error));
    made.file = cs_arena_copy(&points->arena, root->file);
    if (!made.file || !cs_vector_reserve((void **)&points->points, &points->capacity,
                                         points->n + UINT64_C(1), sizeof(made)))
        return cs_error_no_memory(error);
    points->points[points->n++] = made;
    return CS_OK;
}

static cs_status read_document(cJSON *document, const cs_json_place *root, cs_points *points,
                               cs_error *error)
{
    const cs_json_place list = {.up = root, .key = "points"};
    const cs_json_place schema = {.up = root, .key = "schema"};
    const cs_json_place named = {.up = root, .key = "dataset"};
    const char *version = cJSON_GetStringValue(cs_json_member(document, "schema"));
    const char *name = cJSON_GetStringValue(cs_json_member(document, "dataset"));
    const cJSON *common = cs_json_member(document, "common");
    const cJSON *values = cs_json_member(document, "points");
    if (!version || strcmp(version, "truth/1") != 0)
        return cs_json_invalid(&schema, error, "must be \"truth/1\" (docs/reference/points.md)");
    if (!name)
        return cs_json_invalid(&named, error, "must be a text: the name of the dataset");
    if (!cJSON_IsArray(values))
        return cs_json_invalid(&list, error, "must be a list of points");
    CS_TRY(check_kind(common, root, "common", cJSON_IsObject, "an object", error));
    const char *dataset = cs_arena_copy(&points->arena, name);
    if (!dataset)
        return cs_error_no_memory(error);
    cs_json_place place = {.up = &list};
    cs_status status = CS_OK;
    for (cJSON *value = values->child; value; value = value->next, place.index++) {
        const cs_status one = add_point(value, &place, dataset, common, points, error);
        status = status != CS_OK ? status : one;
    }
    return status;
}

cs_status cs_points_parse(const char *name, const char *text, size_t length, cs_points *points,
                          cs_error *error)
{
    const cs_json_place root = {.file = name};
    cJSON *document;
    CS_TRY(cs_json_parse(name, text, length, &document, error));
    if (!cs_vector_reserve((void **)&points->documents, &points->cap_documents,
                           points->n_documents + UINT64_C(1), sizeof(*points->documents))) {
        cJSON_Delete(document);
        return cs_error_no_memory(error);
    }
    points->documents[points->n_documents++] = document;
    return read_document(document, &root, points, error);
}

cs_status cs_points_load(const char *path, cs_points *points, cs_error *error)
{
    char *text;
    size_t length;
    CS_TRY(cs_file_read(path, CS_JSON_BYTES, &text, &length, error));
    const cs_status status = cs_points_parse(path, text, length, points, error);
    free(text);
    return status;
}

cs_status cs_points_load_shipped(cs_points *points, cs_error *error)
{
    cs_status status = CS_OK;
    for (const cs_facts_file *file = cs_facts_files; file->name && status == CS_OK; file++)
        if (strcmp(file->folder, "points") == 0) {
            char name[128];
            snprintf(name, sizeof(name), "points/%s.json", file->name);
            status = cs_points_parse(name, file->text, strlen(file->text), points, error);
        }
    return status;
}

const cs_point *cs_points_find(const cs_points *points, const char *id, cs_error *error)
{
    cs_guess guess;
    cs_guess_init(&guess, id);
    for (uint32_t i = 0; i < points->n; i++) {
        if (strcmp(points->points[i].id, id) == 0)
            return &points->points[i];
        cs_guess_add(&guess, points->points[i].id);
    }
    (void)cs_error_add(error, CS_USAGE, "no point has the id %s", cs_guess_text(&guess));
    return NULL;
}

double cs_point_step_time(const cs_point *point)
{
    const cs_point_measured *measured = point->measured;
    const double samples = point->batch->global;
    const double tokens = samples * point->model->seq;
    if (point->quality && strcmp(point->quality, "A-memory") == 0)
        return (double)NAN;
    if (isfinite(measured->step_time_s))
        return measured->step_time_s;
    if (samples > 0 && isfinite(measured->samples_per_s))
        return samples / measured->samples_per_s;
    if (tokens > 0 && isfinite(measured->tokens_per_s_per_gpu))
        return tokens / (measured->tokens_per_s_per_gpu * point->hardware->gpus);
    return (double)NAN;
}

bool cs_point_has(const cs_point *point, const char *feature)
{
    for (uint32_t i = 0; i < point->features.n; i++)
        if (strcmp(cs_point_text(&point->features, i), feature) == 0)
            return true;
    return false;
}

#include "sim/run/recipe/description.h"

#include "sim/base/text.h"

#include <stdio.h>
#include <string.h>

enum { DIMENSION = 1 << 24, DEVICES = 1 << 20 };

#define AT(member) offsetof(cs_description_model, member)
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

const cs_field cs_description_model_fields[] = {
    {"name", CS_FIELD_TEXT, AT(name), .fallback = "",
     .doc = "name of the network; it decides nothing, except for the kind cnn"},
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
#define AT(member) offsetof(cs_description_hardware, member)

const cs_field cs_description_hardware_fields[] = {
    {"gpu", CS_FIELD_TEXT, AT(gpu),
     .doc = "name of the GPU: one of `sim list devices`, or as CUDA, ROCm and people write it"},
    {"gpus", CS_FIELD_COUNT, AT(gpus), .min = 1, .max = DEVICES,
     .doc = "number of GPUs in the run"},
    NUMBER(gpus_per_node, "GPUs per node; 0: not stated"),
    {"memory_gb", CS_FIELD_NUMBER, AT(memory_gb), .fallback = "", .above_min = true,
     .doc = "memory of a GPU, GiB"},
    TEXT(intra, "links within a node, as text"),
    TEXT(inter, "links between nodes, as text: 8 x HDR, NDR 400 Gbit/s per GPU, 800 Gbit/s per "
                "node"),
    TEXT(machine, "machine, one of `sim list topologies`; else the usual one of the GPU"),
    NUMBER(adapters, "network adapters per node; 0: as in `inter`, or as the machine has"),
    {"adapter_bandwidth", CS_FIELD_BANDWIDTH, AT(adapter_bandwidth), .fallback = "0",
     .doc = "bandwidth of a network adapter; 0: as the machine has"},
    {0},
};

#undef AT
#define AT(member) offsetof(cs_description_parallel, member)
#define SIZE(key, what)                                                                            \
    {                                                                                              \
#key, CS_FIELD_COUNT, AT(key), .fallback = "1", .min = 1, .max = DEVICES, .doc = what      \
    }

const cs_field cs_description_parallel_fields[] = {
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
#define AT(member) offsetof(cs_description_batch, member)

const cs_field cs_description_batch_fields[] = {
    NUMBER(global, "global batch: sequences per step"),
    NUMBER(micro, "sequences per micro-batch"),
    NUMBER(micro_batches, "micro-batches per replica and step"),
    {0},
};

#undef AT
#define AT(member) offsetof(cs_description_profile, member)

const cs_field cs_description_profile_fields[] = {
    {"F", CS_FIELD_NUMBER, AT(forward), .doc = "forward of a pipeline rank, ms"},
    {"B", CS_FIELD_NUMBER, AT(backward_input), .doc = "gradient of its input, ms"},
    {"W", CS_FIELD_NUMBER, AT(backward_weight), .doc = "gradients of its weights, ms"},
    {"comm", CS_FIELD_NUMBER, AT(message), .doc = "message between neighbouring ranks, ms"},
    {0},
};

#undef AT
#define AT(member) offsetof(cs_description_options, member)

static const cs_field blocks_field = {"blocks", CS_FIELD_COUNT, .max = DIMENSION};

static const cs_field target_field = {"target", CS_FIELD_TEXT};

const cs_field cs_description_options_fields[] = {
    {"flash_attention", CS_FIELD_JSON, AT(flash_attention), .fallback = "",
     .doc = "whether attention is a fused kernel", .shape = "true or false"},
    {"dropout", CS_FIELD_NUMBER, AT(dropout), .fallback = "", .max = 1,
     .doc = "dropout of hidden states and attention"},
    FLAG(written_out, "the activation is written out in several kernels, as gelu_new of "
                      "transformers"),
    FLAG(fp8_attention, "attention computes in fp8"),
    NUMBER(vocab_multiple,
           "the vocabulary is padded to a multiple of this number times tp; 0: it is not "
           "padded"),
    NUMBER(packed_tokens, "tokens per sample, if several samples are packed into a sequence and do "
                          "not attend to each other; 0: a sample fills a sequence"),
    FLAG(lora, "only adapters are trained"),
    NUMBER(lora_rank, "rank of the adapters"),
    {"lora_targets", CS_FIELD_LIST, AT(lora_targets), .fallback = "[]", .of = &target_field,
     .doc = "which linear layers have adapters: linear_qkv, linear_proj"},
    TEXT(adapter, "adapters in words, in place of lora_rank and lora_targets: lora r=8 on q and v"),
    TEXT(weights_dtype, "type of weights that no wider copies are kept of, such as bf16; their "
                        "gradients and the optimizer's states have it too"),
    TEXT(quantization, "number format of frozen, quantised weights, such as nf4"),
    TEXT(fp8_scaling, "scales of fp8: current (each tensor, from its values), delayed "
                      "(each tensor, from steps before) or rowwise (each row)"),
    TEXT(fp8_weights, "how weights are kept for products in fp8: alone (only in fp8), copies "
                      "(also in 16 bits) or cast (when a product reads them)"),
    FLAG(float8_allgather, "weights are gathered in fp8, in torchtitan"),
    TEXT(grad_dtype, "type of summed gradients: fp32, bf16, or weights (the type of the "
                     "weights)"),
    TEXT(grad_reduce_dtype, "type in which FSDP reduces gradients, and keeps what it has reduced: "
                            "fp32 or bf16"),
    FLAG(dp_overlap, "gradients are reduced while the backward still runs"),
    {"bucket", CS_FIELD_BYTES, AT(bucket), .fallback = "0",
     .doc = "bytes of gradients that replicas of whole models reduce together during the "
            "backward; 0: all of them after it"},
    {"accumulate", CS_FIELD_JSON, AT(accumulate), .fallback = "",
     .doc = "with zero 2 and 3: whether gradients are reduced once a step, not after each "
            "micro-batch; else as the framework does it",
     .shape = "true or false"},
    NUMBER(optimizer_instances, "parts of the replicas; each part has all optimizer states; 0: "
                                "one"),
    FLAG(no_optimizer_step, "the measured step has no optimizer update"),
    FLAG(fused_optimizer,
         "the optimizer is one kernel for many tensors (fused=True of torch.optim)"),
    FLAG(tp_overlap, "tensor-parallel collectives overlap with products"),
    FLAG(async_tp, "as tp_overlap, in torchtitan"),
    FLAG(tp_linear_async_communication,
         "tp_overlap is nanotron's: only column-parallel products overlap with collectives"),
    {"scatter_gather", CS_FIELD_BOOL, AT(scatter_gather), .fallback = "true",
     .doc = "with tp and without sp, ranks send a part each of a message between stages, and "
            "gather them"},
    FLAG(blocking_messages, "the host waits for messages between stages"),
    {"exchange_latency", CS_FIELD_TIME, AT(exchange_latency), .fallback = "0 s",
     .doc =
         "with profiled_ms: time of a message between stages, whatever its size; 0: as measured"},
    FLAG(compile, "a compiler (torch.compile, XLA) fuses memory-bound operators"),
    FLAG(compiled_loss, "the loss is compiled as well"),
    FLAG(fused_cross_entropy,
         "the loss is a fused kernel that overwrites the logits with their gradients"),
    {"early_stop", CS_FIELD_JSON, AT(early_stop), .fallback = "",
     .doc = "whether recomputation stops when all that backward needs is there",
     .shape = "true or false"},
    {"stage_results", CS_FIELD_TEXT, AT(stage_results), .fallback = "",
     .doc = "whose results are kept until the step ends: all stages, the last one, or none"},
    TEXT(pytorch, "release of PyTorch, such as 2.7"),
    {"cuda_graphs", CS_FIELD_JSON, AT(cuda_graphs), .fallback = "",
     .doc = "whether kernels are launched by CUDA graphs, or whose graphs",
     .shape = "true, false or text"},
    FLAG(launch_blocking, "the host waits for each kernel (CUDA_LAUNCH_BLOCKING)"),
    FLAG(deterministic, "only deterministic kernels"),
    FLAG(moe_pad_to_capacity, "the input of each expert is padded to its capacity"),
    {"moe_capacity_factor", CS_FIELD_NUMBER, AT(moe_capacity_factor), .fallback = "0", .max = 1e6,
     .doc = "capacity factor: rows that an expert takes, relative to an equal share; 0: all that "
            "it gets"},
    {"moe_drop_tokens", CS_FIELD_JSON, AT(moe_drop_tokens), .fallback = "",
     .doc = "whether tokens beyond the capacity are dropped", .shape = "true or false"},
    {"moe_dispatcher", CS_FIELD_TEXT, AT(moe_dispatcher), .fallback = "",
     .doc = "how tokens reach experts: alltoall (each copy is sent by itself) or flex (once to "
            "each node, by DeepEP or HybridEP)"},
    {"moe_a2a_overlap", CS_FIELD_JSON, AT(moe_a2a_overlap), .fallback = "",
     .doc = "whether all-to-alls of experts run while layers of another micro-batch compute "
            "(overlap_moe_expert_parallel_comm); else as the framework's recipe has it",
     .shape = "true or false"},
    {"moe_hidden_share", CS_FIELD_NUMBER, AT(moe_hidden_share), .fallback = "0", .max = 1,
     .doc = "share of the all-to-alls of experts that layers of another micro-batch hide; with "
            "moe_a2a_overlap 0.84"},
    FLAG(fused_experts, "the MLP of an expert is one kernel"),
    FLAG(expert_sizes_on_device, "the host does not wait for the number of rows of each expert"),
    FLAG(offload, "activations are offloaded to host memory"),
    NUMBER(offload_layers, "number of blocks whose activations are offloaded"),
    FLAG(first_last_stage_one_layer_less, "the first and the last stage have one block less"),
    {"stage_layers", CS_FIELD_LIST, AT(stage_layers), .fallback = "[]", .of = &blocks_field,
     .doc = "number of blocks of each pipeline stage, from the first stage to the last"},
    {"stages_with_parts", CS_FIELD_LIST, AT(stages_with_parts), .fallback = "[]",
     .of = &blocks_field,
     .doc = "as stage_layers, where the embedding and the head count as a block each"},
    {"last_stage_layers", CS_FIELD_NUMBER, AT(last_stage_layers), .fallback = "", .max = DIMENSION,
     .doc = "number of blocks of the last stage; the other stages share the rest equally"},
    {"head_on_stage", CS_FIELD_NUMBER, AT(head_on_stage), .fallback = "", .max = DIMENSION,
     .doc = "stage, counted from 0, that has the head, if it is not the last one"},
    {"profiled_ms", CS_FIELD_OBJECT, AT(profiled_ms), .fallback = "",
     .of = cs_description_profile_fields, .size = sizeof(cs_description_profile),
     .doc = "measured times of forward and backward, instead of estimates", .shape = "{times}"},
    {0},
};

#undef AT
#define AT(member) offsetof(cs_description, member)
#define PART(key, type, what)                                                                      \
    {                                                                                              \
#key, CS_FIELD_OBJECT, AT(key), .of = cs_description_##key##_fields, .size = sizeof(type), \
                                        .doc = what, .shape = "{" #key "}"                         \
    }

const cs_field cs_description_fields[] = {
    PART(model, cs_description_model, "the network"),
    PART(hardware, cs_description_hardware, "the GPUs and their links"),
    {"parallel", CS_FIELD_OBJECT, AT(parallel), .fallback = "{}",
     .of = cs_description_parallel_fields, .size = sizeof(cs_description_parallel),
     .doc = "parallel sizes", .shape = "{parallel}"},
    PART(batch, cs_description_batch, "batch sizes"),
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
    {"options", CS_FIELD_OBJECT, AT(options), .fallback = "{}", .of = cs_description_options_fields,
     .size = sizeof(cs_description_options), .doc = "other options of the run",
     .shape = "{options}"},
    {"env", CS_FIELD_JSON, AT(env), .fallback = "",
     .doc = "environment variables of the run, as far as they are known",
     .shape = "{variable: value}"},
    {"args", CS_FIELD_JSON, AT(args), .fallback = "", .doc = "arguments of Megatron-LM",
     .shape = "{argument: value}"},
    {0},
};

/* Deletes members that are null, and members that no table has; notes the keys of the latter. False
 * when memory runs out. */
static bool keep_known(cJSON *object, const char *above, const cs_field *table,
                       const cs_field *others, cs_arena *arena, cs_list *unread)
{
    char key[256];
    for (cJSON *member = cJSON_IsObject(object) ? object->child : NULL, *next; member;
         member = next) {
        next = member->next;
        const cs_field *field = cs_field_find(table, member->string);
        if (!field && others)
            field = cs_field_find(others, member->string);
        snprintf(key, sizeof(key), "%s/%s", above, member->string);
        if (!field && !cJSON_IsNull(member) && !cJSON_IsFalse(member) &&
            !(((const char **)unread->items)[unread->n++] = cs_arena_copy(arena, key)))
            return false;
        if (!field || cJSON_IsNull(member))
            cJSON_Delete(cJSON_DetachItemViaPointer(object, member));
        else if (field->type == CS_FIELD_OBJECT &&
                 !keep_known(member, key, field->of, NULL, arena, unread))
            return false;
    }
    return true;
}

/* Members of an object and of those within it. */
static size_t count_members(const cJSON *object)
{
    const cJSON *member;
    size_t n = 1;
    cJSON_ArrayForEach(member, object) n += count_members(member);
    return n;
}

/* Checks the members whose form the tables leave open. */
static cs_status check_open(const cs_description *of, const cs_json_place *place, cs_error *error)
{
    const cs_json_place model = {.up = place, .key = "model"};
    const cs_json_place options = {.up = place, .key = "options"};
    const cs_description_options *given = of->options;
    const struct {
        const cs_json_place *up;
        const char *key;
        const cJSON *value;
        cJSON_bool (*is)(const cJSON *);
        const char *expected;
    } forms[] = {
        {&model, "mla", of->model->mla, cJSON_IsObject, "an object"},
        {&options, "flash_attention", given->flash_attention, cJSON_IsBool, "true or false"},
        {&options, "early_stop", given->early_stop, cJSON_IsBool, "true or false"},
        {&options, "moe_drop_tokens", given->moe_drop_tokens, cJSON_IsBool, "true or false"},
        {&options, "moe_a2a_overlap", given->moe_a2a_overlap, cJSON_IsBool, "true or false"},
        {&options, "accumulate", given->accumulate, cJSON_IsBool, "true or false"},
        {place, "env", of->env, cJSON_IsObject, "an object"},
        {place, "args", of->args, cJSON_IsObject, "an object"},
    };
    const struct {
        const char *key, *value, *words[4];
    } words[] = {
        {"moe_dispatcher", given->moe_dispatcher, {"alltoall", "flex"}},
        {"fp8_weights", given->fp8_weights, {"alone", "copies", "cast"}},
        {"stage_results", given->stage_results, {"all", "last", "none"}},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const cs_json_place at = {.up = forms[i].up, .key = forms[i].key};
        if (forms[i].value && !forms[i].is(forms[i].value))
            return cs_json_invalid(&at, error, "must be %s", forms[i].expected);
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const cs_json_place at = {.up = &options, .key = words[i].key};
        const char *const *word = words[i].words;
        while (words[i].value && *word && strcmp(*word, words[i].value) != 0)
            word++;
        if (words[i].value && !*word)
            return cs_json_invalid(&at, error, "must be %s%s%s or %s (got %s)", words[i].words[0],
                                   words[i].words[2] ? ", " : "",
                                   words[i].words[2] ? words[i].words[1] : "",
                                   words[i].words[words[i].words[2] ? 2 : 1], words[i].value);
    }
    return CS_OK;
}

/* After what is wrong with a description, its keys that nothing reads: one may be a required key,
 * misspelt. */
static cs_status tell_unread(const cs_description *of, const cs_json_place *place, cs_error *error)
{
    for (uint32_t i = 0; i < of->unread.n; i++) {
        const char *key = ((const char *const *)of->unread.items)[i];
        const cs_field *fields = cs_description_fields;
        const cs_json_place section = {.up = place, .key = key + 1};
        if (strchr(key + 1, '/'))
            continue;
        cs_guess guess;
        cs_guess_init(&guess, key + 1);
        for (; fields->name; fields++)
            cs_guess_add(&guess, fields->name);
        (void)cs_json_invalid(&section, error, "unknown key%s%s%s",
                              guess.closest ? "; did you mean \"" : "",
                              guess.closest ? guess.closest : "", guess.closest ? "\"?" : "");
    }
    return CS_INVALID;
}

cs_status cs_description_read(cJSON *object, const cs_json_place *place, const cs_field *others,
                              void *other, cs_arena *arena, cs_description *description,
                              cs_error *error)
{
    const cs_field *const tables[] = {cs_description_fields, others, NULL};
    cs_description made = {.json = object};
    made.unread.items = cs_arena_alloc(arena, count_members(object), sizeof(const char *));
    if (!made.unread.items ||
        !keep_known(object, "", cs_description_fields, others, arena, &made.unread))
        return cs_error_no_memory(error);
    const cs_status status =
        cs_field_read(object, place, tables, (void *const[]){&made, other}, arena, error);
    if (status != CS_OK)
        return status == CS_INVALID ? tell_unread(&made, place, error) : status;
    CS_TRY(check_open(&made, place, error));
    *description = made;
    return CS_OK;
}

cs_status cs_description_parse(const char *name, const char *text, size_t length, cs_arena *arena,
                               cJSON **document, cs_description *description, cs_error *error)
{
    const cs_json_place root = {.file = name};
    const cs_json_place schema = {.up = &root, .key = "schema"};
    struct {
        const char *schema, *name, *source, *notes;
    } of = {0};
    static const cs_field fields[] = {
        {"schema", CS_FIELD_TEXT, 0, .fallback = "", .doc = "run/1"},
        {"name", CS_FIELD_TEXT, sizeof(char *), .fallback = "", .doc = "name of the run"},
        {"source", CS_FIELD_TEXT, 2 * sizeof(char *), .fallback = "", .doc = "where it is from"},
        {"notes", CS_FIELD_TEXT, 3 * sizeof(char *), .fallback = "", .doc = "for readers"},
        {0}};
    CS_TRY(cs_json_parse(name, text, length, document, error));
    const char *version = cJSON_GetStringValue(cs_json_member(*document, "schema"));
    cs_status status = CS_OK;
    if (!version || strcmp(version, "run/1") != 0)
        status = cs_json_invalid(&schema, error, "must be \"run/1\" (docs/reference/points.md)");
    else
        status = cs_description_read(*document, &root, fields, &of, arena, description, error);
    description->name = of.name ? of.name : "run";
    if (status != CS_OK) {
        cJSON_Delete(*document);
        *document = NULL;
    }
    return status;
}

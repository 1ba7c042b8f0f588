/* The section "memory": memory that a framework and its libraries take in addition to tensors of
 * the model. */
#include "sim/run/scenario/build.h"

#include <math.h>
#include <string.h>

static const char *const library_names[] = {"cublas", "transformer_engine", "grouped_products",
                                            "user_buffers", NULL};

static const cs_field fused_field = {"fused", CS_FIELD_CHOICE, .choices = cs_fused_names};
static const cs_field library_field = {"libraries", CS_FIELD_CHOICE, .choices = library_names};
static const char *const routed_names[] = {"rows", "features", NULL};
static const char *const result_names[] = {"sent", "returned", "backward", "last", "all", NULL};
static const char *const allocator_names[] = {"none", "pytorch", NULL};
static const cs_field_word unlimited[] = {{"unlimited", INFINITY}, {0}};
static const cs_field resident_field = {"resident", CS_FIELD_BYTES, .large = true};

#define AT(member) offsetof(cs_memory_section, member)

const cs_field cs_scenario_memory_fields[] = {
    {"fused", CS_FIELD_LIST, AT(fused), .fallback = "[]", .of = &fused_field, .most = CS_N_FUSED,
     .doc = "operators whose fused kernels save less for the backward; the others save as much as "
            "PyTorch's own operators",
     .shape = "[\"norm\", \"swiglu\", \"cross_entropy\", \"linear\"]"},
    {"weight_gradients", CS_FIELD_CHOICE, AT(weight_gradients), .fallback = "in_place",
     .choices = cs_weight_gradients_names,
     .doc = "how gradients of weights are accumulated; in_place: kernels add to the sum; apart: "
            "each gradient is a separate tensor, which is then added; transformer_engine: "
            "kernels add to the sum, and there is a placeholder for each shape of weights"},
    {"attention_buffer", CS_FIELD_BOOL, AT(attention_buffer), .fallback = "false",
     .doc = "with attention \"math\": one buffer as large as the attention matrix is kept for all "
            "layers (Megatron-LM without TransformerEngine)"},
    {"attention_copy", CS_FIELD_BOOL, AT(attention_copy), .fallback = "false",
     .doc = "the result of fused attention is kept in two token orders if a micro-batch has "
            "several sequences (TransformerEngine with FlashAttention)"},
    {"keys_copied", CS_FIELD_BOOL, AT(keys_copied), .fallback = "false",
     .doc = "fused attention reads copies of keys and values, whose originals are saved with the "
            "queries (nanotron, without grouped queries)"},
    {"padding_masks", CS_FIELD_BOOL, AT(padding_masks), .fallback = "false",
     .doc = "with attention \"math\", in encoders, whose samples are padded: each layer keeps a "
            "mask of one byte per pair of tokens (TransformerEngine)"},
    {"gather_buffer", CS_FIELD_CHOICE, AT(gather_buffer), .fallback = "none",
     .choices = cs_gather_buffer_names,
     .doc = "with sequence parallelism: tokens gathered before the last matrix (last_matrix), or "
            "before the experts too (experts), or before all products too (all), are in a buffer "
            "that is "
            "never freed, shared with attention_buffer (Megatron-LM, nanotron)"},
    {"pass_gradients", CS_FIELD_BOOL, AT(pass_gradients), .fallback = "false",
     .doc =
         "with weight_gradients \"apart\" and an allocator: gradients of a backward stay "
         "allocated along with their sums until the backward of all layers has ended (nanotron)"},
    {"gradient_buckets", CS_FIELD_BOOL, AT(gradient_buckets), .fallback = "false",
     .doc =
         "gradients are copied into buckets for their reduction; the buckets are as large as all "
         "gradients in the precision of the model, and are never freed (PyTorch's "
         "DistributedDataParallel)"},
    {"update_copy", CS_FIELD_BOOL, AT(update_copy), .fallback = "false",
     .doc = "the update copies one state of all weights that the device updates (PyTorch's foreach "
            "optimizers)"},
    {"passes_ahead", CS_FIELD_COUNT, AT(passes_ahead), .fallback = "0", .max = 65536,
     .doc = "how many passes over a layer the host is ahead of the device: the delay before the "
            "allocator can reuse memory that a collective of another stream has read "
            "(record_stream); not in the first pass of a mini-batch"},
    {"inputs", CS_FIELD_BYTES, AT(inputs), .fallback = "0 B", .large = true,
     .doc = "inputs per sample in addition to its token ids, such as the attention mask of "
            "Megatron-LM's data loader; counted while the loss is computed, on the last stage of a "
            "pipeline only"},
    {"deterministic_multiprocessors", CS_FIELD_COUNT, AT(deterministic_multiprocessors),
     .fallback = "0", .max = 65536,
     .doc = "with FlashAttention's deterministic backward: number of multiprocessors of the device "
            "(A100: 108, H100: 132), which determines the number of float32 sums of query "
            "gradients; 0: another backward is used"},
    {"routed_weights", CS_FIELD_CHOICE, AT(routed_weights), .fallback = "rows",
     .choices = routed_names,
     .doc = "tensor that the routing weights multiply; rows: the results of the experts; features: "
            "the input of their last product (Megatron Core since 0.11)"},
    {"loss", CS_FIELD_CHOICE, AT(loss), .fallback = "in_place", .choices = cs_loss_names,
     .doc = "memory of a loss that is not fused; in_place: it works in the memory of its "
            "logarithms; copied: it also copies the logits in float32 (Megatron-LM's "
            "cross-entropy-loss-fusion); eager: the tensors of PyTorch's operators (cross_entropy "
            "of logits.float()); parallel: the tensors of PyTorch's loss_parallel, where each "
            "tensor-parallel rank has a part of the vocabulary; shifted: as eager, but the float32 "
            "logits are saved twice, with and without the last token (transformers)"},
    {"narrow_weights", CS_FIELD_CHOICE, AT(narrow_weights), .fallback = "copies",
     .choices = cs_narrow_weights_names,
     .doc = "with fp8, mxfp8 and nvfp4; copies: weights are held in the wide type and in narrow "
            "copies; alone: only in the narrow type (Megatron Core's fp8_param_gather); cast: in "
            "the wide type, and cast for each product (torchao, XLA)"},
    {"narrow_copies", CS_FIELD_COUNT, AT(narrow_copies), .fallback = "2", .min = 1, .max = 2,
     .doc = "copies of each narrow weight; 2: one along each dimension; 1: one for both products "
            "(fp8 on Blackwell, or Megatron Core's disable_parameter_transpose_cache)"},
    {"narrow_inputs", CS_FIELD_BOOL, AT(narrow_inputs), .fallback = "true",
     .doc = "narrow products save their inputs in the narrow type; false: in the wide type, and "
            "cast them again (torchao)"},
    {"libraries", CS_FIELD_LIST, AT(libraries), .fallback = "[]", .of = &library_field,
     .most = CS_N_LIBRARIES,
     .doc = "libraries whose workspaces come from PyTorch's allocator; grouped_products: only on "
            "devices with experts, if the operators of the network are known",
     .shape = "[\"cublas\", \"transformer_engine\", \"grouped_products\", \"user_buffers\"]"},
    {"cublas_workspace", CS_FIELD_BYTES, AT(cublas_workspace), .fallback = "0 B", .large = true,
     .doc = "cuBLAS's workspace per thread, as set by CUBLAS_WORKSPACE_CONFIG (\":4096:8\" is "
            "32 MiB); 0: PyTorch's default for the device"},
    {"reduce_buffer", CS_FIELD_BYTES, AT(reduce_buffer), .fallback = "0 B", .large = true,
     .doc = "buffer of gradients for their reduction (DeepSpeed's reduce_bucket_size with "
            "contiguous_gradients; its default is 5e8 elements)"},
    {"allocator", CS_FIELD_CHOICE, AT(allocator), .fallback = "none", .choices = allocator_names,
     .doc = "pytorch: replays the run's allocations on a model of PyTorch's caching allocator, to "
            "find how much memory it reserves"},
    {"weight_buffer", CS_FIELD_BOOL, AT(weight_buffer), .fallback = "false",
     .doc = "weights are allocated one by one and then moved into one buffer (Megatron-LM's "
            "distributed optimizer); their segments are then free for other tensors"},
    {"whole_weights", CS_FIELD_BOOL, AT(whole_weights), .fallback = "false",
     .doc = "with zero 3: each device has all weights of its stages before they are sharded "
            "(Lightning Fabric's FSDP)"},
    {"receive_buffers", CS_FIELD_BOOL, AT(receive_buffers), .fallback = "false",
     .doc = "with a section parallel: pipeline stages have receive buffers for the activations and "
            "gradients of all micro-batches of a mini-batch (PyTorch's pipelining); false: each "
            "buffer exists only while it is filled and read"},
    {"stage_results", CS_FIELD_CHOICE, AT(stage_results), .fallback = "sent",
     .choices = result_names,
     .doc =
         "with a section parallel: how long the outputs of pipeline stages stay in memory; sent: "
         "until they are sent; returned: likewise, and the last gradient that a device sent back "
         "stays until the next one, with one stage per device also the input it belongs to "
         "(Megatron Core); backward: until their backward; last: likewise, and the input of the "
         "loss stays until the mini-batch ends; all: likewise all outputs and all gradients sent "
         "back (backward, last and all: PyTorch's pipelining)"},
    {"expandable_segments", CS_FIELD_BOOL, AT(expandable_segments), .fallback = "false",
     .doc = "as in PYTORCH_CUDA_ALLOC_CONF: segments can grow"},
    {"max_split_size", CS_FIELD_BYTES, AT(max_split_size), .fallback = "unlimited",
     .words = unlimited, .min = 20 << 20, .above_min = true, .large = true,
     .doc = "as in PYTORCH_CUDA_ALLOC_CONF, where it is in MiB: blocks of this size and more are "
            "not split"},
    {"garbage_collection_threshold", CS_FIELD_NUMBER, AT(gc_threshold), .fallback = "0", .max = 1,
     .doc = "as in PYTORCH_CUDA_ALLOC_CONF: share of the capacity beyond which free segments are "
            "returned to the driver; 0: never"},
    {"resident", CS_FIELD_LIST, AT(resident), .fallback = "0", .of = &resident_field, .each = true,
     .doc =
         "other memory in use from the start, the same on each device or a list with one entry per "
         "device",
     .shape = "bytes or [bytes, ...]"},
    {0},
};

cs_status cs_memory_section_read(const cJSON *value, const cs_json_place *root, cs_arena *arena,
                                 cs_memory_section *section, cs_error *error)
{
    const cs_json_place place = {.up = root, .key = "memory"};
    return cs_field_read(value, &place, (const cs_field *const[]){cs_scenario_memory_fields, NULL},
                         (void *const[]){section}, arena, error);
}

/* ---- workspaces ---- */

/* PyTorch has a workspace for each cuBLAS handle, and a handle for each thread: one computes the
 * forward, another one the backward (aten/src/ATen/cuda/CublasHandlePool.cpp). TransformerEngine
 * has one workspace, and four more for grouped products, one per stream
 * (transformer_engine/pytorch/module/base.py, get_multi_stream_cublas_workspace). Products that
 * overlap with tensor-parallel collectives have a separate workspace with room for three streams
 * (transformer_engine/pytorch/cpp_extensions/gemm.py, get_cublas_workspace, _NUM_MAX_UB_STREAMS;
 * before 2.8 the first workspace was three times as large instead). The first grouped product
 * allocates the four: layers say which devices have any. Devices state the sizes; the usual ones
 * are PyTorch's ":4096:2:16:8" and 4 MiB of TransformerEngine (get_cublas_workspace_size_bytes). */
static int64_t library_bytes(cs_library which, const cs_workspaces *workspaces, int64_t cublas)
{
    enum { KIB = 1024, THREADS = 2, STREAMS = 4, BUFFER_STREAMS = 3 };
    const int64_t usual = 2 * 4096 * KIB + 8 * 16 * KIB;
    const int64_t handle = workspaces->cublas > 0 ? workspaces->cublas : usual;
    const int64_t engine = workspaces->engine > 0 ? workspaces->engine : 4096 * KIB;
    switch (which) {
    case CS_LIBRARY_CUBLAS:
        return THREADS * (cublas > 0 ? cublas : handle);
    case CS_LIBRARY_TRANSFORMER_ENGINE:
        return engine;
    case CS_LIBRARY_GROUPED_PRODUCTS:
        return STREAMS * engine;
    case CS_LIBRARY_USER_BUFFERS:
        return BUFFER_STREAMS * engine;
    case CS_N_LIBRARIES:
        break;
    }
    return 0;
}

static bool lists(const cs_memory_section *section, cs_library which)
{
    bool found = false;
    for (uint32_t i = 0; i < section->libraries.n; i++)
        found |= ((const uint32_t *)section->libraries.items)[i] == which;
    return found;
}

cs_kept_rules cs_memory_section_rules(const cs_memory_section *section,
                                      const cs_device_facts *device)
{
    cs_kept_rules rules = {.weight_gradients = section->weight_gradients,
                           .attention_buffer = section->attention_buffer,
                           .attention_copy = section->attention_copy,
                           .keys_copied = section->keys_copied,
                           .pass_gradients = section->pass_gradients,
                           .padding_masks = section->padding_masks,
                           .gather_buffer = section->gather_buffer,
                           .input_bytes = section->inputs,
                           .weighted_features = section->routed_weights == 1,
                           .loss = section->loss,
                           .narrow_weights = section->narrow_weights,
                           .one_copy = section->narrow_copies == 1,
                           .wide_inputs = !section->narrow_inputs,
                           .deterministic_multiprocessors = section->deterministic_multiprocessors};
    if (lists(section, CS_LIBRARY_GROUPED_PRODUCTS))
        rules.grouped_workspace =
            library_bytes(CS_LIBRARY_GROUPED_PRODUCTS, &device->workspaces, 0);
    for (uint32_t i = 0; i < section->fused.n; i++)
        rules.fused |= 1u << ((const uint32_t *)section->fused.items)[i];
    return rules;
}

bool cs_memory_section_allocator(const cs_memory_section *section, cs_caching_options *options)
{
    *options = (cs_caching_options){.capacity = INT64_MAX,
                                    .max_split_size = section->max_split_size,
                                    .gc_threshold = section->gc_threshold,
                                    .expandable_segments = section->expandable_segments};
    return section->allocator != 0;
}

/* ---- bytes of a device ---- */

static bool holds(const cs_plan *plan, uint32_t stage, uint32_t device)
{
    const cs_stage *of = &plan->stages[stage];
    for (uint32_t i = 0; i < of->n_devices; i++)
        if (plan->devices[of->first_device + i] == device)
            return true;
    return false;
}

/* Sums what the layers of a device share, each buffer once, plus the largest of the unnamed
 * buffers. `found` has room for all layers. */
static int64_t shared_bytes(const cs_job *job, uint32_t device, const cs_shared_bytes **found)
{
    uint32_t n = 0;
    int64_t sum = 0, buffer = 0;
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        const cs_stage *stage = &job->plan->stages[s];
        if (!holds(job->plan, s, device))
            continue;
        for (uint32_t l = stage->first_layer; l < stage->end_layer; l++) {
            const cs_layer *layer = &job->model->layers[l];
            for (uint32_t i = 0; i < layer->n_shared; i++) {
                const cs_shared_bytes *shared = &layer->shared[i];
                uint32_t k = 0;
                if (!shared->name)
                    buffer = shared->bytes > buffer ? shared->bytes : buffer;
                while (k < n && shared->name &&
                       !(found[k]->bytes == shared->bytes &&
                         strcmp(found[k]->name, shared->name) == 0))
                    k++;
                if (!shared->name || k < n)
                    continue;
                found[n++] = shared;
                sum += shared->bytes;
            }
        }
    }
    return sum + buffer;
}

static bool has_resident(const cs_memory_section *section)
{
    bool has = false;
    for (uint32_t i = 0; i < section->resident.n; i++)
        has |= ((const int64_t *)section->resident.items)[i] > 0;
    return has;
}

cs_status cs_scenario_libraries(const cs_sections *sections, const cs_job *job, cs_arena *arena,
                                const int64_t **out, cs_error *error)
{
    const cs_memory_section *section = &sections->memory;
    const cs_workload *workload = &sections->model.workload;
    uint32_t n_shared = 0;
    for (uint32_t l = 0; l < job->model->n_layers; l++)
        n_shared += job->model->layers[l].n_shared;
    const cs_json_place memory = {.up = &sections->root, .key = "memory"};
    const cs_json_place place = {.up = &memory, .key = "resident"};
    const int64_t *given = section->resident.items;
    int64_t libraries = section->reduce_buffer;
    /* A layer does not say which of its narrow weights belong to experts, so this combination is
     * refused. */
    const cs_json_place narrow_weights_place = {.up = &memory, .key = "narrow_weights"};
    if (sections->memory.narrow_weights == CS_NARROW_WEIGHTS_ALONE &&
        sections->parallel.zero >= 3 && sections->parallel.expert >= 2)
        return cs_json_invalid(&narrow_weights_place, error,
                               "must be copies or cast if zero 3 shards experts over %u devices "
                               "(got alone)",
                               sections->parallel.expert);
    if (section->resident.n > 1 && section->resident.n != job->n_devices)
        return cs_json_invalid(&place, error,
                               "must have one entry, or one for each of %u devices "
                               "(has %u)",
                               job->n_devices, section->resident.n);
    for (uint32_t which = 0; which < CS_N_LIBRARIES; which++)
        if (lists(section, which) && !(which == CS_LIBRARY_GROUPED_PRODUCTS && workload->name))
            libraries +=
                library_bytes(which, &sections->model.device.workspaces, section->cublas_workspace);
    if (n_shared == 0 && libraries == 0 && !has_resident(section) && !section->gradient_buckets)
        return CS_OK;
    int64_t *bytes = cs_arena_alloc(arena, job->n_devices, sizeof(*bytes));
    const cs_shared_bytes **found = cs_arena_alloc(arena, n_shared + (size_t)1, sizeof(*found));
    if (!bytes || !found)
        return cs_error_no_memory(error);
    /* Sum shared bytes per device. In a mesh, all devices of a stage have the same. */
    const cs_plan *plan = job->plan;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const uint32_t *devices = plan->devices + plan->stages[s].first_device;
        int64_t shared = 0;
        for (uint32_t i = 0; i < plan->stages[s].n_devices; i++) {
            if (i == 0 || !plan->grid)
                shared = shared_bytes(job, devices[i], found);
            bytes[devices[i]] = shared;
        }
    }
    if (section->gradient_buckets) {
        /* Add buckets for the gradients of all trained weights, in the model's precision. */
        for (uint32_t s = 0; s < job->plan->n_stages; s++) {
            const cs_stage *of = &job->plan->stages[s];
            int64_t weights = 0;
            for (uint32_t l = of->first_layer; l < of->end_layer; l++)
                weights += job->model->layers[l].weight_bytes;
            for (uint32_t i = 0; i < of->n_devices; i++)
                bytes[job->plan->devices[of->first_device + i]] += weights;
        }
    }
    for (uint32_t d = 0; d < job->n_devices; d++)
        bytes[d] += libraries + (section->resident.n > 1   ? given[d]
                                 : section->resident.n > 0 ? given[0]
                                                           : 0);
    *out = bytes;
    return CS_OK;
}

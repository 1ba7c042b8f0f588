/* Warns of keys that have no effect unless another key is set. Keys of topologies are checked by
 * topologies/topology.h. */
#include "sim/base/dependent-key.h"
#include "sim/run/scenario/build.h"

#include <stdio.h>
#include <string.h>

/* Whether the key was set by the runtime rather than by the scenario. Unlisted members were not
 * given. */
static bool is_assumed(const cs_origins *origins, const char *section, const char *key)
{
    char pointer[128];
    snprintf(pointer, sizeof(pointer), "/%s/%s", section, key);
    for (uint32_t i = 0; i < origins->n; i++)
        if (strcmp(origins->figures[i].key, pointer) == 0)
            return origins->figures[i].origin != CS_ORIGIN_GIVEN;
    for (const cs_runtime_member *m = cs_runtime_members; origins->runtime && m->key; m++)
        if (strcmp(m->key, pointer) == 0)
            return true;
    return false;
}

static void warn_of_each(const cs_dependent_key *rules, size_t n, const cs_json_place *section,
                         const cs_origins *origins)
{
    for (size_t i = 0; i < n; i++)
        if (!is_assumed(origins, section->key, rules[i].key))
            cs_dependent_keys_warn(&rules[i], 1, section);
}

#define WARN_OF_EACH(rules, place)                                                                 \
    warn_of_each(rules, sizeof(rules) / sizeof((rules)[0]), place, origins)

static uint64_t n_parts(const cs_list *space)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < space->n; i++)
        n *= ((const uint32_t *)space->items)[i];
    return n;
}

static void warn_of_platform(const cs_sections *sections, const cs_origins *origins)
{
    static const char meet[] =
        "a \"sharing\" with contention between messages: max_min, or phi with \"count\"";
    static const char linked[] = "a topology that has links";
    const cs_json_place place = {.up = &sections->root, .key = "platform"};
    const cs_platform_section *given = &sections->platform;
    const bool meets = given->shared == CS_SHARING_MAX_MIN || given->shared == CS_SHARING_COUNT;
    const bool links = strcmp(given->kind->name, "ideal") != 0;
    const cs_dependent_key rules[] = {
        {"messages", given->independent_messages, meets, meet},
        {"jitter", given->jitter != NULL, links, linked},
        {"background", given->background != NULL, links, linked},
    };
    WARN_OF_EACH(rules, &place);
}

static void warn_of_parallel(const cs_sections *sections, const cs_origins *origins)
{
    const cs_json_place place = {.up = &sections->root, .key = "parallel"};
    const cs_parallel_section *given = &sections->parallel;
    const uint32_t zero = cs_parallel_section_zero(given, NULL);
    const bool tensor = given->tensor > 1, expert = given->expert > 1;
    const cs_workload *workload = &sections->model.workload;
    const bool narrow = workload->name && cs_precision_is_narrow((cs_precision)workload->precision);
    const cs_dependent_key rules[] = {
        {"sequence_parallel", given->sequence_parallel, tensor, "\"tensor\" above 1"},
        {"narrow_gathers", !given->narrow_gathers, tensor && narrow,
         "\"tensor\" above 1 and the precisions fp8, mxfp8 and nvfp4 of a named model"},
        {"scatter_gather", given->scatter_gather, tensor && !given->sequence_parallel,
         "\"tensor\" above 1 and without \"sequence_parallel\""},
        {"regather", !given->regather, tensor && given->sequence_parallel, "\"sequence_parallel\""},
        {"context_method", given->context_method > 0, given->context > 1, "\"context\" above 1"},
        {"space_until", given->space_until != NULL, n_parts(&given->space) > 1, "\"space\""},
        {"shard", given->shard > 0, zero > 0, "\"zero\" above 0"},
        {"prefetch", given->prefetch != 1, zero == 3, "\"zero\": 3"},
        {"keep_gathered", given->keep_gathered, zero == 3 && !given->gather_once,
         "\"zero\": 3 and without \"gather_once\""},
        {"gather_once", given->gather_once, zero == 3, "\"zero\": 3"},
        {"accumulate", given->accumulate, zero >= 2, "\"zero\" 2 or 3"},
        {"reduce", given->reduce > 0, given->zero == 1 || given->rules.n > 0, "\"zero\": 1"},
        {"bucket", given->bucket > 0, given->zero < 3 || given->rules.n > 0, "\"zero\" below 3"},
        {"dispatcher", given->dispatcher > 0, expert, "\"expert\" above 1"},
        {"expert_imbalance", given->expert_imbalance > 1, expert, "\"expert\" above 1"},
        {"expert_routing", given->routing != NULL, expert, "\"expert\" above 1"},
    };
    WARN_OF_EACH(rules, &place);
}

static void warn_of_collectives(const cs_sections *sections, const cs_origins *origins)
{
    static const char delays[] = "a \"fidelity\" other than \"flow\"";
    const cs_json_place place = {.up = &sections->root, .key = "collectives"};
    const cs_lower_options *given = &sections->collectives;
    const bool delayed = given->fidelity != CS_FIDELITY_FLOW;
    const cs_dependent_key rules[] = {
        {"sharing", given->sharing > 0, delayed, delays},
        {"reached", cs_reached_is_less(&given->reached), delayed, delays},
        {"start", given->start > 0, delayed, delays},
        {"tensor_overlap", given->tensor_overlap > 0, delayed, delays},
        {"expert_overlap", given->expert_overlap > 0, delayed, delays},
        {"nccl", given->nccl != CS_NCCL_NONE, delayed, delays},
        {"nccl_algorithm", given->nccl_algorithm > 0, given->nccl != CS_NCCL_NONE, "\"nccl\""},
    };
    WARN_OF_EACH(rules, &place);
}

/* Conventions of kernels need operators, which only named models have, and a runtime: without one,
 * every operator is a roofline, which waits for the host if "host" is given. */
static void warn_of_runtime(const cs_sections *sections, const cs_origins *origins)
{
    const cs_json_place place = {.up = &sections->root, .key = "runtime"};
    const cs_runtime_section *given = &sections->runtime;
    const bool network = sections->model.workload.name != NULL;
    const bool host = given->host > 0 || given->host_call > 0 || given->host_kernel > 0 ||
                      given->host_product_backward > 0;
    const bool runs = network && given->kernels_count, waits = network && (runs || host);
    const char *named = network ? "a \"name\" other than \"ideal\"" : "a named model";
    const char *written = runs ? "\"fused\": false" : named;
    const char *fp8 = runs ? "the precision fp8" : named;
    const bool ring =
        sections->parallel.context > 1 && sections->parallel.context_method == CS_CONTEXT_RING;
    const bool is_fp8 = sections->model.workload.precision == CS_PRECISION_FP8;
    const cs_dependent_key rules[] = {
        {"compile", given->compile, runs, named},
        {"fused", given->fused, runs, named},
        {"separate_products", given->separate_products, runs && given->fused,
         runs ? "\"fused\"" : named},
        {"written_out", given->written_out, runs && !given->fused, written},
        {"eager_gate", given->eager_gate, runs && given->fused, runs ? "\"fused\"" : named},
        {"eager_rotary", given->eager_rotary, runs, named},
        {"flash", given->flash > 0, runs, named},
        {"loss", given->loss > 0, runs, named},
        {"softmax_multiple", given->softmax_multiple > 0, runs && given->fused,
         runs ? "\"fused\"" : named},
        {"host", given->host > 0, network, named},
        {"host_call", given->host_call > 0, network, named},
        {"host_kernel", given->host_kernel > 0, network, named},
        {"host_product_backward", given->host_product_backward > 0, network, named},
        {"batch_operators", given->batch_operators > 0, waits, named},
        {"batch_waits", given->batch_waits, waits || !network, named},
        {"message_waits", given->message_waits, waits || !network, named},
        {"launch_blocking", given->launch_blocking, waits, named},
        {"cuda_graphs", given->cuda_graphs, waits, named},
        {"expert_loop", given->expert_loop, waits, named},
        {"expert_modules", given->expert_modules, runs && given->expert_loop,
         runs ? "\"expert_loop\"" : named},
        {"fused_experts", given->fused_experts, runs, named},
        {"current_scaling", given->current_scaling, runs && is_fp8, fp8},
        {"deterministic", given->deterministic, runs, named},
        {"eager_ring", given->eager_ring, runs && ring,
         runs ? "\"context\" above 1, in rings" : named},
        {"summed_ring", given->summed_ring, runs && ring && !given->eager_ring,
         runs ? "\"context\" above 1, in rings, and \"eager_ring\": false" : named},
        {"kernels", given->kernels > 0 && given->kernels != 1, runs, named},
        {"gradient_passes", given->gradient_passes > 0, runs, named},
        {"early_stop", given->early_stop, network && sections->model.workload.recompute,
         network ? "\"recompute\": true" : "a named model"},
        {"foreach_optimizer", given->foreach_optimizer, runs, named},
        {"counts_zeros", given->counts_zeros, runs, named},
    };
    WARN_OF_EACH(rules, &place);
}

static bool has_cublas(const cs_memory_section *memory)
{
    bool found = false;
    for (uint32_t i = 0; i < memory->libraries.n; i++)
        found |= ((const uint32_t *)memory->libraries.items)[i] == CS_LIBRARY_CUBLAS;
    return found;
}

static void warn_of_memory(const cs_sections *sections, const cs_origins *origins)
{
    static const char named[] = "a named model", player[] = "\"allocator\": \"pytorch\"";
    static const char meshes[] = "a section \"parallel\" and mini-batches that do not overlap";
    const bool grid = sections->parallel.given && !sections->schedule.kind->asynchronous;
    const cs_json_place place = {.up = &sections->root, .key = "memory"};
    const cs_memory_section *given = &sections->memory;
    const bool network = sections->model.workload.name != NULL, played = given->allocator > 0;
    const bool narrow =
        network && cs_precision_is_narrow((cs_precision)sections->model.workload.precision);
    const char *types = network ? "the precisions fp8, mxfp8 and nvfp4" : named;
    const cs_dependent_key rules[] = {
        {"fused", given->fused.n > 0, network, named},
        {"weight_gradients", given->weight_gradients > 0, network, named},
        {"attention_buffer", given->attention_buffer, network, named},
        {"attention_copy", given->attention_copy, network, named},
        {"keys_copied", given->keys_copied, network, named},
        {"padding_masks", given->padding_masks, network, named},
        {"pass_gradients", given->pass_gradients, network && played, player},
        {"passes_ahead", given->passes_ahead > 0, played, player},
        {"gather_buffer", given->gather_buffer > 0, network, named},
        {"inputs", given->inputs > 0, network, named},
        {"deterministic_multiprocessors", given->deterministic_multiprocessors > 0, network, named},
        {"routed_weights", given->routed_weights > 0, network, named},
        {"loss", given->loss > 0, network, named},
        {"narrow_weights", given->narrow_weights > 0, narrow, types},
        {"narrow_copies", given->narrow_copies != 2, narrow, types},
        {"narrow_inputs", !given->narrow_inputs, narrow, types},
        {"cublas_workspace", given->cublas_workspace > 0, has_cublas(given),
         "\"cublas\" in \"libraries\""},
        {"weight_buffer", given->weight_buffer, played, player},
        {"whole_weights", given->whole_weights, played, player},
        {"receive_buffers", given->receive_buffers, grid, meshes},
        {"stage_results", given->stage_results > 0, grid, meshes},
        {"expandable_segments", given->expandable_segments, played, player},
        {"max_split_size", given->max_split_size < INT64_MAX, played, player},
        {"garbage_collection_threshold", given->gc_threshold > 0, played, player},
    };
    WARN_OF_EACH(rules, &place);
}

void cs_scenario_warn_of_ignored_keys(const cs_sections *sections, const cs_origins *origins)
{
    const cs_json_place place = {.up = &sections->root, .key = "model"};
    const cs_workload *workload = &sections->model.workload;
    const cs_dependent_key rules[] = {
        {"newton_schulz_steps", sections->model.newton_schulz_steps != CS_COUNT_LEFT_OUT,
         workload->muon.steps > 0, "a named model and the optimizer muon"},
        {"muon_tensor", workload->name && sections->model.muon_tensor > 0,
         workload->muon.steps > 0 && sections->parallel.tensor > 1,
         "the optimizer muon and \"tensor\" above 1"},
    };
    WARN_OF_EACH(rules, &place);
    warn_of_platform(sections, origins);
    if (sections->parallel.given)
        warn_of_parallel(sections, origins);
    warn_of_collectives(sections, origins);
    warn_of_runtime(sections, origins);
    warn_of_memory(sections, origins);
}

#include "sim/scenario/runtime-section.h"

/* ---- the section ---- */

#define AT(member) offsetof(cs_runtime_section, member)

const cs_field cs_scenario_runtime_fields[] = {
    {"name", CS_FIELD_CHOICE, AT(name), .fallback = "ideal", .choices = cs_runtime_names,
     .doc = "whose conventions are the defaults of the keys below and of other sections; ideal: "
            "none, each operator is a roofline by itself"},
    {"fused", CS_FIELD_BOOL, AT(fused), .fallback = "false",
     .doc = "one kernel for a norm, for an activation and its gate, for dropout and a residual "
            "sum; one product for linear layers that read the same"},
    {"separate_products", CS_FIELD_BOOL, AT(separate_products), .fallback = "false",
     .doc = "linear layers that read the same are products of their own also where kernels are "
            "fused, as a compiler leaves them; gradients of what they read are summed in the last"},
    {"written_out", CS_FIELD_BOOL, AT(written_out), .fallback = "false",
     .doc = "GELU is a kernel for each power, product, sum and tanh of its formula, as in GPT-2 of "
            "transformers and in minGPT, where it is not fused"},
    {"flash", CS_FIELD_CHOICE, AT(flash), .fallback = "flash2", .choices = cs_flash_names,
     .doc =
         "kernel of fused attention; cudnn_fp8: cuDNN's in fp8, with casts around it, which has no "
         "windows backward"},
    {"host", CS_FIELD_TIME, AT(host), .fallback = "0",
     .doc =
         "of the host for an operator, forward or backward, and for a message between devices; a "
         "layer takes at least what the host does"},
    {"host_kernel", CS_FIELD_TIME, AT(host_kernel), .fallback = "0",
     .doc = "of the host besides, for each kernel"},
    {"host_product_backward", CS_FIELD_TIME, AT(host_product_backward), .fallback = "0",
     .doc = "of the host for a linear layer backward, in place of \"host\"; 0: as that"},
    {"step", CS_FIELD_TIME, AT(step), .fallback = "0",
     .doc = "of the host, once a step, while the device computes nothing: it waits for the norm of "
            "the gradients, starts the optimizer, logs, brings the next batch"},
    {"cuda_graphs", CS_FIELD_BOOL, AT(cuda_graphs), .fallback = "false",
     .doc = "kernels start from graphs, whatever \"host\" says; those of experts do with a "
            "capacity only, without which their rows differ from step to step"},
    {"expert_loop", CS_FIELD_BOOL, AT(expert_loop), .fallback = "false",
     .doc = "experts as in Megatron Core: the host waits for their rows, unless they have a "
            "capacity, and starts their products one by one, the casts of their rows, and kernels "
            "that add their biases; the router has its number of kernels"},
    {"expert_modules", CS_FIELD_BOOL, AT(expert_modules), .fallback = "false",
     .doc = "with expert_loop: each expert is a module of its own: the host starts a product, an "
            "activation and a "
            "product for one expert after the other, and what they make is put together"},
    {"fused_experts", CS_FIELD_BOOL, AT(fused_experts), .fallback = "false",
     .doc = "one kernel for a product of experts, their activation, and casts of its result, "
            "forward and backward"},
    {"current_scaling", CS_FIELD_BOOL, AT(current_scaling), .fallback = "false",
     .doc = "casts to fp8 read a tensor once more before, for its largest element; else the scale "
            "is that of earlier steps"},
    {"deterministic", CS_FIELD_BOOL, AT(deterministic), .fallback = "false",
     .doc = "each new tensor is filled before it is written, as with PyTorch's deterministic "
            "algorithms"},
    {"eager_ring", CS_FIELD_BOOL, AT(eager_ring), .fallback = "false",
     .doc =
         "with context and the method ring: partial results and gradients of fused attention are "
         "merged in float32 by operators of their own (PyTorch's context parallelism), else "
         "within its kernels"},
    {"summed_ring", CS_FIELD_BOOL, AT(summed_ring), .fallback = "false",
     .doc =
         "with context and the method ring, without \"eager_ring\": kernels add partial results "
         "and gradients of fused attention to sums in their own type, as TransformerEngine's do"},
    {"kernels", CS_FIELD_NUMBER, AT(kernels), .fallback = "1", .above_min = true, .max = 64,
     .doc = "times that kernels take what the device's figures say, as with older libraries"},
    {"gradient_passes", CS_FIELD_NUMBER, AT(gradient_passes), .fallback = "0", .max = 64,
     .doc = "times a step that all gradients are read or written besides the update: for their "
            "norm, unscaling, zeroing"},
    {"counts_zeros", CS_FIELD_BOOL, AT(counts_zeros), .fallback = "false",
     .doc = "once a step, the zeros in gradients are counted for a log, by four kernels for each "
            "tensor"},
    {0},
};

cs_status cs_runtime_section_read(const cJSON *value, const cs_json_place *root, cs_arena *arena,
                                  cs_runtime_section *section, cs_error *error)
{
    const cs_json_place place = {.up = root, .key = "runtime"};
    return cs_field_read(value, &place, (const cs_field *const[]){cs_scenario_runtime_fields, NULL},
                         (void *const[]){section}, arena, error);
}

cs_runtime_kernels cs_runtime_section_kernels(const cs_runtime_section *section)
{
    return (cs_runtime_kernels){.given = section->name != 0,
                                .fused = section->fused,
                                .separate_products = section->separate_products,
                                .written_out = section->written_out,
                                .flash = section->flash,
                                .host = section->host,
                                .host_kernel = section->host_kernel,
                                .host_product_backward = section->host_product_backward,
                                .graphs = section->cuda_graphs,
                                .expert_loop = section->expert_loop,
                                .expert_modules = section->expert_modules,
                                .counts_zeros = section->counts_zeros,
                                .fused_experts = section->fused_experts,
                                .current_scaling = section->current_scaling,
                                .deterministic = section->deterministic,
                                .eager_ring = section->eager_ring,
                                .summed_ring = section->summed_ring,
                                .factor = section->kernels,
                                .gradient_passes = section->gradient_passes};
}

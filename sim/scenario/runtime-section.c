#include "sim/scenario/runtime-section.h"

#include <ctype.h>

/* ---- the section ---- */

#define AT(member) offsetof(cs_runtime_section, member)

const cs_field cs_scenario_runtime_fields[] = {
    {"name", CS_FIELD_CHOICE, AT(name), .fallback = "ideal", .choices = cs_runtime_names,
     .doc = "framework whose conventions are the defaults of the keys below and of other sections; "
            "ideal: none, each operator takes the time of its roofline"},
    {"release", CS_FIELD_TEXT, AT(release), .fallback = "",
     .doc = "release of PyTorch, such as \"2.7\" or \"2.5.1\", for runtimes whose conventions "
            "depend on "
            "it; default: the newest that is known"},
    {"compile", CS_FIELD_BOOL, AT(compile), .fallback = "false",
     .doc =
         "the network is compiled by torch.compile: in torchtitan, pytorch-fsdp, pytorch-ddp and "
         "llm-foundry, the default of \"fused\" and \"separate_products\" is then true, and less "
         "is "
         "kept for the backward (/memory/fused)"},
    {"fused", CS_FIELD_BOOL, AT(fused), .fallback = "false",
     .doc = "one kernel each for a norm, for an activation with its gate, and for dropout with a "
            "residual sum; linear layers that read the same input are one product"},
    {"separate_products", CS_FIELD_BOOL, AT(separate_products), .fallback = "false",
     .doc = "with fused kernels: linear layers that read the same input are still separate "
            "products, as a compiler leaves them; the last one sums the gradients of that input"},
    {"written_out", CS_FIELD_BOOL, AT(written_out), .fallback = "false",
     .doc = "a GELU that is not fused is one kernel for each power, product, sum and tanh of its "
            "formula, as in GPT-2 of transformers and in minGPT"},
    {"flash", CS_FIELD_CHOICE, AT(flash), .fallback = "flash2", .choices = cs_flash_names,
     .doc = "kernel of fused attention; cudnn_fp8: cuDNN's in fp8, with casts around it; its "
            "backward has no sliding windows"},
    {"host", CS_FIELD_TIME, AT(host), .fallback = "0", .usual_max = 1,
     .doc = "host time for each operator, forward or backward, and for each message between "
            "devices; a layer takes at least the time that the host needs"},
    {"host_kernel", CS_FIELD_TIME, AT(host_kernel), .fallback = "0", .usual_max = 1,
     .doc = "additional host time for each kernel"},
    {"host_product_backward", CS_FIELD_TIME, AT(host_product_backward), .fallback = "0",
     .usual_max = 1,
     .doc = "host time for the backward of a linear layer, instead of \"host\"; 0: as \"host\""},
    {"step", CS_FIELD_TIME, AT(step), .fallback = "0", .usual_max = 100,
     .doc = "host time once per step, during which the device is idle: to wait for the norm of the "
            "gradients, start the optimizer, write the log and load the next batch"},
    {"launch_blocking", CS_FIELD_BOOL, AT(launch_blocking), .fallback = "false",
     .doc = "the host waits for each kernel before it launches the next (CUDA_LAUNCH_BLOCKING=1): "
            "its time adds to that of a layer"},
    {"cuda_graphs", CS_FIELD_BOOL, AT(cuda_graphs), .fallback = "false",
     .doc = "kernels are launched by CUDA graphs, so \"host\" does not count; those of experts "
            "only if there is a capacity, because otherwise their numbers of rows change from step "
            "to step"},
    {"expert_loop", CS_FIELD_BOOL, AT(expert_loop), .fallback = "false",
     .doc = "experts as in Megatron Core: the host waits for the number of rows of each expert, "
            "unless there is a capacity; it launches the products of the experts, the casts of "
            "their rows and the kernels that add their biases one by one; the router has as many "
            "kernels as Megatron Core's"},
    {"expert_modules", CS_FIELD_BOOL, AT(expert_modules), .fallback = "false",
     .doc =
         "with expert_loop: each expert is a module of its own; the host launches a product, an "
         "activation and a product for one expert after another, and the results are concatenated"},
    {"fused_experts", CS_FIELD_BOOL, AT(fused_experts), .fallback = "false",
     .doc = "one kernel for a product of the experts, the activation and the casts of the result, "
            "forward and backward"},
    {"current_scaling", CS_FIELD_BOOL, AT(current_scaling), .fallback = "false",
     .doc = "casts to fp8 first read the tensor to find its largest element; false: the scale "
            "comes from earlier steps (delayed scaling)"},
    {"deterministic", CS_FIELD_BOOL, AT(deterministic), .fallback = "false",
     .doc = "each new tensor is filled before it is written, as by PyTorch with deterministic "
            "algorithms"},
    {"eager_ring", CS_FIELD_BOOL, AT(eager_ring), .fallback = "false",
     .doc =
         "with context and the method ring: separate operators merge partial results and gradients "
         "of fused attention in float32 (PyTorch's context parallelism); false: its kernels do"},
    {"summed_ring", CS_FIELD_BOOL, AT(summed_ring), .fallback = "false",
     .doc = "with context and the method ring, without \"eager_ring\": kernels add partial results "
            "and gradients of fused attention to sums of the same type, as in TransformerEngine"},
    {"kernels", CS_FIELD_NUMBER, AT(kernels), .fallback = "1", .above_min = true, .max = 64,
     .doc = "factor on the times of all kernels: above 1, for example, for older libraries"},
    {"gradient_passes", CS_FIELD_NUMBER, AT(gradient_passes), .fallback = "0", .max = 64,
     .doc = "how many times per step all gradients are read or written, besides the update: for "
            "their norm, unscaling, zeroing"},
    {"early_stop", CS_FIELD_BOOL, AT(early_stop), .fallback = "false",
     .doc = "with /model/recompute: the forward of a layer runs again only as far as its backward "
            "needs it, thus without its last product (PyTorch's checkpoint with "
            "use_reentrant=False); false: all of it runs again"},
    {"foreach_optimizer", CS_FIELD_BOOL, AT(foreach_optimizer), .fallback = "false",
     .doc =
         "the update is a kernel for each step of its formula, with weight decay, as in PyTorch's "
         "optimizers by default: Adam then moves 80 bytes per weight in fp32, otherwise 28"},
    {"counts_zeros", CS_FIELD_BOOL, AT(counts_zeros), .fallback = "false",
     .doc = "once per step, four kernels for each tensor count the zeros in the gradients, for the "
            "log"},
    {0},
};

/* "2.7", "2.5.1"; also "", which is not given. */
static bool is_release(const char *text)
{
    bool digit = true;
    for (; text && *text; text++) {
        if (!isdigit((unsigned char)*text) && !(*text == '.' && digit))
            return false;
        digit = *text != '.';
    }
    return digit;
}

cs_status cs_runtime_section_read(const cJSON *value, const cs_json_place *root, cs_arena *arena,
                                  cs_runtime_section *section, cs_error *error)
{
    const cs_json_place place = {.up = root, .key = "runtime"};
    const cs_json_place release = {.up = &place, .key = "release"};
    CS_TRY(cs_field_read(value, &place, (const cs_field *const[]){cs_scenario_runtime_fields, NULL},
                         (void *const[]){section}, arena, error));
    return is_release(section->release)
               ? CS_OK
               : cs_json_invalid(&release, error,
                                 "must be numbers with dots between them, such as \"2.7\" (got "
                                 "\"%s\")",
                                 section->release);
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
                                .launch_blocking = section->launch_blocking,
                                .graphs = section->cuda_graphs,
                                .expert_loop = section->expert_loop,
                                .expert_modules = section->expert_modules,
                                .foreach_optimizer = section->foreach_optimizer,
                                .counts_zeros = section->counts_zeros,
                                .fused_experts = section->fused_experts,
                                .current_scaling = section->current_scaling,
                                .deterministic = section->deterministic,
                                .eager_ring = section->eager_ring,
                                .summed_ring = section->summed_ring,
                                .factor = section->kernels,
                                .gradient_passes = section->gradient_passes};
}

/* The conventions of runtimes, each with its source. */
#include "sim/base/fitted.h"
#include "sim/scenario/runtime-section.h"

const char *const cs_runtime_names[] = {"ideal",        "megatron-core", "megatron-lm-2021",
                                        "pytorch-fsdp", "pytorch-ddp",   "deepspeed",
                                        "torchtitan",   "llm-foundry",   NULL};

/* ---- what several have ---- */

#define HOST(key_, time, source_)                                                                  \
    {                                                                                              \
        .key = "/runtime/" key_, .value = "\"" time "\"", .source = source_                        \
    }

/* Conditions on the device. Libraries choose kernels by CUDA's compute capability. */
#define AMD        "/device/architecture/vendor=amd"
#define HOPPER     "/device/architecture/generation=hopper"
#define CAPABILITY "/device/architecture/capability"

#define FITTED                                                                                     \
    "fitted to measured runs by tests/fit-figures.py, with figures of devices "                    \
    "(docs/reference/points.md)"

#define PYTORCH_HOST                                                                               \
    HOST(                                                                                          \
        "host_kernel", "13.5 us",                                                                  \
        "NVIDIA/TransformerEngine, issue 2053: the forward of torch.nn.Linear, one kernel, takes " \
        "the host of a DGX H100 13.48 us")

#define MEGATRON_HOST                                                                              \
    HOST(                                                                                          \
        "host_kernel", "20 us",                                                                    \
        "assumed: modules of TransformerEngine allocate tensors for each kernel, for each expert " \
        "too (NVIDIA/TransformerEngine, issue 1499)"),                                             \
        HOST("host", CS_FITTED_HOST, FITTED ": modules of TransformerEngine and Megatron-LM"),     \
        HOST("host_product_backward", "52 us",                                                     \
             "NVIDIA/TransformerEngine, pull request 3523: forward and backward of Linear take "   \
             "the "                                                                                \
             "host of a GB200 311.3 us, the forward 59.2; issue 2053: that host takes 37.08 us "   \
             "where that of a DGX H100 takes 13.48; of the 92 us left, two kernels are 40"),       \
        HOST("step", CS_FITTED_STEP, FITTED)

#define FLASH(version, source_)                                                                    \
    {                                                                                              \
        .key = "/runtime/flash", .value = "\"" version "\"", .source = source_                     \
    }

/* A convention that others are conditioned on: the newest rules that are known. */
#define PYTORCH_RELEASE                                                                            \
    {                                                                                              \
        .key = "/runtime/release", .value = "\"2.11\"",                                            \
        .source = "assumed: the conventions of PyTorch 2.11 and later; give the release if it is " \
                  "an earlier one"                                                                 \
    }

#define CUDNN_IN(with_, source_)                                                                   \
    {                                                                                              \
        .key = "/runtime/flash", .value = "\"cudnn\"", .with = with_,                              \
        .source = "aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, priority_order: "         \
                  "scaled_dot_product_attention prefers cuDNN's attention " source_                \
    }

/* Attention in 16 bits. PyTorch disabled cuDNN's attention again in two releases. */
#define IN_16_BITS "/model/precision!=fp32|tf32 "
#define PYTORCH_FLASH                                                                              \
    CUDNN_IN(IN_16_BITS "/runtime/release>=2.11 " CAPABILITY "=9|10",                              \
             "on sm90 and sm100 with cuDNN after 9.15, which 2.11 is the first to come with "      \
             "(huggingface/transformers, pull request 48163)"),                                    \
        CUDNN_IN(IN_16_BITS "/runtime/release>=2.9 /runtime/release<2.10 " CAPABILITY "=9|10",     \
                 "on sm90 and sm100 (pytorch/pytorch, pull request 162073, for 2.9); 2.10 wants "  \
                 "a newer cuDNN than it comes with"),                                              \
        CUDNN_IN(IN_16_BITS "/runtime/release>=2.5 /runtime/release<2.5.1 " CAPABILITY "=9",       \
                 "on sm90 (PyTorch 2.5 release blog); 2.5.1 made it opt-in (pytorch/pytorch, "     \
                 "pull requests 138522 and 138587)"),                                              \
        FLASH("flash2", "aten/src/ATen/native/transformers/cuda/flash_attn: the kernel of "        \
                        "scaled_dot_product_attention since PyTorch 2.2")

/* Of PyTorch itself, where in_step of these devices is fitted to TransformerEngine's. */
#define KERNELS_ON_HOPPER                                                                          \
    {                                                                                              \
        .key = "/runtime/kernels", .value = CS_FITTED_FSDP,                                        \
        .source = FITTED ": products of PyTorch itself on Hopper",                                 \
        .with = "/model/precision!=fp32 " HOPPER                                                   \
    }

#define EARLY_STOP                                                                                 \
    {                                                                                              \
        .key = "/runtime/early_stop", .value = "true",                                             \
        .source =                                                                                  \
            "torch/utils/checkpoint.py: without use_reentrant, recomputation stops once all "      \
            "tensors that backward needs are there (set_checkpoint_early_stop, PyTorch 2.1)",      \
        .with = "/model/recompute=true"                                                            \
    }

#define FUSED(source_)                                                                             \
    {                                                                                              \
        .key = "/runtime/fused", .value = "true", .source = source_                                \
    }

#define COMPILED(key_, source_)                                                                    \
    {                                                                                              \
        .key = "/runtime/" key_, .value = "true", .source = source_,                               \
        .with = "/runtime/compile=true"                                                            \
    }

/* What torch.compile makes of a program in PyTorch. */
#define PYTORCH_COMPILED                                                                           \
    COMPILED("fused", "torch/_inductor/scheduler.py, fuse_nodes: what only moves is fused"),       \
        COMPILED(                                                                                  \
            "separate_products",                                                                   \
            "torch/_inductor/config.py: pre_grad_fusion_options and post_grad_fusion_options "     \
            "are empty, so that linear layers that read the same, as wq, wk and wv, and w1 "       \
            "and w3, of torchtitan/models/llama3/model/model.py, stay products of their "          \
            "own; torch/_inductor/fx_passes/post_grad.py, is_valid_addmm_fusion")

#define GRADIENT_PASSES(value_, source_)                                                           \
    {                                                                                              \
        .key = "/runtime/gradient_passes", .value = value_, .source = source_                      \
    }

#define PYTORCH_CLIPPING                                                                           \
    GRADIENT_PASSES("3", "torch/nn/utils/clip_grad.py: the norm reads gradients, "                 \
                         "_foreach_mul_ reads and writes them; zero_grad sets them to None")

#define FOREACH(source_)                                                                           \
    {                                                                                              \
        .key = "/runtime/foreach_optimizer", .value = "true", .source = source_                    \
    }

#define PYTORCH_OPTIMIZER                                                                          \
    FOREACH("torch/optim/optimizer.py, _default_to_fused_or_foreach: where neither is asked for, " \
            "optimizers are foreach")

/* Precisions whose weights are stored in bf16; gradients have the type of the weights
 * (precision.h). */
#define OF_BF16 "bf16|fp8|mxfp8|nvfp4"

#define FP32_GRADIENTS(source_)                                                                    \
    {                                                                                              \
        .key = "/model/gradients", .value = "\"fp32\"", .source = source_,                         \
        .with = "/model/precision=" OF_BF16                                                        \
    }

#define BLOCKING(kind, source_)                                                                    \
    {                                                                                              \
        .key = "/platform/blocking", .value = "true", .source = source_,                           \
        .with = "/schedule/kind=" kind                                                             \
    }

#define BESIDE                                                                                     \
    {                                                                                              \
        .key = "/platform/slowdown",                                                               \
        .value = "[{\"factor\": 1.19, \"communication\": \"collectives\"}]",                       \
        .source = "Lee et al., 2025 (arXiv 2507.03114): 1.19 on average beside communication"      \
    }

/* All else is as in a DGX H100. */
#define FIFTH_NVLINKS "{\"gpu_pair\": 0.7, \"node\": 0.8}"

#define REACHED_IN_RACKS(with_)                                                                    \
    {                                                                                              \
        .key = "/collectives/reached", .value = FIFTH_NVLINKS,                                     \
        .source = "the NVLinks of a DGX B200; HybridEP (deepseek-ai/DeepEP at 41cad94, "           \
                  "README_Hybrid-EP.md) sends 0.59 to 0.73 of 900 GB/s between 8 to 36 GPUs; the " \
                  "network of a DGX H100",                                                         \
        .with = with_                                                                              \
    }

#define REACHED_IN_DGX_B200(with_)                                                                 \
    {                                                                                              \
        .key = "/collectives/reached", .value = FIFTH_NVLINKS,                                     \
        .source = "SimuMax (4dcaae51), DGX B200: all-reduce 0.742, all-gather 0.674, "             \
                  "reduce-scatter 0.673 of 900 GB/s; the network is that of a DGX H100",           \
        .with = with_                                                                              \
    }

#define REACHED_IN_DGX1(with_)                                                                     \
    {                                                                                              \
        .key = "/collectives/reached", .value = "{\"gpu_pair\": 0.89, \"node\": 0.8}",             \
        .source = "all-reduces of 256 MiB on 2, 3, 4, 6, 7 and 8 V100 (VIA-Research/vTrain at "    \
                  "f8dda847, trace/v100) have 22.5, 45.0, 85.4, 45.6, 86.1 and 133.2 GB/s of the " \
                  "25, 50, 100, 50, 100 and 150 that the rings of a DGX-1 have; the network is "   \
                  "that of a DGX H100",                                                            \
        .with = with_                                                                              \
    }

#define REACHED_BY_XGMI(with_)                                                                     \
    {                                                                                              \
        .key = "/collectives/reached", .value = "{\"gpu_pair\": 0.75, \"node\": 0.8}",             \
        .source = "error correction and protocol leave 48 of the 64 GB/s of an xGMI link "         \
                  "(rocm.blogs.amd.com/software-tools-optimization/mi300x-rccl-xgmi, 2025); the "  \
                  "network is that of a DGX H100",                                                 \
        .with = with_                                                                              \
    }

#define DISPATCH                                                                                   \
    {                                                                                              \
        .key = "/collectives/dispatch", .value = "{\"reached\": 0.95, \"start\": \"0.45 ms\"}",    \
        .source =                                                                                  \
            "HybridEP on 16, 32 and 64 H100 with an adapter of 50 GB/s each (deepseek-ai/DeepEP "  \
            "at 41cad94, README_Hybrid-EP.md: 4,096 tokens of 7,168 features, top 8, kernels on "  \
            "16 multiprocessors): 58, 159 and 270 MB from each to other nodes take 1.75, 3.67 "    \
            "and "                                                                                 \
            "6.18 ms, dispatch and combine on average",                                            \
        .with = "/parallel/dispatcher=once_per_node"                                               \
    }

#define COLLECTIVES                                                                                \
    DISPATCH, REACHED_IN_DGX_B200("/platform/topology=dgx-b200"),                                  \
        REACHED_IN_DGX_B200("/platform/node/model=dgx-b200"),                                      \
        REACHED_IN_RACKS("/platform/topology=gb200-nvl72"),                                        \
        REACHED_IN_RACKS("/platform/node/model=nvl72"),                                            \
        REACHED_IN_DGX1("/platform/topology=dgx1*"),                                               \
        REACHED_IN_DGX1("/platform/node/topology=dgx1"),                                           \
        REACHED_BY_XGMI("/platform/topology=nvlink_mesh " AMD),                                    \
        REACHED_BY_XGMI("/platform/node/topology=nvlink_mesh " AMD),                               \
        {.key = "/collectives/reached",                                                            \
         .value = "0.8",                                                                           \
         .source = "nccl-tests reach 230 to 240 of 300 GB/s on DGX A100, 360 of 450 on DGX H100"}, \
    {                                                                                              \
        .key = "/collectives/start", .value = "\"25 us\"",                                         \
        .source = "SimuMax (4dcaae51), DGX B200: 22 to 26 us beside 5.5 to 9.2 us of latency"      \
    }

/* Of gradients that are divided. */
#define REDUCES_EACH(zero, source_)                                                                \
    {                                                                                              \
        .key = "/parallel/accumulate", .value = "false", .source = source_,                        \
        .with = "/parallel/zero=" zero " /parallel/gather_once!=true"                              \
    }

#define FSDP_REDUCES                                                                               \
    "torch/distributed/fsdp: gradients are reduced in each backward, but for those in no_sync() "  \
    "or before set_requires_gradient_sync(True)"
#define FSDP_REDUCES_EACH REDUCES_EACH("2", FSDP_REDUCES), REDUCES_EACH("3", FSDP_REDUCES)

#define FSDP_SHARDS                                                                                \
    {                                                                                              \
        .key = "/parallel/shard_copies", .value = "false",                                         \
        .source =                                                                                  \
            "torch/distributed/fsdp/_fully_shard/_fsdp_param.py: sharded_param has the type "      \
            "of the parameters, and is cast to param_dtype in all_gather_inputs; "                 \
            "_fsdp_collectives.py, foreach_reduce: gradients are cast to that type"                \
    }

/* ---- memory, of models that are built from operators ---- */

#define NAMED "/model/name"

#define KEEPS(key_, value_, source_)                                                               \
    {                                                                                              \
        .key = "/memory/" key_, .value = value_, .source = source_, .with = NAMED                  \
    }

#define PYTORCH_ALLOCATOR                                                                          \
    KEEPS("allocator", "\"pytorch\"",                                                              \
          "c10/cuda/CUDACachingAllocator.cpp: PyTorch's default, \"native\"")

#define PYTORCH_MEMORY                                                                             \
    PYTORCH_ALLOCATOR,                                                                             \
        KEEPS(                                                                                     \
            "weight_gradients", "\"apart\"",                                                       \
            "torch/csrc/autograd/functions/accumulate_grad.h: a gradient is made, and then added " \
            "to the sum"),                                                                         \
        KEEPS("libraries", "[\"cublas\"]",                                                         \
              "aten/src/ATen/cuda/CublasHandlePool.cpp: getChosenWorkspaceSize")

#define KEEPS_WITH(key_, value_, with_, source_)                                                   \
    {                                                                                              \
        .key = "/memory/" key_, .value = value_, .source = source_, .with = NAMED " " with_        \
    }

/* torch.compile saves for backward the results of products and of attention, and the inputs of
 * backward's products, which no product's kernel can recompute. Elementwise operators (activations of
 * gates, casts and products within norms) run again in backward. */
#define PARTITIONED                                                                                \
    "torch/_functorch/partitioners.py, min_cut_rematerialization_partition: elementwise "          \
    "operators run again in backward, unless a product reads their result there "                  \
    "(ban_recompute_materialized_backward), so norms save their input and statistics, and gates "  \
    "their inputs"
#define COMPILED_MEMORY                                                                            \
    KEEPS_WITH("fused", "[\"norm\", \"swiglu\"]", "/runtime/compile=true", PARTITIONED)
#define COMPILED_LOSS(with_, source_)                                                              \
    KEEPS_WITH("fused", "[\"norm\", \"swiglu\", \"cross_entropy\"]",                               \
               "/runtime/compile=true" with_, PARTITIONED "; " source_)
#define LOSS_WITHIN                                                                                \
    COMPILED_LOSS("", "the loss is within the compiled network, which returns it, as in "          \
                      "transformers and nanoGPT: logits are saved, and no logarithms in float32")

#define GATHER_BUFFER(source_) KEEPS("gather_buffer", "\"last_matrix\"", source_)

#define SCATTER_GATHER(source_)                                                                    \
    {                                                                                              \
        .key = "/parallel/scatter_gather", .value = "true", .source = source_,                     \
        .with = "/parallel/tensor>1 /parallel/pipeline>1 /parallel/sequence_parallel!=true"        \
    }

/* Where TransformerEngine takes FlashAttention. */
#define COPIES_ATTENTION(with, source_) KEEPS_WITH("attention_copy", "true", with, source_)

#define BACKENDS                                                                                   \
    "transformer_engine/pytorch/attention/dot_product_attention/utils.py, get_attention_backend: "
#define ONE_COPY(with_)                                                                            \
    KEEPS_WITH("narrow_copies", "1", "/model/precision=fp8 " with_,                                \
               "transformer_engine/pytorch/utils.py, is_non_tn_fp8_gemm_supported: products read " \
               "fp8 either way round from compute capability 10 on, but for 12, and with ROCm")

#define WORKSPACES                                                                                 \
    "aten/src/ATen/cuda/CublasHandlePool.cpp: getChosenWorkspaceSize; "                            \
    "transformer_engine/pytorch/module/base.py: get_cublas_workspace_size_bytes, "                 \
    "get_multi_stream_cublas_workspace"

/* Megatron Core's memory with TransformerEngine depends on the device's compute capability. */
#define ANOTHER_THAN_HOPPER "/runtime/deterministic=true " CAPABILITY ">=8 " CAPABILITY "!=9"
#define MEGATRON_ATTENTION                                                                         \
    COPIES_ATTENTION(CAPABILITY ">=8 " CAPABILITY "<9",                                            \
                     BACKENDS "FlashAttention is preferred before sm90"),                          \
        COPIES_ATTENTION(                                                                          \
            ANOTHER_THAN_HOPPER, BACKENDS                                                          \
            "cuDNN's deterministic backward is Hopper's only, elsewhere FlashAttention's "         \
            "is taken"),                                                                           \
        KEEPS_WITH("deterministic_multiprocessors", "/device/training/tiling/multiprocessors",     \
                   ANOTHER_THAN_HOPPER,                                                            \
                   BACKENDS                                                                        \
                   "FlashAttention is taken; its mha_bwd (csrc/flash_attn/flash_api.cpp) has "     \
                   "a sum for each wave of blocks over the device's multiprocessors")

/* ---- the bundles ---- */

static const cs_convention none[] = {{0}};

static const cs_convention megatron_core[] = {
    MEGATRON_HOST,
    COLLECTIVES,
    BESIDE,
    FP32_GRADIENTS("megatron/training/arguments.py, validate_args: bf16 sets "
                   "accumulate_allreduce_grads_in_fp32"),
    {"/model/main_weights", "\"fp32\"",
     "megatron/core/optimizer/optimizer_config.py: main_params_dtype", NULL},
    {"/model/states", "\"fp32\"",
     "megatron/core/optimizer/optimizer_config.py: exp_avg_dtype, exp_avg_sq_dtype", NULL},
    BLOCKING("1f1b", "megatron/training/arguments.py, validate_args: overlap_p2p_comm is False "
                     "without the interleaved schedule"),
    REDUCES_EACH("2", "megatron/core/distributed/fsdp: optim_grads reduces gradients behind each "
                      "micro-batch"),
    REDUCES_EACH("3", "megatron/core/distributed/fsdp: optim_grads_params reduces gradients behind "
                      "each micro-batch"),
    {"/parallel/bucket", "\"160 MB\"",
     "megatron/core/distributed/distributed_data_parallel.py: bucket_size is max(40000000, 1000000 "
     "* dp_size) gradients, here of 4 bytes, with --overlap-grad-reduce (without it none overlaps: "
     "set 0)",
     NULL},
    FUSED("TransformerEngine: LayerNormLinear, SwiGLU and rotary kernels; megatron/core/fusions"),
    {"/runtime/summed_ring", "true",
     "transformer_engine/pytorch/attention.py: AttnFuncWithCPAndKVP2P",
     "/parallel/context>1 /parallel/context_method!=all_to_all "
     "/parallel/context_method!=all_gather"},
    {"/runtime/expert_loop", "true",
     "TransformerEngine: GroupedLinear is a product for each expert on cuBLAS's streams "
     "(transformer_engine/pytorch/cpp_extensions/gemm.py, general_grouped_gemm), and "
     "split_quantize a cast for each; megatron/core/transformer/moe/experts.py: TEGroupedMLP waits "
     "for tokens_per_expert, and _apply_bias is a loop",
     NULL},
    FLASH("cudnn", "transformer_engine/pytorch/attention/dot_product_attention/utils.py, "
                   "get_attention_backend: cuDNN's attention is preferred on sm90 and later"),
    GRADIENT_PASSES("4", "megatron/core/optimizer/clip_grads.py: get_grad_norm_fp32 reads, "
                         "clip_grad_by_total_norm_fp32 reads and writes where the norm is above "
                         "the limit, as in the first steps; zero_grad_buffer writes"),
    PYTORCH_ALLOCATOR,
    KEEPS("fused", "[\"norm\", \"swiglu\", \"linear\"]",
          "megatron/training/arguments.py: bias_swiglu_fusion and masked_softmax_fusion are on; "
          "norms and linear layers are TransformerEngine's"),
    KEEPS("weight_gradients", "\"transformer_engine\"",
          "megatron/core/extensions/transformer_engine.py: fuse_wgrad_accumulation is "
          "gradient_accumulation_fusion, which is on"),
    KEEPS_WITH("libraries",
               "[\"cublas\", \"transformer_engine\", \"grouped_products\", \"user_buffers\"]",
               "/parallel/tensor>1 /collectives/tensor_overlap>0",
               WORKSPACES "; get_cublas_workspace, _NUM_MAX_UB_STREAMS"),
    KEEPS("libraries", "[\"cublas\", \"transformer_engine\", \"grouped_products\"]", WORKSPACES),
    KEEPS_WITH("cublas_workspace", "\"32 MiB\"", "/runtime/deterministic=true",
               "torch.use_deterministic_algorithms wants CUBLAS_WORKSPACE_CONFIG, which "
               "Megatron-LM's tests set to :4096:8"),
    GATHER_BUFFER("megatron/core/tensor_parallel/layers.py, "
                  "LinearWithGradAccumulationAndAsyncCommunication: get_global_memory_buffer()"),
    MEGATRON_ATTENTION,
    KEEPS("padding_masks", "true",
          "transformer_engine/pytorch/attention/dot_product_attention/backends.py, "
          "UnfusedDotProductAttention: masked_fill by the mask of utils.py, get_full_mask"),
    ONE_COPY(CAPABILITY ">=10 " CAPABILITY "<12"),
    ONE_COPY(CAPABILITY ">=13"),
    ONE_COPY(AMD),
    KEEPS("routed_weights", "\"features\"",
          "megatron/core/transformer/moe/experts.py, TEGroupedMLP, from 0.11 on: permuted_probs "
          "multiply what the activation makes"),
    {"/memory/weight_buffer", "true",
     "megatron/core/distributed/param_and_grad_buffer.py: parameters are moved into param_data "
     "with "
     "the distributed optimizer",
     "/parallel/zero=1"},
    {"/memory/stage_results", "\"returned\"",
     "megatron/core/pipeline_parallel/schedules.py: input_tensor_grad is a variable of the loop, "
     "and the grad of the input that set_input_tensor leaves in the model; the graph of "
     "output_tensor holds that input",
     "/parallel/pipeline>1"},
    {0}};

static const cs_convention megatron_2021[] = {
    PYTORCH_HOST,
    COLLECTIVES,
    BESIDE,
    FP32_GRADIENTS("megatron/arguments.py: bf16 sets accumulate_allreduce_grads_in_fp32"),
    BLOCKING("1f1b", "megatron/p2p_communication.py: torch.cuda.synchronize behind "
                     "batch_isend_irecv"),
    BLOCKING("interleaved_1f1b", "megatron/p2p_communication.py: torch.cuda.synchronize behind "
                                 "batch_isend_irecv"),
    FUSED(
        "megatron/model/fused_*.py: masked softmax, layer norm, bias with GELU, bias with dropout "
        "and sum"),
    FLASH("flash2", "no other fused attention at the time"),
    GRADIENT_PASSES("6",
                    "megatron/optimizer: unscaling reads and writes gradients, the norm reads, "
                    "scaling by it reads and writes, zeroing writes"),
    PYTORCH_ALLOCATOR,
    KEEPS(
        "fused", "[\"norm\", \"linear\"]",
        "megatron/model/fused_layer_norm.py; megatron/mpu/layers.py: products keep what they read "
        "only"),
    KEEPS("weight_gradients", "\"in_place\"",
          "megatron/fused_kernels/fused_weight_gradient_dense.cpp: kernels add to main_grad"),
    GATHER_BUFFER("megatron/core/tensor_parallel/layers.py: get_global_memory_buffer(), with "
                  "sequence parallelism, which there is from May 2022 on"),
    SCATTER_GATHER("megatron/p2p_communication.py: scatter_gather_tensors_in_pipeline is on; "
                   "Narayanan et al., SC 2021, section 4.1"),
    KEEPS("libraries", "[\"cublas\"]",
          "aten/src/ATen/cuda/CublasHandlePool.cpp: getChosenWorkspaceSize"),
    {0}};

static const cs_convention fsdp[] = {
    PYTORCH_RELEASE,   PYTORCH_COMPILED, PYTORCH_HOST,   KERNELS_ON_HOPPER, EARLY_STOP,
    COLLECTIVES,       BESIDE,           PYTORCH_FLASH,  PYTORCH_OPTIMIZER, PYTORCH_CLIPPING,
    FSDP_REDUCES_EACH, FSDP_SHARDS,      PYTORCH_MEMORY, LOSS_WITHIN,       {0}};

static const cs_convention ddp[] = {
    PYTORCH_RELEASE,
    PYTORCH_COMPILED,
    PYTORCH_HOST,
    PYTORCH_OPTIMIZER,
    EARLY_STOP,
    COLLECTIVES,
    BESIDE,
    {"/parallel/bucket", "\"25 MiB\"",
     "torch/nn/parallel/distributed.py: bucket_cap_mb; Li et al., VLDB 2020, section 3.2.3", NULL},
    PYTORCH_FLASH,
    PYTORCH_MEMORY,
    LOSS_WITHIN,
    {0}};

/* `bytes`: elements of the buffer times the size of the type that is sent */
#define REDUCE_BUFFER(bytes, with_)                                                                \
    KEEPS_WITH(                                                                                    \
        "reduce_buffer", "\"" bytes "\"", with_,                                                   \
        "deepspeed/runtime/zero/config.py: reduce_bucket_size is 5e8 elements, and "               \
        "contiguous_gradients True; stage_1_and_2.py, backward: ipg_buffer, and stage3.py: "       \
        "__ipg_bucket_flat_buffer, have all of them; engine.py, _configure_zero_optimizer: "       \
        "stage 1 has no such buffer without experts")

static const cs_convention deepspeed[] = {
    PYTORCH_HOST,
    COLLECTIVES,
    BESIDE,
    FP32_GRADIENTS("deepspeed/runtime/bf16_optimizer.py, BF16_Optimizer: "
                   "fp32_groups_gradients_flat"),
    BLOCKING("1f1b",
             "deepspeed/runtime/pipe/engine.py: instructions of TrainSchedule run one after "
             "the other"),
    REDUCES_EACH("2", "deepspeed/runtime/zero/stage_1_and_2.py, partition_gradients: each backward "
                      "reduces its gradients"),
    REDUCES_EACH("3", "deepspeed/runtime/zero/stage3.py: each backward reduces its gradients"),
    FUSED("Megatron-DeepSpeed has the fused kernels of Megatron-LM"),
    {"/runtime/kernels", CS_FITTED_DEEPSPEED, FITTED, NULL},
    FLASH("flash2", "Megatron-DeepSpeed: --use-flash-attn is FlashAttention"),
    GRADIENT_PASSES("4", "deepspeed/runtime/bf16_optimizer.py: get_global_norm_of_tensors reads, "
                         "clip_tensors_by_global_norm reads and writes, clear_hp_grads writes"),
    PYTORCH_ALLOCATOR,
    KEEPS("fused", "[\"norm\", \"swiglu\", \"linear\"]",
          "Megatron-DeepSpeed: megatron/model/fused_layer_norm.py"),
    KEEPS("weight_gradients", "\"apart\"",
          "deepspeed/runtime/bf16_optimizer.py, update_hp_grads: hp_grad.data.add_"),
    KEEPS_WITH("weight_buffer", "true", "/parallel/zero=1 /model/precision=" OF_BF16,
               "deepspeed/runtime/bf16_optimizer.py, _setup_for_real_optimizer: weights are "
               "flattened into bf16_groups_flat"),
    REDUCE_BUFFER("1 GB", "/parallel/zero=2|3 /model/precision=fp16|" OF_BF16),
    REDUCE_BUFFER("2 GB", "/parallel/zero=2|3"),
    REDUCE_BUFFER("1 GB", "/parallel/zero=1 /parallel/expert>1 /model/precision=fp16|" OF_BF16),
    GATHER_BUFFER("Megatron-DeepSpeed: megatron/core/tensor_parallel/layers.py, "
                  "get_global_memory_buffer()"),
    SCATTER_GATHER("deepspeed/runtime/pipe/engine.py: is_pipe_partitioned"),
    KEEPS("libraries", "[\"cublas\"]",
          "aten/src/ATen/cuda/CublasHandlePool.cpp: getChosenWorkspaceSize"),
    {0}};

static const cs_convention torchtitan[] = {
    PYTORCH_RELEASE,
    PYTORCH_HOST,
    EARLY_STOP,
    COLLECTIVES,
    BESIDE,
    FP32_GRADIENTS("torchtitan's mixed_precision_reduce is float32 by default"),
    {"/runtime/eager_ring", "true",
     "torch/distributed/tensor/experimental/_attention.py: _SDPAMerger",
     "/parallel/context>1 /parallel/context_method!=all_to_all "
     "/parallel/context_method!=all_gather"},
    {"/parallel/accumulate", "true",
     "torch/distributed/pipelining/stage.py, backward_maybe_with_nosync: with the last micro-batch",
     "/parallel/pipeline>1"},
    {"/parallel/gather_once", "true",
     "torchtitan/models/llama3/infra/parallelize.py, apply_fsdp: reshard_after_forward is False "
     "under a pipeline; torch/distributed/pipelining/stage.py, backward_maybe_with_nosync and "
     "_post_backward: weights are resharded, and gradients reduced, behind the last backward",
     "/parallel/pipeline>1 /parallel/zero=3"},
    {"/parallel/regather", "true",
     "torchtitan's selective checkpointing (models/llama3/infra/parallelize.py, "
     "_op_sac_save_list) saves what reduce_scatter_tensor makes and not what is gathered",
     "/parallel/tensor>1 /parallel/sequence_parallel=true /model/recompute_operators"},
    {"/parallel/regather", "false",
     "torch/distributed/tensor/parallel/style.py, PrepareModuleInput: a linear layer saves what it "
     "reads, which is gathered in front of it",
     "/parallel/tensor>1 /parallel/sequence_parallel=true"},
    FSDP_REDUCES_EACH,
    FSDP_SHARDS,
    PYTORCH_COMPILED,
    {"/runtime/flash", "\"cudnn\"",
     "torchtitan/models/attention.py, sdpa_backends: cuDNN's attention comes first on all devices "
     "since the end of 2025, when PyTorch 2.10 was in development",
     IN_16_BITS "/runtime/release>=2.10 " CAPABILITY ">=8"},
    {"/runtime/flash", "\"cudnn\"",
     "torchtitan/models/attention.py, _init_backend: cuDNN's attention comes first on B200",
     IN_16_BITS CAPABILITY ">=10"},
    FLASH("flash2", "torchtitan/models/attention.py, _init_backend: FLASH_ATTENTION comes first"),
    GRADIENT_PASSES("3",
                    "torchtitan/distributed/utils.py, clip_grad_norm_: the norm reads gradients, "
                    "clip_grads_with_norm_ reads and writes them"),
    PYTORCH_MEMORY,
    COMPILED_LOSS(" /runtime/release>=2.8",
                  "torchtitan/components/loss.py, build_cross_entropy_loss: the loss is compiled, "
                  "since spring 2025, when PyTorch 2.8 was in development"),
    COMPILED_MEMORY,
    KEEPS("narrow_weights", "\"cast\"",
          "torchao/float8/float8_linear.py: weights are cast for each product"),
    KEEPS("narrow_inputs", "false",
          "torchao/float8/float8_linear.py, matmul_with_hp_or_float8_args: input_hp is saved"),
    {"/memory/receive_buffers", "true",
     "torch/distributed/pipelining/stage.py: args_recv_info and grad_recv_info of all "
     "micro-batches",
     "/parallel/pipeline>1"},
    {"/memory/stage_results", "\"backward\"",
     "torch/distributed/pipelining/stage.py: fwd_cache has a stage's results until its backward; "
     "torchtitan/trainer.py: return_outputs=False",
     "/parallel/pipeline>1"},
    KEEPS("expandable_segments", "true",
          "torchtitan/run_train.sh: PYTORCH_ALLOC_CONF is expandable_segments:True"),
    {0}};

static const cs_convention llm_foundry[] = {
    PYTORCH_COMPILED,
    PYTORCH_HOST,
    KERNELS_ON_HOPPER,
    FOREACH("mosaicml/composer, composer/optim/decoupled_weight_decay.py, DecoupledAdamW.adamw: "
            "as in PyTorch, for each tensor"),
    EARLY_STOP,
    COLLECTIVES,
    BESIDE,
    {"/model/gradients", "\"weights\"",
     "llm-foundry, scripts/train/yamls/pretrain/mpt-7b.yaml: FSDP's mixed_precision is PURE, which "
     "reduces gradients in the type of computing",
     NULL},
    FSDP_REDUCES_EACH,
    FSDP_SHARDS,
    FLASH(
        "flash1",
        "llm-foundry at 8c8dd48f: scripts/train/yamls/pretrain have attn_impl: triton, which is as "
        "fast as the first FlashAttention"),
    GRADIENT_PASSES("3",
                    "composer/algorithms/gradient_clipping: FSDP's clip_grad_norm_, whose norm "
                    "reads gradients and whose multiplication reads and writes them"),
    PYTORCH_MEMORY,
    COMPILED_MEMORY,
    {0}};

/* In the order of the names. */
static const cs_convention *const bundles[] = {none, megatron_core, megatron_2021, fsdp,
                                               ddp,  deepspeed,     torchtitan,    llm_foundry};

const cs_convention *cs_runtime_conventions(uint32_t name)
{
    return bundles[name];
}

/* ---- what runtimes can combine ---- */

#define SCHEDULES(kinds, text_, source_)                                                           \
    {                                                                                              \
        .needs = "/schedule/kind=sequential|dp|custom" kinds, .text = text_, .source = source_     \
    }

#define NO_PIPELINE(source_)                                                                       \
    SCHEDULES("", "has no pipeline", source_),                                                     \
    {                                                                                              \
        .needs = "/parallel/pipeline<2", .text = "has no pipeline", .source = source_              \
    }

#define NO_PARTS(source_)                                                                          \
    {                                                                                              \
        .needs = "/parallel/filter<2 /parallel/channel<2 /parallel/space<2 !/parallel/rules",      \
        .text = "splits neither images nor filters, and shards all layers alike",                  \
        .source = source_                                                                          \
    }

#define FSDP_STAGES(source_)                                                                       \
    {                                                                                              \
        .needs = "/parallel/zero=0|2|3",                                                           \
        .text = "divides gradients with optimizer states, so that there is no ZeRO 1",             \
        .source = source_                                                                          \
    }

#define WHOLE_GROUPS(text_, source_)                                                               \
    {                                                                                              \
        .with = "/schedule/kind=interleaved_1f1b",                                                 \
        .needs = "/schedule/micro_batches%/parallel/pipeline", .text = text_, .source = source_    \
    }

#define HALVES_OF_SEQUENCES(source_)                                                               \
    {                                                                                              \
        .with = "/parallel/context>1", .needs = "/model/parameters/sequence%2:/parallel/context",  \
        .text = "needs a sequence length that is a multiple of twice the context size",            \
        .source = source_                                                                          \
    }

#define SHARDING_STRATEGIES                                                                        \
    "torch/distributed/fsdp/api.py, ShardingStrategy: FULL_SHARD, SHARD_GRAD_OP, NO_SHARD"

static const cs_runtime_rule no_rules[] = {{0}};

/* NVIDIA/Megatron-LM at d98e8a64. */
static const cs_runtime_rule megatron_core_rules[] = {
    SCHEDULES("|1f1b|interleaved_1f1b", "has the schedules 1f1b and interleaved_1f1b only",
              "megatron/core/pipeline_parallel/schedules.py:161, get_forward_backward_func"),
    {.with = "/parallel/pipeline>1",
     .needs = "/parallel/zero<2",
     .text = "divides neither gradients nor weights (ZeRO 2 and 3) if there is a pipeline",
     .source = "megatron/training/arguments.py:1034, --use-torch-fsdp2; "
               "megatron/core/distributed/fsdp/mcore_fsdp_adapter.py:627, Megatron-FSDP 2"},
    WHOLE_GROUPS("needs a multiple of the pipeline ranks as micro-batches for interleaved_1f1b",
                 "megatron/core/pipeline_parallel/schedules.py:1160 to 1180; "
                 "megatron/core/model_parallel_config.py:567, microbatch_group_size_per_vp_stage"),
    HALVES_OF_SEQUENCES("megatron/training/arguments.py:1335"),
    NO_PARTS(
        "megatron/core/parallel_state.py, initialize_model_parallel: tensor, pipeline, context, "
        "expert and data"),
    {0}};

/* NVIDIA/Megatron-LM, 2021 and 2022. */
static const cs_runtime_rule megatron_2021_rules[] = {
    SCHEDULES("|1f1b|interleaved_1f1b", "has the schedules 1f1b and interleaved_1f1b only",
              "megatron/schedules.py, get_forward_backward_func"),
    {.needs = "/parallel/zero<2",
     .text = "divides neither gradients nor weights (ZeRO 2 and 3)",
     .source = "megatron/optimizer/distrib_optimizer.py: optimizer states"},
    WHOLE_GROUPS("needs a multiple of the pipeline ranks as micro-batches for interleaved_1f1b",
                 "megatron/schedules.py, get_forward_backward_func: get_num_microbatches() % "
                 "pipeline_model_parallel_size"),
    {.needs = "/parallel/context<2 /parallel/expert<2",
     .text = "has no context and expert parallelism",
     .source = "megatron/mpu/initialize.py, initialize_model_parallel"},
    NO_PARTS("megatron/mpu/initialize.py, initialize_model_parallel: tensor, pipeline and data"),
    {0}};

static const cs_runtime_rule fsdp_rules[] = {
    NO_PIPELINE("torch/distributed/fsdp: shards modules, and has no schedules"),
    FSDP_STAGES(SHARDING_STRATEGIES),
    {0}};

static const cs_runtime_rule ddp_rules[] = {
    NO_PIPELINE("torch/nn/parallel/distributed.py: replicates the module"),
    {.needs = "/parallel/zero<2",
     .text = "divides neither gradients nor weights (ZeRO 2 and 3)",
     .source = "torch/distributed/optim/zero_redundancy_optimizer.py: optimizer states"},
    {.needs = "/parallel/tensor<2 /parallel/context<2 /parallel/expert<2",
     .text = "replicates the whole model",
     .source = "torch/nn/parallel/distributed.py: replicates the module"},
    NO_PARTS("torch/nn/parallel/distributed.py: replicates the module"),
    {0}};

/* deepspeedai/DeepSpeed at edaa7221. */
static const cs_runtime_rule deepspeed_rules[] = {
    SCHEDULES("|1f1b", "has the schedule 1f1b only",
              "deepspeed/runtime/pipe/schedule.py:189, TrainSchedule"),
    {.with = "/parallel/pipeline>1",
     .needs = "/parallel/zero<2",
     .text = "divides neither gradients nor weights (ZeRO 2 and 3) if there is a pipeline",
     .source = "deepspeed/runtime/pipe/engine.py:76"},
    {.with = "/parallel/expert>1",
     .needs = "/parallel/zero<3",
     .text = "does not divide weights (ZeRO 3) if experts are divided",
     .source = "deepspeed/runtime/engine.py:1890"},
    {.with = "/parallel/context>1",
     .needs = "/parallel/context_method=all_to_all",
     .text = "divides sequences by all-to-alls of heads only (\"context_method\": "
             "\"all_to_all\")",
     .source = "deepspeed/sequence/layer.py:351, DistributedAttention"},
    NO_PARTS("deepspeed/utils/groups.py: data, expert, tensor and sequence groups"),
    {0}};

/* pytorch/torchtitan at b5bcd76c. */
static const cs_runtime_rule torchtitan_rules[] = {
    SCHEDULES("|gpipe|1f1b|interleaved_1f1b|zb_v|dualpipe_v",
              "has the schedules gpipe, 1f1b, interleaved_1f1b, zb_v and dualpipe_v only",
              "torch/distributed/pipelining/schedules.py, get_schedule_class"),
    FSDP_STAGES("torchtitan/config/configs.py:122 to 145: data_parallel_replicate_degree, "
                "data_parallel_shard_degree, fsdp_reshard_after_forward"),
    HALVES_OF_SEQUENCES("torchtitan/distributed/parallel_dims.py:664, seq_len_divisor"),
    NO_PARTS(
        "torchtitan/distributed/parallel_dims.py, ParallelDims: data, context, tensor, pipeline "
        "and expert"),
    {0}};

static const cs_runtime_rule llm_foundry_rules[] = {
    NO_PIPELINE("mosaicml/composer, composer/distributed: FSDP and tensor parallelism"),
    FSDP_STAGES(SHARDING_STRATEGIES),
    {.needs = "/parallel/context<2",
     .text = "has no context parallelism",
     .source = "mosaicml/composer, composer/distributed: FSDP and tensor parallelism"},
    {0}};

/* In the order of the names. */
static const cs_runtime_rule *const rules[] = {
    no_rules,  megatron_core_rules, megatron_2021_rules, fsdp_rules,
    ddp_rules, deepspeed_rules,     torchtitan_rules,    llm_foundry_rules};

const cs_runtime_rule *cs_runtime_rules(uint32_t name)
{
    return rules[name];
}

/* Device descriptions: facts about an accelerator, and the times that follow from them.
 *
 * A pass over an operator takes the time to start its kernels, plus the longer of computing and
 * moving data (a roofline; Williams et al., CACM 2009):
 *
 *     launches * launch + max(flop / (peak * compute), bytes / (bandwidth * memory))
 *
 * If operands are first cast to a narrow type, the time to move the bytes of the cast is added, at
 * the efficiency of elementwise operators.
 *
 * `compute` and `memory` are the efficiencies of the operator's group: the fractions of the data
 * sheet's peaks that it reaches. Convolutions, linear layers and attention multiply in the
 * network's precision, everything else in float32.
 *
 * In fp32, matrix units do not help, and libraries have several ways to compute a convolution.
 * Frameworks take the fastest (torch.backends.cudnn.benchmark; otherwise cuDNN's heuristics), so a
 * pass takes the shorter of these times:
 *
 *   direct     the formula above. A 1 x 1 convolution without strides is a matrix product of
 *              tensors as they are in memory, and has the efficiency of linear layers
 *   Winograd   minimal filtering (winograd.h), for 3 x 3 convolutions, if the device has the group
 *              "winograd"
 *
 * Descriptions are JSON files (facts/devices/). The project's own descriptions are compiled into
 * the program and loaded by name.
 */
#ifndef CS_WORKLOAD_ACCELERATOR_H
#define CS_WORKLOAD_ACCELERATOR_H

#include "sim/base/facts.h"
#include "sim/base/field.h"
#include "sim/base/time.h"
#include "sim/model/op-cost.h"

typedef enum cs_accelerator_group {
    CS_GROUP_CONV,
    /* `compute`: efficiency of the multiplications in the single fused kernel; 0: no Winograd */
    CS_GROUP_WINOGRAD,
    CS_GROUP_LINEAR,
    CS_GROUP_ATTENTION,
    CS_GROUP_NORM,
    CS_GROUP_ELEMENTWISE,
    CS_GROUP_POOL,
    CS_GROUP_EMBEDDING,
    CS_GROUP_LOSS,
    CS_N_ACCELERATOR_GROUPS
} cs_accelerator_group;

typedef struct cs_efficiency {
    double compute, memory; /* fractions of the peak flop rate and bandwidth */
    const char *source;     /* where the two fractions come from */
} cs_efficiency;

/* Versions of fused attention: FlashAttention-2, FlashAttention-1 (Triton's kernel of 2023 is as
 * fast), FlashAttention-3, and cuDNN's attention in the network's type or in fp8. */
typedef enum cs_flash {
    CS_FLASH_2,
    CS_FLASH_1,
    CS_FLASH_3,
    CS_FLASH_CUDNN,
    CS_FLASH_CUDNN_FP8,
    CS_N_FLASH
} cs_flash;

/* Names of cs_flash, NULL-terminated: "flash2", "flash1", "flash3", "cudnn", "cudnn_fp8". */
extern const char *const cs_flash_names[];

/* Rates of one version of fused attention: fractions of the peak flop rate with heads of 128
 * features and 4,096 causal tokens; the backward rate counts recomputed products too. The last
 * three members adapt the time to other heads and sequences (fused-attention.h); 0: no change. */
typedef struct cs_flash_rate {
    double forward, backward;
    const char *source;
    double softmax; /* share of the time that does not depend on the head size */
    /* time to begin and end a tile of queries, as the number of keys that take as long */
    double ramp;
    double tile; /* queries per tile */
} cs_flash_rate;

typedef struct cs_factor {
    double factor;
    const char *source;
} cs_factor;

/* Tiles of matrix products: the number of multiprocessors (each computes one tile of a result at a
 * time), the time to fill them before each wave of tiles, and the fraction of the time to write a
 * result that is not overlapped with computing. */
typedef struct cs_tiling {
    uint32_t multiprocessors;
    cs_time fill;
    double written;
    const char *source;
} cs_tiling;

/* Rates of kernels in training, used in addition to the groups' rooflines (runtime-kernels.h);
 * NULL: not stated. */
typedef struct cs_training {
    /* matrix products, timed tile by tile; without `tiling`, and for grouped products, the times of
     * flop and bytes add up */
    cs_efficiency *matrix;
    cs_efficiency *grouped;                 /* expert products; NULL: as matrix */
    cs_efficiency *narrow[CS_N_PRECISIONS]; /* products in fp8, mxfp8, nvfp4; NULL: as matrix */
    cs_efficiency *grouped_narrow[CS_N_PRECISIONS]; /* their expert products; NULL: as grouped */
    cs_efficiency *single;                          /* fp32 products; NULL: as matrix */
    /* tiles of products; NULL: partial waves cost nothing extra */
    cs_tiling *tiling;
    cs_efficiency *memory;            /* memory-bound kernels; NULL: as the group elementwise */
    cs_flash_rate *flash[CS_N_FLASH]; /* fused attention; NULL: as the group attention */
    /* factor on kernel times within a training step; NULL: 1 */
    cs_factor *in_step;
    cs_factor *host; /* factor on host times, relative to the host of a DGX H100; NULL: 1 */
} cs_training;

/* Link between a device's memory and its host's memory: bytes/s that copies reach in each direction
 * while both directions are in use and other devices copy as well. */
typedef struct cs_host_link {
    double bandwidth;
    const char *source;
} cs_host_link;

typedef enum cs_vendor { CS_VENDOR_OTHER, CS_VENDOR_NVIDIA, CS_VENDOR_AMD } cs_vendor;

/* Facts that decide which kernels and workspace sizes libraries choose. */
typedef struct cs_architecture {
    uint32_t vendor;        /* cs_vendor */
    const char *generation; /* "hopper", "cdna3"; "" if not stated */
    double capability;      /* CUDA's compute capability, such as 9.0; 0: none */
    const char *source;
} cs_architecture;

/* Memory available to a program, in bytes: the driver reports less than the data sheet states, each
 * process has a context, and each NCCL or RCCL communicator has buffers. */
typedef struct cs_driver {
    int64_t reported, context, communicator;
    const char *source;
} cs_driver;

/* Bytes of the workspaces that libraries allocate on a device; 0: default sizes. */
typedef struct cs_workspaces {
    int64_t cublas; /* workspace of a cuBLAS or hipBLAS handle in PyTorch */
    int64_t engine; /* workspace of TransformerEngine's products, per stream */
    const char *source;
} cs_workspaces;

/* Facts about a device that a scenario needs in addition to kernel times. Zeroed: no device. */
typedef struct cs_device_facts {
    int64_t memory;   /* bytes, from the data sheet */
    cs_driver driver; /* if not stated: `reported` is `memory`, the rest is 0 */
    cs_workspaces workspaces;
    double host_bandwidth; /* bytes/s of the link to its host; 0: not known */
    double capability;     /* CUDA's compute capability; 0: none */
} cs_device_facts;

typedef struct cs_accelerator {
    const char *name, *title;
    cs_list aliases, except; /* lists of texts (sim/base/facts.h) */
    const char *machine;     /* machine that usually contains such GPUs; NULL: not stated */
    /* GPUs in what users call a node, if the machine's node is larger (such as a rack); 0: the
     * machine's node */
    uint32_t gpus_per_node;
    cs_architecture architecture; /* zeroed: not stated */
    cs_driver driver;             /* zeroed: not stated */
    cs_workspaces workspaces;     /* zeroed: not stated */
    int64_t memory;               /* capacity, bytes */
    double bandwidth;             /* peak memory bandwidth, bytes/s */
    /* time from the start of one empty kernel to the start of the next */
    cs_time launch;
    double peaks[CS_N_PRECISIONS]; /* flop/s of dense matrix products; 0: not supported */
    const char *peak_source, *bandwidth_source, *memory_source, *launch_source, *machine_source;
    cs_training training;
    cs_host_link host_link; /* bandwidth 0: not stated */
    cs_efficiency groups[CS_N_ACCELERATOR_GROUPS];
    cs_arena arena;
} cs_accelerator;

/* Kind of the device descriptions (sim/base/facts.h). */
extern const cs_facts_kind cs_device_kind;

/* Frees a device; allowed on a zeroed struct. */
void cs_accelerator_finish(cs_accelerator *device);

/* Loads a device by its name, or from a file if `name` ends in ".json"; the path is relative to the
 * file `from` (NULL: to the current folder). Errors list the known names. */
CS_MUST_CHECK cs_status cs_accelerator_load(const char *name, const char *from,
                                            cs_accelerator *device, cs_error *error);
CS_MUST_CHECK cs_status cs_accelerator_read(const cJSON *root, const cs_json_place *place,
                                            cs_accelerator *device, cs_error *error);

cs_device_facts cs_accelerator_facts(const cs_accelerator *device);

/* Makes the ideal device "none": every operator takes no time. */
void cs_accelerator_none(cs_accelerator *device);

/* Returns CS_INVALID if the device does not support the precision; the message lists the supported
 * precisions. */
CS_MUST_CHECK cs_status cs_accelerator_check(const cs_accelerator *device, cs_precision precision,
                                             cs_error *error);

/* Returns the seconds of one pass over an operator. */
double cs_accelerator_seconds(const cs_accelerator *device, const cs_op *op,
                              const cs_pass_cost *pass, cs_precision precision);

/* Returns the seconds of one pass over a convolution; `product` is the efficiency of matrix
 * products. */
double cs_accelerator_conv_seconds(const cs_accelerator *device, const cs_op *op,
                                   const cs_pass_cost *pass, cs_precision precision,
                                   const cs_efficiency *product);

/* Returns the seconds of a weight update that moves `bytes`. */
double cs_accelerator_update_seconds(const cs_accelerator *device, double bytes);

#endif

/* Devices: what a description of an accelerator tells, and the times that follow from it.
 *
 * A pass over an operator takes the longer of computing and moving (a roofline; Williams et al.,
 * CACM 2009), and the time to start its kernels:
 *
 *     launches * launch + max(flop / (peak * compute), bytes / (bandwidth * memory))
 *
 * and, where operands are cast to a narrow type before, the bytes that this moves, at the
 * efficiency of elementwise operators.
 *
 * `compute` and `memory` are the efficiencies of the operator's group, fractions of the data
 * sheet's peaks that are reached. Convolutions, linear layers and attention multiply in the units
 * of the precision, everything else in float32.
 *
 * Libraries compute convolutions in fp32, which units for matrices do not help, in several ways,
 * and frameworks take the fastest (torch.backends.cudnn.benchmark; else by cuDNN's heuristics), so
 * that a pass takes the least of
 *
 *   directly     as above. A convolution of one pixel without strides is a product of matrices as
 *                they are in memory, and reaches what linear layers do
 *   by Winograd's minimal filtering (winograd.h), of 3 x 3 convolutions, where the device has the
 *                group "winograd"
 *
 * Descriptions are JSON files (facts/devices/); those that the project ships are part of the
 * program and known by name.
 */
#ifndef CS_WORKLOAD_ACCELERATOR_H
#define CS_WORKLOAD_ACCELERATOR_H

#include "sim/base/facts.h"
#include "sim/base/field.h"
#include "sim/base/time.h"
#include "sim/model/op-cost.h"

typedef enum cs_accelerator_group {
    CS_GROUP_CONV,
    CS_GROUP_WINOGRAD, /* `compute` is that of the multiplications in its one kernel; 0: none */
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
    double compute, memory; /* fractions of the peaks */
    const char *source;     /* where the two come from */
} cs_efficiency;

/* Versions of fused attention: FlashAttention-2, the first one, which Triton's of 2023 is as fast
 * as, 3, and cuDNN's, in the type of the network or in fp8. */
typedef enum cs_flash {
    CS_FLASH_2,
    CS_FLASH_1,
    CS_FLASH_3,
    CS_FLASH_CUDNN,
    CS_FLASH_CUDNN_FP8,
    CS_N_FLASH
} cs_flash;

/* "flash2", "flash1", "flash3", "cudnn", "cudnn_fp8", ended by NULL. */
extern const char *const cs_flash_names[];

/* Fractions of the peak that a version reaches with heads of 128 features and 4,096 causal tokens,
 * backward with the products that are repeated; and what it takes with others (fused-attention.h),
 * 0: the same. */
typedef struct cs_flash_rate {
    double forward, backward;
    const char *source;
    double softmax; /* share of the time that does not depend on the size of heads */
    double ramp;    /* keys that take as long as to begin and to end a tile of queries */
    double tile;    /* queries of it */
} cs_flash_rate;

typedef struct cs_factor {
    double factor;
    const char *source;
} cs_factor;

/* Number of multiprocessors: each computes one tile of a product's result at a time. Then the time
 * to fill them before a wave of tiles, and the exposed fraction of writing a result. */
typedef struct cs_tiling {
    uint32_t multiprocessors;
    cs_time fill;
    double written;
    const char *source;
} cs_tiling;

/* What kernels take in training, beside the groups' rooflines (runtime-kernels.h); NULL: not
 * stated. */
typedef struct cs_training {
    cs_efficiency
        *matrix; /* products, by tiles; where these are not known, and of grouped ones, flop
                             * and bytes add up */
    cs_efficiency *grouped;                 /* products of experts; NULL: as matrix */
    cs_efficiency *narrow[CS_N_PRECISIONS]; /* products in fp8, mxfp8 and nvfp4; NULL: as matrix */
    cs_efficiency
        *grouped_narrow[CS_N_PRECISIONS]; /* products of experts in these; NULL: as grouped */
    cs_efficiency *single;                /* fp32 products; NULL: as matrix */
    cs_tiling *tiling;                    /* for products; NULL: partial waves cost nothing extra */
    cs_efficiency *memory;                /* memory-bound kernels; NULL: as the group elementwise */
    cs_flash_rate *flash[CS_N_FLASH];     /* NULL: as the group attention */
    cs_factor *in_step;                   /* time in a step relative to that alone; NULL: 1 */
    cs_factor *host; /* time of its host relative to that of a DGX H100; NULL: 1 */
} cs_training;

/* The way from a device's memory to its host's and back: bytes/s that copies reach in each
 * direction, both at once, when other devices copy as well. */
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

/* Memory that a program can use: the driver reports less than the data sheet states, a process has
 * a context, and each communicator of NCCL or RCCL has buffers. Bytes. */
typedef struct cs_driver {
    int64_t reported, context, communicator;
    const char *source;
} cs_driver;

/* Bytes of the workspaces that libraries allocate on a device; 0: the usual ones. */
typedef struct cs_workspaces {
    int64_t cublas; /* workspace of a cuBLAS or hipBLAS handle in PyTorch */
    int64_t engine; /* workspace of TransformerEngine's products, per stream */
    const char *source;
} cs_workspaces;

/* Facts of a device that a scenario needs besides the times of kernels. Zeroed: no device. */
typedef struct cs_device_facts {
    int64_t memory;   /* bytes, by the data sheet */
    cs_driver driver; /* reported = memory and nothing else if not stated */
    cs_workspaces workspaces;
    double host_bandwidth; /* bytes/s, of the link to its host; 0: not known */
    double capability;     /* CUDA's compute capability; 0: none */
} cs_device_facts;

typedef struct cs_accelerator {
    const char *name, *title;
    cs_list aliases, except;       /* texts (sim/base/facts.h) */
    const char *machine;           /* that such GPUs usually are in; NULL: not stated */
    uint32_t gpus_per_node;        /* as people count nodes; 0: as the machine does */
    cs_architecture architecture;  /* zeroed: not stated */
    cs_driver driver;              /* the same */
    cs_workspaces workspaces;      /* the same */
    int64_t memory;                /* bytes */
    double bandwidth;              /* bytes/s */
    cs_time launch;                /* from one kernel to the next */
    double peaks[CS_N_PRECISIONS]; /* flop/s of dense matrix products; 0: not supported */
    const char *peak_source, *bandwidth_source, *memory_source, *launch_source, *machine_source;
    cs_training training;
    cs_host_link host_link; /* bandwidth 0: not stated */
    cs_efficiency groups[CS_N_ACCELERATOR_GROUPS];
    cs_arena arena;
} cs_accelerator;

/* Descriptions of devices (sim/base/facts.h). */
extern const cs_facts_kind cs_device_kind;

/* Zeroed devices can be finished. */
void cs_accelerator_finish(cs_accelerator *device);

/* Loads a device by its name, or from a file when `name` ends in ".json", relative to the file
 * `from` (NULL: to the current folder). Errors list the known names. */
CS_MUST_CHECK cs_status cs_accelerator_load(const char *name, const char *from,
                                            cs_accelerator *device, cs_error *error);
CS_MUST_CHECK cs_status cs_accelerator_read(const cJSON *root, const cs_json_place *place,
                                            cs_accelerator *device, cs_error *error);

cs_device_facts cs_accelerator_facts(const cs_accelerator *device);

/* The device that stands for none: every operator takes no time. */
void cs_accelerator_none(cs_accelerator *device);

/* CS_INVALID, with what it has, when the device does not compute in that precision. */
CS_MUST_CHECK cs_status cs_accelerator_check(const cs_accelerator *device, cs_precision precision,
                                             cs_error *error);

/* Seconds of one pass over an operator. */
double cs_accelerator_seconds(const cs_accelerator *device, const cs_op *op,
                              const cs_pass_cost *pass, cs_precision precision);

/* The same of a convolution, where products of matrices reach `product`. */
double cs_accelerator_conv_seconds(const cs_accelerator *device, const cs_op *op,
                                   const cs_pass_cost *pass, cs_precision precision,
                                   const cs_efficiency *product);

/* Seconds of updating weights, by the bytes that move. */
double cs_accelerator_update_seconds(const cs_accelerator *device, double bytes);

#endif

#include "sim/model/accelerator.h"

#include "sim/base/document-kind.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

/* ---- reading ---- */

static const cs_field word_field = {"word", CS_FIELD_TEXT};

static const cs_field head_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(cs_accelerator, name), .doc = "what scenarios call it"},
    {"title", CS_FIELD_TEXT, offsetof(cs_accelerator, title), .fallback = "",
     .doc = "vendor, product, form; else the name"},
    {"aliases", CS_FIELD_LIST, offsetof(cs_accelerator, aliases), .fallback = "[]",
     .of = &word_field, .doc = "other names: one fits a text that has all of its words"},
    {"except", CS_FIELD_LIST, offsetof(cs_accelerator, except), .fallback = "[]", .of = &word_field,
     .doc = "words of the names of other products that aliases would fit"},
    {"machine", CS_FIELD_TEXT, offsetof(cs_accelerator, machine), .fallback = "",
     .doc = "machine that it usually comes in (sim list topologies), for runs whose description "
            "names none"},
    {"gpus_per_node", CS_FIELD_COUNT, offsetof(cs_accelerator, gpus_per_node), .fallback = "0",
     .max = 1 << 20,
     .doc =
         "GPUs of a node as people count them, if a node of the machine is more, such as a rack"},
    {"memory", CS_FIELD_BYTES, offsetof(cs_accelerator, memory), .doc = "capacity of its memory"},
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(cs_accelerator, bandwidth), .above_min = true,
     .doc = "peak bandwidth of its memory"},
    {"launch", CS_FIELD_TIME, offsetof(cs_accelerator, launch), .fallback = "0", .usual_max = 0.1,
     .doc = "time from the start of one empty kernel to the start of the next"},
    {0}};

#define PEAK(name, precision)                                                                      \
    name, CS_FIELD_FLOP_RATE, (precision) * sizeof(double), .doc = "dense matrix products"

static const cs_field peak_fields[] = {{PEAK("fp32", CS_PRECISION_FP32), .above_min = true},
                                       {PEAK("tf32", CS_PRECISION_TF32), .fallback = "0"},
                                       {PEAK("fp16", CS_PRECISION_FP16), .fallback = "0"},
                                       {PEAK("bf16", CS_PRECISION_BF16), .fallback = "0"},
                                       {PEAK("fp8", CS_PRECISION_FP8), .fallback = "0"},
                                       {PEAK("mxfp8", CS_PRECISION_MXFP8), .fallback = "0"},
                                       {PEAK("nvfp4", CS_PRECISION_NVFP4), .fallback = "0"},
                                       {0}};

static const cs_field efficiency_fields[] = {
    {"compute", CS_FIELD_NUMBER, offsetof(cs_efficiency, compute), .above_min = true, .max = 8,
     .doc = "fraction of the peak flop rate that is reached"},
    {"memory", CS_FIELD_NUMBER, offsetof(cs_efficiency, memory), .above_min = true, .max = 1,
     .doc = "fraction of the peak bandwidth that is reached"},
    {"source", CS_FIELD_TEXT, offsetof(cs_efficiency, source),
     .doc = "where they come from: a measurement, or \"assumed\""},
    {0}};

#define GROUP(name, group)                                                                         \
    {                                                                                              \
        name, CS_FIELD_OBJECT, (group) * sizeof(cs_efficiency *),                                  \
            .of = efficiency_fields, .size = sizeof(cs_efficiency),                                \
            .doc = "efficiencies of this group", .shape = "{\"compute\", \"memory\", \"source\"}"  \
    }

static const cs_field winograd_fields[] = {
    {"products", CS_FIELD_NUMBER, offsetof(cs_efficiency, compute), .above_min = true, .max = 1,
     .doc = "fraction of the peak flop rate that multiplications reach in the one kernel"},
    {"memory", CS_FIELD_NUMBER, offsetof(cs_efficiency, memory), .above_min = true, .max = 1,
     .doc = "fraction of the peak bandwidth that is reached"},
    {"source", CS_FIELD_TEXT, offsetof(cs_efficiency, source), .doc = "where they come from"},
    {0}};

#define WINOGRAD                                                                                   \
    {                                                                                              \
        "winograd", CS_FIELD_OBJECT, CS_GROUP_WINOGRAD * sizeof(cs_efficiency *),                  \
            .fallback = "", .of = winograd_fields, .size = sizeof(cs_efficiency),                  \
            .doc = "of 3 x 3 convolutions in fp32; else they are computed directly",               \
            .shape = "{\"products\", \"memory\", \"source\"}"                                      \
    }

/* In the order of cs_accelerator_group. */
static const cs_field group_fields[] = {
    GROUP("conv", CS_GROUP_CONV),     WINOGRAD,
    GROUP("linear", CS_GROUP_LINEAR), GROUP("attention", CS_GROUP_ATTENTION),
    GROUP("norm", CS_GROUP_NORM),     GROUP("elementwise", CS_GROUP_ELEMENTWISE),
    GROUP("pool", CS_GROUP_POOL),     GROUP("embedding", CS_GROUP_EMBEDDING),
    GROUP("loss", CS_GROUP_LOSS),     {0}};

static const cs_field flash_fields[] = {
    {"forward", CS_FIELD_NUMBER, offsetof(cs_flash_rate, forward), .above_min = true, .max = 1,
     .doc = "fraction of the peak flop rate that is reached"},
    {"backward", CS_FIELD_NUMBER, offsetof(cs_flash_rate, backward), .above_min = true, .max = 1,
     .doc = "the same for the backward, which has five products where the forward has two"},
    {"softmax", CS_FIELD_NUMBER, offsetof(cs_flash_rate, softmax), .fallback = "0", .max = 0.99,
     .doc = "share of the time with heads of 128 features that does not depend on their size"},
    {"ramp", CS_FIELD_NUMBER, offsetof(cs_flash_rate, ramp), .fallback = "0", .max = 1e6,
     .doc = "time to begin and to end a tile of queries, as the number of keys that take as long"},
    {"tile", CS_FIELD_NUMBER, offsetof(cs_flash_rate, tile), .fallback = "0", .max = 1e6,
     .doc = "queries per tile; half as many keys are computed and masked at the diagonal"},
    {"source", CS_FIELD_TEXT, offsetof(cs_flash_rate, source), .doc = "where they come from"},
    {0}};

static const cs_field factor_fields[] = {
    {"factor", CS_FIELD_NUMBER, offsetof(cs_factor, factor), .above_min = true, .max = 8,
     .doc = "the factor"},
    {"source", CS_FIELD_TEXT, offsetof(cs_factor, source), .doc = "where it comes from"},
    {0}};

const char *const cs_flash_names[] = {"flash2", "flash1", "flash3", "cudnn", "cudnn_fp8", NULL};

#define PART(name, member, table, type, what)                                                      \
    {                                                                                              \
        name, CS_FIELD_OBJECT, offsetof(cs_training, member), .fallback = "", .of = table,         \
                                                              .size = sizeof(type), .doc = what    \
    }

static const cs_field tiling_fields[] = {
    {"multiprocessors", CS_FIELD_COUNT, offsetof(cs_tiling, multiprocessors), .min = 1,
     .max = 1 << 20, .doc = "each computes a tile of a product's result at a time"},
    {"fill", CS_FIELD_TIME, offsetof(cs_tiling, fill), .fallback = "0", .usual_max = 1e-3,
     .doc = "time to fill them before a wave of tiles computes"},
    {"written", CS_FIELD_NUMBER, offsetof(cs_tiling, written), .fallback = "0", .max = 2,
     .doc = "share of the time to write a result that computing does not hide"},
    {"source", CS_FIELD_TEXT, offsetof(cs_tiling, source), .doc = "where it comes from"},
    {0}};

static const cs_field training_fields[] = {
    PART("matrix", matrix, efficiency_fields, cs_efficiency, "matrix products"),
    PART("grouped", grouped, efficiency_fields, cs_efficiency, "matrix products of experts"),
    PART("fp8", narrow[CS_PRECISION_FP8], efficiency_fields, cs_efficiency,
         "matrix products in fp8; else as matrix, like the next two"),
    PART("mxfp8", narrow[CS_PRECISION_MXFP8], efficiency_fields, cs_efficiency,
         "matrix products in mxfp8"),
    PART("nvfp4", narrow[CS_PRECISION_NVFP4], efficiency_fields, cs_efficiency,
         "matrix products in nvfp4"),
    PART("grouped_fp8", grouped_narrow[CS_PRECISION_FP8], efficiency_fields, cs_efficiency,
         "matrix products of experts in fp8; else as grouped, like the next two"),
    PART("grouped_mxfp8", grouped_narrow[CS_PRECISION_MXFP8], efficiency_fields, cs_efficiency,
         "matrix products of experts in mxfp8"),
    PART("grouped_nvfp4", grouped_narrow[CS_PRECISION_NVFP4], efficiency_fields, cs_efficiency,
         "matrix products of experts in nvfp4"),
    PART("single", single, efficiency_fields, cs_efficiency, "matrix products in fp32"),
    PART("memory", memory, efficiency_fields, cs_efficiency, "memory-bound kernels"),
    PART("flash2", flash[CS_FLASH_2], flash_fields, cs_flash_rate, "FlashAttention-2"),
    PART("flash1", flash[CS_FLASH_1], flash_fields, cs_flash_rate, "FlashAttention, also Triton's"),
    PART("flash3", flash[CS_FLASH_3], flash_fields, cs_flash_rate, "FlashAttention-3"),
    PART("cudnn", flash[CS_FLASH_CUDNN], flash_fields, cs_flash_rate, "cuDNN's attention"),
    PART("cudnn_fp8", flash[CS_FLASH_CUDNN_FP8], flash_fields, cs_flash_rate,
         "the same in fp8, by the peak of the network's type"),
    PART("tiling", tiling, tiling_fields, cs_tiling,
         "tiles of products; without it, a last wave that is not full costs nothing"),
    PART("in_step", in_step, factor_fields, cs_factor,
         "factor on the times of all kernels within a training step"),
    PART("host", host, factor_fields, cs_factor,
         "factor on host times, relative to the host of a DGX H100"),
    {0}};

static const cs_field host_link_fields[] = {
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(cs_host_link, bandwidth), .above_min = true,
     .doc = "bandwidth of copies in each direction, with both directions in use"},
    {"source", CS_FIELD_TEXT, offsetof(cs_host_link, source), .doc = "where it comes from"},
    {0}};

static const char *const vendor_names[] = {"other", "nvidia", "amd", NULL};

static const cs_field architecture_fields[] = {
    {"vendor", CS_FIELD_CHOICE, offsetof(cs_architecture, vendor), .choices = vendor_names,
     .doc = "who made it: libraries for NVIDIA's and AMD's devices differ"},
    {"generation", CS_FIELD_TEXT, offsetof(cs_architecture, generation), .fallback = "",
     .doc = "name of the architecture, such as hopper"},
    {"capability", CS_FIELD_NUMBER, offsetof(cs_architecture, capability), .fallback = "0",
     .max = 1000,
     .doc = "CUDA's compute capability, such as 9.0, by which libraries choose kernels and "
            "workspaces; 0: none"},
    {"source", CS_FIELD_TEXT, offsetof(cs_architecture, source), .doc = "where they come from"},
    {0}};

static const cs_field driver_fields[] = {
    {"reported", CS_FIELD_BYTES, offsetof(cs_driver, reported), .min = 1, .large = true,
     .doc = "memory that the driver reports, which is less than the data sheet states"},
    {"context", CS_FIELD_BYTES, offsetof(cs_driver, context), .fallback = "0 B", .large = true,
     .doc = "memory that the context of a process takes"},
    {"communicator", CS_FIELD_BYTES, offsetof(cs_driver, communicator), .fallback = "0 B",
     .large = true, .doc = "memory that a communicator of NCCL or RCCL takes"},
    {"source", CS_FIELD_TEXT, offsetof(cs_driver, source), .doc = "where they come from"},
    {0}};

static const cs_field workspace_fields[] = {
    {"cublas", CS_FIELD_BYTES, offsetof(cs_workspaces, cublas), .min = 1,
     .doc = "workspace of a handle of cuBLAS or hipBLAS in PyTorch"},
    {"transformer_engine", CS_FIELD_BYTES, offsetof(cs_workspaces, engine), .min = 1,
     .doc = "workspace of TransformerEngine's matrix products, on each of its streams"},
    {"source", CS_FIELD_TEXT, offsetof(cs_workspaces, source), .doc = "where they come from"},
    {0}};

typedef struct document {
    cs_workspaces *workspaces;
    cs_driver *driver;
    cs_architecture *architecture;
    cs_training *training;
    cs_host_link *host_link;
    uint32_t schema_version;
    double *peaks;              /* flop/s, per precision */
    cs_efficiency **efficiency; /* per group */
    cs_accelerator *sources;    /* only the `..._source` members are set */
} document;

static const cs_field source_fields[] = {
    {"peaks", CS_FIELD_TEXT, offsetof(cs_accelerator, peak_source), .doc = "source of the peaks"},
    {"bandwidth", CS_FIELD_TEXT, offsetof(cs_accelerator, bandwidth_source),
     .doc = "source of the bandwidth"},
    {"memory", CS_FIELD_TEXT, offsetof(cs_accelerator, memory_source),
     .doc = "source of the capacity"},
    {"launch", CS_FIELD_TEXT, offsetof(cs_accelerator, launch_source),
     .doc = "source of the launch time"},
    {"machine", CS_FIELD_TEXT, offsetof(cs_accelerator, machine_source), .fallback = "",
     .doc = "why it is usually in that machine"},
    {0}};

static const cs_field document_fields[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(document, schema_version), .min = SCHEMA_VERSION,
     .max = SCHEMA_VERSION, .doc = "version of the format"},
    {"peaks", CS_FIELD_OBJECT, offsetof(document, peaks), .of = peak_fields,
     .size = CS_N_PRECISIONS * sizeof(double),
     .doc = "dense matrix products by precision; what is missing is not supported",
     .shape = "{\"fp32\", \"tf32\", \"fp16\", \"bf16\", \"fp8\", \"mxfp8\", \"nvfp4\"}"},
    {"efficiency", CS_FIELD_OBJECT, offsetof(document, efficiency), .of = group_fields,
     .size = CS_N_ACCELERATOR_GROUPS * sizeof(cs_efficiency *),
     .doc = "by group of operators: fractions of the peaks, and where they come from",
     .shape = "{group: {\"compute\", \"memory\", \"source\"}}"},
    {"sources", CS_FIELD_OBJECT, offsetof(document, sources), .of = source_fields,
     .size = sizeof(cs_accelerator), .doc = "where the peaks come from",
     .shape = "{\"peaks\", \"bandwidth\", \"memory\", \"launch\"}"},
    {"architecture", CS_FIELD_OBJECT, offsetof(document, architecture), .fallback = "",
     .of = architecture_fields, .size = sizeof(cs_architecture),
     .doc = "what libraries decide by which kernels and workspaces they use; without it, those of "
            "other vendors",
     .shape = "{\"vendor\", \"generation\", \"capability\", \"source\"}"},
    {"driver", CS_FIELD_OBJECT, offsetof(document, driver), .fallback = "", .of = driver_fields,
     .size = sizeof(cs_driver),
     .doc = "memory that programs can use; without it, all of the data sheet's",
     .shape = "{\"reported\", \"context\", \"communicator\", \"source\"}"},
    {"workspaces", CS_FIELD_OBJECT, offsetof(document, workspaces), .fallback = "",
     .of = workspace_fields, .size = sizeof(cs_workspaces),
     .doc = "memory that libraries take for their products; without it, 8.125 MiB (cuBLAS) and "
            "4 MiB (TransformerEngine)",
     .shape = "{\"cublas\", \"transformer_engine\", \"source\"}"},
    {"training", CS_FIELD_OBJECT, offsetof(document, training), .fallback = "",
     .of = training_fields, .size = sizeof(cs_training),
     .doc = "what kernels take in training, for scenarios with a runtime",
     .shape = "{\"matrix\", \"grouped\", ..., \"in_step\"}"},
    {"host_link", CS_FIELD_OBJECT, offsetof(document, host_link), .fallback = "",
     .of = host_link_fields, .size = sizeof(cs_host_link),
     .doc = "link to the memory of its host, for offloading",
     .shape = "{\"bandwidth\", \"source\"}"},
    {0}};

static void take_parts(const document *parts, cs_accelerator *device)
{
    memcpy(device->peaks, parts->peaks, sizeof(device->peaks));
    for (int g = 0; g < CS_N_ACCELERATOR_GROUPS; g++)
        device->groups[g] = parts->efficiency[g] ? *parts->efficiency[g] : (cs_efficiency){0};
    device->peak_source = parts->sources->peak_source;
    device->bandwidth_source = parts->sources->bandwidth_source;
    device->memory_source = parts->sources->memory_source;
    device->launch_source = parts->sources->launch_source;
    device->machine_source = parts->sources->machine_source;
    if (parts->architecture)
        device->architecture = *parts->architecture;
    if (parts->driver)
        device->driver = *parts->driver;
    if (parts->workspaces)
        device->workspaces = *parts->workspaces;
    if (parts->training)
        device->training = *parts->training;
    if (parts->host_link)
        device->host_link = *parts->host_link;
}

cs_status cs_accelerator_read(const cJSON *root, const cs_json_place *place, cs_accelerator *device,
                              cs_error *error)
{
    cs_accelerator made = {0};
    document parts = {0};
    CS_TRY(cs_document_expect(CS_DOCUMENT_DEVICE, root, place, error));
    cs_arena_init(&made.arena);
    cs_status status =
        cs_field_read(root, place, (const cs_field *const[]){head_fields, document_fields, NULL},
                      (void *const[]){&made, &parts}, &made.arena, error);
    if (status != CS_OK) {
        cs_accelerator_finish(&made);
        return status;
    }
    take_parts(&parts, &made);
    made.title = made.title ? made.title : made.name;
    *device = made;
    return CS_OK;
}

const cs_facts_kind cs_device_kind = {"devices", "device", "docs/how-to/own-device.md", NULL};

cs_status cs_accelerator_load(const char *name, const char *from, cs_accelerator *device,
                              cs_error *error)
{
    cJSON *root;
    CS_TRY(cs_facts_load(&cs_device_kind, name, from, &root, error));
    char *path = from ? cs_file_relative(from, name) : strdup(name);
    const cs_status status =
        path ? cs_accelerator_read(root, &(cs_json_place){.file = path}, device, error)
             : cs_error_no_memory(error);
    free(path);
    cJSON_Delete(root);
    return status;
}

cs_device_facts cs_accelerator_facts(const cs_accelerator *device)
{
    const cs_driver *driver = &device->driver;
    return (cs_device_facts){
        .memory = device->memory,
        .driver = driver->reported > 0 ? *driver : (cs_driver){.reported = device->memory},
        .workspaces = device->workspaces,
        .host_bandwidth = device->host_link.bandwidth,
        .capability = device->architecture.capability};
}

void cs_accelerator_finish(cs_accelerator *device)
{
    if (!device)
        return;
    cs_arena_finish(&device->arena);
    *device = (cs_accelerator){0};
}

/* ---- times ---- */

void cs_accelerator_none(cs_accelerator *device)
{
    *device = (cs_accelerator){.name = "none", .title = "none", .bandwidth = INFINITY};
    cs_arena_init(&device->arena);
    for (int p = 0; p < CS_N_PRECISIONS; p++)
        device->peaks[p] = INFINITY;
    for (int g = 0; g < CS_N_ACCELERATOR_GROUPS; g++)
        device->groups[g] = (cs_efficiency){1, 1, "none"};
}

cs_status cs_accelerator_check(const cs_accelerator *device, cs_precision precision,
                               cs_error *error)
{
    char known[64] = "";
    if (device->peaks[precision] > 0 && device->peaks[cs_precision_wide(precision)] > 0)
        return CS_OK;
    for (int p = 0; p < CS_N_PRECISIONS; p++) {
        size_t used = strlen(known);
        if (device->peaks[p] > 0 && device->peaks[cs_precision_wide((cs_precision)p)] > 0)
            snprintf(known + used, sizeof(known) - used, "%s%s", used > 0 ? ", " : "",
                     cs_precision_names[p]);
    }
    return cs_error_add(error, CS_INVALID,
                        "device \"%s\" does not compute in %s: must be one of %s", device->name,
                        cs_precision_names[precision], known);
}

static cs_accelerator_group group_of(const cs_op *op)
{
    for (int g = 0; g < CS_N_ACCELERATOR_GROUPS; g++)
        if (strcmp(cs_op_kind_group(op->kind), group_fields[g].name) == 0)
            return (cs_accelerator_group)g;
    return CS_GROUP_ELEMENTWISE;
}

static double roofline(const cs_accelerator *device, const cs_pass_cost *pass, double peak,
                       const cs_efficiency *reached)
{
    return pass->launches * cs_time_seconds(device->launch) +
           fmax(pass->flop / (peak * reached->compute),
                pass->bytes / (device->bandwidth * reached->memory));
}

static double seconds_by_winograd(const cs_accelerator *device, const cs_pass_cost *pass,
                                  const cs_efficiency *product)
{
    const cs_efficiency *reached = &device->groups[CS_GROUP_WINOGRAD];
    const cs_tiling *tiling = device->training.tiling;
    const double peak = device->peaks[CS_PRECISION_FP32];
    if (!(pass->winograd.tiles > 0) || !(reached->compute > 0))
        return (double)INFINITY;
    const cs_winograd_rates rates = {.fused = peak * reached->compute,
                                     .products = peak * product->compute,
                                     .moved = device->bandwidth * reached->memory,
                                     .launch = cs_time_seconds(device->launch),
                                     .multiprocessors = tiling ? tiling->multiprocessors : 0};
    return cs_winograd_seconds(&pass->winograd, pass->flop, pass->bytes, &rates);
}

double cs_accelerator_conv_seconds(const cs_accelerator *device, const cs_op *op,
                                   const cs_pass_cost *pass, cs_precision precision,
                                   const cs_efficiency *product)
{
    const cs_efficiency *reached = &device->groups[CS_GROUP_CONV];
    if (precision != CS_PRECISION_FP32)
        return roofline(device, pass, device->peaks[cs_op_precision(op, precision)], reached);
    if (cs_op_is_pointwise(op))
        reached = product;
    return fmin(roofline(device, pass, device->peaks[CS_PRECISION_FP32], reached),
                seconds_by_winograd(device, pass, product));
}

double cs_accelerator_seconds(const cs_accelerator *device, const cs_op *op,
                              const cs_pass_cost *pass, cs_precision precision)
{
    const cs_accelerator_group group = group_of(op);
    const double peak = device->peaks[group <= CS_GROUP_ATTENTION ? cs_op_precision(op, precision)
                                                                  : CS_PRECISION_FP32];
    const double cast =
        pass->cast_bytes / (device->bandwidth * device->groups[CS_GROUP_ELEMENTWISE].memory);
    if (op->kind == CS_OP_CONV)
        return cast + cs_accelerator_conv_seconds(device, op, pass, precision,
                                                  &device->groups[CS_GROUP_LINEAR]);
    return cast + roofline(device, pass, peak, &device->groups[group]);
}

double cs_accelerator_update_seconds(const cs_accelerator *device, double bytes)
{
    double reached = device->groups[CS_GROUP_ELEMENTWISE].memory;
    return cs_time_seconds(device->launch) + bytes / (device->bandwidth * reached);
}

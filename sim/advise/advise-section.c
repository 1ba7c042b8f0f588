#include "sim/advise/advise-section.h"

#include <math.h>

enum { MOST = 1 << 20 };

const char *const cs_advise_recompute_names[] = {"none", "given", "full", NULL};
const char *const cs_advise_schedule_names[] = {"sequential", "1f1b",  "gpipe", "interleaved_1f1b",
                                                "zb_h1",      "zb_h2", "zb_v",  "dualpipe_v",
                                                NULL};
const char *const cs_advise_order_names[] = {"data", "pipeline", NULL};

static const cs_field size_field = {"size", CS_FIELD_COUNT, .min = 1, .max = MOST};
static const cs_field zero_field = {"zero", CS_FIELD_COUNT, .max = 3};
static const cs_field chunks_field = {"stages_per_device", CS_FIELD_COUNT, .min = 2, .max = 65536};
static const cs_field bucket_field = {"bucket", CS_FIELD_BYTES, .large = true};
static const cs_field recompute_field = {"recompute", CS_FIELD_CHOICE,
                                         .choices = cs_advise_recompute_names};
static const cs_field schedule_field = {"schedules", CS_FIELD_CHOICE,
                                        .choices = cs_advise_schedule_names};
static const cs_field inner_field = {"inner", CS_FIELD_CHOICE, .choices = cs_advise_order_names};

#define SIZES(key, text)                                                                           \
    {                                                                                              \
#key, CS_FIELD_LIST, offsetof(cs_advise_section, key),                                     \
            .fallback = "", .of = &size_field, .least = 1, .each = true, .doc = text,              \
            .shape = "size or [size, ...]"                                                         \
    }

const cs_field cs_advise_fields[] = {
    SIZES(devices, "numbers of devices to use; default: all of the platform"),
    SIZES(tensor, "sizes of the tensor axis; default: divisors of the devices up to a node's "
                  "devices; 1 for a network of images"),
    {"sequence_parallel", CS_FIELD_BOOL, offsetof(cs_advise_section, sequence_parallel),
     .fallback = "true", .doc = "with tensor: tokens are divided where layers are not"},
    SIZES(filter, "sizes of the filter axis; default: of a network of images, divisors of the "
                  "devices up to 64"),
    SIZES(channel, "the same of the channel axis"),
    SIZES(space, "parts of an image, divided over its dimensions as equally as they go; default: "
                 "of a network of images, divisors of the devices up to 16"),
    SIZES(context, "sizes of the context axis; default: divisors of the devices up to 16 that "
                   "leave each device 4,096 tokens of a sequence"),
    SIZES(pipeline, "pipeline ranks; default: divisors of the devices"),
    SIZES(expert, "sizes of the expert axis; default: divisors of the number of experts"),
    {"zero", CS_FIELD_LIST, offsetof(cs_advise_section, zero), .fallback = "", .of = &zero_field,
     .least = 1, .each = true, .doc = "what is divided over data and context; default: 0 to 3",
     .shape = "stage or [stage, ...]"},
    {"osdp", CS_FIELD_BOOL, offsetof(cs_advise_section, osdp), .fallback = "true",
     .doc = "with zero 0 and 3: plans of OSDP too, which shard some layers as far as they must, "
            "where there is no pipeline and one micro-batch"},
    SIZES(micro_batch, "samples of a micro-batch; default: powers of two up to 16, and all samples "
                       "of a data-parallel rank where there is no pipeline"),
    {"schedules", CS_FIELD_LIST, offsetof(cs_advise_section, schedules), .fallback = "",
     .of = &schedule_field, .least = 1, .each = true,
     .doc = "sequential is without a pipeline, the others with one; default: all but gpipe and "
            "zb_h2",
     .shape = "name or [name, ...]"},
    {"stages_per_device", CS_FIELD_LIST, offsetof(cs_advise_section, stages_per_device),
     .fallback = "", .of = &chunks_field, .least = 1, .each = true,
     .doc = "of interleaved_1f1b; default: 2, 4 and 8, as far as there are layers",
     .shape = "number or [number, ...]"},
    {"recompute", CS_FIELD_LIST, offsetof(cs_advise_section, recompute), .fallback = "",
     .of = &recompute_field, .least = 1, .each = true,
     .doc = "what is computed again in the backward: nothing, the operators that the model lists "
            "(\"recompute_operators\"), or every layer; default: all that the model can",
     .shape = "name or [name, ...]"},
    {"bucket", CS_FIELD_LIST, offsetof(cs_advise_section, bucket), .fallback = "",
     .of = &bucket_field, .least = 1, .each = true,
     .doc = "gradients that are reduced together while the last backward still runs; default: "
            "/parallel/bucket, and 25 MiB where neither that nor \"runtime\" is given",
     .shape = "bytes or [bytes, ...]"},
    {"inner", CS_FIELD_LIST, offsetof(cs_advise_section, inner), .fallback = "", .of = &inner_field,
     .least = 1, .each = true,
     .doc = "which axis has neighbouring devices, next to those that divide layers; default: both",
     .shape = "axis or [axis, ...]"},
    {"memory", CS_FIELD_BYTES, offsetof(cs_advise_section, memory), .fallback = "0", .large = true,
     .doc = "memory of a device that a plan may use; 0: /platform/memory"},
    {"device_price", CS_FIELD_NUMBER, offsetof(cs_advise_section, device_price), .fallback = "",
     .above_min = true,
     .doc = "price of a device for an hour, in any currency; then costs are printed"},
    {"front", CS_FIELD_NUMBER, offsetof(cs_advise_section, front), .fallback = "1.5", .min = 1,
     .doc = "the front of time against memory has plans that take up to so many times as long as "
            "the best"},
    {0},
};

cs_status cs_advise_section_read(const cJSON *value, const char *path, cs_arena *arena,
                                 cs_advise_section *section, cs_error *error)
{
    const cs_json_place root = {.file = path}, place = {.up = &root, .key = "advise"};
    *section = (cs_advise_section){0};
    return cs_field_read(value, &place, (const cs_field *const[]){cs_advise_fields, NULL},
                         (void *const[]){section}, arena, error);
}

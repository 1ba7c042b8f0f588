#include "sim/study/advise/advise-section.h"

#include "schedules/schedule.h"
#include "sim/base/text.h"

#include <math.h>
#include <string.h>

enum { MOST = 1 << 20 };

const char *const cs_advise_recompute_names[] = {"none", "selective", "full", NULL};
const char *const cs_advise_order_names[] = {"data", "pipeline", NULL};

static const cs_field size_field = {"size", CS_FIELD_COUNT, .min = 1, .max = MOST};
static const cs_field zero_field = {"zero", CS_FIELD_COUNT, .max = 3};
static const cs_field chunks_field = {"stages_per_device", CS_FIELD_COUNT, .min = 2, .max = 65536};
static const cs_field bucket_field = {"bucket", CS_FIELD_BYTES, .large = true};
static const cs_field recompute_field = {"recompute", CS_FIELD_CHOICE,
                                         .choices = cs_advise_recompute_names};
static const cs_field schedule_field = {"schedules", CS_FIELD_TEXT};
static const cs_field inner_field = {"inner", CS_FIELD_CHOICE, .choices = cs_advise_order_names};

#define SIZES(key, text)                                                                           \
    {                                                                                              \
#key, CS_FIELD_LIST, offsetof(cs_advise_section, key),                                     \
            .fallback = "", .of = &size_field, .least = 1, .each = true, .doc = text,              \
            .shape = "size or [size, ...]"                                                         \
    }

const cs_field cs_advise_fields[] = {
    SIZES(devices, "numbers of devices to try; default: all devices of the platform"),
    SIZES(tensor, "tensor-parallel sizes; default: divisors of the number of devices, up to the "
                  "devices of a node; 1 for image networks"),
    {"sequence_parallel", CS_FIELD_BOOL, offsetof(cs_advise_section, sequence_parallel),
     .fallback = "true", .doc = "with tensor: tokens are split where layers are not"},
    SIZES(filter, "sizes of the filter axis; default for image networks: divisors of the number of "
                  "devices, up to 64"),
    SIZES(channel, "sizes of the channel axis; default as for filter"),
    SIZES(space, "parts into which an image is split, as evenly over its dimensions as possible; "
                 "default for image networks: divisors of the number of devices, up to 16"),
    SIZES(context, "context-parallel sizes; default: divisors of the number of devices, up to 16, "
                   "that leave each device at least 4,096 tokens of a sequence"),
    SIZES(pipeline, "pipeline-parallel sizes; default: divisors of the number of devices"),
    SIZES(expert, "expert-parallel sizes; default: divisors of the number of experts"),
    {"zero", CS_FIELD_LIST, offsetof(cs_advise_section, zero), .fallback = "", .of = &zero_field,
     .least = 1, .each = true, .doc = "ZeRO stages, over data and context; default: 0 to 3",
     .shape = "stage or [stage, ...]"},
    {"osdp", CS_FIELD_BOOL, offsetof(cs_advise_section, osdp), .fallback = "true",
     .doc = "with zero 0 and 3: also try plans of OSDP, which shard only as much as necessary; "
            "only without a pipeline and with one micro-batch"},
    SIZES(micro_batch, "samples per micro-batch; default: powers of two up to 16, and, without a "
                       "pipeline, all samples of a data-parallel rank"),
    {"schedules", CS_FIELD_LIST, offsetof(cs_advise_section, schedules), .fallback = "",
     .of = &schedule_field, .least = 1, .each = true,
     .doc =
         "schedules to try, of those that `sim list schedules` says are searched; default: all of "
         "these but the ones on request",
     .shape = "name or [name, ...]"},
    {"stages_per_device", CS_FIELD_LIST, offsetof(cs_advise_section, stages_per_device),
     .fallback = "", .of = &chunks_field, .least = 1, .each = true,
     .doc = "stages per device, for schedules with a parameter for them; default: as `sim list "
            "schedules` says, as far as there are layers",
     .shape = "number or [number, ...]"},
    {"recompute", CS_FIELD_LIST, offsetof(cs_advise_section, recompute), .fallback = "",
     .of = &recompute_field, .least = 1, .each = true,
     .doc =
         "what is recomputed in the backward: nothing; the operators that the model lists "
         "(\"recompute_operators\"), or in transformers norms, activations and attention that is "
         "not flash; or every layer; default: all of these that the model supports",
     .shape = "name or [name, ...]"},
    {"bucket", CS_FIELD_LIST, offsetof(cs_advise_section, bucket), .fallback = "",
     .of = &bucket_field, .least = 1, .each = true,
     .doc = "bytes of gradients that are reduced together while the last backward still runs; "
            "default: /parallel/bucket, or 25 MiB if neither that nor \"runtime\" is given",
     .shape = "bytes or [bytes, ...]"},
    {"inner", CS_FIELD_LIST, offsetof(cs_advise_section, inner), .fallback = "", .of = &inner_field,
     .least = 1, .each = true,
     .doc = "which axis gets neighbouring devices, after the axes that split layers; default: both "
            "are tried",
     .shape = "axis or [axis, ...]"},
    {"exact", CS_FIELD_BOOL, offsetof(cs_advise_section, exact), .fallback = "false",
     .doc = "on more than 64 devices: simulates every device of plans whose replicas differ in "
            "their ways through the network, which is slow; false: one of them, as slow as the "
            "slowest (\"fold\": \"slowest\")"},
    {"memory", CS_FIELD_BYTES, offsetof(cs_advise_section, memory), .fallback = "0", .large = true,
     .doc = "memory of a device that a plan may use; 0: /platform/memory"},
    {"device_price", CS_FIELD_NUMBER, offsetof(cs_advise_section, device_price), .fallback = "",
     .above_min = true,
     .doc = "price of a device per hour, in any currency; the report then has costs"},
    {"front", CS_FIELD_NUMBER, offsetof(cs_advise_section, front), .fallback = "1.5", .min = 1,
     .doc = "the front of time against memory has plans that take up to this many times as long as "
            "the best one"},
    {0},
};

/* Replaces names of schedules by positions. */
static cs_status find_schedules(const cs_json_place *section, cs_arena *arena, cs_list *list,
                                cs_error *error)
{
    const cs_json_place place = {.up = section, .key = "schedules"};
    uint32_t *found = cs_arena_alloc(arena, list->n + 1ULL, sizeof(*found));
    if (!found)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < list->n; i++) {
        const char *name = ((const char *const *)list->items)[i];
        cs_guess guess;
        cs_guess_init(&guess, name);
        bool known = false;
        for (uint32_t k = 0; cs_schedules[k]; k++) {
            if (cs_schedules[k]->search == CS_SEARCH_NEVER)
                continue;
            cs_guess_add(&guess, cs_schedules[k]->name);
            if (strcmp(cs_schedules[k]->name, name) == 0) {
                found[i] = k;
                known = true;
            }
        }
        if (!known)
            return cs_json_invalid(&place, error, "unknown value %s", cs_guess_text(&guess));
    }
    list->items = found;
    return CS_OK;
}

cs_status cs_advise_section_read(const cJSON *value, const char *path, cs_arena *arena,
                                 cs_advise_section *section, cs_error *error)
{
    const cs_json_place root = {.file = path}, place = {.up = &root, .key = "advise"};
    *section = (cs_advise_section){0};
    CS_TRY(cs_field_read(value, &place, (const cs_field *const[]){cs_advise_fields, NULL},
                         (void *const[]){section}, arena, error));
    return find_schedules(&place, arena, &section->schedules, error);
}

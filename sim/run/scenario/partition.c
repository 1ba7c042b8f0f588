/* The member "partition" of the section "schedule". */
#include "sim/run/scenario/planning.h"
#include "sim/run/scenario/sections.h"

#include <string.h>

typedef struct document {
    const char *file;
    const cJSON *in_place;
} document;

static const cs_field document_fields[] = {
    {"file", CS_FIELD_TEXT, offsetof(document, file), .fallback = "",
     .doc = "a plan that `sim plan` wrote, relative to the scenario"},
    {"inline", CS_FIELD_JSON, offsetof(document, in_place), .fallback = "",
     .doc = "the contents of such a file", .shape = "{plan}"},
    {0},
};

static cs_status read_document(const cJSON *value, const cs_json_place *place,
                               cs_partition *partition, cs_arena *arena, cs_error *error)
{
    document given;
    CS_TRY(cs_field_read(value, place, (const cs_field *const[]){document_fields, NULL},
                         (void *const[]){&given}, arena, error));
    if (!given.file == !given.in_place)
        return cs_json_invalid(place, error, "must have either \"file\" or \"inline\"");
    partition->kind = given.file ? CS_PARTITION_FILE : CS_PARTITION_INLINE;
    partition->file = given.file;
    partition->in_place = given.in_place;
    return CS_OK;
}

static bool has_rules(const cJSON *object)
{
    for (const cs_field *field = cs_chain_fields; field->name; field++) {
        if (cs_json_member(object, field->name))
            return true;
    }
    return false;
}

/* `object` has the planner's parameters; NULL: none. */
static cs_status read_planner(const char *name, const cJSON *object, const cs_json_place *place,
                              const cs_json_place *name_place, cs_partition *partition,
                              cs_arena *arena, cs_error *error)
{
    partition->kind = CS_PARTITION_PLANNER;
    partition->planner = cs_planner_find(name);
    if (!partition->planner)
        return cs_planner_unknown(name, name_place, error);
    partition->has_rules = has_rules(object);
    partition->rules = cs_chain_default_rules;
    return cs_planner_read_params(partition->planner, object, place, object != NULL, arena,
                                  &partition->rules, &partition->params, error);
}

static cs_status read_object(const cJSON *value, const cs_json_place *place,
                             cs_partition *partition, cs_arena *arena, cs_error *error)
{
    const cJSON *name = cs_json_member(value, "planner");
    const cs_json_place key = {.up = place, .key = "planner"};
    char got[CS_JSON_DESCRIBED_BYTES];
    if (!name)
        return read_document(value, place, partition, arena, error);
    if (!cJSON_IsString(name))
        return cs_json_invalid(&key, error, "must be the name of a planner (got %s)",
                               cs_json_describe(name, got, sizeof(got)));
    return read_planner(name->valuestring, value, place, &key, partition, arena, error);
}

static cs_status read_partition(const cJSON *value, const cs_json_place *place, void *member,
                                cs_arena *arena, cs_error *error)
{
    cs_partition *partition = member;
    char got[CS_JSON_DESCRIBED_BYTES];
    if (cJSON_IsObject(value))
        return read_object(value, place, partition, arena, error);
    if (cJSON_IsArray(value)) {
        partition->kind = CS_PARTITION_CUTS;
        partition->cuts = value;
        return CS_OK;
    }
    if (!cJSON_IsString(value))
        return cs_json_invalid(place, error,
                               "must be the name of a planner, a list of layers, {\"planner\": "
                               "...}, {\"file\": ...} or "
                               "{\"inline\": ...} (got %s)",
                               cs_json_describe(value, got, sizeof(got)));
    if (strcmp(value->valuestring, "balanced") != 0)
        return read_planner(value->valuestring, NULL, place, place, partition, arena, error);
    partition->kind = CS_PARTITION_BALANCED;
    return CS_OK;
}

/* Writes partitions that are self-contained. The resolved scenario contains a plan instead of the
 * others. */
static cJSON *write_partition(const void *member)
{
    const cs_partition *partition = member;
    return partition->kind == CS_PARTITION_CUTS ? cJSON_Duplicate(partition->cuts, true)
                                                : cJSON_CreateString("balanced");
}

static bool is_no_partition(const void *member)
{
    const cs_partition_kind kind = ((const cs_partition *)member)->kind;
    return kind != CS_PARTITION_CUTS && kind != CS_PARTITION_BALANCED;
}

const cs_field_kind cs_partition_field_kind = {read_partition, write_partition, is_no_partition};

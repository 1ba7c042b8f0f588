#include "topologies/topology.h"

#include "sim/base/text.h"

#include <string.h>

const cs_topology *cs_topology_find(const char *name)
{
    for (const cs_topology *const *topology = cs_topologies; *topology; topology++)
        if (strcmp((*topology)->name, name) == 0)
            return *topology;
    return NULL;
}

cs_sharing cs_topology_sharing(const cs_topology *kind)
{
    return kind->unswitched ? CS_SHARING_FIFO : CS_SHARING_MAX_MIN;
}

cs_status cs_topology_unknown(const char *name, const cs_json_place *place, cs_error *error)
{
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (const cs_topology *const *topology = cs_topologies; *topology; topology++)
        cs_guess_add(&guess, (*topology)->name);
    return cs_json_invalid(place, error, "unknown topology %s", cs_guess_text(&guess));
}

cs_status cs_topology_params(const cs_topology *kind, const cJSON *object,
                             const cs_json_place *place, const cs_field *also, void *also_out,
                             cs_arena *arena, void **params, cs_error *error)
{
    void *made = cs_arena_alloc(arena, 1, kind->params_size + 1);
    if (!made)
        return cs_error_no_memory(error);
    const cs_status status =
        cs_field_read(object, place, (const cs_field *const[]){also, kind->fields, NULL},
                      (void *const[]){also_out, made}, arena, error);
    if (status != CS_OK)
        return status;
    *params = made;
    return kind->read ? kind->read(made, place, arena, error) : CS_OK;
}

typedef struct choice_name {
    const char *topology;
} choice_name;

static const cs_field choice_fields[] = {{"topology", CS_FIELD_TEXT,
                                          offsetof(choice_name, topology),
                                          .doc = "one of `sim list topologies`"},
                                         {0}};

cs_status cs_topology_choose(const cJSON *value, const cs_json_place *place, cs_arena *arena,
                             cs_topology_choice *choice, cs_error *error)
{
    const bool name_alone = cJSON_IsString(value);
    const cJSON *name = name_alone ? value : cs_json_member(value, "topology");
    const cs_json_place key = {.up = place, .key = "topology"};
    if (!name_alone && !cJSON_IsObject(value))
        return cs_json_invalid(place, error, "must be the name of a topology or an object (got %s)",
                               cs_json_kind(value));
    if (!cJSON_IsString(name))
        return cs_json_invalid(&key, error,
                               "must be the name of a topology (`sim list topologies`)");
    const cs_topology *kind = cs_topology_find(name->valuestring);
    if (!kind)
        return cs_topology_unknown(name->valuestring, name_alone ? place : &key, error);
    choice_name ignored = {.topology = NULL};
    static const cs_field none[] = {{0}};
    const cs_status status = cs_topology_params(kind, name_alone ? NULL : value, place,
                                                name_alone ? none : choice_fields, &ignored, arena,
                                                &choice->params, error);
    if (status == CS_OK)
        choice->kind = kind;
    return status;
}

static cs_status read_choice(const cJSON *value, const cs_json_place *place, void *member,
                             cs_arena *arena, cs_error *error)
{
    return cs_topology_choose(value, place, arena, member, error);
}

static cJSON *write_choice(const void *member)
{
    const cs_topology_choice *choice = member;
    cJSON *object = cJSON_CreateObject();
    if (object && cJSON_AddStringToObject(object, "topology", choice->kind->name) &&
        cs_field_write(choice->kind->fields, choice->params, object))
        return object;
    cJSON_Delete(object);
    return NULL;
}

static bool is_no_choice(const void *member)
{
    return !((const cs_topology_choice *)member)->kind;
}

const cs_field_kind cs_topology_choice_kind = {read_choice, write_choice, is_no_choice};

cs_status cs_topology_build(const cs_topology *kind, const void *params, uint32_t n_devices,
                            cs_platform *platform, cs_error *error)
{
    cs_platform made;
    CS_TRY(kind->build(params, n_devices, &made, error));
    cs_status status = cs_platform_number_links(&made, error);
    if (status == CS_OK)
        *platform = made;
    else
        cs_platform_finish(&made);
    return status;
}

static cs_status build_document(const cJSON *root, const char *name, uint32_t n_devices,
                                cs_platform *platform, cs_error *error)
{
    cs_arena arena;
    cs_arena_init(&arena);
    cs_topology_choice choice = {0};
    const cs_json_place place = {.file = name};
    cs_status status = cs_topology_choose(root, &place, &arena, &choice, error);
    if (status == CS_OK)
        status = cs_topology_build(choice.kind, choice.params, n_devices, platform, error);
    cs_arena_finish(&arena);
    return status;
}

/* `routing`: of the network, or NULL. */
static cs_status build_preset(const char *name, const char *text, const char *routing,
                              uint32_t n_devices, cs_platform *platform, cs_error *error)
{
    cJSON *root;
    CS_TRY(cs_json_parse(name, text, strlen(text), &root, error));
    cs_status status =
        routing ? cs_json_set(root, "/network/routing", routing, name, error) : CS_OK;
    if (status == CS_OK)
        status = build_document(root, name, n_devices, platform, error);
    cJSON_Delete(root);
    if (status == CS_OK)
        platform->topology = name;
    return status;
}

cs_status cs_topology_preset(const char *name, const char *text, uint32_t n_devices,
                             cs_platform *platform, cs_error *error)
{
    return build_preset(name, text, NULL, n_devices, platform, error);
}

static const char *const routings[] = {"dmodk", "ecmp", NULL};

const cs_field cs_routed_fields[] = {
    {"routing", CS_FIELD_CHOICE, offsetof(cs_routed_params, routing), .fallback = "dmodk",
     .choices = routings,
     .doc = "which spine a message takes; dmodk: by the number of its target, as in the fat-tree "
            "routing of InfiniBand's subnet manager; ecmp: by a hash of source and target"},
    {0}};

cs_status cs_topology_preset_routed(const char *name, const char *text, const void *params,
                                    uint32_t n_devices, cs_platform *platform, cs_error *error)
{
    const cs_routed_params *of = params;
    return build_preset(name, text, routings[of->routing], n_devices, platform, error);
}

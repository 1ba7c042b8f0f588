/* realpath is in the X/Open part of POSIX */
#define _XOPEN_SOURCE 700

#include "topologies/topology.h"

#include "sim/base/document-kind.h"
#include "sim/base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const cs_facts_kind cs_machine_kind = {"machines", "machine", "docs/how-to/own-machine.md", NULL};

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

void cs_topology_guess(cs_guess *guess)
{
    const char *machine;
    char known[sizeof(guess->known)];
    for (const cs_topology *const *topology = cs_topologies; *topology; topology++)
        cs_guess_add(guess, (*topology)->name);
    snprintf(known, sizeof(known), "%.400s, machines (`sim list topologies`)", guess->known);
    for (size_t i = 0; (machine = cs_facts_name(cs_machine_kind.folder, i)); i++)
        cs_guess_add(guess, machine);
    memcpy(guess->known, known, sizeof(known));
}

/* ---- machines ---- */

typedef struct machine_params {
    uint32_t routing;
    cs_topology_choice platform;
} machine_params;

static const char *const routings[] = {"dmodk", "ecmp", NULL};

/* key of machines whose network states its routing */
static const cs_field machine_fields[] = {
    {"routing", CS_FIELD_CHOICE, offsetof(machine_params, routing), .fallback = "dmodk",
     .choices = routings,
     .doc = "which spine a message takes; dmodk: by the number of its target, as in the fat-tree "
            "routing of InfiniBand's subnet manager; ecmp: by a hash of source and target"},
    {0}};

static const cs_field no_fields[] = {{0}};

typedef struct description {
    const char *name, *summary, *title, *source;
    const cJSON *platform, *ignored;
} description;

static const cs_field description_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(description, name), .doc = "its name in scenarios"},
    {"title", CS_FIELD_TEXT, offsetof(description, title), .fallback = "",
     .doc = "its name for users"},
    {"summary", CS_FIELD_TEXT, offsetof(description, summary), .fallback = "", .doc = "one line"},
    {"source", CS_FIELD_TEXT, offsetof(description, source), .fallback = "", .doc = "its source"},
    {"platform", CS_FIELD_JSON, offsetof(description, platform),
     .doc = "a topology with its parameters, as in a scenario"},
    {"sources", CS_FIELD_JSON, offsetof(description, ignored), .fallback = "",
     .doc = "where each value comes from: JSON pointer into \"platform\", text"},
    {"aliases", CS_FIELD_JSON, offsetof(description, ignored), .fallback = "", .doc = "names"},
    {"except", CS_FIELD_JSON, offsetof(description, ignored), .fallback = "", .doc = "words"},
    {"schema_version", CS_FIELD_JSON, offsetof(description, ignored), .fallback = "", .doc = "1"},
    {0}};

/* Checks that a machine refers only to topologies: a machine that named machines could name
 * itself. */
static cs_status check_topologies(const cJSON *object, const cs_json_place *place, cs_error *error)
{
    const cJSON *each;
    cJSON_ArrayForEach(each, object)
    {
        const cs_json_place key = {.up = place, .key = each->string};
        if (cJSON_IsObject(each))
            CS_TRY(check_topologies(each, &key, error));
        else if (cJSON_IsString(each) && !cs_topology_find(each->valuestring) &&
                 (strcmp(each->string, "topology") == 0 || strcmp(each->string, "node") == 0 ||
                  strcmp(each->string, "network") == 0)) {
            cs_guess guess;
            cs_guess_init(&guess, each->valuestring);
            for (const cs_topology *const *topology = cs_topologies; *topology; topology++)
                cs_guess_add(&guess, (*topology)->name);
            return cs_json_invalid(&key, error,
                                   "unknown topology %s (a variant of a machine has "
                                   "\"like\": MACHINE)",
                                   cs_guess_text(&guess));
        }
    }
    return CS_OK;
}

/* Creates the topology of a machine. `path`: of a user's file, or NULL. */
static cs_status make_machine(const cJSON *root, const char *name, const char *path,
                              cs_arena *arena, const cs_topology **kind, cs_error *error)
{
    const cs_json_place place = {.file = path ? path : name};
    description of = {0};
    CS_TRY(cs_document_expect(CS_DOCUMENT_MACHINE, root, &place, error));
    CS_TRY(cs_field_read(root, &place, (const cs_field *const[]){description_fields, NULL},
                         (void *const[]){&of}, arena, error));
    const cs_json_place platform = {.up = &place, .key = "platform"};
    if (!cJSON_IsObject(of.platform))
        return cs_json_invalid(&platform, error, "must be an object (got %s)",
                               cs_json_kind(of.platform));
    CS_TRY(check_topologies(of.platform, &platform, error));
    const cJSON *routing = cs_json_member(cs_json_member(of.platform, "network"), "routing");
    const cJSON *topology = cs_json_member(of.platform, "topology");
    const cs_topology *inner =
        cJSON_IsString(topology) ? cs_topology_find(topology->valuestring) : NULL;
    cs_topology *made = cs_arena_alloc(arena, 1, sizeof(*made));
    char *text = cs_json_line(of.platform), *whole = path ? realpath(path, NULL) : NULL;
    if (made && text)
        *made = (cs_topology){.name = whole ? cs_arena_copy(arena, whole) : of.name,
                              .title = path ? of.name : NULL,
                              .summary = of.summary ? of.summary
                                         : of.title ? of.title
                                                    : of.name,
                              .source = of.source,
                              .fields = routing ? machine_fields : no_fields,
                              .params_size = sizeof(machine_params),
                              .unswitched = inner && inner->unswitched,
                              .stands_for = cs_arena_copy(arena, text)};
    free(text);
    free(whole);
    if (!made || !made->name || !made->stands_for)
        return cs_error_no_memory(error);
    *kind = made;
    return CS_OK;
}

cs_status cs_topology_named(const char *name, const cs_json_place *place, cs_arena *arena,
                            const cs_topology **kind, cs_error *error)
{
    const cs_topology *found = cs_topology_find(name);
    const char *machine = found ? NULL : cs_facts_find(&cs_machine_kind, name);
    const cs_json_place *document = place;
    const bool is_file = cs_facts_is_file(name);
    cJSON *root;
    cs_error why;
    if (found) {
        *kind = found;
        return CS_OK;
    }
    if (!machine && !is_file) {
        cs_guess guess;
        cs_guess_init(&guess, name);
        cs_topology_guess(&guess);
        return cs_json_invalid(place, error, "unknown topology %s", cs_guess_text(&guess));
    }
    while (document->up)
        document = document->up;
    char *path = is_file ? cs_file_relative(document->file, name) : NULL;
    if (is_file && !path)
        return cs_error_no_memory(error);
    cs_error_init(&why);
    cs_status status = cs_facts_load(&cs_machine_kind, name, document->file, &root, &why);
    if (status == CS_OK) {
        status = make_machine(root, machine, path, arena, kind, &why);
        cJSON_Delete(root);
    }
    free(path);
    return status == CS_OK ? CS_OK : cs_json_pass_on(place, &why, error);
}

/* Reads the platform of a machine and applies the chosen routing. */
static cs_status read_machine(const cs_topology *kind, machine_params *of, cs_arena *arena,
                              cs_error *error)
{
    const cs_json_place file = {.file = kind->name}, place = {.up = &file, .key = "platform"};
    cJSON *root;
    CS_TRY(cs_json_parse(kind->name, kind->stands_for, strlen(kind->stands_for), &root, error));
    cs_status status =
        kind->fields == machine_fields
            ? cs_json_set(root, "/network/routing", routings[of->routing], kind->name, error)
            : CS_OK;
    if (status == CS_OK)
        status = cs_topology_choose(root, &place, arena, &of->platform, error);
    cJSON_Delete(root);
    return status;
}

/* ---- choices ---- */

cs_status cs_topology_params(const cs_topology *kind, const cJSON *object,
                             const cs_json_place *place, const cs_field *also, void *also_out,
                             cs_arena *arena, void **params, cs_error *error)
{
    void *made = cs_arena_alloc(arena, 1, kind->params_size + 1);
    if (!made)
        return cs_error_no_memory(error);
    CS_TRY(cs_field_read(object, place, (const cs_field *const[]){also, kind->fields, NULL},
                         (void *const[]){also_out, made}, arena, error));
    *params = made;
    if (kind->stands_for)
        return read_machine(kind, made, arena, error);
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
    const cs_topology *kind;
    CS_TRY(cs_topology_named(name->valuestring, name_alone ? place : &key, arena, &kind, error));
    choice_name ignored = {.topology = NULL};
    const cs_status status = cs_topology_params(kind, name_alone ? NULL : value, place,
                                                name_alone ? no_fields : choice_fields, &ignored,
                                                arena, &choice->params, error);
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
    if (kind->stands_for) {
        const cs_topology_choice *of = &((const machine_params *)params)->platform;
        CS_TRY(cs_topology_build(of->kind, of->params, n_devices, &made, error));
        const char *name = cs_arena_copy(&made.arena, kind->title ? kind->title : kind->name);
        if (!name) {
            cs_platform_finish(&made);
            return cs_error_no_memory(error);
        }
        made.topology = name;
        *platform = made;
        return CS_OK;
    }
    CS_TRY(kind->build(params, n_devices, &made, error));
    cs_status status = cs_platform_number_links(&made, error);
    if (status == CS_OK)
        *platform = made;
    else
        cs_platform_finish(&made);
    return status;
}

cs_status cs_topology_build_text(const char *name, const char *text, uint32_t n_devices,
                                 cs_platform *platform, cs_error *error)
{
    cs_arena arena;
    cJSON *root;
    cs_topology_choice choice = {0};
    const cs_json_place place = {.file = name};
    CS_TRY(cs_json_parse(name, text, strlen(text), &root, error));
    cs_arena_init(&arena);
    cs_status status = cs_topology_choose(root, &place, &arena, &choice, error);
    if (status == CS_OK)
        status = cs_topology_build(choice.kind, choice.params, n_devices, platform, error);
    if (status == CS_OK)
        platform->topology = name;
    cs_arena_finish(&arena);
    cJSON_Delete(root);
    return status;
}

#include "sim/run/scenario/sections.h"

#include "sim/base/file.h"

#include <stdlib.h>
#include <string.h>

/* ---- the member "costs" ---- */

static cs_status wrong_kind(const cJSON *value, const cs_json_place *place, cs_error *error)
{
    char got[CS_JSON_DESCRIBED_BYTES];
    return cs_json_invalid(place, error,
                           "must be a file, a list of files, or {\"inline\": {costs}} (got %s)",
                           cs_json_describe(value, got, sizeof(got)));
}

static cs_status read_list(const cJSON *value, const cs_json_place *place,
                           cs_costs_section *section, cs_arena *arena, cs_error *error)
{
    const uint32_t n = (uint32_t)cJSON_GetArraySize(value);
    const char **files = cs_arena_alloc(arena, n, sizeof(*files));
    cs_json_place at = {.up = place};
    if (!files)
        return cs_error_no_memory(error);
    for (const cJSON *item = value->child; item; item = item->next, at.index++) {
        if (!cJSON_IsString(item))
            return wrong_kind(item, &at, error);
        files[at.index] = cs_arena_copy(arena, item->valuestring);
        if (!files[at.index])
            return cs_error_no_memory(error);
    }
    section->files = files;
    section->n_files = n;
    return CS_OK;
}

static cs_status read_costs(const cJSON *value, const cs_json_place *place, void *member,
                            cs_arena *arena, cs_error *error)
{
    cs_costs_section *section = member;
    section->given = true;
    if (cJSON_IsString(value)) {
        const cJSON list = {.type = cJSON_Array,
                            .child =
                                &(cJSON){.type = cJSON_String, .valuestring = value->valuestring}};
        return read_list(&list, place, section, arena, error);
    }
    if (cJSON_IsArray(value) && value->child)
        return read_list(value, place, section, arena, error);
    const cJSON *in_place = cs_json_member(value, "inline");
    if (!in_place || value->child->next)
        return wrong_kind(value, place, error);
    section->in_place = in_place;
    return CS_OK;
}

static cJSON *write_costs(const void *member)
{
    const cs_costs_section *section = member;
    if (section->n_files > 0)
        return cJSON_CreateStringArray(section->files, (int)section->n_files);
    cJSON *object = cJSON_CreateObject();
    cJSON *in_place = cJSON_Duplicate(section->in_place, true);
    if (object && in_place && cJSON_AddItemToObject(object, "inline", in_place))
        return object;
    cJSON_Delete(in_place);
    cJSON_Delete(object);
    return NULL;
}

static bool has_no_costs(const void *member)
{
    return !((const cs_costs_section *)member)->given;
}

const cs_field_kind cs_costs_section_kind = {read_costs, write_costs, has_no_costs};

/* ---- files ---- */

static cs_status load_file(const char *from, const char *name, cs_costs *loaded, cs_error *error)
{
    char *path = cs_file_relative(from, name);
    if (!path)
        return cs_error_no_memory(error);
    cs_status status = cs_costs_load(path, loaded, error);
    free(path);
    return status;
}

/* Loads file `i`, or reads the inline document. */
static cs_status load_one(const cs_costs_section *given, uint32_t i, const cs_json_place *root,
                          cs_costs *loaded, cs_error *error)
{
    const cs_json_place place = {.up = root, .key = "costs"};
    const cs_json_place in_place = {.up = &place, .key = "inline"};
    cs_error why;
    if (given->in_place)
        return cs_costs_read(given->in_place, &in_place, loaded, error);
    cs_error_init(&why);
    const cs_status status = load_file(root->file, given->files[i], loaded, &why);
    return status == CS_OK ? CS_OK : cs_json_pass_on(&place, &why, error);
}

/* Entries of later files replace entries of earlier ones. */
cs_status cs_costs_section_load(const cs_costs_section *given, const cs_json_place *root,
                                cs_costs *costs, cs_error *error)
{
    const uint32_t n = given->in_place ? 1 : given->n_files;
    cs_status status = CS_OK;
    cs_costs made;
    cs_costs_init(&made);
    for (uint32_t i = 0; i < n && status == CS_OK; i++) {
        cs_costs loaded = {0};
        status = load_one(given, i, root, &loaded, error);
        if (status == CS_OK)
            status = cs_costs_merge(&made, &loaded, error);
        cs_costs_finish(&loaded);
    }
    if (status == CS_OK)
        *costs = made;
    else
        cs_costs_finish(&made);
    return status;
}

/* ---- for collectives ---- */

static const cs_kind kinds[CS_N_COST_COLLECTIVES] = {
    [CS_COST_ALL_REDUCE] = CS_ALL_REDUCE,
    [CS_COST_ALL_GATHER] = CS_ALL_GATHER,
    [CS_COST_REDUCE_SCATTER] = CS_REDUCE_SCATTER,
    [CS_COST_BROADCAST] = CS_BROADCAST,
    [CS_COST_REDUCE] = CS_REDUCE,
    [CS_COST_ALL_TO_ALL] = CS_ALL_TO_ALL,
    [CS_COST_SCATTER] = CS_SCATTER,
    [CS_COST_GATHER] = CS_GATHER,
};

cs_status cs_scenario_measured_collectives(const cs_costs *costs, cs_arena *arena,
                                           const cs_measured_collectives **out, cs_error *error)
{
    cs_measured_collectives *all = cs_arena_alloc(arena, 1, sizeof(*all));
    cs_measured_collective *entries = cs_arena_alloc(arena, costs->n_network, sizeof(*entries));
    uint32_t n = 0;
    if (!all || !entries)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < costs->n_network; i++) {
        const cs_cost_network *from = &costs->network[i];
        if (from->collective == CS_COST_SEND || from->collective == CS_COST_STREAM)
            continue; /* costs of links: see below */
        cs_measured_regime *regimes = cs_arena_alloc(arena, from->n_regimes, sizeof(*regimes));
        if (!regimes)
            return cs_error_no_memory(error);
        for (uint32_t r = 0; r < from->n_regimes; r++)
            regimes[r] = (cs_measured_regime){from->regimes[r].from, from->regimes[r].alpha.value,
                                              from->regimes[r].beta.value};
        entries[n++] = (cs_measured_collective){
            .kind = kinds[from->collective],
            .network = from->level == CS_COST_LEVEL_NETWORK,
            .ranks = from->ranks,
            .largest = from->n_points > 0 ? from->points[from->n_points - 1].bytes : 0,
            .n_regimes = from->n_regimes,
            .regimes = regimes};
    }
    *all = (cs_measured_collectives){n, entries};
    *out = n > 0 ? all : NULL;
    return CS_OK;
}

/* ---- for links ---- */

enum { PAIR = 2 };

/* Finds a link's latency, or its bandwidth for long messages: of a stream of messages if
 * measured. */
static cs_status link_value(const cs_costs *costs, bool latency, cs_cost_level level,
                            const cs_json_place *place, double *out, cs_error *error)
{
    const cs_cost_network *send = cs_costs_network(costs, CS_COST_SEND, level, PAIR);
    const cs_cost_network *stream = cs_costs_network(costs, CS_COST_STREAM, level, PAIR);
    const cs_cost_network *from = latency || !stream ? send : stream;
    if (!from)
        return cs_json_invalid(place, error,
                               "the costs lack messages between two ranks on the level \"%s\": a "
                               "network entry \"send\"%s of 2 ranks",
                               cs_cost_level_names[level], latency ? "" : " or \"stream\"");
    const double beta = from->regimes[from->n_regimes - 1].beta.value;
    if (!latency && !(beta > 0))
        return cs_json_invalid(place, error,
                               "the costs have no time per byte between two ranks on the level "
                               "\"%s\": measure longer messages",
                               cs_cost_level_names[level]);
    *out = latency ? from->regimes[0].alpha.value : 1 / beta;
    return CS_OK;
}

static cs_status find_measured(const void *context, const char *text, cs_field_type type,
                               const cs_json_place *place, bool *known, double *number,
                               cs_error *error)
{
    static const char prefix[] = "measured ";
    if (strncmp(text, prefix, strlen(prefix)) != 0)
        return CS_OK;
    if (type != CS_FIELD_TIME && type != CS_FIELD_BANDWIDTH)
        return cs_json_invalid(place, error, "only latencies and bandwidths of links are measured");
    *known = true;
    for (uint32_t level = 0; level < CS_N_COST_LEVELS; level++) {
        if (strcmp(text + strlen(prefix), cs_cost_level_names[level]) == 0)
            return link_value(context, type == CS_FIELD_TIME, (cs_cost_level)level, place, number,
                              error);
    }
    return cs_json_invalid(place, error, "must be \"measured node\" or \"measured network\"");
}

cs_field_names cs_scenario_measured_links(const cs_costs *costs)
{
    return (cs_field_names){find_measured, costs};
}

#include "sim/scenario/sections.h"

#include "sim/base/file.h"
#include "sim/base/vector.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED = 3 }; /* missing times in an error message */

/* ---- files ---- */

static cs_status load_file(cs_draft *draft, const char *name, cs_error *error)
{
    cs_costs loaded;
    char *path = cs_file_relative(draft->path, name);
    if (!path)
        return cs_error_no_memory(error);
    cs_status status = cs_costs_load(path, &loaded, error);
    free(path);
    if (status != CS_OK)
        return status;
    status = cs_costs_merge(&draft->costs, &loaded, error);
    cs_costs_finish(&loaded);
    return status;
}

static cs_status wrong_kind(const cJSON *value, const cs_json_place *place, cs_error *error)
{
    char got[CS_JSON_DESCRIBED_BYTES];
    return cs_json_invalid(place, error,
                           "must be a file, a list of files, or {\"inline\": {costs}} (got %s)",
                           cs_json_describe(value, got, sizeof(got)));
}

/* Entries of later files take the place of earlier ones. */
static cs_status load_files(cs_draft *draft, const cJSON *value, const cs_json_place *place,
                            cs_error *error)
{
    if (cJSON_IsString(value))
        return load_file(draft, value->valuestring, error);
    if (!cJSON_IsArray(value) || !value->child)
        return wrong_kind(value, place, error);
    cs_status status = CS_OK;
    int i = 0;
    for (const cJSON *item = value->child; item && status == CS_OK; item = item->next, i++) {
        const cs_json_place at = {.up = place, .index = i};
        status = cJSON_IsString(item) ? load_file(draft, item->valuestring, error)
                                      : wrong_kind(item, &at, error);
    }
    return status;
}

static cs_status load(cs_draft *draft, const cJSON *value, const cs_json_place *place,
                      cs_error *error)
{
    const cJSON *in_place = cs_json_member(value, "inline");
    if (!cJSON_IsObject(value))
        return load_files(draft, value, place, error);
    if (!in_place || value->child->next)
        return wrong_kind(value, place, error);
    cs_costs read;
    cs_status status =
        cs_costs_read(in_place, &(cs_json_place){.up = place, .key = "inline"}, &read, error);
    if (status != CS_OK)
        return status;
    status = cs_costs_merge(&draft->costs, &read, error);
    cs_costs_finish(&read);
    return status;
}

/* ---- for the model ---- */

static cs_status note_missing(cs_draft *draft, const char *key, cs_pass pass)
{
    cs_costs_use *use = &draft->scenario->costs;
    use->n_estimated++;
    uint32_t i = 0;
    while (i < use->n_missing && strcmp(use->missing[i].op, key) != 0)
        i++;
    if (i == use->n_missing) {
        const char *op = cs_arena_copy(&draft->scenario->arena, key);
        if (!op || !cs_vector_reserve((void **)&use->missing, &use->cap_missing,
                                      use->n_missing + UINT64_C(1), sizeof(*use->missing)))
            return CS_NO_MEMORY;
        use->missing[use->n_missing++] = (cs_missing_cost){.op = op};
    }
    use->missing[i].passes |= 1u << pass;
    use->missing[i].count++;
    return CS_OK;
}

static double find_seconds(void *context, const char *key, cs_pass pass)
{
    cs_draft *draft = context;
    const cs_cost_compute *entry = cs_costs_compute(&draft->costs, key);
    if (entry && entry->passes[pass].samples > 0) {
        draft->scenario->costs.n_measured++;
        return entry->passes[pass].median;
    }
    if (note_missing(draft, key, pass) != CS_OK)
        draft->costs_status = CS_NO_MEMORY;
    return -1;
}

static int64_t find_workspace(void *context, const char *key)
{
    const cs_draft *draft = context;
    const cs_cost_compute *entry = cs_costs_compute(&draft->costs, key);
    return entry ? entry->workspace_bytes : -1;
}

/* "a.json, b.json", for people. */
static const char *name_files(cs_draft *draft)
{
    const cJSON *value = draft->top.costs;
    char text[256] = "inline";
    size_t end = 0;
    if (cJSON_IsString(value))
        snprintf(text, sizeof(text), "%s", value->valuestring);
    for (const cJSON *item = cJSON_IsArray(value) ? value->child : NULL; item && end < sizeof(text);
         item = item->next)
        end += (size_t)snprintf(text + end, sizeof(text) - end, "%s%s", end > 0 ? ", " : "",
                                item->valuestring);
    return cs_arena_copy(&draft->scenario->arena, text);
}

/* Of the first entry: what all of one device have. */
static const char *device_of(const cs_costs *costs)
{
    return costs->n_compute > 0 ? costs->sources[costs->compute[0].source].device : "";
}

/* ---- of which device ---- */

static bool have(const char *list, const char *device)
{
    const size_t length = strlen(device);
    for (const char *at = strstr(list, device); at; at = strstr(at + 1, device))
        if ((at == list || at[-1] == ' ') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

/* Adds the device of a source to the list of different ones. */
static void name_device(const cs_costs *costs, uint32_t source, char *list, size_t size,
                        uint32_t *n)
{
    const char *device = costs->sources[source].device;
    const size_t end = strlen(list);
    if (have(list, device))
        return;
    snprintf(list + end, size - end, "%s%s", end > 0 ? ", " : "", device);
    ++*n;
}

static cs_status warn(cs_draft *draft, const char *text, cs_error *error)
{
    cs_costs_use *use = &draft->scenario->costs;
    use->warnings[use->n_warnings] = cs_arena_copy(&draft->scenario->arena, text);
    return use->warnings[use->n_warnings++] ? CS_OK : cs_error_no_memory(error);
}

static cs_status name_devices(cs_draft *draft, cs_error *error)
{
    const cs_costs *costs = &draft->costs;
    char list[512] = "", text[640];
    uint32_t n = 0;
    for (uint32_t i = 0; i < costs->n_compute; i++)
        name_device(costs, costs->compute[i].source, list, sizeof(list), &n);
    for (uint32_t i = 0; i < costs->n_network; i++)
        name_device(costs, costs->network[i].source, list, sizeof(list), &n);
    draft->scenario->costs.devices = cs_arena_copy(&draft->scenario->arena, list);
    if (!draft->scenario->costs.devices)
        return cs_error_no_memory(error);
    snprintf(text, sizeof(text), "the costs are of different devices: %s", list);
    return n > 1 ? warn(draft, text, error) : CS_OK;
}

/* Letters and digits, small. */
static void simplify(const char *from, size_t length, char *to, size_t size)
{
    size_t end = 0;
    for (size_t i = 0; i < length && end + 1 < size; i++)
        if (isalnum((unsigned char)from[i]))
            to[end++] = (char)tolower((unsigned char)from[i]);
    to[end] = '\0';
}

/* Whether hardware names itself as a description does: by its name, or a word of its title with
 * letters and digits, like H100. */
static bool is_called(const char *hardware, const cs_accelerator *device)
{
    char whole[256], part[64];
    simplify(hardware, strlen(hardware), whole, sizeof(whole));
    simplify(device->name, strlen(device->name), part, sizeof(part));
    bool called = part[0] && strstr(whole, part);
    for (const char *at = device->title; *at && !called; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        simplify(at, length, part, sizeof(part));
        called = strlen(part) > 2 && strpbrk(part, "0123456789") &&
                 strpbrk(part, "abcdefghijklmnopqrstuvwxyz") && strstr(whole, part);
        at += length;
    }
    return called;
}

/* Measured times beside a roofline, or under the name, of something else. */
static cs_status check_hardware(cs_draft *draft, cs_error *error)
{
    cs_accelerator device = {0};
    cs_error why;
    char text[640];
    const char *measured = device_of(&draft->costs);
    cs_error_init(&why);
    if (!draft->model.workload.device || draft->scenario->costs.n_measured == 0 ||
        cs_accelerator_load(draft->model.workload.device, draft->model.workload.from, &device,
                            &why) != CS_OK)
        return CS_OK; /* of a device that is wrong, others tell */
    snprintf(text, sizeof(text), "times of operators were measured on %.200s, not on %.200s",
             measured, device.title);
    const bool same = is_called(measured, &device);
    cs_accelerator_finish(&device);
    return same ? CS_OK : warn(draft, text, error);
}

cs_status cs_draft_check_missing(const cs_draft *draft, cs_error *error)
{
    const cs_costs_use *use = &draft->scenario->costs;
    const cs_json_place model = {.up = &draft->root, .key = "model"};
    const cs_json_place place = {.up = &model, .key = "device"};
    char text[NAMED * CS_OP_KEY_BYTES] = "";
    size_t end = 0;
    if (draft->costs_status != CS_OK)
        return cs_error_no_memory(error);
    if (draft->model.workload.device || !draft->model.workload.name || !use->given)
        return CS_OK;
    if (draft->costs.n_compute == 0)
        return cs_json_invalid(&place, error,
                               "must be given, for the costs have no times of operators: one of "
                               "`sim list devices`");
    if (use->n_missing == 0)
        return CS_OK;
    for (uint32_t i = 0; i < use->n_missing && i < NAMED && end < sizeof(text); i++)
        end += (size_t)snprintf(text + end, sizeof(text) - end, "%s %s", i > 0 ? ";" : "",
                                use->missing[i].op);
    return cs_json_invalid(&place, error, "must be given, for the costs lack %u of %u times:%s%s",
                           use->n_estimated, use->n_measured + use->n_estimated, text,
                           use->n_missing > NAMED ? "; ..." : "");
}

cs_status cs_draft_check_costs(cs_draft *draft, cs_error *error)
{
    CS_TRY(check_hardware(draft, error));
    return cs_draft_check_missing(draft, error);
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

static bool hand_over(cs_draft *draft, const cs_cost_network *from, cs_measured_collective *to)
{
    cs_measured_regime *regimes =
        cs_arena_alloc(&draft->scenario->arena, from->n_regimes, sizeof(*regimes));
    for (uint32_t i = 0; regimes && i < from->n_regimes; i++)
        regimes[i] = (cs_measured_regime){from->regimes[i].from, from->regimes[i].alpha.value,
                                          from->regimes[i].beta.value};
    *to = (cs_measured_collective){
        .kind = kinds[from->collective],
        .network = from->level == CS_COST_LEVEL_NETWORK,
        .ranks = from->ranks,
        .largest = from->n_points > 0 ? from->points[from->n_points - 1].bytes : 0,
        .n_regimes = from->n_regimes,
        .regimes = regimes};
    return regimes != NULL;
}

static cs_status hand_over_all(cs_draft *draft, cs_error *error)
{
    const cs_costs *costs = &draft->costs;
    cs_arena *arena = &draft->scenario->arena;
    cs_measured_collectives *all = cs_arena_alloc(arena, 1, sizeof(*all));
    cs_measured_collective *entries = cs_arena_alloc(arena, costs->n_network, sizeof(*entries));
    uint32_t n = 0;
    if (!all || !entries)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < costs->n_network; i++) {
        const cs_cost_collective collective = costs->network[i].collective;
        if (collective == CS_COST_SEND || collective == CS_COST_STREAM)
            continue; /* of links: see below */
        if (!hand_over(draft, &costs->network[i], &entries[n++]))
            return cs_error_no_memory(error);
    }
    *all = (cs_measured_collectives){n, entries};
    draft->scenario->collectives.measured = n > 0 ? all : NULL;
    return CS_OK;
}

cs_status cs_draft_read_costs(cs_draft *draft, cs_error *error)
{
    const cs_json_place place = {.up = &draft->root, .key = "costs"};
    cs_costs_use *use = &draft->scenario->costs;
    cs_costs_init(&draft->costs);
    if (!draft->top.costs)
        return CS_OK;
    CS_TRY(load(draft, draft->top.costs, &place, error));
    use->given = true;
    use->files = name_files(draft);
    draft->measured = (cs_measured){.seconds = find_seconds,
                                    .workspace = find_workspace,
                                    .context = draft,
                                    .origin = use->files,
                                    .device = device_of(&draft->costs)};
    if (!use->files)
        return cs_error_no_memory(error);
    CS_TRY(name_devices(draft, error));
    return hand_over_all(draft, error);
}

/* ---- for links ---- */

enum { PAIR = 2 };

/* What a time or a bandwidth of a link is: the latency of a message, or the bandwidth that long ones
 * get, of a stream of them where that was measured. */
static cs_status link_value(const cs_costs *costs, bool latency, cs_cost_level level,
                            const cs_json_place *place, double *out, cs_error *error)
{
    const cs_cost_network *send = cs_costs_network(costs, CS_COST_SEND, level, PAIR);
    const cs_cost_network *stream = cs_costs_network(costs, CS_COST_STREAM, level, PAIR);
    const cs_cost_network *from = latency || !stream ? send : stream;
    if (!from)
        return cs_json_invalid(place, error,
                               "no costs of a message between two ranks on the level \"%s\": they "
                               "must have a network entry \"send\"%s of 2 ranks",
                               cs_cost_level_names[level], latency ? "" : " or \"stream\"");
    const double beta = from->regimes[from->n_regimes - 1].beta.value;
    if (!latency && !(beta > 0))
        return cs_json_invalid(place, error,
                               "the costs show no time per byte between two ranks on the level "
                               "\"%s\": longer messages have to be measured",
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

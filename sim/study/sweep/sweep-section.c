#include "sim/study/sweep/sweep-section.h"

#include "sim/base/file.h"
#include "sim/run/scenario/scenario.h"

#include <stdlib.h>
#include <string.h>

/* ---- the scenario's section ---- */

typedef struct sweep_section {
    const cJSON *vary;
    bool zip;
    const char *csv;
} sweep_section;

const cs_field cs_sweep_fields[] = {
    {"vary", CS_FIELD_JSON, offsetof(sweep_section, vary), .fallback = "",
     .doc = "keys of the scenario and the values they take, as for --vary",
     .shape = "{\"/json/pointer\": \"2..32\" or [value, ...], ...}"},
    {"zip", CS_FIELD_BOOL, offsetof(sweep_section, zip), .fallback = "false",
     .doc = "combine the first values of all keys, then the second ones, and so on, instead of "
            "trying all combinations"},
    {"csv", CS_FIELD_TEXT, offsetof(sweep_section, csv), .fallback = "",
     .doc = "instead of keys: a file with the points, its path relative to the scenario"},
    {0},
};

static cs_status vary_members(const sweep_section *section, const cs_json_place *sweep,
                              cs_space *space, cs_error *error)
{
    char origin[512], pointer[64];
    cs_json_place place = {.up = sweep, .key = "vary"};
    if (!cJSON_IsObject(section->vary))
        return cs_json_invalid(&place, error, "must be an object (got %s)",
                               cs_json_kind(section->vary));
    snprintf(origin, sizeof(origin), "%.400s: %s", sweep->up->file,
             cs_json_pointer(&place, pointer, sizeof(pointer)));
    for (const cJSON *at = section->vary->child; at; at = at->next)
        CS_TRY(cs_space_vary_json(space, origin, at->string, at, error));
    return CS_OK;
}

static cs_status read_csv(const char *path, const char *name, cs_space *space, cs_error *error)
{
    char *file = cs_file_relative(path, name);
    cs_status status = file ? cs_space_read_csv(space, file, error) : cs_error_no_memory(error);
    free(file);
    return status;
}

cs_status cs_sweep_section_read(const char *path, const cJSON *sweep, cs_space *space,
                                cs_error *error)
{
    sweep_section section = {0};
    cs_json_place root = {.file = path}, place = {.up = &root, .key = "sweep"};
    CS_TRY(cs_field_read(sweep, &place, (const cs_field *const[]){cs_sweep_fields, NULL},
                         (void *const[]){&section}, &space->arena, error));
    if ((section.vary != NULL) + (section.csv != NULL) != 1)
        return cs_json_invalid(&place, error, "must have one of \"vary\" and \"csv\"");
    cs_status status = section.csv ? read_csv(path, section.csv, space, error)
                                   : vary_members(&section, &place, space, error);
    return status == CS_OK
               ? cs_space_close(space, section.csv || section.zip ? CS_SPACE_LIST : CS_SPACE_GRID,
                                error)
               : status;
}

/* ---- quantities ---- */

static const cs_field *find_in_section(const char *section, const char *key)
{
    const cs_field *field = NULL;
    if (strcmp(section, "/model/uniform/") == 0)
        return cs_field_find(cs_scenario_uniform_fields, key);
    if (strcmp(section, "/parallel/") == 0)
        return cs_field_find(cs_scenario_parallel_fields, key);
    if (strcmp(section, "/runtime/") == 0)
        return cs_field_find(cs_scenario_runtime_fields, key);
    if (strcmp(section, "/memory/") == 0)
        return cs_field_find(cs_scenario_memory_fields, key);
    if (strcmp(section, "/offload/") == 0)
        return cs_field_find(cs_scenario_offload_fields, key);
    if (strcmp(section, "/platform/") == 0) {
        field = cs_field_find(cs_scenario_platform_fields, key);
        for (size_t i = 0; cs_topologies[i] && !field; i++)
            field = cs_field_find(cs_topologies[i]->fields, key);
    }
    if (strcmp(section, "/schedule/") == 0) {
        field = cs_field_find(cs_scenario_schedule_fields, key);
        for (size_t i = 0; cs_schedules[i] && !field; i++)
            field = cs_field_find(cs_schedules[i]->fields, key);
    }
    return field;
}

/* A key means the same in all schedules and topologies that have it, so the first one decides. */
static void set_quantity(cs_axis *axis)
{
    char section[64];
    const char *key = strrchr(axis->pointer, '/') + 1;
    snprintf(section, sizeof(section), "%.*s", (int)(key - axis->pointer), axis->pointer);
    const cs_field *field = find_in_section(section, key);
    axis->quantity = field ? cs_field_quantity(field) : CS_QUANTITY_NUMBER;
}

void cs_sweep_set_quantities(cs_space *space)
{
    for (uint32_t a = 0; a < space->n_axes; a++)
        set_quantity(&space->axes[a]);
}

#include "sim/core/lower/reached.h"

#include <math.h>

const char *const cs_level_names[CS_N_LEVELS] = {"gpu_pair", "node", "rack", "system"};

#define REACHED(number, name_)                                                                     \
    {                                                                                              \
        .name = (name_), .type = CS_FIELD_NUMBER,                                                  \
        .offset = offsetof(cs_reached, level) + (number) * sizeof(double), .fallback = "",         \
        .above_min = true, .max = 1                                                                \
    }

static const cs_field level_fields[] = {REACHED(CS_LEVEL_GPU_PAIR, "gpu_pair"),
                                        REACHED(CS_LEVEL_NODE, "node"),
                                        REACHED(CS_LEVEL_RACK, "rack"),
                                        REACHED(CS_LEVEL_SYSTEM, "system"),
                                        {0}};

/* Reads the levels. A level left out has the value of the next nearer level. */
static cs_status read_levels(const cJSON *value, const cs_json_place *place, cs_arena *arena,
                             double *levels, cs_error *error)
{
    cs_reached read;
    CS_TRY(cs_field_read(value, place, (const cs_field *const[]){level_fields, NULL},
                         (void *const[]){&read}, arena, error));
    double nearer = 1;
    for (uint32_t i = 0; i < CS_N_LEVELS; i++) {
        nearer = isnan(read.level[i]) ? nearer : read.level[i];
        levels[i] = nearer;
    }
    return CS_OK;
}

static cs_status read_reached(const cJSON *value, const cs_json_place *place, void *member,
                              cs_arena *arena, cs_error *error)
{
    cs_reached *reached = member;
    char got[CS_JSON_DESCRIBED_BYTES];
    if (cJSON_IsObject(value))
        return read_levels(value, place, arena, reached->level, error);
    if (!cJSON_IsNumber(value) || !(value->valuedouble > 0 && value->valuedouble <= 1))
        return cs_json_invalid(place, error,
                               "must be a number > 0 and <= 1, or an object with one for each of "
                               "gpu_pair, node, rack, system (got %s)",
                               cs_json_describe(value, got, sizeof(got)));
    reached->all = value->valuedouble;
    return CS_OK;
}

static cJSON *write_reached(const void *member)
{
    const cs_reached *reached = member;
    if (reached->all > 0)
        return cJSON_CreateNumber(reached->all);
    cJSON *made = cJSON_CreateObject();
    if (made && cs_field_write(level_fields, reached, made))
        return made;
    cJSON_Delete(made);
    return NULL;
}

static bool is_empty(const void *member)
{
    (void)member;
    return false;
}

const cs_field_kind cs_reached_kind = {read_reached, write_reached, is_empty};

const double *cs_reached_levels(const cs_reached *reached)
{
    return !(reached->all > 0) && reached->level[0] > 0 ? reached->level : NULL;
}

void cs_reached_between_nodes(cs_reached *reached, double part)
{
    const double near = reached->all > 0 ? reached->all : 1;
    const bool by_level = cs_reached_levels(reached) != NULL;
    for (uint32_t i = 0; i < CS_N_LEVELS; i++)
        if (i >= CS_LEVEL_RACK)
            reached->level[i] = part;
        else if (!by_level)
            reached->level[i] = near;
    reached->all = 0;
}

bool cs_reached_is_less(const cs_reached *reached)
{
    const double *levels = cs_reached_levels(reached);
    bool less = reached->all > 0 && reached->all < 1;
    for (uint32_t i = 0; levels && i < CS_N_LEVELS; i++)
        less |= levels[i] < 1;
    return less;
}

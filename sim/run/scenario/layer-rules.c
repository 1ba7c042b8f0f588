/* The list "rules" of the section "parallel", whose entries apply to some layers of the model. */
#include "sim/base/text.h"
#include "sim/run/scenario/build.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

const cs_field cs_scenario_rule_fields[] = {
    {"layers", CS_FIELD_VARIANT, offsetof(cs_layer_rule, layers), .kind = &cs_layer_choice_kind,
     .size = sizeof(cs_layer_choice),
     .doc = "layer names, with * for any text and ? for any character; or the first and the last "
            "layer, counted from 0",
     .shape = "\"pattern\" or [first, last]"},
    {"zero", CS_FIELD_COUNT, offsetof(cs_layer_rule, zero), .fallback = "", .max = 3,
     .doc = "ZeRO stage of these layers, instead of the section's \"zero\"; default with "
            "\"sharded\": 3"},
    {"sharded", CS_FIELD_NUMBER, offsetof(cs_layer_rule, sharded), .fallback = "", .max = 1,
     .doc = "share of their parameters that is at this ZeRO stage; the rest is at stage 0"},
    {0},
};

/* ---- selecting layers ---- */

static cs_status read_range(const cJSON *value, const cs_json_place *place, cs_layer_choice *choice,
                            cs_error *error)
{
    static const char what[] = "must be the name of layers, or the first and the last one, as "
                               "whole numbers in rising order";
    double ends[2];
    if (cJSON_GetArraySize(value) != 2)
        return cs_json_invalid(place, error, "%s (got %d numbers)", what,
                               cJSON_GetArraySize(value));
    for (int i = 0; i < 2; i++) {
        const cJSON *end = cJSON_GetArrayItem(value, i);
        const cs_json_place at = {.up = place, .index = i};
        char got[CS_JSON_DESCRIBED_BYTES];
        if (!cJSON_IsNumber(end) || !(end->valuedouble >= (i == 0 ? 0 : ends[0])) ||
            end->valuedouble >= UINT32_MAX || floor(end->valuedouble) != end->valuedouble)
            return cs_json_invalid(&at, error, "%s (got %s)", what,
                                   cs_json_describe(end, got, sizeof(got)));
        ends[i] = end->valuedouble;
    }
    *choice = (cs_layer_choice){.first = (uint32_t)ends[0], .last = (uint32_t)ends[1]};
    return CS_OK;
}

static cs_status read_choice(const cJSON *value, const cs_json_place *place, void *member,
                             cs_arena *arena, cs_error *error)
{
    cs_layer_choice *choice = member;
    char got[CS_JSON_DESCRIBED_BYTES];
    if (cJSON_IsArray(value))
        return read_range(value, place, choice, error);
    if (!cJSON_IsString(value))
        return cs_json_invalid(place, error,
                               "must be the name of layers, or the first and the last one (got %s)",
                               cs_json_describe(value, got, sizeof(got)));
    choice->pattern = cs_arena_copy(arena, value->valuestring);
    return choice->pattern ? CS_OK : cs_error_no_memory(error);
}

static cJSON *write_choice(const void *member)
{
    const cs_layer_choice *choice = member;
    if (choice->pattern)
        return cJSON_CreateString(choice->pattern);
    const double ends[] = {choice->first, choice->last};
    return cJSON_CreateDoubleArray(ends, 2);
}

static bool is_no_choice(const void *member)
{
    (void)member;
    return false;
}

const cs_field_kind cs_layer_choice_kind = {read_choice, write_choice, is_no_choice};

static bool is_of(const cs_layer_choice *choice, const cs_model *model, uint32_t layer)
{
    if (choice->pattern)
        return fnmatch(choice->pattern, model->layers[layer].name, 0) == 0;
    return layer >= choice->first && layer <= choice->last;
}

/* ---- states of layers ---- */

/* Returns the states that a rule sets, or those set before it. */
static cs_layer_states states_of(const cs_layer_rule *rule, cs_layer_states before)
{
    const bool in_part = !isnan(rule->sharded);
    if (rule->zero == CS_COUNT_LEFT_OUT && !in_part)
        return before;
    const uint32_t zero = rule->zero == CS_COUNT_LEFT_OUT ? 3 : rule->zero;
    const bool divided = zero > 0 && !(in_part && rule->sharded <= 0);
    return divided ? (cs_layer_states){zero, in_part ? rule->sharded : 1} : (cs_layer_states){0, 1};
}

uint32_t cs_parallel_section_zero(const cs_parallel_section *section, uint32_t *at)
{
    uint32_t most = section->zero, found = CS_COUNT_LEFT_OUT;
    const cs_layer_rule *const *rules = section->rules.items;
    for (uint32_t i = 0; i < section->rules.n; i++) {
        const uint32_t zero = states_of(rules[i], (cs_layer_states){0, 1}).zero;
        found = zero > most ? i : found;
        most = zero > most ? zero : most;
    }
    if (at)
        *at = found;
    return most;
}

cs_status cs_scenario_layer_states(const cs_sections *sections, const cs_model *model,
                                   cs_arena *arena, const cs_layer_states **out, cs_error *error)
{
    const cs_parallel_section *section = &sections->parallel;
    const cs_json_place parallel = {.up = &sections->root, .key = "parallel"};
    const cs_json_place place = {.up = &parallel, .key = "rules"};
    const cs_layer_rule *const *rules = section->rules.items;
    *out = NULL;
    if (section->rules.n == 0)
        return CS_OK;
    cs_layer_states *made = cs_arena_alloc(arena, model->n_layers, sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    for (uint32_t l = 0; l < model->n_layers; l++)
        made[l] = (cs_layer_states){section->zero, 1};
    for (uint32_t i = 0; i < section->rules.n; i++) {
        const cs_json_place at = {.up = &place, .index = (int)i};
        const cs_layer_choice *choice = &rules[i]->layers;
        const cs_json_place layers_place = {.up = &at, .key = "layers"};
        const cs_json_place last = {.up = &layers_place, .index = choice->first < model->n_layers};
        cs_guess guess;
        bool found = false;
        if (!choice->pattern && choice->last >= model->n_layers)
            return cs_json_invalid(
                &last, error, "must be at most %u, the last layer of \"%s\" (got %u)",
                model->n_layers - 1, model->name, last.index ? choice->last : choice->first);
        cs_guess_init(&guess, choice->pattern ? choice->pattern : "");
        for (uint32_t l = 0; l < model->n_layers && !found; l++) {
            found = is_of(choice, model, l);
            cs_guess_add(&guess, model->layers[l].name);
        }
        if (!found)
            return cs_json_invalid(&layers_place, error,
                                   "must be the name of a layer of \"%s\": unknown %s", model->name,
                                   cs_guess_text(&guess));
        for (uint32_t l = 0; l < model->n_layers; l++)
            if (is_of(&rules[i]->layers, model, l))
                made[l] = states_of(rules[i], made[l]);
    }
    *out = made;
    return CS_OK;
}

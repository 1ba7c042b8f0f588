/* Plans for a model of eight layers, as files or (an array) as lists of cuts: whatever is read
 * covers the model, and can be written and read again, to the same JSON, its pattern too. */
#include "schedules/plan/pattern.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_LAYERS = 8 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static cs_status read_plan(const char *text, size_t length, const cs_model *model, cs_plan *plan,
                           cs_pattern *pattern, cs_error *error)
{
    cJSON *root;
    const cs_json_place place = {.file = "p.json"};
    cs_error_init(error);
    cs_status status = cs_json_parse("p.json", text, length, &root, error);
    if (status != CS_OK)
        return status;
    status = cJSON_IsArray(root) ? cs_plan_read_cuts(root, &place, model, plan, error)
                                 : cs_plan_read(root, &place, model, plan, error);
    if (status == CS_OK) {
        status = cs_pattern_read(root, &place, plan, pattern, error);
        if (status != CS_OK)
            cs_plan_finish(plan);
    }
    cJSON_Delete(root);
    return status;
}

static char *write_plan(const cs_plan *plan, const cs_pattern *pattern, const cs_model *model)
{
    cJSON *json = cs_plan_json(plan, model);
    require(json);
    if (pattern->period > 0)
        require(cs_pattern_add_json(json, plan, pattern, NULL) == CS_OK);
    char *text = json ? cs_json_print(json) : NULL;
    cJSON_Delete(json);
    require(text);
    return text;
}

/* Stages in order, without gaps; devices of each in order, below the limit. */
static void check_plan(const cs_plan *plan)
{
    uint32_t layer = 0, device = 0;
    require(plan->n_stages > 0);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const cs_stage *stage = &plan->stages[s];
        require(stage->first_layer == layer && stage->end_layer > layer);
        require(stage->first_device == device && stage->n_devices > 0);
        layer = stage->end_layer;
        device += stage->n_devices;
    }
    require(layer == N_LAYERS && device == plan->n_devices);
    for (uint32_t d = 0; d < plan->n_devices; d++)
        require(plan->devices[d] < CS_PLAN_DEVICES);
}

/* Starts within the period, shifts within their limits. */
static void check_pattern(const cs_plan *plan, const cs_pattern *pattern)
{
    if (pattern->period == 0)
        return;
    require(pattern->period > 0 && pattern->n_stages == plan->n_stages);
    for (uint32_t i = 0; i < plan->n_stages * CS_PATTERN_KINDS; i++) {
        const cs_pattern_op *op = &pattern->ops[i];
        require(op->start >= 0 && op->start < pattern->period);
        require(op->shift >= -CS_PATTERN_SHIFTS && op->shift <= CS_PATTERN_SHIFTS);
    }
}

static void check_round_trip(const cs_plan *plan, const cs_pattern *pattern, const cs_model *model)
{
    cs_plan again;
    cs_pattern same_pattern;
    cs_error error;
    char *text = write_plan(plan, pattern, model);
    require(read_plan(text, strlen(text), model, &again, &same_pattern, &error) == CS_OK);
    char *same = write_plan(&again, &same_pattern, model);
    require(strcmp(text, same) == 0);
    free(same);
    free(text);
    cs_plan_finish(&again);
    cs_pattern_finish(&same_pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_model model;
    cs_plan plan;
    cs_pattern pattern;
    cs_error error;
    const cs_layer layer = {.forward = 1};
    require(cs_model_uniform(N_LAYERS, &layer, &model, NULL) == CS_OK);
    cs_status status = read_plan((const char *)data, size, &model, &plan, &pattern, &error);
    if (status == CS_OK) {
        check_plan(&plan);
        check_pattern(&plan, &pattern);
        check_round_trip(&plan, &pattern, &model);
        cs_plan_finish(&plan);
        cs_pattern_finish(&pattern);
    } else {
        require(status == CS_INVALID && error.count > 0);
    }
    cs_model_finish(&model);
    return 0;
}

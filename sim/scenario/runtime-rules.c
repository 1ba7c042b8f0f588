/* Whether a runtime can run a plan, by its rules (runtime-bundles.c). */
#include "schedules/pipeline.h"
#include "sim/scenario/build.h"
#include "sim/scenario/runtime-section.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t cs_runtime_number(const cJSON *document)
{
    const cJSON *section = cs_json_member(document, "runtime");
    const cJSON *name = cJSON_IsObject(section) ? cs_json_member(section, "name") : section;
    for (uint32_t i = 0; cJSON_IsString(name) && cs_runtime_names[i]; i++)
        if (strcmp(cs_runtime_names[i], name->valuestring) == 0)
            return i;
    return 0;
}

/* Whether a value is in a list separated by '|', whose entries may end in '*'. */
static bool is_one_of(const char *value, const char *wanted)
{
    while (*wanted) {
        const size_t length = strcspn(wanted, "|");
        if (length > 0 && wanted[length - 1] == '*'
                ? strncmp(value, wanted, length - 1) == 0
                : strlen(value) == length && strncmp(value, wanted, length) == 0)
            return true;
        wanted += length + (wanted[length] == '|');
    }
    return false;
}

/* Whether a number is a multiple of another key's number, which the prefix "2:" doubles. */
static bool is_multiple(double number, const char *of, cs_rule_value *value, const void *context)
{
    char text[CS_RULE_VALUE_BYTES];
    const char *colon = strchr(of, ':');
    const char *other = value(context, colon ? colon + 1 : of, text);
    const double divisor = (colon ? strtod(of, NULL) : 1) * (other ? strtod(other, NULL) : 1);
    return !(divisor > 0) || (uint64_t)number % (uint64_t)divisor == 0;
}

/* `missing`: result for a key that is not given. */
static bool holds_one(const char *condition, bool missing, cs_rule_value *value,
                      const void *context)
{
    char key[128], text[CS_RULE_VALUE_BYTES];
    const bool absent = *condition == '!';
    condition += absent;
    const size_t length = strcspn(condition, "!=<>%");
    const char *relation = condition + length;
    snprintf(key, sizeof(key), "%.*s", (int)length, condition);
    const char *given = value(context, key, text);
    if (absent)
        return !given;
    if (!given)
        return *relation == '!' || (*relation != '\0' && missing);
    switch (*relation) {
    case '!':
        return !is_one_of(given, relation + 2);
    case '=':
        return is_one_of(given, relation + 1);
    case '<':
        return strtod(given, NULL) < strtod(relation + 1, NULL);
    case '>':
        return strtod(given, NULL) > strtod(relation + 1, NULL);
    case '%':
        return is_multiple(strtod(given, NULL), relation + 1, value, context);
    default:
        return true;
    }
}

static bool holds(const char *conditions, bool missing, cs_rule_value *value, const void *context)
{
    char one[128];
    while (conditions && *conditions) {
        const size_t length = strcspn(conditions, " ");
        snprintf(one, sizeof(one), "%.*s", (int)length, conditions);
        if (!holds_one(one, missing, value, context))
            return false;
        conditions += length + strspn(conditions + length, " ");
    }
    return true;
}

uint32_t cs_runtime_broken_rule(uint32_t name, cs_rule_value *value, const void *context)
{
    const cs_runtime_rule *rules = cs_runtime_rules(name);
    for (uint32_t i = 0; rules[i].text; i++)
        if (holds(rules[i].with, false, value, context) &&
            !holds(rules[i].needs, true, value, context))
            return i;
    return CS_RUNTIME_RULES_MOST;
}

const char *cs_rule_value_at(const cJSON *document, const char *key, char text[CS_RULE_VALUE_BYTES])
{
    const cJSON *at = document;
    while (at && *key == '/') {
        const size_t length = strcspn(key + 1, "/");
        snprintf(text, CS_RULE_VALUE_BYTES, "%.*s", (int)length, key + 1);
        at = cs_json_member(at, text);
        key += 1 + length;
    }
    if (cJSON_IsNumber(at))
        snprintf(text, CS_RULE_VALUE_BYTES, "%.9g", at->valuedouble);
    else if (cJSON_IsString(at))
        snprintf(text, CS_RULE_VALUE_BYTES, "%s", at->valuestring);
    else if (at)
        snprintf(text, CS_RULE_VALUE_BYTES, "%s", cJSON_IsFalse(at) ? "false" : "true");
    return at ? text : NULL;
}

/* ---- a scenario's own plan ---- */

typedef struct own_plan {
    const cJSON *root;
    const cs_scenario *scenario;
} own_plan;

/* Sizes of the mesh are the resolved ones, given or not. */
static bool size_of(const cs_scenario *scenario, const char *key, uint32_t *size)
{
    const cs_parallel *parallel = scenario->parallel;
    const cs_grid single = cs_grid_single();
    const cs_grid *grid = parallel ? &parallel->split.grid : &single;
    const struct {
        const char *key;
        uint32_t size;
    } sizes[] = {{"/parallel/pipeline", parallel ? parallel->n_ranks
                                        : scenario->plan->n_stages > 1
                                            ? cs_pipeline_ranks(&scenario->job)
                                            : 1},
                 {"/parallel/tensor", grid->tensor},
                 {"/parallel/context", grid->context},
                 {"/parallel/data", grid->data},
                 {"/parallel/expert", grid->expert}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (strcmp(sizes[i].key, key) == 0) {
            *size = sizes[i].size;
            return true;
        }
    return false;
}

static const char *own_value(const void *context, const char *key, char text[CS_RULE_VALUE_BYTES])
{
    const own_plan *own = context;
    uint32_t size;
    if (size_of(own->scenario, key, &size)) {
        snprintf(text, CS_RULE_VALUE_BYTES, "%u", size);
        return text;
    }
    return cs_rule_value_at(own->root, key, text);
}

void cs_scenario_warn_of_runtime(const cs_sections *sections, const cJSON *root,
                                 const cs_scenario *scenario, cs_error *warnings)
{
    const cs_json_place place = {.up = &sections->root, .key = "runtime"};
    const own_plan own = {root, scenario};
    const uint32_t name = cs_runtime_number(root);
    if (!scenario->plan)
        return;
    const uint32_t broken = cs_runtime_broken_rule(name, own_value, &own);
    if (broken == CS_RUNTIME_RULES_MOST)
        return;
    const cs_runtime_rule *rule = &cs_runtime_rules(name)[broken];
    (void)cs_json_invalid(&place, warnings, "%s cannot run this plan: it %s (%s)",
                          cs_runtime_names[name], rule->text, rule->source);
}

#include "sim/cli/planner-options.h"

#include "sim/base/text.h"

#include <string.h>

static const cs_json_place planners_place = {.file = "--planner"};

void cs_planner_options_finish(cs_planner_options *options)
{
    for (uint32_t i = 0; i < options->n; i++)
        cJSON_Delete(options->choices[i].params);
    cs_arena_finish(&options->arena);
    *options = (cs_planner_options){0};
}

/* ---- which planners ---- */

static cs_status add_planner(cs_planner_options *o, const cs_planner *planner, cs_error *error)
{
    for (uint32_t i = 0; i < o->n; i++) {
        if (o->choices[i].planner == planner)
            return CS_OK;
    }
    cJSON *params = cJSON_CreateObject();
    if (!params)
        return cs_error_no_memory(error);
    o->choices[o->n++] = (cs_planner_choice){planner, params};
    return CS_OK;
}

static cs_status add_name(cs_planner_options *o, const char *name, cs_error *error)
{
    const cs_planner *planner = cs_planner_find(name);
    cs_status status = CS_OK;
    if (planner)
        return add_planner(o, planner, error);
    if (strcmp(name, "all") != 0)
        return cs_planner_unknown(name, &planners_place, error) == CS_OK ? CS_OK : CS_USAGE;
    for (size_t i = 0; cs_planners[i] && status == CS_OK; i++)
        status = add_planner(o, cs_planners[i], error);
    return status;
}

/* Adds comma-separated names; "all" means all planners. */
static cs_status add_names(cs_planner_options *o, const char *names, cs_error *error)
{
    cs_status status = CS_OK;
    for (const char *name = names; name && status == CS_OK;) {
        size_t length = strcspn(name, ",");
        const char *copy = cs_arena_copy_length(&o->arena, name, length);
        if (!copy)
            return cs_error_no_memory(error);
        status = add_name(o, copy, error);
        name = name[length] == ',' ? name + length + 1 : NULL;
    }
    return status;
}

static cs_status choose_planners(cs_planner_options *o, const cs_arguments *arguments,
                                 cs_error *error)
{
    const char *const *names;
    size_t n = cs_arguments_values(arguments, "planner", &names), known = 0;
    while (cs_planners[known])
        known++;
    o->choices = cs_arena_alloc(&o->arena, known, sizeof(*o->choices));
    if (!o->choices)
        return cs_error_no_memory(error);
    for (size_t i = 0; i < n; i++)
        CS_TRY(add_names(o, names[i], error));
    return CS_OK;
}

/* ---- their parameters ---- */

static bool takes(const cs_planner *planner, const char *name)
{
    return cs_field_find(planner->fields, name) || cs_field_find(cs_chain_fields, name);
}

static void guess_fields(cs_guess *guess, const cs_field *fields)
{
    for (; fields->name; fields++)
        cs_guess_add(guess, fields->name);
}

/* Refuses a parameter that no planner has. */
static cs_status check_name(const cs_planner_options *o, const char *name, cs_error *error)
{
    cs_guess guess;
    for (uint32_t i = 0; i < o->n; i++) {
        if (takes(o->choices[i].planner, name))
            return CS_OK;
    }
    cs_guess_init(&guess, name);
    for (uint32_t i = 0; i < o->n; i++)
        guess_fields(&guess, o->choices[i].planner->fields);
    guess_fields(&guess, cs_chain_fields);
    return cs_error_add(error, CS_USAGE, "plan: none of these planners has a parameter %s",
                        cs_guess_text(&guess));
}

/* Adds "name=value" to the parameters of the planners that have it. */
static cs_status add_param(cs_planner_options *o, const char *text, cs_error *error)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return cs_error_add(error, CS_USAGE,
                            "plan: --param must be NAME=VALUE, like kept=literal (got \"%s\")",
                            text);
    const char *name = cs_arena_copy_length(&o->arena, text, (size_t)(equals - text));
    if (!name)
        return cs_error_no_memory(error);
    CS_TRY(check_name(o, name, error));
    char pointer[80]; /* longer than the name of any field; field names need no escapes */
    snprintf(pointer, sizeof(pointer), "/%s", name);
    for (uint32_t i = 0; i < o->n; i++) {
        const cs_planner_choice *choice = &o->choices[i];
        if (takes(choice->planner, name))
            CS_TRY(cs_json_set(choice->params, pointer, equals + 1, "--param", error));
    }
    return CS_OK;
}

cs_status cs_planner_options_read(const cs_arguments *arguments, cs_planner_options *options,
                                  cs_error *error)
{
    cs_planner_options made = {0};
    const char *const *texts;
    size_t n = cs_arguments_values(arguments, "param", &texts);
    cs_arena_init(&made.arena);
    cs_status status = choose_planners(&made, arguments, error);
    for (size_t i = 0; i < n && status == CS_OK; i++)
        status = add_param(&made, texts[i], error);
    if (status == CS_OK)
        *options = made;
    else
        cs_planner_options_finish(&made);
    return status;
}

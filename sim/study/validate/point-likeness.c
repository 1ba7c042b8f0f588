#include "sim/study/validate/point-likeness.h"

#include "sim/base/text.h"
#include "sim/model/accelerator.h"
#include "sim/run/recipe/recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const cs_trait_names[CS_N_TRAITS] = {
    [CS_TRAIT_TIMES] = "times",           [CS_TRAIT_NETWORK] = "network",
    [CS_TRAIT_DEVICE] = "device",         [CS_TRAIT_PRECISION] = "precision",
    [CS_TRAIT_RUNTIME] = "runtime",       [CS_TRAIT_SHARDED] = "sharded weights",
    [CS_TRAIT_PIPELINE] = "pipeline",     [CS_TRAIT_TENSOR] = "tensor parallelism",
    [CS_TRAIT_GENERATION] = "generation", [CS_TRAIT_DEVICES] = "devices",
    [CS_TRAIT_HOST] = "launch gaps",
};

typedef struct candidate {
    const cs_point *point;
    cs_traits traits;
} candidate;

/* ---- what a scenario is ---- */

static void set(cs_traits to, cs_trait trait, const char *text)
{
    cs_text_format(to[trait], CS_TRAIT_BYTES, "%s", text);
}

static void set_use(cs_traits to, cs_trait trait, bool used)
{
    set(to, trait, used ? "yes" : "no");
}

static const char *text_at(const cJSON *document, const char *section, const char *key)
{
    return cJSON_GetStringValue(cs_json_member(cs_json_member(document, section), key));
}

static double size_at(const cJSON *document, const char *key)
{
    const cJSON *value = cs_json_member(cs_json_member(document, "parallel"), key);
    return cJSON_IsNumber(value) ? value->valuedouble : 0;
}

/* Whether the schedule places stages on devices. */
static bool has_stages(const cJSON *document)
{
    const char *kind = text_at(document, "schedule", "kind");
    if (cs_json_member(document, "parallel"))
        return size_at(document, "pipeline") > 1;
    return kind && strcmp(kind, "sequential") != 0 && strcmp(kind, "dp") != 0;
}

/* Sets the traits of the model. Given times do not state a device, network or precision, so these
 * may be unknown. */
static void read_model(const char *device, const char *network, const char *precision, cs_traits to)
{
    set(to, CS_TRAIT_TIMES, device ? "estimated" : "given");
    set(to, CS_TRAIT_NETWORK, device ? network : "any");
    set(to, CS_TRAIT_DEVICE, device ? device : "any");
    set(to, CS_TRAIT_PRECISION, device ? precision : "any");
}

static void read_rest(const cJSON *document, const char *path, cs_traits to)
{
    enum { FULLY_SHARDED = 3 };
    cs_runtime_counts_as(document, path, to[CS_TRAIT_RUNTIME], CS_TRAIT_BYTES);
    set_use(to, CS_TRAIT_SHARDED, size_at(document, "zero") >= FULLY_SHARDED);
    set_use(to, CS_TRAIT_PIPELINE, has_stages(document));
    set_use(to, CS_TRAIT_TENSOR, size_at(document, "tensor") > 1);
}

/* Reads the generation of a device; "any" if it is unknown or the times are given. */
static cs_status read_generation(const char *device, const char *file, cs_traits to,
                                 cs_error *error)
{
    cs_accelerator accelerator = {0};
    set(to, CS_TRAIT_GENERATION, "any");
    if (!device || (!cs_facts_is_file(device) && !cs_facts_find(&cs_device_kind, device)))
        return CS_OK; /* the scenario names a device, but does not have its file */
    const cs_status status = cs_accelerator_load(device, file, &accelerator, error);
    const char *generation = accelerator.architecture.generation;
    if (status == CS_OK && generation && *generation)
        set(to, CS_TRAIT_GENERATION, generation);
    cs_accelerator_finish(&accelerator);
    return status;
}

static void set_devices(double devices, cs_traits to)
{
    enum { NODE = 8 };
    set(to, CS_TRAIT_DEVICES,
        !(devices > 0)    ? "any"
        : devices <= 1    ? "1"
        : devices <= NODE ? "2 to 8"
                          : "more than 8");
}

void cs_likeness_set_host(const cs_step_parts *parts, cs_traits traits)
{
    static const double noticeable = 0.05;
    set_use(traits, CS_TRAIT_HOST, parts->seconds[CS_PART_WAITING] >= noticeable * parts->step);
}

static const char *network_of(const cs_model *model)
{
    const cs_model_work *work = &model->work;
    if (work->tokens_per_sample == 0)
        return "convolutions";
    return work->active_parameters < work->parameters ? "experts" : "transformer";
}

static const char *network_of_point(const cs_point *point)
{
    if (strcmp(point->run.model->kind, "cnn") == 0)
        return "convolutions";
    return strstr(point->run.model->kind, "-moe") ? "experts" : "transformer";
}

/* ---- points ---- */

cs_status cs_likeness_of_point(const cs_point *point, const cJSON *document,
                               const cs_step_parts *parts, cs_traits traits, cs_error *error)
{
    const char *device = text_at(document, "model", "device");
    read_model(device, network_of_point(point), text_at(document, "model", "precision"), traits);
    read_rest(document, "run", traits);
    set_devices(point->run.hardware->gpus, traits);
    if (parts)
        cs_likeness_set_host(parts, traits);
    else
        set(traits, CS_TRAIT_HOST, "");
    return read_generation(device, NULL, traits, error);
}

/* Reads a point as a candidate. `is` becomes false if the point has no time or cannot be
 * expressed. */
static cs_status read_candidate(const cs_point *point, candidate *to, bool *is, cs_error *error)
{
    cs_recipe made = {0};
    *is = isfinite(cs_point_step_time(point));
    if (!*is)
        return CS_OK;
    cs_status status = cs_recipe_make(&point->run, &made, error);
    *is = status == CS_OK && made.document;
    if (*is) {
        to->point = point;
        status = cs_likeness_of_point(point, made.document, NULL, to->traits, error);
    }
    cs_recipe_finish(&made);
    return status;
}

static cs_status read_candidates(const cs_point *const *points, uint32_t n, candidate *to,
                                 uint32_t *n_read, cs_error *error)
{
    *n_read = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool is;
        CS_TRY(read_candidate(points[i], &to[*n_read], &is, error));
        *n_read += is;
    }
    return CS_OK;
}

static bool has(const candidate *from, const cs_likeness *likeness, cs_trait trait)
{
    return strcmp(from->traits[trait], likeness->traits[trait]) == 0;
}

/* Keeps the candidates that share a trait, if there are at least `least`. Returns the number
 * left. */
static uint32_t keep(candidate *candidates, uint32_t n, cs_trait trait, uint32_t least,
                     cs_likeness *likeness)
{
    uint32_t sharing = 0, kept = 0;
    for (uint32_t i = 0; i < n; i++)
        sharing += has(&candidates[i], likeness, trait);
    likeness->shared[trait] = sharing >= least;
    for (uint32_t i = 0; i < n; i++)
        if (!likeness->shared[trait] || has(&candidates[i], likeness, trait))
            candidates[kept++] = candidates[i];
    return kept;
}

static cs_status choose(candidate *candidates, uint32_t n, cs_likeness *likeness, cs_error *error)
{
    for (cs_trait trait = 0; trait < CS_N_REQUIRED_TRAITS; trait++)
        n = keep(candidates, n, trait, 0, likeness);
    if (n == 0)
        return cs_error_add(error, CS_USAGE,
                            "--like: no measured run shares the scenario's times (%s) and network "
                            "(%s); name files with such runs",
                            likeness->traits[CS_TRAIT_TIMES], likeness->traits[CS_TRAIT_NETWORK]);
    for (cs_trait trait = CS_N_REQUIRED_TRAITS; trait < CS_N_CHOOSING_TRAITS; trait++)
        n = keep(candidates, n, trait, CS_LIKE_LEAST, likeness);
    likeness->points = calloc(n, sizeof(*likeness->points));
    if (!likeness->points)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++)
        likeness->points[likeness->n++] = candidates[i].point;
    return CS_OK;
}

void cs_likeness_finish(cs_likeness *likeness)
{
    free(likeness->points);
    *likeness = (cs_likeness){0};
}

/* Sets the traits of a complete scenario: with all defaults, and with the contents of sections that
 * are names or come from a file. */
static cs_status read_scenario(const cs_scenario *scenario, cs_traits to, cs_error *error)
{
    const cs_model *model = scenario->model;
    cJSON *document = NULL;
    CS_TRY(cs_json_parse("", scenario->resolved, strlen(scenario->resolved), &document, error));
    read_model(model->work.device, network_of(model), cs_precision_names[model->precision], to);
    read_rest(document, scenario->file, to);
    const cJSON *devices = cs_json_member(cs_json_member(document, "platform"), "devices");
    set_devices(cJSON_IsNumber(devices) ? devices->valuedouble : 0, to);
    cJSON_Delete(document);
    return read_generation(model->work.device, scenario->file, to, error);
}

cs_status cs_likeness_find(const cs_scenario *scenario, const cs_point *const *points, uint32_t n,
                           cs_likeness *likeness, cs_error *error)
{
    uint32_t n_read;
    CS_TRY(read_scenario(scenario, likeness->traits, error));
    candidate *candidates = calloc(n + 1ULL, sizeof(*candidates));
    if (!candidates)
        return cs_error_no_memory(error);
    cs_status status = read_candidates(points, n, candidates, &n_read, error);
    if (status == CS_OK)
        status = choose(candidates, n_read, likeness, error);
    free(candidates);
    return status;
}

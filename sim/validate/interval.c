#include "sim/validate/interval.h"

#include "sim/base/facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Runs of one source that share all traits. */
typedef struct group {
    const char *source;
    const cJSON *traits, *errors;
} group;

static bool has_trait(const group *from, cs_trait trait, const cs_likeness *likeness)
{
    const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(from->traits, (int)trait));
    return text && strcmp(text, likeness->traits[trait]) == 0;
}

/* Keeps only the groups that share a trait, if they come from at least `least` sources. Groups of a
 * source are consecutive. Returns the number of groups that are left. */
static uint32_t keep(group *groups, uint32_t n, cs_trait trait, const cs_likeness *likeness,
                     uint32_t least, cs_interval *interval)
{
    uint32_t sources = 0, kept = 0;
    const char *last = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (has_trait(&groups[i], trait, likeness)) {
            sources += !last || strcmp(groups[i].source, last) != 0;
            last = groups[i].source;
        }
    interval->shared[trait] = sources >= least;
    if (!interval->shared[trait])
        return n;
    interval->n_sources = sources;
    for (uint32_t i = 0; i < n; i++)
        if (has_trait(&groups[i], trait, likeness))
            groups[kept++] = groups[i];
    return kept;
}

typedef struct weighted {
    double error, weight;
} weighted;

static int compare(const void *a, const void *b)
{
    const double left = ((const weighted *)a)->error, right = ((const weighted *)b)->error;
    return (left > right) - (left < right);
}

static cs_status find_quantile(const group *groups, uint32_t n, cs_interval *interval,
                               cs_error *error)
{
    uint32_t n_errors = 0, filled = 0;
    for (uint32_t i = 0; i < n; i++)
        n_errors += (uint32_t)cJSON_GetArraySize(groups[i].errors);
    weighted *all = calloc(n_errors + 1ULL, sizeof(*all));
    if (!all)
        return cs_error_no_memory(error);
    for (uint32_t first = 0, end; first < n; first = end) {
        const uint32_t from = filled;
        for (end = first; end < n && strcmp(groups[end].source, groups[first].source) == 0; end++) {
            const cJSON *value;
            cJSON_ArrayForEach(value, groups[end].errors) all[filled++].error =
                fabs(value->valuedouble) / 100;
        }
        for (uint32_t i = from; i < filled; i++)
            all[i].weight = 1.0 / (filled - from);
    }
    qsort(all, filled, sizeof(*all), compare);
    /* a sum of K weights of 1/n may lack a little of K */
    const double enough = 0.9 * (interval->n_sources + 1.0) - 1e-9;
    double sum = 0;
    interval->within = (double)NAN;
    for (uint32_t i = 0; i < filled && isnan(interval->within); i++) {
        sum += all[i].weight;
        if (sum >= enough)
            interval->within = all[i].error;
    }
    interval->n_runs = filled;
    free(all);
    return CS_OK;
}

static bool is_numbers(const cJSON *list)
{
    const cJSON *value;
    bool is = cJSON_IsArray(list) && list->child;
    cJSON_ArrayForEach(value, list) is = is && cJSON_IsNumber(value);
    return is;
}

/* Returns the groups of all sources, source by source. NULL: the document has another form, or
 * memory ran out. */
static group *read_groups(const cJSON *document, uint32_t *n)
{
    const cJSON *sources = cs_json_member(document, "sources"), *source, *from;
    size_t all = 0;
    cJSON_ArrayForEach(source, sources) all +=
        (size_t)cJSON_GetArraySize(cs_json_member(source, "groups"));
    group *groups = cJSON_IsArray(sources) ? calloc(all + 1, sizeof(*groups)) : NULL;
    *n = 0;
    for (source = groups ? sources->child : NULL; source; source = source->next) {
        const char *name = cJSON_GetStringValue(cs_json_member(source, "source"));
        cJSON_ArrayForEach(from, cs_json_member(source, "groups"))
        {
            const group made = {name, cs_json_member(from, "traits"),
                                cs_json_member(from, "errors_percent")};
            if (!name || cJSON_GetArraySize(made.traits) != CS_N_TRAITS ||
                !is_numbers(made.errors)) {
                free(groups);
                return NULL;
            }
            groups[(*n)++] = made;
        }
    }
    return groups;
}

cs_status cs_interval_find(const cs_likeness *likeness, const char *errors, cs_interval *interval,
                           cs_error *error)
{
    cJSON *document;
    uint32_t n = 0;
    errors = errors ? errors : cs_facts_text("", "left-out");
    *interval = (cs_interval){.within = (double)NAN};
    CS_TRY(cs_json_parse("facts/left-out.json", errors, strlen(errors), &document, error));
    group *groups = read_groups(document, &n);
    if (!groups) {
        cJSON_Delete(document);
        return cs_error_add(error, CS_INVALID,
                            "facts/left-out.json: must have the form that "
                            "tests/left-out-errors.py writes");
    }
    for (cs_trait trait = 0; trait < CS_N_TRAITS; trait++) {
        const bool required = trait == CS_TRAIT_TIMES;
        n = keep(groups, n, trait, likeness, required ? 0 : CS_INTERVAL_ALIKE, interval);
    }
    const cs_status status = find_quantile(groups, n, interval, error);
    free(groups);
    cJSON_Delete(document);
    return status;
}

#define _GNU_SOURCE /* for FNM_CASEFOLD */
#include "sim/study/validate/point-selection.h"

#include "sim/base/text.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN_BYTES = 256 };

static const char *id_of(const cs_point *point)
{
    return point->id;
}

static const char *dataset_of(const cs_point *point)
{
    return point->dataset;
}

static const char *gpu_of(const cs_point *point)
{
    return point->run.hardware->gpu;
}

static const char *model_of(const cs_point *point)
{
    return point->run.model->name;
}

static const char *kind_of(const cs_point *point)
{
    return point->run.model->kind;
}

static const char *schedule_of(const cs_point *point)
{
    return point->run.schedule;
}

static const char *precision_of(const cs_point *point)
{
    return point->run.precision;
}

static const char *framework_of(const cs_point *point)
{
    return point->run.framework;
}

static const char *quality_of(const cs_point *point)
{
    return point->quality;
}

/* Functions for the keys, in the order of cs_selection_keys; "feature" comes last. */
static const char *(*const getters[])(const cs_point *point) = {
    id_of,       dataset_of,   gpu_of,       model_of,  kind_of,
    schedule_of, precision_of, framework_of, quality_of};

enum { FEATURE = sizeof(getters) / sizeof(getters[0]), N_KEYS };

const char *const cs_selection_keys[] = {"id",      "dataset",  "gpu",       "model",
                                         "kind",    "schedule", "precision", "framework",
                                         "quality", "feature",  NULL};

/* ---- conditions ---- */

typedef struct condition {
    uint32_t key;
    char pattern[PATTERN_BYTES];
} condition;

typedef struct conditions {
    uint32_t n;
    condition *items;
} conditions;

static cs_status find_key(const char *text, size_t length, uint32_t *key, cs_error *error)
{
    char word[PATTERN_BYTES];
    cs_guess guess;
    snprintf(word, sizeof(word), "%.*s", (int)length, text);
    cs_guess_init(&guess, word);
    for (uint32_t k = 0; k < N_KEYS; k++) {
        if (strcmp(cs_selection_keys[k], word) == 0) {
            *key = k;
            return CS_OK;
        }
        cs_guess_add(&guess, cs_selection_keys[k]);
    }
    return cs_error_add(error, CS_USAGE, "--select: unknown key %s", cs_guess_text(&guess));
}

/* Reads one condition of a list: KEY=PATTERN of `length` bytes. */
static cs_status read_condition(const char *text, size_t length, condition *to, cs_error *error)
{
    const char *equals = memchr(text, '=', length);
    if (!equals || equals == text || (size_t)(equals - text) + 1 == length)
        return cs_error_add(error, CS_USAGE,
                            "--select must be KEY=PATTERN, like dataset=zero-bubble (got \"%.*s\")",
                            (int)length, text);
    const size_t rest = length - (size_t)(equals - text) - 1;
    snprintf(to->pattern, sizeof(to->pattern), "%.*s", (int)rest, equals + 1);
    return find_key(text, (size_t)(equals - text), &to->key, error);
}

static cs_status read_conditions(const char *const *texts, size_t n_texts, conditions *made,
                                 cs_error *error)
{
    for (size_t i = 0; i < n_texts; i++) {
        for (const char *at = texts[i]; *at; at += *at == ',') {
            const size_t length = strcspn(at, ",");
            condition *grown = realloc(made->items, (made->n + 1ULL) * sizeof(*grown));
            if (!grown)
                return cs_error_no_memory(error);
            made->items = grown;
            CS_TRY(read_condition(at, length, &made->items[made->n++], error));
            at += length;
        }
    }
    return CS_OK;
}

/* ---- points ---- */

/* Returns the i-th value of a point for a key, from 0; NULL: no more values. */
static const char *value_of(const cs_point *point, uint32_t key, uint32_t i)
{
    if (key == FEATURE)
        return i < point->features.n ? cs_point_text(&point->features, i) : NULL;
    const char *value = getters[key](point);
    return i > 0 ? NULL : value ? value : "";
}

static bool fits(const cs_point *point, const condition *asked)
{
    const char *value;
    for (uint32_t i = 0; (value = value_of(point, asked->key, i)) != NULL; i++)
        if (fnmatch(asked->pattern, value, FNM_CASEFOLD) == 0)
            return true;
    return false;
}

/* Whether a point meets one of the conditions of a key, or the key has none. */
static bool fits_key(const cs_point *point, const conditions *asked, uint32_t key)
{
    bool given = false;
    for (uint32_t i = 0; i < asked->n; i++) {
        if (asked->items[i].key != key)
            continue;
        if (fits(point, &asked->items[i]))
            return true;
        given = true;
    }
    return !given;
}

static bool fits_all(const cs_point *point, const conditions *asked)
{
    for (uint32_t k = 0; k < N_KEYS; k++)
        if (!fits_key(point, asked, k))
            return false;
    return true;
}

/* ---- when nothing is left ---- */

static bool anything_fits(const cs_points *points, const conditions *asked, uint32_t key)
{
    for (uint32_t i = 0; i < points->n; i++)
        if (fits_key(&points->points[i], asked, key))
            return true;
    return false;
}

static bool has_value(const cs_point *point, uint32_t key, const char *asked)
{
    const char *value;
    for (uint32_t i = 0; (value = value_of(point, key, i)) != NULL; i++)
        if (strcmp(value, asked) == 0)
            return true;
    return false;
}

/* Lists all values of the points for a key, each once. */
static void guess_values(const cs_points *points, uint32_t key, cs_guess *guess)
{
    const char *value;
    for (uint32_t p = 0; p < points->n; p++) {
        for (uint32_t i = 0; (value = value_of(&points->points[p], key, i)) != NULL; i++) {
            bool seen = false;
            for (uint32_t before = 0; before < p && !seen; before++)
                seen = has_value(&points->points[before], key, value);
            if (!seen)
                cs_guess_add(guess, value);
        }
    }
}

static cs_status none_is_left(const cs_points *points, const conditions *asked, cs_error *error)
{
    for (uint32_t i = 0; i < asked->n; i++) {
        const uint32_t key = asked->items[i].key;
        if (anything_fits(points, asked, key))
            continue;
        cs_guess guess;
        cs_guess_init(&guess, asked->items[i].pattern);
        guess_values(points, key, &guess);
        return cs_error_add(error, CS_USAGE, "--select: none of %u points has the %s %s", points->n,
                            cs_selection_keys[key], cs_guess_text(&guess));
    }
    return cs_error_add(error, CS_USAGE,
                        "--select: each condition holds for some of %u points, but for none all do",
                        points->n);
}

cs_status cs_points_select(const cs_points *points, const char *const *texts, size_t n_texts,
                           const cs_point ***selected, uint32_t *n, cs_error *error)
{
    conditions asked = {0};
    const cs_point **made = malloc((points->n + 1ULL) * sizeof(*made));
    uint32_t n_made = 0;
    cs_status status =
        made ? read_conditions(texts, n_texts, &asked, error) : cs_error_no_memory(error);
    for (uint32_t i = 0; i < points->n && status == CS_OK; i++)
        if (fits_all(&points->points[i], &asked))
            made[n_made++] = &points->points[i];
    if (status == CS_OK && n_made == 0)
        status = none_is_left(points, &asked, error);
    free(asked.items);
    if (status != CS_OK) {
        free(made);
        return status;
    }
    *selected = made;
    *n = n_made;
    return CS_OK;
}

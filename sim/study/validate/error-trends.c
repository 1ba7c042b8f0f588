#include "sim/study/validate/error-trends.h"

#include "sim/base/text-stream.h"
#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const cs_trend_names[CS_N_TRENDS] = {
    [CS_TREND_TENSOR] = "tensor ranks",
    [CS_TREND_PIPELINE] = "pipeline ranks",
    [CS_TREND_MICRO_BATCH] = "micro-batch",
    [CS_TREND_GPUS] = "GPUs",
};

/* Values that a point states, in the order of a key; `differs`: the axes along which they may
 * differ within a group. */
static const struct stated {
    const char *section, *key;
    bool differs[CS_N_TRENDS];
} stated[] = {
    {NULL, "model", {0}},
    {"hardware", "gpu", {0}},
    {NULL, "precision", {0}},
    {NULL, "recompute", {0}},
    {NULL, "framework", {0}},
    {NULL, "options", {0}},
    {"parallel", "vpp", {0}},
    {"parallel", "cp", {0}},
    {"parallel", "ep", {0}},
    {"parallel", "zero", {0}},
    {"parallel", "sp", {[CS_TREND_TENSOR] = true}},
    {"parallel", "tp", {[CS_TREND_TENSOR] = true}},
    {"parallel", "pp", {[CS_TREND_PIPELINE] = true}},
    {"parallel",
     "dp",
     {[CS_TREND_TENSOR] = true, [CS_TREND_PIPELINE] = true, [CS_TREND_GPUS] = true}},
    {"batch", "micro", {[CS_TREND_MICRO_BATCH] = true}},
    {"batch",
     "micro_batches",
     {[CS_TREND_TENSOR] = true, [CS_TREND_PIPELINE] = true, [CS_TREND_MICRO_BATCH] = true}},
    {"batch", "global", {[CS_TREND_GPUS] = true}},
    {"hardware", "gpus", {[CS_TREND_GPUS] = true}},
};

/* Options that follow from the layout: the partition into stages, and values of its network. */
static const char *const of_layout[] = {"stage_layers", "head_on", "network_"};

void cs_error_trends_finish(cs_error_trends *trends)
{
    free(trends->trends);
    *trends = (cs_error_trends){0};
}

/* ---- keys ---- */

static bool follows_from_layout(const char *key)
{
    for (size_t i = 0; i < sizeof(of_layout) / sizeof(of_layout[0]); i++)
        if (strncmp(key, of_layout[i], strlen(of_layout[i])) == 0)
            return true;
    return false;
}

/* Returns the member of an object with the smallest key after `after`; NULL: none. */
static const cJSON *next_member(const cJSON *object, const char *after)
{
    const cJSON *member, *next = NULL;
    cJSON_ArrayForEach(member, object) if ((!after || strcmp(member->string, after) > 0) &&
                                           (!next || strcmp(member->string, next->string) < 0))
        next = member;
    return next;
}

/* Writes a value so that equal values give equal texts: members sorted by key, without null
 * members. */
static bool put(const cJSON *value, FILE *out)
{
    if (!cJSON_IsObject(value)) {
        char *text = value ? cs_json_line(value) : NULL;
        const bool done = text || !value;
        fputs(text ? text : "null", out);
        free(text);
        return done;
    }
    bool done = true;
    fputc('{', out);
    for (const cJSON *member = next_member(value, NULL); member && done;
         member = next_member(value, member->string))
        if (!cJSON_IsNull(member) && !follows_from_layout(member->string)) {
            fprintf(out, "%s:", member->string);
            done = put(member, out);
            fputc(',', out);
        }
    fputc('}', out);
    return done;
}

/* Returns the values that a group shares. The caller frees the text. NULL if memory runs out. */
static char *group_key(const cs_point *point, cs_trend_axis axis)
{
    char *text;
    size_t length;
    FILE *out = cs_text_stream(&text, &length);
    bool done = out;
    if (!out)
        return NULL;
    fprintf(out, "%s\n", point->dataset);
    for (size_t i = 0; i < sizeof(stated) / sizeof(stated[0]) && done; i++) {
        const struct stated *of = &stated[i];
        const cJSON *from =
            of->section ? cs_json_member(point->stated, of->section) : point->stated;
        if (!of->differs[axis])
            done = put(cs_json_member(from, of->key), out);
        fputc('\n', out);
    }
    if (fclose(out) == 0 && done)
        return text;
    free(text);
    return NULL;
}

/* ---- slopes ---- */

typedef struct run {
    char *key; /* key of the group; its first line is the dataset */
    const char *dataset;
    double x, y;
} run;

static double size_on(const cs_point *point, cs_trend_axis axis)
{
    static const char *const keys[CS_N_TRENDS][2] = {[CS_TREND_TENSOR] = {"parallel", "tp"},
                                                     [CS_TREND_PIPELINE] = {"parallel", "pp"},
                                                     [CS_TREND_MICRO_BATCH] = {"batch", "micro"},
                                                     [CS_TREND_GPUS] = {"hardware", "gpus"}};
    const cJSON *value =
        cs_json_member(cs_json_member(point->stated, keys[axis][0]), keys[axis][1]);
    return cJSON_IsNumber(value) ? value->valuedouble : 0;
}

static int by_key(const void *a, const void *b)
{
    const run *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    if (order != 0)
        return order;
    CS_COMPARE(x->x, y->x);
    CS_COMPARE(x->y, y->y);
    return 0;
}

/* Subtracts the means of x and y from the runs of a group. Returns false if all runs have one
 * size. */
static bool centre(run *runs, uint32_t n)
{
    double x = 0, y = 0;
    bool differ = false;
    for (uint32_t i = 0; i < n; i++) {
        x += runs[i].x / n;
        y += runs[i].y / n;
        differ |= runs[i].x != runs[0].x;
    }
    for (uint32_t i = 0; i < n; i++) {
        runs[i].x -= x;
        runs[i].y -= y;
    }
    return differ;
}

static cs_status add_trend(const run *runs, uint32_t n, cs_trend made, cs_error_trends *trends,
                           cs_error *error)
{
    double xy = 0, xx = 0, rest = 0;
    for (uint32_t i = 0; i < n; i++) {
        xy += runs[i].x * runs[i].y;
        xx += runs[i].x * runs[i].x;
        made.n_groups += i == 0 || strcmp(runs[i].key, runs[i - 1].key) != 0;
    }
    made.n_runs = n;
    if (n < CS_TREND_LEAST)
        return CS_OK;
    made.slope = xy / xx;
    for (uint32_t i = 0; i < n; i++)
        rest += pow(runs[i].y - made.slope * runs[i].x, 2);
    /* without degrees of freedom the spread cannot be estimated */
    const double freedom = (double)n - made.n_groups - 1;
    made.standard_error = freedom > 0 ? sqrt(rest / freedom / xx) : (double)NAN;
    if (!cs_vector_reserve((void **)&trends->trends, &trends->capacity, trends->n + UINT64_C(1),
                           sizeof(*trends->trends)))
        return cs_error_no_memory(error);
    trends->trends[trends->n++] = made;
    return CS_OK;
}

/* Keeps the groups with two or more sizes, and centres each. Returns the number of runs left. */
static uint32_t keep_groups(run *runs, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && strcmp(runs[first].key, runs[end].key) == 0;)
            end++;
        if (centre(runs + first, end - first))
            for (uint32_t i = first; i < end; i++) {
                const run moved = runs[kept]; /* the key of the moved run has to be freed later */
                runs[kept++] = runs[i];
                runs[i] = moved;
            }
    }
    return kept;
}

static cs_status read_runs(const cs_predictions *predictions, cs_trend_axis axis, run *runs,
                           uint32_t *n, cs_error *error)
{
    for (uint32_t i = 0; i < predictions->n; i++) {
        const cs_point *point = predictions->items[i].point;
        const double error_of = cs_prediction_error(&predictions->items[i], CS_MEASURE_TIME);
        const double size = size_on(point, axis);
        if (!isfinite(error_of) || !(size > 0) || !cs_point_is_exact(point))
            continue;
        runs[*n] = (run){group_key(point, axis), point->dataset, log2(size), log1p(error_of)};
        if (!runs[*n].key)
            return cs_error_no_memory(error);
        ++*n;
    }
    return CS_OK;
}

static cs_status find_trends(const cs_predictions *predictions, cs_trend_axis axis, run *runs,
                             cs_error_trends *trends, cs_error *error)
{
    uint32_t n = 0;
    cs_status status = read_runs(predictions, axis, runs, &n, error);
    cs_vector_sort(runs, n, sizeof(*runs), by_key);
    const uint32_t kept = status == CS_OK ? keep_groups(runs, n) : 0;
    if (kept > 0)
        status = add_trend(runs, kept, (cs_trend){axis, "", 0, 0, 0, 0}, trends, error);
    for (uint32_t first = 0, end; first < kept && status == CS_OK; first = end) {
        for (end = first + 1; end < kept && strcmp(runs[first].dataset, runs[end].dataset) == 0;)
            end++;
        status = add_trend(runs + first, end - first,
                           (cs_trend){axis, runs[first].dataset, 0, 0, 0, 0}, trends, error);
    }
    for (uint32_t i = 0; i < n; i++)
        free(runs[i].key);
    return status;
}

cs_status cs_error_trends_make(const cs_predictions *predictions, cs_error_trends *trends,
                               cs_error *error)
{
    run *runs = calloc(predictions->n + 1ULL, sizeof(*runs));
    cs_status status = runs ? CS_OK : cs_error_no_memory(error);
    for (uint32_t axis = 0; axis < CS_N_TRENDS && status == CS_OK; axis++)
        status = find_trends(predictions, (cs_trend_axis)axis, runs, trends, error);
    free(runs);
    return status;
}

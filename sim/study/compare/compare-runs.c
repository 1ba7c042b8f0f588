#include "sim/study/compare/compare-runs.h"

#include "sim/base/number.h"
#include "sim/base/vector.h"
#include "sim/core/graph/graph.h"
#include "sim/core/trace/results-reader.h"
#include "sim/core/trace/results-schema.h"
#include "sim/study/compare/json-differences.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

double cs_compared_error(cs_compared figure)
{
    return figure.second > 0 ? figure.first / figure.second - 1 : (double)NAN;
}

double cs_compared_change(cs_compared figure)
{
    return cs_compared_error((cs_compared){figure.second, figure.first});
}

/* ---- tasks ---- */

/* A task, or the collectives of one kind, stage and micro-batch merged. */
typedef struct piece {
    uint32_t origin, stage, mini_batch, micro_batch;
    uint64_t alone; /* 1 + the task if it must not be merged; else 0 */
    cs_time start, end;
    cs_time time; /* time during which any of its tasks runs */
} piece;

static bool is_collective(const char *word)
{
    for (uint32_t kind = 0; kind < CS_N_KINDS; kind++)
        if (strcmp(cs_kind_name((cs_kind)kind), word) == 0)
            return cs_kind_group_of((cs_kind)kind) == CS_GROUP_COLLECTIVE;
    return false;
}

static int by_identity(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    CS_COMPARE(x->origin, y->origin);
    CS_COMPARE(x->alone, y->alone);
    CS_COMPARE(x->stage, y->stage);
    CS_COMPARE(x->mini_batch, y->mini_batch);
    CS_COMPARE(x->micro_batch, y->micro_batch);
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    const int order = by_identity(a, b);
    if (order != 0)
        return order;
    CS_COMPARE(x->start, y->start);
    CS_COMPARE(x->end, y->end);
    return 0;
}

/* Merges a task that starts no earlier than the tasks already in the piece. */
static void merge(piece *to, const piece *task)
{
    const cs_time from = task->start > to->end ? task->start : to->end;
    if (task->end <= from)
        return;
    to->time += task->end - from;
    to->end = task->end;
}

/* Collects tasks that ended, merging those of collectives. Returns the number of pieces. */
static uint64_t collect_pieces(const cs_reader_tasks *c, piece *pieces)
{
    uint64_t n = 0, kept = 0;
    for (uint64_t i = 0; i < c->n; i++)
        if (c->start[i] >= 0 && c->end[i] >= c->start[i])
            pieces[n++] = (piece){c->origin[i],
                                  c->stage[i],
                                  c->mini_batch[i],
                                  c->micro_batch[i],
                                  is_collective(c->kinds[c->origin[i]]) ? 0 : i + 1,
                                  c->start[i],
                                  c->end[i],
                                  c->end[i] - c->start[i]};
    qsort(pieces, n, sizeof(*pieces), by_time);
    for (uint64_t i = 0; i < n; i++) {
        piece *last = &pieces[kept > 0 ? kept - 1 : 0];
        if (kept == 0 || by_identity(last, &pieces[i]) != 0)
            pieces[kept++] = pieces[i];
        else
            merge(last, &pieces[i]);
    }
    return kept;
}

/* Times of one kind in one file. */
typedef struct summary {
    double number, total, median;
} summary;

static summary summarise(const piece *pieces, uint64_t n, double *seconds)
{
    summary of = {.number = (double)n, .median = NAN};
    for (uint64_t i = 0; i < n; i++)
        seconds[i] = cs_time_seconds(pieces[i].time);
    qsort(seconds, n, sizeof(*seconds), cs_number_compare);
    for (uint64_t i = 0; i < n; i++)
        of.total += seconds[i]; /* summed in this order, so that equal tasks have equal sums */
    if (n > 0)
        of.median = (seconds[(n - 1) / 2] + seconds[n / 2]) / 2;
    return of;
}

/* Fills summaries[kind]. */
static cs_status summarise_tasks(const cs_reader_tasks *c, summary *summaries, cs_error *error)
{
    piece *pieces = calloc(c->n + 1, sizeof(*pieces));
    double *seconds = calloc(c->n + 1, sizeof(*seconds));
    cs_status status = pieces && seconds ? CS_OK : cs_error_no_memory(error);
    uint64_t n = status == CS_OK ? collect_pieces(c, pieces) : 0;
    for (uint64_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && pieces[end].origin == pieces[i].origin;)
            end++;
        summaries[pieces[i].origin] = summarise(&pieces[i], end - i, seconds);
    }
    free(pieces);
    free(seconds);
    return status;
}

/* ---- both files ---- */

/* The first and the second file. */
typedef struct pair {
    cs_reader readers[2];
    cs_reader_tasks tasks[2];
    summary *kinds[2];
} pair;

static cs_status read_kinds(pair *p, cs_error *error)
{
    for (int f = 0; f < 2; f++) {
        CS_TRY(cs_reader_read_tasks(&p->readers[f], &p->tasks[f], error));
        p->kinds[f] = cs_arena_alloc(&p->readers[f].arena, p->tasks[f].n_kinds + UINT64_C(1),
                                     sizeof(*p->kinds[f]));
        CS_TRY(p->kinds[f] ? summarise_tasks(&p->tasks[f], p->kinds[f], error)
                           : cs_error_no_memory(error));
    }
    return CS_OK;
}

static summary summary_of(const pair *p, int file, const char *kind)
{
    for (uint32_t k = 0; k < p->tasks[file].n_kinds; k++)
        if (strcmp(p->tasks[file].kinds[k], kind) == 0 && p->kinds[file][k].number > 0)
            return p->kinds[file][k];
    return (summary){.median = NAN};
}

static bool add_kind(const pair *p, const char *kind, cs_compared_run *to)
{
    const summary a = summary_of(p, 0, kind), b = summary_of(p, 1, kind);
    for (uint32_t k = 0; k < to->n_kinds; k++)
        if (strcmp(to->kinds[k].kind, kind) == 0)
            return true;
    if (a.number == 0 && b.number == 0)
        return true;
    cs_compared_kind *made = &to->kinds[to->n_kinds++];
    *made = (cs_compared_kind){cs_arena_copy(&to->arena, kind),
                               {a.number, b.number},
                               {a.total, b.total},
                               {a.median, b.median}};
    return made->kind != NULL;
}

static cs_status compare_kinds(pair *p, cs_compared_run *to, cs_error *error)
{
    CS_TRY(read_kinds(p, error));
    size_t most = (size_t)p->tasks[0].n_kinds + p->tasks[1].n_kinds;
    to->kinds = cs_arena_alloc(&to->arena, most + 1, sizeof(*to->kinds));
    bool added = to->kinds != NULL;
    for (int f = 0; f < 2; f++)
        for (uint32_t k = 0; k < p->tasks[f].n_kinds && added; k++)
            added = add_kind(p, p->tasks[f].kinds[k], to);
    return added ? CS_OK : cs_error_no_memory(error);
}

/* ---- memory ---- */

static cs_status check_devices(const pair *p, uint64_t a, uint64_t b, cs_error *error)
{
    if (a == b)
        return CS_OK;
    return cs_error_add(
        error, CS_INVALID, "%s has %llu devices, %s has %llu: they must be of the same scenario",
        p->readers[0].path, (unsigned long long)a, p->readers[1].path, (unsigned long long)b);
}

static double *side(cs_compared *figure, int file)
{
    return file == 0 ? &figure->first : &figure->second;
}

static cs_status compare_peaks(pair *p, cs_compared_run *to, cs_error *error)
{
    const int64_t *peaks[2];
    uint64_t n[2];
    cs_status status = CS_OK;
    for (int f = 0; f < 2 && status == CS_OK; f++) {
        const cs_reader_column wanted = {"devices/peak", CS_READER_INT64, &peaks[f]};
        status = cs_reader_read(&p->readers[f], &wanted, 1, &n[f], error);
    }
    if (status == CS_OK && !to->side_by_side)
        status = check_devices(p, n[0], n[1], error);
    if (status != CS_OK)
        return status;
    to->n_devices = (uint32_t)(n[0] > n[1] ? n[0] : n[1]);
    to->devices = cs_arena_alloc(&to->arena, to->n_devices + UINT64_C(1), sizeof(*to->devices));
    if (!to->devices)
        return cs_error_no_memory(error);
    for (uint32_t d = 0; d < to->n_devices; d++)
        to->devices[d].peak = (cs_compared){d < n[0] ? (double)peaks[0][d] : (double)NAN,
                                            d < n[1] ? (double)peaks[1][d] : (double)NAN};
    return CS_OK;
}

/* Compares the column of a category in both files. */
static cs_status compare_category(pair *p, const char *column, uint32_t category,
                                  cs_compared_run *to, cs_error *error)
{
    cs_status status = CS_OK;
    for (int f = 0; f < 2 && status == CS_OK; f++) {
        const int64_t *bytes;
        uint64_t n;
        const cs_reader_column wanted = {column, CS_READER_INT64, &bytes};
        status = cs_reader_read(&p->readers[f], &wanted, 1, &n, error);
        for (uint32_t d = 0; d < to->n_devices && status == CS_OK; d++)
            *side(&to->devices[d].at_peak[category], f) = d < n ? (double)bytes[d] : (double)NAN;
    }
    return status;
}

static bool have_categories(cs_compared_run *to, const char *const *names, size_t prefix)
{
    const size_t n = to->n_categories + UINT64_C(1);
    const char **categories = cs_arena_alloc(&to->arena, n, sizeof(*categories));
    bool have = categories != NULL;
    for (uint32_t c = 0; c < to->n_categories && have; c++) {
        categories[c] = cs_arena_copy(&to->arena, names[c] + prefix);
        have = categories[c];
    }
    for (uint32_t d = 0; d < to->n_devices && have; d++) {
        to->devices[d].at_peak = cs_arena_alloc(&to->arena, n, sizeof(cs_compared));
        have = to->devices[d].at_peak;
    }
    to->categories = categories;
    return have;
}

/* Compares all categories, found by the names of their columns in the second file; all files have
 * the same. */
static cs_status compare_categories(pair *p, cs_compared_run *to, cs_error *error)
{
    static const char prefix[] = "at_peak_";
    const char *const *names;
    cs_status status =
        cs_reader_names(&p->readers[1], "devices", prefix, &names, &to->n_categories, error);
    if (status == CS_OK && !have_categories(to, names, sizeof(prefix) - 1))
        return cs_error_no_memory(error);
    for (uint32_t c = 0; c < to->n_categories && status == CS_OK; c++) {
        char column[128];
        snprintf(column, sizeof(column), "devices/%.100s", names[c]);
        status = compare_category(p, column, c, to, error);
    }
    return status;
}

/* ---- where the files come from ---- */

/* Takes the origins of the files. Files that do not state them are a prediction and a
 * measurement. */
static cs_status take_origins(const pair *p, cs_compared_run *to, cs_error *error)
{
    const cs_reader *first = &p->readers[0], *second = &p->readers[1];
    const bool measured = cs_reader_is_from(first, CS_RESULTS_MEASURED);
    const bool simulated = cs_reader_is_from(second, CS_RESULTS_SIMULATED);
    if (measured && simulated)
        return cs_error_add(
            error, CS_INVALID,
            "%s was measured and %s simulated: the prediction comes first in a pair", first->path,
            second->path);
    to->side_by_side = measured || simulated;
    return CS_OK;
}

static cs_status take_files(pair *p, cs_compared_run *to, cs_error *error)
{
    for (int f = 0; f < 2; f++) {
        cs_reader *reader = &p->readers[f];
        cs_compared_file *file = &to->files[f];
        file->path = cs_arena_copy(&to->arena, reader->path);
        file->name = cs_arena_copy(&to->arena, reader->name);
        file->schedule = cs_arena_copy(&to->arena, reader->schedule);
        file->topology = cs_arena_copy(&to->arena, reader->topology);
        if (!file->path || !file->name || !file->schedule || !file->topology)
            return cs_error_no_memory(error);
        CS_TRY(cs_reader_out_of_memory(reader, &file->out_of_memory, error));
    }
    return CS_OK;
}

/* ---- scenarios ---- */

static bool is_same(const cJSON *a, const cJSON *b)
{
    return (!a && !b) || (a && b && cJSON_Compare(a, b, true));
}

static cs_status differ(const pair *p, const char *what, cs_error *error)
{
    return cs_error_add(error, CS_INVALID, "%s and %s are of different %s", p->readers[0].path,
                        p->readers[1].path, what);
}

/* Checks names and weights of the layers. Times may differ, which is reported as a note. */
static cs_status check_models(const pair *p, const cJSON *a, const cJSON *b, cs_error *error)
{
    const cJSON *x = cs_json_member(a, "inline"), *y = cs_json_member(b, "inline");
    if (!is_same(cs_json_member(x, "name"), cs_json_member(y, "name")))
        return differ(p, "models", error);
    x = cs_json_member(x, "layers");
    y = cs_json_member(y, "layers");
    if (cJSON_GetArraySize(x) != cJSON_GetArraySize(y))
        return differ(p, "models", error);
    for (x = x ? x->child : NULL, y = y ? y->child : NULL; x && y; x = x->next, y = y->next)
        if (!is_same(cs_json_member(x, "name"), cs_json_member(y, "name")) ||
            !is_same(cs_json_member(x, "weights"), cs_json_member(y, "weights")))
            return differ(p, "models", error);
    return CS_OK;
}

/* Checks for differences that make a comparison meaningless. */
static cs_status check_scenarios(const pair *p, cJSON *const roots[2], cs_error *error)
{
    const cJSON *kinds[2];
    for (int f = 0; f < 2; f++)
        kinds[f] = cs_json_member(cs_json_member(roots[f], "schedule"), "kind");
    if (!is_same(kinds[0], kinds[1]))
        return differ(p, "schedules", error);
    return check_models(p, cs_json_member(roots[0], "model"), cs_json_member(roots[1], "model"),
                        error);
}

static cs_status compare_scenarios(pair *p, cs_compared_run *to, cs_error *error)
{
    cJSON *roots[2] = {NULL, NULL};
    cs_status status = CS_OK;
    for (int f = 0; f < 2 && status == CS_OK; f++) {
        const char *text = p->readers[f].scenario;
        status = text ? cs_json_parse(p->readers[f].path, text, strlen(text), &roots[f], error)
                      : cs_error_add(error, CS_INVALID, "%s: scenario: missing, must be a text",
                                     p->readers[f].path);
    }
    static const char *const sides[2][2] = {{"predicted", "measured"},
                                            {"in the first", "in the second"}};
    if (status == CS_OK && !to->side_by_side)
        status = check_scenarios(p, roots, error);
    if (status == CS_OK)
        status = cs_differences_find(roots[0], roots[1], sides[to->side_by_side], &to->arena,
                                     &to->notes, &to->n_notes, error);
    cJSON_Delete(roots[0]);
    cJSON_Delete(roots[1]);
    return status;
}

/* ---- all of it ---- */

static cs_compared figure_of(const pair *p, const char *key)
{
    return (cs_compared){cs_reader_figure(&p->readers[0], key),
                         cs_reader_figure(&p->readers[1], key)};
}

static cs_status take_figures(const pair *p, cs_compared_run *to, cs_error *error)
{
    while (cs_run_figure_main(to->n_figures))
        to->n_figures++;
    to->figures = cs_arena_alloc(&to->arena, to->n_figures, sizeof(*to->figures));
    if (!to->figures)
        return cs_error_no_memory(error);
    for (uint32_t f = 0; f < to->n_figures; f++) {
        const cs_run_figure *figure = cs_run_figure_main(f);
        to->figures[f] = (cs_compared_figure){figure, figure_of(p, figure->key)};
    }
    to->iteration = figure_of(p, "iteration_time_s");
    return CS_OK;
}

/* Copies texts of both files, which their readers own. */
static bool copy_texts(const char *first, const char *second, cs_compared_run *to,
                       cs_compared_text *copy)
{
    copy->first = first ? cs_arena_copy(&to->arena, first) : NULL;
    copy->second = second ? cs_arena_copy(&to->arena, second) : NULL;
    return !copy->first == !first && !copy->second == !second;
}

static cs_status compare(pair *p, cs_compared_run *to, cs_error *error)
{
    const cs_reader *a = &p->readers[0], *b = &p->readers[1];
    to->name = cs_arena_copy(&to->arena, b->name);
    if (!to->name || !copy_texts(a->sharing, b->sharing, to, &to->sharing) ||
        !copy_texts(a->algorithms, b->algorithms, to, &to->algorithms))
        return cs_error_no_memory(error);
    CS_TRY(take_figures(p, to, error));
    CS_TRY(take_origins(p, to, error));
    CS_TRY(take_files(p, to, error));
    CS_TRY(compare_scenarios(p, to, error));
    CS_TRY(compare_peaks(p, to, error));
    CS_TRY(compare_categories(p, to, error));
    return compare_kinds(p, to, error);
}

cs_status cs_compare_runs(const char *predicted, const char *measured, cs_compared_run *comparison,
                          cs_error *error)
{
    cs_compared_run made = {0};
    pair p = {0};
    cs_arena_init(&made.arena);
    cs_status status = cs_reader_init(&p.readers[0], predicted, error);
    if (status == CS_OK) {
        status = cs_reader_init(&p.readers[1], measured, error);
        if (status == CS_OK) {
            status = compare(&p, &made, error);
            cs_reader_finish(&p.readers[1]);
        }
        cs_reader_finish(&p.readers[0]);
    }
    if (status == CS_OK)
        *comparison = made;
    else
        cs_compare_runs_finish(&made);
    return status;
}

void cs_compare_runs_finish(cs_compared_run *comparison)
{
    cs_arena_finish(&comparison->arena);
    *comparison = (cs_compared_run){0};
}

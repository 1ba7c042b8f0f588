#include "sim/study/validate/error-table.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const cs_grouping_names[] = {"all", "kind",    "layout", "dataset",
                                         "gpu", "feature", NULL};

void cs_error_table_finish(cs_error_table *table)
{
    free(table->rows);
    *table = (cs_error_table){0};
}

/* ---- groups ---- */

/* Returns the kind of a run: its network and the bits of its numbers. */
static const char *kind_of(const cs_point *point)
{
    static const char *const names[2][3] = {
        {"dense, 32 bits", "dense, 16 bits", "dense, 8 bits or fewer"},
        {"experts, 32 bits", "experts, 16 bits", "experts, 8 bits or fewer"}};
    const cs_description *run = &point->run;
    if (strcmp(run->model->kind, "cnn") == 0)
        return "convolutions";
    const int bits = strstr(run->precision, "32") ? 0 : strstr(run->precision, "16") ? 1 : 2;
    return names[strstr(run->model->kind, "-moe") || run->model->experts > 1][bits];
}

static const char *layout_of(const cs_point *point)
{
    enum { FULLY_SHARDED = 3 };
    const cs_description_parallel *parallel = point->run.parallel;
    if (point->run.hardware->gpus <= 1)
        return "one GPU";
    if (parallel->pp > 1)
        return parallel->tp > 1 ? "tensor and pipeline parallel" : "pipeline parallel";
    if (parallel->tp > 1)
        return "tensor parallel";
    return parallel->zero == FULLY_SHARDED ? "fully sharded" : "data parallel";
}

/* Returns the name of a point's group; NULL if the point may be in several groups (its
 * features). */
static const char *group_of(const cs_point *point, cs_grouping grouping)
{
    switch (grouping) {
    case CS_GROUPING_KIND:
        return kind_of(point);
    case CS_GROUPING_LAYOUT:
        return layout_of(point);
    case CS_GROUPING_DATASET:
        return point->dataset;
    case CS_GROUPING_GPU:
        return point->run.hardware->gpu;
    case CS_GROUPING_FEATURE:
        return NULL;
    default:
        return "";
    }
}

static bool belongs(const cs_point *point, const cs_error_row *row)
{
    const char *group = group_of(point, row->grouping);
    return group ? strcmp(group, row->name) == 0 : cs_point_has(point, row->name);
}

static cs_status add_row(cs_error_table *table, cs_grouping grouping, const char *name,
                         cs_error *error)
{
    for (uint32_t i = 0; i < table->n; i++)
        if (table->rows[i].grouping == grouping && strcmp(table->rows[i].name, name) == 0)
            return CS_OK;
    if (!cs_vector_reserve((void **)&table->rows, &table->capacity, table->n + UINT64_C(1),
                           sizeof(*table->rows)))
        return cs_error_no_memory(error);
    table->rows[table->n++] = (cs_error_row){.grouping = grouping, .name = name};
    return CS_OK;
}

static cs_status add_rows(const cs_point *point, cs_grouping grouping, cs_error_table *table,
                          cs_error *error)
{
    const char *group = group_of(point, grouping);
    if (group)
        return add_row(table, grouping, group, error);
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < point->features.n && status == CS_OK; i++)
        status = add_row(table, grouping, cs_point_text(&point->features, i), error);
    return status;
}

/* ---- sums ---- */

static int by_size(const void *a, const void *b)
{
    const double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}

cs_error_summary cs_error_summarise(double *errors, uint32_t n)
{
    cs_error_summary made = {.n = n};
    if (n == 0)
        return (cs_error_summary){0, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    qsort(errors, n, sizeof(*errors), by_size);
    for (uint32_t i = 0; i < n; i++) {
        made.mean += fabs(errors[i]) / n;
        made.bias += errors[i] / n;
    }
    made.median = (fabs(errors[(n - 1) / 2]) + fabs(errors[n / 2])) / 2;
    made.largest = errors[n - 1];
    return made;
}

static double share(uint32_t part, uint32_t all)
{
    return all > 0 ? (double)part / all : (double)NAN;
}

double cs_verdicts_recall(const cs_verdicts *of)
{
    return share(of->n[1][1], of->n[1][1] + of->n[1][0] + of->depends[1]);
}

double cs_verdicts_precision(const cs_verdicts *of)
{
    return share(of->n[1][1], of->n[1][1] + of->n[0][1]);
}

double cs_verdicts_false_alarms(const cs_verdicts *of)
{
    return share(of->n[0][1], of->n[0][1] + of->n[0][0] + of->depends[0]);
}

static void count(const cs_prediction *prediction, cs_error_row *row)
{
    row->n_points++;
    row->n_states[prediction->state]++;
    if (cs_prediction_has_verdict(prediction))
        (*(prediction->depends
               ? &row->verdicts.depends[prediction->was_out_of_memory]
               : &row->verdicts.n[prediction->was_out_of_memory][prediction->out_of_memory]))++;
    row->n_verdicts += cs_prediction_is_decided(prediction);
    row->n_right += cs_prediction_is_right(prediction);
}

static void fill(const cs_predictions *predictions, double *errors, cs_error_row *row)
{
    for (uint32_t i = 0; i < predictions->n; i++)
        if (belongs(predictions->items[i].point, row))
            count(&predictions->items[i], row);
    for (uint32_t m = 0; m < CS_N_MEASURES; m++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < predictions->n; i++) {
            errors[n] = cs_prediction_error(&predictions->items[i], (cs_measure)m);
            n += belongs(predictions->items[i].point, row) && isfinite(errors[n]) &&
                 (m != CS_MEASURE_TIME || cs_point_is_exact(predictions->items[i].point));
        }
        row->measures[m] = cs_error_summarise(errors, n);
    }
}

cs_status cs_error_table_make(const cs_predictions *predictions, cs_error_table *table,
                              cs_error *error)
{
    double *errors = malloc((predictions->n + 1ULL) * sizeof(*errors));
    cs_status status = errors ? CS_OK : cs_error_no_memory(error);
    for (uint32_t g = 0; g < CS_N_GROUPINGS; g++)
        for (uint32_t i = 0; i < predictions->n && status == CS_OK; i++)
            status = add_rows(predictions->items[i].point, (cs_grouping)g, table, error);
    for (uint32_t r = 0; r < table->n && status == CS_OK; r++)
        fill(predictions, errors, &table->rows[r]);
    free(errors);
    return status;
}

/* ---- notes ---- */

void cs_note_counts_finish(cs_note_counts *counts)
{
    free(counts->items);
    *counts = (cs_note_counts){0};
}

static cs_status count_note(cs_note_counts *counts, const char *text, cs_error *error)
{
    uint32_t i = 0;
    while (i < counts->n && strcmp(counts->items[i].text, text) != 0)
        i++;
    if (i == counts->n) {
        if (!cs_vector_reserve((void **)&counts->items, &counts->capacity, counts->n + UINT64_C(1),
                               sizeof(*counts->items)))
            return cs_error_no_memory(error);
        counts->items[counts->n++] = (cs_note_count){.text = text};
    }
    counts->items[i].n++;
    return CS_OK;
}

static int by_count(const void *a, const void *b)
{
    const cs_note_count *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->text, y->text);
}

static void sort_notes(cs_note_counts *counts)
{
    if (counts->n > 0)
        qsort(counts->items, counts->n, sizeof(*counts->items), by_count);
}

cs_status cs_count_missing(const cs_predictions *predictions, cs_note_counts *counts,
                           cs_error *error)
{
    for (uint32_t i = 0; i < predictions->n; i++)
        if (predictions->items[i].state == CS_PREDICTION_MISSING)
            CS_TRY(count_note(counts, predictions->items[i].made.missing[0], error));
    sort_notes(counts);
    return CS_OK;
}

cs_status cs_count_assumed(const cs_predictions *predictions, cs_note_counts *counts,
                           cs_error *error)
{
    for (uint32_t i = 0; i < predictions->n; i++) {
        const cs_prediction *prediction = &predictions->items[i];
        if (prediction->state != CS_PREDICTION_MADE)
            continue;
        for (uint32_t k = 0; k < prediction->made.n_assumed; k++)
            CS_TRY(count_note(counts, prediction->made.assumed[k], error));
    }
    sort_notes(counts);
    return CS_OK;
}

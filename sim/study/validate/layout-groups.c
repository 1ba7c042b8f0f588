#include "sim/study/validate/layout-groups.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void cs_layout_groups_finish(cs_layout_groups *groups)
{
    free(groups->groups);
    free(groups->rankings);
    *groups = (cs_layout_groups){0};
}

/* ---- groups ---- */

static int compare_texts(const char *left, const char *right)
{
    return strcmp(left ? left : "", right ? right : "");
}

/* Compares two runs; 0 if they are in one group. */
static int compare_runs(const cs_point *left, const cs_point *right)
{
    const cs_description *x = &left->run, *y = &right->run;
    const char *const texts[][2] = {{left->dataset, right->dataset},
                                    {x->model->name, y->model->name},
                                    {x->hardware->gpu, y->hardware->gpu},
                                    {x->precision, y->precision}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (compare_texts(texts[i][0], texts[i][1]) != 0)
            return compare_texts(texts[i][0], texts[i][1]);
    CS_COMPARE(x->model->layers, y->model->layers);
    CS_COMPARE(x->model->hidden, y->model->hidden);
    CS_COMPARE(x->model->seq, y->model->seq);
    CS_COMPARE(x->hardware->gpus, y->hardware->gpus);
    CS_COMPARE(x->batch->global, y->batch->global);
    return 0;
}

/* Sorts the runs of a group next to each other, in their given order. */
static int by_group(const void *a, const void *b)
{
    const cs_prediction *x = *(const cs_prediction *const *)a;
    const cs_prediction *y = *(const cs_prediction *const *)b;
    const int order = compare_runs(x->point, y->point);
    if (order != 0)
        return order;
    CS_COMPARE(x, y);
    return 0;
}

/* Compares two runs by the rule of thumb; negative: it prefers `left`. */
static int by_rule(const cs_prediction *left, const cs_prediction *right)
{
    const cs_description *x = &left->point->run, *y = &right->point->run;
    const bool x_recomputes = strcmp(x->recompute, "none") != 0;
    const bool y_recomputes = strcmp(y->recompute, "none") != 0;
    CS_COMPARE(x_recomputes, y_recomputes);
    const uint64_t x_ranks = (uint64_t)x->parallel->tp * x->parallel->pp;
    const uint64_t y_ranks = (uint64_t)y->parallel->tp * y->parallel->pp;
    CS_COMPARE(x_ranks, y_ranks);
    const uint32_t x_micro = x->batch->micro > 0 ? x->batch->micro : 1;
    const uint32_t y_micro = y->batch->micro > 0 ? y->batch->micro : 1;
    CS_COMPARE(y_micro, x_micro);
    return 0;
}

static int by_prediction(const cs_prediction *left, const cs_prediction *right)
{
    CS_COMPARE(left->values[CS_MEASURE_TIME], right->values[CS_MEASURE_TIME]);
    return 0;
}

static int by_measurement(const cs_prediction *left, const cs_prediction *right)
{
    CS_COMPARE(left->measured[CS_MEASURE_TIME], right->measured[CS_MEASURE_TIME]);
    return 0;
}

typedef int order(const cs_prediction *left, const cs_prediction *right);

static const cs_prediction *first_by(order *before, const cs_prediction *const *runs, uint32_t n)
{
    const cs_prediction *first = runs[0];
    for (uint32_t i = 1; i < n; i++)
        first = before(runs[i], first) < 0 ? runs[i] : first;
    return first;
}

/* Returns Kendall's tau; NaN if no two runs differ in both orders. */
static double kendall(order *one, const cs_prediction *const *runs, uint32_t n)
{
    int64_t sum = 0, pairs = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++) {
            const int said = one(runs[i], runs[j]), was = by_measurement(runs[i], runs[j]);
            pairs += said != 0 && was != 0;
            sum += said != 0 && was != 0 ? ((said < 0) == (was < 0) ? 1 : -1) : 0;
        }
    return pairs > 0 ? (double)sum / (double)pairs : (double)NAN;
}

static cs_status add_group(const cs_prediction *const *runs, uint32_t n, cs_layout_groups *groups,
                           cs_error *error)
{
    static order *const orders[] = {
        [CS_CHOOSER_PREDICTION] = by_prediction, [CS_CHOOSER_RULE] = by_rule};
    cs_layout_group made = {.best = first_by(by_measurement, runs, n), .n = n};
    for (uint32_t c = 0; c < CS_N_CHOOSERS; c++) {
        made.tau[c] = kendall(orders[c], runs, n);
        made.choice[c] = first_by(orders[c], runs, n);
        made.loss[c] =
            made.choice[c]->measured[CS_MEASURE_TIME] / made.best->measured[CS_MEASURE_TIME] - 1;
    }
    if (isnan(made.tau[CS_CHOOSER_PREDICTION]))
        return CS_OK;
    if (isnan(made.tau[CS_CHOOSER_RULE]))
        made.tau[CS_CHOOSER_RULE] = 0;
    if (!cs_vector_reserve((void **)&groups->groups, &groups->capacity, groups->n + UINT64_C(1),
                           sizeof(*groups->groups)))
        return cs_error_no_memory(error);
    groups->groups[groups->n++] = made;
    return CS_OK;
}

static cs_status find_groups(const cs_predictions *predictions, const cs_prediction **runs,
                             cs_layout_groups *groups, cs_error *error)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < predictions->n; i++)
        if (isfinite(cs_prediction_error(&predictions->items[i], CS_MEASURE_TIME)))
            runs[n++] = &predictions->items[i];
    cs_vector_sort(runs, n, sizeof(*runs), by_group);
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && compare_runs(runs[first]->point, runs[end]->point) == 0;)
            end++;
        if (end - first >= CS_GROUP_LEAST)
            CS_TRY(add_group(runs + first, end - first, groups, error));
    }
    return CS_OK;
}

/* ---- means ---- */

static void add_to(cs_ranking *ranking, const cs_layout_group *group)
{
    ranking->n_groups++;
    ranking->n_runs += group->n;
    for (uint32_t c = 0; c < CS_N_CHOOSERS; c++) {
        ranking->tau[c] += group->tau[c];
        ranking->loss[c] += group->loss[c];
        ranking->near[c] += group->loss[c] <= cs_group_near;
    }
}

static cs_status add_ranking(const char *dataset, cs_layout_groups *groups, cs_error *error)
{
    cs_ranking made = {.dataset = dataset};
    for (uint32_t i = 0; i < groups->n; i++)
        if (!*dataset || strcmp(groups->groups[i].best->point->dataset, dataset) == 0)
            add_to(&made, &groups->groups[i]);
    for (uint32_t c = 0; c < CS_N_CHOOSERS && made.n_groups > 0; c++) {
        made.tau[c] /= made.n_groups;
        made.loss[c] /= made.n_groups;
        made.near[c] /= made.n_groups;
    }
    if (made.n_groups == 0)
        return CS_OK;
    if (!cs_vector_reserve((void **)&groups->rankings, &groups->cap_rankings,
                           groups->n_rankings + UINT64_C(1), sizeof(*groups->rankings)))
        return cs_error_no_memory(error);
    groups->rankings[groups->n_rankings++] = made;
    return CS_OK;
}

cs_status cs_layout_groups_make(const cs_predictions *predictions, cs_layout_groups *groups,
                                cs_error *error)
{
    const cs_prediction **runs = calloc(predictions->n + 1ULL, sizeof(*runs));
    if (!runs)
        return cs_error_no_memory(error);
    cs_status status = find_groups(predictions, runs, groups, error);
    free(runs);
    if (status == CS_OK)
        status = add_ranking("", groups, error);
    for (uint32_t i = 0; i < groups->n && status == CS_OK; i++) {
        const char *dataset = groups->groups[i].best->point->dataset;
        if (i == 0 || strcmp(groups->groups[i - 1].best->point->dataset, dataset) != 0)
            status = add_ranking(dataset, groups, error);
    }
    return status;
}

#include "sim/study/validate/error-parts.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = CS_N_STEP_PARTS };

static const double caution = 0.01; /* the weight w of error-parts.h */

void cs_error_parts_finish(cs_error_parts_table *table)
{
    free(table->rows);
    *table = (cs_error_parts_table){0};
}

static bool belongs(const cs_prediction *prediction, const char *dataset)
{
    return (!*dataset || strcmp(prediction->point->dataset, dataset) == 0) &&
           isfinite(cs_prediction_error(prediction, CS_MEASURE_TIME));
}

static double share(const cs_prediction *prediction, uint32_t part)
{
    return prediction->parts.seconds[part] / prediction->measured[CS_MEASURE_TIME];
}

/* The normal equations of b_p = a_p - 1: (X'X + n w I) b = X'(1 - X 1), X the shares. */
typedef struct equations {
    double left[PARTS][PARTS], right[PARTS];
} equations;

static void add_point(const cs_prediction *prediction, equations *to)
{
    const double missing = -cs_prediction_error(prediction, CS_MEASURE_TIME);
    for (uint32_t p = 0; p < PARTS; p++) {
        for (uint32_t q = 0; q < PARTS; q++)
            to->left[p][q] += share(prediction, p) * share(prediction, q);
        to->left[p][p] += caution;
        to->right[p] += share(prediction, p) * missing;
    }
}

/* Solves the equations by Cholesky decomposition: the matrix is symmetric and, because of caution,
 * positive definite. */
static void solve(equations *of, double *b)
{
    for (uint32_t j = 0; j < PARTS; j++) {
        for (uint32_t k = 0; k < j; k++)
            of->left[j][j] -= of->left[j][k] * of->left[j][k];
        of->left[j][j] = sqrt(of->left[j][j]);
        for (uint32_t i = j + 1; i < PARTS; i++) {
            for (uint32_t k = 0; k < j; k++)
                of->left[i][j] -= of->left[i][k] * of->left[j][k];
            of->left[i][j] /= of->left[j][j];
        }
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        b[i] = of->right[i];
        for (uint32_t k = 0; k < i; k++)
            b[i] -= of->left[i][k] * b[k];
        b[i] /= of->left[i][i];
    }
    for (uint32_t i = PARTS; i-- > 0;) {
        for (uint32_t k = i + 1; k < PARTS; k++)
            b[i] -= of->left[k][i] * b[k];
        b[i] /= of->left[i][i];
    }
}

static void fill(const cs_predictions *predictions, cs_error_parts *row)
{
    equations sums = {0};
    double more[PARTS];
    for (uint32_t i = 0; i < predictions->n; i++) {
        const cs_prediction *prediction = &predictions->items[i];
        if (!belongs(prediction, row->dataset))
            continue;
        row->n++;
        row->missing -= cs_prediction_error(prediction, CS_MEASURE_TIME);
        for (uint32_t p = 0; p < PARTS; p++)
            row->predicted[p] += share(prediction, p);
        add_point(prediction, &sums);
    }
    if (row->n == 0)
        return;
    solve(&sums, more);
    row->rest = row->missing /= row->n;
    for (uint32_t p = 0; p < PARTS; p++) {
        row->predicted[p] /= row->n;
        row->lacking[p] = more[p] * row->predicted[p];
        row->rest -= row->lacking[p];
    }
}

static cs_status add_row(const char *dataset, cs_error_parts_table *table, cs_error *error)
{
    for (uint32_t r = 0; r < table->n; r++)
        if (strcmp(table->rows[r].dataset, dataset) == 0)
            return CS_OK;
    if (!cs_vector_reserve((void **)&table->rows, &table->capacity, table->n + UINT64_C(1),
                           sizeof(*table->rows)))
        return cs_error_no_memory(error);
    table->rows[table->n++] = (cs_error_parts){.dataset = dataset};
    return CS_OK;
}

cs_status cs_error_parts_make(const cs_predictions *predictions, cs_error_parts_table *table,
                              cs_error *error)
{
    CS_TRY(add_row("", table, error));
    for (uint32_t i = 0; i < predictions->n; i++)
        if (belongs(&predictions->items[i], ""))
            CS_TRY(add_row(predictions->items[i].point->dataset, table, error));
    for (uint32_t r = 0; r < table->n; r++)
        fill(predictions, &table->rows[r]);
    return CS_OK;
}

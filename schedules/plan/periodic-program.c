#include "schedules/plan/periodic-program.h"
#include "schedules/plan/cbc.h"
#include "schedules/plan/pattern-order.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Improvements smaller than this fraction of the period are not searched for, because CBC computes
 * in doubles. */
static const double resolution = 1e-6;

static const double infinite = 1e50; /* value that means "no limit" to CBC */

/* CBC 2.10 keeps its command line in globals, so one program is solved at a time. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* ---- the program ----
 *
 * Columns: 0: tau = lower / T; 1 .. n: X_o = x_o / T; then k(u, v) of each pair. A duration d
 * becomes d / lower, in units of T: (d / lower) tau. */
typedef struct program {
    cs_order *order;
    cs_time lower, below; /* range of the period T: lower <= T < below */
    cs_cbc cbc;
    Cbc_Model *model;
} program;

enum { TAU, FIRST_X };

static int x_column(uint32_t op)
{
    return FIRST_X + (int)op;
}

static int laps_column(const program *p, uint32_t pair)
{
    return FIRST_X + (int)(p->order->n_ops + pair);
}

static double scaled(const program *p, cs_time time)
{
    return (double)time / (double)p->lower;
}

static void add_row(const program *p, double low, int n, const int *columns,
                    const double *coefficients, double high)
{
    int row = p->cbc.getNumRows(p->model);
    p->cbc.addRow(p->model, "", n, columns, coefficients, 'L', high);
    p->cbc.setRowLower(p->model, row, low);
}

/* Adds the rows of the chain: each operation starts after the previous one has ended, and less than
 * a whole period later. If it waited longer, all earlier operations could run one period later; the
 * period would stay the same, and the memory would not grow. */
static void add_chain(const program *p)
{
    for (uint32_t o = 0; o + 1 < p->order->n_ops; o++) {
        int columns[] = {x_column(o + 1), x_column(o), TAU};
        double coefficients[] = {1, -1, -scaled(p, p->order->ops[o].duration)};
        add_row(p, 0, 3, columns, coefficients, 1);
    }
}

static void add_exclusion(const program *p)
{
    for (uint32_t i = 0; i < p->order->n_pairs; i++) {
        const cs_order_pair *pair = &p->order->pairs[i];
        int columns[] = {x_column(pair->v), x_column(pair->u), laps_column(p, i), TAU};
        double after[] = {1, -1, -1, -scaled(p, pair->time_uv)};
        double ahead[] = {1, -1, -1, scaled(p, pair->time_vu)};
        add_row(p, 0, 4, columns, after, infinite);
        add_row(p, -infinite, 4, columns, ahead, 1);
    }
}

typedef struct memory_row {
    int *columns;
    double *coefficients;
    int n;
    double right;
} memory_row;

/* Adds the laps of pair i to a row of memory. When `now` starts, stage s has k(F_s, now) - k(B_s,
 * now) active micro-batches; the pair has one of the two terms. */
static void add_laps(const program *p, memory_row *row, uint32_t i, uint32_t now, double unit)
{
    const cs_order_pair *pair = &p->order->pairs[i];
    uint32_t o = pair->u == now ? pair->v : pair->u;
    double kept = (double)p->order->kept[p->order->ops[o].stage] / unit;
    if (p->order->ops[o].kind == CS_PATTERN_BACKWARD)
        kept = -kept;
    row->columns[row->n] = laps_column(p, i);
    row->coefficients[row->n++] = pair->u == now ? -kept : kept;
    row->right += pair->u == now ? kept : 0; /* k(o, now) = -1 - k(now, o) */
}

static void add_memory(const program *p, const cs_order_device *device, uint32_t stage,
                       memory_row *row)
{
    const cs_order *order = p->order;
    uint32_t now = order->at[stage * CS_PATTERN_KINDS + CS_PATTERN_FORWARD];
    double unit = device->room > 0 ? (double)device->room : 1;
    row->n = 0;
    row->right = (double)device->room / unit;
    for (uint32_t i = 0; i < order->n_pairs; i++) {
        if (order->pairs[i].u == now || order->pairs[i].v == now)
            add_laps(p, row, i, now, unit);
    }
    add_row(p, -infinite, row->n, row->columns, row->coefficients, row->right);
}

static bool add_memories(const program *p)
{
    const cs_order *order = p->order;
    memory_row row = {.columns = malloc((order->n_ops + 1) * sizeof(*row.columns)),
                      .coefficients = malloc((order->n_ops + 1) * sizeof(*row.coefficients))};
    bool done = row.columns && row.coefficients;
    for (uint32_t d = 0; d < order->n_devices && done; d++) {
        const cs_order_device *device = &order->devices[d];
        for (uint32_t i = device->first; i < device->end && device->room < INT64_MAX; i++)
            add_memory(p, device, order->stages[i], &row);
    }
    free(row.columns);
    free(row.coefficients);
    return done;
}

/* Returns an upper limit of k(u, v). From the chain: each operation waits less than a period. From
 * the memory: a stage whose forward and backward enclose u and v has a limited number of active
 * micro-batches. */
static double most_laps(const program *p, const cs_order_pair *pair)
{
    const cs_order *order = p->order;
    cs_time apart = order->before[pair->v] - order->before[pair->u] - pair->time_uv;
    double most = floor(scaled(p, apart) + 1e-9) + (pair->v - pair->u);
    for (uint32_t s = 0; s < order->plan->n_stages; s++) {
        const uint32_t *at = &order->at[s * CS_PATTERN_KINDS];
        int64_t active = cs_order_most_active(order, s);
        if (at[CS_PATTERN_FORWARD] <= pair->u && pair->v <= at[CS_PATTERN_BACKWARD] &&
            active < INT64_MAX)
            most = fmin(most, (double)(active - (pair->laps == CS_LAPS_EXCLUSIVE)));
    }
    return most;
}

static double least_laps(const program *p, const cs_order_pair *pair)
{
    const cs_order *order = p->order;
    double apart = (double)(order->before[pair->v] - order->before[pair->u] + pair->time_vu) /
                   (double)p->below;
    return fmax(0, ceil(apart - 1e-9) - 1);
}

static void add_columns(const program *p)
{
    const cs_order *order = p->order;
    double slowest = (double)p->lower / ((double)p->below - 1);
    slowest = fmax(slowest, (double)p->lower / (double)p->below * (1 + resolution));
    p->cbc.addCol(p->model, "", fmin(slowest, 1), 1, -1, 0, 0, NULL, NULL);
    for (uint32_t o = 0; o < order->n_ops; o++)
        p->cbc.addCol(p->model, "", 0, o == 0 ? 0 : 2.0 * o, 0, 0, 0, NULL, NULL);
    for (uint32_t i = 0; i < order->n_pairs; i++) {
        double least = least_laps(p, &order->pairs[i]);
        p->cbc.addCol(p->model, "", least, fmax(least, most_laps(p, &order->pairs[i])), 0, 1, 0,
                      NULL, NULL);
    }
}

static void configure(const program *p, const cs_program_options *options)
{
    p->cbc.setLogLevel(p->model, 0);
    p->cbc.setParameter(p->model, "logLevel", "0");
    p->cbc.setParameter(p->model, "slogLevel", "0");
    p->cbc.setParameter(p->model, "timeMode", "elapsed");
    p->cbc.setParameter(p->model, "threads", "0");
    p->cbc.setParameter(p->model, "primalTolerance", "1e-9");
    p->cbc.setParameter(p->model, "integerTolerance", "1e-7");
    /* CLP's default rule, steepest edge, can abort the process: one of its own assertions fails if
     * a reduced cost is rounded to 0 */
    p->cbc.setParameter(p->model, "primalPivot", "dantzig");
    p->cbc.setAllowableGap(p->model, 0);
    char seconds[32];
    snprintf(seconds, sizeof(seconds), "%.3f", options->time_limit);
    if (options->time_limit > 0)
        p->cbc.setParameter(p->model, "seconds", seconds);
    if (options->node_limit > 0)
        p->cbc.setMaximumNodes(p->model, options->node_limit);
}

/* ---- what CBC found, exactly ---- */

/* Takes the laps of CBC's solution, and computes their period. Returns false if CBC has no
 * solution, or only one that holds within its tolerances but not in whole numbers. */
static bool take_solution(const program *p, cs_time *period)
{
    const double *solution = p->cbc.bestSolution(p->model);
    if (!solution)
        return false;
    for (uint32_t i = 0; i < p->order->n_pairs; i++)
        cs_order_set(p->order, p->order->pairs[i].u, p->order->pairs[i].v,
                     llround(solution[laps_column(p, i)]));
    return cs_order_fits(p->order) && cs_order_tighten(p->order, period);
}

/* Searches for a period in [lower, below). */
static cs_status solve(program *p, const cs_program_options *options, cs_time *period,
                       cs_program_end *end, cs_error *error)
{
    CS_TRY(cs_cbc_load(&p->cbc, error));
    p->model = p->cbc.newModel();
    if (!p->model)
        return cs_error_no_memory(error);
    add_columns(p);
    add_chain(p);
    add_exclusion(p);
    cs_status status = add_memories(p) ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        configure(p, options);
        p->cbc.solve(p->model);
        bool found = take_solution(p, period) && *period < p->below;
        bool optimal = p->cbc.isProvenOptimal(p->model), none = p->cbc.isProvenInfeasible(p->model);
        *end = found && (optimal || *period == p->lower) ? CS_PROGRAM_OPTIMAL
               : found                                   ? CS_PROGRAM_FEASIBLE
               : none && !p->cbc.bestSolution(p->model)  ? CS_PROGRAM_INFEASIBLE
                                                         : CS_PROGRAM_UNKNOWN;
    }
    p->cbc.deleteModel(p->model);
    return status;
}

/* ---- all together ---- */

/* Makes the pattern of the times in `order`, and keeps it if it is valid. It can be invalid only if
 * the model ends in layers that take no time. */
static cs_status keep(const cs_order *order, cs_time period, cs_pattern *best, cs_error *error)
{
    cs_pattern pattern;
    CS_TRY(cs_order_pattern(order, period, &pattern, error));
    cs_status status = cs_pattern_check(order->chain, order->plan, &pattern, NULL, NULL);
    if (status == CS_OK) {
        cs_pattern_finish(best);
        *best = pattern;
        return CS_OK;
    }
    cs_pattern_finish(&pattern);
    return status == CS_LIMIT ? CS_OK : cs_error_no_memory(error);
}

/* Lets CBC search for a better pattern than `best`, which may have period 0 (no pattern yet). */
static cs_status improve(cs_order *order, cs_time lower, const cs_program_options *options,
                         cs_pattern *best, cs_program_end *end, cs_error *error)
{
    program p = {.order = order, .lower = lower};
    p.below = best->period > 0 ? best->period : options->below;
    if (p.below == CS_TIME_MAX) /* the limit is the time of one micro-batch after the other */
        p.below = order->before[order->n_ops] + 2;
    cs_time period;
    bool had = best->period > 0;
    *end = CS_PROGRAM_INFEASIBLE;
    if (lower < p.below) {
        pthread_mutex_lock(&one_at_a_time);
        cs_status status = solve(&p, options, &period, end, error);
        pthread_mutex_unlock(&one_at_a_time);
        if (status != CS_OK)
            return status;
    }
    if (*end == CS_PROGRAM_OPTIMAL || *end == CS_PROGRAM_FEASIBLE) {
        cs_status status = keep(order, period, best, error);
        if (status != CS_OK || best->period == period)
            return status;
        *end = CS_PROGRAM_UNKNOWN;
    }
    if (had)
        *end = *end == CS_PROGRAM_INFEASIBLE ? CS_PROGRAM_OPTIMAL : CS_PROGRAM_FEASIBLE;
    return CS_OK;
}

static cs_status search(cs_order *order, const cs_program_options *options, cs_pattern *best,
                        cs_program_end *end, cs_error *error)
{
    cs_time lower = cs_order_bound(order), period;
    *end = CS_PROGRAM_INFEASIBLE;
    if (lower == CS_TIME_MAX || lower >= options->below)
        return CS_OK;
    if (cs_order_construct(order, lower, &period) && period < options->below) {
        CS_TRY(keep(order, period, best, error));
    }
    return improve(order, lower, options, best, end, error);
}

cs_status cs_pattern_program(const cs_chain *chain, const cs_plan *plan,
                             const cs_program_options *options, cs_pattern *pattern,
                             cs_program_end *end, cs_error *error)
{
    cs_order order;
    cs_pattern best = {0};
    cs_program_end found;
    CS_TRY(cs_order_make(chain, plan, &order, error));
    cs_status status = search(&order, options, &best, &found, error);
    cs_order_finish(&order);
    if (status == CS_OK) {
        *end = found;
        if (best.period > 0)
            *pattern = best;
    } else {
        cs_pattern_finish(&best);
    }
    return status;
}

static cs_status check_shifts(const cs_order *order, const cs_pattern *pattern, cs_error *error)
{
    const int64_t most = INT32_MAX;
    if (pattern->n_stages != order->plan->n_stages || pattern->period <= 0)
        return cs_error_add(error, CS_INVALID, "a pattern of %u stages for a plan of %u",
                            pattern->n_stages, order->plan->n_stages);
    for (uint32_t o = 0; o < pattern->n_stages * CS_PATTERN_KINDS; o++) {
        if (pattern->ops[o].shift > most || pattern->ops[o].shift < -most)
            return cs_error_add(error, CS_LIMIT, "a pattern's shift of %lld is over %lld",
                                (long long)pattern->ops[o].shift, (long long)most);
    }
    return CS_OK;
}

cs_status cs_pattern_tighten(const cs_chain *chain, const cs_plan *plan, cs_pattern *pattern,
                             cs_error *error)
{
    cs_order order;
    cs_pattern tight;
    cs_time period;
    CS_TRY(cs_order_make(chain, plan, &order, error));
    cs_status status = check_shifts(&order, pattern, error);
    if (status == CS_OK) {
        cs_order_from_pattern(&order, pattern);
        status = cs_order_tighten(&order, &period)
                     ? cs_order_pattern(&order, period, &tight, error)
                     : cs_error_add(error, CS_LIMIT,
                                    "no period makes a pattern of this order and these shifts");
    }
    if (status == CS_OK) {
        cs_pattern_finish(pattern);
        *pattern = tight;
    }
    cs_order_finish(&order);
    return status;
}

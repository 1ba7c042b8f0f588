#include "calib/measurements.h"

#include "calib/fit.h"
#include "sim/base/vector.h"

#include <stdlib.h>

void cs_measurements_finish(cs_measurements *measurements)
{
    if (!measurements)
        return;
    for (uint32_t i = 0; i < measurements->n_tables; i++)
        free(measurements->tables[i].points);
    free(measurements->tables);
    *measurements = (cs_measurements){0};
}

static cs_measured_table *find_table(cs_measurements *measurements, cs_cost_collective collective,
                                     cs_cost_level level, uint32_t ranks)
{
    for (uint32_t i = 0; i < measurements->n_tables; i++) {
        cs_measured_table *at = &measurements->tables[i];
        if (at->collective == collective && at->level == level && at->ranks == ranks)
            return at;
    }
    if (!cs_vector_reserve((void **)&measurements->tables, &measurements->cap_tables,
                           measurements->n_tables + UINT64_C(1), sizeof(*measurements->tables)))
        return NULL;
    cs_measured_table *made = &measurements->tables[measurements->n_tables++];
    *made = (cs_measured_table){.collective = collective, .level = level, .ranks = ranks};
    return made;
}

cs_status cs_measurements_add(cs_measurements *measurements, cs_cost_collective collective,
                              cs_cost_level level, uint32_t ranks, cs_cost_point point,
                              cs_error *error)
{
    cs_measured_table *table = find_table(measurements, collective, level, ranks);
    if (!table || !cs_vector_reserve((void **)&table->points, &table->cap_points,
                                     table->n_points + UINT64_C(1), sizeof(point)))
        return cs_error_no_memory(error);
    table->points[table->n_points++] = point;
    return CS_OK;
}

/* Orders by size, then by time, so that the order of arrival does not matter. */
static int compare(const void *a, const void *b)
{
    const cs_cost_point *p = a, *q = b;
    CS_COMPARE(p->bytes, q->bytes);
    CS_COMPARE(p->seconds, q->seconds);
    return 0;
}

static cs_status fit_table(cs_measured_table *table, const char *name, uint32_t source, bool keep,
                           cs_costs *costs, cs_error *error)
{
    cs_fit fit;
    cs_error why;
    cs_error_init(&why);
    qsort(table->points, table->n_points, sizeof(*table->points), compare);
    const cs_status status =
        cs_fit_regimes(table->points, table->n_points, CS_FIT_REGIMES_MAX, &fit, &why);
    if (status != CS_OK)
        return cs_error_add(error, status, "%s: %s of %u ranks: %s", name,
                            cs_cost_collective_names[table->collective], table->ranks, why.text);
    const cs_cost_network entry = {.collective = table->collective,
                                   .level = table->level,
                                   .ranks = table->ranks,
                                   .n_regimes = fit.n_regimes,
                                   .regimes = fit.regimes,
                                   .n_points = keep ? table->n_points : 0,
                                   .points = table->points,
                                   .source = source};
    return cs_costs_add_network(costs, &entry, error);
}

cs_status cs_measurements_fit(cs_measurements *measurements, const char *name, uint32_t source,
                              bool keep, cs_costs *costs, cs_error *error)
{
    for (uint32_t i = 0; i < measurements->n_tables; i++) {
        const cs_status status =
            fit_table(&measurements->tables[i], name, source, keep, costs, error);
        if (status != CS_OK)
            return status;
    }
    return CS_OK;
}

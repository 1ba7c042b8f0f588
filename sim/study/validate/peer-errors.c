#include "sim/study/validate/peer-errors.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct stated {
    cs_measure measure;
    const char *key;
} stated[] = {{CS_MEASURE_TIME, "step_time_s"},
              {CS_MEASURE_ALLOCATED, "peak_allocated_bytes"},
              {CS_MEASURE_RESERVED, "peak_reserved_bytes"}};

enum { N_STATED = sizeof(stated) / sizeof(stated[0]) };

void cs_peer_table_finish(cs_peer_table *table)
{
    free(table->rows);
    *table = (cs_peer_table){0};
}

/* Returns the row of a tool and a measure. A new tool gets the rows of all measures at once. NULL
 * if memory runs out. */
static cs_peer_errors *row_of(cs_peer_table *table, const char *tool, uint32_t which)
{
    for (uint32_t i = 0; i < table->n; i += N_STATED)
        if (strcmp(table->rows[i].tool, tool) == 0)
            return &table->rows[i + which];
    if (!cs_vector_reserve((void **)&table->rows, &table->capacity, (uint64_t)table->n + N_STATED,
                           sizeof(*table->rows)))
        return NULL;
    cs_peer_errors *rows = table->rows + table->n;
    for (uint32_t i = 0; i < N_STATED; i++)
        rows[i] = (cs_peer_errors){.tool = tool, .measure = stated[i].measure};
    table->n += N_STATED;
    return rows + which;
}

static cs_status add(const cs_prediction *prediction, const cJSON *peer, uint32_t which,
                     cs_peer_table *table, cs_error *error)
{
    const cs_measure measure = stated[which].measure;
    const cJSON *value = cs_json_member(peer, stated[which].key);
    const double ours = fabs(cs_prediction_error(prediction, measure));
    if (!cJSON_IsNumber(value) || !isfinite(ours) ||
        (measure == CS_MEASURE_TIME && !cs_point_is_exact(prediction->point)))
        return CS_OK;
    cs_peer_errors *row = row_of(table, peer->string, which);
    if (!row)
        return cs_error_no_memory(error);
    const double theirs = fabs(value->valuedouble / prediction->measured[measure] - 1);
    row->n++;
    row->ours += ours;
    row->theirs += theirs;
    row->n_closer += ours < theirs;
    return CS_OK;
}

cs_status cs_peer_table_make(const cs_predictions *predictions, cs_peer_table *table,
                             cs_error *error)
{
    for (uint32_t i = 0; i < predictions->n; i++) {
        const cJSON *peer;
        cJSON_ArrayForEach(peer, predictions->items[i].point->peers)
        {
            for (uint32_t which = 0; which < N_STATED; which++)
                CS_TRY(add(&predictions->items[i], peer, which, table, error));
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < table->n; i++)
        if (table->rows[i].n > 0) {
            table->rows[kept] = table->rows[i];
            table->rows[kept].ours /= table->rows[kept].n;
            table->rows[kept].theirs /= table->rows[kept].n;
            kept++;
        }
    table->n = kept;
    return CS_OK;
}

#include "sim/core/lower/lower-report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cs_lower_note_algorithm(cs_lower_report *report, const char *name)
{
    const size_t used = strlen(report->algorithms), length = strlen(name);
    const char *at = report->algorithms;
    while (*at && (strncmp(at, name, length) != 0 || (at[length] != ',' && at[length] != '\0')))
        at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' ');
    if (*at == '\0')
        (void)snprintf(report->algorithms + used, sizeof(report->algorithms) - used, "%s%s",
                       used > 0 ? ", " : "", name);
}

/* Counts a collective with one delay by the origin of its time. */
static void note_measured(const cs_way *way, cs_lower_report *report)
{
    if (way->measured) {
        const int64_t largest = way->measured->largest;
        report->n_measured++;
        report->n_extrapolated += largest > 0 && way->collective.bytes > largest;
        return;
    }
    uint32_t i = 0;
    for (; i < report->n_unmeasured && i < CS_UNMEASURED_MAX; i++) {
        const cs_unmeasured *at = &report->unmeasured[i];
        if (at->kind == way->collective.kind && at->network == way->network &&
            at->ranks == way->collective.n)
            break;
    }
    if (i == report->n_unmeasured && i < CS_UNMEASURED_MAX)
        report->unmeasured[report->n_unmeasured++] =
            (cs_unmeasured){way->collective.kind, way->network, way->collective.n, 0};
    if (i < CS_UNMEASURED_MAX)
        report->unmeasured[i].count++;
}

void cs_lower_count_choices(const cs_graph *graph, cs_way *const *ways, cs_lower_report *report)
{
    for (uint32_t task = 0; task < graph->n_tasks;) {
        const cs_way *way = ways[graph->tasks[task].cls];
        if (way && way->by_nccl)
            report->nccl[way->choice.algorithm][way->choice.protocol]++;
        task += way ? way->n_members : 1;
    }
}

void cs_lower_count_measured(const cs_graph *graph, cs_way *const *ways, cs_lower_report *report)
{
    for (uint32_t task = 0; task < graph->n_tasks;) {
        const cs_way *way = ways[graph->tasks[task].cls];
        if (way)
            note_measured(way, report);
        task += way ? way->n_members : 1;
    }
}

/* Number of collectives that this one stands for: ranks of all members, over the ranks of one
 * collective. */
static double collectives_of(const cs_graph *graph, const cs_group *group, const uint32_t *times)
{
    double ranks = 0;
    for (uint32_t rank = 0; rank < group->n; rank++)
        ranks += times[graph->group_devices[group->first + rank]];
    return ranks / group->n;
}

/* Bytes sent by all ranks. With NVLS the switch reads each rank's vector to sum it, and a rank
 * writes its share of the result once, to all ranks (NCCL, src/device/all_reduce.h:
 * multimem.ld_reduce and multimem.st). Counting the bytes of a ring instead would exceed the
 * capacity of the links in that time. */
static double bytes_of(const cs_way *way)
{
    const double n = way->collective.n, bytes = (double)way->collective.bytes;
    if (!way->by_nccl || way->choice.algorithm != CS_NCCL_NVLS)
        return cs_algorithm_bytes(way->algorithm, &way->collective);
    return n * bytes + bytes;
}

cs_status cs_lower_count_moved(const cs_graph *graph, cs_way *const *ways, cs_lower_report *report,
                               cs_error *error)
{
    uint32_t *times = malloc(((size_t)graph->n_devices + 1) * sizeof(*times));
    double *moved = calloc((size_t)graph->n_classes + 1, sizeof(*moved));
    if (!times || !moved) {
        free(times);
        free(moved);
        return cs_error_no_memory(error);
    }
    cs_graph_count_devices(graph, times);
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        const cs_class *cls = &graph->classes[i];
        if (cls->kind == CS_TRANSFER)
            moved[i] = (double)cls->bytes * times[cls->device];
        else if (ways && ways[i])
            moved[i] = bytes_of(ways[i]) * collectives_of(graph, &graph->groups[cls->peer], times);
    }
    for (uint32_t task = 0; task < graph->n_tasks; task++)
        report->moved[cs_graph_class(graph, task)->purpose] += moved[graph->tasks[task].cls];
    free(times);
    free(moved);
    return CS_OK;
}

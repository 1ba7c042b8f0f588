#include "sim/core/graph/graph.h"

#include "sim/base/vector.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Whether the release times of all items fit 64 bits. Collectives must have no release times. */
static bool releases_fit(const cs_graph *graph, const cs_class *cls)
{
    cs_time last;
    if (cs_kind_group_of(cls->kind) == CS_GROUP_COLLECTIVE)
        return cls->release == 0 && cls->interval == 0;
    return cls->release >= 0 && cls->interval >= 0 &&
           (cls->interval == 0 ||
            (cs_time_mul(cls->interval, (int64_t)cs_graph_items(graph), &last) &&
             cs_time_add(last, cls->release, &last)));
}

static bool effects_are_own(const cs_graph *graph, const cs_class *cls)
{
    for (uint32_t e = 0; e < cls->n_effects; e++) {
        if (graph->effects[cls->first_effect + e].device != cls->device)
            return false;
    }
    return true;
}

/* Checks that all ids in classes are in range, so that later code may index without checking;
 * reports the first wrong one. */
static cs_status check_classes(const cs_graph *graph, cs_error *error)
{
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        const cs_class *cls = &graph->classes[i];
        if (cls->kind >= CS_N_KINDS)
            return cs_error_add(error, CS_INVALID, "task class %u: unknown kind %u", i, cls->kind);
        cs_kind_group group = cs_kind_group_of(cls->kind);
        uint32_t peers = group == CS_GROUP_COLLECTIVE ? graph->n_groups : graph->n_devices;
        bool peer_fits = group == CS_GROUP_COMPUTE || cls->peer < peers;
        bool fits = cls->device < graph->n_devices && peer_fits && cls->stage < graph->n_stages &&
                    cls->origin < CS_N_KINDS && (!cls->blocking || group == CS_GROUP_TRANSFER) &&
                    cls->duration >= 0 && cls->bytes >= 0 && releases_fit(graph, cls) &&
                    cls->purpose < CS_N_PURPOSES && cls->ranks <= graph->n_groups &&
                    (cls->weights == CS_NONE || cls->weights < graph->n_slots) &&
                    (cls->policy == 0 || (cls->policy <= graph->n_policies &&
                                          cls->weights != CS_NONE && cls->kind != CS_UPDATE)) &&
                    cls->first_effect <= graph->n_effects &&
                    cls->n_effects <= graph->n_effects - cls->first_effect;
        if (!fits)
            return cs_error_add(error, CS_INVALID,
                                "task class %u (%s, stage %u, device %u): a number is out of range",
                                i, cs_kind_name(cls->kind), cls->stage, cls->device);
        if (group == CS_GROUP_COLLECTIVE && cls->weights != CS_NONE)
            return cs_error_add(
                error, CS_INVALID,
                "task class %u (%s): a collective reads no weights; what follows it may", i,
                cs_kind_name(cls->kind));
        if (group == CS_GROUP_COLLECTIVE && !effects_are_own(graph, cls))
            return cs_error_add(
                error, CS_INVALID,
                "task class %u (%s): a rank of a collective has effects on its own device only", i,
                cs_kind_name(cls->kind));
    }
    return CS_OK;
}

static cs_status check_edges(const cs_graph *graph, cs_error *error)
{
    uint64_t item_limit = (uint64_t)graph->micro_batches * graph->n_batches;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        if (graph->tasks[task].cls >= graph->n_classes || graph->tasks[task].item >= item_limit)
            return cs_error_add(error, CS_INVALID, "task %u: class or micro-batch out of range",
                                task);
    }
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        uint32_t n;
        const uint32_t *successors = cs_graph_successors(graph, task, &n);
        for (uint32_t s = 0; s < n; s++) {
            if (successors[s] >= graph->n_tasks)
                return cs_error_add(error, CS_INVALID,
                                    "an edge leads from task %u to task %u, there are %u", task,
                                    successors[s], graph->n_tasks);
        }
    }
    return CS_OK;
}

static bool part_fits(const cs_graph *graph, const cs_class *cls, const cs_series *series,
                      uint32_t number)
{
    const cs_series_part *part = &graph->parts[series->first + number];
    const cs_class *of = part->cls < graph->n_classes ? &graph->classes[part->cls] : NULL;
    const bool computes = of && cs_kind_group_of(of->kind) == CS_GROUP_COMPUTE;
    const bool inside = number > 0 && number + 1 < series->n;
    bool fits = of && of->series == 0 && of->device == cls->device && of->policy == 0 &&
                (inside || computes) && part->n_waits <= CS_PART_WAITS &&
                (computes || part->n_waits > 0);
    for (uint32_t w = 0; fits && w < part->n_waits; w++)
        fits = number > 0 && part->waits[w] < number;
    return fits;
}

/* Checks that parts of a series are not series, are on its device, and wait only for earlier
 * parts. */
static cs_status check_series(const cs_graph *graph, cs_error *error)
{
    for (uint32_t i = 0; graph->n_series > 0 && i < graph->n_classes; i++) {
        const cs_class *cls = &graph->classes[i];
        if (cls->series == 0)
            continue;
        bool fits = cls->series <= graph->n_series;
        const cs_series series = fits ? graph->series[cls->series - 1] : (cs_series){0};
        fits = series.n >= 2 && series.first <= graph->n_parts &&
               series.n <= graph->n_parts - series.first;
        for (uint32_t p = 0; fits && p < series.n; p++)
            fits = part_fits(graph, cls, &series, p);
        if (!fits)
            return cs_error_add(error, CS_INVALID, "task class %u: its parts are no series", i);
    }
    return CS_OK;
}

/* Checks that the sum of all allocations on a device fits 64 bits, so that no sum in the engine
 * overflows. `times` is the number of tasks of each class. */
static cs_status check_totals(const cs_graph *graph, const uint32_t *times, int64_t *total,
                              cs_error *error)
{
    for (uint32_t i = 0; i < graph->n_residents; i++) {
        const cs_resident *resident = &graph->residents[i];
        if (__builtin_add_overflow(total[resident->device], resident->bytes,
                                   &total[resident->device]))
            return cs_error_add(error, CS_OVERFLOW, "device %u: more than 2^63 bytes",
                                resident->device);
    }
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        const cs_class *cls = &graph->classes[i];
        for (uint32_t e = 0; e < cls->n_effects; e++) {
            const cs_effect *effect = &graph->effects[cls->first_effect + e];
            int64_t bytes, *sum = &total[effect->device];
            if (effect->bytes > 0 && (__builtin_mul_overflow(effect->bytes, times[i], &bytes) ||
                                      __builtin_add_overflow(*sum, bytes, sum)))
                return cs_error_add(error, CS_OVERFLOW, "device %u: more than 2^63 bytes",
                                    effect->device);
        }
    }
    return CS_OK;
}

/* Checks that all tasks together allocate and free equal bytes of each category on each device. */
static cs_status check_balance(const cs_graph *graph, const uint32_t *times, int64_t *balance,
                               cs_error *error)
{
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        const cs_class *cls = &graph->classes[i];
        for (uint32_t e = 0; e < cls->n_effects; e++) {
            const cs_effect *effect = &graph->effects[cls->first_effect + e];
            int64_t bytes, *sum = &balance[effect->device * CS_N_CATEGORIES + effect->category];
            if (__builtin_mul_overflow(effect->bytes, times[i], &bytes) ||
                __builtin_add_overflow(*sum, bytes, sum))
                return cs_error_add(error, CS_OVERFLOW, "device %u: frees more than 2^63 bytes",
                                    effect->device);
        }
    }
    for (uint32_t i = 0; i < graph->n_devices * CS_N_CATEGORIES; i++) {
        if (balance[i] != 0)
            return cs_error_add(
                error, CS_INVALID, "device %u: %" PRId64 " bytes of %s remain after the last task",
                i / CS_N_CATEGORIES, balance[i], cs_category_name(i % CS_N_CATEGORIES));
    }
    return CS_OK;
}

/* Counts the parts of each series as tasks of their classes. */
static void count_parts(const cs_graph *graph, uint32_t *times)
{
    for (uint32_t i = 0; graph->n_series > 0 && i < graph->n_classes; i++) {
        if (graph->classes[i].series == 0)
            continue;
        const cs_series *series = &graph->series[graph->classes[i].series - 1];
        for (uint32_t p = series->first; p < series->first + series->n; p++)
            times[graph->parts[p].cls] += times[i];
        times[i] = 0;
    }
}

static cs_status check_sums(const cs_graph *graph, cs_error *error)
{
    const size_t n_cells = (size_t)graph->n_devices * CS_N_CATEGORIES + 1;
    int64_t *sums = calloc(n_cells, sizeof(*sums));
    uint32_t *times = calloc((size_t)graph->n_classes + 1, sizeof(*times));
    cs_status status = sums && times ? CS_OK : cs_error_no_memory(error);
    for (uint32_t task = 0; task < graph->n_tasks && status == CS_OK; task++)
        times[graph->tasks[task].cls]++;
    if (status == CS_OK)
        count_parts(graph, times);
    if (status == CS_OK)
        status = check_totals(graph, times, sums, error);
    if (status == CS_OK) {
        memset(sums, 0, n_cells * sizeof(*sums));
        status = check_balance(graph, times, sums, error);
    }
    free(sums);
    free(times);
    return status;
}

static cs_status check_memory(const cs_graph *graph, cs_error *error)
{
    for (uint32_t i = 0; i < graph->n_residents; i++) {
        const cs_resident *resident = &graph->residents[i];
        if (resident->device >= graph->n_devices || resident->category >= CS_N_CATEGORIES ||
            resident->bytes < 0)
            return cs_error_add(error, CS_INVALID,
                                "resident bytes %u: device, category or size out of range", i);
    }
    for (uint32_t i = 0; i < graph->n_slots; i++) {
        const cs_slot *slot = &graph->slots[i];
        if (slot->device >= graph->n_devices || slot->stage >= graph->n_stages || slot->bytes < 0)
            return cs_error_add(error, CS_INVALID,
                                "weights slot %u: device, stage or size out of range", i);
    }
    for (uint32_t e = 0; e < graph->n_effects; e++) {
        const cs_effect *effect = &graph->effects[e];
        if (effect->device >= graph->n_devices || effect->category >= CS_N_CATEGORIES)
            return cs_error_add(error, CS_INVALID, "memory effect %u: device or category unknown",
                                e);
    }
    return check_sums(graph, error);
}

static bool policy_fits(const cs_graph *graph, const cs_policy *policy)
{
    bool reads = (policy->read == CS_READ_CURRENT && policy->slot < graph->n_slots) ||
                 (policy->read == CS_READ_LAG && policy->lag >= 1) ||
                 (policy->read == CS_READ_REGISTER && policy->reads < graph->n_registers);
    bool holds = policy->n_held > 0 || policy->drops;
    return reads && !(policy->notional && holds) &&
           (policy->writes == CS_NONE || policy->writes < graph->n_registers) &&
           policy->first_held <= graph->n_slots &&
           policy->n_held <= graph->n_slots - policy->first_held;
}

static cs_status check_versions(const cs_graph *graph, cs_error *error)
{
    for (uint32_t i = 0; i < graph->n_slots; i++) {
        const cs_slot *slot = &graph->slots[i];
        if (slot->stage >= graph->n_stages || slot->device >= graph->n_devices || slot->bytes < 0 ||
            slot->newest < 1 || slot->behind >= graph->n_slots)
            return cs_error_add(error, CS_INVALID, "weights slot %u: a number is out of range", i);
    }
    for (uint32_t i = 0; i < graph->n_policies; i++) {
        if (!policy_fits(graph, &graph->policies[i]))
            return cs_error_add(error, CS_INVALID, "version policy %u: a number is out of range",
                                i);
    }
    return CS_OK;
}

static cs_status check_groups(const cs_graph *graph, cs_error *error)
{
    for (uint32_t g = 0; g < graph->n_groups; g++) {
        cs_group group = graph->groups[g];
        bool fits = group.first <= graph->n_group_devices &&
                    group.n <= graph->n_group_devices - group.first;
        for (uint32_t rank = 0; fits && rank < group.n; rank++)
            fits = graph->group_devices[group.first + rank] < graph->n_devices;
        if (!fits)
            return cs_error_add(error, CS_INVALID, "group %u: a device is out of range", g);
    }
    return CS_OK;
}

/* ---- families ---- */

/* A group with its family, for sorting. */
typedef struct relative {
    uint32_t family, group;
} relative;

static int compare_relatives(const void *left, const void *right)
{
    const relative *a = left, *b = right;
    if (a->family != b->family)
        return a->family < b->family ? -1 : 1;
    return a->group < b->group ? -1 : a->group > b->group;
}

/* Checks that no two groups of a family share a device, because groups of a family communicate at
 * the same time. */
static cs_status check_families(const cs_graph *graph, cs_error *error)
{
    relative *all = malloc((graph->n_groups + (size_t)1) * sizeof(*all));
    /* latest group of each device */
    relative *latest = malloc((graph->n_devices + (size_t)1) * sizeof(*latest));
    cs_status status = all && latest ? CS_OK : cs_error_no_memory(error);
    uint32_t n = 0;
    for (uint32_t g = 0; status == CS_OK && g < graph->n_groups; g++)
        if (graph->groups[g].family != CS_NONE)
            all[n++] = (relative){graph->groups[g].family, g};
    cs_vector_sort(all, n, sizeof(*all), compare_relatives);
    for (uint32_t d = 0; status == CS_OK && d < graph->n_devices; d++)
        latest[d] = (relative){CS_NONE, CS_NONE};
    for (uint32_t i = 0; i < n && status == CS_OK; i++) {
        const cs_group *of = &graph->groups[all[i].group];
        for (uint32_t rank = 0; rank < of->n && status == CS_OK; rank++) {
            relative *before = &latest[graph->group_devices[of->first + rank]];
            if (before->family == all[i].family)
                status = cs_error_add(
                    error, CS_INVALID, "groups %u and %u are of one family and share device %u",
                    before->group, all[i].group, graph->group_devices[of->first + rank]);
            *before = all[i];
        }
    }
    free(latest);
    free(all);
    return status;
}

/* Whether `task` is the next member of a collective, after `before` other members. `first` is the
 * first member; the classes of all members must have been added together. */
static bool is_member(const cs_graph *graph, uint32_t first, uint32_t task, uint32_t before,
                      uint32_t device)
{
    if (task >= graph->n_tasks)
        return false;
    const cs_class *cls = cs_graph_class(graph, first), *member = cs_graph_class(graph, task);
    return graph->tasks[task].cls == graph->tasks[first].cls + before &&
           member->kind == cls->kind && member->peer == cls->peer && member->bytes == cls->bytes &&
           member->bytes_back == cls->bytes_back &&
           graph->tasks[task].item == graph->tasks[first].item && member->device == device;
}

/* Checks the members of the collective whose first member is `first`; sets *n to their number. */
static cs_status check_members(const cs_graph *graph, uint32_t first, uint32_t *n, cs_error *error)
{
    const cs_group group = graph->groups[cs_graph_class(graph, first)->peer];
    *n = 0;
    if (group.n < 2)
        return cs_error_add(error, CS_INVALID,
                            "task %u: a collective needs 2 members at least (got %u)", first,
                            group.n);
    for (uint32_t rank = 0; rank < group.n; rank++) {
        const uint32_t device = graph->group_devices[group.first + rank];
        if (!cs_graph_has(graph, device))
            continue;
        if (!is_member(graph, first, first + *n, *n, device))
            return cs_error_add(
                error, CS_INVALID,
                "task %u: the members of a collective must be alike and follow each other in "
                "order of rank",
                first + *n);
        ++*n;
    }
    return CS_OK;
}

static cs_status check_collectives(const cs_graph *graph, cs_error *error)
{
    bool any = false;
    for (uint32_t i = 0; i < graph->n_classes; i++)
        any |= cs_kind_group_of(graph->classes[i].kind) == CS_GROUP_COLLECTIVE;
    for (uint32_t task = 0, n; any && task < graph->n_tasks; task += n) {
        n = 1;
        if (cs_kind_group_of(cs_graph_class(graph, task)->kind) == CS_GROUP_COLLECTIVE)
            CS_TRY(check_members(graph, task, &n, error));
    }
    return CS_OK;
}

/* ---- folded graphs ---- */

static cs_status check_stand_ins(const cs_graph *graph, cs_error *error)
{
    for (uint32_t d = 0; d < graph->n_devices; d++) {
        const uint32_t by = graph->stands_for[d];
        if (by >= graph->n_devices || graph->stands_for[by] != by)
            return cs_error_add(error, CS_INVALID,
                                "device %u: device %u is simulated in its place, which is not "
                                "simulated itself",
                                d, by);
    }
    return CS_OK;
}

/* Checks that both ends of a message represent the same number of devices, because otherwise it is
 * unknown which messages it represents. */
static cs_status check_ends(const cs_graph *graph, const uint32_t *times, cs_error *error)
{
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        const cs_class *cls = &graph->classes[i];
        if (cls->kind == CS_TRANSFER && times[cls->device] != times[cls->peer])
            return cs_error_add(
                error, CS_INVALID,
                "task class %u: device %u, which stands for %u, sends to device %u, "
                "which stands for %u",
                i, cls->device, times[cls->device], cls->peer, times[cls->peer]);
    }
    return CS_OK;
}

static cs_status not_there(const char *what, uint32_t id, const cs_graph *graph, uint32_t device,
                           cs_error *error)
{
    return cs_error_add(error, CS_INVALID, "%s %u is on device %u, for which device %u stands",
                        what, id, device, graph->stands_for[device]);
}

/* Checks that classes, effects, resident bytes and slots are on simulated devices. */
static cs_status check_places(const cs_graph *graph, cs_error *error)
{
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        const cs_class *cls = &graph->classes[i];
        if (!cs_graph_has(graph, cls->device))
            return not_there("task class", i, graph, cls->device, error);
        if (cls->kind == CS_TRANSFER && !cs_graph_has(graph, cls->peer))
            return not_there("the receiver of task class", i, graph, cls->peer, error);
    }
    for (uint32_t i = 0; i < graph->n_effects; i++)
        if (!cs_graph_has(graph, graph->effects[i].device))
            return not_there("memory effect", i, graph, graph->effects[i].device, error);
    for (uint32_t i = 0; i < graph->n_residents; i++)
        if (!cs_graph_has(graph, graph->residents[i].device))
            return not_there("resident bytes", i, graph, graph->residents[i].device, error);
    for (uint32_t i = 0; i < graph->n_slots; i++)
        if (!cs_graph_has(graph, graph->slots[i].device))
            return not_there("weights slot", i, graph, graph->slots[i].device, error);
    return CS_OK;
}

static cs_status check_fold(const cs_graph *graph, cs_error *error)
{
    if (!graph->stands_for)
        return CS_OK;
    CS_TRY(check_stand_ins(graph, error));
    CS_TRY(check_places(graph, error));
    uint32_t *times = malloc(((size_t)graph->n_devices + 1) * sizeof(*times));
    if (!times)
        return cs_error_no_memory(error);
    cs_graph_count_devices(graph, times);
    const cs_status status = check_ends(graph, times, error);
    free(times);
    return status;
}

static bool follows_program(const cs_graph *graph, uint32_t task)
{
    const cs_class *cls = cs_graph_class(graph, task);
    return graph->tasks[task].next != CS_NONE && graph->queues[cls->device] == CS_QUEUE_PROGRAM;
}

/* Counts the predecessors of every task, through edges and program order. */
static void count_predecessors(const cs_graph *graph, uint32_t *waiting)
{
    for (uint32_t task = 0; task < graph->n_tasks; task++)
        waiting[task] = graph->n_predecessors[task];
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        if (follows_program(graph, task))
            waiting[graph->tasks[task].next]++;
    }
}

/* Orders the tasks by Kahn's algorithm, over edges and program order. */
uint32_t cs_graph_order(const cs_graph *graph, uint32_t *rank, uint32_t *waiting, uint32_t *stack)
{
    count_predecessors(graph, waiting);
    uint32_t depth = 0, ranked = 0;
    for (uint32_t task = graph->n_tasks; task-- > 0;) {
        rank[task] = CS_NONE;
        if (waiting[task] == 0)
            stack[depth++] = task;
    }
    while (depth > 0) {
        uint32_t task = stack[--depth];
        rank[task] = ranked++;
        uint32_t n;
        const uint32_t *successors = cs_graph_successors(graph, task, &n);
        for (uint32_t s = 0; s < n; s++) {
            if (--waiting[successors[s]] == 0)
                stack[depth++] = successors[s];
        }
        uint32_t next = graph->tasks[task].next;
        if (follows_program(graph, task) && --waiting[next] == 0)
            stack[depth++] = next;
    }
    return ranked;
}

/* Finds, for every task without a rank, a predecessor without a rank. */
static void find_blockers(const cs_graph *graph, const uint32_t *rank, uint32_t *blocker)
{
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        if (rank[task] != CS_NONE)
            continue;
        uint32_t n;
        const uint32_t *successors = cs_graph_successors(graph, task, &n);
        for (uint32_t s = 0; s < n; s++)
            blocker[successors[s]] = task;
        if (follows_program(graph, task))
            blocker[graph->tasks[task].next] = task;
    }
}

enum { CYCLE_SHOWN = 12, DESCRIPTION_BYTES = 96 };

/* Reports a circle: walks back from blocker to blocker until a task repeats; from there on the walk
 * is a circle. */
static cs_status report_circle(const cs_graph *graph, uint32_t *rank, const uint32_t *blocker,
                               cs_error *error)
{
    uint32_t task = 0;
    while (rank[task] != CS_NONE)
        task++;
    for (; rank[task] == CS_NONE; task = blocker[task])
        rank[task] = 0;
    uint32_t shown[CYCLE_SHOWN], n = 0, length = 0, start = task;
    do { /* walks against the direction of the edges */
        if (n < CYCLE_SHOWN)
            shown[n++] = task;
        length++;
        task = blocker[task];
    } while (task != start);
    char text[(CYCLE_SHOWN + 1) * (DESCRIPTION_BYTES + 4)], one[DESCRIPTION_BYTES];
    size_t used = 0;
    for (uint32_t i = n; i-- > 0;)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s -> ",
                                 cs_graph_describe(graph, shown[i], one, sizeof(one)));
    return cs_error_add(error, CS_INVALID,
                        "deadlock: %u tasks wait for each other in a circle: %s%s%s", length, text,
                        length > n ? "... -> " : "",
                        cs_graph_describe(graph, shown[n - 1], one, sizeof(one)));
}

bool cs_graph_ids_rise(const cs_graph *graph)
{
    bool rise = true;
    for (uint32_t task = 0; task < graph->n_tasks && rise; task++) {
        uint32_t n;
        const uint32_t *successors = cs_graph_successors(graph, task, &n);
        for (uint32_t s = 0; s < n; s++)
            rise &= successors[s] > task;
        rise &= graph->tasks[task].next > task; /* also true if `next` is CS_NONE, the largest id */
    }
    return rise;
}

static cs_status check_order(const cs_graph *graph, cs_error *error)
{
    if (cs_graph_ids_rise(graph)) /* a circle is impossible if ids rise along all edges */
        return CS_OK;
    size_t n = (size_t)graph->n_tasks + 1;
    uint32_t *rank = malloc(3 * n * sizeof(*rank));
    if (!rank)
        return cs_error_no_memory(error);
    uint32_t *waiting = rank + n, *stack = waiting + n;
    cs_status status = CS_OK;
    if (cs_graph_order(graph, rank, waiting, stack) < graph->n_tasks) {
        find_blockers(graph, rank, stack);
        status = report_circle(graph, rank, stack, error);
    }
    free(rank);
    return status;
}

cs_status cs_graph_check(const cs_graph *graph, cs_error *error)
{
    cs_status (*const checks[])(const cs_graph *, cs_error *) = {
        check_classes, check_series,   check_edges, check_memory,      check_versions,
        check_groups,  check_families, check_fold,  check_collectives, check_order};
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        CS_TRY(checks[i](graph, error));
    }
    return CS_OK;
}

#include "sim/run/steady-run.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS = 3, FIRST_PROBE = 16, LONGEST_PROBE = 1024 };

/* A run, and what was seen of its states. */
typedef struct probe {
    cs_simulation simulation;
    cs_watch watch;
} probe;

static void probe_finish(probe *p)
{
    cs_simulation_finish(&p->simulation);
    cs_watch_finish(&p->watch);
}

static cs_status simulate(const cs_scenario *scenario, const cs_simulation_options *options,
                          uint32_t iterations, probe *made, cs_error *error)
{
    cs_scenario one = *scenario; /* what it owns stays the original's */
    cs_simulation_options how = *options;
    *made = (probe){0};
    one.job.iterations = iterations;
    how.watch = &made->watch;
    return cs_simulate(&one, &how, &made->simulation, error);
}

/* ---- graphs that are alike ---- */

/* How ids and items of one graph differ from those of another. */
typedef struct shift {
    uint32_t tasks, items;
} shift;

static bool is_shifted(uint32_t a, uint32_t b, uint32_t by)
{
    return a == CS_NONE || b == CS_NONE ? a == b : (uint64_t)a + by == b;
}

static bool same_task(const cs_graph *a, uint32_t task, const cs_graph *b, shift by)
{
    const uint32_t other = task + by.tasks;
    const cs_task *left = &a->tasks[task], *right = &b->tasks[other];
    uint32_t n, m;
    const uint32_t *of_left = cs_graph_successors(a, task, &n);
    const uint32_t *of_right = cs_graph_successors(b, other, &m);
    bool same = left->cls == right->cls && is_shifted(left->item, right->item, by.items) &&
                is_shifted(left->next, right->next, by.tasks) && n == m &&
                a->n_predecessors[task] == b->n_predecessors[other];
    for (uint32_t i = 0; i < n && same; i++)
        same = is_shifted(of_left[i], of_right[i], by.tasks);
    return same;
}

static bool same_tasks(const cs_graph *a, uint32_t from, uint32_t to, const cs_graph *b, shift by)
{
    bool same = to <= a->n_tasks && (uint64_t)to + by.tasks <= b->n_tasks;
    for (uint32_t task = from; task < to && same; task++)
        same = same_task(a, task, b, by);
    return same;
}

static bool same_class(const cs_class *a, const cs_class *b)
{
    return a->kind == b->kind && a->origin == b->origin && a->blocking == b->blocking &&
           a->updates == b->updates && a->purpose == b->purpose && a->alone == b->alone &&
           a->priority == b->priority && a->device == b->device && a->peer == b->peer &&
           a->weights == b->weights && a->policy == b->policy && a->ranks == b->ranks &&
           a->series == 0 && b->series == 0 && a->first_effect == b->first_effect &&
           a->n_effects == b->n_effects && a->duration == b->duration && a->release == b->release &&
           a->interval == b->interval && a->bytes == b->bytes;
}

static bool same_effects(const cs_graph *a, const cs_graph *b)
{
    bool same = a->n_effects == b->n_effects && a->n_classes == b->n_classes;
    for (uint32_t i = 0; same && i < a->n_effects; i++) {
        const cs_effect *x = &a->effects[i], *y = &b->effects[i];
        same = x->bytes == y->bytes && x->device == y->device && x->category == y->category &&
               x->at_end == y->at_end;
    }
    for (uint32_t i = 0; same && i < a->n_classes; i++)
        same = same_class(&a->classes[i], &b->classes[i]);
    return same;
}

static bool same_slots(const cs_graph *a, const cs_graph *b)
{
    bool same = a->n_slots == b->n_slots && a->n_policies == b->n_policies &&
                a->n_registers == b->n_registers && a->n_residents == b->n_residents;
    for (uint32_t i = 0; same && i < a->n_slots; i++) {
        const cs_slot *x = &a->slots[i], *y = &b->slots[i];
        same = x->device == y->device && x->bytes == y->bytes && x->newest == y->newest &&
               x->behind == y->behind;
    }
    for (uint32_t i = 0; same && i < a->n_policies; i++) {
        const cs_policy *x = &a->policies[i], *y = &b->policies[i];
        same = x->read == y->read && x->strict == y->strict && x->drops == y->drops &&
               x->by_batch == y->by_batch && x->notional == y->notional && x->slot == y->slot &&
               x->lag == y->lag && x->reads == y->reads && x->writes == y->writes &&
               x->first_held == y->first_held && x->n_held == y->n_held;
    }
    for (uint32_t i = 0; same && i < a->n_residents; i++)
        same = a->residents[i].bytes == b->residents[i].bytes &&
               a->residents[i].device == b->residents[i].device &&
               a->residents[i].category == b->residents[i].category;
    return same;
}

/* ---- periods ---- */

/* Where a run repeats: from mini-batch `first` on, with a period of `n` of them. */
typedef struct period {
    uint32_t first, n;
} period;

/* Whether what begins with mini-batch `first` is repeated twice, and nothing but that is known
 * of. */
static bool repeats(const probe *of, period p)
{
    const cs_watch *watch = &of->watch;
    if (p.first + 2 * p.n >= watch->n || !cs_watch_equal(watch, p.first, p.first + p.n) ||
        !cs_watch_equal(watch, p.first + p.n, p.first + 2 * p.n))
        return false;
    const cs_graph *graph = &of->simulation.graph;
    const cs_watched *a = &watch->batches[p.first], *b = a + p.n, *c = b + p.n;
    const shift by = {b->task - a->task, p.n * graph->micro_batches};
    return b->task > a->task && c->task - b->task == by.tasks && b->time > a->time &&
           c->time - b->time == b->time - a->time && same_tasks(graph, a->from, b->to, graph, by);
}

/* The shortest period of which there are three in the first half of the run. */
static bool find_period(const probe *of, period *found)
{
    const uint32_t n = of->watch.n;
    for (uint32_t p = 1; p <= n / 8; p++)
        for (uint32_t b = 0; b + 2 * p <= n / 2; b++)
            if (repeats(of, (period){b, p})) {
                *found = (period){b, p};
                return true;
            }
    return false;
}

/* Whether the longer run is the shorter one with whole periods put in. */
static bool is_continued(const probe *run, const probe *longer, period p, uint32_t batches)
{
    const cs_graph *a = &run->simulation.graph, *b = &longer->simulation.graph;
    const cs_watched *first = &run->watch.batches[p.first], *last = first + 2 * p.n;
    const uint32_t per_period = first[p.n].task - first->task;
    const shift by = {per_period * (batches / p.n), batches * a->micro_batches};
    return (uint64_t)a->n_tasks + by.tasks == b->n_tasks && same_effects(a, b) &&
           same_slots(a, b) && same_tasks(a, 0, last->to, b, (shift){0, 0}) &&
           same_tasks(a, first->task, a->n_tasks, b, by);
}

/* The last mini-batch that begins as `first` and all a period later one after the other do. */
static uint32_t last_alike(const cs_watch *watch, period p)
{
    uint32_t last = p.first;
    while (last + p.n < watch->n && cs_watch_equal(watch, last, last + p.n))
        last += p.n;
    return last;
}

/* The critical path is walked back from its end, from each task to one before it, which the spans
 * around it decide. Where it comes by a task and by the same one `tasks` ids before, both in
 * periods that are alike, it goes on in that way until the first of these, and is as much longer in
 * each longer run. False also where memory runs out. */
static bool path_repeats(const probe *run, period p, uint32_t tasks)
{
    const cs_analysis *analysis = &run->simulation.analysis;
    const uint32_t first = run->watch.batches[p.first + p.n].task;
    const uint32_t end = run->watch.batches[last_alike(&run->watch, p)].task;
    bool *is_on = calloc((size_t)run->simulation.graph.n_tasks + 1, sizeof(*is_on));
    bool repeated = false;
    for (uint32_t i = 0; is_on && i < analysis->n_steps; i++)
        if (analysis->steps[i].task != CS_NONE)
            is_on[analysis->steps[i].task] = true;
    for (uint32_t i = 0; is_on && i < analysis->n_steps && !repeated; i++) {
        const uint32_t task = analysis->steps[i].task;
        repeated = task < end && task >= tasks && task - tasks >= first && is_on[task - tasks];
    }
    free(is_on);
    return repeated;
}

/* Something that occupied a device for no time. */
typedef struct blink {
    cs_time time;
    uint32_t device;
} blink;

static int compare_blinks(const void *left, const void *right)
{
    const blink *a = left, *b = right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->time < b->time ? -1 : a->time > b->time;
}

static uint32_t list_blinks(const cs_simulation *of, blink *out)
{
    uint32_t n = 0;
    for (uint32_t task = 0; task < of->graph.n_tasks; task++) {
        const cs_class *cls = cs_graph_class(&of->graph, task);
        const cs_span span = of->trace.spans[task];
        if (span.start != span.end || (cls->kind == CS_TRANSFER && !cls->blocking))
            continue;
        out[n++] = (blink){span.start, cls->device};
        if (cls->blocking)
            out[n++] = (blink){span.start, cls->peer};
    }
    return n;
}

/* Whether several tasks occupied a device at one instant for no time, and their ids do not say
 * which of them was first: what the analysis takes then depends on the whole graph, and may differ
 * from period to period. True also where memory runs out. */
static bool has_ties(const cs_simulation *of)
{
    if (cs_graph_ids_rise(&of->graph))
        return false;
    blink *all = malloc((2 * (size_t)of->graph.n_tasks + 1) * sizeof(*all));
    const uint32_t n = all ? list_blinks(of, all) : 0;
    bool tie = !all;
    if (n > 0)
        qsort(all, n, sizeof(*all), compare_blinks);
    for (uint32_t i = 1; i < n && !tie; i++)
        tie = compare_blinks(&all[i - 1], &all[i]) == 0;
    free(all);
    return tie;
}

/* ---- numbers that grow ---- */

typedef struct numbers {
    cs_device_time *all; /* with room for what any of them grows to */
    uint64_t n, capacity;
    bool writes; /* the simulation's numbers become these */
    bool failed; /* memory ran out; or writing: a number does not fit */
} numbers;

static void wide(numbers *of, cs_device_time *value)
{
    if (of->writes) {
        *value = of->all[of->n++];
        return;
    }
    if (of->n == of->capacity) {
        const uint64_t capacity = 2 * of->capacity + 256;
        cs_device_time *grown = realloc(of->all, capacity * sizeof(*grown));
        of->failed |= grown == NULL;
        if (!grown)
            return;
        of->all = grown;
        of->capacity = capacity;
    }
    of->all[of->n++] = *value;
}

static void number(numbers *of, int64_t *value)
{
    cs_device_time one = *value;
    wide(of, &one);
    of->failed |= one < INT64_MIN || one > INT64_MAX;
    *value = (int64_t)one;
}

static void count(numbers *of, uint32_t *value)
{
    int64_t one = *value;
    number(of, &one);
    of->failed |= one < 0 || one > UINT32_MAX;
    *value = (uint32_t)one;
}

static void total(numbers *of, uint64_t *value)
{
    int64_t one = (int64_t)*value;
    number(of, &one);
    of->failed |= one < 0;
    *value = (uint64_t)one;
}

/* A whole number that is kept as a double. */
static void whole(numbers *of, double *value)
{
    static const int64_t exact = INT64_C(1) << 53;
    int64_t one = (int64_t)*value;
    of->failed |= *value != (double)one;
    number(of, &one);
    of->failed |= one > exact || one < -exact;
    *value = (double)one;
}

static void truth(numbers *of, bool *value)
{
    int64_t one = *value;
    number(of, &one);
    of->failed |= one != 0 && one != 1;
    *value = one == 1;
}

static void times_used(numbers *of, cs_time_use *use)
{
    for (uint32_t kind = 0; kind < CS_N_KINDS; kind++)
        number(of, &use->compute[kind]);
    for (uint32_t purpose = 0; purpose < CS_N_PURPOSES; purpose++)
        number(of, &use->exposed[purpose]);
    cs_time *const rest[] = {&use->communication, &use->dependency, &use->flush, &use->collectives,
                             &use->active,        &use->hidden,     &use->slowed};
    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
        number(of, rest[i]);
}

static void steady(numbers *of, cs_steady *value)
{
    number(of, &value->value);
    truth(of, &value->steady);
}

static void walk_trace(numbers *of, cs_trace *trace)
{
    number(of, &trace->makespan);
    for (uint32_t i = 0; i < trace->n_links; i++)
        number(of, &trace->links[i].bytes);
    for (uint32_t i = 0; i < trace->n_slots; i++) {
        count(of, &trace->slots[i].made);
        count(of, &trace->slots[i].peak_live);
    }
    for (uint32_t d = 0; d < trace->n_devices; d++) {
        cs_device_record *record = &trace->devices[d];
        number(of, &record->peak);
        number(of, &record->peak_time);
        truth(of, &record->out_of_memory);
        number(of, &record->oom_time);
        count(of, &record->oom_task);
        for (uint32_t c = 0; c < CS_N_CATEGORIES; c++) {
            number(of, &record->at_peak[c]);
            number(of, &record->category_peak[c]);
            number(of, &record->at_oom[c]);
        }
    }
}

static void walk_staleness(numbers *of, cs_staleness *staleness)
{
    steady(of, &staleness->version_difference);
    count(of, &staleness->n_by_backward);
    count(of, &staleness->n_by_both);
    for (uint32_t i = 0; staleness->slots && i < staleness->n_slots; i++) {
        cs_slot_staleness *slot = &staleness->slots[i];
        count(of, &slot->versions_made);
        count(of, &slot->peak_versions);
        steady(of, &slot->gradient_delay);
        steady(of, &slot->forward_delay);
        number(of, &slot->max_gradient_delay);
        number(of, &slot->sum_gradient_delay);
        total(of, &slot->n_backwards);
    }
}

static void walk_analysis(numbers *of, cs_analysis *analysis)
{
    count(of, &analysis->n_steps);
    number(of, &analysis->makespan);
    number(of, &analysis->middle);
    for (uint32_t d = 0; d < analysis->n_devices; d++)
        times_used(of, &analysis->devices[d]);
    times_used(of, &analysis->path);
    count(of, &analysis->steady.in_flight);
    count(of, &analysis->steady.n);
    wide(of, &analysis->steady.idle);
    wide(of, &analysis->steady.all);
    cs_recurrence *recurrence = &analysis->recurrence;
    count(of, &recurrence->n);
    number(of, &recurrence->period);
    count(of, &recurrence->first);
    count(of, &recurrence->half);
    count(of, &recurrence->end);
    walk_staleness(of, &analysis->staleness);
}

/* Every number of which figures are made. */
static void walk(numbers *of, cs_simulation *simulation)
{
    cs_lower_report *lowering = &simulation->lowering;
    walk_trace(of, &simulation->trace);
    walk_analysis(of, &simulation->analysis);
    total(of, &lowering->n_collectives);
    total(of, &lowering->n_flows);
    total(of, &lowering->n_measured);
    total(of, &lowering->n_extrapolated);
    count(of, &lowering->n_unmeasured);
    for (uint32_t p = 0; p < CS_N_PURPOSES; p++)
        whole(of, &lowering->moved[p]);
    for (uint32_t i = 0; i < lowering->n_unmeasured && i < CS_UNMEASURED_MAX; i++)
        total(of, &lowering->unmeasured[i].count);
    total(of, &simulation->skipped.n_tasks);
}

/* Takes the numbers on by `more` steps; false where they do not grow equally. */
static bool take_on(numbers runs[RUNS], uint32_t more)
{
    bool equal = runs[0].n == runs[1].n && runs[1].n == runs[2].n;
    for (uint64_t i = 0; i < runs[2].n && equal; i++) {
        const cs_device_time grown = runs[2].all[i] - runs[1].all[i];
        equal = grown == runs[1].all[i] - runs[0].all[i];
        runs[2].all[i] += grown * more;
    }
    return equal;
}

/* Makes the last of the runs the whole one. */
static bool extend(probe runs[RUNS], uint32_t more)
{
    numbers of[RUNS] = {{0}};
    bool fits = true;
    for (uint32_t i = 0; i < RUNS; i++) {
        runs[i].simulation.skipped.n_tasks = runs[i].simulation.graph.n_tasks;
        walk(&of[i], &runs[i].simulation);
        fits &= !of[i].failed;
    }
    fits = fits && take_on(of, more);
    if (fits) {
        numbers last = {.all = of[RUNS - 1].all, .writes = true};
        walk(&last, &runs[RUNS - 1].simulation);
        fits = !last.failed;
    }
    for (uint32_t i = 0; i < RUNS; i++)
        free(of[i].all);
    return fits;
}

/* ---- the whole ---- */

static const char *why_not(const cs_scenario *scenario, const cs_simulation_options *options)
{
    if (cs_noise_is_on(&scenario->noise))
        return "the scenario has noise";
    if (scenario->slowdown)
        return "communication slows computations down";
    if (scenario->has_allocator)
        return "the run is played on an allocator";
    if (options->stop_on_oom || options->record_rates)
        return "rates are recorded, or the run may end early";
    if (scenario->job.iterations < 4 * FIRST_PROBE)
        return "it has too few mini-batches";
    return NULL;
}

/* Whether collectives become one delay each in the whole run, and not in this part of it, because
 * there are so many messages then. */
static bool has_more_flows(const cs_scenario *scenario, const cs_lower_report *part,
                           uint32_t part_iterations)
{
    const double whole = (double)part->n_flows / part_iterations * scenario->job.iterations;
    return scenario->collectives.fidelity == CS_FIDELITY_AUTO &&
           part->fidelity == CS_FIDELITY_FLOW && whole > scenario->collectives.most_flows;
}

/* What was foreseen of that came true. */
static bool has_its_fidelity(const cs_scenario *scenario, const cs_lower_report *whole)
{
    return scenario->collectives.fidelity != CS_FIDELITY_AUTO ||
           whole->fidelity != CS_FIDELITY_FLOW ||
           whole->n_flows <= scenario->collectives.most_flows;
}

/* Runs that are longer and longer, until one repeats. Sets the fidelity that the whole run has. */
static cs_status search(cs_scenario *scenario, const cs_simulation_options *options, period *found,
                        cs_error *error)
{
    const uint32_t most = scenario->job.iterations / 2;
    *found = (period){0};
    for (uint32_t n = FIRST_PROBE; n <= most && n <= LONGEST_PROBE && found->n == 0; n *= 2) {
        probe run;
        cs_status status = simulate(scenario, options, n, &run, error);
        if (status == CS_OK && has_more_flows(scenario, &run.simulation.lowering, n)) {
            probe_finish(&run);
            scenario->collectives.fidelity = CS_FIDELITY_ANALYTIC;
            status = simulate(scenario, options, n, &run, error);
        }
        if (status == CS_OK)
            (void)find_period(&run, found);
        probe_finish(&run);
        CS_TRY(status);
    }
    return CS_OK;
}

/* The middle half of the shortest run is periodic, and has two periods at least; and whole steps
 * lead from it to the run that is asked for. */
static uint32_t shortest(period p, uint32_t iterations)
{
    const uint32_t step = 4 * p.n, least = 4 * (p.first + 2 * p.n) + step;
    return least + (iterations - least % step) % step;
}

static bool prove(const probe runs[RUNS], period p, uint32_t step)
{
    const cs_watched *first = &runs[0].watch.batches[p.first];
    bool proven = repeats(&runs[0], p) && !has_ties(&runs[0].simulation) &&
                  path_repeats(&runs[0], p, (first[p.n].task - first->task) * (step / p.n));
    for (uint32_t i = 0; i < RUNS && proven; i++)
        proven = repeats(&runs[i], p) && (i == 0 || is_continued(&runs[i - 1], &runs[i], p, step));
    return proven;
}

static cs_status skip(const cs_scenario *scenario, const cs_simulation_options *options, period p,
                      probe runs[RUNS], bool *done, cs_error *error)
{
    const uint32_t iterations = scenario->job.iterations, step = 4 * p.n;
    const uint32_t n = shortest(p, iterations), last = n + 2 * step;
    for (uint32_t i = 0; i < RUNS; i++)
        CS_TRY(simulate(scenario, options, n + i * step, &runs[i], error));
    const cs_watched *first = &runs[RUNS - 1].watch.batches[p.first];
    cs_simulation *made = &runs[RUNS - 1].simulation;
    *done = prove(runs, p, step) && extend(runs, (iterations - last) / step) &&
            has_its_fidelity(scenario, &made->lowering);
    if (!*done)
        return CS_OK;
    made->skipped.n = iterations - last;
    made->skipped.first = p.first;
    made->skipped.period = p.n;
    made->skipped.time = first[p.n].time - first->time;
    made->hash = 0;
    cs_analysis_set_rates(&made->analysis, iterations, scenario->batch_size);
    cs_steady_set_bubble(&made->analysis.steady);
    return cs_simulation_state_forms(scenario, made, error);
}

static cs_status simulate_whole(const cs_scenario *scenario, const cs_simulation_options *options,
                                const char *reason, cs_simulation *simulation, cs_error *error)
{
    CS_TRY(cs_simulate(scenario, options, simulation, error));
    simulation->skipped.reason = reason;
    return CS_OK;
}

cs_status cs_simulate_steadily(const cs_scenario *scenario, const cs_simulation_options *options,
                               cs_simulation *simulation, cs_error *error)
{
    const char *reason = why_not(scenario, options);
    cs_scenario one = *scenario; /* what it owns stays the original's */
    probe runs[RUNS];
    period p = {0};
    bool done = false;
    memset(runs, 0, sizeof(runs));
    if (reason)
        return simulate_whole(scenario, options, reason, simulation, error);
    cs_status status = search(&one, options, &p, error);
    const uint32_t needed = p.n > 0 ? shortest(p, scenario->job.iterations) + 8 * p.n : 0;
    const bool enough = needed > 0 && needed < scenario->job.iterations;
    if (status == CS_OK && enough)
        status = skip(&one, options, p, runs, &done, error);
    if (status == CS_OK && done) {
        *simulation = runs[RUNS - 1].simulation;
        runs[RUNS - 1].simulation = (cs_simulation){0};
    }
    for (uint32_t i = 0; i < RUNS; i++)
        probe_finish(&runs[i]);
    if (status != CS_OK || done)
        return status;
    return simulate_whole(scenario, options,
                          p.n == 0  ? "it does not become periodic, or too late"
                          : !enough ? "it has too few mini-batches"
                                    : "its figures do not grow equally with its periods",
                          simulation, error);
}

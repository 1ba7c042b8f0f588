#include "tests/reference-engine.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum task_state {
    WAITING,    /* for predecessors */
    READY,      /* for its device, or for step 2 */
    RUNNING,    /* ends at `end`: compute, or a transfer whose end cannot change any more */
    TRAVELLING, /* a transfer whose latency is over at `end`, then its bytes compete */
    ARRIVED,    /* its latency is over; step 4 lets it onto its links */
    COMPETING,  /* on its links; ends at `end` if nothing changes, or waits (NEVER) */
    ENDED,
} task_state;

#define NEVER (-1)

typedef struct task_record {
    task_state state;
    uint32_t waits_for; /* predecessors that have not ended */
    uint32_t n_links;   /* links of its route with finite bandwidth */
    uint32_t *links;
    uint32_t *messages; /* number of messages that it represents, on each of these links */
    cs_time latency;
    double least;     /* smallest bandwidth of the route, bytes/s */
    cs_time end;      /* see the states */
    uint32_t arrival; /* who came to the links earlier has the lower number; CS_NONE before */
    double left;      /* bytes at time `changed`, of a transfer whose rate varies */
    double rate;      /* bytes/s since then */
    cs_time changed;
    cs_time alone; /* duration without slowdown */
    double slower; /* factor by which it is slowed since `changed`, when `undone` ps were left */
    double undone;
    cs_time started; /* a computation: when its host has started all of it */
} task_record;

typedef struct reference {
    const cs_graph *graph;
    const cs_platform *platform;
    const cs_engine_options *options;
    cs_error *error;
    cs_time now;
    bool stop; /* when this instant is over */
    task_record *tasks;
    uint32_t *links;         /* the tasks' routes */
    uint32_t *messages;      /* and for how many messages they stand on each link */
    uint32_t *occupied;      /* per device: the task that occupies it, or CS_NONE */
    cs_time *hosts;          /* per device: when its host is free */
    uint32_t *versions;      /* per slot: the current one */
    uint32_t *before;        /* per slot: the version that was current at the beginning of this
                              * instant */
    uint32_t *holds;         /* per slot and version */
    uint32_t *alive;         /* per slot: how many versions were alive when last counted */
    uint32_t *registers;     /* per register and item */
    uint32_t *task_versions; /* per task: read or made */
    int64_t *live;           /* per device and category, bytes */
    int64_t *sampled;        /* the same when the last instant was over */
    uint32_t n_arrivals;
    double *unshared; /* per link: what max_min has not given away yet */
    cs_trace trace;
} reference;

static const cs_class *class_of(const reference *run, uint32_t task)
{
    return cs_graph_class(run->graph, task);
}

static bool is_transfer(const reference *run, uint32_t task)
{
    return cs_kind_group_of(class_of(run, task)->kind) == CS_GROUP_TRANSFER;
}

/* ---- Memory ---- */

static void account(reference *run, uint32_t device, uint32_t task)
{
    cs_device_record *record = &run->trace.devices[device];
    const int64_t *live = &run->live[device * CS_N_CATEGORIES];
    int64_t total = 0;
    for (int i = 0; i < CS_N_CATEGORIES; i++) {
        total += live[i];
        if (live[i] > record->category_peak[i])
            record->category_peak[i] = live[i];
    }
    if (total > record->peak) {
        record->peak = total;
        record->peak_time = run->now;
        memcpy(record->at_peak, live, sizeof(record->at_peak));
    }
    if (total > record->capacity && !record->out_of_memory) {
        record->out_of_memory = true;
        record->oom_time = run->now;
        record->oom_task = task;
        memcpy(record->at_oom, live, sizeof(record->at_oom));
        run->stop = run->options->stop_on_oom;
    }
}

static void account_all(reference *run, uint32_t task)
{
    for (uint32_t device = 0; device < run->graph->n_devices; device++)
        account(run, device, task);
}

static void apply_residents(reference *run)
{
    for (uint32_t i = 0; i < run->graph->n_residents; i++) {
        const cs_resident *resident = &run->graph->residents[i];
        run->live[resident->device * CS_N_CATEGORIES + resident->category] += resident->bytes;
    }
    account_all(run, CS_NONE);
}

static void apply_effects(reference *run, uint32_t task, bool at_end)
{
    const cs_class *cls = class_of(run, task);
    for (uint32_t i = 0; i < cls->n_effects; i++) {
        const cs_effect *effect = &run->graph->effects[cls->first_effect + i];
        if (effect->at_end == at_end)
            run->live[effect->device * CS_N_CATEGORIES + effect->category] += effect->bytes;
    }
    account_all(run, task);
}

/* Records the changes between the ends of two instants. */
static cs_status take_samples(reference *run)
{
    if (!run->options->record_memory)
        return CS_OK;
    cs_trace *trace = &run->trace;
    for (uint32_t i = 0; i < run->graph->n_devices * CS_N_CATEGORIES; i++) {
        if (run->live[i] == run->sampled[i])
            continue;
        const cs_memory_sample sample = {.time = run->now,
                                         .bytes = run->live[i],
                                         .device = i / CS_N_CATEGORIES,
                                         .category = i % CS_N_CATEGORIES};
        if (!trace->samples)
            trace->samples = cs_samples_create(run->graph->n_devices);
        if (!trace->samples || !cs_samples_add(trace->samples, &sample))
            return cs_error_no_memory(run->error);
        run->sampled[i] = run->live[i];
    }
    return CS_OK;
}

/* ---- Versions of the weights ---- */

/* The policy of a task that has one, or NULL. */
static const cs_policy *policy_of(const reference *run, uint32_t task)
{
    const cs_class *cls = class_of(run, task);
    return cls->policy > 0 ? &run->graph->policies[cls->policy - 1] : NULL;
}

/* No slot can get more versions than there are tasks. */
static uint32_t *holds_on(const reference *run, uint32_t slot, uint32_t version)
{
    return &run->holds[(size_t)slot * ((size_t)run->graph->n_tasks + 1) + version];
}

static bool is_alive(const reference *run, uint32_t slot, uint32_t version)
{
    const cs_slot *of = &run->graph->slots[slot];
    const uint32_t current = run->versions[slot];
    if (version > current)
        return false;
    const uint32_t behind = run->versions[of->behind], from = behind < current ? behind : current;
    const bool retained = version >= from || from - version < of->newest;
    return version == current || retained || *holds_on(run, slot, version) > 0;
}

/* Counts the versions of a slot that are alive, and sets memory to that. */
static void recount(reference *run, uint32_t slot, uint32_t task)
{
    const cs_slot *of = &run->graph->slots[slot];
    uint32_t alive = 0;
    for (uint32_t version = 0; version <= run->versions[slot]; version++)
        alive += is_alive(run, slot, version);
    int64_t *live = &run->live[of->device * CS_N_CATEGORIES + CS_MEMORY_WEIGHT_VERSIONS];
    *live += of->bytes * ((int64_t)alive - (int64_t)run->alive[slot]);
    run->alive[slot] = alive;
    if (alive > run->trace.slots[slot].peak_live)
        run->trace.slots[slot].peak_live = alive;
    account(run, of->device, task);
}

static uint32_t *register_of(const reference *run, const cs_policy *policy, uint32_t number,
                             uint32_t task)
{
    const uint32_t n_items = (uint32_t)cs_graph_items(run->graph);
    const uint32_t cell =
        policy->by_batch ? cs_graph_mini_batch(run->graph, task) : run->graph->tasks[task].item;
    return &run->registers[number * n_items + cell];
}

/* Mini-batch b = 0, 1, ... makes version b + 1. */
static uint32_t lagging(uint32_t batch, uint32_t lag)
{
    return batch < lag ? 0 : batch - lag + 1;
}

static uint32_t choose_version(const reference *run, uint32_t task)
{
    const cs_policy *policy = policy_of(run, task);
    if (!policy)
        return run->versions[class_of(run, task)->weights];
    if (policy->read == CS_READ_CURRENT)
        return policy->strict ? run->before[policy->slot] : run->versions[policy->slot];
    if (policy->read == CS_READ_LAG)
        return lagging(cs_graph_mini_batch(run->graph, task), policy->lag);
    return *register_of(run, policy, policy->reads, task);
}

static cs_status read_version(reference *run, uint32_t task)
{
    const cs_class *cls = class_of(run, task);
    if (cls->weights == CS_NONE || cls->kind == CS_UPDATE)
        return CS_OK;
    const cs_policy *policy = policy_of(run, task);
    const uint32_t version = choose_version(run, task);
    run->task_versions[task] = version;
    if (!policy)
        return CS_OK;
    if (!policy->notional && !is_alive(run, cls->weights, version))
        return cs_error_add(run->error, CS_FAILED, "task %u: version %u is not there", task,
                            version);
    if (policy->writes != CS_NONE)
        *register_of(run, policy, policy->writes, task) = version;
    for (uint32_t i = 0; i < policy->n_held && !policy->notional; i++) {
        ++*holds_on(run, policy->first_held + i, version);
        recount(run, policy->first_held + i, task);
    }
    return CS_OK;
}

static void drop_version(reference *run, uint32_t task)
{
    const cs_class *cls = class_of(run, task);
    const cs_policy *policy = policy_of(run, task);
    if (!policy || !policy->drops || policy->notional || cls->kind == CS_UPDATE)
        return;
    uint32_t *holds = holds_on(run, cls->weights, run->task_versions[task]);
    *holds -= *holds > 0;
    recount(run, cls->weights, task);
}

static void make_version(reference *run, uint32_t task)
{
    const cs_class *cls = class_of(run, task);
    if (cls->weights == CS_NONE || !(cls->updates || cls->kind == CS_UPDATE))
        return;
    run->versions[cls->weights]++;
    run->trace.slots[cls->weights].made++;
    if (cls->kind == CS_UPDATE)
        run->task_versions[task] = run->versions[cls->weights];
    recount(run, cls->weights, task);
    for (uint32_t slot = 0; slot < run->graph->n_slots; slot++)
        recount(run, slot, task);
}

/* An instant begins. */
static void remember_versions(reference *run)
{
    for (uint32_t slot = 0; slot < run->graph->n_slots; slot++)
        run->before[slot] = run->versions[slot];
}

/* ---- Ends and starts of tasks ---- */

static cs_status overflow(const reference *run, uint32_t task)
{
    char text[128];
    return cs_error_add(run->error, CS_OVERFLOW, "%s ends after more than 2^63 ps",
                        cs_graph_describe(run->graph, task, text, sizeof(text)));
}

static cs_time later(cs_time a, cs_time b)
{
    return a > b ? a : b;
}

static cs_status set_end(reference *run, uint32_t task, cs_time duration)
{
    cs_time end;
    if (!cs_time_add(run->now, duration, &end))
        return overflow(run, task);
    run->tasks[task].end = later(end, is_transfer(run, task) ? 0 : run->tasks[task].started);
    return CS_OK;
}

/* Returns the k-th device that this one represents, in order of numbers; CS_NONE if there are
 * fewer. */
static uint32_t stood_for(const cs_graph *graph, uint32_t device, uint32_t k)
{
    for (uint32_t d = 0; d < graph->n_devices; d++)
        if ((graph->stands_for ? graph->stands_for[d] : d) == device && k-- == 0)
            return d;
    return CS_NONE;
}

/* Finds the route of the k-th message that a transfer represents, into scratch; false if there are
 * fewer. */
static bool find_message(const reference *run, uint32_t task, uint32_t k, uint32_t **route,
                         uint32_t *length)
{
    const cs_class *cls = class_of(run, task);
    const uint32_t from = stood_for(run->graph, cls->device, k);
    *route = run->links + (size_t)run->graph->n_tasks * run->platform->longest_route;
    if (from == CS_NONE)
        return false;
    *length =
        run->platform->route(run->platform, from, stood_for(run->graph, cls->peer, k), *route);
    return true;
}

static void carry_bytes(reference *run, uint32_t task)
{
    uint32_t *route, length;
    for (uint32_t k = 0; is_transfer(run, task) && find_message(run, task, k, &route, &length); k++)
        for (uint32_t i = 0; i < length; i++)
            run->trace.links[route[i]].bytes += class_of(run, task)->bytes;
}

static void release_successors(reference *run, uint32_t task)
{
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(run->graph, task, &n);
    for (uint32_t i = 0; i < n; i++) {
        task_record *successor = &run->tasks[successors[i]];
        if (--successor->waits_for == 0)
            successor->state = READY;
    }
}

/* A host that waits for a task is not free before its end. */
static void end_wait(reference *run, const cs_class *cls)
{
    const bool transfer = cls->kind == CS_TRANSFER;
    if (cls->waits && (!transfer || cls->blocking))
        run->hosts[cls->device] = later(run->hosts[cls->device], run->now);
    if (cls->waits && transfer)
        run->hosts[cls->peer] = later(run->hosts[cls->peer], run->now);
}

/* The host of a device starts what it computes. */
static bool start_by_host(reference *run, uint32_t task, cs_time duration)
{
    const cs_class *cls = class_of(run, task);
    cs_time *host = &run->hosts[cls->device], alone;
    if (cls->waits_before)
        *host = later(*host, run->now);
    if (!cs_time_add(*host, cls->host, host) || !cs_time_add(run->now, duration, &alone))
        return false;
    run->tasks[task].started = *host;
    run->trace.devices[cls->device].waited += later(*host - alone, 0);
    return true;
}

static void end_task(reference *run, uint32_t task)
{
    run->tasks[task].state = ENDED;
    run->trace.spans[task].end = run->now;
    run->trace.makespan = run->now;
    for (uint32_t device = 0; device < run->graph->n_devices; device++)
        if (run->occupied[device] == task)
            run->occupied[device] = CS_NONE;
    if (!is_transfer(run, task)) {
        const cs_time alone = run->trace.spans[task].start + run->tasks[task].alone;
        cs_device_record *record = &run->trace.devices[class_of(run, task)->device];
        record->slowed += run->now - later(alone, run->tasks[task].started);
    }
    end_wait(run, class_of(run, task));
    apply_effects(run, task, true);
    drop_version(run, task);
    make_version(run, task);
    carry_bytes(run, task);
    release_successors(run, task);
}

static cs_status begin_task(reference *run, uint32_t task)
{
    run->trace.spans[task].start = run->now;
    const cs_status status = read_version(run, task);
    if (status == CS_OK)
        apply_effects(run, task, false);
    return status;
}

static cs_status start_compute(reference *run, uint32_t task)
{
    const cs_class *cls = class_of(run, task);
    cs_time duration;
    if (!cs_time_at_speed(cls->duration, run->platform->devices[cls->device].speed, &duration))
        return overflow(run, task);
    const double *factors = run->options->task_factors;
    if (factors && !cs_time_scale(duration, factors[task], &duration))
        return overflow(run, task);
    if (!start_by_host(run, task, duration))
        return overflow(run, task);
    run->tasks[task].state = RUNNING;
    run->tasks[task].alone = duration;
    run->tasks[task].undone = (double)duration;
    run->tasks[task].slower = 1;
    run->tasks[task].changed = run->now;
    run->occupied[cls->device] = task;
    const cs_status status = begin_task(run, task);
    return status == CS_OK ? set_end(run, task, duration) : status;
}

/* How long the bytes take once they move; not for rates that vary. */
static cs_status bytes_time(const reference *run, uint32_t task, cs_time *time)
{
    const double bytes = (double)class_of(run, task)->bytes;
    const double slowdown = run->platform->sharing == CS_SHARING_PHI ? run->platform->phi : 1;
    if (!cs_time_transfer(bytes * slowdown, run->tasks[task].least, time))
        return overflow(run, task);
    return CS_OK;
}

static bool competes(const reference *run, uint32_t task)
{
    const cs_sharing sharing = run->platform->sharing;
    return sharing != CS_SHARING_NONE && sharing != CS_SHARING_PHI &&
           class_of(run, task)->bytes > 0 && run->tasks[task].n_links > 0;
}

static cs_status start_transfer(reference *run, uint32_t task)
{
    task_record *record = &run->tasks[task];
    cs_status status = begin_task(run, task);
    if (status != CS_OK)
        return status;
    if (competes(run, task)) {
        record->state = TRAVELLING;
        return set_end(run, task, record->latency);
    }
    cs_time duration;
    status = bytes_time(run, task, &duration);
    if (status != CS_OK)
        return status;
    if (!cs_time_add(duration, record->latency, &duration))
        return overflow(run, task);
    record->state = RUNNING;
    return set_end(run, task, duration);
}

/* ---- Step 1 ---- */

static void apply_ends(reference *run)
{
    for (uint32_t task = 0; task < run->graph->n_tasks; task++) {
        task_record *record = &run->tasks[task];
        if (record->end != run->now)
            continue;
        if (record->state == TRAVELLING) {
            record->state = ARRIVED;
            record->end = NEVER;
        } else if (record->state == RUNNING || record->state == COMPETING) {
            end_task(run, task);
        }
    }
}

/* ---- Step 2 ---- */

/* Before this time the task does not start. */
static cs_time release_of(const reference *run, uint32_t task)
{
    const cs_class *cls = class_of(run, task);
    return cls->release + cls->interval * run->graph->tasks[task].item;
}

static bool is_ready(const reference *run, uint32_t task)
{
    return run->tasks[task].state == READY && release_of(run, task) <= run->now;
}

/* The first transfer that may start at once, or CS_NONE. */
static uint32_t choose_transfer(const reference *run)
{
    for (uint32_t task = 0; task < run->graph->n_tasks; task++)
        if (is_ready(run, task) && is_transfer(run, task) && !class_of(run, task)->blocking)
            return task;
    return CS_NONE;
}

/* ---- Step 3 ---- */

static bool is_idle(const reference *run, uint32_t device)
{
    return run->occupied[device] == CS_NONE;
}

/* The ready blocking transfer with the lowest id that starts or ends at the device, or CS_NONE. */
static uint32_t first_blocking(const reference *run, uint32_t device)
{
    for (uint32_t task = 0; task < run->graph->n_tasks; task++) {
        const cs_class *cls = class_of(run, task);
        if (is_ready(run, task) && is_transfer(run, task) && cls->blocking &&
            (cls->device == device || cls->peer == device))
            return task;
    }
    return CS_NONE;
}

/* In program order: the first that has not started, if it is ready. */
static uint32_t choose_in_program(const reference *run, uint32_t device)
{
    uint32_t task = run->graph->first_task[device];
    while (task != CS_NONE && run->tasks[task].state > READY)
        task = run->graph->tasks[task].next;
    return task != CS_NONE && is_ready(run, task) ? task : CS_NONE;
}

static uint32_t choose_by_priority(const reference *run, uint32_t device)
{
    uint32_t best = CS_NONE;
    for (uint32_t task = 0; task < run->graph->n_tasks; task++) {
        const cs_class *cls = class_of(run, task);
        if (!is_ready(run, task) || is_transfer(run, task) || cls->device != device)
            continue;
        if (best == CS_NONE || cls->priority > class_of(run, best)->priority)
            best = task;
    }
    return best;
}

/* Returns the task that an idle device starts, or CS_NONE. */
static uint32_t choose_for_device(const reference *run, uint32_t device)
{
    const uint32_t blocking = first_blocking(run, device);
    if (blocking != CS_NONE) {
        const cs_class *cls = class_of(run, blocking);
        const uint32_t other = cls->device == device ? cls->peer : cls->device;
        return is_idle(run, other) && first_blocking(run, other) == blocking ? blocking : CS_NONE;
    }
    return run->graph->queues[device] == CS_QUEUE_PRIORITY ? choose_by_priority(run, device)
                                                           : choose_in_program(run, device);
}

static uint32_t choose_for_any_device(const reference *run)
{
    for (uint32_t device = 0; device < run->graph->n_devices; device++) {
        const uint32_t task = is_idle(run, device) ? choose_for_device(run, device) : CS_NONE;
        if (task != CS_NONE)
            return task;
    }
    return CS_NONE;
}

static cs_status start_on_devices(reference *run, uint32_t task)
{
    const cs_class *cls = class_of(run, task);
    if (!is_transfer(run, task))
        return start_compute(run, task);
    run->occupied[cls->device] = task;
    run->occupied[cls->peer] = task;
    return start_transfer(run, task);
}

/* ---- Step 4 ---- */

/* Whether two messages have to go one after the other. */
static bool are_in_order(const reference *run, uint32_t task, uint32_t other)
{
    const cs_class *a = class_of(run, task), *b = class_of(run, other);
    return !run->platform->independent_messages && is_transfer(run, other) &&
           a->device == b->device && a->peer == b->peer && a->purpose == b->purpose &&
           a->origin == CS_TRANSFER && b->origin == CS_TRANSFER;
}

/* A message of its pair came to the links before this one and has not ended. */
static bool waits_for_its_pair(const reference *run, uint32_t task)
{
    for (uint32_t other = 0; other < run->graph->n_tasks; other++)
        if (run->tasks[other].arrival < run->tasks[task].arrival &&
            run->tasks[other].state != ENDED && are_in_order(run, task, other))
            return true;
    return false;
}

static void let_onto_links(reference *run)
{
    for (uint32_t task = 0; task < run->graph->n_tasks; task++)
        if (run->tasks[task].state == ARRIVED && run->tasks[task].arrival == CS_NONE)
            run->tasks[task].arrival = run->n_arrivals++;
    for (uint32_t task = 0; task < run->graph->n_tasks; task++) {
        task_record *record = &run->tasks[task];
        if (record->state != ARRIVED ||
            (run->platform->sharing != CS_SHARING_FIFO && waits_for_its_pair(run, task)))
            continue;
        record->state = COMPETING;
        record->left = (double)class_of(run, task)->bytes;
        record->rate = 0;
        record->changed = run->now;
    }
}

/* How many messages of a transfer are on a link now. */
static uint32_t uses(const reference *run, uint32_t task, uint32_t link)
{
    const task_record *record = &run->tasks[task];
    if (record->state != COMPETING)
        return 0;
    for (uint32_t i = 0; i < record->n_links; i++)
        if (record->links[i] == link)
            return record->messages[i];
    return 0;
}

static bool is_first_on_its_links(const reference *run, uint32_t task)
{
    const task_record *record = &run->tasks[task];
    for (uint32_t other = 0; other < run->graph->n_tasks; other++)
        for (uint32_t i = 0; i < record->n_links; i++)
            if (uses(run, other, record->links[i]) && run->tasks[other].arrival < record->arrival)
                return false;
    return true;
}

static cs_status serve_queues(reference *run)
{
    for (uint32_t task = 0; task < run->graph->n_tasks; task++) {
        const task_record *record = &run->tasks[task];
        if (record->state != COMPETING || record->end != NEVER || !is_first_on_its_links(run, task))
            continue;
        cs_time duration;
        cs_status status = bytes_time(run, task, &duration);
        if (status == CS_OK)
            status = set_end(run, task, duration);
        if (status != CS_OK)
            return status;
    }
    return CS_OK;
}

static cs_status set_rate(reference *run, uint32_t task, double rate)
{
    task_record *record = &run->tasks[task];
    if (rate == record->rate)
        return CS_OK;
    record->left -= record->rate * cs_time_seconds(run->now - record->changed);
    if (record->left < 0) /* its end was rounded up to a picosecond */
        record->left = 0;
    record->rate = rate;
    record->changed = run->now;
    cs_time duration;
    if (!cs_time_transfer(record->left, rate, &duration))
        return overflow(run, task);
    return set_end(run, task, duration);
}

static uint32_t count_users(const reference *run, uint32_t link)
{
    uint32_t n = 0;
    for (uint32_t task = 0; task < run->graph->n_tasks; task++)
        n += uses(run, task, link);
    return n;
}

static cs_status share_by_count(reference *run)
{
    for (uint32_t task = 0; task < run->graph->n_tasks; task++) {
        const task_record *record = &run->tasks[task];
        if (record->state != COMPETING)
            continue;
        double rate = INFINITY;
        for (uint32_t i = 0; i < record->n_links; i++) {
            const uint32_t link = record->links[i];
            rate = fmin(rate, run->platform->links[link].bandwidth / count_users(run, link));
        }
        const cs_status status = set_rate(run, task, rate);
        if (status != CS_OK)
            return status;
    }
    return CS_OK;
}

/* Finds the link where an equal share for all transfers without a rate is smallest; CS_NONE if no
 * such transfers are left. `rates` are negative if not known yet. */
static uint32_t find_bottleneck(const reference *run, const double *rates, double *part)
{
    uint32_t bottleneck = CS_NONE;
    *part = INFINITY;
    for (uint32_t link = 0; link < run->platform->n_links; link++) {
        uint32_t n = 0;
        for (uint32_t task = 0; task < run->graph->n_tasks; task++)
            n += rates[task] < 0 ? uses(run, task, link) : 0;
        if (n > 0 && run->unshared[link] / n < *part) {
            *part = run->unshared[link] / n;
            bottleneck = link;
        }
    }
    return bottleneck;
}

/* Progressive filling: all rates grow together until a link is full; the transfers on it keep what
 * they have, the others go on growing. */
static void fill(reference *run, double *rates)
{
    for (uint32_t link = 0; link < run->platform->n_links; link++)
        run->unshared[link] = run->platform->links[link].bandwidth;
    for (uint32_t task = 0; task < run->graph->n_tasks; task++)
        rates[task] = -1;
    double part;
    for (;;) {
        const uint32_t full = find_bottleneck(run, rates, &part);
        if (full == CS_NONE)
            return;
        for (uint32_t task = 0; task < run->graph->n_tasks; task++) {
            if (rates[task] >= 0 || !uses(run, task, full))
                continue;
            rates[task] = part;
            const task_record *record = &run->tasks[task];
            for (uint32_t i = 0; i < record->n_links; i++)
                run->unshared[record->links[i]] -= part * record->messages[i];
        }
    }
}

static cs_status share_fairly(reference *run)
{
    double *rates = calloc((size_t)run->graph->n_tasks + 1, sizeof(*rates));
    if (!rates)
        return cs_error_no_memory(run->error);
    fill(run, rates);
    cs_status status = CS_OK;
    for (uint32_t task = 0; task < run->graph->n_tasks && status == CS_OK; task++)
        if (run->tasks[task].state == COMPETING)
            status = set_rate(run, task, rates[task]);
    free(rates);
    return status;
}

static cs_status share_links(reference *run)
{
    let_onto_links(run);
    switch (run->platform->sharing) {
    case CS_SHARING_FIFO:
        return serve_queues(run);
    case CS_SHARING_COUNT:
        return share_by_count(run);
    case CS_SHARING_MAX_MIN:
        return share_fairly(run);
    case CS_SHARING_NONE:
    case CS_SHARING_PHI:
        break; /* each transfer has its end since its start */
    }
    return CS_OK;
}

/* ---- Step 4: computations slowed by communication ---- */

/* Whether a task is a transfer under way that takes part of a device's attention. */
static bool communicates(const reference *run, uint32_t task, uint32_t device)
{
    const cs_class *cls = class_of(run, task);
    const task_state state = run->tasks[task].state;
    if (!is_transfer(run, task) || state <= READY || state == ENDED)
        return false;
    if (cls->ranks == 0)
        return cls->bytes > 0 && cls->device != cls->peer &&
               (cls->device == device || cls->peer == device);
    const cs_group *group = &run->graph->groups[cls->ranks - 1];
    for (uint32_t i = 0; i < group->n; i++)
        if (run->graph->group_devices[group->first + i] == device)
            return true;
    return false;
}

static cs_status slow_down(reference *run)
{
    for (uint32_t task = 0; task < run->graph->n_tasks && run->options->slowdown; task++) {
        task_record *record = &run->tasks[task];
        const cs_class *cls = class_of(run, task);
        if (record->state != RUNNING || is_transfer(run, task))
            continue;
        double slower = 1;
        for (uint32_t other = 0; other < run->graph->n_tasks; other++)
            if (communicates(run, other, cls->device))
                slower = fmax(
                    slower,
                    run->options->slowdown[cls->kind * CS_N_KINDS + class_of(run, other)->origin]);
        if (slower == record->slower)
            continue;
        record->undone -= (double)(run->now - record->changed) / record->slower;
        record->undone = record->undone < 0 ? 0 : record->undone;
        record->slower = slower;
        record->changed = run->now;
        cs_time rest;
        if (!cs_time_round(record->undone * slower, &rest))
            return overflow(run, task);
        const cs_status status = set_end(run, task, rest);
        if (status != CS_OK)
            return status;
    }
    return CS_OK;
}

/* ---- Time ---- */

/* Steps 1 to 4. After any start it goes back to 1, not only after one that took no time: a start
 * lets nothing else begin or end, so that for all others going back finds what it had found. */
static cs_status run_instant(reference *run)
{
    cs_status status = CS_OK;
    while (status == CS_OK) {
        apply_ends(run);
        bool started = false;
        uint32_t task;
        for (; status == CS_OK && (task = choose_transfer(run)) != CS_NONE; started = true)
            status = start_transfer(run, task);
        if (started)
            continue;
        for (; status == CS_OK && (task = choose_for_any_device(run)) != CS_NONE; started = true)
            status = start_on_devices(run, task);
        if (!started && status == CS_OK)
            status = share_links(run);
        if (!started && status == CS_OK)
            return slow_down(run);
    }
    return status;
}

/* When the task ends, joins its links or is released; NEVER when none of these is to come. */
static cs_time next_of(const reference *run, uint32_t task)
{
    const task_record *record = &run->tasks[task];
    if (record->state == READY)
        return is_ready(run, task) ? NEVER : release_of(run, task);
    return record->state > READY && record->state < ENDED ? record->end : NEVER;
}

/* NEVER when nothing is to come. It can be `now` again: a transfer that got its links in step 4
 * and needs them for less than half a picosecond. */
static cs_time next_end(const reference *run)
{
    cs_time next = NEVER;
    for (uint32_t task = 0; task < run->graph->n_tasks; task++) {
        const cs_time own = next_of(run, task);
        if (own != NEVER && (next == NEVER || own < next))
            next = own;
    }
    return next;
}

/* Tasks under way are cut off where the run stopped. */
static void cut_off(reference *run)
{
    for (uint32_t task = 0; task < run->graph->n_tasks; task++)
        if (run->tasks[task].state > READY && run->tasks[task].state < ENDED)
            run->trace.spans[task].end = run->now;
    run->trace.makespan = run->now;
    run->trace.stopped = true;
}

static cs_status check_all_ended(const reference *run)
{
    char text[128];
    for (uint32_t task = 0; task < run->graph->n_tasks; task++)
        if (run->tasks[task].state != ENDED)
            return cs_error_add(run->error, CS_FAILED, "%s can never start",
                                cs_graph_describe(run->graph, task, text, sizeof(text)));
    return CS_OK;
}

static cs_status run_to_the_end(reference *run)
{
    apply_residents(run);
    remember_versions(run);
    for (;;) {
        cs_status status = run_instant(run);
        if (status != CS_OK)
            return status;
        const cs_time next = next_end(run);
        if (next == run->now)
            continue;
        status = take_samples(run);
        if (status != CS_OK)
            return status;
        if (next == NEVER)
            return check_all_ended(run);
        if (run->stop) {
            cut_off(run);
            return CS_OK;
        }
        run->now = next;
        remember_versions(run);
    }
}

/* ---- Setting up ---- */

static void *allocate(size_t count, size_t size)
{
    return calloc(count > 0 ? count : 1, size); /* NULL means one thing only */
}

static bool allocate_trace(reference *run)
{
    cs_trace *trace = &run->trace;
    trace->n_tasks = run->graph->n_tasks;
    trace->n_devices = run->graph->n_devices;
    trace->n_links = run->platform->n_links;
    trace->spans = allocate(trace->n_tasks, sizeof(*trace->spans));
    trace->devices = allocate(trace->n_devices, sizeof(*trace->devices));
    trace->links = allocate(trace->n_links, sizeof(*trace->links));
    trace->n_slots = run->graph->n_slots;
    trace->slots = allocate(trace->n_slots, sizeof(*trace->slots));
    return trace->spans && trace->devices && trace->links && trace->slots;
}

static bool allocate_versions(reference *run)
{
    const size_t n_slots = run->graph->n_slots;
    const size_t n_cells = (size_t)run->graph->n_registers * cs_graph_items(run->graph);
    run->versions = allocate(n_slots, sizeof(*run->versions));
    run->before = allocate(n_slots, sizeof(*run->before));
    run->holds = allocate(n_slots * ((size_t)run->graph->n_tasks + 1), sizeof(*run->holds));
    run->alive = allocate(n_slots, sizeof(*run->alive));
    run->registers = allocate(n_cells, sizeof(*run->registers));
    run->task_versions = allocate(run->graph->n_tasks, sizeof(*run->task_versions));
    if (!run->versions || !run->before || !run->holds || !run->alive || !run->registers ||
        !run->task_versions)
        return false;
    for (size_t i = 0; i < n_cells; i++)
        run->registers[i] = CS_NONE;
    for (uint32_t task = 0; task < run->graph->n_tasks; task++)
        run->task_versions[task] = CS_NONE;
    for (size_t slot = 0; slot < n_slots; slot++)
        run->alive[slot] = 1;
    return true;
}

static bool allocate_run(reference *run)
{
    const size_t n_cells = (size_t)run->graph->n_devices * CS_N_CATEGORIES;
    /* one route more than there are tasks: scratch for carry_bytes */
    const size_t n_routes = (size_t)run->graph->n_tasks + 1;
    run->tasks = allocate(run->graph->n_tasks, sizeof(*run->tasks));
    run->links = allocate(n_routes * run->platform->longest_route, sizeof(*run->links));
    run->messages = allocate(n_routes * run->platform->longest_route, sizeof(*run->messages));
    run->occupied = allocate(run->graph->n_devices, sizeof(*run->occupied));
    run->hosts = allocate(run->graph->n_devices, sizeof(*run->hosts));
    run->live = allocate(n_cells, sizeof(*run->live));
    run->sampled = allocate(n_cells, sizeof(*run->sampled));
    run->unshared = allocate(run->platform->n_links, sizeof(*run->unshared));
    return run->tasks && run->links && run->messages && run->occupied && run->live &&
           run->sampled && run->unshared && allocate_versions(run) && allocate_trace(run);
}

/* Counts the messages of a transfer that take a link. */
static uint32_t messages_on(const reference *run, uint32_t task, uint32_t link)
{
    uint32_t *route, length, n = 0;
    for (uint32_t k = 0; find_message(run, task, k, &route, &length); k++)
        for (uint32_t i = 0; i < length; i++)
            n += route[i] == link;
    return n;
}

/* Finds, for the k-th of these messages, its links, the longest time per byte on one of them while
 * all are in flight, and its latency. Returns false if there are fewer. */
static bool take_message(reference *run, uint32_t task, uint32_t k, uint32_t *n, double *byte_time,
                         cs_time *latency)
{
    uint32_t *links = run->tasks[task].links, *route;
    const cs_platform *platform = run->platform;
    if (!find_message(run, task, k, &route, n))
        return false;
    memcpy(links, route, *n * sizeof(*links));
    *byte_time = 0;
    *latency = 0;
    for (uint32_t i = 0; i < *n; i++) {
        const cs_link *link = &platform->links[links[i]];
        const bool shared = platform->sharing == CS_SHARING_FIFO ||
                            platform->sharing == CS_SHARING_COUNT ||
                            platform->sharing == CS_SHARING_MAX_MIN;
        const uint32_t messages =
            shared && isfinite(link->bandwidth) ? messages_on(run, task, links[i]) : 1;
        *byte_time = fmax(*byte_time, messages / link->bandwidth);
        *latency += link->latency;
    }
    return true;
}

/* Which of them is the slowest; its own where that is. */
static uint32_t slowest_message(reference *run, uint32_t task)
{
    uint32_t n, slowest = 0;
    double most, byte_time;
    cs_time longest, latency;
    while (stood_for(run->graph, class_of(run, task)->device, slowest) !=
           class_of(run, task)->device)
        slowest++;
    (void)take_message(run, task, slowest, &n, &most, &longest);
    for (uint32_t k = 0; take_message(run, task, k, &n, &byte_time, &latency); k++)
        if (byte_time > most || (!(byte_time < most) && latency > longest)) {
            slowest = k;
            most = byte_time;
            longest = latency;
        }
    return slowest;
}

static cs_status find_route(reference *run, uint32_t task)
{
    task_record *record = &run->tasks[task];
    const cs_class *cls = class_of(run, task);
    const size_t room = (size_t)task * run->platform->longest_route;
    double byte_time;
    uint32_t length;
    record->links = run->links + room;
    record->messages = run->messages + room;
    (void)take_message(run, task, slowest_message(run, task), &length, &byte_time,
                       &record->latency);
    record->least = INFINITY;
    for (uint32_t i = 0; i < length; i++) {
        const double bandwidth = run->platform->links[record->links[i]].bandwidth;
        record->least = fmin(record->least, bandwidth);
        if (isfinite(bandwidth))
            record->links[record->n_links++] = record->links[i];
    }
    for (uint32_t i = 0; i < record->n_links; i++)
        record->messages[i] = messages_on(run, task, record->links[i]);
    return cs_time_add(record->latency, cls->duration, &record->latency)
               ? CS_OK
               : cs_error_add(run->error, CS_OVERFLOW, "a transfer takes too long");
}

static cs_status set_up_tasks(reference *run)
{
    for (uint32_t task = 0; task < run->graph->n_tasks; task++) {
        task_record *record = &run->tasks[task];
        record->waits_for = run->graph->n_predecessors[task];
        record->state = record->waits_for > 0 ? WAITING : READY;
        record->end = NEVER;
        record->arrival = CS_NONE;
        run->trace.spans[task] = (cs_span){-1, -1};
        const cs_status status = is_transfer(run, task) ? find_route(run, task) : CS_OK;
        if (status != CS_OK)
            return status;
    }
    return CS_OK;
}

static cs_status set_up(reference *run)
{
    if (!allocate_run(run))
        return cs_error_no_memory(run->error);
    for (uint32_t device = 0; device < run->graph->n_devices; device++) {
        run->occupied[device] = CS_NONE;
        run->trace.devices[device].capacity = run->platform->devices[device].capacity;
        run->trace.devices[device].oom_task = CS_NONE;
    }
    for (uint32_t slot = 0; slot < run->graph->n_slots; slot++)
        run->trace.slots[slot].peak_live = 1;
    for (uint32_t link = 0; link < run->platform->n_links; link++)
        run->trace.links[link] =
            (cs_link_record){.name = run->platform->links[link].name,
                             .bandwidth = run->platform->links[link].bandwidth};
    return set_up_tasks(run);
}

static void finish(reference *run)
{
    free(run->tasks);
    free(run->links);
    free(run->messages);
    free(run->occupied);
    free(run->hosts);
    free(run->versions);
    free(run->before);
    free(run->holds);
    free(run->alive);
    free(run->registers);
    free(run->task_versions);
    free(run->live);
    free(run->sampled);
    free(run->unshared);
    cs_trace_finish(&run->trace);
}

/* Copies memory from representatives to represented devices. */
static void unfold(reference *run)
{
    const uint32_t *by = run->graph->stands_for;
    for (uint32_t device = 0; by && device < run->graph->n_devices; device++)
        run->trace.devices[device] = run->trace.devices[by[device]];
}

cs_status reference_run(const cs_graph *graph, const cs_platform *platform,
                        const cs_engine_options *options, cs_trace *trace, cs_error *error)
{
    reference run = {.graph = graph, .platform = platform, .options = options, .error = error};
    cs_status status = set_up(&run);
    if (status == CS_OK)
        status = run_to_the_end(&run);
    if (status == CS_OK && options->record_versions) {
        run.trace.versions = run.task_versions;
        run.task_versions = NULL;
    }
    if (status == CS_OK) {
        unfold(&run);
        *trace = run.trace;
        run.trace = (cs_trace){0};
    }
    finish(&run);
    return status;
}

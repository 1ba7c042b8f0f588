/* Examination of the plans shown: how each spends its time, and the effect of links or devices that
 * differ from their description. */
#include "sim/study/advise/search.h"

#include "sim/base/time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Parts of the examination of a row: the full simulation, one part per doubt, and for the first
 * rows every device. */
enum { EACH = 1 + CS_N_DOUBTS, PARTS };

/* Result of a part. Part candidate * PARTS + 0 is the full simulation, + 1 + doubt is a doubt, +
 * EACH is every device. */
typedef struct examined {
    bool estimated;
    cs_limits limits; /* full simulation: limits, except `axis` */
    double time;      /* doubt: time of the step, s */
    cs_step each;
} examined;

static cs_advice_row *row_of(cs_advice *advice, uint32_t candidate)
{
    for (uint32_t r = 0; r < advice->n_rows; r++)
        if (advice->rows[r].candidate == candidate)
            return &advice->rows[r];
    return &advice->misfit;
}

/* ---- other links, other devices ---- */

/* Copies the platform and multiplies the speeds of devices and links. Changed arrays are in the
 * arena; the others are shared with the original. */
static cs_status change_platform(const cs_platform *from, double bandwidth, double speed,
                                 cs_arena *arena, cs_platform *to, cs_error *error)
{
    const bool links = bandwidth < 1 || bandwidth > 1;
    *to = *from;
    if (links)
        to->links = cs_arena_alloc(arena, from->n_links + 1ULL, sizeof(*to->links));
    to->devices = cs_arena_alloc(arena, from->n_devices + 1ULL, sizeof(*to->devices));
    if (!to->links || !to->devices)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; links && i < from->n_links; i++) {
        to->links[i] = from->links[i];
        to->links[i].bandwidth *= bandwidth;
    }
    for (uint32_t i = 0; i < from->n_devices; i++) {
        to->devices[i] = from->devices[i];
        to->devices[i].speed *= speed;
    }
    return CS_OK;
}

/* Simulates a step of the scenario on the changed platform. The bandwidths of collective levels
 * change too. */
static cs_status simulate_changed(const cs_scenario *scenario, double bandwidth, double speed,
                                  bool shared, const cs_progress *progress, double *time,
                                  cs_error *error)
{
    cs_scenario changed = *scenario; /* the original keeps ownership of everything */
    cs_step step;
    cs_arena arena;
    cs_arena_init(&arena);
    cs_status status =
        change_platform(&scenario->platform, bandwidth, speed, &arena, &changed.platform, error);
    for (uint32_t i = 0; i < CS_N_LEVELS; i++)
        changed.collectives.levels[i].bandwidth *= bandwidth;
    if (!shared)
        changed.platform.sharing = CS_SHARING_NONE;
    if (status == CS_OK)
        status = cs_simulate_step(&changed, progress, &step, error);
    cs_arena_finish(&arena);
    if (status == CS_OK)
        *time = step.time;
    return status;
}

/* ---- one plan in full ---- */

/* Returns the computing time of the whole mini-batch on one device with the whole model, in the
 * same micro-batches. */
static double undivided_time(const cs_advice *advice, const cs_candidate *of)
{
    cs_candidate c = *of;
    cs_priced priced = {0};
    cs_error ignored;
    cs_error_init(&ignored);
    c.method = CS_BY_TENSOR;
    c.devices = c.layer = c.space = c.context = c.expert = c.pipeline = c.data = c.chunks = 1;
    const cs_status status = cs_bounds_price(&advice->base, &c, NULL, NULL, &priced, &ignored);
    const double computing = priced.computing;
    cs_priced_finish(&priced);
    return status == CS_OK ? computing * of->micro_batches * of->data : (double)NAN;
}

/* Returns the quantity that cannot be split any further with more devices; NULL if none. */
static const char *name_limit(const cs_advice *advice, const cs_candidate *c)
{
    const uint32_t samples = advice->base.batch_size;
    return c->data == samples                                     ? "samples"
           : c->pipeline * c->chunks == advice->base.n_layers     ? "layers"
           : c->expert > 1 && c->expert == advice->base.n_experts ? "experts"
                                                                  : NULL;
}

/* Simulates every device of an estimated row; other rows are simulated as they are. */
static cs_status simulate_each(const cs_advice *advice, uint32_t candidate,
                               const cs_progress *progress, cs_step *step, cs_error *error)
{
    cs_advise_base exact = advice->base;
    cs_scenario scenario = {0};
    exact.section.exact = true;
    cs_status status = cs_bounds_read(&exact, &advice->candidates, &advice->bounds, candidate,
                                      progress, &scenario, error);
    if (status == CS_OK)
        status = cs_simulate_step(&scenario, progress, step, error);
    cs_scenario_finish(&scenario);
    return status;
}

static cs_status examine(const cs_advice *advice, uint32_t candidate, const cs_scenario *scenario,
                         const cs_progress *progress, cs_limits *limits, cs_error *error)
{
    const cs_simulation_options how = {.no_hash = true, .progress = progress};
    cs_simulation simulation = {0};
    double alone;
    CS_TRY(cs_simulate(scenario, &how, &simulation, error));
    cs_status status = simulate_changed(scenario, 1, 1, false, progress, &alone, error);
    if (status == CS_OK) {
        const double undivided = undivided_time(advice, &advice->candidates.items[candidate]);
        cs_limits_find(scenario, &simulation, undivided, alone, limits);
        limits->axis = NULL;
    }
    cs_simulation_finish(&simulation);
    return status;
}

/* ---- all of them ---- */

/* Runs in several threads at a time, and in other processes. */
static cs_status do_part(const cs_advice *advice, uint32_t part, const cs_progress *progress,
                         examined *to, cs_error *error)
{
    static const double bandwidths[] = {0.9, 1.1, 1, 1}, speeds[] = {1, 1, 0.9, 1.1};
    const uint32_t candidate = part / PARTS, doubt = part % PARTS;
    cs_scenario scenario = {0};
    if (doubt == EACH)
        return simulate_each(advice, candidate, progress, &to->each, error);
    cs_status status = cs_bounds_read(&advice->base, &advice->candidates, &advice->bounds,
                                      candidate, progress, &scenario, error);
    to->estimated = status == CS_OK && scenario.estimated;
    if (status == CS_OK && doubt == 0)
        status = examine(advice, candidate, &scenario, progress, &to->limits, error);
    else if (status == CS_OK)
        status = simulate_changed(&scenario, bandwidths[doubt - 1], speeds[doubt - 1], true,
                                  progress, &to->time, error);
    cs_scenario_finish(&scenario);
    return status;
}

static void work(const void *context, uint32_t part, const cs_progress *progress,
                 cs_pool_item *item)
{
    item->value = calloc(1, sizeof(examined));
    item->value_bytes = sizeof(examined);
    item->status = item->value ? do_part(context, part, progress, item->value, item->error)
                               : cs_error_no_memory(item->error);
}

static cs_status collect(void *context, const cs_pool_item *item, cs_error *error)
{
    cs_advice *advice = context;
    const uint32_t candidate = item->point / PARTS, doubt = item->point % PARTS;
    cs_advice_row *row = row_of(advice, candidate);
    examined made;
    if (item->status == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    if (item->status != CS_OK) {
        cs_error_add_all(error, item->error);
        return item->status;
    }
    memcpy(&made, item->value, sizeof(made));
    if (doubt == EACH) {
        row->each = made.each;
        return CS_OK;
    }
    row->n_examined++;
    if (doubt > 0) {
        row->times[doubt - 1] = made.time;
        return CS_OK;
    }
    row->estimated = made.estimated;
    row->limits = made.limits;
    row->limits.axis = name_limit(advice, &advice->candidates.items[candidate]);
    return CS_OK;
}

/* Ranks the rows for each doubt, as if it applied to all of them. */
static void rank_doubts(cs_advice *advice)
{
    for (uint32_t d = 0; d < CS_N_DOUBTS; d++)
        for (uint32_t r = 0; r < advice->n_rows; r++) {
            uint32_t rank = 1;
            for (uint32_t other = 0; other < advice->n_rows; other++) {
                const double mine = advice->rows[r].times[d], its = advice->rows[other].times[d];
                rank += its < mine || (!(its > mine) && other < r);
            }
            advice->rows[r].ranks[d] = rank;
        }
}

static void note_interrupt(cs_advice *advice)
{
    advice->interrupted = true;
    advice->cut = "interrupted";
}

static void complete_rows(cs_advice *advice)
{
    bool all = true;
    for (uint32_t r = 0; r < advice->n_rows; r++) {
        advice->rows[r].complete |= advice->rows[r].n_examined == EACH;
        all &= advice->rows[r].complete;
    }
    advice->misfit.complete |= advice->misfit.n_examined == 1;
    if (all)
        rank_doubts(advice);
}

static cs_status examine_all(const cs_advise_options *options, double deadline, cs_advice *advice,
                             const uint32_t *parts, uint32_t n, cs_error *error)
{
    cs_timed_progress timed = {.inner = options->progress, .deadline = deadline};
    const cs_progress progress = cs_timed_progress_of(&timed);
    cs_error why;
    cs_error_init(&why);
    const cs_pool pool = {.what = "examining plans",
                          .points_are = "simulations",
                          .work = work,
                          .work_context = advice,
                          .collect = collect,
                          .collect_context = advice,
                          .points = parts,
                          .n_points = n,
                          .jobs = options->jobs};
    const cs_status status =
        cs_team_run(options->team, CS_ADVISE_EXAMINING, &pool, &progress, &why);
    if (status != CS_OK && status != CS_INTERRUPTED) {
        cs_error_add_all(error, &why);
        return status;
    }
    if (status == CS_INTERRUPTED && timed.late)
        advice->cut = "time budget used up";
    else if (status == CS_INTERRUPTED)
        note_interrupt(advice);
    complete_rows(advice);
    return CS_OK;
}

cs_status cs_advise_own(const cs_advise_options *options, double deadline, cs_advice *advice,
                        cs_error *error)
{
    cs_timed_progress timed = {.inner = options->progress, .deadline = deadline};
    const cs_progress progress = cs_timed_progress_of(&timed);
    cs_scenario scenario = {0};
    cs_error why;
    cs_error_init(&why);
    cJSON *document = cs_own_document(&advice->base);
    if (!document)
        return cs_error_no_memory(error);
    cs_status status =
        cs_scenario_read_brief(document, advice->base.path, NULL, &progress, &scenario, &why);
    if (status == CS_OK)
        status = cs_simulate_step(&scenario, &progress, &advice->own, &why);
    cs_scenario_finish(&scenario);
    cJSON_Delete(document);
    if (status == CS_INTERRUPTED && !timed.late)
        note_interrupt(advice);
    if (status == CS_INVALID) {
        const size_t length = strcspn(why.text, "\n");
        advice->own_refusal = cs_arena_copy_length(&advice->arena, why.text, length);
        if (!advice->own_refusal)
            return cs_error_no_memory(error);
    }
    return status == CS_NO_MEMORY ? cs_error_no_memory(error) : CS_OK;
}

/* Returns the approximate number of tasks of a plan with every device of the platform. */
static double tasks_of_each(const cs_advice *advice, uint32_t candidate)
{
    const cs_candidate *c = &advice->candidates.items[candidate];
    return (double)advice->outcomes[candidate].step.n_tasks * (c->devices / c->pipeline);
}

/* Adds the parts with every device, for the first rows whose time may change. */
static uint32_t add_each(const cs_advice *advice, uint32_t *parts)
{
    double tasks = 0;
    uint32_t n = 0;
    for (uint32_t r = 0; r < advice->n_rows && r < CS_ADVISE_EACH; r++) {
        const uint32_t i = advice->rows[r].candidate;
        tasks += tasks_of_each(advice, i);
        if (tasks <= CS_ADVISE_EACH_TASKS && !(advice->rows[r].each.time > 0) &&
            cs_candidate_may_be_estimated(&advice->base, &advice->candidates.items[i]))
            parts[n++] = i * PARTS + EACH;
    }
    return n;
}

cs_status cs_advise_examine(const cs_advise_options *options, double deadline, cs_advice *advice,
                            cs_error *error)
{
    uint32_t *parts = malloc((advice->n_rows * (size_t)PARTS + 1) * sizeof(*parts)), n = 0;
    if (!parts)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < advice->n_rows * EACH; i++)
        if (!advice->rows[i / EACH].complete)
            parts[n++] = advice->rows[i / EACH].candidate * PARTS + i % EACH;
    if (advice->misfit.candidate != CS_NO_CANDIDATE && !advice->misfit.complete)
        parts[n++] = advice->misfit.candidate * PARTS; /* the misfit is simulated in full only */
    n += add_each(advice, parts + n);
    if (n > 0 && cs_clock_seconds() > deadline) { /* even starting the pool takes a while */
        advice->cut = "time budget used up";
        n = 0;
    }
    const cs_status status = examine_all(options, deadline, advice, parts, n, error);
    free(parts);
    return status;
}

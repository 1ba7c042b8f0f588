#include "sim/study/advise/search.h"

#include "sim/base/hash.h"
#include "sim/base/time.h"
#include "sim/study/advise/osdp-candidates.h"
#include "sim/study/sweep/journal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what candidates have to beat ---- */

static int by_time(const void *left, const void *right)
{
    const cs_found *a = left, *b = right;
    if (a->time < b->time || a->time > b->time)
        return a->time < b->time ? -1 : 1;
    return a->candidate < b->candidate ? -1 : a->candidate > b->candidate;
}

bool cs_candidates_are_alike(const cs_candidate *a, const cs_candidate *b)
{
    return a->devices == b->devices && a->method == b->method && a->layer == b->layer &&
           a->space == b->space && a->context == b->context && a->pipeline == b->pipeline &&
           a->data == b->data && a->expert == b->expert && a->zero == b->zero &&
           a->recompute == b->recompute && !a->more == !b->more;
}

static bool has_row_like(const cs_advice *advice, const cs_standing *standing, uint32_t candidate)
{
    const cs_candidate *items = advice->candidates.items;
    for (uint32_t r = 0; r < standing->n_rows; r++)
        if (cs_candidates_are_alike(&items[standing->rows[r].candidate], &items[candidate]))
            return true;
    return false;
}

cs_status cs_standing_make(const cs_advise_options *options, const cs_advice *advice,
                           cs_standing *standing, cs_error *error)
{
    const size_t room = advice->candidates.n + (size_t)1;
    *standing = (cs_standing){.plans = malloc(2 * room * sizeof(*standing->plans))};
    if (!standing->plans)
        return cs_error_no_memory(error);
    standing->rows = standing->plans + room;
    for (uint32_t i = 0; i < advice->candidates.n; i++)
        if (advice->outcomes[i].state == CS_CANDIDATE_SIMULATED)
            standing->plans[standing->n++] = (cs_found){advice->outcomes[i].step.time, i};
    qsort(standing->plans, standing->n, sizeof(*standing->plans), by_time);
    for (uint32_t k = 0; k < standing->n && standing->n_rows < options->top; k++)
        if (options->all || !has_row_like(advice, standing, standing->plans[k].candidate))
            standing->rows[standing->n_rows++] = standing->plans[k];
    return CS_OK;
}

bool cs_candidates_compete(const cs_candidate *a, const cs_candidate *b)
{
    return a->devices == b->devices && a->method == b->method && (a->layer > 1) == (b->layer > 1) &&
           (a->space > 1) == (b->space > 1) && (a->context > 1) == (b->context > 1) &&
           (a->pipeline > 1) == (b->pipeline > 1) && (a->data > 1) == (b->data > 1) &&
           (a->expert > 1) == (b->expert > 1);
}

/* Returns the time of the best plan with the same strategy and devices; infinite if there is
 * none. */
static double best_of_its_kind(const cs_advice *advice, const cs_standing *standing,
                               const cs_candidate *candidate)
{
    for (uint32_t i = 0; i < standing->n; i++)
        if (cs_candidates_compete(candidate,
                                  &advice->candidates.items[standing->plans[i].candidate]))
            return standing->plans[i].time;
    return INFINITY;
}

/* Whether a known plan needs at most this time and at most this memory. */
static bool is_dominated(const cs_advice *advice, const cs_standing *standing, double time,
                         double memory)
{
    for (uint32_t i = 0; i < standing->n && standing->plans[i].time <= time; i++)
        if ((double)advice->outcomes[standing->plans[i].candidate].step.peak <= memory)
            return true;
    return false;
}

/* Whether a candidate may be an answer other than the best of its strategy and devices. */
static bool may_rank(const cs_advice *advice, const cs_standing *standing, uint32_t top,
                     uint32_t candidate)
{
    const double time = advice->bounds.time[candidate], memory = advice->bounds.memory[candidate];
    if (standing->n_rows < top || time <= standing->rows[top - 1].time)
        return true;
    return time <= advice->base.section.front * standing->plans[0].time &&
           !is_dominated(advice, standing, time, memory);
}

bool cs_advise_may_answer(const cs_advice *advice, const cs_standing *standing, uint32_t top,
                          uint32_t candidate)
{
    return may_rank(advice, standing, top, candidate) ||
           advice->bounds.time[candidate] <=
               best_of_its_kind(advice, standing, &advice->candidates.items[candidate]);
}

/* ---- the state of a search ---- */

static const cs_advice_row *find_row(const cs_advice *advice, uint32_t candidate)
{
    for (uint32_t r = 0; r < advice->n_rows; r++)
        if (advice->rows[r].candidate == candidate)
            return &advice->rows[r];
    return NULL;
}

/* A candidate in the queue, with its bound on time at the time when it was added. */
typedef cs_found queued;

/* Results of the promising plans for one part of the capacity. */
enum { N_PARTS = 4, MOST_TRIED = 256 };
typedef struct hope {
    double best, least; /* s: the fastest time found; the smallest time promised */
    uint32_t failed;    /* number simulated since the fastest was found */
} hope;

struct cs_advise_search {
    const cs_advise_options *options;
    cs_advice *advice;
    cs_journal journal;
    queued *queue; /* heap: smallest bound on time first; ties by number */
    uint32_t n_queued, queue_room;
    uint32_t n_simulated;
    const uint32_t *round; /* candidates being simulated */
    uint32_t n_round;
    /* number of the candidate whose message is advice->refusal; earlier ones were not rejected */
    uint32_t refused;
    /* per candidate: outcome of an earlier run, or open; NULL: there is no earlier run */
    cs_candidate_outcome *earlier;
    uint32_t n_earlier;
    cs_timed_progress timed;
    bool stopped;
    uint32_t n_settled;
    double shown;          /* largest fraction that progress has shown */
    double tasks, seconds; /* tasks simulated, and seconds spent on them */
    double start,
        /* times of cs_clock_seconds: start of the search; end of the search and of the examination
         * of its plans */
        until;
    bool begun, has_osdp;
    /* whether to try promising plans early: not if the number of simulations is limited */
    bool tries;
    hope hopes[N_PARTS];
    uint32_t tried[MOST_TRIED], n_tried; /* promising plans already simulated */
};

static cs_candidate_state state_of(const cs_step *step)
{
    return step->over > 0 ? CS_CANDIDATE_OVER : CS_CANDIDATE_SIMULATED;
}

/* ---- one point ---- */

/* Bit of a pool's point: the point is a price, otherwise a candidate to simulate. */
enum { PRICE_POINT = 1u << 31 };

static void simulate(const cs_advice *advice, uint32_t i, const cs_progress *progress,
                     cs_pool_item *item)
{
    cs_step *step = calloc(1, sizeof(*step));
    cs_scenario scenario = {0};
    if (!step) {
        item->status = cs_error_no_memory(item->error);
        return;
    }
    item->value = step;
    item->value_bytes = sizeof(*step);
    item->status = cs_bounds_read(&advice->base, &advice->candidates, &advice->bounds, i, progress,
                                  &scenario, item->error);
    if (item->status == CS_OK)
        item->status = cs_simulate_step(&scenario, progress, step, item->error);
    cs_scenario_finish(&scenario);
}

/* Runs in several threads at a time, and in other processes. */
static void work(const void *context, uint32_t point, const cs_progress *progress,
                 cs_pool_item *item)
{
    const cs_advice *advice = ((const cs_advise_search *)context)->advice;
    if (point & PRICE_POINT)
        cs_bounds_work(&advice->base, &advice->candidates, &advice->bounds, point & ~PRICE_POINT,
                       progress, item);
    else
        simulate(advice, point, progress, item);
}

/* ---- the journal ---- */

static cs_status note(cs_advise_search *s, uint32_t i, cs_error *error)
{
    const cs_candidate_outcome *outcome = &s->advice->outcomes[i];
    const cs_step *step = &outcome->step;
    char text[256];
    cs_journal_place place;
    if (!s->options->journal)
        return CS_OK;
    const int n = snprintf(
        text, sizeof(text),
        "{\"candidate\": %u, \"possible\": %s, \"time_s\": %.17g, \"peak\": %lld, "
        "\"over\": %lld, \"free\": %lld, \"tasks\": %u}",
        i, outcome->state == CS_CANDIDATE_IMPOSSIBLE ? "false" : "true", step->time,
        (long long)step->peak, (long long)step->over, (long long)step->free, step->n_tasks);
    CS_TRY(cs_journal_append(&s->journal, text, (size_t)n, &place, error));
    return cs_journal_flush(&s->journal, false, error);
}

/* Reads a number from 0 to below the limit. Returns false if there is none. */
static bool take_number(const cJSON *record, const char *key, double limit, double *to)
{
    const cJSON *value = cs_json_member(record, key);
    *to = cJSON_IsNumber(value) ? value->valuedouble : -1;
    return *to >= 0 && *to < limit;
}

static bool take_earlier(void *context, const char *text, cs_journal_place place)
{
    cs_advise_search *s = context;
    cJSON *record = NULL;
    double i, time, peak, over, left, tasks;
    (void)place;
    if (cs_json_parse("journal", text, strlen(text), &record, NULL) != CS_OK)
        return false;
    static const double bytes = 9223372036854775808.0; /* the value 2^63 */
    const bool taken = take_number(record, "candidate", s->n_earlier, &i) && i == floor(i) &&
                       take_number(record, "time_s", INFINITY, &time) &&
                       take_number(record, "peak", bytes, &peak) &&
                       take_number(record, "over", bytes, &over) &&
                       /* INT64_MAX means unlimited */
                       take_number(record, "free", 2 * bytes, &left) &&
                       take_number(record, "tasks", UINT32_MAX, &tasks) &&
                       cJSON_IsBool(cs_json_member(record, "possible"));
    if (taken) {
        cs_candidate_outcome *outcome = &s->earlier[(uint32_t)i];
        const bool possible = cJSON_IsTrue(cs_json_member(record, "possible"));
        outcome->step = (cs_step){time, (int64_t)peak, (int64_t)over,
                                  left < 0x1p63 ? (int64_t)left : INT64_MAX, (uint32_t)tasks};
        outcome->state = possible ? state_of(&outcome->step) : CS_CANDIDATE_IMPOSSIBLE;
    }
    cJSON_Delete(record);
    return taken;
}

/* Identifies the search by a hash of everything that decides its outcomes. */
static cs_status identify(const cs_advise_options *options, const cs_advise_base *base,
                          uint64_t *identity, cs_error *error)
{
    char *text = cs_json_print(base->document);
    const char *version = options->program_version;
    cs_scenario scenario = {0};
    if (!text)
        return cs_error_no_memory(error);
    *identity = cs_hash_bytes(version, strlen(version) + 1, options->exhaustive);
    *identity = cs_hash_bytes(text, strlen(text) + 1, *identity);
    free(text);
    CS_TRY(cs_advise_read_itself(base->document, base->path, false, &scenario, NULL, error));
    *identity = cs_hash_bytes(scenario.resolved, strlen(scenario.resolved) + 1, *identity);
    cs_scenario_finish(&scenario);
    return CS_OK;
}

cs_status cs_advise_identify(const cs_advise_options *options, const cs_advice *advice,
                             cs_error *error)
{
    uint64_t identity;
    if (!options->team)
        return CS_OK;
    CS_TRY(identify(options, &advice->base, &identity, error));
    cs_team_identify(options->team, identity + advice->candidates.n);
    return CS_OK;
}

static cs_status open_journal(cs_advise_search *s, cs_error *error)
{
    uint64_t identity;
    if (!s->options->journal)
        return CS_OK;
    s->n_earlier = CS_CANDIDATES_MAX; /* OSDP's plans are added later */
    s->earlier = calloc(s->n_earlier, sizeof(*s->earlier));
    if (!s->earlier)
        return cs_error_no_memory(error);
    CS_TRY(identify(s->options, &s->advice->base, &identity, error));
    return cs_journal_open(&s->journal, "search", s->options->journal, identity, s->options->resume,
                           take_earlier, s, error);
}

/* ---- rounds ---- */

static bool is_in_time(void *context, const char *what, uint64_t done, uint64_t total)
{
    cs_timed_progress *timed = context;
    timed->late = timed->late || cs_clock_seconds() > timed->deadline;
    return cs_progress_step(timed->inner, what, done, total) && !timed->late;
}

cs_progress cs_timed_progress_of(cs_timed_progress *timed)
{
    return (cs_progress){is_in_time, timed};
}

/* Shows the larger of two fractions: plans settled, and time used. It never decreases. */
static bool goes_on(void *context, const char *what, uint64_t done, uint64_t total)
{
    enum { STEPS = 1 << 20 };
    cs_advise_search *s = context;
    const cs_progress timed = cs_timed_progress_of(&s->timed);
    const double now = cs_clock_seconds(), all = s->advice->candidates.n + 1.0;
    (void)what, (void)done, (void)total;
    /* OSDP's plans come later, and a budget may end the search before all are settled */
    s->shown = fmax(s->shown, s->n_settled / all);
    if (s->timed.deadline < INFINITY)
        s->shown = fmax(s->shown, (now - s->start) / (s->timed.deadline - s->start));
    s->shown = fmin(s->shown, 1 - 1.0 / STEPS);
    const bool on =
        cs_progress_step(&timed, "searching plans", (uint64_t)(s->shown * STEPS), STEPS);
    s->stopped = s->stopped || (!on && !s->timed.late);
    return !s->stopped && !s->timed.late;
}

static cs_status settle_failure(cs_advise_search *s, const cs_pool_item *item, cs_error *error)
{
    cs_candidate_outcome *outcome = &s->advice->outcomes[item->point];
    if (item->status == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    if (item->status == CS_IO) {
        cs_error_add_all(error, item->error);
        return CS_IO;
    }
    outcome->state = CS_CANDIDATE_IMPOSSIBLE;
    uint32_t at = 0;
    while (at < s->n_round && s->round[at] != item->point)
        at++;
    /* the message must not depend on the order of results */
    if (at < s->refused) {
        s->refused = at;
        const char *text = item->error->text;
        s->advice->refusal = cs_arena_copy_length(&s->advice->arena, text, strcspn(text, "\n"));
    }
    return s->advice->refusal ? note(s, item->point, error) : cs_error_no_memory(error);
}

static cs_status collect(void *context, const cs_pool_item *item, cs_error *error)
{
    cs_advise_search *s = context;
    cs_advice *advice = s->advice;
    if (item->point & PRICE_POINT)
        return cs_bounds_collect(&advice->base, &advice->candidates, &advice->bounds,
                                 item->point & ~PRICE_POINT, item, error);
    cs_candidate_outcome *outcome = &advice->outcomes[item->point];
    s->n_settled += outcome->state == CS_CANDIDATE_OPEN; /* otherwise it was pruned before */
    if (item->status != CS_OK)
        return settle_failure(s, item, error);
    memcpy(&outcome->step, item->value, sizeof(outcome->step));
    outcome->state = state_of(&outcome->step);
    s->tasks += outcome->step.n_tasks;
    return note(s, item->point, error);
}

static cs_pool pool_of(cs_advise_search *s, const uint32_t *points, uint32_t n)
{
    return (cs_pool){.what = "searching plans",
                     .points_are = "plans",
                     .work = work,
                     .work_context = s,
                     .collect = collect,
                     .collect_context = s,
                     .points = points,
                     .n_points = n,
                     .jobs = s->options->jobs};
}

/* Points of a round: candidates to simulate, then prices. */
typedef struct points {
    uint32_t items[2 * CS_ADVISE_ROUND];
    uint32_t n_candidates, n_prices;
} points;

static void add_price(points *to, uint32_t price)
{
    for (uint32_t i = 0; i < to->n_prices; i++)
        if (to->items[CS_ADVISE_ROUND + i] == (price | PRICE_POINT))
            return;
    to->items[CS_ADVISE_ROUND + to->n_prices++] = price | PRICE_POINT;
}

/* Runs a round. Returns CS_OK also if it was stopped. */
static cs_status run_round(cs_advise_search *s, points *round, cs_error *error)
{
    const cs_progress progress = {goes_on, s};
    const uint32_t n = round->n_candidates + round->n_prices;
    const double start = cs_clock_seconds();
    cs_error why;
    cs_error_init(&why);
    memmove(round->items + round->n_candidates, round->items + CS_ADVISE_ROUND,
            round->n_prices * sizeof(*round->items));
    const cs_pool pool = pool_of(s, round->items, n);
    if (n == 0)
        return CS_OK;
    s->round = round->items;
    s->n_round = round->n_candidates;
    s->refused = s->advice->refusal ? 0 : s->n_round;
    const cs_status status =
        cs_team_run(s->options->team, CS_ADVISE_SEARCHING, &pool, &progress, &why);
    s->seconds += round->n_candidates > 0 ? cs_clock_seconds() - start : 0;
    if (status == CS_INTERRUPTED && (s->timed.late || s->stopped))
        return CS_OK;
    if (status != CS_OK)
        cs_error_add_all(error, &why);
    return status;
}

/* Adds a candidate to the round, unless an earlier run has simulated it. */
static void take(cs_advise_search *s, uint32_t i, points *round)
{
    cs_candidate_outcome *outcome = &s->advice->outcomes[i];
    s->n_simulated++;
    if (s->earlier && s->earlier[i].state != CS_CANDIDATE_OPEN) {
        s->n_settled += outcome->state == CS_CANDIDATE_OPEN;
        *outcome = s->earlier[i];
    } else {
        round->items[round->n_candidates++] = i;
    }
}

static uint32_t most_simulated(const cs_advise_search *s)
{
    return s->options->most > 0 ? s->options->most : UINT32_MAX;
}

/* ---- the queue ---- */

static bool comes_before(const queued *a, const queued *b)
{
    return a->time < b->time || (!(a->time > b->time) && a->candidate < b->candidate);
}

static void push(cs_advise_search *s, uint32_t candidate)
{
    const queued item = {s->advice->bounds.time[candidate], candidate};
    uint32_t at = s->n_queued++;
    for (uint32_t up; at > 0 && comes_before(&item, &s->queue[up = (at - 1) / 2]); at = up)
        s->queue[at] = s->queue[up];
    s->queue[at] = item;
}

static queued pop(cs_advise_search *s)
{
    const queued first = s->queue[0], item = s->queue[--s->n_queued];
    uint32_t at = 0, down = 1;
    while (down < s->n_queued) {
        if (down + 1 < s->n_queued && comes_before(&s->queue[down + 1], &s->queue[down]))
            down++;
        if (!comes_before(&s->queue[down], &item))
            break;
        s->queue[at] = s->queue[down];
        at = down;
        down = 2 * at + 1;
    }
    s->queue[at] = item;
    return first;
}

/* Takes the next candidate from the queue, by the bounds known now; CS_NO_CANDIDATE: the queue is
 * empty. */
static uint32_t next_candidate(cs_advise_search *s)
{
    while (s->n_queued > 0) {
        const queued first = pop(s);
        if (!(first.time < s->advice->bounds.time[first.candidate]))
            return first.candidate;
        push(s, first.candidate); /* its bound was raised meanwhile */
    }
    return CS_NO_CANDIDATE;
}

/* ---- rounds ---- */

static bool is_priced(const cs_advice *advice, uint32_t i)
{
    return advice->bounds.priced[advice->bounds.of[i]].known;
}

/* Whether a candidate's price shows that it is impossible; if so, sets its outcome. */
static bool is_refused(const cs_advise_search *s, uint32_t i)
{
    cs_advice *advice = s->advice;
    const cs_priced *priced = &advice->bounds.priced[advice->bounds.of[i]];
    if (!priced->known || priced->possible)
        return false;
    advice->outcomes[i].state = CS_CANDIDATE_IMPOSSIBLE;
    advice->refusal = advice->refusal ? advice->refusal : priced->why;
    return true;
}

/* Whether a candidate can be pruned when its turn comes. Prices only raise bounds, so rough bounds
 * are enough. */
static bool leave_out(const cs_advise_search *s, const cs_standing *standing, uint32_t i)
{
    cs_advice *advice = s->advice;
    cs_candidate_outcome *outcome = &advice->outcomes[i];
    if (is_refused(s, i))
        return true;
    if (s->options->exhaustive)
        return false;
    if (advice->bounds.memory[i] > (double)advice->bounds.capacity)
        outcome->state = CS_CANDIDATE_TOO_LARGE;
    else if (!cs_advise_may_answer(advice, standing, s->options->top, i))
        outcome->state = CS_CANDIDATE_SLOWER;
    else
        return false;
    return true;
}

/* Whether a candidate should wait for another one of its strategy and devices in the round. It can
 * be an answer only as the best of these, which the other one most likely is. */
static bool has_rival(const cs_advise_search *s, const cs_standing *standing, const points *round,
                      uint32_t i)
{
    const cs_candidate *items = s->advice->candidates.items;
    bool rival = false;
    for (uint32_t k = 0; k < round->n_candidates && !rival; k++)
        rival = cs_candidates_compete(&items[round->items[k]], &items[i]);
    return rival && !s->options->exhaustive && !may_rank(s->advice, standing, s->options->top, i);
}

/* Fills a round in the order of the bounds. A candidate is simulated if no other may still have a
 * lower bound, so candidates after one without a price wait until it is priced. */
static cs_status choose(cs_advise_search *s, const cs_standing *standing, points *round,
                        cs_error *error)
{
    cs_advice *advice = s->advice;
    uint32_t waiting[4 * CS_ADVISE_ROUND], n_waiting = 0;
    bool in_order = true; /* whether no candidate waits for a price */
    while (round->n_candidates < CS_ADVISE_ROUND && round->n_prices < CS_ADVISE_ROUND &&
           n_waiting < 4 * CS_ADVISE_ROUND && s->n_simulated < most_simulated(s)) {
        const uint32_t i = next_candidate(s);
        if (i == CS_NO_CANDIDATE)
            break;
        if (advice->outcomes[i].state != CS_CANDIDATE_OPEN)
            continue; /* it has been simulated already */
        uint32_t price = CS_NO_CANDIDATE;
        if (leave_out(s, standing, i)) {
            s->n_settled++;
            continue;
        }
        if (!is_priced(advice, i)) {
            price = advice->bounds.of[i];
        } else if (!advice->bounds.followed[i]) {
            CS_TRY(cs_bounds_follow(&advice->base, &advice->candidates, &advice->bounds, i, error));
            push(s, i);
            continue;
        } else {
            price = cs_bounds_sharded_point(&advice->bounds, i);
        }
        if (price != CS_NO_CANDIDATE)
            add_price(round, price);
        in_order &= price == CS_NO_CANDIDATE;
        if (in_order && !has_rival(s, standing, round, i))
            take(s, i, round);
        else
            waiting[n_waiting++] = i;
    }
    while (n_waiting > 0)
        push(s, waiting[--n_waiting]);
    return CS_OK;
}

/* ---- promising plans ---- */

/* Parts of the capacity for promising plans. While bounds are still being computed, each round
 * simulates the most promising plan for each part: such plans are good answers early, and prune
 * others. */
static const double parts[N_PARTS] = {0.9, 0.5, 0.25, 0.12};

static double promised_time(const cs_advice *advice, uint32_t i)
{
    return fmax(advice->bounds.promises[i].time, advice->bounds.time[i]);
}

/* Returns the open plan that promises to be the fastest within this memory, and differs from those
 * already tried. */
static uint32_t most_promising(const cs_advise_search *s, double memory, const points *round)
{
    const cs_advice *advice = s->advice;
    const cs_bounds *bounds = &advice->bounds;
    uint32_t best = CS_NO_CANDIDATE;
    for (uint32_t i = 0; i < advice->candidates.n; i++) {
        const cs_priced *priced = &bounds->priced[bounds->of[i]];
        if (advice->outcomes[i].state != CS_CANDIDATE_OPEN || !(bounds->promises[i].time > 0) ||
            bounds->promises[i].memory > memory || bounds->memory[i] > memory ||
            (priced->known && !priced->possible) ||
            (best != CS_NO_CANDIDATE && promised_time(advice, i) >= promised_time(advice, best)))
            continue;
        bool taken = false; /* whether it, or a similar plan, has been taken */
        for (uint32_t k = 0; k < round->n_candidates && !taken; k++)
            taken = round->items[k] == i;
        for (uint32_t k = 0; k < s->n_tried && !taken; k++)
            taken = cs_candidates_are_alike(&advice->candidates.items[s->tried[k]],
                                            &advice->candidates.items[i]);
        if (!taken)
            best = i;
    }
    return best;
}

/* Adds the most promising plans to a round. After a few attempts in a row without improvement, it
 * adds only a plan that promises more than all of them. */
static void add_promising(cs_advise_search *s, points *round)
{
    enum { MOST_FAILED = 4 };
    const cs_advice *advice = s->advice;
    for (uint32_t k = 0; k < N_PARTS && round->n_candidates < CS_ADVISE_ROUND; k++) {
        const double memory = parts[k] * (double)advice->bounds.capacity;
        hope *of = &s->hopes[k];
        double best = INFINITY;
        for (uint32_t i = 0; i < advice->candidates.n; i++)
            if (advice->outcomes[i].state == CS_CANDIDATE_SIMULATED &&
                (double)advice->outcomes[i].step.peak <= memory)
                best = fmin(best, advice->outcomes[i].step.time);
        if (best < of->best)
            of->failed = 0;
        of->best = best;
        const uint32_t i = most_promising(s, memory, round);
        if (i == CS_NO_CANDIDATE || advice->bounds.time[i] >= best ||
            (of->failed >= MOST_FAILED && promised_time(advice, i) >= of->least))
            continue;
        of->least = fmin(of->least, promised_time(advice, i));
        of->failed++;
        if (s->n_tried < MOST_TRIED)
            s->tried[s->n_tried++] = i;
        take(s, i, round);
    }
}

/* Reserves time for examining the plans that would be shown. Each takes about as long as
 * SIMULATIONS simulations of its step. */
static void keep_time(cs_advise_search *s, const cs_standing *standing)
{
    enum { SIMULATIONS = 9 };
    double tasks = 0;
    for (uint32_t r = 0; r < standing->n_rows; r++) {
        const uint32_t i = standing->rows[r].candidate;
        const cs_advice_row *known = find_row(s->advice, i);
        if (!known || !known->complete)
            tasks += SIMULATIONS * (double)s->advice->outcomes[i].step.n_tasks;
    }
    s->timed.deadline = s->until - (s->tasks > 0 ? tasks * s->seconds / s->tasks : 0);
}

static cs_status do_round(cs_advise_search *s, bool *over, cs_error *error)
{
    points round = {.n_candidates = 0};
    cs_standing standing;
    CS_TRY(cs_standing_make(s->options, s->advice, &standing, error));
    keep_time(s, &standing);
    const uint32_t before = s->n_simulated;
    const cs_status status = choose(s, &standing, &round, error);
    free(standing.plans);
    if (status != CS_OK)
        return status;
    if (s->tries)
        add_promising(s, &round);
    *over = s->n_simulated == before && round.n_prices == 0;
    return run_round(s, &round, error);
}

/* Returns the smallest time of all simulated plans, whether or not they fit; infinite if there are
 * none. */
static double least_time(const cs_advice *advice)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < advice->candidates.n; i++) {
        const cs_candidate_outcome *outcome = &advice->outcomes[i];
        if (outcome->state == CS_CANDIDATE_SIMULATED || outcome->state == CS_CANDIDATE_OVER)
            least = fmin(least, outcome->step.time);
    }
    return least;
}

/* Finds out what more memory would gain: simulates, round by round, plans that cannot fit but could
 * be faster than all simulated plans. */
static cs_status seek_misfit(cs_advise_search *s, bool *over, cs_error *error)
{
    cs_advice *advice = s->advice;
    const double least = least_time(advice);
    points round = {.n_candidates = 0};
    uint32_t n_waiting = 0, waiting[4 * CS_ADVISE_ROUND];
    while (round.n_candidates < CS_ADVISE_ROUND && round.n_prices < CS_ADVISE_ROUND &&
           n_waiting < 4 * CS_ADVISE_ROUND && s->n_simulated < most_simulated(s)) {
        const uint32_t i = next_candidate(s);
        if (i == CS_NO_CANDIDATE || !(advice->bounds.time[i] < least))
            break;
        const cs_priced *priced = &advice->bounds.priced[advice->bounds.of[i]];
        if (priced->known && !priced->possible)
            continue;
        if (!priced->known)
            add_price(&round, advice->bounds.of[i]);
        if (!priced->known || n_waiting > 0) {
            waiting[n_waiting++] = i;
        } else if (!advice->bounds.followed[i]) {
            CS_TRY(cs_bounds_follow(&advice->base, &advice->candidates, &advice->bounds, i, error));
            push(s, i);
        } else {
            take(s, i, &round);
        }
    }
    while (n_waiting > 0)
        push(s, waiting[--n_waiting]);
    *over = round.n_candidates == 0 && round.n_prices == 0;
    return run_round(s, &round, error);
}

static bool goes(const cs_advise_search *s)
{
    return !s->stopped && !s->timed.late;
}

/* Replaces the contents of the queue by all candidates in a state. */
static cs_status enqueue(cs_advise_search *s, cs_candidate_state state, cs_error *error)
{
    const uint32_t n = s->advice->candidates.n;
    queued *queue = realloc(s->queue, (n + 1ULL) * sizeof(*queue));
    if (!queue)
        return cs_error_no_memory(error);
    s->queue = queue;
    s->n_queued = 0;
    for (uint32_t i = 0; i < n; i++)
        if (s->advice->outcomes[i].state == state)
            push(s, i);
    return CS_OK;
}

/* ---- seeds ---- */

/* How early a candidate is simulated before anything is known: those with the least memory first,
 * and of these the quickest to simulate. */
typedef struct seed {
    uint64_t rank[4]; /* ranks, the most important first; smaller values come earlier */
    uint32_t candidate;
} seed;

static int by_rank(const void *left, const void *right)
{
    const seed *a = left, *b = right;
    for (int k = 0; k < 4; k++)
        if (a->rank[k] != b->rank[k])
            return a->rank[k] < b->rank[k] ? -1 : 1;
    return a->candidate < b->candidate ? -1 : a->candidate > b->candidate;
}

static seed seed_of(const cs_advice *advice, uint32_t i)
{
    const cs_candidate *c = &advice->candidates.items[i];
    const uint64_t divided = (uint64_t)c->layer * c->space * c->context;
    const uint64_t passes = (uint64_t)c->pipeline * c->chunks * c->micro_batches;
    return (seed){{(uint64_t)(c->recompute != CS_RECOMPUTE_FULL) + (c->zero < 3), c->micro_samples,
                   UINT32_MAX - divided, passes},
                  i};
}

/* Simulates a few plans that need little memory until one fits, so that there is an answer soon,
 * however many plans there are. */
static cs_status try_seeds(cs_advise_search *s, cs_error *error)
{
    enum { AT_ONCE = 4, MOST = 32 };
    const cs_advice *advice = s->advice;
    const uint32_t n = advice->candidates.n;
    seed *seeds = malloc((n + 1ULL) * sizeof(*seeds));
    if (!seeds)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++)
        seeds[i] = seed_of(advice, i);
    qsort(seeds, n, sizeof(*seeds), by_rank);
    cs_status status = CS_OK;
    bool fits = false;
    for (uint32_t at = 0; status == CS_OK && !fits && at < n && at < MOST && goes(s);) {
        points round = {.n_candidates = 0};
        for (uint32_t k = 0; k < AT_ONCE && at < n; k++)
            take(s, seeds[at++].candidate, &round);
        status = run_round(s, &round, error);
        for (uint32_t k = 0; k < at; k++)
            fits |= advice->outcomes[seeds[k].candidate].state == CS_CANDIDATE_SIMULATED;
    }
    free(seeds);
    return status;
}

/* ---- the whole search ---- */

/* Handles the end of work outside of rounds, on bounds and candidates; CS_OK also if it was
 * stopped. */
static cs_status settle_stop(const cs_advise_search *s, cs_status status, const cs_error *why,
                             cs_error *error)
{
    if (status == CS_OK || (status == CS_INTERRUPTED && !goes(s)))
        return CS_OK;
    cs_error_add_all(error, why);
    return status;
}

/* Computes the first price of each model, a few at a time, in an order that reaches models of all
 * kinds early. */
static cs_status price_models(cs_advise_search *s, cs_error *error)
{
    enum { AT_ONCE = 16, PRIME = 7919 };
    const cs_progress progress = {goes_on, s};
    cs_advice *advice = s->advice;
    uint32_t *listed, n, batch[AT_ONCE];
    CS_TRY(cs_bounds_list_prices(&advice->bounds, true, &listed, &n, error));
    const uint64_t step = n % PRIME > 0 ? PRIME : 1; /* a step without a common divisor with n */
    cs_status status = CS_OK;
    for (uint32_t at = 0; status == CS_OK && at < n && goes(s); at += AT_ONCE) {
        const uint32_t size = n - at < AT_ONCE ? n - at : AT_ONCE;
        cs_error why;
        cs_error_init(&why);
        for (uint32_t k = 0; k < size; k++)
            batch[k] = listed[(at + k) * step % n];
        status = cs_bounds_price_some(&advice->base, &advice->candidates, batch, size,
                                      s->options->jobs, &progress, &advice->bounds, &why);
        status = settle_stop(s, status, &why, error);
        points round = {.n_candidates = 0};
        if (status == CS_OK && s->tries && goes(s)) {
            add_promising(s, &round);
            status = run_round(s, &round, error);
        }
    }
    free(listed);
    return status;
}

/* Adds OSDP's plans, which take a while to make, after all others are settled. */
static cs_status add_osdp(cs_advise_search *s, cs_error *error)
{
    const cs_progress progress = {goes_on, s};
    cs_advice *advice = s->advice;
    const uint32_t before = advice->candidates.n;
    cs_error why;
    cs_error_init(&why);
    const cs_status status = cs_osdp_candidates_add(&advice->base, &advice->bounds, &progress,
                                                    &advice->candidates, &why);
    if (status != CS_OK) {
        advice->candidates.n = before;
        return settle_stop(s, status, &why, error);
    }
    s->has_osdp = true;
    const uint32_t n = advice->candidates.n;
    cs_candidate_outcome *outcomes = realloc(advice->outcomes, (n + 1ULL) * sizeof(*outcomes));
    if (!outcomes)
        return cs_error_no_memory(error);
    memset(outcomes + before, 0, (n - before) * sizeof(*outcomes));
    advice->outcomes = outcomes;
    return cs_bounds_extend(&advice->candidates, &advice->bounds, error);
}

static cs_status settle_all(cs_advise_search *s, cs_error *error)
{
    CS_TRY(price_models(s, error));
    if (goes(s))
        CS_TRY(enqueue(s, CS_CANDIDATE_OPEN, error));
    for (bool over = false; !over && goes(s);)
        CS_TRY(do_round(s, &over, error));
    return CS_OK;
}

static cs_status run(cs_advise_search *s, cs_error *error)
{
    if (!s->begun && s->tries)
        CS_TRY(try_seeds(s, error));
    s->begun = true;
    if (goes(s))
        CS_TRY(settle_all(s, error));
    if (goes(s) && !s->has_osdp) {
        CS_TRY(add_osdp(s, error));
        if (goes(s))
            CS_TRY(settle_all(s, error));
    }
    if (goes(s))
        CS_TRY(enqueue(s, CS_CANDIDATE_TOO_LARGE, error));
    for (bool over = false; !over && goes(s);)
        CS_TRY(seek_misfit(s, &over, error));
    return CS_OK;
}

static void say_cut(cs_advise_search *s)
{
    cs_advice *advice = s->advice;
    uint32_t n_open = 0;
    for (uint32_t i = 0; i < advice->candidates.n; i++)
        n_open += advice->outcomes[i].state == CS_CANDIDATE_OPEN;
    advice->interrupted = s->stopped;
    advice->cut = s->stopped      ? "interrupted"
                  : s->timed.late ? "time budget used up"
                  : n_open > 0    ? "the plans of --most were simulated"
                                  : NULL;
}

cs_status cs_advise_help_search(const cs_advise_options *options, cs_advice *advice,
                                cs_error *error)
{
    cs_advise_search s = {.options = options, .advice = advice};
    const cs_pool pool = pool_of(&s, NULL, 0);
    uint32_t *firsts, n;
    CS_TRY(cs_bounds_list_prices(&advice->bounds, true, &firsts, &n, error));
    const cs_status status =
        cs_bounds_price_some(&advice->base, &advice->candidates, firsts, n, options->jobs,
                             options->progress, &advice->bounds, error);
    free(firsts);
    if (status != CS_OK)
        return status;
    return cs_team_run(options->team, CS_ADVISE_SEARCHING, &pool, options->progress, error);
}

cs_status cs_advise_search_create(const cs_advise_options *options, cs_advice *advice,
                                  cs_advise_search **made, cs_error *error)
{
    cs_advise_search *s = calloc(1, sizeof(*s));
    if (!s)
        return cs_error_no_memory(error);
    *s = (cs_advise_search){
        .options = options, .advice = advice, .journal = {.file = -1}, .tries = options->most == 0};
    for (uint32_t k = 0; k < N_PARTS; k++)
        s->hopes[k] = (hope){.best = INFINITY, .least = INFINITY};
    const cs_status status = open_journal(s, error);
    if (status == CS_OK)
        *made = s;
    else
        cs_advise_search_destroy(s);
    return status;
}

void cs_advise_search_destroy(cs_advise_search *search)
{
    if (!search)
        return;
    cs_journal_close(&search->journal);
    free(search->queue);
    free(search->earlier);
    free(search);
}

cs_status cs_advise_search_run(cs_advise_search *s, double deadline, cs_error *error)
{
    s->timed = (cs_timed_progress){.inner = s->options->progress, .deadline = deadline};
    s->until = deadline;
    s->start = s->begun ? s->start : cs_clock_seconds();
    cs_status status = run(s, error);
    say_cut(s);
    (void)cs_progress_step(s->options->progress, "searching plans", 1, 1);
    if (status == CS_OK && s->options->journal)
        status = cs_journal_flush(&s->journal, true, error);
    if (status == CS_OK && !s->advice->cut)
        cs_journal_remove(&s->journal);
    return status;
}

/* ---- ranking ---- */

/* Finds the fastest plan that does not fit, if it is faster than all plans that fit. */
static uint32_t find_misfit(const cs_advice *advice, const cs_standing *standing)
{
    uint32_t best = CS_NO_CANDIDATE;
    double least = standing->n > 0 ? standing->plans[0].time : INFINITY;
    for (uint32_t i = 0; i < advice->candidates.n; i++) {
        const cs_candidate_outcome *outcome = &advice->outcomes[i];
        if (outcome->state == CS_CANDIDATE_OVER && outcome->step.time < least) {
            least = outcome->step.time;
            best = i;
        }
    }
    return best;
}

static void mark_answers(const cs_standing *standing, cs_advice *advice)
{
    double room = INFINITY;
    for (uint32_t i = 0; i < advice->candidates.n; i++)
        advice->outcomes[i].front = advice->outcomes[i].answer = false;
    for (uint32_t k = 0; k < standing->n; k++) {
        const uint32_t i = standing->plans[k].candidate;
        cs_candidate_outcome *outcome = &advice->outcomes[i];
        const double time = standing->plans[k].time;
        outcome->front = time <= advice->base.section.front * standing->plans[0].time &&
                         (double)outcome->step.peak < room;
        if (outcome->front)
            room = (double)outcome->step.peak;
        const double best = best_of_its_kind(advice, standing, &advice->candidates.items[i]);
        outcome->answer = outcome->front || time <= best;
    }
    for (uint32_t r = 0; r < standing->n_rows; r++)
        advice->outcomes[standing->rows[r].candidate].answer = true;
}

cs_status cs_advise_rank(const cs_advise_options *options, cs_advice *advice, cs_error *error)
{
    cs_standing standing;
    CS_TRY(cs_standing_make(options, advice, &standing, error));
    cs_advice_row *rows = calloc(options->top + 1ULL, sizeof(*rows));
    if (!rows) {
        free(standing.plans);
        return cs_error_no_memory(error);
    }
    mark_answers(&standing, advice);
    for (uint32_t r = 0; r < standing.n_rows; r++) {
        const cs_advice_row *known = find_row(advice, standing.rows[r].candidate);
        rows[r] = known && known->complete
                      ? *known
                      : (cs_advice_row){.candidate = standing.rows[r].candidate};
    }
    const uint32_t misfit = find_misfit(advice, &standing);
    if (misfit != advice->misfit.candidate)
        advice->misfit = (cs_advice_row){.candidate = misfit};
    free(standing.plans);
    free(advice->rows);
    advice->rows = rows;
    advice->n_rows = standing.n_rows;
    return CS_OK;
}

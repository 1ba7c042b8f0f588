#include "sim/advise/search.h"

#include "sim/base/hash.h"
#include "sim/base/time.h"
#include "sim/sweep/journal.h"

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

/* The time of the best plan of its strategy and devices; infinite while there is none. */
static double best_of_its_kind(const cs_advice *advice, const cs_standing *standing,
                               const cs_candidate *candidate)
{
    for (uint32_t i = 0; i < standing->n; i++)
        if (cs_candidates_compete(candidate,
                                  &advice->candidates.items[standing->plans[i].candidate]))
            return standing->plans[i].time;
    return INFINITY;
}

/* Whether a plan was found that takes no more time and no more memory. */
static bool is_dominated(const cs_advice *advice, const cs_standing *standing, double time,
                         double memory)
{
    for (uint32_t i = 0; i < standing->n && standing->plans[i].time <= time; i++)
        if ((double)advice->outcomes[standing->plans[i].candidate].step.peak <= memory)
            return true;
    return false;
}

bool cs_advise_may_answer(const cs_advice *advice, const cs_standing *standing, uint32_t top,
                          uint32_t candidate)
{
    const double time = advice->bounds.time[candidate], memory = advice->bounds.memory[candidate];
    if (standing->n_rows < top || time <= standing->rows[top - 1].time)
        return true;
    if (time <= best_of_its_kind(advice, standing, &advice->candidates.items[candidate]))
        return true;
    return time <= advice->base.section.front * standing->plans[0].time &&
           !is_dominated(advice, standing, time, memory);
}

/* ---- one candidate ---- */

typedef struct search {
    const cs_advise_options *options;
    cs_advice *advice;
    cs_journal journal;
    uint32_t *order; /* candidates by bound on time */
    uint32_t at;     /* in `order`: those before are settled */
    uint32_t n_simulated;
    const uint32_t *round; /* its candidates */
    uint32_t refused;      /* whose message advice->refusal is: those before were not refused */
    bool *known;           /* per candidate: an earlier run simulated it; its outcome is there */
    cs_timed_progress timed;
    bool stopped;
    uint32_t n_settled; /* for progress */
} search;

static cs_candidate_state state_of(const cs_step *step)
{
    return step->over > 0 ? CS_CANDIDATE_OVER : CS_CANDIDATE_SIMULATED;
}

/* Runs in several threads at a time, and in other processes. */
static void work(const void *context, uint32_t i, const cs_progress *progress, cs_pool_item *item)
{
    const search *s = context;
    const cs_advice *advice = s->advice;
    cs_step *step = malloc(sizeof(*step));
    cs_scenario scenario = {0};
    if (!step) {
        item->status = cs_error_no_memory(item->error);
        return;
    }
    item->value = step;
    item->value_bytes = sizeof(*step);
    *step = (cs_step){0};
    item->status = cs_bounds_read(&advice->base, &advice->candidates, &advice->bounds, i, progress,
                                  &scenario, item->error);
    if (item->status == CS_OK)
        item->status = cs_simulate_step(&scenario, progress, step, item->error);
    cs_scenario_finish(&scenario);
}

/* ---- the journal ---- */

static cs_status note(search *s, uint32_t i, cs_error *error)
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

/* A number of at least 0 and below the limit; false: it is none. */
static bool take_number(const cJSON *record, const char *key, double limit, double *to)
{
    const cJSON *value = cs_json_member(record, key);
    *to = cJSON_IsNumber(value) ? value->valuedouble : -1;
    return *to >= 0 && *to < limit;
}

static bool take_earlier(void *context, const char *text, cs_journal_place place)
{
    search *s = context;
    cJSON *record = NULL;
    double i, time, peak, over, left, tasks;
    (void)place;
    if (cs_json_parse("journal", text, strlen(text), &record, NULL) != CS_OK)
        return false;
    static const double bytes = 9223372036854775808.0; /* 2^63 */
    const bool taken = take_number(record, "candidate", s->advice->candidates.n, &i) &&
                       i == floor(i) && take_number(record, "time_s", INFINITY, &time) &&
                       take_number(record, "peak", bytes, &peak) &&
                       take_number(record, "over", bytes, &over) &&
                       take_number(record, "free", 2 * bytes, &left) && /* INT64_MAX: unlimited */
                       take_number(record, "tasks", UINT32_MAX, &tasks) &&
                       cJSON_IsBool(cs_json_member(record, "possible"));
    if (taken) {
        cs_candidate_outcome *outcome = &s->advice->outcomes[(uint32_t)i];
        const bool possible = cJSON_IsTrue(cs_json_member(record, "possible"));
        outcome->step = (cs_step){time, (int64_t)peak, (int64_t)over,
                                  left < 0x1p63 ? (int64_t)left : INT64_MAX, (uint32_t)tasks};
        outcome->state = possible ? state_of(&outcome->step) : CS_CANDIDATE_IMPOSSIBLE;
        s->known[(uint32_t)i] = true;
    }
    cJSON_Delete(record);
    return taken;
}

/* Which search it is: a hash of all that decides its outcomes. */
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

static cs_status open_journal(search *s, cs_error *error)
{
    uint64_t identity;
    if (!s->options->journal)
        return CS_OK;
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

static bool goes_on(void *context, const char *what, uint64_t done, uint64_t total)
{
    search *s = context;
    const cs_progress timed = cs_timed_progress_of(&s->timed);
    (void)what, (void)total;
    const bool on =
        cs_progress_step(&timed, "simulating plans", s->n_settled + done, s->advice->candidates.n);
    s->stopped = s->stopped || (!on && !s->timed.late);
    return !s->stopped && !s->timed.late;
}

static cs_status settle_failure(search *s, const cs_pool_item *item, cs_error *error)
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
    while (s->round[at] != item->point)
        at++;
    if (at < s->refused) { /* what is said does not depend on which is collected first */
        s->refused = at;
        const char *text = item->error->text;
        s->advice->refusal = cs_arena_copy_length(&s->advice->arena, text, strcspn(text, "\n"));
    }
    return s->advice->refusal ? note(s, item->point, error) : cs_error_no_memory(error);
}

static cs_status collect(void *context, const cs_pool_item *item, cs_error *error)
{
    search *s = context;
    cs_candidate_outcome *outcome = &s->advice->outcomes[item->point];
    if (item->status != CS_OK)
        return settle_failure(s, item, error);
    memcpy(&outcome->step, item->value, sizeof(outcome->step));
    outcome->state = state_of(&outcome->step);
    return note(s, item->point, error);
}

static cs_pool pool_of(search *s, const uint32_t *points, uint32_t n)
{
    return (cs_pool){.what = "simulating plans",
                     .points_are = "plans",
                     .work = work,
                     .work_context = s,
                     .collect = collect,
                     .collect_context = s,
                     .points = points,
                     .n_points = n,
                     .jobs = s->options->jobs};
}

/* Simulates the candidates of a round; CS_OK also when it was stopped. */
static cs_status run_round(search *s, const uint32_t *points, uint32_t n, cs_error *error)
{
    const cs_progress progress = {goes_on, s};
    cs_error why;
    cs_error_init(&why);
    const cs_pool pool = pool_of(s, points, n);
    s->round = points;
    s->refused = s->advice->refusal ? 0 : n;
    const cs_status status =
        cs_team_run(s->options->team, CS_ADVISE_SEARCHING, &pool, &progress, &why);
    if (status == CS_INTERRUPTED && (s->timed.late || s->stopped))
        return CS_OK;
    if (status != CS_OK)
        cs_error_add_all(error, &why);
    return status;
}

/* A candidate whose turn it is: settled without simulating, or not. */
static bool leave_out(search *s, const cs_standing *standing, uint32_t i)
{
    cs_advice *advice = s->advice;
    const cs_priced *priced = &advice->bounds.priced[advice->bounds.of[i]];
    cs_candidate_outcome *outcome = &advice->outcomes[i];
    if (!priced->possible) {
        outcome->state = CS_CANDIDATE_IMPOSSIBLE;
        advice->refusal = advice->refusal ? advice->refusal : priced->why;
        return true;
    }
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

/* Candidates until the round is full; those that an earlier run simulated count as well. */
static uint32_t choose(search *s, const cs_standing *standing, uint32_t points[CS_ADVISE_ROUND])
{
    const uint32_t most = s->options->most > 0 ? s->options->most : UINT32_MAX;
    uint32_t n = 0, taken = 0;
    while (s->at < s->advice->candidates.n && taken < CS_ADVISE_ROUND && s->n_simulated < most) {
        const uint32_t i = s->order[s->at++];
        s->n_settled++;
        const bool known = s->known[i];
        if (leave_out(s, standing, i))
            continue;
        s->n_simulated++;
        taken++;
        if (!known)
            points[n++] = i;
    }
    s->n_settled -= n; /* counted while they are simulated */
    return n;
}

static cs_status do_round(search *s, bool *over, cs_error *error)
{
    uint32_t points[CS_ADVISE_ROUND];
    cs_standing standing;
    CS_TRY(cs_standing_make(s->options, s->advice, &standing, error));
    const uint32_t before = s->at, n = choose(s, &standing, points);
    free(standing.plans);
    *over = s->at == before;
    if (n == 0)
        return CS_OK;
    CS_TRY(run_round(s, points, n, error));
    s->n_settled += n;
    return CS_OK;
}

static void say_cut(search *s)
{
    cs_advice *advice = s->advice;
    const bool all = s->at == advice->candidates.n && !s->stopped && !s->timed.late;
    advice->interrupted = s->stopped;
    advice->cut = all             ? NULL
                  : s->stopped    ? "it was interrupted"
                  : s->timed.late ? "the time of --budget was used"
                                  : "the plans of --most were simulated";
}

/* What an earlier run simulated of candidates whose turn has not come is of no use. */
static void forget_unused(search *s)
{
    for (uint32_t i = s->at; i < s->advice->candidates.n; i++)
        s->advice->outcomes[s->order[i]].state = CS_CANDIDATE_OPEN;
}

/* The least time of those simulated, whether or not they fit; infinite where there are none. */
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

/* What the memory costs: of the plans that cannot fit those are simulated, round by round, that
 * could be faster than all that were. */
static cs_status seek_misfit(search *s, bool *over, cs_error *error)
{
    const cs_advice *advice = s->advice;
    const uint32_t most = s->options->most > 0 ? s->options->most : UINT32_MAX;
    const double least = least_time(advice);
    uint32_t points[CS_ADVISE_ROUND], n = 0, taken = 0;
    for (uint32_t k = 0; k < advice->candidates.n && taken < CS_ADVISE_ROUND; k++) {
        const uint32_t i = s->order[k];
        if (advice->outcomes[i].state != CS_CANDIDATE_TOO_LARGE ||
            !(advice->bounds.time[i] < least) || s->n_simulated >= most)
            continue;
        s->n_simulated++;
        taken++;
        if (s->known[i])
            s->advice->outcomes[i].state = state_of(&advice->outcomes[i].step);
        else
            points[n++] = i;
    }
    *over = taken == 0;
    return n > 0 ? run_round(s, points, n, error) : CS_OK;
}

static cs_status run(search *s, cs_error *error)
{
    cs_status status = open_journal(s, error);
    for (bool over = false; status == CS_OK && !over && !s->stopped && !s->timed.late;)
        status = do_round(s, &over, error);
    for (bool over = false; status == CS_OK && !over && !s->stopped && !s->timed.late;)
        status = seek_misfit(s, &over, error);
    forget_unused(s);
    say_cut(s);
    (void)cs_progress_step(s->options->progress, "simulating plans", 1, 1);
    if (status == CS_OK && s->options->journal)
        status = cs_journal_flush(&s->journal, true, error);
    if (status == CS_OK && !s->advice->cut)
        cs_journal_remove(&s->journal);
    cs_journal_close(&s->journal);
    return status;
}

static cs_status sort_candidates(search *s, cs_error *error)
{
    const uint32_t n = s->advice->candidates.n;
    cs_found *all = malloc((n + 1ULL) * sizeof(*all));
    if (!all)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++)
        all[i] = (cs_found){s->advice->bounds.time[i], i};
    qsort(all, n, sizeof(*all), by_time);
    for (uint32_t i = 0; i < n; i++)
        s->order[i] = all[i].candidate;
    free(all);
    return CS_OK;
}

cs_status cs_advise_help_search(const cs_advise_options *options, cs_advice *advice,
                                cs_error *error)
{
    search s = {.options = options, .advice = advice};
    const cs_pool pool = pool_of(&s, NULL, 0);
    return cs_team_run(options->team, CS_ADVISE_SEARCHING, &pool, options->progress, error);
}

cs_status cs_advise_search(const cs_advise_options *options, double deadline, cs_advice *advice,
                           cs_error *error)
{
    const size_t n = advice->candidates.n + (size_t)1;
    search s = {.options = options,
                .advice = advice,
                .journal = {.file = -1},
                .order = malloc(n * sizeof(*s.order)),
                .known = calloc(n, sizeof(*s.known)),
                .timed = {.inner = options->progress, .deadline = deadline}};
    cs_status status = s.order && s.known ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status = sort_candidates(&s, error);
    if (status == CS_OK)
        status = run(&s, error);
    free(s.order);
    free(s.known);
    return status;
}

/* ---- ranking ---- */

/* The fastest plan that does not fit, if it is faster than all that do. */
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
    mark_answers(&standing, advice);
    advice->rows = calloc(options->top + 1ULL, sizeof(*advice->rows));
    if (advice->rows)
        advice->n_rows = standing.n_rows;
    for (uint32_t r = 0; r < advice->n_rows; r++)
        advice->rows[r].candidate = standing.rows[r].candidate;
    advice->misfit.candidate = find_misfit(advice, &standing);
    free(standing.plans);
    return advice->rows ? CS_OK : cs_error_no_memory(error);
}

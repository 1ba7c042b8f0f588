#include "sim/study/advise/advise-report.h"

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/run/figures.h"
#include "sim/run/print/capacity.h"
#include "sim/run/print/wrap.h"
#include "sim/study/advise/advise-table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STRATEGIES = 10, INDENT = 8, START = 256 };

static const char *const doubts[CS_N_DOUBTS] = {"links -10 %", "links +10 %", "devices -10 %",
                                                "devices +10 %"};
static const char *const doubt_keys[CS_N_DOUBTS] = {"links_slower", "links_faster",
                                                    "devices_slower", "devices_faster"};

static const cs_candidate *plan_of(const cs_advice *advice, uint32_t i)
{
    return &advice->candidates.items[i];
}

static double share(double part, double of)
{
    return of > 0 ? 100 * part / of : 0;
}

static cs_units_value time_text(double seconds)
{
    return cs_units_text(seconds, CS_QUANTITY_TIME, 4);
}

static cs_units_value bytes_text(double bytes)
{
    return cs_units_text(bytes, CS_QUANTITY_BYTES, 4);
}

/* Prints `start` and the plan in words: "      15.97 s   80.16 GB  tensor 2 x ...". */
static void print_plan(const cs_advice *advice, uint32_t i, const char *start, FILE *out)
{
    char plan[CS_CANDIDATE_TEXT_BYTES];
    fputs(start, out);
    cs_wrap(out, strlen(start), INDENT, CS_WRAP_REPORT,
            cs_candidate_text(plan_of(advice, i), plan, sizeof(plan)));
}

/* ---- what was tried ---- */

static uint32_t count(const cs_advice *advice, cs_candidate_state state)
{
    return advice->n_states[state];
}

/* Prints how many plans the runtime cannot run, by rule. */
static void print_excluded(const cs_advice *advice, FILE *out)
{
    const cs_candidates *all = &advice->candidates;
    const cs_runtime_rules *rules = &advice->base.rules;
    if (all->n_excluded == 0)
        return;
    fprintf(out, "%u more plans left out, which %s cannot run:\n", all->n_excluded, rules->runtime);
    for (uint32_t i = 0; i < CS_RUNTIME_RULES_MOST; i++) {
        char line[START];
        if (all->excluded[i] == 0)
            continue;
        snprintf(line, sizeof(line), "  %u: it %s", all->excluded[i], rules->items[i].text);
        cs_wrap(out, 0, 4, CS_WRAP_REPORT, line);
    }
}

static void print_counts(const cs_advice *advice, FILE *out)
{
    const uint32_t fit = count(advice, CS_CANDIDATE_SIMULATED),
                   over = count(advice, CS_CANDIDATE_OVER);
    const struct {
        const char *before, *after;
        uint32_t n;
    } parts[] = {{" (", " of them out of memory)", over},
                 {", ", " pruned as slower", count(advice, CS_CANDIDATE_SLOWER)},
                 {", ", " pruned as too large", count(advice, CS_CANDIDATE_TOO_LARGE)},
                 {", ", " impossible", count(advice, CS_CANDIDATE_IMPOSSIBLE)}};
    char line[START];
    int used =
        snprintf(line, sizeof(line), "%u plans: %u simulated", advice->candidates.n, fit + over);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (parts[i].n > 0)
            used += snprintf(line + used, sizeof(line) - (size_t)used, "%s%u%s", parts[i].before,
                             parts[i].n, parts[i].after);
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
    print_excluded(advice, out);
    if (advice->cut && count(advice, CS_CANDIDATE_OPEN) > 0)
        fprintf(out, "Incomplete: %u plans not evaluated (%s)\n", count(advice, CS_CANDIDATE_OPEN),
                advice->cut);
    else if (advice->cut)
        fprintf(out, "All plans evaluated, but not all of the best examined (%s)\n", advice->cut);
}

/* ---- the table ---- */

/* Returns the main limit, such as "bubbles"; "computing" if no limit takes a twentieth of the
 * step's `time`. */
static const char *limit_name(const cs_limits *limits, double time)
{
    return limits->seconds[limits->first] < 0.05 * time ? "computing"
                                                        : cs_limit_names[limits->first];
}

/* Writes the main limit and its share: "bubbles 12 %", "computing". */
static void limit_text(const cs_advice_row *row, double time, char *text, size_t size)
{
    const cs_limits *limits = &row->limits;
    const double part = limits->seconds[limits->first];
    if (!row->complete)
        snprintf(text, size, "-");
    else if (part < 0.05 * time)
        snprintf(text, size, "%s", limit_name(limits, time));
    else
        snprintf(text, size, "%s %.0f %%", limit_name(limits, time), share(part, time));
}

static void print_share(double part, double of, FILE *out)
{
    char text[16];
    snprintf(text, sizeof(text), "%.1f %%", share(part, of));
    fprintf(out, " %8s", text);
}

static void print_parts(const cs_advice *advice, FILE *out)
{
    char limit[64];
    fprintf(out, "\nwhere the time goes\n%4s %8s %8s %8s %8s   %s\n", "rank", "compute", "exposed",
            "waiting", "update", "limited by");
    for (uint32_t r = 0; r < advice->n_rows; r++) {
        const cs_advice_row *row = &advice->rows[r];
        const cs_limits *limits = &row->limits;
        const double time = advice->outcomes[row->candidate].step.time;
        if (!row->complete)
            continue;
        fprintf(out, "%4u", r + 1);
        print_share(limits->computing, time, out);
        print_share(limits->exposed, time, out);
        print_share(limits->waiting, time, out);
        print_share(limits->update, time, out);
        limit_text(row, time, limit, sizeof(limit));
        fprintf(out, "   %s\n", limit);
    }
}

/* Prints how accurate the estimates are. */
static void print_each(const cs_advice *advice, FILE *out)
{
    char line[512] = "~ estimated: one device is simulated for all of its stage, though their ways "
                     "through the network differ, and takes as long as the slowest";
    size_t used = strlen(line);
    const char *before = "; with every device:";
    bool any = false;
    for (uint32_t r = 0; r < advice->n_rows; r++) {
        const cs_advice_row *row = &advice->rows[r];
        const double time = advice->outcomes[row->candidate].step.time;
        any |= row->estimated;
        if (!row->estimated || !(row->each.time > 0))
            continue;
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s rank %u %s (%+.3f %%), %s",
                                 before, r + 1, time_text(row->each.time).s,
                                 share(row->each.time - time, time),
                                 bytes_text((double)row->each.peak).s);
        before = ";";
    }
    if (any)
        cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
}

/* Prints the memory of a device, as plans see it. */
static void print_capacity(const cs_advice *advice, FILE *out)
{
    const uint32_t devices = plan_of(advice, advice->rows[0].candidate)->devices;
    for (uint32_t i = 0; i < advice->bounds.n_platforms; i++)
        if (advice->bounds.platforms[i].devices == devices)
            cs_capacity_print(&advice->bounds.platforms[i].scenario.platform, out);
}

static void print_rows(const cs_advice *advice, bool all, FILE *out)
{
    cs_advice_table_print(advice, out);
    if (!all)
        cs_wrap(out, 0, 2, CS_WRAP_REPORT,
                "each row is the fastest of its sizes, ZeRO stage and recomputation; --all ranks "
                "every plan");
    print_each(advice, out);
    print_capacity(advice, out);
}

/* ---- the front ---- */

typedef struct ordered {
    double time;
    uint32_t candidate;
} ordered;

static int by_time(const void *left, const void *right)
{
    const ordered *a = left, *b = right;
    if (a->time < b->time || a->time > b->time)
        return a->time < b->time ? -1 : 1;
    return a->candidate < b->candidate ? -1 : a->candidate > b->candidate;
}

/* Lists the plans of the front, the fastest first; the caller frees the list. NULL if memory runs
 * out. */
static ordered *make_front(const cs_advice *advice, uint32_t *n)
{
    ordered *front = malloc((advice->candidates.n + 1ULL) * sizeof(*front));
    *n = 0;
    for (uint32_t i = 0; front && i < advice->candidates.n; i++)
        if (advice->outcomes[i].front)
            front[(*n)++] = (ordered){advice->outcomes[i].step.time, i};
    if (front)
        qsort(front, *n, sizeof(*front), by_time);
    return front;
}

/* Prints the front, without plans that save little memory compared with a faster plan. */
static cs_status print_front(const cs_advice *advice, bool all, FILE *out, cs_error *error)
{
    static const double worth = 0.99;
    char start[START];
    uint32_t n;
    double before = INFINITY;
    ordered *front = make_front(advice, &n);
    if (!front)
        return cs_error_no_memory(error);
    fprintf(out, "\n* Pareto front of step time and memory (up to %gx the best time%s)\n",
            advice->base.section.front, all ? "" : "; each saves at least 1 % of memory");
    for (uint32_t k = 0; k < n; k++) {
        const double peak = (double)advice->outcomes[front[k].candidate].step.peak;
        if (!all && peak > worth * before)
            continue;
        before = peak;
        snprintf(start, sizeof(start), "      %-9s %-9s ", time_text(front[k].time).s,
                 bytes_text(peak).s);
        print_plan(advice, front[k].candidate, start, out);
    }
    free(front);
    return CS_OK;
}

/* Finds the fit of a plan's fullest device. The reserve counts as exact here. */
static cs_status fit_of(const cs_step *step, cs_memory_fit *fit, cs_error *error)
{
    const bool limited = step->over > 0 || step->free < INT64_MAX;
    return cs_memory_fit_of(limited ? step->peak - step->over + step->free : INT64_MAX, 0,
                            step->peak, fit, error);
}

/* Prints the fastest plan that leaves a tenth of the memory free, because peaks do not count
 * everything. If there is such a plan, it is on the front. */
static cs_status print_roomy(const cs_advice *advice, FILE *out, cs_error *error)
{
    static const double most = 0.9;
    const cs_step *first = &advice->outcomes[advice->rows[0].candidate].step;
    const double best = (double)first->peak, capacity = best + (double)first->free;
    uint32_t n, k = 0;
    char start[START];
    cs_memory_fit fit;
    if (first->free == INT64_MAX || best <= most * capacity)
        return CS_OK;
    CS_TRY(fit_of(first, &fit, error));
    ordered *front = make_front(advice, &n);
    if (!front)
        return cs_error_no_memory(error);
    while (k < n && (double)advice->outcomes[front[k].candidate].step.peak > most * capacity)
        k++;
    fprintf(out, "%sthe best leaves %.2g %% of memory free, fits in %.0f of 100; ",
            strcmp(cs_memory_fit_verdict(&fit), "tight") == 0 ? "TIGHT: " : "",
            share(capacity - best, capacity), 100 * fit.probability);
    if (k == n)
        fprintf(out, "none on the front leaves a tenth\n");
    else {
        fputs("the fastest that leaves a tenth:\n", out);
        const cs_step *step = &advice->outcomes[front[k].candidate].step;
        snprintf(start, sizeof(start), "      %-9s %-9s ", time_text(step->time).s,
                 bytes_text((double)step->peak).s);
        print_plan(advice, front[k].candidate, start, out);
    }
    free(front);
    return CS_OK;
}

/* ---- strategies ---- */

static bool has_strategy(const cs_advice *advice, const ordered *of, uint32_t n, uint32_t plan)
{
    for (uint32_t i = 0; i < n; i++)
        if (cs_candidates_compete(plan_of(advice, of[i].candidate), plan_of(advice, plan)))
            return true;
    return false;
}

/* Finds the fastest plan of each of the fastest strategies. */
static cs_status find_strategies(const cs_advice *advice, ordered best[MOST_STRATEGIES],
                                 uint32_t *n_best, cs_error *error)
{
    ordered *plans = malloc((advice->candidates.n + 1ULL) * sizeof(*plans));
    uint32_t n = 0;
    if (!plans)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < advice->candidates.n; i++)
        if (advice->outcomes[i].state == CS_CANDIDATE_SIMULATED)
            plans[n++] = (ordered){advice->outcomes[i].step.time, i};
    qsort(plans, n, sizeof(*plans), by_time);
    *n_best = 0;
    for (uint32_t k = 0; k < n && *n_best < MOST_STRATEGIES; k++)
        if (!has_strategy(advice, best, *n_best, plans[k].candidate))
            best[(*n_best)++] = plans[k];
    free(plans);
    return CS_OK;
}

/* Prints the cost of doing without an axis. */
static cs_status print_strategies(const cs_advice *advice, FILE *out, cs_error *error)
{
    ordered best[MOST_STRATEGIES];
    uint32_t n = 0;
    char start[START];
    CS_TRY(find_strategies(advice, best, &n, error));
    if (n > 1)
        fputs("\nfastest plan of each strategy, and how much longer it takes than the best:\n",
              out);
    for (uint32_t k = 0; k < n && n > 1; k++) {
        const double peak = (double)advice->outcomes[best[k].candidate].step.peak;
        snprintf(start, sizeof(start), "      %-9s %+6.1f %%  %-9s ", time_text(best[k].time).s,
                 share(best[k].time - best[0].time, best[0].time), bytes_text(peak).s);
        print_plan(advice, best[k].candidate, start, out);
    }
    return CS_OK;
}

/* ---- what if ---- */

static void print_doubts(const cs_advice *advice, FILE *out)
{
    fputs("\nSensitivity: change in step time (and rank) if links or devices are 10 % slower or "
          "faster\nrank",
          out);
    for (uint32_t d = 0; d < CS_N_DOUBTS; d++)
        fprintf(out, "  %-*s", d + 1 < CS_N_DOUBTS ? 14 : 0, doubts[d]);
    fputc('\n', out);
    for (uint32_t r = 0; r < advice->n_rows; r++) {
        const cs_advice_row *row = &advice->rows[r];
        const double time = advice->outcomes[row->candidate].step.time;
        if (!row->complete)
            continue;
        fprintf(out, "%4u", r + 1);
        for (uint32_t d = 0; d < CS_N_DOUBTS; d++) {
            fprintf(out, "  %+6.2f %%", share(row->times[d] - time, time));
            if (row->ranks[d] > 0)
                fprintf(out, " %5u", row->ranks[d]);
            else /* the other rows are incomplete */
                fputs("     -", out);
        }
        fputc('\n', out);
    }
}

/* Prints the known rates of the best plan. */
static void print_rates(const cs_advice *advice, FILE *out)
{
    const cs_limits *limits = &advice->rows[0].limits;
    if (!advice->rows[0].complete)
        return;
    fprintf(out, "the best: %.4g samples/s", limits->throughput);
    if (!isnan(limits->tokens))
        fprintf(out, ", %.4g tokens/s", limits->tokens);
    if (!isnan(limits->utilisation))
        fprintf(out, ", model flop %.3g %% of the devices' peak", 100 * limits->utilisation);
    fputc('\n', out);
}

static void print_costs(const cs_advice *advice, FILE *out)
{
    const cs_advice_row *best = &advice->rows[0];
    const double cost = cs_advice_cost(advice, best->candidate);
    if (isnan(cost))
        return;
    fprintf(out, "\ncost of the best: %.4g a step, %.4g per million samples", cost,
            1e6 * cost / advice->base.batch_size);
    if (advice->base.tokens > 0)
        fprintf(out, ", %.4g per million tokens",
                1e6 * cost / advice->base.batch_size / advice->base.tokens);
    fputc('\n', out);
}

/* ---- the scenario's own plan ---- */

static void print_own(const cs_advice *advice, FILE *out)
{
    const cs_step *own = &advice->own;
    if (advice->own_refusal)
        fprintf(out, "\nyour plan is impossible: %s\n", advice->own_refusal);
    if (!(own->time > 0) || advice->n_rows == 0)
        return;
    const double best = advice->outcomes[advice->rows[0].candidate].step.time;
    fprintf(out, "\nyour plan: %s (%.3g %% %s than the best%s)%s %s", time_text(own->time).s,
            share(fabs(own->time - best), best), own->time < best ? "faster" : "slower",
            own->over > 0 ? " that fits" : "", own->over > 0 ? " but" : ",",
            bytes_text((double)own->peak).s);
    if (own->over > 0)
        fprintf(out, ", %s over capacity", bytes_text((double)own->over).s);
    fputc('\n', out);
}

/* ---- what does not fit ---- */

/* Returns the number of choices in which two plans differ, for finding the fastest plan that fits
 * and is closest to one that does not. */
static uint32_t differences(const cs_candidate *a, const cs_candidate *b)
{
    return (a->devices != b->devices) + (a->method != b->method || a->layer != b->layer) +
           (a->space != b->space) + (a->context != b->context) + (a->pipeline != b->pipeline) +
           (a->expert != b->expert) + (a->zero != b->zero) +
           (a->micro_samples != b->micro_samples) +
           (a->schedule != b->schedule || a->chunks != b->chunks) + (a->recompute != b->recompute) +
           (a->inner != b->inner) + (a->bucket != b->bucket);
}

static uint32_t find_cure(const cs_advice *advice, uint32_t misfit)
{
    uint32_t best = CS_NO_CANDIDATE, least = UINT32_MAX;
    for (uint32_t i = 0; i < advice->candidates.n; i++) {
        const cs_candidate_outcome *outcome = &advice->outcomes[i];
        const uint32_t n = differences(plan_of(advice, misfit), plan_of(advice, i));
        const bool fits = outcome->state == CS_CANDIDATE_SIMULATED;
        const bool faster =
            best != CS_NO_CANDIDATE && outcome->step.time < advice->outcomes[best].step.time;
        if (fits && (n < least || (n == least && faster))) {
            best = i;
            least = n;
        }
    }
    return best;
}

/* Returns the largest memory category of the fullest device at its peak. */
static uint32_t largest_category(const cs_limits *limits)
{
    uint32_t largest = 0;
    for (uint32_t c = 1; c < CS_N_CATEGORIES; c++)
        if (limits->at_peak[c] > limits->at_peak[largest])
            largest = c;
    return largest;
}

static void print_misfit(const cs_advice *advice, FILE *out)
{
    const uint32_t i = advice->misfit.candidate;
    char start[START];
    if (i == CS_NO_CANDIDATE)
        return;
    const cs_step *step = &advice->outcomes[i].step;
    snprintf(start, sizeof(start),
             "fastest that does not fit: %s, %s over: ", time_text(step->time).s,
             bytes_text((double)step->over).s);
    fputc('\n', out);
    print_plan(advice, i, start, out);
    if (advice->misfit.complete) {
        const uint32_t c = largest_category(&advice->misfit.limits);
        fprintf(out, "  most of its %s are %s, %s\n", bytes_text((double)step->peak).s,
                cs_category_name(c), bytes_text((double)advice->misfit.limits.at_peak[c]).s);
    }
    const uint32_t cure = find_cure(advice, i);
    if (cure == CS_NO_CANDIDATE)
        return;
    snprintf(start, sizeof(start),
             "  what would make it fit: %s, %s: ", time_text(advice->outcomes[cure].step.time).s,
             bytes_text((double)advice->outcomes[cure].step.peak).s);
    print_plan(advice, cure, start, out);
}

/* Prints how far plans are from fitting: no plan needs less than the smallest bound. */
static void print_need(const cs_advice *advice, FILE *out)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < advice->candidates.n; i++)
        if (advice->bounds.memory[i] > 0)
            least = fmin(least, advice->bounds.memory[i]);
    if (!(least < INFINITY) || advice->bounds.capacity == INT64_MAX)
        return;
    char line[512];
    snprintf(
        line, sizeof(line),
        "each of these plans needs %s a device or more, of %s: try more devices, optimizer "
        "states in fewer bytes (/model/states), low-rank adapters (/model/lora), offloading, or "
        "fewer samples a micro-batch (/advise/micro_batch)",
        bytes_text(least).s, bytes_text((double)advice->bounds.capacity).s);
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
}

/* ---- how to run the best ---- */

static cs_status print_command(const cs_advice_shown *shown, FILE *out, cs_error *error)
{
    const cs_advice *advice = shown->advice;
    char *command = cs_candidate_command(&advice->base, plan_of(advice, advice->rows[0].candidate),
                                         shown->path);
    if (!command)
        return cs_error_no_memory(error);
    fprintf(out, "\n%s\n", command);
    free(command);
    return CS_OK;
}

cs_advice_shown cs_advice_shown_of(const cs_advice *advice, const cJSON *document, const char *path)
{
    const cJSON *platform = cs_json_member(document, "platform");
    const cJSON *topology =
        cJSON_IsString(platform) ? platform : cs_json_member(platform, "topology");
    const char *name = cJSON_GetStringValue(cs_json_member(document, "name"));
    return (cs_advice_shown){.advice = advice,
                             .name = name ? name : path,
                             .path = path,
                             .topology = cJSON_GetStringValue(topology)};
}

static void print_refusal(const char *message, FILE *out)
{
    fputs("why the first is impossible: ", out);
    cs_text_puts(out, message);
    fputc('\n', out);
}

cs_status cs_advice_print(const cs_advice_shown *shown, FILE *out, cs_error *error)
{
    const cs_advice *advice = shown->advice;
    cs_text_puts(out, shown->name);
    fprintf(out, ": plans for %u x ", advice->base.devices);
    cs_text_puts(out, shown->topology);
    fprintf(out, ", a step of %u samples", advice->base.batch_size);
    if (advice->base.rules.is_assumed)
        fprintf(out, "; runtime assumed: %s", advice->base.rules.runtime);
    fputc('\n', out);
    print_counts(advice, out);
    if (advice->refusal && count(advice, CS_CANDIDATE_IMPOSSIBLE) == advice->candidates.n)
        print_refusal(advice->refusal, out);
    if (advice->n_rows > 0) {
        print_rows(advice, shown->all, out);
        print_rates(advice, out);
        CS_TRY(print_roomy(advice, out, error));
        print_parts(advice, out);
        CS_TRY(print_front(advice, shown->all, out, error));
        CS_TRY(print_strategies(advice, out, error));
        if (advice->rows[0].complete)
            print_doubts(advice, out);
        print_costs(advice, out);
    } else {
        fputs("\nno plan fits\n", out);
        print_need(advice, out);
    }
    print_own(advice, out);
    print_misfit(advice, out);
    return advice->n_rows > 0 ? print_command(shown, out, error) : CS_OK;
}

/* ---- JSON ---- */

static bool add_text(cJSON *object, const char *key, const char *text)
{
    return cs_json_add_text(object, key, text);
}

/* Adds the limits to an object. `time` is the time of the step. */
static bool add_limits(cJSON *object, const cs_limits *limits, double time)
{
    cJSON *parts = cJSON_AddObjectToObject(object, "limits_s");
    bool done = cs_json_add_number(object, "computing_s", limits->computing) &&
                cs_json_add_number(object, "exposed_s", limits->exposed) &&
                cs_json_add_number(object, "waiting_s", limits->waiting) &&
                cs_json_add_number(object, "update_s", limits->update) && parts;
    for (uint32_t i = 0; done && i < CS_N_LIMITS; i++)
        done = cs_json_add_number(parts, cs_limit_names[i], limits->seconds[i]);
    return done && add_text(object, "limited_by", limit_name(limits, time)) &&
           add_text(object, "at_most", limits->axis) &&
           cs_json_add_number(object, "throughput_samples_per_s", limits->throughput) &&
           cs_json_add_number(object, "throughput_tokens_per_s", limits->tokens) &&
           cs_json_add_number(object, "model_flop_utilisation_fraction", limits->utilisation);
}

static bool add_doubts(cJSON *object, const cs_advice_row *row)
{
    cJSON *all = cJSON_AddObjectToObject(object, "if_wrong");
    bool done = all != NULL;
    for (uint32_t d = 0; done && d < CS_N_DOUBTS; d++) {
        cJSON *one = cJSON_AddObjectToObject(all, doubt_keys[d]);
        done = one && cs_json_add_number(one, "step_time_s", row->times[d]) &&
               cs_json_add_number(one, "rank", row->ranks[d]);
    }
    return done;
}

static bool add_plan(const cs_advice *advice, uint32_t i, cJSON *object)
{
    const cs_candidate_outcome *outcome = &advice->outcomes[i];
    char text[CS_CANDIDATE_TEXT_BYTES];
    const cs_candidate *c = plan_of(advice, i);
    const cs_step *step = &outcome->step;
    cJSON *changes = cs_candidate_changes(&advice->base, c);
    cs_memory_fit fit;
    cs_error error;
    cs_error_init(&error);
    if (fit_of(step, &fit, &error) != CS_OK) {
        cJSON_Delete(changes);
        return false;
    }
    if (!changes || !cJSON_AddItemToObject(object, "changes", changes))
        return false;
    return add_text(object, "plan", cs_candidate_text(c, text, sizeof(text))) &&
           add_text(object, "strategy", cs_candidate_strategy(c, text, sizeof(text))) &&
           cs_json_add_number(object, "devices", c->devices) &&
           cs_json_add_number(object, "step_time_s", outcome->step.time) &&
           cs_json_add_number(object, "peak_memory_bytes", (double)outcome->step.peak) &&
           cs_json_add_number(object, "over_capacity_bytes", (double)outcome->step.over) &&
           cs_json_add_text(object, "memory", cs_memory_fit_verdict(&fit)) &&
           cs_json_add_number(object, "fits_probability", fit.probability) &&
           cs_json_add_number(object, "cost", cs_advice_cost(advice, i)) &&
           cJSON_AddBoolToObject(object, "front", outcome->front);
}

/* Adds the values with every device simulated; null if this was not simulated. */
static bool add_each(const cs_advice_row *row, cJSON *object)
{
    const bool known = row->estimated && row->each.time > 0;
    return cJSON_AddBoolToObject(object, "estimated", row->estimated) &&
           cs_json_add_number(object, "every_device_step_time_s",
                              known ? row->each.time : (double)NAN) &&
           cs_json_add_number(object, "every_device_peak_memory_bytes",
                              known ? (double)row->each.peak : (double)NAN);
}

static bool add_row(const cs_advice *advice, const cs_advice_row *row, bool doubted, cJSON *object)
{
    const double time = advice->outcomes[row->candidate].step.time;
    return object && add_plan(advice, row->candidate, object) && add_each(row, object) &&
           (!row->complete ||
            (add_limits(object, &row->limits, time) && (!doubted || add_doubts(object, row))));
}

static bool add_counts(const cs_advice *advice, cJSON *root)
{
    cJSON *counts = cJSON_AddObjectToObject(root, "plans");
    bool done = counts && cs_json_add_number(counts, "all", advice->candidates.n);
    for (uint32_t s = 0; done && s < CS_N_CANDIDATE_STATES; s++)
        done = cs_json_add_number(counts, cs_candidate_state_names[s], advice->n_states[s]);
    return done;
}

/* Lists how many plans each rule of the runtime excludes. */
static bool add_excluded(const cs_advice *advice, cJSON *root)
{
    cJSON *list = cJSON_AddArrayToObject(root, "left_out");
    bool done = list != NULL;
    for (uint32_t i = 0; done && i < CS_RUNTIME_RULES_MOST; i++) {
        const uint32_t n = advice->candidates.excluded[i];
        if (n == 0)
            continue;
        const cs_runtime_rule *rule = &advice->base.rules.items[i];
        cJSON *object = cs_json_add_item(list);
        done = object && cs_json_add_number(object, "plans", n) &&
               add_text(object, "runtime", advice->base.rules.runtime) &&
               add_text(object, "rule", rule->text) && add_text(object, "source", rule->source);
    }
    return done;
}

static bool add_own(const cs_step *own, cJSON *root)
{
    cJSON *object = cJSON_AddObjectToObject(root, "own_plan");
    return object && cs_json_add_number(object, "step_time_s", own->time) &&
           cs_json_add_number(object, "peak_memory_bytes", (double)own->peak) &&
           cs_json_add_number(object, "over_capacity_bytes", (double)own->over);
}

static bool fill(const cs_advice_shown *shown, cJSON *root)
{
    const cs_advice *advice = shown->advice;
    cJSON *rows = NULL, *front = NULL;
    bool done = add_text(root, "name", shown->name) &&
                cs_json_add_number(root, "devices", advice->base.devices) &&
                cs_json_add_number(root, "batch_size_samples", advice->base.batch_size) &&
                add_text(root, "assumed_runtime",
                         advice->base.rules.is_assumed ? advice->base.rules.runtime : NULL) &&
                add_counts(advice, root) && add_excluded(advice, root) &&
                add_text(root, "cut", advice->cut) &&
                (rows = cJSON_AddArrayToObject(root, "best")) &&
                (front = cJSON_AddArrayToObject(root, "front"));
    if (done && advice->own.time > 0)
        done = add_own(&advice->own, root);
    for (uint32_t r = 0; done && r < advice->n_rows; r++)
        done = add_row(advice, &advice->rows[r], true, cs_json_add_item(rows));
    for (uint32_t i = 0; done && i < advice->candidates.n; i++)
        if (advice->outcomes[i].front)
            done = add_plan(advice, i, cs_json_add_item(front));
    if (!done || advice->misfit.candidate == CS_NO_CANDIDATE)
        return done && cJSON_AddNullToObject(root, "fastest_that_does_not_fit");
    cJSON *misfit = cJSON_AddObjectToObject(root, "fastest_that_does_not_fit");
    return add_row(advice, &advice->misfit, false, misfit);
}

cJSON *cs_advice_json(const cs_advice_shown *shown)
{
    cJSON *root = cJSON_CreateObject();
    if (root && fill(shown, root))
        return root;
    cJSON_Delete(root);
    return NULL;
}

#include "sim/run/figures.h"

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/model/precision.h"
#include "sim/run/simulate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- settings ---- */

static double batch_size(const cs_outcome *of)
{
    return of->scenario->batch_size;
}

static double micro_batches(const cs_outcome *of)
{
    return of->scenario->job.micro_batches;
}

static double iterations(const cs_outcome *of)
{
    return of->scenario->job.iterations;
}

static double tasks(const cs_outcome *of)
{
    return of->simulation->graph.n_tasks;
}

static double seed(const cs_outcome *of)
{
    return (double)of->scenario->seed;
}

/* ---- results ---- */

static double makespan(const cs_outcome *of)
{
    return cs_time_seconds(of->simulation->trace.makespan);
}

/* A stopped run may not have finished any mini-batch. */
static double unless_stopped(const cs_outcome *of, double value)
{
    return of->simulation->trace.stopped ? (double)NAN : value;
}

static double iteration_time(const cs_outcome *of)
{
    return unless_stopped(of, of->simulation->analysis.iteration_time);
}

static bool has_dataset(const cs_outcome *of)
{
    return of->scenario->dataset > 0;
}

/* The last mini-batch of an epoch may be smaller; it counts proportionally. */
static double epoch_time(const cs_outcome *of)
{
    return iteration_time(of) * of->scenario->dataset / of->scenario->batch_size;
}

/* Unknown if the run takes no time. */
static double throughput(const cs_outcome *of)
{
    const double found = of->simulation->analysis.throughput;
    return unless_stopped(of, found > 0 ? found : (double)NAN);
}

static double bubble(const cs_outcome *of)
{
    return of->simulation->analysis.bubble_fraction;
}

/* Formats " = 2 % exposed communication + 20 % pipeline bubble"; a single part is "all of it". */
static const char *sum_text(double first, const char *first_name, double second,
                            const char *second_name, char *text, size_t size)
{
    char parts[2][CS_UNIT_TEXT_BYTES];
    *text = '\0';
    if (first > 0 && second > 0)
        snprintf(text, size, " = %s %s + %s %s",
                 cs_unit_format(CS_UNIT_FRACTION, first, parts[0], sizeof(parts[0])), first_name,
                 cs_unit_format(CS_UNIT_FRACTION, second, parts[1], sizeof(parts[1])), second_name);
    else if (first > 0 || second > 0)
        snprintf(text, size, ", all of it %s", first > 0 ? first_name : second_name);
    return text;
}

static const char *parts_of_bubble(const cs_outcome *of, char *text, size_t size)
{
    const cs_analysis *analysis = &of->simulation->analysis;
    return sum_text(analysis->exposed_communication_fraction, "exposed communication",
                    analysis->pipeline_bubble_fraction, "pipeline bubble", text, size);
}

static const char *parts_of_pipeline_bubble(const cs_outcome *of, char *text, size_t size)
{
    const cs_analysis *analysis = &of->simulation->analysis;
    return sum_text(analysis->pipeline_bubble_fraction - analysis->flush_fraction,
                    "waiting for others", analysis->flush_fraction, "for flush", text, size);
}

static double exposed_communication(const cs_outcome *of)
{
    return of->simulation->analysis.exposed_communication_fraction;
}

static double pipeline_bubble(const cs_outcome *of)
{
    return of->simulation->analysis.pipeline_bubble_fraction;
}

static double steady_bubble(const cs_outcome *of)
{
    return of->simulation->analysis.steady.bubble;
}

static double steady_iterations(const cs_outcome *of)
{
    return of->simulation->analysis.steady.n;
}

/* Only schedules without a flush can become periodic. */
static bool may_recur(const cs_outcome *of)
{
    return of->scenario->schedule->asynchronous && of->simulation->analysis.recurrence.end > 0;
}

static double is_periodic(const cs_outcome *of)
{
    return of->simulation->analysis.recurrence.n > 0;
}

static double if_periodic(const cs_outcome *of, double value)
{
    return of->simulation->analysis.recurrence.n > 0 ? value : (double)NAN;
}

static double period_iterations(const cs_outcome *of)
{
    return if_periodic(of, of->simulation->analysis.recurrence.n);
}

static double period(const cs_outcome *of)
{
    return if_periodic(of, cs_time_seconds(of->simulation->analysis.recurrence.period));
}

static double periodic_from(const cs_outcome *of)
{
    return if_periodic(of, of->simulation->analysis.recurrence.first);
}

static double in_flight_half_way(const cs_outcome *of)
{
    return of->simulation->analysis.recurrence.half;
}

static double in_flight_at_end(const cs_outcome *of)
{
    return of->simulation->analysis.recurrence.end;
}

static bool has_weights(const cs_outcome *of)
{
    return of->simulation->analysis.staleness.n_slots > 0;
}

static double peak_versions(const cs_outcome *of)
{
    const cs_staleness *staleness = &of->simulation->analysis.staleness;
    double most = 0;
    for (uint32_t s = 0; s < staleness->n_slots; s++)
        most = fmax(most, staleness->slots[s].peak_versions);
    return most;
}

static double gradient_delay_max(const cs_outcome *of)
{
    const cs_staleness *staleness = &of->simulation->analysis.staleness;
    double most = NAN;
    for (uint32_t s = 0; s < staleness->n_slots; s++)
        if (staleness->slots[s].max_gradient_delay != CS_STALENESS_NONE)
            most = fmax(most, (double)staleness->slots[s].max_gradient_delay);
    return most;
}

static double gradient_delay_mean(const cs_outcome *of)
{
    return cs_staleness_mean(&of->simulation->analysis.staleness, CS_NONE);
}

static double exposed_messages(const cs_outcome *of)
{
    return of->simulation->analysis.mean.messages;
}

static double exposed_collectives(const cs_outcome *of)
{
    return of->simulation->analysis.mean.collectives;
}

#define PURPOSE_FIGURES(name, text)                                                                \
    static double exposed_##name(const cs_outcome *of)                                             \
    {                                                                                              \
        return of->simulation->analysis.mean.exposed[CS_PURPOSE_##name];                           \
    }                                                                                              \
    static double active_##name(const cs_outcome *of)                                              \
    {                                                                                              \
        return of->simulation->analysis.mean.active_for[CS_PURPOSE_##name];                        \
    }                                                                                              \
    static double moved_##name(const cs_outcome *of)                                               \
    {                                                                                              \
        return unless_stopped(of, of->simulation->lowering.moved[CS_PURPOSE_##name]);              \
    }                                                                                              \
    static bool moves_##name(const cs_outcome *of)                                                 \
    {                                                                                              \
        return of->simulation->lowering.moved[CS_PURPOSE_##name] > 0;                              \
    }
CS_PURPOSE_MAP(PURPOSE_FIGURES)
#undef PURPOSE_FIGURES

static double communication_active(const cs_outcome *of)
{
    return of->simulation->analysis.mean.active;
}

static double communication_hidden(const cs_outcome *of)
{
    const cs_mean_use mean = of->simulation->analysis.mean;
    return mean.active > 0 ? mean.hidden / mean.active : (double)NAN;
}

static bool may_be_slowed(const cs_outcome *of)
{
    return of->scenario->slowdown != NULL;
}

static double slowed(const cs_outcome *of)
{
    return of->simulation->analysis.mean.slowed;
}

static bool knows_work(const cs_outcome *of)
{
    return of->scenario->model->work.flop_per_sample > 0;
}

static bool knows_tokens(const cs_outcome *of)
{
    return knows_work(of) && of->scenario->model->work.tokens_per_sample != 0;
}

static double tokens(const cs_outcome *of)
{
    return cs_simulation_work_rate(of->scenario, of->simulation).tokens;
}

static bool knows_parameters(const cs_outcome *of)
{
    return of->scenario->model->work.parameters > 0;
}

static double parameters(const cs_outcome *of)
{
    return of->scenario->model->work.parameters;
}

static bool has_inactive(const cs_outcome *of)
{
    const cs_model_work *work = &of->scenario->model->work;
    return work->active_parameters > 0 && work->active_parameters < work->parameters;
}

static double active_parameters(const cs_outcome *of)
{
    return of->scenario->model->work.active_parameters;
}

static const char *per_token(const cs_outcome *of, char *text, size_t size)
{
    (void)of;
    snprintf(text, size, " active per token");
    return text;
}

static double flop_per_sample(const cs_outcome *of)
{
    return of->scenario->model->work.flop_per_sample;
}

static double flop(const cs_outcome *of)
{
    return cs_simulation_work_rate(of->scenario, of->simulation).flop;
}

static double utilisation(const cs_outcome *of)
{
    return cs_simulation_work_rate(of->scenario, of->simulation).utilisation;
}

static const char *per_device(const cs_outcome *of, char *text, size_t size)
{
    (void)of;
    snprintf(text, size, " per device");
    return text;
}

static const char *of_its_peak(const cs_outcome *of, char *text, size_t size)
{
    const cs_model *model = of->scenario->model;
    cs_text_format(text, size, " of %.80s's peak in %s",
                   model->work.device ? model->work.device : "the device",
                   cs_precision_names[model->precision]);
    return text;
}

static double out_of_memory(const cs_outcome *of)
{
    return cs_simulation_out_of_memory(of->simulation);
}

static double stopped(const cs_outcome *of)
{
    return of->simulation->trace.stopped;
}

/* ---- the plan ---- */

static bool was_searched(const cs_outcome *of)
{
    return of->scenario->pattern && of->scenario->search.bound != 0;
}

static double plan_stages(const cs_outcome *of)
{
    return of->scenario->plan->n_stages;
}

static double plan_period(const cs_outcome *of)
{
    return cs_time_seconds(of->scenario->pattern->period);
}

static double plan_promised(const cs_outcome *of)
{
    const cs_time promised = of->scenario->search.promised;
    return promised > 0 ? cs_time_seconds(promised) : (double)NAN;
}

static double plan_bound(const cs_outcome *of)
{
    return cs_time_seconds(of->scenario->search.bound);
}

static double plan_optimal(const cs_outcome *of)
{
    return of->scenario->search.optimal;
}

/* ---- a device ---- */

static double peak_memory(const cs_outcome *of)
{
    return (double)of->simulation->trace.devices[of->device].peak;
}

static double peak_activations(const cs_outcome *of)
{
    return (double)of->simulation->trace.devices[of->device].category_peak[CS_MEMORY_ACTIVATIONS];
}

static bool offloads(const cs_outcome *of)
{
    return of->simulation->host_peaks != NULL;
}

static double peak_host(const cs_outcome *of)
{
    return (double)of->simulation->host_peaks[of->device];
}

static const cs_device_allocations *allocations_of(const cs_outcome *of)
{
    return &of->simulation->allocations.devices[of->device];
}

static bool has_allocator(const cs_outcome *of)
{
    return of->simulation->allocations.n_devices > 0;
}

static double peak_allocated(const cs_outcome *of)
{
    return (double)allocations_of(of)->stats.peak_allocated;
}

static double peak_reserved(const cs_outcome *of)
{
    return (double)allocations_of(of)->stats.peak_reserved;
}

static double fragmentation(const cs_outcome *of)
{
    const cs_caching_stats *stats = &allocations_of(of)->stats;
    return stats->peak_reserved > 0
               ? 1 - (double)stats->peak_allocated / (double)stats->peak_reserved
               : 0;
}

/* ---- all metrics ---- */

#define ASKED CS_SCOPE_SCENARIO
#define RUN   CS_SCOPE_RUN
#define PLAN  CS_SCOPE_PLAN

#define MAIN   (CS_SHOWN_REPORT | CS_SHOWN_MAIN)
#define REPORT CS_SHOWN_REPORT
#define JOINED CS_SHOWN_JOINED
#define SWEEP  CS_SHOWN_SWEEP
#define TASKS  CS_OF_TASKS

#define NUMBER        CS_UNIT_NUMBER
#define FRACTION      CS_UNIT_FRACTION
#define BOOLEAN       CS_UNIT_BOOLEAN
#define SECONDS       CS_UNIT_SECONDS
#define SAMPLES_PER_S CS_UNIT_SAMPLES_PER_S

const cs_run_figure cs_run_figures[] = {
    {"batch_size_samples", "samples per mini-batch", "global batch: samples of a mini-batch",
     CS_UNIT_SAMPLES, batch_size, NULL, ASKED},
    {"micro_batches", "micro-batches", "micro-batches per mini-batch and replica", NUMBER,
     micro_batches, NULL, ASKED},
    {"iterations", "mini-batches", "mini-batches that were simulated", NUMBER, iterations, NULL,
     ASKED},
    {"tasks", "tasks", "computations and messages in the simulated graph", NUMBER, tasks, NULL,
     ASKED},
    {"seed", "seed", "seed of all random numbers", NUMBER, seed, NULL, ASKED},
    {"model_parameters", "model",
     "parameters, trained or frozen, shared parameters counted once; only of models built from an "
     "architecture",
     CS_UNIT_PARAMETERS, parameters, knows_parameters, ASKED, REPORT},
    {"active_parameters", "active",
     "parameters that one token uses: its own experts, and everything outside of experts; only of "
     "models with experts",
     CS_UNIT_PARAMETERS, active_parameters, has_inactive, ASKED, JOINED, per_token},
    {"iteration_time_s", "iteration time",
     "mean time between the ends of consecutive mini-batches; the makespan if there is only one",
     SECONDS, iteration_time, NULL, RUN, MAIN | SWEEP},
    {"epoch_time_s", "epoch time", "time for the samples of `dataset` at this throughput", SECONDS,
     epoch_time, has_dataset, RUN, REPORT},
    {"throughput_samples_per_s", "throughput", "batch size divided by iteration time",
     SAMPLES_PER_S, throughput, NULL, RUN, MAIN | SWEEP},
    {"throughput_tokens_per_s", "throughput in tokens",
     "tokens per sample times throughput; only of models that read tokens", CS_UNIT_TOKENS_PER_S,
     tokens, knows_tokens, RUN, JOINED},
    {"device_model_flop_per_s", "model flop",
     "model_flop_per_sample times throughput, divided by the number of devices", CS_UNIT_FLOP_PER_S,
     flop, knows_work, RUN, REPORT, per_device},
    {"model_flop_utilisation_fraction", "model flop utilisation",
     "device_model_flop_per_s as a share of the named device's peak in the model's precision "
     "(times its `speed`); null if no peak is known",
     FRACTION, utilisation, knows_work, RUN, JOINED, of_its_peak},
    {"model_flop_per_sample", "model flop per sample",
     "6 for every multiply-accumulate of convolutions, linear layers and attention (2 in the "
     "forward, 4 in the backward); only of models whose work is known",
     CS_UNIT_FLOP, flop_per_sample, knows_work, RUN},
    {"makespan_s", "makespan", "end of the last task", SECONDS, makespan, NULL, RUN, MAIN},
    {"bubble_fraction", "bubble fraction",
     "share of the makespan during which devices do not compute, mean over the devices", FRACTION,
     bubble, NULL, RUN, MAIN | SWEEP, parts_of_bubble},
    {"exposed_communication_fraction", "exposed communication",
     "the part of bubble_fraction during which a device waits for messages and collectives of its "
     "own stage",
     FRACTION, exposed_communication, NULL, RUN, TASKS},
    {"pipeline_bubble_fraction", "pipeline bubble",
     "the rest of bubble_fraction: a device waits for others, in the fill and the drain, for a "
     "slower stage or replica, or for the end of the mini-batch",
     FRACTION, pipeline_bubble, NULL, RUN, REPORT | TASKS, parts_of_pipeline_bubble},
    {"bubble_fraction_steady", "bubble fraction while steady",
     "bubble fraction while the pipeline neither fills nor drains; null if there are fewer than "
     "two steady mini-batches",
     FRACTION, steady_bubble, NULL, RUN, TASKS},
    {"steady_iterations", "steady mini-batches",
     "mini-batches during which the pipeline neither fills nor drains", NUMBER, steady_iterations,
     NULL, RUN, TASKS},
    {"periodic", "periodic",
     "whether the run has become periodic when the last mini-batch enters; only of schedules "
     "without a flush",
     BOOLEAN, is_periodic, may_recur, RUN, TASKS},
    {"period_iterations", "mini-batches of a period",
     "mini-batches in the shortest period; null if the run is not periodic", NUMBER,
     period_iterations, may_recur, RUN, TASKS},
    {"period_s", "period", "length of the shortest period; null if the run is not periodic",
     SECONDS, period, may_recur, RUN, TASKS},
    {"periodic_from_iteration", "periodic from mini-batch",
     "first mini-batch, counted from 0, of the periodic part; null if the run is not periodic",
     NUMBER, periodic_from, may_recur, RUN, TASKS},
    {"in_flight_half_way", "in flight half-way",
     "mini-batches in flight (begun, and either it or an earlier one is unfinished) when the "
     "middle mini-batch of the run enters",
     NUMBER, in_flight_half_way, may_recur, RUN, TASKS},
    {"in_flight_at_end", "in flight at the end",
     "mini-batches in flight when the last mini-batch enters", NUMBER, in_flight_at_end, may_recur,
     RUN, TASKS},
    {"peak_versions", "versions kept",
     "most versions of a stage's weights alive at once on a device, including the current version; "
     "the largest of all stages",
     NUMBER, peak_versions, has_weights, RUN, TASKS},
    {"gradient_delay_max", "largest gradient delay",
     "updates between the version that a mini-batch's backward read (the oldest if micro-batches "
     "differ) and its own update; the largest of all stages and mini-batches; 0 is synchronous",
     NUMBER, gradient_delay_max, has_weights, RUN, TASKS},
    {"gradient_delay_mean", "mean gradient delay",
     "mean gradient delay over all backwards in the middle half of the run, each with the version "
     "that it read, not weighted by sizes of micro-batches and stages; null if there are none",
     NUMBER, gradient_delay_mean, has_weights, RUN, TASKS},
    {"exposed_messages_s", "exposed messages",
     "time that a device waits for messages between stages, mean over the devices", SECONDS,
     exposed_messages, NULL, RUN, TASKS},
    {"exposed_collectives_s", "exposed collectives",
     "time that a device waits for collectives, mean over the devices", SECONDS,
     exposed_collectives, NULL, RUN, TASKS},
/* clang-format off */
#define PURPOSE_ROWS(name, text)                                                                   \
    {"exposed_" text "_s", "exposed, " text,                                                       \
     "the part of the two exposed times above spent on messages of the purpose " text              \
     "; only if present",                                                                    \
     SECONDS, exposed_##name, moves_##name, RUN, TASKS},                                           \
    {"active_" text "_s", "active, " text,                                                         \
     "the part of communication_active_s with messages of the purpose " text                       \
     ", mean over the devices; a device may send for several purposes at once",                    \
     SECONDS, active_##name, moves_##name, RUN, TASKS},                                            \
    {"moved_" text "_bytes", "moved, " text,                                                       \
     "bytes of the purpose " text                                                                  \
     " sent by all devices together; null if the run was stopped",                                 \
     CS_UNIT_BYTES, moved_##name, moves_##name, RUN, TASKS},
    CS_PURPOSE_MAP(PURPOSE_ROWS)
#undef PURPOSE_ROWS
    /* clang-format on */
    {"communication_active_s", "communication",
     "time that a device sends, receives, or waits for a link to do so, mean over the devices; "
     "includes collectives that `tensor_overlap` and `expert_overlap` overlap",
     SECONDS, communication_active, NULL, RUN, TASKS},
    {"communication_hidden_fraction", "overlapped communication",
     "share of the communication time during which the device also computes; null without "
     "communication",
     FRACTION, communication_hidden, NULL, RUN, TASKS},
    {"slowed_by_communication_s", "slowed by communication",
     "time that computations lose to simultaneous communication, by the factors of `slowdown`; "
     "mean over the devices",
     SECONDS, slowed, may_be_slowed, RUN},
    {"out_of_memory", "out of memory", "whether a device exceeded its memory", BOOLEAN,
     out_of_memory, NULL, RUN},
    {"stopped", "stopped", "whether --stop-on-oom ended the run when a device ran out of memory",
     BOOLEAN, stopped, NULL, RUN},
    {"plan_stages", "stages of the plan",
     "stages of the plan; only of plans with a pattern, made by a planner", NUMBER, plan_stages,
     was_searched, PLAN},
    {"plan_period_s", "period of the plan", "period of the pattern", SECONDS, plan_period,
     was_searched, PLAN},
    {"plan_promised_period_s", "promised period",
     "period that the planner's search expects; null if it expects none", SECONDS, plan_promised,
     was_searched, PLAN},
    {"plan_lower_bound_s", "lower bound of the period",
     "no plan without replicas has a shorter period", SECONDS, plan_bound, was_searched, PLAN},
    {"plan_proven_optimal", "plan proven optimal",
     "whether the plan is proven to be the best of the kind that the planner searches", BOOLEAN,
     plan_optimal, was_searched, PLAN},
    {"peak_memory_bytes", "peak memory",
     "most memory in use at once, per device; in a sweep, of the fullest device", CS_UNIT_BYTES,
     peak_memory, NULL, CS_SCOPE_DEVICE, SWEEP},
    {"peak_activation_bytes", "peak activations",
     "most activations in memory at once, per device; in a sweep, of the fullest device",
     CS_UNIT_BYTES, peak_activations, NULL, CS_SCOPE_DEVICE},
    {"peak_host_bytes", "peak on the host",
     "most host memory that a device's offloaded activations take at once, per device; in a "
     "sweep, of the device with the most; only with offloading",
     CS_UNIT_BYTES, peak_host, offloads, CS_SCOPE_DEVICE, TASKS},
    {"peak_allocated_bytes", "peak allocated",
     "torch.cuda.max_memory_allocated(), per device; in a sweep, of the fullest device; only with "
     "an allocator",
     CS_UNIT_BYTES, peak_allocated, has_allocator, CS_SCOPE_DEVICE},
    {"peak_reserved_bytes", "peak reserved",
     "torch.cuda.max_memory_reserved(), per device; in a sweep, of the fullest device; only with "
     "an allocator",
     CS_UNIT_BYTES, peak_reserved, has_allocator, CS_SCOPE_DEVICE},
    {"fragmentation_fraction", "fragmentation",
     "share of the peak of reserved memory that exceeds the peak of allocated memory, per device; "
     "in a sweep, of the worst device; only with an allocator",
     FRACTION, fragmentation, has_allocator, CS_SCOPE_DEVICE},
    {0},
};

const cs_run_figure *cs_run_figure_find(const char *key)
{
    for (const cs_run_figure *figure = cs_run_figures; figure->key; figure++) {
        if (strcmp(figure->key, key) == 0)
            return figure;
    }
    return NULL;
}

const cs_run_figure *cs_run_figure_main(uint32_t i)
{
    const cs_run_figure *figure = cs_run_figures;
    for (; figure->key; figure++)
        if (figure->shown & CS_SHOWN_MAIN && i-- == 0)
            return figure;
    return NULL;
}

bool cs_run_figure_given(const cs_run_figure *figure, const cs_outcome *outcome)
{
    if (figure->shown & CS_OF_TASKS && outcome->simulation->without_tasks)
        return false;
    return !figure->given || figure->given(outcome);
}

double cs_run_figure_value(const cs_run_figure *figure, const cs_outcome *outcome)
{
    cs_outcome at = *outcome;
    double largest = -INFINITY;
    if (figure->scope != CS_SCOPE_DEVICE)
        return figure->get(outcome);
    for (at.device = 0; at.device < outcome->simulation->trace.n_devices; at.device++)
        largest = fmax(largest, figure->get(&at));
    return largest;
}

/* ---- units ---- */

static const struct {
    const char *word, *suffix;
    cs_quantity quantity;
} units[] = {
    [CS_UNIT_NUMBER] = {"1", "", CS_QUANTITY_NUMBER},
    [CS_UNIT_FRACTION] = {"1", "_fraction", CS_QUANTITY_NUMBER},
    [CS_UNIT_BOOLEAN] = {"1", "", CS_QUANTITY_NUMBER},
    [CS_UNIT_SECONDS] = {"s", "_s", CS_QUANTITY_TIME},
    [CS_UNIT_BYTES] = {"bytes", "_bytes", CS_QUANTITY_BYTES},
    [CS_UNIT_SAMPLES] = {"samples", "_samples", CS_QUANTITY_NUMBER},
    [CS_UNIT_PARAMETERS] = {"parameters", "_parameters", CS_QUANTITY_NUMBER},
    [CS_UNIT_SAMPLES_PER_S] = {"samples/s", "_samples_per_s", CS_QUANTITY_NUMBER},
    [CS_UNIT_TOKENS_PER_S] = {"tokens/s", "_tokens_per_s", CS_QUANTITY_NUMBER},
    [CS_UNIT_FLOP] = {"flop", "_flop_per_sample", CS_QUANTITY_NUMBER},
    [CS_UNIT_FLOP_PER_S] = {"flop/s", "_flop_per_s", CS_QUANTITY_FLOP_RATE},
};

const char *cs_unit_word(cs_unit unit)
{
    return units[unit].word;
}

const char *cs_unit_suffix(cs_unit unit)
{
    return units[unit].suffix;
}

/* Whether cs_unit_format writes the unit after a plain number. */
static bool follows_number(cs_unit unit)
{
    return units[unit].quantity == CS_QUANTITY_NUMBER && strcmp(units[unit].word, "1") != 0;
}

char *cs_unit_format(cs_unit unit, double value, char *text, size_t size)
{
    if (isnan(value))
        snprintf(text, size, "-");
    else if (unit == CS_UNIT_BOOLEAN)
        snprintf(text, size, value > 0 ? "yes" : "no");
    else if (unit == CS_UNIT_FRACTION)
        snprintf(text, size, "%.4g %%", 100 * value);
    else if (unit == CS_UNIT_NUMBER)
        snprintf(text, size, "%.6g", value);
    else if (unit == CS_UNIT_PARAMETERS) {
        /* Models are named this way. */
        static const struct {
            double least;
            const char *word;
        } scales[] = {{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}, {0, ""}};
        uint32_t s = 0;
        while (value < scales[s].least)
            s++;
        snprintf(text, size, "%.4g%s %s", scales[s].least > 0 ? value / scales[s].least : value,
                 scales[s].word, units[CS_UNIT_PARAMETERS].word);
    } else if (follows_number(unit))
        snprintf(text, size, "%.5g %s", value, units[unit].word);
    else
        cs_units_format(value, units[unit].quantity, 4, text, size);
    return text;
}

char *cs_run_figure_phrase(const cs_run_figure *figure, double value, char *text, size_t size)
{
    char number[CS_UNIT_TEXT_BYTES];
    cs_unit_format(figure->unit, value, number, sizeof(number));
    if (follows_number(figure->unit))
        snprintf(text, size, "%s", number);
    else
        snprintf(text, size, "%s %s", figure->label, number);
    return text;
}

char *cs_run_figure_heading(const cs_run_figure *figure, char *text, size_t size)
{
    const bool follows = follows_number(figure->unit);
    snprintf(text, size, "%s%s%s", figure->label, follows ? ", " : "",
             follows ? units[figure->unit].word : "");
    return text;
}

char *cs_run_figure_cell(const cs_run_figure *figure, double value, char *text, size_t size)
{
    const bool plain = follows_number(figure->unit) && !isnan(value);
    if (plain)
        snprintf(text, size, "%.5g", value);
    return plain ? text : cs_unit_format(figure->unit, value, text, size);
}

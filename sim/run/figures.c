#include "sim/run/figures.h"

#include <math.h>
#include <string.h>

/* ---- what was asked for ---- */

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

/* ---- what came of it ---- */

static double makespan(const cs_outcome *of)
{
    return cs_time_seconds(of->simulation->trace.makespan);
}

/* In a run that was stopped no mini-batch need have ended. */
static double unless_stopped(const cs_outcome *of, double value)
{
    return of->simulation->trace.stopped ? (double)NAN : value;
}

static double iteration_time(const cs_outcome *of)
{
    return unless_stopped(of, of->simulation->analysis.iteration_time);
}

static double throughput(const cs_outcome *of)
{
    return unless_stopped(of, of->simulation->analysis.throughput);
}

static double bubble(const cs_outcome *of)
{
    return of->simulation->analysis.bubble_fraction;
}

static double steady_bubble(const cs_outcome *of)
{
    return of->simulation->analysis.steady.bubble;
}

static double steady_iterations(const cs_outcome *of)
{
    return of->simulation->analysis.steady.n;
}

/* A schedule without a flush may become periodic. */
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

static double exposed_messages(const cs_outcome *of)
{
    return cs_analysis_mean(&of->simulation->analysis).messages;
}

static double exposed_collectives(const cs_outcome *of)
{
    return cs_analysis_mean(&of->simulation->analysis).collectives;
}

static double communication_active(const cs_outcome *of)
{
    return cs_analysis_mean(&of->simulation->analysis).active;
}

static double communication_hidden(const cs_outcome *of)
{
    const cs_mean_use mean = cs_analysis_mean(&of->simulation->analysis);
    return mean.active > 0 ? mean.hidden / mean.active : (double)NAN;
}

static bool knows_work(const cs_outcome *of)
{
    return of->scenario->model.work.flop_per_sample > 0;
}

static bool knows_tokens(const cs_outcome *of)
{
    return knows_work(of) && of->scenario->model.work.tokens_per_sample != 0;
}

static double tokens(const cs_outcome *of)
{
    return cs_simulation_work_rate(of->scenario, of->simulation).tokens;
}

static double flop_per_sample(const cs_outcome *of)
{
    return of->scenario->model.work.flop_per_sample;
}

static double flop(const cs_outcome *of)
{
    return cs_simulation_work_rate(of->scenario, of->simulation).flop;
}

static double utilisation(const cs_outcome *of)
{
    return cs_simulation_work_rate(of->scenario, of->simulation).utilisation;
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
    return of->scenario->pattern.period != 0 && of->scenario->search.bound != 0;
}

static double plan_stages(const cs_outcome *of)
{
    return of->scenario->plan.n_stages;
}

static double plan_period(const cs_outcome *of)
{
    return cs_time_seconds(of->scenario->pattern.period);
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

/* ---- all of them ---- */

#define ASKED CS_SCOPE_SCENARIO
#define RUN   CS_SCOPE_RUN
#define PLAN  CS_SCOPE_PLAN

const cs_run_figure cs_run_figures[] = {
    {"batch_size_samples", "samples per mini-batch", "samples", batch_size, NULL, ASKED},
    {"micro_batches", "micro-batches", "1", micro_batches, NULL, ASKED},
    {"iterations", "mini-batches", "1", iterations, NULL, ASKED},
    {"tasks", "tasks", "1", tasks, NULL, ASKED},
    {"seed", "seed", "1", seed, NULL, ASKED},
    {"makespan_s", "makespan", "s", makespan, NULL, RUN},
    {"iteration_time_s", "iteration time", "s", iteration_time, NULL, RUN},
    {"throughput_samples_per_s", "throughput", "samples/s", throughput, NULL, RUN},
    {"bubble_fraction", "bubble", "1", bubble, NULL, RUN},
    {"bubble_fraction_steady", "bubble while steady", "1", steady_bubble, NULL, RUN},
    {"steady_iterations", "steady mini-batches", "1", steady_iterations, NULL, RUN},
    {"periodic", "periodic", "1", is_periodic, may_recur, RUN, true},
    {"period_iterations", "mini-batches of a period", "1", period_iterations, may_recur, RUN},
    {"period_s", "period", "s", period, may_recur, RUN},
    {"periodic_from_iteration", "periodic from mini-batch", "1", periodic_from, may_recur, RUN},
    {"in_flight_half_way", "in flight half-way", "1", in_flight_half_way, may_recur, RUN},
    {"in_flight_at_end", "in flight at the end", "1", in_flight_at_end, may_recur, RUN},
    {"exposed_messages_s", "exposed messages", "s", exposed_messages, NULL, RUN},
    {"exposed_collectives_s", "exposed collectives", "s", exposed_collectives, NULL, RUN},
    {"communication_active_s", "communication", "s", communication_active, NULL, RUN},
    {"communication_hidden_fraction", "hidden communication", "1", communication_hidden, NULL, RUN},
    {"throughput_tokens_per_s", "throughput in tokens", "tokens/s", tokens, knows_tokens, RUN},
    {"model_flop_per_sample", "model's flop per sample", "flop", flop_per_sample, knows_work, RUN},
    {"device_model_flop_per_s", "model's flop/s of a device", "flop/s", flop, knows_work, RUN},
    {"model_flop_utilisation_fraction", "model flop utilisation", "1", utilisation, knows_work,
     RUN},
    {"out_of_memory", "out of memory", "1", out_of_memory, NULL, RUN, true},
    {"stopped", "stopped", "1", stopped, NULL, RUN, true},
    {"plan_stages", "stages of the plan", "1", plan_stages, was_searched, PLAN},
    {"plan_period_s", "period of the plan", "s", plan_period, was_searched, PLAN},
    {"plan_promised_period_s", "promised period", "s", plan_promised, was_searched, PLAN},
    {"plan_lower_bound_s", "lower bound of the period", "s", plan_bound, was_searched, PLAN},
    {"plan_proven_optimal", "plan proven optimal", "1", plan_optimal, was_searched, PLAN, true},
    {"peak_memory_bytes", "peak memory", "bytes", peak_memory, NULL, CS_SCOPE_DEVICE},
    {"peak_activation_bytes", "peak activations", "bytes", peak_activations, NULL, CS_SCOPE_DEVICE},
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

bool cs_run_figure_given(const cs_run_figure *figure, const cs_outcome *outcome)
{
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

#include "sim/run/simulate.h"

#include "sim/core/analysis/offloaded.h"
#include "sim/core/engine/engine.h"
#include "sim/core/lower/lower.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void cs_simulation_finish(cs_simulation *simulation)
{
    cs_graph_finish(&simulation->graph);
    cs_trace_finish(&simulation->trace);
    cs_analysis_finish(&simulation->analysis);
    cs_forms_finish(&simulation->forms);
    cs_allocations_finish(&simulation->allocations);
    free(simulation->host_peaks);
    *simulation = (cs_simulation){0};
}

static cs_status make_graph(const cs_scenario *scenario, const cs_platform *platform,
                            cs_graph *graph, cs_lower_report *report, cs_error *error)
{
    cs_graph logical = {0};
    cs_status status =
        cs_schedule_graph(scenario->schedule, &scenario->job, scenario->params, &logical, error);
    if (status == CS_OK)
        status = cs_lower_with(&logical, platform, &scenario->collectives, graph, report, error);
    cs_graph_finish(&logical);
    return status;
}

/* Runs the graph on the platform, with the scenario's remaining noise. `history`: record changes of
 * memory and versions. */
static cs_status run_engine(const cs_scenario *scenario, const cs_platform *platform,
                            const cs_simulation_options *options, bool history,
                            const cs_graph *graph, cs_trace *trace, cs_error *error)
{
    const cs_noise *noise = &scenario->noise;
    const uint64_t seed = scenario->seed + options->seed_offset;
    double *factors = NULL;
    cs_pair *pairs = NULL;
    cs_status status = cs_noise_tasks(noise, seed, graph->n_tasks, &factors, error);
    if (status == CS_OK)
        status = cs_noise_pairs(noise, platform, seed, &pairs, error);
    const cs_engine_options engine = {.record_memory = history,
                                      .record_versions = history,
                                      .record_rates = options->record_rates,
                                      .task_factors = factors,
                                      .slowdown = scenario->slowdown,
                                      .traffic = {.pairs = pairs,
                                                  .n_sources = noise->n_sources,
                                                  .bytes = noise->bytes,
                                                  .gap = noise->gap,
                                                  .seed = seed},
                                      .stop_on_oom = options->stop_on_oom,
                                      .no_links = options->no_links,
                                      .every_event = options->every_event,
                                      .progress = options->progress};
    if (status == CS_OK)
        status = cs_engine_run(graph, platform, &engine, trace, error);
    free(factors);
    free(pairs);
    return status;
}

static bool is_of_time(const cs_form *form)
{
    return form->figure == CS_FIGURE_MAKESPAN || form->figure == CS_FIGURE_BUBBLE ||
           form->figure == CS_FIGURE_PIPELINE_BUBBLE || form->figure == CS_FIGURE_ITERATION_TIME ||
           form->figure == CS_FIGURE_EPOCH_TIME;
}

/* Whether communication or a late host made a computation longer. */
static bool was_lengthened(const cs_trace *trace)
{
    bool longer = false;
    for (uint32_t d = 0; d < trace->n_devices; d++)
        longer |= trace->devices[d].slowed > 0 || trace->devices[d].waited > 0;
    return longer;
}

/* Returns ParaDL's formula for the strategy, per iteration. */
static const char *paradl_text(const cs_paradl_case *c)
{
    static const char data[] = "B/p sum(FW + BW) + sum WU + 2 (p - 1)(alpha + sum w/p beta)";
    static const char *const texts[CS_N_PARADL_METHODS][2] = {
        [CS_PARADL_SPATIAL] =
            {"B/p sum(FW + BW) + sum WU + 2 (p - 1)(alpha + sum w/p beta) + halos",
             "B/p sum(FW + BW) + sum WU + 2 (p1 - 1)(alpha + sum w/p1 beta) + 2 "
             "(p2 - 1)(alpha + sum w/p2 beta) + halos"},
        [CS_PARADL_PIPELINE] = {"B (p + S - 1)/S (max FW + max BW) + max WU + 2 (p + S - 2) "
                                "max(alpha + B/S y beta)"},
        [CS_PARADL_FILTER] = {"B/p sum(FW + BW) + 1/p sum WU + 3 (p - 1) sum(alpha + B y/p beta)",
                              "B/p sum(FW + BW) + 1/p2 sum WU + 3 (p2 - 1) sum(alpha + B y/p beta) "
                              "+ 2 (p1 - 1)(alpha + sum w/p beta)"},
        [CS_PARADL_CHANNEL] =
            {"B/p sum(FW + BW) + 1/p sum WU + 3 (p - 1) sum(alpha + B y/p beta)",
             "B/p sum(FW + BW) + 1/p2 sum WU + 3 (p2 - 1) sum(alpha + B y/p beta) "
             "+ 2 (p1 - 1)(alpha + sum w/p beta)"},
    };
    return c->members > 1 ? texts[c->method][c->groups > 1] : data;
}

/* Adds ParaDL's form. It is only a comparison, because no network consists of layers that can all
 * be split. */
static cs_status add_paradl(const cs_scenario *scenario, cs_figure figure, uint32_t samples,
                            cs_forms *forms, cs_error *error)
{
    double seconds = 0;
    cs_form form = {.figure = figure,
                    .device = CS_NONE,
                    .formula = paradl_text(&scenario->paradl.asked),
                    .source = "Kahira et al., HPDC 2021, table 3",
                    .assumes = figure == CS_FIGURE_EPOCH_TIME
                                   ? "the same, times the mini-batches of an epoch"
                                   : "every layer is split, nothing overlaps",
                    .applies = true,
                    .comparison = true};
    for (int part = 0; part < CS_N_PARADL_PARTS; part++)
        seconds += cs_paradl_seconds(&scenario->paradl.form, part, samples, scenario->batch_size);
    if (!cs_time_from_seconds(seconds, &form.exact))
        return cs_error_add(error, CS_OVERFLOW, "the closed form of ParaDL takes 2^63 ps or more");
    return cs_forms_add(forms, &form, error);
}

/* Whether collectives are lowered as schedules assume for their closed forms: a ring over the
 * links, or one ring per link if the job has several. */
static bool collectives_are_usual(const cs_scenario *scenario, const cs_platform *platform,
                                  const cs_lower_report *lowering)
{
    const cs_lower_options *options = &scenario->collectives;
    const bool delayed = lowering->fidelity != CS_FIDELITY_FLOW;
    bool by_levels = false;
    for (uint32_t i = 0; i < CS_N_LEVELS; i++)
        by_levels |= options->levels[i].bandwidth > 0;
    if (lowering->n_collectives == 0)
        return true;
    if (by_levels || lowering->n_measured > 0)
        return false;
    if (delayed && (cs_reached_is_less(&options->reached) || options->start > 0 ||
                    options->dispatch || options->nccl != CS_NCCL_NONE))
        return false;
    return platform->n_links == 0 || strcmp(lowering->algorithms, "ring") == 0 ||
           (scenario->job.rings > 0 && strcmp(lowering->algorithms, "ring_per_link") == 0);
}

cs_status cs_simulation_state_forms(const cs_scenario *scenario, cs_simulation *simulation,
                                    cs_error *error)
{
    const bool none = simulation->disturbed || simulation->trace.stopped;
    cs_forms_finish(&simulation->forms);
    CS_TRY(scenario->schedule->closed_forms(&scenario->job, scenario->params, &simulation->forms,
                                            error));
    if (scenario->paradl.given) {
        CS_TRY(add_paradl(scenario, CS_FIGURE_ITERATION_TIME, scenario->batch_size,
                          &simulation->forms, error));
        if (scenario->dataset > 0)
            CS_TRY(add_paradl(scenario, CS_FIGURE_EPOCH_TIME, scenario->dataset, &simulation->forms,
                              error));
    }
    const bool offloads = scenario->job.offload.layers > 0; /* closed forms do not know about
                                                             * offloading */
    if (scenario->job.libraries || offloads) {
        /* Mark memory forms as not applicable: they only know the model's memory. */
        for (uint32_t f = 0; f < simulation->forms.n; f++)
            if (simulation->forms.forms[f].figure == CS_FIGURE_PEAK_MEMORY)
                simulation->forms.forms[f].applies = false;
    }
    if (none || offloads || was_lengthened(&simulation->trace) ||
        !collectives_are_usual(scenario, &scenario->platform, &simulation->lowering)) {
        /* Mark closed forms as not applicable: all of them, in runs with noise or stopped early;
         * else forms of times, which also assume that computations are not slowed down. */
        const bool all = none || offloads;
        for (uint32_t f = 0; f < simulation->forms.n; f++)
            if (all || is_of_time(&simulation->forms.forms[f]))
                simulation->forms.forms[f].applies = false;
    }
    return CS_OK;
}

static cs_status run_on(const cs_scenario *scenario, const cs_platform *platform,
                        const cs_simulation_options *options, cs_simulation *simulation,
                        cs_error *error)
{
    cs_status status =
        make_graph(scenario, platform, &simulation->graph, &simulation->lowering, error);
    if (status == CS_OK && !cs_progress_step(options->progress, "simulating", 0, 1))
        status = cs_error_add(error, CS_INTERRUPTED, "interrupted before the simulation began");
    if (status == CS_OK)
        status = run_engine(scenario, platform, options, true, &simulation->graph,
                            &simulation->trace, error);
    if (status == CS_OK)
        status = cs_analyse(&simulation->graph, &simulation->trace, scenario->batch_size,
                            &simulation->analysis, error);
    if (status == CS_OK)
        status = cs_simulation_state_forms(scenario, simulation, error);
    if (status == CS_OK)
        status = cs_allocations_make(scenario, &simulation->graph, &simulation->trace,
                                     &simulation->allocations, error);
    if (status == CS_OK)
        status = cs_memory_fit_find(scenario, &simulation->graph, &simulation->trace,
                                    &simulation->allocations, &simulation->fit, error);
    if (status == CS_OK)
        status = cs_offloaded_peaks(&simulation->graph, &simulation->trace, &simulation->host_peaks,
                                    error);
    return status;
}

cs_status cs_simulation_report(const cs_scenario *scenario, cs_status status, const cs_error *why,
                               cs_error *error)
{
    if (status == CS_OVERFLOW || status == CS_FAILED) {
        (void)cs_error_add(error, status, "%s: %s", scenario->file, why->text);
        cs_error_place(error, strlen(scenario->file), 0);
    } else if (status != CS_OK) {
        cs_error_add_all(error, why);
    }
    return status;
}

static cs_step measure_step(const cs_graph *graph, const cs_trace *trace)
{
    cs_step step = {.time = cs_time_seconds(trace->makespan),
                    .free = INT64_MAX,
                    .n_tasks = cs_graph_count_tasks(graph)};
    for (uint32_t d = 0; d < trace->n_devices; d++) {
        const cs_device_record *record = &trace->devices[d];
        step.peak = record->peak > step.peak ? record->peak : step.peak;
        if (record->out_of_memory && record->peak - record->capacity > step.over)
            step.over = record->peak - record->capacity;
        const int64_t left = record->capacity - record->peak;
        if (record->capacity < INT64_MAX && left < step.free)
            step.free = left > 0 ? left : 0;
    }
    return step;
}

static cs_status run_bare(const cs_scenario *scenario, const cs_platform *platform,
                          const cs_simulation_options *options, cs_graph *graph, cs_trace *trace,
                          cs_error *error)
{
    CS_TRY(make_graph(scenario, platform, graph, NULL, error));
    const cs_status status = run_engine(scenario, platform, options, false, graph, trace, error);
    if (status != CS_OK)
        cs_graph_finish(graph);
    return status;
}

cs_status cs_simulate_trace(const cs_scenario *scenario, const cs_simulation_options *options,
                            cs_graph *graph, cs_trace *trace, cs_error *error)
{
    cs_scenario quiet = *scenario;
    quiet.noise = (cs_noise){0};
    return run_bare(&quiet, &scenario->platform, options, graph, trace, error);
}

static cs_status run_step(const cs_scenario *scenario, const cs_platform *platform,
                          const cs_progress *progress, cs_step *step, cs_error *error)
{
    const cs_simulation_options how = {.no_links = true, .progress = progress};
    cs_scenario one = *scenario; /* the original keeps ownership */
    bool doubtful = false;
    /* Several steps of a pass may be merged into one task if collectives are delays that take time,
     * nothing is random or slowed down, and only passes occupy devices. */
    const uint32_t fidelity = scenario->collectives.fidelity;
    one.job.in_series = (fidelity == CS_FIDELITY_ANALYTIC || fidelity == CS_FIDELITY_ALPHA_BETA) &&
                        scenario->platform.n_links > 0 && !cs_noise_is_on(&scenario->noise) &&
                        !scenario->slowdown && !scenario->job.blocking;
    do {
        cs_graph graph = {0};
        cs_trace trace = {0};
        CS_TRY(run_bare(&one, platform, &how, &graph, &trace, error));
        *step = measure_step(&graph, &trace);
        doubtful = trace.doubtful;
        one.job.in_series = false;
        cs_graph_finish(&graph);
        cs_trace_finish(&trace);
    } while (doubtful);
    return CS_OK;
}

cs_status cs_simulate_step(const cs_scenario *scenario, const cs_progress *progress, cs_step *step,
                           cs_error *error)
{
    cs_platform disturbed;
    cs_error why;
    cs_error_init(&why);
    if (!cs_noise_is_on(&scenario->noise))
        return cs_simulation_report(
            scenario, run_step(scenario, &scenario->platform, progress, step, &why), &why, error);
    cs_status status =
        cs_noise_platform(&scenario->noise, &scenario->platform, scenario->seed, &disturbed, &why);
    if (status == CS_OK) {
        status = run_step(scenario, &disturbed, progress, step, &why);
        cs_platform_finish(&disturbed);
    }
    return cs_simulation_report(scenario, status, &why, error);
}

static cs_status run(const cs_scenario *scenario, const cs_simulation_options *options,
                     cs_simulation *simulation, cs_error *error)
{
    cs_platform disturbed;
    simulation->disturbed = cs_noise_is_on(&scenario->noise);
    simulation->epoch = (double)scenario->dataset / scenario->batch_size;
    if (!simulation->disturbed)
        return run_on(scenario, &scenario->platform, options, simulation, error);
    CS_TRY(cs_noise_platform(&scenario->noise, &scenario->platform,
                             scenario->seed + options->seed_offset, &disturbed, error));
    cs_status status = run_on(scenario, &disturbed, options, simulation, error);
    cs_platform_finish(&disturbed);
    return status;
}

cs_status cs_simulate(const cs_scenario *scenario, const cs_simulation_options *options,
                      cs_simulation *simulation, cs_error *error)
{
    cs_simulation made = {0};
    cs_error why;
    cs_error_init(&why);
    const cs_status status =
        cs_simulation_report(scenario, run(scenario, options, &made, &why), &why, error);
    if (status != CS_OK) {
        cs_simulation_finish(&made);
        return status;
    }
    if (!options->no_hash)
        made.hash = cs_trace_hash(&made.trace);
    *simulation = made;
    return CS_OK;
}

double cs_simulation_figure(const cs_simulation *simulation, const cs_form *form)
{
    switch (form->figure) {
    case CS_FIGURE_MAKESPAN:
        return (double)simulation->trace.makespan;
    case CS_FIGURE_BUBBLE:
        return simulation->analysis.bubble_fraction;
    case CS_FIGURE_PIPELINE_BUBBLE:
        return simulation->without_tasks ? (double)NAN
                                         : simulation->analysis.pipeline_bubble_fraction;
    case CS_FIGURE_ITERATION_TIME:
        return simulation->analysis.iteration_time * (double)CS_PS_PER_SEC;
    case CS_FIGURE_EPOCH_TIME:
        return simulation->analysis.iteration_time * simulation->epoch * (double)CS_PS_PER_SEC;
    case CS_FIGURE_PEAK_VERSIONS: {
        uint32_t most = 0;
        for (uint32_t i = 0; i < simulation->graph.n_slots; i++) {
            uint32_t live = simulation->trace.slots[i].peak_live;
            if (simulation->graph.slots[i].device == form->device && live > most)
                most = live;
        }
        return most;
    }
    case CS_FIGURE_VERSION_DIFFERENCE:
        return simulation->analysis.staleness.version_difference.value == CS_STALENESS_NONE
                   ? (double)NAN
                   : (double)simulation->analysis.staleness.version_difference.value;
    case CS_FIGURE_PEAK_ACTIVATIONS:
        return (double)simulation->trace.devices[form->device].category_peak[CS_MEMORY_ACTIVATIONS];
    case CS_FIGURE_PEAK_MEMORY:
        return (double)simulation->trace.devices[form->device].peak;
    case CS_N_FIGURES:
        break;
    }
    return 0;
}

double cs_form_value(const cs_form *form)
{
    return cs_figure_is_fraction(form->figure) ? form->fraction : (double)form->exact;
}

double cs_form_unit(const cs_form *form)
{
    const bool time = form->figure == CS_FIGURE_MAKESPAN ||
                      form->figure == CS_FIGURE_ITERATION_TIME ||
                      form->figure == CS_FIGURE_EPOCH_TIME;
    return time ? (double)CS_PS_PER_SEC : 1;
}

cs_work_rate cs_simulation_work_rate(const cs_scenario *scenario, const cs_simulation *simulation)
{
    const cs_model_work *work = &scenario->model->work;
    const cs_platform *platform = &scenario->platform;
    const double samples =
        simulation->trace.stopped ? (double)NAN : simulation->analysis.throughput;
    double speed = 0;
    for (uint32_t d = 0; d < platform->n_devices; d++)
        speed += platform->devices[d].speed;
    const double flop = work->flop_per_sample > 0 ? work->flop_per_sample * samples : (double)NAN;
    return (cs_work_rate){
        .tokens = work->tokens_per_sample > 0 ? work->tokens_per_sample * samples : (double)NAN,
        .flop = flop / platform->n_devices,
        .utilisation = work->peak > 0 ? flop / (speed * work->peak) : (double)NAN};
}

bool cs_simulation_out_of_memory(const cs_simulation *simulation)
{
    for (uint32_t d = 0; d < simulation->trace.n_devices; d++) {
        if (simulation->trace.devices[d].out_of_memory)
            return true;
    }
    return false;
}

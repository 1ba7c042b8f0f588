/* From a scenario to its figures: graph, lowering, engine, analysis, closed forms, each an arrow of
 * its own. */
#ifndef CS_RUN_SIMULATE_H
#define CS_RUN_SIMULATE_H

#include "sim/base/progress.h"
#include "sim/core/analysis/analysis.h"
#include "sim/core/engine/engine.h"
#include "sim/core/lower/lower.h"
#include "sim/run/allocations.h"
#include "sim/run/memory-fit.h"
#include "sim/run/scenario/scenario.h"

typedef struct cs_simulation {
    cs_lower_report lowering;
    cs_graph graph; /* lowered */
    cs_trace trace;
    cs_analysis analysis;
    cs_allocations allocations; /* where the scenario has an allocator */
    cs_memory_fit fit;
    int64_t *host_peaks; /* see offloaded.h; NULL: nothing is offloaded */
    cs_forms forms;
    double epoch; /* mini-batches; 0: the data set is not known */
    uint64_t hash;
    bool disturbed;     /* the scenario has noise: closed forms do not apply */
    bool without_tasks; /* the graph has the number of its tasks only, and what follows from single
                         * ones is not known (low-memory.h) */
} cs_simulation;

typedef struct cs_simulation_options {
    bool stop_on_oom;
    bool record_rates;
    bool no_hash;         /* that of the simulation stays 0 */
    bool no_links;        /* the trace has no links */
    bool every_event;     /* without the engine's shortcuts, which change no result */
    uint64_t seed_offset; /* the run's seed is the scenario's plus this */
    const cs_progress *progress;
} cs_simulation_options;

/* Zeroed simulations can be finished. */
void cs_simulation_finish(cs_simulation *simulation);

CS_MUST_CHECK cs_status cs_simulate(const cs_scenario *scenario,
                                    const cs_simulation_options *options, cs_simulation *simulation,
                                    cs_error *error);

/* States the closed forms of a simulation of the scenario anew. */
CS_MUST_CHECK cs_status cs_simulation_state_forms(const cs_scenario *scenario,
                                                  cs_simulation *simulation, cs_error *error);

/* Of a run what a search for plans compares: the figure makespan_s, the largest peak_memory_bytes
 * and whether a device went over its capacity, bit for bit those of cs_simulate. */
typedef struct cs_step {
    double time; /* s: of one mini-batch until all weights are updated, and gathered again */
    int64_t peak;
    int64_t over; /* bytes by which the fullest device is over its capacity; 0: all fit */
    int64_t free; /* bytes, least free memory of a device; INT64_MAX: memory is unlimited */
    uint32_t n_tasks;
} cs_step;

/* Graph, lowering and engine only; no seed offset. Errors as of cs_simulate. */
CS_MUST_CHECK cs_status cs_simulate_step(const cs_scenario *scenario, const cs_progress *progress,
                                         cs_step *step, cs_error *error);

/* Graph, lowered, and trace alone, of a scenario without noise, whatever it has of it; both are the
 * caller's. Memory is in the peaks only. Errors as of cs_simulate, but without the scenario's file:
 * cs_simulation_report adds it. */
CS_MUST_CHECK cs_status cs_simulate_trace(const cs_scenario *scenario,
                                          const cs_simulation_options *options, cs_graph *graph,
                                          cs_trace *trace, cs_error *error);

/* Passes messages about a run on, which name the scenario's file then; returns `status`. */
cs_status cs_simulation_report(const cs_scenario *scenario, cs_status status, const cs_error *why,
                               cs_error *error);

/* What the simulation says where a closed form says something, in the form's unit: ps, bytes, a
 * fraction or a number; NaN when it says nothing. */
double cs_simulation_figure(const cs_simulation *simulation, const cs_form *form);
double cs_form_value(const cs_form *form);

/* How many of both make one of the unit in which the figure is reported: s, bytes, ... */
double cs_form_unit(const cs_form *form);

/* How fast the devices did the model's own work; NaN where it is not known. Model flop utilisation
 * is Chowdhery et al.'s (PaLM, JMLR 2023, appendix B): the flop of forward and backward that the
 * throughput stands for, of what the devices could do at their peak. */
typedef struct cs_work_rate {
    double tokens;      /* per s */
    double flop;        /* flop/s of a device, on average */
    double utilisation; /* of the peak, which scales with the speed of a device */
} cs_work_rate;

cs_work_rate cs_simulation_work_rate(const cs_scenario *scenario, const cs_simulation *simulation);

/* True when some device went over its capacity. */
bool cs_simulation_out_of_memory(const cs_simulation *simulation);

#endif

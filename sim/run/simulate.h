/* Simulates a scenario and computes its metrics: graph, lowering, engine, analysis, closed
 * forms. */
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
    cs_graph graph; /* lowered graph */
    cs_trace trace;
    cs_analysis analysis;
    cs_allocations allocations; /* filled if the scenario has an allocator */
    cs_memory_fit fit;
    int64_t *host_peaks; /* see offloaded.h; NULL: nothing is offloaded */
    cs_forms forms;
    double epoch; /* mini-batches per epoch; 0: the data set is not known */
    uint64_t hash;
    bool disturbed;     /* the scenario has noise, so closed forms do not apply */
    bool without_tasks; /* the graph only has the number of tasks; metrics that need individual
                         * tasks are missing (low-memory.h) */
} cs_simulation;

typedef struct cs_simulation_options {
    bool stop_on_oom;
    bool record_rates;
    bool no_hash;         /* leave the simulation's hash at 0 */
    bool no_links;        /* leave links out of the trace */
    bool every_event;     /* disable the engine's shortcuts, which do not change results */
    uint64_t seed_offset; /* added to the scenario's seed */
    const cs_progress *progress;
} cs_simulation_options;

/* Accepts a zeroed simulation. */
void cs_simulation_finish(cs_simulation *simulation);

CS_MUST_CHECK cs_status cs_simulate(const cs_scenario *scenario,
                                    const cs_simulation_options *options, cs_simulation *simulation,
                                    cs_error *error);

/* States the closed forms of a simulation again. */
CS_MUST_CHECK cs_status cs_simulation_state_forms(const cs_scenario *scenario,
                                                  cs_simulation *simulation, cs_error *error);

/* The results that a search for plans compares: makespan_s, the largest peak_memory_bytes, and
 * whether a device exceeded its capacity. Bit-for-bit equal to cs_simulate. */
typedef struct cs_step {
    double time; /* s per mini-batch, until all weights are updated and gathered again */
    int64_t peak;
    int64_t over; /* bytes, largest excess over a device's capacity; 0: all fit */
    int64_t free; /* bytes, smallest free memory of a device; INT64_MAX: memory is unlimited */
    uint32_t n_tasks;
} cs_step;

/* Runs only graph, lowering and engine, without a seed offset. Errors as for cs_simulate. */
CS_MUST_CHECK cs_status cs_simulate_step(const cs_scenario *scenario, const cs_progress *progress,
                                         cs_step *step, cs_error *error);

/* Makes the lowered graph and the trace, ignoring noise; the caller owns both. Memory is recorded
 * as peaks only. Errors as for cs_simulate, but without the scenario's file, which
 * cs_simulation_report adds. */
CS_MUST_CHECK cs_status cs_simulate_trace(const cs_scenario *scenario,
                                          const cs_simulation_options *options, cs_graph *graph,
                                          cs_trace *trace, cs_error *error);

/* Passes on messages about a run, with the scenario's file added if necessary; returns `status`. */
cs_status cs_simulation_report(const cs_scenario *scenario, cs_status status, const cs_error *why,
                               cs_error *error);

/* Returns the simulated value of the quantity that a closed form predicts, in the form's unit: ps,
 * bytes, a fraction or a number. NaN if there is none. */
double cs_simulation_figure(const cs_simulation *simulation, const cs_form *form);
double cs_form_value(const cs_form *form);

/* Returns the size of the reported unit (s, bytes, ...) in the form's unit. */
double cs_form_unit(const cs_form *form);

/* Speed of the devices in terms of the model's own work; NaN if not known. Model flop utilisation
 * (MFU) is defined by Chowdhery et al. (PaLM, JMLR 2023, appendix B): flop of forward and backward
 * at the achieved throughput, as a share of the devices' peak. */
typedef struct cs_work_rate {
    double tokens;      /* tokens per s */
    double flop;        /* flop/s per device, mean */
    double utilisation; /* share of the peak, which scales with a device's speed */
} cs_work_rate;

cs_work_rate cs_simulation_work_rate(const cs_scenario *scenario, const cs_simulation *simulation);

/* Whether some device exceeded its capacity. */
bool cs_simulation_out_of_memory(const cs_simulation *simulation);

#endif

/* From a scenario to its figures: graph, lowering, engine, analysis, closed forms, each an arrow of
 * its own. */
#ifndef CS_CLI_SIMULATE_H
#define CS_CLI_SIMULATE_H

#include "sim/analysis/analysis.h"
#include "sim/base/progress.h"
#include "sim/lower/lower.h"
#include "sim/scenario/scenario.h"

typedef struct cs_simulation {
    cs_lower_report lowering;
    cs_graph graph; /* lowered */
    cs_trace trace;
    cs_analysis analysis;
    cs_forms forms;
    uint64_t hash;
    bool disturbed; /* the scenario has noise: closed forms do not apply */
} cs_simulation;

typedef struct cs_simulation_options {
    bool stop_on_oom;
    bool record_rates;
    uint64_t seed_offset; /* the run's seed is the scenario's plus this */
    const cs_progress *progress;
} cs_simulation_options;

/* Zeroed simulations can be finished. */
void cs_simulation_finish(cs_simulation *simulation);

CS_MUST_CHECK cs_status cs_simulate(const cs_scenario *scenario,
                                    const cs_simulation_options *options, cs_simulation *simulation,
                                    cs_error *error);

/* What the simulation says where a closed form says something, in the form's unit: ps, bytes, a
 * fraction or a number; NaN when it says nothing. */
double cs_simulation_figure(const cs_simulation *simulation, const cs_form *form);
double cs_form_value(const cs_form *form);

/* True when some device went over its capacity. */
bool cs_simulation_out_of_memory(const cs_simulation *simulation);

#endif

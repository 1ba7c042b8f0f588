/* OSDP for a scenario: decides which layers are replicated over the data-parallel devices and which
 * are sharded, in how many slices, and for how many samples. Compares the result with plain data
 * parallelism and FSDP.
 *
 * Each layer of the model's chain is an operator (schedules/osdp/osdp-cost.h). Its weights, states,
 * activations, workspace and times are the simulator's, for the samples per device in the scenario;
 * for other batch sizes they scale linearly, as in the paper. alpha and beta follow from the
 * slowest hop of a ring over the data-parallel devices (cs_rings_slowest) or, if the scenario's
 * costs have one, from a measured gather over as many devices. The slowest device determines the
 * times. */
#ifndef CS_RUN_OSDP_H
#define CS_RUN_OSDP_H

#include "schedules/osdp/osdp-search.h"
#include "sim/run/simulate.h"

/* Layers whose names match may be cut into up to `most` slices. */
typedef struct cs_osdp_slices {
    const char *pattern; /* pattern of fnmatch(3); NULL: all layers */
    uint32_t most;       /* >= 1 */
} cs_osdp_slices;

typedef struct cs_osdp_options {
    cs_osdp_surge surge;
    const cs_osdp_slices *slices; /* later entries win */
    uint32_t n_slices;
    uint32_t gathers;     /* gathers of sharded weights per step; 0: 2, or 3 with recomputation */
    uint32_t most_batch;  /* largest batch per device, >= 1 */
    uint64_t depth_first; /* node limit per batch of the paper's own search; 0: skip this search */
    bool simulate;
    const cs_progress *progress;
} cs_osdp_options;

/* The plans that are compared. */
typedef enum cs_osdp_strategy {
    CS_OSDP_ROW_DATA,        /* data parallel */
    CS_OSDP_ROW_FSDP,        /* all sharded */
    CS_OSDP_ROW_FSDP_SLICED, /* all sharded, with slices */
    CS_OSDP_ROW_BASE_SAME,   /* OSDP without slices, with FSDP's batch */
    CS_OSDP_ROW_BASE,        /* OSDP without slices */
    CS_OSDP_ROW_OSDP,
    CS_OSDP_ROW_DEPTH_FIRST, /* OSDP, found by the paper's search */
    CS_N_OSDP_ROWS
} cs_osdp_strategy;

typedef struct cs_osdp_row {
    const char *name;
    bool asked;           /* the search was run */
    cs_osdp_plan plan;    /* best plan by the cost model */
    double data_fraction; /* share of gradient bytes in data-parallel mode */
    uint32_t cut;         /* operators with more than one slice */
    double search_time;   /* wall-clock time, s */
    /* with cs_osdp_options.simulate: */
    cs_osdp_plan fitted; /* best plan by simulation; found = false: none fits */
    double fitted_fraction;
    uint32_t fitted_cut;
    double iteration_time; /* s per step, simulated */
    int64_t peak;          /* bytes on the fullest device, simulated */
} cs_osdp_row;

typedef struct cs_osdp_study {
    cs_scenario scenario;
    cs_arena arena; /* owns the operators and plans */
    cs_osdp_model model;
    uint32_t n_weighted; /* operators with weights */
    double parameters;   /* weights of these operators, counted in the model's precision */
    uint32_t replicas;   /* replicas per mini-batch: a step trains replicas x batch samples */
    int64_t limit;       /* bytes per device; INT64_MAX: unlimited */
    cs_osdp_surge surge;
    uint32_t most_batch;
    int64_t least_memory; /* bytes that any plan needs for one sample, even with slices */
    cs_osdp_row rows[CS_N_OSDP_ROWS];
    bool simulated;
} cs_osdp_study;

/* Accepts a zeroed study. */
void cs_osdp_study_finish(cs_osdp_study *study);

/* Makes the operators of a scenario, with alpha and beta; they live in the arena. CS_INVALID,
 * naming the place, if OSDP does not apply: it requires a section "parallel", one stage, one
 * micro-batch, no expert parallelism, and states sharded over all replicas. */
CS_MUST_CHECK cs_status cs_osdp_model_of(const cs_scenario *scenario,
                                         const cs_osdp_options *options, cs_arena *arena,
                                         cs_osdp_model *model, cs_error *error);

/* Reads the scenario in `document`, from the file `path`, and searches for plans. It is not an
 * error if nothing fits. The document must outlive the study. */
CS_MUST_CHECK cs_status cs_osdp_study_make(const cJSON *document, const char *path,
                                           const cs_osdp_options *options, cs_osdp_study *study,
                                           cs_error *error);

/* Returns samples per second over all devices; 0 without a plan. */
double cs_osdp_throughput(const cs_osdp_study *study, cs_osdp_strategy row);
double cs_osdp_simulated_throughput(const cs_osdp_study *study, cs_osdp_strategy row);

/* Returns the speed of a row relative to another; NaN if one of them has no plan. */
double cs_osdp_ratio(const cs_osdp_study *study, cs_osdp_strategy row, cs_osdp_strategy than);

/* Returns the scenario's document with the batch size and the rules of a plan. NULL if memory runs
 * out. */
cJSON *cs_osdp_document(const cs_osdp_study *study, const cJSON *document,
                        const cs_osdp_plan *plan);

/* Returns the list "rules" of the section "parallel" for a plan. NULL if memory runs out. */
cJSON *cs_osdp_rules_json(const cs_osdp_model *model, const cs_osdp_plan *plan);

/* Whether all operators with weights are sharded, or all are data parallel. */
bool cs_osdp_is_all(const cs_osdp_model *model, const cs_osdp_plan *plan, bool sharded);

/* A plan, with measured time and memory. */
typedef struct cs_osdp_fitted {
    cs_osdp_plan plan;
    double time;  /* s per step */
    int64_t peak; /* bytes on the fullest device */
} cs_osdp_fitted;

/* How to judge plans by something other than the cost model: `try` fills time and peak. */
typedef struct cs_osdp_fit {
    const cs_osdp_model *model;
    cs_osdp_rules rules; /* the memory limit applies to the measured peak */
    const cs_progress *progress;
    cs_status (*try)(const void *context, cs_osdp_fitted *plan, cs_error *error);
    const void *context;
} cs_osdp_fit;

/* Finds the fastest plan of a batch size that keeps the limit when tried; found = false: none. The
 * cost model proposes plans, for varying limits. Choices live in the arena. */
CS_MUST_CHECK cs_status cs_osdp_fit_batch(const cs_osdp_fit *fit, uint32_t batch, cs_arena *arena,
                                          cs_osdp_fitted *fitted, cs_error *error);

/* Internal: finds, for each requested row, the plan that is fastest in simulation. */
CS_MUST_CHECK cs_status cs_osdp_simulate(cs_osdp_study *study, const cJSON *document,
                                         const cs_osdp_options *options, cs_error *error);
void cs_osdp_describe(const cs_osdp_study *study, const cs_osdp_plan *plan, double *fraction,
                      uint32_t *cut);
cs_osdp_rules cs_osdp_rules_of(const cs_osdp_study *study, cs_osdp_strategy row);

#endif

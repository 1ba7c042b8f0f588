/* OSDP for a scenario: which of its layers are replicated over the data-parallel devices and which
 * sharded, in how many slices, with how many samples; beside plain data parallelism and FSDP.
 *
 * A layer of the model's chain is an operator (schedules/osdp/osdp-cost.h). Its weights, states,
 * activations, workspace and times are those that the simulation takes, for the samples that a
 * device has in the scenario; of other batches they grow in proportion, as the paper's do. alpha
 * and beta follow from the slowest hop of a ring of the data-parallel devices (cs_rings_slowest) or,
 * if the scenario's costs have one, from a measured gather among as many devices. The slowest device
 * decides the times.
 */
#ifndef CS_RUN_OSDP_H
#define CS_RUN_OSDP_H

#include "schedules/osdp/osdp-search.h"
#include "sim/run/simulate.h"

/* Layers whose names match may be cut into so many slices. */
typedef struct cs_osdp_slices {
    const char *pattern; /* as of fnmatch(3); NULL: all layers */
    uint32_t most;       /* >= 1 */
} cs_osdp_slices;

typedef struct cs_osdp_options {
    cs_osdp_surge surge;
    const cs_osdp_slices *slices; /* later ones win */
    uint32_t n_slices;
    uint32_t gathers;     /* of sharded weights per step; 0: 2, with recomputation 3 */
    uint32_t most_batch;  /* samples of a device, >= 1 */
    uint64_t depth_first; /* nodes per batch of the paper's own search; 0: it is not run */
    bool simulate;
    const cs_progress *progress;
} cs_osdp_options;

/* What stands side by side. */
typedef enum cs_osdp_strategy {
    CS_OSDP_ROW_DATA,        /* data parallel */
    CS_OSDP_ROW_FSDP,        /* all sharded */
    CS_OSDP_ROW_FSDP_SLICED, /* all sharded, in slices */
    CS_OSDP_ROW_BASE_SAME,   /* OSDP without slices at FSDP's batch */
    CS_OSDP_ROW_BASE,        /* OSDP without slices */
    CS_OSDP_ROW_OSDP,
    CS_OSDP_ROW_DEPTH_FIRST, /* the same by the paper's search */
    CS_N_OSDP_ROWS
} cs_osdp_strategy;

typedef struct cs_osdp_row {
    const char *name;
    bool asked;           /* it was searched for */
    cs_osdp_plan plan;    /* by the cost model */
    double data_fraction; /* of the gradients' bytes, in data mode */
    uint32_t cut;         /* operators in more than one slice */
    double search_time;   /* s, of this machine */
    /* with cs_osdp_options.simulate: */
    cs_osdp_plan fitted; /* the plan that the simulation chooses; not found: none fits */
    double fitted_fraction;
    uint32_t fitted_cut;
    double iteration_time; /* s, simulated */
    int64_t peak;          /* bytes of the fullest device, simulated */
} cs_osdp_row;

typedef struct cs_osdp_study {
    cs_scenario scenario;
    cs_arena arena; /* owns the operators and plans */
    cs_osdp_model model;
    uint32_t n_weighted; /* operators with weights */
    double parameters;   /* of them, in values of the model's precision */
    uint32_t replicas;   /* of the mini-batch: a step trains so many times a row's batch */
    int64_t limit;       /* bytes of a device; INT64_MAX: without limit */
    cs_osdp_surge surge;
    uint32_t most_batch;
    int64_t least_memory; /* that any plan needs for one sample, slices included */
    cs_osdp_row rows[CS_N_OSDP_ROWS];
    bool simulated;
} cs_osdp_study;

/* Zeroed studies can be finished. */
void cs_osdp_study_finish(cs_osdp_study *study);

/* The operators of a scenario, and alpha and beta; they live in the arena. CS_INVALID, naming the
 * place, where the scenario is none that OSDP is about: it needs a section "parallel", one stage,
 * one micro-batch, no experts on devices of their own, and states divided over all that share them.
 */
CS_MUST_CHECK cs_status cs_osdp_model_of(const cs_scenario *scenario,
                                         const cs_osdp_options *options, cs_arena *arena,
                                         cs_osdp_model *model, cs_error *error);

/* Reads the scenario `document` of the file `path`, and searches. That nothing fits is a result
 * too. The document must live as long. */
CS_MUST_CHECK cs_status cs_osdp_study_make(const cJSON *document, const char *path,
                                           const cs_osdp_options *options, cs_osdp_study *study,
                                           cs_error *error);

/* Samples per second of all devices; 0 where there is no plan. */
double cs_osdp_throughput(const cs_osdp_study *study, cs_osdp_strategy row);
double cs_osdp_simulated_throughput(const cs_osdp_study *study, cs_osdp_strategy row);

/* How many times faster one row is than another; NaN where one of them has no plan. */
double cs_osdp_ratio(const cs_osdp_study *study, cs_osdp_strategy row, cs_osdp_strategy than);

/* The scenario with a plan in it: its batch, and the rules of the section "parallel" that its modes
 * are. NULL when memory runs out. */
cJSON *cs_osdp_document(const cs_osdp_study *study, const cJSON *document,
                        const cs_osdp_plan *plan);

/* The rules of the section "parallel" that a plan's modes are. NULL when memory runs out. */
cJSON *cs_osdp_rules_json(const cs_osdp_model *model, const cs_osdp_plan *plan);

/* Whether all operators with weights are in one mode: sharded, or data parallel. */
bool cs_osdp_is_all(const cs_osdp_model *model, const cs_osdp_plan *plan, bool sharded);

/* A plan and what it takes where it was tried. */
typedef struct cs_osdp_fitted {
    cs_osdp_plan plan;
    double time;  /* s */
    int64_t peak; /* bytes of the fullest device */
} cs_osdp_fitted;

/* Plans of one batch, which something else than the cost model judges: `try` fills time and peak. */
typedef struct cs_osdp_fit {
    const cs_osdp_model *model;
    cs_osdp_rules rules; /* the limit is of what was tried */
    const cs_progress *progress;
    cs_status (*try)(const void *context, cs_osdp_fitted *plan, cs_error *error);
    const void *context;
} cs_osdp_fit;

/* The fastest one of those that were tried and keep the limit; not found: none does. The cost model
 * proposes them, for limits of its own. Choices live in the arena. */
CS_MUST_CHECK cs_status cs_osdp_fit_batch(const cs_osdp_fit *fit, uint32_t batch, cs_arena *arena,
                                          cs_osdp_fitted *fitted, cs_error *error);

/* Internal: finds, for each row that was asked, the plan that the simulation likes best. */
CS_MUST_CHECK cs_status cs_osdp_simulate(cs_osdp_study *study, const cJSON *document,
                                         const cs_osdp_options *options, cs_error *error);
void cs_osdp_describe(const cs_osdp_study *study, const cs_osdp_plan *plan, double *fraction,
                      uint32_t *cut);
cs_osdp_rules cs_osdp_rules_of(const cs_osdp_study *study, cs_osdp_strategy row);

#endif

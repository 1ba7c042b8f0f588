/* Schedules: how a training step is ordered. To add one: a file with a `const cs_schedule`, a line
 * in registry.c, a scenario, a test. sequential.c is the shortest template.
 *
 * A schedule turns a job (model, plan, batch) and its own parameters into a task graph, and states
 * the closed forms that its paper gives, so that they can be held against the simulation.
 */
#ifndef CS_SCHEDULES_SCHEDULE_H
#define CS_SCHEDULES_SCHEDULE_H

#include "schedules/plan/chain-fields.h"
#include "schedules/plan/pattern.h"
#include "sim/base/field.h"
#include "sim/core/graph/builder.h"

/* What the devices of a replicated stage do, where the plan has no grid. */
typedef enum cs_replicas {
    CS_REPLICAS_NONE,        /* there are none */
    CS_REPLICAS_ROUND_ROBIN, /* micro-batch m is computed by replica m mod R of the stage's R */
    CS_REPLICAS_ALL_REDUCE,  /* every replica takes its share of the samples of every micro-batch */
} cs_replicas;

enum { CS_ZERO_STAGES = 4 };

/* How the parameters of a layer rest: `fraction` of them at stage `zero`, the others at stage 0. */
typedef struct cs_layer_states {
    uint32_t zero;   /* 0 to 3, see cs_states */
    double fraction; /* 0 to 1 */
} cs_layer_states;

/* Where weights, gradients and optimizer states rest between their uses (ZeRO: Rajbhandari et al.,
 * SC 2020, section 5; FSDP: Zhao et al., VLDB 2023). They are divided over the axes SHARD of the
 * grid, those of experts over EXPERT_SHARD. */
typedef struct cs_states {
    uint32_t
        zero; /* 0: nothing is divided; 1: optimizer states; 2: gradients too; 3: weights too */
    const cs_layer_states
        *layers; /* per layer of the model, in place of `zero`; NULL: all have it */
    uint32_t
        prefetch;     /* zero 3: layers whose weights are gathered ahead of the one that computes */
    bool wide_shards; /* zero 3: of weights of 2 bytes nothing rests but the optimizer's copy in 4,
                       * from which they are cast to be gathered, and shares of gradients have 4 */
    bool keep_gathered; /* zero 3: weights stay gathered from a forward to its backward */
    bool gather_once;   /* zero 3: weights stay gathered from the first forward of a mini-batch to
                         * its last backward, behind which gradients are reduced */
    bool whole_sums;    /* zero 1: each place gets all of the sum of gradients, not its share */
    bool accumulate;    /* zero 2, 3: gradients are summed whole over the micro-batches of a
                         * mini-batch and reduced once, else after each micro-batch */
    int64_t bucket; /* bytes of gradients that are reduced together, while the last backward of a
                         * mini-batch still runs; 0: all together after it */
} cs_states;

/* Activations that wait in the host's memory for their backward (offload.h). */
typedef struct cs_offload {
    uint32_t layers;    /* of each stage, the first ones; 0: none; CS_NONE: all but the last */
    uint32_t in_flight; /* copies to the host that may be under way when a layer begins its forward,
                         * and */
    uint32_t prefetch;  /* how many layers ahead of the backward a copy back may begin; CS_NONE:
                         * as many as there are layers less those offloaded and one */
    double bandwidth;   /* bytes/s of the device's link to its host, each way */
} cs_offload;

/* How long what a stage hands on stays there: see stage-buffers.h. */
typedef enum cs_stage_results {
    CS_RESULTS_SENT,
    CS_RESULTS_RETURNED,
    CS_RESULTS_BACKWARD,
    CS_RESULTS_LAST,
    CS_RESULTS_ALL,
} cs_stage_results;

/* What all schedules are given. */
typedef struct cs_job {
    const cs_model *model;
    const cs_plan *plan;
    const cs_pattern *pattern;  /* of the plan; NULL: it has none */
    const cs_layer_sum *stages; /* per stage of the plan: time and memory of one micro-batch on one
                                 * device, with CS_REPLICAS_ALL_REDUCE of a replica's share of it */
    const cs_layer_sum *whole;  /* the same of a whole mini-batch, computed at once; NULL where the
                                 * schedule does not ask for it (`takes_whole`) */
    cs_replicas replicas;
    cs_states states;           /* where the plan has a grid */
    cs_offload offload;         /* the same */
    const uint32_t *stands_for; /* per device: the device that is simulated in its place, itself
                                 * where it is simulated; NULL: all are */
    uint32_t n_devices;
    const double *speeds;   /* per device */
    uint32_t micro_batches; /* per mini-batch and replica */
    uint32_t micro_samples; /* per micro-batch; see cs_model_sum */
    uint32_t iterations;    /* mini-batches */
    double optimizer_ratio; /* bytes of optimizer states per byte of weights; */
    double update_ratio;    /* bytes that an update needs besides per byte of weights */
    double other_ratio;     /* with Muon that of matrices, and this more of other weights; else 0 */
    const struct cs_stage_matrices *matrices; /* with Muon and a grid: per stage, see matrices.h */
    cs_time host; /* of a mini-batch, in which a device computes nothing: part of the updates of its
                   * stages, see cs_states_host */
    uint32_t message_parts; /* of a grid: devices that each send a part of what a stage hands on to
                             * the next, which would be the same on all; 0 is 1 */
    bool receive_buffers;   /* of a grid: see stage-buffers.h */
    uint32_t stage_results; /* of a grid: cs_stage_results */
    bool blocking;          /* transfers occupy the compute of both ends */
    bool message_waits;     /* the host waits for the messages between stages (cs_class.waits) */
    bool
        batch_waits; /* on the first and the last stage, it waits for its device before a forward */
    bool in_series;  /* steps of a pass that nothing comes between may be one task (cs_series);
                             * collectives must be delays then, and nothing slow computations down
                             */
    bool passes_only; /* on a grid: only passes and their exchanges within layers, for callers that
                       * only need the times of passes. There are no messages between stages, sums
                       * of gradients, gathers of updated weights, or memory */
    /* A lone message between neighbouring devices, for planners and closed forms: */
    cs_time latency;
    double bandwidth;
    bool equal_messages; /* it is the same in a whole ring over the devices, d to d + 1 and the last
                          * to 0, and no two of these messages share a link */
    bool own_links;      /* it is the same between the devices of any two neighbouring stages of the
                     * plan, both ways, and no two pairs of such devices share a link */
    /* The same of a step of a sum over all devices that goes by several rings at once, of which
     * each sends a part of the message; 0 rings: it goes by one, in messages as above. */
    uint32_t rings;
    cs_time rings_latency;
    double rings_bandwidth; /* of all of them */
    bool equal_rings;       /* each step takes that */
    int64_t memory;         /* bytes, of the device that has the least; INT64_MAX: without limit */
    const int64_t *libraries; /* per device: bytes that are there from the start besides what the
                               * stages hold; NULL: none */
} cs_job;

/* The length of an axis of a schedule's mesh. */
typedef enum cs_mesh_length {
    CS_LENGTH_ONE,
    CS_LENGTH_DEVICES, /* as many as the platform has devices */
    CS_LENGTH_LAYERS,  /* the same; where the platform has no number, one for each layer */
    CS_LENGTH_RULE,    /* as `ranks` says */
} cs_mesh_length;

/* The mesh that a schedule can run on. It has two axes: pipeline ranks, which hold the stages, and
 * the copies of the whole model, one on each device. A scenario can put a grid of further axes
 * within each rank instead (sim/model/split.h). All members may be left out. */
typedef struct cs_mesh_shape {
    /* CS_LENGTH_ONE: there is one stage. CS_LENGTH_DEVICES: a plan puts any number of stages on a
     * rank. */
    cs_mesh_length pipeline;
    cs_mesh_length data; /* CS_LENGTH_ONE, or CS_LENGTH_DEVICES */
    /* Ranks that the parameters ask for, for a model of so many layers; 0: none in particular. And
     * whether it runs on no other number. */
    uint32_t (*ranks)(const void *params, uint32_t n_layers);
    bool exactly;
    uint32_t (*n_stages)(const void *params, uint32_t n_ranks); /* NULL: one for each rank */
    /* The ranks that hold a stage, at most n_ranks, into `ranks`; returns how many. NULL: rank s
     * holds stage s, unless a plan says otherwise. */
    uint32_t (*holders)(const void *params, uint32_t n_ranks, uint32_t stage, uint32_t *ranks);
    bool (*apart)(const void *params); /* each stage is on one of its ranks at a time, apart from
                                        * the others; NULL: it is not */
    cs_replicas (*replicas)(const void *params); /* NULL: a plan gives each stage one device */
    const char *no_grid; /* why it takes no grid, and what does, as a sentence that its name begins:
                          * "has ...; use ..."; NULL: it takes any */
} cs_mesh_shape;

/* Figures that a closed form can be stated for. */
typedef enum cs_figure {
    CS_FIGURE_MAKESPAN,           /* ps */
    CS_FIGURE_BUBBLE,             /* fraction of device time */
    CS_FIGURE_PIPELINE_BUBBLE,    /* the part of it that is no exposed communication */
    CS_FIGURE_ITERATION_TIME,     /* ps */
    CS_FIGURE_EPOCH_TIME,         /* ps; of no schedule, which knows nothing of data sets */
    CS_FIGURE_PEAK_ACTIVATIONS,   /* bytes on one device */
    CS_FIGURE_PEAK_MEMORY,        /* bytes on one device, of all categories together */
    CS_FIGURE_PEAK_VERSIONS,      /* of the weights of one device, alive at once */
    CS_FIGURE_VERSION_DIFFERENCE, /* of mini-batches, in the steady state (staleness.h) */
    CS_N_FIGURES
} cs_figure;

typedef struct cs_form {
    cs_figure figure;
    uint32_t device;     /* of a figure per device, else CS_NONE */
    int64_t exact;       /* ps, bytes or a number */
    double fraction;     /* of the two bubbles */
    const char *formula; /* as the source writes it */
    const char *source;
    const char *assumes; /* for people */
    bool applies;        /* what it assumes holds in this job */
    bool comparison;     /* the source states it, but it is not always so: cs_formula */
} cs_form;

static inline bool cs_figure_is_fraction(cs_figure figure)
{
    return figure == CS_FIGURE_BUBBLE || figure == CS_FIGURE_PIPELINE_BUBBLE;
}

/* Whether the run gives exactly this number. Of a comparison nothing is promised, whether what it
 * assumes holds or not. */
static inline bool cs_form_is_promised(const cs_form *form)
{
    return form->applies && !form->comparison;
}

typedef struct cs_forms {
    uint32_t n, capacity;
    cs_form *forms;
} cs_forms;

/* A formula that a schedule may state. */
typedef struct cs_formula {
    cs_figure figure;
    const char *text; /* as the source writes it; NULL ends a list */
    bool comparison;  /* the source states it, but there are jobs in which what it assumes holds and
                       * it does not: shown beside the simulation, and never promised */
} cs_formula;

/* When a search for plans (sim advise) tries a schedule. Only those are compared that end each
 * mini-batch with a flush, so that all plans train the same, and that have stage r on rank r for each
 * rank r. */
typedef enum cs_schedule_search {
    CS_SEARCH_NEVER,
    CS_SEARCH_ON_REQUEST, /* if the search names it */
    CS_SEARCH_ALWAYS,
} cs_schedule_search;

/* A parameter that sets how many stages each pipeline rank holds. */
typedef struct cs_stages_parameter {
    const char *name;  /* NULL: there is none */
    uint32_t each;     /* stages of a rank: this many times the parameter */
    uint32_t tried[4]; /* the values that a search tries, ended by 0 */
} cs_stages_parameter;

#define CS_ONE_MICRO_BATCH SIZE_MAX

typedef struct cs_schedule {
    const char *name;
    const char *summary;        /* one line, for `sim list` */
    const char *source;         /* paper, section */
    const cs_formula *formulas; /* all that its closed forms may use; or NULL: there are none */
    const cs_field *fields;
    size_t params_size; /* of the struct that `fields` fill */
    cs_mesh_shape mesh;
    cs_schedule_search search;
    cs_stages_parameter stages;
    /* The fewest micro-batches that it runs with on n_ranks pipeline ranks; NULL: 1. */
    uint32_t (*least_micro_batches)(uint32_t n_ranks);
    bool splits;           /* a backward is two passes: gradients of inputs, and of weights */
    bool asynchronous;     /* mini-batches overlap, so that a short run only fills and drains */
    bool sums_ties;        /* the gradients of weights that two stages share (ties.h) */
    double expert_overlap; /* what it is made to hide of messages to experts, unless a scenario says
                            * otherwise: a fraction of them, in passes that are paired
                            * (pipeline.h) */
    /* Reads what fields alone cannot, JSON above all, while the document is there; or NULL.
     * `place` is that of the object, `arena` lives as long as `params`. */
    CS_MUST_CHECK cs_status (*read)(void *params, const cs_json_place *place, cs_arena *arena,
                                    cs_error *error);
    size_t
        micro_batches; /* of a mini-batch: where their number, a uint32_t, stands in the parameters;
                           * or CS_ONE_MICRO_BATCH */
    /* Whether it computes something of all micro-batches of a mini-batch at once; NULL: it does
     * not.
     */
    bool (*takes_whole)(const void *params);
    /* NULL, or which of several readings of its source the parameters ask for, for the summary. */
    const char *(*reading)(const void *params);
    /* NULL, or the rules for the chain (chain.h) by which it executes a planner's plan. */
    const cs_chain_rules *(*chain_rules)(const void *params);
    /* Refuses parameters that do not go with the job, or NULL; `place` is that of the schedule.
     * The other functions are only called when it did not. */
    CS_MUST_CHECK cs_status (*check)(const cs_job *job, const void *params,
                                     const cs_json_place *place, cs_error *error);
    /* Adds a message about what is valid and hardly meant, as cs_json_invalid does; or NULL. */
    void (*warn)(const cs_job *job, const void *params, const cs_json_place *place,
                 cs_error *warnings);
    CS_MUST_CHECK cs_status (*generate)(const cs_job *job, const void *params, cs_builder *builder,
                                        cs_error *error);
    /* Adds its closed forms with cs_forms_add. */
    CS_MUST_CHECK cs_status (*closed_forms)(const cs_job *job, const void *params, cs_forms *forms,
                                            cs_error *error);
} cs_schedule;

/* All schedules, ended by NULL. */
extern const cs_schedule *const cs_schedules[];

/* Their names in the same order, ended by NULL. */
extern const char *const cs_schedule_names[];

/* Micro-batches of a mini-batch and replica. */
uint32_t cs_schedule_micro_batches(const cs_schedule *schedule, const void *params);

/* Whether it can run with so few micro-batches on n_ranks pipeline ranks. */
bool cs_schedule_has_micro_batches(const cs_schedule *schedule, uint32_t micro_batches,
                                   uint32_t n_ranks);

/* Stages of a rank, where the parameter `stages` has this value; without one that is ignored. */
uint32_t cs_schedule_stages_per_rank(const cs_schedule *schedule, uint32_t value);

/* The rank that holds a stage, of those that each hold as many. */
uint32_t cs_schedule_rank(const cs_schedule *schedule, uint32_t n_ranks, uint32_t stage);

/* The schedule of that name, or NULL. */
const cs_schedule *cs_schedule_find(const char *name);

CS_MUST_CHECK cs_status cs_forms_add(cs_forms *forms, const cs_form *form, cs_error *error);
void cs_forms_finish(cs_forms *forms);

/* The name of a figure as a key of results: "makespan_s", "bubble_fraction",
 * "peak_activation_bytes". */
const char *cs_figure_key(cs_figure figure);

/* The same for people: "makespan", "peak activations". */
const char *cs_figure_label(cs_figure figure);

/* The task graph of a job: generates, and checks. */
CS_MUST_CHECK cs_status cs_schedule_graph(const cs_schedule *schedule, const cs_job *job,
                                          const void *params, cs_graph *graph, cs_error *error);

/* The same, its tasks handed on as they are generated: `graph` has their number only. A taker that
 * follows them checks what they do. */
CS_MUST_CHECK cs_status cs_schedule_hand_on(const cs_schedule *schedule, const cs_job *job,
                                            const void *params, const cs_task_taker *taker,
                                            cs_graph *graph, cs_error *error);

#endif

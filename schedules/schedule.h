/* Schedules: the order of the work of a training step. To add one: a file with a
 * `const cs_schedule`, a line in registry.c, a scenario, a test. sequential.c is the shortest
 * template.
 *
 * A schedule turns a job (model, plan, batch) and its own parameters into a task graph, and states
 * its paper's closed forms, to be compared with the simulation.
 */
#ifndef CS_SCHEDULES_SCHEDULE_H
#define CS_SCHEDULES_SCHEDULE_H

#include "schedules/plan/chain-fields.h"
#include "schedules/plan/pattern.h"
#include "sim/base/field.h"
#include "sim/core/graph/builder.h"

/* How the devices of a replicated stage share the work, if the plan has no grid. */
typedef enum cs_replicas {
    CS_REPLICAS_NONE, /* no stage is replicated */
    /* micro-batch m is computed by replica m mod R of the stage's R replicas */
    CS_REPLICAS_ROUND_ROBIN,
    /* each replica computes its share of the samples of each micro-batch */
    CS_REPLICAS_ALL_REDUCE,
} cs_replicas;

enum { CS_ZERO_STAGES = 4 };

/* How a layer's parameters are sharded: `fraction` of them at ZeRO stage `zero`, the rest at stage
 * 0. */
typedef struct cs_layer_states {
    uint32_t zero;   /* ZeRO stage of the sharded part, 0 to 3; see cs_states */
    double fraction; /* sharded fraction of the parameters, 0 to 1 */
} cs_layer_states;

/* How weights, gradients and optimizer states are stored between their uses (ZeRO: Rajbhandari et
 * al., SC 2020, section 5; FSDP: Zhao et al., VLDB 2023). They are sharded over the axes SHARD of
 * the grid; experts are sharded over EXPERT_SHARD. */
typedef struct cs_states {
    /* ZeRO stage. 0: nothing is sharded; 1: optimizer states are; 2: gradients too; 3: weights
     * too */
    uint32_t zero;
    /* per layer of the model, replaces `zero`; NULL: `zero` applies to all layers */
    const cs_layer_states *layers;
    /* zero 3: number of layers whose weights are gathered ahead of the layer that computes */
    uint32_t prefetch;
    /* zero 3: weights of 2 bytes are stored only as the optimizer's copies of 4 bytes, and cast
     * from those before they are gathered; shards of gradients have 4 bytes too */
    bool wide_shards;
    bool keep_gathered; /* zero 3: weights stay gathered from a forward to its backward */
    /* zero 3: weights stay gathered from the first forward of a mini-batch to its last backward;
     * gradients are reduced after that */
    bool gather_once;
    bool whole_sums; /* zero 1: each place gets the full sum of gradients, not only its shard */
    /* zero 2, 3: full gradients are accumulated over the micro-batches of a mini-batch and reduced
     * once; otherwise they are reduced after each micro-batch */
    bool accumulate;
    /* bytes of gradients that are reduced together, overlapped with the last backward of a
     * mini-batch; 0: all are reduced together after it */
    int64_t bucket;
} cs_states;

/* Activations offloaded to the host's memory until their backward (offload.h). */
typedef struct cs_offload {
    /* number of layers offloaded per stage, from its first layer on; 0: none; CS_NONE: all but the
     * last */
    uint32_t layers;
    /* copies to the host that may be in flight when a layer begins its forward; CS_NONE: as
     * below */
    uint32_t in_flight;
    /* number of layers before its backward that a layer's copy back may begin; CS_NONE: number of
     * layers, minus offloaded layers, minus one */
    uint32_t prefetch;
    double bandwidth; /* bytes/s of the device's link to its host, in each direction */
} cs_offload;

/* How long a stage's output stays in memory: see stage-buffers.h. */
typedef enum cs_stage_results {
    CS_RESULTS_SENT,
    CS_RESULTS_RETURNED,
    CS_RESULTS_BACKWARD,
    CS_RESULTS_LAST,
    CS_RESULTS_ALL,
} cs_stage_results;

/* Input of all schedules: model, plan, batch and settings. */
typedef struct cs_job {
    const cs_model *model;
    const cs_plan *plan;
    const cs_pattern *pattern; /* pattern of the plan; NULL: the plan has none */
    /* per stage of the plan: time and memory of one micro-batch on one device; with
     * CS_REPLICAS_ALL_REDUCE, of one replica's share of the micro-batch */
    const cs_layer_sum *stages;
    /* per stage: the same for a whole mini-batch computed at once; NULL unless the schedule asks
     * for it (`takes_whole`) */
    const cs_layer_sum *whole;
    cs_replicas replicas;
    cs_states states;   /* sharding of states; with a grid only */
    cs_offload offload; /* offloading of activations; with a grid only */
    /* per device: the device that is simulated in its place, or itself if it is simulated; NULL:
     * all are simulated */
    const uint32_t *stands_for;
    uint32_t n_devices;
    const double *speeds;   /* per device: relative speed */
    uint32_t micro_batches; /* number of micro-batches per mini-batch and replica */
    uint32_t micro_samples; /* samples per micro-batch; see cs_model_sum */
    uint32_t iterations;    /* number of mini-batches */
    double optimizer_ratio; /* bytes of optimizer states per byte of weights */
    double update_ratio;    /* bytes per byte of weights that an update needs while it runs */
    /* with Muon, optimizer_ratio is the ratio of matrices, and other weights have other_ratio in
     * addition; otherwise 0 */
    double other_ratio;
    const struct cs_stage_matrices *matrices; /* per stage, with Muon and a grid: see matrices.h */
    /* time per mini-batch that the host works while the device computes nothing; part of the
     * updates of the device's stages (cs_states_host) */
    cs_time host;
    /* with a grid: number of devices that each send a part of a stage's output to the next stage,
     * when the output is the same on all of them; 0 means 1 */
    uint32_t message_parts;
    bool receive_buffers;   /* with a grid: whether stages have receive buffers (stage-buffers.h) */
    uint32_t stage_results; /* with a grid: how long results stay, a cs_stage_results */
    bool blocking;          /* transfers occupy the compute units of both ends */
    bool message_waits;     /* the host waits for the messages between stages (cs_class.waits) */
    /* on the first and the last stage, the host waits for its device before each forward */
    bool batch_waits;
    /* steps of a pass may be joined into one task if nothing comes between them (cs_series);
     * requires that collectives are delays and that nothing slows computations down */
    bool in_series;
    /* with a grid: generate only passes and the exchanges within their layers, for callers that
     * need only the times of passes; no messages between stages, sums of gradients, gathers of
     * updated weights, or memory */
    bool passes_only;
    /* A lone message between neighbouring devices, for planners and closed forms: */
    cs_time latency;
    double bandwidth;
    /* whether latency and bandwidth are the same for all messages of a ring over the devices (d to
     * d + 1, the last device to 0), and no two of these messages share a link */
    bool equal_messages;
    /* whether latency and bandwidth are the same between the devices of any two neighbouring stages
     * of the plan, in both directions, and no two such pairs of devices share a link */
    bool own_links;
    /* A step of an all-reduce over all devices that uses several rings at once, each for a part of
     * the data. 0 rings: it uses one ring, with messages as above. */
    uint32_t rings;
    cs_time rings_latency;
    double rings_bandwidth; /* bandwidth of all rings together */
    bool equal_rings;       /* whether all steps take the same time */
    int64_t memory;         /* bytes of the device with the least memory; INT64_MAX: no limit */
    /* per device: bytes in use from the start in addition to its stages; NULL: none */
    const int64_t *libraries;
} cs_job;

/* Length of an axis of a schedule's mesh. */
typedef enum cs_mesh_length {
    CS_LENGTH_ONE,
    CS_LENGTH_DEVICES, /* the number of the platform's devices */
    /* the same, or the number of layers if the platform does not fix its number of devices */
    CS_LENGTH_LAYERS,
    CS_LENGTH_RULE, /* the number returned by `ranks` */
} cs_mesh_length;

/* The mesh that a schedule can run on. It has two axes: pipeline ranks, which hold the stages, and
 * copies of the whole model, one per device. A scenario can instead put a grid of further axes
 * within each rank (sim/model/split.h). All members are optional. */
typedef struct cs_mesh_shape {
    /* CS_LENGTH_ONE: there is one stage. CS_LENGTH_DEVICES: a plan may put any number of stages on
     * a rank. */
    cs_mesh_length pipeline;
    cs_mesh_length data; /* either CS_LENGTH_ONE or CS_LENGTH_DEVICES */
    /* Returns the number of ranks that the parameters ask for, for a model of n_layers layers; 0:
     * any number. `exactly`: the schedule runs on no other number. */
    uint32_t (*ranks)(const void *params, uint32_t n_layers);
    bool exactly;
    /* number of stages; NULL: one per rank */
    uint32_t (*n_stages)(const void *params, uint32_t n_ranks);
    /* Writes the ranks that hold a stage, at most n_ranks, to `ranks`, and returns their number.
     * NULL: rank s holds stage s, unless a plan says otherwise. */
    uint32_t (*holders)(const void *params, uint32_t n_ranks, uint32_t stage, uint32_t *ranks);
    /* whether each stage is on one of its ranks at a time, separately from other stages; NULL:
     * no */
    bool (*apart)(const void *params);
    cs_replicas (*replicas)(const void *params); /* NULL: a plan gives each stage one device */
    /* why the schedule takes no grid, and what to use instead, as a sentence to follow its name:
     * "has ...; use ..."; NULL: it takes any grid */
    const char *no_grid;
} cs_mesh_shape;

/* Metrics that a closed form can be stated for. */
typedef enum cs_figure {
    CS_FIGURE_MAKESPAN,        /* time of the whole run, ps */
    CS_FIGURE_BUBBLE,          /* idle fraction of device time */
    CS_FIGURE_PIPELINE_BUBBLE, /* part of the bubble that is not exposed communication */
    CS_FIGURE_ITERATION_TIME,  /* time per mini-batch, ps */
    /* ps; no schedule states it, because schedules do not know the data set */
    CS_FIGURE_EPOCH_TIME,
    CS_FIGURE_PEAK_ACTIVATIONS, /* saved activations at their peak, bytes on one device */
    CS_FIGURE_PEAK_MEMORY,      /* bytes on one device, all categories together */
    /* number of versions of one device's weights that exist at once */
    CS_FIGURE_PEAK_VERSIONS,
    CS_FIGURE_VERSION_DIFFERENCE, /* mini-batches, in the steady state (staleness.h) */
    CS_N_FIGURES
} cs_figure;

typedef struct cs_form {
    cs_figure figure;
    uint32_t device;     /* device, for a metric per device; otherwise CS_NONE */
    int64_t exact;       /* value in ps, in bytes, or a count */
    double fraction;     /* value, for the two bubbles */
    const char *formula; /* formula as its source writes it */
    const char *source;
    const char *assumes; /* assumptions of the formula, as text for users */
    bool applies;        /* whether the assumptions hold in this job */
    bool comparison;     /* whether it is only a comparison, see cs_formula */
} cs_form;

static inline bool cs_figure_is_fraction(cs_figure figure)
{
    return figure == CS_FIGURE_BUBBLE || figure == CS_FIGURE_PIPELINE_BUBBLE;
}

/* Whether the run gives exactly this value. Comparisons never promise that, even if their
 * assumptions hold. */
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
    const char *text; /* formula as its source writes it; NULL ends a list */
    /* published, but wrong for some jobs that meet its assumptions: shown next to the simulated
     * value, and never promised */
    bool comparison;
} cs_formula;

/* When a search for plans (sim advise) tries a schedule. It compares only schedules that end each
 * mini-batch with a flush, so that all plans train the same, and that have stage r on rank r for
 * each rank r. */
typedef enum cs_schedule_search {
    CS_SEARCH_NEVER,
    CS_SEARCH_ON_REQUEST, /* only if the search names it */
    CS_SEARCH_ALWAYS,
} cs_schedule_search;

/* A parameter that sets how many stages each pipeline rank holds. */
typedef struct cs_stages_parameter {
    const char *name;  /* name of the parameter; NULL: the schedule has none */
    uint32_t each;     /* stages per rank, per unit of the parameter */
    uint32_t tried[4]; /* values that a search tries, terminated by 0 */
} cs_stages_parameter;

#define CS_ONE_MICRO_BATCH SIZE_MAX

typedef struct cs_schedule {
    const char *name;
    const char *summary;        /* one line about the schedule, for `sim list` */
    const char *source;         /* source of the schedule: paper and section */
    const cs_formula *formulas; /* all formulas that its closed forms may use; NULL: none */
    const cs_field *fields;
    size_t params_size; /* size of the struct that `fields` fill */
    cs_mesh_shape mesh;
    cs_schedule_search search;
    cs_stages_parameter stages;
    /* Returns the smallest number of micro-batches that it can run with on n_ranks pipeline ranks;
     * NULL: 1. */
    uint32_t (*least_micro_batches)(uint32_t n_ranks);
    /* whether a backward is two passes: gradients of inputs, then of weights */
    bool splits;
    /* whether mini-batches overlap, so that a short run only fills and drains the pipeline */
    bool asynchronous;
    /* whether it sums the gradients of weights that two stages share (ties.h) */
    bool sums_ties;
    /* default fraction of the messages to experts that paired passes hide (pipeline.h); a scenario
     * can set another */
    double expert_overlap;
    /* Reads parameters that fields alone cannot describe, such as JSON, while the document exists;
     * may be NULL. `place` is the place of the object; `arena` lives as long as `params`. */
    CS_MUST_CHECK cs_status (*read)(void *params, const cs_json_place *place, cs_arena *arena,
                                    cs_error *error);
    /* offset in the parameters of the number (uint32_t) of micro-batches per mini-batch; or
     * CS_ONE_MICRO_BATCH */
    size_t micro_batches;
    /* Whether it computes something for all micro-batches of a mini-batch at once; NULL: no. */
    bool (*takes_whole)(const void *params);
    /* Returns which of several readings of its source the parameters ask for, for the summary; may
     * be NULL. */
    const char *(*reading)(const void *params);
    /* Returns the chain rules (chain.h) for executing a planner's plan; may be NULL. */
    const cs_chain_rules *(*chain_rules)(const void *params);
    /* Reports parameters that are incompatible with the job; may be NULL. `place` is the place of
     * the schedule. The functions below are called only if the check succeeded. */
    CS_MUST_CHECK cs_status (*check)(const cs_job *job, const void *params,
                                     const cs_json_place *place, cs_error *error);
    /* Adds a message about valid settings that are hardly intended, in the way of cs_json_invalid;
     * may be NULL. */
    void (*warn)(const cs_job *job, const void *params, const cs_json_place *place,
                 cs_error *warnings);
    CS_MUST_CHECK cs_status (*generate)(const cs_job *job, const void *params, cs_builder *builder,
                                        cs_error *error);
    /* Adds the schedule's closed forms with cs_forms_add. */
    CS_MUST_CHECK cs_status (*closed_forms)(const cs_job *job, const void *params, cs_forms *forms,
                                            cs_error *error);
} cs_schedule;

/* All schedules, NULL-terminated. */
extern const cs_schedule *const cs_schedules[];

/* Names of all schedules in the same order, NULL-terminated. */
extern const char *const cs_schedule_names[];

/* Returns the number of micro-batches per mini-batch and replica. */
uint32_t cs_schedule_micro_batches(const cs_schedule *schedule, const void *params);

/* Whether the schedule can run with this number of micro-batches on n_ranks pipeline ranks. */
bool cs_schedule_has_micro_batches(const cs_schedule *schedule, uint32_t micro_batches,
                                   uint32_t n_ranks);

/* Returns the number of stages per rank if the parameter `stages` has this value, which is ignored
 * if the schedule has no such parameter. */
uint32_t cs_schedule_stages_per_rank(const cs_schedule *schedule, uint32_t value);

/* Returns the rank that holds a stage if all ranks hold the same number of stages. */
uint32_t cs_schedule_rank(const cs_schedule *schedule, uint32_t n_ranks, uint32_t stage);

/* Finds a schedule by its name. NULL: there is none. */
const cs_schedule *cs_schedule_find(const char *name);

CS_MUST_CHECK cs_status cs_forms_add(cs_forms *forms, const cs_form *form, cs_error *error);
void cs_forms_finish(cs_forms *forms);

/* Returns the key of a metric in results: "makespan_s", "bubble_fraction",
 * "peak_activation_bytes". */
const char *cs_figure_key(cs_figure figure);

/* Returns the label of a metric for users: "makespan", "peak activations". */
const char *cs_figure_label(cs_figure figure);

/* Generates the task graph of a job, and checks it. */
CS_MUST_CHECK cs_status cs_schedule_graph(const cs_schedule *schedule, const cs_job *job,
                                          const void *params, cs_graph *graph, cs_error *error);

/* Generates the task graph of a job and passes its tasks to the taker, one after the other; `graph`
 * gets only their number. Tasks are not checked here: the taker has to do that. */
CS_MUST_CHECK cs_status cs_schedule_hand_on(const cs_schedule *schedule, const cs_job *job,
                                            const void *params, const cs_task_taker *taker,
                                            cs_graph *graph, cs_error *error);

#endif

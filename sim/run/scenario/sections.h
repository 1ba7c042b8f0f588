/* The sections of a scenario as its file states them: read once, and constant from then on.
 * Internal to sim/run/scenario. */
#ifndef CS_SCENARIO_SECTIONS_H
#define CS_SCENARIO_SECTIONS_H

#include "calib/costs.h"
#include "schedules/mesh.h"
#include "schedules/plan/planner.h"
#include "sim/run/scenario/runtime-section.h"
#include "sim/run/scenario/scenario.h"
#include "sim/run/scenario/workload.h"

/* "costs": files, or a document in place. */
typedef struct cs_costs_section {
    bool given;
    uint32_t n_files;
    const char **files;
    const cJSON *in_place; /* a costs document, for its own reader; or NULL */
} cs_costs_section;

typedef struct cs_top_section {
    uint32_t schema_version;
    const char *name;
    /* NULL once they are read: */
    const cJSON *model, *platform, *schedule, *parallel, *runtime, *collectives, *memory, *offload;
    cs_costs_section costs;
    const cJSON *sweep, *advise; /* the same; of other commands */
    uint32_t iterations;
    uint32_t dataset;
    uint32_t seed;
} cs_top_section;

typedef struct cs_uniform_section {
    uint32_t layers; /* 0: one per device of a pipeline */
    cs_time forward, backward, update;
    int64_t weights, activation, workspace;
} cs_uniform_section;

typedef struct cs_model_section {
    const char *file;
    cs_uniform_section *uniform;   /* NULL: another source */
    const cJSON *in_place;         /* a model file's document, for its own reader; or NULL */
    uint32_t batch_size;           /* 0: so that a micro-batch is what the model was made for */
    uint32_t optimizer;            /* position in cs_optimizers */
    uint32_t newton_schulz_steps;  /* CS_COUNT_LEFT_OUT: as many as Megatron Core makes */
    uint32_t muon_tensor;          /* cs_muon_tensor */
    uint32_t gradients;            /* position in its choices; 0: as the weights */
    uint32_t main_weights, states; /* positions in their choices; 0: float32 */
    cs_workload workload;          /* of a model that is built from its architecture */
    cs_device_facts device;        /* device of the named model; zeroed: it has none */
} cs_model_section;

enum { CS_PHI_COUNT = 0 }; /* "phi": "count" */

typedef struct cs_platform_section {
    const char *topology;
    uint32_t devices;  /* 0: as many as the schedule needs */
    cs_list memory;    /* int64_t, per device or one for all; INT64_MAX: unlimited */
    cs_list reserve;   /* int64_t, the same: of the memory */
    cs_list speed;     /* double, the same */
    uint32_t sharing;  /* position in its choices */
    double phi;        /* NaN: not given; CS_PHI_COUNT */
    uint32_t messages; /* position in its choices */
    bool blocking;
    cs_list slowdown;  /* cs_slowdown_rule * */
    cs_spread *jitter; /* NULL: none; the same of the next two */
    struct cs_stragglers_section *stragglers;
    struct cs_background_section *background;
    /* not from the table: */
    bool no_devices;    /* "devices" was given as 0 */
    bool has_latency;   /* "latency" was given */
    cs_sharing shared;  /* what `sharing` and `phi` say together */
    double coefficient; /* phi, or 1 */
    bool independent_messages;
    const double *slowdowns; /* what `slowdown` says, as cs_scenario has it */
    cs_noise noise;          /* what `jitter`, `stragglers` and `background` say together */
    const cs_topology *kind;
    void *params; /* of the topology */
} cs_platform_section;

typedef enum cs_partition_kind {
    CS_PARTITION_NONE,
    CS_PARTITION_BALANCED,
    CS_PARTITION_CUTS,
    CS_PARTITION_PLANNER,
    CS_PARTITION_FILE,
    CS_PARTITION_INLINE,
} cs_partition_kind;

typedef struct cs_partition {
    cs_partition_kind kind;
    const cJSON *cuts;         /* a list, which is read with the model */
    const cs_planner *planner; /* other than "balanced" */
    void *params;              /* of the planner */
    bool has_rules;            /* some were given */
    cs_chain_rules rules;      /* for the planner: the defaults but for those given */
    const char *file;          /* of a plan, relative to the scenario */
    const cJSON *in_place;     /* what would stand in the file, which is read with the model */
} cs_partition;

typedef struct cs_schedule_section {
    const char *kind_name;
    cs_partition partition; /* also of schedules without one, for which it means nothing */
    bool partition_communication;
    /* not from the table: */
    const cs_schedule *kind;
    void *params; /* of the schedule */
} cs_schedule_section;

/* Which layers of a model a rule is of. */
typedef struct cs_layer_choice {
    const char *pattern;  /* of names, with * and ?; NULL: layers [first, last] */
    uint32_t first, last; /* last >= first */
} cs_layer_choice;

/* How some layers are held; later rules win. */
typedef struct cs_layer_rule {
    cs_layer_choice layers;
    uint32_t zero;  /* 0 to 3, or CS_COUNT_LEFT_OUT */
    double sharded; /* part of their parameters, or NaN */
} cs_layer_rule;

/* "offload": CS_COUNT_LEFT_OUT and NaN stand for what is left out. */
typedef struct cs_offload_section {
    bool given;
    uint32_t layers, smallest, prefetch, in_flight;
    cs_list operators; /* const char * */
    double bandwidth;
} cs_offload_section;

/* How the tokens of each expert are drawn. */
typedef struct cs_routing_section {
    uint32_t drawn; /* position in its choices */
    double concentration;
    uint32_t seed; /* or CS_COUNT_LEFT_OUT: the scenario's */
} cs_routing_section;

/* "parallel": numbers of 0 follow from others (build-mesh.c). */
typedef struct cs_parallel_section {
    uint32_t tensor, filter, channel;
    uint32_t context, pipeline, data, expert, expert_tensor;
    uint32_t context_method; /* cs_context_method */
    uint32_t dispatcher;     /* position in its choices; 0: all_to_all */
    uint32_t zero, shard, prefetch;
    uint32_t reduce; /* position in its choices; 0: scattered */
    bool sequence_parallel, regather, narrow_gathers, scatter_gather, synchronised_norm;
    bool keep_gathered, gather_once, accumulate;
    bool shard_copies;
    int64_t bucket;
    double expert_imbalance;
    cs_routing_section *routing; /* NULL: as the imbalance says */
    cs_list rules;               /* cs_layer_rule * */
    cs_list space;               /* uint32_t */
    const char *space_until;
    cs_list order; /* uint32_t, cs_mesh_axis */
    cs_list ranks; /* uint32_t; no items: each device is its own */
    uint32_t fold; /* cs_fold */
    /* not from the table: */
    bool given;     /* the scenario has the section */
    bool only_fold; /* with nothing but "fold", as a schedule may have that takes no grid */
} cs_parallel_section;

typedef enum cs_fold {
    CS_FOLD_AUTO,
    CS_FOLD_YES,
    CS_FOLD_NO,
    CS_FOLD_TRY,
    CS_FOLD_SLOWEST
} cs_fold;

/* In step with the choices of "libraries". */
typedef enum cs_library {
    CS_LIBRARY_CUBLAS,
    CS_LIBRARY_TRANSFORMER_ENGINE,
    CS_LIBRARY_GROUPED_PRODUCTS,
    CS_LIBRARY_USER_BUFFERS,
    CS_N_LIBRARIES
} cs_library;

/* "memory": what a framework and its libraries keep, and how its allocator hands memory out. */
typedef struct cs_memory_section {
    cs_list fused;             /* uint32_t, cs_fused */
    uint32_t weight_gradients; /* cs_weight_gradients */
    bool attention_buffer, attention_copy, keys_copied, padding_masks;
    bool pass_gradients, gradient_buckets, update_copy;
    uint32_t passes_ahead;                  /* layers */
    uint32_t gather_buffer;                 /* cs_gather_buffer */
    int64_t inputs;                         /* bytes of a sample's, besides token ids */
    uint32_t deterministic_multiprocessors; /* 0: another backward of attention */
    uint32_t routed_weights;                /* position in its choices; 0: of rows */
    uint32_t loss;                          /* cs_loss_steps */
    uint32_t narrow_weights;                /* cs_narrow_weights */
    uint32_t narrow_copies;                 /* of weights: 1 or 2 */
    bool narrow_inputs;                     /* are kept as they were cast */
    cs_list libraries;                      /* uint32_t, cs_library */
    int64_t cublas_workspace;               /* 0: by the device */
    int64_t reduce_buffer;                  /* bytes */
    uint32_t allocator;                     /* position in its choices; 0: none */
    bool weight_buffer, whole_weights;
    bool receive_buffers;
    uint32_t stage_results; /* cs_stage_results */
    bool expandable_segments;
    int64_t max_split_size;
    double gc_threshold;
    cs_list resident; /* int64_t, per device or one for all */
} cs_memory_section;

typedef struct cs_sections {
    cs_json_place root; /* bears the file's name, which paths are relative to */
    cs_top_section top;
    cs_model_section model;
    cs_platform_section platform;
    cs_schedule_section schedule;
    cs_parallel_section parallel;
    cs_runtime_section runtime;
    cs_offload_section offload;
    cs_memory_section memory;
    cs_lower_options collectives; /* with the measured ones of the costs */
} cs_sections;

/* What the optimizer keeps, as the section says. */
cs_optimizer_storage cs_model_section_storage(const cs_model_section *section);

/* What sections name, read with them so that everything that is wrong is reported in one go. */
typedef struct cs_loaded {
    cs_costs costs; /* of all files; empty when there are none */
    cs_net net;     /* of a named model */
    cs_model model; /* of a file, or in place */
    /* The network is another scenario's, to begin with, and so are the facts of its device. */
    bool net_is_known;
    cs_device_facts device;
} cs_loaded;

/* Zeroed ones can be finished. */
void cs_loaded_finish(cs_loaded *loaded);

/* Reads all sections, whatever is wrong with the others. What they hold lives in the arena, but for
 * the parts of the document that have readers of their own: it must live as long. What is loaded
 * must be zeroed, unless its network is known. What is valid and hardly meant is added to
 * `warnings`. */
CS_MUST_CHECK cs_status cs_sections_read(const cJSON *root, const char *path, cs_arena *arena,
                                         cs_sections *sections, cs_loaded *loaded,
                                         cs_error *warnings, cs_error *error);

/* Of `given`, below `root`; empty costs when there are none. */
CS_MUST_CHECK cs_status cs_costs_section_load(const cs_costs_section *given,
                                              const cs_json_place *root, cs_costs *costs,
                                              cs_error *error);

/* The measured times of collectives; NULL when there are none. */
CS_MUST_CHECK cs_status cs_scenario_measured_collectives(const cs_costs *costs, cs_arena *arena,
                                                         const cs_measured_collectives **out,
                                                         cs_error *error);

/* Each reads a section, and loads what is named in it. Fills its section in part when it fails. */
CS_MUST_CHECK cs_status cs_model_section_read(const cJSON *value, const cs_json_place *root,
                                              bool has_costs, cs_arena *arena,
                                              cs_model_section *section, cs_loaded *loaded,
                                              cs_error *error);
CS_MUST_CHECK cs_status cs_schedule_section_read(const cJSON *value, const cs_json_place *root,
                                                 cs_arena *arena, cs_schedule_section *section,
                                                 cs_error *error);

CS_MUST_CHECK cs_status cs_parallel_section_read(const cJSON *value, const cs_json_place *root,
                                                 cs_arena *arena, cs_parallel_section *section,
                                                 cs_error *error);

/* The highest ZeRO stage that the section asks for, of any layer; `at`, which may be NULL, becomes
 * the number of the rule that does, CS_COUNT_LEFT_OUT where none but "zero" does. */
uint32_t cs_parallel_section_zero(const cs_parallel_section *section, uint32_t *at);

/* `section` is zeroed where the scenario has none. */
CS_MUST_CHECK cs_status cs_offload_section_read(const cJSON *value, const cs_json_place *root,
                                                cs_arena *arena, cs_offload_section *section,
                                                cs_error *error);

/* What it says of the operators of a network. */
void cs_offload_section_rules(const cs_offload_section *section, cs_workload *workload);

CS_MUST_CHECK cs_status cs_memory_section_read(const cJSON *value, const cs_json_place *root,
                                               cs_arena *arena, cs_memory_section *section,
                                               cs_error *error);

/* The allocator that the section asks for, without a capacity; false: none. */
bool cs_memory_section_allocator(const cs_memory_section *section, cs_caching_options *options);

/* Resolves the rules of the section for a device with these facts. */
cs_kept_rules cs_memory_section_rules(const cs_memory_section *section,
                                      const cs_device_facts *device);

/* Links may be as `costs` were measured. Memory and reserve that are not given stay open. */
CS_MUST_CHECK cs_status cs_platform_section_read(const cJSON *value, const cs_json_place *root,
                                                 const cs_costs *costs, cs_arena *arena,
                                                 cs_platform_section *section, cs_error *error);

/* Memory and reserve that are not given, of the named model's device (zeroed: there is none), for a
 * mesh of `n_devices` (0: not known, one). */
CS_MUST_CHECK cs_status cs_platform_section_settle(cs_platform_section *platform,
                                                   const cs_device_facts *device,
                                                   const cs_parallel_section *parallel,
                                                   uint32_t n_devices, cs_arena *arena,
                                                   cs_error *error);

/* "measured node" and "measured network" as latencies and bandwidths of the platform section.
 * CS_INVALID where nothing of the kind was measured. The costs must live as long. */
cs_field_names cs_scenario_measured_links(const cs_costs *costs);

/* Of members of sections that are variants. */
extern const cs_field_kind cs_layer_choice_kind;
extern const cs_field_kind cs_costs_section_kind;
extern const cs_field_kind cs_partition_field_kind;

/* Whether the schedule computes something of a whole mini-batch at once. */
static inline bool cs_schedule_takes_whole(const cs_schedule_section *section)
{
    return section->kind->takes_whole && section->kind->takes_whole(section->params);
}

/* Whether a uniform model has as many layers as there are devices for them. */
static inline bool cs_model_section_is_open(const cs_model_section *section)
{
    return section->uniform && section->uniform->layers == 0;
}

typedef struct cs_optimizer {
    const char *name;
    double state_ratio; /* bytes of states per byte of float32 weights */
    double other_ratio; /* the same of weights that are no matrices, where it differs; else 0 */
    bool is_none;       /* weights stay as they are: forward and backward only */
} cs_optimizer;

/* In step with the choices of the field "optimizer". */
extern const cs_optimizer cs_optimizers[];

#endif

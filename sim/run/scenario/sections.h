/* Sections of a scenario as its file states them: read once, constant afterwards. Internal to
 * sim/run/scenario. */
#ifndef CS_SCENARIO_SECTIONS_H
#define CS_SCENARIO_SECTIONS_H

#include "calib/costs.h"
#include "schedules/mesh.h"
#include "schedules/plan/planner.h"
#include "sim/run/scenario/runtime-section.h"
#include "sim/run/scenario/scenario.h"
#include "sim/run/scenario/workload.h"

/* "costs": files, or an inline document. */
typedef struct cs_costs_section {
    bool given;
    uint32_t n_files;
    const char **files;
    const cJSON *in_place; /* a costs document, not parsed yet; or NULL */
} cs_costs_section;

typedef struct cs_top_section {
    uint32_t schema_version;
    const char *name;
    /* NULL after they have been read: */
    const cJSON *model, *platform, *schedule, *parallel, *runtime, *collectives, *memory, *offload;
    cs_costs_section costs;
    const cJSON *sweep, *advise; /* likewise; sections of other commands */
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
    cs_uniform_section *uniform;   /* NULL: the model has another source */
    const cJSON *in_place;         /* inline model document, not parsed yet; or NULL */
    uint32_t batch_size;           /* 0: such that a micro-batch has the model's own batch size */
    uint32_t optimizer;            /* index in cs_optimizers */
    uint32_t newton_schulz_steps;  /* CS_COUNT_LEFT_OUT: Megatron Core's number */
    uint32_t muon_tensor;          /* cs_muon_tensor */
    uint32_t gradients;            /* index of the choice; 0: as the weights */
    uint32_t main_weights, states; /* indices of the choices; 0: float32 */
    cs_workload workload;          /* for a model that is built from its architecture */
    cs_device_facts device;        /* device of the named model; zeroed: no device */
} cs_model_section;

enum { CS_PHI_COUNT = 0 }; /* "phi": "count" */

typedef struct cs_platform_section {
    const char *topology;
    uint32_t devices;  /* 0: as many as the schedule needs */
    cs_list memory;    /* int64_t, bytes per device or one value for all; INT64_MAX: unlimited */
    cs_list reserve;   /* int64_t, bytes set aside per device, or one value for all */
    cs_list speed;     /* double, per device or one value for all */
    uint32_t sharing;  /* index of the choice */
    double phi;        /* NaN: not given; or CS_PHI_COUNT */
    uint32_t messages; /* index of the choice */
    bool blocking;
    cs_list slowdown;  /* cs_slowdown_rule * */
    cs_spread *jitter; /* NULL: none; likewise the next two */
    struct cs_stragglers_section *stragglers;
    struct cs_background_section *background;
    /* not from the table: */
    bool no_devices;    /* "devices" was given as 0 */
    bool has_latency;   /* "latency" was given */
    cs_sharing shared;  /* resolved from `sharing` and `phi` */
    double coefficient; /* phi, or 1 */
    bool independent_messages;
    const double *slowdowns; /* resolved from `slowdown`; see cs_scenario */
    cs_noise noise;          /* resolved from `jitter`, `stragglers` and `background` */
    const cs_topology *kind;
    void *params; /* parameters of the topology */
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
    const cJSON *cuts;         /* list of cuts, parsed once the model is known */
    const cs_planner *planner; /* any planner except "balanced" */
    void *params;              /* parameters of the planner */
    bool has_rules;            /* some rules were given */
    cs_chain_rules rules;      /* rules for the planner; defaults where not given */
    const char *file;          /* path of a plan, relative to the scenario */
    const cJSON *in_place;     /* inline plan document, parsed once the model is known */
} cs_partition;

typedef struct cs_schedule_section {
    const char *kind_name;
    cs_partition partition; /* also present, but unused, for schedules without stages */
    bool partition_communication;
    /* not from the table: */
    const cs_schedule *kind;
    void *params; /* parameters of the schedule */
} cs_schedule_section;

/* Selects layers of a model. */
typedef struct cs_layer_choice {
    const char *pattern;  /* pattern of layer names, with * and ?; NULL: layers [first, last] */
    uint32_t first, last; /* last >= first */
} cs_layer_choice;

/* ZeRO stage of some layers; later rules win. */
typedef struct cs_layer_rule {
    cs_layer_choice layers;
    uint32_t zero;  /* 0 to 3, or CS_COUNT_LEFT_OUT */
    double sharded; /* share of the parameters that is sharded, or NaN */
} cs_layer_rule;

/* "offload". CS_COUNT_LEFT_OUT and NaN: not given. */
typedef struct cs_offload_section {
    bool given;
    uint32_t layers, smallest, prefetch, in_flight;
    cs_list operators; /* const char * */
    double bandwidth;
} cs_offload_section;

/* How the tokens per expert are drawn. */
typedef struct cs_routing_section {
    uint32_t drawn; /* index of the choice */
    double concentration;
    uint32_t seed; /* CS_COUNT_LEFT_OUT: the scenario's seed */
} cs_routing_section;

/* "parallel". Sizes of 0 are inferred from the others (build-mesh.c). */
typedef struct cs_parallel_section {
    uint32_t tensor, filter, channel;
    uint32_t context, pipeline, data, expert, expert_tensor;
    uint32_t context_method; /* cs_context_method */
    uint32_t dispatcher;     /* index of the choice; 0: all_to_all */
    uint32_t zero, shard, prefetch;
    uint32_t reduce; /* index of the choice; 0: scattered */
    bool sequence_parallel, regather, narrow_gathers, scatter_gather, synchronised_norm;
    bool keep_gathered, gather_once, accumulate;
    bool shard_copies;
    int64_t bucket;
    double expert_imbalance;
    cs_routing_section *routing; /* NULL: only expert_imbalance applies */
    cs_list rules;               /* cs_layer_rule * */
    cs_list space;               /* uint32_t */
    const char *space_until;
    cs_list order; /* uint32_t, cs_mesh_axis */
    cs_list ranks; /* uint32_t; no items: place i is device i */
    uint32_t fold; /* cs_fold */
    /* not from the table: */
    bool given;     /* the scenario has the section */
    bool only_fold; /* the section contains only "fold", which schedules without a grid allow */
} cs_parallel_section;

typedef enum cs_fold {
    CS_FOLD_AUTO,
    CS_FOLD_YES,
    CS_FOLD_NO,
    CS_FOLD_TRY,
    CS_FOLD_SLOWEST
} cs_fold;

/* In the order of the choices of "libraries". */
typedef enum cs_library {
    CS_LIBRARY_CUBLAS,
    CS_LIBRARY_TRANSFORMER_ENGINE,
    CS_LIBRARY_GROUPED_PRODUCTS,
    CS_LIBRARY_USER_BUFFERS,
    CS_N_LIBRARIES
} cs_library;

/* "memory": memory of a framework and its libraries, and its allocator. */
typedef struct cs_memory_section {
    cs_list fused;             /* uint32_t, cs_fused */
    uint32_t weight_gradients; /* cs_weight_gradients */
    bool attention_buffer, attention_copy, keys_copied, padding_masks;
    bool pass_gradients, gradient_buckets, update_copy;
    uint32_t passes_ahead;                  /* layers */
    uint32_t gather_buffer;                 /* cs_gather_buffer */
    int64_t inputs;                         /* bytes per sample, in addition to token ids */
    uint32_t deterministic_multiprocessors; /* 0: attention uses another backward */
    uint32_t routed_weights;                /* index of the choice; 0: rows */
    uint32_t loss;                          /* cs_loss_steps */
    uint32_t narrow_weights;                /* cs_narrow_weights */
    uint32_t narrow_copies;                 /* copies of narrow weights: 1 or 2 */
    bool narrow_inputs;                     /* narrow products keep their inputs as cast */
    cs_list libraries;                      /* uint32_t, cs_library */
    int64_t cublas_workspace;               /* bytes; 0: the device's default */
    int64_t reduce_buffer;                  /* bytes */
    uint32_t allocator;                     /* index of the choice; 0: none */
    bool weight_buffer, whole_weights;
    bool receive_buffers;
    uint32_t stage_results; /* cs_stage_results */
    bool expandable_segments;
    int64_t max_split_size;
    double gc_threshold;
    cs_list resident; /* int64_t, bytes per device or one value for all */
} cs_memory_section;

typedef struct cs_sections {
    cs_json_place root; /* contains the file's name, which paths are relative to */
    cs_top_section top;
    cs_model_section model;
    cs_platform_section platform;
    cs_schedule_section schedule;
    cs_parallel_section parallel;
    cs_runtime_section runtime;
    cs_offload_section offload;
    cs_memory_section memory;
    cs_lower_options collectives; /* includes the measured costs of collectives */
} cs_sections;

/* Returns the storage types of weights, states and gradients in the optimizer. */
cs_optimizer_storage cs_model_section_storage(const cs_model_section *section);

/* Documents that sections name. They are loaded with the sections, so that all errors are reported
 * together. */
typedef struct cs_loaded {
    cs_costs costs; /* merged from all files; empty if there are none */
    cs_net net;     /* network of a named model */
    cs_model model; /* model from a file or inline */
    /* Whether network and device facts were borrowed from another scenario before reading. */
    bool net_is_known;
    cs_device_facts device;
} cs_loaded;

/* Accepts a zeroed value. */
void cs_loaded_finish(cs_loaded *loaded);

/* Reads all sections, even if some are invalid. Their values live in the arena, except document
 * parts that are parsed later, so the document must outlive the sections. `loaded` must be zeroed
 * unless its network is known. Suspicious but valid input is added to `warnings`. */
CS_MUST_CHECK cs_status cs_sections_read(const cJSON *root, const char *path, cs_arena *arena,
                                         cs_sections *sections, cs_loaded *loaded,
                                         cs_error *warnings, cs_error *error);

/* Loads and merges the given costs; empty if there are none. Places in messages are below
 * `root`. */
CS_MUST_CHECK cs_status cs_costs_section_load(const cs_costs_section *given,
                                              const cs_json_place *root, cs_costs *costs,
                                              cs_error *error);

/* Collects the measured times of collectives; NULL if there are none. */
CS_MUST_CHECK cs_status cs_scenario_measured_collectives(const cs_costs *costs, cs_arena *arena,
                                                         const cs_measured_collectives **out,
                                                         cs_error *error);

/* Each reads one section, and loads the documents that it names. On failure the section may be
 * partly filled. */
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

/* Returns the highest ZeRO stage that the section sets for any layer. `at` (may be NULL) gets the
 * index of the rule that sets it, or CS_COUNT_LEFT_OUT if "zero" does. */
uint32_t cs_parallel_section_zero(const cs_parallel_section *section, uint32_t *at);

/* `section` must be zeroed if the scenario has no such section. */
CS_MUST_CHECK cs_status cs_offload_section_read(const cJSON *value, const cs_json_place *root,
                                                cs_arena *arena, cs_offload_section *section,
                                                cs_error *error);

/* Passes the section's rules for operators on to the workload. */
void cs_offload_section_rules(const cs_offload_section *section, cs_workload *workload);

CS_MUST_CHECK cs_status cs_memory_section_read(const cJSON *value, const cs_json_place *root,
                                               cs_arena *arena, cs_memory_section *section,
                                               cs_error *error);

/* Describes the allocator of the section, without its capacity. Returns false if there is none. */
bool cs_memory_section_allocator(const cs_memory_section *section, cs_caching_options *options);

/* Resolves the rules of the section for a device with these facts. */
cs_kept_rules cs_memory_section_rules(const cs_memory_section *section,
                                      const cs_device_facts *device);

/* Links may refer to measured `costs`. Memory and reserve stay open if they are not given. */
CS_MUST_CHECK cs_status cs_platform_section_read(const cJSON *value, const cs_json_place *root,
                                                 const cs_costs *costs, cs_arena *arena,
                                                 cs_platform_section *section, cs_error *error);

/* Fills memory and reserve, if not given, from the named model's device (zeroed: no device), for a
 * mesh of `n_devices` (0: not known, treated as one). */
CS_MUST_CHECK cs_status cs_platform_section_settle(cs_platform_section *platform,
                                                   const cs_device_facts *device,
                                                   const cs_parallel_section *parallel,
                                                   uint32_t n_devices, cs_arena *arena,
                                                   cs_error *error);

/* Returns the names "measured node" and "measured network", which the platform section accepts as
 * latencies and bandwidths. CS_INVALID if nothing was measured on that level. The costs must
 * outlive the names. */
cs_field_names cs_scenario_measured_links(const cs_costs *costs);

/* Parsers of fields that accept several JSON types. */
extern const cs_field_kind cs_layer_choice_kind;
extern const cs_field_kind cs_costs_section_kind;
extern const cs_field_kind cs_partition_field_kind;

/* Whether the schedule computes some task for a whole mini-batch at once. */
static inline bool cs_schedule_takes_whole(const cs_schedule_section *section)
{
    return section->kind->takes_whole && section->kind->takes_whole(section->params);
}

/* Whether a uniform model has one layer per device, however many there are. */
static inline bool cs_model_section_is_open(const cs_model_section *section)
{
    return section->uniform && section->uniform->layers == 0;
}

typedef struct cs_optimizer {
    const char *name;
    double state_ratio; /* bytes of states per byte of float32 weights */
    double other_ratio; /* likewise for weights that are not matrices, if different; else 0 */
    bool is_none;       /* weights are not updated: forward and backward only */
} cs_optimizer;

/* In the order of the choices of "optimizer". */
extern const cs_optimizer cs_optimizers[];

#endif

/* Scenarios: descriptions of runs, as users write them.
 *
 * scenario.json names a model, a platform and a schedule (format: docs/reference/scenario.md).
 * Loading it resolves every default and builds the values that the simulation starts from: model,
 * platform, plan, job. All errors found in the file are reported together, each with file and JSON
 * pointer. */
#ifndef CS_SCENARIO_SCENARIO_H
#define CS_SCENARIO_SCENARIO_H

#include "schedules/mesh.h"
#include "sim/core/lower/lower.h"
#include "sim/model/allocator/caching-allocator.h"
#include "sim/model/paradl.h"
#include "sim/run/scenario/figure-origins.h"
#include "sim/run/scenario/kept-platforms.h"
#include "topologies/noise.h"
#include "topologies/topology.h"

/* Requested operator times that were not measured. */
typedef struct cs_missing_cost {
    const char *op;  /* key (sim/model/op-shape.h) */
    uint32_t passes; /* one bit per pass, 1 << cs_pass */
    uint32_t count;  /* missing times, over all passes and operators with this key */
} cs_missing_cost;

/* How the costs that a scenario names were used. */
typedef struct cs_costs_use {
    bool given;
    const char *files;   /* "a.json, b.json" */
    const char *devices; /* devices of the measurements: "A, B" */
    uint32_t n_measured; /* operator times taken from the costs, one per pass */
    uint32_t n_estimated;
    uint32_t n_missing, cap_missing;
    cs_missing_cost *missing; /* distinct keys */
    const char *warnings[2];  /* warnings for people: costs of incompatible devices */
    uint32_t n_warnings;
} cs_costs_use;

/* The search that found the plan and its pattern; zeroed if there was no search. */
typedef struct cs_search {
    cs_time promised, bound; /* see cs_planned; 0: unknown */
    bool optimal;
    const char *planner; /* name of the planner */
} cs_search;

/* The mesh that the section "parallel" describes. */
typedef struct cs_parallel {
    cs_split split;
    cs_states states;
    uint32_t n_ranks; /* pipeline ranks */
    uint32_t order[CS_N_MESH_AXES];
    const uint32_t *devices; /* place i of pipeline rank r is devices[r * places + i] */
} cs_parallel;

/* ParaDL's closed form for a scenario. */
typedef struct cs_scenario_form {
    bool given; /* false: table 3 has no row for the scenario */
    cs_paradl_case asked;
    cs_paradl_form form;
} cs_scenario_form;

/* Values that a scenario shares with others. They must outlive it. */
typedef struct cs_scenario_parts {
    const struct cs_scenario *network; /* scenario with the same named model, apart from batch size
                                        * and recomputation; or NULL */
    cs_model *model;             /* model from the same section, with the same split and micro-batch
                                  * size; or NULL */
    const cs_platform *platform; /* platform from the same section, with the same number of devices;
                                  * or NULL */
    const char *difference;      /* cs_scenario.difference of a scenario with the same mesh, or
                                  * NULL */
    cs_price_memory *memory;     /* costs of collectives on that platform; or NULL */
    cs_kept_platforms *kept;     /* cache that lends the platform, or NULL */
} cs_scenario_parts;

/* Owns everything that it points to, except shared values. Contains no pointers into itself, so it
 * may be moved by assignment. The job points to the scenario's model, plan and pattern. */
typedef struct cs_scenario {
    cs_arena arena;
    cs_scenario_parts shared; /* members that are not NULL belong to other scenarios */
    const char *file;         /* path of the scenario's file */
    const char *name;
    uint64_t seed;
    cs_error warnings;   /* warnings: the input is valid, but probably not what was meant */
    uint32_t batch_size; /* samples per mini-batch */
    uint32_t dataset;    /* samples per epoch; 0: not given */
    cs_scenario_form paradl;
    const cs_schedule *schedule;
    void *params; /* parameters of the schedule */
    cs_model *model;
    struct cs_net *net;     /* network of a named model; NULL: the model has another source */
    uint32_t granularity;   /* cs_granularity of the model's chain */
    cs_device_facts device; /* device of the named model; zeroed: no device */
    uint32_t n_recomputed;  /* number of operator names listed for recomputation */
    cs_optimizer_storage storage;
    const cs_parallel *parallel; /* NULL: no section "parallel" */
    const char
        *unfolded; /* why each device of a large mesh is simulated; NULL: devices are folded, or
                    * folding was not wanted */
    const char *difference; /* difference between places of the mesh that prevents folding; "":
                             * none; NULL: not checked */
    const char *estimated;  /* with "fold": "slowest": difference that folding ignores; NULL:
                             * none */
    bool foregone;          /* the devices are identical, but the mesh is too small to be folded by
                             * default */
    cs_platform platform;
    cs_plan *plan;       /* NULL: read without a plan */
    cs_pattern *pattern; /* pattern of the plan; NULL: none */
    cs_search search;
    cs_job job;
    cs_lower_options collectives;
    bool has_allocator;         /* run replays allocations on PyTorch's allocator
                                 * (sim/run/allocations.h) */
    bool weight_buffer;         /* weights are allocated one by one, then moved into one tensor */
    bool whole_weights;         /* each device allocates all weights of its stages before they are
                                 * sharded */
    uint32_t passes_ahead;      /* see cs_memory_section in sections.h */
    cs_caching_options caching; /* all options except the capacity, which differs between devices */
    cs_noise noise;             /* noise of each run, drawn with the run's seed */
    const double *slowdown;     /* slowdown of a computation during communication, >= 1: [kind of
                             * computation][origin of transfer], CS_N_KINDS each; NULL: none */
    cs_costs_use costs;
    cs_origins origins; /* filled only if the scenario is read for people */
    char *resolved; /* JSON text: the scenario with every default written out, and with models and
                    * plans from files inlined. It can be read from any folder, resolves to itself
                    * and gives the same results */
} cs_scenario;

/* One change to the file before it is read, from `--set /json/pointer=VALUE`. */
typedef struct cs_override {
    const char *pointer, *value;
} cs_override;

/* Accepts a zeroed scenario. */
void cs_scenario_finish(cs_scenario *scenario);

CS_MUST_CHECK cs_status cs_scenario_load(const char *path, const cs_override *overrides,
                                         size_t n_overrides, cs_scenario *scenario,
                                         cs_error *error);

/* Reads a parsed document, which the caller keeps. Paths in it are relative to the folder of
 * `path`. */
CS_MUST_CHECK cs_status cs_scenario_read(const cJSON *root, const char *path, cs_scenario *scenario,
                                         cs_error *error);

/* Like cs_scenario_read, with progress: the partition's planner reports to `progress` (may be
 * NULL), and returns CS_INTERRUPTED if it is asked to stop. */
CS_MUST_CHECK cs_status cs_scenario_read_watched(const cJSON *root, const char *path,
                                                 const cs_progress *progress, cs_scenario *scenario,
                                                 cs_error *error);

/* Like cs_scenario_read, for runs that need only their metrics: leaves out `resolved`,
 * `paradl` and the warnings. Reuses values of other scenarios from `parts` (may be NULL). */
CS_MUST_CHECK cs_status cs_scenario_read_brief(const cJSON *root, const char *path,
                                               const cs_scenario_parts *parts,
                                               const cs_progress *progress, cs_scenario *scenario,
                                               cs_error *error);

/* Like cs_scenario_read, for a point of a study that stores only metrics: leaves out `resolved`,
 * and borrows an identical platform from `kept` if it exists. */
CS_MUST_CHECK cs_status cs_scenario_read_point(const cJSON *root, const char *path,
                                               cs_kept_platforms *kept, const cs_progress *progress,
                                               cs_scenario *scenario, cs_error *error);

/* Fields of each section, for `sim list` and the documentation; ended by {0}. */
extern const cs_field cs_scenario_fields[];
extern const cs_field cs_scenario_model_fields[];
extern const cs_field cs_scenario_uniform_fields[];
extern const cs_field cs_scenario_platform_fields[];
extern const cs_field cs_scenario_schedule_fields[];
extern const cs_field cs_scenario_parallel_fields[];
extern const cs_field cs_scenario_routing_fields[]; /* object "expert_routing" of "parallel" */
extern const cs_field cs_scenario_rule_fields[];    /* element of the list "rules" of "parallel" */
extern const cs_field cs_scenario_runtime_fields[];
extern const cs_field cs_scenario_memory_fields[];
extern const cs_field cs_scenario_offload_fields[];
extern const cs_field cs_scenario_slowdown_fields[];
extern const cs_field cs_scenario_stragglers_fields[];
extern const cs_field cs_scenario_background_fields[];

#endif

/* Scenarios: what a user asks to be simulated.
 *
 * scenario.json names a model, a platform and a schedule (format: docs/reference/scenario.md).
 * Loading it resolves every default and builds the values that the simulation starts from: model,
 * platform, plan, job. Errors in the file are reported several in one go, each with file and JSON
 * pointer.
 */
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

/* Times of a piece of work that were asked for and not measured. */
typedef struct cs_missing_cost {
    const char *op;  /* key (sim/model/op-shape.h) */
    uint32_t passes; /* bit 1 << cs_pass of each */
    uint32_t count;  /* times that are missing, all passes of all operators with the key */
} cs_missing_cost;

/* What became of the costs that a scenario names. */
typedef struct cs_costs_use {
    bool given;
    const char *files;   /* "a.json, b.json" */
    const char *devices; /* that they were measured on, "A, B" */
    uint32_t n_measured; /* times of operators, of each pass */
    uint32_t n_estimated;
    uint32_t n_missing, cap_missing;
    cs_missing_cost *missing; /* distinct keys */
    const char *warnings[2];  /* for people: entries of devices that do not go together */
    uint32_t n_warnings;
} cs_costs_use;

/* The search that made a plan and its pattern; zero where none did. */
typedef struct cs_search {
    cs_time promised, bound; /* as cs_planned has them; 0: unknown */
    bool optimal;
    const char *planner; /* its name */
} cs_search;

/* The mesh that the section "parallel" asks for. */
typedef struct cs_parallel {
    cs_split split;
    cs_states states;
    uint32_t n_ranks; /* pipeline ranks */
    uint32_t order[CS_N_MESH_AXES];
    const uint32_t *devices; /* place i of pipeline rank r is devices[r * places + i] */
} cs_parallel;

/* What ParaDL's closed form says of a scenario. */
typedef struct cs_scenario_form {
    bool given; /* else table 3 has no row for it */
    cs_paradl_case asked;
    cs_paradl_form form;
} cs_scenario_form;

/* What a scenario may have in common with others; it must live longer than they do. */
typedef struct cs_scenario_parts {
    const struct cs_scenario *network; /* of a named model: from the same section, but for the batch
                                        * and what is recomputed; or NULL */
    cs_model *model;             /* from the same section, with layers divided in the same way, of
                                        * micro-batches of the same size; or NULL */
    const cs_platform *platform; /* from the same section, with as many devices; or NULL */
    const char *difference;      /* cs_scenario.difference of one with the same mesh, or NULL */
    cs_price_memory *memory;     /* costs of collectives on that platform; or NULL */
    cs_kept_platforms *kept;     /* that the platform is borrowed from, or NULL */
} cs_scenario_parts;

/* Owns all that it points to, but for what is shared, and nothing of it points to the struct
 * itself: it can be moved by assignment. The job shares model, plan and pattern with it. */
typedef struct cs_scenario {
    cs_arena arena;
    cs_scenario_parts shared; /* whose these are, unless NULL */
    const char *file;         /* that it was read from */
    const char *name;
    uint64_t seed;
    cs_error warnings;   /* messages about what is valid and hardly meant; no failure */
    uint32_t batch_size; /* samples per mini-batch */
    uint32_t dataset;    /* samples per epoch; 0: not given */
    cs_scenario_form paradl;
    const cs_schedule *schedule;
    void *params; /* of the schedule */
    cs_model *model;
    struct cs_net *net;     /* that a named model was built from; NULL of others */
    uint32_t granularity;   /* cs_granularity of its chain */
    cs_device_facts device; /* device of the named model; zeroed: it has none */
    uint32_t n_recomputed;  /* names of operators that the backward recomputes */
    cs_optimizer_storage storage;
    const cs_parallel *parallel; /* NULL: the scenario has no such section */
    const char
        *unfolded; /* why each device of a large mesh is simulated by itself; NULL: it is not,
                           * or that was asked for */
    const char *difference; /* difference between places of the mesh that a fold found; "": there is
                             * none; NULL: not checked */
    const char *estimated;  /* "fold": "slowest": what tells the devices apart that one is simulated
                            * for; NULL: nothing does */
    bool foregone;          /* a small mesh of identical devices is not folded */
    cs_platform platform;
    cs_plan *plan;       /* NULL: it was read without one */
    cs_pattern *pattern; /* that came with the plan; NULL: none did */
    cs_search search;
    cs_job job;
    cs_lower_options collectives;
    bool has_allocator;         /* the run is played on PyTorch's (sim/run/allocations.h) */
    bool weight_buffer;         /* weights are made one by one, and then moved into one tensor */
    bool whole_weights;         /* they are there before they are divided */
    uint32_t passes_ahead;      /* see cs_memory_section in sections.h */
    cs_caching_options caching; /* but for the capacity, which is a device's */
    cs_noise noise;             /* of every run: what it does is drawn from the run's seed */
    const double *slowdown; /* of computations beside communication: [kind of the first][origin of
                             * the second], CS_N_KINDS each, >= 1; NULL: none */
    cs_costs_use costs;
    cs_origins origins; /* of a scenario that is read for people; else empty */
    char
        *resolved; /* JSON text: the scenario with every default written out, and with the model and
                     * the plan in it that came from files. Read from anywhere, it resolves to
                     * itself and gives the same results */
} cs_scenario;

/* One change to the file before it is read, from `--set /json/pointer=VALUE`. */
typedef struct cs_override {
    const char *pointer, *value;
} cs_override;

/* Zeroed scenarios can be finished. */
void cs_scenario_finish(cs_scenario *scenario);

CS_MUST_CHECK cs_status cs_scenario_load(const char *path, const cs_override *overrides,
                                         size_t n_overrides, cs_scenario *scenario,
                                         cs_error *error);

/* The same from a parsed document, which stays the caller's. Paths in it are relative to the folder
 * of `path`. */
CS_MUST_CHECK cs_status cs_scenario_read(const cJSON *root, const char *path, cs_scenario *scenario,
                                         cs_error *error);

/* The same; planners that the partition names report to `progress`, which may be NULL, and end with
 * CS_INTERRUPTED when it asks them to. */
CS_MUST_CHECK cs_status cs_scenario_read_watched(const cJSON *root, const char *path,
                                                 const cs_progress *progress, cs_scenario *scenario,
                                                 cs_error *error);

/* The same for runs if only their values are needed: without `resolved`, `paradl` and warnings.
 * What other scenarios have made already and this one would make anew is taken from `parts`, or
 * NULL. */
CS_MUST_CHECK cs_status cs_scenario_read_brief(const cJSON *root, const char *path,
                                               const cs_scenario_parts *parts,
                                               const cs_progress *progress, cs_scenario *scenario,
                                               cs_error *error);

/* The same for a point of a study, of whose run figures alone are kept: without `resolved`, and on
 * a platform of those that are kept where it would make the same. */
CS_MUST_CHECK cs_status cs_scenario_read_point(const cJSON *root, const char *path,
                                               cs_kept_platforms *kept, const cs_progress *progress,
                                               cs_scenario *scenario, cs_error *error);

/* The fields of each section, for `sim list` and the documentation; ended by {0}. */
extern const cs_field cs_scenario_fields[];
extern const cs_field cs_scenario_model_fields[];
extern const cs_field cs_scenario_uniform_fields[];
extern const cs_field cs_scenario_platform_fields[];
extern const cs_field cs_scenario_schedule_fields[];
extern const cs_field cs_scenario_parallel_fields[];
extern const cs_field cs_scenario_routing_fields[]; /* of parallel's "expert_routing" */
extern const cs_field cs_scenario_rule_fields[];    /* of an element of parallel's "rules" */
extern const cs_field cs_scenario_runtime_fields[];
extern const cs_field cs_scenario_memory_fields[];
extern const cs_field cs_scenario_offload_fields[];
extern const cs_field cs_scenario_slowdown_fields[];
extern const cs_field cs_scenario_stragglers_fields[];
extern const cs_field cs_scenario_background_fields[];

#endif

/* The sections of a scenario as they stand in the file, before anything is built from them.
 * Internal to sim/scenario. */
#ifndef CS_SCENARIO_SECTIONS_H
#define CS_SCENARIO_SECTIONS_H

#include "calib/costs.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/workload.h"

typedef struct cs_top_section {
    uint32_t schema_version;
    const char *name;
    const cJSON *model, *platform, *schedule, *collectives, *costs;
    const cJSON *sweep; /* of another command: not read, not resolved */
    uint32_t iterations;
    uint32_t seed;
} cs_top_section;

typedef struct cs_model_section {
    const char *file;
    const cJSON *uniform, *in_place;
    uint32_t batch_size;   /* 0: so that a micro-batch is what the model was made for */
    uint32_t optimizer;    /* position in cs_optimizers */
    uint32_t gradients;    /* position in its choices; 0: as the weights */
    cs_workload workload;  /* of a model that is built from its architecture */
    cs_net net;            /* its network, until the model is built */
    int64_t device_memory; /* bytes of the named model's device; 0: there is none */
} cs_model_section;

typedef struct cs_uniform_section {
    uint32_t layers; /* 0: one per device of a pipeline */
    cs_time forward, backward, update;
    int64_t weights, activation, workspace;
} cs_uniform_section;

enum { CS_PHI_COUNT = 0 }; /* "phi": "count" */

typedef struct cs_platform_section {
    const char *topology;
    uint32_t devices; /* 0: as many as the schedule needs */
    cs_list memory;   /* int64_t, per device or one for all; INT64_MAX: unlimited */
    cs_list reserve;  /* int64_t, the same: of the memory */
    cs_list speed;    /* double, the same */
    uint32_t sharing; /* position in its choices */
    double phi;       /* NaN: not given; CS_PHI_COUNT */
    bool blocking;
    cs_spread *jitter; /* NULL: none; the same of the next two */
    struct cs_stragglers_section *stragglers;
    struct cs_background_section *background;
    cs_sharing shared;  /* what `sharing` and `phi` say together */
    double coefficient; /* phi, or 1 */
    const cs_topology *kind;
    void *params; /* of the topology */
} cs_platform_section;

typedef struct cs_schedule_section {
    const char *kind_name;
    const cJSON *partition; /* also of schedules without one, for which it means nothing */
    bool partition_communication;
    const cs_schedule *kind;
    void *params; /* of the schedule */
} cs_schedule_section;

/* Layouts for which the user says which layers make a stage. */
static inline bool cs_layout_is_partitioned(cs_layout layout)
{
    return layout != CS_LAYOUT_SINGLE && layout != CS_LAYOUT_REPLICATED;
}

/* A scenario while it is read. */
typedef struct cs_draft {
    const char *path;
    cs_json_place root;
    bool unplanned; /* nothing is built from the plan on */
    const cs_progress *progress;
    cs_top_section top;
    cs_model_section model;
    cs_uniform_section uniform;
    cs_platform_section platform;
    cs_schedule_section schedule;
    cs_costs costs;         /* of all files; empty when there are none */
    cs_status costs_status; /* of what was counted while the model was built */
    cs_measured measured;   /* how the model asks them */
    cs_scenario *scenario;  /* what is built */
} cs_draft;

/* Whether the schedule computes something of a whole mini-batch at once. */
static inline bool cs_draft_takes_whole(const cs_draft *draft)
{
    const cs_schedule *kind = draft->schedule.kind;
    return kind->takes_whole && kind->takes_whole(draft->schedule.params);
}

typedef struct cs_optimizer {
    const char *name;
    double state_ratio; /* bytes of states per byte of float32 weights */
} cs_optimizer;

/* In step with the choices of the field "optimizer". */
extern const cs_optimizer cs_optimizers[];

/* Reads the files of costs, before the sections that use them, and hands the times of collectives to
 * the scenario. */
CS_MUST_CHECK cs_status cs_draft_read_costs(cs_draft *draft, cs_error *error);

/* CS_INVALID, naming them, when there are times that were not measured and no device either. The
 * first also warns of costs of another device than the model's. */
CS_MUST_CHECK cs_status cs_draft_check_costs(cs_draft *draft, cs_error *error);
CS_MUST_CHECK cs_status cs_draft_check_missing(const cs_draft *draft, cs_error *error);

/* "measured node" and "measured network" as latencies and bandwidths of the platform section.
 * CS_INVALID where nothing of the kind was measured. The costs must live as long. */
cs_field_names cs_scenario_measured_links(const cs_costs *costs);

/* Each reads its section, and loads or builds nothing that is large. */
CS_MUST_CHECK cs_status cs_draft_read_model(cs_draft *draft, cs_error *error);
CS_MUST_CHECK cs_status cs_draft_read_platform(cs_draft *draft, cs_error *error);
CS_MUST_CHECK cs_status cs_draft_read_schedule(cs_draft *draft, cs_error *error);

/* Builds a uniform model, once it is known how many layers it has. */
CS_MUST_CHECK cs_status cs_draft_build_uniform(cs_draft *draft, uint32_t layers, cs_error *error);

/* Each builds its part of the scenario, in this order. The first takes the number of devices from
 * the topology where that has one of its own and the scenario says none. */
CS_MUST_CHECK cs_status cs_draft_count_devices(cs_draft *draft, cs_error *error);
CS_MUST_CHECK cs_status cs_draft_build_model(cs_draft *draft, cs_error *error);
CS_MUST_CHECK cs_status cs_draft_build_platform(cs_draft *draft, cs_error *error);
CS_MUST_CHECK cs_status cs_draft_view_platform(cs_draft *draft, cs_error *error);
CS_MUST_CHECK cs_status cs_draft_divide_batch(cs_draft *draft, cs_error *error);
CS_MUST_CHECK cs_status cs_draft_build_plan(cs_draft *draft, cs_error *error);
CS_MUST_CHECK cs_status cs_draft_build_job(cs_draft *draft, cs_error *error);

/* Prices the model at as many samples as a device computes at once, where it is built from an
 * architecture: cs_model_sum then finds them. The times of others scale linearly. */
CS_MUST_CHECK cs_status cs_draft_price(cs_draft *draft, uint32_t samples, cs_error *error);

/* Of schedules with a placement of their own: how many devices they ask for; whether the platform
 * has as many; how many stages there are; and the devices of the plan's stages, which are set, or
 * have to be what a plan from a file (`given`) says. */
uint32_t cs_draft_devices_placed(const cs_draft *draft);
CS_MUST_CHECK cs_status cs_draft_check_devices(const cs_draft *draft, cs_error *error);
uint32_t cs_draft_stages(const cs_draft *draft);
/* Per stage, that of its slowest device; NULL when memory runs out. */
double *cs_draft_stage_speeds(const cs_draft *draft);
CS_MUST_CHECK cs_status cs_draft_place(cs_draft *draft, bool given, const cs_json_place *place,
                                       cs_error *error);

/* Whether "partition" names a planner other than "balanced"; the plan that it makes. */
bool cs_draft_has_planner(const cs_draft *draft);
CS_MUST_CHECK cs_status cs_draft_plan(cs_draft *draft, const cs_json_place *place, cs_error *error);

/* Prices the model at all shares of a micro-batch that replicas can have, for planners to choose from.
 */
CS_MUST_CHECK cs_status cs_draft_price_shares(cs_draft *draft, cs_error *error);

/* Gives a plan that has several stages on a device a pattern, if it has none, by an integer program.
 * CS_LIMIT, naming the device and the bytes, when none fits. */
CS_MUST_CHECK cs_status cs_draft_find_pattern(cs_draft *draft, const cs_json_place *place,
                                              cs_error *error);

/* Fills the scenario's warnings. */
void cs_draft_warn(cs_draft *draft);

/* The scenario with all defaults; NULL when memory runs out, or with a message. */
char *cs_draft_resolved(const cs_draft *draft, cs_error *error);

#endif

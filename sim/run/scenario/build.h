/* The values of a scenario, each a function of the sections and of the values before it:
 *
 *     sections ─▶ costs in use ─▶ parallel ─▶ model ─▶ devices ─▶ platform ─▶ mesh ─▶ batch ─▶ job
 *     without a plan ─▶ plan ─▶ job
 *
 * What is made lives in the arena, where it is not said to be finished by somebody.
 * Internal to sim/run/scenario. */
#ifndef CS_SCENARIO_BUILD_H
#define CS_SCENARIO_BUILD_H

#include "sim/run/scenario/sections.h"

/* Devices that the scenario says, or that its topology has by itself; 0: neither says. */
CS_MUST_CHECK cs_status cs_scenario_given_devices(const cs_sections *sections, uint32_t *n,
                                                  cs_error *error);

/* What the section "parallel" asks for, on so many devices (0: the platform has no number); NULL
 * without the section. Of the model it has to know the heads of keys and values, and how many
 * layers there are where that is known before the model is made. CS_INVALID, naming the key and the
 * nearest numbers that would be right, where sizes do not go together. */
CS_MUST_CHECK cs_status cs_scenario_parallel(const cs_sections *sections, uint32_t given,
                                             const cs_loaded *loaded, cs_arena *arena,
                                             const cs_parallel **out, cs_error *error);

/* How the parameters of each of the model's layers rest, by the rules of the section "parallel";
 * NULL where there are none. CS_INVALID, with the nearest names or numbers, when a rule is of no
 * layer. */
CS_MUST_CHECK cs_status cs_scenario_layer_states(const cs_sections *sections, const cs_model *model,
                                                 cs_arena *arena, const cs_layer_states **out,
                                                 cs_error *error);

/* The stages of the schedule on so many devices; `parallel`, which may be NULL, must live as long.
 * */
cs_mesh cs_scenario_mesh(const cs_sections *sections, const cs_parallel *parallel,
                         uint32_t n_devices);

/* The costs that are given, none of them used yet. `missing` is freed by whoever owns it. */
CS_MUST_CHECK cs_status cs_scenario_costs_use(const cs_sections *sections, const cs_costs *costs,
                                              cs_arena *arena, cs_costs_use *use, cs_error *error);

/* The model of one device: taken from what was loaded, made of the network for the samples that
 * each of the mesh's devices (none: not known yet) computes at once, or of uniform layers, one per
 * stage where their number is open. What is taken of the costs is counted in `use`. CS_INVALID,
 * naming them, when there are times that were not measured and no device either. */
CS_MUST_CHECK cs_status cs_scenario_model(const cs_sections *sections, cs_loaded *loaded,
                                          const cs_parallel *parallel, const cs_mesh *mesh,
                                          cs_arena *arena, cs_model *model, cs_costs_use *use,
                                          cs_error *error);

/* Numbers of samples that the model is needed for. */
typedef struct cs_samples {
    uint32_t n;
    uint32_t *items;
} cs_samples;

/* Adds a batch to the model for each number, where it is made of a network: cs_model_sum then finds
 * them. The times of other models scale linearly. */
CS_MUST_CHECK cs_status cs_scenario_price(const cs_sections *sections, const cs_loaded *loaded,
                                          const cs_parallel *parallel, const cs_samples *samples,
                                          cs_arena *arena, cs_model *model, cs_costs_use *use,
                                          cs_error *error);

/* Fills `paradl` of a scenario that is made but for it, where a row of table 3 fits (paradl.h). */
CS_MUST_CHECK cs_status cs_scenario_paradl(const cs_sections *sections, const cs_loaded *loaded,
                                           cs_scenario *made, cs_error *error);

/* How many devices there are without the section "parallel", of `given` or as the schedule needs
 * for so many layers as the model has
 * (zeroed: its number is open). */
CS_MUST_CHECK cs_status cs_scenario_devices(const cs_sections *sections, uint32_t given,
                                            const cs_model *model, uint32_t *n, cs_error *error);

/* Replaces the capacities of a shared platform by this scenario's own. The arena owns them. */
CS_MUST_CHECK cs_status cs_scenario_take_capacities(const cs_sections *sections, cs_arena *arena,
                                                    cs_platform *platform, cs_error *error);

CS_MUST_CHECK cs_status cs_scenario_platform(const cs_sections *sections, uint32_t n_devices,
                                             cs_platform *platform, cs_error *error);

/* How the mini-batch is divided among replicas and micro-batches. */
typedef struct cs_batch {
    uint32_t samples;                      /* of a mini-batch */
    uint32_t micro_batches, micro_samples; /* of one replica */
} cs_batch;

/* Samples of a mini-batch that one replica computes. */
static inline uint32_t cs_batch_share(const cs_batch *batch)
{
    return batch->micro_batches * batch->micro_samples;
}

/* Propose the numbers next to n that divide `of`, or that are multiples of it (cs_error_propose). */
void cs_propose_divisors(const char *pointer, uint64_t n, uint64_t of, cs_error *error);
void cs_propose_multiples(const char *pointer, uint64_t n, uint64_t of, cs_error *error);

CS_MUST_CHECK cs_status cs_scenario_batch(const cs_sections *sections, const cs_model *model,
                                          const cs_mesh *mesh, cs_batch *batch, cs_error *error);

/* What planners and schedules see before there is a plan: `plan`, `pattern`, `stages`, `whole` are
 * NULL, `own_links` is false. The model must live as long. */
CS_MUST_CHECK cs_status cs_scenario_unplanned_job(const cs_sections *sections,
                                                  const cs_model *model,
                                                  const cs_platform *platform,
                                                  const cs_parallel *parallel,
                                                  const cs_batch *batch, cs_arena *arena,
                                                  cs_job *job, cs_error *error);

/* What the section "offload" asks for; leaves `offload` without the section. CS_INVALID when the
 * scenario has something that does not go with it, or no bandwidth to the host. */
CS_MUST_CHECK cs_status cs_scenario_offload(const cs_sections *sections, const cs_model *model,
                                            const cs_parallel *parallel, cs_offload *offload,
                                            cs_error *error);

/* Of a job with its plan: CS_INVALID when a stage has something to offload, and no more layers
 * with it than are to be offloaded, or no stage has two such layers. */
CS_MUST_CHECK cs_status cs_scenario_check_offload(const cs_sections *sections, const cs_job *job,
                                                  cs_error *error);

/* The samples of all shares of a micro-batch that replicas can have, for planners to choose
 * from. */
CS_MUST_CHECK cs_status cs_scenario_shares(const cs_job *job, cs_arena *arena, cs_samples *samples,
                                           cs_error *error);

/* Numbers of samples that a plan is made with, other than those of a micro-batch. */
CS_MUST_CHECK cs_status cs_scenario_plan_samples(const cs_sections *sections, const cs_job *job,
                                                 const cs_batch *batch, cs_arena *arena,
                                                 cs_samples *samples, cs_error *error);

/* A plan, its pattern if it has one, and the search that made them if one did. */
typedef struct cs_scenario_planned {
    cs_plan plan;
    cs_pattern pattern; /* period 0: none */
    cs_search search;
} cs_scenario_planned;

void cs_scenario_planned_finish(cs_scenario_planned *planned);

/* Planners report to `progress`, which may be NULL. */
CS_MUST_CHECK cs_status cs_scenario_plan(const cs_sections *sections, const cs_job *unplanned,
                                         const cs_mesh *mesh, const cs_batch *batch,
                                         const cs_progress *progress, cs_arena *arena,
                                         cs_scenario_planned *planned, cs_error *error);

/* The plan that the planner makes which the partition names. */
CS_MUST_CHECK cs_status cs_scenario_plan_by_planner(const cs_sections *sections,
                                                    const cs_job *unplanned,
                                                    const cs_progress *progress,
                                                    cs_scenario_planned *planned, cs_error *error);

/* Gives a plan that has several stages on a device a pattern, if it has none, by an integer
 * program. CS_LIMIT, naming the device and the bytes, when none fits. */
CS_MUST_CHECK cs_status cs_scenario_find_pattern(const cs_sections *sections,
                                                 const cs_job *unplanned, cs_arena *arena,
                                                 const cs_plan *plan, cs_pattern *pattern,
                                                 cs_error *error);

/* The speed of each stage, that of its slowest device. */
CS_MUST_CHECK cs_status cs_scenario_stage_speeds(const cs_mesh *mesh, const cs_job *job,
                                                 cs_arena *arena, double **out, cs_error *error);

/* Of meshes that place stages: whether they run on the job's devices; and the
 * devices of a plan's stages, which are set, or have to be what a plan from a file (`given`) says.
 * */
CS_MUST_CHECK cs_status cs_scenario_check_placed(const cs_sections *sections, const cs_job *job,
                                                 const cs_mesh *mesh, cs_error *error);
CS_MUST_CHECK cs_status cs_scenario_place(const cs_mesh *mesh, bool given,
                                          const cs_json_place *place, cs_plan *plan,
                                          cs_error *error);

/* The samples that each stage's devices compute at once. CS_INVALID when a micro-batch cannot be
 * shared equally. */
CS_MUST_CHECK cs_status cs_scenario_stage_samples(const cs_sections *sections,
                                                  const cs_job *unplanned, const cs_plan *plan,
                                                  cs_arena *arena, cs_samples *samples,
                                                  cs_error *error);

/* Which devices are simulated in place of which. */
typedef struct cs_folded {
    const uint32_t *stands_for; /* as in cs_job */
    const char *reason;         /* what tells devices apart: why each is simulated by itself, where
                                 * that was not asked for; or, with stands_for, what is left out */
    const char *difference;     /* as in cs_scenario */
    bool foregone;              /* "auto" does not fold these identical devices: there are few */
} cs_folded;

/* Of a mesh, or without one (`parallel` NULL) of a schedule each of whose devices holds a copy of
 * the whole model. `difference` is the known result for the same mesh, or NULL.
 * CS_INVALID if the scenario asks to fold devices that differ; the message names the difference. */
CS_MUST_CHECK cs_status cs_scenario_fold(const cs_sections *sections, const cs_parallel *parallel,
                                         const cs_platform *platform, const cs_plan *plan,
                                         const char *difference, cs_arena *arena, cs_folded *folded,
                                         cs_error *error);

/* Per device of a job with its plan, what the section "memory" says that there is besides the
 * model: workspaces of libraries, and what layers share (kept.h). Leaves *out when there is
 * nothing. */
CS_MUST_CHECK cs_status cs_scenario_libraries(const cs_sections *sections, const cs_job *job,
                                              cs_arena *arena, const int64_t **out,
                                              cs_error *error);

/* The job with its plan, which must live as long, as the pattern, which may be NULL; checked by the
 * schedule. */
CS_MUST_CHECK cs_status cs_scenario_job(const cs_sections *sections, const cs_platform *platform,
                                        const cs_batch *batch, const cs_job *unplanned,
                                        const cs_plan *plan, const cs_pattern *pattern,
                                        const uint32_t *stands_for, cs_arena *arena, cs_job *job,
                                        cs_error *error);

/* Warns of axes over which layers are divided and that cross nodes, although with another order
 * they would not. */
void cs_scenario_warn_of_order(const cs_sections *sections, const cs_parallel *parallel,
                               const cs_platform *platform, cs_error *warnings);

/* Warns of a plan that the scenario's runtime cannot run. */
void cs_scenario_warn_of_runtime(const cs_sections *sections, const cJSON *root,
                                 cs_scenario *scenario, cs_error *warnings);

/* Warns of keys that the scenario itself gives, and that change nothing without another one. */
void cs_scenario_warn_of_ignored_keys(const cs_sections *sections, const cs_origins *origins);

/* Warns of operators that are recomputed without freeing memory. It makes the model's chain anew
 * several times. */
void cs_scenario_warn_of_recompute(const cs_sections *sections, const cs_scenario *scenario,
                                   cs_error *warnings);

/* Adds the scenario's other warnings. */
void cs_scenario_warn(const cs_sections *sections, const cs_scenario *scenario, cs_error *warnings);

/* The scenario with all defaults; NULL when memory runs out, or with a message. */
char *cs_scenario_resolved(const cs_sections *sections, const cs_scenario *scenario,
                           const cs_costs *costs, cs_error *error);

/* Adds to the origins of a runtime's members what was measured, and the device whose figures stand
 * for what was not. Nothing where there is no runtime. */
CS_MUST_CHECK cs_status cs_origins_add_measured(const cs_sections *sections, const cs_costs *costs,
                                                const cs_costs_use *use, cs_arena *arena,
                                                cs_origins *origins, cs_error *error);

#endif

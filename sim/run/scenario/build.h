/* Builds the values of a scenario. Each is a function of the sections and of the values before it:
 *
 *     sections ─▶ costs in use ─▶ parallel ─▶ model ─▶ devices ─▶ platform ─▶ mesh ─▶ batch ─▶ job
 *     without a plan ─▶ plan ─▶ job
 *
 * Results live in the arena, unless their comment says who finishes them.
 * Internal to sim/run/scenario. */
#ifndef CS_SCENARIO_BUILD_H
#define CS_SCENARIO_BUILD_H

#include "sim/run/scenario/sections.h"

/* Finds the number of devices given by the scenario or fixed by its topology; 0: neither. */
CS_MUST_CHECK cs_status cs_scenario_given_devices(const cs_sections *sections, uint32_t *n,
                                                  cs_error *error);

/* Settles the mesh of the section "parallel" on `given` devices (0: unknown); NULL without the
 * section. Needs from the loaded model the number of key/value heads, and the number of layers if
 * already known. CS_INVALID if sizes are incompatible; the message names the key and the nearest
 * valid numbers. */
CS_MUST_CHECK cs_status cs_scenario_parallel(const cs_sections *sections, uint32_t given,
                                             const cs_loaded *loaded, cs_arena *arena,
                                             const cs_parallel **out, cs_error *error);

/* Finds how the parameters of each layer are sharded, by the rules of the section "parallel"; NULL
 * without rules. CS_INVALID if a rule matches no layer; the message proposes names or numbers. */
CS_MUST_CHECK cs_status cs_scenario_layer_states(const cs_sections *sections, const cs_model *model,
                                                 cs_arena *arena, const cs_layer_states **out,
                                                 cs_error *error);

/* Returns the stages of the schedule on `n_devices` devices. `parallel` may be NULL, and must
 * outlive the mesh. */
cs_mesh cs_scenario_mesh(const cs_sections *sections, const cs_parallel *parallel,
                         uint32_t n_devices);

/* Describes the given costs, with nothing counted as used yet. The caller frees `missing`. */
CS_MUST_CHECK cs_status cs_scenario_costs_use(const cs_sections *sections, const cs_costs *costs,
                                              cs_arena *arena, cs_costs_use *use, cs_error *error);

/* Makes the model of one device: the loaded model; or the network's model for the samples that each
 * device of the mesh computes at once (no devices: not known yet); or uniform layers, one per stage
 * if their number is open. Counts in `use` the costs that it takes. CS_INVALID, naming them, if
 * times were not measured and there is no device to estimate them. */
CS_MUST_CHECK cs_status cs_scenario_model(const cs_sections *sections, cs_loaded *loaded,
                                          const cs_parallel *parallel, const cs_mesh *mesh,
                                          cs_arena *arena, cs_model *model, cs_costs_use *use,
                                          cs_error *error);

/* Sample counts that the model needs times for. */
typedef struct cs_samples {
    uint32_t n;
    uint32_t *items;
} cs_samples;

/* Adds a batch to a model built from a network for each sample count, so that cs_model_sum finds
 * it. Times of other models scale linearly. */
CS_MUST_CHECK cs_status cs_scenario_price(const cs_sections *sections, const cs_loaded *loaded,
                                          const cs_parallel *parallel, const cs_samples *samples,
                                          cs_arena *arena, cs_model *model, cs_costs_use *use,
                                          cs_error *error);

/* Fills `paradl` of an otherwise complete scenario if a row of table 3 applies (paradl.h). */
CS_MUST_CHECK cs_status cs_scenario_paradl(const cs_sections *sections, const cs_loaded *loaded,
                                           cs_scenario *made, cs_error *error);

/* Finds the number of devices without the section "parallel": `given`, or as many as the schedule
 * needs for the model's layers (model zeroed: their number is open). */
CS_MUST_CHECK cs_status cs_scenario_devices(const cs_sections *sections, uint32_t given,
                                            const cs_model *model, uint32_t *n, cs_error *error);

/* Replaces the capacities of a shared platform by this scenario's own, which live in the arena. */
CS_MUST_CHECK cs_status cs_scenario_take_capacities(const cs_sections *sections, cs_arena *arena,
                                                    cs_platform *platform, cs_error *error);

CS_MUST_CHECK cs_status cs_scenario_platform(const cs_sections *sections, uint32_t n_devices,
                                             cs_platform *platform, cs_error *error);

/* How a mini-batch is split into replicas and micro-batches. */
typedef struct cs_batch {
    uint32_t samples;                      /* samples per mini-batch */
    uint32_t micro_batches, micro_samples; /* per replica */
} cs_batch;

/* Samples per mini-batch on one replica. */
static inline uint32_t cs_batch_share(const cs_batch *batch)
{
    return batch->micro_batches * batch->micro_samples;
}

/* Propose the divisors of `of`, or its multiples, that are nearest to n (cs_error_propose). */
void cs_propose_divisors(const char *pointer, uint64_t n, uint64_t of, cs_error *error);
void cs_propose_multiples(const char *pointer, uint64_t n, uint64_t of, cs_error *error);

CS_MUST_CHECK cs_status cs_scenario_batch(const cs_sections *sections, const cs_model *model,
                                          const cs_mesh *mesh, cs_batch *batch, cs_error *error);

/* Makes the job that planners see, before there is a plan: `plan`, `pattern`, `stages` and `whole`
 * are NULL, `own_links` is false. The model must outlive the job. */
CS_MUST_CHECK cs_status cs_scenario_unplanned_job(const cs_sections *sections,
                                                  const cs_model *model,
                                                  const cs_platform *platform,
                                                  const cs_parallel *parallel,
                                                  const cs_batch *batch, cs_arena *arena,
                                                  cs_job *job, cs_error *error);

/* Resolves the section "offload"; leaves `offload` unchanged without it. CS_INVALID if the scenario
 * is incompatible with offloading, or the bandwidth to the host is unknown. */
CS_MUST_CHECK cs_status cs_scenario_offload(const cs_sections *sections, const cs_model *model,
                                            const cs_parallel *parallel, cs_offload *offload,
                                            cs_error *error);

/* Checks a planned job. CS_INVALID if a stage has something to offload but no more such layers than
 * are to be offloaded, or if no stage has two such layers. */
CS_MUST_CHECK cs_status cs_scenario_check_offload(const cs_sections *sections, const cs_job *job,
                                                  cs_error *error);

/* Lists the samples per device for every way of sharing a micro-batch among replicas, for
 * planners. */
CS_MUST_CHECK cs_status cs_scenario_shares(const cs_job *job, cs_arena *arena, cs_samples *samples,
                                           cs_error *error);

/* Lists the sample counts that planning needs, in addition to a micro-batch's. */
CS_MUST_CHECK cs_status cs_scenario_plan_samples(const cs_sections *sections, const cs_job *job,
                                                 const cs_batch *batch, cs_arena *arena,
                                                 cs_samples *samples, cs_error *error);

/* A plan, with its pattern and the search that found them, if any. */
typedef struct cs_scenario_planned {
    cs_plan plan;
    cs_pattern pattern; /* period 0: none */
    cs_search search;
} cs_scenario_planned;

void cs_scenario_planned_finish(cs_scenario_planned *planned);

/* Planners report to `progress` (may be NULL). */
CS_MUST_CHECK cs_status cs_scenario_plan(const cs_sections *sections, const cs_job *unplanned,
                                         const cs_mesh *mesh, const cs_batch *batch,
                                         const cs_progress *progress, cs_arena *arena,
                                         cs_scenario_planned *planned, cs_error *error);

/* Makes the plan with the planner that the partition names. */
CS_MUST_CHECK cs_status cs_scenario_plan_by_planner(const cs_sections *sections,
                                                    const cs_job *unplanned,
                                                    const cs_progress *progress,
                                                    cs_scenario_planned *planned, cs_error *error);

/* Finds a pattern, by an integer program, for a plan that puts several stages on a device and has
 * none yet. CS_LIMIT, naming the device and the bytes, if none fits. */
CS_MUST_CHECK cs_status cs_scenario_find_pattern(const cs_sections *sections,
                                                 const cs_job *unplanned, cs_arena *arena,
                                                 const cs_plan *plan, cs_pattern *pattern,
                                                 cs_error *error);

/* Finds the speed of each stage: the speed of its slowest device. */
CS_MUST_CHECK cs_status cs_scenario_stage_speeds(const cs_mesh *mesh, const cs_job *job,
                                                 cs_arena *arena, double **out, cs_error *error);

/* For schedules that place their stages: cs_scenario_check_placed checks that they fit the devices
 * and layers. cs_scenario_place sets the devices of a plan's stages; of a plan from a file
 * (`given`) it checks them instead. */
CS_MUST_CHECK cs_status cs_scenario_check_placed(const cs_sections *sections, const cs_job *job,
                                                 const cs_mesh *mesh, cs_error *error);
CS_MUST_CHECK cs_status cs_scenario_place(const cs_mesh *mesh, bool given,
                                          const cs_json_place *place, cs_plan *plan,
                                          cs_error *error);

/* Lists the samples that each stage's devices compute at once. CS_INVALID if a micro-batch cannot
 * be shared equally. */
CS_MUST_CHECK cs_status cs_scenario_stage_samples(const cs_sections *sections,
                                                  const cs_job *unplanned, const cs_plan *plan,
                                                  cs_arena *arena, cs_samples *samples,
                                                  cs_error *error);

/* Which devices are simulated on behalf of others. */
typedef struct cs_folded {
    const uint32_t *stands_for; /* see cs_job */
    const char *reason;         /* difference between devices: why each is simulated although
                                 * folding was wanted; or, with stands_for, the difference that
                                 * folding ignores */
    const char *difference;     /* see cs_scenario */
    bool foregone;              /* devices are identical, but too few for "auto" to fold */
} cs_folded;

/* Folds the devices of a mesh, or, without one (`parallel` NULL), the devices of a schedule whose
 * devices each hold the whole model. `difference` is the known result for the same mesh, or NULL.
 * CS_INVALID if the scenario demands folding of devices that differ; the message names the
 * difference. */
CS_MUST_CHECK cs_status cs_scenario_fold(const cs_sections *sections, const cs_parallel *parallel,
                                         const cs_platform *platform, const cs_plan *plan,
                                         const char *difference, cs_arena *arena, cs_folded *folded,
                                         cs_error *error);

/* Sums, per device of a planned job, the memory that the section "memory" adds to the model:
 * library workspaces and buffers shared by layers (kept.h). Leaves *out unchanged if there is
 * none. */
CS_MUST_CHECK cs_status cs_scenario_libraries(const cs_sections *sections, const cs_job *job,
                                              cs_arena *arena, const int64_t **out,
                                              cs_error *error);

/* Completes the job with a plan and a pattern (may be NULL), which must outlive it. The schedule
 * checks the job. */
CS_MUST_CHECK cs_status cs_scenario_job(const cs_sections *sections, const cs_platform *platform,
                                        const cs_batch *batch, const cs_job *unplanned,
                                        const cs_plan *plan, const cs_pattern *pattern,
                                        const uint32_t *stands_for, cs_arena *arena, cs_job *job,
                                        cs_error *error);

/* Warns if axes that split layers cross nodes although another order of axes would keep them
 * inside. */
void cs_scenario_warn_of_order(const cs_sections *sections, const cs_parallel *parallel,
                               const cs_platform *platform, cs_error *warnings);

/* Warns of a plan that the scenario's runtime cannot run. */
void cs_scenario_warn_of_runtime(const cs_sections *sections, const cJSON *root,
                                 cs_scenario *scenario, cs_error *warnings);

/* Warns of keys in the scenario that have no effect unless another key is set. */
void cs_scenario_warn_of_ignored_keys(const cs_sections *sections, const cs_origins *origins);

/* Warns of operators that are recomputed without saving memory. Builds the model's chain several
 * times. */
void cs_scenario_warn_of_recompute(const cs_sections *sections, const cs_scenario *scenario,
                                   cs_error *warnings);

/* Adds all other warnings. */
void cs_scenario_warn(const cs_sections *sections, const cs_scenario *scenario, cs_error *warnings);

/* Returns the scenario with all defaults written out; NULL if memory runs out, or with a
 * message. */
char *cs_scenario_resolved(const cs_sections *sections, const cs_scenario *scenario,
                           const cs_costs *costs, cs_error *error);

/* Adds to the origins of runtime settings what was measured, and the device whose estimates are
 * used for the rest. Does nothing without a runtime. */
CS_MUST_CHECK cs_status cs_origins_add_measured(const cs_sections *sections, const cs_costs *costs,
                                                const cs_costs_use *use, cs_arena *arena,
                                                cs_origins *origins, cs_error *error);

#endif

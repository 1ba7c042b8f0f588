/* Input for planners, taken from a scenario, and the reading of planners' names and parameters. */
#ifndef CS_SCENARIO_PLANNING_H
#define CS_SCENARIO_PLANNING_H

#include "schedules/plan/chain-fields.h"
#include "schedules/plan/planner.h"
#include "sim/run/scenario/scenario.h"

/* Reads a scenario like cs_scenario_read, but without a plan and everything that depends on it:
 * `plan` and job.stages are empty, `resolved` is NULL. Does not check whether the partition suits
 * the schedule. */
CS_MUST_CHECK cs_status cs_scenario_read_unplanned(const cJSON *root, const char *path,
                                                   cs_scenario *scenario, cs_error *error);

/* Builds the chain of layers that planners partition: one micro-batch on the job's devices. The job
 * needs no plan. CS_INVALID, naming /platform/speed, if the devices differ in speed. `root` is the
 * place of the scenario's file. */
CS_MUST_CHECK cs_status cs_scenario_chain(const cs_job *job, const cs_json_place *root,
                                          const cs_chain_rules *rules, cs_chain *chain,
                                          cs_error *error);

/* Returns the rules of the scenario's schedule if it has any, else the defaults. */
cs_chain_rules cs_scenario_chain_rules(const cs_scenario *scenario);

/* Reads a planner's parameters from `object` into `params`, which live in the arena. Given rules
 * override `rules`; if `rules` is NULL, no rules may be given. With `named`, the object also has
 * the key "planner". */
CS_MUST_CHECK cs_status cs_planner_read_params(const cs_planner *planner, const cJSON *object,
                                               const cs_json_place *place, bool named,
                                               cs_arena *arena, cs_chain_rules *rules,
                                               void **params, cs_error *error);

/* Reports an unknown planner and suggests similar names. Returns CS_INVALID. */
cs_status cs_planner_unknown(const char *name, const cs_json_place *place, cs_error *error);

#endif

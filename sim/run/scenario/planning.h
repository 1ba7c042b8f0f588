/* What planners are given by a scenario, and the names of planners in it. */
#ifndef CS_SCENARIO_PLANNING_H
#define CS_SCENARIO_PLANNING_H

#include "schedules/plan/chain-fields.h"
#include "schedules/plan/planner.h"
#include "sim/run/scenario/scenario.h"

/* Reads a scenario as cs_scenario_read does, but makes no plan, and what depends on it: `plan` and
 * job.stages are empty, and there is no `resolved`. What the schedule asks of the partition is not
 * looked at. */
CS_MUST_CHECK cs_status cs_scenario_read_unplanned(const cJSON *root, const char *path,
                                                   cs_scenario *scenario, cs_error *error);

/* The chain of the layers of a job's model for one micro-batch on its devices; a plan it need not
 * have. CS_INVALID, naming /platform/speed, when the devices are not equally fast. `root` stands
 * for the scenario's file. */
CS_MUST_CHECK cs_status cs_scenario_chain(const cs_job *job, const cs_json_place *root,
                                          const cs_chain_rules *rules, cs_chain *chain,
                                          cs_error *error);

/* The rules of the scenario's schedule where it has its own, else the defaults. */
cs_chain_rules cs_scenario_chain_rules(const cs_scenario *scenario);

/* What a planner is asked. `object` holds its parameters, `params` in the arena, those of the rules
 * that are given, which change `rules`, and "planner" if `named`. With `rules` NULL none may be
 * given. */
CS_MUST_CHECK cs_status cs_planner_read_params(const cs_planner *planner, const cJSON *object,
                                               const cs_json_place *place, bool named,
                                               cs_arena *arena, cs_chain_rules *rules,
                                               void **params, cs_error *error);

/* CS_INVALID: the planner is unknown; did you mean ...? */
cs_status cs_planner_unknown(const char *name, const cs_json_place *place, cs_error *error);

#endif

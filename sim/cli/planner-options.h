/* The options --planner and --param of `sim plan`: planners to compare, and their parameters. */
#ifndef CS_CLI_PLANNER_OPTIONS_H
#define CS_CLI_PLANNER_OPTIONS_H

#include "sim/cli/command.h"
#include "sim/run/compare-planners.h"

typedef struct cs_planner_options {
    cs_planner_choice *choices; /* each planner once, in the order of the command line */
    uint32_t n;
    cs_arena arena; /* owns the choices, but not their parameters */
} cs_planner_options;

/* Accepts zeroed options. */
void cs_planner_options_finish(cs_planner_options *options);

/* Reads the options. CS_USAGE: an unknown planner, or a parameter that no chosen planner has. */
CS_MUST_CHECK cs_status cs_planner_options_read(const cs_arguments *arguments,
                                                cs_planner_options *options, cs_error *error);

#endif

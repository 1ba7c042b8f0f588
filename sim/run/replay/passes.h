/* The passes of a graph whose stages are held by the places of a grid: which tasks are a forward, a
 * backward, an update, and which step of its program each task is.
 *
 * The generator adds the tasks of a pass together: step after step, and of each step one task per
 * place. Here they are found again, by the programs that schedules/program.h makes, and compared
 * with those step by step.
 */
#ifndef CS_REPLAY_PASSES_H
#define CS_REPLAY_PASSES_H

#include "schedules/program.h"

typedef struct cs_replay_pass {
    uint32_t stage, item;
    uint32_t first_task; /* task i of step k is first_task + k * places + i */
    uint32_t program;
    cs_program_pass of;
} cs_replay_pass;

typedef struct cs_replay_passes {
    uint32_t n_places;
    uint32_t n, cap;
    cs_replay_pass *all; /* in order of their tasks */
    uint32_t *pass_of;   /* per task: its pass, or CS_NONE of a message */
    cs_program *programs;
    uint32_t n_programs, cap_programs;
    cs_program_pass *program_passes; /* that the programs were made for, with their stages */
    uint32_t *program_stages;
    uint32_t cap_passes, cap_stages;
} cs_replay_passes;

/* Zeroed ones can be finished. `job` is that of the graph, unfolded. CS_FAILED
 * when the tasks are not those of the programs. */
CS_MUST_CHECK cs_status cs_replay_passes_find(const cs_job *job, const cs_graph *graph,
                                              cs_replay_passes *passes, cs_error *error);
void cs_replay_passes_finish(cs_replay_passes *passes);

const cs_program *cs_replay_program(const cs_replay_passes *passes, uint32_t pass);

/* The task of a step on a device of the pass's stage. */
uint32_t cs_replay_step_task(const cs_replay_passes *passes, const cs_graph *graph, uint32_t pass,
                             uint32_t step, uint32_t device);

/* The last step of a program that computes; it has one. */
uint32_t cs_replay_last_computation(const cs_program *program);

#endif

/* Who started this process: mpirun and its kin tell by variables of the environment. */
#ifndef CS_TEAM_LAUNCH_H
#define CS_TEAM_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cs_launch {
    uint32_t size;        /* processes that were started together; 1: only this one */
    uint32_t rank;        /* of this one, from 0 */
    uint32_t on_machine;  /* how many of them are on this machine; 1 where that is not told */
    const char *variable; /* that told the size; NULL: nothing did */
} cs_launch;

cs_launch cs_launch_find(void);

/* Threads for this process, so that those of all processes on a machine have a processor each. */
uint32_t cs_launch_processors(void);

#endif

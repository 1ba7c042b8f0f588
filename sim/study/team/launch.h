/* How this process was started: mpirun and similar launchers set environment variables. */
#ifndef CS_TEAM_LAUNCH_H
#define CS_TEAM_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cs_launch {
    uint32_t size;        /* number of processes started together; 1: only this one */
    uint32_t rank;        /* rank of this process, from 0 */
    uint32_t on_machine;  /* number of them on this machine; 1 if unknown */
    const char *variable; /* variable that states the size; NULL: none */
} cs_launch;

cs_launch cs_launch_find(void);

/* Number of threads for this process, so that each thread of all processes on the machine has a
 * processor. */
uint32_t cs_launch_processors(void);

#endif

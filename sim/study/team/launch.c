#define _GNU_SOURCE /* sched_getaffinity */

#include "sim/study/team/launch.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* The first that is set counts: mpirun within a job of Slurm sets its own. */
static const struct launcher {
    const char *size, *rank, *on_machine;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL},
};

static uint32_t number_of(const char *variable, uint32_t otherwise)
{
    const char *text = variable ? getenv(variable) : NULL;
    char *end;
    const long value = text ? strtol(text, &end, 10) : -1;
    return value >= 0 && value < INT32_MAX && end != text ? (uint32_t)value : otherwise;
}

cs_launch cs_launch_find(void)
{
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
        if (getenv(launchers[i].size))
            return (cs_launch){.size = number_of(launchers[i].size, 1),
                               .rank = number_of(launchers[i].rank, 0),
                               .on_machine = number_of(launchers[i].on_machine, 1),
                               .variable = launchers[i].size};
    return (cs_launch){.size = 1, .on_machine = 1};
}

uint32_t cs_launch_processors(void)
{
    const cs_launch launch = cs_launch_find();
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t mine = online > 0 ? (uint32_t)online : 1;
    cpu_set_t allowed;
    if (launch.size <= 1)
        return mine;
    mine /= launch.on_machine > 0 ? launch.on_machine : 1;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0 &&
        (uint32_t)CPU_COUNT(&allowed) < mine)
        mine = (uint32_t)CPU_COUNT(&allowed);
    return mine > 0 ? mine : 1;
}

/* Messages between the processes of a team: what the module libsim-mpi has for team.c.
 *
 * The module is linked with MPI and loaded only by processes that mpirun started: the library and
 * those that it needs take a program longer to load than `sim` takes to start. It uses nothing of
 * `sim`. All functions are called by one thread. Those that can fail return false, with a text in
 * `why`.
 */
#ifndef CS_TEAM_TRANSPORT_H
#define CS_TEAM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CS_TRANSPORT_WHY_BYTES = 1024 };

typedef struct cs_transport {
    bool (*open)(uint32_t *rank, uint32_t *size, char *why);
    /* Copies the message and returns at once; messages from one process to another keep their
     * order. */
    bool (*post)(uint32_t to, const void *data, size_t bytes, char *why);
    /* A message that has arrived, for the caller to free; *data is NULL when there is none. */
    bool (*receive)(uint32_t *from, void **data, size_t *bytes, char *why);
    /* How many of the posted messages are still under way. */
    bool (*under_way)(uint32_t *n, char *why);
    /* Waits until all processes call it. */
    void (*close)(void);
} cs_transport;

/* The module's only symbol. */
#define CS_TRANSPORT_SYMBOL "cs_transport_of_mpi"

#endif

/* Messages between the processes of a team: the interface that the module libsim-mpi offers to
 * team.c.
 *
 * The module is linked with MPI and loaded only by processes that mpirun started, because loading
 * the MPI libraries takes longer than starting `sim`. It uses nothing of `sim`. All functions are
 * called by one thread; those that can fail return false, with a text in `why`.
 */
#ifndef CS_TEAM_TRANSPORT_H
#define CS_TEAM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CS_TRANSPORT_WHY_BYTES = 1024 };

typedef struct cs_transport {
    bool (*open)(uint32_t *rank, uint32_t *size, char *why);
    /* Copies the message and returns at once. Messages between two processes keep their order. */
    bool (*post)(uint32_t to, const void *data, size_t bytes, char *why);
    /* Returns a message that has arrived, for the caller to free; *data is NULL if there is
     * none. */
    bool (*receive)(uint32_t *from, void **data, size_t *bytes, char *why);
    /* Counts posted messages that are still in flight. */
    bool (*in_flight)(uint32_t *n, char *why);
    /* Waits until all processes call it. */
    void (*close)(void);
} cs_transport;

/* the only symbol of the module */
#define CS_TRANSPORT_SYMBOL "cs_transport_of_mpi"

#endif

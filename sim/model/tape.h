/* The tensors of a layer's forward and backward, in the order in which they come and go.
 *
 * Memory is identified by number: a storage of the network, other memory that an operator keeps, a
 * gradient, or a workspace. The numbers are the same in all layers, so the tapes of a run of layers
 * can be played one after another, and a layer reads what an earlier layer wrote.
 *
 * What a player does:
 *   CS_TAPE_TAKE  allocates the bytes, unless memory with that number exists already
 *   CS_TAPE_READ  the same, for memory that the layer reads if the layer before is on another
 *                 device
 *   CS_TAPE_KEEP  one more operator keeps the memory for its backward
 *   CS_TAPE_GIVE  forward: frees the memory unless it is kept; backward: if it is kept, one
 *                 operator fewer keeps it; frees it when no operator does
 * A player ignores memory that it does not own. At the end of a forward it frees memory that is not
 * kept, once it has been handed on; at the end of a backward it frees everything that is left of
 * the micro-batch.
 *
 * An operator takes its result, other memory that it keeps, and its workspace while it runs. Then
 * the tensors that it was the last to read are freed (PyTorch frees a tensor with its last
 * reference). Each operator is one kernel. Gradients are as in backward-memory.h.
 */
#ifndef CS_WORKLOAD_TAPE_H
#define CS_WORKLOAD_TAPE_H

#include "sim/base/arena.h"
#include "sim/base/error.h"

#include <stdint.h>

typedef enum cs_tape_what {
    CS_TAPE_TAKE,
    CS_TAPE_READ,
    CS_TAPE_KEEP,
    CS_TAPE_GIVE,
} cs_tape_what;

typedef struct cs_tape_event {
    uint32_t memory;
    uint8_t what; /* cs_tape_what */
    bool leaves;  /* TAKE: whether later layers read it */
    bool skipped; /* TAKE: left out when the forward is recomputed */
    bool sent;    /* GIVE: by an exchange, whose stream has used the memory */
    int64_t bytes;
} cs_tape_event;

typedef struct cs_tape {
    uint32_t n, capacity;
    cs_tape_event *events;
} cs_tape;

#endif

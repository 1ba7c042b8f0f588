/* The tensors of a layer's forward and backward one by one, in the order in which they come and go.
 *
 * Memory is told apart by number: a storage of the network, what an operator keeps besides, a
 * gradient, a workspace. The numbers are the same in all layers, so that a run of layers plays
 * their tapes one after the other, and what one layer writes the next one reads.
 *
 * What a player does:
 *   CS_TAPE_TAKE  allocates the bytes, unless there is memory of that number already
 *   CS_TAPE_READ  the same: what the layer reads, where the layer before it is on another device
 *   CS_TAPE_KEEP  one more operator keeps it for its backward
 *   CS_TAPE_GIVE  forward: it is freed, unless it is kept; backward: if it is kept, one operator
 *                 less keeps it, and without any it is freed
 * of what it has; memory that it has not it leaves to others. At the end of a forward it frees what
 * is not kept, once it is handed on, and at the end of a backward all that is left of the
 * micro-batch.
 *
 * An operator takes its result and what it keeps besides, and its workspace for as long as it runs;
 * what it was the last to read is then freed (PyTorch frees a tensor with its last reference). Each
 * operator is a kernel by itself. Gradients are as backward-memory.h has them.
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

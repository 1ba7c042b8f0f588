/* How much memory the gradients of activations take while a network's backward runs.
 *
 * The backward of an operator reads the gradient of its result and makes those of its inputs. A
 * gradient is there from then until the operator whose result it belongs to has run its own
 * backward: so that of a block's input waits, in a residual network, while the backward of the
 * branch runs.
 *   - Where a tensor has several readers, the gradient of each but the first that arrives is made
 *     aside, and takes the place of the sum with what was there.
 *   - An addition hands its gradient on: its inputs share the memory until one of them is added to.
 *   - A view shares the memory of what it is of. An operator in place does not: frameworks give its
 *     gradients memory of their own.
 *   - An exchange that leaves the size as it is hands its gradient on as an addition does: it sums
 *     in place. Others make the gradient of what they read besides.
 *   - The gradient of the weights comes before that of the inputs; what is made of it aside is part
 *     of the operator's workspace.
 *   - Where gradients of weights are computed later, beside the sum of a gradient over several
 *     devices (net-local.h), the gradients of results that they are made of are there until then.
 *   - The gradient of logits that a fused loss keeps takes their memory, which is counted there.
 */
#ifndef CS_WORKLOAD_BACKWARD_MEMORY_H
#define CS_WORKLOAD_BACKWARD_MEMORY_H

#include "sim/model/kept.h"
#include "sim/model/tape.h"

/* A backward: of a network, for so many samples. */
typedef struct cs_backward {
    const cs_net *net;
    uint32_t batch;
    cs_precision precision;
    const cs_kept_rules *rules;
    const uint32_t *weights_at; /* per operator, see cs_net_local_weights_at; NULL: itself */
    int64_t *workspaces;        /* per operator: bytes while its backward runs */
    const int64_t
        *steps; /* per operator, or NULL: bytes of what it makes one after the other before
                           * the gradient of its input: a first tensor, which goes when the next is
                           * made, and, where the gradient is narrower, a second one, of which that
                           * is cast (kept.h, cs_kept_loss_step); 0: nothing */
} cs_backward;

/* Adds to the workspaces the gradients of weights that are made aside (kept.h); of those at one
 * operator there is one at a time. CS_NO_MEMORY, and CS_OVERFLOW beyond 64 bits. */
CS_MUST_CHECK cs_status cs_backward_add_weights(const cs_backward *backward, cs_error *error);

/* Fills `peaks`, per operator: the most bytes of gradients, and of the operator's own workspace, at
 * any moment of its backward. CS_NO_MEMORY, and CS_OVERFLOW beyond 64 bits. */
CS_MUST_CHECK cs_status cs_backward_memory(const cs_backward *backward, int64_t *peaks,
                                           cs_error *error);

/* Who looks on while the backward runs. `see` gets what comes and goes, numbered from 0 on; `end`
 * is called behind each operator, in the order of the backward. Both return false to stop it. */
typedef struct cs_backward_observer {
    bool (*see)(void *context, cs_tape_what what, uint32_t memory, int64_t bytes);
    bool (*begin)(void *context, uint32_t op);
    bool (*end)(void *context, uint32_t op);
    void *context;
} cs_backward_observer;

/* The same for an observer, who must not stop it but for want of memory: CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_backward_memory_watch(const cs_backward *backward,
                                                 const cs_backward_observer *observer,
                                                 cs_error *error);

#endif

/* Memory that the gradients of activations take while a network's backward runs.
 *
 * The backward of an operator reads the gradient of its result and makes the gradients of its
 * inputs. A gradient is allocated from then until the operator that wrote the tensor has run its
 * own backward. In a residual network, for example, the gradient of a block's input stays allocated
 * while the backward of the branch runs.
 *   - If a tensor has several readers, the gradient that arrives first is stored. Each later
 *     gradient is made in separate memory, which then holds the sum; the memory of the old sum is
 *     freed.
 *   - An addition passes its gradient on: its inputs share the memory until another gradient is
 *     added to one of them.
 *   - A view shares the memory of its tensor. An in-place operator does not: frameworks allocate
 *     separate memory for its gradients.
 *   - An exchange that keeps the size of its tensor passes its gradient on like an addition,
 *     because it sums in place. Other exchanges need additional memory for the gradient of their
 *     input.
 *   - The gradient of the weights is made before the gradients of the inputs. If it needs separate
 *     memory, that is part of the operator's workspace.
 *   - If weight gradients are deferred, and computed while a gradient is summed over several
 *     devices (net-local.h), the gradients that they are computed from stay allocated until then.
 *   - A fused loss keeps its logits and writes their gradient into the same memory, which is
 *     counted with the logits, not here.
 */
#ifndef CS_WORKLOAD_BACKWARD_MEMORY_H
#define CS_WORKLOAD_BACKWARD_MEMORY_H

#include "sim/model/kept.h"
#include "sim/model/tape.h"

/* Backward of a network for `batch` samples. */
typedef struct cs_backward {
    const cs_net *net;
    uint32_t batch;
    cs_precision precision;
    const cs_kept_rules *rules;
    /* per operator: the operator during whose backward its weight gradients are made
     * (cs_net_local_weights_at); NULL: itself */
    const uint32_t *weights_at;
    int64_t *workspaces; /* per operator: bytes allocated while its backward runs */
    /* per operator: bytes of each temporary that precedes the gradient of its input; 0: none. The
     * first temporary is freed once the next tensor is made. If the gradient is narrower, a second
     * temporary follows, and the gradient is cast from it (kept.h, cs_kept_loss_step). NULL: no
     * operator has temporaries. */
    const int64_t *steps;
} cs_backward;

/* Adds to the workspaces the weight gradients that get separate memory (kept.h). Of the weight
 * gradients made during one operator's backward, only the largest counts, because they are made one
 * at a time. CS_NO_MEMORY, or CS_OVERFLOW beyond 64 bits. */
CS_MUST_CHECK cs_status cs_backward_add_weights(const cs_backward *backward, cs_error *error);

/* Fills `peaks`, per operator: the peak of all gradients and the operator's workspace during its
 * backward, in bytes. CS_NO_MEMORY, or CS_OVERFLOW beyond 64 bits. */
CS_MUST_CHECK cs_status cs_backward_memory(const cs_backward *backward, int64_t *peaks,
                                           cs_error *error);

/* Callbacks while the backward runs. `see` is called for each allocation and each free; memories
 * are numbered from 0. `begin` and `end` are called before and after each operator, in the order of
 * the backward. All three return false to stop. */
typedef struct cs_backward_observer {
    bool (*see)(void *context, cs_tape_what what, uint32_t memory, int64_t bytes);
    bool (*begin)(void *context, uint32_t op);
    bool (*end)(void *context, uint32_t op);
    void *context;
} cs_backward_observer;

/* Runs the same backward for an observer. The observer must only stop it if memory runs out; the
 * result is then CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_backward_memory_watch(const cs_backward *backward,
                                                 const cs_backward_observer *observer,
                                                 cs_error *error);

#endif

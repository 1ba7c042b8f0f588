/* What devices keep of what the stages of a pipeline hand each other, besides what they need of it,
 * as PyTorch's pipelining does (torch/distributed/pipelining). Of plans with a grid.
 *
 * Receive buffers (`receive_buffers` of the job; stage.py, args_recv_info and grad_recv_info): a
 * stage has one for the activation and one for the gradient of each micro-batch of a mini-batch,
 * from the start on. The first layer of a stage then keeps its input there.
 *
 * Results (`stage_results`): what a stage hands on, or what the loss reads, stays
 *   sent      until it is sent
 *   returned  the same, but the gradient that a device handed back last until its next backward
 *             has ended, beyond the mini-batch: a device has room for one from the start on
 *             (megatron/core/pipeline_parallel/schedules.py: input_tensor_grad; as `grad` of the
 *             stage's last input, decoder.input_tensor, it outlives the function). On a device with
 *             one stage the input itself stays as long: output_tensor, which the loop assigns when
 *             the next forward has ended, has the graph of the micro-batch before, whose nodes hold
 *             it (torch/csrc/autograd/functions/accumulate_grad.h: variable). Where a device has
 *             several stages, these inputs are those of micro-batches under way
 *   backward  until the stage's backward of the micro-batch has ended (stage.py, fwd_cache); what
 *             the loss reads does so if the loss keeps it
 *   last      the same, but what the loss reads until the mini-batch is updated (stage.py,
 *             output_chunks of the last stage; schedules.py, step: return_outputs)
 *   all       of all stages until the mini-batch is updated, and the gradients that they hand back
 *             as well (PyTorch before 2.8: output_chunks of each stage, `grad` of its inputs)
 *
 * What stages on one device hand each other is in none of these.
 */
#ifndef CS_SCHEDULES_STAGE_BUFFERS_H
#define CS_SCHEDULES_STAGE_BUFFERS_H

#include "schedules/program.h"

/* Whether messages go between a stage and the one behind it. */
bool cs_stage_sends(const cs_plan *plan, uint32_t stage);

/* Whether a stage has receive buffers for what the one before it makes, and the one before it for
 * gradients of that. */
bool cs_stage_receives(const cs_job *job, uint32_t stage);

/* What the loss reads of a micro-batch; bytes 0: it does not stay. */
typedef struct cs_stage_result {
    int64_t bytes;
    bool kept;       /* from forward to backward it is part of what the last layer keeps */
    uint32_t memory; /* its number in tapes; CS_NONE: there is none */
} cs_stage_result;

cs_stage_result cs_stage_result_of(const cs_job *job, uint32_t stage);

/* Of what layers keep of a micro-batch, what is in the receive buffer of their stage.
 * CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_stage_kept_input(const cs_job *job, uint32_t stage, int64_t *bytes,
                                            cs_error *error);

/* Bytes of results that a pass adds at its end to what stays on a device of the stage, or frees
 * (< 0). */
int64_t cs_stage_pass_results(const cs_job *job, uint32_t stage, cs_kind kind);

#endif

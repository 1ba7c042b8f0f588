/* Messages between pipeline stages that stay in memory longer than needed, as in PyTorch's
 * pipelining (torch/distributed/pipelining). For plans with a grid.
 *
 * Receive buffers (`receive_buffers` of the job; stage.py, args_recv_info and grad_recv_info): a
 * stage has one buffer for the activation and one for the gradient of each micro-batch of a
 * mini-batch, throughout. The first layer of a stage keeps its input there.
 *
 * Results (`stage_results`): how long the output of a stage, or the input of the loss, stays
 *   sent      until it is sent
 *   returned  the same, but the gradient that a device returned last stays until its next backward
 *             has ended, beyond the mini-batch: a device has room for one throughout
 *             (megatron/core/pipeline_parallel/schedules.py: input_tensor_grad; as `grad` of the
 *             stage's last input, decoder.input_tensor, it outlives the function). On a device with
 *             one stage the input itself stays as long: output_tensor, which the loop assigns after
 *             the next forward, holds the previous micro-batch's graph, whose nodes hold the input
 *             (torch/csrc/autograd/functions/accumulate_grad.h: variable). If a device has several
 *             stages, these inputs belong to micro-batches in flight
 *   backward  until the stage's backward of the micro-batch has ended (stage.py, fwd_cache); the
 *             input of the loss too, if the loss keeps it
 *   last      the same, but the input of the loss stays until the mini-batch's update (stage.py,
 *             output_chunks of the last stage; schedules.py, step: return_outputs)
 *   all       on all stages until the mini-batch's update, and so do returned gradients (PyTorch
 *             before 2.8: output_chunks of each stage, `grad` of its inputs)
 *
 * None of this applies between stages on one device.
 */
#ifndef CS_SCHEDULES_STAGE_BUFFERS_H
#define CS_SCHEDULES_STAGE_BUFFERS_H

#include "schedules/program.h"

/* Whether messages go between a stage and the next one. */
bool cs_stage_sends(const cs_plan *plan, uint32_t stage);

/* Whether a stage has receive buffers for activations, and the previous stage for gradients. */
bool cs_stage_receives(const cs_job *job, uint32_t stage);

/* Result that the loss reads, per micro-batch; bytes 0: it does not stay. */
typedef struct cs_stage_result {
    int64_t bytes;
    /* whether it is part of the last layer's saved activations from forward to backward */
    bool kept;
    uint32_t memory; /* number of the result in tapes, or CS_NONE */
} cs_stage_result;

cs_stage_result cs_stage_result_of(const cs_job *job, uint32_t stage);

/* Finds the bytes of a micro-batch's saved activations that are in the receive buffer of their
 * stage. CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_stage_kept_input(const cs_job *job, uint32_t stage, int64_t *bytes,
                                            cs_error *error);

/* Returns the bytes of results that stay on a device of the stage after a pass; < 0: bytes
 * freed. */
int64_t cs_stage_pass_results(const cs_job *job, uint32_t stage, cs_kind kind);

#endif

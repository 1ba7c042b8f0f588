/* Optimizer states that the first update allocates, tensor by tensor, in memory that passes have
 * freed. PyTorch's optimizers allocate momenta then; fp32 copies of weights exist before
 * (torch/optim/adam.py, _init_group; Megatron-LM, megatron/core/optimizer/optimizer.py). Internal
 * to sim/run.
 *
 * A state is as large as its weights. If states are sharded over n devices (zero 1 and 2), the
 * weights of a stage are concatenated, last layer first, and device k holds the k-th of n equal
 * parts: whole tensors except at its ends (Megatron-LM,
 * megatron/core/optimizer/distrib_optimizer.py). Weights of experts are sharded likewise, over the
 * devices with the same experts. With zero 3 each tensor is sharded. */
#ifndef CS_RUN_RESIDENT_TENSORS_H
#define CS_RUN_RESIDENT_TENSORS_H

#include "sim/run/scenario/scenario.h"

/* Receives a tensor's bytes; a status other than CS_OK ends the calls. */
typedef cs_status cs_added_tensor(void *context, int64_t bytes, cs_error *error);

/* Calls `add` for each tensor of a stage's optimizer states on a device, `bytes` in total: with
 * `late`, states that the first update allocates; else copies of weights. *added gets the bytes of
 * these tensors, 0 if the sizes of a layer's weights are not known individually, or if there are no
 * such states. */
CS_MUST_CHECK cs_status cs_optimizer_tensors(const cs_scenario *scenario, uint32_t stage,
                                             uint32_t device, bool late, int64_t bytes,
                                             int64_t *added, cs_added_tensor *add, void *context,
                                             cs_error *error);

/* Calls `add` for each weight tensor of a stage on a device. */
CS_MUST_CHECK cs_status cs_weight_tensors(const cs_scenario *scenario, uint32_t stage,
                                          cs_added_tensor *add, void *context, cs_error *error);

#endif

/* Optimizer states that the first update allocates, tensor by tensor, in the memory that passes
 * have left: PyTorch's optimizers make momenta then, and copies of weights in float32 before
 * (torch/optim/adam.py, _init_group; Megatron-LM, megatron/core/optimizer/optimizer.py). Internal
 * to sim/run.
 *
 * A state is as large as the weights that it is of. Where states are divided over n devices (zero 1
 * and 2) the weights of a stage lie one behind the other, its last layer's first, and device k has
 * the k-th of n equal parts: whole tensors but for those at its ends (Megatron-LM,
 * megatron/core/optimizer/distrib_optimizer.py); experts likewise, over the devices with the same.
 * With zero 3 each tensor is divided.
 */
#ifndef CS_RUN_RESIDENT_TENSORS_H
#define CS_RUN_RESIDENT_TENSORS_H

#include "sim/run/scenario/scenario.h"

/* Gets a tensor's bytes; its status ends the calls. */
typedef cs_status cs_added_tensor(void *context, int64_t bytes, cs_error *error);

/* Calls `add` for each tensor of optimizer states of a stage on a device, of which all have
 * `bytes`: the late ones, or copies of weights. *added: the bytes of these; none where the layers'
 * weights are not known one by one, or there are no such states. */
CS_MUST_CHECK cs_status cs_optimizer_tensors(const cs_scenario *scenario, uint32_t stage,
                                             uint32_t device, bool late, int64_t bytes,
                                             int64_t *added, cs_added_tensor *add, void *context,
                                             cs_error *error);

/* Calls `add` for each tensor of weights of a stage on a device. */
CS_MUST_CHECK cs_status cs_weight_tensors(const cs_scenario *scenario, uint32_t stage,
                                          cs_added_tensor *add, void *context, cs_error *error);

#endif

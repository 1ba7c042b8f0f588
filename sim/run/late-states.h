/* Optimizer states that the first update allocates, tensor by tensor, in the memory that passes
 * have left: PyTorch's optimizers make momenta then, and copies of weights in float32 before
 * (torch/optim/adam.py, _init_group; Megatron-LM, megatron/core/optimizer/optimizer.py). Internal
 * to sim/run.
 *
 * A state is as large as the weights that it is of. Where states are divided over n devices (zero 1
 * and 2) the weights of a stage lie one behind the other, its last layer's first, and device k has
 * the k-th of n equal parts: whole tensors but for those at its ends (Megatron-LM,
 * megatron/core/optimizer/distrib_optimizer.py). With zero 3 each tensor is divided.
 */
#ifndef CS_RUN_LATE_STATES_H
#define CS_RUN_LATE_STATES_H

#include "sim/scenario/scenario.h"

/* Calls `add` for each of the late states of a stage on a device, of which all optimizer states
 * there have `bytes`. Returns the bytes that were added: none where the layers' weights are not
 * known one by one, or there are no states but copies of weights. The status of `add` ends it. */
CS_MUST_CHECK cs_status cs_late_states(const cs_scenario *scenario, uint32_t stage, uint32_t device,
                                       int64_t bytes, int64_t *added,
                                       cs_status (*add)(void *context, int64_t bytes,
                                                        cs_error *error),
                                       void *context, cs_error *error);

#endif

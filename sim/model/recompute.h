/* Operators that are recomputed: they run their forward again in backward, so that less is kept
 * (Chen et al., 2016, arXiv 1604.06174; by operator: Korthikanti et al., 2022, section 5).
 *
 * Adjacent recomputed operators are a run. Before the backward of its last operator, the run
 * computes once more, including its exchanges, one operator after another. The tensors that it
 * reads are kept. A tensor that it makes is kept if another operator needs it; a tensor that only
 * the run's own backward needs exists from the recomputation until the end of that backward. Some
 * tensors are passed only between runs of one layer, such as a gate's activation that its product
 * reads: each run that needs such a tensor recomputes it, and holds it while it runs backward.
 *
 * Results of some of these operators may be discarded: they are not kept even for operators of the
 * layer that are not recomputed. Their run then computes once more before the backward of the last
 * such operator that needs a result, and its tensors exist from then on. A narrow product that
 * reads a discarded result casts it again (Megatron Core: CheckpointWithoutOutput, megatron/core/
 * tensor_parallel/random.py, around layernorm, moe_act and mla_up_proj; PyTorch's selective
 * checkpointing, torch/utils/checkpoint.py, create_selective_checkpoint_contexts).
 */
#ifndef CS_WORKLOAD_RECOMPUTE_H
#define CS_WORKLOAD_RECOMPUTE_H

#include "sim/model/net.h"

/* Whether a name means an operator: it is the operator's name, or one or more adjacent parts of
 * that name between dots: "attention", "mlp", "layers.3", "layers.3.mlp.act". */
bool cs_recompute_means(const char *name, const char *op);

/* Whether a name means any operator of the network. */
bool cs_recompute_means_any(const char *name, const cs_net *net);

/* Fills `runs` per operator: the first operator of its run, + 1, or 0 if it is not recomputed. Runs
 * do not cross layers: `ends` holds one past the last operator of each layer, in rising order.
 * CS_INVALID for a name that means no operator. */
CS_MUST_CHECK cs_status cs_recompute_find(const cs_net *net, const char *const *names, uint32_t n,
                                          const uint32_t *ends, uint32_t *runs, cs_error *error);

/* Fills `discards` per operator: whether its result is discarded. CS_INVALID for a name that means
 * no recomputed operator. */
CS_MUST_CHECK cs_status cs_recompute_discards(const cs_net *net, const char *const *names,
                                              uint32_t n, const uint32_t *runs, bool *discards,
                                              cs_error *error);

#endif

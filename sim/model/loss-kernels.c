#include "sim/model/loss-kernels.h"

const char *const cs_loss_kernel_names[] = {"fused", "stepwise", "jitted",
                                            "eager", "parallel", NULL};

/* Bytes per logit, and number of kernels, both without casts. */
static const struct steps {
    double forward, backward;
    uint32_t kernels, backward_kernels;
    bool cast_apart; /* whether a cast is a separate kernel */
} steps[] = {
    [CS_LOSS_KERNELS_STEPWISE] = {32, 8, 5 + 12, 1 + 6, true},
    [CS_LOSS_KERNELS_JITTED] = {16, 0, 3, 1, false},
    [CS_LOSS_KERNELS_EAGER] = {8, 16, 2, 3, true},
    [CS_LOSS_KERNELS_PARALLEL] = {32, 32, 5 + 8, 4 + 7, true},
};

void cs_loss_kernels_cost(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                          uint32_t batch, cs_precision precision, cs_op_cost *cost)
{
    enum { FLOAT = 4 };
    const double width = cs_precision_bytes(precision);
    const double logits = batch * (double)cs_net_tensor(net, op->inputs[0])->elements;
    if (!kernels->given || kernels->loss == CS_LOSS_KERNELS_FUSED ||
        op->kind != CS_OP_CROSS_ENTROPY)
        return;
    const struct steps *own = &steps[kernels->loss];
    const double cast = width < FLOAT || !own->cast_apart ? width + FLOAT : 0;
    const uint32_t casts = own->cast_apart && cast > 0;
    cost->forward.bytes = logits * (own->forward + cast);
    cost->forward.launches = own->kernels + casts;
    if (cost->backward_input.launches > 0) {
        cost->backward_input.bytes = logits * (own->backward + cast);
        cost->backward_input.launches = own->backward_kernels + casts;
    }
}

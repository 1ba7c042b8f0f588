#include "calib/bench/cuda/cuda-device.h"

#include <stdlib.h>

/* Errors of destroying are ignored. */
void cs_cuda_plan_finish(cs_cuda_plan *plan)
{
    if (plan->in)
        (void)cudnnDestroyTensorDescriptor(plan->in);
    if (plan->out)
        (void)cudnnDestroyTensorDescriptor(plan->out);
    if (plan->parameters)
        (void)cudnnDestroyTensorDescriptor(plan->parameters);
    if (plan->filter)
        (void)cudnnDestroyFilterDescriptor(plan->filter);
    if (plan->conv)
        (void)cudnnDestroyConvolutionDescriptor(plan->conv);
    if (plan->pool)
        (void)cudnnDestroyPoolingDescriptor(plan->pool);
    if (plan->product)
        (void)cublasLtMatmulDescDestroy(plan->product);
    if (plan->a)
        (void)cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->b)
        (void)cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->c)
        (void)cublasLtMatrixLayoutDestroy(plan->c);
    *plan = (cs_cuda_plan){0};
}

static cs_status have_plans(cs_bench *bench, uint32_t n, cs_error *error)
{
    if (n <= bench->n_plans)
        return CS_OK;
    cs_cuda_plan *plans = realloc(bench->plans, n * sizeof(*plans));
    if (!plans)
        return cs_error_no_memory(error);
    for (uint32_t i = bench->n_plans; i < n; i++)
        plans[i] = (cs_cuda_plan){0};
    bench->plans = plans;
    bench->n_plans = n;
    return CS_OK;
}

static bool is_for(const cs_cuda_plan *plan, const cs_kernel *kernel)
{
    const cs_kernel *of = &plan->kernel;
    return plan->made && of->net == kernel->net && of->op == kernel->op &&
           of->batch == kernel->batch && of->precision == kernel->precision;
}

cs_status cs_cuda_plan_find(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                            cs_cuda_plan **plan, cs_error *error)
{
    uint32_t at = (uint32_t)(kernel->op - kernel->net->ops) * CS_N_PASSES + pass;
    CS_TRY(have_plans(bench, kernel->net->n_ops * CS_N_PASSES, error));
    cs_cuda_plan *found = &bench->plans[at];
    if (!is_for(found, kernel)) {
        cs_cuda_plan_finish(found);
        found->kernel = *kernel;
    }
    *plan = found;
    return CS_OK;
}

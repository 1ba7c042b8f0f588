/* Reader of traces from PyTorch's profiler (export_chrome_trace; JSON, optionally in gzip).
 *
 *     with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
 *                  record_shapes=True, with_stack=True) as p:
 *         loss(model(x)).backward(); p.step()
 *     p.export_chrome_trace("trace.json.gz")
 *
 * Layers. A layer is a module; its operators are those that run while it is the innermost module,
 * which with_stack=True records. Without with_stack, every operator that no other operator called
 * is a layer. Layers are ordered by their first operator, one after another: branches are not
 * recognised.
 *
 * Times. A layer's forward time is the time of the kernels that its operators launch, or of the
 * operators themselves if the trace has no kernels at all (a run on the CPU). An operator of the
 * backward pass belongs to the layer whose operator has the same sequence number. If several steps
 * were recorded (ProfilerStep#N), times are means over the steps that compute something; operators
 * outside of these steps are left out. Operators without a sequence number (the optimizer's) are
 * left out too. The backward of a layer with weights is half for the input and half for the
 * weights.
 *
 * Communication is not part of a layer's time, because the simulation adds it. These are left out:
 * kernels of NCCL and similar libraries, copies between GPUs, and everything that an operator of
 * torch.distributed launches, even inside an autograd function or a module. Layers that only
 * communicate are left out as well. The report says how much was left out.
 *
 * Sizes. Shapes (record_shapes=True) give the weights and the bytes that a layer reads. The output
 * of a layer is taken to be the input of the next layer, and its saved activations its own input.
 *
 * Most traces that were recorded for other purposes have no shapes. With `times_only` none are
 * needed: the model has times but no sizes, and is marked so (cs_model.times_only). Then the batch
 * size must be given, and a backward is split in halves if an operator of the layer is known to
 * have parameters. */
#ifndef CS_FOREIGN_TORCH_TRACE_H
#define CS_FOREIGN_TORCH_TRACE_H

#include "sim/model/model.h"

typedef struct cs_torch_options {
    const char *name;     /* name of the model */
    uint32_t batch_size;  /* samples; 0: the first dimension of the first layer's input */
    const char *hardware; /* hardware, for the provenance; NULL: the device that the trace names */
    const char *date;     /* date for the provenance, YYYY-MM-DD */
    bool times_only;      /* whether shapes are neither needed nor read */
} cs_torch_options;

typedef struct cs_torch_report {
    uint32_t n_steps; /* number of steps that compute something */
    /* number of steps that the profiler recorded; 0: a single step without a mark */
    uint32_t n_recorded_steps;
    uint32_t n_operators, n_kernels, n_layers;
    bool modules;         /* whether layers are modules rather than operators */
    uint32_t n_exchanges; /* number of kernels that communicate; on a CPU, of operators */
    double communication; /* microseconds of all exchanges; left out */
    double others; /* microseconds of other kernels that are left out: updates, copies of data */
} cs_torch_report;

/* Read a model from a trace. If shapes, kernels or a backward pass are missing, the error says
 * which option of the profiler to switch on. On failure `model` and `report` are untouched. */
CS_MUST_CHECK cs_status cs_torch_load(const char *path, const cs_torch_options *options,
                                      cs_model *model, cs_torch_report *report, cs_error *error);
CS_MUST_CHECK cs_status cs_torch_parse(const char *file, const char *text, size_t length,
                                       const cs_torch_options *options, cs_model *model,
                                       cs_torch_report *report, cs_error *error);

#endif

/* Reader of the traces that PyTorch's profiler writes (export_chrome_trace; JSON, also in gzip).
 *
 *     with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
 *                  record_shapes=True, with_stack=True) as p:
 *         loss(model(x)).backward(); p.step()
 *     p.export_chrome_trace("trace.json.gz")
 *
 * A layer is a module: its operators are those that run while it is the innermost one, which
 * with_stack=True records. Without it every operator that nothing else called is a layer. A layer's
 * forward time is that of the kernels that its operators launch, and of the operators themselves
 * where the trace has no kernels at all (a run on the CPU). An operator of the backward pass
 * belongs to the layer whose operator has the same sequence number. If several steps were recorded
 * (ProfilerStep#N), times are means over those that compute something; what runs outside of them
 * is left out.
 *
 * Communication is not computing: the simulation adds it. Kernels of NCCL and similar libraries,
 * copies between GPUs, and all that an operator of torch.distributed launches are left out, also
 * beneath an autograd function or within a module; so is what does nothing else. The report says
 * how much that was.
 *
 * Shapes (record_shapes=True) give weights, the bytes that a layer reads, and so what the layer
 * before hands on; what is kept is taken to be what is read. A backward of a layer with weights is
 * half for the input and half for the weights. Operators without a sequence number (the
 * optimizer's) are left out.
 *
 * Most traces that were recorded for another purpose have no shapes. With `times_only` none are
 * wanted: the model has times and no sizes, and says so (cs_model.times_only). The batch has to be
 * given then, and a backward is split in halves where an operator of the layer is known to have
 * parameters.
 *
 * Layers are in the order of their first operator, one after the other:
 * branches are not told apart.
 */
#ifndef CS_FOREIGN_TORCH_TRACE_H
#define CS_FOREIGN_TORCH_TRACE_H

#include "sim/model/model.h"

typedef struct cs_torch_options {
    const char *name;     /* of the model */
    uint32_t batch_size;  /* 0: the first dimension of what the first layer reads */
    const char *hardware; /* for the provenance; NULL: what the trace says */
    const char *date;     /* for the provenance, YYYY-MM-DD */
    bool times_only;      /* shapes are not needed, nor looked at */
} cs_torch_options;

typedef struct cs_torch_report {
    uint32_t n_steps;          /* that compute something */
    uint32_t n_recorded_steps; /* by the profiler; 0: one, without a mark */
    uint32_t n_operators, n_kernels, n_layers;
    bool modules;         /* layers are modules, not operators */
    uint32_t n_exchanges; /* kernels that communicate; on a CPU, operators */
    double communication; /* us of all these, left out */
    double others;        /* us of kernels that are left out as well: updates, copies of data */
} cs_torch_report;

/* Errors say what to switch on when something is lacking: shapes, kernels, a backward pass. On
 * failure `model` and `report` are untouched. */
CS_MUST_CHECK cs_status cs_torch_load(const char *path, const cs_torch_options *options,
                                      cs_model *model, cs_torch_report *report, cs_error *error);
CS_MUST_CHECK cs_status cs_torch_parse(const char *file, const char *text, size_t length,
                                       const cs_torch_options *options, cs_model *model,
                                       cs_torch_report *report, cs_error *error);

#endif

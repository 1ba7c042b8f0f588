#include "sim/model/net-chain.h"

#include <stddef.h>

/* The measured seconds of a pass that has work to do; negative: not measured. Counts the pass as
 * measured or estimated. */
static double ask(const cs_measured *measured, const char *key, cs_pass pass, cs_net_layer *layer)
{
    const double seconds = measured->seconds(measured->context, key, pass);
    *(seconds >= 0 ? &layer->n_measured : &layer->n_estimated) += 1;
    return seconds;
}

static void ask_operator(const cs_measured *measured, const cs_op_shape *shape, const char *key,
                         cs_net_layer *layer, cs_op_times *times)
{
    for (cs_pass pass = CS_PASS_FORWARD; pass < CS_PASS_UPDATE; pass++)
        if (shape->passes & 1u << pass)
            times->operator[pass] = ask(measured, key, pass, layer);
    times->workspace = measured->workspace(measured->context, key);
}

/* Whether measured update times apply to an operator: only with the usual storage of optimizer
 * states, and not for matrices that Muon updates. */
static bool has_measured_update(const cs_net *net, const cs_net_options *how, const cs_op *op)
{
    return !how->storage.no_main &&
           (how->storage.state_bytes == 0 || how->storage.state_bytes == 4) &&
           !(how->muon.steps > 0 && cs_muon_updates(net, op));
}

cs_op_times cs_op_times_find(const cs_net *net, const cs_net_options *how, const cs_op *op,
                             cs_net_layer *layer)
{
    cs_op_times times = {.operator= {-1, -1, -1}, .update = -1, .workspace = -1};
    cs_op_shape shapes[CS_OP_SHAPES_MAX];
    char key[CS_OP_KEY_BYTES];
    if (!how->measured)
        return (cs_op_times){
            .operator= {-1, -1, -1}, .accumulate = -1, .update = -1, .workspace = -1};
    const uint32_t n = cs_op_shapes_of(net, op, how->batch_size, how->precision,
                                       (uint32_t)how->optimizer_states, shapes);
    for (uint32_t i = 0; i < n; i++) {
        cs_op_shape_key(&shapes[i], key, sizeof(key));
        if (shapes[i].piece == CS_PIECE_OPERATOR) {
            ask_operator(how->measured, &shapes[i], key, layer, &times);
        } else if (shapes[i].piece == CS_PIECE_UPDATE && !has_measured_update(net, how, op)) {
            layer->n_estimated++;
        } else if (shapes[i].piece == CS_PIECE_UPDATE) {
            times.update = ask(how->measured, key, CS_PASS_UPDATE, layer);
        } else {
            const double seconds = ask(how->measured, key, CS_PASS_FORWARD, layer);
            times.accumulate =
                seconds < 0 || times.accumulate < 0 ? -1 : times.accumulate + seconds;
        }
    }
    return times;
}

static double or_estimate(double measured, const cs_net_options *how, const cs_op *op,
                          const cs_pass_cost *cost, cs_pass pass)
{
    if (measured >= 0)
        return measured;
    return how->kernels.given ? cs_runtime_kernels_seconds(&how->kernels, how->device, op, cost,
                                                           pass, how->precision)
                              : cs_accelerator_seconds(how->device, op, cost, how->precision);
}

/* Seconds of the backward for the inputs. If neither the operator nor its sums of gradients were
 * measured, both are one estimate. */
static double input_seconds(const cs_op_times *times, const cs_net_options *how, const cs_op *op,
                            const cs_op_cost *cost)
{
    const double own = times->operator[CS_PASS_BACKWARD_INPUT];
    cs_pass_cost rest = cost->backward_input;
    if (own < 0 && times->accumulate < 0)
        return or_estimate(-1, how, op, &rest, CS_PASS_BACKWARD_INPUT);
    rest.flop -= cost->accumulate.flop;
    rest.bytes -= cost->accumulate.bytes;
    rest.launches -= cost->accumulate.launches;
    return or_estimate(own, how, op, &rest, CS_PASS_BACKWARD_INPUT) +
           or_estimate(times->accumulate, how, op, &cost->accumulate, CS_PASS_BACKWARD_INPUT);
}

double cs_op_seconds_update(const cs_net_options *how, int64_t parameters)
{
    const double stepwise = how->kernels.given && how->kernels.foreach_optimizer
                                ? cs_precision_stepwise_bytes(how->precision, how->optimizer_states,
                                                              how->float_gradients, how->storage)
                                : 0;
    const double bytes =
        (double)parameters *
        (stepwise + cs_precision_update_bytes(how->precision, how->optimizer_states,
                                              how->float_gradients, how->storage));
    const double width = cs_precision_bytes(how->precision);
    if (parameters > 0 && how->kernels.given)
        return cs_runtime_kernels_update(&how->kernels, how->device, bytes,
                                         (double)parameters * (how->float_gradients ? 4 : width));
    return parameters > 0 ? cs_accelerator_update_seconds(how->device, bytes) : 0;
}

double cs_op_seconds_count_zeros(const cs_net_options *how, int64_t parameters, uint32_t tensors)
{
    const double width = how->float_gradients ? 4 : cs_precision_bytes(how->precision);
    return cs_runtime_kernels_count_zeros(&how->kernels, how->device, (double)parameters, width,
                                          tensors);
}

double cs_op_seconds_cast(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost)
{
    const double weights = (double)op->weights * cs_precision_bytes(how->precision);
    return cost->copy_bytes > 0 && !op->frozen
               ? cs_accelerator_update_seconds(how->device, weights + (double)cost->copy_bytes)
               : 0;
}

cs_piece_seconds cs_op_seconds_of(const cs_net_options *how, const cs_op *op,
                                  const cs_op_cost *cost, const cs_op_times *times)
{
    return (cs_piece_seconds){
        .forward =
            or_estimate(times->operator[CS_PASS_FORWARD], how, op, &cost->forward, CS_PASS_FORWARD),
        .backward_input = input_seconds(times, how, op, cost),
        .backward_weight = or_estimate(times->operator[CS_PASS_BACKWARD_WEIGHT], how, op,
                                       &cost->backward_weight, CS_PASS_BACKWARD_WEIGHT),
    };
}

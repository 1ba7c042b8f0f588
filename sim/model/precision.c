#include "sim/model/precision.h"

#include <stddef.h>

const char *const cs_precision_names[] = {"fp32", "tf32",  "fp16",  "bf16",
                                          "fp8",  "mxfp8", "nvfp4", NULL};

enum { FULL = 4, HALF = 2 };

static bool is_mixed(cs_precision precision)
{
    return precision != CS_PRECISION_FP32 && precision != CS_PRECISION_TF32;
}

uint32_t cs_precision_bytes(cs_precision precision)
{
    return is_mixed(precision) ? HALF : FULL;
}

bool cs_precision_is_narrow(cs_precision precision)
{
    return precision >= CS_PRECISION_FP8;
}

cs_precision cs_precision_wide(cs_precision precision)
{
    return cs_precision_is_narrow(precision) ? CS_PRECISION_BF16 : precision;
}

double cs_precision_operand_bytes(cs_precision precision)
{
    switch (precision) {
    case CS_PRECISION_FP8:
        return 1;
    case CS_PRECISION_MXFP8:
        return 1 + 1.0 / 32;
    case CS_PRECISION_NVFP4:
        return 0.5 + 1.0 / 16;
    default:
        return cs_precision_bytes(precision);
    }
}

static double state_bytes(cs_optimizer_storage storage, double states)
{
    return states * (storage.state_bytes ? storage.state_bytes : FULL);
}

/* Whether the optimizer has a master copy of narrower weights. */
static bool has_main(cs_precision precision, cs_optimizer_storage storage)
{
    return is_mixed(precision) && !storage.no_main;
}

double cs_precision_state_ratio(cs_precision precision, double states, cs_optimizer_storage storage)
{
    const double main_bytes = has_main(precision, storage) ? FULL : 0;
    return (main_bytes + state_bytes(storage, states)) / cs_precision_bytes(precision);
}

uint32_t cs_precision_updated_bytes(cs_precision precision, cs_optimizer_storage storage)
{
    return has_main(precision, storage) ? FULL : cs_precision_bytes(precision);
}

int64_t cs_precision_gradient_ratio(cs_precision precision, bool float_gradients)
{
    return float_gradients ? FULL / cs_precision_bytes(precision) : 1;
}

double cs_precision_update_bytes(cs_precision precision, double states, bool float_gradients,
                                 cs_optimizer_storage storage)
{
    const double width = cs_precision_bytes(precision);
    const double gradient = float_gradients ? FULL : width;
    const double weight = has_main(precision, storage) ? 2 * FULL + width : 2 * width;
    return gradient + weight + 2 * state_bytes(storage, states);
}

double cs_precision_stepwise_bytes(cs_precision precision, double states, bool float_gradients,
                                   cs_optimizer_storage storage)
{
    const double w = cs_precision_updated_bytes(precision, storage);
    const double g = float_gradients ? FULL : cs_precision_bytes(precision);
    const double s = state_bytes(storage, 1);
    const double fused = g + 2 * w + 2 * states * s;
    if (states < 1) /* decay: g + d w; update: w - r g */
        return (w + 2 * g) + (2 * w + g) - fused;
    if (states < 2) /* decay: g + d w; momentum: m s, then s + g; update: w - r s */
        return (w + 2 * g) + 2 * s + (2 * s + g) + (2 * w + s) - fused;
    return 2 * w + (2 * s + g)        /* decay: d w; first moment: m s1 + (1 - m) g */
           + 2 * s + (2 * s + g)      /* second moment: v s2, then s2 + (1 - v) g g */
           + 3 * (2 * s)              /* square root of s2, division, addition of epsilon */
           + (2 * w + 2 * s) - fused; /* update: w - r s1 / (square root + epsilon) */
}

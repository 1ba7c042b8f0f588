#include "sim/model/layout.h"

#include <math.h>

cs_axes_name cs_layout_axes(cs_layout_axis axis)
{
    static const cs_axes_name names[CS_N_LAYOUT_AXES] = {
        [CS_LAYOUT_CONTEXT] = CS_AXES_CONTEXT,
        [CS_LAYOUT_SPACE_X] = CS_AXES_SPACE_X,
        [CS_LAYOUT_SPACE_Y] = CS_AXES_SPACE_Y,
        [CS_LAYOUT_SPACE_Z] = CS_AXES_SPACE_Z,
        [CS_LAYOUT_TENSOR] = CS_AXES_TENSOR,
        [CS_LAYOUT_EXPERT] = CS_AXES_EXPERT,
        [CS_LAYOUT_EXPERT_TENSOR] = CS_AXES_EXPERT_TENSOR,
    };
    return names[axis];
}

static uint32_t copies_of(cs_division division)
{
    return division.copies > 1 ? division.copies : 1;
}

bool cs_division_equal(cs_division a, cs_division b)
{
    return a.part == b.part &&
           (a.part != CS_DIVIDED || (a.dim == b.dim && copies_of(a) == copies_of(b)));
}

bool cs_layout_equal(const cs_tensor_layout *a, const cs_tensor_layout *b)
{
    bool equal = true;
    for (int i = 0; i < CS_N_LAYOUT_AXES; i++)
        equal &= cs_division_equal(a->axes[i], b->axes[i]);
    return equal;
}

/* Converts a division along an axis of experts to a division of the rows of the whole group, taken
 * as one tensor: a place's own rows are one part of them, and the rows of its experts are a part in
 * another division. */
static cs_division of_group(cs_layout_axis axis, cs_division division)
{
    enum { BY_EXPERT = CS_SHAPE_MAX };
    if (axis != CS_LAYOUT_EXPERT && axis != CS_LAYOUT_EXPERT_TENSOR)
        return division;
    switch (division.part) {
    case CS_WHOLE:
        return (cs_division){.part = CS_DIVIDED};
    case CS_ROUTED:
        return (cs_division){.part = CS_DIVIDED, .dim = BY_EXPERT};
    case CS_GATHERED:
        return (cs_division){.part = CS_WHOLE};
    default:
        return division;
    }
}

bool cs_division_exchange(cs_layout_axis axis, cs_division from, cs_division to,
                          cs_exchange_kind *kind)
{
    const cs_division a = of_group(axis, from), b = of_group(axis, to);
    if (cs_division_equal(a, b) || a.part == CS_WHOLE || b.part == CS_PARTIAL)
        return false;
    if (a.part == CS_PARTIAL)
        *kind = b.part == CS_WHOLE ? CS_EXCHANGE_ALL_REDUCE : CS_EXCHANGE_REDUCE_SCATTER;
    else
        *kind = b.part == CS_WHOLE ? CS_EXCHANGE_ALL_GATHER : CS_EXCHANGE_ALL_TO_ALL;
    return true;
}

/* Splits whole tensors first, so that less is exchanged along the other axes. */
cs_tensor_layout cs_layout_cut(const cs_tensor_layout *from, const cs_tensor_layout *to)
{
    cs_tensor_layout cut = *from;
    for (int axis = 0; axis < CS_N_LAYOUT_AXES; axis++) {
        cs_exchange_kind kind;
        if (cut.axes[axis].part == CS_WHOLE &&
            !cs_division_exchange((cs_layout_axis)axis, cut.axes[axis], to->axes[axis], &kind))
            cut.axes[axis] = to->axes[axis];
    }
    return cut;
}

cs_tensor_layout cs_layout_gradient(const cs_tensor_layout *layout, uint32_t partial)
{
    cs_tensor_layout gradient = *layout;
    for (int axis = 0; axis < CS_N_LAYOUT_AXES; axis++)
        if (partial & 1u << axis)
            gradient.axes[axis].part = CS_PARTIAL;
        else if (gradient.axes[axis].part == CS_PARTIAL)
            gradient.axes[axis].part = axis == CS_LAYOUT_EXPERT_TENSOR ? CS_GATHERED : CS_WHOLE;
    return gradient;
}

static uint32_t times(uint32_t rows, double factor)
{
    return (uint32_t)fmin(ceil(rows * factor), UINT32_MAX);
}

cs_shape cs_layout_local(const cs_tensor_layout *layout, const cs_shape *shape,
                         const cs_split *split, uint32_t place)
{
    cs_shape local = *shape;
    for (int i = 0; i < CS_N_LAYOUT_AXES; i++) {
        const cs_division at = layout->axes[i];
        const cs_axes axes = cs_grid_axes(&split->grid, cs_layout_axes((cs_layout_axis)i));
        if (axes.size > 1 && at.part == CS_ROUTED)
            local.dims[0] = times(local.dims[0], at.load);
        if (axes.size > 1 && i == CS_LAYOUT_EXPERT_TENSOR && at.part != CS_WHOLE)
            local.dims[0] = times(local.dims[0], axes.size);
        if (at.part != CS_DIVIDED || axes.size == 1)
            continue;
        const uint32_t copies = copies_of(at);
        local.dims[at.dim] = cs_part_size(local.dims[at.dim], axes.size / copies,
                                          cs_axes_coordinate(axes, place) / copies);
    }
    return local;
}

uint32_t cs_layout_first(const cs_tensor_layout *layout, const cs_shape *shape,
                         const cs_split *split, uint32_t place, uint32_t dim)
{
    uint32_t first = 0, size = shape->dims[dim];
    for (int i = 0; i < CS_N_LAYOUT_AXES; i++) {
        const cs_division at = layout->axes[i];
        const cs_axes axes = cs_grid_axes(&split->grid, cs_layout_axes((cs_layout_axis)i));
        if (at.part != CS_DIVIDED || at.dim != dim || axes.size == 1)
            continue;
        const uint32_t parts = axes.size / copies_of(at);
        const uint32_t part = cs_axes_coordinate(axes, place) / copies_of(at);
        first += cs_part_first(size, parts, part);
        size = cs_part_size(size, parts, part);
    }
    return first;
}

int64_t cs_shape_elements(const cs_shape *shape)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        elements *= shape->dims[i];
    return elements;
}

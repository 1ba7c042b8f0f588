/* Which part of a tensor each place of a grid holds, and what brings it from one layout to another.
 *
 * Along each axis of the grid a tensor is
 *   whole     all places hold the same
 *   divided   one of its dimensions is cut: place k of n holds part k
 *   partial   every place holds a summand of each value
 * A layout says so for all axes. Two axes may divide one dimension: the parts that the first makes
 * are cut by the second, in the order of cs_layout_axis.
 *
 * From layout to layout, along one axis:
 *   partial -> whole     all-reduce         partial -> divided          reduce-scatter
 *   divided -> whole     all-gather         divided -> divided elsewhere all-to-all
 *   whole   -> anything  nothing: each place has what it needs
 * The gradient of a tensor has the tensor's layout, where that is whole or divided; the gradient
 * of a summand is the gradient of the sum, so that of a partial tensor is whole. A reader that
 * computes only a part of what depends on a whole tensor makes a partial gradient of it. The
 * exchanges of backward are therefore those from the layout in which the readers leave the
 * gradient to that in which the writer needs it, by the same table.
 *
 * The axes of experts cross the others. Along them a place has tokens of its own everywhere (which
 * is zero, as `whole` is along the other axes), but for the rows of a mixture of experts between
 * dispatch and combine:
 *   routed     along EXPERT: the rows are with the places of their experts
 *   gathered   along EXPERT_TENSOR: all neighbours have all their rows; they may be divided by features,
 *              or partial, then
 *
 *   own -> routed, and back    all-to-all
 *   own -> gathered            all-gather           partial -> own       reduce-scatter
 */
#ifndef CS_WORKLOAD_LAYOUT_H
#define CS_WORKLOAD_LAYOUT_H

#include "sim/model/net.h"
#include "sim/model/split.h"

/* The axes of a grid that divide tensors of a sample (those of data divide the samples). */
typedef enum cs_layout_axis {
    CS_LAYOUT_CONTEXT,
    CS_LAYOUT_SPACE_X,
    CS_LAYOUT_SPACE_Y,
    CS_LAYOUT_SPACE_Z,
    CS_LAYOUT_TENSOR,
    CS_LAYOUT_EXPERT,
    CS_LAYOUT_EXPERT_TENSOR,
    CS_N_LAYOUT_AXES
} cs_layout_axis;

cs_axes_name cs_layout_axes(cs_layout_axis axis);

typedef enum cs_division_kind {
    CS_WHOLE, /* along the axes of experts: its own */
    CS_DIVIDED,
    CS_PARTIAL,
    CS_ROUTED,
    CS_GATHERED,
} cs_division_kind;

typedef struct cs_division {
    uint8_t part;    /* cs_division_kind */
    uint8_t dim;     /* of a DIVIDED one */
    double load;     /* of a ROUTED one: rows of the busiest place over the mean */
    uint16_t copies; /* of a DIVIDED one: so many neighbours hold the same part, 0 is 1; they divide
                      * the size of the axis */
} cs_division;

/* Zeroed it is whole along all axes. */
typedef struct cs_tensor_layout {
    cs_division axes[CS_N_LAYOUT_AXES];
} cs_tensor_layout;

bool cs_division_equal(cs_division a, cs_division b);
bool cs_layout_equal(const cs_tensor_layout *a, const cs_tensor_layout *b);

/* What is needed to get from one division to another along an axis; false: nothing is. */
bool cs_division_exchange(cs_layout_axis axis, cs_division from, cs_division to,
                          cs_exchange_kind *kind);

/* What needs no exchange to get from a layout to another, done: what is there whole is cut. */
cs_tensor_layout cs_layout_cut(const cs_tensor_layout *from, const cs_tensor_layout *to);

/* The layout in which the readers of a tensor leave its gradient; bit 1 << cs_layout_axis of
 * `partial`: along that axis each of them makes a summand. */
cs_tensor_layout cs_layout_gradient(const cs_tensor_layout *layout, uint32_t partial);

/* Where part `k` of `n` of a dimension begins, k <= n. Sizes differ by one at most, the first part
 * is one of the largest, and longer and shorter ones take turns: so that parts of images before and
 * behind a stride lie one on the other as well as they can. */
static inline uint32_t cs_part_first(uint32_t size, uint32_t n, uint32_t k)
{
    return (uint32_t)(((uint64_t)k * size + n - 1) / n);
}

static inline uint32_t cs_part_size(uint32_t size, uint32_t n, uint32_t k)
{
    return cs_part_first(size, n, k + 1) - cs_part_first(size, n, k);
}

/* What the place holds of a tensor of that shape. Of rows that are routed, as many as the busiest
 * place: its load times the mean, rounded up. */
cs_shape cs_layout_local(const cs_tensor_layout *layout, const cs_shape *shape,
                         const cs_split *split, uint32_t place);

/* The index along a dimension of the whole tensor at which what the place holds begins. */
uint32_t cs_layout_first(const cs_tensor_layout *layout, const cs_shape *shape,
                         const cs_split *split, uint32_t place, uint32_t dim);

int64_t cs_shape_elements(const cs_shape *shape);

/* How many neighbours along a tensor axis of that size have the same heads of keys and values: more
 * than 1 where a network has fewer of them than the axis has places. */
uint32_t cs_split_copies(const cs_net *net, uint32_t tensor);

#endif

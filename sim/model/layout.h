/* Layouts: the part of a tensor that each place (device) of a grid holds, and the exchanges that
 * change one layout into another.
 *
 * Along each axis of the grid, a tensor is
 *   whole     all places hold the same data
 *   divided   one of its dimensions is split: place k of n holds part k
 *   partial   every place holds one summand of each value
 * A layout states this for all axes. Two axes may split the same dimension: the parts made by the
 * first axis are split again by the second axis, in the order of cs_layout_axis.
 *
 * A change of the layout along one axis needs this exchange:
 *   partial -> whole     all-reduce         partial -> divided          reduce-scatter
 *   divided -> whole     all-gather         divided -> divided elsewhere all-to-all
 *   whole   -> anything  none: each place has the data it needs
 * The gradient of a whole or divided tensor has the layout of the tensor. The gradient of a partial
 * tensor is whole, because the gradient of a summand is the gradient of the sum. If a reader
 * computes only a part of the results that depend on a whole tensor, it makes a partial gradient of
 * that tensor. The exchanges of backward therefore lead from the layout in which the readers leave
 * the gradient to the layout in which the writer needs it, by the same table.
 *
 * The axes of experts cross the other axes. Along them, each place holds its own tokens (enumerator
 * zero, which means `whole` on the other axes). Only the rows of a mixture of experts, between
 * dispatch and combine, have other layouts:
 *   routed     along EXPERT: the rows are on the places of their experts
 *   gathered   along EXPERT_TENSOR: each neighbour has the rows of all neighbours. The rows may
 *              then also be divided by features, or partial
 *
 *   own -> routed, and back    all-to-all
 *   own -> gathered            all-gather           partial -> own       reduce-scatter
 */
#ifndef CS_WORKLOAD_LAYOUT_H
#define CS_WORKLOAD_LAYOUT_H

#include "sim/model/net.h"
#include "sim/model/split.h"

/* Axes of a grid that split the tensors of a sample; the axes of data split the samples instead. */
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
    CS_WHOLE, /* along the axes of experts: the place's own tokens */
    CS_DIVIDED,
    CS_PARTIAL,
    CS_ROUTED,
    CS_GATHERED,
} cs_division_kind;

typedef struct cs_division {
    uint8_t part; /* cs_division_kind */
    uint8_t dim;  /* DIVIDED: index of the dimension that is split */
    double load;  /* ROUTED: rows of the busiest place, relative to the mean */
    /* DIVIDED: number of neighbours that hold the same part, a divisor of the axis size; 0 means
     * 1 */
    uint16_t copies;
} cs_division;

/* Layout of a tensor. Zeroed: whole along all axes. */
typedef struct cs_tensor_layout {
    cs_division axes[CS_N_LAYOUT_AXES];
} cs_tensor_layout;

bool cs_division_equal(cs_division a, cs_division b);
bool cs_layout_equal(const cs_tensor_layout *a, const cs_tensor_layout *b);

/* Finds the exchange that changes one division into another along an axis; false: none is
 * needed. */
bool cs_division_exchange(cs_layout_axis axis, cs_division from, cs_division to,
                          cs_exchange_kind *kind);

/* Returns the layout after all changes from `from` to `to` that need no exchange: whole tensors are
 * split. */
cs_tensor_layout cs_layout_cut(const cs_tensor_layout *from, const cs_tensor_layout *to);

/* Returns the layout in which the readers of a tensor leave its gradient. If bit 1 <<
 * cs_layout_axis of `partial` is set, the readers make partial gradients along that axis. */
cs_tensor_layout cs_layout_gradient(const cs_tensor_layout *layout, uint32_t partial);

/* Returns the start of part `k` of `n` of a dimension, k <= n. Sizes differ by at most one; the
 * first part is one of the largest, and longer and shorter parts alternate. The parts of an image
 * before and after a stride then match as well as possible. */
static inline uint32_t cs_part_first(uint32_t size, uint32_t n, uint32_t k)
{
    return (uint32_t)(((uint64_t)k * size + n - 1) / n);
}

static inline uint32_t cs_part_size(uint32_t size, uint32_t n, uint32_t k)
{
    return cs_part_first(size, n, k + 1) - cs_part_first(size, n, k);
}

/* Returns the shape of the part of a tensor that a place holds. For routed rows it has the number
 * of rows of the busiest place: the load times the mean, rounded up. */
cs_shape cs_layout_local(const cs_tensor_layout *layout, const cs_shape *shape,
                         const cs_split *split, uint32_t place);

/* Returns the index in dimension `dim` of the whole tensor at which the place's part begins. */
uint32_t cs_layout_first(const cs_tensor_layout *layout, const cs_shape *shape,
                         const cs_split *split, uint32_t place, uint32_t dim);

int64_t cs_shape_elements(const cs_shape *shape);

/* Returns how many neighbours along a tensor axis of size `tensor` hold the same heads of keys and
 * values: more than 1 if the network has fewer such heads than the axis has places. */
uint32_t cs_split_copies(const cs_net *net, uint32_t tensor);

#endif

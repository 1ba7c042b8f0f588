/* Changes the layout (layout.h) of a tensor that is divided over the places of a grid: packs, sends
 * along each axis, and unpacks.
 *
 * Numbers are float32, in host memory. Packed data has its own memory, like the buffers of MPI; it
 * does not count as memory of the trainer. */
#ifndef CS_CALIB_RELAYOUT_H
#define CS_CALIB_RELAYOUT_H

#include "calib/bench/wire/wire.h"
#include "sim/model/layout.h"

/* Callbacks of the sender. `begin` finds the group along an axis (NULL: all processes), before a
 * message; `end` is called after it. `bytes` are defined as for cs_exchange_kind. */
typedef struct cs_relayout_link {
    cs_status (*begin)(void *context, cs_exchange_kind kind, cs_axes_name axes, int64_t bytes,
                       const cs_wire_group **group, cs_error *error);
    cs_status (*end)(void *context, cs_error *error);
    void *context;
} cs_relayout_link;

typedef struct cs_relayout {
    const cs_split *split;
    uint32_t place, batch;
    cs_shape shape; /* shape of the whole tensor, per sample */
    cs_tensor_layout from, to;
    bool backward; /* processes the axes in reverse order */
} cs_relayout;

/* `from` and `to` may be the same if the place holds as much before as after. CS_FAILED if a layout
 * is neither whole, divided nor partial. */
CS_MUST_CHECK cs_status cs_relayout_run(const cs_relayout *r, cs_wire *wire,
                                        const cs_relayout_link *link, const cs_view *from,
                                        const cs_view *to, cs_error *error);

#endif

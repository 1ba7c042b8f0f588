/* Brings a tensor that places of a grid hold parts of from one layout into another (layout.h): what
 * is sent along each axis, packed and unpacked.
 *
 * Memory is the host's, numbers are float32. What is packed is in memory of its own, as buffers of
 * MPI are: it is not counted with what the trainer holds. */
#ifndef CS_CALIB_RELAYOUT_H
#define CS_CALIB_RELAYOUT_H

#include "calib/bench/wire/wire.h"
#include "sim/model/layout.h"

/* Whoever sends: finds the members of the place's group along an axis, NULL: all processes; and is
 * told before and behind. `bytes` are those of cs_exchange_kind. */
typedef struct cs_relayout_link {
    cs_status (*begin)(void *context, cs_exchange_kind kind, cs_axes_name axes, int64_t bytes,
                       const cs_wire_group **group, cs_error *error);
    cs_status (*end)(void *context, cs_error *error);
    void *context;
} cs_relayout_link;

typedef struct cs_relayout {
    const cs_split *split;
    uint32_t place, batch;
    cs_shape shape; /* of the whole tensor, per sample */
    cs_tensor_layout from, to;
    bool backward; /* passes the axes in falling order */
} cs_relayout;

/* `from` and `to` may be the same where the place holds as much before as behind. CS_FAILED for
 * what is neither whole, divided nor partial. */
CS_MUST_CHECK cs_status cs_relayout_run(const cs_relayout *r, cs_wire *wire,
                                        const cs_relayout_link *link, const cs_view *from,
                                        const cs_view *to, cs_error *error);

#endif

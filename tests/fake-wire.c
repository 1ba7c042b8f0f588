/* The other processes of a replay, for one that is alone: they take every message, and theirs are
 * zeros. */
#include "calib/bench/wire.h"
#include "tests/fake-backend.h"

#include <string.h>

cs_status cs_wire_barrier(const cs_wire *wire, cs_error *error)
{
    (void)wire;
    return cs_fake_turn(CS_FAKE_WIRE, "barrier", error);
}

cs_status cs_wire_send(cs_wire *wire, uint32_t to, const void *data, int64_t bytes, cs_error *error)
{
    (void)wire, (void)to, (void)data, (void)bytes;
    return cs_fake_turn(CS_FAKE_WIRE, "send", error);
}

cs_status cs_wire_receive(cs_wire *wire, uint32_t from, void *data, int64_t bytes, cs_error *error)
{
    (void)wire, (void)from;
    memset(data, 0, (size_t)bytes);
    return cs_fake_turn(CS_FAKE_WIRE, "receive", error);
}

cs_status cs_wire_collective(cs_wire *wire, cs_cost_collective collective, const void *from,
                             void *to, int64_t bytes, cs_error *error)
{
    (void)wire, (void)collective, (void)from, (void)to, (void)bytes;
    return cs_fake_turn(CS_FAKE_WIRE, "collective", error);
}

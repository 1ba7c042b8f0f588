/* The other processes of a replay, for one that is alone: they take every message, and theirs are
 * zeros. */
#include "calib/bench/wire/wire.h"
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

cs_status cs_wire_sum(cs_wire *wire, const cs_wire_group *group, void *data, int64_t bytes,
                      cs_error *error)
{
    (void)wire, (void)group, (void)data, (void)bytes;
    return cs_fake_turn(CS_FAKE_WIRE, "all-reduce", error);
}

cs_status cs_wire_most(cs_wire *wire, const cs_wire_group *group, void *data, int64_t bytes,
                       cs_error *error)
{
    (void)wire, (void)group, (void)data, (void)bytes;
    return cs_fake_turn(CS_FAKE_WIRE, "all-reduce", error);
}

/* Received parts are zeros, and sent parts stay here. */
cs_status cs_wire_parts_move(cs_wire *wire, const cs_wire_group *group,
                             cs_cost_collective collective, const cs_wire_parts *parts,
                             const float *from, float *to, cs_error *error)
{
    const int64_t *got = collective == CS_COST_ALL_TO_ALL ? parts->got : parts->counts;
    (void)wire, (void)group;
    for (uint32_t k = 0, at = 0; collective != CS_COST_REDUCE_SCATTER && k < parts->n; k++) {
        if (from != to)
            memset(to + at, 0, (size_t)got[k] * sizeof(*to));
        at += (uint32_t)got[k];
    }
    return cs_fake_turn(CS_FAKE_WIRE, "parts", error);
}

cs_status cs_wire_group_open(const uint32_t *ranks, uint32_t n, cs_wire_group **group,
                             cs_error *error)
{
    (void)ranks, (void)n;
    *group = NULL;
    return cs_fake_turn(CS_FAKE_WIRE, "group", error);
}

void cs_wire_group_close(cs_wire_group *group)
{
    (void)group;
}

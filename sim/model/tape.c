#include "sim/model/tape.h"

#include "sim/base/vector.h"

#include <stdlib.h>

void cs_tape_finish(cs_tape *tape)
{
    free(tape->events);
    *tape = (cs_tape){0};
}

bool cs_tape_add(cs_tape *tape, cs_tape_what what, uint32_t memory, int64_t bytes)
{
    if (bytes == 0 && (what == CS_TAPE_TAKE || what == CS_TAPE_READ))
        return true;
    if (!cs_vector_reserve((void **)&tape->events, &tape->capacity, tape->n + UINT64_C(1),
                           sizeof(*tape->events)))
        return false;
    tape->events[tape->n++] =
        (cs_tape_event){.memory = memory, .what = (uint8_t)what, .bytes = bytes};
    return true;
}

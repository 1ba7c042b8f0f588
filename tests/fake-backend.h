/* A device that fails when it is told to: the CPU's backend, with every call that can fail counted.
 *
 * What it has handed out is counted as well, so that a test sees whether all came back.
 */
#ifndef CS_TESTS_FAKE_BACKEND_H
#define CS_TESTS_FAKE_BACKEND_H

#include "calib/bench/backend.h"

typedef enum cs_fake_call {
    CS_FAKE_OPEN,
    CS_FAKE_ALLOCATE,
    CS_FAKE_KERNEL, /* run, accumulate, update */
    CS_FAKE_MEMORY, /* fill, copy */
    CS_FAKE_MARK,   /* mark, times, wait */
    CS_FAKE_PLAN,   /* workspace */
    CS_FAKE_WIRE,   /* tests/fake-wire.c */
    CS_N_FAKE_CALLS
} cs_fake_call;

extern const cs_backend cs_backend_fake;

/* Call number k, from 1, of those in `calls` (bit 1 << cs_fake_call) fails, later ones work again,
 * but of CS_FAKE_ALLOCATE: a device that is full stays so; 0: none. Starts the count anew. */
void cs_fake_fail(uint32_t calls, uint32_t k);
/* Calls of that kind so far, and whether one was made to fail. */
uint32_t cs_fake_calls(void);
bool cs_fake_has_failed(void);
/* Pieces of memory and opened devices that have not been given back. */
int64_t cs_fake_held(void);

/* For those that take part: CS_FAILED with a message when it is this call's turn. */
CS_MUST_CHECK cs_status cs_fake_turn(cs_fake_call call, const char *what, cs_error *error);

#endif

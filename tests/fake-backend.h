/* A device that fails when it is told to: the CPU's backend, with every call that can fail counted.
 *
 * What it has handed out is counted as well, so that a test sees whether all came back. It can have
 * a clock that only its work moves, so that a test knows what a measurement has to come to.
 */
#ifndef CS_TESTS_FAKE_BACKEND_H
#define CS_TESTS_FAKE_BACKEND_H

#include "calib/bench/device/backend.h"

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
extern const cs_backend cs_backend_fake_gpu; /* that says it has a memory of its own */

/* Settings of the clock and of a fake GPU. */
typedef struct cs_fake_device {
    double (*kernel)(double now);      /* s of a kernel that starts then */
    double fill;                       /* s of filling with numbers or ids */
    double rates[CS_COPY_TO_PEER + 1]; /* bytes/s of copies; 0: 1 s each */
    int64_t left, all;                 /* bytes */
    bool peer, direct;
    /* counted: */
    double now, longest_delay; /* s */
    uint32_t delays;
    int64_t copied;    /* bytes of the last copy */
    bool same_numbers; /* a copy's first two were */
} cs_fake_device;

/* NULL: the CPU's clock. */
void cs_fake_use(cs_fake_device *device);

/* Makes call number k, from 1, of the kinds in `calls` (bit 1 << cs_fake_call) fail; later calls
 * work again, except CS_FAKE_ALLOCATE, since a full device stays full; 0: none fails. Restarts the
 * count. */
void cs_fake_fail(uint32_t calls, uint32_t k);
/* Calls of that kind so far, and whether one was made to fail. */
uint32_t cs_fake_calls(void);
bool cs_fake_has_failed(void);
/* Pieces of memory and opened devices that have not been given back. */
int64_t cs_fake_held(void);

/* For those that take part: CS_FAILED with a message when it is this call's turn. */
CS_MUST_CHECK cs_status cs_fake_turn(cs_fake_call call, const char *what, cs_error *error);

#endif

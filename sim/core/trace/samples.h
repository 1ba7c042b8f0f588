/* Samples of live memory, packed as they are added.
 *
 * A run has two samples of 24 bytes per task; packed they take five: the time since the previous
 * sample, in as many bytes as it needs; the device and category; and the change of the value, which
 * mostly is one of the last few different changes: what a task allocates and what it frees.
 */
#ifndef CS_TRACE_SAMPLES_H
#define CS_TRACE_SAMPLES_H

#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Live bytes of one category on one device from `time` on. Samples are ordered by (time, device,
 * category), with at most one each: the value at the end of the instant, if it differs from the
 * previous one. */
typedef struct cs_memory_sample {
    cs_time time;
    int64_t bytes;
    uint32_t device;
    uint32_t category;
} cs_memory_sample;

typedef struct cs_memory_samples cs_memory_samples;

/* Returns NULL if memory runs out. */
cs_memory_samples *cs_samples_create(uint32_t n_devices);
void cs_samples_destroy(cs_memory_samples *samples); /* `samples` may be NULL */

/* Appends a sample; `time` must not be before earlier samples. Returns false if memory runs out.
 * Not allowed while reading. */
CS_MUST_CHECK bool cs_samples_add(cs_memory_samples *samples, const cs_memory_sample *sample);

/* Appends a sample of key device * CS_N_CATEGORIES + category, unless the value has not changed (0
 * at first). */
CS_MUST_CHECK bool cs_samples_note(cs_memory_samples *samples, cs_time time, uint32_t key,
                                   int64_t bytes);

/* Number of samples; 0 for NULL. */
uint64_t cs_samples_count(const cs_memory_samples *samples);

/* Reading, by one reader at a time: back to the first sample; the next n samples (returns their
 * number, fewer at the end); the next sample (false at the end). NULL has no samples. */
void cs_samples_rewind(cs_memory_samples *samples);
size_t cs_samples_read(cs_memory_samples *samples, size_t n, cs_memory_sample *read);
bool cs_samples_next(cs_memory_samples *samples, cs_memory_sample *sample);

#endif

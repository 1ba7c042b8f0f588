/* How live memory changed: samples, packed as they are added.
 *
 * A run has two samples per task, 24 bytes each. Packed they take five: the time since the sample
 * before, in as many bytes as it needs; which device and category; and the change of their value,
 * which for most is one of the last few different ones: what a task allocates, and what it frees.
 */
#ifndef CS_TRACE_SAMPLES_H
#define CS_TRACE_SAMPLES_H

#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Live bytes of one category on one device from `time` on. Ordered by (time, device, category), one
 * sample for each at most: the value when the instant was over, and only where it differs from
 * before. */
typedef struct cs_memory_sample {
    cs_time time;
    int64_t bytes;
    uint32_t device;
    uint32_t category;
} cs_memory_sample;

typedef struct cs_memory_samples cs_memory_samples;

/* NULL when memory runs out. */
cs_memory_samples *cs_samples_create(uint32_t n_devices);
void cs_samples_destroy(cs_memory_samples *samples); /* accepts NULL */

/* Behind all others: `time` is not before theirs. False when memory runs out. Not while they are
 * read. */
CS_MUST_CHECK bool cs_samples_add(cs_memory_samples *samples, const cs_memory_sample *sample);

/* The same of device * CS_N_CATEGORIES + category, unless that has so many bytes since its latest
 * sample, or has 0 without one. */
CS_MUST_CHECK bool cs_samples_note(cs_memory_samples *samples, cs_time time, uint32_t key,
                                   int64_t bytes);

/* How many; 0 of NULL. */
uint64_t cs_samples_count(const cs_memory_samples *samples);

/* From the first one on, by one reader at a time. The next, and false behind the last; or the next
 * n, fewer if there are no more, returning how many. NULL has none. */
void cs_samples_rewind(cs_memory_samples *samples);
size_t cs_samples_read(cs_memory_samples *samples, size_t n, cs_memory_sample *read);
bool cs_samples_next(cs_memory_samples *samples, cs_memory_sample *sample);

#endif

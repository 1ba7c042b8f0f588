#include "sim/core/trace/samples.h"

#include "sim/base/compact.h"
#include "sim/core/graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* A sample is two or three numbers: picoseconds since the previous sample; (device *
 * CS_N_CATEGORIES + category) * CODES + code; and after the code OTHER the change itself, with its
 * sign in the lowest bit. Other codes refer to one of the last different changes. */
enum {
    KNOWN = 3,
    OTHER = KNOWN,
    CODES = KNOWN + 1,
    NUMBERS = 3, /* maximum per sample */
};

/* State of a device and category, in writer and reader. */
typedef struct track {
    int64_t value;
    int64_t changes[KNOWN]; /* the last different changes */
} track;

struct cs_memory_samples {
    cs_compact packed;
    size_t at; /* position of the reader */
    uint64_t n, n_read;
    cs_time time; /* time of the last sample written or read */
    size_t n_tracks;
    track *tracks;
};

cs_memory_samples *cs_samples_create(uint32_t n_devices)
{
    cs_memory_samples *made = calloc(1, sizeof(*made));
    if (!made)
        return NULL;
    made->n_tracks = (size_t)n_devices * CS_N_CATEGORIES;
    made->tracks = calloc(made->n_tracks + 1, sizeof(*made->tracks));
    if (made->tracks)
        return made;
    cs_samples_destroy(made);
    return NULL;
}

void cs_samples_destroy(cs_memory_samples *samples)
{
    if (!samples)
        return;
    cs_compact_finish(&samples->packed);
    free(samples->tracks);
    free(samples);
}

static void remember(track *of, int64_t change)
{
    memmove(of->changes + 1, of->changes, (KNOWN - 1) * sizeof(*of->changes));
    of->changes[0] = change;
}

/* ---- writing ---- */

static uint32_t code_of(const track *of, int64_t change)
{
    uint32_t code = 0;
    while (code < KNOWN && of->changes[code] != change)
        code++;
    return code;
}

static inline bool add(cs_memory_samples *samples, cs_time time, uint32_t key, int64_t bytes)
{
    track *of = &samples->tracks[key];
    /* unsigned numbers wrap: a change may exceed the range of values */
    const uint64_t change = (uint64_t)bytes - (uint64_t)of->value;
    if (!cs_compact_reserve(&samples->packed, NUMBERS))
        return false;
    cs_compact packed = samples->packed; /* kept in registers */
    const uint32_t code = code_of(of, (int64_t)change);
    cs_compact_put(&packed, (uint64_t)time - (uint64_t)samples->time);
    cs_compact_put(&packed, (uint64_t)key * CODES + code);
    if (code == OTHER) {
        cs_compact_put(&packed, (change << 1) ^ ((int64_t)change < 0 ? UINT64_MAX : 0));
        remember(of, (int64_t)change);
    }
    samples->packed.used = packed.used;
    of->value = bytes;
    samples->time = time;
    samples->n++;
    return true;
}

bool cs_samples_add(cs_memory_samples *samples, const cs_memory_sample *sample)
{
    return add(samples, sample->time, sample->device * CS_N_CATEGORIES + sample->category,
               sample->bytes);
}

bool cs_samples_note(cs_memory_samples *samples, cs_time time, uint32_t key, int64_t bytes)
{
    return samples->tracks[key].value == bytes || add(samples, time, key, bytes);
}

uint64_t cs_samples_count(const cs_memory_samples *samples)
{
    return samples ? samples->n : 0;
}

/* ---- reading ---- */

void cs_samples_rewind(cs_memory_samples *samples)
{
    if (!samples)
        return;
    memset(samples->tracks, 0, samples->n_tracks * sizeof(*samples->tracks));
    samples->at = 0;
    samples->n_read = 0;
    samples->time = 0;
}

/* Reads the next sample, which must exist. */
static inline void read_next(cs_memory_samples *samples, size_t *at, cs_time *time,
                             cs_memory_sample *sample)
{
    *time = (cs_time)((uint64_t)*time + cs_compact_get(&samples->packed, at));
    const uint64_t word = cs_compact_get(&samples->packed, at);
    const uint32_t key = (uint32_t)(word / CODES), code = word % CODES;
    track *of = &samples->tracks[key];
    if (code == OTHER) {
        const uint64_t folded = cs_compact_get(&samples->packed, at);
        remember(of, (int64_t)((folded >> 1) ^ (0 - (folded & 1))));
    }
    of->value = (int64_t)((uint64_t)of->value + (uint64_t)of->changes[code == OTHER ? 0 : code]);
    *sample = (cs_memory_sample){*time, of->value, key / CS_N_CATEGORIES, key % CS_N_CATEGORIES};
}

size_t cs_samples_read(cs_memory_samples *samples, size_t n, cs_memory_sample *read)
{
    const uint64_t left = samples ? samples->n - samples->n_read : 0;
    if (n > left)
        n = (size_t)left;
    if (n == 0)
        return 0;
    size_t at = samples->at;
    cs_time time = samples->time;
    for (size_t i = 0; i < n; i++)
        read_next(samples, &at, &time, &read[i]);
    samples->at = at;
    samples->time = time;
    samples->n_read += n;
    return n;
}

bool cs_samples_next(cs_memory_samples *samples, cs_memory_sample *sample)
{
    return cs_samples_read(samples, 1, sample) == 1;
}

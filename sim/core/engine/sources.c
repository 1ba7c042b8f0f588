#include "sim/core/engine/sources.h"

#include "sim/base/random.h"

#include <gsl/gsl_randist.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct cs_sources {
    uint32_t n;
    double gap; /* mean, s */
    gsl_rng **streams;
};

cs_status cs_sources_create(const cs_traffic *traffic, cs_sources **sources, cs_error *error)
{
    cs_sources *made = calloc(1, sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    made->n = traffic->n_sources;
    made->gap = cs_time_seconds(traffic->gap);
    made->streams = calloc(traffic->n_sources, sizeof(*made->streams));
    bool ready = made->streams != NULL;
    for (uint32_t i = 0; ready && i < made->n; i++) {
        char name[32];
        snprintf(name, sizeof(name), "traffic %" PRIu32, i);
        made->streams[i] = cs_random_stream(traffic->seed, name);
        ready = made->streams[i] != NULL;
    }
    if (!ready) {
        cs_sources_destroy(made);
        return cs_error_no_memory(error);
    }
    *sources = made;
    return CS_OK;
}

void cs_sources_destroy(cs_sources *sources)
{
    if (!sources)
        return;
    for (uint32_t i = 0; sources->streams && i < sources->n; i++)
        gsl_rng_free(sources->streams[i]);
    free(sources->streams);
    free(sources);
}

bool cs_sources_next(cs_sources *sources, uint32_t source, cs_time *silence)
{
    double seconds = 0;
    if (sources->gap > 0)
        seconds = gsl_ran_exponential(sources->streams[source], sources->gap);
    if (!cs_time_from_seconds(seconds, silence))
        return false;
    if (*silence == 0)
        *silence = 1; /* a message that takes no time would be followed by others for ever */
    return true;
}

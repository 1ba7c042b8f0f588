#include "schedules/offload.h"

#include <stdlib.h>

/* Numbers the layers that have something to offload. */
static void number_layers(const cs_stage *of, const cs_layer_sum *sums, cs_stage_offload *made)
{
    for (uint32_t l = 0; l < of->end_layer - of->first_layer; l++) {
        const int64_t kept = sums[l].kept_bytes, host = sums[l].host_bytes;
        made->numbers[l] = host > 0 && kept > 0 ? made->n_layers : CS_NONE;
        if (made->numbers[l] != CS_NONE)
            made->bytes[made->n_layers++] = host < kept ? host : kept;
    }
}

cs_status cs_stage_offload_init(const cs_job *job, uint32_t stage, const cs_layer_sum *sums,
                                cs_stage_offload *made, cs_error *error)
{
    const cs_stage *of = &job->plan->stages[stage];
    const size_t n = of->end_layer - of->first_layer;
    const cs_offload *asked = &job->offload;
    *made = (cs_stage_offload){0};
    if (asked->layers == 0)
        return CS_OK;
    made->numbers = malloc(n * sizeof(*made->numbers));
    made->bytes = malloc(n * sizeof(*made->bytes));
    if (!made->numbers || !made->bytes)
        return cs_error_no_memory(error);
    number_layers(of, sums, made);
    const uint32_t most = made->n_layers > 0 ? made->n_layers - 1 : 0;
    made->n = asked->layers < most ? asked->layers : most;
    made->in_flight = asked->in_flight == CS_NONE ? most - made->n : asked->in_flight;
    made->prefetch = asked->prefetch == CS_NONE ? most - made->n : asked->prefetch;
    return CS_OK;
}

void cs_stage_offload_finish(cs_stage_offload *offload)
{
    free(offload->numbers);
    free(offload->bytes);
    *offload = (cs_stage_offload){0};
}

cs_time cs_offload_time(const cs_job *job, int64_t bytes)
{
    cs_time time;
    return cs_time_transfer((double)bytes, job->offload.bandwidth, &time) ? time : CS_TIME_MAX;
}

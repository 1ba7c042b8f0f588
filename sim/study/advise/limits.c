#include "sim/study/advise/limits.h"

#include <math.h>

const char *const cs_limit_names[] = {
#define LIMIT_NAME(name, text) text,
    CS_LIMIT_MAP(LIMIT_NAME)
#undef LIMIT_NAME
        NULL};

static double above_zero(double value)
{
    return value > 0 ? value : 0;
}

static double computing_of(const cs_time_use *use)
{
    cs_time sum = 0;
    for (uint32_t kind = 0; kind < CS_N_KINDS; kind++)
        if (kind != CS_UPDATE)
            sum += use->compute[kind];
    return cs_time_seconds(sum);
}

/* Adds means over the devices; returns the computing time of the busiest device. */
static double add_devices(const cs_analysis *analysis, cs_limits *limits)
{
    double busiest = 0;
    for (uint32_t d = 0; d < analysis->n_devices; d++) {
        const cs_time_use *use = &analysis->devices[d];
        const double computing = computing_of(use);
        busiest = computing > busiest ? computing : busiest;
        limits->computing += computing;
        limits->exposed += cs_time_seconds(use->communication);
        limits->waiting += cs_time_seconds(use->dependency + use->flush);
        limits->update += cs_time_seconds(use->compute[CS_UPDATE]);
    }
    const double n = analysis->n_devices > 0 ? analysis->n_devices : 1;
    limits->computing /= n;
    limits->exposed /= n;
    limits->waiting /= n;
    limits->update /= n;
    return busiest;
}

/* Takes the memory categories of the device with the largest peak, at its peak. */
static void take_peak(const cs_trace *trace, cs_limits *limits)
{
    const cs_device_record *fullest = NULL;
    for (uint32_t d = 0; d < trace->n_devices; d++)
        if (!fullest || trace->devices[d].peak > fullest->peak)
            fullest = &trace->devices[d];
    for (uint32_t c = 0; c < CS_N_CATEGORIES && fullest; c++)
        limits->at_peak[c] = fullest->at_peak[c];
}

void cs_limits_find(const cs_scenario *scenario, const cs_simulation *simulation, double undivided,
                    double alone, cs_limits *limits)
{
    const cs_analysis *analysis = &simulation->analysis;
    const cs_mean_use mean = analysis->mean;
    const cs_work_rate rate = cs_simulation_work_rate(scenario, simulation);
    const double makespan = cs_time_seconds(analysis->makespan);
    /* converts rates per iteration time into rates per makespan */
    const double counted = analysis->iteration_time / makespan;
    *limits = (cs_limits){.throughput = scenario->batch_size / makespan,
                          .tokens = rate.tokens * counted,
                          .utilisation = rate.utilisation * counted};
    const double busiest = add_devices(analysis, limits), *exposed = mean.exposed;
    const double n = analysis->n_devices, total = limits->computing * n;
    double *seconds = limits->seconds;
    seconds[CS_LIMIT_OF_GRADIENTS] = exposed[CS_PURPOSE_GRADIENTS] + exposed[CS_PURPOSE_WEIGHTS];
    seconds[CS_LIMIT_OF_LAYERS] =
        exposed[CS_PURPOSE_TENSOR] + exposed[CS_PURPOSE_CONTEXT] + exposed[CS_PURPOSE_EXPERT];
    seconds[CS_LIMIT_OF_HALO] = exposed[CS_PURPOSE_SPACE];
    seconds[CS_LIMIT_OF_STAGES] = exposed[CS_PURPOSE_STAGES];
    seconds[CS_LIMIT_OF_CONGESTION] = above_zero(makespan - alone);
    seconds[CS_LIMIT_OF_REDUNDANCY] = isnan(undivided) ? 0 : above_zero(total - undivided) / n;
    seconds[CS_LIMIT_OF_UPDATE] = limits->update;
    seconds[CS_LIMIT_OF_IMBALANCE] = above_zero(busiest - limits->computing);
    seconds[CS_LIMIT_OF_BUBBLE] = above_zero(limits->waiting - seconds[CS_LIMIT_OF_IMBALANCE]);
    for (uint32_t i = 1; i < CS_N_LIMITS; i++)
        if (seconds[i] > seconds[limits->first])
            limits->first = (cs_limit)i;
    take_peak(&simulation->trace, limits);
}

#include "schedules/schedule.h"

#include <string.h>

/* Schedules in the order of `sim list`. X(name) is the table cs_schedule_name. */
#define SCHEDULE_MAP(X)                                                                            \
    X(sequential)                                                                                  \
    X(dp)                                                                                          \
    X(gpipe)                                                                                       \
    X(1f1b)                                                                                        \
    X(pipedream)                                                                                   \
    X(pipedream_2bw)                                                                               \
    X(nf1b)                                                                                        \
    X(interleaved_1f1b)                                                                            \
    X(zb_h1)                                                                                       \
    X(zb_h2)                                                                                       \
    X(zb_v)                                                                                        \
    X(dualpipe_v)                                                                                  \
    X(hanayo)                                                                                      \
    X(periodic)                                                                                    \
    X(cdp_dp)                                                                                      \
    X(cdp_v1)                                                                                      \
    X(cdp_v2)                                                                                      \
    X(cdp_freshest)                                                                                \
    X(custom)

#define DECLARE(name) extern const cs_schedule cs_schedule_##name;
SCHEDULE_MAP(DECLARE)
#undef DECLARE

#define ADDRESS(name) &cs_schedule_##name,
const cs_schedule *const cs_schedules[] = {SCHEDULE_MAP(ADDRESS) NULL};
#undef ADDRESS

#define NAME(name) #name,
const char *const cs_schedule_names[] = {SCHEDULE_MAP(NAME) NULL};
#undef NAME

uint32_t cs_schedule_micro_batches(const cs_schedule *schedule, const void *params)
{
    uint32_t n = 1;
    if (schedule->micro_batches != CS_ONE_MICRO_BATCH)
        memcpy(&n, (const char *)params + schedule->micro_batches, sizeof(n));
    return n;
}

bool cs_schedule_has_micro_batches(const cs_schedule *schedule, uint32_t micro_batches,
                                   uint32_t n_ranks)
{
    return !schedule->least_micro_batches ||
           micro_batches >= schedule->least_micro_batches(n_ranks);
}

uint32_t cs_schedule_stages_per_rank(const cs_schedule *schedule, uint32_t value)
{
    if (schedule->stages.name)
        return schedule->stages.each * value;
    return schedule->mesh.n_stages ? schedule->mesh.n_stages(NULL, 1) : 1;
}

uint32_t cs_schedule_rank(const cs_schedule *schedule, uint32_t n_ranks, uint32_t stage)
{
    uint32_t rank = stage;
    if (schedule->mesh.holders)
        (void)schedule->mesh.holders(NULL, n_ranks, stage, &rank);
    return rank;
}

const cs_schedule *cs_schedule_find(const char *name)
{
    for (size_t i = 0; cs_schedules[i]; i++) {
        if (strcmp(cs_schedules[i]->name, name) == 0)
            return cs_schedules[i];
    }
    return NULL;
}

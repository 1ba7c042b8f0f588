#include "schedules/schedule.h"

#include <string.h>

/* In the order of `sim list`. X(name) stands for the table cs_schedule_name. */
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

uint32_t cs_schedule_micro_batches(const cs_schedule *schedule, const void *params)
{
    uint32_t n = 1;
    if (schedule->micro_batches != CS_ONE_MICRO_BATCH)
        memcpy(&n, (const char *)params + schedule->micro_batches, sizeof(n));
    return n;
}

const cs_schedule *cs_schedule_find(const char *name)
{
    for (size_t i = 0; cs_schedules[i]; i++) {
        if (strcmp(cs_schedules[i]->name, name) == 0)
            return cs_schedules[i];
    }
    return NULL;
}

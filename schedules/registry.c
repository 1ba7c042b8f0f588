#include "schedules/schedule.h"

#include <string.h>

extern const cs_schedule cs_schedule_sequential, cs_schedule_dp, cs_schedule_gpipe,
    cs_schedule_1f1b, cs_schedule_pipedream, cs_schedule_pipedream_2bw, cs_schedule_nf1b;

const cs_schedule *const cs_schedules[] = {
    &cs_schedule_sequential, &cs_schedule_dp,
    &cs_schedule_gpipe,      &cs_schedule_1f1b,
    &cs_schedule_pipedream,  &cs_schedule_pipedream_2bw,
    &cs_schedule_nf1b,       NULL,
};

const cs_schedule *cs_schedule_find(const char *name)
{
    for (size_t i = 0; cs_schedules[i]; i++) {
        if (strcmp(cs_schedules[i]->name, name) == 0)
            return cs_schedules[i];
    }
    return NULL;
}

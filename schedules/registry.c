#include "schedules/schedule.h"

#include <string.h>

extern const cs_schedule cs_schedule_sequential, cs_schedule_dp, cs_schedule_gpipe,
    cs_schedule_1f1b, cs_schedule_pipedream, cs_schedule_pipedream_2bw, cs_schedule_nf1b,
    cs_schedule_interleaved_1f1b, cs_schedule_zb_h1, cs_schedule_periodic, cs_schedule_custom,
    cs_schedule_cdp_dp, cs_schedule_cdp_v1, cs_schedule_cdp_v2, cs_schedule_cdp_freshest;

/* one a line */
/* clang-format off */
const cs_schedule *const cs_schedules[] = {
    &cs_schedule_sequential,
    &cs_schedule_dp,
    &cs_schedule_gpipe,
    &cs_schedule_1f1b,
    &cs_schedule_pipedream,
    &cs_schedule_pipedream_2bw,
    &cs_schedule_nf1b,
    &cs_schedule_interleaved_1f1b,
    &cs_schedule_zb_h1,
    &cs_schedule_periodic,
    &cs_schedule_cdp_dp,
    &cs_schedule_cdp_v1,
    &cs_schedule_cdp_v2,
    &cs_schedule_cdp_freshest,
    &cs_schedule_custom,
    NULL,
};
/* clang-format on */

const cs_schedule *cs_schedule_find(const char *name)
{
    for (size_t i = 0; cs_schedules[i]; i++) {
        if (strcmp(cs_schedules[i]->name, name) == 0)
            return cs_schedules[i];
    }
    return NULL;
}

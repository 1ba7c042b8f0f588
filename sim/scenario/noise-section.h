/* The keys "jitter", "stragglers" and "background" of the section "platform". Internal to
 * sim/scenario. */
#ifndef CS_SCENARIO_NOISE_SECTION_H
#define CS_SCENARIO_NOISE_SECTION_H

#include "sim/scenario/sections.h"

typedef struct cs_stragglers_section {
    const cJSON *devices, *tasks;
} cs_stragglers_section;

typedef struct cs_background_section {
    uint32_t flows;
    const cJSON *pairs;
    int64_t bytes;
    cs_time gap;
} cs_background_section;

/* Fills the scenario's noise, once the rest of the section is read. */
CS_MUST_CHECK cs_status cs_draft_read_noise(cs_draft *draft, const cs_json_place *platform,
                                            cs_error *error);

/* Whether the platform, once it is built, has the devices that are named. */
CS_MUST_CHECK cs_status cs_draft_check_noise(const cs_draft *draft, const cs_json_place *platform,
                                             cs_error *error);

#endif

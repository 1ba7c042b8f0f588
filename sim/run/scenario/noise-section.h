/* The keys "jitter", "stragglers" and "background" of the section "platform". Internal to
 * sim/run/scenario. */
#ifndef CS_SCENARIO_NOISE_SECTION_H
#define CS_SCENARIO_NOISE_SECTION_H

#include "sim/run/scenario/sections.h"

typedef struct cs_stragglers_section {
    cs_spread *devices, *tasks; /* NULL: none */
} cs_stragglers_section;

typedef struct cs_background_section {
    uint32_t flows;
    cs_list pairs; /* cs_list of pairs, each a list of two uint32_t */
    int64_t bytes;
    cs_time gap;
} cs_background_section;

/* Resolves the noise of a platform section; `platform` is its place. */
CS_MUST_CHECK cs_status cs_scenario_noise(const cs_platform_section *section,
                                          const cs_json_place *platform, cs_arena *arena,
                                          cs_noise *noise, cs_error *error);

/* Checks that the platform has the devices that the noise names. */
CS_MUST_CHECK cs_status cs_scenario_check_noise(const cs_noise *noise, uint32_t n_devices,
                                                const cs_json_place *platform, cs_error *error);

#endif

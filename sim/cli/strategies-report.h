/* What `sim strategies` prints. */
#ifndef CS_CLI_STRATEGIES_REPORT_H
#define CS_CLI_STRATEGIES_REPORT_H

#include "sim/model/paradl.h"

#include <cjson/cJSON.h>
#include <stdio.h>

enum { CS_N_STRATEGIES = 8 };

typedef struct cs_strategy {
    const char *name;
    cs_paradl_case asked;
    cs_paradl_form form;
} cs_strategy;

typedef struct cs_strategies {
    const char *network, *precision, *device, *topology; /* for the heading */
    uint32_t devices, batch;
    double dataset; /* samples of an epoch; 0: not given */
    double reuse;
    cs_strategy rows[CS_N_STRATEGIES];
} cs_strategies;

void cs_strategies_print(const cs_strategies *strategies, FILE *out);

/* The same as JSON, times of an iteration in all their parts; NULL when memory runs out. */
cJSON *cs_strategies_json(const cs_strategies *strategies);

#endif

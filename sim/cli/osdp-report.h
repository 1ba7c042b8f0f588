/* Output of `sim osdp`. */
#ifndef CS_CLI_OSDP_REPORT_H
#define CS_CLI_OSDP_REPORT_H

#include "sim/run/osdp.h"

#include <stdio.h>

void cs_osdp_print(const cs_osdp_study *study, FILE *out);

/* Keys: docs/reference/json-output.md. NULL: no memory. */
cJSON *cs_osdp_json(const cs_osdp_study *study);

#endif

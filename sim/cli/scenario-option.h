/* What the commands that read a scenario share: its file and --set. */
#ifndef CS_CLI_SCENARIO_OPTION_H
#define CS_CLI_SCENARIO_OPTION_H

#include "sim/cli/command.h"
#include "sim/run/print/print-json.h"
#include "sim/run/scenario/scenario.h"

#define CS_OPTION_SET                                                                              \
    {                                                                                              \
        "set", 's', "/json/pointer=VALUE", "Change the scenario before it is read", true, NULL,    \
            CS_NAMES_POINTERS                                                                      \
    }

/* Makes the changes of --set. */
CS_MUST_CHECK cs_status cs_document_change(const cs_arguments *arguments, cJSON *document,
                                           cs_error *error);

/* Loads the file that the first word names, with the changes of --set; its document is the
 * caller's, to free with cJSON_Delete. */
CS_MUST_CHECK cs_status cs_document_from(const cs_arguments *arguments, cJSON **root,
                                         cs_error *error);

/* Loads the scenario that the first word names, with the changes of --set. */
CS_MUST_CHECK cs_status cs_scenario_from(const cs_context *context, const cs_arguments *arguments,
                                         cs_scenario *scenario, cs_error *error);

#endif

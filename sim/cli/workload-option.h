/* Shared by commands that take a network: its name and parameters. */
#ifndef CS_CLI_WORKLOAD_OPTION_H
#define CS_CLI_WORKLOAD_OPTION_H

#include "sim/cli/command.h"

#include <cjson/cJSON.h>

#define CS_OPTION_PARAM                                                                            \
    {                                                                                              \
        "param", 'p', "NAME=VALUE", "A parameter of the model (sim list models)", true, NULL       \
    }
#define CS_OPTION_IMAGE                                                                            \
    {                                                                                              \
        "image", 'i', "PIXELS", "Height and width of the image; the same as --param image=PIXELS", \
            false, NULL                                                                            \
    }

extern const char *const cs_optimizer_names[]; /* indexed by states per weight; NULL-terminated */

/* Index of an option's value among its choices; 0 if it is not given; CS_USAGE. */
CS_MUST_CHECK cs_status cs_arguments_choice(const cs_arguments *arguments, const char *option,
                                            const char *const *choices, uint32_t *out,
                                            cs_error *error);

/* Adds the parameters of --image and --param to an object. */
CS_MUST_CHECK cs_status cs_arguments_parameters(const cs_arguments *arguments, cJSON *object,
                                                cs_error *error);

#endif

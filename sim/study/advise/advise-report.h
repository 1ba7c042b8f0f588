/* Output of `sim advise`. */
#ifndef CS_ADVISE_ADVISE_REPORT_H
#define CS_ADVISE_ADVISE_REPORT_H

#include "sim/base/json.h"
#include "sim/study/advise/advise.h"

#include <stdio.h>

typedef struct cs_advice_shown {
    const cs_advice *advice;
    const char *name, *path, *topology; /* scenario's name, its file, its platform's topology */
    bool all;                           /* options.all: whether to show similar plans too */
} cs_advice_shown;

/* Makes the input of the functions below for the scenario in the file `path`; the document must
 * outlive it. */
cs_advice_shown cs_advice_shown_of(const cs_advice *advice, const cJSON *document,
                                   const char *path);

/* Prints tables for users. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_advice_print(const cs_advice_shown *shown, FILE *out, cs_error *error);

/* Makes a JSON object with the same content; NULL if memory runs out. */
cJSON *cs_advice_json(const cs_advice_shown *shown);

#endif

/* What `sim advise` prints. */
#ifndef CS_ADVISE_ADVISE_REPORT_H
#define CS_ADVISE_ADVISE_REPORT_H

#include "sim/base/json.h"
#include "sim/study/advise/advise.h"

#include <stdio.h>

typedef struct cs_advice_shown {
    const cs_advice *advice;
    const char *name, *path, *topology; /* of the scenario; its file; its platform's topology */
    bool all;                           /* options.all: what is alike is shown as well */
} cs_advice_shown;

/* Of the scenario in the file `path`; the document must live as long. */
cs_advice_shown cs_advice_shown_of(const cs_advice *advice, const cJSON *document,
                                   const char *path);

/* Tables for people. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_advice_print(const cs_advice_shown *shown, FILE *out, cs_error *error);

/* The same as one object; NULL when memory runs out. */
cJSON *cs_advice_json(const cs_advice_shown *shown);

#endif

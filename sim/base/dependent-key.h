/* Keys that change nothing without another one. They are warned of, not refused: a sweep of the
 * other key may leave them. */
#ifndef CS_BASE_DEPENDENT_KEY_H
#define CS_BASE_DEPENDENT_KEY_H

#include "sim/base/json.h"

#include <stdbool.h>

typedef struct cs_dependent_key {
    const char *key;  /* of the section */
    bool set;         /* to another value than its default */
    bool effective;   /* here */
    const char *with; /* what it needs to have an effect */
} cs_dependent_key;

/* Adds "PLACE/KEY: has an effect only with WITH" to the warnings of the document for each key that
 * is set and not effective. */
void cs_dependent_keys_warn(const cs_dependent_key *keys, size_t n, const cs_json_place *section);

#endif

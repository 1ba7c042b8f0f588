/* Keys that have no effect without another key. They cause a warning, not an error: a sweep of the
 * other key may leave them in place. */
#ifndef CS_BASE_DEPENDENT_KEY_H
#define CS_BASE_DEPENDENT_KEY_H

#include "sim/base/json.h"

#include <stdbool.h>

typedef struct cs_dependent_key {
    const char *key;  /* name within the section */
    bool set;         /* its value is not the default */
    bool effective;   /* it has an effect in this document */
    const char *with; /* the key it needs to have an effect, for messages */
} cs_dependent_key;

/* Adds the warning "PLACE/KEY: has an effect only with WITH" for each key that is set without
 * effect. */
void cs_dependent_keys_warn(const cs_dependent_key *keys, size_t n, const cs_json_place *section);

#endif

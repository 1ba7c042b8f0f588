#include "sim/base/dependent-key.h"

void cs_dependent_keys_warn(const cs_dependent_key *keys, size_t n, const cs_json_place *section)
{
    cs_error *warnings = cs_json_warnings(section);
    for (size_t i = 0; warnings && i < n; i++) {
        const cs_json_place key = {.up = section, .key = keys[i].key};
        if (keys[i].set && !keys[i].effective)
            (void)cs_json_invalid(&key, warnings, "has an effect only with %s", keys[i].with);
    }
}

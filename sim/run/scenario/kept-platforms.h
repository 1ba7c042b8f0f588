/* A cache of platforms shared by scenarios that are read one after the other or in several threads:
 * points of a sweep mostly differ in settings that do not affect the platform.
 *
 * The key of a platform is a text with everything that it was built from. A cached platform is
 * constant and can be lent any number of times at once. Platforms that nobody borrows are dropped,
 * least recently returned first, if there are too many. */
#ifndef CS_SCENARIO_KEPT_PLATFORMS_H
#define CS_SCENARIO_KEPT_PLATFORMS_H

#include "topologies/platform.h"

typedef struct cs_kept_platforms cs_kept_platforms;

cs_kept_platforms *cs_kept_platforms_create(void); /* NULL if memory runs out */

/* Destroys the cache; all platforms must have been returned. Accepts NULL. */
void cs_kept_platforms_destroy(cs_kept_platforms *kept);

/* Borrows the platform with this key; NULL: not cached. */
const cs_platform *cs_kept_platforms_borrow(cs_kept_platforms *kept, const char *key);

/* Moves a platform into the cache and lends it, or the platform that another thread has added with
 * the same key. Returns NULL if memory runs out; then the caller keeps the platform. */
const cs_platform *cs_kept_platforms_add(cs_kept_platforms *kept, const char *key,
                                         cs_platform *platform);

void cs_kept_platforms_give_back(cs_kept_platforms *kept, const cs_platform *platform);

#endif

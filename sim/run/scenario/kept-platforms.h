/* Platforms that scenarios have in common, which are read one after the other or in several threads
 * at a time: points of a sweep differ mostly in what does not concern the platform.
 *
 * A platform is found by its key, a text that says all that it was made from. It is lent, any
 * number of times at once, and constant; those that nobody has borrowed make room for others, the
 * one first that was given back first. */
#ifndef CS_SCENARIO_KEPT_PLATFORMS_H
#define CS_SCENARIO_KEPT_PLATFORMS_H

#include "topologies/platform.h"

typedef struct cs_kept_platforms cs_kept_platforms;

cs_kept_platforms *cs_kept_platforms_create(void); /* NULL when memory runs out */

/* When all are given back. Accepts NULL. */
void cs_kept_platforms_destroy(cs_kept_platforms *kept);

/* NULL: there is none with this key. */
const cs_platform *cs_kept_platforms_borrow(cs_kept_platforms *kept, const char *key);

/* Takes a platform over, and lends it, or the one that was added with this key meanwhile. NULL when
 * memory runs out: it stays the caller's. */
const cs_platform *cs_kept_platforms_add(cs_kept_platforms *kept, const char *key,
                                         cs_platform *platform);

void cs_kept_platforms_give_back(cs_kept_platforms *kept, const cs_platform *platform);

#endif

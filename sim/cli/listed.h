/* What `sim list` lists, by section: "schedules", "planners", "topologies", "models", "devices",
 * "sections", "figures", "points", "runtimes", "terms". */
#ifndef CS_CLI_LISTED_H
#define CS_CLI_LISTED_H

#include "sim/base/field.h"

#include <stdio.h>

/* Calls `found` with the name and the summary of each entry; false when there is no such section.
 */
bool cs_listed_each(const char *section,
                    void (*found)(void *context, const char *name, const char *summary),
                    void *context);

/* Prints the meaning of a word of the field (sim/base/terms.h). Returns false for other words. */
bool cs_listed_term(const char *word, FILE *out);

/* The parameters of an entry, ended by {0}, which may be in the arena; NULL for unknown
 * entries. */
const cs_field *cs_listed_fields(const char *section, const char *name, cs_arena *arena);

#endif

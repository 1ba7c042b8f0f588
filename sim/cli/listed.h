/* Entries of `sim list`, by section: "schedules", "planners", "topologies", "models", "devices",
 * "sections", "figures", "points", "runtimes", "terms". */
#ifndef CS_CLI_LISTED_H
#define CS_CLI_LISTED_H

#include "sim/base/field.h"

#include <stdio.h>

/* Calls `found` with the name and summary of each entry. Returns false if the section does not
 * exist.
 */
bool cs_listed_each(const char *section,
                    void (*found)(void *context, const char *name, const char *summary),
                    void *context);

/* Prints the meaning of a term (sim/base/terms.h). Returns false for other words. */
bool cs_listed_term(const char *word, FILE *out);

/* Returns the parameters of an entry, ended by {0}, which may be in the arena; NULL if the entry
 * does not exist. */
const cs_field *cs_listed_fields(const char *section, const char *name, cs_arena *arena);

#endif

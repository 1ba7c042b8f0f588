/* Words that people and other programs use for what has another name here, or does not exist:
 * facts/terms.json. All lookups of names print them (cs_guess in text.h); `sim list` and `sim help`
 * find them. */
#ifndef CS_BASE_TERMS_H
#define CS_BASE_TERMS_H

#include <stddef.h>

typedef struct cs_term {
    const char *const *words; /* ended by NULL, as is the next list */
    const char *const *means; /* "/parallel/zero: 3" of a scenario, "schedules/dp" of `sim list` */
    const char *text;         /* what it is here, in one clause */
} cs_term;

extern const cs_term cs_terms[]; /* ended by a row without words */

/* The term of a word, or NULL. Case does not matter, and a hyphen or a blank is an underscore. */
const cs_term *cs_term_find(const char *word);

/* Of the meanings, the name of one: what follows its last slash, "zero: 3". */
const char *cs_term_name(const char *meaning);

/* The name among the meanings that is `known`, perhaps with a value behind it; or NULL. */
const char *cs_term_meaning(const cs_term *term, const char *known);

/* Of two names that cs_term_meaning returned, either may be NULL, the one that is listed first. */
const char *cs_term_first(const cs_term *term, const char *a, const char *b);

/* The first key of a scenario that a word means, "/parallel/tensor", into `text`; `other` if there
 * is none. */
const char *cs_term_pointer(const char *word, const char *other, char *text, size_t size);

#endif

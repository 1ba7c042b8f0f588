/* Terms of the field that have another name in this program or that it lacks: facts/terms.json. All
 * lookups of names use them (cs_guess in text.h); `sim list` and `sim help` print them. */
#ifndef CS_BASE_TERMS_H
#define CS_BASE_TERMS_H

#include <stddef.h>

typedef struct cs_term {
    const char *const *words; /* NULL-terminated */
    /* NULL-terminated: "/parallel/zero: 3" in a scenario, "schedules/dp" in `sim list` */
    const char *const *means;
    const char *text; /* explanation, one clause */
} cs_term;

extern const cs_term cs_terms[]; /* the last row has no words */

/* Returns the term of a word, or NULL. Ignores case; treats hyphens and blanks as underscores. */
const cs_term *cs_term_find(const char *word);

/* Returns the name in a meaning: the part after its last slash, "zero: 3". */
const char *cs_term_name(const char *meaning);

/* Returns the name among the term's meanings that equals `known`, with or without a value; or
 * NULL. */
const char *cs_term_meaning(const cs_term *term, const char *known);

/* Returns whichever of two results of cs_term_meaning is listed first; each may be NULL. */
const char *cs_term_first(const cs_term *term, const char *a, const char *b);

/* Writes the first scenario key that a word means, "/parallel/tensor", into `text`. Returns `other`
 * if it means none. */
const char *cs_term_pointer(const char *word, const char *other, char *text, size_t size);

#endif

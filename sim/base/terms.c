#include "sim/base/terms.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static int letter(char c)
{
    return c == '-' || c == ' ' ? '_' : tolower((unsigned char)c);
}

const cs_term *cs_term_find(const char *word)
{
    for (const cs_term *term = cs_terms; term->words; term++) {
        for (const char *const *known = term->words; *known; known++) {
            size_t i = 0;
            while (word[i] && letter(word[i]) == (*known)[i])
                i++;
            if (!word[i] && !(*known)[i])
                return term;
        }
    }
    return NULL;
}

const char *cs_term_name(const char *meaning)
{
    const char *slash = meaning;
    for (const char *at = meaning; *at && *at != ':'; at++)
        slash = *at == '/' ? at + 1 : slash;
    return slash;
}

const char *cs_term_meaning(const cs_term *term, const char *known)
{
    const size_t length = strlen(known);
    for (const char *const *meaning = term->means; *meaning; meaning++) {
        const char *name = cs_term_name(*meaning);
        if (strncmp(name, known, length) == 0 && (name[length] == '\0' || name[length] == ':'))
            return name;
    }
    return NULL;
}

const char *cs_term_first(const cs_term *term, const char *a, const char *b)
{
    for (const char *const *meaning = term->means; *meaning; meaning++) {
        const char *name = cs_term_name(*meaning);
        if (name == a || name == b)
            return name;
    }
    return NULL;
}

const char *cs_term_pointer(const char *word, const char *other, char *text, size_t size)
{
    const cs_term *term = cs_term_find(word);
    for (const char *const *meaning = term ? term->means : NULL; meaning && *meaning; meaning++)
        if (**meaning == '/' &&
            snprintf(text, size, "%.*s", (int)strcspn(*meaning, ":"), *meaning) > 0)
            return text;
    return other;
}

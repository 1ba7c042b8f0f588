#include "plots/words.h"

#include "sim/base/text.h"
#include "sim/run/figures.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Turns a name into words: "micro_batches" becomes "micro-batches"; after "micro", "mini" and "all"
 * comes a hyphen, after other words a space. */
static void write_words(const char *name, size_t length, char *text, size_t size)
{
    static const char *const joined[] = {"micro", "mini", "all"};
    size_t begin = 0;
    cs_text_format(text, size, "%.*s", (int)length, name);
    for (size_t i = 0; text[i]; i++) {
        if (text[i] != '_')
            continue;
        text[i] = ' ';
        for (size_t j = 0; j < sizeof(joined) / sizeof(joined[0]); j++)
            if (i - begin == strlen(joined[j]) && strncmp(text + begin, joined[j], i - begin) == 0)
                text[i] = '-';
        begin = i + 1;
    }
}

static size_t without_unit(const char *key)
{
    const size_t length = strlen(key);
    size_t longest = 0;
    for (cs_unit unit = CS_UNIT_NUMBER; unit <= CS_UNIT_FLOP_PER_S; unit++) {
        const char *suffix = cs_unit_suffix(unit);
        const size_t end = strlen(suffix);
        if (unit != CS_UNIT_FRACTION && end > longest && end < length &&
            strcmp(key + length - end, suffix) == 0)
            longest = end;
    }
    return length - longest;
}

char *cs_words_of_figure(const char *key, char *text, size_t size)
{
    static const char *const words[] = {"closed_form", "difference"};
    const cs_run_figure *figure = cs_run_figure_find(key);
    if (figure) {
        snprintf(text, size, "%s", figure->label);
        return text;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const size_t length = strlen(words[i]);
        figure = strncmp(key, words[i], length) == 0 && key[length] == '_'
                     ? cs_run_figure_find(key + length + 1)
                     : NULL;
        if (!figure)
            continue;
        snprintf(text, size, "%s, %s", figure->label,
                 i == 0 ? "closed form" : "difference from the closed form");
        return text;
    }
    write_words(key, without_unit(key), text, size);
    return text;
}

/* Names that are meaningless without the previous part of the key, and names that have a different
 * usual wording. */
static const struct {
    const char *name;
    const char *words; /* NULL: use the previous part of the key, "schedule" in /schedule/kind */
} known[] = {
    {"kind", NULL},
    {"batch_size", "batch size (samples)"},
    {"micro_batch_size", "micro-batch size (samples)"},
};

char *cs_words_of_key(const char *pointer, char *text, size_t size)
{
    const char *slash = strrchr(pointer, '/'), *name = slash ? slash + 1 : pointer;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(name, known[i].name) != 0)
            continue;
        if (known[i].words) {
            snprintf(text, size, "%s", known[i].words);
            return text;
        }
        const char *before = slash;
        while (before > pointer && before[-1] != '/')
            before--;
        if (before > pointer) {
            write_words(before, (size_t)(slash - before), text, size);
            return text;
        }
    }
    write_words(name, strlen(name), text, size);
    return text;
}

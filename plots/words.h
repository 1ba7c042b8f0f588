/* Names of axes in words: "iteration time" of iteration_time_s, "micro-batches" of
 * /schedule/micro_batches. Internal to plots. */
#ifndef CS_PLOTS_WORDS_H
#define CS_PLOTS_WORDS_H

#include <stddef.h>

/* Of a figure: its label (sim/run/figures.h); of a sweep's other columns, such as those of closed
 * forms, the words of the name without its unit. Returns `text`. */
char *cs_words_of_figure(const char *key, char *text, size_t size);

/* Of a key of the scenario by its pointer: its last name in words; of names that say too little by
 * themselves (/schedule/kind) the one before as well. Returns `text`. */
char *cs_words_of_key(const char *pointer, char *text, size_t size);

#endif

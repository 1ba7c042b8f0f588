/* Turns names into words for axes: iteration_time_s into "iteration time", /schedule/micro_batches
 * into "micro-batches". Internal to plots. */
#ifndef CS_PLOTS_WORDS_H
#define CS_PLOTS_WORDS_H

#include <stddef.h>

/* Writes the name of a metric: its label (sim/run/figures.h). For other columns of a sweep, such as
 * closed forms, writes the words of the column's name without its unit. Returns `text`. */
char *cs_words_of_figure(const char *key, char *text, size_t size);

/* Writes the name of a scenario key, given its pointer: the last part of the pointer in words, or
 * the part before if the last one says too little, as in /schedule/kind. Returns `text`. */
char *cs_words_of_key(const char *pointer, char *text, size_t size);

#endif

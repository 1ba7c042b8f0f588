/* Regenerates figures and tables of papers: computes what is not there yet, draws, and writes one
 * report. */
#ifndef CS_FIGURES_MAKE_FIGURES_H
#define CS_FIGURES_MAKE_FIGURES_H

#include "papers/papers.h"
#include "sim/base/log.h"

typedef struct cs_figures_request {
    const char *const *ids; /* figures that are asked for, */
    size_t n_ids;           /* 0: all */
    const char *output;     /* folder; made if it is not there */
    const char *scenarios;  /* folder of the scenarios that are shipped */
    const char *program;    /* hash or version: another program computes anew */
    uint32_t jobs;
    const cs_log *log;
    const cs_progress *progress;
} cs_figures_request;

/* What came of them, for one line each. */
typedef struct cs_figure_outcome {
    const cs_paper_figure *figure;
    uint32_t n_claims, n_held;
    bool computed; /* or it was there before */
} cs_figure_outcome;

/* CS_OK where `ids` are all known; CS_USAGE names the unknown one, and what it may have meant. */
CS_MUST_CHECK cs_status cs_figures_check(const char *const *ids, size_t n, cs_error *error);

/* Writes report.md, report.html and the pictures into the folder, and calls `tell` for each figure.
 * Without gnuplot there are no pictures, and the log says so. What was computed when it fails or is
 * interrupted stays. */
CS_MUST_CHECK cs_status cs_figures_make(const cs_figures_request *request,
                                        void (*tell)(void *context,
                                                     const cs_figure_outcome *outcome),
                                        void *context, cs_error *error);

#endif

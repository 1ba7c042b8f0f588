/* The figures and tables of the papers that this program implements: what each is computed from,
 * and what is made of it.
 *
 * To add a figure: a row in the table of its paper (paper-cdp.c, ...), with a function that fills a
 * page.
 * To add a paper: a file with a `const cs_paper`, and a line in papers.c.
 */
#ifndef CS_FIGURES_PAPERS_H
#define CS_FIGURES_PAPERS_H

#include "papers/figure-page.h"

enum { CS_FIGURE_STUDIES = 5 };

typedef struct cs_paper_figure {
    const char *id;                             /* "cdp-fig4" */
    const char *title;                          /* one line */
    cs_study_source studies[CS_FIGURE_STUDIES]; /* the unused ones are zero */
    /* Fills the page; `studies` in the order of the above. */
    cs_status (*show)(const cs_study *studies, cs_page *page, cs_error *error);
} cs_paper_figure;

typedef struct cs_paper {
    const char *name;               /* "Cyclic data parallelism" */
    const char *source;             /* authors, title, where */
    const char *left_out;           /* what of it is not simulated: a sentence */
    const cs_paper_figure *figures; /* ended by one without an id */
} cs_paper;

/* Ended by NULL. */
extern const cs_paper *const cs_papers[];

extern const cs_paper cs_paper_cdp, cs_paper_timeprest, cs_paper_madpipe, cs_paper_osdp,
    cs_paper_paradl;

#endif

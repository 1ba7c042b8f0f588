/* The report of the papers' figures, in Markdown and in HTML at once. */
#ifndef CS_FIGURES_FIGURE_REPORT_H
#define CS_FIGURES_FIGURE_REPORT_H

#include "papers/papers.h"

#include <stdio.h>

typedef struct cs_figure_report {
    FILE *markdown, *html;
} cs_figure_report;

void cs_figure_report_begin(const cs_figure_report *report);
void cs_figure_report_paper(const cs_figure_report *report, const cs_paper *paper);

/* `pictures`: they were drawn. */
void cs_figure_report_page(const cs_figure_report *report, const cs_paper_figure *figure,
                           const cs_page *page, bool pictures);
void cs_figure_report_end(const cs_figure_report *report);

/* Claims of a page, and those that hold. */
uint32_t cs_figure_report_count(const cs_page *page, uint32_t *held);

#endif

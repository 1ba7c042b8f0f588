/* What the report says of one figure: claims of the paper beside what comes out here, pictures,
 * tables and sentences, in the order in which they are added.
 *
 * Functions that add something say nothing of failures: memory that runs out is remembered, and
 * told by cs_page_check. Texts are copied; charts are not, and live in the page's arena.
 */
#ifndef CS_FIGURES_FIGURE_PAGE_H
#define CS_FIGURES_FIGURE_PAGE_H

#include "papers/study.h"
#include "plots/plot-chart.h"

/* What a paper says of a number. */
typedef enum cs_relation {
    CS_IS,    /* equal, as far as the paper's digits go */
    CS_ABOUT, /* the same, but the paper says "about" */
    CS_ABOVE, /* more than, */
    CS_BELOW, /* less than, */
    CS_UP_TO, /* "up to": our largest value must be equal */
} cs_relation;

typedef struct cs_paper_claim {
    const char *what;  /* "GPUs, model parallelism, cyclic, N = 4" */
    const char *place; /* in the paper: "table 1", "section 5.2" */
    cs_relation relation;
    double paper, ours; /* NaN of ours: there is none */
    int decimals;       /* that the paper gives, and both are shown with */
    const char *unit;   /* " %", " GB", "" */
    const char *form;   /* what the paper has in place of a number, "N(N + 1)/2"; or NULL */
    const char *why;    /* the reason of a difference; shown only where there is one */
} cs_paper_claim;

/* Whether what comes out is what the paper says. */
bool cs_paper_claim_holds(const cs_paper_claim *claim);

typedef enum cs_page_block_kind {
    CS_BLOCK_TEXT,
    CS_BLOCK_CLAIMS,
    CS_BLOCK_TABLE,
    CS_BLOCK_CHART,
    CS_BLOCK_RUN, /* a time-slot diagram of a run */
} cs_page_block_kind;

typedef struct cs_page_block {
    cs_page_block_kind kind;
    const char *text; /* a paragraph; a table's title; what a picture shows */
    cs_paper_claim *claims;
    const char **rows; /* of a table: cells with tabs between; the first has the names */
    uint32_t n, capacity;
    const cs_chart *chart;
    const cs_study *study; /* of a run */
    uint32_t point;
    double until;     /* s */
    char picture[64]; /* name of its file */
} cs_page_block;

typedef struct cs_page {
    const char *id, *title; /* of the figure */
    cs_arena arena;
    cs_page_block *blocks;
    uint32_t n_blocks, capacity, n_pictures;
    bool out_of_memory;
} cs_page;

void cs_page_init(cs_page *page, const char *id, const char *title);
void cs_page_finish(cs_page *page);
CS_MUST_CHECK cs_status cs_page_check(const cs_page *page, cs_error *error);

/* A text of the page's; "" when memory runs out. */
const char *cs_page_format(cs_page *page, const char *format, ...) CS_PRINTF(2, 3);

/* `n` zeroed elements; NULL when memory runs out. */
void *cs_page_alloc(cs_page *page, size_t n, size_t size);

void cs_page_text(cs_page *page, const char *format, ...) CS_PRINTF(2, 3);
void cs_page_claim(cs_page *page, const cs_paper_claim *claim);

/* A table, and a row of the last one: cells with tabs between. */
void cs_page_table(cs_page *page, const char *title, const char *names);
void cs_page_row(cs_page *page, const char *format, ...) CS_PRINTF(2, 3);

/* A chart with so many panels, each with so many series of `length` points, all zeroed, whose
 * arrays are the caller's to fill: x[panel * n_series + series] and y, each of `length`. NULL when
 * memory runs out. */
typedef struct cs_chart_draft {
    cs_chart chart;
    cs_chart_panel *panels;
    cs_chart_series *series; /* [panel * n_series + series] */
    double **x, **y;
} cs_chart_draft;

cs_chart_draft *cs_page_draft(cs_page *page, uint32_t n_panels, uint32_t n_series, uint32_t length);

void cs_page_chart(cs_page *page, const cs_chart *chart);

/* Draws a run as boxes up to a time, s. */
void cs_page_run(cs_page *page, const cs_study *study, uint32_t point, double until,
                 const char *caption);

#endif

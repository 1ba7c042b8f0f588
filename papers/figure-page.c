#include "papers/figure-page.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool cs_paper_claim_holds(const cs_paper_claim *claim)
{
    const double half = 0.5 * pow(10, -claim->decimals);
    const double more = claim->ours - claim->paper;
    if (isnan(claim->ours))
        return false;
    switch (claim->relation) {
    case CS_ABOVE:
        return more > 0;
    case CS_BELOW:
        return more < 0;
    default:
        return fabs(more) <= half;
    }
}

void cs_page_init(cs_page *page, const char *id, const char *title)
{
    *page = (cs_page){.id = id, .title = title};
    cs_arena_init(&page->arena);
}

void cs_page_finish(cs_page *page)
{
    for (uint32_t i = 0; i < page->n_blocks; i++) {
        free(page->blocks[i].claims);
        free(page->blocks[i].rows);
    }
    free(page->blocks);
    cs_arena_finish(&page->arena);
    *page = (cs_page){0};
}

cs_status cs_page_check(const cs_page *page, cs_error *error)
{
    return page->out_of_memory ? cs_error_no_memory(error) : CS_OK;
}

/* ---- texts ---- */

static const char *format_list(cs_page *page, const char *format, va_list arguments)
{
    char text[4096];
    vsnprintf(text, sizeof(text), format, arguments);
    const char *copy = cs_arena_copy(&page->arena, text);
    page->out_of_memory = page->out_of_memory || !copy;
    return copy ? copy : "";
}

const char *cs_page_format(cs_page *page, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_list(page, format, arguments);
    va_end(arguments);
    return text;
}

void *cs_page_alloc(cs_page *page, size_t n, size_t size)
{
    void *data = cs_arena_alloc(&page->arena, n, size);
    page->out_of_memory = page->out_of_memory || !data;
    return data;
}

/* ---- blocks ---- */

static cs_page_block *add_block(cs_page *page, cs_page_block_kind kind, const char *text)
{
    if (!cs_vector_reserve((void **)&page->blocks, &page->capacity, page->n_blocks + 1ULL,
                           sizeof(*page->blocks))) {
        page->out_of_memory = true;
        return NULL;
    }
    cs_page_block *block = &page->blocks[page->n_blocks++];
    *block = (cs_page_block){.kind = kind, .text = cs_page_format(page, "%s", text)};
    return block;
}

void cs_page_text(cs_page *page, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_block(page, CS_BLOCK_TEXT, format_list(page, format, arguments));
    va_end(arguments);
}

static cs_page_block *find_claims(cs_page *page)
{
    for (uint32_t i = 0; i < page->n_blocks; i++)
        if (page->blocks[i].kind == CS_BLOCK_CLAIMS)
            return &page->blocks[i];
    return add_block(page, CS_BLOCK_CLAIMS, "");
}

void cs_page_claim(cs_page *page, const cs_paper_claim *claim)
{
    cs_page_block *block = find_claims(page);
    if (!block || !cs_vector_reserve((void **)&block->claims, &block->capacity, block->n + 1ULL,
                                     sizeof(*block->claims))) {
        page->out_of_memory = true;
        return;
    }
    block->claims[block->n++] = *claim;
}

void cs_page_table(cs_page *page, const char *title, const char *names)
{
    if (add_block(page, CS_BLOCK_TABLE, title))
        cs_page_row(page, "%s", names);
}

static cs_page_block *last_table(const cs_page *page)
{
    uint32_t i = page->n_blocks;
    while (i > 0 && page->blocks[i - 1].kind != CS_BLOCK_TABLE)
        i--;
    return i > 0 ? &page->blocks[i - 1] : NULL;
}

void cs_page_row(cs_page *page, const char *format, ...)
{
    cs_page_block *block = last_table(page);
    if (!block || !cs_vector_reserve((void **)&block->rows, &block->capacity, block->n + 1ULL,
                                     sizeof(*block->rows))) {
        page->out_of_memory = true;
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    block->rows[block->n++] = format_list(page, format, arguments);
    va_end(arguments);
}

static cs_page_block *add_picture(cs_page *page, cs_page_block_kind kind, const char *text)
{
    cs_page_block *block = add_block(page, kind, text);
    const uint32_t number = ++page->n_pictures;
    if (block && number == 1)
        snprintf(block->picture, sizeof(block->picture), "%.40s.svg", page->id);
    else if (block)
        snprintf(block->picture, sizeof(block->picture), "%.40s-%u.svg", page->id, number);
    return block;
}

cs_chart_draft *cs_page_draft(cs_page *page, uint32_t n_panels, uint32_t n_series, uint32_t length)
{
    const size_t n = (size_t)n_panels * n_series;
    cs_chart_draft *draft = cs_page_alloc(page, 1, sizeof(*draft));
    cs_chart_panel *panels = cs_page_alloc(page, n_panels, sizeof(*panels));
    cs_chart_series *series = cs_page_alloc(page, n, sizeof(*series));
    double **x = cs_page_alloc(page, 2 * n, sizeof(*x));
    double *values = cs_page_alloc(page, 2 * n * length, sizeof(*values));
    if (page->out_of_memory)
        return NULL;
    for (size_t i = 0; i < 2 * n; i++)
        x[i] = values + i * length;
    for (size_t i = 0; i < n; i++)
        series[i] = (cs_chart_series){.n = length, .x = x[i], .y = x[n + i]};
    for (uint32_t p = 0; p < n_panels; p++)
        panels[p] = (cs_chart_panel){"", n_series, series + (size_t)p * n_series};
    *draft =
        (cs_chart_draft){.chart = {.title = cs_page_format(page, "%s: %s", page->id, page->title),
                                   .subtitle = "",
                                   .x_title = "",
                                   .y_title = "",
                                   .n_panels = n_panels,
                                   .n_columns = n_panels,
                                   .panels = panels},
                         .panels = panels,
                         .series = series,
                         .x = x,
                         .y = x + n};
    return draft;
}

void cs_page_chart(cs_page *page, const cs_chart *chart)
{
    cs_page_block *block = add_picture(page, CS_BLOCK_CHART, chart->title);
    if (block)
        block->chart = chart;
}

void cs_page_run(cs_page *page, const cs_study *study, uint32_t point, double until,
                 const char *caption)
{
    cs_page_block *block = add_picture(page, CS_BLOCK_RUN, caption);
    if (!block)
        return;
    block->study = study;
    block->point = point;
    block->until = until;
}

#include "papers/make-figures.h"

#include "papers/figure-report.h"
#include "plots/plot.h"
#include "sim/base/file.h"
#include "sim/base/hash.h"
#include "sim/base/inputs.h"
#include "sim/base/temporary.h"
#include "sim/base/text-stream.h"
#include "sim/base/text.h"
#include "sim/run/store-run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_asked(const cs_figures_request *request, const cs_paper_figure *figure)
{
    for (size_t i = 0; i < request->n_ids; i++)
        if (strcmp(request->ids[i], figure->id) == 0)
            return true;
    return request->n_ids == 0;
}

static bool find(const char *id, cs_guess *guess)
{
    for (size_t p = 0; cs_papers[p]; p++)
        for (const cs_paper_figure *figure = cs_papers[p]->figures; figure->id; figure++) {
            if (strcmp(figure->id, id) == 0)
                return true;
            cs_guess_add(guess, figure->id);
        }
    return false;
}

cs_status cs_figures_check(const char *const *ids, size_t n, cs_error *error)
{
    for (size_t i = 0; i < n; i++) {
        cs_guess guess;
        cs_guess_init(&guess, ids[i]);
        if (!find(ids[i], &guess))
            return cs_error_add(error, CS_USAGE, "figures: --only: unknown figure %s",
                                cs_guess_text(&guess));
    }
    return CS_OK;
}

/* "FOLDER/NAME" and an ending. */
static cs_status join(char *path, size_t size, const char *folder, const char *name,
                      const char *ending, cs_error *error)
{
    if (snprintf(path, size, "%s/%s%s", folder, name, ending) < (int)size)
        return CS_OK;
    return cs_error_add(error, CS_USAGE, "figures: --output: name is too long");
}

/* ---- pictures ---- */

typedef struct work {
    const cs_figures_request *request;
    cs_study_place place;
    cs_figure_report report;
    bool pictures; /* gnuplot is there, as far as is known */
} work;

static cs_status store_run(const cs_page_block *block, const cs_study_place *place,
                           const char *path, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_simulation simulation = {0};
    cs_h5_file *file = NULL;
    cJSON *document;
    const cs_simulation_options how = {.progress = place->progress};
    CS_TRY(cs_study_document(block->study, block->point, &document, error));
    cs_status status = cs_scenario_read(document, block->study->path, &scenario, error);
    if (status == CS_OK)
        status = cs_simulate(&scenario, &how, &simulation, error);
    if (status == CS_OK)
        status = cs_h5_create(path, place->progress, &file, error);
    if (status == CS_OK)
        status = cs_simulation_store(file, &scenario, &simulation, NULL, error);
    if (status == CS_OK)
        status = cs_h5_commit(file, error);
    cs_h5_destroy(file);
    cs_simulation_finish(&simulation);
    cs_scenario_finish(&scenario);
    cJSON_Delete(document);
    return status;
}

static cs_status draw_run(const cs_page_block *block, const cs_study_place *place,
                          const char *output, cs_error *error)
{
    cs_temporary folder;
    char within[4096], path[sizeof(within) + sizeof("/run.h5")];
    CS_TRY(cs_temporary_folder(&folder, "sim-figures", error));
    cs_status status = cs_temporary_subfolder(&folder, "t", within, sizeof(within), error);
    snprintf(path, sizeof(path), "%s/run.h5", within);
    if (status == CS_OK)
        status = store_run(block, place, path, error);
    const cs_plot_options how = {
        .kind = "boxes", .input = path, .output = output, .until = block->until};
    if (status == CS_OK)
        status = cs_plot_draw(&how, error);
    cs_temporary_remove(&folder);
    return status;
}

static cs_status draw(const work *w, const cs_page_block *block, cs_error *error)
{
    char output[4096];
    if (block->kind != CS_BLOCK_CHART && block->kind != CS_BLOCK_RUN)
        return CS_OK;
    CS_TRY(join(output, sizeof(output), w->request->output, block->picture, "", error));
    return block->kind == CS_BLOCK_CHART ? cs_plot_chart_draw(block->chart, output, error)
                                         : draw_run(block, &w->place, output, error);
}

static cs_status draw_all(work *w, const cs_page *page, cs_error *error)
{
    for (uint32_t b = 0; b < page->n_blocks && w->pictures; b++) {
        cs_error why;
        cs_error_init(&why);
        const cs_status status = draw(w, &page->blocks[b], &why);
        if (status == CS_FAILED) {
            cs_log_write(w->request->log, CS_LOG_WARNING, "no pictures: %s", why.text);
            w->pictures = false;
        } else if (status != CS_OK) {
            cs_error_add_all(error, &why);
            return status;
        }
    }
    return CS_OK;
}

/* What the pictures of a figure were drawn from stands in a small file: if it says the same, they
 * are not drawn again. */
static bool is_drawn(const char *path, const char *key)
{
    char *text = NULL;
    size_t length = 0;
    const bool same =
        cs_file_read(path, 256, &text, &length, NULL) == CS_OK && strcmp(text, key) == 0;
    cs_inputs_allow(path);
    free(text);
    return same;
}

static cs_status draw_missing(work *w, const cs_study *studies, const cs_page *page, bool *drawn,
                              cs_error *error)
{
    char path[4096], key[32];
    uint64_t hash = 0;
    for (uint32_t i = 0; i < CS_FIGURE_STUDIES; i++)
        hash = cs_hash_bytes(&studies[i].identity, sizeof(studies[i].identity), hash);
    snprintf(key, sizeof(key), "%016" PRIx64 "\n", hash);
    CS_TRY(join(path, sizeof(path), w->place.journals, page->id, ".drawn", error));
    *drawn = !is_drawn(path, key);
    if (!*drawn)
        return CS_OK;
    CS_TRY(draw_all(w, page, error));
    return w->pictures ? cs_file_write(path, key, strlen(key), error) : CS_OK;
}

/* ---- figures ---- */

static cs_status fill_page(const cs_paper_figure *figure, const cs_study *studies, cs_page *page,
                           cs_error *error)
{
    CS_TRY(figure->show(studies, page, error));
    return cs_page_check(page, error);
}

static cs_status make_figure(work *w, const cs_paper_figure *figure, cs_figure_outcome *outcome,
                             cs_error *error)
{
    cs_study studies[CS_FIGURE_STUDIES] = {{0}};
    cs_page page;
    cs_status status = CS_OK;
    *outcome = (cs_figure_outcome){.figure = figure};
    cs_page_init(&page, figure->id, figure->title);
    for (uint32_t i = 0; i < CS_FIGURE_STUDIES && status == CS_OK; i++) {
        if (!figure->studies[i].scenario)
            continue;
        status = cs_study_make(&figure->studies[i], &w->place, &studies[i], error);
    }
    if (status == CS_OK)
        status = fill_page(figure, studies, &page, error);
    if (status == CS_OK)
        status = draw_missing(w, studies, &page, &outcome->computed, error);
    if (status == CS_OK) {
        cs_figure_report_page(&w->report, figure, &page, w->pictures);
        outcome->n_claims = cs_figure_report_count(&page, &outcome->n_held);
    }
    cs_page_finish(&page);
    for (uint32_t i = 0; i < CS_FIGURE_STUDIES; i++)
        cs_study_finish(&studies[i]);
    return status;
}

static cs_status make_all(work *w, void (*tell)(void *context, const cs_figure_outcome *outcome),
                          void *context, cs_error *error)
{
    cs_figure_report_begin(&w->report);
    for (size_t p = 0; cs_papers[p]; p++) {
        bool begun = false;
        for (const cs_paper_figure *figure = cs_papers[p]->figures; figure->id; figure++) {
            cs_figure_outcome outcome;
            if (!is_asked(w->request, figure))
                continue;
            if (!begun)
                cs_figure_report_paper(&w->report, cs_papers[p]);
            begun = true;
            CS_TRY(make_figure(w, figure, &outcome, error));
            tell(context, &outcome);
        }
    }
    cs_figure_report_end(&w->report);
    return CS_OK;
}

/* ---- files ---- */

static cs_status make_folder(const char *path, cs_error *error)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return CS_OK;
    return cs_error_system(error, CS_IO, path, "cannot make the folder", errno);
}

typedef struct draft {
    char *text;
    size_t length;
    FILE *out;
} draft;

/* Closes the stream; writes it as a file where all went well so far. */
static cs_status finish_draft(draft *d, const char *folder, const char *name, cs_status so_far,
                              cs_error *error)
{
    char path[4096];
    const bool bad = !d->out || fclose(d->out) != 0;
    cs_status status = so_far;
    if (status == CS_OK && bad)
        status = cs_error_no_memory(error);
    if (status == CS_OK)
        status = join(path, sizeof(path), folder, name, "", error);
    if (status == CS_OK)
        status = cs_file_write(path, d->text, d->length, error);
    free(d->text);
    return status;
}

cs_status cs_figures_make(const cs_figures_request *request,
                          void (*tell)(void *context, const cs_figure_outcome *outcome),
                          void *context, cs_error *error)
{
    char journals[4096];
    draft markdown = {0}, html = {0};
    CS_TRY(join(journals, sizeof(journals), request->output, "data", "", error));
    CS_TRY(make_folder(request->output, error));
    CS_TRY(make_folder(journals, error));
    markdown.out = cs_text_stream(&markdown.text, &markdown.length);
    html.out = cs_text_stream(&html.text, &html.length);
    work w = {
        .request = request,
        .place = {request->scenarios, journals, request->program, request->jobs, request->progress},
        .report = {markdown.out, html.out},
        .pictures = true};
    cs_status status =
        markdown.out && html.out ? make_all(&w, tell, context, error) : cs_error_no_memory(error);
    status = finish_draft(&markdown, request->output, "report.md", status, error);
    return finish_draft(&html, request->output, "report.html", status, error);
}

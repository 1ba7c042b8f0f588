#include "plots/page/report-page.h"

#include "plots/page/page-parts.h"
#include "plots/page/page-points.h"
#include "plots/page/page-run.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/version.h"
#include "sim/core/trace/results-reader.h"
#include "sim/core/trace/results-schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Everything that a page shows: runs, or one sweep or search followed by runs of some of its
 * points. */
typedef struct contents {
    cs_page_part parts[1 + CS_PAGE_RUNS_MAX];
    size_t n;
    bool points; /* the first part holds points */
} contents;

static void write_html(const char *text, FILE *out)
{
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = cs_text_character(text, left);
        if (strchr("<>&\"", *text))
            fprintf(out, "&#%d;", *text);
        else if (n == 0)
            fputc('?', out);
        else
            fwrite(text, 1, n, out);
        n += n == 0;
    }
}

static void write_head(const char *title, FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"",
          out);
    fputs(cs_page_policy, out);
    fputs("\">\n<title>", out);
    write_html(title, out);
    fprintf(out, "</title>\n<meta name=\"generator\" content=\"sim %s\">\n<style>\n", SIM_VERSION);
    fputs(cs_page_style, out);
    fputs("</style>\n</head>\n<body>\n<noscript>This report needs a browser that runs "
          "JavaScript.</noscript>\n",
          out);
}

static void write_programs(FILE *out)
{
    fputs("<script type=\"text/plain\" id=\"notices\">", out);
    fputs(cs_page_notices, out);
    fputs("</script>\n<script>", out);
    fputs(cs_page_library, out);
    fputs("</script>\n<script>", out);
    fputs(cs_page_program, out);
    fputs("</script>\n</body>\n</html>\n", out);
}

static cs_status write_page(const contents *all, FILE *out, cs_error *error)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(all->parts[0].json.root, "name");
    write_head(cJSON_IsString(name) ? name->valuestring : "report", out);
    for (size_t i = 0; i < all->n; i++)
        CS_TRY(cs_page_part_write(&all->parts[i], all->points && i == 0 ? "points" : "run", i, out,
                                  error));
    write_programs(out);
    return CS_OK;
}

static cs_status write_file(const contents *all, const char *output, cs_error *error)
{
    cs_file_draft draft;
    CS_TRY(cs_file_draft_begin(&draft, output, error));
    FILE *out = fopen(draft.temporary, "w");
    cs_status status = out ? write_page(all, out, error)
                           : cs_error_system(error, CS_IO, output, "cannot write", errno);
    const bool complete = out && !ferror(out);
    if (out && (fclose(out) != 0 || !complete) && status == CS_OK)
        status = cs_error_system(error, CS_IO, output, "cannot write", errno);
    if (status == CS_OK)
        status = cs_file_draft_commit(&draft, error);
    cs_file_draft_drop(&draft);
    return status;
}

/* Reads all files; the first may be a sweep or search. */
static cs_status read_all(const char *const *inputs, contents *all, cs_error *error)
{
    char format[64];
    for (size_t i = 0; i < all->n; i++) {
        CS_TRY(cs_reader_format(inputs[i], format, sizeof(format), error));
        const bool sweep = strcmp(format, CS_SWEEP_FORMAT) == 0;
        const bool plans = strcmp(format, CS_ADVICE_FORMAT) == 0;
        all->points |= i == 0 && (sweep || plans);
        CS_TRY(i == 0 && sweep   ? cs_page_sweep_read(inputs[i], &all->parts[i], error)
               : i == 0 && plans ? cs_page_plans_read(inputs[i], &all->parts[i], error)
                                 : cs_page_run_read(inputs[i], &all->parts[i], error));
    }
    return CS_OK;
}

cs_status cs_page_write(const char *const *inputs, size_t n, const char *output, cs_error *error)
{
    if (!*cs_page_library)
        return cs_error_add(error, CS_FAILED,
                            "report: this sim was built without D3; on Debian or Ubuntu install "
                            "node-d3-scale and node-d3-zoom, and build it again");
    contents all = {.n = n};
    cs_status status = CS_OK;
    if (n <= 1 + CS_PAGE_RUNS_MAX)
        status = read_all(inputs, &all, error);
    if (status == CS_OK && n > CS_PAGE_RUNS_MAX + (size_t)all.points)
        status = cs_error_add(error, CS_USAGE, "report: must be at most %d runs (got %zu)",
                              CS_PAGE_RUNS_MAX, n - all.points);
    if (status == CS_OK)
        status = write_file(&all, output, error);
    for (size_t i = 0; i < n && i <= CS_PAGE_RUNS_MAX; i++)
        cs_page_part_finish(&all.parts[i]);
    return status;
}

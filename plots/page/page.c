#include "plots/page/page.h"

#include "plots/page/page-parts.h"
#include "plots/page/page-run.h"
#include "sim/base/file.h"
#include "sim/base/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Everything that a page shows. */
typedef struct contents {
    cs_page_run runs[CS_PAGE_RUNS_MAX];
    size_t n_runs;
} contents;

/* JSON in a script element: no "<" of a text can end the element. */
static void write_json(const char *json, FILE *out)
{
    for (; *json; json++) {
        if (*json == '<')
            fputs("\\u003c", out);
        else
            fputc(*json, out);
    }
}

static void write_html(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (strchr("<>&\"", *text))
            fprintf(out, "&#%d;", *text);
        else
            fputc(*text, out);
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

static cs_status write_run(const cs_page_run *run, size_t i, FILE *out, cs_error *error)
{
    char id[16];
    char *json = cJSON_PrintUnformatted(run->json);
    if (!json)
        return cs_error_no_memory(error);
    fprintf(out, "<script type=\"application/json\" id=\"run-%zu\">", i);
    write_json(json, out);
    fputs("</script>\n", out);
    cJSON_free(json);
    snprintf(id, sizeof(id), "columns-%zu", i);
    return cs_packed_write(&run->packed, id, out, error);
}

static void write_programs(FILE *out)
{
    fputs("<script type=\"text/plain\" id=\"notices\">", out);
    write_json(cs_page_notices, out);
    fputs("</script>\n<script>", out);
    fputs(cs_page_library, out);
    fputs("</script>\n<script>", out);
    fputs(cs_page_program, out);
    fputs("</script>\n</body>\n</html>\n", out);
}

static cs_status write_page(const contents *all, FILE *out, cs_error *error)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(all->runs[0].json, "name");
    write_head(cJSON_IsString(name) ? name->valuestring : "report", out);
    for (size_t i = 0; i < all->n_runs; i++)
        CS_TRY(write_run(&all->runs[i], i, out, error));
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

cs_status cs_page_write(const char *const *inputs, size_t n, const char *output, cs_error *error)
{
    if (!*cs_page_library)
        return cs_error_add(error, CS_FAILED,
                            "report: this sim was built without D3; on Debian or Ubuntu install "
                            "node-d3-scale and node-d3-zoom, and build it again");
    if (n > CS_PAGE_RUNS_MAX)
        return cs_error_add(error, CS_USAGE, "report: must be at most %d results files (got %zu)",
                            CS_PAGE_RUNS_MAX, n);
    contents all = {.n_runs = n};
    cs_status status = CS_OK;
    for (size_t i = 0; i < n && status == CS_OK; i++)
        status = cs_page_run_read(inputs[i], &all.runs[i], error);
    if (status == CS_OK)
        status = write_file(&all, output, error);
    for (size_t i = 0; i < n; i++)
        cs_page_run_finish(&all.runs[i]);
    return status;
}

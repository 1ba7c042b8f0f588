#include "plots/page/report-page.h"
#include "sim/cli/command.h"
#include "sim/cli/output-name.h"

#include <stdlib.h>
#include <string.h>

static const cs_option options[] = {
    {"output", 'o', "FILE.html", "Page (default: INPUT.html)"},
    {0},
};

/* Returns the allocated name "INPUT.html", in the current folder. */
static char *output_name(const char *input)
{
    const char *slash = strrchr(input, '/');
    const char *name = slash ? slash + 1 : input;
    const char *dot = strrchr(name, '.');
    const size_t stem = dot ? (size_t)(dot - name) : strlen(name);
    const size_t bytes = stem + sizeof(".html");
    char *out = malloc(bytes);
    if (out)
        snprintf(out, bytes, "%.*s.html", (int)stem, name);
    return out;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    const char *given = cs_arguments_value(arguments, "output");
    if (given)
        CS_TRY(cs_output_check(arguments, "output", cs_endings_of_pages, error));
    char *output = given ? strdup(given) : output_name(arguments->words[0]);
    if (!output)
        return cs_error_no_memory(error);
    cs_status status = cs_page_write(arguments->words, arguments->n_words, output, error);
    if (status == CS_OK)
        cs_log_write(&context->log, CS_LOG_INFO, "wrote %s", output);
    free(output);
    return status;
}

const cs_command cs_command_report = {
    .name = "report",
    .words = "RESULTS.h5 [MORE.h5 ...] | SWEEP.h5 [RESULTS.h5 ...]",
    .min_words = 1,
    .max_words = 1 + CS_PAGE_RUNS_MAX,
    .summary = "make an interactive page for the browser",
    .doc = "Writes one HTML file that opens offline in any browser: a timeline to zoom into, "
           "with details of every task; memory over time, the critical path, why each device "
           "waits, links, weight versions, all metrics, and the scenario. Two to six results "
           "files are shown one below the other on one time axis, with the differences of their "
           "metrics.\n\n"
           "For the file of a sweep or of a search for plans: a sortable table of all points, "
           "lines, a heat map, and time against memory. Results files given after it belong to "
           "points, which then link to their runs.",
    .options = options,
    .run = run,
};

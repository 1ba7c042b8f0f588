#include "papers/make-figures.h"
#include "sim/base/beside.h"
#include "sim/base/file.h"
#include "sim/base/hash.h"
#include "sim/base/text.h"
#include "sim/base/version.h"
#include "sim/cli/command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FIGURES = 64, PROGRAM_BYTES = 1 << 30 };

static const cs_option options[] = {
    {"only", 0, "ID,...", "Only these figures (default: all)", true},
    {"output", 'o', "FOLDER", "Where report.md, report.html and pictures go (default: figures)"},
    {"scenarios", 0, "FOLDER",
     "Scenarios to compute the figures from (default: those that come with the program)"},
    {"list", 0, NULL, "List the figures"},
    CS_OPTION_JOBS,
    {0},
};

static void list_figures(FILE *out)
{
    for (size_t p = 0; cs_papers[p]; p++) {
        fprintf(out, "%s%s\n", p > 0 ? "\n" : "", cs_papers[p]->source);
        for (const cs_paper_figure *figure = cs_papers[p]->figures; figure->id; figure++)
            fprintf(out, "  %-22s %s\n", figure->id, figure->title);
    }
}

/* Names, separated by commas, of all --only; they point into `text`. */
static cs_status read_ids(const cs_arguments *arguments, char **text, const char **ids, size_t *n,
                          cs_error *error)
{
    const char *const *values;
    const size_t n_values = cs_arguments_values(arguments, "only", &values);
    size_t bytes = 1;
    for (size_t i = 0; i < n_values; i++)
        bytes += strlen(values[i]) + 1;
    if (!(*text = calloc(bytes, 1)))
        return cs_error_no_memory(error);
    for (size_t i = 0; i < n_values; i++)
        strcat(strcat(*text, values[i]), ",");
    char *rest = NULL;
    for (char *id = strtok_r(*text, ",", &rest); id; id = strtok_r(NULL, ",", &rest)) {
        if (*n == MOST_FIGURES)
            return cs_error_add(error, CS_USAGE, "figures: --only takes at most %d figures",
                                MOST_FIGURES);
        ids[(*n)++] = id;
    }
    return cs_figures_check(ids, *n, error);
}

/* What computes: the version, and the program's bytes where the system shows them. */
static void name_program(char *text, size_t size)
{
    char *bytes = NULL;
    size_t length = 0;
    uint64_t hash = 0;
    if (cs_file_read("/proc/self/exe", PROGRAM_BYTES, &bytes, &length, NULL) == CS_OK)
        hash = cs_hash_bytes(bytes, length, 0);
    free(bytes);
    snprintf(text, size, "%s %016" PRIx64, SIM_VERSION, hash);
}

static void tell(void *context, const cs_figure_outcome *outcome)
{
    fprintf(context, "%-22s %2u of %2u rows as in the paper%s\n", outcome->figure->id,
            outcome->n_held, outcome->n_claims, outcome->computed ? "" : " (was there)");
    fflush(context);
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    const char *ids[MOST_FIGURES], *given = cs_arguments_value(arguments, "scenarios");
    const char *output = cs_arguments_value(arguments, "output");
    char *text = NULL, program[64], shared[CS_BESIDE_BYTES];
    if (cs_arguments_flag(arguments, "list")) {
        list_figures(context->out);
        return CS_OK;
    }
    name_program(program, sizeof(program));
    cs_figures_request request = {.ids = ids,
                                  .output = output ? output : "figures",
                                  .scenarios =
                                      given ? given : cs_beside_shared("scenarios", shared),
                                  .program = program,
                                  .log = &context->log,
                                  .progress = context->progress};
    CS_TRY(cs_arguments_jobs(arguments, &request.jobs, error));
    cs_status status = read_ids(arguments, &text, ids, &request.n_ids, error);
    if (status == CS_OK)
        status = cs_figures_make(&request, tell, context->out, error);
    if (status == CS_OK) {
        fputs("\nreport: ", context->out);
        cs_text_puts(context->out, request.output);
        fputs("/report.html\n", context->out);
    }
    free(text);
    return status;
}

const cs_command cs_command_figures = {
    .name = "figures",
    .words = "",
    .summary = "regenerate figures and tables of five papers",
    .doc = "Computes figures and tables of papers whose schedules, planners and models `sim` has "
           "(--list), draws them, and writes one report in Markdown and HTML. For each figure a "
           "table gives the paper's claim and its place, the result here, the difference, and "
           "the reason.\n\n"
           "Results are kept in FOLDER/data: after Ctrl-C the same command continues, and a "
           "later one only recomputes what a new version of the program or a changed scenario "
           "affects. The report depends neither on the clock nor on --jobs. Without gnuplot "
           "there are no pictures.",
    .options = options,
    .run = run,
};

#include "plots/output.h"

#include "sim/base/file.h"
#include "sim/base/number.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Suffixes of output files, which are also the names of formats in common.gp. */
static const char *const terminals[] = {"svg", "png", "pdf"};

enum { N_TERMINALS = sizeof(terminals) / sizeof(terminals[0]) };

static cs_status find_terminal(const char *output, const char **terminal, cs_error *error)
{
    const char *name = strrchr(output, '/');
    const char *dot = strrchr(name ? name : output, '.');
    for (size_t i = 0; dot && i < N_TERMINALS; i++) {
        if (strcasecmp(dot + 1, terminals[i]) == 0) {
            *terminal = terminals[i];
            return CS_OK;
        }
    }
    return cs_error_add(error, CS_USAGE, "%s: the name must end in .svg, .png or .pdf", output);
}

cs_status cs_plot_output_check(const char *output, cs_error *error)
{
    const char *terminal;
    return find_terminal(output, &terminal, error);
}

/* Checks that the picture was written: gnuplot may fail to write it and still exit with status
 * 0. */
static cs_status check_written(const cs_file_draft *draft, cs_error *error)
{
    struct stat info;
    if (stat(draft->temporary, &info) == 0 && (info.st_size > 0 || !S_ISREG(info.st_mode)))
        return CS_OK;
    return cs_error_add(error, CS_IO, "%s: gnuplot wrote nothing; is the disk full?", draft->path);
}

static cs_status run(cs_plot_output_function *draw, const void *what, const char *terminal,
                     const char *path, cs_error *error)
{
    cs_gnuplot job;
    CS_TRY(cs_gnuplot_init(&job, error));
    cs_gnuplot_text(&job, "format", terminal);
    cs_status status = draw(what, &job, path, error);
    cs_gnuplot_finish(&job);
    return status;
}

cs_status cs_plot_output(cs_plot_output_function *draw, const void *what, const char *output,
                         cs_error *error)
{
    const char *terminal;
    cs_file_draft draft;
    CS_TRY(find_terminal(output, &terminal, error));
    CS_TRY(cs_file_draft_begin(&draft, output, error));
    /* gnuplot expects decimal points */
    cs_number_locale locale = cs_number_locale_enter();
    cs_status status = run(draw, what, terminal, draft.temporary, error);
    cs_number_locale_leave(locale);
    if (status == CS_OK)
        status = check_written(&draft, error);
    if (status == CS_OK)
        status = cs_file_draft_commit(&draft, error);
    cs_file_draft_drop(&draft);
    return status;
}

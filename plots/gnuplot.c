#include "plots/gnuplot.h"

#include "sim/base/beside.h"
#include "sim/base/number.h"
#include "sim/base/process.h"
#include "sim/base/text.h"
#include "sim/base/vector.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, SAID_BYTES = 1024 };

static const char parameters_name[] = "parameters.gp";
static const char said_name[] = "gnuplot.txt";

/* ---- the folder ---- */

FILE *cs_gnuplot_file(cs_gnuplot *job, const char *name)
{
    char path[PATH_BYTES];
    FILE *file = NULL;
    if (!cs_vector_reserve((void **)&job->files, &job->capacity, job->n_files + 1ULL,
                           sizeof(*job->files)))
        job->failure = ENOMEM;
    else if (cs_temporary_entry(&job->temporary, name, path, sizeof(path), NULL) != CS_OK)
        job->failure = ENAMETOOLONG;
    else if (!(file = fopen(path, "w")))
        job->failure = errno;
    if (!file)
        return job->parameters; /* writes are lost, as gnuplot will not run */
    job->files[job->n_files++] = file;
    return file;
}

/* Closes all files. Returns errno of the first failure, or 0. */
static int close_files(cs_gnuplot *job)
{
    int failure = job->failure;
    for (uint32_t i = 0; i < job->n_files; i++) {
        const bool failed = ferror(job->files[i]);
        const bool closed = fclose(job->files[i]) == 0;
        if (!failure && (failed || !closed))
            failure = closed ? EIO : errno;
    }
    free(job->files);
    job->files = NULL;
    job->n_files = job->capacity = 0;
    return failure;
}

cs_status cs_gnuplot_init(cs_gnuplot *job, cs_error *error)
{
    *job = (cs_gnuplot){0};
    CS_TRY(cs_temporary_folder(&job->temporary, "sim-plot", error));
    job->folder = job->temporary.folder;
    job->parameters = cs_gnuplot_file(job, parameters_name);
    if (job->parameters)
        return CS_OK;
    const int failure = job->failure;
    cs_status status =
        cs_error_system(error, CS_IO, job->folder, "cannot write a temporary file", failure);
    cs_gnuplot_finish(job);
    return status;
}

void cs_gnuplot_finish(cs_gnuplot *job)
{
    (void)close_files(job);
    cs_temporary_remove(&job->temporary);
    *job = (cs_gnuplot){0};
}

/* ---- parameters ---- */

/* gnuplot copies texts into SVG, where XML forbids "]]>", control characters, and U+FFFE and
 * U+FFFF, which are not characters. */
size_t cs_gnuplot_character(const char *text, size_t length, char shown[CS_GNUPLOT_CHARACTER])
{
    const size_t n = cs_text_character(text, length);
    const bool none =
        n == 3 && (memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0);
    if (n == 0 || none || (unsigned char)*text < ' ') {
        strcpy(shown, "?");
    } else if (length >= 3 && memcmp(text, "]]>", 3) == 0) {
        strcpy(shown, "] ");
    } else {
        memcpy(shown, text, n);
        shown[n] = '\0';
    }
    return n > 0 ? n : 1;
}

/* Writes a string in single quotes, in which gnuplot takes every character literally and '' as one
 * quote. */
static void put_quoted(cs_gnuplot *job, const char *name, const char *text, bool path)
{
    FILE *out = job->parameters;
    size_t length = strlen(text);
    fprintf(out, "%s = '", name);
    for (size_t at = 0, n; at < length; at += n) {
        char shown[CS_GNUPLOT_CHARACTER];
        const size_t alone = cs_text_character(text + at, length - at);
        n = cs_gnuplot_character(text + at, path && alone > 0 ? alone : length - at, shown);
        fputs(*shown == '\'' ? "''" : shown, out);
    }
    fputs("'\n", out);
}

void cs_gnuplot_text(cs_gnuplot *job, const char *name, const char *text)
{
    put_quoted(job, name, text, false);
}

void cs_gnuplot_path(cs_gnuplot *job, const char *name, const char *path)
{
    put_quoted(job, name, path, true);
}

void cs_gnuplot_number(cs_gnuplot *job, const char *name, double value)
{
    char text[CS_NUMBER_TEXT_BYTES];
    fprintf(job->parameters, "%s = %s\n", name, cs_number_format(value, text, sizeof(text)));
}

/* ---- running ---- */

/* Keeps only the line with the reason, otherwise the first line. gnuplot prints the command, a
 * caret below it, and then "FILE" line N: REASON; warnings look the same. */
static void pick_line(char *said)
{
    const char *reason = said + strspn(said, " \t\r\n\f");
    for (const char *line = said; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *place = strstr(line, " line "), *end = strchr(line, '\n');
        const char *warning = strstr(line, ": warning:");
        if (place && (!end || place < end) && !(warning && (!end || warning < end)))
            reason = line;
    }
    memmove(said, reason, strlen(reason) + 1);
    said[strcspn(said, "\n")] = '\0';
}

static void read_said(const char *path, char *said)
{
    FILE *in = fopen(path, "r");
    size_t length = in ? fread(said, 1, SAID_BYTES - 1, in) : 0;
    said[length] = '\0';
    if (in)
        fclose(in);
    pick_line(said);
}

/* Reports how gnuplot ended. `messages`: path of the file with gnuplot's output. */
static cs_status judge(const char *messages, const cs_process_end *end, const char *program,
                       cs_error *error)
{
    char said[SAID_BYTES];
    if (WIFEXITED(end->code) && WEXITSTATUS(end->code) == 0)
        return CS_OK;
    if (WIFSIGNALED(end->code))
        return cs_error_add(error, CS_FAILED, "gnuplot: %s: ended by signal %d", program,
                            WTERMSIG(end->code));
    read_said(messages, said);
    return cs_error_add(error, CS_FAILED, "gnuplot: %s: %s", program, *said ? said : "failed");
}

static cs_status run(const cs_gnuplot *job, const char *folder, const char *program,
                     cs_error *error)
{
    char parameters[PATH_BYTES], script[PATH_BYTES], said[PATH_BYTES];
    cs_process_end end;
    CS_TRY(cs_temporary_entry(&job->temporary, said_name, said, sizeof(said), error));
    const int length = snprintf(script, sizeof(script), "%s/%s", folder, program);
    snprintf(parameters, sizeof(parameters), "%s/%s", job->folder, parameters_name);
    if (length < 0 || (size_t)length >= sizeof(script))
        return cs_error_system(error, CS_IO, folder, "cannot be used", ENAMETOOLONG);
    if (access(script, R_OK) != 0)
        return cs_error_add(error, CS_FAILED,
                            "%s: cannot read; SIM_PLOTS_DIR can name the folder that holds %s",
                            script, program);
    /* --default-settings ignores the user's ~/.gnuplot */
    const char *const words[] = {"gnuplot", "--default-settings", parameters, script, NULL};
    const int code = cs_process_run(words, &(cs_process_how){.said = said}, &end);
    if (code == ENOENT)
        return cs_error_add(error, CS_FAILED,
                            "gnuplot: not found; plots need gnuplot 5.4 or later in the PATH");
    if (code)
        return cs_error_system(error, CS_IO, "gnuplot", "cannot start", code);
    return judge(said, &end, program, error);
}

cs_status cs_gnuplot_run(cs_gnuplot *job, const char *program, cs_error *error)
{
    char shared[CS_BESIDE_BYTES];
    const char *asked = getenv("SIM_PLOTS_DIR");
    const char *folder = asked && *asked ? asked : cs_beside_shared("plots", shared);
    cs_gnuplot_path(job, "programs", folder);
    cs_gnuplot_path(job, "folder", job->folder);
    const int failure = close_files(job);
    if (failure)
        return cs_error_system(error, CS_IO, job->folder, "cannot write a temporary file", failure);
    return run(job, folder, program, error);
}

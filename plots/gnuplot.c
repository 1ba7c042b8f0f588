#include "plots/gnuplot.h"

#include "sim/base/number.h"
#include "sim/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ; /* POSIX declares it in no header */

enum { PATH_BYTES = 4096, SAID_BYTES = 1024 };

static const char parameters_name[] = "parameters.gp";
static const char said_name[] = "gnuplot.txt";

/* ---- the folder ---- */

static const char *temporary_root(void)
{
    const char *root = getenv("TMPDIR");
    return root && *root ? root : "/tmp";
}

static bool join(char *path, const char *folder, const char *name)
{
    int length = snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    return length > 0 && length < PATH_BYTES;
}

cs_status cs_gnuplot_open(const cs_gnuplot *job, const char *name, FILE **out, cs_error *error)
{
    char path[PATH_BYTES];
    FILE *file = join(path, job->folder, name) ? fopen(path, "w") : NULL;
    if (!file)
        return cs_error_system(error, CS_IO, job->folder, "cannot write a temporary file", errno);
    *out = file;
    return CS_OK;
}

cs_status cs_gnuplot_close(FILE *out, const char *name, cs_error *error)
{
    bool failed = ferror(out);
    if (fclose(out) != 0)
        return cs_error_system(error, CS_IO, name, "cannot write this temporary file", errno);
    return failed ? cs_error_system(error, CS_IO, name, "cannot write this temporary file", EIO)
                  : CS_OK;
}

cs_status cs_gnuplot_init(cs_gnuplot *job, cs_error *error)
{
    char path[PATH_BYTES];
    *job = (cs_gnuplot){0};
    if (!join(path, temporary_root(), "sim-plot-XXXXXX"))
        return cs_error_system(error, CS_IO, "TMPDIR", "cannot be used", ENAMETOOLONG);
    if (!mkdtemp(path))
        return cs_error_system(error, CS_IO, path, "cannot create a temporary folder", errno);
    job->folder = strdup(path);
    if (!job->folder) {
        rmdir(path);
        return cs_error_no_memory(error);
    }
    cs_status status = cs_gnuplot_open(job, parameters_name, &job->parameters, error);
    if (status != CS_OK)
        cs_gnuplot_finish(job);
    return status;
}

static void remove_folder(const char *folder)
{
    char path[PATH_BYTES];
    DIR *list = opendir(folder);
    if (!list)
        return;
    for (struct dirent *entry; (entry = readdir(list));) {
        if (entry->d_name[0] != '.' && join(path, folder, entry->d_name))
            unlink(path);
    }
    closedir(list);
    rmdir(folder);
}

void cs_gnuplot_finish(cs_gnuplot *job)
{
    if (job->parameters)
        fclose(job->parameters);
    if (job->folder)
        remove_folder(job->folder);
    free(job->folder);
    *job = (cs_gnuplot){0};
}

/* ---- parameters ---- */

/* In single quotes gnuplot takes everything as it is, and '' as one quote. */
void cs_gnuplot_text(cs_gnuplot *job, const char *name, const char *text)
{
    FILE *out = job->parameters;
    size_t length = strlen(text);
    fprintf(out, "%s = '", name);
    for (size_t at = 0, n; at < length; at += n) {
        n = cs_text_character(text + at, length - at);
        if (n == 0 || (unsigned char)text[at] < ' ') {
            fputc('?', out);
            n = 1;
        } else if (text[at] == '\'') {
            fputs("''", out);
        } else {
            fwrite(text + at, 1, n, out);
        }
    }
    fputs("'\n", out);
}

void cs_gnuplot_number(cs_gnuplot *job, const char *name, double value)
{
    char text[CS_NUMBER_TEXT_BYTES];
    fprintf(job->parameters, "%s = %s\n", name, cs_number_format(value, text, sizeof(text)));
}

/* ---- running ---- */

/* gnuplot shows the command, a caret below it, and then "FILE" line N: REASON; warnings look the
 * same. Leaves the line that has the reason, or else the first. */
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

static void read_said(const cs_gnuplot *job, char *said)
{
    char path[PATH_BYTES];
    FILE *in = join(path, job->folder, said_name) ? fopen(path, "r") : NULL;
    size_t length = in ? fread(said, 1, SAID_BYTES - 1, in) : 0;
    said[length] = '\0';
    if (in)
        fclose(in);
    pick_line(said);
}

static int prepare(const cs_gnuplot *job, posix_spawn_file_actions_t *actions)
{
    char said[PATH_BYTES];
    if (!join(said, job->folder, said_name))
        return ENAMETOOLONG;
    int code = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (code == 0)
        code = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, said,
                                                O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return code ? code : posix_spawn_file_actions_adddup2(actions, STDOUT_FILENO, STDERR_FILENO);
}

/* 0 and the process, or an error number. */
static int start(const cs_gnuplot *job, char *const *arguments, pid_t *process)
{
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return code;
    code = prepare(job, &actions);
    if (code == 0)
        code = posix_spawnp(process, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static cs_status wait_for(const cs_gnuplot *job, pid_t process, const char *program,
                          cs_error *error)
{
    int result;
    pid_t ended;
    do
        ended = waitpid(process, &result, 0);
    while (ended < 0 && errno == EINTR);
    if (ended < 0)
        return cs_error_system(error, CS_IO, "gnuplot", "cannot wait for it", errno);
    if (WIFEXITED(result) && WEXITSTATUS(result) == 0)
        return CS_OK;
    if (WIFSIGNALED(result))
        return cs_error_add(error, CS_FAILED, "gnuplot: %s: ended by signal %d", program,
                            WTERMSIG(result));
    char said[SAID_BYTES];
    read_said(job, said);
    return cs_error_add(error, CS_FAILED, "gnuplot: %s: %s", program, *said ? said : "failed");
}

static cs_status run(const cs_gnuplot *job, const char *folder, const char *program,
                     cs_error *error)
{
    char parameters[PATH_BYTES], script[PATH_BYTES];
    if (!join(parameters, job->folder, parameters_name) || !join(script, folder, program))
        return cs_error_system(error, CS_IO, folder, "cannot be used", ENAMETOOLONG);
    if (access(script, R_OK) != 0)
        return cs_error_add(error, CS_FAILED,
                            "%s: cannot read; SIM_PLOTS_DIR can name the folder that holds %s",
                            script, program);
    char name[] = "gnuplot", plain[] = "--default-settings"; /* not the user's ~/.gnuplot */
    char *arguments[] = {name, plain, parameters, script, NULL};
    pid_t process;
    int code = start(job, arguments, &process);
    if (code == ENOENT)
        return cs_error_add(error, CS_FAILED,
                            "gnuplot: not found; plots need gnuplot 5.4 or later in the PATH");
    if (code)
        return cs_error_system(error, CS_IO, "gnuplot", "cannot start", code);
    return wait_for(job, process, program, error);
}

/* Where the programs are: where the user says, where they were installed, or, in a build that was not
 * installed, where they were written. */
static const char *programs_folder(void)
{
    const char *folder = getenv("SIM_PLOTS_DIR");
    if (folder && *folder)
        return folder;
    return access(CS_PLOTS_DIR, R_OK) == 0 ? CS_PLOTS_DIR : CS_PLOTS_SOURCE_DIR;
}

cs_status cs_gnuplot_run(cs_gnuplot *job, const char *program, cs_error *error)
{
    const char *folder = programs_folder();
    cs_gnuplot_text(job, "programs", folder);
    cs_gnuplot_text(job, "folder", job->folder);
    FILE *parameters = job->parameters;
    job->parameters = NULL;
    cs_status status = cs_gnuplot_close(parameters, parameters_name, error);
    return status == CS_OK ? run(job, folder, program, error) : status;
}

#include "sim/cli/bench-program.h"

#include "sim/base/beside.h"
#include "sim/base/file.h"
#include "sim/base/process.h"
#include "sim/base/temporary.h"
#include "sim/study/team/launch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- finding it ---- */

/* From the folder of `sim` itself. */
static const char *const places[] = {".", "../../calib/bench", "../libexec/sim", NULL};

static cs_status find(const char *backend, char *path, size_t size, cs_error *error)
{
    const char *asked = getenv("SIM_BENCH_DIR");
    char name[64];
    snprintf(name, sizeof(name), "sim-bench-%s", backend);
    const int length = asked ? snprintf(path, size, "%s/%s", asked, name) : -1;
    if (length > 0 && (size_t)length < size && access(path, X_OK) == 0)
        return CS_OK;
    if (cs_beside_find(name, places, X_OK, path, size))
        return CS_OK;
    if (strcmp(backend, "cuda") == 0)
        return cs_error_add(error, CS_FAILED,
                            "there is no program sim-bench-cuda: install the CUDA toolkit with "
                            "cuBLAS and cuDNN, and build again (meson setup --reconfigure "
                            "-Dcuda=enabled build reports what it lacks)");
    return cs_error_add(
        error, CS_FAILED,
        "there is no program sim-bench-%s: install OpenBLAS and an MPI (Debian: "
        "libopenblas-dev libopenmpi-dev openmpi-bin), and build again (meson setup "
        "--reconfigure -Dopenblas=enabled -Dmpi=enabled build reports what it lacks)",
        backend);
}

/* ---- the request ---- */

typedef struct line {
    char text[1024];
    size_t used;
} line;

static void add_character(line *to, char c)
{
    if (to->used + 1 < sizeof(to->text))
        to->text[to->used++] = c;
}

/* As a shell takes it: in quotes where it has more than plain characters. */
static void add_word(line *to, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./,:=+@%";
    const bool quoted = word[0] == '\0' || word[strspn(word, plain)] != '\0';
    if (to->used > 0)
        add_character(to, ' ');
    if (quoted)
        add_character(to, '\'');
    for (const char *c = word; *c; c++) {
        for (const char *q = "'\\'"; *c == '\'' && *q; q++)
            add_character(to, *q);
        add_character(to, *c);
    }
    if (quoted)
        add_character(to, '\'');
}

static void add_option(line *to, const cs_arguments *arguments, size_t k)
{
    char name[80];
    snprintf(name, sizeof(name), "--%s", cs_command_option(arguments->command, k)->name);
    for (size_t v = 0; v < arguments->options[k].n; v++) {
        const char *value = arguments->options[k].values[v];
        add_word(to, name);
        if (value[0])
            add_word(to, value);
    }
}

/* What was typed. */
static void add_command(line *to, const cs_arguments *arguments)
{
    add_word(to, "sim");
    add_word(to, arguments->command->name);
    for (size_t i = 0; i < arguments->n_words; i++)
        add_word(to, arguments->words[i]);
    for (size_t k = 0; cs_command_option(arguments->command, k); k++)
        add_option(to, arguments, k);
}

/* A folder that is not there is found now, not when everything is measured. */
static cs_status check_output(const char *path, cs_error *error)
{
    cs_file_draft draft = {0};
    if (strcmp(path, "-") == 0)
        return CS_OK;
    cs_status status = cs_file_draft_begin(&draft, path, error);
    if (status == CS_OK)
        cs_file_draft_drop(&draft);
    return status;
}

/* A file for the request; the caller removes it. */
static cs_status write_request(const cs_arguments *arguments, const cs_request *asked,
                               cs_temporary *file, cs_error *error)
{
    cs_request request = *asked;
    line command = {.used = 0};
    char date[16];
    time_t now = time(NULL);
    struct tm day;
    add_command(&command, arguments);
    strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &day));
    request.command = command.text;
    request.date = date;
    request.progress = isatty(STDERR_FILENO) == 1;
    char *json = cs_request_print(&request);
    cs_status status = json ? cs_temporary_file(file, "sim-request", json, strlen(json), error)
                            : cs_error_no_memory(error);
    free(json);
    return status;
}

/* ---- running it ---- */

/* Open MPI refuses to start as root, to start more processes than cores, binds them where it likes
 * (programs bind themselves), and says at length that a program failed. Told to end, it waits twice
 * for so many seconds before it kills its processes; by then they have ended by themselves, as they
 * were told to. Other MPIs take no notice of these. OpenBLAS starts its threads while it is loaded,
 * each with a work space that a small machine may not have; one computes. */
static bool set_environment(void)
{
    static const char *const settings[][2] = {{"OPENBLAS_NUM_THREADS", "1"},
                                              {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                              {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                              {"OMPI_MCA_orte_execute_quiet", "1"},
                                              {"OMPI_MCA_odls_base_sigkill_timeout", "0"},
                                              {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                              {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
    size_t n = sizeof(settings) / sizeof(settings[0]) - (geteuid() == 0 ? 0 : 2);
    bool set = true;
    for (size_t i = 0; i < n; i++)
        set &= setenv(settings[i][0], settings[i][1], 0) == 0;
    return set;
}

/* What the program has told of itself is told once. One that is alone always does. */
static cs_status judge(const cs_process_end *end, bool listened, const char *program,
                       cs_error *error)
{
    const int code = WEXITSTATUS(end->code);
    if (WIFEXITED(end->code) && code == 0)
        return CS_OK;
    if (end->told)
        return cs_error_add(error, CS_INTERRUPTED, "interrupted");
    if (WIFSIGNALED(end->code))
        return cs_error_add(error, CS_FAILED, "%s was ended by signal %d (%s)", program,
                            WTERMSIG(end->code), strsignal(WTERMSIG(end->code)));
    if (listened && !end->said_error)
        return cs_error_add(error, CS_FAILED,
                            "%s ended with exit code %d and gave no error message "
                            "(OMPI_MCA_orte_execute_quiet=0 lets Open MPI say more)",
                            program, code);
    for (int status = CS_FAILED; status <= CS_INTERRUPTED; status++)
        if (cs_status_exit_code((cs_status)status) == code)
            return (cs_status)status;
    return listened ? CS_FAILED
                    : cs_error_add(error, CS_FAILED, "%s ended with exit code %d", program, code);
}

/* Each process of a job that is already there would start a job of its own. */
static cs_status check_alone(cs_error *error)
{
    const cs_launch launch = cs_launch_find();
    if (launch.size <= 1)
        return CS_OK;
    return cs_error_add(error, CS_USAGE,
                        "sim was started as %u processes (%s): start it once, it starts the others "
                        "itself by mpirun, or by what --launcher says",
                        launch.size, launch.variable);
}

static cs_status start(const char *const *words, bool listen, cs_error *error)
{
    cs_process_end end;
    if (!set_environment())
        return cs_error_no_memory(error);
    int code = cs_process_run(words, &(cs_process_how){.listen = listen, .gentle = true}, &end);
    if (code != 0)
        return cs_error_add(error, CS_FAILED, "%s: cannot start: %s%s", words[0], strerror(code),
                            code == ENOENT && strcmp(words[0], "mpirun") == 0
                                ? " (an MPI is needed to start several processes; Debian: "
                                  "openmpi-bin)"
                                : "");
    return judge(&end, listen, words[0], error);
}

/* What starts processes keeps sockets and lists in $TMPDIR, and leaves them there if it is killed
 * while it starts: so its $TMPDIR is a folder of ours, which is removed with its contents. Its
 * name is short because the path of a socket has at most 107 bytes. (Open MPI has settings of its
 * own for this, but the one for this host alone fails in version 4.) */
static cs_status start_within(const char *const *words, cs_error *error)
{
    const char *asked = getenv("TMPDIR");
    char *before = asked ? strdup(asked) : NULL;
    char path[PATH_MAX];
    cs_temporary folder;
    if (asked && !before)
        return cs_error_no_memory(error);
    cs_status status = cs_temporary_folder(&folder, "sim-mpi", error);
    if (status == CS_OK)
        status = cs_temporary_subfolder(&folder, "t", path, sizeof(path), error);
    if (status == CS_OK && setenv("TMPDIR", path, 1) != 0)
        status = cs_error_no_memory(error);
    if (status == CS_OK)
        status = start(words, true, error);
    if (before ? setenv("TMPDIR", before, 1) != 0 : unsetenv("TMPDIR") != 0)
        status = status == CS_OK ? cs_error_no_memory(error) : status;
    cs_temporary_remove(&folder);
    free(before);
    return status;
}

/* The option --launcher of commands that have it. */
static const char *launcher_of(const cs_arguments *arguments)
{
    for (size_t k = 0; cs_command_option(arguments->command, k); k++)
        if (strcmp(cs_command_option(arguments->command, k)->name, "launcher") == 0)
            return cs_arguments_value(arguments, "launcher");
    return NULL;
}

/* "mpirun --hostfile hosts", divided at blanks, then -n, their number and the program. */
static cs_status start_together(const char *launcher, uint32_t processes,
                                const char *const *program, cs_error *error)
{
    enum { WORDS_MAX = 64, PROGRAM_WORDS = 3 };
    char text[1024], number[16], *rest;
    const char *words[WORDS_MAX + PROGRAM_WORDS + 3];
    size_t count = 0;
    if ((size_t)snprintf(text, sizeof(text), "%s", launcher ? launcher : "mpirun") >= sizeof(text))
        return cs_error_add(error, CS_USAGE, "--launcher is too long");
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (count == WORDS_MAX)
            return cs_error_add(error, CS_USAGE, "--launcher has more than %d words", WORDS_MAX);
        words[count++] = word;
    }
    if (count == 0)
        return cs_error_add(error, CS_USAGE, "--launcher is empty");
    snprintf(number, sizeof(number), "%u", processes);
    words[count++] = "-n";
    words[count++] = number;
    for (size_t i = 0; i < PROGRAM_WORDS; i++)
        words[count++] = program[i];
    words[count] = NULL;
    CS_TRY(check_alone(error));
    /* others may hand $TMPDIR on to hosts that have no such folder, and that would keep it */
    const bool here = !launcher && !getenv("SLURM_JOB_ID");
    return here ? start_within(words, error) : start(words, true, error);
}

cs_status cs_bench_program_run(const char *backend, const char *mode, uint32_t processes,
                               const cs_arguments *arguments, const cs_request *request,
                               cs_error *error)
{
    char program[PATH_MAX];
    cs_temporary file;
    CS_TRY(find(backend, program, sizeof(program), error));
    CS_TRY(check_output(request->output, error));
    CS_TRY(write_request(arguments, request, &file, error));
    const char *const words[] = {program, mode, file.path, NULL};
    cs_status status = processes > 0
                           ? start_together(launcher_of(arguments), processes, words, error)
                           : start(words, false, error);
    cs_temporary_remove(&file);
    if (status != CS_OK &&
        strcmp(request->output, "-") != 0) /* mpirun may have killed the writer */
        cs_file_clear_drafts(request->output);
    return status;
}

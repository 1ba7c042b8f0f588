#include "sim/cli/bench-program.h"

#include "sim/base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- finding it ---- */

/* From the folder of `sim` itself. */
static const char *const places[] = {".", "../../calib/bench", "../libexec/sim"};

static bool own_folder(char *folder, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    if (length <= 0)
        return false;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

static bool is_there(char *path, size_t size, const char *folder, const char *place,
                     const char *backend)
{
    int length = snprintf(path, size, "%s/%s/sim-bench-%s", folder, place, backend);
    return length > 0 && (size_t)length < size && access(path, X_OK) == 0;
}

static cs_status find(const char *backend, char *path, size_t size, cs_error *error)
{
    const char *asked = getenv("SIM_BENCH_DIR");
    char folder[PATH_MAX];
    if (asked && is_there(path, size, asked, ".", backend))
        return CS_OK;
    bool known = own_folder(folder, sizeof(folder));
    for (size_t i = 0; known && i < sizeof(places) / sizeof(places[0]); i++)
        if (is_there(path, size, folder, places[i], backend))
            return CS_OK;
    if (strcmp(backend, "cuda") == 0)
        return cs_error_add(error, CS_FAILED,
                            "there is no program sim-bench-cuda: install the CUDA toolkit with "
                            "cuBLAS and cuDNN, and build again (meson setup --reconfigure "
                            "-Dcuda=enabled build says what it misses)");
    return cs_error_add(error, CS_FAILED,
                        "there is no program sim-bench-%s: install OpenBLAS and an MPI (Debian: "
                        "libopenblas-dev libopenmpi-dev openmpi-bin), and build again (meson setup "
                        "--reconfigure -Dopenblas=enabled -Dmpi=enabled build says what it misses)",
                        backend);
}

/* ---- the request ---- */

static bool add_texts(const cs_arguments *arguments, cJSON *request)
{
    char command[1024], date[16];
    time_t now = time(NULL);
    struct tm day;
    size_t used = (size_t)snprintf(command, sizeof(command), "sim %s", arguments->command->name);
    for (size_t i = 0; i < arguments->n_words && used < sizeof(command); i++)
        used +=
            (size_t)snprintf(command + used, sizeof(command) - used, " %s", arguments->words[i]);
    for (size_t k = 0; cs_command_option(arguments->command, k); k++)
        for (size_t v = 0; v < arguments->options[k].n && used < sizeof(command); v++)
            used += (size_t)snprintf(command + used, sizeof(command) - used, " --%s%s%s",
                                     cs_command_option(arguments->command, k)->name,
                                     arguments->options[k].values[v][0] ? " " : "",
                                     arguments->options[k].values[v]);
    strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&now, &day));
    return cJSON_AddStringToObject(request, "command", command) &&
           cJSON_AddStringToObject(request, "date", date);
}

/* A new file for the request; the caller removes it. */
static cs_status write_request(const cJSON *request, char *path, size_t size, cs_error *error)
{
    const char *folder = getenv("TMPDIR");
    char *json = cs_json_print(request);
    if (!json)
        return cs_error_no_memory(error);
    snprintf(path, size, "%s/sim-request-XXXXXX", folder ? folder : "/tmp");
    int descriptor = mkstemp(path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    bool written = file && fputs(json, file) >= 0;
    if (file && fclose(file) != 0)
        written = false;
    free(json);
    if (written)
        return CS_OK;
    if (descriptor >= 0)
        unlink(path);
    return cs_error_add(error, CS_IO, "%s: %s", path, strerror(errno));
}

/* ---- running it ---- */

/* Open MPI refuses to start as root, to start more processes than cores, binds them where it likes
 * (programs bind themselves), and says at length that a program failed. Other MPIs take no notice of
 * these. */
static bool set_environment(void)
{
    static const char *const settings[][2] = {{"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                              {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                              {"OMPI_MCA_orte_execute_quiet", "1"},
                                              {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                              {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
    size_t n = sizeof(settings) / sizeof(settings[0]) - (geteuid() == 0 ? 0 : 2);
    bool set = true;
    for (size_t i = 0; i < n; i++)
        set &= setenv(settings[i][0], settings[i][1], 0) == 0;
    return set;
}

/* Hands on what the program writes to standard error, line by line, until it has ended. Returns
 * whether one of them was an error's. */
static bool hand_on(FILE *from)
{
    static const char error[] = "sim: error: ";
    char *line = NULL;
    size_t size = 0;
    bool said = false;
    ssize_t length;
    while ((length = getline(&line, &size, from)) >= 0 || (ferror(from) && errno == EINTR)) {
        clearerr(from);
        if (length < 0)
            continue;
        said |= strncmp(line, error, sizeof(error) - 1) == 0;
        (void)fwrite(line, 1, (size_t)length, stderr);
    }
    free(line);
    return said;
}

/* A failure that the program has told of itself is told once. */
static cs_status wait_for(pid_t child, const char *program, bool said, cs_error *error)
{
    int code = 0;
    while (waitpid(child, &code, 0) < 0)
        if (errno != EINTR)
            return cs_error_add(error, CS_FAILED, "waitpid: %s", strerror(errno));
    if (WIFEXITED(code) && WEXITSTATUS(code) == 0)
        return CS_OK;
    if (WIFSIGNALED(code))
        return cs_error_add(error, CS_FAILED, "%s was ended by signal %d (%s)", program,
                            WTERMSIG(code), strsignal(WTERMSIG(code)));
    for (int status = CS_FAILED; said && status <= CS_INTERRUPTED; status++)
        if (cs_status_exit_code((cs_status)status) == WEXITSTATUS(code))
            return (cs_status)status;
    return said ? CS_FAILED
                : cs_error_add(error, CS_FAILED,
                               "%s ended with exit code %d and told no error "
                               "(OMPI_MCA_orte_execute_quiet=0 lets Open MPI say more)",
                               program, WEXITSTATUS(code));
}

/* Starts a program whose standard error comes out of `messages`; an error number. */
static int spawn(char *const *words, pid_t *child, FILE **messages)
{
    posix_spawn_file_actions_t actions;
    int ends[2], code;
    if (pipe(ends) != 0)
        return errno;
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    *messages = fdopen(ends[0], "r");
    code = *messages ? posix_spawn_file_actions_init(&actions) : errno;
    if (code == 0) {
        code = posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
        if (code == 0 && ends[1] != STDERR_FILENO)
            code = posix_spawn_file_actions_addclose(&actions, ends[1]);
        if (code == 0)
            code = posix_spawnp(child, words[0], &actions, NULL, words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (code != 0 && *messages)
        fclose(*messages);
    else if (code != 0)
        close(ends[0]);
    return code;
}

static cs_status start(char *const *words, cs_error *error)
{
    pid_t child;
    FILE *messages = NULL;
    if (!set_environment())
        return cs_error_no_memory(error);
    int code = spawn(words, &child, &messages);
    if (code != 0)
        return cs_error_add(error, CS_FAILED, "%s: %s%s", words[0], strerror(code),
                            strcmp(words[0], "mpirun") == 0
                                ? " (an MPI is needed to start several processes; Debian: "
                                  "openmpi-bin)"
                                : "");
    const bool said = hand_on(messages);
    fclose(messages);
    return wait_for(child, words[0], said, error);
}

cs_status cs_bench_program_run(const char *backend, const char *mode, uint32_t processes,
                               const cs_arguments *arguments, cJSON *request, cs_error *error)
{
    char program[PATH_MAX], path[PATH_MAX], number[16], name[32];
    cs_status status = find(backend, program, sizeof(program), error);
    if (status != CS_OK)
        return status;
    if (!add_texts(arguments, request))
        return cs_error_no_memory(error);
    status = write_request(request, path, sizeof(path), error);
    if (status != CS_OK)
        return status;
    snprintf(number, sizeof(number), "%u", processes);
    snprintf(name, sizeof(name), "%s", mode);
    char mpirun[] = "mpirun", n[] = "-n";
    char *alone[] = {program, name, path, NULL};
    char *together[] = {mpirun, n, number, program, name, path, NULL};
    status = start(processes > 0 ? together : alone, error);
    unlink(path);
    return status;
}

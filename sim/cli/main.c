#include "sim/base/inputs.h"
#include "sim/base/interrupt.h"
#include "sim/base/terminal.h"
#include "sim/base/version.h"
#include "sim/cli/command.h"

#include <fcntl.h>
#include <gsl/gsl_errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static cs_status set_level(const cs_arguments *arguments, cs_log *log, cs_error *error)
{
    const char *level = cs_arguments_value(arguments, "log-level");
    if (!level || cs_log_level_parse(level, &log->level))
        return CS_OK;
    return cs_error_add(error, CS_USAGE,
                        "unknown log level \"%s\"; known: error, warning, info, debug", level);
}

static cs_status run_command(const cs_command *command, int argc, char **argv, cs_context *context,
                             cs_terminal *terminal, cs_error *error)
{
    cs_arguments arguments;
    CS_TRY(cs_command_parse(command, argc, argv, &arguments, error));
    cs_status status = set_level(&arguments, &context->log, error);
    terminal->lines =
        context->team && context->log.level >= CS_LOG_INFO && !cs_team_helps(context->team);
    if (status == CS_OK && cs_arguments_flag(&arguments, "help"))
        cs_command_print_help(command, context->out);
    else if (status == CS_OK)
        status = command->run(context, &arguments, error);
    cs_arguments_finish(&arguments);
    return status;
}

/* Raises the stack limit if necessary and allowed: Linux lets the stack grow up to a limit that may
 * still be raised. */
static cs_status check_stack(cs_error *error)
{
    static const rlim_t least = 512 << 10, usual = 8 << 20;
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= usual)
        return CS_OK;
    limit.rlim_cur = limit.rlim_max < usual ? limit.rlim_max : usual;
    if (limit.rlim_cur >= least && setrlimit(RLIMIT_STACK, &limit) == 0)
        return CS_OK;
    return cs_error_add(error, CS_FAILED,
                        "the stack is limited to %llu KiB; sim needs %llu (ulimit -s)",
                        (unsigned long long)limit.rlim_cur >> 10, (unsigned long long)least >> 10);
}

static cs_status run_program(int argc, char **argv, cs_context *context, cs_terminal *terminal,
                             cs_error *error)
{
    CS_TRY(check_stack(error));
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--version") == 0) {
        fprintf(context->out, "sim %s\n", SIM_VERSION);
        return CS_OK;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    const cs_command *command = cs_command_find(name);
    if (command && command->shared) {
        /* only the first of the processes that were started together prints */
        if (cs_launch_find().rank > 0) {
            context->log.out = NULL;
            terminal->shows = false;
        }
        CS_TRY(cs_team_open(&context->team, error));
        return run_command(command, argc - 1, argv + 1, context, terminal, error);
    }
    if (command)
        return run_command(command, argc - 1, argv + 1, context, terminal, error);
    if (argc < 2)
        return cs_error_add(error, CS_USAGE, "a command is missing (sim --help lists them)");
    return cs_command_unknown(name, error);
}

int main(int argc, char **argv)
{
    /* first, because until then a signal ends sim silently */
    cs_interrupt_catch(CS_INTERRUPT_GRACE);
    /* A closed standard stream would become the next file that is opened, and receive the output.
     * It is replaced by /dev/null, opened so that printing still fails. */
    static const int flags[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd)
            _exit(cs_status_exit_code(CS_IO)); /* nowhere to report it */
    }
    cs_inputs_protect();
    (void)signal(SIGXFSZ, SIG_IGN); /* exceeding the file size limit is then a failed write */
    gsl_set_error_handler_off();    /* otherwise GSL aborts; our calls check */
    cs_terminal terminal;
    cs_terminal_init(&terminal);
    cs_progress progress = cs_terminal_progress(&terminal);
    cs_context context = {.out = stdout, .log = {stderr, CS_LOG_INFO}, .progress = &progress};
    cs_error error;
    cs_error_init(&error);
    cs_status status = run_program(argc, argv, &context, &terminal, &error);
    /* output that did not arrive is a failure: the disk may be full */
    cs_status flushed = fflush(stdout) == 0 && !ferror(stdout)
                            ? CS_OK
                            : cs_error_add(&error, CS_IO, "standard output: cannot write");
    if (status == CS_OK)
        status = flushed;
    cs_terminal_clear(&terminal);
    if (status != CS_OK)
        cs_log_error(&context.log, &error);
    const bool helps = !context.log.out; /* the exit code of the first process counts for all */
    cs_team_close(context.team, status, &error);
    return helps && status != CS_INTERRUPTED ? 0 : cs_status_exit_code(status);
}

/* Commands of the program `sim`: tables that parse the command line, and that help, completion and
 * the manual page are made from.
 *
 * To add a command: a file cmd-NAME.c with a `const cs_command`, and a line in commands.c.
 */
#ifndef CS_CLI_COMMAND_H
#define CS_CLI_COMMAND_H

#include "sim/base/error.h"
#include "sim/base/log.h"
#include "sim/base/progress.h"
#include "sim/study/team/team.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct cs_option {
    const char *name;           /* of --name; NULL ends a table */
    char letter;                /* of -x, or 0 */
    const char *argument;       /* "FILE.h5", or NULL for a flag */
    const char *doc;            /* one sentence, without a full stop */
    bool repeats;               /* may be given several times; else the last one counts */
    const char *const *choices; /* words that completion offers, ended by NULL; or NULL */
    const char
        *names; /* of a section of `sim list` that it offers, or CS_NAMES_POINTERS; or NULL */
} cs_option;

/* Pointers into the scenario that the command line names. */
#define CS_NAMES_POINTERS "pointers"

enum { CS_OPTIONS_MAX = 24 }; /* of one command, the common ones included; checked by a test */

#define CS_OPTION_JOBS                                                                             \
    {                                                                                              \
        "jobs", 'j', "N", "Threads (default: one per processor)", false, NULL                      \
    }

/* What the command line said. */
typedef struct cs_arguments {
    const struct cs_command *command;
    const char *const *words; /* without options */
    size_t n_words;
    struct {
        const char **values;
        size_t n;
    } options[CS_OPTIONS_MAX]; /* in step with the command's table; a flag's value is "" */
} cs_arguments;

/* What commands need from the program. */
typedef struct cs_context {
    FILE *out;
    cs_log log;
    const cs_progress *progress;
    cs_team *team; /* of commands that several processes share; NULL: this one is alone */
} cs_context;

typedef struct cs_command {
    const char *name;
    const char *words; /* the arguments that are not options: "SCENARIO.json" */
    size_t min_words, max_words;
    const char *const
        *choices;         /* for the first word, ended by NULL, or cs_choose_command; or NULL */
    const char *names[2]; /* of the first two words, as an option has them */
    const char *summary;  /* one line */
    const char *doc;      /* paragraphs, separated by blank lines */
    const cs_option *options;
    bool shared; /* several processes that mpirun started do it together (sim/study/team/team.h) */
    cs_status (*run)(const cs_context *context, const cs_arguments *arguments, cs_error *error);
} cs_command;

/* Stands for the names of all commands. */
extern const char *const cs_choose_command[];

/* All commands, ended by NULL. */
extern const cs_command *const cs_commands[];

const cs_command *cs_command_find(const char *name);

/* CS_USAGE: no command has that name; did you mean ...? */
cs_status cs_command_unknown(const char *name, cs_error *error);

/* Options that every command takes: help, log-level. */
extern const cs_option cs_common_options[];

/* Option number i of a command, the common ones after its own; NULL behind the last. */
const cs_option *cs_command_option(const cs_command *command, size_t i);

/* Parses what follows the command's name; arguments are released with cs_arguments_finish. CS_USAGE
 * with one message. */
CS_MUST_CHECK cs_status cs_command_parse(const cs_command *command, int argc, char **argv,
                                         cs_arguments *arguments, cs_error *error);
void cs_arguments_finish(cs_arguments *arguments);

/* The last value of an option, or NULL; all of them. */
const char *cs_arguments_value(const cs_arguments *arguments, const char *option);
size_t cs_arguments_values(const cs_arguments *arguments, const char *option,
                           const char *const **values);
bool cs_arguments_flag(const cs_arguments *arguments, const char *option);

/* A whole number from an option's value, or `fallback` without one. CS_USAGE unless the value is
 * from `least` to `most`. */
CS_MUST_CHECK cs_status cs_arguments_between(const cs_arguments *arguments, const char *option,
                                             uint32_t fallback, uint32_t least, uint32_t most,
                                             uint32_t *out, cs_error *error);

/* The same of any whole number. */
CS_MUST_CHECK cs_status cs_arguments_count(const cs_arguments *arguments, const char *option,
                                           uint32_t fallback, uint32_t *out, cs_error *error);

/* The threads that the option `jobs` asks for, or as many as there are processors. */
CS_MUST_CHECK cs_status cs_arguments_jobs(const cs_arguments *arguments, uint32_t *jobs,
                                          cs_error *error);

/* Help texts. */
void cs_command_print_usage(FILE *out);
void cs_command_print_help(const cs_command *command, FILE *out);

/* The manual page sim(1). */
void cs_document_man(FILE *out);

#endif

/* Commands of the program `sim`: tables that define the command line, help, completion and the
 * manual page.
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
    const char *name;           /* --name; NULL ends a table */
    char letter;                /* -x; 0: none */
    const char *argument;       /* "FILE.h5"; NULL: a flag */
    const char *doc;            /* one sentence, without a full stop */
    bool repeats;               /* may be given several times; otherwise the last one counts */
    const char *const *choices; /* words for completion, NULL-terminated; or NULL */
    const char *names; /* section of `sim list` for completion, or CS_NAMES_POINTERS; or NULL */
} cs_option;

/* Completes pointers into the scenario on the command line. */
#define CS_NAMES_POINTERS "pointers"

enum { CS_OPTIONS_MAX = 24 }; /* per command, with the common ones; checked by a test */

#define CS_OPTION_JOBS                                                                             \
    {                                                                                              \
        "jobs", 'j', "N", "Threads (default: one per processor)", false, NULL                      \
    }

/* A parsed command line. */
typedef struct cs_arguments {
    const struct cs_command *command;
    const char *const *words; /* words that are not options */
    size_t n_words;
    struct {
        const char **values;
        size_t n;
    } options[CS_OPTIONS_MAX]; /* same order as the command's table; the value of a flag is "" */
} cs_arguments;

/* Services of the program for commands. */
typedef struct cs_context {
    FILE *out;
    cs_log log;
    const cs_progress *progress;
    cs_team *team; /* team of a shared command; NULL: this process is alone */
} cs_context;

typedef struct cs_command {
    const char *name;
    const char *words; /* arguments that are not options: "SCENARIO.json" */
    size_t min_words, max_words;
    const char *const
        /* choices for the first word, NULL-terminated, or cs_choose_command; or NULL */
        *choices;
    const char *names[2]; /* names for the first two words, as in cs_option */
    const char *summary;  /* one line */
    const char *doc;      /* paragraphs, separated by blank lines */
    const cs_option *options;
    bool shared; /* several processes that mpirun started share it (sim/study/team/team.h) */
    cs_status (*run)(const cs_context *context, const cs_arguments *arguments, cs_error *error);
} cs_command;

/* Represents the names of all commands. */
extern const char *const cs_choose_command[];

/* All commands, NULL-terminated. */
extern const cs_command *const cs_commands[];

const cs_command *cs_command_find(const char *name);

/* Reports an unknown command: CS_USAGE with proposals. */
cs_status cs_command_unknown(const char *name, cs_error *error);

/* Options of every command: help, log-level. */
extern const cs_option cs_common_options[];

/* Option number i of a command, common ones last; NULL after the last. */
const cs_option *cs_command_option(const cs_command *command, size_t i);

/* Parses the words after the command's name; release `arguments` with cs_arguments_finish. CS_USAGE
 * with one message. */
CS_MUST_CHECK cs_status cs_command_parse(const cs_command *command, int argc, char **argv,
                                         cs_arguments *arguments, cs_error *error);
void cs_arguments_finish(cs_arguments *arguments);

/* The last value of an option, or NULL; and all its values. */
const char *cs_arguments_value(const cs_arguments *arguments, const char *option);
size_t cs_arguments_values(const cs_arguments *arguments, const char *option,
                           const char *const **values);
bool cs_arguments_flag(const cs_arguments *arguments, const char *option);

/* Reads an option's whole number; `fallback` if it is not given. CS_USAGE unless the value is from
 * `least` to `most`. */
CS_MUST_CHECK cs_status cs_arguments_between(const cs_arguments *arguments, const char *option,
                                             uint32_t fallback, uint32_t least, uint32_t most,
                                             uint32_t *out, cs_error *error);

/* Reads any whole number. */
CS_MUST_CHECK cs_status cs_arguments_count(const cs_arguments *arguments, const char *option,
                                           uint32_t fallback, uint32_t *out, cs_error *error);

/* Reads the option `jobs`: number of threads, by default one per processor. */
CS_MUST_CHECK cs_status cs_arguments_jobs(const cs_arguments *arguments, uint32_t *jobs,
                                          cs_error *error);

/* Print help texts. */
void cs_command_print_usage(FILE *out);
void cs_command_print_help(const cs_command *command, FILE *out);

/* The manual page sim(1). */
void cs_document_man(FILE *out);

#endif

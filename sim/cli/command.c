#define _XOPEN_SOURCE 700 /* realpath */

#include "sim/cli/command.h"

#include "sim/base/beside.h"
#include "sim/base/text.h"
#include "sim/run/print/wrap.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const levels[] = {"error", "warning", "info", "debug", NULL};

const cs_option cs_common_options[] = {
    {"help", 'h', NULL, "Print this help"},
    {"log-level", 0, "LEVEL", "Which messages go to standard error (default: info)", false, levels},
    {0},
};

const char *const cs_choose_command[] = {NULL};

static size_t count_options(const cs_option *options)
{
    size_t n = 0;
    while (options[n].name)
        n++;
    return n;
}

const cs_option *cs_command_option(const cs_command *command, size_t i)
{
    size_t own = count_options(command->options);
    if (i < own)
        return &command->options[i];
    return i - own < count_options(cs_common_options) ? &cs_common_options[i - own] : NULL;
}

const cs_command *cs_command_find(const char *name)
{
    for (size_t i = 0; cs_commands[i]; i++) {
        if (strcmp(cs_commands[i]->name, name) == 0)
            return cs_commands[i];
    }
    return NULL;
}

cs_status cs_command_unknown(const char *name, cs_error *error)
{
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (size_t i = 0; cs_commands[i]; i++)
        cs_guess_add(&guess, cs_commands[i]->name);
    return cs_error_add(error, CS_USAGE, "unknown command %s (sim --help)", cs_guess_text(&guess));
}

/* ---- parsing ---- */

/* Fills getopt's tables from ours; an option's value is its position + 1, so never a letter or '?'.
 */
static void getopt_tables(const cs_command *command, struct option *longs, char *letters)
{
    size_t i = 0;
    *letters++ = ':'; /* tell a missing argument from an unknown option */
    for (const cs_option *option; (option = cs_command_option(command, i)); i++) {
        longs[i] = (struct option){option->name, option->argument ? required_argument : no_argument,
                                   NULL, 256 + (int)i};
        if (!option->letter)
            continue;
        *letters++ = option->letter;
        if (option->argument)
            *letters++ = ':';
    }
    longs[i] = (struct option){0};
    *letters = '\0';
}

static size_t position_of(const cs_command *command, int found)
{
    if (found >= 256)
        return (size_t)found - 256;
    size_t i = 0;
    while (cs_command_option(command, i)->letter != found)
        i++;
    return i;
}

/* `word` is what was typed, "--name" or "--name=value". */
static cs_status refuse_long(const cs_command *command, int found, const char *word,
                             cs_error *error)
{
    char name[CS_TEXT_QUOTED_BYTES];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
    cs_guess guess;
    cs_guess_init(&guess, name);
    const cs_option *option;
    for (size_t i = 0; (option = cs_command_option(command, i)); i++) {
        cs_guess_add(&guess, option->name);
        if (strcmp(option->name, name) == 0)
            return cs_error_add(error, CS_USAGE, "%s: option --%s %s (sim %s --help)",
                                command->name, name,
                                found == ':' ? "needs a value" : "takes no value", command->name);
    }
    return cs_error_add(error, CS_USAGE, "%s: unknown option %s (sim %s --help)", command->name,
                        cs_guess_text(&guess), command->name);
}

/* `found` is '?' or ':'; getopt keeps the letter in optopt, and for long options their value or 0.
 */
static cs_status refuse(const cs_command *command, int found, char **argv, cs_error *error)
{
    if (optopt == 0 || optopt >= 256)
        return refuse_long(command, found, argv[optind - 1], error);
    if (found == ':')
        return cs_error_add(error, CS_USAGE, "%s: option -%c needs a value (sim %s --help)",
                            command->name, optopt, command->name);
    char letter[] = {(char)optopt, '\0'}, shown[8];
    return cs_error_add(error, CS_USAGE, "%s: unknown option -%s (sim %s --help)", command->name,
                        cs_text_show(letter, shown, sizeof(shown)), command->name);
}

static cs_status add_value(cs_arguments *arguments, size_t position, const char *value)
{
    const char **values = realloc(arguments->options[position].values,
                                  (arguments->options[position].n + 1) * sizeof(*values));
    if (!values)
        return CS_NO_MEMORY;
    values[arguments->options[position].n++] = value;
    arguments->options[position].values = values;
    return CS_OK;
}

static cs_status check_words(const cs_command *command, const cs_arguments *arguments,
                             cs_error *error)
{
    if (cs_arguments_flag(arguments, "help") ||
        (arguments->n_words >= command->min_words && arguments->n_words <= command->max_words))
        return CS_OK;
    if (arguments->n_words < command->min_words)
        return cs_error_add(error, CS_USAGE, "%s: missing %s (sim %s --help)", command->name,
                            command->words, command->name);
    return cs_error_add(error, CS_USAGE, "%s: \"%s\" is one argument too many (sim %s --help)",
                        command->name, arguments->words[command->max_words], command->name);
}

cs_status cs_command_parse(const cs_command *command, int argc, char **argv,
                           cs_arguments *arguments, cs_error *error)
{
    struct option longs[CS_OPTIONS_MAX + 1];
    char letters[2 * CS_OPTIONS_MAX + 2];
    *arguments = (cs_arguments){.command = command};
    getopt_tables(command, longs, letters);
    opterr = 0;
    optind = 1;
    int found;
    while ((found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        cs_status status = CS_OK;
        if (found == '?' || found == ':')
            status = refuse(command, found, argv, error);
        else if (add_value(arguments, position_of(command, found), optarg ? optarg : ""))
            status = cs_error_no_memory(error);
        if (status != CS_OK) {
            cs_arguments_finish(arguments);
            return status;
        }
    }
    arguments->words = (const char *const *)argv + optind;
    arguments->n_words = (size_t)(argc - optind);
    cs_status status = check_words(command, arguments, error);
    if (status != CS_OK)
        cs_arguments_finish(arguments);
    return status;
}

void cs_arguments_finish(cs_arguments *arguments)
{
    for (size_t i = 0; i < CS_OPTIONS_MAX; i++)
        free(arguments->options[i].values);
    *arguments = (cs_arguments){0};
}

size_t cs_arguments_values(const cs_arguments *arguments, const char *option,
                           const char *const **values)
{
    const cs_option *at;
    for (size_t i = 0; (at = cs_command_option(arguments->command, i)); i++) {
        if (strcmp(at->name, option) != 0)
            continue;
        *values = arguments->options[i].values;
        return arguments->options[i].n;
    }
    *values = NULL;
    return 0;
}

const char *cs_arguments_value(const cs_arguments *arguments, const char *option)
{
    const char *const *values;
    size_t n = cs_arguments_values(arguments, option, &values);
    return n > 0 ? values[n - 1] : NULL;
}

bool cs_arguments_flag(const cs_arguments *arguments, const char *option)
{
    return cs_arguments_value(arguments, option) != NULL;
}

cs_status cs_arguments_between(const cs_arguments *arguments, const char *option, uint32_t fallback,
                               uint32_t least, uint32_t most, uint32_t *out, cs_error *error)
{
    const char *text = cs_arguments_value(arguments, option), *name = arguments->command->name;
    if (!text) {
        *out = fallback;
        return CS_OK;
    }
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > UINT32_MAX)
        return cs_error_add(error, CS_USAGE,
                            "%s: --%s must be a whole number from %u to %u (got \"%s\")", name,
                            option, least, most, text);
    if (value < least && most == UINT32_MAX)
        return cs_error_add(error, CS_USAGE, "%s: --%s must be at least %u (got %llu)", name,
                            option, least, value);
    if (value < least || value > most)
        return cs_error_add(error, CS_USAGE, "%s: --%s must be from %u to %u (got %llu)", name,
                            option, least, most, value);
    *out = (uint32_t)value;
    return CS_OK;
}

cs_status cs_arguments_count(const cs_arguments *arguments, const char *option, uint32_t fallback,
                             uint32_t *out, cs_error *error)
{
    return cs_arguments_between(arguments, option, fallback, 0, UINT32_MAX, out, error);
}

cs_status cs_arguments_jobs(const cs_arguments *arguments, uint32_t *jobs, cs_error *error)
{
    enum { MOST = 4096 };
    return cs_arguments_between(arguments, "jobs", cs_launch_processors(), 1, MOST, jobs, error);
}

/* ---- help ---- */

void cs_command_print_usage(FILE *out)
{
    char shared[CS_BESIDE_BYTES], real[PATH_MAX];
    const char *folder = cs_beside_shared(".", shared);
    if (realpath(folder, real))
        folder = real;
    fprintf(out, "sim simulates training schedules of deep networks on clusters.\n\n"
                 "usage: sim COMMAND [ARGUMENT]...\n\ncommands:\n");
    for (size_t i = 0; cs_commands[i]; i++)
        fprintf(out, "  %-12s %s\n", cs_commands[i]->name, cs_commands[i]->summary);
    fprintf(out,
            "\n`sim COMMAND --help` explains a command, `sim --version` prints the version.\n"
            "Pages (docs/README.md) and scenarios are in %s.\n",
            folder);
}

enum { OPTION_COLUMN = 34 };

static void print_option(const cs_option *option, FILE *out)
{
    char text[64];
    int used = option->letter
                   ? snprintf(text, sizeof(text), "-%c, --%s", option->letter, option->name)
                   : snprintf(text, sizeof(text), "    --%s", option->name);
    if (option->argument && used > 0 && (size_t)used < sizeof(text))
        snprintf(text + used, sizeof(text) - (size_t)used, " %s", option->argument);
    char doc[512];
    size_t end = (size_t)snprintf(doc, sizeof(doc), "%s", option->doc);
    for (size_t i = 0; option->choices && option->choices[i] && end < sizeof(doc); i++)
        end += (size_t)snprintf(doc + end, sizeof(doc) - end, "%s%s", i ? ", " : ": ",
                                option->choices[i]);
    if (option->repeats && end < sizeof(doc))
        snprintf(doc + end, sizeof(doc) - end, " (may be repeated)");
    int printed = fprintf(out, "  %-31s ", text);
    cs_wrap(out, printed > 0 ? (size_t)printed : 0, OPTION_COLUMN, CS_WRAP_HELP, doc);
}

void cs_command_print_help(const cs_command *command, FILE *out)
{
    fprintf(out, "usage: sim %s [OPTION]...%s%s\n\n", command->name, *command->words ? " " : "",
            command->words);
    cs_wrap(out, 0, 0, CS_WRAP_HELP, command->doc);
    fputs("\noptions:\n", out);
    const cs_option *option;
    for (size_t i = 0; (option = cs_command_option(command, i)); i++)
        print_option(option, out);
}

#include "sim/cli/command.h"
#include "sim/cli/complete.h"
#include "sim/cli/listed.h"

#include "sim/base/text.h"

#include <stdint.h>
#include <string.h>

static const cs_option no_options[] = {{0}};

static cs_status run_help(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    if (arguments->n_words == 0) {
        cs_command_print_usage(context->out);
        return CS_OK;
    }
    const cs_command *command = cs_command_find(arguments->words[0]);
    if (!command)
        return cs_listed_term(arguments->words[0], context->out)
                   ? CS_OK
                   : cs_command_unknown(arguments->words[0], error);
    cs_command_print_help(command, context->out);
    return CS_OK;
}

const cs_command cs_command_help = {
    .name = "help",
    .words = "[COMMAND|WORD]",
    .max_words = 1,
    .choices = cs_choose_command,
    .summary = "explain a command",
    .doc = "Prints the list of commands, the help of one command, or what a term of other programs "
           "is called here (`sim list terms`).",
    .options = no_options,
    .run = run_help,
};

static cs_status run_completion(const cs_context *context, const cs_arguments *arguments,
                                cs_error *error)
{
    const char *shell = arguments->words[0], *code = cs_completion_code(shell);
    if (strcmp(shell, "words") == 0) {
        cs_complete(arguments->words + 1, arguments->n_words - 1, context->out);
        return CS_OK;
    }
    if (!code) {
        cs_guess guess;
        cs_guess_init(&guess, shell);
        for (const char *const *known = cs_completion_shells; *known; known++)
            cs_guess_add(&guess, *known);
        return cs_error_add(error, CS_USAGE, "completion: unknown shell %s", cs_guess_text(&guess));
    }
    if (arguments->n_words > 1)
        return cs_error_add(error, CS_USAGE, "completion: \"%s\" is one argument too many",
                            arguments->words[1]);
    fputs(code, context->out);
    return CS_OK;
}

const cs_command cs_command_completion = {
    .name = "completion",
    .words = "bash | zsh | fish | words -- WORD...",
    .min_words = 1,
    .max_words = SIZE_MAX,
    .choices = cs_completion_shells,
    .summary = "print shell completion code",
    .doc = "Prints shell code that completes the arguments of sim, including names of planners, "
           "models, devices and topologies, and JSON pointers into the given scenario. Use "
           "`source <(sim completion bash)`, the same with zsh, or `sim completion fish | "
           "source`.\n\n"
           "The shell code calls `sim completion words` with the words typed so far.",
    .options = no_options,
    .run = run_completion,
};

static cs_status run_man(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    (void)arguments;
    (void)error;
    cs_document_man(context->out);
    return CS_OK;
}

const cs_command cs_command_man = {
    .name = "man",
    .words = "",
    .summary = "print the manual page",
    .doc = "Prints the manual page sim(1) in roff: `sim man | man -l -`.",
    .options = no_options,
    .run = run_man,
};

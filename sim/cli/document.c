#include "sim/cli/command.h"

#include "sim/base/version.h"

/* Escapes text for roff: hyphens stay as typed, and no line begins with a control character. */
static void print_roff(const char *text, FILE *out)
{
    for (const char *at = text; *at; at++) {
        bool line_starts = at == text || at[-1] == '\n';
        if (line_starts && (*at == '.' || *at == '\''))
            fputs("\\&", out);
        if (*at == '-') {
            fputs("\\-", out);
        } else if (*at == '\\') {
            fputs("\\e", out);
        } else if (*at == '\n' && at[1] == '\n') {
            fputs("\n.PP\n", out);
            at++;
        } else {
            fputc(*at, out);
        }
    }
}

static void print_option_roff(const cs_option *option, FILE *out)
{
    fputs(".TP\n.BR ", out);
    if (option->letter)
        fprintf(out, "\\-%c \", \" ", option->letter);
    fputs("\\-\\-", out);
    print_roff(option->name, out);
    if (option->argument)
        fprintf(out, " \" \\fI%s\\fR\"", option->argument);
    fputc('\n', out);
    print_roff(option->doc, out);
    for (size_t i = 0; option->choices && option->choices[i]; i++)
        fprintf(out, "%s%s", i ? ", " : ": ", option->choices[i]);
    fputs(option->repeats ? " (may be repeated).\n" : ".\n", out);
}

void cs_document_man(FILE *out)
{
    fprintf(out, ".TH SIM 1 \"\" \"sim %s\" \"User Commands\"\n", SIM_VERSION);
    fputs(".SH NAME\nsim \\- simulate training schedules of deep networks on clusters\n"
          ".SH SYNOPSIS\n.B sim\n.I COMMAND\n.RI [ ARGUMENT ]...\n"
          ".SH DESCRIPTION\n"
          "A discrete\\-event simulator for schedules and memory in deep\\-learning training: it "
          "runs a\n"
          "model, on a platform, under a schedule, and reports throughput, idle time and its "
          "causes,\n"
          "memory over time, and the version of the weights that each step read.\n"
          ".SH COMMANDS\n",
          out);
    for (size_t i = 0; cs_commands[i]; i++) {
        const cs_command *command = cs_commands[i];
        fprintf(out, ".SS \"sim %s [\\fIOPTION\\fR]... %s\"\n", command->name, command->words);
        print_roff(command->doc, out);
        fputc('\n', out);
        for (const cs_option *option = command->options; option->name; option++)
            print_option_roff(option, out);
    }
    fputs(".SH COMMON OPTIONS\n", out);
    for (const cs_option *option = cs_common_options; option->name; option++)
        print_option_roff(option, out);
    fputs(".SH EXIT STATUS\n", out);
    /* Statuses with the same code are adjacent. */
    int last = -1;
    for (cs_status status = CS_OK; status <= CS_INTERRUPTED; status++) {
        const int code = cs_status_exit_code(status);
        if (code != last)
            fprintf(out, ".TP\n.B %d\n", code);
        print_roff(cs_status_describe(status), out);
        fputs(".\n", out);
        last = code;
    }
    fputs(".SH ENVIRONMENT\n.TP\n.B SIM_PLOTS_DIR\n"
          "Folder of the gnuplot programs that\n.B sim plot\nuses, instead of the installed one.\n"
          ".SH FILES\n.TP\n.I " CS_SHARE_DIR "\n"
          "Scenarios, and the pages that messages name. Begin with\n.IR docs/tutorial.md .\n"
          ".SH EXAMPLES\n.nf\n"
          "cd " CS_SHARE_DIR "\n"
          "sim run scenarios/vgg16\\-gpipe.json \\-o /tmp/vgg16.h5\n"
          "sim plot /tmp/vgg16.h5 \\-\\-kind timeline \\-o /tmp/vgg16.svg\n"
          "sim run scenarios/vgg16\\-gpipe.json \\-\\-set /schedule/micro_batches=16 "
          "\\-\\-json\n.fi\n",
          out);
}

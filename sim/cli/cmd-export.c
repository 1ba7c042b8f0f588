#include "plots/viewer.h"
#include "sim/base/file.h"
#include "sim/base/process.h"
#include "sim/base/temporary.h"
#include "sim/base/text-stream.h"
#include "sim/base/text.h"
#include "sim/cli/command.h"
#include "sim/cli/output-name.h"
#include "sim/cli/scenario-option.h"
#include "topologies/fabric-json.h"
#include "topologies/platform-picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const cs_option options[] = {
    {"output", 'o', "FILE",
     "FILE.json; of a topology also FILE.dot, or with Graphviz FILE.svg, .png, .pdf; of a trace "
     "also FILE.json.gz, .pftrace, .pftrace.gz (default: JSON on standard output)"},
    {"devices", 'n', "NUMBER", "GPUs, for the name of a topology (default: 8)"},
    CS_OPTION_SET,
    {0},
};

static const char *const formats[] = {"topology", "trace", NULL};

/* ---- pictures ---- */

/* Runs `dot -Tformat -o output input`, without a shell. */
static cs_status run_graphviz(const char *format, const char *input, const char *output,
                              cs_error *error)
{
    char option[16];
    cs_process_end end;
    snprintf(option, sizeof(option), "-T%.8s", format);
    const char *const words[] = {"dot", option, "-o", output, input, NULL};
    const int code = cs_process_run(words, &(cs_process_how){0}, &end);
    if (code == ENOENT)
        return cs_error_add(error, CS_FAILED,
                            "export: Graphviz (dot) is not installed; write FILE.dot instead");
    if (code != 0)
        return cs_error_system(error, CS_IO, "Graphviz (dot)", "cannot start", code);
    if (WIFSIGNALED(end.code))
        return cs_error_add(error, CS_FAILED, "export: Graphviz (dot) was ended by signal %d (%s)",
                            WTERMSIG(end.code), strsignal(WTERMSIG(end.code)));
    if (WIFEXITED(end.code) && WEXITSTATUS(end.code) == 0)
        return CS_OK;
    return cs_error_add(error, CS_FAILED, "export: Graphviz (dot) failed on %s", input);
}

/* Draws the picture, which appears complete or not at all, like all results. */
static cs_status draw(const char *text, size_t length, const char *output, const char *format,
                      cs_error *error)
{
    cs_temporary input = {0};
    cs_file_draft draft;
    CS_TRY(cs_file_draft_begin(&draft, output, error));
    cs_status status = cs_temporary_file(&input, "sim-export", text, length, error);
    if (status == CS_OK)
        status = run_graphviz(format, input.path, draft.temporary, error);
    if (status == CS_OK)
        status = cs_file_draft_commit(&draft, error);
    cs_file_draft_drop(&draft);
    cs_temporary_remove(&input);
    return status;
}

/* Returns the graph as an allocated text. */
static cs_status dot_text(const cs_platform *platform, char **text, size_t *length, cs_error *error)
{
    *text = NULL;
    FILE *out = cs_text_stream(text, length);
    if (!out)
        return cs_error_no_memory(error);
    cs_status status = cs_platform_dot(platform, out, error);
    if (fclose(out) != 0 && status == CS_OK)
        status = cs_error_no_memory(error);
    if (status != CS_OK)
        free(*text);
    return status;
}

/* Writes the platform in the format of the file's suffix. */
static cs_status write_platform(const cs_platform *platform, const char *output, cs_error *error)
{
    static const char *const pictures[] = {".dot", ".svg", ".png", ".pdf"};
    for (size_t i = 0; i < sizeof(pictures) / sizeof(pictures[0]); i++)
        if (cs_output_ends_in(output, pictures[i])) {
            const char *format = pictures[i] + 1;
            size_t length = 0;
            char *text;
            CS_TRY(dot_text(platform, &text, &length, error));
            cs_status status = strcmp(format, "dot") == 0
                                   ? cs_file_write(output, text, length, error)
                                   : draw(text, length, output, format, error);
            free(text);
            return status;
        }
    cJSON *root;
    CS_TRY(cs_platform_json(platform, &root, error));
    char *text = cs_json_print(root);
    cJSON_Delete(root);
    if (!text)
        return cs_error_no_memory(error);
    cs_status status = cs_file_write(output, text, strlen(text), error);
    free(text);
    return status;
}

/* ---- the exported object ---- */

static cs_status export_named(const cs_arguments *arguments, const char *name, const char *output,
                              cs_error *error)
{
    char text[160];
    uint32_t n_devices;
    cs_platform platform;
    CS_TRY(cs_arguments_count(arguments, "devices", 8, &n_devices, error));
    snprintf(text, sizeof(text), "{\"topology\": \"%.64s\"}", name);
    CS_TRY(cs_topology_build_text(name, text, n_devices, &platform, error));
    cs_status status = write_platform(&platform, output, error);
    cs_platform_finish(&platform);
    return status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    const char *given = cs_arguments_value(arguments, "output");
    const char *output = given ? given : "-";
    if (strcmp(arguments->words[0], "topology") == 0) {
        const char *what = arguments->words[1];
        CS_TRY(cs_output_check(arguments, "output", cs_endings_of_topologies, error));
        if (cs_topology_find(what) || cs_facts_find(&cs_machine_kind, what))
            return export_named(arguments, what, output, error);
        if (!strchr(what, '.') && !strchr(what, '/') && access(what, F_OK) != 0) {
            /* A word with neither a dot nor a slash that is not a file was meant to be a name. */
            cs_guess guess;
            cs_guess_init(&guess, what);
            cs_topology_guess(&guess);
            return cs_error_add(error, CS_USAGE,
                                "export: unknown topology %s; or give the file of a scenario",
                                cs_guess_text(&guess));
        }
        const char *const path[] = {what};
        cs_arguments of_scenario = *arguments;
        of_scenario.words = path;
        of_scenario.n_words = 1;
        cs_scenario scenario = {0};
        cs_status status = cs_scenario_from(context, &of_scenario, &scenario, error);
        if (status == CS_OK)
            status = write_platform(&scenario.platform, output, error);
        cs_scenario_finish(&scenario);
        return status;
    }
    if (strcmp(arguments->words[0], "trace") == 0) {
        static const char *const others[] = {"devices", "set"};
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
            if (cs_arguments_value(arguments, others[i]))
                return cs_error_add(error, CS_USAGE, "export: a trace has no option --%s",
                                    others[i]);
        CS_TRY(cs_output_check(arguments, "output", cs_endings_of_traces, error));
        return cs_viewer_write(arguments->words[1], output, context->out, error);
    }
    return cs_error_add(error, CS_USAGE, "export: unknown \"%s\"; known: topology, trace",
                        arguments->words[0]);
}

const cs_command cs_command_export = {
    .name = "export",
    .words = "topology NAME|SCENARIO.json | trace RESULTS.h5",
    .min_words = 2,
    .max_words = 2,
    .choices = formats,
    .names = {NULL, "topologies"},
    .summary = "export a topology, or a run for trace viewers",
    .doc = "topology: writes the devices, switches and links of a topology without required "
           "parameters (such as a machine), or of a scenario's platform, as JSON that the "
           "topology \"file\" reads (topologies/README.md), or as a graph for Graphviz.\n\n"
           "trace: writes the tasks, messages and memory of a results file for Perfetto "
           "(ui.perfetto.dev): as JSON in the Trace Event Format, which chrome://tracing also "
           "opens, or as .pftrace in Perfetto's own format, which is smaller and opens faster. "
           "Both can be compressed (.gz).",
    .options = options,
    .run = run,
};

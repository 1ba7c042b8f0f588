#include "sim/base/file.h"
#include "sim/base/units.h"
#include "sim/cli/command.h"
#include "sim/workload/pipedream.h"

#include <stdlib.h>
#include <string.h>

static const cs_option options[] = {
    {"output", 'o', "MODEL.json", "Where to write the model (default: standard output)", false,
     NULL},
    {"name", 'n', "NAME", "Name of the model (default: from the file's name or folder)", false,
     NULL},
    {"batch", 'b', "SAMPLES", "Samples of the profiled mini-batch; required", false, NULL},
    {"hardware", 0, "TEXT", "What it was measured on, for the provenance", false, NULL},
    {"date", 0, "YYYY-MM-DD", "When it was measured, for the provenance; required", false, NULL},
    {0},
};

static const char *const formats[] = {"pipedream", NULL};

static cs_status write_model(const cs_model *model, const char *path, cs_error *error)
{
    cJSON *root = cs_model_json(model);
    char *json = root ? cs_json_print(root) : NULL;
    cJSON_Delete(root);
    if (!json)
        return cs_error_no_memory(error);
    cs_status status = cs_file_write(path, json, strlen(json), error);
    free(json);
    return status;
}

/* On standard error: the model itself may go to standard output. */
static void tell(const cs_log *log, const cs_model *model, const cs_pipedream_report *report)
{
    char skipped[CS_UNITS_TEXT_BYTES];
    cs_units_format(cs_time_seconds(report->skipped), CS_QUANTITY_TIME, 4, skipped,
                    sizeof(skipped));
    cs_log_write(log, CS_LOG_INFO, "%s: %u nodes and %u edges made a chain of %u layers",
                 model->name, report->n_nodes, report->n_edges, report->n_layers);
    cs_log_write(log, CS_LOG_INFO, "%s of %u input node%s left out: loading data is no compute",
                 skipped, report->n_inputs, report->n_inputs == 1 ? "" : "s");
    for (uint32_t g = 0; g < report->n_groups; g++) {
        const cs_pipedream_group *group = &report->groups[g];
        cs_log_write(log, CS_LOG_INFO, "layer %u groups %u nodes, %s to %s", group->layer,
                     group->n_nodes, group->first, group->last);
    }
}

/* What the file does not say, and a model has to. */
static cs_status require_options(const cs_arguments *arguments, cs_error *error)
{
    static const char *const required[] = {"batch", "date"};
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
        if (!cs_arguments_flag(arguments, required[i]))
            return cs_error_add(error, CS_USAGE,
                                "import: --%s is missing: the profile does not say it",
                                required[i]);
    }
    return CS_OK;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    if (strcmp(arguments->words[0], "pipedream") != 0)
        return cs_error_add(error, CS_USAGE, "import: unknown format \"%s\"; known: pipedream",
                            arguments->words[0]);
    cs_pipedream_options how = {.name = cs_arguments_value(arguments, "name"),
                                .hardware = cs_arguments_value(arguments, "hardware"),
                                .date = cs_arguments_value(arguments, "date")};
    cs_status status = require_options(arguments, error);
    if (status == CS_OK)
        status = cs_arguments_count(arguments, "batch", 0, &how.batch_size, error);
    if (status != CS_OK)
        return status;
    const char *output = cs_arguments_value(arguments, "output");
    cs_model model = {0};
    cs_pipedream_report report;
    status = cs_pipedream_load(arguments->words[1], &how, &model, &report, error);
    if (status == CS_OK)
        status = write_model(&model, output ? output : "-", error);
    if (status == CS_OK)
        tell(&context->log, &model, &report);
    cs_model_finish(&model);
    return status;
}

const cs_command cs_command_import = {
    .name = "import",
    .words = "pipedream GRAPH.txt",
    .min_words = 2,
    .max_words = 2,
    .choices = formats,
    .summary = "make a model from a foreign profile",
    .doc = "Reads a profile in the format of the PipeDream project and writes it as a model file. "
           "Branches "
           "become a chain: between two nodes through which every path leads, all nodes become one "
           "layer; "
           "which ones is said on standard error.",
    .options = options,
    .run = run,
};

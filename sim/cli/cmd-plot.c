#include "plots/plot.h"
#include "sim/base/units.h"
#include "sim/cli/command.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"timeline", "boxes", "memory", "utilisation",
                                    "heatmap",  "lines", "fit",    NULL};

static const cs_option options[] = {
    {"kind", 'k', "KIND", "What to draw", false, kinds},
    {"value", 0, "NAME", "Figure of a sweep to draw, like makespan_s; of costs, a collective",
     false, NULL},
    {"at", 0, "/key=VALUE", "Draw a sweep at this value of a key; two keys at most can vary", true,
     NULL},
    {"output", 'o', "FILE", "Picture: .svg, .png or .pdf (default: INPUT-KIND.svg)", false, NULL},
    {"first-device", 0, "N", "First device to show (default: 0)", false, NULL},
    {"devices", 0, "N", "How many devices to show (default, and 0: all)", false, NULL},
    {"first-mini-batch", 0, "N", "First mini-batch to show (default: 0)", false, NULL},
    {"mini-batches", 0, "N", "How many mini-batches to show (default, and 0: all)", false, NULL},
    {"from", 0, "TIME", "Show the time from here on, like \"1.5 ms\"", false, NULL},
    {"until", 0, "TIME", "Show the time until here", false, NULL},
    {"width", 0, "N", "Pixels, or points of PDF (default: chosen)", false, NULL},
    {"height", 0, "N", "Pixels, or points of PDF (default: chosen)", false, NULL},
    {0},
};

static cs_status read_counts(const cs_arguments *arguments, cs_plot_options *how, cs_error *error)
{
    const struct {
        const char *name;
        uint32_t *value;
    } counts[] = {
        {"first-device", &how->first_device},
        {"devices", &how->n_devices},
        {"first-mini-batch", &how->first_mini_batch},
        {"mini-batches", &how->n_mini_batches},
        {"width", &how->width},
        {"height", &how->height},
    };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        CS_TRY(cs_arguments_count(arguments, counts[i].name, 0, counts[i].value, error));
    return CS_OK;
}

static cs_status read_time(const cs_arguments *arguments, const char *option, double *out,
                           cs_error *error)
{
    const char *text = cs_arguments_value(arguments, option);
    *out = 0;
    if (!text)
        return CS_OK;
    cs_error reason;
    cs_error_init(&reason);
    if (cs_units_parse(text, CS_QUANTITY_TIME, out, &reason) != CS_OK)
        return cs_error_add(error, CS_USAGE, "plot: --%s: %s", option, reason.text);
    return *out >= 0
               ? CS_OK
               : cs_error_add(error, CS_USAGE, "plot: --%s: must be >= 0 (got %s)", option, text);
}

/* "INPUT-KIND.svg" next to the current folder's files; allocated. */
static char *output_name(const char *input, const char *kind)
{
    const char *slash = strrchr(input, '/');
    const char *name = slash ? slash + 1 : input;
    const char *dot = strrchr(name, '.');
    size_t stem = dot ? (size_t)(dot - name) : strlen(name);
    size_t bytes = stem + strlen(kind) + sizeof("-.svg");
    char *out = malloc(bytes);
    if (out)
        snprintf(out, bytes, "%.*s-%s.svg", (int)stem, name, kind);
    return out;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    const char *kind = cs_arguments_value(arguments, "kind");
    cs_plot_options how = {.kind = kind ? kind : "timeline",
                           .input = arguments->words[0],
                           .value = cs_arguments_value(arguments, "value")};
    how.n_at = cs_arguments_values(arguments, "at", &how.at);
    CS_TRY(read_counts(arguments, &how, error));
    CS_TRY(read_time(arguments, "from", &how.from, error));
    CS_TRY(read_time(arguments, "until", &how.until, error));
    const char *given = cs_arguments_value(arguments, "output");
    char *output = given ? strdup(given) : output_name(how.input, how.kind);
    if (!output)
        return cs_error_no_memory(error);
    how.output = output;
    cs_status status = cs_plot_draw(&how, error);
    if (status == CS_OK)
        cs_log_write(&context->log, CS_LOG_INFO, "wrote %s", output);
    free(output);
    return status;
}

const cs_command cs_command_plot = {
    .name = "plot",
    .words = "RESULTS.h5 | COSTS.json",
    .min_words = 1,
    .max_words = 1,
    .summary = "draw results",
    .doc =
        "Draws a results file with gnuplot. timeline: what each device does when. boxes: "
        "the same of a small run, as papers draw it: boxes with names, blue of even, orange of "
        "odd mini-batches, kinds and the stages of a device in shades of these. memory: what its "
        "memory holds over time. "
        "utilisation: what the time of devices went to, and how busy the "
        "links are.\n\n"
        "Of the file of a sweep, and a figure (--value): heatmap, over two keys; lines, over one "
        "key, or one line per value of a second. Where more keys vary, --at fixes the others. "
        "Points that are out of memory or failed are marked.\n\n"
        "Of a costs file: fit, timings of collectives with the fitted lines and the residuals.",
    .options = options,
    .run = run,
};

#include "plots/output.h"
#include "plots/plot.h"
#include "sim/base/units.h"
#include "sim/cli/command.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"timeline",    "boxes",  "memory",  "mean-memory", "segments",
                                    "utilisation", "spread", "heatmap", "lines",       "plans",
                                    "validation",  "fit",    NULL};

static const cs_option options[] = {
    {"kind", 'k', "KIND", "What to draw (default: what fits the file)", false, kinds},
    {"value", 0, "NAME",
     "Figure of a sweep to draw, such as makespan_s (default: iteration_time_s); of costs, a "
     "collective"},
    {"at", 0, "/key=VALUE", "Draw a sweep at this value of a key; two keys at most can vary", true},
    {"output", 'o', "FILE", "Picture: .svg, .png or .pdf (default: INPUT-KIND.svg)"},
    {"title", 0, "TEXT", "Title (default: chosen); \"\" for none"},
    {"x", 0, "TEXT", "Name of the horizontal axis"},
    {"y", 0, "TEXT", "Name of the vertical axis"},
    {"width", 0, "SIZE",
     "Such as \"8.5 cm\" for print, or a number of pixels (PDF: points) (default: a page's width)"},
    {"height", 0, "SIZE", "The same (default: chosen)"},
    {"font-size", 0, "N", "Pixels, or points in print and of PDF (default: 11, in print 8)"},
    {"first-device", 0, "N", "First device to show (default: 0)"},
    {"devices", 0, "N", "How many devices to show (default, and 0: all)"},
    {"all-devices", 0, NULL, "Give every device a row of its own"},
    {"first-mini-batch", 0, "N", "First mini-batch to show (default: 0)"},
    {"mini-batches", 0, "N", "How many mini-batches to show (default, and 0: all)"},
    {"from", 0, "TIME", "Show the time from here on, such as \"1.5 ms\""},
    {"until", 0, "TIME", "Show the time until here"},
    {"plain", 0, NULL, "Draw a timeline without critical path and waiting"},
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
    };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        CS_TRY(cs_arguments_count(arguments, counts[i].name, 0, counts[i].value, error));
    return CS_OK;
}

/* Points per unit of length; 0: unknown unit. */
static double points_of(const char *unit)
{
    static const struct {
        const char *name;
        double points;
    } units[] = {{"cm", 72 / 2.54}, {"mm", 72 / 25.4}, {"in", 72}, {"pt", 1}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].points;
    return 0;
}

/* Reads "640" or "8.5 cm"; with a unit of length the picture is for print. */
static cs_status read_size(const cs_arguments *arguments, const char *option, uint32_t *size,
                           bool *print, cs_error *error)
{
    const char *text = cs_arguments_value(arguments, option);
    char *end;
    *size = 0;
    if (!text)
        return CS_OK;
    const double number = strtod(text, &end);
    end += strspn(end, " ");
    const double points = *end ? points_of(end) : 1;
    const double wanted = number * points;
    if (end == text || points == 0 || !(wanted >= 0 && wanted < 1e6))
        return cs_error_add(error, CS_USAGE,
                            "plot: --%s: must be a number, or one of cm, mm, in or pt, like "
                            "\"8.5 cm\" (got \"%s\")",
                            option, text);
    *size = (uint32_t)(wanted + 0.5);
    *print = *print || *end;
    return CS_OK;
}

static cs_status read_font_size(const cs_arguments *arguments, double *size, cs_error *error)
{
    const char *text = cs_arguments_value(arguments, "font-size");
    char *end = NULL;
    *size = text ? strtod(text, &end) : 0;
    if (!text || (end != text && *end == '\0' && *size >= 3 && *size <= 100))
        return CS_OK;
    return cs_error_add(error, CS_USAGE,
                        "plot: --font-size: must be a number from 3 to 100 (got \"%s\")", text);
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

/* Returns the allocated name "INPUT-KIND.svg", in the current folder. */
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

static cs_status read_options(const cs_arguments *arguments, cs_plot_options *how, cs_error *error)
{
    *how = (cs_plot_options){
        .kind = cs_arguments_value(arguments, "kind"),
        .input = arguments->words[0],
        .others = arguments->words + 1,
        .n_others = arguments->n_words - 1,
        .value = cs_arguments_value(arguments, "value"),
        .title = cs_arguments_value(arguments, "title"),
        .x_title = cs_arguments_value(arguments, "x"),
        .y_title = cs_arguments_value(arguments, "y"),
        .plain = cs_arguments_flag(arguments, "plain"),
        .all_devices = cs_arguments_flag(arguments, "all-devices"),
    };
    how->n_at = cs_arguments_values(arguments, "at", &how->at);
    CS_TRY(read_counts(arguments, how, error));
    CS_TRY(read_size(arguments, "width", &how->width, &how->print, error));
    CS_TRY(read_size(arguments, "height", &how->height, &how->print, error));
    CS_TRY(read_font_size(arguments, &how->font_size, error));
    CS_TRY(read_time(arguments, "from", &how->from, error));
    return read_time(arguments, "until", &how->until, error);
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    cs_plot_options how;
    CS_TRY(read_options(arguments, &how, error));
    const char *given = cs_arguments_value(arguments, "output");
    if (given)
        CS_TRY(cs_plot_output_check(given, error));
    if (!how.kind)
        CS_TRY(cs_plot_kind_of(&how, &how.kind, error));
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
    .words = "RESULTS.h5 [MORE.h5 ...] | COSTS.json",
    .min_words = 1,
    .max_words = CS_PLOT_INPUTS_MAX,
    .summary = "draw results as a picture",
    .doc = "Draws a file with gnuplot. The default kind depends on the file.\n\n"
           "Results files: timeline, what each device does and when, why it waits, and the "
           "critical path; boxes, the same for a small run in the style of papers, with named "
           "boxes, blue for even and orange for odd mini-batches; memory, of each device over "
           "time; mean-memory, its mean over the devices; segments, what PyTorch's allocator "
           "reserved and what its segments held; utilisation, how devices spend their time and "
           "how busy links are; spread, how the metrics of repeated runs vary (`sim run "
           "--runs`).\n\n"
           "Several runs share one picture: timelines one below the other on one axis, "
           "mean-memory and spread side by side. Devices that behave identically share a row.\n\n"
           "Sweeps, with a metric (--value): heatmap over two keys; lines over one key, or a "
           "line for each value of a second; bars if the first key's values are names. If more "
           "keys vary, --at fixes the others. Points that failed or ran out of memory are "
           "marked. Searches by `sim advise`: plans. Files of `sim validate`: validation. Costs "
           "files: fit, the timings of collectives with fitted lines and residuals.\n\n"
           "Pictures fit a page; --width \"8.5 cm\" fits a column, with a font of 8 points, and "
           "300 dpi for PNG.",
    .options = options,
    .run = run,
};

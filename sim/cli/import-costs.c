#include "sim/cli/import-costs.h"

#include "calib/costs-text.h"
#include "sim/base/file.h"
#include "sim/base/inputs.h"
#include "sim/base/text.h"

#include <stdlib.h>

enum { LOG_BYTES = 64 << 20 };

/* On standard error: the costs themselves may go to standard output. */
static void tell(const cs_log *log, const cs_costs *costs, const cs_import_report *report)
{
    char line[CS_COSTS_TEXT_BYTES];
    for (uint32_t i = 0; i < costs->n_network; i++) {
        const cs_cost_network *entry = &costs->network[i];
        cs_log_write(log, CS_LOG_INFO, "%s of %u ranks, %s: %u timings",
                     cs_cost_collective_names[entry->collective], entry->ranks,
                     cs_cost_level_names[entry->level], entry->n_points);
        for (uint32_t r = 0; r < entry->n_regimes; r++)
            cs_log_write(log, CS_LOG_INFO, "  %s",
                         cs_costs_regime_text(entry, &entry->regimes[r], line));
        cs_log_write(log, CS_LOG_INFO, "  %s", cs_costs_largest_text(entry, line));
        if (*cs_costs_end_text(entry, line))
            cs_log_write(log, CS_LOG_WARNING, "%s", line);
    }
    if (report->n_skipped > 0)
        cs_log_write(log, CS_LOG_WARNING, "left out %u rows with 0 bytes or of unknown tests",
                     report->n_skipped);
}

static cs_status read_options(const cs_arguments *arguments, cs_import_options *out,
                              cs_error *error)
{
    *out = (cs_import_options){.collective = cs_arguments_value(arguments, "collective"),
                               .level = cs_arguments_value(arguments, "level"),
                               .in_place = cs_arguments_flag(arguments, "in-place"),
                               .device = cs_arguments_value(arguments, "hardware"),
                               .date = cs_arguments_value(arguments, "date")};
    if (!out->date || !cs_text_is_date(out->date))
        return cs_error_add(error, CS_USAGE,
                            out->date ? "import: --date must be a day as YYYY-MM-DD"
                                      : "import: --date is missing: the log does not say "
                                        "when it was made");
    return cs_arguments_count(arguments, "ranks", 0, &out->ranks, error);
}

static cs_status read_log(cs_import_function *import, const char *path,
                          const cs_import_options *options, cs_costs *costs,
                          cs_import_report *report, cs_error *error)
{
    char *log;
    size_t length;
    CS_TRY(cs_file_read(path, LOG_BYTES, &log, &length, error));
    cs_status status = import(path, log, length, options, costs, report, error);
    free(log);
    return status;
}

/* Merges new costs into the existing ones. */
static cs_status save(const cs_costs *made, const char *merge, const char *output, cs_error *error)
{
    cs_costs all;
    if (!merge)
        return cs_costs_save(made, output, error);
    CS_TRY(cs_costs_load(merge, &all, error));
    cs_inputs_allow(merge); /* the new file has its entries too */
    cs_status status = cs_costs_merge(&all, made, error);
    if (status == CS_OK)
        status = cs_costs_save(&all, output, error);
    cs_costs_finish(&all);
    return status;
}

cs_status cs_import_costs(const cs_context *context, const cs_arguments *arguments,
                          cs_import_function *import, const char *path, cs_error *error)
{
    const char *output = cs_arguments_value(arguments, "output");
    cs_import_options options;
    cs_import_report report = {0};
    cs_costs costs;
    CS_TRY(read_options(arguments, &options, error));
    cs_costs_init(&costs);
    cs_status status = read_log(import, path, &options, &costs, &report, error);
    if (status == CS_OK)
        status = save(&costs, cs_arguments_value(arguments, "merge"), output ? output : "-", error);
    if (status == CS_OK)
        tell(&context->log, &costs, &report);
    cs_costs_finish(&costs);
    return status;
}

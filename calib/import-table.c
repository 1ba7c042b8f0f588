#include "calib/import-table.h"

#include "sim/base/text.h"

#include <stdio.h>
#include <string.h>

static cs_status find_word(const char *const *words, const char *word, const char *option,
                           uint32_t *out, cs_error *error)
{
    cs_guess guess;
    if (cs_guess_find(&guess, words, word, out))
        return CS_OK;
    return cs_error_add(error, CS_USAGE, "unknown %s %s", option, cs_guess_text(&guess));
}

cs_status cs_import_collective(const cs_import *import, cs_cost_collective *out)
{
    uint32_t found = *out;
    cs_status status = CS_OK;
    if (import->options->collective)
        status = find_word(cs_cost_collective_names, import->options->collective, "collective",
                           &found, import->error);
    *out = (cs_cost_collective)found;
    return status;
}

cs_status cs_import_level(const cs_import *import, cs_cost_level *out)
{
    uint32_t found = *out;
    cs_status status = CS_OK;
    if (import->options->level)
        status =
            find_word(cs_cost_level_names, import->options->level, "level", &found, import->error);
    *out = (cs_cost_level)found;
    return status;
}

cs_status cs_import_whole(const cs_import *import)
{
    if (!import->log.cut_off)
        return CS_OK;
    return cs_log_invalid(&import->log, import->error,
                          "the file ends within a row: end the line if it is complete");
}

cs_status cs_import_row(cs_import *import, cs_cost_collective collective, cs_cost_level level,
                        uint32_t ranks, int64_t bytes, double microseconds, double resolution)
{
    if (bytes == 0) {
        import->report.n_skipped++;
        return CS_OK;
    }
    if (!(microseconds > 0))
        return cs_log_invalid(&import->log, import->error, "a time must be > 0 (got %g us)",
                              microseconds);
    import->report.n_rows++;
    const cs_cost_point point = {
        .bytes = bytes, .seconds = microseconds * 1e-6, .resolution = resolution * 1e-6};
    return cs_measurements_add(&import->measurements, collective, level, ranks, point,
                               import->error);
}

static cs_status add_all(cs_import *import, const char *tool, cs_costs *costs)
{
    char source[CS_IMPORT_BYTES], shown[CS_IMPORT_BYTES - 32];
    const char *file = strrchr(import->log.name, '/');
    uint32_t id;
    cs_text_format(source, sizeof(source), "%s, %s", tool,
                   cs_text_show(file ? file + 1 : import->log.name, shown, sizeof(shown)));
    const cs_cost_source made = {.source = source,
                                 .device = import->device,
                                 .driver = "",
                                 .libraries = import->libraries,
                                 .clock = "",
                                 .date = import->options->date,
                                 .notes = import->options->in_place ? "in place" : ""};
    CS_TRY(cs_costs_add_source(costs, &made, &id, import->error));
    return cs_measurements_fit(&import->measurements, import->log.name, id, true, costs,
                               import->error);
}

cs_status cs_import_end(cs_import *import, cs_status status, const char *tool, cs_costs *costs,
                        cs_import_report *report)
{
    char shown[CS_IMPORT_BYTES];
    cs_text_show(import->log.name, shown, sizeof(shown));
    if (import->options->device)
        cs_text_format(import->device, sizeof(import->device), "%s", import->options->device);
    if (status == CS_OK && import->measurements.n_tables == 0)
        status =
            cs_error_add(import->error, CS_INVALID, "%s: has no known table of %s", shown, tool);
    if (status == CS_OK && import->device[0] == '\0')
        status = cs_error_add(import->error, CS_USAGE,
                              "%s: does not state the hardware: --hardware is missing", shown);
    if (status == CS_OK)
        status = add_all(import, tool, costs);
    if (status == CS_OK)
        *report = import->report;
    cs_measurements_finish(&import->measurements);
    return status;
}

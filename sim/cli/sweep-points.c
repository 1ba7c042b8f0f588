#include "sim/cli/sweep-points.h"

#include "sim/study/sweep/sweep-runs.h"
#include "sim/study/sweep/sweep-section.h"

#include <stdlib.h>
#include <string.h>

/* ---- the command line ---- */

static cs_status read_options(const cs_arguments *arguments, cs_space *space, cs_error *error)
{
    const char *const *texts;
    const char *csv = cs_arguments_value(arguments, "csv");
    bool zip = cs_arguments_flag(arguments, "zip");
    size_t n = cs_arguments_values(arguments, "vary", &texts);
    if (csv && (n > 0 || zip))
        return cs_error_add(error, CS_USAGE, "sweep: --csv excludes --vary and --zip");
    cs_status status = csv ? cs_space_read_csv(space, csv, error) : CS_OK;
    for (size_t i = 0; i < n && status == CS_OK; i++)
        status = cs_space_vary(space, "--vary", texts[i], error);
    return status == CS_OK
               ? cs_space_close(space, csv || zip ? CS_SPACE_LIST : CS_SPACE_GRID, error)
               : status;
}

cs_status cs_sweep_points(const cs_arguments *arguments, const cJSON *document, cs_space *space,
                          cs_error *error)
{
    const cJSON *sweep = cs_json_member(document, "sweep");
    bool given = cs_arguments_flag(arguments, "vary") || cs_arguments_flag(arguments, "csv");
    cs_status status = sweep && !given
                           ? cs_sweep_section_read(arguments->words[0], sweep, space, error)
                           : read_options(arguments, space, error);
    if (status == CS_OK)
        cs_sweep_set_quantities(space);
    return status;
}

/* ---- as text ---- */

char *cs_sweep_command_of(const cs_arguments *arguments)
{
    static const char *const options[] = {"set", "vary", "zip", "csv"};
    enum { N_OPTIONS = sizeof(options) / sizeof(options[0]) };
    const char *const *values[N_OPTIONS];
    size_t n[N_OPTIONS], total = 0;
    for (size_t i = 0; i < N_OPTIONS; i++)
        total += n[i] = cs_arguments_values(arguments, options[i], &values[i]);
    cs_sweep_word *words = malloc((total + 1) * sizeof(*words));
    if (!words)
        return NULL;
    total = 0;
    for (size_t i = 0; i < N_OPTIONS; i++)
        for (size_t v = 0; v < n[i]; v++) {
            const bool flag = strcmp(options[i], "zip") == 0;
            words[total++] = (cs_sweep_word){options[i], flag ? NULL : values[i][v]};
        }
    char *text = cs_sweep_command(arguments->words[0], words, total);
    free(words);
    return text;
}

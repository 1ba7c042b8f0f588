#include "sim/cli/sweep-points.h"

#include "sim/scenario/scenario.h"
#include "sim/sweep/sweep-section.h"

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

/* ---- quantities ---- */

static const cs_field *find_in_section(const char *section, const char *key)
{
    const cs_field *field = NULL;
    if (strcmp(section, "/model/uniform/") == 0)
        return cs_field_find(cs_scenario_uniform_fields, key);
    if (strcmp(section, "/parallel/") == 0)
        return cs_field_find(cs_scenario_parallel_fields, key);
    if (strcmp(section, "/runtime/") == 0)
        return cs_field_find(cs_scenario_runtime_fields, key);
    if (strcmp(section, "/memory/") == 0)
        return cs_field_find(cs_scenario_memory_fields, key);
    if (strcmp(section, "/platform/") == 0) {
        field = cs_field_find(cs_scenario_platform_fields, key);
        for (size_t i = 0; cs_topologies[i] && !field; i++)
            field = cs_field_find(cs_topologies[i]->fields, key);
    }
    if (strcmp(section, "/schedule/") == 0) {
        field = cs_field_find(cs_scenario_schedule_fields, key);
        for (size_t i = 0; cs_schedules[i] && !field; i++)
            field = cs_field_find(cs_schedules[i]->fields, key);
    }
    return field;
}

/* A key means the same in all schedules and topologies that have it, so the first one decides. */
static void set_quantity(cs_axis *axis)
{
    char section[64];
    const char *key = strrchr(axis->pointer, '/') + 1;
    snprintf(section, sizeof(section), "%.*s", (int)(key - axis->pointer), axis->pointer);
    const cs_field *field = find_in_section(section, key);
    axis->quantity = field ? cs_field_quantity(field) : CS_QUANTITY_NUMBER;
}

cs_status cs_sweep_points(const cs_arguments *arguments, const cJSON *document, cs_space *space,
                          cs_error *error)
{
    const cJSON *sweep = cs_json_member(document, "sweep");
    bool given = cs_arguments_flag(arguments, "vary") || cs_arguments_flag(arguments, "csv");
    cs_status status = sweep && !given ? cs_sweep_section_read(sweep, arguments->words[0], space, error)
                                       : read_options(arguments, space, error);
    for (uint32_t a = 0; a < space->n_axes && status == CS_OK; a++)
        set_quantity(&space->axes[a]);
    return status;
}

/* ---- as text ---- */

/* In single quotes where a shell would read something else. */
static void print_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-=,:+@%";
    bool quotes = !*word || word[strspn(word, plain)] != '\0';
    fputs(quotes ? " '" : " ", out);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    }
    fputs(quotes ? "'" : "", out);
}

char *cs_sweep_command(const cs_arguments *arguments)
{
    static const char *const options[] = {"set", "vary", "zip", "csv"};
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return NULL;
    fputs("sim sweep", out);
    print_word(out, arguments->words[0]);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        const char *const *values;
        size_t n = cs_arguments_values(arguments, options[i], &values);
        for (size_t v = 0; v < n; v++) {
            fprintf(out, " --%s", options[i]);
            if (*values[v] || strcmp(options[i], "zip") != 0)
                print_word(out, values[v]);
        }
    }
    bool failed = ferror(out);
    if (fclose(out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

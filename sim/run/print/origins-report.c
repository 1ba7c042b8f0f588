#include "sim/run/print/origins-report.h"

#include "sim/run/print/wrap.h"

#include <string.h>

/* "/runtime/fused" -> "fused", "/memory/fused" -> "memory/fused". */
static const char *label_of(const char *key)
{
    static const char section[] = "/runtime/";
    const size_t length = strlen(section);
    return strncmp(key, section, length) == 0 ? key + length : key + 1;
}

/* Prints JSON without quotes. */
static void print_value(char *out, size_t size, const char *value)
{
    size_t n = 0;
    for (; *value && n + 1 < size; value++)
        if (*value != '"')
            out[n++] = *value;
    out[n] = '\0';
}

static uint32_t count(const cs_origins *origins, cs_origin origin)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < origins->n; i++)
        n += origins->figures[i].origin == origin;
    return n;
}

enum { WORD_COLUMN = 11, LINE = 4096 };

/* "  assumed  fused true, flash cudnn, ..." */
static void print_line(const cs_origins *origins, cs_origin origin, FILE *out)
{
    char line[LINE] = "", value[512];
    size_t used = 0;
    for (uint32_t i = 0; i < origins->n; i++) {
        const cs_figure_source *figure = &origins->figures[i];
        if (figure->origin != origin || used >= sizeof(line))
            continue;
        print_value(value, sizeof(value), figure->value);
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s %s", used > 0 ? ", " : "",
                                 label_of(figure->key), value);
        if (origin == CS_ORIGIN_MEASURED && used < sizeof(line))
            used += (size_t)snprintf(line + used, sizeof(line) - used, " (%s)", figure->source);
    }
    if (used == 0)
        return;
    fprintf(out, "  %-*s", WORD_COLUMN - 2, cs_origin_names[origin]);
    cs_wrap(out, WORD_COLUMN, WORD_COLUMN, CS_WRAP_REPORT, line);
}

/* Whether runtime or user set anything except the device. "ideal" sets nothing. */
static bool says_something(const cs_origins *origins)
{
    bool any = false;
    for (uint32_t i = 0; i < origins->n; i++) {
        const cs_figure_source *figure = &origins->figures[i];
        any |= figure->origin == CS_ORIGIN_MEASURED ||
               (figure->origin == CS_ORIGIN_ASSUMED && strcmp(figure->key, "/model/device") != 0) ||
               (figure->origin == CS_ORIGIN_GIVEN && strncmp(figure->key, "/runtime/", 9) == 0);
    }
    return any;
}

void cs_origins_report_print(const cs_origins *origins, FILE *out)
{
    const uint32_t left = count(origins, CS_ORIGIN_DEFAULT);
    if (!origins->runtime || !says_something(origins))
        return;
    fprintf(out, "runtime %s%s", origins->runtime,
            origins->is_assumed ? " (assumed: the scenario names none)" : "");
    if (left > 0)
        fprintf(out, "; %u more key%s at the default", left, left == 1 ? "" : "s");
    fputs(" (sim check lists all, with sources)\n", out);
    for (cs_origin origin = 0; origin < CS_ORIGIN_DEFAULT; origin++)
        print_line(origins, origin, out);
    fputc('\n', out);
}

/* ---- all settings ---- */

enum { KEY_COLUMN = 10, SOURCE_INDENT = 12 };

static void print_row(const cs_figure_source *figure, FILE *out)
{
    char value[512];
    print_value(value, sizeof(value), figure->value);
    fprintf(out, "%-*s%s: %s\n", KEY_COLUMN, cs_origin_names[figure->origin], figure->key, value);
    if (!figure->source)
        return;
    fprintf(out, "%*s", SOURCE_INDENT, "");
    cs_wrap(out, SOURCE_INDENT, SOURCE_INDENT, CS_WRAP_REPORT, figure->source);
}

void cs_origins_report_table(const cs_origins *origins, FILE *out)
{
    if (!origins->runtime || !says_something(origins))
        return;
    fprintf(out, "runtime %s%s:\n", origins->runtime,
            origins->is_assumed ? " (assumed: the scenario names none)" : "");
    for (uint32_t i = 0; i < origins->n; i++)
        print_row(&origins->figures[i], out);
}

bool cs_origins_report_json(const cs_origins *origins, cJSON *root)
{
    return !origins->runtime || cJSON_AddItemToObject(root, "runtime", cs_origins_json(origins));
}

#include "sim/study/sweep/sweep-report.h"

#include "sim/base/file.h"
#include "sim/base/number.h"
#include "sim/base/text-stream.h"
#include "sim/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of runs with links, with collectives. */
static const char *const main_texts[] = {"sharing", "algorithms"};

/* ---- which figures ---- */

typedef struct choice {
    const cs_figure_column **columns; /* as many as the sweep has, and n of them are taken */
    uint32_t n;
} choice;

static cs_status unknown(const cs_figure_table *figures, const char *name, cs_error *error)
{
    cs_guess guess;
    cs_guess_init(&guess, name);
    cs_guess_add(&guess, "main");
    for (uint32_t c = 0; c < figures->n_columns; c++)
        cs_guess_add(&guess, figures->columns[c].name);
    return cs_error_add(error, CS_USAGE, "sweep: --table: no point has the figure %s",
                        cs_guess_text(&guess));
}

static bool is_chosen(const choice *chosen, const cs_figure_column *column)
{
    for (uint32_t c = 0; c < chosen->n; c++) {
        if (chosen->columns[c] == column)
            return true;
    }
    return false;
}

static cs_status choose_one(const cs_figure_table *figures, const char *name, bool optional,
                            choice *chosen, cs_error *error)
{
    const cs_figure_column *column = cs_figure_table_find(figures, name);
    if (!column) /* where all points failed, it is their messages that help */
        return optional || figures->n_columns == 0 ? CS_OK : unknown(figures, name, error);
    if (!is_chosen(chosen, column))
        chosen->columns[chosen->n++] = column;
    return CS_OK;
}

static cs_status choose_main(const cs_figure_table *figures, choice *chosen, cs_error *error)
{
    for (const cs_run_figure *figure = cs_run_figures; figure->key; figure++)
        if (figure->shown & CS_SHOWN_SWEEP)
            CS_TRY(choose_one(figures, figure->key, figure->given != NULL, chosen, error));
    for (size_t i = 0; i < sizeof(main_texts) / sizeof(main_texts[0]); i++)
        CS_TRY(choose_one(figures, main_texts[i], true, chosen, error));
    return CS_OK;
}

static cs_status choose(const cs_figure_table *figures, const char *names, choice *chosen,
                        cs_error *error)
{
    while (*names) {
        char name[256];
        const size_t length = strcspn(names, ",");
        snprintf(name, sizeof(name), "%.*s", (int)(length < 250 ? length : 250), names);
        names += length + (names[length] == ',');
        if (strcmp(name, "main") == 0)
            CS_TRY(choose_main(figures, chosen, error));
        else
            CS_TRY(choose_one(figures, name, false, chosen, error));
    }
    return CS_OK;
}

/* All of them where `names` is NULL. */
static cs_status choice_init(choice *chosen, const cs_figure_table *figures, const char *names,
                             cs_error *error)
{
    *chosen = (choice){calloc(figures->n_columns + 1ULL, sizeof(*chosen->columns)), 0};
    if (!chosen->columns)
        return cs_error_no_memory(error);
    for (uint32_t c = 0; !names && c < figures->n_columns; c++)
        chosen->columns[chosen->n++] = &figures->columns[c];
    return names ? choose(figures, names, chosen, error) : CS_OK;
}

/* ---- for people ---- */

enum { CELL_BYTES = 64, KEY_WIDTH = 48 };

/* "micro_batches" of "/schedule/micro_batches", if no other key ends so. */
static const char *short_key(const cs_space *space, uint32_t a)
{
    const char *key = strrchr(space->axes[a].pointer, '/') + 1;
    for (uint32_t b = 0; b < space->n_axes; b++) {
        if (b != a && strcmp(strrchr(space->axes[b].pointer, '/') + 1, key) == 0)
            return space->axes[a].pointer;
    }
    return key;
}

static char *cell_text(const cs_figure_column *column, uint32_t point, char *text)
{
    const double value = column->values[point];
    if (column->n_words == 0 || isnan(value))
        return cs_sweep_figure_text(column, value, text, CELL_BYTES);
    cs_text_format(text, CELL_BYTES, "%.63s", cs_figure_word(column, point));
    return text;
}

static uint32_t wider(uint32_t width, const char *text)
{
    const size_t length = strlen(text);
    return length > width ? (uint32_t)length : width;
}

static uint32_t figure_width(const cs_figure_column *column, uint32_t n_points)
{
    char text[CELL_BYTES];
    uint32_t width = wider(0, column->name);
    for (uint32_t i = 0; i < n_points; i++)
        width = wider(width, cell_text(column, i, text));
    return width;
}

static uint32_t key_width(const cs_sweep_shown *shown, uint32_t a)
{
    uint32_t width = wider(0, short_key(shown->space, a));
    for (uint32_t i = 0; i < shown->axes[a].n; i++)
        width = wider(width, shown->axes[a].labels[i]);
    return width < KEY_WIDTH ? width : KEY_WIDTH;
}

static void print_end(const cs_sweep_shown *shown, uint32_t point, FILE *out)
{
    const char *message = shown->results->errors[point];
    fputs(message ? "  FAILED: " : "", out);
    if (message)
        cs_text_print(out, message, strcspn(message, "\n"));
    else if (cs_sweep_out_of_memory(shown->results, point))
        fprintf(out, "  OUT OF MEMORY");
    fputc('\n', out);
}

static void print_rows(const cs_sweep_shown *shown, const choice *chosen, const uint32_t *widths,
                       FILE *out)
{
    const cs_space *space = shown->space;
    char text[CELL_BYTES];
    for (uint32_t a = 0; a < space->n_axes; a++)
        fprintf(out, "%-*s  ", (int)widths[a], short_key(space, a));
    for (uint32_t c = 0; c < chosen->n; c++)
        fprintf(out, "%s%*s", c > 0 ? "  " : "", (int)widths[space->n_axes + c],
                chosen->columns[c]->name);
    fputc('\n', out);
    for (uint32_t i = 0; i < shown->results->n_points; i++) {
        for (uint32_t a = 0; a < space->n_axes; a++)
            fprintf(out, "%-*.*s  ", (int)widths[a], (int)widths[a],
                    shown->axes[a].labels[cs_space_position(space, i, a)]);
        for (uint32_t c = 0; c < chosen->n; c++)
            fprintf(out, "%s%*s", c > 0 ? "  " : "", (int)widths[space->n_axes + c],
                    cell_text(chosen->columns[c], i, text));
        print_end(shown, i, out);
    }
}

cs_status cs_sweep_table_print(const cs_sweep_shown *shown, const char *figures, FILE *out,
                               cs_error *error)
{
    choice chosen;
    uint32_t *widths = NULL;
    cs_status status = choice_init(&chosen, &shown->results->figures, figures, error);
    if (status == CS_OK) {
        widths = calloc(shown->space->n_axes + chosen.n + 1ULL, sizeof(*widths));
        status = widths ? CS_OK : cs_error_no_memory(error);
    }
    for (uint32_t a = 0; status == CS_OK && a < shown->space->n_axes; a++)
        widths[a] = key_width(shown, a);
    for (uint32_t c = 0; status == CS_OK && c < chosen.n; c++)
        widths[shown->space->n_axes + c] =
            figure_width(chosen.columns[c], shown->results->n_points);
    if (status == CS_OK)
        print_rows(shown, &chosen, widths, out);
    free(widths);
    free(chosen.columns);
    return status;
}

/* ---- comma-separated ---- */

static void write_field(FILE *out, const char *separator, const char *text)
{
    const bool quotes = text[strcspn(text, ",\"\r\n")] != '\0';
    fprintf(out, "%s%s", separator, quotes ? "\"" : "");
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputs(quotes ? "\"" : "", out);
}

static void write_number(FILE *out, const char *separator, double value)
{
    char text[CS_NUMBER_TEXT_BYTES];
    fprintf(out, "%s%s", separator,
            isnan(value) ? "" : cs_number_format(value, text, sizeof(text)));
}

static void write_point(const cs_sweep_shown *shown, const choice *chosen, uint32_t point,
                        FILE *out)
{
    const char *message = shown->results->errors[point];
    for (uint32_t a = 0; a < shown->space->n_axes; a++) {
        const cs_axis_values *axis = &shown->axes[a];
        const uint32_t at = cs_space_position(shown->space, point, a);
        if (axis->numbers)
            write_number(out, a > 0 ? "," : "", axis->numbers[at]);
        else
            write_field(out, a > 0 ? "," : "", axis->texts[at]);
    }
    for (uint32_t c = 0; c < chosen->n; c++) {
        const char *word = cs_figure_word(chosen->columns[c], point);
        if (word)
            write_field(out, ",", word);
        else
            write_number(out, ",", chosen->columns[c]->values[point]);
    }
    write_number(out, ",", message ? (double)NAN : cs_sweep_out_of_memory(shown->results, point));
    write_field(out, ",", message ? message : "");
    fputs("\r\n", out);
}

static char *csv_text(const cs_sweep_shown *shown, const choice *chosen, size_t *length)
{
    char *text = NULL;
    FILE *out = cs_text_stream(&text, length);
    if (!out)
        return NULL;
    for (uint32_t a = 0; a < shown->space->n_axes; a++)
        write_field(out, a > 0 ? "," : "", shown->space->axes[a].pointer);
    for (uint32_t c = 0; c < chosen->n; c++)
        write_field(out, ",", chosen->columns[c]->name);
    fputs(",out_of_memory,error\r\n", out);
    for (uint32_t i = 0; i < shown->results->n_points; i++)
        write_point(shown, chosen, i, out);
    const bool failed = ferror(out);
    if (fclose(out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

/* It has a column of its own. */
static void drop_out_of_memory(const cs_figure_table *figures, choice *chosen)
{
    const cs_figure_column *column = cs_figure_table_find(figures, "out_of_memory");
    uint32_t kept = 0;
    for (uint32_t c = 0; c < chosen->n; c++)
        if (chosen->columns[c] != column)
            chosen->columns[kept++] = chosen->columns[c];
    chosen->n = kept;
}

cs_status cs_sweep_table_write(const cs_sweep_shown *shown, const char *figures, const char *path,
                               cs_error *error)
{
    choice chosen;
    char *text = NULL;
    size_t length = 0;
    cs_status status = choice_init(&chosen, &shown->results->figures, figures, error);
    drop_out_of_memory(&shown->results->figures, &chosen);
    if (status == CS_OK) {
        text = csv_text(shown, &chosen, &length);
        status = text ? cs_file_write(path, text, length, error) : cs_error_no_memory(error);
    }
    free(text);
    free(chosen.columns);
    return status;
}

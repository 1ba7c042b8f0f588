/* Charts of lines and bars: refused input, and the contents of pictures. */
#include "plots/plot-chart.h"

#include "tests/expect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void need_gnuplot(void)
{
    if (system("gnuplot --version >/dev/null 2>&1") != 0) {
        print_message("skipped: gnuplot is not installed\n");
        skip();
    }
}

/* The picture's text; the caller's. */
static char *draw(const cs_chart *chart)
{
    char folder[] = "/tmp/sim-chart-XXXXXX", path[64], *text = calloc(1, 1 << 20);
    cs_error error;
    cs_error_init(&error);
    assert_non_null(text);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/chart.svg", folder);
    if (cs_plot_chart_draw(chart, path, &error) != CS_OK)
        fail_msg("%s", error.text);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    unlink(path);
    rmdir(folder);
    return text;
}

static uint32_t count(const char *text, const char *word)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

static const char *const groups[] = {"first", "second"};

/* Two groups of two bars, one of them a word. The first series is blue, 0x0072B2: its swatch in the
 * legend and two bars; the second, 0xD55E00: its swatch and one bar; the word has this colour as
 * well. */
static void test_bars(void **state)
{
    (void)state;
    need_gnuplot();
    static const double whole[] = {1, 2}, part[] = {NAN, 1};
    static const char *const words[] = {"OOM", "unused"};
    const cs_chart_series series[] = {{.name = "plain", .n = 2, .y = whole},
                                      {.name = "other", .n = 2, .y = part, .words = words}};
    const cs_chart_panel panel = {"a panel", 2, series};
    const cs_chart chart = {.title = "a chart",
                            .subtitle = "below it",
                            .x_title = "",
                            .y_title = "how tall",
                            .bars = true,
                            .names = groups,
                            .n_names = 2,
                            .n_panels = 1,
                            .n_columns = 1,
                            .panels = &panel};
    char *text = draw(&chart);
    static const char *const said[] = {"a chart", "below it", "a panel", "how tall", "plain",
                                       "other",   "first",    "second",  "OOM"};
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
        expect_int(said[i], 1, count(text, said[i]));
    expect_int("unused", 0, count(text, "unused"));
    expect_int("blue", 3, count(text, "fill = 'rgb(  0, 114, 178)'"));
    expect_int("orange", 2, count(text, "fill = 'rgb(213,  94,   0)'"));
    free(text);
}

/* As many lines as there are names; one more is refused. */
static void test_too_many_names(void **state)
{
    (void)state;
    static const double points[] = {1, 2};
    cs_chart_series series[CS_CHART_NAMES_MAX + 1];
    char names[CS_CHART_NAMES_MAX + 1][16];
    cs_error error;
    cs_error_init(&error);
    for (uint32_t i = 0; i <= CS_CHART_NAMES_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "line%u", i);
        series[i] = (cs_chart_series){.name = names[i], .n = 2, .x = points, .y = points};
    }
    const cs_chart_panel panel = {"", CS_CHART_NAMES_MAX + 1, series};
    const cs_chart chart = {.title = "",
                            .subtitle = "",
                            .x_title = "",
                            .y_title = "",
                            .n_panels = 1,
                            .n_columns = 1,
                            .panels = &panel};
    expect_int("status", CS_USAGE, cs_plot_chart_draw(&chart, "/tmp/sim-chart.svg", &error));
    assert_string_equal(error.text, "a chart has at most 10 names of series");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bars),
        cmocka_unit_test(test_too_many_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

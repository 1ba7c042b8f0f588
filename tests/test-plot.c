/* Plots: refusals of the reader, input of gnuplot, and complete pictures. */
#include "plots/plot.h"
#include "sim/core/trace/results-reader.h"
#include "sim/core/trace/results.h"
#include "sim/run/store-run.h"

#include "tests/expect.h"
#include "tests/run-scenario.h"
#include "tests/synthetic-trace.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 512 };

static const synthetic_options four = {
    .devices = 4,
    .micro_batches = 8,
    .mini_batches = 2,
    .forward = 1000000000,
    .backward = 2000000000,
    .update = 500000000,
    .transfer = 200000000,
    .weights = 1 << 30,
    .activation = 300 << 20,
    .capacity = INT64_C(4) << 30,
};

/* ---- a folder with a "data" folder that gnuplot's jobs go to, and a results file ---- */

static const char *in(void *const *state, const char *name)
{
    static char paths[4][PATH]; /* good for four calls */
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH, "%s/%s", (const char *)*state, name);
    return path;
}

static void write_results(const char *path, const synthetic_options *options, int64_t schema,
                          const char *format)
{
    synthetic_run run;
    cs_error error;
    cs_h5_file *file = NULL;
    const cs_results_info info = {"a_name", "chain", "one_f_one_b", "{}", "0.0.0", 1};
    cs_error_init(&error);
    assert_true(synthetic_run_init(&run, options));
    cs_status status = cs_h5_create(path, NULL, &file, &error);
    if (status == CS_OK && schema == 1 && !format) {
        status = cs_results_write(file, &info, &run.graph, &run.trace, &error);
        if (status == CS_OK)
            status = synthetic_run_store(file, &run, &error);
    }
    if (status == CS_OK && format)
        status = cs_h5_set_text(file, "format", format, &error);
    if (status == CS_OK && format)
        status = cs_h5_set_int64(file, "schema_version", schema, &error);
    if (status == CS_OK)
        status = cs_h5_commit(file, &error);
    cs_h5_destroy(file);
    synthetic_run_finish(&run);
    expect_error(path, CS_OK, "", status, &error);
}

static int enter_folder(void **state)
{
    char *folder = strdup("/tmp/test-plot-XXXXXX");
    *state = folder;
    if (!folder || !mkdtemp(folder) || mkdir(in(state, "data"), 0700) != 0)
        return -1;
    setenv("TMPDIR", in(state, "data"), 1);
    write_results(in(state, "run.h5"), &four, 1, NULL);
    return 0;
}

static int leave_folder(void **state)
{
    char command[PATH];
    unsetenv("TMPDIR");
    snprintf(command, sizeof(command), "rm -r %s", (const char *)*state);
    int result = system(command);
    free(*state);
    return result;
}

static int count_files(const char *folder)
{
    int n = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(list);
    return n;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static char *slurp(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s: not there", path);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *bytes = calloc(*length + 1, 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *length, file), *length);
    fclose(file);
    return bytes;
}

static void need_gnuplot(void)
{
    if (system("gnuplot --version >/dev/null 2>&1") != 0) {
        print_message("skipped: gnuplot is not installed\n");
        skip();
    }
}

/* ---- the reader ---- */

static void expect_refused(const char *row, const char *path, const char *message)
{
    cs_reader reader;
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_reader_init(&reader, path, &error);
    expect_int(row, CS_INVALID, status);
    if (strncmp(error.text, path, strlen(path)) != 0 || !strstr(error.text, message))
        fail_msg("%s:\nexpected: %s: ...%s...\n     got: %s", row, path, message, error.text);
}

static void test_reader_refuses(void **state)
{
    expect_refused("missing", in(state, "none.h5"), "cannot read: No such file or directory");
    expect_refused("a folder", in(state, "data"), "not a file");
    write_text(in(state, "text.h5"), "{\"schema_version\": 1}");
    expect_refused("text", in(state, "text.h5"), "not an HDF5 file; must be a results file");
    write_text(in(state, "empty.h5"), "");
    expect_refused("empty", in(state, "empty.h5"), "not an HDF5 file");
    write_results(in(state, "bare.h5"), &four, 0, NULL);
    expect_refused("no format", in(state, "bare.h5"), "not a results file; its attribute");
    write_results(in(state, "other.h5"), &four, 1, "keras-weights");
    expect_refused("other format", in(state, "other.h5"), "(got keras-weights)");
    write_results(in(state, "new.h5"), &four, 2, "sim-results");
    expect_refused(
        "newer", in(state, "new.h5"),
        "written by a newer version: its schema is version 2, this program reads up to 1");
    write_results(in(state, "zero.h5"), &four, 0, "sim-results");
    expect_refused("version 0", in(state, "zero.h5"), "must be >= 1 (got 0)");
    write_results(in(state, "hollow.h5"), &four, 1, "sim-results");
    expect_refused("no name", in(state, "hollow.h5"), "name: missing, must be a text");
}

static void test_reader_refuses_cut_off_files(void **state)
{
    size_t length;
    char path[PATH];
    snprintf(path, sizeof(path), "%s", in(state, "cut.h5"));
    char *bytes = slurp(in(state, "run.h5"), &length);
    for (size_t part = 1; part < 20; part++) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        fwrite(bytes, 1, length * part / 20, file);
        fclose(file);
        expect_refused("cut off", path, "damaged, or cut off: it cannot be read");
    }
    free(bytes);
}

static void test_reader_names_columns(void **state)
{
    cs_reader reader;
    cs_error error;
    const int64_t *values;
    uint64_t n = 0;
    char expected[PATH];
    cs_error_init(&error);
    assert_int_equal(cs_reader_init(&reader, in(state, "run.h5"), &error), CS_OK);
    expect_text("name", "a_name", reader.name);
    const cs_reader_column missing = {"tasks/colour", CS_READER_INT64, &values};
    assert_int_equal(cs_reader_read(&reader, &missing, 1, &n, &error), CS_INVALID);
    snprintf(expected, sizeof(expected), "%s: tasks/colour: missing, must be a column",
             in(state, "run.h5"));
    assert_int_equal(strncmp(error.text, expected, strlen(expected)), 0);
    cs_error_init(&error);
    const cs_reader_column uneven[] = {{"tasks/start", CS_READER_INT64, &values},
                                       {"devices/peak", CS_READER_INT64, &values}};
    assert_int_equal(cs_reader_read(&reader, uneven, 2, &n, &error), CS_INVALID);
    assert_non_null(strstr(error.text, "must be a column as long as the others of its group"));
    cs_reader_finish(&reader);
}

/* ---- options ---- */

static void test_options(void **state)
{
    const char *input = in(state, "run.h5");
    const struct {
        const char *name;
        cs_plot_options options;
        const char *message;
    } rows[] = {
        {"kind", {.kind = "timelime", .output = "a.svg"}, "did you mean \"timeline\"?"},
        {"ending", {.kind = "timeline", .output = "a.jpg"}, "a.jpg: the name must end in .svg"},
        {"no ending", {.kind = "timeline", .output = "b.svg/a"}, "the name must end in .svg"},
        {"small", {.kind = "memory", .output = "a.svg", .width = 20}, "width: must be 200 to"},
        {"large", {.kind = "memory", .output = "a.svg", .height = 90000}, "height: must be 200"},
        {"device",
         {.kind = "memory", .output = "a.svg", .first_device = 4},
         "devices 4 to 4: must be among 0 to 3"},
        {"devices",
         {.kind = "memory", .output = "a.svg", .first_device = 1, .n_devices = 4},
         "devices 1 to 4: must be among 0 to 3"},
        {"mini-batch",
         {.kind = "timeline", .output = "a.svg", .first_mini_batch = 2, .n_mini_batches = 1},
         "mini-batches 2 to 2: "},
        {"time",
         {.kind = "timeline", .output = "a.svg", .from = 2, .until = 3},
         "time range: nothing is between 2 s and 3 s"},
        {"negative",
         {.kind = "timeline", .output = "a.svg", .from = -1},
         "time range: must be >= 0 s"},
        {"time of use",
         {.kind = "utilisation", .output = "a.svg", .until = 0.01},
         "utilisation: is of the whole run"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_error error;
        cs_plot_options options = rows[i].options;
        char output[PATH];
        snprintf(output, sizeof(output), "%s/%s", (const char *)*state, options.output);
        options.input = input;
        options.output = strcmp(rows[i].name, "ending") == 0 ? "a.jpg" : output;
        cs_error_init(&error);
        expect_int(rows[i].name, CS_USAGE, cs_plot_draw(&options, &error));
        if (!strstr(error.text, rows[i].message))
            fail_msg("%s:\nexpected: ...%s...\n     got: %s", rows[i].name, rows[i].message,
                     error.text);
    }
    expect_int("files", 2, count_files(*state)); /* data, run.h5 */
    expect_int("temporary files", 0, count_files(in(state, "data")));
}

static void test_kinds_are_listed(void **state)
{
    (void)state;
    const cs_plot_kind *kinds = cs_plot_kinds();
    expect_text("first", "timeline", kinds[0].name);
    expect_text("second", "boxes", kinds[1].name);
    expect_text("third", "memory", kinds[2].name);
    expect_text("fourth", "mean-memory", kinds[3].name);
    expect_text("fifth", "segments", kinds[4].name);
    expect_text("sixth", "utilisation", kinds[5].name);
    expect_text("seventh", "spread", kinds[6].name);
    expect_text("eighth", "heatmap", kinds[7].name);
    expect_text("ninth", "lines", kinds[8].name);
    expect_text("tenth", "plans", kinds[9].name);
    expect_text("eleventh", "validation", kinds[10].name);
    expect_text("twelfth", "fit", kinds[11].name);
    assert_null(kinds[12].name);
}

/* ---- pictures ---- */

static void check_picture(const char *path, const char *format)
{
    static const struct {
        const char *format, *begins, *ends;
    } rows[] = {{"svg", "<?xml ", "</svg>"},
                {"png", "\x89PNG\r\n\x1a\n", "IEND"},
                {"pdf", "%PDF-", "%%EOF"}};
    size_t length;
    char *bytes = slurp(path, &length);
    for (size_t i = 0; i < ROWS(rows); i++) {
        if (strcmp(rows[i].format, format) != 0)
            continue;
        assert_true(length > 1000);
        assert_memory_equal(bytes, rows[i].begins, strlen(rows[i].begins));
        /* the end mark is followed by at most a checksum or a newline */
        bool ended = false;
        size_t size = strlen(rows[i].ends);
        for (size_t back = size; back <= size + 8; back++)
            ended = ended || memcmp(bytes + length - back, rows[i].ends, size) == 0;
        if (!ended)
            fail_msg("%s: not complete", path);
    }
    free(bytes);
}

static void check_xml(const char *path)
{
    char command[PATH + 64];
    if (system("xmllint --version >/dev/null 2>&1") != 0)
        return;
    snprintf(command, sizeof(command), "xmllint --noout --nonet %s", path);
    expect_int(path, 0, system(command));
}

/* One text of an SVG by gnuplot: where it is anchored, how it is turned (degrees, upwards), and
 * which part of it is at the anchor. */
typedef struct svg_text {
    double x, y, turn, size;
    char anchor[8], text[256];
} svg_text;

/* The next text behind `at`, or NULL; returns what follows it. */
static const char *next_text(const char *at, svg_text *text)
{
    const char *group = at, *begin = strstr(at, "<text>");
    if (!begin)
        return NULL;
    for (const char *g = at; (g = strstr(g, "<g transform=")) && g < begin; g++)
        group = g;
    text->turn = 0;
    if (sscanf(group, "<g transform=\"translate(%lf,%lf) rotate(%lf)", &text->x, &text->y,
               &text->turn) < 2)
        fail_msg("a text without a place: %.200s", group);
    text->turn = -text->turn;
    assert_int_equal(sscanf(strstr(group, "font-size="), "font-size=\"%lf", &text->size), 1);
    assert_int_equal(sscanf(strstr(group, "text-anchor="), "text-anchor=\"%7[a-z]", text->anchor),
                     1);
    *text->text = '\0';
    sscanf(begin, "<text>%255[^<]", text->text);
    return begin + 1;
}

/* No text reaches beyond the sheet; 0.57 em is what letters of DejaVu Sans, the widest of the usual
 * fonts, are wide on average. */
static void check_texts_are_inside(const char *path)
{
    size_t length;
    double width, height;
    svg_text text;
    char *svg = slurp(path, &length);
    assert_int_equal(sscanf(strstr(svg, "viewBox="), "viewBox=\"0 0 %lf %lf", &width, &height), 2);
    for (const char *at = svg; (at = next_text(at, &text));) {
        const double reach = 0.57 * text.size * (double)strlen(text.text);
        const double before = *text.anchor == 's' ? 0 : *text.anchor == 'm' ? reach / 2 : reach;
        for (int end = 0; end < 2; end++) {
            const double along = end ? reach - before : -before, turn = text.turn * acos(-1) / 180;
            const double x = text.x + along * cos(turn), y = text.y - along * sin(turn);
            if (x < -1 || x > width + 1 || y < -1 || y > height + 1)
                fail_msg("%s: \"%s\" reaches (%g, %g), beyond %g x %g", path, text.text, x, y,
                         width, height);
        }
    }
    free(svg);
}

static void draw_all(void **state, const char *results)
{
    static const char *const formats[] = {"svg", "png", "pdf"};
    for (const cs_plot_kind *kind = cs_plot_kinds(); strcmp(kind->name, "spread") != 0; kind++) {
        const bool drawn = strcmp(kind->name, "segments") != 0; /* runs with an allocator */
        for (size_t f = 0; drawn && f < ROWS(formats); f++) {
            char output[PATH];
            cs_error error;
            snprintf(output, sizeof(output), "%s/%s.%s", (const char *)*state, kind->name,
                     formats[f]);
            const cs_plot_options options = {
                .kind = kind->name, .input = results, .output = output};
            cs_error_init(&error);
            expect_error(output, CS_OK, "", cs_plot_draw(&options, &error), &error);
            check_picture(output, formats[f]);
            if (f == 0) {
                check_xml(output);
                check_texts_are_inside(output);
            }
        }
    }
    expect_int("data, run.h5 and 15 pictures", 17, count_files(*state));
    expect_int("temporary files", 0, count_files(in(state, "data")));
}

static void test_pictures_of_4_devices(void **state)
{
    need_gnuplot();
    draw_all(state, in(state, "run.h5"));
}

static void test_pictures_of_64_devices(void **state)
{
    synthetic_options options = four;
    need_gnuplot();
    options.devices = 64;
    options.micro_batches = 32;
    options.recompute = options.split = true;
    write_results(in(state, "run.h5"), &options, 1, NULL);
    draw_all(state, in(state, "run.h5"));
}

/* One device, no transfers, links, capacity or analysis of note. */
static void test_pictures_of_1_device(void **state)
{
    synthetic_options options = four;
    need_gnuplot();
    options.devices = options.micro_batches = options.mini_batches = 1;
    options.transfer = options.capacity = 0;
    write_results(in(state, "run.h5"), &options, 1, NULL);
    draw_all(state, in(state, "run.h5"));
}

static uint32_t count_texts(const char *svg, const char *text)
{
    uint32_t n = 0;
    for (const char *at = svg; (at = strstr(at, text)); at++)
        n++;
    return n;
}

/* Each of two devices has a forward and a backward of every micro-batch, named from 0A on. */
static void test_names_of_boxes(void **state)
{
    char output[PATH];
    snprintf(output, sizeof(output), "%s", in(state, "names.svg"));
    const cs_plot_options options = {.kind = "boxes",
                                     .input = in(state, "run.h5"),
                                     .output = output,
                                     .first_device = 1,
                                     .n_devices = 2,
                                     .width = 3000};
    cs_error error;
    cs_error_init(&error);
    need_gnuplot();
    expect_error("names", CS_OK, "", cs_plot_draw(&options, &error), &error);
    size_t length;
    char *svg = slurp(output, &length);
    for (uint32_t mini = 0; mini <= 1; mini++) {
        for (char micro = 'A'; micro <= 'H'; micro++) {
            char name[16];
            snprintf(name, sizeof(name), "%u%c<", mini, micro);
            expect_int(name, 4, count_texts(svg, name));
        }
    }
    expect_int("no micro-batch beyond H", 0, count_texts(svg, "0I<"));
    expect_int("no third mini-batch", 0, count_texts(svg, "2A<"));
    free(svg);
}

static void test_part_of_a_run(void **state)
{
    char output[PATH];
    snprintf(output, sizeof(output), "%s", in(state, "part.svg"));
    const cs_plot_options rows[] = {
        {.kind = "timeline", .first_device = 1, .n_devices = 2, .from = 0.01, .until = 0.02},
        {.kind = "timeline",
         .first_mini_batch = 1,
         .n_mini_batches = 1,
         .width = 400,
         .height = 300},
        {.kind = "boxes", .first_device = 1, .n_devices = 2, .from = 0.01, .until = 0.02},
        {.kind = "memory", .first_device = 3, .from = 0.01, .until = 0.0100001},
        {.kind = "utilisation", .first_device = 1, .n_devices = 1, .width = 500, .height = 240},
    };
    need_gnuplot();
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_error error;
        cs_plot_options options = rows[i];
        options.input = in(state, "run.h5");
        options.output = output;
        cs_error_init(&error);
        expect_error(options.kind, CS_OK, "", cs_plot_draw(&options, &error), &error);
        check_picture(output, "svg");
        check_xml(output);
    }
}

/* Title and legend of a narrow picture take more lines than it has room for. */
static void test_too_low(void **state)
{
    char output[PATH];
    cs_error error;
    cs_plot_options options = {.kind = "timeline", .width = 200, .height = 200};
    need_gnuplot();
    snprintf(output, sizeof(output), "%s", in(state, "low.svg"));
    options.input = in(state, "run.h5");
    options.output = output;
    cs_error_init(&error);
    assert_int_equal(cs_plot_draw(&options, &error), CS_USAGE);
    assert_non_null(strstr(error.text, "height: must be at least "));
    assert_non_null(strstr(error.text, " (got 200)"));
    options.height = (uint32_t)strtoul(error.text + strlen("height: must be at least "), NULL, 10);
    cs_error_init(&error);
    expect_error("the least", CS_OK, "", cs_plot_draw(&options, &error), &error);
}

/* ---- sweeps ---- */

/* y = 10 a + b over a = 1, 2, 4 and b = "x", "y"; the point (4, "x") is missing. */
static cs_h5_value sweep_value(const void *source, uint64_t row, uint32_t which)
{
    static const double a[] = {1, 2, 4}, y[] = {10, 11, 20, 21, NAN, 41};
    static const char *const b[] = {"x", "y"};
    (void)source;
    if (which == 1)
        return (cs_h5_value){.text = b[row]};
    return (cs_h5_value){.float64 = which == 0 ? a[row] : y[row]};
}

/* `axes`: NULL: they are missing. */
static void write_tables(const char *path, const cs_h5_table *tables, size_t n, const char *axes)
{
    cs_h5_file *file = NULL;
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_h5_create(path, NULL, &file, &error);
    for (size_t i = 0; i < n && status == CS_OK; i++)
        status = cs_h5_write_table(file, &tables[i], &error);
    if (status == CS_OK)
        status = cs_h5_set_text(file, "format", "sim-sweep", &error);
    if (status == CS_OK)
        status = cs_h5_set_int64(file, "schema_version", 1, &error);
    if (status == CS_OK)
        status = cs_h5_set_text(file, "name", "a_sweep", &error);
    if (status == CS_OK && axes)
        status = cs_h5_set_text(file, "axes", axes, &error);
    if (status == CS_OK)
        status = cs_h5_commit(file, &error);
    cs_h5_destroy(file);
    expect_error(path, CS_OK, "", status, &error);
}

/* Out of memory are (1, "y") and (2, "x"); (4, "x") failed. */
static cs_h5_value sweep_out_of_memory(const void *source, uint64_t row, uint32_t which)
{
    static const double out_of_memory[] = {0, 1, 1, 0, NAN, 0};
    (void)source;
    (void)which;
    return (cs_h5_value){.float64 = out_of_memory[row]};
}

static void write_sweep_of(const char *path, bool axes, bool with_memory)
{
    static const cs_h5_column a[] = {{"s.a", CS_H5_DOUBLE, "bytes/s", "/s/a", .get = sweep_value},
                                     {0}};
    static const cs_h5_column b[] = {
        {"s.b", CS_H5_TEXT, "1", "/s/b", .get = sweep_value, .which = 1}, {0}};
    static const cs_h5_column y[] = {
        {"y_s", CS_H5_DOUBLE, "s", "y", .get = sweep_value, .which = 2}, {0}};
    static const char *const scales[] = {"s.a", "s.b"};
    static const uint64_t sizes[] = {3, 2};
    static const cs_h5_shape shape = {2, sizes, scales};
    static const cs_h5_column oom[] = {
        {"out_of_memory", CS_H5_DOUBLE, "1", "out of memory", .get = sweep_out_of_memory}, {0}};
    const cs_h5_table tables[] = {{"/", "s.a", a, 3, NULL, NULL},
                                  {"/", "s.b", b, 2, NULL, NULL},
                                  {"/", "", y, 6, NULL, &shape},
                                  {"/", "", oom, 6, NULL, &shape}};
    write_tables(path, tables, ROWS(tables) - !with_memory, axes ? "s.a s.b" : NULL);
}

static void write_sweep(const char *path, bool missing)
{
    write_sweep_of(path, !missing, false);
}

/* y over the two numbers and the meanings of seven texts, which differ in a word each. */
static const char *const categories[] = {"gpipe",     "1f1b", "zb_h1",       "interleaved_1f1b",
                                         "pipedream", "nf1b", "cdp_freshest"};

static cs_h5_value category_value(const void *source, uint64_t row, uint32_t which)
{
    static char texts[7][80];
    (void)source;
    if (which != 1)
        return (cs_h5_value){.float64 = which == 0 ? 16e9 * (double)(row + 1) : (double)row};
    snprintf(texts[row], sizeof(texts[row]), "{\"kind\":\"%s\",\"micro_batches\":8}",
             categories[row]);
    return (cs_h5_value){.text = texts[row]};
}

static void write_categories(const char *path)
{
    static const cs_h5_column kind[] = {
        {"s.kind", CS_H5_TEXT, "1", "/schedule", .get = category_value, .which = 1}, {0}};
    static const cs_h5_column memory[] = {
        {"s.memory", CS_H5_DOUBLE, "bytes", "/platform/memory", .get = category_value}, {0}};
    static const cs_h5_column y[] = {
        {"y_s", CS_H5_DOUBLE, "s", "y", .get = category_value, .which = 2}, {0}};
    static const char *const scales[] = {"s.kind", "s.memory"};
    static const uint64_t sizes[] = {7, 2};
    static const cs_h5_shape shape = {2, sizes, scales};
    const cs_h5_table tables[] = {{"/", "s.kind", kind, 7, NULL, NULL},
                                  {"/", "s.memory", memory, 2, NULL, NULL},
                                  {"/", "", y, 14, NULL, &shape}};
    write_tables(path, tables, ROWS(tables), "s.kind s.memory");
}

/* Every category once, inside the sheet, and the member that tells them apart in the title of the
 * axis; 16 GB is 16. */
static void test_labels_of_categories(void **state)
{
    static const uint32_t widths[] = {0, 300, 500, 2000};
    need_gnuplot();
    write_categories(in(state, "sweep.h5"));
    for (size_t i = 0; i < 2 * ROWS(widths); i++) {
        char input[PATH], output[PATH], label[64];
        cs_error error;
        size_t length;
        snprintf(input, sizeof(input), "%s", in(state, "sweep.h5"));
        snprintf(output, sizeof(output), "%s", in(state, "c.svg"));
        const cs_plot_options options = {.kind = i % 2 ? "heatmap" : "lines",
                                         .input = input,
                                         .output = output,
                                         .value = "y_s",
                                         .width = widths[i / 2]};
        cs_error_init(&error);
        expect_error(options.kind, CS_OK, "", cs_plot_draw(&options, &error), &error);
        check_texts_are_inside(output);
        char *svg = slurp(output, &length);
        for (size_t k = 0; k < ROWS(categories); k++) {
            snprintf(label, sizeof(label), ">%s<", categories[k]);
            expect_int(label, 1, count_texts(svg, label));
        }
        expect_int("16", 1, count_texts(svg, ">16<"));
        expect_int("32", 1, count_texts(svg, ">32<"));
        if (widths[i / 2] == 2000)
            expect_int("shared", 1, count_texts(svg, ">schedule: kind=...<"));
        free(svg);
    }
}

static void test_pictures_of_sweeps(void **state)
{
    static const char *const names[] = {"h.svg", "h.png", "h.pdf", "l.svg", "l.png", "l.pdf"};
    char input[PATH];
    need_gnuplot();
    snprintf(input, sizeof(input), "%s", in(state, "sweep.h5"));
    write_sweep(input, false);
    for (size_t i = 0; i < ROWS(names); i++) {
        char output[PATH];
        cs_error error;
        cs_error_init(&error);
        snprintf(output, sizeof(output), "%s", in(state, names[i]));
        const cs_plot_options options = {.kind = *names[i] == 'h' ? "heatmap" : "lines",
                                         .input = input,
                                         .output = output,
                                         .value = "y_s"};
        expect_error(output, CS_OK, "", cs_plot_draw(&options, &error), &error);
        check_picture(output, strchr(names[i], '.') + 1);
        if (i % 3 == 0) {
            check_xml(output);
            check_texts_are_inside(output);
        }
    }
}

/* y = 10 a + b at one b, at one a (the unit is that of the file), and at a's only value for (4,
 * "x"). */
static void test_part_of_a_sweep(void **state)
{
    static const struct {
        const char *at, *subtitle;
    } rows[] = {{"/s/b=y", "3 points from 11 to 41, at /s/b=y"},
                {"/s/b=x", "3 points from 10 to 20, 1 without a value, at /s/b=x"},
                {"/s/a=2 B/s", "2 points from 20 to 21, at /s/a=2 B/s"},
                {"/s/a=1", "2 points from 10 to 11, at /s/a=1"}};
    char input[PATH], output[PATH];
    need_gnuplot();
    snprintf(input, sizeof(input), "%s", in(state, "sweep.h5"));
    snprintf(output, sizeof(output), "%s", in(state, "part.svg"));
    write_sweep(input, false);
    for (size_t i = 0; i < ROWS(rows); i++) {
        size_t length;
        cs_error error;
        cs_error_init(&error);
        const cs_plot_options options = {.kind = "lines",
                                         .input = input,
                                         .output = output,
                                         .value = "y_s",
                                         .at = &rows[i].at,
                                         .n_at = 1};
        expect_error(rows[i].at, CS_OK, "", cs_plot_draw(&options, &error), &error);
        char *svg = slurp(output, &length);
        expect_int(rows[i].subtitle, 1, count_texts(svg, rows[i].subtitle));
        free(svg);
    }
}

static const char *const fixed[] = {"/s/c=1", "/s/b=z", "/s/a=3 B/s", "/s/b=x", "/s/a=2", "s.b=x"};
static const struct {
    const char *name, *file;
    cs_plot_options options;
    cs_status status;
    const char *message;
} refused_sweeps[] = {
    {"no value", "sweep.h5", {.kind = "heatmap"}, CS_USAGE, "--value must name a figure; "},
    {"wrong value",
     "sweep.h5",
     {.kind = "lines", .value = "y_p"},
     CS_USAGE,
     "did you mean \"y_s\"? known: y_s"},
    {"a key", "sweep.h5", {.kind = "lines", .value = "s.b"}, CS_USAGE, "known: y_s"},
    {"devices",
     "sweep.h5",
     {.kind = "lines", .value = "y_s", .n_devices = 2},
     CS_USAGE,
     "is of a sweep; takes no devices"},
    {"of a run",
     "run.h5",
     {.kind = "lines", .value = "y_s"},
     CS_INVALID,
     "is a file of `sim run`; must be one of `sim sweep`, which heatmap and lines draw"},
    {"no key to fix",
     "sweep.h5",
     {.kind = "lines", .value = "y_s", .at = &fixed[0], .n_at = 1},
     CS_USAGE,
     "--at: unknown key \"/s/c\"; "},
    {"no value to fix at",
     "sweep.h5",
     {.kind = "lines", .value = "y_s", .at = &fixed[1], .n_at = 1},
     CS_USAGE,
     "--at /s/b: unknown value \"z\"; known: x, y"},
    {"no number to fix at",
     "sweep.h5",
     {.kind = "lines", .value = "y_s", .at = &fixed[2], .n_at = 1},
     CS_USAGE,
     "--at /s/a: unknown value \"3 B/s\"; did you mean"},
    {"all fixed",
     "sweep.h5",
     {.kind = "lines", .value = "y_s", .at = &fixed[3], .n_at = 2},
     CS_USAGE,
     "--at /s/a=2: leaves no key to draw"},
    {"no key",
     "sweep.h5",
     {.kind = "lines", .value = "y_s", .at = &fixed[5], .n_at = 1},
     CS_USAGE,
     "--at must be /key=VALUE"},
    {"value of a run",
     "run.h5",
     {.kind = "timeline", .value = "y_s"},
     CS_USAGE,
     "timeline: is of a run; --value is for sweeps, costs and spread"},
    {"part of a run",
     "run.h5",
     {.kind = "boxes", .at = &fixed[1], .n_at = 1},
     CS_USAGE,
     "boxes: is not of a sweep; --at is for sweeps"},
    {"not of a run", "sweep.h5", {.kind = "timeline"}, CS_INVALID, "is a file of `sim sweep`"},
    {"no axes", "torn.h5", {.kind = "lines", .value = "y_s"}, CS_INVALID, "axes: missing"},
};

static void test_sweeps_that_are_refused(void **state)
{
    write_sweep(in(state, "sweep.h5"), false);
    write_sweep(in(state, "torn.h5"), true);
    for (size_t i = 0; i < ROWS(refused_sweeps); i++) {
        cs_error error;
        cs_plot_options options = refused_sweeps[i].options;
        options.input = in(state, refused_sweeps[i].file);
        options.output = in(state, "refused.svg");
        cs_error_init(&error);
        expect_int(refused_sweeps[i].name, refused_sweeps[i].status,
                   cs_plot_draw(&options, &error));
        if (!strstr(error.text, refused_sweeps[i].message))
            fail_msg("%s:\nexpected: ...%s...\n     got: %s", refused_sweeps[i].name,
                     refused_sweeps[i].message, error.text);
    }
}

/* ---- what gnuplot is given ---- */

/* Puts a program of the test's own in the place of `program`: it hands out the data as
 * "picture". */
static char *capture_of(void **state, const cs_plot_options *wanted, const char *program,
                        const char *file)
{
    char text[PATH], earlier[PATH] = "";
    cs_error error;
    size_t length;
    const char *programs = getenv("SIM_PLOTS_DIR");
    snprintf(earlier, sizeof(earlier), "%s", programs ? programs : "");
    snprintf(text, sizeof(text), "system(sprintf(\"cat '%%s/%s' > '%%s'\", folder, output))\n",
             file);
    write_text(in(state, program), text);
    setenv("SIM_PLOTS_DIR", *state, 1);
    char output[PATH];
    snprintf(output, sizeof(output), "%s", in(state, "picture.svg"));
    cs_plot_options options = *wanted;
    options.output = output;
    cs_error_init(&error);
    cs_status status = cs_plot_draw(&options, &error);
    if (*earlier)
        setenv("SIM_PLOTS_DIR", earlier, 1);
    else
        unsetenv("SIM_PLOTS_DIR");
    expect_error(file, CS_OK, "", status, &error);
    return slurp(output, &length);
}

static char *capture_of_kind(void **state, const char *kind, const char *file)
{
    char input[PATH];
    snprintf(input, sizeof(input), "%s", in(state, "run.h5"));
    return capture_of(state, &(cs_plot_options){.kind = kind, .input = input}, "timeline.gp", file);
}

static char *capture_of_run(void **state, const char *file)
{
    return capture_of_kind(state, "timeline", file);
}

static char *capture(void **state, const synthetic_options *synthetic, const char *file)
{
    write_results(in(state, "run.h5"), synthetic, 1, NULL);
    return capture_of_run(state, file);
}

/* Forward 10, backward 20, transfers 5 ps, no updates:
 *   device 0: F0 0-10, F1 10-20, B0 50-70, B1 80-100; device 1: F0 15-25, B0 25-45, F1 45-55, B1
 *   55-75
 * in ps, as the whole run is below 1 ns. Rows are 42 points high; computations take 0.05 to 0.69
 * of one, transfers to lower numbers 0.72 to 0.81, to higher ones 0.83 to 0.92. 1120 points for
 * 100 ps: all boxes are wide. Forward is 56B4E9 = 5682409, backward E69F00 = 15113984, transfers
 * 0072B2 = 29362. */
static void test_boxes_of_two_by_two(void **state)
{
    static const synthetic_options two_by_two = {
        .devices = 2,
        .micro_batches = 2,
        .mini_batches = 1,
        .forward = 10,
        .backward = 20,
        .transfer = 5,
        .activation = 100,
    };
    need_gnuplot();
    char *boxes = capture(state, &two_by_two, "wide.dat");
    expect_text("wide.dat",
                "0 10 0.05 0.69 5682409\n"
                "10 20 0.05 0.69 5682409\n"
                "50 70 0.05 0.69 15113984\n"
                "80 100 0.05 0.69 15113984\n"
                "10 15 0.83 0.92 29362\n"
                "20 25 0.83 0.92 29362\n"
                "15 25 1.05 1.69 5682409\n"
                "25 45 1.05 1.69 15113984\n"
                "45 55 1.05 1.69 5682409\n"
                "55 75 1.05 1.69 15113984\n"
                "45 50 1.72 1.81 29362\n"
                "75 80 1.72 1.81 29362\n",
                boxes);
    free(boxes);
    /* black on both colours */
    char *labels = capture(state, &two_by_two, "labels.dat");
    expect_text("labels.dat",
                "5 0.37 \"0\" 0\n"
                "15 0.37 \"1\" 0\n"
                "60 0.37 \"0\" 0\n"
                "90 0.37 \"1\" 0\n"
                "20 1.37 \"0\" 0\n"
                "35 1.37 \"0\" 0\n"
                "50 1.37 \"1\" 0\n"
                "65 1.37 \"1\" 0\n",
                labels);
    free(labels);
}

static void write_scenario_results(const char *path, const char *scenario)
{
    scenario_run run;
    cs_error error;
    cs_h5_file *file = NULL;
    cs_error_init(&error);
    cs_status status = scenario_run_init(&run, &error, "%s", scenario);
    expect_error(path, CS_OK, "", status, &error);
    status = cs_h5_create(path, NULL, &file, &error);
    if (status == CS_OK)
        status = cs_simulation_store(file, &run.scenario, &run.simulation, NULL, &error);
    if (status == CS_OK)
        status = cs_h5_commit(file, &error);
    cs_h5_destroy(file);
    scenario_run_finish(&run);
    expect_error(path, CS_OK, "", status, &error);
}

/* Two devices with two stages each and two micro-batches: 4 forwards and 4 backwards of first
 * stages are dark, as many of second ones light. Dark is 7/10 of each part of a colour, light 4/10
 * of it and
 * 6/10 of 255. Forward 56B4E9 = (86, 180, 233): (60, 126, 163) = 3C7EA3 = 3964579 and (187, 225,
 * 246) = BBE1F6 = 12313078; backward E69F00 = (230, 159, 0): (161, 111, 0) = A16F00 = 10579712 and
 * (245, 217,
 * 153) = F5D999 = 16112025. */
static void test_chunks_have_shades(void **state)
{
    static const struct {
        const char *name, *colour;
        uint32_t boxes;
    } rows[] = {{"dark forwards", " 3964579\n", 4},
                {"light forwards", " 12313078\n", 4},
                {"dark backwards", " 10579712\n", 4},
                {"light backwards", " 16112025\n", 4},
                {"plain forwards", " 5682409\n", 0}};
    need_gnuplot();
    write_scenario_results(
        in(state, "run.h5"),
        "{'schema_version': 1, 'model': {'uniform': {'layers': 4, 'forward': '1 s', 'backward': '2 "
        "s'}},"
        " 'platform': {'topology': 'ideal', 'devices': 2},"
        " 'schedule': {'kind': 'interleaved_1f1b', 'micro_batches': 2, 'stages_per_device': 2}}");
    char *boxes = capture_of_run(state, "wide.dat");
    for (size_t i = 0; i < ROWS(rows); i++)
        expect_int(rows[i].name, rows[i].boxes, count_texts(boxes, rows[i].colour));
    free(boxes);
    char *texts = capture_of_run(state, "texts.dat");
    expect_int("legend", 1, count_texts(texts, "dark to light: the 2 stages of a device"));
    free(texts);
}

/* The sweep above, drawn as lines: of "x" the points (1, 10), which fits, (2, 20), out of memory
 * (1), and 4, which failed; of "y" (1, 11), out of memory, (2, 21) and (4, 41). Only what is
 * between two points that fit is a line; what failed is marked by a cross (type 2) of its line's
 * colour, 0072B2 = 29362, at the foot: the axis begins at 0 and ends 5 % beyond 41. */
static void test_lines_out_of_memory(void **state)
{
    static const char *const at_x = "/s/b=x";
    const struct {
        const char *file, *all, *one;
    } rows[] = {
        {"solid.dat", "NaN NaN\n\n\nNaN NaN\n\n2 21\n4 41\n\n\n", "NaN NaN\n\n\n"},
        {"dashed.dat", "NaN NaN\n\n1 10\n2 20\n\n\nNaN NaN\n\n1 11\n2 21\n\n\n",
         "NaN NaN\n\n1 10\n2 20\n\n\n"},
        {"points.dat", "NaN NaN 0\n1 10 0\n2 20 1\n\n\nNaN NaN 0\n1 11 1\n2 21 0\n4 41 0\n\n\n",
         "NaN NaN 0\n1 10 0\n2 20 1\n\n\n"},
    };
    char input[PATH];
    need_gnuplot();
    snprintf(input, sizeof(input), "%s", in(state, "sweep.h5"));
    write_sweep_of(input, true, true);
    cs_plot_options options = {.kind = "lines", .input = input, .value = "y_s", .at = &at_x};
    for (size_t i = 0; i < ROWS(rows); i++) {
        for (options.n_at = 0; options.n_at < 2; options.n_at++) {
            char *data = capture_of(state, &options, "lines.gp", rows[i].file);
            expect_text(rows[i].file, options.n_at ? rows[i].one : rows[i].all, data);
            free(data);
        }
    }
    options.n_at = 0;
    double x = 0, y = 0;
    int type = 0, colour = 0;
    char *foot = capture_of(state, &options, "lines.gp", "foot.dat");
    assert_int_equal(sscanf(foot, "%lf %lf %d %d", &x, &y, &type, &colour), 4);
    if (count_texts(foot, "\n") != 1 || x != 4 || y <= 0 || y > 2 || type != 2 || colour != 29362)
        fail_msg("at the foot: %s", foot);
    free(foot);
    char *texts = capture_of(state, &options, "lines.gp", "texts.dat");
    expect_int("range", 1,
               count_texts(texts, "6 points from 10 to 41, those that fit from 10 to 41"));
    expect_int("out of memory", 1, count_texts(texts, "hollow: out of memory (2)"));
    expect_int("failed", 1, count_texts(texts, "cross on the axis: failed (1)"));
    free(texts);
}

/* 50 points, every third out of memory: too many to mark all. About 8 of 50 are marked, to
 * distinguish lines: every 6th (50 / 8), all out of memory. Isolated points would vanish otherwise:
 * points that fit in pairs have a line, so only the last, number 49, is marked. 0 is out of memory,
 * 1 and 2 fit, 3 is out of memory, ... 48 is, 49 fits, alone. */
static cs_h5_value third_value(const void *source, uint64_t row, uint32_t which)
{
    (void)source;
    return (cs_h5_value){.float64 = which == 1 ? row % 3 == 0 : (double)row};
}

static void test_lone_points_are_marked(void **state)
{
    static const cs_h5_column a[] = {{"s.a", CS_H5_DOUBLE, "1", "/s/a", .get = third_value}, {0}};
    static const cs_h5_column y[] = {
        {"y", CS_H5_DOUBLE, "1", "y", .get = third_value},
        {"out_of_memory", CS_H5_DOUBLE, "1", "o", .get = third_value, .which = 1},
        {0}};
    const cs_h5_table tables[] = {{"/", "s.a", a, 50, NULL, NULL}, {"/", "s.a", y, 50, NULL, NULL}};
    char input[PATH];
    need_gnuplot();
    snprintf(input, sizeof(input), "%s", in(state, "sweep.h5"));
    write_tables(input, tables, ROWS(tables), "s.a");
    const cs_plot_options options = {.kind = "lines", .input = input, .value = "y"};
    char *points = capture_of(state, &options, "lines.gp", "points.dat");
    expect_text("points.dat",
                "NaN NaN 0\n0 0 1\n6 6 1\n12 12 1\n18 18 1\n24 24 1\n30 30 1\n36 36 1\n42 42 1\n"
                "48 48 1\n49 49 0\n\n\n",
                points);
    free(points);
}

/* Which of the cells (left, right, top, bottom, colour) the middle of a stroke is in. */
static int cell_at(const char *cells, double x, double y)
{
    for (int i = 0; *cells; i++) {
        double left, right, top, bottom;
        assert_int_equal(sscanf(cells, "%lf %lf %lf %lf", &left, &right, &top, &bottom), 4);
        if (x > left && x < right && y > top && y < bottom)
            return i;
        cells = strchr(cells, '\n') + 1;
    }
    return -1;
}

/* The same as cells, by a and then by b: hatched are (1, "y") and (2, "x"), by a line each 6
 * points of the cell's width and height; (4, "x") is crossed by two. */
static void test_cells_out_of_memory(void **state)
{
    int strokes[6] = {0};
    char input[PATH];
    double x, y, dx, dy, left, right, top, bottom;
    need_gnuplot();
    snprintf(input, sizeof(input), "%s", in(state, "sweep.h5"));
    write_sweep_of(input, true, true);
    const cs_plot_options options = {.kind = "heatmap", .input = input, .value = "y_s"};
    char *cells = capture_of(state, &options, "heatmap.gp", "cells.dat");
    char *hatch = capture_of(state, &options, "heatmap.gp", "hatch.dat");
    assert_int_equal(sscanf(cells, "%lf %lf %lf %lf", &left, &right, &top, &bottom), 4);
    for (const char *at = hatch; *at; at = strchr(at, '\n') + 1) {
        assert_int_equal(sscanf(at, "%lf %lf %lf %lf", &x, &y, &dx, &dy), 4);
        const int cell = cell_at(cells, x + dx / 2, y + dy / 2);
        if (cell < 0)
            fail_msg("outside: %s", at);
        strokes[cell]++;
    }
    const int expected = (int)((right - left + bottom - top) / 6);
    for (int i = 0; i < 6; i++) {
        const bool hatched = i == 1 || i == 2;
        if (hatched ? abs(strokes[i] - expected) > 1 : strokes[i] != (i == 4 ? 2 : 0))
            fail_msg("cell %d has %d strokes; a hatched one has about %d", i, strokes[i], expected);
    }
    free(cells);
    free(hatch);
    char *texts = capture_of(state, &options, "heatmap.gp", "texts.dat");
    expect_int("out of memory", 1, count_texts(texts, "hatched: out of memory (2)"));
    expect_int("failed", 1, count_texts(texts, "crossed: failed (1)"));
    free(texts);
}

/* Each device has weights of 1 GiB: in 64 GiB all fits, in 64 MiB none does. */
static void test_run_out_of_memory_is_told(void **state)
{
    synthetic_options options = four;
    need_gnuplot();
    options.capacity = INT64_C(64) << 30;
    char *texts = capture(state, &options, "texts.dat");
    expect_int("fits", 0, count_texts(texts, "OUT OF MEMORY"));
    free(texts);
    options.capacity = 64 << 20;
    texts = capture(state, &options, "texts.dat");
    expect_int("does not", 1, count_texts(texts, "OUT OF MEMORY on 4 devices"));
    free(texts);
}

/* Lightness as a printer without colours has it (ITU-R BT.601), 0 to 255. */
static double grey(uint32_t colour)
{
    return 0.299 * (colour >> 16 & 0xff) + 0.587 * (colour >> 8 & 0xff) + 0.114 * (colour & 0xff);
}

/* Boxes of two devices, two micro-batches: 4 of each kind (on each of a device's stages) and
 * mini-batch. So many looks have 4 boxes each. Of one mini-batch any two differ by 20 of 255 in
 * grey: who sees no colours tells them apart. */
static void expect_looks(void **state, const char *schedule, uint32_t mini_batches,
                         uint32_t n_looks)
{
    enum { MOST = 16, EACH = 4 };
    uint32_t looks[MOST], counts[MOST] = {0}, n = 0, colour = 0;
    char scenario[512];
    snprintf(scenario, sizeof(scenario),
             "{'schema_version': 1, 'model': {'uniform': {'layers': 4, 'forward': '1 s', "
             "'backward': '2 s'}}, 'platform': {'topology': 'ideal', 'devices': 2}, "
             "'schedule': {%s, 'micro_batches': 2}, 'iterations': %u}",
             schedule, mini_batches);
    write_scenario_results(in(state, "run.h5"), scenario);
    char *boxes = capture_of_kind(state, "boxes", "wide.dat");
    for (const char *at = boxes; *at; at = strchr(at, '\n') + 1) {
        assert_int_equal(sscanf(at, "%*f %*f %*f %*f %u", &colour), 1);
        uint32_t i = 0;
        while (i < n && looks[i] != colour)
            i++;
        assert_true(i < MOST);
        looks[i] = colour;
        n += i == n;
        counts[i]++;
    }
    free(boxes);
    expect_int(schedule, n_looks, n);
    for (uint32_t i = 0; i < n; i++) {
        expect_int(schedule, EACH, counts[i]);
        for (uint32_t k = 0; k < i && mini_batches == 1; k++)
            if (fabs(grey(looks[i]) - grey(looks[k])) < 20)
                fail_msg("%s: %06X and %06X are alike in grey", schedule, looks[i], looks[k]);
    }
}

static void test_looks_of_boxes(void **state)
{
    static const char interleaved[] = "'kind': 'interleaved_1f1b', 'stages_per_device': 2";
    need_gnuplot();
    expect_looks(state, "'kind': 'gpipe'", 1, 2);
    expect_looks(state, "'kind': 'zb_h1'", 1, 3);
    expect_looks(state, "'kind': 'zb_h1'", 2, 6);
    expect_looks(state, interleaved, 1, 4);
    expect_looks(state, interleaved, 2, 8);
    char *texts = capture_of_kind(state, "boxes", "texts.dat");
    expect_int("stages", 1,
               count_texts(texts, "dark to light: the 2 stages of a device in their order"));
    expect_int("mini-batches", 1, count_texts(texts, "left, right: even, odd mini-batches"));
    free(texts);
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* 8 devices, 40,000 tasks each, on 1120 points: boxes narrower than half a point are merged, so
 * there is at most one box per half point and lane, and no label fits. */
static void test_many_boxes_are_merged(void **state)
{
    synthetic_options options = four;
    need_gnuplot();
    options.devices = 8;
    options.micro_batches = 2000;
    options.mini_batches = 5;
    char *boxes = capture(state, &options, "narrow.dat");
    size_t n = count_lines(boxes);
    if (n < 1000 || n > 8 * 3 * 2 * 1120)
        fail_msg("%zu boxes", n);
    free(boxes);
}

/* ---- failures of gnuplot ---- */

static void expect_failure(void **state, const char *row, const char *message)
{
    size_t length;
    cs_error error;
    char output[PATH], input[PATH];
    snprintf(output, sizeof(output), "%s", in(state, "picture.svg"));
    snprintf(input, sizeof(input), "%s", in(state, "run.h5"));
    const cs_plot_options options = {.kind = "timeline", .input = input, .output = output};
    write_text(output, "the earlier one");
    int before = count_files(*state);
    cs_error_init(&error);
    expect_int(row, CS_FAILED, cs_plot_draw(&options, &error));
    if (!strstr(error.text, message))
        fail_msg("%s:\nexpected: ...%s...\n     got: %s", row, message, error.text);
    char *text = slurp(output, &length);
    expect_text(row, "the earlier one", text);
    free(text);
    expect_int(row, before, count_files(*state));
    expect_int(row, 0, count_files(in(state, "data")));
}

static void test_gnuplot_is_missing(void **state)
{
    char path[8192];
    snprintf(path, sizeof(path), "%s", getenv("PATH"));
    setenv("PATH", "/nonexistent", 1);
    cs_error error;
    cs_error_init(&error);
    expect_failure(state, "missing", "gnuplot: not found; plots need gnuplot 5.4 or later");
    setenv("PATH", path, 1);
}

static void test_gnuplot_fails(void **state)
{
    char earlier[PATH];
    const char *programs = getenv("SIM_PLOTS_DIR");
    need_gnuplot();
    snprintf(earlier, sizeof(earlier), "%s", programs ? programs : "");
    setenv("SIM_PLOTS_DIR", *state, 1);
    expect_failure(state, "no program", "timeline.gp: cannot read; SIM_PLOTS_DIR can name");
    write_text(in(state, "timeline.gp"), "x = 1\nplot nonsense(\n");
    expect_failure(state, "wrong program", "gnuplot: timeline.gp: \"");
    write_text(in(state, "timeline.gp"), "exit status 3\n");
    expect_failure(state, "silent", "gnuplot: timeline.gp: failed");
    if (*earlier)
        setenv("SIM_PLOTS_DIR", earlier, 1);
    else
        unsetenv("SIM_PLOTS_DIR");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reader_refuses),
        TEST(test_reader_refuses_cut_off_files),
        TEST(test_reader_names_columns),
        TEST(test_options),
        TEST(test_kinds_are_listed),
        TEST(test_pictures_of_4_devices),
        TEST(test_pictures_of_64_devices),
        TEST(test_pictures_of_1_device),
        TEST(test_names_of_boxes),
        TEST(test_part_of_a_run),
        TEST(test_too_low),
        TEST(test_boxes_of_two_by_two),
        TEST(test_many_boxes_are_merged),
        TEST(test_gnuplot_is_missing),
        TEST(test_gnuplot_fails),
        TEST(test_pictures_of_sweeps),
        TEST(test_sweeps_that_are_refused),
        TEST(test_labels_of_categories),
        TEST(test_part_of_a_sweep),
        TEST(test_chunks_have_shades),
        TEST(test_lines_out_of_memory),
        TEST(test_lone_points_are_marked),
        TEST(test_cells_out_of_memory),
        TEST(test_run_out_of_memory_is_told),
        TEST(test_looks_of_boxes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

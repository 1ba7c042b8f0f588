/* The layer over HDF5: values that are written come back, and failures leave no files. */
#include "sim/core/trace/h5.h"

#include "tests/expect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH = 512 };

/* ---- a folder of its own for each test ---- */

static int enter_folder(void **state)
{
    char *folder = strdup("/tmp/test-h5-XXXXXX");
    *state = folder;
    return folder && mkdtemp(folder) ? 0 : -1;
}

static void clear_folder(const char *folder)
{
    char path[PATH];
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(path);
    }
    closedir(list);
}

static int leave_folder(void **state)
{
    chmod(*state, 0700);
    clear_folder(*state);
    rmdir(*state);
    free(*state);
    return 0;
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

/* "FOLDER/NAME"; good until the next call. */
static const char *in(void *const *state, const char *name)
{
    static char path[PATH];
    snprintf(path, sizeof(path), "%s/%s", (const char *)*state, name);
    return path;
}

static char *slurp(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*length + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *length, file), *length);
    fclose(file);
    return bytes;
}

static bool same_bytes(const char *a, const char *b)
{
    size_t n, m;
    char *x = slurp(a, &n), *y = slurp(b, &m);
    bool same = n == m && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return same;
}

/* ---- a table with a column of each type; values follow from the row ---- */

static cs_h5_value get_row(const void *source, uint64_t row, uint32_t which)
{
    (void)source, (void)which;
    return (cs_h5_value){.uint32 = (uint32_t)row};
}

static cs_h5_value get_signed(const void *source, uint64_t row, uint32_t which)
{
    (void)source;
    int64_t value = (int64_t)(row * 1000003) - which;
    return (cs_h5_value){.int64 = row == 1 ? INT64_MAX : row == 2 ? INT64_MIN : value};
}

static cs_h5_value get_code(const void *source, uint64_t row, uint32_t which)
{
    (void)source, (void)which;
    return (cs_h5_value){.uint8 = (uint8_t)(row % 3)};
}

static cs_h5_value get_id(const void *source, uint64_t row, uint32_t which)
{
    (void)source, (void)which;
    return (cs_h5_value){.uint32 = row % 4 == 0 ? CS_H5_NONE : (uint32_t)row};
}

static cs_h5_value get_share(const void *source, uint64_t row, uint32_t which)
{
    (void)source, (void)which;
    return (cs_h5_value){.float64 = (double)row / 3};
}

static const char *const words[] = {"", "gpu0 > gpu1", "Knoten \xc3\xa4"};

static cs_h5_value get_word(const void *source, uint64_t row, uint32_t which)
{
    (void)source, (void)which;
    return (cs_h5_value){.text = words[row % 3]};
}

static const char *const codes[] = {"red", "green", "blue", NULL};

static const cs_h5_column columns[] = {
    {"row", CS_H5_UINT32, "1", "number of the row", .get = get_row},
    {"signed", CS_H5_INT64, "ps", "a time", .get = get_signed, .which = 7},
    {"code", CS_H5_UINT8, "1", "a colour", codes, .get = get_code},
    {"id", CS_H5_UINT32, "1", "an id", .optional = true, .get = get_id},
    {"share", CS_H5_DOUBLE, "bytes/s", "a rate", .get = get_share},
    {"word", CS_H5_TEXT, "1", "a word", .get = get_word},
    {0},
};

static const cs_h5_column more_columns[] = {
    {"later", CS_H5_INT64, "bytes", "added afterwards", .get = get_signed, .which = 0},
    {0},
};

static cs_status write_file(const char *path, uint64_t n_rows, const cs_progress *progress,
                            cs_error *error)
{
    const cs_h5_table table = {"things", "row", columns, n_rows, NULL};
    const cs_h5_table more = {"things", "row", more_columns, n_rows, NULL};
    cs_h5_file *file = NULL;
    cs_status status = cs_h5_create(path, progress, &file, error);
    if (status == CS_OK)
        status = cs_h5_set_text(file, "name", "f\xc3\xbcr alle", error);
    if (status == CS_OK)
        status = cs_h5_set_uint64(file, "seed", UINT64_MAX, error);
    if (status == CS_OK)
        status = cs_h5_set_int64(file, "least", INT64_MIN, error);
    if (status == CS_OK)
        status = cs_h5_set_double(file, "third", 1. / 3, error);
    if (status == CS_OK)
        status = cs_h5_write_table(file, &table, error);
    if (status == CS_OK)
        status = cs_h5_write_table(file, &more, error);
    if (status == CS_OK)
        status = cs_h5_commit(file, error);
    cs_h5_destroy(file);
    return status;
}

static void write_well(const char *path, uint64_t n_rows)
{
    cs_error error;
    cs_error_init(&error);
    expect_error(path, CS_OK, "", write_file(path, n_rows, NULL, &error), &error);
}

/* ---- reading back, by HDF5 itself ---- */

/* Also turns off HDF5's printing: some of the questions below are expected to have no answer. */
static hid_t open_file(const char *path)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static void check_numbers(hid_t file, const cs_h5_column *column, uint64_t n_rows)
{
    char name[PATH];
    snprintf(name, sizeof(name), "/things/%s", column->name);
    double *doubles = calloc(n_rows + 1, sizeof(*doubles));
    int64_t *integers = calloc(n_rows + 1, sizeof(*integers));
    bool real = column->type == CS_H5_DOUBLE;
    assert_true(H5LTread_dataset(file, name, real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64,
                                 real ? (void *)doubles : (void *)integers) >= 0);
    for (uint64_t row = 0; row < n_rows; row++) {
        cs_h5_value value = column->get(NULL, row, column->which);
        if (real)
            expect_double(name, value.float64, doubles[row]);
        else
            expect_int(name,
                       column->type == CS_H5_INT64    ? value.int64
                       : column->type == CS_H5_UINT32 ? value.uint32
                                                      : value.uint8,
                       integers[row]);
    }
    free(doubles);
    free(integers);
}

static void check_words(hid_t file, uint64_t n_rows)
{
    hid_t dataset = H5Dopen2(file, "/things/word", H5P_DEFAULT);
    hid_t type = H5Dget_type(dataset);
    char **texts = calloc(n_rows + 1, sizeof(*texts));
    assert_true(H5Tis_variable_str(type) > 0 && H5Tget_cset(type) == H5T_CSET_UTF8);
    assert_true(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts) >= 0);
    for (uint64_t row = 0; row < n_rows; row++) {
        expect_text("word", words[row % 3], texts[row] ? texts[row] : "");
        H5free_memory(texts[row]);
    }
    free(texts);
    H5Tclose(type);
    H5Dclose(dataset);
}

static void test_columns_come_back(void **state)
{
    /* none, one, few, the first length that is compressed, one block, one row more than a block */
    static const uint64_t lengths[] = {0, 1, 5, 4096, 65536, 65537};
    for (size_t i = 0; i < ROWS(lengths); i++) {
        write_well(in(state, "a.h5"), lengths[i]);
        hid_t file = open_file(in(state, "a.h5"));
        for (const cs_h5_column *column = columns; column->name; column++) {
            if (column->type != CS_H5_TEXT)
                check_numbers(file, column, lengths[i]);
        }
        check_words(file, lengths[i]);
        check_numbers(file, more_columns, lengths[i]);
        H5Fclose(file);
    }
}

static char *text_attribute(hid_t object, const char *name)
{
    char *text = NULL;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute);
    assert_true(H5Tis_variable_str(type) > 0);
    assert_true(H5Aread(attribute, type, &text) >= 0);
    H5Tclose(type);
    H5Aclose(attribute);
    return text;
}

static void expect_attribute(hid_t object, const char *name, const char *expected)
{
    char *text = text_attribute(object, name);
    expect_text(name, expected, text);
    H5free_memory(text);
}

static void check_description(hid_t file, const cs_h5_column *column)
{
    char name[PATH];
    snprintf(name, sizeof(name), "/things/%s", column->name);
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    assert_true(dataset >= 0);
    expect_attribute(dataset, "units", column->units);
    expect_attribute(dataset, "long_name", column->long_name);
    bool index = strcmp(column->name, "row") == 0;
    expect_int(name, index, H5DSis_scale(dataset));
    if (!index)
        expect_int(name, 1, H5DSget_num_scales(dataset, 0));
    expect_int(name, column->optional, H5Aexists(dataset, "_FillValue"));
    expect_int(name, column->meanings != NULL, H5Aexists(dataset, "flag_values"));
    H5Dclose(dataset);
}

static void test_columns_are_described(void **state)
{
    uint8_t values[3];
    uint32_t fill;
    write_well(in(state, "a.h5"), 5000);
    hid_t file = open_file(in(state, "a.h5"));
    for (const cs_h5_column *column = columns; column->name; column++)
        check_description(file, column);
    check_description(file, more_columns);
    hid_t code = H5Dopen2(file, "/things/code", H5P_DEFAULT);
    expect_attribute(code, "flag_meanings", "red green blue");
    H5Dclose(code);
    assert_true(H5LTget_attribute(file, "/things/code", "flag_values", H5T_NATIVE_UINT8, values) >=
                0);
    assert_memory_equal(values, "\0\1\2", 3);
    assert_true(H5LTget_attribute(file, "/things/id", "_FillValue", H5T_NATIVE_UINT32, &fill) >= 0);
    expect_int("_FillValue", UINT32_MAX, fill);
    H5Fclose(file);
}

static void test_attributes_come_back(void **state)
{
    uint64_t seed = 0;
    int64_t least = 0;
    double third = 0;
    write_well(in(state, "a.h5"), 1);
    hid_t file = open_file(in(state, "a.h5"));
    assert_true(H5LTget_attribute(file, "/", "seed", H5T_NATIVE_UINT64, &seed) >= 0);
    assert_true(H5LTget_attribute(file, "/", "least", H5T_NATIVE_INT64, &least) >= 0);
    assert_true(H5LTget_attribute(file, "/", "third", H5T_NATIVE_DOUBLE, &third) >= 0);
    expect_bits("seed", UINT64_MAX, seed);
    expect_int("least", INT64_MIN, least);
    expect_double("third", 1. / 3, third);
    expect_attribute(file, "name", "f\xc3\xbcr alle");
    H5Fclose(file);
}

/* HDF5 keeps attributes of fixed length below 64 KiB; a scenario may be longer. */
static void test_long_text(void **state)
{
    enum { LENGTH = 1 << 20 };
    cs_error error;
    cs_h5_file *file = NULL;
    char *text = malloc(LENGTH + 1);
    assert_non_null(text);
    memset(text, 'x', LENGTH);
    text[LENGTH] = '\0';
    cs_error_init(&error);
    assert_int_equal(cs_h5_create(in(state, "a.h5"), NULL, &file, &error), CS_OK);
    assert_int_equal(cs_h5_set_text(file, "scenario", text, &error), CS_OK);
    assert_int_equal(cs_h5_commit(file, &error), CS_OK);
    cs_h5_destroy(file);
    hid_t id = open_file(in(state, "a.h5"));
    char *got = text_attribute(id, "scenario");
    assert_true(strcmp(text, got) == 0);
    H5free_memory(got);
    H5Fclose(id);
    free(text);
}

/* Also a second apart: no times are stored. */
/* A table of functions, and the same of records: padding between the members, an id on a boundary
 * of 4 bytes, a text. */
static void write_things(const char *path, const cs_h5_column *of, const void *source, size_t size)
{
    cs_error error;
    cs_h5_file *file = NULL;
    const cs_h5_table table = {"things", "row", of, 5, source, .row_size = size};
    cs_error_init(&error);
    assert_int_equal(CS_OK, cs_h5_create(path, NULL, &file, &error));
    assert_int_equal(CS_OK, cs_h5_write_table(file, &table, &error));
    assert_int_equal(CS_OK, cs_h5_commit(file, &error));
    cs_h5_destroy(file);
}

static void test_members_of_records_are_columns(void **state)
{
    typedef struct thing {
        uint8_t code;
        int64_t number;
        double share;
        uint32_t id;
        const char *word;
    } thing;
    thing things[5];
    cs_h5_column members[ROWS(columns)];
    const uint32_t offsets[] = {0,
                                offsetof(thing, number),
                                offsetof(thing, code),
                                offsetof(thing, id),
                                offsetof(thing, share),
                                offsetof(thing, word)};
    char path[PATH];
    for (uint32_t row = 0; row < 5; row++)
        things[row] = (thing){.code = get_code(NULL, row, 0).uint8,
                              .number = get_signed(NULL, row, 7).int64,
                              .share = get_share(NULL, row, 0).float64,
                              .id = get_id(NULL, row, 0).uint32,
                              .word = get_word(NULL, row, 0).text};
    memcpy(members, columns, sizeof(columns));
    members[0].fill = cs_h5_row_numbers;
    for (size_t i = 1; i < ROWS(offsets); i++) {
        members[i].get = NULL;
        members[i].which = offsets[i];
    }
    snprintf(path, sizeof(path), "%s", in(state, "functions.h5"));
    write_things(path, columns, NULL, 0);
    write_things(in(state, "members.h5"), members, things, sizeof(things[0]));
    assert_true(same_bytes(path, in(state, "members.h5")));
}

static void test_equal_tables_give_equal_files(void **state)
{
    char first[PATH], second[PATH];
    snprintf(first, sizeof(first), "%s", in(state, "a.h5"));
    snprintf(second, sizeof(second), "%s", in(state, "b.h5"));
    write_well(first, 70000);
    sleep(1);
    write_well(second, 70000);
    assert_true(same_bytes(first, second));
}

/* ---- failures ---- */

static void test_large_columns_are_compressed(void **state)
{
    struct stat info;
    write_well(in(state, "a.h5"), 200000);
    assert_int_equal(stat(in(state, "a.h5"), &info), 0);
    /* row, id: 4 bytes, signed, later, share: 8, code: 1, without words; a third of it is plenty */
    assert_true(info.st_size - 200000 * 16 < 200000 * 33 / 2);
}

static void test_dropped_file_leaves_nothing(void **state)
{
    cs_error error;
    cs_h5_file *file = NULL;
    const cs_h5_table table = {"things", "row", columns, 100, NULL};
    cs_error_init(&error);
    cs_h5_destroy(NULL);
    assert_int_equal(cs_h5_create(in(state, "a.h5"), NULL, &file, &error), CS_OK);
    assert_int_equal(cs_h5_write_table(file, &table, &error), CS_OK);
    expect_int("files", 1, count_files(*state));
    cs_h5_destroy(file);
    expect_int("files", 0, count_files(*state));
}

static void test_wrong_columns_are_reported(void **state)
{
    static const cs_h5_column twice[] = {
        {"row", CS_H5_UINT32, "1", "number", .get = get_row},
        {"row", CS_H5_UINT32, "1", "number", .get = get_row},
        {0},
    };
    cs_error error;
    cs_h5_file *file = NULL;
    const cs_h5_table table = {"things", "row", twice, 3, NULL};
    cs_error_init(&error);
    assert_int_equal(cs_h5_create(in(state, "a.h5"), NULL, &file, &error), CS_OK);
    assert_int_equal(cs_h5_write_table(file, &table, &error), CS_IO);
    char expected[2 * PATH];
    snprintf(expected, sizeof(expected), "%s: cannot store things/row: HDF5: name already exists",
             in(state, "a.h5"));
    expect_text("twice", expected, error.text);
    cs_h5_destroy(file);
    expect_int("files", 0, count_files(*state));
}

static void test_unwritable_places(void **state)
{
    static const struct {
        const char *path, *message;
    } rows[] = {
        {"missing/a.h5", "cannot create: No such file or directory"},
        {"file/a.h5", "cannot create: Not a directory"},
        {".", "is a folder; must be the name of a file"},
    };
    char expected[2 * PATH];
    FILE *plain = fopen(in(state, "file"), "w");
    assert_non_null(plain);
    fclose(plain);
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_error error;
        cs_error_init(&error);
        cs_status status = write_file(in(state, rows[i].path), 10, NULL, &error);
        snprintf(expected, sizeof(expected), "%s: %s", in(state, rows[i].path), rows[i].message);
        expect_error(rows[i].path, CS_IO, expected, status, &error);
    }
    expect_int("files", 1, count_files(*state));
}

static void test_full_device(void **state)
{
    (void)state;
    cs_error error;
    cs_error_init(&error);
    if (access("/dev/full", W_OK) != 0)
        skip();
    expect_error("full", CS_IO, "/dev/full: cannot write: No space left on device",
                 write_file("/dev/full", 5000, NULL, &error), &error);
}

/* Runs a function in a separate process, which ends normally; its output is in "said". */
static int run_child(void *const *state, void (*function)(const char *path))
{
    char path[PATH];
    snprintf(path, sizeof(path), "%s", in(state, "a.h5"));
    int said = open(in(state, "said"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(said >= 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(said, STDOUT_FILENO);
        dup2(said, STDERR_FILENO);
        function(path);
        exit(0);
    }
    close(said);
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    return result;
}

static void fail_by_permission(const char *path)
{
    cs_error error;
    cs_error_init(&error);
    uid_t user = geteuid();
    if (user == 0 && seteuid(65534) != 0) /* root may write everywhere */
        _Exit(9);
    cs_status status = write_file(path, 10, NULL, &error);
    if (seteuid(user) != 0)
        _Exit(7);
    if (status != CS_IO || !strstr(error.text, "a.h5: cannot create: Permission denied"))
        _Exit(8);
}

static void test_unwritable_folder(void **state)
{
    fclose(fopen(in(state, "said"), "w"));
    assert_int_equal(chmod(*state, 0555), 0);
    expect_int("child", 0, run_child(state, fail_by_permission));
    expect_int("files", 1, count_files(*state));
}

static void fail_by_size(const char *path)
{
    cs_error error;
    cs_error_init(&error);
    const struct rlimit limit = {8192, 8192};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _Exit(9);
    cs_status status = write_file(path, 100000, NULL, &error);
    if (status != CS_IO || !strstr(error.text, "cannot write: File too large"))
        _Exit(8);
}

/* HDF5 tries to write again at the end of a process, and says so when that fails. */
static void test_full_disk_is_quiet(void **state)
{
    char earlier[PATH], path[PATH];
    struct stat said;
    snprintf(path, sizeof(path), "%s", in(state, "a.h5"));
    snprintf(earlier, sizeof(earlier), "%s", in(state, "b.h5"));
    write_well(path, 10);
    write_well(earlier, 10);
    expect_int("child", 0, run_child(state, fail_by_size));
    assert_true(same_bytes(path, earlier));
    expect_int("a.h5, b.h5, said", 3, count_files(*state));
    assert_int_equal(stat(in(state, "said"), &said), 0);
    expect_int("printed", 0, said.st_size);
}

static bool kill_oneself(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)context, (void)what, (void)total;
    if (done > 65536)
        kill(getpid(), SIGKILL);
    return true;
}

static void be_killed(const char *path)
{
    const cs_progress progress = {kill_oneself, NULL};
    if (write_file(path, 200000, &progress, NULL) == CS_OK)
        _Exit(9);
}

static void test_killed_while_writing(void **state)
{
    char earlier[PATH], path[PATH];
    snprintf(path, sizeof(path), "%s", in(state, "a.h5"));
    snprintf(earlier, sizeof(earlier), "%s", in(state, "b.h5"));
    write_well(path, 10);
    write_well(earlier, 10);
    int result = run_child(state, be_killed);
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
    assert_true(same_bytes(path, earlier));
}

static bool stop_late(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)what, (void)total;
    *(uint64_t *)context += 1;
    return done < 70000;
}

static void test_interrupted(void **state)
{
    cs_error error;
    uint64_t calls = 0;
    const cs_progress progress = {stop_late, &calls};
    cs_error_init(&error);
    cs_status status = write_file(in(state, "a.h5"), 70000, &progress, &error);
    assert_int_equal(status, CS_INTERRUPTED);
    expect_int("calls", 2, (int64_t)calls); /* two blocks of the first column */
    expect_int("files", 0, count_files(*state));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_columns_come_back),
        TEST(test_columns_are_described),
        TEST(test_attributes_come_back),
        TEST(test_long_text),
        TEST(test_members_of_records_are_columns),
        TEST(test_equal_tables_give_equal_files),
        TEST(test_large_columns_are_compressed),
        TEST(test_dropped_file_leaves_nothing),
        TEST(test_wrong_columns_are_reported),
        TEST(test_unwritable_places),
        TEST(test_unwritable_folder),
        TEST(test_full_device),
        TEST(test_full_disk_is_quiet),
        TEST(test_killed_while_writing),
        TEST(test_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Results files with correct checksums and impossible contents: each is refused, and the message
 * names the column and the expected value. */
#include "sim/core/trace/file-layout.h"
#include "sim/core/trace/results-reader.h"
#include "sim/core/trace/results.h"
#include "sim/core/trace/seal.h"

#include "tests/expect.h"
#include "tests/synthetic-trace.h"

#include <fcntl.h>
#include <hdf5.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const cs_results_info info = {
    .name = "a_run",
    .topology = "chain",
    .schedule = "one_f_one_b",
    .scenario = "{}",
    .program_version = "0.0.0",
};

/* 2 devices, 2 micro-batches: 2 x (2 F + 2 B + 1 U) + 4 transfers = 14 tasks, makespan 104. */
static const synthetic_options four = {
    .devices = 2,
    .micro_batches = 2,
    .mini_batches = 1,
    .forward = 10,
    .backward = 20,
    .update = 4,
    .transfer = 5,
    .weights = 1000,
    .activation = 100,
    .capacity = 3150,
};

enum { TASKS = 14 };

static int make_name(void **state)
{
    char *path = strdup("/tmp/test-file-layout-XXXXXX");
    const int file = path ? mkstemp(path) : -1;
    *state = path;
    return file >= 0 ? close(file) : -1;
}

static int remove_name(void **state)
{
    unlink(*state);
    free(*state);
    return 0;
}

static void write_run(const char *path)
{
    synthetic_run run;
    cs_error error;
    cs_h5_file *file = NULL;
    cs_error_init(&error);
    assert_true(synthetic_run_init(&run, &four));
    cs_status status = cs_h5_create(path, NULL, &file, &error);
    if (status == CS_OK)
        status = cs_results_write(file, &info, &run.graph, &run.trace, &error);
    if (status == CS_OK)
        status = synthetic_run_store(file, &run, &error);
    if (status == CS_OK)
        status = cs_h5_commit(file, &error);
    cs_h5_destroy(file);
    synthetic_run_finish(&run);
    expect_error(path, CS_OK, "", status, &error);
}

/* ---- changes ---- */

typedef void change(hid_t file);

/* Replaces a column by one with `n` rows in each of `rank` dimensions. */
static void put(hid_t file, const char *name, hid_t type, int rank, hsize_t n, const void *values)
{
    const hsize_t sizes[] = {n, n};
    if (H5Lexists(file, name, H5P_DEFAULT) > 0)
        H5Ldelete(file, name, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(rank, sizes, NULL);
    const hid_t made = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(made >= 0);
    if (values)
        assert_true(H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(made);
    H5Sclose(space);
}

static void put_made(hid_t file, const char *name, hid_t properties, hsize_t n)
{
    H5Ldelete(file, name, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(1, &n, NULL);
    const hid_t made =
        H5Dcreate2(file, name, H5T_NATIVE_INT64, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(made >= 0);
    H5Dclose(made);
    H5Sclose(space);
    H5Pclose(properties);
}

/* Changes one value of a column of whole numbers. */
static void poke(hid_t file, const char *name, uint32_t row, int64_t value)
{
    int64_t values[256] = {0};
    const hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
    assert_true(H5Dread(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    values[row] = value;
    assert_true(H5Dwrite(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(data);
}

static const int64_t zeros[256];

static void lengthen_tasks(hid_t file)
{
    put(file, "tasks/bytes", H5T_NATIVE_INT64, 1, 200, zeros);
}

static void lengthen_devices(hid_t file)
{
    put(file, "devices/flush", H5T_NATIVE_INT64, 1, 200, zeros);
}

static void shorten_devices(hid_t file)
{
    put(file, "devices/peak", H5T_NATIVE_INT64, 1, 1, zeros);
}

static void deepen(hid_t file)
{
    put(file, "tasks/start", H5T_NATIVE_INT64, 2, TASKS, NULL);
}

static void make_real(hid_t file)
{
    put(file, "tasks/device", H5T_NATIVE_DOUBLE, 1, TASKS, zeros);
}

static void make_fixed_texts(hid_t file)
{
    put(file, "links/name", H5T_C_S1, 1, 2, zeros);
}

static void make_compound(hid_t file)
{
    const hid_t type = H5Tcreate(H5T_COMPOUND, 16);
    H5Tinsert(type, "a", 0, H5T_NATIVE_INT64);
    H5Tinsert(type, "b", 8, H5T_NATIVE_INT64);
    put(file, "tasks/more", type, 1, TASKS, zeros);
    H5Tclose(type);
}

static void remove_column(hid_t file)
{
    H5Ldelete(file, "tasks/peer", H5P_DEFAULT);
}

static void remove_table(hid_t file)
{
    H5Ldelete(file, "devices", H5P_DEFAULT);
}

static void link_softly(hid_t file)
{
    H5Lcreate_soft("/tasks/start", file, "tasks/more", H5P_DEFAULT, H5P_DEFAULT);
}

static void link_outside(hid_t file)
{
    H5Lcreate_external("/etc/passwd", "/x", file, "tasks/more", H5P_DEFAULT, H5P_DEFAULT);
}

static void link_in_a_circle(hid_t file)
{
    H5Lcreate_hard(file, "/", file, "tasks/more", H5P_DEFAULT, H5P_DEFAULT);
}

static void store_outside(hid_t file)
{
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(properties, "/dev/zero", 0, TASKS * sizeof(int64_t));
    put_made(file, "tasks/bytes", properties, TASKS);
}

static void store_virtually(hid_t file)
{
    const hsize_t n = TASKS;
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &n, NULL);
    H5Pset_virtual(properties, space, "/etc/passwd", "x", space);
    put_made(file, "tasks/bytes", properties, TASKS);
    H5Sclose(space);
}

static void store_nothing(hid_t file)
{
    const hsize_t chunk = 1 << 20;
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(properties, 1, &chunk);
    put_made(file, "tasks/bytes", properties, UINT32_MAX);
}

static void store_filtered(hid_t file)
{
    const hsize_t chunk = TASKS;
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(properties, 1, &chunk);
    H5Pset_scaleoffset(properties, H5Z_SO_INT, 0);
    put_made(file, "tasks/bytes", properties, TASKS);
}

static void name_no_device(hid_t file)
{
    poke(file, "tasks/device", 3, 2);
}

static void name_no_peer(hid_t file)
{
    poke(file, "tasks/peer", 3, UINT32_MAX - 1);
}

static void name_no_kind(hid_t file)
{
    poke(file, "tasks/kind", 3, 200);
}

static void end_too_late(hid_t file)
{
    poke(file, "tasks/end", 3, INT64_MAX);
}

static void have_less_than_nothing(hid_t file)
{
    poke(file, "tasks/bytes", 3, -1);
}

static void remember_disorderly(hid_t file)
{
    poke(file, "memory/time", 0, 100);
}

static void number_wrongly(hid_t file)
{
    poke(file, "devices/device", 1, 0);
}

/* Device 0 is simulated as 1, and 1 as 0. */
static void fold_in_a_circle(hid_t file)
{
    static const uint32_t by[] = {1, 0};
    put(file, "devices/simulated_as", H5T_NATIVE_UINT32, 1, 2, by);
}

static void fold_on_nothing(hid_t file)
{
    static const uint32_t by[] = {0, 1000};
    put(file, "devices/simulated_as", H5T_NATIVE_UINT32, 1, 2, by);
}

/* An attribute that has three texts where one is read. */
static void name_thrice(hid_t file)
{
    static const char *const names[] = {"a", "b", "c"};
    const hsize_t n = 3;
    const hid_t space = H5Screate_simple(1, &n, NULL), type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Adelete(file, "name");
    const hid_t made = H5Acreate2(file, "name", type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(made, type, names) >= 0);
    H5Aclose(made);
    H5Tclose(type);
    H5Sclose(space);
}

static void forget_meanings(hid_t file)
{
    H5Adelete_by_name(file, "memory/category", "flag_meanings", H5P_DEFAULT);
}

/* ---- the checks ---- */

/* Changes the file and writes a correct checksum. */
static void change_file(const char *path, change *how)
{
    struct stat file_info;
    unsigned char seal[CS_SEAL_BYTES];
    assert_int_equal(stat(path, &file_info), 0);
    assert_int_equal(truncate(path, file_info.st_size - CS_SEAL_BYTES), 0);
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    how(file);
    assert_true(H5Fclose(file) >= 0);
    assert_int_equal(stat(path, &file_info), 0);
    const int again = open(path, O_RDWR);
    assert_true(again >= 0 && cs_seal_file(again, (uint64_t)file_info.st_size, seal));
    assert_int_equal(pwrite(again, seal, sizeof(seal), file_info.st_size), sizeof(seal));
    close(again);
}

/* Reads the columns that pictures and reports use. */
static cs_status read_all(cs_reader *reader, cs_error *error)
{
    cs_reader_tasks tasks;
    const int64_t *numbers, *more;
    const uint32_t *ids, *codes;
    const char *const *words;
    uint64_t n;
    uint32_t n_words;
    const cs_reader_column memory[] = {{"memory/time", CS_READER_INT64, &numbers},
                                       {"memory/bytes", CS_READER_INT64, &more},
                                       {"memory/device", CS_READER_UINT32, &ids},
                                       {"memory/category", CS_READER_UINT32, &codes}};
    const cs_reader_column bytes = {"tasks/bytes", CS_READER_INT64, &numbers};
    const cs_reader_column device = {"devices/device", CS_READER_UINT32, &ids};
    CS_TRY(cs_reader_read_tasks(reader, &tasks, error));
    CS_TRY(cs_reader_read(reader, &bytes, 1, &n, error));
    CS_TRY(cs_reader_read(reader, &device, 1, &n, error));
    CS_TRY(cs_reader_read(reader, memory, 4, &n, error));
    CS_TRY(cs_reader_meanings(reader, "memory/category", &words, &n_words, error));
    return cs_reader_fold_equal(reader, error);
}

static cs_status read_file(const char *path, cs_error *error)
{
    cs_reader reader;
    CS_TRY(cs_reader_init(&reader, path, error));
    const cs_status status = read_all(&reader, error);
    cs_reader_finish(&reader);
    return status;
}

static void test_refused(void **state)
{
    static const struct {
        change *how;
        const char *message;
    } rows[] = {
        {lengthen_tasks, "tasks/bytes: must be a column as long as the others of its group"},
        {lengthen_devices, "devices/flush: must be a column as long as the others of its group"},
        {shorten_devices, "devices/peak: must be a column as long as the others of its group"},
        {deepen, "tasks/start: "},
        {make_real, "tasks/device: must hold whole numbers"},
        {make_fixed_texts,
         "links/name: must hold numbers of at most 8 bytes, or texts of variable"},
        {make_compound, "tasks/more: must hold numbers of at most 8 bytes, or texts of variable"},
        {remove_column, "tasks/peer: missing, must be a column"},
        {remove_table, "devices: missing, must be a table"},
        {link_softly, "tasks/more: is a link to another place; must be a column or table"},
        {link_outside, "tasks/more: is a link to another place; must be a column or table"},
        {link_in_a_circle, "tasks/more: must be a table of columns, or a column"},
        {store_outside, "tasks/bytes: has its values in another file; must have its own"},
        {store_virtually, "tasks/bytes: has its values in other datasets; must have its own"},
        {store_nothing, "tasks/bytes: has more values than are stored in the file"},
        {store_filtered, "tasks/bytes: has a filter; must be stored plainly"},
        {name_no_device, "tasks/device: row 3 must be 0 to 1 (got 2)"},
        {name_no_peer, "tasks/peer: row 3 must be 0 to 1 (got 4294967294)"},
        {name_no_kind, "tasks/kind: row 3 must be 0 to "},
        {end_too_late, "tasks/end: row 3 must be -1 to 104 (got 9223372036854775807)"},
        {have_less_than_nothing, "tasks/bytes: row 3 must be 0 to "},
        {remember_disorderly, "memory/time: row 1 must not be less than the row before it"},
        {number_wrongly, "devices/device: row 1 must have its own number (got 0)"},
        {fold_in_a_circle, "devices/simulated_as: row 0 must be a device that was simulated"},
        {fold_on_nothing, "devices/simulated_as: row 1 must be 0 to 1 (got 1000)"},
        {name_thrice, "name: missing, must be a text"},
        {forget_meanings, "memory/category: cannot read its flag_meanings"},
    };
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cs_error error;
        cs_error_init(&error);
        write_run(*state);
        change_file(*state, rows[i].how);
        expect_int(rows[i].message, CS_INVALID, read_file(*state, &error));
        if (strncmp(error.text, *state, strlen(*state)) != 0 ||
            !strstr(error.text, rows[i].message))
            fail_msg("expected: %s: %s\n     got: %s", (char *)*state, rows[i].message, error.text);
    }
}

static void leave(hid_t file)
{
    (void)file;
}

static void add_column(hid_t file)
{
    put(file, "tasks/of_a_later_version", H5T_NATIVE_DOUBLE, 1, TASKS, zeros);
}

static void test_accepted(void **state)
{
    static change *const changes[] = {leave, add_column};
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        cs_error error;
        cs_error_init(&error);
        write_run(*state);
        change_file(*state, changes[i]);
        expect_error("file", CS_OK, "", read_file(*state, &error), &error);
    }
}

/* The schema knows each column that a run is written with. */
static void test_schema_is_complete(void **state)
{
    cs_file_layout layout;
    cs_arena arena;
    cs_error error;
    cs_error_init(&error);
    cs_arena_init(&arena);
    write_run(*state);
    const hid_t file = H5Fopen(*state, H5F_ACC_RDONLY, H5P_DEFAULT);
    expect_error("layout", CS_OK, "", cs_file_layout_read(&layout, *state, file, &arena, &error),
                 &error);
    assert_true(layout.n > 100);
    for (uint32_t i = 0; i < layout.n; i++)
        if (!cs_schema_find(cs_schema_of(CS_RESULTS_FORMAT), layout.datasets[i].path))
            fail_msg("the schema has no %s", layout.datasets[i].path);
    H5Fclose(file);
    cs_file_layout_finish(&layout);
    cs_arena_finish(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused, make_name, remove_name),
        cmocka_unit_test_setup_teardown(test_accepted, make_name, remove_name),
        cmocka_unit_test_setup_teardown(test_schema_is_complete, make_name, remove_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

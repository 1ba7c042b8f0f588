/* Which devices hold which stages: schedules of every shape on a few devices, by hand. */
#include "schedules/mesh.h"
#include "tests/expect.h"

enum { MOST = 8 };

typedef struct row {
    const char *kind, *params;
    uint32_t n_devices;
    uint32_t n_stages, n_replicas;
    uint32_t needed; /* devices for 6 layers, where nobody says */
    uint32_t n_last; /* that hold the last stage */
    uint32_t last[4];
} row;

static const row rows[] = {
    /* the whole model: on one device of how many there are, or on each */
    {"sequential", "{}", 4, 1, 1, 1, 1, {0}},
    {"dp", "{}", 4, 1, 4, 0, 4, {0, 1, 2, 3}},
    {"dp", "{}", 1, 1, 1, 0, 1, {0}},
    /* a stage on each device, so one for each of 6 layers */
    {"gpipe", "{\"micro_batches\": 8}", 4, 4, 1, 6, 1, {3}},
    {"1f1b", "{\"micro_batches\": 8}", 1, 1, 1, 6, 1, {0}},
    /* two stages on each device in turn: stage 7 of 8 is the second of the last device; 6 layers
     * are the stages of 3 devices */
    {"interleaved_1f1b", "{\"micro_batches\": 8, \"stages_per_device\": 2}", 4, 8, 1, 3, 1, {3}},
    /* a plan says; where none does, as a pipeline, on devices that somebody has to count */
    {"periodic", "{\"micro_batches\": 8}", 4, 4, 1, 0, 1, {3}},
};

static void expect_mesh(const row *of, const void *params)
{
    const cs_schedule *schedule = cs_schedule_find(of->kind);
    const cs_mesh mesh = cs_mesh_make(schedule, params, of->n_devices);
    uint32_t devices[MOST] = {0};
    expect_int(of->kind, of->n_stages, mesh.n_stages);
    expect_int(of->kind, of->n_replicas, mesh.n_replicas);
    expect_int(of->kind, of->needed, cs_mesh_devices(schedule, params, 6, false));
    expect_int(of->kind, of->n_last, cs_mesh_holders(&mesh, mesh.n_stages - 1, devices));
    for (uint32_t i = 0; i < of->n_last; i++)
        expect_int(of->kind, of->last[i], devices[i]);
}

static void test_meshes(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(rows); r++) {
        const cs_schedule *schedule = cs_schedule_find(rows[r].kind);
        const cs_json_place place = {.file = rows[r].kind};
        cs_arena arena;
        cs_error error;
        cJSON *object;
        cs_arena_init(&arena);
        cs_error_init(&error);
        assert_non_null(schedule);
        assert_int_equal(
            cs_json_parse(place.file, rows[r].params, strlen(rows[r].params), &object, &error),
            CS_OK);
        void *params = cs_arena_alloc(&arena, 1, schedule->params_size + 1);
        assert_non_null(params);
        if (cs_field_read(object, &place, (const cs_field *const[]){schedule->fields, NULL},
                          (void *const[]){params}, &arena, &error) != CS_OK)
            fail_msg("%s", error.text);
        expect_mesh(&rows[r], params);
        cJSON_Delete(object);
        cs_arena_finish(&arena);
    }
}

/* A schedule without stages places none, a schedule whose ranks follow a rule states the rule, and
 * a schedule for a single number of devices states the number. */
static void test_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; cs_schedules[i]; i++) {
        const cs_mesh_shape *shape = &cs_schedules[i]->mesh;
        const char *name = cs_schedules[i]->name;
        const bool ruled = shape->pipeline == CS_LENGTH_RULE;
        expect_int(name, ruled, shape->ranks && shape->n_stages && shape->holders);
        assert_false(cs_mesh_has_stages(cs_schedules[i]) && cs_mesh_is_replicated(cs_schedules[i]));
        assert_true(shape->data == CS_LENGTH_ONE || shape->data == CS_LENGTH_DEVICES);
        assert_true(shape->ranks || !shape->exactly);
        assert_true(shape->pipeline == CS_LENGTH_LAYERS || !shape->replicas);
    }
}

/* ---- grids ---- */

/* By definition: device numbers of all places are listed by loops over the axes, the last of the
 * order outermost. */
static void count_devices(const cs_grid *grid, uint32_t n_ranks, const uint32_t *order,
                          uint32_t *devices)
{
    const uint32_t space = grid->space[0] * grid->space[1] * grid->space[2];
    const uint32_t sizes[CS_N_MESH_AXES] = {grid->tensor, space, grid->context, grid->data,
                                            n_ranks};
    uint32_t at[CS_N_MESH_AXES], device = 0;
    for (at[4] = 0; at[4] < sizes[order[4]]; at[4]++)
        for (at[3] = 0; at[3] < sizes[order[3]]; at[3]++)
            for (at[2] = 0; at[2] < sizes[order[2]]; at[2]++)
                for (at[1] = 0; at[1] < sizes[order[1]]; at[1]++)
                    for (at[0] = 0; at[0] < sizes[order[0]]; at[0]++, device++) {
                        uint32_t of[CS_N_MESH_AXES];
                        for (uint32_t i = 0; i < CS_N_MESH_AXES; i++)
                            of[order[i]] = at[i];
                        const uint32_t place =
                            of[0] + sizes[0] * (of[1] + space * (of[2] + sizes[2] * of[3]));
                        devices[of[4] * cs_grid_places(grid) + place] = device;
                    }
}

static void test_numbers(void **state)
{
    (void)state;
    static const uint32_t orders[][CS_N_MESH_AXES] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {3, 0, 4, 2, 1}, {1, 2, 0, 4, 3}};
    cs_grid grid = cs_grid_single();
    enum { N = 2 * 6 * 2 * 3 * 4 };
    uint32_t expected[N], devices[N], map[N];
    grid.tensor = 2;
    grid.space[0] = 3;
    grid.space[1] = 2;
    grid.context = 2;
    grid.data = 3;
    for (uint32_t i = 0; i < N; i++)
        map[i] = N - 1 - i;
    for (size_t r = 0; r < ROWS(orders); r++) {
        count_devices(&grid, 4, orders[r], expected);
        cs_mesh_number(&grid, 4, orders[r], NULL, devices);
        for (uint32_t i = 0; i < N; i++)
            expect_int("device", expected[i], devices[i]);
        cs_mesh_number(&grid, 4, orders[r], map, devices);
        for (uint32_t i = 0; i < N; i++)
            expect_int("mapped device", N - 1 - expected[i], devices[i]);
    }
}

/* Tensor 2 and data 2 on the devices of 3 pipeline ranks, 12 in all: rank r has devices 4 r to
 * 4 r + 3, and place 2 data + tensor is device 4 r + 2 data + tensor. Ordered pipeline, tensor,
 * data, it is r + 3 tensor + 6 data. */
static void test_grids(void **state)
{
    (void)state;
    static const uint32_t orders[][CS_N_MESH_AXES] = {{0, 1, 2, 3, 4}, {4, 0, 1, 2, 3}};
    static const uint32_t last[][4] = {{8, 9, 10, 11}, {2, 5, 8, 11}};
    cs_grid grid = cs_grid_single();
    uint32_t devices[12], held[12];
    grid.tensor = 2;
    grid.data = 2;
    for (size_t r = 0; r < ROWS(orders); r++) {
        cs_mesh_number(&grid, 3, orders[r], NULL, devices);
        const cs_mesh mesh = cs_mesh_make_grid(cs_schedule_find("gpipe"), NULL, &grid, 3, devices);
        expect_int("devices", 12, mesh.n_devices);
        expect_int("stages", 3, mesh.n_stages);
        expect_int("replicas", 2, mesh.n_replicas);
        assert_true(mesh.placed && mesh.grid == &grid);
        expect_int("holders", 4, cs_mesh_holders(&mesh, 2, held));
        for (uint32_t i = 0; i < 4; i++)
            expect_int("holder", last[r][i], held[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_grids),
        cmocka_unit_test(test_meshes),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Grids of devices: the groups of all axes against the definition, coordinate by coordinate. */
#include "sim/base/random.h"
#include "sim/model/split.h"
#include "tests/expect.h"

#include <string.h>

enum { DENSE_AXES = 6, EXPERT_AXES = 3, GRIDS = 40 };

/* Coordinates of a place, by counting in mixed radix from the innermost axis on. */
static void count_up(uint32_t place, const uint32_t *sizes, uint32_t n, uint32_t *coordinates)
{
    memset(coordinates, 0, n * sizeof(*coordinates));
    for (uint32_t i = 0; i < place; i++) {
        uint32_t axis = 0;
        while (++coordinates[axis] == sizes[axis])
            coordinates[axis++] = 0;
    }
}

/* Names as the axes that they mean. */
static const struct {
    cs_axes_name name;
    bool expert; /* the experts' split */
    bool axis[DENSE_AXES];
} names[] = {
    {CS_AXES_TENSOR, false, {true}},
    {CS_AXES_SPACE_X, false, {[1] = true}},
    {CS_AXES_SPACE_Y, false, {[2] = true}},
    {CS_AXES_SPACE_Z, false, {[3] = true}},
    {CS_AXES_SPACE, false, {[1] = true, [2] = true, [3] = true}},
    {CS_AXES_CONTEXT, false, {[4] = true}},
    {CS_AXES_DATA, false, {[5] = true}},
    {CS_AXES_GRADIENT, false, {false, true, true, true, true, true}},
    {CS_AXES_EXPERT_TENSOR, true, {true}},
    {CS_AXES_EXPERT, true, {[1] = true}},
    {CS_AXES_EXPERT_DATA, true, {[2] = true}},
};

static bool same_group(uint32_t a, uint32_t b, const uint32_t *sizes, uint32_t n, const bool *axis)
{
    uint32_t of_a[DENSE_AXES], of_b[DENSE_AXES];
    bool same = true;
    count_up(a, sizes, n, of_a);
    count_up(b, sizes, n, of_b);
    for (uint32_t i = 0; i < n; i++)
        same &= axis[i] || of_a[i] == of_b[i];
    return same;
}

static void expect_groups(const cs_grid *grid)
{
    const uint32_t places = cs_grid_places(grid);
    const uint32_t dense[] = {grid->tensor,   grid->space[0], grid->space[1],
                              grid->space[2], grid->context,  grid->data};
    const uint32_t experts[] = {grid->expert_tensor, grid->expert,
                                places / grid->expert_tensor / grid->expert};
    for (uint32_t s = 0; s < sizeof(names) / sizeof(names[0]); s++) {
        const cs_axes axes = cs_grid_axes(grid, names[s].name);
        const uint32_t *sizes = names[s].expert ? experts : dense;
        const uint32_t n = names[s].expert ? EXPERT_AXES : DENSE_AXES;
        for (uint32_t a = 0; a < places; a++) {
            for (uint32_t b = 0; b < places; b++) {
                const bool got = cs_axes_first(axes, a) == cs_axes_first(axes, b);
                if (got != same_group(a, b, sizes, n, names[s].axis))
                    fail_msg("%s: places %u and %u of %u", cs_axes_text(names[s].name), a, b,
                             places);
            }
        }
    }
}

/* Every group of SHARD lies in one of GRADIENT, and has one place in common with each of REPLICA
 * there: together they cross the whole group. */
static void expect_shards(const cs_grid *grid)
{
    const cs_axes all = cs_grid_axes(grid, CS_AXES_GRADIENT);
    const cs_axes shard = cs_grid_axes(grid, CS_AXES_SHARD);
    const cs_axes replica = cs_grid_axes(grid, CS_AXES_REPLICA);
    const uint32_t places = cs_grid_places(grid);
    assert_int_equal(shard.size * replica.size, all.size);
    for (uint32_t a = 0; a < places; a++) {
        for (uint32_t b = 0; b < places; b++) {
            const bool shares = cs_axes_first(shard, a) == cs_axes_first(shard, b);
            const bool repeats = cs_axes_first(replica, a) == cs_axes_first(replica, b);
            if (shares || repeats)
                assert_int_equal(cs_axes_first(all, a), cs_axes_first(all, b));
            assert_int_equal(shares && repeats, a == b);
        }
    }
}

/* Checks the places of a group of TENSOR, so many at a time from the first on. */
static void expect_copies(const cs_grid *grid)
{
    const cs_axes copies = cs_grid_axes(grid, CS_AXES_COPIES);
    const cs_axes tensor = cs_grid_axes(grid, CS_AXES_TENSOR);
    const uint32_t places = cs_grid_places(grid);
    for (uint32_t a = 0; a < places; a++) {
        for (uint32_t b = 0; b < places; b++) {
            const bool same_group = cs_axes_first(tensor, a) == cs_axes_first(tensor, b);
            const bool same_heads = cs_axes_coordinate(tensor, a) / grid->copies ==
                                    cs_axes_coordinate(tensor, b) / grid->copies;
            assert_int_equal(same_group && same_heads,
                             cs_axes_first(copies, a) == cs_axes_first(copies, b));
        }
    }
}

static uint32_t draw_size(gsl_rng *random)
{
    return 1 + (uint32_t)gsl_rng_uniform_int(random, 3);
}

static uint32_t draw_divisor(gsl_rng *random, uint32_t of)
{
    uint32_t divisor = 1 + (uint32_t)gsl_rng_uniform_int(random, of);
    while (of % divisor != 0)
        divisor--;
    return divisor;
}

static void test_drawn_grids(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(1, "grids");
    assert_non_null(random);
    for (uint32_t i = 0; i < GRIDS; i++) {
        cs_grid grid = cs_grid_single();
        grid.tensor = draw_size(random);
        for (uint32_t k = 0; k < 3; k++)
            grid.space[k] = i % 2 ? draw_size(random) : 1;
        grid.context = draw_size(random);
        grid.data = draw_size(random);
        grid.copies = draw_divisor(random, grid.tensor);
        const uint32_t places = cs_grid_places(&grid);
        grid.expert_tensor = draw_divisor(random, places);
        grid.expert = draw_divisor(random, places / grid.expert_tensor);
        grid.shard = draw_divisor(random, places / grid.tensor);
        grid.expert_shard = draw_divisor(random, places / grid.expert_tensor / grid.expert);
        expect_groups(&grid);
        expect_shards(&grid);
        expect_copies(&grid);
    }
    gsl_rng_free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn_grids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

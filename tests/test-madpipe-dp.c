/* The first phase of MadPipe against the recursion as the paper writes it, evaluated without
 * tables; against the best contiguous plan; and what its roundings and its special device may
 * promise. */
#include "schedules/plan/madpipe-dp.h"
#include "schedules/plan/pattern.h"
#include "sim/base/random.h"
#include "tests/expect.h"
#include "tests/random-chain.h"

#include <stdlib.h>

enum { ROW_BYTES = 256 };

/* ---- the recursion, in plain delays and without tables ---- */

typedef struct slow {
    const cs_chain *chain;
    const cs_madpipe_options *options;
    cs_time target;
    int64_t load_step, bytes_step, delay_step;
    const cs_plan *only; /* this allocation; NULL: all */
    uint32_t special;    /* its special device */
} slow;

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t steps(const slow *s, int64_t value, int64_t step)
{
    switch (s->options->rounding) {
    case CS_MADPIPE_UP:
        return up(value, step);
    case CS_MADPIPE_NEAREST:
        return (value + step / 2) / step;
    default:
        return value / step;
    }
}

/* The paper's operation. */
static cs_time plus(cs_time x, cs_time y, cs_time target)
{
    return up(x, target) == up(x + y, target) ? x + y : target * up(x, target) + y;
}

/* To the grid of the group that the delay ends in; the end of a group is on it. */
static cs_time rounded(const slow *s, cs_time v)
{
    if (v % s->target == 0)
        return v;
    cs_time start = v / s->target * s->target;
    cs_time fill = s->delay_step * steps(s, v - start, s->delay_step);
    return start + (fill < s->target ? fill : s->target);
}

static cs_time total_of(const cs_chain *chain)
{
    cs_time total = cs_chain_load(chain, 0, chain->n_layers);
    for (uint32_t b = 0; b <= chain->n_layers; b++)
        total += cs_chain_link(chain, b);
    return most(total, 1);
}

/* madpipe.md, "Grids" */
static slow make_slow(const cs_chain *chain, const cs_madpipe_options *options, cs_time target)
{
    slow s = {.chain = chain, .options = options, .target = target};
    int64_t total = total_of(chain), bytes = chain->sum_fixed[chain->n_layers];
    bytes += (up(2 * total, target) + chain->n_layers + 1) * chain->sum_kept[chain->n_layers];
    for (uint32_t b = 0; b <= chain->n_layers; b++)
        bytes += 4 * chain->boundary[b];
    bytes = bytes < chain->memory ? bytes : chain->memory;
    s.load_step = most(up(cs_chain_load(chain, 0, chain->n_layers), options->loads - 1), 1);
    s.bytes_step = most(up(bytes, options->memories - 1), 1);
    s.delay_step = up(target, most(target / up(total, options->delays - 1), 1));
    return s;
}

static bool allowed(const slow *s, uint32_t first, uint32_t end, bool special)
{
    if (!s->only)
        return true;
    for (uint32_t i = 0; i < s->only->n_stages; i++)
        if (s->only->stages[i].end_layer == end)
            return s->only->stages[i].first_layer == first &&
                   special == (s->only->devices[i] == s->special);
    return false;
}

/* T(l, p, t, m, V), or CS_TIME_MAX. */
static cs_time least_load(const slow *s, uint32_t l, uint32_t p, cs_time t, int64_t m, cs_time v)
{
    const cs_chain *chain = s->chain;
    cs_time best = l == 0 ? 0 : CS_TIME_MAX;
    for (uint32_t k = 0; k < l; k++) {
        cs_time load = cs_chain_load(chain, k, l), link = cs_chain_link(chain, k);
        int64_t g = most(1, up(v + load, s->target));
        cs_time next = rounded(s, plus(plus(v, load, s->target), link, s->target));
        int64_t charged = g - (s->options->special == CS_MADPIPE_OPTIMISTIC);
        int64_t bytes = m + cs_chain_bytes(chain, k, l, charged);
        cs_time value = CS_TIME_MAX;
        if (p > 0 && cs_chain_bytes(chain, k, l, g) <= chain->memory && allowed(s, k, l, false)) {
            value = most(most(load, link), least_load(s, k, p - 1, t, m, next));
            best = value < best ? value : best;
        }
        if (s->options->special != CS_MADPIPE_NONE && bytes <= chain->memory &&
            allowed(s, k, l, true)) {
            value = least_load(s, k, p, s->load_step * steps(s, t + load, s->load_step),
                               s->bytes_step * steps(s, bytes, s->bytes_step), next);
            value = most(most(load + t, link), value);
            best = value < best ? value : best;
        }
    }
    return best;
}

/* The period that the slow implementation expects for the target, or 0. */
static cs_time slow_promise(const slow *s)
{
    uint32_t normal = s->chain->n_devices - (s->options->special != CS_MADPIPE_NONE);
    cs_time load = least_load(s, s->chain->n_layers, normal, 0, 0, 0);
    return load == CS_TIME_MAX ? 0 : most(load, s->target);
}

static cs_time promise_of_plan(const slow *s, const cs_plan *plan)
{
    slow one = *s;
    cs_time best = 0;
    one.only = plan;
    for (one.special = 0; one.special <= plan->n_stages; one.special++) {
        cs_time value = slow_promise(&one);
        if (value > 0 && (best == 0 || value < best))
            best = value;
    }
    return best;
}

static cs_madpipe_allocation allocate(const char *row, const cs_chain *chain,
                                      const cs_madpipe_options *options, cs_time target)
{
    cs_madpipe_allocation found = {0};
    cs_madpipe_work work = {0};
    cs_error error;
    cs_error_init(&error);
    expect_error(row, CS_OK, "", cs_madpipe_dp(chain, options, target, &found, &work, &error),
                 &error);
    return found;
}

static void compare(const char *row, const cs_chain *chain, const cs_madpipe_options *options,
                    cs_time target)
{
    slow s = make_slow(chain, options, target);
    cs_madpipe_allocation found = allocate(row, chain, options, target);
    expect_int(row, slow_promise(&s), found.promised);
    if (found.plan.n_stages > 0)
        expect_int(row, found.promised, promise_of_plan(&s, &found.plan));
    cs_madpipe_allocation_finish(&found);
}

static cs_chain tight_chain(gsl_rng *rng, const random_chain_limits *limits)
{
    cs_chain chain = random_chain(rng, limits);
    if (random_up_to(rng, 7) > 0)
        chain.memory = random_up_to(rng, 6 * limits->bytes * chain.n_layers / chain.n_devices + 9);
    return chain;
}

static cs_madpipe_options random_options(gsl_rng *rng)
{
    static const uint32_t grids[] = {2, 3, 6, 11, 51, 101, 1000};
    return (cs_madpipe_options){.loads = grids[random_up_to(rng, ROWS(grids) - 1)],
                                .memories = grids[random_up_to(rng, ROWS(grids) - 1)],
                                .delays = grids[random_up_to(rng, ROWS(grids) - 1)],
                                .iterations = 10};
}

static void test_recursion(void **state)
{
    (void)state;
    static const random_chain_limits limits = {7, 4, 9, 6, 9};
    gsl_rng *rng = cs_random_stream(1, "madpipe-dp");
    uint32_t feasible = 0;
    for (int i = 0; i < 1200; i++) {
        char row[ROW_BYTES];
        cs_chain chain = tight_chain(rng, &limits);
        cs_madpipe_options options = random_options(rng);
        cs_time target = 1 + random_up_to(rng, (uint32_t)total_of(&chain));
        for (options.rounding = 0; options.rounding < 3; options.rounding++) {
            for (options.special = 0; options.special < 3; options.special++) {
                snprintf(row, sizeof(row), "chain %d, rounding %u, special %u, target %d", i,
                         options.rounding, options.special, (int)target);
                compare(row, &chain, &options, target);
            }
        }
        options.rounding = CS_MADPIPE_UP;
        options.special = CS_MADPIPE_SAFE;
        slow s = make_slow(&chain, &options, target);
        feasible += slow_promise(&s) > 0;
        cs_chain_finish(&chain);
    }
    assert_in_range(feasible, 300, 1100); /* both kinds are there */
    gsl_rng_free(rng);
}

/* ---- contiguous allocations ---- */

/* The least period of 1F1B* over all partitions; CS_TIME_MAX when none fits. */
static cs_time best_contiguous(const cs_chain *chain)
{
    cs_time best = CS_TIME_MAX;
    for (uint32_t n = 1; n <= chain->n_devices && n <= chain->n_layers; n++) {
        uint32_t cuts[ROW_BYTES];
        first_cuts(cuts, n, chain->n_layers);
        do {
            cs_plan plan;
            cs_pattern pattern = {0};
            assert_int_equal(cs_plan_pipeline(cuts, n, &plan, NULL), CS_OK);
            if (cs_pattern_1f1b_fit(chain, &plan, &pattern, NULL) == CS_OK)
                best = pattern.period < best ? pattern.period : best;
            cs_pattern_finish(&pattern);
            cs_plan_finish(&plan);
        } while (next_cuts(cuts, n));
    }
    return best;
}

/* Without a special device and without rounding, the best promise over all targets is the best
 * contiguous plan's period: for the target T it takes the partitions whose groups of length T fit
 * the memory, and promises T or their largest load; the best one's own period is among the targets,
 * and its groups of that length fit. */
static void test_contiguous(void **state)
{
    (void)state;
    static const random_chain_limits limits = {6, 4, 5, 4, 9};
    static const cs_madpipe_options options = {
        .loads = 1000000, .memories = 1000000, .delays = 1000000, .special = CS_MADPIPE_NONE};
    gsl_rng *rng = cs_random_stream(2, "madpipe-dp");
    uint32_t feasible = 0;
    for (int i = 0; i < 300; i++) {
        char row[ROW_BYTES];
        snprintf(row, sizeof(row), "chain %d", i);
        cs_chain chain = tight_chain(rng, &limits);
        cs_time least = CS_TIME_MAX, total = total_of(&chain);
        for (cs_time target = 1; target <= total; target++) {
            cs_madpipe_allocation found = allocate(row, &chain, &options, target);
            if (found.plan.n_stages > 0 && found.promised < least)
                least = found.promised;
            cs_madpipe_allocation_finish(&found);
        }
        expect_int(row, best_contiguous(&chain), least);
        feasible += least < CS_TIME_MAX;
        cs_chain_finish(&chain);
    }
    assert_in_range(feasible, 100, 290);
    gsl_rng_free(rng);
}

static bool one_stage_each(const cs_plan *plan)
{
    for (uint32_t s = 0; s < plan->n_stages; s++)
        if (plan->devices[s] != s)
            return false;
    return true;
}

/* 1 when 1F1B* has a longer period than promised or none, 0 when it keeps the promise, -1 when the
 * allocation is not one stage per device. */
static int broken(const char *row, const cs_chain *chain, const cs_madpipe_options *options,
                  cs_time target)
{
    cs_madpipe_allocation found = allocate(row, chain, options, target);
    int result = -1;
    if (found.plan.n_stages > 0 && one_stage_each(&found.plan)) {
        cs_pattern pattern = {0};
        cs_status status = cs_pattern_1f1b_fit(chain, &found.plan, &pattern, NULL);
        result = status != CS_OK || pattern.period > found.promised;
        if (status == CS_OK)
            assert_int_equal(cs_pattern_check(chain, &found.plan, &pattern, NULL, NULL), CS_OK);
        cs_pattern_finish(&pattern);
    }
    cs_madpipe_allocation_finish(&found);
    return result;
}

/* `up` and `safe` count no less time, memory or delay than there is, so 1F1B* keeps what they
 * promise for one stage per device. No other combination can say so: each broke promises here. */
static void test_promises(void **state)
{
    (void)state;
    static const random_chain_limits limits = {7, 4, 9, 6, 9};
    gsl_rng *rng = cs_random_stream(3, "madpipe-dp");
    uint32_t n[3][2] = {{0}}, broke[3][2] = {{0}};
    for (int i = 0; i < 2000; i++) {
        char row[ROW_BYTES];
        snprintf(row, sizeof(row), "chain %d", i);
        cs_chain chain = tight_chain(rng, &limits);
        cs_madpipe_options options = random_options(rng);
        cs_time target = 1 + random_up_to(rng, (uint32_t)total_of(&chain));
        for (options.rounding = 0; options.rounding < 3; options.rounding++) {
            for (options.special = 0; options.special < 2; options.special++) {
                int result = broken(row, &chain, &options, target);
                n[options.rounding][options.special] += result >= 0;
                broke[options.rounding][options.special] += result == 1;
            }
        }
        cs_chain_finish(&chain);
    }
    for (uint32_t r = 0; r < 3; r++) {
        for (uint32_t s = 0; s < 2; s++) {
            print_message("rounding %u, special %u: %u of %u promises broken\n", r, s, broke[r][s],
                          n[r][s]);
            assert_true(n[r][s] > 300);
            if (r == CS_MADPIPE_UP && s == CS_MADPIPE_SAFE)
                assert_int_equal(broke[r][s], 0);
            else
                assert_true(broke[r][s] > 0);
        }
    }
    gsl_rng_free(rng);
}

/* ---- small cases by hand ---- */

/* Layers with forward and backward of 1, that keep `kept`. */
static cs_chain even_chain(uint32_t n_layers, uint32_t n_devices, int64_t kept, int64_t memory)
{
    cs_chain chain = {.n_layers = n_layers, .n_devices = n_devices, .memory = memory};
    int64_t **const arrays[] = {&chain.sum_forward, &chain.sum_backward, &chain.sum_fixed,
                                &chain.sum_kept,    &chain.boundary,     &chain.message};
    for (size_t i = 0; i < ROWS(arrays); i++)
        assert_non_null(*arrays[i] = cs_arena_alloc(&chain.arena, n_layers + 1u, sizeof(int64_t)));
    for (uint32_t l = 1; l <= n_layers; l++) {
        chain.sum_forward[l] = chain.sum_backward[l] = l;
        chain.sum_kept[l] = kept * l;
    }
    return chain;
}

/* One device, one layer that keeps 10 bytes, and 5 bytes of memory. The device is the special one,
 * and holds the only stage with g = ceil(2 / 2) = 1. Charged with g - 1 = 0 it fits, and a period
 * of 2 is promised; but from the start of a forward to the end of its backward the 10 bytes are
 * there, whatever the period. */
static void test_optimistic(void **state)
{
    (void)state;
    static const cs_madpipe_options options = {.loads = 101, .memories = 11, .delays = 51};
    cs_chain chain = even_chain(1, 1, 10, 5);
    cs_pattern pattern;
    cs_error error;
    cs_error_init(&error);
    cs_madpipe_allocation found = allocate("optimistic", &chain, &options, 2);
    expect_int("stages", 1, found.plan.n_stages);
    expect_int("promised", 2, found.promised);
    assert_int_equal(cs_pattern_1f1b_fit(&chain, &found.plan, &pattern, &error), CS_LIMIT);
    cs_madpipe_allocation_finish(&found);

    cs_madpipe_options safe = options;
    safe.special = CS_MADPIPE_SAFE;
    found = allocate("safe", &chain, &safe, 2);
    expect_int("safe stages", 0, found.plan.n_stages);
    cs_madpipe_allocation_finish(&found);
    cs_chain_finish(&chain);
}

/* Three layers of 4, 8 and 4 on two devices, messages free: contiguous ones have a load of 12 at
 * least, {0, 2} and {1} have 8 each. Grids exact. With T = 8 layer 2 has V = 0, g = ceil(4/8) = 1;
 * layer 1, V = 4: 4 + 8 > 8 opens a group, V' = 16, g = 2; layer 0: 16 + 4 opens the third, g =
 * 3. */
static void test_not_contiguous(void **state)
{
    (void)state;
    cs_madpipe_options options = {
        .loads = 9, .memories = 1000, .delays = 17, .special = CS_MADPIPE_SAFE};
    cs_chain chain = even_chain(3, 2, 1, 1000);
    static const cs_time forward[] = {0, 2, 6, 8};
    memcpy(chain.sum_forward, forward, sizeof(forward));
    memcpy(chain.sum_backward, forward, sizeof(forward));
    cs_madpipe_allocation found = allocate("apart", &chain, &options, 8);
    expect_int("promised", 8, found.promised);
    expect_int("stages", 3, found.plan.n_stages);
    expect_int("layer 0", 0, found.plan.devices[0]);
    expect_int("layer 1", 1, found.plan.devices[1]);
    expect_int("layer 2", 0, found.plan.devices[2]);
    cs_madpipe_allocation_finish(&found);

    /* the special device holds 3 + 1 micro-batches of a byte, the optimistic count is 2 + 0 */
    static const struct {
        int64_t memory;
        uint32_t special;
        cs_time promised;
    } rows[] = {{4, CS_MADPIPE_SAFE, 8},
                {3, CS_MADPIPE_SAFE, 12},
                {2, CS_MADPIPE_OPTIMISTIC, 8},
                {1000, CS_MADPIPE_NONE, 12}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        chain.memory = rows[i].memory;
        options.special = rows[i].special;
        found = allocate("memory", &chain, &options, 8);
        expect_int("promised", rows[i].promised, found.promised);
        cs_madpipe_allocation_finish(&found);
    }
    cs_chain_finish(&chain);
}

/* Section 5.1: the special device's load is one of `loads` values between 0 and U(1, L) = 4 + 8 +
 * 4, whatever the target. Of 5 values the step is 4, and 4 ps for layer 2 are exact: 8 is promised.
 * Of 3 the step is 8: layer 2 counts as 8, with layer 0 as 12, which is what contiguous plans have
 * too. */
static void test_grid_of_loads(void **state)
{
    (void)state;
    static const cs_time forward[] = {0, 2, 6, 8};
    static const struct {
        uint32_t loads;
        cs_time promised;
    } rows[] = {{5, 8}, {3, 12}};
    cs_chain chain = even_chain(3, 2, 1, 1000);
    memcpy(chain.sum_forward, forward, sizeof(forward));
    memcpy(chain.sum_backward, forward, sizeof(forward));
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_madpipe_options options = {
            .loads = rows[i].loads, .memories = 1000, .delays = 17, .special = CS_MADPIPE_SAFE};
        cs_madpipe_allocation found = allocate("grid", &chain, &options, 8);
        expect_int("promised", rows[i].promised, found.promised);
        cs_madpipe_allocation_finish(&found);
    }
    cs_chain_finish(&chain);
}

/* ---- algorithm 1 ---- */

static cs_madpipe_allocations search(const char *row, const cs_chain *chain,
                                     const cs_madpipe_options *options)
{
    cs_madpipe_allocations found = {0};
    cs_error error;
    cs_error_init(&error);
    expect_error(row, CS_OK, "", cs_madpipe_allocate(chain, options, &found, &error), &error);
    return found;
}

static bool same_allocation(const cs_plan *a, const cs_plan *b)
{
    bool same = a->n_stages == b->n_stages;
    for (uint32_t s = 0; same && s < a->n_stages; s++)
        same = a->stages[s].end_layer == b->stages[s].end_layer && a->devices[s] == b->devices[s];
    return same;
}

/* Every allocation promises what the slow recursion says of its target; they are distinct, and the
 * least comes first. More iterations and a scan only ever add. */
static void test_search(void **state)
{
    (void)state;
    static const random_chain_limits limits = {7, 4, 9, 6, 9};
    gsl_rng *rng = cs_random_stream(4, "madpipe-dp");
    for (int i = 0; i < 300; i++) {
        char row[ROW_BYTES];
        snprintf(row, sizeof(row), "chain %d", i);
        cs_chain chain = tight_chain(rng, &limits);
        cs_madpipe_options options = random_options(rng);
        cs_madpipe_allocations found = search(row, &chain, &options);
        for (uint32_t a = 0; a < found.n; a++) {
            slow s = make_slow(&chain, &options, found.all[a].target);
            expect_int(row, slow_promise(&s), found.all[a].promised);
            for (uint32_t b = 0; b < a; b++) {
                assert_true(found.all[b].promised <= found.all[a].promised);
                assert_false(same_allocation(&found.all[b].plan, &found.all[a].plan));
            }
        }
        options.scan = 5;
        cs_madpipe_allocations more = search(row, &chain, &options);
        assert_true(more.n >= found.n);
        if (found.n > 0)
            assert_true(more.all[0].promised <= found.all[0].promised);
        cs_madpipe_allocations_finish(&found);
        cs_madpipe_allocations_finish(&more);
        cs_chain_finish(&chain);
    }
    gsl_rng_free(rng);
}

/* Enough iterations end where the targets meet: no load below U / P, and with no limit of memory
 * and free messages a chain of equal layers is cut evenly. */
static void test_even(void **state)
{
    (void)state;
    static const cs_madpipe_options options = {
        .loads = 101, .memories = 11, .delays = 51, .iterations = 10};
    static const struct {
        uint32_t layers, devices;
        cs_time promised;
    } rows[] = {{1, 1, 2}, {8, 4, 4}, {8, 8, 2}, {3, 8, 2}, {9, 4, 6}, {1, 5, 2}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_chain chain = even_chain(rows[i].layers, rows[i].devices, 1, INT64_MAX);
        cs_madpipe_allocations found = search("even", &chain, &options);
        assert_true(found.n > 0);
        expect_int("even", rows[i].promised, found.all[0].promised);
        cs_madpipe_allocations_finish(&found);
        cs_chain_finish(&chain);
    }
}

static void test_ends(void **state)
{
    (void)state;
    static const cs_madpipe_options options = {
        .loads = 101, .memories = 11, .delays = 51, .iterations = 10, .special = CS_MADPIPE_SAFE};
    cs_error error;
    cs_error_init(&error);
    cs_madpipe_allocations found;
    /* layers that take no time: the least period there is, 1 ps */
    cs_chain chain = even_chain(3, 2, 1, 100);
    memset(chain.sum_forward, 0, 4 * sizeof(cs_time));
    memset(chain.sum_backward, 0, 4 * sizeof(cs_time));
    found = search("no time", &chain, &options);
    assert_true(found.n > 0);
    expect_int("no time", 1, found.all[0].promised);
    cs_madpipe_allocations_finish(&found);
    /* no memory at all */
    chain.memory = 0;
    found = search("no memory", &chain, &options);
    expect_int("no memory", 0, found.n);
    cs_madpipe_allocations_finish(&found);
    /* a message of 2^58 ps both ways: 2^59 times 3 + 2 layers is more than 2^61 */
    chain.message[1] = INT64_C(1) << 59;
    expect_error(
        "too long", CS_OVERFLOW,
        "a micro-batch takes too long on the chain for its delays to be added up: 3 layers "
        "and their messages must stay below 2^62 ps (53 days) over the number of layers",
        cs_madpipe_allocate(&chain, &options, &found, &error), &error);
    cs_chain_finish(&chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recursion),      cmocka_unit_test(test_contiguous),
        cmocka_unit_test(test_promises),       cmocka_unit_test(test_optimistic),
        cmocka_unit_test(test_not_contiguous), cmocka_unit_test(test_search),
        cmocka_unit_test(test_even),           cmocka_unit_test(test_ends),
        cmocka_unit_test(test_grid_of_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The text in the picture of a pattern. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "schedules/plan/planner.h"
#include "sim/base/random.h"
#include "sim/cli/pattern-picture.h"
#include "tests/expect.h"
#include "tests/random-chain.h"

#include <stdlib.h>
#include <unistd.h>

static char *read_all(const char *path)
{
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    size_t size = (size_t)ftell(in);
    char *text = calloc(size + 1, 1);
    assert_non_null(text);
    rewind(in);
    assert_int_equal(fread(text, 1, size, in), size);
    fclose(in);
    return text;
}

/* Milliseconds and megabytes; three layers per device, and memory for few active micro-batches. */
static void test_picture(void **state)
{
    static const char *const words[] = {"a plan",  "device 0",      "device 3", "link 2-3",
                                        "forward", "gradient back", "% busy",   "time (ms)"};
    static const random_chain_limits limits = {12, 4, 1000000000u, 200000000u, 100000000u};
    const char *kept = getenv("PATTERN_PICTURE"); /* to look at it */
    char folder[] = "/tmp/test-pattern-picture.XXXXXX", path[64];
    cs_pattern_use uses[4];
    cs_planned planned = {0};
    cs_error error;
    gsl_rng *rng = cs_random_stream(5, "picture");
    cs_chain chain = random_chain_full(rng, &limits);
    (void)state;
    cs_error_init(&error);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/p.svg", folder);
    chain.memory = (chain.sum_fixed[12] + 8 * chain.sum_kept[12]) / 4;
    assert_int_equal(cs_planner_contiguous_optimal.plan(&chain, NULL, &planned, &error), CS_OK);
    assert_int_equal(cs_pattern_check(&chain, &planned.plan, &planned.pattern, uses, &error),
                     CS_OK);
    cs_status status = cs_pattern_picture("a plan", &chain, &planned.plan, &planned.pattern, uses,
                                          kept ? kept : path, &error);
    expect_error("drawn", CS_OK, "", status, &error);
    char *text = kept ? NULL : read_all(path);
    for (size_t i = 0; i < ROWS(words) && text; i++) {
        if (!strstr(text, words[i]))
            fail_msg("\"%s\" is not in the picture", words[i]);
    }
    status = cs_pattern_picture("a plan", &chain, &planned.plan, &planned.pattern, uses, "p.jpg",
                                &error);
    expect_error("name", CS_USAGE, "p.jpg: the name must end in .svg, .png or .pdf", status,
                 &error);
    free(text);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    cs_planned_finish(&planned);
    cs_chain_finish(&chain);
    gsl_rng_free(rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_picture)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

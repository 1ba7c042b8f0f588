/* Estimates against profiles, kind by kind. */
#include "sim/model/foreign/pipedream-compare.h"
#include "sim/model/zoo/zoo.h"

#include "sim/base/file.h"
#include "tests/expect.h"

#include <unistd.h>

static void must_build(const char *name, cs_net *net)
{
    static const cs_json_place place = {.file = "p"};
    assert_int_equal(cs_zoo_build(name, NULL, NULL, &place, net, NULL), CS_OK);
}

static const cs_compare_row *find_row(const cs_compare *compare, const char *kind)
{
    for (uint32_t i = 0; i < compare->n_rows; i++)
        if (strcmp(compare->rows[i].kind, kind) == 0)
            return &compare->rows[i];
    fail_msg("no row %s", kind);
    return NULL;
}

#define NODE(id, text, forward, backward)                                                          \
    id " -- " text " -- forward_compute_time=" forward ", backward_compute_time=" backward         \
       ", activation_size=1, parameter_size=0\n"

/* Two convolutions of 1 + 2 ms forward, 3 + 4 ms backward; a dropout without a time; nodes that are
 * not operators are left out. */
static const char profile[] =
    NODE("node1", "Input", "9", "0") NODE("node2", "Conv2d(3, 64)", "1", "3")
        NODE("node3", "Conv2d(64, 64)", "2", "4") NODE("node4", "Dropout(p=0.5)", "0", "0")
            NODE("node5", "View(-1)", "5", "5") "\tnode1 -- node2\n\tnode2 -- node3\n"
                                                "\tnode3 -- node4\n\tnode4 -- node5\n";

static void test_rows(void **state)
{
    (void)state;
    static const char path[] = "test-compare-graph.txt";
    cs_net net;
    cs_compare compare;
    cs_accelerator none;
    cs_error error;
    cs_error_init(&error);
    cs_accelerator_none(&none);
    const cs_net_options how = {.batch_size = 1, .device = &none, .source = "test"};
    must_build("vgg16", &net);
    assert_int_equal(cs_file_write(path, profile, strlen(profile), &error), CS_OK);
    cs_status status = cs_compare_load(path, &net, &how, &compare, &error);
    unlink(path);
    expect_error("profile", CS_OK, "", status, &error);
    const cs_compare_row *conv = find_row(&compare, "conv");
    expect_int("measured", 2, conv->n_measured);
    expect_int("estimated", 13, conv->n_estimated);
    expect_double("forward", 0.003, conv->measured[0]);
    expect_double("backward", 0.007, conv->measured[1]);
    expect_int("dropouts", 1, find_row(&compare, "dropout")->n_measured);
    /* Linear, ReLU, dropout and both poolings have no time on both sides. */
    expect_int("untimed", 5, compare.n_untimed);
    expect_double("total", 0.003, compare.total.measured[0]);
    cs_net_finish(&net);
}

/* The networks of published profiles: as many operators of each kind on both sides. Times are
 * shown, not asserted: the profiles name no GPU. */
static const struct {
    const char *network, *kind;
    uint32_t n;
} profiles[] = {
    {"vgg16", "conv", 13},     {"vgg16", "linear", 3},         {"vgg16", "relu", 15},
    {"vgg16", "max_pool", 5},  {"vgg16", "dropout", 2},        {"resnet50", "conv", 53},
    {"resnet50", "linear", 1}, {"resnet50", "batch_norm", 53}, {"resnet50", "relu", 49},
    {"resnet50", "add", 16},   {"resnet50", "max_pool", 1},
};

static void compare_profile(const char *network, const char *path, cs_compare *compare)
{
    cs_net net;
    cs_accelerator device;
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_accelerator_load("v100", NULL, &device, &error), CS_OK);
    const cs_net_options how = {.batch_size = 128, .device = &device, .source = "test"};
    must_build(network, &net);
    if (cs_compare_load(path, &net, &how, compare, &error) != CS_OK)
        fail_msg("%s: %s", path, error.text);
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
}

static void test_profiles(void **state)
{
    (void)state;
    char path[1024];
    for (size_t i = 0; i < ROWS(profiles); i++) {
        cs_compare compare;
        snprintf(path, sizeof(path), CS_SOURCE_ROOT "/../shared/profiles/pipedream/%s/graph.txt",
                 profiles[i].network);
        if (access(path, R_OK) != 0) {
            print_message("  skipped: no measured profile %s\n", path);
            skip();
        }
        compare_profile(profiles[i].network, path, &compare);
        const cs_compare_row *row = find_row(&compare, profiles[i].kind);
        expect_int(profiles[i].kind, profiles[i].n, row->n_measured);
        expect_int(profiles[i].kind, profiles[i].n, row->n_estimated);
        print_message("  %-8s %-10s forward %8.3f ms, estimated %8.3f; backward %8.3f, %8.3f\n",
                      profiles[i].network, profiles[i].kind, row->measured[0] * 1e3,
                      row->estimated[0] * 1e3, row->measured[1] * 1e3, row->estimated[1] * 1e3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_profiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Memory of gradients of activations, operator by operator, by hand. */
#include "sim/model/backward-memory.h"

#include "tests/expect.h"

static cs_tensor conv(cs_net *net, const char *name, cs_tensor x, uint32_t channels)
{
    return cs_net_conv(net, name, x, &(cs_conv){.out = channels, .kernel = 1});
}

static void must_end(cs_net *net, const cs_error *error)
{
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error->text);
}

static void expect_peaks(const cs_net *net, uint32_t batch, const int64_t *workspaces,
                         const int64_t *expected)
{
    int64_t peaks[16], own[16];
    cs_error error;
    cs_error_init(&error);
    memcpy(own, workspaces, net->n_ops * sizeof(*own));
    const cs_backward backward = {
        .net = net, .batch = batch, .rules = &(cs_kept_rules){0}, .workspaces = own};
    if (cs_backward_memory(&backward, peaks, &error) != CS_OK)
        fail_msg("%s", error.text);
    for (uint32_t p = 0; p < net->n_ops; p++)
        expect_int(net->ops[p].name, expected[p], peaks[p]);
}

/* 2 x 2 pixels of float32: 16 bytes a channel. From the last operator to the first:
 *   loss    makes the gradient of d, 16
 *   d       passes it to c and a, which share it: 16
 *   c       adds the gradient of b, 32: 48; a still needs c's shared one: 48
 *   b       makes another one of a aside, 16, with 7 of workspace: 71; the sum replaces the old
 *           one, and b's is freed: 16
 *   a       has no gradient of the image to make: 16, with 100 of workspace */
static void test_residual(void **state)
{
    (void)state;
    cs_net net;
    cs_error error;
    cs_error_init(&error);
    cs_net_begin(&net, "residual", &error);
    cs_tensor a = conv(&net, "a", cs_net_image(&net, 1, (cs_extent){2, {2, 2}}), 1);
    cs_tensor b = conv(&net, "b", a, 2);
    cs_tensor c = conv(&net, "c", b, 1);
    cs_net_squared_error(&net, "loss", cs_net_add(&net, "d", c, a));
    must_end(&net, &error);
    expect_peaks(&net, 1, (const int64_t[]){100, 7, 0, 0, 0},
                 (const int64_t[]){116, 71, 48, 16, 16});
    expect_peaks(&net, 3, (const int64_t[]){0, 0, 0, 0, 0},
                 (const int64_t[]){48, 192, 144, 48, 48});
    cs_net_finish(&net);
}

/* In place or not, a gradient has memory of its own; a view has none.
 *   loss    gradient of the linear layer's result, 1 float: 4
 *   linear  that, and of its input, 4 floats: 20
 *   view    16
 *   relu    both of its ends: 32
 *   a       16 */
static void test_in_place_and_view(void **state)
{
    (void)state;
    cs_net net;
    cs_error error;
    cs_error_init(&error);
    cs_net_begin(&net, "chain", &error);
    cs_tensor x = conv(&net, "a", cs_net_image(&net, 1, (cs_extent){2, {2, 2}}), 1);
    x = cs_net_flatten(&net, "view", cs_net_relu(&net, "relu", x));
    cs_net_squared_error(&net, "loss", cs_net_linear(&net, "linear", x, &(cs_linear){.out = 1}));
    must_end(&net, &error);
    expect_peaks(&net, 1, (const int64_t[]){0, 0, 0, 0, 0}, (const int64_t[]){16, 32, 16, 20, 4});
    cs_net_finish(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_residual),
        cmocka_unit_test(test_in_place_and_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

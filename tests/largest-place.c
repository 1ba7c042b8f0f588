#include "tests/largest-place.h"

#include "tests/expect.h"

static void expect_at_most(const char *row, const char *what, int64_t most, int64_t got)
{
    if (got > most)
        fail_msg("%s: %s is %lld, and at place 0 only %lld", row, what, (long long)got,
                 (long long)most);
}

static void compare_layers(const char *row, const cs_layer *first, const cs_layer *other)
{
    expect_at_most(row, "forward", first->forward, other->forward);
    expect_at_most(row, "backward_input", first->backward_input, other->backward_input);
    expect_at_most(row, "backward_weight", first->backward_weight, other->backward_weight);
    expect_at_most(row, "update", first->update, other->update);
    expect_at_most(row, "weights", first->weight_bytes, other->weight_bytes);
    expect_at_most(row, "output", first->output_bytes, other->output_bytes);
    expect_at_most(row, "kept", first->kept_bytes, other->kept_bytes);
    expect_at_most(row, "workspace", first->workspace_bytes, other->workspace_bytes);
    expect_int(row, first->n_exchanges, other->n_exchanges);
    expect_int(row, first->n_pieces, other->n_pieces);
    for (uint32_t i = 0; i < first->n_exchanges; i++)
        expect_at_most(row, "an exchange",
                       first->exchanges[i].bytes + first->exchanges[i].bytes_back,
                       other->exchanges[i].bytes + other->exchanges[i].bytes_back);
}

void expect_largest(const char *row, const cs_net *net, const cs_net_options *how)
{
    cs_net_options at_first = *how, here = *how;
    cs_accelerator device;
    cs_model first, other;
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_accelerator_load("h100", NULL, &device, NULL), CS_OK);
    at_first.place = 0;
    at_first.device = here.device = &device;
    if (cs_net_model(net, &at_first, &first, &error) != CS_OK ||
        cs_net_model(net, &here, &other, &error) != CS_OK)
        fail_msg("%s: %s", row, error.text);
    expect_int(row, first.n_layers, other.n_layers);
    for (uint32_t l = 0; l < first.n_layers; l++) {
        char text[400];
        snprintf(text, sizeof(text), "%s: layer %s at place %u", row, first.layers[l].name,
                 how->place);
        compare_layers(text, &first.layers[l], &other.layers[l]);
    }
    cs_model_finish(&first);
    cs_model_finish(&other);
    cs_accelerator_finish(&device);
}

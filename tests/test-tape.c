/* What fused kernels keep, by hand; and tapes against what the model says: after a forward they
 * keep as many bytes as the layers do, and after a backward nothing. */
#include "sim/workload/net-model.h"
#include "sim/workload/zoo/zoo.h"

#include "tests/expect.h"

#include <stdlib.h>

static cs_error error;

static cs_net_options options(uint32_t fused)
{
    static cs_accelerator none;
    cs_accelerator_none(&none);
    return (cs_net_options){.batch_size = 1,
                            .granularity = CS_GRANULARITY_BLOCK,
                            .precision = CS_PRECISION_BF16,
                            .kept = {.fused = fused},
                            .tapes = true,
                            .device = &none,
                            .source = "test"};
}

/* ---- by hand ---- */

/* 2 tokens of 4 features, a norm, a gated MLP of 6 features, 4 classes. */
static void build(cs_net *net)
{
    cs_error_init(&error);
    cs_net_begin(net, "gated", &error);
    cs_net_block(net, "all");
    cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 2), 8, 4);
    x = cs_net_rms_norm(net, "norm", x);
    cs_tensor gate = cs_net_linear(net, "gate", x, &(cs_linear){.out = 6});
    cs_tensor up = cs_net_linear(net, "up", x, &(cs_linear){.out = 6});
    x = cs_net_mul(net, "mul", cs_net_silu(net, "silu", gate), up);
    x = cs_net_linear(net, "down", x, &(cs_linear){.out = 4});
    cs_net_cross_entropy(net, "loss", x);
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
}

/* Of 2 bytes an element: ids 2 x 8; the embedding's rows 16, which the norm reads; 2 inverse roots
 * of 4 bytes, and normalised rows 16; the norm's result 16; gate, its activation and up 24 each;
 * their product 24; 8 logarithms of 4 bytes and 2 targets of 8. Fused, the norm computes the
 * normalised rows again, the gated product the activation, and the loss keeps 8 logits of 2 bytes
 * in place of the logarithms. */
static void keeps_less(void **state)
{
    (void)state;
    const struct {
        const char *name;
        uint32_t fused;
        int64_t kept;
    } rows[] = {
        {"none", 0, 16 + 16 + (8 + 16) + 16 + 3 * 24 + 24 + (32 + 16)},
        {"norm", 1u << CS_FUSED_NORM, 216 - 16},
        {"swiglu", 1u << CS_FUSED_SWIGLU, 216 - 24},
        {"cross_entropy", 1u << CS_FUSED_CROSS_ENTROPY, 216 - 32 + 16},
        {"all", 7, 216 - 16 - 24 - 32 + 16},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_net net = {0};
        cs_net_chain chain = {0};
        const cs_net_options how = options(rows[i].fused);
        build(&net);
        assert_int_equal(cs_net_chain_find(&net, &how, &chain, &error), CS_OK);
        expect_int(rows[i].name, rows[i].kept, chain.kept_bytes);
        cs_net_chain_finish(&chain);
        cs_net_finish(&net);
    }
}

/* TransformerEngine's placeholders are as large as the matrices: gate and up 4 x 6, down 6 x 4, of
 * 2 bytes. The embedding has none. */
static void has_placeholders(void **state)
{
    (void)state;
    cs_net net = {0};
    cs_model model = {0};
    cs_net_options how = options(0);
    how.kept.weight_gradients = CS_WEIGHT_GRADIENTS_PLACEHOLDERS;
    build(&net);
    assert_int_equal(cs_net_model(&net, &how, &model, &error), CS_OK);
    expect_int("placeholders", 3, model.layers[0].n_shared);
    for (uint32_t i = 0; i < model.layers[0].n_shared; i++)
        expect_int(model.layers[0].shared[i].name, 48, model.layers[0].shared[i].bytes);
    cs_model_finish(&model);
    cs_net_finish(&net);
}

/* ---- tapes ---- */

enum { MOST = 1 << 20 };

typedef struct memory {
    int64_t bytes; /* 0: it is not there */
    uint32_t keeps;
} memory;

static void play(const char *name, memory *all, const cs_tape_event *events, uint32_t n,
                 bool backward)
{
    for (uint32_t i = 0; i < n; i++) {
        memory *at = &all[events[i].memory];
        assert_true(events[i].memory < MOST);
        switch (events[i].what) {
        case CS_TAPE_TAKE:
        case CS_TAPE_READ:
            at->bytes = events[i].bytes;
            break;
        case CS_TAPE_KEEP:
            if (at->bytes == 0)
                fail_msg("%s: keeps what is not there", name);
            at->keeps++;
            break;
        case CS_TAPE_GIVE:
            at->keeps -= backward && at->keeps > 0;
            if (at->keeps == 0)
                at->bytes = 0;
            break;
        default:
            fail_msg("%s: no such event", name);
        }
    }
}

static int64_t sum(const memory *all, bool kept)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < MOST; i++)
        bytes += !kept || all[i].keeps > 0 ? all[i].bytes : 0;
    return bytes;
}

static void check_tapes(const char *name, const cs_net *net, uint32_t fused, memory *all)
{
    cs_net_chain chain = {0};
    cs_model model = {0};
    const cs_net_options how = options(fused);
    assert_int_equal(cs_net_chain_find(net, &how, &chain, &error), CS_OK);
    assert_int_equal(cs_net_model(net, &how, &model, &error), CS_OK);
    memset(all, 0, MOST * sizeof(*all));
    for (uint32_t l = 0; l < model.n_layers; l++)
        play(name, all, model.layers[l].forward_tape, model.layers[l].n_forward_tape, false);
    expect_int(name, chain.kept_bytes, sum(all, true));
    for (uint32_t l = model.n_layers; l-- > 0;)
        play(name, all, model.layers[l].backward_tape, model.layers[l].n_backward_tape, true);
    expect_int(name, 0, sum(all, true));
    cs_net_chain_finish(&chain);
    cs_model_finish(&model);
}

static void keep_what_layers_do(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt",         "llama", "bert",     "mixtral",
                                        "deepseek_v3", "t5",    "resnet50", "vgg16"};
    memory *all = calloc(MOST, sizeof(*all));
    const cs_json_place place = {.file = "test"};
    assert_non_null(all);
    cs_error_init(&error);
    for (size_t i = 0; i < ROWS(names); i++) {
        const cs_zoo_entry *entry;
        cs_net net = {0};
        assert_int_equal(cs_zoo_find(names[i], &entry, &error), CS_OK);
        assert_int_equal(cs_zoo_build(entry, NULL, &place, &net, &error), CS_OK);
        check_tapes(names[i], &net, 0, all);
        check_tapes(names[i], &net, 7, all);
        cs_net_finish(&net);
    }
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_less),
        cmocka_unit_test(has_placeholders),
        cmocka_unit_test(keep_what_layers_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

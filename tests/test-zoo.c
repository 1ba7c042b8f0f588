/* Networks of the zoo: parameters and multiply-accumulates against published numbers, chains, and
 * what users get wrong. */
#include "sim/workload/net-model.h"
#include "sim/workload/zoo/zoo.h"

#include "tests/expect.h"

#include <math.h>

/* A network by its name, with parameters as JSON text. */
static cs_status build(const char *name, const char *json, cs_net *net, cs_error *error)
{
    const cs_zoo_entry *entry;
    cJSON *params;
    cs_error_init(error);
    cs_status status = cs_zoo_find(name, &entry, error);
    if (status == CS_OK)
        status = cs_json_parse("p", json, strlen(json), &params, error);
    if (status != CS_OK)
        return status;
    status = cs_zoo_build(entry, params, &(cs_json_place){.file = "p"}, net, error);
    cJSON_Delete(params);
    return status;
}

static void must_build(const char *name, const char *json, cs_net *net)
{
    cs_error error;
    if (build(name, json, net, &error) != CS_OK)
        fail_msg("%s %s: %s", name, json, error.text);
}

/* Parameters and "GFLOPS" (which are multiply-accumulates) as torchvision 0.16 documents them with
 * its weights, at 224 pixels, 299 for Inception (whose number is that of inference, without the
 * auxiliary classifier). GPT-2, Llama-2 7B and BERT: parameters that transformers reports. */
static const struct {
    const char *name, *params;
    int64_t parameters;
    double gmac; /* 0: not published */
} totals[] = {
    {"vgg16", "{}", 138357544, 15.470},
    {"resnet18", "{}", 11689512, 1.814},
    {"resnet50", "{}", 25557032, 4.089},
    {"resnet101", "{}", 44549160, 7.801},
    {"resnet152", "{}", 60192808, 11.514},
    {"densenet121", "{}", 7978856, 2.834},
    {"inception_v3", "{}", 27161264, 0},
    {"inception_v3", "{\"auxiliary\": false}", 23834568, 5.713},
    {"vit_b16", "{}", 86567656, 17.564},
    {"gpt", "{}", 124439808, 0},
    {"llama", "{}", 6738415616, 0},
    {"bert", "{}", 109482240, 0},
    /* Convolutions without biases 4715712, linear layers 2048 * 2048 + 2048, 2048 * 256 + 256,
     * 256 * 4 + 4: the paper's 9.44 M, whatever the cube. */
    {"cosmoflow", "{}", 9437636, 0},
    {"cosmoflow", "{\"size\": 512}", 9437636, 0},
};

static void test_totals(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(totals); i++) {
        cs_net net;
        must_build(totals[i].name, totals[i].params, &net);
        expect_int(totals[i].name, totals[i].parameters, cs_net_parameters(&net));
        double gmac = cs_net_macs(&net) / 1e9;
        print_message("  %-12s %-22s %11" PRId64 " parameters, %.3f GMAC\n", totals[i].name,
                      totals[i].params, totals[i].parameters, gmac);
        if (totals[i].gmac > 0 && fabs(gmac / totals[i].gmac - 1) > 0.005)
            fail_msg("%s: expected %.3f GMAC, got %.3f", totals[i].name, totals[i].gmac, gmac);
        cs_net_finish(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_totals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

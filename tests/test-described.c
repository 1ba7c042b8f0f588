/* Families of networks described in JSON: formulas, steps, and messages on mistakes. */
#include "sim/model/net-model.h"
#include "sim/model/ops/operator.h"
#include "sim/model/zoo/formula.h"
#include "sim/model/zoo/zoo.h"

#include "tests/expect.h"

#include <unistd.h>

/* ---- formulas ---- */

static bool find(const void *context, const char *name, int index, double *value)
{
    static const double list[] = {10, 20};
    (void)context;
    if (strcmp(name, "list") == 0 && index >= 0 && index < 2)
        *value = list[index];
    else if (strcmp(name, "order") == 0 || strcmp(name, "kind.not") == 0)
        *value = 7;
    else
        return false;
    return true;
}

static const struct {
    const char *text;
    double value;
} values[] = {
    {"12", 12},
    {" 2.5 ", 2.5},
    {"2 + 3 * 4", 14},
    {"(2 + 3) * 4", 20},
    {"1 - 2 - 3", -4},
    {"8 / 2 / 2", 2},
    {"10 / 4", 2.5},
    {"7 % 4", 3},
    {"-2 + 5", 3},
    {"0 or 5", 5},
    {"3 or 5", 3},
    {"3 and 5", 5},
    {"0 and 5", 0},
    {"0 and 1 or 4", 4},
    {"not 3", 0},
    {"not 0", 1},
    {"2 < 2", 0},
    {"2 <= 2", 1},
    {"3 > 2", 1},
    {"2 >= 3", 0},
    {"1 + 1 = 2", 1},
    {"4 != 4", 0},
    {"list[1] - list[3 - 3]", 10},
    {"order or 1", 7}, /* a name that begins with an operator's letters */
    {"kind.not", 7},
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(values); i++) {
        char wrong[120];
        double value = 0;
        if (!cs_formula_value(values[i].text, find, NULL, &value, wrong, sizeof(wrong)))
            fail_msg("%s: %s", values[i].text, wrong);
        expect_double(values[i].text, values[i].value, value);
    }
}

static const struct {
    const char *text, *wrong;
} mistakes[] = {
    {"", "must have a number or a name at \"\""},
    {"1 +", "must have a number or a name at \"\""},
    {"(1", "misses a ) at \"\""},
    {"list[1", "misses a ] at \"\""},
    {"list[2]", "has no value for \"list\""},
    {"width", "has no value for \"width\""},
    {"1 2", "must end before \"2\""},
    {"1 / (2 - 2)", "divides by 0 before \"\""},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(mistakes); i++) {
        char wrong[120];
        double value = 1;
        assert_false(cs_formula_value(mistakes[i].text, find, NULL, &value, wrong, sizeof(wrong)));
        expect_text(mistakes[i].text, mistakes[i].wrong, wrong);
        expect_double(mistakes[i].text, 1, value);
    }
}

/* ---- a family ---- */

#define LENET(block, conv, head)                                                                   \
    "{\"name\": \"lenet\", \"summary\": \"LeNet-5\", \"source\": \"LeCun et al., 1998\",\n"        \
    "\"keys\": [{\"name\": \"image\", \"default\": 32, \"min\": 1, \"doc\": \"pixels\"},\n"        \
    "  {\"name\": \"bias\", \"default\": true, \"doc\": \"biases\"},\n"                            \
    "  {\"name\": \"pool\", \"choices\": [\"max\", \"avg\"], \"default\": \"max\", "               \
    "\"doc\": \"poolings\"}],\n"                                                                   \
    "\"constants\": {\"widths\": [6, 16], \"dense\": [120, 84]},\n"                                \
    "\"checks\": [{\"key\": \"image\", \"if\": \"image % 4\", \"message\": \"must be a multiple "  \
    "of 4 (got {image})\"}],\n"                                                                    \
    "\"parts\": {\"stage\": [{\"conv\": \"conv\", \"out\": \"width\"" conv ", \"bias\": "          \
    "\"bias\"},\n"                                                                                 \
    "  {\"relu\": \"relu\"}, {\"max_pool\": \"pool\", \"kernel\": 2, \"if\": \"pool.max\",\n"      \
    "   \"else\": [{\"avg_pool\": \"pool\", \"kernel\": 2}]}]},\n"                                 \
    "\"network\": [{\"image\": \"x\", \"shape\": [1, \"image\", \"image\"]},\n"                    \
    "  {\"repeat\": \"i\", \"times\": \"widths.n\", \"steps\": [{\"block\": \"" block "\"},\n"     \
    "    {\"part\": \"stage\", \"with\": {\"width\": \"widths[i]\"}}]},\n"                         \
    "  {\"flatten\": \"flatten\"},\n"                                                              \
    "  {\"repeat\": \"i\", \"times\": 2, \"in\": \"dense{i + 1}\", \"steps\": [\n"                 \
    "    {\"linear\": \"linear\", \"out\": \"dense[i]\", \"bias\": true}, {\"relu\": "             \
    "\"relu\"}]},\n"                                                                               \
    "  " head "{\"linear\": \"linear\", \"out\": 10, \"bias\": true},\n"                           \
    "  {\"cross_entropy\": \"loss\"}]}"

static cs_status build(const char *text, const char *parameters, cs_net *net, cs_error *error)
{
    char folder[] = "/tmp/described-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/family.json", folder);
    FILE *file = fopen(path, "w");
    cJSON *values_of = cJSON_Parse(parameters);
    const cs_json_place place = {.file = "p"};
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
    cs_error_init(error);
    const cs_status status = cs_zoo_build(path, NULL, values_of, &place, net, error);
    char *at = strstr(error->text, path);
    if (at) /* messages without the folder of this run */
        memmove(at, at + strlen(path), strlen(at + strlen(path)) + 1);
    cJSON_Delete(values_of);
    unlink(path);
    rmdir(folder);
    return status;
}

/* 6 filters of 5 x 5 and 6 biases are 156 parameters, 16 of 6 x 5 x 5 2,416; 400 features of 16
 * images of 5 x 5 make 120, 48,120; then 10,164 and 850. */
static void test_family(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_op_kind kind;
        int64_t parameters, elements;
    } ops[] = {
        {"stage1.conv", CS_OP_CONV, 156, 6 * 28 * 28},
        {"stage1.relu", CS_OP_RELU, 0, 6 * 28 * 28},
        {"stage1.pool", CS_OP_MAX_POOL, 0, 6 * 14 * 14},
        {"stage2.conv", CS_OP_CONV, 2416, 16 * 10 * 10},
        {"stage2.relu", CS_OP_RELU, 0, 16 * 10 * 10},
        {"stage2.pool", CS_OP_MAX_POOL, 0, 16 * 5 * 5},
        {"stage2.flatten", CS_OP_VIEW, 0, 400},
        {"stage2.dense1.linear", CS_OP_LINEAR, 48120, 120},
        {"stage2.dense1.relu", CS_OP_RELU, 0, 120},
        {"stage2.dense2.linear", CS_OP_LINEAR, 10164, 84},
        {"stage2.dense2.relu", CS_OP_RELU, 0, 84},
        {"head.linear", CS_OP_LINEAR, 850, 10},
        {"head.loss", CS_OP_CROSS_ENTROPY, 0, 1},
    };
    const char *text = LENET("stage{i + 1}", ", \"kernel\": 5", "{\"block\": \"head\"}, ");
    cs_net net;
    cs_error error;
    expect_error("lenet", CS_OK, "", build(text, "{}", &net, &error), &error);
    expect_int("operators", ROWS(ops), net.n_ops);
    for (uint32_t i = 0; i < net.n_ops; i++) {
        const cs_op *op = &net.ops[i];
        expect_text(ops[i].name, ops[i].name, op->name);
        expect_int(ops[i].name, ops[i].kind, op->kind);
        expect_int(ops[i].name, ops[i].parameters, op->weights + op->biases);
        expect_int(ops[i].name, ops[i].elements, cs_net_tensor(&net, op->output)->elements);
    }
    cs_net_finish(&net);
    /* without biases, 6 + 16 parameters less; with the other pooling */
    expect_error("options", CS_OK, "",
                 build(text, "{\"bias\": false, \"pool\": \"avg\"}", &net, &error), &error);
    expect_int("without biases", 61706 - 22, cs_net_parameters(&net));
    expect_int("the other pooling", CS_OP_AVG_POOL, net.ops[2].kind);
    cs_net_finish(&net);
}

static const struct {
    const char *row, *text, *parameters, *message;
} wrongs[] = {
    {"a check", LENET("b", ", \"kernel\": 5", ""), "{\"image\": 30}",
     "p: /image: must be a multiple of 4 (got 30)"},
    {"an unknown key", LENET("b", ", \"kernel\": 5", ""), "{\"imag\": 30}",
     "p: unknown key \"imag\"; did you mean \"image\"? known: image, bias, pool"},
    {"an unknown step", LENET("b{i}", ", \"kernel\": 5", "{\"shuffle\": \"s\"}, "), "{}",
     ": /network/4: does not know what \"shuffle\" is: a step, or a kind of operator"},
    {"a kind that only splits make", LENET("b{i}", ", \"kernel\": 5", "{\"exchange\": \"s\"}, "),
     "{}", ": /network/4: does not know what \"exchange\" is: a step, or a kind of operator"},
    {"an unknown member", LENET("b{i}", ", \"kernel\": 5, \"gropus\": 2", ""), "{}",
     ": /parts/stage/0/gropus: unknown key of an operator"},
    {"no kernel", LENET("b{i}", "", ""), "{}",
     ": /parts/stage/0/kernel: must have 2 sizes above 0, one per direction (got 0)"},
    {"a name", LENET("b{i", ", \"kernel\": 5", ""), "{}",
     ": /network/1/steps/0/block: misses a } in \"b{i\""},
    {"half a filter", LENET("b{i}", ", \"kernel\": \"image / 64\"", ""), "{}",
     ": /parts/stage/0/kernel: must be a whole number from 0 to 4294967295 (got 0.5)"},
    {"an unknown part", LENET("b{i}", ", \"kernel\": 5", "{\"part\": \"tail\"}, "), "{}",
     ": /network/4/part: unknown part \"tail\""},
    {"an unknown tensor", LENET("b{i}", ", \"kernel\": 5", "{\"take\": \"y\"}, "), "{}",
     ": /network/4/take: no step before it makes the tensor \"y\""},
    {"too often", LENET("b", ", \"kernel\": 5", "{\"repeat\": \"k\", \"times\": 1e6}, "), "{}",
     ": /network/4/times: must be a whole number from 0 to 65536 (got 1e+06)"},
};

static void test_wrong_families(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(wrongs); i++) {
        cs_net net = {0};
        cs_error error;
        expect_error(wrongs[i].row, CS_INVALID, wrongs[i].message,
                     build(wrongs[i].text, wrongs[i].parameters, &net, &error), &error);
    }
}

/* ---- kinds of operators ---- */

/* Every kind has a name of its own and a group, and says how a file makes it. */
static void test_kinds(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < CS_N_OP_KINDS; k++) {
        const cs_operator *kind = cs_operator_of_kind((cs_op_kind)k);
        assert_true(kind->name && kind->group);
        for (uint32_t other = 0; other < k; other++)
            assert_string_not_equal(kind->name, cs_op_kind_name((cs_op_kind)other));
        if (k == CS_OP_EXCHANGE)
            continue;
        if (!kind->make || kind->needs.least == 0 || kind->needs.most > CS_OP_INPUTS_MAX)
            fail_msg("%s: no entry in files", kind->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_family), cmocka_unit_test(test_wrong_families),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests_name("described", tests, NULL, NULL);
}

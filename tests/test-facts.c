/* Descriptions of facts: values that a file takes over by "like", and the names that find it. */
#include "sim/base/facts.h"
#include "tests/expect.h"

#include <unistd.h>

static const char *const joined[] = {"list", NULL};
static const cs_facts_kind kind = {"devices", "device", "docs/how-to/own-device.md", joined};

static char folder[] = "/tmp/test-facts-XXXXXX";

static const char *write_file(const char *name, const char *text)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static const struct {
    const char *row, *base, *own, *expected;
} likes[] = {
    {"unstated keys", "{\"a\": 1, \"b\": 2}", "{\"like\": \"base.json\", \"b\": 3}",
     "{\"a\":1,\"b\":3}"},
    {"objects are merged", "{\"a\": {\"x\": 1, \"y\": {\"z\": 2}}}",
     "{\"like\": \"base.json\", \"a\": {\"y\": {\"w\": 3}}}",
     "{\"a\":{\"x\":1,\"y\":{\"z\":2,\"w\":3}}}"},
    {"an object in place of a number", "{\"a\": 1}", "{\"like\": \"base.json\", \"a\": {\"x\": 1}}",
     "{\"a\":{\"x\":1}}"},
    {"lists are replaced", "{\"other\": [1, 2]}", "{\"like\": \"base.json\", \"other\": [3]}",
     "{\"other\":[3]}"},
    {"joined lists", "{\"list\": [1, 2]}", "{\"like\": \"base.json\", \"list\": [3]}",
     "{\"list\":[3,1,2]}"},
    {"joined lists of the root only", "{\"a\": {\"list\": [1]}}",
     "{\"like\": \"base.json\", \"a\": {\"list\": [3]}}", "{\"a\":{\"list\":[3]}}"},
    {"null removes", "{\"a\": 1, \"b\": {\"x\": 1, \"y\": 2}}",
     "{\"like\": \"base.json\", \"a\": null, \"b\": {\"x\": null}}", "{\"b\":{\"y\":2}}"},
    {"names are its own", "{\"name\": \"base\", \"aliases\": [\"B\"], \"a\": 1}",
     "{\"like\": \"base.json\", \"name\": \"own\"}", "{\"a\":1,\"name\":\"own\"}"},
};

static void test_like(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(likes); i++) {
        cJSON *root;
        cs_error error;
        cs_error_init(&error);
        write_file("base.json", likes[i].base);
        if (cs_facts_load(&kind, write_file("own.json", likes[i].own), NULL, &root, &error) !=
            CS_OK)
            fail_msg("%s: %s", likes[i].row, error.text);
        char *text = cJSON_PrintUnformatted(root);
        expect_text(likes[i].row, likes[i].expected, text);
        free(text);
        cJSON_Delete(root);
    }
}

/* A chain of three, by "like" relative to each file. */
static void test_chain(void **state)
{
    (void)state;
    cJSON *root;
    write_file("base.json", "{\"a\": 1, \"b\": 1, \"c\": 1}");
    write_file("middle.json", "{\"like\": \"base.json\", \"b\": 2, \"a\": null}");
    const char *path = write_file("own.json", "{\"like\": \"middle.json\", \"c\": 3}");
    assert_int_equal(cs_facts_load(&kind, path, NULL, &root, NULL), CS_OK);
    char *text = cJSON_PrintUnformatted(root);
    expect_text("null in the middle", "{\"b\":2,\"c\":3}", text);
    free(text);
    cJSON_Delete(root);
}

static void test_cycle(void **state)
{
    (void)state;
    cJSON *root;
    cs_error error;
    cs_error_init(&error);
    write_file("a.json", "{\"like\": \"b.json\"}");
    write_file("b.json", "{\"like\": \"a.json\"}");
    char path[128];
    snprintf(path, sizeof(path), "%s/a.json", folder);
    assert_int_equal(cs_facts_load(&kind, path, NULL, &root, &error), CS_INVALID);
    assert_non_null(strstr(error.text, "a.json: /like: "));
    assert_non_null(strstr(error.text, "more than 8 descriptions are like each other"));
}

static void test_errors(void **state)
{
    (void)state;
    cJSON *root;
    cs_error error;
    char expected[512];
    cs_error_init(&error);
    const char *path = write_file("own.json", "{\"like\": 3}");
    snprintf(expected, sizeof(expected), "%s: /like: must be the name of a device, or FILE.json",
             path);
    expect_error("a number", CS_INVALID, expected, cs_facts_load(&kind, path, NULL, &root, &error),
                 &error);
    cs_error_init(&error);
    path = write_file("own.json", "{\"like\": \"h1000\"}");
    assert_int_equal(cs_facts_load(&kind, path, NULL, &root, &error), CS_INVALID);
    assert_non_null(strstr(error.text, "/like: unknown device \"h1000\"; did you mean \"h100\"?"));
    assert_non_null(strstr(error.text, "in a file FILE.json (docs/how-to/own-device.md)"));
}

/* All files that are compiled in are found by their names, in order. */
static void test_files(void **state)
{
    (void)state;
    const char *before = "";
    size_t n = 0;
    for (const char *name; (name = cs_facts_name("devices", n)); n++, before = name) {
        assert_true(strcmp(before, name) < 0);
        assert_ptr_equal(cs_facts_find(&kind, name), name);
        assert_non_null(cs_facts_text("devices", name));
    }
    assert_true(n > 40);
    assert_null(cs_facts_text("devices", "abacus"));
}

/* Names as programs print them and people write them. CUDA's and ROCm's names come from
 * torch.cuda.get_device_name; Google Cloud's are accelerator types, Azure's are sizes. NULL: a
 * product that is not described, or not a product name on its own. */
static const struct {
    const char *name, *device;
} called[] = {
    {"h100", "h100"},
    {"NVIDIA H100 80GB HBM3", "h100"},
    {"NVIDIA_H100_80GB_HBM3", "h100"},
    {"H100-SXM5-80GB", "h100"},
    {"nvidia-h100-mega-80gb", "h100"},
    {"Standard_ND96isr_H100_v5", "h100"},
    {"NVIDIA H100 PCIe", "h100-pcie"},
    {"NVIDIA H100 NVL", "h100-nvl"},
    {"H100 96GB HBM2e, 500 W", "h100-96gb"},
    {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", NULL},
    {"NVIDIA H200", "h200"},
    {"NVIDIA H200 NVL", "h200-nvl"},
    {"H200-SXM-141GB", "h200"},
    {"NVIDIA H20", "h20"},
    {"NVIDIA H20-3e", NULL}, /* 141 GB */
    {"NVIDIA H800", "h800"},
    {"NVIDIA H800 PCIe", NULL},
    {"NVIDIA GH200 480GB", "gh200"}, /* 480 GB is the memory of its processor */
    {"GH200 96GB", "gh200"},
    {"NVIDIA GH200 144G HBM3e", "gh200-144gb"},
    {"GB200 (NVL72)", "gb200"},
    {"NVIDIA B200", "b200"},
    {"B200-SXM-180GB", "b200"},
    {"NVIDIA B300 SXM6 AC", "b300"},
    {"NVIDIA A100-SXM4-80GB", "a100"},
    {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
    {"A100 40G", "a100-40gb"},
    {"p4d.24xlarge", "a100-40gb"},
    {"p4de.24xlarge", "a100"},
    {"NVIDIA A100 80GB PCIe", "a100-80gb-pcie"},
    {"NVIDIA_A100_80GB_PCIe", "a100-80gb-pcie"},
    {"NVIDIA A100-PCIE-40GB", "a100-40gb-pcie"},
    {"A100-SXM-64GB", NULL}, /* CINECA's Leonardo */
    {"A800-SXM4-80GB", "a800"},
    {"NVIDIA A800 40GB Active", NULL},
    {"NVIDIA A800 80GB PCIe", NULL},
    {"NVIDIA A10", "a10"},
    {"NVIDIA A10G", NULL},
    {"Tesla V100-SXM2-16GB", "v100"},
    {"Tesla V100-SXM2-32GB", "v100-32gb"},
    {"Tesla V100-PCIE-16GB", "v100-pcie"},
    {"Tesla V100-PCIE-32GB", "v100-pcie-32gb"},
    {"Tesla V100S-PCIE-32GB", NULL},
    {"Tesla P100-SXM2-16GB", "p100"},
    {"Tesla P100-PCIE-16GB", "p100-pcie"},
    {"Tesla P100-PCIE-12GB", NULL},
    {"Tesla P40 24GB", "p40"},
    {"Tesla T4", "t4"},
    {"NVIDIA L4", "l4"},
    {"NVIDIA L40S", "l40s"},
    {"NVIDIA TITAN RTX", "titan-rtx"},
    {"Titan X (12 GB)", NULL},
    {"NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"},
    {"NVIDIA GeForce RTX 3090", "rtx-3090"},
    {"NVIDIA GeForce RTX 3090 Ti", NULL},
    {"NVIDIA GeForce RTX 4090", "rtx-4090"},
    {"RTX4090", "rtx-4090"},
    {"NVIDIA GeForce RTX 4090 D", NULL},
    {"NVIDIA GeForce RTX 4090 Laptop GPU", NULL},
    {"NVIDIA GeForce RTX 5090", "rtx-5090"},
    {"NVIDIA RTX A6000", "rtx-a6000"},
    {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
    {"Quadro RTX 6000", NULL},
    {"RTX PRO 6000", "rtx-pro-6000"},
    {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000"},
    {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server"},
    {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q"},
    {"NVIDIA RTX PRO 5000 Blackwell", NULL},
    {"AMD Instinct MI300X", "mi300x"},
    {"AMD_Instinct_MI210", "mi210"},
    {"AMD Instinct MI250X", "mi250x"},
    {"AMD Instinct MI250X / MI250", NULL},
    {"MI300X-192GB", "mi300x"},
    {"h100.json", NULL},
    {"", NULL},
    {"NVIDIA", NULL},
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(called); i++)
        expect_text(called[i].name, called[i].device ? called[i].device : "none",
                    cs_facts_find(&kind, called[i].name) ? cs_facts_find(&kind, called[i].name)
                                                         : "none");
}

static const struct {
    const char *name, *expected;
} unknown[] = {
    {"h1000",
     "unknown device \"h1000\"; did you mean \"h100\"? known: `sim list devices` has them; or"},
    {"NVIDIA RTX 4080", "unknown device \"NVIDIA RTX 4080\"; known: `sim list devices` has them; "
                        "the nearest: rtx-2080-ti, rtx-4090; or "},
    {"abacus of 80GB",
     "unknown device \"abacus of 80GB\"; known: `sim list devices` has them; or "},
    {"AMD Instinct MI250X / MI250", "device \"AMD Instinct MI250X / MI250\" is ambiguous: must be "
                                    "\"mi250\" or \"mi250x\""},
};

static void test_unknown(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(unknown); i++) {
        cJSON *root;
        cs_error error;
        cs_error_init(&error);
        assert_int_equal(cs_facts_load(&kind, unknown[i].name, NULL, &root, &error), CS_INVALID);
        if (strncmp(error.text, unknown[i].expected, strlen(unknown[i].expected)) != 0)
            fail_msg("%s\n%s", unknown[i].expected, error.text);
    }
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"base", "middle", "own", "a", "b"};
    (void)state;
    for (size_t i = 0; i < ROWS(names); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s.json", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like),    cmocka_unit_test(test_chain), cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_errors),  cmocka_unit_test(test_files), cmocka_unit_test(test_names),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

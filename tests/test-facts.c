/* Descriptions of facts: what a file takes over from the one that it is like, and by which names it
 * is found. */
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
    {"what is not stated", "{\"a\": 1, \"b\": 2}", "{\"like\": \"base.json\", \"b\": 3}",
     "{\"b\":3,\"a\":1}"},
    {"objects are merged", "{\"a\": {\"x\": 1, \"y\": {\"z\": 2}}}",
     "{\"like\": \"base.json\", \"a\": {\"y\": {\"w\": 3}}}",
     "{\"a\":{\"y\":{\"w\":3,\"z\":2},\"x\":1}}"},
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
     "{\"like\": \"base.json\", \"name\": \"own\"}", "{\"name\":\"own\",\"a\":1}"},
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
    expect_text("null in the middle", "{\"c\":3,\"b\":2}", text);
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
        cmocka_unit_test(test_like),   cmocka_unit_test(test_chain), cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

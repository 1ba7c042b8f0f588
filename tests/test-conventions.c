/* Conditions on keys, and lists of conventions. Expected results follow from the forms in
 * sim/base/conventions.h. */
#include "sim/base/conventions.h"
#include "tests/expect.h"

#include <stdlib.h>

static cJSON *parse(const char *text)
{
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    return root;
}

static const cJSON *value_in(void *context, const char *key, cJSON *made)
{
    (void)made;
    return cs_json_at(context, key);
}

/* `holds` and, for rules, `needed`: where a key that is not given counts as if it fulfilled them. */
static const struct {
    const char *conditions;
    bool holds, needed;
} conditions[] = {
    {"", true, true},
    {"/a", true, true},
    {"/none", false, false},
    {"!/none", true, true},
    {"!/a", false, false},
    {"/nothing", false, false}, /* null */
    {"/a=3", true, true},
    {"/a=4", false, false},
    {"/a=2|3|4", true, true},
    {"/none=3", false, true},
    {"/a!=3", false, false},
    {"/a!=2|4", true, true},
    {"/none!=3", true, true},
    {"/a>2", true, true},
    {"/a>3", false, false},
    {"/a>=3", true, true},
    {"/a<3.5", true, true},
    {"/a<=2.9", false, false},
    {"/none<3", false, true},
    {"/small<0.001", true, true}, /* numbers are compared as numbers, whatever their digits */
    {"/small>1", false, false},
    {"/name=dgx1", false, false},
    {"/name=dgx1*", true, true},
    {"/name=x|dgx*", true, true},
    {"/name!=dgx*", false, false},
    {"/yes=true", true, true},
    {"/no=true", false, false},
    {"/release<2.10", true, true},
    {"/release>=2.9", true, true},
    {"/release>2.9.1", false, false},
    {"/release<2.9.1", true, true},
    {"/list=1", false, false},
    {"/list", true, true},
    {"/twelve%/a", true, true},
    {"/twelve%2:/a", true, true},
    {"/a%/twelve", false, false},
    {"/twelve%/none", true, true},
    {"/none%/a", false, true},
    {"/inner/key=v /a=3", true, true},
    {"/inner/key=v  /a=4", false, false},
    {"/a/key", false, false},
};

static void test_conditions(void **state)
{
    (void)state;
    cJSON *root = parse("{\"a\": 3, \"small\": 1e-05, \"name\": \"dgx1v\", \"yes\": true, \"no\": "
                        "false, \"release\": \"2.9\", \"list\": [1], \"twelve\": 12, \"nothing\": "
                        "null, \"inner\": {\"key\": \"v\"}}");
    for (size_t i = 0; i < ROWS(conditions); i++) {
        const char *text = conditions[i].conditions;
        if (cs_conditions_hold(text, false, value_in, root) != conditions[i].holds)
            fail_msg("%s: expected %d", text, conditions[i].holds);
        if (cs_conditions_hold(text, true, value_in, root) != conditions[i].needed)
            fail_msg("%s, needed: expected %d", text, conditions[i].needed);
        assert_int_equal(cs_conditions_check(text, &(cs_json_place){.file = "f"}, NULL), CS_OK);
    }
    assert_true(cs_conditions_hold(NULL, false, value_in, root));
    cJSON_Delete(root);
}

static void test_wrong_conditions(void **state)
{
    static const char *const rows[] = {"a",     "a=3", "/",    "/a==3", "/a=", "/a=>3",  "/a%3",
                                       "!/a=3", "=3",  "/a!3", "/a !",  "/a%", "/a <> 3"};
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        if (cs_conditions_check(rows[i], &(cs_json_place){.file = "f"}, NULL) != CS_INVALID)
            fail_msg("%s is accepted", rows[i]);
}

static const struct {
    const char *row, *before, *conventions, *after;
} lists[] = {
    {"a key that is not given", "{\"s\":{}}", "[{\"key\": \"/s/a\", \"value\": [1, {\"b\": 2}]}]",
     "{\"s\":{\"a\":[1,{\"b\":2}]}}"},
    {"a key that is given", "{\"s\":{\"a\":0}}", "[{\"key\": \"/s/a\", \"value\": 1}]",
     "{\"s\":{\"a\":0}}"},
    {"the first that applies", "{\"b\":1}",
     "[{\"key\": \"/a\", \"value\": 1, \"with\": \"/b=2\"}, {\"key\": \"/a\", \"value\": 2, "
     "\"with\": \"/b=1\"}, {\"key\": \"/a\", \"value\": 3}]",
     "{\"b\":1,\"a\":2}"},
    {"later ones see earlier ones", "{}",
     "[{\"key\": \"/c\", \"value\": 1, \"with\": \"/a=1\"}, {\"key\": \"/a\", \"value\": 1}, "
     "{\"key\": \"/b\", \"value\": 2, \"with\": \"/a=1\"}]",
     "{\"a\":1,\"b\":2}"},
    {"null keeps the default", "{\"s\":{\"x\":1}}",
     "[{\"key\": \"/s/a\", \"value\": null, \"with\": \"/s/x=1\"}, {\"key\": \"/s/a\", \"value\": "
     "2}, {\"key\": \"/s/b\", \"value\": 3, \"with\": \"/s/a\"}]",
     "{\"s\":{\"x\":1}}"},
    {"unless its condition fails", "{\"s\":{\"x\":2}}",
     "[{\"key\": \"/s/a\", \"value\": null, \"with\": \"/s/x=1\"}, {\"key\": \"/s/a\", \"value\": "
     "2}]",
     "{\"s\":{\"x\":2,\"a\":2}}"},
    {"objects on the way", "{}", "[{\"key\": \"/s/t/a\", \"value\": 1}]",
     "{\"s\":{\"t\":{\"a\":1}}}"},
};

static void test_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(lists); i++) {
        cJSON *root = parse(lists[i].before), *list = parse(lists[i].conventions);
        assert_int_equal(cs_conventions_apply(list, root, NULL, NULL, NULL, "test", NULL), CS_OK);
        char *got = cJSON_PrintUnformatted(root);
        expect_text(lists[i].row, lists[i].after, got);
        free(got);
        cJSON_Delete(list);
        cJSON_Delete(root);
    }
    cJSON *root = parse("{}");
    assert_int_equal(cs_conventions_apply(NULL, root, NULL, NULL, NULL, "test", NULL), CS_OK);
    cJSON_Delete(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_wrong_conditions),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

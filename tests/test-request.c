/* Requests of `sim` to a bench program: they are read as written, and errors are reported with
 * their place. */
#include "calib/bench/request/request.h"
#include "calib/costs.h"
#include "tests/expect.h"

#include <stdlib.h>

typedef struct sample {
    cs_arena arena;
    cs_request request;
    cJSON *root;
    cs_error error;
} sample;

static cs_status read(const char *text, sample *s)
{
    memset(s, 0, sizeof(*s));
    cs_arena_init(&s->arena);
    cs_error_init(&s->error);
    return cs_request_read("r.json", text, strlen(text), &s->request, &s->root, &s->arena,
                           &s->error);
}

static void finish(sample *s)
{
    cJSON_Delete(s->root);
    cs_arena_finish(&s->arena);
}

/* Numbers as they were given, a time of 20 ms as 0.02 s, and in the same order again. */
static void test_round_trip(void **state)
{
    const uint32_t batches[] = {4, 1}, collectives[] = {CS_COST_ALL_REDUCE, CS_COST_SEND};
    const cs_request_override first = {"/schedule/micro_batches", "8"}, second = {"/name", "a=b"};
    const cs_request_override *overrides[] = {&first, &second};
    cs_workload workload = {.name = "vgg16", .precision = CS_PRECISION_BF16};
    cJSON *parameters = cJSON_Parse("{\"image\": 32}");
    sample s = {.root = NULL}, again;
    (void)state;
    cs_arena_init(&s.arena);
    cs_error_init(&s.error);
    assert_int_equal(cs_request_init("out.json", &s.request, &s.arena, &s.error), CS_OK);
    workload.parameters = parameters;
    s.request.workload = &workload;
    s.request.batches = (cs_list){.n = 2, .items = (void *)batches};
    s.request.collectives = (cs_list){.n = 2, .items = (void *)collectives};
    s.request.overrides = (cs_list){.n = 2, .items = overrides};
    s.request.time_limit = INT64_C(20000000000); /* ps */
    s.request.max_bytes = INT64_C(1) << 40;
    char *text = cs_request_print(&s.request);
    assert_non_null(text);
    assert_int_equal(read(text, &again), CS_OK);
    assert_string_equal(again.request.output, "out.json");
    assert_string_equal(again.request.workload->name, "vgg16");
    assert_int_equal(again.request.workload->precision, CS_PRECISION_BF16);
    assert_int_equal(cs_json_member(again.request.workload->parameters, "image")->valueint, 32);
    assert_int_equal(again.request.batches.n, 2);
    assert_memory_equal(again.request.batches.items, batches, sizeof(batches));
    assert_int_equal(again.request.collectives.n, 2);
    assert_memory_equal(again.request.collectives.items, collectives, sizeof(collectives));
    assert_int_equal(again.request.overrides.n, 2);
    const cs_request_override *const *read_back = again.request.overrides.items;
    assert_string_equal(read_back[0]->pointer, "/schedule/micro_batches");
    assert_string_equal(read_back[1]->value, "a=b");
    assert_int_equal(again.request.time_limit, s.request.time_limit);
    assert_int_equal(again.request.max_bytes, s.request.max_bytes);
    assert_int_equal(again.request.runs, 1);
    char *twice = cs_request_print(&again.request);
    assert_string_equal(twice, text);
    free(twice);
    free(text);
    finish(&again);
    finish(&s);
    cJSON_Delete(parameters);
}

static const struct {
    const char *text, *said;
} wrong[] = {
    {"{}", "r.json: missing key \"output\""},
    {"{\"output\": \"o\", \"batches\": [1, 0]}", "r.json: /batches/1: must be from 1 to 1048576"},
    {"{\"output\": \"o\", \"batches\": [1.5]}", "r.json: /batches/0: must be a whole number"},
    {"{\"output\": \"o\", \"collectives\": [\"sned\"]}",
     "r.json: /collectives/0: unknown value \"sned\""},
    {"{\"output\": \"o\", \"overrides\": [{\"pointer\": \"/a\"}]}",
     "r.json: /overrides/0: missing key \"value\""},
    {"{\"output\": \"o\", \"overrides\": [{\"pointer\": 1, \"value\": \"\"}]}",
     "r.json: /overrides/0/pointer: must be text"},
    {"{\"output\": \"o\", \"workload\": {\"nmae\": \"vgg16\"}}",
     "r.json: /workload: unknown key \"nmae\""},
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(wrong); i++) {
        sample s;
        const cs_status status = read(wrong[i].text, &s);
        if (status != CS_INVALID || !strstr(s.error.text, wrong[i].said))
            fail_msg("%s: status %d: \"%s\" in place of \"%s\"", wrong[i].text, status,
                     s.error.text, wrong[i].said);
        finish(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

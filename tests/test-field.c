/* Tables of fields: every JSON type for every type of field, ranges, defaults, unknown keys, and
 * writing back what was read. */
#include "sim/base/field.h"
#include "sim/base/time.h"
#include "tests/expect.h"

#include <math.h>
#include <stdlib.h>

typedef struct sample {
    cs_time time;
    int64_t bytes;
    double bandwidth, flops, number;
    uint32_t count, choice;
    bool flag;
    const char *text;
    const cJSON *json;
} sample;

static const char *const sharings[] = {"none", "fifo", "max_min", NULL};

/* One table for each type, so that one row of a test is about one field. */
#define ONE(name, type, member)                                                                    \
    {                                                                                              \
        {name, type, offsetof(sample, member)},                                                    \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

static const cs_field time_field[] = ONE("v", CS_FIELD_TIME, time);
static const cs_field bytes_field[] = ONE("v", CS_FIELD_BYTES, bytes);
static const cs_field bandwidth_field[] = ONE("v", CS_FIELD_BANDWIDTH, bandwidth);
static const cs_field flops_field[] = ONE("v", CS_FIELD_FLOP_RATE, flops);
static const cs_field number_field[] = ONE("v", CS_FIELD_NUMBER, number);
static const cs_field count_field[] = ONE("v", CS_FIELD_COUNT, count);
static const cs_field bool_field[] = ONE("v", CS_FIELD_BOOL, flag);
static const cs_field text_field[] = ONE("v", CS_FIELD_TEXT, text);
static const cs_field json_field[] = ONE("v", CS_FIELD_JSON, json);
static const cs_field choice_field[] = {
    {"v", CS_FIELD_CHOICE, offsetof(sample, choice), .choices = sharings}, {0}};

static cJSON *parse(const char *text)
{
    cJSON *root = NULL;
    cs_error error;
    cs_error_init(&error);
    if (cs_json_parse("s.json", text, strlen(text), &root, &error) != CS_OK)
        fail_msg("%s", error.text);
    return root;
}

/* Reads `json` into *out; texts and documents of *out are freed afterwards. */
static cs_status read_one(const cs_field *table, const char *json, sample *out, cs_error *error)
{
    const cs_json_place root = {.file = "s.json"};
    const cs_json_place place = {.up = &root, .key = "k"};
    const cs_field *const tables[] = {table, NULL};
    void *const outs[] = {out};
    cs_arena arena;
    cs_arena_init(&arena);
    cs_error_init(error);
    cJSON *object = json ? parse(json) : NULL;
    cs_status status = cs_field_read(object, &place, tables, outs, &arena, error);
    if (out->text)
        out->text = strcmp(out->text, "word") == 0 ? "word" : "other";
    cJSON_Delete(object);
    cs_arena_finish(&arena);
    return status;
}

#define TIME      "must be time: a number of seconds or a text such as \"5 us\" (got "
#define BYTES     "must be bytes: a number or a text such as \"16 GiB\" (got "
#define BANDWIDTH "must be bandwidth: a number of bytes/s or a text such as \"12 GB/s\" (got "
#define FLOPS     "must be flop rate: a number of flop/s or a text such as \"15 Tflop/s\" (got "
#define NUMBER    "must be a number >= 0 (got "
#define COUNT     "must be a whole number >= 0 (got "
#define BOOL      "must be true or false (got "
#define CHOICE    "must be one of none, fifo, max_min (got "
#define WORD      "must be text (got "
#define TIME_UNIT "must be a number and a unit such as \"5 ms\" (got \"word\")"
#define BYTE_UNIT "must be a number and a unit such as \"5 GB\" (got \"word\")"
#define RATE_UNIT "must be a number and a unit such as \"5 GB/s\" (got \"word\")"
#define FLOP_UNIT "must be a number and a unit such as \"5 Gflop/s\" (got \"word\")"
#define NO_CHOICE "unknown value \"word\"; known: none, fifo, max_min"

/* The seven kinds of JSON value; a message where the type of field does not take it. */
static const char *const values[] = {"null",     "true", "false",    "1.5",
                                     "\"word\"", "[1]",  "{\"a\":1}"};

static const struct {
    const char *name;
    const cs_field *table;
    const char *messages[ROWS(values)]; /* NULL: taken */
} type_rows[] = {
    {"time",
     time_field,
     {TIME "null)", TIME "true)", TIME "false)", NULL, TIME_UNIT, TIME "an array)",
      TIME "an object)"}},
    {"bytes",
     bytes_field,
     {BYTES "null)", BYTES "true)", BYTES "false)", NULL, BYTE_UNIT, BYTES "an array)",
      BYTES "an object)"}},
    {"bandwidth",
     bandwidth_field,
     {BANDWIDTH "null)", BANDWIDTH "true)", BANDWIDTH "false)", NULL, RATE_UNIT,
      BANDWIDTH "an array)", BANDWIDTH "an object)"}},
    {"flop rate",
     flops_field,
     {FLOPS "null)", FLOPS "true)", FLOPS "false)", NULL, FLOP_UNIT, FLOPS "an array)",
      FLOPS "an object)"}},
    {"number",
     number_field,
     {NUMBER "null)", NUMBER "true)", NUMBER "false)", NULL, NUMBER "\"word\")", NUMBER "an array)",
      NUMBER "an object)"}},
    {"count",
     count_field,
     {COUNT "null)", COUNT "true)", COUNT "false)", COUNT "1.5)", COUNT "\"word\")",
      COUNT "an array)", COUNT "an object)"}},
    {"bool",
     bool_field,
     {BOOL "null)", NULL, NULL, BOOL "1.5)", BOOL "\"word\")", BOOL "an array)",
      BOOL "an object)"}},
    {"choice",
     choice_field,
     {CHOICE "null)", CHOICE "true)", CHOICE "false)", CHOICE "1.5)", NO_CHOICE, CHOICE "an array)",
      CHOICE "an object)"}},
    {"text",
     text_field,
     {WORD "null)", WORD "true)", WORD "false)", WORD "1.5)", NULL, WORD "an array)",
      WORD "an object)"}},
    {"json", json_field, {NULL, NULL, NULL, NULL, NULL, NULL, NULL}},
};

static void every_json_type_for_every_field_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(type_rows); i++) {
        for (size_t v = 0; v < ROWS(values); v++) {
            char json[64], row[64], message[256] = "";
            sample out = {0};
            cs_error error;
            const char *wrong = type_rows[i].messages[v];
            snprintf(json, sizeof(json), "{\"v\": %s}", values[v]);
            snprintf(row, sizeof(row), "%s from %s", type_rows[i].name, values[v]);
            if (wrong)
                snprintf(message, sizeof(message), "s.json: /k/v: %s", wrong);
            cs_status status = read_one(type_rows[i].table, json, &out, &error);
            expect_error(row, wrong ? CS_INVALID : CS_OK, message, status, &error);
        }
    }
}

static const struct {
    const char *json, *message;
} object_rows[] = {
    {"null", "s.json: /k: must be an object (got null)"},
    {"true", "s.json: /k: must be an object (got true)"},
    {"false", "s.json: /k: must be an object (got false)"},
    {"1.5", "s.json: /k: must be an object (got 1.5)"},
    {"\"word\"", "s.json: /k: must be an object (got \"word\")"},
    {"[{\"v\": 1}]", "s.json: /k: must be an object (got an array)"},
};

static void only_an_object_has_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(object_rows); i++) {
        sample out = {0};
        cs_error error;
        cs_status status = read_one(count_field, object_rows[i].json, &out, &error);
        expect_error(object_rows[i].json, CS_INVALID, object_rows[i].message, status, &error);
    }
}

static const cs_field above_field[] = {
    {"v", CS_FIELD_NUMBER, offsetof(sample, number), .above_min = true}, {0}};
static const cs_field unit_field[] = {{"v", CS_FIELD_NUMBER, offsetof(sample, number), .max = 1},
                                      {0}};
static const cs_field half_open_field[] = {
    {"v", CS_FIELD_NUMBER, offsetof(sample, number), .max = 1, .above_min = true}, {0}};
static const cs_field signed_field[] = {
    {"v", CS_FIELD_NUMBER, offsetof(sample, number), .min = -1, .max = 1}, {0}};
static const cs_field negative_field[] = {
    {"v", CS_FIELD_NUMBER, offsetof(sample, number), .min = -2}, {0}};
static const cs_field some_field[] = {
    {"v", CS_FIELD_COUNT, offsetof(sample, count), .min = 1, .max = 1 << 20}, {0}};
static const cs_field least_field[] = {{"v", CS_FIELD_COUNT, offsetof(sample, count), .min = 2},
                                       {0}};
static const cs_field short_field[] = {{"v", CS_FIELD_TIME, offsetof(sample, time), .max = 1e-3},
                                       {0}};
static const cs_field fast_field[] = {
    {"v", CS_FIELD_BANDWIDTH, offsetof(sample, bandwidth), .above_min = true}, {0}};

/* 2^63 ps are 9223372.04 s; its whole seconds are 2562 h (9223200 s) and 172/3600 h. */
static const struct {
    const char *name;
    const cs_field *table;
    const char *value;
    const char *message; /* NULL: taken */
} range_rows[] = {
    {"number", number_field, "0", NULL},
    {"number", number_field, "-0", NULL},
    {"number", number_field, "1e308", NULL},
    {"number", number_field, "-1", "must be >= 0 (got -1)"},
    {"number > 0", above_field, "1e-300", NULL},
    {"number > 0", above_field, "0", "must be > 0 (got 0)"},
    {"number > 0", above_field, "-0", "must be > 0 (got -0)"},
    {"number of [0, 1]", unit_field, "0", NULL},
    {"number of [0, 1]", unit_field, "1", NULL},
    {"number of [0, 1]", unit_field, "1.0000001", "must be from 0 to 1 (got 1.0000001)"},
    {"number of [0, 1]", unit_field, "-1e-9", "must be from 0 to 1 (got -1e-09)"},
    {"number of (0, 1]", half_open_field, "0", "must be > 0 and <= 1 (got 0)"},
    {"number of (0, 1]", half_open_field, "1", NULL},
    {"number of [-1, 1]", signed_field, "-1", NULL},
    {"number of [-1, 1]", signed_field, "-1.5", "must be from -1 to 1 (got -1.5)"},
    {"number of [-2, 0]", negative_field, "0", NULL},
    {"number of [-2, 0]", negative_field, "0.5", "must be from -2 to 0 (got 0.5)"},
    {"count", count_field, "4294967295", NULL},
    {"count", count_field, "4294967296", "must be <= 4294967295 (got 4294967296)"},
    {"count", count_field, "1e300", "must be <= 4294967295 (got 1e+300)"},
    {"count", count_field, "-1", "must be >= 0 (got -1)"},
    {"count", count_field, "2.0", NULL},
    {"count", count_field, "1e3", NULL},
    {"count", count_field, "\"2\"", COUNT "\"2\")"},
    {"count of [1, 2^20]", some_field, "1", NULL},
    {"count of [1, 2^20]", some_field, "1048576", NULL},
    {"count of [1, 2^20]", some_field, "0", "must be from 1 to 1048576 (got 0)"},
    {"count of [1, 2^20]", some_field, "1048577", "must be from 1 to 1048576 (got 1048577)"},
    {"count of [1, 2^20]", some_field, "1.5", "must be a whole number from 1 to 1048576 (got 1.5)"},
    {"count >= 2", least_field, "1", "must be >= 2 (got 1)"},
    {"count >= 2", least_field, "4000000000", NULL},
    {"time", time_field, "9000000", NULL},
    {"time", time_field, "9300000", "must be <= 2562.04778 h (got 9300000)"},
    {"time", time_field, "\"1e9 s\"", "must be <= 2562.04778 h (got \"1e9 s\")"},
    {"time", time_field, "-1e-9", "must be >= 0 (got -1e-09)"},
    {"time <= 1 ms", short_field, "\"1 ms\"", NULL},
    {"time <= 1 ms", short_field, "\"2 ms\"", "must be from 0 to 1 ms (got \"2 ms\")"},
    {"time <= 1 ms", short_field, "[]",
     "must be time from 0 to 1 ms: a number of seconds or a text such as \"5 us\" (got an array)"},
    {"bytes", bytes_field, "9e18", NULL},
    {"bytes", bytes_field, "1e19", "must be <= 9223.37204 PB (got 1e+19)"},
    {"bytes", bytes_field, "-1", "must be >= 0 (got -1)"},
    {"bandwidth > 0", fast_field, "\"0 GB/s\"", "must be > 0 (got \"0 GB/s\")"},
    {"bandwidth > 0", fast_field, "\"-1 GB/s\"", "must be > 0 (got \"-1 GB/s\")"},
    {"bandwidth", bandwidth_field, "\"5 gb/s\"",
     "unknown unit \"gb/s\"; did you mean \"Gbit/s\"? bytes are \"GB/s\""},
    {"choice", choice_field, "\"Fifo\"",
     "unknown value \"Fifo\"; did you mean \"fifo\"? known: none, fifo, max_min"},
};

static void ranges_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(range_rows); i++) {
        char json[64], row[128], message[512] = "";
        sample out = {0};
        cs_error error;
        const char *wrong = range_rows[i].message;
        snprintf(json, sizeof(json), "{\"v\": %s}", range_rows[i].value);
        snprintf(row, sizeof(row), "%s from %s", range_rows[i].name, range_rows[i].value);
        if (wrong)
            snprintf(message, sizeof(message), "s.json: /k/v: %s", wrong);
        cs_status status = read_one(range_rows[i].table, json, &out, &error);
        expect_error(row, wrong ? CS_INVALID : CS_OK, message, status, &error);
    }
}

static const cs_field full[] = {
    {"time", CS_FIELD_TIME, offsetof(sample, time), .fallback = "5 us"},
    {"bytes", CS_FIELD_BYTES, offsetof(sample, bytes), .fallback = "1.1 GiB"},
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(sample, bandwidth), .fallback = "100 Gbit/s"},
    {"flops", CS_FIELD_FLOP_RATE, offsetof(sample, flops), .fallback = "15 Tflop/s"},
    {"number", CS_FIELD_NUMBER, offsetof(sample, number), .fallback = "-0.5", .min = -1},
    {"count", CS_FIELD_COUNT, offsetof(sample, count), .fallback = "7"},
    {"choice", CS_FIELD_CHOICE, offsetof(sample, choice), .fallback = "max_min",
     .choices = sharings},
    {"flag", CS_FIELD_BOOL, offsetof(sample, flag), .fallback = "true"},
    {"text", CS_FIELD_TEXT, offsetof(sample, text), .fallback = "word"},
    {"json", CS_FIELD_JSON, offsetof(sample, json), .fallback = "[1, {\"a\": \"b\"}]"},
    {0},
};

static void expect_sample(const char *row, const sample *expected, const sample *got)
{
    expect_int(row, expected->time, got->time);
    expect_int(row, expected->bytes, got->bytes);
    expect_double(row, expected->bandwidth, got->bandwidth);
    expect_double(row, expected->flops, got->flops);
    expect_double(row, expected->number, got->number);
    expect_int(row, expected->count, got->count);
    expect_int(row, expected->choice, got->choice);
    expect_int(row, expected->flag, got->flag);
    expect_text(row, expected->text, got->text);
}

/* 1.1 * 2^30 = 1181116006.4; 100 Gbit/s = 12.5 GB/s */
static const sample defaults = {.time = 5000000,
                                .bytes = 1181116006,
                                .bandwidth = 12.5e9,
                                .flops = 15e12,
                                .number = -0.5,
                                .count = 7,
                                .choice = 2,
                                .flag = true,
                                .text = "word"};

#define DEFAULTS_JSON                                                                              \
    "{\"time\":5e-06,\"bytes\":1181116006,\"bandwidth\":12500000000,\"flops\":15000000000000,"     \
    "\"number\":-0.5,\"count\":7,\"choice\":\"max_min\",\"flag\":true,\"text\":\"word\","          \
    "\"json\":[1,{\"a\":\"b\"}]}"

static char *squeeze(char *text)
{
    char *end = text;
    for (const char *at = text; *at; at++) {
        if (*at != ' ' && *at != '\n')
            *end++ = *at;
    }
    *end = '\0';
    return text;
}

/* Structs written with resolved defaults read back as the same struct. */
static void defaults_are_resolved_and_written_back(void **state)
{
    (void)state;
    static const char *const documents[] = {NULL, "{}", DEFAULTS_JSON};
    for (size_t i = 0; i < ROWS(documents); i++) {
        const cs_json_place root = {.file = "s.json"};
        const cs_field *const tables[] = {full, NULL};
        sample out = {0};
        void *const outs[] = {&out};
        cs_arena arena;
        cs_error error;
        cs_arena_init(&arena);
        cs_error_init(&error);
        cJSON *object = documents[i] ? parse(documents[i]) : NULL, *written = cJSON_CreateObject();
        cs_status status = cs_field_read(object, &root, tables, outs, &arena, &error);
        expect_error("read", CS_OK, "", status, &error);
        expect_sample(documents[i] ? documents[i] : "nothing", &defaults, &out);
        assert_true(cs_field_write(full, &out, written));
        char *text = cs_json_print(written);
        assert_non_null(text);
        expect_text("written", DEFAULTS_JSON, squeeze(text));
        free(text);
        cJSON_Delete(written);
        cJSON_Delete(object);
        cs_arena_finish(&arena);
    }
}

static const cs_field optional[] = {
    {"text", CS_FIELD_TEXT, offsetof(sample, text), .fallback = ""},
    {"json", CS_FIELD_JSON, offsetof(sample, json), .fallback = ""},
    {0},
};

static void what_was_left_out_is_left_out_again(void **state)
{
    (void)state;
    cs_error error;
    sample out = {.text = "word", .json = (const cJSON *)&error};
    cs_status status = read_one(optional, "{}", &out, &error);
    expect_error("read", CS_OK, "", status, &error);
    assert_null(out.text);
    assert_null(out.json);
    cJSON *written = cJSON_CreateObject();
    assert_true(cs_field_write(optional, &out, written));
    assert_null(written->child);
    cJSON_Delete(written);
    assert_int_equal(read_one(optional, "{\"text\": \"\"}", &out, &error), CS_OK);
    assert_non_null(out.text); /* given, though empty */
}

static void several_mistakes_are_reported_in_one_go(void **state)
{
    (void)state;
    static const cs_field table[] = {
        {"micro_batches", CS_FIELD_COUNT, offsetof(sample, count), .min = 1},
        {"latency", CS_FIELD_TIME, offsetof(sample, time)},
        {"recompute", CS_FIELD_BOOL, offsetof(sample, flag), .fallback = "false"},
        {"partition", CS_FIELD_TEXT, offsetof(sample, text)},
        {0},
    };
    sample out = {0};
    cs_error error;
    cs_status status =
        read_one(table, "{\"micro_batchs\": 4, \"latency\": -1, \"recompute\": 1}", &out, &error);
    expect_error("all", CS_INVALID,
                 "s.json: /k: unknown key \"micro_batchs\"; did you mean \"micro_batches\"? known: "
                 "micro_batches, latency, recompute, partition\n"
                 "s.json: /k: missing key \"micro_batches\": must be a whole number >= 1\n"
                 "s.json: /k/latency: must be >= 0 (got -1)\n"
                 "s.json: /k/recompute: must be true or false (got 1)\n"
                 "s.json: /k: missing key \"partition\": must be text",
                 status, &error);
    expect_int("count", 5, error.count);
}

static void keys_are_exact(void **state)
{
    (void)state;
    sample out = {0};
    cs_error error;
    cs_status status = read_one(count_field, "{\"V\": 1, \"v\": 2}", &out, &error);
    expect_error("case", CS_INVALID, "s.json: /k: unknown key \"V\"; did you mean \"v\"? known: v",
                 status, &error);
    status = read_one(count_field, "{\"v\": 2, \"a\\n/~\": 1}", &out, &error);
    expect_error("odd", CS_INVALID, "s.json: /k: unknown key \"a\\n/~\"; known: v", status, &error);
    cs_error_message message;
    assert_true(cs_error_message_at(&error, 0, &message));
    expect_int("kind", CS_ERROR_UNKNOWN_KEY, message.kind);
    expect_text("subject", "/k/a\n~1~0", message.subject); /* escaped as RFC 6901 says */
}

static void several_tables_read_one_object(void **state)
{
    (void)state;
    static const cs_field first[] = {{"a", CS_FIELD_COUNT, offsetof(sample, count)}, {0}};
    static const cs_field second[] = {{"b", CS_FIELD_COUNT, offsetof(sample, count)}, {0}};
    const cs_json_place root = {.file = "s.json"};
    const cs_field *const tables[] = {first, second, NULL};
    sample one = {0}, two = {0};
    void *const outs[] = {&one, &two};
    cs_arena arena;
    cs_error error;
    cs_arena_init(&arena);
    cs_error_init(&error);
    cJSON *object = parse("{\"a\": 1, \"b\": 2, \"c\": 3}");
    cs_status status = cs_field_read(object, &root, tables, outs, &arena, &error);
    expect_error("both", CS_INVALID, "s.json: unknown key \"c\"; known: a, b", status, &error);
    expect_int("a", 1, one.count);
    expect_int("b", 2, two.count);
    cJSON_Delete(object);
    cs_arena_finish(&arena);
}

static void documents_stand_as_they_are(void **state)
{
    (void)state;
    const cs_json_place root = {.file = "s.json"};
    const cs_field *const tables[] = {json_field, NULL};
    sample out = {0};
    void *const outs[] = {&out};
    cs_arena arena;
    cs_arena_init(&arena);
    cJSON *object = parse("{\"v\": null}");
    assert_int_equal(cs_field_read(object, &root, tables, outs, &arena, NULL), CS_OK);
    assert_ptr_equal(out.json, object->child);
    cJSON_Delete(object);
    cs_arena_finish(&arena);
}

static const cs_field shaped_field[] = {
    {"v", CS_FIELD_JSON, offsetof(sample, json), .shape = "[first, ...]"}, {0}};

static const struct {
    const cs_field *field;
    const char *text;
} expected_rows[] = {
    {time_field, "time"},
    {short_field, "time from 0 to 1 ms"},
    {bytes_field, "bytes"},
    {bandwidth_field, "bandwidth"},
    {fast_field, "bandwidth > 0"},
    {flops_field, "flop rate"},
    {number_field, "a number >= 0"},
    {half_open_field, "a number > 0 and <= 1"},
    {least_field, "a whole number >= 2"},
    {bool_field, "true or false"},
    {choice_field, "one of none, fifo, max_min"},
    {text_field, "text"},
    {json_field, "any JSON value"},
    {shaped_field, "[first, ...]"},
};

static void fields_say_what_they_expect(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(expected_rows); i++) {
        char text[128];
        expect_text(expected_rows[i].text, expected_rows[i].text,
                    cs_field_expected(expected_rows[i].field, text, sizeof(text)));
    }
    char small[12];
    expect_text("cut", "one of none", cs_field_expected(choice_field, small, sizeof(small)));
}

static void fields_are_found_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(cs_field_find(full, "count"), &full[5]);
    assert_null(cs_field_find(full, "Count"));
    assert_null(cs_field_find(full, ""));
}

static void fields_know_their_quantities(void **state)
{
    (void)state;
    static const cs_field bytes = {"b", CS_FIELD_BYTES}, number = {"n", CS_FIELD_NUMBER};
    static const struct {
        cs_field field;
        cs_quantity quantity;
    } rows[] = {
        {{"time", CS_FIELD_TIME}, CS_QUANTITY_TIME},
        {{"bytes", CS_FIELD_BYTES}, CS_QUANTITY_BYTES},
        {{"rate", CS_FIELD_BANDWIDTH}, CS_QUANTITY_BANDWIDTH},
        {{"flop", CS_FIELD_FLOP_RATE}, CS_QUANTITY_FLOP_RATE},
        {{"count", CS_FIELD_COUNT}, CS_QUANTITY_NUMBER},
        {{"text", CS_FIELD_TEXT}, CS_QUANTITY_NUMBER},
        {{"one for all or a list", CS_FIELD_LIST, .of = &bytes, .each = true}, CS_QUANTITY_BYTES},
        {{"the same of numbers", CS_FIELD_LIST, .of = &number, .each = true}, CS_QUANTITY_NUMBER},
        {{"only a list", CS_FIELD_LIST, .of = &bytes}, CS_QUANTITY_NUMBER},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_int(rows[i].field.name, rows[i].quantity, cs_field_quantity(&rows[i].field));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_json_type_for_every_field_type),
        cmocka_unit_test(only_an_object_has_fields),
        cmocka_unit_test(ranges_are_checked),
        cmocka_unit_test(defaults_are_resolved_and_written_back),
        cmocka_unit_test(what_was_left_out_is_left_out_again),
        cmocka_unit_test(several_mistakes_are_reported_in_one_go),
        cmocka_unit_test(keys_are_exact),
        cmocka_unit_test(several_tables_read_one_object),
        cmocka_unit_test(documents_stand_as_they_are),
        cmocka_unit_test(fields_say_what_they_expect),
        cmocka_unit_test(fields_know_their_quantities),
        cmocka_unit_test(fields_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

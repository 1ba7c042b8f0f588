/* Fields that nest: objects, lists, values in place of lists, words in place of numbers, values
 * with a form of their own, names that a document knows. Each row reads a document and writes it
 * back. */
#include "sim/base/field.h"
#include "sim/base/time.h"
#include "tests/expect.h"

#include <math.h>
#include <stdlib.h>

typedef struct inner {
    uint32_t count;
    const char *text;
} inner;

/* {"kind": "a", "x": 1} or {"kind": "b", "y": "text"} */
typedef struct variant {
    char kind; /* 0: left out */
    uint32_t x;
    const char *y;
} variant;

typedef struct sample {
    inner *object, *optional;
    cs_list counts, each, objects, pairs;
    variant variant;
    double optional_number;
    int64_t limit, whole;
    cs_time time;
} sample;

static const cs_field inner_fields[] = {
    {"count", CS_FIELD_COUNT, offsetof(inner, count), .fallback = "7", .max = 9},
    {"text", CS_FIELD_TEXT, offsetof(inner, text), .fallback = ""},
    {0}};
static const cs_field x_fields[] = {
    {"kind", CS_FIELD_JSON, 0, .shape = "kind"}, {"x", CS_FIELD_COUNT, offsetof(variant, x)}, {0}};

static cs_status read_variant(const cJSON *value, const cs_json_place *place, void *member,
                              cs_arena *arena, cs_error *error)
{
    struct {
        const cJSON *kind;
    } ignored;
    variant *out = member;
    const cJSON *kind = cs_json_member(value, "kind");
    if (!cJSON_IsString(kind))
        return cs_json_invalid(place, error, "must have a kind");
    out->kind = kind->valuestring[0];
    if (out->kind == 'a')
        return cs_field_read(
            value, place,
            (const cs_field *const[]){(const cs_field[]){x_fields[0], {0}}, &x_fields[1], NULL},
            (void *const[]){&ignored, out}, arena, error);
    out->y = cs_arena_copy(arena, cJSON_GetStringValue(cs_json_member(value, "y")));
    return out->y ? CS_OK : cs_error_no_memory(error);
}

static cJSON *write_variant(const void *member)
{
    const variant *in = member;
    cJSON *object = cJSON_CreateObject();
    if (in->kind == 'a') {
        cJSON_AddStringToObject(object, "kind", "a");
        cJSON_AddNumberToObject(object, "x", in->x);
    } else {
        cJSON_AddStringToObject(object, "kind", "b");
        cJSON_AddStringToObject(object, "y", in->y);
    }
    return object;
}

static bool is_no_variant(const void *member)
{
    return !((const variant *)member)->kind;
}

static const cs_field_kind variant_kind = {read_variant, write_variant, is_no_variant};

static const cs_field count_field = {"count", CS_FIELD_COUNT, .min = 1};
static const cs_field bytes_field = {
    "bytes", CS_FIELD_BYTES, .words = (const cs_field_word[]){{"unlimited", INFINITY}, {0}}};
static const cs_field object_field = {"object", CS_FIELD_OBJECT, .of = inner_fields,
                                      .size = sizeof(inner)};
static const cs_field pair_field = {"pair", CS_FIELD_LIST, .of = &count_field, .least = 2,
                                    .most = 2};

static const cs_field fields[] = {
    {"object", CS_FIELD_OBJECT, offsetof(sample, object), .fallback = "{}", .of = inner_fields,
     .size = sizeof(inner)},
    {"optional", CS_FIELD_OBJECT, offsetof(sample, optional), .fallback = "", .of = inner_fields,
     .size = sizeof(inner)},
    {"counts", CS_FIELD_LIST, offsetof(sample, counts), .fallback = "", .of = &count_field,
     .least = 1, .most = 3},
    {"each", CS_FIELD_LIST, offsetof(sample, each), .fallback = "5", .of = &bytes_field,
     .each = true},
    {"objects", CS_FIELD_LIST, offsetof(sample, objects), .fallback = "", .of = &object_field},
    {"pairs", CS_FIELD_LIST, offsetof(sample, pairs), .fallback = "", .of = &pair_field},
    {"variant", CS_FIELD_VARIANT, offsetof(sample, variant), .fallback = "",
     .size = sizeof(variant), .kind = &variant_kind},
    {"optional_number", CS_FIELD_NUMBER, offsetof(sample, optional_number), .fallback = "",
     .min = 1, .words = (const cs_field_word[]){{"count", 0}, {0}}},
    {"limit", CS_FIELD_BYTES, offsetof(sample, limit), .fallback = "unlimited",
     .words = (const cs_field_word[]){{"unlimited", INFINITY}, {0}}},
    {"whole", CS_FIELD_INTEGER, offsetof(sample, whole), .fallback = "-3", .min = -1e15,
     .max = 9007199254740991.0},
    {"time", CS_FIELD_TIME, offsetof(sample, time), .fallback = "0 s"},
    {0}};

/* A document calls 3 s "lunch", and knows that "dinner" is missing. */
static cs_status find(const void *context, const char *text, cs_field_type type,
                      const cs_json_place *place, bool *known, double *number, cs_error *error)
{
    (void)context;
    if (strcmp(text, "dinner") == 0)
        return cs_json_invalid(place, error, "there is no dinner");
    *known = type == CS_FIELD_TIME && strcmp(text, "lunch") == 0;
    *number = 3;
    return CS_OK;
}

#define DEFAULTS "\"each\":5,\"limit\":\"unlimited\",\"whole\":-3,\"time\":0}"

/* Document after writing it back: with the defaults of missing members, and without members that
 * have none. Or the message. */
static const struct {
    const char *document, *written;
} rows[] = {
    {"{}", "{\"object\":{\"count\":7}," DEFAULTS},
    {"{'object': {'count': 3, 'text': 'a'}, 'optional': {}}",
     "{\"object\":{\"count\":3,\"text\":\"a\"},\"optional\":{\"count\":7}," DEFAULTS},
    {"{'counts': [1, 2, 3]}", "{\"object\":{\"count\":7},\"counts\":[1,2,3]," DEFAULTS},
    {"{'each': ['1 kB', 'unlimited', 7]}",
     "{\"object\":{\"count\":7},\"each\":[1000,\"unlimited\",7],\"limit\":\"unlimited\",\"whole\":-"
     "3,\"time\":0}"},
    {"{'each': 'unlimited', 'limit': '2 GB'}",
     "{\"object\":{\"count\":7},\"each\":\"unlimited\",\"limit\":2000000000,\"whole\":-3,\"time\":"
     "0}"},
    {"{'each': []}",
     "{\"object\":{\"count\":7},\"each\":[],\"limit\":\"unlimited\",\"whole\":-3,\"time\":0}"},
    {"{'objects': [{'count': 1}, {'text': 'b'}], 'pairs': [[1, 2], [3, 4]]}",
     "{\"object\":{\"count\":7},\"each\":5,\"objects\":[{\"count\":1},{\"count\":7,\"text\":\"b\"}]"
     ",\"pairs\":[[1,2],[3,4]],\"limit\":\"unlimited\",\"whole\":-3,\"time\":0}"},
    {"{'variant': {'kind': 'a', 'x': 4}}",
     "{\"object\":{\"count\":7},\"each\":5,\"variant\":{\"kind\":\"a\",\"x\":4},\"limit\":"
     "\"unlimited\",\"whole\":-3,\"time\":0}"},
    {"{'variant': {'kind': 'b', 'y': 'z'}, 'optional_number': 'count'}",
     "{\"object\":{\"count\":7},\"each\":5,\"variant\":{\"kind\":\"b\",\"y\":\"z\"},\"optional_"
     "number\":\"count\",\"limit\":\"unlimited\",\"whole\":-3,\"time\":0}"},
    /* 2^53 - 1 */
    {"{'optional_number': 1.5, 'whole': 9007199254740991, 'time': 'lunch'}",
     "{\"object\":{\"count\":7},\"each\":5,\"optional_number\":1.5,\"limit\":\"unlimited\","
     "\"whole\":9007199254740991,\"time\":3}"},
    /* wrong ones */
    {"{'object': 3}", "s.json: /object: must be an object (got 3)"},
    {"{'object': {'count': 10}, 'objects': [{}, {'coun': 1}, 5]}",
     "s.json: /object/count: must be from 0 to 9 (got 10)\n"
     "s.json: /objects/1: unknown key \"coun\"; did you mean \"count\"? known: count, text\n"
     "s.json: /objects/2: must be an object (got 5)"},
    {"{'counts': []}", "s.json: /counts: must have from 1 to 3 entries (got 0)"},
    {"{'counts': [1, 2, 3, 4]}", "s.json: /counts: must have from 1 to 3 entries (got 4)"},
    {"{'counts': 1}", "s.json: /counts: must be a list, each entry a whole number >= 1 (got 1)"},
    {"{'counts': [0, 1, 'x']}", "s.json: /counts/0: must be >= 1 (got 0)\n"
                                "s.json: /counts/2: must be a whole number >= 1 (got \"x\")"},
    {"{'pairs': [[1, 2], [3]]}", "s.json: /pairs/1: must have 2 entries (got 1)"},
    {"{'each': [1, true]}", "s.json: /each/1: must be bytes or \"unlimited\": a number or a text "
                            "such as \"16 GiB\" (got true)"},
    {"{'each': '5 s'}",
     "s.json: /each: unknown unit \"s\"; known: B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB"},
    {"{'optional_number': 'many'}",
     "s.json: /optional_number: must be a number >= 1 or \"count\" (got \"many\")"},
    {"{'optional_number': 0}", "s.json: /optional_number: must be >= 1 (got 0)"},
    {"{'whole': 9007199254740992}",
     "s.json: /whole: must be from -1000000000000000 to 9007199254740991 (got 9007199254740992)"},
    {"{'whole': 0.5}",
     "s.json: /whole: must be a whole number from -1000000000000000 to 9007199254740991 (got 0.5)"},
    {"{'variant': {}}", "s.json: /variant: must have a kind"},
    {"{'variant': {'kind': 'a'}}",
     "s.json: /variant: missing key \"x\": must be a whole number >= 0"},
    {"{'time': 'dinner', 'object': {'text': 'dinner'}}", "s.json: /time: there is no dinner"},
    {"{'limit': 'lunch'}",
     "s.json: /limit: must be a number and a unit such as \"5 GB\" (got \"lunch\")"},
};

static cJSON *parse(const char *document)
{
    char text[512];
    size_t n = 0;
    for (; document[n] && n + 1 < sizeof(text); n++)
        text[n] = document[n] == '\'' ? '"' : document[n];
    cJSON *root = NULL;
    if (cs_json_parse("row", text, n, &root, NULL) != CS_OK)
        fail_msg("%s", document);
    return root;
}

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

static void documents_are_written_back(void **state)
{
    (void)state;
    static const cs_field_names names = {find, NULL};
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_json_place place = {.file = "s.json", .names = &names};
        sample out;
        cs_arena arena;
        cs_error error;
        cs_arena_init(&arena);
        cs_error_init(&error);
        cJSON *root = parse(rows[i].document), *written = cJSON_CreateObject();
        memset(&out, 0xa5, sizeof(out));
        cs_status status = cs_field_read(root, &place, (const cs_field *const[]){fields, NULL},
                                         (void *const[]){&out}, &arena, &error);
        cJSON_Delete(root); /* nothing of it is needed any more */
        if (rows[i].written[0] == '{') {
            expect_error(rows[i].document, CS_OK, "", status, &error);
            assert_true(cs_field_write(fields, &out, written));
            char *text = cs_json_print(written);
            assert_non_null(text);
            expect_text(rows[i].document, rows[i].written, squeeze(text));
            free(text);
        } else {
            expect_error(rows[i].document, CS_INVALID, rows[i].written, status, &error);
        }
        cJSON_Delete(written);
        cs_arena_finish(&arena);
    }
}

static const struct {
    const char *name, *expected;
} shapes[] = {
    {"object", "an object"},
    {"counts", "a list, each entry a whole number >= 1"},
    {"each", "bytes or \"unlimited\", or a list of these"},
    {"optional_number", "a number >= 1 or \"count\""},
    {"limit", "bytes or \"unlimited\""},
};

static void fields_say_what_they_expect(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(shapes); i++) {
        char text[128];
        expect_text(shapes[i].name, shapes[i].expected,
                    cs_field_expected(cs_field_find(fields, shapes[i].name), text, sizeof(text)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_written_back),
        cmocka_unit_test(fields_say_what_they_expect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Strict JSON: accepted and refused input, with positions, in linear time; pointers, printing,
 * setting single values. */
#include "sim/base/json.h"
#include "tests/expect.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TEXT(literal) (literal), sizeof(literal) - 1

static const struct {
    const char *name, *text;
    size_t length;
} accepted[] = {
    {"null", TEXT("null")},
    {"true", TEXT("true")},
    {"number", TEXT("1")},
    {"string", TEXT("\"\"")},
    {"empty array", TEXT("[ ]")},
    {"empty object", TEXT("{ }")},
    {"white space around", TEXT(" \t\r\n[1]\r\n")},
    {"byte order mark", TEXT("\xef\xbb\xbf{}")},
    {"-0", TEXT("-0")},
    {"-0.0e-0", TEXT("[-0.0e-0]")},
    {"all parts of a number", TEXT("[-12.5E+3]")},
    {"largest double", TEXT("[1.7976931348623157e308]")},
    {"too small is zero", TEXT("[1e-999]")},
    {"63 characters", TEXT("[100000000000000000000000000000000000000000000000000000000000000]")},
    {"all escapes", TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\uABCD\\uabcd\"")},
    {"surrogate pair", TEXT("\"\\ud83d\\ude00\"")},
    {"UTF-8 of 2, 3 and 4 bytes", TEXT("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"")},
    {"DEL", TEXT("\"\x7f\"")},
    {"same key in two objects", TEXT("[{\"a\":1},{\"a\":1}]")},
    {"same key inside", TEXT("{\"a\":{\"a\":1}}")},
    {"same key inside and after", TEXT("{\"b\":{\"a\":1},\"a\":1}")},
    {"keys that differ by case", TEXT("{\"a\":1,\"A\":2}")},
    {"key that is a beginning", TEXT("{\"a\":1,\"ab\":2,\"\":3}")},
};

static void takes_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(accepted); i++) {
        cJSON *root = NULL;
        cs_error error;
        cs_error_init(&error);
        cs_status status =
            cs_json_parse("s.json", accepted[i].text, accepted[i].length, &root, &error);
        expect_error(accepted[i].name, CS_OK, "", status, &error);
        assert_non_null(root);
        cJSON_Delete(root);
    }
}

#define VALUE       "a value: object, array, string, number, true, false or null"
#define NO_COMMENTS "; JSON has no comments"
#define UTF_16      "the text is UTF-16; must be UTF-8"
#define ENDS        "unexpected end of file; expected "

static const struct {
    const char *name, *text;
    size_t length;
    const char *message;
} refused[] = {
    /* nothing, or not all of it */
    {"empty", TEXT(""), "1:1: " ENDS VALUE},
    {"white space", TEXT(" \n "), "2:2: " ENDS VALUE},
    {"byte order mark alone", TEXT("\xef\xbb\xbf"), "1:1: " ENDS VALUE},
    {"two byte order marks", TEXT("\xef\xbb\xbf\xef\xbb\xbf{}"),
     "1:1: unexpected \"\xef\xbb\xbf\"; expected " VALUE},
    {"half a byte order mark", TEXT("\xef\xbb{}"),
     "1:1: unexpected \"\\xef\\xbb\"; expected " VALUE},
    {"open array", TEXT("["), "1:2: " ENDS VALUE},
    {"open array, comma", TEXT("[1,"), "1:4: " ENDS VALUE},
    {"open array, value", TEXT("[1"), "1:3: " ENDS "\",\" or \"]\""},
    {"open object", TEXT("{"), "1:2: " ENDS "a key in double quotes"},
    {"open object, key", TEXT("{\"a\""), "1:5: " ENDS "\":\" after the key"},
    {"open object, colon", TEXT("{\"a\":"), "1:6: " ENDS VALUE},
    {"open object, value", TEXT("{\"a\":1"), "1:7: " ENDS "\",\" or \"}\""},
    {"open object, comma", TEXT("{\"a\":1,"), "1:8: " ENDS "a key in double quotes"},
    {"open string", TEXT("[\"abc"), "1:2: the string that begins here has no end"},
    {"open key", TEXT("{\"abc"), "1:2: the string that begins here has no end"},
    {"string ends after its backslash", TEXT("\"\\"), "1:3: " ENDS "the rest of a string"},
    {"cut word", TEXT("tru"), "1:1: unexpected \"tru\"; expected " VALUE},
    {"cut number", TEXT("[-"), "1:2: unexpected \"-\"; expected a number such as -1.5e3"},
    /* structure */
    {"text after the value", TEXT("{} x"),
     "1:4: unexpected \"x\"; expected nothing after the value"},
    {"two values", TEXT("1 2"), "1:3: unexpected \"2\"; expected nothing after the value"},
    {"word that goes on", TEXT("nullx"), "1:5: unexpected \"x\"; expected nothing after the value"},
    {"closed twice", TEXT("[]]"), "1:3: unexpected \"]\"; expected nothing after the value"},
    {"crossed", TEXT("[{]"), "1:3: unexpected \"]\"; expected a key in double quotes"},
    {"crossed after a value", TEXT("[1}"), "1:3: unexpected \"}\"; expected \",\" or \"]\""},
    {"no comma", TEXT("[1 2]"), "1:4: unexpected \"2\"; expected \",\" or \"]\""},
    {"no comma in an object", TEXT("{\"a\":1\n\"b\":2}"),
     "2:1: unexpected \"\\\"\"; expected \",\" or \"}\""},
    {"comma alone", TEXT("[,]"), "1:2: unexpected \",\"; expected " VALUE},
    {"comma alone in an object", TEXT("{,}"),
     "1:2: unexpected \",\"; expected a key in double quotes"},
    {"trailing comma", TEXT("[1,]"), "1:4: trailing comma before \"]\""},
    {"trailing comma in an object", TEXT("{\"a\":1,\n}"), "2:1: trailing comma before \"}\""},
    {"two commas", TEXT("[1,,2]"), "1:4: unexpected \",\"; expected " VALUE},
    {"no colon", TEXT("{\"a\" 1}"), "1:6: unexpected \"1\"; expected \":\" after the key"},
    {"no value", TEXT("{\"a\":}"), "1:6: unexpected \"}\"; expected " VALUE},
    {"number as a key", TEXT("{1:2}"), "1:2: unexpected \"1\"; expected a key in double quotes"},
    {"word as a key", TEXT("{a:2}"), "1:2: unexpected \"a\"; expected a key in double quotes"},
    {"single quotes", TEXT("['a']"),
     "1:2: unexpected \"'a'\"; expected " VALUE "; strings need double quotes"},
    {"comment", TEXT("// x\n{}"), "1:1: unexpected \"//\"; expected " VALUE NO_COMMENTS},
    {"comment in an object", TEXT("{/* x */}"),
     "1:2: unexpected \"/*\"; expected a key in double quotes" NO_COMMENTS},
    {"comment of a shell", TEXT("[1 # x\n]"),
     "1:4: unexpected \"#\"; expected \",\" or \"]\"" NO_COMMENTS},
    {"UTF-16, little end first", TEXT("\xff\xfe{\0}\0"), "1:1: " UTF_16},
    {"UTF-16, big end first", TEXT("\xfe\xff\0{\0}"), "1:1: " UTF_16},
    {"UTF-16 without a mark, little end first", TEXT("{\0}\0"), "1:1: " UTF_16},
    {"UTF-16 without a mark, big end first", TEXT("\0{\0}"), "1:1: " UTF_16},
    {"NUL after the value", TEXT("1\0"),
     "1:2: unexpected NUL byte; expected nothing after the value"},
    {"NUL as a value", TEXT("[\0]"), "1:2: unexpected NUL byte; expected " VALUE},
    {"form feed", TEXT("\f1"), "1:1: unexpected \"\\u000c\"; expected " VALUE},
    {"no-break space", TEXT("\xc2\xa0[]"), "1:1: unexpected \"\xc2\xa0\"; expected " VALUE},
    /* words and numbers */
    {"True", TEXT("True"), "1:1: unexpected \"True\"; expected " VALUE "; did you mean true?"},
    {"None", TEXT("[None]"), "1:2: unexpected \"None\"; expected " VALUE "; did you mean null?"},
    {"NaN", TEXT("[NaN]"), "1:2: unexpected \"NaN\"; expected " VALUE},
    {"Infinity", TEXT("[Infinity]"), "1:2: unexpected \"Infinity\"; expected " VALUE},
    {"-Infinity", TEXT("[-Infinity]"),
     "1:2: unexpected \"-Infinity\"; expected a number such as -1.5e3"},
    {"+1", TEXT("[+1]"), "1:2: unexpected \"+1\"; expected " VALUE},
    {"01", TEXT("[01]"), "1:2: unexpected \"01\"; expected a number such as -1.5e3"},
    {"-01", TEXT("[-01]"), "1:2: unexpected \"-01\"; expected a number such as -1.5e3"},
    {".5", TEXT("[.5]"), "1:2: unexpected \".5\"; expected " VALUE},
    {"1.", TEXT("[1.]"), "1:2: unexpected \"1.\"; expected a number such as -1.5e3"},
    {"1.e5", TEXT("[1.e5]"), "1:2: unexpected \"1.e5\"; expected a number such as -1.5e3"},
    {"1e", TEXT("[1e]"), "1:2: unexpected \"1e\"; expected a number such as -1.5e3"},
    {"1.2.3", TEXT("[1.2.3]"), "1:2: unexpected \"1.2.3\"; expected a number such as -1.5e3"},
    {"0x10", TEXT("[0x10]"), "1:3: unexpected \"x10\"; expected \",\" or \"]\""},
    {"1e999", TEXT("[1e999]"), "1:2: number too large; must be at most 1.7976931348623157e308"},
    {"-1E999", TEXT("[-1E999]"), "1:2: number too large; must be at most 1.7976931348623157e308"},
    {"64 characters", TEXT("1000000000000000000000000000000000000000000000000000000000000000"),
     "1:1: number of 64 characters; must be at most 63"},
    /* strings */
    {"line break in a string", TEXT("\"a\nb\""),
     "1:3: line break or control character in a string; it must be escaped"},
    {"NUL in a string", TEXT("\"a\0b\""),
     "1:3: line break or control character in a string; it must be escaped"},
    {"escaped NUL", TEXT("\"a\\u0000\""),
     "1:3: a string must not hold the character NUL (\\u0000)"},
    {"unknown escape", TEXT("\"\\x41\""),
     "1:2: unknown escape in a string; known: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"},
    {"escaped NUL byte", TEXT("\"\\\0\""),
     "1:2: unknown escape in a string; known: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"},
    {"three digits", TEXT("\"\\u041\""), "1:2: \\u must be followed by four hexadecimal digits"},
    {"digit that is none", TEXT("\"\\u00g1\""),
     "1:2: \\u must be followed by four hexadecimal digits"},
    {"\\u at the end", TEXT("\"\\u00"), "1:2: \\u must be followed by four hexadecimal digits"},
    {"lone high surrogate", TEXT("\"\\ud83d\""),
     "1:2: half of a surrogate pair; the other half must follow"},
    {"high surrogate, then a letter", TEXT("\"\\ud83d\\u0041\""),
     "1:2: half of a surrogate pair; the other half must follow"},
    {"two high surrogates", TEXT("\"\\ud83d\\ud83d\""),
     "1:2: half of a surrogate pair; the other half must follow"},
    {"lone low surrogate", TEXT("\"x\\ude00\""),
     "1:3: half of a surrogate pair; the other half must follow"},
    {"overlong slash", TEXT("\"\xc0\xaf\""), "1:2: byte 0xc0 is not UTF-8"},
    {"overlong NUL", TEXT("\"\xc0\x80\""), "1:2: byte 0xc0 is not UTF-8"},
    {"surrogate as UTF-8", TEXT("\"\xed\xa0\x80\""), "1:2: byte 0xed is not UTF-8"},
    {"beyond Unicode", TEXT("\"\xf4\x90\x80\x80\""), "1:2: byte 0xf4 is not UTF-8"},
    {"Latin-1", TEXT("\"caf\xe9\""), "1:5: byte 0xe9 is not UTF-8"},
    {"cut character", TEXT("\"\xe2\x82"), "1:2: byte 0xe2 is not UTF-8"},
    {"column counts characters", TEXT("[\"\xc3\xa9\xf0\x9f\x98\x80\" x]"),
     "1:7: unexpected \"x\"; expected \",\" or \"]\""},
    /* keys */
    {"duplicate key", TEXT("{\"a\":1,\n \"b\":2,\n \"a\":3}"),
     "3:2: duplicate key \"a\" (first at 1:2)"},
    {"duplicate key, escaped", TEXT("{\"a\":1,\"\\u0061\":2}"),
     "1:8: duplicate key \"a\" (first at 1:2)"},
    {"duplicate key, pair escaped", TEXT("{\"\xf0\x9f\x98\x80\":1,\"\\ud83d\\ude00\":2}"),
     "1:8: duplicate key \"\xf0\x9f\x98\x80\" (first at 1:2)"},
    {"duplicate key, 2 and 3 bytes escaped",
     TEXT("{\"\xc3\xa9\xe2\x82\xac\":1,\"\\u00e9\\u20AC\":2}"),
     "1:9: duplicate key \"\xc3\xa9\xe2\x82\xac\" (first at 1:2)"},
    {"duplicate empty key", TEXT("{\"\":1,\"\":2}"), "1:7: duplicate key \"\" (first at 1:2)"},
    {"duplicate key inside", TEXT("{\"a\":{\"b\":1,\"b\":2}}"),
     "1:13: duplicate key \"b\" (first at 1:7)"},
    {"duplicate around an object", TEXT("{\"a\":{\"c\":1},\"b\":2,\"a\":3}"),
     "1:20: duplicate key \"a\" (first at 1:2)"},
    {"the first of two duplicates", TEXT("{\"z\":1,\"a\":1,\"z\":2,\"a\":2}"),
     "1:14: duplicate key \"z\" (first at 1:2)"},
    {"three of a key", TEXT("{\"a\":1,\"a\":2,\"a\":3}"),
     "1:8: duplicate key \"a\" (first at 1:2)"},
};

static void refuses_the_rest_and_says_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(refused); i++) {
        cJSON *root = NULL;
        char message[512];
        cs_error error;
        cs_error_init(&error);
        /* a copy of just that size: reading past its end is seen by a sanitizer */
        char *copy = malloc(refused[i].length + 1);
        assert_non_null(copy);
        char *text = memcpy(copy + 1, refused[i].text, refused[i].length);
        cs_status status = cs_json_parse("s.json", text, refused[i].length, &root, &error);
        snprintf(message, sizeof(message), "s.json:%s", refused[i].message);
        expect_error(refused[i].name, CS_INVALID, message, status, &error);
        assert_null(root);
        free(copy);
    }
}

/* As many containers within each other. */
static cs_status parse_nested(int depth, char bracket, char closing, cs_error *error)
{
    char text[8 * (CS_JSON_DEPTH + 2)] = "";
    cJSON *root = NULL;
    size_t end = 0;
    for (int i = 0; i < depth; i++)
        end += (size_t)sprintf(text + end, bracket == '{' && i + 1 < depth ? "{\"a\":" : "%c",
                               bracket);
    memset(text + end, closing, (size_t)depth);
    cs_error_init(error);
    cs_status status = cs_json_parse("s.json", text, strlen(text), &root, error);
    cJSON_Delete(root);
    return status;
}

static void nests_up_to_the_limit(void **state)
{
    (void)state;
    cs_error error;
    expect_int("arrays", CS_OK, parse_nested(CS_JSON_DEPTH, '[', ']', &error));
    expect_int("objects", CS_OK, parse_nested(CS_JSON_DEPTH, '{', '}', &error));
    cs_status status = parse_nested(CS_JSON_DEPTH + 1, '[', ']', &error);
    expect_error("65 arrays", CS_INVALID, "s.json:1:65: nested deeper than 64 levels", status,
                 &error);
    status = parse_nested(CS_JSON_DEPTH + 1, '{', '}', &error);
    expect_error("65 objects", CS_INVALID, "s.json:1:321: nested deeper than 64 levels", status,
                 &error); /* 64 times {"a": */
}

enum { LARGE = 10 << 20 };

typedef size_t (*writer)(char *text);

static size_t write_brackets(char *text)
{
    memset(text, '[', LARGE);
    return LARGE;
}

static size_t write_braces(char *text)
{
    for (size_t i = 0; i + 5 <= LARGE; i += 5)
        memcpy(text + i, "{\"a\":", 5);
    return LARGE / 5 * 5;
}

static size_t write_string(char *text)
{
    memset(text, 'x', LARGE);
    text[0] = text[LARGE - 1] = '"';
    return LARGE;
}

static size_t write_digits(char *text)
{
    memset(text, '1', LARGE);
    return LARGE;
}

static size_t write_spaces(char *text)
{
    memset(text, '\n', LARGE);
    return LARGE;
}

static size_t write_quotes(char *text)
{
    memset(text, '"', LARGE);
    return LARGE;
}

static size_t write_elements(char *text)
{
    text[0] = '[';
    for (size_t i = 1; i + 2 <= LARGE; i += 2)
        memcpy(text + i, "1,", 2);
    text[LARGE - 2] = ']'; /* in place of the last comma */
    return LARGE - 1;
}

static size_t write_keys(char *text, int step)
{
    size_t end = 0;
    enum { KEYS = 1000000 };
    for (int i = 0; i < KEYS; i++)
        end += (size_t)sprintf(text + end, "%c\"%06d\":%d", i ? ',' : '{', i * step % KEYS, 1);
    text[end++] = '}';
    return end;
}

static size_t write_sorted_keys(char *text)
{
    return write_keys(text, 1);
}

/* 1999 and 10^6 have no common factor: each key once, all over the place. */
static size_t write_mixed_keys(char *text)
{
    return write_keys(text, 1999);
}

/* 2 * 500000 = 10^6: the second half repeats the first. */
static size_t write_duplicate_keys(char *text)
{
    return write_keys(text, 2);
}

static const struct {
    const char *name;
    writer write;
    cs_status status;
} large[] = {
    {"brackets", write_brackets, CS_INVALID},  {"braces", write_braces, CS_INVALID},
    {"one string", write_string, CS_OK},       {"one number", write_digits, CS_INVALID},
    {"white space", write_spaces, CS_INVALID}, {"quotes", write_quotes, CS_INVALID},
    {"elements", write_elements, CS_OK},       {"sorted keys", write_sorted_keys, CS_OK},
    {"mixed keys", write_mixed_keys, CS_OK},   {"duplicate keys", write_duplicate_keys, CS_INVALID},
};

/* 10 MB take some tenths of a second; quadratic work would take hours. The limit leaves room for
 * slow machines and sanitizers. */
static void large_texts_take_linear_time(void **state)
{
    (void)state;
    char *text = malloc(LARGE + (LARGE / 2));
    assert_non_null(text);
    for (size_t i = 0; i < ROWS(large); i++) {
        cJSON *root = NULL;
        cs_error error;
        cs_error_init(&error);
        size_t length = large[i].write(text);
        clock_t start = clock();
        cs_status status = cs_json_parse("s.json", text, length, &root, &error);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        cJSON_Delete(root);
        expect_int(large[i].name, large[i].status, status);
        if (seconds > 30)
            fail_msg("%s: took %.1f s", large[i].name, seconds);
    }
    free(text);
}

/* Every beginning of a text is refused, none makes the checker or cJSON read past its end. */
static void cut_texts_are_refused(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": [1.5e3, true, null, \"\\u00e9\\ud83d\\ude00\xc3\xa9\\n\"]}";
    for (size_t length = 0; length < sizeof(text) - 1; length++) {
        cJSON *root = NULL;
        char *copy = malloc(length + 1);
        assert_non_null(copy);
        memcpy(copy + 1, text, length);
        expect_int(text, CS_INVALID, cs_json_parse("s.json", copy + 1, length, &root, NULL));
        assert_null(root);
        free(copy);
    }
}

static cJSON *parse(const char *text)
{
    cJSON *root = NULL;
    cs_error error;
    cs_error_init(&error);
    if (cs_json_parse("s.json", text, strlen(text), &root, &error) != CS_OK)
        fail_msg("%s", error.text);
    return root;
}

static void files_are_loaded(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": 1,}";
    char path[] = "/tmp/test-json.XXXXXX", message[128];
    cJSON *root = NULL;
    cs_error error;
    cs_error_init(&error);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
    cs_status status = cs_json_load(path, &root, &error);
    snprintf(message, sizeof(message), "%s:1:9: trailing comma before \"}\"", path);
    expect_error("broken", CS_INVALID, message, status, &error);
    assert_int_equal(pwrite(fd, " ", 1, 7), 1); /* in place of the comma */
    assert_int_equal(cs_json_load(path, &root, NULL), CS_OK);
    expect_double("a", 1, cs_json_member(root, "a")->valuedouble);
    cJSON_Delete(root);
    close(fd);
    unlink(path);
    expect_int("missing", CS_INVALID, cs_json_load(path, &root, NULL));
}

static void members_are_found_by_exact_key(void **state)
{
    (void)state;
    cJSON *root = parse("{\"Kind\": 1, \"kind\": 2}");
    expect_double("kind", 2, cs_json_member(root, "kind")->valuedouble);
    assert_null(cs_json_member(root, "KIND"));
    assert_null(cs_json_member(root, "kin"));
    assert_null(cs_json_member(cs_json_member(root, "kind"), "kind"));
    assert_null(cs_json_member(NULL, "kind"));
    cJSON_Delete(root);
    root = parse("[1]");
    assert_null(cs_json_member(root, "0"));
    cJSON_Delete(root);
}

static const struct {
    const char *json, *kind, *described;
} kinds[] = {
    {"null", "null", "null"},
    {"true", "a boolean", "true"},
    {"false", "a boolean", "false"},
    {"-1.5", "a number", "-1.5"},
    {"\"a\\\"b\"", "a string", "\"a\\\"b\""},
    {"[1]", "an array", "an array"},
    {"{}", "an object", "an object"},
};

static void values_are_described(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(kinds); i++) {
        char text[CS_JSON_DESCRIBED_BYTES];
        cJSON *root = parse(kinds[i].json);
        expect_text(kinds[i].json, kinds[i].kind, cs_json_kind(root));
        expect_text(kinds[i].json, kinds[i].described, cs_json_describe(root, text, sizeof(text)));
        cJSON_Delete(root);
    }
}

static void places_are_pointers(void **state)
{
    (void)state;
    char text[64];
    const cs_json_place root = {.file = "s.json"};
    const cs_json_place links = {.up = &root, .key = "links"};
    const cs_json_place third = {.up = &links, .index = 3};
    const cs_json_place odd = {.up = &third, .key = "a/b~c"};
    expect_text("root", "", cs_json_pointer(&root, text, sizeof(text)));
    expect_text("key", "/links", cs_json_pointer(&links, text, sizeof(text)));
    expect_text("index", "/links/3", cs_json_pointer(&third, text, sizeof(text)));
    expect_text("escaped", "/links/3/a~1b~0c", cs_json_pointer(&odd, text, sizeof(text)));
    expect_text("cut", "/links/3/a~", cs_json_pointer(&odd, text, 12));
    expect_text("one byte", "", cs_json_pointer(&odd, text, 1));
}

static void places_stand_in_messages(void **state)
{
    (void)state;
    const cs_json_place root = {.file = "s.json"};
    const cs_json_place odd = {.up = &root, .key = "a\nb"};
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_json_invalid(&root, &error, "must be %s", "an object");
    expect_error("root", CS_INVALID, "s.json: must be an object", status, &error);
    cs_error_init(&error);
    status = cs_json_invalid(&odd, &error, "must be > 0 (got %d)", -1);
    expect_error("key", CS_INVALID, "s.json: /a\\nb: must be > 0 (got -1)", status, &error);
    expect_int("no record", CS_INVALID, cs_json_invalid(&odd, NULL, "wrong"));
}

static const struct {
    const char *name, *json, *printed;
} prints[] = {
    {"scalars", "[null,true,false,\"x\",1]", "[null, true, false, \"x\", 1]\n"},
    {"empty", "[[],{}]", "[\n  [],\n  {}\n]\n"},
    {"object", "{\"b\":1,\"a\":{\"c\":[1,2]}}",
     "{\n  \"b\": 1,\n  \"a\": {\n    \"c\": [1, 2]\n  }\n}\n"},
    {"strings", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f\xc3\xa9\\ud83d\\ude00\"",
     "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f\xc3\xa9\xf0\x9f\x98\x80\"\n"},
    {"control characters of terminals", "\"\xc2\x9b\xe2\x80\xae\xc2\xa0\"",
     "\"\\u009b\\u202e\xc2\xa0\"\n"},
    {"key", "{\"\\\"\":1}", "{\n  \"\\\"\": 1\n}\n"},
    {"whole numbers",
     "[0,2147483648,4294967296,1e15,999999999999999,9007199254740991,-9007199254740992]",
     "[0, 2147483648, 4294967296, 1000000000000000, 999999999999999, 9007199254740991, "
     "-9007199254740992]\n"},
    {"doubles", "[0.1,0.30000000000000004,1e300,5e-324,1.0]",
     "[0.1, 0.30000000000000004, 1e+300, 4.94065645841247e-324, 1]\n"},
};

static void prints_what_reads_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(prints); i++) {
        cJSON *root = parse(prints[i].json);
        char *text = cs_json_print(root);
        assert_non_null(text);
        expect_text(prints[i].name, prints[i].printed, text);
        cJSON *again = parse(text);
        if (!cJSON_Compare(root, again, true))
            fail_msg("%s: reads back as another document", prints[i].name);
        free(text);
        cJSON_Delete(again);
        cJSON_Delete(root);
    }
}

static void prints_null_for_what_is_no_number(void **state)
{
    (void)state;
    static const double values[] = {NAN, INFINITY, -INFINITY};
    cJSON *root = cJSON_CreateDoubleArray(values, 3);
    char *text = cs_json_print(root);
    assert_non_null(text);
    expect_text("not finite", "[null, null, null]\n", text);
    free(text);
    cJSON_Delete(root);
}

/* U+FFFD, which replaces invalid characters. */
static void prints_bytes_that_are_no_text(void **state)
{
    (void)state;
    cJSON *value = cJSON_CreateString("a\xff"
                                      "b\xc3");
    char *text = cs_json_print(value);
    assert_non_null(text);
    expect_text("not UTF-8",
                "\"a\xef\xbf\xbd"
                "b\xef\xbf\xbd\"\n",
                text);
    free(text);
    cJSON_Delete(value);
}

/* Runs where a locale with a decimal comma is installed. */
static void does_not_depend_on_the_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        skip();
    cJSON *root = parse("[1.5, 1.5e3]");
    expect_double("read", 1.5, cJSON_GetArrayItem(root, 0)->valuedouble);
    char *text = cs_json_print(root);
    assert_non_null(text);
    expect_text("printed", "[1.5, 1500]\n", text);
    free(text);
    cJSON_Delete(root);
    setlocale(LC_ALL, "C");
}

#define DOCUMENT "{\"a\": {\"b\": [1, {\"c\": 2}]}, \"x/y\": 1, \"m~n\": 2, \"\": 3}"

static const struct {
    const char *name, *pointer, *text;
    const char *result; /* without white space */
} sets[] = {
    {"number", "/a", "1", "{\"a\":1,\"x/y\":1,\"m~n\":2,\"\":3}"},
    {"object", "/a", "{\"k\": [true]}", "{\"a\":{\"k\":[true]},\"x/y\":1,\"m~n\":2,\"\":3}"},
    {"word", "/a", "gpipe", "{\"a\":\"gpipe\",\"x/y\":1,\"m~n\":2,\"\":3}"},
    {"quoted word", "/a", "\"gpipe\"", "{\"a\":\"gpipe\",\"x/y\":1,\"m~n\":2,\"\":3}"},
    {"quantity", "/a", "12 GB/s", "{\"a\":\"12 GB/s\",\"x/y\":1,\"m~n\":2,\"\":3}"},
    {"no text", "/a", "", "{\"a\":\"\",\"x/y\":1,\"m~n\":2,\"\":3}"},
    {"broken JSON", "/a", "[1,", "{\"a\":\"[1,\",\"x/y\":1,\"m~n\":2,\"\":3}"},
    {"element", "/a/b/0", "7", "{\"a\":{\"b\":[7,{\"c\":2}]},\"x/y\":1,\"m~n\":2,\"\":3}"},
    {"in an element", "/a/b/1/c", "7", "{\"a\":{\"b\":[1,{\"c\":7}]},\"x/y\":1,\"m~n\":2,\"\":3}"},
    {"new key", "/a/d", "7", "{\"a\":{\"b\":[1,{\"c\":2}],\"d\":7},\"x/y\":1,\"m~n\":2,\"\":3}"},
    {"key with other case", "/A", "7",
     "{\"a\":{\"b\":[1,{\"c\":2}]},\"x/y\":1,\"m~n\":2,\"\":3,\"A\":7}"},
    {"slash in the key", "/x~1y", "7", "{\"a\":{\"b\":[1,{\"c\":2}]},\"x/y\":7,\"m~n\":2,\"\":3}"},
    {"tilde in the key", "/m~0n", "7", "{\"a\":{\"b\":[1,{\"c\":2}]},\"x/y\":1,\"m~n\":7,\"\":3}"},
    {"new parents", "/e/f/g", "7",
     "{\"a\":{\"b\":[1,{\"c\":2}]},\"x/y\":1,\"m~n\":2,\"\":3,\"e\":{\"f\":{\"g\":7}}}"},
    {"new parent in an element", "/a/b/1/d/e", "7",
     "{\"a\":{\"b\":[1,{\"c\":2,\"d\":{\"e\":7}}]},\"x/y\":1,\"m~n\":2,\"\":3}"},
    {"empty key", "/", "7", "{\"a\":{\"b\":[1,{\"c\":2}]},\"x/y\":1,\"m~n\":2,\"\":7}"},
};

static void sets_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(sets); i++) {
        cs_error error;
        cs_error_init(&error);
        cJSON *root = parse(DOCUMENT);
        cs_status status = cs_json_set(root, sets[i].pointer, sets[i].text, "--set", &error);
        expect_error(sets[i].name, CS_OK, "", status, &error);
        char *text = cJSON_PrintUnformatted(root);
        expect_text(sets[i].name, sets[i].result, text);
        cJSON_free(text);
        cJSON_Delete(root);
    }
}

static const struct {
    const char *pointer, *text, *message;
} wrong_sets[] = {
    {"", "1", "--set: the whole document cannot be replaced; name a key as in /schedule/kind"},
    {"a", "1", "--set: a: must begin with \"/\" as in /schedule/kind"},
    {"/x~1y/z", "1", "--set: /x~1y/z: /x~1y is a number, which has no keys"},
    {"/a/b/0/z", "1", "--set: /a/b/0/z: /a/b/0 is a number, which has no keys"},
    {"/new/er/~", "1", "--set: /new/er/~: \"~\" must be written ~0, and \"/\" within a key ~1"},
    {"/a/b/2", "1", "--set: /a/b/2: no element \"2\" in an array of 2 (the first is 0)"},
    {"/a/b/-", "1", "--set: /a/b/-: no element \"-\" in an array of 2 (the first is 0)"},
    {"/a/b/01", "1", "--set: /a/b/01: no element \"01\" in an array of 2 (the first is 0)"},
    {"/a/b/", "1", "--set: /a/b/: no element \"\" in an array of 2 (the first is 0)"},
    {"/a/b/18446744073709551616", "1",
     "--set: /a/b/18446744073709551616: no element \"18446744073709551616\" in an array of 2 (the "
     "first is 0)"},
    {"/a~", "1", "--set: /a~: \"~\" must be written ~0, and \"/\" within a key ~1"},
    {"/a~2", "1", "--set: /a~2: \"~\" must be written ~0, and \"/\" within a key ~1"},
    {"/\xff", "1", "--set: /\\xff: must be UTF-8"},
    {"/a", "\xff", "--set: /a: the value must be UTF-8"},
};

static void refuses_to_set(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(wrong_sets); i++) {
        cs_error error;
        cs_error_init(&error);
        cJSON *root = parse(DOCUMENT), *before = parse(DOCUMENT);
        cs_status status =
            cs_json_set(root, wrong_sets[i].pointer, wrong_sets[i].text, "--set", &error);
        expect_error(wrong_sets[i].pointer, CS_INVALID, wrong_sets[i].message, status, &error);
        assert_true(cJSON_Compare(root, before, true));
        cJSON_Delete(before);
        cJSON_Delete(root);
    }
}

static void a_document_cannot_be_set_too_deep(void **state)
{
    (void)state;
    char nested[2 * CS_JSON_DEPTH + 1] = "";
    memset(nested, '[', CS_JSON_DEPTH);
    memset(nested + CS_JSON_DEPTH, ']', CS_JSON_DEPTH);
    nested[2 * CS_JSON_DEPTH] = '\0';
    cs_error error;
    cs_error_init(&error);
    cJSON *root = parse("{}");
    cs_status status = cs_json_set(root, "/a", nested, "--set", &error);
    expect_error("64 in 1", CS_INVALID, "--set: /a: nested deeper than 64 levels", status, &error);
    nested[2 * CS_JSON_DEPTH - 1] = '\0';
    assert_int_equal(cs_json_set(root, "/a", nested + 1, "--set", NULL), CS_OK);
    cJSON_Delete(root);
    char pointer[2 * CS_JSON_DEPTH + 1] =
        ""; /* the root, and an object for all keys but the last */
    for (size_t i = 0; i < CS_JSON_DEPTH; i++)
        strcat(pointer, "/a");
    root = parse("{}");
    assert_int_equal(cs_json_set(root, pointer, "[]", "--set", NULL), CS_INVALID);
    assert_null(root->child);
    assert_int_equal(cs_json_set(root, pointer, "1", "--set", NULL), CS_OK);
    cJSON_Delete(root);
}

/* NaN and missing texts become null; an earlier failure persists. */
static void adds_for_writing(void **state)
{
    (void)state;
    cJSON *list = cJSON_CreateArray();
    cJSON *item = cs_json_add_item(list);
    assert_true(cs_json_add_number(item, "n", 1.5) && cs_json_add_number(item, "nan", NAN) &&
                cs_json_add_number(item, "inf", INFINITY) && cs_json_add_text(item, "t", "a") &&
                cs_json_add_text(item, "none", NULL));
    char *text = cJSON_PrintUnformatted(list);
    expect_text("list", "[{\"n\":1.5,\"nan\":null,\"inf\":null,\"t\":\"a\",\"none\":null}]", text);
    free(text);
    cJSON_Delete(list);
    assert_null(cs_json_add_item(NULL));
    assert_false(cs_json_add_number(NULL, "n", 1));
    assert_false(cs_json_add_number(NULL, "n", NAN));
    assert_false(cs_json_add_text(NULL, "t", "a"));
}

static void a_value_is_replaced(void **state)
{
    (void)state;
    cJSON *root = cJSON_Parse("{\"a\": 1, \"b\": [2], \"c\": 3}");
    assert_non_null(root);
    cs_json_replace(root, cJSON_GetObjectItemCaseSensitive(root, "b"), cJSON_CreateString("x"));
    char *text = cJSON_PrintUnformatted(root);
    expect_text("replaced", "{\"a\":1,\"b\":\"x\",\"c\":3}", text);
    free(text);
    cJSON_Delete(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_json),
        cmocka_unit_test(refuses_the_rest_and_says_where),
        cmocka_unit_test(nests_up_to_the_limit),
        cmocka_unit_test(large_texts_take_linear_time),
        cmocka_unit_test(cut_texts_are_refused),
        cmocka_unit_test(files_are_loaded),
        cmocka_unit_test(members_are_found_by_exact_key),
        cmocka_unit_test(values_are_described),
        cmocka_unit_test(places_are_pointers),
        cmocka_unit_test(places_stand_in_messages),
        cmocka_unit_test(prints_what_reads_back),
        cmocka_unit_test(prints_null_for_what_is_no_number),
        cmocka_unit_test(prints_bytes_that_are_no_text),
        cmocka_unit_test(does_not_depend_on_the_locale),
        cmocka_unit_test(sets_values),
        cmocka_unit_test(refuses_to_set),
        cmocka_unit_test(a_document_cannot_be_set_too_deep),
        cmocka_unit_test(adds_for_writing),
        cmocka_unit_test(a_value_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

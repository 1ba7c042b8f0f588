/* Any bytes as JSON. Accepted documents can be printed, and the printed text reads back as the same
 * document and prints the same again. Reading one as fields, or setting a value in it, must not
 * break it. */
#include "sim/base/field.h"
#include "sim/base/json.h"
#include "sim/base/time.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct sample {
    cs_time time;
    int64_t bytes;
    double bandwidth, flops, number;
    uint32_t count, choice;
    bool flag;
    const char *text;
    const cJSON *json;
} sample;

static const char *const choices[] = {"none", "fifo", NULL};
static const cs_field fields[] = {
    {"t", CS_FIELD_TIME, offsetof(sample, time), .fallback = "1 s"},
    {"b", CS_FIELD_BYTES, offsetof(sample, bytes), .fallback = "1 B"},
    {"r", CS_FIELD_BANDWIDTH, offsetof(sample, bandwidth), .fallback = "1 B/s", .above_min = true},
    {"f", CS_FIELD_FLOP_RATE, offsetof(sample, flops), .fallback = "1"},
    {"n", CS_FIELD_NUMBER, offsetof(sample, number), .fallback = "0", .min = -1, .max = 1},
    {"c", CS_FIELD_COUNT, offsetof(sample, count), .fallback = "1", .min = 1},
    {"w", CS_FIELD_CHOICE, offsetof(sample, choice), .fallback = "fifo", .choices = choices},
    {"l", CS_FIELD_BOOL, offsetof(sample, flag), .fallback = "true"},
    {"s", CS_FIELD_TEXT, offsetof(sample, text), .fallback = ""},
    {"j", CS_FIELD_JSON, offsetof(sample, json), .fallback = ""},
    {0},
};

static void require(bool condition)
{
    if (!condition)
        abort();
}

static cJSON *parse(const char *text, size_t length)
{
    cJSON *root = NULL;
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_json_parse("fuzz", text, length, &root, &error);
    require(status == CS_OK || status == CS_INVALID); /* not what cJSON alone refuses */
    require((status == CS_OK) == (root != NULL));
    require(status == CS_OK || (error.count == 1 && error.text[0]));
    return root;
}

static void check_printing(const cJSON *root)
{
    char *text = cs_json_print(root);
    require(text);
    cJSON *again = parse(text, strlen(text));
    require(again);
    char *same = cs_json_print(again);
    require(same && strcmp(text, same) == 0);
    free(same);
    free(text);
    cJSON_Delete(again);
}

/* Whatever fields can be read are written so that they read as the same. */
static void check_fields(const cJSON *root)
{
    const cs_json_place place = {.file = "fuzz"};
    const cs_field *const tables[] = {fields, NULL};
    sample first = {0}, second = {0};
    void *const outs[] = {&first}, *const outs_again[] = {&second};
    cs_arena arena;
    cs_error error;
    cs_arena_init(&arena);
    cs_error_init(&error);
    cs_status status = cs_field_read(root, &place, tables, outs, &arena, &error);
    require((status == CS_OK) == (error.count == 0));
    if (status == CS_OK) {
        cJSON *written = cJSON_CreateObject();
        require(written && cs_field_write(fields, &first, written));
        status = cs_field_read(written, &place, tables, outs_again, &arena, &error);
        require(status == CS_OK && first.count == second.count && first.choice == second.choice);
        require(first.flag == second.flag && !first.text == !second.text);
        cJSON_Delete(written);
    }
    cs_arena_finish(&arena);
}

/* The input is a pointer up to its first blank, then a value. */
static void check_setting(const char *text)
{
    static const char document[] = "{\"a\":{\"b\":[1,{\"c\":2}]},\"d\":3}";
    cJSON *root = parse(document, sizeof(document) - 1);
    char *pointer = strdup(text), *blank = pointer ? strchr(pointer, ' ') : NULL;
    require(root && pointer);
    if (blank) {
        *blank = '\0';
        cs_status status = cs_json_set(root, pointer, blank + 1, "--set", NULL);
        require(status == CS_OK || status == CS_INVALID);
        check_printing(root);
    }
    free(pointer);
    cJSON_Delete(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cJSON *root = parse((const char *)data, size);
    if (root) {
        check_printing(root);
        check_fields(root);
    }
    cJSON_Delete(root);
    char *text = strndup((const char *)data, size);
    require(text);
    check_setting(text);
    free(text);
    return 0;
}

#include "sim/study/compare/json-differences.h"

#include <stdbool.h>
#include <stdio.h>

#include "sim/base/text.h"

enum { VALUE = 80, TEXT = 400 };

typedef struct search {
    cs_arena *arena;
    const char *const *sides;
    const char **texts;
    uint32_t n;
    bool failed;
} search;

/* Bytes to omit at the start of two long texts that begin alike: the common start except a few
 * bytes. */
static size_t count_alike(const cJSON *a, const cJSON *b)
{
    enum { LONG = 40, KEPT = 10 };
    size_t n = 0;
    if (!cJSON_IsString(a) || !cJSON_IsString(b))
        return 0;
    while (a->valuestring[n] && a->valuestring[n] == b->valuestring[n])
        n++;
    if (n < LONG)
        return 0;
    n -= KEPT;
    /* do not cut within a character */
    while (n > 0 && ((unsigned char)a->valuestring[n] & 0xC0) == 0x80)
        n--;
    return n;
}

/* Describes a value; of a text, the part after its first `left_out` bytes. */
static void describe(const cJSON *value, size_t left_out, char *text, size_t size)
{
    char quoted[VALUE];
    if (!value)
        snprintf(text, size, "nothing");
    else if (left_out > 0)
        snprintf(text, size, "...%s",
                 cs_text_quote(value->valuestring + left_out, quoted, sizeof(quoted)));
    else if (cJSON_IsArray(value))
        snprintf(text, size, "an array of %d", cJSON_GetArraySize(value));
    else
        cs_json_describe(value, text, size);
}

static void add(search *s, const char *pointer, const cJSON *a, const cJSON *b)
{
    char text[TEXT], values[2][VALUE + sizeof("...")];
    const size_t left_out = count_alike(a, b);
    if (s->n > CS_DIFFERENCES_MAX)
        return;
    describe(a, left_out, values[0], sizeof(values[0]));
    describe(b, left_out, values[1], sizeof(values[1]));
    cs_text_format(text, sizeof(text), "%s: %s %s, %s %s", pointer, values[0], s->sides[0],
                   values[1], s->sides[1]);
    s->texts[s->n] =
        cs_arena_copy(s->arena, s->n < CS_DIFFERENCES_MAX ? text : "and more that differs");
    s->failed |= !s->texts[s->n++];
}

static void search_in(search *s, const char *pointer, const cJSON *a, const cJSON *b);

static void search_object(search *s, const char *pointer, const cJSON *a, const cJSON *b)
{
    char path[TEXT / 2];
    const cJSON *member;
    cJSON_ArrayForEach(member, a)
    {
        cs_text_format(path, sizeof(path), "%.120s/%.60s", pointer, member->string);
        search_in(s, path, member, cs_json_member(b, member->string));
    }
    cJSON_ArrayForEach(member, b)
    {
        cs_text_format(path, sizeof(path), "%.120s/%.60s", pointer, member->string);
        if (!cs_json_member(a, member->string))
            add(s, path, NULL, member);
    }
}

/* Compares arrays. If they have equal lengths, only the first different element is reported. */
static void search_array(search *s, const char *pointer, const cJSON *a, const cJSON *b)
{
    char path[TEXT / 2];
    const cJSON *one, *other = b->child;
    int i = 0;
    cJSON_ArrayForEach(one, a)
    {
        if (!cJSON_Compare(one, other, true)) {
            snprintf(path, sizeof(path), "%.120s/%d", pointer, i);
            search_in(s, path, one, other);
            return;
        }
        other = other->next;
        i++;
    }
}

static void search_in(search *s, const char *pointer, const cJSON *a, const cJSON *b)
{
    if (cJSON_IsObject(a) && cJSON_IsObject(b))
        search_object(s, pointer, a, b);
    else if (cJSON_IsArray(a) && cJSON_IsArray(b) && cJSON_GetArraySize(a) == cJSON_GetArraySize(b))
        search_array(s, pointer, a, b);
    else if (!b || !cJSON_Compare(a, b, true))
        add(s, pointer, a, b);
}

cs_status cs_differences_find(const cJSON *first, const cJSON *second, const char *const sides[2],
                              cs_arena *arena, const char *const **texts, uint32_t *n,
                              cs_error *error)
{
    search s = {.arena = arena,
                .sides = sides,
                .texts = cs_arena_alloc(arena, CS_DIFFERENCES_MAX + 1, sizeof(*s.texts))};
    if (!s.texts)
        return cs_error_no_memory(error);
    search_in(&s, "", first, second);
    if (s.failed)
        return cs_error_no_memory(error);
    *texts = s.texts;
    *n = s.n;
    return CS_OK;
}

#include "sim/compare/json-differences.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { VALUE = 80, TEXT = 400 };

typedef struct search {
    cs_arena *arena;
    const char *const *sides;
    const char **texts;
    uint32_t n;
    bool failed;
} search;

static void describe(const cJSON *value, char *text, size_t size)
{
    if (value)
        cs_json_describe(value, text, size);
    else
        snprintf(text, size, "nothing");
}

static void add(search *s, const char *pointer, const cJSON *a, const cJSON *b)
{
    char text[TEXT], values[2][VALUE];
    if (s->n > CS_DIFFERENCES_MAX)
        return;
    describe(a, values[0], VALUE);
    describe(b, values[1], VALUE);
    snprintf(text, sizeof(text), "%s: %s %s, %s %s", pointer, values[0], s->sides[0], values[1],
             s->sides[1]);
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
        snprintf(path, sizeof(path), "%.120s/%.60s", pointer, member->string);
        search_in(s, path, member, cs_json_member(b, member->string));
    }
    cJSON_ArrayForEach(member, b)
    {
        snprintf(path, sizeof(path), "%.120s/%.60s", pointer, member->string);
        if (!cs_json_member(a, member->string))
            add(s, path, NULL, member);
    }
}

static void search_in(search *s, const char *pointer, const cJSON *a, const cJSON *b)
{
    if (cJSON_IsObject(a) && cJSON_IsObject(b))
        search_object(s, pointer, a, b);
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

#include "sim/run/recipe/rules.h"

#include "sim/base/conventions.h"
#include "sim/base/facts.h"
#include "sim/base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void fail(cs_rules *rules)
{
    if (rules->status == CS_OK)
        rules->status = cs_error_no_memory(rules->error);
}

/* ---- notes ---- */

/* Takes a part of a character from the end of a text that was cut off. */
static void cut_character(char *text)
{
    size_t left = strlen(text), n;
    while ((n = cs_text_character(text, left)) > 0) {
        text += n;
        left -= n;
    }
    *text = '\0';
}

static void add_note(cs_rules *rules, const char **list, uint32_t *n, const char *format,
                     va_list arguments)
{
    char text[256];
    if (cs_text_formatv(text, sizeof(text), format, arguments) >= (int)sizeof(text))
        cut_character(text);
    for (uint32_t i = 0; i < *n; i++)
        if (strcmp(list[i], text) == 0)
            return;
    const char *copy = cs_arena_copy(&rules->made->arena, text);
    if (!copy)
        fail(rules);
    if (copy && *n < CS_RECIPE_NOTES)
        list[(*n)++] = copy;
}

void cs_rules_miss(cs_rules *rules, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_note(rules, rules->made->missing, &rules->made->n_missing, format, arguments);
    va_end(arguments);
}

void cs_rules_assume(cs_rules *rules, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_note(rules, rules->made->assumed, &rules->made->n_assumed, format, arguments);
    va_end(arguments);
}

/* A text with the values of the keys that it has in braces. */
static const char *fill(const cs_rules *rules, const char *text, char *out, size_t size)
{
    size_t n = 0;
    while (*text && n + 1 < size) {
        const char *end = *text == '{' ? strchr(text, '}') : NULL;
        char key[128], value[CS_JSON_DESCRIBED_BYTES];
        if (!end) {
            out[n++] = *text++;
            continue;
        }
        snprintf(key, sizeof(key), "%.*s", (int)(end - text - 1), text + 1);
        const cJSON *found = cs_rules_at(rules, key);
        const char *shown = cJSON_IsString(found) ? found->valuestring
                            : found               ? cs_json_describe(found, value, sizeof(value))
                                                  : "";
        n += (size_t)snprintf(out + n, size - n, "%s", shown);
        n = n < size ? n : size - 1;
        text = end + 1;
    }
    out[n] = '\0';
    return out;
}

/* ---- the view ---- */

const cJSON *cs_rules_at(const cs_rules *rules, const char *key)
{
    const cJSON *value = cs_json_at(rules->view, key);
    return value || !rules->defaults ? value : cs_json_at(rules->defaults, key);
}

bool cs_rules_is(const cs_rules *rules, const char *key, const char *text)
{
    const cJSON *value = cs_rules_at(rules, key);
    return cJSON_IsString(value)
               ? strcmp(value->valuestring, text) == 0
               : value && strcmp(cJSON_IsTrue(value) ? "true" : "false", text) == 0;
}

void cs_rules_put(cs_rules *rules, const char *key, cJSON *value)
{
    if (!value)
        fail(rules);
    else if (rules->status == CS_OK)
        rules->status = cs_json_copy_to(rules->view, key, value, "rules", rules->error);
    cJSON_Delete(value);
}

const char *cs_rules_find(const cs_facts_kind *kind, const char *name)
{
    const size_t length = strlen(name);
    const bool is_file = length > 5 && strcmp(name + length - 5, ".json") == 0;
    return is_file ? name : cs_facts_find(kind, name);
}

/* ---- tables ---- */

/* A list of a file of facts/words, which is read once. */
static const cJSON *table_of(cs_rules *rules, const char *file, const char *list)
{
    const cJSON *known = cs_json_member(rules->tables, file);
    const char *text = known ? NULL : cs_facts_text("words", file);
    cJSON *root = text ? cJSON_Parse(text) : NULL;
    if (text && !root)
        fail(rules);
    if (root && !cJSON_AddItemToObject(rules->tables, file, root)) {
        cJSON_Delete(root);
        root = NULL;
        fail(rules);
    }
    return cs_json_member(known ? known : root, list);
}

static const cJSON *value_of(void *context, const char *key, cJSON *made)
{
    (void)made;
    return cs_rules_at(context, key);
}

static bool holds(cs_rules *rules, const cJSON *row, const char *key, bool missing)
{
    return cs_conditions_hold(cJSON_GetStringValue(cs_json_member(row, key)), missing, value_of,
                              rules);
}

static const cJSON *use(void *context, const cJSON *row, const char *key)
{
    cs_rules *rules = context;
    const cJSON *value = cs_json_member(row, "value");
    const char *note = cJSON_GetStringValue(cs_json_member(row, "note"));
    char text[256];
    (void)key;
    if (cJSON_IsString(value) && value->valuestring[0] == '/')
        value = cs_rules_at(rules, value->valuestring);
    if (value && note)
        cs_rules_assume(rules, "%s", fill(rules, note, text, sizeof(text)));
    return value;
}

void cs_rules_apply(cs_rules *rules, const cJSON *list)
{
    if (rules->status == CS_OK)
        rules->status =
            cs_conventions_apply(list, rules->view, value_of, use, rules, "rules", rules->error);
}

void cs_rules_use(cs_rules *rules, const char *file, const char *list)
{
    cs_rules_apply(rules, table_of(rules, file, list));
}

void cs_rules_check(cs_rules *rules, const char *file, const char *list)
{
    const cJSON *row;
    char text[256];
    cJSON_ArrayForEach(row, table_of(rules, file, list))
    {
        const char *missing = cJSON_GetStringValue(cs_json_member(row, "missing"));
        const char *assumed = cJSON_GetStringValue(cs_json_member(row, "assumed"));
        if (!holds(rules, row, "with", false) ||
            (cs_json_member(row, "needs") && holds(rules, row, "needs", false)))
            continue;
        if (missing)
            cs_rules_miss(rules, "%s", fill(rules, missing, text, sizeof(text)));
        else if (assumed)
            cs_rules_assume(rules, "%s", fill(rules, assumed, text, sizeof(text)));
    }
}

/* ---- operators by words ---- */

/* Letters, digits and underscores: "moe_act" does not contain the word "moe". */
static bool is_of_word(char c)
{
    return c == '_' || isalnum((unsigned char)c);
}

static bool has_word(const char *given, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = given; (at = strstr(at, word)); at++)
        if ((at == given || !is_of_word(at[-1])) && !is_of_word(at[length]))
            return true;
    return false;
}

bool cs_rules_operators(cs_rules *rules, const char *list, const char *given, bool discards,
                        const char *key)
{
    const cJSON *row, *operator;
    cJSON *found = cJSON_CreateArray();
    cJSON_ArrayForEach(row, table_of(rules, "operators", list))
    {
        if (!has_word(given, cJSON_GetStringValue(cs_json_member(row, "word"))) ||
            (discards && !cJSON_IsTrue(cs_json_member(row, "discards"))) ||
            !holds(rules, row, "with", false))
            continue;
        cJSON_ArrayForEach(operator, cs_json_member(row, "operators"))
        {
            cJSON *copy = cJSON_Duplicate(operator, true);
            if (!copy || !cJSON_AddItemToArray(found, copy)) {
                cJSON_Delete(copy);
                fail(rules);
            }
        }
    }
    const bool any = cJSON_GetArraySize(found) > 0;
    if (any)
        cs_rules_put(rules, key, found);
    else
        cJSON_Delete(found);
    return any;
}

bool cs_rules_knows_words(cs_rules *rules, const char *list, const char *given, const char *note)
{
    const cJSON *row;
    bool any = false;
    const char *at = strchr(given, '[');
    cJSON_ArrayForEach(row, table_of(rules, "operators", list)) any |=
        has_word(given, cJSON_GetStringValue(cs_json_member(row, "word")));
    for (size_t length = 0; at && *at; at += length > 0 ? length : 1) {
        bool known = false;
        for (length = 0; is_of_word(at[length]);)
            length++;
        cJSON_ArrayForEach(row, table_of(rules, "operators", list))
        {
            const char *word = cJSON_GetStringValue(cs_json_member(row, "word"));
            known |= strlen(word) == length && strncmp(word, at, length) == 0;
        }
        if (length > 0 && !known)
            cs_rules_assume(rules, note, (int)length, at);
    }
    return any;
}

#include "sim/base/conventions.h"

#include "sim/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 256 }; /* bytes of the longest condition */

/* Writes a value as conditions state it; "" for lists and objects. */
static const char *text_of(const cJSON *value, char *room, size_t size)
{
    if (cJSON_IsNumber(value)) {
        snprintf(room, size, "%.9g", value->valuedouble);
        return room;
    }
    return cJSON_IsString(value)  ? value->valuestring
           : cJSON_IsTrue(value)  ? "true"
           : cJSON_IsFalse(value) ? "false"
                                  : "";
}

/* Whether a text matches the first `length` characters of a pattern: '*' matches any text, '?' any
 * character. */
static bool is_like(const char *text, const char *pattern, size_t length)
{
    for (; length > 0 && *pattern != '*'; text++, pattern++, length--)
        if (*text == '\0' || (*pattern != '?' && *pattern != *text))
            return false;
    if (length == 0)
        return *text == '\0';
    for (; *text; text++)
        if (is_like(text, pattern + 1, length - 1))
            return true;
    return is_like(text, pattern + 1, length - 1);
}

/* Whether a text matches one of the patterns in a list separated by '|'. */
static bool is_one_of(const char *text, const char *wanted)
{
    for (;; wanted++) {
        const size_t length = strcspn(wanted, "|");
        if (is_like(text, wanted, length))
            return true;
        wanted += length;
        if (*wanted == '\0')
            return false;
    }
}

/* Compares numbers by size, and releases, which are texts, by the numbers between their dots. */
static int compare(const cJSON *value, const char *wanted)
{
    if (cJSON_IsNumber(value)) {
        const double number = strtod(wanted, NULL);
        return value->valuedouble < number ? -1 : value->valuedouble > number;
    }
    const char *a = cJSON_IsString(value) ? value->valuestring : "", *b = wanted;
    while (*a || *b) {
        char *rest_a, *rest_b;
        const unsigned long x = strtoul(a, &rest_a, 10), y = strtoul(b, &rest_b, 10);
        if (x != y)
            return x < y ? -1 : 1;
        a = *rest_a == '.' ? rest_a + 1 : "";
        b = *rest_b == '.' ? rest_b + 1 : "";
    }
    return 0;
}

/* Whether `number` is a multiple of the number at the key `of`; "2:/key": of twice that number. */
static bool is_multiple(const cJSON *number, const char *of, cs_key_value *value, void *context)
{
    cJSON made;
    const char *key = strchr(of, '/');
    const cJSON *other = value(context, key, &made);
    const double factor = key > of ? strtod(of, NULL) : 1;
    const double divisor = factor * (cJSON_IsNumber(other) ? other->valuedouble : 1);
    return !cJSON_IsNumber(number) || !(divisor >= 1) ||
           (uint64_t)number->valuedouble % (uint64_t)divisor == 0;
}

static bool holds_one(const char *condition, bool missing, cs_key_value *value, void *context)
{
    char key[LONGEST], room[32];
    cJSON made;
    const bool absent = *condition == '!';
    condition += absent;
    const size_t length = strcspn(condition, "!=<>%");
    const char *relation = condition + length;
    snprintf(key, sizeof(key), "%.*s", (int)length, condition);
    const cJSON *given = value(context, key, &made);
    if (cJSON_IsNull(given))
        given = NULL;
    if (absent || *relation == '\0')
        return absent != (given != NULL);
    if (!given)
        return *relation == '!' || missing;
    const char *text = text_of(given, room, sizeof(room));
    if (*relation == '!')
        return !is_one_of(text, relation + 2);
    if (*relation == '=')
        return *text && is_one_of(text, relation + 1);
    if (*relation == '%')
        return is_multiple(given, relation + 1, value, context);
    const bool or_equal = relation[1] == '=';
    const int order = compare(given, relation + 1 + or_equal);
    return *text && (order == 0 ? or_equal : (order > 0) == (*relation == '>'));
}

/* Copies the next condition to `one` and returns the rest; NULL: none is left. */
static const char *next(const char *conditions, char one[LONGEST])
{
    const char *at = conditions ? conditions + strspn(conditions, " ") : "";
    const size_t length = strcspn(at, " ");
    snprintf(one, LONGEST, "%.*s", (int)length, at);
    return length > 0 ? at + length : NULL;
}

bool cs_conditions_hold(const char *conditions, bool missing, cs_key_value *value, void *context)
{
    char one[LONGEST];
    while ((conditions = next(conditions, one)))
        if (!holds_one(one, missing, value, context))
            return false;
    return true;
}

cs_status cs_conditions_check(const char *conditions, const cs_json_place *place, cs_error *error)
{
    char one[LONGEST], quoted[CS_TEXT_QUOTED_BYTES];
    while ((conditions = next(conditions, one))) {
        const bool absent = *one == '!';
        const char *key = one + absent;
        const char *relation = key + strcspn(key, "!=<>%");
        const char *wanted = relation + strspn(relation, "!=<>%");
        char written[6] = "";
        if (wanted - relation <= 2)
            snprintf(written, sizeof(written), " %.*s ", (int)(wanted - relation), relation);
        const bool known =
            absent ? *relation == '\0'
                   : wanted == relation || (*written && strstr(" = != < <= > >= % ", written));
        const char *other = strchr(wanted, '/');
        if (*key != '/' || relation - key < 2 || !known || strlen(one) == LONGEST - 1 ||
            (wanted > relation && *wanted == '\0') || (*relation == '%' && !other))
            return cs_json_invalid(
                place, error,
                "%s is not a condition; conditions are separated by blanks: /key, !/key, "
                "/key=value|value, /key!=value, /key<number (<=, >, >=) or /key%%/key",
                cs_text_quote(one, quoted, sizeof(quoted)));
    }
    return CS_OK;
}

/* ---- conventions ---- */

static const cJSON *value_in(void *context, const char *key, cJSON *made)
{
    (void)made;
    return cs_json_at(context, key);
}

cs_status cs_conventions_apply(const cJSON *conventions, cJSON *root, cs_key_value *value,
                               cs_convention_use *use, void *context, const char *origin,
                               cs_error *error)
{
    const cJSON *each;
    void *of = value ? context : root;
    bool leaves = false; /* `root` now has a null, which marks a key that stays unset */
    value = value ? value : value_in;
    cJSON_ArrayForEach(each, conventions)
    {
        const char *key = cJSON_GetStringValue(cs_json_member(each, "key"));
        const char *with = cJSON_GetStringValue(cs_json_member(each, "with"));
        if (!key || cs_json_at(root, key) || !cs_conditions_hold(with, false, value, of))
            continue;
        const cJSON *put = use ? use(context, each, key) : cs_json_member(each, "value");
        if (put)
            CS_TRY(cs_json_copy_to(root, key, put, origin, error));
        leaves |= cJSON_IsNull(put);
    }
    if (!leaves)
        return CS_OK;
    cJSON_ArrayForEach(each, conventions)
    {
        const char *key = cJSON_GetStringValue(cs_json_member(each, "key"));
        char above[LONGEST];
        if (!key || !cJSON_IsNull(cs_json_member(each, "value")) ||
            !cJSON_IsNull(cs_json_at(root, key)))
            continue;
        snprintf(above, sizeof(above), "%.*s", (int)(strrchr(key, '/') - key), key);
        cJSON *parent = (cJSON *)(uintptr_t)cs_json_at(root, above);
        cJSON_DeleteItemFromObjectCaseSensitive(parent, strrchr(key, '/') + 1);
    }
    return CS_OK;
}

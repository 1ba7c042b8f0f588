#include "sim/base/facts.h"

#include "sim/base/file.h"
#include "sim/base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEEPEST = 8 }; /* descriptions that are like each other */

const char *cs_facts_text(const char *folder, const char *name)
{
    for (const cs_facts_file *file = cs_facts_files; file->name; file++)
        if (strcmp(file->folder, folder) == 0 && strcmp(file->name, name) == 0)
            return file->text;
    return NULL;
}

const char *cs_facts_name(const char *folder, size_t i)
{
    for (const cs_facts_file *file = cs_facts_files; file->name; file++)
        if (strcmp(file->folder, folder) == 0 && i-- == 0)
            return file->name;
    return NULL;
}

/* ---- aliases ---- */

/* The length of the next word, letters and digits; `*at` is moved behind it. 0: there is none. */
static size_t next_word(const char **at)
{
    const char *from = *at;
    while (*from && !isalnum((unsigned char)*from))
        from++;
    const char *to = from;
    while (isalnum((unsigned char)*to))
        to++;
    *at = to;
    return (size_t)(to - from);
}

static bool has_word(const char *text, const char *word, size_t length)
{
    size_t n;
    for (const char *at = text; (n = next_word(&at)) > 0;)
        if (strncasecmp(at - n, word, length) == 0 &&
            (n == length || (n == length + 2 && isdigit((unsigned char)word[length - 1]) &&
                             strncasecmp(at - 2, "gb", 2) == 0)))
            return true;
    return false;
}

/* How many words an alias has; 0: it does not fit. */
static uint32_t fitting_words(const char *alias, const char *text)
{
    uint32_t words = 0;
    size_t n;
    for (const char *at = alias; (n = next_word(&at)) > 0; words++)
        if (!has_word(text, at - n, n))
            return 0;
    return words;
}

/* Most words of an alias of this file that fits; 0: none does. */
static uint32_t fit(const cJSON *root, const char *text)
{
    uint32_t most = 0;
    const cJSON *each;
    cJSON_ArrayForEach(each, cs_json_member(root, "except")) if (cJSON_IsString(each) &&
                                                                 fitting_words(each->valuestring,
                                                                               text) > 0) return 0;
    cJSON_ArrayForEach(each, cs_json_member(root, "aliases"))
    {
        const uint32_t words = cJSON_IsString(each) ? fitting_words(each->valuestring, text) : 0;
        most = words > most ? words : most;
    }
    return most;
}

const char *cs_facts_find(const cs_facts_kind *kind, const char *name)
{
    const char *found = NULL;
    uint32_t most = 0;
    if (cs_facts_text(kind->folder, name))
        return name;
    for (const cs_facts_file *file = cs_facts_files; file->name; file++) {
        cJSON *root;
        if (strcmp(file->folder, kind->folder) != 0)
            continue;
        if (cs_json_parse(file->name, file->text, strlen(file->text), &root, NULL) != CS_OK)
            return NULL;
        const uint32_t words = fit(root, name);
        if (words > most) {
            most = words;
            found = file->name;
        }
        cJSON_Delete(root);
    }
    return found;
}

/* ---- like ---- */

static bool is_in(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Adds the values of `base` that `own` does not state. False when memory runs out. */
static bool take_over(cJSON *own, const cJSON *base, const char *const *joined, bool root)
{
    static const char *const kept[] = {"name", "title", "aliases", "except", NULL};
    const cJSON *each;
    cJSON_ArrayForEach(each, base)
    {
        cJSON *stated = cJSON_GetObjectItemCaseSensitive(own, each->string);
        if (root && is_in(kept, each->string))
            continue;
        if (!stated) {
            cJSON *copy = cJSON_Duplicate(each, true);
            if (!copy || !cJSON_AddItemToObject(own, each->string, copy)) {
                cJSON_Delete(copy);
                return false;
            }
        } else if (cJSON_IsObject(stated) && cJSON_IsObject(each)) {
            if (!take_over(stated, each, joined, false))
                return false;
        } else if (root && is_in(joined, each->string) && cJSON_IsArray(stated)) {
            const cJSON *item;
            cJSON_ArrayForEach(item, each)
            {
                cJSON *copy = cJSON_Duplicate(item, true);
                if (!copy || !cJSON_AddItemToArray(stated, copy)) {
                    cJSON_Delete(copy);
                    return false;
                }
            }
        }
    }
    return true;
}

static void remove_nulls(cJSON *object)
{
    for (cJSON *each = object->child, *next; each; each = next) {
        next = each->next;
        if (cJSON_IsNull(each))
            cJSON_Delete(cJSON_DetachItemViaPointer(object, each));
        else if (cJSON_IsObject(each))
            remove_nulls(each);
    }
}

static cs_status load(const cs_facts_kind *kind, const char *name, const char *from, int depth,
                      cJSON **root, cs_error *error);

static cs_status inherit(const cs_facts_kind *kind, const char *path, int depth, cJSON *own,
                         cs_error *error)
{
    const cs_json_place place = {.file = path};
    const cs_json_place like = {.up = &place, .key = "like"};
    cJSON *name = cJSON_GetObjectItemCaseSensitive(own, "like");
    cJSON *base;
    cs_error why;
    if (!name)
        return CS_OK;
    if (!cJSON_IsString(name))
        return cs_json_invalid(&like, error, "must be the name of a %s, or FILE.json", kind->what);
    if (depth == DEEPEST)
        return cs_json_invalid(&like, error, "more than %d descriptions are like each other",
                               DEEPEST);
    cs_error_init(&why);
    const cs_status status = load(kind, name->valuestring, path, depth + 1, &base, &why);
    if (status != CS_OK)
        return cs_json_pass_on(&like, &why, error);
    const bool done = take_over(own, base, kind->joined, true);
    cJSON_Delete(base);
    if (!done)
        return cs_error_no_memory(error);
    cJSON_DeleteItemFromObjectCaseSensitive(own, "like");
    return CS_OK;
}

static cs_status load(const cs_facts_kind *kind, const char *name, const char *from, int depth,
                      cJSON **root, cs_error *error)
{
    static const char extension[] = ".json";
    const size_t length = strlen(name), cut = strlen(extension);
    const bool is_file = length > cut && strcmp(name + length - cut, extension) == 0;
    char *path = is_file && from ? cs_file_relative(from, name) : strdup(name);
    cs_status status = CS_OK;
    if (!path)
        return cs_error_no_memory(error);
    if (is_file) {
        status = cs_json_load(path, root, error);
    } else {
        const char *found = cs_facts_find(kind, name);
        const char *text = found ? cs_facts_text(kind->folder, found) : NULL;
        if (text) {
            status = cs_json_parse(found, text, strlen(text), root, error);
        } else {
            cs_guess guess;
            cs_guess_init(&guess, name);
            for (const cs_facts_file *file = cs_facts_files; file->name; file++)
                if (strcmp(file->folder, kind->folder) == 0)
                    cs_guess_add(&guess, file->name);
            status = cs_error_add(error, CS_INVALID,
                                  "unknown %s %s; or describe it in a file FILE.json (%s)",
                                  kind->what, cs_guess_text(&guess), kind->page);
        }
    }
    if (status == CS_OK && cJSON_IsObject(*root)) {
        status = inherit(kind, path, depth, *root, error);
        if (status != CS_OK)
            cJSON_Delete(*root);
    }
    free(path);
    return status;
}

cs_status cs_facts_load(const cs_facts_kind *kind, const char *name, const char *from, cJSON **root,
                        cs_error *error)
{
    CS_TRY(load(kind, name, from, 0, root, error));
    if (cJSON_IsObject(*root))
        remove_nulls(*root);
    return CS_OK;
}

#include "sim/base/facts.h"

#include "sim/base/file.h"
#include "sim/base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEEPEST = 8 }; /* longest chain of "like" */

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

static bool ends_in(const char *name, const char *extension)
{
    const size_t n = strlen(name), m = strlen(extension);
    return n > m && strcmp(name + n - m, extension) == 0;
}

bool cs_facts_is_file(const char *name)
{
    return ends_in(name, ".json");
}

/* Moves `*at` past the next word (letters and digits) of the line and returns the word's length; 0:
 * none is left. */
static size_t next_word(const char **at)
{
    const char *from = *at;
    while (*from && *from != '\n' && !isalnum((unsigned char)*from))
        from++;
    const char *to = from;
    while (isalnum((unsigned char)*to))
        to++;
    *at = to;
    return (size_t)(to - from);
}

/* Whether `unit` means gigabytes: "", "G" or "GB". */
static bool is_unit(const char *unit, size_t length)
{
    return length <= 2 && strncasecmp(unit, "gb", length) == 0;
}

static bool has_word(const char *text, const char *word, size_t length)
{
    const bool number = strspn(word, "0123456789") >= length;
    size_t n;
    for (const char *at = text; (n = next_word(&at)) > 0;)
        if (n >= length && strncasecmp(at - n, word, length) == 0 &&
            (n == length || (number && is_unit(at - n + length, n - length))))
            return true;
    return false;
}

/* Number of words of the longest matching name (names: one per line); 0: none matches. */
static uint32_t most_words(const char *names, const char *text)
{
    uint32_t most = 0;
    for (const char *at = names; *at;) {
        uint32_t words = 0;
        bool fits = true;
        for (size_t n; (n = next_word(&at)) > 0; words++)
            fits = fits && has_word(text, at - n, n);
        if (fits && words > most)
            most = words;
        at += *at == '\n';
    }
    return most;
}

/* Finds the file that is called `name` or has the best matching alias. *also is another file that
 * matches equally well, or NULL. */
static const cs_facts_file *find(const char *folder, const char *name, const cs_facts_file **also)
{
    const cs_facts_file *found = NULL;
    uint32_t most = 0;
    *also = NULL;
    if (ends_in(name, ".json"))
        return NULL;
    for (const cs_facts_file *file = cs_facts_files; file->name; file++) {
        if (strcmp(file->folder, folder) != 0)
            continue;
        if (strcmp(file->name, name) == 0) {
            *also = NULL;
            return file;
        }
        const uint32_t words =
            most_words(file->except, name) > 0 ? 0 : most_words(file->aliases, name);
        if (words > 0 && words == most)
            *also = file;
        if (words > most) {
            most = words;
            found = file;
            *also = NULL;
        }
    }
    return found;
}

const char *cs_facts_find(const cs_facts_kind *kind, const char *name)
{
    const cs_facts_file *also;
    const cs_facts_file *found = find(kind->folder, name, &also);
    return found && !also ? found->name : NULL;
}

/* Whether a word with a digit, other than a memory size, is almost a word of the name: "RTX 4080"
 * is near "rtx-4090". */
static bool is_near(const char *text, const char *name)
{
    size_t n, m;
    for (const char *at = text; (n = next_word(&at)) > 0;) {
        char word[32] = "", other[32] = "";
        bool digit = false;
        const size_t digits = strspn(at - n, "0123456789");
        if (n >= sizeof(word) || n < 2 || (digits < n && is_unit(at - n + digits, n - digits)))
            continue;
        for (size_t i = 0; i < n; i++) {
            word[i] = (char)tolower((unsigned char)*(at - n + i));
            digit |= isdigit((unsigned char)word[i]) != 0;
        }
        for (const char *in = name; digit && (m = next_word(&in)) > 0;) {
            cs_guess guess;
            cs_guess_init(&guess, word);
            snprintf(other, sizeof(other), "%.*s", (int)m, in - m);
            cs_guess_add(&guess, other);
            if (guess.closest)
                return true;
        }
    }
    return false;
}

static cs_status refuse(const cs_facts_kind *kind, const char *name, cs_error *error)
{
    enum { NEAREST = 6, MOST_LISTED = 200 };
    char quoted[CS_TEXT_QUOTED_BYTES], nearest[256] = "";
    const cs_facts_file *also, *found = find(kind->folder, name, &also);
    size_t used = 0, n = 0;
    cs_guess guess;
    if (found && also)
        return cs_error_add(error, CS_INVALID, "%s %s is ambiguous: must be \"%s\" or \"%s\"",
                            kind->what, cs_text_quote(name, quoted, sizeof(quoted)), found->name,
                            also->name);
    cs_guess_init(&guess, name);
    for (const cs_facts_file *file = cs_facts_files; file->name; file++) {
        if (strcmp(file->folder, kind->folder) != 0)
            continue;
        cs_guess_add(&guess, file->name);
        if (n < NEAREST && is_near(name, file->name))
            used += (size_t)cs_text_format(nearest + used, sizeof(nearest) - used, "%s%s",
                                           n++ > 0 ? ", " : "", file->name);
    }
    if (found && !guess.closest) /* found by an alias, which this kind does not accept */
        guess.closest = found->name;
    if (strlen(guess.known) > MOST_LISTED)
        snprintf(guess.known, sizeof(guess.known), "`sim list %s` has them", kind->folder);
    const bool lists = n > 0 && !guess.closest;
    return cs_error_add(
        error, CS_INVALID, "unknown %s %s%s%s; or describe it in a file FILE.json (%s)", kind->what,
        cs_guess_text(&guess), lists ? "; the nearest: " : "", lists ? nearest : "", kind->page);
}

/* ---- like ---- */

static bool is_in(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Whether the list has an item with the same "name". */
static bool is_replaced(const cJSON *list, const cJSON *item)
{
    const char *name = cJSON_GetStringValue(cs_json_member(item, "name"));
    const cJSON *each;
    if (name)
        cJSON_ArrayForEach(each, list)
        {
            const char *other = cJSON_GetStringValue(cs_json_member(each, "name"));
            if (other && strcmp(other, name) == 0)
                return true;
        }
    return false;
}

/* Adds the values of `base` that `own` does not state. Keys follow the order of `base`; keys that
 * only `own` has come last. Returns false if memory runs out. */
static bool take_over(cJSON *own, const cJSON *base, const char *const *joined, bool root)
{
    static const char *const kept[] = {"name", "title", "aliases", "except", NULL};
    const cJSON *each;
    int own_only = cJSON_GetArraySize(own);
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
            continue;
        }
        own_only--;
        if (cJSON_AddItemToArray(own, cJSON_DetachItemViaPointer(own, stated)) &&
            cJSON_IsObject(stated) && cJSON_IsObject(each)) {
            if (!take_over(stated, each, joined, false))
                return false;
        } else if (root && is_in(joined, each->string) && cJSON_IsArray(stated)) {
            const cJSON *item;
            cJSON_ArrayForEach(item, each)
            {
                if (is_replaced(stated, item))
                    continue;
                cJSON *copy = cJSON_Duplicate(item, true);
                if (!copy || !cJSON_AddItemToArray(stated, copy)) {
                    cJSON_Delete(copy);
                    return false;
                }
            }
        }
    }
    for (; own_only > 0; own_only--)
        cJSON_AddItemToArray(own, cJSON_DetachItemFromArray(own, 0));
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
    const bool is_file = cs_facts_is_file(name);
    char *path = is_file && from ? cs_file_relative(from, name) : strdup(name);
    cs_status status = CS_OK;
    *root = NULL;
    if (!path)
        return cs_error_no_memory(error);
    if (is_file) {
        status = cs_json_load(path, root, error);
        if (status == CS_OK && kind->check)
            status = kind->check(*root, path, error);
    } else {
        const char *found = kind->exact ? name : cs_facts_find(kind, name);
        const char *text = found ? cs_facts_text(kind->folder, found) : NULL;
        *root = text ? cJSON_Parse(text) : NULL; /* embed-facts.py has checked the text */
        status = !text ? refuse(kind, name, error) : *root ? CS_OK : cs_error_no_memory(error);
    }
    if (status == CS_OK && cJSON_IsObject(*root))
        status = inherit(kind, path, depth, *root, error);
    if (status != CS_OK) {
        cJSON_Delete(*root);
        *root = NULL;
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

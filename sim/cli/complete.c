#include "sim/cli/complete.h"

#include "sim/base/json.h"
#include "sim/base/text.h"
#include "sim/cli/command.h"
#include "sim/cli/listed.h"
#include "sim/run/scenario/scenario.h"

#include <stdlib.h>
#include <string.h>

static const char files_word[] = ":files";

typedef struct completion {
    FILE *out;
    const char *option; /* "--name=" if the word begins with it; otherwise "" */
    const char *typed;  /* the incomplete word, without `option` */
    const char *before; /* unchanged part of `typed` before the offered words */
    size_t before_bytes;
} completion;

/* Offers a word with the first clause of its description. */
static void offer(void *context, const char *word, const char *doc)
{
    enum { SHOWN = 72 };
    const int clause = doc ? (int)strcspn(doc, ";:") : 0;
    const completion *c = context;
    const char *rest = c->typed + c->before_bytes;
    if (strncmp(word, rest, strlen(rest)) != 0)
        return;
    fprintf(c->out, "%s%.*s%s", c->option, (int)c->before_bytes, c->before, word);
    if (clause > 0)
        fprintf(c->out, "\t%.*s", clause < SHOWN ? clause : SHOWN, doc);
    fputc('\n', c->out);
}

static void offer_words(const completion *c, const char *const *words)
{
    for (size_t i = 0; words && words[i]; i++)
        offer((void *)(uintptr_t)c, words[i], NULL);
}

static void offer_commands(completion *c)
{
    for (size_t i = 0; cs_commands[i]; i++)
        offer(c, cs_commands[i]->name, cs_commands[i]->summary);
}

/* ---- pointers into a scenario ---- */

/* Keys of each section; the last two depend on names in the scenario. */
static const struct {
    const char *parent, *kind, *section; /* fields of the entry named at the pointer `kind` */
    const cs_field *fields;
} schema[] = {
    {"", NULL, NULL, cs_scenario_fields},
    {"/model", NULL, NULL, cs_scenario_model_fields},
    {"/platform", "/platform/topology", "topologies", cs_scenario_platform_fields},
    {"/parallel", NULL, NULL, cs_scenario_parallel_fields},
    {"/runtime", NULL, NULL, cs_scenario_runtime_fields},
    {"/memory", NULL, NULL, cs_scenario_memory_fields},
    {"/offload", NULL, NULL, cs_scenario_offload_fields},
    {"/schedule", "/schedule/kind", "schedules", cs_scenario_schedule_fields},
};

enum { N_SCHEMA = sizeof(schema) / sizeof(schema[0]) };

/* Keys whose values have names. */
static const struct {
    const char *pointer, *section;
} named_values[] = {{"/schedule/kind", "schedules"}, {"/schedule/partition", "planners"},
                    {"/platform", "topologies"},     {"/platform/topology", "topologies"},
                    {"/model/name", "models"},       {"/model/device", "devices"},
                    {"/runtime", "runtimes"},        {"/runtime/name", "runtimes"}};

static const cJSON *child_of(const cJSON *at, const char *key)
{
    char *end;
    const unsigned long i = strtoul(key, &end, 10);
    if (cJSON_IsArray(at))
        return *key && !*end && i < INT32_MAX ? cJSON_GetArrayItem(at, (int)i) : NULL;
    return cJSON_IsObject(at) ? cs_json_member(at, key) : NULL;
}

/* Returns the value at a pointer without escapes; NULL: none. */
static const cJSON *find(const cJSON *root, const char *pointer)
{
    char key[128];
    const cJSON *at = root;
    while (at && *pointer == '/') {
        const size_t length = strcspn(pointer + 1, "/");
        if (length >= sizeof(key))
            return NULL;
        snprintf(key, sizeof(key), "%.*s", (int)length, pointer + 1);
        pointer += 1 + length;
        at = child_of(at, key);
    }
    return at;
}

/* Offers a key. Keys in a file may be any text, but the shell's line gets them unquoted: only plain
 * keys are offered. */
static void offer_key(completion *c, const char *key, bool holds_more, const char *doc)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    char word[256];
    if (*key && key[strspn(key, plain)] == '\0')
        offer(c, (snprintf(word, sizeof(word), "%s%c", key, holds_more ? '/' : '='), word), doc);
}

static void offer_fields(completion *c, const cs_field *fields, const cJSON *there)
{
    for (; fields && fields->name; fields++)
        if (!there || !cs_json_member(there, fields->name))
            offer_key(c, fields->name, false, fields->doc);
}

static void offer_members(completion *c, const cJSON *there)
{
    const cJSON *member;
    char number[16];
    int i = 0;
    cJSON_ArrayForEach(member, there)
    {
        snprintf(number, sizeof(number), "%d", i++);
        offer_key(c, cJSON_IsArray(there) ? number : member->string,
                  cJSON_IsObject(member) || cJSON_IsArray(member), NULL);
    }
}

/* Offers one step of a pointer at a time, as for folders. */
static void offer_pointers(completion *c, const cJSON *root)
{
    char parent[1024];
    const char *equals = strchr(c->typed, '='), *slash = strrchr(c->typed, '/');
    const char *end = equals ? equals : slash ? slash : c->typed;
    if ((size_t)snprintf(parent, sizeof(parent), "%.*s", (int)(end - c->typed), c->typed) >=
        sizeof(parent))
        return;
    c->before = equals || slash ? c->typed : "/";
    c->before_bytes = equals || slash ? (size_t)(end - c->typed) + 1 : 0;
    if (equals) {
        for (size_t i = 0; i < sizeof(named_values) / sizeof(named_values[0]); i++)
            if (strcmp(named_values[i].pointer, parent) == 0)
                (void)cs_listed_each(named_values[i].section, offer, c);
        return;
    }
    if (!slash) { /* nothing typed: all pointers begin with "/" */
        if (!*c->typed)
            fprintf(c->out, "%s/\n", c->option);
        return;
    }
    const cJSON *there = find(root, parent);
    offer_members(c, there);
    for (size_t i = 0; i < N_SCHEMA; i++) {
        if (strcmp(schema[i].parent, parent) != 0)
            continue;
        const cJSON *kind = schema[i].kind ? find(root, schema[i].kind) : NULL;
        offer_fields(c, schema[i].fields, there);
        cs_arena arena;
        cs_arena_init(&arena);
        if (cJSON_IsString(kind))
            offer_fields(c, cs_listed_fields(schema[i].section, kind->valuestring, &arena), there);
        cs_arena_finish(&arena);
    }
}

/* Loads the first word that is a JSON file; NULL: none. */
static cJSON *load(const char *const *words, size_t n)
{
    cJSON *root = NULL;
    for (size_t i = 1; i + 1 < n; i++)
        if (words[i][0] != '-' && strstr(words[i], ".json") &&
            cs_json_load(words[i], &root, NULL) == CS_OK)
            return root;
    return NULL;
}

/* ---- options and words ---- */

static const cs_option *find_option(const cs_command *command, const char *word)
{
    const cs_option *option;
    for (size_t i = 0; (option = cs_command_option(command, i)); i++) {
        if (word[0] == '-' && word[1] == '-' && strcmp(word + 2, option->name) == 0)
            return option;
        if (word[0] == '-' && option->letter && word[1] == option->letter && word[2] == '\0')
            return option;
    }
    return NULL;
}

static void offer_names(completion *c, const char *names, const char *const *words, size_t n)
{
    if (strcmp(names, CS_NAMES_POINTERS) == 0) {
        cJSON *root = load(words, n);
        offer_pointers(c, root);
        cJSON_Delete(root);
        return;
    }
    /* the last of comma-separated names */
    const char *comma = strrchr(c->typed, ',');
    c->before = c->typed;
    c->before_bytes = comma ? (size_t)(comma + 1 - c->typed) : 0;
    (void)cs_listed_each(names, offer, c);
}

static void offer_options(completion *c, const cs_command *command)
{
    char word[64];
    const cs_option *option;
    for (size_t i = 0; (option = cs_command_option(command, i)); i++)
        offer(c, (snprintf(word, sizeof(word), "--%s", option->name), word), option->doc);
}

/* Number of words before the last one that are not options. */
static size_t count_words(const cs_command *command, const char *const *words, size_t n)
{
    size_t count = 0;
    for (size_t i = 1; i + 1 < n; i++) {
        const cs_option *option = find_option(command, words[i]);
        i += option && option->argument;
        count += words[i][0] != '-' && !option;
    }
    return count;
}

/* Splits a last word "--name=VALUE" and returns its option; NULL if it is not an option with an
 * argument. */
static const cs_option *divide(completion *c, const cs_command *command, char *name, size_t size)
{
    const char *equals = strchr(c->typed, '=');
    if (strncmp(c->typed, "--", 2) != 0 || !equals || (size_t)(equals - c->typed) + 2 > size)
        return NULL;
    snprintf(name, size, "%.*s", (int)(equals - c->typed), c->typed);
    const cs_option *option = find_option(command, name);
    if (!option || !option->argument)
        return NULL;
    snprintf(name, size, "--%s=", option->name);
    c->option = name;
    c->typed = equals + 1;
    return option;
}

void cs_complete(const char *const *words, size_t n, FILE *out)
{
    char name[64];
    completion c = {.out = out, .option = "", .typed = n > 0 ? words[n - 1] : ""};
    const cs_command *command = n > 1 ? cs_command_find(words[0]) : NULL;
    if (n < 2) {
        offer_commands(&c);
        offer(&c, "--help", "explain the program");
        offer(&c, "--version", "print the version");
    }
    if (!command)
        return;
    const cs_option *option = n > 2 ? find_option(command, words[n - 2]) : NULL;
    if (!option || !option->argument)
        option = divide(&c, command, name, sizeof(name));
    if (option) {
        offer_words(&c, option->choices);
        if (option->names)
            offer_names(&c, option->names, words, n);
        if (!*c.option && !option->choices &&
            (!option->names || strcmp(option->names, "devices") == 0))
            fprintf(c.out, "%s\n", files_word);
    } else if (c.typed[0] == '-')
        offer_options(&c, command);
    else {
        const size_t position = count_words(command, words, n);
        const char *names = position < 2 ? command->names[position] : NULL;
        if (position == 0 && command->choices == cs_choose_command)
            offer_commands(&c);
        else if (position == 0)
            offer_words(&c, command->choices);
        if (names)
            (void)cs_listed_each(names, offer, &c);
        if ((position > 0 || !command->choices) && position < command->max_words)
            fprintf(c.out, "%s\n", files_word);
    }
}

#include "sim/study/sweep/sweep-runs.h"

#include "sim/base/text-stream.h"
#include "sim/base/text.h"
#include "sim/run/print/report.h"

#include <stdlib.h>
#include <string.h>

enum { PROBES = 64 };

/* ---- one point ---- */

/* Runs in several threads at a time: all that it touches is its own. */
static cs_status run_point(const void *context, const cJSON *document, const cs_progress *progress,
                           cJSON **result, cs_error *error)
{
    const cs_swept *s = context;
    cs_scenario scenario = {0};
    cs_simulation simulation = {0};
    cs_simulation_options how = {.no_hash = !s->sweep.keep_results, .progress = progress};
    cs_status status =
        s->sweep.keep_results
            ? cs_scenario_read_watched(document, s->path, progress, &scenario, error)
            : cs_scenario_read_point(document, s->path, s->platforms, progress, &scenario, error);
    if (status == CS_OK)
        status = cs_simulate(&scenario, &how, &simulation, error);
    if (status == CS_OK) {
        *result = s->sweep.keep_results ? cs_report_json(&scenario, &simulation)
                                        : cs_report_json_figures(&scenario, &simulation);
        if (!*result)
            status = cs_error_no_memory(error);
    }
    cs_simulation_finish(&simulation);
    cs_scenario_finish(&scenario);
    return status;
}

/* ---- the base ---- */

/* Takes name and resolved text from a document, if it is a scenario. */
static cs_status resolve(cs_swept *s, const cJSON *document, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_status status = cs_scenario_read(document, s->path, &scenario, error);
    if (status != CS_OK)
        return status;
    s->warnings = scenario.warnings;
    bool varied = false;
    for (uint32_t a = 0; a < s->sweep.space.n_axes; a++)
        varied |= strncmp(s->sweep.space.axes[a].pointer, "/runtime", strlen("/runtime")) == 0;
    if (scenario.origins.is_assumed && !varied)
        (void)cs_json_invalid(
            &(cs_json_place){.up = &(cs_json_place){.file = s->path}, .key = "runtime"},
            &s->warnings, "assumed, for each point the usual one, such as \"%s\"",
            scenario.origins.runtime);
    if (!s->resolved) {
        s->name = strdup(scenario.name);
        s->resolved = strdup(scenario.resolved);
        if (!s->name || !s->resolved)
            status = cs_error_no_memory(error);
    }
    cs_scenario_finish(&scenario);
    return status;
}

/* Whether a message says that nothing has a key that is varied, or one on the way to it. */
static bool tells_unknown_key(const cs_space *space, const cs_error *said)
{
    cs_error_message message;
    for (uint32_t i = 0; cs_error_message_at(said, i, &message); i++) {
        const size_t length = message.kind == CS_ERROR_UNKNOWN_KEY ? strlen(message.subject) : 0;
        for (uint32_t a = 0; length > 0 && a < space->n_axes; a++) {
            const char *pointer = space->axes[a].pointer;
            if (strncmp(pointer, message.subject, length) == 0 &&
                (pointer[length] == '/' || pointer[length] == '\0'))
                return true;
        }
    }
    return false;
}

/* A key that no point knows is a slip of the pen, to be told before thousands of points say so. A
 * key of one schedule only is none when the schedule is varied too. */
static cs_status probe(cs_swept *s, cs_error *error)
{
    const cs_space *space = &s->sweep.space;
    cs_error first, other;
    cs_status status = CS_OK;
    cs_error_init(&first);
    for (uint32_t i = 0; i < PROBES; i++) {
        cs_error *said = i == 0 ? &first : &other;
        cJSON *document = cJSON_Duplicate(s->base, true);
        uint32_t point = (uint32_t)((uint64_t)i * space->n_points / PROBES);
        cs_error_init(said);
        if (!document)
            return cs_error_no_memory(error);
        status = cs_space_apply(space, point, s->sweep.origin, document, error);
        cs_status read = status == CS_OK ? resolve(s, document, said) : status;
        cJSON_Delete(document);
        if (status != CS_OK || read == CS_OK || !tells_unknown_key(space, said))
            return status;
    }
    cs_error_add_all(error, &first);
    return CS_INVALID;
}

/* A base that is no scenario without the values of a point is stored as it stands. */
static cs_status take_base(cs_swept *s, cs_error *error)
{
    cs_error ignored;
    cs_error_init(&ignored);
    cs_status status = resolve(s, s->base, &ignored);
    if (status == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    status = probe(s, error);
    if (status != CS_OK || s->resolved)
        return status;
    const char *name = cJSON_GetStringValue(cs_json_member(s->base, "name"));
    s->name = strdup(name ? name : "sweep");
    s->resolved = cs_json_print(s->base);
    return s->name && s->resolved ? CS_OK : cs_error_no_memory(error);
}

cs_status cs_swept_prepare(cs_swept *s, cs_error *error)
{
    cJSON_DeleteItemFromObjectCaseSensitive(s->base, "sweep");
    s->sweep.base = s->base;
    s->sweep.run = run_point;
    s->sweep.context = s;
    s->platforms = cs_kept_platforms_create();
    return s->platforms ? take_base(s, error) : cs_error_no_memory(error);
}

void cs_swept_init(cs_swept *s, const char *path)
{
    *s = (cs_swept){.path = path};
    cs_space_init(&s->sweep.space);
}

void cs_swept_finish(cs_swept *s)
{
    cs_space_finish(&s->sweep.space);
    cs_kept_platforms_destroy(s->platforms);
    cJSON_Delete(s->base);
    free(s->name);
    free(s->resolved);
}

/* ---- points that failed ---- */

static uint32_t first_failed(const cs_sweep_results *results)
{
    uint32_t i = 0;
    while (!results->errors[i])
        i++;
    return i;
}

/* A section whose keys depend on one of them. */
typedef struct kind_section {
    const char *name, *key;
    char prefix[32]; /* "/schedule/" */
} kind_section;

static bool is_within(const kind_section *section, const char *pointer)
{
    return strncmp(pointer, section->prefix, strlen(section->prefix)) == 0;
}

/* Whether a member of the section, or a key in it, is varied. */
static bool is_varied(const cs_space *space, const kind_section *section, const char *member)
{
    const size_t length = strlen(member);
    bool varied = false;
    for (uint32_t a = 0; a < space->n_axes; a++) {
        const char *pointer = space->axes[a].pointer, *key = pointer + strlen(section->prefix);
        varied |= is_within(section, pointer) && strncmp(key, member, length) == 0 &&
                  (key[length] == '/' || key[length] == '\0');
    }
    return varied;
}

/* Leaves what is varied, but for the unknown key. */
static void strip(const cs_space *space, const kind_section *section, const char *unknown,
                  cJSON *object)
{
    for (cJSON *member = object ? object->child : NULL, *next; member; member = next) {
        next = member->next;
        if (!is_varied(space, section, member->string) ||
            strcmp(unknown + strlen(section->prefix), member->string) == 0)
            cJSON_Delete(cJSON_DetachItemViaPointer(object, member));
    }
}

/* The section as it is at a point: that of the base with what is varied; where it has no such key,
 * only what is varied besides. The caller frees it; NULL when memory runs out. */
static char *section_at(const cs_swept *s, const cs_sweep_results *results,
                        const kind_section *section, uint32_t point)
{
    const cs_space *space = &s->sweep.space;
    const char *unknown = results->unknown_keys[point];
    cJSON *document = cJSON_Duplicate(s->base, true);
    cs_error ignored;
    cs_error_init(&ignored);
    char *line = NULL;
    if (document && cs_space_apply(space, point, s->sweep.origin, document, &ignored) == CS_OK) {
        cJSON *object = cJSON_GetObjectItemCaseSensitive(document, section->name);
        if (unknown && is_within(section, unknown))
            strip(space, section, unknown, object);
        line = cs_json_line(object);
    }
    cJSON_Delete(document);
    return line;
}

/* Of a grid one point stands for all that have the section in common. */
static bool stands_for_section(const cs_space *space, const kind_section *section, uint32_t point)
{
    bool stands = true;
    for (uint32_t a = 0; a < space->n_axes && space->form == CS_SPACE_GRID; a++)
        stands &=
            is_within(section, space->axes[a].pointer) || cs_space_position(space, point, a) == 0;
    return stands;
}

enum { MOST_SECTIONS = 8 };

/* "/schedule={...},{...}": all that the section is at the points, each once; of many the first
 * ones. */
static char *whole_section(const cs_swept *s, const cs_sweep_results *results,
                           const kind_section *section)
{
    char *text = NULL, *listed[MOST_SECTIONS];
    size_t length;
    uint32_t n = 0;
    FILE *out = cs_text_stream(&text, &length);
    if (!out)
        return NULL;
    fprintf(out, "/%s=", section->name);
    for (uint32_t point = 0; point < results->n_points && n <= MOST_SECTIONS; point++) {
        if (!stands_for_section(&s->sweep.space, section, point))
            continue;
        char *line = section_at(s, results, section, point);
        bool known = !line;
        for (uint32_t i = 0; i < n && !known; i++)
            known = strcmp(listed[i], line) == 0;
        if (known) {
            free(line);
            continue;
        }
        fprintf(out, "%s%s", n > 0 ? "," : "", n < MOST_SECTIONS ? line : "...");
        if (n < MOST_SECTIONS)
            listed[n] = line;
        else
            free(line);
        n++;
    }
    for (uint32_t i = 0; i < n && i < MOST_SECTIONS; i++)
        free(listed[i]);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Where the key that decides which others a section has is varied with some of these, or alone, not
 * all go with each of its values. Prints how the section is varied as a whole. */
static void print_hint(const cs_swept *s, const cs_sweep_results *results, uint32_t point,
                       FILE *out)
{
    static const kind_section sections[] = {{"schedule", "kind", "/schedule/"},
                                            {"platform", "topology", "/platform/"}};
    const cs_space *space = &s->sweep.space;
    const char *unknown = results->unknown_keys[point];
    for (size_t k = 0; k < sizeof(sections) / sizeof(sections[0]); k++) {
        const kind_section *section = &sections[k];
        bool varied = false;
        if (!is_within(section, unknown) || strchr(unknown + strlen(section->prefix), '/'))
            continue;
        for (uint32_t a = 0; a < space->n_axes; a++)
            varied |= is_within(section, space->axes[a].pointer) &&
                      strcmp(space->axes[a].pointer + strlen(section->prefix), section->key) == 0;
        char *whole = varied ? whole_section(s, results, section) : NULL;
        if (whole) {
            fputs("; vary the whole section where keys differ: --vary ", out);
            cs_text_print_word(out, whole);
        }
        free(whole);
    }
}

/* "3 of 8 points failed; the first, {"/schedule/kind": "dp"}: what is wrong"; NULL when memory runs
 * out. */
static char *failure_text(const cs_swept *s, const cs_sweep_results *results, uint32_t point)
{
    char *text = NULL, *set = cs_space_describe(&s->sweep.space, point);
    size_t length;
    FILE *out = cs_text_stream(&text, &length);
    const char *message = results->errors[point];
    if (out) {
        if (results->n_points == 1)
            fprintf(out, "the only point failed");
        else if (results->n_failed == results->n_points)
            fprintf(out, "all of %u points failed; the first", results->n_points);
        else
            fprintf(out, "%u of %u points failed; the first", results->n_failed, results->n_points);
        fprintf(out, ", %s: %.*s", set ? set : "", (int)strcspn(message, "\n"), message);
        if (results->unknown_keys[point])
            print_hint(s, results, point, out);
    }
    free(set);
    if (out && fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

cs_status cs_swept_failures(const cs_swept *s, const cs_sweep_results *results, char **said,
                            cs_error *error)
{
    *said = NULL;
    if (results->n_failed == 0)
        return CS_OK;
    char *text = failure_text(s, results, first_failed(results));
    if (!text)
        return cs_error_no_memory(error);
    if (results->n_failed < results->n_points) {
        *said = text;
        return CS_OK;
    }
    cs_error_add(error, CS_FAILED, "%s", text);
    free(text);
    return CS_FAILED;
}

/* ---- as text ---- */

char *cs_sweep_command(const char *path, const cs_sweep_word *words, size_t n)
{
    char *text = NULL;
    size_t length;
    FILE *out = cs_text_stream(&text, &length);
    if (!out)
        return NULL;
    fputs("sim sweep ", out);
    cs_text_print_word(out, path);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, " --%s", words[i].option);
        if (words[i].value) {
            fputc(' ', out);
            cs_text_print_word(out, words[i].value);
        }
    }
    bool failed = ferror(out);
    if (fclose(out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

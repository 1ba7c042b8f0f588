#include "schedules/plan/chain-fields.h"
#include "schedules/plan/planner.h"
#include "sim/base/terms.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/cli/command.h"
#include "sim/cli/listed.h"
#include "sim/cli/scenario-option.h"
#include "sim/model/foreign/huggingface.h"
#include "sim/model/zoo/zoo.h"
#include "sim/run/figures.h"
#include "sim/run/print/wrap.h"
#include "sim/run/scenario/runtime-section.h"
#include "sim/run/scenario/workload.h"
#include "sim/study/advise/advise-section.h"
#include "sim/study/sweep/sweep-section.h"
#include "sim/study/validate/points.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const cs_option options[] = {
    {"json", 0, NULL, "Print one JSON object"},
    {"markdown", 0, NULL, "Print tables in Markdown, as the reference pages have them"},
    {0},
};

/* An item with a name, a source and parameters. */
typedef struct entry {
    const char *name, *summary, *source;
    const cs_field *fields;
    const cs_formula *formulas; /* closed forms of a schedule; or NULL */
    const char *unit;           /* unit of a metric; or NULL */
    const char *stands_for;     /* JSON that a machine or a model abbreviates; or NULL */
    const char *section;        /* section of a scenario that stands_for belongs to */
    const char *family;         /* family of a model, or its own name; or "" */
    const char *search;         /* how searches for plans try a schedule; or NULL */
    const cs_term *term;        /* or NULL */
    bool is_runtime;
    const cs_facts_kind *kind; /* kind of a description with aliases; or NULL */
    char text[300], more[500]; /* buffers for the texts above */
    char described[1000];      /* buffer of stands_for */
    char of[64];               /* buffer of family */
} entry;

static const cs_field none[] = {{0}};

/* The fields of an entry, or the keys of its family, in the arena. */
static const cs_field *fields_of(const entry *one, cs_arena *arena)
{
    const cs_zoo_entry *family = NULL;
    if (!one->family || cs_zoo_find(one->family, arena, &family, NULL) != CS_OK)
        return one->fields;
    return family->fields;
}

static bool schedule_at(size_t i, entry *out)
{
    const cs_schedule *at = cs_schedules[i];
    if (!at)
        return false;
    *out = (entry){at->name, at->summary, at->source, at->fields, at->formulas};
    if (at->search == CS_SEARCH_NEVER)
        return true;
    size_t used =
        (size_t)snprintf(out->text, sizeof(out->text), "`sim advise` tries it%s%s%s",
                         at->search == CS_SEARCH_ON_REQUEST ? " on request" : "",
                         at->stages.name ? ", with " : "", at->stages.name ? at->stages.name : "");
    for (size_t k = 0; at->stages.name && at->stages.tried[k] > 0; k++)
        used += (size_t)snprintf(out->text + used, sizeof(out->text) - used, "%s%u",
                                 k > 0 ? ", " : " ", at->stages.tried[k]);
    out->search = out->text;
    return true;
}

static bool planner_at(size_t i, entry *out)
{
    const cs_planner *at = cs_planners[i];
    if (at)
        *out = (entry){at->name, at->summary, at->source, at->fields};
    return at != NULL;
}

/* Copies JSON and adds a space after each comma outside strings. */
static void copy_spaced(const char *from, char *to, size_t size)
{
    bool quoted = false;
    for (const char *end = to + size - 2; *from && to < end; from++) {
        quoted = (*from == '"') != quoted;
        *to++ = *from;
        if (*from == ',' && !quoted)
            *to++ = ' ';
    }
    *to = '\0';
}

/* Topologies come first, then machines. */
static bool topology_at(size_t i, entry *out)
{
    size_t n = 0;
    while (cs_topologies[n] && n < i)
        n++;
    const cs_topology *at = cs_topologies[n];
    const char *machine = at ? NULL : cs_facts_name(cs_machine_kind.folder, i - n);
    if (at)
        *out = (entry){at->name, at->summary, at->source, at->fields};
    else if (machine) {
        /* Describe a machine by its platform. */
        cs_arena arena;
        const cs_topology *made = NULL;
        const cs_json_place place = {.file = NULL};
        cs_arena_init(&arena);
        *out = (entry){.name = machine, .fields = none, .kind = &cs_machine_kind};
        if (cs_topology_named(machine, &place, &arena, &made, NULL) == CS_OK) {
            snprintf(out->text, sizeof(out->text), "%s", made->summary);
            snprintf(out->more, sizeof(out->more), "%s", made->source ? made->source : "");
            copy_spaced(made->stands_for, out->described, sizeof(out->described));
            out->section = "platform";
            out->fields = made->fields;
            out->stands_for = out->described;
        }
        out->summary = out->text;
        out->source = out->more;
        cs_arena_finish(&arena);
    }
    return at || machine;
}

/* Describes a model by its family and the parameters that it states. */
static void describe_model(const char *name, entry *out)
{
    cJSON *root = NULL;
    *out = (entry){.name = name, .fields = none, .kind = &cs_model_kind};
    out->summary = out->text;
    out->source = out->more;
    if (cs_facts_load(&cs_model_kind, name, NULL, &root, NULL) != CS_OK)
        return;
    const cJSON *published = cs_json_member(root, "published");
    const cJSON *parameters = cs_json_member(root, "parameters");
    const char *of = cJSON_GetStringValue(cs_json_member(root, "family"));
    const char *summary = cJSON_GetStringValue(cs_json_member(root, "summary"));
    const char *source = cJSON_GetStringValue(cs_json_member(root, "source"));
    const char *counted = cJSON_GetStringValue(cs_json_member(published, "source"));
    snprintf(out->text, sizeof(out->text), "%s", summary ? summary : name);
    if (published)
        snprintf(out->more, sizeof(out->more), "%s; %.0f parameters: %s", source ? source : "",
                 cJSON_GetNumberValue(cs_json_member(published, "parameters")),
                 counted ? counted : "");
    else
        snprintf(out->more, sizeof(out->more), "%s", source ? source : "");
    char *keys = parameters ? cs_json_line(parameters) : NULL;
    char text[sizeof(out->described)];
    snprintf(text, sizeof(text), "{\"name\": \"%s\",\"parameters\": %s}", of ? of : "",
             keys ? keys : "{}");
    copy_spaced(text, out->described, sizeof(out->described));
    out->stands_for = out->described;
    out->section = "model";
    snprintf(out->of, sizeof(out->of), "%s", of ? of : "");
    out->family = out->of;
    free(keys);
    cJSON_Delete(root);
}

static void describe_family(const char *name, entry *out)
{
    const cs_zoo_entry *family = NULL;
    cs_arena arena;
    cs_arena_init(&arena);
    *out = (entry){.name = name, .fields = NULL, .family = name};
    if (cs_zoo_find(name, &arena, &family, NULL) == CS_OK) {
        snprintf(out->text, sizeof(out->text), "%s", family->summary);
        snprintf(out->more, sizeof(out->more), "%s", family->source);
    }
    out->summary = out->text;
    out->source = out->more;
    cs_arena_finish(&arena);
}

static bool model_type_at(size_t i, entry *out)
{
    cJSON *root = NULL;
    const char *name = cs_facts_name(cs_model_type_kind.folder, i);
    if (!name)
        return false;
    *out = (entry){.name = name, .fields = none};
    out->summary = out->text;
    out->source = out->more;
    if (cs_facts_load(&cs_model_type_kind, name, NULL, &root, NULL) != CS_OK)
        return true;
    const char *family = cJSON_GetStringValue(cs_json_member(root, "family"));
    const char *source = cJSON_GetStringValue(cs_json_member(root, "source"));
    snprintf(out->text, sizeof(out->text), "config.json of transformers with this model_type: %s",
             family ? family : "");
    snprintf(out->more, sizeof(out->more), "%s", source ? source : "");
    cJSON_Delete(root);
    return true;
}

enum { MODEL_KINDS = 3 }; /* they come before the named models */

static bool model_at(size_t i, entry *out)
{
    const entry entries[MODEL_KINDS] = {
        {"file", "layers from a file (docs/reference/model-file.md), as `sim import` writes it",
         NULL, cs_scenario_model_fields},
        {"uniform", "a chain of equal layers", NULL, cs_scenario_uniform_fields},
        {"name", "a name below, or a config.json", NULL, cs_workload_fields},
    };
    const size_t n = sizeof(entries) / sizeof(entries[0]);
    size_t families = 0;
    while (cs_zoo_name(families))
        families++;
    const char *model =
        i < n + families ? NULL : cs_facts_name(cs_model_kind.folder, i - n - families);
    if (i < n)
        *out = entries[i];
    else if (i < n + families)
        describe_family(cs_zoo_name(i - n), out);
    else if (model)
        describe_model(model, out);
    return i < n + families || model;
}

/* Fields to print: a model shows its family's keys by its own parameters only. */
static const cs_field *shown_fields(const entry *one, cs_arena *arena)
{
    return one->fields ? one->fields : fields_of(one, arena);
}

static bool figure_at(size_t i, entry *out)
{
    const cs_run_figure *at = &cs_run_figures[i];
    if (at->key)
        *out = (entry){at->key, at->meaning, NULL, none, .unit = cs_unit_word(at->unit)};
    return at->key != NULL;
}

static bool device_at(size_t i, entry *out)
{
    cs_accelerator device = {0};
    const char *name = cs_facts_name(cs_device_kind.folder, i);
    if (!name)
        return false;
    *out = (entry){.name = name, .fields = none, .kind = &cs_device_kind};
    if (cs_accelerator_load(name, NULL, &device, NULL) == CS_OK) {
        size_t used =
            (size_t)snprintf(out->text, sizeof(out->text), "%s; memory %s, %s; peaks", device.title,
                             cs_units_text((double)device.memory, CS_QUANTITY_BYTES, 4).s,
                             cs_units_text(device.bandwidth, CS_QUANTITY_BANDWIDTH, 4).s);
        const char *before = "";
        for (int p = 0; p < CS_N_PRECISIONS && used < sizeof(out->text); p++) {
            if (device.peaks[p] > 0) {
                used +=
                    (size_t)snprintf(out->text + used, sizeof(out->text) - used, "%s %s %s", before,
                                     cs_precision_names[p],
                                     cs_units_text(device.peaks[p], CS_QUANTITY_FLOP_RATE, 4).s);
                before = ",";
            }
        }
        const double winograd = device.groups[CS_GROUP_WINOGRAD].compute;
        if (winograd > 0 && used < sizeof(out->text))
            snprintf(out->text + used, sizeof(out->text) - used,
                     ", Winograd convolutions at %g of fp32", winograd);
        snprintf(out->more, sizeof(out->more), "%s; %s", device.peak_source,
                 device.bandwidth_source);
    }
    cs_accelerator_finish(&device);
    out->summary = out->text;
    out->source = out->more;
    return true;
}

static bool section_at(size_t i, entry *out)
{
    const entry entries[] = {
        {"scenario", "the whole file", NULL, cs_scenario_fields},
        {"platform", "keys that all topologies have", NULL, cs_scenario_platform_fields},
        {"schedule", "keys that all schedules have", NULL, cs_scenario_schedule_fields},
        {"parallel", "how layers are split over devices", NULL, cs_scenario_parallel_fields},
        {"runtime", "the conventions of a training framework", NULL, cs_scenario_runtime_fields},
        {"memory", "memory held by a framework and its libraries", NULL, cs_scenario_memory_fields},
        {"offload", "activations offloaded to the memory of the host", NULL,
         cs_scenario_offload_fields},
        {"slowdown", "in platform/slowdown", NULL, cs_scenario_slowdown_fields},
        {"jitter", "a spread, in platform/jitter and in platform/stragglers", NULL,
         cs_noise_spread_fields},
        {"routing", "in parallel/expert_routing", NULL, cs_scenario_routing_fields},
        {"rule", "in parallel/rules", NULL, cs_scenario_rule_fields},
        {"stragglers", "in platform/stragglers", NULL, cs_scenario_stragglers_fields},
        {"background", "in platform/background", NULL, cs_scenario_background_fields},
        {"chain", "how planners count the time and memory of layers", NULL, cs_chain_fields},
        {"collectives", "how collectives are modelled", NULL, cs_lower_fields},
        {"level", "in collectives/levels", NULL, cs_lower_level_fields},
        {"dispatch", "in collectives", NULL, cs_lower_dispatch_fields},
        {"sweep", "what `sim sweep` varies", NULL, cs_sweep_fields},
        {"advise", "which plans `sim advise` tries", NULL, cs_advise_fields},
    };
    if (i < sizeof(entries) / sizeof(entries[0]))
        *out = entries[i];
    return i < sizeof(entries) / sizeof(entries[0]);
}

/* Loads the description of a runtime. `own`: without following "like". NULL: it cannot be
 * loaded. */
static cJSON *load_runtime(const char *name, bool own)
{
    const char *text = own ? cs_facts_text(cs_runtime_kind.folder, name) : NULL;
    cJSON *root = NULL;
    const cs_status status = text ? cs_json_parse(name, text, strlen(text), &root, NULL)
                                  : cs_facts_load(&cs_runtime_kind, name, NULL, &root, NULL);
    return status == CS_OK ? root : NULL;
}

static bool runtime_at(size_t i, entry *out)
{
    const char *name = cs_facts_name(cs_runtime_kind.folder, i);
    if (!name)
        return false;
    *out = (entry){.name = name, .fields = none, .is_runtime = true};
    cJSON *root = load_runtime(name, true);
    const char *title = cJSON_GetStringValue(cs_json_member(root, "title"));
    snprintf(out->text, sizeof(out->text), "%s", title ? title : "");
    out->summary = out->text;
    cJSON_Delete(root);
    return true;
}

static bool point_at(size_t i, entry *out)
{
    const entry entries[] = {
        {"run", "a run description", NULL, cs_description_fields},
        {"run.model", "the network", NULL, cs_description_model_fields},
        {"run.hardware", "the GPUs and their links", NULL, cs_description_hardware_fields},
        {"run.parallel", "parallel sizes", NULL, cs_description_parallel_fields},
        {"run.batch", "batch sizes", NULL, cs_description_batch_fields},
        {"run.options", "other options of the run", NULL, cs_description_options_fields},
        {"run.profiled_ms", "measured times of a pipeline rank for one micro-batch", NULL,
         cs_description_profile_fields},
        {"point", "a measured run: further keys", NULL, cs_point_fields},
        {"point.measured", "measured time and memory", NULL, cs_point_measured_fields},
    };
    if (i < sizeof(entries) / sizeof(entries[0]))
        *out = entries[i];
    return i < sizeof(entries) / sizeof(entries[0]);
}

static bool term_at(size_t i, entry *out)
{
    const cs_term *at = &cs_terms[i];
    if (at->words)
        *out = (entry){.name = at->words[0], .summary = at->text, .fields = none, .term = at};
    return at->words != NULL;
}

static const struct {
    const char *name;
    bool (*at)(size_t i, entry *out);
    size_t first; /* index of the first entry whose name a user may use */
} sections[] = {
    {"schedules", schedule_at},     {"planners", planner_at},
    {"topologies", topology_at},    {"models", model_at, MODEL_KINDS},
    {"devices", device_at},         {"sections", section_at},
    {"figures", figure_at},         {"points", point_at},
    {"runtimes", runtime_at},       {"terms", term_at},
    {"model-types", model_type_at},
};

enum { N_SECTIONS = sizeof(sections) / sizeof(sections[0]) };

bool cs_listed_each(const char *section,
                    void (*found)(void *context, const char *name, const char *summary),
                    void *context)
{
    for (size_t s = 0; s < N_SECTIONS; s++) {
        entry one;
        if (strcmp(sections[s].name, section) != 0)
            continue;
        for (size_t i = sections[s].first; sections[s].at(i, &one); i++)
            found(context, one.name, one.summary);
        return true;
    }
    return false;
}

const cs_field *cs_listed_fields(const char *section, const char *name, cs_arena *arena)
{
    for (size_t s = 0; s < N_SECTIONS; s++) {
        entry one;
        for (size_t i = 0; strcmp(sections[s].name, section) == 0 && sections[s].at(i, &one); i++)
            if (strcmp(one.name, name) == 0)
                return fields_of(&one, arena);
    }
    return NULL;
}

static const char *const section_names[] = {"schedules", "planners", "topologies",  "models",
                                            "devices",   "sections", "figures",     "points",
                                            "runtimes",  "terms",    "model-types", NULL};

enum { FIELD_COLUMN = 31, CONVENTION_INDENT = 10 };

/* Whether the command line asks for a section. Its words are: none, a section, a section and an
 * entry, or only the name of entries in any section. */
static bool wants_section(const cs_arguments *arguments, size_t section)
{
    return arguments->n_words == 0 ||
           (arguments->n_words == 1 && strcmp(arguments->words[0], sections[section].name) == 0);
}

static bool wants(const cs_arguments *arguments, size_t section, const entry *one)
{
    if (arguments->n_words == 2 && strcmp(arguments->words[0], sections[section].name) != 0)
        return false;
    const char *word = arguments->n_words > 0 ? arguments->words[arguments->n_words - 1] : "";
    return wants_section(arguments, section) || strcmp(word, one->name) == 0 ||
           (one->term && cs_term_find(word) == one->term) ||
           (one->kind && cs_facts_find(one->kind, word) == one->name);
}

static bool wants_any(const cs_arguments *arguments, size_t section)
{
    entry one;
    bool any = wants_section(arguments, section);
    for (size_t i = 0; !any && sections[section].at(i, &one); i++)
        any = wants(arguments, section, &one);
    return any;
}

/* Returns the relation of a condition in words. */
static const char *relation_of(const char *relation)
{
    const bool or_equal = *relation && relation[1] == '=';
    switch (*relation) {
    case '!':
        return " not ";
    case '>':
        return or_equal ? " at least " : " above ";
    case '<':
        return or_equal ? " at most " : " below ";
    default:
        return *relation == '=' ? " " : "";
    }
}

/* Escapes text for Markdown. */
static void print_escaped_part(const char *text, size_t length, FILE *out)
{
    for (const char *end = text + length; text < end; text++) {
        if (strchr("|*<", *text))
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void print_escaped(const char *text, FILE *out)
{
    print_escaped_part(text, strlen(text), out);
}

enum { ONE_LINE = 0 }; /* value of `column` for Markdown */

/* Prints conditions: "with /parallel/zero 1, /model/device a100*"; wrapped after `column`, or on
 * one line. */
static void print_condition(const char *text, size_t column, FILE *out)
{
    for (const char *before = "with"; *text; before = ",") {
        const size_t key = strcspn(text, "!=<> "), sign = strspn(text + key, "!=<>");
        const size_t value = strcspn(text + key + sign, " ");
        const char *relation = sign > 0 ? relation_of(text + key) : "";
        /* with the characters around it */
        const size_t length = 1 + key + strlen(relation) + value + 1;
        const bool fits = column == ONE_LINE || column + length <= CS_WRAP_REPORT;
        fprintf(out, "%s%s%*s", before, fits ? "" : "\n", fits ? 1 : CONVENTION_INDENT, "");
        fprintf(out, "%.*s%s", (int)key, text, relation);
        if (column == ONE_LINE) {
            print_escaped_part(text + key + sign, value, out);
        } else {
            fwrite(text + key + sign, 1, value, out);
            column = (fits ? column : CONVENTION_INDENT) + length;
        }
        text += key + sign + value;
        text += strspn(text, " ");
    }
}

/* Returns the text of a member; "" if missing. */
static const char *text_at(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cs_json_member(object, key));
    return text ? text : "";
}

/* Prints the value of a convention: JSON or, for a fact of the device, its place. Returns the
 * number of characters. */
static int print_value(const cJSON *convention, const char *before, const char *after, FILE *out)
{
    const cJSON *value = cs_json_member(convention, "value");
    const char *text = cJSON_GetStringValue(value);
    char *json = cs_json_line(value);
    const int used = fprintf(out, "%s%s%s", before,
                             text && *text == '/' ? text
                             : json               ? json
                                                  : "",
                             after);
    free(json);
    return used;
}

static void print_runtime(const cJSON *runtime, FILE *out)
{
    const cJSON *each;
    cJSON_ArrayForEach(each, cs_json_member(runtime, "conventions"))
    {
        const char *with = text_at(each, "with");
        int used = fprintf(out, "      %s", text_at(each, "key"));
        used += print_value(each, ": ", *with ? ", " : "", out);
        print_condition(with, used > 0 ? (size_t)used + strlen("with") : 1, out);
        fprintf(out, "\n%*s", CONVENTION_INDENT, "");
        cs_wrap(out, CONVENTION_INDENT, CONVENTION_INDENT, CS_WRAP_REPORT, text_at(each, "source"));
    }
    cJSON_ArrayForEach(each, cs_json_member(runtime, "rules"))
    {
        char line[512];
        if (!*text_at(each, "text"))
            continue;
        snprintf(line, sizeof(line), "%s (%s)", text_at(each, "text"), text_at(each, "source"));
        fputs("      ", out);
        cs_wrap(out, 6, CONVENTION_INDENT, CS_WRAP_REPORT, line);
    }
}

/* Returns the description of a term's meaning, which is a key of a scenario with a value
 * ("/parallel/zero: 3") or an entry of a section ("schedules/dp"); NULL: neither exists. The text
 * is in `one` or constant. */
static const char *describe_meaning(const char *meaning, entry *one)
{
    const char *name = cs_term_name(meaning), *begin = meaning + (*meaning == '/');
    const size_t length = strcspn(name, ":");
    char part[32];
    snprintf(part, sizeof(part), "%.*s", (int)strcspn(begin, "/"), begin);
    if (name == begin)
        snprintf(part, sizeof(part), "scenario");
    for (size_t s = 0; s < N_SECTIONS; s++) {
        for (size_t i = 0; sections[s].at(i, one); i++) {
            /* Find the entry, or the keys of this part of a scenario. */
            if (*meaning != '/' && strcmp(sections[s].name, part) == 0 &&
                strcmp(one->name, name) == 0)
                return one->summary;
            if (*meaning != '/' ||
                !((sections[s].at == section_at && strcmp(one->name, part) == 0) ||
                  (sections[s].at == model_at && strcmp(part, "model") == 0) ||
                  (sections[s].at == schedule_at && strcmp(part, "schedule") == 0)))
                continue;
            for (const cs_field *field = one->fields; field && field->name; field++)
                if (strncmp(field->name, name, length) == 0 && field->name[length] == '\0')
                    return field->doc;
        }
    }
    return NULL;
}

static void print_term(const cs_term *term, FILE *out)
{
    char others[400] = "also ";
    entry one;
    for (const char *const *word = term->words + 1; *word; word++)
        cs_text_format(others + strlen(others), sizeof(others) - strlen(others), "%s%s", *word,
                       word[1] ? ", " : "");
    if (term->words[1]) {
        fputs("      ", out);
        cs_wrap(out, 6, 6, CS_WRAP_REPORT, others);
    }
    for (const char *const *meaning = term->means; *meaning; meaning++) {
        const char *doc = describe_meaning(*meaning, &one);
        fprintf(out, "      %s%s", *meaning, doc ? "\n          " : "\n");
        if (doc)
            cs_wrap(out, 10, 10, CS_WRAP_REPORT, doc);
    }
}

bool cs_listed_term(const char *word, FILE *out)
{
    const cs_term *term = cs_term_find(word);
    if (!term)
        return false;
    fprintf(out, "%s: ", word);
    cs_wrap(out, strlen(word) + 2, 6, CS_WRAP_REPORT, term->text);
    print_term(term, out);
    return true;
}

static void print_details(const entry *one, FILE *out)
{
    cs_arena arena;
    cs_arena_init(&arena);
    if (one->term)
        print_term(one->term, out);
    if (one->source) {
        fputs("      ", out);
        cs_wrap(out, 6, 6, CS_WRAP_REPORT, one->source);
    }
    if (one->stands_for) {
        fputs("      ", out);
        const int used = fprintf(out, "\"%s\": ", one->section);
        cs_wrap(out, 6 + (size_t)used, 6, CS_WRAP_REPORT, one->stands_for);
    }
    for (const cs_formula *formula = one->formulas; formula && formula->text; formula++) {
        /* "closed form of the makespan: ..." */
        int used = fprintf(out, "      closed form of the %s%s: ", cs_figure_label(formula->figure),
                           formula->comparison ? " (for comparison only)" : "");
        cs_wrap(out, used > 0 ? (size_t)used : 0, 10, CS_WRAP_REPORT, formula->text);
    }
    if (one->search) {
        fputs("      ", out);
        cs_wrap(out, 6, 6, CS_WRAP_REPORT, one->search);
    }
    for (const cs_field *field = shown_fields(one, &arena); field->name; field++) {
        char expected[160], line[256];
        cs_field_expected(field, expected, sizeof(expected));
        const char *fallback = field->fallback && *field->fallback ? field->fallback : NULL;
        snprintf(line, sizeof(line), "%s%s%s", expected,
                 !field->fallback ? "; required"
                 : fallback       ? "; default "
                                  : "",
                 fallback ? fallback : "");
        fprintf(out, "      %-24s ", field->name);
        cs_wrap(out, FIELD_COLUMN, FIELD_COLUMN, CS_WRAP_REPORT, line);
        fprintf(out, "%*s", FIELD_COLUMN + 2, "");
        cs_wrap(out, FIELD_COLUMN + 2, FIELD_COLUMN + 2, CS_WRAP_REPORT, field->doc);
    }
    cs_arena_finish(&arena);
    if (one->is_runtime) {
        cJSON *runtime = load_runtime(one->name, false);
        print_runtime(runtime, out);
        cJSON_Delete(runtime);
    }
}

/* Writes an object as "compute 0.4, memory 0.8", or a plain value. Returns false if the object
 * contains objects. */
static bool describe_fact(const cJSON *fact, char *out, size_t size)
{
    const cJSON *each;
    char text[CS_JSON_DESCRIBED_BYTES];
    size_t used = 0;
    if (!cJSON_IsObject(fact)) {
        cs_text_format(out, size, "%s",
                       cJSON_IsString(fact) ? fact->valuestring
                                            : cs_json_describe(fact, text, sizeof(text)));
        return true;
    }
    cJSON_ArrayForEach(each, fact)
    {
        if (cJSON_IsObject(each))
            return false;
        if (strcmp(each->string, "source") == 0)
            continue;
        used += (size_t)cs_text_format(
            out + used, size - used, "%s%s %s", used > 0 ? ", " : "", each->string,
            cJSON_IsString(each) ? each->valuestring : cs_json_describe(each, text, sizeof(text)));
    }
    return true;
}

/* Prints facts, each followed by its source: its own or one of `sources`. */
static void print_facts(const cJSON *facts, const cJSON *sources, int indent, FILE *out)
{
    static const char *const apart[] = {"schema_version", "name",   "title",
                                        "aliases",        "except", "sources"};
    const cJSON *fact;
    char text[400];
    cJSON_ArrayForEach(fact, facts)
    {
        bool skip = false;
        for (size_t i = 0; indent == 6 && i < sizeof(apart) / sizeof(apart[0]); i++)
            skip |= strcmp(fact->string, apart[i]) == 0;
        if (skip)
            continue;
        if (!describe_fact(fact, text, sizeof(text))) {
            fprintf(out, "%*s%s\n", indent, "", fact->string);
            print_facts(fact, NULL, indent + 4, out);
            continue;
        }
        const cJSON *own = cs_json_member(fact, "source");
        const char *source =
            cJSON_GetStringValue(own ? own : cs_json_member(sources, fact->string));
        const int used = fprintf(out, "%*s%s: ", indent, "", fact->string);
        cs_wrap(out, (size_t)used, (size_t)indent + 4, CS_WRAP_REPORT, text);
        if (source) {
            fprintf(out, "%*s", indent + 4, "");
            cs_wrap(out, (size_t)indent + 4, (size_t)indent + 4, CS_WRAP_REPORT, source);
        }
    }
}

static void print_device(const char *name, FILE *out)
{
    cJSON *root;
    const cJSON *alias;
    if (cs_facts_load(&cs_device_kind, name, NULL, &root, NULL) != CS_OK)
        return;
    cJSON_ArrayForEach(alias, cs_json_member(root, "aliases"))
        fprintf(out, "%s%s", alias->prev->next ? ", " : "      also ", alias->valuestring);
    fputs(cs_json_member(root, "aliases") ? "\n" : "", out);
    print_facts(root, cs_json_member(root, "sources"), 6, out);
    cJSON_Delete(root);
}

static const char letters_of_forms[] =
    "In closed forms, P is the number of stages, s one of them, from 0, and M the number of "
    "micro-batches per mini-batch; f, b and c are the times of a forward, a backward and a "
    "message. If w occurs, it is the time of the gradients of weights, and b only the time of the "
    "gradients of inputs. All other letters are defined in the source. `sim run` says which closed "
    "forms hold for a run.";

static void print_section(const cs_arguments *arguments, size_t section, FILE *out)
{
    entry one;
    fprintf(out, "%s\n", sections[section].name);
    if (sections[section].at == schedule_at && arguments->n_words > 0) {
        fputs("      ", out);
        cs_wrap(out, 6, 6, CS_WRAP_REPORT, letters_of_forms);
    }
    for (size_t i = 0; sections[section].at(i, &one); i++) {
        if (!wants(arguments, section, &one))
            continue;
        int used = one.unit && strcmp(one.unit, "1") != 0
                       ? fprintf(out, "  %s (%s): ", one.name, one.unit)
                       : fprintf(out, "  %s: ", one.name);
        cs_wrap(out, used > 0 ? (size_t)used : 0, 6, CS_WRAP_REPORT, one.summary);
        if (one.kind == &cs_device_kind && !wants_section(arguments, section))
            print_device(one.name, out);
        else if (arguments->n_words > 0)
            print_details(&one, out);
    }
}

static void print_figure_row(const entry *one, FILE *out)
{
    fprintf(out, "| `%s` | %s | ", one->name, strcmp(one->unit, "1") == 0 ? "" : one->unit);
    print_escaped(one->summary, out);
    fputs(" |\n", out);
}

static void print_term_row(const entry *one, FILE *out)
{
    for (const char *const *word = one->term->words; *word; word++)
        fprintf(out, "%s`%s`", word == one->term->words ? "| " : ", ", *word);
    fputs(" | ", out);
    print_escaped(one->summary, out);
    fputs(" |\n", out);
}

static void print_markdown_entry(const entry *one, FILE *out)
{
    fputc(toupper((unsigned char)one->summary[0]), out);
    print_escaped(one->summary + 1, out);
    if (one->source) {
        fputs(". Source: ", out);
        print_escaped(one->source, out);
    }
    if (one->search)
        fprintf(out, ". %s", one->search);
    fputs(".\n\n", out);
    if (one->stands_for) {
        const int used = fprintf(out, "```json\n\"%s\": ", one->section);
        cs_wrap(out, (size_t)used - 8, 2, CS_WRAP_REPORT, one->stands_for);
        fputs("```\n\n", out);
    }
    for (const cs_formula *formula = one->formulas; formula && formula->text; formula++) {
        fprintf(out, "- closed form of the %s%s: ", cs_figure_label(formula->figure),
                formula->comparison ? " (for comparison only)" : "");
        print_escaped(formula->text, out);
        fputs(formula[1].text ? "\n" : "\n\n", out);
    }
    if (one->is_runtime) {
        /* Print a runtime's own conventions and rules, with their sources. */
        cJSON *runtime = load_runtime(one->name, true);
        const cJSON *each, *conventions = cs_json_member(runtime, "conventions");
        const cJSON *rules = cs_json_member(runtime, "rules");
        const char *like = text_at(runtime, "like");
        if (*like)
            fprintf(out, "Otherwise like `%s`.\n\n", like);
        fputs(conventions ? "| key | value | where | source |\n|---|---|---|---|\n"
                          : "It has no conventions.\n",
              out);
        cJSON_ArrayForEach(each, conventions)
        {
            fprintf(out, "| `%s` | ", text_at(each, "key"));
            print_value(each, "`", "` | ", out);
            print_condition(text_at(each, "with"), ONE_LINE, out);
            fputs(*text_at(each, "with") ? " | " : "| ", out);
            print_escaped(text_at(each, "source"), out);
            fputs(" |\n", out);
        }
        if (rules)
            fputs("\nRules for plans:\n\n| rule | where | source |\n|---|---|---|\n", out);
        cJSON_ArrayForEach(each, rules)
        {
            const char *text = text_at(each, "text"), *with = text_at(each, "with");
            fputs(*text ? "| it " : "| no rule on the ", out);
            print_escaped(*text ? text : text_at(each, "name"), out);
            fprintf(out, *with ? " | `%s` | " : " %s| ", *with ? with : "|");
            print_escaped(text_at(each, "source"), out);
            fputs(" |\n", out);
        }
        cJSON_Delete(runtime);
        return;
    }
    cs_arena arena;
    cs_arena_init(&arena);
    const cs_field *field = shown_fields(one, &arena);
    fputs(field->name ? "| key | value | default | meaning |\n|---|---|---|---|\n" : "No keys.\n",
          out);
    for (; field->name; field++) {
        char expected[160];
        fprintf(out, "| `%s` | ", field->name);
        print_escaped(cs_field_expected(field, expected, sizeof(expected)), out);
        if (!field->fallback)
            fputs(" | required | ", out);
        else if (*field->fallback)
            fprintf(out, " | `%s` | ", field->fallback);
        else
            fputs(" | optional | ", out);
        print_escaped(field->doc, out);
        fputs(" |\n", out);
    }
    cs_arena_finish(&arena);
}

/* An entry that is named with its section has no heading, because its page has one. */
static void print_markdown(const cs_arguments *arguments, size_t section, FILE *out)
{
    entry one;
    const bool figures = sections[section].at == figure_at;
    const bool terms = sections[section].at == term_at;
    const bool headings = arguments->n_words < 2 && !figures && !terms;
    if (figures)
        fputs("| key | unit | meaning |\n|---|---|---|\n", out);
    if (terms)
        fputs("| words | here |\n|---|---|\n", out);
    if (headings)
        fprintf(out, "## %s\n\n", sections[section].name);
    for (size_t i = 0; sections[section].at(i, &one); i++) {
        if (!wants(arguments, section, &one))
            continue;
        if (headings)
            fprintf(out, "### `%s`\n\n", one.name);
        (figures ? print_figure_row : terms ? print_term_row : print_markdown_entry)(&one, out);
        if (headings)
            fputc('\n', out);
    }
}

static bool add_field(cJSON *list, const cs_field *field)
{
    char expected[160];
    cJSON *object = cs_json_add_item(list);
    return cJSON_AddStringToObject(object, "name", field->name) &&
           cJSON_AddStringToObject(object, "expected",
                                   cs_field_expected(field, expected, sizeof(expected))) &&
           cJSON_AddBoolToObject(object, "required", !field->fallback) &&
           cJSON_AddStringToObject(object, "default", field->fallback ? field->fallback : "") &&
           cJSON_AddStringToObject(object, "doc", field->doc);
}

static bool add_formula(cJSON *list, const cs_formula *formula)
{
    cJSON *object = cs_json_add_item(list);
    return cJSON_AddStringToObject(object, "figure", cs_figure_key(formula->figure)) &&
           cJSON_AddStringToObject(object, "formula", formula->text) &&
           cJSON_AddBoolToObject(object, "comparison", formula->comparison);
}

static bool add_words(cJSON *object, const char *key, const char *const *words)
{
    cJSON *list = cJSON_AddArrayToObject(object, key);
    for (; list && *words; words++)
        if (!cJSON_AddItemToArray(list, cJSON_CreateString(*words)))
            return false;
    return list != NULL;
}

/* the lists of a runtime, after "like" was followed */
static bool add_runtime(cJSON *object, const char *name)
{
    cJSON *runtime = load_runtime(name, false);
    bool done = runtime && cJSON_AddBoolToObject(object, "roofline",
                                                 cJSON_IsTrue(cs_json_member(runtime, "roofline")));
    for (const char *const *list = cs_runtime_kind.joined; *list && done; list++) {
        cJSON *items = cJSON_DetachItemFromObjectCaseSensitive(runtime, *list);
        done = cJSON_AddItemToObject(object, *list, items ? items : cJSON_CreateArray());
    }
    cJSON_Delete(runtime);
    return done;
}

static bool add_entry(cJSON *list, const entry *one)
{
    cJSON *object = cs_json_add_item(list);
    bool complete = cJSON_AddStringToObject(object, "name", one->name) &&
                    cJSON_AddStringToObject(object, "summary", one->summary) &&
                    cJSON_AddStringToObject(object, "source", one->source ? one->source : "");
    if (complete && one->term)
        return add_words(object, "words", one->term->words) &&
               add_words(object, "means", one->term->means);
    if (complete && one->unit)
        return cJSON_AddStringToObject(object, "unit", one->unit) != NULL;
    if (complete && one->is_runtime)
        return add_runtime(object, one->name);
    if (complete && one->stands_for)
        complete = cJSON_AddItemToObject(object, "stands_for", cJSON_Parse(one->stands_for));
    cJSON *formulas = complete ? cJSON_AddArrayToObject(object, "closed_forms") : NULL;
    for (const cs_formula *formula = one->formulas; formulas && formula && formula->text;
         formula++) {
        if (!add_formula(formulas, formula))
            return false;
    }
    cs_arena arena;
    cs_arena_init(&arena);
    cJSON *fields = formulas ? cJSON_AddArrayToObject(object, "parameters") : NULL;
    bool added = fields != NULL;
    for (const cs_field *field = shown_fields(one, &arena); added && field->name; field++)
        added = add_field(fields, field);
    cs_arena_finish(&arena);
    return added;
}

static bool add_section(const cs_arguments *arguments, cJSON *root, size_t section)
{
    entry one;
    cJSON *list = cJSON_AddArrayToObject(root, sections[section].name);
    for (size_t i = 0; list && sections[section].at(i, &one); i++) {
        if (wants(arguments, section, &one) && !add_entry(list, &one))
            return false;
    }
    return list != NULL;
}

static cJSON *list_json(const cs_arguments *arguments)
{
    cJSON *root = cJSON_CreateObject();
    for (size_t s = 0; root && s < N_SECTIONS; s++) {
        if (wants_any(arguments, s) && !add_section(arguments, root, s)) {
            cJSON_Delete(root);
            return NULL;
        }
    }
    return root;
}

/* Reports the wrong one of two words: the first if it is not a section, otherwise the second. */
static cs_status unknown_of_two(const cs_arguments *arguments, cs_error *error)
{
    cs_guess named;
    entry one;
    cs_guess_init(&named, arguments->words[0]);
    for (size_t s = 0; s < N_SECTIONS; s++) {
        cs_guess_add(&named, sections[s].name);
        if (strcmp(arguments->words[0], sections[s].name) != 0)
            continue;
        cs_guess_init(&named, arguments->words[1]);
        for (size_t i = 0; sections[s].at(i, &one); i++)
            cs_guess_add(&named, one.name);
        return cs_error_add(error, CS_USAGE, "list: %s: unknown %s", sections[s].name,
                            cs_guess_text(&named));
    }
    return cs_error_add(error, CS_USAGE, "list: unknown section %s", cs_guess_text(&named));
}

/* Entries are proposed, but too many to list. */
static cs_status unknown_word(const cs_arguments *arguments, cs_error *error)
{
    cs_guess guess;
    entry one;
    if (arguments->n_words == 2)
        return unknown_of_two(arguments, error);
    cs_guess_init(&guess, arguments->words[0]);
    for (size_t s = 0; s < N_SECTIONS; s++)
        cs_guess_add(&guess, sections[s].name);
    const size_t told = strlen(guess.known);
    for (size_t s = 0; s < N_SECTIONS; s++)
        for (size_t i = 0; sections[s].at(i, &one); i++)
            cs_guess_add(&guess, one.name);
    guess.known[told] = '\0';
    return cs_error_add(error, CS_USAGE, "list: unknown %s", cs_guess_text(&guess));
}

/* Terms such as "global batch" may be two words. */
static bool print_joined_term(const cs_arguments *arguments, FILE *out)
{
    char joined[80];
    if (arguments->n_words != 2)
        return false;
    snprintf(joined, sizeof(joined), "%s_%s", arguments->words[0], arguments->words[1]);
    return cs_listed_term(joined, out);
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    bool known = false;
    for (size_t s = 0; s < N_SECTIONS; s++)
        known |= wants_any(arguments, s);
    const char *last = arguments->n_words == 2 ? arguments->words[1] : "";
    const char *end = strrchr(last, '.');
    if (!known && strcmp(arguments->words[0], cs_runtime_kind.folder) == 0 && end &&
        strcmp(end, ".json") == 0) {
        /* a user's description of a runtime, after "like" was followed */
        cJSON *runtime;
        CS_TRY(cs_facts_load(&cs_runtime_kind, last, NULL, &runtime, error));
        fprintf(context->out, "runtimes\n  %s: %s\n", last, text_at(runtime, "title"));
        print_runtime(runtime, context->out);
        cJSON_Delete(runtime);
        return CS_OK;
    }
    if (!known)
        return print_joined_term(arguments, context->out) ? CS_OK : unknown_word(arguments, error);
    if (cs_arguments_flag(arguments, "json"))
        return cs_print_json(list_json(arguments), context->out, error);
    const bool markdown = cs_arguments_flag(arguments, "markdown");
    for (size_t s = 0; s < N_SECTIONS; s++) {
        if (wants_any(arguments, s))
            (markdown ? print_markdown : print_section)(arguments, s, context->out);
    }
    if (arguments->n_words == 0 && !markdown)
        fputs("\n`sim list SECTION` and `sim list NAME` print parameters, defaults and sources.\n",
              context->out);
    return CS_OK;
}

const cs_command cs_command_list = {
    .name = "list",
    .words = "[SECTION] [NAME]",
    .min_words = 0,
    .max_words = 2,
    .choices = section_names,
    .summary = "list schedules, models, devices, ..., their parameters, and metrics",
    .doc = "Lists everything that a scenario can name: schedules, planners, topologies, models, "
           "devices, sections and runtimes. Also lists the metrics that runs and sweeps report, "
           "the keys of measured points, and terms of other programs with their names here. "
           "With a SECTION (schedules, planners, ...) or a NAME, "
           "prints their parameters, units, ranges, defaults and sources as well.",
    .options = options,
    .run = run,
};

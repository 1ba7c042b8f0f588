#include "calib/costs.h"

#include "sim/base/field.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SCHEMA_VERSION = 1, REGIMES_MAX = 64, POINT_VALUES = 5 };

/* ---- tables ---- */

typedef struct document {
    uint32_t schema_version;
    const cJSON *sources, *compute, *memory, *network, *bandwidths, *overheads;
} document;

static const cs_field document_fields[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(document, schema_version), .min = SCHEMA_VERSION,
     .max = SCHEMA_VERSION, .doc = "version of this format"},
    {"sources", CS_FIELD_JSON, offsetof(document, sources), .doc = "where measurements come from",
     .shape = "[{source}, ...]"},
    {"compute", CS_FIELD_JSON, offsetof(document, compute), .fallback = "",
     .doc = "times of pieces of work", .shape = "[{compute}, ...]"},
    {"memory", CS_FIELD_JSON, offsetof(document, memory), .fallback = "",
     .doc = "held while networks are trained", .shape = "[{memory}, ...]"},
    {"network", CS_FIELD_JSON, offsetof(document, network), .fallback = "",
     .doc = "times of collectives", .shape = "[{network}, ...]"},
    {"bandwidths", CS_FIELD_JSON, offsetof(document, bandwidths), .fallback = "",
     .doc = "of memory and copies", .shape = "[{bandwidth}, ...]"},
    {"overheads", CS_FIELD_JSON, offsetof(document, overheads), .fallback = "",
     .doc = "paid per event", .shape = "[{overhead}, ...]"},
    {0}};

static const cs_field source_fields[] = {
    {"source", CS_FIELD_TEXT, offsetof(cs_cost_source, source),
     .doc = "command line, or tool and file that were imported"},
    {"device", CS_FIELD_TEXT, offsetof(cs_cost_source, device), .doc = "what was measured"},
    {"driver", CS_FIELD_TEXT, offsetof(cs_cost_source, driver), .fallback = "",
     .doc = "its version"},
    {"libraries", CS_FIELD_TEXT, offsetof(cs_cost_source, libraries), .fallback = "",
     .doc = "and their versions"},
    {"clock", CS_FIELD_TEXT, offsetof(cs_cost_source, clock), .fallback = "",
     .doc = "what ran at which rate"},
    {"date", CS_FIELD_TEXT, offsetof(cs_cost_source, date), .doc = "YYYY-MM-DD"},
    {"notes", CS_FIELD_TEXT, offsetof(cs_cost_source, notes), .fallback = "",
     .doc = "anything else"},
    {0}};

static const cs_field timing_fields[] = {
    {"median_s", CS_FIELD_NUMBER, offsetof(cs_cost_timing, median), .doc = "of the samples"},
    {"low_s", CS_FIELD_NUMBER, offsetof(cs_cost_timing, low),
     .doc = "from here to high_s the median lies with 95 %"},
    {"high_s", CS_FIELD_NUMBER, offsetof(cs_cost_timing, high), .doc = "the upper bound"},
    {"samples", CS_FIELD_COUNT, offsetof(cs_cost_timing, samples), .min = 1,
     .doc = "timings that were taken"},
    {0}};

/* Of a pass whose source is another than its entry's. */
static const cs_field pass_fields[] = {
    {"source", CS_FIELD_JSON, 0, .fallback = "", .doc = "position in sources", .shape = "position"},
    {0}};

static const cs_field interval_fields[] = {
    {"value", CS_FIELD_NUMBER, offsetof(cs_cost_interval, value), .doc = "what was found"},
    {"low", CS_FIELD_NUMBER, offsetof(cs_cost_interval, low),
     .doc = "from here to high the true one lies with 95 %"},
    {"high", CS_FIELD_NUMBER, offsetof(cs_cost_interval, high), .doc = "the upper bound"},
    {0}};

/* Of which no interval is known. */
static const cs_field value_fields[] = {
    {"value", CS_FIELD_NUMBER, offsetof(cs_cost_interval, value), .doc = "what was found"}, {0}};

typedef struct compute_parts {
    cs_cost_compute entry;
    const cJSON *passes[CS_COST_PASSES];
} compute_parts;

#define PASS_FIELD(name, i)                                                                        \
    {                                                                                              \
        name, CS_FIELD_JSON, offsetof(compute_parts, passes) + (i) * sizeof(cJSON *),              \
            .fallback = "", .doc = "its time", .shape = "{timing}"                                 \
    }

static const cs_field compute_fields[] = {
    {"op", CS_FIELD_TEXT, offsetof(compute_parts, entry.op), .doc = "the key: what is done"},
    PASS_FIELD("forward", 0),
    PASS_FIELD("backward_input", 1),
    PASS_FIELD("backward_weight", 2),
    PASS_FIELD("update", 3),
    {"workspace_bytes", CS_FIELD_BYTES, offsetof(compute_parts, entry.workspace_bytes),
     .fallback = "0", .doc = "of the library, besides the tensors"},
    {"peak_bytes", CS_FIELD_BYTES, offsetof(compute_parts, entry.peak_bytes), .fallback = "0",
     .doc = "live on the device meanwhile, in all; 0: not known"},
    {"algorithm", CS_FIELD_TEXT, offsetof(compute_parts, entry.algorithm), .fallback = "",
     .doc = "that the library chose"},
    {"source", CS_FIELD_COUNT, offsetof(compute_parts, entry.source), .doc = "position in sources"},
    {0}};

static const cs_field memory_fields[] = {
    {"network", CS_FIELD_TEXT, offsetof(cs_cost_memory, network),
     .doc = "the key: what is trained"},
    {"peak_bytes", CS_FIELD_BYTES, offsetof(cs_cost_memory, peak_bytes), .doc = "live at most"},
    {"held_bytes", CS_FIELD_BYTES, offsetof(cs_cost_memory, held_bytes),
     .doc = "at most, with what was kept to be used again"},
    {"outside_bytes", CS_FIELD_BYTES, offsetof(cs_cost_memory, outside_bytes), .fallback = "0",
     .doc = "in use on the device besides; 0: not known"},
    {"source", CS_FIELD_COUNT, offsetof(cs_cost_memory, source), .doc = "position in sources"},
    {0}};

typedef struct network_parts {
    uint32_t collective, level, ranks, source;
    const cJSON *regimes, *points;
} network_parts;

static const cs_field network_fields[] = {
    {"collective", CS_FIELD_CHOICE, offsetof(network_parts, collective),
     .choices = cs_cost_collective_names, .doc = "what was measured"},
    {"level", CS_FIELD_CHOICE, offsetof(network_parts, level), .choices = cs_cost_level_names,
     .doc = "within a node or across nodes"},
    {"ranks", CS_FIELD_COUNT, offsetof(network_parts, ranks), .min = 2, .doc = "that took part"},
    {"regimes", CS_FIELD_JSON, offsetof(network_parts, regimes), .doc = "by size",
     .shape = "[{regime}, ...]"},
    {"points", CS_FIELD_JSON, offsetof(network_parts, points), .fallback = "",
     .doc = "what was measured", .shape = "[[bytes, seconds, low, high, samples], ...]"},
    {"source", CS_FIELD_COUNT, offsetof(network_parts, source), .doc = "position in sources"},
    {0}};

typedef struct regime_parts {
    cs_cost_regime regime;
    const cJSON *alpha, *beta;
} regime_parts;

static const cs_field regime_fields[] = {
    {"from_bytes", CS_FIELD_BYTES, offsetof(regime_parts, regime.from),
     .doc = "smallest message of the regime"},
    {"alpha_s", CS_FIELD_JSON, offsetof(regime_parts, alpha), .doc = "latency",
     .shape = "{interval}"},
    {"beta_s_per_byte", CS_FIELD_JSON, offsetof(regime_parts, beta), .doc = "time per byte",
     .shape = "{interval}"},
    {"error", CS_FIELD_NUMBER, offsetof(regime_parts, regime.error),
     .doc = "root mean square of the relative residuals without outliers"},
    {"points", CS_FIELD_COUNT, offsetof(regime_parts, regime.points), .doc = "fitted to"},
    {"outliers", CS_FIELD_COUNT, offsetof(regime_parts, regime.outliers), .doc = "among them"},
    {0}};

typedef struct bandwidth_parts {
    cs_cost_bandwidth entry;
    const cJSON *rate;
} bandwidth_parts;

static const cs_field bandwidth_fields[] = {
    {"kind", CS_FIELD_TEXT, offsetof(bandwidth_parts, entry.kind), .doc = "of what"},
    {"bytes_per_s", CS_FIELD_JSON, offsetof(bandwidth_parts, rate), .doc = "the bandwidth",
     .shape = "{interval}"},
    {"samples", CS_FIELD_COUNT, offsetof(bandwidth_parts, entry.samples), .min = 1,
     .doc = "timings that were taken"},
    {"source", CS_FIELD_COUNT, offsetof(bandwidth_parts, entry.source),
     .doc = "position in sources"},
    {0}};

typedef struct overhead_parts {
    cs_cost_overhead entry;
    const cJSON *time;
} overhead_parts;

static const cs_field overhead_fields[] = {
    {"kind", CS_FIELD_TEXT, offsetof(overhead_parts, entry.kind), .doc = "of what"},
    {"time", CS_FIELD_JSON, offsetof(overhead_parts, time), .doc = "what it takes",
     .shape = "{timing}"},
    {"source", CS_FIELD_COUNT, offsetof(overhead_parts, entry.source),
     .doc = "position in sources"},
    {0}};

/* ---- reading ---- */

typedef struct reader {
    cs_costs *costs;
    cs_error *error;
} reader;

static void note(cs_status *status, cs_status other)
{
    if (*status == CS_OK)
        *status = other;
}

static cs_status read_fields(reader *r, const cJSON *object, const cs_json_place *place,
                             const cs_field *table, void *out)
{
    return cs_field_read(object, place, (const cs_field *const[]){table, NULL},
                         (void *const[]){out}, &r->costs->arena, r->error);
}

static cs_status bad_kind(reader *r, const cJSON *value, const cs_json_place *place,
                          const char *expected)
{
    char got[CS_JSON_DESCRIBED_BYTES];
    return cs_json_invalid(place, r->error, "must be %s (got %s)", expected,
                           cs_json_describe(value, got, sizeof(got)));
}

/* Reads every item of a list, whatever is wrong with the others. */
static cs_status read_list(reader *r, const cJSON *list, const cs_json_place *place,
                           cs_status (*read)(reader *, const cJSON *, const cs_json_place *))
{
    cs_status status = CS_OK;
    if (!list)
        return CS_OK; /* optional, or reported as missing */
    if (!cJSON_IsArray(list))
        return bad_kind(r, list, place, "an array");
    int i = 0;
    for (const cJSON *item = list->child; item; item = item->next, i++)
        note(&status, read(r, item, &(cs_json_place){.up = place, .index = i}));
    return status;
}

static cs_status check_timing(reader *r, const cs_cost_timing *timing, const cs_json_place *place)
{
    return timing->low > timing->median || timing->median > timing->high
               ? cs_json_invalid(place, r->error, "must have low_s <= median_s <= high_s")
               : CS_OK;
}

static cs_status read_timing(reader *r, const cJSON *object, const cs_json_place *up,
                             const char *key, cs_cost_timing *out)
{
    const cs_json_place place = {.up = up, .key = key};
    cs_cost_timing timing;
    if (!object)
        return CS_OK;
    cs_status status = read_fields(r, object, &place, timing_fields, &timing);
    if (status == CS_OK)
        status = check_timing(r, &timing, &place);
    if (status == CS_OK)
        *out = timing;
    return status;
}

static cs_status read_interval(reader *r, const cJSON *object, const cs_json_place *up,
                               const char *key, cs_cost_interval *out)
{
    const cs_json_place place = {.up = up, .key = key};
    cs_cost_interval interval = {.low = 0, .high = INFINITY};
    if (!object)
        return CS_OK;
    const bool known = cs_json_member(object, "low") || cs_json_member(object, "high");
    const cs_status status =
        read_fields(r, object, &place, known ? interval_fields : value_fields, &interval);
    if (status != CS_OK)
        return status;
    if (interval.low > interval.value || interval.value > interval.high)
        return cs_json_invalid(&place, r->error, "must have low <= value <= high");
    *out = interval;
    return CS_OK;
}

static cs_status check_source(reader *r, uint32_t source, const cs_json_place *up)
{
    const cs_json_place place = {.up = up, .key = "source"};
    if (source < r->costs->n_sources)
        return CS_OK;
    return cs_json_invalid(&place, r->error, "must be a position in /sources, below %u (got %u)",
                           r->costs->n_sources, source);
}

static cs_status check_text(reader *r, const char *text, const char *key, const cs_json_place *up)
{
    const cs_json_place place = {.up = up, .key = key};
    return *text == '\0' ? cs_json_invalid(&place, r->error, "must not be empty") : CS_OK;
}

static cs_status twin(reader *r, const cs_json_place *place)
{
    return cs_json_invalid(place, r->error, "is there twice: an earlier entry has the same key");
}

static cs_status read_source(reader *r, const cJSON *item, const cs_json_place *place)
{
    const cs_json_place date = {.up = place, .key = "date"};
    char quoted[CS_TEXT_QUOTED_BYTES];
    uint32_t id = 0;
    const uint32_t n = r->costs->n_sources;
    cs_cost_source source = {0};
    CS_TRY(read_fields(r, item, place, source_fields, &source));
    cs_status status = check_text(r, source.source, "source", place);
    note(&status, check_text(r, source.device, "device", place));
    if (!cs_text_is_date(source.date))
        note(&status, cs_json_invalid(&date, r->error, "must be a day as YYYY-MM-DD (got %s)",
                                      cs_text_quote(source.date, quoted, sizeof(quoted))));
    if (status == CS_OK)
        status = cs_costs_add_source(r->costs, &source, &id, r->error);
    if (status == CS_OK && id < n)
        status = twin(r, place);
    return status;
}

/* A time, and its source where that is not the entry's. */
static cs_status read_pass(reader *r, const cJSON *object, const cs_json_place *up, int p,
                           cs_cost_compute *entry)
{
    const cs_json_place place = {.up = up, .key = cs_cost_passes[p]};
    const cJSON *source = NULL;
    if (!object)
        return CS_OK;
    cs_status status =
        cs_field_read(object, &place, (const cs_field *const[]){timing_fields, pass_fields, NULL},
                      (void *const[]){&entry->passes[p], &source}, &r->costs->arena, r->error);
    if (status == CS_OK)
        status = check_timing(r, &entry->passes[p], &place);
    entry->pass_sources[p] = entry->source;
    if (status != CS_OK || !source)
        return status;
    bool valid = cJSON_IsNumber(source) && source->valuedouble >= 0 &&
                 source->valuedouble < (double)r->costs->n_sources &&
                 source->valuedouble == (double)(uint32_t)source->valuedouble;
    if (!valid)
        return bad_kind(r, source, &(cs_json_place){.up = &place, .key = "source"},
                        "a position in /sources");
    entry->pass_sources[p] = (uint32_t)source->valuedouble;
    return CS_OK;
}

static cs_status read_compute(reader *r, const cJSON *item, const cs_json_place *place)
{
    compute_parts parts = {0};
    bool timed = false;
    CS_TRY(read_fields(r, item, place, compute_fields, &parts));
    cs_status status = check_text(r, parts.entry.op, "op", place);
    note(&status, check_source(r, parts.entry.source, place));
    for (int p = 0; p < CS_COST_PASSES; p++) {
        note(&status, read_pass(r, parts.passes[p], place, p, &parts.entry));
        timed |= parts.passes[p] != NULL;
    }
    if (!timed)
        note(&status, cs_json_invalid(place, r->error,
                                      "must have one of \"forward\", \"backward_input\", "
                                      "\"backward_weight\" and \"update\""));
    if (status == CS_OK && cs_costs_compute(r->costs, parts.entry.op))
        status = twin(r, place);
    return status == CS_OK ? cs_costs_add_compute(r->costs, &parts.entry, r->error) : status;
}

static cs_status read_memory(reader *r, const cJSON *item, const cs_json_place *place)
{
    cs_cost_memory entry = {0};
    CS_TRY(read_fields(r, item, place, memory_fields, &entry));
    cs_status status = check_text(r, entry.network, "network", place);
    note(&status, check_source(r, entry.source, place));
    if (status == CS_OK && cs_costs_memory(r->costs, entry.network))
        status = twin(r, place);
    return status == CS_OK ? cs_costs_add_memory(r->costs, &entry, r->error) : status;
}

static cs_status read_regime(reader *r, const cJSON *item, const cs_json_place *place,
                             cs_cost_regime *out)
{
    regime_parts parts = {0};
    CS_TRY(read_fields(r, item, place, regime_fields, &parts));
    cs_status status = read_interval(r, parts.alpha, place, "alpha_s", &parts.regime.alpha);
    note(&status, read_interval(r, parts.beta, place, "beta_s_per_byte", &parts.regime.beta));
    *out = parts.regime;
    return status;
}

static cs_status read_regimes(reader *r, const cJSON *list, const cs_json_place *place,
                              cs_cost_regime *regimes, uint32_t *n)
{
    cs_status status = CS_OK;
    if (!cJSON_IsArray(list) || !list->child)
        return bad_kind(r, list, place, "an array with at least one regime");
    for (const cJSON *item = list->child; item; item = item->next, (*n)++) {
        const cs_json_place at = {.up = place, .index = (int)*n};
        const cs_json_place from = {.up = &at, .key = "from_bytes"};
        if (*n == REGIMES_MAX)
            return cs_json_invalid(place, r->error, "must have at most %d regimes", REGIMES_MAX);
        note(&status, read_regime(r, item, &at, &regimes[*n]));
        if (status != CS_OK)
            continue;
        if (*n == 0 && regimes[0].from != 0)
            status = cs_json_invalid(&from, r->error, "must be 0 in the first regime");
        else if (*n > 0 && regimes[*n].from <= regimes[*n - 1].from)
            status = cs_json_invalid(&from, r->error, "must be larger than in the regime before");
    }
    return status;
}

static bool is_count(double value, double most)
{
    return value >= 0 && value <= most && value == floor(value);
}

static cs_status read_point(reader *r, const cJSON *item, const cs_json_place *place,
                            cs_cost_point *out)
{
    double value[POINT_VALUES] = {0};
    const int n = cJSON_IsArray(item) ? cJSON_GetArraySize(item) : 0;
    bool good = n == 2 || n == POINT_VALUES;
    const cJSON *at = good ? item->child : NULL;
    for (int i = 0; i < n && good; i++, at = at->next) {
        good = cJSON_IsNumber(at);
        value[i] = at->valuedouble;
    }
    good = good && is_count(value[0], 0x1p53) && value[1] > 0;
    if (good && n == POINT_VALUES)
        good = 0 < value[2] && value[2] <= value[1] && value[1] <= value[3] && value[4] >= 1 &&
               is_count(value[4], UINT32_MAX);
    if (!good)
        return bad_kind(r, item, place,
                        "[bytes, seconds] or [bytes, seconds, low, high, samples], bytes and "
                        "samples whole, 0 < low <= seconds <= high");
    *out = (cs_cost_point){.bytes = (int64_t)value[0],
                           .seconds = value[1],
                           .low = value[2],
                           .high = value[3],
                           .samples = (uint32_t)value[4]};
    return CS_OK;
}

static cs_status read_points(reader *r, const cJSON *list, const cs_json_place *place,
                             cs_cost_network *entry)
{
    cs_status status = CS_OK;
    if (!list)
        return CS_OK;
    if (!cJSON_IsArray(list))
        return bad_kind(r, list, place, "an array");
    cs_cost_point *points =
        cs_arena_alloc(&r->costs->arena, (size_t)cJSON_GetArraySize(list), sizeof(*points));
    if (!points)
        return cs_error_no_memory(r->error);
    uint32_t n = 0;
    for (const cJSON *item = list->child; item; item = item->next, n++) {
        const cs_json_place at = {.up = place, .index = (int)n};
        note(&status, read_point(r, item, &at, &points[n]));
        if (status == CS_OK && n > 0 && points[n].bytes < points[n - 1].bytes)
            status =
                cs_json_invalid(&at, r->error, "must not have fewer bytes than the one before");
    }
    entry->points = points;
    entry->n_points = n;
    return status;
}

static cs_status read_network(reader *r, const cJSON *item, const cs_json_place *place)
{
    const cs_json_place regimes_at = {.up = place, .key = "regimes"};
    const cs_json_place points_at = {.up = place, .key = "points"};
    cs_cost_regime regimes[REGIMES_MAX];
    network_parts parts = {0};
    CS_TRY(read_fields(r, item, place, network_fields, &parts));
    cs_cost_network entry = {.collective = parts.collective,
                             .level = parts.level,
                             .ranks = parts.ranks,
                             .regimes = regimes,
                             .source = parts.source};
    cs_status status = check_source(r, parts.source, place);
    note(&status, read_regimes(r, parts.regimes, &regimes_at, regimes, &entry.n_regimes));
    note(&status, read_points(r, parts.points, &points_at, &entry));
    if (status == CS_OK && cs_costs_network(r->costs, entry.collective, entry.level, entry.ranks))
        status = twin(r, place);
    return status == CS_OK ? cs_costs_add_network(r->costs, &entry, r->error) : status;
}

static cs_status read_bandwidth(reader *r, const cJSON *item, const cs_json_place *place)
{
    bandwidth_parts parts = {0};
    CS_TRY(read_fields(r, item, place, bandwidth_fields, &parts));
    cs_status status = check_text(r, parts.entry.kind, "kind", place);
    note(&status, check_source(r, parts.entry.source, place));
    note(&status, read_interval(r, parts.rate, place, "bytes_per_s", &parts.entry.bytes_per_s));
    if (status == CS_OK && cs_costs_bandwidth(r->costs, parts.entry.kind))
        status = twin(r, place);
    return status == CS_OK ? cs_costs_add_bandwidth(r->costs, &parts.entry, r->error) : status;
}

static cs_status read_overhead(reader *r, const cJSON *item, const cs_json_place *place)
{
    overhead_parts parts = {0};
    CS_TRY(read_fields(r, item, place, overhead_fields, &parts));
    cs_status status = check_text(r, parts.entry.kind, "kind", place);
    note(&status, check_source(r, parts.entry.source, place));
    note(&status, read_timing(r, parts.time, place, "time", &parts.entry.time));
    if (status == CS_OK && cs_costs_overhead(r->costs, parts.entry.kind))
        status = twin(r, place);
    return status == CS_OK ? cs_costs_add_overhead(r->costs, &parts.entry, r->error) : status;
}

static cs_status read_document(reader *r, const cJSON *root, const cs_json_place *place)
{
    document parts = {0};
    cs_status status = read_fields(r, root, place, document_fields, &parts);
    const struct {
        const char *key;
        const cJSON *list;
        cs_status (*read)(reader *, const cJSON *, const cs_json_place *);
    } lists[] = {{"sources", parts.sources, read_source},
                 {"compute", parts.compute, read_compute},
                 {"memory", parts.memory, read_memory},
                 {"network", parts.network, read_network},
                 {"bandwidths", parts.bandwidths, read_bandwidth},
                 {"overheads", parts.overheads, read_overhead}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        note(&status, read_list(r, lists[i].list,
                                &(cs_json_place){.up = place, .key = lists[i].key}, lists[i].read));
    return status;
}

cs_status cs_costs_read(const cJSON *root, const cs_json_place *place, cs_costs *costs,
                        cs_error *error)
{
    cs_costs made;
    cs_costs_init(&made);
    const cs_status status = read_document(&(reader){&made, error}, root, place);
    if (status != CS_OK) {
        cs_costs_finish(&made);
        return status;
    }
    *costs = made;
    return CS_OK;
}

cs_status cs_costs_load(const char *path, cs_costs *costs, cs_error *error)
{
    cJSON *root;
    CS_TRY(cs_json_load(path, &root, error));
    cs_status status = cs_costs_read(root, &(cs_json_place){.file = path}, costs, error);
    cJSON_Delete(root);
    return status;
}

/* ---- writing ---- */

/* An object with the fields of a table, in a list or under a key. */
static cJSON *add_object(cJSON *list, const cs_field *table, const void *in)
{
    cJSON *object = cJSON_CreateObject();
    /* cJSON_AddItemToArray refuses NULL, and cannot fail otherwise. */
    return cJSON_AddItemToArray(list, object) && cs_field_write(table, in, object) ? object : NULL;
}

static bool add_part(cJSON *object, const char *key, const cs_field *table, const void *in)
{
    cJSON *part = cJSON_AddObjectToObject(object, key);
    return part && cs_field_write(table, in, part);
}

static bool add_source(cJSON *list, const cs_costs *costs, uint32_t i)
{
    return add_object(list, source_fields, &costs->sources[i]) != NULL;
}

static bool add_pass(cJSON *object, const cs_cost_compute *entry, int p)
{
    cJSON *part = cJSON_AddObjectToObject(object, cs_cost_passes[p]);
    if (!part || !cs_field_write(timing_fields, &entry->passes[p], part))
        return false;
    return entry->pass_sources[p] == entry->source ||
           cJSON_AddNumberToObject(part, "source", entry->pass_sources[p]);
}

static bool add_compute(cJSON *list, const cs_costs *costs, uint32_t i)
{
    const compute_parts parts = {.entry = costs->compute[i]};
    cJSON *object = add_object(list, compute_fields, &parts);
    for (int p = 0; object && p < CS_COST_PASSES; p++)
        if (parts.entry.passes[p].samples > 0 && !add_pass(object, &parts.entry, p))
            return false;
    return object != NULL;
}

static bool add_memory(cJSON *list, const cs_costs *costs, uint32_t i)
{
    return add_object(list, memory_fields, &costs->memory[i]) != NULL;
}

static bool add_interval(cJSON *object, const char *key, const cs_cost_interval *interval)
{
    return add_part(object, key,
                    cs_cost_interval_is_known(interval) ? interval_fields : value_fields, interval);
}

static bool add_regime(cJSON *list, const cs_cost_regime *regime)
{
    const regime_parts parts = {.regime = *regime};
    cJSON *object = cJSON_CreateObject();
    return cJSON_AddItemToArray(list, object) && cs_field_write(regime_fields, &parts, object) &&
           add_interval(object, "alpha_s", &regime->alpha) &&
           add_interval(object, "beta_s_per_byte", &regime->beta);
}

static bool add_point(cJSON *list, const cs_cost_point *point)
{
    const double values[POINT_VALUES] = {(double)point->bytes, point->seconds, point->low,
                                         point->high, point->samples};
    return cJSON_AddItemToArray(
        list, cJSON_CreateDoubleArray(values, point->samples > 0 ? POINT_VALUES : 2));
}

static bool add_network(cJSON *list, const cs_costs *costs, uint32_t i)
{
    const cs_cost_network *entry = &costs->network[i];
    const network_parts parts = {.collective = entry->collective,
                                 .level = entry->level,
                                 .ranks = entry->ranks,
                                 .source = entry->source};
    cJSON *object = add_object(list, network_fields, &parts);
    cJSON *regimes = object ? cJSON_AddArrayToObject(object, "regimes") : NULL;
    bool done = regimes != NULL;
    for (uint32_t k = 0; done && k < entry->n_regimes; k++)
        done = add_regime(regimes, &entry->regimes[k]);
    if (!done || entry->n_points == 0)
        return done;
    cJSON *points = cJSON_AddArrayToObject(object, "points");
    done = points != NULL;
    for (uint32_t k = 0; done && k < entry->n_points; k++)
        done = add_point(points, &entry->points[k]);
    return done;
}

static bool add_bandwidth(cJSON *list, const cs_costs *costs, uint32_t i)
{
    const bandwidth_parts parts = {.entry = costs->bandwidths[i]};
    cJSON *object = add_object(list, bandwidth_fields, &parts);
    return object && add_interval(object, "bytes_per_s", &parts.entry.bytes_per_s);
}

static bool add_overhead(cJSON *list, const cs_costs *costs, uint32_t i)
{
    const overhead_parts parts = {.entry = costs->overheads[i]};
    cJSON *object = add_object(list, overhead_fields, &parts);
    return object && add_part(object, "time", timing_fields, &parts.entry.time);
}

cJSON *cs_costs_json(const cs_costs *costs)
{
    const struct {
        const char *key;
        uint32_t n;
        bool (*add)(cJSON *, const cs_costs *, uint32_t);
        bool rare; /* left out where there are none */
    } lists[] = {{"sources", costs->n_sources, add_source},
                 {"compute", costs->n_compute, add_compute},
                 {"memory", costs->n_memory, add_memory, .rare = true},
                 {"network", costs->n_network, add_network},
                 {"bandwidths", costs->n_bandwidths, add_bandwidth},
                 {"overheads", costs->n_overheads, add_overhead}};
    cJSON *root = cJSON_CreateObject();
    bool done = root && cs_field_write(document_fields,
                                       &(document){.schema_version = SCHEMA_VERSION}, root);
    for (size_t i = 0; done && i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (lists[i].rare && lists[i].n == 0)
            continue;
        cJSON *list = cJSON_AddArrayToObject(root, lists[i].key);
        done = list != NULL;
        for (uint32_t k = 0; done && k < lists[i].n; k++)
            done = lists[i].add(list, costs, k);
    }
    if (done)
        return root;
    cJSON_Delete(root);
    return NULL;
}

cs_status cs_costs_save(const cs_costs *costs, const char *path, cs_error *error)
{
    cJSON *root = cs_costs_json(costs);
    char *json = root ? cs_json_print(root) : NULL;
    cJSON_Delete(root);
    if (!json)
        return cs_error_no_memory(error);
    const cs_status status = cs_file_write(path, json, strlen(json), error);
    free(json);
    return status;
}

cs_status cs_costs_add_to_file(const cs_costs *measured, const char *path, cs_error *error)
{
    cs_costs all;
    cs_costs_init(&all);
    struct stat info;
    cs_status status = CS_OK;
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) /* a device has nothing yet */
        CS_TRY(cs_costs_load(path, &all, error));
    status = cs_costs_merge(&all, measured, error);
    if (status == CS_OK)
        status = cs_costs_save(&all, path, error);
    cs_costs_finish(&all);
    return status;
}

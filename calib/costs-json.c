#include "calib/costs.h"

#include "sim/base/document-kind.h"
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
    /* lists of pointers to entries */
    cs_list sources, compute, memory, network, bandwidths, overheads;
} document;

static const cs_field source_fields[] = {
    {"source", CS_FIELD_TEXT, offsetof(cs_cost_source, source),
     .doc = "command line, or tool and imported file"},
    {"device", CS_FIELD_TEXT, offsetof(cs_cost_source, device), .doc = "the measured device"},
    {"driver", CS_FIELD_TEXT, offsetof(cs_cost_source, driver), .fallback = "",
     .doc = "its version"},
    {"libraries", CS_FIELD_TEXT, offsetof(cs_cost_source, libraries), .fallback = "",
     .doc = "with versions"},
    {"clock", CS_FIELD_TEXT, offsetof(cs_cost_source, clock), .fallback = "", .doc = "clock rates"},
    {"date", CS_FIELD_TEXT, offsetof(cs_cost_source, date), .doc = "YYYY-MM-DD"},
    {"notes", CS_FIELD_TEXT, offsetof(cs_cost_source, notes), .fallback = "",
     .doc = "anything else"},
    {0}};

/* For structs that begin with a timing. */
#define TIMING_FIELDS                                                                              \
    {"median_s", CS_FIELD_NUMBER, offsetof(cs_cost_timing, median), .doc = "of the samples"},      \
        {"low_s", CS_FIELD_NUMBER, offsetof(cs_cost_timing, low),                                  \
         .doc = "lower bound of the median's 95 % interval"},                                      \
        {"high_s", CS_FIELD_NUMBER, offsetof(cs_cost_timing, high), .doc = "upper bound"},         \
    {                                                                                              \
        "samples", CS_FIELD_COUNT, offsetof(cs_cost_timing, samples), .min = 1,                    \
                                                                      .doc = "number of timings"   \
    }

static const cs_field timing_fields[] = {TIMING_FIELDS, {0}};

typedef struct pass_parts {
    cs_cost_timing timing;
    double source; /* NaN: the entry's */
} pass_parts;

static const cs_field pass_fields[] = {TIMING_FIELDS,
                                       {"source", CS_FIELD_NUMBER, offsetof(pass_parts, source),
                                        .fallback = "",
                                        .doc = "index in sources, if it differs from the entry's"},
                                       {0}};

/* low and high are NaN if unknown. */
static const cs_field interval_fields[] = {
    {"value", CS_FIELD_NUMBER, offsetof(cs_cost_interval, value), .doc = "estimate"},
    {"low", CS_FIELD_NUMBER, offsetof(cs_cost_interval, low), .fallback = "",
     .doc = "lower bound of the 95 % interval"},
    {"high", CS_FIELD_NUMBER, offsetof(cs_cost_interval, high), .fallback = "",
     .doc = "the upper bound"},
    {0}};

#define INTERVAL CS_FIELD_OBJECT, .of = interval_fields, .size = sizeof(cs_cost_interval)

typedef struct compute_parts {
    cs_cost_compute entry;
    pass_parts *passes[CS_COST_PASSES]; /* NULL: not measured */
} compute_parts;

#define PASS_FIELD(name, i)                                                                        \
    {                                                                                              \
        name, CS_FIELD_OBJECT, offsetof(compute_parts, passes) + (i) * sizeof(pass_parts *),       \
            .fallback = "", .of = pass_fields, .size = sizeof(pass_parts), .doc = "its time"       \
    }

static const cs_field compute_fields[] = {
    {"op", CS_FIELD_TEXT, offsetof(compute_parts, entry.op), .doc = "key of the operator"},
    {"workspace_bytes", CS_FIELD_BYTES, offsetof(compute_parts, entry.workspace_bytes),
     .fallback = "0", .doc = "the library's, without tensors"},
    {"peak_bytes", CS_FIELD_BYTES, offsetof(compute_parts, entry.peak_bytes), .fallback = "0",
     .doc = "maximum live on the device, in total; 0: unknown"},
    {"algorithm", CS_FIELD_TEXT, offsetof(compute_parts, entry.algorithm), .fallback = "",
     .doc = "chosen by the library"},
    {"source", CS_FIELD_COUNT, offsetof(compute_parts, entry.source), .doc = "position in sources"},
    PASS_FIELD("forward", 0),
    PASS_FIELD("backward_input", 1),
    PASS_FIELD("backward_weight", 2),
    PASS_FIELD("update", 3),
    {0}};

static const cs_field memory_fields[] = {
    {"network", CS_FIELD_TEXT, offsetof(cs_cost_memory, network),
     .doc = "key of the trained network"},
    {"peak_bytes", CS_FIELD_BYTES, offsetof(cs_cost_memory, peak_bytes), .doc = "maximum live"},
    {"held_bytes", CS_FIELD_BYTES, offsetof(cs_cost_memory, held_bytes),
     .doc = "maximum, including blocks kept for reuse"},
    {"outside_bytes", CS_FIELD_BYTES, offsetof(cs_cost_memory, outside_bytes), .fallback = "0",
     .doc = "other memory in use on the device; 0: unknown"},
    {"source", CS_FIELD_COUNT, offsetof(cs_cost_memory, source), .doc = "position in sources"},
    {0}};

typedef struct regime_parts {
    cs_cost_regime regime;
    cs_cost_interval *alpha, *beta;
} regime_parts;

static const cs_field regime_fields[] = {
    {"from_bytes", CS_FIELD_BYTES, offsetof(regime_parts, regime.from),
     .doc = "smallest message of the regime"},
    {"error", CS_FIELD_NUMBER, offsetof(regime_parts, regime.error),
     .doc = "root mean square of the relative residuals without outliers"},
    {"points", CS_FIELD_COUNT, offsetof(regime_parts, regime.points),
     .doc = "number of points fitted"},
    {"outliers", CS_FIELD_COUNT, offsetof(regime_parts, regime.outliers),
     .doc = "number of outliers"},
    {"alpha_s", INTERVAL, .offset = offsetof(regime_parts, alpha), .doc = "latency"},
    {"beta_s_per_byte", INTERVAL, .offset = offsetof(regime_parts, beta), .doc = "time per byte"},
    {0}};

typedef struct network_parts {
    uint32_t collective, level, ranks, source;
    cs_list regimes; /* pointers to regime_parts */
    cs_list points;  /* cs_list of double */
} network_parts;

static const cs_field regime_field = {"regime", CS_FIELD_OBJECT, .of = regime_fields,
                                      .size = sizeof(regime_parts)};
static const cs_field point_value = {"value", CS_FIELD_NUMBER};
static const cs_field point_field = {"point",    CS_FIELD_LIST,        .of = &point_value,
                                     .least = 2, .most = POINT_VALUES, .shape = "[bytes, seconds]"};

static const cs_field network_fields[] = {
    {"collective", CS_FIELD_CHOICE, offsetof(network_parts, collective),
     .choices = cs_cost_collective_names, .doc = "the measured collective"},
    {"level", CS_FIELD_CHOICE, offsetof(network_parts, level), .choices = cs_cost_level_names,
     .doc = "within a node or across nodes"},
    {"ranks", CS_FIELD_COUNT, offsetof(network_parts, ranks), .min = 2, .doc = "number of ranks"},
    {"source", CS_FIELD_COUNT, offsetof(network_parts, source), .doc = "position in sources"},
    {"regimes", CS_FIELD_LIST, offsetof(network_parts, regimes), .of = &regime_field, .least = 1,
     .most = REGIMES_MAX, .doc = "by size", .shape = "[{\"from_bytes\": ...}, ...]"},
    {"points", CS_FIELD_LIST, offsetof(network_parts, points), .fallback = "", .of = &point_field,
     .doc = "measured points", .shape = "[[bytes, seconds, low, high, samples], ...]"},
    {0}};

typedef struct bandwidth_parts {
    cs_cost_bandwidth entry;
    cs_cost_interval *rate;
} bandwidth_parts;

static const cs_field bandwidth_fields[] = {
    {"kind", CS_FIELD_TEXT, offsetof(bandwidth_parts, entry.kind), .doc = "kind of copy"},
    {"samples", CS_FIELD_COUNT, offsetof(bandwidth_parts, entry.samples), .min = 1,
     .doc = "number of timings"},
    {"source", CS_FIELD_COUNT, offsetof(bandwidth_parts, entry.source),
     .doc = "position in sources"},
    {"bytes_per_s", INTERVAL, .offset = offsetof(bandwidth_parts, rate), .doc = "the bandwidth"},
    {0}};

typedef struct overhead_parts {
    cs_cost_overhead entry;
    cs_cost_timing *time;
} overhead_parts;

static const cs_field overhead_fields[] = {
    {"kind", CS_FIELD_TEXT, offsetof(overhead_parts, entry.kind), .doc = "kind of overhead"},
    {"source", CS_FIELD_COUNT, offsetof(overhead_parts, entry.source),
     .doc = "position in sources"},
    {"time", CS_FIELD_OBJECT, offsetof(overhead_parts, time), .of = timing_fields,
     .size = sizeof(cs_cost_timing), .doc = "duration"},
    {0}};

#define ENTRY(name, table, type)                                                                   \
    static const cs_field name##_field = {#name, CS_FIELD_OBJECT, .of = table, .size = sizeof(type)}
ENTRY(source, source_fields, cs_cost_source);
ENTRY(compute, compute_fields, compute_parts);
ENTRY(memory, memory_fields, cs_cost_memory);
ENTRY(network, network_fields, network_parts);
ENTRY(bandwidth, bandwidth_fields, bandwidth_parts);
ENTRY(overhead, overhead_fields, overhead_parts);

static const cs_field document_fields[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(document, schema_version), .min = SCHEMA_VERSION,
     .max = SCHEMA_VERSION, .doc = "version of the format"},
    {"sources", CS_FIELD_LIST, offsetof(document, sources), .of = &source_field,
     .doc = "sources of measurements", .shape = "[{\"source\": ...}, ...]"},
    {"compute", CS_FIELD_LIST, offsetof(document, compute), .fallback = "", .of = &compute_field,
     .doc = "times of operators", .shape = "[{\"op\": ...}, ...]"},
    {"memory", CS_FIELD_LIST, offsetof(document, memory), .fallback = "", .of = &memory_field,
     .doc = "memory held while networks are trained", .shape = "[{\"network\": ...}, ...]"},
    {"network", CS_FIELD_LIST, offsetof(document, network), .fallback = "", .of = &network_field,
     .doc = "times of collectives", .shape = "[{\"collective\": ...}, ...]"},
    {"bandwidths", CS_FIELD_LIST, offsetof(document, bandwidths), .fallback = "",
     .of = &bandwidth_field, .doc = "of memory and copies", .shape = "[{\"kind\": ...}, ...]"},
    {"overheads", CS_FIELD_LIST, offsetof(document, overheads), .fallback = "",
     .of = &overhead_field, .doc = "paid per event", .shape = "[{\"kind\": ...}, ...]"},
    {0}};

/* ---- reading ---- */

typedef struct reader {
    cs_costs *costs;
    cs_error *error;
    cs_arena arena; /* for entries, until they are copied */
} reader;

static void note(cs_status *status, cs_status other)
{
    if (*status == CS_OK)
        *status = other;
}

static cs_status check_timing(reader *r, const cs_cost_timing *timing, const cs_json_place *place)
{
    return timing->low > timing->median || timing->median > timing->high
               ? cs_json_invalid(place, r->error, "must have low_s <= median_s <= high_s")
               : CS_OK;
}

/* Takes an interval, which must be complete or missing. */
static cs_status take_interval(reader *r, const cs_cost_interval *given, const cs_json_place *up,
                               const char *key, cs_cost_interval *out)
{
    const cs_json_place place = {.up = up, .key = key};
    if (isnan(given->low) != isnan(given->high))
        return cs_json_invalid(&place, r->error, "must have both \"low\" and \"high\", or neither");
    if (given->low > given->value || given->value > given->high)
        return cs_json_invalid(&place, r->error, "must have low <= value <= high");
    const bool known = !isnan(given->low);
    *out = (cs_cost_interval){given->value, known ? given->low : 0, known ? given->high : INFINITY};
    return CS_OK;
}

static cs_status check_source(reader *r, double source, const cs_json_place *up)
{
    const cs_json_place place = {.up = up, .key = "source"};
    if (source < r->costs->n_sources && source == floor(source))
        return CS_OK;
    return cs_json_invalid(&place, r->error, "must be a position in /sources, below %u (got %g)",
                           r->costs->n_sources, source);
}

static cs_status check_text(reader *r, const char *text, const char *key, const cs_json_place *up)
{
    const cs_json_place place = {.up = up, .key = key};
    return *text == '\0' ? cs_json_invalid(&place, r->error, "must not be empty") : CS_OK;
}

static cs_status twin(reader *r, const cs_json_place *place)
{
    return cs_json_invalid(place, r->error, "is a duplicate: an earlier entry has the same key");
}

static cs_status take_source(reader *r, const void *item, const cs_json_place *place)
{
    const cs_json_place date = {.up = place, .key = "date"};
    const cs_cost_source *source = item;
    char quoted[CS_TEXT_QUOTED_BYTES];
    uint32_t id = 0;
    const uint32_t n = r->costs->n_sources;
    cs_status status = check_text(r, source->source, "source", place);
    note(&status, check_text(r, source->device, "device", place));
    if (!cs_text_is_date(source->date))
        note(&status, cs_json_invalid(&date, r->error, "must be a day as YYYY-MM-DD (got %s)",
                                      cs_text_quote(source->date, quoted, sizeof(quoted))));
    if (status == CS_OK)
        status = cs_costs_add_source(r->costs, source, &id, r->error);
    if (status == CS_OK && id < n)
        status = twin(r, place);
    return status;
}

/* Takes the time of a pass, and its source if it differs from the entry's. */
static cs_status take_pass(reader *r, const pass_parts *parts, const cs_json_place *up, int p,
                           cs_cost_compute *entry)
{
    const cs_json_place place = {.up = up, .key = cs_cost_passes[p]};
    cs_status status = check_timing(r, &parts->timing, &place);
    if (!isnan(parts->source))
        note(&status, check_source(r, parts->source, &place));
    if (status != CS_OK)
        return status;
    entry->passes[p] = parts->timing;
    entry->pass_sources[p] = isnan(parts->source) ? entry->source : (uint32_t)parts->source;
    return CS_OK;
}

static cs_status take_compute(reader *r, const void *item, const cs_json_place *place)
{
    const compute_parts *parts = item;
    cs_cost_compute entry = parts->entry;
    bool timed = false;
    cs_status status = check_text(r, entry.op, "op", place);
    note(&status, check_source(r, entry.source, place));
    for (int p = 0; p < CS_COST_PASSES; p++) {
        if (parts->passes[p])
            note(&status, take_pass(r, parts->passes[p], place, p, &entry));
        timed |= parts->passes[p] != NULL;
    }
    if (!timed)
        note(&status, cs_json_invalid(place, r->error,
                                      "must have one of \"forward\", \"backward_input\", "
                                      "\"backward_weight\" and \"update\""));
    if (status == CS_OK && cs_costs_compute(r->costs, entry.op))
        status = twin(r, place);
    return status == CS_OK ? cs_costs_add_compute(r->costs, &entry, r->error) : status;
}

static cs_status take_memory(reader *r, const void *item, const cs_json_place *place)
{
    const cs_cost_memory *entry = item;
    cs_status status = check_text(r, entry->network, "network", place);
    note(&status, check_source(r, entry->source, place));
    if (status == CS_OK && cs_costs_memory(r->costs, entry->network))
        status = twin(r, place);
    return status == CS_OK ? cs_costs_add_memory(r->costs, entry, r->error) : status;
}

static cs_status take_regime(reader *r, const regime_parts *parts, const cs_json_place *place,
                             const cs_cost_regime *before, cs_cost_regime *out)
{
    const cs_json_place from = {.up = place, .key = "from_bytes"};
    *out = parts->regime;
    cs_status status = take_interval(r, parts->alpha, place, "alpha_s", &out->alpha);
    note(&status, take_interval(r, parts->beta, place, "beta_s_per_byte", &out->beta));
    if (!before && out->from != 0)
        note(&status, cs_json_invalid(&from, r->error, "must be 0 in the first regime"));
    else if (before && out->from <= before->from)
        note(&status,
             cs_json_invalid(&from, r->error, "must be larger than in the previous regime"));
    return status;
}

static cs_status take_regimes(reader *r, const cs_list *list, const cs_json_place *up,
                              cs_cost_regime *regimes)
{
    const cs_json_place place = {.up = up, .key = "regimes"};
    const regime_parts *const *items = list->items;
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < list->n; i++)
        note(&status, take_regime(r, items[i], &(cs_json_place){.up = &place, .index = (int)i},
                                  i > 0 ? &regimes[i - 1] : NULL, &regimes[i]));
    return status;
}

static bool is_count(double value, double most)
{
    return value <= most && value == floor(value);
}

static cs_status take_point(reader *r, const cs_list *list, const cs_json_place *place,
                            cs_cost_point *out)
{
    double value[POINT_VALUES] = {0};
    memcpy(value, list->items, list->n * sizeof(*value));
    bool good =
        (list->n == 2 || list->n == POINT_VALUES) && is_count(value[0], 0x1p53) && value[1] > 0;
    if (good && list->n == POINT_VALUES)
        good = 0 < value[2] && value[2] <= value[1] && value[1] <= value[3] && value[4] >= 1 &&
               is_count(value[4], UINT32_MAX);
    if (!good)
        return cs_json_invalid(place, r->error,
                               "must be [bytes, seconds] or [bytes, seconds, low, high, samples], "
                               "bytes and samples whole, 0 < low <= seconds <= high");
    *out = (cs_cost_point){.bytes = (int64_t)value[0],
                           .seconds = value[1],
                           .low = value[2],
                           .high = value[3],
                           .samples = (uint32_t)value[4]};
    return CS_OK;
}

static cs_status take_points(reader *r, const cs_list *list, const cs_json_place *up,
                             cs_cost_network *entry)
{
    const cs_json_place place = {.up = up, .key = "points"};
    const cs_list *items = list->items;
    cs_status status = CS_OK;
    cs_cost_point *points = cs_arena_alloc(&r->arena, list->n, sizeof(*points));
    if (!points)
        return cs_error_no_memory(r->error);
    for (uint32_t i = 0; i < list->n; i++) {
        const cs_json_place at = {.up = &place, .index = (int)i};
        note(&status, take_point(r, &items[i], &at, &points[i]));
        if (status == CS_OK && i > 0 && points[i].bytes < points[i - 1].bytes)
            status =
                cs_json_invalid(&at, r->error, "must not have fewer bytes than the previous point");
    }
    entry->points = points;
    entry->n_points = list->n;
    return status;
}

static cs_status take_network(reader *r, const void *item, const cs_json_place *place)
{
    const network_parts *parts = item;
    cs_cost_regime regimes[REGIMES_MAX];
    cs_cost_network entry = {.collective = parts->collective,
                             .level = parts->level,
                             .ranks = parts->ranks,
                             .regimes = regimes,
                             .n_regimes = parts->regimes.n,
                             .source = parts->source};
    cs_status status = check_source(r, parts->source, place);
    note(&status, take_regimes(r, &parts->regimes, place, regimes));
    note(&status, take_points(r, &parts->points, place, &entry));
    if (status == CS_OK && cs_costs_network(r->costs, entry.collective, entry.level, entry.ranks))
        status = twin(r, place);
    return status == CS_OK ? cs_costs_add_network(r->costs, &entry, r->error) : status;
}

static cs_status take_bandwidth(reader *r, const void *item, const cs_json_place *place)
{
    const bandwidth_parts *parts = item;
    cs_cost_bandwidth entry = parts->entry;
    cs_status status = check_text(r, entry.kind, "kind", place);
    note(&status, check_source(r, entry.source, place));
    note(&status, take_interval(r, parts->rate, place, "bytes_per_s", &entry.bytes_per_s));
    if (status == CS_OK && cs_costs_bandwidth(r->costs, entry.kind))
        status = twin(r, place);
    return status == CS_OK ? cs_costs_add_bandwidth(r->costs, &entry, r->error) : status;
}

static cs_status take_overhead(reader *r, const void *item, const cs_json_place *place)
{
    const cs_json_place time = {.up = place, .key = "time"};
    const overhead_parts *parts = item;
    cs_cost_overhead entry = parts->entry;
    entry.time = *parts->time;
    cs_status status = check_text(r, entry.kind, "kind", place);
    note(&status, check_source(r, entry.source, place));
    note(&status, check_timing(r, &entry.time, &time));
    if (status == CS_OK && cs_costs_overhead(r->costs, entry.kind))
        status = twin(r, place);
    return status == CS_OK ? cs_costs_add_overhead(r->costs, &entry, r->error) : status;
}

static cs_status read_document(reader *r, const cJSON *root, const cs_json_place *place)
{
    document parts = {0};
    CS_TRY(cs_field_read(root, place, (const cs_field *const[]){document_fields, NULL},
                         (void *const[]){&parts}, &r->arena, r->error));
    const struct {
        const char *key;
        const cs_list *list;
        cs_status (*take)(reader *, const void *, const cs_json_place *);
    } lists[] = {{"sources", &parts.sources, take_source},
                 {"compute", &parts.compute, take_compute},
                 {"memory", &parts.memory, take_memory},
                 {"network", &parts.network, take_network},
                 {"bandwidths", &parts.bandwidths, take_bandwidth},
                 {"overheads", &parts.overheads, take_overhead}};
    cs_status status = CS_OK;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const cs_json_place up = {.up = place, .key = lists[i].key};
        const void *const *items = lists[i].list->items;
        for (uint32_t k = 0; k < lists[i].list->n; k++)
            note(&status, lists[i].take(r, items[k], &(cs_json_place){.up = &up, .index = (int)k}));
    }
    return status;
}

cs_status cs_costs_read(const cJSON *root, const cs_json_place *place, cs_costs *costs,
                        cs_error *error)
{
    cs_costs made;
    reader r = {.costs = &made, .error = error};
    cs_costs_init(&made);
    cs_arena_init(&r.arena);
    const cs_status status = read_document(&r, root, place);
    cs_arena_finish(&r.arena);
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
    const cs_json_place place = {.file = path};
    cs_status status = cs_document_expect(CS_DOCUMENT_COSTS, root, &place, error);
    if (status == CS_OK)
        status = cs_costs_read(root, &place, costs, error);
    cJSON_Delete(root);
    return status;
}

/* ---- writing ---- */

/* Copy entries into the form of the tables, in an arena. Return NULL if memory runs out. */
static void *copy(cs_arena *arena, const void *entry, size_t size)
{
    void *made = cs_arena_alloc(arena, 1, size);
    return made ? memcpy(made, entry, size) : NULL;
}

static const void *make_source(const cs_costs *costs, uint32_t i, cs_arena *arena)
{
    (void)arena;
    return &costs->sources[i];
}

static const void *make_compute(const cs_costs *costs, uint32_t i, cs_arena *arena)
{
    const cs_cost_compute *entry = &costs->compute[i];
    compute_parts parts = {.entry = *entry};
    for (int p = 0; p < CS_COST_PASSES; p++) {
        if (entry->passes[p].samples == 0)
            continue;
        const bool own = entry->pass_sources[p] != entry->source;
        const pass_parts pass = {entry->passes[p],
                                 own ? (double)entry->pass_sources[p] : (double)NAN};
        parts.passes[p] = copy(arena, &pass, sizeof(pass));
        if (!parts.passes[p])
            return NULL;
    }
    return copy(arena, &parts, sizeof(parts));
}

static const void *make_memory(const cs_costs *costs, uint32_t i, cs_arena *arena)
{
    (void)arena;
    return &costs->memory[i];
}

static cs_cost_interval *make_interval(const cs_cost_interval *interval, cs_arena *arena)
{
    cs_cost_interval made = *interval;
    if (!cs_cost_interval_is_known(interval))
        made.low = made.high = NAN;
    return copy(arena, &made, sizeof(made));
}

static bool make_regimes(const cs_cost_network *entry, cs_arena *arena, cs_list *list)
{
    regime_parts **items = cs_arena_alloc(arena, entry->n_regimes, sizeof(*items));
    *list = (cs_list){.n = entry->n_regimes, .items = items};
    for (uint32_t i = 0; items && i < entry->n_regimes; i++) {
        const cs_cost_regime *regime = &entry->regimes[i];
        const regime_parts parts = {*regime, make_interval(&regime->alpha, arena),
                                    make_interval(&regime->beta, arena)};
        items[i] = copy(arena, &parts, sizeof(parts));
        if (!items[i] || !parts.alpha || !parts.beta)
            return false;
    }
    return items != NULL;
}

static bool make_points(const cs_cost_network *entry, cs_arena *arena, cs_list *list)
{
    if (entry->n_points == 0)
        return true; /* omitted */
    cs_list *items = cs_arena_alloc(arena, entry->n_points, sizeof(*items));
    *list = (cs_list){.n = entry->n_points, .items = items};
    for (uint32_t i = 0; items && i < entry->n_points; i++) {
        const cs_cost_point *point = &entry->points[i];
        const double values[POINT_VALUES] = {(double)point->bytes, point->seconds, point->low,
                                             point->high, point->samples};
        items[i] = (cs_list){.n = point->samples > 0 ? POINT_VALUES : 2,
                             .items = copy(arena, values, sizeof(values))};
        if (!items[i].items)
            return false;
    }
    return items != NULL;
}

static const void *make_network(const cs_costs *costs, uint32_t i, cs_arena *arena)
{
    const cs_cost_network *entry = &costs->network[i];
    network_parts parts = {.collective = entry->collective,
                           .level = entry->level,
                           .ranks = entry->ranks,
                           .source = entry->source};
    return make_regimes(entry, arena, &parts.regimes) && make_points(entry, arena, &parts.points)
               ? copy(arena, &parts, sizeof(parts))
               : NULL;
}

static const void *make_bandwidth(const cs_costs *costs, uint32_t i, cs_arena *arena)
{
    const cs_cost_bandwidth *entry = &costs->bandwidths[i];
    const bandwidth_parts parts = {*entry, make_interval(&entry->bytes_per_s, arena)};
    return parts.rate ? copy(arena, &parts, sizeof(parts)) : NULL;
}

static const void *make_overhead(const cs_costs *costs, uint32_t i, cs_arena *arena)
{
    const cs_cost_overhead *entry = &costs->overheads[i];
    const overhead_parts parts = {*entry, copy(arena, &entry->time, sizeof(entry->time))};
    return parts.time ? copy(arena, &parts, sizeof(parts)) : NULL;
}

/* Fills the lists of a document. */
static bool make_document(const cs_costs *costs, cs_arena *arena, document *out)
{
    const struct {
        cs_list *list;
        uint32_t n;
        const void *(*make)(const cs_costs *, uint32_t, cs_arena *);
        bool rare; /* omitted if empty */
    } lists[] = {{&out->sources, costs->n_sources, make_source},
                 {&out->compute, costs->n_compute, make_compute},
                 {&out->memory, costs->n_memory, make_memory, .rare = true},
                 {&out->network, costs->n_network, make_network},
                 {&out->bandwidths, costs->n_bandwidths, make_bandwidth},
                 {&out->overheads, costs->n_overheads, make_overhead}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (lists[i].rare && lists[i].n == 0)
            continue;
        const void **items = cs_arena_alloc(arena, lists[i].n, sizeof(*items));
        *lists[i].list = (cs_list){.n = lists[i].n, .items = items};
        for (uint32_t k = 0; items && k < lists[i].n; k++)
            if (!(items[k] = lists[i].make(costs, k, arena)))
                return false;
        if (!items)
            return false;
    }
    return true;
}

cJSON *cs_costs_json(const cs_costs *costs)
{
    document parts = {.schema_version = SCHEMA_VERSION};
    cs_arena arena;
    cs_arena_init(&arena);
    cJSON *root = cJSON_CreateObject();
    const bool done = root && make_document(costs, &arena, &parts) &&
                      cs_field_write(document_fields, &parts, root);
    cs_arena_finish(&arena);
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
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) /* a device has no earlier costs */
        CS_TRY(cs_costs_load(path, &all, error));
    status = cs_costs_merge(&all, measured, error);
    if (status == CS_OK)
        status = cs_costs_save(&all, path, error);
    cs_costs_finish(&all);
    return status;
}

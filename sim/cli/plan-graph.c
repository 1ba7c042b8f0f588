#include "sim/cli/plan-graph.h"

#include "schedules/plan/replication.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/cli/scenario-option.h"
#include "sim/model/foreign/pipedream-prefixes.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LEVELS = 8 };

typedef struct graph_plan {
    cs_replication_level levels[MOST_LEVELS];
    cs_replication replication;
    cs_prefixes prefixes;
    cs_plan plan;
    cs_time period;
} graph_plan;

/* ---- options ---- */

static cs_status read_devices(const char *text, uint32_t *n, cs_error *error)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value == 0 || value >= CS_PLAN_DEVICES)
        return cs_error_add(error, CS_USAGE,
                            "plan: --devices must be whole numbers from 1 to %d, one per level "
                            "(got \"%s\")",
                            CS_PLAN_DEVICES - 1, text);
    *n = (uint32_t)value;
    return CS_OK;
}

static cs_status read_quantity(const char *option, const char *text, cs_quantity quantity,
                               double *value, cs_error *error)
{
    cs_error own;
    cs_error_init(&own);
    double read;
    if (cs_units_parse(text, quantity, &read, &own) != CS_OK)
        return cs_error_add(error, CS_USAGE, "plan: --%s: %s", option, own.text);
    if (!(read > 0))
        return cs_error_add(error, CS_USAGE, "plan: --%s must be > 0 (got %g)", option, read);
    *value = read;
    return CS_OK;
}

/* The next of several words with commas between them; NULL at the end. */
static char *next_word(char **rest)
{
    char *word = *rest;
    if (!word)
        return NULL;
    char *comma = strchr(word, ',');
    *rest = comma ? comma + 1 : NULL;
    if (comma)
        *comma = '\0';
    return word;
}

static cs_status read_levels(char *devices, char *bandwidths, graph_plan *g, cs_error *error)
{
    cs_status status = CS_OK;
    uint32_t n = 0;
    char *count, *bandwidth;
    while (status == CS_OK && (count = next_word(&devices))) {
        bandwidth = next_word(&bandwidths);
        if (!bandwidth || n == MOST_LEVELS)
            return cs_error_add(error, CS_USAGE,
                                "plan: --devices and --bandwidth must have a value for each level, "
                                "from the innermost one, and at most %d of them",
                                MOST_LEVELS);
        status = read_devices(count, &g->levels[n].n, error);
        if (status == CS_OK)
            status = read_quantity("bandwidth", bandwidth, CS_QUANTITY_BANDWIDTH,
                                   &g->levels[n++].bandwidth, error);
    }
    if (status == CS_OK && bandwidths)
        return cs_error_add(error, CS_USAGE, "plan: --bandwidth has more values than --devices");
    g->replication = (cs_replication){.levels = g->levels, .n_levels = n, .memory = INT64_MAX};
    return status;
}

static cs_status read_options(const cs_arguments *arguments, graph_plan *g, cs_error *error)
{
    const char *bandwidth = cs_arguments_value(arguments, "bandwidth");
    const char *memory = cs_arguments_value(arguments, "memory");
    if (!bandwidth)
        return cs_error_add(error, CS_USAGE, "plan: --devices needs --bandwidth, like 1 GB/s");
    char *devices = strdup(cs_arguments_value(arguments, "devices"));
    char *bandwidths = strdup(bandwidth);
    cs_status status = devices && bandwidths ? read_levels(devices, bandwidths, g, error)
                                             : cs_error_no_memory(error);
    free(devices);
    free(bandwidths);
    double bytes = 0;
    if (status == CS_OK && memory)
        status = read_quantity("memory", memory, CS_QUANTITY_BYTES, &bytes, error);
    if (status == CS_OK && bytes >= 0x1p62)
        return cs_error_add(error, CS_USAGE, "plan: --memory must be below 2^62 bytes");
    if (status == CS_OK && memory)
        g->replication.memory = (int64_t)bytes;
    return status;
}

/* ---- what a stage holds ---- */

typedef struct graph_stage {
    uint32_t n_nodes, first, last; /* nodes, and two of their numbers */
    cs_time time;
    int64_t weight_bytes, crossing_bytes; /* the latter: behind it */
} graph_stage;

static bool in_stage(const graph_plan *g, const cs_stage *stage, uint32_t node)
{
    const cs_prefixes *p = &g->prefixes;
    const uint64_t *until = &p->sets[(size_t)(stage->end_layer - 1) * p->n_words];
    const uint64_t *before =
        stage->first_layer > 0 ? &p->sets[(size_t)(stage->first_layer - 1) * p->n_words] : NULL;
    uint64_t bit = UINT64_C(1) << node % 64;
    return (until[node / 64] & bit) && !(before && (before[node / 64] & bit));
}

static graph_stage stage_of(const graph_plan *g, uint32_t s)
{
    const cs_stage *stage = &g->plan.stages[s];
    const cs_prefix *until = &g->prefixes.all[stage->end_layer - 1], none = {0};
    const cs_prefix *before =
        stage->first_layer > 0 ? &g->prefixes.all[stage->first_layer - 1] : &none;
    graph_stage made = {.time = until->time - before->time,
                        .weight_bytes = until->weight_bytes - before->weight_bytes,
                        .crossing_bytes = s + 1 < g->plan.n_stages ? until->crossing_bytes : 0};
    for (uint32_t node = 0; node < g->prefixes.n_nodes; node++) {
        if (!in_stage(g, stage, node))
            continue;
        made.first = made.n_nodes++ == 0 ? node : made.first;
        made.last = node;
    }
    return made;
}

/* ---- output ---- */

static void print_row(const graph_plan *g, uint32_t s, FILE *out)
{
    const cs_stage *stage = &g->plan.stages[s];
    graph_stage of = stage_of(g, s);
    char cuts[32];
    snprintf(cuts, sizeof(cuts), "[%u, %u)", stage->first_layer, stage->end_layer);
    fprintf(out, "%5u  %8u  %-11s %-11s %-10s %-10s %5u  %s ... %s\n", s, stage->n_devices, cuts,
            cs_units_text(cs_time_seconds(of.time), CS_QUANTITY_TIME, 6).s,
            cs_units_text((double)of.weight_bytes, CS_QUANTITY_BYTES, 4).s,
            s + 1 < g->plan.n_stages
                ? cs_units_text((double)of.crossing_bytes, CS_QUANTITY_BYTES, 4).s
                : "-",
            of.n_nodes, g->prefixes.names[of.first], g->prefixes.names[of.last]);
}

static void print_table(const graph_plan *g, const char *name, FILE *out)
{
    uint32_t n_devices = 1;
    for (uint32_t level = 0; level < g->replication.n_levels; level++)
        n_devices *= g->levels[level].n;
    cs_text_puts(out, name);
    fprintf(out, ": %u nodes, %u places to cut; %u stage%s on %u device%s\n", g->prefixes.n_nodes,
            g->prefixes.n, g->plan.n_stages, g->plan.n_stages == 1 ? "" : "s", n_devices,
            n_devices == 1 ? "" : "s");
    fprintf(out, "period of a mini-batch by PipeDream's cost model: %s\n\n",
            cs_units_text(cs_time_seconds(g->period), CS_QUANTITY_TIME, 9).s);
    fprintf(out, "%5s  %8s  %-11s %-11s %-10s %-10s %5s  %s\n", "stage", "replicas", "cuts", "time",
            "weights", "crossing", "nodes", "from ... to");
    for (uint32_t s = 0; s < g->plan.n_stages; s++)
        print_row(g, s, out);
}

static bool add_nodes(const graph_plan *g, uint32_t s, cJSON *object)
{
    cJSON *nodes = cJSON_AddArrayToObject(object, "nodes");
    for (uint32_t node = 0; nodes && node < g->prefixes.n_nodes; node++) {
        if (in_stage(g, &g->plan.stages[s], node) &&
            !cJSON_AddItemToArray(nodes, cJSON_CreateString(g->prefixes.names[node])))
            return false;
    }
    return nodes != NULL;
}

static bool add_devices(const graph_plan *g, uint32_t s, cJSON *object)
{
    const cs_stage *stage = &g->plan.stages[s];
    cJSON *devices = cJSON_AddArrayToObject(object, "devices");
    for (uint32_t d = 0; devices && d < stage->n_devices; d++) {
        uint32_t device = g->plan.devices[stage->first_device + d];
        if (!cJSON_AddItemToArray(devices, cJSON_CreateNumber(device)))
            return false;
    }
    return devices != NULL;
}

static bool add_stage(const graph_plan *g, uint32_t s, cJSON *list)
{
    const cs_stage *stage = &g->plan.stages[s];
    graph_stage of = stage_of(g, s);
    cJSON *object = cs_json_add_item(list);
    return cJSON_AddNumberToObject(object, "first_cut", stage->first_layer) &&
           cJSON_AddNumberToObject(object, "end_cut", stage->end_layer) &&
           add_devices(g, s, object) &&
           cJSON_AddNumberToObject(object, "time_s", cs_time_seconds(of.time)) &&
           cJSON_AddNumberToObject(object, "weight_bytes", (double)of.weight_bytes) &&
           cJSON_AddNumberToObject(object, "crossing_bytes", (double)of.crossing_bytes) &&
           add_nodes(g, s, object);
}

/* NULL when memory runs out. */
static cJSON *plan_json(const graph_plan *g, const char *name)
{
    cJSON *root = cJSON_CreateObject(), *list = NULL;
    if (cJSON_AddStringToObject(root, "name", name) &&
        cJSON_AddNumberToObject(root, "cuts", g->prefixes.n) &&
        cJSON_AddNumberToObject(root, "period_s", cs_time_seconds(g->period)))
        list = cJSON_AddArrayToObject(root, "stages");
    for (uint32_t s = 0; list && s < g->plan.n_stages; s++)
        list = add_stage(g, s, list) ? list : NULL;
    if (list)
        return root;
    cJSON_Delete(root);
    return NULL;
}

cs_status cs_plan_graph(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    graph_plan g = {0};
    const char *path = arguments->words[0];
    cs_status status = read_options(arguments, &g, error);
    if (status == CS_OK)
        status = cs_pipedream_prefixes_load(path, &g.prefixes, error);
    g.replication.prefixes = &g.prefixes;
    if (status == CS_OK)
        status = cs_replication_plan(&g.replication, &g.plan, &g.period, error);
    if (status == CS_OK && cs_arguments_flag(arguments, "json"))
        status = cs_print_json(plan_json(&g, path), context->out, error);
    else if (status == CS_OK)
        print_table(&g, path, context->out);
    cs_plan_finish(&g.plan);
    cs_prefixes_finish(&g.prefixes);
    return status;
}

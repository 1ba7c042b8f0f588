/* Rules for the section "platform": the GPU, its node and the network. */
#include "sim/base/units.h"
#include "sim/run/recipe/rules.h"
#include "topologies/topology.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *cs_rules_gpu(const cs_description *run)
{
    const char *found = cs_rules_find(&cs_device_kind, run->hardware->gpu);
    return found ? found : "";
}

const char *cs_rules_device(cs_rules *rules)
{
    const char *name = cs_rules_gpu(rules->run);
    if (!*name)
        cs_rules_miss(rules, "the device %s", rules->run->hardware->gpu);
    return *name ? name : NULL;
}

/* ---- nodes ---- */

enum { USUAL_NODE = 8 }; /* GPUs of a machine that is one node */

/* The machine that a run is on. */
typedef struct nodes {
    const char *name; /* of `sim list topologies` */
    cJSON *root;      /* its description; NULL: not known */
    cJSON *platform;
    uint32_t usual;  /* GPUs of a node as people count them: 4 in a tray of an NVL72 */
    uint32_t joined; /* GPUs of a node of the platform: 72 in an NVL72 */
    bool cluster;    /* it can have several of these */
} nodes;

static uint32_t count_of(const cJSON *value, uint32_t otherwise)
{
    return cJSON_IsNumber(value) && value->valuedouble >= 1 ? (uint32_t)value->valuedouble
                                                            : otherwise;
}

/* The machine that the run states, or names in its words on links, else the usual one of its GPU.
 */
static void load_nodes(cs_rules *rules, const cs_description *run, nodes *of)
{
    const cs_description_hardware *hardware = run->hardware;
    const char *usual = cJSON_GetStringValue(cs_rules_at(rules, "/device/machine"));
    const char *said = hardware->inter ? cs_facts_find(&cs_machine_kind, hardware->inter) : NULL;
    const char *asked = hardware->machine ? hardware->machine : said ? said : usual;
    cs_error ignored;
    cs_error_init(&ignored);
    *of = (nodes){.name = asked ? cs_rules_find(&cs_machine_kind, asked) : NULL};
    if (!of->name)
        return;
    const cs_status status = cs_facts_load(&cs_machine_kind, of->name, NULL, &of->root, &ignored);
    if (status == CS_NO_MEMORY)
        rules->status = cs_error_no_memory(rules->error);
    if (status != CS_OK)
        return;
    of->platform = cJSON_GetObjectItemCaseSensitive(of->root, "platform");
    of->joined = count_of(cs_json_member(of->platform, "gpus_per_node"), USUAL_NODE);
    of->usual = count_of(cs_rules_at(rules, "/device/gpus_per_node"), of->joined);
    of->cluster = cs_json_member(of->platform, "network") != NULL;
}

bool cs_rules_rack(cs_rules *rules, const cs_description *run)
{
    nodes of;
    load_nodes(rules, run, &of);
    const bool rack = of.root && of.joined > of.usual;
    cJSON_Delete(of.root);
    return rack;
}

/* ---- adapters ---- */

/* Network adapters of a node and the bandwidth of each, bytes/s; 0: not known. */
typedef struct adapters {
    uint32_t n;
    double bandwidth;
} adapters;

/* Generations of InfiniBand, Gbit/s of a port with four lanes (InfiniBand Trade Association,
 * roadmap). */
static const struct {
    const char *name;
    double rate;
} generations[] = {{"QDR", 32},  {"FDR", 56},  {"EDR", 100},
                   {"HDR", 200}, {"NDR", 400}, {"XDR", 800}};

/* Gbit/s, bit/s with a lower-case b, are rates of links; GB/s are not meant. */
static bool is_rate(const char *unit)
{
    static const char *const units[] = {"Gbit/s", "Gb/s", "Gb/Sec", "Gbps"};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strncmp(unit, units[i], strlen(units[i])) == 0)
            return true;
    return false;
}

/* Reads a clause such as "8 x HDR", "4 x 100 Gbit/s per node", "NDR 400 Gbit/s per GPU", "800
 * Gbit/s per node" or "100 Gbit/s". A rate alone means one adapter per node; a rate per GPU, one
 * adapter per GPU; a rate per node is shared by one adapter per GPU. Sets *counted if the clause
 * states the number of adapters. */
static adapters read_clause(const char *clause, size_t length, uint32_t gpus, uint32_t usual,
                            bool *counted)
{
    char text[128] = "";
    double rate = 0, generation = 0, n = 0;
    snprintf(text, sizeof(text), "%.*s", (int)length, clause);
    for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++)
        if (strstr(text, generations[i].name))
            generation = generations[i].rate;
    for (const char *at = text; *at;) {
        char *end;
        if (!isdigit((unsigned char)*at) || (at > text && isalnum((unsigned char)at[-1]))) {
            at++;
            continue;
        }
        const double value = strtod(at, &end);
        while (*end == ' ')
            end++;
        if (*end == 'x' && !isalnum((unsigned char)end[1]) && n == 0)
            n = value;
        else if (is_rate(end))
            rate = value;
        at = end;
    }
    const bool each = strstr(text, "per GPU"), node = strstr(text, "per node");
    *counted = n > 0 || each || node;
    const double one = rate > 0 ? rate : generation;
    if (n == 0 && node && one > 0)
        return (adapters){gpus, one / gpus * 1e9 / 8};
    n = n > 0 ? n : each ? gpus : generation > 0 ? usual : 1;
    return (adapters){n <= 1024 ? (uint32_t)n : 0, one * 1e9 / 8};
}

/* Adapters as the run states them, or else as its words on links do. Of several clauses with a
 * number, the largest number wins: "Storage: 2 x NDR, Compute: 8 x NDR". */
static adapters adapters_of(const cs_description_hardware *hardware, uint32_t gpus, uint32_t usual,
                            double bandwidth)
{
    adapters found = {0};
    bool stated = false;
    if (hardware->adapters > 0)
        return (adapters){hardware->adapters, hardware->adapter_bandwidth > 0
                                                  ? hardware->adapter_bandwidth
                                                  : bandwidth};
    for (const char *at = hardware->inter; at && *at;) {
        const size_t length = strcspn(at, ",;+");
        bool counted;
        const adapters one = read_clause(at, length, gpus, usual, &counted);
        const bool more = counted == stated ? one.n > found.n || found.bandwidth == 0 : counted;
        if ((one.bandwidth > 0 || (counted && one.n > found.n)) && more) {
            found = one;
            stated = counted;
        }
        at += length + (at[length] != '\0');
    }
    return found.bandwidth > 0 ? found : (adapters){0};
}

static bool starts_with(const char *text, const char *name)
{
    while (*name && tolower((unsigned char)*text) == *name) {
        text++;
        name++;
    }
    return *name == '\0';
}

/* The fabric that words on links name, or NULL: "RoCE, 4 x 100 Gbit/s", "AWS EFA". */
static const char *fabric_of(const char *words)
{
    for (size_t i = 0; words && cs_fabric_names[i]; i++)
        for (const char *at = words; *at; at++)
            if ((at == words || !isalnum((unsigned char)at[-1])) &&
                starts_with(at, cs_fabric_names[i]))
                return cs_fabric_names[i];
    return NULL;
}

static adapters own_adapters(const cJSON *platform)
{
    const cJSON *pcie = cs_json_member(cs_json_member(platform, "node"), "pcie");
    const cJSON *text = cs_json_member(cs_json_member(platform, "network"), "bandwidth");
    adapters own = {.n = count_of(cs_json_member(pcie, "nics"), 0)};
    cs_error ignored;
    cs_error_init(&ignored);
    if (!cJSON_IsString(text) ||
        cs_units_parse(text->valuestring, CS_QUANTITY_BANDWIDTH, &own.bandwidth, &ignored) != CS_OK)
        own = (adapters){0};
    return own;
}

static bool replace(cJSON *object, const char *key, cJSON *value)
{
    if (value && cJSON_ReplaceItemInObjectCaseSensitive(object, key, value))
        return true;
    cJSON_Delete(value);
    return false;
}

/* Several adapters per GPU are one; a GPU has its share of fewer adapters, if there are several. */
static bool set_adapters(cJSON *platform, adapters given, uint32_t gpus)
{
    cJSON *node = cJSON_GetObjectItemCaseSensitive(platform, "node");
    cJSON *pcie = cJSON_GetObjectItemCaseSensitive(node, "pcie");
    cJSON *network = cJSON_GetObjectItemCaseSensitive(platform, "network");
    const uint32_t rails = count_of(cs_json_member(network, "rails"), 0),
                   own = count_of(cs_json_member(pcie, "nics"), 0);
    const uint32_t n = given.n > 1 && (given.n % gpus == 0 || given.n < gpus) ? gpus : given.n;
    const cs_units_value bandwidth =
        cs_units_text(given.bandwidth * given.n / n, CS_QUANTITY_BANDWIDTH, 17);
    return replace(pcie, "nics", cJSON_CreateNumber(n)) &&
           replace(network, "bandwidth", cJSON_CreateString(bandwidth.s)) &&
           (rails != own || replace(network, "rails", cJSON_CreateNumber(n)));
}

static uint32_t power_below(uint32_t n)
{
    uint32_t power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

/* Adds a member, which the function takes over; NULL: memory ran out. */
static void add(cs_rules *rules, cJSON *object, const char *key, cJSON *value)
{
    if (value && cJSON_AddItemToObject(object, key, value))
        return;
    cJSON_Delete(value);
    rules->status = cs_error_no_memory(rules->error);
}

/* Returns {"topology": ...} of the run's nodes, or an empty object if something is missing. */
static cJSON *write_nodes(cs_rules *rules)
{
    const cs_description_hardware *hardware = rules->run->hardware;
    cJSON *platform = cJSON_CreateObject();
    nodes of;
    load_nodes(rules, rules->run, &of);
    const uint32_t node = hardware->gpus_per_node > 0 ? hardware->gpus_per_node : of.usual;
    uint32_t joined = node == of.usual ? of.joined : node;
    const bool several = hardware->gpus > joined;
    if (hardware->gpus == 1) {
        add(rules, platform, "topology", cJSON_CreateString("ideal"));
    } else if (!of.root && hardware->machine) {
        cs_rules_miss(rules, "the machine %s", hardware->machine);
    } else if (!of.root || (several && node > of.joined)) {
        cs_rules_miss(rules, "the nodes of %s", hardware->gpu);
    } else if (several && !of.cluster) {
        cs_rules_miss(rules, "several nodes of %s", hardware->gpu);
    } else {
        const adapters own = own_adapters(of.platform);
        adapters given = {0};
        if (several)
            given = adapters_of(hardware, node, own.n * node / of.joined, own.bandwidth);
        given.n =
            given.n * of.joined / node; /* adapters of a whole node; jobs may use a part of it */
        const bool others = given.n > 0 && (given.n != own.n || given.bandwidth != own.bandwidth);
        const char *stated = several ? fabric_of(hardware->inter) : NULL;
        const char *fabric = stated && strcmp(stated, cs_fabric_names[0]) != 0 ? stated : NULL;
        if (several && joined == of.joined && power_below(joined) < joined) {
            cs_rules_assume(rules, "%u of %u GPUs that NVLinks join, where a job takes more",
                            power_below(joined), joined);
            joined = power_below(joined);
        }
        if (several && given.n == 0)
            cs_rules_assume(rules,
                            "nodes are joined as in %s, where the description does not say how",
                            of.name);
        else if (!of.cluster)
            cs_rules_assume(rules, "cards are joined as in %s", of.name);
        if (!others && !fabric && (!several || joined == of.joined)) {
            add(rules, platform, "topology", cJSON_CreateString(of.name));
        } else {
            cJSON_Delete(platform);
            platform = cJSON_DetachItemViaPointer(of.root, of.platform);
            if ((others && !set_adapters(platform, given, of.joined)) ||
                !replace(platform, "gpus_per_node", cJSON_CreateNumber(joined)))
                rules->status = cs_error_no_memory(rules->error);
            if (fabric)
                add(rules, platform, "fabric", cJSON_CreateString(fabric));
        }
    }
    cJSON_Delete(of.root);
    return platform;
}

/* ---- the section ---- */

/* Each message has the time that was measured, and no other to share links with. */
static cJSON *write_measured_links(cs_rules *rules)
{
    const cs_description *run = rules->run;
    cJSON *platform = cJSON_CreateObject();
    const double stated = cs_time_seconds(run->options->exchange_latency);
    add(rules, platform, "topology", cJSON_CreateString("nvlink_switch"));
    add(rules, platform, "bandwidth", cJSON_CreateString("1 PB/s"));
    add(rules, platform, "latency",
        cJSON_CreateNumber(stated > 0 ? stated : run->options->profiled_ms->message * 1e-3));
    return platform;
}

/* Adds the memory only if it differs from the device's by more than 10 %: vendors call 270 GiB
 * "288 GB". If a GPU is sold with several sizes of memory, the driver is assumed to report the same
 * share of each size. */
static void add_memory(cs_rules *rules, cJSON *platform)
{
    const cs_description *run = rules->run;
    static const double gib = 1024.0 * 1024 * 1024;
    const double stated = run->hardware->memory_gb * gib;
    const char *name = cs_rules_gpu(run);
    cs_accelerator device = {0};
    cs_device_facts facts = {0};
    char text[64];
    const cs_status status = *name ? cs_accelerator_load(name, NULL, &device, NULL) : CS_INVALID;
    if (status == CS_NO_MEMORY)
        rules->status = cs_error_no_memory(rules->error);
    if (status == CS_OK)
        facts = cs_accelerator_facts(&device);
    cs_accelerator_finish(&device);
    const double nominal = (double)facts.memory;
    const cs_driver *driver = &facts.driver;
    if (!isfinite(stated) || !(fabs(stated - nominal) > 0.1 * nominal))
        return;
    const double reported = nominal > 0 ? stated * ((double)driver->reported / nominal) : stated;
    const int64_t taken = driver->context + (run->hardware->gpus > 1 ? driver->communicator : 0);
    snprintf(text, sizeof(text), "%.9g GiB", reported / gib);
    add(rules, platform, "memory", cJSON_CreateString(text));
    add(rules, platform, "reserve",
        cJSON_CreateNumber((double)taken < reported / 2 ? (double)taken : 0));
}

void cs_rules_platform(cs_rules *rules)
{
    const cs_description *run = rules->run;
    const bool measured = run->options->profiled_ms != NULL;
    cJSON *platform = measured ? write_measured_links(rules) : write_nodes(rules);
    add(rules, platform, "devices", cJSON_CreateNumber(run->hardware->gpus));
    /* One of many like places of a pipeline is simulated: their messages then share no links. */
    if (run->parallel->pp > 1 && run->hardware->gpus > 64 && !measured) {
        cs_rules_assume(rules, "messages between stages share no links, on over 64 GPUs");
        add(rules, platform, "sharing", cJSON_CreateString("none"));
    }
    add_memory(rules, platform);
    if (run->options->blocking_messages)
        add(rules, platform, "blocking", cJSON_CreateTrue());
    if (rules->made->n_missing == 0)
        cs_rules_put(rules, "/scenario/platform", platform);
    else
        cJSON_Delete(platform);
}

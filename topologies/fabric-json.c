#include "topologies/fabric-json.h"

#include "sim/base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1

enum { MOST_ROUTES = 1 << 17, LONGEST_ROUTE = 1024 };

static const char *const kind_names[] = {
#define NAME(name, text) text,
    CS_VERTEX_MAP(NAME)
#undef NAME
        NULL};

typedef struct document {
    uint32_t version, relays;
    const char *name;
    cs_list vertices, links, routes; /* lists of pointers to entries */
} document;

typedef struct vertex_entry {
    const char *name;
    uint32_t kind;
} vertex_entry;

static const cs_field vertex_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(vertex_entry, name), .doc = "unique"},
    {"kind", CS_FIELD_CHOICE, offsetof(vertex_entry, kind), .fallback = "switch",
     .choices = kind_names, .doc = "gpu: a device; nic: where a node can be joined to a network"},
    {0}};

typedef struct link_entry {
    const char *from, *to;
    double bandwidth;
    cs_time latency;
    bool peer, duplex;
} link_entry;

static const cs_field link_fields[] = {
    {"from", CS_FIELD_TEXT, offsetof(link_entry, from), .doc = "a vertex"},
    {"to", CS_FIELD_TEXT, offsetof(link_entry, to), .doc = "a vertex"},
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(link_entry, bandwidth), .above_min = true,
     .doc = "one way"},
    {"latency", CS_FIELD_TIME, offsetof(link_entry, latency), .fallback = "0 s", .usual_max = 0.1,
     .doc = "one way"},
    {"peer", CS_FIELD_BOOL, offsetof(link_entry, peer), .fallback = "false",
     .doc =
         "an NVLink or similar: preferred to other links, and GPUs may forward what comes over it"},
    {"duplex", CS_FIELD_BOOL, offsetof(link_entry, duplex), .fallback = "false",
     .doc = "two links, the second one back"},
    {0}};

typedef struct route_entry {
    const char *from, *to;
    cs_list links; /* uint32_t */
} route_entry;

static const cs_field link_number = {"link", CS_FIELD_COUNT};

static const cs_field route_fields[] = {
    {"from", CS_FIELD_TEXT, offsetof(route_entry, from), .doc = "a GPU or NIC"},
    {"to", CS_FIELD_TEXT, offsetof(route_entry, to), .doc = "a GPU or NIC"},
    {"links", CS_FIELD_LIST, offsetof(route_entry, links), .of = &link_number, .least = 1,
     .most = LONGEST_ROUTE, .shape = "[link, ...]",
     .doc = "numbers of links, from 0, a duplex one counting twice"},
    {0}};

static const cs_field vertex_field = {"vertex", CS_FIELD_OBJECT, .of = vertex_fields,
                                      .size = sizeof(vertex_entry)};
static const cs_field link_field = {"link", CS_FIELD_OBJECT, .of = link_fields,
                                    .size = sizeof(link_entry)};
static const cs_field route_field = {"route", CS_FIELD_OBJECT, .of = route_fields,
                                     .size = sizeof(route_entry)};

static const cs_field document_fields[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(document, version), .min = VERSION, .max = VERSION,
     .doc = "of this form"},
    {"name", CS_FIELD_TEXT, offsetof(document, name), .fallback = "", .doc = "for people"},
    {"relays", CS_FIELD_COUNT, offsetof(document, relays), .fallback = "0",
     .doc = "GPUs that may pass a message on, over peer links"},
    {"vertices", CS_FIELD_LIST, offsetof(document, vertices), .of = &vertex_field,
     .shape = "[{\"name\": ...}, ...]",
     .doc = "devices are the vertices of kind gpu, in this order"},
    {"links", CS_FIELD_LIST, offsetof(document, links), .of = &link_field,
     .shape = "[{\"from\": ...}, ...]", .doc = "directed, unless duplex"},
    {"routes", CS_FIELD_LIST, offsetof(document, routes), .fallback = "", .of = &route_field,
     .shape = "[{\"from\": ...}, ...]", .doc = "where another route than a search finds is taken"},
    {0}};

/* ---- reading ---- */

typedef struct named {
    const char *name;
    uint32_t id;
} named;

typedef struct reader {
    cs_fabric *net;
    cs_arena arena;
    named *names; /* sorted by name */
    uint32_t n_names;
    cs_error *error;
} reader;

static int compare_names(const void *left, const void *right)
{
    const named *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static cs_status find(const reader *r, const char *name, const cs_json_place *entry,
                      const char *key, uint32_t *id)
{
    const named wanted = {.name = name};
    const named *found = r->n_names > 0
                             ? bsearch(&wanted, r->names, r->n_names, sizeof(wanted), compare_names)
                             : NULL;
    if (found) {
        *id = found->id;
        return CS_OK;
    }
    const cs_json_place place = {.up = entry, .key = key};
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (uint32_t i = 0; i < r->n_names; i++)
        cs_guess_add(&guess, r->names[i].name);
    return cs_json_invalid(&place, r->error, "unknown vertex %s", cs_guess_text(&guess));
}

static cs_status add_vertex(reader *r, const void *item, const cs_json_place *place)
{
    const vertex_entry *entry = item;
    if (strlen(entry->name) >= CS_FABRIC_NAME_BYTES) {
        const cs_json_place name = {.up = place, .key = "name"};
        return cs_json_invalid(&name, r->error, "must have at most %d bytes",
                               CS_FABRIC_NAME_BYTES - 1);
    }
    r->names[r->n_names++] = (named){
        entry->name, cs_fabric_vertex(r->net, (cs_vertex_kind)entry->kind, "%s", entry->name)};
    return CS_OK;
}

static cs_status add_link(reader *r, const void *item, const cs_json_place *place)
{
    const link_entry *entry = item;
    uint32_t from = 0, to = 0;
    CS_TRY(find(r, entry->from, place, "from", &from));
    CS_TRY(find(r, entry->to, place, "to", &to));
    cs_fabric_link(r->net, from, to, entry->bandwidth, entry->latency, entry->peer);
    if (entry->duplex)
        cs_fabric_link(r->net, to, from, entry->bandwidth, entry->latency, entry->peer);
    return CS_OK;
}

static cs_status add_route(reader *r, const void *item, const cs_json_place *place)
{
    const route_entry *entry = item;
    uint32_t from = 0, to = 0;
    const cs_json_place key = {.up = place, .key = "links"};
    CS_TRY(find(r, entry->from, place, "from", &from));
    CS_TRY(find(r, entry->to, place, "to", &to));
    if (!cs_fabric_leads(r->net, from, to, entry->links.items, entry->links.n))
        return cs_json_invalid(&key, r->error, "must be links that lead from \"%s\" to \"%s\"",
                               entry->from, entry->to);
    cs_fabric_route(r->net, from, to, entry->links.items, entry->links.n);
    return CS_OK;
}

/* Adds all entries of a list, continuing after a wrong one to report all errors. */
static cs_status add_all(reader *r, const cs_list *list, const cs_json_place *root, const char *key,
                         cs_status (*add)(reader *, const void *, const cs_json_place *))
{
    const cs_json_place place = {.up = root, .key = key};
    void *const *items = list->items;
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < list->n; i++) {
        const cs_json_place at = {.up = &place, .index = (int)i};
        const cs_status one = add(r, items[i], &at);
        status = status == CS_OK ? one : status;
    }
    return status;
}

static cs_status sort_names(reader *r, const cs_json_place *root)
{
    const cs_json_place place = {.up = root, .key = "vertices"};
    if (r->n_names > 1)
        qsort(r->names, r->n_names, sizeof(*r->names), compare_names);
    for (uint32_t i = 1; i < r->n_names; i++)
        if (strcmp(r->names[i - 1].name, r->names[i].name) == 0)
            return cs_json_invalid(&place, r->error, "must have different names (got \"%s\" twice)",
                                   r->names[i].name);
    return CS_OK;
}

static cs_status read_document(reader *r, const cJSON *root, const cs_json_place *place,
                               uint32_t *relays)
{
    document top;
    CS_TRY(cs_field_read(root, place, (const cs_field *const[]){document_fields, NULL},
                         (void *const[]){&top}, &r->arena, r->error));
    r->names = cs_arena_alloc(&r->arena, top.vertices.n, sizeof(*r->names));
    if (!r->names || !r->net)
        return cs_error_no_memory(r->error);
    cs_status status = add_all(r, &top.vertices, place, "vertices", add_vertex);
    if (status == CS_OK)
        status = sort_names(r, place);
    if (status == CS_OK)
        status = add_all(r, &top.links, place, "links", add_link);
    if (status == CS_OK)
        status = add_all(r, &top.routes, place, "routes", add_route);
    *relays = top.relays;
    return status;
}

cs_status cs_fabric_from_json(const cJSON *root, const cs_json_place *place, cs_fabric **net,
                              uint32_t *relays, cs_error *error)
{
    reader r = {.net = cs_fabric_create(place->file), .error = error};
    cs_arena_init(&r.arena);
    const cs_status status = read_document(&r, root, place, relays);
    cs_arena_finish(&r.arena);
    if (status == CS_OK)
        *net = r.net;
    else
        cs_fabric_destroy(r.net);
    return status;
}

/* ---- writing ---- */

static cJSON *add_object(cJSON *list)
{
    cJSON *object = list ? cJSON_CreateObject() : NULL;
    if (object && !cJSON_AddItemToArray(list, object)) {
        cJSON_Delete(object);
        object = NULL;
    }
    return object;
}

static bool write_vertices(const cs_platform *platform, cJSON *root)
{
    cJSON *list = cJSON_AddArrayToObject(root, "vertices");
    bool done = list != NULL;
    for (uint32_t i = 0; i < platform->n_vertices && done; i++) {
        const vertex_entry entry = {platform->vertices[i].name, platform->vertices[i].kind};
        cJSON *object = add_object(list);
        done = object && cs_field_write(vertex_fields, &entry, object);
    }
    return done;
}

static bool write_links(const cs_platform *platform, cJSON *root)
{
    cJSON *list = cJSON_AddArrayToObject(root, "links");
    bool done = list != NULL;
    for (uint32_t i = 0; i < platform->n_links && done; i++) {
        const cs_link *link = &platform->links[i];
        const link_entry entry = {.from = platform->vertices[link->from].name,
                                  .to = platform->vertices[link->to].name,
                                  .bandwidth = link->bandwidth,
                                  .latency = link->latency,
                                  .peer = link->peer};
        cJSON *object = add_object(list);
        done = object && cs_field_write(link_fields, &entry, object);
    }
    return done;
}

/* Builds the same vertices and links with the routes that the search finds. */
static cs_status search_routes(const cs_platform *platform, uint32_t relays, cs_platform *found,
                               cs_error *error)
{
    cs_fabric *net = cs_fabric_create(platform->topology);
    for (uint32_t i = 0; i < platform->n_vertices; i++)
        (void)cs_fabric_vertex(net, platform->vertices[i].kind, "%s", platform->vertices[i].name);
    for (uint32_t i = 0; i < platform->n_links; i++) {
        const cs_link *link = &platform->links[i];
        cs_fabric_link(net, link->from, link->to, link->bandwidth, link->latency, link->peer);
    }
    const cs_status status = cs_fabric_finish(net, platform->n_devices, relays, found, error);
    cs_fabric_destroy(net);
    return status;
}

static bool write_route(const cs_platform *platform, uint32_t source, uint32_t target,
                        const uint32_t *way, uint32_t n, cJSON *list)
{
    cJSON *object = add_object(list);
    if (!object || !cJSON_AddStringToObject(object, "from", platform->vertices[source].name) ||
        !cJSON_AddStringToObject(object, "to", platform->vertices[target].name))
        return false;
    cJSON *links = cJSON_AddArrayToObject(object, "links");
    bool done = links != NULL;
    for (uint32_t i = 0; i < n && done; i++) {
        cJSON *link = cJSON_CreateNumber(way[i]);
        done = link && cJSON_AddItemToArray(links, link);
    }
    return done;
}

/* Compares the routes between all terminals and writes those that differ to `list` (NULL: only
 * counts them). Returns false if memory runs out. */
static bool compare_routes(const cs_platform *platform, const cs_platform *found, cJSON *list,
                           uint64_t *differ)
{
    const uint32_t n = platform->n_devices + platform->n_ports;
    uint32_t *a = malloc(((size_t)platform->longest_route + 1) * sizeof(*a));
    uint32_t *b = malloc(((size_t)found->longest_route + 1) * sizeof(*b));
    bool done = a && b;
    *differ = 0;
    for (uint64_t pair = 0; pair < (uint64_t)n * n && done; pair++) {
        const uint32_t source = (uint32_t)(pair / n), target = (uint32_t)(pair % n);
        const uint32_t length = platform->route(platform, source, target, a);
        if (length == found->route(found, source, target, b) &&
            memcmp(a, b, length * sizeof(*a)) == 0)
            continue;
        ++*differ;
        done = !list || write_route(platform, source, target, a, length, list);
    }
    free(a);
    free(b);
    return done;
}

/* Writes the routes that differ from the search's, with the number of relays that leaves the
 * fewest. */
static cs_status write_routes(const cs_platform *platform, cJSON *root, cs_error *error)
{
    static const uint32_t relays[] = {0, 1, UINT32_MAX};
    uint32_t best = 0;
    uint64_t fewest = UINT64_MAX, differ;
    cs_platform found;
    for (size_t i = 0; i < sizeof(relays) / sizeof(relays[0]); i++) {
        cs_error ignored;
        cs_error_init(&ignored);
        const bool last = i + 1 == sizeof(relays) / sizeof(relays[0]);
        const cs_status status = search_routes(platform, relays[i], &found,
                                               last && fewest == UINT64_MAX ? error : &ignored);
        if (status == CS_NO_MEMORY)
            return cs_error_no_memory(error);
        if (status != CS_OK)
            continue;
        if (!compare_routes(platform, &found, NULL, &differ)) {
            cs_platform_finish(&found);
            return cs_error_no_memory(error);
        }
        cs_platform_finish(&found);
        if (differ < fewest) {
            fewest = differ;
            best = relays[i];
        }
    }
    if (fewest == UINT64_MAX)
        return CS_INVALID;
    if (fewest > MOST_ROUTES)
        return cs_error_add(error, CS_INVALID,
                            "topology %s: %" PRIu64 " routes would have to be written, "
                            "more than %d; use fewer devices",
                            platform->topology, fewest, MOST_ROUTES);
    CS_TRY(search_routes(platform, best, &found, error));
    cJSON *list = fewest > 0 ? cJSON_AddArrayToObject(root, "routes") : NULL;
    const bool done = cJSON_AddNumberToObject(root, "relays", best) && (list || fewest == 0) &&
                      (!list || compare_routes(platform, &found, list, &differ));
    cs_platform_finish(&found);
    return done ? CS_OK : cs_error_no_memory(error);
}

cs_status cs_platform_json(const cs_platform *platform, cJSON **root, cs_error *error)
{
    if (platform->n_links == 0)
        return cs_error_add(error, CS_INVALID, "topology %s: has no links to write",
                            platform->topology);
    cJSON *made = cJSON_CreateObject();
    cs_status status = CS_OK;
    if (!made || !cJSON_AddNumberToObject(made, "schema_version", VERSION) ||
        !cJSON_AddStringToObject(made, "name", platform->topology) ||
        !write_vertices(platform, made) || !write_links(platform, made))
        status = cs_error_no_memory(error);
    if (status == CS_OK)
        status = write_routes(platform, made, error);
    if (status == CS_OK)
        *root = made;
    else
        cJSON_Delete(made);
    return status;
}

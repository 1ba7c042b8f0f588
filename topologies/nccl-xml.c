#include "topologies/nccl-xml.h"

#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/base/vector.h"

#include <ctype.h>
#include <expat.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define HUB  (UINT32_MAX - 1)

enum {
    DEPTH = 64,
    ID_BYTES = 40,
    MOST_ITEMS = 1 << 14,
    BRIDGE = 0, /* a PCIe switch */
    SOCKET,
    GPU,
    CARD, /* a NIC, which has networks */
    NETWORK,
    MERGED, /* another port of an earlier CARD: not drawn */
};

/* A future vertex. */
typedef struct item {
    int kind;
    char id[ID_BYTES]; /* PCIe bus id, number of a socket, or name of a network */
    uint32_t parent, socket;
    double rate; /* bandwidth to the parent, bytes/s */
    int dev;     /* number of the GPU; -1: not given */
    double link; /* bandwidth of one NVLink or xGMI link of the GPU, bytes/s */
    uint32_t line, vertex;
    double between;      /* bandwidth from the socket to other sockets, bytes/s */
    char host[ID_BYTES]; /* hash of the socket's host; "" if the file has only one host */
} item;

/* Direct links of a GPU: initially one nvlink, xgmi or c2c element; merge_ties merges elements that
 * lead to the same place. */
typedef struct tie {
    uint32_t gpu, count;
    bool c2c;
    char target[ID_BYTES], target_class[ID_BYTES]; /* "" if not given */
    double rate;  /* bytes/s; for NVLink and xGMI known only after the GPU was read */
    uint32_t end; /* item of a GPU or socket; HUB: NVSwitches; NONE: a GPU that the file lacks */
} tie;

typedef struct reader {
    const char *name;
    XML_Parser parser;
    item *items;
    tie *ties;
    uint32_t n_items, cap_items, n_ties, cap_ties;
    uint32_t open[DEPTH]; /* per open element: its item, or the enclosing element's */
    uint32_t depth;
    bool has_system;
    cs_status status;
    cs_error *error;
} reader;

/* ---- errors and attributes ---- */

static void fail_at(reader *r, uint32_t line, const char *format, ...) CS_PRINTF(3, 4);

static void fail_at(reader *r, uint32_t line, const char *format, ...)
{
    char text[512], place[256];
    va_list arguments;
    if (r->status != CS_OK)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    r->status = cs_error_add(r->error, CS_INVALID, "%s:%" PRIu32 ": %s",
                             cs_text_show(r->name, place, sizeof(place)), line, text);
    XML_StopParser(r->parser, XML_FALSE);
}

static uint32_t line_of(const reader *r)
{
    return (uint32_t)XML_GetCurrentLineNumber(r->parser);
}

static const char *attribute(const char **attributes, const char *name)
{
    for (; attributes[0]; attributes += 2)
        if (strcmp(attributes[0], name) == 0)
            return attributes[1];
    return NULL;
}

static double number(reader *r, const char **attributes, const char *name, double fallback)
{
    char shown[CS_TEXT_QUOTED_BYTES];
    double value;
    const char *text = attribute(attributes, name);
    if (!text)
        return fallback;
    if (cs_number_parse(text, strlen(text), &value) && fabs(value) < 1e9)
        return value;
    fail_at(r, line_of(r), "%s must be a number (got %s)", name,
            cs_text_quote(text, shown, sizeof(shown)));
    return fallback;
}

/* Bus ids are case-insensitive. */
static void copy_id(reader *r, const char *text, char id[ID_BYTES])
{
    char shown[CS_TEXT_QUOTED_BYTES];
    const size_t length = strlen(text);
    if (length >= ID_BYTES) {
        fail_at(r, line_of(r), "an identifier must be shorter than %d bytes (got %s)", ID_BYTES,
                cs_text_quote(text, shown, sizeof(shown)));
        return;
    }
    for (size_t i = 0; i <= length; i++)
        id[i] = (char)tolower((unsigned char)text[i]);
}

static bool starts_with(const char *text, const char *start)
{
    return text && strncmp(text, start, strlen(start)) == 0;
}

/* ---- bandwidths that NCCL assumes ---- */

static bool is_gpu_class(const char *class)
{
    return starts_with(class, "0x03") || starts_with(class, "0x12");
}

static double pcie_rate(reader *r, const char **attributes)
{
    static const struct {
        const char *speed;
        double rate; /* 100 Mbit/s per lane */
    } rows[] = {{"2.5", 15}, {"5", 30}, {"8", 60}, {"16", 120}, {"32", 240}, {"64", 480}};
    const char *speed = attribute(attributes, "link_speed");
    double lanes = number(r, attributes, "link_width", 16), rate = 60;
    for (size_t i = 0; speed && i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *rest = speed + strlen(rows[i].speed);
        if (starts_with(speed, rows[i].speed) &&
            (starts_with(rest, " GT/s") || starts_with(rest, ".0 GT/s")))
            rate = rows[i].rate;
    }
    if (lanes < 0)
        fail_at(r, line_of(r), "link_width must be >= 0 (got %g)", lanes);
    return (lanes > 0 ? lanes : 16) * rate / 80 * 1e9;
}

static double nvlink_rate(int sm)
{
    static const struct {
        int from;
        double rate; /* GB/s */
    } rows[] = {{100, 40.1}, {90, 20.6}, {87, 20}, {86, 12}, {80, 20}, {70, 20}, {60, 18}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (sm >= rows[i].from)
            return rows[i].rate * 1e9;
    return 20e9;
}

/* `gcn` is a name such as "gfx942" or, in older files, a number. */
static double xgmi_rate(const char *gcn)
{
    static const struct {
        const char *start;
        double rate; /* GB/s */
    } rows[] = {{"90a", 36}, {"910", 36}, {"94", 48}, {"95", 48}};
    if (starts_with(gcn, "gfx"))
        gcn += strlen("gfx");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (starts_with(gcn, rows[i].start))
            return rows[i].rate * 1e9;
    return 24e9;
}

static double socket_rate(reader *r, const char **attributes)
{
    static const struct {
        int from;
        double rate; /* GB/s */
    } intel[] = {{0xCF, 40}, {0x8F, 22}, {0x55, 10}, {0, 6}};
    const char *arch = attribute(attributes, "arch"), *vendor = attribute(attributes, "vendor");
    const int model = (int)number(r, attributes, "modelid", 0x55);
    if (starts_with(arch, "ppc64"))
        return 32e9;
    if (starts_with(arch, "arm64"))
        return 6e9;
    if (starts_with(vendor, "AuthenticAMD"))
        return 16e9;
    if (vendor && !starts_with(vendor, "GenuineIntel"))
        return 6e9;
    size_t row = 0;
    while (intel[row].from > 0 && model < intel[row].from)
        row++;
    return intel[row].rate * 1e9;
}

/* ---- elements ---- */

static uint32_t add_item(reader *r, int kind, const char *id, double rate)
{
    if (r->n_items >= MOST_ITEMS) {
        fail_at(r, line_of(r), "must have fewer than %d elements", MOST_ITEMS);
        return NONE;
    }
    if (!cs_vector_reserve((void **)&r->items, &r->cap_items, r->n_items + UINT64_C(1),
                           sizeof(*r->items))) {
        r->status = cs_error_no_memory(r->error);
        XML_StopParser(r->parser, XML_FALSE);
        return NONE;
    }
    const uint32_t parent = r->open[r->depth - 1];
    item *made = &r->items[r->n_items];
    *made = (item){.kind = kind,
                   .parent = parent,
                   .socket = kind == SOCKET   ? r->n_items
                             : parent == NONE ? NONE
                                              : r->items[parent].socket,
                   .rate = rate,
                   .dev = -1,
                   .line = line_of(r)};
    copy_id(r, id, made->id);
    return r->n_items++;
}

static item *item_around(reader *r)
{
    const uint32_t around = r->open[r->depth - 1];
    return around == NONE ? NULL : &r->items[around];
}

static uint32_t open_system(reader *r, const char **attributes)
{
    const double version = number(r, attributes, "version", 1);
    if (r->depth != 1)
        fail_at(r, line_of(r), "system must be the outermost element");
    if (version != 1 && version != 2)
        fail_at(r, line_of(r), "version must be 1 (NCCL) or 2 (RCCL) (got %g)", version);
    r->has_system = true;
    return NONE;
}

static uint32_t open_cpu(reader *r, const char **attributes)
{
    const char *id = attribute(attributes, "numaid"), *host = attribute(attributes, "host_hash");
    const double rate = socket_rate(r, attributes);
    const uint32_t made = add_item(r, SOCKET, id ? id : "0", 0);
    if (made == NONE)
        return NONE;
    r->items[made].between = rate;
    if (host)
        copy_id(r, host, r->items[made].host);
    return made;
}

static uint32_t open_pci(reader *r, const char **attributes)
{
    const char *id = attribute(attributes, "busid"), *class = attribute(attributes, "class");
    if (!id || !item_around(r)) {
        fail_at(r, line_of(r), id ? "pci must be inside of a cpu" : "pci must have a busid");
        return NONE;
    }
    const int kind = is_gpu_class(class) ? GPU : starts_with(class, "0x02") ? CARD : BRIDGE;
    const double rate = pcie_rate(r, attributes);
    return r->status == CS_OK ? add_item(r, kind, id, rate) : NONE;
}

static uint32_t open_gpu(reader *r, const char **attributes)
{
    item *card = item_around(r);
    const int dev = (int)number(r, attributes, "dev", -1);
    const double sm = number(r, attributes, "sm", -1); /* RCCL: the number of compute units */
    const char *gcn = attribute(attributes, "gcn");
    if (!card || card->kind == SOCKET) {
        fail_at(r, line_of(r), "gpu must be inside of a pci");
        return NONE;
    }
    card->kind = GPU;
    card->dev = dev;
    card->link = gcn ? xgmi_rate(gcn) : nvlink_rate((int)sm);
    return r->open[r->depth - 1];
}

/* Whether two bus ids are equal except for the function, "0000:05:00.0" and "0000:05:00.1". */
static bool is_same_card(const char *a, const char *b)
{
    const char *dot = strrchr(a, '.');
    return dot && strncmp(a, b, (size_t)(dot - a) + 1) == 0;
}

/* Ports of one card are one NIC, as in NCCL: they share its PCIe link. */
static uint32_t open_nic(reader *r, const char **attributes)
{
    (void)attributes;
    item *card = item_around(r);
    if (!card) {
        fail_at(r, line_of(r), "nic must be inside of a pci or a cpu");
        return NONE;
    }
    if (card->kind == SOCKET)
        return add_item(r, CARD, "0", 5000e9); /* NCCL's LOC_BW, practically unlimited */
    const uint32_t made = r->open[r->depth - 1];
    card->kind = CARD;
    for (uint32_t i = 0; i < made; i++) {
        const item *other = &r->items[i];
        if (other->kind == CARD && other->socket == card->socket &&
            is_same_card(other->id, card->id)) {
            card->kind = MERGED;
            return i;
        }
    }
    return made;
}

static uint32_t open_net(reader *r, const char **attributes)
{
    const item *card = item_around(r);
    const char *name = attribute(attributes, "name");
    const double speed = number(r, attributes, "speed", 0);
    if (!card || card->kind != CARD) {
        fail_at(r, line_of(r), "net must be inside of a nic");
        return NONE;
    }
    return add_item(r, NETWORK, name ? name : "net", (speed > 0 ? speed : 10000) / 8000 * 1e9);
}

static uint32_t add_tie(reader *r, const char *element, const char **attributes, bool c2c)
{
    const uint32_t gpu = r->open[r->depth - 1];
    const char *target = attribute(attributes, "target"), *class = attribute(attributes, "tclass");
    const double count = number(r, attributes, "count", 0);
    const double rate = c2c ? number(r, attributes, "bw", 0) * 1e6 : 0; /* in MB/s */
    if (gpu == NONE || r->items[gpu].kind != GPU)
        fail_at(r, line_of(r), "%s must be inside of a gpu", element);
    else if (!(count >= 1) || (c2c && !(rate > 0)))
        fail_at(r, line_of(r), "%s must be > 0: the bandwidth would be 0 (got %g)",
                count >= 1 ? "bw" : "count", count >= 1 ? rate : count);
    else if (!c2c && !target && !class)
        fail_at(r, line_of(r), "%s must have target or tclass", element);
    else if (r->n_ties >= MOST_ITEMS)
        fail_at(r, line_of(r), "must have fewer than %d links of GPUs", MOST_ITEMS);
    if (r->status != CS_OK)
        return NONE;
    if (!cs_vector_reserve((void **)&r->ties, &r->cap_ties, r->n_ties + UINT64_C(1),
                           sizeof(*r->ties))) {
        r->status = cs_error_no_memory(r->error);
        XML_StopParser(r->parser, XML_FALSE);
        return NONE;
    }
    tie *made = &r->ties[r->n_ties++];
    *made = (tie){.gpu = gpu, .count = (uint32_t)count, .c2c = c2c, .rate = count * rate};
    copy_id(r, !c2c && target ? target : "", made->target);
    copy_id(r, !c2c && class ? class : "", made->target_class);
    return NONE;
}

static uint32_t open_nvlink(reader *r, const char **attributes)
{
    return add_tie(r, "nvlink", attributes, false);
}

static uint32_t open_xgmi(reader *r, const char **attributes)
{
    return add_tie(r, "xgmi", attributes, false);
}

static uint32_t open_c2c(reader *r, const char **attributes)
{
    return add_tie(r, "c2c", attributes, true);
}

static void XMLCALL start_element(void *context, const char *name, const char **attributes)
{
    static const struct {
        const char *name;
        uint32_t (*open)(reader *r, const char **attributes);
    } elements[] = {{"system", open_system}, {"cpu", open_cpu},       {"pci", open_pci},
                    {"gpu", open_gpu},       {"nvlink", open_nvlink}, {"xgmi", open_xgmi},
                    {"c2c", open_c2c},       {"nic", open_nic},       {"net", open_net}};
    reader *r = context;
    if (r->status != CS_OK)
        return;
    if (r->depth >= DEPTH) {
        fail_at(r, line_of(r), "must not be nested deeper than %d elements", DEPTH - 1);
        return;
    }
    uint32_t opened = NONE; /* the contents of an ignored element are ignored or rejected too */
    bool known = false;
    for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++) {
        if (strcmp(name, elements[i].name) != 0)
            continue;
        known = true;
        opened = elements[i].open(r, attributes);
    }
    if (!known && r->depth == 1)
        fail_at(r, line_of(r), "must be NCCL's topology, with a system around all (got %.40s)",
                name);
    r->open[r->depth++] = opened;
}

static void XMLCALL end_element(void *context, const char *name)
{
    (void)name;
    reader *r = context;
    if (r->depth > 1)
        r->depth--;
}

/* ---- the net ---- */

/* Orders GPUs by `dev`; GPUs without it follow in file order. */
static int compare_gpus(const void *left, const void *right)
{
    const item *const *a = left, *const *b = right;
    const uint32_t x = (uint32_t)(*a)->dev, y = (uint32_t)(*b)->dev; /* -1 comes last */
    if (x != y)
        return x < y ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

static bool has_networks(const reader *r, uint32_t card)
{
    for (uint32_t i = 0; i < r->n_items; i++)
        if (r->items[i].kind == NETWORK && r->items[i].parent == card)
            return true;
    return false;
}

static bool draw_gpus(reader *r, cs_fabric *net)
{
    item **gpus = malloc(((size_t)r->n_items + 1) * sizeof(*gpus));
    uint32_t n = 0;
    if (!gpus)
        return false;
    for (uint32_t i = 0; i < r->n_items; i++)
        if (r->items[i].kind == GPU)
            gpus[n++] = &r->items[i];
    if (n > 1)
        qsort(gpus, n, sizeof(gpus[0]), compare_gpus);
    for (uint32_t i = 0; i < n; i++)
        gpus[i]->vertex = cs_fabric_vertex(net, CS_VERTEX_GPU, "gpu%" PRIu32, i);
    free(gpus);
    return true;
}

static bool on_same_host(const reader *r, const item *a, const item *b)
{
    const char *left = a->socket == NONE ? "" : r->items[a->socket].host;
    const char *right = b->socket == NONE ? "" : r->items[b->socket].host;
    return strcmp(left, right) == 0;
}

static void draw_item(reader *r, uint32_t i, cs_fabric *net)
{
    item *of = &r->items[i];
    if (of->kind == MERGED)
        return;
    if (of->kind == SOCKET)
        of->vertex = cs_fabric_vertex(net, CS_VERTEX_CPU, "%s%scpu%s", of->host,
                                      of->host[0] ? " " : "", of->id);
    else if (of->kind == BRIDGE)
        of->vertex = cs_fabric_vertex(net, CS_VERTEX_SWITCH, "pci %s", of->id);
    else if (of->kind == CARD)
        of->vertex = cs_fabric_vertex(net, has_networks(r, i) ? CS_VERTEX_SWITCH : CS_VERTEX_NIC,
                                      "nic %s", of->id);
    else if (of->kind == NETWORK)
        of->vertex = cs_fabric_vertex(net, CS_VERTEX_NIC, "%s", of->id);
    if (of->parent != NONE)
        cs_fabric_links(net, r->items[of->parent].vertex, of->vertex, of->rate, 0, false);
    for (uint32_t other = 0; of->kind == SOCKET && other < i; other++)
        if (r->items[other].kind == SOCKET && on_same_host(r, of, &r->items[other]))
            cs_fabric_links(net, r->items[other].vertex, of->vertex,
                            fmin(of->between, r->items[other].between), 0, false);
}

static uint32_t end_of_tie(const reader *r, const tie *of)
{
    const item *gpu = &r->items[of->gpu];
    if (of->c2c || starts_with(of->target_class, "0x068001"))
        return gpu->socket;
    for (uint32_t i = 0; i < r->n_items; i++) {
        const item *target = &r->items[i];
        if (target->kind == GPU && strcmp(target->id, of->target) == 0 &&
            on_same_host(r, gpu, target))
            return i;
    }
    return is_gpu_class(of->target_class) ? NONE : HUB;
}

/* Merges links. NCCL writes an element per NVSwitch that a GPU is linked to; as in NCCL, elements
 * that lead to the same place are one link with the sum of their bandwidths. */
static void merge_ties(reader *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_ties; i++) {
        tie *of = &r->ties[i];
        if (!of->c2c)
            of->rate = of->count * r->items[of->gpu].link;
        of->end = end_of_tie(r, of);
        uint32_t at = 0;
        while (at < n && (r->ties[at].gpu != of->gpu || r->ties[at].end != of->end ||
                          r->ties[at].c2c != of->c2c))
            at++;
        if (at < n) {
            r->ties[at].rate += of->rate;
            r->ties[at].count += of->count;
        } else {
            r->ties[n++] = *of;
        }
    }
    r->n_ties = n;
}

static bool has_links(const reader *r)
{
    for (uint32_t i = 0; i < r->n_ties; i++)
        if (!r->ties[i].c2c)
            return true;
    return false;
}

static void draw_ties(const reader *r, cs_fabric *net)
{
    uint32_t hub = NONE;
    for (uint32_t i = 0; i < r->n_ties; i++) {
        const tie *of = &r->ties[i];
        const uint32_t gpu = r->items[of->gpu].vertex;
        if (of->end == NONE)
            continue;
        if (of->end == HUB) {
            hub = hub != NONE ? hub : cs_fabric_vertex(net, CS_VERTEX_SWITCH, "nvswitch");
            cs_fabric_links(net, gpu, hub, of->rate, 0, true);
        } else if (r->items[of->end].kind == SOCKET) {
            cs_fabric_links(net, gpu, r->items[of->end].vertex, of->rate, 0, false);
        } else {
            cs_fabric_link(net, gpu, r->items[of->end].vertex, of->rate, 0, true);
        }
    }
}

static void draw(reader *r, double nvswitch, cs_fabric *net)
{
    uint32_t hub = NONE;
    const bool join = !has_links(r) && nvswitch > 0;
    if (!draw_gpus(r, net)) {
        r->status = cs_error_no_memory(r->error);
        return;
    }
    for (uint32_t i = 0; i < r->n_items; i++)
        draw_item(r, i, net);
    draw_ties(r, net);
    if (join)
        hub = cs_fabric_vertex(net, CS_VERTEX_SWITCH, "nvswitch");
    for (uint32_t i = 0; i < r->n_items && join; i++)
        if (r->items[i].kind == GPU)
            cs_fabric_links(net, r->items[i].vertex, hub, nvswitch, 0, true);
    if (r->status == CS_OK && cs_fabric_count(net, CS_VERTEX_GPU) == 0)
        fail_at(r, 1, "must have a GPU: a pci of class 0x03 or 0x12, or with a gpu");
}

cs_status cs_fabric_from_nccl(const char *name, const char *text, size_t length, double nvswitch,
                              cs_fabric **net, cs_fabric_nccl *found, cs_error *error)
{
    reader r = {.name = name, .open = {NONE}, .depth = 1, .error = error};
    cs_fabric *made = cs_fabric_create(name);
    r.parser = XML_ParserCreate(NULL);
    if (!made || !r.parser || length > INT32_MAX) {
        r.status = cs_error_no_memory(error);
    } else {
        XML_SetUserData(r.parser, &r);
        XML_SetElementHandler(r.parser, start_element, end_element);
        const enum XML_Status parsed = XML_Parse(r.parser, text, (int)length, XML_TRUE);
        if (parsed != XML_STATUS_OK && r.status == CS_OK)
            fail_at(&r, line_of(&r), "%s", XML_ErrorString(XML_GetErrorCode(r.parser)));
        if (r.status == CS_OK && !r.has_system)
            fail_at(&r, 1, "must be NCCL's topology, with a system around all");
        merge_ties(&r);
        if (r.status == CS_OK)
            draw(&r, nvswitch, made);
    }
    XML_ParserFree(r.parser);
    *found = (cs_fabric_nccl){.has_links = has_links(&r)};
    for (uint32_t i = 0; i < r.n_ties; i++)
        found->n_missing += r.ties[i].end == NONE ? r.ties[i].count : 0;
    free(r.items);
    free(r.ties);
    if (r.status == CS_OK)
        *net = made;
    else
        cs_fabric_destroy(made);
    return r.status;
}

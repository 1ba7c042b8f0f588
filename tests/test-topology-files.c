/* Topologies from files: our JSON form and NCCL's XML. */
#include "sim/base/file.h"
#include "tests/expect.h"
#include "topologies/fabric-json.h"
#include "topologies/nccl-xml.h"
#include "topologies/platform-picture.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_ROUTE = 64 };

static cs_status try_json(const char *text, uint32_t n_devices, cs_platform *platform,
                          cs_error *error)
{
    cJSON *root;
    cs_fabric *net = NULL;
    uint32_t relays;
    const cs_json_place place = {.file = "t.json"};
    cs_error_init(error);
    assert_int_equal(cs_json_parse("t.json", text, strlen(text), &root, error), CS_OK);
    cs_status status = cs_fabric_from_json(root, &place, &net, &relays, error);
    cJSON_Delete(root);
    if (status == CS_OK)
        status = cs_fabric_finish(net, n_devices, relays, platform, error);
    cs_fabric_destroy(net);
    return status;
}

static cs_status try_xml(const char *text, uint32_t n_devices, double nvswitch,
                         cs_platform *platform, cs_error *error)
{
    cs_fabric *net = NULL;
    cs_fabric_nccl found;
    cs_error_init(error);
    cs_status status =
        cs_fabric_from_nccl("t.xml", text, strlen(text), nvswitch, &net, &found, error);
    if (status == CS_OK)
        status = cs_fabric_finish(net, n_devices, 1, platform, error);
    cs_fabric_destroy(net);
    return status;
}

static void check(cs_status status, const cs_error *error)
{
    if (status != CS_OK)
        fail_msg("%s", error->text);
}

static char *load(const char *name)
{
    char path[512], *text;
    size_t length;
    cs_error error;
    cs_error_init(&error);
    snprintf(path, sizeof(path), "%s/tests/data/%s", CS_SOURCE_ROOT, name);
    check(cs_file_read(path, 1 << 20, &text, &length, &error), &error);
    return text;
}

static void expect_same(const char *name, const cs_platform *a, const cs_platform *b)
{
    uint32_t x[MOST_ROUTE], y[MOST_ROUTE];
    expect_int(name, a->n_devices, b->n_devices);
    expect_int(name, a->n_links, b->n_links);
    for (uint32_t l = 0; l < a->n_links; l++) {
        expect_double(name, a->links[l].bandwidth, b->links[l].bandwidth);
        expect_int(name, a->links[l].latency, b->links[l].latency);
    }
    for (uint32_t i = 0; i < a->n_devices * a->n_devices; i++) {
        const uint32_t n = a->route(a, i / a->n_devices, i % a->n_devices, x);
        expect_int(name, n, b->route(b, i / a->n_devices, i % a->n_devices, y));
        assert_memory_equal(x, y, n * sizeof(*x));
    }
}

/* Topologies that were written and read again have the same links and routes. */
static void test_round_trips(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        uint32_t n_devices;
    } rows[] = {
        {"{\"topology\":\"abci\"}", 12},
        {"{\"topology\":\"dgx1-v100\"}", 16},
        {"{\"topology\":\"dgx-a100\"}", 8},
        {"{\"topology\":\"dgx-h100\"}", 9},
        {"{\"topology\":\"pcie-8gpu\"}", 8},
        {"{\"topology\":\"pcie5-8gpu\"}", 8},
        {"{\"topology\":\"pcie\",\"bandwidth\":1e9}", 4},
        {"{\"topology\":\"ring\",\"bandwidth\":1e9,\"latency\":\"1 us\"}", 5},
        {"{\"topology\":\"torus\",\"shape\":[3,3],\"bandwidth\":1e9}", 9},
        {"{\"topology\":\"fat_tree\",\"radix\":4,\"levels\":3,\"bandwidth\":1e9,"
         "\"routing\":\"ecmp\"}",
         16},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_platform platform, again;
        cs_error error;
        cJSON *root;
        cs_error_init(&error);
        check(cs_topology_build_text("t", rows[i].json, rows[i].n_devices, &platform, &error),
              &error);
        check(cs_platform_json(&platform, &root, &error), &error);
        char *text = cs_json_print(root);
        cJSON_Delete(root);
        check(try_json(text, rows[i].n_devices, &again, &error), &error);
        free(text);
        expect_same(rows[i].json, &platform, &again);
        cs_platform_finish(&platform);
        cs_platform_finish(&again);
    }
}

#define JSON(links)                                                                                \
    "{\"schema_version\":1,\"vertices\":[{\"name\":\"gpu0\",\"kind\":\"gpu\"},"                    \
    "{\"name\":\"gpu1\",\"kind\":\"gpu\"},{\"name\":\"plx\"}],\"links\":[" links "]}"
#define UP "{\"from\":\"gpu0\",\"to\":\"plx\",\"bandwidth\":1e9,\"duplex\":true}"

static void test_json_errors(void **state)
{
    (void)state;
    static const struct {
        const char *name, *json, *message;
    } rows[] = {
        {"unknown vertex", JSON(UP ",{\"from\":\"plx\",\"to\":\"gpu2\",\"bandwidth\":1}"),
         "t.json: /links/1/to: unknown vertex \"gpu2\"; did you mean \"gpu0\"? "
         "known: gpu0, gpu1, plx"},
        {"bandwidth 0", JSON("{\"from\":\"gpu0\",\"to\":\"plx\",\"bandwidth\":0}"),
         "t.json: /links/0/bandwidth: must be > 0 (got 0)"},
        {"unreachable", JSON(UP), "topology t.json: there is no route from \"gpu1\" to \"gpu0\""},
        {"one way only", JSON(UP ",{\"from\":\"plx\",\"to\":\"gpu1\",\"bandwidth\":1}"),
         "topology t.json: there is no route from \"gpu1\" to \"gpu0\""},
        {"name twice",
         "{\"schema_version\":1,\"vertices\":[{\"name\":\"a\"},{\"name\":\"a\"}],\"links\":[]}",
         "t.json: /vertices: must have different names (got \"a\" twice)"},
        {"a long name",
         "{\"schema_version\":1,\"vertices\":[{\"name\":\"0123456789012345678901234567890123456789"
         "01234567890123456789012345678901234567890123456789012345\"}],\"links\":[]}",
         "t.json: /vertices/0/name: must have at most 95 bytes"},
        {"no list", "{\"schema_version\":1,\"vertices\":1,\"links\":[]}",
         "t.json: /vertices: must be a list, such as [{\"name\": ...}, ...] (got 1)"},
        {"kind",
         "{\"schema_version\":1,\"vertices\":[{\"name\":\"a\",\"kind\":\"gpus\"}],\"links\":[]}",
         "t.json: /vertices/0/kind: unknown value \"gpus\"; did you mean \"gpu\"? "
         "known: gpu, nic, switch, cpu"},
        {"version", "{\"schema_version\":2,\"vertices\":[],\"links\":[]}",
         "t.json: /schema_version: must be 1 (got 2)"},
        {"no GPUs", "{\"schema_version\":1,\"vertices\":[],\"links\":[]}",
         "topology t.json: has 0 GPUs (got 2 devices)"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_platform platform;
        cs_error error;
        const cs_status status = try_json(rows[i].json, 2, &platform, &error);
        expect_error(rows[i].name, CS_INVALID, rows[i].message, status, &error);
    }
}

/* A route that a search would not take: over the slow link of two. */
static void test_given_route(void **state)
{
    (void)state;
    cs_platform platform;
    cs_error error;
    check(try_json("{\"schema_version\":1,\"vertices\":[{\"name\":\"a\",\"kind\":\"gpu\"},"
                   "{\"name\":\"b\",\"kind\":\"gpu\"}],\"links\":["
                   "{\"from\":\"a\",\"to\":\"b\",\"bandwidth\":2,\"duplex\":true},"
                   "{\"from\":\"a\",\"to\":\"b\",\"bandwidth\":1,\"duplex\":true}],"
                   "\"routes\":[{\"from\":\"a\",\"to\":\"b\",\"links\":[2]}]}",
                   2, &platform, &error),
          &error);
    uint32_t links[MOST_ROUTE];
    assert_int_equal(platform.route(&platform, 0, 1, links), 1);
    assert_int_equal(links[0], 2);
    assert_int_equal(platform.route(&platform, 1, 0, links), 1);
    assert_int_equal(links[0], 1);
    cs_platform_finish(&platform);
}

/* From a to c over the device b, links 0 and 2, ten times as wide, or over a switch, links 4 and 6:
 * as many links, so the route without devices is taken, also if devices may not forward messages.
 * Of two limits of the switch, links 8 and 9, the narrower counts. */
static void test_fewest_devices(void **state)
{
    (void)state;
    for (uint32_t relays = 0; relays <= 1; relays++) {
        char text[1024];
        cs_platform platform;
        cs_error error;
        snprintf(text, sizeof(text),
                 "{\"schema_version\":1,\"relays\":%" PRIu32 ",\"vertices\":["
                 "{\"name\":\"a\",\"kind\":\"gpu\"},{\"name\":\"b\",\"kind\":\"gpu\"},"
                 "{\"name\":\"c\",\"kind\":\"gpu\"},{\"name\":\"s\"}],\"links\":["
                 "{\"from\":\"a\",\"to\":\"b\",\"bandwidth\":10,\"peer\":true,\"duplex\":true},"
                 "{\"from\":\"b\",\"to\":\"c\",\"bandwidth\":10,\"peer\":true,\"duplex\":true},"
                 "{\"from\":\"a\",\"to\":\"s\",\"bandwidth\":1,\"peer\":true,\"duplex\":true},"
                 "{\"from\":\"s\",\"to\":\"c\",\"bandwidth\":1,\"peer\":true,\"duplex\":true},"
                 "{\"from\":\"s\",\"to\":\"s\",\"bandwidth\":2},"
                 "{\"from\":\"s\",\"to\":\"s\",\"bandwidth\":3}]}",
                 relays);
        check(try_json(text, 3, &platform, &error), &error);
        static const uint32_t expected[] = {4, 8, 6};
        uint32_t links[MOST_ROUTE];
        assert_int_equal(platform.route(&platform, 0, 2, links), ROWS(expected));
        assert_memory_equal(links, expected, sizeof(expected));
        cs_platform_finish(&platform);
    }
}

/* ---- NCCL's XML ---- */

typedef struct path_row {
    const char *name;
    uint32_t source, target; /* terminals: GPUs, then NICs */
    double bandwidth;        /* GB/s */
    uint32_t length;         /* links */
} path_row;

static void expect_paths(const cs_platform *platform, const path_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t links[MOST_ROUTE];
        const path_row *row = &rows[i];
        const uint32_t length = platform->route(platform, row->source, row->target, links);
        double least = INFINITY;
        for (uint32_t l = 0; l < length; l++)
            least = fmin(least, platform->links[links[l]].bandwidth);
        expect_int(row->name, row->length, length);
        expect_double(row->name, row->bandwidth * 1e9, least);
    }
}

/* sm 70: 20 GB/s per NVLink. PCIe 3 x16: 16 * 60 / 80 = 12 GB/s. EDR: 100000 / 8000 = 12.5 GB/s.
 * Model 79 (0x4F) is Broadwell: 6 GB/s between the sockets. */
static void test_dgx1_xml(void **state)
{
    (void)state;
    static const path_row rows[] = {
        {"one NVLink", 0, 1, 20, 1},
        {"two NVLinks", 0, 3, 40, 1},
        {"through GPU 4", 0, 7, 40, 2},
        {"NIC on the same switch", 0, 8, 12, 3},
        {"NIC of the other socket", 0, 10, 6, 6},
    };
    char *text = load("nccl-dgx1.xml");
    cs_platform platform;
    cs_error error;
    check(try_xml(text, 8, 0, &platform, &error), &error);
    free(text);
    assert_int_equal(platform.n_ports, 4);
    assert_string_equal(platform.vertices[8].name, "mlx5_0");
    expect_paths(&platform, rows, ROWS(rows));
    cs_platform_finish(&platform);
}

/* The PCIe tree alone, as cloud vendors hand it out: PCIe 4 x16 is 24 GB/s, between AMD's sockets
 * NCCL reckons with 16 GB/s. With an NVSwitch specified as well, that comes first. */
static void test_part_xml(void **state)
{
    (void)state;
    static const path_row tree[] = {
        {"same switch", 0, 1, 24, 2}, {"other socket", 0, 2, 16, 5}, {"NIC", 2, 6, 24, 2}};
    static const path_row joined[] = {{"NVSwitch", 0, 2, 300, 2}, {"NIC", 2, 6, 24, 2}};
    char *text = load("nccl-part.xml");
    cs_platform platform;
    cs_error error;
    check(try_xml(text, 4, 0, &platform, &error), &error);
    assert_int_equal(platform.n_ports, 4);
    expect_paths(&platform, tree, ROWS(tree));
    cs_platform_finish(&platform);
    check(try_xml(text, 4, 300e9, &platform, &error), &error);
    expect_paths(&platform, joined, ROWS(joined));
    cs_platform_finish(&platform);
    free(text);
}

#define NODE(version, inner)                                                                       \
    "<system version=\"" version                                                                   \
    "\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\">" inner "</cpu></system>"
#define PCI(id, class, inner)                                                                      \
    "<pci busid=\"0000:" id                                                                        \
    "\" class=\"" class "\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">" inner "</pci>"
#define CUDA(id, sm, links) PCI(id ":00.0", "0x030200", "<gpu sm=\"" sm "\">" links "</gpu>")
#define AMD(id, gcn, links)                                                                        \
    PCI(id ":00.0", "0x120000", "<gpu sm=\"228\" gcn=\"" gcn "\">" links "</gpu>")
#define LINK(name, target, count, class)                                                           \
    "<" name " target=\"" target "\" count=\"" count "\" tclass=\"" class "\"/>"
#define NVS(id, count)  LINK("nvlink", "0000:" id ":00.0", count, "0x068000")
#define XGMI(id, count) LINK("xgmi", "0000:" id ":00.0", count, "0x120000")
#define A100                                                                                       \
    NVS("c4", "2") NVS("c5", "2") NVS("c6", "2") NVS("c7", "2") NVS("c8", "2") NVS("c9", "2")
#define H100 NVS("05", "5") NVS("06", "4") NVS("07", "4") NVS("08", "5")
#define TWO_PORTS                                                                                  \
    PCI("50:00.0", "0x020000", "<nic><net name=\"a\" speed=\"400000\"/></nic>")                    \
    PCI("50:00.1", "0x020000", "<nic><net name=\"b\" speed=\"400000\"/></nic>")

/* Elements of one GPU that lead to the same place are one link with their sum. Bandwidths per link
 * of NCCL and RCCL: 20 (sm 80), 20.6 (sm 90), 40.1 (sm 100); 24 (gfx908), 36 (gfx90a), 48 (gfx942).
 * PCIe 5 x16: 16 * 240 / 80 = 48 GB/s. */
static void test_links_of_gpus(void **state)
{
    (void)state;
    static const struct {
        const char *xml;
        path_row path;
    } rows[] = {
        {NODE("1", CUDA("01", "80", A100) CUDA("02", "80", A100)),
         {"six NVSwitches of two links", 0, 1, 12 * 20, 2}},
        {NODE("1", CUDA("01", "90", H100) CUDA("02", "90", H100)),
         {"four NVSwitches of five and four", 1, 0, 18 * 20.6, 2}},
        {NODE("1", CUDA("01", "100", NVS("05", "9") NVS("06", "9"))
                       CUDA("02", "100", NVS("05", "9") NVS("06", "9"))),
         {"two NVSwitches of nine", 0, 1, 721.8, 2}},
        {NODE("1", CUDA("01", "90", "<nvlink target=\"fffffff:ffff:ff\" count=\"18\"/>")
                       CUDA("02", "90", "<nvlink target=\"0000:05:00.0\" count=\"18\"/>")),
         {"NVSwitches without a class", 0, 1, 18 * 20.6, 2}},
        {NODE("1", CUDA("01", "70",
                        LINK("nvlink", "0000:02:00.0", "1", "0x030200")
                            LINK("nvlink", "0000:02:00.0", "2", "0x030200")) CUDA("02", "70", "")),
         {"two elements towards one GPU", 0, 1, 60, 1}},
        {NODE("1", CUDA("01", "70", "<nvlink target=\"0000:02:00.0\" count=\"2\"/>")
                       CUDA("02", "70", "")),
         {"a GPU without a class", 0, 1, 40, 1}},
        {NODE("1", CUDA("01", "70", LINK("nvlink", "0000:99:00.0", "2", "0x030200"))
                       CUDA("02", "70", "")),
         {"a GPU that the job did not use", 0, 1, 48, 2}},
        {NODE("2", AMD("01", "gfx942", XGMI("02", "1")) AMD("02", "gfx942", XGMI("01", "1"))),
         {"MI300X", 0, 1, 48, 1}},
        {NODE("2", AMD("01", "gfx90a", XGMI("02", "4")) AMD("02", "gfx90a", XGMI("01", "4"))),
         {"the halves of an MI250X", 0, 1, 4 * 36, 1}},
        {NODE("2", AMD("01", "910", XGMI("02", "2") XGMI("02", "2")) AMD("02", "910", "")),
         {"a number for the architecture, two elements", 0, 1, 4 * 36, 1}},
        {NODE("2",
              AMD("01", "908", LINK("xgmi", "0000:02:00.0", "1", "0x038000")) AMD("02", "908", "")),
         {"MI100, of another class", 0, 1, 24, 1}},
        {NODE("1",
              PCI("01:00.0", "0x030200",
                  "<gpu sm=\"90\"><c2c bw=\"44712\" count=\"10\"/></gpu>") "<nic><net name=\"a\" "
                                                                           "speed=\"4000000\"/></"
                                                                           "nic>"),
         {"C2C to the socket of a NIC", 0, 1, 447.12, 3}},
        {NODE("1", CUDA("01", "80", "") CUDA("02", "80", "") TWO_PORTS),
         {"two ports of one card", 2, 3, 50, 2}},
        {NODE("1", CUDA("01", "80", "") CUDA("02", "80", "") TWO_PORTS),
         {"the second port's PCIe link", 0, 3, 48, 3}},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const uint32_t n_devices = strstr(rows[i].xml, "c2c") ? 1 : 2;
        cs_platform platform;
        cs_error error;
        check(try_xml(rows[i].xml, n_devices, 0, &platform, &error), &error);
        expect_paths(&platform, &rows[i].path, 1);
        cs_platform_finish(&platform);
    }
}

/* NVLink across nodes: GPUs of both hosts have the same bus ids, and only NVSwitches join them. */
static void test_two_hosts(void **state)
{
    (void)state;
#define HOST(hash, links)                                                                          \
    "<cpu numaid=\"0\" host_hash=\"" hash "\">" CUDA("01", "100", links)                           \
        CUDA("02", "100", links) "</cpu>"
    static const path_row switched[] = {{"other host", 0, 2, 721.8, 2}};
    cs_platform platform;
    cs_error error;
    check(try_xml("<system version=\"1\">" HOST("0xa", NVS("05", "18"))
                      HOST("0xb", NVS("05", "18")) "</system>",
                  4, 0, &platform, &error),
          &error);
    expect_paths(&platform, switched, ROWS(switched));
    cs_platform_finish(&platform);
    cs_status status =
        try_xml("<system version=\"1\">" HOST("0xa", LINK("nvlink", "0000:02:00.0", "1", "0x03"))
                    HOST("0xb", LINK("nvlink", "0000:02:00.0", "1", "0x03")) "</system>",
                4, 0, &platform, &error);
    assert_int_equal(status, CS_INVALID);
    assert_non_null(strstr(error.text, "there is no route from"));
}

#define XML(inner)                                                                                 \
    "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci busid=\"1\" class=\"0x030200\">\n" inner     \
    "</pci>\n</cpu>\n</system>\n"

static void test_xml_errors(void **state)
{
    (void)state;
    static const struct {
        const char *name, *xml, *message;
    } rows[] = {
        {"cut off", "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci bus",
         "t.xml:3: unclosed token"},
        {"cut off between elements", "<system version=\"1\">\n<cpu numaid=\"0\">\n",
         "t.xml:3: no element found"},
        {"empty", "", "t.xml:1: no element found"},
        {"leads nowhere", XML("<gpu dev=\"0\" gcn=\"gfx942\"><xgmi count=\"1\"/></gpu>"),
         "t.xml:4: xgmi must have target or tclass"},
        {"no NVLinks",
         XML("<gpu dev=\"0\" sm=\"70\"><nvlink target=\"1\" count=\"0\" tclass=\"0x03\"/></gpu>"),
         "t.xml:4: count must be > 0: the bandwidth would be 0 (got 0)"},
        {"not a number", XML("<gpu dev=\"x\"/>"), "t.xml:4: dev must be a number (got \"x\")"},
        {"version", "<system version=\"3\"/>",
         "t.xml:1: version must be 1 (NCCL) or 2 (RCCL) (got 3)"},
        {"another file", "<graphs version=\"1\"/>",
         "t.xml:1: must be NCCL's topology, with a system around all (got graphs)"},
        {"no GPU", "<system version=\"1\"><cpu numaid=\"0\"/></system>",
         "t.xml:1: must have a GPU: a pci of class 0x03 or 0x12, or with a gpu"},
        {"pci outside", "<system version=\"1\">\n<pci busid=\"1\"/></system>",
         "t.xml:2: pci must be inside of a cpu"},
        {"no busid", XML("<pci class=\"0x06\"/>"), "t.xml:4: pci must have a busid"},
        {"net outside", XML("<net name=\"a\"/>"), "t.xml:4: net must be inside of a nic"},
        {"nvlink outside", "<system version=\"1\"><cpu><nvlink count=\"1\"/></cpu></system>",
         "t.xml:1: nvlink must be inside of a gpu"},
        {"lanes", XML("<pci busid=\"2\" link_width=\"-1\"/>"),
         "t.xml:4: link_width must be >= 0 (got -1)"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_platform platform;
        cs_error error;
        const cs_status status = try_xml(rows[i].xml, 1, 0, &platform, &error);
        expect_error(rows[i].name, CS_INVALID, rows[i].message, status, &error);
    }
}

/* A file without NVLinks makes GPUs talk over PCIe, as unintentionally in virtual machines: a
 * warning, unless the scenario specifies the GPUs' connection or that there is none, or there is
 * only one GPU. In a cluster the warning comes from its node. */
static void test_no_nvlinks(void **state)
{
    (void)state;
    static const struct {
        const char *topology;
        uint32_t n;
        bool warns;
    } rows[] = {
        {"{\"topology\":\"file\",\"file\":\"nccl-part.xml\"}", 4, true},
        {"{\"topology\":\"file\",\"file\":\"nccl-part.xml\",\"nvswitch\":\"300 GB/s\"}", 4, false},
        {"{\"topology\":\"file\",\"file\":\"nccl-part.xml\",\"nvswitch\":\"none\"}", 4, false},
        {"{\"topology\":\"file\",\"file\":\"nccl-part.xml\"}", 1, false},
        {"{\"topology\":\"file\",\"file\":\"nccl-dgx1.xml\"}", 8, false},
        {"{\"topology\":\"cluster\",\"gpus_per_node\":4,\"node\":{\"topology\":\"file\",\"file\":"
         "\"nccl-part.xml\"},\"network\":{\"topology\":\"nvlink_switch\",\"bandwidth\":1e9}}",
         8, true},
    };
    static const char wanted[] =
        "lists no NVLinks, as files of virtual machines often do, so GPUs communicate over PCIe; "
        "if NVSwitches join them, set their bandwidth per GPU, one way: \"nvswitch\": \"300 GB/s\" "
        "(300 GB/s for an A100, 450 GB/s for an H100); if there are none, set \"nvswitch\": "
        "\"none\"";
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_platform platform;
        cs_error error;
        cs_error_init(&error);
        check(cs_topology_build_text(CS_SOURCE_ROOT "/tests/data/x.json", rows[i].topology,
                                     rows[i].n, &platform, &error),
              &error);
        expect_int(rows[i].topology, rows[i].warns, platform.warning != NULL);
        if (rows[i].warns && !strstr(platform.warning, wanted))
            fail_msg("%s", platform.warning);
        cs_platform_finish(&platform);
    }
}

/* Where the file says how GPUs are joined, or the value is none of its own, it is not passed
 * over. */
static void test_nvswitch_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file, *value, *message;
    } rows[] = {
        {"nccl-part.xml", "true",
         "x.json: /nvswitch: must be a bandwidth > 0 or \"none\" (got true)"},
        {"nccl-part.xml", "\"nome\"",
         "x.json: /nvswitch: must be a bandwidth > 0 or \"none\" (got \"nome\")"},
        {"nccl-dgx1.xml", "\"300 GB/s\"",
         "nccl-dgx1.xml: has NVLinks; \"nvswitch\" must be omitted"},
        {"nccl-dgx1.xml", "\"none\"", "nccl-dgx1.xml: has NVLinks; \"nvswitch\" must be omitted"},
        {"../../scenarios/dp-ring.json", "\"300 GB/s\"",
         "dp-ring.json: is not NCCL's XML; \"nvswitch\" must be omitted"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[256];
        cs_platform platform;
        cs_error error;
        cs_error_init(&error);
        snprintf(text, sizeof(text), "{\"topology\":\"file\",\"file\":\"%s\",\"nvswitch\":%s}",
                 rows[i].file, rows[i].value);
        const cs_status status =
            cs_topology_build_text(CS_SOURCE_ROOT "/tests/data/x.json", text, 4, &platform, &error);
        expect_int(rows[i].value, CS_INVALID, status);
        if (!strstr(error.text, rows[i].message))
            fail_msg("%s: %s, not %s", rows[i].value, error.text, rows[i].message);
    }
}

/* A file in a scenario's words: relative to the document, both formats. */
static void test_topology_file(void **state)
{
    (void)state;
    static const char cluster[] = "{\"topology\":\"cluster\",\"gpus_per_node\":4,"
                                  "\"node\":{\"topology\":\"file\",\"file\":\"nccl-part.xml\"},"
                                  "\"network\":{\"topology\":\"nvlink_switch\",\"bandwidth\":1e9}}";
    static const char *const texts[] = {
        "{\"topology\":\"file\",\"file\":\"nccl-dgx1.xml\"}",
        "{\"topology\":\"file\",\"file\":\"nccl-part.xml\",\"nvswitch\":\"300 GB/s\"}", cluster};
    for (size_t i = 0; i < ROWS(texts); i++) {
        cs_platform platform;
        cs_error error;
        cs_error_init(&error);
        check(cs_topology_build_text(CS_SOURCE_ROOT "/tests/data/x.json", texts[i], 4, &platform,
                                     &error),
              &error);
        cs_platform_finish(&platform);
    }
    cs_platform platform;
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_topology_build_text("/nowhere/x.json", texts[0], 4, &platform, &error),
                     CS_INVALID);
    assert_non_null(strstr(error.text, "/nowhere/nccl-dgx1.xml"));
}

/* The picture of a topology; free it. */
static char *picture_of(const char *topology, uint32_t n_devices)
{
    char json[512];
    cs_platform platform;
    cs_error error;
    char *text = NULL;
    size_t length;
    cs_error_init(&error);
    snprintf(json, sizeof(json), "{\"topology\":%s}", topology);
    check(cs_topology_build_text("t", json, n_devices, &platform, &error), &error);
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    check(cs_platform_dot(&platform, out, &error), &error);
    fclose(out);
    cs_platform_finish(&platform);
    return text;
}

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

/* Identical parts are drawn once. Boxes: non-switches, then switches; and lines.
 *
 *   dgx-a100, a node   8 GPUs and 2 sockets; 4 PCIe switches, the 2 NICs of each in one box, as no
 *                      leaf is on a route, and the NVSwitch. Lines: 8 of GPUs to it, 8 and 4 of
 *                      GPUs
 *                      and NICs to PCIe switches, 4 up from these, 1 between the sockets
 *   two nodes          twice the GPUs, sockets and switches, each NIC by itself (13 switches and 29
 *                      lines a node): it has a leaf, one of 8, with a NIC of each node; the 10
 *                      spines
 *                      are one box, with 2 links each from every leaf: 58 + 16 + 8 lines
 *   eight nodes        drawn as two
 *   bridge             2 GPUs and their bridge (a CPU), which has a link to itself
 *   merged devices     24 GPUs, 6 to a leaf, are 4 boxes; the 2 spines one
 *   no layers          a ring has no switch; each is linked to the next
 */
static const struct {
    const char *name, *topology;
    uint32_t devices, others, switches, lines;
    const char *holds[3], *holds_not;
} pictures[] = {
    {"a node", "\"dgx-a100\"", 8, 10, 9, 25, {"not drawn: 18 switches", "node0"}, "node1"},
    {"two nodes",
     "\"dgx-a100\"",
     16,
     20,
     35,
     82,
     {"spine0 ...\\nspine9 (10)", "20 links of 25 GB/s each way", "300 GB/s each way, peer"},
     "not drawn"},
    {"eight nodes", "\"dgx-a100\"", 64, 20, 35, 82, {"6 more nodes like these"}, "node2"},
    {"bridge",
     "\"pcie\",\"bandwidth\":\"12 GB/s\"",
     2,
     3,
     0,
     2,
     {"passes 12 GB/s", "12 GB/s each way"},
     "links of"},
    {"merged devices",
     "\"leaf_spine\",\"hosts_per_leaf\":6,\"spines\":2,\"bandwidth\":\"1 GB/s\"",
     24,
     4,
     5,
     8,
     {"gpu0 ...\\ngpu5 (6)", "6 links of 1 GB/s", "spine0,\\nspine1"},
     "not drawn"},
    {"no layers",
     "\"ring\",\"bandwidth\":\"1 GB/s\"",
     5,
     5,
     0,
     5,
     {"layout=neato", "1 GB/s each way"},
     "rank=same"},
};

static void test_pictures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(pictures) / sizeof(pictures[0]); i++) {
        char *text = picture_of(pictures[i].topology, pictures[i].devices);
        expect_int(pictures[i].name, pictures[i].others, count(text, "style=filled fillcolor"));
        expect_int(pictures[i].name, pictures[i].switches, count(text, "rounded,filled"));
        expect_int(pictures[i].name, pictures[i].lines, count(text, " penwidth="));
        for (size_t k = 0; k < 3 && pictures[i].holds[k]; k++)
            if (!strstr(text, pictures[i].holds[k]))
                fail_msg("%s: has no \"%s\":\n%s", pictures[i].name, pictures[i].holds[k], text);
        if (strstr(text, pictures[i].holds_not))
            fail_msg("%s: has \"%s\":\n%s", pictures[i].name, pictures[i].holds_not, text);
        free(text);
    }
}

/* A link without an equal one back has an arrow, from the vertex where it begins. */
static void test_one_way(void **state)
{
    (void)state;
    static const char json[] =
        "{\"schema_version\":1,\"vertices\":[{\"name\":\"a\",\"kind\":\"gpu\"},"
        "{\"name\":\"b \\\"<\\\"\",\"kind\":\"gpu\"}],\"links\":["
        "{\"from\":\"a\",\"to\":\"b \\\"<\\\"\",\"bandwidth\":2},"
        "{\"from\":\"b \\\"<\\\"\",\"to\":\"a\",\"bandwidth\":1}]}";
    cs_error error;
    cs_platform platform;
    cs_error_init(&error);
    cJSON *root = cJSON_Parse(json);
    cs_fabric *net;
    uint32_t relays;
    char *text = NULL;
    size_t length;
    check(cs_fabric_from_json(root, &(cs_json_place){.file = "f"}, &net, &relays, &error), &error);
    check(cs_fabric_finish(net, 2, relays, &platform, &error), &error);
    FILE *out = open_memstream(&text, &length);
    check(cs_platform_dot(&platform, out, &error), &error);
    fclose(out);
    assert_non_null(strstr(text, "[label=\"b \\\"<\\\"\""));
    assert_non_null(strstr(text, "v0 -> v1 ["));
    assert_non_null(strstr(text, "v1 -> v0 ["));
    assert_null(strstr(text, "dir=none"));
    assert_null(strstr(text, "each way"));
    free(text);
    cs_platform_finish(&platform);
    cs_fabric_destroy(net);
    cJSON_Delete(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_json_errors),
        cmocka_unit_test(test_given_route),
        cmocka_unit_test(test_fewest_devices),
        cmocka_unit_test(test_dgx1_xml),
        cmocka_unit_test(test_links_of_gpus),
        cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_part_xml),
        cmocka_unit_test(test_xml_errors),
        cmocka_unit_test(test_no_nvlinks),
        cmocka_unit_test(test_nvswitch_is_refused),
        cmocka_unit_test(test_topology_file),
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_one_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

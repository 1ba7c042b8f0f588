/* The topologies of clusters and nodes: routes, bandwidths and sizes against values by hand. */
#include "tests/expect.h"
#include "topologies/route.h"
#include "topologies/topology.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_ROUTE = 64 };

static cs_status try_build(const char *json, uint32_t n_devices, cs_platform *platform,
                           cs_error *error)
{
    cs_error_init(error);
    return cs_topology_build_text("test", json, n_devices, platform, error);
}

static cs_platform build(const char *json, uint32_t n_devices)
{
    cs_platform platform;
    cs_error error;
    if (try_build(json, n_devices, &platform, &error) != CS_OK)
        fail_msg("%s\n%s", json, error.text);
    return platform;
}

static char *route_text(const cs_platform *platform, uint32_t source, uint32_t target, char *text,
                        size_t size)
{
    uint32_t links[MOST_ROUTE];
    assert_true(platform->longest_route <= MOST_ROUTE);
    const uint32_t n = platform->route(platform, source, target, links);
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "",
                                 platform->links[links[i]].name);
    return text;
}

/* ---- routes ---- */

/* Four hosts, two leaves with two links up, two spines. */
#define SMALL_TREE "{\"topology\":\"fat_tree\",\"down\":[2,2],\"up\":[2],\"bandwidth\":1e9}"
/* Switches of four ports, three levels, up to 16 hosts: 8 leaves, 8 spines, 4 cores. */
#define TALL_TREE "{\"topology\":\"fat_tree\",\"levels\":3,\"radix\":4,\"bandwidth\":1e9}"
/* Four nodes with two NICs; a leaf holds one rail of two nodes. */
#define RAILS                                                                                      \
    "{\"topology\":\"leaf_spine\",\"hosts_per_leaf\":2,\"spines\":1,\"rails\":2,\"bandwidth\":"    \
    "1e9}"
/* Three groups of two routers with one host and one global link each. */
#define DRAGONFLY                                                                                  \
    "{\"topology\":\"dragonfly\",\"routers\":2,\"hosts\":1,\"global_links\":1,\"bandwidth\":1e9}"
#define TWO_BY_TWO                                                                                 \
    "{\"topology\":\"cluster\",\"gpus_per_node\":2,\"node\":{\"topology\":\"pcie_tree\","          \
    "\"switches_per_socket\":0,\"nics\":2},\"network\":{\"topology\":\"nvlink_switch\","           \
    "\"bandwidth\":1e9}}"
#define ATTACHED                                                                                   \
    "{\"topology\":\"cluster\",\"gpus_per_node\":2,\"node\":{\"topology\":\"ring\","               \
    "\"bandwidth\":1e9},\"network\":{\"topology\":\"ring\",\"bandwidth\":1e9}}"

/* Pairs of GPUs on NVSwitches of 100 GB/s, one NIC each pair, without a word about the links
 * between. */
#define NETWORK_OF(network)                                                                        \
    "{\"topology\":\"cluster\",\"gpus_per_node\":2,\"node\":{\"topology\":\"nvlink_switch\","      \
    "\"bandwidth\":1e11}," network "}"

typedef struct route_row {
    const char *platform;
    uint32_t n_devices, source, target;
    const char *links;
} route_row;

static const route_row route_rows[] = {
    /* D-mod-k: the port up from a leaf is target mod 2 */
    {SMALL_TREE, 4, 0, 1, "gpu0 to leaf0, leaf0 to gpu1"},
    {SMALL_TREE, 4, 0, 2, "gpu0 to leaf0, leaf0 to spine0, spine0 to leaf1, leaf1 to gpu2"},
    {SMALL_TREE, 4, 0, 3, "gpu0 to leaf0, leaf0 to spine1, spine1 to leaf1, leaf1 to gpu3"},
    {SMALL_TREE, 4, 1, 3, "gpu1 to leaf0, leaf0 to spine1, spine1 to leaf1, leaf1 to gpu3"},
    /* target 15: port 15 mod 2 = 1 to column 1 of the spines; there 15 / 2 mod 2 = 1, so column
     * 1 + 2 * 1 of the cores; the subtree of 15 is number 3 of four hosts and two spines each */
    {TALL_TREE, 16, 0, 15,
     "gpu0 to leaf0, leaf0 to spine1, spine1 to core3, core3 to spine7, spine7 to leaf7, leaf7 to "
     "gpu15"},
    {TALL_TREE, 16, 0, 3, "gpu0 to leaf0, leaf0 to spine1, spine1 to leaf1, leaf1 to gpu3"},
    /* hosts 0 and 2 are NIC 0 of nodes 0 and 1, on one leaf; host 1 is NIC 1 of node 0 */
    {RAILS, 8, 0, 2, "gpu0 to leaf0, leaf0 to gpu2"},
    {RAILS, 8, 1, 3, "gpu1 to leaf1, leaf1 to gpu3"},
    {RAILS, 8, 0, 1, "gpu0 to leaf0, leaf0 to spine0, spine0 to leaf1, leaf1 to gpu1"},
    {RAILS, 8, 0, 4, "gpu0 to leaf0, leaf0 to spine0, spine0 to leaf2, leaf2 to gpu4"},
    /* (0, 0) to (2, 1): one step down around the end, then one step up */
    {"{\"topology\":\"torus\",\"shape\":[3,2],\"bandwidth\":1e9}", 6, 0, 5,
     "gpu0 to gpu2, gpu2 to gpu5"},
    {"{\"topology\":\"torus\",\"shape\":[4,1,2],\"bandwidth\":1e9}", 8, 1, 7,
     "gpu1 to gpu2, gpu2 to gpu3, gpu3 to gpu7"},
    /* group 0: port 0 (router 0) leads to group 1, port 1 (router 1) to group 2; the other ends
     * are port 1 of group 1 and port 0 of group 2 */
    {DRAGONFLY, 6, 0, 3,
     "gpu0 to group0/router0, group0/router0 to group1/router1, group1/router1 to gpu3"},
    {DRAGONFLY, 6, 0, 2,
     "gpu0 to group0/router0, group0/router0 to group1/router1, group1/router1 to group1/router0, "
     "group1/router0 to gpu2"},
    {DRAGONFLY, 6, 0, 4,
     "gpu0 to group0/router0, group0/router0 to group0/router1, group0/router1 to group2/router0, "
     "group2/router0 to gpu4"},
    {DRAGONFLY, 6, 0, 1,
     "gpu0 to group0/router0, group0/router0 to group0/router1, group0/router1 to gpu1"},
    /* no NVLink between 0 and 7: over 4 both links are double, over 3 one is single */
    {"{\"topology\":\"dgx1\"}", 8, 0, 3, "gpu0 to gpu3"},
    {"{\"topology\":\"dgx1\"}", 8, 0, 7, "gpu0 to gpu4, gpu4 to gpu7"},
    /* over 1 and over 4 one link is single: two equal ways, 5 mod 2 takes the second */
    {"{\"topology\":\"dgx1\"}", 8, 0, 5, "gpu0 to gpu4, gpu4 to gpu5"},
    {"{\"topology\":\"dgx1\"}", 8, 0, 6, "gpu0 to gpu2, gpu2 to gpu6"},
    {"{\"topology\":\"dgx1\",\"relay\":\"pcie\"}", 8, 0, 5,
     "gpu0 to plx0, plx0 to socket0, socket0 to socket1, socket1 to plx2, plx2 to gpu5"},
    {"{\"topology\":\"nvswitch\",\"model\":\"dgx2\"}", 16, 0, 15,
     "gpu0 to nvswitch0, nvswitch0 to nvswitch1, nvswitch1 to gpu15"},
    {"{\"topology\":\"nvlink_mesh\"}", 4, 3, 1, "gpu3 to gpu1"},
    {"{\"topology\":\"pcie_tree\"}", 8, 0, 1, "gpu0 to plx0, plx0 to gpu1"},
    {"{\"topology\":\"pcie_tree\",\"host_bandwidth\":1e10}", 8, 0, 2,
     "gpu0 to plx0, plx0 to socket0, through socket0, socket0 to plx1, plx1 to gpu2"},
    /* GPU 1 is below socket 1 with NIC 1: so is where it sends from and where it receives */
    {TWO_BY_TWO, 4, 0, 2,
     "node0/gpu0 to node0/socket0, node0/socket0 to node0/nic0, node0/nic0 to switch, "
     "switch to node1/nic0, node1/nic0 to node1/socket0, node1/socket0 to node1/gpu0"},
    {TWO_BY_TWO, 4, 1, 2,
     "node0/gpu1 to node0/socket1, node0/socket1 to node0/nic1, node0/nic1 to switch, "
     "switch to node1/nic0, node1/nic0 to node1/socket0, node1/socket0 to node1/gpu0"},
    {TWO_BY_TWO, 3, 1, 0,
     "node0/gpu1 to node0/socket1, node0/socket1 to node0/socket0, node0/socket0 to node0/gpu0"},
    {ATTACHED, 5, 1, 4,
     "node0/gpu1 to node0/nic0, node0/nic0 to node2/nic0, node2/nic0 to node2/gpu0"},
    {"{\"topology\":\"abci\"}", 8, 0, 3, "node0/gpu0 to node0/gpu3"},
    {"{\"topology\":\"dgx1-v100\"}", 16, 2, 9,
     "node0/gpu2 to node0/plx1, node0/plx1 to node0/nic1, node0/nic1 to leaf0, "
     "leaf0 to node1/nic0, node1/nic0 to node1/plx0, node1/plx0 to node1/gpu1"},
    {"{\"topology\":\"dgx-h100\"}", 16, 3, 11,
     "node0/gpu3 to node0/plx3, node0/plx3 to node0/nic3, node0/nic3 to leaf3, "
     "leaf3 to node1/nic3, node1/nic3 to node1/plx3, node1/plx3 to node1/gpu3"},
};

static void test_routes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(route_rows); i++) {
        const route_row *row = &route_rows[i];
        char text[1024], name[512];
        cs_platform platform = build(row->platform, row->n_devices);
        snprintf(name, sizeof(name), "%s of %" PRIu32 ", %" PRIu32 " to %" PRIu32, row->platform,
                 row->n_devices, row->source, row->target);
        expect_text(name, row->links,
                    route_text(&platform, row->source, row->target, text, sizeof(text)));
        cs_platform_finish(&platform);
    }
}

/* ---- links to attached NICs ---- */

typedef struct attached_row {
    const char *platform;
    double to_nic; /* bytes/s */
} attached_row;

/* In a ring a NIC has two links and sends over both at once: 2 x 25 GB/s. A network without links
 * leaves PCIe 3. */
static const attached_row attached_rows[] = {
    {NETWORK_OF("\"network\":{\"topology\":\"nvlink_switch\",\"bandwidth\":25e9}"), 25e9},
    {NETWORK_OF("\"network\":{\"topology\":\"ring\",\"bandwidth\":25e9}"), 50e9},
    {NETWORK_OF("\"network\":{\"topology\":\"ring\",\"bandwidth\":1e9}"), 12e9},
    {NETWORK_OF("\"network\":\"ideal\""), 12e9},
    {NETWORK_OF("\"nic_bandwidth\":1e9,\"network\":{\"topology\":\"ring\",\"bandwidth\":25e9}"),
     1e9},
};

static void test_attached(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(attached_rows); i++) {
        const attached_row *row = &attached_rows[i];
        cs_platform platform = build(row->platform, 6);
        uint32_t n = 0;
        for (uint32_t l = 0; l < platform.n_links; l++) {
            const cs_link *link = &platform.links[l];
            const char *from = platform.vertices[link->from].name;
            const char *to = platform.vertices[link->to].name;
            const bool up = strstr(from, "/gpu") && strstr(to, "/nic");
            if (!up && !(strstr(from, "/nic") && strstr(to, "/gpu")))
                continue;
            expect_double(row->platform, row->to_nic, link->bandwidth);
            n++;
        }
        expect_int("links to and from NICs", 12, n);
        cs_platform_finish(&platform);
    }
}

/* ---- paths ---- */

typedef struct path_row {
    const char *platform;
    uint32_t n_devices, source, target;
    double bandwidth; /* bytes/s */
    cs_time latency;  /* ps */
} path_row;

static const path_row path_rows[] = {
    /* NVLink 2: one link 25 GB/s, two 50 GB/s; relayed over single and double: 25 GB/s */
    {"{\"topology\":\"dgx1-v100\"}", 8, 0, 1, 25e9, 600000},
    {"{\"topology\":\"dgx1-v100\"}", 8, 0, 4, 50e9, 600000},
    {"{\"topology\":\"dgx1-v100\"}", 8, 0, 5, 25e9, 1200000},
    {"{\"topology\":\"dgx1\",\"links\":4}", 8, 0, 4, 20e9, 0},
    {"{\"topology\":\"nvswitch\",\"model\":\"dgx2\"}", 16, 0, 15, 150e9, 0},
    {"{\"topology\":\"dgx-a100\"}", 8, 0, 7, 300e9, 600000},
    {"{\"topology\":\"dgx-h100\"}", 8, 0, 7, 450e9, 600000},
    /* 400 GB/s both ways (data sheets) */
    {"{\"topology\":\"hgx-a800\"}", 8, 0, 7, 200e9, 600000},
    {"{\"topology\":\"hgx-h800\"}", 8, 0, 7, 200e9, 600000},
    {"{\"topology\":\"abci\"}", 4, 0, 1, 50e9, 600000},
    /* node to node: 12 GB/s of PCIe before 12.5 GB/s of EDR; two links of PCIe at each end, and
     * 2 network links on one leaf, 4 in the rack (34 NICs), 6 over racks: 0.5 us and 0.1 us each */
    {"{\"topology\":\"abci\"}", 1024, 0, 4, 12e9, 2200000},
    {"{\"topology\":\"abci\"}", 1024, 0, 40, 12e9, 2400000},
    {"{\"topology\":\"abci\"}", 1024, 0, 68, 12e9, 2600000},
    /* NVLink 5: 18 links of 50 GB/s, in a DGX and over a whole rack */
    {"{\"topology\":\"dgx-b200\"}", 8, 0, 7, 900e9, 600000},
    {"{\"topology\":\"gb200-nvl72\"}", 72, 0, 71, 900e9, 600000},
    /* rack to rack: NIC n is host n / 4 of rail n % 4, on leaf n / 4 / 32. NIC 0 and NIC 72, host
     * 18, are on one leaf, NIC 144, host 36, is on the next one: two or four links of the network,
     * and two of PCIe at each end */
    {"{\"topology\":\"gb200-nvl72\"}", 144, 0, 72, 48e9, 2200000},
    {"{\"topology\":\"gb200-nvl72\"}", 216, 0, 144, 48e9, 2400000},
    /* six NVLinks of 25 GB/s to each of the others; a NIC of 25 GB/s of the same rail */
    {"{\"topology\":\"gh200-4\"}", 4, 0, 3, 150e9, 600000},
    {"{\"topology\":\"gh200-4\"}", 8, 0, 4, 25e9, 2200000},
    /* NDR on PCIe 5: 48 GB/s before 50 GB/s, two links on one rail */
    {"{\"topology\":\"dgx-b200\"}", 16, 0, 8, 48e9, 2200000},
    {"{\"topology\":\"dgx-h100\"}", 16, 0, 8, 48e9, 2200000},
    {"{\"topology\":\"hgx-h800\"}", 16, 0, 8, 48e9, 2200000},
    /* HDR on PCIe 4: 24 GB/s before 25 GB/s */
    {"{\"topology\":\"hgx-a800\"}", 16, 0, 8, 24e9, 2200000},
    /* attached NICs: as fast as the network, which is 25 GB/s (HDR); PCIe 3 of 12 GB/s does not
     * slow 1 GB/s down; and what is said holds, though it is slower */
    {NETWORK_OF("\"network\":{\"topology\":\"nvlink_switch\",\"bandwidth\":25e9}"), 4, 0, 2, 25e9,
     0},
    {NETWORK_OF("\"network\":{\"topology\":\"nvlink_switch\",\"bandwidth\":1e9}"), 4, 0, 2, 1e9, 0},
    {NETWORK_OF(
         "\"nic_bandwidth\":12e9,\"network\":{\"topology\":\"nvlink_switch\",\"bandwidth\":25e9}"),
     4, 0, 2, 12e9, 0},
    /* under one switch, one socket, two sockets: 2, 4, 5 links; the socket link has no latency */
    {"{\"topology\":\"pcie-8gpu\"}", 8, 0, 1, 12e9, 1000000},
    {"{\"topology\":\"pcie-8gpu\"}", 8, 0, 2, 12e9, 2000000},
    {"{\"topology\":\"pcie-8gpu\"}", 8, 0, 4, 10e9, 2000000},
    {"{\"topology\":\"pcie4-8gpu\"}", 8, 0, 2, 24e9, 2000000},
    {"{\"topology\":\"pcie4-8gpu\"}", 8, 0, 4, 20e9, 2000000},
    {"{\"topology\":\"pcie5-8gpu\"}", 8, 0, 2, 48e9, 2000000},
    {"{\"topology\":\"pcie5-8gpu\"}", 8, 0, 4, 40e9, 2000000},
};

static void test_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(path_rows); i++) {
        const path_row *row = &path_rows[i];
        cs_platform platform = build(row->platform, row->n_devices);
        char name[512];
        cs_route route;
        snprintf(name, sizeof(name), "%s, %" PRIu32 " to %" PRIu32, row->platform, row->source,
                 row->target);
        assert_int_equal(cs_route_find(&platform, row->source, row->target, NULL, &route, NULL),
                         CS_OK);
        expect_double(name, row->bandwidth, route.bandwidth);
        expect_int(name, row->latency, route.latency);
        cs_platform_finish(&platform);
    }
}

/* Each V100 has six NVLinks of 25 GB/s, each P100 four of 20 GB/s, both ways. */
static void test_nvlinks_add_up(void **state)
{
    (void)state;
    static const struct {
        const char *platform;
        double total;
    } rows[] = {{"{\"topology\":\"dgx1\"}", 150e9}, {"{\"topology\":\"dgx1\",\"links\":4}", 80e9}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_platform platform = build(rows[i].platform, 8);
        double out[8] = {0}, in[8] = {0};
        for (uint32_t l = 0; l < platform.n_links; l++) {
            if (!platform.links[l].peer)
                continue;
            out[platform.links[l].from] += platform.links[l].bandwidth;
            in[platform.links[l].to] += platform.links[l].bandwidth;
        }
        for (uint32_t d = 0; d < 8; d++) {
            expect_double(rows[i].platform, rows[i].total, out[d]);
            expect_double(rows[i].platform, rows[i].total, in[d]);
        }
        cs_platform_finish(&platform);
    }
}

/* ---- fat trees ---- */

/* The most messages on any link above the leaves, when host h sends to (h + by) % n. */
static uint32_t most_on_uplinks(const cs_platform *platform, uint32_t by)
{
    const uint32_t n = platform->n_devices;
    uint32_t *load = calloc(platform->n_links, sizeof(*load)), most = 0;
    assert_non_null(load);
    for (uint32_t h = 0; h < n; h++) {
        uint32_t links[MOST_ROUTE];
        const uint32_t length = platform->route(platform, h, (h + by) % n, links);
        for (uint32_t i = 1; i + 1 < length; i++)
            load[links[i]]++;
    }
    for (uint32_t l = 0; l < platform->n_links; l++)
        most = load[l] > most ? load[l] : most;
    free(load);
    return most;
}

/* D-mod-k carries every shift of a full tree without two messages on one link (Zahavi 2012). With
 * an oversubscription of 3, a shift by a whole leaf puts all hosts of the leaf on its uplinks:
 * three on each. The shift by one, a ring in natural order, puts one message on one uplink of each
 * leaf: nothing contends. */
static void test_shifts(void **state)
{
    (void)state;
    cs_platform full =
        build("{\"topology\":\"fat_tree\",\"levels\":3,\"radix\":8,\"bandwidth\":1e9}", 128);
    for (uint32_t by = 1; by < 128; by++)
        if (most_on_uplinks(&full, by) != 1)
            fail_msg("shift by %" PRIu32 ": %" PRIu32 " on one link", by,
                     most_on_uplinks(&full, by));
    cs_platform_finish(&full);
    /* 8 ports: 6 down and 2 up; 8 leaves, 48 hosts */
    cs_platform thin = build("{\"topology\":\"fat_tree\",\"radix\":8,\"oversubscription\":3,"
                             "\"bandwidth\":1e9}",
                             48);
    expect_int("one to three, by a leaf", 3, most_on_uplinks(&thin, 6));
    expect_int("one to three, by one", 1, most_on_uplinks(&thin, 1));
    cs_platform_finish(&thin);
}

/* Equal seeds give equal routes, and different pairs spread over the ports. */
static void test_ecmp(void **state)
{
    (void)state;
    const char *json = "{\"topology\":\"fat_tree\",\"radix\":16,\"routing\":\"ecmp\","
                       "\"bandwidth\":1e9}";
    cs_platform one = build(json, 128), two = build(json, 128);
    uint32_t a[MOST_ROUTE], b[MOST_ROUTE], used[8] = {0};
    for (uint32_t target = 8; target < 128; target++) {
        const uint32_t n = one.route(&one, 0, target, a);
        assert_int_equal(n, two.route(&two, 0, target, b));
        assert_memory_equal(a, b, n * sizeof(*a));
        used[one.links[a[1]].to - 128 - 16]++;
    }
    /* 120 pairs over 8 spines: 15 each on average, standard deviation 3.6 */
    for (uint32_t i = 0; i < 8; i++)
        assert_in_range(used[i], 3, 30);
    cs_platform_finish(&one);
    cs_platform_finish(&two);
}

typedef struct size_row {
    const char *platform;
    uint32_t n_devices, n_vertices, n_links;
} size_row;

static void test_sizes(void **state)
{
    (void)state;
    static const size_row rows[] = {
        /* 4 hosts + 2 leaves + 2 spines; 4 + 4 cables */
        {SMALL_TREE, 4, 8, 16},
        /* 16 hosts + 8 + 8 + 4; 16 + 16 + 16 cables */
        {TALL_TREE, 16, 36, 96},
        /* 3 of 4 hosts: one cable less, both leaves are there */
        {SMALL_TREE, 3, 7, 14},
        /* 8 hosts + 4 leaves + 1 spine; 8 + 4 cables */
        {RAILS, 8, 13, 24},
        /* 6 hosts + 6 routers; 6 cables to hosts, 3 in groups, 3 between groups */
        {DRAGONFLY, 6, 12, 24},
        {"{\"topology\":\"torus\",\"shape\":[4,4],\"bandwidth\":1e9}", 16, 16, 64},
        {"{\"topology\":\"torus\",\"shape\":[4,2],\"bandwidth\":1e9}", 8, 8, 24},
        /* 4 GPUs, 4 NICs, 2 * 2 sockets, a switch; per node 2 GPUs, 2 NICs, 1 socket link */
        {TWO_BY_TWO, 4, 13, 2 * 2 * 5 + 8},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_platform platform = build(rows[i].platform, rows[i].n_devices);
        expect_int(rows[i].platform, rows[i].n_vertices, platform.n_vertices);
        expect_int(rows[i].platform, rows[i].n_links, platform.n_links);
        for (uint32_t l = 0; l < platform.n_links; l++)
            assert_non_null(platform.links[l].name);
        cs_platform_finish(&platform);
    }
}

/* 64 ports: 32 * 32 * 64 hosts on three levels. Under two seconds, as asked for; it takes a tenth
 * of that where nothing watches the memory. */
static void test_large_tree(void **state)
{
    (void)state;
    const clock_t start = clock();
    cs_platform platform =
        build("{\"topology\":\"fat_tree\",\"levels\":3,\"radix\":64,\"bandwidth\":1e9}", 65536);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_int_equal(platform.n_links, 6 * 65536);
    uint32_t links[MOST_ROUTE];
    assert_int_equal(platform.route(&platform, 0, 65535, links), 6);
    cs_platform_finish(&platform);
    if (seconds > 2)
        fail_msg("65,536 hosts took %.2f s", seconds);
}

/* ---- errors ---- */

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *platform;
        uint32_t n_devices;
        const char *message; /* the whole of it */
    } rows[] = {
        {"{\"topology\":\"fat_tre\",\"bandwidth\":1}", 4, "test: /topology: unknown topology "},
        {"{\"topology\":\"fat_tree\",\"bandwidth\":0}", 4, "test: /bandwidth: must be > 0 (got 0)"},
        {"{\"topology\":\"fat_tree\",\"oversubscription\":0.5,\"bandwidth\":1}", 4,
         "test: /oversubscription: must be >= 1 (got 0.5)"},
        {"{\"topology\":\"fat_tree\",\"levels\":3,\"oversubscription\":[1,0.9],\"bandwidth\":1}", 4,
         "test: /oversubscription/1: must be >= 1 (got 0.9)"},
        {"{\"topology\":\"fat_tree\",\"levels\":3,\"oversubscription\":[1],\"bandwidth\":1}", 4,
         "test: /oversubscription: must have 2 entries (got 1)"},
        {"{\"topology\":\"fat_tree\",\"radix\":4,\"bandwidth\":1}", 9,
         "topology fat_tree: 2 levels of these switches connect at most 8 hosts (got 9)"},
        {"{\"topology\":\"fat_tree\",\"radix\":4,\"oversubscription\":5,\"bandwidth\":1}", 9,
         "topology fat_tree: a switch of 4 ports cannot have 5 times as many ports down as up"},
        {"{\"topology\":\"fat_tree\",\"down\":[2,2],\"bandwidth\":1}", 4,
         "must have both \"down\" and \"up\", or neither"},
        {"{\"topology\":\"torus\",\"shape\":[2,2],\"bandwidth\":1}", 5,
         "the product of \"shape\" must be from 5, the number of devices, to 16777216 (got 4)"},
        {"{\"topology\":\"torus\",\"shape\":[2.5],\"bandwidth\":1}", 2,
         "test: /shape/0: must be a whole number >= 1 (got 2.5)"},
        {"{\"topology\":\"torus\",\"shape\":7,\"bandwidth\":1}", 2,
         "test: /shape: must be a list, such as [x, y] or [x, y, z] (got 7)"},
        {DRAGONFLY, 7, "connect at most 3 groups, 6 hosts (got 7)"},
        {"{\"topology\":\"dgx1\"}", 9, "topology dgx1: has 8 GPUs (got 9 devices)"},
        {"{\"topology\":\"dgx1\",\"pcie\":{\"gpus_per_switch\":1}}", 8,
         "4 PCIe switches or host bridges with 1 GPUs each hold 4 GPUs (got 8)"},
        {"{\"topology\":\"dgx1\",\"pcie\":{\"bandwidth\":0}}", 8,
         "test: /pcie/bandwidth: must be > 0 (got 0)"},
        {"{\"topology\":\"nvlink_mesh\"}", 17, "a node has at most 16 GPUs (got 17)"},
        {"{\"topology\":\"cluster\",\"gpus_per_node\":2,\"node\":\"ring\",\"network\":"
         "{\"topology\":\"ring\",\"bandwidth\":\"1 us\"}}",
         4, "test: /node: missing key \"bandwidth\""},
        {"{\"topology\":\"cluster\",\"gpus_per_node\":2,\"node\":{\"topology\":\"pcie_tree\","
         "\"nics\":2},\"nics_per_node\":3,\"network\":{\"topology\":\"ring\",\"bandwidth\":1}}",
         4, "the node has 2 NICs of its own; nics_per_node must be the same or 0 (got 3)"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_platform platform;
        cs_error error;
        const cs_status status = try_build(rows[i].platform, rows[i].n_devices, &platform, &error);
        if (status != CS_INVALID || !strstr(error.text, rows[i].message))
            fail_msg("%s: %s, \"%s\"", rows[i].platform, cs_status_name(status), error.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes), cmocka_unit_test(test_attached),
        cmocka_unit_test(test_paths),  cmocka_unit_test(test_nvlinks_add_up),
        cmocka_unit_test(test_shifts), cmocka_unit_test(test_ecmp),
        cmocka_unit_test(test_sizes),  cmocka_unit_test(test_large_tree),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Costs: the file, and what scenarios make of it. */
#include "calib/costs.h"
#include "sim/core/lower/lower.h"
#include "sim/run/scenario/scenario.h"
#include "topologies/route.h"

#include "expect.h"
#include "run-scenario.h"

#include <stdlib.h>

#define SOURCE    "{\"source\": \"test\", \"device\": \"toy\", \"date\": \"2026-11-21\"}"
#define TIMING(s) "{\"median_s\": " s ", \"low_s\": " s ", \"high_s\": " s ", \"samples\": 9}"
#define VALUE(v)  "{\"value\": " v ", \"low\": " v ", \"high\": " v "}"
#define REGIME(from, alpha, beta)                                                                  \
    "{\"from_bytes\": " from ", \"alpha_s\": " VALUE(alpha) ", \"beta_s_per_byte\": " VALUE(       \
        beta) ", "                                                                                 \
              "\"error\": 0.01, \"points\": 9, \"outliers\": 1}"
#define NETWORK(collective, level, ranks, regimes)                                                 \
    "{\"collective\": \"" collective "\", \"level\": \"" level "\", \"ranks\": " ranks ", "        \
    "\"regimes\": [" regimes "], \"source\": 0}"
#define POINT(values)                                                                              \
    ", \"network\": [{\"collective\": \"send\", \"level\": \"node\", \"ranks\": 2, "               \
    "\"regimes\": [" REGIME("0", "1", "1") "], \"source\": 0, \"points\": [[" values "]]}]}"
#define HEAD "{\"schema_version\": 1, \"sources\": [" SOURCE "]"

/* ---- the file ---- */

static cs_status read_text(const char *text, cs_costs *costs, cs_error *error)
{
    cJSON *root;
    cs_error_init(error);
    cs_status status = cs_json_parse("c.json", text, strlen(text), &root, error);
    if (status != CS_OK)
        return status;
    status = cs_costs_read(root, &(cs_json_place){.file = "c.json"}, costs, error);
    cJSON_Delete(root);
    return status;
}

static const char all[] = HEAD
    ", \"compute\": [{\"op\": \"relu n=1\", \"forward\": " TIMING("2e-6") ", \"update\": " TIMING(
        "3e-6") ", \"workspace_bytes\": 64, \"peak_bytes\": \"1 KiB\", "
                "\"algorithm\": \"a\", \"source\": 0}], \"memory\": [{\"network\": "
                "\"vgg16 n=4 fp32 states=1\", \"peak_bytes\": 3, \"held_bytes\": 5, "
                "\"outside_bytes\": 7, \"source\": 0}], \"network\": ["
                "{\"collective\": \"all_reduce\", \"level\": \"network\", \"ranks\": 8, "
                "\"source\": 0, "
                "\"regimes\": [" REGIME("0", "1e-5", "1e-9") ", " REGIME(
                    "65536", "5e-5",
                    "1e-10") "], "
                             "\"points\": [[8, 1e-5], [8, 1.1e-5], [1024, 1.2e-5, 1.1e-5, 1.4e-5, "
                             "30]]}, "
                             "{\"collective\": \"send\", \"level\": \"node\", \"ranks\": 2, "
                             "\"source\": 0, "
                             "\"regimes\": [{\"from_bytes\": 0, \"alpha_s\": {\"value\": 1e-6}, "
                             "\"beta_s_per_byte\": {\"value\": 0}, \"error\": 0, \"points\": 2, "
                             "\"outliers\": 0}]}], "
                             "\"bandwidths\": [{\"kind\": "
                             "\"peer\", \"bytes_per_s\": " VALUE(
                                 "5e10") ", \"samples\": 3, \"source\": 0}], "
                                         "\"overheads\": [{\"kind\": \"task\", \"time\": " TIMING(
                                             "1e-6") ", \"source\": 0}]}";

static void check_all(const cs_costs *costs)
{
    const cs_cost_compute *relu = cs_costs_compute(costs, "relu n=1");
    const cs_cost_network *reduce =
        cs_costs_network(costs, CS_COST_ALL_REDUCE, CS_COST_LEVEL_NETWORK, 8);
    assert_true(relu && reduce && cs_costs_bandwidth(costs, "peer") &&
                cs_costs_overhead(costs, "task"));
    expect_double("forward", 2e-6, relu->passes[0].median);
    expect_int("no backward", 0, relu->passes[1].samples);
    expect_double("update", 3e-6, relu->passes[3].median);
    expect_int("workspace", 64, relu->workspace_bytes);
    expect_int("peak", 1024, relu->peak_bytes);
    expect_text("algorithm", "a", relu->algorithm);
    const cs_cost_memory *memory = cs_costs_memory(costs, "vgg16 n=4 fp32 states=1");
    assert_non_null(memory);
    expect_int("peak", 3, memory->peak_bytes);
    expect_int("held", 5, memory->held_bytes);
    expect_int("outside", 7, memory->outside_bytes);
    expect_int("points", 3, reduce->n_points);
    expect_double("a point", 1.2e-5, reduce->points[2].seconds);
    expect_double("from", 1.1e-5, reduce->points[2].low);
    expect_double("to", 1.4e-5, reduce->points[2].high);
    expect_int("samples", 30, reduce->points[2].samples);
    expect_int("not known", 0, reduce->points[1].samples);
    const cs_cost_network *send = cs_costs_network(costs, CS_COST_SEND, CS_COST_LEVEL_NODE, 2);
    expect_int("interval", true, cs_cost_interval_is_known(&reduce->regimes[0].alpha));
    expect_int("no interval", false, cs_cost_interval_is_known(&send->regimes[0].alpha));
    /* below the break 10 us + 65535 ns; from it on 50 us + 6.5536 us */
    expect_double("first regime", 1e-5 + 1e-9 * 65535, cs_cost_seconds(reduce, 65535));
    expect_double("second regime", 5e-5 + 1e-10 * 65536, cs_cost_seconds(reduce, 65536));
    expect_double("bandwidth", 5e10, cs_costs_bandwidth(costs, "peer")->bytes_per_s.value);
    expect_double("overhead", 1e-6, cs_costs_overhead(costs, "task")->time.median);
    assert_null(cs_costs_compute(costs, "relu n=2"));
    assert_null(cs_costs_network(costs, CS_COST_ALL_REDUCE, CS_COST_LEVEL_NODE, 8));
}

/* Read, written, read again. */
static void test_round_trip(void **state)
{
    (void)state;
    cs_costs costs, again;
    cs_error error;
    if (read_text(all, &costs, &error) != CS_OK)
        fail_msg("%s", error.text);
    check_all(&costs);
    cJSON *root = cs_costs_json(&costs);
    char *text = root ? cs_json_print(root) : NULL;
    assert_non_null(text);
    if (read_text(text, &again, &error) != CS_OK)
        fail_msg("%s", error.text);
    check_all(&again);
    free(text);
    cJSON_Delete(root);
    cs_costs_finish(&again);
    cs_costs_finish(&costs);
}

static const struct {
    const char *name, *text, *message;
} wrong[] = {
    {"version", "{\"schema_version\": 2, \"sources\": []}", "/schema_version: must be"},
    {"no sources", "{\"schema_version\": 1}", "missing key \"sources\""},
    {"unknown key", HEAD ", \"speed\": 1}", "unknown key \"speed\""},
    {"not a list", HEAD ", \"compute\": {}}",
     "/compute: must be a list, such as [{\"op\": ...}, ...] (got an object)"},
    {"no time", HEAD ", \"compute\": [{\"op\": \"x\", \"source\": 0}]}",
     "/compute/0: must have one of \"forward\""},
    {"source",
     HEAD ", \"compute\": [{\"op\": \"x\", \"forward\": " TIMING("1") ", \"source\": 1}]}",
     "/compute/0/source: must be a position in /sources, below 1 (got 1)"},
    {"twice",
     HEAD ", \"compute\": [{\"op\": \"x\", \"forward\": " TIMING(
         "1") ", \"source\": 0}, {\"op\": \"x\", \"update\": " TIMING("1") ", \"source\": 0}]}",
     "/compute/1: is a duplicate"},
    {"source of a pass",
     HEAD
     ", \"compute\": [{\"op\": \"x\", \"forward\": {\"median_s\": 1, \"low_s\": 1, \"high_s\": 1, "
     "\"samples\": 1, \"source\": 1}, \"source\": 0}]}",
     "/compute/0/forward/source: must be a position in /sources, below 1 (got 1)"},
    {"memory twice",
     HEAD
     ", \"memory\": [{\"network\": \"x\", \"peak_bytes\": 1, \"held_bytes\": 1, \"source\": 0}, "
     "{\"network\": \"x\", \"peak_bytes\": 1, \"held_bytes\": 1, \"source\": 0}]}",
     "/memory/1: is a duplicate"},
    {"interval",
     HEAD
     ", \"compute\": [{\"op\": \"x\", \"forward\": {\"median_s\": 1, \"low_s\": 2, \"high_s\": 3, "
     "\"samples\": 1}, \"source\": 0}]}",
     "/compute/0/forward: must have low_s <= median_s <= high_s"},
    {"negative time",
     HEAD ", \"compute\": [{\"op\": \"x\", \"forward\": " TIMING("-1") ", \"source\": 0}]}",
     "/compute/0/forward/median_s: must be"},
    {"no regimes", HEAD ", \"network\": [" NETWORK("send", "node", "2", "") "]}",
     "/network/0/regimes: must have from 1 to 64 entries (got 0)"},
    {"first regime",
     HEAD ", \"network\": [" NETWORK("send", "node", "2", REGIME("8", "1", "1")) "]}",
     "/network/0/regimes/0/from_bytes: must be 0 in the first regime"},
    {"order of regimes",
     HEAD ", \"network\": [" NETWORK("send", "node", "2",
                                     REGIME("0", "1", "1") ", " REGIME("0", "1", "1")) "]}",
     "/network/0/regimes/1/from_bytes: must be larger"},
    {"one rank", HEAD ", \"network\": [" NETWORK("send", "node", "1", REGIME("0", "1", "1")) "]}",
     "/network/0/ranks: must be"},
    {"half a byte", HEAD POINT("8.5, 1e-6"), "/network/0/points/0: must be [bytes, seconds]"},
    {"three numbers", HEAD POINT("8, 1e-6, 1e-6"), "/network/0/points/0: must be"},
    {"interval", HEAD POINT("8, 1e-6, 2e-6, 3e-6, 9"), "/network/0/points/0: must be"},
    {"half a sample", HEAD POINT("8, 1e-6, 1e-6, 3e-6, 9.5"), "/network/0/points/0: must be"},
    {"no samples", HEAD POINT("8, 1e-6, 1e-6, 3e-6, 0"), "/network/0/points/0: must be"},
    {"half an interval",
     HEAD ", \"bandwidths\": [{\"kind\": \"peer\", \"bytes_per_s\": {\"value\": 1, \"low\": 1}, "
          "\"samples\": 3, \"source\": 0}]}",
     "/bandwidths/0/bytes_per_s: must have both \"low\" and \"high\", or neither"},
    {"collective",
     HEAD ", \"network\": [" NETWORK("alltoall", "node", "2", REGIME("0", "1", "1")) "]}",
     "/network/0/collective: "},
    {"date",
     "{\"schema_version\": 1, \"sources\": [{\"source\": \"s\", \"device\": \"d\", \"date\": "
     "\"today\"}]}",
     "/sources/0/date: must be a day"},
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(wrong); i++) {
        cs_costs costs;
        cs_error error;
        expect_int(wrong[i].name, CS_INVALID, read_text(wrong[i].text, &costs, &error));
        if (!strstr(error.text, wrong[i].message))
            fail_msg("%s: %s", wrong[i].name, error.text);
    }
}

/* Entries of the other file replace entries with the same key, with their source. */
static void test_merge(void **state)
{
    (void)state;
    cs_costs a, b;
    cs_error error;
    assert_int_equal(read_text(all, &a, &error), CS_OK);
    assert_int_equal(
        read_text(
            "{\"schema_version\": 1, \"sources\": [{\"source\": \"later\", \"device\": "
            "\"toy\", \"date\": \"2026-11-22\"}], \"compute\": [{\"op\": \"relu n=1\", "
            "\"forward\": " TIMING("7e-6") ", \"source\": 0}, {\"op\": \"relu n=2\", "
                                           "\"forward\": " TIMING("8e-6") ", \"source\": 0}]}",
            &b, &error),
        CS_OK);
    assert_int_equal(cs_costs_merge(&a, &b, &error), CS_OK);
    cs_costs_finish(&b);
    expect_int("compute", 2, a.n_compute);
    expect_double("replaced", 7e-6, cs_costs_compute(&a, "relu n=1")->passes[0].median);
    expect_text("its source", "later", a.sources[cs_costs_compute(&a, "relu n=1")->source].source);
    expect_int("kept", 2, a.n_network);
    expect_text("its source", "test", a.sources[a.network[0].source].source);
    cs_costs_finish(&a);
}

/* A network's first layer has no gradient of its input: the same shape further back in a network
 * that was measured earlier keeps the one it has, and says where it is from, also through a
 * file. */
static void test_merge_passes(void **state)
{
    (void)state;
    cs_costs a, b;
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(
        read_text(HEAD ", \"compute\": [{\"op\": \"linear\", \"forward\": " TIMING(
                      "1e-6") ", \"backward_input\": " TIMING("2e-6") ", "
                                                                      "\"backward_weight\":"
                                                                      " " TIMING("3e-6") ", "
                                                                                         "\"workspa"
                                                                                         "ce_"
                                                                                         "bytes\": "
                                                                                         "64, "
                                                                                         "\"peak_"
                                                                                         "bytes\": "
                                                                                         "100, "
                                                                                         "\"algorit"
                                                                                         "hm\": "
                                                                                         "\"f; g; "
                                                                                         "h\", "
                                                                                         "\"source"
                                                                                         "\": 0}]}",
                  &a, &error),
        CS_OK);
    assert_int_equal(
        read_text(
            "{\"schema_version\": 1, \"sources\": [{\"source\": \"later\", \"device\": "
            "\"toy\", \"date\": \"2026-11-22\"}], \"compute\": [{\"op\": \"linear\", "
            "\"forward\": " TIMING("5e-6") ", \"backward_weight\": " TIMING(
                "6e-6") ", \"workspace_bytes\": 32, \"peak_bytes\": 200, \"algorithm\": \"f; h\", "
                        "\"source\": 0}]}",
            &b, &error),
        CS_OK);
    assert_int_equal(cs_costs_merge(&a, &b, &error), CS_OK);
    cs_costs_finish(&b);
    cJSON *root = cs_costs_json(&a);
    assert_int_equal(cs_costs_read(root, &(cs_json_place){.file = "again"}, &b, &error), CS_OK);
    cJSON_Delete(root);
    for (int i = 0; i < 2; i++) {
        const cs_costs *costs = i == 0 ? &a : &b;
        const cs_cost_compute *at = cs_costs_compute(costs, "linear");
        expect_double("forward", 5e-6, at->passes[0].median);
        expect_double("backward_input", 2e-6, at->passes[1].median);
        expect_double("backward_weight", 6e-6, at->passes[2].median);
        expect_text("new", "later", costs->sources[at->pass_sources[0]].source);
        expect_text("kept", "test", costs->sources[at->pass_sources[1]].source);
        expect_text("entry", "later", costs->sources[at->source].source);
        expect_text("algorithm", "f; g; h", at->algorithm);
        expect_int("workspace", 64, at->workspace_bytes);
        expect_int("peak", 200, at->peak_bytes);
    }
    cs_costs_finish(&a);
    cs_costs_finish(&b);
}

/* nccl-tests, doc/PERFORMANCE.md: 2 (8 - 1) / 8 = 1.75; 7 / 8; 1. */
static void test_bus_factors(void **state)
{
    (void)state;
    expect_double("all-reduce", 1.75, cs_cost_bus_factor(CS_COST_ALL_REDUCE, 8));
    expect_double("all-gather", 0.875, cs_cost_bus_factor(CS_COST_ALL_GATHER, 8));
    expect_double("reduce-scatter", 0.875, cs_cost_bus_factor(CS_COST_REDUCE_SCATTER, 8));
    expect_double("all-to-all", 0.875, cs_cost_bus_factor(CS_COST_ALL_TO_ALL, 8));
    expect_double("broadcast", 1, cs_cost_bus_factor(CS_COST_BROADCAST, 8));
    expect_double("send", 1, cs_cost_bus_factor(CS_COST_SEND, 2));
}

/* ---- scenarios ---- */

#define SCENARIO(rest)                                                                             \
    "{\"schema_version\": 1, \"runtime\": \"ideal\", \"model\": {\"name\": \"vgg16\", "            \
    "\"device\": \"v100\", "                                                                       \
    "\"batch_size\": 32}, \"platform\": {\"topology\": \"nvlink_switch\", \"devices\": 4, "        \
    "\"bandwidth\": \"100 GB/s\"}, \"schedule\": {\"kind\": \"dp\"}" rest "}"
#define COSTS(rest) ", \"costs\": {\"inline\": " HEAD rest "}}"

/* vgg16's last linear layer on 8 samples, and its update of 4096 x 1000 weights and 1000 biases. */
#define LINEAR                                                                                     \
    "{\"op\": \"linear n=8 in=4096 out=1000 bias fp32\", \"forward\": " TIMING(                    \
        "1e-3") ", \"backward_input\": " TIMING("2e-3") ", \"backward_weight\": " TIMING("4e-3") ", \"workspace_bytes\": 4096, \"source\": 0}"
#define UPDATE                                                                                     \
    "{\"op\": \"update parameters=4097000 optimizer=sgd fp32\", \"update\": " TIMING(              \
        "5e-3") ", \"source\": 0}"

static void load(const char *text, cs_scenario *scenario)
{
    cJSON *root;
    cs_error error;
    cs_error_init(&error);
    if (cs_json_parse("s.json", text, strlen(text), &root, &error) != CS_OK ||
        cs_scenario_read(root, "s.json", scenario, &error) != CS_OK)
        fail_msg("%s", error.text);
    cJSON_Delete(root);
}

static const cs_layer *layer_named(const cs_model *model, const char *name)
{
    for (uint32_t i = 0; i < model->n_layers; i++)
        if (strcmp(model->layers[i].name, name) == 0)
            return &model->layers[i];
    fail_msg("no layer %s", name);
    return NULL;
}

/* One layer is measured, the others use the roofline. Requested times: vgg16 has
 * 13 convolutions and 3 linear layers, each with forward, two gradients and an update, except that
 * the first has no gradient of its input: 63; 15 relu and 5 pools and the adaptive one and 2
 * dropouts with two passes: 46; cross entropy with two: 111. 4 of them are measured. */
static void test_operators(void **state)
{
    (void)state;
    cs_scenario plain, measured;
    load(SCENARIO(""), &plain);
    load(SCENARIO(COSTS(", \"compute\": [" LINEAR ", " UPDATE "]")), &measured);
    for (uint32_t i = 0; i < plain.model->n_layers; i++) {
        const cs_layer *a = &plain.model->layers[i], *b = &measured.model->layers[i];
        if (strcmp(a->name, "fc8.linear") == 0)
            continue;
        expect_int(a->name, a->forward, b->forward);
        expect_int(a->name, a->backward_input, b->backward_input);
        expect_int(a->name, a->update, b->update);
        expect_text(a->name, "estimated", b->timing);
    }
    const cs_layer *last = layer_named(measured.model, "fc8.linear");
    expect_int("forward", CS_PS_PER_SEC / 1000, last->forward);
    expect_int("backward_input", 2 * CS_PS_PER_SEC / 1000, last->backward_input);
    expect_int("backward_weight", 4 * CS_PS_PER_SEC / 1000, last->backward_weight);
    expect_int("update", 5 * CS_PS_PER_SEC / 1000, last->update);
    expect_int("workspace", layer_named(plain.model, "fc8.linear")->workspace_bytes + 4096,
               last->workspace_bytes);
    expect_text("timing", "measured", last->timing);
    expect_int("measured", 4, measured.costs.n_measured);
    expect_int("estimated", 107, measured.costs.n_estimated);
    expect_int("none given", false, plain.costs.given);
    cs_scenario_finish(&measured);
    cs_scenario_finish(&plain);
}

static const struct {
    const char *name, *text, *message;
} refused[] = {
    {"kind", SCENARIO(", \"costs\": 3"), "/costs: must be a file, a list of files, or"},
    {"empty list", SCENARIO(", \"costs\": []"), "/costs: must be a file, a list of files, or"},
    {"no such file", SCENARIO(", \"costs\": \"none.json\""), "none.json"},
    {"inline", SCENARIO(", \"costs\": {\"inline\": {\"schema_version\": 1}}"),
     "/costs/inline: missing key \"sources\""},
    {"no device",
     "{\"schema_version\": 1, \"model\": {\"name\": \"vgg16\", \"batch_size\": 32}, \"platform\": "
     "\"ideal\", \"schedule\": {\"kind\": \"sequential\"}" COSTS(", \"compute\": [" LINEAR "]") "}",
     "/model/device: must be given, because the costs lack 111 of 111 times: conv n=32 "},
    {"no message measured",
     "{\"schema_version\": 1, \"model\": {\"uniform\": {\"layers\": 4, \"forward\": 1, "
     "\"backward\": 1}}, "
     "\"platform\": {\"topology\": \"nvlink_switch\", \"devices\": 4, \"bandwidth\": \"measured "
     "node\"}, \"schedule\": {\"kind\": \"gpipe\", \"micro_batches\": 4}}",
     "/platform/bandwidth: the costs lack messages between two ranks on the level \"node\""},
    {"neither latency nor bandwidth",
     "{\"schema_version\": 1, \"model\": {\"uniform\": {\"layers\": 4, \"forward\": 1, "
     "\"backward\": 1}}, "
     "\"platform\": {\"topology\": \"nvlink_switch\", \"devices\": 4, \"memory\": \"measured "
     "node\"}, "
     "\"schedule\": {\"kind\": \"gpipe\", \"micro_batches\": 4}}",
     "/platform/memory: only latencies and bandwidths"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(refused); i++) {
        cs_scenario scenario;
        cJSON *root;
        cs_error error;
        cs_error_init(&error);
        assert_int_equal(
            cs_json_parse("s.json", refused[i].text, strlen(refused[i].text), &root, &error),
            CS_OK);
        assert_int_not_equal(cs_scenario_read(root, "s.json", &scenario, &error), CS_OK);
        if (!strstr(error.text, refused[i].message))
            fail_msg("%s: %s", refused[i].name, error.text);
        cJSON_Delete(root);
    }
}

/* Latency is alpha of short messages, bandwidth 1 / beta of long ones, of a stream where there is
 * one. */
static void test_links(void **state)
{
    (void)state;
    cs_scenario scenario;
    cs_route route;
    cs_error error;
    static const char text[] =
        "{\"schema_version\": 1, \"model\": {\"uniform\": {\"layers\": 4, \"forward\": 1, "
        "\"backward\": 1}}, \"platform\": {\"topology\": \"nvlink_switch\", \"devices\": 4, "
        "\"bandwidth\": \"measured node\", \"latency\": \"measured node\"}, \"schedule\": "
        "{\"kind\": "
        "\"gpipe\", \"micro_batches\": 4}" COSTS(", \"network\": [" NETWORK(
            "send", "node", "2",
            REGIME("0", "3e-6", "1e-9") ", " REGIME("4096", "9e-6", "5e-11")) "]") "}";
    load(text, &scenario);
    cs_error_init(&error);
    assert_int_equal(cs_route_find(&scenario.platform, 0, 1, NULL, &route, &error), CS_OK);
    expect_int("latency", 3000000, route.latency);
    expect_double("bandwidth", 1 / 5e-11, route.bandwidth);
    cs_scenario_finish(&scenario);
}

/* ---- collectives ---- */

static const cs_measured_regime regimes[] = {{0, 1e-5, 1e-9}, {1000, 5e-5, 1e-10}};
static const cs_measured_collective entries[] = {{CS_ALL_REDUCE, false, 4, 0, 2, regimes}};
static const cs_measured_collectives measured = {1, entries};

/* 999 B: 10 us + 999 ns; 1000 B: 50 us + 100 ns. */
static void test_measured_time(void **state)
{
    (void)state;
    cs_time time;
    cs_error error;
    cs_error_init(&error);
    const cs_measured_collective *at = cs_measured_find(&measured, CS_ALL_REDUCE, false, 4);
    assert_non_null(at);
    assert_int_equal(cs_measured_time(at, 999, &time, &error), CS_OK);
    expect_int("999 B", 10999000, time);
    assert_int_equal(cs_measured_time(at, 1000, &time, &error), CS_OK);
    expect_int("1000 B", 50100000, time);
    assert_null(cs_measured_find(&measured, CS_ALL_REDUCE, true, 4));
    assert_null(cs_measured_find(&measured, CS_ALL_REDUCE, false, 8));
    assert_null(cs_measured_find(NULL, CS_ALL_REDUCE, false, 4));
}

#define DP(collectives)                                                                            \
    "{'schema_version': 1, 'model': {'uniform': {'layers': 4, 'forward': '1 ms', "                 \
    "'backward': '2 ms', 'weights': '1 MB', 'activation': '1 MB'}}, 'platform': {'topology': "     \
    "'nvlink_switch', 'devices': 4, 'bandwidth': '1 GB/s', 'latency': '1 us'}, 'schedule': "       \
    "{'kind': 'dp'}, 'collectives': " collectives ", 'costs': {'inline': {'schema_version': 1, "   \
    "'sources': [{'source': 'test', 'device': 'toy', 'date': '2026-11-21'}], 'network': [{"        \
    "'collective': 'all_reduce', 'level': 'node', 'ranks': %d, 'regimes': [{'from_bytes': 0, "     \
    "'alpha_s': {'value': 1, 'low': 1, 'high': 1}, 'beta_s_per_byte': {'value': 0, 'low': 0, "     \
    "'high': 0}, 'error': 0, 'points': 2, 'outliers': 0}], 'source': 0}]}}}"

/* The form of `dp` assumes a ring over the links. It is claimed for nothing else, and holds where
 * it is claimed; the form of the peaks does not depend on messages. */
static void test_claims(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int ranks; /* number of ranks with a measured time */
        bool claimed;
    } rows[] = {
        {DP("{'fidelity': 'flow'}"), 4, true},
        {DP("{'fidelity': 'analytic'}"), 2, true},
        {DP("{'fidelity': 'analytic'}"), 4, false},
        {DP("{'fidelity': 'alpha_beta'}"), 4, true},
        {DP("{'fidelity': 'alpha_beta', 'levels': {'gpu_pair': {'bandwidth': 5e8}}}"), 4, false},
        {DP("{'algorithm': 'tree'}"), 4, false},
        {DP("{'algorithm': 'halving'}"), 4, false},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        if (scenario_run_init(&run, &error, rows[i].text, rows[i].ranks) != CS_OK)
            fail_msg("%s: %s", rows[i].text, error.text);
        for (uint32_t f = 0; f < run.simulation.forms.n; f++) {
            const cs_form *form = &run.simulation.forms.forms[f];
            const bool of_time = form->figure == CS_FIGURE_MAKESPAN;
            if (form->applies != (rows[i].claimed || !of_time))
                fail_msg("%s: figure %d applies: %d", rows[i].text, form->figure, form->applies);
            if (of_time && form->applies)
                expect_int(rows[i].text, form->exact, run.simulation.trace.makespan);
        }
        scenario_run_finish(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_merge),         cmocka_unit_test(test_merge_passes),
        cmocka_unit_test(test_bus_factors),   cmocka_unit_test(test_operators),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_links),
        cmocka_unit_test(test_measured_time), cmocka_unit_test(test_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

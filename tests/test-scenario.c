/* Scenarios: refusals and their messages, every JSON type at every key, truncated and huge files,
 * resolving, changes from the command line. */
#include "sim/run/simulate.h"
#include "tests/expect.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- reading texts ---- */

#define UNIFORM                                                                                    \
    "{\"uniform\": {\"layers\": 4, \"forward\": \"1 s\", \"backward\": \"2 s\", \"weights\": "     \
    "\"1 GB\", \"activation\": \"1 GB\"}}"
#define SCENARIO(model, platform, schedule)                                                        \
    "{\"schema_version\": 1, \"model\": " model ", \"platform\": " platform                        \
    ", \"schedule\": " schedule "}"
#define GPIPE "{\"kind\": \"gpipe\", \"micro_batches\": 2}"
#define SMALL SCENARIO(UNIFORM, "\"ideal\"", GPIPE)

static cs_status read_text(const char *text, const cs_override *overrides, size_t n,
                           cs_scenario *scenario, cs_error *error)
{
    cJSON *root;
    cs_error_init(error);
    cs_status status = cs_json_parse("s.json", text, strlen(text), &root, error);
    if (status != CS_OK)
        return status;
    for (size_t i = 0; i < n && status == CS_OK; i++)
        status = cs_json_set(root, overrides[i].pointer, overrides[i].value, "--set", error);
    if (status == CS_OK)
        status = cs_scenario_read(root, "s.json", scenario, error);
    cJSON_Delete(root);
    return status;
}

/* ---- what is refused, and how ---- */

#define SCHEDULES                                                                                  \
    "sequential, dp, gpipe, 1f1b, pipedream, pipedream_2bw, nf1b, interleaved_1f1b, zb_h1, "       \
    "zb_h2, zb_v, dualpipe_v, hanayo, periodic, cdp_dp, cdp_v1, cdp_v2, cdp_freshest, custom"
#define TOPOLOGIES                                                                                 \
    "ideal, ring, nvlink_switch, pcie, pcie_tree, nvlink_mesh, dgx1, nvswitch, torus, dragonfly, " \
    "leaf_spine, "                                                                                 \
    "fat_tree, cluster, file, machines (`sim list topologies`)"
#define RING(more)  "{\"topology\": \"ring\", \"devices\": 4, \"bandwidth\": \"1 GB/s\"" more "}"
#define IDEAL(more) "{\"topology\": \"ideal\", \"devices\": 4" more "}"
#define MODEL(layers)                                                                              \
    "{\"inline\": {\"schema_version\": 1, \"name\": \"m\", \"batch_size\": 2, \"provenance\": "    \
    "{\"source\": \"s\", \"hardware\": \"none\", \"date\": \"2026-11-21\"}, \"layers\": " layers   \
    "}}"
#define PLAN(stages)                                                                               \
    "{\"kind\": \"gpipe\", \"micro_batches\": 2, \"partition\": {\"inline\": "                     \
    "{\"schema_version\": 1, \"stages\": " stages "}}}"
#define STAGE(first, last, devices)                                                                \
    "{\"first_layer\": " #first ", \"last_layer\": " #last ", \"devices\": " devices "}"

static const struct {
    const char *name, *pointer, *value; /* set in SMALL */
    const char *message;                /* without "s.json: " */
} refused[] = {
    /* the whole */
    {"version 2", "/schema_version", "2", "/schema_version: must be 1 (got 2)"},
    {"no name", "/name", "\"\"", "/name: must not be empty"},
    {"unknown key", "/iteration", "2",
     "unknown key \"iteration\"; did you mean \"iterations\"? known: schema_version, name, model, "
     "platform, schedule, parallel, runtime, collectives, memory, offload, costs, iterations, "
     "dataset, seed, sweep, advise"},
    {"no iteration", "/iterations", "0", "/iterations: must be from 1 to 1048576 (got 0)"},
    {"iterations beyond", "/iterations", "1048577",
     "/iterations: must be from 1 to 1048576 (got 1048577)"},
    {"half a seed", "/seed", "1.5", "/seed: must be a whole number >= 0 (got 1.5)"},
    {"negative seed", "/seed", "-1", "/seed: must be >= 0 (got -1)"},
    {"large seed", "/seed", "4294967296", "/seed: must be <= 4294967295 (got 4294967296)"},
    /* the model */
    {"model a list", "/model", "[]", "/model: must be an object (got an array)"},
    {"model empty", "/model", "{}",
     "/model: must have exactly one of \"file\", \"name\", \"uniform\" and \"inline\" (got none)"},
    {"model twice", "/model/file", "m.json",
     "/model: must have exactly one of \"file\", \"name\", \"uniform\" and \"inline\" (got "
     "\"file\" and \"uniform\")"},
    {"less than no layers", "/model/uniform/layers", "-1",
     "/model/uniform/layers: must be from 0 to 1048576 (got -1)"},
    {"no layers", "/model/uniform/layers", "0",
     "/platform/devices: must be given for the schedule \"gpipe\" if /model/uniform/layers is not"},
    {"layers as text", "/model/uniform/layers", "\"4\"",
     "/model/uniform/layers: must be a whole number from 0 to 1048576 (got \"4\")"},
    {"negative time", "/model/uniform/forward", "-1",
     "/model/uniform/forward: must be >= 0 (got -1)"},
    {"negative time with a unit", "/model/uniform/forward", "-1 ps",
     "/model/uniform/forward: must be >= 0 (got \"-1 ps\")"},
    {"unknown unit", "/model/uniform/forward", "1 S",
     "/model/uniform/forward: unknown unit \"S\"; did you mean \"s\"? known: ps, ns, us, ms, s, "
     "min, "
     "h"},
    {"unit of another quantity", "/model/uniform/weights", "1 s",
     "/model/uniform/weights: unknown unit \"s\"; known: B, kB, MB, GB, TB, PB, KiB, MiB, GiB, "
     "TiB, "
     "PiB"},
    {"not a number", "/model/uniform/forward", "NaN",
     "/model/uniform/forward: must be a number and a unit such as \"5 ms\" (got \"NaN\")"},
    {"infinite", "/model/uniform/forward", "inf s",
     "/model/uniform/forward: must be a number and a unit such as \"5 ms\" (got \"inf s\")"},
    {"too long a time", "/model/uniform/forward", "1e7",
     "/model/uniform/forward: must be <= 2562.04778 h (got 10000000)"},
    {"unknown key of uniform", "/model/uniform/layer", "2",
     "/model/uniform: unknown key \"layer\"; did you mean \"layers\"? known: layers, forward, "
     "backward, update, weights, activation, workspace"},
    {"wrong optimizer", "/model/optimizer", "adm",
     "/model/optimizer: unknown value \"adm\"; did you mean \"adam\"? known: sgd, momentum, adam, "
     "muon, none"},
    {"batch not divisible", "/model/batch_size", "7",
     "/model/batch_size: must be a multiple of 2, 2 micro-batches (got 7); use 6 or 8, or "
     "/schedule/micro_batches=1 or 7"},
    {"inline of the wrong type", "/model", "{\"inline\": 1}",
     "/model/inline: must be an object (got 1)"},
    {"inline without layers", "/model", MODEL("[]"),
     "/model/inline/layers: must have at least 1 entry (got 0)"},
    {"inline with half a layer", "/model",
     MODEL("[{\"name\": \"a\", \"forward\": 1, \"backward\": "
           "1, \"weights\": 1}]"),
     "/model/inline/layers/0: missing key \"output\": must be bytes: a number or a text such as "
     "\"16 GiB\""},
    /* the platform */
    {"platform a number", "/platform", "1",
     "/platform: must be an object or the name of a topology (got 1)"},
    {"unknown topology", "/platform", "idel",
     "/platform: unknown topology \"idel\"; did you mean \"ideal\"? known: " TOPOLOGIES},
    {"unknown topology in an object", "/platform", "{\"topology\": \"rin\"}",
     "/platform/topology: unknown topology \"rin\"; did you mean \"ring\"? known: " TOPOLOGIES},
    {"topology with a line break", "/platform", "{\"topology\": \"a\\nb\"}",
     "/platform/topology: unknown topology \"a\\nb\"; known: " TOPOLOGIES},
    {"no topology", "/platform", "{}",
     "/platform: missing key \"topology\": must be one of " TOPOLOGIES},
    {"topology a number", "/platform", "{\"topology\": 3}",
     "/platform/topology: must be one of " TOPOLOGIES " (got 3)"},
    {"devices beyond", "/platform", "{\"topology\": \"ideal\", \"devices\": 1048577}",
     "/platform/devices: must be from 0 to 1048576 (got 1048577)"},
    {"more stages than layers", "/platform", "{\"topology\": \"ideal\", \"devices\": 5}",
     "/platform/devices: must be at most 4, the number of layers of \"uniform\", for a pipeline "
     "with "
     "a stage on each (got 5); use 4"},
    {"no bandwidth", "/platform", "{\"topology\": \"ring\"}",
     "/platform: missing key \"bandwidth\": must be bandwidth > 0: a number of bytes/s or a text "
     "such as \"12 GB/s\""},
    {"bandwidth 0", "/platform", "{\"topology\": \"pcie\", \"bandwidth\": 0}",
     "/platform/bandwidth: must be > 0 (got 0)"},
    {"bandwidth -0", "/platform", "{\"topology\": \"pcie\", \"bandwidth\": -0.0}",
     "/platform/bandwidth: must be > 0 (got -0)"},
    {"key of another topology", "/platform", RING(", \"host_bandwidth\": 1"),
     "/platform: unknown key \"host_bandwidth\"; known: topology, "
     "devices, memory, reserve, speed, sharing, phi, messages, blocking, slowdown, jitter, "
     "stragglers, background, bandwidth, latency"},
    {"negative latency", "/platform", RING(", \"latency\": -1"),
     "/platform/latency: must be >= 0 (got -1)"},
    {"unknown sharing", "/platform", RING(", \"sharing\": \"fif\""),
     "/platform/sharing: unknown value \"fif\"; did you mean \"fifo\"? known: auto, none, fifo, "
     "phi, "
     "max_min"},
    {"blocking 1", "/platform", RING(", \"blocking\": 1"),
     "/platform/blocking: must be true or false (got 1)"},
    {"jitter by more than there is", "/platform", RING(", \"jitter\": {\"mean\": 0.7}"),
     "/platform/jitter/mean: must be <= 0.5 with the distribution uniform (got 0.7)"},
    {"jitter without bounds", "/platform",
     RING(", \"jitter\": {\"mean\": 0.1, \"distribution\": \"lognormal\"}"),
     "/platform/jitter/distribution: must be constant, uniform or beta: a share is below 1 (got "
     "\"lognormal\")"},
    {"beta too wide", "/platform",
     RING(", \"jitter\": {\"mean\": 0.5, \"distribution\": \"beta\", \"deviation\": 0.5}"),
     "/platform/jitter/deviation: must be < 0.5, the square root of m (1 - m) (got 0.5)"},
    {"beta, all but constant", "/platform",
     RING(", \"jitter\": {\"mean\": 0.5, \"distribution\": \"beta\", \"deviation\": 1e-300}"),
     "/platform/jitter/deviation: must be from 1e-06 to 1e+06 times the mean, 0.5 (got 1e-300)"},
    {"deviation of uniform", "/platform", RING(", \"jitter\": {\"mean\": 0.5, \"deviation\": 0.1}"),
     "/platform/jitter/deviation: must be left out with the distribution uniform (got 0.1)"},
    {"lognormal without one", "/platform",
     RING(", \"stragglers\": {\"tasks\": {\"mean\": 1, \"distribution\": \"lognormal\"}}"),
     "/platform/stragglers/tasks/deviation: must be > 0 with the distribution lognormal (got 0)"},
    {"stragglers that are a share", "/platform",
     RING(", \"stragglers\": {\"devices\": {\"mean\": 1, \"distribution\": \"beta\"}}"),
     "/platform/stragglers/devices/distribution: must not be beta, which is for shares"},
    {"nobody to send", "/platform", RING(", \"background\": {\"bytes\": 1}"),
     "/platform/background: must have one of \"flows\" and \"pairs\""},
    {"nothing to meet", "/platform",
     RING(", \"sharing\": \"none\", \"background\": {\"bytes\": 1, \"flows\": 1}"),
     "/platform/background: needs a \"sharing\" with contention between messages: fifo, max_min, "
     "or phi with \"count\""},
    {"a device too many", "/platform",
     RING(", \"background\": {\"bytes\": 1, \"pairs\": [[0, 1], [1, 4]]}"),
     "/platform/background/pairs/1: must be devices from 0 to 3 (got 4)"},
    {"from itself", "/platform", RING(", \"background\": {\"bytes\": 1, \"pairs\": [[1, 1]]}"),
     "/platform/background/pairs/0: must be two different devices"},
    {"levels of nothing", "/collectives", "{\"levels\": {}}",
     "/collectives/levels: goes with \"fidelity\": \"alpha_beta\" only"},
    {"a level that is none", "/collectives",
     "{\"fidelity\": \"alpha_beta\", \"levels\": {\"room\": {}}}",
     "/collectives/levels: unknown key \"room\"; known: gpu_pair, node, rack, system"},
    {"more than links have", "/collectives", "{\"reached\": 1.5}",
     "/collectives/reached: must be a number > 0 and <= 1, or an object with one for each of "
     "gpu_pair, node, rack, system (got 1.5)"},
    {"a part in words", "/collectives", "{\"reached\": \"all\"}",
     "/collectives/reached: must be a number > 0 and <= 1, or an object with one for each of "
     "gpu_pair, node, rack, system (got \"all\")"},
    {"a part of a level that is none", "/collectives", "{\"reached\": {\"room\": 0.5}}",
     "/collectives/reached: unknown key \"room\"; known: gpu_pair, node, rack, system"},
    {"a level that reaches nothing", "/collectives", "{\"reached\": {\"rack\": 0}}",
     "/collectives/reached/rack: must be > 0 and <= 1 (got 0)"},
    {"a level without beta", "/collectives",
     "{\"fidelity\": \"alpha_beta\", \"levels\": {\"rack\": {\"alpha\": 1}}}",
     "/collectives/levels/rack: missing key \"bandwidth\": must be bandwidth > 0: a number of "
     "bytes/s or a text such as \"12 GB/s\""},
    {"phi without a value", "/platform", RING(", \"sharing\": \"phi\""),
     "/platform/phi: must be given with \"sharing\": \"phi\": a number >= 1 or \"count\""},
    {"phi below 1", "/platform", RING(", \"sharing\": \"phi\", \"phi\": 0.9"),
     "/platform/phi: must be >= 1 (got 0.9)"},
    {"phi another word", "/platform", RING(", \"sharing\": \"phi\", \"phi\": \"counts\""),
     "/platform/phi: must be a number >= 1 or \"count\" (got \"counts\")"},
    {"phi with fifo", "/platform", RING(", \"phi\": 2"),
     "/platform/phi: requires \"sharing\": \"phi\""},
    {"slowdown below 1", "/platform", RING(", \"slowdown\": {\"factor\": 0.99}"),
     "/platform/slowdown/factor: must be >= 1 (got 0.99)"},
    {"slowdown of two kinds", "/platform",
     RING(", \"slowdown\": [{\"factor\": 2, \"compute\": \"all_reduce\"}]"),
     "/platform/slowdown/0/compute: unknown value \"all_reduce\"; known: any, forward, backward, "
     "backward_input, backward_weight, recompute, update"},
    {"independent with fifo", "/platform", RING(", \"messages\": \"independent\""),
     "/platform/messages: must be \"in_order\" with \"sharing\": \"fifo\": a link carries one "
     "message after another"},
    {"memory 0", "/platform", IDEAL(", \"memory\": 0"), "/platform/memory: must be >= 1 B (got 0)"},
    {"memory that rounds to 0", "/platform", IDEAL(", \"memory\": 0.4"),
     "/platform/memory: must be >= 1 B (got 0.4)"},
    {"memory null", "/platform", IDEAL(", \"memory\": null"),
     "/platform/memory: must be bytes >= 1 B or \"unlimited\": a number or a text such as \"16 "
     "GiB\" (got null)"},
    {"memory too short", "/platform", IDEAL(", \"memory\": [1, 2, 3]"),
     "/platform/memory: must have one entry for each of 4 devices (got 3)"},
    {"memory too long", "/platform", IDEAL(", \"memory\": [1, 2, 3, 4, 5]"),
     "/platform/memory: must have one entry for each of 4 devices (got 5)"},
    {"memory of one device", "/platform", IDEAL(", \"memory\": [1, \"unlimited\", -3, \"4 GB\"]"),
     "/platform/memory/2: must be >= 1 B (got -3)"},
    {"speed 0", "/platform", IDEAL(", \"speed\": 0"), "/platform/speed: must be > 0 (got 0)"},
    {"speed empty", "/platform", IDEAL(", \"speed\": []"),
     "/platform/speed: must have one entry for each of 4 devices (got 0)"},
    {"two speeds", "/platform", IDEAL(", \"speed\": [1, 0, 1, {}]"),
     "/platform/speed/1: must be > 0 (got 0)\ns.json: /platform/speed/3: must be a number > 0 (got "
     "an object)"},
    /* the schedule */
    {"schedule a text", "/schedule", "gpipe", "/schedule: must be an object (got \"gpipe\")"},
    {"no kind", "/schedule", "{}", "/schedule: missing key \"kind\": must be one of " SCHEDULES},
    {"kind a list", "/schedule", "{\"kind\": []}",
     "/schedule/kind: must be one of " SCHEDULES " (got an array)"},
    {"unknown kind", "/schedule", "{\"kind\": \"gpip\"}",
     "/schedule/kind: unknown schedule \"gpip\"; did you mean \"gpipe\"? known: " SCHEDULES},
    {"no micro-batches", "/schedule", "{\"kind\": \"1f1b\"}",
     "/schedule: missing key \"micro_batches\": must be a whole number from 1 to 1048576"},
    {"key of another schedule", "/schedule", "{\"kind\": \"dp\", \"recompute\": true}",
     "/schedule: unknown key \"recompute\"; known: kind, partition, partition_communication, "
     "micro_batches, bucket"},
    {"devices of data parallelism", "/schedule", "{\"kind\": \"dp\"}",
     "/platform/devices: must be given for the schedule \"dp\""},
    {"partition of data parallelism", "/schedule",
     "{\"kind\": \"dp\", \"partition\": \"balanced\"}",
     "/schedule/partition: requires a pipeline, which \"dp\" is not"},
    {"partition unknown", "/schedule/partition", "even",
     "/schedule/partition: unknown planner \"even\"; known: balanced, pipedream, "
     "pipedream_replicated, contiguous_optimal, madpipe, exhaustive, best"},
    {"planner misspelt", "/schedule/partition", "{\"planner\": \"pipedraem\"}",
     "/schedule/partition/planner: unknown planner \"pipedraem\"; did you mean \"pipedream\"? "
     "known: balanced, pipedream, pipedream_replicated, contiguous_optimal, madpipe, exhaustive, "
     "best"},
    {"parameter of another planner", "/schedule/partition",
     "{\"planner\": \"balanced\", \"memory_rule\": \"all\"}",
     "/schedule/partition: unknown key \"memory_rule\"; known: communication, stages, kept, "
     "weight_copies, count_update, count_workspace, planner"},
    {"partition null", "/schedule/partition", "null",
     "/schedule/partition: must be the name of a planner, a list of layers, {\"planner\": ...}, "
     "{\"file\": ...} or {\"inline\": ...} (got null)"},
    {"cuts for fewer devices", "/schedule/partition", "[1, 2]",
     "/schedule/partition: must give each of the platform's 4 devices one stage for the schedule "
     "\"gpipe\" (got 3 stages on 3 devices)"},
    {"cuts that fall", "/schedule/partition", "[1, 3, 2]",
     "/schedule/partition/2: must be the first layer of stage 3, a whole number from 4 to 3: the "
     "model has 4 layers, and the list must rise"},
    {"communication without balance", "/schedule",
     "{\"kind\": \"gpipe\", \"micro_batches\": 2, \"partition\": [1, 2, 3], "
     "\"partition_communication\": true}",
     "/schedule/partition_communication: requires a pipeline with \"partition\": \"balanced\""},
    {"fewer micro-batches than stages", "/schedule",
     "{\"kind\": \"dualpipe_v\", \"micro_batches\": 3}",
     "/schedule/micro_batches: must be at least 4, one for each stage of the pipeline (got 3)"},
    {"partition an empty object", "/schedule/partition", "{}",
     "/schedule/partition: must have either \"file\" or \"inline\""},
    {"plan with a gap", "/schedule", PLAN("[" STAGE(0, 0, "[0]") "," STAGE(2, 3, "[1]") "]"),
     "/schedule/partition/inline/stages/1: first_layer must be 1, where the stage before ends (got "
     "2)"},
    {"plan too short", "/schedule", PLAN("[" STAGE(0, 2, "[0]") "]"),
     "/schedule/partition/inline/stages: the stages hold layers 0 to 2, the model \"uniform\" has "
     "4"},
    {"plan too long", "/schedule", PLAN("[" STAGE(0, 4, "[0]") "]"),
     "/schedule/partition/inline/stages/0: last_layer must be from 0 to 3, the model's last (got "
     "4)"},
    {"plan without a device", "/schedule", PLAN("[" STAGE(0, 3, "[]") "]"),
     "/schedule/partition/inline/stages/0/devices: must have at least 1 entry (got 0)"},
    {"plan of replicas", "/schedule",
     PLAN("[" STAGE(0, 0, "[0]") "," STAGE(1, 1, "[1, 2]") "," STAGE(2, 2, "[2]") "," STAGE(
         3, 3, "[3]") "]"),
     "/schedule/partition: must give each of the platform's 4 devices one stage for the schedule "
     "\"gpipe\" (got 4 stages on 4 devices; with several on a device, only \"periodic\" runs "
     "them)"},
    {"plan of replicas that has none", "/schedule",
     PLAN("[" STAGE(0, 0, "[0]") "," STAGE(1, 1, "[1, 2]") "," STAGE(2, 3, "[3]") "]"),
     "/schedule/partition: must put stage 1 on one device for the schedule \"gpipe\", which has no "
     "replicas (got 2)"},
    {"plan with a device twice", "/schedule",
     PLAN("[" STAGE(0, 0, "[0]") "," STAGE(1, 1, "[1]") "," STAGE(2, 2, "[1]") "," STAGE(
         3, 3, "[3]") "]"),
     "/schedule/partition: must name each device once (stage 2 has device 1, which was named "
     "before)"},
    {"plan with a device too many", "/schedule",
     PLAN("[" STAGE(0, 0, "[0]") "," STAGE(1, 1, "[1]") "," STAGE(2, 2, "[2]") "," STAGE(
         3, 3, "[4]") "]"),
     "/schedule/partition: must put stage 3 on devices below 4 (got 4)"},
};

static void refuses_with_a_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(refused); i++) {
        cs_scenario scenario;
        cs_error error;
        char message[1024];
        cs_override set = {refused[i].pointer, refused[i].value};
        cs_status status = read_text(SMALL, &set, 1, &scenario, &error);
        snprintf(message, sizeof(message), "s.json: %s", refused[i].message);
        expect_error(refused[i].name, CS_INVALID, message, status, &error);
    }
}

static const struct {
    const char *name, *text, *message;
} broken[] = {
    {"an array", "[]", "s.json: must be an object (got an array)"},
    {"a number", "1", "s.json: must be an object (got 1)"},
    {"nothing at all", "{}",
     "s.json: missing key \"schema_version\": must be 1\n"
     "s.json: missing key \"model\": must be an object with one of \"file\", \"inline\", "
     "\"name\" and \"uniform\"\n"
     "s.json: missing key \"platform\": must be an object with \"topology\", or the "
     "name of a topology\n"
     "s.json: missing key \"schedule\": must be an object with \"kind\""},
    {"several errors in one go",
     "{\"schema_version\": 3, \"model\": {\"uniform\": {\"layers\": -1}}, \"platform\": {}, "
     "\"schedule\": {\"kind\": \"dp\", \"bucket\": -1}, \"sed\": 1}",
     "s.json: unknown key \"sed\"; did you mean \"seed\"? known: schema_version, name, model, "
     "platform, schedule, parallel, runtime, collectives, memory, offload, costs, iterations, "
     "dataset, seed, sweep, advise\n"
     "s.json: /schema_version: must be 1 (got 3)\n"
     "s.json: /model/uniform/layers: must be from 0 to 1048576 (got -1)\n"
     "s.json: /model/uniform: missing key \"forward\": must be time: a number of seconds or a text "
     "such as \"5 us\"\n"
     "s.json: /model/uniform: missing key \"backward\": must be time: a number of seconds or a "
     "text "
     "such as \"5 us\"\n"
     "s.json: /platform: missing key \"topology\": must be one of " TOPOLOGIES "\n"
     "s.json: /schedule/bucket: must be >= 0 (got -1)"},
    {"duplicate key", "{\"schema_version\": 1,\n \"schema_version\": 1}",
     "s.json:2:2: duplicate key \"schema_version\" (first at 1:2)"},
    {"NaN", "{\"seed\": NaN}",
     "s.json:1:10: unexpected \"NaN\"; expected a value: object, array, string, number, true, "
     "false "
     "or null"},
    {"1e999", "{\"seed\": 1e999}",
     "s.json:1:10: number too large; must be at most 1.7976931348623157e308"},
    {"not UTF-8", "{\"name\": \"\xe9\"}", "s.json:1:11: byte 0xe9 is not UTF-8"},
    {"trailing text", SMALL " x", NULL},
};

static void refuses_broken_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(broken); i++) {
        cs_scenario scenario;
        cs_error error;
        cs_status status = read_text(broken[i].text, NULL, 0, &scenario, &error);
        if (broken[i].message)
            expect_error(broken[i].name, CS_INVALID, broken[i].message, status, &error);
        else
            expect_int(broken[i].name, CS_INVALID, status);
    }
}

static void refuses_what_is_cut_off(void **state)
{
    (void)state;
    char *text = strdup(SMALL);
    for (size_t length = strlen(text); length-- > 0;) {
        cs_scenario scenario;
        cs_error error;
        text[length] = '\0';
        expect_int(text, CS_INVALID, read_text(text, NULL, 0, &scenario, &error));
        assert_non_null(strstr(error.text, "s.json:1:"));
    }
    free(text);
}

static void refuses_ten_megabytes_of_brackets(void **state)
{
    (void)state;
    const size_t size = 10 << 20;
    char *text = malloc(size + 1);
    cs_scenario scenario;
    cs_error error;
    assert_non_null(text);
    memset(text, '[', size);
    text[size] = '\0';
    cs_status status = read_text(text, NULL, 0, &scenario, &error);
    expect_error("brackets", CS_INVALID, "s.json:1:65: nested deeper than 64 levels", status,
                 &error);
    free(text);
}

/* Sizes that fit one by one, but not together; in a release, the sums would wrap. */
static void refuses_sums_beyond_64_bits(void **state)
{
    static const cs_override rows[][2] = {
        {{"/model/uniform/weights", "9e18"}, {"/model/optimizer", "sgd"}},
        {{"/model/uniform/weights", "2e18"}, {"/model/optimizer", "adam"}},
        {{"/model/uniform/activation", "9e17"}, {"/schedule/micro_batches", "16"}},
        {{"/model/uniform/forward", "9e6"}, {"/model/uniform/backward", "9e6"}},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_scenario scenario;
        cs_error error;
        expect_int(rows[i][0].pointer, CS_OVERFLOW,
                   read_text(SMALL, rows[i], 2, &scenario, &error));
        assert_non_null(strstr(error.text, "64 bits"));
    }
}

/* Scenarios that need the memory of a data centre, or hours, are refused at once. */
static void refuses_what_is_too_large(void **state)
{
    static const cs_override rows[][2] = {
        {{"/model/uniform/layers", "1048576"}, {"/schedule/micro_batches", "1000"}},
        {{"/schedule/micro_batches", "1048576"}, {"/iterations", "1048576"}},
        {{"/model/uniform/layers", "1048576"},
         {"/platform", "{\"topology\": \"ideal\", \"devices\": 1000}"}},
        {{"/schedule", "{\"kind\": \"dp\", \"bucket\": 1}"},
         {"/platform", "{\"topology\": \"ideal\", \"devices\": 1048576, \"memory\": 5}"}},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_scenario scenario;
        cs_error error;
        cs_override sets[3] = {rows[i][0], rows[i][1], {"/iterations", "1000"}};
        expect_int(rows[i][0].pointer, CS_INVALID,
                   read_text(SMALL, sets, i == 3 ? 3 : 2, &scenario, &error));
        if (!strstr(error.text, "too l") && !strstr(error.text, "too much memory"))
            fail_msg("%s: %s", rows[i][0].pointer, error.text);
    }
}

/* ---- every type at every key ---- */

static const char *const documents[] = {
    SMALL,
    SCENARIO(
        UNIFORM,
        RING(", \"latency\": \"1 us\", \"sharing\": \"phi\", \"phi\": 2, \"memory\": "
             "[1, \"2 GB\", \"unlimited\", 4e9], \"speed\": [1, 2, 3, 4]"),
        "{\"kind\": \"1f1b\", \"micro_batches\": 4, \"recompute\": true, \"partition\": [1, 2, "
        "3]}"),
    SCENARIO(MODEL("[{\"name\": \"a\", \"forward\": \"1 us\", \"backward\": \"2 us\", \"weights\": "
                   "\"4 kB\", \"output\": 10}, {\"name\": \"b\", \"forward\": 1e-6, "
                   "\"backward_input\": 1e-6, \"backward_weight\": 1e-6, \"weights\": 5, "
                   "\"output\": 10, \"kept\": 3}]"),
             "{\"topology\": \"pcie\", \"devices\": 3, \"bandwidth\": \"10 Gbit/s\", "
             "\"sharing\": \"max_min\"}",
             "{\"kind\": \"dp\", \"bucket\": \"4 kB\"}"),
    SCENARIO(UNIFORM,
             "{\"topology\": \"nvlink_switch\", \"devices\": 4, \"bandwidth\": 1e9, \"blocking\": "
             "true, \"memory\": \"5 GB\", \"sharing\": \"phi\", \"phi\": \"count\"}",
             PLAN("[" STAGE(0, 0, "[3]") "," STAGE(1, 1, "[1]") "," STAGE(2, 2, "[2]") "," STAGE(
                 3, 3, "[0]") "]")),
    SCENARIO(UNIFORM, "\"ideal\"", "{\"kind\": \"sequential\", \"micro_batches\": 3}"),
};

static void takes_documents(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(documents); i++) {
        cs_scenario scenario;
        cs_error error;
        cs_status status = read_text(documents[i], NULL, 0, &scenario, &error);
        expect_error(documents[i], CS_OK, "", status, &error);
        cs_scenario_finish(&scenario);
    }
}

/* Calls `visit` with the pointer of every value below the root. */
static void walk(const cJSON *value, const char *pointer, const char *text,
                 void (*visit)(const char *text, const char *pointer, const cJSON *value))
{
    int index = 0;
    for (const cJSON *child = value->child; child; child = child->next, index++) {
        char inner[512], digits[16];
        snprintf(digits, sizeof(digits), "%d", index);
        snprintf(inner, sizeof(inner), "%s/%s", pointer, child->string ? child->string : digits);
        visit(text, inner, child);
        walk(child, inner, text, visit);
    }
}

/* The resolved scenario has every key of its sections. */
static void walk_documents(void (*visit)(const char *text, const char *pointer, const cJSON *value))
{
    for (size_t i = 0; i < ROWS(documents); i++) {
        cs_scenario scenario;
        cs_error error;
        cJSON *root;
        assert_int_equal(CS_OK, read_text(documents[i], NULL, 0, &scenario, &error));
        const char *text = scenario.resolved;
        assert_int_equal(CS_OK, cs_json_parse("s.json", text, strlen(text), &root, &error));
        walk(root, "", text, visit);
        cJSON_Delete(root);
        cs_scenario_finish(&scenario);
    }
}

static void try_types(const char *text, const char *pointer, const cJSON *value)
{
    static const char *const values[] = {"null",   "true",     "1.5",   "-1",           "-0.0",
                                         "1e300",  "\"\"",     "\"x\"", "\"1 parsec\"", "[]",
                                         "[null]", "[[1], 2]", "{}",    "{\"a\": 1}"};
    (void)value;
    for (size_t i = 0; i < ROWS(values); i++) {
        cs_scenario scenario;
        cs_error error;
        cs_override set = {pointer, values[i]};
        char row[600];
        snprintf(row, sizeof(row), "%s = %s", pointer, values[i]);
        cs_status status = read_text(text, &set, 1, &scenario, &error);
        if (status == CS_OK)
            cs_scenario_finish(&scenario);
        else if (status == CS_INVALID && strncmp(error.text, "s.json: ", 8) != 0)
            fail_msg("%s: no place: %s", row, error.text);
        else
            expect_int(row, CS_INVALID, status);
        if (strcmp(values[i], "null") == 0)
            expect_int(row, CS_INVALID, status);
        if (status == CS_INVALID && strcmp(values[i], "null") == 0 && !strstr(error.text, pointer))
            fail_msg("%s: elsewhere: %s", row, error.text);
    }
}

static void survives_every_type_at_every_key(void **state)
{
    (void)state;
    walk_documents(try_types);
}

/* An unknown key in every object; it is named with the object's pointer. */
static void try_unknown_key(const char *text, const char *pointer, const cJSON *value)
{
    cs_scenario scenario;
    cs_error error;
    char inner[600], expected[700];
    if (!cJSON_IsObject(value))
        return;
    snprintf(inner, sizeof(inner), "%s/knid", pointer);
    snprintf(expected, sizeof(expected), "s.json: %s: unknown key \"knid\"; ", pointer);
    cs_override set = {inner, "1"};
    expect_int(inner, CS_INVALID, read_text(text, &set, 1, &scenario, &error));
    if (!strstr(error.text, expected))
        fail_msg("%s: expected \"%s...\", got %s", inner, expected, error.text);
}

static void refuses_unknown_keys_everywhere(void **state)
{
    (void)state;
    walk_documents(try_unknown_key);
}

/* Takes the value out: either it has a default, or the message says what is missing. */
static void try_without(const char *text, const char *pointer, const cJSON *value)
{
    cs_scenario scenario;
    cs_error error;
    cJSON *root, *parent;
    char token[64], *rest;
    if (!value->string)
        return;
    assert_int_equal(CS_OK, cs_json_parse("s.json", text, strlen(text), &root, NULL));
    parent = root;
    for (const char *at = pointer + 1;; at = rest + 1) {
        rest = strchr(at, '/');
        snprintf(token, sizeof(token), "%.*s", (int)(rest ? rest - at : (long)strlen(at)), at);
        if (!rest)
            break;
        parent = cJSON_IsArray(parent) ? cJSON_GetArrayItem(parent, atoi(token))
                                       : cJSON_GetObjectItemCaseSensitive(parent, token);
    }
    cJSON_DeleteItemFromObjectCaseSensitive(parent, token);
    cs_error_init(&error);
    cs_status status = cs_scenario_read(root, "s.json", &scenario, &error);
    if (status == CS_OK)
        cs_scenario_finish(&scenario);
    else
        expect_int(pointer, CS_INVALID, status);
    cJSON_Delete(root);
}

static void survives_every_missing_key(void **state)
{
    (void)state;
    walk_documents(try_without);
}

/* ---- resolving ---- */

static uint64_t hash_of(const cs_scenario *scenario)
{
    cs_simulation simulation = {0};
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_simulate(scenario, &(cs_simulation_options){0}, &simulation, &error);
    expect_error("simulate", CS_OK, "", status, &error);
    uint64_t hash = simulation.hash;
    cs_simulation_finish(&simulation);
    return hash;
}

/* The resolved text is self-contained: read from another folder it resolves to itself, and gives
 * the same results. */
static void expect_resolved(const char *row, const cs_scenario *scenario)
{
    cs_scenario again;
    cs_error error;
    cs_status status = read_text(scenario->resolved, NULL, 0, &again, &error);
    expect_error(row, CS_OK, "", status, &error);
    expect_text(row, scenario->resolved, again.resolved);
    expect_bits(row, hash_of(scenario), hash_of(&again));
    cs_scenario_finish(&again);
}

static void resolves_to_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(documents); i++) {
        cs_scenario scenario;
        cs_error error;
        assert_int_equal(CS_OK, read_text(documents[i], NULL, 0, &scenario, &error));
        if (!strstr(scenario.resolved, "\"name\": \"s\""))
            fail_msg("no name in %s", scenario.resolved);
        expect_resolved(documents[i], &scenario);
        cs_scenario_finish(&scenario);
    }
}

/* The resolved text contains every default. */
static void resolves_defaults(void **state)
{
    static const char expected[] =
        "{\n  \"schema_version\": 1,\n  \"name\": \"s\",\n  \"iterations\": 1,\n"
        "  \"dataset\": 0,\n  \"seed\": 1,\n"
        "  \"model\": {\n    \"batch_size\": 2,\n    \"optimizer\": \"sgd\",\n    \"muon_tensor\": "
        "\"blockwise\",\n    \"gradients\": \"weights\",\n    \"main_weights\": \"fp32\",\n    "
        "\"states\": \"fp32\",\n"
        "    \"uniform\": {\n"
        "      \"layers\": 4,\n      \"forward\": 1,\n      \"backward\": 2,\n      \"update\": "
        "0,\n"
        "      \"weights\": 1000000000,\n      \"activation\": 1000000000,\n      \"workspace\": "
        "0\n"
        "    }\n  },\n  \"platform\": {\n    \"topology\": \"ideal\",\n    \"devices\": 4,\n"
        "    \"memory\": \"unlimited\",\n    \"reserve\": 0,\n    \"speed\": 1,\n    \"sharing\": "
        "\"fifo\",\n"
        "    \"messages\": \"in_order\",\n    \"blocking\": false\n  },\n  \"schedule\": {\n    "
        "\"kind\": \"gpipe\",\n"
        "    \"partition\": \"balanced\",\n    \"partition_communication\": false,\n"
        "    \"micro_batches\": 2,\n    \"backward_order\": \"reversed\",\n"
        "    \"recompute\": false\n  },\n"
        "  \"collectives\": {\n    \"algorithm\": \"usual\",\n    \"gradients\": \"algorithm\",\n  "
        "  \"chunks\": 0,\n"
        "    \"fidelity\": \"auto\",\n    \"order\": \"auto\",\n    \"sharing\": \"platform\",\n   "
        " "
        "\"reached\": 1,\n    "
        "\"tensor_overlap\": 0,\n    \"expert_overlap\": 0,\n    "
        "\"start\": 0,\n    \"nccl\": \"none\",\n    \"nccl_algorithm\": \"auto\",\n    "
        "\"network_latency\": 0,\n    "
        "\"most_flows\": 4000000\n"
        "  }\n}\n";
    cs_scenario scenario;
    cs_error error;
    (void)state;
    assert_int_equal(CS_OK, read_text(SMALL, NULL, 0, &scenario, &error));
    expect_text("resolved", expected, scenario.resolved);
    cs_scenario_finish(&scenario);
}

/* From 2^51 ps on, not every picosecond is a double of its own in seconds. */
static void resolves_long_times(void **state)
{
    (void)state;
    for (int i = 0; i < 400; i++) {
        cs_scenario scenario;
        cs_error error;
        char seconds[40];
        snprintf(seconds, sizeof(seconds), "%.17g", 2000.0 + 17.1234567890123 * i);
        cs_override set = {"/model/uniform/forward", seconds};
        assert_int_equal(CS_OK, read_text(SMALL, &set, 1, &scenario, &error));
        expect_resolved(seconds, &scenario);
        cs_scenario_finish(&scenario);
    }
}

/* ---- files ---- */

static char folder[] = "/tmp/test-scenario-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static const char *put(const char *name, const char *text)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(0, fclose(out));
    return path;
}

#define LAYER(name, output)                                                                        \
    "{\"name\": \"" name "\", \"forward\": \"1 ms\", \"backward\": \"2 ms\", \"weights\": "        \
    "\"4 MB\", \"output\": \"" output "\"}"
#define MODEL_FILE                                                                                 \
    "{\"schema_version\": 1, \"name\": \"m\", \"batch_size\": 2, \"input\": \"1 MB\", "            \
    "\"provenance\": {\"source\": \"s\", \"hardware\": \"none\", \"date\": \"2026-11-21\"}, "      \
    "\"layers\": [" LAYER("a", "2 MB") ", " LAYER("b", "1 MB") ", " LAYER("c", "3 MB") "]}"

/* Files that the scenario names, their contents, and the message; %s is the folder. */
static const struct {
    const char *name, *model, *plan, *message;
} files[] = {
    {"no model", NULL, NULL, "%s/m.json: cannot read: No such file or directory"},
    {"model cut off", "{", NULL,
     "%s/m.json:1:2: unexpected end of file; expected a key in double quotes"},
    {"model wrong", "[]", NULL, "%s/m.json: must be an object (got an array)"},
    {"no plan", MODEL_FILE, NULL, "%s/p.json: cannot read: No such file or directory"},
    {"plan cut off", MODEL_FILE, "{\"stages\": [",
     "%s/p.json:1:13: unexpected end of file; expected a value: object, array, string, number, "
     "true, "
     "false or null"},
    {"plan wrong", MODEL_FILE, "{\"schema_version\": 1, \"stages\": 1}",
     "%s/p.json: /stages: must be a list, such as [{stage}, ...] (got 1)"},
    {"plan of one stage", MODEL_FILE,
     "{\"schema_version\": 1, \"stages\": [" STAGE(0, 2, "[0]") "]}",
     "%s/s.json: /schedule/partition: must give each of the platform's 2 devices one stage for the "
     "schedule \"gpipe\" (got 1 stages on 1 devices)"},
};

static const char *write_scenario(void)
{
    return put("s.json",
               SCENARIO("{\"file\": \"m.json\", \"batch_size\": 8}",
                        "{\"topology\": \"ring\", \"devices\": 2, \"bandwidth\": \"1 GB/s\"}",
                        "{\"kind\": \"gpipe\", \"micro_batches\": 2, \"partition\": {\"file\": "
                        "\"p.json\"}}"));
}

static void names_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(files); i++) {
        cs_scenario scenario;
        cs_error error;
        char message[512], path[128];
        cs_error_init(&error);
        if (files[i].model)
            put("m.json", files[i].model);
        if (files[i].plan)
            put("p.json", files[i].plan);
        cs_status status = cs_scenario_load(write_scenario(), NULL, 0, &scenario, &error);
        snprintf(path, sizeof(path), "%s", folder);
        snprintf(message, sizeof(message), "%s%s%s%s", path,
                 files[i].message[3] == 'm'   ? "/s.json: /model/file: "
                 : files[i].message[3] == 'p' ? "/s.json: /schedule/partition/file: "
                                              : "",
                 files[i].message[3] == 's' ? "" : path, files[i].message + 2);
        expect_error(files[i].name, CS_INVALID, message, status, &error);
    }
}

/* Times and activations are scaled from the model's 2 samples to 4 per micro-batch, once. */
static void resolves_files(void **state)
{
    cs_scenario scenario;
    cs_error error;
    (void)state;
    cs_error_init(&error);
    put("m.json", MODEL_FILE);
    put("p.json",
        "{\"schema_version\": 1, \"stages\": [" STAGE(0, 0, "[1]") ", " STAGE(1, 2, "[0]") "]}");
    cs_status status = cs_scenario_load(write_scenario(), NULL, 0, &scenario, &error);
    expect_error("load", CS_OK, "", status, &error);
    expect_int("forward", 2000000000, scenario.job.stages[0].forward);
    expect_int("device", 1, scenario.plan->devices[0]);
    assert_null(strstr(scenario.resolved, "file"));
    assert_null(strstr(scenario.resolved, folder));
    expect_resolved("files", &scenario);
    cs_scenario_finish(&scenario);
}

/* ---- moving ---- */

static const char *const moved[] = {
    SMALL,
    SCENARIO(UNIFORM, "{\"topology\": \"ring\", \"devices\": 2, \"bandwidth\": \"1 GB/s\"}",
             PLAN("[" STAGE(0, 0, "[1]") ", " STAGE(1, 3, "[0]") "]")),
    SCENARIO(UNIFORM, "{\"topology\": \"ideal\", \"devices\": 2, \"memory\": \"40 GB\"}",
             "{\"kind\": \"periodic\", \"micro_batches\": 8, \"partition\": {\"planner\": "
             "\"madpipe\"}}"),
    SCENARIO("{\"name\": \"resnet18\", \"device\": \"a100-40gb\", \"batch_size\": 16}",
             "{\"topology\": \"dgx-a100\", \"devices\": 4, \"jitter\": {\"distribution\": "
             "\"constant\", \"mean\": 0.1}}",
             "{\"kind\": \"1f1b\", \"micro_batches\": 4}, \"parallel\": {\"pipeline\": 2, "
             "\"data\": 2, \"zero\": 1}"),
};

static void read_moved(const char *text, cs_scenario *scenario)
{
    cs_error error;
    cs_status status = read_text(text, NULL, 0, scenario, &error);
    expect_error(text, CS_OK, "", status, &error);
}

/* Nothing in a scenario points into it: no word of it is an address between its first and its last
 * byte, and when another place takes it over, the first one being overwritten, it runs as if it had
 * stayed. */
static void can_be_moved(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(moved); i++) {
        cs_scenario stays, goes;
        cs_scenario *from = malloc(sizeof(*from));
        assert_non_null(from);
        read_moved(moved[i], &stays);
        read_moved(moved[i], from);
        for (size_t at = 0; at + sizeof(uintptr_t) <= sizeof(*from); at += sizeof(uintptr_t)) {
            uintptr_t word;
            memcpy(&word, (const char *)from + at, sizeof(word));
            if (word >= (uintptr_t)from && word < (uintptr_t)(from + 1))
                fail_msg("row %zu: byte %zu of the scenario points into it", i, at);
        }
        goes = *from;
        memset(from, 0x5a, sizeof(*from));
        free(from);
        expect_bits(stays.name, hash_of(&stays), hash_of(&goes));
        cs_scenario_finish(&stays);
        cs_scenario_finish(&goes);
    }
}

/* ---- changes from the command line ---- */

static const struct {
    const char *name, *pointer, *value;
    cs_status status;
    const char *message;
} sets[] = {
    {"number", "/schedule/micro_batches", "4", CS_OK, ""},
    {"new key", "/platform/devices", "4", CS_INVALID,
     "--set: /platform/devices: /platform is a string, which has no keys"},
    {"missing parent", "/collectives/algorithm", "ring", CS_OK, ""},
    {"text without quotes", "/platform", "ideal", CS_OK, ""},
    {"text that is a number", "/name", "7", CS_INVALID, "s.json: /name: must be text (got 7)"},
    {"text that is quoted", "/name", "\"7\"", CS_OK, ""},
    {"unknown parent", "/schedul/kind", "dp", CS_INVALID,
     "s.json: unknown key \"schedul\"; did you mean \"schedule\"? known: schema_version, name, "
     "model, "
     "platform, schedule, parallel, runtime, collectives, memory, offload, costs, iterations, "
     "dataset, seed, sweep, advise"},
    {"no pointer", "schedule", "1", CS_INVALID,
     "--set: schedule: must begin with \"/\" as in /schedule/kind"},
    {"the whole", "", "1", CS_INVALID,
     "--set: the whole document cannot be replaced; name a key as in /schedule/kind"},
    {"unknown key", "/schedule/microbatches", "4", CS_INVALID,
     "s.json: /schedule: unknown key \"microbatches\"; did you mean \"micro_batches\"? known: "
     "kind, "
     "partition, partition_communication, micro_batches, backward_order, recompute"},
    {"too large a number stays text", "/iterations", "1e999", CS_INVALID,
     "s.json: /iterations: must be a whole number from 1 to 1048576 (got \"1e999\")"},
};

static void sets_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(sets); i++) {
        cs_scenario scenario;
        cs_error error;
        cs_override set = {sets[i].pointer, sets[i].value};
        cs_status status = read_text(SMALL, &set, 1, &scenario, &error);
        if (status == CS_OK)
            cs_scenario_finish(&scenario);
        expect_error(sets[i].name, sets[i].status, sets[i].message, status, &error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_documents),
        cmocka_unit_test(refuses_with_a_place),
        cmocka_unit_test(refuses_broken_texts),
        cmocka_unit_test(refuses_what_is_cut_off),
        cmocka_unit_test(refuses_ten_megabytes_of_brackets),
        cmocka_unit_test(refuses_sums_beyond_64_bits),
        cmocka_unit_test(refuses_what_is_too_large),
        cmocka_unit_test(survives_every_type_at_every_key),
        cmocka_unit_test(refuses_unknown_keys_everywhere),
        cmocka_unit_test(survives_every_missing_key),
        cmocka_unit_test(resolves_to_itself),
        cmocka_unit_test(resolves_defaults),
        cmocka_unit_test(resolves_long_times),
        cmocka_unit_test(names_files),
        cmocka_unit_test(resolves_files),
        cmocka_unit_test(can_be_moved),
        cmocka_unit_test(sets_values),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

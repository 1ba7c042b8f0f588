/* Plans: the balanced cut against all possible ones, and what is read and written. */
#include "schedules/plan/plan.h"
#include "sim/base/random.h"
#include "tests/expect.h"

#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_LAYERS = 9, MOST_STAGES = 9, TEXT_BYTES = 1024 };

static cs_model make_model(uint32_t n_layers)
{
    static const cs_layer any = {0};
    cs_model model;
    assert_int_equal(cs_model_uniform(n_layers, &any, &model, NULL), CS_OK);
    return model;
}

static char *cuts_text(const uint32_t *cuts, uint32_t n_stages, char *text)
{
    size_t used = 0;
    for (uint32_t s = 0; s <= n_stages; s++)
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, " %" PRIu32, cuts[s]);
    return text;
}

/* A pipeline: the stages in order, one device each. */
static void expect_cuts(const char *row, const uint32_t *cuts, uint32_t n_stages,
                        const cs_plan *plan)
{
    char expected[TEXT_BYTES], got[TEXT_BYTES];
    uint32_t got_cuts[MOST_STAGES + 1] = {0};
    expect_int(row, n_stages, plan->n_stages);
    expect_int(row, n_stages, plan->n_devices);
    for (uint32_t s = 0; s < n_stages; s++) {
        const cs_stage *stage = &plan->stages[s];
        expect_int(row, s, stage->first_device);
        expect_int(row, 1, stage->n_devices);
        expect_int(row, s, plan->devices[s]);
        if (s > 0)
            expect_int(row, got_cuts[s], stage->first_layer);
        got_cuts[s] = stage->first_layer;
        got_cuts[s + 1] = stage->end_layer;
    }
    expect_text(row, cuts_text(cuts, n_stages, expected), cuts_text(got_cuts, n_stages, got));
}

/* ---- balanced: all partitions ---- */

/* The same job in whole picoseconds: times are multiples of 12 and speeds divide them, a byte takes
 * 1000 ps. */
typedef struct chain {
    uint32_t n_layers, n_stages;
    cs_time times[MOST_LAYERS]; /* forward + backward, at speed 1 */
    int64_t outputs[MOST_LAYERS];
    double speeds[MOST_STAGES];
    bool communication;
    cs_time latency;
} chain;

static cs_time slowest(const chain *c, const uint32_t *cuts, uint32_t n_stages)
{
    cs_time most = 0;
    for (uint32_t s = 0; s < n_stages; s++) {
        cs_time load = 0;
        for (uint32_t l = cuts[s]; l < cuts[s + 1]; l++)
            load += c->times[l];
        load = (cs_time)((double)load / c->speeds[s]);
        most = load > most ? load : most;
        if (c->communication && s > 0) {
            cs_time message = 2 * (c->latency + 1000 * c->outputs[cuts[s] - 1]);
            most = message > most ? message : most;
        }
    }
    return most;
}

/* The next list of rising cuts between 0 and `end`, or false. */
static bool next_cuts(uint32_t *cuts, uint32_t n_stages, uint32_t end)
{
    for (uint32_t s = n_stages - 1; s > 0; s--) {
        if (cuts[s] < end - (n_stages - s)) {
            cuts[s]++;
            for (uint32_t later = s + 1; later < n_stages; later++)
                cuts[later] = cuts[later - 1] + 1;
            return true;
        }
    }
    return false;
}

/* All partitions of the first `end` layers into n_stages; of the best ones, where the last stage
 * starts first. Then the same for the layers before it. */
static void slow_balance(const chain *c, uint32_t n_stages, uint32_t end, uint32_t *best)
{
    best[n_stages] = end;
    if (n_stages == 1) {
        best[0] = 0;
        return;
    }
    uint32_t cuts[MOST_STAGES + 1], last = end;
    cs_time least = CS_TIME_MAX;
    for (uint32_t s = 0; s < n_stages; s++)
        cuts[s] = s;
    cuts[n_stages] = end;
    do {
        cs_time value = slowest(c, cuts, n_stages);
        if (value < least || (value == least && cuts[n_stages - 1] < last)) {
            least = value;
            last = cuts[n_stages - 1];
        }
    } while (next_cuts(cuts, n_stages, end));
    slow_balance(c, n_stages - 1, last, best);
}

static void describe_chain(const chain *c, char *text)
{
    size_t used = (size_t)snprintf(text, TEXT_BYTES,
                                   "%" PRIu32 " stages, latency %" PRId64 "%s:", c->n_stages,
                                   c->latency, c->communication ? ", with communication" : "");
    for (uint32_t l = 0; l < c->n_layers; l++)
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, " %" PRId64 "/%" PRId64,
                                 c->times[l], c->outputs[l]);
    for (uint32_t s = 0; s < c->n_stages; s++)
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, " x%g", c->speeds[s]);
}

static void check_chain(const chain *c)
{
    char row[TEXT_BYTES];
    uint32_t cuts[MOST_STAGES + 1];
    describe_chain(c, row);
    slow_balance(c, c->n_stages, c->n_layers, cuts);
    cs_model model = make_model(c->n_layers);
    for (uint32_t l = 0; l < c->n_layers; l++) { /* parts of the whole, in any proportion */
        cs_time time = c->times[l];
        model.layers[l].forward = time / 3;
        model.layers[l].backward_input = time / 4;
        model.layers[l].backward_weight = time - time / 3 - time / 4;
        model.layers[l].output_bytes = c->outputs[l];
        model.layers[l].update = 1000000; /* does not count */
    }
    cs_balance balance = {.model = &model,
                          .n_stages = c->n_stages,
                          .speeds = c->speeds,
                          .communication = c->communication,
                          .bandwidth = 1e9,
                          .latency = c->latency};
    cs_plan plan;
    cs_error error;
    cs_error_init(&error);
    expect_error(row, CS_OK, "", cs_plan_balanced(&balance, &plan, &error), &error);
    expect_cuts(row, cuts, c->n_stages, &plan);
    cs_plan_finish(&plan);
    cs_model_finish(&model);
}

static uint32_t below(gsl_rng *random, uint32_t n)
{
    return (uint32_t)gsl_rng_uniform_int(random, n);
}

/* Few different times, so that many partitions are equally good; some layers take none. */
static void draw_chain(gsl_rng *random, chain *c)
{
    static const double speeds[] = {1, 1, 1, 2, 3, 4, 0.5};
    bool equal = below(random, 2) == 0;
    uint32_t values = below(random, 2) == 0 ? 4 : 1000;
    *c = (chain){.n_layers = 1 + below(random, MOST_LAYERS),
                 .communication = below(random, 2) == 0,
                 .latency = (cs_time)below(random, 3) * 6000};
    uint32_t most = c->n_layers < 5 ? c->n_layers : 5;
    c->n_stages = below(random, 8) == 0 ? c->n_layers : 1 + below(random, most);
    for (uint32_t l = 0; l < c->n_layers; l++) {
        c->times[l] = (cs_time)below(random, values) * 12000;
        c->outputs[l] = below(random, values) * (below(random, 2) == 0 ? 6 : 1);
    }
    for (uint32_t s = 0; s < c->n_stages; s++)
        c->speeds[s] = equal ? 1 : speeds[below(random, ROWS(speeds))];
}

static void test_balanced_against_all_partitions(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(1, "chains");
    assert_non_null(random);
    for (int i = 0; i < 5000; i++) {
        chain c;
        draw_chain(random, &c);
        check_chain(&c);
    }
    gsl_rng_free(random);
}

/* By hand. Times in units of 12 ns.
 *   ties               {1 1}{1 1}: no other cut into two has 2
 *   the last first     10 is least whatever the cut of the rest; the last stage cannot start before
 *                      the 10 (3 + 10 is more); {1 1}{3} is better balanced than {1}{1 3}
 *   zeros go last      the cut after layer 1 and all later ones up to the last have 5 and 5: the
 *                      last stage starts first with {5}{0 0 5}
 *   all zero           every cut has 0: the last stage starts at 2, the second at 1
 *   a stage per layer  one way only
 *   slow device        {1}{1 1 1}: the first at speed 1/2 takes 2, the second 3; {1 1} would take 4
 *   fast device        at speed 3 the last takes 1 1 1 in 1, and 1 1 1 1 in 4/3: {1}{1 1 1 1} gives
 *                      4/3, {1 1}{1 1 1} gives 2
 *   a large message    the boundary behind layer 0 takes 2 * 100 * 1 ns, more than 12 * 15 = 180:
 *                      rather {2 2 8}{3} with 144
 *   the same, unseen   {2 2}{8 3}: 11 against 12
 *   a message as long  2 * 498 * 1 ns are as long as 83 * 12 ns: {10}{73 10} and {10 73}{10} are
 *                      equally good, and the last stage starts first in the former. (498 / 1e9 *
 *                      1e12 is a little more than 498000 in doubles.)
 */
static void test_balanced_by_hand(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        chain chain;
        uint32_t cuts[MOST_STAGES + 1];
    } rows[] = {
        {"one stage", {3, 1, {1, 2, 3}, {0}, {1}, false, 0}, {0, 3}},
        {"ties", {4, 2, {1, 1, 1, 1}, {0}, {1, 1}, false, 0}, {0, 2, 4}},
        {"the last first", {4, 3, {1, 1, 3, 10}, {0}, {1, 1, 1}, false, 0}, {0, 2, 3, 4}},
        {"zeros go last", {4, 2, {5, 0, 0, 5}, {0}, {1, 1}, false, 0}, {0, 1, 4}},
        {"all zero", {4, 3, {0, 0, 0, 0}, {0}, {1, 1, 1}, false, 0}, {0, 1, 2, 4}},
        {"a stage per layer", {3, 3, {9, 0, 1}, {0}, {1, 1, 1}, false, 0}, {0, 1, 2, 3}},
        {"slow device", {4, 2, {1, 1, 1, 1}, {0}, {0.5, 1}, false, 0}, {0, 1, 4}},
        {"fast device", {5, 2, {1, 1, 1, 1, 1}, {0}, {1, 3}, false, 0}, {0, 1, 5}},
        {"a large message", {4, 2, {2, 2, 8, 3}, {100, 100, 1, 0}, {1, 1}, true, 0}, {0, 3, 4}},
        {"a message as long", {3, 2, {10, 73, 10}, {498, 1, 0}, {1, 1}, true, 0}, {0, 1, 3}},
        {"the same, unseen", {4, 2, {2, 2, 8, 3}, {100, 100, 1, 0}, {1, 1}, false, 0}, {0, 2, 4}},
    };
    for (size_t r = 0; r < ROWS(rows); r++) {
        chain c = rows[r].chain;
        for (uint32_t l = 0; l < c.n_layers; l++)
            c.times[l] *= 12000;
        uint32_t slow[MOST_STAGES + 1];
        char expected[TEXT_BYTES], got[TEXT_BYTES];
        slow_balance(&c, c.n_stages, c.n_layers, slow); /* the slow one is tested as well */
        expect_text(rows[r].name, cuts_text(rows[r].cuts, c.n_stages, expected),
                    cuts_text(slow, c.n_stages, got));
        check_chain(&c);
    }
}

static void test_balanced_errors(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t n_layers, n_stages;
        const char *message;
    } rows[] = {
        {"more stages than layers", 3, 4,
         "a pipeline of 4 stages needs as many layers: the model \"uniform\" has 3"},
        {"no stage", 3, 0,
         "a pipeline of 0 stages needs as many layers: the model \"uniform\" has 3"},
    };
    for (size_t r = 0; r < ROWS(rows); r++) {
        cs_model model = make_model(rows[r].n_layers);
        cs_plan plan = {.n_stages = 77};
        cs_error error;
        cs_error_init(&error);
        cs_status status = cs_plan_balanced(
            &(cs_balance){.model = &model, .n_stages = rows[r].n_stages}, &plan, &error);
        expect_error(rows[r].name, CS_INVALID, rows[r].message, status, &error);
        expect_int(rows[r].name, 77, plan.n_stages); /* written on success only */
        cs_model_finish(&model);
    }
}

/* No speeds given: all 1; a link without limit: only the latency counts. */
static void test_balanced_defaults(void **state)
{
    (void)state;
    cs_model model = make_model(4);
    for (uint32_t l = 0; l < 4; l++) {
        model.layers[l].forward = 10;
        model.layers[l].output_bytes = 1000;
    }
    cs_plan plan;
    assert_int_equal(cs_plan_balanced(&(cs_balance){.model = &model,
                                                    .n_stages = 2,
                                                    .communication = true,
                                                    .bandwidth = INFINITY,
                                                    .latency = 3},
                                      &plan, NULL),
                     CS_OK);
    expect_cuts("defaults", (const uint32_t[]){0, 2, 4}, 2, &plan);
    cs_plan_finish(&plan);
    cs_model_finish(&model);
}

/* ---- reading and writing ---- */

static cs_status read_plan(const char *text, const cs_model *model, cs_plan *plan, cs_error *error)
{
    cJSON *root;
    cs_error_init(error);
    cs_status status = cs_json_parse("p.json", text, strlen(text), &root, error);
    if (status != CS_OK)
        return status;
    cs_json_place place = {.file = "p.json"};
    status = cs_plan_read(root, &place, model, plan, error);
    cJSON_Delete(root);
    return status;
}

static void expect_plan(const char *row, const cs_plan *expected, const cs_plan *got)
{
    expect_int(row, expected->n_stages, got->n_stages);
    expect_int(row, expected->n_devices, got->n_devices);
    for (uint32_t s = 0; s < expected->n_stages; s++) {
        expect_int(row, expected->stages[s].first_layer, got->stages[s].first_layer);
        expect_int(row, expected->stages[s].end_layer, got->stages[s].end_layer);
        expect_int(row, expected->stages[s].first_device, got->stages[s].first_device);
        expect_int(row, expected->stages[s].n_devices, got->stages[s].n_devices);
    }
    for (uint32_t d = 0; d < expected->n_devices; d++)
        expect_int(row, expected->devices[d], got->devices[d]);
}

/* Stages with several replicas each, on any devices. */
static void draw_plan(gsl_rng *random, uint32_t n_layers, cs_plan *plan)
{
    *plan = (cs_plan){.stages = calloc(n_layers, sizeof(*plan->stages)),
                      .devices = calloc(4 * (size_t)n_layers, sizeof(*plan->devices))};
    for (uint32_t end = 0; end < n_layers;) {
        uint32_t first = end, replicas = 1 + below(random, 4);
        end += 1 + below(random, n_layers - first);
        plan->stages[plan->n_stages++] = (cs_stage){first, end, plan->n_devices, replicas};
        while (replicas-- > 0)
            plan->devices[plan->n_devices++] = below(random, CS_PLAN_DEVICES);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(2, "plans");
    assert_non_null(random);
    for (int i = 0; i < 300; i++) {
        cs_model model = make_model(1 + below(random, 12));
        cs_plan plan, read;
        cs_error error;
        draw_plan(random, model.n_layers, &plan);
        cJSON *json = cs_plan_json(&plan, &model);
        assert_non_null(json);
        char *text = cs_json_print(json);
        expect_error(text, CS_OK, "", read_plan(text, &model, &read, &error), &error);
        expect_plan(text, &plan, &read);
        free(text);
        cJSON_Delete(json);
        cs_plan_finish(&plan);
        cs_plan_finish(&read);
        cs_model_finish(&model);
    }
    gsl_rng_free(random);
}

#define PLAN(stages)   "{\"schema_version\": 1, \"model\": \"uniform\", \"stages\": " stages "}"
#define STAGE(a, b, d) "{\"first_layer\": " a ", \"last_layer\": " b ", \"devices\": " d "}"
#define LIST(stages)   PLAN("[" stages "]")

static void test_written_text(void **state)
{
    (void)state;
    cs_model model = make_model(3);
    cs_plan plan;
    cs_error error;
    expect_error("read", CS_OK, "",
                 read_plan(LIST(STAGE("0", "1", "[4]") "," STAGE("2", "2", "[0, 7]")), &model,
                           &plan, &error),
                 &error);
    cJSON *json = cs_plan_json(&plan, &model);
    char *text = cJSON_PrintUnformatted(json);
    expect_text("written",
                "{\"schema_version\":1,\"model\":\"uniform\",\"stages\":[{\"first_layer\":0,\"last_"
                "layer\":1,\"first_layer_name\":\"layer0\",\"last_layer_name\":\"layer1\","
                "\"devices\":[4]},{\"first_layer\":2,\"last_layer\":2,\"first_layer_name\":"
                "\"layer2\",\"last_layer_name\":\"layer2\",\"devices\":[0,7]}]}",
                text);
    cJSON_free(text);
    cJSON_Delete(json);
    cs_plan_finish(&plan);
    cs_model_finish(&model);
}

/* A model with 4 layers. */
static const struct {
    const char *name, *text, *message;
} refused[] = {
    {"null", "null", "p.json: must be an object (got null)"},
    {"true", "true", "p.json: must be an object (got true)"},
    {"number", "1", "p.json: must be an object (got 1)"},
    {"string", "\"x\"", "p.json: must be an object (got \"x\")"},
    {"array", "[]", "p.json: must be an object (got an array)"},
    {"no keys", "{}",
     "p.json: missing key \"schema_version\": must be 1\np.json: missing key \"stages\": must be "
     "[{stage}, ...]"},
    {"version null", "{\"schema_version\": null, \"stages\": []}",
     "p.json: /schema_version: must be 1 (got null)\np.json: /stages: must have at least 1 entry "
     "(got 0)"},
    {"version text", "{\"schema_version\": \"1\", \"stages\": []}",
     "p.json: /schema_version: must be 1 (got \"1\")\np.json: /stages: must have at least 1 entry "
     "(got 0)"},
    {"version false", "{\"schema_version\": false, \"stages\": []}",
     "p.json: /schema_version: must be 1 (got false)\np.json: /stages: must have at least 1 entry "
     "(got 0)"},
    {"version array", "{\"schema_version\": [1], \"stages\": []}",
     "p.json: /schema_version: must be 1 (got an array)\np.json: /stages: must have at least 1 "
     "entry (got 0)"},
    {"version object", "{\"schema_version\": {}, \"stages\": []}",
     "p.json: /schema_version: must be 1 (got an object)\np.json: /stages: must have at least 1 "
     "entry (got 0)"},
    {"version 2", "{\"schema_version\": 2, \"stages\": []}",
     "p.json: /schema_version: must be 1 (got 2)\np.json: /stages: must have at least 1 entry (got "
     "0)"},
    {"model null", "{\"schema_version\": 1, \"model\": null, \"stages\": []}",
     "p.json: /model: must be text (got null)\np.json: /stages: must have at least 1 entry (got "
     "0)"},
    {"model number", "{\"schema_version\": 1, \"model\": 1, \"stages\": []}",
     "p.json: /model: must be text (got 1)\np.json: /stages: must have at least 1 entry (got 0)"},
    {"model array", "{\"schema_version\": 1, \"model\": [], \"stages\": []}",
     "p.json: /model: must be text (got an array)\np.json: /stages: must have at least 1 entry "
     "(got 0)"},
    {"unknown key", "{\"schema_version\": 1, \"stage\": [], \"stages\": []}",
     "p.json: unknown key \"stage\"; did you mean \"stages\"? known: schema_version, model, "
     "stages, pattern\np.json: /stages: must have at least 1 entry (got 0)"},
    {"stages null", PLAN("null"),
     "p.json: /stages: must be a list, such as [{stage}, ...] (got null)"},
    {"stages true", PLAN("true"),
     "p.json: /stages: must be a list, such as [{stage}, ...] (got true)"},
    {"stages number", PLAN("4"), "p.json: /stages: must be a list, such as [{stage}, ...] (got 4)"},
    {"stages text", PLAN("\"a\""),
     "p.json: /stages: must be a list, such as [{stage}, ...] (got \"a\")"},
    {"stages object", PLAN("{}"),
     "p.json: /stages: must be a list, such as [{stage}, ...] (got an object)"},
    {"stages empty", PLAN("[]"), "p.json: /stages: must have at least 1 entry (got 0)"},
    {"stage null", LIST("null"), "p.json: /stages/0: must be an object (got null)"},
    {"stage true", LIST("true"), "p.json: /stages/0: must be an object (got true)"},
    {"stage number", LIST("0"), "p.json: /stages/0: must be an object (got 0)"},
    {"stage text", LIST("\"a\""), "p.json: /stages/0: must be an object (got \"a\")"},
    {"stage array", LIST("[[0]]"), "p.json: /stages/0: must be an object (got an array)"},
    {"stage empty", LIST("{}"),
     "p.json: /stages/0: missing key \"first_layer\": must be a whole number from 0 to "
     "4294967294\np.json: /stages/0: missing key \"last_layer\": must be a whole number from 0 to "
     "4294967294\np.json: /stages/0: missing key \"devices\": must be [device, ...]"},
    {"first layer null", LIST(STAGE("null", "3", "[0]")),
     "p.json: /stages/0/first_layer: must be a whole number from 0 to 4294967294 (got null)"},
    {"first layer text", LIST(STAGE("\"0\"", "3", "[0]")),
     "p.json: /stages/0/first_layer: must be a whole number from 0 to 4294967294 (got \"0\")"},
    {"first layer half", LIST(STAGE("0.5", "3", "[0]")),
     "p.json: /stages/0/first_layer: must be a whole number from 0 to 4294967294 (got 0.5)"},
    {"first layer negative", LIST(STAGE("-1", "3", "[0]")),
     "p.json: /stages/0/first_layer: must be from 0 to 4294967294 (got -1)"},
    {"last layer object", LIST(STAGE("0", "{}", "[0]")),
     "p.json: /stages/0/last_layer: must be a whole number from 0 to 4294967294 (got an object)"},
    {"last layer huge", LIST(STAGE("0", "4294967295", "[0]")),
     "p.json: /stages/0/last_layer: must be from 0 to 4294967294 (got 4294967295)"},
    {"devices null", LIST(STAGE("0", "3", "null")),
     "p.json: /stages/0/devices: must be a list, such as [device, ...] (got null)"},
    {"devices number", LIST(STAGE("0", "3", "0")),
     "p.json: /stages/0/devices: must be a list, such as [device, ...] (got 0)"},
    {"devices text", LIST(STAGE("0", "3", "\"0\"")),
     "p.json: /stages/0/devices: must be a list, such as [device, ...] (got \"0\")"},
    {"devices true", LIST(STAGE("0", "3", "true")),
     "p.json: /stages/0/devices: must be a list, such as [device, ...] (got true)"},
    {"devices object", LIST(STAGE("0", "3", "{\"a\": 0}")),
     "p.json: /stages/0/devices: must be a list, such as [device, ...] (got an object)"},
    {"devices empty", LIST(STAGE("0", "3", "[]")),
     "p.json: /stages/0/devices: must have at least 1 entry (got 0)"},
    {"device null", LIST(STAGE("0", "3", "[0, null]")),
     "p.json: /stages/0/devices/1: must be a whole number from 0 to 16777215 (got null)"},
    {"device text", LIST(STAGE("0", "3", "[\"1\"]")),
     "p.json: /stages/0/devices/0: must be a whole number from 0 to 16777215 (got \"1\")"},
    {"device true", LIST(STAGE("0", "3", "[true]")),
     "p.json: /stages/0/devices/0: must be a whole number from 0 to 16777215 (got true)"},
    {"device array", LIST(STAGE("0", "3", "[[1]]")),
     "p.json: /stages/0/devices/0: must be a whole number from 0 to 16777215 (got an array)"},
    {"device object", LIST(STAGE("0", "3", "[{}]")),
     "p.json: /stages/0/devices/0: must be a whole number from 0 to 16777215 (got an object)"},
    {"device half", LIST(STAGE("0", "3", "[1.5]")),
     "p.json: /stages/0/devices/0: must be a whole number from 0 to 16777215 (got 1.5)"},
    {"device negative", LIST(STAGE("0", "3", "[-1]")),
     "p.json: /stages/0/devices/0: must be from 0 to 16777215 (got -1)"},
    {"device too large", LIST(STAGE("0", "3", "[16777216]")),
     "p.json: /stages/0/devices/0: must be from 0 to 16777215 (got 16777216)"},
    {"device huge", LIST(STAGE("0", "3", "[1e300]")),
     "p.json: /stages/0/devices/0: must be from 0 to 16777215 (got 1e+300)"},
    {"name number",
     LIST("{\"first_layer\": 0, \"last_layer\": 3, \"devices\": [0], \"first_layer_name\": 1}"),
     "p.json: /stages/0/first_layer_name: must be text (got 1)"},
    {"starts late", LIST(STAGE("1", "3", "[0]")),
     "p.json: /stages/0: first_layer must be 0, where the stage before ends (got 1)"},
    {"gap", LIST(STAGE("0", "1", "[0]") "," STAGE("3", "3", "[1]")),
     "p.json: /stages/1: first_layer must be 2, where the stage before ends (got 3)"},
    {"overlap", LIST(STAGE("0", "2", "[0]") "," STAGE("2", "3", "[1]")),
     "p.json: /stages/1: first_layer must be 3, where the stage before ends (got 2)"},
    {"empty stage", LIST(STAGE("0", "1", "[0]") "," STAGE("2", "1", "[1]")),
     "p.json: /stages/1: last_layer must be from 2 to 3, the model's last (got 1)"},
    {"too many layers", LIST(STAGE("0", "4", "[0]")),
     "p.json: /stages/0: last_layer must be from 0 to 3, the model's last (got 4)"},
    {"too few layers", LIST(STAGE("0", "2", "[0]")),
     "p.json: /stages: the stages hold layers 0 to 2, the model \"uniform\" has 4"},
    {"a stage too many", LIST(STAGE("0", "3", "[0]") "," STAGE("4", "4", "[1]")),
     "p.json: /stages/1: last_layer must be from 4 to 3, the model's last (got 4)"},
};

static void test_refused(void **state)
{
    (void)state;
    cs_model model = make_model(4);
    for (size_t r = 0; r < ROWS(refused); r++) {
        cs_plan plan = {.n_stages = 77};
        cs_error error;
        cs_status status = read_plan(refused[r].text, &model, &plan, &error);
        expect_error(refused[r].name, CS_INVALID, refused[r].message, status, &error);
        expect_int(refused[r].name, 77, plan.n_stages);
    }
    cs_model_finish(&model);
}

/* ---- lists of cuts ---- */

static cs_status read_cuts(const char *text, const cs_model *model, cs_plan *plan, cs_error *error)
{
    cJSON *root;
    cs_error_init(error);
    assert_int_equal(cs_json_parse("s.json", text, strlen(text), &root, error), CS_OK);
    cs_json_place file = {.file = "s.json"}, place = {.up = &file, .key = "cuts"};
    cs_status status = cs_plan_read_cuts(root, &place, model, plan, error);
    cJSON_Delete(root);
    return status;
}

#define CUT(index, text)                                                                           \
    "s.json: /cuts/" index ": must be the first layer of stage " text                              \
    ": the model has 9 layers, and the list must rise"

/* A model with 9 layers. */
static void test_cuts(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        uint32_t n_stages; /* 0: refused */
        uint32_t cuts[MOST_STAGES + 1];
        const char *message;
    } rows[] = {
        {"none", "[]", 1, {0, 9}, ""},
        {"one", "[4]", 2, {0, 4, 9}, ""},
        {"two", "[1, 8]", 3, {0, 1, 8, 9}, ""},
        {"all", "[1, 2, 3, 4, 5, 6, 7, 8]", 9, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, ""},
        {"whole as a fraction", "[4.0]", 2, {0, 4, 9}, ""},
        {"null", "null", 0, {0}, "s.json: /cuts: must be a list of layers (got null)"},
        {"true", "true", 0, {0}, "s.json: /cuts: must be a list of layers (got a boolean)"},
        {"number", "4", 0, {0}, "s.json: /cuts: must be a list of layers (got a number)"},
        {"text", "\"4\"", 0, {0}, "s.json: /cuts: must be a list of layers (got a string)"},
        {"object", "{}", 0, {0}, "s.json: /cuts: must be a list of layers (got an object)"},
        {"zero", "[0]", 0, {0}, CUT("0", "1, a whole number from 1 to 8")},
        {"the end", "[9]", 0, {0}, CUT("0", "1, a whole number from 1 to 8")},
        {"half", "[1.5]", 0, {0}, CUT("0", "1, a whole number from 1 to 8")},
        {"negative", "[-1]", 0, {0}, CUT("0", "1, a whole number from 1 to 8")},
        {"huge", "[1e300]", 0, {0}, CUT("0", "1, a whole number from 1 to 8")},
        {"null inside", "[null]", 0, {0}, CUT("0", "1, a whole number from 1 to 8")},
        {"true inside", "[true]", 0, {0}, CUT("0", "1, a whole number from 1 to 8")},
        {"text inside", "[2, \"5\"]", 0, {0}, CUT("1", "2, a whole number from 3 to 8")},
        {"array inside", "[[2]]", 0, {0}, CUT("0", "1, a whole number from 1 to 8")},
        {"object inside", "[{}]", 0, {0}, CUT("0", "1, a whole number from 1 to 8")},
        {"equal", "[4, 4]", 0, {0}, CUT("1", "2, a whole number from 5 to 8")},
        {"falling", "[4, 3]", 0, {0}, CUT("1", "2, a whole number from 5 to 8")},
    };
    cs_model model = make_model(9);
    for (size_t r = 0; r < ROWS(rows); r++) {
        cs_plan plan = {.n_stages = 77};
        cs_error error;
        cs_status status = read_cuts(rows[r].text, &model, &plan, &error);
        expect_error(rows[r].name, rows[r].n_stages > 0 ? CS_OK : CS_INVALID, rows[r].message,
                     status, &error);
        if (status == CS_OK) {
            expect_cuts(rows[r].name, rows[r].cuts, rows[r].n_stages, &plan);
            cs_plan_finish(&plan);
        } else {
            expect_int(rows[r].name, 77, plan.n_stages);
        }
    }
    cs_model_finish(&model);
}

static void test_replicated(void **state)
{
    (void)state;
    cs_plan plan;
    assert_int_equal(cs_plan_replicated(5, 3, &plan, NULL), CS_OK);
    expect_plan("replicated", &(cs_plan){1, 3, (cs_stage[]){{0, 5, 0, 3}}, (uint32_t[]){0, 1, 2}},
                &plan);
    cs_plan_finish(&plan);
    cs_plan_finish(&plan); /* a finished value can be finished again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_balanced_against_all_partitions),
        cmocka_unit_test(test_balanced_by_hand),
        cmocka_unit_test(test_balanced_errors),
        cmocka_unit_test(test_balanced_defaults),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_written_text),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_replicated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Models: reading, scaling and summing layers, against values derived by hand. */
#include "sim/base/text.h"
#include "sim/model/model.h"

#include "sim/base/file.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Where the project's folders are, from the test's working directory. */
#ifndef CS_SOURCE_ROOT
#define CS_SOURCE_ROOT "."
#endif

#define PROVENANCE                                                                                 \
    "\"provenance\": {\"source\": \"s\", \"hardware\": \"h\", \"date\": \"2026-02-28\"}"
#define HEAD       "{\"schema_version\": 1, \"name\": \"m\", \"batch_size\": 4, \"input\": 100, "
#define MODEL(...) HEAD PROVENANCE ", \"layers\": [" #__VA_ARGS__ "]}"
#define LAYER(key)                                                                                 \
    "{\"schema_version\": 1, \"name\": \"m\", \"batch_size\": 4, " PROVENANCE                      \
    ", \"layers\": [{" key "}]}"
#define LAYER_A "\"name\": \"a\", \"forward\": 1, \"weights\": 8, \"output\": 16"
#define A_LAYER "{" LAYER_A ", \"backward\": 2}"
#define MATRICES(of)                                                                               \
    LAYER(LAYER_A ", \"backward\": 1, \"update\": \"9 ps\", \"matrices\": [" of "]")

static cs_status read_text(const char *text, cs_model *model, cs_error *error)
{
    cJSON *root;
    cs_error_init(error);
    cs_status status = cs_json_parse("m.json", text, strlen(text), &root, error);
    if (status != CS_OK)
        return status;
    cs_json_place place = {.file = "m.json"};
    status = cs_model_read(root, &place, model, error);
    cJSON_Delete(root);
    return status;
}

static void check(cs_status status, const cs_error *error)
{
    if (status != CS_OK)
        fail_msg("%s: %s", cs_status_name(status), error->text);
}

static void layer_text(const cs_layer *layer, char *text, size_t size)
{
    snprintf(text, size,
             "%s f=%" PRId64 " bi=%" PRId64 " bw=%" PRId64 " u=%" PRId64 " w=%" PRId64
             " out=%" PRId64 " kept=%" PRId64 " work=%" PRId64,
             layer->name, layer->forward, layer->backward_input, layer->backward_weight,
             layer->update, layer->weight_bytes, layer->output_bytes, layer->kept_bytes,
             layer->workspace_bytes);
    if (layer->tied_to)
        snprintf(text + strlen(text), size - strlen(text), " %" PRId64 " of %s", layer->tied_bytes,
                 layer->tied_to);
    for (uint32_t i = 0; i < layer->n_matrices; i++) {
        const cs_layer_matrix *m = &layer->matrices[i];
        snprintf(text + strlen(text), size - strlen(text),
                 " %u%s of %" PRId64 " u=%" PRId64 " gather=%" PRId64 " sums=%u of %" PRId64, m->n,
                 m->expert ? " experts" : "", m->bytes, m->update, m->gather_bytes, m->n_sums,
                 m->sum_bytes);
    }
}

static const struct {
    const char *name;
    const char *json; /* its last layer is looked at */
    const char *layer;
} layers[] = {
    {"all keys, with units", MODEL({
         "name" : "a",
         "forward" : "3 ns",
         "backward_input" : "4 ps",
         "backward_weight" : "5 ps",
         "update" : "6 ps",
         "weights" : "7 B",
         "output" : "2 kB",
         "kept" : "1 KiB",
         "workspace" : "9 B"
     }),
     "a f=3000 bi=4 bw=5 u=6 w=7 out=2000 kept=1024 work=9"},
    {"plain numbers are seconds and bytes",
     MODEL({"name" : "a", "forward" : 1.5, "backward" : 2, "weights" : 2, "output" : 3}),
     "a f=1500000000000 bi=1000000000000 bw=1000000000000 u=0 w=2 out=3 kept=100 work=0"},
    /* 7 ps in halves: 3 for the weights, the odd one for the input. */
    {"a whole backward with weights",
     MODEL({"name" : "a", "forward" : 0, "backward" : "7 ps", "weights" : 1, "output" : 0}),
     "a f=0 bi=4 bw=3 u=0 w=1 out=0 kept=100 work=0"},
    {"a whole backward without weights",
     MODEL({"name" : "a", "forward" : 0, "backward" : "7 ps", "weights" : 0, "output" : 0}),
     "a f=0 bi=7 bw=0 u=0 w=0 out=0 kept=100 work=0"},
    {"kept is the output of the layer before",
     MODEL({"name" : "a", "forward" : 0, "backward" : 0, "weights" : 0, "output" : 77},
           {"name" : "b", "forward" : 0, "backward" : 0, "weights" : 0, "output" : 5}),
     "b f=0 bi=0 bw=0 u=0 w=0 out=5 kept=77 work=0"},
    {"kept may be nothing",
     MODEL({"name" : "a", "forward" : 0, "backward" : 0, "weights" : 0, "output" : 77, "kept" : 0}),
     "a f=0 bi=0 bw=0 u=0 w=0 out=77 kept=0 work=0"},
    {"no input", LAYER(LAYER_A ", \"backward\": 0"),
     "a f=1000000000000 bi=0 bw=0 u=0 w=8 out=16 kept=0 work=0"},
};

static void test_layers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        cs_model model;
        cs_error error;
        print_message("  %s\n", layers[i].name);
        check(read_text(layers[i].json, &model, &error), &error);
        char text[512];
        layer_text(&model.layers[model.n_layers - 1], text, sizeof(text));
        assert_string_equal(text, layers[i].layer);
        cs_model_finish(&model);
    }
}

static void test_head(void **state)
{
    (void)state;
    cs_model model;
    cs_error error;
    check(read_text("{\"schema_version\": 1, \"name\": \"net\", \"batch_size\": 128,"
                    " \"input\": \"77 MB\", \"provenance\": {\"source\": \"a paper\","
                    " \"hardware\": \"none\", \"date\": \"2024-02-29\", \"notes\": \"n\"},"
                    " \"layers\": [" A_LAYER "]}",
                    &model, &error),
          &error);
    assert_string_equal(model.name, "net");
    assert_int_equal(model.batch_size, 128);
    assert_int_equal(model.input_bytes, 77000000);
    assert_int_equal(model.n_layers, 1);
    assert_string_equal(model.provenance.source, "a paper");
    assert_string_equal(model.provenance.hardware, "none");
    assert_string_equal(model.provenance.date, "2024-02-29");
    assert_string_equal(model.provenance.notes, "n");
    cs_model_finish(&model);
}

#define WITH_PROVENANCE(json) HEAD "\"provenance\": " json ", \"layers\": [" A_LAYER "]}"
#define WITH_LAYERS(json)     HEAD PROVENANCE ", \"layers\": " json "}"
#define WITH_BATCHES(json)    HEAD PROVENANCE ", \"layers\": [" A_LAYER "], \"batches\": " json "}"
#define TIED(keys)                                                                                 \
    WITH_LAYERS("[" A_LAYER                                                                        \
                ", {\"name\": \"b\", \"forward\": 1, \"backward\": 2, \"weights\": 0, "            \
                "\"output\": 1, " keys "}]")
#define A_BATCH "{\"batch_size\": 2, \"layers\": [" A_LAYER "]}"

static const struct {
    const char *name;
    const char *json;
    const char *message; /* is part of the messages */
} errors[] = {
    {"null", "null", "m.json: "},
    {"an array", "[]", "m.json: "},
    {"a number", "1", "m.json: "},
    {"a text", "\"\"", "m.json: "},
    {"nothing in it", "{}", "schema_version"},
    {"another version",
     "{\"schema_version\": 2, \"name\": \"m\", \"batch_size\": 1, " PROVENANCE
     ", \"layers\": [" A_LAYER "]}",
     "m.json: /schema_version: must be"},
    {"no name",
     "{\"schema_version\": 1, \"name\": \"\", \"batch_size\": 1, " PROVENANCE
     ", \"layers\": [" A_LAYER "]}",
     "m.json: /name: must not be empty"},
    {"half a sample",
     "{\"schema_version\": 1, \"name\": \"m\", \"batch_size\": 0.5, " PROVENANCE
     ", \"layers\": [" A_LAYER "]}",
     "m.json: /batch_size: must be"},
    {"an unknown key", HEAD "\"optimizer\": 1, " PROVENANCE ", \"layers\": [" A_LAYER "]}",
     "optimizer"},
    {"no provenance", HEAD "\"layers\": [" A_LAYER "]}", "provenance"},
    {"provenance is null", WITH_PROVENANCE("null"), "m.json: /provenance: must be"},
    {"provenance is a text", WITH_PROVENANCE("\"me\""), "m.json: /provenance: must be"},
    {"provenance is an array", WITH_PROVENANCE("[]"), "m.json: /provenance: must be"},
    {"no source", WITH_PROVENANCE("{\"hardware\": \"h\", \"date\": \"2026-01-01\"}"), "source"},
    {"source is a number",
     WITH_PROVENANCE("{\"source\": 1, \"hardware\": \"h\", \"date\": \"2026-01-01\"}"),
     "m.json: /provenance/source: must be"},
    {"an empty source",
     WITH_PROVENANCE("{\"source\": \"\", \"hardware\": \"h\", \"date\": \"2026-01-01\"}"),
     "m.json: /provenance/source: must not be empty"},
    {"an empty hardware",
     WITH_PROVENANCE("{\"source\": \"s\", \"hardware\": \"\", \"date\": \"2026-01-01\"}"),
     "m.json: /provenance/hardware: must not be empty"},
    {"a day that is none",
     WITH_PROVENANCE("{\"source\": \"s\", \"hardware\": \"h\", \"date\": \"2026-02-29\"}"),
     "m.json: /provenance/date: must be a day as YYYY-MM-DD (got \"2026-02-29\")"},
    {"no layers", HEAD PROVENANCE "}", "layers"},
    {"layers is an object", WITH_LAYERS("{}"),
     "m.json: /layers: must be a list, such as [{\"name\": ...}, ...] (got "},
    {"layers is a number", WITH_LAYERS("3"),
     "m.json: /layers: must be a list, such as [{\"name\": ...}, ...] (got "},
    {"layers is null", WITH_LAYERS("null"),
     "m.json: /layers: must be a list, such as [{\"name\": ...}, ...] (got "},
    {"an empty chain", WITH_LAYERS("[]"), "m.json: /layers: must have at least 1 entry (got 0)"},
    {"a layer is null", WITH_LAYERS("[null]"), "m.json: /layers/0: must be"},
    {"a layer is an array", WITH_LAYERS("[[]]"), "m.json: /layers/0: must be"},
    {"a layer is a text", WITH_LAYERS("[\"a\"]"), "m.json: /layers/0: must be"},
    {"a layer is true", WITH_LAYERS("[true]"), "m.json: /layers/0: must be"},
    {"a layer without a name",
     LAYER("\"name\": \"\", \"forward\": 1, \"backward\": 1, \"weights\": 8, \"output\": 16"),
     "m.json: /layers/0/name: must not be empty"},
    {"no backward", LAYER(LAYER_A), "m.json: /layers/0: must have either \"backward\" or both"},
    {"half a backward", LAYER(LAYER_A ", \"backward_input\": 1"),
     "m.json: /layers/0: must have either"},
    {"the other half", LAYER(LAYER_A ", \"backward_weight\": 1"),
     "m.json: /layers/0: must have either"},
    {"too many backwards", LAYER(LAYER_A ", \"backward\": 1, \"backward_weight\": 1"),
     "m.json: /layers/0: must have either"},
    {"a negative time", LAYER(LAYER_A ", \"backward\": -1"), "m.json: /layers/0/backward: must be"},
    {"a negative size", LAYER(LAYER_A ", \"backward\": 1, \"kept\": -1"),
     "m.json: /layers/0/kept: must be"},
    {"a size as time", LAYER(LAYER_A ", \"backward\": \"1 GB\""), "m.json: /layers/0/backward: "},
    {"a size of another type", LAYER(LAYER_A ", \"backward\": 1, \"kept\": true"),
     "m.json: /layers/0/kept: must be"},
    {"twins", WITH_LAYERS("[" A_LAYER ", " A_LAYER "]"),
     "m.json: /layers/1/name: must be unique (/layers/0 is called \"a\" too)"},
    {"tied to nothing", TIED("\"tied_weights\": 1"),
     "m.json: /layers/1: must have \"tied_to\" and \"tied_weights\" or neither"},
    {"tied with nothing", TIED("\"tied_to\": \"a\""),
     "m.json: /layers/1: must have \"tied_to\" and \"tied_weights\" or neither"},
    {"tied to itself", TIED("\"tied_to\": \"b\", \"tied_weights\": 1"),
     "m.json: /layers/1/tied_to: must be the name of a layer before it (got \"b\")"},
    {"tied to more than there is", TIED("\"tied_to\": \"a\", \"tied_weights\": 9"),
     "m.json: /layers/1/tied_weights: must be at most 8, the weights of that layer (got 9)"},
    {"matrices of more weights than there are", MATRICES("{\"weights\": 5}, {\"weights\": 4}"),
     "m.json: /layers/0/matrices/1: must be part of the layer's weights, of which 3 bytes are left "
     "(got 1 of 4)"},
    {"more matrices than there are", MATRICES("{\"weights\": 3, \"n\": 3}"),
     "m.json: /layers/0/matrices/0: must be part of the layer's weights, of which 8 bytes are left "
     "(got 3 of 3)"},
    {"matrices that take longer",
     MATRICES("{\"weights\": 1, \"update\": \"2 ps\", \"n\": 2}, {\"weights\": 1, \"update\": \"3 "
              "ps\", \"n\": 2}"),
     "m.json: /layers/0/matrices/1: must be part of the layer's update, of which 5 ps are left "
     "(got "
     "2 of 3)"},
    {"no matrix", MATRICES("{\"weights\": 1, \"n\": 0}"),
     "m.json: /layers/0/matrices/0/n: must be"},
    {"batches without samples",
     "{\"schema_version\": 1, \"name\": \"m\", \"batch_size\": 0, " PROVENANCE
     ", \"layers\": [" A_LAYER "], \"batches\": [{\"batch_size\": 1, \"layers\": [" A_LAYER "]}]}",
     "m.json: /batches: goes with a batch_size of at least 1 only"},
    {"batches of another type", WITH_BATCHES("{}"),
     "m.json: /batches: must be a list, such as [{\"batch_size\": ...}, ...]"},
    {"a batch is a number", WITH_BATCHES("[1]"), "m.json: /batches/0: must be"},
    {"a batch of none", WITH_BATCHES("[{\"batch_size\": 0, \"layers\": [" A_LAYER "]}]"),
     "m.json: /batches/0/batch_size: must be"},
    {"the model's own batch", WITH_BATCHES("[{\"batch_size\": 4, \"layers\": [" A_LAYER "]}]"),
     "m.json: /batches/0/batch_size: must be another than the model's and those before (got 4)"},
    {"a batch twice", WITH_BATCHES("[" A_BATCH ", " A_BATCH "]"),
     "m.json: /batches/1/batch_size: must be another than the model's and those before (got 2)"},
    {"a batch without layers", WITH_BATCHES("[{\"batch_size\": 1, \"layers\": []}]"),
     "m.json: /batches/0/layers: must have at least 1 entry (got 0)"},
    {"a batch with more layers",
     WITH_BATCHES("[{\"batch_size\": 1, \"layers\": [" A_LAYER ", " A_LAYER "]}]"),
     "m.json: /batches/0/layers: must have the model's 1 layers (got 2)"},
    {"another layer",
     WITH_BATCHES(
         "[{\"batch_size\": 1, \"layers\": [{\"name\": \"b\", \"forward\": 1, \"backward\": "
         "2, \"weights\": 8, \"output\": 16}]}]"),
     "m.json: /batches/0/layers/0/name: must be \"a\", as in the model's layers (got \"b\")"},
    {"other weights",
     WITH_BATCHES(
         "[{\"batch_size\": 1, \"layers\": [{\"name\": \"a\", \"forward\": 1, \"backward\": "
         "2, \"weights\": 9, \"output\": 16}]}]"),
     "m.json: /batches/0/layers/0/weights: must be 8, as in the model's layers (got 9)"},
    {"twins among other errors",
     "{\"schema_version\": 1, \"name\": \"\", \"batch_size\": 4, " PROVENANCE
     ", \"layers\": [" A_LAYER ", " A_LAYER "]}",
     "m.json: /layers/1/name: must be unique (/layers/0 is called \"a\" too)"},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        cs_model model = {.n_layers = 12345};
        cs_error error;
        print_message("  %s\n", errors[i].name);
        assert_int_equal(read_text(errors[i].json, &model, &error), CS_INVALID);
        assert_int_equal(model.n_layers, 12345); /* untouched */
        if (!strstr(error.text, errors[i].message))
            fail_msg("got:\n%s\nbut expected in it:\n%s", error.text, errors[i].message);
    }
}

/* A day, a negative time, a missing backward and a twin: one message each. */
/* Twins are looked for once all layers can be read. */
static void test_errors_in_one_go(void **state)
{
    (void)state;
    cs_model model;
    cs_error error;
    const char *text = HEAD
        "\"provenance\": {\"source\": \"s\", \"hardware\": \"h\", \"date\": \"yesterday\"},"
        " \"layers\": [" A_LAYER ", {" LAYER_A "},"
        " {\"name\": \"b\", \"forward\": -1, \"backward\": 1, \"weights\": 8, \"output\": 16}]}";
    assert_int_equal(read_text(text, &model, &error), CS_INVALID);
    if (error.count != 3)
        fail_msg("%u messages, not 3:\n%s", error.count, error.text);
    assert_non_null(strstr(error.text, "/provenance/date: "));
    assert_non_null(strstr(error.text, "/layers/1: must have"));
    assert_non_null(strstr(error.text, "/layers/2/forward: "));
}

static const struct {
    const char *text;
    bool date;
} dates[] = {
    {"2026-11-21", true},   {"2024-02-29", true},  {"2000-02-29", true}, /* every 400 years */
    {"1900-02-29", false},  {"2023-02-29", false}, {"2026-04-31", false},  {"2026-13-01", false},
    {"2026-00-01", false},  {"2026-01-00", false}, {"2026-1-01", false},   {"26-01-01", false},
    {"2026-01-011", false}, {"2026/01/01", false}, {"2026-01-01 ", false}, {"", false},
    {"2", false},           {"2026", false},       {"2026-", false},       {"2026-01-", false},
    {"2026-01-0", false},   {"-026-01-01", false},
};

static void test_dates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
        if (cs_text_is_date(dates[i].text) != dates[i].date)
            fail_msg("\"%s\" %s a date", dates[i].text, dates[i].date ? "is" : "is not");
    }
}

static void sum_text(const cs_layer_sum *sum, char *text, size_t size)
{
    snprintf(text, size,
             "f=%" PRId64 " bi=%" PRId64 " bw=%" PRId64 " u=%" PRId64 " w=%" PRId64 " kept=%" PRId64
             " in=%" PRId64 " out=%" PRId64 " work=%" PRId64,
             sum->forward, sum->backward_input, sum->backward_weight, sum->update,
             sum->weight_bytes, sum->kept_bytes, sum->input_bytes, sum->output_bytes,
             sum->workspace_bytes);
}

static cs_layer two_layers[] = {
    {"a", 10, 20, 30, 5, 100, 40, 50, 7},
    {"b", 11, 21, 31, 6, 200, 41, 51, 3},
};

static const struct {
    const char *name;
    uint32_t batch, first, end, samples;
    const char *sum;
} sums[] = {
    {"both as they are", 4, 0, 2, 4, "f=21 bi=41 bw=61 u=11 w=300 kept=101 in=9 out=41 work=7"},
    {"the second alone", 4, 1, 2, 4, "f=11 bi=21 bw=31 u=6 w=200 kept=51 in=40 out=41 work=3"},
    /* A quarter. Times, halves up: 10/4 = 2.5 -> 3, 11/4 = 2.75 -> 3; 20/4 = 5, 21/4 = 5.25 -> 5;
     * 30/4 = 7.5 -> 8, 31/4 = 7.75 -> 8. Bytes, up: 50/4 -> 13, 51/4 -> 13; 9/4 -> 3; 41/4 -> 11;
     * 7/4 -> 2. Update and weights stay. */
    {"a quarter", 4, 0, 2, 1, "f=6 bi=10 bw=16 u=11 w=300 kept=26 in=3 out=11 work=2"},
    /* Thirds of an odd batch: 10*1/3 = 3.33 -> 3, 11/3 = 3.67 -> 4; 20/3 = 6.67 -> 7, 21/3 = 7;
     * 30/3 = 10, 31/3 = 10.33 -> 10; 50/3 -> 17, 51/3 = 17; 9/3 = 3; 41/3 -> 14; 7/3 -> 3. */
    {"a third", 3, 0, 2, 1, "f=7 bi=14 bw=20 u=11 w=300 kept=34 in=3 out=14 work=3"},
    {"twice", 4, 0, 2, 8, "f=42 bi=82 bw=122 u=11 w=300 kept=202 in=18 out=82 work=14"},
    {"no samples", 4, 0, 2, 0, "f=0 bi=0 bw=0 u=11 w=300 kept=0 in=0 out=0 work=0"},
    {"per micro-batch", 0, 0, 2, 99, "f=21 bi=41 bw=61 u=11 w=300 kept=101 in=9 out=41 work=7"},
    {"an empty run", 4, 1, 1, 4, "f=0 bi=0 bw=0 u=0 w=0 kept=0 in=40 out=40 work=0"},
    {"nothing at the start", 4, 0, 0, 4, "f=0 bi=0 bw=0 u=0 w=0 kept=0 in=9 out=9 work=0"},
};

static void test_sums(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        cs_model model = {.name = "m",
                          .batch_size = sums[i].batch,
                          .input_bytes = 9,
                          .n_layers = 2,
                          .layers = two_layers};
        cs_layer_sum sum;
        cs_error error;
        cs_error_init(&error);
        print_message("  %s\n", sums[i].name);
        check(cs_model_sum(&model, sums[i].first, sums[i].end, sums[i].samples, &sum, &error),
              &error);
        char text[512];
        sum_text(&sum, text, sizeof(text));
        assert_string_equal(text, sums[i].sum);
    }
}

/* INT64_MAX = 9223372036854775807 = 3 * 3074457345618258602 + 1. Two thirds of it are
 * 6148914691236517204.67: a double, with 53 bits, could not tell. */
static void test_sum_is_exact(void **state)
{
    (void)state;
    cs_layer layer = {.name = "a", .forward = INT64_MAX, .kept_bytes = INT64_MAX};
    cs_model model = {.name = "m", .batch_size = 3, .n_layers = 1, .layers = &layer};
    cs_layer_sum sum;
    check(cs_model_sum(&model, 0, 1, 2, &sum, NULL), &(cs_error){0});
    assert_int_equal(sum.forward, INT64_C(6148914691236517205));
    assert_int_equal(sum.kept_bytes, INT64_C(6148914691236517205));
    /* The largest batches: UINT32_MAX / UINT32_MAX. */
    model.batch_size = UINT32_MAX;
    check(cs_model_sum(&model, 0, 1, UINT32_MAX, &sum, NULL), &(cs_error){0});
    assert_int_equal(sum.forward, INT64_MAX);
}

static void test_sum_overflow(void **state)
{
    (void)state;
    cs_layer big[] = {{.name = "a", .forward = INT64_MAX, .workspace_bytes = INT64_MAX},
                      {.name = "b", .forward = 1}};
    cs_model model = {.name = "m", .batch_size = 1, .n_layers = 2, .layers = big};
    cs_layer_sum sum = {.forward = 42};
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_model_sum(&model, 0, 2, 1, &sum, &error), CS_OVERFLOW); /* the addition */
    assert_int_equal(cs_model_sum(&model, 0, 1, 2, &sum, &error), CS_OVERFLOW); /* the scaling */
    assert_int_equal(sum.forward, 42);
    assert_int_equal(error.count, 2);
    assert_non_null(strstr(error.text, "model \"m\""));
    big[0].forward = 1;
    assert_int_equal(cs_model_sum(&model, 0, 1, 2, &sum, &error), CS_OVERFLOW); /* workspace */
}

static void test_uniform(void **state)
{
    (void)state;
    cs_layer layer = {.name = "ignored",
                      .forward = 1,
                      .backward_input = 2,
                      .backward_weight = 3,
                      .weight_bytes = 4,
                      .output_bytes = 5,
                      .kept_bytes = 6};
    cs_model model;
    cs_error error;
    cs_error_init(&error);
    check(cs_model_uniform(11, &layer, &model, &error), &error);
    assert_int_equal(model.n_layers, 11);
    assert_int_equal(model.batch_size, 0);
    assert_int_equal(model.input_bytes, 5);
    assert_string_equal(model.provenance.source, "synthetic");
    char text[512];
    layer_text(&model.layers[10], text, sizeof(text));
    assert_string_equal(text, "layer10 f=1 bi=2 bw=3 u=0 w=4 out=5 kept=6 work=0");
    cs_model_finish(&model);
    assert_int_equal(cs_model_uniform(0, &layer, &model, &error), CS_INVALID);
}

static void assert_equal_models(const cs_model *a, const cs_model *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->batch_size, b->batch_size);
    assert_int_equal(a->input_bytes, b->input_bytes);
    assert_string_equal(a->provenance.source, b->provenance.source);
    assert_string_equal(a->provenance.date, b->provenance.date);
    assert_int_equal(!a->provenance.notes, !b->provenance.notes);
    assert_int_equal(a->n_layers, b->n_layers);
    for (uint32_t i = 0; i < a->n_layers; i++) {
        char left[512], right[512];
        layer_text(&a->layers[i], left, sizeof(left));
        layer_text(&b->layers[i], right, sizeof(right));
        assert_string_equal(left, right);
    }
    assert_int_equal(a->n_batches, b->n_batches);
    for (uint32_t i = 0; i < a->n_batches; i++) {
        assert_int_equal(a->batches[i].batch_size, b->batches[i].batch_size);
        assert_int_equal(a->batches[i].input_bytes, b->batches[i].input_bytes);
        for (uint32_t l = 0; l < a->n_layers; l++) {
            char left[512], right[512];
            layer_text(&a->batches[i].layers[l], left, sizeof(left));
            layer_text(&b->batches[i].layers[l], right, sizeof(right));
            assert_string_equal(left, right);
        }
    }
}

/* 4 samples: 10 s forward and 20 s backward; 2 samples: 6 and 13 s. */
#define TWO_SIZES                                                                                  \
    HEAD PROVENANCE                                                                                \
        ", \"layers\": [{\"name\": \"a\", \"forward\": 10, \"backward\": 20, "                     \
        "\"weights\": 8, \"output\": 16, \"workspace\": 40}], \"batches\": [{"                     \
        "\"batch_size\": 2, \"input\": 50, \"layers\": [{\"name\": \"a\", \"forward\": 6, "        \
        "\"backward\": 13, \"weights\": 8, \"output\": 7, \"workspace\": 30}]}]}"

/* Where numbers of samples are known they are taken as they are: half a micro-batch of 4 as well.
 * Others scale from the model's own, 1 sample to a quarter of 4. */
static void test_batches(void **state)
{
    (void)state;
    static const struct {
        uint32_t samples, shares;
        int64_t forward, backward, input, output, workspace;
    } rows[] = {{4, 1, 10, 20, 100, 16, 40},
                {2, 1, 6, 13, 50, 7, 30},
                {4, 2, 6, 13, 50, 7, 30},
                {4, 4, 2500, 5000, 25, 4, 10},
                {6, 3, 6, 13, 50, 7, 30}};
    cs_model model;
    cs_error error;
    check(read_text(TWO_SIZES, &model, &error), &error);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cs_layer_sum sum;
        const cs_time unit = CS_PS_PER_SEC / (rows[i].forward > 100 ? 1000 : 1);
        check(cs_model_sum_share(&model, 0, 1, rows[i].samples, rows[i].shares, &sum, &error),
              &error);
        assert_int_equal(sum.forward, rows[i].forward * unit);
        assert_int_equal(sum.backward_input + sum.backward_weight, rows[i].backward * unit);
        assert_int_equal(sum.input_bytes, rows[i].input);
        assert_int_equal(sum.output_bytes, rows[i].output);
        assert_int_equal(sum.workspace_bytes, rows[i].workspace);
        assert_int_equal(sum.weight_bytes, 8);
    }
    cs_model_finish(&model);
}

/* Written and read again; the text of it, written once more, is the same. */
static void check_round_trip(const cs_model *model)
{
    cs_model again;
    cs_error error;
    cJSON *json = cs_model_json(model);
    assert_non_null(json);
    char *text = cs_json_print(json);
    assert_non_null(text);
    check(read_text(text, &again, &error), &error);
    assert_equal_models(model, &again);
    free(text);
    cJSON_Delete(json);
    cs_model_finish(&again);
}

static void test_round_trip(void **state)
{
    (void)state;
    cs_model model;
    cs_error error;
    check(read_text(MODEL({
                        "name" : "a/~\"b",
                        "forward" : "1 ps",
                        "backward" : "3 ps",
                        "weights" : 1,
                        "output" : 9007199254740992
                    },
                          {
                              "name" : "c",
                              "forward" : "1234.567890123456 s",
                              "backward" : "0.1 ms",
                              "weights" : 0,
                              "output" : "1 GiB",
                              "kept" : 0,
                              "workspace" : 12
                          }),
                    &model, &error),
          &error);
    check_round_trip(&model);
    cs_model_finish(&model);
    check(cs_model_uniform(3, &two_layers[0], &model, &error), &error);
    check_round_trip(&model);
    cs_model_finish(&model);
    check(read_text(TWO_SIZES, &model, &error), &error);
    check_round_trip(&model);
    cs_model_finish(&model);
    check(read_text(TIED("\"tied_to\": \"a\", \"tied_weights\": 8"), &model, &error), &error);
    assert_int_equal(model.layers[1].tied_bytes, 8);
    check_round_trip(&model);
    cs_model_finish(&model);
    check(read_text(MATRICES("{\"weights\": 2, \"update\": \"4 ps\", \"n\": 2, \"gathered\": 8}, "
                             "{\"weights\": 3, \"expert\": true, \"summed\": 7, \"sums\": 5}"),
                    &model, &error),
          &error);
    cs_layer_sum sum;
    check(cs_model_sum(&model, 0, 1, 4, &sum, &error), &error);
    assert_int_equal(sum.matrix_bytes, 2 * 2 + 3);
    assert_int_equal(model.layers[0].n_matrices, 2);
    check_round_trip(&model);
    cs_model_finish(&model);
}

/* The example in the documentation is read unchanged. Half a microsecond of the classifier's 601 us
 * goes to neither side: 300.5 us each. */
static void test_documentation(void **state)
{
    (void)state;
    char *page;
    size_t length;
    cs_error error;
    cs_error_init(&error);
    check(cs_file_read(CS_SOURCE_ROOT "/docs/reference/model-file.md", 1 << 20, &page, &length,
                       &error),
          &error);
    char *begin = strstr(page, "```json\n");
    assert_non_null(begin);
    begin += strlen("```json\n");
    char *end = strstr(begin, "```");
    assert_non_null(end);
    *end = '\0';
    cs_model model;
    check(read_text(begin, &model, &error), &error);
    char text[512];
    layer_text(&model.layers[0], text, sizeof(text));
    assert_string_equal(text, "hidden f=1000000000 bi=0 bw=1100000000 u=50000000 w=16777216 "
                              "out=2097152 kept=2000000 work=512000");
    layer_text(&model.layers[1], text, sizeof(text));
    assert_string_equal(text, "classifier f=300000000 bi=300500000 bw=300500000 u=0 w=4000000 "
                              "out=512000 kept=3145728 work=0");
    free(page);
    cs_model_finish(&model);
}

/* Parameters as published, 4 bytes each. The input is 128 x 3 x 224 x 224 floats, the output 128 x
 * 1000. Lower bounds of the compute time from the published multiply-adds (15.47 G and 4.09 G per
 * sample, 2 flops each, 128 samples at 60 % of 15.7 Tflop/s): 420.4 ms and 111.1 ms; memory-bound
 * operations come on top. */
static const struct {
    const char *file;
    uint32_t n_layers;
    int64_t parameters;
    cs_time least;
} shipped[] = {
    {"vgg16", 13 + 5 + 3, 138357544, INT64_C(420400000000)},
    {"resnet50", 1 + 16 + 1, 25557032, INT64_C(111100000000)},
};

static void test_shipped(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shipped) / sizeof(shipped[0]); i++) {
        char path[256];
        cs_model model;
        cs_layer_sum sum;
        cs_error error;
        cs_error_init(&error);
        snprintf(path, sizeof(path), CS_SOURCE_ROOT "/facts/layers/%s.json", shipped[i].file);
        check(cs_model_load(path, &model, &error), &error);
        check(cs_model_sum(&model, 0, model.n_layers, 128, &sum, &error), &error);
        assert_string_equal(model.name, shipped[i].file);
        assert_int_equal(model.n_layers, shipped[i].n_layers);
        assert_int_equal(sum.weight_bytes, 4 * shipped[i].parameters);
        assert_int_equal(sum.input_bytes, 4 * 128 * 3 * 224 * 224);
        assert_int_equal(sum.output_bytes, 4 * 128 * 1000);
        assert_in_range(sum.forward, shipped[i].least, 2 * shipped[i].least);
        check_round_trip(&model);
        cs_model_finish(&model);
    }
}

static void test_no_file(void **state)
{
    (void)state;
    cs_model model;
    cs_error error;
    cs_error_init(&error);
    assert_int_not_equal(cs_model_load("no/such/model.json", &model, &error), CS_OK);
    assert_non_null(strstr(error.text, "no/such/model.json"));
}

static void test_finish(void **state)
{
    (void)state;
    cs_model model = {0};
    cs_model_finish(&model);
    cs_model_finish(&model);
    cs_model_finish(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),       cmocka_unit_test(test_head),
        cmocka_unit_test(test_errors),       cmocka_unit_test(test_errors_in_one_go),
        cmocka_unit_test(test_dates),        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_sum_is_exact), cmocka_unit_test(test_sum_overflow),
        cmocka_unit_test(test_uniform),      cmocka_unit_test(test_batches),
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_documentation),
        cmocka_unit_test(test_shipped),      cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

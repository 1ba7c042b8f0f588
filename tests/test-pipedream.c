/* PipeDream profiles: what becomes of small graphs, derived by hand; of random ones, compared with
 * a slow reference; of measured ones, where they are present. */
#include "sim/model/foreign/pipedream.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Where the project's folders are, from the test's working directory. */
#ifndef CS_SOURCE_ROOT
#define CS_SOURCE_ROOT "."
#endif

/* A node: id, description, forward and backward in ms, activation and weights in bytes. */
#define NODE(id, text, f, b, out, w)                                                               \
    id " -- " text " -- forward_compute_time=" f ", backward_compute_time=" b                      \
       ", activation_size=" out ", parameter_size=" w "\n"
#define IN(id, out)      NODE(id, "Input0", "5", "0", out, "0")
#define WORK(id, f, out) NODE(id, "Work(1)", f, f, out, "0")
#define IDLE(id, out)    NODE(id, "__getitem__(1)", "0.000", "0.000", out, "0.000")
#define EDGE(from, to)   "\t" from " -- " to "\n"

static const cs_pipedream_options options = {
    .name = "net", .batch_size = 4, .hardware = "abacus", .date = "2026-11-21"};

static cs_status parse(const char *text, cs_model *model, cs_pipedream_report *report,
                       cs_error *error)
{
    cs_error_init(error);
    return cs_pipedream_parse("g.txt", text, strlen(text), &options, model, report, error);
}

/* One line per layer, times in ms. */
static void chain_text(const cs_model *model, char *text, size_t size)
{
    size_t end = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < model->n_layers && end < size; i++) {
        const cs_layer *layer = &model->layers[i];
        end += (size_t)snprintf(
            text + end, size - end,
            "%s: f %g bi %g bw %g w %" PRId64 " out %" PRId64 " kept %" PRId64 "\n", layer->name,
            (double)layer->forward / 1e9, (double)layer->backward_input / 1e9,
            (double)layer->backward_weight / 1e9, layer->weight_bytes, layer->output_bytes,
            layer->kept_bytes);
    }
}

static const struct {
    const char *name;
    const char *graph;
    int64_t input;
    const char *chain;
} chains[] = {
    {"a chain, backward in halves where there are weights",
     IN("i", "9") NODE("a", "Conv2d(3, 64)", "1.5", "4", "10.000", "7") WORK("b", "2", "20")
         EDGE("i", "a") EDGE("a", "b"),
     9,
     "a Conv2d: f 1.5 bi 2 bw 2 w 7 out 10 kept 9\n"
     "b Work: f 2 bi 2 bw 0 w 0 out 20 kept 10\n"},
    {"a tab in a description, which a model's name may not have",
     WORK("a", "1", "10") NODE("b", "Conv\t2d\t(3)", "2", "2", "20", "0") EDGE("a", "b"), 0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "b Conv 2d : f 2 bi 2 bw 0 w 0 out 20 kept 10\n"},
    {"lines in another order",
     EDGE("a", "b") WORK("b", "2", "20") EDGE("i", "a") WORK("a", "1", "10") IN("i", "9"), 9,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 9\n"
     "b Work: f 2 bi 2 bw 0 w 0 out 20 kept 10\n"},
    /* All paths meet at a and at d. b, c and d read a (10, once), b (20) and c (30). */
    {"a diamond",
     WORK("a", "1", "10") WORK("b", "2", "20") WORK("c", "3", "30") WORK("d", "4", "40")
         EDGE("a", "b") EDGE("a", "c") EDGE("b", "d") EDGE("c", "d"),
     0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "b to d (3 nodes): f 9 bi 9 bw 0 w 0 out 40 kept 60\n"},
    /* a -> (b -> (c, d) -> e, f) -> g -> h: e is where the inner branches meet, but f goes past it.
     * Read from b to g: a 1, b 2, c 4, d 8, e 16, f 32. */
    {"nested branches",
     WORK("a", "1", "1") WORK("b", "1", "2") WORK("c", "1", "4") WORK("d", "1", "8")
         WORK("e", "1", "16") WORK("f", "1", "32") WORK("g", "1", "64") WORK("h", "1", "128")
             EDGE("a", "b") EDGE("b", "c") EDGE("b", "d") EDGE("c", "e") EDGE("d", "e")
                 EDGE("a", "f") EDGE("f", "g") EDGE("e", "g") EDGE("g", "h"),
     0,
     "a Work: f 1 bi 1 bw 0 w 0 out 1 kept 0\n"
     "b to g (6 nodes): f 6 bi 6 bw 0 w 0 out 64 kept 63\n"
     "h Work: f 1 bi 1 bw 0 w 0 out 128 kept 64\n"},
    /* Two residual blocks side by side share b: it ends one and starts the other. */
    {"two blocks in a row",
     WORK("a", "1", "1") WORK("b1", "1", "2") WORK("b", "1", "4") WORK("c1", "1", "8")
         WORK("c", "1", "16") EDGE("a", "b1") EDGE("a", "b") EDGE("b1", "b") EDGE("b", "c1")
             EDGE("b", "c") EDGE("c1", "c"),
     0,
     "a Work: f 1 bi 1 bw 0 w 0 out 1 kept 0\n"
     "b1 to b (2 nodes): f 2 bi 2 bw 0 w 0 out 4 kept 3\n"
     "c1 to c (2 nodes): f 2 bi 2 bw 0 w 0 out 16 kept 12\n"},
    /* Both are read by a and b before c, which all paths share. */
    {"two inputs",
     IN("i", "100") IN("j", "200") WORK("a", "1", "10") WORK("b", "1", "20") WORK("c", "1", "30")
         WORK("d", "1", "40") EDGE("i", "a") EDGE("j", "b") EDGE("a", "c") EDGE("b", "c")
             EDGE("c", "d"),
     300,
     "a to c (3 nodes): f 3 bi 3 bw 0 w 0 out 30 kept 330\n"
     "d Work: f 1 bi 1 bw 0 w 0 out 40 kept 30\n"},
    /* The path i, c leads past a and b. */
    {"an input read again later",
     IN("i", "100") WORK("a", "1", "10") WORK("b", "1", "20") WORK("c", "1", "30") WORK(
         "d", "1", "40") EDGE("i", "a") EDGE("a", "b") EDGE("b", "c") EDGE("i", "c") EDGE("c", "d"),
     100,
     "a to c (3 nodes): f 3 bi 3 bw 0 w 0 out 30 kept 130\n"
     "d Work: f 1 bi 1 bw 0 w 0 out 40 kept 30\n"},
    /* The same without data: nothing goes past a and b. */
    {"an input without activation read again later",
     IN("i", "0.0") WORK("a", "1", "10") WORK("b", "1", "20") EDGE("i", "a") EDGE("a", "b")
         EDGE("i", "b"),
     0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "b Work: f 1 bi 1 bw 0 w 0 out 20 kept 10\n"},
    {"a second source that is not an input",
     WORK("a", "1", "10") WORK("b", "1", "20") WORK("s", "1", "3") WORK("c", "1", "30")
         EDGE("a", "b") EDGE("b", "c") EDGE("s", "c"),
     0, "a to c (4 nodes): f 4 bi 4 bw 0 w 0 out 30 kept 33\n"},
    {"an input that no one reads",
     IN("i", "100") IN("j", "200") WORK("a", "1", "10") EDGE("j", "a"), 200,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 200\n"},
    {"weights make a layer of an input",
     NODE("i", "InputEmbedding(9)", "1", "1", "10", "8") WORK("a", "1", "20") EDGE("i", "a"), 0,
     "i InputEmbedding: f 1 bi 0.5 bw 0.5 w 8 out 10 kept 0\n"
     "a Work: f 1 bi 1 bw 0 w 0 out 20 kept 10\n"},
    {"an input that reads is none", WORK("a", "1", "10") IN("i", "20") EDGE("a", "i"), 0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "i Input0: f 5 bi 0 bw 0 w 0 out 20 kept 10\n"},
    /* Nothing is an end for all paths: b and c both are. */
    {"two outputs",
     WORK("a", "1", "10") WORK("b", "1", "20") WORK("c", "1", "30") EDGE("a", "b") EDGE("a", "c"),
     0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "b to c (2 nodes): f 2 bi 2 bw 0 w 0 out 50 kept 10\n"},
    /* An auxiliary output leaves after a: the path a, x ends without b and c. */
    {"an output from the middle",
     WORK("a", "1", "10") WORK("x", "1", "5") WORK("b", "1", "20") WORK("c", "1", "30")
         EDGE("a", "x") EDGE("a", "b") EDGE("b", "c"),
     0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "x to c (3 nodes): f 3 bi 3 bw 0 w 0 out 35 kept 30\n"},
    /* x does nothing and goes unused. It stays with a and keeps nothing. */
    {"a dead end",
     WORK("a", "1", "10") IDLE("x", "5") WORK("b", "1", "20") EDGE("a", "x") EDGE("a", "b"), 0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "b Work: f 1 bi 1 bw 0 w 0 out 20 kept 10\n"},
    {"a long dead end",
     WORK("a", "1", "10") IDLE("x", "5") IDLE("y", "5") WORK("b", "1", "20") EDGE("a", "x")
         EDGE("x", "y") EDGE("a", "b"),
     0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "b Work: f 1 bi 1 bw 0 w 0 out 20 kept 10\n"},
    /* x reads a and b, so it holds on to a past b. */
    {"an idle node that joins two is not a dead end",
     WORK("a", "1", "10") WORK("b", "1", "20") IDLE("x", "5") WORK("c", "1", "30") EDGE("a", "b")
         EDGE("a", "x") EDGE("b", "x") EDGE("b", "c"),
     0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "b to c (3 nodes): f 2 bi 2 bw 0 w 0 out 35 kept 30\n"},
    {"an idle node is the only output", WORK("a", "1", "10") IDLE("x", "5") EDGE("a", "x"), 0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "x __getitem__: f 0 bi 0 bw 0 w 0 out 5 kept 10\n"},
    /* A state that is empty when it starts is read everywhere, and holds nothing together. */
    {"empty nodes",
     WORK("a", "1", "10") IDLE("h", "0.0") IDLE("g", "0") WORK("b", "1", "20") WORK("c", "1", "30")
         EDGE("a", "b") EDGE("h", "g") EDGE("g", "b") EDGE("g", "c") EDGE("b", "c"),
     0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "b Work: f 1 bi 1 bw 0 w 0 out 20 kept 10\n"
     "c Work: f 1 bi 1 bw 0 w 0 out 30 kept 20\n"},
    /* a hands 10 to both; s hands its 4 to v. */
    {"a side node",
     WORK("a", "1", "10") NODE("s", "Size(0)", "0", "0", "4", "0")
         NODE("v", "View(-1)", "0", "0", "10", "0") WORK("b", "1", "20") EDGE("a", "s")
             EDGE("a", "v") EDGE("s", "v") EDGE("v", "b"),
     0,
     "a Work: f 1 bi 1 bw 0 w 0 out 10 kept 0\n"
     "s to v (2 nodes): f 0 bi 0 bw 0 w 0 out 10 kept 14\n"
     "b Work: f 1 bi 1 bw 0 w 0 out 20 kept 10\n"},
    {"several outputs of one node",
     WORK("a", "1", "[10.0; 1.0; 0.5]") WORK("b", "1", "[20]") EDGE("a", "b"), 0,
     "a Work: f 1 bi 1 bw 0 w 0 out 12 kept 0\n" /* 10 + 1 + a part of a byte */
     "b Work: f 1 bi 1 bw 0 w 0 out 20 kept 12\n"},
    {"two graphs in one file",
     WORK("a", "1", "10") WORK("b", "1", "20") WORK("x", "1", "1") WORK("y", "1", "2")
         EDGE("a", "b") EDGE("x", "y"),
     0, "a to y (4 nodes): f 4 bi 4 bw 0 w 0 out 22 kept 11\n"},
    {"odd descriptions, stages, blank lines, other line ends",
     "\r\n" NODE("n1", "A -- b, c=1 (d -- e)", "1", "0", "10",
                 "0") "  \n"
                      "n2 -- B(\xc3\xa9) -- forward_compute_time=1e-3, backward_compute_time=2E+0,"
                      " activation_size=1.5e2, parameter_size=0 -- stage_id=12\r\n"
                      "\tn1 -- n2\r",
     0,
     "n1 A -- b, c=1 : f 1 bi 0 bw 0 w 0 out 10 kept 0\n"
     "n2 B: f 0.001 bi 2 bw 0 w 0 out 150 kept 10\n"},
};

static void test_chains(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); i++) {
        cs_model model;
        cs_error error;
        char text[4096];
        print_message("  %s\n", chains[i].name);
        if (parse(chains[i].graph, &model, NULL, &error) != CS_OK)
            fail_msg("%s", error.text);
        chain_text(&model, text, sizeof(text));
        assert_string_equal(text, chains[i].chain);
        assert_int_equal(model.input_bytes, chains[i].input);
        cs_model_finish(&model);
    }
}

/* One ms is 10^9 ps. */
static const struct {
    const char *ms;
    int64_t ps;
} times[] = {
    {"4.446", 4446000000},
    {"0.000000001", 1},
    {"0.0000000004", 0},
    {"0.0000000005", 1}, /* halves up */
    {"0.00000000049999999999999999999999999999999999999999999999999999999", 0},
    {"0.00000000050000000000000000000000000000000000000000000000000000001", 1},
    {"1.0000000004999999", 1000000000},
    {"1e-9", 1},
    {"1e-999999999999999999999", 0},
    {"0e999999999999999999999", 0},
    {"0.0", 0},
    /* As a double: 8007199254740993 ps would end in ...992 already, and twice rounded it may be
       off. */
    {"8007199.254740993", 8007199254740993},
    {"9223372036.854775807", INT64_MAX},
    {"9223372036.8547758074", INT64_MAX},
    {"0.00009223372036854775807e14", INT64_MAX},
};

static void test_times(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        char text[512];
        cs_model model;
        cs_error error;
        snprintf(text, sizeof(text), NODE("a", "Work", "%s", "0", "1", "0"), times[i].ms);
        if (parse(text, &model, NULL, &error) != CS_OK)
            fail_msg("%s", error.text);
        if (model.layers[0].forward != times[i].ps)
            fail_msg("%s ms: got %" PRId64 " ps, expected %" PRId64, times[i].ms,
                     model.layers[0].forward, times[i].ps);
        cs_model_finish(&model);
    }
}

/* 0.000000007 ms are 7 ps: 3 for the weights, the odd one for the input. */
static void test_odd_backward(void **state)
{
    (void)state;
    cs_model model;
    cs_error error;
    assert_int_equal(parse(NODE("a", "W", "0", "0.000000007", "1", "1"), &model, NULL, &error), 0);
    assert_int_equal(model.layers[0].backward_weight, 3);
    assert_int_equal(model.layers[0].backward_input, 4);
    cs_model_finish(&model);
}

#define METRICS                                                                                    \
    "forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size="
#define A WORK("a", "1", "1")
#define B WORK("b", "1", "1")

static const struct {
    const char *name;
    const char *graph;
    const char *message; /* is part of the messages */
} errors[] = {
    {"an empty file", "", "g.txt:1: no nodes"},
    {"blank lines only", "\n \n\r\n", "g.txt:1: no nodes"},
    {"edges only", EDGE("a", "b"), "g.txt:1: no nodes"},
    {"inputs only", IN("i", "1"), "g.txt:1: no layers"},
    {"only empty nodes", IDLE("h", "0") IDLE("g", "0") EDGE("h", "g"), "no layers"},
    {"no such node", A EDGE("a", "c"), "g.txt:2: no node is called \"c\""},
    {"neither node", A EDGE("c", "d"),
     "g.txt:2: no node is called \"c\"\n"
     "g.txt:2: no node is called \"d\""},
    {"a node twice", A B WORK("a", "2", "2"), "g.txt:3: node \"a\" is already on line 1"},
    {"an edge twice", A B EDGE("a", "b") EDGE("a", "b"), "g.txt:4: this edge is already on line 3"},
    {"an edge to itself", A EDGE("a", "a"), "g.txt:2: node \"a\" must not read its own output"},
    {"a cycle of two", A B EDGE("a", "b") EDGE("b", "a"), "this edge is part of a cycle"},
    /* z leads out of the cycle and x into it; neither edge of theirs is to blame. */
    {"a cycle in the middle",
     WORK("z", "1", "1") WORK("x", "1", "1") A B WORK("c", "1", "1") EDGE("b", "z") EDGE("x", "a")
         EDGE("a", "b") EDGE("b", "c") EDGE("c", "a"),
     "this edge is part of a cycle"},
    {"junk", A "hello\n", "g.txt:2: must be a node"},
    {"one separator", A "b -- Work\n", "g.txt:2: must be a node"},
    {"an edge without a tab", A B "a -- b\n", "g.txt:3: must be a node"},
    {"an edge with one end", A "\ta\n", "g.txt:2: must be a node"},
    {"an edge with three ends", A B "\ta -- b -- a\n", "g.txt:3: must be a node"},
    {"an edge to nothing", A "\ta -- \n", "g.txt:2: must be a node"},
    {"a space in an id", "a b -- Work -- " METRICS "0\n", "g.txt:1: must be a node"},
    {"no id", " -- Work -- " METRICS "0\n", "g.txt:1: must be a node"},
    {"a stage that is not a number", "a -- Work -- " METRICS "0 -- stage_id=x\n",
     "g.txt:1: must be a node"},
    {"an empty stage", "a -- Work -- " METRICS "0 -- stage_id=\n", "g.txt:1: must be a node"},
    {"a control character", "a -- W\x01 -- " METRICS "0\n", "g.txt:1: must be UTF-8"},
    {"one of two bytes", "a -- W\xc2\x85 -- " METRICS "0\n", "g.txt:1: must be UTF-8"},
    {"one that turns the line", "a -- W\xe2\x80\xae -- " METRICS "0\n", "g.txt:1: must be UTF-8"},
    {"not UTF-8", "a -- W\xff -- " METRICS "0\n", "g.txt:1: must be UTF-8"},
    {"a number missing",
     "a -- Work -- forward_compute_time=1, activation_size=1, parameter_size=1\n",
     "g.txt:1: missing backward_compute_time=MS (got \"activation_size=1\" in its place)"},
    {"the last number missing",
     "a -- Work -- forward_compute_time=1, backward_compute_time=1, activation_size=1\n",
     "g.txt:1: missing parameter_size=BYTES (got \"\" in its place)"},
    {"a number empty", NODE("a", "Work", "", "1", "1", "1"),
     "g.txt:1: forward_compute_time must be a number >= 0 (got \"\")"},
    {"a negative number", NODE("a", "Work", "1", "-1.5", "1", "1"),
     "g.txt:1: backward_compute_time must be a number >= 0 (got \"-1.5\")"},
    {"not a number", NODE("a", "Work", "nan", "1", "1", "1"),
     "g.txt:1: forward_compute_time must be a number >= 0 (got \"nan\")"},
    {"infinite", NODE("a", "Work", "1", "inf", "1", "1"), "(got \"inf\")"},
    {"hexadecimal", NODE("a", "Work", "1", "1", "0x10", "1"), "(got \"0x10\")"},
    {"a number and more", NODE("a", "Work", "1", "1", "1", "1x"), "(got \"1x\")"},
    {"a fifth number", NODE("a", "Work", "1", "1", "1", "1, x=2"), "(got \"1, x=2\")"},
    {"a list of times", NODE("a", "Work", "[1; 2]", "1", "1", "1"), "(got \"[1; 2]\")"},
    {"an empty list", NODE("a", "Work", "1", "1", "[]", "1"), "activation_size must be"},
    {"an open list", NODE("a", "Work", "1", "1", "[1; 2", "1"), "activation_size must be"},
    {"a list and more", NODE("a", "Work", "1", "1", "[1; 2]3", "1"), "activation_size must be"},
    {"a list of words", NODE("a", "Work", "1", "1", "[1; b]", "1"), "(got \"b\")"},
    {"too long a time", NODE("a", "Work", "9223372036.8547758075", "1", "1", "1"),
     "forward_compute_time is too large: must be below 2^63 ps"},
    {"too many bytes", NODE("a", "Work", "1", "1", "1", "9223372036854775808"),
     "parameter_size is too large: must be below 2^63 bytes"},
    {"far too many", NODE("a", "Work", "1", "1", "1", "1e999999999999999999999"), "too large"},
    {"too many in a list", NODE("a", "Work", "1", "1", "[9223372036854775807; 1]", "1"),
     "activation_size is too large"},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        cs_model model = {.n_layers = 12345};
        cs_pipedream_report report = {.n_nodes = 54321};
        cs_error error;
        print_message("  %s\n", errors[i].name);
        assert_int_equal(parse(errors[i].graph, &model, &report, &error), CS_INVALID);
        assert_int_equal(model.n_layers, 12345); /* untouched */
        assert_int_equal(report.n_nodes, 54321);
        if (!strstr(error.text, errors[i].message))
            fail_msg("got:\n%s\nbut expected in it:\n%s", error.text, errors[i].message);
    }
}

/* Of the lines 6 to 10, with a cycle in the middle, 8 to 10 are the cycle. */
static void test_cycle_names_its_edge(void **state)
{
    (void)state;
    cs_model model;
    cs_error error;
    unsigned int line;
    const char *graph = WORK("z", "1", "1") WORK("x", "1", "1") A B WORK("c", "1", "1")
        EDGE("b", "z") EDGE("x", "a") EDGE("a", "b") EDGE("b", "c") EDGE("c", "a");
    assert_int_equal(parse(graph, &model, NULL, &error), CS_INVALID);
    assert_int_equal(sscanf(error.text, "g.txt:%u:", &line), 1);
    assert_in_range(line, 8, 10);
}

static void test_errors_in_one_go(void **state)
{
    (void)state;
    cs_model model;
    cs_error error;
    assert_int_equal(parse("x\n" A NODE("b", "W", "-1", "1", "1", "1") "y\n", &model, NULL, &error),
                     CS_INVALID);
    assert_int_equal(error.count, 3);
    assert_int_equal(parse(A A A EDGE("a", "b") EDGE("a", "a"), &model, NULL, &error), CS_INVALID);
    assert_int_equal(error.count, 4);
}

#define HUGE_TIME "9000000000" /* ms; two of them are more than 2^63 ps */

static void test_overflow(void **state)
{
    (void)state;
    cs_model model;
    cs_error error;
    const char *group = WORK("a", HUGE_TIME, "1") WORK("b", HUGE_TIME, "1");
    assert_int_equal(parse(group, &model, NULL, &error), CS_OVERFLOW);
    const char *inputs = NODE("i", "Input0", HUGE_TIME, "0", "0", "0")
        NODE("j", "Input1", HUGE_TIME, "0", "0", "0") A;
    assert_int_equal(parse(inputs, &model, NULL, &error), CS_OVERFLOW);
    const char *kept = WORK("a", "1", "9223372036854775807") WORK("b", "1", "1") WORK("c", "1", "1")
        EDGE("a", "c") EDGE("b", "c");
    assert_int_equal(parse(kept, &model, NULL, &error), CS_OVERFLOW);
}

static void test_report(void **state)
{
    (void)state;
    cs_model model;
    cs_pipedream_report report;
    cs_error error;
    const char *graph = IN("i", "9") WORK("a", "1", "10") IDLE("x", "5") WORK("b", "2", "20")
        WORK("c", "3", "30") WORK("d", "4", "40") EDGE("i", "a") EDGE("a", "x") EDGE("a", "b")
            EDGE("a", "c") EDGE("b", "d") EDGE("c", "d");
    assert_int_equal(parse(graph, &model, &report, &error), CS_OK);
    assert_int_equal(report.n_nodes, 6);
    assert_int_equal(report.n_edges, 6);
    assert_int_equal(report.n_layers, 2);
    assert_int_equal(report.n_inputs, 1);
    assert_int_equal(report.skipped, 5 * INT64_C(1000000000));
    assert_int_equal(report.n_groups, 2);
    assert_int_equal(report.groups[0].layer, 0); /* a, and x which hangs off it */
    assert_int_equal(report.groups[0].n_nodes, 2);
    assert_string_equal(report.groups[0].first, "a");
    assert_string_equal(report.groups[0].last, "a");
    assert_int_equal(report.groups[1].layer, 1);
    assert_int_equal(report.groups[1].n_nodes, 3);
    assert_string_equal(report.groups[1].first, "b");
    assert_string_equal(report.groups[1].last, "d");
    assert_string_equal(model.name, "net");
    assert_int_equal(model.batch_size, 4);
    assert_string_equal(model.provenance.source, "PipeDream profile g.txt");
    assert_string_equal(model.provenance.hardware, "abacus");
    assert_string_equal(model.provenance.date, "2026-11-21");
    cs_model_finish(&model);
}

static const struct {
    const char *path;
    const char *name;
} names[] = {
    {"vgg16.txt", "vgg16"},
    {"graph.txt", "graph"},
    {"profiles/vgg16/graph.txt", "vgg16"},
    {"vgg16/graph.txt", "vgg16"},
    {"./graph.txt", "graph"},
    {"../graph.txt", "graph"},
    {"/graph.txt", "graph"},
    {"a/b.profile", "b.profile"},
    {"a/.txt", ".txt"},
    {"a/", "pipedream"},
    {"", "pipedream"},
    {"v1.txt/graph.txt", "v1"},
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        cs_model model;
        cs_error error;
        cs_error_init(&error);
        cs_pipedream_options unnamed = {.batch_size = 1, .date = "2026-11-21"};
        assert_int_equal(
            cs_pipedream_parse(names[i].path, A, strlen(A), &unnamed, &model, NULL, &error), CS_OK);
        assert_string_equal(model.name, names[i].name);
        assert_string_equal(model.provenance.hardware, "not stated");
        cs_model_finish(&model);
    }
}

static void test_options(void **state)
{
    (void)state;
    cs_model model;
    cs_error error;
    cs_error_init(&error);
    cs_pipedream_options wrong = options;
    wrong.batch_size = 0;
    assert_int_equal(cs_pipedream_parse("g", A, strlen(A), &wrong, &model, NULL, &error), CS_USAGE);
    wrong = options;
    wrong.date = "today";
    assert_int_equal(cs_pipedream_parse("g", A, strlen(A), &wrong, &model, NULL, &error), CS_USAGE);
    wrong.date = NULL;
    assert_int_equal(cs_pipedream_parse("g", A, strlen(A), &wrong, &model, NULL, &error), CS_USAGE);
    assert_int_not_equal(cs_pipedream_load("no/such/graph.txt", &options, &model, NULL, &error),
                         CS_OK);
    assert_non_null(strstr(error.text, "no/such/graph.txt"));
}

/* ---- random graphs against a slow reference ---- */

enum { MOST_NODES = 40 };

typedef struct random_graph {
    uint32_t n;
    bool edge[MOST_NODES][MOST_NODES]; /* from the lower to the higher number only: no cycles */
} random_graph;

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

static random_graph make_graph(uint64_t *seed)
{
    random_graph graph = {.n = 1 + draw(seed, MOST_NODES)};
    uint32_t reach = 1 + draw(seed, 5), odds = 1 + draw(seed, 4);
    for (uint32_t i = 0; i < graph.n; i++)
        for (uint32_t k = i + 1; k < graph.n && k <= i + reach; k++)
            graph.edge[i][k] = k == i + 1 ? draw(seed, 12) > 0 : draw(seed, 5) < odds;
    return graph;
}

/* Node i takes 2^i ps, so that a layer's forward time is the set of its nodes. Written backwards.
 */
static void write_graph(const random_graph *graph, char *text, size_t size)
{
    size_t end = 0;
    for (uint32_t i = graph->n; i-- > 0;) {
        for (uint32_t k = 0; k < graph->n; k++)
            if (graph->edge[i][k])
                end += (size_t)snprintf(text + end, size - end, EDGE("n%u", "n%u"), i, k);
        end += (size_t)snprintf(text + end, size - end,
                                NODE("n%u", "Work", "%" PRIu64 "e-9", "0", "1", "0"), i,
                                UINT64_C(1) << i);
    }
}

/* The set of nodes reachable from `from` (a set) without passing `without`. */
static uint64_t reach_from(const random_graph *graph, uint64_t from, uint32_t without)
{
    uint64_t reached = from & ~(UINT64_C(1) << without);
    for (uint32_t i = 0; i < graph->n; i++)
        for (uint32_t k = 0; (reached >> i & 1) && k < graph->n; k++)
            if (graph->edge[i][k] && k != without)
                reached |= UINT64_C(1) << k;
    return reached;
}

static uint64_t sources(const random_graph *graph, bool reversed)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < graph->n; i++) {
        bool any = false;
        for (uint32_t k = 0; k < graph->n; k++)
            any |= reversed ? graph->edge[i][k] : graph->edge[k][i];
        set |= any ? 0 : UINT64_C(1) << i;
    }
    return set;
}

/* By the definition: a node is an articulation point if no output is reachable without it. A node's
 * layer is the number of other articulation points with a path to it. */
static void reference_layers(const random_graph *graph, uint64_t layers[MOST_NODES])
{
    uint32_t layer[MOST_NODES] = {0};
    for (uint32_t v = 0; v < graph->n; v++) {
        if (reach_from(graph, sources(graph, false), v) & sources(graph, true))
            continue;
        uint64_t after = reach_from(graph, UINT64_C(1) << v, MOST_NODES);
        for (uint32_t i = 0; i < graph->n; i++)
            layer[i] += i != v && (after >> i & 1);
    }
    for (uint32_t i = 0; i < graph->n; i++)
        layers[layer[i]] |= UINT64_C(1) << i;
}

static void test_random_graphs(void **state)
{
    (void)state;
    enum { TRIALS = 3000, TEXT_BYTES = 64 << 10 };
    char *text = malloc(TEXT_BYTES);
    assert_non_null(text);
    uint64_t seed = 1;
    for (int i = 0; i < TRIALS; i++) {
        random_graph graph = make_graph(&seed);
        uint64_t layers[MOST_NODES] = {0};
        cs_model model;
        cs_error error;
        write_graph(&graph, text, TEXT_BYTES);
        reference_layers(&graph, layers);
        if (parse(text, &model, NULL, &error) != CS_OK)
            fail_msg("%s\n%s", error.text, text);
        for (uint32_t k = 0; k < MOST_NODES; k++) {
            uint64_t got = k < model.n_layers ? (uint64_t)model.layers[k].forward : 0;
            if (got != layers[k])
                fail_msg("layer %u: got %" PRIx64 ", expected %" PRIx64 "\n%s", k, got, layers[k],
                         text);
        }
        cs_model_finish(&model);
    }
    free(text);
}

/* ---- measured profiles ---- */

/* The totals were taken from the files by a few lines of Python with exact decimals, which split
 * the lines at " -- ", ", " and "; ": times over the nodes that are not "Input...", in us; half of
 * the backward time of the nodes with weights; weights over all nodes; kept: the activations of all
 * nodes that are read by a node other than the dead ends. The layers follow from the networks:
 *
 *   VGG-16: 13 convolutions with rectifiers, 5 poolings; Size and View as one layer; 3 dense
 *   layers, 2 of them with rectifier and dropout: 26 + 5 + 1 + 7.
 *
 *   ResNet-50: 4 in the stem; 16 blocks up to their addition, each followed by a rectifier;
 *   pooling; Size and View as one layer; a dense layer: 4 + 32 + 1 + 1 + 1. The first block has
 *   3 + 1 convolutions, 3 + 1 normalizations, 2 rectifiers and the addition.
 *
 *   GNMT: the decoder's embedding goes past the encoder, the attention's context past the decoder's
 *   layers: only the attention, the last addition and the classifier are on all paths. Encoder and
 *   attention are 22 nodes (2 of them empty, 5 dead ends), the decoder is 22. */
static const struct {
    const char *name;
    uint32_t n_nodes, n_edges, n_inputs, n_layers, n_groups;
    int64_t skipped_us, forward_us, backward_us, half_backward_ps;
    int64_t input, weights, kept, output;
    uint32_t first_group, first_group_nodes;
} measured[] = {
    {"vgg16", 41, 41, 1, 39, 1, 17972, 233902, 438633, INT64_C(202321000000), 77070336, 553430176,
     14758707204, 512000, 31, 2},
    {"resnet50", 177, 193, 1, 39, 17, 18962, 182488, 260931, INT64_C(114537000000), 77070336,
     102228128, 19308216324, 512000, 4, 11},
    {"gnmt", 48, 58, 3, 3, 2, 0, 33533, 55883, INT64_C(27445000000), 0, 775063808, 207644672,
     194437120, 0, 22},
};

static void check_measured(size_t i, const cs_model *model, const cs_pipedream_report *report)
{
    const int64_t us = INT64_C(1000000);
    cs_layer_sum sum;
    assert_int_equal(cs_model_sum(model, 0, model->n_layers, 128, &sum, NULL), CS_OK);
    assert_int_equal(report->n_nodes, measured[i].n_nodes);
    assert_int_equal(report->n_edges, measured[i].n_edges);
    assert_int_equal(report->n_inputs, measured[i].n_inputs);
    assert_int_equal(report->n_layers, measured[i].n_layers);
    assert_int_equal(report->n_groups, measured[i].n_groups);
    assert_int_equal(report->groups[0].layer, measured[i].first_group);
    assert_int_equal(report->groups[0].n_nodes, measured[i].first_group_nodes);
    assert_int_equal(report->skipped, measured[i].skipped_us * us);
    assert_int_equal(sum.forward, measured[i].forward_us * us);
    assert_int_equal(sum.backward_input + sum.backward_weight, measured[i].backward_us * us);
    assert_int_equal(sum.backward_weight, measured[i].half_backward_ps);
    assert_int_equal(sum.input_bytes, measured[i].input);
    assert_int_equal(sum.weight_bytes, measured[i].weights);
    assert_int_equal(sum.kept_bytes, measured[i].kept);
    assert_int_equal(sum.output_bytes, measured[i].output);
}

static void test_measured(void **state)
{
    (void)state;
    const char *folder = CS_SOURCE_ROOT "/../shared/profiles/pipedream";
    if (access(folder, R_OK) != 0) {
        print_message("  skipped: no measured profiles in %s\n", folder);
        skip();
    }
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        char path[256];
        cs_model model;
        cs_pipedream_report report;
        cs_error error;
        cs_error_init(&error);
        cs_pipedream_options unnamed = {.batch_size = 128, .date = "2026-11-21"};
        snprintf(path, sizeof(path), "%s/%s/graph.txt", folder, measured[i].name);
        print_message("  %s\n", path);
        if (cs_pipedream_load(path, &unnamed, &model, &report, &error) != CS_OK)
            fail_msg("%s", error.text);
        assert_string_equal(model.name, measured[i].name);
        check_measured(i, &model, &report);
        cs_model_finish(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_odd_backward),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_cycle_names_its_edge),
        cmocka_unit_test(test_errors_in_one_go),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How old the weights were, on small traces made by hand: what each task read is chosen here, and
 * the figures follow from it in the comments. */
#include "sim/core/analysis/staleness.h"
#include "sim/core/graph/builder.h"
#include "tests/expect.h"

#include <math.h>

enum { MICRO_BATCHES = 2, MOST_TASKS = 32 };

/* A task and its trace; tasks take a second, one after another. */
typedef struct row {
    cs_kind kind;
    uint32_t slot, batch, micro;
    uint32_t version; /* read; made by an update */
    bool updates;
} row;

typedef struct small_trace {
    cs_graph graph;
    cs_trace trace;
    cs_span spans[MOST_TASKS];
    uint32_t versions[MOST_TASKS];
    cs_slot_record slots[2];
    cs_staleness found;
} small_trace;

/* Slot s is stage s, or stage 0 if there are two replicas, on device s. Tasks from `end` on did not
 * start. A transfer goes from the other device to its slot's device. */
static void study_on(small_trace *made, bool replicas, const row *rows, uint32_t n,
                     uint32_t n_batches, uint32_t end)
{
    cs_error error;
    cs_error_init(&error);
    *made = (small_trace){0};
    cs_builder *builder = cs_builder_create(2, 2, MICRO_BATCHES, n_batches);
    assert_non_null(builder);
    for (uint32_t s = 0; s < 2; s++)
        (void)cs_builder_slot(builder, replicas ? 0 : s, s, 1);
    for (uint32_t i = 0; i < n; i++) {
        const bool sent = rows[i].kind == CS_TRANSFER;
        const cs_class cls = {.kind = (uint8_t)rows[i].kind,
                              .origin = (uint8_t)rows[i].kind,
                              .updates = rows[i].updates,
                              .stage = replicas ? 0 : rows[i].slot,
                              .device = sent ? 1 - rows[i].slot : rows[i].slot,
                              .peer = sent ? rows[i].slot : CS_NONE,
                              .weights = rows[i].slot};
        (void)cs_builder_task(builder, cs_builder_class(builder, &cls),
                              rows[i].batch * MICRO_BATCHES + rows[i].micro);
        const bool ran = i < end;
        made->spans[i] = ran ? (cs_span){i, i + 1} : (cs_span){-1, -1};
        made->versions[i] = ran ? rows[i].version : CS_NONE;
        made->slots[rows[i].slot].made += ran && (rows[i].updates || rows[i].kind == CS_UPDATE);
    }
    assert_int_equal(cs_builder_finish(builder, &made->graph, &error), CS_OK);
    cs_builder_destroy(builder);
    made->slots[0].peak_live = made->slots[1].peak_live = 1;
    made->trace = (cs_trace){.n_tasks = n,
                             .n_slots = 2,
                             .spans = made->spans,
                             .versions = made->versions,
                             .slots = made->slots};
    assert_int_equal(cs_staleness_find(&made->graph, &made->trace, &made->found, &error), CS_OK);
}

/* The mean delay of a slot, or with CS_NONE of all. NaN is equal to itself. */
static void expect_mean(const char *what, double expected, const small_trace *made, uint32_t slot)
{
    const double found = slot != CS_NONE ? cs_staleness_mean_of_slot(&made->found.slots[slot])
                                         : cs_staleness_mean(&made->found, CS_NONE);
    if (found != expected && !(isnan(found) && isnan(expected)))
        fail_msg("%s: mean delay %g, not %g", what, found, expected);
}

static void study(small_trace *made, const row *rows, uint32_t n, uint32_t n_batches, uint32_t end)
{
    study_on(made, false, rows, n, n_batches, end);
}

static void finish(small_trace *made)
{
    cs_staleness_finish(&made->found);
    cs_graph_finish(&made->graph);
}

/* Two mini-batches of two micro-batches, flushed in between: no delay anywhere, each mini-batch
 * uses the version of the previous one, and they are one sequence. */
static void test_synchronous(void **state)
{
    (void)state;
    static const row rows[] = {
        {CS_FORWARD, 0, 0, 0, 0, false},  {CS_FORWARD, 0, 0, 1, 0, false},
        {CS_FORWARD, 1, 0, 0, 0, false},  {CS_FORWARD, 1, 0, 1, 0, false},
        {CS_BACKWARD, 1, 0, 0, 0, false}, {CS_BACKWARD, 1, 0, 1, 0, false},
        {CS_UPDATE, 1, 0, 0, 1, false},   {CS_BACKWARD, 0, 0, 0, 0, false},
        {CS_BACKWARD, 0, 0, 1, 0, false}, {CS_UPDATE, 0, 0, 0, 1, false},
        {CS_FORWARD, 0, 1, 0, 1, false},  {CS_FORWARD, 1, 1, 0, 1, false},
        {CS_BACKWARD, 1, 1, 0, 1, false}, {CS_UPDATE, 1, 1, 0, 2, false},
        {CS_BACKWARD, 0, 1, 0, 1, false}, {CS_UPDATE, 0, 1, 0, 2, false},
    };
    small_trace made;
    study(&made, rows, ROWS(rows), 2, ROWS(rows));
    for (uint32_t s = 0; s < 2; s++) {
        expect_int("versions made", 2, made.found.slots[s].versions_made);
        expect_int("gradient delay", 0, made.found.slots[s].gradient_delay.value);
        expect_int("forward delay", 0, made.found.slots[s].forward_delay.value);
        assert_true(made.found.slots[s].gradient_delay.steady);
        expect_mean("synchronous", 0, &made, s);
    }
    expect_mean("synchronous", 0, &made, CS_NONE);
    for (uint32_t b = 0; b < 2; b++)
        expect_int("version difference", 1, made.found.batches[b].version_difference);
    expect_int("sequences by backward", 1, made.found.n_by_backward);
    finish(&made);
}

/* One stage whose backwards update. Mini-batches 1, 2, 3, 4 read in backward 0, 0, 1, 2:
 * differences 1, 2, 2, 2, delays 0, 1, 1, 1; by the reads of backwards, 1 and 3, and 2 and 4, are
 * sequences. The second micro-batch of mini-batch 4 reads version 1, made by mini-batch 1, in its
 * forward, which links the two; its oldest forward read version 1 (delay 2), mini-batch 3's version
 * 0 (2). */
static const row stale[] = {
    {CS_FORWARD, 1, 0, 0, 0, false}, {CS_FORWARD, 1, 1, 0, 0, false},
    {CS_BACKWARD, 1, 0, 0, 0, true}, {CS_FORWARD, 1, 2, 0, 0, false},
    {CS_BACKWARD, 1, 1, 0, 0, true}, {CS_FORWARD, 1, 3, 0, 2, false},
    {CS_FORWARD, 1, 3, 1, 1, false}, {CS_BACKWARD, 1, 2, 0, 1, true},
    {CS_BACKWARD, 1, 3, 0, 2, true},
};

static void test_stale(void **state)
{
    (void)state;
    static const int64_t differences[] = {1, 2, 2, 2}, delays[] = {0, 1, 1, 1};
    static const int64_t forward_delays[] = {0, 1, 2, 2}, by_backward[] = {0, 1, 0, 1};
    small_trace made;
    study(&made, stale, ROWS(stale), 4, ROWS(stale));
    for (uint32_t b = 0; b < 4; b++) {
        const cs_staleness_row *at = &made.found.rows[b * 2 + 1];
        expect_int("version difference", differences[b], made.found.batches[b].version_difference);
        expect_int("made", b + 1, at->made);
        expect_int("delay", delays[b], cs_staleness_delay(at->made, at->backward.oldest));
        expect_int("forward delay", forward_delays[b],
                   cs_staleness_delay(at->made, at->forward.oldest));
        expect_int("sequence by backward", by_backward[b], made.found.batches[b].by_backward);
    }
    expect_int("newest forward of mini-batch 4", 2, made.found.rows[3 * 2 + 1].forward.newest);
    expect_int("largest delay", 1, made.found.slots[1].max_gradient_delay);
    assert_true(made.found.version_difference.steady); /* mini-batches 2 and 3 */
    expect_int("steady", 2, made.found.version_difference.value);
    assert_false(made.found.slots[1].forward_delay.steady); /* 1 and 2 */
    /* slot 0 was never used: its stage is the first, so that no forward links anything */
    expect_int("sequences", 2, made.found.n_by_both);
    expect_int("unused", CS_STALENESS_NONE, made.found.slots[0].gradient_delay.value);
    expect_mean("mini-batches 2 and 3", 1, &made, 1);
    expect_mean("unused", NAN, &made, 0);
    expect_mean("the used slot only", 1, &made, CS_NONE);
    assert_true(cs_staleness_mean(&made.found, 1) == 1);
    assert_true(isnan(cs_staleness_mean(&made.found, 0)));
    finish(&made);
}

/* Each backward counts with the version that it read, in the middle half: the second and the third
 * of four mini-batches. On slot 1 the second's micro-batches read version 0 (delay 1) and 1 (0) and
 * make version 2; the third's read 0 (delay 2) and 1 (delay 1, twice, as its backward is split) and
 * make version 3: (1 + 0 + 2 + 1 + 1) / 5. On slot 0 there is one backward without delay, of
 * mini-batch 2. The largest delay of slot 1 belongs to mini-batch 4, which read version 0 when
 * there were three later ones, and is not in the mean. */
static void test_mean(void **state)
{
    (void)state;
    static const row rows[] = {
        {CS_BACKWARD, 1, 0, 0, 0, true},        {CS_BACKWARD, 1, 1, 0, 0, false},
        {CS_BACKWARD, 1, 1, 1, 1, true},        {CS_BACKWARD, 0, 1, 0, 0, true},
        {CS_BACKWARD, 1, 2, 0, 0, false},       {CS_BACKWARD_INPUT, 1, 2, 1, 1, false},
        {CS_BACKWARD_WEIGHT, 1, 2, 1, 1, true}, {CS_BACKWARD, 1, 3, 0, 0, true},
    };
    small_trace made;
    study(&made, rows, ROWS(rows), 4, ROWS(rows));
    expect_mean("slot 0", 0, &made, 0);
    expect_mean("slot 1", 1, &made, 1);
    expect_mean("all six", 5.0 / 6, &made, CS_NONE);
    expect_int("largest", 3, made.found.slots[1].max_gradient_delay);
    finish(&made);
}

/* The same run stopped after the first backward. */
static void test_stopped(void **state)
{
    (void)state;
    small_trace made;
    study(&made, stale, ROWS(stale), 4, 3);
    expect_int("mini-batch 1", 1, made.found.batches[0].version_difference);
    expect_int("mini-batch 2", CS_STALENESS_NONE, made.found.batches[1].version_difference);
    expect_int("made by mini-batch 1", 1, made.found.rows[1].made);
    expect_int("made by mini-batch 2", CS_NONE, made.found.rows[3].made);
    assert_false(made.found.version_difference.steady);
    expect_mean("stopped before the middle half", NAN, &made, CS_NONE);
    finish(&made);
}

/* Forwards on the first stage link as well. Mini-batch 2's backward reads nothing new, its forward
 * version 1, which mini-batch 1 made there; mini-batch 3 is a separate sequence. */
static void test_linked_by_forward(void **state)
{
    (void)state;
    static const row rows[] = {
        {CS_FORWARD, 0, 0, 0, 0, false},  {CS_UPDATE, 0, 0, 0, 1, false},
        {CS_FORWARD, 0, 1, 0, 1, false},  {CS_FORWARD, 0, 2, 0, 0, false},
        {CS_BACKWARD, 1, 0, 0, 0, false}, {CS_BACKWARD, 1, 1, 0, 0, false},
        {CS_BACKWARD, 1, 2, 0, 0, false},
    };
    small_trace made;
    study(&made, rows, ROWS(rows), 3, ROWS(rows));
    expect_int("sequences by backward", 3, made.found.n_by_backward);
    expect_int("sequences", 2, made.found.n_by_both);
    expect_int("of mini-batch 2", 0, made.found.batches[1].by_both);
    expect_int("of mini-batch 3", 1, made.found.batches[2].by_both);
    finish(&made);
}

/* Without versions there is nothing to say. */
static void test_not_recorded(void **state)
{
    (void)state;
    cs_graph graph = {.micro_batches = 1, .n_batches = 3};
    cs_trace trace = {0};
    cs_staleness found;
    assert_int_equal(cs_staleness_find(&graph, &trace, &found, NULL), CS_OK);
    expect_int("mini-batches", 0, found.n_batches);
    assert_true(isnan(cs_staleness_mean(&found, CS_NONE)));
    cs_staleness_finish(&found);
}

/* A stage on two devices, where slot 1 makes the versions and sends them to slot 0, as in cyclic
 * data parallelism: mini-batch b's update makes version b + 1. Messages bring version 1 for
 * mini-batch 1, and versions 2 and 3 for mini-batch 3. Mini-batch 2 reads version 1 (delay 1), the
 * others read the version before their own (0). */
static void test_weights_in_messages(void **state)
{
    (void)state;
    static const row rows[] = {
        {CS_BACKWARD, 0, 0, 0, 0, false}, {CS_BACKWARD, 1, 0, 1, 0, true},
        {CS_TRANSFER, 0, 1, 0, 1, true},  {CS_BACKWARD, 0, 1, 0, 1, false},
        {CS_BACKWARD, 1, 1, 1, 1, true},  {CS_BACKWARD, 0, 2, 0, 1, false},
        {CS_BACKWARD, 1, 2, 1, 2, true},  {CS_TRANSFER, 0, 3, 0, 2, true},
        {CS_TRANSFER, 0, 3, 0, 3, true},  {CS_BACKWARD, 0, 3, 0, 3, false},
        {CS_BACKWARD, 1, 3, 1, 3, true},
    };
    static const int64_t delays[] = {0, 0, 1, 0};
    small_trace made;
    study_on(&made, true, rows, ROWS(rows), 4, ROWS(rows));
    for (uint32_t b = 0; b < 4; b++) {
        const cs_staleness_row *at = &made.found.rows[b * 2];
        expect_int("made elsewhere", b + 1, at[0].made);
        expect_int("made here", b + 1, at[1].made);
        expect_int("delay of received versions", delays[b],
                   cs_staleness_delay(at[0].made, at[0].backward.oldest));
        expect_int("delay of versions made here", 0,
                   cs_staleness_delay(at[1].made, at[1].backward.oldest));
    }
    expect_int("largest", 1, made.found.slots[0].max_gradient_delay);
    expect_mean("what came, mini-batches 1 and 2", 0.5, &made, 0);
    expect_mean("both slots", 0.25, &made, CS_NONE);
    finish(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_synchronous),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_linked_by_forward),
        cmocka_unit_test(test_not_recorded),
        cmocka_unit_test(test_weights_in_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

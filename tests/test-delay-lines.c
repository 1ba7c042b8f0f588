/* Lines of events against an array that is searched: events of three delays, which come in the
 * order of times and tasks, whatever was removed before. */
#include "sim/base/random.h"
#include "sim/core/engine/delay-lines.h"
#include "tests/expect.h"

#include <gsl/gsl_rng.h>

enum { MOST_EVENTS = 400, N_STEPS = 200000 };

typedef struct outstanding {
    cs_event event;
    uint32_t slot;
} outstanding;

typedef struct scene {
    cs_delay_lines lines;
    outstanding events[MOST_EVENTS]; /* in no order */
    uint32_t n, n_made, n_removed, n_popped, n_refused;
    cs_time now;
} scene;

static const cs_time delays[] = {7, 20, 21};

static uint32_t below(gsl_rng *random, uint32_t n)
{
    return (uint32_t)gsl_rng_uniform_int(random, n);
}

/* Tasks are numbered without order, so that some events do not fit behind others of the instant. */
static void push(gsl_rng *random, scene *s)
{
    const uint32_t kind = below(random, (uint32_t)ROWS(delays));
    const uint8_t line = cs_delay_lines_find(&s->lines, delays[kind]);
    outstanding *made = &s->events[s->n];
    made->event = (cs_event){s->now + delays[kind], s->n_made * 7919 % 100003,
                             (uint32_t)ROWS(delays) * s->n_made + kind};
    s->n_made++;
    if (!cs_delay_lines_fit(&s->lines, line, made->event, s->now)) {
        s->n_refused++;
        return;
    }
    assert_true(cs_delay_lines_push(&s->lines, line, made->event, &made->slot));
    assert_true(made->slot >= CS_DELAY_SLOT);
    for (uint32_t i = 0; i < s->n; i++)
        assert_true(s->events[i].slot != made->slot);
    s->n++;
}

static void remove_any(gsl_rng *random, scene *s)
{
    const uint32_t i = below(random, s->n);
    cs_delay_lines_remove(&s->lines, s->events[i].slot);
    s->events[i] = s->events[--s->n];
    s->n_removed++;
}

static uint32_t find_first(const scene *s)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < s->n; i++) {
        const cs_event a = s->events[i].event, b = s->events[first].event;
        first = a.time < b.time || (a.time == b.time && a.task < b.task) ? i : first;
    }
    return first;
}

static void pop(scene *s)
{
    const uint32_t first = find_first(s);
    const cs_event expected = s->events[first].event;
    expect_int("next", expected.time, cs_delay_lines_time(&s->lines));
    const cs_event got = cs_delay_lines_pop(&s->lines);
    expect_int("time", expected.time, got.time);
    expect_int("task", expected.task, got.task);
    expect_int("what", expected.what, got.what);
    s->now = got.time;
    s->events[first] = s->events[--s->n];
    s->n_popped++;
}

/* `fill`: how many of ten steps push. */
static void run(gsl_rng *random, scene *s, uint32_t fill)
{
    for (uint32_t i = 0; i < N_STEPS / 10; i++) {
        const uint32_t what = below(random, 10);
        if (what < fill && s->n < MOST_EVENTS)
            push(random, s);
        else if (s->n == 0)
            expect_int("none", -1, cs_delay_lines_time(&s->lines));
        else if (what < fill + 1)
            remove_any(random, s);
        else
            pop(s);
    }
}

static void test_against_array(void **state)
{
    (void)state;
    static const uint32_t fills[] = {3, 5, 2, 8, 6, 3, 9, 5, 2, 0};
    static scene s;
    gsl_rng *random = cs_random_stream(1, "delay lines");
    assert_non_null(random);
    cs_delay_lines_init(&s.lines);
    for (size_t i = 0; i < ROWS(fills); i++)
        run(random, &s, fills[i]);
    expect_int("left", 0, s.n);
    expect_int("all", s.n_made, s.n_popped + s.n_removed + s.n_refused);
    assert_true(s.n_popped > N_STEPS / 10 && s.n_removed > N_STEPS / 100);
    assert_true(s.n_refused > N_STEPS / 100);
    cs_delay_lines_finish(&s.lines);
    gsl_rng_free(random);
}

/* Delays beyond the number of lines, and none, get no line; known ones the same again. */
static void test_lines_run_out(void **state)
{
    (void)state;
    cs_delay_lines lines;
    cs_delay_lines_init(&lines);
    for (uint8_t i = 0; i < CS_DELAY_LINES; i++)
        expect_int("line", i, cs_delay_lines_find(&lines, 10 + i));
    expect_int("no more", CS_NO_DELAY_LINE, cs_delay_lines_find(&lines, 1));
    expect_int("known", 3, cs_delay_lines_find(&lines, 13));
    expect_int("no delay", CS_NO_DELAY_LINE, cs_delay_lines_find(&lines, 0));
    assert_false(cs_delay_lines_fit(&lines, CS_NO_DELAY_LINE, (cs_event){1, 0, 0}, 0));
    assert_false(cs_delay_lines_fit(&lines, 3, (cs_event){12, 0, 0}, 0));
    assert_true(cs_delay_lines_fit(&lines, 3, (cs_event){13, 0, 0}, 0));
    cs_delay_lines_finish(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_array),
        cmocka_unit_test(test_lines_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The event queue against an array that is searched: every order of pushes, pops and moves. */
#include "sim/base/random.h"
#include "sim/core/engine/event-queue.h"
#include "tests/expect.h"

#include <gsl/gsl_rng.h>

enum { MOST_EVENTS = 400, N_STEPS = 200000, N_TIMES = 50 };

typedef struct outstanding {
    cs_event event;
    uint32_t slot;
} outstanding;

typedef struct scene {
    cs_event_queue queue;
    outstanding events[MOST_EVENTS]; /* in no order */
    uint32_t n, n_made, n_moved, n_popped;
    cs_time now;
} scene;

static uint32_t below(gsl_rng *random, uint32_t n)
{
    return (uint32_t)gsl_rng_uniform_int(random, n);
}

/* Tasks repeat, so that events of one task at one instant go by slot. */
static void push(gsl_rng *random, scene *s)
{
    outstanding *made = &s->events[s->n++];
    made->event = (cs_event){s->now + below(random, N_TIMES), below(random, 64), s->n_made++};
    assert_true(cs_event_queue_push(&s->queue, made->event, &made->slot));
    for (uint32_t i = 0; i + 1 < s->n; i++)
        assert_true(s->events[i].slot != made->slot);
}

static void move(gsl_rng *random, scene *s)
{
    outstanding *moved = &s->events[below(random, s->n)];
    moved->event.time = s->now + below(random, N_TIMES);
    cs_event_queue_move(&s->queue, moved->slot, moved->event.time);
    s->n_moved++;
}

static bool is_before(const outstanding *a, const outstanding *b)
{
    if (a->event.time != b->event.time)
        return a->event.time < b->event.time;
    return a->event.task != b->event.task ? a->event.task < b->event.task : a->slot < b->slot;
}

static uint32_t find_first(const scene *s)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < s->n; i++)
        first = is_before(&s->events[i], &s->events[first]) ? i : first;
    return first;
}

static void pop(scene *s)
{
    const uint32_t first = find_first(s);
    const cs_event expected = s->events[first].event, got = cs_event_queue_pop(&s->queue);
    expect_int("time", expected.time, got.time);
    expect_int("task", expected.task, got.task);
    expect_int("what", expected.what, got.what);
    s->now = got.time;
    s->events[first] = s->events[--s->n];
    s->n_popped++;
}

static void pop_if_any(scene *s)
{
    const cs_time next = s->n > 0 ? s->events[find_first(s)].event.time : -1;
    expect_int("next", next, cs_event_key_time(cs_event_queue_first(&s->queue)));
    if (s->n > 0)
        pop(s);
}

/* `fill`: how many of ten steps push. The queue grows, and empties. */
static void run(gsl_rng *random, scene *s, uint32_t fill)
{
    for (uint32_t i = 0; i < N_STEPS / 10; i++) {
        const uint32_t what = below(random, 10);
        if (what < fill && s->n < MOST_EVENTS)
            push(random, s);
        else if (what < fill + 3 && s->n > 0)
            move(random, s);
        else
            pop_if_any(s);
    }
}

static void test_against_array(void **state)
{
    (void)state;
    static const uint32_t fills[] = {3, 5, 2, 4, 6, 3, 1, 5, 2, 0};
    static scene s;
    gsl_rng *random = cs_random_stream(1, "event queue");
    assert_non_null(random);
    cs_event_queue_init(&s.queue);
    for (size_t i = 0; i < ROWS(fills); i++)
        run(random, &s, fills[i]);
    expect_int("left", 0, s.n);
    expect_int("popped", s.n_made, s.n_popped);
    assert_true(s.n_moved > N_STEPS / 10 && s.n_popped > N_STEPS / 10);
    cs_event_queue_finish(&s.queue);
    gsl_rng_free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

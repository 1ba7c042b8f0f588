#include "schedules/pass-series.h"

#include <assert.h>

static_assert((int)CS_STEP_WAITS <= (int)CS_PART_WAITS, "a part waits for what its step does");

/* Flags of steps that wait for something outside, or that something outside waits for. */
enum {
    WAITS = CS_STEP_BEGINS | CS_STEP_RECEIVES | CS_STEP_SUMS | CS_STEP_READS,
    IS_AWAITED = CS_STEP_ENDS | CS_STEP_SUMMED | CS_STEP_READY,
};

typedef struct joining {
    cs_stage_pass *pass;
    uint32_t *last_waiter; /* per step: last step that waits for it, or 0 */
    uint32_t *now;         /* per step: its number after joining */
    cs_series_part *parts; /* parts of the series being made */
} joining;

static bool computes(const joining *j, uint32_t step)
{
    return j->pass->steps[step].n_runs == 0;
}

static bool waits_for(const cs_stage_step *step, uint32_t other)
{
    bool waits = false;
    for (uint32_t w = 0; w < step->n_waits; w++)
        waits |= step->waits[w] == other;
    return waits;
}

/* Whether a step continues the series from `first` to the previous step. */
static bool goes_on(const joining *j, uint32_t first, uint32_t step)
{
    const cs_stage_step *of = &j->pass->steps[step];
    bool inside = true, begins = !computes(j, step);
    for (uint32_t w = 0; w < of->n_waits; w++) {
        inside &= of->waits[w] >= first || waits_for(&j->pass->steps[first], of->waits[w]);
        begins &= of->waits[w] < first;
    }
    inside &= !begins; /* a collective follows a step of the series */
    return inside && !(of->flags & WAITS) && !(j->pass->steps[step - 1].flags & IS_AWAITED);
}

/* Returns the last step of a series up to `last` after cutting it. The series ends early at a step
 * that something outside waits for, or before a collective that nothing in the series waits for. */
static uint32_t cut(const joining *j, uint32_t first, uint32_t last)
{
    while (!computes(j, last))
        last--;
    for (uint32_t k = first; k < last; k++) {
        if (j->last_waiter[k] > last)
            return computes(j, k) ? k : k - 1;
        if (j->last_waiter[k] == 0 && !computes(j, k))
            return k - 1;
    }
    return last;
}

/* Returns the last step of the series that begins at `first`. */
static uint32_t end_of(const joining *j, uint32_t first)
{
    uint32_t last = first, before;
    while (last + 1 < j->pass->n && goes_on(j, first, last + 1))
        last++;
    do {
        before = last;
        last = cut(j, first, last);
    } while (last < before);
    return last;
}

/* Makes the step that replaces the steps `first` to `last`. */
static bool make_series(joining *j, uint32_t first, uint32_t last, const bool *starts,
                        cs_builder *builder, cs_arena *arena, cs_stage_step *made)
{
    const cs_stage_step *steps = j->pass->steps;
    uint32_t n_tasks = 0;
    for (uint32_t k = first; k <= last; k++) {
        cs_series_part *part = &j->parts[k - first];
        *part = (cs_series_part){.cls = steps[k].classes[0]};
        for (uint32_t w = 0; w < steps[k].n_waits; w++)
            if (steps[k].waits[w] >= first)
                part->waits[part->n_waits++] = steps[k].waits[w] - first;
        n_tasks += 1 + (!computes(j, k) && starts[k]);
    }
    *made = steps[first];
    made->flags |= steps[last].flags;
    made->classes = cs_arena_alloc(arena, 1, sizeof(*made->classes));
    if (!made->classes)
        return false;
    made->classes[0] = cs_builder_series(builder, j->parts, last - first + 1, n_tasks);
    return true;
}

static void note_waiters(joining *j)
{
    for (uint32_t k = 0; k < j->pass->n; k++)
        for (uint32_t w = 0; w < j->pass->steps[k].n_waits; w++) {
            uint32_t *last = &j->last_waiter[j->pass->steps[k].waits[w]];
            *last = *last > k ? *last : k;
        }
}

static bool join(joining *j, const bool *starts, cs_builder *builder, cs_arena *arena)
{
    cs_stage_pass *pass = j->pass;
    uint32_t n = 0;
    for (uint32_t first = 0, last; first < pass->n; first = last + 1) {
        cs_stage_step made = pass->steps[first];
        last = computes(j, first) ? end_of(j, first) : first;
        if (last > first && !make_series(j, first, last, starts, builder, arena, &made))
            return false;
        for (uint32_t w = 0; w < made.n_waits; w++)
            made.waits[w] = j->now[made.waits[w]];
        for (uint32_t k = first; k <= last; k++)
            j->now[k] = n;
        pass->steps[n++] = made; /* reuses the place of a processed step */
    }
    pass->computes = j->now[pass->computes];
    pass->n = n;
    return true;
}

bool cs_pass_join(cs_stage_pass *pass, const bool *starts, cs_builder *builder, cs_arena *arena)
{
    joining j = {.pass = pass,
                 .last_waiter = cs_arena_alloc(arena, pass->n, sizeof(*j.last_waiter)),
                 .now = cs_arena_alloc(arena, pass->n, sizeof(*j.now)),
                 .parts = cs_arena_alloc(arena, pass->n, sizeof(*j.parts))};
    if (!j.last_waiter || !j.now || !j.parts)
        return false;
    note_waiters(&j);
    return join(&j, starts, builder, arena);
}

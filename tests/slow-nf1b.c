#include "tests/slow-nf1b.h"

#include <stdlib.h>

slow_task *slow_forward(const slow_run *run, uint32_t worker, uint32_t batch, uint32_t micro)
{
    const slow_case *of = &run->of;
    return &run->forwards[(worker * of->mini_batches + batch) * of->micro_batches + micro];
}

slow_task *slow_backward(const slow_run *run, uint32_t worker, uint32_t batch)
{
    return &run->backwards[worker * run->of.mini_batches + batch];
}

/* How many updates a worker has made; with `before`, not counting those that end at `now`. */
static uint32_t updates(const slow_run *run, uint32_t worker, uint32_t now, bool before)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < run->of.mini_batches; k++) {
        const slow_task *backward = slow_backward(run, worker, k);
        const bool now_only = backward->ended && backward->start + run->of.backward == now;
        n += backward->ended && !(before && now_only);
    }
    return n;
}

/* The newest version that is complete for a worker. */
static uint32_t newest(const slow_run *run, uint32_t worker, uint32_t now)
{
    const uint32_t last = run->of.workers - 1;
    const uint32_t judges[] = {
        [SLOW_FIRST_WORKER] = 0, [SLOW_LAST_WORKER] = last, [SLOW_PER_STAGE] = worker};
    return updates(run, judges[run->of.version_at], now, run->of.strict);
}

static void end_tasks(slow_run *run, uint32_t now)
{
    const slow_case *of = &run->of;
    for (uint32_t i = 0; i < of->workers * of->mini_batches * of->micro_batches; i++) {
        slow_task *task = &run->forwards[i];
        task->ended = task->started && task->start + of->forward <= now;
    }
    for (uint32_t i = 0; i < of->workers * of->mini_batches; i++) {
        slow_task *task = &run->backwards[i];
        task->ended = task->started && task->start + of->backward <= now;
    }
}

static bool is_busy(const slow_run *run, uint32_t worker)
{
    for (uint32_t k = 0; k < run->of.mini_batches; k++) {
        const slow_task *backward = slow_backward(run, worker, k);
        if (backward->started && !backward->ended)
            return true;
        for (uint32_t n = 0; n < run->of.micro_batches; n++) {
            const slow_task *forward = slow_forward(run, worker, k, n);
            if (forward->started && !forward->ended)
                return true;
        }
    }
    return false;
}

/* Whether a task of so long has ended and its message arrived. */
static bool arrived(const slow_run *run, const slow_task *task, uint32_t duration, uint32_t now)
{
    return task->started && task->start + duration + run->of.hop <= now;
}

static bool backward_ready(const slow_run *run, uint32_t worker, uint32_t k, uint32_t now)
{
    if (worker + 1 < run->of.workers)
        return arrived(run, slow_backward(run, worker + 1, k), run->of.backward, now);
    for (uint32_t n = 0; n < run->of.micro_batches; n++)
        if (!slow_forward(run, worker, k, n)->ended)
            return false;
    return true;
}

static bool forward_ready(const slow_run *run, uint32_t worker, uint32_t k, uint32_t n,
                          uint32_t now)
{
    const uint32_t limit = run->of.in_flight;
    if (worker > 0)
        return arrived(run, slow_forward(run, worker - 1, k, n), run->of.forward, now);
    return limit == 0 || k < limit || slow_backward(run, 0, k - limit)->ended;
}

static bool start_backward(slow_run *run, uint32_t worker, uint32_t now)
{
    for (uint32_t k = 0; k < run->of.mini_batches; k++) {
        slow_task *task = slow_backward(run, worker, k);
        if (task->started || !backward_ready(run, worker, k, now))
            continue;
        const bool chooses = worker + 1 == run->of.workers || run->of.version_at == SLOW_PER_STAGE;
        task->started = true;
        task->start = now;
        task->version =
            chooses ? newest(run, worker, now) : slow_backward(run, worker + 1, k)->version;
        return true;
    }
    return false;
}

static bool start_forward(slow_run *run, uint32_t worker, uint32_t now)
{
    for (uint32_t k = 0; k < run->of.mini_batches; k++)
        for (uint32_t n = 0; n < run->of.micro_batches; n++) {
            slow_task *task = slow_forward(run, worker, k, n);
            if (task->started || !forward_ready(run, worker, k, n, now))
                continue;
            const bool chooses = worker == 0 || run->of.version_at == SLOW_PER_STAGE;
            task->started = true;
            task->start = now;
            task->version =
                chooses ? newest(run, worker, now) : slow_forward(run, worker - 1, k, n)->version;
            return true;
        }
    return false;
}

static bool all_ended(const slow_run *run)
{
    for (uint32_t i = 0; i < run->of.workers * run->of.mini_batches; i++)
        if (!run->backwards[i].ended)
            return false;
    return true;
}

bool slow_run_init(slow_run *run, const slow_case *of)
{
    const size_t n = (size_t)of->workers * of->mini_batches;
    *run = (slow_run){.of = *of};
    run->forwards = calloc(n * of->micro_batches, sizeof(*run->forwards));
    run->backwards = calloc(n, sizeof(*run->backwards));
    if (!run->forwards || !run->backwards)
        return false;
    for (uint32_t now = 0; !all_ended(run); now++) {
        end_tasks(run, now);
        for (uint32_t worker = 0; worker < of->workers; worker++)
            if (!is_busy(run, worker) && !start_backward(run, worker, now))
                (void)start_forward(run, worker, now);
    }
    return true;
}

/* ---- versions that a worker has to have ---- */

static uint32_t updates_until(const slow_run *run, uint32_t worker, uint32_t now)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < run->of.mini_batches; k++)
        n += slow_backward(run, worker, k)->start + run->of.backward <= now;
    return n;
}

/* Whether tasks that have been started on the worker will still use the version. */
static bool is_promised(const slow_run *run, uint32_t worker, uint32_t version, uint32_t now)
{
    const slow_case *of = &run->of;
    for (uint32_t k = 0; k < of->mini_batches; k++) {
        const slow_task *chosen = slow_backward(run, of->workers - 1, k);
        if (chosen->version == version && chosen->start <= now &&
            slow_backward(run, worker, k)->start + of->backward > now)
            return true;
        for (uint32_t n = 0; n < of->micro_batches; n++) {
            chosen = slow_forward(run, 0, k, n);
            if (chosen->version == version && chosen->start <= now &&
                slow_forward(run, worker, k, n)->start + of->forward > now)
                return true;
        }
    }
    return false;
}

uint32_t slow_peak_versions(const slow_run *run, uint32_t worker)
{
    const uint32_t end = slow_backward(run, 0, run->of.mini_batches - 1)->start + run->of.backward;
    uint32_t peak = 0;
    for (uint32_t now = 0; now <= end; now++) {
        const uint32_t own = updates_until(run, worker, now);
        const uint32_t complete = updates_until(run, 0, now);
        uint32_t alive = 0;
        for (uint32_t version = 0; version <= own; version++)
            alive += version + run->of.strict >= complete || version == own ||
                     is_promised(run, worker, version, now);
        peak = alive > peak ? alive : peak;
    }
    return peak;
}

uint32_t slow_peak_activations(const slow_run *run, uint32_t worker)
{
    const slow_case *of = &run->of;
    const uint32_t end = slow_backward(run, 0, of->mini_batches - 1)->start + of->backward;
    uint32_t peak = 0;
    for (uint32_t now = 0; now <= end; now++) {
        uint32_t kept = 0;
        for (uint32_t k = 0; k < of->mini_batches; k++)
            for (uint32_t n = 0; n < of->micro_batches; n++)
                kept += slow_forward(run, worker, k, n)->start <= now &&
                        slow_backward(run, worker, k)->start + of->backward > now;
        peak = kept > peak ? kept : peak;
    }
    return peak;
}

void slow_run_finish(slow_run *run)
{
    free(run->forwards);
    free(run->backwards);
}

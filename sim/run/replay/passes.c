#include "sim/run/replay/passes.h"

#include "schedules/states.h"

#include "sim/base/vector.h"

#include <stdlib.h>

/* Where the walk over the tasks is. */
typedef struct finder {
    const cs_job *job;
    const cs_graph *graph;
    cs_replay_passes *made;
    uint32_t *in_flight; /* per stage: micro-batches between forward and backward */
    uint32_t *backwards; /* per stage: of the current mini-batch */
} finder;

/* ---- programs ---- */

static bool is_same(const cs_program_pass *a, const cs_program_pass *b)
{
    return a->kind == b->kind && a->gathered == b->gathered && a->releases == b->releases &&
           a->last == b->last;
}

static cs_status add_program(finder *f, uint32_t stage, const cs_program_pass *pass,
                             cs_error *error)
{
    cs_replay_passes *made = f->made;
    const uint64_t n = made->n_programs + UINT64_C(1);
    if (!cs_vector_reserve((void **)&made->programs, &made->cap_programs, n,
                           sizeof(*made->programs)) ||
        !cs_vector_reserve((void **)&made->program_passes, &made->cap_passes, n,
                           sizeof(*made->program_passes)) ||
        !cs_vector_reserve((void **)&made->program_stages, &made->cap_stages, n,
                           sizeof(*made->program_stages)))
        return cs_error_no_memory(error);
    made->program_passes[made->n_programs] = *pass;
    made->program_stages[made->n_programs] = stage;
    cs_program_stage common;
    cs_status status = cs_program_stage_init(f->job, stage, &common, error);
    if (status == CS_OK)
        status = cs_program_make(&common, pass, &made->programs[made->n_programs++], error);
    cs_program_stage_finish(&common);
    return status;
}

static cs_status find_program(finder *f, uint32_t stage, const cs_program_pass *pass,
                              uint32_t *program, cs_error *error)
{
    const cs_replay_passes *made = f->made;
    for (*program = 0; *program < made->n_programs; ++*program)
        if (made->program_stages[*program] == stage &&
            is_same(&made->program_passes[*program], pass))
            return CS_OK;
    return add_program(f, stage, pass, error);
}

/* ---- passes ---- */

/* The variant of a pass follows from the passes before it, as in pipeline.c. */
static cs_program_pass variant_of(finder *f, cs_kind kind, uint32_t stage)
{
    const bool keeps = cs_states_keeps(f->job, stage);
    cs_program_pass pass = {.kind = kind, .gathered = keeps};
    if (kind == CS_FORWARD)
        pass.gathered = f->in_flight[stage]++ > 0 && keeps;
    if (kind == CS_BACKWARD) {
        pass.releases = --f->in_flight[stage] == 0 && keeps;
        pass.last = ++f->backwards[stage] == f->job->micro_batches;
        f->backwards[stage] = pass.last ? 0 : f->backwards[stage];
    }
    return pass;
}

/* What the pass that begins with a task computes; CS_N_KINDS: nothing does. */
static cs_kind kind_of(const cs_graph *graph, uint32_t task)
{
    for (; task < graph->n_tasks; task++) {
        const cs_kind kind = (cs_kind)cs_graph_class(graph, task)->kind;
        if (cs_kind_group_of(kind) == CS_GROUP_COMPUTE)
            return kind;
    }
    return CS_N_KINDS;
}

static bool is_step(const cs_class *cls, const cs_program_step *step, uint32_t stage)
{
    const bool computes = cs_step_computes(step);
    return cls->kind == step->kind && cls->stage == stage &&
           (computes || (cls->bytes == step->bytes && cls->purpose == step->purpose));
}

static cs_status check_pass(const finder *f, const cs_replay_pass *pass, cs_error *error)
{
    const cs_program *program = &f->made->programs[pass->program];
    const uint32_t places = f->made->n_places;
    for (uint32_t k = 0; k < program->n; k++) {
        for (uint32_t i = 0; i < places; i++) {
            const uint64_t task = pass->first_task + (uint64_t)k * places + i;
            if (task >= f->graph->n_tasks ||
                !is_step(cs_graph_class(f->graph, (uint32_t)task), &program->steps[k], pass->stage))
                return cs_error_add(
                    error, CS_FAILED, "task %llu is not step %u of a %s of stage %u",
                    (unsigned long long)task, k, cs_kind_name(pass->of.kind), pass->stage);
            f->made->pass_of[task] = f->made->n;
        }
    }
    return CS_OK;
}

/* Adds the pass that begins with a task, and goes on to behind it. */
static cs_status add_pass(finder *f, uint32_t *task, cs_error *error)
{
    cs_replay_passes *made = f->made;
    const cs_kind kind = kind_of(f->graph, *task);
    const uint32_t stage = cs_graph_class(f->graph, *task)->stage;
    cs_replay_pass pass = {
        .stage = stage, .item = f->graph->tasks[*task].item, .first_task = *task};
    if (kind != CS_FORWARD && kind != CS_BACKWARD && kind != CS_UPDATE)
        return cs_error_add(error, CS_FAILED, "task %u begins no pass", *task);
    if (!cs_vector_reserve((void **)&made->all, &made->cap, made->n + UINT64_C(1),
                           sizeof(*made->all)))
        return cs_error_no_memory(error);
    pass.of = variant_of(f, kind, stage);
    CS_TRY(find_program(f, stage, &pass.of, &pass.program, error));
    CS_TRY(check_pass(f, &pass, error));
    *task += made->programs[pass.program].n * made->n_places;
    made->all[made->n++] = pass;
    return CS_OK;
}

static cs_status find(finder *f, cs_error *error)
{
    const cs_graph *graph = f->graph;
    if (!f->made->pass_of || !f->in_flight || !f->backwards)
        return cs_error_no_memory(error);
    for (uint32_t t = 0; t < graph->n_tasks;) {
        if (cs_graph_class(graph, t)->kind == CS_TRANSFER)
            f->made->pass_of[t++] = CS_NONE;
        else
            CS_TRY(add_pass(f, &t, error));
    }
    return CS_OK;
}

cs_status cs_replay_passes_find(const cs_job *job, const cs_graph *graph, cs_replay_passes *passes,
                                cs_error *error)
{
    cs_replay_passes made = {.n_places = cs_grid_places(job->plan->grid)};
    finder f = {.job = job,
                .graph = graph,
                .made = &made,
                .in_flight = calloc(graph->n_stages + UINT64_C(1), sizeof(*f.in_flight)),
                .backwards = calloc(graph->n_stages + UINT64_C(1), sizeof(*f.backwards))};
    made.pass_of = calloc(graph->n_tasks + UINT64_C(1), sizeof(*made.pass_of));
    const cs_status status = find(&f, error);
    free(f.in_flight);
    free(f.backwards);
    if (status == CS_OK)
        *passes = made;
    else
        cs_replay_passes_finish(&made);
    return status;
}

void cs_replay_passes_finish(cs_replay_passes *passes)
{
    for (uint32_t i = 0; i < passes->n_programs; i++)
        cs_program_finish(&passes->programs[i]);
    free(passes->all);
    free(passes->pass_of);
    free(passes->programs);
    free(passes->program_passes);
    free(passes->program_stages);
    *passes = (cs_replay_passes){0};
}

const cs_program *cs_replay_program(const cs_replay_passes *passes, uint32_t pass)
{
    return &passes->programs[passes->all[pass].program];
}

uint32_t cs_replay_step_task(const cs_replay_passes *passes, const cs_graph *graph, uint32_t pass,
                             uint32_t step, uint32_t device)
{
    const uint32_t first = passes->all[pass].first_task + step * passes->n_places;
    for (uint32_t i = 0; i < passes->n_places; i++)
        if (cs_graph_class(graph, first + i)->device == device)
            return first + i;
    return CS_NONE;
}

uint32_t cs_replay_last_computation(const cs_program *program)
{
    uint32_t last = program->n;
    while (last-- > 1 && !cs_step_computes(&program->steps[last])) {
    }
    return last;
}

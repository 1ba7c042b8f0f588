/* Compares OSDP with data parallelism and FSDP, by the cost model. */
#include "sim/run/osdp.h"

#include <math.h>

static const struct {
    const char *name;
    uint32_t modes;
    bool slices;
} kinds[CS_N_OSDP_ROWS] = {
    [CS_OSDP_ROW_DATA] = {"data parallel", CS_OSDP_DATA, false},
    [CS_OSDP_ROW_FSDP] = {"FSDP", CS_OSDP_SHARDED, false},
    [CS_OSDP_ROW_FSDP_SLICED] = {"FSDP, sliced", CS_OSDP_SHARDED, true},
    [CS_OSDP_ROW_BASE_SAME] = {"OSDP-base, batch of FSDP", CS_OSDP_ANY, false},
    [CS_OSDP_ROW_BASE] = {"OSDP-base", CS_OSDP_ANY, false},
    [CS_OSDP_ROW_OSDP] = {"OSDP", CS_OSDP_ANY, true},
    [CS_OSDP_ROW_DEPTH_FIRST] = {"OSDP, depth-first", CS_OSDP_ANY, true},
};

void cs_osdp_study_finish(cs_osdp_study *study)
{
    cs_scenario_finish(&study->scenario);
    cs_arena_finish(&study->arena);
    *study = (cs_osdp_study){0};
}

cs_osdp_rules cs_osdp_rules_of(const cs_osdp_study *study, cs_osdp_strategy row)
{
    return (cs_osdp_rules){.limit = study->limit,
                           .surge = study->surge,
                           .modes = kinds[row].modes,
                           .slices = kinds[row].slices};
}

/* ---- the search ---- */

static cs_status search(cs_osdp_study *study, cs_osdp_strategy number,
                        const cs_osdp_options *options, cs_error *error)
{
    cs_osdp_row *row = &study->rows[number];
    const cs_osdp_rules rules = cs_osdp_rules_of(study, number);
    const cs_osdp_search how = {.depth_first = number == CS_OSDP_ROW_DEPTH_FIRST,
                                .most_visits = options->depth_first,
                                .progress = options->progress};
    const uint32_t same = study->rows[CS_OSDP_ROW_FSDP].plan.batch;
    const double start = cs_clock_seconds();
    row->asked = true;
    if (number != CS_OSDP_ROW_BASE_SAME)
        CS_TRY(cs_osdp_find_batch(&study->model, &rules, options->most_batch, &how, &study->arena,
                                  &row->plan, error));
    else if (same > 0)
        CS_TRY(
            cs_osdp_find_at(&study->model, &rules, same, &how, &study->arena, &row->plan, error));
    row->search_time = cs_clock_seconds() - start;
    return CS_OK;
}

void cs_osdp_describe(const cs_osdp_study *study, const cs_osdp_plan *plan, double *fraction,
                      uint32_t *cut)
{
    *fraction = cs_osdp_data_fraction(&study->model, plan->choices);
    *cut = 0;
    for (uint32_t i = 0; i < study->model.n; i++)
        *cut += plan->choices[i].slices > 1;
}

static cs_status make(const cJSON *document, const char *path, const cs_osdp_options *options,
                      cs_osdp_study *study, cs_error *error)
{
    CS_TRY(cs_scenario_read_watched(document, path, options->progress, &study->scenario, error));
    CS_TRY(cs_osdp_model_of(&study->scenario, options, &study->arena, &study->model, error));
    for (uint32_t i = 0; i < study->model.n; i++) {
        const int64_t bytes = study->model.operators[i].weights;
        study->n_weighted += bytes > 0;
        study->parameters += (double)bytes / cs_precision_bytes(study->scenario.model->precision);
    }
    study->replicas = study->scenario.batch_size / study->scenario.job.micro_samples;
    study->limit = study->scenario.job.memory;
    study->surge = options->surge;
    study->most_batch = options->most_batch;
    const cs_osdp_rules rules = cs_osdp_rules_of(study, CS_OSDP_ROW_OSDP);
    cs_osdp_menu menu;
    CS_TRY(cs_osdp_menu_make(&study->model, &rules, 1, &study->arena, &menu, error));
    study->least_memory = cs_osdp_least_memory(&menu);
    for (uint32_t r = 0; r < CS_N_OSDP_ROWS; r++) {
        cs_osdp_row *row = &study->rows[r];
        row->name = kinds[r].name;
        if (r == CS_OSDP_ROW_DEPTH_FIRST && options->depth_first == 0)
            continue;
        CS_TRY(search(study, r, options, error));
        if (row->plan.found)
            cs_osdp_describe(study, &row->plan, &row->data_fraction, &row->cut);
    }
    study->simulated = options->simulate;
    return options->simulate ? cs_osdp_simulate(study, document, options, error) : CS_OK;
}

cs_status cs_osdp_study_make(const cJSON *document, const char *path,
                             const cs_osdp_options *options, cs_osdp_study *study, cs_error *error)
{
    cs_osdp_study made = {0};
    cs_arena_init(&made.arena);
    const cs_status status = make(document, path, options, &made, error);
    if (status == CS_OK)
        *study = made;
    else
        cs_osdp_study_finish(&made);
    return status;
}

/* ---- metrics ---- */

double cs_osdp_throughput(const cs_osdp_study *study, cs_osdp_strategy row)
{
    const cs_osdp_plan *plan = &study->rows[row].plan;
    return plan->found && plan->cost.time > 0
               ? (double)plan->batch * study->replicas / cs_time_seconds(plan->cost.time)
               : 0;
}

double cs_osdp_simulated_throughput(const cs_osdp_study *study, cs_osdp_strategy row)
{
    const cs_osdp_row *of = &study->rows[row];
    return of->fitted.found && of->iteration_time > 0
               ? (double)of->fitted.batch * study->replicas / of->iteration_time
               : 0;
}

double cs_osdp_ratio(const cs_osdp_study *study, cs_osdp_strategy row, cs_osdp_strategy than)
{
    const double fast = cs_osdp_throughput(study, row), slow = cs_osdp_throughput(study, than);
    return fast > 0 && slow > 0 ? fast / slow : (double)NAN;
}

#include "sim/study/validate/judgement-tables.h"

static cs_h5_value text_value(const char *text)
{
    return (cs_h5_value){.text = text ? text : ""};
}

#define TEXT(key, getter, of, what)                                                                \
    {                                                                                              \
        key, CS_H5_TEXT, "1", what, .get = getter, .which = of                                     \
    }
#define COUNT(key, getter, of, what)                                                               \
    {                                                                                              \
        key, CS_H5_UINT32, "1", what, .get = getter, .which = of                                   \
    }
#define REAL(key, unit, getter, of, what)                                                          \
    {                                                                                              \
        key, CS_H5_DOUBLE, unit, what, .get = getter, .which = of                                  \
    }
#define ROW                                                                                        \
    {                                                                                              \
        "row", CS_H5_UINT32, "1", "number of the row", .fill = cs_h5_row_numbers                   \
    }

/* ---- groups ---- */

enum { DATASET, MODEL, GPU, PRECISION, BEST, CHOICE, RULE_CHOICE };
enum { RUNS, GROUPS, GPUS, BATCH, CLOSER };

static const cs_layout_group *group_of(const void *source, uint64_t row)
{
    return &((const cs_layout_groups *)source)->groups[row];
}

static cs_h5_value group_text(const void *source, uint64_t row, uint32_t which)
{
    const cs_layout_group *group = group_of(source, row);
    const cs_point *point = group->best->point;
    const char *const texts[] = {
        [DATASET] = point->dataset,
        [MODEL] = point->run.model->name,
        [GPU] = point->run.hardware->gpu,
        [PRECISION] = point->run.precision,
        [BEST] = point->id,
        [CHOICE] = group->choice[CS_CHOOSER_PREDICTION]->point->id,
        [RULE_CHOICE] = group->choice[CS_CHOOSER_RULE]->point->id,
    };
    return text_value(texts[which]);
}

static cs_h5_value group_count(const void *source, uint64_t row, uint32_t which)
{
    const cs_layout_group *group = group_of(source, row);
    const cs_description *run = &group->best->point->run;
    const uint32_t counts[] = {
        [RUNS] = group->n, [GPUS] = run->hardware->gpus, [BATCH] = run->batch->global};
    return (cs_h5_value){.uint32 = counts[which]};
}

static cs_h5_value best_time(const void *source, uint64_t row, uint32_t which)
{
    (void)which;
    return (cs_h5_value){.float64 = group_of(source, row)->best->measured[CS_MEASURE_TIME]};
}

static cs_h5_value group_tau(const void *source, uint64_t row, uint32_t chooser)
{
    return (cs_h5_value){.float64 = group_of(source, row)->tau[chooser]};
}

static cs_h5_value group_loss(const void *source, uint64_t row, uint32_t chooser)
{
    return (cs_h5_value){.float64 = group_of(source, row)->loss[chooser]};
}

static const cs_h5_column groups[] = {
    ROW,
    TEXT("dataset", group_text, DATASET, "dataset of the runs"),
    TEXT("model", group_text, MODEL, "model that was trained"),
    TEXT("gpu", group_text, GPU, "GPU, as the points call it"),
    TEXT("precision", group_text, PRECISION, "precision of matrix products"),
    COUNT("gpus", group_count, GPUS, "number of GPUs"),
    COUNT("batch", group_count, BATCH, "global batch, sequences"),
    COUNT("runs", group_count, RUNS, "number of runs"),
    TEXT("best", group_text, BEST, "run with the least measured time"),
    TEXT("choice", group_text, CHOICE, "run with the least predicted time"),
    TEXT("rule_choice", group_text, RULE_CHOICE, "run that the rule of thumb chooses"),
    REAL("best_step_time", "s", best_time, 0, "least measured time of a step"),
    REAL("tau", "1", group_tau, CS_CHOOSER_PREDICTION, "Kendall's tau"),
    REAL("rule_tau", "1", group_tau, CS_CHOOSER_RULE, "Kendall's tau of the rule of thumb"),
    REAL("loss", "1", group_loss, CS_CHOOSER_PREDICTION,
         "measured time of the choice over the best, less 1"),
    REAL("rule_loss", "1", group_loss, CS_CHOOSER_RULE, "the same of the rule of thumb"),
    {0},
};

/* ---- ranking ---- */

static const cs_ranking *ranking_of(const void *source, uint64_t row)
{
    return &((const cs_layout_groups *)source)->rankings[row];
}

static cs_h5_value ranking_text(const void *source, uint64_t row, uint32_t which)
{
    (void)which;
    return text_value(ranking_of(source, row)->dataset);
}

static cs_h5_value ranking_count(const void *source, uint64_t row, uint32_t which)
{
    const cs_ranking *ranking = ranking_of(source, row);
    return (cs_h5_value){.uint32 = which == GROUPS ? ranking->n_groups : ranking->n_runs};
}

enum { TAU, LOSS, NEAR, N_FIGURES };

static cs_h5_value ranking_mean(const void *source, uint64_t row, uint32_t which)
{
    const cs_ranking *ranking = ranking_of(source, row);
    const double *const means[N_FIGURES] = {
        [TAU] = ranking->tau, [LOSS] = ranking->loss, [NEAR] = ranking->near};
    return (cs_h5_value){.float64 = means[which % N_FIGURES][which / N_FIGURES]};
}

#define RULE(figure) (CS_CHOOSER_RULE * N_FIGURES + (figure))

static const cs_h5_column rankings[] = {
    ROW,
    TEXT("dataset", ranking_text, DATASET, "dataset, or empty: all"),
    COUNT("groups", ranking_count, GROUPS, "number of groups"),
    COUNT("runs", ranking_count, RUNS, "number of runs in them"),
    REAL("tau", "1", ranking_mean, TAU, "mean of Kendall's tau"),
    REAL("loss", "1", ranking_mean, LOSS, "mean loss of the choice"),
    REAL("near", "1", ranking_mean, NEAR, "share of choices within 5 % of the best"),
    REAL("rule_tau", "1", ranking_mean, RULE(TAU), "mean of Kendall's tau of the rule of thumb"),
    REAL("rule_loss", "1", ranking_mean, RULE(LOSS), "mean loss of the rule of thumb"),
    REAL("rule_near", "1", ranking_mean, RULE(NEAR), "share of its choices within 5 %"),
    {0},
};

/* ---- trends ---- */

static const cs_trend *trend_of(const void *source, uint64_t row)
{
    return &((const cs_error_trends *)source)->trends[row];
}

enum { TREND_AXIS, TREND_DATASET };

static cs_h5_value trend_text(const void *source, uint64_t row, uint32_t which)
{
    const cs_trend *trend = trend_of(source, row);
    return text_value(which == TREND_AXIS ? cs_trend_names[trend->axis] : trend->dataset);
}

static cs_h5_value trend_count(const void *source, uint64_t row, uint32_t which)
{
    const cs_trend *trend = trend_of(source, row);
    return (cs_h5_value){.uint32 = which == GROUPS ? trend->n_groups : trend->n_runs};
}

enum { SLOPE, STANDARD_ERROR };

static cs_h5_value trend_value(const void *source, uint64_t row, uint32_t which)
{
    const cs_trend *trend = trend_of(source, row);
    return (cs_h5_value){.float64 = which == SLOPE ? trend->slope : trend->standard_error};
}

static const cs_h5_column trends[] = {
    ROW,
    TEXT("axis", trend_text, TREND_AXIS, "size that is doubled"),
    TEXT("dataset", trend_text, TREND_DATASET, "dataset, or empty: all"),
    COUNT("groups", trend_count, GROUPS, "groups of runs that differ in the size"),
    COUNT("runs", trend_count, RUNS, "number of runs in them"),
    REAL("change", "1", trend_value, SLOPE, "change of log(predicted / measured) per doubling"),
    REAL("standard_error", "1", trend_value, STANDARD_ERROR, "standard error of the change"),
    {0},
};

/* ---- peers ---- */

static const cs_peer_errors *peer_of(const void *source, uint64_t row)
{
    return &((const cs_peer_table *)source)->rows[row];
}

enum { PEER_TOOL, PEER_MEASURE };

static cs_h5_value peer_text(const void *source, uint64_t row, uint32_t which)
{
    const cs_peer_errors *peer = peer_of(source, row);
    return text_value(which == PEER_TOOL ? peer->tool : cs_measure_keys[peer->measure]);
}

static cs_h5_value peer_count(const void *source, uint64_t row, uint32_t which)
{
    const cs_peer_errors *peer = peer_of(source, row);
    return (cs_h5_value){.uint32 = which == CLOSER ? peer->n_closer : peer->n};
}

enum { OURS, THEIRS };

static cs_h5_value peer_value(const void *source, uint64_t row, uint32_t which)
{
    const cs_peer_errors *peer = peer_of(source, row);
    return (cs_h5_value){.float64 = which == OURS ? peer->ours : peer->theirs};
}

static const cs_h5_column peers[] = {
    ROW,
    TEXT("tool", peer_text, PEER_TOOL, "other tool"),
    TEXT("measure", peer_text, PEER_MEASURE, "predicted quantity"),
    COUNT("runs", peer_count, RUNS, "runs that both predict"),
    COUNT("closer", peer_count, CLOSER, "runs where sim is closer"),
    REAL("mean", "1", peer_value, OURS, "mean of the absolute errors of sim"),
    REAL("peer_mean", "1", peer_value, THEIRS, "mean of the absolute errors of the tool"),
    {0},
};

/* ---- all ---- */

cs_status cs_judgement_write_tables(cs_h5_file *file, const cs_judgement *judgement,
                                    cs_error *error)
{
    const cs_h5_table tables[] = {
        {"groups", "row", groups, judgement->groups.n, &judgement->groups, NULL, 0},
        {"ranking", "row", rankings, judgement->groups.n_rankings, &judgement->groups, NULL, 0},
        {"trends", "row", trends, judgement->trends.n, &judgement->trends, NULL, 0},
        {"peers", "row", peers, judgement->peers.n, &judgement->peers, NULL, 0},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        CS_TRY(cs_h5_write_table(file, &tables[i], error));
    return CS_OK;
}

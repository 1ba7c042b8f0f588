#include "sim/cli/scenario-option.h"
#include "sim/cli/validate-report.h"

#include <math.h>
#include <stdio.h>

static bool add_number(cJSON *object, const char *key, double value)
{
    return isfinite(value) ? cJSON_AddNumberToObject(object, key, value) != NULL
                           : cJSON_AddNullToObject(object, key) != NULL;
}

static bool add_summary(cJSON *row, const char *key, const cs_error_summary *from)
{
    cJSON *object = cJSON_AddObjectToObject(row, key);
    return object && add_number(object, "points", from->n) &&
           add_number(object, "mean", from->mean) && add_number(object, "median", from->median) &&
           add_number(object, "largest", from->largest) && add_number(object, "bias", from->bias);
}

static bool add_verdicts(cJSON *row, const cs_verdicts *from)
{
    cJSON *object = cJSON_AddObjectToObject(row, "out_of_memory");
    return object && add_number(object, "caught", from->n[1][1]) &&
           add_number(object, "missed", from->n[1][0] + from->depends[1]) &&
           add_number(object, "false_alarms", from->n[0][1]) &&
           add_number(object, "fitted", from->n[0][0] + from->depends[0]) &&
           add_number(object, "depends", from->depends[0] + from->depends[1]) &&
           add_number(object, "recall", cs_verdicts_recall(from)) &&
           add_number(object, "precision", cs_verdicts_precision(from)) &&
           add_number(object, "false_alarm_rate", cs_verdicts_false_alarms(from));
}

static bool fill_row(cJSON *object, const cs_error_row *row)
{
    bool done = cJSON_AddStringToObject(object, "grouping", cs_grouping_names[row->grouping]) &&
                cJSON_AddStringToObject(object, "name", row->name) &&
                add_number(object, "points", row->n_points);
    for (uint32_t s = 0; cs_prediction_states[s]; s++)
        done = done && add_number(object, cs_prediction_states[s], row->n_states[s]);
    for (uint32_t m = 0; m < CS_N_MEASURES; m++)
        done = done && add_summary(object, cs_measure_keys[m], &row->measures[m]);
    return done && add_number(object, "verdicts", row->n_verdicts) &&
           add_number(object, "verdicts_right", row->n_right) &&
           add_verdicts(object, &row->verdicts);
}

static bool add_texts(cJSON *object, const char *key, const char *const *texts, uint32_t n)
{
    cJSON *list = cJSON_AddArrayToObject(object, key);
    for (uint32_t i = 0; i < n; i++) {
        cJSON *text = cJSON_CreateString(texts[i]);
        if (!cJSON_AddItemToArray(list, text)) {
            cJSON_Delete(text);
            return false;
        }
    }
    return list;
}

static const char *unit_suffix(cs_measure measure)
{
    return measure == CS_MEASURE_TIME ? "_s" : "_bytes";
}

static bool add_parts(cJSON *object, const char *key, const double *values)
{
    cJSON *parts = cJSON_AddObjectToObject(object, key);
    bool done = parts;
    for (uint32_t p = 0; done && p < CS_N_STEP_PARTS; p++)
        done = add_number(parts, cs_step_part_keys[p], values[p]);
    return done;
}

static bool fill_parts(cJSON *object, const cs_error_parts *row)
{
    return cJSON_AddStringToObject(object, "dataset", row->dataset) &&
           add_number(object, "points", row->n) && add_number(object, "missing", row->missing) &&
           add_parts(object, "predicted", row->predicted) &&
           add_parts(object, "lacking", row->lacking) && add_number(object, "rest", row->rest);
}

static bool add_traits(cJSON *object, const cs_prediction *from, cs_error *error)
{
    cs_traits traits = {0};
    cJSON *list = cJSON_AddArrayToObject(object, "traits");
    const bool made = from->state == CS_PREDICTION_MADE;
    if (!list || !from->made.document)
        return list;
    if (cs_likeness_of_point(from->point, from->made.document, made ? &from->parts : NULL, traits,
                             error) != CS_OK)
        return false;
    for (uint32_t t = 0; t < CS_N_TRAITS; t++)
        if (!cJSON_AddItemToArray(list, cJSON_CreateString(traits[t])))
            return false;
    return true;
}

static bool fill_point(cJSON *object, const cs_prediction *from, cs_error *error)
{
    char key[64];
    const char *quality = from->point->quality ? from->point->quality : "";
    bool done = cJSON_AddStringToObject(object, "id", from->point->id) &&
                cJSON_AddStringToObject(object, "dataset", from->point->dataset) &&
                cJSON_AddStringToObject(object, "quality", quality) &&
                cJSON_AddStringToObject(object, "state", cs_prediction_states[from->state]) &&
                add_traits(object, from, error);
    for (uint32_t m = 0; m < CS_N_MEASURES; m++) {
        snprintf(key, sizeof(key), "predicted_%s%s", cs_measure_keys[m],
                 unit_suffix((cs_measure)m));
        done = done && add_number(object, key, from->values[m]);
        snprintf(key, sizeof(key), "measured_%s%s", cs_measure_keys[m], unit_suffix((cs_measure)m));
        done = done && add_number(object, key, from->measured[m]);
        snprintf(key, sizeof(key), "%s_error", cs_measure_keys[m]);
        done = done && add_number(object, key, cs_prediction_error(from, (cs_measure)m));
    }
    if (from->state == CS_PREDICTION_MADE)
        done = done && cJSON_AddBoolToObject(object, "out_of_memory", from->out_of_memory) &&
               cJSON_AddBoolToObject(object, "depends", from->depends) &&
               cs_json_add_number(object, "fits_probability", from->fits_probability) &&
               add_parts(object, "parts_s", from->parts.seconds);
    if (from->message)
        done = done && cJSON_AddStringToObject(object, "message", from->message);
    return done && add_texts(object, "missing", from->made.missing, from->made.n_missing) &&
           add_texts(object, "assumed", from->made.assumed, from->made.n_assumed);
}

/* Appends a new object to a list; NULL if memory runs out. */
static cJSON *append(cJSON *list)
{
    cJSON *object = cJSON_CreateObject();
    if (cJSON_AddItemToArray(list, object))
        return object;
    cJSON_Delete(object);
    return NULL;
}

static bool fill_like(cJSON *root, const cs_validation_shown *shown)
{
    cJSON *like = cJSON_AddObjectToObject(root, "like");
    cJSON *traits = cJSON_AddArrayToObject(like, "traits");
    const cs_likeness *from = shown->likeness;
    const cs_interval *interval = &shown->interval;
    bool done = like && traits && cJSON_AddStringToObject(like, "scenario", shown->like) &&
                add_number(like, "predicted_step_time_s", shown->step_time);
    for (uint32_t t = 0; done && t < CS_N_TRAITS; t++) {
        cJSON *object = append(traits);
        done = object && cJSON_AddStringToObject(object, "name", cs_trait_names[t]) &&
               cJSON_AddStringToObject(object, "value", from->traits[t]) &&
               (t < CS_N_CHOOSING_TRAITS ? cJSON_AddBoolToObject(object, "shared", from->shared[t])
                                         : cJSON_AddNullToObject(object, "shared")) &&
               add_number(object, "left_out_sources",
                          interval->matters[t] ? interval->alike[t] : (double)NAN);
    }
    cJSON *left_out = done ? cJSON_AddObjectToObject(like, "left_out") : NULL;
    return left_out && add_number(left_out, "sources", interval->n_sources) &&
           add_number(left_out, "runs", interval->n_runs) &&
           add_number(left_out, "step_time_9_of_10_within", interval->within) &&
           add_number(left_out, "step_time_9_of_10_from_s", shown->step_time * interval->low) &&
           add_number(left_out, "step_time_9_of_10_to_s", shown->step_time * interval->high);
}

static bool fill_choice(cJSON *object, const cs_layout_group *group, cs_chooser chooser)
{
    const cs_prediction *choice = group->choice[chooser];
    return add_number(object, "tau", group->tau[chooser]) &&
           cJSON_AddStringToObject(object, "choice", choice->point->id) &&
           add_number(object, "choice_step_time_s", choice->measured[CS_MEASURE_TIME]) &&
           add_number(object, "loss", group->loss[chooser]);
}

static bool fill_group(cJSON *object, const cs_layout_group *group)
{
    const cs_point *point = group->best->point;
    const cs_description *run = &point->run;
    bool done =
        cJSON_AddStringToObject(object, "dataset", point->dataset) &&
        cJSON_AddStringToObject(object, "model", run->model->name ? run->model->name : "") &&
        add_number(object, "layers", run->model->layers) &&
        add_number(object, "hidden", run->model->hidden) &&
        add_number(object, "sequence", run->model->seq) &&
        cJSON_AddStringToObject(object, "gpu", run->hardware->gpu) &&
        add_number(object, "gpus", run->hardware->gpus) &&
        add_number(object, "batch", run->batch->global) &&
        cJSON_AddStringToObject(object, "precision", run->precision) &&
        add_number(object, "runs", group->n) &&
        cJSON_AddStringToObject(object, "best", point->id) &&
        add_number(object, "best_step_time_s", group->best->measured[CS_MEASURE_TIME]) &&
        fill_choice(object, group, CS_CHOOSER_PREDICTION);
    cJSON *rule = done ? cJSON_AddObjectToObject(object, "rule_of_thumb") : NULL;
    return rule && fill_choice(rule, group, CS_CHOOSER_RULE);
}

static bool fill_means(cJSON *object, const cs_ranking *ranking, cs_chooser chooser)
{
    return add_number(object, "tau", ranking->tau[chooser]) &&
           add_number(object, "loss", ranking->loss[chooser]) &&
           add_number(object, "within_5_percent", ranking->near[chooser]);
}

static bool fill_ranking(cJSON *object, const cs_ranking *ranking)
{
    bool done = cJSON_AddStringToObject(object, "dataset", ranking->dataset) &&
                add_number(object, "groups", ranking->n_groups) &&
                add_number(object, "runs", ranking->n_runs) &&
                fill_means(object, ranking, CS_CHOOSER_PREDICTION);
    cJSON *rule = done ? cJSON_AddObjectToObject(object, "rule_of_thumb") : NULL;
    return rule && fill_means(rule, ranking, CS_CHOOSER_RULE);
}

static bool fill_trend(cJSON *object, const cs_trend *trend)
{
    return cJSON_AddStringToObject(object, "axis", cs_trend_names[trend->axis]) &&
           cJSON_AddStringToObject(object, "dataset", trend->dataset) &&
           add_number(object, "groups", trend->n_groups) &&
           add_number(object, "runs", trend->n_runs) &&
           add_number(object, "change_per_doubling", trend->slope) &&
           add_number(object, "standard_error", trend->standard_error);
}

static bool fill_peer(cJSON *object, const cs_peer_errors *peer)
{
    return cJSON_AddStringToObject(object, "tool", peer->tool) &&
           cJSON_AddStringToObject(object, "measure", cs_measure_keys[peer->measure]) &&
           add_number(object, "runs", peer->n) && add_number(object, "mean", peer->ours) &&
           add_number(object, "peer_mean", peer->theirs) &&
           add_number(object, "closer", peer->n_closer);
}

static bool fill_errors(cJSON *root, const cs_judgement *judgement)
{
    cJSON *rows = cJSON_AddArrayToObject(root, "errors");
    cJSON *parts = cJSON_AddArrayToObject(root, "decomposition");
    bool done = rows && parts;
    for (uint32_t i = 0; done && i < judgement->parts.n; i++) {
        cJSON *object = append(parts);
        done = object && fill_parts(object, &judgement->parts.rows[i]);
    }
    for (uint32_t i = 0; done && i < judgement->table.n; i++) {
        cJSON *object = append(rows);
        done = object && fill_row(object, &judgement->table.rows[i]);
    }
    if (!done)
        return false;
    cJSON *object = cJSON_AddObjectToObject(root, "left_out");
    return object && add_number(object, "fitted", judgement->n_uses[CS_SOURCE_FITTED]) &&
           add_summary(object, "step_time", &judgement->unfitted);
}

static bool fill_judgement(cJSON *root, const cs_judgement *judgement)
{
    cJSON *rankings = cJSON_AddArrayToObject(root, "ranking");
    cJSON *groups = cJSON_AddArrayToObject(root, "groups");
    cJSON *trends = cJSON_AddArrayToObject(root, "trends");
    cJSON *peers = cJSON_AddArrayToObject(root, "peers");
    bool done = rankings && groups && trends && peers;
    for (uint32_t i = 0; done && i < judgement->groups.n_rankings; i++) {
        cJSON *object = append(rankings);
        done = object && fill_ranking(object, &judgement->groups.rankings[i]);
    }
    for (uint32_t i = 0; done && i < judgement->groups.n; i++) {
        cJSON *object = append(groups);
        done = object && fill_group(object, &judgement->groups.groups[i]);
    }
    for (uint32_t i = 0; done && i < judgement->trends.n; i++) {
        cJSON *object = append(trends);
        done = object && fill_trend(object, &judgement->trends.trends[i]);
    }
    for (uint32_t i = 0; done && i < judgement->peers.n; i++) {
        cJSON *object = append(peers);
        done = object && fill_peer(object, &judgement->peers.rows[i]);
    }
    if (!done)
        return false;
    cJSON *object = cJSON_AddObjectToObject(root, "coverage");
    const cs_coverage *coverage = &judgement->coverage;
    cJSON *known = cJSON_AddObjectToObject(object, "known_sources");
    return object && known && add_number(object, "runs", coverage->n_runs) &&
           add_number(object, "sources", coverage->n_sources) &&
           add_number(object, "by_run", coverage->by_run) &&
           add_number(object, "by_source", coverage->by_source) &&
           add_number(object, "width", coverage->width) &&
           add_number(known, "by_run", judgement->left_out.by_run) &&
           add_number(known, "by_source", judgement->left_out.by_source);
}

static bool fill(cJSON *root, const cs_validation_shown *shown, cs_error *error)
{
    bool done = (!shown->like || fill_like(root, shown)) && fill_errors(root, shown->judgement) &&
                fill_judgement(root, shown->judgement);
    cJSON *points = done ? cJSON_AddArrayToObject(root, "points") : NULL;
    for (uint32_t i = 0; points && done && i < shown->predictions->n; i++) {
        cJSON *object = append(points);
        done = object && fill_point(object, &shown->predictions->items[i], error);
    }
    return done && points;
}

cs_status cs_validate_print_json(const cs_validation_shown *shown, FILE *out, cs_error *error)
{
    cJSON *root = cJSON_CreateObject();
    if (!root || !fill(root, shown, error)) {
        cJSON_Delete(root);
        return cs_error_or_no_memory(error);
    }
    return cs_print_json(root, out, error);
}

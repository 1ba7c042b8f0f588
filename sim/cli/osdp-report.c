#include "sim/cli/osdp-report.h"

#include "sim/base/units.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef cs_units_value text;

static text time_text(double seconds)
{
    return cs_units_text(seconds, CS_QUANTITY_TIME, 4);
}

static text bytes_text(int64_t bytes)
{
    return bytes < INT64_MAX ? cs_units_text((double)bytes, CS_QUANTITY_BYTES, 4)
                             : (text){"unlimited memory"};
}

/* ---- for users ---- */

typedef struct line {
    const char *name, *none; /* `none`: text in place of a plan */
    const cs_osdp_plan *plan;
    double time, rate, fraction;
    int64_t memory;
    uint32_t cut;
} line;

static const char *why_none(const cs_osdp_study *s, cs_osdp_strategy row, bool simulated)
{
    const cs_osdp_row *fsdp = &s->rows[CS_OSDP_ROW_FSDP];
    if (row == CS_OSDP_ROW_BASE_SAME && !(simulated ? fsdp->fitted.found : fsdp->plan.found))
        return "-";
    return row == CS_OSDP_ROW_DEPTH_FIRST && !s->rows[row].plan.complete ? "none found in time"
                                                                         : "does not fit";
}

static line line_of(const cs_osdp_study *s, cs_osdp_strategy row, bool simulated)
{
    const cs_osdp_row *of = &s->rows[row];
    if (simulated)
        return (line){of->name,
                      why_none(s, row, true),
                      &of->fitted,
                      of->iteration_time,
                      cs_osdp_simulated_throughput(s, row),
                      of->fitted_fraction,
                      of->peak,
                      of->fitted_cut};
    return (line){of->name,
                  why_none(s, row, false),
                  &of->plan,
                  cs_time_seconds(of->plan.cost.time),
                  cs_osdp_throughput(s, row),
                  of->data_fraction,
                  of->plan.cost.memory,
                  of->cut};
}

static void print_line(const line *l, double fsdp, FILE *out)
{
    char ratio[32] = "-";
    if (!l->plan->found) {
        fprintf(out, "%-25s %s\n", l->name, l->none);
        return;
    }
    if (fsdp > 0)
        snprintf(ratio, sizeof(ratio), "%.3f", l->rate / fsdp);
    fprintf(out, "%-25s %5u  %-10s %-10.4g %-10s %8.1f %% %5u  %8s%s\n", l->name, l->plan->batch,
            time_text(l->time).s, l->rate, bytes_text(l->memory).s, 100 * l->fraction, l->cut,
            ratio, l->plan->complete ? "" : "  not finished");
}

static void print_rows(const cs_osdp_study *s, bool simulated, FILE *out)
{
    const double fsdp = simulated ? cs_osdp_simulated_throughput(s, CS_OSDP_ROW_FSDP)
                                  : cs_osdp_throughput(s, CS_OSDP_ROW_FSDP);
    fprintf(out, "\n%-25s %5s  %-10s %-10s %-10s %10s %5s  %8s\n",
            simulated ? "simulated" : "by the cost model", "batch", "step", "samples/s", "memory",
            "data mode", "cut", "of FSDP");
    for (uint32_t r = 0; r < CS_N_OSDP_ROWS; r++) {
        const line one = line_of(s, r, simulated);
        if (s->rows[r].asked && !(simulated && r == CS_OSDP_ROW_DEPTH_FIRST))
            print_line(&one, fsdp, out);
    }
}

/* Prints the gains of modes, batch and slices: their product is OSDP over FSDP. */
static void print_factors(const cs_osdp_study *s, FILE *out)
{
    const double modes = cs_osdp_ratio(s, CS_OSDP_ROW_BASE_SAME, CS_OSDP_ROW_FSDP);
    const double fraction = s->rows[CS_OSDP_ROW_BASE_SAME].data_fraction;
    if (isnan(modes))
        return;
    fprintf(out, "\nOSDP / FSDP: %.3f = %.3f (modes) * %.3f (batch) * %.3f (slices)\n",
            cs_osdp_ratio(s, CS_OSDP_ROW_OSDP, CS_OSDP_ROW_FSDP), modes,
            cs_osdp_ratio(s, CS_OSDP_ROW_BASE, CS_OSDP_ROW_BASE_SAME),
            cs_osdp_ratio(s, CS_OSDP_ROW_OSDP, CS_OSDP_ROW_BASE));
    fprintf(out, "bound on the gain of modes: %.3f with %.1f %% in data mode, %.3f with all\n",
            cs_osdp_bound(&s->model, fraction), 100 * fraction, cs_osdp_bound(&s->model, 1));
}

static bool is_like(const cs_osdp_model *model, uint32_t a, uint32_t b)
{
    return model->operators[a].weights == model->operators[b].weights &&
           model->operators[a].compute == model->operators[b].compute &&
           model->operators[a].kept == model->operators[b].kept;
}

static bool is_first_like(const cs_osdp_model *model, uint32_t op)
{
    for (uint32_t before = 0; before < op; before++) {
        if (is_like(model, before, op))
            return false;
    }
    return true;
}

static void print_choice(cs_osdp_choice choice, char *out, size_t size)
{
    if (choice.sharded == 0)
        snprintf(out, size, "data parallel");
    else if (choice.slices == 1)
        snprintf(out, size, "sharded");
    else
        snprintf(out, size, "%u of %u slices sharded", choice.sharded, choice.slices);
}

/* Prints how many operators of a kind have each choice, in order of appearance. */
static void print_kind(const cs_osdp_study *s, const cs_osdp_plan *plan, uint32_t first, FILE *out)
{
    const cs_osdp_model *m = &s->model;
    uint32_t all = 0;
    const char *before = "";
    for (uint32_t i = first; i < m->n; i++)
        all += is_like(m, first, i);
    fprintf(out, "%5u like %-36s ", all, s->scenario.model->layers[first].name);
    for (uint32_t i = first; i < m->n; i++) {
        const cs_osdp_choice *choice = &plan->choices[i];
        uint32_t same = 0;
        bool told = false;
        char what[64];
        for (uint32_t j = first; j < m->n; j++) {
            const bool equal = is_like(m, first, j) && plan->choices[j].slices == choice->slices &&
                               plan->choices[j].sharded == choice->sharded;
            same += equal;
            told |= equal && j < i;
        }
        if (!is_like(m, first, i) || told)
            continue;
        print_choice(*choice, what, sizeof(what));
        fprintf(out, "%s%u x %s", before, same, what);
        before = ", ";
    }
    fputc('\n', out);
}

static void print_plan(const cs_osdp_study *s, const cs_osdp_plan *plan, const char *of, FILE *out)
{
    if (!plan->found)
        return;
    fprintf(out, "\n%s, %u sample%s per device:\n", of, plan->batch, plan->batch == 1 ? "" : "s");
    for (uint32_t i = 0; i < s->model.n; i++) {
        if (s->model.operators[i].weights > 0 && is_first_like(&s->model, i))
            print_kind(s, plan, i, out);
    }
}

void cs_osdp_print(const cs_osdp_study *s, FILE *out)
{
    const cs_osdp_model *m = &s->model;
    fprintf(out, "%s: %s, %.4g parameters in %u operators, on %u devices of %s\n", s->scenario.name,
            s->scenario.model->name, s->parameters, s->n_weighted, m->devices,
            bytes_text(s->limit).s);
    fprintf(
        out,
        "cost model: alpha %s, 1/beta %s, gamma for %u sample%s; %u gathers of sharded weights; "
        "surge: %s\n",
        time_text(cs_time_seconds(m->latency)).s,
        cs_units_text(m->bandwidth, CS_QUANTITY_BANDWIDTH, 4).s, m->samples,
        m->samples == 1 ? "" : "s", m->gathers, cs_osdp_surge_names[s->surge]);
    print_rows(s, false, out);
    print_factors(s, out);
    if (s->simulated)
        print_rows(s, true, out);
    print_plan(s, &s->rows[CS_OSDP_ROW_OSDP].plan, "OSDP's plan", out);
    if (s->simulated)
        print_plan(s, &s->rows[CS_OSDP_ROW_OSDP].fitted, "OSDP's plan by the simulation", out);
}

/* ---- JSON ---- */

static bool add_choices(const cs_osdp_study *s, const cs_osdp_plan *plan, cJSON *object)
{
    cJSON *list = cJSON_AddArrayToObject(object, "layers");
    for (uint32_t i = 0; list && i < s->model.n; i++) {
        cJSON *one = cs_json_add_item(list);
        if (!cs_json_add_text(one, "name", s->scenario.model->layers[i].name) ||
            !cs_json_add_number(one, "slices", plan->choices[i].slices) ||
            !cs_json_add_number(one, "sharded_slices", plan->choices[i].sharded))
            return false;
    }
    return list != NULL;
}

static bool add_line(const cs_osdp_study *s, const line *l, cJSON *object)
{
    if (!cJSON_AddBoolToObject(object, "fits", l->plan->found))
        return false;
    return !l->plan->found ||
           (cs_json_add_number(object, "batch_size_device", l->plan->batch) &&
            cs_json_add_number(object, "step_time_s", l->time) &&
            cs_json_add_number(object, "throughput_samples_per_s", l->rate) &&
            cs_json_add_number(object, "memory_bytes", (double)l->memory) &&
            cs_json_add_number(object, "data_fraction", l->fraction) &&
            cs_json_add_number(object, "operators_cut", l->cut) && add_choices(s, l->plan, object));
}

static bool add_row(const cs_osdp_study *s, cs_osdp_strategy number, cJSON *list)
{
    const cs_osdp_row *row = &s->rows[number];
    const line modelled = line_of(s, number, false), simulated = line_of(s, number, true);
    cJSON *object = cs_json_add_item(list);
    if (!cs_json_add_text(object, "strategy", row->name) || !add_line(s, &modelled, object) ||
        !cJSON_AddBoolToObject(object, "complete", row->plan.complete) ||
        !cs_json_add_number(object, "search_time_s", row->search_time) ||
        !cs_json_add_number(object, "visited", (double)row->plan.visited))
        return false;
    return !s->simulated || number == CS_OSDP_ROW_DEPTH_FIRST ||
           add_line(s, &simulated, cJSON_AddObjectToObject(object, "simulated"));
}

static bool add_head(const cs_osdp_study *s, cJSON *root)
{
    const cs_osdp_model *m = &s->model;
    return cs_json_add_text(root, "name", s->scenario.name) &&
           cs_json_add_number(root, "parameters", s->parameters) &&
           cs_json_add_number(root, "operators", s->n_weighted) &&
           cs_json_add_number(root, "devices", m->devices) &&
           cs_json_add_number(root, "memory_bytes",
                              s->limit < INT64_MAX ? (double)s->limit : (double)INFINITY) &&
           cs_json_add_number(root, "least_memory_bytes", (double)s->least_memory) &&
           cs_json_add_number(root, "alpha_s", cs_time_seconds(m->latency)) &&
           cs_json_add_number(root, "beta_s_per_byte", 1 / m->bandwidth) &&
           cs_json_add_number(root, "gathers", m->gathers) &&
           cs_json_add_text(root, "surge", cs_osdp_surge_names[s->surge]);
}

static bool add_factors(const cs_osdp_study *s, cJSON *root)
{
    const double fraction = s->rows[CS_OSDP_ROW_BASE_SAME].data_fraction;
    return cs_json_add_number(root, "of_fsdp",
                              cs_osdp_ratio(s, CS_OSDP_ROW_OSDP, CS_OSDP_ROW_FSDP)) &&
           cs_json_add_number(root, "of_fsdp_by_modes",
                              cs_osdp_ratio(s, CS_OSDP_ROW_BASE_SAME, CS_OSDP_ROW_FSDP)) &&
           cs_json_add_number(root, "of_fsdp_by_batch",
                              cs_osdp_ratio(s, CS_OSDP_ROW_BASE, CS_OSDP_ROW_BASE_SAME)) &&
           cs_json_add_number(root, "of_fsdp_by_slices",
                              cs_osdp_ratio(s, CS_OSDP_ROW_OSDP, CS_OSDP_ROW_BASE)) &&
           cs_json_add_number(root, "bound_of_modes", cs_osdp_bound(&s->model, fraction)) &&
           cs_json_add_number(root, "bound_of_all_modes", cs_osdp_bound(&s->model, 1));
}

cJSON *cs_osdp_json(const cs_osdp_study *s)
{
    cJSON *root = cJSON_CreateObject(), *list = NULL;
    bool done = root && add_head(s, root) && add_factors(s, root) &&
                (list = cJSON_AddArrayToObject(root, "strategies"));
    for (uint32_t r = 0; done && r < CS_N_OSDP_ROWS; r++)
        done = !s->rows[r].asked || add_row(s, r, list);
    if (done)
        return root;
    cJSON_Delete(root);
    return NULL;
}

#include "sim/cli/strategies-report.h"

#include "sim/base/units.h"

/* Time of computing or of messages, s. */
static double seconds(const cs_strategy *row, bool messages, double samples)
{
    double sum = 0;
    for (int part = 0; part < CS_N_PARADL_PARTS; part++)
        if ((part >= CS_PARADL_GRADIENTS) == messages)
            sum += cs_paradl_seconds(&row->form, part, samples, row->asked.batch);
    return sum;
}

static double both(const cs_strategy *row, double samples)
{
    return seconds(row, false, samples) + seconds(row, true, samples);
}

/* Largest number of devices that a strategy can use; with groups, at most one group per sample. */
static double at_most(const cs_strategy *row)
{
    const double groups = row->asked.groups > 1 ? row->asked.batch : 1;
    const double members = row->asked.members > 1 ? (double)row->form.most_members : 1;
    return groups * members;
}

/* Writes what limits the number of devices: "samples, filters of conv1". */
static void limit_text(const cs_strategy *row, char *text, size_t size)
{
    static const char *const counted[CS_N_PARADL_METHODS] = {
        [CS_PARADL_SPATIAL] = "pixels of ",
        [CS_PARADL_PIPELINE] = "layers",
        [CS_PARADL_FILTER] = "filters of ",
        [CS_PARADL_CHANNEL] = "channels of ",
    };
    const bool groups = row->asked.groups > 1, members = row->asked.members > 1;
    const char *what = members ? counted[row->asked.method] : "", *limit = row->form.limit;
    snprintf(text, size, "%s%s%s%s", groups ? "samples" : "", groups && members ? ", " : "", what,
             members && limit ? limit : "");
}

/* Writes the devices of a group: "2", "4x2". */
static void members_text(const cs_paradl_case *c, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%u", c->members);
    if (c->method != CS_PARADL_SPATIAL || c->members == 1)
        return;
    used = (size_t)snprintf(text, size, "%u", c->space[0]);
    for (int d = 1; d < CS_SPACE_MAX && c->space[d] > 1; d++)
        used += (size_t)snprintf(text + used, size - used, "x%u", c->space[d]);
}

static void time_text(double value, char *text, size_t size)
{
    cs_units_format(value, CS_QUANTITY_TIME, 4, text, size);
}

void cs_strategies_print(const cs_strategies *s, FILE *out)
{
    fprintf(
        out,
        "%s: closed forms for %u device%s of topology %s, %u sample%s per iteration; %s, %s\n\n",
        s->network, s->devices, s->devices == 1 ? "" : "s", s->topology, s->batch,
        s->batch == 1 ? "" : "s", s->device, s->precision);
    fprintf(out, "%-13s %-11s %-10s %-10s %-10s ", "strategy", "devices", "computing", "messages",
            "iteration");
    if (s->dataset > 0)
        fprintf(out, "%-10s ", "epoch");
    fprintf(out, "%-10s %8s  %s\n", "memory", "at most", "limited by");
    for (uint32_t r = 0; r < CS_N_STRATEGIES; r++) {
        const cs_strategy *row = &s->rows[r];
        char shape[64], limit[160], texts[4][CS_UNITS_TEXT_BYTES] = {"-", "-", "-", "-"},
                                    memory[CS_UNITS_TEXT_BYTES] = "-";
        const double epoch = s->dataset > 0 ? s->dataset : s->batch;
        /* Write groups and their devices: "16 x 4". */
        const size_t size = sizeof(shape);
        char members[48];
        members_text(&row->asked, members, sizeof(members));
        if (row->asked.groups == 1)
            snprintf(shape, size, "%s", members);
        else if (row->asked.members == 1)
            snprintf(shape, size, "%u", row->asked.groups);
        else
            snprintf(shape, size, "%u x %s", row->asked.groups, members);
        limit_text(row, limit, sizeof(limit));
        if (row->form.fits) {
            time_text(seconds(row, false, s->batch), texts[0], sizeof(texts[0]));
            time_text(seconds(row, true, s->batch), texts[1], sizeof(texts[1]));
            time_text(both(row, s->batch), texts[2], sizeof(texts[2]));
            time_text(both(row, epoch), texts[3], sizeof(texts[3]));
            cs_units_format(row->form.memory, CS_QUANTITY_BYTES, 4, memory, sizeof(memory));
        }
        fprintf(out, "%-13s %-11s %-10s %-10s %-10s ", row->name, shape, texts[0], texts[1],
                texts[2]);
        if (s->dataset > 0)
            fprintf(out, "%-10s ", texts[3]);
        fprintf(out, "%-10s %8.0f%s%s\n", memory, at_most(row), limit[0] ? "  " : "", limit);
    }
}

/* ---- JSON ---- */

static bool add_number(cJSON *object, const char *key, double value)
{
    return cJSON_AddNumberToObject(object, key, value) != NULL;
}

static bool add_parts(cJSON *object, const cs_strategy *row)
{
    static const char *const keys[CS_N_PARADL_PARTS] = {
        "passes_s", "update_s", "gradients_s", "layers_s", "halo_s", "stages_s",
    };
    bool done = true;
    for (int part = 0; done && part < CS_N_PARADL_PARTS; part++)
        done = add_number(object, keys[part],
                          cs_paradl_seconds(&row->form, part, row->asked.batch, row->asked.batch));
    return done;
}

static bool add_space(cJSON *object, const cs_paradl_case *c)
{
    cJSON *space = cJSON_AddArrayToObject(object, "space");
    bool done = space != NULL;
    for (int d = 0; done && d < CS_SPACE_MAX; d++)
        done = cJSON_AddItemToArray(space, cJSON_CreateNumber(c->space[d]));
    return done;
}

static bool fill_row(cJSON *object, const cs_strategies *s, const cs_strategy *row)
{
    const cs_paradl_case *c = &row->asked;
    bool done = cJSON_AddStringToObject(object, "strategy", row->name) &&
                add_number(object, "groups", c->groups) &&
                add_number(object, "members", c->members) && add_space(object, c) &&
                cJSON_AddBoolToObject(object, "fits", row->form.fits) &&
                add_number(object, "at_most_devices", at_most(row)) &&
                (row->form.limit ? cJSON_AddStringToObject(object, "limited_by", row->form.limit)
                                 : cJSON_AddNullToObject(object, "limited_by"));
    if (done && c->method == CS_PARADL_PIPELINE)
        done = add_number(object, "segments", c->segments);
    if (!done || !row->form.fits)
        return done;
    return add_number(object, "computing_s", seconds(row, false, s->batch)) &&
           add_number(object, "messages_s", seconds(row, true, s->batch)) &&
           add_parts(object, row) && add_number(object, "iteration_s", both(row, s->batch)) &&
           (s->dataset <= 0 || add_number(object, "epoch_s", both(row, s->dataset))) &&
           add_number(object, "memory_bytes", row->form.memory);
}

static bool fill(cJSON *root, const cs_strategies *s)
{
    cJSON *list = NULL;
    bool done = cJSON_AddStringToObject(root, "model", s->network) &&
                cJSON_AddStringToObject(root, "device", s->device) &&
                cJSON_AddStringToObject(root, "precision", s->precision) &&
                cJSON_AddStringToObject(root, "topology", s->topology) &&
                add_number(root, "devices", s->devices) &&
                add_number(root, "batch_size", s->batch) && add_number(root, "reuse", s->reuse) &&
                (s->dataset <= 0 || add_number(root, "dataset", s->dataset)) &&
                (list = cJSON_AddArrayToObject(root, "strategies"));
    for (uint32_t r = 0; done && r < CS_N_STRATEGIES; r++) {
        cJSON *object = cJSON_CreateObject();
        done = cJSON_AddItemToArray(list, object) && fill_row(object, s, &s->rows[r]);
    }
    return done;
}

cJSON *cs_strategies_json(const cs_strategies *strategies)
{
    cJSON *root = cJSON_CreateObject();
    if (root && fill(root, strategies))
        return root;
    cJSON_Delete(root);
    return NULL;
}

#include "sim/study/sweep/sweep-figures.h"

#include "sim/base/text.h"
#include "sim/base/vector.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 200 };

static const char formula_end[] = "_formula";

/* ---- from a report ---- */

static bool is_figure(const cJSON *value)
{
    return cJSON_IsNumber(value) || cJSON_IsBool(value) || cJSON_IsNull(value);
}

static bool add_figure(cJSON *figures, const char *key, const cJSON *value)
{
    cJSON *copy = cJSON_Duplicate(value, false);
    if (!copy || !cJSON_AddItemToObject(figures, key, copy)) {
        cJSON_Delete(copy);
        return false;
    }
    return true;
}

static bool add_number(cJSON *figures, const char *prefix, const char *key, double value)
{
    char name[KEY_BYTES];
    snprintf(name, sizeof(name), "%s%s", prefix, key);
    if (cs_json_member(figures, name))
        return true; /* the report's own counts */
    return isfinite(value) ? cJSON_AddNumberToObject(figures, name, value) != NULL
                           : cJSON_AddNullToObject(figures, name) != NULL;
}

/* What is null where it is not known, and a text elsewhere: a figure neither way. */
static bool is_text(const char *key)
{
    return strcmp(key, "sharing") == 0 || strcmp(key, "hash") == 0;
}

static bool add_top_level(cJSON *figures, const cJSON *result)
{
    for (const cJSON *member = result->child; member; member = member->next) {
        if (is_figure(member) && !is_text(member->string) &&
            strlen(member->string) < KEY_BYTES / 2 && !add_figure(figures, member->string, member))
            return false;
    }
    return true;
}

/* How links were shared, and how collectives became messages. */
static bool add_texts(cJSON *figures, const cJSON *result)
{
    const cJSON *texts[] = {cs_json_member(result, "sharing"),
                            cs_json_member(cs_json_member(result, "collectives"), "algorithms")};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (cJSON_IsString(texts[i]) && !add_figure(figures, texts[i]->string, texts[i]))
            return false;
    return true;
}

/* difference_K for K_formula beside K */
static bool add_formulas(cJSON *figures, const cJSON *result)
{
    for (const cJSON *member = result->child; member; member = member->next) {
        char key[KEY_BYTES];
        size_t length = strlen(member->string), end = sizeof(formula_end) - 1;
        if (length <= end || length >= KEY_BYTES || !cJSON_IsNumber(member) ||
            strcmp(member->string + length - end, formula_end) != 0)
            continue;
        snprintf(key, sizeof(key), "%.*s", (int)(length - end), member->string);
        const cJSON *simulated = cs_json_member(result, key);
        if (cJSON_IsNumber(simulated) &&
            !add_number(figures, "difference_", key, simulated->valuedouble - member->valuedouble))
            return false;
    }
    return true;
}

static bool add_largest_in(cJSON *figures, const cJSON *list, const char *within, const char *key)
{
    double largest = -INFINITY;
    const cJSON *element;
    cJSON_ArrayForEach(element, list)
    {
        const cJSON *object = within ? cs_json_member(element, within) : element;
        const cJSON *value = cs_json_member(object, key);
        largest = cJSON_IsNumber(value) ? fmax(largest, value->valuedouble) : largest;
    }
    return !isfinite(largest) || add_number(figures, "", key, largest);
}

static bool add_largest(cJSON *figures, const cJSON *list, const char *key)
{
    return add_largest_in(figures, list, NULL, key);
}

/* Where the scenario has an allocator. */
static bool add_allocations(cJSON *figures, const cJSON *devices)
{
    return add_largest_in(figures, devices, "allocator", "peak_allocated_bytes") &&
           add_largest_in(figures, devices, "allocator", "peak_reserved_bytes") &&
           add_largest_in(figures, devices, "allocator", "fragmentation_fraction");
}

/* Of the capacities of devices the smallest, null where none has a limit. */
static bool add_capacity(cJSON *figures, const cJSON *devices)
{
    static const char key[] = "capacity_bytes";
    double smallest = INFINITY;
    const cJSON *element;
    cJSON_ArrayForEach(element, devices)
    {
        const cJSON *value = cs_json_member(element, key);
        smallest = cJSON_IsNumber(value) ? fmin(smallest, value->valuedouble) : smallest;
    }
    return !devices || add_number(figures, "", key, smallest);
}

static double number_of(const cJSON *object, const char *key)
{
    const cJSON *value = cs_json_member(object, key);
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

/* A form, what it is about, one figure of the whole run or of one device, and its rank: 1 for the
 * first form that is stated for that, 2 for the next one, ... */
typedef struct stated {
    const cJSON *form;
    const char *figure;
    double device; /* -1: of the whole run */
    uint32_t place, rank;
} stated;

static int by_figure(const void *left, const void *right)
{
    const stated *a = left, *b = right;
    const int order = strcmp(a->figure, b->figure);
    if (order != 0)
        return order;
    CS_COMPARE(a->device, b->device);
    CS_COMPARE(a->place, b->place);
    return 0;
}

static int by_place(const void *left, const void *right)
{
    const stated *a = left, *b = right;
    CS_COMPARE(a->place, b->place);
    return 0;
}

/* Lists the forms that name a figure, in order; there is room for all. */
static uint32_t list_forms(const cJSON *forms, stated *out)
{
    uint32_t n = 0;
    const cJSON *form;
    cJSON_ArrayForEach(form, forms)
    {
        const char *figure = cJSON_GetStringValue(cs_json_member(form, "figure"));
        const cJSON *device = cs_json_member(form, "device");
        if (!figure || strlen(figure) >= KEY_BYTES / 2)
            continue;
        out[n] = (stated){form, figure, device ? device->valuedouble : -1, n, 1};
        n++;
    }
    return n;
}

static void rank_forms(stated *all, uint32_t n)
{
    qsort(all, n, sizeof(*all), by_figure);
    for (uint32_t i = 1; i < n; i++)
        if (all[i].device == all[i - 1].device && strcmp(all[i].figure, all[i - 1].figure) == 0)
            all[i].rank = all[i - 1].rank + 1;
    qsort(all, n, sizeof(*all), by_place);
}

/* "closed_form_K", "closed_form2_K" */
static char *form_key(char *key, const char *word, uint32_t rank, const char *figure)
{
    char digits[16] = "";
    if (rank > 1)
        snprintf(digits, sizeof(digits), "%u", rank);
    snprintf(key, KEY_BYTES, "%s%s_%s", word, digits, figure);
    return key;
}

/* The largest closed form for a figure over the devices, and the largest difference. */
static bool add_closed_form(cJSON *figures, const stated *all, uint32_t n, const stated *like)
{
    double largest = NAN, farthest = NAN;
    char key[KEY_BYTES];
    bool applies = true, promised = true;
    const char *figure = like->figure;
    const uint32_t rank = like->rank;
    for (uint32_t i = 0; i < n; i++) {
        const cJSON *form = all[i].form;
        if (all[i].rank != rank || strcmp(all[i].figure, figure) != 0)
            continue;
        double difference = number_of(form, "difference");
        largest = fmax(largest, number_of(form, "closed_form"));
        applies = applies && cJSON_IsTrue(cs_json_member(form, "applies"));
        promised = promised && cJSON_IsTrue(cs_json_member(form, "promised"));
        if (isnan(farthest) || fabs(difference) > fabs(farthest))
            farthest = difference;
    }
    return add_number(figures, "", form_key(key, "closed_form", rank, figure), largest) &&
           add_number(figures, "", form_key(key, "difference", rank, figure), farthest) &&
           cJSON_AddBoolToObject(figures, form_key(key, "applies", rank, figure), applies) &&
           cJSON_AddBoolToObject(figures, form_key(key, "promised", rank, figure), promised);
}

/* Those of one figure and rank together, in the order in which they first come; mostly the one
 * before is of the same, for another device. */
static bool add_ranked(cJSON *figures, const stated *all, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char key[KEY_BYTES];
        if (i > 0 && all[i].rank == all[i - 1].rank &&
            strcmp(all[i].figure, all[i - 1].figure) == 0)
            continue;
        if (!cs_json_member(figures, form_key(key, "closed_form", all[i].rank, all[i].figure)) &&
            !add_closed_form(figures, all, n, &all[i]))
            return false;
    }
    return true;
}

static bool add_closed_forms(cJSON *figures, const cJSON *forms)
{
    stated *all = malloc(((size_t)cJSON_GetArraySize(forms) + 1) * sizeof(*all));
    if (!all)
        return false;
    const uint32_t n = list_forms(forms, all);
    rank_forms(all, n);
    const bool done = add_ranked(figures, all, n);
    free(all);
    return done;
}

cJSON *cs_figures_of(const cJSON *result)
{
    cJSON *figures = cJSON_CreateObject();
    const cJSON *devices = cs_json_member(result, "devices");
    if (figures && add_top_level(figures, result) && add_texts(figures, result) &&
        add_formulas(figures, result) && add_largest(figures, devices, "peak_memory_bytes") &&
        add_largest(figures, devices, "peak_activation_bytes") &&
        add_allocations(figures, devices) && add_capacity(figures, devices) &&
        add_closed_forms(figures, cs_json_member(result, "closed_forms")))
        return figures;
    cJSON_Delete(figures);
    return NULL;
}

/* ---- units ---- */

/* The figure that a name of form_key is about: what follows the word and the digits of its rank; or
 * NULL. */
static const char *after_word(const char *name, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(name, word, length) != 0)
        return NULL;
    name += length + strspn(name + length, "0123456789");
    return *name == '_' ? name + 1 : NULL;
}

cs_unit cs_figure_unit(const char *key)
{
    static const char *const words[] = {"closed_form", "difference"};
    const cs_run_figure *figure = cs_run_figure_find(key);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !figure; i++) {
        const char *of = after_word(key, words[i]);
        figure = of ? cs_run_figure_find(of) : NULL;
    }
    return figure ? figure->unit : CS_UNIT_NUMBER;
}

/* ---- columns ---- */

void cs_figure_table_finish(cs_figure_table *table)
{
    for (uint32_t c = 0; c < table->n_columns; c++) {
        for (uint32_t w = 0; w < table->columns[c].n_words; w++)
            free(table->columns[c].words[w]);
        free(table->columns[c].words);
        free(table->columns[c].name);
        free(table->columns[c].values);
    }
    free(table->columns);
    *table = (cs_figure_table){0};
}

static cs_figure_column *add_column(cs_figure_table *table, const char *name)
{
    if (!cs_vector_reserve((void **)&table->columns, &table->capacity, table->n_columns + 1ULL,
                           sizeof(*table->columns)))
        return NULL;
    cs_figure_column column = {.name = strdup(name),
                               .values = malloc((table->n_points + 1ULL) * sizeof(double)),
                               .point = UINT32_MAX};
    if (!column.name || !column.values) {
        free(column.name);
        free(column.values);
        return NULL;
    }
    for (uint32_t i = 0; i < table->n_points; i++)
        column.values[i] = NAN;
    table->columns[table->n_columns] = column;
    return &table->columns[table->n_columns++];
}

/* Points mostly have the same figures in the same order, so the search begins where the column is
 * expected. */
static cs_figure_column *find_column(const cs_figure_table *table, const char *name,
                                     uint32_t expected)
{
    for (uint32_t i = 0; i < table->n_columns; i++) {
        cs_figure_column *column = &table->columns[(expected + i) % table->n_columns];
        if (strcmp(column->name, name) == 0)
            return column;
    }
    return NULL;
}

/* An earlier run's journal may have been changed since. */
static cs_status check_figures(const cs_figure_table *table, const cJSON *figures, cs_error *error)
{
    uint32_t position = 0;
    for (const cJSON *figure = figures->child; figure; figure = figure->next, position++) {
        const char *name = figure->string;
        const cs_figure_column *column = find_column(table, name, position);
        const bool word = cJSON_IsString(figure);
        const bool named = *name && strcmp(name, ".") != 0 && !strchr(name, '/') &&
                           strlen(name) < KEY_BYTES && !cs_text_has_control(name, strlen(name));
        if (!named || (!word && !is_figure(figure)))
            return cs_error_add(error, CS_INVALID, "figures: must be numbers and texts");
        if (column && !cJSON_IsNull(figure) && (word ? column->number : column->n_words > 0))
            return cs_error_add(error, CS_INVALID,
                                "figures: %s: must be a text at all points, or a number", name);
    }
    return CS_OK;
}

static bool set_word(cs_figure_column *column, uint32_t point, const char *word)
{
    uint32_t at = 0;
    while (at < column->n_words && strcmp(column->words[at], word) != 0)
        at++;
    if (at == column->n_words) {
        if (!cs_vector_reserve((void **)&column->words, &column->cap_words,
                               column->n_words + UINT64_C(1), sizeof(*column->words)) ||
            !(column->words[at] = strdup(word)))
            return false;
        column->n_words++;
    }
    column->values[point] = at;
    return true;
}

const char *cs_figure_word(const cs_figure_column *column, uint32_t point)
{
    const double value = column->values[point];
    return column->n_words > 0 && isfinite(value) ? column->words[(uint32_t)value] : NULL;
}

cs_status cs_figure_table_add(cs_figure_table *table, uint32_t point, const cJSON *figures,
                              cs_error *error)
{
    uint32_t position = 0;
    CS_TRY(check_figures(table, figures, error));
    for (const cJSON *figure = figures->child; figure; figure = figure->next, position++) {
        cs_figure_column *column = find_column(table, figure->string, position);
        if (!column)
            column = add_column(table, figure->string);
        if (!column)
            return cs_error_no_memory(error);
        if (cJSON_IsNumber(figure))
            column->values[point] = figure->valuedouble;
        else if (cJSON_IsBool(figure))
            column->values[point] = cJSON_IsTrue(figure) ? 1 : 0;
        else if (cJSON_IsString(figure) && !set_word(column, point, figure->valuestring))
            return cs_error_no_memory(error);
        column->boolean = column->boolean || cJSON_IsBool(figure);
        column->number = column->number || cJSON_IsBool(figure) || cJSON_IsNumber(figure);
        if (point < column->point) {
            column->point = point;
            column->position = position;
        }
    }
    return CS_OK;
}

static int compare_columns(const void *a, const void *b)
{
    const cs_figure_column *x = a, *y = b;
    CS_COMPARE(x->point, y->point);
    CS_COMPARE(x->position, y->position);
    return 0;
}

void cs_figure_table_sort(cs_figure_table *table)
{
    if (table->n_columns > 1)
        qsort(table->columns, table->n_columns, sizeof(*table->columns), compare_columns);
}

const cs_figure_column *cs_figure_table_find(const cs_figure_table *table, const char *name)
{
    for (uint32_t c = 0; c < table->n_columns; c++) {
        if (strcmp(table->columns[c].name, name) == 0)
            return &table->columns[c];
    }
    return NULL;
}

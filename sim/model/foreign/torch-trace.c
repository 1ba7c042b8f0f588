#include "sim/model/foreign/torch-trace.h"

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/vector.h"
#include "sim/model/foreign/gzip.h"
#include "sim/model/foreign/torch-events.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX };

static const size_t largest_text = (size_t)512 << 20;

static const char backward_prefix[] = "autograd::engine::evaluate_function";

/* ---- layers while they are collected ---- */

typedef struct unit {
    const char *name;
    uint32_t step; /* step that its sizes come from */
    double first;  /* microseconds; earliest start */
    bool used;
    double forward, backward; /* microseconds; sum over all steps */
    bool exchanges;           /* whether it communicates */
    bool parameters;          /* whether one of its operators is known to have parameters */
    int64_t weight_bytes, input_bytes;
    int64_t samples; /* first dimension of its input */
} unit;

/* The unit whose operator made the node of the backward pass with this sequence number. */
typedef struct link {
    int64_t sequence;
    uint32_t order, unit;
} link;

typedef struct collection {
    const cs_torch_events *events;
    cs_arena *arena;
    bool times_only;
    uint32_t *module_units; /* unit of each module event */
    uint32_t *open;         /* stack of module events that have begun and may not have ended */
    uint32_t n_open, next_module;
    unit *units;
    uint32_t n_units, cap_units;
    link *links;
    uint32_t n_links, cap_links;
    uint32_t *places; /* units that are single operators, by their index within a step */
    uint32_t n_places, cap_places;
    uint32_t step, ordinal; /* step and index of the next such operator */
    bool backward;          /* whether some operator of the backward pass found its unit */
    bool *busy;             /* per step: whether forward or backward passes compute anything */
    double computing;       /* microseconds; computing time of all units */
} collection;

static const cs_torch_list *list_of(const collection *c, cs_torch_kind kind)
{
    return &c->events->lists[kind];
}

static double end_of(const cs_torch_event *event)
{
    return event->start + event->duration;
}

static cs_status add_unit(collection *c, const char *name, uint32_t *index, cs_error *error)
{
    if (!cs_vector_reserve((void **)&c->units, &c->cap_units, c->n_units + 1u, sizeof(*c->units)))
        return cs_error_no_memory(error);
    c->units[c->n_units] = (unit){.name = name, .step = NONE};
    *index = c->n_units++;
    return CS_OK;
}

/* Returns the step that runs at a time; NONE: outside all steps; 0: no steps were recorded. */
static uint32_t step_at(const collection *c, double time)
{
    const cs_torch_list *steps = list_of(c, CS_TORCH_STEP);
    for (uint32_t i = steps->n; i-- > 0;)
        if (steps->events[i].start <= time)
            return time < end_of(&steps->events[i]) ? i : NONE;
    return steps->n > 0 ? NONE : 0;
}

static uint32_t count_steps(const collection *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i == 0 || i < list_of(c, CS_TORCH_STEP)->n; i++)
        n += c->busy[i];
    return n;
}

/* ---- modules ---- */

typedef struct named {
    const char *name;
    uint32_t event;
} named;

static int compare_named(const void *a, const void *b)
{
    const named *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left->event > right->event) - (left->event < right->event);
}

/* Makes one unit per module; all calls of a module belong to its unit. */
static cs_status name_modules(collection *c, named *sorted, cs_error *error)
{
    const cs_torch_list *modules = list_of(c, CS_TORCH_MODULE);
    cs_status status = CS_OK;
    uint32_t index = NONE;
    for (uint32_t i = 0; i < modules->n; i++)
        sorted[i] = (named){modules->events[i].name, i};
    qsort(sorted, modules->n, sizeof(*sorted), compare_named);
    for (uint32_t i = 0; i < modules->n && status == CS_OK; i++) {
        if (i == 0 || strcmp(sorted[i].name, sorted[i - 1].name) != 0)
            status = add_unit(c, sorted[i].name, &index, error);
        c->module_units[sorted[i].event] = index;
    }
    return status;
}

static cs_status find_modules(collection *c, cs_error *error)
{
    uint32_t n = list_of(c, CS_TORCH_MODULE)->n;
    c->module_units = calloc(n + 1u, sizeof(*c->module_units));
    c->open = calloc(n + 1u, sizeof(*c->open));
    named *sorted = calloc(n + 1u, sizeof(*sorted));
    cs_status status = c->module_units && c->open && sorted ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK && n > 0)
        status = name_modules(c, sorted, error);
    free(sorted);
    return status;
}

/* Returns the unit of the innermost module around an operator. Must be called in the order of the
 * operator list, so that a stack can hold the open modules. */
static uint32_t module_around(collection *c, const cs_torch_event *op)
{
    const cs_torch_list *modules = list_of(c, CS_TORCH_MODULE);
    const cs_torch_event *all = modules->events;
    for (; c->next_module < modules->n; c->next_module++) {
        const cs_torch_event *next = &all[c->next_module];
        if (next->thread > op->thread || (next->thread == op->thread && next->start > op->start))
            break;
        while (c->n_open > 0 && (all[c->open[c->n_open - 1]].thread != next->thread ||
                                 end_of(&all[c->open[c->n_open - 1]]) <= next->start))
            c->n_open--;
        c->open[c->n_open++] = c->next_module;
    }
    while (c->n_open > 0 && (all[c->open[c->n_open - 1]].thread != op->thread ||
                             end_of(&all[c->open[c->n_open - 1]]) < end_of(op)))
        c->n_open--;
    return c->n_open > 0 ? c->module_units[c->open[c->n_open - 1]] : NONE;
}

/* ---- times and sizes of an operator ---- */

/* Returns the part of an operator's time that its exchanges take, for traces without kernels. An
 * exchange may outlast its operator, as it may still wait for other ranks. */
static double exchange_time(const collection *c, const cs_torch_event *op)
{
    const cs_torch_list *exchanges = list_of(c, CS_TORCH_EXCHANGE);
    double sum = 0, covered = op->start;
    for (uint32_t i = cs_torch_first(exchanges, op->thread, op->start); i < exchanges->n; i++) {
        const cs_torch_event *exchange = &exchanges->events[i];
        if (exchange->thread != op->thread || exchange->start >= end_of(op))
            break;
        const double from = fmax(exchange->start, covered);
        const double to = fmin(end_of(exchange), end_of(op));
        sum += to > from ? to - from : 0;
        covered = fmax(covered, to);
    }
    return sum;
}

/* Returns the microseconds that an operator computes: its kernels except those that communicate; if
 * the trace has no kernels, the operator's own time without exchanges. Sets *exchanges if it
 * communicates. */
static double time_of(const collection *c, const cs_torch_event *op, bool *exchanges)
{
    const cs_torch_list *launches = list_of(c, CS_TORCH_LAUNCH);
    const cs_torch_list *kernels = list_of(c, CS_TORCH_KERNEL);
    double sum = 0;
    if (kernels->n == 0) {
        const double exchanged = exchange_time(c, op);
        *exchanges |= exchanged > 0;
        return op->duration - exchanged;
    }
    for (uint32_t i = cs_torch_first(launches, op->thread, op->start); i < launches->n; i++) {
        const cs_torch_event *launch = &launches->events[i];
        uint32_t n;
        if (launch->thread != op->thread || launch->start > end_of(op))
            break;
        const cs_torch_event *launched = cs_torch_kernels(kernels, launch->correlation, &n);
        for (uint32_t k = 0; k < n; k++) {
            *exchanges |= launched[k].communication;
            sum += launched[k].communication ? 0 : launched[k].duration;
        }
    }
    return sum;
}

static double compute(collection *c, const cs_torch_event *op, unit *to)
{
    const double time = time_of(c, op, &to->exchanges);
    c->computing += time;
    return time;
}

/* Operators with parameters: a bit for each input that is a parameter, and the index of the input
 * that is the data. */
static const struct {
    const char *name;
    uint32_t parameters, data;
} shapes[] = {
    {"aten::conv1d", 6, 0},      {"aten::conv2d", 6, 0},    {"aten::conv3d", 6, 0},
    {"aten::convolution", 6, 0}, {"aten::linear", 6, 0},    {"aten::batch_norm", 6, 0},
    {"aten::layer_norm", 12, 0}, {"aten::embedding", 1, 1}, {"aten::group_norm", 12, 0},
};

static int64_t element_bytes(const cJSON *types, int i)
{
    const cJSON *type = cJSON_GetArrayItem(types, i);
    const char *text = cJSON_IsString(type) ? type->valuestring : "";
    if (strstr(text, "Half") || strstr(text, "BFloat16") || strstr(text, "half"))
        return 2;
    return strstr(text, "long") || strstr(text, "double") ? 8 : 4;
}

/* Returns the bytes of input i; 0 if the input is not a tensor, or is too large for an exact
 * size. */
static int64_t input_bytes(const cs_torch_event *op, uint32_t i)
{
    const cJSON *dims = cs_json_member(op->arguments, "Input Dims");
    const cJSON *types = cs_json_member(op->arguments, "Input type");
    const cJSON *shape = cJSON_IsArray(dims) ? cJSON_GetArrayItem(dims, (int)i) : NULL;
    double product = 1;
    const cJSON *dim;
    if (!cJSON_IsArray(shape) || !shape->child)
        return 0;
    cJSON_ArrayForEach(dim, shape)
    {
        product *= cJSON_IsNumber(dim) && dim->valuedouble >= 0 ? dim->valuedouble : 0;
    }
    return product <= 1125899906842624.0 ? (int64_t)product * element_bytes(types, (int)i) : 0;
}

static int64_t first_dimension(const cs_torch_event *op, uint32_t i)
{
    const cJSON *dims = cs_json_member(op->arguments, "Input Dims");
    const cJSON *shape = cJSON_IsArray(dims) ? cJSON_GetArrayItem(dims, (int)i) : NULL;
    const cJSON *dim = cJSON_IsArray(shape) ? shape->child : NULL;
    bool fits = cJSON_IsNumber(dim) && dim->valuedouble >= 1 && dim->valuedouble <= UINT32_MAX;
    return fits ? (int64_t)dim->valuedouble : 0;
}

/* Takes the sizes from one step, as all steps have the same sizes. */
static void take_sizes(const collection *c, const cs_torch_event *op, uint32_t step, unit *to)
{
    uint32_t parameters = 0, data = 0;
    if (to->step == NONE)
        to->step = step;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (strcmp(op->name, shapes[i].name) == 0) {
            parameters = shapes[i].parameters;
            data = shapes[i].data;
        }
    }
    to->parameters |= parameters != 0;
    if (c->times_only || !op->arguments || to->step != step)
        return;
    for (uint32_t i = 0; parameters >> i; i++) {
        int64_t bytes = parameters >> i & 1 ? input_bytes(op, i) : 0;
        if (__builtin_add_overflow(to->weight_bytes, bytes, &to->weight_bytes))
            to->weight_bytes = INT64_MAX;
    }
    if (to->input_bytes == 0) {
        to->input_bytes = input_bytes(op, data);
        to->samples = first_dimension(op, data);
    }
}

/* ---- the passes ---- */

static cs_status add_link(collection *c, int64_t sequence, uint32_t index, cs_error *error)
{
    if (sequence < 0)
        return CS_OK;
    if (!cs_vector_reserve((void **)&c->links, &c->cap_links, c->n_links + 1u, sizeof(*c->links)))
        return cs_error_no_memory(error);
    c->links[c->n_links] = (link){sequence, c->n_links, index};
    c->n_links++;
    return CS_OK;
}

/* Returns the unit of an operator outside all modules, which is found by its index within the
 * step. */
static cs_status operator_unit(collection *c, const cs_torch_event *op, uint32_t *index,
                               cs_error *error)
{
    static const char format[] = "%s %u";
    const uint32_t step = step_at(c, op->start);
    c->ordinal = step == c->step ? c->ordinal : 0;
    c->step = step;
    uint32_t place = c->ordinal++;
    if (place < c->n_places) {
        *index = c->places[place];
        return CS_OK;
    }
    size_t size = strlen(op->name) + sizeof(format) + 10;
    char *name = cs_arena_alloc(c->arena, size, 1);
    if (!name ||
        !cs_vector_reserve((void **)&c->places, &c->cap_places, place + 1u, sizeof(*c->places)))
        return cs_error_no_memory(error);
    snprintf(name, size, format, op->name, place);
    cs_status status = add_unit(c, name, index, error);
    if (status == CS_OK)
        c->places[c->n_places++] = *index;
    return status;
}

/* Adds an outermost operator of the forward pass, with the operators that it calls: [first, end).
 * Operators that communicate, or are outside busy steps, belong to no layer. */
static cs_status add_forward(collection *c, uint32_t first, uint32_t end, cs_error *error)
{
    const cs_torch_event *ops = list_of(c, CS_TORCH_OPERATOR)->events, *op = &ops[first];
    uint32_t index = module_around(c, op);
    const uint32_t step = step_at(c, op->start);
    cs_status status = CS_OK;
    if (step == NONE || !c->busy[step] || op->communication || (index == NONE && op->sequence < 0))
        return CS_OK;
    if (index == NONE)
        status = operator_unit(c, op, &index, error);
    if (status != CS_OK)
        return status;
    unit *to = &c->units[index];
    if (!to->used || op->start < to->first)
        to->first = op->start;
    to->used = true;
    to->forward += compute(c, op, to);
    take_sizes(c, op, step, to);
    for (uint32_t i = first; i < end && status == CS_OK; i++)
        status = add_link(c, ops[i].sequence, index, error);
    return status;
}

static int compare_links(const void *a, const void *b)
{
    const link *left = a, *right = b;
    if (left->sequence != right->sequence)
        return left->sequence < right->sequence ? -1 : 1;
    return left->order < right->order ? -1 : left->order > right->order;
}

/* Returns the unit with a sequence number, or NONE. An operator that makes no node has the number
 * of the next operator that makes one, so the last unit with the number is the right one. */
static uint32_t linked_unit(const collection *c, int64_t sequence)
{
    uint32_t low = 0, high = c->n_links;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->links[middle].sequence <= sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && c->links[low - 1].sequence == sequence ? c->links[low - 1].unit : NONE;
}

static bool is_backward(const cs_torch_event *op)
{
    return strncmp(op->name, backward_prefix, strlen(backward_prefix)) == 0;
}

/* Returns one past the last operator that runs within the operator at `first`. */
static uint32_t end_of_calls(const cs_torch_list *ops, uint32_t first)
{
    const cs_torch_event *op = &ops->events[first];
    uint32_t end = first + 1;
    while (end < ops->n && ops->events[end].thread == op->thread &&
           ops->events[end].start < end_of(op))
        end++;
    return end;
}

/* Finds the steps that compute something: a profiler also records steps while it warms up, and an
 * empty step at the end. Returns whether some operator belongs to a forward or backward pass. */
static bool find_busy_steps(collection *c)
{
    const cs_torch_list *ops = list_of(c, CS_TORCH_OPERATOR);
    bool any = false;
    for (uint32_t i = 0, end; i < ops->n; i = end) {
        const cs_torch_event *op = &ops->events[i];
        const uint32_t step = step_at(c, op->start);
        bool trains = is_backward(op), exchanges = false;
        end = end_of_calls(ops, i);
        for (uint32_t k = i; k < end; k++)
            trains |= ops->events[k].sequence >= 0;
        any |= trains;
        if (trains && step != NONE && !c->busy[step])
            c->busy[step] = time_of(c, op, &exchanges) > 0;
    }
    return any;
}

static cs_status collect_forward(collection *c, cs_error *error)
{
    const cs_torch_list *ops = list_of(c, CS_TORCH_OPERATOR);
    cs_status status = CS_OK;
    for (uint32_t i = 0, end; i < ops->n && status == CS_OK; i = end) {
        end = end_of_calls(ops, i);
        if (!is_backward(&ops->events[i]))
            status = add_forward(c, i, end, error);
    }
    return status;
}

static void collect_backward(collection *c)
{
    const cs_torch_list *ops = list_of(c, CS_TORCH_OPERATOR);
    if (c->n_links > 0)
        qsort(c->links, c->n_links, sizeof(*c->links), compare_links);
    for (uint32_t i = 0; i < ops->n; i = end_of_calls(ops, i)) {
        const cs_torch_event *op = &ops->events[i];
        const uint32_t index = is_backward(op) ? linked_unit(c, op->sequence) : NONE;
        const uint32_t step = step_at(c, op->start);
        if (index == NONE || step == NONE || !c->busy[step])
            continue;
        c->units[index].backward += compute(c, op, &c->units[index]);
        c->backward = true;
    }
}

/* ---- the model ---- */

static int compare_units(const void *a, const void *b)
{
    const unit *left = a, *right = b;
    if (left->used != right->used)
        return left->used ? -1 : 1;
    return left->first < right->first ? -1 : left->first > right->first;
}

/* Drops the units that only communicate, because they are not layers. */
static void drop_exchanges(collection *c)
{
    for (uint32_t i = 0; i < c->n_units; i++) {
        unit *of = &c->units[i];
        if (of->exchanges && !(of->forward > 0) && !(of->backward > 0) && !of->parameters)
            of->used = false;
    }
}

static bool fill_layer(const collection *c, const unit *from, cs_layer *to)
{
    const double steps = count_steps(c);
    const bool weights = c->times_only ? from->parameters : from->weight_bytes > 0;
    cs_time backward;
    to->name = from->name;
    to->weight_bytes = from->weight_bytes;
    to->kept_bytes = from->input_bytes;
    to->timing = "measured";
    if (!cs_time_from_seconds(from->forward / steps * 1e-6, &to->forward) ||
        !cs_time_from_seconds(from->backward / steps * 1e-6, &backward))
        return false;
    to->backward_weight = weights ? backward / 2 : 0;
    to->backward_input = backward - to->backward_weight;
    return true;
}

static cs_status fill_layers(collection *c, cs_model *model, cs_error *error)
{
    uint32_t n = 0;
    qsort(c->units, c->n_units, sizeof(*c->units), compare_units);
    while (n < c->n_units && c->units[n].used)
        n++;
    model->layers = cs_arena_alloc(&model->arena, n, sizeof(*model->layers));
    if (!model->layers)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++) {
        cs_layer *layer = &model->layers[i];
        if (!fill_layer(c, &c->units[i], layer))
            return cs_error_add(error, CS_OVERFLOW, "%s: the times of %s do not fit 64 bits",
                                c->events->file, c->units[i].name);
        layer->name = cs_arena_copy(&model->arena, *layer->name ? layer->name : "module");
        layer->output_bytes = i + 1 < n ? c->units[i + 1].input_bytes : 0;
        if (!layer->name)
            return cs_error_no_memory(error);
    }
    model->n_layers = n;
    model->input_bytes = c->units[0].input_bytes;
    return CS_OK;
}

/* Returns the name of the first device in the trace's device properties. */
static const char *hardware_of(const cJSON *root)
{
    const cJSON *list = cJSON_IsObject(root) ? cs_json_member(root, "deviceProperties") : NULL;
    const cJSON *device = cJSON_IsArray(list) ? list->child : NULL;
    const cJSON *name = cJSON_IsObject(device) ? cs_json_member(device, "name") : NULL;
    bool known = cJSON_IsString(name) && name->valuestring[0] != '\0';
    return known ? name->valuestring : "not stated";
}

static cs_status describe(const collection *c, const cJSON *root, const cs_torch_options *options,
                          cs_model *model, const cs_torch_report *report, cs_error *error)
{
    char text[400];
    cs_arena *arena = &model->arena;
    static const char notes[] = "mean over the steps; backward of layers with weights split in "
                                "halves; every layer keeps what it reads, and hands on what the "
                                "next one reads; updates and communication left out";
    static const char times_notes[] =
        "times only: sizes of weights, activations and messages are not known, and stand as 0; "
        "mean "
        "over the steps; backward of layers with operators that have parameters split in halves; "
        "updates and communication left out";
    int64_t samples = c->units[0].samples;
    model->times_only = options->times_only;
    model->batch_size = options->batch_size ? options->batch_size : (uint32_t)samples;
    if (model->batch_size == 0)
        return cs_error_add(error, CS_INVALID,
                            "%s: %s has no shape to take the batch from: give --batch",
                            c->events->file, c->units[0].name);
    model->name = cs_arena_copy(arena, options->name ? options->name : "torch");
    cs_text_format(text, sizeof(text), "PyTorch trace %.300s", c->events->file);
    model->provenance.source = cs_arena_copy(arena, text);
    model->provenance.hardware =
        cs_arena_copy(arena, options->hardware ? options->hardware : hardware_of(root));
    model->provenance.date = cs_arena_copy(arena, options->date);
    model->provenance.notes = options->times_only ? times_notes : notes;
    if (report->n_exchanges > 0) {
        char with_amount[700];
        cs_text_format(with_amount, sizeof(with_amount), "%s (communication: %.4g ms in all)",
                       model->provenance.notes, report->communication * 1e-3);
        model->provenance.notes = cs_arena_copy(arena, with_amount);
    }
    if (!model->name || !model->provenance.notes || !model->provenance.source ||
        !model->provenance.hardware || !model->provenance.date)
        return cs_error_no_memory(error);
    return CS_OK;
}

/* Sums the times that the model leaves out. */
static void count_left_out(const collection *c, cs_torch_report *report)
{
    const cs_torch_list *kernels = list_of(c, CS_TORCH_KERNEL);
    const cs_torch_list *exchanges = list_of(c, CS_TORCH_EXCHANGE);
    double all = 0, covered = -INFINITY;
    for (uint32_t i = 0; i < kernels->n; i++) {
        const cs_torch_event *kernel = &kernels->events[i];
        if (kernel->communication) {
            report->n_exchanges++;
            report->communication += kernel->duration;
        }
        all += kernel->duration;
    }
    report->others = fmax(all - report->communication - c->computing, 0);
    for (uint32_t i = 0; i < exchanges->n && kernels->n == 0; i++) {
        const cs_torch_event *exchange = &exchanges->events[i];
        const bool same = i > 0 && exchange->thread == exchanges->events[i - 1].thread;
        const double from = same ? fmax(exchange->start, covered) : exchange->start;
        report->n_exchanges += from == exchange->start;
        report->communication += fmax(end_of(exchange) - from, 0);
        covered = same ? fmax(covered, end_of(exchange)) : end_of(exchange);
    }
}

static cs_status build(collection *c, const cJSON *root, const cs_torch_options *options,
                       cs_model *model, cs_torch_report *report, cs_error *error)
{
    if (find_busy_steps(c) && count_steps(c) == 0)
        return cs_error_add(error, CS_INVALID,
                            "%s: no step computes anything: kernels communicate, or belong to no "
                            "operator of a forward or backward pass",
                            c->events->file);
    CS_TRY(find_modules(c, error));
    CS_TRY(collect_forward(c, error));
    if (c->n_links == 0)
        return cs_error_add(error, CS_INVALID,
                            "%s: no operator of a forward pass: record the training, not under "
                            "torch.no_grad()",
                            c->events->file);
    collect_backward(c);
    if (!c->backward)
        return cs_error_add(error, CS_INVALID,
                            "%s: no backward pass: record loss.backward() as well",
                            c->events->file);
    drop_exchanges(c);
    CS_TRY(fill_layers(c, model, error));
    *report = (cs_torch_report){.n_steps = count_steps(c),
                                .n_recorded_steps = list_of(c, CS_TORCH_STEP)->n,
                                .n_operators = list_of(c, CS_TORCH_OPERATOR)->n,
                                .n_kernels = list_of(c, CS_TORCH_KERNEL)->n,
                                .n_layers = model->n_layers,
                                .modules = list_of(c, CS_TORCH_MODULE)->n > 0};
    count_left_out(c, report);
    return describe(c, root, options, model, report, error);
}

static void finish(collection *c)
{
    free(c->busy);
    free(c->module_units);
    free(c->open);
    free(c->places);
    free(c->units);
    free(c->links);
}

static cs_status make_model(const cJSON *root, const cs_torch_events *events,
                            const cs_torch_options *options, cs_model *model,
                            cs_torch_report *report, cs_error *error)
{
    cs_model made = {0};
    cs_arena_init(&made.arena);
    collection c = {.events = events, .arena = &made.arena, .times_only = options->times_only};
    c.busy = calloc(list_of(&c, CS_TORCH_STEP)->n + 1u, sizeof(*c.busy));
    cs_torch_report told;
    cs_status status =
        c.busy ? build(&c, root, options, &made, &told, error) : cs_error_no_memory(error);
    if (status == CS_OK) {
        *report = told;
        *model = made;
    } else {
        cs_model_finish(&made);
    }
    finish(&c);
    return status;
}

static cs_status parse_json(const char *file, const char *text, size_t length,
                            const cs_torch_options *options, cs_model *model,
                            cs_torch_report *report, cs_error *error)
{
    cJSON *root;
    cs_torch_events events = {0};
    CS_TRY(cs_json_parse(file, text, length, &root, error));
    cs_status status = cs_torch_events_read(root, file, options->times_only, &events, error);
    if (status == CS_OK)
        status = make_model(root, &events, options, model, report, error);
    cs_torch_events_finish(&events);
    cJSON_Delete(root);
    return status;
}

cs_status cs_torch_parse(const char *file, const char *text, size_t length,
                         const cs_torch_options *options, cs_model *model, cs_torch_report *report,
                         cs_error *error)
{
    char *unpacked;
    size_t size;
    if (!options->date || !cs_text_is_date(options->date))
        return cs_error_add(error, CS_USAGE,
                            "the date of a PyTorch trace must be a day as YYYY-MM-DD");
    if (!cs_gzip_is(text, length))
        return parse_json(file, text, length, options, model, report, error);
    CS_TRY(cs_gzip_unpack(file, text, length, largest_text, &unpacked, &size, error));
    cs_status status = parse_json(file, unpacked, size, options, model, report, error);
    free(unpacked);
    return status;
}

cs_status cs_torch_load(const char *path, const cs_torch_options *options, cs_model *model,
                        cs_torch_report *report, cs_error *error)
{
    char *text;
    size_t length;
    CS_TRY(cs_file_read(path, largest_text, &text, &length, error));
    cs_status status = cs_torch_parse(path, text, length, options, model, report, error);
    free(text);
    return status;
}

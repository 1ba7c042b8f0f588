#include "sim/workload/model.h"

#include "sim/base/field.h"
#include "sim/base/text.h"

#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

/* What stands around the model's own members. */
typedef struct document {
    uint32_t schema_version;
    const cJSON *work, *provenance, *layers;
} document;

static const cs_field version_fields[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(document, schema_version), .min = SCHEMA_VERSION,
     .max = SCHEMA_VERSION, .doc = "version of this format"},
    {0}};

static const cs_field part_fields[] = {
    {"work", CS_FIELD_JSON, offsetof(document, work), .fallback = "",
     .doc = "what training computes, whatever time it takes",
     .shape = "{\"flop_per_sample\", ...}"},
    {"provenance", CS_FIELD_JSON, offsetof(document, provenance),
     .doc = "where the numbers come from", .shape = "{\"source\", \"hardware\", \"date\"}"},
    {"layers", CS_FIELD_JSON, offsetof(document, layers), .doc = "the chain, from input to output",
     .shape = "[{layer}, ...]"},
    {0}};

static const cs_field model_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(cs_model, name), .doc = "name of the model"},
    {"batch_size", CS_FIELD_COUNT, offsetof(cs_model, batch_size),
     .doc = "samples that times and activations are for; 0: per micro-batch, whatever its size"},
    {"input", CS_FIELD_BYTES, offsetof(cs_model, input_bytes), .fallback = "0",
     .doc = "what the first layer reads"},
    {"precision", CS_FIELD_CHOICE, offsetof(cs_model, precision), .fallback = "fp32",
     .choices = cs_precision_names,
     .doc = "of weights and gradients; with fp16 and bf16 an optimizer keeps float32 besides"},
    {0}};

/* Written only where it is true. */
static const cs_field times_only_fields[] = {
    {"times_only", CS_FIELD_BOOL, offsetof(cs_model, times_only), .fallback = "false",
     .doc = "sizes of weights, activations and messages are not known, and stand as 0"},
    {0}};

static const cs_field work_fields[] = {
    {"flop_per_sample", CS_FIELD_NUMBER, offsetof(cs_model_work, flop_per_sample),
     .above_min = true, .doc = "of forward and backward, each product counted once"},
    {"tokens_per_sample", CS_FIELD_COUNT, offsetof(cs_model_work, tokens_per_sample),
     .fallback = "0", .doc = "of a model that reads tokens"},
    {"device", CS_FIELD_TEXT, offsetof(cs_model_work, device), .fallback = "",
     .doc = "that the times are for"},
    {"peak", CS_FIELD_FLOP_RATE, offsetof(cs_model_work, peak), .fallback = "0",
     .doc = "flop/s of the device in the precision"},
    {0}};

static const cs_field provenance_fields[] = {
    {"source", CS_FIELD_TEXT, offsetof(cs_provenance, source),
     .doc = "who or what made the numbers: a command, a paper, an estimate"},
    {"hardware", CS_FIELD_TEXT, offsetof(cs_provenance, hardware),
     .doc = "what they were measured on, \"none\" when derived"},
    {"date", CS_FIELD_TEXT, offsetof(cs_provenance, date), .doc = "when, YYYY-MM-DD"},
    {"notes", CS_FIELD_TEXT, offsetof(cs_provenance, notes), .fallback = "",
     .doc = "anything else that a reader should know"},
    {0}};

/* The fallbacks of the two backward parts and of `kept` only hold until what was left out is known.
 */
static const cs_field layer_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(cs_layer, name), .doc = "name, unique in the model"},
    {"forward", CS_FIELD_TIME, offsetof(cs_layer, forward), .doc = "forward pass"},
    {"backward_input", CS_FIELD_TIME, offsetof(cs_layer, backward_input), .fallback = "0",
     .doc = "gradient of the input"},
    {"backward_weight", CS_FIELD_TIME, offsetof(cs_layer, backward_weight), .fallback = "0",
     .doc = "gradient of the weights"},
    {"update", CS_FIELD_TIME, offsetof(cs_layer, update), .fallback = "0",
     .doc = "weight update, once per step, whatever the batch"},
    {"weights", CS_FIELD_BYTES, offsetof(cs_layer, weight_bytes), .doc = "weights"},
    {"output", CS_FIELD_BYTES, offsetof(cs_layer, output_bytes),
     .doc = "activation handed to the next layer"},
    {"kept", CS_FIELD_BYTES, offsetof(cs_layer, kept_bytes), .fallback = "0",
     .doc = "kept from forward to the end of backward; the layer's input when left out"},
    {"workspace", CS_FIELD_BYTES, offsetof(cs_layer, workspace_bytes), .fallback = "0",
     .doc = "scratch memory while the layer computes"},
    {"recompute", CS_FIELD_BOOL, offsetof(cs_layer, recompute), .fallback = "false",
     .doc = "keep the layer's input only, and run its forward again for its backward"},
    {"timing", CS_FIELD_TEXT, offsetof(cs_layer, timing), .fallback = "",
     .doc = "where a layer's times come from when layers differ: measured, estimated"},
    {0}};

/* Instead of the two parts. */
typedef struct whole_backward {
    cs_time backward;
} whole_backward;

static const cs_field whole_fields[] = {{"backward", CS_FIELD_TIME,
                                         offsetof(whole_backward, backward), .fallback = "0",
                                         .doc = "backward pass, where its two parts are not known"},
                                        {0}};

/* The status of several checks is that of the first that failed. */
static void note(cs_status *status, cs_status other)
{
    if (*status == CS_OK)
        *status = other;
}

static cs_status check_not_empty(const char *text, const char *key, const cs_json_place *place,
                                 cs_error *error)
{
    cs_json_place member = {.up = place, .key = key};
    if (text && text[0] == '\0')
        return cs_json_invalid(&member, error, "must not be empty");
    return CS_OK;
}

static cs_status check_date(const char *date, const cs_json_place *up, cs_error *error)
{
    cs_json_place place = {.up = up, .key = "date"};
    char quoted[CS_TEXT_QUOTED_BYTES];
    if (!date || cs_text_is_date(date))
        return CS_OK;
    return cs_json_invalid(&place, error, "must be a day as YYYY-MM-DD (got %s)",
                           cs_text_quote(date, quoted, sizeof(quoted)));
}

static cs_status read_provenance(const cJSON *object, const cs_json_place *up, cs_model *model,
                                 cs_error *error)
{
    cs_json_place place = {.up = up, .key = "provenance"};
    cs_provenance *out = &model->provenance;
    const cs_field *const tables[] = {provenance_fields, NULL};
    void *const outs[] = {out};
    cs_status status = cs_field_read(object, &place, tables, outs, &model->arena, error);
    note(&status, check_not_empty(out->source, "source", &place, error));
    note(&status, check_not_empty(out->hardware, "hardware", &place, error));
    note(&status, check_date(out->date, &place, error));
    return status;
}

/* Where nothing says otherwise, the two gradients take equally long: for a convolution and for a
 * dense layer both are matrix products as large as the forward one. */
static void split_backward(cs_layer *layer, cs_time whole)
{
    layer->backward_weight = layer->weight_bytes > 0 ? whole / 2 : 0;
    layer->backward_input = whole - layer->backward_weight;
}

static cs_status check_backward(const cJSON *object, const cs_json_place *place, cs_error *error)
{
    bool whole = cs_json_member(object, "backward") != NULL;
    bool input = cs_json_member(object, "backward_input") != NULL;
    bool weight = cs_json_member(object, "backward_weight") != NULL;
    if (whole ? !input && !weight : input && weight)
        return CS_OK;
    return cs_json_invalid(place, error,
                           "must have either \"backward\" or both \"backward_input\" and "
                           "\"backward_weight\"");
}

/* `input` are the bytes that the layer reads, the fallback of `kept`. */
static cs_status read_layer(const cJSON *object, const cs_json_place *place, int64_t input,
                            cs_arena *arena, cs_layer *layer, cs_error *error)
{
    const cs_field *const tables[] = {layer_fields, whole_fields, NULL};
    whole_backward whole = {0};
    void *const outs[] = {layer, &whole};
    cs_status status = cs_field_read(object, place, tables, outs, arena, error);
    if (!cJSON_IsObject(object))
        return status;
    note(&status, check_not_empty(layer->name, "name", place, error));
    note(&status, check_backward(object, place, error));
    if (cs_json_member(object, "backward"))
        split_backward(layer, whole.backward);
    if (!cs_json_member(object, "kept"))
        layer->kept_bytes = input;
    return status;
}

static cs_status read_work(const cJSON *object, const cs_json_place *up, cs_model *model,
                           cs_error *error)
{
    cs_json_place place = {.up = up, .key = "work"};
    return cs_field_read(object, &place, (const cs_field *const[]){work_fields, NULL},
                         (void *const[]){&model->work}, &model->arena, error);
}

static int compare_names(const void *a, const void *b)
{
    const cs_layer *const *left = a, *const *right = b;
    int order = strcmp((*left)->name, (*right)->name);
    return order != 0 ? order : (*left > *right) - (*left < *right);
}

static cs_status report_twins(const cs_layer *const *sorted, uint32_t count, const cs_model *model,
                              const cs_json_place *layers, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(sorted[i]->name, sorted[i - 1]->name) != 0)
            continue;
        cs_json_place layer = {.up = layers, .index = (int)(sorted[i] - model->layers)};
        cs_json_place place = {.up = &layer, .key = "name"};
        char quoted[CS_TEXT_QUOTED_BYTES];
        note(&status, cs_json_invalid(&place, error, "must be unique (/layers/%d is called %s too)",
                                      (int)(sorted[i - 1] - model->layers),
                                      cs_text_quote(sorted[i]->name, quoted, sizeof(quoted))));
    }
    return status;
}

/* Sorted by name, twins stand side by side. A layer that could not be read may have no name. */
static cs_status check_unique(const cs_model *model, const cs_json_place *layers, cs_error *error)
{
    const cs_layer **sorted = calloc(model->n_layers, sizeof(*sorted));
    if (!sorted)
        return cs_error_no_memory(error);
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->n_layers; i++)
        if (model->layers[i].name && model->layers[i].name[0] != '\0')
            sorted[count++] = &model->layers[i];
    qsort(sorted, count, sizeof(*sorted), compare_names);
    cs_status status = report_twins(sorted, count, model, layers, error);
    free(sorted);
    return status;
}

static cs_status read_each_layer(const cJSON *array, const cs_json_place *layers, cs_model *model,
                                 cs_error *error)
{
    cs_status status = CS_OK;
    int64_t input = model->input_bytes;
    const cJSON *object;
    cJSON_ArrayForEach(object, array)
    {
        cs_layer *layer = &model->layers[model->n_layers];
        cs_json_place place = {.up = layers, .index = (int)model->n_layers++};
        note(&status, read_layer(object, &place, input, &model->arena, layer, error));
        input = layer->output_bytes;
    }
    return status;
}

static cs_status read_layers(const cJSON *array, const cs_json_place *up, cs_model *model,
                             cs_error *error)
{
    cs_json_place place = {.up = up, .key = "layers"};
    int count = cJSON_GetArraySize(array);
    if (!cJSON_IsArray(array) || count < 1)
        return cs_json_invalid(&place, error, "must be an array of at least one layer (got %s)",
                               cJSON_IsArray(array) ? "none" : cs_json_kind(array));
    model->layers = cs_arena_alloc(&model->arena, (size_t)count, sizeof(*model->layers));
    if (!model->layers)
        return cs_error_no_memory(error);
    cs_status status = read_each_layer(array, &place, model, error);
    note(&status, check_unique(model, &place, error));
    return status;
}

static cs_status read_document(const cJSON *root, const cs_json_place *place, cs_model *model,
                               cs_error *error)
{
    document parts = {0};
    const cs_field *const tables[] = {version_fields, model_fields, times_only_fields, part_fields,
                                      NULL};
    void *const outs[] = {&parts, model, model, &parts};
    cs_status status = cs_field_read(root, place, tables, outs, &model->arena, error);
    note(&status, check_not_empty(model->name, "name", place, error));
    if (parts.work)
        note(&status, read_work(parts.work, place, model, error));
    if (parts.provenance)
        note(&status, read_provenance(parts.provenance, place, model, error));
    if (parts.layers)
        note(&status, read_layers(parts.layers, place, model, error));
    return status;
}

cs_status cs_model_read(const cJSON *root, const cs_json_place *place, cs_model *model,
                        cs_error *error)
{
    cs_model made = {0};
    cs_arena_init(&made.arena);
    cs_status status = read_document(root, place, &made, error);
    if (status != CS_OK) {
        cs_model_finish(&made);
        return status;
    }
    *model = made;
    return CS_OK;
}

cs_status cs_model_load(const char *path, cs_model *model, cs_error *error)
{
    cJSON *root;
    cs_status status = cs_json_load(path, &root, error);
    if (status != CS_OK)
        return status;
    cs_json_place place = {.file = path};
    status = cs_model_read(root, &place, model, error);
    cJSON_Delete(root);
    return status;
}

static bool add_layer(cJSON *array, const cs_layer *layer)
{
    cJSON *object = cJSON_CreateObject();
    /* cJSON_AddItemToArray refuses NULL, and cannot fail otherwise. */
    return cJSON_AddItemToArray(array, object) && cs_field_write(layer_fields, layer, object);
}

static bool add_layers(cJSON *root, const cs_model *model)
{
    cJSON *array = cJSON_AddArrayToObject(root, "layers");
    bool done = array != NULL;
    for (uint32_t i = 0; done && i < model->n_layers; i++)
        done = add_layer(array, &model->layers[i]);
    return done;
}

static bool add_provenance(cJSON *root, const cs_model *model)
{
    cJSON *object = cJSON_AddObjectToObject(root, "provenance");
    return object && cs_field_write(provenance_fields, &model->provenance, object);
}

static bool add_work(cJSON *root, const cs_model *model)
{
    if (!(model->work.flop_per_sample > 0))
        return true;
    cJSON *object = cJSON_AddObjectToObject(root, "work");
    return object && cs_field_write(work_fields, &model->work, object);
}

cJSON *cs_model_json(const cs_model *model)
{
    document parts = {.schema_version = SCHEMA_VERSION};
    cJSON *root = cJSON_CreateObject();
    if (root && cs_field_write(version_fields, &parts, root) &&
        cs_field_write(model_fields, model, root) &&
        (!model->times_only || cs_field_write(times_only_fields, model, root)) &&
        add_work(root, model) && add_provenance(root, model) && add_layers(root, model))
        return root;
    cJSON_Delete(root);
    return NULL;
}

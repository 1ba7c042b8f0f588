#include "sim/model/model.h"

#include "sim/base/document-kind.h"
#include "sim/base/field.h"
#include "sim/base/text.h"
#include "sim/model/divided-json.h"
#include "sim/model/split-rules.h"

#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

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

/* Member that is written only if true. */
static const cs_field times_only_fields[] = {
    {"times_only", CS_FIELD_BOOL, offsetof(cs_model, times_only), .fallback = "false",
     .doc = "sizes of weights, activations and messages are not known, and stand as 0"},
    {0}};

/* Member that is written only if not 0. */
static const cs_field host_batch_fields[] = {
    {"host_batch", CS_FIELD_TIME, offsetof(cs_model, host_batch), .usual_max = 600, .fallback = "0",
     .doc = "host time for a micro-batch before the forward of each stage"},
    {0}};

static const cs_field work_fields[] = {
    {"flop_per_sample", CS_FIELD_NUMBER, offsetof(cs_model_work, flop_per_sample),
     .above_min = true, .doc = "of forward and backward, each product counted once"},
    {"tokens_per_sample", CS_FIELD_COUNT, offsetof(cs_model_work, tokens_per_sample),
     .fallback = "0", .doc = "of a model that reads tokens"},
    {"parameters", CS_FIELD_NUMBER, offsetof(cs_model_work, parameters), .fallback = "0",
     .doc = "numbers that are learned, those that operators share once; 0: not known"},
    {"active_parameters", CS_FIELD_NUMBER, offsetof(cs_model_work, active_parameters),
     .fallback = "0", .doc = "of them without those of experts that a token does not go to"},
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

/* The fallbacks of the two backward parts and of `kept` hold only until the missing values have
 * been derived. */
static const cs_field layer_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(cs_layer, name), .doc = "name, unique in the model"},
    {"forward", CS_FIELD_TIME, offsetof(cs_layer, forward), .usual_max = 600,
     .doc = "forward pass"},
    {"backward_input", CS_FIELD_TIME, offsetof(cs_layer, backward_input), .usual_max = 600,
     .fallback = "0", .doc = "gradient of the input"},
    {"backward_weight", CS_FIELD_TIME, offsetof(cs_layer, backward_weight), .usual_max = 600,
     .fallback = "0", .doc = "gradient of the weights"},
    {"update", CS_FIELD_TIME, offsetof(cs_layer, update), .usual_max = 600, .fallback = "0",
     .doc = "weight update, once per step, whatever the batch"},
    {"weights", CS_FIELD_BYTES, offsetof(cs_layer, weight_bytes), .doc = "weights"},
    {"output", CS_FIELD_BYTES, offsetof(cs_layer, output_bytes),
     .doc = "activation handed to the next layer"},
    {"kept", CS_FIELD_BYTES, offsetof(cs_layer, kept_bytes), .fallback = "0",
     .doc = "kept from forward to the end of backward; the layer's input when left out"},
    {"workspace", CS_FIELD_BYTES, offsetof(cs_layer, workspace_bytes), .fallback = "0",
     .doc = "scratch memory while the layer computes"},
    {"recompute", CS_FIELD_BOOL, offsetof(cs_layer, recompute), .fallback = "false",
     .doc = "keep the layer's input only, and run its forward again for its backward, with "
            "max(0, kept - input) more workspace"},
    {"timing", CS_FIELD_TEXT, offsetof(cs_layer, timing), .fallback = "",
     .doc = "where a layer's times come from when layers differ: measured, estimated"},
    {0}};

/* Members that are written only for layers with tied weights. */
static const cs_field tie_fields[] = {
    {"tied_to", CS_FIELD_TEXT, offsetof(cs_layer, tied_to), .fallback = "",
     .doc = "name of a layer before it, whose weights it uses as well"},
    {"tied_weights", CS_FIELD_BYTES, offsetof(cs_layer, tied_bytes), .fallback = "0",
     .doc = "how many of them; they count as the other layer's"},
    {0}};

static const cs_field frozen_fields[] = {
    {"frozen", CS_FIELD_BYTES, offsetof(cs_layer, frozen_bytes), .fallback = "0",
     .doc = "weights besides, without gradients and states: not trained, or copies in a narrower "
            "type"},
    {"narrowed", CS_FIELD_BYTES, offsetof(cs_layer, narrowed_bytes), .fallback = "0",
     .doc = "what weights take less that are there in a narrower type only; these are part of "
            "`frozen`"},
    {"casts", CS_FIELD_BYTES, offsetof(cs_layer, cast_bytes), .fallback = "0",
     .doc = "part of `frozen`: copies in a narrower type that a device makes of other weights"},
    {0}};

static const cs_field carried_fields[] = {
    {"carried", CS_FIELD_BYTES, offsetof(cs_layer, carried_bytes), .fallback = "0",
     .doc =
         "of the layer's input, what is handed past layers: kept besides, once by several layers"},
    {0}};

static const cs_field result_fields[] = {
    {"result", CS_FIELD_BYTES, offsetof(cs_layer, result_bytes), .fallback = "0",
     .doc = "what the layer's loss reads; 0: the output"},
    {"result_kept", CS_FIELD_BOOL, offsetof(cs_layer, result_kept), .fallback = "false",
     .doc = "it is part of `kept`"},
    {0}};

static const cs_field skipped_fields[] = {
    {"skipped", CS_FIELD_TIME, offsetof(cs_layer, skipped), .usual_max = 600, .fallback = "0",
     .doc = "with `recompute`: of `forward`, what is left out when it runs again"},
    {0}};

static const cs_field host_fields[] = {
    {"host_forward", CS_FIELD_TIME, offsetof(cs_layer, host.forward), .usual_max = 600,
     .fallback = "0", .doc = "host time to start the kernels of the forward, for any batch"},
    {"host_backward_input", CS_FIELD_TIME, offsetof(cs_layer, host.backward_input),
     .usual_max = 600, .fallback = "0", .doc = "host time for the gradient of the input"},
    {"host_backward_weight", CS_FIELD_TIME, offsetof(cs_layer, host.backward_weight),
     .usual_max = 600, .fallback = "0", .doc = "host time for the gradient of the weights"},
    {"host_skipped", CS_FIELD_TIME, offsetof(cs_layer, host.skipped), .usual_max = 600,
     .fallback = "0", .doc = "part of `host_forward` that is left out when the forward runs again"},
    {"host_waits", CS_FIELD_BOOL, offsetof(cs_layer, waits), .fallback = "false",
     .doc = "the host waits for a result of the forward"},
    {0}};

static const cs_field resident_fields[] = {
    {"resident", CS_FIELD_BYTES, offsetof(cs_layer, resident_bytes), .fallback = "0",
     .doc = "part of `kept` that offloading leaves on the device"},
    {0}};

typedef struct divided_layer {
    cs_divided_entry *divided; /* NULL: the layer is whole */
} divided_layer;

static const cs_field divided_layer_fields[] = {
    {"divided", CS_FIELD_OBJECT, offsetof(divided_layer, divided), .fallback = "",
     .of = cs_divided_fields, .size = sizeof(cs_divided_entry),
     .doc = "its pieces and exchanges, where it is one device's part",
     .shape = "{\"pieces\", \"exchanges\", \"weight_parts\"}"},
    {0}};

static const cs_field matrix_fields[] = {
    {"weights", CS_FIELD_BYTES, offsetof(cs_layer_matrix, bytes), .doc = "of one of them"},
    {"update", CS_FIELD_TIME, offsetof(cs_layer_matrix, update), .fallback = "0",
     .doc = "of one of them, part of the layer's"},
    {"n", CS_FIELD_COUNT, offsetof(cs_layer_matrix, n), .fallback = "1", .min = 1,
     .doc = "how many there are"},
    {"expert", CS_FIELD_BOOL, offsetof(cs_layer_matrix, expert), .fallback = "false",
     .doc = "of experts, whose gradients are summed over \"expert_data\""},
    {"gathered", CS_FIELD_BYTES, offsetof(cs_layer_matrix, gather_bytes), .fallback = "0",
     .doc = "by an all-gather over the tensor axis in front of its update"},
    {"summed", CS_FIELD_BYTES, offsetof(cs_layer_matrix, sum_bytes), .fallback = "0",
     .doc = "by an all-reduce over the tensor axis in front of its update"},
    {"sums", CS_FIELD_COUNT, offsetof(cs_layer_matrix, n_sums), .fallback = "0",
     .doc = "how many of these there are"},
    {0}};

static const cs_field matrix_field = {"matrix", CS_FIELD_OBJECT, .of = matrix_fields,
                                      .size = sizeof(cs_layer_matrix)};

typedef struct matrices_entry {
    cs_list matrices; /* pointers to cs_layer_matrix */
} matrices_entry;

static const cs_field matrices_fields[] = {
    {"matrices", CS_FIELD_LIST, offsetof(matrices_entry, matrices), .fallback = "",
     .of = &matrix_field, .doc = "weights that the optimizer muon updates matrix by matrix",
     .shape = "[{\"weights\": size, ...}, ...]"},
    {0}};

/* Members of networks (net-file.h), which mean nothing for a chain. */
typedef struct operators_entry {
    const cJSON *operators, *inputs, *carried;
} operators_entry;

static const cs_field operators_fields[] = {
    {"operators", CS_FIELD_JSON, offsetof(operators_entry, operators), .fallback = "",
     .doc = "what the layer is made of", .shape = "[{\"name\", \"kind\", ...}, ...]"},
    {0}};

static const cs_field network_fields[] = {
    {"inputs", CS_FIELD_JSON, offsetof(operators_entry, inputs), .fallback = "",
     .doc = "with operators: what they read", .shape = "[{\"name\", \"shape\"}, ...]"},
    {"carried", CS_FIELD_JSON, offsetof(operators_entry, carried), .fallback = "",
     .doc = "with operators: the one whose output is handed past layers"},
    {0}};

/* Time of the whole backward, as an alternative to its two parts. */
typedef struct whole_backward {
    cs_time backward;
} whole_backward;

static const cs_field whole_fields[] = {{"backward", CS_FIELD_TIME,
                                         offsetof(whole_backward, backward), .fallback = "0",
                                         .doc = "backward pass, where its two parts are not known"},
                                        {0}};

/* A layer as model files state it. */
typedef struct layer_entry {
    cs_layer layer;
    bool has_kept; /* false: it keeps its input, which is the output of the layer before it */
} layer_entry;

static cs_status read_layer(const cJSON *object, const cs_json_place *place, void *member,
                            cs_arena *arena, cs_error *error);
static cJSON *write_layer(const void *member);

static const cs_field_kind layer_kind = {.read = read_layer, .write = write_layer};
static const cs_field layer_field = {"layer", CS_FIELD_VARIANT, .kind = &layer_kind,
                                     .size = sizeof(layer_entry)};

typedef struct batch_entry {
    uint32_t batch_size;
    int64_t input_bytes;
    cs_list layers; /* items: layer_entry */
} batch_entry;

static const cs_field batch_fields[] = {
    {"batch_size", CS_FIELD_COUNT, offsetof(batch_entry, batch_size), .min = 1,
     .doc = "samples that the times and activations are for"},
    {"input", CS_FIELD_BYTES, offsetof(batch_entry, input_bytes), .fallback = "0",
     .doc = "what the first layer reads"},
    {"layers", CS_FIELD_LIST, offsetof(batch_entry, layers), .of = &layer_field, .least = 1,
     .doc = "the model's layers, with the same names and weights",
     .shape = "[{\"name\": ...}, ...]"},
    {0}};

static const cs_field batch_field = {"batch", CS_FIELD_OBJECT, .of = batch_fields,
                                     .size = sizeof(batch_entry)};

/* Members of a model file besides those of cs_model. */
typedef struct document {
    uint32_t schema_version;
    cs_grid *divided_over; /* NULL: layers are whole */
    cs_model_work *work;   /* NULL: not stated */
    cs_provenance *provenance;
    cs_list layers;  /* items: layer_entry */
    cs_list batches; /* items: pointers to batch_entry */
} document;

static const cs_field version_fields[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(document, schema_version), .min = SCHEMA_VERSION,
     .max = SCHEMA_VERSION, .doc = "version of the format"},
    {0}};

static const cs_field part_fields[] = {
    {"divided_over", CS_FIELD_OBJECT, offsetof(document, divided_over), .fallback = "",
     .of = cs_divided_over_fields, .size = sizeof(cs_grid),
     .doc = "devices of which one computes these layers, its part of the model's",
     .shape = "{\"tensor\": number, ...}"},
    {"work", CS_FIELD_OBJECT, offsetof(document, work), .fallback = "", .of = work_fields,
     .size = sizeof(cs_model_work), .doc = "what training computes, whatever time it takes",
     .shape = "{\"flop_per_sample\", ...}"},
    {"provenance", CS_FIELD_OBJECT, offsetof(document, provenance), .of = provenance_fields,
     .size = sizeof(cs_provenance), .doc = "where the numbers come from",
     .shape = "{\"source\", \"hardware\", \"date\"}"},
    {"layers", CS_FIELD_LIST, offsetof(document, layers), .of = &layer_field, .least = 1,
     .doc = "the chain, from input to output", .shape = "[{\"name\": ...}, ...]"},
    {"batches", CS_FIELD_LIST, offsetof(document, batches), .fallback = "", .of = &batch_field,
     .doc = "the same layers for other numbers of samples, which are then not scaled",
     .shape = "[{\"batch_size\": ...}, ...]"},
    {0}};

/* Combines the statuses of several checks: keeps the first failure. */
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

static cs_status check_provenance(const cs_provenance *of, const cs_json_place *up, cs_error *error)
{
    cs_json_place place = {.up = up, .key = "provenance"};
    cs_status status = check_not_empty(of->source, "source", &place, error);
    note(&status, check_not_empty(of->hardware, "hardware", &place, error));
    note(&status, check_date(of->date, &place, error));
    return status;
}

/* Splits the time of the backward equally between the two gradients, if the file does not say
 * otherwise: for convolutions and dense layers, both are matrix products as large as the forward
 * one. */
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

static cs_status check_casts(const cs_layer *layer, const cs_json_place *up, cs_error *error)
{
    const cs_json_place place = {.up = up, .key = "casts"};
    if (layer->cast_bytes <= layer->frozen_bytes)
        return CS_OK;
    return cs_json_invalid(&place, error,
                           "must be at most %lld, the layer's frozen weights (got %lld)",
                           (long long)layer->frozen_bytes, (long long)layer->cast_bytes);
}

static cs_status check_narrowed(const cs_layer *layer, const cs_json_place *up, cs_error *error)
{
    const cs_json_place place = {.up = up, .key = "narrowed"};
    if (layer->narrowed_bytes - layer->frozen_bytes <= layer->weight_bytes)
        return CS_OK;
    return cs_json_invalid(&place, error,
                           "must be at most %lld + %lld, the layer's weights and frozen ones (got "
                           "%lld)",
                           (long long)layer->weight_bytes, (long long)layer->frozen_bytes,
                           (long long)layer->narrowed_bytes);
}

static cs_status check_skipped(const cs_layer *layer, const cs_json_place *up, cs_error *error)
{
    const cs_json_place place = {.up = up, .key = "skipped"};
    if (layer->skipped <= layer->forward)
        return CS_OK;
    return cs_json_invalid(&place, error, "must be at most %lld ps, the layer's forward (got %lld)",
                           (long long)layer->forward, (long long)layer->skipped);
}

/* Checks that the `n` matrices of an entry fit into the weights and the update that the layer has
 * left (`bytes`, `update`). */
static cs_status check_matrix(const cs_layer_matrix *matrix, int64_t bytes, cs_time update,
                              const cs_json_place *place, cs_error *error)
{
    if (matrix->bytes > bytes / matrix->n)
        return cs_json_invalid(place, error,
                               "must be part of the layer's weights, of which %lld bytes are left "
                               "(got %u of %lld)",
                               (long long)bytes, matrix->n, (long long)matrix->bytes);
    if (matrix->update > update / matrix->n)
        return cs_json_invalid(place, error,
                               "must be part of the layer's update, of which %lld ps are left (got "
                               "%u of %lld)",
                               (long long)update, matrix->n, (long long)matrix->update);
    return CS_OK;
}

static cs_status take_matrices(const cs_list *list, const cs_json_place *up, cs_arena *arena,
                               cs_layer *layer, cs_error *error)
{
    const cs_json_place place = {.up = up, .key = "matrices"};
    const cs_layer_matrix *const *entries = list->items;
    int64_t bytes = layer->weight_bytes;
    cs_time update = layer->update;
    layer->matrices = cs_arena_alloc(arena, list->n, sizeof(*layer->matrices));
    if (!layer->matrices)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < list->n; i++) {
        const cs_json_place at = {.up = &place, .index = (int)i};
        CS_TRY(check_matrix(entries[i], bytes, update, &at, error));
        bytes -= entries[i]->bytes * entries[i]->n;
        update -= entries[i]->update * entries[i]->n;
        layer->matrices[layer->n_matrices++] = *entries[i];
    }
    return CS_OK;
}

static cs_status read_layer(const cJSON *object, const cs_json_place *place, void *member,
                            cs_arena *arena, cs_error *error)
{
    layer_entry *entry = member;
    cs_layer *layer = &entry->layer;
    const cs_field *const tables[] = {layer_fields,
                                      tie_fields,
                                      frozen_fields,
                                      carried_fields,
                                      result_fields,
                                      resident_fields,
                                      whole_fields,
                                      matrices_fields,
                                      operators_fields,
                                      divided_layer_fields,
                                      skipped_fields,
                                      host_fields,
                                      NULL};
    whole_backward whole = {0};
    matrices_entry muon = {0};
    divided_layer parts = {0};
    operators_entry network;
    void *const outs[] = {layer,  layer, layer,    layer,  layer, layer,
                          &whole, &muon, &network, &parts, layer, layer};
    cs_status status = cs_field_read(object, place, tables, outs, arena, error);
    if (!cJSON_IsObject(object))
        return status;
    note(&status, check_not_empty(layer->name, "name", place, error));
    note(&status, check_backward(object, place, error));
    if (cs_json_member(object, "backward"))
        split_backward(layer, whole.backward);
    if (status == CS_OK && muon.matrices.n > 0)
        status = take_matrices(&muon.matrices, place, arena, layer, error);
    if (status == CS_OK && parts.divided)
        status = cs_divided_take(parts.divided, place, arena, layer, error);
    entry->has_kept = cs_json_member(object, "kept") != NULL;
    if (status == CS_OK)
        status = check_skipped(layer, place, error);
    if (status == CS_OK)
        status = check_narrowed(layer, place, error);
    if (status == CS_OK)
        status = check_casts(layer, place, error);
    return status;
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

/* Checks that names are unique: after sorting, equal names are neighbours. */
static cs_status check_unique(const cs_model *model, const cs_json_place *layers, cs_error *error)
{
    const cs_layer **sorted = calloc(model->n_layers, sizeof(*sorted));
    if (!sorted)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < model->n_layers; i++)
        sorted[i] = &model->layers[i];
    qsort(sorted, model->n_layers, sizeof(*sorted), compare_names);
    cs_status status = report_twins(sorted, model->n_layers, model, layers, error);
    free(sorted);
    return status;
}

/* Returns the layers of a list, whose first layer reads `input` bytes; NULL if memory runs out. */
static cs_layer *take_layers(const cs_list *list, int64_t input, cs_arena *arena)
{
    const layer_entry *entries = list->items;
    cs_layer *layers = cs_arena_alloc(arena, list->n, sizeof(*layers));
    for (uint32_t i = 0; layers && i < list->n; i++) {
        layers[i] = entries[i].layer;
        if (!entries[i].has_kept)
            layers[i].kept_bytes = input - layers[i].carried_bytes;
        input = layers[i].output_bytes;
    }
    return layers;
}

/* Checks that a layer has both keys of a tie or neither, and that the other layer has the
 * weights. */
static cs_status check_tie(const cs_model *model, uint32_t i, const cs_json_place *layers,
                           cs_error *error)
{
    const cs_layer *layer = &model->layers[i];
    cs_json_place at = {.up = layers, .index = (int)i};
    cs_json_place to = {.up = &at, .key = "tied_to"}, bytes = {.up = &at, .key = "tied_weights"};
    const uint32_t lender = cs_model_lender(model, i);
    char quoted[CS_TEXT_QUOTED_BYTES];
    if (!layer->tied_to && layer->tied_bytes == 0)
        return CS_OK;
    if (!layer->tied_to || layer->tied_bytes == 0)
        return cs_json_invalid(&at, error, "must have \"tied_to\" and \"tied_weights\" or neither");
    if (lender == CS_MODEL_NO_LAYER)
        return cs_json_invalid(&to, error, "must be the name of a layer before it (got %s)",
                               cs_text_quote(layer->tied_to, quoted, sizeof(quoted)));
    const cs_layer *of = &model->layers[lender];
    const int64_t most = of->weight_bytes > of->frozen_bytes ? of->weight_bytes : of->frozen_bytes;
    if (layer->tied_bytes > most)
        return cs_json_invalid(&bytes, error,
                               "must be at most %lld, the weights of that layer (got %lld)",
                               (long long)most, (long long)layer->tied_bytes);
    return CS_OK;
}

static cs_status check_ties(const cs_model *model, const cs_json_place *layers, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < model->n_layers; i++)
        note(&status, check_tie(model, i, layers, error));
    return status;
}

/* Checks that the tensor passed on by a layer is part of its input. */
static cs_status check_carried(const cs_layer *layers, uint32_t n, int64_t input,
                               const cs_json_place *place, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < n; i++) {
        const cs_json_place at = {.up = place, .index = (int)i};
        const cs_json_place key = {.up = &at, .key = "carried"};
        if (layers[i].carried_bytes > input)
            note(&status,
                 cs_json_invalid(&key, error, "must be at most %lld, the layer's input (got %lld)",
                                 (long long)input, (long long)layers[i].carried_bytes));
        input = layers[i].output_bytes;
    }
    return status;
}

static cs_status take_own_layers(const cs_list *list, const cs_json_place *up, cs_model *model,
                                 cs_error *error)
{
    cs_json_place place = {.up = up, .key = "layers"};
    model->layers = take_layers(list, model->input_bytes, &model->arena);
    if (!model->layers)
        return cs_error_no_memory(error);
    model->n_layers = list->n;
    CS_TRY(check_carried(model->layers, list->n, model->input_bytes, &place, error));
    CS_TRY(check_unique(model, &place, error));
    return check_ties(model, &place, error);
}

/* ---- batches: other numbers of samples ---- */

static cs_status check_layer(const cs_layer *own, const cs_layer *layer, const cs_json_place *up,
                             cs_error *error)
{
    char quoted[CS_TEXT_QUOTED_BYTES], expected[CS_TEXT_QUOTED_BYTES];
    cs_json_place name = {.up = up, .key = "name"}, weights = {.up = up, .key = "weights"};
    cs_json_place frozen = {.up = up, .key = "frozen"};
    cs_json_place narrowed = {.up = up, .key = "narrowed"}, casts = {.up = up, .key = "casts"};
    if (strcmp(own->name, layer->name) != 0)
        return cs_json_invalid(&name, error, "must be %s, as in the model's layers (got %s)",
                               cs_text_quote(own->name, expected, sizeof(expected)),
                               cs_text_quote(layer->name, quoted, sizeof(quoted)));
    if (own->frozen_bytes != layer->frozen_bytes)
        return cs_json_invalid(&frozen, error, "must be %lld, as in the model's layers (got %lld)",
                               (long long)own->frozen_bytes, (long long)layer->frozen_bytes);
    if (own->narrowed_bytes != layer->narrowed_bytes)
        return cs_json_invalid(&narrowed, error,
                               "must be %lld, as in the model's layers (got %lld)",
                               (long long)own->narrowed_bytes, (long long)layer->narrowed_bytes);
    if (own->cast_bytes != layer->cast_bytes)
        return cs_json_invalid(&casts, error, "must be %lld, as in the model's layers (got %lld)",
                               (long long)own->cast_bytes, (long long)layer->cast_bytes);
    if (own->weight_bytes != layer->weight_bytes)
        return cs_json_invalid(&weights, error, "must be %lld, as in the model's layers (got %lld)",
                               (long long)own->weight_bytes, (long long)layer->weight_bytes);
    return CS_OK;
}

static cs_status check_layers(const cs_model *model, const cs_layer *layers, uint32_t n,
                              const cs_json_place *place, cs_error *error)
{
    cs_status status = CS_OK;
    if (n != model->n_layers)
        return cs_json_invalid(place, error, "must have the model's %u layers (got %u)",
                               model->n_layers, n);
    for (uint32_t i = 0; i < n; i++) {
        cs_json_place at = {.up = place, .index = (int)i};
        note(&status, check_layer(&model->layers[i], &layers[i], &at, error));
    }
    return status;
}

static cs_status check_batch_size(const cs_model *model, uint32_t samples, const cs_json_place *up,
                                  cs_error *error)
{
    cs_json_place place = {.up = up, .key = "batch_size"};
    bool twice = samples == model->batch_size;
    for (uint32_t i = 0; i < model->n_batches; i++)
        twice |= samples == model->batches[i].batch_size;
    return twice ? cs_json_invalid(&place, error,
                                   "must be another than the model's and those before (got %u)",
                                   samples)
                 : CS_OK;
}

static cs_status take_batch(const batch_entry *entry, const cs_json_place *place, cs_model *model,
                            cs_error *error)
{
    cs_json_place at = {.up = place, .key = "layers"};
    cs_layer *layers = take_layers(&entry->layers, entry->input_bytes, &model->arena);
    if (!layers)
        return cs_error_no_memory(error);
    cs_status status = check_batch_size(model, entry->batch_size, place, error);
    note(&status, check_carried(layers, entry->layers.n, entry->input_bytes, &at, error));
    note(&status, check_layers(model, layers, entry->layers.n, &at, error));
    if (status == CS_OK)
        model->batches[model->n_batches++] =
            (cs_model_batch){entry->batch_size, entry->input_bytes, layers};
    return status;
}

static cs_status take_batches(const cs_list *list, const cs_json_place *up, cs_model *model,
                              cs_error *error)
{
    cs_json_place place = {.up = up, .key = "batches"};
    const batch_entry *const *entries = list->items;
    cs_status status = CS_OK;
    if (list->n > 0 && model->batch_size == 0)
        return cs_json_invalid(&place, error, "goes with a batch_size of at least 1 only");
    model->batches = cs_arena_alloc(&model->arena, list->n, sizeof(*model->batches));
    if (!model->batches)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < list->n; i++) {
        cs_json_place at = {.up = &place, .index = (int)i};
        note(&status, take_batch(entries[i], &at, model, error));
    }
    return status;
}

/* Takes over the grid that the layers are split over, with one device along the axes of data. */
static cs_status take_division(cs_grid *over, const cs_json_place *place, cs_model *model,
                               cs_error *error)
{
    const cs_json_place at = {.up = place, .key = "divided_over"};
    const cs_json_place copies = {.up = &at, .key = "copies"};
    char would[CS_NEAREST_TEXT_BYTES];
    model->divided_over = over;
    if (!over)
        return CS_OK;
    over->data = over->shard = over->expert_shard = 1;
    return over->tensor % over->copies == 0
               ? CS_OK
               : cs_json_invalid(&copies, error, "must divide \"tensor\", %u (got %u): %s",
                                 over->tensor, over->copies,
                                 cs_nearest_text(cs_divisors_next_to(over->tensor, over->copies),
                                                 would, sizeof(would)));
}

static cs_status read_document(const cJSON *root, const cs_json_place *place, cs_model *model,
                               cs_error *error)
{
    document parts = {0};
    const cs_field *const tables[] = {
        version_fields, model_fields, times_only_fields, host_batch_fields, part_fields,
        network_fields, NULL};
    operators_entry network;
    void *const outs[] = {&parts, model, model, model, &parts, &network};
    cs_status status = cs_field_read(root, place, tables, outs, &model->arena, error);
    note(&status, check_not_empty(model->name, "name", place, error));
    if (parts.work)
        model->work = *parts.work;
    note(&status, take_division(parts.divided_over, place, model, error));
    if (parts.provenance) {
        model->provenance = *parts.provenance;
        note(&status, check_provenance(parts.provenance, place, error));
    }
    if (parts.layers.n > 0)
        note(&status, take_own_layers(&parts.layers, place, model, error));
    if (parts.batches.items && model->layers)
        note(&status, take_batches(&parts.batches, place, model, error));
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
    CS_TRY(cs_json_load(path, &root, error));
    cs_json_place place = {.file = path};
    cs_status status = cs_document_expect(CS_DOCUMENT_MODEL, root, &place, error);
    if (status == CS_OK)
        status = cs_model_read(root, &place, model, error);
    cJSON_Delete(root);
    return status;
}

static bool write_divided(const cs_layer *layer, cJSON *object)
{
    cs_arena arena;
    cs_arena_init(&arena);
    divided_layer parts = {cs_divided_give(layer, &arena)};
    const bool done = parts.divided && cs_field_write(divided_layer_fields, &parts, object);
    cs_arena_finish(&arena);
    return done;
}

static bool write_matrices(const cs_layer *layer, cJSON *object)
{
    cs_arena arena;
    cs_arena_init(&arena);
    void **items = cs_arena_alloc(&arena, layer->n_matrices, sizeof(*items));
    for (uint32_t i = 0; items && i < layer->n_matrices; i++)
        items[i] = &layer->matrices[i];
    const matrices_entry muon = {{.n = layer->n_matrices, .items = items}};
    const bool done = items && cs_field_write(matrices_fields, &muon, object);
    cs_arena_finish(&arena);
    return done;
}

static bool has_host(const cs_layer *layer)
{
    const cs_host_times *host = &layer->host;
    return host->forward > 0 || host->backward_input > 0 || host->backward_weight > 0 ||
           layer->waits;
}

static cJSON *write_layer(const void *member)
{
    const cs_layer *layer = &((const layer_entry *)member)->layer;
    const bool whole = layer->n_pieces + layer->n_exchanges + layer->n_weight_parts == 0;
    cJSON *object = cJSON_CreateObject();
    if (object && cs_field_write(layer_fields, layer, object) &&
        (layer->tied_bytes == 0 || cs_field_write(tie_fields, layer, object)) &&
        (layer->frozen_bytes == 0 || cs_field_write(frozen_fields, layer, object)) &&
        (layer->carried_bytes == 0 || cs_field_write(carried_fields, layer, object)) &&
        (layer->result_bytes == 0 || cs_field_write(result_fields, layer, object)) &&
        (layer->skipped == 0 || cs_field_write(skipped_fields, layer, object)) &&
        (!has_host(layer) || cs_field_write(host_fields, layer, object)) &&
        (layer->resident_bytes == 0 || cs_field_write(resident_fields, layer, object)) &&
        (layer->n_matrices == 0 || write_matrices(layer, object)) &&
        (whole || write_divided(layer, object)))
        return object;
    cJSON_Delete(object);
    return NULL;
}

/* Returns the layers as a list, the reverse of take_layers; its items are NULL if memory runs
 * out. */
static cs_list list_layers(const cs_layer *layers, uint32_t n, cs_arena *arena)
{
    layer_entry *entries = cs_arena_alloc(arena, n, sizeof(*entries));
    for (uint32_t i = 0; entries && i < n; i++)
        entries[i] = (layer_entry){layers[i], true};
    return (cs_list){.n = n, .items = entries};
}

static cs_list list_batches(const cs_model *model, cs_arena *arena)
{
    batch_entry *entries = cs_arena_alloc(arena, model->n_batches, sizeof(*entries));
    batch_entry **items = cs_arena_alloc(arena, model->n_batches, sizeof(*items));
    for (uint32_t i = 0; entries && items && i < model->n_batches; i++) {
        const cs_model_batch *batch = &model->batches[i];
        entries[i] = (batch_entry){batch->batch_size, batch->input_bytes,
                                   list_layers(batch->layers, model->n_layers, arena)};
        items[i] = &entries[i];
        if (!entries[i].layers.items)
            return (cs_list){0};
    }
    return (cs_list){.n = model->n_batches, .items = entries ? items : NULL};
}

static bool write_document(const cs_model *model, cs_arena *arena, cJSON *root)
{
    cs_model_work work = model->work;
    cs_provenance provenance = model->provenance;
    cs_grid divided_over = model->divided_over ? *model->divided_over : cs_grid_single();
    document parts = {.schema_version = SCHEMA_VERSION,
                      .divided_over = model->divided_over ? &divided_over : NULL,
                      .work = work.flop_per_sample > 0 ? &work : NULL,
                      .provenance = &provenance,
                      .layers = list_layers(model->layers, model->n_layers, arena)};
    if (model->n_batches > 0)
        parts.batches = list_batches(model, arena);
    return parts.layers.items && (parts.batches.items || model->n_batches == 0) &&
           cs_field_write(version_fields, &parts, root) &&
           cs_field_write(model_fields, model, root) &&
           (!model->times_only || cs_field_write(times_only_fields, model, root)) &&
           (model->host_batch == 0 || cs_field_write(host_batch_fields, model, root)) &&
           cs_field_write(part_fields, &parts, root);
}

cJSON *cs_model_json(const cs_model *model)
{
    cs_arena arena;
    cs_arena_init(&arena);
    cJSON *root = cJSON_CreateObject();
    const bool done = root && write_document(model, &arena, root);
    cs_arena_finish(&arena);
    if (done)
        return root;
    cJSON_Delete(root);
    return NULL;
}

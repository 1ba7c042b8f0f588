#include "sim/model/net-file.h"

#include "sim/base/text.h"
#include "sim/model/ops/operator.h"

#include <string.h>

typedef struct input_entry {
    const char *name;
    cs_list shape; /* elements: uint32_t */
    bool ids, loaded;
} input_entry;

static const cs_field size_field = {"size", CS_FIELD_COUNT, .min = 1};

static const cs_field input_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(input_entry, name), .doc = "by which operators read it"},
    {"shape", CS_FIELD_LIST, offsetof(input_entry, shape), .of = &size_field, .least = 1,
     .most = CS_SHAPE_MAX, .doc = "of a sample", .shape = "[size, ...]"},
    {"ids", CS_FIELD_BOOL, offsetof(input_entry, ids), .fallback = "false",
     .doc = "it is token ids"},
    {"loaded", CS_FIELD_BOOL, offsetof(input_entry, loaded), .fallback = "false",
     .doc = "each operator that reads it loads it by itself"},
    {0}};

typedef struct reader {
    cs_net *net;
    cs_error *error;
    cs_arena arena; /* owns the entries and the names of inputs */
    const char **inputs;
    cs_tensor *tensors;
    uint32_t n_inputs;
} reader;

/* ---- names ---- */

static cs_tensor find(const reader *r, const char *name)
{
    for (uint32_t p = r->net->n_ops; p-- > 0;)
        if (strcmp(r->net->ops[p].name, name) == 0)
            return r->net->ops[p].output;
    for (uint32_t i = 0; i < r->n_inputs; i++)
        if (strcmp(r->inputs[i], name) == 0)
            return r->tensors[i];
    return CS_NO_TENSOR;
}

static cs_status unknown(const reader *r, const char *name, const cs_json_place *place)
{
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (uint32_t i = 0; i < r->n_inputs; i++)
        cs_guess_add(&guess, r->inputs[i]);
    for (uint32_t p = 0; p < r->net->n_ops; p++)
        cs_guess_add(&guess, r->net->ops[p].name);
    return cs_json_invalid(place, r->error, "must be an input or an operator before it: unknown %s",
                           cs_guess_text(&guess));
}

static cs_status find_inputs(const reader *r, cs_op_making *m)
{
    const char *const *names = m->entry->inputs.items;
    const cs_json_place list = {.up = m->place, .key = "inputs"};
    const cs_json_place tie = {.up = m->place, .key = "tied_to"};
    for (m->n = 0; m->n < m->entry->inputs.n; m->n++) {
        const cs_json_place at = {.up = &list, .index = (int)m->n};
        m->in[m->n] = find(r, names[m->n]);
        if (m->in[m->n] == CS_NO_TENSOR)
            return unknown(r, names[m->n], &at);
    }
    if (!m->entry->tied_to)
        return CS_OK;
    m->lender = find(r, m->entry->tied_to);
    if (m->lender == CS_NO_TENSOR || cs_net_writer(m->net, m->lender) == m->net->n_ops)
        return unknown(r, m->entry->tied_to, &tie);
    return CS_OK;
}

/* Enters the operator's block. If the operator's name begins with the block's name, that part is
 * removed. */
static void enter_block(cs_op_making *m, const char *layer)
{
    cs_net *net = m->net;
    const char *block = m->entry->block ? m->entry->block : layer;
    const size_t length = strlen(block);
    if (net->n_blocks == 0 || strcmp(net->blocks[net->n_blocks - 1], block) != 0)
        cs_net_block(net, "%s", block);
    m->name = m->entry->name;
    net->scope[0] = '\0';
    if (strncmp(m->name, block, length) == 0 && m->name[length] == '.') {
        (void)cs_net_enter(net, block);
        m->name += length + 1;
    }
}

/* ---- operators, layers, networks ---- */

static cs_status read_operator(reader *r, const cJSON *value, const char *layer,
                               const cs_json_place *place)
{
    cs_op_entry entry;
    const void *figures = NULL;
    const cs_json_place name = {.up = place, .key = "name"};
    cs_op_making m = {.net = r->net, .error = r->error, .entry = &entry, .place = place};
    CS_TRY(cs_field_read(value, place,
                         (const cs_field *const[]){cs_op_entry_fields, cs_op_entry_figures, NULL},
                         (void *const[]){&entry, &figures}, &r->arena, r->error));
    if (strlen(entry.name) >= CS_NET_NAME_BYTES - 1 || !*entry.name)
        return cs_json_invalid(&name, r->error, "must have from 1 to %d characters",
                               CS_NET_NAME_BYTES - 2);
    if (find(r, entry.name) != CS_NO_TENSOR)
        return cs_json_invalid(&name, r->error, "must be unique (got \"%s\" again)", entry.name);
    CS_TRY(find_inputs(r, &m));
    CS_TRY(cs_op_making_check(&m));
    enter_block(&m, layer);
    return cs_op_make(&m);
}

/* Checks the name of a network or a layer; other keys of the object are not looked at. */
static cs_status check_name(const cJSON *object, const cs_json_place *up, cs_error *error)
{
    const cs_json_place place = {.up = up, .key = "name"};
    const char *name = cJSON_GetStringValue(cs_json_member(object, "name"));
    char quoted[CS_TEXT_QUOTED_BYTES];
    return !name || !cs_text_has_control(name, strlen(name))
               ? CS_OK
               : cs_json_invalid(&place, error, "must not contain control characters (got %s)",
                                 cs_text_quote(name, quoted, sizeof(quoted)));
}

static cs_status read_layer(reader *r, const cJSON *layer, const cs_json_place *place)
{
    const cJSON *operators = cs_json_member(layer, "operators"), *op;
    const cJSON *name = cs_json_member(layer, "name");
    const cs_json_place list = {.up = place, .key = "operators"};
    int i = 0;
    CS_TRY(check_name(layer, place, r->error));
    if (!cJSON_IsArray(operators))
        return cs_json_invalid(place, r->error,
                               "missing key \"operators\": a layer of a network lists them");
    cJSON_ArrayForEach(op, operators)
    {
        const cs_json_place at = {.up = &list, .index = i++};
        CS_TRY(read_operator(r, op, cJSON_IsString(name) ? name->valuestring : "layer", &at));
    }
    return CS_OK;
}

static cs_status read_input(reader *r, const cJSON *value, const cs_json_place *place)
{
    input_entry entry;
    const cs_json_place shape = {.up = place, .key = "shape"};
    CS_TRY(cs_field_read(value, place, (const cs_field *const[]){input_fields, NULL},
                         (void *const[]){&entry}, &r->arena, r->error));
    cs_extent space = {.rank = entry.shape.n - 1};
    for (uint32_t i = 0; i < space.rank; i++)
        space.size[i] = cs_size_at(&entry.shape, i + 1);
    if (entry.ids && space.rank > 0)
        return cs_json_invalid(&shape, r->error, "must be [tokens] for token ids");
    const uint32_t first = cs_size_at(&entry.shape, 0);
    r->inputs[r->n_inputs] = entry.name;
    r->tensors[r->n_inputs++] = !entry.ids     ? cs_net_image(r->net, first, space)
                                : entry.loaded ? cs_net_more_token_ids(r->net, first)
                                               : cs_net_token_ids(r->net, first);
    return r->net->status;
}

static cs_status read_inputs(reader *r, const cJSON *root, const cs_json_place *place)
{
    const cJSON *inputs = cs_json_member(root, "inputs"), *one;
    const cs_json_place list = {.up = place, .key = "inputs"};
    const size_t n = (size_t)cJSON_GetArraySize(inputs);
    int i = 0;
    if (!cJSON_IsArray(inputs) || n == 0)
        return cs_json_invalid(&list, r->error, "must be a list of what the network reads");
    r->inputs = cs_arena_alloc(&r->arena, n, sizeof(*r->inputs));
    r->tensors = cs_arena_alloc(&r->arena, n, sizeof(*r->tensors));
    if (!r->inputs || !r->tensors)
        return cs_error_no_memory(r->error);
    cJSON_ArrayForEach(one, inputs)
    {
        const cs_json_place at = {.up = &list, .index = i++};
        CS_TRY(read_input(r, one, &at));
    }
    return CS_OK;
}

static cs_status read_layers(reader *r, const cJSON *root, const cs_json_place *place)
{
    const cJSON *layers = cs_json_member(root, "layers"), *layer;
    const cJSON *carried = cs_json_member(root, "carried");
    const cs_json_place list = {.up = place, .key = "layers"};
    const cs_json_place key = {.up = place, .key = "carried"};
    int i = 0;
    if (!cJSON_IsArray(layers))
        return cs_json_invalid(&list, r->error, "must be a list of layers with \"operators\"");
    cJSON_ArrayForEach(layer, layers)
    {
        const cs_json_place at = {.up = &list, .index = i++};
        CS_TRY(read_layer(r, layer, &at));
    }
    if (!carried)
        return CS_OK;
    const cs_tensor tensor = cJSON_IsString(carried) ? find(r, carried->valuestring) : CS_NO_TENSOR;
    if (tensor == CS_NO_TENSOR || cs_net_writer(r->net, tensor) == r->net->n_ops)
        return cs_json_invalid(&key, r->error, "must be the name of an operator");
    cs_net_carry(r->net, tensor);
    return CS_OK;
}

static cs_status read_precision(reader *r, const cJSON *root, const cs_json_place *place)
{
    const cJSON *precision = cs_json_member(root, "precision");
    const cs_json_place key = {.up = place, .key = "precision"};
    cs_guess guess;
    uint32_t found = 0;
    if (!precision)
        return CS_OK;
    if (!cJSON_IsString(precision))
        return cs_json_invalid(&key, r->error, "must be the name of a precision");
    cs_guess_init(&guess, precision->valuestring);
    if (!cs_guess_find(&guess, cs_precision_names, precision->valuestring, &found))
        return cs_json_invalid(&key, r->error, "unknown %s", cs_guess_text(&guess));
    r->net->has_precision = true;
    r->net->precision = (cs_precision)found;
    return CS_OK;
}

bool cs_net_is_file(const cJSON *root)
{
    return cJSON_IsArray(cs_json_member(root, "layers"));
}

cs_status cs_net_read(const cJSON *root, const cs_json_place *place, cs_net *net, cs_error *error)
{
    const cJSON *name = cs_json_member(root, "name");
    cs_net made;
    reader r = {.net = &made, .error = error};
    CS_TRY(check_name(root, place, error));
    cs_arena_init(&r.arena);
    cs_net_begin(&made, cJSON_IsString(name) ? name->valuestring : "network", error);
    cs_status status = read_precision(&r, root, place);
    if (status == CS_OK)
        status = read_inputs(&r, root, place);
    if (status == CS_OK)
        status = read_layers(&r, root, place);
    if (status == CS_OK)
        status = cs_net_end(&made);
    cs_arena_finish(&r.arena);
    if (status != CS_OK) {
        cs_net_finish(&made);
        return status;
    }
    *net = made;
    return CS_OK;
}

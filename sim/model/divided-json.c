#include "sim/model/divided-json.h"

static const char *const kind_names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                         "shift",      "halo",       "broadcast",      NULL};

/* In the order of cs_axes_name. */
static const char *const axes_names[] = {
    "tensor",        "space_x", "space_y",     "space_z",      "space",
    "context",       "data",    "gradient",    "shard",        "replica",
    "expert_tensor", "expert",  "expert_data", "expert_shard", "expert_replica",
    "copies",        NULL};

static const cs_field piece_fields[] = {
    {"forward", CS_FIELD_TIME, offsetof(cs_layer_piece, forward), .usual_max = 600,
     .doc = "forward"},
    {"backward_input", CS_FIELD_TIME, offsetof(cs_layer_piece, backward_input), .usual_max = 600,
     .doc = "gradient of its input"},
    {"backward_weight", CS_FIELD_TIME, offsetof(cs_layer_piece, backward_weight), .usual_max = 600,
     .doc = "gradient of its weights"},
    {"skipped", CS_FIELD_TIME, offsetof(cs_layer_piece, skipped), .usual_max = 600, .fallback = "0",
     .doc = "of the forward, what is left out when it runs again"},
    {"host_forward", CS_FIELD_TIME, offsetof(cs_layer_piece, host.forward), .usual_max = 600,
     .fallback = "0", .doc = "host time for the kernels and exchanges of the forward"},
    {"host_backward_input", CS_FIELD_TIME, offsetof(cs_layer_piece, host.backward_input),
     .usual_max = 600, .fallback = "0", .doc = "host time for the gradient of its input"},
    {"host_backward_weight", CS_FIELD_TIME, offsetof(cs_layer_piece, host.backward_weight),
     .usual_max = 600, .fallback = "0", .doc = "host time for the gradient of its weights"},
    {"host_skipped", CS_FIELD_TIME, offsetof(cs_layer_piece, host.skipped), .usual_max = 600,
     .fallback = "0", .doc = "part of `host_forward` that is left out when the forward runs again"},
    {"host_waits", CS_FIELD_BOOL, offsetof(cs_layer_piece, waits), .fallback = "false",
     .doc = "the host waits for a result of the forward"},
    {0}};

/* An exchange as model files state it. */
typedef struct exchange_entry {
    uint32_t kind, axes, gap;
    bool backward, beside, skipped;
    int64_t bytes, bytes_back;
} exchange_entry;

static const cs_field exchange_fields[] = {
    {"kind", CS_FIELD_CHOICE, offsetof(exchange_entry, kind), .choices = kind_names,
     .doc = "what the devices hand each other"},
    {"axes", CS_FIELD_CHOICE, offsetof(exchange_entry, axes), .choices = axes_names,
     .doc = "over which axes"},
    {"gap", CS_FIELD_COUNT, offsetof(exchange_entry, gap),
     .doc = "in front of which piece; behind the last one: their number"},
    {"backward", CS_FIELD_BOOL, offsetof(exchange_entry, backward), .fallback = "false",
     .doc = "in the backward, else in the forward"},
    {"beside", CS_FIELD_BOOL, offsetof(exchange_entry, beside), .fallback = "false",
     .doc = "while the piece before it computes"},
    {"skipped", CS_FIELD_BOOL, offsetof(exchange_entry, skipped), .fallback = "false",
     .doc = "left out when the forward runs again"},
    {"bytes", CS_FIELD_BYTES, offsetof(exchange_entry, bytes),
     .doc = "of one device; of a halo what it hands to the next one"},
    {"bytes_back", CS_FIELD_BYTES, offsetof(exchange_entry, bytes_back), .fallback = "0 B",
     .doc = "of a halo: what it hands to the one before"},
    {0}};

typedef struct part_entry {
    uint32_t axes;
    int64_t bytes;
} part_entry;

static const cs_field part_fields[] = {
    {"axes", CS_FIELD_CHOICE, offsetof(part_entry, axes), .choices = axes_names,
     .doc = "over which their gradients are summed"},
    {"bytes", CS_FIELD_BYTES, offsetof(part_entry, bytes), .doc = "of the layer's weights"},
    {0}};

static const cs_field piece_field = {"piece", CS_FIELD_OBJECT, .of = piece_fields,
                                     .size = sizeof(cs_layer_piece)};
static const cs_field exchange_field = {"exchange", CS_FIELD_OBJECT, .of = exchange_fields,
                                        .size = sizeof(exchange_entry)};
static const cs_field part_field = {"part", CS_FIELD_OBJECT, .of = part_fields,
                                    .size = sizeof(part_entry)};

const cs_field cs_divided_fields[] = {
    {"pieces", CS_FIELD_LIST, offsetof(cs_divided_entry, pieces), .fallback = "",
     .of = &piece_field,
     .doc = "what the device computes between exchanges; their times add up to the layer's",
     .shape = "[{\"forward\": time, ...}, ...]"},
    {"exchanges", CS_FIELD_LIST, offsetof(cs_divided_entry, exchanges), .fallback = "",
     .of = &exchange_field, .doc = "what devices hand each other within the layer",
     .shape = "[{\"kind\": ...}, ...]"},
    {"weight_parts", CS_FIELD_LIST, offsetof(cs_divided_entry, weight_parts), .fallback = "",
     .of = &part_field, .doc = "weights whose gradients are summed over other axes than most",
     .shape = "[{\"axes\": ..., \"bytes\": ...}, ...]"},
    {0}};

#define SIZE(member) CS_FIELD_COUNT, offsetof(cs_grid, member), .fallback = "1", .min = 1

const cs_field cs_divided_over_fields[] = {{"tensor", SIZE(tensor), .doc = "devices"},
                                           {"space_x", SIZE(space[0]), .doc = "devices"},
                                           {"space_y", SIZE(space[1]), .doc = "devices"},
                                           {"space_z", SIZE(space[2]), .doc = "devices"},
                                           {"copies", SIZE(copies),
                                            .doc = "neighbours along \"tensor\" with the same "
                                                   "heads of keys and values"},
                                           {"context", SIZE(context), .doc = "devices"},
                                           {"expert", SIZE(expert), .doc = "devices"},
                                           {"expert_tensor", SIZE(expert_tensor), .doc = "devices"},
                                           {0}};

/* ---- reading ---- */

static cs_status check_pieces(const cs_layer *layer, const cs_json_place *divided, cs_error *error)
{
    const cs_json_place place = {.up = divided, .key = "pieces"};
    cs_layer_piece sum = {0};
    bool fits = true;
    for (uint32_t i = 0; i < layer->n_pieces; i++)
        if (layer->pieces[i].skipped > layer->pieces[i].forward)
            return cs_json_invalid(&place, error, "must not skip more than their forward");
    for (uint32_t i = 0; i < layer->n_pieces && fits; i++)
        fits =
            cs_time_add(sum.forward, layer->pieces[i].forward, &sum.forward) &&
            cs_time_add(sum.skipped, layer->pieces[i].skipped, &sum.skipped) &&
            cs_time_add(sum.backward_input, layer->pieces[i].backward_input, &sum.backward_input) &&
            cs_time_add(sum.backward_weight, layer->pieces[i].backward_weight,
                        &sum.backward_weight);
    if (layer->n_pieces == 0 ||
        (fits && sum.forward == layer->forward && sum.backward_input == layer->backward_input &&
         sum.backward_weight == layer->backward_weight && sum.skipped == layer->skipped))
        return CS_OK;
    return cs_json_invalid(&place, error, "must add up to the layer's times");
}

static cs_status take_exchanges(const cs_list *list, const cs_json_place *divided, cs_arena *arena,
                                cs_layer *layer, cs_error *error)
{
    const cs_json_place place = {.up = divided, .key = "exchanges"};
    const uint32_t n_pieces = layer->n_pieces > 0 ? layer->n_pieces : 1;
    const exchange_entry *const *entries = list->items;
    cs_exchange *made = cs_arena_alloc(arena, list->n, sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < list->n; i++) {
        const cs_json_place at = {.up = &place, .index = (int)i}, gap = {.up = &at, .key = "gap"};
        const exchange_entry *of = entries[i];
        if (of->gap > n_pieces)
            return cs_json_invalid(&gap, error, "must be at most %u, the pieces (got %u)", n_pieces,
                                   of->gap);
        made[i] = (cs_exchange){.kind = (uint8_t)of->kind,
                                .axes = (uint8_t)of->axes,
                                .backward = of->backward,
                                .beside = of->beside,
                                .skipped = of->skipped,
                                .gap = of->gap,
                                .bytes = of->bytes,
                                .bytes_back = of->bytes_back};
    }
    layer->exchanges = made;
    layer->n_exchanges = list->n;
    return CS_OK;
}

cs_status cs_divided_take(const cs_divided_entry *entry, const cs_json_place *layer_place,
                          cs_arena *arena, cs_layer *layer, cs_error *error)
{
    const cs_json_place place = {.up = layer_place, .key = "divided"};
    const cs_layer_piece *const *pieces = entry->pieces.items;
    const part_entry *const *parts = entry->weight_parts.items;
    layer->pieces = cs_arena_alloc(arena, entry->pieces.n, sizeof(*layer->pieces));
    layer->weight_parts =
        cs_arena_alloc(arena, entry->weight_parts.n, sizeof(*layer->weight_parts));
    if (!layer->pieces || !layer->weight_parts)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < entry->pieces.n; i++)
        layer->pieces[i] = *pieces[i];
    for (uint32_t i = 0; i < entry->weight_parts.n; i++)
        layer->weight_parts[i] = (cs_weight_part){(uint8_t)parts[i]->axes, parts[i]->bytes};
    layer->n_pieces = entry->pieces.n;
    layer->n_weight_parts = entry->weight_parts.n;
    CS_TRY(check_pieces(layer, &place, error));
    return take_exchanges(&entry->exchanges, &place, arena, layer, error);
}

/* ---- writing ---- */

/* Returns a list of pointers to the elements of an array. */
static cs_list list_of(void *items, uint32_t n, size_t size, cs_arena *arena)
{
    void **pointers = cs_arena_alloc(arena, n, sizeof(*pointers));
    for (uint32_t i = 0; pointers && i < n; i++)
        pointers[i] = (char *)items + i * size;
    return (cs_list){.n = n, .items = pointers};
}

cs_divided_entry *cs_divided_give(const cs_layer *layer, cs_arena *arena)
{
    const uint32_t n_exchanges = layer->n_exchanges, n_parts = layer->n_weight_parts;
    cs_divided_entry *made = cs_arena_alloc(arena, 1, sizeof(*made));
    exchange_entry *exchanges = cs_arena_alloc(arena, n_exchanges, sizeof(*exchanges));
    part_entry *parts = cs_arena_alloc(arena, n_parts, sizeof(*parts));
    if (!made || !exchanges || !parts)
        return NULL;
    for (uint32_t i = 0; i < n_exchanges; i++) {
        const cs_exchange *of = &layer->exchanges[i];
        exchanges[i] = (exchange_entry){of->kind,   of->axes,    of->gap,   of->backward,
                                        of->beside, of->skipped, of->bytes, of->bytes_back};
    }
    for (uint32_t i = 0; i < n_parts; i++)
        parts[i] = (part_entry){layer->weight_parts[i].axes, layer->weight_parts[i].bytes};
    made->pieces = list_of(layer->pieces, layer->n_pieces, sizeof(*layer->pieces), arena);
    made->exchanges = list_of(exchanges, n_exchanges, sizeof(*exchanges), arena);
    made->weight_parts = list_of(parts, n_parts, sizeof(*parts), arena);
    return made->pieces.items && made->exchanges.items && made->weight_parts.items ? made : NULL;
}

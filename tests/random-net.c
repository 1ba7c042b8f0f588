#include "tests/random-net.h"

#include "tests/expect.h"

uint32_t random_from_to(gsl_rng *random, uint32_t from, uint32_t to)
{
    return from + (uint32_t)gsl_rng_uniform_int(random, to - from + 1);
}

/* ---- transformers ---- */

static cs_tensor add_norm(cs_net *net, const transformer_shape *s, const char *name, cs_tensor x)
{
    return s->layer_norm ? cs_net_layer_norm(net, name, x) : cs_net_rms_norm(net, name, x);
}

static cs_tensor add_attention(cs_net *net, const transformer_shape *s, cs_tensor x)
{
    const uint32_t q = s->heads * s->head, k = s->kv_heads * s->head;
    cs_tensor qkv[3];
    if (s->fused) {
        x = cs_net_linear(net, "qkv", x, &(cs_linear){.out = q + 2 * k, .bias = s->bias});
        qkv[0] = cs_net_features(net, "q", x, q);
        qkv[1] = cs_net_features(net, "k", x, k);
        qkv[2] = cs_net_features(net, "v", x, k);
    } else {
        qkv[0] = cs_net_linear(net, "q", x, &(cs_linear){.out = q, .bias = s->bias});
        qkv[1] = cs_net_linear(net, "k", x, &(cs_linear){.out = k, .bias = s->bias});
        qkv[2] = cs_net_linear(net, "v", x, &(cs_linear){.out = k, .bias = s->bias});
    }
    for (int i = 0; i < 2 && s->rotary; i++)
        qkv[i] = cs_net_rotary(net, i ? "k_rotary" : "q_rotary", qkv[i]);
    x = cs_net_attention(
        net, "attention", qkv,
        &(cs_attention){s->heads, s->kv_heads, CS_ATTENTION_FLASH, .causal = true});
    return cs_net_linear(net, "o", x, &(cs_linear){.out = s->hidden, .bias = s->bias});
}

static cs_tensor add_mlp(cs_net *net, const transformer_shape *s, cs_tensor x)
{
    const cs_linear inner = {.out = s->inner, .bias = s->bias};
    cs_tensor y = cs_net_linear(net, "in", x, &inner);
    if (s->gated)
        y = cs_net_mul(net, "mul", cs_net_silu(net, "act", y), cs_net_linear(net, "up", x, &inner));
    else
        y = cs_net_gelu(net, "act", y);
    return cs_net_linear(net, "out", y, &(cs_linear){.out = s->hidden, .bias = s->bias});
}

static cs_tensor add_mixture(cs_net *net, const transformer_shape *s, cs_tensor x)
{
    cs_grouped_linear linear = {s->expert_inner, s->experts, s->top_k, false};
    const cs_tensor logits = cs_net_linear(net, "router", x, &(cs_linear){.out = s->experts});
    const cs_tensor routing = cs_net_top_k(net, "top_k", logits, s->top_k);
    const cs_tensor rows = cs_net_dispatch(net, "dispatch", x, routing, 0);
    cs_tensor y = cs_net_grouped_linear(net, "in", rows, &linear);
    if (s->gated)
        y = cs_net_mul(net, "mul", cs_net_silu(net, "act", y),
                       cs_net_grouped_linear(net, "up", rows, &linear));
    else
        y = cs_net_gelu(net, "act", y);
    linear.out = s->hidden;
    return cs_net_combine(net, "combine", cs_net_grouped_linear(net, "out", y, &linear), routing);
}

static cs_tensor add_branch(cs_net *net, const transformer_shape *s, const char *name, cs_tensor x,
                            cs_tensor (*branch)(cs_net *, const transformer_shape *, cs_tensor))
{
    const uint32_t mark = cs_net_enter(net, name);
    cs_tensor y = branch(net, s, s->norm_behind ? x : add_norm(net, s, "norm", x));
    y = cs_net_add(net, "add", x, cs_net_dropout(net, "dropout", y, s->dropout ? 0.1 : 0));
    y = s->norm_behind ? add_norm(net, s, "norm", y) : y;
    cs_net_leave(net, mark);
    return y;
}

void random_net_transformer(const transformer_shape *s, cs_net *net)
{
    cs_error error;
    cs_error_init(&error);
    cs_net_begin(net, "drawn", &error);
    cs_net_block(net, "embedding");
    cs_tensor x =
        cs_net_embedding(net, "tokens", cs_net_token_ids(net, s->tokens), s->vocabulary, s->hidden);
    if (s->positions)
        x = cs_net_add_table(net, "positions", x, (int64_t)s->tokens * s->hidden);
    for (uint32_t i = 0; i < s->layers; i++) {
        cs_net_block(net, "block%u", i);
        x = add_branch(net, s, "attention", x, add_attention);
        x = add_branch(net, s, "mlp", x, s->experts > 0 ? add_mixture : add_mlp);
    }
    cs_net_block(net, "head");
    x = add_norm(net, s, "norm", x);
    x = cs_net_linear(net, "logits", x, &(cs_linear){.out = s->vocabulary, .tied = s->tied});
    cs_net_cross_entropy(net, "loss", x);
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
}

static uint32_t draw_divisor(gsl_rng *random, uint32_t of)
{
    uint32_t divisor = random_from_to(random, 1, of);
    while (of % divisor != 0)
        divisor--;
    return divisor;
}

transformer_shape random_transformer_shape(gsl_rng *random, const cs_split *split, bool experts)
{
    const uint32_t tensor = split->grid.tensor, context = split->grid.context;
    transformer_shape s = {.layers = random_from_to(random, 1, 3),
                           .head = 4 * random_from_to(random, 1, 3)};
    const uint32_t groups = random_from_to(random, 1, 3);
    s.kv_heads = tensor * context * random_from_to(random, 1, 2);
    s.heads = s.kv_heads * groups;
    const bool own_heads = context == 1 || split->context_method != CS_CONTEXT_ALL_TO_ALL;
    const bool copies = tensor > 1 && own_heads && random_from_to(random, 0, 2) == 0;
    if (copies) { /* fewer heads of keys and values than places */
        s.kv_heads = draw_divisor(random, tensor);
        s.heads = tensor * groups;
    }
    s.hidden = 8 * random_from_to(random, 1, 6);
    s.inner = tensor * random_from_to(random, 3, 30);
    s.tokens = 2 * context * tensor * random_from_to(random, 1, 6);
    s.vocabulary = random_from_to(random, 50, 200);
    bool *const flags[] = {&s.fused,  &s.gated,   &s.bias,      &s.layer_norm, &s.norm_behind,
                           &s.rotary, &s.dropout, &s.positions, &s.tied};
    for (size_t i = 0; i < ROWS(flags); i++)
        *flags[i] = random_from_to(random, 0, 1);
    s.fused &= !copies;
    if (experts) {
        s.experts = split->grid.expert * random_from_to(random, 1, 3);
        s.top_k = random_from_to(random, 1, s.experts < 3 ? s.experts : 3);
        s.expert_inner = split->grid.expert_tensor * random_from_to(random, 2, 9);
    }
    return s;
}

cs_split random_transformer_split(gsl_rng *random, bool experts)
{
    cs_split split = cs_split_none();
    cs_grid *grid = &split.grid;
    grid->tensor = random_from_to(random, 1, 6);
    grid->context = grid->tensor > 1 ? random_from_to(random, 1, 4) : random_from_to(random, 2, 4);
    grid->data = random_from_to(random, 1, 3);
    split.sequence_parallel = experts || random_from_to(random, 0, 1);
    split.context_method = (cs_context_method)random_from_to(random, 0, 2);
    if (experts) {
        const uint32_t places = cs_grid_places(grid);
        grid->expert_tensor = draw_divisor(random, places);
        grid->expert = draw_divisor(random, places / grid->expert_tensor);
        split.routing.imbalance = random_from_to(random, 0, 1) ? 1 : 1.3;
    }
    return split;
}

/* ---- images ---- */

static cs_tensor add_conv(gsl_rng *random, cs_net *net, const char *name, cs_tensor x, bool same)
{
    const uint32_t channels = cs_net_tensor(net, x)->shape.dims[0];
    cs_conv conv = {.out = same ? channels : random_from_to(random, 1, 9),
                    .kernel = 2 * random_from_to(random, 0, 2) + 1,
                    .stride = same ? 1 : random_from_to(random, 1, 2),
                    .dilation = random_from_to(random, 0, 2) ? 1 : random_from_to(random, 2, 3),
                    .bias = random_from_to(random, 0, 1)};
    conv.pad = conv.dilation * (conv.kernel / 2);
    if (!same && random_from_to(random, 0, 4) == 0)
        conv.pad = random_from_to(random, 0, conv.dilation * (conv.kernel - 1));
    return cs_net_conv(net, name, x, &conv);
}

static cs_tensor add_step(gsl_rng *random, cs_net *net, uint32_t i, cs_tensor x)
{
    char name[24];
    snprintf(name, sizeof(name), "step%" PRIu32, i);
    switch (random_from_to(random, 0, 8)) {
    case 0:
        return cs_net_relu(net, name, x);
    case 1:
        return cs_net_batch_norm(net, name, x);
    case 2:
        return cs_net_max_pool(net, name, x, &(cs_window){.kernel = 3, .stride = 2, .pad = 1});
    case 3:
        return cs_net_avg_pool(net, name, x, &(cs_window){.kernel = 2});
    case 5:
        return cs_net_max_pool(net, name, x,
                               &(cs_window){.kernel = 3, .stride = 2, .pad = 1, .dilation = 2});
    case 4: {
        const cs_tensor y = add_conv(random, net, name, x, true);
        return cs_net_add(net, "sum", y, x);
    }
    default:
        return add_conv(random, net, name, x, false);
    }
}

bool random_net_images(gsl_rng *random, cs_net *net, cs_error *error)
{
    const uint32_t rank = random_from_to(random, 1, 3), steps = random_from_to(random, 2, 7);
    cs_extent space = {rank, {0}};
    for (uint32_t d = 0; d < rank; d++)
        space.size[d] = random_from_to(random, rank == 3 ? 6 : 12, rank == 3 ? 12 : 40);
    cs_error_init(error);
    cs_net_begin(net, "drawn", error);
    cs_tensor x = cs_net_image(net, random_from_to(random, 1, 4), space);
    for (uint32_t i = 0; i < steps && x != CS_NO_TENSOR; i++) {
        const uint32_t entered =
            cs_net_enter(net, (const char *[]){"a", "b", "c", "d", "e", "f", "g"}[i]);
        x = add_step(random, net, i, x);
        cs_net_leave(net, entered);
    }
    if (random_from_to(random, 0, 1))
        x = cs_net_adaptive_pool(net, "mean", x, random_from_to(random, 1, 2));
    x = cs_net_flatten(net, "flat", x);
    x = cs_net_linear(net, "fc1", x,
                      &(cs_linear){.out = random_from_to(random, 4, 9), .bias = true});
    x = cs_net_linear(net, "fc2", cs_net_relu(net, "act", x), &(cs_linear){.out = 5});
    cs_net_cross_entropy(net, "loss", x);
    return cs_net_end(net) == CS_OK;
}

cs_split random_images_split(gsl_rng *random, const cs_net *net)
{
    cs_split split = cs_split_none();
    const uint32_t rank = cs_net_tensor(net, net->ops[0].inputs[0])->shape.rank - 1;
    for (uint32_t d = 0; d < rank; d++)
        split.grid.space[d] = random_from_to(random, 1, 3);
    split.grid.tensor = random_from_to(random, 1, 3);
    split.grid.data = random_from_to(random, 1, 2);
    split.tensor_method = random_from_to(random, 0, 1) ? CS_TENSOR_FILTER : CS_TENSOR_CHANNEL;
    split.synchronised_norm = random_from_to(random, 0, 1);
    if (random_from_to(random, 0, 2) == 0)
        split.space_until = net->ops[random_from_to(random, 0, net->n_ops - 1)].name;
    return split;
}

/* ---- graphs ---- */

enum { FEATURES = 24, INNER = 48, TOKENS = 48, HEADS = 12, POOL = 5 };

/* The latest tensors, by their features: FEATURES or INNER. */
typedef struct pool {
    cs_tensor of[2][POOL];
    uint32_t n[2];
} pool;

static void put(pool *p, uint32_t wide, cs_tensor tensor)
{
    p->of[wide][p->n[wide]++ % POOL] = tensor;
}

static cs_tensor take(gsl_rng *random, const pool *p, uint32_t wide)
{
    const uint32_t n = p->n[wide] < POOL ? p->n[wide] : POOL;
    return p->of[wide][random_from_to(random, 0, n - 1)];
}

static cs_tensor add_linear(gsl_rng *random, cs_net *net, const char *name, cs_tensor x,
                            uint32_t features)
{
    const cs_linear linear = {.out = features, .bias = random_from_to(random, 0, 1)};
    net->frozen = random_from_to(random, 0, 5) == 0;
    x = cs_net_linear(net, name, x, &linear);
    net->frozen = false;
    return x;
}

static cs_tensor add_heads(gsl_rng *random, cs_net *net, const pool *p)
{
    static const char *const names[] = {"q", "k", "v"};
    const cs_attention attention = {.heads = HEADS,
                                    .kv_heads = HEADS,
                                    .kernel = random_from_to(random, 0, 1) ? CS_ATTENTION_FLASH
                                                                           : CS_ATTENTION_MATH,
                                    .causal = true,
                                    .padded = true,
                                    .dropout = random_from_to(random, 0, 1) ? 0.1 : 0};
    cs_tensor qkv[3];
    for (int i = 0; i < 3; i++)
        qkv[i] = add_linear(random, net, names[i], take(random, p, 0), FEATURES);
    return add_linear(random, net, "o", cs_net_attention(net, "attention", qkv, &attention),
                      FEATURES);
}

/* Element by element. */
static cs_tensor add_elements(gsl_rng *random, cs_net *net, cs_tensor x)
{
    cs_tensor (*const kinds[])(cs_net *, const char *, cs_tensor) = {
        cs_net_gelu,       cs_net_silu,     cs_net_tanh,   cs_net_copy,
        cs_net_layer_norm, cs_net_rms_norm, cs_net_softmax};
    const uint32_t kind = random_from_to(random, 0, 7);
    return kind < 7 ? kinds[kind](net, "elements", x) : cs_net_dropout(net, "dropout", x, 0.1);
}

static cs_tensor add_any(gsl_rng *random, cs_net *net, const pool *p, uint32_t wide)
{
    const cs_tensor x = take(random, p, wide), y = take(random, p, wide);
    switch (random_from_to(random, 0, 6)) {
    case 0:
        return add_elements(random, net, x);
    case 1:
        return cs_net_mul(net, "mul", x, y);
    case 2:
        return cs_net_add(net, "add", x, y);
    case 3:
        return cs_net_relu(net, "relu",
                           add_linear(random, net, "in", take(random, p, !wide && p->n[1] > 0),
                                      wide ? INNER : FEATURES));
    case 4:
        return wide ? cs_net_view(net, "view", x, &cs_net_tensor(net, x)->shape)
                    : add_heads(random, net, p);
    default:
        return add_linear(random, net, "linear", take(random, p, p->n[1] > 0 && !wide),
                          wide ? INNER : FEATURES);
    }
}

void random_net_graph(gsl_rng *random, cs_net *net)
{
    const uint32_t steps = random_from_to(random, 2, 14);
    pool p = {0};
    cs_error error;
    char name[16];
    cs_error_init(&error);
    cs_net_begin(net, "graph", &error);
    cs_net_block(net, "first");
    put(&p, 0, cs_net_embedding(net, "table", cs_net_token_ids(net, TOKENS), INNER, FEATURES));
    if (random_from_to(random, 0, 1))
        put(&p, 0, cs_net_add_table(net, "rows", take(random, &p, 0), TOKENS * FEATURES));
    for (uint32_t i = 0; i < steps; i++) {
        const uint32_t wide = random_from_to(random, 0, 2) == 0;
        snprintf(name, sizeof(name), "%" PRIu32, i);
        if (random_from_to(random, 0, 2) == 0)
            cs_net_block(net, "block%" PRIu32, i);
        const uint32_t mark = cs_net_enter(net, name);
        if (wide && p.n[1] == 0)
            put(&p, 1, add_linear(random, net, "first", take(random, &p, 0), INNER));
        put(&p, wide, add_any(random, net, &p, wide));
        cs_net_leave(net, mark);
    }
    cs_net_block(net, "last");
    const cs_tensor x =
        cs_net_linear(net, "logits", take(random, &p, 0), &(cs_linear){.out = INNER});
    cs_net_cross_entropy(net, "loss", x);
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
}

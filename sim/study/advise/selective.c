#include "sim/study/advise/selective.h"

#include "sim/model/recompute.h"

#include <string.h>

static bool is_cheap(const cs_op *op)
{
    switch (op->kind) {
    case CS_OP_LAYER_NORM:
    case CS_OP_RMS_NORM:
    case CS_OP_RELU:
    case CS_OP_GELU:
    case CS_OP_SILU:
    case CS_OP_TANH:
    case CS_OP_MUL:
        return true;
    case CS_OP_ATTENTION:
        return op->attention.kernel == CS_ATTENTION_MATH;
    default:
        return false;
    }
}

/* Whether a name matches only operators that are cheap to recompute. */
static bool is_clear(const cs_net *net, const char *name)
{
    for (uint32_t i = 0; i < net->n_ops; i++)
        if (cs_recompute_means(name, net->ops[i].name) && !is_cheap(&net->ops[i]))
            return false;
    return true;
}

/* Returns the shortest suffix of the operator's name that matches only cheap operators: "act" for
 * "layers.0.mlp.act". */
static const char *name_of(const cs_net *net, const char *op)
{
    const char *at = op + strlen(op);
    while (at > op) {
        at--;
        if ((at == op || at[-1] == '.') && is_clear(net, at))
            return at;
    }
    return NULL;
}

static bool is_listed(const cs_selective *selective, const char *op)
{
    for (uint32_t i = 0; i < selective->n; i++)
        if (cs_recompute_means(selective->names[i], op))
            return true;
    return false;
}

static bool has_attention(const cs_net *net)
{
    for (uint32_t i = 0; i < net->n_ops; i++)
        if (net->ops[i].kind == CS_OP_ATTENTION)
            return true;
    return false;
}

cs_status cs_selective_find(const cs_net *net, cs_arena *arena, cs_selective *selective,
                            cs_error *error)
{
    *selective = (cs_selective){0};
    if (!has_attention(net))
        return CS_OK;
    selective->names = cs_arena_alloc(arena, net->n_ops, sizeof(*selective->names));
    selective->discards = cs_arena_alloc(arena, net->n_ops, sizeof(*selective->discards));
    if (!selective->names || !selective->discards)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < net->n_ops; i++) {
        const char *op = net->ops[i].name;
        if (!is_cheap(&net->ops[i]) || is_listed(selective, op))
            continue;
        const char *name = name_of(net, op);
        if (name && !(name = cs_arena_copy(arena, name)))
            return cs_error_no_memory(error);
        if (name)
            selective->names[selective->n++] = name;
        if (name && net->ops[i].kind != CS_OP_ATTENTION)
            selective->discards[selective->n_discards++] = name;
    }
    return CS_OK;
}

#include "sim/model/idle-recompute.h"

#include "sim/model/ops/operator.h"
#include "sim/model/recompute.h"

#include <stdlib.h>

static bool is_meant(const char *const *names, uint32_t n, const char *op)
{
    bool meant = false;
    for (uint32_t i = 0; i < n; i++)
        meant |= cs_recompute_means(names[i], op);
    return meant;
}

/* Whether a kernel runs again for this name that would not for the others. */
static bool repeats(const cs_net *net, const char *name, const char *const *others, uint32_t n)
{
    bool found = false;
    for (uint32_t p = 0; p < net->n_ops; p++)
        found |= !cs_op_is_view(&net->ops[p]) && cs_recompute_means(name, net->ops[p].name) &&
                 !is_meant(others, n, net->ops[p].name);
    return found;
}

/* Whether `name` means an operator that `names` mean as well. */
static bool meets(const cs_net *net, const char *name, const char *const *names, uint32_t n)
{
    bool found = false;
    for (uint32_t p = 0; p < net->n_ops; p++)
        found |= cs_recompute_means(name, net->ops[p].name) && is_meant(names, n, net->ops[p].name);
    return found;
}

static cs_status find_kept(const cs_net *net, const cs_net_options *how, int64_t *bytes,
                           cs_error *error)
{
    cs_net_chain chain;
    CS_TRY(cs_net_chain_find(net, how, &chain, error));
    *bytes = chain.kept_bytes;
    cs_net_chain_finish(&chain);
    return CS_OK;
}

/* `others` and `discards` have room for one more than there are names of either kind. */
static cs_status compare(const cs_net *net, const cs_net_options *how, uint32_t name,
                         const char **others, const char **discards, cs_recompute_effect *effect,
                         cs_error *error)
{
    const char *const named = how->recompute_ops[name];
    cs_net_options without = *how, discarding = *how;
    int64_t kept, kept_without, kept_discarding;
    *effect = CS_RECOMPUTE_FREES;
    without.recompute_ops = others;
    without.n_recompute_ops = 0;
    for (uint32_t i = 0; i < how->n_recompute_ops; i++)
        if (i != name)
            others[without.n_recompute_ops++] = how->recompute_ops[i];
    if (!repeats(net, named, others, without.n_recompute_ops))
        return CS_OK;
    without.discard_ops = discards;
    without.n_discard_ops = 0;
    for (uint32_t i = 0; i < how->n_discard_ops; i++)
        if (meets(net, how->discard_ops[i], others, without.n_recompute_ops))
            discards[without.n_discard_ops++] = how->discard_ops[i];
    CS_TRY(find_kept(net, how, &kept, error));
    CS_TRY(find_kept(net, &without, &kept_without, error));
    if (kept < kept_without)
        return CS_OK;
    for (uint32_t i = 0; i < how->n_discard_ops; i++)
        discards[i] = how->discard_ops[i];
    discards[how->n_discard_ops] = named;
    discarding.discard_ops = discards;
    discarding.n_discard_ops = how->n_discard_ops + 1;
    CS_TRY(find_kept(net, &discarding, &kept_discarding, error));
    *effect = kept_discarding < kept ? CS_RECOMPUTE_DISCARD : CS_RECOMPUTE_IDLE;
    return CS_OK;
}

cs_status cs_recompute_effect_of(const cs_net *net, const cs_net_options *options, uint32_t name,
                                 cs_recompute_effect *effect, cs_error *error)
{
    const char **others = calloc(options->n_recompute_ops + (size_t)1, sizeof(*others));
    const char **discards = calloc(options->n_discard_ops + (size_t)1, sizeof(*discards));
    const cs_status status = others && discards
                                 ? compare(net, options, name, others, discards, effect, error)
                                 : cs_error_no_memory(error);
    free(others);
    free(discards);
    return status;
}

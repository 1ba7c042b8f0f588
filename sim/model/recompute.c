#include "sim/model/recompute.h"

#include "sim/model/net-model.h"
#include "sim/model/ops/operator.h"

#include <stdlib.h>
#include <string.h>

bool cs_recompute_means(const char *name, const char *op)
{
    const size_t length = strlen(name);
    bool means = false;
    for (const char *at = op; at && length > 0 && !means; at = strchr(at, '.')) {
        at += at > op; /* skip the dot */
        means = strncmp(at, name, length) == 0 && (at[length] == '\0' || at[length] == '.');
    }
    return means;
}

bool cs_recompute_means_any(const char *name, const cs_net *net)
{
    bool any = false;
    for (uint32_t p = 0; p < net->n_ops && !any; p++)
        any = cs_recompute_means(name, net->ops[p].name);
    return any;
}

/* Whether an exchange serves an operator that is not recomputed. An exchange is recomputed if all
 * operators that read its result are, because only they need it. */
static bool is_for_others(const cs_net *net, uint32_t p, const uint32_t *runs)
{
    const cs_op *op = &net->ops[p];
    const bool is_behind = p > 0 && net->ops[p - 1].output == op->inputs[0];
    const uint32_t last = net->tensors[op->output].last_reader;
    bool others = false;
    if (op->kind != CS_OP_EXCHANGE || (is_behind && runs[p - 1] > 0))
        return false;
    for (uint32_t q = p + 1; last != CS_NO_TENSOR && q <= last; q++)
        for (uint32_t i = 0; i < net->ops[q].n_inputs; i++)
            others |= net->ops[q].inputs[i] == op->output && runs[q] == 0;
    return others;
}

static void join_runs(const cs_net *net, const uint32_t *ends, uint32_t *runs)
{
    uint32_t first = 0, layer = 0;
    for (uint32_t p = 0; p < net->n_ops; p++) {
        if (p == ends[layer]) {
            layer++;
            first = p;
        }
        if (runs[p] == 0 || is_for_others(net, p, runs)) {
            runs[p] = 0;
            first = p + 1;
        } else {
            runs[p] = first + 1;
        }
    }
}

cs_status cs_recompute_find(const cs_net *net, const char *const *names, uint32_t n,
                            const uint32_t *ends, uint32_t *runs, cs_error *error)
{
    memset(runs, 0, net->n_ops * sizeof(*runs));
    for (uint32_t i = 0; i < n; i++) {
        bool found = false;
        for (uint32_t p = 0; p < net->n_ops; p++) {
            const bool means = cs_recompute_means(names[i], net->ops[p].name);
            runs[p] |= means;
            found |= means;
        }
        if (!found)
            return cs_error_add(error, CS_INVALID,
                                "%s: has no operator \"%s\" to recompute; its first is \"%s\"",
                                net->name, names[i], net->ops[0].name);
    }
    join_runs(net, ends, runs);
    return CS_OK;
}

cs_status cs_recompute_discards(const cs_net *net, const char *const *names, uint32_t n,
                                const uint32_t *runs, bool *discards, cs_error *error)
{
    for (uint32_t i = 0; i < n; i++) {
        bool found = false;
        for (uint32_t p = 0; p < net->n_ops; p++) {
            const bool means = runs[p] > 0 && cs_recompute_means(names[i], net->ops[p].name);
            discards[p] |= means;
            found |= means;
        }
        if (!found)
            return cs_error_add(error, CS_INVALID,
                                "%s: has no operator \"%s\" that is recomputed, whose result could "
                                "be discarded",
                                net->name, names[i]);
    }
    return CS_OK;
}

/* ---- effect on memory ---- */

static bool is_meant(const char *const *names, uint32_t n, const char *op)
{
    bool meant = false;
    for (uint32_t i = 0; i < n; i++)
        meant |= cs_recompute_means(names[i], op);
    return meant;
}

/* Whether `name` makes a kernel run again that the other names do not. */
static bool repeats(const cs_net *net, const char *name, const char *const *others, uint32_t n)
{
    bool found = false;
    for (uint32_t p = 0; p < net->n_ops; p++)
        found |= !cs_op_is_view(&net->ops[p]) && cs_recompute_means(name, net->ops[p].name) &&
                 !is_meant(others, n, net->ops[p].name);
    return found;
}

/* Whether an operator that `name` means is also meant by `names`. */
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

/* Compares the saved bytes with and without one name. `others` and `discards` need room for one
 * entry more than there are recompute_ops and discard_ops. */
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

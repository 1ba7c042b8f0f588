#include "sim/model/recompute.h"

#include <string.h>

bool cs_recompute_means(const char *name, const char *op)
{
    const size_t length = strlen(name);
    bool means = false;
    for (const char *at = op; at && length > 0 && !means; at = strchr(at, '.')) {
        at += at > op; /* the dot */
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

/* An exchange in front of operators does so where all of them do: what it makes is theirs. */
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

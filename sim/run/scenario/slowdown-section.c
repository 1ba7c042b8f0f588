#include "sim/run/scenario/slowdown-section.h"

/* Kinds are listed group by group, so indices of choices can be derived from kinds. */
_Static_assert(CS_FORWARD == 0 && CS_TRANSFER == CS_UPDATE + 1 && CS_ALL_REDUCE == CS_TRANSFER + 1,
               "computations, then transfers, then collectives");

#define IF_COMPUTE(text)    text,
#define IF_TRANSFER(text)   /* none */
#define IF_COLLECTIVE(text) /* none */
static const char *const compute_names[] = {"any",
#define NAME(name, text, symbol, group) IF_##group(text)
                                            CS_KIND_MAP(NAME)
#undef NAME
                                                NULL};
#undef IF_COMPUTE
#undef IF_COLLECTIVE

#define IF_COMPUTE(text)    /* none */
#define IF_COLLECTIVE(text) text,
static const char *const communication_names[] = {"any", "messages", "collectives",
#define NAME(name, text, symbol, group) IF_##group(text)
                                                  CS_KIND_MAP(NAME)
#undef NAME
                                                      NULL};

const cs_field cs_scenario_slowdown_fields[] = {
    {"factor", CS_FIELD_NUMBER, offsetof(cs_slowdown_rule, factor), .min = 1,
     .doc = "how many times as long the computation takes while the communication is in progress"},
    {"compute", CS_FIELD_CHOICE, offsetof(cs_slowdown_rule, compute), .fallback = "any",
     .choices = compute_names, .doc = "which computations are slowed down"},
    {"communication", CS_FIELD_CHOICE, offsetof(cs_slowdown_rule, communication), .fallback = "any",
     .choices = communication_names,
     .doc = "the communication that slows them down; messages: all messages outside collectives"},
    {0}};

static bool is_of(const cs_slowdown_rule *rule, uint32_t compute, uint32_t origin)
{
    if (rule->compute > 0 && rule->compute - 1 != compute)
        return false;
    if (rule->communication == CS_SLOWDOWN_ANY)
        return true;
    if (rule->communication == CS_SLOWDOWN_MESSAGES)
        return origin == CS_TRANSFER;
    return origin != CS_TRANSFER &&
           (rule->communication == CS_SLOWDOWN_COLLECTIVES ||
            rule->communication - CS_SLOWDOWN_KIND + CS_ALL_REDUCE == origin);
}

cs_status cs_scenario_slowdown(const cs_list *rules, cs_arena *arena, const double **factors,
                               cs_error *error)
{
    const cs_slowdown_rule *const *given = rules->items;
    *factors = NULL;
    if (rules->n == 0)
        return CS_OK;
    double *made = cs_arena_alloc(arena, (size_t)CS_N_KINDS * CS_N_KINDS, sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < CS_N_KINDS * CS_N_KINDS; i++) {
        made[i] = 1;
        for (uint32_t r = 0; r < rules->n; r++)
            if (is_of(given[r], i / CS_N_KINDS, i % CS_N_KINDS))
                made[i] = given[r]->factor;
    }
    *factors = made;
    return CS_OK;
}

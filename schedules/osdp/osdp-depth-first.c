/* Algorithm 1 of the paper for one batch, with its two prunings (section 3.2). */
#include "schedules/osdp/osdp-search.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_BETWEEN_LOOKS = 1 << 16 };

typedef struct walk {
    const cs_osdp_menu *menu;
    const cs_osdp_search *search;
    uint32_t *at;         /* per decided operator: index of the option after its current one */
    cs_osdp_cost *before; /* cost of the earlier operators, without surge */
    int64_t *surge;       /* largest surge of the earlier operators */
    cs_osdp_plan *plan;
} walk;

static const cs_osdp_kind *kind_at(const walk *w, uint32_t op)
{
    return &w->menu->kinds[w->menu->kind_of[op]];
}

static void keep(walk *w, cs_osdp_cost cost, int64_t surge)
{
    cs_osdp_plan *plan = w->plan;
    plan->found = true;
    plan->cost = (cs_osdp_cost){cost.time, cost.memory + surge + w->menu->fixed_bytes};
    for (uint32_t i = 0; i < w->menu->n; i++)
        plan->choices[i] = kind_at(w, i)->options[w->at[i] - 1].choice;
}

/* Gives operator `op` its next option. Returns false if that is pruned. */
static bool decide(walk *w, uint32_t op)
{
    const cs_osdp_option *option = &kind_at(w, op)->options[w->at[op]++];
    const cs_osdp_cost cost = {w->before[op].time + option->time,
                               w->before[op].memory + option->memory};
    const int64_t surge = option->extra > w->surge[op] ? option->extra : w->surge[op];
    w->plan->visited++;
    if (cost.memory + surge > w->menu->limit || cost.time >= w->plan->cost.time)
        return false;
    w->before[op + 1] = cost;
    w->surge[op + 1] = surge;
    return true;
}

static bool may_go_on(const walk *w)
{
    const uint64_t visited = w->plan->visited, most = w->search->most_visits;
    return most == 0 || visited < most;
}

static cs_status look(const walk *w, cs_error *error)
{
    if (w->plan->visited % STEPS_BETWEEN_LOOKS != 0 ||
        cs_progress_step(w->search->progress, "nodes", w->plan->visited, w->search->most_visits))
        return CS_OK;
    return cs_error_add(error, CS_INTERRUPTED, "the depth-first search was interrupted");
}

static cs_status go(walk *w, cs_error *error)
{
    const uint32_t n = w->menu->n;
    uint32_t op = 0;
    while (may_go_on(w)) {
        CS_TRY(look(w, error));
        if (w->at[op] == kind_at(w, op)->n_options) {
            w->at[op] = 0;
            if (op == 0) {
                w->plan->complete = true;
                return CS_OK;
            }
            op--;
        } else if (decide(w, op)) {
            if (op + 1 == n)
                keep(w, w->before[n], w->surge[n]);
            else
                op++;
        }
    }
    return CS_OK;
}

cs_status cs_osdp_search_depth_first(const cs_osdp_menu *menu, const cs_osdp_search *search,
                                     cs_time bound, cs_osdp_plan *plan, cs_error *error)
{
    const size_t n = (size_t)menu->n + 1;
    walk w = {menu,
              search,
              calloc(n, sizeof(*w.at)),
              calloc(n, sizeof(*w.before)),
              calloc(n, sizeof(*w.surge)),
              plan};
    cs_status status = w.at && w.before && w.surge ? CS_OK : cs_error_no_memory(error);
    plan->cost.time = bound; /* a plan must be faster than this */
    if (status == CS_OK && menu->n > 0)
        status = go(&w, error);
    free(w.at);
    free(w.before);
    free(w.surge);
    return status;
}

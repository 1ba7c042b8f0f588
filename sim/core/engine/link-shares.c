/* How flows share links. count: a flow gets the bandwidth of its narrowest link over the number of
 * messages on that link. max_min: progressive filling (Bertsekas and Gallager, Data Networks,
 * 6.5.2). The link that has least to give to each of its flows fixes their rates, which leaves less
 * bandwidth on their other links for fewer flows; and so on until all flows have a rate.
 *
 * A change is solved for its component: the flows on the changed link, the flows that share other
 * links with these, and so on. A link with a single flow is a constant bound on that flow's rate:
 * nothing spreads over it, and a flow is bound by the least of its constant bounds only. So a
 * component of L links with several flows, and F flows of at most R links, takes
 * O(L + F * R * log L). The order of filling matters for rounding: of equal
 * shares the lowest link comes first. */
#include "sim/core/engine/network-state.h"

#include <assert.h>

/* Collects the flows on the links of the component, and with `spread` also the other links of those
 * flows, their flows, and so on. */
static bool collect(cs_network *network, bool spread)
{
    cs_component *of = &network->component;
    of->flows.n = 0;
    for (uint32_t i = 0; i < of->links.n; i++) {
        const cs_link_state *link = &network->links[of->links.ids[i]];
        for (uint32_t f = 0; f < link->n; f++) {
            cs_flow *flow = &network->flows[link->flows[f]];
            if (flow->mark == of->mark)
                continue;
            flow->mark = of->mark;
            if (!cs_id_list_add(&of->flows, link->flows[f]))
                return false;
            uint32_t n;
            const uint32_t *links = cs_flow_links(network, flow, &n);
            for (uint32_t l = 0; spread && l < n; l++) {
                cs_link_state *reached = &network->links[links[l]];
                if (reached->mark == of->mark)
                    continue;
                reached->mark = of->mark;
                if (reached->n > 1 && !cs_id_list_add(&of->links, links[l]))
                    return false;
            }
        }
    }
    return true;
}

static void count_rates(cs_network *network)
{
    const cs_id_list *flows = &network->component.flows;
    for (uint32_t i = 0; i < flows->n; i++) {
        cs_flow *flow = &network->flows[flows->ids[i]];
        uint32_t n;
        const uint32_t *links = cs_flow_links(network, flow, &n);
        flow->next_rate = network->class_bounds[flow->cls].share;
        for (uint32_t l = 0; l < n; l++) {
            const cs_link_state *link = &network->links[links[l]];
            flow->next_rate = fmin(flow->next_rate, link->bandwidth / link->load);
        }
    }
}

/* Moves a bound down the heap from place `at` to where it belongs. */
static void sift_down(cs_bound *heap, uint32_t n, uint32_t at, cs_bound moved)
{
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && cs_bound_is_tighter(heap[child + 1], heap[child]))
            child++;
        if (!cs_bound_is_tighter(heap[child], moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* The least share of the links that a flow has to itself; infinite: there are none. */
static cs_bound find_constant_bound(const cs_network *network, uint32_t id)
{
    uint32_t n;
    const uint32_t *links = cs_flow_links(network, &network->flows[id], &n);
    cs_bound least = network->class_bounds[network->flows[id].cls];
    least.flow = id;
    for (uint32_t l = 0; l < n; l++) {
        const cs_link_state *link = &network->links[links[l]];
        const cs_bound bound = {link->bandwidth / link->load, links[l], id};
        if (link->n == 1 && cs_bound_is_tighter(bound, least))
            least = bound;
    }
    return least;
}

static bool list_bounds(cs_network *network)
{
    cs_component *of = &network->component;
    uint32_t n = 0;
    if (!cs_vector_reserve((void **)&of->bounds, &of->cap_bounds,
                           (uint64_t)of->links.n + of->flows.n, sizeof(*of->bounds)))
        return false;
    for (uint32_t i = 0; i < of->links.n; i++) {
        const uint32_t id = of->links.ids[i];
        cs_link_state *link = &network->links[id];
        link->spare = link->bandwidth;
        link->unfixed = link->load;
        if (link->n > 1)
            of->bounds[n++] = (cs_bound){link->spare / link->unfixed, id, CS_NONE};
    }
    for (uint32_t i = 0; i < of->flows.n; i++) {
        const cs_bound bound = find_constant_bound(network, of->flows.ids[i]);
        network->flows[bound.flow].next_rate = -1;
        if (bound.link != CS_NONE)
            of->bounds[n++] = bound;
    }
    of->n_bounds = n;
    for (uint32_t i = n / 2; i-- > 0;)
        sift_down(of->bounds, n, i, of->bounds[i]);
    return true;
}

/* The tightest bound on flows that have no rate yet; there must be such flows. A link's share in
 * the heap is brought up to date when it comes to the top: until then it is a lower bound. */
static cs_bound find_tightest(cs_network *network)
{
    cs_bound *heap = network->component.bounds;
    uint32_t *n = &network->component.n_bounds;
    for (;;) {
        cs_bound top = heap[0];
        assert(*n > 0);
        if (top.flow != CS_NONE) {
            if (network->flows[top.flow].next_rate < 0)
                return top;
            top = heap[--*n];
        } else if (network->links[top.link].unfixed > 0) {
            const cs_link_state *link = &network->links[top.link];
            const double share = link->spare / link->unfixed;
            if (share <= top.share)
                return (cs_bound){share, top.link, CS_NONE};
            top.share = share;
        } else {
            top = heap[--*n];
        }
        sift_down(heap, *n, 0, top);
    }
}

static void fix_rate(cs_network *network, cs_flow *flow, double rate)
{
    uint32_t n;
    const uint32_t *links = cs_flow_links(network, flow, &n);
    flow->next_rate = rate;
    for (uint32_t l = 0; l < n; l++) {
        cs_link_state *link = &network->links[links[l]];
        if (link->n == 1)
            continue;
        const uint32_t weight = cs_flow_weight(network, flow, l);
        const double spare = link->spare - rate * weight;
        link->spare = spare > 0 ? spare : 0;
        link->unfixed -= weight;
    }
}

/* Fills the links until all flows have a rate; whatever is left on links then changes none. */
static bool max_min_rates(cs_network *network)
{
    const cs_component *of = &network->component;
    if (of->flows.n == 1 && of->links.n == 1) { /* it has all of its links to itself */
        const uint32_t id = of->flows.ids[0];
        network->flows[id].next_rate = find_constant_bound(network, id).share;
        return true;
    }
    if (!list_bounds(network))
        return false;
    for (uint32_t left = of->flows.n; left > 0;) {
        const cs_bound tightest = find_tightest(network);
        const cs_link_state *link = &network->links[tightest.link];
        const bool constant = tightest.flow != CS_NONE;
        const uint32_t *flows = constant ? &tightest.flow : link->flows;
        for (uint32_t f = 0; f < (constant ? 1 : link->n); f++) {
            cs_flow *flow = &network->flows[flows[f]];
            if (flow->next_rate >= 0)
                continue;
            fix_rate(network, flow, tightest.share);
            left--;
        }
    }
    return true;
}

/* Shortcut: where the tightest link has all flows of the component, and gives each less than it
 * could have alone, all get its share. Links that are equally tight must all have all flows: else
 * the order of links decides about rounding. Gain: 8 % of the instructions of a ring all-reduce
 * whose ranks drift apart (bench-network ring 48 drift), 6 % of one in random order. */
static bool have_common_share(cs_network *network)
{
    const cs_component *of = &network->component;
    double share = INFINITY;
    uint32_t n = 0;
    for (uint32_t i = 0; i < of->links.n; i++) {
        const cs_link_state *link = &network->links[of->links.ids[i]];
        const double gives = link->bandwidth / link->load;
        if (gives > share)
            continue;
        n = gives < share || link->n < n ? link->n : n;
        share = gives;
    }
    bool common = network->has_shortcuts && n == of->flows.n;
    for (uint32_t i = 0; i < of->flows.n && common; i++)
        common = share < network->classes[network->flows[of->flows.ids[i]].cls].sole_rate;
    for (uint32_t i = 0; i < of->flows.n && common; i++)
        network->flows[of->flows.ids[i]].next_rate = share;
    return common;
}

bool cs_link_shares_solve(cs_network *network, uint32_t link)
{
    const bool max_min = network->sharing == CS_SHARING_MAX_MIN;
    network->links[link].mark = network->component.mark;
    network->component.links.n = 0;
    if (!cs_id_list_add(&network->component.links, link) || !collect(network, max_min))
        return false;
    if (max_min)
        return have_common_share(network) || max_min_rates(network);
    count_rates(network);
    return true;
}

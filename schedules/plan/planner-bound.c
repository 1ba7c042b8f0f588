/* Lower bounds of the period. For any plan and any valid pattern of period T:
 *
 * load       Each device's load is at most T, and all loads together are U(0, L): T >= U(0, L) / P.
 * window     If layers [i, j) are on one device, T >= U(i, j). Otherwise two neighbours among them
 *            are on different devices, and the messages of the boundary b between the two take
 *            C(b) of a link in each period. So T >= min(U(i, j), min of C(b) over i < b < j), where
 *            U counts as infinite if weights and one micro-batch of [i, j) exceed the memory. With
 *            j = i + 1 this is the largest layer. (One micro-batch: when the forward of the
 *            device's last stage starts, its micro-batch is active in all earlier stages of the
 *            device.)
 * average    A layer keeps kept_l bytes of a micro-batch from the start of its stage's forward to
 *            the end of its stage's backward, i.e. for U(l, L) or longer, once per period. So on
 *            average the sum of kept_l U(l, L) / T bytes is in use, out of P M - fixed bytes.
 * active     At the start of a forward, ceil(time / T) micro-batches are active in that stage. So
 *            ceil(U(l, L) / T) kept_l + fixed_l <= M, or T >= U(l, L) / floor((M - fixed_l) /
 *            kept_l).
 *
 * Message buffers only make these sums larger. If [i, j) ends in layers that take no time, and so
 * do all layers after it, a micro-batch may leave one stage at the very instant when the next stage
 * starts it; `window` then assumes that the memory suffices.
 */
#include "schedules/plan/planner.h"

__extension__ typedef __int128 wide;

static cs_time larger(cs_time a, cs_time b)
{
    return a > b ? a : b;
}

static cs_time smaller(cs_time a, cs_time b)
{
    return a < b ? a : b;
}

/* Returns ceil(a / b), at most CS_TIME_MAX; if b <= 0, CS_TIME_MAX unless a is 0. */
static cs_time quotient(wide a, wide b)
{
    if (a == 0)
        return 0;
    wide q = b > 0 ? (a + b - 1) / b : CS_TIME_MAX;
    return q < CS_TIME_MAX ? (cs_time)q : CS_TIME_MAX;
}

/* Returns the time of one micro-batch from layer l to the last layer and back. */
static cs_time behind(const cs_chain *chain, uint32_t l)
{
    return cs_chain_load(chain, l, chain->n_layers);
}

/* Whether these layers fit one device with one active micro-batch. True if nothing from the last of
 * them on takes any time (see above). */
static bool fits(const cs_chain *chain, uint32_t first, uint32_t end)
{
    wide bytes = (wide)chain->sum_fixed[end] - chain->sum_fixed[first] + chain->sum_kept[end] -
                 chain->sum_kept[first];
    return bytes <= chain->memory || behind(chain, end - 1) == 0;
}

static cs_time window_bound(const cs_chain *chain)
{
    cs_time bound = 0;
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        cs_time link = CS_TIME_MAX;
        for (uint32_t j = i + 1; j <= chain->n_layers; j++) {
            cs_time load = fits(chain, i, j) ? cs_chain_load(chain, i, j) : CS_TIME_MAX;
            bound = larger(bound, smaller(load, link));
            link = smaller(link, cs_chain_link(chain, j));
        }
    }
    return bound;
}

static cs_time average_bound(const cs_chain *chain)
{
    uint32_t n = chain->n_layers;
    wide room = (wide)chain->memory * chain->n_devices - chain->sum_fixed[n];
    cs_time bound = 0;
    for (uint32_t l = 0; l < n && room > 0; l++) {
        /* computed in parts, because bytes times picoseconds of all layers may exceed 127 bits */
        wide kept = chain->sum_kept[l + 1] - chain->sum_kept[l];
        wide part = kept * behind(chain, l) / room;
        bound = part < CS_TIME_MAX - bound ? bound + (cs_time)part : CS_TIME_MAX;
    }
    return room < 0 ? CS_TIME_MAX : bound;
}

static cs_time active_bound(const cs_chain *chain)
{
    cs_time bound = 0;
    for (uint32_t l = 0; l < chain->n_layers; l++) {
        wide room = (wide)chain->memory - (chain->sum_fixed[l + 1] - chain->sum_fixed[l]);
        int64_t kept = chain->sum_kept[l + 1] - chain->sum_kept[l];
        if (kept > 0)
            bound = larger(bound, quotient(behind(chain, l), room < 0 ? 0 : room / kept));
    }
    return bound;
}

cs_time cs_planner_bound(const cs_chain *chain)
{
    cs_time bound = quotient(cs_chain_load(chain, 0, chain->n_layers), chain->n_devices);
    bound = larger(larger(bound, 1), window_bound(chain));
    if (chain->memory < INT64_MAX)
        bound = larger(bound, larger(average_bound(chain), active_bound(chain)));
    return bound;
}

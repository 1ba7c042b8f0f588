/* Lower bounds of the period. For any plan and any valid pattern of period T:
 *
 * load       The devices' loads are at most T each and U(0, L) together: T >= U(0, L) / P.
 * window     Layers [i, j) are on one device, so T >= U(i, j); or two neighbours among them are
 *            not, and the messages of the boundary b between these take C(b) of a link in each
 *            period. So T >= min(U(i, j), min of C(b) over i < b < j), where U counts as infinite
 *            if weights and one micro-batch of [i, j) are more than the memory. With j = i + 1: the
 *            largest layer. (One micro-batch: at the start of the forward of the device's last
 *            stage, its micro-batch is active in all stages that the device has before it.)
 * average    A layer keeps its kept_l bytes of a micro-batch from the start of its stage's forward
 *            to the end of its stage's backward, which is U(l, L) or longer, and this once per
 *            period. Of P M - fixed bytes that are there at all times, sum of kept_l U(l, L) / T
 *            are so taken on average.
 * active     At the start of a forward, ceil(time / T) micro-batches are active in that stage. So
 *            ceil(U(l, L) / T) kept_l + fixed_l <= M, or T >= U(l, L) / floor((M - fixed_l) /
 *            kept_l).
 *
 * Buffers of messages only make these sums larger. Where [i, j) ends in layers behind which nothing
 * takes any time, a micro-batch may be gone in one stage at the very instant at which the next
 * stage starts it; `window` then takes the memory to suffice.
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

/* ceil(a / b), at most CS_TIME_MAX; b <= 0: CS_TIME_MAX unless a is 0. */
static cs_time quotient(wide a, wide b)
{
    if (a == 0)
        return 0;
    wide q = b > 0 ? (a + b - 1) / b : CS_TIME_MAX;
    return q < CS_TIME_MAX ? (cs_time)q : CS_TIME_MAX;
}

/* What one micro-batch takes from layer l to the end and back. */
static cs_time behind(const cs_chain *chain, uint32_t l)
{
    return cs_chain_load(chain, l, chain->n_layers);
}

/* Bytes of layers on one device that micro-batches make active for a time. */
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
        /* in parts, since bytes times picoseconds of all layers may be more than 127 bits */
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

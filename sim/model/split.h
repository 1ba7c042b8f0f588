/* How the work of a stage is divided over the devices that hold it.
 *
 * The devices of a stage form a grid with named axes. The number i of a device within its stage is
 * its place; it has the coordinates
 *
 *     i = tensor + T (x + X (y + Y (z + Z (context + C data))))
 *
 * so the tensor axis is innermost. The experts of a mixture are divided over the same devices in a
 * different way: i = expert_tensor + ET (expert + E expert_data). An axis of size 1 divides
 * nothing, and nothing is exchanged over it.
 *
 * Tensors are divided, gathered or summed over one axis, or over several axes together (cs_axes).
 * Each place belongs to one group per such set of axes: the places that differ from it only along
 * these axes.
 */
#ifndef CS_WORKLOAD_SPLIT_H
#define CS_WORKLOAD_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#define CS_AXES_MAP(X)                                                                             \
    X(TENSOR, "tensor")                                                                            \
    X(SPACE_X, "space x")                                                                          \
    X(SPACE_Y, "space y")                                                                          \
    X(SPACE_Z, "space z")                                                                          \
    X(SPACE, "space")                                                                              \
    X(CONTEXT, "context")                                                                          \
    X(DATA, "data")                                                                                \
    X(GRADIENT, "space, context and data")                                                         \
    X(SHARD, "shard")                                                                              \
    X(REPLICA, "replica")                                                                          \
    X(EXPERT_TENSOR, "expert tensor")                                                              \
    X(EXPERT, "expert")                                                                            \
    X(EXPERT_DATA, "expert data")                                                                  \
    X(EXPERT_SHARD, "expert shard")                                                                \
    X(EXPERT_REPLICA, "expert replica")                                                            \
    X(COPIES, "copies of keys and values")

typedef enum cs_axes_name {
#define CS_AXES_ENUM(name, text) CS_AXES_##name,
    CS_AXES_MAP(CS_AXES_ENUM)
#undef CS_AXES_ENUM
        CS_N_AXES
} cs_axes_name;

/* Sizes of the axes, each >= 1; copies 0 means 1. */
typedef struct cs_grid {
    uint32_t tensor;
    uint32_t space[3]; /* x, y, z */
    uint32_t context, data;
    uint32_t expert, expert_tensor; /* their product divides the number of places */
    /* places of GRADIENT that share the optimizer states of weights; divides GRADIENT */
    uint32_t shard;
    /* places of EXPERT_DATA that share the optimizer states of experts; divides EXPERT_DATA */
    uint32_t expert_shard;
    /* neighbours along the tensor axis with the same heads of keys and values (cs_split_copies);
     * divides `tensor` */
    uint32_t copies;
} cs_grid;

/* A group of places: `first + k * stride`, k < size. */
typedef struct cs_axes {
    uint32_t size, stride;
} cs_axes;

/* A grid with all sizes 1. */
cs_grid cs_grid_single(void);

uint32_t cs_grid_places(const cs_grid *grid);

/* The size and stride of axes. GRADIENT spans the places with the same dense weights; SHARD are
 * neighbours within it, REPLICA the places of GRADIENT with the same shard. EXPERT_DATA,
 * EXPERT_SHARD and EXPERT_REPLICA are the same for experts. COPIES are the neighbours along TENSOR
 * with the same heads of keys and values. */
cs_axes cs_grid_axes(const cs_grid *grid, cs_axes_name name);

/* The coordinate of a place along these axes, less than their size. The second function: the first
 * place of its group. */
static inline uint32_t cs_axes_coordinate(cs_axes axes, uint32_t place)
{
    return place / axes.stride % axes.size;
}

static inline uint32_t cs_axes_first(cs_axes axes, uint32_t place)
{
    return place - cs_axes_coordinate(axes, place) * axes.stride;
}

/* The next place that is the first of its group, after `place`, which is the first of its own
 * group. */
static inline uint32_t cs_axes_next_first(cs_axes axes, uint32_t place)
{
    const uint32_t next = place + 1;
    return next % axes.stride != 0 ? next : next + axes.stride * (axes.size - 1);
}

const char *cs_axes_text(cs_axes_name name);

/* Kinds of exchanges between the devices of a group. Their bytes are per device:
 *   all_reduce, reduce_scatter, broadcast  the whole vector that a device has before
 *   all_gather                             the whole vector that a device has after
 *   all_to_all                             everything that a device has, its own share included
 *   shift                                  sent to the next device; the last sends to the first
 *   halo                                   sent to the next device; bytes to the previous device
 *                                          are given separately; there is no ring */
typedef enum cs_exchange_kind {
    CS_EXCHANGE_ALL_REDUCE,
    CS_EXCHANGE_ALL_GATHER,
    CS_EXCHANGE_REDUCE_SCATTER,
    CS_EXCHANGE_ALL_TO_ALL,
    CS_EXCHANGE_SHIFT,
    CS_EXCHANGE_HALO,
    CS_EXCHANGE_BROADCAST,
} cs_exchange_kind;

/* How attention works when the tokens of a sequence are split. */
typedef enum cs_context_method {
    /* keys and values go around; causal work is balanced: place c takes the chunks c and 2 C - 1 -
     * c of the sequence */
    CS_CONTEXT_RING,
    CS_CONTEXT_ALL_GATHER, /* keys and values are gathered first */
    CS_CONTEXT_ALL_TO_ALL, /* within attention, heads are split instead of tokens (Ulysses) */
} cs_context_method;

/* How unevenly the tokens of a mixture go to its experts, drawn at random.
 *
 * A router sends each token to k of E experts. The popularity p_1, ..., p_E of the experts is
 *   uniform    p_e = 1 / E
 *   dirichlet  p ~ Dirichlet(a, ..., a): all equally popular on average, and the more uneven the
 *              smaller a is (a = 1: every p is equally likely; the variance of a p_e is
 *              (1/E)(1 - 1/E)/(E a + 1))
 * Of R rows (tokens times k), (n_1, ..., n_E) ~ Multinomial(R, p) go to the experts. This neglects
 * that a token goes to k different experts. If each of Q places has the same number of consecutive
 * experts, the load is
 *
 *     Q / R max_q sum_{e on q} n_e,
 *
 * the rows of the busiest place over the mean. Each mixture of a network draws its own load, from
 * the seed and its name.
 */

typedef enum cs_router {
    CS_ROUTER_GIVEN, /* set directly, by `imbalance` */
    CS_ROUTER_UNIFORM,
    CS_ROUTER_DIRICHLET,
} cs_router;

typedef struct cs_routing {
    cs_router router;
    double imbalance;     /* GIVEN: load of the busiest place over the mean, >= 1 */
    double concentration; /* DIRICHLET: a, > 0 */
    uint64_t seed;
} cs_routing;

/* The load of the busiest of `places` places, for `rows` rows of the mixture named `mixture`; 1 for
 * one place or no rows. Negative if memory runs out. */
double cs_routing_load(const cs_routing *routing, const char *mixture, uint32_t experts,
                       uint32_t places, double rows);

/* Dimensions that the tensor axis splits. */
typedef enum cs_tensor_method {
    /* Megatron: output features or heads, then input features, with one reduction after the second;
     * vocabulary of embedding and loss */
    CS_TENSOR_PAIRS,
    CS_TENSOR_FILTER, /* output features or filters of each operator, gathered after it (ParaDL) */
    /* input features or channels of each operator except the first with weights, reduced after it
     * (ParaDL) */
    CS_TENSOR_CHANNEL,
} cs_tensor_method;

typedef struct cs_split {
    cs_grid grid;
    cs_tensor_method tensor_method;
    bool sequence_parallel; /* with PAIRS: tokens are split over the tensor axis outside pairs */
    /* whether gathered tokens are saved instead of being gathered again in backward */
    bool keeps_tokens;
    /* whether the tensor axis gathers operands of narrow products before their cast; false: after
     * it */
    bool wide_gathers;
    cs_context_method context_method;
    /* operator or block before which space is gathered; NULL: as soon as the network has no space
     * dimensions any more */
    const char *space_until;
    cs_routing routing; /* routing of tokens to experts */
    /* samples that a place computes at once; rows are drawn for that many; 0 means 1 */
    uint32_t samples;
    bool synchronised_norm; /* whether batch norm sums its statistics over GRADIENT */
} cs_split;

/* The split of one device: all sizes 1. */
cs_split cs_split_none(void);

#endif

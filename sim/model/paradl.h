/* The closed forms of ParaDL: time and memory of training a convolutional network on many devices.
 *
 * Kahira et al., An oracle for guiding large-scale model/hybrid parallel training of convolutional
 * neural networks, HPDC 2021, table 3 and appendix A.1. Each strategy combines groups with a
 * method: a mini-batch of B samples is split among p1 groups (data parallelism), and within each
 * group p2 devices compute the group's samples together, by one of the methods below. So `data` is
 * any method with p2 = 1, `filter` has p1 = 1, data + filter has both, and serial has p1 = p2 = 1.
 *
 * The layers l = 1 ... G are the operators of the network, without views and losses. FW, BW and WU
 * are sums over the chain, which is priced for b samples; the forms need the times of one sample,
 * so these sums are divided by b.
 *
 * Where the paper leaves something open or contradicts itself, the forms here are as follows
 * (topologies/paradl.md has the derivations):
 *   - An epoch of D samples has ceil(D / B) iterations; terms that grow with samples count D times.
 *   - Halos are as in halo.h. A device sends one message to each neighbour that needs rows of
 *     the input of a convolution or pooling and, if the input has a gradient, one for rows of the
 *     gradients of the output; the paper's factor 2 is for two such neighbours.
 *   - WU of a pipeline is counted once per iteration, not per epoch (table 3) and not p + S - 1
 *     times per iteration (12).
 *   - Only convolutions and linear layers have the layer-wise messages of filter and channel,
 *     because every device computes all other layers on all channels (section 4.5.2).
 *   - Between the groups of data + filter, each ring sums |w| / p2, in steps of |w| / p.
 *   - Data + spatial has no row in table 3: its messages are the sums of a ring within the group
 *     and of a ring over the groups (5.3.1, all weights in each), and the halos of the group's
 *     samples.
 */
#ifndef CS_WORKLOAD_PARADL_H
#define CS_WORKLOAD_PARADL_H

#include "sim/model/net-model.h"

/* How the devices of a group split its work. */
typedef enum cs_paradl_method {
    CS_PARADL_SPATIAL,
    CS_PARADL_PIPELINE, /* p1 is 1 */
    CS_PARADL_FILTER,
    CS_PARADL_CHANNEL,
    CS_N_PARADL_METHODS
} cs_paradl_method;

/* The link of a ring: a message of m bytes takes alpha + m beta on its slowest hop while all
 * similar rings run. */
typedef struct cs_paradl_link {
    double alpha; /* s */
    double beta;  /* s per byte */
} cs_paradl_link;

typedef struct cs_paradl_case {
    cs_paradl_method method;
    uint32_t batch;               /* B, >= 1 */
    uint32_t groups;              /* p1 >= 1 */
    uint32_t members;             /* p2 >= 1; for SPATIAL the product of `space` */
    uint32_t space[CS_SPACE_MAX]; /* parts per dimension, >= 1 */
    uint32_t segments;            /* S >= 1, for a pipeline */
    /* for a pipeline: one past the last layer of the chain of each of its p2 stages */
    const uint32_t *ends;
    /* gamma: memory needed, over the sum of the sizes of all tensors */
    double reuse;
    cs_paradl_link within, between; /* links within a group; links between groups */
} cs_paradl_case;

/* The parts of an iteration's time. */
typedef enum cs_paradl_part {
    CS_PARADL_PASSES,    /* forward and backward */
    CS_PARADL_UPDATE,    /* updates of weights */
    CS_PARADL_GRADIENTS, /* messages: sums of weight gradients */
    CS_PARADL_LAYERS,    /* messages: outputs and gradients of inputs, layer by layer */
    CS_PARADL_HALO,      /* messages: borders of the parts of an image */
    CS_PARADL_STAGES,    /* messages: from stage to stage */
    CS_N_PARADL_PARTS
} cs_paradl_part;

/* The seconds of a part: some grow with the number of samples, the rest occur once per
 * iteration. */
typedef struct cs_paradl_cost {
    double per_sample, per_iteration; /* s */
} cs_paradl_cost;

typedef struct cs_paradl_form {
    cs_paradl_cost parts[CS_N_PARADL_PARTS];
    double memory;         /* bytes of the device that needs the most */
    uint64_t most_members; /* limit of p2; the limit of p1 is B */
    /* operator that sets the limit; NULL: none does, so the limit is the number of layers, or 1 */
    const char *limit;
    bool fits; /* whether p1 <= B, p2 <= its limit, and each dimension allows `space` */
} cs_paradl_form;

/* Evaluates table 3. `chain` is the network's chain, priced for `how->batch_size` samples in
 * `how`'s precision, whose width is delta. A case that does not fit is evaluated all the same. */
void cs_paradl_evaluate(const cs_net *net, const cs_net_chain *chain, const cs_net_options *how,
                        const cs_paradl_case *asked, cs_paradl_form *form);

/* Seconds of a part for an epoch of `samples` (D) in mini-batches of `batch` (B); D = B gives one
 * iteration. */
double cs_paradl_seconds(const cs_paradl_form *form, cs_paradl_part part, double samples,
                         uint32_t batch);

/* Splits an image into parts for `devices` devices over its first `rank` dimensions, as equally as
 * the prime factors of `devices` allow, larger factors first. */
void cs_paradl_divide_space(uint32_t devices, uint32_t rank, uint32_t space[CS_SPACE_MAX]);

/* The number of dimensions of the images that the network computes on; 0: none. */
uint32_t cs_paradl_space_rank(const cs_net *net);

#endif

/* How unevenly the tokens of a mixture go to its experts, drawn.
 *
 * A router sends each token to k of E experts. Of the experts p_1, ..., p_E are how popular they
 * are:
 *   uniform    p_e = 1 / E
 *   dirichlet  p ~ Dirichlet(a, ..., a): all equally popular on average, the more unevenly the
 *              smaller a is (a = 1: every p is equally likely; the variance of a p_e is
 *              (1/E)(1 - 1/E)/(E a + 1))
 * Of R rows, tokens times k, (n_1, ..., n_E) ~ Multinomial(R, p) go to each; that a token goes to
 * different experts is not held against it. With experts in equal runs on Q places the load is
 *
 *     Q / R max_q sum_{e on q} n_e,
 *
 * the rows of the busiest place over the mean. Each mixture of a network draws for itself, from the
 * seed and its name.
 */
#ifndef CS_WORKLOAD_ROUTING_H
#define CS_WORKLOAD_ROUTING_H

#include <stdint.h>

typedef enum cs_router {
    CS_ROUTER_GIVEN, /* by the imbalance */
    CS_ROUTER_UNIFORM,
    CS_ROUTER_DIRICHLET,
} cs_router;

typedef struct cs_routing {
    cs_router router;
    double imbalance;     /* given: load of the busiest place over the mean, >= 1 */
    double concentration; /* a, > 0 */
    uint64_t seed;
} cs_routing;

/* The load of the busiest of `places` places, for `rows` rows of the mixture of that name; 1 for
 * one place or no rows. Negative when memory runs out. */
double cs_routing_load(const cs_routing *routing, const char *mixture, uint32_t experts,
                       uint32_t places, double rows);

#endif

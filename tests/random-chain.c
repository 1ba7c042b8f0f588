#include "tests/random-chain.h"

#include "tests/expect.h"

#include <stdlib.h>

uint32_t random_up_to(gsl_rng *rng, uint32_t most)
{
    return (uint32_t)gsl_rng_uniform_int(rng, (unsigned long)most + 1);
}

static int64_t *sums(cs_chain *chain, gsl_rng *rng, uint32_t most)
{
    int64_t *sum = cs_arena_alloc(&chain->arena, (size_t)chain->n_layers + 1, sizeof(*sum));
    assert_non_null(sum);
    for (uint32_t l = 0; l < chain->n_layers; l++)
        sum[l + 1] = sum[l] + random_up_to(rng, most);
    return sum;
}

static int64_t *crossings(cs_chain *chain, gsl_rng *rng, uint32_t most)
{
    int64_t *values = cs_arena_alloc(&chain->arena, (size_t)chain->n_layers + 1, sizeof(*values));
    assert_non_null(values);
    for (uint32_t l = 1; l < chain->n_layers; l++)
        values[l] = random_up_to(rng, most);
    return values;
}

cs_chain random_chain_full(gsl_rng *rng, const random_chain_limits *limits)
{
    cs_chain chain = {
        .n_layers = limits->layers, .n_devices = limits->devices, .memory = INT64_MAX};
    chain.sum_forward = sums(&chain, rng, limits->time);
    chain.sum_backward = sums(&chain, rng, limits->time);
    chain.sum_fixed = sums(&chain, rng, limits->bytes);
    chain.sum_kept = sums(&chain, rng, limits->bytes);
    chain.boundary = crossings(&chain, rng, limits->bytes);
    chain.message = crossings(&chain, rng, limits->message);
    return chain;
}

cs_chain random_chain(gsl_rng *rng, const random_chain_limits *limits)
{
    random_chain_limits chosen = *limits;
    chosen.layers = 1 + random_up_to(rng, limits->layers - 1);
    chosen.devices = 1 + random_up_to(rng, limits->devices - 1);
    return random_chain_full(rng, &chosen);
}

cs_plan random_plan(gsl_rng *rng, const cs_chain *chain, uint32_t most_stages, bool anywhere)
{
    uint32_t most = most_stages < chain->n_layers ? most_stages : chain->n_layers;
    uint32_t wanted = 1 + random_up_to(rng, most - 1), n_stages = 0;
    uint32_t *cuts = calloc((size_t)wanted + 1, sizeof(*cuts));
    uint32_t *counts = calloc(wanted, sizeof(*counts)), *devices = calloc(wanted, sizeof(*devices));
    cs_plan plan;
    assert_true(cuts && counts && devices);
    for (uint32_t l = 0; l < chain->n_layers; l++) { /* each set of cuts is equally likely */
        if (l == 0 || random_up_to(rng, chain->n_layers - l - 1) < wanted - n_stages)
            cuts[n_stages++] = l;
    }
    assert_int_equal(n_stages, wanted);
    cuts[n_stages] = chain->n_layers;
    assert_int_equal(cs_plan_pipeline(cuts, n_stages, &plan, NULL), CS_OK);
    for (uint32_t s = 0; s < n_stages; s++) {
        counts[s] = 1;
        devices[s] = random_up_to(rng, chain->n_devices - 1);
    }
    if (anywhere)
        assert_int_equal(cs_plan_place(&plan, counts, devices, NULL), CS_OK);
    free(cuts);
    free(counts);
    free(devices);
    return plan;
}

void first_cuts(uint32_t *cuts, uint32_t n_stages, uint32_t n_layers)
{
    for (uint32_t s = 0; s < n_stages; s++)
        cuts[s] = s;
    cuts[n_stages] = n_layers;
}

bool next_cuts(uint32_t *cuts, uint32_t n_stages)
{
    for (uint32_t s = n_stages - 1; s > 0; s--) {
        if (cuts[s] + (n_stages - s) < cuts[n_stages]) {
            cuts[s]++;
            for (uint32_t t = s + 1; t < n_stages; t++)
                cuts[t] = cuts[t - 1] + 1;
            return true;
        }
    }
    return false;
}

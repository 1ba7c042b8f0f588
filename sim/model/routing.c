#include "sim/model/routing.h"

#include "sim/base/random.h"
#include "sim/base/text.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* More rows than one draw can have lie next to their mean. */
static const double most_rows = 1 << 30;

static void draw_popularity(const cs_routing *routing, uint32_t experts, gsl_rng *random,
                            double *popularity)
{
    for (uint32_t e = 0; e < experts; e++)
        popularity[e] =
            routing->router == CS_ROUTER_DIRICHLET ? routing->concentration : 1.0 / experts;
    if (routing->router == CS_ROUTER_DIRICHLET)
        gsl_ran_dirichlet(random, experts, popularity, popularity + experts);
}

/* Of the experts in runs, what share of the rows the busiest place has. */
static double busiest(const double *shares, uint32_t experts, uint32_t places)
{
    const uint32_t each = experts / places;
    double most = 0;
    for (uint32_t q = 0; q < places; q++) {
        double sum = 0;
        for (uint32_t e = q * each; e < (q + 1) * each; e++)
            sum += shares[e];
        most = fmax(most, sum);
    }
    return most;
}

static double draw_load(const cs_routing *routing, uint32_t experts, uint32_t places, double rows,
                        gsl_rng *random)
{
    double *parameters = calloc(2 * (size_t)experts, sizeof(*parameters));
    unsigned int *counts = calloc(experts, sizeof(*counts));
    double load = -1;
    if (parameters && counts) {
        const bool drawn = routing->router == CS_ROUTER_DIRICHLET;
        double *shares = drawn ? parameters + experts : parameters;
        draw_popularity(routing, experts, random, parameters);
        if (rows <= most_rows) {
            gsl_ran_multinomial(random, experts, (unsigned int)rows, shares, counts);
            for (uint32_t e = 0; e < experts; e++)
                shares[e] = counts[e] / rows;
        }
        load = fmin(fmax(1, places * busiest(shares, experts, places)), places);
    }
    free(parameters);
    free(counts);
    return load;
}

double cs_routing_load(const cs_routing *routing, const char *mixture, uint32_t experts,
                       uint32_t places, double rows)
{
    char name[256];
    if (places < 2 || rows < 1)
        return 1;
    if (routing->router == CS_ROUTER_GIVEN)
        return routing->imbalance;
    cs_text_format(name, sizeof(name), "router of %.200s", mixture);
    gsl_rng *random = cs_random_stream(routing->seed, name);
    if (!random)
        return -1;
    const double load = draw_load(routing, experts, places, floor(rows), random);
    gsl_rng_free(random);
    return load;
}

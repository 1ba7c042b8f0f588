#include "sim/model/split.h"

#include "sim/base/random.h"
#include "sim/base/text.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

cs_grid cs_grid_single(void)
{
    return (cs_grid){.tensor = 1,
                     .space = {1, 1, 1},
                     .context = 1,
                     .data = 1,
                     .copies = 1,
                     .expert = 1,
                     .expert_tensor = 1,
                     .shard = 1,
                     .expert_shard = 1};
}

cs_split cs_split_none(void)
{
    return (cs_split){.grid = cs_grid_single(), .routing = {.imbalance = 1, .concentration = 1}};
}

static uint32_t n_space(const cs_grid *grid)
{
    return grid->space[0] * grid->space[1] * grid->space[2];
}

uint32_t cs_grid_places(const cs_grid *grid)
{
    return grid->tensor * n_space(grid) * grid->context * grid->data;
}

cs_axes cs_grid_axes(const cs_grid *grid, cs_axes_name name)
{
    const uint32_t places = cs_grid_places(grid), tensor = grid->tensor, space = n_space(grid);
    const uint32_t experts = grid->expert_tensor * grid->expert;
    switch (name) {
    case CS_AXES_TENSOR:
        return (cs_axes){tensor, 1};
    case CS_AXES_SPACE_X:
        return (cs_axes){grid->space[0], tensor};
    case CS_AXES_SPACE_Y:
        return (cs_axes){grid->space[1], tensor * grid->space[0]};
    case CS_AXES_SPACE_Z:
        return (cs_axes){grid->space[2], tensor * grid->space[0] * grid->space[1]};
    case CS_AXES_SPACE:
        return (cs_axes){space, tensor};
    case CS_AXES_CONTEXT:
        return (cs_axes){grid->context, tensor * space};
    case CS_AXES_DATA:
        return (cs_axes){grid->data, tensor * space * grid->context};
    case CS_AXES_GRADIENT:
        return (cs_axes){places / tensor, tensor};
    case CS_AXES_SHARD:
        return (cs_axes){grid->shard, tensor};
    case CS_AXES_REPLICA:
        return (cs_axes){places / tensor / grid->shard, tensor * grid->shard};
    case CS_AXES_EXPERT_TENSOR:
        return (cs_axes){grid->expert_tensor, 1};
    case CS_AXES_EXPERT:
        return (cs_axes){grid->expert, grid->expert_tensor};
    case CS_AXES_EXPERT_DATA:
        return (cs_axes){places / experts, experts};
    case CS_AXES_EXPERT_SHARD:
        return (cs_axes){grid->expert_shard, experts};
    case CS_AXES_EXPERT_REPLICA:
        return (cs_axes){places / experts / grid->expert_shard, experts * grid->expert_shard};
    case CS_AXES_COPIES:
        return (cs_axes){grid->copies > 0 ? grid->copies : 1, 1};
    case CS_N_AXES:
        break;
    }
    return (cs_axes){1, 1};
}

const char *cs_axes_text(cs_axes_name name)
{
    static const char *const texts[] = {
#define CS_AXES_TEXT(name, text) text,
        CS_AXES_MAP(CS_AXES_TEXT)
#undef CS_AXES_TEXT
    };
    return texts[name];
}

/* ---- routing ---- */

/* The most rows that are drawn. More rows are so close to their mean that the mean is used. */
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

/* The busiest place's share of all rows; each place has the same number of consecutive experts. */
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

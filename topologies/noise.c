#include "topologies/noise.h"

#include "sim/base/random.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"constant",  "uniform", "exponential",
                                         "lognormal", "beta",    NULL};

const cs_field cs_noise_spread_fields[] = {
    {"distribution", CS_FIELD_CHOICE, offsetof(cs_spread, kind), .fallback = "uniform",
     .choices = kind_names,
     .doc = "uniform: from 0 to twice the mean; a share of bandwidth can be constant, uniform or "
            "beta; a slowdown cannot be beta"},
    {"mean", CS_FIELD_NUMBER, offsetof(cs_spread, mean),
     .doc = "mean of the lost share of bandwidth, or of x if something takes 1 + x times as long"},
    {"deviation", CS_FIELD_NUMBER, offsetof(cs_spread, deviation), .fallback = "0",
     .doc = "standard deviation, from a millionth to a million times the mean; required for "
            "lognormal and beta, and allowed only there"},
    {"probability", CS_FIELD_NUMBER, offsetof(cs_spread, probability), .fallback = "1", .max = 1,
     .doc = "probability that a link, a device or a computation is affected at all"},
    {0}};

static bool wants_deviation(const cs_spread *spread)
{
    return spread->kind == CS_SPREAD_LOGNORMAL || spread->kind == CS_SPREAD_BETA;
}

/* Limits of deviation / mean and of its inverse, and of the distance of a beta distribution from
 * its edge; beyond them parameters leave the range of doubles. */
static const double narrowest = 1e-6;

/* Largest mean of a share; below, its largest deviation. */
static double most_mean(const cs_spread *spread)
{
    return spread->kind == CS_SPREAD_UNIFORM ? 0.5 : CS_NOISE_MOST_SHARE;
}

static double most_deviation(const cs_spread *spread)
{
    return sqrt(spread->mean * (1 - spread->mean));
}

cs_status cs_spread_check(const cs_spread *spread, bool shares, const cs_json_place *place,
                          cs_error *error)
{
    const cs_json_place kind = {.up = place, .key = "distribution"};
    const cs_json_place mean = {.up = place, .key = "mean"};
    const cs_json_place deviation = {.up = place, .key = "deviation"};
    const char *name = kind_names[spread->kind];
    if (shares && (spread->kind == CS_SPREAD_EXPONENTIAL || spread->kind == CS_SPREAD_LOGNORMAL))
        return cs_json_invalid(&kind, error,
                               "must be constant, uniform or beta: a share is below 1 (got \"%s\")",
                               name);
    if (!shares && spread->kind == CS_SPREAD_BETA)
        return cs_json_invalid(&kind, error, "must not be beta, which is for shares");
    if (wants_deviation(spread) != (spread->deviation > 0))
        return cs_json_invalid(&deviation, error, "must be %s with the distribution %s (got %g)",
                               wants_deviation(spread) ? "> 0" : "left out", name,
                               spread->deviation);
    if (wants_deviation(spread) && !(spread->mean > 0))
        return cs_json_invalid(&mean, error, "must be > 0 with the distribution %s (got %g)", name,
                               spread->mean);
    if (shares && spread->mean > most_mean(spread))
        return cs_json_invalid(&mean, error, "must be <= %g with the distribution %s (got %g)",
                               most_mean(spread), name, spread->mean);
    const double ratio = spread->deviation / spread->mean;
    if (wants_deviation(spread) && !(ratio >= narrowest && ratio <= 1 / narrowest))
        return cs_json_invalid(&deviation, error,
                               "must be from %g to %g times the mean, %g (got %g)", narrowest,
                               1 / narrowest, spread->mean, spread->deviation);
    if (spread->kind == CS_SPREAD_BETA &&
        !(spread->deviation < (1 - narrowest) * most_deviation(spread)))
        return cs_json_invalid(&deviation, error,
                               "must be < %g, the square root of m (1 - m) (got %g)",
                               most_deviation(spread), spread->deviation);
    return CS_OK;
}

static double draw(const cs_spread *spread, const gsl_rng *stream)
{
    const double m = spread->mean, d = spread->deviation;
    if (gsl_rng_uniform(stream) >= spread->probability)
        return 0;
    switch ((cs_spread_kind)spread->kind) {
    case CS_SPREAD_CONSTANT:
        return m;
    case CS_SPREAD_UNIFORM:
        return 2 * m * gsl_rng_uniform(stream);
    case CS_SPREAD_EXPONENTIAL:
        return gsl_ran_exponential(stream, m);
    case CS_SPREAD_LOGNORMAL: {
        const double variance = log1p((d / m) * (d / m));
        return gsl_ran_lognormal(stream, log(m) - variance / 2, sqrt(variance));
    }
    case CS_SPREAD_BETA: {
        const double k = m * (1 - m) / (d * d) - 1;
        return gsl_ran_beta(stream, m * k, (1 - m) * k);
    }
    }
    return 0;
}

static bool spreads(const cs_spread *spread)
{
    return spread->mean > 0 && spread->probability > 0;
}

bool cs_noise_is_on(const cs_noise *noise)
{
    return spreads(&noise->jitter) || spreads(&noise->slow_devices) ||
           spreads(&noise->slow_tasks) || noise->n_sources > 0;
}

/* ---- the platform ---- */

static cs_status slow_links(const cs_spread *jitter, uint64_t seed, cs_platform *platform,
                            cs_error *error)
{
    gsl_rng *stream = cs_random_stream(seed, "jitter");
    if (!stream)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < platform->n_links; i++)
        platform->links[i].bandwidth *= 1 - fmin(draw(jitter, stream), CS_NOISE_MOST_SHARE);
    gsl_rng_free(stream);
    return CS_OK;
}

static cs_status slow_devices(const cs_spread *slow, uint64_t seed, cs_platform *platform,
                              cs_error *error)
{
    gsl_rng *stream = cs_random_stream(seed, "slow devices");
    if (!stream)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < platform->n_devices; i++)
        platform->devices[i].speed /= 1 + draw(slow, stream);
    gsl_rng_free(stream);
    return CS_OK;
}

cs_status cs_noise_platform(const cs_noise *noise, const cs_platform *platform, uint64_t seed,
                            cs_platform *disturbed, cs_error *error)
{
    cs_platform made = *platform;
    cs_arena_init(&made.arena);
    made.quiet_links = platform->links;
    made.devices = cs_arena_alloc(&made.arena, platform->n_devices, sizeof(*made.devices));
    made.links = cs_arena_alloc(&made.arena, platform->n_links, sizeof(*made.links));
    cs_status status = made.devices && made.links ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        memcpy(made.devices, platform->devices, platform->n_devices * sizeof(*made.devices));
        if (platform->n_links > 0)
            memcpy(made.links, platform->links, platform->n_links * sizeof(*made.links));
    }
    if (status == CS_OK && spreads(&noise->jitter))
        status = slow_links(&noise->jitter, seed, &made, error);
    if (status == CS_OK && spreads(&noise->slow_devices))
        status = slow_devices(&noise->slow_devices, seed, &made, error);
    return cs_platform_hand_over(status, &made, disturbed);
}

/* ---- tasks and traffic ---- */

cs_status cs_noise_tasks(const cs_noise *noise, uint64_t seed, uint32_t n, double **factors,
                         cs_error *error)
{
    *factors = NULL;
    if (!spreads(&noise->slow_tasks))
        return CS_OK;
    gsl_rng *stream = cs_random_stream(seed, "slow tasks");
    double *made = malloc(((size_t)n + 1) * sizeof(*made));
    for (uint32_t i = 0; stream && made && i < n; i++)
        made[i] = 1 + draw(&noise->slow_tasks, stream);
    const bool done = stream && made;
    gsl_rng_free(stream);
    if (!done) {
        free(made);
        return cs_error_no_memory(error);
    }
    *factors = made;
    return CS_OK;
}

cs_status cs_noise_pairs(const cs_noise *noise, const cs_platform *platform, uint64_t seed,
                         cs_pair **pairs, cs_error *error)
{
    *pairs = NULL;
    if (noise->n_sources == 0)
        return CS_OK;
    gsl_rng *stream = cs_random_stream(seed, "pairs");
    cs_pair *made = calloc(noise->n_sources, sizeof(*made));
    for (uint32_t i = 0; stream && made && i < noise->n_sources; i++) {
        const uint32_t n = platform->n_devices;
        if (noise->pairs) {
            made[i] = noise->pairs[i];
            continue;
        }
        made[i].source = (uint32_t)gsl_rng_uniform_int(stream, n);
        made[i].target = (uint32_t)gsl_rng_uniform_int(stream, n - 1);
        made[i].target += made[i].target >= made[i].source; /* any device except the source */
    }
    const bool done = stream && made;
    gsl_rng_free(stream);
    if (!done) {
        free(made);
        return cs_error_no_memory(error);
    }
    *pairs = made;
    return CS_OK;
}

#include "calib/fit.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

/* ---- medians ---- */

static const double tail = 0.025; /* probability on each side of a 95 % interval */

bool cs_fit_median_ranks(uint32_t n, uint32_t *low, uint32_t *high)
{
    /* The median is below the sample of rank j (from 0) if at most j of n samples are below the
     * median. */
    uint32_t j = 0;
    const bool known = n > 0 && gsl_cdf_binomial_P(0, 0.5, n) <= tail;
    while (known && j + 1 < n / 2 && gsl_cdf_binomial_P(j + 1, 0.5, n) <= tail)
        j++;
    *low = j;
    *high = n > 0 ? n - 1 - j : 0;
    return known;
}

void cs_fit_median(double *samples, uint32_t n, cs_cost_timing *timing)
{
    uint32_t low, high;
    gsl_sort(samples, 1, n);
    (void)cs_fit_median_ranks(n, &low, &high);
    *timing = (cs_cost_timing){.median = gsl_stats_median_from_sorted_data(samples, 1, n),
                               .low = samples[low],
                               .high = samples[high],
                               .samples = n};
}

bool cs_fit_is_settled(const cs_cost_timing *timing, double share)
{
    const double room = share * timing->median;
    return timing->samples >= CS_FIT_SAMPLES && timing->high - timing->median <= room &&
           timing->median - timing->low <= room;
}

/* ---- one regime ---- */

/* In scales: residuals beyond `bisquare` have no weight (Tukey's bisquare, 95 % efficient for
 * normal errors); beyond `huber` they count less than their square (Huber). */
static const double bisquare = 4.685, huber = 1.345;
static const double least_scale = 1e-9;  /* for points exactly on a line */
static const double greatest_scale = 10; /* beyond this nothing is known */
enum { ROUNDS = 50, HALVINGS = 50 };

typedef struct line {
    double alpha, beta;
} line;

/* Points of a run, with working memory for as many. All deviations are relative to the time. */
typedef struct run {
    const double *bytes, *seconds;
    const double *spread; /* known deviation of a point: of its median, of rounding */
    double *sigma;        /* deviation including the common noise */
    double *weights, *residuals, *scratch;
    size_t n;
} run;

/* Never 0, even for a message of no bytes when alpha is 0. */
static double fitted(const line *of, double bytes)
{
    return fmax(of->alpha + of->beta * bytes, 1e-18);
}

/* Computes residuals relative to the fit, in sigmas, so that points too high and too low by the
 * same factor have the same influence. */
static void find_residuals(const run *r, const line *of)
{
    for (size_t i = 0; i < r->n; i++)
        r->residuals[i] = (r->seconds[i] / fitted(of, r->bytes[i]) - 1) / r->sigma[i];
}

static void set_sigma(const run *r, double noise)
{
    for (size_t i = 0; i < r->n; i++)
        r->sigma[i] = hypot(noise, r->spread[i]);
}

/* Weighted least squares with alpha, beta >= 0: if one would be negative it is set to 0, and the
 * other is fitted alone. */
static line solve(const run *r)
{
    double slope_only, alpha, beta, c00, c01, c11, chi;
    gsl_fit_wlinear(r->bytes, 1, r->weights, 1, r->seconds, 1, r->n, &alpha, &beta, &c00, &c01,
                    &c11, &chi);
    if (alpha >= 0 && beta >= 0)
        return (line){alpha, beta};
    gsl_fit_wmul(r->bytes, 1, r->weights, 1, r->seconds, 1, r->n, &slope_only, &c11, &chi);
    if (beta < 0 || !isfinite(slope_only))
        return (line){gsl_stats_wmean(r->weights, 1, r->seconds, 1, r->n), 0};
    return (line){0, slope_only};
}

/* Fits the initial line, with errors relative to the measured times. */
static line start(const run *r)
{
    for (size_t i = 0; i < r->n; i++)
        r->weights[i] = pow(r->seconds[i] * r->sigma[i], -2);
    return solve(r);
}

/* Weight psi(u) / u of a residual of u scales. */
static double weight_of(double u, bool redescends)
{
    if (!redescends)
        return fabs(u) <= huber ? 1 : huber / fabs(u);
    const double v = u / bisquare;
    return fabs(v) < 1 ? (1 - v * v) * (1 - v * v) : 0;
}

/* One step of iteratively reweighted least squares. Returns the relative change of the fit. */
static double improve(const run *r, double scale, bool redescends, line *of)
{
    double moved = 0, sum = 0;
    find_residuals(r, of);
    for (size_t i = 0; i < r->n; i++) {
        const double f = fitted(of, r->bytes[i]) * r->sigma[i];
        r->weights[i] = weight_of(r->residuals[i] / scale, redescends) / (f * f);
        sum += r->weights[i];
    }
    if (!(sum > 0))
        return 0;
    const line next = solve(r);
    for (size_t i = 0; i < r->n; i++)
        moved = fmax(moved, fabs(fitted(&next, r->bytes[i]) / fitted(of, r->bytes[i]) - 1));
    *of = next;
    return moved;
}

static void iterate(const run *r, double scale, bool redescends, line *of)
{
    for (int i = 0; i < ROUNDS && improve(r, scale, redescends, of) > 1e-10; i++)
        continue;
}

static double median_of(double *values, size_t n)
{
    gsl_sort(values, 1, n);
    return gsl_stats_median_from_sorted_data(values, 1, n);
}

/* Scale of the residuals, in sigmas: from the median of their absolute values, corrected for two
 * parameters. At least the known deviation of the points, because rounded times may lie on a line
 * by chance. */
static double scale_of(const run *r)
{
    for (size_t i = 0; i < r->n; i++)
        r->scratch[i] = fmax(r->spread[i], least_scale) / r->sigma[i];
    const double least = median_of(r->scratch, r->n);
    for (size_t i = 0; i < r->n; i++)
        r->scratch[i] = fabs(r->residuals[i]);
    const double mad = median_of(r->scratch, r->n);
    const double free_n = r->n > 2 ? (double)r->n / ((double)r->n - 2) : 1;
    return fmax(1.4826 * mad * sqrt(free_n), least);
}

/* Huber's loss has one minimum, where the bisquare starts. */
static line fit_line(const run *r, double scale)
{
    line of = start(r);
    iterate(r, scale, false, &of);
    iterate(r, scale, true, &of);
    find_residuals(r, &of);
    return of;
}

/* ---- partition into regimes ---- */

typedef struct search {
    run all;
    uint32_t *cuts; /* points where a regime may begin; the last entry is n */
    uint32_t n_cuts;
    double *loss;   /* at [a * (n_cuts + 1) + b]: the run from cut a to cut b */
    double *best;   /* at [k * (n_cuts + 1) + b]: k + 1 regimes up to cut b */
    uint32_t *from; /* likewise: the cut where the last regime begins */
} search;

enum { MOST_CUTS = 64 };

static run slice(const run *all, uint32_t from, uint32_t to)
{
    return (run){all->bytes + from,   all->seconds + from,   all->spread + from,  all->sigma + from,
                 all->weights + from, all->residuals + from, all->scratch + from, to - from};
}

/* Median of the root mean square residuals of short runs, in sigmas of this noise; outliers and
 * break points do not affect it. */
static double local_residual(const run *all, double noise)
{
    const uint32_t n = (uint32_t)all->n;
    uint32_t count = 0;
    double *rms = all->scratch;
    set_sigma(all, noise);
    for (uint32_t i = 0; i + CS_FIT_RUN <= n; i++) {
        const run r = slice(all, i, i + CS_FIT_RUN);
        const line of = start(&r);
        double sum = 0;
        find_residuals(&r, &of);
        for (size_t k = 0; k < r.n; k++)
            sum += r.residuals[k] * r.residuals[k];
        rms[count++] = sqrt(sum / (CS_FIT_RUN - 2));
    }
    return median_of(rms, count);
}

static double run_loss(const search *s, uint32_t a, uint32_t b)
{
    const run r = slice(&s->all, s->cuts[a], s->cuts[b]);
    if (r.n < CS_FIT_RUN || r.bytes[0] == r.bytes[r.n - 1])
        return INFINITY;
    (void)fit_line(&r, 1);
    /* Squares, truncated at the end of the bisquare's weights. */
    double sum = 0;
    for (size_t i = 0; i < r.n; i++)
        sum += fmin(r.residuals[i] * r.residuals[i], bisquare * bisquare);
    return sum;
}

/* Finds the best partition of the first b cuts into k + 1 regimes, from the partitions into k. */
static void extend(const search *s, uint32_t k)
{
    const uint32_t row = s->n_cuts + 1;
    for (uint32_t b = 1; b <= s->n_cuts; b++) {
        s->best[k * row + b] = k == 0 ? s->loss[b] : INFINITY;
        s->from[k * row + b] = 0;
        for (uint32_t a = 1; k > 0 && a < b; a++) {
            const double loss = s->best[(k - 1) * row + a] + s->loss[a * row + b];
            if (loss >= s->best[k * row + b])
                continue;
            s->best[k * row + b] = loss;
            s->from[k * row + b] = a;
        }
    }
}

/* Chooses the number of regimes; each has two parameters, and there is a break point between two.
 * The penalty per parameter follows Liu, Wu and Zidek; it exceeds Schwarz' log n because break
 * points are searched for. */
static uint32_t choose(const search *s, uint32_t most)
{
    const uint32_t row = s->n_cuts + 1;
    const double penalty = 0.299 * pow(log((double)s->all.n), 2.1);
    uint32_t chosen = 0;
    double least = INFINITY;
    for (uint32_t k = 0; k < most; k++) {
        const double parameters = 3.0 * k + 2;
        const double criterion = s->best[k * row + s->n_cuts] + parameters * penalty;
        if (criterion >= least)
            continue;
        least = criterion;
        chosen = k;
    }
    return chosen;
}

/* ---- intervals ---- */

/* Huber, Robust Statistics, 1981, section 7.6: scale^2 [sum psi^2 / (n - 2)] / [mean psi']^2 times
 * the inverse of X'X, where a row of X is (1, bytes) / (fitted sigma); with his correction for
 * small n. */
static double covariance_factor(const run *r, double scale)
{
    double psi2 = 0, slope = 0, slope2 = 0;
    const double n = (double)r->n;
    for (size_t i = 0; i < r->n; i++) {
        const double u = r->residuals[i] / scale, v = u / bisquare, v2 = v * v;
        if (v2 >= 1)
            continue;
        const double psi = u * (1 - v2) * (1 - v2), derivative = (1 - v2) * (1 - 5 * v2);
        psi2 += psi * psi;
        slope += derivative / n;
        slope2 += derivative * derivative / n;
    }
    if (r->n <= 2 || !(slope > 0))
        return INFINITY;
    const double correction = 1 + 2 / n * (slope2 - slope * slope) / (slope * slope);
    return correction * correction * scale * scale * psi2 / (n - 2) / (slope * slope);
}

static cs_cost_interval interval(double value, double variance, double t)
{
    const double half = t * sqrt(variance);
    if (!isfinite(half)) /* too few points for an interval */
        return (cs_cost_interval){value, 0, INFINITY};
    return (cs_cost_interval){value, fmax(value - half, 0), value + half};
}

/* Finds line and scale of a regime, which depend on each other, and the residuals. */
static line settle(const run *r, double *scale)
{
    line of = fit_line(r, 1);
    *scale = scale_of(r);
    for (int i = 0; i < 3; i++) {
        iterate(r, *scale, true, &of);
        find_residuals(r, &of);
        *scale = scale_of(r);
    }
    return of;
}

static cs_cost_regime finish_regime(const run *r)
{
    double scale, variance_alpha, variance_beta, squares = 0;
    uint32_t kept = 0;
    const line of = settle(r, &scale);
    for (size_t i = 0; i < r->n; i++) {
        const double off = r->residuals[i] * r->sigma[i];
        if (fabs(r->residuals[i]) >= 3 * scale && fabs(off) > 1e-6)
            continue;
        squares += off * off;
        kept++;
    }
    /* Variances of alpha and beta, without the factor. */
    double *alpha = &variance_alpha;
    double *beta = &variance_beta;
    double a = 0, b = 0, c = 0, mean = 0;
    for (size_t i = 0; i < r->n; i++) {
        const double f = fitted(&of, r->bytes[i]) * r->sigma[i], w = 1 / (f * f);
        a += w;
        mean += w * r->bytes[i];
    }
    mean /= a;
    for (size_t i = 0; i < r->n; i++) {
        const double f = fitted(&of, r->bytes[i]) * r->sigma[i], d = r->bytes[i] - mean;
        c += d * d / (f * f);
    }
    b = mean * mean;
    *beta = 1 / c;
    *alpha = 1 / a + b / c;
    const double factor = covariance_factor(r, scale);
    const double t = r->n > 2 ? gsl_cdf_tdist_Pinv(1 - tail, (double)r->n - 2) : INFINITY;
    return (cs_cost_regime){.from = (int64_t)r->bytes[0],
                            .alpha = interval(of.alpha, factor * variance_alpha, t),
                            .beta = interval(of.beta, factor * variance_beta, t),
                            .error = kept > 0 ? sqrt(squares / kept) : 0,
                            .points = (uint32_t)r->n,
                            .outliers = (uint32_t)r->n - kept};
}

/* ---- the fit ---- */

enum { COLUMNS = 7 };

/* Whether the same timing occurs earlier; a log that was read twice adds no information. */
static bool was_there(const cs_cost_point *points, uint32_t i)
{
    for (uint32_t k = i; k-- > 0 && points[k].bytes == points[i].bytes;)
        if (points[k].seconds == points[i].seconds)
            return true;
    return false;
}

static cs_status check(const cs_cost_point *points, uint32_t n, cs_error *error)
{
    if (n < 2 || points[0].bytes == points[n - 1].bytes)
        return cs_error_add(
            error, CS_INVALID,
            "a fit of alpha and beta requires at least two sizes (got %u timings%s)", n,
            n < 2 ? "" : " of one size");
    if (n > CS_FIT_POINTS_MAX)
        return cs_error_add(error, CS_INVALID, "a fit takes at most %d timings (got %u)",
                            CS_FIT_POINTS_MAX, n);
    for (uint32_t i = 0; i < n; i++) {
        if (!(points[i].seconds > 0) || !isfinite(points[i].seconds) || points[i].bytes < 0 ||
            (i > 0 && points[i].bytes < points[i - 1].bytes))
            return cs_error_add(
                error, CS_INVALID,
                "timing %u of a fit must have seconds > 0, and at least as many bytes as "
                "the previous one (got %g s for %lld B)",
                i, points[i].seconds, (long long)points[i].bytes);
    }
    return CS_OK;
}

static bool is_left_out(const run *r, size_t i, double scale)
{
    const double off = fabs(r->residuals[i]);
    return off >= bisquare * scale && off * r->sigma[i] > 1e-6;
}

/* Counts the first points of a regime that belong to the previous regime. The search uses runs of
 * at least CS_FIT_RUN points, so a shorter regime is found together with last points of the
 * previous one, as its outliers. */
static uint32_t count_of_before(const run *before, const run *r)
{
    double scale;
    uint32_t n = 0;
    const line previous = settle(before, &scale);
    const line of = settle(r, &scale);
    for (uint32_t i = 0; i + 1 < r->n; i++) {
        const double seconds = r->seconds[i], bytes = r->bytes[i];
        if (!is_left_out(r, i, scale) ||
            fabs(seconds / fitted(&previous, bytes) - 1) > fabs(seconds / fitted(&of, bytes) - 1))
            break;
        if (r->bytes[i + 1] > bytes)
            n = i + 1;
    }
    return n;
}

/* Finds where the sizes at the end of a regime begin that have only outliers, which would have no
 * weight; r->n if there are none, or too many to be outliers. */
static uint32_t find_end(const run *r)
{
    double scale;
    const uint32_t n = (uint32_t)r->n;
    uint32_t end = n;
    if (n < CS_FIT_RUN)
        return n;
    (void)settle(r, &scale);
    for (uint32_t i = n; i-- > 0;) {
        if (!is_left_out(r, i, scale))
            break;
        if (i > 0 && r->bytes[i - 1] < r->bytes[i])
            end = i;
    }
    return n - end < CS_FIT_RUN && 2 * (n - end) < n ? end : n;
}

static void fit_all(search *s, uint32_t most, cs_fit *fit)
{
    uint32_t ends[CS_FIT_REGIMES_MAX + 1] = {(uint32_t)s->all.n}, first = 0;
    fit->n_regimes = 1;
    if (most > 1 && s->all.n >= CS_FIT_RUN) {
        /* A regime may begin wherever the size changes; with more than MOST_CUTS points, only about
         * every n / MOST_CUTS-th point. */
        const uint32_t n = (uint32_t)s->all.n;
        const uint32_t step = (n + MOST_CUTS - 1) / MOST_CUTS;
        s->n_cuts = 0;
        for (uint32_t i = 0, last = 0; i < n; i++) {
            if (i > 0 && (i - last < step || s->all.bytes[i] == s->all.bytes[i - 1]))
                continue;
            s->cuts[s->n_cuts++] = last = i;
        }
        s->cuts[s->n_cuts] = n;
        /* ends[0..k]: the points where the regimes end */
        const uint32_t row = s->n_cuts + 1;
        for (uint32_t a = 0; a < s->n_cuts; a++)
            for (uint32_t b = a + 1; b <= s->n_cuts; b++)
                s->loss[a * row + b] = run_loss(s, a, b);
        for (uint32_t k = 0; k < most; k++)
            extend(s, k);
        const uint32_t chosen = choose(s, most);
        uint32_t b = s->n_cuts;
        for (uint32_t k = chosen + 1; k-- > 0;) {
            ends[k] = s->cuts[b];
            b = s->from[k * row + b];
        }
        fit->n_regimes = chosen + 1;
    }
    for (uint32_t i = 1; i < fit->n_regimes; i++) {
        const run before = slice(&s->all, first, ends[i - 1]);
        const run r = slice(&s->all, ends[i - 1], ends[i]);
        ends[i - 1] += count_of_before(&before, &r);
        first = ends[i - 1];
    }
    first = 0;
    const uint32_t last = fit->n_regimes - 1, begins = last > 0 ? ends[last - 1] : 0;
    const run range = slice(&s->all, begins, ends[last]);
    const uint32_t end = begins + find_end(&range);
    if (end < ends[last]) {
        ends[fit->n_regimes++] = ends[last];
        ends[last] = end;
    }
    for (uint32_t i = 0; i < fit->n_regimes; i++) {
        const run r = slice(&s->all, first, ends[i]);
        fit->regimes[i] = finish_regime(&r);
        first = ends[i];
    }
    fit->regimes[0].from = 0;
    double squares = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < fit->n_regimes; i++) {
        const cs_cost_regime *r = &fit->regimes[i];
        squares += r->error * r->error * (r->points - r->outliers);
        kept += r->points - r->outliers;
    }
    fit->error = kept > 0 ? sqrt(squares / kept) : 0;
}

cs_status cs_fit_regimes(const cs_cost_point *points, uint32_t n, uint32_t most, cs_fit *fit,
                         cs_error *error)
{
    search s = {0};
    cs_fit made = {0};
    CS_TRY(check(points, n, error));
    most = most < 1 ? 1 : most > CS_FIT_REGIMES_MAX ? CS_FIT_REGIMES_MAX : most;
    double *values = calloc(COLUMNS * (size_t)n, sizeof(*values));
    const size_t row = MOST_CUTS + 2;
    uint32_t kept = 0;
    for (uint32_t i = 0; values && i < n; i++) {
        if (was_there(points, i))
            continue;
        values[kept] = (double)points[i].bytes;
        values[n + kept] = points[i].seconds;
        /* Known deviation: of a median from its interval, which contains it with probability 1 -
         * 2^(1 - n) for n samples, or with 95 % if n is large enough; and of rounding. */
        const cs_cost_point *point = &points[i];
        const double tails = fmax(ldexp(1, -(int)fmin(point->samples, 60)), tail);
        const double sigmas = point->samples > 1 ? gsl_cdf_ugaussian_Qinv(tails) : INFINITY;
        values[2 * n + kept++] =
            hypot((point->high - point->low) / (2 * sigmas), point->resolution / sqrt(12)) /
            point->seconds;
    }
    s.all = (run){values,         values + n,     values + 2 * n, values + 3 * n,
                  values + 4 * n, values + 5 * n, values + 6 * n, kept};
    s.cuts = calloc((size_t)n + 1, sizeof(*s.cuts));
    s.loss = calloc(row * row, sizeof(*s.loss));
    s.best = calloc(CS_FIT_REGIMES_MAX * row, sizeof(*s.best));
    s.from = calloc(CS_FIT_REGIMES_MAX * row, sizeof(*s.from));
    const bool ready = values && s.cuts && s.loss && s.best && s.from;
    if (ready) {
        /* Find the common noise without knowing the regimes: with this noise, short runs have the
         * expected residuals, which decrease as the noise grows. The root of chi-squared with two
         * degrees of freedom over two has the median sqrt(ln 2) = 0.8326. */
        double low = least_scale, high = greatest_scale;
        for (int i = 0; i < HALVINGS && s.all.n >= CS_FIT_RUN; i++) {
            const double middle = sqrt(low * high);
            if (local_residual(&s.all, middle) > sqrt(M_LN2))
                low = middle;
            else
                high = middle;
        }
        /* fewer points than a run have no outliers */
        set_sigma(&s.all, s.all.n >= CS_FIT_RUN ? high : greatest_scale);
        fit_all(&s, most, &made);
    }
    free((void *)(uintptr_t)s.all.bytes);
    free(s.cuts);
    free(s.loss);
    free(s.best);
    free(s.from);
    if (!ready)
        return cs_error_no_memory(error);
    *fit = made;
    return CS_OK;
}

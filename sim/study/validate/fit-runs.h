/* One factor on the times of kernels, fitted to measured runs of one device and one runtime: what a
 * user's own cluster does differently from the machines that the facts are from (clocks, power,
 * releases of libraries).
 *
 * The factor f minimises, with m the measured and t(f) the predicted step time of each run,
 *
 *     sum over the runs of (log t(f) - log m)^2 + CS_FIT_SPRING (log f)^2.
 *
 * The second term holds f to 1 with the weight of CS_FIT_SPRING runs: if the steps consist of
 * kernels only, n runs that agree move log f by n / (n + CS_FIT_SPRING) of what they ask for, so
 * few runs move it little. Gauss-Newton, with derivatives s = d log t / d log f from simulations
 * with f 5 % larger. The factor is /runtime/kernels of a scenario; `in_step` of a device is
 * equivalent.
 */
#ifndef CS_VALIDATE_FIT_RUNS_H
#define CS_VALIDATE_FIT_RUNS_H

#include "sim/study/validate/predict.h"

enum { CS_FIT_LEAST = 3, CS_FIT_SPRING = 3 };

typedef struct cs_fitted_run {
    const cs_point *point;
    double measured, before, after; /* s; predicted with f = 1 and with f */
    double left_out; /* s, predicted with f fitted to the other runs, to first order */
    double slope;    /* s = d log t / d log f */
    double kernels;  /* /runtime/kernels of the scenario, before the fit */
} cs_fitted_run;

typedef struct cs_kernel_fit {
    double factor;
    char device[256], runtime[256]; /* as scenarios of the runs name them */
    uint32_t n;
    cs_fitted_run *runs;
    double mean_before, mean_after, mean_left_out; /* means of |predicted / measured - 1| */
} cs_kernel_fit;

/* Zeroed fits can be finished. */
void cs_kernel_fit_finish(cs_kernel_fit *fit);

/* Fits to `n` points, each with `change` (NULL: none), in `jobs` threads. CS_USAGE: fewer than
 * CS_FIT_LEAST runs; a run without a measured time, or that cannot be predicted; several devices or
 * runtimes; two runs of equal scenarios whose times differ by more than a quarter; or no time that
 * depends on kernels. CS_INTERRUPTED, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_kernel_fit_make(const cs_point *const *points, uint32_t n,
                                           const cs_scenario_change *change, uint32_t jobs,
                                           const cs_progress *progress, cs_kernel_fit *fit,
                                           cs_error *error);

/* A file with the factor (facts/README.md): a device that is like the runs' device, or a runtime
 * that is like their runtime. `points` names their file. CS_USAGE: the scenarios of the runs have
 * different values of /runtime/kernels, which one runtime cannot have. CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_kernel_fit_write_device(const cs_kernel_fit *fit, const char *points,
                                                   const char *path, cs_error *error);
CS_MUST_CHECK cs_status cs_kernel_fit_write_runtime(const cs_kernel_fit *fit, const char *points,
                                                    const char *path, cs_error *error);

#endif

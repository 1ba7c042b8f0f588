/* One factor on the times of kernels, fitted to measured runs of one device and one runtime. It
 * captures how a user's own cluster differs from the machines whose measurements the facts contain
 * (clocks, power, library versions).
 *
 * The factor f minimises, with the measured step time m and the predicted step time t(f) of each
 * run,
 *
 *     sum over the runs of (log t(f) - log m)^2 + CS_FIT_SPRING (log f)^2.
 *
 * The second term pulls f towards 1 with the weight of CS_FIT_SPRING runs. If the steps consist of
 * kernels only, n runs that agree on a value move log f by n / (n + CS_FIT_SPRING) of that value,
 * so few runs move it little. The fit uses Gauss-Newton steps, with derivatives s = d log t / d log
 * f from simulations with f 5 % larger. The factor is /runtime/kernels of a scenario; `in_step` of
 * a device is equivalent.
 */
#ifndef CS_VALIDATE_FIT_RUNS_H
#define CS_VALIDATE_FIT_RUNS_H

#include "sim/study/validate/predict.h"

enum { CS_FIT_LEAST = 3, CS_FIT_SPRING = 3 };

typedef struct cs_fitted_run {
    const cs_point *point;
    /* s; `before` is predicted with f = 1, `after` with the fitted f */
    double measured, before, after;
    double left_out; /* s; predicted with f fitted to the other runs, to first order */
    double slope;    /* sensitivity s = d log t / d log f */
    double kernels;  /* /runtime/kernels of the scenario, before the fit */
} cs_fitted_run;

typedef struct cs_kernel_fit {
    double factor;
    char device[256], runtime[256]; /* names of device and runtime in the scenarios of the runs */
    uint32_t n;
    cs_fitted_run *runs;
    double mean_before, mean_after, mean_left_out; /* means of |predicted / measured - 1| */
} cs_kernel_fit;

/* Allowed on a zeroed struct. */
void cs_kernel_fit_finish(cs_kernel_fit *fit);

/* Fits the factor to `n` points, each with `change` (NULL: none), in `jobs` threads. CS_USAGE if
 * there are fewer than CS_FIT_LEAST runs; if a run has no measured time, or cannot be predicted; if
 * there are several devices or runtimes; if the times of two runs of equal scenarios differ by more
 * than a quarter; or if no time depends on kernels. CS_INTERRUPTED, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_kernel_fit_make(const cs_point *const *points, uint32_t n,
                                           const cs_scenario_change *change, uint32_t jobs,
                                           const cs_progress *progress, cs_kernel_fit *fit,
                                           cs_error *error);

/* Write a file with the factor (facts/README.md): a device based on the runs' device, or a runtime
 * based on their runtime. `points` is the name of the points' file. CS_USAGE if the scenarios of
 * the runs have different values of /runtime/kernels, because one runtime cannot have several.
 * CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_kernel_fit_write_device(const cs_kernel_fit *fit, const char *points,
                                                   const char *path, cs_error *error);
CS_MUST_CHECK cs_status cs_kernel_fit_write_runtime(const cs_kernel_fit *fit, const char *points,
                                                    const char *path, cs_error *error);

#endif

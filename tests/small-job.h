/* Jobs given by a few numbers, and the whole way from a job to its figures: schedule, lowering,
 * engine, analysis, closed forms. For tests of schedules: a layer per stage, nothing is read from
 * files. */
#ifndef CS_TESTS_SMALL_JOB_H
#define CS_TESTS_SMALL_JOB_H

#include "schedules/schedule.h"
#include "sim/core/analysis/analysis.h"
#include "sim/core/lower/lower.h"
#include "topologies/platform.h"

typedef struct small_job {
    const char *schedule, *topology;
    uint32_t n_devices;
    uint32_t n_layers;      /* number of layers of a pipeline: stage s is layer s, with n_devices
                             * stages unless `devices` gives more; with a grid: this many per
                             * stage */
    const cs_layer *layers; /* per micro-batch; names are not needed */
    uint32_t micro_batches, iterations;
    int64_t bucket;          /* for dp */
    uint32_t backward_order; /* for gpipe */
    bool recompute;
    bool blocking;
    cs_sharing sharing;
    double phi;       /* 0: 1 */
    double bandwidth; /* where the topology has one */
    cs_time latency;
    const double *speeds;    /* per device; NULL: all 1 */
    const uint32_t *devices; /* per stage; NULL: 0, 1, 2, ... */
    double optimizer_ratio;
    /* With a grid, its places are the devices of a rank, in order: stage s is on rank s mod ranks,
     * with as many ranks as n_devices allow. */
    const cs_grid *grid;
    cs_states states;
    uint32_t n_stages;
    const uint32_t *stands_for;       /* see cs_job */
    const cs_lower_options *lowering; /* NULL: cs_lower */
} small_job;

typedef struct small_run {
    cs_model model;
    cs_platform platform;
    cs_plan plan;
    cs_layer_sum *sums;
    double *speeds;
    cs_job job;
    cs_graph graph;          /* lowered */
    cs_lower_report lowered; /* with `lowering` */
    cs_trace trace;
    cs_analysis analysis;
    cs_forms forms;
} small_run;

/* A run that failed can be finished as well. */
CS_MUST_CHECK cs_status small_run_init(small_run *run, const small_job *given, cs_error *error);
void small_run_finish(small_run *run);

/* The job in one line, to name a failing one. Returns `text`. */
char *small_job_describe(const small_job *given, char *text, size_t size);

#endif

/* libclustersim: the simulator of the program `sim`, for other programs.
 *
 *     clustersim_scenario *scenario;
 *     clustersim_result *result;
 *     clustersim_error *error = NULL;
 *     if (clustersim_scenario_load("gpipe.json", NULL, 0, &scenario, &error) == CLUSTERSIM_OK &&
 *         clustersim_run(scenario, NULL, &result, &error) == CLUSTERSIM_OK)
 *         printf("%g s\n", clustersim_result_value(result, "iteration_time_s"));
 *
 * Scenarios are those of `sim run`, and so are their results: the same scenario and seed give the
 * same bits.
 *
 * Failures. A function that can fail returns a status and, where `error` is not NULL, stores a new
 * record of what is wrong in *error, which the caller frees; it stores NULL on success and where
 * memory has run out. Other outputs are written on success only. The library does not print.
 *
 * Threads. Any function may be called by several threads at once. Scenarios and results do not
 * change once they are made, so threads may share them; who frees one has to know that nobody uses
 * it any more. Results do not refer to their scenario. The solver CBC, which two planners use,
 * keeps global state: these planners wait for each other. Scenarios with noise use the GSL, whose
 * error handler ends the program when memory runs out, unless the program has called
 * gsl_set_error_handler_off().
 */
#ifndef CLUSTERSIM_H
#define CLUSTERSIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLUSTERSIM_API __attribute__((visibility("default")))

/* "0.1.0" */
CLUSTERSIM_API const char *clustersim_version(void);

/* ---- failures ---- */

typedef enum clustersim_status {
    CLUSTERSIM_OK = 0,
    CLUSTERSIM_FAILED = 1,    /* the simulation failed */
    CLUSTERSIM_NO_MEMORY = 2, /* of this machine */
    CLUSTERSIM_IO = 3,        /* input or output failed */
    CLUSTERSIM_OVERFLOW = 4,  /* a time or a size does not fit 64 bits */
    CLUSTERSIM_INVALID = 5, /* the scenario, or a file that it names, is wrong or cannot be read */
    CLUSTERSIM_LIMIT = 6,   /* no plan fits the devices */
    CLUSTERSIM_INTERRUPTED = 7, /* by `progress` */
} clustersim_status;

/* One message: what is wrong, and what would be right. */
typedef struct clustersim_message {
    const char *file;    /* or NULL */
    const char *pointer; /* JSON pointer of the place in it, or NULL */
    const char *text;
} clustersim_message;

typedef struct clustersim_error clustersim_error;

/* Messages, in the order in which they were found; they belong to the record. Counting NULL gives
 * 0. `i` must be less than the number. */
CLUSTERSIM_API size_t clustersim_error_count(const clustersim_error *error);
CLUSTERSIM_API clustersim_message clustersim_error_message(const clustersim_error *error, size_t i);
CLUSTERSIM_API void clustersim_error_free(clustersim_error *error); /* takes NULL */

/* ---- scenarios ---- */

typedef struct clustersim_scenario clustersim_scenario;

/* A change before the scenario is read, like `--set` of `sim run`: {"/schedule/micro_batches",
 * "8"}. The value is JSON; other text is taken as a string. */
typedef struct clustersim_change {
    const char *pointer, *value;
} clustersim_change;

/* Reads a scenario with `n` changes, from a file or from a text. `name` stands for the text in
 * messages; files that the scenario names are looked for in the folder of `name`. */
CLUSTERSIM_API clustersim_status clustersim_scenario_load(const char *path,
                                                          const clustersim_change *changes,
                                                          size_t n, clustersim_scenario **scenario,
                                                          clustersim_error **error);
CLUSTERSIM_API clustersim_status clustersim_scenario_parse(const char *name, const char *text,
                                                           const clustersim_change *changes,
                                                           size_t n, clustersim_scenario **scenario,
                                                           clustersim_error **error);

/* JSON: the scenario with every default written out. It belongs to the scenario. */
CLUSTERSIM_API const char *clustersim_scenario_resolved(const clustersim_scenario *scenario);

/* What is valid and hardly meant; NULL: nothing. It belongs to the scenario. */
CLUSTERSIM_API const clustersim_error *clustersim_scenario_warnings(
    const clustersim_scenario *scenario);
CLUSTERSIM_API void clustersim_scenario_free(clustersim_scenario *scenario); /* takes NULL */

/* ---- running ---- */

typedef struct clustersim_options {
    size_t size; /* sizeof(clustersim_options): later versions may add members at the end */
    uint64_t seed_offset; /* the seed of the run is that of the scenario plus this */
    int stop_on_oom;      /* not 0: the run ends at the first allocation beyond a capacity */
    /* Called now and then by the thread that runs, if it is not NULL: returns 0 to stop the run. */
    int (*progress)(void *context, const char *what, uint64_t done, uint64_t total);
    void *context;
} clustersim_options;

typedef struct clustersim_result clustersim_result;

/* Simulates. `options` NULL: all of them 0. */
CLUSTERSIM_API clustersim_status clustersim_run(const clustersim_scenario *scenario,
                                                const clustersim_options *options,
                                                clustersim_result **result,
                                                clustersim_error **error);
CLUSTERSIM_API void clustersim_result_free(clustersim_result *result); /* takes NULL */

/* ---- results ---- */

/* Two runs with the same hash gave the same result. It is the hash that `sim run` prints. */
CLUSTERSIM_API uint64_t clustersim_result_hash(const clustersim_result *result);

/* A figure of the run. Keys are those of `sim run --json`. */
typedef struct clustersim_figure {
    const char *key;
    const char *label; /* for people */
    const char *unit;  /* "s", "bytes", "samples/s", ...; "1" of numbers, fractions, booleans */
    double value;      /* NaN: not known; a boolean is 0 or 1; of a device's figure the largest */
} clustersim_figure;

/* All figures that the run has; returns their number. */
CLUSTERSIM_API size_t clustersim_result_figures(const clustersim_result *result,
                                                const clustersim_figure **figures);

/* One of them, or NULL. */
CLUSTERSIM_API const clustersim_figure *clustersim_result_figure(const clustersim_result *result,
                                                                 const char *key);

/* The value of one of them, NaN where the run does not have it. */
CLUSTERSIM_API double clustersim_result_value(const clustersim_result *result, const char *key);

/* Of a device: "peak_memory_bytes", "peak_activation_bytes"; NaN for other keys and devices. */
CLUSTERSIM_API uint32_t clustersim_result_devices(const clustersim_result *result);
CLUSTERSIM_API double clustersim_result_device_value(const clustersim_result *result,
                                                     uint32_t device, const char *key);

/* No device, no micro-batch. */
#define CLUSTERSIM_NONE UINT32_MAX

/* The tasks of the run, as columns of `n` values each. */
typedef struct clustersim_tasks {
    size_t n;
    const int64_t *start, *end; /* ps; -1: it did not start, or end, before the run was stopped */
    const uint32_t *device;     /* where it computes, or sends from */
    const uint32_t *peer;       /* receiver of a transfer, or CLUSTERSIM_NONE */
    const uint32_t *stage;
    const uint32_t *mini_batch, *micro_batch; /* from 0 */
    const uint32_t *kind;                     /* clustersim_kind_name */
} clustersim_tasks;

/* Memory over time: from `time` on there are so many live bytes of a category on a device, until
 * the next sample of both. In order of time, then of device. */
typedef struct clustersim_memory {
    size_t n;
    const int64_t *time; /* ps */
    const int64_t *bytes;
    const uint32_t *device;
    const uint32_t *category; /* clustersim_category_name */
} clustersim_memory;

/* The columns belong to the result. */
CLUSTERSIM_API clustersim_tasks clustersim_result_tasks(const clustersim_result *result);
CLUSTERSIM_API clustersim_memory clustersim_result_memory(const clustersim_result *result);

/* "forward", "transfer", ...; "weights", "activations", ...; NULL for a number that no result has.
 */
CLUSTERSIM_API const char *clustersim_kind_name(uint32_t kind);
CLUSTERSIM_API const char *clustersim_category_name(uint32_t category);

#ifdef __cplusplus
}
#endif

#endif

/* libclustersim: the simulator of the program `sim`, for other programs.
 *
 *     clustersim_scenario *scenario;
 *     clustersim_result *result;
 *     clustersim_error *error = NULL;
 *     if (clustersim_scenario_load("gpipe.json", NULL, 0, &scenario, &error) == CLUSTERSIM_OK &&
 *         clustersim_run(scenario, NULL, &result, &error) == CLUSTERSIM_OK)
 *         printf("%g s\
 * ", clustersim_result_value(result, "iteration_time_s"));
 *
 * Scenarios and results are the same as with `sim run`: equal scenarios and seeds give bit-for-bit
 * equal results. Sweeps and searches for plans are the same as with `sim sweep` and `sim advise`.
 *
 * Failures. A function that can fail returns a status and, if `error` is not NULL, stores a new
 * record of the failure in *error, which the caller frees; it stores NULL on success and if memory
 * has run out. Other outputs are written on success only. The library does not print. If an
 * argument is NULL that must not be, the function returns CLUSTERSIM_INVALID; functions that cannot
 * fail accept NULL for a scenario, a result, an error or a key, and return 0, NaN or NULL.
 *
 * Threads. Any function may be called by several threads at once. Scenarios and results never
 * change, so threads may share them; free one only when no thread uses it any more. Results do not
 * refer to their scenario. The solver CBC, which two planners use, keeps global state: these
 * planners wait for each other. Saving calls HDF5: if threads call it at the same time, here or
 * elsewhere, it must be built thread-safe, as Debian's is. Scenarios with noise use the GSL, whose
 * error handler ends the program if memory runs out, unless the program has called
 * gsl_set_error_handler_off().
 *
 * Locale. Numbers in texts and messages have decimal points in every locale; `progress` and other
 * functions of the program are called with the C locale set for their thread (uselocale).
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
    CLUSTERSIM_FAILED = 1,    /* the simulation failed; sweeps: at all points */
    CLUSTERSIM_NO_MEMORY = 2, /* this machine ran out of memory */
    CLUSTERSIM_IO = 3,        /* input or output failed */
    CLUSTERSIM_OVERFLOW = 4,  /* a time or a size does not fit 64 bits */
    CLUSTERSIM_INVALID = 5, /* the scenario, or a file that it names, is wrong or cannot be read */
    CLUSTERSIM_LIMIT = 6,   /* no plan fits the devices */
    CLUSTERSIM_INTERRUPTED = 7, /* `progress` or `stop` ended the call */
} clustersim_status;

/* One message: the error and the remedy. */
typedef struct clustersim_message {
    const char *file;    /* NULL: no file */
    const char *pointer; /* JSON pointer into the file, or NULL */
    const char *text;
} clustersim_message;

typedef struct clustersim_error clustersim_error;

/* Messages in order of discovery; they belong to the record. The count of NULL is
 * 0. If `i` is out of range, the message's text is NULL. */
CLUSTERSIM_API size_t clustersim_error_count(const clustersim_error *error);
CLUSTERSIM_API clustersim_message clustersim_error_message(const clustersim_error *error, size_t i);
CLUSTERSIM_API void clustersim_error_free(clustersim_error *error); /* accepts NULL */

/* ---- scenarios ---- */

typedef struct clustersim_scenario clustersim_scenario;

/* A change applied before the scenario is read, like `--set` of `sim run`:
 * {"/schedule/micro_batches", "8"}. The value is parsed as JSON, or else taken as a string. */
typedef struct clustersim_change {
    const char *pointer, *value;
} clustersim_change;

/* Reads a scenario with `n` changes, from a file or a text. `name` is the text's name in messages,
 * and files that the scenario names are relative to the folder of `name`. NULL: "scenario", in the
 * current folder. */
CLUSTERSIM_API clustersim_status clustersim_scenario_load(const char *path,
                                                          const clustersim_change *changes,
                                                          size_t n, clustersim_scenario **scenario,
                                                          clustersim_error **error);
CLUSTERSIM_API clustersim_status clustersim_scenario_parse(const char *name, const char *text,
                                                           const clustersim_change *changes,
                                                           size_t n, clustersim_scenario **scenario,
                                                           clustersim_error **error);

/* A scenario that has not been read. */
typedef struct clustersim_source {
    const char *path; /* path of the file; for a text: its name, as above */
    const char *text; /* JSON; NULL: read the file */
    const clustersim_change *changes;
    size_t n_changes;
} clustersim_source;

/* Reads the source. Uses the options `progress` and `stop`, because planners may take long. NULL:
 * none. */
typedef struct clustersim_options clustersim_options;
CLUSTERSIM_API clustersim_status clustersim_scenario_read(const clustersim_source *source,
                                                          const clustersim_options *options,
                                                          clustersim_scenario **scenario,
                                                          clustersim_error **error);

/* Returns the scenario with all defaults, as JSON. It belongs to the scenario. */
CLUSTERSIM_API const char *clustersim_scenario_resolved(const clustersim_scenario *scenario);

/* Warnings about valid but implausible values; NULL: none. They belong to the scenario. */
CLUSTERSIM_API const clustersim_error *clustersim_scenario_warnings(
    const clustersim_scenario *scenario);
CLUSTERSIM_API void clustersim_scenario_free(clustersim_scenario *scenario); /* accepts NULL */

/* ---- running ---- */

struct clustersim_options {
    size_t size;          /* sizeof(clustersim_options): later versions may append members */
    uint64_t seed_offset; /* added to the scenario's seed */
    /* not 0: end the run at the first allocation beyond a device's capacity */
    int stop_on_oom;
    /* Called now and then by the running thread, unless NULL: returns 0 to stop the run. */
    int (*progress)(void *context, const char *what, uint64_t done, uint64_t total);
    void *context;
    /* Polled equally often, unless NULL: the run stops soon after the int becomes nonzero. Another
     * thread or a signal handler may set it. */
    const volatile int *stop;
    int figures_only; /* not 0: the result has only metrics, no columns, attributes, texts */
    uint32_t jobs;    /* threads of a sweep or a search; 0: one per processor */
};

typedef struct clustersim_result clustersim_result;

/* Simulates the scenario. `options` NULL: all 0. */
CLUSTERSIM_API clustersim_status clustersim_run(const clustersim_scenario *scenario,
                                                const clustersim_options *options,
                                                clustersim_result **result,
                                                clustersim_error **error);
CLUSTERSIM_API void clustersim_result_free(clustersim_result *result); /* accepts NULL */

/* Keys that a sweep varies: `pointer` takes the values listed in `value`, in the syntax of `sim
 * sweep --vary`: "1,2,4", "2..32", "\"gpipe\",\"1f1b\"". */
typedef struct clustersim_vary {
    const clustersim_change *keys;
    size_t n;        /* 0: use the scenario's own section "sweep" */
    int together;    /* not 0: vary all keys together (first values, second values, ...) */
    const char *csv; /* instead of keys: a file of points; or NULL */
} clustersim_vary;

/* Simulates a scenario at many points, in threads. A point that fails is a row with a message; only
 * if all fail the status is CLUSTERSIM_FAILED. The result has no hash, devices, tasks and metrics,
 * but columns and attributes, as in the file written by `sim sweep -o`. `vary` NULL: all 0. Ignores
 * the options seed_offset, stop_on_oom and figures_only. */
CLUSTERSIM_API clustersim_status clustersim_sweep(const clustersim_source *source,
                                                  const clustersim_vary *vary,
                                                  const clustersim_options *options,
                                                  clustersim_result **result,
                                                  clustersim_error **error);

typedef struct clustersim_search {
    size_t size;    /* sizeof(clustersim_search) */
    uint32_t top;   /* plans to rank and examine; 0: 10 */
    uint32_t most;  /* most plans to simulate, the most promising first; 0: no limit */
    double budget;  /* s until the search ends; 0: no limit */
    int exhaustive; /* not 0: do not prune plans that cannot be better */
} clustersim_search;

/* Searches for the best plans to train the scenario's model on its platform. The result has the
 * columns and attributes of the file written by `sim advise -o`, and clustersim_result_json has the
 * ranked plans. `search` NULL: all 0. Options as for sweeps. */
CLUSTERSIM_API clustersim_status clustersim_advise(const clustersim_source *source,
                                                   const clustersim_search *search,
                                                   const clustersim_options *options,
                                                   clustersim_result **result,
                                                   clustersim_error **error);

/* ---- results ---- */

/* Hash of the result, as printed by `sim run`: runs with the same hash gave the same result. */
CLUSTERSIM_API uint64_t clustersim_result_hash(const clustersim_result *result);

/* A metric of the run. Keys are those in `sim run --json`. */
typedef struct clustersim_figure {
    const char *key;
    const char *label; /* for users */
    const char *unit;  /* "s", "bytes", "samples/s", ...; "1": numbers, fractions, booleans */
    double value;      /* NaN: unknown; boolean: 0 or 1; per-device metric: the largest */
} clustersim_figure;

/* Returns all metrics of the run and their number. */
CLUSTERSIM_API size_t clustersim_result_figures(const clustersim_result *result,
                                                const clustersim_figure **figures);

/* Returns a metric, or NULL. */
CLUSTERSIM_API const clustersim_figure *clustersim_result_figure(const clustersim_result *result,
                                                                 const char *key);

/* Returns the value of a metric; NaN if the run does not have it. */
CLUSTERSIM_API double clustersim_result_value(const clustersim_result *result, const char *key);

/* Number of devices, and a device's "peak_memory_bytes" or "peak_activation_bytes"; NaN for other
 * keys and devices. */
CLUSTERSIM_API uint32_t clustersim_result_devices(const clustersim_result *result);
CLUSTERSIM_API double clustersim_result_device_value(const clustersim_result *result,
                                                     uint32_t device, const char *key);

/* No device or micro-batch. */
#define CLUSTERSIM_NONE UINT32_MAX

/* Tasks of the run, as columns of `n` values each. */
typedef struct clustersim_tasks {
    size_t n;
    const int64_t *start, *end; /* ps; -1: did not start, or end, before the run was stopped */
    const uint32_t *device;     /* the device that computes or sends */
    const uint32_t *peer;       /* receiver of a transfer; CLUSTERSIM_NONE: none */
    const uint32_t *stage;
    const uint32_t *mini_batch, *micro_batch; /* from 0 */
    const uint32_t *kind;                     /* clustersim_kind_name */
} clustersim_tasks;

/* Memory over time: live bytes of a category on a device from `time` until the next sample with the
 * same device and category. Ordered by time, then by device. */
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

/* "forward", "transfer", ...; "weights", "activations", ...; NULL: no such number. */
CLUSTERSIM_API const char *clustersim_kind_name(uint32_t kind);
CLUSTERSIM_API const char *clustersim_category_name(uint32_t category);

/* ---- complete contents of results files ---- */

typedef enum clustersim_type {
    CLUSTERSIM_INT64 = 0,
    CLUSTERSIM_UINT32 = 1,
    CLUSTERSIM_UINT8 = 2,
    CLUSTERSIM_DOUBLE = 3,
    CLUSTERSIM_TEXT = 4, /* const char *, UTF-8 */
    CLUSTERSIM_UINT64 = 5,
} clustersim_type;

/* A column of a table, or an array with several dimensions. docs/reference/results-file.md
 * describes the contents of a run, docs/how-to/sweeps.md of a sweep, docs/how-to/find-a-plan.md of
 * a search. */
typedef struct clustersim_column {
    const char *table; /* "tasks", "memory", "links", "plans", ...; sweeps: "/" */
    const char *name;  /* "start" */
    const char *units; /* "ps", "bytes", "bytes/s", ...; "1": no unit */
    const char *label; /* for users */
    clustersim_type type;
    size_t n;
    const void *values;
    /* Coded column: meanings of 0, 1, ..., NULL-terminated; otherwise NULL. */
    const char *const *words;
    int optional; /* CLUSTERSIM_NONE means no value */
    /* Columns of the same table with the positions along each dimension; the last dimension varies
     * fastest. n is the product of their n. NULL-terminated; for a column of a table: the table's
     * first column. */
    const char *const *dimensions;
} clustersim_column;

/* Returns the columns in the order of the file, and their number. They belong to the result. */
CLUSTERSIM_API size_t clustersim_result_columns(const clustersim_result *result,
                                                const clustersim_column **columns);

/* An attribute of the whole file: "name", "schedule", "hash", "makespan", ... */
typedef struct clustersim_attribute {
    const char *name;
    clustersim_type type;
    union {
        int64_t int64;
        uint64_t uint64;
        double float64;
        const char *text;
    } value;
} clustersim_attribute;

CLUSTERSIM_API size_t clustersim_result_attributes(const clustersim_result *result,
                                                   const clustersim_attribute **attributes);

/* Text that the command prints, for users; NULL with figures_only. It belongs to the result. */
CLUSTERSIM_API const char *clustersim_result_text(const clustersim_result *result);

/* Search: the object that `sim advise --json` prints; NULL for other results. It belongs to the
 * result. */
CLUSTERSIM_API const char *clustersim_result_json(const clustersim_result *result);

/* Writes the results file, HDF5, identical to the command's. It appears complete or not at all.
 * CLUSTERSIM_INVALID with figures_only. Uses the options `progress` and `stop`. */
CLUSTERSIM_API clustersim_status clustersim_result_save(const clustersim_result *result,
                                                        const char *path,
                                                        const clustersim_options *options,
                                                        clustersim_error **error);

#ifdef __cplusplus
}
#endif

#endif

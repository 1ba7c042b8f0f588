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
 * same bits. Sweeps and searches for plans are those of `sim sweep` and `sim advise`.
 *
 * Failures. A function that can fail returns a status and, where `error` is not NULL, stores a new
 * record of what is wrong in *error, which the caller frees; it stores NULL on success and where
 * memory has run out. Other outputs are written on success only. The library does not print. An
 * argument that must not be NULL and is leads to CLUSTERSIM_INVALID; functions that cannot fail take
 * NULL for a scenario, a result, an error or a key, and return 0, NaN or NULL.
 *
 * Threads. Any function may be called by several threads at once. Scenarios and results do not
 * change once they are made, so threads may share them; who frees one has to know that nobody uses
 * it any more. Results do not refer to their scenario. The solver CBC, which two planners use,
 * keeps global state: these planners wait for each other. Saving calls HDF5: for threads that call
 * it at once, here or elsewhere, it has to be built thread-safe, as Debian's is. Scenarios with
 * noise use the GSL, whose error handler ends the program when memory runs out, unless the program
 * has called gsl_set_error_handler_off().
 *
 * Locale. Numbers in texts and messages have decimal points, whatever locale the program has
 * chosen; `progress` and other functions of the program are called with the C locale set for their
 * thread
 * (uselocale).
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
    CLUSTERSIM_FAILED = 1,    /* the simulation failed; of a sweep: at all points */
    CLUSTERSIM_NO_MEMORY = 2, /* of this machine */
    CLUSTERSIM_IO = 3,        /* input or output failed */
    CLUSTERSIM_OVERFLOW = 4,  /* a time or a size does not fit 64 bits */
    CLUSTERSIM_INVALID = 5, /* the scenario, or a file that it names, is wrong or cannot be read */
    CLUSTERSIM_LIMIT = 6,   /* no plan fits the devices */
    CLUSTERSIM_INTERRUPTED = 7, /* by `progress`, or by `stop` */
} clustersim_status;

/* One message: what is wrong, and what would be right. */
typedef struct clustersim_message {
    const char *file;    /* or NULL */
    const char *pointer; /* JSON pointer of the place in it, or NULL */
    const char *text;
} clustersim_message;

typedef struct clustersim_error clustersim_error;

/* Messages, in the order in which they were found; they belong to the record. Counting NULL gives
 * 0. The message of a number that there is not has NULL for its text. */
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
 * messages; files that the scenario names are looked for in the folder of `name`. NULL: "scenario",
 * in the current folder. */
CLUSTERSIM_API clustersim_status clustersim_scenario_load(const char *path,
                                                          const clustersim_change *changes,
                                                          size_t n, clustersim_scenario **scenario,
                                                          clustersim_error **error);
CLUSTERSIM_API clustersim_status clustersim_scenario_parse(const char *name, const char *text,
                                                           const clustersim_change *changes,
                                                           size_t n, clustersim_scenario **scenario,
                                                           clustersim_error **error);

/* A scenario that is not read yet. */
typedef struct clustersim_source {
    const char *path; /* of the file; of a text: the name that stands for it, as above */
    const char *text; /* JSON; NULL: the file is read */
    const clustersim_change *changes;
    size_t n_changes;
} clustersim_source;

/* Reads it. Of the options `progress` and `stop` count: planners may take long. NULL: none. */
typedef struct clustersim_options clustersim_options;
CLUSTERSIM_API clustersim_status clustersim_scenario_read(const clustersim_source *source,
                                                          const clustersim_options *options,
                                                          clustersim_scenario **scenario,
                                                          clustersim_error **error);

/* JSON: the scenario with every default written out. It belongs to the scenario. */
CLUSTERSIM_API const char *clustersim_scenario_resolved(const clustersim_scenario *scenario);

/* What is valid and hardly meant; NULL: nothing. It belongs to the scenario. */
CLUSTERSIM_API const clustersim_error *clustersim_scenario_warnings(
    const clustersim_scenario *scenario);
CLUSTERSIM_API void clustersim_scenario_free(clustersim_scenario *scenario); /* takes NULL */

/* ---- running ---- */

struct clustersim_options {
    size_t size; /* sizeof(clustersim_options): later versions may add members at the end */
    uint64_t seed_offset; /* the seed of the run is that of the scenario plus this */
    int stop_on_oom;      /* not 0: the run ends at the first allocation beyond a capacity */
    /* Called now and then by the thread that runs, if it is not NULL: returns 0 to stop the run. */
    int (*progress)(void *context, const char *what, uint64_t done, uint64_t total);
    void *context;
    /* Looked at as often, if it is not NULL: the run stops soon after the int is not 0 any more.
     * Another thread or a signal handler may set it. */
    const volatile int *stop;
    int figures_only; /* not 0: the result has figures alone, no columns, attributes, texts */
    uint32_t jobs;    /* threads of a sweep or a search; 0: as many as there are processors */
};

typedef struct clustersim_result clustersim_result;

/* Simulates. `options` NULL: all of them 0. */
CLUSTERSIM_API clustersim_status clustersim_run(const clustersim_scenario *scenario,
                                                const clustersim_options *options,
                                                clustersim_result **result,
                                                clustersim_error **error);
CLUSTERSIM_API void clustersim_result_free(clustersim_result *result); /* takes NULL */

/* What a sweep varies: `pointer` takes the values that `value` lists as `sim sweep --vary` takes
 * them, "1,2,4", "2..32", "\"gpipe\",\"1f1b\"". */
typedef struct clustersim_vary {
    const clustersim_change *keys;
    size_t n;        /* 0: the scenario's own section "sweep" says it all */
    int together;    /* not 0: the first values of all keys, then the second ones, ... */
    const char *csv; /* in place of keys: a file of points; or NULL */
} clustersim_vary;

/* Simulates a scenario at many points, in threads. A point that fails is a row with a message; only
 * where all fail it is CLUSTERSIM_FAILED. The result has no hash, devices, tasks and figures, but
 * columns and attributes, as in the file that `sim sweep -o` writes. `vary` NULL: all of it 0. Of
 * the options all but seed_offset, stop_on_oom and figures_only count. */
CLUSTERSIM_API clustersim_status clustersim_sweep(const clustersim_source *source,
                                                  const clustersim_vary *vary,
                                                  const clustersim_options *options,
                                                  clustersim_result **result,
                                                  clustersim_error **error);

typedef struct clustersim_search {
    size_t size;    /* sizeof(clustersim_search) */
    uint32_t top;   /* plans to rank and to examine; 0: 10 */
    uint32_t most;  /* plans to simulate at most, the most promising first; 0: no limit */
    double budget;  /* s, after which the search ends; 0: none */
    int exhaustive; /* not 0: also plans that cannot be better */
} clustersim_search;

/* Searches for the best plans to train the scenario's model on its platform. The result has the
 * columns and attributes of the file that `sim advise -o` writes, and clustersim_result_json has
 * the plans that are ranked. `search` NULL: all of it 0. Options as of sweeps. */
CLUSTERSIM_API clustersim_status clustersim_advise(const clustersim_source *source,
                                                   const clustersim_search *search,
                                                   const clustersim_options *options,
                                                   clustersim_result **result,
                                                   clustersim_error **error);

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

/* ---- all that results files have ---- */

typedef enum clustersim_type {
    CLUSTERSIM_INT64 = 0,
    CLUSTERSIM_UINT32 = 1,
    CLUSTERSIM_UINT8 = 2,
    CLUSTERSIM_DOUBLE = 3,
    CLUSTERSIM_TEXT = 4, /* const char *, UTF-8 */
    CLUSTERSIM_UINT64 = 5,
} clustersim_type;

/* A column of a table, or an array of several dimensions. docs/reference/results-file.md tells what
 * there is of a run, docs/how-to/sweeps.md of a sweep, docs/how-to/find-a-plan.md of a search. */
typedef struct clustersim_column {
    const char *table; /* "tasks", "memory", "links", "plans", ...; "/": of sweeps */
    const char *name;  /* "start" */
    const char *units; /* "ps", "bytes", "bytes/s", ...; "1" where there is none */
    const char *label; /* for people */
    clustersim_type type;
    size_t n;
    const void *values;
    /* Of a coded column: what 0, 1, ... stand for, ended by NULL; else NULL. */
    const char *const *words;
    int optional; /* CLUSTERSIM_NONE means no value */
    /* Columns of the same table that number, or are, the positions along each dimension, the last
     * one's following each other: n is the product of their n. Ended by NULL; of a table's columns
     * its first column alone, which is its own. */
    const char *const *dimensions;
} clustersim_column;

/* In the order of the file; returns their number. They belong to the result. */
CLUSTERSIM_API size_t clustersim_result_columns(const clustersim_result *result,
                                                const clustersim_column **columns);

/* Of the file as a whole: "name", "schedule", "hash", "makespan", ... */
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

/* For people: what the command prints of it. NULL with figures_only. It belongs to the result. */
CLUSTERSIM_API const char *clustersim_result_text(const clustersim_result *result);

/* Of a search: the object that `sim advise --json` prints; NULL of others. It belongs to the
 * result. */
CLUSTERSIM_API const char *clustersim_result_json(const clustersim_result *result);

/* Writes the results file, HDF5: equal, byte by byte, to the command's. It appears whole or not at
 * all. CLUSTERSIM_INVALID with figures_only. Of the options `progress` and `stop` count. */
CLUSTERSIM_API clustersim_status clustersim_result_save(const clustersim_result *result,
                                                        const char *path,
                                                        const clustersim_options *options,
                                                        clustersim_error **error);

#ifdef __cplusplus
}
#endif

#endif

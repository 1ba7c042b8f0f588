/* Predictions of measured points, in several threads. */
#ifndef CS_VALIDATE_PREDICT_H
#define CS_VALIDATE_PREDICT_H

#include "sim/base/progress.h"
#include "sim/run/recipe/recipe.h"
#include "sim/run/step-parts.h"
#include "sim/study/sweep/journal.h"
#include "sim/study/team/team.h"
#include "sim/study/validate/points.h"

typedef enum cs_prediction_state {
    CS_PREDICTION_MADE,
    CS_PREDICTION_MISSING, /* the point requires something that the simulator does not support */
    CS_PREDICTION_FAILED,  /* its scenario was rejected, or could not be simulated */
} cs_prediction_state;

/* Names of the states, NULL-terminated: "predicted", "missing", "failed". */
extern const char *const cs_prediction_states[];

/* Quantities that are compared with measurements. */
typedef enum cs_measure {
    CS_MEASURE_TIME,      /* step time, s */
    CS_MEASURE_ALLOCATED, /* bytes: peak, compared with torch.cuda.max_memory_allocated */
    CS_MEASURE_LEAST,     /* bytes: the same for the rank with the smallest peak */
    CS_MEASURE_RESERVED,  /* bytes: peak, compared with torch.cuda.max_memory_reserved */
    CS_MEASURE_DEVICE, /* bytes: peak, compared with nvidia-smi or a measurement of unknown kind */
    CS_N_MEASURES
} cs_measure;

/* Keys of the measures: "step_time", "allocated", "least_allocated", "reserved",
 * "device_memory". */
extern const char *const cs_measure_keys[CS_N_MEASURES];

typedef struct cs_prediction {
    const cs_point *point;
    cs_prediction_state state;
    bool done;                      /* whether the result is known, or the point is unsupported */
    cs_recipe made;                 /* the scenario and its notes */
    char *message;                  /* error message if it failed; otherwise NULL */
    double values[CS_N_MEASURES];   /* predicted values; NaN: not predicted */
    double measured[CS_N_MEASURES]; /* measured values; NaN: not measured */
    cs_step_parts parts;            /* parts of the predicted step time */
    bool out_of_memory;             /* whether the run is predicted to be out of memory */
    double fits_probability;        /* see sim/run/memory-fit.h; NaN: unknown */
    /* whether the verdict depends on recomputation: the run is out of memory, but fits with full
     * recomputation, and the point does not state its recomputation */
    bool depends;
    /* measured: whether the outcome is known, and whether it was out of memory; a run with a
     * measured time fitted */
    bool knows_verdict, was_out_of_memory;
} cs_prediction;

typedef struct cs_predictions {
    uint32_t n, n_states[CS_PREDICTION_FAILED + 1]; /* n_states is set after all points are done */
    /* number of points with a scenario; number of these whose result is known */
    uint32_t n_runs, n_done;
    cs_prediction *items; /* one per point, in the order of the points */
} cs_predictions;

/* Allowed on a zeroed struct. The points must outlive the predictions. */
void cs_predictions_finish(cs_predictions *predictions);

/* A change made to each scenario before it is read. */
typedef struct cs_scenario_change {
    cs_status (*make)(const void *context, cJSON *document, cs_error *error);
    const void *context;
} cs_scenario_change;

/* Makes the scenarios of `n` points. `change` may be NULL. Errors: CS_NO_MEMORY, and errors of
 * `change`. */
CS_MUST_CHECK cs_status cs_predictions_make(const cs_point *const *points, uint32_t n,
                                            const cs_scenario_change *change,
                                            cs_predictions *predictions, cs_error *error);

/* Identifies the predictions by a hash of everything that decides their results, except the files
 * that scenarios name. */
CS_MUST_CHECK cs_status cs_predictions_identify(const cs_predictions *predictions,
                                                uint64_t *identity, cs_error *error);

/* Predicts the points that are not done, in `jobs` threads and, if `team` is not NULL, with the
 * team's processes; the result does not depend on their number. Helping processes get no
 * predictions. Each result is written to the journal, unless that is NULL or not open
 * (prediction-journal.h). Returns CS_OK even if points fail. Errors: CS_INTERRUPTED, CS_NO_MEMORY,
 * CS_IO of the journal; results so far are kept. */
CS_MUST_CHECK cs_status cs_predict(cs_predictions *predictions, uint32_t jobs, cs_team *team,
                                   cs_journal *journal, const cs_progress *progress,
                                   cs_error *error);

/* Whether both the prediction and the measurement tell if the run is out of memory. */
bool cs_prediction_has_verdict(const cs_prediction *prediction);

/* Whether the prediction decides that the run fits or not, and whether it is right. A prediction
 * with `depends` decides neither. */
bool cs_prediction_is_decided(const cs_prediction *prediction);
bool cs_prediction_is_right(const cs_prediction *prediction);

/* Returns predicted / measured - 1; NaN if either is unknown. */
double cs_prediction_error(const cs_prediction *prediction, cs_measure measure);

#endif

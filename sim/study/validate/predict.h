/* Predictions of measured points, in threads. */
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
    CS_PREDICTION_MISSING, /* the point needs what the simulator does not have */
    CS_PREDICTION_FAILED,  /* its scenario was refused, or did not run */
} cs_prediction_state;

/* "predicted", "missing", "failed", ended by NULL. */
extern const char *const cs_prediction_states[];

/* What is held against measurements. */
typedef enum cs_measure {
    CS_MEASURE_TIME,      /* of a step, s */
    CS_MEASURE_ALLOCATED, /* bytes: peak against torch.cuda.max_memory_allocated */
    CS_MEASURE_LEAST,     /* bytes: the same of the rank that has the least */
    CS_MEASURE_RESERVED,  /* bytes: peak against torch.cuda.max_memory_reserved */
    CS_MEASURE_DEVICE, /* bytes: peak against what nvidia-smi shows, or the source does not say */
    CS_N_MEASURES
} cs_measure;

/* "step_time", "allocated", "least_allocated", "reserved", "device_memory". */
extern const char *const cs_measure_keys[CS_N_MEASURES];

typedef struct cs_prediction {
    const cs_point *point;
    cs_prediction_state state;
    bool done;                      /* missing, or what came of it is known */
    cs_recipe made;                 /* its notes; and the scenario */
    char *message;                  /* of a failure; NULL otherwise */
    double values[CS_N_MEASURES];   /* predicted; NaN where it is not */
    double measured[CS_N_MEASURES]; /* NaN where it was not */
    cs_step_parts parts;            /* of the predicted time of a step */
    bool out_of_memory;             /* predicted */
    double fits_probability;        /* see sim/run/memory-fit.h; NaN: not known */
    bool depends; /* out_of_memory, but with everything computed again it fits, and the point does
                   * not say what is */
    bool knows_verdict, was_out_of_memory; /* measured: a run that took a time did fit */
} cs_prediction;

typedef struct cs_predictions {
    uint32_t n, n_states[CS_PREDICTION_FAILED + 1]; /* the latter once all are done */
    uint32_t n_runs, n_done; /* that have a scenario; of these, what came of it is known */
    cs_prediction *items;    /* in step with the points that were asked for */
} cs_predictions;

/* Zeroed ones can be finished. The points must live as long. */
void cs_predictions_finish(cs_predictions *predictions);

/* What is changed in each scenario before it is read. */
typedef struct cs_scenario_change {
    cs_status (*make)(const void *context, cJSON *document, cs_error *error);
    const void *context;
} cs_scenario_change;

/* Makes the scenarios of `n` points. `change` may be NULL. CS_NO_MEMORY, what `change` returns. */
CS_MUST_CHECK cs_status cs_predictions_make(const cs_point *const *points, uint32_t n,
                                            const cs_scenario_change *change,
                                            cs_predictions *predictions, cs_error *error);

/* Which predictions they are: a hash of all that decides what comes of them, but for the files that
 * scenarios name. */
CS_MUST_CHECK cs_status cs_predictions_identify(const cs_predictions *predictions,
                                                uint64_t *identity, cs_error *error);

/* Predicts those that are not done, in `jobs` threads, and with the processes of a team, if it is
 * not NULL; the outcome does not depend on how many. Those that help get no predictions. Each is
 * noted in the journal, unless that is NULL or not open (prediction-journal.h). CS_OK also where
 * points fail. CS_INTERRUPTED, CS_NO_MEMORY, CS_IO of the journal: what is done is kept. */
CS_MUST_CHECK cs_status cs_predict(cs_predictions *predictions, uint32_t jobs, cs_team *team,
                                   cs_journal *journal, const cs_progress *progress,
                                   cs_error *error);

/* Whether it is known, and was predicted, if the run is out of memory. */
bool cs_prediction_has_verdict(const cs_prediction *prediction);

/* Whether the prediction says one or the other, and it is what happened. What `depends` says
 * neither. */
bool cs_prediction_is_decided(const cs_prediction *prediction);
bool cs_prediction_is_right(const cs_prediction *prediction);

/* predicted / measured - 1; NaN where one of them is not known. */
double cs_prediction_error(const cs_prediction *prediction, cs_measure measure);

#endif

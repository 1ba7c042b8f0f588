/* Measured training runs, from files of the schema "truth/1" (docs/reference/points.md): model,
 * hardware and framework of a run, its measured values, and predictions of other tools.
 *
 * Files contain more than a simulator needs (such as who measured, and software versions). Keys
 * missing from the tables below are ignored; null means unknown, like a missing key. Values of keys
 * in the tables are checked.
 */
#ifndef CS_VALIDATE_POINTS_H
#define CS_VALIDATE_POINTS_H

#include "sim/run/recipe/description.h"

typedef struct cs_point_measured {
    double step_time_s;          /* NaN: not measured; likewise for the next four */
    double samples_per_s;        /* samples/s of all GPUs together */
    double tokens_per_s_per_gpu; /* tokens per s and GPU */
    double allocated, reserved;  /* bytes: torch.cuda.max_memory_allocated, max_memory_reserved */
    double device;               /* bytes: reported by nvidia-smi, or measured in an unknown way */
    /* {"0": {"allocated": bytes, "reserved": bytes}, ...}; may be NULL */
    const cJSON *per_rank;
    const cJSON *oom; /* whether the run was out of memory: true, false, or NULL (not stated) */
} cs_point_measured;

typedef struct cs_point {
    const char *id;
    const char *dataset; /* name of the dataset */
    const char *file;    /* path of the file that the point was read from */
    const char *quality;
    cs_description run;
    cs_point_measured *measured;
    cs_list unknown, features; /* lists of texts (const char *) */
    const cJSON *peers;        /* {"tool": {"step_time_s": s, ...}, ...}; may be NULL */
    const cJSON *stated;       /* the point with all its keys, including those that no table has */
} cs_point;

typedef struct cs_points {
    cs_arena arena;
    uint32_t n, capacity;
    cs_point *points;
    uint32_t n_documents, cap_documents;
    cJSON **documents; /* values that points refer to */
} cs_points;

/* Fields of a point besides its description, and fields of its measurement; ended by {0}. */
extern const cs_field cs_point_fields[];
extern const cs_field cs_point_measured_fields[];

/* Allowed on a zeroed struct. */
void cs_points_finish(cs_points *points);

/* Adds the points of a file, or of a text whose name in messages is `name`. Errors contain the file
 * and the JSON pointer; several errors are reported together. An id that an earlier point has is an
 * error. */
CS_MUST_CHECK cs_status cs_points_load(const char *path, cs_points *points, cs_error *error);
CS_MUST_CHECK cs_status cs_points_parse(const char *name, const char *text, size_t length,
                                        cs_points *points, cs_error *error);

/* Adds the points that come with the program (facts/points/README.md). */
CS_MUST_CHECK cs_status cs_points_load_shipped(cs_points *points, cs_error *error);

/* Finds a point by its id. NULL if there is none; the message lists similar ids. */
const cs_point *cs_points_find(const cs_points *points, const char *id, cs_error *error);

/* Returns the step time in s: as measured, or the samples of a step / samples per s, or the tokens
 * of a step / tokens per s of all GPUs. NaN if it is unknown, or if the point's quality covers
 * memory only. */
double cs_point_step_time(const cs_point *point);

/* Returns text i of a list of texts. */
static inline const char *cs_point_text(const cs_list *list, uint32_t i)
{
    return ((const char *const *)list->items)[i];
}

/* Whether the point has a feature, such as "pp". */
bool cs_point_has(const cs_point *point, const char *feature);

/* Whether the errors of the point's step time count. Points of quality C lack something essential,
 * so they count only in rankings and verdicts. */
bool cs_point_is_exact(const cs_point *point);

#endif

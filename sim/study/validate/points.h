/* Measured training runs, as files of the schema "truth/1" have them (docs/reference/points.md):
 * what was trained on what and how, what it took, and what other tools predict.
 *
 * A file says more than a simulator asks for (who measured, with which version): keys that are not
 * in the tables below are ignored, and null stands for what is not known, as a missing key does.
 * What is in the tables is checked.
 */
#ifndef CS_VALIDATE_POINTS_H
#define CS_VALIDATE_POINTS_H

#include "sim/run/recipe/description.h"

typedef struct cs_point_measured {
    double step_time_s;          /* NaN: not measured; the same of the next four */
    double samples_per_s;        /* of all GPUs */
    double tokens_per_s_per_gpu; /* tokens/s */
    double allocated, reserved;  /* bytes: torch.cuda.max_memory_allocated, max_memory_reserved */
    double device;               /* bytes: nvidia-smi, or what the source does not say */
    const cJSON *per_rank;       /* {"0": {"allocated": bytes, "reserved": bytes}, ...} or NULL */
    const cJSON *oom;            /* true, false, or NULL: not stated */
} cs_point_measured;

typedef struct cs_point {
    const char *id;
    const char *dataset; /* of the file */
    const char *file;    /* that it was read from */
    const char *quality;
    cs_description run;
    cs_point_measured *measured;
    cs_list unknown, features; /* of const char * */
    const cJSON *peers;        /* {"tool": {"step_time_s": s, ...}, ...} or NULL */
    const cJSON *stated;       /* the point with all its keys, also those that no table has */
} cs_point;

typedef struct cs_points {
    cs_arena arena;
    uint32_t n, capacity;
    cs_point *points;
    uint32_t n_documents, cap_documents;
    cJSON **documents; /* values that points refer to */
} cs_points;

/* The fields of a point besides its description, and of its measurement; ended by {0}. */
extern const cs_field cs_point_fields[];
extern const cs_field cs_point_measured_fields[];

/* Zeroed points can be finished. */
void cs_points_finish(cs_points *points);

/* Adds the points of a file, or of a text that messages call `name`. Errors name file and JSON
 * pointer; several are reported in one go. An id that an earlier point has is one. */
CS_MUST_CHECK cs_status cs_points_load(const char *path, cs_points *points, cs_error *error);
CS_MUST_CHECK cs_status cs_points_parse(const char *name, const char *text, size_t length,
                                        cs_points *points, cs_error *error);

/* Adds those that come with the program (facts/points/README.md). */
CS_MUST_CHECK cs_status cs_points_load_shipped(cs_points *points, cs_error *error);

/* The point with that id, or NULL with a message that lists near ones. */
const cs_point *cs_points_find(const cs_points *points, const char *id, cs_error *error);

/* The time of a step, s: as it was measured, or the samples of a step over samples per s, or its
 * tokens over tokens per s of all GPUs. NaN: not known, or the point's quality is that of memory
 * only. */
double cs_point_step_time(const cs_point *point);

/* Text i of a list of texts. */
static inline const char *cs_point_text(const cs_list *list, uint32_t i)
{
    return ((const char *const *)list->items)[i];
}

/* Whether a feature, such as "pp", is among the point's. */
bool cs_point_has(const cs_point *point, const char *feature);

/* Whether the errors of its step time count: something essential is missing in a point of quality
 * C. Such a point counts in rankings and in verdicts only. */
bool cs_point_is_exact(const cs_point *point);

#endif

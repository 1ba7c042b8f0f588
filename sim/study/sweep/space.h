/* The points of a sweep: which keys of a scenario take which values together.
 *
 *     cs_space space;
 *     cs_space_init(&space);
 *     cs_space_vary(&space, "--vary", "/schedule/micro_batches=2..32", error);
 *     cs_space_vary(&space, "--vary", "/platform/devices=2,4,8", error);
 *     cs_space_close(&space, CS_SPACE_GRID, error);
 *
 * A grid has every combination: the last key's values follow each other fastest. Zipped keys take
 * their first values together, then their second ones. A list of points comes from a CSV file.
 */
#ifndef CS_SWEEP_SPACE_H
#define CS_SWEEP_SPACE_H

#include "sim/base/units.h"
#include "sim/study/sweep/range.h"

#include <stdbool.h>

enum {
    CS_SPACE_POINTS_MAX = 1 << 20,
    CS_SPACE_AXES_MAX = 32, /* as many dimensions as HDF5 has */
    CS_SPACE_CSV_BYTES = 256 << 20,
};

typedef enum cs_space_form { CS_SPACE_GRID, CS_SPACE_LIST } cs_space_form;

/* One varied key. */
typedef struct cs_axis {
    const char *pointer; /* "/schedule/micro_batches" */
    const char *key;     /* the pointer as a JSON text, in quotes */
    const char *name;    /* of its dataset: "schedule.micro_batches" */
    cs_values values;
    uint32_t stride; /* of a grid: points from one value to the next */
    /* quantity of the key: CS_QUANTITY_NUMBER where there is no unit */
    cs_quantity quantity;
} cs_axis;

typedef struct cs_space {
    cs_arena arena;
    cs_space_form form;
    cs_axis axes[CS_SPACE_AXES_MAX];
    uint32_t n_axes, n_points;
} cs_space;

void cs_space_init(cs_space *space);
void cs_space_finish(cs_space *space);

/* Adds a key with its values: "/json/pointer=VALUES" (sim/study/sweep/range.h); messages begin with
 * `origin` of messages. The second function takes the values of a JSON document: an array as it is,
 * a text as above. */
CS_MUST_CHECK cs_status cs_space_vary(cs_space *space, const char *origin, const char *text,
                                      cs_error *error);
CS_MUST_CHECK cs_status cs_space_vary_json(cs_space *space, const char *origin, const char *pointer,
                                           const cJSON *values, cs_error *error);

/* Adds the keys of a CSV file: its first line has JSON pointers, every other one the values of a
 * point, JSON or texts. Fields with a comma, a quote or a line break stand in double quotes, in
 * which "" is a quote. Empty lines mean nothing. */
CS_MUST_CHECK cs_status cs_space_read_csv(cs_space *space, const char *path, cs_error *error);

/* Counts the points. Refused: no key, a key twice, one key within another, keys of different length
 * in a list, a value twice on a grid's axis, numbers without a unit beside texts with one, more
 * than CS_SPACE_POINTS_MAX points. */
CS_MUST_CHECK cs_status cs_space_close(cs_space *space, cs_space_form form, cs_error *error);

/* The value of an axis at a point, as JSON text; its position among the axis' values. */
uint32_t cs_space_position(const cs_space *space, uint32_t point, uint32_t axis);
const char *cs_space_value(const cs_space *space, uint32_t point, uint32_t axis);

/* Changes a scenario to what it is at a point. */
CS_MUST_CHECK cs_status cs_space_apply(const cs_space *space, uint32_t point, const char *origin,
                                       cJSON *document, cs_error *error);

/* {"/schedule/workers": 4, ...} on one line; the caller frees it. NULL when memory runs out. */
char *cs_space_describe(const cs_space *space, uint32_t point);

#endif

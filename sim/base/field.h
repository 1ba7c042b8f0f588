/* Declarative tables of fields: one table states the keys that a JSON object may have, their units
 * and ranges, and their defaults with the reason. The same table reads the object, writes it back
 * resolved, and feeds `sim list`, the help and the documentation.
 *
 *     typedef struct gpipe_params { uint32_t micro_batches; bool recompute; } gpipe_params;
 *     static const cs_field fields[] = {
 *         {"micro_batches", CS_FIELD_COUNT, offsetof(gpipe_params, micro_batches),
 *          .min = 1, .max = 1 << 20, .doc = "micro-batches per mini-batch"},
 *         {"recompute", CS_FIELD_BOOL, offsetof(gpipe_params, recompute), .fallback = "false",
 *          .doc = "keep only a stage's input and run its forward again before the backward"},
 *         {0}};
 */
#ifndef CS_BASE_FIELD_H
#define CS_BASE_FIELD_H

#include "sim/base/json.h"
#include "sim/base/units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cs_field_type {
    CS_FIELD_TIME,      /* cs_time */
    CS_FIELD_BYTES,     /* int64_t; rounded to the nearest byte ("1.1 GiB") */
    CS_FIELD_BANDWIDTH, /* double, bytes/s */
    CS_FIELD_FLOP_RATE, /* double, flop/s */
    CS_FIELD_NUMBER,    /* double */
    CS_FIELD_COUNT,     /* uint32_t, a whole number */
    CS_FIELD_INTEGER,   /* int64_t, a whole number; up to 2^53 - 1 unless `large` */
    CS_FIELD_BOOL,      /* bool */
    CS_FIELD_CHOICE,    /* uint32_t, index into `choices` */
    CS_FIELD_TEXT,      /* const char *, in the arena */
    /* T *, in the arena: a struct of `size` bytes with the fields of the table `of` */
    CS_FIELD_OBJECT,
    CS_FIELD_LIST,    /* cs_list; `of` describes the elements */
    CS_FIELD_VARIANT, /* `size` bytes that `kind` reads and writes */
    /* const cJSON *, pointing into the document (which must outlive it): for values of any JSON
     * type that have their own reader */
    CS_FIELD_JSON,
} cs_field_type;

enum { CS_COUNT_LEFT_OUT = UINT32_MAX };

/* A list in the arena. */
typedef struct cs_list {
    uint32_t n;
    bool one;    /* the document has a value in place of a list, as `each` permits; n is 1 */
    void *items; /* n elements, as the element's type stores them; NULL: left out */
} cs_list;

/* A text that represents a number: "unlimited" */
typedef struct cs_field_word {
    const char *text; /* NULL ends a table */
    double value;     /* INFINITY in a BYTES field: INT64_MAX */
} cs_field_word;

typedef struct cs_field_kind cs_field_kind;

typedef struct cs_field {
    const char *name; /* NULL ends a table */
    cs_field_type type;
    size_t offset; /* bytes from the start of the struct to the member */
    /* The default, as a user would write it (TEXT and CHOICE without quotes); NULL: the key is
     * required. "": optional without a default. If the key is then missing, the member of a TEXT,
     * OBJECT, LIST, VARIANT or JSON is zero, a double is NaN, and a COUNT is CS_COUNT_LEFT_OUT. */
    const char *fallback;
    double min, max; /* inclusive, in SI base units; max 0: no maximum, unless min < 0 */
    bool above_min;  /* the minimum itself is excluded */
    /* BYTES: values below 1 MB cause a warning, like unlikely bandwidths, flop rates and times (see
     * cs_field_read). INTEGER: numbers beyond 2^53 are allowed, as a text of digits */
    bool large;
    double usual_max;           /* TIME, s: longer times cause a warning; 0: one hour */
    const char *const *choices; /* CHOICE: NULL-terminated */
    const cs_field_word *words; /* numeric types: texts that represent numbers; NULL: none */
    const struct cs_field *of;  /* OBJECT: its table; LIST: one field, the element */
    size_t size;                /* OBJECT and VARIANT: bytes */
    const cs_field_kind *kind;  /* VARIANT: its reader and writer */
    bool each;                  /* LIST: may be a single value, used for all elements */
    uint32_t least, most;       /* LIST: number of elements; most 0: no maximum */
    const char *doc;            /* one line for users */
    const char *shape; /* form of the value, for users, if the type does not say it ("[x, y]") */
} cs_field;

/* A type whose form depends on its value, such as an object whose keys depend on its name */
struct cs_field_kind {
    /* Fills the zeroed member. */
    CS_MUST_CHECK cs_status (*read)(const cJSON *value, const cs_json_place *place, void *member,
                                    cs_arena *arena, cs_error *error);
    /* Returns the resolved value; NULL if memory runs out. */
    cJSON *(*write)(const void *member);
    /* Whether the key was left out. */
    bool (*is_empty)(const void *member);
};

/* Names that a document may use in place of a number ("measured node"). They are looked up before a
 * text is parsed as a number with a unit. The cs_json_place of an enclosing value holds them. */
typedef struct cs_field_names {
    /* Sets *known and *number if `text` is one of the names; otherwise leaves *known false. */
    CS_MUST_CHECK cs_status (*find)(const void *context, const char *text, cs_field_type type,
                                    const cs_json_place *place, bool *known, double *number,
                                    cs_error *error);
    const void *context;
} cs_field_names;

/* Reads the members of `object` (NULL: all defaults) into `out`. Unknown keys, wrong types, values
 * out of range and missing required keys each add a message and reading continues, so that several
 * mistakes are reported at once; `outs` are then filled partially. With several tables
 * (NULL-terminated), the object is read into several structs, one of `outs` per table, and a key is
 * known if any table has it. Quantities are numbers in SI base units or texts with a unit. An
 * implausible quantity (a memory of 80 bytes, a latency of 5 s) causes a warning that proposes a
 * likely one. */
CS_MUST_CHECK cs_status cs_field_read(const cJSON *object, const cs_json_place *place,
                                      const cs_field *const tables[], void *const outs[],
                                      cs_arena *arena, cs_error *error);

/* Adds the fields of `in` to `object` with their resolved values, in table order; quantities are
 * numbers in SI base units. Returns false if memory runs out. */
bool cs_field_write(const cs_field *table, const void *in, cJSON *object);

/* Bytes that the field occupies in its struct. */
size_t cs_field_size(const cs_field *field);

/* Returns the field with that name, or NULL. */
const cs_field *cs_field_find(const cs_field *table, const char *name);

/* Quantity of the field's numbers (for a list that accepts a single value: of its elements);
 * CS_QUANTITY_NUMBER: without a unit. */
cs_quantity cs_field_quantity(const cs_field *field);

/* Writes which values the field accepts, for users: "time", "bytes", "a whole number >= 1", "one of
 * none, fifo". Returns `text`. */
char *cs_field_expected(const cs_field *field, char *text, size_t size);

#endif

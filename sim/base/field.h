/* Declarative tables of fields: one table says what a JSON object may hold, in which units and
 * ranges, with which defaults and why; the same table reads it, writes it back resolved, and feeds
 * `sim list`, the help and the documentation.
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
    CS_FIELD_INTEGER,   /* int64_t, a whole number; up to 2^53 - 1 unless it is large */
    CS_FIELD_BOOL,      /* bool */
    CS_FIELD_CHOICE,    /* uint32_t, the position of one of `choices` */
    CS_FIELD_TEXT,      /* const char *, in the arena */
    CS_FIELD_OBJECT,    /* T *, in the arena: a struct of `size` bytes that the table `of` fills */
    CS_FIELD_LIST,      /* cs_list, elements as the field `of` says */
    CS_FIELD_VARIANT,   /* of `size` bytes: what `kind` reads, which knows its form */
    CS_FIELD_JSON, /* const cJSON *, as it stands in the document (which must live on): for values
                    * that have a reader of their own; any JSON type */
} cs_field_type;

enum { CS_COUNT_LEFT_OUT = UINT32_MAX };

/* A list in the arena. */
typedef struct cs_list {
    uint32_t n;
    bool one;    /* there was a value in place of a list, as `each` permits; n is 1 */
    void *items; /* n of what the element's type stores; NULL when it was left out */
} cs_list;

/* A text that stands for a number: "unlimited". */
typedef struct cs_field_word {
    const char *text; /* NULL ends a table */
    double value;     /* of BYTES, INFINITY is INT64_MAX */
} cs_field_word;

typedef struct cs_field_kind cs_field_kind;

typedef struct cs_field {
    const char *name; /* NULL ends a table */
    cs_field_type type;
    size_t offset;        /* of the member in the struct that is filled */
    const char *fallback; /* the default, as a user would write it (a TEXT or CHOICE without
                           * quotes); NULL: required. "" leaves a TEXT, OBJECT, LIST, VARIANT or
                           * JSON out when the key is missing: its member is zero; of what is
                           * stored as a double, it is NaN; of a COUNT, CS_COUNT_LEFT_OUT */
    double min, max;  /* inclusive, in SI base units; a max of 0 is none, except where min < 0 */
    bool above_min;   /* the minimum itself is excluded */
    bool large;       /* BYTES: values below 1 MB give a warning, like unlikely bandwidths, flop
                       * rates and times, if the place has warnings (cs_field_read). INTEGER:
                       * numbers beyond 2^53 are allowed, as a text of digits */
    double usual_max; /* TIME: longer times give a warning; 0: one hour */
    const char *const *choices; /* of CS_FIELD_CHOICE, ended by NULL */
    const cs_field_word *words; /* of numbers, or NULL: texts that may stand for one */
    const struct cs_field *of;  /* of OBJECT: its table; of LIST: one field, the element */
    size_t size;                /* of OBJECT and VARIANT */
    const cs_field_kind *kind;  /* of VARIANT */
    bool each;                  /* of LIST: a value in place of a list stands for all of them */
    uint32_t least, most;       /* of LIST: how many elements; most 0: any number */
    const char *doc;            /* one line, for people */
    const char *shape; /* what it looks like, for people, where the type does not say ("[x, y]") */
} cs_field;

/* Values whose form depends on what stands in them, such as an object whose keys follow from the
 * name in it. */
struct cs_field_kind {
    /* Fills the zeroed member. */
    CS_MUST_CHECK cs_status (*read)(const cJSON *value, const cs_json_place *place, void *member,
                                    cs_arena *arena, cs_error *error);
    /* The value again, resolved; NULL when memory runs out. */
    cJSON *(*write)(const void *member);
    /* Whether it was left out. */
    bool (*is_empty)(const void *member);
};

/* Quantities that a document may name in place of a number ("measured node"), asked before a text
 * is read as a number with a unit. A cs_json_place above has them. */
typedef struct cs_field_names {
    /* Leaves *known as it is, false, when the text is none of them. */
    CS_MUST_CHECK cs_status (*find)(const void *context, const char *text, cs_field_type type,
                                    const cs_json_place *place, bool *known, double *number,
                                    cs_error *error);
    const void *context;
} cs_field_names;

/* Reads the members of `object` into `out`. Unknown keys, wrong types, values out of range and
 * missing required keys each add a message, and reading goes on, so that several are reported in
 * one go; `outs` are then filled in part. With several tables (ended by NULL) an object is read
 * into several structs, `outs` in step with them, and a key is known when one of the tables has it.
 * Quantities are taken as numbers in SI base units or as texts with a unit. A quantity that is
 * hardly ever meant (a memory of 80 bytes, a latency of 5 s) gives a warning that names a likely
 * one. `object` may be NULL:
 * then all defaults. */
CS_MUST_CHECK cs_status cs_field_read(const cJSON *object, const cs_json_place *place,
                                      const cs_field *const tables[], void *const outs[],
                                      cs_arena *arena, cs_error *error);

/* Adds the fields of `in` to `object` with their resolved values, in the order of the table:
 * quantities as numbers in SI base units. False when memory runs out. */
bool cs_field_write(const cs_field *table, const void *in, cJSON *object);

/* The bytes that a field's type stores at its offset. */
size_t cs_field_size(const cs_field *field);

/* The field of that name, or NULL. */
const cs_field *cs_field_find(const cs_field *table, const char *name);

/* What its numbers are, those of the elements of a list that takes one for all as well;
 * CS_QUANTITY_NUMBER where they have no unit. */
cs_quantity cs_field_quantity(const cs_field *field);

/* "time", "bytes", "a whole number >= 1", "one of none, fifo": what a value must be, for people. */
char *cs_field_expected(const cs_field *field, char *text, size_t size);

#endif

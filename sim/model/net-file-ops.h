/* An operator of a network in a file: what is said of it, whether that can be, and the operator that
 * it becomes. Between the sources of net-file.h; not for those that use them. */
#ifndef CS_WORKLOAD_NET_FILE_OPS_H
#define CS_WORKLOAD_NET_FILE_OPS_H

#include "sim/base/field.h"
#include "sim/model/net.h"

enum { CS_NET_NAME_BYTES = 192 };

typedef struct cs_op_entry {
    const char *name, *block, *tied_to;
    uint32_t kind;
    cs_list inputs;                                      /* const char * */
    cs_list output_shape, kernel, stride, pad, dilation; /* uint32_t */
    uint32_t groups, heads, kv_heads, state, chunk, scan_groups;
    uint32_t experts, top_k, window, buckets;
    double capacity, dropout, stored;
    int64_t weights, biases;
    bool causal, math, sinks, padded, wide, frozen, in_place;
} cs_op_entry;

extern const cs_field cs_op_entry_fields[];

/* Figures that `sim model --json` prints besides; they follow from the rest. */
extern const cs_field cs_op_entry_figures[];

static inline uint32_t cs_size_at(const cs_list *list, uint32_t i)
{
    return ((const uint32_t *)list->items)[i];
}

/* An operator, while it is made. */
typedef struct cs_op_making {
    cs_net *net;
    cs_error *error;
    const cs_op_entry *entry;
    const cs_json_place *place;
    const char *name; /* within its block */
    cs_tensor in[CS_OP_INPUTS_MAX];
    cs_tensor lender; /* the output of the operator that it is tied to */
    uint32_t n;       /* of `in` */
} cs_op_making;

/* CS_INVALID, with the key, where the inputs or what is said do not fit its kind. */
CS_MUST_CHECK cs_status cs_op_making_check(const cs_op_making *m);

/* Adds what was checked to the network. CS_INVALID where it is not what the entry says. */
CS_MUST_CHECK cs_status cs_op_make(cs_op_making *m);

#endif

/* The events of a PyTorch trace, sorted by kind. They connect the reader of the JSON and the code
 * that makes layers (torch-trace.h); other code does not use them. */
#ifndef CS_FOREIGN_TORCH_EVENTS_H
#define CS_FOREIGN_TORCH_EVENTS_H

#include "sim/base/json.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum cs_torch_kind {
    CS_TORCH_OPERATOR, /* operator on the host */
    CS_TORCH_LAUNCH,   /* call on the host that starts a kernel */
    CS_TORCH_KERNEL,   /* kernel, copy or fill on the device */
    CS_TORCH_MODULE,   /* call of a module */
    CS_TORCH_STEP,     /* step of the profiler */
    /* on the host: start of communication, perhaps including the wait for its end */
    CS_TORCH_EXCHANGE,
    CS_N_TORCH_KINDS
} cs_torch_kind;

typedef struct cs_torch_event {
    const char *name;
    int64_t thread;
    double start, duration; /* microseconds */
    int64_t sequence;       /* sequence number of an operator; -1: none */
    int64_t correlation;    /* correlation number of a launch or kernel; -1: none */
    /* for an exchange: whether it is an operator rather than an annotation */
    bool is_operator;
    /* whether it communicates: operators by name, kernels by name or by the operator that launches
     * them */
    bool communication;
    const cJSON *arguments; /* arguments; NULL: none */
} cs_torch_event;

typedef struct cs_torch_list {
    cs_torch_event *events;
    uint32_t n, capacity;
} cs_torch_list;

typedef struct cs_torch_events {
    const char *file;
    /* sorted by thread, then start, longest first; kernels by correlation number */
    cs_torch_list lists[CS_N_TORCH_KINDS];
    bool shapes; /* whether some operator has shapes */
} cs_torch_events;

/* Reads the events. Names and arguments point into the document, which must outlive them. Errors
 * name the file; without `times_only`, missing shapes are an error. cs_torch_events_finish is
 * allowed on a zeroed struct. */
CS_MUST_CHECK cs_status cs_torch_events_read(const cJSON *root, const char *file, bool times_only,
                                             cs_torch_events *events, cs_error *error);
void cs_torch_events_finish(cs_torch_events *events);

/* Returns the index of the first event at or after (thread, time); n if there is none. Does not
 * work for the list of kernels, which has a different order. */
uint32_t cs_torch_first(const cs_torch_list *list, int64_t thread, double time);

/* Returns the first kernel of a launch, and the number of its kernels in *n: several if it launches
 * a graph. NULL if it has none. */
cs_torch_event *cs_torch_kernels(const cs_torch_list *kernels, int64_t correlation, uint32_t *n);

#endif

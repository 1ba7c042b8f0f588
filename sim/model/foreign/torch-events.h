/* The events of a PyTorch trace, sorted out: between the reader of the JSON and the one that makes
 * layers of them (torch-trace.h); not for others. */
#ifndef CS_FOREIGN_TORCH_EVENTS_H
#define CS_FOREIGN_TORCH_EVENTS_H

#include "sim/base/json.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum cs_torch_kind {
    CS_TORCH_OPERATOR, /* on the host */
    CS_TORCH_LAUNCH,   /* a call of the host that starts a kernel */
    CS_TORCH_KERNEL,   /* on the device: kernels, copies, fills */
    CS_TORCH_MODULE,   /* a call of a module */
    CS_TORCH_STEP,     /* a step of the profiler */
    CS_TORCH_EXCHANGE, /* on the host: starts communication, perhaps waits for it */
    CS_N_TORCH_KINDS
} cs_torch_kind;

typedef struct cs_torch_event {
    const char *name;
    int64_t thread;
    double start, duration; /* us */
    int64_t sequence;       /* of an operator, -1 without */
    int64_t correlation;    /* of launches and kernels, -1 without */
    bool is_operator;       /* an exchange: false if it is an annotation */
    bool communication;     /* operators: by name; kernels: by name or by launching operator */
    const cJSON *arguments; /* NULL without */
} cs_torch_event;

typedef struct cs_torch_list {
    cs_torch_event *events;
    uint32_t n, capacity;
} cs_torch_list;

typedef struct cs_torch_events {
    const char *file;
    cs_torch_list lists[CS_N_TORCH_KINDS]; /* by thread, start, longest first; kernels by number */
    bool shapes;                           /* some operator has them */
} cs_torch_events;

/* Names and arguments point into the document. Errors name the file; without `times_only` there
 * must be shapes. Zeroed events can be finished. */
CS_MUST_CHECK cs_status cs_torch_events_read(const cJSON *root, const char *file, bool times_only,
                                             cs_torch_events *events, cs_error *error);
void cs_torch_events_finish(cs_torch_events *events);

/* Returns the index of the first event at or after (thread, time); n: there is none. Not for the
 * list of kernels, which is in a different order. */
uint32_t cs_torch_first(const cs_torch_list *list, int64_t thread, double time);

/* The kernels of a launch, several if it launches a graph: the first, and *n of them. */
cs_torch_event *cs_torch_kernels(const cs_torch_list *kernels, int64_t correlation, uint32_t *n);

#endif

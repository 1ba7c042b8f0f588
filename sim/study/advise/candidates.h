/* Candidates: the plans that are tried for a scenario.
 *
 * A candidate is a set of changes to the scenario. The candidates made here change the sections
 * "parallel" and "schedule" and the recomputation. They are the product of the values of all axes,
 * restricted to sizes whose product is a number of devices:
 *
 *     devices = (tensor | filter | channel) x space x context x pipeline x data
 *
 * `data` and the number of micro-batches follow from the devices and the global batch, which stays
 * unchanged. Impossible combinations are left out: sizes that do not divide the devices or the
 * batch, more stages than layers, fewer micro-batches than the schedule needs, experts over more
 * places than there are. The model decides when it is priced (bounds.h) whether a layer can be
 * split in this way.
 *
 * If neither the scenario nor a runtime says how, gradients are summed in buckets of 25 MiB (Li et
 * al., VLDB 2020, section 3.2.3), overlapped with the last backward. The default of scenarios, to
 * sum them after it, would make replicated weights look worse than in any framework.
 *
 * A step is one mini-batch, "iterations": 1, and collectives are delays ("fidelity": "analytic")
 * unless the scenario says otherwise, so that all candidates are simulated in the same way.
 *
 * Plans that the scenario's runtime cannot run (runtime-section.h) are only counted.
 *
 * Plans of OSDP are added, with changes of their own (osdp-candidates.h).
 */
#ifndef CS_ADVISE_CANDIDATES_H
#define CS_ADVISE_CANDIDATES_H

#include "schedules/schedule.h"
#include "sim/run/scenario/runtime-section.h"
#include "sim/run/scenario/scenario.h"
#include "sim/study/advise/advise-section.h"
#include "sim/study/advise/selective.h"

/* How layers are split over the first axis. */
typedef enum cs_advise_method { CS_BY_TENSOR, CS_BY_FILTER, CS_BY_CHANNEL } cs_advise_method;

enum { CS_BUCKET_GIVEN = -1 };

typedef struct cs_candidate {
    uint32_t devices;
    uint32_t method; /* a cs_advise_method */
    uint32_t layer;  /* size of the first axis */
    uint32_t space, context, pipeline, data, expert;
    uint32_t zero;
    uint32_t micro_samples, micro_batches;
    uint32_t schedule;         /* number of its schedule in cs_schedules */
    uint32_t chunks;           /* number of stages per pipeline rank */
    uint32_t recompute, inner; /* a cs_advise_recompute, a cs_advise_order */
    int64_t bucket;            /* bytes; CS_BUCKET_GIVEN: as the scenario has it */
    /* OSDP's additional changes: {"/json/pointer": value, ...}; NULL: none */
    const cJSON *more;
    double replicated; /* with OSDP: fraction of the parameters that is not sharded */
} cs_candidate;

static inline const cs_schedule *cs_candidate_schedule(const cs_candidate *candidate)
{
    return cs_schedules[candidate->schedule];
}

/* Returns the pipeline rank that holds a stage. */
static inline uint32_t cs_candidate_rank(const cs_candidate *candidate, uint32_t stage)
{
    return cs_schedule_rank(cs_candidate_schedule(candidate), candidate->pipeline, stage);
}

/* Returns the number of neighbouring devices over which the candidate's layers are split. */
static inline uint32_t cs_candidate_places(const cs_candidate *candidate)
{
    return candidate->layer * candidate->space * candidate->context;
}

/* Input for making candidates; the document must outlive it. */
typedef struct cs_advise_base {
    const cJSON *document; /* document of the scenario */
    const char *path;      /* path of the scenario's file */
    cs_advise_section section;
    uint32_t devices, node_devices; /* devices of the platform, and per node; 0: unknown */
    uint32_t batch_size;
    uint32_t n_layers, n_experts, tokens; /* layers and experts of the model; tokens of a sample */
    uint32_t space_rank;                  /* dimensions of images; 0: the network has no images */
    bool divisible;                       /* whether the model has operators, and so can be split */
    bool lists_operators;                 /* whether the scenario lists operators to recompute */
    cs_selective selective;               /* operators to recompute if it lists none */
    bool has_rules;         /* whether rules decide the sharding of some layers instead of "zero" */
    bool says_bucket;       /* whether the scenario or its runtime's conventions set the bucket */
    cs_runtime_rules rules; /* rules of the scenario's runtime */
} cs_advise_base;

/* Reads the section and the scenario, whose own plan may be impossible. CS_INVALID if a key is
 * wrong, or the number of devices is missing. */
CS_MUST_CHECK cs_status cs_advise_base_read(const cJSON *document, const char *path,
                                            cs_arena *arena, cs_advise_base *base, cs_error *error);

/* Reads the scenario itself, completely or (`unplanned`) without a plan. If its own plan is
 * impossible, uses data parallelism instead, with one sample per device, which always works;
 * `replaced`, if not NULL, tells whether. CS_INVALID if that is impossible too, with the errors of
 * its own plan. */
CS_MUST_CHECK cs_status cs_advise_read_itself(const cJSON *document, const char *path,
                                              bool unplanned, cs_scenario *scenario, bool *replaced,
                                              cs_error *error);

typedef struct cs_candidates {
    uint32_t n, capacity;
    cs_candidate *items;
    cJSON *more;         /* owns the candidates' `more`; may be NULL */
    uint32_t n_excluded; /* number of plans excluded because the runtime cannot run them */
    uint32_t
        /* number of excluded plans per rule, by the first broken rule */
        excluded[CS_RUNTIME_RULES_MOST];
} cs_candidates;

void cs_candidates_finish(cs_candidates *candidates);

/* Makes the candidates, in an order that depends only on the section. CS_LIMIT beyond
 * CS_CANDIDATES_MAX. */
enum { CS_CANDIDATES_MAX = 1 << 20 };
CS_MUST_CHECK cs_status cs_candidates_make(const cs_advise_base *base, cs_candidates *candidates,
                                           cs_error *error);

/* Adds a candidate with additional changes. Takes ownership of the changes, even on failure; NULL
 * means that memory ran out. CS_LIMIT, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_candidates_add(const cs_advise_base *base, const cs_candidate *candidate,
                                          cJSON *more, cs_candidates *candidates, cs_error *error);

/* Returns the first rule of the scenario's runtime that a candidate breaks; CS_RUNTIME_RULES_MOST:
 * none. */
uint32_t cs_candidate_broken_rule(const cs_advise_base *base, const cs_candidate *candidate);

/* Makes the scenario with the candidate's plan, to free with cJSON_Delete; it refers to parts of
 * the base. NULL if memory runs out. */
cJSON *cs_candidate_document(const cs_advise_base *base, const cs_candidate *candidate);

/* Whether one device may represent others with different routes through the network, so that times
 * are estimates ("fold": "slowest"). */
bool cs_candidate_may_be_estimated(const cs_advise_base *base, const cs_candidate *candidate);

/* Makes the scenario with its own plan, to be simulated like candidates; ownership as above. */
cJSON *cs_own_document(const cs_advise_base *base);

/* Makes the candidate's changes as `--set` takes them: {"/json/pointer": value, ...}; ownership as
 * above. */
cJSON *cs_candidate_changes(const cs_advise_base *base, const cs_candidate *candidate);

/* Returns a shell command that runs only this plan: "sim run PATH --set '/parallel=...' ...". The
 * caller frees it. NULL if memory runs out. */
char *cs_candidate_command(const cs_advise_base *base, const cs_candidate *candidate,
                           const char *path);

/* Writes the plan in words: "tensor 8 x pipeline 4 x data 2, zero 1; 1f1b, 32 micro-batches of 1".
 * Returns `text`. */
char *cs_candidate_text(const cs_candidate *candidate, char *text, size_t size);

/* Writes the axes in use, "data + tensor + pipeline": its strategy, as pictures call it. Returns
 * `text`. */
char *cs_candidate_strategy(const cs_candidate *candidate, char *text, size_t size);

enum { CS_CANDIDATE_TEXT_BYTES = 256 };

#endif

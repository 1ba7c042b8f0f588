/* Candidates: the plans that are tried for a scenario.
 *
 * A candidate is a set of changes of the scenario. Those that are generated here change the
 * sections "parallel" and "schedule" and what is recomputed, over the product of the values of all
 * axes that multiply to a number of devices:
 *
 *     devices = (tensor | filter | channel) x space x context x pipeline x data
 *
 * `data` and the number of micro-batches follow from the devices and the global batch, which stays
 * as it is. What cannot be is left out: sizes that do not divide the devices or the batch, more
 * stages than layers, fewer micro-batches than the schedule needs, experts over more places than
 * there are. Whether a layer can be divided so, the model says when it is priced (bounds.h).
 *
 * Gradients are summed in buckets of 25 MiB (Li et al., VLDB 2020, section 3.2.3) beside the last
 * backward where neither the scenario nor a runtime says how: summed after it, as a scenario
 * without either has it, they would make replicated weights look worse than any framework has them.
 *
 * A step is one mini-batch, "iterations": 1, and collectives are delays ("fidelity":
 * "analytic") unless the scenario says otherwise, so that all candidates are simulated alike.
 *
 * Plans that the scenario's runtime cannot run (runtime-section.h) are only counted.
 *
 * Plans of OSDP are added to them, with changes of their own (osdp-candidates.h).
 */
#ifndef CS_ADVISE_CANDIDATES_H
#define CS_ADVISE_CANDIDATES_H

#include "schedules/schedule.h"
#include "sim/run/scenario/runtime-section.h"
#include "sim/run/scenario/scenario.h"
#include "sim/study/advise/advise-section.h"
#include "sim/study/advise/selective.h"

/* How a layer is divided over the first axis. */
typedef enum cs_advise_method { CS_BY_TENSOR, CS_BY_FILTER, CS_BY_CHANNEL } cs_advise_method;

enum { CS_BUCKET_GIVEN = -1 };

typedef struct cs_candidate {
    uint32_t devices;
    uint32_t method; /* cs_advise_method */
    uint32_t layer;  /* size of that axis */
    uint32_t space, context, pipeline, data, expert;
    uint32_t zero;
    uint32_t micro_samples, micro_batches;
    uint32_t schedule;         /* position in cs_schedules */
    uint32_t chunks;           /* stages of a pipeline rank */
    uint32_t recompute, inner; /* cs_advise_recompute, cs_advise_order */
    int64_t bucket;            /* bytes; CS_BUCKET_GIVEN: as the scenario has it */
    const cJSON *more;         /* {"/json/pointer": value, ...}: OSDP's changes besides, or NULL */
    double replicated;         /* with OSDP: the fraction of the parameters that is not sharded */
} cs_candidate;

static inline const cs_schedule *cs_candidate_schedule(const cs_candidate *candidate)
{
    return cs_schedules[candidate->schedule];
}

/* The pipeline rank that holds a stage. */
static inline uint32_t cs_candidate_rank(const cs_candidate *candidate, uint32_t stage)
{
    return cs_schedule_rank(cs_candidate_schedule(candidate), candidate->pipeline, stage);
}

/* Neighbouring devices over which its layers are divided. */
static inline uint32_t cs_candidate_places(const cs_candidate *candidate)
{
    return candidate->layer * candidate->space * candidate->context;
}

/* What candidates are made for; the document must live as long. */
typedef struct cs_advise_base {
    const cJSON *document; /* of the scenario */
    const char *path;      /* of its file */
    cs_advise_section section;
    uint32_t devices, node_devices; /* of the platform; 0: not known */
    uint32_t batch_size;
    uint32_t n_layers, n_experts, tokens; /* of the model; tokens of a sample */
    uint32_t space_rank;    /* dimensions of images: 0, the network is none of images */
    bool divisible;         /* the model has operators */
    bool lists_operators;   /* to be recomputed */
    cs_selective selective; /* to be recomputed where it lists none */
    bool has_rules;         /* for some layers, which "zero" does not decide */
    bool says_bucket;       /* the scenario, or its runtime's conventions */
    cs_runtime_rules rules; /* rules of the scenario's runtime */
} cs_advise_base;

/* Reads the section, and the scenario, whose own plan need not be possible. CS_INVALID where a key
 * is wrong, or the number of devices is not given. */
CS_MUST_CHECK cs_status cs_advise_base_read(const cJSON *document, const char *path,
                                            cs_arena *arena, cs_advise_base *base, cs_error *error);

/* Reads the scenario itself, all of it or, `unplanned`, without a plan. Where its own plan is not
 * possible, one that always is stands in its place: data parallelism, a sample for each device; if
 * `replaced` is not NULL it says so. CS_INVALID where that is not possible either: of its own
 * plan. */
CS_MUST_CHECK cs_status cs_advise_read_itself(const cJSON *document, const char *path,
                                              bool unplanned, cs_scenario *scenario, bool *replaced,
                                              cs_error *error);

typedef struct cs_candidates {
    uint32_t n, capacity;
    cs_candidate *items;
    cJSON *more;         /* owns what candidates have besides; or NULL */
    uint32_t n_excluded; /* plans that the runtime cannot run, and that are left out */
    uint32_t
        excluded[CS_RUNTIME_RULES_MOST]; /* number of these per rule, by the first broken one */
} cs_candidates;

void cs_candidates_finish(cs_candidates *candidates);

/* In an order that follows from the section alone. CS_LIMIT beyond CS_CANDIDATES_MAX. */
enum { CS_CANDIDATES_MAX = 1 << 20 };
CS_MUST_CHECK cs_status cs_candidates_make(const cs_advise_base *base, cs_candidates *candidates,
                                           cs_error *error);

/* Adds one with changes besides, which are the candidates' then, also when that fails; NULL stands
 * for memory that ran out. CS_LIMIT, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_candidates_add(const cs_advise_base *base, const cs_candidate *candidate,
                                          cJSON *more, cs_candidates *candidates, cs_error *error);

/* The first rule of the scenario's runtime that a candidate breaks; CS_RUNTIME_RULES_MOST: none. */
uint32_t cs_candidate_broken_rule(const cs_advise_base *base, const cs_candidate *candidate);

/* The scenario with the candidate's plan, to free with cJSON_Delete; parts of it are the base's.
 * NULL when memory runs out. */
cJSON *cs_candidate_document(const cs_advise_base *base, const cs_candidate *candidate);

/* Whether one device may stand for others that differ in their ways through the network, so that
 * times are estimates ("fold": "slowest"). */
bool cs_candidate_may_be_estimated(const cs_advise_base *base, const cs_candidate *candidate);

/* The scenario with its own plan, simulated as candidates are; the same. */
cJSON *cs_own_document(const cs_advise_base *base);

/* The same as changes: {"/json/pointer": value, ...}, as `--set` takes them. */
cJSON *cs_candidate_changes(const cs_advise_base *base, const cs_candidate *candidate);

/* "sim run PATH --set '/parallel=...' ...": what runs the plan by itself, for a shell; the caller
 * frees it. NULL when memory runs out. */
char *cs_candidate_command(const cs_advise_base *base, const cs_candidate *candidate,
                           const char *path);

/* "tensor 8 x pipeline 4 x data 2, zero 1; 1f1b, 32 micro-batches of 1". Returns `text`. */
char *cs_candidate_text(const cs_candidate *candidate, char *text, size_t size);

/* The axes that it uses, "data + tensor + pipeline": what pictures call a strategy. */
char *cs_candidate_strategy(const cs_candidate *candidate, char *text, size_t size);

enum { CS_CANDIDATE_TEXT_BYTES = 256 };

#endif

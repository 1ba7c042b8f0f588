/* The rules by which a point becomes a scenario, each for one section. Internal to sim/recipe.
 *
 * A rule writes its section as JSON, with the key and without a comma, and notes what is missing or
 * assumed. What it writes of a point that misses something is not read.
 */
#ifndef CS_VALIDATE_POINT_RULES_H
#define CS_VALIDATE_POINT_RULES_H

#include "sim/recipe/point-scenario.h"
#include "sim/workload/accelerator.h"

#include <stdio.h>

typedef struct cs_point_rules {
    const cs_point *point;
    cs_point_scenario *made;
    bool full; /* memory ran out */
} cs_point_rules;

/* Notes beyond CS_SCENARIO_NOTES, and those that are there already, are dropped. */
void cs_point_rules_miss(cs_point_rules *rules, const char *format, ...) CS_PRINTF(2, 3);
void cs_point_rules_assume(cs_point_rules *rules, const char *format, ...) CS_PRINTF(2, 3);

/* Whether the framework is Megatron-LM or built on its core: NeMo, Megatron-Bridge,
 * Megatron-DeepSpeed. */
bool cs_point_rules_megatron(const cs_point *point);

/* An argument of Megatron-LM's, or NULL. */
const cJSON *cs_point_rules_argument(const cs_point *point, const char *name);

/* Whether matrices are updated by Muon. An argument of Megatron-LM's counts, where a point has one:
 * goldens whose arguments say muon or dist_muon have another optimizer as stated. */
bool cs_point_rules_muon(const cs_point *point);

/* Micro-batches of a replica and step; 0 where neither they nor what they follow from are
 * stated. */
uint32_t cs_point_rules_micro_batches(const cs_point *point);

/* Whether the framework's name is that of who submitted to MLPerf. */
bool cs_point_rules_submission(const cs_point *point);

/* Stages of a pipeline rank: those that are stated, and the two of a V. */
uint32_t cs_point_rules_chunks(const cs_point *point);

/* DualPipe on P ranks is two replicas of DualPipeV on P / 2 each: ranks r and P - 1 - r hold the
 * same two stages and run the same passes, of half the micro-batches each, and reduce their
 * gradients together. All that differs is that in the middle a micro-batch goes on to the other
 * half, one message, where it stays on its device in DualPipeV. Changes the point's mesh and batch, of
 * which rules->point has copies, to those of the latter. */
void cs_point_rules_halve(cs_point_rules *rules, cs_point_parallel *mesh, cs_point_batch *batch);

/* Whether gradients are reduced while the backward still runs, and updated weights gathered while
 * the next forward does. */
bool cs_point_rules_overlaps(const cs_point *point);

/* Ranks that divide each expert; 0: as many as divide layers. */
uint32_t cs_point_rules_expert_tensor(const cs_point *point);

/* Whether gradients are summed in fp32, whatever the type of weights. */
bool cs_point_rules_sums_in_fp32(const cs_point *point);

/* Whether the point needs the section "parallel", and the section: "parallel": {...}. */
bool cs_point_rules_divides(const cs_point *point);
void cs_point_rules_mesh(cs_point_rules *rules, FILE *out);

/* Tokens of a sample, where several are packed into a sequence and do not attend to each other; 0:
 * a sample fills a sequence. */
uint32_t cs_point_rules_packed_tokens(cs_point_rules *rules);

/* Whether tokens are dropped that an expert has no place for. */
bool cs_point_rules_drops_tokens(cs_point_rules *rules);

/* A size of latent attention, whose key is spelt with underscores or, in Megatron-LM's arguments,
 * with hyphens; 0: not stated. */
uint32_t cs_point_rules_latent(const cs_point_model *model, const char *key, const char *hyphened);

/* Networks whose operators have the same names. */
typedef enum cs_point_family {
    CS_FAMILY_LLAMA,
    CS_FAMILY_GPT,
    CS_FAMILY_BERT,
    CS_FAMILY_T5,
    CS_FAMILY_OTHER
} cs_point_family;

cs_point_family cs_point_rules_family(cs_point_rules *rules);

/* Of the section "model", which operators are computed again and which have adapters: keys with a
 * comma in front of each. */
void cs_point_rules_operators(cs_point_rules *rules, FILE *out);

/* Of a point that offloads: "offload": {...}, with a comma behind it. */
void cs_point_rules_offload(cs_point_rules *rules, FILE *out);

/* "model": {...} */
void cs_point_rules_model(cs_point_rules *rules, FILE *out);

/* The pass times of a point that has measured ones: "model": {...}. */
void cs_point_rules_profile(cs_point_rules *rules, FILE *out);

/* "platform": {...} */
void cs_point_rules_platform(cs_point_rules *rules, FILE *out);

/* The runtime that a framework is, of `sim list runtime`; `note` gets what is assumed with it, or
 * NULL. */
const char *cs_point_rules_runtime(const cs_point *point, const char **note);

/* Whether what trained is Megatron Core, and no other program with the same conventions. */
bool cs_point_rules_core(const cs_point *point);

/* Whether its layers are TransformerEngine's, as Megatron Core's are unless it is told otherwise. */
bool cs_point_rules_engine(const cs_point *point);

/* "runtime": {...} */
void cs_point_rules_write_runtime(cs_point_rules *rules, FILE *out);

/* Whether a recipe has whole iterations in a graph, one kernel for an expert's MLP, and all-to-alls
 * beside layers of another micro-batch. */
bool cs_point_rules_graphs_iterations(const cs_point *point);

/* "schedule": {...} */
void cs_point_rules_schedule(cs_point_rules *rules, FILE *out);

/* What the framework keeps, where that is known: "memory": {...} */
void cs_point_rules_memory(cs_point_rules *rules, FILE *out);

/* The device of `sim list devices` that the point's GPU is; "" where it is none. */
const char *cs_point_rules_gpu(const cs_point *point);

/* Returns the facts of the point's device; zeroed if it has none. */
cs_device_facts cs_point_rules_facts(const cs_point *point);

/* Whether the point's GPUs are joined by NVLinks in a rack, and not only in nodes of eight. */
bool cs_point_rules_rack(const cs_point *point);

/* The same; NULL and noted as missing where it is none. */
const char *cs_point_rules_device(cs_point_rules *rules);

#endif

#include "sim/base/arena.h"
#include "sim/base/file.h"
#include "sim/base/units.h"
#include "sim/cli/osdp-report.h"
#include "sim/cli/output-name.h"
#include "sim/cli/scenario-option.h"
#include "sim/cli/workload-option.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL_SLICES = 4, USUAL_BATCHES = 1024, MOST_SLICES = 64 };

static const cs_option options[] = {
    {"surge", 0, "NAME",
     "Working memory of operators: the maximum, or their sum as in the paper's formula "
     "(default: maximum)",
     false, cs_osdp_surge_names},
    {"slices", 0, "[LAYERS=]N",
     "Slices that an operator may be cut into (default: 4, the paper's); for layers whose names "
     "match LAYERS, where * matches any text",
     true},
    {"gathers", 0, "N",
     "Gathers of sharded weights per step (default: 2; 3 with recomputation, as in the paper)"},
    {"max-batch", 0, "N", "Most samples per device (default: 1024)"},
    {"depth-first", 0, "N",
     "Also run the paper's own search, for at most N nodes per batch; 0: no limit"},
    {"simulate", 0, NULL, "Also choose plans and batches by simulation"},
    {"output", 'o', "FILE.json",
     "Save the scenario with OSDP's plan (with --simulate: the simulated plan)"},
    CS_OPTION_SET,
    {"json", 0, NULL, "Print JSON instead of a table"},
    {0},
};

/* ---- options ---- */

/* Reads "4" or "blocks.*=16". */
static cs_status read_slices(const char *given, cs_arena *arena, cs_osdp_slices *slices,
                             cs_error *error)
{
    const char *equals = strrchr(given, '='), *number = equals ? equals + 1 : given;
    char *end;
    const unsigned long n = strtoul(number, &end, 10);
    if (*number < '0' || *number > '9' || *end || n < 1 || n > MOST_SLICES)
        return cs_error_add(error, CS_USAGE,
                            "osdp: --slices must be N or LAYERS=N with N from 1 to %d, like 4 or "
                            "blocks.*=16 (got \"%s\")",
                            MOST_SLICES, given);
    *slices = (cs_osdp_slices){.most = (uint32_t)n};
    if (!equals)
        return CS_OK;
    slices->pattern = cs_arena_copy_length(arena, given, (size_t)(equals - given));
    return slices->pattern ? CS_OK : cs_error_no_memory(error);
}

static cs_status read_options(const cs_context *context, const cs_arguments *arguments,
                              cs_arena *arena, cs_osdp_options *how, cs_error *error)
{
    uint32_t surge = CS_OSDP_SURGE_MAXIMUM, nodes;
    *how = (cs_osdp_options){.simulate = cs_arguments_flag(arguments, "simulate"),
                             .progress = context->progress};
    CS_TRY(cs_output_check(arguments, "output", cs_endings_of_json, error));
    if (cs_arguments_value(arguments, "surge"))
        CS_TRY(cs_arguments_choice(arguments, "surge", cs_osdp_surge_names, &surge, error));
    how->surge = surge;
    if (cs_arguments_value(arguments, "gathers"))
        CS_TRY(cs_arguments_between(arguments, "gathers", 0, 1, UINT32_MAX, &how->gathers, error));
    CS_TRY(cs_arguments_between(arguments, "max-batch", USUAL_BATCHES, 1, UINT32_MAX,
                                &how->most_batch, error));
    CS_TRY(cs_arguments_count(arguments, "depth-first", 0, &nodes, error));
    how->depth_first =
        cs_arguments_value(arguments, "depth-first") ? (nodes ? nodes : UINT64_MAX) : 0;
    const char *const *texts;
    const size_t n = cs_arguments_values(arguments, "slices", &texts);
    cs_osdp_slices *slices = cs_arena_alloc(arena, n + 1, sizeof(*slices));
    if (!slices)
        return cs_error_no_memory(error);
    slices[0].most = USUAL_SLICES;
    for (size_t i = 0; i < n; i++)
        CS_TRY(read_slices(texts[i], arena, &slices[i + 1], error));
    how->slices = slices;
    how->n_slices = (uint32_t)n + 1;
    return CS_OK;
}

/* ---- results ---- */

static const cs_osdp_plan *found(const cs_osdp_study *study)
{
    const cs_osdp_row *row = &study->rows[CS_OSDP_ROW_OSDP];
    return study->simulated ? &row->fitted : &row->plan;
}

static cs_status save(const cs_osdp_study *study, const cJSON *document, const char *path,
                      cs_error *error)
{
    cJSON *root = cs_osdp_document(study, document, found(study));
    char *json = root ? cs_json_print(root) : NULL;
    cJSON_Delete(root);
    if (!json)
        return cs_error_no_memory(error);
    const cs_status status = cs_file_write(path, json, strlen(json), error);
    free(json);
    return status;
}

static cs_status show(const cs_context *context, const cs_arguments *arguments,
                      const cJSON *document, const cs_osdp_study *study, cs_error *error)
{
    const char *output = cs_arguments_value(arguments, "output");
    const bool printed = output && strcmp(output, "-") == 0;
    cs_status status = CS_OK;
    if (output && found(study)->found)
        status = save(study, document, output, error);
    if (status == CS_OK && cs_arguments_flag(arguments, "json") && !printed)
        status = cs_print_json(cs_osdp_json(study), context->out, error);
    else if (status == CS_OK && !printed)
        cs_osdp_print(study, context->out);
    if (status != CS_OK)
        return status;
    const char *name = study->scenario.name;
    if (found(study)->found)
        return CS_OK;
    if (study->rows[CS_OSDP_ROW_OSDP].plan.found)
        return cs_error_add(error, CS_LIMIT, "%s: no plan fits when it is simulated", name);
    return cs_error_add(
        error, CS_LIMIT,
        "%s: no plan fits: by the cost model one sample per device needs %s, devices have %s", name,
        cs_units_text((double)study->least_memory, CS_QUANTITY_BYTES, 4).s,
        cs_units_text((double)study->limit, CS_QUANTITY_BYTES, 4).s);
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    cs_osdp_options how;
    cs_osdp_study study = {0};
    cs_arena arena;
    cJSON *document = NULL;
    cs_arena_init(&arena);
    cs_status status = read_options(context, arguments, &arena, &how, error);
    if (status == CS_OK)
        status = cs_document_from(arguments, &document, error);
    if (status == CS_OK)
        status = cs_osdp_study_make(document, arguments->words[0], &how, &study, error);
    if (status == CS_OK)
        status = show(context, arguments, document, &study, error);
    cs_osdp_study_finish(&study);
    cJSON_Delete(document);
    cs_arena_finish(&arena);
    return status;
}

const cs_command cs_command_osdp = {
    .name = "osdp",
    .words = "SCENARIO.json",
    .min_words = 1,
    .max_words = 1,
    .summary = "choose the layers to shard, and the batch size",
    .doc = "Finds the layers to replicate and those to shard over the data-parallel devices, the "
           "number of slices, and the samples per device that give the highest throughput within "
           "a device's memory (OSDP, Jiang et al., IJCAI 2023). The search is exact. The plan is "
           "compared with plain data parallelism and FSDP, each with its own best batch, with "
           "FSDP with slices, and with OSDP without slices, and the contributions of modes, "
           "batch and slices are shown.\n\n"
           "Times and memory follow the paper's cost model, without overlap. With "
           "--simulate, the simulation chooses batches and plans and decides what fits. The "
           "scenario must have one stage and one micro-batch; its own zero and batch are "
           "ignored.",
    .options = options,
    .run = run,
};

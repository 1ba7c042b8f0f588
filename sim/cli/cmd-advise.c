#include "sim/base/file.h"
#include "sim/base/version.h"
#include "sim/cli/heap.h"
#include "sim/cli/output-name.h"
#include "sim/cli/scenario-option.h"
#include "sim/study/advise/advice-file.h"
#include "sim/study/advise/advise-report.h"

#include <stdlib.h>
#include <string.h>

static const cs_option options[] = {
    {"top", 0, "N", "Number of plans to rank and examine (default: 10)"},
    {"budget", 0, "TIME",
     "Time for all, such as 30s; what has been tried by then depends on the machine"},
    {"most", 0, "N", "Simulate at most N plans, the most promising first"},
    {"exhaustive", 0, NULL, "Simulate every plan, even those that cannot be better"},
    {"all", 0, NULL, "Rank all plans, also those that differ in details from a faster one"},
    {"resume", 0, NULL, "Continue a search that was stopped"},
    {"output", 'o', "FILE.h5", "Write all plans to a file, for `sim plot` and `sim report`"},
    CS_OPTION_JOBS,
    CS_OPTION_SET,
    {"json", 0, NULL, "Print one JSON object instead of the tables"},
    {0},
};

/* "30s", "2 min": as scenarios have times; a plain number is seconds. */
static cs_status read_budget(const cs_arguments *arguments, double *seconds, cs_error *error)
{
    const char *text = cs_arguments_value(arguments, "budget");
    cs_error why;
    cs_error_init(&why);
    *seconds = 0;
    if (!text)
        return CS_OK;
    if (cs_units_parse(text, CS_QUANTITY_TIME, seconds, &why) != CS_OK)
        return cs_error_add(error, CS_USAGE, "--budget: %s", why.text);
    return *seconds > 0
               ? CS_OK
               : cs_error_add(error, CS_USAGE, "--budget: must be above 0 (got \"%s\")", text);
}

static cs_status read_options(const cs_arguments *arguments, cs_advise_options *to, cs_error *error)
{
    CS_TRY(cs_output_check(arguments, "output", cs_endings_of_results, error));
    CS_TRY(cs_arguments_jobs(arguments, &to->jobs, error));
    CS_TRY(cs_arguments_between(arguments, "top", CS_ADVISE_TOP, 1, CS_ADVISE_TOP_MAX, &to->top,
                                error));
    CS_TRY(cs_arguments_between(arguments, "most", 0, 1, UINT32_MAX, &to->most, error));
    CS_TRY(read_budget(arguments, &to->budget, error));
    to->exhaustive = cs_arguments_flag(arguments, "exhaustive");
    to->all = cs_arguments_flag(arguments, "all");
    to->resume = cs_arguments_flag(arguments, "resume");
    if (to->resume && !cs_arguments_flag(arguments, "output"))
        return cs_error_add(error, CS_USAGE,
                            "advise: --resume goes with --output, whose journal it continues");
    return CS_OK;
}

static cs_status show(const cs_context *context, const cs_arguments *arguments,
                      const cs_advice *advice, const cJSON *document, cs_error *error)
{
    const char *output = cs_arguments_value(arguments, "output");
    cs_advice_shown shown = cs_advice_shown_of(advice, document, arguments->words[0]);
    shown.all = cs_arguments_flag(arguments, "all");
    const cs_advice_info info = {shown.name, shown.topology, SIM_VERSION, shown.path};
    CS_TRY(cs_arguments_flag(arguments, "json")
               ? cs_print_json(cs_advice_json(&shown), context->out, error)
               : cs_advice_print(&shown, context->out, error));
    if (!output || advice->interrupted)
        return CS_OK;
    CS_TRY(cs_advice_store(output, &info, advice, context->progress, error));
    cs_log_write(&context->log, CS_LOG_INFO, "wrote %s", output);
    return CS_OK;
}

/* "FILE.h5.journal" */
static cs_status name_journal(const char *output, char **journal, cs_error *error)
{
    const size_t bytes = strlen(output) + sizeof(".journal");
    *journal = malloc(bytes);
    if (!*journal)
        return cs_error_no_memory(error);
    snprintf(*journal, bytes, "%s.journal", output);
    return CS_OK;
}

static cs_status advise(const cs_context *context, const cs_arguments *arguments,
                        const cJSON *document, const cs_advise_options *how, cs_error *error)
{
    cs_advice advice = {0};
    cs_status status = cs_advise(document, arguments->words[0], how, &advice, error);
    if (cs_team_is_orphan(context->team) && how->journal)
        cs_log_write(&(cs_log){stderr, CS_LOG_INFO}, CS_LOG_INFO,
                     "what was simulated is in %s; --resume continues", how->journal);
    if (status != CS_OK)
        return status;
    if (!cs_team_helps(context->team))
        status = show(context, arguments, &advice, document, error);
    if (status == CS_OK && advice.interrupted)
        status = cs_error_add(error, CS_INTERRUPTED, "interrupted: %u of %u plans not evaluated",
                              advice.n_states[CS_CANDIDATE_OPEN], advice.candidates.n);
    else if (status == CS_OK && advice.n_rows == 0 && how->budget > 0 && advice.cut &&
             !cs_team_helps(context->team))
        status =
            cs_error_add(error, CS_LIMIT,
                         "%s: the budget ended before a plan that fits was found: give it more "
                         "time, or narrow the search (/advise)",
                         arguments->words[0]);
    else if (status == CS_OK && advice.n_rows == 0 && !advice.cut && !cs_team_helps(context->team))
        status = cs_error_add(error, CS_LIMIT, "%s: no plan fits%s", arguments->words[0],
                              advice.candidates.n_excluded > 0
                                  ? ", of those that the runtime can run (/runtime)"
                                  : "");
    cs_advice_finish(&advice);
    return status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    cs_advise_options how = {
        .program_version = SIM_VERSION, .progress = context->progress, .team = context->team};
    const char *output = cs_arguments_value(arguments, "output");
    char *journal = NULL;
    cJSON *document = NULL;
    cs_heap_keep();
    CS_TRY(read_options(arguments, &how, error));
    CS_TRY(cs_document_from(arguments, &document, error));
    cs_status status = cs_runtime_assume(document, arguments->words[0], "search", error);
    if (output && status == CS_OK)
        status = cs_file_check_output(output, error);
    if (output && status == CS_OK)
        status = name_journal(output, &journal, error);
    how.journal = journal;
    if (status == CS_OK)
        status = advise(context, arguments, document, &how, error);
    free(journal);
    cJSON_Delete(document);
    return status;
}

const cs_command cs_command_advise = {
    .name = "advise",
    .words = "SCENARIO.json",
    .min_words = 1,
    .max_words = 1,
    .summary = "find the best plans to train a model on a cluster",
    .doc = "Tries the ways to split the model over the platform's devices, combined with "
           "schedules, micro-batches, recomputation and ZeRO stages. Simulates the plans, in "
           "threads, and ranks those that fit in memory. The scenario's own plan is one "
           "candidate among many; the section \"advise\" narrows the search.\n\n"
           "Proven bounds leave out plans that cannot be better than those found, or cannot fit "
           "(docs/how-to/find-a-plan.md). The answer is therefore the same as if all plans were "
           "simulated. It depends neither on the number of threads nor on the number of "
           "processes that mpirun starts (docs/how-to/many-machines.md). Ctrl-C prints the best "
           "plans so far.",
    .options = options,
    .shared = true,
    .run = run,
};

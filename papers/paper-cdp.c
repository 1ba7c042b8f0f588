/* Fournier and Oyallon, "Cyclic Data Parallelism for Efficient Parallelism of Deep Neural
 * Networks", 2024 (arXiv 2403.08837). */
#include "papers/papers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a run of equal stages is measured by: N stages of 1 GB of weights and of activations
 * ---- */

static const double GB = 1e9;

/* Bytes of messages that are sent for the mini-batch in the middle of the run. */
static double volume(const cs_scenario *scenario, const cs_graph *graph)
{
    int64_t sum = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        if (cls->kind == CS_TRANSFER &&
            cs_graph_mini_batch(graph, task) == scenario->job.iterations / 2)
            sum += cls->bytes;
    }
    return (double)sum;
}

/* The most messages that follow each other at one instant of an ideal network. */
static cs_status longest_chain(const cs_graph *graph, const cs_trace *trace, uint32_t *longest,
                               cs_error *error)
{
    uint32_t *depth = calloc(graph->n_tasks + 1ULL, sizeof(*depth));
    if (!depth)
        return cs_error_no_memory(error);
    *longest = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        if (cs_graph_class(graph, task)->kind != CS_TRANSFER)
            continue;
        uint32_t n, own = depth[task] + 1;
        const uint32_t *successors = cs_graph_successors(graph, task, &n);
        *longest = own > *longest ? own : *longest;
        for (uint32_t s = 0; s < n; s++)
            if (trace->spans[successors[s]].start == trace->spans[task].end &&
                own > depth[successors[s]])
                depth[successors[s]] = own;
    }
    free(depth);
    return CS_OK;
}

typedef struct peaks {
    double activations;       /* of the device that has most */
    double total_activations; /* of all devices at one instant */
    double parameters;        /* weights and other versions of them, of the device that has most */
    double other_versions;    /* the other versions alone */
} peaks;

/* Peaks within [from, until). Memory allocated before `from` and not freed counts. */
static cs_status find_peaks(const cs_trace *trace, cs_time from, cs_time until, peaks *found,
                            cs_error *error)
{
    int64_t *now = calloc((size_t)trace->n_devices * CS_N_CATEGORIES, sizeof(*now)), total = 0;
    if (!now)
        return cs_error_no_memory(error);
    *found = (peaks){0};
    cs_memory_sample sample, next;
    cs_samples_rewind(trace->samples);
    bool more = cs_samples_next(trace->samples, &next);
    while (more && next.time < until) {
        sample = next;
        more = cs_samples_next(trace->samples, &next);
        int64_t *of = now + (size_t)sample.device * CS_N_CATEGORIES;
        if (sample.category == CS_MEMORY_ACTIVATIONS)
            total += sample.bytes - of[sample.category];
        of[sample.category] = sample.bytes;
        /* the value when the instant is over, if it lasts into the window */
        if (more && (next.time == sample.time || next.time <= from))
            continue;
        found->total_activations = fmax(found->total_activations, (double)total);
        for (uint32_t d = 0; d < trace->n_devices; d++) {
            of = now + (size_t)d * CS_N_CATEGORIES;
            found->activations = fmax(found->activations, (double)of[CS_MEMORY_ACTIVATIONS]);
            found->parameters = fmax(
                found->parameters, (double)(of[CS_MEMORY_WEIGHTS] + of[CS_MEMORY_WEIGHT_VERSIONS]));
            found->other_versions =
                fmax(found->other_versions, (double)of[CS_MEMORY_WEIGHT_VERSIONS]);
        }
    }
    free(now);
    return CS_OK;
}

/* Start of a mini-batch's first forward, and of the next mini-batch's. */
static void find_window(const cs_graph *graph, const cs_trace *trace, uint32_t batch, cs_time *from,
                        cs_time *until)
{
    cs_time starts[2] = {CS_TIME_MAX, CS_TIME_MAX};
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const uint32_t after = cs_graph_mini_batch(graph, task) - batch;
        if (cs_graph_class(graph, task)->kind == CS_FORWARD && after < 2 &&
            trace->spans[task].start < starts[after])
            starts[after] = trace->spans[task].start;
    }
    *from = starts[0];
    *until = starts[1];
}

/* ---- messages that ZeRO needs if states go from user to user ---- */

typedef struct use {
    cs_time start;
    uint32_t device;
} use;

static int compare_uses(const void *a, const void *b)
{
    const use *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* How often the device changes along the uses, in the order of time. */
static uint32_t count_moves(use *uses, uint32_t n)
{
    uint32_t moves = 0;
    qsort(uses, n, sizeof(*uses), compare_uses);
    for (uint32_t i = 1; i < n; i++)
        moves += uses[i].device != uses[i - 1].device;
    return moves;
}

/* Bytes of weights and gradients that the mini-batch in the middle of the run sends if each version
 * goes from the backward that makes it to its first reader, and from each reader to the next one,
 * and the sum of gradients from each backward to the next. */
static cs_status sent_to_readers(const cs_scenario *scenario, const cs_graph *graph,
                                 const cs_trace *trace, double *sum, cs_error *error)
{
    const uint32_t batch = scenario->job.iterations / 2;
    use *backwards = calloc(2ULL * graph->n_tasks + 1, sizeof(*backwards));
    use *readers = backwards + graph->n_tasks;
    if (!backwards)
        return cs_error_no_memory(error);
    *sum = 0;
    for (uint32_t stage = 0; stage < scenario->plan->n_stages; stage++) {
        uint32_t n_backwards = 0, n_readers = 1;
        for (uint32_t task = 0; task < graph->n_tasks; task++) {
            const cs_class *cls = cs_graph_class(graph, task);
            const use own = {trace->spans[task].start, cls->device};
            if (cls->stage != stage || (cls->kind != CS_FORWARD && cls->kind != CS_BACKWARD))
                continue;
            if (cls->kind == CS_BACKWARD && cs_graph_mini_batch(graph, task) == batch)
                backwards[n_backwards++] = own;
            if (trace->versions[task] == batch + 1) /* which those backwards make */
                readers[n_readers++] = own;
        }
        const uint32_t gradients = count_moves(backwards, n_backwards);
        readers[0] = backwards[n_backwards > 0 ? n_backwards - 1 : 0];
        *sum += (double)count_moves(readers, n_readers) *
                    (double)scenario->job.stages[stage].weight_bytes +
                (double)gradients * (double)scenario->job.stages[stage].gradient_bytes;
    }
    free(backwards);
    return CS_OK;
}

/* Start of the second micro-batch after the first, s. */
static double start_delay(const cs_graph *graph, const cs_trace *trace)
{
    cs_time first[2] = {CS_TIME_MAX, CS_TIME_MAX};
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const uint32_t item = cs_graph_micro_batch(graph, task);
        if (cs_graph_class(graph, task)->kind == CS_FORWARD &&
            cs_graph_mini_batch(graph, task) == 0 && item < 2 &&
            trace->spans[task].start < first[item])
            first[item] = trace->spans[task].start;
    }
    return cs_time_seconds(first[1] - first[0]);
}

static cs_status measure(const cs_scenario *scenario, const cs_simulation *simulation,
                         cJSON *result, cs_error *error)
{
    const cs_graph *graph = &simulation->graph;
    const cs_trace *trace = &simulation->trace;
    uint32_t steps = 0;
    peaks found = {0};
    double to_readers = NAN;
    cs_time from, until;
    find_window(graph, trace, scenario->job.iterations / 2, &from, &until);
    CS_TRY(longest_chain(graph, trace, &steps, error));
    CS_TRY(find_peaks(trace, from, until, &found, error));
    if (trace->versions)
        CS_TRY(sent_to_readers(scenario, graph, trace, &to_readers, error));
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"devices", trace->n_devices},
        {"activations", found.activations / GB},
        {"total_activations", found.total_activations / GB},
        {"parameters", found.parameters / GB},
        {"other_versions", found.other_versions / GB},
        {"sent", volume(scenario, graph) / GB},
        {"sent_to_readers", to_readers / GB},
        {"steps", steps},
        {"start_delay_s", start_delay(graph, trace)},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!cs_json_add_number(result, numbers[i].key, numbers[i].value))
            return cs_error_no_memory(error);
    return CS_OK;
}

static cs_status run_stages(const void *context, const cJSON *document, const cs_progress *progress,
                            cJSON **result, cs_error *error)
{
    return cs_study_run(context, document, measure, progress, result, error);
}

/* ---- figure 1 ---- */

static cs_status show_timelines(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const char *const names[] = {"DP", "CDP-v1", "CDP-v2"};
    const cs_study *study = studies;
    CS_TRY(cs_study_all_done(study, error));
    cs_page_text(page, "Rows are workers; one time step is 1 s, each worker computes one "
                       "micro-batch per training step on stages 1, 2, 3 and back.");
    const uint32_t n = cs_study_length(study, 0) < 3 ? cs_study_length(study, 0) : 3;
    for (uint32_t k = 0; k < n; k++)
        cs_page_run(page, study, k, 20, cs_page_format(page, "%s, N = 3", names[k]));
    for (uint32_t k = 0; k < n; k++) {
        const bool cyclic = k > 0;
        cs_page_claim(
            page, &(cs_paper_claim){
                      .what = cs_page_format(page, "%s: time steps of a training step", names[k]),
                      .place = "figure 1, section 3.1",
                      .form = "2 N",
                      .paper = 6,
                      .ours = cs_study_number(study, k, "iteration_time_s"),
                      .unit = ""});
        cs_page_claim(
            page, &(cs_paper_claim){.what = cs_page_format(
                                        page, "%s: time steps between two micro-batches", names[k]),
                                    .place = "figure 1",
                                    .paper = cyclic ? 2 : 0,
                                    .ours = cs_study_number(study, k, "start_delay_s"),
                                    .unit = ""});
        cs_page_claim(
            page,
            &(cs_paper_claim){.what = cs_page_format(
                                  page, "%s: most activations of all workers, in stages", names[k]),
                              .place = "sections 3.1, 3.2, 4.1",
                              .form = cyclic ? "N (N + 1)/2" : "N N",
                              .paper = cyclic ? 6 : 9,
                              .ours = cs_study_number(study, k, "total_activations"),
                              .unit = ""});
    }
    return CS_OK;
}

/* ---- figure 2 and table 1 ---- */

enum { SINGLE, MULTI, MODEL_PARALLEL, PIPELINE, ZERO, N_SETTINGS };

static const char *const setting_names[N_SETTINGS] = {"single GPU", "multi-GPU", "model parallel",
                                                      "pipeline", "ZeRO"};

typedef struct place_in_table {
    const cs_study *study;
    uint32_t size, setting, kind; /* kind 1: cyclic */
    double n;
} place_in_table;

enum { RING, TREE }; /* algorithms of collectives */

/* `free_activations`: of the same run with activations of no bytes, which sends states alone. */
static double number_of(const place_in_table *at, const char *key, bool free_activations,
                        uint32_t algorithm)
{
    const uint32_t point = cs_study_point(
        at->study, (uint32_t[]){at->size, at->setting, at->kind, free_activations, algorithm});
    return cs_study_number(at->study, point, key);
}

static double number_at(const place_in_table *at, const char *key)
{
    return number_of(at, key, false, RING);
}

static const char *name_of(cs_page *page, const place_in_table *at, const char *what)
{
    return cs_page_format(page, "%s%s, N = %g: %s", setting_names[at->setting],
                          at->kind ? ", cyclic" : "", at->n, what);
}

/* The paper's value in figure 2; NaN: none. */
static double in_figure(const place_in_table *at, uint32_t panel)
{
    const double n = at->n, half = n * (n + 1) / 2;
    const double said[3][N_SETTINGS][2] = {
        {{1, 1}, {n, n}, {n * n, half}, {NAN, n}, {n, n}},
        {{n * n, half}, {n * n, half}, {n * n, half}, {NAN, half}, {n * n, half}},
        {{0, 0}, {NAN, 1}, {NAN, 1}, {NAN, 1}, {NAN, 1}},
    };
    return said[panel][at->setting][at->kind];
}

static void add_bars(cs_page *page, const place_in_table *first)
{
    static const char *const titles[] = {"GPUs", "activations of all GPUs, in stages",
                                         "messages in a row"};
    static const char *const keys[] = {"devices", "total_activations", "steps"};
    static const char *const names[] = {"DP, paper", "DP", "cyclic, paper", "cyclic (CDP-v2)"};
    cs_chart_draft *draft = cs_page_draft(page, 3, 4, N_SETTINGS);
    if (!draft)
        return;
    for (uint32_t i = 0; i < 12; i++) {
        place_in_table at = *first;
        at.kind = i % 4 / 2;
        draft->panels[i / 4].title = titles[i / 4];
        draft->series[i].name = names[i % 4];
        for (at.setting = 0; at.setting < N_SETTINGS; at.setting++)
            draft->y[i][at.setting] = i % 2 ? number_at(&at, keys[i / 4]) : in_figure(&at, i / 4);
    }
    draft->chart.subtitle = cs_page_format(
        page,
        "N = %g equal stages; the paper draws no pipeline without CDP, and gives no number of "
        "messages of collectives",
        first->n);
    draft->chart.bars = true;
    draft->chart.names = setting_names;
    draft->chart.n_names = N_SETTINGS;
    cs_page_chart(page, &draft->chart);
}

typedef struct cell {
    const char *what, *form, *unit;
    double paper, ours;
    const char *why;
} cell;

static void claim_cell(cs_page *page, const place_in_table *at, const char *place, cell c)
{
    cs_page_claim(page, &(cs_paper_claim){.what = name_of(page, at, c.what),
                                          .place = place,
                                          .form = c.form,
                                          .paper = c.paper,
                                          .ours = c.ours,
                                          .unit = c.unit,
                                          .why = c.why});
}

/* The caption of figure 2, whose drawing has N = 3. */
static void claim_half(cs_page *page, const cs_study *study, uint32_t size)
{
    const double n = cs_study_axis_number(study, 0, size);
    const place_in_table plain = {study, size, SINGLE, 0, n}, cyclic = {study, size, SINGLE, 1, n};
    claim_cell(
        page, &cyclic, "caption of figure 2",
        (cell){"less activations than without", "\"a memory reduction of half\"", " %", 50,
               100 * (1 - number_at(&cyclic, "activations") / number_at(&plain, "activations")),
               "(N - 1)/(2 N): a third with the N = 3 that is drawn, a half as N grows"});
}

static cs_status show_settings(const cs_study *studies, cs_page *page, cs_error *error)
{
    CS_TRY(cs_study_all_done(studies, error));
    const double n = cs_study_axis_number(studies, 0, 0);
    const place_in_table first = {studies, 0, 0, 0, n};
    const struct {
        uint32_t setting, kind;
        const char *what, *key, *form;
        double paper;
    } rows[] = {
        {SINGLE, 0, "activations, in stages", "activations", "N N", n * n},
        {SINGLE, 1, "activations, in stages", "activations", "N (N + 1)/2", n * (n + 1) / 2},
        {MODEL_PARALLEL, 0, "GPUs", "devices", "N N", n * n},
        {MODEL_PARALLEL, 1, "GPUs", "devices", "N (N + 1)/2", n * (n + 1) / 2},
        {PIPELINE, 1, "GPUs", "devices", "N", n},
        {MULTI, 1, "messages in a row", "steps", NULL, 1},
        {MODEL_PARALLEL, 1, "messages in a row", "steps", NULL, 1},
        {PIPELINE, 1, "messages in a row", "steps", NULL, 1},
        {ZERO, 1, "messages in a row", "steps", NULL, 1},
    };
    add_bars(page, &first);
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        const place_in_table at = {studies, 0, rows[r].setting, rows[r].kind, n};
        claim_cell(page, &at, "figure 2",
                   (cell){rows[r].what, rows[r].form, "", rows[r].paper,
                          number_at(&at, rows[r].key), NULL});
    }
    claim_half(page, studies, 0);
    claim_half(page, studies, cs_study_length(studies, 0) - 1);
    return CS_OK;
}

/* Table 1 of the paper in the units of the measured numbers: N stages of 1 GB. */
typedef struct table_row {
    uint32_t setting, kind;
    const char *activations_form, *parameters_form, *volume_form, *devices_form;
    double activations, parameters, volume, devices;
} table_row;

/* Bytes of states that the run sends; of cyclic ZeRO those that it has to send. */
static double states_sent(const place_in_table *at)
{
    return at->setting == ZERO && at->kind ? number_at(at, "sent_to_readers")
                                           : number_of(at, "sent", true, RING);
}

/* The size of the tensors that are sent, as the paper counts: an all-reduce of a tensor among n
 * devices sends 2 (n - 1) times its size; activations are sent for N micro-batches, and their
 * gradients as well. */
static double tensor_volume(const place_in_table *at)
{
    const double activations = number_at(at, "sent") - number_of(at, "sent", true, RING);
    return states_sent(at) / (2 * (at->n - 1)) + activations / (2 * at->n);
}

static const char *parameters_why(const table_row *row)
{
    if (row->setting == SINGLE)
        return "depends on the implementation, as the paper says: all micro-batches share one copy "
               "here, and CDP keeps another version of most stages (table below)";
    if (row->setting == ZERO && !row->kind)
        return "a GPU has its own stage and the one that it computes with, \"a maximum of two "
               "stages\" (section 4.4)";
    return "a second version (table below): a micro-batch that began with theta_{t-1} reads it "
           "again in its backward, after theta_t has been made";
}

static void claim_row(cs_page *page, const place_in_table *at, const table_row *row)
{
    const char *zero_why =
        at->kind ? "(3 N - 2 - 1/N)/(2 (N - 1)) Psi_P if each version goes from reader to reader; "
                   "see the ratio to ZeRO below"
                 : "weights are broadcast twice and gradients are summed once: \"a 1.5 increase at "
                   "most\" over data parallelism (section 4.4)";
    const cell cells[] = {
        {"GPUs", row->devices_form, "", row->devices, number_at(at, "devices"), NULL},
        {"activations of a GPU", row->activations_form, " GB", row->activations,
         number_at(at, "activations"), NULL},
        {"parameters of a GPU", row->parameters_form, " GB", row->parameters,
         number_at(at, "parameters"), parameters_why(row)},
        {"volume", row->volume_form, " GB", row->volume, tensor_volume(at), zero_why},
    };
    for (size_t c = 0; c < sizeof(cells) / sizeof(cells[0]) && (c < 3 || row->volume_form); c++)
        claim_cell(page, at, "table 1", cells[c]);
}

/* How steps grow from a small N to a large one. */
static void claim_steps(cs_page *page, const place_in_table *small, const place_in_table *large)
{
    const bool collective = !large->kind && large->setting != PIPELINE;
    cs_page_claim(
        page,
        &(cs_paper_claim){
            .what = cs_page_format(page, "%s%s: steps with N = %g over those with N = %g",
                                   setting_names[large->setting], large->kind ? ", cyclic" : "",
                                   large->n, small->n),
            .place = "table 1",
            .form = collective ? "O(log N): log N over log N" : "O(1)",
            .paper = collective ? log(large->n) / log(small->n) : 1,
            .ours = number_of(large, "steps", false, TREE) / number_of(small, "steps", false, TREE),
            .unit = ""});
}

/* Quotient of two rows of the table: states sent by CDP and by DP. */
static void claim_ratio(cs_page *page, const cs_study *study, uint32_t size, uint32_t setting,
                        double paper)
{
    const double n = cs_study_axis_number(study, 0, size);
    const place_in_table cyclic = {study, size, setting, 1, n},
                         plain = {study, size, setting, 0, n};
    cs_page_claim(page, &(cs_paper_claim){
                            .what = cs_page_format(page, "%s, N = %g: states sent, cyclic over DP",
                                                   setting_names[setting], n),
                            .place = "table 1, two rows",
                            .paper = paper,
                            .ours = states_sent(&cyclic) / states_sent(&plain),
                            .decimals = 1,
                            .unit = "",
                            .why = "(3 N - 2 - 1/N) over 3 (N - 1): 1 as N grows"});
}

/* Section 4.3: GPUs that can keep one micro-batch's activations of one stage, and a mini-batch of N
 * micro-batches. A pipeline's first GPU keeps `kept` times as much, so that micro-batches have to
 * be as much smaller, and as many pipelines compute side by side. */
static void claim_efficiency(cs_page *page, const cs_study *study, uint32_t size)
{
    const double n = cs_study_axis_number(study, 0, size);
    const place_in_table model = {study, size, MODEL_PARALLEL, 1, n},
                         pipeline = {study, size, PIPELINE, 1, n};
    const double devices = number_at(&model, "devices");
    const double kept = number_at(&pipeline, "activations") / number_at(&model, "activations");
    const double replicas = kept * number_at(&pipeline, "devices");
    const char *of = cs_page_format(page, "GPUs of equal memory, batch B, N = %g", n);
    const cs_paper_claim claims[] = {
        {.what = cs_page_format(page, "%s: model parallel, cyclic", of),
         .form = "N (N + 1)/2",
         .paper = n * (n + 1) / 2,
         .ours = devices},
        {.what = cs_page_format(page,
                                "N = %g: part of batch B that one pipeline of N GPUs can keep", n),
         .form = "1/N",
         .paper = 1 / n,
         .ours = 1 / kept,
         .decimals = 4},
        {.what = cs_page_format(page, "%s: pipelines with DP", of),
         .form = "N N",
         .paper = n * n,
         .ours = replicas},
        {.what = cs_page_format(page, "%s: pipelines with DP over model parallel, cyclic", of),
         .form = "2 times",
         .paper = 2,
         .ours = replicas / devices,
         .decimals = 1,
         .why = "2 N/(N + 1), which is 2 as N grows"},
    };
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        cs_paper_claim claim = claims[i];
        claim.place = "section 4.3";
        claim.unit = "";
        cs_page_claim(page, &claim);
    }
}

static void add_measured(cs_page *page, const cs_study *study, const table_row *rows, size_t n_rows,
                         const uint32_t *sizes)
{
    cs_page_table(page, "Measured values. Volume is the sum of all messages, over each hop.",
                  "setting\tN\tweights of a GPU\tof them other versions\tstates sent\tsent if each "
                  "version goes to its next reader\tactivations sent\tsteps, ring\tsteps, tree");
    for (size_t r = 0; r < 2 * n_rows; r++) {
        const table_row *row = &rows[r / 2];
        const uint32_t size = sizes[r % 2];
        const place_in_table at = {study, size, row->setting, row->kind,
                                   cs_study_axis_number(study, 0, size)};
        const double states = number_of(&at, "sent", true, RING);
        cs_page_row(page, "%s%s\t%g\t%g GB\t%g GB\t%g GB\t%s\t%g GB\t%g\t%g",
                    setting_names[row->setting], row->kind ? ", cyclic" : "", at.n,
                    number_at(&at, "parameters"), number_at(&at, "other_versions"), states,
                    row->setting == ZERO && row->kind
                        ? cs_page_format(page, "%g GB", number_at(&at, "sent_to_readers"))
                        : "",
                    number_at(&at, "sent") - states, number_at(&at, "steps"),
                    number_of(&at, "steps", false, TREE));
    }
    cs_page_text(
        page, "Cyclic ZeRO as it is simulated sends both versions of a stage, and the gradients, "
              "to each user: (6 N - 7) Psi_P. Sent to the next reader of its version it is "
              "(3 N - 2 - 1/N) Psi_P, against 3 (N - 1) Psi_P of ZeRO. States of an optimizer "
              "are not counted. A tree takes 1 + 2 log2 N steps for an all-reduce and 1 + log2 N "
              "for a broadcast, a ring 2 (N - 1) and N - 1.");
}

static cs_status show_table(const cs_study *studies, cs_page *page, cs_error *error)
{
    const uint32_t last = cs_study_length(studies, 0) - 1, size = last > 0 ? last - 1 : 0;
    const uint32_t sizes[] = {size, last};
    const double n = cs_study_axis_number(studies, 0, size), half = n * (n + 1) / 2;
    const double most = cs_study_axis_number(studies, 0, last);
    const table_row rows[] = {
        {SINGLE, 0, "N B Psi_A", "N Psi_P", NULL, NULL, n * n, n * n, 0, 1},
        {SINGLE, 1, "(N + 1)/2 B Psi_A", "(N + 1)/2 Psi_P", NULL, NULL, half, half, 0, 1},
        {MULTI, 0, "B Psi_A", "Psi_P", "Psi_P", "N", n, n, n, n},
        {MULTI, 1, "B Psi_A", "Psi_P", "Psi_P", "N", n, n, n, n},
        {MODEL_PARALLEL, 0, "B Psi_A/N", "Psi_P/N", "Psi_P + B Psi_int", "N N", 1, 1, 2 * n - 1,
         n * n},
        {MODEL_PARALLEL, 1, "B Psi_A/N", "Psi_P/N", "Psi_P/2 + B Psi_int", "N (N + 1)/2", 1, 1,
         1.5 * n - 1, half},
        {PIPELINE, 1, "B Psi_A", "Psi_P/N", "B Psi_int", "N", n, 1, n - 1, n},
        {ZERO, 0, "B Psi_A", "Psi_P/N", "Psi_P", "N", n, 1, n, n},
        {ZERO, 1, "B Psi_A", "Psi_P/N", "Psi_P", "N", n, 1, n, n},
    };
    enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };
    CS_TRY(cs_study_all_done(studies, error));
    cs_page_text(
        page, "N equal stages with weights and activations of 1 GB each, in a steady "
              "mini-batch: B Psi_A and Psi_P are N GB, B Psi_int is N - 1 GB. The paper's volume "
              "is the size of the tensors that are communicated. Bytes of states are therefore "
              "divided by 2 (N - 1), which is how many times its size an all-reduce of a tensor "
              "sends, and bytes of activations by 2 N, for N micro-batches and two directions.");
    for (size_t r = 0; r < N_ROWS; r++)
        claim_row(page, &(place_in_table){studies, size, rows[r].setting, rows[r].kind, n},
                  &rows[r]);
    for (size_t r = 0; r < N_ROWS; r++)
        if (rows[r].volume_form)
            claim_steps(page, &(place_in_table){studies, size, rows[r].setting, rows[r].kind, n},
                        &(place_in_table){studies, last, rows[r].setting, rows[r].kind, most});
    claim_ratio(page, studies, last, MULTI, 1);
    claim_ratio(page, studies, last, MODEL_PARALLEL, 0.5);
    claim_ratio(page, studies, last, ZERO, 1);
    claim_efficiency(page, studies, last);
    add_measured(page, studies, rows, N_ROWS, sizes);
    return CS_OK;
}

/* ---- figure 4 ---- */

/* What a worker keeps from `time` on, until the next step. */
typedef struct memory_step {
    double time, bytes;
} memory_step;

typedef struct memory_curve {
    memory_step *steps;
    uint32_t n;
    double period;
} memory_curve;

/* What the memory of a pass is made of. */
typedef enum counted { KEPT, WITH_GRADIENTS, TRACKED, N_COUNTED } counted;

static const char *const counted_names[N_COUNTED] = {"what layers keep for backward",
                                                     "with gradients of weights",
                                                     "with gradients of weights and workspaces"};

static void add_step(memory_curve *curve, double time, double bytes)
{
    curve->steps[curve->n++] = (memory_step){time, bytes};
}

/* Layer by layer: what a layer keeps is there from the start of its forward to the end of its
 * backward, gradients of its weights from its backward to the end of the pass. A GPU's memory less
 * the parameters (TRACKED) also has the workspace of the layer that computes. */
static cs_status make_curve(const cs_model *model, counted what, memory_curve *curve,
                            cs_error *error)
{
    const double all = what == TRACKED;
    const double gradients = what == KEPT ? 0 : (double)cs_model_gradient_ratio(model);
    const uint32_t n = model->n_layers;
    double time = 0, bytes = 0;
    *curve = (memory_curve){.steps = calloc(2ULL * n, sizeof(memory_step))};
    if (!curve->steps)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++) {
        const cs_layer *layer = &model->layers[i];
        bytes += (double)layer->kept_bytes;
        add_step(curve, time, bytes + all * (double)layer->workspace_bytes);
        time += cs_time_seconds(layer->forward);
    }
    for (uint32_t i = n; i-- > 0;) {
        const cs_layer *layer = &model->layers[i];
        bytes += gradients * (double)layer->weight_bytes;
        add_step(curve, time, bytes + all * (double)layer->workspace_bytes);
        time += cs_time_seconds(layer->backward_input) + cs_time_seconds(layer->backward_weight);
        bytes -= (double)layer->kept_bytes;
    }
    curve->period = time;
    return CS_OK;
}

/* What a worker keeps at a time of its period; `time` is not negative. */
static double curve_at(const memory_curve *curve, double time)
{
    const double within = fmod(time, curve->period);
    uint32_t low = 0, high = curve->n;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (curve->steps[middle].time <= within)
            low = middle;
        else
            high = middle;
    }
    return curve->steps[low].bytes;
}

/* The mean of `workers` copies, each period/workers behind the one before. */
static double mean_at(const memory_curve *curve, uint32_t workers, double time)
{
    double sum = 0;
    for (uint32_t w = 0; w < workers; w++)
        sum += curve_at(curve, time + curve->period * w / workers);
    return sum / workers;
}

/* The mean has its peak where a copy makes a step. */
static double peak_of_mean(const memory_curve *curve, uint32_t workers)
{
    double peak = 0;
    for (uint32_t i = 0; i < curve->n; i++)
        peak = fmax(peak, mean_at(curve, workers, curve->steps[i].time));
    return peak;
}

enum { CURVE_POINTS = 400 };
static const uint32_t worker_numbers[] = {1, 4, 8, 32}; /* the first: DP, all at once */
enum { N_WORKERS = sizeof(worker_numbers) / sizeof(worker_numbers[0]) };

static bool add_curve(cJSON *list, const memory_curve *curve, uint32_t workers)
{
    cJSON *item = cs_json_add_item(list);
    cJSON *values = cJSON_AddArrayToObject(item, "bytes");
    bool good = values && cs_json_add_number(item, "workers", workers) &&
                cs_json_add_number(item, "peak", peak_of_mean(curve, workers));
    for (uint32_t i = 0; i < CURVE_POINTS && good; i++) {
        cJSON *value =
            cJSON_CreateNumber(mean_at(curve, workers, curve->period * i / CURVE_POINTS));
        good = value && cJSON_AddItemToArray(values, value);
    }
    return good;
}

static cs_status add_curves(const cs_model *model, cJSON *list, cs_error *error)
{
    for (counted what = KEPT; what < N_COUNTED; what++) {
        memory_curve curve;
        CS_TRY(make_curve(model, what, &curve, error));
        bool good = true;
        for (uint32_t w = 0; w < N_WORKERS && good; w++)
            good = add_curve(list, &curve, worker_numbers[w]);
        free(curve.steps);
        if (!good)
            return cs_error_no_memory(error);
    }
    return CS_OK;
}

static cs_status run_curves(const void *context, const cJSON *document, const cs_progress *progress,
                            cJSON **result, cs_error *error)
{
    cs_scenario scenario = {0};
    cJSON *report = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(report, "curves");
    cs_status status = cs_scenario_read_watched(document, context, progress, &scenario, error);
    if (status == CS_OK && (!list || !cs_json_add_number(report, "samples", scenario.batch_size)))
        status = cs_error_no_memory(error);
    if (status == CS_OK)
        status = add_curves(scenario.model, list, error);
    cs_scenario_finish(&scenario);
    if (status == CS_OK)
        *result = report;
    else
        cJSON_Delete(report);
    return status;
}

typedef struct network {
    const char *title;
    double paper; /* the reduction, %, that the curves come to */
} network;

static const cJSON *curve_of(const cs_study *study, uint32_t at, counted what, uint32_t w)
{
    return cJSON_GetArrayItem(cs_study_member(study, at, "curves"), (int)(what * N_WORKERS + w));
}

static double peak_of(const cs_study *study, uint32_t at, counted what, uint32_t w)
{
    const cJSON *peak = cs_json_member(curve_of(study, at, what, w), "peak");
    return cJSON_IsNumber(peak) ? peak->valuedouble : NAN;
}

/* By how much less than DP, %. */
static double reduction(const cs_study *study, uint32_t at, counted what, uint32_t w)
{
    return 100 * (1 - peak_of(study, at, what, w) / peak_of(study, at, what, 0));
}

/* The paper's picture is not in numbers: its reduction is drawn as a line, below DP's peak here. */
static void draw_curves(cs_page *page, const cs_study *study, const network *networks, uint32_t n)
{
    enum { SERIES = N_WORKERS + 1 };
    cs_chart_draft *draft = cs_page_draft(page, n, SERIES, CURVE_POINTS);
    if (!draft)
        return;
    for (uint32_t i = 0; i < n * SERIES; i++) {
        const uint32_t at = i / SERIES, w = i % SERIES;
        const double line = peak_of(study, at, TRACKED, 0) * (1 - networks[at].paper / 100);
        const cJSON *list = cs_json_member(curve_of(study, at, TRACKED, w), "bytes");
        const cJSON *value = w < N_WORKERS && list ? list->child : NULL;
        for (uint32_t p = 0; p < CURVE_POINTS; p++) {
            draft->x[i][p] = (double)p / CURVE_POINTS;
            draft->y[i][p] = w == N_WORKERS ? line / GB : value ? value->valuedouble / GB : NAN;
            value = value ? value->next : NULL;
        }
        draft->panels[at].title = networks[at].title;
        draft->series[i].name = w == 0 ? "DP"
                                : w == N_WORKERS
                                    ? "DP's peak less the paper's 30 % and 42 %"
                                    : cs_page_format(page, "CDP, N = %u", worker_numbers[w]);
        draft->series[i].dashed = w > 0;
    }
    draft->chart.subtitle = "mean of N copies of one worker's curve, T/N apart; all but parameters";
    draft->chart.x_title = "time / T";
    draft->chart.y_title = "memory of a worker (GB)";
    cs_page_chart(page, &draft->chart);
}

/* The paper gives the reduction that the curves come to as N grows, and says no number for N = 4 and
 * N = 8. */
static void claim_reduction(cs_page *page, const cs_study *study, const network *networks,
                            uint32_t at)
{
    const uint32_t last = N_WORKERS - 1;
    cs_page_claim(
        page,
        &(cs_paper_claim){
            .what = cs_page_format(page, "%s, N = %u: less memory than DP", networks[at].title,
                                   worker_numbers[last]),
            .place = "figure 4, section 5",
            .relation = CS_ABOUT,
            .paper = networks[at].paper,
            .ours = reduction(study, at, TRACKED, last),
            .unit = " %",
            .why = cs_page_format(
                page,
                "without workspaces %.1f %%, without gradients of weights as well %.1f %% "
                "(table below); the paper's batch, and the workspaces that its kernels took, "
                "are not given",
                reduction(study, at, WITH_GRADIENTS, last), reduction(study, at, KEPT, last))});
}

static cs_status show_activations(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const network networks[] = {{"ResNet-50", 30}, {"ViT-B/16", 42}};
    CS_TRY(cs_study_all_done(studies, error));
    const uint32_t n = cs_study_length(studies, 0) < 2 ? cs_study_length(studies, 0) : 2;
    cs_page_text(page, "The paper's recipe: the memory of one worker's forward and backward pass "
                       "without its parameters, N copies of that curve T/N apart, and their mean. "
                       "Layers are estimated on an A100 for 32 samples.");
    draw_curves(page, studies, networks, n);
    for (uint32_t at = 0; at < n; at++)
        claim_reduction(page, studies, networks, at);
    if (n > 1)
        cs_page_claim(page,
                      &(cs_paper_claim){.what = "ViT-B/16, DP: memory of a worker",
                                        .place = "section 5",
                                        .paper = 3.9,
                                        .ours = peak_of(studies, 1, TRACKED, 0) / GB,
                                        .decimals = 1,
                                        .unit = " GB",
                                        .why = "the paper's batch is not given; 32 samples here"});
    cs_page_table(page, "Peak of the mean, less than DP's, by what is counted.",
                  "network\tcounted\tDP\tN = 4\tN = 8\tN = 32");
    for (uint32_t i = 0; i < n * N_COUNTED; i++) {
        const uint32_t at = i / N_COUNTED;
        const counted what = i % N_COUNTED;
        cs_page_row(page, "%s\t%s\t%.2f GB\t%.1f %%\t%.1f %%\t%.1f %%", networks[at].title,
                    counted_names[what], peak_of(studies, at, what, 0) / GB,
                    reduction(studies, at, what, 1), reduction(studies, at, what, 2),
                    reduction(studies, at, what, 3));
    }
    cs_page_text(page, "The sweep cdp-memory.json measures something different: N micro-batches on "
                       "one GPU, which computes one stage at a time.");
    return CS_OK;
}

static const cs_paper_figure figures[] = {
    {"cdp-fig1",
     "timelines of DP, CDP-v1 and CDP-v2",
     {{"papers/cdp-timelines.json", run_stages}},
     show_timelines},
    {"cdp-fig2",
     "settings with and without CDP, N = 3",
     {{"papers/cdp-table1.json", run_stages}},
     show_settings},
    {"cdp-table1",
     "activations, parameters, volume, steps and GPUs",
     {{"papers/cdp-table1.json", run_stages}},
     show_table},
    {"cdp-fig4",
     "activation memory of a worker against time",
     {{"papers/cdp-fig4.json", run_curves}},
     show_activations},
    {0},
};

const cs_paper cs_paper_cdp = {
    .name = "Cyclic data parallelism",
    .source = "Fournier and Oyallon, Cyclic Data Parallelism for Efficient Parallelism of Deep "
              "Neural Networks, 2024, arXiv 2403.08837",
    .left_out = "Not simulated: accuracy and loss (table 2, figure 3).",
    .figures = figures,
};

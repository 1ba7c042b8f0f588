/* Sweeps and searches for plans. */
#include "sim/base/text-stream.h"
#include "sim/library/handles.h"
#include "sim/run/print/print-json.h"
#include "sim/study/advise/advice-file.h"
#include "sim/study/advise/advise-report.h"
#include "sim/study/sweep/sweep-file.h"
#include "sim/study/sweep/sweep-report.h"
#include "sim/study/sweep/sweep-runs.h"
#include "sim/study/sweep/sweep-section.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t jobs_of(const clustersim_options *options)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (options->jobs > 0)
        return options->jobs;
    return processors > 0 ? (uint32_t)processors : 1;
}

/* ---- sweeps ---- */

typedef struct sweep {
    const clustersim_source *source;
    const clustersim_vary *vary;
    const cs_progress *progress;
    cs_swept swept;
    cs_sweep_results results;
    cs_journal journal; /* without a name */
    char *command;
} sweep;

/* "/json/pointer=VALUES" */
static char *assignment(const clustersim_change *change)
{
    const size_t bytes = strlen(change->pointer) + strlen(change->value) + 2;
    char *text = malloc(bytes);
    if (text)
        snprintf(text, bytes, "%s=%s", change->pointer, change->value);
    return text;
}

static cs_status vary_keys(const clustersim_vary *vary, cs_space *space, cs_error *error)
{
    cs_status status = vary->csv ? cs_space_read_csv(space, vary->csv, error) : CS_OK;
    if (vary->csv && (vary->n > 0 || vary->together))
        return cs_error_add(error, CS_USAGE, "vary: a file of points excludes keys and `together`");
    for (size_t i = 0; i < vary->n && status == CS_OK; i++) {
        char *text = assignment(&vary->keys[i]);
        status = text ? cs_space_vary(space, "vary", text, error) : cs_error_no_memory(error);
        free(text);
    }
    return status == CS_OK
               ? cs_space_close(space, vary->csv || vary->together ? CS_SPACE_LIST : CS_SPACE_GRID,
                                error)
               : status;
}

/* The same as the command's, so that the file is. */
static cs_status write_command(sweep *s, cs_error *error)
{
    const size_t n_sets = s->source->n_changes, n_varied = s->vary->n;
    const size_t n = n_sets + n_varied;
    cs_sweep_word *words = calloc(n + 2, sizeof(*words));
    char **texts = calloc(n + 1, sizeof(*texts));
    bool done = words && texts;
    size_t used = 0;
    for (; done && used < n; used++) {
        const bool is_set = used < n_sets;
        texts[used] =
            assignment(is_set ? &s->source->changes[used] : &s->vary->keys[used - n_sets]);
        done = texts[used] != NULL;
        words[used] = (cs_sweep_word){is_set ? "set" : "vary", texts[used]};
    }
    if (done && s->vary->together)
        words[used++] = (cs_sweep_word){"zip", NULL};
    if (done && s->vary->csv)
        words[used++] = (cs_sweep_word){"csv", s->vary->csv};
    s->command = done ? cs_sweep_command(s->source->path, words, used) : NULL;
    for (size_t i = 0; texts && i < n; i++)
        free(texts[i]);
    free(texts);
    free(words);
    return s->command ? CS_OK : cs_error_no_memory(error);
}

static cs_status prepare_sweep(sweep *s, cs_error *error)
{
    cs_space *space = &s->swept.sweep.space;
    CS_TRY(cs_library_document(s->source, &s->swept.base, error));
    const cJSON *section = cs_json_member(s->swept.base, "sweep");
    CS_TRY(section && s->vary->n == 0 && !s->vary->csv
               ? cs_sweep_section_read(s->source->path, section, space, error)
               : vary_keys(s->vary, space, error));
    cs_sweep_set_quantities(space);
    CS_TRY(write_command(s, error));
    CS_TRY(cs_swept_prepare(&s->swept, error));
    return cs_sweep_results_init(&s->results, space->n_points, error);
}

static cs_status write_sweep_text(const sweep *s, char **text, cs_error *error)
{
    const cs_space *space = &s->swept.sweep.space;
    cs_axis_values axes[CS_SPACE_AXES_MAX];
    cs_arena arena;
    size_t length;
    cs_status status = CS_OK;
    cs_arena_init(&arena);
    for (uint32_t a = 0; a < space->n_axes && status == CS_OK; a++)
        status = cs_axis_values_read(&space->axes[a], &arena, &axes[a], error);
    FILE *out = status == CS_OK ? cs_text_stream(text, &length) : NULL;
    if (out) {
        cs_sweep_report_print(&(cs_sweep_shown){space, &s->results, axes}, out);
        status = cs_library_close_text(out, status, error);
    } else if (status == CS_OK) {
        status = cs_error_no_memory(error);
    }
    cs_arena_finish(&arena);
    return status;
}

static cs_status run_sweep(sweep *s, clustersim_result *result, cs_error *error)
{
    cs_h5_file *file = NULL;
    char *failures = NULL;
    CS_TRY(prepare_sweep(s, error));
    CS_TRY(cs_sweep_open(&s->swept.sweep, NULL, 0, false, &s->journal, &s->results, error));
    CS_TRY(cs_sweep_run(&s->swept.sweep, s->progress, &s->journal, &s->results, error));
    CS_TRY(cs_swept_failures(&s->swept, &s->results, &failures, error));
    free(failures); /* the column `error` has all of them */
    const cs_sweep_info info = {s->swept.name, s->swept.resolved, s->command, clustersim_version()};
    CS_TRY(cs_contents_open(&result->contents, NULL, &file, error));
    const cs_status status = cs_sweep_write(file, &info, &s->swept.sweep.space, &s->results, error);
    cs_h5_destroy(file);
    CS_TRY(status);
    CS_TRY(cs_library_take_columns(result, error));
    return write_sweep_text(s, &result->text, error);
}

clustersim_status clustersim_sweep(const clustersim_source *source, const clustersim_vary *vary,
                                   const clustersim_options *options, clustersim_result **result,
                                   clustersim_error **error)
{
    const cs_number_locale caller = cs_number_locale_enter();
    clustersim_options all = cs_library_options(options);
    const cs_progress progress = cs_library_progress(&all);
    const clustersim_vary none = {0};
    clustersim_source checked = {0};
    sweep s = {&checked, vary ? vary : &none, &progress, .journal = {.file = -1}};
    cs_error said;
    cs_error_init(&said);
    cs_status status = cs_library_source(source, &checked, &said);
    if (status == CS_OK)
        status = cs_library_changes(s.vary->keys, s.vary->n, "vary.keys", &said);
    if (status == CS_OK)
        status = cs_library_given(result, "result", &said);
    if (status != CS_OK)
        return cs_library_done(status, &said, caller, error);
    clustersim_result *made = cs_library_result_new();
    cs_swept_init(&s.swept, checked.path);
    s.swept.sweep.origin = "vary";
    s.swept.sweep.jobs = jobs_of(&all);
    status = made ? run_sweep(&s, made, &said) : cs_error_no_memory(&said);
    cs_journal_close(&s.journal);
    cs_sweep_results_finish(&s.results);
    cs_swept_finish(&s.swept);
    free(s.command);
    if (status == CS_OK)
        *result = made;
    else
        clustersim_result_free(made);
    return cs_library_done(status, &said, caller, error);
}

/* ---- searches for plans ---- */

static cs_status take_advice(const cs_advice *advice, const cJSON *document, const char *path,
                             clustersim_result *result, cs_error *error)
{
    const cs_advice_shown shown = cs_advice_shown_of(advice, document, path);
    const cs_advice_info info = {shown.name, shown.topology, clustersim_version(), shown.path};
    size_t length;
    cs_h5_file *file = NULL;
    CS_TRY(cs_contents_open(&result->contents, NULL, &file, error));
    const cs_status status = cs_advice_write(file, &info, advice, error);
    cs_h5_destroy(file);
    CS_TRY(status);
    CS_TRY(cs_library_take_columns(result, error));
    FILE *out = cs_text_stream(&result->text, &length);
    if (!out)
        return cs_error_no_memory(error);
    CS_TRY(cs_library_close_text(out, cs_advice_print(&shown, out, error), error));
    out = cs_text_stream(&result->json, &length);
    if (!out)
        return cs_error_no_memory(error);
    return cs_library_close_text(out, cs_print_json(cs_advice_json(&shown), out, error), error);
}

static cs_status run_search(const clustersim_source *source, const cs_advise_options *how,
                            clustersim_result *result, cs_error *error)
{
    cs_advice advice = {0};
    cJSON *document = NULL;
    CS_TRY(cs_library_document(source, &document, error));
    cs_status status = cs_runtime_assume(document, source->path, "search", error);
    if (status == CS_OK)
        status = cs_advise(document, source->path, how, &advice, error);
    if (status == CS_OK && advice.interrupted)
        status = cs_error_add(error, CS_INTERRUPTED, "interrupted");
    if (status == CS_OK)
        status = take_advice(&advice, document, source->path, result, error);
    cs_advice_finish(&advice);
    cJSON_Delete(document);
    return status;
}

/* As this version has them. */
static cs_status read_search(const clustersim_search *given, cs_advise_options *how,
                             cs_error *error)
{
    clustersim_search all = {0};
    if (given)
        memcpy(&all, given, given->size < sizeof(all) ? given->size : sizeof(all));
    how->top = all.top > 0 ? all.top : CS_ADVISE_TOP;
    how->most = all.most;
    how->budget = all.budget;
    how->exhaustive = all.exhaustive != 0;
    if (how->top > CS_ADVISE_TOP_MAX)
        return cs_error_add(error, CS_USAGE, "top: must be 1 to %d (got %u)", CS_ADVISE_TOP_MAX,
                            how->top);
    return how->budget >= 0 ? CS_OK
                            : cs_error_add(error, CS_USAGE,
                                           "budget: must not be negative (got %g s)", how->budget);
}

clustersim_status clustersim_advise(const clustersim_source *source,
                                    const clustersim_search *search,
                                    const clustersim_options *options, clustersim_result **result,
                                    clustersim_error **error)
{
    const cs_number_locale caller = cs_number_locale_enter();
    clustersim_options all = cs_library_options(options);
    const cs_progress progress = cs_library_progress(&all);
    cs_advise_options how = {
        .jobs = jobs_of(&all), .program_version = clustersim_version(), .progress = &progress};
    clustersim_source checked = {0};
    clustersim_result *made = cs_library_result_new();
    cs_error said;
    cs_error_init(&said);
    cs_status status = made ? read_search(search, &how, &said) : cs_error_no_memory(&said);
    if (status == CS_OK)
        status = cs_library_source(source, &checked, &said);
    if (status == CS_OK)
        status = cs_library_given(result, "result", &said);
    if (status == CS_OK)
        status = run_search(&checked, &how, made, &said);
    if (status == CS_OK)
        *result = made;
    else
        clustersim_result_free(made);
    return cs_library_done(status, &said, caller, error);
}

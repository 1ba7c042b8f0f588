#include "calib/import-table.h"

#include <string.h>

/* Text between "# OSU MPI" (or "MPI-CUDA") and the version. */
static const struct test {
    const char *title;
    cs_cost_collective collective;
    bool pair;     /* has two ranks */
    bool per_rank; /* the size is one rank's share */
    bool rate;     /* the value is MB/s, not us */
} tests[] = {
    {"Latency Test", CS_COST_SEND, true, false, false},
    {"Bandwidth Test", CS_COST_STREAM, true, false, true},
    {"Allreduce Latency Test", CS_COST_ALL_REDUCE, false, false, false},
    {"Allgather Latency Test", CS_COST_ALL_GATHER, false, true, false},
    {"Reduce_scatter Latency Test", CS_COST_REDUCE_SCATTER, false, false, false},
    {"Broadcast Latency Test", CS_COST_BROADCAST, false, false, false},
    {"Reduce Latency Test", CS_COST_REDUCE, false, false, false},
    {"All-to-All Personalized Exchange Latency Test", CS_COST_ALL_TO_ALL, false, true, false},
    {"Scatter Latency Test", CS_COST_SCATTER, false, true, false},
    {"Gather Latency Test", CS_COST_GATHER, false, true, false},
};

typedef struct reader {
    cs_import import;
    const struct test *test; /* NULL: unknown, or no test yet */
    uint32_t ranks;
    cs_cost_level level;
    uint32_t column; /* column of the value; 0: the header has not been seen */
} reader;

/* ---- headers ---- */

static const struct test *find_test(const cs_log_lines *log)
{
    char title[CS_LOG_WORD_BYTES];
    cs_log_rest(log, 3, title, sizeof(title));
    for (char *version = strstr(title, " v"); version; version = strstr(version + 1, " v"))
        if (version[2] >= '0' && version[2] <= '9') {
            *version = '\0';
            break;
        }
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        if (strcmp(tests[i].title, title) == 0)
            return &tests[i];
    return NULL;
}

/* Whether a word ends the name of a column: it has the unit, or is a name without unit. "Avg
 * Latency(us)", "Latency (us)", "Iterations". */
static bool ends_name(const cs_log_word *word)
{
    static const char *const whole[] = {"Size", "Iterations", "Validation"};
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
        if (word->length == strlen(whole[i]) && memcmp(word->text, whole[i], word->length) == 0)
            return true;
    return word->text[word->length - 1] == ')' || memchr(word->text, '/', word->length) != NULL;
}

/* Reads "# Size   Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations". */
static void read_columns(reader *r)
{
    const cs_log_lines *log = &r->import.log;
    uint32_t column = 0, first = 1;
    r->column = 1;
    for (uint32_t i = 1; i < log->n_words; i++) {
        if (!ends_name(&log->words[i]))
            continue;
        if (cs_log_is(log, first, "Max"))
            r->column = column;
        column++;
        first = i + 1;
    }
}

/* ---- rows ---- */

static cs_status read_row(reader *r)
{
    const cs_log_lines *log = &r->import.log;
    int64_t bytes;
    double value, resolution;
    CS_TRY(cs_import_whole(&r->import));
    if (!cs_log_count(log, 0, &bytes) || !cs_log_number(log, r->column, &value))
        return cs_log_invalid(log, r->import.error, "a row must have a size and at least %u values",
                              r->column);
    if (cs_log_find(log, "Fail", 1) < CS_LOG_WORDS)
        return cs_log_invalid(log, r->import.error, "the test's own validation failed");
    if (r->test->per_rank && __builtin_mul_overflow(bytes, (int64_t)r->ranks, &bytes))
        return cs_log_invalid(log, r->import.error, "the size is too large");
    resolution = cs_log_resolution(log, r->column);
    if (r->test->rate && bytes > 0 && value > 0) {
        resolution *= (double)bytes / (value * value);
        value = (double)bytes / value; /* B / (MB/s) = us */
    }
    return cs_import_row(&r->import, r->test->collective, r->level, r->ranks, bytes, value,
                         resolution);
}

static cs_status read_line(reader *r)
{
    const cs_log_lines *log = &r->import.log;
    if (cs_log_is(log, 0, "#") && cs_log_is(log, 1, "OSU")) {
        /* "# OSU MPI Allreduce Latency Test v7.5" */
        cs_import *import = &r->import;
        const cs_import_options *options = import->options;
        r->column = 0;
        r->test = find_test(&import->log);
        if (!r->test) {
            import->report.n_skipped++;
            return CS_OK;
        }
        r->ranks = r->test->pair ? 2 : options->ranks;
        r->level = CS_COST_LEVEL_NODE;
        cs_log_rest(&import->log, 1, import->libraries, sizeof(import->libraries));
        if (r->ranks < 2)
            return cs_log_invalid(
                &import->log, import->error,
                "the log does not state the number of ranks: give --ranks, at least 2");
        if (!options->level)
            return cs_log_invalid(
                &import->log, import->error,
                "the log does not state whether ranks share a node: give --level node "
                "or --level network");
        return cs_import_level(import, &r->level);
    }
    if (r->test && cs_log_is(log, 0, "#") && cs_log_is(log, 1, "Size"))
        read_columns(r);
    const char first = log->n_words > 0 ? log->words[0].text[0] : '\0';
    return r->test && r->column > 0 && first >= '0' && first <= '9' ? read_row(r) : CS_OK;
}

cs_status cs_import_osu(const char *name, const char *text, size_t length,
                        const cs_import_options *options, cs_costs *costs, cs_import_report *report,
                        cs_error *error)
{
    reader r = {.import = {.options = options, .error = error}};
    cs_status status = CS_OK;
    cs_log_begin(&r.import.log, name, text, length);
    while (status == CS_OK && cs_log_next(&r.import.log))
        status = read_line(&r);
    return cs_import_end(&r.import, status, "OSU micro-benchmarks", costs, report);
}

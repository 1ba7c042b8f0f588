#include "calib/import-table.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *program;
    cs_cost_collective collective;
} programs[] = {
    {"all_reduce_perf", CS_COST_ALL_REDUCE}, {"all_gather_perf", CS_COST_ALL_GATHER},
    {"broadcast_perf", CS_COST_BROADCAST},   {"reduce_scatter_perf", CS_COST_REDUCE_SCATTER},
    {"reduce_perf", CS_COST_REDUCE},         {"alltoall_perf", CS_COST_ALL_TO_ALL},
    {"all_to_all_perf", CS_COST_ALL_TO_ALL}, {"scatter_perf", CS_COST_SCATTER},
    {"gather_perf", CS_COST_GATHER},         {"sendrecv_perf", CS_COST_SEND},
};

#define NOT_KNOWN CS_N_COST_COLLECTIVES

typedef struct reader {
    cs_import import;
    /* since the last test began */
    cs_cost_collective collective; /* or NOT_KNOWN */
    int64_t last_rank;             /* -1: no rank was listed */
    bool first_rank_seen, several_groups, several_hosts;
    char host[CS_LOG_WORD_BYTES]; /* host of rank 0 */
    /* the current table */
    uint32_t table_line; /* line of its header; 0: no table */
    uint32_t unnamed;    /* number of tables so far whose collective the log does not name */
    uint32_t value,
        /* width: number of the row's last words; value: which of them, from the end, is the time */
        width;
    cs_cost_collective what;
    cs_cost_level level;
    uint32_t ranks;
} reader;

/* ---- before the table ---- */

/* Recognises the collective of a program "/opt/nccl-tests/all_reduce_perf". Returns false for other
 * words. */
static bool program_named(const char *word, cs_cost_collective *out)
{
    static const char ending[] = "_perf";
    const char *slash = strrchr(word, '/');
    const char *name = slash ? slash + 1 : word;
    const size_t length = strlen(name), cut = strlen(ending);
    if (length <= cut || strcmp(name + length - cut, ending) != 0)
        return false;
    *out = NOT_KNOWN;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        if (strcmp(programs[i].program, name) == 0)
            *out = programs[i].collective;
    return true;
}

static bool is_library(const cs_log_lines *log, uint32_t word)
{
    return cs_log_is(log, word, "NCCL") || cs_log_is(log, word, "RCCL");
}

/* Reads "NCCL version 2.18.3+cuda12.2". */
static void look_for_library(reader *r)
{
    const cs_log_lines *log = &r->import.log;
    const uint32_t version = cs_log_find(log, "version", 1);
    if (version < CS_LOG_WORDS && is_library(log, version - 1))
        cs_log_rest(log, version - 1, r->import.libraries, sizeof(r->import.libraries));
}

static void begin_test(reader *r)
{
    r->last_rank = -1;
    r->first_rank_seen = r->several_groups = r->several_hosts = false;
}

/* Reads "#  Rank  0 Group  0 Pid   6899 on HOST device  0 [0000:04:00] NVIDIA H100"; before 2.13
 * without the group. Lists may be shortened: the highest rank counts. */
static cs_status read_rank(reader *r)
{
    const cs_log_lines *log = &r->import.log;
    char host[CS_LOG_WORD_BYTES];
    int64_t rank, group = 0;
    const uint32_t on = cs_log_find(log, "on", 3), device = cs_log_find(log, "device", 3);
    const uint32_t at_group = cs_log_find(log, "Group", 3);
    if (!cs_log_count(log, 2, &rank) || on + 2 != device ||
        (at_group < CS_LOG_WORDS && !cs_log_count(log, at_group + 1, &group)))
        return cs_log_invalid(log, r->import.error,
                              "must be \"# Rank N ... on HOST device N ...\"");
    if (rank == 0 && r->first_rank_seen)
        return cs_log_invalid(
            log, r->import.error,
            "rank 0 occurs twice: every process ran alone, because nccl-tests was "
            "built without MPI");
    cs_log_copy(log, on + 1, host, sizeof(host));
    if (r->last_rank < 0)
        memcpy(r->host, host, sizeof(host));
    r->several_hosts |= strcmp(host, r->host) != 0;
    r->several_groups |= group > 0;
    r->first_rank_seen |= rank == 0;
    r->last_rank = rank > r->last_rank ? rank : r->last_rank;
    if (r->import.device[0] == '\0')
        cs_log_rest(log, device + 3, r->import.device, sizeof(r->import.device));
    return CS_OK;
}

/* ---- the table ---- */

/* Both groups of columns begin with "time"; the number of columns before them varies. */
static cs_status find_columns(reader *r)
{
    const cs_log_lines *log = &r->import.log;
    const bool cpu = cs_log_find(log, "cputime", 2) < CS_LOG_WORDS;
    const char *name = cpu ? "cputime" : "time";
    const uint32_t first = cs_log_find(log, name, 2), second = cs_log_find(log, name, first + 1);
    if (second == CS_LOG_WORDS || log->n_words - second != second - first || second - first < 3)
        return cs_log_invalid(log, r->import.error,
                              "must have the columns time, algbw, busbw twice, out of place and in "
                              "place");
    r->width = second - first;
    r->value = r->import.options->in_place ? r->width : 2 * r->width;
    return CS_OK;
}

/* An option supplies a collective that the log does not state, for one table only: with several,
 * its meaning is unclear. */
static cs_status settle_collective(reader *r)
{
    r->what = r->collective;
    const cs_status status = cs_import_collective(&r->import, &r->what);
    r->unnamed += r->collective == NOT_KNOWN;
    if (status == CS_OK && r->collective != NOT_KNOWN && r->what != r->collective)
        return cs_log_invalid(
            &r->import.log, r->import.error, "the log states %s, but --collective %s",
            cs_cost_collective_names[r->collective], cs_cost_collective_names[r->what]);
    if (status == CS_OK && r->unnamed > 1)
        return cs_log_invalid(
            &r->import.log, r->import.error,
            "this is the second table without a named collective, but --collective "
            "applies to only one: split the log");
    if (status != CS_OK || r->what != NOT_KNOWN)
        return status;
    return cs_log_invalid(&r->import.log, r->import.error,
                          "the log does not name the collective: give --collective");
}

static cs_status settle_ranks(reader *r)
{
    r->ranks = r->import.options->ranks;
    if (r->ranks == 0 && !r->several_groups && r->last_rank < 1 << 24)
        r->ranks = (uint32_t)(r->last_rank + 1);
    if (r->ranks >= 2)
        return CS_OK;
    return cs_log_invalid(
        &r->import.log, r->import.error,
        r->several_groups   ? "several groups ran at the same time: give the --ranks of one group"
        : r->last_rank == 0 ? "a single rank sends no messages"
                            : "the log does not state the number of ranks: give --ranks");
}

static cs_status settle_level(reader *r)
{
    r->level = r->several_hosts ? CS_COST_LEVEL_NETWORK : CS_COST_LEVEL_NODE;
    if (r->import.options->level || (r->last_rank >= 0 && !r->several_groups))
        return cs_import_level(&r->import, &r->level);
    return cs_log_invalid(&r->import.log, r->import.error,
                          "the log does not state whether ranks share a node: give --level node or "
                          "--level network");
}

static cs_status not_ended(const reader *r)
{
    cs_log_lines at = r->import.log;
    at.line = r->table_line;
    return cs_log_invalid(
        &at, r->import.error,
        "the table that begins here has no \"# Avg bus bandwidth\" below: the log "
        "is cut off, or the test failed");
}

/* Compares bandwidths, which have two decimals, with this rounding error. */
static bool agree(double a, double b, double rounding)
{
    return fabs(a - b) <= rounding + 0.01 * fmax(a, b);
}

static cs_status read_row(reader *r)
{
    const cs_log_lines *log = &r->import.log;
    int64_t bytes, wrong = 0;
    double value[3];
    CS_TRY(cs_import_whole(&r->import));
    if (log->n_words < 2 + 2 * r->width || !cs_log_count(log, 0, &bytes))
        return cs_log_invalid(log, r->import.error,
                              "a row must have a size, a count, and twice %u values", r->width);
    const uint32_t first = log->n_words - r->value;
    for (uint32_t i = 0; i < 3; i++)
        if (!cs_log_number(log, first + i, &value[i]))
            return cs_log_invalid(log, r->import.error, "time, algbw and busbw must be numbers");
    if (r->width > 3 && cs_log_count(log, first + 3, &wrong) && wrong > 0)
        return cs_log_invalid(log, r->import.error, "%lld elements of the result were wrong",
                              (long long)wrong);
    if (bytes > 0 && value[0] > 0) {
        /* Detect rows of another collective, number of ranks, or with other columns. */
        const double factor = cs_cost_bus_factor(r->what, r->ranks);
        const double time = value[0], algorithm = value[1], bus = value[2];
        const double rate = (double)bytes / time * 1e-3; /* B/us -> GB/s */
        if (!agree(algorithm, rate, 0.006 + 0.1 * rate / fmax(time, 0.1)))
            return cs_log_invalid(&r->import.log, r->import.error,
                                  "algbw must be size / time, %.2f GB/s (got %.2f)", rate,
                                  algorithm);
        if (!agree(bus, algorithm * factor, 0.006 * (1 + factor)))
            return cs_log_invalid(
                &r->import.log, r->import.error,
                "busbw must be algbw times %.4g, as for %s with %u ranks (got %.2f for "
                "%.2f): was it another collective, or another number of ranks?",
                factor, cs_cost_collective_names[r->what], r->ranks, bus, algorithm);
    }
    return cs_import_row(&r->import, r->what, r->level, r->ranks, bytes, value[0],
                         cs_log_resolution(log, first));
}

/* ---- all lines ---- */

/* Whether a line begins with a size, or has at least as many numbers as a row. Other lines come
 * from other programs or from NCCL itself, such as
 * "host:4000:4100 [0] NCCL INFO Channel 00/02 : 0 1 2 3 4 5 6 7". */
static bool is_row(const reader *r)
{
    const cs_log_lines *log = &r->import.log;
    int64_t bytes;
    double value;
    uint32_t n_numbers = 0;
    for (uint32_t i = 0; i < log->n_words; i++) {
        if (is_library(log, i))
            return false;
        n_numbers += cs_log_number(log, i, &value);
    }
    return !cs_log_is(log, 0, "#") && (cs_log_count(log, 0, &bytes) || n_numbers >= 2 * r->width);
}

static cs_status read_comment(reader *r)
{
    const cs_log_lines *log = &r->import.log;
    if (cs_log_is(log, 0, "#") && cs_log_is(log, 1, "size") &&
        cs_log_find(log, "busbw", 2) < CS_LOG_WORDS) {
        if (r->table_line > 0)
            return not_ended(r);
        cs_status (*const steps[])(reader *) = {find_columns, settle_collective, settle_ranks,
                                                settle_level};
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
            CS_TRY(steps[i](r));
        }
        r->table_line = r->import.log.line;
        return CS_OK;
    }
    if (cs_log_is(log, 1, "nThread"))
        begin_test(r);
    if (cs_log_is(log, 1, "Rank") && r->table_line == 0)
        return read_rank(r);
    if (cs_log_is(log, 1, "Out") && cs_log_find(log, "FAILED", 2) < CS_LOG_WORDS)
        return cs_log_invalid(log, r->import.error, "the test's results were wrong");
    if (cs_log_is(log, 1, "Avg") && cs_log_is(log, 2, "bus"))
        r->table_line = 0;
    return CS_OK;
}

static cs_status read_line(reader *r)
{
    const cs_log_lines *log = &r->import.log;
    if (r->table_line > 0 && is_row(r))
        return read_row(r);
    if (r->table_line == 0) {
        /* in a command line, or after "Collective test starting:" */
        char word[CS_IMPORT_BYTES];
        for (uint32_t i = 0; i < r->import.log.n_words; i++)
            (void)program_named(cs_log_copy(&r->import.log, i, word, sizeof(word)), &r->collective);
        look_for_library(r);
    }
    return cs_log_is(log, 0, "#") ? read_comment(r) : CS_OK;
}

cs_status cs_import_nccl_tests(const char *name, const char *text, size_t length,
                               const cs_import_options *options, cs_costs *costs,
                               cs_import_report *report, cs_error *error)
{
    reader r = {.import = {.options = options, .error = error}, .collective = NOT_KNOWN};
    cs_status status = CS_OK;
    begin_test(&r);
    cs_log_begin(&r.import.log, name, text, length);
    while (status == CS_OK && cs_log_next(&r.import.log))
        status = read_line(&r);
    if (status == CS_OK && r.table_line > 0)
        status = not_ended(&r);
    return cs_import_end(&r.import, status, "nccl-tests", costs, report);
}

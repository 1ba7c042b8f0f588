/* Logs in the formats of nccl-tests and of the OSU micro-benchmarks, written here from known alpha
 * and beta, with the rounding that the tools print. */
#include "calib/import.h"

#include "expect.h"

#include <math.h>

typedef struct text {
    char bytes[65536];
    size_t end;
} text;

static void add(text *to, const char *format, ...) CS_PRINTF(2, 3);

static void add(text *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    to->end +=
        (size_t)vsnprintf(to->bytes + to->end, sizeof(to->bytes) - to->end, format, arguments);
    va_end(arguments);
    assert_true(to->end < sizeof(to->bytes));
}

/* ---- nccl-tests ---- */

typedef struct nccl_log {
    const char *program;   /* NULL: not said */
    uint32_t ranks, hosts; /* ranks 0: not said */
    double factor;         /* factor of the bus bandwidth */
    double alpha, beta;    /* us, us per byte; in place a tenth less */
    bool old;              /* 2.0 to 2.12: no groups, no root, "error" for "#wrong" */
} nccl_log;

static void add_ranks(text *to, const nccl_log *log)
{
    for (uint32_t r = 0; r < log->ranks; r++) {
        const uint32_t per_host = log->ranks / log->hosts;
        if (log->old)
            add(to, "#   Rank %2u Pid  %5u on  host%u device %2u [0x%02x] Tesla V100-SXM2-16GB\n",
                r, 4000 + r, r / per_host, r % per_host, 16 * r);
        else
            add(to,
                "#  Rank %2u Group  0 Pid  %5u on  host%u device %2u [0000:%02x:00] NVIDIA H100 "
                "80GB "
                "HBM3\n",
                r, 4000 + r, r / per_host, r % per_host, 16 * r);
    }
}

/* "%6.1f" below 10000 us, "%.0f" from there on, as the tool has it. */
static void add_values(text *to, const nccl_log *log, double bytes, double scale)
{
    const double time = scale * (log->alpha + log->beta * bytes);
    const double rate = bytes / time / 1e3;
    add(to, time < 10000 ? "  %7.1f" : "  %7.0f", time);
    add(to, "  %6.2f  %6.2f  %5s", rate, rate * log->factor, log->old ? "0e+00" : "0");
}

static void add_table(text *to, const nccl_log *log)
{
    const char *root = log->old ? "" : "    root";
    add(to, "#\n# %60s out-of-place                       in-place\n", "");
    add(to,
        "#       size         count      type   redop%s     time   algbw   busbw  %s     time   "
        "algbw  "
        " busbw  %s\n",
        root, log->old ? "error" : "#wrong", log->old ? "error" : "#wrong");
    add(to, "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)\n");
    for (int power = 3; power <= 30; power++) {
        const double bytes = ldexp(1, power);
        add(to, "%12.0f  %12.0f  %8s  %6s", bytes, bytes / 4, "float", "sum");
        if (!log->old)
            add(to, "  %6d", -1);
        add_values(to, log, bytes, 1);
        add_values(to, log, bytes, 0.9);
        add(to, "\n");
    }
    add(to, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.34\n#\n");
}

static void add_nccl(text *to, const nccl_log *log)
{
    if (log->program && log->old)
        add(to, "$ mpirun -np 8 ./build/%s -b 8 -e 1G -f 2\n", log->program);
    else if (log->program)
        add(to,
            "# nccl-tests version 2.17.1 nccl-headers=22706 nccl-library=22706\n"
            "# Collective test starting: %s\n",
            log->program);
    add(to,
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5\n#\n");
    add(to, "# Using devices\n");
    add_ranks(to, log);
    if (!log->old)
        add(to, "NCCL version 2.27.6+cuda12.8\n");
    add_table(to, log);
}

static cs_status import_nccl(const text *log, const cs_import_options *options, cs_costs *costs,
                             cs_error *error)
{
    cs_import_report report;
    cs_costs_init(costs);
    cs_error_init(error);
    return cs_import_nccl_tests("run.log", log->bytes, log->end, options, costs, &report, error);
}

static const cs_import_options dated = {.date = "2026-11-21"};

/* 12.5 us and 1/(25 GB/s): at 8 B the time prints as 12.5, at 1 GiB as 42962: rounding is 0.4 % at
 * most, of alpha too. */
static const struct {
    nccl_log log;
    cs_cost_collective collective;
    cs_cost_level level;
} nccl[] = {
    {{"all_reduce_perf", 8, 1, 1.75, 12.5, 4e-5, false}, CS_COST_ALL_REDUCE, CS_COST_LEVEL_NODE},
    {{"all_reduce_perf", 8, 1, 1.75, 12.5, 4e-5, true}, CS_COST_ALL_REDUCE, CS_COST_LEVEL_NODE},
    {{"all_gather_perf", 16, 2, 0.9375, 30, 1e-5, false},
     CS_COST_ALL_GATHER,
     CS_COST_LEVEL_NETWORK},
    {{"reduce_scatter_perf", 4, 4, 0.75, 20, 1e-4, true},
     CS_COST_REDUCE_SCATTER,
     CS_COST_LEVEL_NETWORK},
    {{"broadcast_perf", 4, 1, 1, 20, 1e-4, false}, CS_COST_BROADCAST, CS_COST_LEVEL_NODE},
    {{"alltoall_perf", 4, 1, 0.75, 20, 1e-4, false}, CS_COST_ALL_TO_ALL, CS_COST_LEVEL_NODE},
    {{"sendrecv_perf", 2, 1, 1, 10, 1e-4, false}, CS_COST_SEND, CS_COST_LEVEL_NODE},
};

static void expect_within(const char *row, double expected, double got, double share)
{
    if (fabs(got / expected - 1) > share)
        fail_msg("%s: expected %.6g, got %.6g", row, expected, got);
}

static void test_nccl(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(nccl); i++) {
        const nccl_log *log = &nccl[i].log;
        text made = {.end = 0};
        cs_costs costs;
        cs_error error;
        add_nccl(&made, log);
        for (int in_place = 0; in_place < 2; in_place++) {
            const cs_import_options options = {.date = dated.date, .in_place = in_place};
            if (import_nccl(&made, &options, &costs, &error) != CS_OK)
                fail_msg("%s: %s", log->program, error.text);
            const cs_cost_network *entry =
                cs_costs_network(&costs, nccl[i].collective, nccl[i].level, log->ranks);
            assert_non_null(entry);
            const double scale = in_place ? 0.9 : 1;
            expect_int(log->program, 28, entry->n_points);
            expect_within(log->program, scale * (log->alpha + 8 * log->beta) * 1e-6,
                          cs_cost_seconds(entry, 8), 0.006);
            expect_within(log->program, scale * (log->alpha + 0x1p29 * log->beta) * 1e-6,
                          cs_cost_seconds(entry, 1 << 29), 0.006);
            expect_text(log->program, log->old ? "Tesla V100-SXM2-16GB" : "NVIDIA H100 80GB HBM3",
                        costs.sources[0].device);
            expect_text(log->program, log->old ? "" : "NCCL version 2.27.6+cuda12.8",
                        costs.sources[0].libraries);
            cs_costs_finish(&costs);
        }
    }
}

/* Two tests in one log, the second twice: 28 + 56 points. */
static void test_nccl_several(void **state)
{
    (void)state;
    text made = {.end = 0};
    cs_costs costs;
    cs_error error;
    add_nccl(&made, &nccl[0].log);
    add_nccl(&made, &nccl[2].log);
    add_nccl(&made, &nccl[2].log);
    assert_int_equal(import_nccl(&made, &dated, &costs, &error), CS_OK);
    expect_int("entries", 2, costs.n_network);
    expect_int("all_reduce", 28, costs.network[0].n_points);
    expect_int("all_gather", 56, costs.network[1].n_points);
    cs_costs_finish(&costs);
}

/* Errors in a log, reported with their line. The header is in line 17 with 8 ranks: version,
 * test, nThread, #, Using, 8 ranks, NCCL, #, places; rows from 19 on. */
static const struct {
    const char *name, *cut, *put; /* the first `cut` becomes `put`; NULL: the end of the log */
    const char *message;
} broken[] = {
    {"no end", "# Out of bounds", NULL, "run.log:17: the table that begins here has no"},
    {"cut row", "  1024           256", NULL, "run.log:26: the file ends within a row"},
    {"short row", "     float     sum      -1     12.5    0.00", "",
     "run.log:19: a row must have a size, a count, and twice 4 values"},
    {"no number", "12.5", "12,5", "run.log:19: time, algbw and busbw must be numbers"},
    {"wrong results", "0.00      0", "0.00      3",
     "run.log:19: 3 elements of the result were wrong"},
    {"failed", "0 OK", "7 FAILED", ": the test's results were wrong"},
    {"other collective", "all_reduce_perf", "all_gather_perf", "busbw must be algbw times 0.875"},
    {"rank twice", "Rank  1", "Rank  0", "run.log:7: rank 0 occurs twice"},
    {"not a test", "all_reduce_perf", "hypercube_perf", "give --collective"},
    {"groups", "Group  0", "Group  1", "several groups ran at the same time"},
    {"columns", "busbw  #wrong     time", "busbw", "must have the columns"},
};

static void test_nccl_broken(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(broken); i++) {
        text whole = {.end = 0}, made = {.end = 0};
        cs_costs costs;
        cs_error error;
        add_nccl(&whole, &nccl[0].log);
        const char *at = strstr(whole.bytes, broken[i].cut);
        assert_non_null(at);
        add(&made, "%.*s", (int)(at - whole.bytes), whole.bytes);
        if (broken[i].put)
            add(&made, "%s%s", broken[i].put, at + strlen(broken[i].cut));
        else if (strchr(broken[i].cut, '#') == NULL)
            add(&made, "%.90s", at); /* the row, without its end */
        expect_int(broken[i].name, CS_INVALID, import_nccl(&made, &dated, &costs, &error));
        if (!strstr(error.text, broken[i].message))
            fail_msg("%s: %s", broken[i].name, error.text);
        cs_costs_finish(&costs);
    }
}

/* The option must not contradict the log, and cannot apply to two tables. */
static void test_nccl_collective(void **state)
{
    (void)state;
    const cs_import_options options = {.date = "2026-11-21", .collective = "all_reduce"};
    const nccl_log unnamed = {NULL, 8, 1, 1.75, 12.5, 4e-5, false};
    const nccl_log gather = {"all_gather_perf", 8, 1, 0.875, 12.5, 4e-5, false};
    const struct {
        const char *name;
        const nccl_log *first, *second;
        const char *message; /* NULL: none */
    } rows[] = {
        {"named alike", &nccl[0].log, NULL, NULL},
        {"one unnamed", &unnamed, NULL, NULL},
        {"contradiction", &gather, NULL,
         "run.log:17: the log states all_gather, but --collective all_reduce"},
        {"two unnamed", &unnamed, &unnamed, "this is the second table without a named collective"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        text made = {.end = 0};
        cs_costs costs;
        cs_error error;
        add_nccl(&made, rows[i].first);
        if (rows[i].second)
            add_nccl(&made, rows[i].second);
        expect_int(rows[i].name, rows[i].message ? CS_INVALID : CS_OK,
                   import_nccl(&made, &options, &costs, &error));
        if (rows[i].message && !strstr(error.text, rows[i].message))
            fail_msg("%s: %s", rows[i].name, error.text);
        cs_costs_finish(&costs);
    }
}

/* ---- OSU ---- */

static cs_status import_osu(const char *log, const cs_import_options *options, cs_costs *costs,
                            cs_error *error)
{
    cs_import_report report;
    cs_costs_init(costs);
    cs_error_init(error);
    return cs_import_osu("osu.log", log, strlen(log), options, costs, &report, error);
}

/* Three sizes, each 10 us + 0.001 us per byte sent in total: 10, 1034, 2058. Of osu_bw 1024
 * B at 512 MB/s take 2 us, 2048 B at 682.67 MB/s 3 us: alpha is 1 us. */
static const struct {
    const char *name, *log;
    uint32_t ranks;
    cs_cost_collective collective;
    uint32_t found;      /* ranks of the entry */
    int64_t first_bytes; /* bytes of its first point */
    double first_us, alpha_us, beta_us;
} osu[] = {
    {"latency, 7.5",
     "# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"
     "1000                    11.00\n2000                    12.00\n3000                    "
     "13.00\n",
     0, CS_COST_SEND, 2, 1000, 11, 10, 0.001},
    {"latency, 3.1",
     "# OSU MPI Latency Test v3.1.1\n# Size            Latency (us)\n0  10.00\n1000 11.00\n2000 "
     "12.00\n",
     0, CS_COST_SEND, 2, 1000, 11, 10, 0.001},
    {"bandwidth, GPU",
     "warning: something\n# OSU MPI-CUDA Bandwidth Test v5.9\n# Size      Bandwidth (MB/s)\n"
     "1024                  512.00\n2048                  682.67\n4096                  819.20\n",
     0, CS_COST_STREAM, 2, 1024, 2, 1, 1.0 / 1024},
    {"all-reduce, full",
     "[1,0]<stdout>:# OSU MPI Allreduce Latency Test v5.8\n"
     "[1,0]<stdout>:# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
     "[1,0]<stdout>:1000          9.00              8.00             11.00        1000\n"
     "[1,0]<stdout>:2000          9.00              8.00             12.00        1000\n"
     "[1,0]<stdout>:3000          9.00              8.00             13.00        1000\n",
     4, CS_COST_ALL_REDUCE, 4, 1000, 11, 10, 0.001},
    {"all-gather: sizes are per rank",
     "# OSU MPI Allgather Latency Test v7.0\n# Size       Avg Latency(us)\n"
     "250 11.00\n500 12.00\n750 13.00\n",
     4, CS_COST_ALL_GATHER, 4, 1000, 11, 10, 0.001},
    {"all-to-all with validation",
     "# OSU MPI All-to-All Personalized Exchange Latency Test v7.5\n"
     "# Size       Avg Latency(us)        Validation\n"
     "250                      11.00              Pass\n500 12.00 Pass\n750 13.00 Pass\nreal "
     "0m3.1s\n",
     4, CS_COST_ALL_TO_ALL, 4, 1000, 11, 10, 0.001},
    {"reduce-scatter: sizes are of the whole",
     "# OSU MPI Reduce_scatter Latency Test v5.6.3\n# Size       Avg Latency(us)\n"
     "1000 11.00\n2000 12.00\n3000 13.00\n",
     4, CS_COST_REDUCE_SCATTER, 4, 1000, 11, 10, 0.001},
};

static void test_osu(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(osu); i++) {
        const cs_import_options options = {
            .date = "2026-11-21", .device = "two hosts", .level = "network", .ranks = osu[i].ranks};
        cs_costs costs;
        cs_error error;
        if (import_osu(osu[i].log, &options, &costs, &error) != CS_OK)
            fail_msg("%s: %s", osu[i].name, error.text);
        const cs_cost_network *entry =
            cs_costs_network(&costs, osu[i].collective, CS_COST_LEVEL_NETWORK, osu[i].found);
        assert_non_null(entry);
        expect_int(osu[i].name, osu[i].first_bytes, entry->points[0].bytes);
        expect_within(osu[i].name, osu[i].first_us * 1e-6, entry->points[0].seconds, 1e-9);
        expect_within(osu[i].name, osu[i].alpha_us * 1e-6, entry->regimes[0].alpha.value, 1e-3);
        expect_within(osu[i].name, osu[i].beta_us * 1e-6, entry->regimes[0].beta.value, 1e-3);
        cs_costs_finish(&costs);
    }
}

#define LATENCY "# OSU MPI Latency Test v7.5\n# Size       Avg Latency(us)\n"

static const struct {
    const char *name, *log;
    cs_import_options options;
    cs_status status;
    const char *message;
} refused[] = {
    {"no level",
     LATENCY "1 2\n",
     {.device = "d"},
     CS_INVALID,
     "osu.log:1: the log does not state whether ranks share"},
    {"unknown level", LATENCY "1 2\n", {.device = "d", .level = "rack"}, CS_USAGE, "known: node"},
    {"no ranks",
     "# OSU MPI Allreduce Latency Test v7.5\n",
     {.device = "d", .level = "node"},
     CS_INVALID,
     "osu.log:1: the log does not state the number of ranks"},
    {"no device", LATENCY "1 2.00\n2 3.00\n", {.level = "node"}, CS_USAGE, "--hardware is missing"},
    {"cut off",
     LATENCY "1 2.00\n2 3.0",
     {.device = "d", .level = "node"},
     CS_INVALID,
     "osu.log:4: the file ends within a row"},
    {"no value",
     LATENCY "1 2.00\n2\n",
     {.device = "d", .level = "node"},
     CS_INVALID,
     "osu.log:4: a row must have a size and at least 1 values"},
    {"failed",
     LATENCY "1 2.00 Fail\n",
     {.device = "d", .level = "node"},
     CS_INVALID,
     "osu.log:3: the test's own validation failed"},
    {"no time",
     LATENCY "1 0.00\n",
     {.device = "d", .level = "node"},
     CS_INVALID,
     "osu.log:3: a time must be > 0"},
    {"one size",
     LATENCY "1 2.00\n",
     {.device = "d", .level = "node"},
     CS_INVALID,
     "osu.log: send of 2 ranks: a fit of alpha and beta requires at least two sizes"},
    {"nothing",
     "hello\n",
     {.device = "d", .level = "node"},
     CS_INVALID,
     "osu.log: has no known table of OSU micro-benchmarks"},
    {"only unknown tests",
     "# OSU MPI Barrier Latency Test v5.8\n# Avg Latency(us)\n 12.57\n",
     {.device = "d", .level = "node"},
     CS_INVALID,
     "has no known table"},
};

static void test_osu_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(refused); i++) {
        cs_costs costs;
        cs_error error;
        expect_int(refused[i].name, refused[i].status,
                   import_osu(refused[i].log, &refused[i].options, &costs, &error));
        if (!strstr(error.text, refused[i].message))
            fail_msg("%s: %s", refused[i].name, error.text);
        cs_costs_finish(&costs);
    }
}

/* Prefixes and suffixes that launchers, containers and terminals add; lines take turns between
 * the two prefixes, whose numbers differ in width. */
static const struct {
    const char *name, *even, *odd, *suffix;
} wrappings[] = {
    {"kubectl --timestamps", "2026-11-20T08:01:02.123456789Z ", "2026-11-20T08:01:02.12345Z ", ""},
    {"kubectl --prefix", "[pod/nccl-launcher/main] ", "[pod/nccl-launcher/main] ", ""},
    {"containerd", "2026-11-20T08:01:02.1Z stdout F ", "2026-11-20T08:01:02.12Z stdout F ", ""},
    {"docker compose", "nccl-tests-1  | ", "nccl-tests-1  | ", ""},
    {"docker, json-file", "{\"log\":\"", "{\"log\":\"",
     "\\n\",\"stream\":\"stdout\",\"time\":\"2026-11-20T08:01:02.5Z\"}"},
    {"srun -l", " 9: ", "10: ", ""},
    {"mpirun --tag-output", "[1,0]<stdout>:", "[1,0]<stdout>:", ""},
    {"prterun --tag-output", "[prterun-n0-7@1,0]<stdout>: ", "[prterun-n0-7@1,0]<stdout>: ", ""},
    {"mpirun --timestamp-output",
     "Fri Nov 20 08:01:02 2026<stdout>:", "Fri Nov 20 08:01:03 2026<stdout>:", ""},
    {"torchrun", "[rank0]:", "[rank0]:", ""},
    {"rank and blank", "rank0: ", "rank0: ", ""},
    {"journalctl", "Nov 20 08:01:02 node0 nccl[4000]: ", "Nov 20 08:01:02 node0 nccl[12]: ", ""},
    {"journalctl -o short-iso",
     "2026-11-20T08:01:02+0100 n0 nccl[9]: ", "2026-11-20T08:01:02+0100 n0 nccl[10]: ", ""},
    {"logger", "2026-11-20 08:01:02,123 INFO [1] - ", "2026-11-20 08:01:02,7 INFO [1] - ", ""},
    {"ISO time with zone", "[2026-11-20T08:01:02+01:00] ", "[2026-11-20T08:01:02+01:00] ", ""},
    {"seconds", "12.5 ", "  100.25 ", ""},
    {"colours", "\033[0m", "\033[38;5;12m", "\033[0m"},
    {"time and colours", "08:01:02 \033[1;32m", "08:01:03 \033[1;32m", "\033[0m"},
    {"label and time", "0: 2026-11-20T08:01:02Z ", "0: 2026-11-20T08:01:02Z ", ""},
    {"carriage returns", "", "", "\r"},
    {"everything", "2026-11-20T08:01:02Z 0: [1,0]<stdout>:",
     "2026-11-20T08:01:02Z 0: [1,0]<stdout>:", "\033[0m\r"},
};

static void wrap(text *to, const text *from, size_t row)
{
    uint32_t line = 0;
    const char *at = from->bytes;
    for (const char *end; (end = strchr(at, '\n')) != NULL; at = end + 1)
        add(to, "%s%.*s%s\n", line++ % 2 ? wrappings[row].odd : wrappings[row].even,
            (int)(end - at), at, wrappings[row].suffix);
}

/* A log gives the same costs with and without prefixes and suffixes. */
static void test_wrapped(void **state)
{
    (void)state;
    static const cs_import_options of_osu = {.date = "2026-11-21", .device = "d", .level = "node"};
    for (size_t i = 0; i < 2 * ROWS(wrappings); i++) {
        const bool is_osu = i % 2;
        text plain = {.end = 0}, wrapped = {.end = 0};
        cs_costs expected, got;
        cs_error error;
        if (is_osu)
            add(&plain, "# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg "
                        "Latency(us)\n1                  1.21\n1024               2.00\n"
                        "1048576          100.25\n");
        else
            add_nccl(&plain, &nccl[0].log);
        wrap(&wrapped, &plain, i / 2);
        if (is_osu)
            assert_int_equal(import_osu(plain.bytes, &of_osu, &expected, &error), CS_OK);
        else
            assert_int_equal(import_nccl(&plain, &dated, &expected, &error), CS_OK);
        const cs_status status = is_osu ? import_osu(wrapped.bytes, &of_osu, &got, &error)
                                        : import_nccl(&wrapped, &dated, &got, &error);
        if (status != CS_OK)
            fail_msg("%s: %s", wrappings[i / 2].name, error.text);
        const cs_cost_network *a = &expected.network[0], *b = &got.network[0];
        expect_int(wrappings[i / 2].name, a->ranks, b->ranks);
        expect_int(wrappings[i / 2].name, a->n_points, b->n_points);
        for (uint32_t p = 0; p < a->n_points; p++) {
            expect_int(wrappings[i / 2].name, a->points[p].bytes, b->points[p].bytes);
            expect_double(wrappings[i / 2].name, a->points[p].seconds, b->points[p].seconds);
        }
        expect_text(wrappings[i / 2].name, expected.sources[0].device, got.sources[0].device);
        expect_text(wrappings[i / 2].name, expected.sources[0].libraries, got.sources[0].libraries);
        cs_costs_finish(&expected);
        cs_costs_finish(&got);
    }
}

/* Lines of the library and of others between the rows; NCCL sets up connections when the table has
 * begun. */
static void test_lines_of_others(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "node0:4000:4100 [0] NCCL INFO Channel 00/02 : 0 1 2 3 4 5 6 7 8 9\n",
        "node0:4000:4100 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n",
        "[2026-11-20 08:01:02] node0:4000:4100 [3] transport/net_ib.cc:93 NCCL WARN 12 1 2 3 4 5 6 "
        "7\n",
        "/usr/lib/python3/warnings.py:12: UserWarning: something of more words than a row has "
        "here\n",
        "real 0m3.1s\n",
    };
    text whole = {.end = 0};
    add_nccl(&whole, &nccl[0].log);
    for (size_t i = 0; i < ROWS(lines); i++) {
        text made = {.end = 0};
        cs_costs costs;
        cs_error error;
        const char *at = strstr(whole.bytes, "        1024");
        assert_non_null(at);
        add(&made, "%.*s%s%s", (int)(at - whole.bytes), whole.bytes, lines[i], at);
        if (import_nccl(&made, &dated, &costs, &error) != CS_OK)
            fail_msg("%s: %s", lines[i], error.text);
        expect_int(lines[i], 28, costs.network[0].n_points);
        cs_costs_finish(&costs);
    }
}

/* Logs of osu_latency and osu_bw, from 1 B to 4 MiB, two decimals, of one regime, with a
 * deterministic wave for noise. Of exact times of 23 sizes 89 % show one regime (test-fit.c); 60
 * logs less four deviations of 2.4 are 44. Taken for exact numbers, some 10 do. The same log twice
 * gives the same costs, with the points twice. */
static void add_osu(text *to, int seed, bool rate)
{
    add(to, rate ? "# OSU MPI Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n"
                 : "# OSU MPI Latency Test v7.5\n# Size       Avg Latency(us)\n");
    for (int i = 0; i < 23; i++) {
        const double bytes = ldexp(1, i);
        const double us =
            (0.2 + bytes / 12e3) * (1 + 0.004 * sin(1.7 * i * i + 2.9 * seed * i + seed));
        add(to, "%.0f %.2f\n", bytes, rate ? bytes / us : us);
    }
}

static void test_osu_rounded(void **state)
{
    (void)state;
    const cs_import_options options = {.date = "2026-11-21", .device = "d", .level = "node"};
    int found[2] = {0};
    for (int seed = 0; seed < 120; seed++) {
        const bool rate = seed % 2;
        text made = {.end = 0};
        cs_costs once, twice;
        cs_error error;
        add_osu(&made, seed, rate);
        assert_int_equal(import_osu(made.bytes, &options, &once, &error), CS_OK);
        add_osu(&made, seed, rate);
        assert_int_equal(import_osu(made.bytes, &options, &twice, &error), CS_OK);
        found[rate] += once.network[0].n_regimes == 1;
        expect_int("twice", once.network[0].n_regimes, twice.network[0].n_regimes);
        expect_double("twice", once.network[0].regimes[0].alpha.value,
                      twice.network[0].regimes[0].alpha.value);
        expect_int("points", 46, twice.network[0].n_points);
        cs_costs_finish(&once);
        cs_costs_finish(&twice);
    }
    if (found[0] < 44 || found[1] < 44)
        fail_msg("of 60 logs each, %d of latency and %d of bandwidth show one regime", found[0],
                 found[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nccl),
        cmocka_unit_test(test_nccl_several),
        cmocka_unit_test(test_nccl_broken),
        cmocka_unit_test(test_osu),
        cmocka_unit_test(test_osu_refused),
        cmocka_unit_test(test_nccl_collective),
        cmocka_unit_test(test_osu_rounded),
        cmocka_unit_test(test_wrapped),
        cmocka_unit_test(test_lines_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

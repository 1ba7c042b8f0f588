/* Imports costs from the output of nccl-tests and of the OSU micro-benchmarks: fits with the same
 * model as for our own measurements (calib/fit.h). A log may contain several tests, and any other
 * output of the terminal.
 *
 * nccl-tests (also rccl-tests), from 2.0: the header states ranks and hosts, the command line or
 * "Collective test starting" the collective. Times are out of place or, on request, in place. Bytes
 * are the column "size", which has the same meaning as in costs.h. The columns algbw and busbw must
 * agree with size, time, collective and ranks. sendrecv_perf is a "send" while every rank also
 * receives.
 *
 * OSU micro-benchmarks, from 3.1: the output states neither ranks nor hosts. osu_latency is "send",
 * osu_bw "stream"; the time of a collective is the slowest rank's if printed (-f), otherwise the
 * mean. Sizes of allgather, alltoall, gather and scatter are per rank and are multiplied by the
 * number of ranks.
 *
 * Errors are CS_INVALID with "file:line: error": malformed rows, results that failed the tool's own
 * check, a table that ends early, information that neither the log nor the options give.
 */
#ifndef CS_CALIB_IMPORT_H
#define CS_CALIB_IMPORT_H

#include "calib/costs.h"

#include <stddef.h>

typedef struct cs_import_options {
    const char *collective; /* one of cs_cost_collective_names; NULL: as in the log */
    const char *level;      /* one of cs_cost_level_names; NULL: as in the log */
    uint32_t ranks;         /* 0: as in the log */
    bool in_place;          /* nccl-tests */
    const char *device;     /* NULL: as in the log */
    const char *date;       /* YYYY-MM-DD */
} cs_import_options;

typedef struct cs_import_report {
    uint32_t n_rows;    /* rows that became points */
    uint32_t n_skipped; /* rows without bytes, and tables of unknown tests */
} cs_import_report;

/* Read a log and add its costs. Messages and the source call the file `name`. */
CS_MUST_CHECK cs_status cs_import_nccl_tests(const char *name, const char *text, size_t length,
                                             const cs_import_options *options, cs_costs *costs,
                                             cs_import_report *report, cs_error *error);
CS_MUST_CHECK cs_status cs_import_osu(const char *name, const char *text, size_t length,
                                      const cs_import_options *options, cs_costs *costs,
                                      cs_import_report *report, cs_error *error);

#endif

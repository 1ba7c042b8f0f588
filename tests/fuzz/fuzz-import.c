/* Logs of OSU micro-benchmarks or of nccl-tests; IMPORT is their reader. The first byte chooses
 * what the options say. */
#include "calib/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_costs costs;
    cs_error error;
    cs_import_report report;
    if (size == 0)
        return 0;
    const cs_import_options options = {.date = "2026-11-21",
                                       .device = data[0] & 1 ? "device" : NULL,
                                       .level = data[0] & 2 ? "node" : NULL,
                                       .collective = data[0] & 4 ? "all_reduce" : NULL,
                                       .ranks = data[0] & 8 ? 4 : 0,
                                       .in_place = data[0] & 16};
    cs_costs_init(&costs);
    cs_error_init(&error);
    (void)!IMPORT("fuzz", (const char *)data + 1, size - 1, &options, &costs, &report, &error);
    cs_costs_finish(&costs);
    return 0;
}

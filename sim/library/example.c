/* Which number of micro-batches is the fastest that fits? Runs a scenario with several of them and
 * prints a line for each:
 *
 *     cc example.c $(pkg-config --cflags --libs clustersim) -o example
 *     ./example scenarios/vgg16-gpipe.json
 */
#include <clustersim.h>
#include <stdio.h>

static int fail(const char *what, clustersim_error *error)
{
    fprintf(stderr, "%s failed\n", what);
    for (size_t i = 0; i < clustersim_error_count(error); i++) {
        const clustersim_message message = clustersim_error_message(error, i);
        fprintf(stderr, "%s %s: %s\n", message.file ? message.file : "",
                message.pointer ? message.pointer : "", message.text);
    }
    clustersim_error_free(error);
    return 1;
}

/* Seconds that device 0 computes forwards, from the columns of the trace. */
static double forward_time(const clustersim_result *result)
{
    const clustersim_tasks tasks = clustersim_result_tasks(result);
    int64_t picoseconds = 0;
    for (size_t i = 0; i < tasks.n; i++)
        if (tasks.device[i] == 0 && clustersim_kind_name(tasks.kind[i])[0] == 'f')
            picoseconds += tasks.end[i] - tasks.start[i];
    return 1e-12 * (double)picoseconds;
}

static int run(const char *path, const char *micro_batches)
{
    const clustersim_change change = {"/schedule/micro_batches", micro_batches};
    clustersim_scenario *scenario;
    clustersim_result *result;
    clustersim_error *error;
    if (clustersim_scenario_load(path, &change, 1, &scenario, &error) != CLUSTERSIM_OK)
        return fail("reading", error);
    const clustersim_status status = clustersim_run(scenario, NULL, &result, &error);
    clustersim_scenario_free(scenario);
    if (status != CLUSTERSIM_OK)
        return fail("running", error);
    const clustersim_figure *throughput =
        clustersim_result_figure(result, "throughput_samples_per_s");
    printf("%s micro-batches: %.5g %s, peak memory %.4g GB, forwards of device 0 %.4g s%s\n",
           micro_batches, throughput->value, throughput->unit,
           1e-9 * clustersim_result_value(result, "peak_memory_bytes"), forward_time(result),
           clustersim_result_value(result, "out_of_memory") > 0 ? ", does not fit" : "");
    clustersim_result_free(result);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const micro_batches[] = {"1", "2", "4", "8", "16"};
    int failed = argc != 2;
    for (size_t i = 0; i < 5 && !failed; i++)
        failed = run(argv[1], micro_batches[i]);
    return failed;
}

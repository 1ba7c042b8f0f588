/* Scenarios: everything that is accepted resolves to itself, and small ones run to their end.
 * Skipped are names of files, since the fuzzer would ask for /dev/tty, and scenarios with too many
 * devices or layers, which only take long. */
#include "sim/run/simulate.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_STEPS = 1 << 10, MOST_DEVICES = 64, MOST_READ = 1 << 12, MOST_LOOKS = 8 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool is_large(const cJSON *value)
{
    return cJSON_IsNumber(value) && value->valuedouble > MOST_READ;
}

static bool is_left_out(const cJSON *value)
{
    if (cs_json_member(value, "file") || is_large(cs_json_member(value, "devices")) ||
        is_large(cs_json_member(value, "layers")))
        return true;
    for (const cJSON *child = value->child; child; child = child->next) {
        if (is_left_out(child))
            return true;
    }
    return false;
}

static cs_status read_scenario(const char *text, size_t length, cs_scenario *scenario,
                               cs_error *error)
{
    cJSON *root;
    cs_error_init(error);
    cs_status status = cs_json_parse("s.json", text, length, &root, error);
    if (status != CS_OK)
        return status;
    status = is_left_out(root) ? CS_INTERRUPTED : cs_scenario_read(root, "s.json", scenario, error);
    cJSON_Delete(root);
    return status;
}

static void check_resolved(const cs_scenario *scenario)
{
    cs_scenario again;
    cs_error error;
    require(read_scenario(scenario->resolved, strlen(scenario->resolved), &again, &error) == CS_OK);
    require(strcmp(scenario->resolved, again.resolved) == 0);
    cs_scenario_finish(&again);
}

static bool goes_on(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)what, (void)done, (void)total;
    return ++*(int *)context < MOST_LOOKS;
}

/* The engine may find that the run takes more than 106 days, nothing else. With messages of others
 * it may also take long: those are not counted before. */
static void check_run(const cs_scenario *scenario)
{
    cs_simulation simulation = {0};
    cs_error error;
    int looks = 0;
    const cs_progress progress = {goes_on, &looks};
    const bool others = scenario->noise.n_sources > 0;
    const cs_simulation_options options = {.progress = others ? &progress : NULL};
    cs_error_init(&error);
    cs_status status = cs_simulate(scenario, &options, &simulation, &error);
    require(status == CS_OK || (status == CS_OVERFLOW && error.count > 0) ||
            (status == CS_INTERRUPTED && others));
    cs_simulation_finish(&simulation);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_scenario scenario;
    cs_error error;
    cs_status status = read_scenario((const char *)data, size, &scenario, &error);
    if (status != CS_OK) {
        require(status == CS_INTERRUPTED || status == CS_INVALID || status == CS_OVERFLOW);
        require(status == CS_INTERRUPTED || error.count > 0);
        return 0;
    }
    const cs_job *job = &scenario.job;
    uint64_t steps = (uint64_t)job->micro_batches * job->iterations * job->n_devices;
    if (scenario.model->n_layers <= MOST_STEPS)
        check_resolved(&scenario);
    if (steps <= MOST_STEPS && job->n_devices <= MOST_DEVICES &&
        scenario.model->n_layers <= MOST_STEPS)
        check_run(&scenario);
    cs_scenario_finish(&scenario);
    return 0;
}

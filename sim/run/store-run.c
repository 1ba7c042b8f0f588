#include "sim/run/store-run.h"

#include "sim/base/version.h"
#include "sim/core/analysis/store.h"
#include "sim/core/trace/results.h"
#include "sim/run/link-use.h"
#include "sim/run/segments.h"

#include <stdlib.h>

cs_status cs_figures_store(cs_h5_file *file, const cs_outcome *outcome, cs_error *error)
{
    cs_status status = CS_OK;
    for (const cs_run_figure *figure = cs_run_figures; figure->key && status == CS_OK; figure++)
        if (figure->scope == CS_SCOPE_RUN && figure->unit != CS_UNIT_BOOLEAN &&
            cs_run_figure_given(figure, outcome))
            status = cs_h5_set_double(file, figure->key, figure->get(outcome), error);
    return status;
}

cs_status cs_simulation_store(cs_h5_file *file, const cs_scenario *scenario,
                              const cs_simulation *simulation, const char *provenance,
                              cs_error *error)
{
    const cs_outcome outcome = {.scenario = scenario, .simulation = simulation};
    char sharing[CS_SHARING_TEXT_BYTES];
    cs_results_info info = {.name = scenario->name,
                            .topology = scenario->platform.topology,
                            .schedule = scenario->schedule->name,
                            .scenario = scenario->resolved,
                            .program_version = SIM_VERSION,
                            .seed = scenario->seed,
                            .provenance = provenance,
                            .hash = simulation->hash};
    if (!provenance)
        info.sharing = cs_sharing_text(&scenario->platform, sharing);
    if (simulation->lowering.n_collectives > 0) {
        info.algorithms = simulation->lowering.algorithms;
        info.fidelity = cs_fidelity_name(simulation->lowering.fidelity);
    }
    CS_TRY(cs_waits_store(file, &simulation->analysis.waits, error));
    CS_TRY(cs_results_write(file, &info, &simulation->graph, &simulation->trace, error));
    /* Write the origins of runtime settings (given, measured or assumed) as JSON. */
    if (scenario->origins.runtime) {
        cJSON *root = cs_origins_json(&scenario->origins);
        char *text = root ? cs_json_print(root) : NULL;
        cJSON_Delete(root);
        const cs_status status =
            text ? cs_h5_set_text(file, "runtime", text, error) : cs_error_no_memory(error);
        free(text);
        CS_TRY(status);
    }
    CS_TRY(cs_analysis_store(file, &simulation->analysis, error));
    CS_TRY(cs_link_use_store(file, &scenario->platform, &simulation->graph, &simulation->trace,
                             error));
    CS_TRY(cs_segments_store(file, scenario, &simulation->graph, &simulation->trace,
                             &simulation->allocations, error));
    return cs_figures_store(file, &outcome, error);
}

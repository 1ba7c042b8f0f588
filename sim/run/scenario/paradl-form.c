/* ParaDL's closed form for a scenario whose strategy is in its table 3. */
#include "schedules/states.h"
#include "sim/run/scenario/build.h"

#include "topologies/route.h"

#include <stdlib.h>
#include <string.h>

/* Describes the work of a pipeline rank per mini-batch. Returns false if table 3 has no row for
 * it. */
static bool find_case(const cs_sections *sections, const cs_scenario *made, cs_paradl_case *c)
{
    const cs_split *split = &made->parallel->split;
    const cs_grid *grid = &split->grid;
    const uint32_t parts = cs_grid_axes(grid, CS_AXES_SPACE).size;
    const bool pipeline = made->parallel->n_ranks > 1;
    const bool gpipe = strcmp(sections->schedule.kind->name, "gpipe") == 0;
    const bool pairs = split->tensor_method == CS_TENSOR_PAIRS;
    *c = (cs_paradl_case){.method = pipeline                                    ? CS_PARADL_PIPELINE
                                    : parts > 1                                 ? CS_PARADL_SPATIAL
                                    : split->tensor_method == CS_TENSOR_CHANNEL ? CS_PARADL_CHANNEL
                                                                                : CS_PARADL_FILTER,
                          .batch = made->batch_size,
                          .groups = grid->data,
                          .members = pipeline    ? made->parallel->n_ranks
                                     : parts > 1 ? parts
                                                 : grid->tensor,
                          .space = {grid->space[0], grid->space[1], grid->space[2]},
                          .segments = made->job.micro_batches,
                          .reuse = 1};
    if (grid->context > 1 || grid->expert > 1 || cs_states_zero(&made->job) > 0 ||
        (pairs && grid->tensor > 1) || (parts > 1 && grid->tensor > 1))
        return false;
    return pipeline ? gpipe && cs_grid_places(grid) == 1 : made->job.micro_batches == 1;
}

static cs_status find_link(const cs_scenario *made, const cs_rings *rings, cs_paradl_link *link,
                           cs_error *error)
{
    cs_ring_hop hop;
    CS_TRY(cs_rings_slowest(&made->platform, rings, &hop, error));
    *link = (cs_paradl_link){cs_time_seconds(hop.latency), 1 / hop.bandwidth};
    return CS_OK;
}

/* Finds the slowest links within and between groups. Members of a group are the inner devices, in
 * the order of the plan. */
static cs_status find_links(const cs_sections *sections, const cs_scenario *made, cs_paradl_case *c,
                            cs_error *error)
{
    const uint32_t n = c->groups * c->members;
    const bool over_links = cs_lower_takes_links(&sections->collectives);
    const bool collectives = c->method == CS_PARADL_FILTER || c->method == CS_PARADL_CHANNEL;
    const cs_rings within = {.n = n,
                             .size = c->members,
                             .stride = 1,
                             .devices = made->parallel->devices,
                             .over_links = over_links && collectives};
    const cs_rings between = {.n = n,
                              .size = c->groups,
                              .stride = c->members,
                              .alone = c->method == CS_PARADL_SPATIAL,
                              .devices = made->parallel->devices,
                              .over_links = over_links};
    CS_TRY(find_link(made, &within, &c->within, error));
    return find_link(made, &between, &c->between, error);
}

static cs_status evaluate(const cs_net *net, const cs_net_options *how, const cs_plan *plan,
                          cs_paradl_case *c, cs_paradl_form *form, cs_error *error)
{
    cs_net_chain chain;
    uint32_t *ends = calloc((size_t)plan->n_stages + 1, sizeof(*ends));
    if (!ends)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < plan->n_stages; s++)
        ends[s] = plan->stages[s].end_layer;
    c->ends = ends;
    const cs_status status = cs_net_chain_find(net, how, &chain, error);
    if (status == CS_OK) {
        cs_paradl_evaluate(net, &chain, how, c, form);
        cs_net_chain_finish(&chain);
    }
    c->ends = NULL;
    free(ends);
    return status;
}

/* Uses whole layers, for the samples that a device computes at once, and estimated times only. */
cs_status cs_scenario_paradl(const cs_sections *sections, const cs_loaded *loaded,
                             cs_scenario *made, cs_error *error)
{
    cs_accelerator device = {0};
    cs_net_options how;
    cs_workload workload = sections->model.workload;
    cs_paradl_case c;
    if (!made->parallel || !workload.name || workload.measured || loaded->costs.n_compute > 0 ||
        cs_paradl_space_rank(&loaded->net) == 0 || !find_case(sections, made, &c))
        return CS_OK;
    workload.batch_size = made->job.micro_samples;
    cs_status status = cs_workload_options(&workload, &device, &how, error);
    if (status == CS_OK)
        status = find_links(sections, made, &c, error);
    if (status == CS_OK)
        status = evaluate(&loaded->net, &how, made->plan, &c, &made->paradl.form, error);
    cs_accelerator_finish(&device);
    made->paradl.asked = c;
    made->paradl.given = status == CS_OK;
    return status;
}

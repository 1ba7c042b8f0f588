#include "sim/run/print/mesh-report.h"

#include "sim/model/net-local.h"

static const char *const methods[] = {"tensor", "filter", "channel"};

/* Counts the devices that are simulated. */
static uint32_t n_simulated(const cs_scenario *scenario)
{
    const cs_job *job = &scenario->job;
    uint32_t n = 0;
    for (uint32_t d = 0; d < job->n_devices; d++)
        n += !job->stands_for || job->stands_for[d] == d;
    return n;
}

static void print_axis(const char *name, uint32_t size, const char *how, bool *first, FILE *out)
{
    if (size == 1)
        return;
    fprintf(out, "%s%u %s%s", *first ? "" : " x ", size, name, how);
    *first = false;
}

static void print_axes(const cs_parallel *parallel, FILE *out)
{
    static const char *const contexts[] = {" (ring)", " (all-gather)", " (all-to-all)"};
    const cs_split *split = &parallel->split;
    const cs_grid *grid = &split->grid;
    bool first = true;
    print_axis("pipeline", parallel->n_ranks, "", &first, out);
    print_axis(methods[split->tensor_method], grid->tensor,
               split->sequence_parallel ? " (and sequences)" : "", &first, out);
    char name[64];
    snprintf(name, sizeof(name), "space (%u x %u x %u)", grid->space[0], grid->space[1],
             grid->space[2]);
    print_axis(name, grid->space[0] * grid->space[1] * grid->space[2], "", &first, out);
    print_axis("context", grid->context, contexts[split->context_method], &first, out);
    print_axis("data", grid->data, "", &first, out);
    if (first)
        fputs("one device", out);
    if (grid->expert > 1)
        fprintf(out, ", experts over %u", grid->expert);
    if (grid->expert > 1 && grid->expert_tensor > 1)
        fprintf(out, ", each over %u", grid->expert_tensor);
    if (grid->expert > 1 && split->routing.router != CS_ROUTER_GIVEN)
        fputs(", tokens drawn", out);
}

/* Sums the elements per sample that all operators of a place produce; 0 if unknown. */
static double elements_at(const cs_scenario *scenario, uint32_t place)
{
    cs_net_local local;
    cs_error error;
    double elements = 0;
    cs_error_init(&error);
    if (cs_net_local_make(scenario->net, &scenario->parallel->split, place, NULL, &local, &error) !=
        CS_OK)
        return 0;
    for (uint32_t p = 0; p < local.net.n_ops; p++)
        elements += (double)cs_net_tensor(&local.net, local.net.ops[p].output)->elements +
                    (double)(local.net.ops[p].weights + local.net.ops[p].biases);
    cs_net_local_finish(&local);
    return elements;
}

void cs_mesh_report_print(const cs_scenario *scenario, FILE *out)
{
    const uint32_t n = scenario->platform.n_devices, simulated = n_simulated(scenario);
    if (!scenario->parallel && simulated < n)
        fprintf(out, "%u of %u devices simulated, each represents %u\n", simulated, n,
                n / simulated);
    if (!scenario->parallel)
        return;
    fputs("mesh: ", out);
    print_axes(scenario->parallel, out);
    /* Print the number of layers per ZeRO stage; partly sharded layers are included, and also
     * counted separately. */
    const cs_states *states = &scenario->job.states;
    const uint32_t shard = scenario->parallel->split.grid.shard;
    uint32_t n_layers[CS_ZERO_STAGES] = {0}, n_parts = 0;
    if (!states->layers && states->zero > 0)
        fprintf(out, ", zero %u over %u", states->zero, shard);
    if (states->layers) {
        for (uint32_t l = 0; l < scenario->model->n_layers; l++) {
            n_layers[states->layers[l].zero]++;
            n_parts += states->layers[l].fraction < 1;
        }
        for (uint32_t zero = 0; zero < CS_ZERO_STAGES; zero++)
            if (n_layers[zero] > 0)
                fprintf(out, ", zero %u for %u layers", zero, n_layers[zero]);
        if (n_parts > 0)
            fprintf(out, " (%u of them partly)", n_parts);
        fprintf(out, " over %u", shard);
    }
    /* Report shards of different size. The first place always has the largest, the last one the
     * smallest (layout.h). */
    const cs_grid *grid = &scenario->parallel->split.grid;
    const uint32_t places = cs_grid_places(grid);
    if (scenario->net && places != grid->data) {
        const double most = elements_at(scenario, 0), least = elements_at(scenario, places - 1);
        if (least < most)
            fprintf(
                out,
                "; shards differ in size, and all are simulated like the largest: the smallest has "
                "%.4g %% of it",
                100 * least / most);
    }
    if (simulated < n)
        fprintf(out, "; %u of %u devices simulated, each represents %u", simulated, n,
                n / simulated);
    if (scenario->estimated)
        fprintf(out,
                "\n  estimate: %s; all devices are simulated like the slowest (\"fold\": "
                "\"slowest\")",
                scenario->estimated);
    else if (scenario->unfolded)
        fprintf(out, "\n  all %u devices are simulated: %s", n, scenario->unfolded);
    fputc('\n', out);
}

static bool add_reason(cJSON *mesh, const char *key, const char *reason)
{
    cJSON *value = reason ? cJSON_CreateString(reason) : cJSON_CreateNull();
    return cJSON_AddItemToObject(mesh, key, value);
}

static bool fill(const cs_scenario *scenario, cJSON *mesh)
{
    const cs_parallel *parallel = scenario->parallel;
    const cs_grid *grid = &parallel->split.grid;
    const struct {
        const char *key;
        uint32_t value;
    } numbers[] = {{"pipeline", parallel->n_ranks},
                   {methods[parallel->split.tensor_method], grid->tensor},
                   {"space", grid->space[0] * grid->space[1] * grid->space[2]},
                   {"context", grid->context},
                   {"data", grid->data},
                   {"expert", grid->expert},
                   {"expert_tensor", grid->expert_tensor},
                   {"zero", parallel->states.zero},
                   {"shard", grid->shard},
                   {"devices", scenario->platform.n_devices},
                   {"simulated_devices", n_simulated(scenario)}};
    bool done = true;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && done; i++)
        done = cJSON_AddNumberToObject(mesh, numbers[i].key, numbers[i].value) != NULL;
    return done && add_reason(mesh, "not_folded_because", scenario->unfolded) &&
           add_reason(mesh, "estimated_because", scenario->estimated);
}

bool cs_mesh_report_json(const cs_scenario *scenario, cJSON *root)
{
    if (!scenario->parallel)
        return true;
    cJSON *mesh = cJSON_AddObjectToObject(root, "mesh");
    return mesh && fill(scenario, mesh);
}

#include "schedules/plan/plan.h"
#include "sim/base/units.h"
#include "sim/cli/command.h"
#include "sim/cli/scenario-option.h"
#include "sim/cli/strategies-report.h"
#include "sim/cli/workload-option.h"
#include "sim/run/scenario/workload.h"
#include "topologies/route.h"
#include "topologies/topology.h"

#include <stdlib.h>
#include <string.h>

static const cs_option options[] = {
    {"devices", 'n', "N", "Devices (default: those of a node of the platform, else 8)", false,
     NULL},
    {"batch", 'b', "SAMPLES", "Samples of a mini-batch, of all devices together (default: 32 each)",
     false, NULL},
    {"platform", 0, "TOPOLOGY", "A topology's name (default: abci), or {\"topology\": ...}", false,
     NULL, "topologies"},
    CS_OPTION_IMAGE,
    CS_OPTION_PARAM,
    {"device", 'd', "DEVICE", "Device to estimate times for (default: v100), or a device file",
     false, NULL, "devices"},
    {"precision", 0, "NAME", "Numbers (default: fp32)", false, cs_precision_names},
    {"optimizer", 0, "NAME", "What updates the weights (default: sgd)", false, cs_optimizer_names},
    {"granularity", 'g', "NAME", "Layers of the chain that a pipeline cuts (default: layer)", false,
     cs_granularity_names},
    {"group", 0, "N",
     "Devices that compute a sample together in data_filter and data_spatial (default: those of a "
     "node, else 4)",
     false, NULL},
    {"segments", 0, "S", "Of a mini-batch in a pipeline (default: 4 for each stage)", false, NULL},
    {"dataset", 0, "SAMPLES", "Of an epoch, whose time is then printed", false, NULL},
    {"reuse", 0, "GAMMA", "Memory that is needed, over the sum of all tensors (default: 1)", false,
     NULL},
    {"json", 0, NULL, "Print JSON instead of a table", false, NULL},
    {0},
};

enum { BATCH_EACH = 32, SEGMENTS_EACH = 4, USUAL_NODE = 4, USUAL_DEVICES = 8 };

/* ---- what is asked for ---- */

typedef struct request {
    cs_workload workload;
    cs_net net;
    cs_platform platform;
    cs_accelerator device;
    cs_arena arena;
    uint32_t devices, batch, group, segments;
    cs_strategies *out;
} request;

static void finish(request *asked)
{
    cs_net_finish(&asked->net);
    cs_platform_finish(&asked->platform);
    cs_accelerator_finish(&asked->device);
    cs_arena_finish(&asked->arena);
}

static cs_status read_network(const cs_arguments *arguments, request *asked, cs_error *error)
{
    static const cs_json_place place = {.file = "sim strategies"};
    uint32_t states;
    const char *device = cs_arguments_value(arguments, "device");
    cs_workload *workload = &asked->workload;
    *workload = (cs_workload){.name = arguments->words[0], .device = device ? device : "v100"};
    CS_TRY(cs_arguments_choice(arguments, "precision", cs_precision_names, &workload->precision,
                               error));
    CS_TRY(cs_arguments_choice(arguments, "granularity", cs_granularity_names,
                               &workload->granularity, error));
    CS_TRY(cs_arguments_choice(arguments, "optimizer", cs_optimizer_names, &states, error));
    workload->optimizer_states = states;
    cJSON *parameters = cJSON_CreateObject();
    cs_status status = parameters ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_arguments_parameters(arguments, parameters, error);
    workload->parameters = parameters;
    if (status == CS_OK)
        status = cs_workload_network(workload, &place, &asked->net, error);
    workload->parameters = NULL;
    cJSON_Delete(parameters);
    return status;
}

/* A name, or an object. */
static cs_status read_platform(const cs_arguments *arguments, request *asked, cs_error *error)
{
    static const cs_json_place place = {.file = "--platform"};
    const char *text = cs_arguments_value(arguments, "platform");
    cs_topology_choice choice;
    cJSON *value = NULL;
    cs_status status = CS_OK;
    if (text && *text == '{')
        status = cs_json_parse("--platform", text, strlen(text), &value, error);
    else if (!(value = cJSON_CreateString(text ? text : "abci")))
        status = cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_topology_choose(value, &place, &asked->arena, &choice, error);
    if (status == CS_OK)
        status =
            cs_topology_build(choice.kind, choice.params, asked->devices, &asked->platform, error);
    if (status == CS_OK)
        asked->platform.sharing = cs_topology_sharing(choice.kind);
    cJSON_Delete(value);
    return status;
}

static cs_status number(const cs_arguments *arguments, const char *option, double fallback,
                        double *out, cs_error *error)
{
    static const double most = 1e15; /* all that follows is finite */
    const char *text = cs_arguments_value(arguments, option);
    cs_error why;
    *out = fallback;
    cs_error_init(&why);
    if (!text ||
        (cs_units_parse(text, CS_QUANTITY_NUMBER, out, &why) == CS_OK && *out > 0 && *out <= most))
        return CS_OK;
    return cs_error_add(error, CS_USAGE,
                        "strategies: --%s must be a number above 0, at most %g (got \"%s\")",
                        option, most, text);
}

static cs_status read_request(const cs_arguments *arguments, request *asked, cs_error *error)
{
    CS_TRY(cs_arguments_between(arguments, "devices", USUAL_DEVICES, 1, UINT32_MAX, &asked->devices,
                                error));
    CS_TRY(read_platform(arguments, asked, error));
    uint32_t node = asked->platform.node_devices ? asked->platform.node_devices : USUAL_NODE;
    node = node < asked->devices ? node : asked->devices;
    CS_TRY(cs_arguments_between(
        arguments, "batch",
        asked->devices < CS_BATCH_MAX / BATCH_EACH ? BATCH_EACH * asked->devices : CS_BATCH_MAX, 1,
        UINT32_MAX, &asked->batch, error));
    CS_TRY(cs_arguments_between(arguments, "group", node, 1, UINT32_MAX, &asked->group, error));
    CS_TRY(cs_arguments_between(arguments, "segments", SEGMENTS_EACH * asked->devices, 1,
                                UINT32_MAX, &asked->segments, error));
    CS_TRY(number(arguments, "dataset", 0, &asked->out->dataset, error));
    CS_TRY(number(arguments, "reuse", 1, &asked->out->reuse, error));
    if (asked->devices % asked->group != 0)
        return cs_error_add(error, CS_USAGE,
                            "strategies: --group must divide the %u devices (got %u)",
                            asked->devices, asked->group);
    return read_network(arguments, asked, error);
}

/* ---- rows ---- */

/* What the devices are: groups, members of one group, or both. */
typedef enum use { ALONE, GROUPS, MEMBERS, BOTH } use;

static const struct {
    const char *name;
    cs_paradl_method method;
    use uses;
} rows[CS_N_STRATEGIES] = {
    {"serial", CS_PARADL_SPATIAL, ALONE},    {"data", CS_PARADL_FILTER, GROUPS},
    {"spatial", CS_PARADL_SPATIAL, MEMBERS}, {"pipeline", CS_PARADL_PIPELINE, MEMBERS},
    {"filter", CS_PARADL_FILTER, MEMBERS},   {"channel", CS_PARADL_CHANNEL, MEMBERS},
    {"data_filter", CS_PARADL_FILTER, BOTH}, {"data_spatial", CS_PARADL_SPATIAL, BOTH},
};

static cs_status find_link(const request *asked, const cs_rings *rings, cs_paradl_link *link,
                           cs_error *error)
{
    cs_ring_hop hop;
    CS_TRY(cs_rings_slowest(&asked->platform, rings, &hop, error));
    *link = (cs_paradl_link){cs_time_seconds(hop.latency), 1 / hop.bandwidth};
    return CS_OK;
}

/* Stages whose slowest is the fastest. `ends` has room for all layers. */
static cs_status cut(const request *asked, const cs_net_options *how, uint32_t stages,
                     uint32_t *ends, cs_error *error)
{
    cs_model model = {0};
    cs_plan plan = {0};
    cs_status status = cs_net_model(&asked->net, how, &model, error);
    const cs_balance balance = {.model = &model, .n_stages = stages};
    if (status == CS_OK)
        status = cs_plan_balanced(&balance, &plan, error);
    for (uint32_t s = 0; status == CS_OK && s < stages; s++)
        ends[s] = plan.stages[s].end_layer;
    cs_plan_finish(&plan);
    cs_model_finish(&model);
    return status;
}

/* Samples that a device computes at once: those of its group, or of a segment. */
static uint32_t local_samples(const cs_paradl_case *c)
{
    const uint32_t parts = c->method == CS_PARADL_PIPELINE ? c->segments : c->groups;
    const uint32_t samples = c->batch / parts + (c->batch % parts > 0);
    return samples < CS_BATCH_MAX ? samples : CS_BATCH_MAX;
}

static cs_status evaluate(const request *asked, cs_net_options *how, cs_paradl_case *c,
                          cs_paradl_form *form, cs_error *error)
{
    cs_net_chain chain;
    uint32_t *ends = NULL;
    how->batch_size = local_samples(c);
    CS_TRY(cs_net_chain_find(&asked->net, how, &chain, error));
    cs_status status = CS_OK;
    if (c->method == CS_PARADL_PIPELINE && c->members > chain.n_layers) {
        *form = (cs_paradl_form){.most_members = chain.n_layers}; /* there is nothing to evaluate */
    } else {
        ends = calloc(chain.n_layers, sizeof(*ends));
        status = ends ? CS_OK : cs_error_no_memory(error);
        c->ends = ends;
        if (status == CS_OK && c->method == CS_PARADL_PIPELINE)
            status = cut(asked, how, c->members, ends, error);
        if (status == CS_OK)
            cs_paradl_evaluate(&asked->net, &chain, how, c, form);
        c->ends = NULL;
    }
    free(ends);
    cs_net_chain_finish(&chain);
    return status;
}

static cs_status make_row(const request *asked, uint32_t r, cs_net_options *how, cs_error *error)
{
    cs_strategy *row = &asked->out->rows[r];
    cs_paradl_case *c = &row->asked;
    *row = (cs_strategy){.name = rows[r].name};
    *c = (cs_paradl_case){.method = rows[r].method,
                          .batch = asked->batch,
                          .groups = rows[r].uses == GROUPS ? asked->devices
                                    : rows[r].uses == BOTH ? asked->devices / asked->group
                                                           : 1,
                          .members = rows[r].uses == MEMBERS ? asked->devices
                                     : rows[r].uses == BOTH  ? asked->group
                                                             : 1,
                          .segments =
                              asked->segments < asked->batch ? asked->segments : asked->batch,
                          .reuse = asked->out->reuse};
    cs_paradl_divide_space(c->method == CS_PARADL_SPATIAL ? c->members : 1,
                           cs_paradl_space_rank(&asked->net), c->space);
    const uint32_t n = c->groups * c->members;
    const bool collectives = c->method == CS_PARADL_FILTER || c->method == CS_PARADL_CHANNEL;
    const cs_rings within = {.n = n, .size = c->members, .stride = 1, .over_links = collectives};
    const cs_rings between = {.n = n,
                              .size = c->groups,
                              .stride = c->members,
                              .alone = c->method == CS_PARADL_SPATIAL, /* of leaders */
                              .over_links = true};
    CS_TRY(find_link(asked, &within, &c->within, error));
    CS_TRY(find_link(asked, &between, &c->between, error));
    return evaluate(asked, how, c, &row->form, error);
}

static cs_status make_rows(request *asked, cs_error *error)
{
    cs_net_options how;
    cs_status status = cs_workload_options(&asked->workload, &asked->device, &how, error);
    for (uint32_t r = 0; status == CS_OK && r < CS_N_STRATEGIES; r++)
        status = make_row(asked, r, &how, error);
    asked->out->device = asked->device.title;
    asked->out->network = asked->net.name;
    asked->out->topology = asked->platform.topology;
    asked->out->precision = cs_precision_names[asked->workload.precision];
    asked->out->devices = asked->devices;
    asked->out->batch = asked->batch;
    return status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    cs_strategies strategies = {0};
    request asked = {.out = &strategies};
    cs_arena_init(&asked.arena);
    cs_status status = read_request(arguments, &asked, error);
    if (status == CS_OK)
        status = make_rows(&asked, error);
    if (status == CS_OK && cs_arguments_flag(arguments, "json"))
        status = cs_print_json(cs_strategies_json(&strategies), context->out, error);
    else if (status == CS_OK)
        cs_strategies_print(&strategies, context->out);
    finish(&asked);
    return status;
}

const cs_command cs_command_strategies = {
    .name = "strategies",
    .words = "NAME|CONFIG.json",
    .min_words = 1,
    .max_words = 1,
    .names = {"models"},
    .summary = "compare parallel strategies for a convolutional network",
    .doc =
        "Prints closed forms of time and memory, and how many devices each strategy can use: data, "
        "spatial, pipeline, filter and channel parallelism, and hybrids (Kahira et al., HPDC "
        "2021, table 3).\n\n"
        "Times of layers are estimated as `sim model` does. Messages take the latency and the "
        "bandwidth of the slowest hop of a ring on the platform, while all rings like it run. "
        "Nothing is simulated, and nothing overlaps: `sim run` does that.",
    .options = options,
    .run = run,
};

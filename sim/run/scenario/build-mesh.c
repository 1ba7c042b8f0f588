/* The mesh of the section "parallel": infers sizes that are left open, and places ranks on
 * devices. */
#include "sim/base/text.h"
#include "sim/model/layout.h"
#include "sim/run/scenario/build.h"

#include <stdio.h>

enum { MOST_DEVICES = 1 << 20, PRODUCT_BYTES = 160 };

/* ---- sizes ---- */

/* Names and sizes of the axes that multiply to the number of devices. */
enum { LAYERS, SPACE, CONTEXT, PIPELINE, DATA, N_SIZES };
typedef struct mesh_sizes {
    const char *names[N_SIZES];
    uint64_t sizes[N_SIZES]; /* 0: not known yet */
} mesh_sizes;

static uint32_t part(const cs_list *space, uint32_t i)
{
    return i < space->n ? ((const uint32_t *)space->items)[i] : 1;
}

/* Multiplies all known sizes except one (N_SIZES: except none). Stops being exact beyond
 * MOST_DEVICES. */
static uint64_t product(const mesh_sizes *of, uint32_t but)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < N_SIZES && n <= MOST_DEVICES; i++)
        n *= i == but || of->sizes[i] == 0 ? 1 : of->sizes[i];
    return n;
}

/* "tensor 8 x pipeline 16" */
static const char *product_text(const mesh_sizes *of, uint32_t but, char text[PRODUCT_BYTES])
{
    size_t end = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < N_SIZES; i++)
        if (of->sizes[i] > 1 && i != but)
            end +=
                (size_t)snprintf(text + end, PRODUCT_BYTES - end, "%s%s %llu", end > 0 ? " x " : "",
                                 of->names[i], (unsigned long long)of->sizes[i]);
    return end > 0 ? text : "one device";
}

/* Reports a product that does not divide the devices. Proposes other sizes, or other numbers of
 * devices. */
static cs_status refuse_product(const cs_sections *sections, const mesh_sizes *of, uint32_t devices,
                                cs_error *error)
{
    const cs_json_place place = {.up = &sections->root, .key = "parallel"};
    char text[PRODUCT_BYTES], key[64];
    const uint64_t n = product(of, N_SIZES);
    (void)cs_json_invalid(&place, error,
                          "%s needs a multiple of %llu devices, and the platform has %u",
                          product_text(of, N_SIZES, text), (unsigned long long)n, devices);
    for (uint32_t i = 0; i < N_SIZES; i++) {
        const uint64_t others = product(of, i);
        if (of->sizes[i] < 2 || devices % others != 0 || i == SPACE)
            continue;
        snprintf(key, sizeof(key), "/parallel/%s", of->names[i]);
        cs_propose_divisors(key, of->sizes[i], devices / others, error);
    }
    if (sections->platform.devices > 0)
        cs_propose_multiples("/platform/devices", devices, n, error);
    return CS_INVALID;
}

/* Reports sizes whose product is not the number of devices. */
static cs_status refuse_data(const cs_sections *sections, const mesh_sizes *of, uint32_t devices,
                             cs_error *error)
{
    const cs_json_place parallel = {.up = &sections->root, .key = "parallel"};
    const cs_json_place place = {.up = &parallel, .key = "data"};
    char text[PRODUCT_BYTES];
    const uint64_t others = product(of, DATA);
    if (devices % others != 0)
        return refuse_product(sections, of, devices, error);
    (void)cs_json_invalid(&place, error,
                          "needs %llu devices%s%s, and the platform has %u (got %llu)",
                          (unsigned long long)product(of, N_SIZES), others > 1 ? " with " : "",
                          others > 1 ? product_text(of, DATA, text) : "", devices,
                          (unsigned long long)of->sizes[DATA]);
    cs_error_propose(error, true, "/parallel/data", "%llu", (unsigned long long)(devices / others));
    if (sections->platform.devices > 0)
        cs_error_propose(error, true, "/platform/devices", "%llu",
                         (unsigned long long)product(of, N_SIZES));
    return CS_INVALID;
}

/* Sets the number of pipeline ranks if the schedule requires one. */
static cs_status ask_schedule(const cs_sections *sections, uint32_t n_layers, mesh_sizes *sizes,
                              cs_error *error)
{
    const cs_schedule *kind = sections->schedule.kind;
    const void *params = sections->schedule.params;
    const cs_json_place parallel = {.up = &sections->root, .key = "parallel"};
    const cs_json_place place = {.up = &parallel, .key = "pipeline"};
    const uint32_t asked = cs_mesh_has_stages(kind) ? cs_mesh_only(kind, params, n_layers) : 1;
    if (asked == 0)
        return CS_OK;
    if (sizes->sizes[PIPELINE] > 0 && sizes->sizes[PIPELINE] != asked)
        return cs_json_invalid(&place, error, "must be %u for the schedule \"%s\" (got %llu)",
                               asked, kind->name, (unsigned long long)sizes->sizes[PIPELINE]);
    sizes->sizes[PIPELINE] = asked;
    return CS_OK;
}

/* Infers open sizes from the number of devices. */
static cs_status divide_devices(const cs_sections *sections, uint32_t devices, mesh_sizes *sizes,
                                cs_error *error)
{
    uint64_t *pipeline = &sizes->sizes[PIPELINE], *data = &sizes->sizes[DATA];
    const uint64_t known = product(sizes, N_SIZES);
    if (*pipeline > 0 && *data > 0)
        return known == devices ? CS_OK : refuse_data(sections, sizes, devices, error);
    if (known > devices || devices % known != 0)
        return refuse_product(sections, sizes, devices, error);
    if (*pipeline == 0) {
        *pipeline = devices / known;
        *data = *data > 0 ? *data : 1;
    } else {
        *data = devices / known;
    }
    return CS_OK;
}

/* ---- experts and shards, which are spread over the other axes ---- */

static cs_status check_divisor(const cs_json_place *parallel, const char *key, const char *what,
                               uint64_t n, uint32_t of, cs_error *error)
{
    const cs_json_place place = {.up = parallel, .key = key};
    char pointer[64];
    if (n <= of && of % n == 0)
        return CS_OK;
    (void)cs_json_invalid(&place, error, "must divide the %u %s (got %llu)", of, what,
                          (unsigned long long)n);
    snprintf(pointer, sizeof(pointer), "/parallel/%s", key);
    cs_propose_divisors(pointer, n, of, error);
    return CS_INVALID;
}

/* Whether a network has no experts; false if the operators of the model are unknown. */
static bool lacks_experts(const cs_net *net)
{
    for (uint32_t i = 0; i < net->n_ops; i++)
        if (net->ops[i].kind == CS_OP_TOP_K)
            return false;
    return net->n_ops > 0;
}

static cs_status settle_experts(const cs_parallel_section *section, const cs_loaded *loaded,
                                const cs_json_place *parallel, cs_grid *grid, cs_error *error)
{
    const uint32_t places = cs_grid_places(grid);
    const bool has_none = lacks_experts(&loaded->net);
    if (has_none && (section->expert > 1 || section->expert_tensor > 1)) {
        const char *key = section->expert > 1 ? "expert" : "expert_tensor";
        const cs_json_place place = {.up = parallel, .key = key};
        return cs_json_invalid(&place, error, "\"%s\" has no experts: must be 1 (got %u)",
                               loaded->net.name,
                               section->expert > 1 ? section->expert : section->expert_tensor);
    }
    grid->expert = section->expert;
    grid->expert_tensor = section->expert_tensor > 0 ? section->expert_tensor : grid->tensor;
    CS_TRY(check_divisor(parallel, "expert_tensor", "devices of a stage", grid->expert_tensor,
                         places, error));
    return check_divisor(parallel, "expert",
                         grid->expert_tensor > 1 ? "devices of a stage divided by expert_tensor"
                                                 : "devices of a stage",
                         grid->expert, places / grid->expert_tensor, error);
}

/* ---- order ---- */

/* Takes the listed axes, followed by the others. */
static cs_status settle_order(const cs_parallel_section *section, const cs_json_place *parallel,
                              cs_parallel *made, cs_error *error)
{
    const cs_json_place place = {.up = parallel, .key = "order"};
    const uint32_t *listed = section->order.items;
    bool taken[CS_N_MESH_AXES] = {false};
    uint32_t n = 0;
    for (; n < section->order.n; n++) {
        made->order[n] = listed[n];
        taken[listed[n]] = true;
    }
    for (uint32_t axis = 0; axis < CS_N_MESH_AXES; axis++) {
        const uint32_t size =
            cs_mesh_axis_size(&made->split.grid, made->n_ranks, (cs_mesh_axis)axis);
        if (!taken[axis] && size > 1)
            return cs_json_invalid(&place, error, "must list \"%s\" as well, of size %u",
                                   cs_mesh_axis_names[axis], size);
        if (!taken[axis])
            made->order[n++] = axis;
    }
    return CS_OK;
}

/* Checks that "ranks" lists each device once. */
static cs_status check_ranks(const cs_list *ranks, uint32_t n, const cs_json_place *parallel,
                             cs_arena *arena, cs_error *error)
{
    const cs_json_place place = {.up = parallel, .key = "ranks"};
    const uint32_t *devices = ranks->items;
    bool *taken = cs_arena_alloc(arena, n, sizeof(*taken));
    if (!taken)
        return cs_error_no_memory(error);
    if (ranks->n != n)
        return cs_json_invalid(&place, error, "must list each of %u devices once (got %u)", n,
                               ranks->n);
    for (uint32_t i = 0; i < n; i++) {
        const cs_json_place at = {.up = &place, .index = (int)i};
        if (devices[i] >= n || taken[devices[i]])
            return cs_json_invalid(&at, error,
                                   "must be a device below %u that is not listed before "
                                   "(got %u)",
                                   n, devices[i]);
        taken[devices[i]] = true;
    }
    return CS_OK;
}

/* ---- all of it ---- */

/* Whether the optimizer updates copies of the weights in a type of twice their size. */
static bool has_copies(const cs_sections *sections)
{
    const cs_precision precision = (cs_precision)sections->model.workload.precision;
    return sections->model.workload.name && sections->model.main_weights == 0 &&
           2 * cs_precision_bytes(precision) == cs_precision_bytes(CS_PRECISION_FP32);
}

static cs_parallel take_sizes(const cs_sections *sections, const mesh_sizes *sizes)
{
    const cs_parallel_section *section = &sections->parallel;
    const uint32_t seed = sections->top.seed;
    cs_parallel made = {.split = cs_split_none(), .n_ranks = (uint32_t)sizes->sizes[PIPELINE]};
    cs_split *split = &made.split;
    split->grid.tensor = (uint32_t)sizes->sizes[LAYERS];
    for (uint32_t i = 0; i < 3; i++)
        split->grid.space[i] = part(&section->space, i);
    split->grid.context = section->context;
    split->grid.data = (uint32_t)sizes->sizes[DATA];
    split->tensor_method = section->filter > 1    ? CS_TENSOR_FILTER
                           : section->channel > 1 ? CS_TENSOR_CHANNEL
                                                  : CS_TENSOR_PAIRS;
    split->sequence_parallel = section->sequence_parallel && section->tensor > 1;
    split->keeps_tokens = split->sequence_parallel && !section->regather;
    split->wide_gathers = !section->narrow_gathers;
    split->context_method = (cs_context_method)section->context_method;
    split->space_until = section->space_until;
    split->routing.imbalance = section->expert_imbalance;
    if (section->routing) {
        const bool seeded = section->routing->seed != CS_COUNT_LEFT_OUT;
        split->routing.router =
            section->routing->drawn == 0 ? CS_ROUTER_UNIFORM : CS_ROUTER_DIRICHLET;
        split->routing.concentration = section->routing->concentration;
        split->routing.seed = seeded ? section->routing->seed : seed;
    }
    split->synchronised_norm = section->synchronised_norm;
    made.states = (cs_states){.zero = section->zero,
                              .prefetch = section->prefetch,
                              .wide_shards = !section->shard_copies && has_copies(sections),
                              .keep_gathered = section->keep_gathered,
                              .gather_once = section->gather_once &&
                                             cs_parallel_section_zero(section, NULL) == 3,
                              .whole_sums = section->reduce > 0,
                              .accumulate = section->accumulate,
                              .bucket = section->bucket};
    return made;
}

/* Proposes schedules that accept all sections, with the scenario's number of micro-batches. */
static void propose_schedules(const cs_sections *sections, cs_error *error)
{
    const cs_schedule_section *schedule = &sections->schedule;
    const uint32_t n = cs_schedule_micro_batches(schedule->kind, schedule->params);
    static const char *const names[] = {"sequential", "1f1b"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        cs_error_propose(error, true, "/schedule", "{\"kind\": \"%s\", \"micro_batches\": %u}",
                         names[i], n > 0 ? n : 1);
}

static cs_status refuse_schedule(const cs_sections *sections, const cs_json_place *parallel,
                                 cs_error *error)
{
    const cs_schedule *kind = sections->schedule.kind;
    (void)cs_json_invalid(parallel, error, "cannot be combined with the schedule \"%s\", which %s",
                          kind->name, kind->mesh.no_grid);
    propose_schedules(sections, error);
    return CS_INVALID;
}

/* If mini-batches overlap, a backward needs the weight version of its forward, but shards hold only
 * the newest. */
static cs_status check_zero(const cs_sections *sections, const cs_json_place *parallel,
                            cs_error *error)
{
    const cs_schedule *kind = sections->schedule.kind;
    uint32_t rule;
    const uint32_t zero = cs_parallel_section_zero(&sections->parallel, &rule);
    const cs_json_place rules = {.up = parallel, .key = "rules"};
    const cs_json_place at = {.up = &rules, .index = (int)rule};
    const cs_json_place place = {.up = rule == CS_COUNT_LEFT_OUT ? parallel : &at, .key = "zero"};
    if (!kind->asynchronous || zero < 3)
        return CS_OK;
    (void)cs_json_invalid(&place, error,
                          "must be at most 2 for the schedule \"%s\", whose backwards use older "
                          "weights, which cannot be gathered again (got %u)",
                          kind->name, zero);
    if (rule == CS_COUNT_LEFT_OUT)
        cs_error_propose(error, true, "/parallel/zero", "2");
    propose_schedules(sections, error);
    return CS_INVALID;
}

/* Muon updates whole matrices, on a device that holds all of their gradients. */
static cs_status check_matrices(const cs_sections *sections, const cs_json_place *parallel,
                                cs_error *error)
{
    const cs_optimizer *optimizer = &cs_optimizers[sections->model.optimizer];
    const bool rules = sections->parallel.rules.n > 0;
    const cs_json_place place = {.up = parallel, .key = rules ? "rules" : "zero"};
    if (!(optimizer->other_ratio > 0) || (!rules && sections->parallel.zero < 2))
        return CS_OK;
    if (rules)
        return cs_json_invalid(&place, error, "must be left out with the optimizer \"%s\"",
                               optimizer->name);
    (void)cs_json_invalid(&place, error,
                          "must be below 2 with the optimizer \"%s\", which updates whole matrices "
                          "(got %u)",
                          optimizer->name, sections->parallel.zero);
    cs_error_propose(error, true, "/parallel/zero", "1");
    cs_error_propose(error, false, "/parallel/zero", "0");
    cs_error_propose(error, true, "/model/optimizer", "\"adam\"");
    return CS_INVALID;
}

/* Copies of key/value heads: from the network's operators, or as noted in a model that was split
 * before. */
static uint32_t copies_of(const cs_loaded *loaded, const cs_split *split)
{
    const cs_grid *over = loaded->model.divided_over;
    if (split->tensor_method != CS_TENSOR_PAIRS)
        return 1;
    return loaded->net.n_ops > 0 ? cs_split_copies(&loaded->net, split->grid.tensor)
           : over                ? over->copies
                                 : 1;
}

cs_status cs_scenario_parallel(const cs_sections *sections, uint32_t given, const cs_loaded *loaded,
                               cs_arena *arena, const cs_parallel **out, cs_error *error)
{
    const cs_parallel_section *section = &sections->parallel;
    const cs_json_place place = {.up = &sections->root, .key = "parallel"};
    *out = NULL;
    if (!section->given || (section->only_fold && cs_mesh_is_replicated(sections->schedule.kind)))
        return CS_OK;
    if (sections->schedule.kind->mesh.no_grid)
        return refuse_schedule(sections, &place, error);
    CS_TRY(check_zero(sections, &place, error));
    CS_TRY(check_matrices(sections, &place, error));
    cs_parallel *made = cs_arena_alloc(arena, 1, sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    mesh_sizes sizes;
    const uint32_t n_layers =
        (sections->model.uniform ? sections->model.uniform->layers : loaded->model.n_layers);
    char text[PRODUCT_BYTES];
    const char *method = sections->parallel.filter > 1    ? "filter"
                         : sections->parallel.channel > 1 ? "channel"
                                                          : "tensor";
    const uint64_t layers = (uint64_t)sections->parallel.tensor * sections->parallel.filter *
                            sections->parallel.channel;
    const uint64_t space = (uint64_t)part(&sections->parallel.space, 0) *
                           part(&sections->parallel.space, 1) * part(&sections->parallel.space, 2);
    sizes = (mesh_sizes){{method, "space", "context", "pipeline", "data"},
                         {layers, space, sections->parallel.context, sections->parallel.pipeline,
                          sections->parallel.data}};
    CS_TRY(ask_schedule(sections, n_layers, &sizes, error));
    if (given == 0) {
        /* Infer open sizes if the number of devices is open, too. */
        const cs_json_place parallel = {.up = &sections->root, .key = "parallel"};
        const cs_json_place pipeline_place = {.up = &parallel, .key = "pipeline"};
        const cs_schedule_section *schedule = &sections->schedule;
        if (sizes.sizes[DATA] == 0)
            sizes.sizes[DATA] = 1;
        if (sizes.sizes[PIPELINE] == 0 && !sections->model.workload.name)
            sizes.sizes[PIPELINE] =
                cs_mesh_devices(schedule->kind, schedule->params, n_layers, false);
        if (sizes.sizes[PIPELINE] == 0)
            return cs_json_invalid(&pipeline_place, error, "must be given, or /platform/devices");
    }
    if (product(&sizes, N_SIZES) > MOST_DEVICES)
        return cs_json_invalid(&place, error, "%s are more than %d devices",
                               product_text(&sizes, N_SIZES, text), MOST_DEVICES);
    if (given > 0)
        CS_TRY(divide_devices(sections, given, &sizes, error));
    *made = take_sizes(sections, &sizes);
    made->split.grid.copies = copies_of(loaded, &made->split);
    CS_TRY(settle_experts(section, loaded, &place, &made->split.grid, error));
    /* Settle the number of shards. Shards of experts lie on the same devices as shards of dense
     * weights, if sizes permit. */
    const uint32_t dense = cs_grid_axes(&made->split.grid, CS_AXES_GRADIENT).size;
    const uint32_t experts = cs_grid_axes(&made->split.grid, CS_AXES_EXPERT_DATA).size;
    if (cs_parallel_section_zero(section, NULL) != 0) {
        made->split.grid.shard = section->shard > 0 ? section->shard : dense;
        CS_TRY(check_divisor(&place, "shard", "data x context x space ranks of a stage",
                             made->split.grid.shard, dense, error));
        const uint32_t span = made->split.grid.shard * made->split.grid.tensor,
                       apart = made->split.grid.expert * made->split.grid.expert_tensor;
        if (made->split.grid.shard == dense)
            made->split.grid.expert_shard = experts;
        else if (span % apart == 0 && experts % (span / apart) == 0)
            made->split.grid.expert_shard = span / apart;
    }
    const cs_list *ranks = &sections->parallel.ranks;
    const uint32_t n = made->n_ranks * cs_grid_places(&made->split.grid);
    uint32_t *devices = cs_arena_alloc(arena, n, sizeof(*devices));
    if (!devices)
        return cs_error_no_memory(error);
    CS_TRY(settle_order(&sections->parallel, &place, made, error));
    if (ranks->items)
        CS_TRY(check_ranks(ranks, n, &place, arena, error));
    cs_mesh_number(&made->split.grid, made->n_ranks, made->order, ranks->items, devices);
    made->devices = devices;
    *out = made;
    return CS_OK;
}

cs_mesh cs_scenario_mesh(const cs_sections *sections, const cs_parallel *parallel,
                         uint32_t n_devices)
{
    const cs_schedule_section *schedule = &sections->schedule;
    return parallel ? cs_mesh_make_grid(schedule->kind, schedule->params, &parallel->split.grid,
                                        parallel->n_ranks, parallel->devices)
                    : cs_mesh_make(schedule->kind, schedule->params, n_devices);
}

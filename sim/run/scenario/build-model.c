#include "sim/run/scenario/build.h"

#include "sim/base/text.h"
#include "sim/base/vector.h"
#include "sim/model/net-local.h"
#include "sim/model/recompute.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAMED = 3 }; /* missing times that an error message names */

/* ---- given costs ---- */

/* "a.json, b.json", for people. */
static const char *name_files(const cs_costs_section *given, cs_arena *arena)
{
    char text[256] = "inline";
    size_t end = 0;
    for (uint32_t i = 0; i < given->n_files && end < sizeof(text); i++)
        end += (size_t)cs_text_format(text + end, sizeof(text) - end, "%s%s", end > 0 ? ", " : "",
                                      given->files[i]);
    return cs_arena_copy(arena, text);
}

static bool have(const char *list, const char *device)
{
    const size_t length = strlen(device);
    for (const char *at = strstr(list, device); at; at = strstr(at + 1, device))
        if ((at == list || at[-1] == ' ') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

/* Adds the device of a source to the list, unless it is there. */
static void name_device(const cs_costs *costs, uint32_t source, char *list, size_t size,
                        uint32_t *n)
{
    const char *device = costs->sources[source].device;
    const size_t end = strlen(list);
    if (have(list, device))
        return;
    cs_text_format(list + end, size - end, "%s%s", end > 0 ? ", " : "", device);
    ++*n;
}

static cs_status warn(cs_costs_use *use, const char *text, cs_arena *arena, cs_error *error)
{
    use->warnings[use->n_warnings] = cs_arena_copy(arena, text);
    return use->warnings[use->n_warnings++] ? CS_OK : cs_error_no_memory(error);
}

cs_status cs_scenario_costs_use(const cs_sections *sections, const cs_costs *costs, cs_arena *arena,
                                cs_costs_use *use, cs_error *error)
{
    char list[512] = "", text[640];
    uint32_t n = 0;
    *use = (cs_costs_use){.given = sections->top.costs.given};
    if (!use->given)
        return CS_OK;
    for (uint32_t i = 0; i < costs->n_compute; i++)
        name_device(costs, costs->compute[i].source, list, sizeof(list), &n);
    for (uint32_t i = 0; i < costs->n_network; i++)
        name_device(costs, costs->network[i].source, list, sizeof(list), &n);
    use->files = name_files(&sections->top.costs, arena);
    use->devices = cs_arena_copy(arena, list);
    if (!use->files || !use->devices)
        return cs_error_no_memory(error);
    cs_text_format(text, sizeof(text), "the costs were measured on different devices: %s", list);
    return n > 1 ? warn(use, text, arena, error) : CS_OK;
}

/* ---- use of costs ---- */

/* Costs of a workload, and their use so far. */
typedef struct pricing {
    const cs_costs *costs;
    cs_arena *arena;
    cs_costs_use *use;
    cs_status status; /* CS_NO_MEMORY if counting failed */
} pricing;

static cs_status note_missing(pricing *p, const char *key, cs_pass pass)
{
    cs_costs_use *use = p->use;
    use->n_estimated++;
    uint32_t i = 0;
    while (i < use->n_missing && strcmp(use->missing[i].op, key) != 0)
        i++;
    if (i == use->n_missing) {
        const char *op = cs_arena_copy(p->arena, key);
        if (!op || !cs_vector_reserve((void **)&use->missing, &use->cap_missing,
                                      use->n_missing + UINT64_C(1), sizeof(*use->missing)))
            return CS_NO_MEMORY;
        use->missing[use->n_missing++] = (cs_missing_cost){.op = op};
    }
    use->missing[i].passes |= 1u << pass;
    use->missing[i].count++;
    return CS_OK;
}

static double find_seconds(void *context, const char *key, cs_pass pass)
{
    pricing *p = context;
    const cs_cost_compute *entry = cs_costs_compute(p->costs, key);
    if (entry && entry->passes[pass].samples > 0) {
        p->use->n_measured++;
        return entry->passes[pass].median;
    }
    if (note_missing(p, key, pass) != CS_OK)
        p->status = CS_NO_MEMORY;
    return -1;
}

static int64_t find_workspace(void *context, const char *key)
{
    const pricing *p = context;
    const cs_cost_compute *entry = cs_costs_compute(p->costs, key);
    return entry ? entry->workspace_bytes : -1;
}

/* Returns the device of the first entry; all entries of one device agree. */
static const char *device_of(const cs_costs *costs)
{
    return costs->n_compute > 0 ? costs->sources[costs->compute[0].source].device : "";
}

/* Returns the lookup of costs in `p`, which must outlive it. */
static cs_measured measured_by(pricing *p)
{
    return (cs_measured){.seconds = find_seconds,
                         .workspace = find_workspace,
                         .context = p,
                         .origin = p->use->files,
                         .device = device_of(p->costs)};
}

/* Returns the model's workload on one device, priced by `measured`, which must outlive it. */
static cs_workload priced_workload(const cs_sections *sections, const cs_costs *costs,
                                   const cs_measured *measured, const cs_parallel *parallel)
{
    cs_workload workload = sections->model.workload;
    workload.costs = costs->n_compute > 0 ? measured : NULL;
    workload.split = parallel ? &parallel->split : NULL;
    const cs_schedule_section *schedule = &sections->schedule;
    const uint32_t zero = cs_parallel_section_zero(&sections->parallel, NULL);
    workload.kernels.sums_apart = cs_schedule_micro_batches(schedule->kind, schedule->params) > 1 &&
                                  (zero < 2 || sections->parallel.accumulate);
    return workload;
}

/* Keeps letters and digits, in lower case. */
static void simplify(const char *from, size_t length, char *to, size_t size)
{
    size_t end = 0;
    for (size_t i = 0; i < length && end + 1 < size; i++)
        if (isalnum((unsigned char)from[i]))
            to[end++] = (char)tolower((unsigned char)from[i]);
    to[end] = '\0';
}

/* Warns if operators were measured on another device than the scenario's. */
static cs_status check_hardware(const pricing *p, const cs_workload *workload, cs_error *error)
{
    cs_accelerator device = {0};
    cs_error why;
    char text[640];
    const char *measured = device_of(p->costs);
    cs_error_init(&why);
    if (!workload->device || p->use->n_measured == 0 ||
        cs_accelerator_load(workload->device, workload->from, &device, &why) != CS_OK)
        return CS_OK; /* other checks report an invalid device */
    cs_text_format(text, sizeof(text), "times of operators were measured on %.200s, not on %.200s",
                   measured, device.title);
    char whole[256], part[64];
    simplify(measured, strlen(measured), whole, sizeof(whole));
    simplify(device.name, strlen(device.name), part, sizeof(part));
    bool same = part[0] && strstr(whole, part);
    for (const char *at = device.title; *at && !same; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        simplify(at, length, part, sizeof(part));
        same = strlen(part) > 2 && strpbrk(part, "0123456789") &&
               strpbrk(part, "abcdefghijklmnopqrstuvwxyz") && strstr(whole, part);
        at += length;
    }
    cs_accelerator_finish(&device);
    return same ? CS_OK : warn(p->use, text, p->arena, error);
}

static cs_status check_missing(const pricing *p, const cs_workload *workload,
                               const cs_json_place *root, cs_error *error)
{
    const cs_costs_use *use = p->use;
    const cs_json_place model = {.up = root, .key = "model"};
    const cs_json_place place = {.up = &model, .key = "device"};
    char text[NAMED * CS_OP_KEY_BYTES] = "";
    size_t end = 0;
    if (p->status != CS_OK)
        return cs_error_no_memory(error);
    if (workload->device || !use->given)
        return CS_OK;
    if (p->costs->n_compute == 0)
        return cs_json_invalid(
            &place, error,
            "must be given, because the costs have no times of operators: one of "
            "`sim list devices`");
    if (use->n_missing == 0)
        return CS_OK;
    for (uint32_t i = 0; i < use->n_missing && i < NAMED && end < sizeof(text); i++)
        end += (size_t)snprintf(text + end, sizeof(text) - end, "%s %s", i > 0 ? ";" : "",
                                use->missing[i].op);
    return cs_json_invalid(&place, error,
                           "must be given, because the costs lack %u of %u times:%s%s",
                           use->n_estimated, use->n_measured + use->n_estimated, text,
                           use->n_missing > NAMED ? "; ..." : "");
}

/* ---- models ---- */

/* Reports names that match no operator, with their places in the scenario. */
static cs_status check_operators(const cs_net *net, const char *const *names, uint32_t n,
                                 const cs_json_place *list, cs_error *error)
{
    for (uint32_t i = 0; i < n; i++) {
        const cs_json_place at = {.up = list, .index = (int)i};
        if (!cs_recompute_means_any(names[i], net))
            return cs_json_invalid(&at, error,
                                   "%s has no operator \"%s\"; its first is \"%s\" (sim model "
                                   "--json lists them)",
                                   net->name, names[i], net->ops[0].name);
    }
    return CS_OK;
}

static bool is_recomputed(const cs_workload *workload, const char *op)
{
    const char *const *names = workload->recompute_operators.items;
    bool any = false;
    for (uint32_t i = 0; i < workload->recompute_operators.n && !any; i++)
        any = cs_recompute_means(names[i], op);
    return any;
}

static cs_status make_uniform(const cs_sections *sections, const cs_mesh *mesh, cs_model *model,
                              cs_error *error)
{
    const cs_uniform_section *uniform = sections->model.uniform;
    const cs_layer layer = {.forward = uniform->forward,
                            .backward_input = uniform->backward / 2,
                            .backward_weight = uniform->backward - uniform->backward / 2,
                            .update = uniform->update,
                            .weight_bytes = uniform->weights,
                            .output_bytes = uniform->activation,
                            .kept_bytes = uniform->activation,
                            .workspace_bytes = uniform->workspace};
    uint32_t n_layers = uniform->layers;
    if (n_layers == 0) {
        const cs_schedule_section *schedule = &sections->schedule;
        const cs_json_place model_place = {.up = &sections->root, .key = "model"};
        const cs_json_place uniform_place = {.up = &model_place, .key = "uniform"};
        const cs_json_place layers = {.up = &uniform_place, .key = "layers"};
        if (!cs_mesh_counts_layers(schedule->kind))
            return cs_json_invalid(&layers, error, "must be given for the schedule \"%s\"",
                                   schedule->kind->name);
        n_layers = mesh->n_stages;
    }
    return cs_model_uniform(n_layers, &layer, model, error);
}

/* An axis of the mesh that splits layers, by its key in the section. */
typedef struct layer_axis {
    const char *key;
    uint32_t size, had; /* size in the scenario; size over which the model's layers were split */
} layer_axis;
enum { N_LAYER_AXES = 5 };

static void list_axes(const cs_parallel *parallel, const cs_model *model,
                      layer_axis axes[N_LAYER_AXES])
{
    const cs_grid single = cs_grid_single();
    const cs_grid *grid = parallel ? &parallel->split.grid : &single;
    const cs_grid *had = model->divided_over ? model->divided_over : &single;
    static const char *const methods[] = {"tensor", "filter", "channel"};
    axes[0] = (layer_axis){methods[parallel ? parallel->split.tensor_method : CS_TENSOR_PAIRS],
                           grid->tensor, had->tensor};
    axes[1] = (layer_axis){"space", cs_grid_axes(grid, CS_AXES_SPACE).size,
                           cs_grid_axes(had, CS_AXES_SPACE).size};
    axes[2] = (layer_axis){"context", grid->context, had->context};
    axes[3] = (layer_axis){"expert", grid->expert, had->expert};
    axes[4] = (layer_axis){"expert_tensor", grid->expert > 1 ? grid->expert_tensor : 1,
                           had->expert > 1 ? had->expert_tensor : 1};
}

/* Refuses axes that need operators to split layers, and models whose layers are parts of a
 * different split. */
static cs_status check_division(const cs_sections *sections, const cs_parallel *parallel,
                                const cs_model *model, cs_error *error)
{
    const cs_json_place place = {.up = &sections->root, .key = "parallel"};
    layer_axis axes[N_LAYER_AXES];
    list_axes(parallel, model, axes);
    for (size_t i = 0; i < N_LAYER_AXES; i++) {
        const cs_json_place key = {.up = &place, .key = axes[i].key};
        if (axes[i].size == axes[i].had)
            continue;
        if (model->divided_over)
            return cs_json_invalid(
                &key, error,
                "must be %u, the number of devices over which the model's layers are split "
                "(got %u)",
                axes[i].had, axes[i].size);
        return cs_json_invalid(
            &key, error,
            "must be 1: this model has no operators, so only samples (\"data\") and states "
            "(\"zero\") can be split (got %u); models with /model/name have operators, which may "
            "be a model file with the keys \"inputs\" and \"operators\"",
            axes[i].size);
    }
    return CS_OK;
}

/* Without an optimizer nothing is updated, whatever the layers' update times. */
static void leave_out_updates(const cs_sections *sections, cs_model *model)
{
    if (!cs_optimizers[sections->model.optimizer].is_none)
        return;
    for (uint32_t i = 0; i < model->n_layers; i++)
        model->layers[i].update = 0;
    for (uint32_t b = 0; b < model->n_batches; b++)
        for (uint32_t i = 0; i < model->n_layers; i++)
            model->batches[b].layers[i].update = 0;
}

cs_status cs_scenario_model(const cs_sections *sections, cs_loaded *loaded,
                            const cs_parallel *parallel, const cs_mesh *mesh, cs_arena *arena,
                            cs_model *model, cs_costs_use *use, cs_error *error)
{
    if (sections->model.workload.name) {
        const cs_json_place place = {.up = &sections->root, .key = "parallel"};
        pricing p = {.costs = &loaded->costs, .arena = arena, .use = use};
        const cs_measured measured = measured_by(&p);
        cs_workload workload = priced_workload(sections, p.costs, &measured, parallel);
        if (parallel)
            CS_TRY(cs_net_split_check(&loaded->net, &parallel->split, &place, error));
        const cs_json_place model_place = {.up = &sections->root, .key = "model"};
        const cs_json_place offload = {.up = &sections->root, .key = "offload"};
        const cs_json_place recomputed = {.up = &model_place, .key = "recompute_operators"};
        const cs_json_place offloaded = {.up = &offload, .key = "operators"};
        const cs_json_place discarded = {.up = &model_place, .key = "discard_operators"};
        CS_TRY(check_operators(&loaded->net, workload.recompute_operators.items,
                               workload.recompute_operators.n, &recomputed, error));
        const char *const *names = workload.discard_operators.items;
        for (uint32_t i = 0; i < workload.discard_operators.n; i++) {
            const cs_json_place at = {.up = &discarded, .index = (int)i};
            bool any = false;
            for (uint32_t op = 0; op < loaded->net.n_ops && !any; op++)
                any = cs_recompute_means(names[i], loaded->net.ops[op].name) &&
                      is_recomputed(&workload, loaded->net.ops[op].name);
            if (!any)
                return cs_json_invalid(&at, error,
                                       "%s has no recomputed operator \"%s\" whose result could be "
                                       "discarded (see /model/recompute_operators)",
                                       loaded->net.name, names[i]);
        }
        if (workload.offloads)
            CS_TRY(check_operators(&loaded->net, workload.offload.operators,
                                   workload.offload.n_operators, &offloaded, error));
        /* Times are estimated for the samples that a device computes at once. batch.c checks that
         * the division has no remainder. */
        const cs_schedule_section *schedule = &sections->schedule;
        const uint32_t batch_size = sections->model.batch_size;
        uint64_t parts = cs_schedule_micro_batches(schedule->kind, schedule->params);
        if (mesh->n_devices > 0)
            parts *= mesh->n_replicas;
        workload.batch_size = batch_size > parts ? (uint32_t)(batch_size / parts) : 1;
        CS_TRY(cs_workload_model(&workload, &loaded->net, model, error));
        CS_TRY(check_hardware(&p, &workload, error));
        CS_TRY(check_missing(&p, &workload, &sections->root, error));
        /* Note the grid over which a named model was split. */
        layer_axis axes[N_LAYER_AXES];
        bool divided = false;
        list_axes(parallel, model, axes);
        for (size_t i = 0; i < N_LAYER_AXES; i++)
            divided |= axes[i].size > 1;
        if (divided) {
            cs_grid *over = cs_arena_alloc(&model->arena, 1, sizeof(*over));
            if (!over)
                return cs_error_no_memory(error);
            *over = parallel->split.grid;
            over->data = over->shard = over->expert_shard = 1;
            model->divided_over = over;
        }
    } else if (sections->model.uniform) {
        CS_TRY(make_uniform(sections, mesh, model, error));
        CS_TRY(check_division(sections, parallel, model, error));
    } else {
        *model = loaded->model;
        loaded->model = (cs_model){0};
        CS_TRY(check_division(sections, parallel, model, error));
    }
    model->float_gradients = sections->model.gradients != 0;
    leave_out_updates(sections, model);
    const cs_json_place up = {.up = &sections->root, .key = "model"};
    const cs_json_place optimizer_place = {.up = &up, .key = "optimizer"};
    const cs_optimizer *optimizer = &cs_optimizers[sections->model.optimizer];
    uint32_t n = 0;
    for (uint32_t i = 0; i < model->n_layers; i++)
        n += model->layers[i].n_matrices;
    if (!(optimizer->other_ratio > 0) || n > 0)
        return CS_OK;
    return cs_json_invalid(&optimizer_place, error, "cannot be \"%s\", which updates matrices: %s",
                           optimizer->name,
                           sections->model.workload.name
                               ? "the model has no linear layer except the last"
                               : "no layer of the model has \"matrices\"; use a named model");
}

cs_status cs_scenario_price(const cs_sections *sections, const cs_loaded *loaded,
                            const cs_parallel *parallel, const cs_samples *samples, cs_arena *arena,
                            cs_model *model, cs_costs_use *use, cs_error *error)
{
    pricing p = {.costs = &loaded->costs, .arena = arena, .use = use};
    const cs_measured measured = measured_by(&p);
    const cs_workload workload = priced_workload(sections, p.costs, &measured, parallel);
    if (!sections->model.workload.name)
        return CS_OK;
    for (uint32_t i = 0; i < samples->n; i++) {
        CS_TRY(cs_workload_add_batch(&workload, &loaded->net, samples->items[i], model, error));
        CS_TRY(check_missing(&p, &workload, &sections->root, error));
    }
    leave_out_updates(sections, model);
    return CS_OK;
}

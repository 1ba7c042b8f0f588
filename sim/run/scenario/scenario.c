#include "sim/run/scenario/scenario.h"

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/run/scenario/build.h"
#include "sim/run/scenario/planning.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void cs_scenario_finish(cs_scenario *scenario)
{
    if (!scenario->shared.model)
        cs_model_finish(scenario->model);
    if (!scenario->shared.network)
        cs_net_finish(scenario->net);
    if (!scenario->shared.platform)
        cs_platform_finish(&scenario->platform);
    else if (scenario->shared.kept)
        cs_kept_platforms_give_back(scenario->shared.kept, scenario->shared.platform);
    cs_plan_finish(scenario->plan);
    cs_pattern_finish(scenario->pattern);
    cs_arena_finish(&scenario->arena);
    free(scenario->resolved);
    free(scenario->costs.missing);
    *scenario = (cs_scenario){0};
}

/* "folder/vgg16-gpipe.json" -> "vgg16-gpipe". Characters that names must not contain are
 * escaped. */
static const char *name_of_file(cs_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    name =
        cs_arena_copy_length(arena, name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
    return name ? cs_text_shown(name, arena) : NULL;
}

/* How to read a scenario. */
typedef struct reading {
    bool unplanned;                 /* stop before planning */
    bool brief;                     /* leave out everything that only people read */
    bool point;                     /* see cs_scenario_read_point */
    cs_kept_platforms *kept;        /* cache of platforms, or NULL */
    const cs_scenario_parts *parts; /* or NULL */
    const cs_progress *progress;
} reading;

static cs_status make_model(const cs_sections *sections, cs_loaded *loaded, const cs_mesh *mesh,
                            cs_scenario *made, cs_error *error)
{
    return made->shared.model ? CS_OK
                              : cs_scenario_model(sections, loaded, made->parallel, mesh,
                                                  &made->arena, made->model, &made->costs, error);
}

/* Adds the times for further numbers of samples. A shared model has them already. */
static cs_status price(const cs_sections *sections, const cs_loaded *loaded,
                       const cs_samples *samples, cs_scenario *made, cs_error *error)
{
    if (!made->shared.model)
        return cs_scenario_price(sections, loaded, made->parallel, samples, &made->arena,
                                 made->model, &made->costs, error);
    for (uint32_t i = 0; i < samples->n; i++)
        assert(cs_model_layers(made->model, samples->items[i]));
    return CS_OK;
}

/* Returns everything that the platform is built from: its section, the costs that it may name, the
 * number of devices, and the default memory and reserve. NULL if memory runs out. */
static char *platform_key(const cs_sections *sections, const cJSON *root, uint32_t n_devices,
                          cs_arena *arena)
{
    const cJSON *costs = cs_json_member(root, "costs");
    char *platform = cs_json_line(cs_json_member(root, "platform"));
    char *measured = costs ? cs_json_line(costs) : strdup("");
    const size_t size = platform && measured ? strlen(platform) + strlen(measured) + 96 : 0;
    char *key = size > 0 ? cs_arena_alloc(arena, size, 1) : NULL;
    if (key)
        snprintf(key, size, "%" PRIu32 " %" PRId64 " %" PRId64 " %s %s", n_devices,
                 *(const int64_t *)sections->platform.memory.items,
                 *(const int64_t *)sections->platform.reserve.items, platform, measured);
    free(platform);
    free(measured);
    return key;
}

/* Borrows the platform from the cache, after adding it if necessary. */
static cs_status borrow_platform(const cs_sections *sections, const cJSON *root,
                                 cs_kept_platforms *kept, uint32_t n_devices, cs_scenario *made,
                                 cs_error *error)
{
    cs_platform platform;
    const char *key = platform_key(sections, root, n_devices, &made->arena);
    if (!key)
        return cs_error_no_memory(error);
    const cs_platform *lent = cs_kept_platforms_borrow(kept, key);
    if (!lent) {
        CS_TRY(cs_scenario_platform(sections, n_devices, &platform, error));
        lent = cs_kept_platforms_add(kept, key, &platform);
        if (!lent) {
            cs_platform_finish(&platform);
            return cs_error_no_memory(error);
        }
    }
    made->shared.platform = lent;
    made->shared.kept = kept;
    made->platform = *lent;
    return CS_OK;
}

static cs_status make_platform(const cs_sections *sections, const cJSON *root, const reading *how,
                               const cs_mesh *mesh, cs_scenario *made, cs_error *error)
{
    if (how->kept)
        return borrow_platform(sections, root, how->kept, mesh->n_devices, made, error);
    if (!made->shared.platform)
        return cs_scenario_platform(sections, mesh->n_devices, &made->platform, error);
    assert(made->shared.platform->n_devices == mesh->n_devices);
    made->platform = *made->shared.platform;
    return cs_scenario_take_capacities(sections, &made->arena, &made->platform, error);
}

/* Plans the job, then completes it. */
static cs_status build_job(const cs_sections *sections, const cs_loaded *loaded,
                           const cs_mesh *mesh, const cs_batch *batch, const cs_job *unplanned,
                           const cs_progress *progress, cs_scenario *made, cs_error *error)
{
    cs_arena *arena = &made->arena;
    cs_samples samples;
    cs_folded folded;
    cs_scenario_planned *planned = cs_arena_alloc(arena, 1, sizeof(*planned));
    if (!planned)
        return cs_error_no_memory(error);
    CS_TRY(cs_scenario_plan_samples(sections, unplanned, batch, arena, &samples, error));
    CS_TRY(price(sections, loaded, &samples, made, error));
    CS_TRY(cs_scenario_plan(sections, unplanned, mesh, batch, progress, arena, planned, error));
    made->plan = &planned->plan;
    made->pattern = planned->pattern.period > 0 ? &planned->pattern : NULL;
    made->search = planned->search;
    CS_TRY(cs_scenario_stage_samples(sections, unplanned, made->plan, arena, &samples, error));
    CS_TRY(price(sections, loaded, &samples, made, error));
    CS_TRY(cs_scenario_fold(sections, made->parallel, &made->platform, made->plan,
                            made->shared.difference, arena, &folded, error));
    made->unfolded = folded.stands_for ? NULL : folded.reason;
    made->estimated = folded.stands_for ? folded.reason : NULL;
    made->difference = folded.difference;
    made->foregone = folded.foregone;
    return cs_scenario_job(sections, &made->platform, batch, unplanned, made->plan, made->pattern,
                           folded.stands_for, arena, &made->job, error);
}

static cs_status build(const cs_sections *sections, const cJSON *root, cs_loaded *loaded,
                       const reading *how, cs_scenario *made, cs_error *error)
{
    cs_mesh mesh;
    cs_batch batch;
    cs_job unplanned;
    cs_samples shares;
    /* Make model, mesh and platform, and split the batch. */
    /* Make the model and its mesh. Without the section "parallel", the number of devices may follow
     * from the number of layers, or vice versa. */
    const bool open = cs_model_section_is_open(&sections->model);
    cs_arena *arena = &made->arena;
    uint32_t n;
    CS_TRY(cs_scenario_given_devices(sections, &n, error));
    CS_TRY(cs_scenario_costs_use(sections, &loaded->costs, arena, &made->costs, error));
    CS_TRY(cs_scenario_parallel(sections, n, loaded, arena, &made->parallel, error));
    mesh = cs_scenario_mesh(sections, made->parallel, n);
    if (!open)
        CS_TRY(make_model(sections, loaded, &mesh, made, error));
    if (!made->parallel) {
        CS_TRY(cs_scenario_devices(sections, n, made->model, &n, error));
        mesh = cs_scenario_mesh(sections, NULL, n);
    }
    if (open)
        CS_TRY(make_model(sections, loaded, &mesh, made, error));
    CS_TRY(make_platform(sections, root, how, &mesh, made, error));
    CS_TRY(cs_scenario_batch(sections, made->model, &mesh, &batch, error));
    made->batch_size = batch.samples;
    CS_TRY(cs_scenario_unplanned_job(sections, made->model, &made->platform, made->parallel, &batch,
                                     &made->arena, &unplanned, error));
    if (!how->unplanned)
        return build_job(sections, loaded, &mesh, &batch, &unplanned, how->progress, made, error);
    made->job = unplanned;
    CS_TRY(cs_scenario_shares(&unplanned, &made->arena, &shares, error));
    return price(sections, loaded, &shares, made, error);
}

/* Copies settings from the sections. */
static cs_status take_over(const cs_sections *sections, const cs_loaded *loaded, cs_scenario *made,
                           cs_error *error)
{
    const char *path = sections->root.file;
    made->name = sections->top.name ? sections->top.name : name_of_file(&made->arena, path);
    made->file = cs_arena_copy(&made->arena, path);
    if (!made->name || !made->file)
        return cs_error_no_memory(error);
    made->seed = sections->top.seed;
    made->has_allocator = cs_memory_section_allocator(&sections->memory, &made->caching);
    made->weight_buffer = sections->memory.weight_buffer;
    made->whole_weights = sections->memory.whole_weights;
    made->passes_ahead = sections->memory.passes_ahead;
    made->dataset = sections->top.dataset;
    made->schedule = sections->schedule.kind;
    made->params = sections->schedule.params;
    made->noise = sections->platform.noise;
    made->slowdown = sections->platform.slowdowns;
    made->storage = cs_model_section_storage(&sections->model);
    made->collectives = sections->collectives;
    made->collectives.file = made->file;
    made->collectives.memory = made->shared.memory;
    /* If experts are distributed, and collectives can be delays: share of their time that the
     * schedule is designed to overlap. */
    const bool hides =
        sections->parallel.expert > 1 && made->collectives.fidelity != CS_FIDELITY_FLOW;
    if (isnan(made->collectives.expert_overlap))
        made->collectives.expert_overlap = hides ? sections->schedule.kind->expert_overlap : 0;
    /* With a dispatcher that sends a token once to several experts: copies per token, and
     * experts. */
    made->collectives.copies = made->collectives.experts = 0;
    for (uint32_t i = 0; i < loaded->net.n_ops && sections->parallel.dispatcher > 0; i++) {
        const cs_op *op = &loaded->net.ops[i];
        if (op->kind != CS_OP_TOP_K || op->top_k <= made->collectives.copies)
            continue;
        made->collectives.copies = op->top_k;
        made->collectives.experts = op->experts;
    }
    return CS_OK;
}

static cs_status make(const cJSON *root, const char *path, const reading *how, cs_loaded *loaded,
                      cs_scenario *made, cs_error *error)
{
    cs_sections sections;
    CS_TRY(cs_sections_read(root, path, &made->arena, &sections, loaded, &made->warnings, error));
    CS_TRY(build(&sections, root, loaded, how, made, error));
    CS_TRY(take_over(&sections, loaded, made, error));
    if (!how->unplanned && !how->brief)
        CS_TRY(cs_scenario_paradl(&sections, loaded, made, error));
    /* Move the network of a named model into the scenario. */
    if (sections.model.workload.name) {
        made->net = cs_arena_alloc(&made->arena, 1, sizeof(*made->net));
        if (!made->net)
            return cs_error_no_memory(error);
        *made->net = loaded->net;
        loaded->net = (cs_net){0};
        made->device = sections.model.device;
        made->granularity = sections.model.workload.granularity;
        made->n_recomputed = sections.model.workload.recompute_operators.n;
    }
    if (!how->brief) {
        cs_scenario_warn(&sections, made, &made->warnings);
        cs_scenario_warn_of_runtime(&sections, root, made, &made->warnings);
    }
    CS_TRY(cs_origins_add_measured(&sections, &loaded->costs, &made->costs, &made->arena,
                                   &made->origins, error));
    if (how->unplanned || how->brief || how->point)
        return CS_OK;
    cs_scenario_warn_of_recompute(&sections, made, &made->warnings);
    made->resolved = cs_scenario_resolved(&sections, made, &loaded->costs, error);
    return made->resolved ? CS_OK : cs_error_or_no_memory(error);
}

static cs_status read_scenario(const cJSON *root, const char *path, const reading *how,
                               cs_scenario *scenario, cs_error *error)
{
    cs_loaded loaded = {0};
    *scenario = (cs_scenario){0};
    cs_arena_init(&scenario->arena);
    cJSON *copy = cJSON_Duplicate(root, true);
    if (how->parts)
        scenario->shared = *how->parts;
    if (scenario->shared.network)
        loaded = (cs_loaded){.net = *scenario->shared.network->net,
                             .net_is_known = true,
                             .device = scenario->shared.network->device};
    scenario->model = scenario->shared.model
                          ? scenario->shared.model
                          : cs_arena_alloc(&scenario->arena, 1, sizeof(*scenario->model));
    cs_status status =
        copy && scenario->model
            ? cs_runtime_apply(copy, path, &scenario->arena,
                               how->brief || how->point ? NULL : &scenario->origins, error)
            : cs_error_no_memory(error);
    if (status == CS_OK)
        status = make(copy, path, how, &loaded, scenario, error);
    cs_loaded_finish(&loaded);
    cJSON_Delete(copy);
    if (status != CS_OK)
        cs_scenario_finish(scenario);
    return status;
}

/* Whether the document becomes a valid scenario by this change. */
static bool is_accepted(const cJSON *root, const char *path, const reading *how,
                        const cs_error_proposal *proposal)
{
    const reading tried = {.brief = true, .progress = how->progress};
    cs_scenario scenario;
    cJSON *changed = cJSON_Duplicate(root, true);
    bool accepted =
        changed && cs_json_set(changed, proposal->pointer, proposal->value, path, NULL) == CS_OK;
    if (accepted)
        accepted = read_scenario(changed, path, &tried, &scenario, NULL) == CS_OK;
    if (accepted)
        cs_scenario_finish(&scenario);
    cJSON_Delete(changed);
    return accepted;
}

/* Tries the proposals of the reader, and appends those that are accepted to the message: "; use 4
 * or 8, or /platform/devices=32". */
static void try_proposals(const cJSON *root, const char *path, const reading *how, cs_error *error)
{
    char told[512] = "";
    const char *last = "";
    size_t used = 0;
    bool is_done = false; /* a proposal of this group was accepted */
    cs_error_message message;
    cs_error_proposal proposal;
    if (!cs_error_message_at(error, 0, &message))
        return;
    for (uint32_t at = 0; cs_error_next_proposal(error, &at, &proposal);) {
        is_done = is_done && !proposal.first;
        if (is_done || !is_accepted(root, path, how, &proposal))
            continue;
        const bool is_own =
            strlen(proposal.pointer) == (size_t)message.pointer_bytes &&
            strncmp(proposal.pointer, message.pointer, strlen(proposal.pointer)) == 0;
        const bool goes_on = strcmp(proposal.pointer, last) == 0;
        used += (size_t)snprintf(told + used, sizeof(told) - used, "%s%s%s%s",
                                 !*last    ? "; use "
                                 : goes_on ? " or "
                                           : ", or ",
                                 is_own || goes_on ? "" : proposal.pointer,
                                 is_own || goes_on ? "" : "=", proposal.value);
        if (used >= sizeof(told))
            break;
        last = proposal.pointer;
        is_done = true;
    }
    if (used < sizeof(told))
        cs_error_append(error, told);
}

static cs_status read_or_propose(const cJSON *root, const char *path, const reading *how,
                                 cs_scenario *scenario, cs_error *error)
{
    cs_error why;
    cs_error_init(&why);
    const cs_status status = read_scenario(root, path, how, scenario, &why);
    if (status == CS_INVALID && why.count == 1)
        try_proposals(root, path, how, &why);
    if (error)
        cs_error_add_all(error, &why);
    return status;
}

cs_status cs_scenario_read(const cJSON *root, const char *path, cs_scenario *scenario,
                           cs_error *error)
{
    return read_or_propose(root, path, &(reading){0}, scenario, error);
}

cs_status cs_scenario_read_watched(const cJSON *root, const char *path, const cs_progress *progress,
                                   cs_scenario *scenario, cs_error *error)
{
    return read_or_propose(root, path, &(reading){.progress = progress}, scenario, error);
}

cs_status cs_scenario_read_brief(const cJSON *root, const char *path,
                                 const cs_scenario_parts *parts, const cs_progress *progress,
                                 cs_scenario *scenario, cs_error *error)
{
    return read_scenario(root, path,
                         &(reading){.brief = true, .parts = parts, .progress = progress}, scenario,
                         error);
}

cs_status cs_scenario_read_point(const cJSON *root, const char *path, cs_kept_platforms *kept,
                                 const cs_progress *progress, cs_scenario *scenario,
                                 cs_error *error)
{
    return read_scenario(root, path, &(reading){.point = true, .kept = kept, .progress = progress},
                         scenario, error);
}

cs_status cs_scenario_read_unplanned(const cJSON *root, const char *path, cs_scenario *scenario,
                                     cs_error *error)
{
    return read_scenario(root, path, &(reading){.unplanned = true}, scenario, error);
}

cs_status cs_scenario_load(const char *path, const cs_override *overrides, size_t n_overrides,
                           cs_scenario *scenario, cs_error *error)
{
    cJSON *root;
    cs_status status = cs_json_load(path, &root, error);
    if (status != CS_OK)
        return status;
    for (size_t i = 0; i < n_overrides && status == CS_OK; i++)
        status = cs_json_set(root, overrides[i].pointer, overrides[i].value, "--set", error);
    if (status == CS_OK)
        status = cs_scenario_read(root, path, scenario, error);
    cJSON_Delete(root);
    return status;
}

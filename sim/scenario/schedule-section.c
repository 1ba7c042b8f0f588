#include "sim/scenario/sections.h"

#include "sim/base/file.h"
#include "sim/base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const cs_field cs_scenario_schedule_fields[] = {
    {"kind", CS_FIELD_TEXT, offsetof(cs_schedule_section, kind_name),
     .doc = "one of `sim list schedules`"},
    {"partition", CS_FIELD_JSON, offsetof(cs_schedule_section, partition),
     .fallback = "\"balanced\"",
     .doc =
         "how the layers of a pipeline are assigned to stages: by a planner of `sim list "
         "planners`, with its parameters in an object; by the first layers of stages 1, 2, ...; by "
         "a file that `sim plan` wrote, or by its contents",
     .shape = "the name of a planner, {\"planner\": name, ...}, [layer, ...], {\"file\": name} or "
              "{\"inline\": {plan}}"},
    {"partition_communication", CS_FIELD_BOOL,
     offsetof(cs_schedule_section, partition_communication), .fallback = "false",
     .doc = "\"balanced\" counts the messages between stages as well"},
    {0},
};

/* Schedules by names that others use, and what there is of them here. */
static const struct {
    const char *name, *hint;
} others[] = {
    {"ddp", "it is \"dp\" here, with \"bucket\": \"25 MB\""},
    {"fsdp", "\"cdp_dp\" with \"setting\": \"zero\" is the nearest there is"},
    {"zero", "it is \"cdp_dp\" with \"setting\": \"zero\" here"},
    {"dapple", "it is \"1f1b\" here"},
    {"pipedream_flush", "it is \"1f1b\" here"},
    {"megatron", "it is \"interleaved_1f1b\" here"},
    {"timeprest", "it is \"nf1b\" here"},
    {"madpipe", "it is \"periodic\" here, with \"partition\": \"madpipe\""},
    {"zbv", "\"custom\" runs such an order, written out as in scenarios/custom.json"},
    {"zb_v", "\"custom\" runs such an order, written out as in scenarios/custom.json"},
    {"dualpipe", "no stage can be on two devices that run it in different orders"},
    {"chimera", "no stage can be on two devices that run it in different orders"},
};

static cs_status unknown_schedule(cs_guess *guess, const cs_json_place *place, cs_error *error)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strcasecmp(guess->word, others[i].name) == 0)
            return cs_json_invalid(place, error, "unknown schedule \"%s\": %s; known: %s",
                                   guess->word, others[i].hint, guess->known);
    }
    return cs_json_invalid(place, error, "unknown schedule %s", cs_guess_text(guess));
}

static cs_status find_schedule(cs_draft *draft, const cs_json_place *place, cs_error *error)
{
    cs_json_place key = {.up = place, .key = "kind"};
    const cJSON *section = draft->top.schedule, *name = cs_json_member(section, "kind");
    char got[CS_JSON_DESCRIBED_BYTES];
    if (!cJSON_IsObject(section))
        return cs_json_invalid(place, error, "must be an object (got %s)",
                               cs_json_describe(section, got, sizeof(got)));
    cs_guess guess;
    cs_guess_init(&guess, cJSON_IsString(name) ? name->valuestring : "");
    for (size_t i = 0; cs_schedules[i]; i++)
        cs_guess_add(&guess, cs_schedules[i]->name);
    if (!name)
        return cs_json_invalid(place, error, "missing key \"kind\": must be one of %s",
                               guess.known);
    if (!cJSON_IsString(name))
        return cs_json_invalid(&key, error, "must be one of %s (got %s)", guess.known,
                               cs_json_describe(name, got, sizeof(got)));
    draft->schedule.kind = cs_schedule_find(name->valuestring);
    if (draft->schedule.kind)
        return CS_OK;
    return unknown_schedule(&guess, &key, error);
}

static bool is_balanced(const cJSON *partition)
{
    return cJSON_IsString(partition) && strcmp(partition->valuestring, "balanced") == 0;
}

/* What would have no effect is not what the user meant. */
static cs_status check_partition(const cs_draft *draft, const cs_json_place *section,
                                 cs_error *error)
{
    const cs_schedule_section *schedule = &draft->schedule;
    bool pipeline = cs_layout_is_partitioned(schedule->kind->layout);
    cs_json_place place = {.up = section, .key = "partition"};
    if (!pipeline && cs_json_member(draft->top.schedule, "partition"))
        return cs_json_invalid(&place, error, "goes with pipelines only, not with \"%s\"",
                               schedule->kind->name);
    if (!schedule->partition_communication || (pipeline && is_balanced(schedule->partition)))
        return CS_OK;
    place.key = "partition_communication";
    return cs_json_invalid(&place, error,
                           "goes with pipelines and \"partition\": \"balanced\" only");
}

cs_status cs_draft_read_schedule(cs_draft *draft, cs_error *error)
{
    cs_json_place place = {.up = &draft->root, .key = "schedule"};
    cs_arena *arena = &draft->scenario->arena;
    cs_status status = find_schedule(draft, &place, error);
    if (status != CS_OK)
        return status;
    const cs_schedule *kind = draft->schedule.kind;
    draft->schedule.params = cs_arena_alloc(arena, 1, kind->params_size + 1);
    if (!draft->schedule.params)
        return cs_error_no_memory(error);
    status =
        cs_field_read(draft->top.schedule, &place,
                      (const cs_field *const[]){cs_scenario_schedule_fields, kind->fields, NULL},
                      (void *const[]){&draft->schedule, draft->schedule.params}, arena, error);
    if (status == CS_OK && kind->read)
        status = kind->read(draft->schedule.params, &place, arena, error);
    return status == CS_OK ? check_partition(draft, &place, error) : status;
}

/* ---- the plan ---- */

/* The only plan for as many stages as layers, which needs no search. */
static cs_status one_layer_each(uint32_t n_stages, cs_plan *plan, cs_error *error)
{
    uint32_t *cuts = malloc(((size_t)n_stages + 1) * sizeof(*cuts));
    if (!cuts)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s <= n_stages; s++)
        cuts[s] = s;
    cs_status status = cs_plan_pipeline(cuts, n_stages, plan, error);
    free(cuts);
    return status;
}

/* Steps of the search that the user is let wait for: about half a minute. */
static const double most_steps = 1e10;

/* The search compares, for every stage and every layer that it may end with, all layers that it may
 * start with. A single stage needs none. */
static cs_status check_effort(const cs_draft *draft, uint32_t n_stages, cs_error *error)
{
    double layers = draft->scenario->model.n_layers, free_layers = layers - n_stages;
    double steps = (layers * layers * layers - free_layers * free_layers * free_layers) / 6;
    cs_json_place section = {.up = &draft->root, .key = "schedule"};
    cs_json_place place = {.up = &section, .key = "partition"};
    if (n_stages == 1 || steps <= most_steps)
        return CS_OK;
    return cs_json_invalid(&place, error,
                           "balancing %.0f layers over %u stages takes too long; give the cuts as "
                           "a list or a plan",
                           layers, n_stages);
}

/* The model for a mini-batch whose forward comes in micro-batches, and whose backward is one. */
static cs_status weigh_mini_batch(cs_scenario *scenario, cs_model *weighed, cs_error *error)
{
    const uint32_t n_layers = scenario->model.n_layers, n = scenario->job.micro_batches;
    cs_layer *layers = cs_arena_alloc(&scenario->arena, n_layers, sizeof(*layers));
    cs_status status = layers ? CS_OK : cs_error_no_memory(error);
    for (uint32_t l = 0; l < n_layers && status == CS_OK; l++) {
        cs_layer_sum micro, whole;
        status =
            cs_model_sum(&scenario->model, l, l + 1, scenario->job.micro_samples, &micro, error);
        if (status == CS_OK)
            status = cs_model_sum(&scenario->model, l, l + 1, scenario->batch_size, &whole, error);
        if (status != CS_OK)
            break;
        layers[l] = (cs_layer){.backward_input = whole.backward_input,
                               .backward_weight = whole.backward_weight,
                               .output_bytes = whole.output_bytes};
        if (!cs_time_mul(micro.forward, n, &layers[l].forward))
            status = cs_error_add(error, CS_OVERFLOW,
                                  "%u forwards of layer %u take 2^63 ps or more", n, l);
    }
    *weighed = scenario->model;
    weighed->layers = layers;
    return status;
}

static cs_status balance(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    double *speeds = cs_draft_stage_speeds(draft);
    if (!speeds)
        return cs_error_no_memory(error);
    cs_model model = scenario->model;
    if (cs_draft_takes_whole(draft) && cs_model_knows(&model, scenario->batch_size)) {
        CS_TRY(weigh_mini_batch(scenario, &model, error));
    }
    cs_balance balance = {.model = &model,
                          .n_stages = cs_draft_stages(draft),
                          .speeds = speeds,
                          .communication = draft->schedule.partition_communication,
                          .bandwidth = scenario->job.bandwidth,
                          .latency = scenario->job.latency};
    cs_json_place platform = {.up = &draft->root, .key = "platform"};
    cs_json_place devices = {.up = &platform, .key = "devices"};
    if (balance.n_stages == scenario->model.n_layers)
        return one_layer_each(balance.n_stages, &scenario->plan, error);
    if (balance.n_stages < scenario->model.n_layers) {
        CS_TRY(check_effort(draft, balance.n_stages, error));
        return cs_plan_balanced(&balance, &scenario->plan, error);
    }
    return cs_json_invalid(
        &devices, error,
        "must be at most %u, the number of layers of \"%s\", for a pipeline with a "
        "stage on each (got %u)",
        scenario->model.n_layers, scenario->model.name, balance.n_stages);
}

/* The plan of a document, with its pattern if there is one. */
static cs_status read_planned(cs_draft *draft, const cJSON *root, const cs_json_place *place,
                              cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    CS_TRY(cs_plan_read(root, place, &scenario->model, &scenario->plan, error));
    return cs_pattern_read(root, place, &scenario->plan, &scenario->pattern, error);
}

static cs_status load_plan(cs_draft *draft, const char *file, const cs_json_place *partition,
                           cs_error *error)
{
    cs_json_place place = {.up = partition, .key = "file"};
    cs_error why;
    char *path = cs_file_relative(draft->path, file);
    if (!path)
        return cs_error_no_memory(error);
    cJSON *root;
    cs_error_init(&why);
    cs_status status = cs_json_load(path, &root, &why);
    if (status == CS_OK) {
        cs_json_place plan = {.file = path};
        status = read_planned(draft, root, &plan, &why);
        cJSON_Delete(root);
    }
    free(path);
    return status == CS_OK ? CS_OK : cs_json_pass_on(&place, &why, error);
}

typedef struct plan_source {
    const char *file;
    const cJSON *in_place;
} plan_source;

static const cs_field plan_fields[] = {
    {"file", CS_FIELD_TEXT, offsetof(plan_source, file), .fallback = "",
     .doc = "a plan that `sim plan` wrote, relative to the scenario"},
    {"inline", CS_FIELD_JSON, offsetof(plan_source, in_place), .fallback = "",
     .doc = "what would stand in the file", .shape = "{plan}"},
    {0},
};

static cs_status read_plan(cs_draft *draft, const cs_json_place *place, cs_error *error)
{
    plan_source source;
    cs_json_place in_place = {.up = place, .key = "inline"};
    cs_status status = cs_field_read(draft->schedule.partition, place,
                                     (const cs_field *const[]){plan_fields, NULL},
                                     (void *const[]){&source}, &draft->scenario->arena, error);
    if (status != CS_OK)
        return status;
    if (!source.file == !source.in_place)
        return cs_json_invalid(place, error, "must have either \"file\" or \"inline\"");
    if (source.file)
        return load_plan(draft, source.file, place, error);
    return read_planned(draft, source.in_place, &in_place, error);
}

/* Puts a stage on devices of the platform that have none yet. */
static cs_status take_devices(const cs_draft *draft, uint32_t s, bool *taken,
                              const cs_json_place *place, cs_error *error)
{
    const cs_plan *plan = &draft->scenario->plan;
    const cs_stage *stage = &plan->stages[s];
    uint32_t n_devices = draft->scenario->platform.n_devices;
    for (uint32_t i = 0; i < stage->n_devices; i++) {
        uint32_t device = plan->devices[stage->first_device + i];
        if (device >= n_devices)
            return cs_json_invalid(place, error, "must put stage %u on devices below %u (got %u)",
                                   s, n_devices, device);
        if (taken[device])
            return cs_json_invalid(place, error,
                                   "must name each device once (stage %u has device %u, which was "
                                   "named before)",
                                   s, device);
        taken[device] = true;
    }
    if (stage->n_devices == 1 || draft->schedule.kind->replicas)
        return CS_OK;
    return cs_json_invalid(place, error,
                           "must put stage %u on one device for the schedule \"%s\", which has no "
                           "replicas (got %u)",
                           s, draft->schedule.kind->name, stage->n_devices);
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Says how many stages there are, and on how many devices. */
static cs_status refuse_count(const cs_draft *draft, const cs_json_place *place, cs_error *error)
{
    const cs_plan *plan = &draft->scenario->plan;
    uint32_t n = plan->n_devices, distinct = n > 0;
    uint32_t *sorted = cs_arena_alloc(&draft->scenario->arena, n, sizeof(*sorted));
    if (!sorted)
        return cs_error_no_memory(error);
    memcpy(sorted, plan->devices, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_numbers);
    for (uint32_t i = 1; i < n; i++)
        distinct += sorted[i] != sorted[i - 1];
    return cs_json_invalid(
        place, error,
        "must give each of the platform's %u devices a stage of its own for the schedule \"%s\" "
        "(got %u stages on %u devices%s)",
        draft->scenario->platform.n_devices, draft->schedule.kind->name, plan->n_stages, distinct,
        distinct < n ? "; with several on a device, only \"periodic\" runs them" : "");
}

/* Every stage has devices of its own, all of them on the platform, and every device has a stage. */
static cs_status check_plan(cs_draft *draft, const cs_json_place *place, cs_error *error)
{
    const cs_plan *plan = &draft->scenario->plan;
    uint32_t n_devices = draft->scenario->platform.n_devices;
    bool *taken = cs_arena_alloc(&draft->scenario->arena, n_devices, sizeof(*taken));
    if (!taken)
        return cs_error_no_memory(error);
    if (plan->n_devices != n_devices)
        return refuse_count(draft, place, error);
    cs_status status = CS_OK;
    for (uint32_t s = 0; s < plan->n_stages && status == CS_OK; s++)
        status = take_devices(draft, s, taken, place, error);
    return status;
}

/* Every stage has one device of the platform; which, is free. */
static cs_status check_planned(const cs_draft *draft, const cs_json_place *place, cs_error *error)
{
    const cs_plan *plan = &draft->scenario->plan;
    uint32_t n_devices = draft->scenario->platform.n_devices;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        if (plan->stages[s].n_devices != 1 || cs_plan_device(plan, s) >= n_devices)
            return cs_json_invalid(place, error, "must put stage %u on one device below %u", s,
                                   n_devices);
    }
    return CS_OK;
}

static cs_status build_pipeline(cs_draft *draft, cs_error *error)
{
    const cJSON *partition = draft->schedule.partition;
    cs_json_place section = {.up = &draft->root, .key = "schedule"};
    cs_json_place place = {.up = &section, .key = "partition"};
    cs_layout layout = draft->schedule.kind->layout;
    bool placed = layout == CS_LAYOUT_PLACED;
    char got[CS_JSON_DESCRIBED_BYTES];
    cs_status status = placed ? cs_draft_check_devices(draft, error) : CS_OK;
    if (status != CS_OK)
        return status;
    if (cJSON_IsArray(partition))
        status = cs_plan_read_cuts(partition, &place, &draft->scenario->model,
                                   &draft->scenario->plan, error);
    else if (cs_draft_has_planner(draft))
        status = cs_draft_plan(draft, &place, error);
    else if (cJSON_IsObject(partition))
        status = read_plan(draft, &place, error);
    else if (is_balanced(partition))
        status = balance(draft, error);
    else
        return cs_json_invalid(&place, error,
                               "must be the name of a planner, a list of layers, {\"planner\": "
                               "...}, {\"file\": ...} or "
                               "{\"inline\": ...} (got %s)",
                               cs_json_describe(partition, got, sizeof(got)));
    if (status != CS_OK)
        return status;
    if (layout == CS_LAYOUT_PLANNED) {
        status = check_planned(draft, &place, error);
        return status == CS_OK ? cs_draft_find_pattern(draft, &place, error) : status;
    }
    return placed ? cs_draft_place(draft, cJSON_IsObject(partition), &place, error)
                  : check_plan(draft, &place, error);
}

cs_status cs_draft_build_plan(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    cs_layout layout = draft->schedule.kind->layout;
    cs_status status = CS_OK;
    if (cs_draft_takes_whole(draft))
        status = cs_draft_price(draft, scenario->batch_size, error);
    if (status != CS_OK)
        return status;
    if (cs_layout_is_partitioned(layout))
        return build_pipeline(draft, error);
    uint32_t n_devices = layout == CS_LAYOUT_SINGLE ? 1 : scenario->platform.n_devices;
    return cs_plan_replicated(scenario->model.n_layers, n_devices, &scenario->plan, error);
}

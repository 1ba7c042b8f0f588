/* The section "offload": saved activations that wait in host memory for their backward. */
#include "sim/run/scenario/build.h"

#include <math.h>

static const cs_field operator_field = {"operators", CS_FIELD_TEXT};

enum { MOST_LAYERS = 1 << 16 };

#define AT(member) offsetof(cs_offload_section, member)

const cs_field cs_scenario_offload_fields[] = {
    {"layers", CS_FIELD_COUNT, AT(layers), .fallback = "", .min = 1, .max = MOST_LAYERS,
     .doc = "number of layers to offload per stage, counted from the first layer that saves "
            "something to offload (Megatron Core's cpu_offloading_num_layers); default: all except "
            "the last"},
    {"operators", CS_FIELD_LIST, AT(operators), .fallback = "[]", .of = &operator_field,
     .doc = "for a named model: operators whose saved activations are offloaded; names, or parts "
            "of names, as in recompute_operators (Megatron Core's offload_modules); default: all",
     .shape = "[name, ...]"},
    {"smallest", CS_FIELD_COUNT, AT(smallest), .fallback = "1048576", .max = 1 << 30,
     .doc = "for a named model: tensors with fewer elements of the activations' type stay on the "
            "device"},
    {"prefetch", CS_FIELD_COUNT, AT(prefetch), .fallback = "", .max = MOST_LAYERS,
     .doc = "how many layers ahead of the backward a copy back to the device can start; default: 1 "
            "with operators, else the number of layers of the stage that are not offloaded, minus "
            "1 (TransformerEngine)"},
    {"in_flight", CS_FIELD_COUNT, AT(in_flight), .fallback = "", .max = MOST_LAYERS,
     .doc = "how many layers the forward can be ahead of the copies to the host: the forward of a "
            "layer waits for the copy of the layer in_flight + 1 positions before it, counting all "
            "layers that save something to offload, even if they stay on the device; default: "
            "unlimited with operators, else as prefetch"},
    {"bandwidth", CS_FIELD_BANDWIDTH, AT(bandwidth), .fallback = "", .above_min = true,
     .doc = "bandwidth of copies in each direction; default: bandwidth between the model's device "
            "and its host"},
    {0},
};

cs_status cs_offload_section_read(const cJSON *value, const cs_json_place *root, cs_arena *arena,
                                  cs_offload_section *section, cs_error *error)
{
    const cs_json_place place = {.up = root, .key = "offload"};
    CS_TRY(cs_field_read(value, &place, (const cs_field *const[]){cs_scenario_offload_fields, NULL},
                         (void *const[]){section}, arena, error));
    section->given = true;
    return CS_OK;
}

void cs_offload_section_rules(const cs_offload_section *section, cs_workload *workload)
{
    workload->offloads = section->given;
    workload->offload = (cs_offload_rules){.operators = section->operators.items,
                                           .n_operators = section->operators.n,
                                           .smallest = section->smallest};
}

/* ---- combinations with other sections ---- */

/* Whether the schedule recomputes the forward of whole stages. */
static bool repeats_stages(const cs_schedule_section *schedule)
{
    const cs_field *field = cs_field_find(schedule->kind->fields, "recompute");
    return field && field->type == CS_FIELD_BOOL &&
           *(const bool *)((const char *)schedule->params + field->offset);
}

static bool repeats_layers(const cs_model *model)
{
    bool any = false;
    for (uint32_t l = 0; l < model->n_layers; l++)
        any |= model->layers[l].recompute;
    return any;
}

cs_status cs_scenario_offload(const cs_sections *sections, const cs_model *model,
                              const cs_parallel *parallel, cs_offload *offload, cs_error *error)
{
    const cs_offload_section *asked = &sections->offload;
    const cs_json_place place = {.up = &sections->root, .key = "offload"};
    const bool modules = asked->operators.n > 0;
    if (!asked->given)
        return CS_OK;
    const cs_json_place operators_place = {.up = &place, .key = "operators"};
    if (sections->offload.operators.n != 0 && !sections->model.workload.name)
        return cs_json_invalid(&operators_place, error,
                               "must be left out: only a named model has operators");
    if (!parallel) {
        (void)cs_json_invalid(&place, error, "needs the section \"parallel\"");
        cs_error_propose(error, true, "/parallel", "{\"data\": 1}");
        cs_error_propose(error, false, "/parallel", "{\"pipeline\": %u}",
                         sections->platform.devices);
        return CS_INVALID;
    }
    if (repeats_layers(model) || repeats_stages(&sections->schedule))
        return cs_json_invalid(&place, error,
                               "cannot be combined with recomputation of whole layers or stages, "
                               "which save only their inputs");
    if (isnan(sections->offload.bandwidth) && sections->model.device.host_bandwidth <= 0)
        return cs_json_invalid(&place, error, "missing key \"bandwidth\": %s",
                               sections->model.workload.device
                                   ? "the description of the device has no \"host_link\""
                                   : "the model has no device that could supply it");
    *offload = (cs_offload){
        .layers = asked->layers,
        .in_flight = modules && asked->in_flight == CS_NONE ? MOST_LAYERS : asked->in_flight,
        .prefetch = modules && asked->prefetch == CS_NONE ? 1 : asked->prefetch,
        .bandwidth =
            isnan(asked->bandwidth) ? sections->model.device.host_bandwidth : asked->bandwidth};
    return CS_OK;
}

/* ---- stages ---- */

cs_status cs_scenario_check_offload(const cs_sections *sections, const cs_job *job, cs_error *error)
{
    const cs_json_place place = {.up = &sections->root, .key = "offload"};
    const cs_json_place layers = {.up = &place, .key = "layers"};
    bool any = job->offload.layers == 0;
    for (uint32_t s = 0; job->offload.layers > 0 && s < job->plan->n_stages; s++) {
        const cs_stage *of = &job->plan->stages[s];
        uint32_t n = 0;
        for (uint32_t l = of->first_layer; l < of->end_layer; l++) {
            cs_layer_sum sum;
            CS_TRY(cs_model_sum(job->model, l, l + 1, job->micro_samples, &sum, error));
            n += sum.host_bytes > 0;
        }
        any |= n > 1;
        if (job->offload.layers != CS_NONE && n != 0 && n <= job->offload.layers)
            return cs_json_invalid(
                &layers, error,
                "must be less than %u, the layers of stage %u that keep something to "
                "offload (got %u)",
                n, s, job->offload.layers);
    }
    return any ? CS_OK
               : cs_json_invalid(&place, error,
                                 "no stage has two layers that keep something to offload");
}

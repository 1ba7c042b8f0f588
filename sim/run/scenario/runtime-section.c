#include "sim/run/scenario/runtime-section.h"

#include "schedules/pipeline.h"
#include "sim/base/text.h"
#include "sim/run/scenario/build.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- the section ---- */

#define AT(member) offsetof(cs_runtime_section, member)

const cs_field cs_scenario_runtime_fields[] = {
    {"name", CS_FIELD_TEXT, AT(name), .fallback = "ideal",
     .doc = "framework whose conventions are the defaults of the keys below and of other sections "
            "(sim list runtimes), or FILE.json with its description; ideal: none, each operator "
            "takes the time of its roofline"},
    {"assumed", CS_FIELD_BOOL, AT(assumed), .fallback = "false",
     .doc = "the scenario named no framework, so the usual one for such a run was assumed; plans "
            "may break its rules"},
    {"roofline", CS_FIELD_BOOL, AT(roofline), .fallback = "false",
     .doc = "each operator takes the time of its roofline, whatever its kernels, as with "
            "\"ideal\""},
    {"release", CS_FIELD_TEXT, AT(release), .fallback = "",
     .doc = "release of PyTorch, such as \"2.7\" or \"2.5.1\", for runtimes whose conventions "
            "depend on it; default: the newest known release"},
    {"compile", CS_FIELD_BOOL, AT(compile), .fallback = "false",
     .doc =
         "the network is compiled by torch.compile; in torchtitan, pytorch-fsdp, pytorch-ddp and "
         "llm-foundry, \"fused\" and \"separate_products\" then default to true, and fewer "
         "activations are saved (/memory/fused)"},
    {"fused", CS_FIELD_BOOL, AT(fused), .fallback = "false",
     .doc = "one kernel each for a norm, for an activation with its gate, and for dropout with a "
            "residual sum; linear layers that read the same input are one product"},
    {"separate_products", CS_FIELD_BOOL, AT(separate_products), .fallback = "false",
     .doc = "with fused kernels: linear layers that read the same input are still separate "
            "products, as a compiler leaves them; the last one sums the gradients of that input"},
    {"written_out", CS_FIELD_BOOL, AT(written_out), .fallback = "false",
     .doc = "a GELU that is not fused is one kernel for each power, product, sum and tanh of its "
            "formula, as in GPT-2 of transformers and in minGPT"},
    {"eager_gate", CS_FIELD_BOOL, AT(eager_gate), .fallback = "false",
     .doc = "with fused kernels, the activation of a gated MLP and its product with the other half "
            "are a kernel each"},
    {"eager_rotary", CS_FIELD_BOOL, AT(eager_rotary), .fallback = "false",
     .doc = "rotary positions are five kernels each way: a negation, a concatenation, two products "
            "and a sum"},
    {"softmax_multiple", CS_FIELD_COUNT, AT(softmax_multiple), .fallback = "0",
     .doc = "with fused kernels, for causal attention without a fused kernel: scaling, mask and "
            "softmax are one kernel only if micro-batch size x heads per device is a multiple of "
            "this number, otherwise PyTorch's kernels in fp32; 0: always one kernel"},
    {"flash", CS_FIELD_CHOICE, AT(flash), .fallback = "flash2", .choices = cs_flash_names,
     .doc = "kernel of fused attention; cudnn_fp8: cuDNN's in fp8, with casts around it; its "
            "backward has no sliding windows"},
    {"loss", CS_FIELD_CHOICE, AT(loss), .fallback = "fused", .choices = cs_loss_kernel_names,
     .doc = "kernels of the cross entropy; stepwise: Megatron-LM's, one for each step in float32; "
            "jitted: its cross-entropy-loss-fusion; eager: PyTorch's cross_entropy of logits in "
            "float32; parallel: PyTorch's loss_parallel"},
    {"host", CS_FIELD_TIME, AT(host), .fallback = "0", .usual_max = 1,
     .doc = "host time per operator; a task does not end before the host has launched all of its "
            "kernels"},
    {"host_call", CS_FIELD_TIME, AT(host_call), .fallback = "0", .usual_max = 1,
     .doc = "host time per backward of an operator, which runs no module, and per message between "
            "devices, instead of \"host\"; 0: as \"host\""},
    {"host_kernel", CS_FIELD_TIME, AT(host_kernel), .fallback = "0", .usual_max = 1,
     .doc = "additional host time per kernel"},
    {"host_product_backward", CS_FIELD_TIME, AT(host_product_backward), .fallback = "0",
     .usual_max = 1,
     .doc = "host time per backward of a linear layer, instead of \"host_call\"; 0: as "
            "\"host_call\""},
    {"batch_operators", CS_FIELD_NUMBER, AT(batch_operators), .fallback = "0", .max = 10000,
     .doc = "operators of one kernel that the host starts per micro-batch outside the network: to "
            "fetch the data, make masks, average the loss"},
    {"batch_waits", CS_FIELD_BOOL, AT(batch_waits), .fallback = "false",
     .doc = "on the first and the last stage, the host waits for its device before it starts the "
            "forward of a micro-batch"},
    {"message_waits", CS_FIELD_BOOL, AT(message_waits), .fallback = "false",
     .doc = "the host waits for each message from another stage, and, if messages block, for each "
            "message that it sends"},
    {"step", CS_FIELD_TIME, AT(step), .fallback = "0", .usual_max = 100,
     .doc = "host time once per step, during which the device is idle: to wait for the norm of the "
            "gradients, start the optimizer, write the log and load the next batch"},
    {"launch_blocking", CS_FIELD_BOOL, AT(launch_blocking), .fallback = "false",
     .doc = "the host waits for each kernel before it launches the next (CUDA_LAUNCH_BLOCKING=1): "
            "its time is added to the time of each layer"},
    {"cuda_graphs", CS_FIELD_BOOL, AT(cuda_graphs), .fallback = "false",
     .doc = "kernels are launched by CUDA graphs, so \"host\" does not count; kernels of experts "
            "only if there is a capacity, because otherwise their numbers of rows change from step "
            "to step"},
    {"expert_loop", CS_FIELD_BOOL, AT(expert_loop), .fallback = "false",
     .doc = "experts as in Megatron Core: the host waits for the number of rows of each expert, "
            "unless there is a capacity; it launches products, casts and bias kernels expert by "
            "expert; the router has as many kernels as Megatron Core's"},
    {"expert_modules", CS_FIELD_BOOL, AT(expert_modules), .fallback = "false",
     .doc =
         "with expert_loop: each expert is a separate module; the host launches a product, an "
         "activation and a product for one expert after another, and the results are concatenated"},
    {"fused_experts", CS_FIELD_BOOL, AT(fused_experts), .fallback = "false",
     .doc = "one kernel computes a product of the experts, its activation and the casts of the "
            "result, in the forward and in the backward"},
    {"current_scaling", CS_FIELD_BOOL, AT(current_scaling), .fallback = "false",
     .doc = "casts to fp8 first read the tensor to find its largest element; false: the scale "
            "comes from earlier steps (delayed scaling)"},
    {"deterministic", CS_FIELD_BOOL, AT(deterministic), .fallback = "false",
     .doc = "each new tensor is filled before it is written, as by PyTorch with deterministic "
            "algorithms"},
    {"eager_ring", CS_FIELD_BOOL, AT(eager_ring), .fallback = "false",
     .doc =
         "with context and the method ring: separate operators merge partial results and gradients "
         "of fused attention in float32 (PyTorch's context parallelism); false: its kernels do"},
    {"summed_ring", CS_FIELD_BOOL, AT(summed_ring), .fallback = "false",
     .doc = "with context and the method ring, without \"eager_ring\": kernels add partial results "
            "and gradients of fused attention to sums of the same type, as in TransformerEngine"},
    {"kernels", CS_FIELD_NUMBER, AT(kernels), .fallback = "1", .above_min = true, .max = 64,
     .doc = "factor on the times of all kernels: above 1, for example, for older libraries"},
    {"gradient_passes", CS_FIELD_NUMBER, AT(gradient_passes), .fallback = "0", .max = 64,
     .doc = "how many times per step all gradients are read or written, in addition to the update: "
            "for their norm, unscaling, zeroing"},
    {"early_stop", CS_FIELD_BOOL, AT(early_stop), .fallback = "false",
     .doc = "with /model/recompute: recomputation of a layer stops when its backward has all "
            "inputs, so the last product is not repeated (PyTorch's checkpoint with "
            "use_reentrant=False); false: the whole forward runs again"},
    {"foreach_optimizer", CS_FIELD_BOOL, AT(foreach_optimizer), .fallback = "false",
     .doc =
         "the update has one kernel per step of its formula, with weight decay, as PyTorch's "
         "optimizers have by default: Adam then moves 80 bytes per weight in fp32, otherwise 28"},
    {"counts_zeros", CS_FIELD_BOOL, AT(counts_zeros), .fallback = "false",
     .doc = "once per step, four kernels for each tensor count the zeros in the gradients, for the "
            "log"},
    {0},
};

/* Accepts "2.7", "2.5.1", and "" (not given). */
static bool is_release(const char *text)
{
    bool digit = true;
    for (; text && *text; text++) {
        if (!isdigit((unsigned char)*text) && !(*text == '.' && digit))
            return false;
        digit = *text != '.';
    }
    return digit;
}

cs_status cs_runtime_section_read(const cJSON *value, const cs_json_place *root, cs_arena *arena,
                                  cs_runtime_section *section, cs_error *error)
{
    const cs_json_place place = {.up = root, .key = "runtime"};
    const cs_json_place release = {.up = &place, .key = "release"};
    CS_TRY(cs_field_read(value, &place, (const cs_field *const[]){cs_scenario_runtime_fields, NULL},
                         (void *const[]){section}, arena, error));
    section->kernels_count = !section->roofline;
    return is_release(section->release)
               ? CS_OK
               : cs_json_invalid(&release, error,
                                 "must be numbers with dots between them, such as \"2.7\" (got "
                                 "\"%s\")",
                                 section->release);
}

cs_runtime_kernels cs_runtime_section_kernels(const cs_runtime_section *section)
{
    return (cs_runtime_kernels){.given = section->kernels_count,
                                .fused = section->fused,
                                .separate_products = section->separate_products,
                                .written_out = section->written_out,
                                .eager_gate = section->eager_gate,
                                .eager_rotary = section->eager_rotary,
                                .flash = section->flash,
                                .softmax_multiple = section->softmax_multiple,
                                .loss = section->loss,
                                .host = section->host,
                                .host_call = section->host_call,
                                .host_kernel = section->host_kernel,
                                .host_product_backward = section->host_product_backward,
                                .batch_operators = section->batch_operators,
                                .launch_blocking = section->launch_blocking,
                                .graphs = section->cuda_graphs,
                                .expert_loop = section->expert_loop,
                                .expert_modules = section->expert_modules,
                                .foreach_optimizer = section->foreach_optimizer,
                                .counts_zeros = section->counts_zeros,
                                .fused_experts = section->fused_experts,
                                .current_scaling = section->current_scaling,
                                .deterministic = section->deterministic,
                                .eager_ring = section->eager_ring,
                                .summed_ring = section->summed_ring,
                                .factor = section->kernels,
                                .gradient_passes = section->gradient_passes};
}

/* ---- descriptions ---- */

typedef struct convention {
    const char *key, *with, *source;
    bool fitted;
} convention;

static const cs_field convention_fields[] = {
    {"key", CS_FIELD_TEXT, offsetof(convention, key), .doc = "key that gets the value"},
    {"with", CS_FIELD_TEXT, offsetof(convention, with), .fallback = "", .doc = "conditions"},
    {"source", CS_FIELD_TEXT, offsetof(convention, source), .doc = "source of the value"},
    {"fitted", CS_FIELD_BOOL, offsetof(convention, fitted), .fallback = "false",
     .doc = "tests/fit-figures.py has fitted the value"},
    {0},
};

static const cs_field rule_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(cs_runtime_rule, name), .fallback = "",
     .doc = "replaces the inherited rule of the same name"},
    {"with", CS_FIELD_TEXT, offsetof(cs_runtime_rule, with), .fallback = "", .doc = "conditions"},
    {"needs", CS_FIELD_TEXT, offsetof(cs_runtime_rule, needs), .fallback = "",
     .doc = "conditions that must hold then"},
    {"text", CS_FIELD_TEXT, offsetof(cs_runtime_rule, text), .fallback = "",
     .doc = "the rule in words, after \"it\""},
    {"source", CS_FIELD_TEXT, offsetof(cs_runtime_rule, source), .doc = "source of the rule"},
    {0},
};

typedef struct description {
    uint32_t schema_version;
    const char *name, *title, *like, *counts_as;
    bool roofline;
    const cJSON *conventions, *rules, *assumes, *is, *aliases, *except;
} description;

static const cs_field description_fields[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(description, schema_version), .fallback = "1",
     .min = 1, .max = 1, .doc = "version of the format"},
    {"name", CS_FIELD_TEXT, offsetof(description, name), .fallback = "",
     .doc = "name of the runtime"},
    {"title", CS_FIELD_TEXT, offsetof(description, title), .fallback = "",
     .doc = "the framework in words"},
    {"counts_as", CS_FIELD_TEXT, offsetof(description, counts_as), .fallback = "",
     .doc = "runtime whose measured runs are used for comparison"},
    {"like", CS_FIELD_TEXT, offsetof(description, like), .fallback = "",
     .doc = "description whose conventions and rules are inherited"},
    {"roofline", CS_FIELD_BOOL, offsetof(description, roofline), .fallback = "false",
     .doc = "each operator takes the time of its roofline"},
    {"aliases", CS_FIELD_JSON, offsetof(description, aliases), .fallback = "",
     .doc = "other names in measured points and other programs"},
    {"except", CS_FIELD_JSON, offsetof(description, except), .fallback = "",
     .doc = "words that refer to another runtime"},
    {"conventions", CS_FIELD_JSON, offsetof(description, conventions), .fallback = "",
     .doc = "values of keys that a scenario does not give"},
    {"assumes", CS_FIELD_JSON, offsetof(description, assumes), .fallback = "",
     .doc = "values of keys that a run description does not give"},
    {"is", CS_FIELD_JSON, offsetof(description, is), .fallback = "",
     .doc = "facts that rules for run descriptions use"},
    {"rules", CS_FIELD_JSON, offsetof(description, rules), .fallback = "",
     .doc = "rules for plans that the runtime can run"},
    {0},
};

static cs_status check_convention(const cJSON *item, const cs_json_place *place, cs_arena *arena,
                                  cs_error *error)
{
    convention read = {0};
    max_align_t value[64];
    cs_guess guess;
    const cs_json_place key = {.up = place, .key = "key"}, with = {.up = place, .key = "with"};
    const char *name = cJSON_GetStringValue(cs_json_member(item, "key"));
    const cJSON *given = cs_json_member(item, "value");
    const cs_field *member = name ? cs_runtime_member_field(name) : NULL;
    /* "value" is parsed like the field of its key, except null and references to facts of the
     * device */
    const char *text = cJSON_GetStringValue(given);
    const bool plain = !member || cJSON_IsNull(given) || (text && *text == '/');
    cs_field field[] = {{"value", CS_FIELD_JSON, 0, .doc = "value"}, {0}};
    if (!plain) {
        field[0] = *member;
        field[0].name = "value";
        field[0].offset = 0;
        field[0].fallback = NULL;
        if (cs_field_size(&field[0]) > sizeof(value))
            return cs_error_add(error, CS_LIMIT, "%s: larger than expected", name);
    }
    memset(value, 0, sizeof(value));
    CS_TRY(cs_field_read(item, place, (const cs_field *const[]){convention_fields, field, NULL},
                         (void *const[]){&read, value}, arena, error));
    if (!member) {
        cs_guess_init(&guess, name);
        for (const cs_runtime_member *m = cs_runtime_members; m->key; m++)
            cs_guess_add(&guess, m->key);
        return cs_json_invalid(&key, error, "runtimes have no convention for %s",
                               cs_guess_text(&guess));
    }
    return cs_conditions_check(read.with, &with, error);
}

static cs_status check_rule(const cJSON *item, const cs_json_place *place, cs_arena *arena,
                            cs_error *error)
{
    cs_runtime_rule rule;
    const cs_json_place with = {.up = place, .key = "with"}, needs = {.up = place, .key = "needs"};
    const cs_json_place text = {.up = place, .key = "text"};
    CS_TRY(cs_field_read(item, place, (const cs_field *const[]){rule_fields, NULL},
                         (void *const[]){&rule}, arena, error));
    CS_TRY(cs_conditions_check(rule.with, &with, error));
    if (rule.needs && !rule.text)
        return cs_json_invalid(&text, error, "is missing: the rule in words");
    return cs_conditions_check(rule.needs, &needs, error);
}

static cs_status check_each(const cJSON *list, const char *key, const cs_json_place *root,
                            cs_status (*check)(const cJSON *, const cs_json_place *, cs_arena *,
                                               cs_error *),
                            cs_arena *arena, cs_error *error)
{
    const cs_json_place place = {.up = root, .key = key};
    cs_status status = CS_OK;
    if (list && !cJSON_IsArray(list))
        return cs_json_invalid(&place, error, "must be a list (got %s)", cs_json_kind(list));
    for (int i = 0; list && i < cJSON_GetArraySize(list); i++) {
        const cs_json_place at = {.up = &place, .index = i};
        const cs_status one = check(cJSON_GetArrayItem(list, i), &at, arena, error);
        status = status == CS_OK ? one : status;
    }
    return status;
}

static cs_status check_description(const cJSON *root, const char *path, cs_error *error)
{
    const cs_json_place place = {.file = path};
    cs_arena arena;
    description read = {0};
    cs_arena_init(&arena);
    cs_status status =
        cs_field_read(root, &place, (const cs_field *const[]){description_fields, NULL},
                      (void *const[]){&read}, &arena, error);
    const cs_status conventions =
        check_each(read.conventions, "conventions", &place, check_convention, &arena, error);
    const cs_status rules = check_each(read.rules, "rules", &place, check_rule, &arena, error);
    cs_arena_finish(&arena);
    return status != CS_OK ? status : conventions != CS_OK ? conventions : rules;
}

static const char *const joined[] = {"conventions", "rules", "assumes", NULL};

const cs_facts_kind cs_runtime_kind = {.folder = "runtimes",
                                       .what = "runtime",
                                       .page = "docs/how-to/own-framework.md",
                                       .joined = joined,
                                       .exact = true,
                                       .check = check_description};

cs_status cs_runtime_load(const cJSON *document, const char *path, cJSON **runtime, cs_error *error)
{
    const cs_json_place root = {.file = path}, place = {.up = &root, .key = "runtime"};
    const cJSON *section = cs_json_member(document, "runtime");
    const char *name =
        cJSON_GetStringValue(cJSON_IsObject(section) ? cs_json_member(section, "name") : section);
    cs_error why;
    *runtime = NULL;
    if (!name)
        return CS_OK;
    cs_error_init(&why);
    return cs_facts_load(&cs_runtime_kind, name, path, runtime, &why) == CS_OK
               ? CS_OK
               : cs_json_pass_on(&place, &why, error);
}

/* ---- rules ---- */

cs_status cs_runtime_rules_load(const cJSON *document, const char *path, cs_arena *arena,
                                cs_runtime_rules *rules, cs_error *error)
{
    const cs_json_place place = {.file = path};
    const cJSON *each;
    cJSON *runtime;
    *rules = (cs_runtime_rules){0};
    CS_TRY(cs_runtime_load(document, path, &runtime, error));
    const cJSON *section = cs_json_member(document, "runtime");
    rules->decides = cs_json_member(runtime, "conventions") != NULL;
    rules->is_assumed = cJSON_IsTrue(cs_json_member(section, "assumed"));
    const cJSON *list = rules->is_assumed ? NULL : cs_json_member(runtime, "rules");
    const int n = cJSON_GetArraySize(list);
    cs_runtime_rule *items = cs_arena_alloc(arena, (size_t)n + 1, sizeof(*items));
    cs_status status = !items ? cs_error_no_memory(error)
                       : n > CS_RUNTIME_RULES_MOST - 1
                           ? cs_json_invalid(&place, error,
                                             "the runtime has more than "
                                             "%d rules",
                                             CS_RUNTIME_RULES_MOST - 1)
                           : CS_OK;
    if (runtime && status == CS_OK) {
        rules->runtime = cs_arena_copy(
            arena, cJSON_GetStringValue(cJSON_IsObject(section) ? cs_json_member(section, "name")
                                                                : section));
        status = rules->runtime ? CS_OK : cs_error_no_memory(error);
    }
    rules->items = items;
    cJSON_ArrayForEach(each, list)
    {
        if (status == CS_OK)
            status = cs_field_read(each, &place, (const cs_field *const[]){rule_fields, NULL},
                                   (void *const[]){&items[rules->n++]}, arena, error);
    }
    cJSON_Delete(runtime);
    return status;
}

uint32_t cs_runtime_broken_rule(const cs_runtime_rules *rules, cs_key_value *value, void *context)
{
    for (uint32_t i = 0; i < rules->n; i++)
        if (cs_conditions_hold(rules->items[i].with, false, value, context) &&
            !cs_conditions_hold(rules->items[i].needs, true, value, context))
            return i;
    return CS_RUNTIME_RULES_MOST;
}

/* ---- the scenario's plan ---- */

typedef struct own_plan {
    const cJSON *root;
    const cs_scenario *scenario;
} own_plan;

/* Returns the resolved sizes of the mesh; all other keys as the document gives them. */
static const cJSON *own_value(void *context, const char *key, cJSON *made)
{
    const own_plan *own = context;
    const cs_scenario *scenario = own->scenario;
    const cs_parallel *parallel = scenario->parallel;
    const cs_grid single = cs_grid_single();
    const cs_grid *grid = parallel ? &parallel->split.grid : &single;
    const struct {
        const char *key;
        uint32_t size;
    } sizes[] = {{"/parallel/pipeline", parallel ? parallel->n_ranks
                                        : scenario->plan->n_stages > 1
                                            ? cs_pipeline_ranks(&scenario->job)
                                            : 1},
                 {"/parallel/tensor", grid->tensor},
                 {"/parallel/context", grid->context},
                 {"/parallel/data", grid->data},
                 {"/parallel/expert", grid->expert}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (strcmp(sizes[i].key, key) == 0) {
            *made = (cJSON){.type = cJSON_Number, .valuedouble = sizes[i].size};
            return made;
        }
    return cs_json_at(own->root, key);
}

void cs_scenario_warn_of_runtime(const cs_sections *sections, const cJSON *root,
                                 cs_scenario *scenario, cs_error *warnings)
{
    const cs_json_place place = {.up = &sections->root, .key = "runtime"};
    own_plan own = {root, scenario};
    cs_runtime_rules rules;
    if (!scenario->plan ||
        cs_runtime_rules_load(root, sections->root.file, &scenario->arena, &rules, NULL) != CS_OK)
        return;
    const uint32_t broken = cs_runtime_broken_rule(&rules, own_value, &own);
    if (broken == CS_RUNTIME_RULES_MOST)
        return;
    const cs_runtime_rule *rule = &rules.items[broken];
    (void)cs_json_invalid(&place, warnings, "%s cannot run this plan: it %s (%s)", rules.runtime,
                          rule->text, rule->source);
}

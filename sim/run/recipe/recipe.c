/* From a run description to a scenario: the order of the rules, and sizes that tables cannot
 * state. */
#include "sim/base/number.h"
#include "sim/run/recipe/rules.h"
#include "sim/run/scenario/runtime-section.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void cs_recipe_finish(cs_recipe *recipe)
{
    cJSON_Delete(recipe->document);
    cJSON_Delete(recipe->completed);
    cs_arena_finish(&recipe->arena);
    *recipe = (cs_recipe){0};
}

static void put_number(cs_rules *rules, const char *key, double value)
{
    cs_rules_put(rules, key, cJSON_CreateNumber(value));
}

static void put_truth(cs_rules *rules, const char *key, bool value)
{
    cs_rules_put(rules, key, cJSON_CreateBool(value));
}

static void put_text(cs_rules *rules, const char *key, const char *value)
{
    cs_rules_put(rules, key, cJSON_CreateString(value));
}

/* ---- assumptions ---- */

/* Puts the runtime that is called `name` under /is/found; and each word of the name, with the
 * number that follows it, such as a release, or true: "NeMo 25.02" is /is/words/NeMo = "25.02". */
static void put_framework(cs_rules *rules, const char *name)
{
    char text[128], key[128];
    const char *found = cs_rules_find(&cs_runtime_kind, name);
    if (found)
        put_text(rules, "/is/found", found);
    snprintf(text, sizeof(text), "no runtime is known as \"%.60s\":", name);
    put_text(rules, "/is/unknown", *name ? text : "no framework is stated:");
    for (const char *at = name; *at && found != name;) {
        const size_t letters = strcspn(at, " (),;/");
        const char *behind = at + letters + strspn(at + letters, " ");
        size_t digits = strspn(behind, "0123456789.");
        while (digits > 0 && behind[digits - 1] == '.')
            digits--;
        snprintf(key, sizeof(key), "/is/words/%.*s", (int)letters, at);
        snprintf(text, sizeof(text), "%.*s", (int)digits, behind);
        if (letters > 0 && isalpha((unsigned char)*at) && !strchr(key, '~'))
            cs_rules_put(rules, key, digits > 0 ? cJSON_CreateString(text) : cJSON_CreateTrue());
        at += letters + (at[letters] != '\0');
    }
}

/* The description of /is/runtime; NULL: it cannot be loaded. */
static cJSON *load_runtime(cs_rules *rules)
{
    const char *name = cJSON_GetStringValue(cs_rules_at(rules, "/is/runtime"));
    cJSON *runtime = NULL;
    if (rules->status == CS_OK && name)
        rules->status = cs_facts_load(&cs_runtime_kind, name, NULL, &runtime, rules->error);
    const char *title = cJSON_GetStringValue(cs_json_member(runtime, "title"));
    put_text(rules, "/is/title", title ? title : name ? name : "");
    return runtime;
}

static void put_device(cs_rules *rules, const cs_description *run)
{
    const char *name = cs_rules_gpu(run);
    cJSON *device = NULL;
    cs_error ignored;
    cs_error_init(&ignored);
    const cs_status status =
        *name ? cs_facts_load(&cs_device_kind, name, NULL, &device, &ignored) : CS_INVALID;
    if (status == CS_OK || status == CS_NO_MEMORY) /* a NULL says so */
        cs_rules_put(rules, "/device", device);
    put_truth(rules, "/is/rack", cs_rules_rack(rules, run));
}

/* Reads the description again, with assumed values, into rules->run. If that fails, an argument has
 * a value of another type. */
static void complete(cs_rules *rules, cs_description *run)
{
    cJSON *is = cJSON_DetachItemFromObjectCaseSensitive(rules->view, "is");
    cJSON *device = cJSON_DetachItemFromObjectCaseSensitive(rules->view, "device");
    const char *name = run->name;
    const cs_json_place place = {.file = name ? name : "run"};
    cs_error wrong;
    cs_error_init(&wrong);
    rules->made->completed = rules->view;
    rules->view = cJSON_CreateObject();
    if (!rules->view)
        rules->status = cs_error_no_memory(rules->error);
    const cs_status status = cs_description_read(rules->made->completed, &place, NULL, NULL,
                                                 &rules->made->arena, run, &wrong);
    if (status == CS_NO_MEMORY)
        rules->status = cs_error_no_memory(rules->error);
    else if (status != CS_OK)
        cs_rules_miss(rules, "stated: arguments that can be read (%s)", wrong.text);
    run->name = name;
    cs_rules_put(rules, "/is", is);
    if (device)
        cs_rules_put(rules, "/device", device);
    cJSON_Delete(rules->defaults);
    rules->defaults = NULL;
}

/* Notes which keys the source itself doubts: "unknown" says so, in words. They are not stated. */
static void doubt(cs_rules *rules, const cs_description *given)
{
    const cJSON *text;
    cJSON_ArrayForEach(text, cs_json_member(given->json, "unknown"))
    {
        cs_rules_put(rules, "/is/text", cJSON_Duplicate(text, true));
        cs_rules_use(rules, "assumes", "doubts");
    }
}

/* Completes the description: first by its arguments, then as its framework does it. */
static void assume(cs_rules *rules, const cs_description *given, cs_description *run)
{
    const cJSON *member;
    rules->defaults = cJSON_CreateObject();
    if (!rules->defaults || !cs_field_write(cs_description_fields, given, rules->defaults))
        rules->status = cs_error_no_memory(rules->error);
    doubt(rules, given);
    for (const cs_field *field = cs_description_fields; field->name; field++) {
        char key[64], doubted[64];
        snprintf(key, sizeof(key), "/%s", field->name);
        snprintf(doubted, sizeof(doubted), "/is/doubted/%s", field->name);
        member = cs_rules_at(rules, doubted) ? NULL : cs_json_member(given->json, field->name);
        /* "unknown" is the word of measured points for a key that is not stated */
        if (member && !(cJSON_IsString(member) && strcmp(member->valuestring, "unknown") == 0))
            cs_rules_put(rules, key, cJSON_Duplicate(member, true));
    }
    put_framework(rules, given->framework ? given->framework : "");
    put_device(rules, given);
    cs_rules_use(rules, "assumes", "runtimes");
    cJSON *runtime = load_runtime(rules);
    cJSON_ArrayForEach(member, cs_json_member(runtime, "is"))
    {
        char key[64];
        snprintf(key, sizeof(key), "/is/%s", member->string);
        cs_rules_put(rules, key, cJSON_Duplicate(member, true));
    }
    cs_rules_use(rules, "assumes", "traits");
    cs_rules_use(rules, "arguments", "rows");
    cs_rules_apply(rules, cs_json_member(runtime, "assumes"));
    cs_rules_use(rules, "assumes", "rows");
    cJSON_Delete(runtime);
    if (rules->status == CS_OK)
        complete(rules, run);
}

/* ---- sizes ---- */

/* Blocks in front without experts: as stated; or as Megatron-LM's moe-layer-freq has them in the
 * form "([0]*3+[1]*11)", a 0 or 1 for each block. */
static uint32_t dense_layers(const cs_description *run)
{
    const char *pattern = cJSON_GetStringValue(cs_json_member(run->args, "moe-layer-freq"));
    const uint32_t stated = run->model->dense_layers, layers = run->model->layers;
    unsigned first, others;
    int end = 0;
    if (stated > 0 || !pattern ||
        sscanf(pattern, "([0]*%u+[1]*%u)%n", &first, &others, &end) != 2 || end == 0 ||
        pattern[end] != '\0' || first > layers || others != layers - first)
        return stated;
    return first;
}

/* Features within an MLP. Megatron-LM has 4 times the hidden size, or with SwiGLU two thirds of
 * this, rounded down to a multiple of 64, unless they are given (megatron/training/arguments.py,
 * ffn_hidden_size). */
static uint32_t inner_features(const cs_description *run)
{
    const bool gated = cJSON_IsTrue(cs_json_member(run->args, "swiglu"));
    if (!gated || cs_json_member(run->args, "ffn-hidden-size"))
        return run->model->ffn;
    return (uint32_t)(UINT64_C(8) * run->model->hidden / 3 / 64 * 64);
}

static uint32_t or_else(uint32_t given, uint32_t fallback)
{
    return given > 0 ? given : fallback;
}

/* Sizes of latent attention, whose keys are spelt with underscores, or in Megatron-LM's arguments
 * with hyphens; 0: not stated. */
static void put_latent(cs_rules *rules, const cs_description_model *model)
{
    static const char *const keys[] = {"q_lora_rank", "kv_lora_rank", "qk_head_dim",
                                       "qk_pos_emb_head_dim", "v_head_dim"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char hyphened[32], key[64];
        snprintf(hyphened, sizeof(hyphened), "%s", keys[i]);
        for (char *at = hyphened; (at = strchr(at, '_'));)
            *at = '-';
        snprintf(key, sizeof(key), "/is/%s", keys[i]);
        const cJSON *value = cs_json_member(model->mla, keys[i]);
        value = value ? value : cs_json_member(model->mla, hyphened);
        const bool is = cJSON_IsNumber(value) && value->valuedouble > 0;
        put_number(rules, key, is ? (uint32_t)value->valuedouble : 0);
    }
}

static void put_model_sizes(cs_rules *rules)
{
    const cs_description *run = rules->run;
    const cs_description_model *m = run->model;
    const uint32_t keys = or_else(m->kv_heads, m->heads), dense = dense_layers(run);
    const uint32_t expert = or_else(m->moe_ffn, m->ffn);
    const uint64_t multiple = (uint64_t)run->options->vocab_multiple * run->parallel->tp;
    const uint64_t vocabulary =
        multiple > 0 ? (m->vocab + multiple - 1) / multiple * multiple : m->vocab;
    const uint64_t width = (uint64_t)m->head_dim * m->heads;
    const uint32_t sample = run->options->packed_tokens < m->seq ? run->options->packed_tokens : 0;
    put_latent(rules, m);
    put_number(rules, "/is/kv_heads", keys);
    put_number(rules, "/is/head_features",
               m->head_dim > 0                             ? m->head_dim
               : m->heads > 0 && m->hidden % m->heads == 0 ? m->hidden / m->heads
                                                           : 0);
    put_truth(rules, "/is/usual_heads", (width == 0 || width == m->hidden) && keys == m->heads);
    put_truth(rules, "/is/wide_heads", width != m->hidden);
    put_number(rules, "/is/vocabulary", (double)vocabulary);
    put_truth(rules, "/is/small_vocabulary", m->vocab < run->parallel->tp);
    put_number(rules, "/is/logits", (double)m->seq * (double)vocabulary);
    put_number(rules, "/is/attention_weights", (double)m->seq * m->seq * m->heads);
    put_number(rules, "/is/mask", (double)((uint64_t)m->seq * m->seq / run->parallel->cp));
    put_number(rules, "/is/ffn", inner_features(run));
    put_number(rules, "/is/top_k", or_else(m->topk, 1));
    put_number(rules, "/is/expert_intermediate", expert);
    put_number(rules, "/is/shared_experts", m->shared_ffn / or_else(expert, 1));
    put_number(rules, "/is/dense_layers", dense);
    put_number(rules, "/is/intermediate", m->experts > 0 && m->dense_layers == 0 ? expert : m->ffn);
    put_truth(rules, "/is/experts_agree",
              (m->experts == 0 || m->dense_layers < m->layers) &&
                  m->topk <= or_else(m->experts, m->topk));
    /* a token attends to half of its sample, in all layers; else to a window, except in each
     * sliding_every-th layer */
    put_number(rules, "/is/sample", sample);
    put_truth(rules, "/is/long_samples",
              sample > 0 && m->sliding_window > 0 && (sample + 1) / 2 > m->sliding_window);
    put_number(rules, "/is/window", sample > 0 ? (sample + 1) / 2 : m->sliding_window);
    const uint32_t every = m->sliding_every > m->layers ? 0 : m->sliding_every;
    const uint32_t windows = sample > 0 || every == 0 ? 1 : every - 1;
    char *pattern = cs_arena_alloc(&rules->made->arena, (size_t)windows + 2, 1);
    if (pattern) {
        memset(pattern, 'w', windows);
        pattern[windows] = sample > 0 || every == 0 ? '\0' : 'f';
    }
    put_text(rules, "/is/pattern", pattern ? pattern : "");
}

/* Share of the all-to-alls that is hidden. Without a pipeline, the first forward and the last
 * backward of a step have no other micro-batch to overlap with (Megatron-LM, megatron/core/
 * pipeline_parallel/combined_1f1b.py, combined_1f1b_schedule_for_no_pipelining). With DualPipe, the
 * schedule decides. */
static double hidden_of_experts(const cs_description *run, double micro_batches)
{
    const double share = run->options->moe_hidden_share;
    const bool alone = run->parallel->pp < 2 && micro_batches > 0;
    if (strcmp(run->schedule, "dualpipe") == 0)
        return 0;
    return round((alone ? share * (micro_batches - 1) / micro_batches : share) * 1e4) / 1e4;
}

/* A number that the runtime says under "is"; 0: it says none. */
static double of_runtime(const cs_rules *rules, const char *key)
{
    const cJSON *value = cs_rules_at(rules, key);
    return cJSON_IsNumber(value) ? value->valuedouble : 0;
}

/* Bytes of a bucket in a runtime that states a number of gradients, or a number for each replica
 * where that is more. 0: it states none, or nothing overlaps. */
static double bucket(const cs_rules *rules, uint64_t replicas)
{
    const cs_description *run = rules->run;
    const bool wide =
        strcmp(run->options->grad_dtype, "fp32") == 0 || strcmp(run->precision, "fp32") == 0;
    const double gradients =
        fmax(of_runtime(rules, "/is/bucket_gradients"),
             (double)replicas * of_runtime(rules, "/is/bucket_gradients_of_replica"));
    return run->options->dp_overlap && run->parallel->zero < 3 ? gradients * (wide ? 4 : 2) : 0;
}

/* Bytes of cuBLAS's workspaces where the environment says so: pairs of a size in KiB and how many
 * of it there are, ":4096:2:16:8" (PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp,
 * parseChosenWorkspaceSize). */
static double told_workspace(const cs_description *run)
{
    const char *config = cJSON_GetStringValue(cs_json_member(run->env, "CUBLAS_WORKSPACE_CONFIG"));
    double kib = 0;
    char size[8], count[8];
    for (int read = 0; config && sscanf(config, ":%7[0-9]:%7[0-9]%n", size, count, &read) == 2;
         config += read)
        kib += strtod(size, NULL) * strtod(count, NULL);
    return kib * 1024;
}

static void put_mesh_sizes(cs_rules *rules)
{
    const cs_description *run = rules->run;
    const cs_description_parallel *mesh = run->parallel;
    const cs_description_batch *batch = run->batch;
    const uint32_t tp = mesh->tp, keys = or_else(run->model->kv_heads, run->model->heads);
    const uint64_t each = (uint64_t)batch->micro * mesh->dp,
                   replicas = (uint64_t)mesh->dp * mesh->cp;
    const double ranks = (double)tp * mesh->pp * mesh->dp * mesh->cp;
    const uint64_t micro_batches = batch->micro_batches > 0                ? batch->micro_batches
                                   : each > 0 && batch->global % each == 0 ? batch->global / each
                                                                           : 0;
    const uint32_t instances = run->options->optimizer_instances;
    /* with all-to-alls the context-parallel ranks split the heads of each tensor-parallel rank
     * again; more ranks than heads of keys and values hold copies of these */
    const bool all_to_all = mesh->cp > 1 && mesh->cp_comm && strstr(mesh->cp_comm, "a2a");
    const uint64_t head_ranks = (uint64_t)tp * (all_to_all ? mesh->cp : 1);
    put_number(rules, "/is/micro_batches", (double)micro_batches);
    put_number(rules, "/is/samples", (double)micro_batches * (double)each);
    put_truth(rules, "/is/batch_agrees", (double)micro_batches * (double)each == batch->global);
    put_truth(rules, "/is/mesh_agrees", ranks == run->hardware->gpus);
    put_number(rules, "/is/ranks_of_stage", ranks / mesh->pp);
    put_number(rules, "/is/expert_ranks", (double)mesh->ep * or_else(mesh->etp, tp));
    put_truth(rules, "/is/more_stages_than_layers",
              (uint64_t)mesh->pp * cs_rules_chunks(run) > UINT64_C(2) + run->model->layers);
    put_number(rules, "/is/replicas", (double)replicas);
    put_number(rules, "/is/sequence_ranks", (double)mesh->cp * (mesh->sp ? tp : 1));
    put_number(rules, "/is/head_ranks", (double)head_ranks);
    put_truth(rules, "/is/keys_divide",
              keys % head_ranks == 0 || (!all_to_all && keys > 0 && head_ranks % keys == 0));
    put_number(rules, "/is/shard",
               mesh->fsdp_group > 0 || instances < 2 ? mesh->fsdp_group
                                                     : (double)(replicas / instances));
    put_number(rules, "/is/bucket", bucket(rules, replicas));
    put_number(rules, "/is/expert_overlap", hidden_of_experts(run, (double)micro_batches));
    if (told_workspace(run) > 0)
        put_number(rules, "/is/told_workspace", told_workspace(run));
}

/* ---- sections ---- */

/* TF32 is allowed by PyTorch where a device has it, and else changes nothing
 * (torch.backends.cuda.matmul.allow_tf32). */
static void put_precision(cs_rules *rules, const char *name)
{
    const char *device = cs_rules_device(rules);
    cs_accelerator loaded = {0};
    cs_error error;
    uint32_t p = 0;
    cs_error_init(&error);
    put_text(rules, "/scenario/model/device", device ? device : "");
    if (!device || !name)
        return;
    cs_status status = cs_accelerator_load(device, NULL, &loaded, &error);
    if (status == CS_OK && strcmp(name, "tf32") == 0 && !(loaded.peaks[CS_PRECISION_TF32] > 0)) {
        cs_rules_assume(rules, "tf32 is fp32, where a device does not compute in it");
        name = "fp32";
    }
    while (strcmp(cs_precision_names[p], name) != 0)
        p++;
    if (status == CS_OK)
        status = cs_accelerator_check(&loaded, (cs_precision)p, &error);
    if (status == CS_NO_MEMORY)
        rules->status = cs_error_no_memory(rules->error);
    if (status == CS_INVALID)
        cs_rules_miss(rules, "%s matrix products on %s", name, rules->run->hardware->gpu);
    put_text(rules, "/scenario/model/precision", name);
    cs_accelerator_finish(&loaded);
}

/* Which operators are computed again, and which have adapters. */
static void put_operators(cs_rules *rules)
{
    const cs_description *run = rules->run;
    const cs_list *targets = &run->options->lora_targets;
    if (strncmp(run->recompute, "selective", strlen("selective")) == 0) {
        const bool known = cs_rules_knows_words(rules, "recompute", run->recompute,
                                                "nothing is computed again for \"%.*s\"");
        if (cs_rules_operators(rules, "recompute", run->recompute, false,
                               "/scenario/model/recompute_operators"))
            (void)cs_rules_operators(rules, "recompute", run->recompute, true,
                                     "/scenario/model/discard_operators");
        else if (known)
            cs_rules_assume(rules,
                            "nothing is computed again for \"%s\", of which the network has "
                            "nothing",
                            run->recompute);
        else
            cs_rules_miss(rules, "stated: what is computed again");
    }
    if (run->options->lora) {
        char words[256] = "";
        if (run->options->adapter)
            snprintf(words, sizeof(words), " %s", run->options->adapter);
        for (uint32_t i = 0; i < targets->n; i++)
            snprintf(words + strlen(words), sizeof(words) - strlen(words), " %s",
                     ((const char *const *)targets->items)[i]);
        put_number(rules, "/scenario/model/lora/rank", run->options->lora_rank);
        const char *key = "/scenario/model/lora/targets", *usual = "linear_qkv linear_proj";
        const bool unnamed = strncmp(words, " lora r=", strlen(" lora r=")) == 0;
        if (cs_rules_operators(rules, "adapters", words, false, key))
            return;
        if (unnamed && cs_rules_operators(rules, "adapters", usual, false, key))
            cs_rules_assume(rules, "adapters on the linear layers of attention");
        else
            cs_rules_miss(rules, "adapters of this network at:%s", words);
    }
}

/* The model of measured passes: a stage is one layer with the rank's times over its stages. A
 * message takes what it was measured to take, whatever its size, so sizes are left out. */
static void put_profile(cs_rules *rules)
{
    static const char head[] =
        "{\"schema_version\": 1, \"name\": \"measured passes\", \"times_only\": true, "
        "\"provenance\": {\"source\": \"measured times of passes\", \"hardware\": \"the "
        "point's\", \"date\": \"1970-01-01\", \"notes\": \"points have no date\"}, \"layers\": []}";
    const cs_description *run = rules->run;
    const cs_description_profile *times = run->options->profiled_ms;
    const double scale = 1e-3 / cs_rules_chunks(run);
    put_number(rules, "/scenario/model/batch_size", run->batch->global);
    cs_rules_put(rules, "/scenario/model/inline", cJSON_Parse(head));
    put_number(rules, "/scenario/model/inline/batch_size", run->batch->micro);
    cJSON *layers = (cJSON *)(uintptr_t)cs_rules_at(rules, "/scenario/model/inline/layers");
    for (uint32_t s = 0; layers && s < run->parallel->pp * cs_rules_chunks(run); s++) {
        char name[32];
        cJSON *layer = cs_json_add_item(layers);
        snprintf(name, sizeof(name), "stage %u", s);
        if (!cs_json_add_text(layer, "name", name) ||
            !cs_json_add_number(layer, "forward", times->forward * scale) ||
            !cs_json_add_number(layer, "backward_input", times->backward_input * scale) ||
            !cs_json_add_number(layer, "backward_weight", times->backward_weight * scale) ||
            !cs_json_add_number(layer, "weights", 0) || !cs_json_add_number(layer, "output", 0))
            rules->status = cs_error_no_memory(rules->error);
    }
}

static void build(cs_rules *rules)
{
    const cs_description *run = rules->run;
    const bool profiled = run->options->profiled_ms;
    const cJSON *modules = cs_json_member(run->args, "offload-modules");
    cJSON *description = cJSON_CreateObject();
    if (!description || !cs_field_write(cs_description_fields, run, description))
        rules->status = cs_error_no_memory(rules->error);
    for (const cJSON *member = description ? description->child : NULL; member;
         member = member->next) {
        char key[64];
        snprintf(key, sizeof(key), "/%s", member->string);
        cs_rules_put(rules, key, cJSON_Duplicate(member, true));
    }
    cJSON_Delete(description);
    put_number(rules, "/scenario/schema_version", 1);
    put_text(rules, "/scenario/name", run->name ? run->name : "run");
    put_model_sizes(rules);
    put_mesh_sizes(rules);
    cs_rules_use(rules, "traits", "rows");
    cs_rules_check(rules, "checks", "stated");
    if (profiled) {
        put_profile(rules);
    } else {
        const char *precision = cJSON_GetStringValue(cs_rules_at(rules, "/is/precision"));
        cs_rules_check(rules, "checks", "estimated");
        put_precision(rules, precision);
        cs_rules_use(rules, "model", "rows");
        put_operators(rules);
        cs_rules_use(rules, "runtime", "rows");
        cs_rules_use(rules, "memory", "rows");
    }
    cs_rules_platform(rules);
    for (uint32_t i = 0; i < run->unread.n; i++) {
        const char *key = ((const char *const *)run->unread.items)[i];
        if (strncmp(key, "/options/", strlen("/options/")) == 0)
            cs_rules_assume(rules, "the option \"%s\" changes nothing: it is not known",
                            key + strlen("/options/"));
    }
    cs_rules_check(rules, "checks", "simulated");
    cs_rules_use(rules, "parallel", "rows");
    if (cs_rules_is(rules, "/args/fine-grained-activation-offloading", "true") &&
        (!cJSON_IsString(modules) || !cs_rules_operators(rules, "offload", modules->valuestring,
                                                         false, "/scenario/offload/operators")))
        cs_rules_miss(rules, "stated: which modules are offloaded");
    cs_rules_partition(rules);
}

cs_status cs_recipe_make(const cs_description *run, cs_recipe *recipe, cs_error *error)
{
    cs_description completed = *run;
    cs_rules rules = {.run = &completed,
                      .made = recipe,
                      .view = cJSON_CreateObject(),
                      .tables = cJSON_CreateObject(),
                      .error = error};
    if (!rules.view || !rules.tables)
        rules.status = cs_error_no_memory(error);
    assume(&rules, run, &completed);
    completed.unread = run->unread;
    if (rules.status == CS_OK && recipe->n_missing == 0) {
        cs_rules_halve(&rules, completed.parallel, completed.batch);
        cs_rules_read_stages(&rules, completed.parallel);
        build(&rules);
        recipe->overlaps_reduction = completed.options->dp_overlap;
    }
    if (rules.status == CS_OK && recipe->n_missing == 0)
        recipe->document = cJSON_DetachItemFromObjectCaseSensitive(rules.view, "scenario");
    cJSON_Delete(rules.view);
    cJSON_Delete(rules.defaults);
    cJSON_Delete(rules.tables);
    return rules.status;
}

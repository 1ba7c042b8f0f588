#include "sim/base/document-kind.h"

typedef struct kind {
    const char *name;
    /* each document of this kind has at least one of these keys; no other kind has them */
    const char *keys[2];
    const char *use; /* how a document of this kind is used, for messages */
} kind;

static const kind kinds[CS_N_DOCUMENT_KINDS] = {
    {"a scenario", {"schedule", "model"}, "`sim run SCENARIO.json -o RESULTS.h5` simulates it"},
    {"a model file", {"layers", NULL}, "a scenario names it with {\"model\": {\"file\": ...}}"},
    {"a device", {"peaks", NULL}, "a scenario names it with {\"model\": {\"device\": ...}}"},
    {"a description that is like another one",
     {"like", NULL},
     "a scenario names it in place of a device, a machine or a runtime"},
    {"a costs file", {"sources", NULL}, "a scenario names it with {\"costs\": ...}"},
    {"a plan",
     {"stages", NULL},
     "a scenario names it with {\"schedule\": {\"partition\": {\"file\": ...}}}"},
    {"a platform",
     {"vertices", NULL},
     "a scenario names it with {\"platform\": {\"topology\": \"file\", \"file\": ...}}"},
    {"a machine",
     {"platform", NULL},
     "a scenario names it with {\"platform\": {\"topology\": \"FILE.json\"}}"},
    {"a config.json of transformers",
     {"architectures", "model_type"},
     "a scenario names it with {\"model\": {\"name\": ...}}"},
    {"a trace", {"traceEvents", NULL}, "`sim import torch` makes a model of PyTorch's"},
};

static bool has_key_of(const cJSON *root, const kind *of)
{
    for (size_t i = 0; i < sizeof(of->keys) / sizeof(of->keys[0]) && of->keys[i]; i++)
        if (cs_json_member(root, of->keys[i]))
            return true;
    return false;
}

cs_status cs_document_expect(cs_document_kind wanted, const cJSON *root, const cs_json_place *place,
                             cs_error *error)
{
    if (!cJSON_IsObject(root) || has_key_of(root, &kinds[wanted]))
        return CS_OK;
    for (size_t i = 0; i < CS_N_DOCUMENT_KINDS; i++)
        if (has_key_of(root, &kinds[i]))
            return cs_json_invalid(place, error, "is %s; must be %s (%s)", kinds[i].name,
                                   kinds[wanted].name, kinds[i].use);
    return CS_OK;
}

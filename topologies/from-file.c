/* realpath is in the X/Open part of POSIX */
#define _XOPEN_SOURCE 700

/* A topology from a file: the JSON form of fabric-json.h or the XML of NCCL and RCCL (nccl-xml.h),
 * distinguished by the first character. Scenarios may use fewer devices than the file has GPUs: the
 * first ones.
 */
#include "sim/base/document-kind.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "topologies/fabric-json.h"
#include "topologies/nccl-xml.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES = CS_JSON_BYTES };

typedef struct file_params {
    const char *file;
    const cJSON *given_nvswitch;
    double nvswitch;         /* bytes/s; 0: no NVSwitches */
    const char *path, *text; /* in the arena */
    size_t length;
} file_params;

static const cs_field fields[] = {
    {"file", CS_FIELD_TEXT, offsetof(file_params, file),
     .doc = "a file that `sim export topology` wrote, or that NCCL or RCCL wrote with "
            "NCCL_TOPO_DUMP_FILE"},
    {"nvswitch", CS_FIELD_JSON, offsetof(file_params, given_nvswitch), .fallback = "",
     .doc =
         "for NCCL's XML without NVLinks or xGMI: bandwidth per GPU, one way, of a crossbar that "
         "joins all GPUs; none: GPUs communicate over PCIe, which is also the default, with a "
         "warning; an error if the file has NVLinks",
     .shape = "bandwidth > 0 or \"none\""},
    {0}};

static const cs_field nvswitch_field[] = {
    {"nvswitch", CS_FIELD_BANDWIDTH, offsetof(file_params, nvswitch), .above_min = true}, {0}};

static cs_status read_nvswitch(file_params *of, const cs_json_place *place, cs_error *error)
{
    const cs_json_place key = {.up = place, .key = "nvswitch"};
    const cJSON *given = of->given_nvswitch;
    char got[CS_JSON_DESCRIBED_BYTES];
    if (!given || (cJSON_IsString(given) && strcmp(given->valuestring, "none") == 0))
        return CS_OK;
    const bool word = cJSON_IsString(given) && !strpbrk(given->valuestring, "0123456789");
    if (word || (!cJSON_IsString(given) && !cJSON_IsNumber(given)))
        return cs_json_invalid(&key, error, "must be a bandwidth > 0 or \"none\" (got %s)",
                               cs_json_describe(given, got, sizeof(got)));
    cJSON member = *given;
    member.string = (char *)(uintptr_t) "nvswitch";
    member.next = member.prev = NULL;
    const cJSON object = {.type = cJSON_Object, .child = &member};
    return cs_field_read(&object, place, (const cs_field *const[]){nvswitch_field, NULL},
                         (void *const[]){of}, NULL, error);
}

/* Loads the text; it is parsed when the platform is built. */
static cs_status load_text(void *params, const cs_json_place *place, cs_arena *arena,
                           cs_error *error)
{
    file_params *of = params;
    const cs_json_place *root = place;
    while (root->up)
        root = root->up;
    char *path = cs_file_relative(root->file, of->file), *text = NULL;
    if (!path)
        return cs_error_no_memory(error);
    const cs_json_place key = {.up = place, .key = "file"};
    cs_error why;
    cs_error_init(&why);
    cs_status status = cs_file_read(path, FILE_BYTES, &text, &of->length, &why);
    if (status != CS_OK)
        (void)cs_json_pass_on(&key, &why, error);
    if (status == CS_OK) {
        /* absolute, so that a resolved scenario can be read anywhere */
        char *whole = realpath(path, NULL);
        of->path = cs_arena_copy(arena, path);
        of->file = whole ? cs_arena_copy(arena, whole) : of->path;
        free(whole);
        of->text = cs_arena_copy_length(arena, text, of->length);
        if (!of->path || !of->file || !of->text)
            status = cs_error_no_memory(error);
    }
    free(path);
    free(text);
    return status;
}

static cs_status load(void *params, const cs_json_place *place, cs_arena *arena, cs_error *error)
{
    const cs_status text = load_text(params, place, arena, error);
    const cs_status nvswitch = read_nvswitch(params, place, error);
    return text != CS_OK ? text : nvswitch;
}

static cs_status read_json(const file_params *of, cs_fabric **net, uint32_t *relays,
                           cs_error *error)
{
    cJSON *root;
    CS_TRY(cs_json_parse(of->path, of->text, of->length, &root, error));
    const cs_json_place place = {.file = of->path};
    cs_status status = cs_document_expect(CS_DOCUMENT_PLATFORM, root, &place, error);
    if (status == CS_OK)
        status = cs_fabric_from_json(root, &place, net, relays, error);
    cJSON_Delete(root);
    return status;
}

static cs_status refuse_nvswitch(const file_params *of, const char *why, cs_error *error)
{
    char shown[256];
    return cs_error_add(error, CS_INVALID, "%s: %s; \"nvswitch\" must be omitted",
                        cs_text_show(of->path, shown, sizeof(shown)), why);
}

/* Reads either form. *found: for the JSON form, values that cause no warning. */
static cs_status read_text(const file_params *of, cs_fabric **net, uint32_t *relays,
                           cs_fabric_nccl *found, cs_error *error)
{
    *found = (cs_fabric_nccl){.has_links = true};
    if (of->text[strspn(of->text, " \t\r\n\xEF\xBB\xBF")] != '<')
        return of->given_nvswitch ? refuse_nvswitch(of, "is not NCCL's XML", error)
                                  : read_json(of, net, relays, error);
    CS_TRY(cs_fabric_from_nccl(of->path, of->text, of->length, of->nvswitch, net, found, error));
    return found->has_links && of->given_nvswitch ? refuse_nvswitch(of, "has NVLinks", error)
                                                  : CS_OK;
}

static cs_status warn(const file_params *of, const cs_fabric_nccl *found, cs_platform *platform,
                      cs_error *error)
{
    static const char without[] =
        "%s lists no NVLinks, as files of virtual machines often do, so GPUs communicate over "
        "PCIe; if NVSwitches join them, set their bandwidth per GPU, one way: \"nvswitch\": \"300 "
        "GB/s\" (300 GB/s for an A100, 450 GB/s for an H100); if there are none, set \"nvswitch\": "
        "\"none\"";
    static const char missing[] =
        "%s has %" PRIu32 " direct links to GPUs that it does not list; they are ignored";
    char shown[256], text[sizeof(without) + sizeof(shown)];
    cs_text_show(of->path, shown, sizeof(shown));
    if (found->n_missing > 0)
        snprintf(text, sizeof(text), missing, shown, found->n_missing);
    else if (!found->has_links && !of->given_nvswitch && platform->n_devices > 1)
        snprintf(text, sizeof(text), without, shown);
    else
        return CS_OK;
    platform->warning = cs_arena_copy(&platform->arena, text);
    return platform->warning ? CS_OK : cs_error_no_memory(error);
}

static cs_status count_devices(const void *params, uint32_t *n, cs_error *error)
{
    cs_fabric *net = NULL;
    uint32_t relays;
    cs_fabric_nccl found;
    cs_status status = read_text(params, &net, &relays, &found, error);
    if (status == CS_OK && !net)
        status = cs_error_no_memory(error);
    if (status == CS_OK)
        *n = cs_fabric_count(net, CS_VERTEX_GPU);
    cs_fabric_destroy(net);
    return status;
}

static cs_status build(const void *params, uint32_t n_devices, cs_platform *platform,
                       cs_error *error)
{
    cs_fabric *net = NULL;
    uint32_t relays = 1; /* as NCCL allows */
    cs_fabric_nccl found;
    CS_TRY(cs_platform_check_devices("file", n_devices, error));
    cs_status status = read_text(params, &net, &relays, &found, error);
    if (status == CS_OK)
        status = cs_fabric_finish(net, n_devices, relays, platform, error);
    if (status == CS_OK)
        platform->topology = "file"; /* until here messages show the file's name */
    if (status == CS_OK && (status = warn(params, &found, platform, error)) != CS_OK)
        cs_platform_finish(platform);
    cs_fabric_destroy(net);
    return status;
}

const cs_topology cs_topology_file = {
    .name = "file",
    .summary =
        "from a file: the JSON of `sim export topology`, or the topology XML of NCCL or RCCL",
    .source = "NCCL and RCCL, src/graph/xml.cc and topo.cc",
    .fields = fields,
    .params_size = sizeof(file_params),
    .read = load,
    .devices = count_devices,
    .build = build,
};

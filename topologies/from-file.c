/* realpath belongs to the X/Open part of POSIX */
#define _XOPEN_SOURCE 700

/* A topology from a file: our own JSON form (fabric-json.h) or NCCL's XML (nccl-xml.h), told apart by
 * their first character. Scenarios may use fewer devices than the file has GPUs: the first ones. */
#include "sim/base/file.h"
#include "topologies/fabric-json.h"
#include "topologies/nccl-xml.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES = CS_JSON_BYTES };

typedef struct file_params {
    const char *file;
    double nvswitch;
    const char *path, *text; /* in the arena */
    size_t length;
} file_params;

static const cs_field fields[] = {
    {"file", CS_FIELD_TEXT, offsetof(file_params, file),
     .doc = "what `sim export topology` wrote, or what NCCL_TOPO_DUMP_FILE makes NCCL write"},
    {"nvswitch", CS_FIELD_BANDWIDTH, offsetof(file_params, nvswitch), .fallback = "0",
     .doc =
         "of NCCL's XML without NVLinks: joins all GPUs by a crossbar with this, one way; 0: no"},
    {0}};

/* Loads the text; it is understood when the platform is built. */
static cs_status load(void *params, const cs_json_place *place, cs_arena *arena, cs_error *error)
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
        char *whole = realpath(path, NULL); /* so that a resolved scenario can be read anywhere */
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

static cs_status read_json(const file_params *of, cs_fabric **net, uint32_t *relays,
                           cs_error *error)
{
    cJSON *root;
    cs_status status = cs_json_parse(of->path, of->text, of->length, &root, error);
    if (status != CS_OK)
        return status;
    const cs_json_place place = {.file = of->path};
    status = cs_fabric_from_json(root, &place, net, relays, error);
    cJSON_Delete(root);
    return status;
}

static cs_status read_text(const file_params *of, cs_fabric **net, uint32_t *relays,
                           cs_error *error)
{
    if (of->text[strspn(of->text, " \t\r\n\xEF\xBB\xBF")] == '<')
        return cs_fabric_from_nccl(of->path, of->text, of->length, of->nvswitch, net, error);
    return read_json(of, net, relays, error);
}

static cs_status count_devices(const void *params, uint32_t *n, cs_error *error)
{
    cs_fabric *net = NULL;
    uint32_t relays;
    cs_status status = read_text(params, &net, &relays, error);
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
    uint32_t relays = 1; /* what NCCL allows */
    cs_status status = cs_platform_check_devices("file", n_devices, error);
    if (status != CS_OK)
        return status;
    status = read_text(params, &net, &relays, error);
    if (status == CS_OK)
        status = cs_fabric_finish(net, n_devices, relays, platform, error);
    if (status == CS_OK)
        platform->topology = "file"; /* until here messages had the file's name */
    cs_fabric_destroy(net);
    return status;
}

const cs_topology cs_topology_file = {
    .name = "file",
    .summary = "from a file: the JSON of `sim export topology`, or NCCL's topology XML",
    .source = "NCCL, src/graph/xml.cc and topo.cc",
    .fields = fields,
    .params_size = sizeof(file_params),
    .read = load,
    .devices = count_devices,
    .build = build,
};

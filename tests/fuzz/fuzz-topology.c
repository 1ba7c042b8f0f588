/* The JSON form of platforms: whatever is read can be written and read again, with the same routes.
 */
#include "topologies/fabric-json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_GPUS = 64 };

static cs_status read_platform(const cJSON *root, cs_platform *platform, cs_error *error)
{
    cs_fabric *net = NULL;
    uint32_t relays;
    const cs_json_place place = {.file = "t.json"};
    cs_status status = cs_fabric_from_json(root, &place, &net, &relays, error);
    if (status != CS_OK)
        return status;
    const uint32_t gpus = cs_fabric_count(net, CS_VERTEX_GPU);
    if (gpus <= MOST_GPUS)
        status = cs_fabric_finish(net, gpus, relays, platform, error);
    else
        status = cs_error_add(error, CS_INVALID, "too many");
    cs_fabric_destroy(net);
    return status;
}

static void compare(const cs_platform *a, const cs_platform *b)
{
    uint32_t *x = malloc((a->longest_route + 1) * sizeof(*x));
    uint32_t *y = malloc((b->longest_route + 1) * sizeof(*y));
    if (!x || !y || a->n_devices != b->n_devices || a->n_links != b->n_links)
        abort();
    for (uint32_t i = 0; i < a->n_devices * a->n_devices; i++) {
        const uint32_t from = i / a->n_devices, to = i % a->n_devices;
        const uint32_t n = a->route(a, from, to, x);
        if (n != b->route(b, from, to, y) || memcmp(x, y, n * sizeof(*x)) != 0)
            abort();
    }
    free(x);
    free(y);
}

static void check(const cJSON *root)
{
    cs_platform platform, again;
    cs_error error;
    cJSON *written;
    cs_error_init(&error);
    if (read_platform(root, &platform, &error) != CS_OK) {
        if (error.count == 0)
            abort();
        return;
    }
    if (cs_platform_json(&platform, &written, &error) == CS_OK) {
        if (read_platform(written, &again, &error) != CS_OK)
            abort();
        compare(&platform, &again);
        cs_platform_finish(&again);
        cJSON_Delete(written);
    }
    cs_platform_finish(&platform);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cJSON *root;
    cs_error error;
    cs_error_init(&error);
    if (cs_json_parse("t.json", (const char *)data, size, &root, &error) != CS_OK)
        return 0;
    check(root);
    cJSON_Delete(root);
    return 0;
}

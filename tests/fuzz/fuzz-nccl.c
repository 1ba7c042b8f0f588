/* NCCL's topology XML: whatever is read makes a platform or an error with a line. */
#include "topologies/nccl-xml.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_fabric *net = NULL;
    cs_fabric_nccl found;
    cs_error error;
    cs_error_init(&error);
    if (cs_fabric_from_nccl("t.xml", (const char *)data, size, 1e9, &net, &found, &error) !=
        CS_OK) {
        if (error.count == 0 || (error.status == CS_INVALID && strncmp(error.text, "t.xml:", 6)))
            abort();
        return 0;
    }
    cs_platform platform;
    if (cs_fabric_finish(net, 1, 1, &platform, &error) == CS_OK)
        cs_platform_finish(&platform);
    else if (error.count == 0)
        abort();
    cs_fabric_destroy(net);
    return 0;
}

/* Networks as JSON: accepted networks can be costed, written and read again, with the same number
 * of operators. */
#include "sim/model/net-file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static cs_status read_net(const char *text, size_t length, cs_net *net, cs_error *error)
{
    cJSON *root;
    cs_error_init(error);
    cs_status status = cs_json_parse("n.json", text, length, &root, error);
    if (status != CS_OK)
        return status;
    const cs_json_place place = {.file = "n.json"};
    status = cs_net_read(root, &place, net, error);
    cJSON_Delete(root);
    return status;
}

static void check_round_trip(const cs_net *net, const cs_net_options *how,
                             const cs_net_chain *chain)
{
    cs_net again;
    cs_error error;
    cJSON *root = cs_net_json(net, how, chain);
    char *text = root ? cs_json_print(root) : NULL;
    if (!text || read_net(text, strlen(text), &again, &error) != CS_OK || again.n_ops != net->n_ops)
        abort();
    free(text);
    cJSON_Delete(root);
    cs_net_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_net net;
    cs_error error;
    if (read_net((const char *)data, size, &net, &error) != CS_OK) {
        if (error.count == 0)
            abort();
        return 0;
    }
    cs_accelerator device;
    cs_net_chain chain;
    cs_accelerator_none(&device);
    const cs_net_options how = {.batch_size = 1, .device = &device, .source = "fuzz"};
    if (cs_net_chain_find(&net, &how, &chain, &error) == CS_OK) {
        check_round_trip(&net, &how, &chain);
        cs_net_chain_finish(&chain);
    }
    cs_net_finish(&net);
    return 0;
}
